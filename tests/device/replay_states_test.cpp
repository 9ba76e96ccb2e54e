// SPDX-License-Identifier: BSD-3-Clause
// States in recordings: those that the recorder takes, with which a replay can begin, and those that the host
// has loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "driver/bare/saved.h"
#include "replayed.h"
#include "rule_check.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

using test::Ran;
using test::replay;
using ::testing::HasSubstr;
using ::testing::Not;

// Two QPs of one HCA, and writes from one to the other.
struct Writes {
  Writes(const std::string& options) : machine(std::size_t{64} << 20), function(machine.add_hca(options)) {
    machine.start();
    device = std::make_unique<Device>(function);
    device->probe();
    qps = std::make_unique<TwoQps>(*device, QpAttr{}, 1 << 18);
  }
  ~Writes() {
    qps.reset();
    device->teardown();
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) {
      qps->a->post(qps->wr(prm::WqeOp::kRdmaWrite, 4096));
      qps->cq.wait_one();
    }
  }
  Machine machine;
  Function& function;
  std::unique_ptr<Device> device;
  std::unique_ptr<TwoQps> qps;
};

class ReplayStates : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return folder_ / name; }
  std::string recorded(const std::string& more) const { return test::recorded(file("r"), file("t")) + more; }
  test::Folder folder_;
};

TEST_F(ReplayStates, AReplayBeginsWithTheLastOneUntilThen) {
  std::int64_t began = 0, ended = 0;
  {
    Writes writes(recorded("link=ib,snapshot_every=20us"));
    began = writes.machine.now();
    writes.run(60);
    ended = writes.machine.now();
  }
  const Ran whole = replay(file("r") + " --trace " + file("again"));
  EXPECT_EQ(whole.status, 0) << whole.text;
  EXPECT_THAT(whole.text, HasSubstr(" states equal; statistics of 1 HCA equal"));
  EXPECT_TRUE(test::bytes_of(file("t")) == test::bytes_of(file("again"))) << "states show in the trace";
  ASSERT_GT(ended - began, 100'000);
  for (const int part : {1, 2, 3}) {
    const std::int64_t from = began + (ended - began) * part / 3;
    const Ran ran = replay(file("r") + " --from " + std::to_string(from));
    EXPECT_EQ(ran.status, 0) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr("statistics of 1 HCA equal"));
    double at = -1;
    ASSERT_EQ(std::sscanf(ran.text.c_str(), "begins at %lf s", &at), 1) << ran.text;
    EXPECT_LE(at * 1e9, static_cast<double>(from));
    EXPECT_GT(at * 1e9, static_cast<double>(from - 40'000)) << "there was a later one";
  }
  const Ran early = replay(file("r") + " --from 0");
  EXPECT_EQ(early.status, 2);
  EXPECT_THAT(early.text, HasSubstr("the first state in the recording is of 0."));
}

// A traced card looks at memory for its trace; no state says whether one is.
class SwitchedReplayStates : public ReplayStates, public ::testing::WithParamInterface<bool> {};
TEST_P(SwitchedReplayStates, BeginsWithTheTraceAsItWas) {
  std::int64_t from = 0;
  {
    Writes writes(recorded("link=ib,snapshot_every=20us"));
    const auto set = [&](const char* value) {
      EXPECT_EQ(hca_set_trace(writes.function.handle(), "on", value, nullptr, 0), 0);
    };
    set("off");
    if (GetParam()) set("on");
    writes.run(20);
    from = writes.machine.now();
    writes.run(20);
  }
  const Ran ran = replay(file("r") + " --from " + std::to_string(from));
  EXPECT_EQ(ran.status, 0) << ran.text;
}
INSTANTIATE_TEST_SUITE_P(Trace, SwitchedReplayStates, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "OnAgain" : "Off"); });

TEST_F(ReplayStates, ThereAreNoneUnlessAskedFor) {
  { Writes(recorded("link=ib")).run(3); }
  const Ran ran = replay(file("r") + " --from 1000000");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.text, HasSubstr("record with snapshot_every=TIME"));
}

TEST_F(ReplayStates, ThatAreNotWhatTheModelHasAreFound) {
  { Writes(recorded("link=ib,snapshot_every=20us")).run(20); }
  std::string records = test::records_of(file("r"));
  // The name of a rule or point, which is a part of the states alone.
  const std::size_t at = records.find("clock_at_start");
  ASSERT_NE(at, std::string::npos);
  records[at] = 'k';
  test::write_records(file("r"), records);
  const Ran ran = replay(file("r"));
  EXPECT_EQ(ran.status, 1) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("expected state("));
}

// Two cards, of which one is taken out, and what the host says of the other one's link: the states have
// neither.
TEST_F(ReplayStates, BeginsBehindACardThatIsGoneAndALinkThatIsDown) {
  std::int64_t from = 0;
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=eth,wire=host,snapshot_every=20us"));
    Function& other = machine.add_hca("link=ib");
    machine.start();
    Device device(function);
    device.probe();
    breaks({"uar-read"});
    other.read32(5 * prm::uar::kPageBytes);  // it has something to say at its end
    hca_destroy(other.handle());
    function.set_carrier(false);
    machine.advance(100'000);
    from = machine.now();
    // What follows the link asks what the host said last.
    ASSERT_EQ(function.inject("fault=port,action=down"), "");
    machine.advance(1000);
    ASSERT_EQ(function.inject("fault=port,action=up"), "");
    machine.advance(1000);
    device.teardown();
  }
  const Ran ran = replay(file("r") + " --from " + std::to_string(from));
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("begins at "));
}

// The host goes back to a state, as loadvm does.
TEST_F(ReplayStates, ThatTheHostLoadsAreLoadedAgain) {
  {
    Writes writes(recorded("link=ib,snapshot_every=50us"));
    writes.run(5);
    const std::string state = save_state();
    std::uint8_t* const bytes = writes.machine.memory().at(HostMemory::kBusBase);
    const std::vector<std::uint8_t> memory(bytes, bytes + (std::size_t{32} << 20));
    const std::int64_t now = writes.machine.now();
    for (int i = 0; i < 3; ++i) {
      writes.qps->a->post(writes.qps->wr(prm::WqeOp::kRdmaWrite, 40'000));
      writes.machine.advance(1000);
      std::copy(memory.begin(), memory.end(), bytes);
      ASSERT_EQ(load_state(state), "");
      writes.machine.set_now(now);
      ASSERT_NE(load_state(state.substr(1)), "");
      writes.machine.advance(100'000);
    }
  }
  test::expect_same(file("r"), file("t"));
}

}  // namespace
}  // namespace hcasim::bare
