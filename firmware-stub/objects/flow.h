// SPDX-License-Identifier: BSD-3-Clause
// What the commands of flow tables, groups and entries share.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_FLOW_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_FLOW_H

#include "firmware-stub/command.h"
#include "firmware-stub/firmware.h"
#include "model/steer/flow.h"

namespace hcasim::fw {

// The function's own tables only.
template <class In>
Syndrome check_flow_target(const Command& cmd) {
  if (cmd.get<typename In::other_vport>() != 0 || cmd.get<typename In::vport_number>() != 0)
    return Syndrome::kFunction;
  return Syndrome::kOk;
}

// The table that the command names, of the type it says.
template <class In>
Syndrome find_flow_table(Firmware& fw, const Command& cmd, FlowTable*& table) {
  table = fw.function().flows().find_table(cmd.get<typename In::table_id>());
  if (table == nullptr) return Syndrome::kFlowTableNumber;
  return cmd.get<typename In::table_type>() == static_cast<std::uint32_t>(table->type)
             ? Syndrome::kOk
             : Syndrome::kFlowTableType;
}

// Where frames go on: only upwards, so that there are no loops. An entry that ignores levels may go anywhere;
// the match engine gives up after FlowSteering::kMaxHops tables.
Syndrome check_next_table(Firmware& fw, std::uint32_t id, FlowTableType type, std::uint8_t level,
                          bool ignore_level = false);

}  // namespace hcasim::fw
#endif
