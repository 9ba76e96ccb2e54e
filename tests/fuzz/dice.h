// SPDX-License-Identifier: BSD-3-Clause
// Choices of the fuzz tests, and changes to bytes that were right: by a seed (same seed, same choices, with
// any standard library), or by the bytes of a fuzzer's input.
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
  // The bytes, which stay the caller's, say what comes: a choice takes as few of them as it needs. Behind
  // their end all numbers are 0, and no chance comes true but the certain one.
  Dice(const std::uint8_t* bytes, std::size_t len) : next_(bytes), left_(len), scripted_(true) {}
  bool used_up() const { return scripted_ && left_ == 0; }
  std::uint64_t any() { return draw(8); }
  std::uint32_t word() { return static_cast<std::uint32_t>(draw(4)); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(draw(1)); }
  std::size_t below(std::size_t n) {
    if (n == 0) return 0;
    return static_cast<std::size_t>(draw(n <= 0x100 ? 1 : n <= 0x10000 ? 2 : n <= 0x100000000 ? 4 : 8) % n);
  }
  bool chance(unsigned percent) {
    const std::uint64_t drawn = draw(1);
    return scripted_ ? drawn * 100 / 256 + percent >= 100 : drawn % 100 < percent;
  }
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
  // A number; of a script, `bytes` of it, low ones first.
  std::uint64_t draw(unsigned bytes);

  std::mt19937_64 random_;
  const std::uint8_t* next_ = nullptr;
  std::size_t left_ = 0;
  bool scripted_ = false;
};

}  // namespace hcasim::bare
#endif
