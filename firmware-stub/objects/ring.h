// SPDX-License-Identifier: BSD-3-Clause
// A queue's page list as commands carry it, checked and made into a GuestRing.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_RING_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_RING_H

#include <cstdint>

#include "firmware-stub/command.h"
#include "model/ctx/guest_ring.h"

namespace hcasim::fw {

// Fills `ring` with the pages that hold `bytes` bytes. log_page_size: pages of 4 KiB << log_page_size;
// page_offset: in units of page size / 64 (map 6.1); pas_offset: bytes from the start of the input, BE64
// entries to its end. `wrong`: what it returns with fewer entries than that, or a page size beyond reason.
Syndrome read_ring(Firmware& fw, const Command& cmd, std::size_t pas_offset, unsigned log_page_size,
                   unsigned page_offset, std::uint64_t bytes, Syndrome wrong, GuestRing& ring);

}  // namespace hcasim::fw
#endif
