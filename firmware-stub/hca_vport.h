// SPDX-License-Identifier: BSD-3-Clause
// The port as one function has it, and what the function that manages it settles of that (hca_vport_context;
// on Ethernet nic_vport_context and the vport's state): GUIDs, MAC address, the policy of its state, what
// software on its host offers.
#ifndef HCASIM_FIRMWARE_STUB_HCA_VPORT_H
#define HCASIM_FIRMWARE_STUB_HCA_VPORT_H

#include <cstdint>
#include <string>

#include "firmware-stub/options.h"
#include "firmware-stub/port_agent.h"
#include "model/port/port.h"
#include "model/state/fields.h"

namespace hcasim::fw {

// hca_vport_context.vport_state_policy, and admin_state of MODIFY_VPORT_STATE
enum class VportPolicy : std::uint8_t { kDown = 0, kUp = 1, kFollow = 2 };

// NIC_VPORT_CHANGE events of a vport, in the bits of nic_vport_context: what its manager wants to hear of,
// whether the next change makes an event (one only, until it is armed again), and what has changed since.
struct VportWatch {
  std::uint32_t events = 0, changed = 0;
  bool armed = false;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, events, changed, armed);
  }
};

class HcaVport {
 public:
  // guid: of node and port, and mac (Ethernet): until the manager gives others.
  HcaVport(Link link, std::uint64_t guid, std::uint64_t mac)
      : link_(link), first_guid_(guid), first_mac_(mac), node_guid(guid), port_guid(guid), mac(mac) {}

  // As the function sees it. Up: on InfiniBand not what the subnet manager makes of the port, but whether
  // there is a link; on Ethernet the switch is there without one.
  PortState state(PortState port) const {
    if (policy == VportPolicy::kUp && link_ == Link::kEthernet) return PortState::kActive;
    if (policy == VportPolicy::kDown || port == PortState::kDown) return PortState::kDown;
    return policy == VportPolicy::kUp ? PortState::kActive : port;
  }
  std::uint64_t first_guid() const { return first_guid_; }
  // As after power-on: a function's own reset leaves what its manager has settled.
  void forget() { *this = HcaVport(link_, first_guid_, first_mac_); }

  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("node_guid", node_guid);
    a.lasting("port_guid", port_guid);
    a.lasting("policy", policy);
    a.lasting("mac", mac);
    a.lasting("watch", watch);
    a.lasting("description", description);
    a("cap_mask", cap_mask, kDefaultCaps);
    if constexpr (Archive::kLoads)
      if (a.version() < 19) cap_mask = caps_of_18(cap_mask);
  }

 private:
  Link link_;
  std::uint64_t first_guid_, first_mac_;

 public:
  std::uint64_t node_guid, port_guid;
  std::uint64_t mac;  // Ethernet: the permanent address; 0: none
  VportPolicy policy = VportPolicy::kFollow;
  VportWatch watch;
  std::string description;                // of a virtual function's node; empty: the card's
  std::uint32_t cap_mask = kDefaultCaps;  // of a virtual function; the physical one has the port's
};

}  // namespace hcasim::fw
#endif
