// SPDX-License-Identifier: BSD-3-Clause
// One machine per process: HCA 0 with all defaults, HCA 1 without the built-in subnet manager, HCA 2 on
// the Ethernet link, HCA 3 with a time limit for commands, HCA 4 a ConnectX-6, HCA 5 a ConnectX-4 and
// HCA 6 a ConnectX-6 on the Ethernet link.
#ifndef HCASIM_TESTS_FIRMWARE_STUB_FIXTURE_H
#define HCASIM_TESTS_FIRMWARE_STUB_FIXTURE_H

#include <gtest/gtest.h>

#include <memory>

#include "card_state.h"
#include "driver/bare/device.h"
#include "driver/bare/mr.h"
#include "rule_check.h"

namespace hcasim::bare {

Machine& machine();

// A probed device that must come down clean. What a test makes, it destroys, and of that nothing must remain.
class FirmwareTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  virtual DeviceOptions device_options() const { return {}; }
  virtual std::size_t hca() const { return 0; }
  Device& dev() { return *dev_; }
  Function& fn() { return machine().function(hca()); }

  // QUERY_HCA_CAP, the capability block alone.
  std::vector<std::uint8_t> caps(unsigned group, bool current);
  // A command that only names an object.
  template <class NumberField>
  CommandResult name(std::uint16_t opcode, std::size_t bytes, std::uint32_t number, std::size_t out = 16) {
    Mailbox in(opcode, bytes);
    in.template set<NumberField>(number);
    return dev().exec(in, out);
  }

  std::unique_ptr<Device> dev_;
  test::StateListing objects_;  // of the driver alone, before the test
};

// What a command must have answered.
#define EXPECT_OK(expr)                                \
  do {                                                 \
    const auto ok_result_ = (expr);                    \
    EXPECT_TRUE(ok_result_.ok()) << ok_result_.text(); \
  } while (0)
// Also: each refusal tells why.
#define EXPECT_STATUS(expr, want)                                                                        \
  do {                                                                                                   \
    const auto status_result_ = (expr);                                                                  \
    EXPECT_TRUE(status_result_.done);                                                                    \
    EXPECT_EQ(static_cast<int>(status_result_.delivery), 0) << status_result_.text();                    \
    EXPECT_EQ(static_cast<int>(status_result_.status), static_cast<int>(want)) << status_result_.text(); \
    EXPECT_NE(status_result_.syndrome, 0u) << status_result_.text();                                     \
  } while (0)

}  // namespace hcasim::bare
#endif
