// SPDX-License-Identifier: BSD-3-Clause
// Masked atomics, of 4 to 32 bytes: what they do to memory, what comes back in which byte order, who may.
#include <cstring>

#include "driver/bare/dct.h"
#include "fixture.h"

namespace hcasim::bare {
namespace {

using S = prm::CqeSyndrome;
using Words = std::vector<std::uint64_t>;  // of 8 bytes; an atomic of 4 bytes has one, of 32 bits

unsigned word_bytes(unsigned bytes) { return std::min(bytes, 8u); }

void put_be(std::vector<std::uint8_t>& to, const Words& words, unsigned bytes) {
  const unsigned size = word_bytes(bytes);
  for (unsigned i = 0; i < bytes; ++i)
    to.push_back(static_cast<std::uint8_t>(words[i / size] >> (8 * (size - 1 - i % size))));
}

struct Masked {
  bool compare_swap = true;
  unsigned bytes = 8;
  Words swap_add, compare, swap_mask, compare_mask;  // of an addition `compare` is the boundary
};

Words random_words(std::mt19937_64& rnd, unsigned bytes) {
  Words w((bytes + 7) / 8);
  for (auto& x : w) x = bytes == 4 ? rnd() & 0xffffffff : rnd();
  return w;
}

// What an atomic is to do, bit by bit.
bool expected(const Masked& m, const Words& old, Words& now) {
  now = old;
  if (m.compare_swap)
    for (std::size_t i = 0; i < old.size(); ++i)
      if (((old[i] ^ m.compare[i]) & m.compare_mask[i]) != 0) return false;
  for (std::size_t i = 0; i < old.size(); ++i) {
    bool carry = false;
    for (unsigned b = 0; b < 8 * word_bytes(m.bytes); ++b) {
      const std::uint64_t bit = 1ULL << b;
      if (m.compare_swap) {
        if (m.swap_mask[i] & bit) now[i] = (now[i] & ~bit) | (m.swap_add[i] & bit);
        continue;
      }
      const unsigned sum = ((old[i] & bit) != 0) + ((m.swap_add[i] & bit) != 0) + carry;
      now[i] = (now[i] & ~bit) | (sum & 1 ? bit : 0);
      carry = sum >= 2 && (m.compare[i] & bit) == 0;
    }
  }
  return true;
}

SendWr request(const Pair& p, const Masked& m, std::size_t off) {
  SendWr w = p.wr(m.compare_swap ? WqeOp::kMaskedCs : WqeOp::kMaskedFa, off, m.bytes);
  w.atomic_bytes = m.bytes;
  put_be(w.operands, m.swap_add, m.bytes);
  put_be(w.operands, m.compare, m.bytes);
  if (m.compare_swap) {
    put_be(w.operands, m.swap_mask, m.bytes);
    put_be(w.operands, m.compare_mask, m.bytes);
  }
  return w;
}

Words load(const std::uint8_t* from, unsigned bytes) {
  Words w((bytes + 7) / 8);
  for (std::size_t i = 0; i < w.size(); ++i) std::memcpy(&w[i], from + 8 * i, word_bytes(bytes));
  return w;
}

// The value returned: 8 bytes in our order or not, as the device was told, others big-endian.
Words result(const std::uint8_t* from, unsigned bytes, bool host_endian = true) {
  if (bytes == 8 && host_endian) return load(from, bytes);
  Words w((bytes + 7) / 8);
  for (unsigned i = 0; i < bytes; ++i) w[i / 8] = w[i / 8] << 8 | from[i];
  return w;
}

class MaskedAtomic : public DeviceTest {
 protected:
  explicit MaskedAtomic(DeviceOptions o = {}) : DeviceTest(o) {}
  void random_ones(const std::function<std::uint16_t(const SendWr&)>& post, Pair& p);
};

void MaskedAtomic::random_ones(const std::function<std::uint16_t(const SendWr&)>& post, Pair& p) {
  std::mt19937_64 rnd(7);
  unsigned swapped = 0;
  for (unsigned n = 0; n < 200; ++n) {
    Masked m;
    m.bytes = 4u << n % 4;
    m.compare_swap = rnd() & 1;
    const std::size_t off = 256 + m.bytes * (rnd() % 8);
    p.fill(n);
    const std::vector<std::uint8_t> before(p.bmem.data(), p.bmem.data() + 1024);
    const Words old = load(p.bmem.data() + off, m.bytes);
    m.swap_add = random_words(rnd, m.bytes);
    m.compare = random_words(rnd, m.bytes);
    m.swap_mask = random_words(rnd, m.bytes);
    m.compare_mask = random_words(rnd, m.bytes);
    if (rnd() % 4 != 0)  // equal under the mask
      for (std::size_t i = 0; m.compare_swap && i < old.size(); ++i)
        m.compare[i] = (old[i] & m.compare_mask[i]) | (m.compare[i] & ~m.compare_mask[i]);
    Words now;
    swapped += expected(m, old, now) && m.compare_swap;
    post(request(p, m, off));
    const Completion c = p.acq.wait_one();
    ASSERT_FALSE(c.error()) << c.text();
    EXPECT_EQ(c.send_op, m.compare_swap ? WqeOp::kMaskedCs : WqeOp::kMaskedFa);
    EXPECT_EQ(c.byte_cnt, m.bytes);
    ASSERT_EQ(load(p.bmem.data() + off, m.bytes), now) << m.bytes << " bytes, " << n;
    ASSERT_EQ(result(p.amem.data() + off, m.bytes), old) << m.bytes << " bytes, " << n;
    ASSERT_EQ(std::memcmp(p.bmem.data(), before.data(), off), 0);
    ASSERT_EQ(std::memcmp(p.bmem.data() + off + m.bytes, before.data() + off + m.bytes, 1024 - off - m.bytes),
              0);
  }
  EXPECT_GT(swapped, 20u);
}

TEST_F(MaskedAtomic, DoAsTheyAreDefined) {
  Pair p(dev());
  random_ones([&](const SendWr& w) { return p.a.post(w); }, p);
}

TEST_F(MaskedAtomic, OfDcTargets) {
  Pair p(dev());
  Srq srq(dev(), p.pd);
  Dct target(dev(), p.pd, p.bcq, srq);
  QpOptions o;
  o.type = QpType::kDci;
  Qp initiator(dev(), p.pd, p.acq, p.acq, o, &srq);
  initiator.connect({});
  random_ones(
      [&](SendWr w) {
        w.av.qpn = target.dctn();
        w.av.dc_key = target.key();
        return initiator.post(w);
      },
      p);
}

// Logical operations, as communication libraries make them of these.
TEST_F(MaskedAtomic, SwapAndOrXor) {
  Pair p(dev());
  std::uint32_t& target = *reinterpret_cast<std::uint32_t*>(p.bmem.data() + 4);
  struct {
    Masked op;
    std::uint32_t now;
  } const cases[] = {
      {{true, 4, {0x11223344}, {0}, {~0u}, {0}}, 0x11223344},                        // swap
      {{true, 4, {0xff00ff00}, {0}, {~0xff00ff00u}, {0}}, 0x0f0f0f0f & 0xff00ff00},  // and
      {{true, 4, {0xf0}, {0}, {0xf0}, {0}}, 0x0f0f0fff},                             // or
      {{false, 4, {0x0f0fffff}, {~0u}, {}, {}}, 0x0000f0f0},                         // xor
      {{false, 4, {0xf1f1f1f1}, {0}, {}, {}}, 0x01010100},                           // add
  };
  for (const auto& c : cases) {
    std::memset(p.bmem.data(), 0xee, 64);
    target = 0x0f0f0f0f;
    expect_good(p.acq, p.a.post(request(p, c.op, 4)));
    EXPECT_EQ(target, c.now);
    EXPECT_EQ(result(p.amem.data() + 4, 4)[0], 0x0f0f0f0fu);
    EXPECT_EQ(p.bmem.data()[3], 0xee);
    EXPECT_EQ(p.bmem.data()[8], 0xee);
  }
}

class BigEndianAtomic : public MaskedAtomic {
 protected:
  static DeviceOptions options() {
    DeviceOptions o;
    o.atomic_host_endian = false;
    return o;
  }
  BigEndianAtomic() : MaskedAtomic(options()) {}
};

TEST_F(BigEndianAtomic, ReturnsNetworkOrderOfEightBytesToo) {
  Pair p(dev());
  std::uint64_t& target = *reinterpret_cast<std::uint64_t*>(p.bmem.data());
  target = 0x0102030405060708;
  auto w = p.wr(WqeOp::kAtomicFa, 0, 8);
  w.swap_add = 1;
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(target, 0x0102030405060709u) << "the operand itself is in the host's order all the same";
  EXPECT_EQ(result(p.amem.data(), 8, false)[0], 0x0102030405060708u);
  expect_good(p.acq, p.a.post(request(p, {false, 8, {1}, {0}, {}, {}}, 0)));
  EXPECT_EQ(target, 0x010203040506070au);
  EXPECT_EQ(result(p.amem.data(), 8, false)[0], 0x0102030405060709u);
}

TEST_F(MaskedAtomic, ModeOfTheQpLimitsTheSize) {
  breaks({"qp-atomic-mode"});
  for (const unsigned mode : {1u, 2u, 3u, 4u, 5u}) {
    for (const unsigned bytes : {4u, 8u, 16u, 32u}) {
      PairOptions o;
      o.attr.atomic_mode = mode;
      Pair p(dev(), o);
      p.fill(mode);
      const Words zero(bytes < 8 ? 1 : bytes / 8), one(zero.size(), 1);
      auto plain = p.wr(WqeOp::kAtomicFa, 64, 8);  // always allowed
      plain.swap_add = 1;
      expect_good(p.acq, p.a.post(plain));
      p.a.post(request(p, {false, bytes, one, zero, {}, {}}, 0));
      const Completion c = p.acq.wait_one();
      const bool allowed = mode == 2 ? bytes == 8 : mode > 2 && bytes <= 1u << mode;
      EXPECT_EQ(c.error(), !allowed) << "mode " << mode << ", " << bytes << " bytes: " << c.text();
      if (!allowed) expect_error(c, S::kRemoteInvalReq);
    }
  }
  for (const unsigned mode : {0u, 6u, 8u}) {
    PairOptions o;
    o.attr.atomic_mode = mode;
    o.connect = false;
    Pair p(dev(), o);
    QpAttr attr = o.attr;
    attr.remote_qpn = p.b.qpn();
    EXPECT_CMD_OK(p.a.to_init(attr));
    EXPECT_CMD_STATUS(p.a.to_rtr(attr), prm::CmdStatus::kBadParam);
  }
}

TEST_F(MaskedAtomic, MustBeAlignedAndWithinTheKey) {
  breaks({"atomic-unaligned", "rkey-bounds", "rkey-rights"});
  for (const unsigned bytes : {4u, 8u, 16u, 32u}) {
    const Words ones(bytes < 8 ? 1 : bytes / 8, ~0ULL);
    const Masked m{true, bytes, ones, ones, ones, ones};
    {
      Pair p(dev());
      p.fill(1);
      const std::vector<std::uint8_t> before(p.bmem.data(), p.bmem.data() + 256);
      p.a.post(request(p, m, 64 + bytes / 2));
      expect_error(p.acq.wait_one(), S::kRemoteInvalReq);
      EXPECT_EQ(std::memcmp(p.bmem.data(), before.data(), 256), 0);
    }
    {
      Pair p(dev());
      auto w = request(p, m, 0);
      w.raddr = p.bmr.start() + p.bmem.size();
      p.a.post(w);
      expect_error(p.acq.wait_one(), S::kRemoteAccess);
    }
    {
      PairOptions o;
      o.access = kLocalWrite | kRemoteRead | kRemoteWrite;
      Pair p(dev(), o);
      p.a.post(request(p, m, 0));
      expect_error(p.acq.wait_one(), S::kRemoteAccess);
    }
  }
}

TEST_F(MaskedAtomic, BadWqesAreRefused) {
  breaks({"wqe-length", "wqe-segment"});
  const Masked m{true, 16, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const auto fails = [&](S syndrome, const std::function<void(SendWr&)>& spoil) {
    Pair p(dev());
    auto w = request(p, m, 0);
    spoil(w);
    p.a.post(w);
    expect_error(p.acq.wait_one(), syndrome);
  };
  fails(S::kLocalQpOp, [](SendWr& w) { w.atomic_bytes = 64; });
  fails(S::kLocalQpOp, [](SendWr& w) { w.atomic_bytes = 512; });
  fails(S::kLocalQpOp, [](SendWr& w) { w.operands.resize(16), w.sges.clear(); });
  fails(S::kLocalLength, [](SendWr& w) { w.sges[0].len = 8; });
  fails(S::kLocalLength, [](SendWr& w) { w.sges.clear(); });
  fails(S::kLocalQpOp, [](SendWr& w) { w.inline_data.resize(16); });
}

// A result in several pieces, and in the CQE.
TEST_F(MaskedAtomic, ResultsAreScattered) {
  Pair p(dev());
  p.fill(3);
  const Words old = load(p.bmem.data() + 32, 32);
  auto w = request(p, {false, 32, {1, 2, 3, 4}, {0, 0, 0, 0}, {}, {}}, 32);
  w.sges = {p.asge(100, 5), p.asge(1000, 20), p.asge(200, 7)};
  expect_good(p.acq, p.a.post(w));
  std::vector<std::uint8_t> got(p.amem.data() + 100, p.amem.data() + 105);
  got.insert(got.end(), p.amem.data() + 1000, p.amem.data() + 1020);
  got.insert(got.end(), p.amem.data() + 200, p.amem.data() + 207);
  EXPECT_EQ(result(got.data(), 32), old);
}

}  // namespace
}  // namespace hcasim::bare
