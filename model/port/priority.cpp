// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/priority.h"

#include "model/eth/headers.h"
#include "prm/field.h"
#include "prm/packet.h"

namespace hcasim {

namespace {

using prm::EthHdr;

unsigned priority_of_tag(const Packet& p) {
  if (p.kind != PacketKind::kEthernet) return p.has_vlan ? p.vlan_tci >> 13 : 0u;
  const std::uint8_t* f = p.frame();
  const bool tagged = p.frame_len >= sizeof(EthHdr) + prm::kVlanTagBytes &&
                      prm::load16(f + offsetof(EthHdr, ethertype)) == EthHdr::kVlan;
  return tagged ? f[sizeof(EthHdr)] >> 5 : 0u;
}

// The traffic class octet; false: it is no IP packet.
bool traffic_class_of(const Packet& p, unsigned& out) {
  if (p.kind != PacketKind::kEthernet) {
    out = p.tclass;
    return p.kind == PacketKind::kRoceV2;
  }
  const std::uint8_t* f = p.frame();
  std::size_t at = sizeof(EthHdr);
  if (p.frame_len < at) return false;
  std::uint16_t type = prm::load16(f + offsetof(EthHdr, ethertype));
  for (unsigned tags = 0; tags < 2 && (type == kTpidCvlan || type == kTpidSvlan); ++tags) {
    if (p.frame_len < at + prm::kVlanTagBytes) return false;
    type = prm::load16(f + at + 2);
    at += prm::kVlanTagBytes;
  }
  if (p.frame_len < at + 2) return false;
  if (type == kEthertypeIpv4) {
    out = f[at + 1];
  } else if (type == kEthertypeIpv6) {
    out = prm::load16(f + at) >> 4 & 0xffu;
  } else {
    return false;
  }
  return true;
}

}  // namespace

unsigned PriorityMap::of(const Packet& p) const {
  if (!by_dscp) return priority_of_tag(p);
  unsigned traffic_class = 0;
  return traffic_class_of(p, traffic_class) ? of_dscp[traffic_class >> 2] : 0u;
}

}  // namespace hcasim
