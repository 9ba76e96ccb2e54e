// SPDX-License-Identifier: BSD-3-Clause
// The machine of a measurement: its HCAs, brought up, on the fabric that the set-up names.
#ifndef HCASIM_DRIVER_TIMING_CARDS_H
#define HCASIM_DRIVER_TIMING_CARDS_H

#include <memory>
#include <vector>

#include "driver/bare/device.h"
#include "driver/timing/setup.h"

namespace hcasim::timing {

class Cards {
 public:
  // setup: resolved. memory: bytes that the measurement takes beside what drivers do. Throws SetupError,
  // bare::BareError.
  Cards(const Setup& setup, std::size_t memory);
  ~Cards();
  bare::Machine& machine() { return *machine_; }
  // The functions that send, and the one that all of them send to: the same one with fabric=loopback.
  bare::Device& sender(unsigned i) { return *devices_[first_ + (lone_ ? 0 : i + 1)]; }
  bare::Device& receiver() { return *devices_[first_]; }

 private:
  std::unique_ptr<bare::Machine> machine_;
  std::vector<std::unique_ptr<bare::Device>> devices_;  // physical functions, then virtual ones
  std::size_t first_ = 0;                               // of those that are measured
  bool lone_ = false;
};

}  // namespace hcasim::timing
#endif
