// SPDX-License-Identifier: GPL-2.0-or-later
// Whether a scenario's cards can be made. Profiles and options are texts that only the card itself
// understands.
#ifndef HCASIM_FABRIC_CARD_CHECK_H
#define HCASIM_FABRIC_CARD_CHECK_H

#include <string>

#include "fabric/scenario.h"

namespace hcasim::fabric {

// Makes one card of each kind that there is, without the files that it would write, and takes it out of
// service again. Throws ScenarioError: file, line, key, what is allowed. To be called where no cards are made
// otherwise, as each takes one of the process's numbers of HCAs.
void check_cards(const Scenario& scenario, unsigned cards);

// A card could not be made. Throws ScenarioError with the place in the file that says what it cannot be;
// otherwise with `why`.
[[noreturn]] void refuse_card(const Scenario& scenario, unsigned card, const std::string& why);
// A card does not take a value of [dcqcn]. Throws ScenarioError.
[[noreturn]] void refuse_dcqcn(const DcqcnValue& value, unsigned card, const std::string& why);

}  // namespace hcasim::fabric
#endif
