// SPDX-License-Identifier: BSD-3-Clause
// User-mode memory registration: the WQE that changes an mkey's fields and translation list (bring-up of
// drivers: memory registration, fast registration, local invalidate).
#ifndef HCASIM_MODEL_WQE_UMR_H
#define HCASIM_MODEL_WQE_UMR_H

#include <cstdint>

#include "model/req/requester_state.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class Dma;
class Tpt;
struct Profile;
struct Qp;

struct UmrResult {
  Time at = 0;                // when the mkey is in force
  std::uint8_t syndrome = 0;  // CQE syndrome; 0 = done
  std::uint8_t vendor = 0;
};

struct UmrBlocks {
  const Profile& profile;
  traces::Tracer& tracer;
  Tpt& tpt;
  Dma& dma;
};

// Executes wqe (opcode UMR) on behalf of qp. Nothing is changed when it fails.
UmrResult execute_umr(Time t, const UmrBlocks& blocks, const Qp& qp, const SendWqe& wqe);

// The same for opcode SET_PSV.
UmrResult execute_set_psv(Time t, const UmrBlocks& blocks, const Qp& qp, const SendWqe& wqe);

// It makes its mkey free: accesses posted before must be over.
bool umr_invalidates(const SendWqe& wqe);

}  // namespace hcasim
#endif
