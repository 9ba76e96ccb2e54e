// SPDX-License-Identifier: BSD-3-Clause
// The gateway behind the vendor specific capability by itself: semaphores, spaces, addresses; a firmware that
// notes what reaches it.
#include "model/pcie/vsc_gateway.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "model/state/state.h"

namespace hcasim {
namespace {

using Gateway = VscGateway;

// One word at 0x40; everything else is not there.
class Firmware final : public FirmwarePort {
 public:
  static constexpr std::uint32_t kWord = 0x40;
  static constexpr std::uint32_t kRevision = 0x12345678;
  std::uint32_t init_seg_read(std::uint32_t offset) override { return offset == 0 ? kRevision : 0; }
  std::vector<std::uint64_t> core() override { return {std::uint64_t{1} << 32 | counted}; }
  std::uint32_t counted = 2;
  void init_seg_write(std::uint32_t, std::uint32_t) override {}
  void function_reset() override {}
  void qp_failed(std::uint32_t) override {}
  void fatal(const char*) noexcept override {}
  std::optional<std::uint32_t> icmd_read(std::uint32_t address) override {
    if (address != kWord) return {};
    return word;
  }
  bool icmd_write(std::uint32_t address, std::uint32_t value) override {
    if (address == kWord) word = value;
    return address == kWord;
  }
  std::uint32_t word = 0;
};

class VscGatewayTest : public ::testing::Test {
 protected:
  std::uint32_t read(std::uint32_t space, std::uint32_t address) {
    gateway.write(Gateway::kControl, space);
    gateway.write(Gateway::kAddress, address);
    EXPECT_EQ(gateway.read(Gateway::kAddress) & ~Gateway::kFailed, address | Gateway::kFlag);
    return gateway.read(Gateway::kData);
  }
  void write(std::uint32_t space, std::uint32_t address, std::uint32_t value) {
    gateway.write(Gateway::kControl, space);
    gateway.write(Gateway::kData, value);
    gateway.write(Gateway::kAddress, address | Gateway::kFlag);
    EXPECT_EQ(gateway.read(Gateway::kAddress) & ~Gateway::kFailed, address);
  }
  bool failed() {
    const bool bit = (gateway.read(Gateway::kAddress) & Gateway::kFailed) != 0;
    EXPECT_EQ(gateway.read(Gateway::kControl) & Gateway::kSyndromeMask, bit ? Gateway::kOutOfRange : 0u);
    return bit;
  }
  bool there(std::uint32_t space) {
    gateway.write(Gateway::kControl, space);
    EXPECT_EQ(gateway.read(Gateway::kControl) & Gateway::kSpaceMask, space);
    return gateway.read(Gateway::kControl) >> 29 != 0;
  }

  Firmware firmware;
  Gateway gateway{*find_generation("connectx6"), firmware};
};

TEST_F(VscGatewayTest, TheWindowIsTakenWithATicketAndFreedWithZero) {
  const std::uint32_t ticket = gateway.read(Gateway::kCounter), other = gateway.read(Gateway::kCounter);
  EXPECT_NE(ticket, other);
  EXPECT_EQ(gateway.read(Gateway::kSemaphore), 0u);
  gateway.write(Gateway::kSemaphore, ticket);
  gateway.write(Gateway::kSemaphore, other);  // too late
  EXPECT_EQ(gateway.read(Gateway::kSemaphore), ticket);
  gateway.write(Gateway::kSemaphore, 0);
  gateway.write(Gateway::kSemaphore, other);
  EXPECT_EQ(gateway.read(Gateway::kSemaphore), other);
}

TEST_F(VscGatewayTest, SpacesThatAreThereSaySo) {
  for (std::uint32_t space = 0; space <= 0xffff; ++space)
    ASSERT_EQ(there(space), space == 1 || space == 2 || space == 3 || space == 7 || space == 0xa) << space;
}

TEST_F(VscGatewayTest, ASpaceThatIsNotThereAnswersNothing) {
  EXPECT_EQ(read(6, 0), Gateway::kNothing);
  EXPECT_TRUE(failed());
  write(6, 0, 1);
  EXPECT_TRUE(failed());
  EXPECT_EQ(gateway.unanswered(), 2u);
}

TEST_F(VscGatewayTest, ATakenSemaphoreOnlyGivesWayToItsRelease) {
  write(Gateway::kSemaphoreSpace, 0x20, 7);
  write(Gateway::kSemaphoreSpace, 0x20, 8);
  EXPECT_EQ(read(Gateway::kSemaphoreSpace, 0x20), 7u);
  EXPECT_EQ(read(Gateway::kSemaphoreSpace, 0x24), 0u);
  write(Gateway::kSemaphoreSpace, 0x20, 0);
  write(Gateway::kSemaphoreSpace, 0x20, 8);
  EXPECT_EQ(read(Gateway::kSemaphoreSpace, 0x20), 8u);
  EXPECT_FALSE(failed());
  EXPECT_EQ(gateway.unanswered(), 0u);
}

TEST_F(VscGatewayTest, NoSuchSemaphore) {
  EXPECT_EQ(read(Gateway::kSemaphoreSpace, 4 * Gateway::kSemaphores), Gateway::kNothing);
  EXPECT_TRUE(failed());
  write(Gateway::kSemaphoreSpace, Gateway::kAddressMask & ~3u, 1);
  EXPECT_TRUE(failed());
  write(Gateway::kSemaphoreSpace, 0, 1);
  EXPECT_FALSE(failed());
}

TEST_F(VscGatewayTest, CrSpaceSaysWhichChipItIs) {
  EXPECT_EQ(read(Gateway::kCr, CrSpace::kChipId) & 0xffff, 0x20fu);  // mstflint: CX6_HW_ID
  EXPECT_FALSE(failed());
  EXPECT_EQ(read(Gateway::kCr, 0xb5f04) >> 31, 0u);  // static configuration is done
  EXPECT_FALSE(failed());
  EXPECT_EQ(read(Gateway::kCr, 0xb5f08), Gateway::kNothing);
  EXPECT_TRUE(failed());
  EXPECT_EQ(read(Gateway::kCr, CrSpace::kChipId + 1), Gateway::kNothing);  // not aligned
  EXPECT_TRUE(failed());
  write(Gateway::kCr, CrSpace::kChipId, 1);  // read-only
  EXPECT_TRUE(failed());
  EXPECT_EQ(gateway.unanswered(), 3u);
}

// As Linux saves them (mlx5 lib/pci_vsc.c, mlx5_vsc_gw_read_block_fast()).
TEST_F(VscGatewayTest, AllRegistersFromEndToEnd) {
  gateway.write(Gateway::kControl, Gateway::kScan);
  ASSERT_NE(gateway.read(Gateway::kControl) & Gateway::kSizeValid, 0u);
  const std::uint32_t size = gateway.read(Gateway::kAddress);
  ASSERT_EQ(size, CrScan::kBytes);
  std::map<std::uint32_t, std::uint32_t> found;
  for (std::uint32_t at = 0; at < size;) {
    gateway.write(Gateway::kAddress, at);
    ASSERT_NE(gateway.read(Gateway::kAddress) & Gateway::kFlag, 0u);
    found[at] = gateway.read(Gateway::kData);
    const std::uint32_t next = gateway.read(Gateway::kAddress) & Gateway::kAddressMask;
    ASSERT_GT(next, at);
    at = next;
  }
  EXPECT_EQ(found.at(0), Gateway::kNothing);
  EXPECT_EQ(found.at(CrSpace::kChipId) & 0xffff, 0x20fu);
  EXPECT_EQ(found.at(CrScan::kInitSegment), Firmware::kRevision);
  EXPECT_EQ(found.at(CrScan::kCore), 1u);
  EXPECT_EQ(found.at(CrScan::kCore + 4), 2u);
  EXPECT_EQ(gateway.unanswered(), 0u);
  // As it was when it was asked for; and nothing outside of it.
  firmware.counted = 3;
  gateway.write(Gateway::kAddress, CrScan::kCore + 4);
  EXPECT_EQ(gateway.read(Gateway::kData), 2u);
  gateway.write(Gateway::kAddress, CrScan::kBytes);
  EXPECT_EQ(gateway.read(Gateway::kData), Gateway::kNothing);
  write(Gateway::kScan, CrSpace::kChipId, 1);
  EXPECT_TRUE(failed());
}

TEST_F(VscGatewayTest, IcmdSpacesLeadToTheFirmware) {
  write(Gateway::kIcmd, Firmware::kWord, 0x12345678);
  EXPECT_FALSE(failed());
  EXPECT_EQ(firmware.word, 0x12345678u);
  EXPECT_EQ(read(Gateway::kIcmdExt, Firmware::kWord), 0x12345678u);
  EXPECT_FALSE(failed());
  EXPECT_EQ(read(Gateway::kIcmd, 0x44), Gateway::kNothing);
  EXPECT_TRUE(failed());
  write(Gateway::kIcmd, 0x44, 1);
  EXPECT_TRUE(failed());
  write(Gateway::kIcmd, Firmware::kWord + 2, 1);
  EXPECT_TRUE(failed());
  EXPECT_EQ(firmware.word, 0x12345678u);
}

// The firmware's place may be empty: a card that nobody has plugged any into.
TEST(VscGateway, WithoutFirmware) {
  FirmwareSlot none;
  Gateway gateway(default_generation(), none);
  gateway.write(Gateway::kControl, Gateway::kIcmd);
  gateway.write(Gateway::kAddress, 0);
  EXPECT_EQ(gateway.read(Gateway::kData), Gateway::kNothing);
}

TEST_F(VscGatewayTest, AResetFreesAllAndKeepsTicketsUnique) {
  const std::uint32_t ticket = gateway.read(Gateway::kCounter);
  gateway.write(Gateway::kSemaphore, ticket);
  write(Gateway::kSemaphoreSpace, 0x20, ticket);
  gateway.reset();
  EXPECT_EQ(gateway.read(Gateway::kSemaphore), 0u);
  EXPECT_EQ(gateway.read(Gateway::kControl), 0u);
  EXPECT_EQ(read(Gateway::kSemaphoreSpace, 0x20), 0u);
  EXPECT_GT(gateway.read(Gateway::kCounter), ticket);
}

TEST_F(VscGatewayTest, AnythingMayBeWrittenAnywhere) {
  std::mt19937 random(1);
  for (unsigned i = 0; i < 100000; ++i) {
    const auto offset = static_cast<unsigned>(random() % 0x40);
    if (random() % 2 != 0)
      gateway.write(offset, static_cast<std::uint32_t>(random()));
    else
      gateway.read(offset);
  }
  gateway.reset();
  EXPECT_EQ(read(Gateway::kCr, CrSpace::kChipId) & 0xffff, 0x20fu);
}

}  // namespace
}  // namespace hcasim
