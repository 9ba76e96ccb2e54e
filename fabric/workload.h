// SPDX-License-Identifier: GPL-2.0-or-later
// What the cards send: messages, each an RDMA WRITE of a reliable connection, some of which wait for others.
#ifndef HCASIM_FABRIC_WORKLOAD_H
#define HCASIM_FABRIC_WORKLOAD_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fabric/frame.h"
#include "fabric/toml_section.h"

namespace hcasim::fabric {

struct WorkloadSpec {
  std::string kind, name;
  std::uint64_t bytes = 0;
  // all-to-all: to so many next ones; incast: senders, receiver; allreduce: the first so many cards. 0: all
  // (others).
  unsigned peers = 0, senders = 0, receiver = 0, cards = 0;
  unsigned rounds = 1;  // all-to-all, incast: messages of each pair
  unsigned window = 0;  // messages of a sender under way; 0: all
  unsigned chunks = 1;  // tree: parts that follow one another
  unsigned arity = 2;   // tree: children of a node
  Time start = 0;
  struct Row {
    Time at = 0;
    unsigned source = 0, destination = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Row> trace;
};

constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 30, kMostMessages = std::uint64_t{1} << 22;

// cards: how many there are. Files of traces lie beside `file`. Throws ScenarioError.
std::vector<WorkloadSpec> read_workloads(Section& root, const std::string& file, unsigned cards);

struct Message {
  unsigned source = 0, destination = 0;
  std::uint64_t bytes = 0;
  Time start = 0;           // at the earliest, from the run's begin on
  std::uint32_t waits = 0;  // messages that come before it
  std::uint32_t job = 0;    // of which workload it is
};

// `after` begins when `before` is there: has arrived where `after` starts, or, if that is where `before`
// started, has been acknowledged.
struct Dependency {
  std::uint32_t before = 0, after = 0;
};

struct Workload {
  std::vector<Message> messages;
  std::vector<Dependency> dependencies;  // by `before`
};

// Throws ScenarioError if there are too many messages.
Workload build_workload(const std::vector<WorkloadSpec>& specs, unsigned cards);

// Cards with messages between them, the lower number first: each pair once, sorted.
std::vector<std::pair<unsigned, unsigned>> pairs_of(const Workload& workload);

}  // namespace hcasim::fabric
#endif
