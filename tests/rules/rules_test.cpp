// SPDX-License-Identifier: BSD-3-Clause
// Each wrong driver is caught by the rule meant for it, and by no other but what follows from it. (That
// drivers which are right break none, every test of the device sees: rule_check.h.)
#include <algorithm>
#include <set>
#include <string>

#include "wrong.h"

namespace hcasim::bare {
namespace {

std::vector<Wrong> all_wrong() {
  std::vector<Wrong> out;
  for (const auto* list : {&wrong_commands(), &wrong_queues(), &wrong_memory()})
    out.insert(out.end(), list->begin(), list->end());
  return out;
}

class WrongDriver : public DeviceTest, public ::testing::WithParamInterface<Wrong> {
 protected:
  WrongDriver() { expect_strays_ = true; }
};

TEST_P(WrongDriver, BreaksTheRuleMeantForIt) {
  const Wrong& wrong = GetParam();
  const bool told_before = fn().rules_broken().count(wrong.rule) != 0;
  wrong.drive(dev());
  dev().clear_failed_destroys();
  const std::set<std::string> broken = rule_watch().broken();
  EXPECT_EQ(broken.count(wrong.rule), 1u) << "not caught; broken: " << rule_watch().text();
  breaks({wrong.rule});
  breaks(wrong.consequences);
  EXPECT_EQ(rule_watch().text(), "") << "broken besides";
  // Told once, by name.
  const auto& log = machine().log(HCA_LOG_WARNING);
  EXPECT_EQ(std::count_if(log.begin(), log.end(),
                          [&](const std::string& line) {
                            return line.find(std::string("rule ") + wrong.rule + " broken") !=
                                   std::string::npos;
                          }),
            told_before ? 0 : 1);
  // The device is as good as new behind a reset.
  dev().function_reset();
  dev().clear_failed_destroys();
  dev().probe();
  expect_serves_on();
}

INSTANTIATE_TEST_SUITE_P(All, WrongDriver, ::testing::ValuesIn(all_wrong()), [](const auto& info) {
  std::string name = info.param.rule;
  std::replace(name.begin(), name.end(), '-', '_');
  // The second that breaks the same rule, in another way, has a number.
  const std::vector<Wrong> all = all_wrong();
  const auto before = std::count_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(info.index),
                                    [&](const Wrong& w) { return std::string(w.rule) == info.param.rule; });
  return before == 0 ? name : name + "_" + std::to_string(before + 1);
});

TEST(RuleTable, NamesAreUniqueAndThereAreEnough) {
  std::set<std::string> names;
  for (unsigned i = 0; i < hca_rule_count(); ++i) EXPECT_TRUE(names.insert(hca_rule_name(i)).second);
  EXPECT_GE(names.size(), 60u);
  EXPECT_EQ(hca_rule_name(hca_rule_count()), nullptr);
  EXPECT_EQ(hca_rule_broken(machine().function(0).handle(), hca_rule_count()), 0u);
  std::set<std::string> wrong;
  for (const Wrong& w : all_wrong()) {
    EXPECT_EQ(names.count(w.rule), 1u) << w.rule;
    wrong.insert(w.rule);  // some rules can be broken in more than one way
    for (const std::string& also : w.consequences) EXPECT_EQ(names.count(also), 1u) << also;
  }
  EXPECT_GE(wrong.size(), 40u);
}

}  // namespace
}  // namespace hcasim::bare
