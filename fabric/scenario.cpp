// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/scenario.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>

namespace hcasim::fabric {

namespace {

constexpr double kLongestLatency = 1e6;             // ns
constexpr std::uint64_t kLargestBuffer = 4u << 20;  // KiB
constexpr unsigned kLossless = 3;

SwitchConfig read_switch(Section s, std::uint64_t seed) {
  SwitchConfig c;
  c.seed = seed;
  const auto kib = [&s](const char* key, std::uint64_t fallback) {
    return s.whole(key, fallback, 0, kLargestBuffer) << 10;
  };
  c.latency = static_cast<Time>(s.real("latency_ns", 300, 1, kLongestLatency) * kNs);
  c.cut_through = s.flag("cut_through", true);
  c.buffer = s.whole("buffer_kib", 16384, 16, kLargestBuffer) << 10;
  c.queue = s.whole("queue_kib", 2048, 16, kLargestBuffer) << 10;
  c.kmin = kib("ecn_kmin_kib", 100);
  c.kmax = kib("ecn_kmax_kib", 0);
  c.pmax = s.real("ecn_pmax", 0.1, 0, 1);
  if (c.kmax != 0 && c.kmax < c.kmin)
    s.fail("ecn_kmax_kib",
           "must not be less than ecn_kmin_kib (" + std::to_string(c.kmin >> 10) + "); 0: nothing is marked");
  for (const std::uint64_t priority : s.wholes("pfc", {}, 0, kPriorities - 1))
    c.lossless = static_cast<std::uint8_t>(c.lossless | 1u << priority);
  c.xoff = kib("pfc_xoff_kib", 256);
  c.xon = kib("pfc_xon_kib", 192);
  c.headroom = kib("pfc_headroom_kib", 128);
  if (c.xon > c.xoff)
    s.fail("pfc_xon_kib", "must not be more than pfc_xoff_kib (" + std::to_string(c.xoff >> 10) + ")");
  s.done();
  return c;
}

// It becomes an option among others, which a comma would end.
std::string read_profile(Section& s, const std::string& fallback) {
  const std::string profile = s.text("profile", fallback);
  if (profile.find(',') != std::string::npos)
    s.fail("profile",
           "must be a name or a path without a comma; `options` takes what else the card is given");
  return profile;
}

std::string read_options(Section& s) {
  std::string options = s.text("options", "");
  for (const char* own : {"wire=", "mac=", "name=", "link=", "cable=", "switch=", "profile="})
    if (("," + options).find(std::string(",") + own) != std::string::npos)
      s.fail("options", std::string(own) + " is the fabric's business (the profile has a key of its own)");
  return options;
}

// "0, 8-15"
std::vector<unsigned> read_numbers(Section& s, const std::string& key, unsigned cards) {
  const std::string most = std::to_string(cards - 1);
  const std::string wanted =
      "numbers of cards, 0 to " + most + ", and ranges of them, such as \"0, 2-3\", are wanted";
  const auto number = [&](const std::string& text) {
    const std::size_t from = text.find_first_not_of(' '), to = text.find_last_not_of(' ');
    const std::string digits = from == std::string::npos ? "" : text.substr(from, to - from + 1);
    if (digits.empty() || digits.size() > most.size() ||
        digits.find_first_not_of("0123456789") != std::string::npos || std::stoul(digits) >= cards)
      s.fail(key, wanted);
    return static_cast<unsigned>(std::stoul(digits));
  };
  std::vector<bool> in(cards);
  std::istringstream list(s.text(key, "") + ",");
  for (std::string one; std::getline(list, one, ',');) {
    const std::size_t dash = one.find('-');
    const unsigned from = number(one.substr(0, dash));
    const unsigned to = dash == std::string::npos ? from : number(one.substr(dash + 1));
    if (to < from) s.fail(key, wanted);
    std::fill(in.begin() + from, in.begin() + to + 1, true);
  }
  std::vector<unsigned> numbers;
  for (unsigned i = 0; i < cards; ++i)
    if (in[i]) numbers.push_back(i);
  return numbers;
}

CardChange read_change(Section s, unsigned cards) {
  CardChange c;
  c.cards = read_numbers(s, "which", cards);
  c.profile = read_profile(s, "");
  c.options = read_options(s);
  c.profile_at = s.place("profile");
  c.options_at = s.place("options");
  s.done();
  return c;
}

CardSpec read_card(Section s, Section dcqcn) {
  CardSpec c;
  c.profile = read_profile(s, c.profile);
  c.options = read_options(s);
  c.profile_at = s.place("profile");
  c.options_at = s.place("options");
  c.priority = static_cast<unsigned>(s.whole("priority", kLossless, 0, kPriorities - 1));
  c.dcqcn = s.flag("dcqcn", true);
  c.mtu = static_cast<unsigned>(s.whole("mtu", 4096, 256, 4096));
  if ((c.mtu & (c.mtu - 1)) != 0) s.fail("mtu", "must be 256, 512, 1024, 2048 or 4096");
  c.ack_timeout = static_cast<unsigned>(s.whole("ack_timeout", 14, 1, 31));
  c.retries = static_cast<unsigned>(s.whole("retries", 7, 0, 7));
  s.done();
  for (unsigned row = 0; row < std::size(kDcqcnKeys); ++row) {
    const DcqcnKey& key = kDcqcnKeys[row];
    if (dcqcn.has(key.name))
      c.dcqcn_values.push_back(
          {row, static_cast<std::uint32_t>(dcqcn.whole(key.name, key.low, key.high)), dcqcn.place(key.name)});
  }
  dcqcn.done();
  return c;
}

}  // namespace

Scenario read_scenario(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw ScenarioError(file + ": cannot be read: no such file");
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& e) {
    throw ScenarioError(file + ":" + std::to_string(e.source().begin.line) + ": " +
                        std::string(e.description()));
  }
  Section root(file, table, "");
  Scenario s;
  s.name = root.text("name", std::filesystem::path(file).stem().string());
  s.seed = root.whole("seed", 1, 0, std::uint64_t{1} << 62);
  if (!root.has("topology"))
    root.missing("topology", "; a [topology] with its kind: star, leaf-spine, fat-tree, rail");
  s.topology = read_topology(root.table("topology"), root.table("links"));
  s.switches = read_switch(root.table("switch"), s.seed);
  s.card = read_card(root.table("card"), root.table("dcqcn"));
  const unsigned cards = build_topology(s.topology).cards;
  for (const Section& change : root.tables("cards")) s.changes.push_back(read_change(change, cards));
  s.workloads = read_workloads(root, file, cards);
  Section run = root.table("run");
  s.until = static_cast<Time>(run.real("until_us", 1e6, 1, 1e8) * static_cast<double>(kUs));
  s.sample = static_cast<Time>(run.real("sample_us", 10, 0.1, 1e6) * static_cast<double>(kUs));
  if (s.until / s.sample > 10'000'000)
    run.fail("sample_us", "more than 10000000 samples until the end; take fewer");
  run.done();
  root.done();
  return s;
}

CardSpec spec_of(const Scenario& scenario, unsigned card) {
  CardSpec spec = scenario.card;
  for (const CardChange& c : scenario.changes) {
    if (!std::binary_search(c.cards.begin(), c.cards.end(), card)) continue;
    if (!c.profile.empty()) spec.profile = c.profile;
    if (!c.options.empty()) spec.options += (spec.options.empty() ? "" : ",") + c.options;
  }
  spec.options = with_number(std::move(spec.options), card);
  return spec;
}

std::string with_number(std::string options, unsigned card) {
  const std::string place = "{card}", number = std::to_string(card);
  for (std::size_t at = 0; (at = options.find(place, at)) != std::string::npos; at += number.size())
    options.replace(at, place.size(), number);
  return options;
}

bool names_output(const std::string& option) {
  const std::string key = option.substr(0, option.find('='));
  return key == "trace" || key == "capture" || key == "record";
}

void check_files(const Scenario& scenario, const std::vector<unsigned>& rank_of, unsigned cards) {
  std::map<std::string, unsigned> writers;  // a card of each file
  for (unsigned card = 0; card < cards; ++card) {
    std::istringstream options(spec_of(scenario, card).options);
    for (std::string option; std::getline(options, option, ',');) {
      if (!names_output(option)) continue;
      const unsigned first = writers.try_emplace(option, card).first->second;
      if (rank_of[first] != rank_of[card])
        throw ScenarioError(
            option + ": cards " + std::to_string(first) + " and " + std::to_string(card) +
            " are of different ranks, and one file is written by one of them: put {card} into "
            "its name, or take fewer ranks");
    }
  }
}

}  // namespace hcasim::fabric
