// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "model/port/crc.h"
#include "model/port/traits.h"

namespace hcasim {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(const std::string& text) {
  Bytes out;
  unsigned nibbles = 0, value = 0;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    value = value << 4 | static_cast<unsigned>(std::stoi(std::string(1, c), nullptr, 16));
    if (++nibbles % 2 == 0) {
      out.push_back(static_cast<std::uint8_t>(value));
      value = 0;
    }
  }
  return out;
}

Bytes encoded(const Packet& p) {
  Bytes out(kMaxFrame);
  out.resize(encode(p, out.data(), out.size()));
  return out;
}

PacketRef frame(const Bytes& bytes) {
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kEthernet;
  p->frame_len = static_cast<std::uint16_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), p->frame());
  return p;
}

Bytes payload(const Packet& p) { return {p.data(), p.data() + p.payload_len}; }

// ---- Packets that others made ----

// Sample packets of the specification (IBTA vol. 1, 7.8.4): RC WRITE only with 14 bytes, local and global;
// the ICRC of the local one as it is printed there.
constexpr char kTransport[] =
    "0a202487 0087b1b3 000dec2a 01710a1c015d4002 38f27a05 0000000e bb884d85fd5cfba4728bc0690ed4";

PacketRef sample() {
  PacketRef p = PacketPool::make();
  p->dlid = 0x375c;
  p->slid = 0x17d2;
  p->sl = 1;
  p->opcode = 0x0a;
  p->migreq = false;
  p->pkey = 0x2487;
  p->dest_qpn = 0x87b1b3;
  p->psn = 0x0dec2a;
  p->va = 0x01710a1c015d4002;
  p->rkey = 0x38f27a05;
  const Bytes data = from_hex("bb884d85fd5cfba4728bc0690ed4");
  p->dma_len = p->payload_len = static_cast<std::uint32_t>(data.size());
  std::memcpy(p->data(), data.data(), data.size());
  return p;
}

TEST(CodecVectors, LocalPacketOfTheSpecification) {
  const Bytes out = encoded(*sample());
  ASSERT_EQ(out.size(), 58u);
  Bytes want = from_hex(std::string("0012375c 000e17d2") + kTransport + "0000 9625b75a");  // VL 0
  EXPECT_EQ(Bytes(out.begin(), out.end() - 2), want);
  // The printed packet is on VL 7, which its ICRC leaves out.
  want[0] = 0x70;
  const std::uint16_t vcrc = ib_vcrc(want.data(), want.size());
  want.push_back(static_cast<std::uint8_t>(vcrc));
  want.push_back(static_cast<std::uint8_t>(vcrc >> 8));
  PacketRef back = PacketPool::make();
  ASSERT_EQ(decode_ib(want.data(), want.size(), *back), Decoded::kOk);
  EXPECT_EQ(back->dest_qpn, 0x87b1b3u);
  EXPECT_EQ(back->dma_len, 14u);
  EXPECT_EQ(payload(*back), payload(*sample()));
}

TEST(CodecVectors, GlobalPacketLeavesOutItsLrhAndWhatRoutersChange) {
  PacketRef p = sample();
  p->has_grh = true;
  p->sgid[6] = 1;
  p->dgid[15] = 0x96;
  const Bytes a = encoded(*p);
  p->tclass = 0x5a;
  p->flow_label = 0x12345;
  p->hop_limit = 9;
  p->sl = 3;
  p->dlid = 7;
  const Bytes b = encoded(*p);
  ASSERT_EQ(a.size(), 98u);
  EXPECT_EQ(Bytes(a.end() - 6, a.end() - 2), Bytes(b.end() - 6, b.end() - 2)) << "ICRC";
  EXPECT_NE(Bytes(a.end() - 2, a.end()), Bytes(b.end() - 2, b.end())) << "VCRC";
  p->sgid[6] = 2;
  const Bytes c = encoded(*p);
  EXPECT_NE(Bytes(a.end() - 6, a.end() - 2), Bytes(c.end() - 6, c.end() - 2)) << "addresses count";
}

// A message from and to a ConnectX port, as it stands in the tests of Scapy's RoCE layer.
TEST(CodecVectors, RoceV2CaptureOfAnAdapter) {
  const Bytes bytes = from_hex(
      "248a07a8fa22 248a07a8fa22 0800 4501 0040 0478 4000 4011 b4d5 c0a80007 c0a80007"
      "c000 12b7 002c aca2 2460ffff 000000d3 00cf1710"
      "4630818be28935d90e9a95505401be885e500000 78f353f3");
  PacketRef p = frame(bytes);
  ASSERT_EQ(decode_roce(*p), Decoded::kOk);
  EXPECT_EQ(p->kind, PacketKind::kRoceV2);
  EXPECT_TRUE(p->ipv4);
  EXPECT_EQ(p->opcode, 0x24);
  EXPECT_EQ(p->dest_qpn, 211u);
  EXPECT_EQ(p->psn, 13571856u);
  EXPECT_EQ(p->udp_sport, 49152);
  EXPECT_EQ(p->tclass, 1) << "ECT(1)";
  EXPECT_EQ(p->hop_limit, 64);
  EXPECT_EQ(p->payload_len, 18u);
  EXPECT_EQ(p->dgid,
            (std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 0, 7}));
}

// A CNP captured from a ConnectX-4 Lx (same source).
TEST(CodecVectors, CnpOfAnAdapter) {
  const Bytes bytes = from_hex(
      "e41d2dab2bc2 7cfe90643b32 0800 45c2 003c 718c 4000 4011 9161 0a001101 0a001201"
      "0000 12b7 0028 0000 8100ffff 40000118 00000000"
      "00000000000000000000000000000000 82fd002a");
  PacketRef p = frame(bytes);
  ASSERT_EQ(decode_roce(*p), Decoded::kOk);
  EXPECT_EQ(p->opcode, prm::bth::kCnp);
  EXPECT_EQ(p->dest_qpn, 0x118u);
  EXPECT_EQ(p->payload_len, 0u);
  EXPECT_EQ(p->tclass, 0xc2);
  // Ours is the same but for the IP identification.
  Bytes ours = encoded(*p);
  PacketRef q = frame(ours);
  ASSERT_EQ(decode_roce(*q), Decoded::kOk);
  ASSERT_EQ(ours.size(), bytes.size());
  ours.resize(ours.size() - 4);
  std::memcpy(&ours[18], &bytes[18], 2);
  std::memcpy(&ours[24], &bytes[24], 2);
  EXPECT_EQ(ours, Bytes(bytes.begin(), bytes.end() - 4));
}

// ---- There and back ----

class CodecRoundTrip : public ::testing::TestWithParam<int> {
 protected:
  // 0 IB, 1 IB with GRH, 2 RoCE v1, 3 v2 IPv4, 4 v2 IPv6; +5: RoCE with VLAN
  static PacketRef make(int link, std::uint8_t opcode, std::uint32_t len, std::uint64_t seed) {
    std::mt19937_64 r(seed);
    PacketRef p = PacketPool::make();
    p->kind = link % 5 < 2 ? PacketKind::kIb : link % 5 == 2 ? PacketKind::kRoceV1 : PacketKind::kRoceV2;
    p->has_grh = link % 5 != 0;
    p->ipv4 = link % 5 == 3;
    p->has_vlan = link >= 5;
    if (p->has_vlan) p->vlan_tci = static_cast<std::uint16_t>(r());
    if (p->kind == PacketKind::kIb) {
      p->slid = static_cast<std::uint16_t>(r());
      p->dlid = static_cast<std::uint16_t>(r());
      p->sl = r() & 0xf;
    } else {
      for (auto& b : p->dmac) b = static_cast<std::uint8_t>(r());
      for (auto& b : p->smac) b = static_cast<std::uint8_t>(r());
    }
    if (p->kind == PacketKind::kRoceV2) p->udp_sport = static_cast<std::uint16_t>(r());
    if (p->has_grh) {
      p->tclass = static_cast<std::uint8_t>(r());
      p->hop_limit = static_cast<std::uint8_t>(r());
      if (!p->ipv4) p->flow_label = r() & 0xfffff;
      for (unsigned i = p->ipv4 ? 12 : 0; i < 16; ++i) {
        p->sgid[i] = static_cast<std::uint8_t>(r());
        p->dgid[i] = static_cast<std::uint8_t>(r());
      }
      if (p->ipv4) p->sgid[10] = p->sgid[11] = p->dgid[10] = p->dgid[11] = 0xff;
    }
    const prm::BthTraits& t = traits_of(opcode);
    p->opcode = opcode;
    p->solicited = r() & 1;
    p->ack_req = r() & 1;
    p->migreq = r() & 1;
    p->pkey = static_cast<std::uint16_t>(r());
    p->dest_qpn = r() & 0xffffff;
    p->psn = r() & 0xffffff;
    if (t.reth || t.atomic_eth) {
      p->va = r();
      p->rkey = static_cast<std::uint32_t>(r());
    }
    if (t.reth) p->dma_len = static_cast<std::uint32_t>(r());
    if (t.atomic_eth) p->compare = r();
    if (t.atomic_eth || t.atomic_ack_eth) p->swap_add = r();
    if (t.imm || t.ieth) p->imm = static_cast<std::uint32_t>(r());
    if (t.aeth) {
      p->aeth = static_cast<std::uint8_t>(r());
      p->msn = r() & 0xffffff;
    }
    if (t.deth) p->qkey = static_cast<std::uint32_t>(r());
    if (t.deth || t.xrceth || t.dceth) p->src_qpn = r() & 0xffffff;
    if (t.dceth) {
      p->dc_key = r();
      p->dc_connect = r() & 1;
      p->dc_session = static_cast<std::uint8_t>(r());
      p->dc_first_psn = r() & 0xffffff;
    }
    if (t.payload) {
      p->payload_len = len;
      for (std::uint32_t i = 0; i < len; ++i) p->data()[i] = static_cast<std::uint8_t>(r());
    }
    return p;
  }
  static void expect_same(const Packet& a, const Packet& b) {
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.ipv4, b.ipv4);
    EXPECT_EQ(a.has_vlan, b.has_vlan);
    EXPECT_EQ(a.vlan_tci, b.vlan_tci);
    EXPECT_EQ(a.dmac, b.dmac);
    EXPECT_EQ(a.smac, b.smac);
    EXPECT_EQ(a.udp_sport, b.udp_sport);
    EXPECT_EQ(a.slid, b.slid);
    EXPECT_EQ(a.dlid, b.dlid);
    EXPECT_EQ(a.sl, b.sl);
    EXPECT_EQ(a.has_grh, b.has_grh);
    EXPECT_EQ(a.tclass, b.tclass);
    EXPECT_EQ(a.hop_limit, b.hop_limit);
    EXPECT_EQ(a.flow_label, b.flow_label);
    EXPECT_EQ(a.sgid, b.sgid);
    EXPECT_EQ(a.dgid, b.dgid);
    EXPECT_EQ(a.opcode, b.opcode);
    EXPECT_EQ(a.solicited, b.solicited);
    EXPECT_EQ(a.ack_req, b.ack_req);
    EXPECT_EQ(a.migreq, b.migreq);
    EXPECT_EQ(a.pkey, b.pkey);
    EXPECT_EQ(a.dest_qpn, b.dest_qpn);
    EXPECT_EQ(a.psn, b.psn);
    EXPECT_EQ(a.dc_key, b.dc_key);
    EXPECT_EQ(a.dc_connect, b.dc_connect);
    EXPECT_EQ(a.dc_session, b.dc_session);
    EXPECT_EQ(a.dc_first_psn, b.dc_first_psn);
    EXPECT_EQ(a.va, b.va);
    EXPECT_EQ(a.rkey, b.rkey);
    EXPECT_EQ(a.dma_len, b.dma_len);
    EXPECT_EQ(a.swap_add, b.swap_add);
    EXPECT_EQ(a.compare, b.compare);
    EXPECT_EQ(a.imm, b.imm);
    EXPECT_EQ(a.aeth, b.aeth);
    EXPECT_EQ(a.msn, b.msn);
    EXPECT_EQ(a.qkey, b.qkey);
    EXPECT_EQ(a.src_qpn, b.src_qpn);
    EXPECT_EQ(payload(a), payload(b));
  }
  static Decoded decode(const Bytes& bytes, bool ib, PacketRef& out) {
    if (ib) {
      out = PacketPool::make();
      return decode_ib(bytes.data(), bytes.size(), *out);
    }
    out = frame(bytes);
    return decode_roce(*out);
  }
  // Whatever CRCs stand in them.
  static Decoded decode_with_crcs_made(const Bytes& bytes, bool ib, PacketRef& out) {
    if (ib) {
      out = PacketPool::make();
      const std::size_t len = bytes.size() - std::min<std::size_t>(bytes.size(), 2);  // without the VCRC
      return decode_ib(bytes.data(), len, *out, Vcrc::kLeftOut, Icrc::kMade);
    }
    out = frame(bytes);
    return decode_roce(*out, Icrc::kMade);
  }
};

TEST_P(CodecRoundTrip, EveryOpcode) {
  for (unsigned op = 0; op < 256; ++op) {
    const auto opcode = static_cast<std::uint8_t>(op);
    if (!traits_of(opcode).valid) continue;
    for (const std::uint32_t len : {0u, 1u, 2u, 3u, 4u, 63u, 1024u, 4095u, 4096u}) {
      SCOPED_TRACE("opcode " + std::to_string(op) + ", " + std::to_string(len) + " bytes");
      const PacketRef p = make(GetParam(), opcode, len, op * 7919 + len);
      const Bytes bytes = encoded(*p);
      ASSERT_EQ(bytes.size(), encoded_bytes(*p));
      ASSERT_LE(bytes.size(), p->payload_len + kMaxHeaders);
      PacketRef back;
      ASSERT_EQ(decode(bytes, p->kind == PacketKind::kIb, back), Decoded::kOk);
      expect_same(*p, *back);
      if (HasFailure()) return;
    }
  }
}

// The ICRC covers everything but the MAC addresses, the tag and what is masked; there a changed bit is no
// error, or one of another kind, but nothing else gets through.
TEST_P(CodecRoundTrip, EveryFlippedBitIsFoundOrHarmless) {
  const PacketRef p = make(GetParam(), 0x0a, 37, 5);
  const bool ib = p->kind == PacketKind::kIb;
  const Bytes good = encoded(*p);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    PacketRef back;
    if (decode(bytes, ib, back) != Decoded::kOk) continue;
    EXPECT_FALSE(ib) << "byte " << bit / 8 << ": the VCRC covers all";
    EXPECT_EQ(back->opcode, p->opcode) << "byte " << bit / 8;
    EXPECT_EQ(back->dest_qpn, p->dest_qpn) << "byte " << bit / 8;
    EXPECT_EQ(back->sgid, p->sgid) << "byte " << bit / 8;
    EXPECT_EQ(back->va, p->va) << "byte " << bit / 8;
    EXPECT_EQ(payload(*back), payload(*p)) << "byte " << bit / 8;
  }
}

TEST_P(CodecRoundTrip, ACorruptPacketIsFoundOut) {
  for (unsigned i = 0; i < 200; ++i) {
    const PacketRef p = make(GetParam(), i % 2 ? 0x64 : 0x04, i % 3 ? i * 10 : 0, i);
    p->corrupt = true;
    p->first_bit = static_cast<Time>(i) * 12345;
    PacketRef back;
    EXPECT_EQ(decode(encoded(*p), p->kind == PacketKind::kIb, back), Decoded::kBadCrc) << i;
  }
}

TEST_P(CodecRoundTrip, EveryLengthOfAFrameCutShort) {
  for (const unsigned opcode : {0x0au, 0x11u, 0x13u, 0x64u, 0x81u, 0xabu}) {
    const PacketRef p = make(GetParam(), static_cast<std::uint8_t>(opcode), 13, 99);
    const Bytes good = encoded(*p);
    for (std::size_t len = 0; len < good.size(); ++len) {
      // On the heap in its exact size, so that a sanitizer sees a read beyond it (IB is decoded from there).
      const Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(len));
      PacketRef back;
      EXPECT_NE(decode(bytes, p->kind == PacketKind::kIb, back), Decoded::kOk) << len;
    }
  }
}

TEST_P(CodecRoundTrip, RandomBytesBehindARightStart) {
  std::mt19937_64 r(GetParam() + 1);
  const PacketRef p = make(GetParam(), 0x64, 80, 3);
  const Bytes good = encoded(*p);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = good;
    for (std::size_t n = r() % 6 + 1; n != 0; --n) bytes[r() % bytes.size()] = static_cast<std::uint8_t>(r());
    if (i % 4 == 0) bytes.resize(r() % bytes.size());
    // With the CRCs that it has then: else hardly any would be looked at further.
    PacketRef back;
    if (decode_with_crcs_made(bytes, p->kind == PacketKind::kIb, back) == Decoded::kOk) {
      ++accepted;
      EXPECT_LE(back->payload_len, kMaxPayload);
      EXPECT_LE(back->data() + back->payload_len, back->frame() + kMaxFrame);
    }
  }
  EXPECT_GT(accepted, 1000);
}

std::string link_name(const ::testing::TestParamInfo<int>& info) {
  const char* const names[] = {"Ib", "IbGlobal", "RoceV1", "RoceV2Ipv4", "RoceV2Ipv6"};
  return std::string(names[info.param % 5]) + (info.param >= 5 ? "Vlan" : "");
}
INSTANTIATE_TEST_SUITE_P(Links, CodecRoundTrip, ::testing::Values(0, 1, 2, 3, 4, 7, 8, 9), link_name);

// ---- What is not RoCE ----

TEST(Codec, OtherFramesStayAsTheyAre) {
  PacketRef roce = sample();
  roce->kind = PacketKind::kRoceV2;
  roce->ipv4 = true;
  const Bytes good = encoded(*roce);
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes b = good;
    b[at] = value;
    return b;
  };
  const std::pair<const char*, Bytes> cases[] = {
      {"ARP", with(13, 0x06)},         {"IP options", with(14, 0x46)}, {"TCP", with(23, 6)},
      {"a fragment", with(20, 0x20)},  {"its end", with(21, 1)},       {"another port", with(37, 0xb8)},
      {"IP version 5", with(14, 0x55)}};
  for (const auto& [what, bytes] : cases) {
    PacketRef p = frame(bytes);
    EXPECT_EQ(decode_roce(*p), Decoded::kNotRoce) << what;
    EXPECT_EQ(p->kind, PacketKind::kEthernet) << what;
    EXPECT_EQ(encoded(*p), bytes) << what;
  }
  PacketRef p = frame(with(25, 0));
  EXPECT_EQ(decode_roce(*p), Decoded::kMalformed) << "IP checksum";
}

TEST(Codec, FramesAreNeverShorterThanTheLinkAllows) {
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kRoceV2;
  p->ipv4 = true;
  p->opcode = 0x04;
  const Bytes bytes = encoded(*p);
  ASSERT_EQ(bytes.size(), kShortestFrame);
  PacketRef back = frame(bytes);
  ASSERT_EQ(decode_roce(*back), Decoded::kOk) << "padding behind the IP packet is none of its bytes";
  EXPECT_EQ(back->payload_len, 0u);
}

TEST(Codec, UnknownOpcodesAreForTheReceiverToRefuse) {
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kRoceV1;
  p->opcode = 0x7f;
  p->payload_len = 20;
  PacketRef back = frame(encoded(*p));
  ASSERT_EQ(decode_roce(*back), Decoded::kOk);
  EXPECT_EQ(back->opcode, 0x7f);
  EXPECT_EQ(back->payload_len, 20u);
}

TEST(Codec, NothingIsWrittenWithoutRoom) {
  Bytes room(80);
  const PacketRef p = sample();
  p->kind = PacketKind::kRoceV1;
  EXPECT_EQ(encode(*p, room.data(), room.size()), 0u);
}

TEST(Codec, NetworkHeaderOfADatagram) {
  PacketRef p = sample();
  p->kind = PacketKind::kRoceV2;
  p->ipv4 = true;
  p->sgid[15] = 9;
  p->hop_limit = 3;
  std::uint8_t area[kGrhArea];
  network_header(*p, area);
  EXPECT_EQ(Bytes(area, area + 20), Bytes(20));
  const Bytes bytes = encoded(*p);
  EXPECT_EQ(Bytes(area + 20, area + 40), Bytes(bytes.begin() + 14, bytes.begin() + 34));
  p->ipv4 = false;
  network_header(*p, area);
  const Bytes six = encoded(*p);
  EXPECT_EQ(Bytes(area, area + 40), Bytes(six.begin() + 14, six.begin() + 54));
}

}  // namespace
}  // namespace hcasim
