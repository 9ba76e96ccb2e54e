// SPDX-License-Identifier: BSD-3-Clause
// Pause of a full-duplex Ethernet port: IEEE 802.3 annex 31B (all traffic) and 31D, 802.1Qbb (priority by
// priority). Frames received stop the transmitter; a congested receive side has them sent.
#ifndef HCASIM_MODEL_PORT_PAUSE_H
#define HCASIM_MODEL_PORT_PAUSE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <systemc>
#include <utility>

#include "model/packet/packet.h"
#include "model/port/priority.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim {

constexpr std::uint16_t kMacControl = 0x8808;  // ethertype
bool is_mac_control(const Packet& p);
constexpr unsigned kQuantumBits = 512;  // of pause times

// A MAC control frame that asks for a pause; times in quanta of 512 bit times, 0 ends one.
struct PauseFrame {
  bool by_priority = false;
  std::uint8_t priorities = 0;                      // by_priority: those that are meant
  std::array<std::uint16_t, kPriorities> quanta{};  // not by_priority: the first
};

// False: a MAC control frame of another kind, or too short.
bool parse_pause(const Packet& p, PauseFrame& out);
PacketRef make_pause(const Mac& from, const PauseFrame& frame);

// How often and for how long a priority has been stopped, since the counters were cleared.
class PauseTime {
 public:
  // From t on it is stopped until then; it may have been before. t itself: it goes on.
  void stop(Time t, Time until) {
    lasted_ = lasted(t);
    if (!on(t) && until > t) ++stops_;
    since_ = t;
    until_ = until;
  }
  void clear(Time t) {
    lasted_ = 0;
    stops_ = on(t) ? 1 : 0;
    since_ = t;
  }
  Time lasted(Time t) const { return lasted_ + std::max<Time>(0, std::min(t, until_) - since_); }
  // Times that it could go on again.
  std::uint64_t ended(Time t) const { return stops_ - (on(t) && stops_ != 0 ? 1 : 0); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, stops_, lasted_, since_, until_);
    if constexpr (Archive::kLoads)
      a.check(lasted_ >= 0 && lasted_ < kNever / 2 && since_ >= 0 && until_ >= 0,
              "nobody is stopped for so long");
  }

 private:
  bool on(Time t) const { return t < until_; }

  std::uint64_t stops_ = 0;
  Time lasted_ = 0;  // ps, before since_
  Time since_ = 0, until_ = 0;
};

class Pause : public sc_core::sc_module {
 public:
  // What it needs of the port. release: a packet that was held back goes out at t. resume: what was stopped
  // may go on earlier than announced. request: a pause frame is to be sent at t.
  struct Users {
    std::function<void(Time, PacketRef)> release;
    std::function<void(Time)> resume;
    std::function<void(Time, const PauseFrame&)> request;
  };
  // Until when the receive side is busy with what it has.
  using Backlog = std::function<Time()>;

  // xoff, xon: backlog of the receive side from which on a pause is asked for, and to which it falls before
  // that ends.
  Pause(const sc_core::sc_module_name& name, Time xoff, Time xon, FaultSink& faults);
  // 512 bit times at the link's rate, ps.
  void set_quantum(double quantum) { quantum_ = quantum; }
  void connect(Users users) { users_ = std::move(users); }
  void watch(Backlog backlog) { backlog_ = std::move(backlog); }

  // --- Transmit side
  // Anything is stopped at t, or packets wait: only then are the other questions worth asking.
  bool active(Time t) const { return t < last_ || waiting_ != 0; }
  // When a packet of this priority, ready at t, may leave.
  Time open_at(Time t, unsigned priority) const { return std::max(t, until_[priority]); }
  // Keeps a packet whose priority is stopped or has others waiting; it comes out by release().
  bool hold(Time t, unsigned priority, PacketRef& packet);
  std::size_t waiting() const { return waiting_; }
  // From when on nothing stops the transmitter as a whole.
  Time all_open() const;
  // Stops all priorities until then, if they are not stopped for longer.
  void stop(Time until);
  // A frame came: priorities, those of the frame that are to be obeyed.
  void take(Time t, const PauseFrame& frame, std::uint8_t priorities);

  // --- Receive side
  // A packet of this priority has arrived. whole: pause frames may be sent; priorities: those of which PFC
  // frames may.
  void arrived(Time t, unsigned priority, bool whole, std::uint8_t priorities);
  // Thresholds of a priority of its own: those of its buffer. xoff 0: the port's.
  void set_thresholds(unsigned priority, Time xoff, Time xon) {
    thresholds_[priority] = {xoff, std::min(xon, xoff)};
  }

  // Counted by priority; pauses of the port as a whole count as priority 0's. received: of our transmitter,
  // as far as it obeys; asked: of the far end's.
  const PauseTime& received(unsigned priority) const { return received_[priority]; }
  const PauseTime& asked(unsigned priority) const { return asked_time_[priority]; }
  void clear_times(Time t, unsigned priority);

  void clear();

  // Packets that wait in the port before the transmitter counts as stopped for all.
  static constexpr std::size_t kMostWaiting = 64;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, until_, last_, held_, waiting_, thresholds_, xon_asked_, asked_whole_, asked_,
                  ask_again_, checking_, opens_, checks_);
    HCASIM_FIELDS_SINCE(13, a, received_, asked_time_);
    if constexpr (Archive::kLoads) {
      for (std::size_t i = 0; i < opens_.size(); ++i)
        a.check(*opens_.to_come(i) < kPriorities, "there is no such priority");
      for (const auto& queue : held_)
        for (const Held& held : queue) a.check(static_cast<bool>(held.packet), "a packet is missing");
    }
  }

 private:
  static constexpr std::uint16_t kLongest = 0xffff;  // quanta asked for; again at half of them

  Time quanta(unsigned n) const { return static_cast<Time>(n * quantum_); }
  void set(unsigned priority, Time until);
  void open(Time due, unsigned priority);
  void ask(Time t, bool stop);
  Time next_look(Time late) const;
  void check(Time due);

  Users users_;
  Backlog backlog_;
  double quantum_ = 0;
  const Time xoff_, xon_;
  std::array<Time, kPriorities> until_{};
  Time last_ = 0;  // the latest of them
  struct Held {
    Time ready;
    PacketRef packet;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, ready, packet);
    }
  };
  std::array<std::deque<Held>, kPriorities> held_;
  std::size_t waiting_ = 0;
  struct Thresholds {
    Time xoff = 0, xon = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, xoff, xon);
    }
  };
  std::array<Thresholds, kPriorities> thresholds_{};
  // Asked of the other side
  Time xon_asked_ = 0;  // to what the backlog has to fall
  bool asked_whole_ = false;
  std::uint8_t asked_ = 0;
  Time ask_again_ = 0;
  bool checking_ = false;
  std::array<PauseTime, kPriorities> received_{}, asked_time_{};
  TimedQueue<unsigned> opens_;  // priorities
  TimedQueue<bool> checks_;
};

}  // namespace hcasim
#endif
