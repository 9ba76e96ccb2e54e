// SPDX-License-Identifier: BSD-3-Clause
// Frames of all kinds that a card tells apart.
#ifndef HCASIM_TESTS_FUZZ_FRAME_PARTS_H
#define HCASIM_TESTS_FUZZ_FRAME_PARTS_H

#include "dice.h"
#include "tests/device/eth_fixture.h"

namespace hcasim::bare {

// Checksum flags of WQEs that make all that there may be.
constexpr std::uint8_t kAllSums =
    prm::EthSeg::kL3Csum | prm::EthSeg::kL4Csum | prm::EthSeg::kL3InnerCsum | prm::EthSeg::kL4InnerCsum;

// IP with TCP, UDP, ICMP, ESP, fragments, RoCE, or another ethertype; in a tunnel or not, with up to two
// tags.
Frame any_frame(Dice& dice);
// The frame in an IPv4 packet: VXLAN, VXLAN-GPE, Geneve, GRE with its parts, GTP-U, MPLS, IP in IP.
Frame in_tunnel(Dice& dice, const Frame& inner);
void put_tag(Frame& frame, std::uint16_t tpid, std::uint16_t tci);
// IPv4 and IPv6: the length of what stands behind the Ethernet header, and the checksum.
void finish_ip(Frame& frame, std::uint8_t protocol);

// Sends the frame by that link's SQ as one of the operations that there are: inline, cut into segments,
// several in one WQE, with a tag.
void send_somehow(EthLink& link, const Frame& frame, Dice& dice);
// Queues that are in error are started again.
void revive(EthLink& link);

}  // namespace hcasim::bare
#endif
