// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/topology.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fabric/workload.h"

namespace hcasim::fabric {
namespace {

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
  TopologySpec star, spine, fat, rail;
  star.hosts = 5;
  spine.kind = "leaf-spine";
  spine.leaves = 3, spine.hosts = 2, spine.spines = 2;
  fat.kind = "fat-tree";
  fat.k = 4;
  rail.kind = "rail";
  rail.servers = 3, rail.rails = 2, rail.spines = 2;
  for (const TopologySpec& spec : {star, spine, fat, rail}) {
    const Topology t = build_topology(spec);
    const Routes routes = shortest_routes(t);
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
  TopologySpec spec;
  spec.kind = "fat-tree";
  spec.k = 4;
  const Topology t = build_topology(spec);
  EXPECT_EQ(t.cards, 16u);
  EXPECT_EQ(t.switches.size(), 20u);
  EXPECT_EQ(t.edges.size(), 48u);
  const Routes routes = shortest_routes(t);
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

}  // namespace
}  // namespace hcasim::fabric
