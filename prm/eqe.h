// SPDX-License-Identifier: BSD-3-Clause
/// Event queue elements (kernel include/linux/mlx5/device.h mlx5_eqe).
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

/// Eqe::type; bit t of the event bitmask of CREATE_EQ asks for type t.
enum class EqeType : uint8_t {
  kComp = 0x00,
  kPathMig = 0x01,
  kCommEst = 0x02,
  kSqDrained = 0x03,
  kCqError = 0x04,
  kWqCatas = 0x05,
  kPathMigFailed = 0x07,
  kInternalError = 0x08,
  kPortChange = 0x09,
  kCmd = 0x0a,
  kPageRequest = 0x0b,
  kPageFault = 0x0c,
  kNicVportChange = 0x0d,
  kEswFunctionsChanged = 0x0e,
  kVhcaStateChange = 0x0f,
  kWqInvalidReq = 0x10,
  kWqAccess = 0x11,
  kSrqCatas = 0x12,
  kLastWqe = 0x13,
  kSrqLimit = 0x14,
  kGpio = 0x15,
  kPortModule = 0x16,
  kTempWarn = 0x17,
  kXrqError = 0x18,
  kRemoteConfig = 0x19,
  kDbBfCongestion = 0x1a,
  kStall = 0x1b,
  kDctDrained = 0x1c,
  kDctKeyViolation = 0x1d,
  kGeneral = 0x22,
  kMonitorCounter = 0x24,
  kPps = 0x25,
  kDeviceTracer = 0x26,
  kObjectChange = 0x27,
};

constexpr const char* eqe_type_name(EqeType t) {
  switch (t) {
    case EqeType::kComp:
      return "COMP";
    case EqeType::kPathMig:
      return "PATH_MIG";
    case EqeType::kCommEst:
      return "COMM_EST";
    case EqeType::kSqDrained:
      return "SQ_DRAINED";
    case EqeType::kCqError:
      return "CQ_ERROR";
    case EqeType::kWqCatas:
      return "WQ_CATAS";
    case EqeType::kPathMigFailed:
      return "PATH_MIG_FAILED";
    case EqeType::kInternalError:
      return "INTERNAL_ERROR";
    case EqeType::kPortChange:
      return "PORT_CHANGE";
    case EqeType::kCmd:
      return "CMD";
    case EqeType::kPageRequest:
      return "PAGE_REQUEST";
    case EqeType::kPageFault:
      return "PAGE_FAULT";
    case EqeType::kNicVportChange:
      return "NIC_VPORT_CHANGE";
    case EqeType::kEswFunctionsChanged:
      return "ESW_FUNCTIONS_CHANGED";
    case EqeType::kVhcaStateChange:
      return "VHCA_STATE_CHANGE";
    case EqeType::kWqInvalidReq:
      return "WQ_INVALID_REQ";
    case EqeType::kWqAccess:
      return "WQ_ACCESS";
    case EqeType::kSrqCatas:
      return "SRQ_CATAS";
    case EqeType::kLastWqe:
      return "LAST_WQE";
    case EqeType::kSrqLimit:
      return "SRQ_LIMIT";
    case EqeType::kGpio:
      return "GPIO";
    case EqeType::kPortModule:
      return "PORT_MODULE";
    case EqeType::kTempWarn:
      return "TEMP_WARN";
    case EqeType::kXrqError:
      return "XRQ_ERROR";
    case EqeType::kRemoteConfig:
      return "REMOTE_CONFIG";
    case EqeType::kDbBfCongestion:
      return "DB_BF_CONGESTION";
    case EqeType::kStall:
      return "STALL";
    case EqeType::kDctDrained:
      return "DCT_DRAINED";
    case EqeType::kDctKeyViolation:
      return "DCT_KEY_VIOLATION";
    case EqeType::kGeneral:
      return "GENERAL";
    case EqeType::kMonitorCounter:
      return "MONITOR_COUNTER";
    case EqeType::kPps:
      return "PPS";
    case EqeType::kDeviceTracer:
      return "DEVICE_TRACER";
    case EqeType::kObjectChange:
      return "OBJECT_CHANGE";
  }
  return nullptr;
}

/// Eqe::sub_type of kPortChange.
enum : uint8_t {
  kPortDown = 1,
  kPortActive = 4,
  kPortInitialized = 5,
  kPortLid = 6,
  kPortPkey = 7,
  kPortGuid = 8,
  kPortClientRereg = 9,
};

/// Eqe::sub_type of kGeneral.
enum : uint8_t { kGeneralSyncReset = 8 };

/// Eqe::sub_type of kPageFault.
enum : uint8_t { kFaultWqe = 0, kFaultRdma = 1 };

/// EqeQpSrq::type.
enum : uint8_t { kEvQp = 0, kEvRq = 1, kEvSq = 2, kEvDct = 6 };

/// mlx5_eqe_vport_change
struct EqeVportChange {
  uint8_t reserved[2];
  be16 vport;
};

/// mlx5_eqe_vhca_state
struct EqeVhcaState {
  uint8_t reserved[2];
  be16 function_id;
};

/// mlx5_eqe_obj_change
struct EqeObjectChange {
  uint8_t reserved[2];
  be16 type;  ///< of general objects
  be32 number;
};

struct EqeComp {
  be32 rsvd[6];
  be32 cqn;
};
struct EqeQpSrq {
  be32 rsvd1[5];
  uint8_t type;
  uint8_t rsvd2[3];
  be32 number;  ///< QPN, SRQN or DCTN
};
struct EqeCqErr {
  be32 cqn;
  uint8_t rsvd[7];
  uint8_t syndrome;
  static constexpr uint8_t kOverrun = 1, kAccess = 2;
};
struct EqePort {
  uint8_t rsvd[8];
  uint8_t port;  ///< port number 7:4
};
struct EqeCmd {
  be32 vector;  ///< bit n: slot n completed
};
struct EqePageReq {
  be16 flags;  ///< embedded CPU 15, release all 14
  be16 func_id;
  be32 num_pages;  ///< signed; negative: give back
};
struct EqeNicVport {
  uint8_t rsvd[2];
  be16 vport_num;
};
/// kGeneral, sub_type kGeneralSyncReset: progress of a reset that the hosts negotiate.
struct EqeSyncReset {
  uint8_t rsvd[3];
  uint8_t state;  ///< 3:0
  enum : uint8_t { kRequest = 0, kNow = 1, kAbort = 2 };
};
struct EqePortModule {
  uint8_t rsvd1;
  uint8_t module;
  uint8_t rsvd2;
  uint8_t status;  ///< 3:0
  uint8_t rsvd3[2];
  uint8_t error_type;  ///< 3:0, if the status is kError
  enum : uint8_t { kPlugged = 1, kUnplugged = 2, kError = 3, kDisabled = 4 };
};
struct EqeTempWarn {
  be64 sensors_high;  ///< bit mask of sensors
  be64 sensors_low;
};
/// Page faults (ODP), sub_type 0: of a WQE, 1: of a responder's RDMA.
struct EqePageFaultWqe {
  be32 bytes_committed;
  uint8_t rsvd1[2];
  be16 wqe_index;
  uint8_t rsvd2[2];
  be16 packet_length;
  be32 token;
  uint8_t rsvd3[8];
  be32 pftype_wq;
};
struct EqePageFaultRdma {
  be32 bytes_committed;
  be32 rkey;
  uint8_t rsvd1[2];
  be16 packet_length;
  be32 rdma_op_len;
  be64 rdma_va;
  be32 pftype_token;
};

struct Eqe {
  uint8_t rsvd0;
  uint8_t type;  ///< EqeType
  uint8_t rsvd1;
  uint8_t sub_type;
  be32 rsvd2[7];
  union {
    be32 raw[7];
    EqeComp comp;
    EqeQpSrq qp_srq;
    EqeCqErr cq_err;
    EqePort port;
    EqeCmd cmd;
    EqePageReq page_req;
    EqeNicVport nic_vport;
    EqeVhcaState vhca_state;
    EqeObjectChange object_change;
    EqeSyncReset sync_reset;
    EqePortModule port_module;
    EqeTempWarn temp_warn;
    EqePageFaultWqe pf_wqe;
    EqePageFaultRdma pf_rdma;
  } data;
  be16 rsvd3;
  uint8_t signature;
  uint8_t owner;  ///< bit 0: parity of the pass over the ring, 0 in the first
};
static_assert(sizeof(Eqe) == 64 && offsetof(Eqe, data) == 0x20 && offsetof(Eqe, signature) == 0x3e &&
              offsetof(Eqe, owner) == 0x3f);
static_assert(sizeof(EqeComp) == 28 && offsetof(EqeComp, cqn) == 0x18 && offsetof(EqeQpSrq, type) == 0x14 &&
              offsetof(EqeQpSrq, number) == 0x18 && offsetof(EqeCqErr, syndrome) == 0xb &&
              offsetof(EqePort, port) == 8 && sizeof(EqePortModule) == 7 && sizeof(EqeTempWarn) == 16 &&
              sizeof(EqePageFaultWqe) == 28 && sizeof(EqePageFaultRdma) == 28);

/// Store to UAR + 0x40 (arm) or + 0x48 (update the consumer index only).
struct EqDoorbell {
  be32 eqn_ci;  ///< EQN 31:24, consumer index 23:0
  unsigned eqn() const { return eqn_ci >> 24; }
  uint32_t ci() const { return eqn_ci & 0xffffff; }
};
static_assert(sizeof(EqDoorbell) == 4);

}  // namespace hcasim::prm
