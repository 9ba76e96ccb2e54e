// SPDX-License-Identifier: BSD-3-Clause
/// Signature offload: the BSF after a UMR's translation list, the SET_PSV segment, the CQE of a signature
/// error (kernel include/linux/mlx5/qp.h and device.h, rdma-core providers/mlx5/wqe.h).
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

/// T10-DIF part of a domain.
struct BsfInline {
  be16 vld_refresh;
  be16 apptag;
  be32 reftag;
  uint8_t sig_type;  ///< 1 CRC, 2 IP checksum
  uint8_t rp_inv_seed;
  uint8_t rsvd[3];
  uint8_t inc_ref_guard_check;
  be16 app_bitmask;

  static constexpr uint16_t kValid = 1 << 15;
  static constexpr uint8_t kSeedOnes = 1 << 3;                                             ///< rp_inv_seed
  static constexpr uint8_t kIncRef = 1 << 6, kAppEscape = 1 << 0, kAppRefEscape = 1 << 1;  ///< inc_ref_...
};
static_assert(sizeof(BsfInline) == 16 && offsetof(BsfInline, inc_ref_guard_check) == 13);

/// Byte stream format of a key: block structures of its two sides.
struct Bsf {
  uint8_t size_sbs;    ///< size 7:6 (2: with inline parts), same block structure 4
  uint8_t check_mask;  ///< bytes of the incoming signature that are checked, the first is bit 7
  uint8_t wire_bs;     ///< block size selector; same block structure: mask of bytes that are copied
  uint8_t mem_bs;
  be32 raw_data_size;
  be32 wire_bfs_psv;  ///< block format 31:24, PSV 23:0
  be32 mem_bfs_psv;
  uint8_t ext[16];
  BsfInline wire;
  BsfInline mem;

  static constexpr uint8_t kSbs = 1 << 4, kSizeWithInline = 2;
  static constexpr uint8_t kFormatCrc32 = 0x20, kFormatSeedZero = 1, kFormatMask = 0xf0;
};
static_assert(sizeof(Bsf) == 64 && offsetof(Bsf, wire_bfs_psv) == 8 && offsetof(Bsf, wire) == 32);

struct SetPsvSeg {
  be32 psv;
  be16 syndrome;
  uint8_t rsvd[2];
  be32 transient_sig;  ///< T10-DIF: guard seed 31:16, application tag 15:0; CRC: its seed
  be32 ref_tag;
};
static_assert(sizeof(SetPsvSeg) == 16 && offsetof(SetPsvSeg, transient_sig) == 8);

struct SigErrCqe {
  uint8_t rsvd0[16];
  be32 expected_trans_sig;
  be32 actual_trans_sig;
  be32 expected_ref_tag;
  be32 actual_ref_tag;
  be16 syndrome;
  uint8_t sig_type;  ///< 0: of a block
  uint8_t domain;    ///< 0 wire, 1 memory
  be32 mkey;
  be64 offset;  ///< of the signature, in the stream of its domain
  uint8_t rsvd48[8];
  be32 qpn;
  uint8_t rsvd60[2];
  uint8_t signature;
  uint8_t op_own;

  static constexpr uint16_t kGuard = 1 << 13, kAppTag = 1 << 12, kRefTag = 1 << 11;
};
static_assert(sizeof(SigErrCqe) == 64 && offsetof(SigErrCqe, mkey) == 36 &&
              offsetof(SigErrCqe, offset) == 40 && offsetof(SigErrCqe, qpn) == 56);

}  // namespace hcasim::prm
