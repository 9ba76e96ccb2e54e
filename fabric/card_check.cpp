// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/card_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <vector>

#include "card/api/hca_api.h"

namespace hcasim::fabric {

namespace {

std::string without_outputs(const std::string& options) {
  std::istringstream list(options);
  std::string rest;
  for (std::string option; std::getline(list, option, ',');)
    if (!names_output(option)) rest += (rest.empty() ? "" : ",") + option;
  return rest;
}

double rate_gbps(const hca_t* card) {
  unsigned i = 0;
  while (hca_parameter_name(i) != std::string("port.rate_gbps")) ++i;
  return hca_parameter_value(card, i);
}

// Why there can be no such card; "": there can. gbps: if there can, its link's rate.
std::string refusal(const std::string& profile, const std::string& options, double* gbps = nullptr) {
  hca_host_ops host{};  // which such a card never calls
  host.dma_read = [](void*, std::uint64_t, void*, std::size_t) { return -1; };
  host.dma_write = [](void*, std::uint64_t, const void*, std::size_t) { return -1; };
  host.msix = [](void*, unsigned) {};
  host.wire_tx = [](void*, const void*, std::size_t) { return 0; };
  const std::string all = "wire=host,link=eth,profile=" + profile + (options.empty() ? "" : ",") + options;
  char why[512] = "";
  hca_t* const card = hca_create(all.c_str(), &host, nullptr, why, sizeof why);
  if (card == nullptr) return why;
  if (gbps != nullptr) *gbps = rate_gbps(card);
  hca_destroy(card);
  return "";
}

// What a card is, from [card] on, each time by one key of the file more; the last one is the card.
struct Step {
  std::string profile, options;
  std::string at;  // the key's place
};

std::vector<Step> steps_to(const Scenario& scenario, unsigned card) {
  const CardSpec& all = scenario.card;
  std::vector<Step> steps{{all.profile, "", all.profile_at}, {all.profile, all.options, all.options_at}};
  for (const CardChange& c : scenario.changes) {
    if (!std::binary_search(c.cards.begin(), c.cards.end(), card)) continue;
    Step step = steps.back();
    if (!c.profile.empty()) {
      step.profile = c.profile;
      step.at = c.profile_at;
      steps.push_back(step);
    }
    if (c.options.empty()) continue;
    step.options += (step.options.empty() ? "" : ",") + c.options;
    step.at = c.options_at;
    steps.push_back(step);
  }
  for (Step& step : steps) step.options = without_outputs(with_number(step.options, card));
  return steps;
}

}  // namespace

void check_cards(const Scenario& scenario, unsigned cards) {
  std::set<std::string> seen;
  for (unsigned i = 0; i < cards; ++i) {
    const CardSpec spec = spec_of(scenario, i);
    const std::string options = without_outputs(spec.options);
    if (!seen.insert(spec.profile + "," + options).second) continue;
    double gbps = 0;
    if (const std::string why = refusal(spec.profile, options, &gbps); !why.empty())
      refuse_card(scenario, i, why);
    for (const DcqcnValue& v : spec.dcqcn_values)
      if (kDcqcnKeys[v.row].rate && v.value > gbps * 1000)
        refuse_dcqcn(v, i, "its link has " + std::to_string(std::llround(gbps * 1000)) + " Mb/s");
  }
}

void refuse_dcqcn(const DcqcnValue& v, unsigned card, const std::string& why) {
  throw ScenarioError(v.at + ": card " + std::to_string(card) + " does not take " + std::to_string(v.value) +
                      ": " + why);
}

void refuse_card(const Scenario& scenario, unsigned card, const std::string& why) {
  const std::vector<Step> steps = steps_to(scenario, card);
  const std::string last = refusal(steps.back().profile, steps.back().options);
  // The key from which on that is so; keys behind it may put right what earlier ones lack.
  if (!last.empty())
    for (const Step& step : steps)
      if (refusal(step.profile, step.options) == last)
        throw ScenarioError(step.at + ": card " + std::to_string(card) + ": " + last);
  throw ScenarioError("card " + std::to_string(card) + ": " + why);
}

}  // namespace hcasim::fabric
