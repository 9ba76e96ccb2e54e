// SPDX-License-Identifier: BSD-3-Clause
// The QEMU shim with the stand-in model: registers, DMA, interrupts, resets, time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

using ::testing::HasSubstr;

// Where a DMA comes from: the access that asked for it, the simulation run by that access, the timer.
constexpr uint64_t kContexts[] = {FAKE_DMA_GO, FAKE_DMA_GO_NESTED, FAKE_EVENT_DELAY};

constexpr uint64_t kRam = 0x400000;  // guest memory no one else uses

std::vector<uint8_t> pattern(size_t len, uint8_t seed) {
  std::vector<uint8_t> bytes(len);
  for (size_t i = 0; i < len; i++) bytes[i] = static_cast<uint8_t>(seed + i * 7);
  return bytes;
}

TEST(Shim, AccessesOfAllSizes) {
  HcaVm vm({""});
  EXPECT_EQ(vm.reg(0, FAKE_ID), FAKE_ID_VALUE);
  vm.set_reg(0, FAKE_SCRATCH, 0x1122334455667788);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH, 8), 0x1122334455667788u);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH + 4, 4), 0x11223344u);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH + 2, 2), 0x5566u);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH + 7, 1), 0x11u);
  vm.set_reg(0, FAKE_SCRATCH + 1, 0xee, 1);
  vm.set_reg(0, FAKE_SCRATCH + 2, 0xdddd, 2);
  vm.set_reg(0, FAKE_SCRATCH + 4, 0xcccccccc, 4);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 0xccccccccddddee88u);
  EXPECT_EQ(vm.reg(0, 0xfffff8), UINT64_MAX);  // the last register of the BAR
}

TEST(Shim, DmaBothWays) {
  HcaVm vm({""});
  auto data = pattern(4096, 3);
  vm.write_bytes(kRam, data);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 4096), 0u);
  EXPECT_EQ(vm.read_bytes(HcaVm::bar0(0) + FAKE_BUFFER, 4096), data);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, kRam + 0x10001, 4095), 0u);
  data.resize(4095);
  EXPECT_EQ(vm.read_bytes(kRam + 0x10001, 4095), data);
}

TEST(Shim, DmaRefusedWhereNothingIs) {
  HcaVm vm({""});
  EXPECT_EQ(vm.dma(0, FAKE_READ, 0x70000000, 64), 1u);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, 0x70000000, 64), 1u);
  EXPECT_EQ(vm.dma(0, FAKE_READ, 0xffffffffffffffe0, 64), 1u);  // around the top of the address space
  EXPECT_EQ(vm.dma(0, FAKE_READ, 0x100000000000, 64), 1u);
  EXPECT_EQ(vm.qom_get("hca0", "ctr-shim-refused-dma"), 4);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);
}

TEST(Shim, BusMasterOffRefusesDmaAndInterrupts) {
  HcaVm vm({""});
  vm.enable_msix(0, kRam);
  vm.set_config(1, 0, 4, 2, 2);
  vm.write_bytes(kRam + 0x1000, pattern(64, 1));
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, kRam + 0x1000, 64), 1u);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam + 0x1000, 64), 1u);
  vm.set_reg(0, FAKE_MSIX_GO, 1);
  EXPECT_EQ(vm.read(kRam, 4), 0u);
  EXPECT_EQ(vm.read_bytes(kRam + 0x1000, 64), pattern(64, 1));
  vm.set_config(1, 0, 4, 6, 2);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, kRam + 0x1000, 64), 0u);
}

TEST(Shim, LowPowerStateRefusesDma) {
  HcaVm vm({""});
  unsigned pm = vm.capability(0, 0x01);
  ASSERT_NE(pm, 0u);
  vm.set_reg(0, FAKE_DMA_ADDR, kRam);
  vm.set_reg(0, FAKE_DMA_LEN, 8);
  vm.set_reg(0, FAKE_EVENT_ACTIONS, FAKE_READ);
  vm.set_reg(0, FAKE_EVENT_DELAY, 1000);
  vm.set_config(1, 0, pm + 4, 3, 2);
  vm.clock_step(2000);
  EXPECT_EQ(vm.qom_get("hca0", "ctr-dma-refused"), 1);
  vm.set_config(1, 0, pm + 4, 0, 2);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 8), 0u);
}

TEST(Shim, MsixVectorsMaskedAndPending) {
  HcaVm vm({""});
  vm.set_reg(0, FAKE_MSIX_GO, 1);  // MSI-X not enabled: dropped
  vm.enable_msix(0, kRam);
  EXPECT_EQ(vm.read(kRam, 4), 0u);
  for (unsigned v : {0u, 1u, 63u}) {
    vm.set_reg(0, FAKE_MSIX_VECTOR, v);
    vm.set_reg(0, FAKE_MSIX_GO, 1);
    EXPECT_EQ(vm.read(kRam + 4 * v, 4), v + 1);
  }
  vm.write(kRam + 4 * 5, 0, 4);
  vm.write(HcaVm::bar2(0) + 5 * 16 + 12, 1, 4);  // mask vector 5
  vm.set_reg(0, FAKE_MSIX_VECTOR, 5);
  vm.set_reg(0, FAKE_MSIX_GO, 1);
  EXPECT_EQ(vm.read(kRam + 4 * 5, 4), 0u);
  vm.write(HcaVm::bar2(0) + 5 * 16 + 12, 0, 4);
  EXPECT_EQ(vm.read(kRam + 4 * 5, 4), 6u);  // pending, sent when unmasked
  vm.set_reg(0, FAKE_MSIX_VECTOR, 64);      // beyond the last: dropped
  vm.set_reg(0, FAKE_MSIX_GO, 1);
  EXPECT_EQ(vm.read(kRam + 4 * 64, 4), 0u);
}

TEST(Shim, LockstepEventsAtTheirNanosecond) {
  HcaVm vm({",time=lockstep"});
  EXPECT_EQ(vm.qom_get("hca0", "time-mode"), "lockstep");
  vm.enable_msix(0, kRam);
  int64_t start = vm.clock_step(12345);
  vm.set_reg(0, FAKE_DMA_ADDR, kRam + 0x1000);
  vm.set_reg(0, FAKE_DMA_LEN, 64);
  vm.write_bytes(HcaVm::bar0(0) + FAKE_BUFFER, pattern(64, 9));
  vm.set_reg(0, FAKE_EVENT_ACTIONS, FAKE_WRITE | FAKE_MSIX);
  vm.set_reg(0, FAKE_EVENT_DELAY, 1000);
  EXPECT_EQ(vm.reg(0, FAKE_WRITE_TIME), static_cast<uint64_t>(start));
  vm.clock_step(999);
  EXPECT_EQ(vm.read(kRam, 4), 0u);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 0u);
  vm.clock_step(1);
  EXPECT_EQ(vm.read(kRam, 4), 1u);  // without an access: the timer ran it
  EXPECT_EQ(vm.read_bytes(kRam + 0x1000, 64), pattern(64, 9));
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_TIME), static_cast<uint64_t>(start) + 1000);
}

TEST(Shim, RepeatedEventsDoNotDrift) {
  HcaVm vm({""});
  EXPECT_EQ(vm.qom_get("hca0", "time-mode"), "lockstep");  // accel qtest: auto
  vm.set_reg(0, FAKE_EVENT_REPEAT, 999);
  vm.set_reg(0, FAKE_EVENT_DELAY, 77);
  vm.clock_step(77 * 500);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 500u);
  vm.clock_step(77 * 1000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 1000u);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_TIME), 77000u);
}

TEST(Shim, EagerRunsAheadUpToTheBound) {
  HcaVm vm({",time=eager,ahead=10000"});
  EXPECT_EQ(vm.qom_get("hca0", "time-mode"), "eager");
  vm.enable_msix(0, kRam);
  vm.set_reg(0, FAKE_EVENT_ACTIONS, FAKE_MSIX);
  vm.set_reg(0, FAKE_EVENT_DELAY, 5000);
  EXPECT_EQ(vm.read(kRam, 4), 1u);  // at once, though the guest's clock stands
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_TIME), vm.reg(0, FAKE_WRITE_TIME) + 5000);
  vm.clock_step(1000000);
  vm.set_reg(0, FAKE_EVENT_DELAY, 20000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 1u);  // beyond the bound: the timer's work
  vm.clock_step(20000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 2u);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_TIME), 1020000u);
}

TEST(Shim, OneLockstepHcaMakesAllLockstep) {
  HcaVm vm({",time=eager", ",time=lockstep"});
  vm.set_reg(0, FAKE_EVENT_DELAY, 5000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 0u);
  vm.clock_step(5000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 1u);
}

TEST(Shim, FunctionLevelReset) {
  HcaVm vm({""});
  vm.enable_msix(0, kRam);
  vm.set_reg(0, FAKE_SCRATCH, 42);
  vm.set_reg(0, FAKE_EVENT_ACTIONS, FAKE_MSIX);
  vm.set_reg(0, FAKE_EVENT_DELAY, 1000);
  uint64_t resets = vm.reg(0, FAKE_RESETS), of_card = vm.reg(0, FAKE_CARD_RESETS);
  vm.function_level_reset(0);
  EXPECT_EQ(vm.config(1, 0, 4, 2) & 6, 0u);
  EXPECT_EQ(vm.config(1, 0, vm.capability(0, 0x10) + 8, 2) & 0x8000, 0u);
  vm.restore(0);
  EXPECT_EQ(vm.reg(0, FAKE_RESETS), resets + 1);
  EXPECT_EQ(vm.reg(0, FAKE_CARD_RESETS), of_card);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 0u);
  vm.clock_step(5000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 0u);
  EXPECT_EQ(vm.read(kRam, 4), 0u);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);
}

TEST(Shim, SystemAndBusReset) {
  HcaVm vm({""});
  uint64_t resets = vm.reg(0, FAKE_RESETS), of_card = vm.reg(0, FAKE_CARD_RESETS);
  vm.set_reg(0, FAKE_SCRATCH, 42);
  vm.set_config(0, 4, 0x3e, 0x40, 2);  // secondary bus reset of the port above
  vm.set_config(0, 4, 0x3e, 0, 2);
  vm.restore(0);
  EXPECT_EQ(vm.reg(0, FAKE_RESETS), resets + 1);
  EXPECT_EQ(vm.reg(0, FAKE_CARD_RESETS), of_card + 1);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 0u);
  vm.set_reg(0, FAKE_SCRATCH, 43);
  vm.qmp("system_reset");
  ASSERT_TRUE(vm.wait_event("RESET"));
  vm.enable_ecam_again();
  vm.bring_up(0);
  EXPECT_EQ(vm.reg(0, FAKE_RESETS), resets + 2);
  EXPECT_EQ(vm.reg(0, FAKE_CARD_RESETS), of_card + 2);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 0u);
}

// A link that is disabled resets what is below: `devlink dev reload action fw_activate`, mstfwreset.
TEST(Shim, LinkDisable) {
  HcaVm vm({"", ""});
  const unsigned control = vm.find_capability(0, 4, 0x10) + 0x10;
  const uint64_t resets = vm.reg(0, FAKE_RESETS), of_card = vm.reg(0, FAKE_CARD_RESETS);
  const uint64_t others = vm.reg(1, FAKE_RESETS);
  vm.set_reg(0, FAKE_SCRATCH, 42);
  vm.set_config(0, 4, control, 0x10, 2);
  EXPECT_EQ(vm.config(1, 0, 4, 2), 0u);
  vm.set_config(0, 4, control, 0, 2);
  vm.restore(0);
  EXPECT_EQ(vm.reg(0, FAKE_RESETS), resets + 1);
  EXPECT_EQ(vm.reg(0, FAKE_CARD_RESETS), of_card + 1);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 0u);
  EXPECT_EQ(vm.reg(1, FAKE_RESETS), others);
}

// A guest makes the HCA write its own reset bit, from an access and from inside the running simulation.
TEST(Shim, ResetByOwnDma) {
  HcaVm vm({""});
  for (uint64_t go : kContexts) {
    uint64_t resets = vm.reg(0, FAKE_RESETS);
    uint64_t devctl = Vm::ecam_address(1, 0, vm.capability(0, 0x10) + 8);
    vm.set_reg(0, FAKE_BUFFER, 0x8000, 2);
    vm.set_reg(0, FAKE_DMA_ADDR, devctl);
    vm.set_reg(0, FAKE_DMA_LEN, 2);
    const uint64_t of_card = vm.reg(0, FAKE_CARD_RESETS);
    vm.act(0, go, FAKE_WRITE);
    vm.restore(0);
    EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
    EXPECT_EQ(vm.reg(0, FAKE_RESETS), resets + 1);
    EXPECT_EQ(vm.reg(0, FAKE_CARD_RESETS), of_card);
    EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);
    // And the bus above: not of the function alone.
    vm.set_reg(0, FAKE_BUFFER, 0x40, 2);
    vm.set_reg(0, FAKE_DMA_ADDR, Vm::ecam_address(0, 4, 0x3e));
    vm.set_reg(0, FAKE_DMA_LEN, 2);
    vm.act(0, go, FAKE_WRITE);
    vm.set_config(0, 4, 0x3e, 0, 2);
    vm.restore(0);
    EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
    EXPECT_EQ(vm.reg(0, FAKE_RESETS), resets + 2);
    EXPECT_EQ(vm.reg(0, FAKE_CARD_RESETS), of_card + 1);
  }
  EXPECT_TRUE(vm.alive());
}

// The same with the power control of its slot: the HCA is removed by its own write.
TEST(Shim, UnplugByOwnDma) {
  for (uint64_t go : kContexts) {
    HcaVm vm({"", ""}, {"-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"});
    unsigned exp = vm.find_capability(0, 4, 0x10);
    vm.set_config(0, 4, exp + 24, 0x0100, 2);  // slot powered, indicator on
    vm.set_reg(0, FAKE_BUFFER, 0x0700, 2);     // off, both
    vm.set_reg(0, FAKE_DMA_ADDR, Vm::ecam_address(0, 4, exp + 24));
    vm.set_reg(0, FAKE_DMA_LEN, 2);
    vm.set_reg(0, FAKE_EVENT_REPEAT, 1000000);
    vm.act(0, go, FAKE_WRITE);
    ASSERT_TRUE(vm.wait_event("DEVICE_DELETED")) << vm.output();
    EXPECT_EQ(vm.config(1, 0, 0), 0xffffffffu);
    vm.clock_step(100000);
    vm.set_reg(1, FAKE_EVENT_DELAY, 100);
    vm.clock_step(100);
    EXPECT_EQ(vm.reg(1, FAKE_EVENT_COUNT), 1u);
    EXPECT_EQ(vm.quit(), 0);
  }
}

// The model runs as an access begins, and removes the card that is accessed.
TEST(Shim, UnplugByOwnDmaAsAnAccessBegins) {
  const PerturbedMemory perturbed;
  HcaVm vm({"", ""}, {"-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"});
  const unsigned exp = vm.find_capability(0, 4, 0x10);
  vm.set_config(0, 4, exp + 24, 0x0100, 2);
  vm.set_reg(0, FAKE_BUFFER, 0x0700, 2);
  vm.set_reg(0, FAKE_DMA_ADDR, Vm::ecam_address(0, 4, exp + 24));
  vm.set_reg(0, FAKE_DMA_LEN, 2);
  vm.set_reg(0, FAKE_DMA_GO_LATER, FAKE_WRITE);
  vm.reg(0, FAKE_ID);
  ASSERT_TRUE(vm.wait_event("DEVICE_DELETED")) << vm.output();
  EXPECT_EQ(vm.config(1, 0, 0), 0xffffffffu);
  vm.clock_step(100000);
  EXPECT_EQ(vm.reg(1, FAKE_ID), FAKE_ID_VALUE);
  EXPECT_EQ(vm.quit(), 0);
}

TEST(Shim, HcasAreEndedWithQemu) {
  HcaVm vm({"", ""});
  vm.set_reg(0, FAKE_EVENT_DELAY, 100);
  EXPECT_EQ(vm.quit(), 0);
  std::string output = vm.output();
  size_t first = output.find("fake destroyed");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(output.find("fake destroyed", first + 1), std::string::npos);
}

TEST(Shim, DmaIntoOwnBarIsRefused) {
  HcaVm vm({""});
  for (uint64_t go : kContexts) {
    vm.set_reg(0, FAKE_SCRATCH, 42);
    vm.set_reg(0, FAKE_BUFFER, 7);
    EXPECT_EQ(vm.dma(0, FAKE_WRITE, HcaVm::bar0(0) + FAKE_SCRATCH, 8, go), 1u);
    EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 42u);
    EXPECT_EQ(vm.dma(0, FAKE_READ, HcaVm::bar0(0) + FAKE_SCRATCH, 8, go), 1u);
  }
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);
}

TEST(Shim, DmaIntoAnotherHca) {
  HcaVm vm({"", ""});
  for (uint64_t go : kContexts) {
    vm.set_reg(0, FAKE_BUFFER, 0x1234567);
    EXPECT_EQ(vm.dma(0, FAKE_WRITE, HcaVm::bar0(1) + FAKE_SCRATCH, 8, go), 0u);
    EXPECT_EQ(vm.reg(1, FAKE_SCRATCH), 0x1234567u);
  }
  // An interrupt message that is really a write to the other's event register: runs, once the first is done.
  vm.enable_msix(0, HcaVm::bar0(1) + FAKE_EVENT_DELAY);
  vm.set_reg(0, FAKE_MSIX_GO, 1);
  vm.clock_step(10);
  EXPECT_EQ(vm.reg(1, FAKE_EVENT_COUNT), 1u);
}

TEST(Shim, TwoHcasShareTheClock) {
  HcaVm vm({"", ""});
  vm.set_reg(0, FAKE_SCRATCH, 1);
  vm.set_reg(1, FAKE_SCRATCH, 2);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 1u);
  vm.set_reg(0, FAKE_EVENT_DELAY, 3000);
  vm.set_reg(1, FAKE_EVENT_DELAY, 1000);
  vm.clock_step(1000);
  EXPECT_EQ(vm.reg(1, FAKE_EVENT_COUNT), 1u);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_COUNT), 0u);
  vm.clock_step(2000);
  EXPECT_EQ(vm.reg(0, FAKE_EVENT_TIME), 3000u);
  EXPECT_THAT(vm.qom_get("hca0", "stats").get<std::string>(), HasSubstr("name=hca0"));
  EXPECT_THAT(vm.qom_get("hca1", "stats").get<std::string>(), HasSubstr("name=hca1"));
  vm.function_level_reset(0);  // of one only
  EXPECT_EQ(vm.reg(1, FAKE_SCRATCH), 2u);
}

// VT-d tables by hand: second-level pages at IOVA 0x1000000 for these, for the functions of bus 1, devfn 0.
constexpr uint64_t kVtd = 0xfed90000, kTables = 0x300000, kIova = 0x1000000;
constexpr uint32_t kVtdTables = 1u << 30, kVtdTranslates = 1u << 31, kVtdQueue = 1u << 26;
void make_tables(HcaVm& vm, const std::vector<uint64_t>& pages) {
  vm.write(kTables + 1 * 16, (kTables + 0x1000) | 1);  // root entry of bus 1
  vm.write(kTables + 0x1000, (kTables + 0x2000) | 1);  // context entry of devfn 0: 3 levels
  vm.write(kTables + 0x1008, 1 | 1 << 8);
  vm.write(kTables + 0x2000, (kTables + 0x3000) | 3);
  vm.write(kTables + 0x3000 + 8 * 8, (kTables + 0x4000) | 3);
  for (std::size_t i = 0; i < pages.size(); i++) vm.write(kTables + 0x4000 + 8 * i, pages[i] | 3);
  vm.write(kVtd + 0x20, kTables);
  vm.write(kVtd + 0x18, kVtdTables, 4);
}

TEST(Shim, DmaGoesThroughTheIommu) {
  HcaVm vm({""}, {"-device", "intel-iommu"});
  auto data = pattern(64, 5);
  vm.write_bytes(kRam, data);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);  // off: identity
  make_tables(vm, {kRam});
  vm.write(kVtd + 0x18, kVtdTranslates, 4);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kIova, 64), 0u);
  EXPECT_EQ(vm.read_bytes(HcaVm::bar0(0) + FAKE_BUFFER, 64), data);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 1u);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, kIova + 0x1000, 64), 1u);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, kIova + 0xfc0, 128), 1u);  // runs out of the mapped page
}

// Where function 0 of the first HCA has its ATS control register; 0: it shows no ATS.
unsigned ats_control(Vm& vm) {
  for (uint64_t header = 0, at = 0x100; at != 0; at = header >> 20) {
    header = vm.config(1, 0, static_cast<unsigned>(at));
    if ((header & 0xffff) == PCI_EXT_CAP_ID_ATS) return static_cast<unsigned>(at) + PCI_ATS_CTRL;
  }
  return 0;
}

TEST(Shim, TheIommuInvalidatesWhatTheCardKeeps) {
  constexpr uint64_t kQueue = 0x308000, kTail = kVtd + 0x88, kAll = 0x7fffffffffffffff;
  HcaVm vm({",ats=on"}, {"-device", "intel-iommu,device-iotlb=on"});
  uint64_t tail = 0;
  const auto descriptor = [&](uint64_t addr, bool size) {  // "device-TLB invalidate" of bus 1, devfn 0
    vm.write(kQueue + tail, 3 | uint64_t{0x100} << 32);
    vm.write(kQueue + tail + 8, addr | (size ? 1 : 0));
    tail += 16;
  };
  const auto invalidate = [&](uint64_t addr, bool size) {
    descriptor(addr, size);
    vm.write(kTail, tail);
  };
  make_tables(vm, {kRam, kVtd});
  vm.write(kVtd + 0x90, kQueue);
  vm.write(kVtd + 0x18, kVtdTranslates | kVtdQueue, 4);
  const unsigned control = ats_control(vm);
  ASSERT_NE(control, 0u);
  EXPECT_EQ(vm.config(1, 0, control, 2), 0u);
  invalidate(kIova, false);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATIONS), 0u) << "it is off";
  vm.set_config(1, 0, control, PCI_ATS_CTRL_ENABLE, 2);
  EXPECT_EQ(vm.reg(0, FAKE_ATS), 1u);
  invalidate(kIova, false);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATIONS), 1u);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATED_FROM), kIova);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATED_BYTES), 4096u);
  invalidate(kIova | 0x1000, true);  // 4.10.2.4: of 4 pages
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATED_FROM), kIova);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATED_BYTES), 4u * 4096);
  invalidate(kAll & ~uint64_t{0xfff}, true);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATIONS), 3u);

  // By its own DMA, to the IOMMU's register: when the model has returned, and not before.
  descriptor(kIova + 0x1000, false);
  vm.set_reg(0, FAKE_BUFFER, tail, 4);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, kIova + 0x1000 + 0x88, 4), 0u);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATIONS), 4u);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATED_FROM), kIova + 0x1000);
  EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);

  vm.write(kVtd + 0x18, kVtdQueue, 4);  // nobody translates, and then somebody does again
  vm.write(kVtd + 0x18, kVtdTranslates | kVtdQueue, 4);
  invalidate(kIova, false);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATIONS), 5u);
  vm.function_level_reset(0);
  vm.restore(0);
  EXPECT_EQ(vm.config(1, 0, control, 2), 0u);
  EXPECT_EQ(vm.reg(0, FAKE_ATS), 0u);
  invalidate(kIova, false);
  EXPECT_EQ(vm.reg(0, FAKE_INVALIDATIONS), 5u);
}

TEST(Shim, AtsIsForThoseWhoAskForIt) {
  HcaVm vm({""}, {"-device", "intel-iommu,device-iotlb=on"});
  EXPECT_EQ(ats_control(vm), 0u);
  HcaVm not_known({",ats=on"}, {"-device", "intel-iommu"});  // this IOMMU invalidates nothing of such devices
  not_known.set_config(1, 0, ats_control(not_known), PCI_ATS_CTRL_ENABLE, 2);
  EXPECT_EQ(not_known.reg(0, FAKE_ATS), 1u);
  EXPECT_EQ(not_known.dma(0, FAKE_READ, kRam, 64), 0u);
}

// Asks where [addr, addr + len) lies; what is there now.
uint64_t mapped(HcaVm& vm, uint64_t addr, uint64_t len, bool write = false) {
  vm.set_reg(0, FAKE_DMA_ADDR, addr);
  vm.set_reg(0, FAKE_DMA_LEN, len);
  vm.set_reg(0, FAKE_MAP, write);
  return vm.reg(0, FAKE_MAPPED);
}

TEST(Shim, GuestMemoryIsReadWhereItLies) {
  HcaVm vm({",time=eager"});
  vm.write(kRam, 0x1122334455667788);
  EXPECT_EQ(mapped(vm, kRam, 4096), 0x1122334455667788u);
  vm.write(kRam, 0x99);
  EXPECT_EQ(vm.reg(0, FAKE_MAPPED), 0x99u);  // no copy
  vm.write(kRam + 8, 0x77);
  EXPECT_EQ(mapped(vm, kRam + 8, 1 << 20), 0x77u);
  // Writes are QEMU's. What is not memory, not all of it, or around the end, has no place.
  EXPECT_EQ(mapped(vm, kRam, 4096, true), FAKE_NOTHING);
  EXPECT_EQ(mapped(vm, HcaVm::bar0(0) + FAKE_BUFFER, 64), FAKE_NOTHING);
  EXPECT_EQ(mapped(vm, 0x70000000, 64), FAKE_NOTHING);
  EXPECT_EQ(mapped(vm, kRam, 1ull << 40), FAKE_NOTHING);
  EXPECT_EQ(mapped(vm, 0xffffffffffffffe0, 64), FAKE_NOTHING);
  EXPECT_EQ(mapped(vm, kRam, 0), FAKE_NOTHING);
}

TEST(Shim, LentMemoryIsTakenBackWhenItGoes) {
  HcaVm vm({",time=eager"});
  vm.write(kRam, 0x1122334455667788);
  EXPECT_EQ(mapped(vm, kRam, 64), 0x1122334455667788u);
  const uint64_t before = vm.reg(0, FAKE_MAP_CHANGES);
  vm.set_config(1, 0, 4, 2, 2);  // no bus master: all memory leaves its address space
  EXPECT_GT(vm.reg(0, FAKE_MAP_CHANGES), before);
  EXPECT_EQ(vm.reg(0, FAKE_MAPPED), FAKE_NOTHING);
  EXPECT_EQ(mapped(vm, kRam, 64), FAKE_NOTHING);
  vm.set_config(1, 0, 4, 6, 2);
  EXPECT_EQ(mapped(vm, kRam, 64), 0x1122334455667788u);
  // By its own DMA, to its configuration: when the model has returned, and not before.
  const uint64_t config = Vm::ecam_address(1, 0, 4);
  const uint64_t then = vm.reg(0, FAKE_MAP_CHANGES);
  vm.set_reg(0, FAKE_BUFFER, 2, 2);
  EXPECT_EQ(vm.dma(0, FAKE_WRITE, config, 2), 0u);
  EXPECT_GT(vm.reg(0, FAKE_MAP_CHANGES), then);
  EXPECT_EQ(vm.reg(0, FAKE_MAPPED), FAKE_NOTHING);
  EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
}

TEST(Shim, NothingIsLentBehindAnIommu) {
  HcaVm vm({",time=eager"}, {"-device", "intel-iommu"});
  vm.write(kRam, 1);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);
  EXPECT_EQ(mapped(vm, kRam, 64), FAKE_NOTHING);
}

TEST(Shim, NothingIsLentInExactTime) {
  HcaVm vm({",time=lockstep"});
  vm.write(kRam, 1);
  EXPECT_EQ(vm.dma(0, FAKE_READ, kRam, 64), 0u);
  EXPECT_EQ(mapped(vm, kRam, 64), FAKE_NOTHING);
}

TEST(Shim, CountersStatsAndFaults) {
  HcaVm vm({",options=lanes=8;x=1,bf=off,sm=on,profile=p"});
  EXPECT_THAT(vm.qom_get("hca0", "stats").get<std::string>(),
              HasSubstr("name=hca0,profile=p,bf=off,sm=on,lanes=8,x=1"));
  vm.set_reg(0, FAKE_SCRATCH, 1);
  EXPECT_GT(vm.qom_get("hca0", "ctr-mmio-writes").get<int>(), 0);
  EXPECT_EQ(vm.qom_get("hca0", "ctr-events"), 0);
  EXPECT_THAT(vm.qom_get("hca0", "inject").get<std::string>(), HasSubstr("event"));
  std::string path = "/machine/peripheral/hca0";
  vm.qmp("qom-set", {{"path", path}, {"property", "inject"}, {"value", "event"}});
  EXPECT_EQ(vm.qom_get("hca0", "ctr-events"), 1);
  auto bad = vm.qmp("qom-set", {{"path", path}, {"property", "inject"}, {"value", "nonsense"}});
  EXPECT_THAT(bad.dump(), HasSubstr("known: event"));
  EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
  EXPECT_GE(vm.qom_get("hca0", "activations").get<int>(), 1);
}

TEST(Shim, TracesAreSetWhileTheMachineRuns) {
  HcaVm vm({",trace_ring=4,capture=/tmp/x.pcapng,record=/tmp/x.rec"});
  EXPECT_THAT(vm.qom_get("hca0", "stats").get<std::string>(),
              HasSubstr("trace_ring=4,capture=/tmp/x.pcapng,record=/tmp/x.rec"));
  const std::string path = "/machine/peripheral/hca0";
  const auto set = [&](const char* property, const nlohmann::json& value) {
    return vm.qmp("qom-set", {{"path", path}, {"property", property}, {"value", value}}).dump();
  };
  set("trace-filter", "qp=0x4a,point=doorbell");
  EXPECT_EQ(vm.qom_get("hca0", "trace-filter"), "qp=0x4a,point=doorbell");
  set("trace-on", true);
  EXPECT_EQ(vm.qom_get("hca0", "trace-on"), true);
  set("trace-on", false);
  EXPECT_EQ(vm.qom_get("hca0", "trace-on"), false);
  set("capture-file", "/tmp/y.pcapng");
  EXPECT_EQ(vm.qom_get("hca0", "capture-file"), "/tmp/y.pcapng");
  EXPECT_THAT(set("trace-ring", "7"), HasSubstr("no ring in the fake"));
}

// The header is QEMU's; what follows is the model's, dword by dword, and of that nothing is kept here.
TEST(Shim, VendorCapabilityLeadsToTheModel) {
  HcaVm vm({""});
  unsigned vsc = vm.capability(0, 0x09);
  ASSERT_NE(vsc, 0u);
  EXPECT_EQ(vm.config(1, 0, vsc + 2, 1), 0x18u);
  EXPECT_EQ(vm.config(1, 0, vsc + 3, 1), 0u);  // type 0: functional
  auto get = [&](unsigned offset, unsigned len = 4) { return vm.config(1, 0, vsc + offset, len); };
  auto set = [&](unsigned offset, uint64_t value, unsigned len = 4) {
    vm.set_config(1, 0, vsc + offset, value, len);
  };
  const uint64_t before = get(0x14);  // accesses so far
  for (unsigned offset = 0x04; offset < 0x14; offset += 4) set(offset, 0xa0b0c0d0 + offset);
  EXPECT_EQ(get(0x14), before + 5);
  for (unsigned offset = 0x04; offset < 0x14; offset += 4) EXPECT_EQ(get(offset), 0xa0b0c0d0 + offset);
  EXPECT_EQ(get(0x05, 1), 0xc0u);
  EXPECT_EQ(get(0x06, 2), 0xa0b0u);
  EXPECT_EQ(get(0x14), before + 12);
  set(0x0c, 1, 1);  // less than a register: does not get there
  set(0x0e, 1, 2);
  set(0x00, 0xffffffff);  // the header stays
  EXPECT_EQ(get(0x14), before + 13);
  EXPECT_EQ(get(0x0c), 0xa0b0c0dcu);
  set(0x04, 0x1234, 2);  // but to the control register, with what the rest of it is
  set(0x07, 0x56, 1);
  EXPECT_EQ(get(0x04), 0x56b01234u);
  EXPECT_EQ(get(0x00) & 0xffff00ffu, 0x00180009u);

  vm.function_level_reset(0);
  EXPECT_EQ(get(0x0c), 0u);
}

}  // namespace
}  // namespace hcasim::tests
