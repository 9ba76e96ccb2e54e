// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/run.h"

#include <algorithm>
#include <cstring>

#include "model/port/codec.h"
#include "model/port/port.h"
#include "model/port/traits.h"

namespace hcasim {

using traces::Point;

std::uint8_t part_opcode(const Packet& run, unsigned i) {
  if (run.of_messages) return run.opcode;
  const prm::BthTraits& traits = traits_of(run.opcode);
  return piece_opcode(run.opcode, traits.first && i == 0, traits.last && i + 1 == run.packets);
}

PacketRef part_of(Packet& run, unsigned i) {
  PacketRef made = PacketPool::make();
  Packet& p = *made;
  const auto header =
      reinterpret_cast<const std::uint8_t*>(&run.refs_) - reinterpret_cast<std::uint8_t*>(&run);
  std::memcpy(static_cast<void*>(&p), &run, static_cast<std::size_t>(header));
  p.landing = nullptr;
  const bool end = i + 1 == run.packets;
  const std::uint32_t from = i * run.unit;
  p.packets = 1;
  p.of_messages = false;
  p.opcode = part_opcode(run, i);
  if (run.of_messages) {
    p.va = run.message[i].va;
    p.rkey = run.message[i].rkey;
    p.wqe_serial = part_serial(run, i);
  }
  p.psn = (run.psn + i) & kPsnMask;
  p.payload_len = end ? run.payload_len - from : run.unit;
  p.ack_req = run.ack_req && end;
  p.solicited = run.solicited && end;
  if (!run.borrowed()) {
    p.keep(run.data() + from);
    return made;
  }
  // One more that borrows from the same memory.
  p.loan_ = run.loan_;
  p.loan_.bytes += from;
  p.loan_.from += from;
  p.loan_.link = &run.loan_.next;
  if (p.loan_.next) p.loan_.next->loan_.link = &p.loan_.next;
  run.loan_.next = &p;
  return made;
}

// ---- The port

namespace {

std::uint32_t part_length(const Packet& run, unsigned i) {
  return i + 1 == run.packets ? run.payload_len - i * run.unit : run.unit;
}

}  // namespace

// What each packet of a run takes on the wire besides its payload and the headers of its opcode.
std::uint32_t Port::frame_bytes(const Packet& run) {
  return wire_bytes(run) - traits_of(run.opcode).ext_bytes - padded(run.payload_len);
}

// Of a message's packets only the first may have an extended header, its RETH: they have no immediate.
std::uint32_t Port::part_bytes(const Packet& run, std::uint32_t frame, unsigned i) {
  const std::uint32_t extended = i == 0 || run.of_messages ? traits_of(run.opcode).ext_bytes : 0;
  return frame + extended + padded(part_length(run, i));
}

std::uint64_t Port::run_bytes(const Packet& run) {
  const unsigned n = run.packets;
  const std::uint32_t frame = frame_bytes(run);
  if (run.of_messages) return std::uint64_t{n} * part_bytes(run, frame, 0);
  return std::uint64_t{n} * frame + traits_of(run.opcode).ext_bytes +
         std::uint64_t{n - 1} * padded(run.unit) + padded(part_length(run, n - 1));
}

Time Port::full_packet(std::uint32_t payload) const {
  if (payload == full_.payload && link_ == full_.link) return full_.lasts;
  Packet like;
  like.kind = link_ == LinkType::kIb ? PacketKind::kIb : PacketKind::kRoceV2;
  like.opcode = static_cast<std::uint8_t>(prm::BthOp::kWriteMiddle);
  like.payload_len = payload;
  full_ = {payload, link_, duration(like, wire_bytes(like))};
  return full_.lasts;
}

bool Port::takes_runs() const {
  const PortFaults& f = faults_cfg_;
  const bool harms = f.drop + f.duplicate + f.reorder + f.corrupt + f.garble + f.ecn + f.ecn_kmax > 0;
  return !harms && !switched() && !(group_ && group_->aggregated()) && !gate_.open(FaultType::kWire) &&
         !each_packet() && !credits_.limited() && state_ == PortState::kActive &&
         !pause_.active(tx_.free_at()) && (!wire_ || wire_->takes_runs());
}

bool Port::takes_messages(Time t, const Packet& like, MessageSize& size) const {
  if (!takes_runs() || pause_.active(t) || like.internal || like.kind == PacketKind::kEthernet ||
      !addresses_.open(like.function) || !passes(like, false) || is_multicast(like.dlid))
    return false;
  const Route to = route(like);
  if (to.back == to.out || (to.out && !wire_->takes_messages())) return false;
  size.bytes = wire_bytes(like);
  size.lasts = span(size.bytes + wire_overhead(like) - framing(like, to));
  return true;
}

// Their WQEs and PSNs count up.
void Port::trace_sent(const Packet& p, const MessageSize& size) {
  std::array<Time, kMaxRun> starts;
  for (unsigned i = 0; i < p.packets; ++i) starts[i] = p.at[i] - size.lasts;
  const traces::Subject sender{p.function, p.trace_qpn};
  const std::uint64_t what = psn_opcode(p.opcode, p.psn);
  tracer_.record_series(Point::kPacketTxFirst, starts.data(), p.packets, sender, p.wqe_serial, what, 1,
                        p.unit);
  tracer_.record_series(Point::kPacketTxLast, p.at.data(), p.packets, sender, p.wqe_serial, what, 1,
                        p.trace_packets);
}

void Port::send_messages(PacketRef&& packet, const MessageSize& size) {
  Packet& p = *packet;
  const unsigned n = p.packets;
  const Route to = route(p);
  p.first_bit = p.at[0] - size.lasts;
  const std::uint64_t bytes = std::uint64_t{n} * size.bytes;
  counters_.tx_packets += n;
  counters_.tx_bytes += counted(bytes, n);
  counters_.tx_data += p.payload_len;
  if (n > 1) ++counters_.tx_runs;
  if (tracer_.enabled()) trace_sent(p, size);
  if (link_ == LinkType::kEthernet)
    count_tx(p, bytes, to, n);
  else
    addresses_.sent(p.function, false, counted(bytes, n), n);
  p.looped = to.back;
  const Time end = p.at[n - 1];
  if (!to.back) return wire_->transmit(end, packet);
  for (unsigned i = 0; i < n; ++i) p.at[i] += profile_.port.loopback;
  rx_.push(end + profile_.port.loopback, std::move(packet));
}

// A run is longer than what the scheduler lets packets wait for. Who has so much of it before him goes
// between its packets, as had each of them come with a turn of its own, and not before any that went so
// earlier. The time is taken behind the run, whose times are announced already: its packets that are left are
// too early by as much.
Time Port::reserve(Time t, Time lasts, const Packet& p) {
  const Time start = tx_.reserve(t, lasts, shortest_);
  if (tail_.packets == 0 || start <= tail_.starts[0]) return start;
  // Its own QP's requests have their order.
  if (p.trace_qpn == tail_.requester && traits_of(p.opcode).request) return start;
  Time found = start;
  if (start > t + backlog_limit_) {
    const Time *first = tail_.starts.data(), *end = first + tail_.packets;
    const Time* place = std::lower_bound(first, end, t + backlog_limit_);
    if (place != end) found = std::min(start, std::max(*place, taken_));
  }
  taken_ = std::max(taken_, found + lasts);
  return found;
}

Time Port::one_by_one(Packet& run) {
  Time end = 0;
  each_part(run, [&](Time t, PacketRef& part) { end = transmit(t, std::move(part)); });
  return end;
}

Time Port::transmit_run(PacketRef&& packet) {
  Packet& p = *packet;
  const unsigned n = p.packets;
  if (p.internal) {
    p.looped = true;
    for (unsigned i = 0; i < n; ++i) p.at[i] += profile_.port.loopback;
    rx_.push(p.at[n - 1], std::move(packet));
    return p.at[n - 1] - profile_.port.loopback;
  }
  if (p.kind == PacketKind::kEthernet) return one_by_one(p);  // a RoCE packet without a source
  const Route to = route(p);
  if (!takes_runs() || to.back == to.out || pause_.active(p.at[n - 1]) || !addresses_.open(p.function))
    return one_by_one(p);
  const std::uint32_t frame = frame_bytes(p), spared = framing(p, to);
  std::uint64_t bytes = 0;
  std::uint32_t own = 0;
  Time lasts = 0;
  bool behind = false;
  for (unsigned i = 0; i < n; ++i) {
    if (i <= 1 || i + 1 == n) {  // those between are as the one before
      own = part_bytes(p, frame, i);
      lasts = span(own + wire_overhead(p) - spared);
      behind = tx_.appends(p.at[i], lasts);
    }
    bytes += own;
    const Time start =
        behind ? tx_.append(p.at[i], lasts, shortest_) - lasts : tx_.reserve(p.at[i], lasts, shortest_);
    if (i == 0) p.first_bit = start;
    tail_.starts[i] = start;
    p.at[i] = start + lasts;
  }
  tail_.requester = p.trace_qpn;
  tail_.packets = n;
  const Time end = p.at[n - 1];
  ++counters_.tx_runs;
  counters_.tx_packets += n;
  counters_.tx_bytes += counted(bytes, n);
  counters_.tx_data += p.payload_len;
  if (tracer_.enabled()) {
    const prm::BthTraits& traits = traits_of(p.opcode);
    if (traits.first)
      traces::trace(tracer_, Point::kPacketTxFirst, p.first_bit, {p.function, p.trace_qpn}, p.wqe_serial,
                    psn_opcode(part_opcode(p, 0), p.psn), p.unit);
    if (traits.last)
      traces::trace(tracer_, Point::kPacketTxLast, end, {p.function, p.trace_qpn}, p.wqe_serial,
                    psn_opcode(part_opcode(p, n - 1), p.psn + n - 1), p.trace_packets);
  }
  if (link_ == LinkType::kEthernet)
    count_tx(p, bytes, to, n);
  else
    addresses_.sent(p.function, false, counted(bytes, n), n);
  p.looped = to.back;
  if (to.back) {
    for (unsigned i = 0; i < n; ++i) p.at[i] += profile_.port.loopback;
    rx_.push(p.at[n - 1], std::move(packet));
  } else {
    wire_->transmit(end, packet);
  }
  return end;
}

// Nothing would become of one of its packets that does not become of all.
bool Port::passes_run(const Packet& run) const {
  const bool ethernet = link_ == LinkType::kEthernet;
  return passes(run, true) && (run.kind == PacketKind::kIb) != ethernet &&
         (ethernet ? !pause_tx && !pfc_tx : ours(run.dlid));
}

void Port::trace_received_run(const Packet& p) {
  const traces::Subject sender{p.function, p.trace_qpn};
  if (p.of_messages) {
    tracer_.record_series(Point::kPacketRx, p.at.data(), p.packets, sender, p.wqe_serial,
                          psn_opcode(p.opcode, p.psn), 1, p.unit);
    return;
  }
  for (unsigned i = 0; i < p.packets; ++i)
    traces::trace(tracer_, Point::kPacketRx, p.at[i], sender, p.wqe_serial,
                  psn_opcode(part_opcode(p, i), p.psn + i), part_length(p, i));
}

void Port::arrive_run(Time t, PacketRef& packet) {
  Packet& p = *packet;
  const unsigned n = p.packets;
  const Time further = t - p.at[n - 1];
  for (unsigned i = 0; i < n; ++i) p.at[i] += further;
  const bool plain = !each_packet() && (p.internal || (!gate_.open(FaultType::kWire) && passes_run(p)));
  if (!plain) {
    each_part(p, [this](Time at, PacketRef& part) { arrive(at, part); });
    return;
  }
  if (!p.internal) {
    const std::uint64_t bytes = run_bytes(p);
    counters_.rx_packets += n;
    counters_.rx_bytes += counted(bytes, n);
    counters_.rx_data += p.payload_len;
    if (link_ == LinkType::kEthernet) count_rx(p, bytes, n);
  }
  p.streamed = p.internal ? 0 : ahead_of_end(p.unit, ps_per_byte_);
  if (tracer_.enabled()) trace_received_run(p);
  if (receive_) receive_(t, packet);
}

}  // namespace hcasim
