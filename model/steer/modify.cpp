// SPDX-License-Identifier: BSD-3-Clause
// Modify header: where each field lies in a frame, and the checksums that follow a change (RFC 1624).
#include <cstring>

#include "model/eth/checksum.h"
#include "model/simulation_context.h"
#include "model/steer/actions.h"
#include "prm/psp.h"

namespace hcasim {

namespace {

// The frame's part that a field is in: decides which checksums cover it.
enum class Part : std::uint8_t { kNone, kRegister, kSyndrome, kL2, kIp, kIpAddress, kL4 };

// Big-endian bytes [at, at + size) of the frame; the field is `width` bits of them from bit `shift` on.
struct Place {
  Part part = Part::kNone;
  std::uint32_t at = 0;
  unsigned size = 0, shift = 0, width = 0;
};

constexpr unsigned kIpv4Sum = 10, kTcpSum = 16, kUdpSum = 6;  // offsets in their headers

// Width alone when frame is null.
Place place_of(std::uint32_t field, const FrameHeaders* h) {
  using namespace prm::k;
  const IpHeaders none;
  const IpHeaders& ip = h ? h->outer : none;
  const bool whole = h != nullptr && h->len >= kEthHeader;
  const auto at = [](bool there, Part part, std::uint32_t offset, unsigned size, unsigned shift = 0,
                     unsigned width = 0) {
    return Place{there ? part : Part::kNone, offset, size, shift, width ? width : size * 8};
  };
  const auto ipv4 = [&](unsigned offset) { return at(ip.version == 4, Part::kIpAddress, ip.l3 + offset, 4); };
  const auto ipv6 = [&](unsigned offset) { return at(ip.version == 6, Part::kIpAddress, ip.l3 + offset, 4); };
  const auto reg = [&] { return at(h != nullptr, Part::kRegister, 0, 4); };
  switch (field) {
    case ACTION_IN_FIELD_OUT_DMAC_47_16:
      return at(whole, Part::kL2, 0, 4);
    case ACTION_IN_FIELD_OUT_DMAC_15_0:
      return at(whole, Part::kL2, 4, 2);
    case ACTION_IN_FIELD_OUT_SMAC_47_16:
      return at(whole, Part::kL2, 6, 4);
    case ACTION_IN_FIELD_OUT_SMAC_15_0:
      return at(whole, Part::kL2, 10, 2);
    case ACTION_IN_FIELD_OUT_ETHERTYPE:
      return at(whole, Part::kL2, whole ? h->payload - 2u : 0, 2);
    case ACTION_IN_FIELD_OUT_FIRST_VID:
      return at(whole && h->tags != 0, Part::kL2, kEthHeader, 2, 0, 12);
    case ACTION_IN_FIELD_OUT_IP_DSCP:
      return ip.version == 6 ? at(true, Part::kIp, ip.l3, 2, 6, 6)
                             : at(ip.version == 4, Part::kIp, ip.l3 + 1u, 1, 2, 6);
    case ACTION_IN_FIELD_OUT_IP_TTL:
      return at(ip.version == 4, Part::kIp, ip.l3 + 8u, 1);
    case ACTION_IN_FIELD_OUT_IPV6_HOPLIMIT:
      return at(ip.version == 6, Part::kIp, ip.l3 + 7u, 1);
    case ACTION_IN_FIELD_OUT_SIPV4:
      return ipv4(12);
    case ACTION_IN_FIELD_OUT_DIPV4:
      return ipv4(16);
    case ACTION_IN_FIELD_OUT_SIPV6_127_96:
      return ipv6(8);
    case ACTION_IN_FIELD_OUT_SIPV6_95_64:
      return ipv6(12);
    case ACTION_IN_FIELD_OUT_SIPV6_63_32:
      return ipv6(16);
    case ACTION_IN_FIELD_OUT_SIPV6_31_0:
      return ipv6(20);
    case ACTION_IN_FIELD_OUT_DIPV6_127_96:
      return ipv6(24);
    case ACTION_IN_FIELD_OUT_DIPV6_95_64:
      return ipv6(28);
    case ACTION_IN_FIELD_OUT_DIPV6_63_32:
      return ipv6(32);
    case ACTION_IN_FIELD_OUT_DIPV6_31_0:
      return ipv6(36);
    case ACTION_IN_FIELD_OUT_TCP_SPORT:
      return at(ip.tcp, Part::kL4, ip.l4, 2);
    case ACTION_IN_FIELD_OUT_TCP_DPORT:
      return at(ip.tcp, Part::kL4, ip.l4 + 2u, 2);
    case ACTION_IN_FIELD_OUT_TCP_SEQ_NUM:
      return at(ip.tcp, Part::kL4, ip.l4 + 4u, 4);
    case ACTION_IN_FIELD_OUT_TCP_ACK_NUM:
      return at(ip.tcp, Part::kL4, ip.l4 + 8u, 4);
    case ACTION_IN_FIELD_OUT_TCP_FLAGS:
      return at(ip.tcp, Part::kL4, ip.l4 + 12u, 2, 0, 9);
    case ACTION_IN_FIELD_OUT_UDP_SPORT:
      return at(ip.udp, Part::kL4, ip.l4, 2);
    case ACTION_IN_FIELD_OUT_UDP_DPORT:
      return at(ip.udp, Part::kL4, ip.l4 + 2u, 2);
    case ACTION_IN_FIELD_METADATA_REG_A:
    case ACTION_IN_FIELD_METADATA_REG_B:
      return reg();
    case ACTION_IN_FIELD_IPSEC_SYNDROME:
    case prm::psp::kFieldSyndrome:
      return at(h != nullptr, Part::kSyndrome, 0, 1);
    default:
      if (field >= ACTION_IN_FIELD_METADATA_REG_C_0 && field <= ACTION_IN_FIELD_METADATA_REG_C_7)
        return reg();
      return {};
  }
}

template <class Registers>
auto& register_of(Registers& regs, std::uint32_t field) {
  using namespace prm::k;
  if (field == ACTION_IN_FIELD_METADATA_REG_A) return regs.a;
  if (field == ACTION_IN_FIELD_METADATA_REG_B) return regs.b;
  return regs.c[(field - ACTION_IN_FIELD_METADATA_REG_C_0) & 7];
}

std::uint32_t syndrome_of(const SteeredFrame& frame, std::uint32_t field) {
  return field == prm::psp::kFieldSyndrome ? frame.psp_syndrome : frame.ipsec_syndrome;
}

std::uint32_t ones(unsigned width) { return width >= 32 ? ~0u : (1u << width) - 1; }

std::uint32_t load(const std::uint8_t* p, unsigned size) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < size; ++i) v = v << 8 | p[i];
  return v;
}

void store(std::uint8_t* p, unsigned size, std::uint32_t v) {
  for (unsigned i = size; i-- > 0; v >>= 8) p[i] = static_cast<std::uint8_t>(v);
}

// The checksum at p, after words it covers changed from sum `before` to sum `now`.
void update_sum(std::uint8_t* p, std::uint16_t before, std::uint16_t now, bool udp) {
  const auto old = static_cast<std::uint16_t>(load(p, 2));
  if (udp && old == 0) return;  // none is used
  const std::uint16_t sum =
      ones_add(static_cast<std::uint16_t>(~old), ones_add(static_cast<std::uint16_t>(~before), now));
  const auto made = static_cast<std::uint16_t>(~sum);
  store(p, 2, udp && made == 0 ? 0xffff : made);
}

}  // namespace

void SteeredFrame::touch() { version = ++simulation().last_frame_version; }

std::uint8_t* SteeredFrame::writable() {
  if (packet.shared()) packet = PacketPool::copy(*packet);
  touch();
  return packet->frame();
}

unsigned field_width(std::uint32_t field) { return place_of(field, nullptr).width; }

bool field_writable(std::uint32_t field) {
  return field != prm::k::ACTION_IN_FIELD_IPSEC_SYNDROME && field != prm::psp::kFieldSyndrome;
}

bool read_field(const SteeredFrame& frame, std::uint32_t field, std::uint32_t& v) {
  v = 0;
  const Place p = place_of(field, &frame.headers);
  if (p.part == Part::kNone) return false;
  v = p.part == Part::kRegister   ? register_of(frame.regs, field)
      : p.part == Part::kSyndrome ? syndrome_of(frame, field)
                                  : load(frame.bytes() + p.at, p.size) >> p.shift & ones(p.width);
  return true;
}

bool write_field(SteeredFrame& frame, std::uint32_t field, unsigned offset, unsigned width, std::uint32_t v) {
  const Place p = place_of(field, &frame.headers);
  if (p.part == Part::kNone || p.part == Part::kSyndrome || offset >= p.width) return false;
  if (width > p.width - offset) width = p.width - offset;
  const std::uint32_t mask = ones(width) << offset;
  if (p.part == Part::kRegister) {
    frame.touch();
    std::uint32_t& r = register_of(frame.regs, field);
    r = (r & ~mask) | (v << offset & mask);
    return true;
  }
  std::uint8_t* bytes = frame.writable();
  const FrameHeaders& h = frame.headers;
  const IpHeaders ip = h.outer;
  // IP and L4 headers begin at even distances from each other: sums of whole words from there on.
  const std::uint32_t from = p.at - ((p.at - ip.l3) & 1), to = p.at + p.size + ((p.at + p.size - ip.l3) & 1);
  const std::uint16_t before = p.part == Part::kL2 ? 0 : ones_sum(bytes + from, to - from);
  const std::uint32_t old = load(bytes + p.at, p.size);
  store(bytes + p.at, p.size, (old & ~(mask << p.shift)) | (v << offset & mask) << p.shift);
  if (p.part != Part::kL2) {
    const std::uint16_t now = ones_sum(bytes + from, to - from);
    if (ip.version == 4 && p.part != Part::kL4) update_sum(bytes + ip.l3 + kIpv4Sum, before, now, false);
    if (p.part != Part::kIp) {
      if (ip.tcp) update_sum(bytes + ip.l4 + kTcpSum, before, now, false);
      if (ip.udp) update_sum(bytes + ip.l4 + kUdpSum, before, now, true);
    }
  }
  frame.reparse();
  return true;
}

void modify_headers(SteeredFrame& frame, const FieldAction* actions, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const FieldAction& a = actions[i];
    std::uint32_t v = 0;
    switch (a.type) {
      case FieldAction::kSet:
        write_field(frame, a.field, a.offset, a.width, a.data);
        break;
      case FieldAction::kAdd:
        if (read_field(frame, a.field, v)) write_field(frame, a.field, 0, 32, v + a.data);
        break;
      case FieldAction::kCopy:
        if (read_field(frame, a.from, v)) write_field(frame, a.field, a.offset, a.width, v >> a.from_offset);
        break;
      default:
        break;
    }
  }
}

}  // namespace hcasim
