// SPDX-License-Identifier: BSD-3-Clause
// UAR pages: decodes doorbell stores (bring-up map 1.3) and sends them to the block that they are for.
// Offsets in a 4 KiB page: 0x20 CQ arm, 0x40 / 0x48 EQ, 0x800 + n * 2^log_bf_reg_size SQ doorbell or
// BlueFlame. The assembling class brings the stores.
#ifndef HCASIM_MODEL_UAR_UAR_H
#define HCASIM_MODEL_UAR_UAR_H

#include <array>
#include <bitset>
#include <cstdint>

#include "model/function/id.h"
#include "model/occupancy.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "traces/rules.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class CqUnit;
class Dma;
class EqUnit;
class QpTable;
class Scheduler;
struct Profile;

constexpr unsigned kUarPageSize = 4096;

// The UAR pages of a function's BAR.
class UarPages {
 public:
  static constexpr unsigned kPages = 4096;
  // Firmware handed the page out (ALLOC_UAR) or took it back: stores to other pages are counted as bad.
  void set_allocated(std::uint32_t page, bool on) {
    if (page < kPages) allocated_[page] = on;
  }
  bool allocated(std::uint64_t page) const { return page < kPages && allocated_[page]; }
  // BlueFlame is offered: bursts are taken as WQEs; otherwise only their first 8 bytes count, as a doorbell.
  void set_blueflame(bool on) { blueflame_ = on; }
  bool blueflame() const { return blueflame_; }
  void clear();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, allocated_, half_offset, half, bad, blueflames);
    a.lasting("blueflame", blueflame_);
  }

  // First half of a 64-bit register that is written by two 32-bit stores.
  std::uint64_t half_offset = 0;
  std::array<std::uint8_t, 8> half{};
  std::uint64_t bad = 0, blueflames = 0;

 private:
  bool blueflame_ = false;
  std::bitset<kPages> allocated_;
};

// Decodes stores of all functions.
class Uar {
 public:
  struct Blocks {
    // The chip's
    const Profile& profile;
    traces::Tracer& tracer;
    Scheduler& scheduler;  // send doorbells and BlueFlame
    Dma& dma;              // a lone doorbell may be held up behind reads
    // The function's
    PerFunction<UarPages> pages;
    PerFunction<QpTable> qps;
    CqUnit& cqs;
    EqUnit& eqs;
  };
  explicit Uar(const Blocks& blocks) : blocks_(blocks) {}
  // offset: bytes from the start of the function's BAR0 (page 3 and up); bytes: as they lie on the bus, len
  // 1..kMaxBurst.
  void write(Time t, FunctionId f, std::uint64_t offset, const std::uint8_t* bytes, unsigned len);
  void clear();

  static constexpr unsigned kMaxBurst = 256;
  static constexpr unsigned kPages = UarPages::kPages;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, decoder_);
  }

 private:
  void store64(Time t, FunctionId f, std::uint64_t offset, unsigned reg, const std::uint8_t* bytes,
               unsigned len);
  // A store that comes to nothing: as `rule` forbids it, or as may happen.
  void bad(Time t, FunctionId f, traces::Rule rule, traces::RuleObject object, std::uint32_t number,
           std::uint64_t offset, std::uint64_t value);
  void in_vain(Time t, FunctionId f, traces::RuleObject object, std::uint32_t number, std::uint64_t offset,
               std::uint64_t value);

  Blocks blocks_;
  Occupancy decoder_;
};

}  // namespace hcasim
#endif
