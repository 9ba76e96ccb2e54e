// SPDX-License-Identifier: BSD-3-Clause
// What an atomic does to its operand: words of up to 64 bits, side by side and independent of each other but
// for the one outcome of a comparison.
#ifndef HCASIM_MODEL_RESP_ATOMIC_OP_H
#define HCASIM_MODEL_RESP_ATOMIC_OP_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "prm/wqe.h"

namespace hcasim {

// Operands of an atomic of `bytes` bytes, as in a masked atomic's segments: word after word, the order of the
// words being that of memory. Words are of 4 bytes in an atomic of 4, else of 8. The IB specification's are
// those of 8 bytes with all-ones masks, and an addition with no boundary.
struct AtomicOperands {
  using Words = std::array<std::uint64_t, prm::kMaxAtomicBytes / 8>;
  bool compare_swap = false;
  unsigned bytes = 8;  // 4, 8, 16, 32
  Words swap_add{}, compare{};
  Words swap_mask{}, compare_mask{};
  Words boundary{};  // addition: no carry out of a bit that is set
  unsigned word_bytes() const { return bytes < 8 ? bytes : 8; }
  unsigned words() const { return bytes < 8 ? 1 : bytes / 8; }
};

// a + b of `bits` bits, in the fields whose highest bits `boundary` has set.
inline std::uint64_t add_fields(std::uint64_t a, std::uint64_t b, std::uint64_t boundary) {
  const std::uint64_t tops = boundary | 1ULL << 63;
  // The top bit of each field is added without its carry going on.
  return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

// The new value. False: a comparison failed, and nothing is to be written.
inline bool execute(const AtomicOperands& op, const AtomicOperands::Words& old, AtomicOperands::Words& now) {
  now = old;
  const std::uint64_t all = op.word_bytes() == 4 ? 0xffffffffULL : ~0ULL;
  if (op.compare_swap) {
    for (unsigned i = 0; i < op.words(); ++i)
      if (((old[i] ^ op.compare[i]) & op.compare_mask[i] & all) != 0) return false;
  }
  for (unsigned i = 0; i < op.words(); ++i)
    now[i] = (op.compare_swap ? (old[i] & ~op.swap_mask[i]) | (op.swap_add[i] & op.swap_mask[i])
                              : add_fields(old[i], op.swap_add[i], op.boundary[i])) &
             all;
  return true;
}

// Words of big-endian bytes.
inline void load_words(const std::uint8_t* from, unsigned bytes, AtomicOperands::Words& to) {
  const unsigned size = bytes < 8 ? bytes : 8;
  to = {};
  for (unsigned i = 0; i < bytes; ++i) to[i / size] = to[i / size] << 8 | from[i];
}
inline void store_words(const AtomicOperands::Words& from, unsigned bytes, std::uint8_t* to) {
  const unsigned size = bytes < 8 ? bytes : 8;
  for (unsigned i = 0; i < bytes; ++i)
    to[i] = static_cast<std::uint8_t>(from[i / size] >> (8 * (size - 1 - i % size)));
}

// Turns big-endian words into little-endian ones, and back.
inline void swap_words(std::uint8_t* bytes, unsigned len) {
  const unsigned size = len < 8 ? len : 8;
  for (unsigned at = 0; at + size <= len; at += size)
    for (unsigned i = 0; i < size / 2; ++i) {
      const std::uint8_t b = bytes[at + i];
      bytes[at + i] = bytes[at + size - 1 - i];
      bytes[at + size - 1 - i] = b;
    }
}

}  // namespace hcasim
#endif
