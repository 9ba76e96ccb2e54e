// SPDX-License-Identifier: BSD-3-Clause
// Steering entries as software builds them (tables found by hash, collision chains, anchors), frames for
// them, and a walk through them.
#ifndef HCASIM_TESTS_MODEL_STE_FIXTURE_H
#define HCASIM_TESTS_MODEL_STE_FIXTURE_H

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "model/eth/checksum.h"
#include "model/steer/ste.h"

namespace hcasim::ste {

using prm::SteField;
using prm::SteLookup;
using prm::SteType;
using Bytes = std::vector<std::uint8_t>;

inline void u16(Bytes& b, unsigned v) {
  b.push_back(static_cast<std::uint8_t>(v >> 8));
  b.push_back(static_cast<std::uint8_t>(v));
}
inline void u32(Bytes& b, std::uint32_t v) { u16(b, v >> 16), u16(b, v & 0xffff); }
inline void append(Bytes& b, const Bytes& more) { b.insert(b.end(), more.begin(), more.end()); }

constexpr std::uint32_t kSip = 0x0a000001, kDip = 0x0a000002;
constexpr unsigned kSport = 1234, kDport = 5678;

inline Bytes macs(std::uint8_t source) {
  Bytes b{0x24, 0x8a, 0x07, 0xa5, 0x28, 0xc8, 0x24, 0x8a, 0x07, 0xa5, 0x28};
  b.push_back(source);
  return b;
}

inline Bytes udp_frame(std::uint8_t source = 0xc9, unsigned payload = 100, unsigned tci = 0) {
  Bytes b = macs(source);
  if (tci) u16(b, 0x8100), u16(b, tci);
  u16(b, 0x0800);
  u16(b, 0x4508), u16(b, 28 + payload), u16(b, 1), u16(b, 0), u16(b, 0x4011), u16(b, 0);
  u32(b, kSip), u32(b, kDip);
  u16(b, kSport), u16(b, kDport), u16(b, 8 + payload), u16(b, 0);
  for (unsigned i = 0; i < payload; ++i) b.push_back(static_cast<std::uint8_t>(i));
  const FrameHeaders h = parse_frame(b.data(), static_cast<std::uint32_t>(b.size()));
  put_l4_checksum(b.data(), h.outer);
  put_ip_checksum(b.data(), h.outer);
  return b;
}

inline Bytes gre_header(unsigned protocol, unsigned payload) {
  Bytes b = macs(0x11);
  u16(b, 0x0800);
  u16(b, 0x4500), u16(b, 28 + payload), u16(b, 1), u16(b, 0), u16(b, 0x402f), u16(b, 0);
  u32(b, 0x01020304), u32(b, 0x05060708);
  u16(b, 0x2000), u16(b, protocol), u32(b, 0x12345678);
  put_ip_checksum(b.data(),
                  parse_frame(b.data(), static_cast<std::uint32_t>(b.size()), LengthsOf::kBuffer).outer);
  return b;
}

inline SteeredFrame steer(const Bytes& bytes) {
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kEthernet;
  std::copy(bytes.begin(), bytes.end(), p->frame());
  p->frame_len = static_cast<std::uint16_t>(bytes.size());
  return SteeredFrame(p);
}
inline Bytes content(const SteeredFrame& f) { return {f.bytes(), f.bytes() + f.len()}; }

// The hash, a bit at a time.
inline std::uint32_t plain_hash(const SteTag& tag, std::uint16_t byte_mask) {
  std::uint32_t crc = 0;
  for (unsigned i = 0; i < 16; ++i) {
    crc ^= byte_mask >> (15 - i) & 1 ? tag[i] : 0;
    for (unsigned bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  return __builtin_bswap32(crc);
}

inline std::uint16_t byte_mask_of(const SteTag& mask) {
  std::uint16_t m = 0;
  for (const std::uint8_t b : mask) m = static_cast<std::uint16_t>(m << 1 | (b == 0xff));
  return m;
}

struct Entry {
  std::array<std::uint8_t, 64> bytes{};

  template <class F>
  Entry& set(std::uint64_t v) {
    prm::set<F>(bytes.data(), static_cast<typename F::type>(v));
    return *this;
  }
  Entry& hit(std::uint64_t base, std::uint64_t entries) {
    const std::uint64_t v = base >> 5 | entries;
    return set<prm::Ste::next_base_39_32>(v >> 27).set<prm::Ste::next_base_31_5>(v & 0x7ffffff);
  }
  Entry& hit(IcmTarget target) { return hit(icm_address(target), 1); }
  Entry& miss(std::uint64_t addr) {
    return set<prm::Ste::miss_39_32>(addr >> 32).set<prm::Ste::miss_31_6>((addr & 0xffffffff) >> 6);
  }
  Entry& match(const SteTag& tag, const SteTag& mask) {
    for (unsigned i = 0; i < 16; ++i) bytes[32 + i] = tag[i] & mask[i];
    std::copy(mask.begin(), mask.end(), bytes.begin() + 48);
    return *this;
  }
};

inline Entry entry(SteType type, SteLookup lookup) {
  return Entry()
      .set<prm::Ste::entry_type>(static_cast<unsigned>(type))
      .set<prm::Ste::lookup_type>(static_cast<unsigned>(lookup))
      .set<prm::Ste::next_lookup_type>(static_cast<unsigned>(SteLookup::kIpv6SrcO));
}
inline Entry always_miss(SteType type, SteLookup lookup, std::uint64_t addr) {
  Entry e = entry(type, lookup).miss(addr);
  e.bytes[32] = 0xdc;
  return e;
}

// Software's view of a table: its entries by hash, those that share one in a chain.
struct Table {
  SteType type;
  SteLookup lookup;
  SteTag mask;
  std::uint64_t base, entries, miss;
};

class SteTest : public ::testing::Test, public SteObjects {
 public:
  void count(std::uint32_t counter, std::uint32_t bytes) override {
    ++packets[counter];
    octets[counter] += bytes;
  }
  const std::vector<std::uint8_t>* tunnel_header(std::uint32_t id) override {
    const auto it = headers.find(id);
    return it == headers.end() ? nullptr : &it->second;
  }

 protected:
  static constexpr std::uint64_t kMemory = 1u << 16;
  static constexpr std::uint64_t kSte = SwIcm::base(SwIcm::kSteering);
  static constexpr std::uint64_t kRewrite = SwIcm::base(SwIcm::kHeaderModify);
  static constexpr IcmTarget kTir7{IcmTarget::kTir, 7}, kRxDrop{IcmTarget::kRxDrop, 0},
      kAllow{IcmTarget::kTxAllow, 0};

  void SetUp() override {
    ASSERT_TRUE(icm.allocate(kSte, kMemory));
    ASSERT_TRUE(icm.allocate(kRewrite, 1u << 12));
  }
  std::uint64_t alloc(std::uint64_t entries) {
    const std::uint64_t size = entries * 64;
    next = (next + size - 1) / size * size;
    const std::uint64_t at = next;
    next += size;
    EXPECT_LE(next, kMemory);
    return kSte + at;
  }
  void put(std::uint64_t addr, const Entry& e) { ASSERT_TRUE(icm.write(addr, e.bytes.data(), 64)); }
  std::uint64_t single(const Entry& e) {
    const std::uint64_t at = alloc(1);
    put(at, e);
    return at;
  }
  Table table(SteType type, SteLookup lookup, const SteTag& mask, std::uint64_t entries, std::uint64_t miss) {
    Table t{type, lookup, mask, alloc(entries), entries, miss};
    for (std::uint64_t i = 0; i < entries; ++i) put(t.base + 64 * i, always_miss(type, lookup, miss));
    return t;
  }
  // The entry that leads into it.
  std::uint64_t anchor(const Table& t) { return single(into(entry(t.type, SteLookup::kIpv6SrcO), t)); }
  static Entry into(Entry e, const Table& t) {
    return e.hit(t.base, t.entries)
        .set<prm::Ste::next_lookup_type>(static_cast<unsigned>(t.lookup))
        .set<prm::Ste::byte_mask>(byte_mask_of(t.mask));
  }
  void insert(const Table& t, const SteTag& tag, Entry e) {
    e.match(tag, t.mask).miss(t.miss);
    std::uint64_t at = t.base + 64 * (plain_hash(tag, byte_mask_of(t.mask)) % t.entries);
    std::array<std::uint8_t, 64> there;
    ASSERT_TRUE(icm.read(at, there.data(), 64));
    if (there[32] == 0xdc && there[48] == 0) {
      put(at, e);
      return;
    }
    // To the end of the chain.
    for (;;) {
      const std::uint64_t to = static_cast<std::uint64_t>(prm::get<prm::Ste::miss_39_32>(there.data()))
                                   << 32 |
                               static_cast<std::uint64_t>(prm::get<prm::Ste::miss_31_6>(there.data())) << 6;
      if (to == t.miss) break;
      at = to;
      ASSERT_TRUE(icm.read(at, there.data(), 64));
    }
    Entry last;
    last.bytes = there;
    put(at, last.miss(single(e)));
  }
  static SteTag tag(SteLookup lookup, const SteeredFrame& f) {
    SteTag t;
    EXPECT_TRUE(make_ste_tag(lookup, f, {}, t));
    return t;
  }
  static SteTag mask(std::initializer_list<std::pair<unsigned, unsigned>> ranges) {
    SteTag m{};
    for (const auto& r : ranges) std::fill(m.begin() + r.first, m.begin() + r.second, 0xff);
    return m;
  }
  // Rewriting lists.
  static std::uint64_t set_bits(SteField f, unsigned shift, unsigned len, std::uint32_t v, unsigned op = 2) {
    return static_cast<std::uint64_t>(op << 24 | static_cast<unsigned>(f) << 16 | shift << 8 | (len & 31))
               << 32 |
           v;
  }
  static std::uint64_t copy_bits(SteField to, unsigned shift, unsigned len, SteField from,
                                 unsigned from_shift) {
    return static_cast<std::uint64_t>(1u << 24 | static_cast<unsigned>(to) << 16 | shift << 8 | len) << 32 |
           static_cast<unsigned>(from) << 16 | from_shift << 8;
  }
  Entry& rewrite(Entry& e, const std::vector<std::uint64_t>& actions) {
    Bytes list;
    for (const std::uint64_t a : actions)
      u32(list, static_cast<std::uint32_t>(a >> 32)), u32(list, static_cast<std::uint32_t>(a));
    EXPECT_TRUE(icm.write(kRewrite + 64 * line, list.data(), list.size()));
    e.set<prm::SteModify::action_count>(actions.size()).set<prm::SteModify::action_pointer>(line);
    line += (actions.size() + 7) / 8;
    return e;
  }
  SteEnd walk(std::uint64_t addr, SteeredFrame& f, bool receive = true) {
    return SteWalker(icm, *this).walk(addr, receive, f, {});
  }
  SteEnd walk(std::uint64_t addr, const Bytes& bytes, bool receive = true) {
    SteeredFrame f = steer(bytes);
    return walk(addr, f, receive);
  }
  // Through one entry that takes every frame.
  SteEnd through(const Entry& e, SteeredFrame& f, bool receive = true) { return walk(single(e), f, receive); }

  SwIcm icm;
  std::uint64_t next = 0;
  unsigned line = 0;
  std::map<std::uint32_t, std::uint64_t> packets, octets;
  std::map<std::uint32_t, std::vector<std::uint8_t>> headers;
};

inline testing::AssertionResult leads_to(const SteEnd& e, IcmTarget to) {
  if (e.fate == SteEnd::kOut && e.to.kind == to.kind && e.to.id == to.id) return testing::AssertionSuccess();
  return testing::AssertionFailure() << static_cast<int>(e.fate) << " " << static_cast<int>(e.to.kind) << " "
                                     << e.to.id;
}

}  // namespace hcasim::ste
#endif
