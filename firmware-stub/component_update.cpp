// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/component_update.h"

#include <algorithm>

#include "prm/prm.h"

namespace hcasim::fw {

namespace {

enum : std::uint32_t {  // mcc_reg.instruction (mlx5_ifc.h users: mlxfw.h; mstflint, reg_access_hca_layouts.h)
  kLock = 1,
  kRelease = 2,
  kUpdate = 3,
  kVerify = 4,
  kActivateComponent = 5,
  kActivate = 6,
  kReadComponent = 7,
  kCancel = 8,
  kCheck = 9,
  kForceRelease = 10,
  kReadPending = 11,
};
enum : std::uint32_t { kIdle = 0, kLocked = 1 };                       // control_state
enum : std::uint8_t { kNoError = 0, kError = 1, kNotApplicable = 3 };  // error_code
constexpr std::uint32_t kOwnerIcmd = 5;                                // handle_owner_type
constexpr std::uint32_t kHandleMask = 0xffffff;

}  // namespace

Syndrome ComponentUpdate::execute(std::uint32_t instruction, std::uint32_t handle) {
  if (instruction == kForceRelease) {
    handle_ = 0;
    return Syndrome::kOk;
  }
  if (instruction == kLock) {
    if (handle_ != 0) return Syndrome::kUpdateHandle;
    last_handle_ = std::max(1u, (last_handle_ + 1) & kHandleMask);
    handle_ = last_handle_;
    return Syndrome::kOk;
  }
  if (handle_ == 0 || handle != handle_) return Syndrome::kUpdateState;
  switch (instruction) {
    case kRelease:
      handle_ = 0;
      return Syndrome::kOk;
    case kCancel:
    case kCheck:
      return Syndrome::kOk;
    case kUpdate:
    case kReadComponent:
    case kReadPending:
      error_ = kNotApplicable;
      return Syndrome::kUpdateFixed;
    case kVerify:  // nothing has been loaded
    case kActivateComponent:
    case kActivate:
      error_ = kError;
      return Syndrome::kUpdateState;
    default:
      return Syndrome::kRegisterValue;
  }
}

Syndrome ComponentUpdate::instruct(Time t, std::uint8_t* mcc) {
  using r = prm::mcc_reg;
  error_ = kNoError;
  const Syndrome s = execute(prm::get<r::instruction>(mcc), prm::get<r::update_handle>(mcc));
  last_instruction_ = t;
  show(t, mcc);
  return s;
}

void ComponentUpdate::show(Time t, std::uint8_t* mcc) const {
  using r = prm::mcc_reg;
  const Time seconds = handle_ != 0 ? (t - last_instruction_) / kSecond : 0;
  prm::set<r::time_elapsed_since_last_cmd>(mcc, static_cast<std::uint32_t>(std::min<Time>(seconds, 0xfff)));
  prm::set<r::update_handle>(mcc, handle_);
  prm::set<r::handle_owner_type>(mcc, handle_ != 0 ? kOwnerIcmd : 0);
  prm::set<r::handle_owner_host_id>(mcc, 0);
  prm::set<r::control_progress>(mcc, 0);
  prm::set<r::error_code>(mcc, error_);
  prm::set<r::control_state>(mcc, handle_ != 0 ? kLocked : kIdle);
}

}  // namespace hcasim::fw
