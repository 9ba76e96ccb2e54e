// SPDX-License-Identifier: BSD-3-Clause
// What is particular to the port on an Ethernet link: MAC counters, pause frames.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model/port/port.h"

namespace hcasim {

namespace {

VportTraffic::Cast cast_of(const std::uint8_t* mac) {
  if (!(mac[0] & 1)) return VportTraffic::kUnicast;
  return std::all_of(mac, mac + 6, [](std::uint8_t b) { return b == 0xff; }) ? VportTraffic::kBroadcast
                                                                             : VportTraffic::kMulticast;
}

void count(MacCounters::Direction& d, VportTraffic::Cast cast, unsigned prio, std::uint64_t bytes,
           unsigned frames = 1) {
  d.frames += frames;
  d.octets += bytes;
  if (cast == VportTraffic::kMulticast) d.multicast += frames;
  if (cast == VportTraffic::kBroadcast) d.broadcast += frames;
  d.prio_frames[prio] += frames;
  d.prio_octets[prio] += bytes;
}

void count(VportTraffic::Count& c, std::uint64_t bytes, unsigned frames) {
  c.packets += frames;
  c.octets += bytes;
}

}  // namespace

void Port::count_tx(const Packet& p, std::uint64_t bytes, Route to, unsigned frames) {
  count_vport_tx(p, bytes, frames);
  if (to.out || !wire_) return count_cable_tx(p, bytes, frames);
  if (cast_of(p.dest_mac()) == VportTraffic::kMulticast) counters_.tx_multicast += frames;
}

void Port::count_vport_tx(const Packet& p, std::uint64_t bytes, unsigned frames) {
  const VportTraffic::Cast cast = cast_of(p.dest_mac());
  VportTraffic& v = counters_.vport;
  const bool rdma = p.kind != PacketKind::kEthernet;
  count((rdma ? v.tx_rdma : v.tx_eth)[cast], bytes, frames);
  addresses_.counts_frames(p.function, false, rdma, cast, bytes, frames);
}

void Port::count_cable_tx(const Packet& p, std::uint64_t bytes, unsigned frames) {
  const VportTraffic::Cast cast = cast_of(p.dest_mac());
  if (cast == VportTraffic::kMulticast) counters_.tx_multicast += frames;
  count(counters_.mac.tx, cast, priorities.of(p), bytes, frames);
  if (is_mac_control(p)) ++counters_.mac.tx.control;
}

// The vport's share is counted where it is known whether a frame is RoCE: count_vport_rx().
void Port::count_rx(const Packet& p, std::uint64_t bytes, unsigned frames) {
  const VportTraffic::Cast cast = cast_of(p.dest_mac());
  if (cast == VportTraffic::kMulticast) counters_.rx_multicast += frames;
  if (p.looped && wire_) return;  // never was on the cable
  count(counters_.mac.rx, cast, priorities.of(p), bytes, frames);
  auto& sizes = counters_.mac.rx_sizes;
  if (frames == 1) {
    ++sizes[MacCounters::size_class(static_cast<std::uint32_t>(bytes))];
    return;
  }
  const std::uint32_t frame = frame_bytes(p);
  ++sizes[MacCounters::size_class(part_bytes(p, frame, 0))];
  ++sizes[MacCounters::size_class(part_bytes(p, frame, frames - 1))];
  if (frames > 2) sizes[MacCounters::size_class(part_bytes(p, frame, 1))] += frames - 2;
}

void Port::count_vport_rx(const Packet& p) {
  VportTraffic& v = counters_.vport;
  const bool rdma = p.kind != PacketKind::kEthernet;
  const VportTraffic::Cast cast = cast_of(p.dest_mac());
  count((rdma ? v.rx_rdma : v.rx_eth)[cast], bytes_of(p), p.packets);
  addresses_.counts_frames(p.function, true, rdma, cast, bytes_of(p), p.packets);
}

void Port::set_buffers(const PortBuffers& buffers) {
  buffers_ = buffers;
  set_thresholds();
}

// Cells in times: how long the link takes to fill them.
void Port::set_thresholds() {
  const auto time_of = [this](unsigned cells) {
    return static_cast<Time>(cells * PortBuffers::kCell * ps_per_byte_);
  };
  for (unsigned i = 0; i < kPriorities; ++i) {
    const PortBuffers::Buffer& b = buffers_.buffers[buffers_.of_priority[i]];
    pause_.set_thresholds(i, b.lossy ? 0 : time_of(b.xoff), time_of(b.xon));
  }
}

void Port::take_pause(Time t, const Packet& p) {
  PauseFrame frame;
  ++counters_.mac.rx.control;
  if (!parse_pause(p, frame)) {
    ++counters_.mac.rx_unsupported;
    return;
  }
  ++counters_.mac.rx.pause;
  std::uint8_t obeyed = pfc_rx;
  if (frame.by_priority) {
    for (unsigned i = 0; i < kPriorities; ++i) counters_.mac.rx.prio_pause[i] += frame.priorities >> i & 1;
    obeyed &= frame.priorities;
  } else {
    // A port that obeys one kind does not obey the other.
    if (pfc_rx == 0) ++counters_.mac.rx.prio_pause[0];
    obeyed = pause_rx && !pfc_rx ? 0xff : 0;
  }
  traces::trace(tracer_, traces::Point::kPauseRx, t, 1u, 0u, obeyed, frame.quanta[0]);
  if (obeyed) pause_.take(t, frame, obeyed);
}

// Between the frames that are on their way, not behind them, and whatever has stopped those.
void Port::send_pause(Time t, const PauseFrame& frame) {
  if (state_ != PortState::kActive) return;
  PacketRef p = make_pause(station_mac, frame);
  const std::uint32_t bytes = wire_bytes(*p);
  MacCounters::Direction& tx = counters_.mac.tx;
  count(tx, VportTraffic::kMulticast, 0, bytes);
  ++tx.control;
  ++tx.pause;
  for (unsigned i = 0; i < kPriorities; ++i)
    tx.prio_pause[i] += frame.by_priority ? frame.priorities >> i & 1u : i == 0;
  traces::trace(tracer_, traces::Point::kPauseTx, t, 1u, 0u, frame.by_priority ? frame.priorities : 0xffu,
                frame.quanta[0]);
  const Time end = t + duration(*p, wire_bytes(*p));
  if (capture_) capture(end, *p, Direction::kOut);
  send(end, std::move(p), {wire_ == nullptr, wire_ != nullptr}, 0);
}

}  // namespace hcasim
