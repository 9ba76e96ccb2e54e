// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/component_update.h"

#include <algorithm>

#include "prm/prm.h"

namespace hcasim::fw {

namespace {

enum : std::uint32_t {  // mcc_reg.instruction (Linux' mlx5 fw.c; mstflint, reg_access_hca_layouts.h)
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
enum : std::uint8_t {
  kIdle = 0,
  kLocked = 1,
  kDownload = 3,
  kVerifying = 4,
  kActivating = 6
};                     // control_state
enum : std::uint8_t {  // error_code (mlxfw.h, mlxfw_fsm_state_err)
  kNoError = 0,
  kError = 1,
  kDigest = 2,
  kNotApplicable = 3,
  kBadFormat = 8
};
constexpr std::uint32_t kNoOwner = 0, kOwnerDriver = 1, kOwnerIcmd = 5;  // handle_owner_type
constexpr std::uint32_t kHandleMask = 0xffffff;
// Of the flash behind the card, a serial one with four data lines at 50 MHz; writing takes an erase as well.
constexpr Time kReadByte = from_ns(40), kWriteByte = from_ns(400);

std::uint8_t error_of(FirmwareImage::Verdict v) {
  switch (v) {
    case FirmwareImage::Verdict::kGood:
      return kNoError;
    case FirmwareImage::Verdict::kNoImage:
      return kBadFormat;
    case FirmwareImage::Verdict::kDamaged:
      return kDigest;
    case FirmwareImage::Verdict::kOtherBoard:
      return kNotApplicable;
  }
  return kError;
}

}  // namespace

std::uint32_t ComponentUpdate::next_handle() const { return std::max(1u, (last_handle_ + 1) & kHandleMask); }

void ComponentUpdate::end() {
  handle_ = 0;
  state_ = kIdle;
  image_ = {};
  written_ = 0;
  verified_ = false;
}

// A driver asks for the handle before it takes it.
Syndrome ComponentUpdate::execute(Time t, const std::uint8_t* mcc, bool by_tool) {
  const std::uint32_t instruction = prm::get<prm::mcc_reg::instruction>(mcc);
  const std::uint32_t handle = prm::get<prm::mcc_reg::update_handle>(mcc);
  if (instruction == kForceRelease) {
    end();
    return Syndrome::kOk;
  }
  if (instruction == kLock) {
    if (handle_ != 0) return Syndrome::kUpdateHandle;
    if (handle != 0 && handle != next_handle()) return Syndrome::kUpdateState;
    last_handle_ = handle_ = next_handle();
    by_tool_ = by_tool;
    state_ = kLocked;
    return Syndrome::kOk;
  }
  if (handle_ == 0 || handle != handle_ || by_tool != by_tool_) return Syndrome::kUpdateState;
  if (t < busy_until_ && instruction != kCheck) return Syndrome::kUpdateHandle;
  switch (instruction) {
    case kRelease:
      end();
      return Syndrome::kOk;
    case kCancel:
      state_ = kLocked;
      image_ = {};
      verified_ = false;
      return Syndrome::kOk;
    case kCheck:
      return Syndrome::kOk;
    case kUpdate:
      return begin(mcc);
    case kVerify:
      if (state_ != kDownload) break;
      verify(t);
      return Syndrome::kOk;
    case kActivateComponent:
    case kActivate:
      if (state_ != kLocked || !verified_) break;
      flash_.store(image_);
      ++stored_;
      busy_until_ = t + static_cast<Time>(image_.size()) * kWriteByte;
      image_ = {};
      verified_ = false;
      return Syndrome::kOk;
    case kReadComponent:  // no host reads it
    case kReadPending:
      error_ = kNotApplicable;
      return Syndrome::kUpdateFixed;
    default:
      return Syndrome::kRegisterValue;
  }
  error_ = kError;
  return Syndrome::kUpdateState;
}

Syndrome ComponentUpdate::begin(const std::uint8_t* mcc) {
  const std::uint32_t size = prm::get<prm::mcc_reg::component_size>(mcc);
  if (state_ != kLocked || prm::get<prm::mcc_reg::component_index>(mcc) != 0 || size == 0 || size % 4 != 0 ||
      size > FirmwareImage::kMaxBytes) {
    error_ = kNotApplicable;
    return Syndrome::kUpdateFixed;
  }
  image_.assign(size, 0);
  written_ = 0;
  verified_ = false;
  state_ = kDownload;
  return Syndrome::kOk;
}

Syndrome ComponentUpdate::write(Time t, std::uint32_t handle, std::uint32_t offset, std::uint32_t size,
                                const std::uint8_t* data, std::size_t room) {
  if (handle_ == 0 || handle != handle_ || state_ != kDownload) return Syndrome::kUpdateState;
  if (size == 0 || size % 4 != 0 || offset % 4 != 0 || size > kMaxWrite || offset > image_.size() ||
      size > image_.size() - offset)
    return Syndrome::kRegisterValue;
  if (size > room) return Syndrome::kRegisterLength;
  // Dwords of the image are little-endian, those of the register big-endian.
  for (std::uint32_t i = 0; i < size; i += 4) std::reverse_copy(data + i, data + i + 4, &image_[offset + i]);
  written_ += size;
  last_instruction_ = t;
  return Syndrome::kOk;
}

void ComponentUpdate::verify(Time t) {
  const auto verdict = written_ >= image_.size() ? flash_.check(image_) : FirmwareImage::Verdict::kDamaged;
  busy_until_ = t + static_cast<Time>(image_.size()) * kReadByte;
  state_ = kLocked;
  verified_ = verdict == FirmwareImage::Verdict::kGood;
  if (verified_) return;
  error_ = error_of(verdict);
  ++rejected_;
  image_ = {};
}

Syndrome ComponentUpdate::instruct(Time t, std::uint8_t* mcc, bool by_tool) {
  error_ = kNoError;
  const Syndrome s = execute(t, mcc, by_tool);
  last_instruction_ = t;
  show(t, mcc);
  return s;
}

void ComponentUpdate::show(Time t, std::uint8_t* mcc) const {
  using r = prm::mcc_reg;
  const Time seconds = handle_ != 0 ? (t - last_instruction_) / kSecond : 0;
  prm::set<r::time_elapsed_since_last_cmd>(mcc, static_cast<std::uint32_t>(std::min<Time>(seconds, 0xfff)));
  prm::set<r::update_handle>(mcc, handle_ != 0 ? handle_ : next_handle());
  prm::set<r::handle_owner_type>(mcc, handle_ == 0 ? kNoOwner : by_tool_ ? kOwnerIcmd : kOwnerDriver);
  prm::set<r::handle_owner_host_id>(mcc, 0);
  prm::set<r::control_progress>(mcc, 0);
  const bool busy = t < busy_until_;
  std::uint32_t state = state_;
  if (busy) state = verified_ || error_ != kNoError ? kVerifying : kActivating;
  prm::set<r::control_state>(mcc, state);
  prm::set<r::error_code>(mcc, busy ? 0u : error_);
}

}  // namespace hcasim::fw
