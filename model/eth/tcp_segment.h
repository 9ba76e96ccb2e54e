// SPDX-License-Identifier: BSD-3-Clause
// Whether a TCP segment continues the one before it, for receive offloads that put segments of a connection
// together. RFC 9293, RFC 7323 (timestamps).
#ifndef HCASIM_MODEL_ETH_TCP_SEGMENT_H
#define HCASIM_MODEL_ETH_TCP_SEGMENT_H

#include <cstdint>

#include "model/eth/headers.h"

namespace hcasim {

struct TcpSegment {
  static constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16;  // of `flags`
  std::uint16_t data = 0;                                                           // offset in the frame
  std::uint16_t len = 0;                                                            // bytes of data
  std::uint32_t seq = 0, ack = 0;
  std::uint16_t window = 0;
  std::uint8_t flags = 0;
  std::uint8_t hops = 0;        // TTL or hop limit
  bool plain = false;           // no IP options or extension headers; of TCP's options the timestamp at most
  std::uint32_t timestamp = 0;  // 0 without that option
};

// False: the frame is not TCP, or TCP in a tunnel.
bool read_segment(const std::uint8_t* frame, const FrameHeaders& h, TcpSegment& segment);

// Both are TCP: of the same connection, in the same direction.
bool same_connection(const std::uint8_t* a, const FrameHeaders& ha, const std::uint8_t* b,
                     const FrameHeaders& hb);
// All before the TCP header is the same but what differs between packets anyway (lengths, identification,
// TTL, checksum), and so is the length of the TCP header.
bool same_headers(const std::uint8_t* a, const FrameHeaders& ha, const std::uint8_t* b,
                  const FrameHeaders& hb);

}  // namespace hcasim
#endif
