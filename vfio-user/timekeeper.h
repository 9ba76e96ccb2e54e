// SPDX-License-Identifier: BSD-3-Clause
// The one clock of all cards of the process, and the one place that lets simulated time pass. vfio-user has
// no clock of its own, so this one is the machine's (CLOCK_MONOTONIC); after each access the model runs ahead
// of it, from event to event, by up to `ahead` ns, as a result that comes too early costs less than a
// wake-up.
#ifndef HCASIM_VFIO_USER_TIMEKEEPER_H
#define HCASIM_VFIO_USER_TIMEKEEPER_H

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace hcasim::vfio_user {

class Timekeeper {
 public:
  // now: ns of a clock that never goes back.
  Timekeeper(std::function<std::int64_t()> now, std::int64_t ahead) : clock_(std::move(now)), ahead_(ahead) {}

  // Elaborates all HCAs made so far. False: they cannot start.
  bool start();
  // Brings the model to now: what is due happens before whatever is done next.
  void before();
  // Lets the model run on after something was done.
  void after();
  // A state was loaded: the model's clock is the state's from now on.
  void state_loaded();
  // When the model wants to be run again, on the clock given; HCA_NEVER: not of its own accord.
  std::int64_t next() const;
  // What is to be done when the model has returned: called by after(), may do whatever it likes.
  void put_off(std::function<void()> what) { put_off_.push_back(std::move(what)); }

 private:
  std::int64_t model_now();
  void advance(std::int64_t ahead);

  std::function<std::int64_t()> clock_;
  std::int64_t ahead_;
  std::int64_t now_ = 0;   // of the model
  std::int64_t lost_ = 0;  // ns that the host kept from this process and that were no time to the model
  std::int64_t next_ = INT64_MAX;  // of the model: HCA_NEVER
  std::vector<std::function<void()>> put_off_;
};

}  // namespace hcasim::vfio_user
#endif
