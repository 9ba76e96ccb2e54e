// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/frame.h"

#include <algorithm>
#include <cstring>

namespace hcasim::fabric {

namespace {

constexpr std::uint16_t kVlan = 0x8100, kService = 0x88a8, kIpv4 = 0x0800, kIpv6 = 0x86dd,
                        kMacControl = 0x8808;
constexpr std::uint16_t kPauseOpcode = 0x0001, kPfcOpcode = 0x0101;
constexpr std::size_t kMacs = 12, kEthernet = 14, kTag = 4, kIpv4Header = 20, kIpv6Header = 40;
constexpr std::size_t kPauseBytes = kEthernet + 4, kPfcBytes = kEthernet + 20;
constexpr std::uint64_t kPauseMac = 0x0180c2000001;
constexpr std::uint8_t kTcp = 6, kUdp = 17;
constexpr std::size_t kMostKept = 65536;  // frames

std::vector<Frame*>& spare() {
  static auto* frames = new std::vector<Frame*>;  // outlives who gives frames back at the end
  return *frames;
}

std::uint16_t load16(const std::uint8_t* at) { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }

void store16(std::uint8_t* at, std::uint16_t v) {
  at[0] = static_cast<std::uint8_t>(v >> 8);
  at[1] = static_cast<std::uint8_t>(v);
}

std::uint64_t load_bytes(const std::uint8_t* at, std::size_t n) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < n; ++i) v = v << 8 | at[i];
  return v;
}

std::uint64_t fold(std::uint64_t h, std::uint64_t v) { return mix(h ^ v) + 0x9e3779b97f4a7c15ull; }

void inspect_ip(Frame& f, std::size_t at, bool ipv6) {
  const std::uint8_t* ip = f.bytes.data() + at;
  f.ip_at = static_cast<std::uint16_t>(at);
  f.ipv6 = ipv6;
  const unsigned traffic_class = ipv6 ? load16(ip) >> 4 & 0xffu : ip[1];
  f.ecn = traffic_class & kEcnMask;
  f.priority = static_cast<std::uint8_t>(traffic_class >> 5);
  const std::uint8_t protocol = ipv6 ? ip[6] : ip[9];
  std::uint64_t h = protocol;
  const std::size_t addresses = ipv6 ? 8 : 12;
  for (std::size_t i = addresses, end = ipv6 ? kIpv6Header : kIpv4Header; i < end; i += 8)
    h = fold(h, load_bytes(ip + i, 8));
  const std::size_t ports = at + (ipv6 ? kIpv6Header : static_cast<std::size_t>(ip[0] & 15) * 4);
  const bool first = ipv6 || (load16(ip + 6) & 0x1fff) == 0;
  if ((protocol == kTcp || protocol == kUdp) && first && ports + 4 <= f.bytes.size())
    h = fold(h, load_bytes(f.bytes.data() + ports, 4));
  f.flow = h;
}

void inspect(Frame& f) {
  f.flow = f.dmac = 0;
  f.priority = f.ecn = 0;
  f.ip_at = 0;
  f.ipv6 = f.mac_control = f.headroom = false;
  if (f.bytes.size() < kEthernet) return;
  const std::uint8_t* b = f.bytes.data();
  f.dmac = load_bytes(b, 6);
  f.flow = fold(fold(0, f.dmac), load_bytes(b + 6, 6));
  std::size_t at = kMacs;
  std::uint16_t type = load16(b + at);
  for (unsigned tags = 0; tags < 2 && (type == kVlan || type == kService); ++tags) {
    if (at + kTag + 2 > f.bytes.size()) return;
    if (tags == 0) f.priority = b[at + 2] >> 5;
    at += kTag;
    type = load16(b + at);
  }
  at += 2;
  if (type == kMacControl)
    f.mac_control = true;
  else if (type == kIpv4 && at + kIpv4Header <= f.bytes.size() && b[at] >> 4 == 4 && (b[at] & 15) >= 5)
    inspect_ip(f, at, false);
  else if (type == kIpv6 && at + kIpv6Header <= f.bytes.size() && b[at] >> 4 == 6)
    inspect_ip(f, at, true);
}

}  // namespace

void FrameReturn::operator()(Frame* frame) const {
  if (spare().size() < kMostKept)
    spare().push_back(frame);
  else
    delete frame;
}

FramePtr make_frame(const void* bytes, std::size_t len) {
  FramePtr frame;
  if (spare().empty()) {
    frame.reset(new Frame);
  } else {
    frame.reset(spare().back());
    spare().pop_back();
  }
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  frame->bytes.assign(from, from + std::min<std::size_t>(len, kLongest));
  inspect(*frame);
  return frame;
}

void mark_ce(Frame& f) {
  if (f.ip_at == 0 || f.ecn == 0 || f.ecn == kCe) return;
  std::uint8_t* ip = f.bytes.data() + f.ip_at;
  if (f.ipv6) {
    ip[1] |= kCe << 4;
  } else {
    // RFC 1624: the sum changes by what its first word does.
    const std::uint16_t before = load16(ip);
    ip[1] |= kCe;
    std::uint32_t sum =
        static_cast<std::uint16_t>(~load16(ip + 10)) + static_cast<std::uint16_t>(~before) + load16(ip);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    store16(ip + 10, static_cast<std::uint16_t>(~sum));
  }
  f.ecn = kCe;
}

FramePtr make_pfc(std::uint64_t source_mac, const PauseRequest& request) {
  std::array<std::uint8_t, kShortest> b{};
  for (unsigned i = 0; i < 6; ++i) {
    b[i] = static_cast<std::uint8_t>(kPauseMac >> (40 - 8 * i));
    b[6 + i] = static_cast<std::uint8_t>(source_mac >> (40 - 8 * i));
  }
  store16(&b[kMacs], kMacControl);
  store16(&b[kEthernet], kPfcOpcode);
  b[kEthernet + 3] = request.priorities;
  for (unsigned i = 0; i < kPriorities; ++i) store16(&b[kEthernet + 4 + 2 * i], request.quanta[i]);
  return make_frame(b.data(), b.size());
}

bool parse_pause(const Frame& f, PauseRequest& out) {
  if (!f.mac_control || f.bytes.size() < kPauseBytes) return false;
  const std::uint8_t* at = f.bytes.data() + kEthernet;
  out = {};
  switch (load16(at)) {
    case kPauseOpcode:
      out.priorities = 0xff;
      out.quanta.fill(load16(at + 2));
      return true;
    case kPfcOpcode:
      if (f.bytes.size() < kPfcBytes) return false;
      out.priorities = at[3];
      for (unsigned i = 0; i < kPriorities; ++i) out.quanta[i] = load16(at + 4 + 2 * i);
      return true;
    default:
      return false;
  }
}

bool stops(const Frame& frame) {
  PauseRequest request;
  if (!parse_pause(frame, request)) return false;
  for (unsigned i = 0; i < kPriorities; ++i)
    if ((request.priorities >> i & 1u) != 0 && request.quanta[i] != 0) return true;
  return false;
}

}  // namespace hcasim::fabric
