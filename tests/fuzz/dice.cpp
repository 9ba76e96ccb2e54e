// SPDX-License-Identifier: BSD-3-Clause
#include "dice.h"

#include <array>

namespace hcasim::bare {

std::uint64_t Dice::draw(unsigned bytes) {
  if (!scripted_) return random_();
  std::uint64_t number = 0;
  for (unsigned i = 0; i < bytes && left_ != 0; ++i, --left_)
    number |= static_cast<std::uint64_t>(*next_++) << 8 * i;
  return number;
}

std::uint32_t Dice::edge() {
  static constexpr std::array<std::uint32_t, 16> kEdges{
      0,       1,        2,         3,          0x7f,     0xff, 0x100,      0xffff,
      0x10000, 0xffffff, 0x1000000, 0x7fffffff, 1u << 31, ~0u,  0xfffffff0, 0x1fff};
  return kEdges[below(kEdges.size())];
}

void Dice::spoil(std::uint8_t* bytes, std::size_t len, std::size_t from) {
  if (len <= from) return;
  for (std::size_t n = 1 + below(3); n > 0; --n) {
    const std::size_t at = from + below(len - from);
    const std::size_t dword = at & ~std::size_t{3};
    const unsigned how = static_cast<unsigned>(below(6));
    if (how < 3 || dword < from || dword + 4 > len) {
      bytes[at] = how == 0   ? static_cast<std::uint8_t>(bytes[at] ^ 1u << below(8))
                  : how == 1 ? byte()
                             : byte() & 3;
      continue;
    }
    const std::uint32_t v = how == 3 ? word() : edge();
    for (unsigned i = 0; i < 4; ++i) bytes[dword + i] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
  }
}

}  // namespace hcasim::bare
