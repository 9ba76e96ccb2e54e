// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/network.h"

#include <ns3/node.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hcasim::fabric {

namespace {

// PortCounters as numbers that ranks can add: each port is counted by one of them.
static_assert(sizeof(PortCounters) % sizeof(std::uint64_t) == 0);
constexpr std::size_t kCounters = sizeof(PortCounters) / sizeof(std::uint64_t);

std::vector<PortCounters> of_all_ranks(const std::vector<PortCounters>& own, const Ranks& ranks) {
  std::vector<std::uint64_t> numbers(own.size() * kCounters);
  std::memcpy(numbers.data(), own.data(), numbers.size() * sizeof(std::uint64_t));
  ranks.add(numbers);
  std::vector<PortCounters> all(own.size());
  std::memcpy(static_cast<void*>(all.data()), numbers.data(), numbers.size() * sizeof(std::uint64_t));
  return all;
}

}  // namespace

Network::Network(const Topology& topology, const std::vector<unsigned>& rank_of, const SwitchConfig& config,
                 Cards& cards, const Ranks& ranks, Border& border)
    : topology_(topology), rank_of_(rank_of), cards_(cards), ranks_(ranks) {
  std::vector<ns3::Ptr<ns3::Node>> nodes(topology.nodes());
  for (unsigned i = 0; i < topology.nodes(); ++i)
    if (is_here(i)) nodes[i] = ns3::CreateObject<ns3::Node>();
  for (unsigned i = 0; i < topology.switches.size(); ++i)
    switches_.push_back(is_here(topology.cards + i) ? std::make_unique<SwitchNode>(config, i) : nullptr);
  for (unsigned wire = 0; wire < topology.edges.size(); ++wire) {
    const Topology::Edge& e = topology.edges[wire];
    const double gbps = rate(e);
    if (is_here(e.a) && is_here(e.b)) {
      const Joint joint = join(nodes[e.a], nodes[e.b], gbps, e.delay);
      attach(e.a, joint.a);
      attach(e.b, joint.b);
    } else if (is_here(e.a) || is_here(e.b)) {
      const auto [own, other] = is_here(e.a) ? std::pair(e.a, e.b) : std::pair(e.b, e.a);
      const Joint joint = half_joint(nodes[own], gbps, e.delay);
      attach(own, joint.a);
      border.add(wire, rank_of_[other], joint.a);
    }
  }
  std::vector<bool> here;
  for (const auto& s : switches_) here.push_back(s != nullptr);
  shortest_routes(topology, here, [this](unsigned s, unsigned card, const std::vector<unsigned>& ports) {
    switches_[s]->at().add_route(Cards::mac(card), ports);
  });
}

double Network::rate(const Topology::Edge& e) const { return e.gbps != 0 ? e.gbps : cards_.rate_gbps(e.a); }

void Network::attach(unsigned node, const ns3::Ptr<PortDevice>& device) {
  if (topology_.is_card(node))
    cards_.port(node).join(cards_.function(node), device);
  else
    switch_at(node).add(device);
}

void Network::begin(Time t) {
  for (const auto& s : switches_)
    if (s != nullptr) s->at().begin(t);
}

std::uint64_t Network::longest_queue() const {
  std::uint64_t most = 0;
  for (const auto& s : switches_)
    for (unsigned p = 0; s != nullptr && p < s->at().ports(); ++p)
      most = std::max(most, s->at().longest_queue(p));
  return most;
}

std::uint64_t Network::buffered() const {
  std::uint64_t sum = 0;
  for (const auto& s : switches_) sum += s != nullptr ? s->at().buffered() : 0;
  return sum;
}

void Network::collect(Result& r, Time lasted) const {
  const auto neighbours = topology_.neighbours();
  std::vector<PortCounters> counters;
  enum : std::size_t { kRefused, kPauses, kCnps, kRetransmits, kOfCards };
  std::vector<std::uint64_t> sums(kOfCards);
  for (unsigned c = 0; c < topology_.cards; ++c) {
    PortCounters& k = counters.emplace_back();
    if (!is_here(c)) continue;
    const CardPort& port = cards_.port(c);
    k.tx_frames = port.frames_out();
    k.tx_bytes = port.bytes_out();
    k.arrivals_hash = port.arrivals_hash();
    sums[kPauses] += port.pauses_out();
    sums[kRefused] += port.refused();
    sums[kCnps] += cards_.counter(c, "cnp_sent");
    sums[kRetransmits] += cards_.counter(c, "retransmits");
  }
  for (unsigned node = topology_.cards; node < topology_.nodes(); ++node)
    for (unsigned p = 0; p < neighbours[node].size(); ++p)
      counters.push_back(is_here(node) ? switch_at(node).at().counters(p, now()) : PortCounters{});
  ranks_.add(sums);
  counters = of_all_ranks(counters, ranks_);
  r.refused = sums[kRefused];
  r.pauses_by_cards = sums[kPauses];
  r.cnps = sums[kCnps];
  r.retransmits = sums[kRetransmits];

  std::vector<std::vector<double>> rates(topology_.nodes());
  for (const Topology::Edge& e : topology_.edges)
    for (const unsigned node : {e.a, e.b}) rates[node].push_back(rate(e));
  std::size_t next = 0;
  const auto share = [lasted](Time t) {
    return lasted > 0 ? static_cast<double>(t) / static_cast<double>(lasted) : 0;
  };
  for (unsigned node = 0; node < topology_.nodes(); ++node) {
    for (unsigned p = 0; p < neighbours[node].size(); ++p) {
      const PortCounters& k = counters[next++];
      LinkResult link{topology_.name(node), topology_.name(neighbours[node][p]), rates[node][p], 0, false, k};
      r.arrivals_hash += port_share(node, p, k.arrivals_hash);
      if (topology_.is_card(node)) {
        const auto on_wire = static_cast<double>(k.tx_bytes + k.tx_frames * kGap);
        link.load = share(static_cast<Time>(on_wire * 8000 / rates[node][p]));
        r.frames += k.tx_frames;
      } else {
        link.load = share(k.busy);
        link.measured = true;
        r.marked += k.marked;
        r.dropped_full += k.dropped_full;
        r.dropped_headroom += k.dropped_headroom;
        r.dropped_unrouted += k.dropped_unrouted;
        r.pauses_by_switches += k.pauses_sent;
      }
      r.links.push_back(std::move(link));
    }
  }
}

}  // namespace hcasim::fabric
