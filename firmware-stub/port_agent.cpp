// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/port_agent.h"

#include <algorithm>

#include "firmware-stub/ib_link.h"
#include "model/function/function.h"
#include "model/sched/traffic_classes.h"
#include "model/state/state.h"
#include "prm/eqe.h"
#include "prm/field.h"
#include "traces/tracer.h"

namespace hcasim::fw {

namespace {
constexpr std::uint16_t kDefaultEthMtu = 1522;  // bytes, with headers and FCS
constexpr std::size_t kMostPeers = 1024;        // each answer goes over all of them
constexpr std::ptrdiff_t kMostAtLid = 128;      // the port and as many virtual functions as a card may have
constexpr std::uint8_t kSmSubnetTimeout = 18;   // 4.096 us * 2^18: about a second
constexpr Time kUntilAnswered = from_ns(10'000'000);  // a driver sends the answer to who is at the far end
}  // namespace

PortAgent::PortAgent(const Profile::Port& profile, Blocks blocks, const Options& options)
    : profile_(profile),
      blocks_(std::move(blocks)),
      options_(options),
      disables_(
          "port_disables", [this](Time, bool&) { set_disabled(true); }, blocks_.faults),
      lid_(options.lid != 0 ? options.lid : 1),
      sm_lid_(lid_),
      mtu_(options.link == Link::kEthernet ? kDefaultEthMtu : static_cast<std::uint16_t>(profile.max_mtu)),
      eth_link_(profile.rate_gbps, *options.generation),
      node_description_("MT" + std::to_string(options.device_id) + " " + options.generation->node +
                        ", hcasim") {}

void PortAgent::move(PortState to) {
  Port& port = blocks_.port;
  const PortState before = port.state();
  port.set_state(to);
  if (to != PortState::kArmed)
    traces::trace(blocks_.tracer, traces::Point::kPortState, sim_now(), 1u, 0u, port.state());
  if (on_move_) on_move_(before);
}

// Every entry of the table is the prefix with a GUID behind it; of the GUIDs only the first is assigned.
void PortAgent::set_subnet_prefix(std::uint64_t prefix) {
  const bool changed = subnet_prefix_ != prefix;
  subnet_prefix_ = prefix;
  blocks_.vports.for_each([&](Vport& vport) {
    std::uint64_t guid = vport.guid;
    if (guid == 0) return;  // its function has not started
    for (Gid& gid : vport.gids) {
      prm::store64(gid.data(), prefix);
      prm::store64(gid.data() + 8, guid);
      guid = 0;
    }
  });
  // Who has the port in use has GIDs of the prefix before.
  if (changed && blocks_.port.state() == PortState::kActive) blocks_.port_changed(prm::kPortGuid);
}

void PortAgent::start(Function& function, std::uint64_t mac, std::uint64_t guid) {
  Vport& vport = function.vport();
  const Vport& owner = blocks_.vports[0];
  if (!function.physical() && owner.guid != 0) {
    vport.pkeys = owner.pkeys;  // the port's
  } else {
    std::fill(vport.pkeys.begin(), vport.pkeys.end(), std::uint16_t{0});
    vport.pkeys.at(0) = kDefaultPkey;
  }
  vport.guid = guid;
  if (ethernet())
    for (unsigned i = 0; i < vport.mac.size(); ++i)
      vport.mac[i] = static_cast<std::uint8_t>(mac >> (40 - 8 * i));
  if (!function.physical()) {
    if (!ethernet()) set_subnet_prefix(subnet_prefix_);
    return;
  }
  running_ = true;
  Port& port = blocks_.port;
  if (ethernet()) {
    port.station_mac = vport.mac;
    port.pause_rx = port.pause_tx = true;  // as cards are delivered
    set_mtu(kDefaultEthMtu);
  } else {
    set_subnet_prefix(kDefaultSubnetPrefix);
    set_lanes({});
  }
  eth_link_.renew_offer();
  follow();
  if (on_admin_) on_admin_();
}

// mode: Ethernet's.
void PortAgent::link_up(const LinkMode* mode) {
  if (mode) {
    eth_link_.link_up(*mode);
    blocks_.set_link_rate(mode->rate_gbps);
    move(PortState::kActive);
    return;
  }
  if (!options_.sm) {
    move(PortState::kInit);
    return;
  }
  Port& port = blocks_.port;
  port.set_lid(lid_);
  port.lmc = 0;
  port.sm_lid = sm_lid_;
  port.sm_sl = 0;
  subnet_timeout_ = kSmSubnetTimeout;
  move(PortState::kActive);
}

void PortAgent::teardown(Function& function) {
  if (ethernet()) {
    function.vport().roce_enabled = false;
    function.vport().clear_roce_addresses();
  }
  if (!function.physical()) return;
  reset_state(*this);
  Port& port = blocks_.port;
  port.set_state(PortState::kDown);
  port.set_lid(0);
  port.sm_lid = 0;
  if (ethernet()) {
    port.pause_rx = port.pause_tx = false;
    port.pfc_rx = port.pfc_tx = 0;
    blocks_.set_link_rate(profile_.rate_gbps);
    set_mtu(kDefaultEthMtu);
  }
  if (on_admin_) on_admin_();
}

void PortAgent::set_mtu(std::uint16_t bytes) {
  mtu_ = bytes;
  if (ethernet()) blocks_.port.max_frame = bytes;
}

void PortAgent::set_beacon(std::uint16_t seconds) {
  beacon_ = seconds;
  beacon_end_ = seconds == kBeaconForEver ? kNever : sim_now() + seconds * kSecond;
}

std::uint16_t PortAgent::beacon_left() const {
  if (beacon_ == kBeaconOff || beacon_ == kBeaconForEver) return beacon_;
  const Time left = std::max<Time>(beacon_end_ - sim_now(), 0);
  return static_cast<std::uint16_t>((left + kSecond - 1) / kSecond);
}

void PortAgent::cable(bool in) {
  cable_ = in;
  follow();
}

void PortAgent::partner(const std::optional<LinkOffer>& offer) {
  if (eth_link_.set_partner(offer)) follow();
}

void PortAgent::assign(std::uint16_t lid, std::uint16_t sm_lid, std::vector<Peer> peers) {
  peers_ = std::move(peers);
  lid_ = lid;
  sm_lid_ = sm_lid;
  if (options_.sm && running_ && options_.link == Link::kInfiniBand &&
      blocks_.port.state() == PortState::kActive) {
    set_lid(lid, blocks_.port.lmc, sm_lid, blocks_.port.sm_sl);
  }
}

void PortAgent::learn(const Peer& function) {
  const auto at_lid = [lid = function.lid](const Peer& p) { return p.lid == lid; };
  if (function.guid == 0 || function.lid == 0 || std::none_of(peers_.begin(), peers_.end(), at_lid)) return;
  bool own = false;
  blocks_.vports.for_each([&](const Vport& vport) { own = own || vport.guid == function.guid; });
  if (own) return;
  // Behind the first of its LID, which is the port.
  const auto learned = [this](std::vector<Peer>::iterator p) {
    return std::any_of(peers_.begin(), p, [p](const Peer& other) { return other.lid == p->lid; });
  };
  const auto known = std::find_if(peers_.begin(), peers_.end(),
                                  [&function](const Peer& p) { return p.guid == function.guid; });
  if (known != peers_.end()) {
    if (known->lid == function.lid || !learned(known)) return;
    peers_.erase(known);  // it has moved; a port has its LID from the subnet manager
  }
  // Who makes up GUIDs displaces those of his own port before others'.
  const auto end = peers_.end();
  if (std::count_if(peers_.begin(), end, at_lid) >= kMostAtLid) {
    const auto port = std::find_if(peers_.begin(), end, at_lid);
    peers_.erase(std::find_if(port + 1, end, at_lid));
  } else if (peers_.size() >= kMostPeers) {
    auto oldest = peers_.begin();
    while (oldest != end && !learned(oldest)) ++oldest;
    if (oldest == end) return;
    peers_.erase(oldest);
  }
  peers_.push_back(function);
}

void PortAgent::set_admin(bool up) {
  admin_up_ = up;
  if (up) eth_link_.renew_offer();
  follow();
  if (on_admin_) on_admin_();
}

void PortAgent::set_disabled(bool disabled) {
  if (disabled_ == disabled) return;
  disabled_ = disabled;
  follow();
  if (on_admin_) on_admin_();
}

// Both ends see the link go and come: there is no training that would take time.
void PortAgent::retrain() {
  set_disabled(true);
  set_disabled(false);
}

void PortAgent::set_physical_state(PhysicalState wanted) {
  if (wanted == PhysicalState::kDisabled) {
    if (!disabled_ && disables_.empty()) disables_.push(sim_now() + kUntilAnswered, true);
    return;
  }
  disables_.clear();
  disabled_ ? set_disabled(false) : retrain();
}

std::uint16_t PortAgent::cap_mask2() const {
  const IbLink link(profile_, *options_.generation);
  return static_cast<std::uint16_t>(((link.speeds & kIbHdr) != 0 ? +kCap2Hdr : 0) |
                                    ((link.speeds & kIbNdr) != 0 ? +kCap2Ndr : 0) |
                                    ((link.widths & kIb2x) != 0 ? +kCap2Width2x : 0));
}

void PortAgent::follow() {
  if (!running_) return;
  const bool wanted = cable_ && wants_link() && eth_link_.partner();
  const LinkMode* mode = wanted && ethernet() ? eth_link_.agreed() : nullptr;
  const bool up = wanted && (mode || !ethernet());
  const bool was_up = blocks_.port.state() != PortState::kDown;
  if (up == was_up && mode == eth_link_.active()) return;
  if (was_up) {
    ++link_downed_;
    eth_link_.link_down();
    move(PortState::kDown);
  }
  if (up) link_up(mode);
}

void PortAgent::set_lid(std::uint16_t lid, std::uint8_t lmc, std::uint16_t sm_lid, std::uint8_t sm_sl) {
  Port& port = blocks_.port;
  const bool changed = port.lid() != lid || port.lmc != lmc;
  port.set_lid(lid);
  port.lmc = lmc;
  port.sm_lid = sm_lid;
  port.sm_sl = sm_sl;
  if (changed) blocks_.port_changed(prm::kPortLid);
}

void PortAgent::set_lanes(const VirtualLanes& lanes) {
  blocks_.port.lanes = lanes;
  lanes.apply(blocks_.traffic_classes);
}

void PortAgent::client_reregister() { blocks_.port_changed(prm::kPortClientRereg); }

bool PortAgent::set_state(PortState wanted) {
  const PortState now = blocks_.port.state();
  if (wanted == now) return true;
  switch (wanted) {
    case PortState::kDown:  // the link trains again
      retrain();
      return true;
    case PortState::kArmed:
      if (now != PortState::kInit && now != PortState::kActive) return false;
      move(PortState::kArmed);
      return true;
    case PortState::kActive:
      if (now != PortState::kArmed) return false;
      move(PortState::kActive);
      return true;
    default:
      return false;
  }
}

}  // namespace hcasim::fw
