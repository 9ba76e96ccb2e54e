// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/vsc_gateway.h"

#include "model/state/state.h"

namespace hcasim {

namespace {

bool offered(std::uint32_t space) {
  switch (space) {
    case VscGateway::kIcmdExt:  // the same mailbox: tools want a gateway to have both
    case VscGateway::kIcmd:
    case VscGateway::kCr:
    case VscGateway::kScan:
    case VscGateway::kSemaphoreSpace:
      return true;
    default:
      return false;
  }
}

// A taken semaphore only gives way to its release.
void write_semaphore(std::uint32_t& semaphore, std::uint32_t value) {
  if (semaphore == 0 || value == 0) semaphore = value;
}

}  // namespace

std::uint32_t VscGateway::read(unsigned offset) {
  switch (offset) {
    case kControl:
      return control_;
    case kCounter:
      if (++counter_ == 0) ++counter_;  // 0 means free
      return counter_;
    case kSemaphore:
      return semaphore_;
    case kAddress:
      return address_;
    case kData:
      return data_;
    default:
      return 0;
  }
}

void VscGateway::write(unsigned offset, std::uint32_t value) {
  switch (offset) {
    case kControl:
      choose(value & kSpaceMask);
      break;
    case kSemaphore:
      write_semaphore(semaphore_, value);
      break;
    case kAddress:
      access(value);
      break;
    case kData:
      data_ = value;
      break;
    default:
      break;
  }
}

void VscGateway::choose(std::uint32_t space) {
  control_ = space | (offered(space) ? kStatusOk : 0);
  if (space == kScan) {
    scan_.take(cr_, firmware_);
    control_ |= kSizeValid;
    address_ = CrScan::kBytes;
  } else {
    scan_.clear();
  }
}

// Where no register is, nothing has failed: the next one is told in any case.
void VscGateway::scan(std::uint32_t address) {
  data_ = scan_.read(address).value_or(kNothing);
  address_ = scan_.next(address) | kFlag;
}

void VscGateway::access(std::uint32_t value) {
  const std::uint32_t address = value & kAddressMask;
  const bool write = (value & kFlag) != 0;
  if ((control_ & kSpaceMask) == kScan && !write && address < CrScan::kBytes) return scan(address);
  bool answered = address % 4 == 0;
  if (write) {
    answered = answered && write_space(address, data_);
  } else {
    const auto read = answered ? read_space(address) : std::nullopt;
    answered = read.has_value();
    data_ = read.value_or(kNothing);
  }
  address_ = address | (write ? 0 : kFlag) | (answered ? 0 : kFailed);
  control_ = (control_ & ~kSyndromeMask) | (answered ? 0 : kOutOfRange);
  if (!answered) ++unanswered_;
}

std::optional<std::uint32_t> VscGateway::read_space(std::uint32_t address) {
  switch (control_ & kSpaceMask) {
    case kIcmdExt:
    case kIcmd:
      return firmware_.icmd_read(address);
    case kCr:
      return cr_.read(address);
    case kSemaphoreSpace:
      if (address / 4 < kSemaphores) return semaphores_[address / 4];
      return {};
    default:
      return {};
  }
}

bool VscGateway::write_space(std::uint32_t address, std::uint32_t value) {
  switch (control_ & kSpaceMask) {
    case kIcmdExt:
    case kIcmd:
      return firmware_.icmd_write(address, value);
    case kSemaphoreSpace:
      if (address / 4 >= kSemaphores) return false;
      write_semaphore(semaphores_[address / 4], value);
      return true;
    default:  // the registers of CR space are read-only
      return false;
  }
}

void VscGateway::reset() { reset_state(*this); }

}  // namespace hcasim
