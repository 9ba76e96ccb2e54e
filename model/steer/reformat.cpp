// SPDX-License-Identifier: BSD-3-Clause
// Actions that change a frame's length: VLAN tags, tunnels, inserted and removed bytes.
#include <cstring>

#include "model/eth/checksum.h"
#include "model/steer/actions.h"
#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kMacs = 12;       // bytes in front of a VLAN tag
constexpr std::uint32_t kMacsecIcv = 16;  // of MACsec

// In place of bytes [at, at + cut) `len` others; what follows moves, and the frame ends with byte `end`.
bool splice(SteeredFrame& frame, std::uint32_t at, std::uint32_t cut, const std::uint8_t* bytes,
            std::uint32_t len, std::uint32_t end) {
  if (end > frame.len() || at > end || cut > end - at) return false;
  const std::uint32_t made = end - cut + len;
  if (made > kMaxFrame || made < kMinFrame) return false;
  std::uint8_t* p = frame.writable();
  std::memmove(p + at + len, p + at + cut, end - at - cut);
  if (len) std::memcpy(p + at, bytes, len);
  frame.set_len(made);
  frame.reparse();
  return true;
}

// The UDP source port of a tunnel's packets, as RFC 7348 (section 5) and RFC 8926 (3.3) have it: one of the
// dynamic ports, the same for all frames of a flow. ip: of the frame inside, which begins at byte `at`.
std::uint16_t port_of_flow(const std::uint8_t* p, const IpHeaders& ip, std::uint32_t at) {
  constexpr std::uint32_t kFirst = 0xc000, kCount = 0x4000, kMacsAndType = 14;
  std::uint32_t hash = 2166136261u;  // FNV-1a, whose low bits alone do not tell close numbers apart
  const auto add = [&](std::uint32_t from, std::uint32_t len) {
    for (std::uint32_t i = 0; i < len; ++i) hash = (hash ^ p[from + i]) * 16777619u;
  };
  if (ip.version == 0) {
    add(at, kMacsAndType);
  } else {
    hash ^= ip.protocol;
    add(at + ip.l3 + (ip.version == 4 ? 12 : 8), ip.version == 4 ? 8 : 32);  // addresses
    if (ip.tcp || ip.udp) add(at + ip.l4, 4);
  }
  hash ^= hash >> 16;
  return static_cast<std::uint16_t>(kFirst + hash % kCount);
}

// Lengths, checksums and the source port, where the headers given leave that open, of the outermost IP
// packet, which ends with the frame.
void finish_tunnel(SteeredFrame& frame, const IpHeaders& inner, std::uint32_t inner_at) {
  std::uint8_t* p = frame.writable();
  const FrameHeaders h = parse_frame(p, frame.len(), LengthsOf::kBuffer);
  const IpHeaders& ip = h.outer;
  if (!ip.version) return;
  if (ip.version == 4)
    prm::store16(p + ip.l3 + 2, static_cast<std::uint32_t>(ip.end - ip.l3));
  else
    prm::store16(p + ip.l3 + 4, static_cast<std::uint32_t>(ip.end - ip.l3 - 40));
  put_ip_checksum(p, ip);
  if (ip.udp) {
    if (!p[ip.l4] && !p[ip.l4 + 1]) prm::store16(p + ip.l4, port_of_flow(p, inner, inner_at));
    prm::store16(p + ip.l4 + 4, static_cast<std::uint32_t>(ip.end - ip.l4));
    if (p[ip.l4 + 6] || p[ip.l4 + 7]) put_l4_checksum(p, ip);
  }
}

}  // namespace

bool push_vlan(SteeredFrame& frame, std::uint16_t tpid, std::uint16_t tci) {
  std::uint8_t tag[kVlanTag];
  prm::store16(tag, tpid);
  prm::store16(tag + 2, tci);
  return splice(frame, kMacs, 0, tag, sizeof tag, frame.len());
}

bool pop_vlan(SteeredFrame& frame) {
  return frame.headers.tags != 0 && splice(frame, kMacs, kVlanTag, nullptr, 0, frame.len());
}

bool encapsulate(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len, EncapOf of) {
  if (len < kEthHeader) return false;
  const std::uint32_t cut = of == EncapOf::kL3 ? frame.headers.payload : 0;
  if (of == EncapOf::kL3 && !frame.headers.outer.version) return false;
  // Padding of a short frame does not belong to its IP packet.
  const std::uint32_t end = of == EncapOf::kL3 ? frame.headers.outer.end : frame.len();
  const IpHeaders inner = frame.headers.outer;
  if (!splice(frame, 0, cut, header, len, end)) return false;
  finish_tunnel(frame, inner, len - cut);
  frame.reparse();
  return true;
}

bool decapsulate_l2(SteeredFrame& frame) {
  const FrameHeaders& h = frame.headers;
  return h.inner_l2 != 0 && splice(frame, 0, h.inner_l2, nullptr, 0, h.outer.end);
}

bool decapsulate_l3(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len) {
  const FrameHeaders& h = frame.headers;
  return len >= kEthHeader && h.inner.version != 0 && splice(frame, 0, h.inner.l3, header, len, h.inner.end);
}

bool known_anchor(std::uint32_t anchor) {
  using namespace prm::k;
  return anchor == REFORMAT_CONTEXT_ANCHOR_MAC_START || anchor == REFORMAT_CONTEXT_ANCHOR_IP_START ||
         anchor == REFORMAT_CONTEXT_ANCHOR_TCP_UDP_START;
}

bool anchor_offset(const SteeredFrame& frame, std::uint32_t anchor, std::uint32_t& at) {
  using namespace prm::k;
  const IpHeaders& ip = frame.headers.outer;
  switch (anchor) {
    case REFORMAT_CONTEXT_ANCHOR_MAC_START:
      at = 0;
      return true;
    case REFORMAT_CONTEXT_ANCHOR_IP_START:
      at = ip.l3;
      return ip.version != 0;
    case REFORMAT_CONTEXT_ANCHOR_TCP_UDP_START:
      at = ip.l4;
      return ip.tcp || ip.udp;
    default:
      return false;
  }
}

bool insert_bytes(SteeredFrame& frame, std::uint32_t at, const std::uint8_t* bytes, std::uint32_t len) {
  return splice(frame, at, 0, bytes, len, frame.len());
}

bool remove_bytes(SteeredFrame& frame, std::uint32_t at, std::uint32_t len) {
  return splice(frame, at, len, nullptr, 0, frame.len());
}

bool add_macsec(SteeredFrame& frame, const std::uint8_t* tag, std::uint32_t len, std::uint32_t skip) {
  static constexpr std::uint8_t kNoIcv[kMacsecIcv] = {};
  if (frame.len() + len + kMacsecIcv > kMaxFrame) return false;
  return skip <= frame.headers.tags * kVlanTag && splice(frame, kMacs + skip, 0, tag, len, frame.len()) &&
         splice(frame, frame.len(), 0, kNoIcv, kMacsecIcv, frame.len());
}

bool remove_macsec(SteeredFrame& frame, std::uint32_t len) {
  const FrameHeaders& h = frame.headers;
  constexpr std::uint32_t kTag = 8, kSci = 8, kHasSci = 0x20;
  if (h.len < h.payload + 1u) return false;
  const bool sci = frame.bytes()[h.payload] & kHasSci;
  return h.ethertype == kEthertypeMacsec && len == kTag + (sci ? kSci : 0) &&
         h.len >= h.payload - 2u + len + kMacsecIcv &&
         splice(frame, h.payload - 2u, len, nullptr, 0, h.len - kMacsecIcv);
}

bool keep_bytes(SteeredFrame& frame, std::uint32_t at, std::uint32_t end) {
  return splice(frame, 0, at, nullptr, 0, end);
}

}  // namespace hcasim
