// SPDX-License-Identifier: BSD-3-Clause
// Faults of kind pcie, with the real model: what a machine sees of an error told through AER, and of a card
// that is pulled out of its slot and put back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

using ::testing::HasSubstr;

// PCI Express Base Specification 7.8.4: offsets in the AER capability, which both have at 0x100.
enum : unsigned {
  kAer = 0x100,
  kUncorStatus = kAer + 0x04,
  kUncorSeverity = kAer + 0x0c,
  kCorStatus = kAer + 0x10,
  kRootCommand = kAer + 0x2c,
  kRootStatus = kAer + 0x30,
  kRootSource = kAer + 0x34,
};
enum : uint64_t { kCorReceived = 1, kUncorReceived = 4, kNonFatalReceived = 0x20, kFatalReceived = 0x40 };
enum : uint64_t { kBadTlp = 1 << 6, kCompletionTimeout = 1 << 14, kMalformedTlp = 1 << 18 };
constexpr unsigned kPort = 4;  // slot of the root port

class Pcie : public ::testing::Test {
 protected:
  void SetUp() override {
    exp_ = vm_.capability(0, 0x10);
    port_exp_ = vm_.find_capability(0, kPort, 0x10);
    ASSERT_EQ(vm_.config(0, kPort, kAer, 2), 1u);
    // What a kernel that handles errors sets.
    vm_.set_config(1, 0, 0x04, 0x106, 2);                                    // SERR#
    vm_.set_config(1, 0, exp_ + 8, vm_.config(1, 0, exp_ + 8, 2) | 0xf, 2);  // all reports
    vm_.set_config(0, kPort, 0x04, 0x106, 2);
    vm_.set_config(0, kPort, 0x3e, 2, 2);  // and what comes from below
    vm_.set_config(0, kPort, port_exp_ + 8, 0xf, 2);
    vm_.set_config(0, kPort, kRootCommand, 7);
    link_ = vm_.config(1, 0, exp_ + 12);
    severity_ = vm_.config(1, 0, kUncorSeverity);
  }
  void inject(const std::string& fault) {
    const auto r =
        vm_.qmp("qom-set", {{"path", "/machine/peripheral/hca0"}, {"property", "inject"}, {"value", fault}});
    EXPECT_FALSE(r.contains("error")) << r;
  }
  uint64_t root_status() { return vm_.config(0, kPort, kRootStatus) & 0x7f; }

  HcaVm vm_{{",link=eth"}};
  unsigned exp_ = 0, port_exp_ = 0;
  uint64_t link_ = 0, severity_ = 0;
};

TEST_F(Pcie, ACorrectableErrorReachesTheRootPort) {
  EXPECT_EQ(root_status(), 0u);
  inject("fault=pcie,error=bad-tlp");
  EXPECT_EQ(vm_.config(1, 0, kCorStatus), kBadTlp);
  EXPECT_EQ(root_status(), kCorReceived);
  EXPECT_EQ(vm_.config(0, kPort, kRootSource, 2), 0x100u);  // bus 1, function 0
  EXPECT_EQ(vm_.config(1, 0, exp_ + 10, 2) & 0xf, 1u);      // device status: correctable error
  EXPECT_EQ(vm_.config(1, 0, exp_ + 12), link_);
  inject("fault=pcie,error=bad-tlp");
  EXPECT_EQ(root_status(), kCorReceived | 2u);  // more than one
}

TEST_F(Pcie, AMaskedErrorIsOnlyNoted) {
  vm_.set_config(1, 0, kCorStatus + 4, kBadTlp);
  inject("fault=pcie,error=bad-tlp");
  EXPECT_EQ(vm_.config(1, 0, kCorStatus), kBadTlp);
  EXPECT_EQ(root_status(), 0u);
}

TEST_F(Pcie, UncorrectableErrorsHaveTheSeverityOfTheRegister) {
  inject("fault=pcie,error=completion-timeout");
  EXPECT_EQ(vm_.config(1, 0, kUncorStatus), kCompletionTimeout);
  EXPECT_EQ(root_status(), kUncorReceived | kNonFatalReceived);
  EXPECT_EQ(vm_.config(0, kPort, kRootSource + 2, 2), 0x100u);
  EXPECT_EQ(vm_.config(1, 0, exp_ + 12), link_);
  vm_.set_config(0, kPort, kRootStatus, 0x7f);
  inject("fault=pcie,error=malformed-tlp");
  EXPECT_EQ(vm_.config(1, 0, kUncorStatus), kCompletionTimeout | kMalformedTlp);
  EXPECT_EQ(root_status() & ~8u, kUncorReceived | kFatalReceived | 0x10u);  // the first one is fatal
}

TEST_F(Pcie, OrTheOneAskedFor) {
  inject("fault=pcie,error=completion-timeout,severity=fatal");
  EXPECT_EQ(root_status(), kUncorReceived | kFatalReceived | 0x10u);
  EXPECT_EQ(vm_.config(1, 0, kUncorSeverity), severity_);
}

TEST_F(Pcie, ACardPulledOutAndPutBack) {
  constexpr uint64_t kPresent = 1 << 6, kLinkActive = 1 << 13;
  const auto slot = [&] { return vm_.config(0, kPort, port_exp_ + 0x1a, 2); };
  const auto link = [&] { return vm_.config(0, kPort, port_exp_ + 0x12, 2); };
  EXPECT_NE(slot() & kPresent, 0u);
  EXPECT_NE(link() & kLinkActive, 0u);
  EXPECT_NE(vm_.reg(0, 0, 4), 0xffffffffu);

  inject("fault=pcie,action=remove");
  EXPECT_EQ(slot() & kPresent, 0u);
  EXPECT_EQ(link() & kLinkActive, 0u);
  EXPECT_EQ(vm_.config(1, 0, 0), 0xffffffffu);
  EXPECT_EQ(vm_.config(1, 0, 2, 2), 0xffffu);
  EXPECT_EQ(vm_.config(1, 0, exp_ + 1, 1), 0xffu);
  EXPECT_EQ(vm_.reg(0, 0, 8), UINT64_MAX);
  EXPECT_EQ(vm_.read(HcaVm::bar2(0), 4), 0xffffffffu);
  vm_.set_reg(0, 0x10, 0x1234, 4);
  vm_.set_config(1, 0, 0x04, 0, 2);
  inject("fault=pcie,action=remove");  // it is gone already
  inject("fault=pcie,error=bad-tlp");  // and detects nothing
  EXPECT_EQ(root_status(), 0u);

  inject("fault=pcie,action=insert");
  EXPECT_NE(slot() & kPresent, 0u);
  EXPECT_NE(link() & kLinkActive, 0u);
  EXPECT_EQ(vm_.config(1, 0, 0), 0x101915b3u);
  EXPECT_EQ(vm_.config(1, 0, 0x04, 2), 0u);  // as after power-on
  EXPECT_EQ(vm_.config(1, 0, 0x10), 0xcu);
  vm_.restore(0);
  EXPECT_NE(vm_.reg(0, 0, 4), 0xffffffffu);
  EXPECT_EQ(vm_.reg(0, 0x10, 4), 0u);
  EXPECT_EQ(vm_.qom_get("hca0", "ctr-faults_injected"), 4 + 2);  // the cable, out and in
}

// A card of two ports in the slot of one root port: functions 0 and 1, set up as firmware would.
class TwoPortVm : public Vm {
 public:
  explicit TwoPortVm(const std::string& more = {})
      : Vm({"-M", "q35", "-device", "pcie-root-port,id=rp0,bus=pcie.0,chassis=0,slot=0,addr=4", "-device",
            "mlx5-hca,id=hca0,bus=rp0,addr=0.0,multifunction=on,link=eth,card=a" + more, "-device",
            "mlx5-hca,id=hca1,bus=rp0,addr=0.1,link=eth,card=a" + more}) {
    enable_ecam();
    set_config(0, kPort, 0x18, 1 << 8 | 1 << 16);
    set_config(0, kPort, 0x20, (bar2(0) >> 16) | (bar2(0) & 0xfff00000), 4);
    set_config(0, kPort, 0x24, (bar0(0) >> 16) | ((bar0(2) - 1) & 0xfff00000), 4);
    set_config(0, kPort, 0x04, 6, 2);
    for (unsigned f = 0; f < 2; f++) restore(f);
  }
  void restore(unsigned f) {
    set_config(1, 0, at(f, 0x10), bar0(f));
    set_config(1, 0, at(f, 0x14), 0);
    set_config(1, 0, at(f, 0x18), bar2(f));
    set_config(1, 0, at(f, 0x04), 6, 2);
  }
  static unsigned at(unsigned f, unsigned offset) { return f << 12 | offset; }
  static uint64_t bar0(unsigned f) { return 0xd0000000 + f * 0x2000000ull; }
  static uint64_t bar2(unsigned f) { return 0xe0000000 + f * 0x10000ull; }
  // Offset of an extended capability, 0: not there.
  unsigned extended(unsigned f, uint16_t id) {
    for (uint64_t header = 0, offset = 0x100; offset != 0; offset = header >> 20) {
      header = config(1, 0, at(f, static_cast<unsigned>(offset)));
      if ((header & 0xffff) == id) return at(f, static_cast<unsigned>(offset));
    }
    return 0;
  }
  uint64_t slot() { return config(0, kPort, find_capability(0, kPort, 0x10) + 0x1a, 2); }
};

// Linux (pci_acs_flags_enabled()) puts functions of one slot without it into one IOMMU group, and takes what
// is not in it for what the function never does.
TEST_F(Pcie, FunctionsOfACardOfTwoPortsAreApart) {
  constexpr uint16_t kAcs = 0x0d, kSriov = 0x10, kAri = 0x0e;
  for (const char* more : {"", ",vfs=2"}) {
    TwoPortVm vm(more);
    for (unsigned f = 0; f < 2; f++) {
      const unsigned acs = vm.extended(f, kAcs);
      ASSERT_NE(acs, 0u) << f << more;
      EXPECT_EQ(vm.config(1, 0, acs + 4), 0u);
      vm.set_config(1, 0, acs + 6, 0xffff, 2);
      EXPECT_EQ(vm.config(1, 0, acs + 4), 0u);
      EXPECT_EQ(vm.extended(f, kSriov) != 0, *more != 0);
      EXPECT_EQ(vm.extended(f, kAri) != 0, *more != 0);
    }
  }
  for (uint64_t header = 0, at = 0x100; at != 0; at = header >> 20) {
    header = vm_.config(1, 0, static_cast<unsigned>(at));
    EXPECT_NE(header & 0xffff, kAcs) << "none of a function that is alone";
  }
}

TEST_F(Pcie, ACardOfTwoPortsIsPulledAsOne) {
  constexpr uint64_t kPresent = 1 << 6;
  TwoPortVm vm;
  const auto inject = [&](unsigned port, const std::string& fault) {
    const auto r = vm.qmp("qom-set", {{"path", "/machine/peripheral/hca" + std::to_string(port)},
                                      {"property", "inject"},
                                      {"value", fault}});
    EXPECT_FALSE(r.contains("error")) << r;
  };
  for (const unsigned by : {0u, 1u}) {
    for (unsigned f = 0; f < 2; f++) {
      EXPECT_NE(vm.read(vm.bar0(f), 4), 0xffffffffu);
      EXPECT_NE(vm.read(vm.bar2(f), 4), 0xffffffffu);
    }
    inject(by, "fault=pcie,action=remove");
    EXPECT_EQ(vm.slot() & kPresent, 0u);
    for (unsigned f = 0; f < 2; f++) {
      EXPECT_EQ(vm.config(1, 0, vm.at(f, 0)), 0xffffffffu) << f;
      EXPECT_EQ(vm.read(vm.bar0(f), 4), 0xffffffffu) << f;
      EXPECT_EQ(vm.read(vm.bar2(f), 4), 0xffffffffu) << f;
    }
    inject(1 - by, "fault=pcie,action=insert");
    EXPECT_NE(vm.slot() & kPresent, 0u);
    for (unsigned f = 0; f < 2; f++) {
      EXPECT_EQ(vm.config(1, 0, vm.at(f, 0)), 0x101915b3u) << f;
      EXPECT_EQ(vm.config(1, 0, vm.at(f, 0x04), 2), 0u) << f;
      vm.restore(f);
    }
  }
}

TEST_F(Pcie, TheMachineEndsWithTheCardOut) {
  inject("fault=pcie,action=remove");
  vm_.qmp("system_reset");
  EXPECT_EQ(vm_.quit(), 0);
}

}  // namespace
}  // namespace hcasim::tests
