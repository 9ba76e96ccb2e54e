// SPDX-License-Identifier: BSD-3-Clause
#include "frame_parts.h"

#include <algorithm>
#include <array>

namespace hcasim::bare {

namespace {

constexpr std::size_t kEth = 14, kIpv4 = 20, kIpv6 = 40;

void u16(Frame& f, unsigned v) {
  f.push_back(static_cast<std::uint8_t>(v >> 8));
  f.push_back(static_cast<std::uint8_t>(v));
}
void u32(Frame& f, std::uint32_t v) { u16(f, v >> 16), u16(f, v & 0xffff); }

// Ethernet and IPv4 alone.
Frame ip_head() {
  L4 none;
  none.payload = 0;
  Frame f = l4_frame(none);
  f.resize(kEth + kIpv4);
  return f;
}

Frame of_protocol(Dice& dice) {
  static constexpr std::array<std::uint8_t, 6> kProtocols{1, 2, 50, 47, 58, 132};
  Frame f = ip_head();
  const std::uint8_t protocol = dice.pick(kProtocols);
  if (protocol == 1) u32(f, static_cast<std::uint32_t>(dice.below(10)) << 24);
  if (protocol == 50) u32(f, 0x11223344);
  if (protocol == 47) u32(f, dice.chance(50) ? 0x20006558 : 0xb0000800);
  for (std::size_t n = dice.below(60); n > 0; --n) f.push_back(dice.byte());
  finish_ip(f, protocol);
  return f;
}

Frame roce(Dice& dice) {
  L4 l4;
  l4.v6 = dice.chance(50), l4.udp = true, l4.dport = 4791, l4.payload = 12 + dice.below(100);
  Frame f = l4_frame(l4);
  f[l4.v6 ? 62 : 42] = dice.byte();  // opcode
  return f;
}

Frame innermost(Dice& dice) {
  static constexpr std::array<std::uint16_t, 8> kPorts{4789, 4791, 6081, 2152, 6635, 5000, 4500, 443};
  switch (dice.below(8)) {
    case 0:
      return plain_frame(14 + dice.below(600), dice.byte());
    case 1:
      return of_protocol(dice);
    case 2:
      return roce(dice);
    default: {
      L4 l4;
      const std::uint8_t how = dice.byte();
      l4.v6 = (how & 1) != 0, l4.udp = (how & 2) != 0;
      l4.payload = dice.below(300);
      l4.dport = dice.pick(kPorts);
      l4.sport = static_cast<std::uint16_t>(4000 + (how >> 4));
      if ((how & 4) != 0) l4.flags = dice.byte();
      Frame f = l4_frame(l4);
      if ((how & 8) != 0 && !l4.v6) f[20] = dice.byte() & 0x3f;  // a fragment
      return f;
    }
  }
}

}  // namespace

void finish_ip(Frame& f, std::uint8_t protocol) {
  const bool v6 = f[12] == 0x86;
  const std::size_t head = v6 ? kIpv6 : kIpv4, behind = f.size() - kEth - head;
  if (v6) {
    prm::store16(f.data() + kEth + 4, static_cast<std::uint32_t>(behind));
    f[kEth + 6] = protocol;
    return;
  }
  prm::store16(f.data() + kEth + 2, static_cast<std::uint32_t>(kIpv4 + behind));
  f[kEth + 9] = protocol;
  prm::store16(f.data() + kEth + 10, 0);
  prm::store16(f.data() + kEth + 10, ~plain_sum(f, kEth, kEth + kIpv4) & 0xffffu);
}

void put_tag(Frame& f, std::uint16_t tpid, std::uint16_t tci) {
  const std::uint8_t tag[] = {static_cast<std::uint8_t>(tpid >> 8), static_cast<std::uint8_t>(tpid),
                              static_cast<std::uint8_t>(tci >> 8), static_cast<std::uint8_t>(tci)};
  f.insert(f.begin() + 12, std::begin(tag), std::end(tag));
}

Frame in_tunnel(Dice& dice, const Frame& inner) {
  Frame f = ip_head();
  std::size_t from = 0;  // what of the inner frame is carried
  std::uint8_t protocol = 17;
  const auto udp = [&f](unsigned port) { u16(f, 0xc123), u16(f, port), u16(f, 0), u16(f, 0); };
  switch (dice.below(8)) {
    case 0:
      udp(4789), u32(f, 0x08000000), u32(f, 0xabcd00);
      break;
    case 1:
      udp(4790), u32(f, 0x0c000003), u32(f, 0x77700);
      break;
    case 2: {
      const auto words = static_cast<std::uint32_t>(dice.below(4));
      udp(6081), u32(f, words << 24 | 0x6558), u32(f, 0x12345600);
      if (words > 0) u32(f, 0x01025500 | (words - 1));
      for (std::uint32_t i = 1; i < words; ++i) u32(f, 0x01020304);
      break;
    }
    case 3: {
      protocol = 47;
      const std::uint8_t parts = dice.byte() & 0xb0;  // checksum, key, sequence
      u16(f, static_cast<unsigned>(parts) << 8), u16(f, 0x6558);
      for (const std::uint8_t part : {0x80, 0x20, 0x10})
        if ((parts & part) != 0) u32(f, 0xdeadbeef);
      break;
    }
    case 4: {
      const std::uint8_t flags = static_cast<std::uint8_t>(0x30 | (dice.byte() & 7));
      udp(2152), u32(f, static_cast<std::uint32_t>(flags) << 24 | 0xff0010), u32(f, 0xa1b2c3d4);
      if ((flags & 7) != 0) u32(f, (flags & 4) != 0 ? 0x85 : 0);
      if ((flags & 4) != 0) u32(f, 0x01020300);
      from = kEth;
      break;
    }
    case 5:
      udp(6635), u32(f, 0x54321140);
      from = kEth;
      break;
    case 6:
      protocol = 47;
      u16(f, 0), u16(f, prm::load16(inner.data() + 12));
      from = kEth;
      break;
    default:
      protocol = inner[12] == 0x86 ? 41 : 4;
      from = kEth;
  }
  f.insert(f.end(), inner.begin() + static_cast<std::ptrdiff_t>(std::min(from, inner.size())), inner.end());
  if (protocol == 17) prm::store16(f.data() + 38, static_cast<std::uint32_t>(f.size() - kEth - kIpv4));
  finish_ip(f, protocol);
  return f;
}

Frame any_frame(Dice& dice) {
  Frame f = innermost(dice);
  const std::uint8_t how = dice.byte();
  if (how < 90) f = in_tunnel(dice, f);
  if (how % 8 == 0) {
    put_tag(f, 0x8100, static_cast<std::uint16_t>(0x6000 | dice.below(8)));
    if (how % 16 == 0) put_tag(f, how % 32 == 0 ? 0x88a8 : 0x8100, 5);
  }
  if (how % 32 == 1) {  // MPLS
    f.resize(kEth);
    f[12] = 0x88, f[13] = 0x47;
    u32(f, 0x12345b40);
    for (unsigned i = 0; i < 60; ++i) f.push_back(static_cast<std::uint8_t>(i));
  }
  if (how % 16 == 2) f[0] = 0x33;  // a group
  return f;
}

void send_somehow(EthLink& link, const Frame& f, Dice& dice) {
  const std::size_t off = EthLink::kSlot * (link.sent++ % (EthLink::kBytes / EthLink::kSlot));
  link.put(off, f);
  const auto len = static_cast<std::uint32_t>(f.size());
  EthWr wr;
  wr.cs_flags = dice.chance(70) ? kAllSums : dice.byte() & 0xf0;
  switch (dice.below(8)) {
    case 0:
      if (f.size() <= 800)
        wr.inline_data = f;
      else
        wr.sges = {link.tx_sge(off, len)};
      break;
    case 1: {
      const std::size_t most = std::min<std::size_t>(f.size(), 54 + dice.below(100));
      wr.op = WqeOp::kLso;
      wr.headers.assign(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(most));
      wr.mss = static_cast<std::uint16_t>(200 + dice.below(1300));
      wr.sges = {link.tx_sge(off, static_cast<std::uint32_t>(dice.below(8000)))};
      break;
    }
    case 2:
      wr.op = WqeOp::kEnhancedMpsw;
      for (std::size_t n = 1 + dice.below(4); n > 0; --n) wr.sges.push_back(link.tx_sge(off, len));
      break;
    case 3:
      wr.vlan = dice.byte();
      wr.sges = {link.tx_sge(off, len)};
      break;
    default:
      wr.metadata = dice.chance(20) ? dice.word() : 0;
      wr.sges = {link.tx_sge(off, len)};
  }
  link.sq.post(wr);
}

void revive(EthLink& link) {
  if (link.sq.state() != 1) {
    link.sq.modify(3, 0);
    link.sq.modify(0, 1);
  }
  if (link.rq.state() != 1) {
    link.rq.modify(3, 0);
    link.rq.modify(0, 1);
  }
}

}  // namespace hcasim::bare
