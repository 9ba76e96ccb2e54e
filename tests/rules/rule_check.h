// SPDX-License-Identifier: BSD-3-Clause
// Every test of a program that links hcasim_rule_check fails on a validation rule that was broken while it
// ran, in this process, and that it does not say it breaks: whatever its fixture is, also when its HCAs are
// gone at its end. Children that a test forks look for themselves (RuleWatch).
#ifndef HCASIM_TESTS_RULES_RULE_CHECK_H
#define HCASIM_TESTS_RULES_RULE_CHECK_H

#include <string>
#include <vector>

#include "driver/bare/rules.h"

namespace hcasim::bare {

// For tests that break rules on purpose: those they break, or any. To be said at any time of the test.
void breaks(const std::vector<std::string>& rules);
void breaks_any_rule();
// Of the test that runs, or ran last.
RuleWatch& rule_watch();

}  // namespace hcasim::bare
#endif
