// SPDX-License-Identifier: BSD-3-Clause
// An InfiniBand card with two virtual functions, and drivers for all three.
#ifndef HCASIM_TESTS_DEVICE_IB_VF_RIG_H
#define HCASIM_TESTS_DEVICE_IB_VF_RIG_H

#include "vf_rig.h"

namespace hcasim {

using Context = prm::query_hca_vport_context_out::hca_vport_context;

inline Card& the_card() {
  static auto* made = new Card(fw::Link::kInfiniBand);  // lives as long as the SystemC kernel
  return *made;
}

class IbVf : public ::testing::Test {
 protected:
  void SetUp() override {
    c.card.reset();
    pf.probe();
  }
  void TearDown() override { EXPECT_EQ(c.machine.memory().stray_writes(), 0u); }

  CommandResult enable(std::uint32_t function, bool on = true) {
    if (!on) {
      Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
      return pf.exec(in.set<prm::disable_hca_in::function_id>(function));
    }
    Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
    return pf.exec(in.set<prm::enable_hca_in::function_id>(function));
  }
  std::unique_ptr<bare::Device> probed(FunctionId f) {
    EXPECT_TRUE(enable(f).ok());
    auto device = std::make_unique<bare::Device>(c.machine.function(f));
    device->probe();
    return device;
  }
  CommandResult context_of(std::uint32_t vport) {
    using In = prm::query_hca_vport_context_in;
    Mailbox in(prm::op::QUERY_HCA_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(vport);
    return pf.exec(in, prm::query_hca_vport_context_out::bytes);
  }
  CommandResult modify(std::uint32_t vport, std::uint32_t select, std::uint64_t guid,
                       std::uint32_t policy = 0) {
    using In = prm::modify_hca_vport_context_in;
    using C = In::hca_vport_context;
    Mailbox in(prm::op::MODIFY_HCA_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(vport).set<C::field_select>(select);
    in.set<C::port_guid>(guid).set<C::node_guid>(guid + 1).set<C::vport_state_policy>(policy);
    return pf.exec(in);
  }
  // A field of what that vport has counted (query_vport_counter_out), asked for by its manager.
  template <class Field>
  std::uint64_t counted(std::uint32_t vport) {
    using In = prm::query_vport_counter_in;
    Mailbox in(prm::op::QUERY_VPORT_COUNTER, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(vport);
    return pf.exec(in, prm::query_vport_counter_out::bytes).must().get<Field>();
  }
  bool initializing(FunctionId f) {
    return (c.machine.function(f).read32(offsetof(prm::InitSeg, initializing)) &
            prm::InitSeg::kInitializing) != 0;
  }
  enum : std::uint32_t { kPortGuid = 1, kNodeGuid = 2, kPolicy = 4 };
  enum : std::uint32_t { kDown = 0, kUp = 1, kFollow = 2 };

  Card& c = the_card();
  bare::Device pf{c.machine.function(0)};
};

}  // namespace hcasim
#endif
