// SPDX-License-Identifier: BSD-3-Clause
// The version of what the lists of state say, of saved states and of functions' images. Raised when a field
// comes, goes, or means something else; a field that comes is listed with it (HCASIM_FIELDS_SINCE), and what
// is of an earlier version is loaded without.
#ifndef HCASIM_CARD_STATE_VERSION_H
#define HCASIM_CARD_STATE_VERSION_H

#include <cstdint>

namespace hcasim::saved {

constexpr std::uint32_t kVersion = 23;

}  // namespace hcasim::saved
#endif
