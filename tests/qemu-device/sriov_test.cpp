// SPDX-License-Identifier: BSD-3-Clause
// Virtual functions on the bus, with the stand-in model: what VF Enable makes of them, and that each has
// registers, DMA, interrupts and resets of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

using ::testing::HasSubstr;

// Where a DMA comes from: the access that asked for it, the simulation run by that access, the timer.
constexpr uint64_t kContexts[] = {FAKE_DMA_GO, FAKE_DMA_GO_NESTED, FAKE_EVENT_DELAY};
constexpr uint64_t kRam = 0x400000;  // guest memory no one else uses
constexpr uint64_t kBars = 0xd2000000,
                   kMsix = 0xd2800000;  // of the virtual functions, behind the physical one's
constexpr unsigned kVfs = 4, kBarSize = 1 << 20, kMsixSize = 4096;
// SR-IOV 1.1, 3.3: offsets in the capability.
enum : unsigned {
  kControl = 0x08,
  kInitialVfs = 0x0c,
  kTotalVfs = 0x0e,
  kNumVfs = 0x10,
  kFirstVf = 0x14,
  kStride = 0x16,
  kDeviceId = 0x1a,
  kBar0 = 0x24,
  kBar2 = 0x2c,
};
enum : uint64_t { kEnable = 1, kMemory = 8 };

class Sriov : public ::testing::Test {
 protected:
  void SetUp() override {
    cap_ = extended(0, 0x10);
    ASSERT_NE(cap_, 0u);
    // The port's window takes the virtual functions' BARs in, too.
    vm_.set_config(0, 4, 0x24, (HcaVm::bar0(0) >> 16) | ((HcaVm::bar0(0) + 0x3ffffff) & 0xfff00000), 4);
  }
  // An extended capability of a function, 0: it has none such.
  unsigned extended(unsigned f, uint16_t id) {
    for (unsigned at = 0x100; at != 0;) {
      const uint64_t header = config(f, at);
      if ((header & 0xffff) == id) return at;
      at = static_cast<unsigned>(header >> 20);
    }
    return 0;
  }
  static unsigned of(unsigned f, unsigned offset) { return f << 12 | offset; }
  uint64_t config(unsigned f, unsigned offset, unsigned size = 4) {
    return vm_.config(1, 0, of(f, offset), size);
  }
  void set_config(unsigned f, unsigned offset, uint64_t value, unsigned size = 4) {
    vm_.set_config(1, 0, of(f, offset), value, size);
  }
  void enable(unsigned count = kVfs) {
    set_config(0, cap_ + kBar0, kBars);
    set_config(0, cap_ + kBar0 + 4, 0);
    set_config(0, cap_ + kBar2, kMsix);
    set_config(0, cap_ + kBar2 + 4, 0);
    set_config(0, cap_ + kNumVfs, count, 2);
    set_config(0, cap_ + kControl, kEnable | kMemory, 2);
    for (unsigned f = 1; f <= count; f++) set_config(f, 0x04, 6, 2);
    if (count > kVfs) return;
    EXPECT_EQ(config(count, 0x08), config(0, 0x08));
  }
  void disable() { set_config(0, cap_ + kControl, 0, 2); }
  static uint64_t bar0(unsigned f) { return f == 0 ? HcaVm::bar0(0) : kBars + uint64_t{f - 1} * kBarSize; }
  static uint64_t bar2(unsigned f) { return f == 0 ? HcaVm::bar2(0) : kMsix + uint64_t{f - 1} * kMsixSize; }
  uint64_t reg(unsigned f, uint64_t offset) { return vm_.read(bar0(f) + offset, 8); }
  void set_reg(unsigned f, uint64_t offset, uint64_t value) { vm_.write(bar0(f) + offset, value, 8); }
  uint64_t dma(unsigned f, fake_action direction, uint64_t addr, uint64_t len, uint64_t go = FAKE_DMA_GO) {
    set_reg(f, FAKE_DMA_ADDR, addr);
    set_reg(f, FAKE_DMA_LEN, len);
    if (go == FAKE_EVENT_DELAY) {
      set_reg(f, FAKE_EVENT_ACTIONS, direction);
      set_reg(f, FAKE_EVENT_DELAY, 100);
      vm_.clock_step(100);
    } else {
      set_reg(f, go, direction);
    }
    return reg(f, FAKE_DMA_RESULT);
  }
  // A capability of a function, 0: it has none such.
  unsigned capability(unsigned f, unsigned id) {
    for (unsigned at = static_cast<unsigned>(config(f, 0x34, 1)); at;
         at = static_cast<unsigned>(config(f, at + 1, 1)))
      if (config(f, at, 1) == id) return at;
    return 0;
  }
  unsigned express(unsigned f) { return capability(f, 0x10); }
  unsigned msix(unsigned f) { return capability(f, 0x11); }
  unsigned table_entries(unsigned f) { return static_cast<unsigned>(config(f, msix(f) + 2, 2) & 0x7ff) + 1; }

  HcaVm vm_{{",link=eth,vfs=4"}};
  unsigned cap_ = 0;
};

TEST_F(Sriov, TheCapabilityTellsOfThem) {
  EXPECT_EQ(config(0, cap_ + kTotalVfs, 2), kVfs);
  EXPECT_EQ(config(0, cap_ + kInitialVfs, 2), kVfs);
  EXPECT_EQ(config(0, cap_ + kNumVfs, 2), 0u);
  EXPECT_EQ(config(0, cap_ + kFirstVf, 2), 1u);
  EXPECT_EQ(config(0, cap_ + kStride, 2), 1u);
  EXPECT_EQ(config(0, cap_ + kDeviceId, 2), 0x101au);
  EXPECT_NE(extended(0, 0x0e), 0u);  // ARI
  for (const unsigned bar : {kBar0, kBar2})
    EXPECT_EQ(config(0, cap_ + bar) & 0xf, 0xcu);  // 64 bits, prefetchable
  set_config(0, cap_ + kBar0, 0xffffffff);
  EXPECT_EQ(config(0, cap_ + kBar0), (0xffffffffu & ~(kBarSize - 1)) | 0xcu);
}

// Of a card of two ports, function 1 is the other physical one.
TEST_F(Sriov, BehindThoseOfBothPortsOfACard) {
  HcaVm card({",link=eth,vfs=4,card=a"});
  unsigned sriov = 0, next = 0;
  for (uint64_t header = 0, at = 0x100; at != 0; at = header >> 20) {
    header = card.config(1, 0, static_cast<unsigned>(at));
    if ((header & 0xffff) == 0x10) sriov = static_cast<unsigned>(at);
    if ((header & 0xffff) == 0x0e)
      next = static_cast<unsigned>(card.config(1, 0, static_cast<unsigned>(at) + 4) >> 8 & 0xff);
  }
  ASSERT_NE(sriov, 0u);
  EXPECT_EQ(card.config(1, 0, sriov + kFirstVf, 2), 2u);
  EXPECT_EQ(next, 1u);
}

TEST_F(Sriov, ACardWithoutHasNone) {
  HcaVm plain({",link=eth"});
  for (uint64_t header = 0, at = 0x100; at != 0; at = header >> 20) {
    header = plain.config(1, 0, static_cast<unsigned>(at));
    EXPECT_NE(header & 0xffff, 0x10u);
    EXPECT_NE(header & 0xffff, 0x0eu);
  }
}

TEST_F(Sriov, EachHasRegistersDmaAndInterruptsOfItsOwn) {
  EXPECT_EQ(config(1, 0x08), 0xffffffffu);  // nobody there yet
  enable();
  vm_.write(kRam, 0, 8);
  for (unsigned f = 0; f <= kVfs; f++) {
    set_reg(f, FAKE_SCRATCH, 0x1000 + f);
    vm_.write(kRam + 0x100 * f, 0xabc0 + f, 8);
  }
  for (unsigned f = 0; f <= kVfs; f++) {
    EXPECT_EQ(reg(f, FAKE_SCRATCH), 0x1000 + f);
    for (const uint64_t go : kContexts) {
      EXPECT_EQ(dma(f, FAKE_READ, kRam + 0x100 * f, 8, go), 0u);
      EXPECT_EQ(reg(f, FAKE_BUFFER), 0xabc0 + f);
    }
  }
  for (unsigned f = 1; f <= kVfs; f++) {
    EXPECT_EQ(config(f, 0x0a, 2), config(0, 0x0a, 2));
    // Vector 15 is the last one that the table has at first; 32 is none of its.
    vm_.write(bar2(f) + 15 * 16, kRam + 0x1000 + 8 * f);
    vm_.write(bar2(f) + 15 * 16 + 8, 0x40 + f, 4);
    vm_.write(bar2(f) + 15 * 16 + 12, 0, 4);
    ASSERT_NE(msix(f), 0u);
    EXPECT_EQ(table_entries(f), 16u);
    set_config(f, msix(f) + 2, 0x8000, 2);
    set_reg(f, FAKE_MSIX_VECTOR, 15);
    set_reg(f, FAKE_MSIX_GO, 1);
    EXPECT_EQ(vm_.read(kRam + 0x1000 + 8 * f, 4), 0x40 + f);
    set_reg(f, FAKE_MSIX_VECTOR, 32);
    set_reg(f, FAKE_MSIX_GO, 1);
  }
  EXPECT_EQ(vm_.qom_get("hca0", "ctr-shim-refused-dma"), kVfs);
}

TEST_F(Sriov, TheTableOfInterruptsIsAsLargeAsTheManagerWants) {
  enable();
  for (const unsigned entries : {2u, 32u, 6u}) {
    set_reg(2, FAKE_VECTORS, entries);
    EXPECT_EQ(table_entries(2), entries);
    EXPECT_EQ(table_entries(1), 16u);
  }
  // The last entry of the largest table is there, too; enabling it does not change its size.
  set_reg(2, FAKE_VECTORS, 32);
  vm_.write(bar2(2) + 31 * 16, kRam + 0x1000);
  vm_.write(bar2(2) + 31 * 16 + 8, 0x77, 4);
  vm_.write(bar2(2) + 31 * 16 + 12, 0, 4);
  set_config(2, msix(2) + 2, 0x8000, 2);
  EXPECT_EQ(config(2, msix(2) + 2, 2), 0x801fu);
  set_reg(2, FAKE_MSIX_VECTOR, 31);
  set_reg(2, FAKE_MSIX_GO, 1);
  EXPECT_EQ(vm_.read(kRam + 0x1000, 4), 0x77u);
  // What no manager can want changes nothing.
  set_reg(2, FAKE_VECTORS, 0);
  EXPECT_EQ(table_entries(2), 32u);
  set_reg(2, FAKE_VECTORS, 33);
  EXPECT_EQ(table_entries(2), 32u);
  disable();
  enable();
  set_reg(2, FAKE_VECTORS, 6);
  EXPECT_EQ(table_entries(2), 6u);
}

TEST_F(Sriov, BusMasteringIsEachOnesOwn) {
  enable();
  set_config(2, 0x04, 2, 2);
  EXPECT_EQ(dma(1, FAKE_READ, kRam, 8), 0u);
  EXPECT_EQ(dma(2, FAKE_READ, kRam, 8), 1u);
  set_config(0, 0x04, 2, 2);  // not even the physical one's counts for them
  EXPECT_EQ(dma(0, FAKE_READ, kRam, 8), 1u);
  EXPECT_EQ(dma(1, FAKE_READ, kRam, 8), 0u);
}

TEST_F(Sriov, AFunctionLevelResetIsItsOwn) {
  enable();
  for (unsigned f = 0; f <= kVfs; f++) set_reg(f, FAKE_SCRATCH, 0x77);
  const uint64_t before = reg(2, FAKE_RESETS);
  const unsigned exp = express(2);
  EXPECT_NE(config(2, exp + 4) & 1u << 28, 0u);
  set_config(2, exp + 8, config(2, exp + 8, 2) | 0x8000, 2);
  EXPECT_EQ(config(2, 0x04, 2), 0u);
  set_config(2, 0x04, 6, 2);
  EXPECT_EQ(reg(2, FAKE_RESETS), before + 1);
  EXPECT_EQ(reg(2, FAKE_SCRATCH), 0u);
  for (const unsigned f : {0u, 1u, 3u, 4u}) EXPECT_EQ(reg(f, FAKE_SCRATCH), 0x77u);
}

TEST_F(Sriov, DisabledTheyAreGoneAndComeBackAnew) {
  for (int round = 0; round < 3; round++) {
    enable(round == 1 ? 2 : kVfs);
    EXPECT_EQ(config(2, 0x0a, 2), config(0, 0x0a, 2));
    EXPECT_EQ(config(3, 0x0a, 2), round == 1 ? 0xffffu : config(0, 0x0a, 2));
    EXPECT_EQ(reg(2, FAKE_SCRATCH), 0u);
    set_reg(2, FAKE_SCRATCH, 0x77);
    set_reg(2, FAKE_DMA_ADDR, kRam);
    set_reg(2, FAKE_DMA_LEN, 8);
    set_reg(2, FAKE_EVENT_ACTIONS, FAKE_WRITE);
    set_reg(2, FAKE_EVENT_DELAY, 100);
    disable();
    EXPECT_EQ(config(1, 0x08), 0xffffffffu);
    vm_.write(kRam, 0x1234, 8);
    vm_.clock_step(200);  // what it would have done is no more
    EXPECT_EQ(vm_.read(kRam, 8), 0x1234u);
    EXPECT_EQ(vm_.read(bar0(2) + FAKE_SCRATCH, 8), 0u);  // nobody decodes that
  }
}

TEST_F(Sriov, MoreThanThereAreIsNone) {
  enable(kVfs + 1);
  EXPECT_EQ(config(1, 0x0a, 2), 0xffffu);
}

TEST_F(Sriov, TheCardsResetEndsThem) {
  for (const bool machine : {false, true}) {
    enable();
    set_reg(1, FAKE_SCRATCH, 0x77);
    if (machine) {
      vm_.qmp("system_reset");
      ASSERT_TRUE(vm_.wait_event("RESET"));
      vm_.enable_ecam_again();
      vm_.bring_up(0);
      vm_.set_config(0, 4, 0x24, (HcaVm::bar0(0) >> 16) | ((HcaVm::bar0(0) + 0x3ffffff) & 0xfff00000), 4);
    } else {
      vm_.function_level_reset(0);
      vm_.restore(0);
    }
    EXPECT_EQ(config(1, 0x08), 0xffffffffu);
    EXPECT_EQ(config(0, cap_ + kControl, 2), 0u);
    EXPECT_EQ(config(0, cap_ + kNumVfs, 2), 0u);
    EXPECT_EQ(config(0, cap_ + kBar0), 0xcu);
    enable();
    EXPECT_EQ(reg(1, FAKE_SCRATCH), 0u);
    disable();
  }
}

// The model writes into the configuration space while it runs: there is no virtual function any more when it
// returns, or there are some.
TEST_F(Sriov, ComeAndGoByTheCardsOwnDma) {
  for (const uint64_t go : kContexts) {
    enable();
    set_reg(1, FAKE_SCRATCH, 0x77);
    set_reg(0, FAKE_BUFFER, 0);
    EXPECT_EQ(dma(0, FAKE_WRITE, Vm::ecam_address(1, 0, cap_ + kControl), 2, go), 0u);
    EXPECT_EQ(config(1, 0x08), 0xffffffffu);
    set_reg(0, FAKE_BUFFER, kEnable | kMemory);
    EXPECT_EQ(dma(0, FAKE_WRITE, Vm::ecam_address(1, 0, cap_ + kControl), 2, go), 0u);
    for (unsigned f = 1; f <= kVfs; f++) set_config(f, 0x04, 6, 2);
    EXPECT_EQ(reg(1, FAKE_SCRATCH), 0u);
    // And one that ends itself.
    set_reg(1, FAKE_BUFFER, 0);
    dma(1, FAKE_WRITE, Vm::ecam_address(1, 0, cap_ + kControl), 2, go);
    EXPECT_EQ(config(1, 0x08), 0xffffffffu);
  }
  EXPECT_EQ(vm_.qom_get("hca0", "ctr-nested-calls"), 0);
}

TEST_F(Sriov, TheCardIsUnpluggedWithThem) {
  enable();
  vm_.qmp("device_del", {{"id", "hca0"}});
  vm_.qmp("system_reset");
  ASSERT_TRUE(vm_.wait_event("DEVICE_DELETED"));
  EXPECT_THAT(vm_.output(), HasSubstr("fake destroyed"));
  EXPECT_EQ(vm_.quit(), 0);
}

TEST_F(Sriov, QemuEndsWithThem) {
  enable();
  EXPECT_EQ(vm_.quit(), 0);
  EXPECT_THAT(vm_.output(), HasSubstr("fake destroyed"));
}

TEST(SriovRefusal, ItNeedsExpressAndRoomOnTheBus) {
  auto r = run_qemu({"-M", "pc", "-device", "mlx5-hca,vfs=4"});
  EXPECT_NE(r.status, 0);
  EXPECT_THAT(r.output, HasSubstr("SR-IOV needs a PCI Express slot"));
  r = run_qemu({"-M", "q35", "-device", "mlx5-hca,vfs=20,addr=1e.0"});
  EXPECT_NE(r.status, 0);
  EXPECT_THAT(r.output, HasSubstr("the bus has no numbers for them behind function 240; there are for 15"));
  EXPECT_THAT(r.output, HasSubstr("Ask for fewer, or put the HCA behind"));
  r = run_qemu({"-M", "q35", "-device", "mlx5-hca-vf"});
  EXPECT_NE(r.status, 0);
  EXPECT_THAT(r.output, HasSubstr("mlx5-hca-vf"));
}

// A number that another device has, here the bridge to ISA: from 10.0 on QEMU makes them at the start.
TEST(SriovRefusal, ItNeedsNumbersThatNobodyHas) {
  const std::string version = run_qemu({"--version"}).output;
  const std::size_t at = version.find("version ");
  ASSERT_NE(at, std::string::npos) << version;
  if (std::atoi(version.c_str() + at + 8) < 10)
    GTEST_SKIP() << "this version of QEMU makes virtual functions later";
  const auto r = run_qemu({"-M", "q35", "-device", "mlx5-hca,vfs=8,addr=0x1e"});
  EXPECT_EQ(r.status, 1) << r.output;
  EXPECT_THAT(r.output, HasSubstr("in use by"));
}

}  // namespace
}  // namespace hcasim::tests
