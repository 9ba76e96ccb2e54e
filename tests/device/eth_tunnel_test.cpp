// SPDX-License-Identifier: BSD-3-Clause
// Offloads of tunnels: checksums and segments of inner packets, found by the card's parser or given by the
// WQE; RSS over them.
#include "eth_fixture.h"
#include "prm/packet.h"

namespace hcasim::bare {
namespace {

using prm::EthSeg;

constexpr std::uint8_t kAllSums = EthSeg::kL3Csum | EthSeg::kL3InnerCsum | EthSeg::kL4InnerCsum;
constexpr std::size_t kEth = 14, kIp = 20;

enum class Kind { kGre, kGreFrames, kIpip, kGeneve, kOwn };

std::size_t outer_size(Kind kind) {
  switch (kind) {
    case Kind::kGre:
      return kIp + 4;
    case Kind::kGreFrames:
      return kIp + 4 + kEth;
    case Kind::kIpip:
      return kIp;
    case Kind::kGeneve:
      return kIp + 8 + 8 + kEth;
    default:
      return kIp + 8 + 6;
  }
}

// The frame as `inner` in a tunnel over IPv4. kOwn: six bytes behind UDP that no parser knows.
Frame tunneled(Kind kind, const Frame& inner) {
  Frame f(inner.begin(), inner.begin() + kEth);
  const bool v6 = inner[kEth] >> 4 == 6;
  prm::store16(f.data() + 12, 0x0800);
  f.resize(kEth + outer_size(kind));
  std::uint8_t* ip = f.data() + kEth;
  std::uint8_t* l4 = ip + kIp;
  ip[0] = 0x45;
  ip[8] = 64;
  prm::store32(ip + 12, 0x0a010001), prm::store32(ip + 16, 0x0a010002);
  const bool frames = kind == Kind::kGreFrames || kind == Kind::kGeneve;
  switch (kind) {
    case Kind::kGre:
    case Kind::kGreFrames:
      ip[9] = 47;
      prm::store16(l4 + 2, frames ? 0x6558 : v6 ? 0x86dd : 0x0800);
      break;
    case Kind::kIpip:
      ip[9] = v6 ? 41 : 4;
      break;
    default:
      ip[9] = 17;
      prm::store16(l4, 50000), prm::store16(l4 + 2, kind == Kind::kGeneve ? 6081 : 7777);
      if (frames) prm::store16(l4 + 10, 0x6558), l4[14] = 9;
      break;
  }
  if (frames) std::copy(inner.begin(), inner.begin() + kEth, f.end() - kEth);
  f.insert(f.end(), inner.begin() + kEth, inner.end());
  prm::store16(f.data() + kEth + 2, static_cast<std::uint16_t>(f.size() - kEth));
  if (f[kEth + 9] == 17)
    prm::store16(f.data() + kEth + kIp + 4, static_cast<std::uint16_t>(f.size() - kEth - kIp));
  return f;
}

// As if it had come without its tunnel.
Frame inner_of(Kind kind, const Frame& f, bool v6) {
  Frame out(f.begin(), f.begin() + kEth);
  prm::store16(out.data() + 12, v6 ? 0x86dd : 0x0800);
  out.insert(out.end(), f.begin() + static_cast<std::ptrdiff_t>(kEth + outer_size(kind)), f.end());
  return out;
}

class Tunnels : public EthTest {};

TEST_F(Tunnels, InnerChecksumsAreMadeAndChecked) {
  for (const Kind kind : {Kind::kGre, Kind::kGreFrames, Kind::kIpip, Kind::kGeneve})
    for (const bool v6 : {false, true}) {
      EthLink link(dev());
      const Frame sent = tunneled(kind, l4_frame({v6, false, 301}));
      link.rq.post({link.rx_sge(0, 2048)});
      expect_good(link.scq, link.send(sent, kAllSums));
      const auto got = link.rcq.wait(1);
      ASSERT_EQ(got.size(), 1u);
      const Frame f = link.received(0, got[0].byte_cnt);
      EXPECT_EQ(plain_sum(f, kEth, kEth + kIp), 0xffffu);
      EXPECT_TRUE(l4_sum_right(inner_of(kind, f, v6)));
      const unsigned sum = v6 ? 0xffff : plain_sum(inner_of(kind, f, v6), kEth, kEth + kIp);
      EXPECT_EQ(sum, 0xffffu);
      EXPECT_EQ(got[0].raw.hds_ip_ext, 7);  // all of them are right
      // A wrong one is seen.
      Frame wrong = f;
      wrong.back() ^= 1;
      link.rq.post({link.rx_sge(0, 2048)});
      expect_good(link.scq, link.send(wrong));
      const auto bad = link.rcq.wait(1);
      ASSERT_EQ(bad.size(), 1u);
      EXPECT_NE(bad[0].raw.hds_ip_ext, 7);
    }
}

// Segments of a large send, with headers that the card finds, or that the WQE gives.
void cuts_into_segments(Device& device, Kind kind, bool given, bool v6, bool vlan) {
  EthLink link(device);
  Sq sq(device, link.pd, link.scq, link.tis.number(), 7, given);
  constexpr unsigned kMss = 700, kPayload = 3000, kCount = 5;
  Frame whole = tunneled(kind, l4_frame({v6, false, kPayload, 0x19}));
  if (vlan) {
    const std::uint8_t tag[] = {0x81, 0, 0x60, 5};
    whole.insert(whole.begin() + 12, std::begin(tag), std::end(tag));
  }
  const std::size_t shift = vlan ? 4 : 0, inner_l3 = shift + kEth + outer_size(kind),
                    inner_l4 = inner_l3 + (v6 ? 40 : 20), headers = inner_l4 + 20;
  link.put(0, whole);
  for (unsigned i = 0; i < kCount; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)});
  EthWr wr;
  wr.op = WqeOp::kLso;
  wr.headers.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(headers));
  wr.mss = kMss;
  wr.cs_flags = kAllSums;
  wr.sges = {link.tx_sge(headers, kPayload)};
  if (given) {
    wr.given = {static_cast<unsigned>(shift + kEth), static_cast<unsigned>(shift + kEth + kIp),
                static_cast<unsigned>(inner_l3), static_cast<unsigned>(inner_l4)};
    wr.given.flags = static_cast<std::uint8_t>(EthSeg::kOuterUdp | (v6 ? EthSeg::kInnerIpv6 : 0));
  }
  expect_good(link.scq, sq.post(wr));
  const auto done = link.rcq.wait(kCount);
  ASSERT_EQ(done.size(), kCount);
  for (unsigned i = 0; i < kCount; ++i) {
    Frame f = link.received(i * 2048, done[i].byte_cnt);
    if (vlan) f.erase(f.begin() + 12, f.begin() + 16);
    EXPECT_EQ(plain_sum(f, kEth, kEth + kIp), 0xffffu) << i;
    EXPECT_EQ(prm::load16(f.data() + kEth + 2), f.size() - kEth) << i;
    const Frame inner = inner_of(kind, f, v6);
    EXPECT_TRUE(l4_sum_right(inner)) << i;
    const std::size_t l4 = inner_l4 - inner_l3 + kEth;
    EXPECT_EQ(prm::load32(inner.data() + l4 + 4), 0xfffffff0u + i * kMss);
    EXPECT_EQ(f.size(), headers - shift + (i + 1 == kCount ? kPayload - (kCount - 1) * kMss : kMss));
  }
}

TEST_F(Tunnels, LargeSendsAreCutInTheTunnel) {
  for (const Kind kind : {Kind::kGre, Kind::kGreFrames, Kind::kIpip, Kind::kGeneve})
    for (const bool v6 : {false, true}) cuts_into_segments(dev(), kind, false, v6, false);
}

// What is inline is the beginning of each segment. If it ends within the headers, the rest of them is in the
// first segment alone.
TEST_F(Tunnels, HeadersOfALargeSendAreInlineAsAWhole) {
  breaks({"wqe-headers"});
  struct {
    bool udp;
    std::size_t l4_bytes;  // of TCP's or UDP's header, inline
    bool good;
  } const cases[] = {{true, 0, false},  {true, 7, false},  {true, 8, true},    {true, 16, true},
                     {false, 0, false}, {false, 8, false}, {false, 19, false}, {false, 20, true}};
  constexpr unsigned kPayload = 1400, kMss = 700;
  for (const bool tunnel : {false, true})
    for (const bool v6 : {false, true})
      for (const auto& c : cases) {
        EthLink link(dev());
        Frame whole = l4_frame({v6, c.udp, kPayload, 0x10});
        if (tunnel) whole = tunneled(Kind::kGeneve, whole);
        const std::size_t headers =
            kEth + (tunnel ? outer_size(Kind::kGeneve) : 0) + (v6 ? 40 : 20) + c.l4_bytes;
        link.put(0, whole);
        for (unsigned i = 0; i < 4; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)});
        EthWr wr;
        wr.op = WqeOp::kLso;
        wr.headers.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(headers));
        wr.mss = kMss;
        wr.cs_flags = kAllSums;
        wr.sges = {link.tx_sge(static_cast<std::uint32_t>(headers),
                               static_cast<std::uint32_t>(whole.size() - headers))};
        link.sq.post(wr);
        const auto sent = link.scq.wait(1);
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent[0].error(), !c.good) << c.udp << c.l4_bytes;
        const auto got = link.rcq.wait(2, 1'000'000);
        EXPECT_EQ(got.size(), c.good ? 2u : 0u) << c.udp << c.l4_bytes;  // or nothing of it has left
      }
  expect_frames_go_on();
}

TEST_F(Tunnels, HeadersAreWhereTheWqeSaysThem) {
  for (const Kind kind : {Kind::kGeneve, Kind::kOwn})
    for (const bool v6 : {false, true})
      for (const bool vlan : {false, true}) cuts_into_segments(dev(), kind, true, v6, vlan);
}

TEST_F(Tunnels, GivenHeadersThatCannotBeAreRefused) {
  breaks({"wqe-headers"});
  const Frame frame = tunneled(Kind::kOwn, l4_frame({false, false, 100}));
  const unsigned inner_l3 = static_cast<unsigned>(kEth + outer_size(Kind::kOwn));
  using G = EthWr::Given;
  const G cases[] = {
      G{kEth, 0, 500, 0, 0},                   // beyond the frame
      G{kEth, 0, inner_l3, inner_l3 + 10, 0},  // in the middle of the IP header
      G{kEth, 0, inner_l3, 210, 0},            // no room for TCP
      G{0, 34, 0, 0, EthSeg::kOuterUdp},       // of no IP header
      G{inner_l3, 0, kEth, 0, 0},              // inside out
      G{2, 0, 0, 0, 0},                        // in the MACs
  };
  for (const G& given : cases) {
    EthLink link(dev());
    Sq sq(dev(), link.pd, link.scq, link.tis.number(), 7, true);
    link.put(0, frame);
    EthWr wr;
    wr.cs_flags = kAllSums | EthSeg::kL4Csum;
    wr.given = given;
    wr.sges = {link.tx_sge(0, static_cast<std::uint32_t>(frame.size()))};
    sq.post(wr);
    const auto got = link.scq.wait(1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_TRUE(got[0].error());
  }
  // A queue that may not say so is not asked.
  EthLink link(dev());
  link.put(0, frame);
  EthWr wr;
  wr.given = cases[0];
  wr.cs_flags = EthSeg::kL3Csum;
  wr.sges = {link.tx_sge(0, static_cast<std::uint32_t>(frame.size()))};
  link.rq.post({link.rx_sge(0, 2048)});
  expect_good(link.scq, link.sq.post(wr));
  expect_frames_go_on();
}

TEST_F(Tunnels, RandomGivenHeadersNeverHurt) {
  breaks({"wqe-headers"});
  std::mt19937 random(5);
  for (unsigned round = 0; round < 60; ++round) {
    EthLink link(dev());
    Sq sq(dev(), link.pd, link.scq, link.tis.number(), 7, true);
    const Frame frame = tunneled(Kind::kOwn, l4_frame({random() % 2 != 0, false, random() % 900}));
    link.put(0, frame);
    for (unsigned i = 0; i < 8; ++i) link.rq.post({link.rx_sge(0, 2048)});
    EthWr wr;
    wr.cs_flags = static_cast<std::uint8_t>(random());
    for (unsigned* v : {&wr.given.outer_l3, &wr.given.outer_l4, &wr.given.inner_l3, &wr.given.inner_l4})
      *v = random() % 4 == 0 ? random() % 512 : random() % 96;
    wr.given.flags = static_cast<std::uint8_t>(random());
    wr.sges = {link.tx_sge(0, static_cast<std::uint32_t>(frame.size()))};
    if (random() % 2 != 0) {
      wr.op = WqeOp::kLso;
      wr.mss = static_cast<std::uint16_t>(1 + random() % 300);
      wr.headers.assign(frame.begin(), frame.begin() + 96);
    }
    sq.post(wr);
    machine().advance(1'000'000);
  }
  expect_frames_go_on();
}

}  // namespace
}  // namespace hcasim::bare
