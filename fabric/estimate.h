// SPDX-License-Identifier: GPL-2.0-or-later
// What a run takes, before any of it is made: memory, and simulated time for its set-up.
#ifndef HCASIM_FABRIC_ESTIMATE_H
#define HCASIM_FABRIC_ESTIMATE_H

#include <cstdint>
#include <string>

#include "fabric/topology.h"
#include "fabric/workload.h"

namespace hcasim::fabric {

// How much there is of what takes memory and time.
struct Extent {
  std::uint64_t cards = 0;
  std::uint64_t pairs = 0;  // of cards that have a connection, two QPs
  std::uint64_t messages = 0, dependencies = 0;
};
Extent extent_of(const Topology& topology, const Workload& workload);

// Bytes, about. Each rank has its cards with their QPs, and of the whole fabric the messages, what they wait
// for, and a little of each card and pair.
std::uint64_t memory_of_rank(const Extent& extent, unsigned ranks, std::uint64_t cards_here);
std::uint64_t memory_of(const Extent& extent, unsigned ranks);  // of all ranks together

// Bytes that processes can still have: of the machine, and of the control groups that this process is in (a
// container's limit). root: the folder that holds proc and sys.
std::uint64_t available_memory(const std::string& root = "/");
// Throws ScenarioError if `wanted` bytes are more than there are, before the kernel ends the process in the
// midst of it. for_what: such as "of 4 ranks".
void check_memory(const Extent& extent, std::uint64_t wanted, const std::string& for_what);

// When the workloads begin, ps of simulated time: a whole second, by which the set-up is done with time to
// spare. It depends on the scenario alone, so that what has a time of its own, as a fault has, meets the same
// moment of the run however many ranks there are.
Time planned_begin(const Extent& extent);

}  // namespace hcasim::fabric
#endif
