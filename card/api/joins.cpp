// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/joins.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "card/api/calls.h"
#include "card/api/wires.h"

namespace hcasim::api {
namespace {

constexpr unsigned kCardPorts = 2;  // of a card that options join of several HCAs

}  // namespace

bool take_port(Settings& s, std::string& why) {
  if (s.card.empty()) return true;
  std::vector<const hca*> others;
  for (const auto& h : all()) {
    if (h->settings.card == s.card && h->in_service) others.push_back(h.get());
  }
  const std::string start = "card=" + s.card + ": ";
  s.firmware.ports = kCardPorts;
  s.firmware.port = 0;
  if (others.empty()) return true;
  const hca& first = *others.front();
  s.firmware.port = 1 - first.settings.firmware.port;
  if (others.size() == kCardPorts) {
    why = start + "it has two ports already, " + first.settings.name + " and " + others.back()->settings.name;
  } else if (first.settings.firmware.link != s.firmware.link) {
    why = start + first.settings.name + " has another link type";
  } else if (first.settings.firmware.vfs != s.firmware.vfs) {
    why = start + first.settings.name + " has vfs=" + std::to_string(first.settings.firmware.vfs) +
          ", and both ports have as many";
  } else if (first.settings.firmware.sfs != s.firmware.sfs) {
    why = start + first.settings.name + " has sfs=" + std::to_string(first.settings.firmware.sfs) +
          ", and both ports have as many";
  } else if (first.settings.firmware.port_tables != s.firmware.port_tables) {
    why = start + first.settings.name + " has another port_select";
  }
  s.firmware.card_guid = first.firmware.options().card_guid;
  return why.empty();
}

bool complete_cards(std::string& why) {
  for (const auto& h : all()) {
    const std::string& card = h->settings.card;
    if (card.empty() || !h->in_service) continue;
    if (h->settings.firmware.port != 0) continue;
    const auto second = std::find_if(all().begin(), all().end(), [&](const auto& o) {
      return o->settings.card == card && o->settings.firmware.port == 1 && o->in_service;
    });
    if (second == all().end()) {
      why = h->settings.name + ": card=" + card + ": there is no second HCA of that card";
      return false;
    }
    Lag::join(h->model.lag(), (*second)->model.lag());
    ESwitch::join(h->model.eswitch(), (*second)->model.eswitch());
  }
  return true;
}

bool check_cable(Settings& s, const hca_host_ops& ops, std::string& why) {
  const bool eth = s.firmware.link == fw::Link::kEthernet;
  if (!s.cable.empty() && (s.host_wire || s.wire)) {
    why = "cable=" + s.cable + ": the port has a wire already";
  } else if (!s.switch_name.empty() && (!s.cable.empty() || s.host_wire || s.wire)) {
    why = "switch=" + s.switch_name + ": the port has a cable or wire already";
  } else if (!s.switch_name.empty() && !eth && !s.firmware.sm) {
    why = "switch=" + s.switch_name +
          ": the modelled switch has no management agent, so sm=off finds no way through it";
  } else if (s.cable == s.name) {
    why = "cable=" + s.cable + ": that is this HCA itself; without cable= it has a cable to itself";
  } else if (s.host_wire && !eth) {
    why = "link=ib: the host's network carries Ethernet; an InfiniBand port takes wire= or cable=";
  } else if (s.host_wire && !ops.wire_tx && !ops.wire_tx_at) {
    why = "wire=host: the host takes no frames";
  } else if (s.coupled && !s.wire) {
    why = "coupled=on: there is no wire=unix:PATH, tcp:HOST:PORT or shm:NAME to be coupled over";
  }
  // Every process would come to the same GUID.
  if (s.wire && s.firmware.node_guid == 0) {
    std::random_device random;
    s.firmware.node_guid = 0x0002c90300000000ull | (random() & 0xffffffu);
  }
  return why.empty();
}

bool check_late(const Settings& s, std::string& why) {
  const std::string late = ": once the machine runs, an HCA that is plugged in ";
  if (!s.card.empty())
    why = "card=" + s.card + late + "has one port";
  else if (!s.switch_name.empty())
    why = "switch=" + s.switch_name + late +
          "has a wire, a cable or the host's network: the modelled switch is complete";
  else if (s.coupled)
    why = "coupled=on" + late + "has a time of its own on its wire";
  else if (!s.cable.empty() && cable_peer(s.cable) == nullptr)
    why = "cable=" + s.cable + ": there is no HCA of that name";
  return why.empty();
}

hca* cable_peer(const std::string& name) {
  const auto peer = std::find_if(all().begin(), all().end(),
                                 [&](const auto& h) { return h->in_service && h->settings.name == name; });
  return peer == all().end() ? nullptr : peer->get();
}

namespace {

// The other end was unplugged.
bool loose(const hca& h) {
  const auto* end = dynamic_cast<const CableEnd*>(h.uplink.get());
  return end && !end->peer().in_service;
}

}  // namespace

bool join(hca* a, hca* b, std::string& why) {
  if (!a || !b || !a->in_service || !b->in_service) {
    why = "an HCA is out of service";
    return false;
  }
  const std::string names = a->settings.name + " and " + b->settings.name;
  if (a == b) {
    why = names + " are the same HCA";
  } else if (const hca* taken = a->uplink && !loose(*a) ? a : b->uplink && !loose(*b) ? b : nullptr) {
    why = taken->settings.name + " has a cable already";
  } else if (a->settings.firmware.link != b->settings.firmware.link) {
    why = names + " have different link types";
  } else if (a->settings.firmware.link == fw::Link::kInfiniBand) {
    const auto lids = assign_lids({a->firmware.port().node_guid(), a->settings.firmware.lid},
                                  {b->firmware.port().node_guid(), b->settings.firmware.lid});
    if (lids.own == 0) {
      why = names + " want the same LID, or have the same node GUID";
    } else {
      a->firmware.port().assign(lids.own, lids.sm, {{b->firmware.port().port_guid(), lids.peer}});
      b->firmware.port().assign(lids.peer, lids.sm, {{a->firmware.port().port_guid(), lids.own}});
    }
  }
  if (!why.empty()) return false;
  a->connect(std::make_unique<CableEnd>(*a, *b));
  b->connect(std::make_unique<CableEnd>(*b, *a));
  a->follow_carrier();
  return true;
}

bool join_cables(std::string& why) {
  for (auto& h : all()) {
    const std::string& name = h->settings.cable;
    if (name.empty() || !h->in_service) continue;
    std::string where = h->settings.name;
    where.append(": cable=").append(name).append(": ");
    hca* peer = cable_peer(name);
    if (!peer) {
      why = where + "there is no HCA of that name";
      return false;
    }
    const auto* end = dynamic_cast<const CableEnd*>(h->uplink.get());
    if (end && &end->peer() == peer) continue;
    if (!join(h.get(), peer, why)) {
      why.insert(0, where);
      return false;
    }
  }
  return true;
}

}  // namespace hcasim::api
