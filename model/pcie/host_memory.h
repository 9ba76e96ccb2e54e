// SPDX-License-Identifier: BSD-3-Clause
// The host's memory behind PCIe, where its time depends on the address: translations that the IOMMU keeps or
// has to walk for, payload that lies in the processors' last cache or has to come from DRAM, the other
// socket. With ATS (PCIe base specification, 10) the HCA keeps translations itself, and asks the IOMMU for
// those that it has not: a request and its completion more. They are those of all that the function reads and
// writes, and go as the IOMMU invalidates them. Holds tags, no contents. The latencies of [pcie]
// are those of a host without an IOMMU and with warm caches; what is said here comes on top. ([memory] of the
// profile; by default there is nothing of it.)
#ifndef HCASIM_MODEL_PCIE_HOST_MEMORY_H
#define HCASIM_MODEL_PCIE_HOST_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/ctx/cache.h"
#include "model/function/id.h"
#include "model/profile.h"
#include "model/unit_pool.h"

namespace hcasim {

class HostMemory {
 public:
  HostMemory(const Profile& profile, std::size_t functions);

  // Whether any of it is modelled: without, nobody need ask.
  bool modelled() const { return modelled_; }

  // What is read. A processor has written descriptors (WQEs, doorbell records) just before it rings, so that
  // they lie in its cache; payload may have lain there for long.
  enum class What : std::uint8_t { kDescriptor, kPayload };
  // How much longer a read or a write of [addr, addr + len) takes that reaches the root complex at t, ps.
  Time read(Time t, FunctionId f, std::uint64_t addr, std::size_t len, What what);
  Time write(Time t, FunctionId f, std::uint64_t addr, std::size_t len);

  // The function's translations go (a reset: its driver unmaps what it had mapped).
  void forget(FunctionId f);
  // Whether the HCA keeps translations for the function (ATS is on), as it does at first if it does at all.
  void keep(FunctionId f, bool on);
  // The IOMMU takes back the translations of [addr, addr + len), 0: of all addresses: neither keeps them.
  void invalidate(FunctionId f, std::uint64_t addr, std::uint64_t len);

  // Of pages and of cache lines.
  std::uint64_t iotlb_hits() const { return iotlb_ ? iotlb_->hits() : 0; }
  std::uint64_t iotlb_misses() const { return iotlb_ ? iotlb_->misses() : 0; }
  std::uint64_t atc_hits() const { return atc_ ? atc_->hits() : 0; }
  std::uint64_t atc_misses() const { return atc_ ? atc_->misses() : 0; }
  std::uint64_t dram_reads() const { return dram_reads_; }

  template <class Archive>
  void list_state(Archive& a) {
    if (iotlb_) {
      a("iotlb", *iotlb_);
      a("walkers", walkers_);
    }
    if (atc_) a("atc", *atc_);
    std::vector<std::uint8_t> keeps = keeps_;
    HCASIM_LASTING_SINCE(23, a, "keeps", keeps);
    if constexpr (Archive::kLoads) {
      a.check(keeps.size() == keeps_.size(), "the card has another number of functions");
      keeps_.swap(keeps);
    }
    if (lines_) {
      a("lines", *lines_);
      a("written", *written_);
      HCASIM_FIELDS(a, dram_reads_);
    }
  }

 private:
  Time translate(Time t, FunctionId f, std::uint64_t addr, std::size_t len);
  Time translated(Time t, std::uint64_t page);
  template <class Which>
  void drop(Which which);
  bool in_cache(FunctionId f, std::uint64_t addr, std::size_t len);
  std::uint64_t line(FunctionId f, std::uint64_t addr) const;

  const Profile::Memory& memory_;
  bool modelled_;
  const Time round_trip_;                          // of a translation request
  std::unique_ptr<ContextCache> iotlb_;            // null: no IOMMU
  std::unique_ptr<ContextCache> atc_;              // null: no ATS
  std::vector<std::uint8_t> keeps_;                // by function: 1 if ATS is on
  UnitPool walkers_;                               // of its page tables
  std::unique_ptr<ContextCache> lines_, written_;  // null: all payload is in the cache
  std::uint64_t dram_reads_ = 0;
};

}  // namespace hcasim
#endif
