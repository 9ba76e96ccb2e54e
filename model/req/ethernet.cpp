// SPDX-License-Identifier: BSD-3-Clause
// The requester's send queues of frames: SEND, LSO, ENHANCED_MPSW.
#include <algorithm>
#include <cstring>

#include "model/crypto/engine.h"
#include "model/eth/checksum.h"
#include "model/eth/given_headers.h"
#include "model/eth/headers.h"
#include "model/eth/ipoib.h"
#include "model/eth/segment.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/steer/flow.h"
#include "prm/be.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeSyndrome;
using prm::EthSeg;
using prm::WqeOp;
using traces::Point;

namespace {

constexpr std::uint32_t kMacs = 12;      // bytes in front of a VLAN tag
constexpr std::uint32_t kShortest = 60;  // without FCS; what is shorter is padded
constexpr std::uint32_t kFcs = 4;
constexpr std::uint32_t kUdpHeader = 8;

// What of its WQE a frame is made of.
struct Recipe {
  const std::uint8_t* head = nullptr;  // bytes of the WQE itself ...
  std::uint32_t head_len = 0;
  std::uint64_t offset = 0;  // ... then bytes [offset, offset + len) of its sges
  std::uint32_t len = 0;
};

Recipe recipe(const SendWqe& wqe) {
  Recipe r;
  if (wqe.many_frames()) {
    const Sge& sge = wqe.sges[wqe.sent];
    if (sge.lkey == prm::kInvalidLkey) {
      r.head = wqe.bytes.data() + sge.addr;
      r.head_len = sge.len;
      return r;
    }
    for (std::uint32_t i = 0; i < wqe.sent; ++i) r.offset += wqe.sges[i].len;
    r.len = sge.len;
    return r;
  }
  r.head = wqe.bytes.data();
  r.head_len = static_cast<std::uint32_t>(wqe.inline_front());
  const std::uint64_t payload = wqe.length - r.head_len;
  if (wqe.large_send()) {
    const std::uint32_t mss = wqe.eth.mss;
    r.offset = static_cast<std::uint64_t>(wqe.sent) * mss;
    r.len = static_cast<std::uint32_t>(std::min<std::uint64_t>(mss, payload - r.offset));
  } else {
    r.len = static_cast<std::uint32_t>(std::min<std::uint64_t>(payload, kMaxFrame + 1));
  }
  return r;
}

void put_checksums(std::uint8_t* frame, const FrameHeaders& headers, std::uint8_t flags) {
  // From the inside out: an outer checksum covers the inner ones.
  if (flags & EthSeg::kL4InnerCsum) put_l4_checksum(frame, headers.inner);
  if (flags & EthSeg::kL3InnerCsum) put_ip_checksum(frame, headers.inner);
  if (flags & EthSeg::kL4Csum) put_l4_checksum(frame, headers.outer);
  if (flags & EthSeg::kL3Csum) put_ip_checksum(frame, headers.outer);
}

}  // namespace

// Bytes [offset, offset + len) of a list in which some pieces lie in the WQE itself.
MoveResult Requester::gather_pieces(Time t, const Qp& qp, const SendWqe& wqe, std::uint64_t offset,
                                    std::uint32_t len, std::uint8_t* dst) {
  MoveResult all;
  all.at = t;
  for (const Sge& sge : wqe.sges) {
    if (offset >= sge.len) {
      offset -= sge.len;
      continue;
    }
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(len, sge.len - offset));
    if (sge.lkey == prm::kInvalidLkey) {
      std::memcpy(dst, wqe.bytes.data() + sge.addr + offset, n);
    } else {
      const MoveResult m = mover_.gather(t, qp, {sge}, offset, n, dst);
      if (!m.ok()) return m;
      all.at = std::max(all.at, m.at);
    }
    dst += n;
    len -= n;
    if (len == 0) return all;
    offset = 0;
  }
  all.status = TptStatus::kOutOfRange;
  return all;
}

// Gathers the WQE's next frame and finishes its headers; ready becomes when it is there.
Requester::Step Requester::load_frame(Time& ready, Qp& qp, SendWqe& wqe, Packet& packet) {
  const Recipe r = recipe(wqe);
  const bool tagged = (wqe.eth.inline_hdr_sz & EthSeg::kInsertVlan) != 0;
  const bool ipoib = qp.underlay != 0;
  const std::uint32_t shift = ipoib ? kIpoibShift : tagged ? kVlanTag : 0;
  const std::uint32_t room = ipoib ? blocks_.profile.port.max_mtu : kMaxFrame - shift;
  if (r.head_len > room || r.len > room - r.head_len || wqe.trailer.size() > room - r.head_len - r.len ||
      r.head_len + r.len < (ipoib ? kIpoibHeader : kMinFrame))
    return refuse(wqe, CqeSyndrome::kLocalLength, static_cast<std::uint8_t>(WqeFault::kLength));
  std::uint8_t* frame = packet.frame();
  std::uint8_t* start = frame + shift;
  if (r.head_len) std::memcpy(start, r.head, r.head_len);
  if (r.len) {
    ready += blocks_.profile.engine.gather;
    const MoveResult m = r.head_len == wqe.bytes.size() || wqe.many_frames()
                             ? mover_.gather(ready, qp, wqe.sges, r.offset, r.len, start + r.head_len)
                             : gather_pieces(ready, qp, wqe, r.offset, r.len, start + r.head_len);
    if (m.status != TptStatus::kOk) {
      blocks_.tracer.record(Point::kAccessErr, ready, qp.subject(), wqe.serial,
                            wqe.sges.empty() ? 0 : wqe.sges[0].lkey, wqe.sges.empty() ? 0 : wqe.sges[0].addr);
      return refuse(wqe, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(m.status));
    }
    if (!m.dma_ok) return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kFetch));
    if (wqe.sent == 0)
      blocks_.tracer.record(Point::kTranslated, ready, qp.subject(), wqe.serial, wqe.sges.size());
    ready = m.at;
  }
  std::uint32_t len = r.head_len + r.len;
  if (ipoib) {
    frame_of_ipoib(frame);
    len += shift;
  } else if (tagged) {
    std::memmove(frame, start, kMacs);
    const prm::be16 tpid = wqe.eth.inline_hdr_sz & EthSeg::kInsertSvlan ? kTpidSvlan : kTpidCvlan;
    std::memcpy(frame + kMacs, &tpid, sizeof tpid);
    std::memcpy(frame + kMacs + sizeof tpid, wqe.eth.inline_start, sizeof wqe.eth.inline_start);
    len += kVlanTag;
  }
  if (const WqeFault fault = finish_frame(ready, qp, wqe, frame, len, static_cast<std::uint32_t>(r.offset));
      fault != WqeFault::kNone)
    return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(fault));
  packet.frame_len = static_cast<std::uint16_t>(len);
  return Step::kSent;
}

// What the card does to a frame that is whole: headers of a segment, encryption, the trailer, checksums.
// offset: of its payload within a large send.
WqeFault Requester::finish_frame(Time& ready, Qp& qp, const SendWqe& wqe, std::uint8_t* frame,
                                 std::uint32_t& len, std::uint32_t offset) {
  const bool large = wqe.large_send();
  // 0: that of the queue, as if it is none for TLS: libmlx5 leaves what the ring held in that place
  // (mlx5_send_wr_send_eth).
  std::uint32_t tisn = qp.tls ? wqe.imm >> 8 : 0;
  if (tisn != 0 && !blocks_.crypto.encrypts(qp, tisn)) tisn = 0;
  if (!large && tisn == 0 && wqe.eth.cs_flags == 0 && wqe.trailer.empty()) return WqeFault::kNone;
  const LengthsOf lengths = large ? LengthsOf::kBuffer : LengthsOf::kHeaders;
  FrameHeaders h = parse_frame(frame, len, lengths, blocks_.flows[qp.function].vxlan_ports());
  const bool tagged = (wqe.eth.inline_hdr_sz & EthSeg::kInsertVlan) != 0;
  if (qp.gives_headers && gives_headers(wqe.eth) &&
      !take_given_headers(frame, wqe.eth, tagged ? kVlanTag : 0, lengths, large || tisn != 0, h))
    return WqeFault::kHeaders;
  const IpHeaders& l4 = h.inner.version ? h.inner : h.outer;
  if (large) {
    if (!l4.tcp && !l4.udp) return WqeFault::kHeaders;
    // Each segment begins with what the WQE has inline: where that ends too early, only the first would have
    // all its headers.
    const std::uint32_t ahead = qp.underlay != 0 ? kIpoibShift : 0;
    if ((l4.tcp ? tcp_payload(frame, l4) : l4.l4 + kUdpHeader) > ahead + wqe.header_len)
      return WqeFault::kHeaders;
    make_segment(frame, h, {wqe.sent, wqe.sent + 1 == wqe.packets, offset});
  }
  if (tisn != 0) {
    if (!l4.tcp) return WqeFault::kTls;
    const std::uint32_t at = tcp_payload(frame, l4);
    if (!blocks_.crypto.encrypt(ready, qp, tisn, frame + at, l4.end - at)) return WqeFault::kTls;
  }
  if (!wqe.trailer.empty()) {
    if (h.outer.version == 0) return WqeFault::kHeaders;
    if (large) advance_esp(frame, h.outer, wqe.sent);
    const bool of_l4 = (wqe.eth.inline_hdr_sz & EthSeg::kTrailerOf) == EthSeg::kTrailerOfOuterL4;
    len = put_trailer(frame, h.outer, wqe.trailer.data(), static_cast<std::uint32_t>(wqe.trailer.size()),
                      of_l4 ? TrailerOf::kL4 : TrailerOf::kIp);
  }
  put_checksums(frame, h, wqe.eth.cs_flags);
  return WqeFault::kNone;
}

// From the queue through the tables of the transmit side to the port.
void Requester::emit_frame(Time t, Qp& qp, const SendWqe& wqe, PacketRef packet) {
  const auto out = [&](Time t, PacketRef p) {
    Packet& frame = *p;
    if (frame.frame_len + kFcs > blocks_.port.max_frame)
      return blocks_.port.drop(t, frame, DropReason::kTooLong);
    if (frame.frame_len < kShortest) {
      std::memset(frame.frame() + frame.frame_len, 0, kShortest - frame.frame_len);
      frame.frame_len = kShortest;
    }
    transmit(t, qp, std::move(p));
  };
  // A queue without a TIS, on InfiniBand.
  if (blocks_.port.link() != LinkType::kEthernet)
    return blocks_.port.drop(t, *packet, DropReason::kNoAddress);
  FlowSteering& flows = blocks_.flows[qp.function];
  if (!flows.active(FlowTableType::kNicTx)) return out(t, std::move(packet));
  SteeredFrame frame = flows.frame(packet);
  frame.sqn = qp.qpn;
  frame.regs.a = wqe.eth.flow_table_metadata;
  FlowVerdict& verdict = flows.run(t, FlowTableType::kNicTx, std::move(frame));
  if (verdict.deliveries.empty()) return blocks_.port.drop(t, *packet, DropReason::kRule);
  packet = {};
  // The match engine is asked again for each of them (a sniffer, the E-Switch).
  std::vector<FlowDelivery> list;
  list.swap(verdict.deliveries);
  for (FlowDelivery& d : list) {
    if (d.fate != FlowDelivery::kPass) continue;
    d.frame.writable();  // each copy a packet of its own
    d.frame.packet->trail = d.frame.trail;
    out(std::max(t, d.frame.at), std::move(d.frame.packet));
  }
}

Requester::Step Requester::send_frame(Pace& pace, Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  ++pace.packets;
  Time ready = std::max(pace.engine, pace.ready);
  if (wqe.packets != 0) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kEthernet;
    p->transport_domain = qp.transport_domain;
    p->affinity = qp.affinity;
    p->function = qp.function;
    p->trace_qpn = blocks_.tracer.tag(qp.qpn);
    p->trace_packets = wqe.packets;
    p->sqn = qp.qpn;
    p->wqe_serial = wqe.serial;
    if (qp.departures_cqn != 0) {
      p->reports_departure = true;
      p->departure_id = static_cast<std::uint16_t>(wqe.eth.flow_table_metadata & kDepartureIds);
    }
    if (load_frame(ready, qp, wqe, *p) == Step::kFailed) return Step::kFailed;
    const Time leaves = ready + e.tx_pipeline;
    if (qp.underlay != 0)
      emit_datagram(leaves, qp, wqe, p);
    else
      emit_frame(leaves, qp, wqe, std::move(p));
  }
  s.last_ready = std::max(s.last_ready, ready);
  ++wqe.sent;
  if (wqe.sent < wqe.packets) return Step::kSent;
  blocks_.tracer.record(Point::kGathered, ready, qp.subject(), wqe.serial, wqe.length);
  wqe.done = true;
  ++s.next_to_send;
  complete_front(s.last_ready, qp);
  return Step::kSent;
}

}  // namespace hcasim
