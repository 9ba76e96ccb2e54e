// SPDX-License-Identifier: GPL-2.0-or-later
// A run as its file describes it (docs/fabric.md).
#ifndef HCASIM_FABRIC_SCENARIO_H
#define HCASIM_FABRIC_SCENARIO_H

#include <string>
#include <utility>
#include <vector>

#include "fabric/switch.h"
#include "fabric/topology.h"
#include "fabric/workload.h"

namespace hcasim::fabric {

// By the names that mlx5_ifc.h and mlxconfig have (model/cc/params.h says what they do and their units). What
// else a card limits, such as rates to that of its link, it says when it is told.
struct DcqcnKey {
  const char* name;
  std::uint32_t low, high;
  bool rate = false;  // in Mb/s, and at most the link's
};
enum DcqcnRow : unsigned {
  kTimeReset,
  kByteReset,
  kThreshold,
  kMaxRate,
  kAiRate,
  kHaiRate,
  kGd,
  kMinDecFac,
  kMinRate,
  kFirstCnpRate,
  kAlphaG,
  kAlphaPeriod,
  kCutPeriod,
  kInitialAlpha,
  kCnpInterval,
  kClampTarget,
  kClampTargetAfterTime
};
inline constexpr DcqcnKey kDcqcnKeys[] = {{"rpg_time_reset", 0, 131071},
                                          {"rpg_byte_reset", 0, UINT32_MAX},
                                          {"rpg_threshold", 0, 31},
                                          {"rpg_max_rate", 0, UINT32_MAX, true},
                                          {"rpg_ai_rate", 0, UINT32_MAX, true},
                                          {"rpg_hai_rate", 0, UINT32_MAX, true},
                                          {"rpg_gd", 0, 15},
                                          {"rpg_min_dec_fac", 0, 100},
                                          {"rpg_min_rate", 1, UINT32_MAX, true},
                                          {"rate_to_set_on_first_cnp", 0, UINT32_MAX, true},
                                          {"dce_tcp_g", 0, 1023},
                                          {"dce_tcp_rtt", 1, 131071},
                                          {"rate_reduce_monitor_period", 1, 1000000},
                                          {"initial_alpha_value", 1, 1023},
                                          {"min_time_between_cnps", 0, 131071},
                                          {"clamp_tgt_rate", 0, 1},
                                          {"clamp_tgt_rate_after_time_inc", 0, 1}};

// A row of kDcqcnKeys with the value that a file has for it, and where.
struct DcqcnValue {
  unsigned row = 0;
  std::uint32_t value = 0;
  std::string at;  // Section::place()
};

struct CardSpec {
  std::string profile = "connectx5-100g-roce";
  std::string options;                   // further ones of hca_create()
  unsigned priority = 3;                 // of what the workloads send, by its DSCP
  bool dcqcn = true;                     // reaction and notification points of that priority
  std::vector<DcqcnValue> dcqcn_values;  // parameters of theirs that are not as the card is delivered
  unsigned mtu = 4096;                   // of the path
  unsigned ack_timeout = 14, retries = 7;
  std::string profile_at, options_at;  // where these stand in the file (Section::place())
};

// What some cards have in place of, or besides, what all have.
struct CardChange {
  std::vector<unsigned> cards;
  std::string profile;  // empty: that of all
  std::string options;  // behind those of all
  std::string profile_at, options_at;
};

struct Scenario {
  std::string name;
  std::uint64_t seed = 1;  // of all that is left to chance
  TopologySpec topology;
  SwitchConfig switches;
  CardSpec card;
  std::vector<CardChange> changes;  // of several for one card each comes on top of those before it
  std::vector<WorkloadSpec> workloads;
  Time until = 0;   // of the run, from its begin; the workloads may end before
  Time sample = 0;  // between two looks at queues
};

// Throws ScenarioError: file, line, key, what is allowed.
Scenario read_scenario(const std::string& file);

// Of one card. {card} in its options is its number.
CardSpec spec_of(const Scenario& scenario, unsigned card);
std::string with_number(std::string options, unsigned card);
// Whether a card's option, KEY=VALUE, names a file that the card writes.
bool names_output(const std::string& option);
// Throws ScenarioError if cards of several ranks would write one file.
void check_files(const Scenario& scenario, const std::vector<unsigned>& rank_of, unsigned cards);

}  // namespace hcasim::fabric
#endif
