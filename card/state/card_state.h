// SPDX-License-Identifier: BSD-3-Clause
// The state of all cards of the process as a file (format: tagged.h): they share one clock, and what is under
// way from one to another belongs to both. Cards that are made with the same options and profiles take it
// over and go on where the saved ones were, at their time.
#ifndef HCASIM_CARD_STATE_CARD_STATE_H
#define HCASIM_CARD_STATE_CARD_STATE_H

#include <string>
#include <string_view>
#include <vector>

#include "card/state/version.h"

struct hca;

namespace hcasim::saved {

using Cards = std::vector<hca*>;

// Between two calls of the API. Throws StateError if what is under way cannot be saved.
std::string save(const Cards& cards);
// All or nothing: throws StateError, and the cards are as they were before.
void load(const Cards& cards, std::string_view file);

}  // namespace hcasim::saved
#endif
