// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/codec.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#include "model/port/crc.h"
#include "model/port/traits.h"

namespace hcasim {

namespace {

using prm::BthTraits;
using prm::EthHdr;
using prm::Grh;
using prm::Ipv4Hdr;
using prm::Lrh;
using prm::UdpHdr;

constexpr std::uint16_t kDontFragment = 0x4000, kFragment = 0x3fff;  // MF and offset
constexpr std::uint8_t kIpv4NoOptions = 0x45;
constexpr std::uint8_t kManagementVl = 15;

template <class T>
T load(const std::uint8_t* p) {
  T t;
  std::memcpy(static_cast<void*>(&t), p, sizeof t);
  return t;
}

// Appends to a buffer whose room has been checked.
class Writer {
 public:
  explicit Writer(std::uint8_t* out) : begin_(out), at_(out) {}
  template <class T>
  void put(const T& t) {
    std::memcpy(at_, &t, sizeof t);
    at_ += sizeof t;
  }
  void bytes(const std::uint8_t* p, std::size_t len) {
    if (len) std::memcpy(at_, p, len);
    at_ += len;
  }
  void zeros(std::size_t len) {
    std::memset(at_, 0, len);
    at_ += len;
  }
  std::uint8_t* here() const { return at_; }
  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  std::uint8_t* begin_;
  std::uint8_t* at_;
};

std::uint16_t ip_checksum(const Ipv4Hdr& header) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(&header);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < sizeof header; i += 2) sum += static_cast<std::uint32_t>(p[i] << 8 | p[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// ---- ICRC (IBTA 7.8.1, A16.4.5, A17.5.3.1): over everything that no switch or router changes; what they may
// change, and what stands in the LRH's place where there is none, counts as ones.

struct Span {
  const std::uint8_t* at;
  std::size_t len;
};

std::uint32_t icrc(Span lrh, Span l3, bool ipv4, Span udp, const std::uint8_t* bth, const std::uint8_t* end) {
  std::uint8_t masked[sizeof(Lrh) + sizeof(Grh) + sizeof(UdpHdr) + sizeof(prm::Bth)];
  Writer w(masked);
  if (lrh.len && !l3.len) {
    w.bytes(lrh.at, lrh.len);
    masked[0] |= 0xf0;  // virtual lane
  } else {
    std::memset(masked, 0xff, sizeof(Lrh));
    w = Writer(masked + sizeof(Lrh));
  }
  std::uint8_t* ip = w.here();
  w.bytes(l3.at, l3.len);
  if (l3.len && ipv4) {
    ip[offsetof(Ipv4Hdr, tos)] = 0xff;
    ip[offsetof(Ipv4Hdr, ttl)] = 0xff;
    ip[offsetof(Ipv4Hdr, check)] = ip[offsetof(Ipv4Hdr, check) + 1] = 0xff;
  } else if (l3.len) {
    ip[0] |= 0x0f;  // traffic class, flow label
    ip[1] = ip[2] = ip[3] = 0xff;
    ip[offsetof(Grh, hop_limit)] = 0xff;
  }
  std::uint8_t* u = w.here();
  w.bytes(udp.at, udp.len);
  if (udp.len) u[offsetof(UdpHdr, check)] = u[offsetof(UdpHdr, check) + 1] = 0xff;
  std::uint8_t* base = w.here();
  w.bytes(bth, sizeof(prm::Bth));
  base[offsetof(prm::Bth, fecn_becn)] = 0xff;
  const auto head = static_cast<std::size_t>(w.here() - masked);
  const std::uint32_t crc = libdeflate_crc32(0, masked, head);
  const std::uint8_t* rest = bth + sizeof(prm::Bth);
  return libdeflate_crc32(crc, rest, static_cast<std::size_t>(end - rest));
}

// The bit order of CRCs is the reverse of all other fields': low byte first.
void put_crc(std::uint8_t* p, std::uint32_t crc, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) p[i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

std::uint32_t get_crc(const std::uint8_t* p, unsigned bytes) {
  std::uint32_t crc = 0;
  for (unsigned i = 0; i < bytes; ++i) crc |= static_cast<std::uint32_t>(p[i]) << (8 * i);
  return crc;
}

// ---- Headers, outward ----

Grh make_grh(const Packet& p, std::uint8_t next, std::uint32_t pay_len) {
  Grh g{};
  g.ver_tclass_flow = 6u << 28 | static_cast<std::uint32_t>(p.tclass) << 20 | (p.flow_label & 0xfffff);
  g.pay_len = static_cast<std::uint16_t>(pay_len);
  g.next_hdr = next;
  g.hop_limit = p.hop_limit;
  std::memcpy(g.sgid, p.sgid.data(), sizeof g.sgid);
  std::memcpy(g.dgid, p.dgid.data(), sizeof g.dgid);
  return g;
}

// Not to be fragmented, so that its identification is of no use to anybody (RFC 6864) and 0.
Ipv4Hdr make_ipv4(const Packet& p, std::uint32_t pay_len) {
  Ipv4Hdr h{};
  h.ver_ihl = kIpv4NoOptions;
  h.tos = p.tclass;
  h.total_len = static_cast<std::uint16_t>(sizeof h + pay_len);
  h.frag = kDontFragment;
  h.ttl = p.hop_limit;
  h.proto = Grh::kNextUdp;
  std::memcpy(&h.src, p.sgid.data() + 12, 4);
  std::memcpy(&h.dst, p.dgid.data() + 12, 4);
  h.check = ip_checksum(h);
  return h;
}

void put_transport(Writer& w, const Packet& p) {
  const BthTraits& t = traits_of(p.opcode);
  const std::uint32_t pad = padded(p.payload_len) - p.payload_len;
  prm::Bth b{};
  b.opcode = p.opcode;
  b.flags = static_cast<std::uint8_t>((p.solicited ? prm::Bth::kSolicited : 0) |
                                      (p.migreq ? prm::Bth::kMig : 0) | pad << 4);
  b.pkey = p.pkey;
  if (p.opcode == prm::bth::kCnp) b.fecn_becn = prm::Bth::kBecn;
  b.dqpn = p.dest_qpn;
  b.ack_req = p.ack_req ? prm::Bth::kAckReq : 0;
  b.psn = p.psn;
  w.put(b);
  if (p.opcode == prm::bth::kCnp) {
    w.zeros(t.ext_bytes);
    return;
  }
  if (t.deth) {
    prm::Deth d{};
    d.qkey = p.qkey;
    d.sqpn = p.src_qpn;
    w.put(d);
  }
  if (t.xrceth) {
    prm::XrcEth x{};
    x.srqn = p.src_qpn;
    w.put(x);
  }
  if (t.dceth) {
    prm::DcEth d{};
    d.key = p.dc_key;
    d.flags = p.dc_connect ? prm::DcEth::kConnect : 0;
    d.sqpn = p.src_qpn;
    d.session = p.dc_session;
    d.first_psn = p.dc_first_psn;
    w.put(d);
  }
  if (t.reth) {
    prm::Reth r{};
    r.va = p.va;
    r.rkey = p.rkey;
    r.dma_len = p.dma_len;
    w.put(r);
  }
  if (t.atomic_eth) {
    prm::AtomicEth a{};
    a.va = p.va;
    a.rkey = p.rkey;
    a.swap_add = p.swap_add;
    a.compare = p.compare;
    w.put(a);
  }
  if (t.aeth) {
    prm::Aeth a{};
    a.syndrome = p.aeth;
    a.msn = p.msn;
    w.put(a);
  }
  if (t.atomic_ack_eth) w.put(prm::be64(p.swap_add));
  if (t.imm || t.ieth) w.put(prm::be32(p.imm));
  w.bytes(p.read_payload(), p.payload_len);
  w.zeros(pad);
}

std::size_t encode_ib(const Packet& p, std::uint8_t* out, Vcrc with) {
  Writer w(out);
  const std::uint32_t transport = transport_bytes(p);
  Lrh l{};
  l.vl_lver = static_cast<std::uint8_t>((p.vl15 ? kManagementVl : p.vl) << 4);
  l.sl_lnh = static_cast<std::uint8_t>(p.sl << 4 | (p.has_grh ? Lrh::kLnhGrh : Lrh::kLnhBth));
  l.dlid = p.dlid;
  l.slid = p.slid;
  l.len = static_cast<std::uint16_t>((sizeof l + (p.has_grh ? sizeof(Grh) : 0) + transport) / 4);
  w.put(l);
  const std::uint8_t* l3 = w.here();
  if (p.has_grh) w.put(make_grh(p, Grh::kNextBth, transport));
  const std::uint8_t* bth = w.here();
  put_transport(w, p);
  const std::uint32_t crc =
      icrc({out, sizeof l}, {l3, p.has_grh ? sizeof(Grh) : 0}, false, {nullptr, 0}, bth, w.here());
  put_crc(w.here(), crc, prm::kIcrcBytes);
  if (with == Vcrc::kLeftOut) return w.size() + prm::kIcrcBytes;
  std::uint8_t* vcrc = w.here() + prm::kIcrcBytes;
  put_crc(vcrc, ib_vcrc(out, static_cast<std::size_t>(vcrc - out)), prm::kVcrcBytes);
  return w.size() + prm::kIcrcBytes + prm::kVcrcBytes;
}

std::size_t encode_roce(const Packet& p, std::uint8_t* out) {
  Writer w(out);
  const bool v2 = p.kind == PacketKind::kRoceV2;
  const std::uint16_t type = !v2 ? EthHdr::kRoceV1 : p.ipv4 ? EthHdr::kIpv4 : EthHdr::kIpv6;
  EthHdr e{};
  std::copy(p.dmac.begin(), p.dmac.end(), e.dmac);
  std::copy(p.smac.begin(), p.smac.end(), e.smac);
  e.ethertype = p.has_vlan ? EthHdr::kVlan : type;
  w.put(e);
  if (p.has_vlan) {
    w.put(prm::be16(p.vlan_tci));
    w.put(prm::be16(type));
  }
  const std::uint32_t transport = transport_bytes(p);
  const std::uint8_t* l3 = w.here();
  if (!v2)
    w.put(make_grh(p, Grh::kNextBth, transport));
  else if (p.ipv4)
    w.put(make_ipv4(p, transport + static_cast<std::uint32_t>(sizeof(UdpHdr))));
  else
    w.put(make_grh(p, Grh::kNextUdp, transport + static_cast<std::uint32_t>(sizeof(UdpHdr))));
  const std::uint8_t* l4 = w.here();
  if (v2) {
    UdpHdr u{};
    u.sport = p.udp_sport;
    u.dport = UdpHdr::kRocePort;
    u.len = static_cast<std::uint16_t>(sizeof u + transport);
    w.put(u);  // no checksum, also over IPv6: the ICRC protects more
  }
  const std::uint8_t* bth = w.here();
  put_transport(w, p);
  const std::uint32_t crc = icrc({nullptr, 0}, {l3, static_cast<std::size_t>(l4 - l3)}, v2 && p.ipv4,
                                 {l4, static_cast<std::size_t>(bth - l4)}, bth, w.here());
  std::uint8_t tail[prm::kIcrcBytes];
  put_crc(tail, crc, prm::kIcrcBytes);
  w.bytes(tail, sizeof tail);
  if (w.size() < kShortestFrame) w.zeros(kShortestFrame - w.size());
  return w.size();
}

// One bit that a CRC protects: behind the link's own header, and where nothing is masked or padding.
void flip_a_bit(const Packet& p, std::uint8_t* out, std::size_t len) {
  std::size_t from = sizeof(EthHdr), to = len;
  if (p.kind != PacketKind::kEthernet) {
    const std::size_t trailer = p.kind == PacketKind::kIb ? prm::kVcrcBytes : 0;
    const std::uint32_t transport = transport_bytes(p);
    std::size_t l2 = sizeof(Lrh) + (p.has_grh ? sizeof(Grh) : 0);
    if (p.kind != PacketKind::kIb) {
      l2 = sizeof(EthHdr) + (p.has_vlan ? prm::kVlanTagBytes : 0) +
           (p.kind == PacketKind::kRoceV1 ? sizeof(Grh)
                                          : sizeof(UdpHdr) + (p.ipv4 ? sizeof(Ipv4Hdr) : sizeof(Grh)));
    }
    from = l2 + sizeof(prm::Bth);
    to = std::min(l2 + transport, len - trailer);
  }
  if (from >= to) return;
  const auto spread = static_cast<std::uint64_t>(p.first_bit) * 0x9e3779b97f4a7c15ULL + p.psn;
  const std::uint64_t bit = (spread >> 16) % ((to - from) * 8);
  out[from + bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
}

// ---- Inward ----

// at: BTH to before the ICRC.
Decoded parse_transport(const std::uint8_t* at, std::size_t len, Packet& p, std::uint32_t& payload_at) {
  if (len < sizeof(prm::Bth)) return Decoded::kMalformed;
  const auto b = load<prm::Bth>(at);
  if ((b.flags & 0xf) != 0) return Decoded::kMalformed;  // header version (IBTA 9.6.1.1)
  const BthTraits& t = traits_of(b.opcode);
  const std::size_t headers = sizeof b + t.ext_bytes;
  if (len < headers) return Decoded::kMalformed;
  const std::size_t body = len - headers;
  if (body < b.pad() || body - b.pad() > kMaxPayload) return Decoded::kMalformed;
  if (t.valid && !t.payload && body != 0) return Decoded::kMalformed;
  p.opcode = b.opcode;
  p.solicited = (b.flags & prm::Bth::kSolicited) != 0;
  p.migreq = (b.flags & prm::Bth::kMig) != 0;
  p.pkey = b.pkey;
  p.dest_qpn = b.dqpn;
  p.ack_req = (b.ack_req & prm::Bth::kAckReq) != 0;
  p.psn = b.psn;
  const std::uint8_t* e = at + sizeof b;
  if (t.deth) {
    const auto d = load<prm::Deth>(e);
    p.qkey = d.qkey;
    p.src_qpn = d.sqpn;
    e += sizeof d;
  }
  if (t.xrceth) {
    p.src_qpn = load<prm::XrcEth>(e).srqn;
    e += sizeof(prm::XrcEth);
  }
  if (t.dceth) {
    const auto d = load<prm::DcEth>(e);
    p.dc_key = d.key;
    p.dc_connect = (d.flags & prm::DcEth::kConnect) != 0;
    p.src_qpn = d.sqpn;
    p.dc_session = d.session;
    p.dc_first_psn = d.first_psn;
    e += sizeof d;
  }
  if (t.reth) {
    const auto r = load<prm::Reth>(e);
    p.va = r.va;
    p.rkey = r.rkey;
    p.dma_len = r.dma_len;
    e += sizeof r;
  }
  if (t.atomic_eth) {
    const auto a = load<prm::AtomicEth>(e);
    p.va = a.va;
    p.rkey = a.rkey;
    p.swap_add = a.swap_add;
    p.compare = a.compare;
    e += sizeof a;
  }
  if (t.aeth) {
    const auto a = load<prm::Aeth>(e);
    p.aeth = a.syndrome;
    p.msn = a.msn;
    e += sizeof a;
  }
  if (t.atomic_ack_eth) {
    p.swap_add = load<prm::be64>(e);
    e += sizeof(prm::be64);
  }
  if (t.imm || t.ieth) p.imm = load<prm::be32>(e);
  p.payload_len = static_cast<std::uint32_t>(body - b.pad());
  payload_at = static_cast<std::uint32_t>(headers);
  return Decoded::kOk;
}

void take_grh(const Grh& g, Packet& p) {
  const std::uint32_t word = g.ver_tclass_flow;
  p.has_grh = true;
  p.tclass = static_cast<std::uint8_t>(word >> 20);
  p.flow_label = word & 0xfffff;
  p.hop_limit = g.hop_limit;
  std::memcpy(p.sgid.data(), g.sgid, sizeof g.sgid);
  std::memcpy(p.dgid.data(), g.dgid, sizeof g.dgid);
}

void take_ipv4(const Ipv4Hdr& h, Packet& p) {
  p.has_grh = true;
  p.ipv4 = true;
  p.tclass = h.tos;
  p.flow_label = 0;
  p.hop_limit = h.ttl;
  p.sgid.fill(0);
  p.dgid.fill(0);
  p.sgid[10] = p.sgid[11] = p.dgid[10] = p.dgid[11] = 0xff;
  std::memcpy(p.sgid.data() + 12, &h.src, 4);
  std::memcpy(p.dgid.data() + 12, &h.dst, 4);
}

}  // namespace

std::uint32_t transport_bytes(const Packet& p) {
  return static_cast<std::uint32_t>(sizeof(prm::Bth)) + traits_of(p.opcode).ext_bytes +
         padded(p.payload_len) + prm::kIcrcBytes;
}

std::uint32_t encoded_bytes(const Packet& p) {
  switch (p.kind) {
    case PacketKind::kIb:
      return static_cast<std::uint32_t>(sizeof(Lrh) + (p.has_grh ? sizeof(Grh) : 0)) + transport_bytes(p) +
             prm::kVcrcBytes;
    case PacketKind::kEthernet:
      return p.frame_len;
    default: {
      std::size_t l2 = sizeof(EthHdr) + (p.has_vlan ? prm::kVlanTagBytes : 0);
      l2 += p.kind == PacketKind::kRoceV1 ? sizeof(Grh)
                                          : sizeof(UdpHdr) + (p.ipv4 ? sizeof(Ipv4Hdr) : sizeof(Grh));
      return std::max(static_cast<std::uint32_t>(l2) + transport_bytes(p),
                      static_cast<std::uint32_t>(kShortestFrame));
    }
  }
}

std::size_t encode(const Packet& p, std::uint8_t* out, std::size_t room, Vcrc vcrc) {
  const std::size_t bytes = encoded_bytes(p);
  if (bytes > room || p.payload_len > kMaxPayload) return 0;
  std::size_t len = bytes;
  switch (p.kind) {
    case PacketKind::kIb:
      len = encode_ib(p, out, vcrc);
      break;
    case PacketKind::kEthernet:
      if (bytes > kMaxFrame) return 0;
      std::memcpy(out, p.frame(), bytes);
      break;
    case PacketKind::kRoceV1:
    case PacketKind::kRoceV2:
      len = encode_roce(p, out);
      break;
  }
  if (p.corrupt) flip_a_bit(p, out, len);
  return len;
}

void network_header(const Packet& p, std::uint8_t* out) {
  const bool v2 = p.kind == PacketKind::kRoceV2;
  const std::uint32_t len = transport_bytes(p) + (v2 ? static_cast<std::uint32_t>(sizeof(UdpHdr)) : 0);
  if (v2 && p.ipv4) {
    const Ipv4Hdr h = make_ipv4(p, len);
    std::memset(out, 0, kGrhArea - sizeof h);
    std::memcpy(out + kGrhArea - sizeof h, &h, sizeof h);
    return;
  }
  const Grh g = make_grh(p, v2 ? Grh::kNextUdp : Grh::kNextBth, len);
  static_assert(sizeof g == kGrhArea);
  std::memcpy(out, &g, sizeof g);
}

namespace {
// A RoCE frame in front of its BTH, as far as it was looked at: lengths in bytes.
struct RoceHead {
  EthHdr eth;
  bool has_vlan = false;
  std::uint16_t tci = 0;
  PacketKind kind = PacketKind::kRoceV2;
  bool ipv4 = false;
  Ipv4Hdr ip4{};
  Grh ip6{};                                              // also RoCE v1's GRH
  std::size_t l3 = 0, l3_len = sizeof(Grh), udp_len = 0;  // l3: where it begins in the frame
  std::size_t total = 0;                                  // from l3 to behind the ICRC, as the header says
};

Decoded decode_link(const std::uint8_t* frame, std::size_t len, RoceHead& h, std::uint16_t& type) {
  if (len < sizeof(EthHdr)) return Decoded::kNotRoce;
  h.eth = load<EthHdr>(frame);
  type = h.eth.ethertype;
  h.l3 = sizeof(EthHdr);
  if (type != EthHdr::kVlan) return Decoded::kOk;
  if (len < h.l3 + prm::kVlanTagBytes) return Decoded::kNotRoce;
  h.has_vlan = true;
  h.tci = load<prm::be16>(frame + h.l3);
  type = load<prm::be16>(frame + h.l3 + 2);
  h.l3 += prm::kVlanTagBytes;
  return Decoded::kOk;
}

Decoded decode_network(const std::uint8_t* l3, std::size_t room, std::uint16_t type, RoceHead& h) {
  switch (type) {
    case EthHdr::kRoceV1:
      h.kind = PacketKind::kRoceV1;
      if (room < sizeof h.ip6) return Decoded::kMalformed;
      h.ip6 = load<Grh>(l3);
      if (h.ip6.ver_tclass_flow >> 28 != 6 || h.ip6.next_hdr != Grh::kNextBth) return Decoded::kMalformed;
      h.total = sizeof h.ip6 + h.ip6.pay_len;
      return Decoded::kOk;
    case EthHdr::kIpv4:
      if (room < sizeof h.ip4) return Decoded::kNotRoce;
      h.ip4 = load<Ipv4Hdr>(l3);
      if (h.ip4.ver_ihl != kIpv4NoOptions || h.ip4.proto != Grh::kNextUdp || (h.ip4.frag & kFragment) != 0)
        return Decoded::kNotRoce;
      h.ipv4 = true;
      h.l3_len = sizeof h.ip4;
      h.total = h.ip4.total_len;
      return Decoded::kOk;
    case EthHdr::kIpv6:
      if (room < sizeof h.ip6) return Decoded::kNotRoce;
      h.ip6 = load<Grh>(l3);
      if (h.ip6.ver_tclass_flow >> 28 != 6 || h.ip6.next_hdr != Grh::kNextUdp) return Decoded::kNotRoce;
      h.total = sizeof h.ip6 + h.ip6.pay_len;
      return Decoded::kOk;
    default:
      return Decoded::kNotRoce;
  }
}

// RoCE v2: what lies between IP and BTH.
Decoded decode_udp(const std::uint8_t* l3, std::size_t room, RoceHead& h, Packet& p) {
  h.udp_len = sizeof(UdpHdr);
  if (room < h.l3_len + h.udp_len) return Decoded::kNotRoce;
  const auto udp = load<UdpHdr>(l3 + h.l3_len);
  if (udp.dport != UdpHdr::kRocePort) return Decoded::kNotRoce;
  if (h.total < h.l3_len || udp.len != h.total - h.l3_len) return Decoded::kMalformed;
  if (h.ipv4 && ip_checksum(h.ip4) != 0) return Decoded::kMalformed;
  p.udp_sport = udp.sport;
  return Decoded::kOk;
}

void take_head(const RoceHead& h, Packet& p) {
  std::copy(h.eth.dmac, h.eth.dmac + 6, p.dmac.begin());
  std::copy(h.eth.smac, h.eth.smac + 6, p.smac.begin());
  p.has_vlan = h.has_vlan;
  p.vlan_tci = h.tci;
  p.ipv4 = false;
  if (h.ipv4)
    take_ipv4(h.ip4, p);
  else
    take_grh(h.ip6, p);
}
}  // namespace

Decoded decode_roce(Packet& p, Icrc with) {
  const std::uint8_t* frame = p.frame();
  const std::size_t len = std::min<std::size_t>(p.frame_len, kMaxFrame);
  if (p.kind != PacketKind::kEthernet) return Decoded::kNotRoce;
  RoceHead h;
  std::uint16_t type = 0;
  Decoded d = decode_link(frame, len, h, type);
  if (d != Decoded::kOk) return d;
  const std::uint8_t* l3 = frame + h.l3;
  const std::size_t room = len - h.l3;
  d = decode_network(l3, room, type, h);
  if (d == Decoded::kOk && h.kind == PacketKind::kRoceV2) d = decode_udp(l3, room, h, p);
  if (d != Decoded::kOk) return d;
  if (h.total > room || h.total < h.l3_len + h.udp_len + sizeof(prm::Bth) + prm::kIcrcBytes)
    return Decoded::kMalformed;
  const std::uint8_t* bth = l3 + h.l3_len + h.udp_len;
  const std::uint8_t* crc = l3 + h.total - prm::kIcrcBytes;
  if ((crc - bth) % 4 != 0) return Decoded::kMalformed;
  std::uint32_t payload_at = 0;
  d = parse_transport(bth, static_cast<std::size_t>(crc - bth), p, payload_at);
  if (d != Decoded::kOk) return d;
  take_head(h, p);
  const std::uint32_t right =
      icrc({nullptr, 0}, {l3, h.l3_len}, h.ipv4, {l3 + h.l3_len, h.udp_len}, bth, crc);
  if (with == Icrc::kMade)
    put_crc(p.frame() + (crc - frame), right, prm::kIcrcBytes);
  else if (right != get_crc(crc, prm::kIcrcBytes))
    return Decoded::kBadCrc;
  p.kind = h.kind;
  p.set_head(static_cast<std::uint32_t>(bth - frame) + payload_at);
  return Decoded::kOk;
}

Decoded decode_ib(const std::uint8_t* bytes, std::size_t len, Packet& p, Vcrc vcrc, Icrc with) {
  const std::size_t vcrc_len = vcrc == Vcrc::kMade ? prm::kVcrcBytes : 0;
  const std::size_t tail = prm::kIcrcBytes + vcrc_len;
  if (len < sizeof(Lrh) + sizeof(prm::Bth) + tail) return Decoded::kMalformed;
  const auto lrh = load<Lrh>(bytes);
  const unsigned lnh = lrh.sl_lnh & 3;
  if ((lrh.vl_lver & 0xf) != 0 || lnh < Lrh::kLnhBth) return Decoded::kMalformed;
  if ((lrh.len & 0x7ffu) * 4 + vcrc_len != len) return Decoded::kMalformed;
  const std::size_t l3_len = lnh == Lrh::kLnhGrh ? sizeof(Grh) : 0;
  if (len < sizeof lrh + l3_len + sizeof(prm::Bth) + tail) return Decoded::kMalformed;
  const std::uint8_t* l3 = bytes + sizeof lrh;
  const std::uint8_t* bth = l3 + l3_len;
  const std::uint8_t* crc = bytes + len - tail;
  p.kind = PacketKind::kIb;
  p.slid = lrh.slid;
  p.dlid = lrh.dlid;
  p.sl = lrh.sl_lnh >> 4;
  p.vl = lrh.vl_lver >> 4;
  p.vl15 = p.vl == kManagementVl;
  p.has_grh = false;
  if (l3_len) {
    const auto grh = load<Grh>(l3);
    if (grh.ver_tclass_flow >> 28 != 6 || grh.next_hdr != Grh::kNextBth ||
        grh.pay_len != static_cast<std::size_t>(crc + prm::kIcrcBytes - bth))
      return Decoded::kMalformed;
    take_grh(grh, p);
  }
  std::uint32_t payload_at = 0;
  const Decoded d = parse_transport(bth, static_cast<std::size_t>(crc - bth), p, payload_at);
  if (d != Decoded::kOk) return d;
  const std::uint8_t* end = bytes + len - vcrc_len;
  if (vcrc_len != 0 && get_crc(end, prm::kVcrcBytes) != ib_vcrc(bytes, len - vcrc_len))
    return Decoded::kBadCrc;
  if (with == Icrc::kChecked &&
      get_crc(crc, prm::kIcrcBytes) != icrc({bytes, sizeof lrh}, {l3, l3_len}, false, {nullptr, 0}, bth, crc))
    return Decoded::kBadCrc;
  p.set_head(0);
  std::memcpy(p.data(), bth + payload_at, p.payload_len);
  return Decoded::kOk;
}

}  // namespace hcasim
