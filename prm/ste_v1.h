// SPDX-License-Identifier: BSD-3-Clause
/// Steering table entries (STE) of steering format versions 1 and 2, ConnectX-6 Dx and 7, as software
/// steering writes them into context memory. An entry is 64 bytes. With a mask of its own: 24 bytes of
/// control, 8 of actions, a 16-byte mask, a 16-byte tag. Without (match): 20 bytes of control, 12 of actions,
/// a 32-byte tag in the layout of a match definer. Public sources of the layouts: rdma-core's libmlx5 and
/// Linux's mlx5 core (software steering).
#pragma once

#include "prm/field.h"

namespace hcasim::prm {

constexpr unsigned kSteV1Mask = 32, kSteV1Tag = 48, kSteV1MatchTag = 32, kSteV1MatchTagBytes = 32;

enum class SteFormatV1 : uint8_t { kByte = 0, kDword = 1, kLongByte = 2, kLongDword = 3, kMatch = 4 };

/// The entry's definer and format together name what its tag is: of formats with a mask the bits 15:8 of
/// SteV1Lookup are the format, less 2 of the long ones; of a match, the definer is an object. The next
/// table's base and its size share a field as in format version 0; all ones: there is none, what fits goes on
/// like what does not.
struct SteV1 {
  using format = Field<0, 8>;
  using counter = Field<8, 24>;
  using definer = Field<48, 8>;
  using miss_39_32 = Field<56, 8>;
  using miss_31_6 = Field<64, 26>;
  using match_polarity = Field<91, 1>;
  using reparse = Field<92, 1>;
  using hash_definer = Field<112, 8>;  ///< of the next table's hash
  using next_base_39_32 = Field<120, 8>;
  using next_base_31_5 = Field<128, 27>;
  /// Of short entries alone; the actions of long ones and of a match begin here.
  using byte_mask = Field<160, 16>;   ///< of the next table's hash, bit 15: tag byte 0
  using next_format = Field<176, 1>;  ///< of the next table's hash: 0 byte, 1 double word

  static constexpr unsigned kActions = 24, kActionBytes = 8, kLongActions = 20, kLongActionBytes = 12;
  static constexpr unsigned kAnyDefiner = 0x0f;  ///< of a match: takes every frame
};

/// Actions: one or two double words each, one behind the other; in rewriting lists each takes 8 bytes.
struct SteV1Action {
  using id = Field<0, 8>;

  enum Id : uint8_t {
    kNop = 0x00,
    kCopy = 0x05,
    kSet = 0x06,
    kAdd = 0x07,
    kRemoveBySize = 0x08,
    kRemoveHeaders = 0x09,
    kInsertInline = 0x0a,
    kInsertPointer = 0x0b,
    kFlowTag = 0x0c,
    kAcceleratedList = 0x0e,
    kModifyList = 0x0f,
    kAso = 0x12,
  };
  static constexpr unsigned kSingle = 4, kDouble = 8;

  using flow_tag = Field<8, 24>;
  using list_count = Field<8, 8>;      ///< modify list
  using list_pointer = Field<16, 16>;  ///< in 64-byte lines from the start of the header-modify memory
  /// Accelerated list: a pattern, in 64-byte lines from the start of the patterns' memory, and the number of
  /// the arguments, 8 bytes for each action, that are added to it by OR.
  using pattern_pointer = Field<8, 24>;
  using pattern_count = Field<32, 8>;
  using argument_pointer = Field<40, 24>;
  using start_anchor = Field<10, 6>;  ///< SteV1Anchor; remove, insert
  using end_anchor = Field<18, 6>;    ///< remove headers: up to there
  using decap = Field<28, 1>;
  using remove_offset = Field<18, 7>;  ///< remove by size: words of 2 bytes behind the anchor
  using remove_size = Field<26, 6>;    ///< words
  using insert_offset = Field<16, 7>;  ///< words behind the anchor
  using insert_size = Field<23, 6>;    ///< by pointer: words, modulo 64
  using attributes = Field<29, 3>;     ///< by pointer: 1 a tunnel's headers
  using data = Field<32, 32>;          ///< inserted inline; pointer: reformat id; set, add: the value
  using field = Field<8, 8>;           ///< set, add, copy: a double word
  /// From the lowest bit of the 64 that the double word is the upper half of.
  using shift = Field<18, 6>;
  using length = Field<26, 6>;  ///< bits
  using source_field = Field<40, 8>;
  using source_shift = Field<50, 6>;
  /// ASO: a meter among others.
  using aso_object = Field<8, 24>;
  using aso_register = Field<32, 2>;  ///< which pair of registers C
  using aso_type = Field<36, 4>;
  using meter_color = Field<61, 2>;
  using meter_line = Field<63, 1>;
  static constexpr unsigned kInsertTunnel = 1, kAsoMeter = 2;
};

enum class SteV1Anchor : uint8_t {
  kStart = 0x00,
  kMac = 0x01,
  kFirstVlan = 0x02,
  kIp = 0x07,
  kTcpUdp = 0x09,
  kInnerMac = 0x13,
  kInnerIp = 0x19,
};

/// Double words that rewriting actions name. Registers C: format version 2 has them elsewhere.
enum class SteV1Field : uint8_t {
  kDmac = 0x00,     ///< 47:16
  kL2Type = 0x01,   ///< 31:16 DMAC 15:0, 15:0 ethertype
  kVlan = 0x02,     ///< 15:0 TCI
  kSmac = 0x08,     ///< 47:16
  kSmacLow = 0x09,  ///< 31:16 SMAC 15:0
  kL3 = 0x0e,       ///< 23:18 DSCP, 17:16 ECN, 15:8 TTL or hop limit
  kL4Ports = 0x18,  ///< 31:16 source, 15:0 destination
  kL4Flags = 0x19,  ///< 24:16 TCP's flags
  kIpv4Source = 0x40,
  kIpv4Destination = 0x41,
  kIpv6Destination = 0x44,  ///< 127:96, then the others
  kIpv6Source = 0x4c,
  kTcpSequence = 0x5e,
  kTcpAcknowledged = 0x5f,
  kRegisterB = 0x7b,
  kRegisterA = 0x7c,
  kRegistersC4 = 0x8c,    ///< C4, C5, C2, C3, C0, C1
  kRegistersC4V2 = 0x90,  ///< likewise
};

enum class SteV1Lookup : uint16_t {
  kNop = 0x0000,
  kL2Tunnel = 0x0002,
  kL2DstO = 0x0003,
  kL2DstI = 0x0004,
  kL2SrcO = 0x0005,
  kL2SrcI = 0x0006,
  kIpv4TupleO = 0x0007,
  kIpv4TupleI = 0x0008,
  kL4O = 0x0009,
  kL4I = 0x000a,
  kL2SrcDstO = 0x000b,
  kL2SrcDstI = 0x000c,
  kIpv4MiscO = 0x000d,
  kFlexTunnelHeader = 0x000e,
  kIpv4MiscI = 0x000f,  ///< also of entries that match anything: their masks are 0
  kFlexOk = 0x0011,
  kIbL4 = 0x0103,
  kSrcGvmiQp = 0x0104,
  kIpv6DstO = 0x0107,
  kIpv6DstI = 0x0108,
  kIpv6SrcO = 0x0109,
  kIpv6SrcI = 0x010a,
  kMplsO = 0x010b,
  kMplsI = 0x010c,
  kGre = 0x010d,
  kGeneralPurpose = 0x010e,
  kRegisters0 = 0x010f,
  kRegisters1 = 0x0110,
  kFlexParser0 = 0x0111,
  kFlexParser1 = 0x0112,
  kL4MiscO = 0x0113,
  kL4MiscI = 0x0114,
  kTunnelHeader = 0x0117,
};

/// Tags.
struct SteV1L2 {
  using functional_lb = Field<2, 1>;
  using fragmented = Field<3, 1>;
  using l3_type = Field<10, 2>;
  using l4_type = Field<12, 2>;
  using first_vlan = Field<14, 2>;
  using first_prio = Field<16, 3>;
  using first_cfi = Field<19, 1>;
  using first_vid = Field<20, 12>;
  using mac_47_16 = Field<32, 32>;
  using mac_15_0 = Field<64, 16>;
  using ethertype = Field<80, 16>;
  using tcp_syn = Field<102, 1>;
  using second_vlan = Field<110, 2>;
  using second_prio = Field<112, 3>;
  using second_cfi = Field<115, 1>;
  using second_vid = Field<116, 12>;
};

struct SteV1L2SrcDst {
  using dmac_47_16 = Field<0, 32>;
  using smac_47_16 = Field<32, 32>;
  using dmac_15_0 = Field<64, 16>;
  using functional_lb = Field<82, 1>;
  using l3_type = Field<90, 2>;
  using first_vlan = Field<94, 2>;
  using first_prio = Field<96, 3>;
  using first_cfi = Field<99, 1>;
  using first_vid = Field<100, 12>;
  using smac_15_0 = Field<112, 16>;
};

struct SteV1L2Tunnel {
  using network_id = Field<0, 32>;  ///< VNI << 8
  using dmac_47_16 = Field<32, 32>;
  using dmac_15_0 = Field<64, 16>;
  using ethertype = Field<80, 16>;
  using fragmented = Field<99, 1>;
  using l3_type = Field<106, 2>;
  using l4_type = Field<108, 2>;
  using first_vlan = Field<110, 2>;
  using first_prio = Field<112, 3>;
  using first_cfi = Field<115, 1>;
  using first_vid = Field<116, 12>;
};

struct SteV1Ipv4Tuple {
  using source = Field<0, 32>;
  using destination = Field<32, 32>;
  using source_port = Field<64, 16>;
  using destination_port = Field<80, 16>;
  using fragmented = Field<102, 1>;
  using tcp_flags = Field<103, 9>;
  using dscp = Field<112, 6>;
  using ecn = Field<118, 2>;
  using protocol = Field<120, 8>;
};

struct SteV1Ipv4Misc {
  using identification = Field<0, 16>;
  using fragment = Field<16, 16>;  ///< flags and offset
  using total_length = Field<32, 16>;
  using checksum = Field<48, 16>;
  using version = Field<64, 4>;
  using ihl = Field<68, 4>;
  using ttl = Field<72, 8>;
};

struct SteV1L4 {
  using ip_version = Field<0, 4>;
  using dscp = Field<8, 6>;
  using ecn = Field<14, 2>;
  using hop_limit = Field<16, 8>;
  using protocol = Field<24, 8>;
  using source_port = Field<32, 16>;
  using destination_port = Field<48, 16>;
  using first_fragment = Field<64, 1>;
  using flow_label = Field<76, 20>;
  using tcp_data_offset = Field<96, 4>;
  using fragmented = Field<102, 1>;
  using tcp_flags = Field<103, 9>;
  using ipv6_payload = Field<112, 16>;
};

struct SteV1L4Misc {
  using window = Field<0, 16>;
  using urgent = Field<16, 16>;
  using acknowledged = Field<32, 32>;
  using sequence = Field<64, 32>;
  using length = Field<96, 16>;
  using checksum = Field<112, 16>;
};
/// The same of ICMP and ICMPv6.
struct SteV1Icmp {
  using payload = Field<0, 32>;
  using header_data = Field<32, 32>;
  using type = Field<64, 8>;
  using code = Field<72, 8>;
};

struct SteV1SourceTag {
  using functional_lb = Field<15, 1>;
  using source_gvmi = Field<16, 16>;
  using source_qp = Field<40, 24>;
};

struct SteV1IbL4 {
  using opcode = Field<0, 8>;
  using qp = Field<8, 24>;
  using solicited = Field<32, 1>;
  using migrated = Field<33, 1>;
  using ack_request = Field<34, 1>;
  using fecn = Field<35, 1>;
  using becn = Field<36, 1>;
  using bth = Field<37, 1>;
  using pad = Field<42, 2>;
  using version = Field<44, 4>;
  using pkey = Field<48, 16>;
};

struct SteV1FlexOk {
  using ok = Field<64, 8>;  ///< a bit for each flex parser
};

static_assert(SteV1::next_format::end <= SteV1::kActions &&
              SteV1::next_base_31_5::end <= SteV1::kLongActions);
static_assert(SteV1::kActions + SteV1::kActionBytes == kSteV1Mask &&
              SteV1::kLongActions + SteV1::kLongActionBytes == kSteV1MatchTag);

}  // namespace hcasim::prm
