// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fabric/workload.h"

namespace hcasim::fabric {
namespace {

TopologySpec leaf_spine(unsigned leaves, unsigned hosts, unsigned spines) {
  TopologySpec spec;
  spec.kind = "leaf-spine";
  spec.leaves = leaves, spec.hosts = hosts, spec.spines = spines;
  return spec;
}
TopologySpec fat_tree(unsigned k) {
  TopologySpec spec;
  spec.kind = "fat-tree";
  spec.k = k;
  return spec;
}
TopologySpec rails(unsigned servers, unsigned rails, unsigned spines) {
  TopologySpec spec;
  spec.kind = "rail";
  spec.servers = servers, spec.rails = rails, spec.spines = spines;
  return spec;
}

// Of each switch, to each card; of switches that are not wanted, nothing. Each is told once.
using Routes = std::vector<std::vector<std::vector<unsigned>>>;
Routes routes_of(const Topology& t, const std::vector<bool>& wanted) {
  Routes routes(t.switches.size(), std::vector<std::vector<unsigned>>(t.cards));
  shortest_routes(t, wanted, [&](unsigned at, unsigned card, const std::vector<unsigned>& ports) {
    EXPECT_TRUE(routes[at][card].empty()) << at << " to " << card;
    routes[at][card] = ports;
  });
  return routes;
}
Routes routes_of(const Topology& t) { return routes_of(t, std::vector<bool>(t.switches.size(), true)); }

// Follows each way from a card to another; false if one goes round or ends elsewhere. hops: switches on it.
bool arrives(const Topology& t, const Routes& routes, unsigned from, unsigned to, unsigned& hops) {
  const auto ports = t.neighbours();
  std::vector<unsigned> at{ports[from].front()};
  for (hops = 1; hops < 10; ++hops) {
    std::vector<unsigned> next;
    for (const unsigned s : at) {
      const auto& way = routes[s - t.cards][to];
      if (way.empty()) return false;
      for (const unsigned p : way) next.push_back(ports[s][p]);
    }
    const bool all = std::all_of(next.begin(), next.end(), [to](unsigned n) { return n == to; });
    const bool some = std::any_of(next.begin(), next.end(), [&t](unsigned n) { return t.is_card(n); });
    if (all) return true;
    if (some) return false;
    at = std::move(next);
  }
  return false;
}

TEST(Topology, EachCardReachesEachOtherOneOnAllShortestWays) {
  TopologySpec star;
  star.hosts = 5;
  for (const TopologySpec& spec : {star, leaf_spine(3, 2, 2), fat_tree(4), rails(3, 2, 2)}) {
    const Topology t = build_topology(spec);
    const Routes routes = routes_of(t);
    for (unsigned a = 0; a < t.cards; ++a) {
      for (unsigned b = 0; b < t.cards; ++b) {
        unsigned hops = 0;
        EXPECT_TRUE(a == b || arrives(t, routes, a, b, hops)) << spec.kind << " " << a << " to " << b;
        EXPECT_LE(hops, spec.kind == "fat-tree" ? 5u : 3u);
      }
    }
  }
}

TEST(Topology, AFatTreeHasItsSizesAndWays) {
  const Topology t = build_topology(fat_tree(4));
  EXPECT_EQ(t.cards, 16u);
  EXPECT_EQ(t.switches.size(), 20u);
  EXPECT_EQ(t.edges.size(), 48u);
  const Routes routes = routes_of(t);
  const unsigned edge = t.neighbours()[0].front() - t.cards;
  EXPECT_EQ(routes[edge][0].size(), 1u);
  EXPECT_EQ(routes[edge][15].size(), 2u) << "up by either";
}

// ---- What is sent ----

std::uint64_t sum(const Workload& w) {
  std::uint64_t bytes = 0;
  for (const Message& m : w.messages) bytes += m.bytes;
  return bytes;
}

// All of them come to their turn.
std::size_t reachable(const Workload& w) {
  std::vector<std::uint32_t> waits;
  std::vector<std::uint32_t> todo;
  for (std::uint32_t i = 0; i < w.messages.size(); ++i) {
    waits.push_back(w.messages[i].waits);
    if (waits[i] == 0) todo.push_back(i);
  }
  std::size_t done = 0;
  while (!todo.empty()) {
    const std::uint32_t at = todo.back();
    todo.pop_back();
    ++done;
    for (const Dependency& d : w.dependencies) {
      if (d.before != at) continue;
      const Message &a = w.messages[at], &b = w.messages[d.after];
      EXPECT_TRUE(b.source == a.destination || b.source == a.source);
      if (--waits[d.after] == 0) todo.push_back(d.after);
    }
  }
  return done;
}

TEST(Workload, EachKindSendsWhatItsNameSays) {
  WorkloadSpec w;
  w.bytes = 1000;
  w.name = w.kind = "all-to-all";
  w.peers = 3;
  w.rounds = 2;
  w.window = 2;
  Workload all = build_workload({w}, 4);
  EXPECT_EQ(all.messages.size(), 24u);
  EXPECT_EQ(reachable(all), 24u);
  w.kind = "incast";
  w.senders = 3;
  w.receiver = 2;
  Workload in = build_workload({w}, 4);
  EXPECT_EQ(in.messages.size(), 6u);
  for (const Message& m : in.messages) EXPECT_EQ(m.destination, 2u);
  w.kind = "ring-allreduce";
  w.cards = 4;
  Workload ring = build_workload({w}, 4);
  EXPECT_EQ(ring.messages.size(), 24u);
  EXPECT_EQ(sum(ring), 24u * 250);
  EXPECT_EQ(reachable(ring), 24u);
  w.kind = "tree-allreduce";
  w.chunks = 2;
  for (const unsigned arity : {1u, 2u, 3u}) {
    w.arity = arity;
    Workload tree = build_workload({w}, 4);
    EXPECT_EQ(sum(tree), 2u * 3 * 1000) << "up and down each edge once";
    EXPECT_EQ(reachable(tree), tree.messages.size());
  }
}

// Which ranks the nodes of each group are of.
std::vector<std::set<unsigned>> ranks_of_groups(const Topology& t, const std::vector<unsigned>& rank) {
  std::vector<std::set<unsigned>> groups;
  const auto ports = t.neighbours();
  for (unsigned n = 0; n < t.nodes(); ++n) {
    const int group = t.groups[(t.is_card(n) ? ports[n].front() : n) - t.cards];
    if (group == kAbove) continue;
    if (groups.size() <= static_cast<unsigned>(group)) groups.resize(static_cast<unsigned>(group) + 1);
    groups[static_cast<unsigned>(group)].insert(rank[n]);
  }
  return groups;
}

TEST(Topology, RoutesOfSomeSwitchesAreThoseOfAll) {
  const Topology t = build_topology(fat_tree(4));
  std::vector<bool> wanted(t.switches.size());
  for (const unsigned s : {0u, 5u, 7u, 19u}) wanted[s] = true;
  const Routes all = routes_of(t), some = routes_of(t, wanted);
  for (unsigned s = 0; s < t.switches.size(); ++s) {
    if (wanted[s])
      EXPECT_EQ(some[s], all[s]) << s;
    else
      EXPECT_EQ(some[s], std::vector<std::vector<unsigned>>(t.cards)) << s;
  }
}

TEST(Topology, RanksGetWholePodsAndRacksAndAsManyEach) {
  for (const TopologySpec& spec : {leaf_spine(5, 2, 4), fat_tree(4), rails(3, 4, 4)}) {
    const Topology t = build_topology(spec);
    for (const unsigned ranks : {1u, 2u, 4u}) {
      const std::vector<unsigned> rank = partition(t, ranks);
      ASSERT_EQ(rank.size(), t.nodes());
      std::vector<unsigned> groups(ranks), above(ranks);
      for (const std::set<unsigned>& of : ranks_of_groups(t, rank)) {
        ASSERT_EQ(of.size(), 1u) << spec.kind;
        ++groups[*of.begin()];
      }
      for (unsigned s = 0; s < t.switches.size(); ++s)
        if (t.groups[s] == kAbove) ++above[rank[t.cards + s]];
      for (const auto& shares : {groups, above}) {
        const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
        EXPECT_LE(*most - *least, 1u) << spec.kind << ", " << ranks << " ranks";
      }
    }
    EXPECT_THROW(partition(t, 6), ScenarioError) << spec.kind;
    EXPECT_THROW(partition(t, 0), ScenarioError);
  }
}

TEST(Topology, RanksNeedNotMeetWithinTheShortestLinkThatMayBeCut) {
  TopologySpec spec = leaf_spine(2, 2, 2);
  spec.host_delay = 100 * kNs, spec.fabric_delay = 700 * kNs;
  EXPECT_EQ(lookahead(build_topology(spec)), 700 * kNs);
  spec.fabric_delay = 5 * kMs;
  EXPECT_EQ(lookahead(build_topology(spec)), 10 * kUs);
  spec.kind = "star";
  EXPECT_EQ(lookahead(build_topology(spec)), 2 * kUs);
}

}  // namespace
}  // namespace hcasim::fabric
