// SPDX-License-Identifier: BSD-3-Clause
// An output of a modelled InfiniBand switch: what waits for the cable, by lanes, and whose turn it is (IBTA
// 7.6.9: management's lane, then weighted arbitration of two priorities). Credits are not its business: what
// comes here has them.
#ifndef HCASIM_MODEL_PORT_OUTPUT_LANES_H
#define HCASIM_MODEL_PORT_OUTPUT_LANES_H

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <systemc>

#include "model/packet/packet.h"
#include "model/port/virtual_lanes.h"
#include "model/sched/traffic_classes.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim {

class OutputLanes : public sc_core::sc_module {
 public:
  static constexpr unsigned kLanes = VirtualLanes::kLanes;
  struct Users {
    // A packet goes: its first bit at `ready` or when the cable is free, whichever is later. Returns the
    // bytes of the cable that it took; tag: as push() was told.
    std::function<std::uint32_t(Time ready, PacketRef, std::uint32_t tag)> go;
    std::function<Time()> free;                     // when the cable is
    std::function<const VirtualLanes*()> settings;  // null: each lane has the same share
  };
  OutputLanes(const sc_core::sc_module_name& name, Users users, FaultSink& faults);

  // A packet that is here at t, whose first bit may leave at `ready`.
  void push(Time t, Time ready, PacketRef packet, std::uint32_t tag);
  // Drops all that waits.
  void clear();
  std::size_t waiting() const { return waiting_ + coming_.size(); }
  // Every packet that waits satisfies it.
  template <class Is>
  bool all(Is is) const {
    for (std::size_t i = 0; i < coming_.size(); ++i)
      if (const Held* h = coming_.to_come(i); !is(*h->packet, h->tag)) return false;
    for (const auto& lane : held_)
      for (const Held& h : lane)
        if (!is(*h.packet, h.tag)) return false;
    return true;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, coming_, held_, turns_, arbiter_);
    if constexpr (Archive::kResets) {
      waiting_ = 0;
    } else if constexpr (Archive::kLoads) {
      waiting_ = 0;
      for (unsigned lane = 0; lane <= kLanes; ++lane) {
        waiting_ += held_[lane].size();
        for (const Held& h : held_[lane])
          a.check(h.good() && lane_of(*h.packet) == lane, "this is no packet that waits for an output");
      }
      for (std::size_t i = 0; i < coming_.size(); ++i) {
        a.check(coming_.to_come(i)->good(), "this is no packet that waits for an output");
      }
      a.check(waiting_ == 0 || !turns_.empty(), "what waits would never have its turn");
    }
  }

 private:
  struct Held {
    Time ready = 0;
    PacketRef packet;
    std::uint32_t tag = 0;

    bool good() const { return packet && ready >= 0 && ready < kNever / 2; }
    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, ready, packet, tag);
    }
  };

  // kLanes: management's.
  static unsigned lane_of(const Packet& p) { return p.vl15 || p.vl >= kLanes ? kLanes : p.vl; }
  void take_settings();
  unsigned next();
  void come(Time t, Held& held);
  void turn(Time t);
  void go(Time t, unsigned lane, Held held);

  Users users_;
  TimedQueue<Held> coming_;
  std::array<std::deque<Held>, kLanes + 1> held_;
  std::size_t waiting_ = 0;
  TimedQueue<bool> turns_;
  TrafficClasses arbiter_;
};

}  // namespace hcasim
#endif
