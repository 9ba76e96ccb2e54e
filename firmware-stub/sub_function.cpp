// SPDX-License-Identifier: BSD-3-Clause
// Sub-functions: how their manager makes and ends them, and what it is told of their state.
#include "firmware-stub/sub_function.h"

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

using prm::VhcaState;

namespace {

Firmware* sub_function(Firmware& fw, std::uint32_t number) {
  Firmware* of = fw.managed(number);
  return of != nullptr && of->options().sf ? of : nullptr;
}

// Whether the manager's driver wants to hear of this state (SET_HCA_CAP).
bool wanted(const Caps& manager, VhcaState state) {
  using g = prm::cmd_hca_cap;
  switch (state) {
    case VhcaState::kInvalid:
      return manager.get<g::event_on_vhca_state_invalid>() != 0;
    case VhcaState::kAllocated:
      return manager.get<g::event_on_vhca_state_allocated>() != 0;
    case VhcaState::kActive:
      return manager.get<g::event_on_vhca_state_active>() != 0;
    case VhcaState::kInUse:
      return manager.get<g::event_on_vhca_state_in_use>() != 0;
    case VhcaState::kTeardownRequest:
      return manager.get<g::event_on_vhca_state_teardown_request>() != 0;
  }
  return false;
}

}  // namespace

void Firmware::set_vhca_state(VhcaState state) {
  if (sub_function_.state == state) return;
  sub_function_.state = state;
  if (wanted(manager().caps(), state)) sub_function_.changed = true;
  tell_vhca_state();
}

void Firmware::watch_vhca_state(bool armed) {
  sub_function_.armed = armed;
  tell_vhca_state();  // what has changed meanwhile is told now
}

void Firmware::tell_vhca_state() {
  if (!sub_function_.armed || !sub_function_.changed) return;
  sub_function_.armed = sub_function_.changed = false;
  device_.eqs().vhca_event(sim_now(), manager().function_.id(), function_.vport().number());
}

// The manager lets a driver start it, or wants it ended. A driver that has enabled it ends it itself, also if
// it has not initialized it.
Syndrome Firmware::activate(bool on) {
  const VhcaState state = sub_function_.state;
  if (on) {
    if (state != VhcaState::kAllocated && state != VhcaState::kActive && state != VhcaState::kInUse)
      return Syndrome::kSfState;
    if (state == VhcaState::kAllocated) set_vhca_state(VhcaState::kActive);
  } else if (state == VhcaState::kInUse || (state == VhcaState::kActive && state_ != State::kOff)) {
    set_vhca_state(VhcaState::kTeardownRequest);
  } else if (state == VhcaState::kActive) {
    set_vhca_state(VhcaState::kAllocated);
  } else {
    return Syndrome::kSfState;
  }
  return Syndrome::kOk;
}

// Its driver has ended it, or it was reset.
void Firmware::sub_function_left() {
  if (sub_function_.state == VhcaState::kInUse) set_vhca_state(VhcaState::kActive);
  if (sub_function_.state == VhcaState::kTeardownRequest) set_vhca_state(VhcaState::kAllocated);
}

Syndrome alloc_sf(Firmware& fw, Command& cmd) {
  Firmware* of = sub_function(fw, cmd.get<prm::alloc_sf_in::function_id>());
  if (of == nullptr) return Syndrome::kFunction;
  if (of->sub_function().state != VhcaState::kInvalid) return Syndrome::kSfState;
  of->set_enabled(true);
  of->set_vhca_state(VhcaState::kAllocated);
  return Syndrome::kOk;
}

Syndrome dealloc_sf(Firmware& fw, Command& cmd) {
  Firmware* of = sub_function(fw, cmd.get<prm::dealloc_sf_in::function_id>());
  if (of == nullptr) return Syndrome::kFunction;
  if (of->sub_function().state != VhcaState::kAllocated) return Syndrome::kSfState;
  of->set_enabled(false);
  of->forget_settled();
  of->sub_function().number = 0;
  of->set_vhca_state(VhcaState::kInvalid);
  return Syndrome::kOk;
}

Syndrome query_vhca_state(Firmware& fw, Command& cmd) {
  using c = prm::query_vhca_state_out::vhca_state_context;
  Firmware* of = sub_function(fw, cmd.get<prm::query_vhca_state_in::function_id>());
  if (of == nullptr) return Syndrome::kFunction;
  const SubFunction& sf = of->sub_function();
  cmd.put<c::arm_change_event>(sf.armed ? 1 : 0);
  cmd.put<c::vhca_state>(static_cast<std::uint32_t>(sf.state));
  cmd.put<c::sw_function_id>(sf.number);
  return Syndrome::kOk;
}

// Drivers arm all that can be made, before they make one.
Syndrome modify_vhca_state(Firmware& fw, Command& cmd) {
  using in = prm::modify_vhca_state_in;
  using select = in::vhca_state_field_select;
  Firmware* of = sub_function(fw, cmd.get<in::function_id>());
  if (of == nullptr) return Syndrome::kFunction;
  if (cmd.get<select::sw_function_id>() != 0) {
    if (of->sub_function().state == VhcaState::kInvalid) return Syndrome::kSfState;
    of->sub_function().number = cmd.get<in::vhca_state_context::sw_function_id>();
  }
  if (cmd.get<select::arm_change_event>() != 0)
    of->watch_vhca_state(cmd.get<in::vhca_state_context::arm_change_event>() != 0);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
