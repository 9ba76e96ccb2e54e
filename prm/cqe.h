// SPDX-License-Identifier: BSD-3-Clause
/// Completion queue elements (kernel include/linux/mlx5/device.h mlx5_cqe64, mlx5_err_cqe) and the CQ's
/// doorbell.
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

/// Cqe::op_own bits 7:4.
enum class CqeOp : uint8_t {
  kReq = 0,
  kRespWrImm = 1,
  kRespSend = 2,
  kRespSendImm = 3,
  kRespSendInv = 4,
  kResize = 5,
  kNoPacket = 6,
  kSigErr = 12,
  kReqErr = 13,
  kRespErr = 14,
  kInvalid = 15,  ///< initial contents of a ring, written by the driver
};

constexpr const char* cqe_op_name(CqeOp op) {
  switch (op) {
    case CqeOp::kReq:
      return "REQ";
    case CqeOp::kRespWrImm:
      return "RESP_WR_IMM";
    case CqeOp::kRespSend:
      return "RESP_SEND";
    case CqeOp::kRespSendImm:
      return "RESP_SEND_IMM";
    case CqeOp::kRespSendInv:
      return "RESP_SEND_INV";
    case CqeOp::kResize:
      return "RESIZE";
    case CqeOp::kNoPacket:
      return "NO_PACKET";
    case CqeOp::kSigErr:
      return "SIG_ERR";
    case CqeOp::kReqErr:
      return "REQ_ERR";
    case CqeOp::kRespErr:
      return "RESP_ERR";
    case CqeOp::kInvalid:
      return "INVALID";
  }
  return nullptr;
}

/// ErrCqe::syndrome.
enum class CqeSyndrome : uint8_t {
  kOk = 0,
  kLocalLength = 0x01,
  kLocalQpOp = 0x02,
  kLocalProt = 0x04,
  kWrFlush = 0x05,
  kMwBind = 0x06,
  kBadResp = 0x10,
  kLocalAccess = 0x11,
  kRemoteInvalReq = 0x12,
  kRemoteAccess = 0x13,
  kRemoteOp = 0x14,
  kTransportRetryExc = 0x15,
  kRnrRetryExc = 0x16,
  kRemoteAborted = 0x22,
};

constexpr const char* cqe_syndrome_name(CqeSyndrome s) {
  switch (s) {
    case CqeSyndrome::kOk:
      return "OK";
    case CqeSyndrome::kLocalLength:
      return "LOCAL_LENGTH";
    case CqeSyndrome::kLocalQpOp:
      return "LOCAL_QP_OP";
    case CqeSyndrome::kLocalProt:
      return "LOCAL_PROT";
    case CqeSyndrome::kWrFlush:
      return "WR_FLUSH";
    case CqeSyndrome::kMwBind:
      return "MW_BIND";
    case CqeSyndrome::kBadResp:
      return "BAD_RESP";
    case CqeSyndrome::kLocalAccess:
      return "LOCAL_ACCESS";
    case CqeSyndrome::kRemoteInvalReq:
      return "REMOTE_INVAL_REQ";
    case CqeSyndrome::kRemoteAccess:
      return "REMOTE_ACCESS";
    case CqeSyndrome::kRemoteOp:
      return "REMOTE_OP";
    case CqeSyndrome::kTransportRetryExc:
      return "RETRY_EXC";
    case CqeSyndrome::kRnrRetryExc:
      return "RNR_RETRY_EXC";
    case CqeSyndrome::kRemoteAborted:
      return "REMOTE_ABORTED";
  }
  return nullptr;
}

/// How much message data goes into a CQE: qpc.cs_res, and each half of qpc.cs_req.
enum class InlineScatter : uint8_t { kNone = 0, k32 = 1, k64 = 2 };

/// cqc.mini_cqe_res_format: the contents of a mini CQE besides the byte count.
enum class MiniFormat : uint8_t { kHash = 0, kChecksum = 1, kChecksumStride = 3 };

/// One of the eight in a slot after a title CQE (kernel device.h, mlx5_mini_cqe8).
struct MiniCqe {
  be32 info;  ///< RSS hash; or checksum 31:16, stride index 15:0
  be32 byte_cnt;
  static constexpr unsigned kInSlot = 8;
};
static_assert(sizeof(MiniCqe) == 8);

/// A 64-byte CQE; also the second half of a 128-byte one.
struct Cqe {
  uint8_t tls_outer_l3_tunneled;
  uint8_t rsvd0;
  be16 wqe_id;
  uint8_t merge[8];  ///< LroCqe, SplitCqe
  be32 rss_hash_result;
  uint8_t rss_hash_type;
  uint8_t ml_path;
  uint8_t rsvd18[2];
  be16 check_sum;
  be16 slid;
  be32 flags_rqpn;  ///< source QP 23:0, SL 27:24 (RoCE: L3 type 25:24), GRH 29:28
  uint8_t hds_ip_ext;
  uint8_t l4_l3_hdr_type;
  be16 vlan_info;
  be32 srqn_uidx;  ///< 23:0; LRO: number of segments 31:24
  be32 imm_inval_pkey;
  uint8_t app;     ///< kAppTagMatching
  uint8_t app_op;  ///< TmOp
  be16 app_info;   ///< index in the matching list
  be32 byte_cnt;
  be64 timestamp;     ///< ticks of the internal timer
  be32 sop_drop_qpn;  ///< WQE opcode of a send 31:24, QPN 23:0
  be16 wqe_counter;
  uint8_t signature;
  uint8_t op_own;  ///< opcode 7:4, format 3:2, solicited 1, owner 0

  static constexpr uint8_t kOwner = 1, kSolicited = 2;
  /// op_own 3:2. Inline data occupies the first 32 bytes of the CQE, or the first half of a 128-byte one.
  static constexpr uint8_t kFormatInline32 = 1 << 2, kFormatInline64 = 2 << 2, kFormatCompressed = 3 << 2;
  static constexpr uint32_t kInline32 = 32, kInline64 = 64;  ///< bytes
  static constexpr uint8_t kAppTagMatching = 1;
  static constexpr uint32_t kGrh = 3u << 28;
  static constexpr uint8_t kVlanPresent = 1;    ///< of l4_l3_hdr_type
  static constexpr uint8_t kIpFragment = 0x80;  ///< the same. Source: DPDK's mlx5_prm.h
  static constexpr uint8_t kL2Ok = 1, kL3Ok = 2, kL4Ok = 4;
  CqeOp opcode() const { return static_cast<CqeOp>(op_own >> 4); }
  unsigned format() const { return op_own >> 2 & 3; }
  uint32_t qpn() const { return sop_drop_qpn & 0xffffff; }
  uint8_t send_opcode() const { return static_cast<uint8_t>(sop_drop_qpn >> 24); }
};
static_assert(sizeof(Cqe) == 64 && offsetof(Cqe, rss_hash_result) == 12 && offsetof(Cqe, check_sum) == 20 &&
              offsetof(Cqe, flags_rqpn) == 24 && offsetof(Cqe, hds_ip_ext) == 28 &&
              offsetof(Cqe, vlan_info) == 30 && offsetof(Cqe, srqn_uidx) == 32 &&
              offsetof(Cqe, imm_inval_pkey) == 36 && offsetof(Cqe, app_info) == 42 &&
              offsetof(Cqe, byte_cnt) == 44 && offsetof(Cqe, timestamp) == 48 &&
              offsetof(Cqe, sop_drop_qpn) == 56 && offsetof(Cqe, wqe_counter) == 60 &&
              offsetof(Cqe, op_own) == 63);

/// Cqe::merge of TCP segments that LRO has put together: what the driver writes into the headers of the
/// first. check_sum is that of the data alone.
struct LroCqe {
  uint8_t flags;
  uint8_t min_ttl;
  be16 tcp_win;                            ///< of the last segment, as are
  be32 ack_seq_num;                        ///< the acknowledgement and
  static constexpr uint8_t kPsh = 1 << 6;  ///< this one of flags
};
static_assert(sizeof(LroCqe) == sizeof(Cqe::merge) && offsetof(Cqe, merge) == 4 &&
              offsetof(LroCqe, ack_seq_num) == 4);

/// Cqe::merge of a queue that keeps headers apart from data (SHAMPO).
struct SplitCqe {
  uint8_t flags;
  uint8_t header_size;  ///< bytes; 0: the frame is in one piece
  be16 header_entry_index;
  be32 data_offset;                          ///< bytes from the beginning of the WQE
  static constexpr uint8_t kMatch = 1 << 1;  ///< continues the frame of the CQE before
  static constexpr uint8_t kFlush = 1 << 2;  ///< nothing will continue this one
};
static_assert(sizeof(SplitCqe) == sizeof(Cqe::merge) && offsetof(SplitCqe, data_offset) == 4);

/// Cqe::app_op of a tag-matching SRQ (rdma-core, providers/mlx5/cq.c). Messages, then list operations.
enum class TmOp : uint8_t {
  kConsumed = 1,    ///< matched; its data follow
  kExpected = 2,    ///< the data of a matched message have arrived
  kUnexpected = 3,  ///< in an untagged buffer
  kNoTag = 4,       ///< in an untagged buffer; not a tagged message
  kAppend = 5,
  kRemove = 6,
  kNoop = 7,
  kConsumedSwRndv = 9,  ///< matched, a rendezvous left to software; its headers follow
  kConsumedMsg = 10,    ///< matched, with its data
  kConsumedMsgSwRndv = 11,
  kCanceled = 12,  ///< matched, but the data will not come
};

/// First bytes of the CQE of a list operation.
struct TmCqe {
  be32 success;
  be16 hw_phase_cnt;
  static constexpr uint32_t kSuccess = 1u << 31;
};

/// Header of tagged messages, and what follows it in a rendezvous request (rdma-core, libibverbs/tm_types.h).
struct Tmh {
  uint8_t opcode;  ///< TmhOp
  uint8_t rsvd[3];
  be32 app_ctx;
  be64 tag;
};
struct Rvh {
  be64 va;
  be32 rkey;
  be32 len;
};
enum class TmhOp : uint8_t { kNoTag = 0, kRndv = 1, kFin = 2, kEager = 3 };
static_assert(sizeof(Tmh) == 16 && sizeof(Rvh) == 16 && offsetof(TmCqe, hw_phase_cnt) == 4);

struct ErrCqe {
  uint8_t rsvd0[2];
  be16 wqe_id;  ///< of a striding RQ, as in Cqe
  uint8_t rsvd4[28];
  be32 srqn_uidx;
  uint8_t rsvd36[18];
  uint8_t vendor_err_synd;
  uint8_t syndrome;  ///< CqeSyndrome
  be32 sop_drop_qpn;
  be16 wqe_counter;
  uint8_t signature;
  uint8_t op_own;
};
static_assert(sizeof(ErrCqe) == 64 && offsetof(ErrCqe, wqe_id) == 2 &&
              offsetof(ErrCqe, vendor_err_synd) == 54 && offsetof(ErrCqe, syndrome) == 55 &&
              offsetof(ErrCqe, sop_drop_qpn) == 56);

/// Doorbell record of a CQ.
struct CqDbr {
  be32 consumer;  ///< 24-bit consumer index
  be32 arm;       ///< as word 0 of CqDoorbell
};
static_assert(sizeof(CqDbr) == 8);

/// Store to UAR + 0x20.
struct CqDoorbell {
  be32 cmd_ci;  ///< arm sequence number 29:28, solicited only 24, consumer index 23:0
  be32 cqn;

  static constexpr uint32_t kSolicitedOnly = 1u << 24;
  uint32_t ci() const { return cmd_ci & 0xffffff; }
  unsigned sn() const { return cmd_ci >> 28 & 3; }
  bool solicited_only() const { return (cmd_ci & kSolicitedOnly) != 0; }
};
static_assert(sizeof(CqDoorbell) == 8);

/// Registers of a UAR page (offsets in bytes), 4 KiB.
namespace uar {
constexpr unsigned kPageBytes = 4096, kCqArm = 0x20, kEqArm = 0x40, kEqUpdate = 0x48, kSqDoorbell = 0x800;
}

}  // namespace hcasim::prm
