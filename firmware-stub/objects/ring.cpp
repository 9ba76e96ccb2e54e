// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/ring.h"

#include "firmware-stub/firmware.h"

namespace hcasim::fw {

Syndrome read_ring(Firmware& fw, const Command& cmd, std::size_t pas_offset, unsigned log_page_size,
                   unsigned page_offset, std::uint64_t bytes, Syndrome wrong, GuestRing& ring) {
  if (log_page_size > 31) return wrong;
  ring.log_page = 12 + log_page_size;
  ring.start = static_cast<std::uint64_t>(page_offset) << (ring.log_page - 6);
  const std::uint64_t need = (ring.start + bytes + ring.page_size() - 1) >> ring.log_page;
  const std::uint64_t given = cmd.in_len > pas_offset ? (cmd.in_len - pas_offset) / 8 : 0;
  if (need > given) return wrong;
  if (need > fw.objects().list_words_left()) return Syndrome::kRingMemory;
  ring.pages.resize(need);
  for (std::uint64_t i = 0; i < need; ++i) {
    const std::uint64_t page = prm::load64(cmd.in.data() + pas_offset + 8 * i) & ~std::uint64_t{0xfff};
    if (fw.pages().has(page))
      fw.tracer().broke_value(traces::Rule::kFirmwarePage, cmd.now, traces::RuleObject::kCommand, cmd.seq,
                              page);
    ring.pages[i] = page;
  }
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
