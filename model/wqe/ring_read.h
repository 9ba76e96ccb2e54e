// SPDX-License-Identifier: BSD-3-Clause
// Receive WQEs out of their rings in host memory, for QPs' queues, SRQs and queues of frames.
#ifndef HCASIM_MODEL_WQE_RING_READ_H
#define HCASIM_MODEL_WQE_RING_READ_H

#include <cstdint>

#include "model/ctx/guest_ring.h"
#include "model/function/id.h"
#include "model/time.h"

namespace hcasim {

class Dma;
struct Profile;

constexpr std::uint32_t kMaxRecvWqe = 2048;  // bytes read of one receive WQE, above cap.max_wqe_sz_rq

// Bytes [at, at + len) of a function's ring. False: it has no such bytes, or the host refused.
bool read_ring(Dma& dma, Time t, FunctionId f, const GuestRing& ring, std::uint64_t at, std::uint8_t* dst,
               std::uint32_t len);

// WQE `consumer` of a cyclic queue of 2^log_size WQEs, 2^log_stride bytes each, of which those before
// `producer` are posted, this one among them; both run freely. nullptr: it cannot be read.
// Hardware reads receive WQEs ahead of their use; so the reads here occupy the link but delay nobody.
const std::uint8_t* recv_wqe_ahead(const Profile& profile, Dma& dma, Time t, FunctionId f,
                                   const GuestRing& ring, unsigned log_size, unsigned log_stride,
                                   std::uint16_t consumer, std::uint16_t producer, ReadAhead& ahead);

}  // namespace hcasim
#endif
