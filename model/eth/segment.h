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

// The ESP header behind that IP header, if there is one, for the segment of that index: sequence number, and
// the number in the IV's place (model/crypto/ipsec.h).
void advance_esp(std::uint8_t* frame, const IpHeaders& ip, std::uint32_t index);

// Bytes behind the IP packet, whose length covers them afterwards, unlike its headers' lengths; checksums are
// made afterwards. There is room for them. Returns the frame's length.
enum class TrailerOf : std::uint8_t { kIp, kL4 };  // kL4: UDP's length covers them, too
std::uint32_t put_trailer(std::uint8_t* frame, const IpHeaders& ip, const std::uint8_t* trailer,
                          std::uint32_t len, TrailerOf of);

}  // namespace hcasim
#endif
