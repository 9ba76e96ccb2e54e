// SPDX-License-Identifier: BSD-3-Clause
// Decoding of work queue elements (model/prm/wqe.h).
#ifndef HCASIM_MODEL_WQE_PARSE_H
#define HCASIM_MODEL_WQE_PARSE_H

#include <cstddef>
#include <cstdint>

#include "model/ctx/qp.h"

namespace hcasim {

// Vendor syndromes of our own: why a WQE was refused (error CQE, vendor_err_synd).
enum class WqeFault : std::uint8_t {
  kNone = 0,
  kSize = 0x61,     // ds is 0, or larger than what is posted
  kQpn = 0x62,      // the control segment names another QP
  kOpcode = 0x63,   // unknown, or not for this type of QP
  kSegment = 0x64,  // a segment is cut off or malformed
  kLength = 0x65,   // longer than the QP's maximum message
  kUmr = 0x66,      // UMR refused: see model/wqe/umr.h
  kFetch = 0x67,    // the host refused the DMA
};

// Decodes the send WQE in bytes[0, len), len a multiple of 16 and at least 16, into `w` (fresh). What is
// wrong with it ends up in w.syndrome and w.vendor.
void parse_send_wqe(const std::uint8_t* bytes, std::size_t len, const Qp& qp, SendWqe& w);

// Decodes a receive WQE's data segments; the list ends at the end of the stride or at kInvalidLkey with byte
// count 0. False: malformed.
bool parse_recv_segments(const std::uint8_t* bytes, std::size_t len, RecvWqe& w);

}  // namespace hcasim
#endif
