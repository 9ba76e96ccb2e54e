// SPDX-License-Identifier: BSD-3-Clause
// What a frame's headers say, found once for a frame: the match engine, RSS, checksums and segmentation all
// work on it. IEEE 802.3 and 802.1Q, RFC 791, 8200, 9293, 768, 7348 (VXLAN), 2784 and 2890 (GRE), 8926
// (Geneve), draft-ietf-nvo3-vxlan-gpe, 3032 and 7510 (MPLS), 3GPP TS 29.281 (GTP-U), IBTA A16 and A17 (RoCE).
#ifndef HCASIM_MODEL_ETH_HEADERS_H
#define HCASIM_MODEL_ETH_HEADERS_H

#include <cstdint>

namespace hcasim {

class VxlanPorts;

// Offsets count bytes from the start of the frame.
struct IpHeaders {
  std::uint8_t version = 0;   // 4, 6; 0: no (whole) IP header here, the rest has no meaning
  bool fragment = false;      // any fragment, the first one too
  bool options = false;       // IPv4 options or IPv6 extension headers
  std::uint8_t protocol = 0;  // behind extension headers
  std::uint16_t l3 = 0;       // the IP header
  std::uint16_t l4 = 0;       // what follows it and its extensions; at most end
  std::uint16_t end = 0;      // end of the IP packet (of the frame, if that ends first); padding follows
  // The L4 header is whole and no fragment's: its ports may be read.
  bool tcp = false, udp = false;
  bool icmp = false;  // ICMP or ICMPv6, of the IP version: its first eight bytes are there
};

enum class Tunnel : std::uint8_t { kNone, kIpInIp, kGre, kVxlan, kVxlanGpe, kGeneve, kGtpu, kMpls };

struct FrameHeaders {
  std::uint16_t len = 0;  // bytes of the frame, without FCS
  std::uint8_t tags = 0;  // VLAN tags, two at most looked at
  std::uint16_t tpid[2] = {}, tci[2] = {};
  std::uint16_t ethertype = 0;  // behind the tags
  std::uint16_t payload = 0;    // offset of what it names
  std::uint16_t mpls = 0;       // its first label, if it is MPLS; what is behind the last is in `outer`
  IpHeaders outer;
  std::uint16_t bth = 0;  // RoCE's base transport header; 0: none
  // A tunnel is looked into when the outer headers are no fragment's.
  Tunnel tunnel = Tunnel::kNone;
  std::uint16_t tunnel_at = 0;  // its header, whole
  std::uint32_t vni = 0;        // VXLAN, VXLAN-GPE, Geneve
  std::uint16_t gre_protocol = 0;
  bool gre_checksum = false, gre_key_present = false, gre_sequence = false;
  std::uint32_t gre_key = 0;
  std::uint16_t inner_l2 = 0;  // inner Ethernet header; 0: none
  std::uint8_t inner_tags = 0;
  std::uint16_t inner_tpid[2] = {}, inner_tci[2] = {};
  std::uint16_t inner_ethertype = 0;
  std::uint16_t tunnel_mpls = 0;  // first label right behind UDP or GRE
  std::uint16_t inner_mpls = 0;   // first label behind the inner Ethernet header
  IpHeaders inner;
};

constexpr std::uint32_t kEthHeader = 14, kVlanTag = 4, kMinFrame = kEthHeader;
constexpr std::uint16_t kTpidCvlan = 0x8100, kTpidSvlan = 0x88a8;
constexpr std::uint16_t kEthertypeIpv4 = 0x0800, kEthertypeIpv6 = 0x86dd, kEthertypeTeb = 0x6558,
                        kEthertypeMpls = 0x8847, kEthertypeMplsMulticast = 0x8848, kEthertypeRoce = 0x8915,
                        kEthertypeMacsec = 0x88e5;
constexpr std::uint8_t kProtoIpip = 4, kProtoTcp = 6, kProtoUdp = 17, kProtoIpv6 = 41, kProtoFragment = 44,
                       kProtoGre = 47, kProtoEsp = 50, kProtoAh = 51;
constexpr std::uint16_t kEspUdpPort = 4500;

// Where an IP packet ends: where its header says, or with the buffer (headers of a large send, whose lengths
// are yet to be made).
enum class LengthsOf : std::uint8_t { kHeaders, kBuffer };

// len: at most kMaxFrame. Never reads beyond it; a frame shorter than an Ethernet header has len 0 in the
// result, and headers that are cut off or do not fit are not there. vxlan: null for IANA's port alone.
FrameHeaders parse_frame(const std::uint8_t* frame, std::uint32_t len,
                         LengthsOf lengths = LengthsOf::kHeaders, const VxlanPorts* vxlan = nullptr);

// Offset of the bytes that TCP carries; at most ip.end. ip.tcp holds.
std::uint32_t tcp_payload(const std::uint8_t* frame, const IpHeaders& ip);

}  // namespace hcasim
#endif
