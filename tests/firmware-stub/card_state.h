// SPDX-License-Identifier: BSD-3-Clause
// What stands behind an hca_t, for tests of its state as data (model/state/state.h): the listing that the
// digest of hca_state_digest() is made of, and a new run in the same process.
#ifndef HCASIM_TESTS_FIRMWARE_STUB_CARD_STATE_H
#define HCASIM_TESTS_FIRMWARE_STUB_CARD_STATE_H

#include <cstdint>
#include <map>
#include <string>

#include "card/api/hca_api.h"

namespace hcasim::test {

// Values by path, such as "firmware.objects.cqs.1024.cqc".
using StateListing = std::map<std::string, std::string>;

StateListing state_of(hca_t* hca);
// Of it, what commands make and take away again: the firmware's objects and what they are charged, without
// the numbers that have been given out.
StateListing objects_of(hca_t* hca);
// The digest without statistics and what else outlasts a reset.
std::uint64_t digest_of_life(hca_t* hca);
// The paths whose values differ, one a line; "": none.
std::string difference(const StateListing& a, const StateListing& b);

// Simulated time is 0 again, and everything that the HCAs of the process share as in a new one; `now` is the
// caller's clock, ns. False: something is still under way.
bool renew_simulation(std::int64_t now);

}  // namespace hcasim::test
#endif
