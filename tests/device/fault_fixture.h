// SPDX-License-Identifier: BSD-3-Clause
// A device into which faults are injected while it runs.
#ifndef HCASIM_TESTS_DEVICE_FAULT_FIXTURE_H
#define HCASIM_TESTS_DEVICE_FAULT_FIXTURE_H

#include <cstddef>
#include <string>

#include "fixture.h"
#include "prm/init_seg.h"

namespace hcasim::bare {

class Fault : public DeviceTest {
 protected:
  void inject(const std::string& text) { ASSERT_EQ(fn().inject(text), "") << text; }
  std::uint64_t injected() { return fn().counter("faults_injected") - before_; }
  void SetUp() override {
    DeviceTest::SetUp();
    before_ = fn().counter("faults_injected");
  }
  void TearDown() override {
    fn().inject("none");
    DeviceTest::TearDown();
  }
  CommandResult alloc_pd() { return dev().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes)); }
  CommandResult dealloc_pd(const CommandResult& made) {
    Mailbox in(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes);
    in.set<prm::dealloc_pd_in::pd>(made.get<prm::alloc_pd_out::pd>());
    return dev().exec(in);
  }
  CommandResult query_issi() {
    return dev().exec(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes);
  }
  // A write of `len` bytes from a to b; its completion.
  static Completion write(Pair& p, std::uint32_t len = 1000) {
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, len));
    return p.acq.wait_one();
  }
  std::uint32_t health(std::size_t offset) { return fn().read32(offsetof(prm::InitSeg, health) + offset); }
  std::uint64_t before_ = 0;
};

}  // namespace hcasim::bare
#endif
