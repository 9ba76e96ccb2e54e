// SPDX-License-Identifier: BSD-3-Clause
// What a recording has held before: payload is read from the same memory, and arrives, again and again.
// Writer and reader keep the same store, so that a chunk of bytes that is in it need not be written once
// more.
#ifndef HCASIM_CARD_CHUNK_STORE_H
#define HCASIM_CARD_CHUNK_STORE_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace hcasim::api {

// 8 bytes that each of `len` bytes has its part in.
inline std::uint64_t mixed(const void* bytes, std::size_t len) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t h = len * 0x9e3779b97f4a7c15ull;
  for (std::size_t at = 0; at < len; at += 8) {
    std::uint64_t v = 0;
    std::memcpy(&v, from + at, len - at < 8 ? len - at : 8);
    h = (h ^ v) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

class ChunkStore {
 public:
  static constexpr std::size_t kChunk = 256;            // bytes
  static constexpr std::uint64_t kSlots = 1u << 16;     // each chunk has one, which the next one takes away
  static constexpr std::size_t kShortest = 2 * kChunk;  // bytes of a field that is looked at
  // Where a field's chunks begin. They end before its last 4 bytes: those of a frame are its CRC, and what it
  // carries stands before, behind headers of any length.
  static std::size_t first(std::size_t len) { return (len - 4) % kChunk; }
  static std::size_t last(std::size_t len) { return len - 4; }

  static std::uint64_t slot_of(const void* chunk) { return mixed(chunk, kChunk) >> 40 & (kSlots - 1); }
  const std::uint8_t* at(std::uint64_t slot) const { return bytes_.get() + slot * kChunk; }
  bool holds(std::uint64_t slot, const void* chunk) const {
    return std::memcmp(at(slot), chunk, kChunk) == 0;
  }
  void put(std::uint64_t slot, const void* chunk) {
    std::memcpy(bytes_.get() + slot * kChunk, chunk, kChunk);
  }

 private:
  struct Free {
    void operator()(std::uint8_t* p) const { std::free(p); }
  };
  static std::uint8_t* zeros() {  // memory is taken as it is used
    void* p = std::calloc(kSlots, kChunk);
    if (!p) throw std::bad_alloc();
    return static_cast<std::uint8_t*>(p);
  }
  std::unique_ptr<std::uint8_t, Free> bytes_{zeros()};
};

}  // namespace hcasim::api
#endif
