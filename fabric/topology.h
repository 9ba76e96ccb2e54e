// SPDX-License-Identifier: GPL-2.0-or-later
// Which cards and switches there are, what joins them, and which ports lead where on the shortest ways.
#ifndef HCASIM_FABRIC_TOPOLOGY_H
#define HCASIM_FABRIC_TOPOLOGY_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fabric/frame.h"
#include "fabric/toml_section.h"

namespace hcasim::fabric {

struct TopologySpec {
  std::string kind = "star";
  // star: hosts. leaf-spine: leaves, hosts (of each leaf), spines. fat-tree: k. rail: servers, rails (cards
  // of each), spines.
  unsigned hosts = 2, leaves = 0, spines = 0, k = 0, servers = 0, rails = 0;
  double fabric_gbps = 100;  // links between switches; a card's link has the card's rate
  Time host_delay = 150 * kNs, fabric_delay = 500 * kNs;
};

constexpr unsigned kMostHosts = 4096, kMostPorts = 512;

// Throws ScenarioError.
TopologySpec read_topology(Section topology, Section links);

// A node is a card, 0 to cards-1, or a switch.
struct Topology {
  struct Edge {
    unsigned a = 0, b = 0;  // nodes; a card is always a
    Time delay = 0;
    double gbps = 0;  // 0: the card's rate
  };
  unsigned cards = 0;
  std::vector<std::string> switches;  // names
  // Of each switch: which pod or rack it is of, whose cards are those of its switches; kAbove: it joins
  // these.
  std::vector<int> groups;
  std::vector<Edge> edges;  // in the order in which switches' ports are numbered

  unsigned nodes() const { return cards + static_cast<unsigned>(switches.size()); }
  bool is_card(unsigned node) const { return node < cards; }
  std::string name(unsigned node) const;
  // The node at the other end of each of a node's ports.
  std::vector<std::vector<unsigned>> neighbours() const;
};
constexpr int kAbove = -1;

Topology build_topology(const TopologySpec& spec);

// The rank of each node, if so many simulate it: groups stay whole, about as many for each rank, and what
// joins them is dealt out. Throws ScenarioError if there are fewer groups than ranks.
std::vector<unsigned> partition(const Topology& topology, unsigned ranks);
// For as long as this, ps, ranks need not hear of one another: the shortest of the links that any partition
// cuts, and 10 us at most, so that little piles up. Of a topology that cannot be cut it is only how late the
// end of a run is seen: 2 us.
Time lookahead(const Topology& topology);

// Tells, of each of the `wanted` switches (by its number among switches) and each card, the ports that begin
// a shortest way. Nothing is kept: all of them of the largest fabrics take gigabytes.
using TellRoute = std::function<void(unsigned at, unsigned card, const std::vector<unsigned>& ports)>;
void shortest_routes(const Topology& topology, const std::vector<bool>& wanted, const TellRoute& tell);

}  // namespace hcasim::fabric
#endif
