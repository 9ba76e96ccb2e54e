// SPDX-License-Identifier: BSD-3-Clause
#include "rule_check.h"

#include <gtest/gtest.h>

namespace hcasim::bare {
namespace {

class RuleCheck : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override { rule_watch() = RuleWatch(); }
  // The fixture is gone by now, and all that it did at its end has been done.
  void OnTestEnd(const ::testing::TestInfo&) override {
    EXPECT_EQ(rule_watch().text(), "") << "rules that the test does not say it breaks";
  }
};

// A listener that is added later hears of the end of a test sooner: before it is printed.
const bool g_listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new RuleCheck);
  return true;
}();

}  // namespace

RuleWatch& rule_watch() {
  static RuleWatch watch;
  return watch;
}

void breaks(const std::vector<std::string>& rules) { rule_watch().allow(rules); }

void breaks_any_rule() { rule_watch().allow_all(); }

}  // namespace hcasim::bare
