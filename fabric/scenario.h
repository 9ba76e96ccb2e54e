// SPDX-License-Identifier: GPL-2.0-or-later
// A run as its file describes it (docs/fabric.md).
#ifndef HCASIM_FABRIC_SCENARIO_H
#define HCASIM_FABRIC_SCENARIO_H

#include <string>
#include <vector>

#include "fabric/switch.h"
#include "fabric/topology.h"
#include "fabric/workload.h"

namespace hcasim::fabric {

struct CardSpec {
  std::string profile = "connectx5-100g-roce";
  std::string options;      // further ones of hca_create()
  unsigned priority = 3;    // of what the workloads send, by its DSCP
  bool dcqcn = true;        // reaction and notification points of that priority
  unsigned mtu = 4096;      // of the path
  unsigned ack_timeout = 14, retries = 7;
};

struct Scenario {
  std::string name;
  TopologySpec topology;
  SwitchConfig switches;
  CardSpec card;
  std::vector<WorkloadSpec> workloads;
  Time until = 0;   // of the run, from its begin; the workloads may end before
  Time sample = 0;  // between two looks at queues
};

// Throws ScenarioError: file, line, key, what is allowed.
Scenario read_scenario(const std::string& file);

}  // namespace hcasim::fabric
#endif
