// SPDX-License-Identifier: BSD-3-Clause
/// Work queue elements: segments of 16-byte units, big-endian (kernel include/linux/mlx5/qp.h).
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

constexpr unsigned kWqebb = 64;           ///< bytes of a send WQE basic block
constexpr unsigned kDs = 16;              ///< bytes of the unit that `ds` counts
constexpr unsigned kMaxWqeDs = 63;        ///< `ds` has 6 bits
constexpr uint32_t kInvalidLkey = 0x100;  ///< ends a receive scatter list; never a real key

enum class WqeOp : uint8_t {
  kNop = 0x00,
  kSendInval = 0x01,
  kRdmaWrite = 0x08,
  kRdmaWriteImm = 0x09,
  kSend = 0x0a,
  kSendImm = 0x0b,
  kLso = 0x0e,
  kRdmaRead = 0x10,
  kAtomicCs = 0x11,
  kAtomicFa = 0x12,
  kMaskedCs = 0x14,
  kMaskedFa = 0x15,
  kBindMw = 0x18,
  kConfig = 0x1f,
  kSetPsv = 0x20,
  kGetPsv = 0x21,
  kCheckPsv = 0x22,
  kDump = 0x23,
  kUmr = 0x25,
  kRgetPsv = 0x26,
  kRcheckPsv = 0x27,
  kTagMatch = 0x28,
  kEnhancedMpsw = 0x29,
  kFlowTableAccess = 0x2c,
  kAso = 0x2d,
  kMmo = 0x2f,
};

constexpr const char* wqe_op_name(WqeOp op) {
  switch (op) {
    case WqeOp::kNop:
      return "NOP";
    case WqeOp::kSendInval:
      return "SEND_INVAL";
    case WqeOp::kRdmaWrite:
      return "RDMA_WRITE";
    case WqeOp::kRdmaWriteImm:
      return "RDMA_WRITE_IMM";
    case WqeOp::kSend:
      return "SEND";
    case WqeOp::kSendImm:
      return "SEND_IMM";
    case WqeOp::kLso:
      return "LSO";
    case WqeOp::kRdmaRead:
      return "RDMA_READ";
    case WqeOp::kAtomicCs:
      return "ATOMIC_CS";
    case WqeOp::kAtomicFa:
      return "ATOMIC_FA";
    case WqeOp::kMaskedCs:
      return "MASKED_CS";
    case WqeOp::kMaskedFa:
      return "MASKED_FA";
    case WqeOp::kBindMw:
      return "BIND_MW";
    case WqeOp::kConfig:
      return "CONFIG";
    case WqeOp::kSetPsv:
      return "SET_PSV";
    case WqeOp::kGetPsv:
      return "GET_PSV";
    case WqeOp::kCheckPsv:
      return "CHECK_PSV";
    case WqeOp::kDump:
      return "DUMP";
    case WqeOp::kUmr:
      return "UMR";
    case WqeOp::kRgetPsv:
      return "RGET_PSV";
    case WqeOp::kRcheckPsv:
      return "RCHECK_PSV";
    case WqeOp::kTagMatch:
      return "TAG_MATCH";
    case WqeOp::kEnhancedMpsw:
      return "ENHANCED_MPSW";
    case WqeOp::kFlowTableAccess:
      return "FLOW_TABLE_ACCESS";
    case WqeOp::kAso:
      return "ASO";
    case WqeOp::kMmo:
      return "MMO";
  }
  return nullptr;
}

/// Completion request of CtrlSeg::ce().
enum : uint8_t { kCeOnError = 0, kCeOnFirstError = 1, kCeAlways = 2, kCeAlwaysEqe = 3 };
/// Fence modes of CtrlSeg::fence().
enum : uint8_t {
  kFenceNone = 0,
  kFenceSmall = 1,
  kFenceFence = 2,
  kFenceStrong = 3,
  kFenceSmallAndFence = 4
};

/// First segment of every send WQE (mlx5_wqe_ctrl_seg). A doorbell is its first 8 bytes.
struct CtrlSeg {
  be32 opmod_idx_opcode;  ///< opmod 31:24, WQEBB index 23:8, opcode 7:0
  be32 qpn_ds;            ///< QPN or SQN 31:8, ds 5:0
  uint8_t signature;
  be16 stream;  ///< of a DCI with streams: to which the WQE belongs
  uint8_t fm_ce_se;
  be32 imm;  ///< immediate, key to invalidate, UMR mkey, or TIS

  WqeOp opcode() const { return static_cast<WqeOp>(opmod_idx_opcode & 0xff); }
  uint8_t opmod() const { return static_cast<uint8_t>(opmod_idx_opcode >> 24); }
  uint16_t wqe_index() const { return static_cast<uint16_t>(opmod_idx_opcode >> 8); }
  uint32_t qpn() const { return qpn_ds >> 8; }
  unsigned ds() const { return qpn_ds & 0x3f; }
  unsigned ce() const { return fm_ce_se >> 2 & 3; }
  unsigned fence() const { return fm_ce_se >> 5; }
  bool solicited() const { return (fm_ce_se & 2) != 0; }

  void set(WqeOp op, uint16_t index, uint32_t qpn, unsigned ds, unsigned ce, bool se = false,
           uint8_t opmod = 0, unsigned fence = kFenceNone) {
    opmod_idx_opcode =
        static_cast<uint32_t>(opmod) << 24 | static_cast<uint32_t>(index) << 8 | static_cast<uint32_t>(op);
    qpn_ds = qpn << 8 | (ds & 0x3f);
    signature = 0;
    stream = 0;
    fm_ce_se = static_cast<uint8_t>(fence << 5 | (ce & 3) << 2 | (se ? 2 : 0));
  }
};
static_assert(sizeof(CtrlSeg) == 16 && offsetof(CtrlSeg, fm_ce_se) == 11 && offsetof(CtrlSeg, imm) == 12);

/// Scatter/gather element. A receive list ends at byte_count 0 with lkey kInvalidLkey.
struct DataSeg {
  be32 byte_count;  ///< bit 31 set: not this segment but an InlineSeg
  be32 lkey;
  be64 addr;
};
static_assert(sizeof(DataSeg) == 16 && offsetof(DataSeg, addr) == 8);

/// Header of inline data; the bytes follow, padded to 16.
struct InlineSeg {
  be32 byte_count;
  static constexpr uint32_t kFlag = 0x80000000, kCountMask = 0x3ff;
  bool is_inline() const { return (byte_count & kFlag) != 0; }
  unsigned count() const { return byte_count & kCountMask; }
};
static_assert(sizeof(InlineSeg) == 4);

struct RaddrSeg {
  be64 raddr;
  be32 rkey;
  be32 rsvd;
};
static_assert(sizeof(RaddrSeg) == 16 && offsetof(RaddrSeg, rkey) == 8);

struct AtomicSeg {
  be64 swap_add;
  be64 compare;
};
static_assert(sizeof(AtomicSeg) == 16);

/// Masked atomics. The control segment's opmod gives the operand size: kAtomicExtended and, in its low bits,
/// log2 of the bytes minus 2; without it 8 bytes. Operands follow as big-endian words: four for a compare and
/// swap (value to swap in, value to compare with, swap mask, compare mask), two for an addition (addend;
/// boundary: the highest bits of the fields that are added separately). Operands of 4 and 8 bytes are one
/// word each; larger ones are words of 8 bytes in memory order. The list is padded to 16 bytes.
constexpr uint8_t kAtomicExtended = 8, kAtomicSizeMask = 7;
constexpr unsigned kMaxAtomicBytes = 32;  ///< largest operand of ConnectX-4 and later
constexpr unsigned masked_atomic_size(uint8_t opmod) {
  return opmod & kAtomicExtended ? 4u << (opmod & kAtomicSizeMask) : 8;
}
constexpr unsigned masked_atomic_operands(bool compare_swap) { return compare_swap ? 4 : 2; }

/// Compare and swap of 8 bytes.
struct MaskedAtomicSeg {
  be64 swap_add;
  be64 compare;
  be64 swap_add_mask;
  be64 compare_mask;
};
static_assert(sizeof(MaskedAtomicSeg) == 32);

struct XrcSeg {
  be32 xrc_srqn;
  uint8_t rsvd[12];
};
static_assert(sizeof(XrcSeg) == 16);

/// Address vector (mlx5_av) of UD and DC WQEs; without `extended()` only its first 16 bytes exist.
struct AvSeg {
  be32 qkey;
  be32 key_low;  ///< UD: reserved; with qkey the 64-bit DC access key
  be32 dqp_dct;
  uint8_t stat_rate_sl;
  uint8_t fl_mlid;
  be16 rlid;  ///< RoCE: UDP source port
  uint8_t rsvd[4];
  uint8_t rmac[6];
  uint8_t tclass;
  uint8_t hop_limit;
  be32 grh_gid_fl;
  uint8_t rgid[16];

  static constexpr unsigned kShortBytes = 16;
  static constexpr uint32_t kExtended = 1u << 31, kGrh = 1u << 30;
  bool extended() const { return (dqp_dct & kExtended) != 0; }
  uint32_t dqpn() const { return dqp_dct & 0xffffff; }
  unsigned sl() const { return stat_rate_sl & 0xf; }
  unsigned roce_prio() const { return stat_rate_sl >> 1 & 7; }
  unsigned stat_rate() const { return stat_rate_sl >> 4; }
  bool has_grh() const { return (grh_gid_fl & kGrh) != 0; }
  unsigned sgid_index() const { return grh_gid_fl >> 20 & 0xff; }
  uint32_t flow_label() const { return grh_gid_fl & 0xfffff; }
};
static_assert(sizeof(AvSeg) == 48 && offsetof(AvSeg, dqp_dct) == 8 && offsetof(AvSeg, rlid) == 14 &&
              offsetof(AvSeg, rmac) == 0x14 && offsetof(AvSeg, grh_gid_fl) == 0x1c &&
              offsetof(AvSeg, rgid) == 0x20);

/// Ethernet segment of SEND and LSO on an SQ; inline headers start at `inline_start` and may extend beyond
/// it.
struct EthSeg {
  uint8_t swp_outer_l4_offset;
  uint8_t swp_outer_l3_offset;
  uint8_t swp_inner_l4_offset;
  uint8_t swp_inner_l3_offset;
  uint8_t cs_flags;
  uint8_t swp_flags;
  be16 mss;
  be32 flow_table_metadata;
  be16 inline_hdr_sz;  ///< or kInsertVlan and flags, then `inline_start` is the VLAN tag
  uint8_t inline_start[2];

  static constexpr uint8_t kL3InnerCsum = 1 << 4, kL4InnerCsum = 1 << 5, kL3Csum = 1 << 6, kL4Csum = 1 << 7;
  // swp_flags; offsets in units of two bytes
  static constexpr uint8_t kInnerIpv6 = 1 << 0, kInnerUdp = 1 << 1, kOuterIpv6 = 1 << 4, kOuterUdp = 1 << 5;
  static constexpr uint16_t kInsertVlan = 1 << 15, kInsertSvlan = 1 << 0, kInlineMask = 0x3ff;
  /// inline_hdr_sz: the first inline segment goes behind the packet of the header that this names.
  static constexpr uint16_t kInsertTrailer = 1 << 14, kTrailerOf = 7 << 10, kTrailerOfOuterIp = 1 << 10,
                            kTrailerOfOuterL4 = 2 << 10;
};
static_assert(sizeof(EthSeg) == 16 && offsetof(EthSeg, mss) == 6 && offsetof(EthSeg, inline_hdr_sz) == 12);

/// Control segment of ACCESS_ASO; 64 bytes of data follow (mlx5_wqe_aso_ctrl_seg). The object is the control
/// segment's `imm`, its type the opmod.
struct AsoCtrlSeg {
  be32 va_h;
  be32 va_l;  ///< bit 0: what was there before is read to that address
  be32 lkey;
  uint8_t data_mask_mode;      ///< 7:6
  uint8_t condition_operands;  ///< of condition 1 7:4, of condition 0 3:0
  uint8_t condition_offsets;
  uint8_t condition_combination;  ///< 7:6; of data 5:0
  be32 condition_0_data, condition_0_mask;
  be32 condition_1_data, condition_1_mask;
  be64 bitwise_data;
  be64 data_mask;
};
static_assert(sizeof(AsoCtrlSeg) == 48 && offsetof(AsoCtrlSeg, condition_0_data) == 16 &&
              offsetof(AsoCtrlSeg, data_mask) == 40);
constexpr uint32_t kAsoReadEnable = 1;
constexpr uint8_t kLsoManyFrames = 1;  ///< opmod of LSO: each data segment is a frame of mss bytes
enum : uint8_t { kAsoIpsec = 0, kAsoFlowMeter = 2, kAsoMacsec = 5 };  ///< opmod of ACCESS_ASO
enum : uint8_t { kAsoFalse = 0, kAsoTrue = 1 };                       ///< condition_operands
enum : uint8_t { kAsoAnd = 0, kAsoOr = 1 };                           ///< condition_combination
enum : uint8_t { kAsoBitwise = 0, kAsoBytewise = 1 };                 ///< data_mask_mode
constexpr unsigned kAsoData = 64;

/// UMR control segment; an mkey segment (`prm::mkc`) and the translation list follow.
struct UmrCtrlSeg {
  uint8_t flags;
  uint8_t rsvd0[3];
  be16 xlt_octowords;
  be16 xlt_offset;  ///< or BSF octowords
  be64 mkey_mask;
  be32 xlt_offset_47_16;
  uint8_t rsvd1[28];
};
static_assert(sizeof(UmrCtrlSeg) == 48 && offsetof(UmrCtrlSeg, mkey_mask) == 8 &&
              offsetof(UmrCtrlSeg, xlt_offset_47_16) == 16);

/// UmrCtrlSeg::flags.
enum : uint8_t {
  kUmrCheckQpn = 1 << 3,  ///< fails on an mkey that is bound to another QP
  kUmrTranslationOffsetEn = 1 << 4,
  kUmrCheckNotFree = 1 << 5,
  kUmrCheckFree = 2 << 5,
  kUmrInline = 1 << 7,
};

/// UmrCtrlSeg::mkey_mask: which fields of the mkey segment apply.
namespace mkey_mask {
enum : uint64_t {
  kLen = 1ull << 0,
  kPageSize = 1ull << 1,
  kStartAddr = 1ull << 6,
  kPd = 1ull << 7,
  kEnRinval = 1ull << 8,
  kEnSigerr = 1ull << 9,
  kBsfEn = 1ull << 12,
  kKey = 1ull << 13,
  kQpn = 1ull << 14,
  kLr = 1ull << 17,
  kLw = 1ull << 18,
  kRr = 1ull << 19,
  kRw = 1ull << 20,
  kA = 1ull << 21,
  kSmallFence = 1ull << 23,
  kRelaxedOrderingWrite = 1ull << 25,
  kFree = 1ull << 29,
  kRelaxedOrderingRead = 1ull << 47,
};
}  // namespace mkey_mask

/// Operation on the matching list of a tag-matching SRQ (rdma-core, mlx5dv.h mlx5_wqe_tm_seg); an append's
/// data segment follows.
struct TmSeg {
  uint8_t opcode;  ///< TmListOp 7:4
  uint8_t flags;
  be16 index;  ///< append: place that the next append will use; remove: the entry
  uint8_t rsvd0[2];
  be16 sw_cnt;  ///< with kSwCnt: number of unexpected messages that software has handled
  uint8_t rsvd1[8];
  be64 append_tag;
  be64 append_mask;

  static constexpr uint8_t kSwCnt = 1 << 6, kCqeReq = 1 << 7;
};
enum class TmListOp : uint8_t { kNop = 0, kAppend = 1, kRemove = 2 };
static_assert(sizeof(TmSeg) == 32 && offsetof(TmSeg, sw_cnt) == 6 && offsetof(TmSeg, append_tag) == 16);

/// Head of a receive WQE in a linked list (SRQ, striding RQ); data segments follow.
struct SrqNextSeg {
  uint8_t rsvd0[2];
  be16 next_wqe_index;
  uint8_t signature;
  uint8_t rsvd1[11];
};
static_assert(sizeof(SrqNextSeg) == 16);

/// Translation entries: page address with flags in the low bits; key, length and address of an indirect mkey.
struct Mtt {
  be64 ptag;
  static constexpr uint64_t kRead = 1 << 0, kWrite = 1 << 1, kFlags = 7;
};
struct Klm {
  be32 byte_count;  ///< KSM: reserved, the size comes from the mkey
  be32 key;
  be64 va;
};
static_assert(sizeof(Mtt) == 8 && sizeof(Klm) == 16);

/// Doorbell record of a QP, RQ, SQ or SRQ: counts in WQEs (receive) and WQEBBs (send), low 16 bits.
struct QpDbr {
  be32 rcv;
  be32 snd;
};
static_assert(sizeof(QpDbr) == 8);

}  // namespace hcasim::prm
