// SPDX-License-Identifier: BSD-3-Clause
// The configuration space of HcaModule: what enumeration reads and writes, and MSI-X.
#include "card/pci/config_space.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace hcasim::pci {
namespace {

using Bar = ConfigSpace::Bar;
using Severity = ConfigSpace::Severity;

class Config : public ::testing::Test {
 protected:
  void place() {
    space.write(0x10, 0xc0000000, 4);
    space.write(0x14, 1, 4);
    space.write(0x18, 0xd0001000, 4);
    space.write(0x04, 0x0006, 2);
  }
  void set_entry(unsigned vector, std::uint64_t address, std::uint32_t data, std::uint32_t control) {
    const std::uint32_t words[] = {static_cast<std::uint32_t>(address),
                                   static_cast<std::uint32_t>(address >> 32), data, control};
    for (unsigned i = 0; i < 4; ++i) {
      std::uint8_t bytes[4];
      std::memcpy(bytes, &words[i], 4);
      space.table_write(vector * 16 + i * 4, bytes, 4);
    }
  }
  std::uint64_t pending() const {
    std::uint8_t bytes[8];
    std::uint64_t value = 0;
    space.table_read(ConfigSpace::kPendingBits, bytes, 8);
    std::memcpy(&value, bytes, 8);
    return value;
  }
  ConfigSpace space{ConfigSpace::Identity{}};
};

TEST_F(Config, NamesTheCard) {
  EXPECT_EQ(space.read(0, 2), 0x15b3u);
  EXPECT_EQ(space.read(2, 2), 0x1019u);
  EXPECT_EQ(space.read(8, 4), 0x02000000u);
  ConfigSpace::Identity other;
  other.device_id = 0x1017;
  other.revision = 5;
  other.ethernet = false;
  EXPECT_EQ(ConfigSpace(other).read(0, 4), 0x101715b3u);
  EXPECT_EQ(ConfigSpace(other).read(8, 4), 0x02070005u);
  space.write(0, 0xffffffff, 4);
  EXPECT_EQ(space.read(0, 4), 0x101915b3u);
}

TEST_F(Config, BarsTellTheirSizes) {
  for (const unsigned bar : {0x10u, 0x14u, 0x18u, 0x1cu}) space.write(bar, 0xffffffff, 4);
  EXPECT_EQ(space.read(0x10, 4), 0xfe00000cu);  // 32 MiB, 64 bits, prefetchable
  EXPECT_EQ(space.read(0x14, 4), 0xffffffffu);
  EXPECT_EQ(space.read(0x18, 4), 0xfffff000u);
  EXPECT_EQ(space.read(0x1c, 4), 0u);
}

TEST_F(Config, CapabilitiesAreAChain) {
  EXPECT_TRUE(space.read(6, 2) & 0x10);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t at = space.read(0x34, 1); at != 0 && ids.size() < 10; at = space.read(at + 1, 1))
    ids.push_back(space.read(at, 1));
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{0x01, 0x11, 0x10, 0x03, 0x09}));
  EXPECT_EQ(space.read(ConfigSpace::kAer, 4), ConfigSpace::kSerial << 20 | 0x20001u);
  EXPECT_EQ(space.read(ConfigSpace::kSerial, 4), 0x10003u);  // the last one
}

TEST_F(Config, HasTheSerialNumberOfItsCard) {
  ConfigSpace::Identity identity;
  identity.serial = 0x0002c90300112233;
  const ConfigSpace card(identity);
  EXPECT_EQ(card.read(ConfigSpace::kSerial + 4, 4), 0x00112233u);
  EXPECT_EQ(card.read(ConfigSpace::kSerial + 8, 4), 0x0002c903u);
}

TEST_F(Config, VitalProductDataComeFourBytesAtATime) {
  ConfigSpace::Identity identity;
  identity.vpd = {0x82, 2, 0, 'a', 'b', 0x78};
  ConfigSpace card(identity);
  const unsigned address = ConfigSpace::kVpd + 2, data = ConfigSpace::kVpd + 4;
  card.write(address, 0, 2);
  EXPECT_EQ(card.read(address, 2), 0x8000u);  // done
  EXPECT_EQ(card.read(data, 4), 0x61000282u);
  card.write(address + 1, 0, 1);  // what starts it is the byte with the flag
  EXPECT_EQ(card.read(address, 2), 0x8000u);
  card.write(ConfigSpace::kVpd, 4u << 16, 4);
  EXPECT_EQ(card.read(ConfigSpace::kVpd, 4), 0x8004a803u);
  EXPECT_EQ(card.read(data, 4), 0x7862u);  // beyond the end: zeros
  for (const std::uint32_t beyond : {8u, 0x7ffcu, 0x7fffu}) {
    card.write(address, beyond, 2);
    EXPECT_EQ(card.read(address, 2), beyond | 0x8000);
    EXPECT_EQ(card.read(data, 4), 0u);
  }
  // Written: done at once, and nothing has changed.
  card.write(data, 0x12345678, 4);
  card.write(address, 0x8000, 2);
  EXPECT_EQ(card.read(address, 2), 0u);
  card.write(address, 0, 2);
  EXPECT_EQ(card.read(data, 4), 0x61000282u);
}

// ---- Errors: PCIe Base Specification, 6.2.5 and 7.8.4 ----

constexpr unsigned kAer = ConfigSpace::kAer, kUncorrectable = kAer + 4, kUncorrectableMask = kAer + 8,
                   kSeverity = kAer + 0xc, kCorrectable = kAer + 0x10, kCorrectableMask = kAer + 0x14,
                   kFirst = kAer + 0x18, kDeviceControl = ConfigSpace::kExpress + 8,
                   kDeviceStatus = ConfigSpace::kExpress + 0xa;
constexpr std::uint32_t kBadTlp = 0x40, kMalformed = 1u << 18, kTimeout = 1u << 14, kInternal = 1u << 22;
using Message = ConfigSpace::ErrorMessage;

TEST_F(Config, ErrorRegistersStartAsTheSpecificationSays) {
  EXPECT_EQ(space.read(kUncorrectable, 4), 0u);
  EXPECT_EQ(space.read(kUncorrectableMask, 4), 0x00400000u);
  EXPECT_EQ(space.read(kSeverity, 4), 0x00462030u);
  EXPECT_EQ(space.read(kCorrectable, 4), 0u);
  EXPECT_EQ(space.read(kCorrectableMask, 4), 0x0000e000u);
  space.write(kUncorrectable, 0xffffffff, 4);  // software sets no status
  EXPECT_EQ(space.read(kUncorrectable, 4), 0u);
  space.write(kSeverity, 0, 4);
  EXPECT_EQ(space.read(kSeverity, 4), 0u);
  space.write(kSeverity, 0xffffffff, 4);
  EXPECT_EQ(space.read(kSeverity, 4), 0x007ff030u);  // errors that it has
}

TEST_F(Config, ACorrectableErrorIsReportedIfEnabledAndNotMasked) {
  EXPECT_EQ(space.report(kBadTlp, Severity::kCorrectable), Message::kNone);
  EXPECT_EQ(space.read(kCorrectable, 4), kBadTlp);
  EXPECT_EQ(space.read(kDeviceStatus, 2), 1u);
  space.write(kDeviceControl, 0x2811, 2);
  EXPECT_EQ(space.report(kBadTlp, Severity::kCorrectable), Message::kCorrectable);
  space.write(kCorrectableMask, kBadTlp, 4);
  EXPECT_EQ(space.report(kBadTlp, Severity::kCorrectable), Message::kNone);
  space.write(kCorrectable, kBadTlp, 4);
  space.write(kDeviceStatus, 1, 2);
  EXPECT_EQ(space.read(kCorrectable, 4), 0u);
  EXPECT_EQ(space.read(kDeviceStatus, 2), 0u);
  EXPECT_EQ(space.read(kDeviceControl, 2), 0x2811u);  // status is cleared without it
}

TEST_F(Config, TheSeverityRegisterSaysHowBadAnUncorrectableErrorIs) {
  space.write(kDeviceControl, 0x2816, 2);
  EXPECT_EQ(space.report(kTimeout, Severity::kByRegister), Message::kNonFatal);
  EXPECT_EQ(space.read(kDeviceStatus, 2), 2u);
  EXPECT_EQ(space.report(kMalformed, Severity::kByRegister), Message::kFatal);
  EXPECT_EQ(space.read(kDeviceStatus, 2), 6u);
  EXPECT_EQ(space.read(kUncorrectable, 4), kTimeout | kMalformed);
  EXPECT_EQ(space.read(kFirst, 4) & 0x1f, 14u);  // the first one
  space.write(kUncorrectable, kTimeout, 4);
  EXPECT_EQ(space.report(kMalformed, Severity::kNonFatal), Message::kNonFatal);
  EXPECT_EQ(space.read(kFirst, 4) & 0x1f, 18u);
  EXPECT_EQ(space.report(kInternal, Severity::kByRegister), Message::kNone);  // masked
  EXPECT_EQ(space.read(kUncorrectable, 4), kMalformed | kInternal);
  EXPECT_EQ(space.read(kFirst, 4) & 0x1f, 18u);
}

TEST_F(Config, SystemErrorsReportWithoutTheDevicesEnable) {
  space.write(kDeviceControl, 0, 2);
  EXPECT_EQ(space.report(kMalformed, Severity::kByRegister), Message::kNone);
  space.write(0x04, 0x0100, 2);  // SERR#
  EXPECT_EQ(space.report(kMalformed, Severity::kByRegister), Message::kFatal);
  EXPECT_EQ(space.read(0x06, 2), 0x4010u);
  space.write(0x06, 0x4000, 2);
  EXPECT_EQ(space.read(0x06, 2), 0x0010u);
}

TEST_F(Config, ErrorsOutlastAFunctionLevelReset) {
  space.report(kTimeout, Severity::kByRegister);
  space.write(kCorrectableMask, 0, 4);
  space.write(kDeviceControl, 0x2857, 2);  // payloads of 512 bytes
  place();
  space.function_reset();
  EXPECT_EQ(space.read(kUncorrectable, 4), kTimeout);
  EXPECT_EQ(space.read(kCorrectableMask, 4), 0u);
  EXPECT_EQ(space.read(kDeviceControl, 2), 0x2850u);
  EXPECT_EQ(space.read(0x04, 2), 0u);
  space.reset();
  EXPECT_EQ(space.read(kUncorrectable, 4), 0u);
  EXPECT_EQ(space.read(kCorrectableMask, 4), 0xe000u);
}

TEST_F(Config, AddressesAreDecodedOnlyWhenEnabled) {
  space.write(0x10, 0xc0000000, 4);
  EXPECT_EQ(space.decode(0xc0000000, 4).bar, Bar::kNone);
  place();
  EXPECT_EQ(space.decode(0x1c0001234, 4).bar, Bar::kRegisters);
  EXPECT_EQ(space.decode(0x1c0001234, 4).offset, 0x1234u);
  EXPECT_EQ(space.decode(0x1c1fffffc, 4).bar, Bar::kRegisters);
  EXPECT_EQ(space.decode(0x1c1fffffc, 8).bar, Bar::kNone);  // beyond its end
  EXPECT_EQ(space.decode(~0ull, 8).bar, Bar::kNone);
  EXPECT_EQ(space.decode(0xd0001010, 4).bar, Bar::kMsixTable);
  space.write(ConfigSpace::kPm + 4, 3, 2);  // D3hot
  EXPECT_EQ(space.decode(0x1c0001234, 4).bar, Bar::kNone);
  EXPECT_FALSE(space.bus_master());
}

TEST_F(Config, RandomAccessesLeaveItsIdentityAlone) {
  ConfigSpace::Identity identity;
  identity.vpd = {0x82, 1, 0, 'a', 0x78};
  ConfigSpace card(identity);
  std::mt19937 random(1);
  for (unsigned i = 0; i < 200'000; ++i) {
    const unsigned len = 1u << random() % 3, offset = random() % (i % 8 == 0 ? 0x2000 : 0x180);
    if (random() % 2 == 0)
      card.read(offset, len);
    else if (card.write(offset, random(), len))
      card.function_reset();
    if (random() % 64 == 0) card.report(1u << random() % 32, static_cast<Severity>(random() % 4));
  }
  const ConfigSpace fresh(identity);
  for (const unsigned at : {0x00u, 0x08u, 0x2cu, 0x34u, 0x40u, 0x64u, 0x6cu, 0xa8u, 0x100u, 0x148u})
    EXPECT_EQ(card.read(at, 4), fresh.read(at, 4)) << at;
}

TEST_F(Config, OddAccessesDoNothing) {
  EXPECT_EQ(space.read(3, 4), 0xffffffffu);
  EXPECT_EQ(space.read(4096, 4), 0xffffffffu);
  EXPECT_EQ(space.read(0xfffffffc, 4), 0xffffffffu);
  EXPECT_FALSE(space.write(4096, 1, 4));
  EXPECT_FALSE(space.write(2, 1, 4));
  std::uint8_t bytes[8];
  for (const std::uint64_t at :
       {std::uint64_t{2}, std::uint64_t{4094}, std::uint64_t{4096}, ~std::uint64_t{3}}) {
    space.table_read(at, bytes, 4);
    EXPECT_EQ(bytes[0], 0xff) << at;
    space.table_write(at, bytes, 4);
  }
}

TEST_F(Config, InterruptsWaitWhileMasked) {
  place();
  set_entry(5, 0xfee01000, 0x45, 0);
  EXPECT_FALSE(space.signal(5));  // MSI-X is off: it is lost
  EXPECT_EQ(pending(), 0u);
  space.write(ConfigSpace::kMsix + 2, 0x8000, 2);
  const auto message = space.signal(5);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->address, 0xfee01000u);
  EXPECT_EQ(message->data, 0x45u);
  EXPECT_FALSE(space.signal(6));  // masked since power-on
  EXPECT_EQ(pending(), 1u << 6);
  EXPECT_TRUE(space.take_unmasked().empty());
  set_entry(6, 0xfee02000, 7, 0);
  ASSERT_EQ(space.take_unmasked().size(), 1u);
  EXPECT_EQ(pending(), 0u);
  space.write(ConfigSpace::kMsix + 2, 0xc000, 2);  // all of the function masked
  EXPECT_FALSE(space.signal(5));
  EXPECT_EQ(pending(), 1u << 5);
  space.write(ConfigSpace::kMsix + 2, 0x8000, 2);
  EXPECT_EQ(space.take_unmasked().size(), 1u);
  EXPECT_FALSE(space.signal(64));
}

TEST_F(Config, FunctionLevelResetIsAskedFor) {
  EXPECT_FALSE(space.write(ConfigSpace::kExpress + 8, 0x2810, 2));
  EXPECT_TRUE(space.write(ConfigSpace::kExpress + 8, 0xa810, 2));
  EXPECT_TRUE(space.write(ConfigSpace::kExpress + 8, 0x0000a810, 4));
  EXPECT_TRUE(space.write(ConfigSpace::kExpress + 9, 0x80, 1));
  EXPECT_EQ(space.read(ConfigSpace::kExpress + 8, 2) & 0x8000, 0u);
  place();
  space.reset();
  EXPECT_EQ(space.read(4, 2), 0u);
  EXPECT_EQ(space.read(0x10, 4), 0xcu);
}

}  // namespace
}  // namespace hcasim::pci
