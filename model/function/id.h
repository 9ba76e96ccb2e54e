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

// The numbers by which commands and the E-Switch know the functions of a card, each at its vport: those on
// the bus by their index, sub-functions, which are the last ones, from kFirstSf on.
class VportNumbers {
 public:
  static constexpr std::uint16_t kFirstSf = 0x8000;

  explicit VportNumbers(std::size_t functions = 1, std::size_t sfs = 0)
      : on_bus_(static_cast<FunctionId>(functions - sfs)), sfs_(static_cast<FunctionId>(sfs)) {}

  bool is_sf(FunctionId f) const { return f >= on_bus_; }
  std::uint16_t of(FunctionId f) const {
    return is_sf(f) ? static_cast<std::uint16_t>(kFirstSf + (f - on_bus_)) : f;
  }
  // kNoFunction: nobody's.
  FunctionId function(std::uint32_t vport) const {
    if (vport < on_bus_) return static_cast<FunctionId>(vport);
    if (vport < kFirstSf || vport - kFirstSf >= sfs_) return kNoFunction;
    return static_cast<FunctionId>(on_bus_ + (vport - kFirstSf));
  }

 private:
  FunctionId on_bus_, sfs_;
};

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
