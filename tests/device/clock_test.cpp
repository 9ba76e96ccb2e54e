// SPDX-License-Identifier: BSD-3-Clause
// The clocks that a driver reads, the internal timer (which its PTP clock counts by) and the CQEs' time
// stamps, are the trace's time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "driver/bare/qp.h"
#include "traces/reader.h"

namespace hcasim::bare {
namespace {

constexpr std::int64_t kPsPerTick = 1000;

TEST(Clocks, AreTheTraces) {
  char path[] = "/tmp/hcasim-clock-test-XXXXXX";
  close(mkstemp(path));
  std::map<std::uint32_t, std::uint64_t> stamps;  // by WQE
  std::uint32_t qpn = 0;
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(std::string("link=ib,batch_window_ns=0,trace=") + path);
    machine.start();
    Device device(function);
    device.probe();
    const auto khz = device.cap<prm::cmd_hca_cap::device_frequency_khz>();
    ASSERT_EQ(khz, 1'000'000'000 / kPsPerTick) << "ticks of " << kPsPerTick << " ps";
    const auto ticks = [&] {
      const std::uint64_t h = function.read32(offsetof(prm::InitSeg, internal_timer_h));
      return h << 32 | function.read32(offsetof(prm::InitSeg, internal_timer_l));
    };
    Pd pd(device);
    Cq cq(device);
    Qp qp(device, pd, cq, cq);
    Buffer memory = device.memory().allocate(1 << 16);
    Mr mr(device, Mr::of(pd, memory, kAllAccess));
    QpAttr attr;
    attr.remote_qpn = qpn = qp.qpn();
    qp.connect(attr);
    for (std::uint32_t i = 0; i < 20; ++i) {
      machine.advance(1'000 + 7'777 * i);
      // The machine's clock began with simulated time.
      ASSERT_EQ(ticks(), static_cast<std::uint64_t>(machine.now()));
      SendWr w;
      w.op = WqeOp::kRdmaWrite;
      w.sges = {{mr.start(), mr.key(), 1u + 97 * i}};
      w.raddr = mr.start() + 8192;
      w.rkey = mr.key();
      qp.post(w);
      const Completion c = cq.wait_one();
      ASSERT_FALSE(c.error()) << c.text();
      stamps[i] = c.raw.timestamp;
      EXPECT_LE(stamps[i], ticks());
    }
    hca_destroy(function.handle());
  }
  traces::Reader reader;
  std::string err;
  ASSERT_TRUE(reader.open(path, &err)) << err;
  traces::Record r;
  std::vector<std::uint8_t> blob;
  unsigned found = 0;
  std::int64_t write = 0;
  while (reader.next(r, blob)) {
    if (r.p() != traces::Point::kCqeWritten || (r.obj & 0xffffff) != qpn) continue;
    ASSERT_EQ(stamps.count(r.index), 1u);
    // Stamped when the completion unit made it; the trace has when it was in memory, one PCIe write later,
    // which takes the same time for each.
    const std::int64_t written = r.time_ps / kPsPerTick - static_cast<std::int64_t>(stamps[r.index]);
    if (found == 0) write = written;
    EXPECT_NEAR(static_cast<double>(written), static_cast<double>(write), 1) << "WQE " << r.index;
    EXPECT_GT(written, 0);
    EXPECT_LT(written, 1000);
    ++found;
  }
  EXPECT_EQ(found, stamps.size());
  unlink(path);
}

}  // namespace
}  // namespace hcasim::bare
