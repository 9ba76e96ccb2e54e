// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/run.h"

#include "driver/bare/rules.h"

#include <ns3/node.h>
#include <ns3/simulator.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>

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

// Nodes, links, devices, switches with their routes.
class Network {
 public:
  Network(const Topology& topology, const SwitchConfig& config, Cards& cards)
      : topology_(topology), cards_(cards) {
    std::vector<ns3::Ptr<ns3::Node>> nodes;
    for (unsigned i = 0; i < topology.nodes(); ++i) nodes.push_back(ns3::CreateObject<ns3::Node>());
    for (unsigned i = 0; i < topology.switches.size(); ++i)
      switches_.push_back(std::make_unique<SwitchNode>(config, i));
    for (const Topology::Edge& e : topology.edges) {
      const Joint joint = join(nodes[e.a], nodes[e.b], e.gbps != 0 ? e.gbps : cards.rate_gbps(), e.delay);
      for (const auto& [node, device] : {std::pair(e.a, joint.a), std::pair(e.b, joint.b)}) {
        if (topology.is_card(node))
          cards.port(node).join(cards.function(node), device);
        else
          switches_[node - topology.cards]->add(device);
      }
    }
    const Routes routes = shortest_routes(topology);
    for (unsigned s = 0; s < switches_.size(); ++s) {
      for (unsigned c = 0; c < topology.cards; ++c) {
        std::uint8_t mac[6];
        hca_get_mac(cards.function(c).handle(), mac);
        std::uint64_t key = 0;
        for (const std::uint8_t byte : mac) key = key << 8 | byte;
        switches_[s]->at().add_route(key, routes[s][c]);
      }
    }
  }

  std::uint64_t longest_queue() const {
    std::uint64_t most = 0;
    for (const auto& s : switches_)
      for (unsigned p = 0; p < s->at().ports(); ++p) most = std::max(most, s->at().queued(p));
    return most;
  }
  std::uint64_t buffered() const {
    std::uint64_t sum = 0;
    for (const auto& s : switches_) sum += s->at().buffered();
    return sum;
  }
  void collect(Result& r, Time lasted) const {
    const auto neighbours = topology_.neighbours();
    for (unsigned c = 0; c < topology_.cards; ++c) {
      const CardPort& port = cards_.port(c);
      const double wire = static_cast<double>(port.bytes_out() + port.frames_out() * kGap);
      LinkResult link{topology_.name(c),
                      topology_.name(neighbours[c].front()),
                      r.rate_gbps,
                      lasted > 0 ? wire * 8000 / r.rate_gbps / static_cast<double>(lasted) : 0,
                      false,
                      {}};
      link.counters.tx_frames = port.frames_out();
      link.counters.tx_bytes = port.bytes_out();
      r.links.push_back(std::move(link));
      r.arrivals_hash += port_share(c, 0, port.arrivals_hash());
      r.frames += port.frames_out();
      r.pauses_by_cards += port.pauses_out();
      r.refused += port.refused();
      r.cnps += cards_.counter(c, "cnp_sent");
      r.retransmits += cards_.counter(c, "retransmits");
    }
    for (unsigned s = 0; s < switches_.size(); ++s) {
      const unsigned node = topology_.cards + s;
      for (unsigned p = 0; p < switches_[s]->at().ports(); ++p) {
        const PortCounters k = switches_[s]->at().counters(p, now());
        r.links.push_back(
            {topology_.name(node), topology_.name(neighbours[node][p]), switches_[s]->at().rate_gbps(p),
             lasted > 0 ? static_cast<double>(k.busy) / static_cast<double>(lasted) : 0, true, k});
        r.marked += k.marked;
        r.dropped_full += k.dropped_full;
        r.dropped_headroom += k.dropped_headroom;
        r.dropped_unrouted += k.dropped_unrouted;
        r.pauses_by_switches += k.pauses_sent;
        r.arrivals_hash += port_share(node, p, k.arrivals_hash);
      }
    }
  }

 private:
  const Topology& topology_;
  Cards& cards_;
  std::vector<std::unique_ptr<SwitchNode>> switches_;
};

// Looks at queues at its times, and tells how far the run is.
class Watch {
 public:
  Watch(Network& network, const Traffic& traffic, std::size_t messages, Time every, Result& result,
        const std::function<void(const std::string&)>& progress)
      : network_(network),
        traffic_(traffic),
        messages_(messages),
        every_(every),
        result_(result),
        progress_(progress) {}

  void look() {
    if (start_ == kNever) start_ = now();
    result_.samples.push_back(
        {now() - start_, network_.longest_queue(), network_.buffered(), traffic_.bytes_done()});
    if (seconds_since(told_) > 0.5) {
      told_ = Clock::now();
      progress_(microseconds(now() - start_) + " simulated, " + std::to_string(traffic_.done()) + " of " +
                std::to_string(messages_) + " messages");
    }
    ns3::Simulator::Schedule(ns3::PicoSeconds(every_), &Watch::look, this);
  }

 private:
  Network& network_;
  const Traffic& traffic_;
  const std::size_t messages_;
  const Time every_;
  Result& result_;
  const std::function<void(const std::string&)>& progress_;
  Time start_ = kNever;
  Clock::time_point told_ = Clock::now();
};

void collect_jobs(const Scenario& scenario, const Workload& workload, const Traffic& traffic, Result& r) {
  for (const WorkloadSpec& w : scenario.workloads) {
    Result::Job job;
    job.name = w.name;
    job.kind = w.kind;
    r.jobs.push_back(std::move(job));
  }
  for (std::size_t i = 0; i < workload.messages.size(); ++i) {
    Result::Job& job = r.jobs[workload.messages[i].job];
    const Traffic::Times& t = traffic.times()[i];
    ++job.messages;
    if (t.posted != kNever) job.first = std::min(job.first, t.posted);
    if (t.done == kNever) continue;
    ++job.done;
    job.bytes += workload.messages[i].bytes;
    job.last = std::max(job.last, t.done);
    job.durations.push_back(t.done - t.posted);
  }
  for (Result::Job& job : r.jobs) std::sort(job.durations.begin(), job.durations.end());
}

// Before the kernel ends the process in the midst of it.
void check_memory(std::uint64_t cards, std::uint64_t qps) {
  constexpr std::uint64_t kOfCard = 3u << 19, kOfQp = 24u << 10;  // bytes, as measured (docs/fabric.md)
  const std::uint64_t wanted = cards * kOfCard + qps * kOfQp;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("MemAvailable:", 0) != 0) continue;
    const std::uint64_t there = std::strtoull(line.c_str() + 13, nullptr, 10) << 10;
    if (wanted <= there) return;
    throw ScenarioError(std::to_string(cards) + " cards with " + std::to_string(qps) + " QPs take about " +
                        std::to_string(wanted >> 20) + " MiB, and " + std::to_string(there >> 20) +
                        " are available: take fewer cards or peers");
  }
}

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

}  // namespace

Result run_scenario(const Scenario& scenario, const std::function<void(const std::string&)>& progress) {
  use_picoseconds();
  const Clock::time_point began = Clock::now();
  Result r;
  r.name = scenario.name;
  const Topology topology = build_topology(scenario.topology);
  const Workload workload = build_workload(scenario.workloads, topology.cards);
  r.cards = topology.cards;
  r.switches = static_cast<unsigned>(topology.switches.size());
  check_memory(topology.cards, Traffic::connections(workload) * 2);
  // What ns-3 and the model hold on to lives as long as they do: to the end of the process.
  auto& coupling = *new Coupling;
  progress("making " + std::to_string(topology.cards) + " cards");
  auto& cards = *new Cards(scenario, topology.cards, Traffic::connections(workload) * 2, coupling);
  r.rate_gbps = cards.rate_gbps();
  auto& network = *new Network(topology, scenario.switches, cards);
  auto& traffic = *new Traffic(workload, cards, coupling);
  Clock::time_point told = Clock::now();
  const auto now_and_then = [&](const std::string& line) {
    if (seconds_since(told) < 0.5) return;
    told = Clock::now();
    progress(line);
  };
  const bare::RuleWatch rules;
  cards.start(traffic.needs(), [&](unsigned n) {
    now_and_then("bringing up cards: " + std::to_string(n) + " of " + std::to_string(topology.cards));
  });
  traffic.connect([&](std::size_t n, std::size_t of) {
    now_and_then("connecting: " + std::to_string(n) + " of " + std::to_string(of) + " pairs");
  });
  r.wall_setup_s = seconds_since(began);

  const Clock::time_point started = Clock::now();
  const double cpu = cpu_seconds();
  Watch watch(network, traffic, workload.messages.size(), scenario.sample, r, progress);
  traffic.begin();
  const Time start = now();
  watch.look();
  coupling.run(start + scenario.until);
  r.simulated = now() - start;
  r.wall_run_s = seconds_since(started);
  r.cpu_run_s = cpu_seconds() - cpu;
  r.failure = traffic.failure();
  collect_jobs(scenario, workload, traffic, r);
  network.collect(r, r.simulated);
  for (const std::string& rule : rules.broken())
    r.failure += (r.failure.empty() ? "" : "; ") + ("rule broken: " + rule);
  r.memory_bytes = peak_memory();
  // Their traces and captures are complete with this; the rest of them goes with the process.
  for (unsigned i = 0; i < topology.cards; ++i) hca_destroy(cards.function(i).handle());
  return r;
}

}  // namespace hcasim::fabric
