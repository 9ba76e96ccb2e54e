// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/cr_scan.h"

#include <cstddef>

#include "prm/init_seg.h"

namespace hcasim {

namespace {

struct Range {
  std::size_t from, bytes;
};
constexpr Range kInitRegisters[] = {
    {offsetof(prm::InitSeg, fw_rev), 8},         {offsetof(prm::InitSeg, cmdq_addr_h), 8},
    {offsetof(prm::InitSeg, initializing), 4},   {offsetof(prm::InitSeg, health), sizeof(prm::HealthBuffer)},
    {offsetof(prm::InitSeg, cmd_exec_to), 8},    {offsetof(prm::InitSeg, internal_timer_h), 8},
    {offsetof(prm::InitSeg, health_counter), 4},
};
// Addresses of the mailbox as the ICMD space has them (firmware-stub/icmd.h).
constexpr std::uint32_t kIcmdControl = 0, kIcmdSize = 0x1000, kIcmdData = 0x100000;

}  // namespace

void CrScan::take(const CrSpace& cr, FirmwarePort& firmware) {
  words_.clear();
  cr.for_each([this](std::uint32_t address, std::uint32_t value) { words_[address] = value; });
  for (const Range& r : kInitRegisters)
    for (std::size_t at = r.from; at < r.from + r.bytes; at += 4) {
      const auto offset = static_cast<std::uint32_t>(at);
      words_[kInitSegment + offset] = firmware.init_seg_read(offset);
    }
  if (const auto control = firmware.icmd_read(kIcmdControl)) words_[kMailbox] = *control;
  if (const auto size = firmware.icmd_read(kIcmdSize)) words_[kMailbox + 4] = *size;
  for (std::uint32_t at = 0; kMailboxData + at < kCore; at += 4) {
    const auto word = firmware.icmd_read(kIcmdData + at);
    if (!word) break;
    words_[kMailboxData + at] = *word;
  }
  std::uint32_t at = kCore;
  for (const std::uint64_t counted : firmware.core()) {
    words_[at] = static_cast<std::uint32_t>(counted >> 32);
    words_[at + 4] = static_cast<std::uint32_t>(counted);
    at += 8;
  }
}

std::optional<std::uint32_t> CrScan::read(std::uint32_t address) const {
  const auto it = words_.find(address);
  return it != words_.end() ? std::optional(it->second) : std::nullopt;
}

std::uint32_t CrScan::next(std::uint32_t address) const {
  const auto it = words_.upper_bound(address);
  return it != words_.end() ? it->first : kBytes;
}

}  // namespace hcasim
