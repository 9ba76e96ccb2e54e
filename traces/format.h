// SPDX-License-Identifier: BSD-3-Clause
/// The trace file: a header, then blocks that can be read each by itself.
///
///   file    "HCASIMTR", u32 version, u32 0x01020304 in the writer's byte order, u32 header length,
///           header: JSON text {"points": [{"name", "kind", "obj", "index", "a0", "a1", "help"}, ...]}
///   block   u32 magic, u32 records, u32 raw bytes, u32 stored bytes, u32 CRC-32 of the raw bytes;
///           raw deflate data
///   end     a block of magic kEndMagic: u32 records of the file low, high, 0, 0
///
/// A record is: u16 point as varint, u8 hca, u8 flags, then varints: time, obj, index as signed differences
/// to the record before (0 at a block's start), a0, a1, blob length; blob bytes. Integers are little-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "traces/tracer.h"

namespace hcasim::traces::format {

constexpr char kMagic[8] = {'H', 'C', 'A', 'S', 'I', 'M', 'T', 'R'};
constexpr std::uint32_t kVersion = 1, kEndianCheck = 0x01020304;
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

inline void put_varint(std::vector<std::uint8_t>& out, std::uint64_t v) {
  while (v >= 0x80) {
    out.push_back(static_cast<std::uint8_t>(v | 0x80));
    v >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(v));
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

/// Difference coding of consecutive records.
class Coder {
 public:
  void reset() { last_ = Record(); }

  void encode(const Record& r, const std::uint8_t* blob, std::vector<std::uint8_t>& out) {
    put_varint(out, r.point);
    out.push_back(r.hca);
    out.push_back(r.flags);
    put_varint(out, zigzag(wrap(r.time_ps, last_.time_ps)));
    put_varint(out, zigzag(static_cast<std::int64_t>(r.obj) - last_.obj));
    put_varint(out, zigzag(static_cast<std::int64_t>(r.index) - last_.index));
    put_varint(out, r.a0);
    put_varint(out, r.a1);
    put_varint(out, r.blob_len);
    if (r.blob_len != 0) out.insert(out.end(), blob, blob + r.blob_len);
    last_ = r;
  }

  /// false: the bytes are no record. `*blob` points into the bytes.
  bool decode(const std::uint8_t*& p, const std::uint8_t* end, Record& r, const std::uint8_t** blob) {
    std::uint64_t point, time, obj, index, len;
    if (!get_varint(p, end, point) || point > 0xffff || end - p < 2) return false;
    r.point = static_cast<std::uint16_t>(point);
    r.hca = *p++;
    r.flags = *p++;
    if (!get_varint(p, end, time) || !get_varint(p, end, obj) || !get_varint(p, end, index) ||
        !get_varint(p, end, r.a0) || !get_varint(p, end, r.a1) || !get_varint(p, end, len) ||
        len > kMaxBlob || static_cast<std::uint64_t>(end - p) < len)
      return false;
    r.time_ps = static_cast<std::int64_t>(static_cast<std::uint64_t>(last_.time_ps) +
                                          static_cast<std::uint64_t>(unzigzag(time)));
    r.obj = last_.obj + static_cast<std::uint32_t>(unzigzag(obj));
    r.index = last_.index + static_cast<std::uint32_t>(unzigzag(index));
    r.blob_len = static_cast<std::uint32_t>(len);
    *blob = p;
    p += len;
    last_ = r;
    return true;
  }

 private:
  static std::int64_t wrap(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
  Record last_;
};

}  // namespace hcasim::traces::format
