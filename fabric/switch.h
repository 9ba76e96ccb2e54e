// SPDX-License-Identifier: GPL-2.0-or-later
// An output-queued Ethernet switch with routes: eight queues an output, of which higher priorities go first;
// ECN marks (RED over a queue's length), priority flow control with headroom for each input and priority,
// ECMP by the hash of a packet's addresses and ports, finite buffers.
//
// It knows nothing of who simulates it: it is told of frames before they arrive, asks to be woken, and says
// when a frame leaves. What happens at one time does so in an order of its own, outputs before inputs and
// each by port, whoever was told first: so runs repeat, however the parts of a fabric are spread.
#ifndef HCASIM_FABRIC_SWITCH_H
#define HCASIM_FABRIC_SWITCH_H

#include <cstdint>
#include <deque>
#include <random>
#include <unordered_map>
#include <vector>

#include "fabric/frame.h"

namespace hcasim::fabric {

struct SwitchConfig {
  // First bit in to first bit out with nothing in the way, at least 1 ns. Not cut through: last bit in to
  // first bit out.
  Time latency = 300 * kNs;
  bool cut_through = true;
  std::uint64_t buffer = 16u << 20;  // bytes that wait in the switch, headroom apart
  std::uint64_t queue = 2u << 20;    // bytes that wait in one queue, of priorities that PFC does not stop
  // ECN: none is marked while a queue has up to kmin bytes, all from kmax on, a share that grows to pmax
  // between. kmax 0: off.
  std::uint64_t kmin = 0, kmax = 0;
  double pmax = 0.01;
  // PFC. Of each input and priority: bytes that wait from which on the far end is stopped, and to which they
  // fall before it may go on; headroom: what may come in until then.
  std::uint8_t lossless = 0;  // priorities
  std::uint64_t xoff = 0, xon = 0, headroom = 0;
  std::uint64_t seed = 1;
};

struct PortCounters {
  std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;  // with FCS
  Time busy = 0;                                                           // sending, ps
  std::uint64_t marked = 0;                                                // ECN, at this output
  std::uint64_t dropped_full = 0;                                          // for this output: queue or buffer
  std::uint64_t dropped_headroom = 0;                                      // at this input
  std::uint64_t dropped_unrouted = 0;                  // at this input: no route, too short
  std::uint64_t pauses_sent = 0, pauses_received = 0;  // frames; sent: that stop
  Time paused = 0;                  // the transmitter had something to send and might not, ps
  std::uint64_t most_queued = 0;    // bytes in one queue of this output
  std::uint64_t most_headroom = 0;  // bytes in the headroom of a priority of this input
  std::uint64_t arrivals_hash = 0;  // of (time, bytes) of each
};

class Switch {
 public:
  class Owner {
   public:
    // run() is to be called at t. Earlier wishes stand.
    virtual void wake_at(Time t) = 0;
    // The frame's last bit leaves the port at t, later than now.
    virtual void leaves(unsigned port, FramePtr frame, Time t) = 0;

   protected:
    ~Owner() = default;
  };

  Switch(const SwitchConfig& config, unsigned number, Owner& owner);

  // Before time starts. Returns the port's number. rate: Gb/s.
  unsigned add_port(double rate_gbps);
  // Frames to that MAC leave by one of these ports; the set is kept by route sets that are equal.
  void add_route(std::uint64_t mac, const std::vector<unsigned>& ports);
  // Times in the hash of arrivals count from here.
  void begin(Time t) { begin_ = t; }

  // The last bit of a frame arrives at t, later than the last run().
  void arrives(unsigned port, FramePtr frame, Time t);
  void run(Time now);

  std::size_t ports() const { return ports_.size(); }
  // Up to now: with what waits still paused.
  PortCounters counters(unsigned port, Time now) const;
  // Bytes; of the longest of the output's queues, as PortCounters::most_queued.
  std::uint64_t longest_queue(unsigned port) const;
  std::uint64_t buffered() const { return shared_ + in_headroom_; }
  double rate_gbps(unsigned port) const { return ports_[port].rate_gbps; }
  const SwitchConfig& config() const { return config_; }

 private:
  struct Queue {
    std::deque<FramePtr> frames;
    std::uint64_t bytes = 0;
    Time paused_until = 0;
  };
  struct Ingress {
    std::uint64_t bytes = 0, headroom = 0;
    bool stopped = false;  // the far end
    Time again_at = 0;     // when the stop is to be renewed
  };
  struct Port {
    double rate_gbps = 0, ps_per_byte = 0;
    Time free = 0;          // the transmitter
    Time turn_at = kNever;  // its next turn
    Time blocked_since = kNever;
    std::uint64_t queued = 0;
    Queue queues[kPriorities];
    Ingress ingress[kPriorities];
    std::uint8_t stop = 0, go = 0;  // priorities of pause frames that are to be sent
    PortCounters counters;
  };
  enum Kind : std::uint8_t { kTurn, kRenew, kArrival };
  struct Item {
    Time at = 0;
    Kind kind = kTurn;
    std::uint32_t port = 0, priority = 0;
    FramePtr frame;
  };
  static bool later(const Item& a, const Item& b);

  void push(Item&& item);
  void turn_at(unsigned port, Time t);
  void arrive(unsigned port, FramePtr frame, Time now);
  void take_pause(unsigned port, const Frame& frame, Time now);
  bool admit(unsigned in, unsigned out, Frame& frame, Time now);
  void stop(unsigned in, unsigned priority, Time now);
  bool may_go_on(const Ingress& from) const;
  void go(unsigned in, unsigned priority, Time now);
  void mark(Port& out, Frame& frame);
  void turn(unsigned port, Time now);
  Time next_chance(const Port& port, Time now) const;
  void note_blocked(Port& port, Time now) const;
  bool send_pause(unsigned port, Time now);
  void leave_buffer(const Frame& frame, Time now);

  const SwitchConfig config_;
  const unsigned number_;
  Owner& owner_;
  std::deque<Port> ports_;
  std::vector<std::vector<unsigned>> groups_;
  const std::vector<unsigned>* route(std::uint64_t mac) const;
  // Of MACs 02:00:00:xx:xx:xx, which a fabric's cards have, by their last bytes: a group and one more. All
  // others.
  std::vector<std::uint16_t> near_routes_;
  std::unordered_map<std::uint64_t, std::uint16_t> far_routes_;
  std::vector<Item> agenda_;  // a heap
  Time armed_ = kNever, begin_ = 0;
  std::uint64_t shared_ = 0, in_headroom_ = 0;  // bytes
  std::mt19937_64 random_;
};

}  // namespace hcasim::fabric
#endif
