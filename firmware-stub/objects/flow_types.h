// SPDX-License-Identifier: BSD-3-Clause
// What each type of flow table offers: the truth for capabilities (caps_steering.cpp) and for the checks of
// commands alike.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_FLOW_TYPES_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_FLOW_TYPES_H

#include <cstdint>

#include "firmware-stub/options.h"
#include "model/steer/flow.h"

namespace hcasim::fw {

struct FlowTypeCaps {
  FlowTableType type;
  std::uint16_t actions;       // of entries, kFlow*
  std::uint32_t destinations;  // 1 << FlowDestination::Type
  std::uint32_t reformats;     // 1 << REFORMAT_TYPE_*
  bool miss_to_nic;            // table_miss_action 2
};

// Null: no tables of that type for this function.
const FlowTypeCaps* flow_type(const Options& options, std::uint32_t table_type);
// Whether samplers (general objects) send frames on in tables of that type.
bool samples(const Options& options, FlowTableType type);
// Whether a table of that type is a certain vport's.
constexpr bool of_vport(FlowTableType type) {
  return type == FlowTableType::kEswIngressAcl || type == FlowTableType::kEswEgressAcl;
}

// max_ft_level, of every type. The FDB has chains of tables by priority in its upper ones; rdma-core's tests
// have tables for RDMA at 200.
constexpr unsigned kFlowLevels = 255;

constexpr unsigned kLogVportDestinations = 8;  // of an entry of the FDB
constexpr unsigned kLogPortDestinations = 0;   // ... of an entry that selects a port
// Registers that may leave the FDB with a frame (fdb_to_vport_reg_c_id): C_0, C_1.
constexpr std::uint32_t kFdbToVportRegs = 3;
constexpr unsigned kLogModifyHeaders = 12, kLogReformats = 12;
constexpr unsigned kModifyActions = 16;     // a context
constexpr unsigned kMaxReformatData = 256;  // bytes

}  // namespace hcasim::fw
#endif
