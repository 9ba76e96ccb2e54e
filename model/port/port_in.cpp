// SPDX-License-Identifier: BSD-3-Clause
// What comes into the port, over the cable, its loopback and from within the card: the fault generator's
// turn, counters, and whether it is for us.
#include <algorithm>
#include <utility>

#include "model/port/codec.h"
#include "model/port/garble.h"
#include "model/port/port.h"
#include "model/port/traits.h"
#include "model/port/wire_size.h"

namespace hcasim {

using traces::Point;

void Port::wire_receive(Time t, PacketRef packet) { rx_.push(t, std::move(packet)); }

// Of a packet that came over the wire the buffer of its lane is free again when it has been taken from there.
void Port::take_in(Time t, PacketRef& packet) {
  const Packet& p = *packet;
  if (!wire_ || p.looped || p.internal || p.packets > 1 || !has_lane(p)) return arrive(t, packet);
  const unsigned lane = p.vl;
  const std::uint32_t bytes = wire_bytes(p);
  arrive(t, packet);
  wire_->make_room(taken_in_ ? std::max(t, taken_in_()) : t, lane, bytes);
}

void Port::arrive(Time t, PacketRef& packet) {
  if (packet->packets > 1) return arrive_run(t, packet);
  if (!gate_.open(FaultType::kWire) || packet->internal) return come_in(t, packet);
  const Harm fault = harm(t, *packet, kFaultRx);
  if (fault.drop) {
    if (capture_) capture(t, *packet, Direction::kIn, "lost: fault injection");
    return drop(t, *packet, DropReason::kInjected);
  }
  if (fault.corrupt) {
    ++counters_.injected_corrupt;
    packet->corrupt = true;
  }
  if (fault.garble) {
    ++counters_.injected_garble;
    if (PacketRef other = garbled(*packet, random_))
      packet = std::move(other);
    else
      packet->corrupt = true;
  }
  if (fault.late != 0) {
    ++counters_.injected_reorder;
    late_.push(t + fault.late, std::move(packet));
    return;
  }
  if (fault.duplicate) {
    ++counters_.injected_dup;
    PacketRef again = PacketPool::copy(*packet);
    come_in(t, again);
  }
  come_in(t, packet);
}

void Port::come_in(Time t, PacketRef& packet) {
  const Packet& p = *packet;
  if (p.internal) {
    trace_received(t, p);
    if (receive_) receive_(t, packet);
    return;
  }
  const std::uint32_t bytes = wire_size(p);
  if (capture_) capture(t, p, Direction::kIn);
  if (tracer_.detail()) {
    traces::trace(tracer_, Point::kPacketIn, t, p.trace_qpn, p.wqe_serial, psn_opcode(p),
                  static_cast<std::uint64_t>(bytes) << 32 | static_cast<std::uint32_t>(duration(p, bytes)));
  }
  ++counters_.rx_packets;
  counters_.rx_bytes += counted(bytes, 1);
  counters_.rx_data += p.payload_len;
  if (p.switched_to == kNoFunction && !passes(p, true)) return drop_received(t, p, DropReason::kLinkDown);
  if ((p.kind == PacketKind::kIb) != (link_ == LinkType::kIb) ||
      (p.kind == PacketKind::kEthernet && p.frame_len < sizeof(prm::EthHdr))) {
    drop(t, p, DropReason::kMalformed);
    return;
  }
  if (link_ == LinkType::kEthernet) {
    if (p.corrupt && p.kind == PacketKind::kEthernet) ++counters_.mac.rx_fcs_errors;
    if (p.corrupt) {
      drop(t, p, p.kind == PacketKind::kEthernet ? DropReason::kCorrupt : DropReason::kIcrc);
      return;
    }
    if (__builtin_expect(bytes > max_frame, 0) && too_long(p)) {
      ++counters_.mac.rx_too_long;
      ++counters_.rx_dropped;
      trace_drop(tracer_, t, p, DropReason::kTooLong);
      return;
    }
    count_rx(p, bytes);
    if (p.kind == PacketKind::kEthernet) {
      const std::uint8_t* type = p.frame() + offsetof(prm::EthHdr, ethertype);
      if ((type[0] << 8 | type[1]) == kMacControl) {
        take_pause(t, p);
        return;
      }
    }
    if (pause_tx || pfc_tx) pause_.arrived(t, priorities.of(p), pause_tx, pfc_tx);
  } else {
    if (is_multicast(p.dlid)) ++counters_.rx_multicast;
    if (p.corrupt) {
      drop(t, p, DropReason::kCorrupt);
      return;
    }
    const bool directed = p.vl15 && p.dlid == kPermissiveLid;
    if (!is_multicast(p.dlid) && !ours(p.dlid) && !directed) {
      drop(t, p, DropReason::kNoAddress);
      return;
    }
  }
  if (p.kind != PacketKind::kEthernet) found_roce(t, *packet);
  if (receive_) receive_(t, packet);
}

// From the cable. RoCE goes by the MTU of its path, here as when it is sent.
bool Port::too_long(const Packet& p) const {
  if (p.kind != PacketKind::kEthernet || (p.looped && wire_)) return false;
  return decode_roce(*PacketPool::copy(p)) == Decoded::kNotRoce;
}

void Port::found_roce(Time t, Packet& p) {
  trace_received(t, p);
  p.streamed = ahead_of_end(p.payload_len, ps_per_byte_);
}

void Port::trace_received(Time t, const Packet& p) {
  if (tracer_.enabled() && traits_of(p.opcode).request) {
    traces::trace(tracer_, Point::kPacketRx, t, {p.function, p.trace_qpn}, p.wqe_serial, psn_opcode(p),
                  p.payload_len);
  }
}

}  // namespace hcasim
