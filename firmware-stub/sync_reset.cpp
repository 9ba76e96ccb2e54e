// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/sync_reset.h"

#include "firmware-stub/firmware.h"
#include "prm/eqe.h"

namespace hcasim::fw {

namespace {
constexpr Time kPatience = from_ns(5'000'000'000);  // as long as the driver waits (mlx5 lib/tout.c)
}  // namespace

SyncReset::SyncReset(const sc_core::sc_module_name& name, Firmware& fw)
    : sc_module(name),
      fw_(fw),
      due_(
          "due", [this](Time t, std::uint64_t& serial) { due(t, serial); }, fw.function().health()) {}

bool SyncReset::listened() const {
  return fw_.device().eqs().listening(fw_.function().id(), static_cast<std::uint8_t>(prm::EqeType::kGeneral));
}

void SyncReset::tell(Time t, std::uint8_t what) {
  prm::EqeSyncReset event{};
  event.state = what;
  fw_.say(t, TraceString::kSyncReset,
          {static_cast<std::uint32_t>(state_), static_cast<std::uint32_t>(done_)});
  fw_.device().eqs().post(t, fw_.function().id(), static_cast<std::uint8_t>(prm::EqeType::kGeneral),
                          prm::kGeneralSyncReset, &event, sizeof event);
}

void SyncReset::ask(Time t) {
  state_ = State::kNegotiation;
  now_pending_ = false;
  tell(t, prm::EqeSyncReset::kRequest);
  due_.push(t + kPatience, ++serial_);
}

Syndrome SyncReset::start(Time t, std::uint32_t seq) {
  if (asked_by_command_ && seq == seq_) {  // it has waited
    if (state_ == State::kNegotiation) return Syndrome::kWaitHost;
    asked_by_command_ = false;
    return state_ == State::kInProgress ? Syndrome::kOk : Syndrome::kResetRefused;
  }
  if (state_ == State::kNegotiation || state_ == State::kInProgress) return Syndrome::kResetBusy;
  if (!listened()) {  // no driver that could be asked
    state_ = State::kTimeout;
    return Syndrome::kResetRefused;
  }
  asked_by_command_ = true;
  seq_ = seq;
  ask(t);
  return Syndrome::kWaitHost;
}

bool SyncReset::request(Time t) {
  if (state_ == State::kNegotiation || state_ == State::kInProgress || !listened()) return false;
  ask(t);
  return true;
}

Syndrome SyncReset::answer(bool yes) {
  if (state_ != State::kNegotiation) return Syndrome::kRegisterValue;
  state_ = yes ? State::kInProgress : State::kRefused;
  now_pending_ = true;
  // Behind the answers of this command and of the one that has asked.
  due_.push(sim_now() + 4 * fw_.device().profile().firmware.command, ++serial_);
  fw_.host_answered();
  return Syndrome::kOk;
}

void SyncReset::due(Time t, std::uint64_t serial) {
  if (serial != serial_) return;
  if (now_pending_) {
    now_pending_ = false;
    tell(t, state_ == State::kInProgress ? prm::EqeSyncReset::kNow : prm::EqeSyncReset::kAbort);
    if (state_ == State::kInProgress) due_.push(t + kPatience, ++serial_);
    return;
  }
  if (state_ != State::kNegotiation && state_ != State::kInProgress) return;
  state_ = State::kTimeout;
  tell(t, prm::EqeSyncReset::kAbort);
  fw_.host_answered();
}

bool SyncReset::interface_down() {
  if (state_ != State::kInProgress || now_pending_) return false;
  ++done_;
  return true;
}

}  // namespace hcasim::fw
