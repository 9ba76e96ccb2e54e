// SPDX-License-Identifier: BSD-3-Clause
// Subnet administration MADs (IBTA vol. 1: 13.6 RMPP, 15.2). All fields big-endian, as on the wire.
#ifndef HCASIM_FIRMWARE_STUB_SA_FORMATS_H
#define HCASIM_FIRMWARE_STUB_SA_FORMATS_H

#include "firmware-stub/mad_formats.h"
#include "model/port/port.h"

namespace hcasim::fw {

enum : std::uint8_t { kClassSubnAdm = 0x03 };
constexpr std::uint8_t kSaClassVersion = 2;
enum : std::uint8_t {
  kMethodGetTable = 0x12,
  kMethodGetTableResp = 0x92,
  kMethodDelete = 0x15,
  kMethodDeleteResp = 0x95,
};
// Class-specific part of the status (table 188)
enum : std::uint16_t {
  kSaNoResources = 1 << 8,
  kSaInvalid = 2 << 8,
  kSaNoRecords = 3 << 8,
  kSaTooManyRecords = 4 << 8,
  kSaInvalidGid = 5 << 8,
  kSaInsufficientComponents = 6 << 8,
};
enum : std::uint16_t { kAttrPathRecord = 0x0035, kAttrMcMemberRecord = 0x0038 };

struct SaHeader {
  MadHeader mad;
  // RMPP
  std::uint8_t rmpp_version, rmpp_type, rmpp_flags, rmpp_status;  // flags: response time 7:3, 2:0 below
  be32 segment, payload_or_window;                                // of DATA and ACK
  // SA
  be64 sm_key;
  be16 attribute_offset, rsvd;  // of the records in an answer, units of 8 bytes
  be64 component_mask;

  static constexpr std::uint8_t kActive = 1, kFirst = 2, kLast = 4;
  static constexpr std::uint8_t kData = 1, kAck = 2, kStop = 3, kAbort = 4;
};
static_assert(sizeof(SaHeader) == 56);
constexpr std::size_t kSaHead = 20;  // bytes of the SA's own header, which count as payload
constexpr std::size_t kSaData = kMadBytes - sizeof(SaHeader);

struct PathRecord {
  be64 service_id;
  std::uint8_t dgid[16], sgid[16];
  be16 dlid, slid;
  be32 flow_hop;  // raw traffic 31, flow label 27:8, hop limit 7:0
  std::uint8_t tclass;
  std::uint8_t reversible_count;  // 7, paths wanted 6:0
  be16 pkey;
  be16 qos_sl;                   // 15:4, 3:0
  std::uint8_t mtu, rate, life;  // selector 7:6, value 5:0
  std::uint8_t preference, rsvd[6];

  enum : std::uint64_t {  // component mask
    kDgid = 1 << 2,
    kSgid = 1 << 3,
    kDlid = 1 << 4,
    kSlid = 1 << 5,
    kPkey = 1 << 13,
    kSl = 1 << 15,
    kMtuSelector = 1 << 16,
    kMtu = 1 << 17,
    kRateSelector = 1 << 18,
    kRate = 1 << 19,
    kLifeSelector = 1 << 20,
    kLife = 1 << 21,
  };
};
static_assert(sizeof(PathRecord) == 64);

struct McMemberRecord {
  std::uint8_t mgid[16], port_gid[16];
  be32 qkey;
  be16 mlid;
  std::uint8_t mtu, tclass;
  be16 pkey;
  std::uint8_t rate, life;  // mtu, rate, life: selector 7:6, value 5:0
  be32 sl_flow_hop;         // 31:28, 27:8, 7:0
  std::uint8_t scope_join;  // 7:4, 3:0
  std::uint8_t proxy, rsvd[2];

  enum : std::uint64_t {  // component mask
    kMgid = 1 << 0,
    kPortGid = 1 << 1,
    kQkey = 1 << 2,
    kMlid = 1 << 3,
    kMtuSelector = 1 << 4,
    kMtu = 1 << 5,
    kTclass = 1 << 6,
    kPkey = 1 << 7,
    kRateSelector = 1 << 8,
    kRate = 1 << 9,
    kLifeSelector = 1 << 10,
    kLife = 1 << 11,
    kSl = 1 << 12,
    kFlow = 1 << 13,
    kHop = 1 << 14,
    kScope = 1 << 15,
    kJoinState = 1 << 16,
  };
  enum : std::uint8_t { kFull = 1, kNon = 2, kSendOnlyNon = 4, kSendOnlyFull = 8 };
};
static_assert(sizeof(McMemberRecord) == 52);

// Selectors of MTU, rate and life time
enum : unsigned { kGreater = 0, kLess = 1, kExactly = 2, kLargest = 3 };

}  // namespace hcasim::fw
#endif
