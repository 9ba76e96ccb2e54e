// SPDX-License-Identifier: BSD-3-Clause
// Management datagrams that the firmware answers itself (IBTA vol. 1: 13.4 MADs, 14.2 SMPs, 16.1 performance
// management). All fields big-endian, as on the wire.
#ifndef HCASIM_FIRMWARE_STUB_MAD_FORMATS_H
#define HCASIM_FIRMWARE_STUB_MAD_FORMATS_H

#include <cstdint>
#include <cstring>

#include "prm/be.h"

namespace hcasim::fw {

using prm::be16;
using prm::be32;
using prm::be64;

constexpr std::size_t kMadBytes = 256;

// A copy of the structure at `p`, which need not be aligned.
template <class T>
T load(const std::uint8_t* p) {
  T v;
  std::memcpy(static_cast<void*>(&v), p, sizeof v);
  return v;
}

enum : std::uint8_t { kClassSubnLid = 0x01, kClassPerf = 0x04, kClassSubnDirected = 0x81 };
enum : std::uint8_t {
  kMethodGet = 0x01,
  kMethodSet = 0x02,
  kMethodTrap = 0x05,
  kMethodTrapRepress = 0x07,
  kMethodResponse = 0x80,
  kMethodGetResp = 0x81
};
// Common status field (IBTA table 109)
enum : std::uint16_t {
  kMadOk = 0,
  kMadBadClass = 1 << 2,
  kMadBadMethod = 2 << 2,
  kMadBadAttribute = 3 << 2,
  kMadBadField = 7 << 2,
};
// Attributes
enum : std::uint16_t {
  kAttrClassPortInfo = 0x0001,
  kAttrNotice = 0x0002,
  kAttrNodeDescription = 0x0010,
  kAttrNodeInfo = 0x0011,
  kAttrPortCounters = 0x0012,  // of the performance class
  kAttrGuidInfo = 0x0014,
  kAttrPortInfo = 0x0015,
  kAttrPkeyTable = 0x0016,
  kAttrSlToVl = 0x0017,
  kAttrVlArbitration = 0x0018,
  kAttrPortCountersExt = 0x001d,
  kAttrMlnxExtPortInfo = 0xff90,
};

struct MadHeader {
  std::uint8_t base_version, mgmt_class, class_version, method;
  be16 status, class_specific;
  be64 tid;
  be16 attr_id, rsvd;
  be32 attr_mod;
};
static_assert(sizeof(MadHeader) == 24);
constexpr std::size_t kMadKey = 24;   // M_Key of an SMP
constexpr std::size_t kMadData = 64;  // where attribute data start, in both classes

struct NodeInfo {
  std::uint8_t base_version, class_version, node_type, num_ports;
  be64 system_image_guid, node_guid, port_guid;
  be16 partition_cap, device_id;
  be32 revision;
  std::uint8_t local_port;
  std::uint8_t vendor_id[3];
  static constexpr std::uint8_t kChannelAdapter = 1;
};
static_assert(sizeof(NodeInfo) == 40);

struct PortInfo {
  be64 m_key, gid_prefix;
  be16 lid, master_sm_lid;
  be32 capability_mask;
  be16 diag_code, m_key_lease;
  std::uint8_t local_port;
  std::uint8_t width_enabled, width_supported, width_active;  // 1: 1X, 2: 4X, 4: 8X, 8: 12X, 16: 2X
  std::uint8_t speed_supported_state;                         // LinkSpeedSupported 7:4, PortState 3:0
  std::uint8_t physical_state_default;  // PortPhysicalState 7:4, LinkDownDefaultState 3:0
  std::uint8_t m_key_protect_lmc;       // 7:6, LMC 2:0
  std::uint8_t speed_active_enabled;
  std::uint8_t neighbor_mtu_sm_sl;  // 7:4, MasterSMSL 3:0
  std::uint8_t vl_cap_init_type;    // 7:4, 3:0
  std::uint8_t vl_high_limit, vl_arb_high_cap, vl_arb_low_cap;
  std::uint8_t init_reply_mtu_cap;  // 7:4, MTUCap 3:0
  std::uint8_t vl_stall_hoq_life;
  std::uint8_t operational_vls;  // 7:4
  be16 m_key_violations, p_key_violations, q_key_violations;
  std::uint8_t guid_cap;
  std::uint8_t rereg_subnet_timeout;  // ClientReregister 7, SubnetTimeOut 4:0
  std::uint8_t resp_time;
  std::uint8_t error_thresholds;
  be16 max_credit_hint;
  std::uint8_t rsvd;
  std::uint8_t round_trip_latency[3];
  be16 capability_mask2;
  std::uint8_t ext_speed_active_supported;  // 7:4, 3:0; 1: FDR, 2: EDR, 4: HDR
  std::uint8_t ext_speed_enabled;           // 4:0
};
static_assert(sizeof(PortInfo) == 64);

struct ClassPortInfo {
  std::uint8_t base_version, class_version;
  be16 capability_mask;
  be32 resp_time;
  std::uint8_t rest[64];
  static constexpr std::uint16_t kExtendedCounters = 1 << 9, kXmitWait = 1 << 12;  // performance
  // Subnet administration: multicast groups for UD; of CapabilityMask2, which lies above the response time
  static constexpr std::uint16_t kSaMulticast = 1 << 9;
  static constexpr std::uint32_t kSaSendOnlyFullMember = 1u << 12;
  static constexpr unsigned kMask2Shift = 5;
};
static_assert(sizeof(ClassPortInfo) == 72);

struct PortCountersMad {
  std::uint8_t rsvd0, port_select;
  be16 counter_select, symbol_errors;
  std::uint8_t link_error_recovery, link_downed;
  be16 rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors, xmit_discards;
  std::uint8_t xmit_constraint_errors, rcv_constraint_errors, counter_select2, link_overrun_errors;
  be16 rsvd2, vl15_dropped;
  be32 xmit_data, rcv_data, xmit_packets, rcv_packets, xmit_wait;  // data in units of 4 bytes

  enum : std::uint16_t {  // counter_select
    kSymbolErrors = 1 << 0,
    kLinkDowned = 1 << 2,
    kRcvErrors = 1 << 3,
    kXmitDiscards = 1 << 6,
    kXmitData = 1 << 12,
    kRcvData = 1 << 13,
    kXmitPackets = 1 << 14,
    kRcvPackets = 1 << 15,
  };
  static constexpr std::uint8_t kXmitWait = 1;  // counter_select2
};
static_assert(sizeof(PortCountersMad) == 44);

struct PortCountersExtMad {
  std::uint8_t rsvd0, port_select;
  be16 counter_select;
  be32 rsvd1;
  be64 xmit_data, rcv_data, xmit_packets, rcv_packets;
  be64 unicast_xmit, unicast_rcv, multicast_xmit, multicast_rcv;

  enum : std::uint16_t {  // counter_select
    kXmitData = 1 << 0,
    kRcvData = 1 << 1,
    kXmitPackets = 1 << 2,
    kRcvPackets = 1 << 3,
    kUnicastXmit = 1 << 4,
    kUnicastRcv = 1 << 5,
    kMulticastXmit = 1 << 6,
    kMulticastRcv = 1 << 7,
  };
};
static_assert(sizeof(PortCountersExtMad) == 72);

// Notice with the data of trap 144
#pragma pack(push, 1)
struct LocalChangeNotice {
  std::uint8_t type, producer[3];
  be16 number, issuer_lid, toggle_count;
  be16 rsvd0, lid;
  std::uint8_t rsvd1, local_changes;  // bit 0: `changes` tells more than the mask
  be32 capability_mask;
  be16 changes, capability_mask2;

  static constexpr std::uint8_t kGeneric = 0x80, kInformational = 4;
  static constexpr std::uint16_t kDescription = 1;
};
#pragma pack(pop)
static_assert(sizeof(LocalChangeNotice) == 24);

// Notice with the data of trap 256
#pragma pack(push, 1)
struct WrongKeyNotice {
  std::uint8_t type, producer[3];
  be16 number, issuer_lid, toggle_count;
  be16 rsvd0, lid, dr_slid;
  std::uint8_t method, rsvd1;
  be16 attr_id;
  be32 attr_mod;
  be64 m_key;
  std::uint8_t rsvd2, dr_hops;  // bit 7: by directed route; 6: the path is cut off; 5:0, hops
  std::uint8_t dr_return_path[30];

  static constexpr std::uint8_t kGeneric = 0x80, kSecurity = 2;
  static constexpr std::uint8_t kDirected = 0x80, kCut = 0x40;
};
#pragma pack(pop)
static_assert(sizeof(WrongKeyNotice) == 64);

// MTU codes: 1 is 256 bytes, 5 is 4096.
inline std::uint8_t mtu_code(unsigned bytes) {
  std::uint8_t code = 1;
  for (unsigned mtu = 256; mtu < bytes && code < 5; mtu *= 2) ++code;
  return code;
}
inline unsigned mtu_of_code(unsigned code) { return code >= 1 && code <= 5 ? 128u << code : 0; }

}  // namespace hcasim::fw
#endif
