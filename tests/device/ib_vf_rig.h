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

class IbVf : public VfTest {
 public:
  IbVf() : VfTest(the_card()) {}

 protected:
  CommandResult context_of(std::uint32_t vport) {
    using In = prm::query_hca_vport_context_in;
    return pf.exec(about<In>(prm::op::QUERY_HCA_VPORT_CONTEXT, vport),
                   prm::query_hca_vport_context_out::bytes);
  }
  CommandResult modify(std::uint32_t vport, std::uint32_t select, std::uint64_t guid,
                       std::uint32_t policy = 0) {
    using In = prm::modify_hca_vport_context_in;
    using C = In::hca_vport_context;
    Mailbox in = about<In>(prm::op::MODIFY_HCA_VPORT_CONTEXT, vport);
    in.set<C::field_select>(select);
    in.set<C::port_guid>(guid).set<C::node_guid>(guid + 1).set<C::vport_state_policy>(policy);
    return pf.exec(in);
  }
  // A field of what that vport has counted (query_vport_counter_out), asked for by its manager.
  template <class Field>
  std::uint64_t counted(std::uint32_t vport) {
    using In = prm::query_vport_counter_in;
    return pf.exec(about<In>(prm::op::QUERY_VPORT_COUNTER, vport), prm::query_vport_counter_out::bytes)
        .must()
        .get<Field>();
  }
  bool initializing(FunctionId f) {
    return (c.machine.function(f).read32(offsetof(prm::InitSeg, initializing)) &
            prm::InitSeg::kInitializing) != 0;
  }
  enum : std::uint32_t { kPortGuid = 1, kNodeGuid = 2, kPolicy = 4 };
};

}  // namespace hcasim
#endif
