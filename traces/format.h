// SPDX-License-Identifier: BSD-3-Clause
/// The trace file: a header, then blocks that can be read each by itself.
///
///   file    "HCASIMTR", u32 version, u32 0x01020304 in the writer's byte order, u32 header length,
///           header: JSON text {"points": [{"name", "kind", "obj", "index", "a0", "a1", "help"}, ...]}
///   block   u32 magic, u32 records, u32 raw bytes, u32 stored bytes, u32 CRC-32 of the raw bytes;
///           raw deflate data
///   end     a block of magic kEndMagic: u32 records of the file low, high, 0, 0
///
/// A record is: u16 point as varint, u8 hca, u8 which of the parts that follow are there (Coder::Part), then
/// those as varints: time, obj, index, a0, a1 as signed differences to the record of the same point before
/// (0 at a block's start), flags, blob length; blob bytes. A part that is not there is 0. Integers are
/// little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "traces/tracer.h"

namespace hcasim::traces::format {

constexpr char kMagic[8] = {'H', 'C', 'A', 'S', 'I', 'M', 'T', 'R'};
constexpr std::uint32_t kVersion = 2, kEndianCheck = 0x01020304;
constexpr std::uint32_t kBlockMagic = 0x314b4c42, kEndMagic = 0x31444e45;  // "BLK1", "END1"
constexpr std::uint32_t kBlockRecords = 2048;       ///< a block is cut at this many records
constexpr std::uint32_t kBlockBytes = 256 * 1024;   ///< or when it holds so many bytes
constexpr std::uint32_t kMaxRaw = 4 * 1024 * 1024;  ///< a reader refuses larger blocks
constexpr std::uint32_t kMaxHeader = 1024 * 1024;

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

/// Returns the end of what it wrote.
inline std::uint8_t* put_varint(std::uint8_t* p, std::uint64_t v) {
  while (v >= 0x80) {
    *p++ = static_cast<std::uint8_t>(v | 0x80);
    v >>= 7;
  }
  *p++ = static_cast<std::uint8_t>(v);
  return p;
}

/// false: the bytes end within it, or it has more than 64 bits.
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

/// Difference coding of records of the same point: what one stage does for WQE after WQE differs little.
class Coder {
 public:
  void reset() { last_.fill({}); }

  static constexpr std::size_t kMost = 2 + 8 * kMaxVarint;  // bytes of a record without its blob

  /// Returns the end of what it wrote: at most kMost bytes and the blob.
  std::uint8_t* encode(const Record& r, const std::uint8_t* blob, std::uint8_t* p) {
    p = put_varint(p, r.point);
    *p++ = r.hca;
    std::uint8_t& parts = *p++;
    unsigned there = 0;
    const auto put = [&](Part part, std::uint64_t v) {
      if (v == 0) return;
      there |= part;
      p = put_varint(p, v);
    };
    const auto change = [&](Part part, std::uint64_t& last, std::uint64_t v) {
      put(part, zigzag(static_cast<std::int64_t>(v - last)));  // wraps: any two numbers have a difference
      last = v;
    };
    Last& last = last_of(r.point);
    change(kTime, last.time, static_cast<std::uint64_t>(r.time_ps));
    change(kObj, last.obj, r.obj);
    change(kIndex, last.index, r.index);
    change(kA0, last.a0, r.a0);
    change(kA1, last.a1, r.a1);
    put(kFlags, r.flags);
    put(kBlob, r.blob_len);
    parts = static_cast<std::uint8_t>(there);
    if (r.blob_len == 0) return p;
    std::memcpy(p, blob, r.blob_len);
    return p + r.blob_len;
  }

  /// false: the bytes are no record. `*blob` points into the bytes.
  bool decode(const std::uint8_t*& p, const std::uint8_t* end, Record& r, const std::uint8_t** blob) {
    std::uint64_t point;
    if (!get_varint(p, end, point) || point > 0xffff || end - p < 2) return false;
    r.point = static_cast<std::uint16_t>(point);
    r.hca = *p++;
    const unsigned there = *p++;
    bool good = true;
    const auto get = [&](Part part) {
      std::uint64_t v = 0;
      if ((there & part) != 0) good = good && get_varint(p, end, v);
      return v;
    };
    const auto change = [&](Part part, std::uint64_t& last) {
      return last += static_cast<std::uint64_t>(unzigzag(get(part)));
    };
    Last& last = last_of(r.point);
    r.time_ps = static_cast<std::int64_t>(change(kTime, last.time));
    r.obj = static_cast<std::uint32_t>(change(kObj, last.obj));
    r.index = static_cast<std::uint32_t>(change(kIndex, last.index));
    r.a0 = change(kA0, last.a0);
    r.a1 = change(kA1, last.a1);
    r.flags = static_cast<std::uint8_t>(get(kFlags));
    const std::uint64_t len = get(kBlob);
    if (!good || len > kMaxBlob || static_cast<std::uint64_t>(end - p) < len) return false;
    r.blob_len = static_cast<std::uint32_t>(len);
    *blob = p;
    p += len;
    return true;
  }

 private:
  enum Part : unsigned { kTime = 1, kObj = 2, kIndex = 4, kA0 = 8, kA1 = 16, kFlags = 32, kBlob = 64 };
  struct Last {
    std::uint64_t time = 0, obj = 0, index = 0, a0 = 0, a1 = 0;
  };

  // Of points that this reader does not know, too.
  Last& last_of(std::uint16_t point) { return last_[point % last_.size()]; }

  std::array<Last, 256> last_{};
};
static_assert(kPoints <= 256);

}  // namespace hcasim::traces::format
