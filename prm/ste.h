// SPDX-License-Identifier: BSD-3-Clause
/// Steering table entries (STE) of steering format version 0, ConnectX-4 to 6, as software steering writes
/// them into context memory: 32 bytes of control, a 16-byte tag, a 16-byte mask. Public sources of the
/// layouts: rdma-core's libmlx5 and Linux's mlx5 core (software steering).
#pragma once

#include "prm/field.h"

namespace hcasim::prm {

constexpr unsigned kSteBytes = 64, kSteTag = 32, kSteMask = 48, kSteTagBytes = 16;
constexpr unsigned kSteAddressBits = 40;  ///< of device memory; the bits above are the function's number

enum class SteType : uint8_t { kTx = 1, kRx = 2, kModify = 6 };

/// Fields of all entries. The next table's base and its size share a field: bits 34:0 of (base >> 5 |
/// entries); tables are aligned to their size, so the lowest bit that is set is the number of entries.
struct Ste {
  using entry_type = Field<0, 4>;
  using lookup_type = Field<8, 8>;  ///< meaning of this entry's tag
  using byte_mask = Field<16, 16>;  ///< of the next table's hash, bit 15: tag byte 0
  using next_gvmi = Field<32, 16>;
  using next_lookup_type = Field<48, 8>;  ///< of the next table's hash
  using next_base_39_32 = Field<56, 8>;
  using next_base_31_5 = Field<64, 27>;
  using gvmi = Field<112, 16>;
  using counter_15_0 = Field<176, 16>;
  using miss_gvmi = Field<192, 16>;
  using counter_23_16 = Field<208, 8>;
  using miss_39_32 = Field<216, 8>;
  using miss_31_6 = Field<224, 26>;
};

struct SteTx : Ste {
  using action_type = Field<102, 3>;
  using action_description = Field<106, 6>;  ///< encapsulation: header bytes / 2
  using encap_vlan = Field<128, 32>;         ///< reformat id, or TPID and TCI

  enum Action : uint8_t { kNone = 0, kPushVlan = 1, kEncapL3 = 3, kEncap = 4 };
};

struct SteRx : Ste {
  using flow_tag_en = Field<128, 1>;
  using flow_tag = Field<136, 24>;
  using tunneling_action = Field<161, 3>;
  using action_description = Field<164, 4>;  ///< L3 decapsulation: 1 with a VLAN tag

  enum Tunneling : uint8_t { kNone = 0, kEnable = 1, kDecap = 2, kL3Decap = 3, kPopVlan = 4 };
};

/// Instead of the flow tag: rewriting. tunneling_action as in SteRx.
struct SteModify : Ste {
  using action_count = Field<96, 16>;
  using action_pointer = Field<128, 32>;  ///< in 64-byte lines from the start of the header-modify memory
  using tunneling_action = SteRx::tunneling_action;
};

/// One rewriting action, 8 bytes. A field code names 64 bits of headers or registers; bits count from its
/// least significant one.
struct SteAction {
  using opcode = Field<0, 8>;
  using field = Field<8, 8>;
  using shift = Field<18, 6>;
  using length = Field<27, 5>;       ///< set, add: bits, 0 is 32
  using copy_length = Field<26, 6>;  ///< copy: bits
  using data = Field<32, 32>;
  using source_field = Field<40, 8>;
  using source_shift = Field<50, 6>;

  enum Op : uint8_t { kCopy = 1, kSet = 2, kAdd = 3 };
  static constexpr unsigned bytes = 8;
};

enum class SteField : uint8_t {
  kL2Dmac = 0x00,
  kL2Smac = 0x01,
  kL2Type = 0x02,       ///< 15:0 TCI, 47:32 ethertype, 49:48 VLAN qualifier
  kL3Addresses = 0x03,  ///< IPv4: 31:0 source, 63:32 destination; IPv6: destination 127:64
  kL3Class = 0x04,      ///< 5:0 DSCP, 7:6 ECN, 15:8 TTL or hop limit
  kL3Dst63 = 0x05,      ///< IPv6 destination 63:0
  kL3Src127 = 0x06,
  kL3Src63 = 0x07,
  kL4Ports = 0x08,     ///< 15:0 source, 31:16 destination, 56:48 TCP flags
  kL4Numbers = 0x09,   ///< TCP: 63:32 sequence number, 31:0 acknowledged one
  kRegisters0 = 0x0c,  ///< 63:32 C0, 31:0 C1; the next three likewise
  kRegisters3 = 0x0f,
  kMetadata = 0x16,  ///< 31:0 A, 63:32 B
};

enum class SteLookup : uint8_t {
  kNop = 0x00,
  kSrcGvmiQp = 0x05,
  kL2DstO = 0x06,
  kL2DstI = 0x07,
  kL2SrcO = 0x08,
  kL2SrcI = 0x09,
  kL2TunnelingI = 0x0a,
  kIpv6DstO = 0x0d,
  kIpv6DstI = 0x0e,
  kIpv6SrcO = 0x0f,  ///< also of entries that match anything: their masks are 0
  kIpv6SrcI = 0x10,
  kIpv4TupleO = 0x11,
  kIpv4TupleI = 0x12,
  kL4O = 0x13,
  kL4I = 0x14,
  kMplsO = 0x15,
  kGre = 0x16,
  kGeneralPurpose = 0x18,
  kFlexTunnelHeader = 0x19,
  kL2DstD = 0x1b,  ///< D: outer headers on receive
  kL2SrcD = 0x1c,
  kIpv6DstD = 0x1e,
  kIpv6SrcD = 0x1f,
  kIpv4TupleD = 0x20,
  kL4D = 0x21,
  kFlexParser0 = 0x22,
  kFlexParser1 = 0x23,
  kMplsI = 0x24,
  kMplsD = 0x25,
  kIpv4MiscO = 0x29,
  kIpv4MiscI = 0x2a,
  kIpv4MiscD = 0x2b,
  kL4MiscO = 0x2c,
  kL4MiscI = 0x2d,
  kL4MiscD = 0x2e,
  kRegisters0 = 0x2f,
  kRegisters1 = 0x30,
  kTunnelHeader = 0x34,
  kL2SrcDstO = 0x36,
  kL2SrcDstI = 0x37,
  kL2SrcDstD = 0x38,
};

/// Tags. L2 source or destination: that MAC address, its low half, the ethertype, then 64 common bits.
struct SteL2 {
  using mac_47_16 = Field<0, 32>;
  using mac_15_0 = Field<32, 16>;
  using ethertype = Field<48, 16>;
  using functional_lb = Field<70, 1>;
  using first_prio = Field<76, 3>;
  using first_cfi = Field<79, 1>;
  using first_vlan = Field<80, 2>;  ///< qualifier, SteVlan
  using first_vid = Field<84, 12>;
  using fragmented = Field<96, 1>;
  using tcp_syn = Field<97, 1>;
  using l3_type = Field<100, 2>;  ///< SteL3
  using l4_type = Field<102, 2>;  ///< SteL4Type
  using second_prio = Field<108, 3>;
  using second_cfi = Field<111, 1>;
  using second_vlan = Field<112, 2>;
  using second_vid = Field<116, 12>;
};
enum class SteVlan : uint8_t { kNone = 0, kSvlan = 1, kCvlan = 2 };
enum class SteL3 : uint8_t { kOther = 0, kIpv4 = 1, kIpv6 = 2 };
enum class SteL4Type : uint8_t { kOther = 0, kTcp = 1, kUdp = 2, kEsp = 3 };

struct SteL2SrcDst {
  using dmac_47_16 = Field<0, 32>;
  using dmac_15_0 = Field<32, 16>;
  using smac_47_32 = Field<48, 16>;
  using smac_31_0 = Field<64, 32>;
  using functional_lb = Field<98, 1>;
  using l3_type = Field<100, 2>;
  using first_prio = Field<108, 3>;
  using first_cfi = Field<111, 1>;
  using first_vlan = Field<112, 2>;
  using first_vid = Field<116, 12>;
};

struct SteL2Tunneling {
  using dmac_47_16 = Field<0, 32>;
  using dmac_15_0 = Field<32, 16>;
  using ethertype = Field<48, 16>;
  using network_id = Field<64, 32>;  ///< VNI << 8
  using fragmented = Field<96, 1>;
  using tcp_syn = Field<97, 1>;
  using l3_type = Field<100, 2>;
  using l4_type = Field<102, 2>;
  using first_prio = Field<104, 3>;
  using first_cfi = Field<107, 1>;
  using gre_key_flag = Field<111, 1>;
  using first_vlan = Field<112, 2>;
  using first_vid = Field<116, 12>;
};

struct SteIpv4Tuple {
  using destination = Field<0, 32>;
  using source = Field<32, 32>;
  using source_port = Field<64, 16>;
  using destination_port = Field<80, 16>;
  using fragmented = Field<96, 1>;
  using first_fragment = Field<97, 1>;
  using ecn = Field<101, 2>;
  using tcp_flags = Field<103, 9>;
  using dscp = Field<112, 6>;
  using protocol = Field<120, 8>;
};

struct SteL4 {
  using fragmented = Field<0, 1>;
  using first_fragment = Field<1, 1>;
  using protocol = Field<8, 8>;
  using destination_port = Field<16, 16>;
  using ipv6_version = Field<32, 4>;
  using ecn = Field<37, 2>;
  using tcp_flags = Field<39, 9>;
  using source_port = Field<48, 16>;
  using ipv6_payload = Field<64, 16>;
  using hop_limit = Field<80, 8>;
  using dscp = Field<88, 6>;
  using tcp_data_offset = Field<96, 4>;
  using flow_label = Field<108, 20>;
};

struct SteL4Misc {
  using checksum = Field<0, 16>;
  using length = Field<16, 16>;
  using sequence = Field<32, 32>;
  using acknowledged = Field<64, 32>;
  using urgent = Field<96, 16>;
  using window = Field<112, 16>;
};

struct SteSourceTag {
  using source_gvmi = Field<16, 16>;
  using functional_lb = Field<38, 1>;
  using source_qp = Field<40, 24>;
};

static_assert(Ste::miss_31_6::end <= kSteTag && SteModify::action_pointer::end <= kSteTag);
static_assert(SteAction::source_shift::end <= SteAction::bytes && SteAction::data::end == SteAction::bytes);
static_assert(SteL2::second_vid::end == kSteTagBytes && SteL2SrcDst::first_vid::end == kSteTagBytes &&
              SteL2Tunneling::first_vid::end == kSteTagBytes && SteIpv4Tuple::protocol::end == kSteTagBytes &&
              SteL4::flow_label::end == kSteTagBytes && SteL4Misc::window::end == kSteTagBytes);

}  // namespace hcasim::prm
