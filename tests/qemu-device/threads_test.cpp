// SPDX-License-Identifier: BSD-3-Clause
// QEMU's threads beside one another: the priority of the main loop, and who waits for the global lock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kNicer = 5, kLeast = -20;

int nice_of(pid_t thread) { return getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

// What the main loop of a guest on a wire has here: this process's priority, if it may not be changed.
int expected() {
  const int own = nice_of(0), first = std::max(own - kNicer, kLeast);
  bool may = false;
  std::thread([&] { may = setpriority(PRIO_PROCESS, 0, first) == 0; }).join();
  return may ? first : own;
}

std::vector<int> others(pid_t pid) {
  std::vector<int> nice;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    const pid_t id = std::stoi(thread.path().filename());
    if (id != pid) nice.push_back(nice_of(id));
  }
  return nice;
}

TEST(Threads, TheMainLoopOfAGuestOnAWireGoesFirst) {
  HcaVm vm({",time=eager", ",link=ib,time=eager,wire=unix:/nowhere"});
  EXPECT_EQ(nice_of(vm.pid()), expected());
  EXPECT_THAT(others(vm.pid()), Contains(nice_of(0))) << "its processor stays where it was";
}

TEST(Threads, WithoutAWireAllStayAsTheyWere) {
  HcaVm vm({",time=eager"});
  EXPECT_EQ(nice_of(vm.pid()), nice_of(0));
  EXPECT_THAT(others(vm.pid()), Each(nice_of(0)));
}

TEST(Threads, InOneTimeNobodyGoesFirst) {
  HcaVm vm({",link=ib,time=lockstep,wire=unix:/nowhere"});
  EXPECT_EQ(nice_of(vm.pid()), nice_of(0));
}

TEST(Threads, QemuMeasuresItsLockIfItIsTo) {
  HcaVm vm({",time=eager"}, {"-enable-sync-profile"});
  vm.hmp("sync-profile reset");  // what was before the HCA started
  EXPECT_THAT(vm.hmp("info sync-profile"), HasSubstr("BQL mutex"));
}

}  // namespace
}  // namespace hcasim::tests
