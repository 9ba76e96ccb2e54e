// SPDX-License-Identifier: BSD-3-Clause
// Fields by which commands refer to registered user memory (UMEM) instead of a page list, and which the
// kernel's mlx5_ifc.h lacks. Source: NVIDIA's programmer's reference, and the field lists of rdma-core's own
// test programs. An address field (dbr_addr) then contains an offset.
#ifndef HCASIM_PRM_UMEM_H
#define HCASIM_PRM_UMEM_H

#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm::umem_ref {

// CREATE_CQ and MODIFY_CQ: after the context.
using cq_offset = Field<0x280, 64>;
using cq_id = Field<0x2c0, 32>;
static_assert(create_cq_in::cq_umem_valid::bit_off == 0x2e0 &&
              modify_cq_in::cq_umem_valid::bit_off == 0x2e0 && create_cq_in::cq_context::bit_off == 0x80 &&
              cqc::bits == 0x200 && modify_cq_in::cq_context::bit_off == 0x80);
// cqc: its second dword.
template <class Cqc>
using cqc_dbr_id = Field<Cqc::bit_off + 0x20, 32>;
static_assert(cqc::page_offset::bit_off == 0x54 && cqc::dbr_addr::bit_off == 0x1c0);

// qpc: its last dword.
template <class Qpc>
using qpc_dbr_id = Field<Qpc::bit_off + 0x720, 32>;
static_assert(qpc::bits == 0x740 && qpc::dbr_umem_valid::bit_off == 0x683);

// CREATE_MKEY: after the size of the translation list.
using mkey_id = Field<0x320, 32>;
using mkey_offset = Field<0x340, 64>;
static_assert(create_mkey_in::translations_octword_actual_size::bit_off == 0x300);

// CREATE_XRC_SRQ: after the context. The place of the doorbell record's UMEM in its context is not known.
using xrc_srq_offset = Field<0x280, 64>;
using xrc_srq_id = Field<0x2c0, 32>;
static_assert(create_xrc_srq_in::xrc_srq_umem_valid::bit_off == 0x2e0);

// Low bits of a UMEM's translation entries.
constexpr std::uint64_t kMttRead = 1, kMttWrite = 2;

}  // namespace hcasim::prm::umem_ref
#endif
