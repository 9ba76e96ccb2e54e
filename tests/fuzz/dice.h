// SPDX-License-Identifier: BSD-3-Clause
// Seeded choices of the fuzz tests, and changes to bytes that were right. Same seed, same bytes, with any
// standard library.
#ifndef HCASIM_TESTS_FUZZ_DICE_H
#define HCASIM_TESTS_FUZZ_DICE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace hcasim::bare {

// HCASIM_FUZZ_ROUNDS (a factor, default 1) makes the runs longer, HCASIM_FUZZ_SEED moves them elsewhere.
inline unsigned rounds(unsigned base) {
  const char* factor = std::getenv("HCASIM_FUZZ_ROUNDS");
  return base * (factor ? static_cast<unsigned>(std::max(1, std::atoi(factor))) : 1);
}

class Dice {
 public:
  explicit Dice(std::uint64_t base) {
    const char* given = std::getenv("HCASIM_FUZZ_SEED");
    random_.seed(base + (given ? std::strtoull(given, nullptr, 0) * 1000 : 0));
  }
  std::uint64_t any() { return random_(); }
  std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  bool chance(unsigned percent) { return random_() % 100 < percent; }
  // One of those given.
  template <class C>
  auto pick(const C& c) -> decltype(c[0]) {
    return c[below(c.size())];
  }
  // What limits are tested with.
  std::uint32_t edge();
  // One to three changes in [from, len).
  void spoil(std::uint8_t* bytes, std::size_t len, std::size_t from = 0);

 private:
  std::mt19937_64 random_;
};

}  // namespace hcasim::bare
#endif
