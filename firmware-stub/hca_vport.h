// SPDX-License-Identifier: BSD-3-Clause
// The InfiniBand port as one function has it, and what the function that manages it settles of that
// (hca_vport_context): GUIDs, the policy of its state, what software on its host offers.
#ifndef HCASIM_FIRMWARE_STUB_HCA_VPORT_H
#define HCASIM_FIRMWARE_STUB_HCA_VPORT_H

#include <cstdint>
#include <string>

#include "firmware-stub/port_agent.h"
#include "model/port/port.h"
#include "model/state/fields.h"

namespace hcasim::fw {

// hca_vport_context.vport_state_policy
enum class VportPolicy : std::uint8_t { kDown = 0, kUp = 1, kFollow = 2 };

class HcaVport {
 public:
  // guid: of node and port, until the manager gives others.
  explicit HcaVport(std::uint64_t guid) : first_guid_(guid), node_guid(guid), port_guid(guid) {}

  // As the function sees it. Up: not what the subnet manager makes of the port, but whether there is a link.
  PortState state(PortState port) const {
    if (policy == VportPolicy::kDown || port == PortState::kDown) return PortState::kDown;
    return policy == VportPolicy::kUp ? PortState::kActive : port;
  }
  // As after power-on: a function's own reset leaves what its manager has settled.
  void forget() { *this = HcaVport(first_guid_); }

  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("node_guid", node_guid);
    a.lasting("port_guid", port_guid);
    a.lasting("policy", policy);
    a.lasting("description", description);
    a("cap_mask", cap_mask, kDefaultCaps);
  }

 private:
  std::uint64_t first_guid_;

 public:
  std::uint64_t node_guid, port_guid;
  VportPolicy policy = VportPolicy::kFollow;
  std::string description;                // of a virtual function's node; empty: the card's
  std::uint32_t cap_mask = kDefaultCaps;  // of a virtual function; the physical one has the port's
};

}  // namespace hcasim::fw
#endif
