// SPDX-License-Identifier: GPL-2.0-or-later
// Whole raw Ethernet frames, from the destination MAC to the last byte before the FCS, and what a switch
// reads and writes of them.
#ifndef HCASIM_FABRIC_FRAME_H
#define HCASIM_FABRIC_FRAME_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace hcasim::fabric {

using Time = std::int64_t;  // ps
constexpr Time kNs = 1000, kUs = 1000 * kNs, kMs = 1000 * kUs, kNever = std::numeric_limits<Time>::max();

constexpr unsigned kPriorities = 8;
constexpr std::uint32_t kShortest = 60, kFcs = 4, kGap = 20;  // bytes; kGap: preamble and gap
constexpr std::uint32_t kLongest = 10240;

struct Frame {
  std::vector<std::uint8_t> bytes;
  // What inspect() has found.
  std::uint64_t dmac = 0;
  std::uint64_t flow = 0;     // hash of source, destination, protocol and ports
  std::uint8_t priority = 0;  // of the IP header's DSCP, else of the VLAN tag, else 0
  std::uint8_t ecn = 0;       // two bits, 0: no IP
  std::uint16_t ip_at = 0;    // offset of the IP header; 0: no IP
  bool ipv6 = false, mac_control = false;
  // The switch's own (switch.cpp).
  Time ready = 0;
  std::uint16_t ingress = 0;
  bool headroom = false;

  // On the cable, with FCS, preamble and gap; and without the two.
  std::uint32_t length() const {
    return static_cast<std::uint32_t>(bytes.size() < kShortest ? kShortest : bytes.size()) + kFcs;
  }
  std::uint32_t wire_length() const { return length() + kGap; }
};

struct FrameReturn {
  void operator()(Frame* frame) const;
};
// Owned by who has it in hand: a fabric with routes makes no copies.
using FramePtr = std::unique_ptr<Frame, FrameReturn>;
FramePtr make_frame(const void* bytes, std::size_t len);

constexpr std::uint8_t kEcnMask = 3, kCe = 3;
// Marks an ECN-capable IP packet "congestion experienced", with its header's checksum.
void mark_ce(Frame& frame);

// Pause (IEEE 802.3 annex 31B) and priority flow control (802.1Qbb): times in quanta of 512 bit times.
struct PauseRequest {
  std::uint8_t priorities = 0;
  std::array<std::uint16_t, kPriorities> quanta{};
};
constexpr unsigned kQuantumBits = 512;
FramePtr make_pfc(std::uint64_t source_mac, const PauseRequest& request);
// False: another kind of MAC control frame. An 802.3x pause is of all priorities.
bool parse_pause(const Frame& frame, PauseRequest& out);
// Whether it is a pause that stops some priority; one of no quanta lets go on.
bool stops(const Frame& frame);

// ps that so many bytes take at a rate.
inline Time serialisation(std::uint32_t bytes, double ps_per_byte) {
  // As the card's port rounds it. NOLINTNEXTLINE(bugprone-incorrect-roundings)
  return static_cast<Time>(bytes * ps_per_byte + 0.5);
}

inline std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ull;
  return h ^ h >> 33;
}

}  // namespace hcasim::fabric
#endif
