// SPDX-License-Identifier: BSD-3-Clause
// Memory of the device's own that is an array; what lies beyond it is refused.
#ifndef HCASIM_TESTS_MODEL_SMALL_MEMORY_H
#define HCASIM_TESTS_MODEL_SMALL_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/pcie/local_memory.h"

namespace hcasim::test {

template <std::size_t Size>
struct SmallMemory final : LocalMemory {
  std::uint8_t bytes[Size] = {};
  bool read(std::uint64_t addr, void* dst, std::size_t len) override {
    if (addr > sizeof bytes || len > sizeof bytes - addr) return false;
    std::memcpy(dst, bytes + addr, len);
    return true;
  }
  bool write(std::uint64_t addr, const void* src, std::size_t len) override {
    if (addr > sizeof bytes || len > sizeof bytes - addr) return false;
    std::memcpy(bytes + addr, src, len);
    return true;
  }
};

}  // namespace hcasim::test
#endif
