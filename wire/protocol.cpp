// SPDX-License-Identifier: BSD-3-Clause
#include "wire/protocol.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace hcasim::wire {

namespace {

constexpr char kMagic[8] = {'h', 'c', 'a', 's', 'i', 'm', '-', 'w'};
constexpr std::size_t kNameBytes = 40;
constexpr std::size_t kMaxBye = 256;

// Offsets in a hello.
enum : std::size_t {
  kAtVersion = 8,
  kAtLink = 12,
  kAtFlags = 13,
  kAtLid = 14,
  kAtGuid = 16,
  kAtInstance = 24,
  kAtMtu = 32,
  kAtRate = 36,
  kAtName = 40,
  kAtLatency = 80,
  kAtModes = 88,
  kAtLaneRoom = 92,
};
static_assert(kAtName + kNameBytes == kAtLatency && kAtModes + 4 == kAtLaneRoom &&
              kAtLaneRoom + 4 == kHelloBytes);
constexpr std::uint8_t kHelloWanted = 1, kHelloSm = 2, kHelloCoupled = 4, kHelloInsists = 8,
                       kHelloShared = 16, kHelloRuns = 32, kHelloCredits = 64;
constexpr std::uint8_t kWishUp = 1, kWishInsists = 2;
constexpr std::size_t kShortestHello = 80;  // of any version

template <class T>
T get(const std::uint8_t* p) {
  T v = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) v |= static_cast<T>(static_cast<T>(p[i]) << (8 * i));
  return v;
}

template <class T>
void put(std::uint8_t* p, T v) {
  for (std::size_t i = 0; i < sizeof(T); ++i) p[i] = static_cast<std::uint8_t>(v >> (8 * i));
}

const char* wrong_length(Type type, std::size_t len) {
  switch (type) {
    case Type::kHello:
      // Later versions may append fields.
      return len < kShortestHello ? "a hello that is too short" : nullptr;
    case Type::kFrame:
      return len == 0 ? "an empty frame" : nullptr;
    case Type::kCarrier:
      return len != kCarrierBytes ? "a carrier message of a wrong length" : nullptr;
    case Type::kKeepalive:
      return len != 0 ? "a keepalive of a wrong length" : nullptr;
    case Type::kBye:
      return len > kMaxBye ? "a bye that is too long" : nullptr;
    case Type::kMark:
      return len != kMarkBytes ? "a mark of a wrong length" : nullptr;
    case Type::kRun:
      return len < kRunBytes ? "a run that is too short" : nullptr;
  }
  return "a message of an unknown type";
}

}  // namespace

Parsed parse(const std::uint8_t* bytes, std::size_t len, bool first, Message& out, std::size_t& used,
             const char*& why) {
  // A foreign peer is detected by its first bytes, however few have arrived.
  if (len < kHeaderBytes) return Parsed::kMore;
  const std::size_t body = get<std::uint32_t>(bytes);
  out.type = static_cast<Type>(bytes[4]);
  out.flags = bytes[5];
  out.time = static_cast<std::int64_t>(get<std::uint64_t>(bytes + 8));
  if (first && out.type != Type::kHello && out.type != Type::kBye) {
    why = "something else than a hello";
    return Parsed::kMalformed;
  }
  const std::size_t most = out.type == Type::kRun ? kMaxRunBytes : kMaxFrameBytes;
  why = body > most ? "a message that is too long" : wrong_length(out.type, body);
  if (why) return Parsed::kMalformed;
  used = kHeaderBytes + body;
  if (len < used) return Parsed::kMore;
  out.body = bytes + kHeaderBytes;
  out.len = body;
  if (out.type == Type::kHello && std::memcmp(out.body, kMagic, sizeof kMagic) != 0) {
    why = "a hello without the magic number";
    return Parsed::kMalformed;
  }
  return Parsed::kMessage;
}

bool parse_hello(const Message& message, Hello& out) {
  const std::uint8_t* p = message.body;
  out.version = get<std::uint32_t>(p + kAtVersion);
  if (out.version != kVersion || message.len < kHelloBytes) return false;
  out.link = static_cast<LinkLayer>(p[kAtLink]);
  out.wish.up = (p[kAtFlags] & kHelloWanted) != 0;
  out.wish.insists = (p[kAtFlags] & kHelloInsists) != 0;
  out.wish.modes = get<std::uint16_t>(p + kAtModes);
  out.subnet_manager = (p[kAtFlags] & kHelloSm) != 0;
  out.coupled = (p[kAtFlags] & kHelloCoupled) != 0;
  out.shared = (p[kAtFlags] & kHelloShared) != 0;
  out.runs = (p[kAtFlags] & kHelloRuns) != 0;
  out.credits = (p[kAtFlags] & kHelloCredits) != 0;
  out.lane_room = get<std::uint32_t>(p + kAtLaneRoom);
  out.latency = static_cast<std::int64_t>(get<std::uint64_t>(p + kAtLatency));
  out.lid = get<std::uint16_t>(p + kAtLid);
  out.node_guid = get<std::uint64_t>(p + kAtGuid);
  out.instance = get<std::uint64_t>(p + kAtInstance);
  out.mtu = get<std::uint32_t>(p + kAtMtu);
  out.rate = get<std::uint32_t>(p + kAtRate);
  out.name.clear();
  // It is shown in messages, so only printable characters.
  for (std::size_t i = 0; i < kNameBytes && p[kAtName + i] != 0; ++i) {
    const char c = static_cast<char>(p[kAtName + i]);
    out.name += std::isgraph(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return true;
}

namespace {
Wish wish_at(const std::uint8_t* p) {
  return {(p[0] & kWishUp) != 0, (p[0] & kWishInsists) != 0, get<std::uint16_t>(p + 2)};
}
}  // namespace

Wish parse_wish(const Message& message) { return wish_at(message.body); }

Mark parse_mark(const Message& message) {
  Mark mark;
  mark.at = message.time;
  mark.next = static_cast<std::int64_t>(get<std::uint64_t>(message.body));
  mark.wish = wish_at(message.body + 8);
  return mark;
}

bool parse_credits(const Message& message, Credits& out) {
  if (message.len != kCreditsBytes) return false;
  out.lane = message.body[0];
  out.bytes = get<std::uint32_t>(message.body + 4);
  return true;
}

bool parse_run(const Message& message, Run& out) {
  // Each number is read once: the memory may be the other end's too.
  const std::uint8_t* p = message.body;
  out.payload_len = get<std::uint32_t>(p);
  out.packets = get<std::uint16_t>(p + 4);
  out.frame_len = get<std::uint16_t>(p + 6);
  out.unit = get<std::uint32_t>(p + 8);
  if (out.packets == 0 || out.packets > kMaxRun || out.frame_len == 0 || out.frame_len > kMaxRunFrame ||
      out.payload_len > kMaxRunPayload)
    return false;
  const std::size_t head = kRunBytes + 4 * (out.packets - 1U);
  if (message.len != head + out.frame_len + out.payload_len) return false;
  for (unsigned i = 0; i + 1 < out.packets; ++i) out.gaps[i] = get<std::uint32_t>(p + kRunBytes + 4 * i);
  out.frame = p + head;
  out.payload = out.frame + out.frame_len;
  return true;
}

std::size_t put_run(std::uint8_t* out, const Run& run) {
  put(out, run.payload_len);
  put(out + 4, static_cast<std::uint16_t>(run.packets));
  put(out + 6, static_cast<std::uint16_t>(run.frame_len));
  put(out + 8, run.unit);
  put(out + 12, std::uint32_t{0});
  for (unsigned i = 0; i + 1 < run.packets; ++i) put(out + kRunBytes + 4 * i, run.gaps[i]);
  return kRunBytes + 4 * (run.packets - 1U);
}

void put_header(std::uint8_t* out, Type type, std::uint8_t flags, std::int64_t time, std::size_t body) {
  put(out, static_cast<std::uint32_t>(body));
  out[4] = static_cast<std::uint8_t>(type);
  out[5] = flags;
  out[6] = out[7] = 0;
  put(out + 8, static_cast<std::uint64_t>(time));
}

void put_hello(std::uint8_t* out, const Hello& hello, std::int64_t time) {
  put_header(out, Type::kHello, 0, time, kHelloBytes);
  std::uint8_t* p = out + kHeaderBytes;
  std::memset(p, 0, kHelloBytes);
  std::memcpy(p, kMagic, sizeof kMagic);
  put(p + kAtVersion, hello.version);
  p[kAtLink] = static_cast<std::uint8_t>(hello.link);
  p[kAtFlags] =
      static_cast<std::uint8_t>((hello.wish.up ? kHelloWanted : 0) | (hello.subnet_manager ? kHelloSm : 0) |
                                (hello.coupled ? kHelloCoupled : 0) |
                                (hello.wish.insists ? kHelloInsists : 0) | (hello.shared ? kHelloShared : 0) |
                                (hello.runs ? kHelloRuns : 0) | (hello.credits ? kHelloCredits : 0));
  put(p + kAtModes, hello.wish.modes);
  put(p + kAtLatency, static_cast<std::uint64_t>(hello.latency));
  put(p + kAtLid, hello.lid);
  put(p + kAtGuid, hello.node_guid);
  put(p + kAtInstance, hello.instance);
  put(p + kAtMtu, hello.mtu);
  put(p + kAtRate, hello.rate);
  put(p + kAtLaneRoom, hello.lane_room);
  const std::size_t len = std::min(hello.name.size(), kNameBytes - 1);
  std::copy_n(hello.name.begin(), len, p + kAtName);  // zeros follow
}

void put_wish(std::uint8_t* out, const Wish& wish) {
  out[0] = static_cast<std::uint8_t>((wish.up ? kWishUp : 0) | (wish.insists ? kWishInsists : 0));
  out[1] = 0;
  put(out + 2, wish.modes);
}

void put_credits(std::uint8_t* out, const Credits& credits) {
  std::memset(out, 0, kCreditsBytes);
  out[0] = credits.lane;
  put(out + 4, credits.bytes);
}

void put_mark(std::uint8_t* out, const Mark& mark) {
  put_header(out, Type::kMark, 0, mark.at, kMarkBytes);
  std::uint8_t* p = out + kHeaderBytes;
  std::memset(p, 0, kMarkBytes);
  put(p, static_cast<std::uint64_t>(mark.next));
  put_wish(p + 8, mark.wish);
}

}  // namespace hcasim::wire
