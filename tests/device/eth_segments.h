// SPDX-License-Identifier: BSD-3-Clause
// TCP segments of one stream of bytes, for tests of receive offloads.
#ifndef HCASIM_TESTS_DEVICE_ETH_SEGMENTS_H
#define HCASIM_TESTS_DEVICE_ETH_SEGMENTS_H

#include "eth_fixture.h"

namespace hcasim::bare {

constexpr unsigned kPsh = 8, kAck = 16, kFin = 1;

struct Segment {
  bool v6 = false;
  std::uint32_t seq = 0, ack = 1, timestamp = 0;  // 0: without that option
  unsigned flags = kAck, len = 500, window = 1000, hops = 64, tos = 0;
  std::uint16_t sport = 4000;
};

// Bytes of the stream that stand at this sequence number.
inline std::uint8_t stream(std::uint32_t at) {
  return static_cast<std::uint8_t>(at * 7 + (at >> 8) * 13 + 1);
}

// Without checksums: the SQ makes them.
inline Frame segment_frame(const Segment& s) {
  L4 l4;
  l4.v6 = s.v6;
  l4.sport = s.sport;
  l4.flags = s.flags;
  l4.payload = s.len + (s.timestamp != 0 ? 12 : 0);
  Frame f = l4_frame(l4);
  const std::size_t ip = 14, tcp = s.v6 ? 54 : 34;
  f[ip + (s.v6 ? 7 : 8)] = static_cast<std::uint8_t>(s.hops);
  if (s.v6)
    f[ip + 1] = static_cast<std::uint8_t>(s.tos << 4);
  else
    f[ip + 1] = static_cast<std::uint8_t>(s.tos);
  prm::store32(f.data() + tcp + 4, s.seq);
  prm::store32(f.data() + tcp + 8, s.ack);
  prm::store16(f.data() + tcp + 14, static_cast<std::uint16_t>(s.window));
  if (s.timestamp != 0) {
    f[tcp + 12] = 0x80;
    prm::store32(f.data() + tcp + 20, 0x0101080a);
    prm::store32(f.data() + tcp + 24, s.timestamp);
    prm::store32(f.data() + tcp + 28, 0);
  }
  for (unsigned i = 0; i < s.len; ++i) f[f.size() - s.len + i] = stream(s.seq + i);
  return f;
}

// The data at the frame's end are the stream's from `seq` on.
inline void expect_stream(const Frame& f, std::uint32_t seq, std::size_t len) {
  ASSERT_GE(f.size(), len);
  for (std::size_t i = 0; i < len; ++i)
    ASSERT_EQ(f[f.size() - len + i], stream(seq + static_cast<std::uint32_t>(i))) << i;
}

}  // namespace hcasim::bare
#endif
