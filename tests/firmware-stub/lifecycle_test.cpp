// SPDX-License-Identifier: BSD-3-Clause
// ENABLE to DISABLE, health, reset under the driver.
#include "fixture.h"

#include "prm/access_registers.h"
#include "prm/init_seg.h"

namespace hcasim::bare {
namespace {

constexpr std::uint64_t kAddrLow = offsetof(prm::InitSeg, cmdq_addr_l_sz);

class Lifecycle : public FirmwareTest {
 protected:
  unsigned nic_interface() { return fn().read32(kAddrLow) >> 8 & 7; }
  std::uint8_t synd() {
    return fn().read8(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, synd));
  }
  std::uint8_t rfr() {
    return fn().read8(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, rfr_severity));
  }
};

TEST_F(Lifecycle, QueueSizesAreReadOnly) {
  breaks({"cmdq-address"});
  const std::uint32_t before = fn().read32(kAddrLow);
  EXPECT_EQ(before & 0xff, 0x56u);  // 32 entries of 64 bytes
  fn().write32(kAddrLow, before | 0xff);
  EXPECT_EQ(fn().read32(kAddrLow), before);
}

TEST_F(Lifecycle, IssiOneAtMost) {
  breaks({"issi"});
  const auto r =
      dev().exec(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes);
  EXPECT_EQ(r.must().get<prm::query_issi_out::current_issi>(), 1u);
  dev().teardown();
  dev().cmd().start();
  dev().enable_hca().must();
  Mailbox in(prm::op::SET_ISSI, prm::set_issi_in::bytes);
  EXPECT_STATUS(dev().exec(in.set<prm::set_issi_in::current_issi>(2)), CmdStatus::kBadParam);
  EXPECT_OK(dev().exec(in.set<prm::set_issi_in::current_issi>(0)));
  dev().disable_hca().must();
  dev().probe();
}

TEST_F(Lifecycle, TeardownProfiles) {
  breaks({"teardown-profile"});
  EXPECT_STATUS(dev().teardown_hca(3), CmdStatus::kBadParam);
  EXPECT_EQ(fn().counter("uars"), 1u) << "a refused teardown took something down";
  const auto r = dev().teardown_hca(2).must();  // prepares; queues run on
  EXPECT_EQ(r.get<prm::teardown_hca_out::state>(), 0u);
  EXPECT_EQ(fn().counter("uars"), 1u);
}

TEST_F(Lifecycle, TeardownFindsACounterSet) {
  breaks({"teardown-objects"});
  const auto found = [this] {
    const auto broken = fn().rules_broken();
    const auto rule = broken.find("teardown-objects");
    return rule == broken.end() ? 0 : rule->second;
  };
  const auto before = found();
  dev().teardown();
  EXPECT_EQ(found(), before);
  dev().probe();
  dev().exec(Mailbox(prm::op::ALLOC_Q_COUNTER, prm::alloc_q_counter_in::bytes)).must();
  dev().teardown();
  EXPECT_EQ(found(), before + 1);
  dev().probe();
}

TEST_F(Lifecycle, FastTeardownByNicInterface) {
  dev().teardown_hca(2).must();
  fn().write32(kAddrLow, (fn().read32(kAddrLow) & ~0xfffu) | prm::kNicDisabled << 8);
  EXPECT_EQ(nic_interface(), static_cast<unsigned>(prm::kNicDisabled));
  for (const char* objects : {"uars", "eqs", "fw_pages"}) EXPECT_EQ(fn().counter(objects), 0u) << objects;
  fn().write32(offsetof(prm::InitSeg, cmd_dbell),
               1);  // was on its way; nobody listens, and no rule is broken
  machine().advance(1'000'000);
  dev().function_reset();
  dev().probe();
}

TEST_F(Lifecycle, ADriverSeesAResetUnderIt) {
  fn().reset();
  EXPECT_EQ(nic_interface(), static_cast<unsigned>(prm::kNicDisabled));
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, initializing)) >> 31, 0u);
  dev().function_reset();
  dev().probe();
  EXPECT_EQ(nic_interface(), static_cast<unsigned>(prm::kNicFull));
}

// What the driver's health recovery does: sees the syndrome, asks for a software reset, waits for DISABLED,
// loads again.
TEST_F(Lifecycle, RecoversFromAFatalSyndromeBySoftwareReset) {
  ASSERT_EQ(fn().inject("fw_fatal=1"), "");
  EXPECT_EQ(synd(), 1);
  EXPECT_EQ(rfr() >> 7, 1);
  EXPECT_NE(fn().read32(offsetof(prm::InitSeg, initializing)) & prm::InitSeg::kFwResetSupported, 0u);
  const auto r = dev().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes));
  EXPECT_FALSE(r.done && r.delivery == CmdDelivery::kOk) << "a dead firmware answered";
  fn().write32(kAddrLow, (fn().read32(kAddrLow) & ~0xfffu) | prm::kNicSwReset << 8);
  EXPECT_EQ(nic_interface(), static_cast<unsigned>(prm::kNicDisabled));
  EXPECT_EQ(synd(), 0);
  dev().function_reset();
  dev().probe();
}

TEST_F(Lifecycle, ASyndromeAloneIsOnlyReported) {
  ASSERT_EQ(fn().inject("fw_syndrome=16"), "");  // high temperature
  EXPECT_EQ(synd(), 16);
  EXPECT_EQ(rfr() >> 7, 0);
  EXPECT_OK(dev().exec(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes));
  ASSERT_EQ(fn().inject("fw_syndrome=0"), "");
  EXPECT_EQ(synd(), 0);
}

TEST_F(Lifecycle, ABrokenModelIsAFatalSyndrome) {
  ASSERT_EQ(fn().inject("model_fault=1"), "");
  EXPECT_NE(synd(), 0);
  EXPECT_EQ(rfr() >> 7, 1);
  dev().function_reset();
  EXPECT_EQ(synd(), 0);
  dev().probe();
}

TEST_F(Lifecycle, TellsNoTimeLimitsUnlessAsked) {
  for (const std::size_t offset :
       {offsetof(prm::InitSeg, cmd_exec_to), offsetof(prm::InitSeg, cmd_q_init_to)})
    EXPECT_EQ(fn().read32(offset), 0u);
  Function& other = machine().function(3);
  EXPECT_EQ(other.read32(offsetof(prm::InitSeg, cmd_exec_to)), 3000u);  // unit 0: ms
  EXPECT_EQ(other.read32(offsetof(prm::InitSeg, cmd_q_init_to)), 2000u);
  const auto r =
      dev().access_register(prm::reg::kDtor, false, std::vector<std::uint8_t>(prm::dtor_reg::bytes)).must();
  const std::uint8_t* limits = r.out.data() + prm::access_register_out::bytes;
  EXPECT_EQ(prm::get<prm::dtor_reg::tear_down_to::to_value>(limits), 3000u);
  EXPECT_EQ(prm::get<prm::dtor_reg::tear_down_to::to_multiplier>(limits), 0u);
}

TEST_F(Lifecycle, AdapterNamesItself) {
  const auto r = dev().exec(Mailbox(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes),
                            prm::query_adapter_out::bytes);
  EXPECT_EQ(r.must().get<prm::query_adapter_out::query_adapter_struct::ieee_vendor_id>(), 0x2c9u);
}

TEST_F(Lifecycle, UserContextsDoNotExist) {
  breaks({"devx-uid"});
  Mailbox in(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes);
  prm::store32(in.data(), std::uint32_t{prm::op::ALLOC_PD} << 16 | 7);  // uid
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
}

TEST_F(Lifecycle, UnknownOpcodesAreCounted) {
  breaks({"cmd-opcode"});
  const auto before = fn().counter("fw_unknown_opcodes");
  EXPECT_STATUS(dev().exec(Mailbox(0x7777, 64), 64), CmdStatus::kBadOp);
  EXPECT_EQ(fn().counter("fw_unknown_opcodes"), before + 1);
}

}  // namespace
}  // namespace hcasim::bare
