// SPDX-License-Identifier: BSD-3-Clause
// Memory of the device's own that memory keys may lead to, beside the host's: device memory behind BAR0
// (MEMIC) and the context memory that software steering writes (SW ICM).
#ifndef HCASIM_MODEL_PCIE_LOCAL_MEMORY_H
#define HCASIM_MODEL_PCIE_LOCAL_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hcasim {

// Which memory an address is of.
enum class Space : std::uint32_t { kHost, kMemic, kSwIcm, kSink };
constexpr unsigned kSpaces = 4;

class LocalMemory {
 public:
  // False: the range is not (wholly) there; nothing has been read or written.
  virtual bool read(std::uint64_t addr, void* dst, std::size_t len) = 0;
  virtual bool write(std::uint64_t addr, const void* src, std::size_t len) = 0;

 protected:
  ~LocalMemory() = default;
};

// Takes everything and reads as zeros (the key of that name, kDumpFillKey).
class Sink : public LocalMemory {
 public:
  bool read(std::uint64_t, void* dst, std::size_t len) override {
    std::memset(dst, 0, len);
    return true;
  }
  bool write(std::uint64_t, const void*, std::size_t) override { return true; }
};

}  // namespace hcasim
#endif
