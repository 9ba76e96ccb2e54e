// SPDX-License-Identifier: BSD-3-Clause
// Context memory that software writes itself (SW ICM): steering table entries and lists of rewriting actions,
// reached through memory keys. And the addresses in the same 40-bit space that lead out of software's tables:
// fates, TIRs, the firmware's tables, samplers and meters.
#ifndef HCASIM_MODEL_STEER_ICM_H
#define HCASIM_MODEL_STEER_ICM_H

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/pcie/local_memory.h"
#include "model/state/fields.h"

namespace hcasim {

// Where an address of another part than SW ICM leads. Addresses are multiples of kIcmLine.
struct IcmTarget {
  enum Kind : std::uint8_t { kNone, kRxDrop, kTxDrop, kTxAllow, kTir, kTable, kSampler, kMeter, kVport };
  Kind kind = kNone;
  std::uint32_t id = 0;  // 24 bits; kVport, of an E-Switch: its number, kUplinkPort the port
};
constexpr unsigned kIcmLine = 64;
std::uint64_t icm_address(IcmTarget target);
// kNone: nothing is at that address.
IcmTarget icm_target(std::uint64_t address);

class SwIcm final : public LocalMemory {
 public:
  // Two areas, each for its own use. Sizes in bytes, log2.
  enum Area : std::uint8_t { kSteering, kHeaderModify };
  static constexpr unsigned kAreas = 2, kLogGranularity = 12;
  static constexpr unsigned log_size(Area area) { return area == kSteering ? 27 : 23; }
  static constexpr std::uint64_t base(Area area) { return area == kSteering ? 0x1000000000u : 0x1800000000u; }
  // Entries have room for 40 bits of address, of which libmlx5 reads 38 back when a rule's entry leaves a
  // chain of collisions (dr_ste_v0_get_miss_addr, dr_ste_v1_get_miss_addr, up to rdma-core 64 at least): what
  // lies above would come back as an address of something else.
  static constexpr unsigned kLogAddresses = 38;

  // The area for headers has lists of actions, and behind them patterns of these, which the later steering
  // formats have apart from their arguments.
  static constexpr unsigned kLogLists = 22, kLogPatterns = 22;
  static constexpr std::uint64_t patterns() { return base(kHeaderModify) + (std::uint64_t{1} << kLogLists); }

  // Firmware's side: what is allocated may be accessed. False: not of one area, of no whole granules, or
  // overlaps what is there. Fresh memory reads as zeros.
  bool allocate(std::uint64_t addr, std::uint64_t len);
  bool release(std::uint64_t addr);
  bool allocated(std::uint64_t addr, std::uint64_t len) const;
  void clear();

  bool read(std::uint64_t addr, void* dst, std::size_t len) override;
  bool write(std::uint64_t addr, const void* src, std::size_t len) override;
  // The steering unit's side: the line of kIcmLine bytes at `addr`; null: not aligned, or not allocated.
  const std::uint8_t* line(std::uint64_t addr) const;
  // Bytes of this process that the content takes.
  std::uint64_t resident() const { return pages_used_ * kPage; }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, ranges_, pages_, pages_used_);
  }

 private:
  static constexpr std::uint64_t kPage = std::uint64_t{1} << kLogGranularity;
  using Page = std::array<std::uint8_t, kPage>;
  static bool find_area(std::uint64_t addr, std::uint64_t len, Area& area);
  std::unique_ptr<Page>& page(Area area, std::uint64_t addr);

  std::map<std::uint64_t, std::uint64_t> ranges_;                 // start, length
  std::array<std::vector<std::unique_ptr<Page>>, kAreas> pages_;  // by number in the area, made when written
  std::uint64_t pages_used_ = 0;
};

}  // namespace hcasim
#endif
