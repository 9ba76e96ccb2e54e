// SPDX-License-Identifier: BSD-3-Clause
// Ports of one card that are one link (model/lag): a packet of one's functions that leaves by another.
#include <utility>

#include "model/port/port.h"
#include "prm/packet.h"

namespace hcasim {

// Null: the packet leaves by this port.
Port* Port::leaves_elsewhere(const PacketRef& packet) {
  if (!group_ || !group_->aggregated()) return nullptr;
  Port& out = group_->egress_of(packet);
  return &out == this ? nullptr : &out;
}

// What the switch sends to an uplink: ports that are one link have one, whichever of them it names.
Port& Port::way_out(const EmbeddedSwitch::Copy& copy) {
  if (Port* out = leaves_elsewhere(copy.packet)) return *out;
  return copy.other && !group_->aggregated() ? group_->other() : *this;
}

// What is for this port's own functions comes back here all the same.
Time Port::cross(Time t, Port& out, PacketRef&& packet) {
  Packet& p = *packet;
  if (p.kind == PacketKind::kEthernet && p.frame_len < sizeof(prm::EthHdr)) {
    drop(t, p, DropReason::kNoPath);
    return t;
  }
  const Route to = route(p);
  if (!to.out) return transmit_now(t, std::move(packet));
  if (!addresses_.open(p.function)) {
    drop(t, p, DropReason::kLinkDown);
    return t;
  }
  if (to.back) {
    PacketRef back = PacketPool::copy(p);
    back->looped = true;
    rx_.push(t + profile_.port.loopback, std::move(back));
  }
  count_vport_tx(p, bytes_of(p), 1);
  p.crossed = true;
  return out.transmit(t, std::move(packet));
}

}  // namespace hcasim
