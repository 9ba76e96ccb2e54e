// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/icm.h"
#include "model/state/state.h"

#include <algorithm>
#include <cstring>

namespace hcasim {

namespace {
// Kind, then number, then the line's offset; below SW ICM's areas.
constexpr unsigned kIdBits = 24, kLineBits = 6, kKindShift = kIdBits + kLineBits;
constexpr std::array<std::uint8_t, kIcmLine> kZeros{};
}  // namespace

static_assert(((std::uint64_t{IcmTarget::kVport} + 1) << kKindShift) <= SwIcm::base(SwIcm::kSteering));
static_assert(SwIcm::base(SwIcm::kHeaderModify) +
                  (std::uint64_t{1} << SwIcm::log_size(SwIcm::kHeaderModify)) <=
              std::uint64_t{1} << SwIcm::kLogAddresses);

std::uint64_t icm_address(IcmTarget target) {
  return static_cast<std::uint64_t>(target.kind) << kKindShift |
         static_cast<std::uint64_t>(target.id & ((1u << kIdBits) - 1)) << kLineBits;
}

IcmTarget icm_target(std::uint64_t address) {
  const std::uint64_t kind = address >> kKindShift;
  if (address % kIcmLine != 0 || kind > IcmTarget::kVport) return {};
  return {static_cast<IcmTarget::Kind>(kind),
          static_cast<std::uint32_t>(address >> kLineBits) & ((1u << kIdBits) - 1)};
}

bool SwIcm::find_area(std::uint64_t addr, std::uint64_t len, Area& area) {
  for (const Area a : {kSteering, kHeaderModify}) {
    const std::uint64_t size = std::uint64_t{1} << log_size(a);
    if (addr < base(a) || addr - base(a) >= size || len > size - (addr - base(a))) continue;
    area = a;
    return true;
  }
  return false;
}

std::unique_ptr<SwIcm::Page>& SwIcm::page(Area area, std::uint64_t addr) {
  std::vector<std::unique_ptr<Page>>& pages = pages_[area];
  const std::uint64_t index = (addr - base(area)) / kPage;
  if (pages.size() <= index) pages.resize(index + 1);
  return pages[index];
}

bool SwIcm::allocate(std::uint64_t addr, std::uint64_t len) {
  Area area;
  if (len == 0 || (addr | len) % kPage != 0 || !find_area(addr, len, area)) return false;
  const auto next = ranges_.lower_bound(addr);
  if (next != ranges_.end() && next->first - addr < len) return false;
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (addr - before->first < before->second) return false;
  }
  ranges_.emplace(addr, len);
  return true;
}

bool SwIcm::release(std::uint64_t addr) {
  const auto range = ranges_.find(addr);
  Area area;
  if (range == ranges_.end() || !find_area(addr, range->second, area)) return false;
  std::vector<std::unique_ptr<Page>>& pages = pages_[area];
  const std::uint64_t first = (addr - base(area)) / kPage;
  for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + range->second / kPage, pages.size());
       ++i) {
    if (pages[i]) --pages_used_;
    pages[i].reset();
  }
  ranges_.erase(range);
  return true;
}

bool SwIcm::allocated(std::uint64_t addr, std::uint64_t len) const {
  const auto after = ranges_.upper_bound(addr);
  if (after == ranges_.begin()) return false;
  const auto range = std::prev(after);
  const std::uint64_t in_range = addr - range->first;
  return in_range < range->second && len <= range->second - in_range;
}

void SwIcm::clear() { reset_state(*this); }

bool SwIcm::read(std::uint64_t addr, void* dst, std::size_t len) {
  Area area;
  if (!allocated(addr, len) || !find_area(addr, len, area)) return false;
  auto* to = static_cast<std::uint8_t*>(dst);
  while (len) {
    const std::size_t piece = std::min<std::size_t>(len, kPage - addr % kPage);
    if (const Page* from = page(area, addr).get())
      std::memcpy(to, from->data() + addr % kPage, piece);
    else
      std::memset(to, 0, piece);
    to += piece;
    addr += piece;
    len -= piece;
  }
  return true;
}

bool SwIcm::write(std::uint64_t addr, const void* src, std::size_t len) {
  Area area;
  if (!allocated(addr, len) || !find_area(addr, len, area)) return false;
  const auto* from = static_cast<const std::uint8_t*>(src);
  while (len) {
    const std::size_t piece = std::min<std::size_t>(len, kPage - addr % kPage);
    std::unique_ptr<Page>& to = page(area, addr);
    if (!to) {
      to = std::make_unique<Page>();
      ++pages_used_;
    }
    std::memcpy(to->data() + addr % kPage, from, piece);
    from += piece;
    addr += piece;
    len -= piece;
  }
  return true;
}

const std::uint8_t* SwIcm::line(std::uint64_t addr) const {
  Area area;
  if (addr % kIcmLine != 0 || !allocated(addr, kIcmLine) || !find_area(addr, kIcmLine, area)) return nullptr;
  const std::uint64_t index = (addr - base(area)) / kPage;
  const std::vector<std::unique_ptr<Page>>& pages = pages_[area];
  if (index >= pages.size() || !pages[index]) return kZeros.data();
  return pages[index]->data() + addr % kPage;
}

}  // namespace hcasim
