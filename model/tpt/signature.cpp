// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/signature.h"

#include <algorithm>
#include <cstring>

#include "prm/signature.h"

namespace hcasim {

namespace {

constexpr std::uint16_t kT10Poly = 0x8bb7;        // T10 SBC-3
constexpr std::uint32_t kCrc32Poly = 0xedb88320;  // FC-PH, reflected

template <class T, class F>
std::array<T, 256> make_table(F one) {
  std::array<T, 256> t{};
  for (unsigned i = 0; i < 256; ++i) t[i] = one(i);
  return t;
}

const std::array<std::uint16_t, 256>& t10_table() {
  static const auto t = make_table<std::uint16_t>([](unsigned i) {
    unsigned v = i << 8;
    for (int b = 0; b < 8; ++b) v = v & 0x8000 ? v << 1 ^ kT10Poly : v << 1;
    return static_cast<std::uint16_t>(v);
  });
  return t;
}

const std::array<std::uint32_t, 256>& crc32_table() {
  static const auto t = make_table<std::uint32_t>([](unsigned i) {
    std::uint32_t v = i;
    for (int b = 0; b < 8; ++b) v = v & 1 ? v >> 1 ^ kCrc32Poly : v >> 1;
    return v;
  });
  return t;
}

std::uint64_t block_size(unsigned selector) {
  switch (selector) {
    case 1:
      return 512;
    case 2:
      return 520;
    case 3:
      return 4096;
    case 4:
      return 4160;
    case 5:
      return 1u << 30;
    case 6:
      return 4048;
    default:
      return 0;
  }
}

bool read_domain(std::uint32_t bfs_psv, const prm::BsfInline& in, std::uint64_t block, SigDomain& d) {
  if (block == 0) return false;
  d.block = block;
  d.psv = bfs_psv & 0xffffff;
  if (in.vld_refresh & prm::BsfInline::kValid) {
    d.type = in.sig_type == 1 ? SigType::kT10Crc : SigType::kT10Checksum;
    if (in.sig_type != 1 && in.sig_type != 2) return false;
    d.seed_ones = (in.rp_inv_seed & prm::BsfInline::kSeedOnes) != 0;
    d.app = in.apptag;
    d.app_mask = in.app_bitmask;
    d.ref = in.reftag;
    d.ref_increments = (in.inc_ref_guard_check & prm::BsfInline::kIncRef) != 0;
    d.app_escape = (in.inc_ref_guard_check & prm::BsfInline::kAppEscape) != 0;
    d.app_ref_escape = (in.inc_ref_guard_check & prm::BsfInline::kAppRefEscape) != 0;
    return true;
  }
  const unsigned format = bfs_psv >> 24;
  if ((format & prm::Bsf::kFormatMask) != prm::Bsf::kFormatCrc32) return false;
  d.type = SigType::kCrc32;
  d.seed_ones = (format & prm::Bsf::kFormatSeedZero) == 0;
  return true;
}

std::uint64_t load_be(const std::uint8_t* p, unsigned n) {
  std::uint64_t v = 0;
  for (unsigned i = 0; i < n; ++i) v = v << 8 | p[i];
  return v;
}

// As the error CQE has it: guard, application and reference tag, or the CRC in the high word.
std::uint64_t value_of(const SigDomain& d, const std::uint8_t* sig) {
  if (d.type != SigType::kCrc32) return load_be(sig, 8);
  std::uint64_t v = 0;
  for (unsigned i = 4; i-- > 0;) v = v << 8 | sig[i];
  return v << 32;
}

}  // namespace

std::uint64_t SigDomain::data(std::uint64_t off) const {
  if (bytes() == 0) return off;
  return off / unit() * block + std::min(off % unit(), block);
}

std::uint64_t SigDomain::encoded(std::uint64_t d) const {
  if (bytes() == 0) return d;
  return d / block * unit() + d % block;
}

bool read_bsf(const std::uint8_t* bytes, SigFormat& f) {
  prm::Bsf b;
  std::memcpy(&b, bytes, sizeof b);
  if (b.size_sbs >> 6 != prm::Bsf::kSizeWithInline) return false;
  f = {};
  f.check = b.check_mask;
  f.same = (b.size_sbs & prm::Bsf::kSbs) != 0;
  if (b.mem_bs != 0 && !read_domain(b.mem_bfs_psv, b.mem, block_size(b.mem_bs), f.mem)) return false;
  if (f.same) {
    f.copy = b.wire_bs;
    return read_domain(b.wire_bfs_psv, b.wire, f.mem.block == ~0ULL ? 0 : f.mem.block, f.wire) &&
           f.wire.bytes() == f.mem.bytes();
  }
  return b.wire_bs == 0 || read_domain(b.wire_bfs_psv, b.wire, block_size(b.wire_bs), f.wire);
}

// --- Guards

void Guard::start(const SigDomain& d) {
  value_ = d.type == SigType::kCrc32 ? (d.seed_ones ? 0xffffffff : 0) : d.seed_ones ? 0xffff : 0;
  odd_ = false;
}

void Guard::add(const SigDomain& d, const std::uint8_t* p, std::size_t n) {
  switch (d.type) {
    case SigType::kNone:
      return;
    case SigType::kT10Crc:
      for (std::size_t i = 0; i < n; ++i)
        value_ = (value_ << 8 & 0xffff) ^ t10_table()[(value_ >> 8 ^ p[i]) & 0xff];
      return;
    case SigType::kT10Checksum:
      for (std::size_t i = 0; i < n; ++i) {
        value_ += odd_ ? p[i] : static_cast<std::uint32_t>(p[i]) << 8;
        value_ = (value_ & 0xffff) + (value_ >> 16);
        odd_ = !odd_;
      }
      return;
    case SigType::kCrc32:
      for (std::size_t i = 0; i < n; ++i) value_ = value_ >> 8 ^ crc32_table()[(value_ ^ p[i]) & 0xff];
      return;
  }
}

unsigned Guard::finish(const SigDomain& d, std::uint64_t number, std::uint8_t* out) const {
  if (d.type == SigType::kCrc32) {
    for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(~value_ >> (8 * i));
    return 4;
  }
  const std::uint32_t guard = d.type == SigType::kT10Checksum ? ~value_ : value_;
  const std::uint32_t ref = d.ref + (d.ref_increments ? static_cast<std::uint32_t>(number) : 0);
  const std::uint64_t all =
      static_cast<std::uint64_t>(guard & 0xffff) << 48 | static_cast<std::uint64_t>(d.app) << 32 | ref;
  for (unsigned i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(all >> (56 - 8 * i));
  return 8;
}

// --- Streams

void SigStream::start(const SigFormat& f, bool to_wire, std::uint64_t d) {
  running_ = true;
  blind_ = false;
  to_wire_ = to_wire;
  from_ = to_wire ? f.mem : f.wire;
  to_ = to_wire ? f.wire : f.mem;
  in_off_ = from_.encoded(d);
  out_off_ = to_.encoded(d);
  in_block_ = from_.bytes() ? d / from_.block : 0;
  out_block_ = to_.bytes() ? d / to_.block : 0;
  in_pos_ = from_.bytes() ? d % from_.block : 0;
  out_pos_ = to_.bytes() ? d % to_.block : 0;
  in_guard_.start(from_);
  out_guard_.start(to_);
}

void SigStream::start_blind(const SigFormat& f, bool to_wire, std::uint64_t in_off) {
  const SigDomain& from = to_wire ? f.mem : f.wire;
  start(f, to_wire, from.data(in_off));
  in_off_ = in_off;
  if (from_.bytes()) {
    in_block_ = in_off / from_.unit();
    in_pos_ = in_off % from_.unit();
  }
  blind_ = true;
}

bool SigStream::goes_with(const SigFormat& f) const {
  const auto alike = [](const SigDomain& a, const SigDomain& b) {
    return a.type == b.type && (a.bytes() == 0 || a.block == b.block);
  };
  if (!running_) return true;
  if (!alike(from_, to_wire_ ? f.mem : f.wire) || !alike(to_, to_wire_ ? f.wire : f.mem)) return false;
  if (from_.bytes() != 0 && in_pos_ >= from_.unit()) return false;
  if (!f.same) return to_.bytes() == 0 || out_pos_ < to_.block;
  // The block that comes out ends with the signature that comes in. A stream that was begun within a
  // signature has nothing of its block.
  return in_signature() ? out_pos_ == to_.block || out_pos_ == 0 : out_pos_ == in_pos_;
}

std::uint64_t SigStream::piece() const {
  if (from_.bytes() && in_signature()) return from_.unit() - in_pos_;
  return std::min(from_.bytes() ? from_.block - in_pos_ : ~0ULL, to_.bytes() ? to_.block - out_pos_ : ~0ULL);
}

void SigStream::push(const SigFormat& f, const std::uint8_t* p, std::size_t n,
                     std::vector<std::uint8_t>& out) {
  while (n) {
    const auto m = static_cast<std::size_t>(std::min<std::uint64_t>(n, piece()));
    if (from_.bytes() && in_signature()) {
      std::memcpy(got_.data() + (in_pos_ - from_.block), p, m);
      in_pos_ += m;
      if (in_pos_ == from_.unit()) signature(f, out);
    } else {
      data(f, p, m, out);
      in_pos_ += m;
    }
    in_off_ += m;
    p += m;
    n -= m;
  }
}

void SigStream::data(const SigFormat& f, const std::uint8_t* p, std::size_t n,
                     std::vector<std::uint8_t>& out) {
  in_guard_.add(from_, p, n);
  while (n) {
    const auto m =
        static_cast<std::size_t>(std::min<std::uint64_t>(n, to_.bytes() ? to_.block - out_pos_ : n));
    out.insert(out.end(), p, p + m);
    out_off_ += m;
    out_guard_.add(to_, p, m);
    out_pos_ += m;
    p += m;
    n -= m;
    // With the same block structure it waits for the incoming signature, which it may be a copy of.
    if (to_.bytes() && out_pos_ == to_.block && !f.same) close_out(f, nullptr, out);
  }
}

void SigStream::close_out(const SigFormat& f, const std::uint8_t* incoming, std::vector<std::uint8_t>& out) {
  std::uint8_t sig[8];
  const unsigned n = out_guard_.finish(to_, out_block_, sig);
  for (unsigned i = 0; incoming && i < n; ++i)
    if (f.copy & 0x80u >> i) sig[i] = incoming[i];
  out.insert(out.end(), sig, sig + n);
  out_off_ += n;
  out_pos_ = 0;
  ++out_block_;
  out_guard_.start(to_);
}

void SigStream::signature(const SigFormat& f, std::vector<std::uint8_t>& out) {
  std::uint8_t want[8];
  const unsigned n = in_guard_.finish(from_, in_block_, want);
  const bool t10 = from_.type != SigType::kCrc32;
  const auto app = static_cast<std::uint16_t>(load_be(got_.data() + 2, 2));
  const bool escaped =
      t10 && app == 0xffff &&
      (from_.app_escape || (from_.app_ref_escape && load_be(got_.data() + 4, 4) == 0xffffffff));
  if (!blind_ && !escaped) {
    std::uint16_t bad = 0;
    for (unsigned i = 0; i < n; ++i) {
      std::uint8_t differs = want[i] ^ got_[i];
      if (t10 && (i == 2 || i == 3))
        differs &= static_cast<std::uint8_t>(i == 2 ? from_.app_mask >> 8 : from_.app_mask);
      if (!(f.check & 0x80u >> i) || !differs) continue;
      bad |= !t10 || i < 2 ? prm::SigErrCqe::kGuard
             : i < 4       ? prm::SigErrCqe::kAppTag
                           : prm::SigErrCqe::kRefTag;
    }
    if (bad && !error_)
      error_ = SigError{to_wire_, bad, value_of(from_, want), value_of(from_, got_.data()),
                        in_block_ * from_.unit() + from_.block};
  }
  blind_ = false;
  if (f.same) close_out(f, got_.data(), out);
  in_pos_ = 0;
  ++in_block_;
  in_guard_.start(from_);
}

void MkeySignature::to_memory(std::uint64_t& off, std::uint64_t& len) const {
  const std::uint64_t first = format.wire.data(off), last = format.wire.data(off + len);
  off = format.mem.encoded(first);
  len = format.mem.encoded(last) - off;
}

bool PsvTable::set(std::uint32_t n, std::uint32_t pd, std::uint32_t seed, std::uint32_t ref_tag) {
  Psv* p = find(n);
  if (p == nullptr || p->pd != pd) return false;
  p->seed = seed;
  p->ref_tag = ref_tag;
  p->epoch = ++epoch_;
  return true;
}

}  // namespace hcasim
