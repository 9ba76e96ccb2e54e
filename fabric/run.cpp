// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/run.h"

#include "driver/bare/rules.h"
#include "fabric/estimate.h"
#include "fabric/network.h"

#include <ns3/simulator.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <sstream>

namespace hcasim::fabric {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string microseconds(Time t) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f us", static_cast<double>(t) / static_cast<double>(kUs));
  return text;
}

// Looks at this rank's queues at its times.
class Watch {
 public:
  Watch(const Network& network, const Traffic& traffic, Time every, std::vector<Result::Sample>& samples)
      : network_(network), traffic_(traffic), every_(every), samples_(samples) {}

  void look() {
    if (start_ == kNever) start_ = now();
    samples_.push_back(
        {now() - start_, network_.longest_queue(), network_.buffered(), traffic_.bytes_done()});
    ns3::Simulator::Schedule(until(now() + every_, Turn::kLook), &Watch::look, this);
  }

 private:
  const Network& network_;
  const Traffic& traffic_;
  const Time every_;
  std::vector<Result::Sample>& samples_;
  Time start_ = kNever;
};

// ---- What ranks make one of ----

void join_samples(std::vector<Result::Sample>& samples, const Ranks& ranks) {
  std::vector<std::uint64_t> longest, sums;
  for (const Result::Sample& s : samples) {
    longest.push_back(s.longest_queue);
    sums.insert(sums.end(), {s.buffered, s.delivered});
  }
  ranks.greatest(longest);
  ranks.add(sums);
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] = {samples[i].at, longest[i], sums[2 * i], sums[2 * i + 1]};
}

// A message's times are known where its source is. Of each: when it was ready, when done.
std::vector<Time> join_times(const std::vector<Traffic::Times>& own, const Ranks& ranks) {
  std::vector<Time> times;
  times.reserve(2 * own.size());
  for (const Traffic::Times& t : own) times.insert(times.end(), {t.ready, t.done});
  ranks.least(times);
  return times;
}

// The first message that has failed, and the rules broken anywhere.
std::string join_failures(const Traffic::Failure& failure, const std::set<std::string>& broken,
                          const Ranks& ranks) {
  std::vector<Time> at{failure.at};
  ranks.least(at);
  std::vector<Time> message{failure.at == at[0] ? Time{failure.message} : kNever};
  ranks.least(message);
  const bool first = failure.at == at[0] && Time{failure.message} == message[0];
  std::string text;
  // Where none has failed the texts are empty.
  for (const std::string& one : ranks.texts(first ? failure.text : "")) text += one;
  std::string own;
  for (const std::string& rule : broken) own += rule + "\n";
  std::set<std::string> rules;
  for (const std::string& one : ranks.texts(own)) {
    std::istringstream lines(one);
    for (std::string rule; std::getline(lines, rule);) rules.insert(rule);
  }
  for (const std::string& rule : rules) text += (text.empty() ? "" : "; ") + ("rule broken: " + rule);
  return text;
}

void collect_jobs(const Scenario& scenario, const Workload& workload, const std::vector<Time>& times,
                  Result& r) {
  for (const WorkloadSpec& w : scenario.workloads) {
    Result::Job job;
    job.name = w.name;
    job.kind = w.kind;
    r.jobs.push_back(std::move(job));
  }
  for (std::size_t i = 0; i < workload.messages.size(); ++i) {
    Result::Job& job = r.jobs[workload.messages[i].job];
    const Time ready = times[2 * i], done = times[2 * i + 1];
    ++job.messages;
    if (ready != kNever) job.first = std::min(job.first, ready);
    if (done == kNever) continue;
    ++job.done;
    job.bytes += workload.messages[i].bytes;
    job.last = std::max(job.last, done);
    job.durations.push_back(done - ready);
  }
  for (Result::Job& job : r.jobs) std::sort(job.durations.begin(), job.durations.end());
}

// As planned, when all ranks' cards have long done what their set-up gave them to do: so what was set up
// before what, and how long it took, makes no difference. Where set-up takes longer (firmware that a profile
// makes slow), the next whole second.
Time common_begin(Time planned, const Ranks& ranks) {
  constexpr Time kSettle = kMs, kSecond = 1000 * kMs;
  std::vector<std::uint64_t> settled{static_cast<std::uint64_t>(now() + kSettle)};
  ranks.greatest(settled);
  const auto least = static_cast<Time>(settled[0]);
  return least <= planned ? planned : (least + kSecond - 1) / kSecond * kSecond;
}

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

}  // namespace

Result run_scenario(const Scenario& scenario, const Ranks& ranks,
                    const std::function<void(const std::string&)>& progress) {
  use_turns();
  const Clock::time_point began = Clock::now();
  Result r;
  r.name = scenario.name;
  const Topology topology = build_topology(scenario.topology);
  const Workload workload = build_workload(scenario.workloads, topology.cards);
  const std::vector<unsigned> rank_of = partition(topology, ranks.count());
  std::vector<unsigned> here;
  for (unsigned c = 0; c < topology.cards; ++c)
    if (rank_of[c] == ranks.number()) here.push_back(c);
  r.cards = topology.cards;
  r.switches = static_cast<unsigned>(topology.switches.size());
  r.ranks = ranks.count();
  const Extent extent = extent_of(topology, workload);
  check_memory(extent, memory_of_rank(extent, ranks.count(), here.size()),
               ranks.count() > 1 ? "on each of " + std::to_string(ranks.count()) + " ranks" : "");
  // What ns-3 and the model hold on to lives as long as they do: to the end of the process.
  auto& coupling = *new Coupling;
  const std::string on_each = ranks.count() > 1 ? " on each rank" : "";
  progress("making " + std::to_string(here.size()) + " cards" + on_each);
  if (ranks.count() > 1) check_files(scenario, rank_of, topology.cards);
  auto& cards = *new Cards(scenario, topology.cards, here, 2 * extent.pairs, coupling, ranks);
  r.least_gbps = r.most_gbps = cards.rate_gbps(0);
  for (unsigned i = 1; i < topology.cards; ++i) {
    r.least_gbps = std::min(r.least_gbps, cards.rate_gbps(i));
    r.most_gbps = std::max(r.most_gbps, cards.rate_gbps(i));
  }
  auto& border = *new Border(ranks);
  auto& network = *new Network(topology, rank_of, scenario.switches, cards, ranks, border);
  auto& traffic = *new Traffic(workload, cards, coupling);
  Clock::time_point told = Clock::now();
  const auto now_and_then = [&](const std::string& line) {
    if (seconds_since(told) < 0.5) return;
    told = Clock::now();
    progress(line);
  };
  const bare::RuleWatch rules;
  cards.start(traffic.needs(), ranks, [&](unsigned n) {
    now_and_then("bringing up cards: " + std::to_string(n) + " of " + std::to_string(here.size()) + on_each);
  });
  traffic.connect(ranks, [&](std::size_t n, std::size_t of) {
    now_and_then("connecting: " + std::to_string(n) + " of " + std::to_string(of) + " pairs");
  });
  r.wall_setup_s = seconds_since(began);

  const Clock::time_point started = Clock::now();
  const double cpu = cpu_seconds();
  const std::uint64_t events = ns3::Simulator::GetEventCount();
  const Time start = r.begin = common_begin(planned_begin(extent), ranks);
  coupling.run(start);
  Watch watch(network, traffic, scenario.sample, r.samples);
  coupling.begin(start);
  network.begin(start);
  traffic.begin(start);
  watch.look();
  // In spans in which no rank can hear of another: also where there is but one, as a run ends with a span.
  const Time span = lookahead(topology), end = start + scenario.until;
  Border::Progress all;
  while (now() < end && all.failed == 0 && all.done < workload.messages.size()) {
    coupling.run(std::min(now() + span, end));
    all = border.meet({traffic.done(), traffic.failure().text.empty() ? 0u : 1u});
    now_and_then(microseconds(now() - start) + " simulated, " + std::to_string(all.done) + " of " +
                 std::to_string(workload.messages.size()) + " messages");
  }
  r.simulated = now() - start;
  r.wall_run_s = seconds_since(started);
  collect_jobs(scenario, workload, join_times(traffic.times(), ranks), r);
  network.collect(r, r.simulated);
  join_samples(r.samples, ranks);
  r.failure = join_failures(traffic.failure(), rules.broken(), ranks);
  std::vector<std::uint64_t> costs{static_cast<std::uint64_t>((cpu_seconds() - cpu) * 1e6), peak_memory(),
                                   ns3::Simulator::GetEventCount() - events};
  ranks.add(costs);
  r.cpu_run_s = static_cast<double>(costs[0]) * 1e-6;
  r.memory_bytes = costs[1];
  r.events = costs[2];
  // Their traces and captures are complete with this; the rest of them goes with the process.
  for (const unsigned i : here) hca_destroy(cards.function(i).handle());
  return r;
}

}  // namespace hcasim::fabric
