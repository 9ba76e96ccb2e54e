// SPDX-License-Identifier: GPL-2.0-or-later
// The part of a topology that this rank simulates: nodes, links, devices, switches with their routes, and
// what they have counted.
#ifndef HCASIM_FABRIC_NETWORK_H
#define HCASIM_FABRIC_NETWORK_H

#include <memory>
#include <vector>

#include "fabric/border.h"
#include "fabric/cards.h"
#include "fabric/run.h"

namespace hcasim::fabric {

class Network {
 public:
  // rank_of: of each node of the topology (partition()).
  Network(const Topology& topology, const std::vector<unsigned>& rank_of, const SwitchConfig& config,
          Cards& cards, const Ranks& ranks, Border& border);

  // Times in the hashes of arrivals count from here.
  void begin(Time t);
  // Bytes, of what is here.
  std::uint64_t longest_queue() const;
  std::uint64_t buffered() const;
  // Of all ranks, into r: links, sums, hash. lasted: ps.
  void collect(Result& r, Time lasted) const;

 private:
  bool is_here(unsigned node) const { return rank_of_[node] == ranks_.number(); }
  SwitchNode& switch_at(unsigned node) const { return *switches_[node - topology_.cards]; }
  double rate(const Topology::Edge& edge) const;  // Gb/s
  void attach(unsigned node, const ns3::Ptr<PortDevice>& device);

  const Topology& topology_;
  const std::vector<unsigned> rank_of_;
  Cards& cards_;
  const Ranks& ranks_;
  std::vector<std::unique_ptr<SwitchNode>> switches_;  // null: of another rank
};

}  // namespace hcasim::fabric
#endif
