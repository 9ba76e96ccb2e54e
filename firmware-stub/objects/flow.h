// SPDX-License-Identifier: BSD-3-Clause
// What the commands of flow tables, groups and entries share.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_FLOW_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_FLOW_H

#include <type_traits>

#include "firmware-stub/command.h"
#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/flow_types.h"
#include "model/eswitch/eswitch.h"
#include "model/lag/lag.h"
#include "model/steer/flow.h"

namespace hcasim::fw {

// The function's own tables; and the ACLs of the vports that it manages, by the number of the vport.
template <class In>
Syndrome check_flow_target(Firmware& fw, const Command& cmd, std::uint32_t type) {
  const std::uint32_t vport = cmd.get<typename In::vport_number>();
  if (cmd.get<typename In::other_vport>() == 0) return vport == 0 ? Syndrome::kOk : Syndrome::kFunction;
  const bool uplink = vport == kUplinkPort && fw.options().manages_switch();
  const bool known = fw.manages() && (vport == 0 || uplink || fw.managed(vport) != nullptr);
  return known && (vport == 0 || of_vport(static_cast<FlowTableType>(type))) ? Syndrome::kOk
                                                                             : Syndrome::kFunction;
}
template <class In>
Syndrome check_flow_target(Firmware& fw, const Command& cmd) {
  return check_flow_target<In>(fw, cmd, cmd.get<typename In::table_type>());
}

// The physical function of the card's other port.
inline bool is_other_port(Firmware& fw, std::uint32_t owner) {
  const ESwitch* other = fw.device().eswitch().other();
  return other != nullptr && owner == other->owner();
}
// ... which manages a switch, as this one does.
inline bool is_other_switch(Firmware& fw, std::uint32_t owner) {
  return fw.options().manages_switch() && is_other_port(fw, owner);
}

// The table leads frames of a LAG to their ports: of the first port's function, the root.
inline bool selects_in_lag(Firmware& fw, std::uint32_t table) {
  const Lag& lag = fw.device().lag();
  return lag.master() && fw.function().physical() && lag.state().by_tables &&
         fw.function().flows().root(FlowTableType::kPortSelection) == table;
}

// Queries do not say whose table it is.
template <class In, class = void>
struct NamesVport : std::false_type {};
template <class In>
struct NamesVport<In, std::void_t<typename In::vport_number>> : std::true_type {};

// The table that the command names, of the type and the vport it says.
template <class In>
Syndrome find_flow_table(Firmware& fw, const Command& cmd, FlowTable*& table) {
  table = fw.function().flows().find_table(cmd.get<typename In::table_id>());
  if (table == nullptr) return Syndrome::kFlowTableNumber;
  if (cmd.get<typename In::table_type>() != static_cast<std::uint32_t>(table->type))
    return Syndrome::kFlowTableType;
  if constexpr (NamesVport<In>::value)
    if (of_vport(table->type) && cmd.get<typename In::vport_number>() != table->vport)
      return Syndrome::kFlowTableNumber;
  return Syndrome::kOk;
}

// Where frames go on: only upwards, so that there are no loops. An entry that ignores levels may go anywhere;
// the match engine gives up after FlowSteering::kMaxHops tables.
Syndrome check_next_table(Firmware& fw, std::uint32_t id, FlowTableType type, std::uint8_t level,
                          bool ignore_level = false);

}  // namespace hcasim::fw
#endif
