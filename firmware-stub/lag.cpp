// SPDX-License-Identifier: BSD-3-Clause
// Link aggregation of a card's two ports, as the driver of the first one's physical function sets it.
#include "model/lag/lag.h"
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kSelectRemap = 1, kSelectActive = 2;  // modify_lag_in.field_select
constexpr std::uint32_t kPorts = 2;

Syndrome check_master(Firmware& fw) {
  return fw.device().lag().master() && fw.function().physical() ? Syndrome::kOk : Syndrome::kLagMaster;
}

template <class C>
Syndrome read_remap(const Command& cmd, LagState& state) {
  const std::uint32_t first = cmd.get<typename C::tx_remap_affinity_1>();
  const std::uint32_t second = cmd.get<typename C::tx_remap_affinity_2>();
  if (first < 1 || first > kPorts || second < 1 || second > kPorts) return Syndrome::kLagPort;
  state.remap = {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(second)};
  return Syndrome::kOk;
}

template <class C>
Syndrome read_active(const Command& cmd, LagState& state) {
  const std::uint32_t active = cmd.get<typename C::active_port>();
  if (active == 0 || active >> kPorts != 0) return Syndrome::kLagPort;
  state.active = static_cast<std::uint8_t>(active);
  return Syndrome::kOk;
}

// The port's choice by flow tables, whose root the driver has made before.
template <class C>
Syndrome read_tables(Firmware& fw, const Command& cmd, LagState& state) {
  if (!fw.options().selects_port()) return Syndrome::kLagMode;
  if (fw.function().flows().root(FlowTableType::kPortSelection) == 0) return Syndrome::kLagTables;
  state.by_tables = true;
  state.affinity_first = fw.caps().port_select_bypass();
  return state.affinity_first ? read_active<C>(cmd, state) : Syndrome::kOk;
}

}  // namespace

Syndrome create_lag(Firmware& fw, Command& cmd) {
  using c = prm::create_lag_in::ctx;
  Syndrome s = check_master(fw);
  if (s != Syndrome::kOk) return s;
  LagState state = fw.device().lag().state();
  if (state.aggregated) return Syndrome::kLagActive;
  const bool native = cmd.get<c::fdb_selection_mode>() != 0;
  if (native && !fw.options().shares_fdb()) return Syndrome::kLagMode;
  switch (cmd.get<c::port_select_mode>()) {
    case prm::k::LAG_PORT_SELECT_MODE_QUEUE_AFFINITY:
      s = read_remap<c>(cmd, state);
      break;
    case prm::k::LAG_PORT_SELECT_MODE_PORT_SELECT_FT:
      s = read_tables<c>(fw, cmd, state);
      break;
    default:
      s = Syndrome::kLagMode;
      break;
  }
  if (s != Syndrome::kOk) return s;
  state.aggregated = true;
  state.native_fdb = native;
  fw.device().lag().set(state);
  return Syndrome::kOk;
}

Syndrome modify_lag(Firmware& fw, Command& cmd) {
  using in = prm::modify_lag_in;
  Syndrome s = check_master(fw);
  if (s != Syndrome::kOk) return s;
  LagState state = fw.device().lag().state();
  if (!state.aggregated) return Syndrome::kLagNone;
  const std::uint32_t wanted = !state.by_tables ? kSelectRemap : state.affinity_first ? kSelectActive : 0;
  if (wanted == 0 || cmd.get<in::field_select>() != wanted) return Syndrome::kModifyMask;
  s = state.by_tables ? read_active<in::ctx>(cmd, state) : read_remap<in::ctx>(cmd, state);
  if (s != Syndrome::kOk) return s;
  fw.device().lag().set(state);
  return Syndrome::kOk;
}

// Of any function; without a LAG its state is 0, and so it is on a card of one port.
Syndrome query_lag(Firmware& fw, Command& cmd) {
  using c = prm::query_lag_out::ctx;
  const Lag& lag = fw.device().lag();
  if (!lag.joined()) return Syndrome::kOk;
  const LagState& state = lag.state();
  cmd.put<c::lag_state>(state.aggregated ? 1 : 0);
  cmd.put<c::fdb_selection_mode>(state.native_fdb ? 1 : 0);
  if (state.by_tables) {
    cmd.put<c::port_select_mode>(prm::k::LAG_PORT_SELECT_MODE_PORT_SELECT_FT);
    cmd.put<c::active_port>(state.active);
    return Syndrome::kOk;
  }
  cmd.put<c::tx_remap_affinity_1>(state.remap[0]);
  cmd.put<c::tx_remap_affinity_2>(state.remap[1]);
  return Syndrome::kOk;
}

Syndrome destroy_lag(Firmware& fw, Command&) {
  const Syndrome s = check_master(fw);
  if (s != Syndrome::kOk) return s;
  const LagState& state = fw.device().lag().state();
  if (!state.aggregated) return Syndrome::kLagNone;
  LagState none;
  none.one_vport = state.one_vport;
  fw.device().lag().set(none);
  return Syndrome::kOk;
}

// The two physical functions are one vport for what comes in.
Syndrome create_vport_lag(Firmware& fw, Command&) {
  const Syndrome s = check_master(fw);
  if (s != Syndrome::kOk) return s;
  LagState state = fw.device().lag().state();
  if (!state.aggregated) return Syndrome::kLagNone;
  if (state.one_vport) return Syndrome::kLagActive;
  state.one_vport = true;
  fw.device().lag().set(state);
  return Syndrome::kOk;
}

Syndrome destroy_vport_lag(Firmware& fw, Command&) {
  const Syndrome s = check_master(fw);
  if (s != Syndrome::kOk) return s;
  LagState state = fw.device().lag().state();
  if (!state.one_vport) return Syndrome::kLagNone;
  state.one_vport = false;
  fw.device().lag().set(state);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
