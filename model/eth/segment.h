// SPDX-License-Identifier: BSD-3-Clause
// Large send offload: the headers of one segment, made of those that the WQE brings for the whole
// (RFC 9293, RFC 768; the tunnels of headers.h).
#ifndef HCASIM_MODEL_ETH_SEGMENT_H
#define HCASIM_MODEL_ETH_SEGMENT_H

#include <cstdint>

#include "model/eth/headers.h"

namespace hcasim {

struct Segment {
  std::uint32_t index = 0;
  bool last = false;
  std::uint32_t offset = 0;  // of its payload in the whole, bytes
};

// frame: the headers as the WQE has them, then the segment's payload; headers: of this frame, parsed with
// LengthsOf::kBuffer. Writes lengths, IPv4 identification, TCP sequence number and flags; checksums are made
// afterwards.
void make_segment(std::uint8_t* frame, const FrameHeaders& headers, const Segment& segment);

}  // namespace hcasim
#endif
