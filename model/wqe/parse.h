// SPDX-License-Identifier: BSD-3-Clause
// Decoding of work queue elements (prm/wqe.h).
#ifndef HCASIM_MODEL_WQE_PARSE_H
#define HCASIM_MODEL_WQE_PARSE_H

#include <cstddef>
#include <cstdint>

#include "model/ctx/qp.h"
#include "prm/cqe.h"

namespace hcasim {

// Vendor syndromes of our own: why a WQE was refused (error CQE, vendor_err_synd).
enum class WqeFault : std::uint8_t {
  kNone = 0,
  kSize = 0x61,       // ds is 0, or larger than what is posted
  kQpn = 0x62,        // the control segment names another QP
  kOpcode = 0x63,     // unknown, or not for this type of QP
  kSegment = 0x64,    // a segment is cut off or malformed
  kLength = 0x65,     // longer than the QP's maximum message
  kUmr = 0x66,        // UMR refused: see model/wqe/umr.h
  kFetch = 0x67,      // the host refused the DMA
  kTag = 0x69,        // operation on a matching list refused: see model/tm/tag_unit.h
  kAso = 0x6a,        // access to an object refused: none of that number or PD, or not to be done that way
  kTls = 0x6b,        // TLS: parameters or a TIS or TIR that it cannot have, or data that are no record
  kHeaders = 0x68,    // LSO: headers missing, or not of what can be segmented; MSS 0
  kPageFault = 0x93,  // on-demand paging: the driver could not bring the page (the number of the cards')
};

// The WQE completes in error, with this syndrome.
inline void refuse(SendWqe& w, prm::CqeSyndrome syndrome, WqeFault fault) {
  w.syndrome = static_cast<std::uint8_t>(syndrome);
  w.vendor = static_cast<std::uint8_t>(fault);
}

// Decodes the send WQE in bytes[0, len), len a multiple of 16 and at least 16, into `w` (fresh). What is
// wrong with it ends up in w.syndrome and w.vendor.
void parse_send_wqe(const std::uint8_t* bytes, std::size_t len, const Qp& qp, SendWqe& w);

// The same for what follows the control segment, at `at`, of SEND, LSO and ENHANCED_MPSW on an SQ.
void parse_frame_wqe(const std::uint8_t* bytes, std::size_t len, std::size_t at, const Qp& qp, SendWqe& w);

// Decodes a receive WQE's data segments; the list ends at the end of the stride or at kInvalidLkey with byte
// count 0. False: malformed.
// A queue of frames has no inline data, so that the flag is free: there it asks for padding that aligns the
// start of a frame, which nothing needs here.
enum class InlineFlag : std::uint8_t { kRefused, kIgnored };
bool parse_recv_segments(const std::uint8_t* bytes, std::size_t len, RecvWqe& w,
                         InlineFlag flag = InlineFlag::kRefused);

}  // namespace hcasim
#endif
