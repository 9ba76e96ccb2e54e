// SPDX-License-Identifier: BSD-3-Clause
#include "model/timed_queue.h"

namespace hcasim {

std::uint64_t g_activations = 0;

}  // namespace hcasim
