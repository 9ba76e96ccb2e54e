// SPDX-License-Identifier: BSD-3-Clause
// Steering by entries of formats 1 and 2: with masks of their own, by definers, and what they do to frames.
#include "model/steer/header_arguments.h"
#include "ste_fixture.h"

namespace hcasim::ste {
namespace {

using prm::SteV1;
using prm::SteV1Anchor;
using prm::SteV1Field;
using prm::SteV1Lookup;
using Act = prm::SteV1Action;

class SteV1Test : public SteTest {
 public:
  const MatchDefiner* definer(std::uint32_t id) override {
    const auto it = definers.find(id);
    return it == definers.end() ? nullptr : &it->second;
  }
  const std::uint8_t* header_arguments(std::uint32_t number) override { return arguments.line(number); }
  bool measure(std::uint32_t object, unsigned meter, unsigned before, unsigned reg,
               SteeredFrame& f) override {
    measured = {object, meter, before, reg};
    f.regs.c[reg & 7] = 2;
    return object == 9;
  }

 protected:
  struct V1 : Entry {
    template <class F>
    V1& set(std::uint64_t v) {
      Entry::set<F>(v);
      return *this;
    }
    V1& hit(std::uint64_t base, std::uint64_t entries) {
      const std::uint64_t v = base >> 5 | entries;
      return set<SteV1::next_base_39_32>(v >> 27).set<SteV1::next_base_31_5>(v & 0x7ffffff);
    }
    V1& hit(IcmTarget target) { return hit(icm_address(target), 1); }
    V1& miss(std::uint64_t addr) {
      return set<SteV1::miss_39_32>(addr >> 32).set<SteV1::miss_31_6>((addr & 0xffffffff) >> 6);
    }
    V1& no_hit() { return set<SteV1::next_base_39_32>(0xff).set<SteV1::next_base_31_5>(0x7ffffff); }
    V1& fits(const SteTag& tag, const SteTag& mask) {
      std::copy(mask.begin(), mask.end(), bytes.begin() + prm::kSteV1Mask);
      for (unsigned i = 0; i < 16; ++i) bytes[prm::kSteV1Tag + i] = tag[i] & mask[i];
      return *this;
    }
    // Double words from a byte of the entry on.
    V1& words(unsigned at, std::initializer_list<std::uint32_t> list) {
      for (const std::uint32_t w : list) prm::store32(bytes.data() + at, w), at += 4;
      return *this;
    }
  };
  static V1 masked(SteV1Lookup lookup) {
    const auto v = static_cast<unsigned>(lookup);
    return V1().set<SteV1::format>(v >> 8).set<SteV1::definer>(v & 0xff).set<SteV1::hash_definer>(0x0f);
  }
  static V1 any() { return masked(SteV1Lookup::kIpv4MiscI); }
  static V1 match(unsigned definer) { return V1().set<SteV1::format>(4).set<SteV1::definer>(definer); }
  static V1& acts(V1& e, std::initializer_list<std::uint32_t> list) { return e.words(SteV1::kActions, list); }
  static SteTag tag_of(SteV1Lookup lookup, const SteeredFrame& f, const SteSource& source = {}) {
    SteTag t;
    EXPECT_TRUE(make_ste_tag(lookup, f, source, t));
    return t;
  }
  static std::uint32_t word(const SteTag& t, unsigned i) { return prm::load32(t.data() + 4 * i); }
  SteEnd walk1(std::uint64_t addr, SteeredFrame& f, bool receive = true,
               SteFormat format = SteFormat::kConnectX6Dx) {
    return SteWalker(icm, *this, format).walk(addr, receive, f, {});
  }
  // What a rewriting list makes of a frame.
  Bytes rewritten(const Bytes& from, const std::vector<std::array<std::uint32_t, 2>>& list,
                  SteFormat format = SteFormat::kConnectX6Dx, SteeredFrame* out = nullptr) {
    Bytes b;
    for (const auto& a : list) u32(b, a[0]), u32(b, a[1]);
    EXPECT_TRUE(icm.write(kRewrite + 64 * line, b.data(), b.size()));
    V1 e = any().hit(kTir7);
    acts(e, {Act::kModifyList << 24 | static_cast<unsigned>(list.size()) << 16 | line});
    line += static_cast<unsigned>(list.size() + 7) / 8;
    SteeredFrame f = steer(from);
    EXPECT_TRUE(leads_to(walk1(single(e), f, true, format), kTir7));
    if (out) *out = f;
    return content(f);
  }
  static std::uint32_t head(unsigned op, SteV1Field field, unsigned shift, unsigned length) {
    return op << 24 | static_cast<unsigned>(field) << 16 | (shift + 32) << 8 | length;
  }

  std::map<std::uint32_t, MatchDefiner> definers;
  std::array<std::uint32_t, 4> measured{};
  HeaderArguments arguments;
};

TEST_F(SteV1Test, TagsHaveTheirFieldsInPlace) {
  const SteeredFrame f = steer(udp_frame(0xc9, 100, 0xb123));
  SteTag t = tag_of(SteV1Lookup::kL2DstO, f);
  EXPECT_EQ(word(t, 0) >> 16 & 3, 2u);      // VLAN qualifier: C
  EXPECT_EQ(word(t, 0) & 0xffff, 0xb123u);  // TCI
  EXPECT_EQ(word(t, 0) >> 20 & 3, 1u);      // L3: IPv4
  EXPECT_EQ(word(t, 1), 0x248a07a5u);
  EXPECT_EQ(word(t, 2), 0x28c80800u);
  t = tag_of(SteV1Lookup::kL2SrcDstO, f);
  EXPECT_EQ(word(t, 0), 0x248a07a5u);
  EXPECT_EQ(word(t, 1), 0x248a07a5u);
  EXPECT_EQ(word(t, 2) >> 16, 0x28c8u);
  EXPECT_EQ(word(t, 3), 0xb12328c9u);
  t = tag_of(SteV1Lookup::kIpv4TupleO, f);
  EXPECT_EQ(word(t, 0), kSip);
  EXPECT_EQ(word(t, 1), kDip);
  EXPECT_EQ(word(t, 2), kSport << 16 | kDport);
  EXPECT_EQ(word(t, 3) & 0xffff, 0x0811u);  // DSCP and ECN, protocol
  t = tag_of(SteV1Lookup::kIpv4MiscO, f);
  EXPECT_EQ(word(t, 2) >> 16, 0x4540u);  // version, IHL, TTL
  t = tag_of(SteV1Lookup::kL4O, f);
  EXPECT_EQ(word(t, 0), 0x40084011u);
  EXPECT_EQ(word(t, 1), kSport << 16 | kDport);
  const SteSource source{0x1234, 0x56789a, true};
  t = tag_of(SteV1Lookup::kSrcGvmiQp, f, source);
  EXPECT_EQ(word(t, 0), 0x00011234u);
  EXPECT_EQ(word(t, 1), 0x0056789au);
}

// Labels behind a tunnel's Ethernet header are the inner ones; right behind GRE or UDP they are a flex
// parser's.
TEST_F(SteV1Test, LabelsAreWhereTheyBelong) {
  constexpr std::uint32_t kLabel = 0x12345140;  // bottom of the stack
  const Bytes inner = udp_frame();
  Bytes labelled(inner.begin(), inner.begin() + 12);
  u16(labelled, 0x8847), u32(labelled, kLabel);
  labelled.insert(labelled.end(), inner.begin() + 14, inner.end());
  Bytes behind_mac = gre_header(0x6558, static_cast<unsigned>(labelled.size()));
  append(behind_mac, labelled);
  const Bytes ip(inner.begin() + 14, inner.end());
  Bytes behind_gre = gre_header(0x8847, static_cast<unsigned>(ip.size() + 4));
  u32(behind_gre, kLabel);
  append(behind_gre, ip);
  SteeredFrame f = steer(behind_mac), g = steer(behind_gre);
  EXPECT_EQ(word(tag_of(SteV1Lookup::kMplsI, f), 1), kLabel);
  EXPECT_EQ(word(tag_of(SteV1Lookup::kMplsI, f), 0), 3u);
  EXPECT_EQ(word(tag(SteLookup::kMplsI, f), 0), kLabel);
  EXPECT_EQ(word(tag_of(SteV1Lookup::kMplsI, g), 1), 0u);
  EXPECT_EQ(word(tag(SteLookup::kMplsI, g), 0), 0u);
  EXPECT_EQ(word(tag_of(SteV1Lookup::kFlexParser1, g), 3 - kFlexMplsGre % 4), kLabel);
  EXPECT_EQ(word(tag(SteLookup::kFlexParser1, g), 3 - kFlexMplsGre % 4), kLabel);
  EXPECT_EQ(word(tag_of(SteV1Lookup::kFlexParser1, f), 3 - kFlexMplsGre % 4), 0u);
  EXPECT_EQ(word(tag_of(SteV1Lookup::kFlexOk, g), 2) >> 24, 1u << kFlexMplsGre);
}

TEST_F(SteV1Test, EntriesWithMasksAreFoundByHash) {
  const std::uint64_t end = single(any().no_hit().miss(icm_address(kRxDrop)));
  SteTag mask{};
  std::fill(mask.begin() + 8, mask.begin() + 12, 0xff);  // ports
  constexpr std::uint64_t kEntries = 16;
  const std::uint64_t base = alloc(kEntries);
  for (unsigned i = 0; i < kEntries; ++i)
    put(base + 64 * i, masked(SteV1Lookup::kIpv4TupleO).no_hit().miss(end));
  SteeredFrame f = steer(udp_frame());
  const SteTag t = tag_of(SteV1Lookup::kIpv4TupleO, f);
  put(base + 64 * (plain_hash(t, byte_mask_of(mask)) % kEntries),
      masked(SteV1Lookup::kIpv4TupleO).fits(t, mask).miss(end).hit(kTir7).set<SteV1::counter>(5));
  const std::uint64_t start =
      single(any()
                 .hit(base, kEntries)
                 .set<SteV1::byte_mask>(byte_mask_of(mask))
                 .set<SteV1::hash_definer>(static_cast<unsigned>(SteV1Lookup::kIpv4TupleO)));
  EXPECT_TRUE(leads_to(walk1(start, f), kTir7));
  EXPECT_EQ(packets[5], 1u);
  Bytes other = udp_frame();
  other[35] ^= 1;  // the source port
  f = steer(other);
  EXPECT_EQ(walk1(start, f).fate, SteEnd::kDropped);
}

TEST_F(SteV1Test, AParserSamplesAnOptionOfGeneve) {
  constexpr unsigned kPort = 6081;
  Bytes b = udp_frame();
  b[36] = kPort >> 8, b[37] = kPort & 0xff;
  prm::store32(b.data() + 42, 0x02006558), prm::store32(b.data() + 46, 0x5a6b7c00);
  prm::store32(b.data() + 50, 0x01025501), prm::store32(b.data() + 54, 0x7e8d9cab);
  const SteeredFrame f = steer(b);
  SteSource source;
  EXPECT_EQ(word(tag_of(SteV1Lookup::kFlexParser1, f, source), 3 - kFlexGeneveOption % 4), 0u);
  source.option = {true, 0x0102, 0x55};
  EXPECT_EQ(word(tag_of(SteV1Lookup::kFlexParser1, f, source), 3 - kFlexGeneveOption % 4), 0x7e8d9cabu);
  source.option.type = 0x54;
  EXPECT_EQ(word(tag_of(SteV1Lookup::kFlexParser1, f, source), 3 - kFlexGeneveOption % 4), 0u);
}

TEST_F(SteV1Test, EntriesWithoutMasksMatchByDefiner) {
  MatchDefiner d;
  d.format = 22;
  std::fill(d.mask.begin() + MatchDefiner::kFields, d.mask.begin() + MatchDefiner::kFields + 12, 0xff);
  ASSERT_TRUE(d.known());
  definers[0x40] = d;
  SteeredFrame f = steer(udp_frame());
  const MatchDefiner::Tag t = d.tag(f, {});
  V1 e = match(0x40).hit(kTir7).miss(icm_address(kRxDrop));
  std::copy(t.begin() + MatchDefiner::kFields, t.end(), e.bytes.begin() + prm::kSteV1MatchTag);
  constexpr std::uint64_t kEntries = 8;
  const std::uint64_t base = alloc(kEntries);
  for (unsigned i = 0; i < kEntries; ++i) put(base + 64 * i, match(0x40).no_hit().miss(icm_address(kRxDrop)));
  put(base + 64 * ste_hash(t.data() + MatchDefiner::kFields, prm::kSteV1MatchTagBytes, kEntries), e);
  const std::uint64_t start =
      single(match(SteV1::kAnyDefiner).hit(base, kEntries).set<SteV1::hash_definer>(0x40));
  EXPECT_TRUE(leads_to(walk1(start, f), kTir7));
  Bytes other = udp_frame();
  other[29] ^= 1;  // the source address
  f = steer(other);
  EXPECT_EQ(walk1(start, f).fate, SteEnd::kDropped);
  f = steer(udp_frame());
  EXPECT_EQ(walk1(single(match(0x41).hit(kTir7)), f).fate, SteEnd::kLost);  // no such definer
}

// The double words of a layout, all of whose known fields count.
struct Words {
  MatchDefiner definer;
  MatchDefiner::Tag tag{};
  Words(unsigned format, const SteeredFrame& f, const SteSource& source = {}) {
    definer.format = static_cast<std::uint16_t>(format);
    definer.mask.fill(0xff);
    tag = definer.tag(f, source);
  }
  std::uint32_t operator[](unsigned i) const {
    return prm::load32(tag.data() + MatchDefiner::kFields + 4 * i);
  }
};

TEST_F(SteV1Test, DefinersOfSoftwareHaveTheirFieldsInPlace) {
  SteeredFrame f = steer(udp_frame(0xc9, 100, 0xb123));
  for (unsigned i = 0; i < 8; ++i) f.regs.c[i] = 0xc0 + i;
  f.regs.a = 0xa5;
  const SteSource source{0x1234, 0x56789a, true};
  const Words w0(0, f), w2(2, f), w16(16, f, source), w22(22, f), w24(24, f), w33(33, f);
  EXPECT_EQ(w0[0], 0xc0u);
  EXPECT_EQ(w0[1], 0xc1u);
  EXPECT_EQ(w0[2], 0x248a07a5u);
  EXPECT_EQ(w0[4] & 0xffff, 0xb123u);
  EXPECT_EQ(w2[0], 0xa5u);
  EXPECT_EQ(w2[1], 0x45084011u);
  EXPECT_EQ(w2[6], kSport << 16 | kDport);
  EXPECT_EQ(w16[5], 0xa5u);
  EXPECT_EQ(w16[6] & 0xffff, 0x1234u);
  EXPECT_EQ(w16[7] & 0xffffff, 0x56789au);
  EXPECT_EQ(w22[0], kSip);
  EXPECT_EQ(w22[4], 0xc0u);
  EXPECT_EQ(w24[0], 0xc2u);
  EXPECT_EQ(w24[5], kDip);
  EXPECT_EQ(w24[7] >> 8 & 0xff, 17u);
  EXPECT_EQ(w33[3] & 0xffff, 0xb123u);
  EXPECT_EQ(w33[7] >> 24, 0x45u);
  EXPECT_EQ(w33[7] & 0xffff, 0x4011u);
  Bytes tunnel = gre_header(0x6558, static_cast<unsigned>(udp_frame().size()));
  append(tunnel, udp_frame());
  f = steer(tunnel);
  const Words w25(25, f), w28(28, f);
  EXPECT_EQ(w25[0], kSip);
  EXPECT_EQ(w25[2], kSport << 16 | kDport);
  EXPECT_EQ(w28[0], kSport << 16 | kDport);
  EXPECT_EQ(w28[3], kDip);
  EXPECT_EQ(w28[4], 0x01020304u);
  MatchDefiner none;
  none.format = 3;
  EXPECT_FALSE(none.known());
}

TEST_F(SteV1Test, ActionsOfAnEntryAreDoneInOrder) {
  SteeredFrame f = steer(udp_frame(0xc9, 100, 0xb123));
  V1 e = match(SteV1::kAnyDefiner).hit(kTir7);
  // The tag off, then another one on, and the flow tag in an entry of its own.
  e.words(SteV1::kLongActions,
          {Act::kRemoveBySize << 24 | static_cast<unsigned>(SteV1Anchor::kFirstVlan) << 16 | 2,
           Act::kInsertInline << 24 | 6 << 9, 0x88a80007});
  V1 first = any().hit(single(e), 1);
  acts(first, {Act::kFlowTag << 24 | 0xabcdef, 0});
  EXPECT_TRUE(leads_to(walk1(single(first), f), kTir7));
  EXPECT_EQ(f.flow_tag, 0xabcdefu);
  Bytes want = udp_frame(0xc9, 100, 0xb123);
  want[12] = 0x88, want[13] = 0xa8, want[14] = 0, want[15] = 7;
  EXPECT_EQ(content(f), want);
  // Without a tag there is nothing to take off.
  f = steer(udp_frame());
  V1 pop = any().hit(kTir7);
  acts(pop, {Act::kRemoveBySize << 24 | static_cast<unsigned>(SteV1Anchor::kFirstVlan) << 16 | 2});
  EXPECT_TRUE(leads_to(walk1(single(pop), f), kTir7));
  EXPECT_EQ(content(f), udp_frame());
}

// With a mask and three double words of actions, as the kernel's driver adds them behind a rule's last entry
// for what has no room there; tables of several entries cannot follow.
TEST_F(SteV1Test, LongEntriesHaveMasksAndMoreActions) {
  constexpr unsigned kLong = 2;
  const auto longer = [](SteV1Lookup lookup) {
    const auto v = static_cast<unsigned>(lookup);
    return V1().set<SteV1::format>((v >> 8) + kLong).set<SteV1::definer>(v & 0xff);
  };
  const std::initializer_list<std::uint32_t> actions = {Act::kFlowTag << 24 | 0xabcdef,
                                                        Act::kInsertInline << 24 | 6 << 9, 0x81000007};
  SteeredFrame f = steer(udp_frame());
  for (const SteV1Lookup lookup : {SteV1Lookup::kIpv4TupleO, SteV1Lookup::kGeneralPurpose}) {
    f = steer(udp_frame());
    f.regs.a = 0x1234;
    SteTag mask{};
    std::fill(mask.begin(), mask.begin() + 4, 0xff);
    V1 e = longer(lookup).hit(kTir7).miss(icm_address(kRxDrop)).fits(tag_of(lookup, f), mask);
    e.words(SteV1::kLongActions, actions);
    EXPECT_TRUE(leads_to(walk1(single(e), f), kTir7));
    EXPECT_EQ(f.flow_tag, 0xabcdefu);
    Bytes want = udp_frame();
    want.insert(want.begin() + 12, {0x81, 0, 0, 7});
    EXPECT_EQ(content(f), want);
    e.bytes[prm::kSteV1Tag] ^= 1;
    f = steer(udp_frame());
    f.regs.a = 0x1234;
    EXPECT_EQ(walk1(single(e), f).fate, SteEnd::kDropped);
  }
  f = steer(udp_frame());
  EXPECT_EQ(walk1(single(longer(SteV1Lookup::kIpv4MiscI).hit(alloc(8), 8)), f).fate, SteEnd::kLost);
  EXPECT_EQ(walk1(single(V1().set<SteV1::format>(5).hit(kTir7)), f).fate, SteEnd::kLost);  // no such format
}

TEST_F(SteV1Test, TunnelsArePutOnAndTakenOff) {
  const Bytes inner = udp_frame();
  const Bytes ip(inner.begin() + 14, inner.end());
  headers[3] = gre_header(0x6558, 0);
  const auto words = static_cast<unsigned>(headers[3].size() / 2);
  V1 on = any().hit(kAllow);
  acts(on, {Act::kInsertPointer << 24 | words << 3 | Act::kInsertTunnel, 3});
  SteeredFrame f = steer(inner);
  EXPECT_TRUE(leads_to(walk1(single(on), f, false), kAllow));
  Bytes want = gre_header(0x6558, static_cast<unsigned>(inner.size()));
  append(want, inner);
  EXPECT_EQ(content(f), want);
  V1 off = any().hit(kTir7);
  acts(off, {Act::kRemoveHeaders << 24 | static_cast<unsigned>(SteV1Anchor::kInnerMac) << 8 | 8});
  EXPECT_TRUE(leads_to(walk1(single(off), f), kTir7));
  EXPECT_EQ(content(f), inner);

  // In place of the Ethernet header; then a list of the Ethernet header anew, two bytes at its start too
  // much.
  headers[4] = gre_header(0x0800, 0);
  V1 on3 = match(SteV1::kAnyDefiner).hit(kAllow);
  on3.words(SteV1::kLongActions, {Act::kRemoveHeaders << 24 | static_cast<unsigned>(SteV1Anchor::kIp) << 8,
                                  Act::kInsertPointer << 24 | words << 3 | Act::kInsertTunnel, 4});
  f = steer(inner);
  EXPECT_TRUE(leads_to(walk1(single(on3), f, false), kAllow));
  want = gre_header(0x0800, static_cast<unsigned>(ip.size()));
  append(want, ip);
  EXPECT_EQ(content(f), want);
  const std::uint32_t insert = Act::kInsertInline << 24;
  EXPECT_EQ(rewritten(content(f),
                      {{Act::kRemoveHeaders << 24 | static_cast<unsigned>(SteV1Anchor::kInnerIp) << 8 | 8, 0},
                       {insert, 0x28c90800},
                       {insert, 0x248a07a5},
                       {insert, 0x07a528c8},
                       {insert, 0x0000248a},
                       {Act::kRemoveBySize << 24 | 1, 0}}),
            inner);
}

TEST_F(SteV1Test, FieldsAreRewritten) {
  Bytes want = udp_frame();
  want[0] = 2, want[1] = 0xa1, want[2] = 0xb2, want[3] = 0xc3;
  EXPECT_EQ(rewritten(udp_frame(), {{head(Act::kSet, SteV1Field::kDmac, 0, 32), 0x02a1b2c3}}), want);
  want = udp_frame();
  want[22] = 0x3f;
  put_ip_checksum(want.data(), parse_frame(want.data(), static_cast<std::uint32_t>(want.size())).outer);
  EXPECT_EQ(rewritten(udp_frame(), {{head(Act::kAdd, SteV1Field::kL3, 8, 8), 0xff}}), want);
  want = udp_frame();
  want[34] = 0x43, want[35] = 0x21;
  const FrameHeaders h = parse_frame(want.data(), static_cast<std::uint32_t>(want.size()));
  put_l4_checksum(want.data(), h.outer);
  EXPECT_EQ(rewritten(udp_frame(), {{head(Act::kSet, SteV1Field::kL4Ports, 16, 16), 0x4321}}), want);
  // Registers are elsewhere in format 2.
  for (const bool second : {false, true}) {
    const auto c1 = static_cast<SteV1Field>(second ? 0x95 : 0x91), a = SteV1Field::kRegisterA;
    SteeredFrame f = steer(udp_frame());
    rewritten(udp_frame(),
              {{head(Act::kSet, c1, 0, 32), 0x12345678},
               {head(Act::kCopy, a, 4, 8), static_cast<unsigned>(c1) << 16 | (32 + 8) << 8}},
              second ? SteFormat::kConnectX7 : SteFormat::kConnectX6Dx, &f);
    EXPECT_EQ(f.regs.c[1], 0x12345678u);
    EXPECT_EQ(f.regs.a, 0x560u);
  }
}

TEST_F(SteV1Test, AMeterColoursTheFrame) {
  V1 e = any().hit(kTir7);
  acts(e, {static_cast<std::uint32_t>(Act::kAso) << 24 | 9, 2u << 30 | Act::kAsoMeter << 24 | 2 << 1 | 1});
  SteeredFrame f = steer(udp_frame());
  EXPECT_TRUE(leads_to(walk1(single(e), f), kTir7));
  EXPECT_EQ(measured, (std::array<std::uint32_t, 4>{9, 1, 2, 5}));
  EXPECT_EQ(f.regs.c[5], 2u);
}

// What is done stands in a pattern that several lists share, with what in arguments of each one's own.
TEST_F(SteV1Test, PatternsTakeTheirValuesFromArguments) {
  constexpr std::uint32_t kPd = 5, kFirst = 0x1000;
  ASSERT_TRUE(icm.allocate(SwIcm::patterns(), 1u << 12));
  Bytes pattern, values;
  for (unsigned i = 0; i < 9; ++i)
    u32(pattern, head(Act::kSet, SteV1Field::kIpv4Source, 0, 32)), u32(pattern, 0);
  u32(pattern, head(Act::kAdd, SteV1Field::kL3, 8, 8)), u32(pattern, 0);
  ASSERT_TRUE(icm.write(SwIcm::patterns() + 64, pattern.data(), pattern.size()));
  const auto line_of = [](std::initializer_list<std::uint32_t> words) {
    Bytes b(prm::kFlowUpdateCtrl);
    for (const std::uint32_t w : words) u32(b, 0), u32(b, w);
    b.resize(prm::kFlowUpdateCtrl + prm::kHeaderArgument);
    return b;
  };
  const auto write = [&](std::uint32_t pd, std::uint32_t number, const Bytes& b) {
    return arguments.write(pd, number, b.data(), b.size());
  };
  arguments.create(kFirst, 8, kPd);
  EXPECT_TRUE(write(kPd, kFirst + 2, line_of({1, 2, 3, 4, 5, 6, 7, 8})));
  EXPECT_TRUE(write(kPd, kFirst + 3, line_of({0x01020304, 0xff})));
  EXPECT_FALSE(write(kPd + 1, kFirst + 3, line_of({})));  // another's
  EXPECT_FALSE(write(kPd, kFirst + 8, line_of({})));
  EXPECT_FALSE(write(kPd, kFirst - 1, line_of({})));
  EXPECT_FALSE(write(kPd, kFirst, Bytes(prm::kFlowUpdateCtrl + prm::kHeaderArgument - 1)));
  const auto list = [&](std::uint32_t first, unsigned count = 10) {
    V1 e = any().hit(kTir7);
    acts(e, {Act::kAcceleratedList << 24 | 1, count << 24 | first});
    SteeredFrame f = steer(udp_frame());
    const bool done = leads_to(walk1(single(e), f), kTir7);
    return done ? content(f) : Bytes();
  };
  Bytes b = list(kFirst + 2);
  ASSERT_EQ(b.size(), udp_frame().size());
  EXPECT_EQ(prm::load32(b.data() + 26), 0x01020304u);
  EXPECT_EQ(b[22], udp_frame()[22] - 1);  // TTL
  b = list(kFirst + 4);                   // never written: zeros
  ASSERT_FALSE(b.empty());
  EXPECT_EQ(prm::load32(b.data() + 26), 0u);
  EXPECT_EQ(b[22], udp_frame()[22]);
  EXPECT_TRUE(list(kFirst + 7).empty());  // its second line is nobody's
  EXPECT_FALSE(list(kFirst + 7, 8).empty());
  arguments.destroy(kFirst);
  EXPECT_TRUE(list(kFirst + 2).empty());
}

TEST_F(SteV1Test, NonsenseEndsAndIsLost) {
  std::mt19937 random(7);
  SteeredFrame f = steer(udp_frame());
  EXPECT_EQ(walk1(single(any().hit(kSte, 1)), f).fate, SteEnd::kLost);  // itself, again and again
  next = 0;
  for (unsigned i = 0; i < 20000; ++i) {
    V1 e = i % 2 ? any() : match(SteV1::kAnyDefiner);
    e.hit(kTir7).miss(kSte);
    for (unsigned b = 20; b < 32; ++b) e.bytes[b] = static_cast<std::uint8_t>(random());
    e.bytes[20] = static_cast<std::uint8_t>(random() % 0x16),
    e.bytes[24] = static_cast<std::uint8_t>(random() % 0x16);
    if (i % 3 == 0)
      for (unsigned b = 0; b < 20; ++b) e.bytes[b] = static_cast<std::uint8_t>(random());
    put(kSte, e);
    f = steer(udp_frame(1, 60, i % 5 ? 0 : 7));
    const SteEnd end = walk1(kSte, f, i % 7 != 0);
    EXPECT_LE(f.len(), static_cast<unsigned>(kMaxFrame));
    EXPECT_LE(end.fate, SteEnd::kOut);
  }
}

}  // namespace
}  // namespace hcasim::ste
