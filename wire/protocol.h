// SPDX-License-Identifier: BSD-3-Clause
// The protocol of a wire between two HCAs: messages over a byte stream, each a header and a body. All numbers
// are little-endian. A connection begins with a hello from each end; then frames, carrier changes and
// keepalives follow in any order; a bye gives the reason why its sender closes.
//
// Two ends in coupled time (a flag in both hellos) meet at the same simulated times. At each meeting, each
// end sends its remaining frames, then a mark: the earliest time at which it will send next if nothing
// arrives, and whether it wants the link up. With both marks, both ends know the time of the next meeting,
// and neither has to read the socket before. Marks replace carrier changes and keepalives.
//
//   header (16 bytes)  u32 length of the body | u8 type | u8 flags | u16 0 | i64 simulated send time, ps
//   hello  (96 bytes)  8 bytes magic | u32 version | u8 link | u8 flags | u16 LID | u64 node GUID |
//                      u64 instance | u32 MTU | u32 rate, Mb/s | 40 bytes name, NUL-padded |
//                      i64 latency of the cable, ps | u16 link modes | u16 0 | u32 room of lanes
//   frame              the packet as on its link: Ethernet without FCS, IB from LRH to ICRC (no VCRC, because
//                      it crosses no physical link); or, with a flag, credits
//   credits (8 bytes)  in coupled time, if both hellos allow it: u8 lane, or kAllLanes | 3 bytes 0 | u32
//   bytes.
//                      That much of what has come by that lane has left its buffer, at the header's time; or
//                      all of the port's buffers are empty, as it was reset
//   carrier (4 bytes)  u8 flags | u8 0 | u16 link modes
//   keepalive          nothing
//   bye                text
//   run                only in shared memory, and only if both hellos allow it: packets of one message whose
//                      payload is in one piece: u32 of it | u16 its packets | u16 bytes of the first
//                      packet as a frame without payload, whose CRC is of that | u32 payload of each packet
//                      but the last | u32 0 | for each packet but the last, u32 how long before the last it
//                      left, ps | that frame | the payload. The header's time is the last packet's
//   mark (16 bytes)    i64 earliest next send time, ps | u8 flags, u8 0, u16 link modes as in a carrier
//                      message | 4 bytes 0; the header's time is that of the meeting
//
// Flags of carrier and mark: bit 0, the link is wanted; bit 1, its mode is insisted on. Link modes: a bit for
// each that the end offers, as the firmware numbers them (LinkKind); InfiniBand makes nothing of them. Room
// of lanes: bytes that an InfiniBand port has for packets of each lane; 0: it says nothing of that.
#ifndef HCASIM_WIRE_PROTOCOL_H
#define HCASIM_WIRE_PROTOCOL_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace hcasim::wire {

constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kHelloBytes = 96;
constexpr std::size_t kCarrierBytes = 4;
constexpr std::size_t kMarkBytes = 16;
constexpr std::size_t kMaxFrameBytes = 10496;  // the longest packet with all its headers
constexpr std::size_t kMaxRun = 16;            // packets of a run
constexpr std::size_t kMaxRunPayload = kMaxRun * 4096;
constexpr std::size_t kMaxRunFrame = 256;  // bytes of a run's frame without payload
constexpr std::size_t kRunBytes = 16;      // of a run, in front of the gaps
constexpr std::size_t kMaxRunBytes = kRunBytes + 4 * (kMaxRun - 1) + kMaxRunFrame + kMaxRunPayload;

enum class Type : std::uint8_t {
  kHello = 1,
  kFrame = 2,
  kCarrier = 3,
  kKeepalive = 4,
  kBye = 5,
  kMark = 6,
  kRun = 7,
};

// Flags of a frame.
constexpr std::uint8_t kFrameCorrupt = 1;  // damaged in transit: the receiver sees a bad CRC
constexpr std::uint8_t kFrameCredits = 2;  // no packet: credits

constexpr std::size_t kCreditsBytes = 8;
constexpr std::uint8_t kAllLanes = 0xff;

enum class LinkLayer : std::uint8_t { kIb = 0, kEthernet = 1 };

// What an end wants of the link.
struct Wish {
  bool up = true;
  bool insists = false;  // on one of these modes: it does not negotiate
  std::uint16_t modes = 0xffff;

  bool operator==(const Wish& o) const { return up == o.up && insists == o.insists && modes == o.modes; }
};

// What an end says about itself.
struct Hello {
  std::uint32_t version = kVersion;
  LinkLayer link = LinkLayer::kIb;
  Wish wish;
  bool subnet_manager = true;  // IB: it has a built-in subnet manager
  bool coupled = false;        // both ends share one time
  bool shared = false;         // what follows the hellos goes through shared memory
  bool runs = false;           // it takes runs
  bool credits = false;        // it takes credits
  std::uint32_t lane_room = 0;
  std::uint16_t lid = 0;  // IB: the LID it requires; 0: any
  std::uint64_t node_guid = 0;
  std::uint64_t instance = 0;  // random: detects an end that talks to itself
  std::uint32_t mtu = 0;       // bytes
  std::uint32_t rate = 0;      // Mb/s
  std::int64_t latency = 0;    // of the cable, for what this end sends, ps
  std::string name;
};

struct Mark {
  std::int64_t at = 0;    // ps
  std::int64_t next = 0;  // ps
  Wish wish{false};
};

struct Credits {
  std::uint8_t lane = kAllLanes;
  std::uint32_t bytes = 0;
};

// Packets of one message, one behind the other.
struct Run {
  unsigned packets = 1;                 // up to kMaxRun
  std::uint32_t unit = 0;               // bytes of payload of each, but the last
  std::uint32_t payload_len = 0;        // of all of them
  std::uint32_t gaps[kMaxRun - 1]{};    // ps from each, but the last, to the last
  const std::uint8_t* frame = nullptr;  // the first one's headers
  std::size_t frame_len = 0;
  const std::uint8_t* payload = nullptr;
};

struct Message {
  Type type{};
  std::uint8_t flags = 0;
  std::int64_t time = 0;  // ps
  const std::uint8_t* body = nullptr;
  std::size_t len = 0;
};

enum class Parsed : std::uint8_t { kMessage, kMore, kMalformed };

// Parses the message at the start of `bytes`: kMessage, of `used` bytes (body points into bytes); kMore if it
// is incomplete (of the header's `used` bytes, if that is there); kMalformed with the reason in `why`.
// `first`: only a hello is allowed.
Parsed parse(const std::uint8_t* bytes, std::size_t len, bool first, Message& out, std::size_t& used,
             const char*& why);
// The body of a hello that parse() returned. False: unreadable version; only `out.version` is set.
bool parse_hello(const Message& message, Hello& out);

// The body of a carrier message, of a mark that parse() returned.
Wish parse_wish(const Message& message);
Mark parse_mark(const Message& message);

// The body of a frame with kFrameCredits. False: it has another length.
bool parse_credits(const Message& message, Credits& out);

// The body of a run that parse() returned; its pointers point into it. False: its parts do not fit.
bool parse_run(const Message& message, Run& out);
// Writes everything in front of the frame to out, the frame and the payload are to follow it there. Returns
// the length.
std::size_t put_run(std::uint8_t* out, const Run& run);

void put_header(std::uint8_t* out, Type type, std::uint8_t flags, std::int64_t time, std::size_t body);
// out: kHeaderBytes + kHelloBytes.
void put_hello(std::uint8_t* out, const Hello& hello, std::int64_t time);
// out: kCarrierBytes, the body alone.
void put_wish(std::uint8_t* out, const Wish& wish);
// out: kCreditsBytes, the body alone.
void put_credits(std::uint8_t* out, const Credits& credits);
// out: kHeaderBytes + kMarkBytes.
void put_mark(std::uint8_t* out, const Mark& mark);

}  // namespace hcasim::wire
#endif
