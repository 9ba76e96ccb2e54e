// SPDX-License-Identifier: BSD-3-Clause
// IP over InfiniBand (RFC 4391, 6): the payload of a datagram is an encapsulation header, which is an
// ethertype and two reserved bytes, and what the ethertype names. All that works on frames (headers,
// checksums, segmentation, RSS, flow tables) works on such a payload as on a frame whose MACs are zero.
#ifndef HCASIM_MODEL_ETH_IPOIB_H
#define HCASIM_MODEL_ETH_IPOIB_H

#include <cstdint>
#include <cstring>

#include "model/eth/headers.h"

namespace hcasim {

constexpr std::uint32_t kIpoibHeader = 4;                         // bytes
constexpr std::uint32_t kIpoibShift = kEthHeader - kIpoibHeader;  // where the payload lies in a frame's bytes

// The payload lies at frame + kIpoibShift, its encapsulation header at least: makes a frame of it.
inline void frame_of_ipoib(std::uint8_t* frame) {
  std::memmove(frame + kEthHeader - 2, frame + kIpoibShift, 2);
  std::memset(frame, 0, kEthHeader - 2);
}

// Writes the encapsulation header that goes in the place of the frame's.
inline void ipoib_header(const std::uint8_t* frame, std::uint8_t* out) {
  std::memcpy(out, frame + kEthHeader - 2, 2);
  std::memset(out + 2, 0, kIpoibHeader - 2);
}

}  // namespace hcasim
#endif
