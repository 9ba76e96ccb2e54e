// SPDX-License-Identifier: BSD-3-Clause
/// The trace file: a header, then blocks that can be decoded independently.
///
///   file    "HCASIMTR", u32 version, u32 0x01020304 in the writer's byte order, u32 header length,
///           header: JSON text {"points": [{"name", "kind", "obj", "index", "a0", "a1", "help"}, ...]}
///   block   u32 magic, u32 records, u32 raw bytes, u32 stored bytes, u32 CRC-32 of the raw bytes;
///           a zstd frame (up to version 6: raw deflate data)
///   end     a block of magic kEndMagic: u32 records of the file low, high, 0, 0
///
/// A record is: u16 point as varint; u8 bit mask of the parts that follow (Coder::Part); then these parts:
/// as varints the hca, if it differs from the previous record's, the flags, with the function from bit 8 on,
/// and the blob length; for each of time, obj, index, a0, a1 the signed difference from its prediction as
/// varint; the blob's bytes. The prediction is a linear extrapolation from the two previous records of the
/// same point (all 0 at a block's start). A missing part is 0. Integers are little-endian.
///
/// A series of records counts as so many, of one point: a mark in place of a point; a varint that depends on
/// the mark; as a varint by how much a0 goes up from one to the next, as the index does by 1; the first of
/// them, without a blob; and then, by the mark, the steps between their times:
///   kSeriesMark (from version 5 on)  varint: how many follow the first; of each the signed difference of its
///                                    step from the step before as varint
///   kEvenMark (from version 6 on)    varint: how many follow the first; the same of the one step that they
///                                    all have
///   kAgainMark (from version 6 on)   varint: how many series of kSeriesMark of this block have come since
///                                    the one whose steps these have, below kRemembered; nothing more
/// It leaves predictions that go on as it does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "traces/tracer.h"

namespace hcasim::traces::format {

constexpr char kMagic[8] = {'H', 'C', 'A', 'S', 'I', 'M', 'T', 'R'};
constexpr std::uint32_t kVersion = 7, kFirstRead = 4, kFirstZstd = 7, kEndianCheck = 0x01020304;
constexpr std::uint32_t kBlockMagic = 0x314b4c42, kEndMagic = 0x31444e45;  // "BLK1", "END1"
constexpr std::uint32_t kBlockRecords = 8192;       ///< a block is cut at this many records
constexpr std::uint32_t kBlockBytes = 256 * 1024;   ///< or when it holds so many bytes
constexpr std::uint32_t kMaxRaw = 4 * 1024 * 1024;  ///< a reader refuses larger blocks
constexpr std::uint32_t kMaxRecords = 1024 * 1024;  ///< or blocks of more: a series has few bytes for many
constexpr std::uint32_t kMaxHeader = 1024 * 1024;
constexpr std::uint16_t kSeriesMark = 0x7f, kEvenMark = 0x7e, kAgainMark = 0x7d;  ///< no point has them
constexpr unsigned kMostSeries = 64;                                              ///< records of a series
constexpr unsigned kRemembered = 8;  ///< series whose steps others may have too

inline void put_u32(std::string& out, std::uint32_t v) {
  for (int i = 0; i < 4; i++) out.push_back(static_cast<char>(v >> (8 * i)));
}
inline std::uint32_t get_u32(const std::uint8_t* p) {
  return p[0] | static_cast<std::uint32_t>(p[1]) << 8 | static_cast<std::uint32_t>(p[2]) << 16 |
         static_cast<std::uint32_t>(p[3]) << 24;
}

constexpr std::uint64_t zigzag(std::int64_t v) {
  return static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

constexpr std::size_t kMaxVarint = 10;  // bytes

/// Returns the end of the bytes written; may overwrite up to kMaxVarint bytes.
inline std::uint8_t* put_varint(std::uint8_t* p, std::uint64_t v) {
  if (v < 1u << 28) {  // up to four bytes, without a branch for each
    const auto n = static_cast<std::uint32_t>(v);
    const unsigned last = (31u - static_cast<unsigned>(__builtin_clz(n | 1))) * 37 >> 8;  // / 7
    const std::uint32_t groups = (n & 0x7f) | (n << 1 & 0x7f00) | (n << 2 & 0x7f0000) | (n << 3 & 0x7f000000);
    const std::uint32_t more = 0x80808080u & ((1u << 8 * last) - 1);
    const std::uint32_t bytes = groups | more;
    for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(bytes >> 8 * i);  // one store
    return p + last + 1;
  }
  while (v >= 0x80) {
    *p++ = static_cast<std::uint8_t>(v | 0x80);
    v >>= 7;
  }
  *p++ = static_cast<std::uint8_t>(v);
  return p;
}

/// false: truncated, or more than 64 bits.
inline bool get_varint(const std::uint8_t*& p, const std::uint8_t* end, std::uint64_t& v) {
  v = 0;
  for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
    std::uint8_t b = *p++;
    if (shift == 63 && b > 1) return false;
    v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
    if ((b & 0x80) == 0) return true;
  }
  return false;
}

/// Successive records of one stage mostly differ by equal steps: such a record is coded as its point alone.
class Coder {
 public:
  void reset() {
    last_.fill({});
    hca_ = 0;
    listed_ = 0;
  }

  /// Upper bound of the bytes of a record without its blob.
  static constexpr std::size_t kMost = 4 + 8 * kMaxVarint;

  /// Returns the end of the bytes written: at most kMost and the blob.
  [[gnu::always_inline]] std::uint8_t* encode(const Record& r, const std::uint8_t* blob, std::uint8_t* p) {
    if (r.point < 0x80)
      *p++ = static_cast<std::uint8_t>(r.point);
    else
      p = put_varint(p, r.point);
    Last& last = last_of(r.point);
    const std::uint64_t time = last.time.step(static_cast<std::uint64_t>(r.time_ps));
    const Rest rest{last.obj.step(r.obj), last.index.step(r.index), last.a0.step(r.a0), last.a1.step(r.a1)};
    const unsigned seldom = (unsigned{r.hca} ^ hca_) | r.flags | r.function | r.blob_len;
    if ((rest.obj | rest.index | rest.a0 | rest.a1 | seldom) != 0) return encode_rest(r, blob, p, time, rest);
    *p++ = time != 0 ? std::uint8_t{kTime} : std::uint8_t{0};
    std::uint8_t* end = put_varint(p, zigzag(static_cast<std::int64_t>(time)));
    return time != 0 ? end : p;
  }

  /// A record, and `n` that follow it (below kMostSeries), by the steps of their times and that of their a0.
  /// Returns the end of the bytes written: at most kMost and (n + 3) * kMaxVarint.
  std::uint8_t* encode_series(const Record& r, std::uint32_t a0_step, const std::uint32_t* steps, unsigned n,
                              std::uint8_t* p) {
    const unsigned since = find(steps, n);
    const bool again = since < kRemembered;
    p = encode_first(r, again ? kAgainMark : kSeriesMark, again ? since : n, a0_step, p);
    Number& time = last_of(r.point).time;
    if (again) {
      for (unsigned i = 0; i < n; ++i) time.step(time.value + steps[i]);
    } else {
      for (unsigned i = 0; i < n; ++i)
        p = put_varint(p, zigzag(static_cast<std::int64_t>(time.step(time.value + steps[i]))));
      remember(steps, n);
    }
    went_on(r.point, n, a0_step);
    return p;
  }
  /// The same with one step for all times.
  std::uint8_t* encode_even(const Record& r, std::uint32_t a0_step, std::uint32_t step, unsigned n,
                            std::uint8_t* p) {
    p = encode_first(r, kEvenMark, n, a0_step, p);
    Number& time = last_of(r.point).time;
    p = put_varint(p, zigzag(static_cast<std::int64_t>(time.step(time.value + step))));
    time.value += std::uint64_t{n - 1} * step;
    went_on(r.point, n, a0_step);
    return p;
  }

  /// false: the bytes are not a valid record, or series. `*blob` points into them. `more`: of a series, what
  /// follows the first record.
  bool decode(const std::uint8_t*& p, const std::uint8_t* end, Record& r, const std::uint8_t** blob,
              std::vector<Record>& more) {
    more.clear();
    if (p == end || !is_mark(*p)) return decode(p, end, r, blob);
    const std::uint8_t mark = *p++;
    std::uint64_t n, a0_step;
    if (!get_varint(p, end, n) || !get_varint(p, end, a0_step) || a0_step > ~0u || p == end || is_mark(*p) ||
        !decode(p, end, r, blob) || r.blob_len != 0)
      return false;
    const Steps* known = nullptr;
    if (mark == kAgainMark) {
      if (n >= std::min(listed_, kRemembered)) return false;
      known = &remembered_[(listed_ - 1 - n) % kRemembered];
      n = known->n;
    }
    if (n >= kMostSeries) return false;
    Number& time = last_of(r.point).time;
    std::array<std::uint32_t, kMostSeries> steps;
    for (unsigned i = 0; i < n; ++i) {
      std::uint64_t change = 0;
      if (known)
        time.step(time.value + known->steps[i]);
      else if ((i == 0 || mark == kSeriesMark) && !get_varint(p, end, change))
        return false;
      else
        time.go(change);
      if (time.width > ~0u) return false;
      steps[i] = static_cast<std::uint32_t>(time.width);
      Record& next = more.emplace_back(r);
      next.time_ps = static_cast<std::int64_t>(time.value);
      next.index = r.index + i + 1;
      next.a0 = r.a0 + (i + 1) * a0_step;
    }
    if (mark == kSeriesMark) remember(steps.data(), static_cast<unsigned>(n));
    went_on(r.point, static_cast<unsigned>(n), static_cast<std::uint32_t>(a0_step));
    return true;
  }

  /// false: the bytes are not a valid record. `*blob` points into them.
  bool decode(const std::uint8_t*& p, const std::uint8_t* end, Record& r, const std::uint8_t** blob) {
    std::uint64_t point;
    if (!get_varint(p, end, point) || point > 0xffff || p == end) return false;
    r.point = static_cast<std::uint16_t>(point);
    const unsigned there = *p++;
    bool good = true;
    const auto get = [&](Part part) {
      std::uint64_t v = 0;
      if ((there & part) != 0) good = good && get_varint(p, end, v);
      return v;
    };
    if (const std::uint64_t hca = get(kHca); (there & kHca) != 0) {
      if (hca >= kMostHcas) return false;
      hca_ = static_cast<std::uint16_t>(hca);
    }
    r.hca = hca_;
    const std::uint64_t flags = get(kFlags);
    r.flags = flags & 7;
    r.function = static_cast<std::uint32_t>(flags >> 8 & 0xfff);
    const std::uint64_t len = get(kBlob);
    Last& last = last_of(r.point);
    r.time_ps = static_cast<std::int64_t>(last.time.go(get(kTime)));
    r.obj = static_cast<std::uint32_t>(last.obj.go(get(kObj)));
    r.index = static_cast<std::uint32_t>(last.index.go(get(kIndex)));
    r.a0 = last.a0.go(get(kA0));
    r.a1 = last.a1.go(get(kA1));
    if (!good || len > kMaxBlob || static_cast<std::uint64_t>(end - p) < len) return false;
    r.blob_len = static_cast<std::uint32_t>(len & 0x1ffff);
    *blob = p;
    p += len;
    return true;
  }

 private:
  enum Part : unsigned {
    kTime = 1,
    kObj = 2,
    kIndex = 4,
    kA0 = 8,
    kA1 = 16,
    kFlags = 32,
    kBlob = 64,
    kHca = 128
  };
  // A number that is predicted by linear extrapolation. Arithmetic wraps.
  struct Number {
    std::uint64_t value = 0, width = 0;
    /// The difference between the step to v and the previous step.
    std::uint64_t step(std::uint64_t v) {
      const std::uint64_t now = v - value, change = now - width;
      value = v;
      width = now;
      return change;
    }
    std::uint64_t go(std::uint64_t coded) {
      width += static_cast<std::uint64_t>(unzigzag(coded));
      return value += width;
    }
  };
  struct Last {
    Number time, obj, index, a0, a1;
  };
  struct Rest {
    std::uint64_t obj, index, a0, a1;
  };

  // The rest of a record in which more than the time differs from the prediction.
  std::uint8_t* encode_rest(const Record& r, const std::uint8_t* blob, std::uint8_t* p, std::uint64_t time,
                            const Rest& rest) {
    std::uint8_t& parts = *p++;
    unsigned there = 0;
    if (r.hca != hca_) {
      there |= kHca;
      hca_ = r.hca;
      p = put_varint(p, hca_);
    }
    if (const unsigned flags = r.flags | unsigned{r.function} << 8; flags != 0) {
      there |= kFlags;
      p = put_varint(p, flags);
    }
    if (r.blob_len != 0) {
      there |= kBlob;
      p = put_varint(p, r.blob_len);
    }
    const auto put = [&](Part part, std::uint64_t v) {
      if (v == 0) return;
      there |= part;
      p = put_varint(p, zigzag(static_cast<std::int64_t>(v)));
    };
    put(kTime, time);
    put(kObj, rest.obj);
    put(kIndex, rest.index);
    put(kA0, rest.a0);
    put(kA1, rest.a1);
    parts = static_cast<std::uint8_t>(there);
    if (r.blob_len == 0 || blob == nullptr) return p;
    std::memcpy(p, blob, r.blob_len);
    return p + r.blob_len;
  }

  // Of a series whose steps were listed.
  struct Steps {
    unsigned n = 0;
    std::array<std::uint32_t, kMostSeries> steps;
  };

  static bool is_mark(std::uint8_t byte) {
    return byte == kSeriesMark || byte == kEvenMark || byte == kAgainMark;
  }
  std::uint8_t* encode_first(const Record& r, std::uint16_t mark, unsigned n, std::uint32_t a0_step,
                             std::uint8_t* p) {
    *p++ = static_cast<std::uint8_t>(mark);
    p = put_varint(p, n);
    p = put_varint(p, a0_step);
    return encode(r, nullptr, p);
  }
  // How many such series have come since the one with these steps; kRemembered: there is none, or it came
  // too long ago.
  unsigned find(const std::uint32_t* steps, unsigned n) const {
    for (unsigned since = 0; since < std::min(listed_, kRemembered); ++since) {
      const Steps& s = remembered_[(listed_ - 1 - since) % kRemembered];
      if (s.n == n && std::memcmp(s.steps.data(), steps, n * sizeof *steps) == 0) return since;
    }
    return kRemembered;
  }
  void remember(const std::uint32_t* steps, unsigned n) {
    Steps& s = remembered_[listed_++ % kRemembered];
    s.n = n;
    std::memcpy(s.steps.data(), steps, n * sizeof *steps);
  }

  // What comes behind a series, whose first was followed by n, is expected to go on.
  void went_on(std::uint16_t point, unsigned n, std::uint32_t a0_step) {
    if (n == 0) return;
    Last& last = last_of(point);
    last.obj.width = last.a1.width = 0;
    last.index.value += n;
    last.index.width = 1;
    last.a0.value += std::uint64_t{n} * a0_step;
    last.a0.width = a0_step;
  }

  // Points that this reader does not know have state too.
  Last& last_of(std::uint16_t point) { return last_[point % last_.size()]; }

  std::array<Last, 256> last_{};
  std::uint16_t hca_ = 0;
  std::array<Steps, kRemembered> remembered_;
  unsigned listed_ = 0;  // series since reset()
};
static_assert(kPoints <= kAgainMark);

}  // namespace hcasim::traces::format
