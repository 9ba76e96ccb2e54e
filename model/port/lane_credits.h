// SPDX-License-Identifier: BSD-3-Clause
// Flow control of an InfiniBand link (IBTA 7.9): each data lane has as many credits, one for 64 bytes, as the
// far end has room for it. A packet takes its credits with it, and they are back when the far end's buffer
// has let it go and said so. What has none waits here, behind what waits on its lane already.
#ifndef HCASIM_MODEL_PORT_LANE_CREDITS_H
#define HCASIM_MODEL_PORT_LANE_CREDITS_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <systemc>

#include "model/packet/packet.h"
#include "model/port/virtual_lanes.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim {

class LaneCredits : public sc_core::sc_module {
 public:
  static constexpr unsigned kBlock = 64;  // bytes
  static constexpr unsigned kLanes = VirtualLanes::kLanes;
  // Packets that wait before the transmitter counts as stopped for all lanes.
  static constexpr std::size_t kMostWaiting = 64;

  // release: a packet that has waited goes out at t, with what hold() was told of it. resume: a lane that was
  // stopped is open again.
  struct Users {
    std::function<void(Time, PacketRef, std::uint32_t tag)> release;
    std::function<void(Time)> resume;
  };
  LaneCredits(const sc_core::sc_module_name& name, FaultSink& faults);
  void connect(Users users) { users_ = std::move(users); }
  // Bytes that the far end has for each lane; 0: it says nothing of room, and nothing waits.
  void set_room(std::uint32_t bytes);
  bool limited() const { return limit_ != 0; }

  // Keeps a packet that has to wait, which comes out by release() at t at the soonest; else its credits are
  // taken.
  bool hold(Time t, unsigned lane, std::uint32_t bytes, PacketRef& packet, std::uint32_t tag = 0);
  // A packet more than was asked for goes out.
  void take(unsigned lane, std::uint32_t bytes) { out_[lane] += blocks(bytes); }
  // What a packet of so many bytes has taken is back at t.
  void give_back(Time t, unsigned lane, std::uint32_t bytes);
  // The link was down: the far end has all its room, and what waits goes (to be lost). Nothing happens where
  // nothing is out.
  void renew(Time t);

  // Some lane is stopped; this one is: then resume() will say when it is not any more.
  bool stopped() const { return closed_ != 0; }
  // Every packet that waits satisfies it.
  template <class Is>
  bool all_held(Is is) const {
    return std::all_of(held_.begin(), held_.end(), [&](const std::deque<Held>& lane) {
      return std::all_of(lane.begin(), lane.end(), [&](const Held& h) { return is(*h.packet, h.tag); });
    });
  }
  bool stopped(unsigned lane) const { return (closed_ >> lane & 1u) != 0; }
  // Credits that have been given back, and are not here yet.
  std::size_t returning() const { return returns_.size(); }
  bool full() const { return waiting_ >= kMostWaiting; }
  // How long lanes have had packets and no credits for them, ps: PortXmitWait is made of it.
  Time waited() const { return waited_; }
  void clear_waited() { waited_ = 0; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, out_, held_, since_, waiting_, closed_, epoch_, returns_, waited_);
    if constexpr (Archive::kLoads) {
      std::size_t waiting = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        waiting += held_[lane].size();
        for (const Held& held : held_[lane])
          a.check(held.packet && held.packet->vl == lane && held.packet->packets == 1,
                  "this is no packet that waits for credits");
      }
      a.check(waited_ >= 0 && waited_ < kNever / 2, "nobody waits so long");
      a.check(waiting == waiting_, "another number of packets waits");
      a.check(closed_ < 1u << kLanes, "there is no such lane");
      for (std::size_t i = 0; i < returns_.size(); ++i)
        a.check(returns_.to_come(i)->lane < kLanes, "there is no such lane");
    }
  }

 private:
  struct Held {
    Time ready = 0;
    std::uint32_t blocks = 0;
    PacketRef packet;
    std::uint32_t tag = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, ready, blocks, packet);
      HCASIM_FIELDS_SINCE(9, a, tag);
    }
  };
  struct Return {
    std::uint32_t lane = 0, blocks = 0, epoch = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, lane, blocks, epoch);
    }
  };

  static std::uint32_t blocks(std::uint32_t bytes) { return (bytes + kBlock - 1) / kBlock; }
  // One that is larger than all the room goes alone.
  bool fits(unsigned lane, std::uint32_t blocks) const {
    return out_[lane] == 0 || out_[lane] + blocks <= limit_;
  }
  void returned(Time t, const Return& back);
  void let_go(Time t, unsigned lane);

  Users users_;
  std::uint32_t limit_ = 0, largest_ = 0;    // blocks: all room, the largest packet
  std::array<std::uint64_t, kLanes> out_{};  // blocks whose room is taken
  std::array<std::deque<Held>, kLanes> held_;
  std::array<Time, kLanes> since_{};  // when the first of them was ready, or the last one has left
  std::size_t waiting_ = 0;
  std::uint32_t closed_ = 0;  // lanes, a bit each
  std::uint32_t epoch_ = 0;   // credits of before the link was down do not count
  TimedQueue<Return> returns_;
  Time waited_ = 0;
};

}  // namespace hcasim
#endif
