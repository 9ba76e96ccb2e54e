// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/port.h"

#include <algorithm>
#include <cmath>

#include "model/port/codec.h"
#include "model/port/garble.h"
#include "model/port/traits.h"
#include "model/port/wire_size.h"
#include "model/state/state.h"

namespace hcasim {

using traces::Point;

void trace_drop(traces::Tracer& tracer, Time t, const Packet& p, DropReason reason) {
  if (p.of_messages) {
    tracer.record_series(Point::kPacketDrop, p.at.data(), p.packets, {p.function, p.trace_qpn}, p.wqe_serial,
                         psn_opcode(p.opcode, p.psn), 1, static_cast<std::uint64_t>(reason));
    return;
  }
  traces::trace(tracer, Point::kPacketDrop, t, {p.function, p.trace_qpn}, p.wqe_serial, psn_opcode(p),
                reason);
}

Port::Port(const sc_core::sc_module_name& name, const Profile& profile, traces::Tracer& tracer,
           FaultSink& faults, LocalAddresses& addresses)
    : sc_module(name),
      profile_(profile),
      tracer_(tracer),
      addresses_(addresses),
      rate_gbps_(profile.port.rate_gbps),
      pause_("pause", profile.port.rx_xoff, profile.port.rx_xon, faults),
      credits_("credits", faults),
      rx_(
          "rx",
          [this](Time due, PacketRef& packet) {
            if (__builtin_expect(profile_.port.lane_buffer != 0, 0)) return take_in(due, packet);
            arrive(due, packet);
          },
          faults, profile.engine.batch_window),
      held_(
          "held",
          [this](Time due, PacketRef& packet) {
            if (wire_) wire_->transmit(due, packet);
          },
          faults),
      late_(
          "late", [this](Time due, PacketRef& packet) { come_in(due, packet); }, faults) {
  pause_.connect({[this](Time t, PacketRef packet) { transmit_now(t, std::move(packet)); },
                  [this](Time t) {
                    if (resume_) resume_(t);
                  },
                  [this](Time t, const PauseFrame& frame) { send_pause(t, frame); }});
  credits_.connect({[this](Time t, PacketRef packet, std::uint32_t) {
                      // The link, or its function's vport, has gone down meanwhile.
                      if (!passes(*packet, false) || !addresses_.open(packet->function))
                        credits_.give_back(t, packet->vl, wire_bytes(*packet));
                      transmit_now(t, std::move(packet));
                    },
                    [this](Time t) {
                      if (resume_) resume_(t);
                    }});
  set_rate(rate_gbps_);
}

void Port::connect(Wire* wire) {
  wire_ = wire;
  credits_.set_room(wire && link_ == LinkType::kIb ? wire->room_of_lanes() : 0);
}

void Port::set_state(PortState s) {
  const bool down = state_ != PortState::kDown && s == PortState::kDown;
  state_ = s;
  if (!down) return;
  if (credits_.limited()) credits_.renew(sim_now());
  if (wire_) wire_->emptied();
}

void Port::set_rate(double gbps) {
  rate_gbps_ = gbps;
  ps_per_byte_ = 8000.0 / profile_.port.packets_gbps(gbps, link_ == LinkType::kIb);
  shortest_ = span(kShortestPacket);
  full_ = {};
  pause_.set_quantum(kQuantumBits / 8.0 * ps_per_byte_);
  set_thresholds();
  Packet largest_like;
  largest_like.payload_len = profile_.port.max_mtu;
  backlog_limit_ =
      static_cast<Time>(profile_.port.tx_backlog_packets * (wire_bytes(largest_like) * ps_per_byte_));
}

std::uint32_t Port::wire_bytes(const Packet& p) { return wire_size(p); }

bool Port::ours(std::uint16_t dlid) const {
  const std::uint16_t mask = static_cast<std::uint16_t>(~((1u << (lmc & 7)) - 1));
  return lid_ != 0 && (dlid & mask) == (lid_ & mask);
}

bool Port::ours(const std::uint8_t* mac) const {
  Mac dest;
  std::copy(mac, mac + dest.size(), dest.begin());
  return addresses_.is_local(dest);
}

// IBTA 7.2.2: while the link is not ACTIVE, SMPs pass, and an ARMED port takes all that comes in.
bool Port::passes(const Packet& p, bool inward) const {
  if (state_ == PortState::kActive) return inward || p.vl != VirtualLanes::kNone || p.vl15;
  if (state_ == PortState::kDown || link_ != LinkType::kIb) return false;
  return p.vl15 || (inward && state_ == PortState::kArmed);
}

bool Port::hit(double probability) {
  if (probability <= 0) return false;
  // Not std::bernoulli_distribution: its results may differ between libraries.
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

Port::Harm Port::harm(Time t, const Packet& p, std::uint64_t direction) {
  Injector* injector = gate_.open(FaultType::kWire);
  if (!injector) return {};
  const FaultSpec* fault =
      p.kind == PacketKind::kEthernet
          ? injector->strike(FaultType::kWire, t, {{FaultKey::kDirection, direction}}, 0, 0)
          : injector->strike(FaultType::kWire, t,
                             {{FaultKey::kDirection, direction},
                              {FaultKey::kOpcode, static_cast<std::uint64_t>(p.opcode & prm::bth::kOpMask)},
                              {FaultKey::kQpn, p.dest_qpn},
                              {FaultKey::kPsn, p.psn}},
                             p.dest_qpn, psn_opcode(p));
  if (!fault) return {};
  constexpr Time kReorderDelay = from_ns(5000);
  Harm h;
  switch (fault->action) {
    case FaultAction::kCorrupt:
      h.corrupt = true;
      break;
    case FaultAction::kGarble:
      h.garble = true;
      break;
    case FaultAction::kDuplicate:
      h.duplicate = true;
      break;
    case FaultAction::kReorder:
      h.late = fault->time(FaultKey::kDelay, kReorderDelay);
      break;
    case FaultAction::kWireDelay:
      h.late = fault->time(FaultKey::kDelay);
      break;
    case FaultAction::kWireDown:
      h.drop = true;
      injector->begin_for_a_while(t, *fault);
      break;
    default:
      h.drop = true;
      break;
  }
  return h;
}

void Port::reseed() { random_.seed(faults_cfg_.seed); }

void Port::drop(Time t, const Packet& p, DropReason reason) {
  const unsigned n = p.packets;
  switch (reason) {
    case DropReason::kLinkDown:
    case DropReason::kNoPath:
      counters_.tx_discards += n;
      break;
    case DropReason::kTooLong:
      counters_.tx_errors += n;
      break;
    case DropReason::kInjected:
      counters_.injected_drop += n;
      break;
    case DropReason::kIcrc:
      counters_.rx_icrc_errors += n;
      counters_.rx_errors += n;
      break;
    case DropReason::kCorrupt:
      counters_.rx_errors += n;
      break;
    case DropReason::kPkey:
      counters_.pkey_violations += n;
      counters_.rx_dropped += n;
      break;
    case DropReason::kQkey:
      counters_.qkey_violations += n;
      break;
    default:
      counters_.rx_dropped += n;
      break;
  }
  trace_drop(tracer_, t, p, reason);
}

void Port::drop_received(Time t, const Packet& p, DropReason reason) {
  counters_.rx_dropped += p.packets;
  trace_drop(tracer_, t, p, reason);
}

Time Port::duration(const Packet& p, std::uint32_t bytes) const { return span(bytes + wire_overhead(p)); }

Time Port::span(std::uint32_t bytes) const {
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  return static_cast<Time>(bytes * ps_per_byte_ + 0.5);
}

// RoCE from one QP of the card to another goes without what Ethernet and IP put before and behind it.
std::uint32_t Port::framing(const Packet& p, const Route& to) const {
  if (to.out || p.kind == PacketKind::kIb || p.kind == PacketKind::kEthernet || !ours(p.dest_mac())) return 0;
  return wire_bytes(p) + wire_overhead(p) - transport_bytes(p);
}

// A run, one that only goes round, or one that is looked at or stopped.
Time Port::transmit_other(Time t, PacketRef&& packet) {
  if (packet->packets > 1) return transmit_run(std::move(packet));
  if (packet->internal) {
    packet->looped = true;
    rx_.push(t + profile_.port.loopback, std::move(packet));
    return t;
  }
  if (link_ == LinkType::kEthernet && watch_ && state_ == PortState::kActive && !packet->crossed)
    watch_(t, *packet);
  if (group_ && !packet->crossed && !switched())
    if (Port* out = leaves_elsewhere(packet)) return cross(t, *out, std::move(packet));
  if (pause_.active(t)) {
    const unsigned priority = priorities.of(*packet);
    const Time open = pause_.open_at(t, priority), lasts = duration(*packet, wire_bytes(*packet));
    if (pause_.hold(t, priority, packet)) return open + lasts;
  }
  if (credits_.limited() && waits_for_credits(t, packet)) return tx_.free_at();
  return transmit_now(t, std::move(packet));
}

// Otherwise its credits are taken, if it needs any.
bool Port::waits_for_credits(Time t, PacketRef& packet) {
  const Packet& p = *packet;
  return has_lane(p) && passes(p, false) && addresses_.open(p.function) && route(p).out &&
         credits_.hold(t, p.vl, wire_bytes(p), packet);
}

// The far end learns from the next message of flow control what it has not got.
void Port::count_lost(Time t, const Packet& p) {
  if (has_lane(p)) credits_.give_back(t + 2 * profile_.port.wire_latency, p.vl, wire_bytes(p));
}

void Port::count_again(const Packet& p) {
  if (has_lane(p)) credits_.take(p.vl, wire_bytes(p));
}

// All but management goes by lanes that have credits (IBTA 7.6.4).
bool Port::has_lane(const Packet& p) const {
  return link_ == LinkType::kIb && !p.vl15 && p.vl < LaneCredits::kLanes;
}

// What waits counts as so many packets of the largest size.
Time Port::free_after_pause() const {
  const Time open = pause_.all_open();
  if (open <= tx_.free_at()) return tx_.free_at();
  return open + static_cast<Time>(pause_.waiting()) * backlog_limit_ / profile_.port.tx_backlog_packets;
}

void Port::trace_request(const Packet& p, Time start, Time end) {
  const prm::BthTraits& traits = traits_of(p.opcode);
  if (traits.request && traits.first) {
    traces::trace(tracer_, Point::kPacketTxFirst, start, {p.function, p.trace_qpn}, p.wqe_serial,
                  psn_opcode(p), p.payload_len);
  }
  if (traits.request && traits.last) {
    traces::trace(tracer_, Point::kPacketTxLast, end, {p.function, p.trace_qpn}, p.wqe_serial, psn_opcode(p),
                  p.trace_packets);
  }
}

[[gnu::always_inline]] inline void Port::leave(Time end, Time lasts, Time waited, PacketRef&& packet,
                                               const Route& to) {
  Packet& p = *packet;
  const Harm fault = gate_.open(FaultType::kWire) ? harm(end, p, kFaultTx) : Harm{};
  if (fault.drop || hit(faults_cfg_.drop)) {
    if (capture_) capture(end, p, Direction::kOut, "lost: fault injection");
    if (to.out && credits_.limited()) count_lost(end, p);
    drop(end, p, DropReason::kInjected);
    return;
  }
  Time left = end;  // when it is out of the port
  if (fault.corrupt || hit(faults_cfg_.corrupt)) {
    ++counters_.injected_corrupt;
    p.corrupt = true;
  }
  if (fault.garble || hit(faults_cfg_.garble)) {
    ++counters_.injected_garble;
    if (PacketRef other = garbled(p, random_))
      packet = std::move(other);
    else
      p.corrupt = true;
  }
  if (packet->kind == PacketKind::kRoceV2) mark_congestion(*packet, waited);
  if (fault.duplicate || hit(faults_cfg_.duplicate)) {
    ++counters_.injected_dup;
    if (capture_) capture(left, *packet, Direction::kOut, "sent twice: fault injection");
    if (to.out && credits_.limited()) count_again(*packet);
    send(left, PacketRef(packet), to, 0);
    left += lasts;
  }
  Time late = fault.late;
  if (late != 0) {
    ++counters_.injected_reorder;
  } else if (hit(faults_cfg_.reorder)) {
    ++counters_.injected_reorder;
    late = faults_cfg_.reorder_delay;
  }
  if (capture_) {
    const char* said = packet->corrupt ? "corrupted: fault injection"
                       : late != 0     ? "held back: fault injection"
                                       : nullptr;
    capture(left + late, *packet, Direction::kOut, said);
  }
  send(left, std::move(packet), to, late);
}

// The next time on the cable for a packet, which is counted.
inline Port::Slot Port::take_slot(Time t, Packet& p, std::uint32_t bytes, std::uint32_t spared) {
  const Time lasts = span(bytes + wire_overhead(p) - spared), start = reserve(t, lasts, p);
  p.first_bit = start;
  ++counters_.tx_packets;
  counters_.tx_bytes += counted(bytes, 1);
  counters_.tx_data += p.payload_len;
  return {lasts, start, start + lasts};
}

inline void Port::trace_out(const Slot& slot, const Packet& p, std::uint32_t bytes) const {
  if (tracer_.detail())
    traces::trace(tracer_, Point::kPacketOut, slot.start, {p.function, p.trace_qpn}, p.wqe_serial,
                  psn_opcode(p),
                  static_cast<std::uint64_t>(bytes) << 32 | static_cast<std::uint32_t>(slot.lasts));
}

Time Port::transmit_now(Time t, PacketRef&& packet) {
  if (__builtin_expect(switched() || group_, 0)) {
    if (packet->crossed) return transmit_crossed(t, std::move(packet));
    if (switched()) return transmit_switched(t, std::move(packet));
  }
  Packet& p = *packet;
  if (!passes(p, false) || !addresses_.open(p.function)) {
    drop(t, p,
         state_ == PortState::kActive && p.vl == VirtualLanes::kNone ? DropReason::kNoLane
                                                                     : DropReason::kLinkDown);
    return t;
  }
  if (p.kind == PacketKind::kEthernet && p.frame_len < sizeof(prm::EthHdr)) {
    drop(t, p, DropReason::kNoPath);  // RoCE without a source address
    return t;
  }
  const std::uint32_t bytes = wire_size(p);
  const Route to = route(p);
  const Slot slot = take_slot(t, p, bytes, framing(p, to));
  if (tracer_.enabled() && p.kind != PacketKind::kEthernet) trace_request(p, slot.start, slot.end);
  if (link_ == LinkType::kEthernet) {
    count_tx(p, bytes, to);
  } else {
    const bool multicast = is_multicast(p.dlid);
    if (multicast) ++counters_.tx_multicast;
    addresses_.sent(p.function, multicast, counted(bytes, 1), 1);
  }
  if (!to.back && !to.out) {
    drop(slot.end, p, DropReason::kNoPath);
    return slot.end;
  }
  trace_out(slot, p, bytes);
  report_departure(slot.start, p);
  p.looped = to.back && !to.out;
  leave(slot.end, slot.lasts, slot.start - t, std::move(packet), to);
  return slot.end;
}

// Nothing holds the sender of what comes in and goes out again back: it has a receive buffer, and beyond that
// it is lost.
bool Port::has_room_for_passing(Time t, const Packet& p) const {
  constexpr std::uint64_t kRoom = PortBuffers::kCells * PortBuffers::kCell;
  if (pause_.active(t)) return pause_.waiting() * wire_size(p) < kRoom;
  return tx_.free_at() < t + span(kRoom);
}

void Port::send_back(EmbeddedSwitch::Copy&& copy) {
  Port& out = way_out(copy);
  if (!out.wire_) return;
  Packet& p = *copy.packet;
  if (!out.has_room_for_passing(copy.at, p)) return drop(copy.at, p, DropReason::kNoRoom);
  p.crossed = true;
  out.transmit(copy.at, std::move(copy.packet));
}

// From a function of the card's other port (aggregate.cpp), or from the cable: out over it, whatever its
// address.
Time Port::transmit_crossed(Time t, PacketRef&& packet) {
  Packet& p = *packet;
  p.crossed = false;
  if (!passes(p, false)) {
    drop(t, p, DropReason::kLinkDown);
    return t;
  }
  const std::uint32_t bytes = wire_bytes(p);
  const Slot slot = take_slot(t, p, bytes, 0);
  count_cable_tx(p, bytes, 1);
  // The trace is of the HCA whose function it is.
  Port* home = group_ ? &group_->other() : nullptr;
  if (home && home->tracer_.enabled() && p.kind != PacketKind::kEthernet)
    home->trace_request(p, slot.start, slot.end);
  trace_out(slot, p, bytes);
  if (home) home->report_departure(slot.start, p);
  p.looped = wire_ == nullptr;
  leave(slot.end, slot.lasts, slot.start - t, std::move(packet), {wire_ == nullptr, wire_ != nullptr});
  return slot.end;
}

// Behind the switch a packet takes the port's time as all that is sent does; what stays in the card then
// comes back as on any other loop, and without a cable the uplink leads nowhere.
Time Port::transmit_switched(Time t, PacketRef&& packet) {
  Packet& p = *packet;
  if (p.kind == PacketKind::kEthernet && p.frame_len < sizeof(prm::EthHdr)) {
    drop(t, p, DropReason::kNoPath);
    return t;
  }
  copies_.clear();
  const PacketRef sent = packet;  // for what is told of it
  eswitch_->from_function(t, packet, copies_);
  Time switched = t;
  bool elsewhere = !copies_.empty();            // by another port alone, whose time it takes
  const EmbeddedSwitch::Copy* first = nullptr;  // that goes over the cable
  for (EmbeddedSwitch::Copy& copy : copies_) {
    switched = std::max(switched, copy.at);
    if (copy.to == kNoFunction) copy.way = &way_out(copy);
    elsewhere = elsewhere && copy.way != nullptr && copy.way != this;
    if (first == nullptr && copy.way == this && wire_ && passes(*copy.packet, false)) first = &copy;
  }
  // What goes over the cable takes its time as it is behind the switch, what stays in the card as it was
  // before.
  Packet& taken = first != nullptr ? *first->packet : p;
  const std::uint32_t bytes = wire_size(taken);
  Slot slot{0, switched, switched};
  if (!elsewhere) {
    slot = take_slot(switched, taken, bytes, 0);
    if (tracer_.enabled() && p.kind != PacketKind::kEthernet) trace_request(p, slot.start, slot.end);
  }
  if (wire_ && (first != nullptr || elsewhere))
    count_vport_tx(*sent, wire_size(*sent), 1);
  else
    count_tx(*sent, bytes, {!copies_.empty(), false});
  if (copies_.empty()) {
    drop(slot.end, *sent, addresses_.open(sent->function) ? DropReason::kRule : DropReason::kLinkDown);
    return slot.end;
  }
  if (!elsewhere) trace_out(slot, *sent, bytes);
  EmbeddedSwitch::Copies copies;
  copies.swap(copies_);
  Slot out = slot;
  for (EmbeddedSwitch::Copy& copy : copies) {
    if (copy.to != kNoFunction) {
      copy.packet->looped = true;
      copy.packet->switched_to = copy.to;
      if (copy.to != sent->function || copy.other)
        copy.packet->transport_domain = 0;  // which names nothing of others
      Port& at = copy.other ? group_->other() : *this;
      at.rx_.push(slot.end + profile_.port.loopback, std::move(copy.packet));
    } else if (copy.way != this) {
      copy.packet->crossed = true;
      copy.way->transmit(slot.end, std::move(copy.packet));
    } else if (!passes(*copy.packet, false)) {
      drop(slot.end, *copy.packet, DropReason::kLinkDown);
    } else if (wire_) {
      if (&copy != first) {
        const std::uint32_t own = wire_size(*copy.packet);
        out = take_slot(switched, *copy.packet, own, 0);
        trace_out(out, *copy.packet, own);
      }
      count_cable_tx(*copy.packet, wire_size(*copy.packet), 1);
      copy.packet->looped = false;
      report_departure(out.start, *copy.packet);
      leave(out.end, out.lasts, out.start - switched, std::move(copy.packet), {false, true});
    }
  }
  copies_ = std::move(copies);
  return out.end;
}

// IB: to our own LID and multicast over the loopback, all else and multicast over the cable. Ethernet: the
// same with MACs, but that without another cable there is one to ourselves.
Port::Route Port::route(const Packet& p) const {
  if (link_ == LinkType::kEthernet) {
    if (!wire_) return {true, false};
    const std::uint8_t* to = p.dest_mac();
    if (to[0] & 1) return {true, true};
    const bool own = ours(to);
    return {own, !own};
  }
  const bool multicast = is_multicast(p.dlid), own = ours(p.dlid);
  return {multicast || own, wire_ != nullptr && !own};
}

void Port::send(Time t, PacketRef&& packet, Route to, Time late) {
  if (to.back && !to.out) {
    rx_.push(t + late + profile_.port.loopback, std::move(packet));
    return;
  }
  if (to.back) {
    PacketRef back = PacketPool::copy(*packet);
    back->looped = true;
    rx_.push(t + late + profile_.port.loopback, std::move(back));
  }
  if (late)
    held_.push(t + late, std::move(packet));
  else
    wire_->transmit(t, packet);
}

void Port::mark_congestion(Packet& p, Time waits) {
  const unsigned ecn = p.tclass & kEcnMask;
  if (ecn == kNotEct || ecn == kCe) return;
  bool mark = false;
  if (faults_cfg_.ecn_kmax > 0) {
    const PortFaults& f = faults_cfg_;
    const double queue = static_cast<double>(waits) / ps_per_byte_;
    if (queue >= f.ecn_kmax)
      mark = true;
    else if (queue > f.ecn_kmin)
      mark = hit(f.ecn_pmax * (queue - f.ecn_kmin) / (f.ecn_kmax - f.ecn_kmin));
    counters_.ecn_marked += mark;
  }
  if (hit(faults_cfg_.ecn)) {
    mark = true;
    ++counters_.injected_ecn;
  }
  if (mark) p.tclass |= kCe;
}

void Port::capture_to(std::shared_ptr<traces::Capture> capture, const std::string& name) {
  capture_ = std::move(capture);
  using traces::Capture;
  if (capture_)
    capture_interface_ = capture_->add_interface(
        name, link_ == LinkType::kEthernet ? Capture::Link::kEthernet : Capture::Link::kInfiniBand);
}

void Port::capture(Time t, const Packet& p, Direction direction, const char* comment) {
  std::array<std::uint8_t, kMaxFrame> bytes;
  const std::size_t len = encode(p, bytes.data(), bytes.size());
  if (len == 0) return;
  capture_->packet(capture_interface_, t, direction, bytes.data(), len, comment);
  capture_->settle(sim_now());
}

void Port::reset() {
  reset_state(*this);
  if (wire_) wire_->emptied();
  reseed();
}

}  // namespace hcasim
