// SPDX-License-Identifier: BSD-3-Clause
#include "function_digest.h"

#include "firmware-stub/firmware.h"
#include "model/function/function.h"
#include "model/state/state.h"

namespace hcasim {

std::uint64_t digest_of(Function& function, bool lasting) { return digest_state(function, lasting); }

std::uint64_t digest_of(fw::Firmware& firmware, bool lasting) { return digest_state(firmware, lasting); }

std::uint64_t digest_of_tables(fw::Firmware& firmware) {
  std::uint64_t all = 0;
  for (const std::uint64_t part :
       {digest_state(firmware.objects()), digest_state(firmware.cmdq()), digest_state(firmware.caps())})
    all = all * 31 + part;
  return all;
}

}  // namespace hcasim
