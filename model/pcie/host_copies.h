// SPDX-License-Identifier: BSD-3-Clause
// Copies within host memory that are due and not made yet: payload that is read where it lies and written
// where it goes. Packets of one message continue each other, and one long copy is much faster than many short
// ones (the processor need not fetch what it overwrites). Nobody can tell: the copies are made before
// anything else reads or writes host memory, and before the model gives up control.
#ifndef HCASIM_MODEL_PCIE_HOST_COPIES_H
#define HCASIM_MODEL_PCIE_HOST_COPIES_H

#include <cstddef>
#include <cstdint>

#include "model/prefetch.h"

namespace hcasim {

// One for all HCAs of the process, in the SimulationContext: they may share a host.
class HostCopies {
 public:
  // len bytes from src to dst, in order with those given before.
  void add(std::uint8_t* dst, const std::uint8_t* src, std::size_t len) {
    if (len_ != 0 && dst == dst_ + len_ && src == src_ + len_ && len_ + len <= kLongest) {
      len_ += len;
      return;
    }
    // What it will begin with is fetched during the copy before.
    prefetch_line(dst);
    __builtin_prefetch(src);
    make();
    dst_ = dst;
    src_ = src;
    len_ = len;
  }
  // Makes those that are due.
  void make() {
    if (len_ != 0) copy();
  }

 private:
  static constexpr std::size_t kLongest = std::size_t{256} << 10;
  void copy();

  std::uint8_t* dst_ = nullptr;
  const std::uint8_t* src_ = nullptr;
  std::size_t len_ = 0;
};

}  // namespace hcasim
#endif
