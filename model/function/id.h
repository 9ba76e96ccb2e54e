// SPDX-License-Identifier: BSD-3-Clause
// The functions of a card by number, and what each of them has one of.
#ifndef HCASIM_MODEL_FUNCTION_ID_H
#define HCASIM_MODEL_FUNCTION_ID_H

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hcasim {

// Index of a PCIe function among those of its card; 0 is the first physical function. Trace records and
// recordings name functions by it, too.
using FunctionId = std::uint16_t;
constexpr unsigned kMaxFunctions = 1024;  // traces::Record::function has 12 bits, Mkey::line_id() ten
constexpr FunctionId kNoFunction = 0xffff;

// By what the caches on the chip know a context of a function: `number` is its QPN, CQN or mkey index.
constexpr std::uint64_t context_id(FunctionId f, std::uint32_t number) {
  return static_cast<std::uint64_t>(f) << 32 | number;
}

constexpr FunctionId function_of_context(std::uint64_t id) { return static_cast<FunctionId>(id >> 32); }

// What every function of the card has one of, such as its table of QPs. A block of the card that works for
// all functions is given this, and picks by the function of the object at hand. The parts live as long as
// their functions; none comes or goes after construction.
template <class T>
class PerFunction {
 public:
  PerFunction(T& only) : of_{&only} {}  // NOLINT(google-explicit-constructor): a card with one function
  explicit PerFunction(std::vector<T*> of) : of_(std::move(of)) {}

  T& operator[](FunctionId f) const { return *of_[f]; }
  std::size_t size() const { return of_.size(); }
  template <class F>
  void for_each(F f) const {
    for (T* part : of_) f(*part);
  }

 private:
  std::vector<T*> of_;
};

}  // namespace hcasim
#endif
