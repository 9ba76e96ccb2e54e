// SPDX-License-Identifier: BSD-3-Clause
// Cards for doors: powered on, and so again before each input, the machine's memory and clock included.
#ifndef HCASIM_TESTS_FUZZ_DOORS_CARD_RIG_H
#define HCASIM_TESTS_FUZZ_DOORS_CARD_RIG_H

#include <memory>
#include <string>
#include <vector>

#include "driver/bare/device.h"

namespace hcasim::fuzz {

class CardRig {
 public:
  // A machine with a card for each of these options, and behind them all so many virtual functions of each.
  explicit CardRig(const std::vector<std::string>& options, std::size_t vfs = 0);

  bare::Machine& machine() { return machine_; }
  bare::Function& function(std::size_t i = 0) { return machine_.function(i); }

  // All is as it is now whenever rewind() is called. Nothing of the driver's that is made later outlives
  // that, but what it takes from the machine's memory has to have been given back.
  void keep();
  void rewind();
  // A finding if a card is in its fatal state though no fault put it there, or has found its own model
  // broken.
  void check();

 private:
  bare::Machine machine_;
  std::string state_;
  std::vector<std::uint8_t> memory_;
  std::int64_t now_ = 0;
};

}  // namespace hcasim::fuzz
#endif
