// SPDX-License-Identifier: BSD-3-Clause
// Where a frame's headers are as its WQE says it ("software parser"): of send queues that may do so
// (sqc.allow_swp). Checksums and segmentation go by it then, and not by what the card's parser finds.
#ifndef HCASIM_MODEL_ETH_GIVEN_HEADERS_H
#define HCASIM_MODEL_ETH_GIVEN_HEADERS_H

#include <cstdint>

#include "model/eth/headers.h"
#include "prm/wqe.h"

namespace hcasim {

inline bool gives_headers(const prm::EthSeg& eth) {
  return eth.swp_outer_l3_offset != 0 || eth.swp_outer_l4_offset != 0 || eth.swp_inner_l3_offset != 0 ||
         eth.swp_inner_l4_offset != 0;
}

// Puts what the WQE gives into the places of what was found; what it does not give (offset 0) is not there,
// but for an inner L4 header that is given alone: it is one of the outer IP packet that was found (PSP, as
// Linux sends it). shift: bytes that the card has inserted in front of the headers since. False: headers that
// the frame has no room for, or that overlap.
// An L4 header that nothing is to be done with (needs_l4; its checksum) may be given anywhere: Linux does so
// for what is neither TCP nor UDP in VXLAN in ESP.
bool take_given_headers(const std::uint8_t* frame, const prm::EthSeg& eth, unsigned shift, LengthsOf lengths,
                        bool needs_l4, FrameHeaders& headers);

}  // namespace hcasim
#endif
