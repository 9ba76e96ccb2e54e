// SPDX-License-Identifier: BSD-3-Clause
// A processor that executes code (TCG) while the memory map changes under it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

constexpr uint64_t kFirst = 0x300000;  // what the program below leaves in memory
constexpr uint64_t kReads = 0x300004;
constexpr uint64_t kWrong = 0x300008;

// Instead of a BIOS: reads the version of the local interrupt controller without end and counts how often it
// is another one than the first time.
class Firmware {
 public:
  // halts: at once, for good.
  explicit Firmware(bool halts = false) {
    char name[] = "/tmp/hcasim-test-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0) throw std::runtime_error("no temporary file");
    close(fd);
    path_ = name;
    std::vector<uint8_t> rom(0x10000, 0xf4);  // hlt; ends at 4 GB
    const auto put = [&rom](size_t at, std::initializer_list<uint8_t> bytes) {
      std::copy(bytes.begin(), bytes.end(), rom.begin() + static_cast<long>(at));
    };
    if (!halts) put(0xfff0, {0xe9, 0x0d, 0x00});                  // jmp 0
    put(0x00, {0xfa,                                              // cli
               0x2e, 0x66, 0x0f, 0x01, 0x16, 0x70, 0x00,          // lgdt cs:[0x70]
               0x0f, 0x20, 0xc0, 0x0c, 0x01, 0x0f, 0x22, 0xc0,    // cr0 |= protected mode
               0x66, 0xea, 0x20, 0x00, 0xff, 0xff, 0x08, 0x00});  // ljmp 8:0xffff0020
    put(0x20, {0xb8, 0x10, 0x00, 0x00, 0x00, 0x8e, 0xd8,          // mov ds, 16
               0xbb, 0x30, 0x00, 0xe0, 0xfe,                      // mov ebx, 0xfee00030
               0x8b, 0x13,                                        // mov edx, [ebx]
               0x89, 0x15, 0x00, 0x00, 0x30, 0x00,                // mov [kFirst], edx
               0x8b, 0x03,                                        // 0x34: mov eax, [ebx]
               0xff, 0x05, 0x04, 0x00, 0x30, 0x00,                // inc dword [kReads]
               0x39, 0xd0, 0x74, 0xf4,                            // cmp eax, edx; je 0x34
               0xff, 0x05, 0x08, 0x00, 0x30, 0x00,                // inc dword [kWrong]
               0xeb, 0xec});                                      // jmp 0x34
    put(0x70, {0x17, 0x00, 0x78, 0x00, 0xff, 0xff});              // the table's limit and address
    put(0x80, {0xff, 0xff, 0x00, 0x00, 0x00, 0x9a, 0xcf, 0x00});  // code, all of 4 GB
    put(0x88, {0xff, 0xff, 0x00, 0x00, 0x00, 0x92, 0xcf, 0x00});  // data
    put(0x78, {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00});
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(rom.data()), static_cast<long>(rom.size()));
  }
  ~Firmware() { unlink(path_.c_str()); }
  Firmware(const Firmware&) = delete;
  Firmware& operator=(const Firmware&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Others keep map and TLB of a vCPU together themselves.
bool is_affected(Vm* vm) {
  const nlohmann::json version = vm->qmp("query-version").at("qemu");
  const int number = version.at("major").get<int>() * 10000 + version.at("minor").get<int>() * 100 +
                     version.at("micro").get<int>();
  return number < 80101 || (number >= 100004 && number < 110000);
}

bool reads_on(Vm* vm) {
  const uint64_t before = vm->read(kReads, 4);
  for (int i = 0; i < 2000; i++) {
    if (vm->read(kReads, 4) != before) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class VcpuOf : public ::testing::TestWithParam<std::vector<std::string>> {};

// The HCA, then all that is behind its root port, comes and goes below the interrupt controller's page, so
// that the numbers of the sections above shift. The changes are made on QEMU's main loop, beside the
// processor's thread.
TEST_P(VcpuOf, ReadsTheSameRegisterWhileTheMapChanges) {
  Firmware firmware;
  HcaVm vm({""}, {"-bios", firmware.path()}, GetParam());
  if (!is_affected(&vm)) GTEST_SKIP() << "this version of QEMU has not the defect";
  ASSERT_TRUE(reads_on(&vm)) << vm.output();
  for (int round = 0; round < 500; round++) {
    vm.set_config(1, 0, 0x04, 0, 2);
    vm.set_config(1, 0, 0x04, 6, 2);
    vm.set_config(0, 4, 0x04, 0, 2);
    vm.set_config(0, 4, 0x04, 6, 2);
  }
  EXPECT_TRUE(reads_on(&vm));
  EXPECT_EQ(vm.read(kFirst, 4), 0x50014u);
  EXPECT_EQ(vm.read(kWrong, 4), 0u) << "of " << vm.read(kReads, 4);
  EXPECT_EQ(vm.quit(), 0) << vm.output();
}

INSTANTIATE_TEST_SUITE_P(ThreadOfItsOwn, VcpuOf,
                         ::testing::Values(std::vector<std::string>{"-accel", "tcg,thread=multi"}));
INSTANTIATE_TEST_SUITE_P(OneThread, VcpuOf,
                         ::testing::Values(std::vector<std::string>{"-accel", "tcg,thread=single"}));
INSTANTIATE_TEST_SUITE_P(Lockstep, VcpuOf,
                         ::testing::Values(std::vector<std::string>{"-accel", "tcg", "-icount",
                                                                    "shift=3,sleep=off"}));

// A processor that was there when the map changed goes. (Another one in its place would need room for a third
// thread, which QEMU's TCG has not.)
TEST(Vcpu, ComesAndGoes) {
  Firmware firmware;
  HcaVm vm({""}, {"-bios", firmware.path(), "-smp", "1,maxcpus=2"}, {"-accel", "tcg"});
  if (!is_affected(&vm)) GTEST_SKIP() << "this version of QEMU has not the defect";
  vm.out32(0xcd8, 0);  // processors are plugged through q35's newer registers
  nlohmann::json place;
  for (const auto& p : vm.qmp("query-hotpluggable-cpus"))
    if (!p.contains("qom-path")) place = p;
  ASSERT_FALSE(place.is_null());
  nlohmann::json arguments = place.at("props");
  arguments["driver"] = place.at("type");
  arguments["id"] = "extra";
  ASSERT_EQ(vm.qmp("device_add", arguments), nlohmann::json::object());
  vm.set_config(1, 0, 0x04, 0, 2);
  vm.set_config(1, 0, 0x04, 6, 2);
  EXPECT_EQ(vm.qmp("query-cpus-fast").size(), 2u);
  vm.out32(0xcd8, 1);
  vm.out32(0xcdc, 8);  // eject it
  ASSERT_TRUE(vm.wait_event("DEVICE_DELETED")) << vm.output();
  EXPECT_EQ(vm.qmp("query-cpus-fast").size(), 1u);
  vm.set_config(1, 0, 0x04, 0, 2);
  vm.set_config(1, 0, 0x04, 6, 2);
  EXPECT_TRUE(reads_on(&vm));
  EXPECT_EQ(vm.quit(), 0) << vm.output();
}

// What much comes over a wire is looked for: by a processor on its way, while all rest by the main loop.
TEST(WireLooks, FindWhatComes) {
  for (const bool halts : {false, true}) {
    Firmware firmware{halts};
    HcaVm vm({",wire=unix:/nowhere"}, {"-bios", firmware.path()}, {"-accel", "tcg"});
    EXPECT_EQ(vm.reg(0, FAKE_LOOKS), 0u);
    for (uint64_t round = 1; round <= 20; round++) {
      vm.set_reg(0, FAKE_WAITING, 1);
      const auto done = [&] { return vm.reg(0, FAKE_LOOKS) == round; };
      for (int i = 0; i < 2000 && !done(); i++) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_TRUE(done()) << vm.output();
      EXPECT_EQ(vm.reg(0, FAKE_WAITING), 0u);
    }
    EXPECT_GT(vm.qom_get("hca0", "ctr-shim-wire-looks").get<uint64_t>(), 0u) << "all others by polls";
    if (!halts) {  // a guest that is interrupted has other work
      vm.enable_msix(0, 0x200000);
      const uint64_t looks = vm.reg(0, FAKE_LOOKS), polls = vm.reg(0, FAKE_POLLS);
      for (int i = 0; i < 1'000'000 && vm.reg(0, FAKE_POLLS) < polls + 400; i++) {
        vm.set_reg(0, FAKE_MSIX_GO, 1);
        vm.set_reg(0, FAKE_WAITING, 1);
      }
      ASSERT_GE(vm.reg(0, FAKE_POLLS), polls + 400) << vm.output();
      EXPECT_LE(vm.reg(0, FAKE_LOOKS), looks + 2) << "before the interrupts were seen";
    }
    EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
    EXPECT_EQ(vm.quit(), 0) << vm.output();
  }
}

bool has_met(HcaVm* vm, uint64_t meetings) {
  const auto done = [&] { return vm->reg(0, FAKE_MEETINGS) >= meetings; };
  for (int i = 0; i < 12000 && !done(); i++) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return done();
}
uint64_t timer_runs(HcaVm& vm) { return vm.qom_get("hca0", "ctr-shim-timer-runs").get<uint64_t>(); }

// In lockstep with another guest the processor has meetings on its way, all of them at their times: the timer
// that would stop it for each is hardly used.
TEST(Meetings, TheProcessorMeetsOnItsWay) {
  Firmware firmware;
  HcaVm vm({",options=meet=1000"}, {"-bios", firmware.path()},
           {"-accel", "tcg", "-icount", "shift=3,sleep=off"});
  ASSERT_TRUE(reads_on(&vm)) << vm.output();
  const uint64_t runs = timer_runs(vm), meetings = vm.reg(0, FAKE_MEETINGS);
  ASSERT_TRUE(has_met(&vm, meetings + 20000)) << vm.output();
  EXPECT_LT(timer_runs(vm) - runs, (vm.reg(0, FAKE_MEETINGS) - meetings) / 10);
  EXPECT_EQ(vm.reg(0, FAKE_LATE_MEETINGS), 0u) << "of " << vm.reg(0, FAKE_MEETINGS);
  EXPECT_EQ(vm.quit(), 0) << vm.output();
}

// A processor that rests for good: without a BIOS that does something it halts at once. The timer has one
// meeting after the other then, without a run of its own for each.
TEST(Meetings, WhereItRestsTheTimerMeets) {
  Firmware firmware{true};
  HcaVm vm({",options=meet=1000"}, {"-bios", firmware.path()},
           {"-accel", "tcg", "-icount", "shift=3,sleep=off"});
  const uint64_t runs = timer_runs(vm), meetings = vm.reg(0, FAKE_MEETINGS);
  ASSERT_TRUE(has_met(&vm, meetings + 20000)) << vm.output();
  EXPECT_LT(timer_runs(vm) - runs, (vm.reg(0, FAKE_MEETINGS) - meetings) / 10);
  EXPECT_EQ(vm.reg(0, FAKE_LATE_MEETINGS), 0u) << "of " << vm.reg(0, FAKE_MEETINGS);
  EXPECT_EQ(vm.quit(), 0) << vm.output();
}

}  // namespace
}  // namespace hcasim::tests
