// SPDX-License-Identifier: BSD-3-Clause
// Drives the one SystemC kernel of the process in step with the caller's clock (design, section 5).
#ifndef HCASIM_CARD_SIMULATION_H
#define HCASIM_CARD_SIMULATION_H

#include <cstdint>
#include <string>

#include "model/time.h"

namespace hcasim::api {

class Simulation {
 public:
  static Simulation& instance();

  // Before the first module is made: no SystemC report may print, abort or stop the kernel. native: each
  // block is a SystemC process of its own. False: the process has HCAs that live otherwise, by `why`.
  bool prepare(bool native, std::string& why);
  bool started() const { return started_; }
  // An exception left the kernel: simulated time stands still for good.
  bool dead() const { return dead_; }
  const std::string& cause() const { return cause_; }

  bool start(std::int64_t now) noexcept;
  // As hca_sim_advance().
  std::int64_t advance(std::int64_t now, std::int64_t ahead) noexcept;
  std::int64_t time() const noexcept;
  // How often advance() has begun: two calls of the model's are of one if it is the same.
  std::uint64_t advances() const { return advances_; }
  // As hca_sim_meeting().
  std::int64_t meeting(std::int64_t* event) const noexcept;
  // Of saved states: where the caller's clock began.
  template <class Archive>
  void list_clock(Archive& a) {
    a("clock_at_start", base_);
    if constexpr (Archive::kLoads)
      a.check(base_ > -kFurthest && base_ < kFurthest, "no clock shows such a time");
  }
  // A new run of the HCAs that there are, from this time of the caller's clock on
  // (SimulationContext::renew()). False: something is under way, or time goes in step with another process.
  bool renew(std::int64_t now) noexcept;

  // Who keeps simulated time in step with that of other processes.
  class Partners {
   public:
    // The model must not run beyond this, ps.
    virtual Time limit() const = 0;
    // It has come there; its next event is at `next`. Returns with a limit that lies later. May wait.
    virtual void meet(Time next) = 0;
    // Whether they only tell each other of times when they meet next.
    virtual bool meet_plainly() const = 0;

   protected:
    ~Partners() = default;
  };
  void set_partners(Partners* partners) { partners_ = partners; }
  // Simulated time, ps, of a time of the caller's clock.
  Time at(std::int64_t ns) const;
  // The other way about: ps of the caller's clock.
  std::int64_t caller_ps(Time t) const { return base_ * 1000 + t; }
  Time of_caller_ps(std::int64_t ps) const { return ps - base_ * 1000; }

  // Held while the model runs: a call that comes back from a callback finds busy() and runs nothing.
  class Entry {
   public:
    explicit Entry(Simulation& s) : s_(s) { ++s_.depth_; }
    ~Entry() { --s_.depth_; }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Simulation& s_;
  };
  bool busy() const { return depth_ != 0; }

 private:
  // 146 years in ns: times of two clocks differ by a number.
  static constexpr std::int64_t kFurthest = INT64_MAX / 2;
  static void run_to(std::int64_t ps);
  std::int64_t next() const;
  std::int64_t in_ns(std::int64_t due) const;
  void failed(const char* what) noexcept;

  bool prepared_ = false, started_ = false, dead_ = false;
  unsigned depth_ = 0;
  std::uint64_t advances_ = 0;
  Partners* partners_ = nullptr;
  std::int64_t base_ = 0;  // the caller's clock at simulated time 0, ns
  std::string cause_;
};

}  // namespace hcasim::api
#endif
