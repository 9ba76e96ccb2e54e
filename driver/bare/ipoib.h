// SPDX-License-Identifier: BSD-3-Clause
// The UD QP of IPoIB's enhanced offloads (qpc.ulp_stateless_offload_mode 2): in its name queues of frames
// send datagrams and receive them. It has no queues of its own.
#ifndef HCASIM_DRIVER_BARE_IPOIB_H
#define HCASIM_DRIVER_BARE_IPOIB_H

#include <cstdint>

#include "driver/bare/command.h"
#include "driver/bare/device.h"

namespace hcasim::bare {

class IpoibQp {
 public:
  // In RESET.
  explicit IpoibQp(Device& device);
  ~IpoibQp();
  IpoibQp(const IpoibQp&) = delete;
  IpoibQp& operator=(const IpoibQp&) = delete;

  std::uint32_t qpn() const { return qpn_; }
  // INIT, RTR, RTS; throws BareError at the first refusal.
  void start(std::uint32_t qkey, std::uint16_t pkey_index = 0);
  CommandResult to_reset();
  CommandResult destroy();

 private:
  Device& device_;
  std::uint32_t qpn_ = 0;
  std::uint64_t epoch_;
  bool live_ = false;
};

}  // namespace hcasim::bare
#endif
