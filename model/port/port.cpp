// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/port.h"

#include <algorithm>
#include <cmath>

#include "model/port/traits.h"

namespace hcasim {

using traces::Point;

namespace {

constexpr std::uint16_t kMulticastFirst = 0xc000, kMulticastLast = 0xfffe;
constexpr std::uint16_t kFullMember = 0x8000, kPkeyBase = 0x7fff;

bool is_multicast(std::uint16_t dlid) { return dlid >= kMulticastFirst && dlid <= kMulticastLast; }

std::uint64_t psn_opcode(const Packet& p) {
  return static_cast<std::uint64_t>(p.opcode) << 24 | (p.psn & kPsnMask);
}

}  // namespace

Port::Port(const sc_core::sc_module_name& name, const Profile& profile, traces::Tracer& tracer,
           FaultSink& faults)
    : sc_module(name),
      profile_(profile),
      tracer_(tracer),
      ps_per_byte_(8000.0 / profile.port.rate_gbps),
      rx_(
          "rx", [this](Time due, PacketRef& packet) { arrive(due, packet); }, faults,
          profile.engine.batch_window) {
  Packet largest_like;
  largest_like.payload_len = profile.port.max_mtu;
  backlog_limit_ =
      static_cast<Time>(profile.port.tx_backlog_packets * (wire_bytes(largest_like) * ps_per_byte_));
}

std::uint32_t Port::wire_bytes(const Packet& p) {
  const std::uint32_t padded = (p.payload_len + 3) & ~3u;
  return static_cast<std::uint32_t>(sizeof(prm::Lrh) + (p.has_grh ? sizeof(prm::Grh) : 0) +
                                    sizeof(prm::Bth)) +
         traits_of(p.opcode).ext_bytes + padded + prm::kIcrcBytes + prm::kVcrcBytes;
}

bool Port::ours(std::uint16_t dlid) const {
  const std::uint16_t mask = static_cast<std::uint16_t>(~((1u << (lmc & 7)) - 1));
  return lid_ != 0 && (dlid & mask) == (lid_ & mask);
}

bool Port::hit(double probability) {
  if (probability <= 0) return false;
  // Not std::bernoulli_distribution: its results may differ between libraries.
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

void Port::reseed() { random_.seed(faults_cfg_.seed); }

void Port::drop(Time t, const Packet& p, DropReason reason) {
  switch (reason) {
    case DropReason::kLinkDown:
    case DropReason::kNoPath:
      ++counters_.tx_discards;
      break;
    case DropReason::kInjected:
      ++counters_.injected_drop;
      break;
    case DropReason::kCorrupt:
      ++counters_.rx_errors;
      break;
    default:
      ++counters_.rx_dropped;
      break;
  }
  traces::trace(tracer_, Point::kPacketDrop, t, p.trace_qpn, p.wqe_serial, psn_opcode(p), reason);
}

Time Port::transmit(Time t, PacketRef packet) {
  Packet& p = *packet;
  if (state_ != PortState::kActive) {
    drop(t, p, DropReason::kLinkDown);
    return t;
  }
  const std::uint32_t bytes = wire_bytes(p);
  const Time duration = static_cast<Time>(bytes * ps_per_byte_ + 0.5);
  const Time start = tx_.reserve(t, duration);
  const Time end = start + duration;
  p.first_bit = start;
  ++counters_.tx_packets;
  counters_.tx_bytes += bytes;
  counters_.tx_data += p.payload_len;
  const bool multicast = is_multicast(p.dlid);
  if (multicast) ++counters_.tx_multicast;
  if (tracer_.enabled()) {
    const prm::BthTraits& traits = traits_of(p.opcode);
    if (traits.request && traits.first) {
      traces::trace(tracer_, Point::kPacketTxFirst, start, p.trace_qpn, p.wqe_serial, psn_opcode(p),
                    p.payload_len);
    }
    if (traits.request && traits.last) {
      traces::trace(tracer_, Point::kPacketTxLast, end, p.trace_qpn, p.wqe_serial, psn_opcode(p),
                    p.trace_packets);
    }
  }
  if (!multicast && !ours(p.dlid)) {
    drop(end, p, DropReason::kNoPath);
    return end;
  }
  if (hit(faults_cfg_.drop)) {
    drop(end, p, DropReason::kInjected);
    return end;
  }
  Time arrival = end + profile_.port.loopback;
  if (hit(faults_cfg_.corrupt)) {
    ++counters_.injected_corrupt;
    p.corrupt = true;
  }
  if (hit(faults_cfg_.duplicate)) {
    ++counters_.injected_dup;
    rx_.push(arrival, packet);
    arrival += duration;
  }
  if (hit(faults_cfg_.reorder)) {
    ++counters_.injected_reorder;
    arrival += faults_cfg_.reorder_delay;
  }
  rx_.push(arrival, std::move(packet));
  return end;
}

void Port::arrive(Time t, PacketRef& packet) {
  const Packet& p = *packet;
  ++counters_.rx_packets;
  counters_.rx_bytes += wire_bytes(p);
  counters_.rx_data += p.payload_len;
  if (is_multicast(p.dlid)) ++counters_.rx_multicast;
  if (state_ != PortState::kActive) {
    drop(t, p, DropReason::kLinkDown);
    return;
  }
  if (p.corrupt) {
    drop(t, p, DropReason::kCorrupt);
    return;
  }
  if (tracer_.enabled() && traits_of(p.opcode).request) {
    traces::trace(tracer_, Point::kPacketRx, t, p.trace_qpn, p.wqe_serial, psn_opcode(p), p.payload_len);
  }
  if (receive_) receive_(t, packet);
}

bool Port::pkey_valid(std::uint16_t pkey) const {
  const std::uint16_t base = pkey & kPkeyBase;
  if (base == 0) return false;
  return std::any_of(pkeys.begin(), pkeys.end(), [&](std::uint16_t own) {
    return (own & kPkeyBase) == base && ((own | pkey) & kFullMember) != 0;
  });
}

void Port::reset() {
  state_ = PortState::kDown;
  lid_ = 0;
  lmc = 0;
  sm_lid = 0;
  sm_sl = 0;
  std::fill(gids.begin(), gids.end(), Gid{});
  std::fill(pkeys.begin(), pkeys.end(), std::uint16_t{0});
  tx_.clear();
  rx_.clear();
  counters_ = {};
  reseed();
}

}  // namespace hcasim
