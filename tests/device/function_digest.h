// SPDX-License-Identifier: BSD-3-Clause
// Digests of what a function has (model/state/state.h). Compiled once: the lists behind them are long.
#ifndef HCASIM_TESTS_DEVICE_FUNCTION_DIGEST_H
#define HCASIM_TESTS_DEVICE_FUNCTION_DIGEST_H

#include <cstdint>

namespace hcasim {

class Function;
namespace fw {
class Firmware;
}

// lasting: also what is not forgotten with the function, such as counters.
std::uint64_t digest_of(Function& function, bool lasting = true);
std::uint64_t digest_of(fw::Firmware& firmware, bool lasting = true);
// Of its objects, its command queue, and what was chosen of its capabilities.
std::uint64_t digest_of_tables(fw::Firmware& firmware);

}  // namespace hcasim
#endif
