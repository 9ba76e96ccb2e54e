// SPDX-License-Identifier: GPL-2.0-or-later
// The workloads' messages on their way: posted when what they wait for is there, as RDMA WRITEs (with an
// immediate where the receiver has to hear of it), and noted when they have been acknowledged.
#ifndef HCASIM_FABRIC_TRAFFIC_H
#define HCASIM_FABRIC_TRAFFIC_H

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/cards.h"
#include "fabric/workload.h"

namespace hcasim::fabric {

class Traffic {
 public:
  Traffic(const Workload& workload, Cards& cards, Coupling& coupling);

  // Of what is to be connected and received.
  Cards::Needs needs() const;
  // Connects all that will speak. told: how many pairs of how many are done.
  void connect(const Ranks& ranks, const std::function<void(std::size_t, std::size_t)>& told);
  // From t on, a whole number of ns; times of messages count from there.
  void begin(Time t);

  // ready: nothing that it comes after is left; it is posted then, or when the connection's send queue has
  // room. ps, from begin(); kNever: not yet.
  struct Times {
    Time ready = kNever, done = kNever;
  };
  // Of messages from cards that are here.
  const std::vector<Times>& times() const { return times_; }
  std::size_t done() const { return done_; }
  std::uint64_t bytes_done() const { return bytes_done_; }
  // The first message that failed, of those of one time that of the least number.
  struct Failure {
    Time at = kNever;  // from begin(); kNever: none has
    std::uint32_t message = 0;
    std::string text;  // how
  };
  const Failure& failure() const { return failure_; }

 private:
  // First in, first out. An empty one allocates nothing, unlike std::deque: there may be thousands of
  // connections, each with two.
  class Fifo {
   public:
    bool empty() const { return head_ == items_.size(); }
    std::size_t size() const { return items_.size() - head_; }
    std::uint32_t front() const { return items_[head_]; }
    void push(std::uint32_t item) { items_.push_back(item); }
    void pop() {
      if (++head_ * 2 < items_.size()) return;
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }

   private:
    std::vector<std::uint32_t> items_;
    std::size_t head_ = 0;
  };
  // A card's end, of cards that are here.
  struct Connection {
    unsigned card = 0, peer = 0;
    bare::Qp* qp = nullptr;
    Fifo waiting, posted;          // messages
    std::uint32_t to_receive = 0;  // that no receive WQE has been posted for
    bool far_end_receives = false;
  };
  void ready(std::uint32_t message);
  void post(Connection& c);
  void post_receives(Connection& c, unsigned most);
  void sent(unsigned card);
  void received(unsigned card);
  void reached(std::uint32_t message, unsigned at);
  void failed(std::uint32_t message, const std::string& how);
  void start_due();
  Connection& connection(unsigned card, unsigned peer);
  Time since_begin() const { return fabric::now() - begin_; }

  const Workload& workload_;
  Cards& cards_;
  Coupling& coupling_;
  std::vector<std::uint32_t> first_dependency_;  // of each message, and one more
  std::vector<std::uint8_t> heard_;              // the receiver of this message has to hear of it
  std::vector<std::uint32_t> waits_;
  std::vector<Times> times_;
  std::vector<std::unordered_map<std::uint32_t, Connection>> by_peer_;  // of each card that is here
  std::vector<std::unordered_map<std::uint32_t, Connection*>> by_qpn_;
  std::vector<std::uint32_t> starts_;  // messages that wait for their time alone, by it
  std::size_t next_start_ = 0;
  std::size_t done_ = 0;
  std::uint64_t bytes_done_ = 0;
  Time begin_ = 0;
  Failure failure_;
};

}  // namespace hcasim::fabric
#endif
