// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/management_key.h"

namespace hcasim::fw {

void ManagementKey::set(std::uint64_t key, unsigned protection, std::uint16_t lease) {
  key_ = key;
  protection_ = protection & 3;
  lease_ = lease;
  ends_ = 0;
}

bool ManagementKey::admits(Time t, std::uint64_t key, bool asks) {
  if (key_ == 0) return true;
  if (lease_over(t)) {
    protection_ = 0;
    ends_ = 0;
  }
  if (key == key_) {
    ends_ = 0;
    return true;
  }
  // IBTA 14.2.4.1: at levels 0 and 1 everybody may ask.
  if (asks && protection_ < 2) return true;
  if (violations_ != 0xffff) ++violations_;
  if (lease_ != 0 && ends_ == 0) ends_ = t + lease_ * kSecond;
  return false;
}

std::uint64_t ManagementKey::shown(Time t, std::uint64_t key) const {
  return key == key_ || protection(t) == 0 ? key_ : 0;
}

}  // namespace hcasim::fw
