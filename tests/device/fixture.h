// SPDX-License-Identifier: BSD-3-Clause
// What the device tests share: one machine per process with two HCAs, a probed device per test that must come
// down clean, and pairs of connected QPs with memory.
#ifndef HCASIM_TESTS_DEVICE_FIXTURE_H
#define HCASIM_TESTS_DEVICE_FIXTURE_H

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>

#include "driver/bare/qp.h"
#include "rule_check.h"

namespace hcasim::bare {

// The machine of this process; its HCAs are made, and simulated time started, at the first call: two with the
// IB link, one with the Ethernet link, each with a cable to itself, then pairs joined by a cable.
// HCASIM_TEST_OPTIONS are further options of the first; the second offloads IPoIB.
Machine& machine();
enum : std::size_t { kIpoibFunction = 1, kEthFunction = 2, kEthernetPair = 3, kIbPair = 5 };

// Object counts of hca_stats_json() that are not zero, as text; "" when all are.
std::string leftover_objects(Function& function);

class DeviceTest : public ::testing::Test {
 protected:
  // The HCA under test is the first, or the one that HCASIM_TEST_FUNCTION names; HCASIM_TEST_SGID: index of
  // its RoCE address to use.
  explicit DeviceTest(DeviceOptions options = {});
  DeviceTest(DeviceOptions options, std::size_t function) : options_(options), function_(function) {}
  void SetUp() override;
  void TearDown() override;

  Device& dev() { return *dev_; }
  Function& fn() { return machine().function(function_); }
  // Traffic over a new pair of QPs works: the device serves the next user.
  void expect_serves_on();

  DeviceOptions options_;
  std::size_t function_ = 0;  // of the machine
  std::unique_ptr<Device> dev_;
  // Set by tests that provoke them on purpose.
  bool expect_strays_ = false;
  std::size_t memory_before_ = 0;
  std::uint64_t stray_before_ = 0;
};

void fill_random(std::uint8_t* p, std::size_t len, std::uint64_t seed);

struct PairOptions {
  QpAttr attr;
  std::size_t bytes = 64 << 10;  // memory on each side
  unsigned log_sq = 7, log_rq = 7, log_rq_stride = 2, log_cq = 9;
  bool scattered = false;
  unsigned access = kAllAccess;
  bool connect = true;
  std::uint32_t counter_set = 0;
};

// Two connected RC QPs of one device, each with memory, a key, and its own CQ.
struct Pair {
  explicit Pair(Device& device, const PairOptions& options = {});

  Device& dev;
  Pd pd;
  Cq acq, bcq;
  Qp a, b;
  Buffer amem, bmem;
  Mr amr, bmr;

  Sge asge(std::size_t off, std::uint32_t len) const { return {amr.start() + off, amr.key(), len}; }
  Sge bsge(std::size_t off, std::uint32_t len) const { return {bmr.start() + off, bmr.key(), len}; }
  // A one-SGE request from a's memory to (or from) b's at the same offset.
  SendWr wr(WqeOp op, std::size_t off, std::uint32_t len) const;
  // Fills a's memory with a pattern and b's with another.
  void fill(std::uint64_t seed) const;
  bool same(std::size_t off, std::size_t len) const {
    return std::memcmp(amem.data() + off, bmem.data() + off, len) == 0;
  }
};

// One completion of a, which must be good and of the WQE given.
void expect_good(Cq& cq, std::uint16_t wqe_counter);
void expect_error(const Completion& c, prm::CqeSyndrome syndrome);

#define EXPECT_CMD_OK(expr)                              \
  do {                                                   \
    const auto cmd_result_ = (expr);                     \
    EXPECT_TRUE(cmd_result_.ok()) << cmd_result_.text(); \
  } while (0)
#define EXPECT_CMD_STATUS(expr, want)                                                               \
  do {                                                                                              \
    const auto cmd_result_ = (expr);                                                                \
    EXPECT_TRUE(cmd_result_.done&& cmd_result_.delivery == CmdDelivery::kOk) << cmd_result_.text(); \
    EXPECT_EQ(static_cast<int>(cmd_result_.status), static_cast<int>(want)) << cmd_result_.text();  \
    EXPECT_NE(cmd_result_.syndrome, 0u) << cmd_result_.text();                                      \
  } while (0)

}  // namespace hcasim::bare
#endif
