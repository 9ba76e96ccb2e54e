// SPDX-License-Identifier: BSD-3-Clause
// Two runs in one process, each on a new HCA of the same make and in a new simulation context, are the same
// run: nothing of the first one is hidden anywhere.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "card_state.h"
#include "driver/bare/qp.h"
#include "traces/reader.h"

namespace hcasim::bare {
namespace {

using prm::WqeOp;

struct OneRun {
  std::uint64_t digest = 0;  // of connected QPs, before the first packet
  test::StateListing state;
  std::vector<std::vector<std::uint64_t>> trace;
};

// QPNs of packets in traces have the number of their HCA in the process above them (Tracer::tag()).
constexpr std::uint32_t kQpn = traces::QpTag::kQpnMask;
constexpr const char* kTagged[] = {"trace_qpn", "requester"};

test::StateListing without_tags(test::StateListing state) {
  for (auto& [path, value] : state)
    for (const std::string name : kTagged)
      if (path.size() > name.size() &&
          path.compare(path.size() - name.size() - 1, path.npos, "." + name) == 0)
        value = std::to_string(std::stoul(value) & kQpn);
  return state;
}

std::vector<std::vector<std::uint64_t>> read_trace(const std::string& path) {
  std::vector<std::vector<std::uint64_t>> records;
  traces::Reader reader;
  std::string err;
  EXPECT_TRUE(reader.open(path, &err)) << err;
  traces::Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) {  // all but which HCA it was
    std::vector<std::uint64_t> record{
        r.point, static_cast<std::uint64_t>(r.time_ps), r.obj & kQpn, r.index, r.a0, r.a1, r.flags};
    record.insert(record.end(), blob.begin(), blob.end());
    records.push_back(std::move(record));
  }
  EXPECT_EQ(reader.warning(), "");
  return records;
}

// Brings the HCA up, takes QPs down with an error, and looks at the state in the middle of a transfer.
OneRun run_on(Machine& machine, Function& fn, const std::string& trace) {
  char err[256] = "";
  EXPECT_EQ(hca_set_trace(fn.handle(), "file", trace.c_str(), err, sizeof err), 0) << err;
  OneRun run;
  {
    Device dev(fn);
    dev.probe();
    Pd pd(dev);
    Cq cq(dev);
    const Buffer memory = machine.memory().allocate(1 << 16);
    Mr mr(dev, Mr::of(pd, memory, kAllAccess));
    const auto write = [&](std::uint32_t len, std::uint32_t rkey) {
      SendWr w;
      w.op = WqeOp::kRdmaWrite;
      w.sges = {{mr.start(), mr.key(), len}};
      w.raddr = mr.start() + memory.size() / 2;
      w.rkey = rkey;
      return w;
    };
    for (unsigned round = 0; round < 3; ++round) {
      Qp a(dev, pd, cq, cq), b(dev, pd, cq, cq);
      connect_pair(a, b, {});
      if (round == 0) run.digest = fn.state_digest();
      a.post(write(16384, mr.key()));
      EXPECT_FALSE(cq.wait(1).at(0).error());
      a.post(write(64, mr.key() ^ 0x5500));
      EXPECT_TRUE(cq.wait(1).at(0).error());
    }
    Qp a(dev, pd, cq, cq), b(dev, pd, cq, cq);
    connect_pair(a, b, {});
    for (int i = 0; i < 4; ++i) a.post(write(32768, mr.key()));
    machine.advance(2000);
    run.state = without_tags(test::state_of(fn.handle()));
    cq.wait(4);
  }
  fn.reset();
  machine.advance(1000);
  EXPECT_EQ(hca_set_trace(fn.handle(), "file", "", err, sizeof err), 0) << err;
  run.trace = read_trace(trace);
  std::remove(trace.c_str());
  return run;
}

TEST(RunAgain, IsTheSameRun) {
  Machine machine(std::size_t{64} << 20);
  machine.add_hca("link=ib,node_guid=0002c90300111100");
  machine.add_hca("link=ib,node_guid=0002c90300111100");
  machine.start();
  std::vector<OneRun> runs;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(test::renew_simulation(machine.now()));
    runs.push_back(run_on(machine, machine.function(i),
                          ::testing::TempDir() + "run-again-" + std::to_string(getpid()) + ".trace"));
  }
  EXPECT_EQ(test::difference(runs[0].state, runs[1].state), "");
  EXPECT_EQ(runs[0].digest, runs[1].digest);
  EXPECT_GT(runs[0].trace.size(), 100u);
  EXPECT_EQ(runs[0].trace, runs[1].trace);

  // Without a new context it is another run: the test above sees what there is to be seen.
  machine.advance(12345);
  const OneRun other = run_on(machine, machine.function(1),
                              ::testing::TempDir() + "run-again-" + std::to_string(getpid()) + ".trace");
  EXPECT_NE(other.digest, runs[0].digest);
  EXPECT_NE(other.trace, runs[0].trace);
}

}  // namespace
}  // namespace hcasim::bare
