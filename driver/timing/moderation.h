// SPDX-License-Identifier: BSD-3-Clause
// Interrupt moderation that follows the load, as Linux does it for what a network interface receives (its
// net_dim, by which ethtool's adaptive-rx goes): five levels; after 64 events each, one step in the direction
// that was better before, and rest where neither direction is.
#ifndef HCASIM_DRIVER_TIMING_MODERATION_H
#define HCASIM_DRIVER_TIMING_MODERATION_H

#include <cstdint>

#include "driver/timing/cpu.h"

namespace hcasim::timing {

class AdaptiveModeration {
 public:
  // A CQ's period, which each CQE begins anew, and count.
  struct Level {
    unsigned period_us, max_count;
  };
  // What has been so far.
  struct Sample {
    std::uint64_t events = 0, frames = 0, bytes = 0;
    Ps time = 0;
  };

  const Level& level() const;
  // After each turn of the handler. True: level() is another, which the caller has the card take; until
  // taken() it measures nothing.
  bool note(const Sample& now);
  void taken() { state_ = State::kBegin; }

 private:
  struct Rates {
    std::int64_t bytes = 0, frames = 0, events = 0;  // a millisecond
  };
  enum class State { kBegin, kMeasuring, kChanging };
  enum class Way { kRest, kTired, kUp, kDown };
  // More bytes, else more frames, else fewer events; what differs by 10 % or less is the same.
  static int better(const Rates& now, const Rates& before);
  void decide(const Rates& now);
  void turn();
  bool between_worse() const;
  void step();
  void leave_rest();
  void rest(Way way);

  State state_ = State::kBegin;
  Way way_ = Way::kUp;
  unsigned level_ = 1, up_ = 0, down_ = 0;  // steps in either direction since the last turn
  unsigned steps_ = 0;                      // since it last rested; too many make it tired
  Sample since_;
  Rates before_;
};

}  // namespace hcasim::timing
#endif
