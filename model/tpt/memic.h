// SPDX-License-Identifier: BSD-3-Clause
// Device memory (MEMIC): memory of the card that lies in BAR0 behind the UAR pages. The CPU reaches what
// firmware has handed out by loads and stores, memory keys of mode kMemic reach it by DMA. Beside it lies a
// window per operation, of the same layout, in which a load or store is that operation on the byte it stands
// for. Addresses are BAR0 offsets.
#ifndef HCASIM_MODEL_TPT_MEMIC_H
#define HCASIM_MODEL_TPT_MEMIC_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "model/pcie/local_memory.h"
#include "model/state/fields.h"

namespace hcasim {

// modify_memic_in.memic_operation_type: a store adds what it stores, a load gives the value and leaves 1
// behind. Of 1, 2, 4 or 8 bytes, little-endian, aligned to their size.
enum class MemicOp : std::uint8_t { kIncrement = 0, kTestAndSet = 1 };
constexpr unsigned kMemicOps = 2;

class Memic : public LocalMemory {
 public:
  static constexpr std::uint64_t kBase = 16u << 20, kBytes = 256u << 10, kWindow = 1u << 20;
  static constexpr std::uint64_t kEnd = kBase + (1 + kMemicOps) * kWindow;
  static constexpr unsigned kLogGranule = 6;
  static constexpr std::uint64_t kGranule = 1u << kLogGranule;
  static constexpr bool covers(std::uint64_t offset) { return offset >= kBase && offset < kEnd; }

  // --- Firmware
  // Zeroed memory of `size` bytes (a multiple of kGranule, not 0) inside of [from, from + range), aligned to
  // 2^log_align bytes. False: no room there.
  bool allocate(std::uint64_t from, std::uint64_t range, std::uint64_t size, unsigned log_align,
                std::uint64_t& addr);
  // One allocation, named by its first byte.
  struct Area {
    std::uint64_t size = 0;
    std::array<bool, kMemicOps> ops{};

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, size, ops);
    }
  };
  Area* find(std::uint64_t addr);
  // The allocation that holds all of [addr, addr + len), null if there is none.
  Area* holding(std::uint64_t addr, std::uint64_t len);
  void free(std::uint64_t addr) { areas_.erase(addr); }
  static std::uint64_t window(MemicOp op, std::uint64_t addr) {
    return addr + (1 + static_cast<std::uint64_t>(op)) * kWindow;
  }
  void clear();
  std::size_t count() const { return areas_.size(); }

  // --- The CPU, within covers(). False: nothing is there, or the operation does not go with the access.
  bool load(std::uint64_t offset, std::uint8_t* bytes, unsigned len);
  bool store(std::uint64_t offset, const std::uint8_t* bytes, unsigned len);

  // --- DMA
  bool read(std::uint64_t addr, void* dst, std::size_t len) override;
  bool write(std::uint64_t addr, const void* src, std::size_t len) override;
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, areas_, bytes_);
    if constexpr (Archive::kLoads) {
      bool good = bytes_.empty() ? areas_.empty() : bytes_.size() == kBytes;
      std::uint64_t end = kBase;
      for (const auto& [addr, area] : areas_) {
        good = good && addr >= end && area.size <= kBytes && addr - kBase <= kBytes - area.size;
        end = addr + area.size;
      }
      a.check(good, "the areas do not lie in the memory, apart from each other");
    }
  }

 private:
  std::uint8_t* at(std::uint64_t addr) { return bytes_.data() + (addr - kBase); }
  // The operand of an operation's window; null if that is not allocated for it.
  std::uint8_t* operand(std::uint64_t offset, unsigned len, MemicOp& op);

  std::map<std::uint64_t, Area> areas_;
  std::vector<std::uint8_t> bytes_;  // empty until first used
};

}  // namespace hcasim
#endif
