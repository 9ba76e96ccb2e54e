// SPDX-License-Identifier: BSD-3-Clause
// What all HCAs of a process share while they run: the clock, the agenda, the numbers that are given out once
// each, and the pools. SystemC has one kernel a process, so there is one; there is no other run-time state of
// the model outside of its modules.
#ifndef HCASIM_MODEL_SIMULATION_CONTEXT_H
#define HCASIM_MODEL_SIMULATION_CONTEXT_H

#include <cstdint>

#include "model/clock.h"
#include "model/packet/packet_pool.h"
#include "model/pcie/host_copies.h"

namespace hcasim {

class Agenda;

struct SimulationContext {
  ModelClock clock;
  HostCopies copies;
  PacketPool packets;
  // A module: SystemC keeps it to its end. Null before the first block is made.
  Agenda* agenda = nullptr;
  std::uint64_t last_epoch = 0;          // (next_epoch())
  std::uint64_t last_frame_version = 0;  // (SteeredFrame::touch())

  // A new run in the same process, as tests make it: time is 0, and numbers begin anew, as if nothing had
  // been before. The HCAs are as the caller has left them, reset or new. False: a block has its turn or waits
  // for one, and nothing is changed.
  bool renew();

  // What a run depends on. Not how often blocks were given turns, which is another number in each kind of
  // kernel (model/agenda.h); nor the copies, all made when anybody can look.
  template <class Archive>
  void list_state(Archive& a) {
    Time now = this->now();
    a.lasting("now", now);
    a.lasting("last_epoch", last_epoch);
    a.lasting("last_frame_version", last_frame_version);
    if constexpr (Archive::kStores) {
      a("seq", clock.seq);
      if constexpr (Archive::kLoads) a.check(clock.seq <= kMostTurns, "so many turns are never asked for");
      a("activations", clock.activations);
      a("turns", clock.turns);
    }
    if constexpr (Archive::kLoads) {
      a.check(now >= 0 && now <= kLastTime, "this time does not come");
      go_to(now);
    }
  }
  // 100 days: times that follow from earlier ones remain numbers.
  static constexpr Time kLastTime = Time{100} * 86400 * 1'000'000'000'000;

 private:
  static Time now();
  // The time is t from now on. What blocks wait for stays due when it is.
  void go_to(Time t) const;
};

// Initialized before any code runs, and reached without a check whether it is; hidden, so that a shared
// library reaches it without its global offset table.
[[gnu::visibility("hidden")]] extern SimulationContext g_simulation;
inline SimulationContext& simulation() { return g_simulation; }

// A number that nothing of this run has had: distinguishes what was queued for an earlier state of a queue.
inline std::uint64_t next_epoch() { return ++simulation().last_epoch; }

}  // namespace hcasim
#endif
