// SPDX-License-Identifier: BSD-3-Clause
// Packets as the bytes of their link, and back. Ethernet: destination MAC to the last byte before the FCS
// (which stays the sender's and receiver's hardware's business, as with any NIC's frames). IB: LRH to VCRC.
// RoCE: ICRC computed and checked here. IBTA vol. 1 ch. 5, 7.8; annexes A16 (RoCE), A17 (RoCE v2).
#ifndef HCASIM_MODEL_PORT_CODEC_H
#define HCASIM_MODEL_PORT_CODEC_H

#include <cstddef>
#include <cstdint>

#include "model/packet/packet.h"

namespace hcasim {

constexpr std::size_t kMaxHeaders = 160;    // bytes that encode() adds to a payload, at most
constexpr std::size_t kShortestFrame = 60;  // bytes of the shortest Ethernet frame, without FCS

// Bytes of a payload with its pad (IBTA 9.2.2): whole dwords.
inline std::uint32_t padded(std::uint32_t len) { return (len + 3) & ~3u; }

// Bytes of a RoCE or InfiniBand packet from BTH to ICRC.
std::uint32_t transport_bytes(const Packet& packet);

// Bytes of the packet on its link as encode() makes them.
std::uint32_t encoded_bytes(const Packet& packet);

// The last two bytes of an IB packet belong to a physical link; what is none may do without.
enum class Vcrc : std::uint8_t { kMade, kLeftOut };

// Writes the packet's bytes to out; room must be at least kMaxFrame. Returns their number, 0 if it is not one
// that can be sent. Payload padding, lengths, IP checksum and CRCs are made here. A kEthernet packet is
// copied as it is. A packet marked corrupt comes out with one bit wrong.
std::size_t encode(const Packet& packet, std::uint8_t* out, std::size_t room, Vcrc vcrc = Vcrc::kMade);

// The 40 bytes of network header that a datagram's receiver finds before its payload: GRH, IPv6 header, or 20
// zeros and the IPv4 header (A17.4.5.1).
constexpr std::uint32_t kGrhArea = 40;
void network_header(const Packet& packet, std::uint8_t* out);

enum class Decoded : std::uint8_t {
  kOk,
  kNotRoce,    // RoCE: another ethertype or UDP port, a fragment, IP options
  kMalformed,  // too short, lengths or versions that do not fit
  kBadCrc,     // ICRC (or VCRC) wrong
};

// packet: kind kEthernet with frame() and frame_len set. If it is a RoCE packet, fills in the header fields
// in place and changes its kind; else leaves its kind as it is. Never reads beyond frame_len. Opcodes that
// IBTA does not define are no error here: all behind their BTH is payload.
// kMade: the ICRC, which covers what has been changed since, is written into the frame instead of checked.
enum class Icrc : std::uint8_t { kChecked, kMade };
Decoded decode_roce(Packet& packet, Icrc with = Icrc::kChecked);
// bytes: LRH to VCRC, or to ICRC. Fills the packet (payload copied). kMade: the ICRC is taken for right.
Decoded decode_ib(const std::uint8_t* bytes, std::size_t len, Packet& packet, Vcrc vcrc = Vcrc::kMade,
                  Icrc with = Icrc::kChecked);

}  // namespace hcasim
#endif
