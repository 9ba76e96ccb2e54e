// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/host_memory.h"

#include <algorithm>

namespace hcasim {

namespace {
constexpr unsigned kLogPage = 12, kLogLine = 6;  // bytes, log2
constexpr unsigned kCacheWays = 16, kLinesOfKib = 1024 >> kLogLine;
constexpr unsigned kFunctionAt = 52;  // bit, above the number of a page or line

// How many pieces of that size [addr, addr + len) touches; len is not 0.
std::size_t pieces(std::uint64_t addr, std::size_t len, unsigned log_size) {
  const std::size_t mask = (std::size_t{1} << log_size) - 1;
  return ((addr & mask) + len + mask) >> log_size;
}

std::uint64_t page_id(FunctionId f, std::uint64_t page) {
  return static_cast<std::uint64_t>(f) << kFunctionAt | page;
}
}  // namespace

HostMemory::HostMemory(const Profile& profile, std::size_t functions)
    : memory_(profile.memory),
      modelled_(memory_.iotlb != 0 || memory_.llc_kib != 0 || memory_.remote != 0),
      round_trip_(profile.pcie.read_latency),
      keeps_(functions, 1),
      walkers_(memory_.iotlb_walks) {
  if (memory_.iotlb != 0) iotlb_ = std::make_unique<ContextCache>(memory_.iotlb, memory_.iotlb_ways);
  if (iotlb_ && memory_.atc != 0) atc_ = std::make_unique<ContextCache>(memory_.atc, memory_.atc_ways);
  if (memory_.llc_kib == 0) return;
  lines_ = std::make_unique<ContextCache>(memory_.llc_kib * kLinesOfKib, kCacheWays);
  written_ = std::make_unique<ContextCache>(std::max(1u, memory_.llc_io_kib) * kLinesOfKib, kCacheWays);
}

Time HostMemory::read(Time t, FunctionId f, std::uint64_t addr, std::size_t len, What what) {
  Time longer = translate(t, f, addr, len) + memory_.remote;
  // Requests of one read are on their way together, so that it waits for DRAM once.
  if (lines_ && what == What::kPayload && !in_cache(f, addr, len)) longer += memory_.dram;
  return longer;
}

Time HostMemory::write(Time t, FunctionId f, std::uint64_t addr, std::size_t len) {
  // Into the cache, of which writes of devices have a share; nobody waits for what has to leave it.
  if (written_)
    for (std::uint64_t n = pieces(addr, len, kLogLine), id = line(f, addr); n != 0; --n, ++id)
      written_->touch(id);
  return translate(t, f, addr, len) + memory_.remote;
}

// When the IOMMU has the translation of a page: one that it does not keep waits for one of the walkers, and
// who asks for one that is being walked for waits for the same walk.
Time HostMemory::translated(Time t, std::uint64_t page) {
  if (!iotlb_->touch(page)) {
    Time& walker = walkers_.best(t);
    walker = std::max(walker, t) + memory_.iotlb_walk;
    iotlb_->arrives(walker);
  }
  return std::max(t, iotlb_->there());
}

// Until all pages are translated.
Time HostMemory::translate(Time t, FunctionId f, std::uint64_t addr, std::size_t len) {
  if (!iotlb_) return 0;
  Time until = t;
  std::uint64_t id = page_id(f, addr >> kLogPage);
  for (std::size_t n = pieces(addr, len, kLogPage); n != 0; --n, ++id) {
    if (!atc_ || keeps_[f] == 0) {
      until = std::max(until, translated(t, id));
      continue;
    }
    if (!atc_->touch(id)) atc_->arrives(translated(t, id) + round_trip_);
    until = std::max(until, atc_->there());
  }
  return until - t;
}

// What the card has read or written lately. Reads of devices leave nothing in a cache; but a buffer that is
// small enough to be there as a whole is there since a processor filled it, and of one that is larger the
// parts that are read one after the other are not.
bool HostMemory::in_cache(FunctionId f, std::uint64_t addr, std::size_t len) {
  bool all = true;
  std::uint64_t id = line(f, addr);
  for (std::size_t n = pieces(addr, len, kLogLine); n != 0; --n, ++id) {
    const bool was_read = lines_->touch(id);
    const bool was_written = written_->contains(id);
    if (was_read || was_written) continue;
    ++dram_reads_;
    all = false;
  }
  return all;
}

// Addresses mean the same memory to all functions only where nobody translates them.
std::uint64_t HostMemory::line(FunctionId f, std::uint64_t addr) const {
  const std::uint64_t number = addr >> kLogLine & ((std::uint64_t{1} << kFunctionAt) - 1);
  return iotlb_ ? static_cast<std::uint64_t>(f) << kFunctionAt | number : number;
}

template <class Which>
void HostMemory::drop(Which which) {
  for (const auto* kept : {&iotlb_, &atc_})
    if (*kept) (*kept)->invalidate_if(which);
}

void HostMemory::forget(FunctionId f) {
  drop([f](std::uint64_t id) { return id >> kFunctionAt == f; });
}

void HostMemory::keep(FunctionId f, bool on) {
  if (!on && atc_) atc_->invalidate_if([f](std::uint64_t id) { return id >> kFunctionAt == f; });
  keeps_[f] = on ? 1 : 0;
}

void HostMemory::invalidate(FunctionId f, std::uint64_t addr, std::uint64_t len) {
  if (len == 0 || len > UINT64_MAX - addr) return forget(f);
  const std::uint64_t first = page_id(f, addr >> kLogPage), last = page_id(f, (addr + len - 1) >> kLogPage);
  drop([=](std::uint64_t id) { return id >= first && id <= last; });
}

}  // namespace hcasim
