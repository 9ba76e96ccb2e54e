// SPDX-License-Identifier: BSD-3-Clause
// The port's M_Key (IBTA 14.2.4): who may manage the subnet by this port. Of SMPs with another key those that
// change something are dropped, and those that ask are, too, at the higher levels of protection; the manager
// is told, and if it does not come back within the lease period, protection ends.
#ifndef HCASIM_FIRMWARE_STUB_MANAGEMENT_KEY_H
#define HCASIM_FIRMWARE_STUB_MANAGEMENT_KEY_H

#include <cstdint>

#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim::fw {

class ManagementKey {
 public:
  // What a subnet manager has set (PortInfo). lease: s, 0: for ever; protection: M_KeyProtectBits, 0 to 3.
  void set(std::uint64_t key, unsigned protection, std::uint16_t lease);
  void clear_violations() { violations_ = 0; }

  // An SMP with this key, which has it done or only asks: whether it is admitted. If not: counted, and the
  // lease begins to run.
  bool admits(Time t, std::uint64_t key, bool asks);
  // As a PortInfo that is read by an SMP with this key shows it: 0 while it is kept from others.
  std::uint64_t shown(Time t, std::uint64_t key) const;

  std::uint64_t key() const { return key_; }
  unsigned protection(Time t) const { return lease_over(t) ? 0 : protection_; }
  std::uint16_t lease() const { return lease_; }
  std::uint16_t violations() const { return violations_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, key_, protection_, lease_, violations_, ends_);
  }

 private:
  bool lease_over(Time t) const { return ends_ != 0 && t >= ends_; }

  std::uint64_t key_ = 0;  // 0: everybody may
  unsigned protection_ = 0;
  std::uint16_t lease_ = 0, violations_ = 0;
  Time ends_ = 0;  // when the lease that runs is over; 0: it does not run
};

}  // namespace hcasim::fw
#endif
