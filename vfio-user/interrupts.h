// SPDX-License-Identifier: BSD-3-Clause
// MSI-X vectors as the client takes them: an eventfd each. A client that masks a vector takes its eventfd
// away and reads what is pending from the pending bit array.
#ifndef HCASIM_VFIO_USER_INTERRUPTS_H
#define HCASIM_VFIO_USER_INTERRUPTS_H

#include <cstdint>
#include <vector>

#include "vfio-user/descriptor.h"

namespace hcasim::vfio_user {

class Interrupts {
 public:
  explicit Interrupts(unsigned count) : files_(count) {}

  unsigned count() const { return static_cast<unsigned>(files_.size()); }
  // Whether a descriptor is an eventfd.
  static bool is_eventfd(const Descriptor& file);
  // Waits for a few tenths of a second at most; closes what has made it wait.
  static void add_one(Descriptor& file);
  // From now on this vector is signalled by this eventfd; none: it is pending instead. What was pending is
  // signalled at once. Out of range: does nothing.
  void set(unsigned vector, Descriptor file);
  // True: it has an eventfd. Out of range: does nothing.
  bool signal(unsigned vector);
  // Up to 64 vectors.
  std::uint64_t pending() const { return pending_; }
  // Of a saved state: as if these had been signalled, and no others were pending.
  void set_pending(std::uint64_t pending);
  // None has an eventfd, none is pending.
  void clear();
  // As clear(), and the eventfds stay.
  void reset() { pending_ = 0; }

 private:
  std::vector<Descriptor> files_;
  std::uint64_t pending_ = 0;
};

}  // namespace hcasim::vfio_user
#endif
