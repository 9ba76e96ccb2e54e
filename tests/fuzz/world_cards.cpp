// SPDX-License-Identifier: BSD-3-Clause
#include "world_cards.h"

namespace hcasim::bare {

std::vector<std::string> card_options(WorldKind::Card card) {
  switch (card) {
    case WorldKind::kLatest:
      // Traced and captured: what is done on it is told there, too.
      return {"link=eth,generation=connectx7,crypto=on,trace=/dev/null,trace_ring=1,capture=/dev/null"};
    case WorldKind::kSwitch:
      return {"link=eth,vfs=2,sfs=2"};
    case WorldKind::kTwoPorts:
      return {"link=eth,name=first,card=two,vfs=1,port_select=hash",
              "link=eth,name=second,card=two,vfs=1,port_select=hash,cable=first"};
    case WorldKind::kIpoib:
      return {"link=ib,ipoib_offloads=on"};
    default:
      return {"link=ib", "link=eth"};
  }
}

std::size_t card_vfs(WorldKind::Card card) {
  return card == WorldKind::kSwitch ? 2 : card == WorldKind::kTwoPorts ? 1 : 0;
}

bool fits(const WorldKind& kind, WorldKind::Card card, bool ethernet) {
  if (kind.card != WorldKind::kPlain && kind.card != card) return false;
  return kind.link == WorldKind::kBoth || (kind.link == WorldKind::kEth) == ethernet;
}

Others others_of(Machine& machine, WorldKind::Card card) {
  Others others;
  if (card != WorldKind::kPlain)
    for (std::size_t i = 1; i < machine.functions(); ++i) others.push_back(&machine.function(i));
  return others;
}

DeviceOptions world_options() {
  DeviceOptions o;
  o.event_commands = false;  // what an input does may leave no event queue
  return o;
}

}  // namespace hcasim::bare
