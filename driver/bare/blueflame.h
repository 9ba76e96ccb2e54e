// SPDX-License-Identifier: BSD-3-Clause
// A send queue's doorbell that brings the WQE along (BlueFlame).
#ifndef HCASIM_DRIVER_BARE_BLUEFLAME_H
#define HCASIM_DRIVER_BARE_BLUEFLAME_H

#include <array>
#include <cstdint>
#include <cstring>

#include "driver/bare/device.h"
#include "prm/wqe.h"

namespace hcasim::bare {

// wqebb(i) is the i-th WQEBB of the WQE, of which there are so many. offset: of the half of the register that
// is next; they are used in turn. False: it is longer than that half, and nothing has been written.
template <class Wqebb>
bool write_blueflame(Device& device, unsigned& offset, unsigned wqebbs, Wqebb wqebb) {
  const unsigned half = device.sq_doorbell_stride() / 2;
  const auto bytes = wqebbs * static_cast<unsigned>(prm::kWqebb);
  std::array<std::uint8_t, 256> burst;
  if (bytes > half || bytes > burst.size()) return false;
  for (unsigned i = 0; i < wqebbs; ++i)  // the WQE may wrap
    std::memcpy(burst.data() + i * prm::kWqebb, wqebb(i), prm::kWqebb);
  device.function().write(device.uar_offset() + prm::uar::kSqDoorbell + offset, burst.data(), bytes);
  offset ^= half;
  return true;
}

}  // namespace hcasim::bare
#endif
