// SPDX-License-Identifier: BSD-3-Clause
#include "model/lag/lag.h"

#include <utility>

#include "model/port/port.h"
#include "model/rx/receiver.h"

namespace hcasim {

void Lag::join(Lag& first, Lag& second) {
  first.other_ = &second;
  second.other_ = &first;
  second.number_ = 1;
  first.blocks_.port.join(first);
  second.blocks_.port.join(second);
}

// A queue without affinity has that of its function's own port.
Port& Lag::egress(PortAffinity affinity) {
  const unsigned wanted = affinity.port == 1 || affinity.port == 2 ? affinity.port : number_ + 1;
  const unsigned port = affinity.strict ? wanted : state().remap[wanted - 1];
  return port == number_ + 1 ? blocks_.port : other();
}

void Lag::hand_over(Time t, PacketRef& packet) { other_->blocks_.receiver.take_over(t, packet); }

void Lag::give_back(Time t, PacketRef& packet) { other_->blocks_.receiver.take_back(t, packet); }

void Lag::switch_over(Time t, FunctionId to, PacketRef& packet) {
  if (to != kNoFunction) return other_->blocks_.receiver.take_switched(t, to, packet);
  packet->crossed = true;
  other().transmit(t, std::move(packet));
}

}  // namespace hcasim
