// SPDX-License-Identifier: BSD-3-Clause
// The reset of the card that its host agrees to (register MFRL and general events).
#include <vector>

#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/management.h"

namespace hcasim::bare {
namespace {

using Mfrl = prm::mfrl_reg;
using Sync = prm::EqeSyncReset;
using namespace prm::reg;
constexpr std::uint32_t kAddrLow = offsetof(prm::InitSeg, cmdq_addr_l_sz);
constexpr std::uint32_t kLevel = 8, kReboot = 0x40;  // levels 3 and 6: of the PCI link, and PERST
enum : std::uint32_t { kYes = 1, kNo = 2 };
enum : std::uint32_t { kIdle = 0, kNegotiation = 1, kInProgress = 2, kTimeout = 3, kRefused = 4 };

class SyncReset : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }
  void TearDown() override {
    eq_.reset();
    FirmwareTest::TearDown();
  }
  void listen() {
    const std::array<std::uint64_t, 4> mask{std::uint64_t{1}
                                            << static_cast<unsigned>(prm::EqeType::kGeneral)};
    eq_ = std::make_unique<EventQueue>(dev(), 6, 0, mask, [this](const prm::Eqe& e) {
      EXPECT_EQ(e.sub_type, prm::kGeneralSyncReset);
      told_.push_back(e.data.sync_reset.state);
    });
    eq_->arm();
  }
  void look() {
    machine().advance(1'000'000);
    eq_->poll();
  }
  static std::vector<std::uint8_t> mfrl(bool start, std::uint32_t answer, std::uint32_t level = kLevel) {
    std::vector<std::uint8_t> data(Mfrl::bytes);
    prm::set<Mfrl::pci_sync_for_fw_update_start>(data.data(), start);
    prm::set<Mfrl::pci_sync_for_fw_update_resp>(data.data(), answer);
    prm::set<Mfrl::reset_level>(data.data(), level);
    return data;
  }
  CommandResult write(bool start, std::uint32_t answer, std::uint32_t level = kLevel) {
    return dev().access_register(kMfrl, true, mfrl(start, answer, level));
  }
  // `devlink dev reload action fw_activate`: waits for an answer.
  void start() {
    using In = prm::access_register_in;
    Mailbox in(prm::op::ACCESS_REG, In::bytes + Mfrl::bytes);
    in.set<In::register_id>(kMfrl);
    const auto data = mfrl(true, 0);
    std::copy(data.begin(), data.end(), in.data() + In::bytes);
    dev().cmd().submit(in, prm::access_register_out::bytes + Mfrl::bytes, [this](const CommandResult& r) {
      result_ = r;
      answered_ = true;
    });
    look();
  }
  std::uint32_t state() {
    const auto r = dev().access_register(kMfrl, false, std::vector<std::uint8_t>(Mfrl::bytes)).must();
    const std::uint8_t* data = r.out.data() + prm::access_register_out::bytes;
    EXPECT_EQ(prm::get<Mfrl::reset_level>(data), kLevel | kReboot);
    return prm::get<Mfrl::reset_state>(data);
  }
  void interface_down() {
    fn().write32(kAddrLow, (fn().read32(kAddrLow) & ~0xfffu) | prm::kNicDisabled << 8);
  }

  std::unique_ptr<EventQueue> eq_;
  std::vector<unsigned> told_;
  bool answered_ = false;
  CommandResult result_;
};

TEST_F(SyncReset, AgreedOnTheCardStartsAnew) {
  const std::uint64_t before = fn().counter("fw_sync_resets");
  listen();
  start();
  EXPECT_FALSE(answered_);
  EXPECT_EQ(told_, std::vector<unsigned>{Sync::kRequest});
  EXPECT_EQ(state(), kNegotiation);
  EXPECT_STATUS(write(true, 0), CmdStatus::kResBusy);
  EXPECT_OK(write(false, kYes));
  look();
  EXPECT_TRUE(answered_);
  EXPECT_OK(result_);
  EXPECT_EQ(told_, (std::vector<unsigned>{Sync::kRequest, Sync::kNow}));
  EXPECT_EQ(state(), kInProgress);
  EXPECT_OK(dev().teardown_hca(2));
  interface_down();
  EXPECT_EQ(fn().read32(kAddrLow) >> 8 & 7, static_cast<unsigned>(prm::kNicDisabled));
  EXPECT_EQ(fn().counter("fw_sync_resets"), before + 1);
  EXPECT_EQ(fn().counter("eqs"), 0u);
  dev().function_reset();
  eq_.reset();
  dev().probe();
  EXPECT_EQ(state(), kIdle);
}

TEST_F(SyncReset, AHostThatSaysNo) {
  listen();
  start();
  EXPECT_OK(write(false, kNo));
  look();
  EXPECT_TRUE(answered_);
  EXPECT_STATUS(result_, CmdStatus::kBadSysState);
  EXPECT_EQ(told_, (std::vector<unsigned>{Sync::kRequest, Sync::kAbort}));
  EXPECT_EQ(state(), kRefused);
  start();  // and once more
  EXPECT_EQ(state(), kNegotiation);
  EXPECT_OK(write(false, kNo));
  look();
}

TEST_F(SyncReset, AHostThatSaysNothing) {
  breaks({"register-value"});
  listen();
  start();
  machine().advance(5'100'000'000);
  look();
  EXPECT_TRUE(answered_);
  EXPECT_STATUS(result_, CmdStatus::kBadSysState);
  EXPECT_EQ(told_, (std::vector<unsigned>{Sync::kRequest, Sync::kAbort}));
  EXPECT_EQ(state(), kTimeout);
  EXPECT_STATUS(write(false, kYes), CmdStatus::kBadParam);  // too late
}

// Said yes, but does not take the interface down: nothing is reset, and later a teardown is a teardown.
TEST_F(SyncReset, AHostThatDoesNotDoWhatItSaid) {
  const std::uint64_t before = fn().counter("fw_sync_resets");
  listen();
  start();
  EXPECT_OK(write(false, kYes));
  look();
  machine().advance(5'100'000'000);
  look();
  EXPECT_EQ(told_, (std::vector<unsigned>{Sync::kRequest, Sync::kNow, Sync::kAbort}));
  EXPECT_EQ(state(), kTimeout);
  interface_down();
  EXPECT_EQ(fn().counter("fw_sync_resets"), before);
  dev().function_reset();
  eq_.reset();
  dev().probe();
}

TEST_F(SyncReset, AskedForBySomebodyElse) {
  const std::uint64_t before = fn().counter("fw_sync_resets");
  listen();
  ASSERT_EQ(fn().inject("fault=fw_reset,action=sync"), "");
  look();
  EXPECT_EQ(told_, std::vector<unsigned>{Sync::kRequest});
  EXPECT_OK(write(false, kYes));
  look();
  EXPECT_EQ(told_, (std::vector<unsigned>{Sync::kRequest, Sync::kNow}));
  interface_down();
  EXPECT_EQ(fn().counter("fw_sync_resets"), before + 1);
  dev().function_reset();
  eq_.reset();
  dev().probe();
}

TEST_F(SyncReset, NobodyToBeAsked) {
  const std::uint64_t before = fn().counter("fw_sync_resets");
  ASSERT_EQ(fn().inject("fault=fw_reset,action=sync"), "");
  machine().advance(1'000'000);
  EXPECT_EQ(fn().read32(kAddrLow) >> 8 & 7, static_cast<unsigned>(prm::kNicDisabled));
  EXPECT_EQ(fn().counter("fw_sync_resets"), before);
  dev().function_reset();
  dev().probe();
}

// mstfwreset --sync 0, and its reset by a reboot: nobody is asked, and the reset is the tool's to make.
TEST_F(SyncReset, ByWhoResetsTheCardHimself) {
  EXPECT_OK(write(false, 0));
  EXPECT_OK(write(false, 0, kReboot));
  EXPECT_OK(write(false, 0, kLevel | kReboot));
  EXPECT_EQ(state(), kIdle);
  dev().card_reset();
  dev().probe();
  EXPECT_EQ(state(), kIdle);
}

TEST_F(SyncReset, WhatIsNotOffered) {
  breaks({"register-value"});
  EXPECT_STATUS(write(true, 0, 1), CmdStatus::kBadParam);  // a live patch
  EXPECT_STATUS(write(false, 0, 1), CmdStatus::kBadParam);
  EXPECT_STATUS(write(false, 0, 0), CmdStatus::kBadParam);
  EXPECT_STATUS(write(true, 0, kReboot), CmdStatus::kBadParam);  // nobody is asked of that
  EXPECT_STATUS(write(false, kYes), CmdStatus::kBadParam);       // nobody has asked
  EXPECT_STATUS(write(false, kYes, kReboot), CmdStatus::kBadParam);
  auto by_tool = mfrl(false, 0);  // agreed on by the tools of all hosts
  prm::set<prm::mfrl::pci_sync_for_fw_update_start>(by_tool.data(), prm::kMfrlSyncedToolFlow);
  EXPECT_STATUS(dev().access_register(kMfrl, true, by_tool), CmdStatus::kBadParam);
  EXPECT_STATUS(write(true, 0), CmdStatus::kBadSysState);  // nobody listens to general events
  EXPECT_EQ(state(), kTimeout);
}

}  // namespace
}  // namespace hcasim::bare
