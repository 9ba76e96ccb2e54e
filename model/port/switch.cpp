// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/switch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/port/pause.h"
#include "model/port/port.h"

namespace hcasim {

namespace {

std::uint64_t mac_key(const std::uint8_t* mac) {
  std::uint64_t key = 0;
  for (unsigned i = 0; i < 6; ++i) key = key << 8 | mac[i];
  return key;
}

const std::uint8_t* source_mac(const Packet& p) {
  return p.kind == PacketKind::kEthernet ? p.frame() + 6 : p.smac.data();
}

// 01:80:c2:00:00:0x stays between two neighbours.
bool link_local(const std::uint8_t* mac) { return (mac_key(mac) & ~0xfull) == 0x0180c2000000ull; }

Switch::Config completed(Switch::Config config) {
  if (config.hop == 0) config.hop = config.ethernet ? Switch::kHopEthernet : Switch::kHopInfiniBand;
  return config;
}

}  // namespace

Switch::Switch(const sc_core::sc_module_name& name, const Config& config)
    : sc_module(name),
      config_(completed(config)),
      ps_per_byte_(8000.0 / config.rate_gbps),
      random_(config.seed),
      in_(
          "in", [this](Time t, Arrival& a) { handle(t, a); }, *this) {}

std::size_t Switch::attach(Station station) {
  const std::size_t number = ports_.size();
  ports_.push_back(std::make_unique<Port>(*this, number, std::move(station)));
  if (!config_.ethernet && config_.lane_buffer != 0) connect_lanes(*ports_.back());
  return number;
}

// Packets that have come in by a lane with a buffer of its own wait for credits, then for their turn.
void Switch::connect_lanes(Port& port) {
  const std::string of = std::string(basename()) + "_", at = "_" + std::to_string(port.number);
  OutputLanes::Users users;
  users.go = [this, &port](Time ready, PacketRef packet, std::uint32_t inside) -> std::uint32_t {
    const std::uint32_t bytes = hcasim::Port::wire_bytes(*packet);
    const Time takes = lasts(*packet), left = depart(ready, takes, std::move(packet), nullptr, port);
    if (inside != 0) copy_left(inside, left);
    return bytes;
  };
  users.free = [&port] { return port.free; };
  users.settings = [&port]() -> const VirtualLanes* {
    return port.attached && port.station.lanes ? port.station.lanes() : nullptr;
  };
  port.lanes = std::make_unique<OutputLanes>((of + "lanes" + at).c_str(), std::move(users),
                                             static_cast<FaultSink&>(*this));
  if (port.station.lane_buffer == 0) return;
  port.credits = std::make_unique<LaneCredits>((of + "credits" + at).c_str(), static_cast<FaultSink&>(*this));
  port.credits->set_room(port.station.lane_buffer);
  port.credits->connect({[&port](Time t, PacketRef packet, std::uint32_t inside) {
                           port.lanes->push(t, t, std::move(packet), inside);
                         },
                         [](Time) {}});
}

void Switch::assign(std::size_t number, std::uint16_t lid) {
  if (lid != 0) lids_[lid] = number;
}

void Switch::detach(std::size_t number) {
  ports_[number]->attached = false;
  emptied(number);
}

void Switch::emptied(std::size_t number) {
  Port& port = *ports_[number];
  if (port.credits) port.credits->renew(sim_now());
}

void Switch::model_fault(const char*, const char*) noexcept { ++counters_.faults; }

// Handled when it is there, in the order of arrival at all ports: who comes first has the output first.
void Switch::Port::transmit(Time t, const PacketRef& packet) {
  owner.in_.push(t + station.cable, Arrival{packet, number});
}

void Switch::handle(Time t, Arrival& arrival) {
  const Packet& p = *arrival.packet;
  Port& from = *ports_[arrival.port];
  ++counters_.packets;
  counters_.bytes += hcasim::Port::wire_bytes(p);
  if (!config_.ethernet) {
    if (config_.lane_buffer == 0 || p.vl15 || p.vl >= LaneCredits::kLanes) return route_by_lid(t, arrival, 0);
    while (++serial_ == 0 || inside_.count(serial_) != 0) {
    }
    const std::uint32_t inside = serial_;
    inside_[inside] = {arrival.port, p.vl, hcasim::Port::wire_bytes(p), 1, t};
    route_by_lid(t, arrival, inside);
    copy_left(inside, t);
    return;
  }
  const std::uint8_t* dest = p.dest_mac();
  if (link_local(dest)) {
    take_pause(t, p, from);
    return;
  }
  learn(p, arrival.port);
  const auto to = (dest[0] & 1) != 0 ? macs_.end() : macs_.find(mac_key(dest));
  if (to == macs_.end())
    flood(t, arrival);
  else if (to->second != arrival.port)
    forward(t, std::move(arrival.packet), from, *ports_[to->second]);
}

void Switch::route_by_lid(Time t, Arrival& arrival, std::uint32_t inside) {
  if (is_multicast(arrival.packet->dlid)) return flood(t, arrival, inside);
  const auto to = lids_.find(arrival.packet->dlid);
  if (to == lids_.end()) {
    ++counters_.dropped_unknown;
    return;
  }
  forward(t, std::move(arrival.packet), *ports_[arrival.port], *ports_[to->second], inside);
}

// The input's lane has room again when all copies are out.
void Switch::copy_left(std::uint32_t number, Time t) {
  const auto found = inside_.find(number);
  if (found == inside_.end()) return;
  Inside& in = found->second;
  in.left = std::max(in.left, t);
  if (--in.copies != 0) return;
  const Port& from = *ports_[in.port];
  if (from.attached) from.station.room(in.left + from.station.cable, in.lane, in.bytes);
  inside_.erase(found);
}

void Switch::learn(const Packet& p, std::size_t number) {
  const std::uint8_t* mac = source_mac(p);
  if ((mac[0] & 1) != 0) return;
  if (const auto known = macs_.find(mac_key(mac)); known != macs_.end()) {
    known->second = number;
  } else if (macs_.size() < kMostAddresses) {
    macs_.emplace(mac_key(mac), number);
  }
}

void Switch::take_pause(Time t, const Packet& p, Port& from) {
  PauseFrame frame;
  if (p.kind != PacketKind::kEthernet || !parse_pause(p, frame)) return;
  // One queue an output: any priority's pause stops it.
  unsigned longest = 0;
  for (unsigned i = 0; i < kPriorities; ++i) {
    if (!frame.by_priority || (frame.priorities >> i & 1u) != 0)
      longest = std::max<unsigned>(longest, frame.quanta[i]);
  }
  from.stopped = t + static_cast<Time>(longest * kQuantumBits / 8.0 * ps_per_byte_);
}

void Switch::flood(Time t, const Arrival& arrival, std::uint32_t inside) {
  ++counters_.flooded;
  for (const auto& to : ports_) {
    if (to->number == arrival.port) continue;
    forward(t, PacketPool::copy(*arrival.packet), *ports_[arrival.port], *to, inside);
  }
}

bool Switch::mark(const Packet& p, std::uint64_t waiting) {
  if (config_.ecn_kmax == 0 || waiting <= config_.ecn_kmin) return false;
  const unsigned ecn = p.tclass & kEcnMask;
  if (p.kind != PacketKind::kRoceV2 || ecn == kNotEct || ecn == kCe) return false;
  if (waiting >= config_.ecn_kmax) return true;
  const double share = config_.ecn_pmax * static_cast<double>(waiting - config_.ecn_kmin) /
                       static_cast<double>(config_.ecn_kmax - config_.ecn_kmin);
  return std::generate_canonical<double, 53>(random_) < share;
}

Time Switch::lasts(const Packet& p) const {
  return static_cast<Time>((hcasim::Port::wire_bytes(p) + hcasim::Port::wire_overhead(p)) * ps_per_byte_);
}

// The last bit is here at t.
void Switch::forward(Time t, PacketRef packet, Port& from, Port& to, std::uint32_t number) {
  if (!to.attached) return;
  const Time takes = lasts(*packet);
  const Time ready = t + config_.hop > takes ? t + config_.hop - takes : 0;  // its first bit
  if (!to.lanes) {
    depart(ready, takes, std::move(packet), &from, to);
    return;
  }
  if (number != 0) ++inside_.at(number).copies;
  if (number != 0 && to.credits &&
      to.credits->hold(ready, packet->vl, hcasim::Port::wire_bytes(*packet), packet, number))
    return;
  to.lanes->push(t, ready, std::move(packet), number);
}

Time Switch::depart(Time ready, Time lasts, PacketRef packet, Port* from, Port& to) {
  if (!to.attached) return ready;
  const Time start = std::max({ready, to.free, to.stopped});
  const auto waiting = static_cast<std::uint64_t>(static_cast<double>(start - ready) / ps_per_byte_);
  counters_.most_waiting = std::max(counters_.most_waiting, waiting);
  if (waiting > config_.buffer && from) {
    if (config_.ethernet && !config_.lossless) {
      ++counters_.dropped_full;
      return ready;
    }
    // Until half of what waits has left.
    ++counters_.stops;
    from->station.stop(start - (start - ready) / 2);
  }
  if (config_.ethernet && mark(*packet, waiting)) {
    ++counters_.marked;
    packet = PacketPool::copy(*packet);
    packet->tclass |= kCe;
  }
  to.free = start + lasts;
  to.station.deliver(to.free + to.station.cable, std::move(packet));
  return to.free;
}

}  // namespace hcasim
