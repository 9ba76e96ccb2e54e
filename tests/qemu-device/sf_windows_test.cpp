// SPDX-License-Identifier: BSD-3-Clause
// The windows of sub-functions in BAR 2, with the stand-in model: registers of each; memory, interrupts and
// the bus master bit are the physical function's, whose MSI-X tables are in BAR 4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

constexpr uint64_t kRam = 0x400000;        // guest memory no one else uses
constexpr uint64_t kWindows = 0xd2000000;  // behind BAR 0
constexpr unsigned kSfs = 3, kWindow = 1 << 20;
enum : unsigned { kCommand = 0x04, kBar2 = 0x18, kBar4 = 0x20 };

class SfWindows : public ::testing::Test {
 protected:
  void SetUp() override {
    // The port's window takes them in, too.
    vm_.set_config(0, 4, 0x24, (HcaVm::bar0(0) >> 16) | ((HcaVm::bar0(0) + 0x3ffffff) & 0xfff00000), 4);
    place();
  }
  void place() {
    vm_.set_config(1, 0, kBar2, kWindows);
    vm_.set_config(1, 0, kBar2 + 4, 0);
    vm_.set_config(1, 0, kBar4, HcaVm::bar2(0));
    vm_.set_config(1, 0, kCommand, 6, 2);
  }
  static uint64_t at(unsigned k, uint64_t offset) { return kWindows + uint64_t{k} * kWindow + offset; }
  uint64_t reg(unsigned k, uint64_t offset) { return vm_.read(at(k, offset), 8); }
  void set_reg(unsigned k, uint64_t offset, uint64_t value) { vm_.write(at(k, offset), value, 8); }
  uint64_t dma(unsigned k, fake_action direction) {
    set_reg(k, FAKE_DMA_ADDR, kRam);
    set_reg(k, FAKE_DMA_LEN, 8);
    set_reg(k, FAKE_DMA_GO, direction);
    return reg(k, FAKE_DMA_RESULT);
  }
  HcaVm vm_{{",link=eth,sfs=3"}};
};

TEST_F(SfWindows, TheBarHoldsAPowerOfTwoOfThem) {
  vm_.set_config(1, 0, kBar2, 0xffffffff);
  EXPECT_EQ(vm_.config(1, 0, kBar2), (0xffffffffu & ~(4 * kWindow - 1)) | 0xcu);  // 64 bits, prefetchable
  place();
  EXPECT_EQ(vm_.config(1, 0, vm_.capability(0, 0x11) + 4) & 7, 4u) << "MSI-X";
}

TEST_F(SfWindows, EachHasRegistersOfItsOwn) {
  for (unsigned k = 0; k < kSfs; k++) set_reg(k, FAKE_SCRATCH, 0x1000 + k);
  vm_.set_reg(0, FAKE_SCRATCH, 0x77);
  for (unsigned k = 0; k < kSfs; k++) EXPECT_EQ(reg(k, FAKE_SCRATCH), 0x1000 + k);
  EXPECT_EQ(vm_.reg(0, FAKE_SCRATCH), 0x77u);
  set_reg(kSfs, FAKE_SCRATCH, 1);
  EXPECT_EQ(reg(kSfs, FAKE_SCRATCH), UINT64_MAX) << "behind the last one";
}

TEST_F(SfWindows, MemoryAndInterruptsAreThePhysicalFunctions) {
  vm_.write(kRam, 0xabcd, 8);
  for (unsigned k = 0; k < kSfs; k++) {
    EXPECT_EQ(dma(k, FAKE_READ), 0u);
    EXPECT_EQ(reg(k, FAKE_BUFFER), 0xabcdu);
  }
  vm_.enable_msix(0, kRam + 0x1000);
  set_reg(2, FAKE_MSIX_VECTOR, 63);
  set_reg(2, FAKE_MSIX_GO, 1);
  EXPECT_EQ(vm_.read(kRam + 0x1000 + 4 * 63, 4), 64u);
  vm_.set_config(1, 0, kCommand, 2, 2);
  EXPECT_EQ(dma(1, FAKE_READ), 1u) << "it may not master the bus";
}

TEST_F(SfWindows, ACardWithoutHasNone) {
  HcaVm plain({",link=eth"});
  EXPECT_EQ(plain.config(1, 0, kBar4), 0u);
  EXPECT_EQ(plain.config(1, 0, plain.capability(0, 0x11) + 4) & 7, 2u);
}

}  // namespace
}  // namespace hcasim::tests
