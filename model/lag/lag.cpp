// SPDX-License-Identifier: BSD-3-Clause
#include "model/lag/lag.h"

#include <utility>

#include "model/port/port.h"
#include "model/rx/receiver.h"
#include "model/steer/flow.h"
#include "model/steer/roce_frame.h"

namespace hcasim {

void Lag::join(Lag& first, Lag& second) {
  first.other_ = &second;
  second.other_ = &first;
  second.number_ = 1;
  first.blocks_.port.join(first);
  second.blocks_.port.join(second);
}

// Tables select the port of packets of such a queue.
bool Lag::selected(PortAffinity affinity) const {
  const LagState& s = state();
  return s.by_tables && !affinity.strict && (affinity.port == 0 || !s.affinity_first);
}

// A queue without affinity has that of its function's own port. Where tables select, each packet goes its own
// way: who waits for room waits for the port that has less.
Port& Lag::egress(PortAffinity affinity) {
  const LagState& s = state();
  if (selected(affinity)) return blocks_.port.tx_free() < other().tx_free() ? other() : blocks_.port;
  const unsigned wanted = affinity.port == 1 || affinity.port == 2 ? affinity.port : number_ + 1;
  if (affinity.strict) return port(wanted);
  if (!s.by_tables) return port(s.remap[wanted - 1]);
  return port((s.active >> (wanted - 1) & 1) != 0 ? wanted : 3 - wanted);
}

Port& Lag::egress_of(const PacketRef& packet) {
  if (!selected(packet->affinity)) return egress(packet->affinity);
  Lag& master = number_ == 0 ? *this : *other_;
  switch (master.blocks_.flows.select_port(headers_as_frame(packet, master.blocks_.flows))) {
    case FlowSteering::PortChoice::kOwn:
      return port(1);
    case FlowSteering::PortChoice::kOther:
      return port(2);
    default:
      return blocks_.port;
  }
}

void Lag::hand_over(Time t, PacketRef& packet) { other_->blocks_.receiver.take_over(t, packet); }

void Lag::give_back(Time t, PacketRef& packet) { other_->blocks_.receiver.take_back(t, packet); }

void Lag::switch_over(Time t, FunctionId to, PacketRef& packet) {
  other_->blocks_.receiver.take_switched(t, to, packet);
}

}  // namespace hcasim
