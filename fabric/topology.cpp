// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/topology.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace hcasim::fabric {

namespace {

constexpr double kSlowest = 1, kFastest = 1600;            // Gb/s
constexpr double kShortestDelay = 1, kLongestDelay = 1e7;  // ns

class Builder {
 public:
  Builder(const TopologySpec& spec, unsigned cards) : spec_(spec) { t_.cards = cards; }
  unsigned add_switch(const std::string& name, unsigned number, int group) {
    t_.switches.push_back(name + std::to_string(number));
    t_.groups.push_back(group);
    return t_.nodes() - 1;
  }
  void card(unsigned card, unsigned at) { t_.edges.push_back({card, at, spec_.host_delay, 0}); }
  void link(unsigned a, unsigned b) { t_.edges.push_back({a, b, spec_.fabric_delay, spec_.fabric_gbps}); }
  Topology take() { return std::move(t_); }

 private:
  const TopologySpec& spec_;
  Topology t_;
};

Topology star(const TopologySpec& s) {
  Builder b(s, s.hosts);
  const unsigned at = b.add_switch("switch", 0, 0);
  for (unsigned i = 0; i < s.hosts; ++i) b.card(i, at);
  return b.take();
}

// Switches with `cards` each, all of them joined to each spine; number(i, c): of card c at switch i.
template <class Number>
Topology two_tiers(const TopologySpec& s, const char* name, unsigned switches, unsigned cards,
                   Number number) {
  Builder b(s, switches * cards);
  std::vector<unsigned> spines;
  for (unsigned i = 0; i < s.spines; ++i) spines.push_back(b.add_switch("spine", i, kAbove));
  for (unsigned i = 0; i < switches; ++i) {
    const unsigned at = b.add_switch(name, i, static_cast<int>(i));
    for (unsigned c = 0; c < cards; ++c) b.card(number(i, c), at);
    for (const unsigned spine : spines) b.link(at, spine);
  }
  return b.take();
}

Topology leaf_spine(const TopologySpec& s) {
  return two_tiers(s, "leaf", s.leaves, s.hosts, [&](unsigned i, unsigned c) { return i * s.hosts + c; });
}

// Al-Fares et al., SIGCOMM 2008: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches.
Topology fat_tree(const TopologySpec& s) {
  const unsigned half = s.k / 2;
  Builder b(s, s.k * half * half);
  std::vector<unsigned> core;
  for (unsigned i = 0; i < half * half; ++i) core.push_back(b.add_switch("core", i, kAbove));
  for (unsigned pod = 0; pod < s.k; ++pod) {
    std::vector<unsigned> aggregation;
    for (unsigned i = 0; i < half; ++i) {
      aggregation.push_back(b.add_switch("aggregation", pod * half + i, static_cast<int>(pod)));
      for (unsigned j = 0; j < half; ++j) b.link(aggregation.back(), core[i * half + j]);
    }
    for (unsigned i = 0; i < half; ++i) {
      const unsigned edge = b.add_switch("edge", pod * half + i, static_cast<int>(pod));
      for (unsigned j = 0; j < half; ++j) b.card((pod * half + i) * half + j, edge);
      for (const unsigned a : aggregation) b.link(edge, a);
    }
  }
  return b.take();
}

// Card r of each server is on rail switch r; card number = server * rails + r.
Topology rail(const TopologySpec& s) {
  return two_tiers(s, "rail", s.rails, s.servers, [&](unsigned r, unsigned i) { return i * s.rails + r; });
}

}  // namespace

TopologySpec read_topology(Section t, Section l) {
  TopologySpec s;
  const auto number = [&t](const char* key, unsigned low, unsigned high) {
    return static_cast<unsigned>(t.whole(key, low, high));
  };
  s.kind = t.word("kind", "", {"star", "leaf-spine", "fat-tree", "rail"});
  std::uint64_t cards = 0;
  if (s.kind == "star") {
    cards = s.hosts = number("hosts", 2, kMostPorts);
  } else if (s.kind == "leaf-spine") {
    s.leaves = number("leaves", 1, kMostPorts);
    s.spines = number("spines", 1, kMostPorts / 2);
    s.hosts = number("hosts", 1, kMostPorts / 2);
    cards = std::uint64_t{s.leaves} * s.hosts;
  } else if (s.kind == "fat-tree") {
    s.k = number("k", 2, 24);
    if (s.k % 2 != 0) t.fail("k", "must be even");
    cards = std::uint64_t{s.k} * s.k * s.k / 4;
  } else {
    s.servers = number("servers", 1, kMostPorts / 2);
    s.rails = number("rails", 1, kMostPorts);
    s.spines = number("spines", 1, kMostPorts / 2);
    cards = std::uint64_t{s.servers} * s.rails;
  }
  if (cards < 2 || cards > kMostHosts)
    t.fail("kind", "these are " + std::to_string(cards) + " cards; from 2 to " + std::to_string(kMostHosts) +
                       " are possible");
  t.done();
  s.fabric_gbps = l.real("fabric_gbps", s.fabric_gbps, kSlowest, kFastest);
  s.host_delay = static_cast<Time>(l.real("host_ns", 150, kShortestDelay, kLongestDelay) * kNs);
  s.fabric_delay = static_cast<Time>(l.real("fabric_ns", 500, kShortestDelay, kLongestDelay) * kNs);
  l.done();
  return s;
}

std::string Topology::name(unsigned node) const {
  return is_card(node) ? "card" + std::to_string(node) : switches[node - cards];
}

std::vector<std::vector<unsigned>> Topology::neighbours() const {
  std::vector<std::vector<unsigned>> list(nodes());
  for (const Edge& e : edges) {
    list[e.a].push_back(e.b);
    list[e.b].push_back(e.a);
  }
  return list;
}

Topology build_topology(const TopologySpec& spec) {
  if (spec.kind == "star") return star(spec);
  if (spec.kind == "leaf-spine") return leaf_spine(spec);
  if (spec.kind == "fat-tree") return fat_tree(spec);
  return rail(spec);
}

std::vector<unsigned> partition(const Topology& t, unsigned ranks) {
  const auto groups = static_cast<unsigned>(*std::max_element(t.groups.begin(), t.groups.end()) + 1);
  if (ranks == 0 || ranks > groups)
    throw ScenarioError("--ranks " + std::to_string(ranks) +
                        ": pods and racks are not divided, and here are " + std::to_string(groups));
  std::vector<unsigned> rank(t.nodes());
  unsigned above = 0;
  for (unsigned s = 0; s < t.switches.size(); ++s) {
    const int group = t.groups[s];
    rank[t.cards + s] = group == kAbove ? above++ % ranks : static_cast<unsigned>(group) * ranks / groups;
  }
  for (const Topology::Edge& e : t.edges)
    if (t.is_card(e.a)) rank[e.a] = rank[e.b];
  return rank;
}

Time lookahead(const Topology& t) {
  constexpr Time kMost = 10 * kUs, kUncut = 2 * kUs;
  Time between = kNever;
  for (const Topology::Edge& e : t.edges)
    if (!t.is_card(e.a)) between = std::min(between, e.delay);
  return between != kNever ? std::min(between, kMost) : kUncut;
}

void shortest_routes(const Topology& t, const std::vector<bool>& wanted, const TellRoute& tell) {
  const auto ports = t.neighbours();
  constexpr unsigned kFar = std::numeric_limits<unsigned>::max();
  // Cards of one switch are reached by the same ways.
  std::vector<std::vector<unsigned>> cards_of(t.nodes());
  for (unsigned c = 0; c < t.cards; ++c) cards_of[ports[c].front()].push_back(c);
  for (unsigned edge = t.cards; edge < t.nodes(); ++edge) {
    if (cards_of[edge].empty()) continue;
    std::vector<unsigned> distance(t.nodes(), kFar);
    std::deque<unsigned> todo{edge};
    distance[edge] = 0;
    while (!todo.empty()) {
      const unsigned at = todo.front();
      todo.pop_front();
      for (const unsigned next : ports[at]) {
        if (t.is_card(next) || distance[next] != kFar) continue;
        distance[next] = distance[at] + 1;
        todo.push_back(next);
      }
    }
    for (unsigned s = t.cards; s < t.nodes(); ++s) {
      if (!wanted[s - t.cards] || s == edge) continue;
      std::vector<unsigned> way;
      for (unsigned p = 0; p < ports[s].size(); ++p) {
        const unsigned next = ports[s][p];
        if (!t.is_card(next) && distance[next] != kFar && distance[next] + 1 == distance[s]) way.push_back(p);
      }
      for (const unsigned c : cards_of[edge]) tell(s - t.cards, c, way);
    }
    for (unsigned p = 0; wanted[edge - t.cards] && p < ports[edge].size(); ++p) {
      const unsigned next = ports[edge][p];
      if (t.is_card(next)) tell(edge - t.cards, next, {p});
    }
  }
}

}  // namespace hcasim::fabric
