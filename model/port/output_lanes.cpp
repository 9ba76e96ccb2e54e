// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/output_lanes.h"

#include <algorithm>
#include <utility>

namespace hcasim {

OutputLanes::OutputLanes(const sc_core::sc_module_name& name, Users users, FaultSink& faults)
    : sc_module(name),
      users_(std::move(users)),
      coming_(
          "coming", [this](Time t, Held& held) { come(t, held); }, faults),
      turns_(
          "turns", [this](Time t, bool&) { turn(t); }, faults) {}

void OutputLanes::push(Time t, Time ready, PacketRef packet, std::uint32_t tag) {
  coming_.push(std::max(t, ready), Held{ready, std::move(packet), tag});
}

void OutputLanes::clear() {
  coming_.clear();
  turns_.clear();
  for (auto& lane : held_) lane.clear();
  waiting_ = 0;
  arbiter_.clear();
}

// What finds the cable free, and nobody before it, goes at once.
void OutputLanes::come(Time t, Held& held) {
  const unsigned lane = lane_of(*held.packet);
  if (waiting_ == 0) {
    take_settings();
    if (users_.free() <= t) return go(t, lane, std::move(held));
    turns_.push(users_.free(), true);
  }
  ++waiting_;
  if (lane < kLanes) arbiter_.waits(lane);
  held_[lane].push_back(std::move(held));
}

void OutputLanes::take_settings() {
  if (const VirtualLanes* settings = users_.settings()) settings->apply(arbiter_);
}

// There is one that waits.
unsigned OutputLanes::next() {
  if (!held_[kLanes].empty()) return kLanes;
  unsigned lane = arbiter_.next();
  // A state that was made up may say otherwise of who waits.
  if (lane >= kLanes || held_[lane].empty())
    for (lane = 0; held_[lane].empty();) ++lane;
  return lane;
}

void OutputLanes::turn(Time t) {
  if (waiting_ == 0) return;
  take_settings();
  const unsigned lane = next();
  Held held = std::move(held_[lane].front());
  held_[lane].pop_front();
  --waiting_;
  go(t, lane, std::move(held));
  if (lane < kLanes) arbiter_.left(lane);
  if (waiting_ != 0) turns_.push(std::max(t, users_.free()), true);
}

void OutputLanes::go(Time t, unsigned lane, Held held) {
  const std::uint32_t bytes = users_.go(held.ready, std::move(held.packet), held.tag);
  // What goes while nobody else waits is not made up for later.
  if (lane < kLanes && arbiter_.counts(lane)) arbiter_.sent(t, lane, bytes);
}

}  // namespace hcasim
