// SPDX-License-Identifier: BSD-3-Clause
// From the port to the RQ: flow tables, TIR, RSS, scatter, CQE.
#include "model/eth/rx.h"

#include <libdeflate.h>
#include <algorithm>

#include "model/crypto/engine.h"
#include "model/ctx/eth.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/eth/checksum.h"
#include "model/eth/ipoib.h"
#include "model/lag/lag.h"
#include "model/pcie/dma.h"
#include "model/port/codec.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/resp/datagram_flags.h"
#include "model/rules.h"
#include "model/state/state.h"
#include "model/steer/flow.h"
#include "model/tpt/tpt.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::Cqe;
using prm::CqeOp;
using prm::CqeSyndrome;
using traces::Point;

namespace {

constexpr std::uint32_t kFcs = 4, kMacs = 12;
constexpr std::uint8_t kLbUnicast = 1, kLbMulticast = 2;  // Tir::self_lb_allow
// Cqe::l4_l3_hdr_type
constexpr unsigned kVlanStripped = 1, kL3Shift = 2, kL3Ipv6 = 1, kL3Ipv4 = 2, kL4Shift = 4;
constexpr unsigned kL4TcpNoAck = 1, kL4Udp = 2, kL4TcpAck = 3, kL4TcpAckData = 4;
constexpr std::uint8_t kTcpAck = 0x10;

std::uint16_t swap16(std::uint16_t v) { return static_cast<std::uint16_t>(v << 8 | v >> 8); }

bool broadcast(const std::uint8_t* frame) {
  return std::all_of(frame, frame + 6, [](std::uint8_t b) { return b == 0xff; });
}

// Of the innermost IP packet.
unsigned header_type(const std::uint8_t* frame, const FrameHeaders& h) {
  const IpHeaders& ip = h.inner.version ? h.inner : h.outer;
  if (!ip.version) return 0;
  unsigned l4 = 0;
  if (ip.udp) {
    l4 = kL4Udp;
  } else if (ip.tcp) {
    const std::uint8_t* tcp = frame + ip.l4;
    const bool data = ip.l4 + (tcp[12] >> 4) * 4 < ip.end;
    l4 = !(tcp[13] & kTcpAck) ? kL4TcpNoAck : data ? kL4TcpAckData : kL4TcpAck;
  }
  return (ip.version == 4 ? kL3Ipv4 : kL3Ipv6) << kL3Shift | l4 << kL4Shift |
         (ip.fragment ? Cqe::kIpFragment : 0);
}

}  // namespace

EthRx::EthRx(const sc_core::sc_module_name& name, const Blocks& blocks, FaultSink& faults)
    : sc_module(name),
      blocks_(blocks),
      mover_(blocks.tpt, blocks.dma),
      lro_(
          "lro", blocks.tracer, faults, [this](Time t, LroSession& s) { take_session(t, s); },
          [this](Time t, LroSession& s) {
            drop_segments(t, s, 0, blocks_.eth[s.function].counters.no_rule, DropReason::kQpState);
          }) {}

void EthRx::clear() { reset_state(*this); }

void EthRx::drop(Time t, const Packet& packet, std::uint64_t& counter, DropReason reason) {
  if (sniffing_) return;
  ++counter;
  blocks_.port.drop(t, packet, reason);
}

void EthRx::receive(Time t, FunctionId f, PacketRef& packet) {
  const Profile::Engine& e = blocks_.profile.engine;
  const Packet& p = *packet;
  FrameCounters& counters = blocks_.eth[f].counters;
  rx_free_ = std::max(rx_free_, t) + e.rx_packet;
  t = rx_free_ + e.rx_pipeline;
  if (p.frame_len > kMaxFrame || p.frame_len + kFcs > blocks_.port.max_frame || p.frame_len < kMinFrame)
    return drop(t, p, counters.too_long, DropReason::kMalformed);
  if (!p.crossed) {
    ++counters.packets;
    counters.bytes += p.frame_len;
    if (p.frame()[0] & 1) ++(broadcast(p.frame()) ? counters.broadcast : counters.multicast);
  }

  FlowVerdict& verdict = blocks_.flows[f].run(t, FlowTableType::kNicRx, blocks_.flows[f].frame(packet));
  if (verdict.deliveries.empty()) {
    if (verdict.dropped_by_rule) return drop(t, p, counters.dropped, DropReason::kRule);
    return drop(t, p, counters.no_rule, DropReason::kNoAddress);
  }
  deliver(t, f, verdict);
}

void EthRx::receive_datagram(Time t, const Qp& qp, const PacketRef& packet) {
  const Profile::Engine& e = blocks_.profile.engine;
  const Packet& p = *packet;
  rx_free_ = std::max(rx_free_, t) + e.rx_packet;
  t = rx_free_ + e.rx_pipeline;
  if (p.qkey != qp.qkey) return blocks_.port.drop(t, p, DropReason::kQkey);
  FrameCounters& counters = blocks_.eth[qp.function].counters;
  if (p.payload_len < kIpoibHeader || p.payload_len > kMaxFrame - kIpoibShift)
    return drop(t, p, counters.too_long, DropReason::kMalformed);
  PacketRef frame = PacketPool::make();
  frame->kind = PacketKind::kEthernet;
  frame->function = qp.function;
  frame->trace_qpn = p.trace_qpn;
  frame->wqe_serial = p.wqe_serial;
  std::memcpy(frame->frame() + kIpoibShift, p.data(), p.payload_len);
  Datagram datagram{PacketPool::make(), qp.qpn, &p};
  if (p.has_grh)
    network_header(p, datagram.head->data());
  else
    std::memset(datagram.head->data(), 0, kGrhArea);
  std::memcpy(datagram.head->data() + kGrhArea, p.data(), kIpoibHeader);
  datagram.head->payload_len = kGrhArea + kIpoibHeader;
  frame_of_ipoib(frame->frame());
  frame->frame_len = static_cast<std::uint16_t>(kIpoibShift + p.payload_len);

  FlowSteering& flows = blocks_.flows[qp.function];
  SteeredFrame steered = flows.frame(std::move(frame));
  steered.datagram_qpn = qp.qpn;
  FlowVerdict& verdict = flows.run_from(t, FlowTableType::kNicRx, qp.frame_table, std::move(steered));
  if (verdict.deliveries.empty()) {
    if (verdict.dropped_by_rule) return drop(t, p, counters.dropped, DropReason::kRule);
    return drop(t, p, counters.no_rule, DropReason::kNoAddress);
  }
  deliver(t, qp.function, verdict, &datagram);
}

void EthRx::deliver(Time t, FunctionId f, FlowVerdict& verdict, const Datagram* datagram) {
  // The match engine may be asked again before all are delivered.
  std::vector<FlowDelivery> list;
  list.swap(deliveries_);
  list.swap(verdict.deliveries);
  const SteeredFrame* last = nullptr;
  Arrival a;
  for (FlowDelivery& d : list) {
    if (d.fate == FlowDelivery::kOtherPort) blocks_.lag.give_back(t, d.frame.packet);
    if (d.fate != FlowDelivery::kTir) continue;
    // Sums are the same for copies that nothing has changed.
    if (!last || last->version != d.frame.version) a = {};
    a.packet = &d.frame.packet;
    a.headers = &d.frame.headers;
    a.datagram = datagram;
    a.flow_tag = d.frame.flow_tag;
    a.metadata = d.frame.regs.b;
    last = &d.frame;
    if (Tir* tir = EthTable::find(blocks_.eth[f].tirs, d.tirn))
      deliver(std::max(t, d.frame.at), f, *tir, a);
    else
      drop(t, *d.frame.packet, blocks_.eth[f].counters.no_rule, DropReason::kNoQp);
  }
  list.clear();
  deliveries_.swap(list);  // keeps its room
}

void EthRx::sniff(Time t, FunctionId f, FlowTableType type, const Packet& packet) {
  if (!blocks_.flows[f].active(type)) return;
  PacketRef frame = PacketPool::make();
  Packet& copy = *frame;
  copy.kind = PacketKind::kEthernet;
  copy.frame_len = static_cast<std::uint16_t>(encode(packet, copy.frame(), kMaxFrame));
  if (copy.frame_len < kMinFrame) return;
  sniffing_ = true;
  deliver(t, f, blocks_.flows[f].run(t, type, blocks_.flows[f].frame(std::move(frame))));
  sniffing_ = false;
}

void EthRx::deliver(Time t, FunctionId f, Tir& tir, Arrival& a) {
  const Packet& p = **a.packet;
  if (p.looped && p.transport_domain == tir.transport_domain &&
      !(tir.self_lb_allow & (p.frame()[0] & 1 ? kLbMulticast : kLbUnicast)))
    return drop(t, p, blocks_.eth[f].counters.self_loopback, DropReason::kLoopback);
  if (!tir.tls || a.datagram || !a.headers->outer.tcp) return to_queue(t, f, tir, a);
  Arrival clear = a;
  const PacketRef packet = decrypt(t, f, tir, clear);
  if (packet) clear.packet = &packet;
  to_queue(t, f, tir, clear);
}

// Checksums are those of the frame that came.
PacketRef EthRx::decrypt(Time& t, FunctionId f, Tir& tir, Arrival& a) {
  sum_up(a);
  const Packet& p = **a.packet;
  const IpHeaders& ip = a.headers->outer;
  const std::uint32_t at = tcp_payload(p.frame(), ip);
  if (a.headers->inner.version || !(a.ok & Cqe::kL4Ok) || at == ip.end) return {};
  PacketRef copy = PacketPool::make();
  copy->kind = p.kind;
  copy->function = p.function;
  copy->frame_len = p.frame_len;
  copy->trace_qpn = p.trace_qpn;
  copy->wqe_serial = p.wqe_serial;
  std::memcpy(copy->frame(), p.frame(), p.frame_len);
  const std::uint32_t sn = prm::load32(p.frame() + ip.l4 + 4);
  a.tls = blocks_.crypto.decrypt(t, f, tir, sn, copy->frame() + at, ip.end - at);
  return a.tls == prm::CqeTls::kDecrypted ? copy : PacketRef{};
}

void EthRx::to_queue(Time t, FunctionId f, const Tir& tir, Arrival& a) {
  const Packet& p = **a.packet;
  a.hash = rss_hash(tir, p.frame(), *a.headers);
  std::uint32_t rqn = tir.rqn;
  if (tir.indirect) {
    const Rqt* rqt = EthTable::find(blocks_.eth[f].rqts, tir.rqt);
    if (!rqt || rqt->rqs.empty()) return drop(t, p, blocks_.eth[f].counters.no_rule, DropReason::kNoQp);
    rqn = rqt->rqs[a.hash.value % rqt->rqs.size()];
  }
  Rq* rq = EthTable::find(blocks_.eth[f].rqs, rqn);
  if (!rq || rq->state != RqState::kRdy)
    return drop(t, p, blocks_.eth[f].counters.no_rule, DropReason::kQpState);
  if (rq->split) return take_split(t, *rq, a);
  // A CQE says of one segment what TLS made of it.
  if (tir.lro.on() && !tir.tls && offer_to_lro(t, tir, *rq, a)) return;
  if (rq->state != RqState::kRdy)  // the session that has just ended found no place
    return drop(t, p, blocks_.eth[f].counters.no_rule, DropReason::kQpState);
  take_frame(t, *rq, a);
}

// What the FCS of a message were, nobody knows.
bool EthRx::offer_to_lro(Time t, const Tir& tir, const Rq& rq, Arrival& a) {
  if (sniffing_ || a.datagram || rq.scatter_fcs || !a.headers->outer.tcp) return false;
  sum_up(a);
  constexpr std::uint8_t kGood = Cqe::kL3Ok | Cqe::kL4Ok;
  return lro_.take(t,
                   {tir, rq, *a.packet, *a.headers, a.hash, a.flow_tag, a.metadata, (a.ok & kGood) == kGood});
}

void EthRx::take_frame(Time t, Rq& rq, Arrival& a) {
  const Packet& p = **a.packet;
  const bool strip = !a.datagram && strips(rq, *a.headers);
  const std::uint32_t len = length_in(rq, a);
  Claim room;
  const Take taken = claim(t, rq, len, room);
  if (taken == Take::kEmpty) {
    ++blocks_.q_counters[rq.function][rq.counter_set].out_of_buffer;
    return drop(t, p, blocks_.eth[rq.function].counters.out_of_buffer, DropReason::kNoBuffer);
  }
  if (taken == Take::kBroken) return rq_failed(t, rq);
  trace_taken(t, rq, p);
  MoveResult m = scatter(t, rq, rq.wqe.sges, room.offset, a, strip, p.frame_len);
  if (m.ok() && rq.scatter_fcs && !a.datagram) m = scatter_fcs(t, rq, room.offset + len - kFcs, a, room.f);
  if (!m.ok()) return refused(t, rq, m, room.offset + len);
  trace_landed(m.at, rq, p, len);
  used(rq, room);
  sum_up(a);
  room.f.segments = a.segments;
  complete(t, rq, a, room.c, room.f, strip);
}

EthRx::Take EthRx::claim(Time t, Rq& rq, std::uint32_t len, Claim& claim) {
  if (rq.striding()) {
    const std::uint32_t shift = rq.two_byte_shift ? 2 : 0;
    const std::uint32_t size = 1u << rq.log_stride_size;
    claim.strides = (len + shift + size - 1) / size;
    const Take taken = claim.strides > 1u << rq.log_strides ? Take::kEmpty : make_room(t, rq, claim.strides);
    claim.offset = static_cast<std::uint64_t>(rq.next_stride) * size + shift;
    claim.c.wqe_counter = static_cast<std::uint16_t>(rq.next_stride);
    claim.c.byte_cnt = claim.strides << 16 | len;
    claim.f.wqe_id = rq.wqe.counter;
    return taken;
  }
  const Take taken = rq.wqe.valid ? Take::kTaken : take_wqe(t, rq);
  claim.c.wqe_counter = rq.wqe.counter;
  claim.c.byte_cnt = len;
  return taken;
}

void EthRx::used(Rq& rq, const Claim& claim) {
  if (rq.striding()) {
    rq.next_stride += claim.strides;
    if (rq.next_stride == 1u << rq.log_strides) rq.wqe.valid = false;
  } else {
    rq.wqe.valid = false;
  }
}

void EthRx::trace_taken(Time t, const Rq& rq, const Packet& packet) {
  blocks_.tracer.record(Point::kRwqeFetch, t, {rq.function, packet.trace_qpn}, packet.wqe_serial,
                        rq.wqe.counter, rq.rqn);
}

void EthRx::trace_landed(Time t, const Rq& rq, const Packet& packet, std::uint32_t len) {
  blocks_.tracer.record(Point::kScattered, t, {rq.function, packet.trace_qpn}, packet.wqe_serial, len,
                        rq.rqn);
}

// The WQE's buffers would not take what was to end at `end` in them.
void EthRx::refused(Time t, Rq& rq, const MoveResult& m, std::uint64_t end) {
  const bool too_short = m.status == TptStatus::kOutOfRange && end > rq.wqe.capacity;
  if (!too_short)
    blocks_.tracer.record(Point::kAccessErr, t, rq.subject(), 0,
                          rq.wqe.sges.empty() ? 0 : rq.wqe.sges[0].lkey,
                          rq.wqe.sges.empty() ? 0 : rq.wqe.sges[0].addr);
  fail_wqe(t, rq, too_short ? CqeSyndrome::kLocalLength : CqeSyndrome::kLocalProt,
           static_cast<std::uint8_t>(m.status));
}

bool EthRx::strips(const Rq& rq, const FrameHeaders& h) {
  return !rq.keep_vlan && h.tags != 0 && h.tpid[0] == kTpidCvlan;
}

std::uint32_t EthRx::length_in(const Rq& rq, const Arrival& a) {
  const std::uint32_t len = (*a.packet)->frame_len;
  if (a.datagram) return len - kEthHeader + a.datagram->head->payload_len;
  return len - (strips(rq, *a.headers) ? kVlanTag : 0) + (rq.scatter_fcs ? kFcs : 0);
}

KeyUser EthRx::key_user(const Rq& rq) { return {rq.wqe.pd, rq.rqn, rq.function, rq.reserved_lkey}; }

MoveResult EthRx::scatter(Time t, Rq& rq, const std::vector<Sge>& to, std::uint64_t offset, const Arrival& a,
                          bool strip, std::uint32_t len) {
  const WriteOwner owner{WriteOwner::kRq, rq.function, rq.rqn};
  if (a.datagram) {
    const PacketRef& head = a.datagram->head;
    const std::uint32_t n = head->payload_len;
    const MoveResult m = mover_.scatter(t, owner, key_user(rq), to, offset, head, 0, n, true);
    if (!m.ok() || len == kEthHeader) return m;
    return mover_.scatter(t, owner, key_user(rq), to, offset + n, *a.packet, kEthHeader, len - kEthHeader,
                          true);
  }
  if (!strip) return mover_.scatter(t, owner, key_user(rq), to, offset, *a.packet, 0, len, true);
  const MoveResult m = mover_.scatter(t, owner, key_user(rq), to, offset, *a.packet, 0, kMacs, true);
  if (!m.ok()) return m;
  const std::uint32_t rest = kMacs + kVlanTag;
  return mover_.scatter(t, owner, key_user(rq), to, offset + kMacs, *a.packet, rest, len - rest, true);
}

// As it stood behind the frame on the cable (IEEE 802.3 3.2.9), low byte first; check_sum covers it.
MoveResult EthRx::scatter_fcs(Time t, Rq& rq, std::uint64_t offset, const Arrival& a, FrameCompletion& f) {
  const std::uint32_t crc = libdeflate_crc32(0, (*a.packet)->frame(), (*a.packet)->frame_len);
  const PacketRef bytes = PacketPool::make();
  for (unsigned i = 0; i < kFcs; ++i) bytes->data()[i] = static_cast<std::uint8_t>(crc >> 8 * i);
  f.check_sum = ones_sum(bytes->data(), kFcs);
  if ((*a.packet)->frame_len & 1) f.check_sum = swap16(f.check_sum);
  return mover_.scatter(t, {WriteOwner::kRq, rq.function, rq.rqn}, key_user(rq), rq.wqe.sges, offset, bytes,
                        0, kFcs, true);
}

// Checksums of the whole frame in one pass: what lies before the L4 part, that, and the padding.
void EthRx::sum_up(Arrival& a) const {
  if (a.summed) return;
  a.summed = true;
  const std::uint8_t* frame = (*a.packet)->frame();
  const std::uint32_t len = (*a.packet)->frame_len;
  const IpHeaders& ip = a.headers->outer;
  a.ok = Cqe::kL2Ok;
  if (!ip.version) {
    a.sum = ones_sum(frame + kEthHeader, len - kEthHeader);
    return;
  }
  const std::uint16_t l4 = ones_sum(frame + ip.l4, static_cast<std::size_t>(ip.end - ip.l4));
  std::uint16_t padding = ones_sum(frame + ip.end, len - ip.end);
  if ((ip.end - ip.l4) & 1) padding = swap16(padding);
  const std::uint16_t head = ones_sum(frame + kEthHeader, ip.l4 - kEthHeader);
  a.sum = ones_add(head, ones_add(l4, padding));

  bool l3_ok = ip_checksum_ok(frame, ip);
  bool l4_ok;
  if (a.headers->inner.version) {
    const IpHeaders& inner = a.headers->inner;
    l3_ok = l3_ok && ip_checksum_ok(frame, inner);
    l4_ok = l4_checksum_ok(frame, inner) && (!ip.udp || l4_checksum_ok(frame, ip));
  } else {
    const std::uint8_t* udp = frame + ip.l4 + 6;
    const bool none = ip.udp && ip.version == 4 && udp[0] == 0 && udp[1] == 0;
    l4_ok = (ip.tcp || ip.udp) && (none || ones_add(pseudo_sum(frame, ip), l4) == 0xffff);
  }
  if (l3_ok) a.ok |= Cqe::kL3Ok;
  if (l4_ok) a.ok |= Cqe::kL4Ok;
}

void EthRx::complete(Time t, Rq& rq, const Arrival& a, Completion& c, FrameCompletion& f, bool strip) {
  const std::uint8_t* frame = (*a.packet)->frame();
  f.rss_hash = a.hash.value;
  f.rss_type = a.hash.type;
  f.ok = a.ok;
  f.tunneled = a.headers->inner.version != 0;
  f.outer_ipv6 = f.tunneled && a.headers->outer.version == 6;
  f.tls = static_cast<std::uint8_t>(a.tls);
  f.flow_tag = a.flow_tag;
  c.imm = a.metadata;
  unsigned type = header_type(frame, *a.headers);
  f.check_sum = ones_add(f.check_sum, a.sum);
  if (strip) {
    // Without the tag: adding the complement takes it away. A sum of data alone has none of it.
    if (f.segments < 2)
      f.check_sum = ones_add(f.check_sum, static_cast<std::uint16_t>(~ones_sum(frame + kMacs + 2, kVlanTag)));
    type |= kVlanStripped;
    f.vlan = a.headers->tci[0];
  }
  f.header_type = static_cast<std::uint8_t>(type);
  if (a.datagram) {
    const Packet& p = *a.datagram->packet;
    f.flow_tag = a.datagram->qpn;
    c.slid = p.slid;
    c.flags_rqpn = (p.src_qpn & 0xffffff) | header_flags(p);
    c.ml_path = static_cast<std::uint8_t>(p.dlid & 0x7f);
    c.solicited = p.solicited;
  }
  c.opcode = static_cast<std::uint8_t>(CqeOp::kRespSend);
  c.frame = &f;
  c.trace_qpn = (*a.packet)->trace_qpn;
  c.wqe_serial = (*a.packet)->wqe_serial;
  post(t, rq, c);
}

void EthRx::fail_wqe(Time t, Rq& rq, CqeSyndrome syndrome, std::uint8_t vendor) {
  ++blocks_.q_counters[rq.function][rq.counter_set].resp_cqe_error;
  const Rule rule = syndrome == CqeSyndrome::kLocalLength ? Rule::kReceiveLength : rule_of(syndrome, vendor);
  const Sge sge = rq.wqe.sges.empty() ? Sge{} : rq.wqe.sges[0];
  broke_access(blocks_.tracer, rule, t, RuleObject::kRq, rq.subject(), sge.addr, sge.lkey, rq.wqe.capacity);
  Completion c;
  c.opcode = static_cast<std::uint8_t>(CqeOp::kRespErr);
  c.syndrome = static_cast<std::uint8_t>(syndrome);
  c.vendor_syndrome = vendor;
  c.wqe_counter = rq.wqe.counter;
  FrameCompletion f;
  if (rq.striding()) c.frame = &f;
  f.wqe_id = rq.wqe.counter;
  rq.wqe.valid = false;
  post(t, rq, c);
  // A frame that is longer than the WQE's buffers costs that WQE and no more: the driver does not revive the
  // RQ for it, and waits for the next frame (en/health.h, cqe_syndrome_needs_recover). A WQE of strides has
  // room for all of them, or its driver is wrong.
  if (syndrome == CqeSyndrome::kLocalLength && !rq.striding()) return;
  const RqState old = rq.state;
  rq.state = RqState::kErr;
  rq_changed(t, rq, old);
}

}  // namespace hcasim
