// SPDX-License-Identifier: BSD-3-Clause
// Steering by entries in SW ICM: entries built as software builds them, and as nobody should.
#include "ste_fixture.h"

namespace hcasim::ste {
namespace {

// ---- Memory ----

TEST_F(SteTest, MemoryIsThereWhereItWasAllocated) {
  constexpr std::uint64_t kHere = kSte + kMemory;
  std::uint8_t buf[128] = {1, 2, 3}, back[128];
  EXPECT_FALSE(icm.write(kHere, buf, 1));
  EXPECT_FALSE(icm.allocate(kHere, 100));
  EXPECT_FALSE(icm.allocate(kHere + 64, 4096));
  EXPECT_FALSE(icm.allocate(kHere - 4096, 8192));  // the first page is another's
  EXPECT_FALSE(icm.allocate(0x1000, 4096));
  const std::uint64_t size = std::uint64_t{1} << SwIcm::log_size(SwIcm::kSteering);
  EXPECT_FALSE(icm.allocate(kSte + size - 4096, 8192));
  ASSERT_TRUE(icm.allocate(kSte + size - 4096, 4096));
  ASSERT_TRUE(icm.allocate(kHere, 8192));
  EXPECT_FALSE(icm.allocate(kHere + 4096, 4096));
  ASSERT_TRUE(icm.write(kHere + 4096 - 64, buf, 128));
  ASSERT_TRUE(icm.read(kHere + 4096 - 64, back, 128));
  EXPECT_TRUE(std::equal(buf, buf + 128, back));
  EXPECT_FALSE(icm.read(kHere + 8192 - 64, back, 65));
  EXPECT_FALSE(icm.read(kHere - 1, back, ~std::size_t{0}));
  EXPECT_EQ(icm.line(kHere + 32), nullptr);
  EXPECT_EQ(icm.line(kHere + 8192), nullptr);
  EXPECT_EQ(icm.line(kHere + 4096 - 64)[2], 3);
  EXPECT_FALSE(icm.release(kHere + 4096));
  ASSERT_TRUE(icm.release(kHere));
  EXPECT_EQ(icm.line(kHere), nullptr);
  ASSERT_TRUE(icm.allocate(kHere, 8192));
  EXPECT_EQ(icm.line(kHere + 4096 - 64)[2], 0);  // nothing of the one before
  EXPECT_EQ(icm.resident(), 0u);
}

TEST(IcmAddress, EachTargetHasItsOwn) {
  for (const IcmTarget t : {IcmTarget{IcmTarget::kRxDrop, 0}, IcmTarget{IcmTarget::kTir, 0xffffff},
                            IcmTarget{IcmTarget::kTable, 5}, IcmTarget{IcmTarget::kMeter, 1}}) {
    const std::uint64_t addr = icm_address(t);
    EXPECT_EQ(addr >> prm::kSteAddressBits, 0u);
    EXPECT_EQ(addr % kIcmLine, 0u);
    EXPECT_EQ(icm_target(addr).kind, t.kind);
    EXPECT_EQ(icm_target(addr).id, t.id);
    EXPECT_EQ(icm_target(addr + 32).kind, IcmTarget::kNone);
  }
  EXPECT_EQ(icm_target(0).kind, IcmTarget::kNone);
  EXPECT_EQ(icm_target(SwIcm::base(SwIcm::kSteering)).kind, IcmTarget::kNone);
}

// ---- Hash, tables ----

TEST(SteHash, IsTheCrcOfTheBytesThatCount) {
  SteTag count;
  for (unsigned i = 0; i < 16; ++i) count[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(ste_hash(count, 0xffff, std::uint64_t{1} << 32), 0xdda97522u);  // what libmlx5 makes of it
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    SteTag tag;
    for (std::uint8_t& b : tag) b = static_cast<std::uint8_t>(random());
    const auto byte_mask = static_cast<std::uint16_t>(random());
    for (const std::uint64_t entries : {1u, 2u, 16u, 1u << 20})
      EXPECT_EQ(ste_hash(tag, byte_mask, entries), plain_hash(tag, byte_mask) % entries);
  }
}

TEST_F(SteTest, ATableFindsItsEntriesByHash) {
  for (const std::uint64_t entries : {1u, 2u, 64u}) {
    next = 0;
    const std::uint64_t end = single(always_miss(SteType::kRx, SteLookup::kIpv6SrcO, icm_address(kRxDrop)));
    const Table t = table(SteType::kRx, SteLookup::kL2SrcD, mask({{0, 6}}), entries, end);
    const std::uint64_t start = anchor(t);
    for (unsigned i = 0; i < 100; ++i)
      insert(t, tag(t.lookup, steer(udp_frame(static_cast<std::uint8_t>(i)))),
             entry(SteType::kRx, t.lookup).hit(IcmTarget{IcmTarget::kTir, 1000 + i}));
    for (unsigned i = 0; i < 200; ++i) {
      const SteEnd e = walk(start, udp_frame(static_cast<std::uint8_t>(i)));
      if (i < 100)
        EXPECT_TRUE(leads_to(e, {IcmTarget::kTir, 1000 + i}));
      else
        EXPECT_EQ(e.fate, SteEnd::kDropped) << i;
    }
  }
}

TEST_F(SteTest, LookupsFollowEachOther) {
  const std::uint64_t miss = icm_address(kRxDrop);
  const Table ports = table(SteType::kRx, SteLookup::kIpv4TupleD, mask({{8, 12}, {15, 16}}), 8, miss);
  const Table dst = table(SteType::kRx, SteLookup::kL2DstD, mask({{0, 6}}), 4, miss);
  const SteeredFrame f = steer(udp_frame());
  insert(ports, tag(ports.lookup, f), entry(SteType::kRx, ports.lookup).hit(kTir7));
  insert(dst, tag(dst.lookup, f), into(entry(SteType::kRx, dst.lookup), ports));
  const std::uint64_t start = anchor(dst);
  EXPECT_TRUE(leads_to(walk(start, udp_frame()), kTir7));
  Bytes other = udp_frame();
  other[35] ^= 1;  // source port
  EXPECT_EQ(walk(start, other).fate, SteEnd::kDropped);
  other = udp_frame();
  other[5] ^= 1;  // destination MAC
  EXPECT_EQ(walk(start, other).fate, SteEnd::kDropped);
}

// What of each lookup is where; the values are the frame's.
TEST_F(SteTest, TagsShowTheHeaders) {
  const SteeredFrame f = steer(udp_frame(0xc9, 100, 0x7123));
  SteTag t = tag(SteLookup::kL2SrcO, f);
  EXPECT_EQ(prm::load32(t.data()), 0x248a07a5u);
  EXPECT_EQ(prm::get<prm::SteL2::mac_15_0>(t.data()), 0x28c9u);
  EXPECT_EQ(prm::get<prm::SteL2::ethertype>(t.data()), 0x800u);
  EXPECT_EQ(prm::get<prm::SteL2::first_prio>(t.data()), 3u);
  EXPECT_EQ(prm::get<prm::SteL2::first_cfi>(t.data()), 1u);
  EXPECT_EQ(prm::get<prm::SteL2::first_vlan>(t.data()), 2u);
  EXPECT_EQ(prm::get<prm::SteL2::first_vid>(t.data()), 0x123u);
  EXPECT_EQ(prm::get<prm::SteL2::l3_type>(t.data()), 1u);
  EXPECT_EQ(prm::get<prm::SteL2::l4_type>(t.data()), 2u);
  t = tag(SteLookup::kL2SrcDstD, f);
  EXPECT_EQ(prm::get<prm::SteL2SrcDst::smac_47_32>(t.data()), 0x248au);
  EXPECT_EQ(prm::get<prm::SteL2SrcDst::smac_31_0>(t.data()), 0x07a528c9u);
  EXPECT_EQ(prm::get<prm::SteL2SrcDst::first_vid>(t.data()), 0x123u);
  t = tag(SteLookup::kIpv4TupleD, f);
  EXPECT_EQ(prm::get<prm::SteIpv4Tuple::destination>(t.data()), kDip);
  EXPECT_EQ(prm::get<prm::SteIpv4Tuple::source_port>(t.data()), kSport);
  EXPECT_EQ(prm::get<prm::SteIpv4Tuple::dscp>(t.data()), 2u);
  EXPECT_EQ(prm::get<prm::SteIpv4Tuple::protocol>(t.data()), 17u);
  t = tag(SteLookup::kIpv4MiscO, f);
  EXPECT_EQ(t[0], 0x45);
  EXPECT_EQ(t[8], 0x40);
  t = tag(SteLookup::kL4O, f);
  EXPECT_EQ(prm::get<prm::SteL4::destination_port>(t.data()), kDport);
  EXPECT_EQ(prm::get<prm::SteL4::hop_limit>(t.data()), 0x40u);
  EXPECT_EQ(tag(SteLookup::kL2SrcI, f), SteTag{});

  SteeredFrame g = f;
  g.regs.a = 0xaa;
  g.regs.c = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(prm::load32(tag(SteLookup::kGeneralPurpose, g).data()), 0xaau);
  EXPECT_EQ(prm::load32(tag(SteLookup::kRegisters0, g).data() + 4), 2u);
  EXPECT_EQ(prm::load32(tag(SteLookup::kRegisters1, g).data() + 12), 8u);
}

TEST_F(SteTest, TagsShowTheTunnel) {
  const Bytes inner = udp_frame();
  Bytes b = gre_header(0x6558, static_cast<unsigned>(inner.size()));
  append(b, inner);
  const SteeredFrame f = steer(b);
  SteTag t = tag(SteLookup::kGre, f);
  EXPECT_EQ(prm::load32(t.data()), 0x20006558u);
  EXPECT_EQ(prm::load32(t.data() + 8), 0x12345678u);  // the key's place, with no checksum before it
  t = tag(SteLookup::kL2SrcI, f);
  EXPECT_EQ(prm::get<prm::SteL2::mac_15_0>(t.data()), 0x28c9u);
  t = tag(SteLookup::kIpv4TupleI, f);
  EXPECT_EQ(prm::get<prm::SteIpv4Tuple::destination>(t.data()), kDip);
  t = tag(SteLookup::kL2TunnelingI, f);
  EXPECT_EQ(prm::load32(t.data()), 0x248a07a5u);
  EXPECT_EQ(prm::get<prm::SteL2Tunneling::gre_key_flag>(t.data()), 1u);

  Bytes icmp = macs(1);
  u16(icmp, 0x0800);
  u16(icmp, 0x4500), u16(icmp, 28), u16(icmp, 1), u16(icmp, 0), u16(icmp, 0x4001), u16(icmp, 0);
  u32(icmp, kSip), u32(icmp, kDip);
  u32(icmp, 0x0800abcd), u32(icmp, 0x00010002);
  t = tag(SteLookup::kFlexParser0, steer(icmp));
  EXPECT_EQ(prm::load32(t.data() + 4 * (3 - kFlexIcmpDw0)), 0x0800abcdu);
  EXPECT_EQ(prm::load32(t.data() + 4 * (3 - kFlexIcmpDw1)), 0x00010002u);
  EXPECT_EQ(prm::load32(t.data()), 0u);

  Bytes mpls = macs(1);
  u16(mpls, 0x8847);
  u32(mpls, 0x12345000 | 64), u32(mpls, 0x54321100 | 63), u32(mpls, 0x45000000);
  t = tag(SteLookup::kMplsD, steer(mpls));
  EXPECT_EQ(prm::load32(t.data()), 0x12345040u);
  EXPECT_EQ(prm::load32(t.data() + 4), 0x5432113fu);
  EXPECT_EQ(prm::load32(t.data() + 8), 0u);
  EXPECT_EQ(t[15], 1 | 3 << 2);
}

// ---- Actions ----

TEST_F(SteTest, CountersAndTags) {
  SteeredFrame f = steer(udp_frame());
  const std::uint32_t len = f.len();
  Entry e = entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(kTir7);
  e.set<prm::Ste::counter_15_0>(0x3456).set<prm::Ste::counter_23_16>(0x12);
  e.set<prm::SteRx::flow_tag_en>(1).set<prm::SteRx::flow_tag>(0x123);
  EXPECT_TRUE(leads_to(through(e, f), kTir7));
  EXPECT_EQ(f.flow_tag, 0x123u);
  EXPECT_EQ(packets[0x123456], 1u);
  EXPECT_EQ(octets[0x123456], len);
  EXPECT_EQ(f.version, 0u);
}

TEST_F(SteTest, VlanTags) {
  const Bytes plain = udp_frame(), tagged = udp_frame(0xc9, 100, 0x0123);
  SteeredFrame f = steer(plain);
  Entry push = entry(SteType::kTx, SteLookup::kIpv6SrcO).hit(kAllow);
  push.set<prm::SteTx::action_type>(prm::SteTx::kPushVlan).set<prm::SteTx::encap_vlan>(0x81000123);
  EXPECT_TRUE(leads_to(through(push, f, false), kAllow));
  EXPECT_EQ(content(f), tagged);
  Entry pop = entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(kTir7);
  pop.set<prm::SteRx::tunneling_action>(prm::SteRx::kPopVlan);
  EXPECT_TRUE(leads_to(through(pop, f), kTir7));
  EXPECT_EQ(content(f), plain);
  EXPECT_TRUE(leads_to(through(pop, f), kTir7));  // none to take off
  EXPECT_EQ(content(f), plain);
}

TEST_F(SteTest, L2TunnelAndBack) {
  const Bytes plain = udp_frame();
  headers[5] = gre_header(0x6558, static_cast<unsigned>(plain.size()));
  SteeredFrame f = steer(plain);
  Entry encap = entry(SteType::kTx, SteLookup::kIpv6SrcO).hit(kAllow);
  encap.set<prm::SteTx::action_type>(prm::SteTx::kEncap)
      .set<prm::SteTx::action_description>(headers[5].size() / 2)
      .set<prm::SteTx::encap_vlan>(5);
  EXPECT_TRUE(leads_to(through(encap, f, false), kAllow));
  Bytes expected = headers[5];
  append(expected, plain);
  EXPECT_EQ(content(f), expected);
  Entry decap = entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(kTir7);
  decap.set<prm::SteRx::tunneling_action>(prm::SteRx::kDecap);
  EXPECT_TRUE(leads_to(through(decap, f), kTir7));
  EXPECT_EQ(content(f), plain);
  EXPECT_EQ(through(decap, f).fate, SteEnd::kLost);  // no tunnel
  SteeredFrame g = steer(plain);
  EXPECT_EQ(through(encap.set<prm::SteTx::action_description>(9), g, false).fate, SteEnd::kLost);
  EXPECT_EQ(through(encap.set<prm::SteTx::encap_vlan>(6), g, false).fate, SteEnd::kLost);
  EXPECT_EQ(content(g), plain);
}

TEST_F(SteTest, L3TunnelAndBackWithANewEthernetHeader) {
  const Bytes plain = udp_frame();
  headers[5] = gre_header(0x0800, static_cast<unsigned>(plain.size() - 14));
  for (const bool tagged : {false, true}) {
    SteeredFrame f = steer(plain);
    Entry encap = entry(SteType::kTx, SteLookup::kIpv6SrcO).hit(kAllow);
    encap.set<prm::SteTx::action_type>(prm::SteTx::kEncapL3)
        .set<prm::SteTx::action_description>(headers[5].size() / 2)
        .set<prm::SteTx::encap_vlan>(5);
    EXPECT_TRUE(leads_to(through(encap, f, false), kAllow));
    EXPECT_EQ(f.len(), headers[5].size() + plain.size() - 14);
    Entry decap = entry(SteType::kModify, SteLookup::kIpv6SrcO).hit(kTir7);
    decap.set<prm::SteModify::tunneling_action>(prm::SteRx::kL3Decap)
        .set<prm::SteRx::action_description>(tagged ? 1 : 0);
    std::vector<std::uint64_t> list{set_bits(SteField::kL2Dmac, 16, 32, 0x248a07a5),
                                    set_bits(SteField::kL2Smac, 16, 32, 0x248a07a5),
                                    set_bits(SteField::kL2Dmac, 0, 16, 0x28c8),
                                    tagged ? set_bits(SteField::kL2Type, 32, 18, 2u << 16 | 0x0800)
                                           : set_bits(SteField::kL2Type, 32, 16, 0x0800),
                                    set_bits(SteField::kL2Smac, 0, 16, 0x28c9)};
    if (tagged) list.push_back(set_bits(SteField::kL2Type, 0, 16, 0x7123));
    EXPECT_TRUE(leads_to(through(rewrite(decap, list), f), kTir7));
    EXPECT_EQ(content(f), tagged ? udp_frame(0xc9, 100, 0x7123) : plain);
  }
}

TEST_F(SteTest, RewrittenFramesAreRightAndMatchedAnew) {
  const std::uint64_t miss = icm_address(kRxDrop);
  SteeredFrame wanted = steer(udp_frame(0x55));
  const Table t = table(SteType::kRx, SteLookup::kL2SrcD, mask({{0, 6}}), 16, miss);
  insert(t, tag(t.lookup, wanted), entry(SteType::kRx, t.lookup).hit(kTir7));
  Entry e = entry(SteType::kModify, SteLookup::kL2SrcD);  // looks at what it changes
  e.match(tag(SteLookup::kL2SrcD, steer(udp_frame())), mask({{0, 6}})).miss(miss);
  e = into(rewrite(e, {set_bits(SteField::kL2Smac, 0, 8, 0x55), set_bits(SteField::kL3Class, 8, 8, 0xff, 3),
                       set_bits(SteField::kL3Addresses, 32, 32, 0x0b000009), 0,
                       set_bits(SteField::kL4Ports, 16, 16, 99), set_bits(SteField::kL3Class, 6, 2, 1),
                       set_bits(SteField::kL3Class, 0, 6, 0x2a), set_bits(SteField::kL3Dst63, 0, 32, 7),
                       set_bits(SteField::kL4Numbers, 0, 32, 7)}),
           t);
  SteeredFrame f = steer(udp_frame());
  EXPECT_TRUE(leads_to(walk(single(e), f), kTir7));
  const Bytes b = content(f);
  EXPECT_EQ(b[11], 0x55);
  EXPECT_EQ(b[22], 0x3f);           // TTL, one less
  EXPECT_EQ(b[15], 0x2a << 2 | 1);  // DSCP and ECN
  EXPECT_EQ(prm::load32(&b[30]), 0x0b000009u);
  EXPECT_EQ(b[36] << 8 | b[37], 99);
  EXPECT_TRUE(ip_checksum_ok(b.data(), f.headers.outer));
  EXPECT_TRUE(l4_checksum_ok(b.data(), f.headers.outer));
  EXPECT_EQ(b.size(), udp_frame().size());
}

TEST_F(SteTest, RegistersGoWithTheFrame) {
  const std::uint64_t miss = icm_address(kRxDrop);
  const Table t = table(SteType::kRx, SteLookup::kRegisters0, mask({{2, 4}, {6, 8}}), 1, miss);
  SteTag want{};
  prm::store32(want.data(), 0x1234), prm::store32(want.data() + 4, 0x1234);
  insert(t, want, entry(SteType::kRx, t.lookup).hit(kTir7));
  Entry second = entry(SteType::kModify, SteLookup::kIpv6SrcO);
  second = into(rewrite(second, {copy_bits(SteField::kRegisters0, 0, 32, SteField::kRegisters0, 32)}), t);
  Entry first = entry(SteType::kModify, SteLookup::kIpv6SrcO).hit(single(second), 1);
  SteeredFrame f = steer(udp_frame());
  EXPECT_TRUE(leads_to(through(rewrite(first, {set_bits(SteField::kRegisters0, 32, 32, 0x1234)}), f), kTir7));
  EXPECT_EQ(f.regs.c[0], 0x1234u);
  EXPECT_EQ(f.regs.c[1], 0x1234u);
  EXPECT_EQ(content(f), udp_frame());
  // A part of a header into a register's middle, and the general purpose registers.
  Entry third = entry(SteType::kModify, SteLookup::kIpv6SrcO).hit(kTir7);
  rewrite(third, {copy_bits(SteField::kRegisters3, 40, 16, SteField::kL4Ports, 16),
                  set_bits(SteField::kMetadata, 0, 32, 0xa), set_bits(SteField::kMetadata, 32, 32, 0xb)});
  EXPECT_TRUE(leads_to(through(third, f), kTir7));
  EXPECT_EQ(f.regs.c[6], kDport << 8);
  EXPECT_EQ(f.regs.a, 0xau);
  EXPECT_EQ(f.regs.b, 0xbu);
}

// ---- Where entries may not lead ----

TEST_F(SteTest, WhatLeadsNowhereIsLost) {
  const Bytes b = udp_frame();
  const auto lost = [&](const Entry& e, bool receive = true) {
    SteeredFrame f = steer(b);
    return through(e, f, receive).fate == SteEnd::kLost;
  };
  const Entry rx = entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(kTir7);
  EXPECT_FALSE(lost(rx));
  EXPECT_TRUE(lost(rx, false));  // a receive entry on transmit
  EXPECT_TRUE(lost(Entry()));
  EXPECT_TRUE(lost(Entry(rx).set<prm::Ste::entry_type>(5)));
  EXPECT_TRUE(lost(Entry(rx).set<prm::Ste::lookup_type>(0x3f)));
  EXPECT_TRUE(lost(Entry(rx).set<prm::Ste::lookup_type>(0xff)));
  EXPECT_TRUE(lost(Entry(rx).set<prm::Ste::next_lookup_type>(0xff)));
  EXPECT_TRUE(lost(Entry(rx).set<prm::SteRx::tunneling_action>(7)));
  EXPECT_TRUE(lost(Entry(rx).hit(0, 0)));
  EXPECT_TRUE(lost(Entry(rx).hit(kSte + kMemory, 1)));
  EXPECT_TRUE(lost(Entry(rx).hit(kRewrite + 4096, 1)));
  EXPECT_TRUE(lost(Entry(rx).hit(kAllow)));  // for transmit alone
  EXPECT_TRUE(lost(entry(SteType::kTx, SteLookup::kIpv6SrcO).hit(kTir7), false));
  EXPECT_TRUE(lost(always_miss(SteType::kRx, SteLookup::kIpv6SrcO, kSte + kMemory)));
  Entry m = entry(SteType::kModify, SteLookup::kIpv6SrcO).hit(kTir7);
  EXPECT_FALSE(lost(m));
  EXPECT_TRUE(lost(Entry(m).set<prm::SteModify::action_count>(0xffff)));
  EXPECT_TRUE(lost(Entry(m).set<prm::SteModify::action_count>(1).set<prm::SteModify::action_pointer>(~0u)));
  EXPECT_TRUE(lost(rewrite(m, {set_bits(SteField::kL2Dmac, 0, 16, 1, 7)})));
  EXPECT_TRUE(lost(rewrite(m, {set_bits(static_cast<SteField>(0x30), 0, 16, 1)})));
  EXPECT_TRUE(lost(rewrite(m, {copy_bits(SteField::kL2Dmac, 0, 16, static_cast<SteField>(0x30), 1)})));
  EXPECT_EQ(walk(0, b).fate, SteEnd::kLost);
  EXPECT_EQ(walk(~std::uint64_t{0}, b).fate, SteEnd::kLost);
}

TEST_F(SteTest, CirclesEnd) {
  const std::uint64_t at = alloc(1);
  put(at, entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(at, 1).set<prm::Ste::counter_15_0>(9));
  EXPECT_EQ(walk(at, udp_frame()).fate, SteEnd::kLost);
  EXPECT_GT(packets[9], 10'000u) << "long chains are none";
  EXPECT_LE(packets[9], SteWalker::kMaxWork);
  put(at, always_miss(SteType::kRx, SteLookup::kIpv6SrcO, at));
  EXPECT_EQ(walk(at, udp_frame()).fate, SteEnd::kLost);
}

// What a frame costs is bounded, not the number of entries alone.
TEST_F(SteTest, CirclesThatRewriteEndSooner) {
  constexpr unsigned kActions = 512;
  const std::uint64_t at = alloc(1);
  Entry e = entry(SteType::kModify, SteLookup::kIpv6SrcO).hit(at, 1).set<prm::Ste::counter_15_0>(9);
  put(at, rewrite(e, std::vector<std::uint64_t>(kActions, set_bits(SteField::kL2Dmac, 0, 16, 1))));
  EXPECT_EQ(walk(at, udp_frame()).fate, SteEnd::kLost);
  EXPECT_GT(packets[9], 1u);
  EXPECT_LE(packets[9], SteWalker::kMaxWork / kActions);
  // The same for many walks of one frame.
  unsigned work = SteWalker::kMaxWork;
  SteeredFrame f = steer(udp_frame());
  packets[9] = 0;
  for (unsigned i = 0; i < 100; ++i) SteWalker(icm, *this).walk(at, true, f, {}, work);
  EXPECT_LE(packets[9], SteWalker::kMaxWork / kActions + 100);
}

TEST_F(SteTest, AnythingMayStandInMemory) {
  std::mt19937_64 random(7);
  headers[0] = gre_header(0x6558, 0);
  const Bytes frames[] = {udp_frame(), udp_frame(1, 0), udp_frame(1, 1400, 5), gre_header(0x6558, 0)};
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t at = 0; at < kMemory; at += 64) {
      Entry e;
      for (std::uint8_t& b : e.bytes) b = static_cast<std::uint8_t>(random());
      // Likely to be followed: matches often, known types, addresses inside.
      const std::uint64_t inside = kSte + random() % (kMemory / 64) * 64;
      e.hit(inside, 1).miss(inside);
      if (random() % 4) std::fill(e.bytes.begin() + 32, e.bytes.end(), std::uint8_t{0});
      e.set<prm::Ste::lookup_type>(random() % 0x40).set<prm::Ste::next_lookup_type>(random() % 0x40);
      static constexpr unsigned kTypes[] = {1, 2, 6, 6};
      e.set<prm::Ste::entry_type>(kTypes[random() % 4]);
      e.set<prm::SteTx::encap_vlan>(random() % 2);
      put(kSte + at, e);
    }
    for (std::uint64_t at = 0; at < 4096; at += 8) {
      std::uint64_t a = random();
      prm::set<prm::SteAction::opcode>(reinterpret_cast<std::uint8_t*>(&a),
                                       static_cast<std::uint32_t>(random() % 4));
      prm::set<prm::SteAction::field>(reinterpret_cast<std::uint8_t*>(&a),
                                      static_cast<std::uint32_t>(random() % 0x18));
      ASSERT_TRUE(icm.write(kRewrite + at, &a, 8));
    }
    for (const Bytes& b : frames) {
      SteeredFrame f = steer(b);
      walk(kSte + random() % (kMemory / 64) * 64, f, random() % 2 != 0);
      EXPECT_LE(f.len(), kMaxFrame);
      EXPECT_GE(f.len(), kMinFrame);
    }
  }
}

}  // namespace
}  // namespace hcasim::ste
