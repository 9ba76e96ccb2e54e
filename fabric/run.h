// SPDX-License-Identifier: GPL-2.0-or-later
// A scenario, built in ns-3 and run.
#ifndef HCASIM_FABRIC_RUN_H
#define HCASIM_FABRIC_RUN_H

#include <functional>
#include <string>
#include <vector>

#include "fabric/scenario.h"
#include "fabric/traffic.h"

namespace hcasim::fabric {

struct LinkResult {
  std::string from, to;
  double gbps = 0;        // its rate
  double load = 0;        // 0 to 1, of the run's time
  bool measured = false;  // at a switch; of a card's the counters below are not
  PortCounters counters;  // of the output at `from`
};

struct Result {
  std::string name;
  unsigned cards = 0, switches = 0, ranks = 1;
  double least_gbps = 0, most_gbps = 0;  // of cards
  struct Job {
    std::string name, kind;
    std::uint64_t messages = 0, done = 0, bytes = 0;
    Time first = kNever, last = 0;  // first ready, last done
    std::vector<Time> durations;    // of those done, from when they were ready: sorted
  };
  std::vector<Job> jobs;
  std::vector<LinkResult> links;
  struct Sample {
    Time at = 0;
    std::uint64_t longest_queue = 0, buffered = 0, delivered = 0;  // bytes; delivered: of messages, so far
  };
  std::vector<Sample> samples;
  Time begin = 0;            // of the workloads, in simulated time; all other times count from here
  Time simulated = 0;        // from there on
  std::uint64_t frames = 0;  // that have left the cards, during the run
  std::uint64_t marked = 0, dropped_full = 0, dropped_headroom = 0, dropped_unrouted = 0;
  std::uint64_t pauses_by_switches = 0, pauses_by_cards = 0, cnps = 0, retransmits = 0, refused = 0;
  std::uint64_t arrivals_hash = 0;
  std::string failure;
  double wall_setup_s = 0, wall_run_s = 0, cpu_run_s = 0;
  std::uint64_t memory_bytes = 0;  // at the end; this, cpu_run_s and events: of all ranks
  std::uint64_t events = 0;        // of ns-3's loop, cancelled ones as well
};

// progress: a line to be shown in place of the one before. Throws ScenarioError, bare::BareError. Once a
// process. The result is the same for any number of ranks, but for what it costs, and at each of them.
Result run_scenario(const Scenario& scenario, const Ranks& ranks,
                    const std::function<void(const std::string&)>& progress);

}  // namespace hcasim::fabric
#endif
