// SPDX-License-Identifier: BSD-3-Clause
// Headers that steering puts before frames and takes away: what is made of them that the driver has left
// open.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "model/eth/checksum.h"
#include "model/steer/actions.h"
#include "prm/field.h"

namespace hcasim {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kIpAt = 14, kIpv6 = 40;
constexpr std::uint8_t kDestOptions = 60, kHopByHop = 0;

void u16(Bytes& b, unsigned v) {
  b.push_back(static_cast<std::uint8_t>(v >> 8));
  b.push_back(static_cast<std::uint8_t>(v));
}
void u32(Bytes& b, std::uint32_t v) { u16(b, v >> 16), u16(b, v & 0xffff); }

Bytes ethernet(unsigned type, std::uint8_t from = 1) {
  Bytes b{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, from};
  u16(b, type);
  return b;
}

SteeredFrame steered(const Bytes& bytes) {
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kEthernet;
  p->frame_len = static_cast<std::uint16_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), p->frame());
  return SteeredFrame(std::move(p));
}

// ---- ESP ----

// UDP in ESP, decrypted, behind IPv6's extension headers of these kinds and lengths.
struct Extension {
  std::uint8_t kind;
  std::size_t len;
};
Bytes esp_frame(const std::vector<Extension>& extensions) {
  Bytes b = ethernet(0x86dd);
  u32(b, 6u << 28), u16(b, 0);
  b.push_back(extensions.empty() ? kProtoEsp : extensions[0].kind), b.push_back(64);
  b.resize(kIpAt + kIpv6, 0xfe);
  for (std::size_t i = 0; i < extensions.size(); ++i) {
    const std::size_t at = b.size();
    b.resize(at + extensions[i].len);
    b[at] = i + 1 < extensions.size() ? extensions[i + 1].kind : kProtoEsp;
    b[at + 1] = static_cast<std::uint8_t>(extensions[i].len / 8 - 1);
  }
  b.resize(b.size() + 16);                           // SPI, number, IV
  u16(b, 1000), u16(b, 2000), u16(b, 8), u16(b, 0);  // a UDP header
  b.insert(b.end(), {1, 2, 2, kProtoUdp});           // padding, its length, what there is
  b.resize(b.size() + 16);                           // ICV
  prm::store16(b.data() + kIpAt + 4, static_cast<std::uint32_t>(b.size() - kIpAt - kIpv6));
  return b;
}

TEST(Reformat, WhatWasInEspIsNamedByTheLastOfTheHeadersBefore) {
  const std::vector<Extension> cases[] = {{},
                                          {{kDestOptions, 8}},
                                          {{kHopByHop, 16}, {kDestOptions, 8}},
                                          {{kDestOptions, 24}, {kDestOptions, 16}}};
  for (const auto& extensions : cases) {
    const Bytes before = esp_frame(extensions);
    SteeredFrame f = steered(before);
    ASSERT_EQ(f.headers.outer.protocol, kProtoEsp);
    const std::size_t l4 = f.headers.outer.l4;
    ASSERT_TRUE(remove_esp_transport(f, false));
    EXPECT_EQ(f.headers.outer.protocol, kProtoUdp);
    EXPECT_TRUE(f.headers.outer.udp);
    EXPECT_EQ(f.headers.outer.l4, l4);
    EXPECT_EQ(f.len(), l4 + 8);
    EXPECT_EQ(f.bytes()[kIpAt + 6], extensions.empty() ? kProtoUdp : extensions[0].kind);
    EXPECT_EQ(prm::load16(f.bytes() + kIpAt + 4), f.len() - kIpAt - kIpv6);
  }
}

// ---- Source ports of tunnels ----

// To VXLAN's port.
Bytes tunnel(unsigned source, bool checksum = false, unsigned version = 4) {
  Bytes b = ethernet(version == 4 ? 0x0800 : 0x86dd, 7);
  if (version == 4) {
    u32(b, 0x45000000), u32(b, 0x00004000), u32(b, 0x40110000), u32(b, 0x0a000001), u32(b, 0x0a000002);
  } else {
    u32(b, 6u << 28), u32(b, 17u << 8 | 64);
    b.resize(kIpAt + kIpv6, 0xfd);
  }
  u16(b, source), u16(b, 4789), u16(b, 0), u16(b, checksum ? 1 : 0);
  u32(b, 0x08000000), u32(b, 7 << 8);
  return b;
}

struct Flow {
  std::uint32_t from = 0x0a010101, to = 0x0a010102;
  unsigned sport = 1000, dport = 2000;
  std::uint8_t protocol = kProtoUdp, tos = 0;
  bool fragment = false;
};
Bytes frame_of(const Flow& flow) {
  Bytes b = ethernet(0x0800);
  u16(b, 0x4500u | flow.tos), u16(b, 20 + 20), u16(b, 1), u16(b, flow.fragment ? 0x2000 : 0);
  b.push_back(64), b.push_back(flow.protocol), u16(b, 0), u32(b, flow.from), u32(b, flow.to);
  u16(b, flow.sport), u16(b, flow.dport);
  u16(b, 20), u16(b, 0), u32(b, 0), u32(b, 0x50000000), u32(b, 0);
  b.resize(60);
  return b;
}

unsigned port_of(const Bytes& inner, const Bytes& header, EncapOf of = EncapOf::kL2) {
  SteeredFrame f = steered(inner);
  EXPECT_TRUE(encapsulate(f, header.data(), static_cast<std::uint32_t>(header.size()), of));
  const IpHeaders& ip = f.headers.outer;
  EXPECT_TRUE(ip.udp);
  EXPECT_TRUE(ip_checksum_ok(f.bytes(), ip));
  EXPECT_TRUE(l4_checksum_ok(f.bytes(), ip));
  return prm::load16(f.bytes() + ip.l4);
}

TEST(Reformat, ATunnelsSourcePortTellsFlowsApart) {
  std::set<unsigned> ports;
  for (unsigned i = 0; i < 64; ++i) {
    Flow flow;
    flow.sport += i;
    const unsigned port = port_of(frame_of(flow), tunnel(0));
    EXPECT_GE(port, 0xc000u);
    ports.insert(port);
    flow.tos = 0x20;
    EXPECT_EQ(port_of(frame_of(flow), tunnel(0)), port) << "of the same flow";
    EXPECT_EQ(port_of(frame_of(flow), tunnel(0, true)), port);
    EXPECT_EQ(port_of(frame_of(flow), tunnel(0, true, 6)), port);
    EXPECT_EQ(port_of(frame_of(flow), tunnel(0), EncapOf::kL3), port);
    EXPECT_EQ(port_of(frame_of(flow), tunnel(0x1234)), 0x1234u) << "the driver has said which";
    EXPECT_EQ(port_of(frame_of(flow), tunnel(0xff, true)), 0xffu);
  }
  EXPECT_GT(ports.size(), 55u);
  const unsigned port = port_of(frame_of({}), tunnel(0));
  const auto changed = [&](const std::function<void(Flow&)>& change) {
    Flow flow;
    change(flow);
    return port_of(frame_of(flow), tunnel(0)) != port;
  };
  EXPECT_TRUE(changed([](Flow& f) { ++f.from; }));
  EXPECT_TRUE(changed([](Flow& f) { ++f.to; }));
  EXPECT_TRUE(changed([](Flow& f) { ++f.dport; }));
  EXPECT_TRUE(changed([](Flow& f) { f.protocol = kProtoTcp; }));
  // Fragments of a packet go one way, although only the first has ports.
  Flow first, second;
  first.fragment = second.fragment = true;
  second.sport = 7;
  EXPECT_EQ(port_of(frame_of(first), tunnel(0)), port_of(frame_of(second), tunnel(0)));
  // Frames without IP by their addresses.
  Bytes a = ethernet(0x88b5, 1), b = ethernet(0x88b5, 2);
  a.resize(60), b.resize(60);
  EXPECT_NE(port_of(a, tunnel(0)), port_of(b, tunnel(0)));
  a[40] = 1;
  b = ethernet(0x88b5, 1);
  b.resize(60);
  EXPECT_EQ(port_of(a, tunnel(0)), port_of(b, tunnel(0)));
}

}  // namespace
}  // namespace hcasim
