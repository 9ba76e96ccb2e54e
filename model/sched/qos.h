// SPDX-License-Identifier: BSD-3-Clause
// Quality of service of send queues: rate limiters that SQs name by index (packet pacing), and the NIC's tree
// of scheduling elements, whose leaves are groups of queues. A queue sends when its limiter, and every
// element from its group up to the root, let it: an element has a largest rate, and a share of its parent's
// bandwidth that counts against the siblings that want to send too (deficit-weighted round robin, by virtual
// time). The largest rate of its traffic class counts, too. The manager of an E-Switch has another tree among
// its elements, whose leaves are vports: what all queues of a function send has to pass that one too.
#ifndef HCASIM_MODEL_SCHED_QOS_H
#define HCASIM_MODEL_SCHED_QOS_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "model/ctx/qp.h"
#include "model/function/id.h"
#include "model/port/port.h"
#include "model/sched/rate_clock.h"
#include "model/sched/traffic_classes.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class Qos {
 public:
  explicit Qos(double port_mbps) : port_mbps_(port_mbps) {}
  // The link has come to another rate.
  void set_port_rate(double mbps) { port_mbps_ = mbps; }

  static constexpr unsigned kPaces = 128;   // with number 0, which is no limit
  static constexpr unsigned kMaxDepth = 9;  // of the tree, root included: HTB has eight levels of classes
  static constexpr std::uint32_t kElements = 512;

  // --- What firmware sets. Index 0 and elements that do not exist change nothing.
  void set_pace(std::uint16_t index, std::uint32_t kbps, std::uint32_t burst);
  bool has_pace(std::uint16_t index) const { return index < kPaces && paces_[index].kbps != 0; }
  // parent 0: a root. share: weight, 0 as 1. mbps: 0 no limit.
  void create_element(std::uint32_t id, std::uint32_t parent);
  void set_share(std::uint32_t id, std::uint32_t share);
  void set_rate(std::uint32_t id, std::uint32_t mbps);
  void destroy_element(std::uint32_t id);
  unsigned depth(std::uint32_t id) const;  // 1: a root; 0: no such element
  // E-Switch: the element of a vport, 0: none. Of the manager's tree.
  void set_vport(std::uint16_t vport, std::uint32_t id);
  bool has_vport(std::uint16_t vport) const { return vports_.count(vport) != 0; }
  void clear();
  // Where the element of this function's own vport is found.
  void attach(Qos& manager, std::uint16_t vport);
  // The port's classes.
  void attach(TrafficClasses& classes) { classes_ = &classes; }

  // --- Hooks of the engines. responder: for the READ responses of the queue.
  // Something stands between the queue and the port.
  bool limits(const Qp& qp) const {
    const QpQos& q = qp.qos;
    return q.pace != 0 || q.group != 0 || q.responder_group != 0 || vport_limited() ||
           (classes_ && classes_->has_rate(class_of(qp)));
  }
  // When the queue may send its next packet: t, or later. Only asked when there is one.
  Time earliest(Time t, Qp& qp, bool responder) {
    return limits(qp) ? earliest_of_limited(t, qp, responder) : t;
  }
  void sent(Time t, Qp& qp, bool responder, const Packet& p) {
    if (limits(qp)) sent_of_limited(t, qp, responder, Port::wire_bytes(p));
    if (classes_ && classes_->counts(class_of(qp))) classes_->sent(t, class_of(qp), Port::wire_bytes(p));
  }
  // A queue of this group (0: of none) waits in line for the port from now on, and until left(): the group,
  // its vport, and what is above them want to send all that time.
  void waits(std::uint32_t group);
  void left(Time t, std::uint32_t group);
  // Nobody waits: who does is counted anew, as elements have come, gone or changed their place.
  void forget_waiting();
  // Elements and limiters are as if nothing had been sent yet.
  void begin_anew();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, paces_, elements_, vports_);
  }

 private:
  struct Pace {
    std::uint32_t kbps = 0, burst = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, kbps, burst);
    }
  };
  struct Element {
    std::uint32_t parent = 0;
    double share = 1;
    RateClock rate;
    double served = 0;          // bytes / share
    Time wanted = -1;           // when a queue below was last ready to send, or will be next
    std::uint32_t waiting = 0;  // queues below that wait for the port

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, parent, share, rate, served, wanted, waiting);
    }
  };
  Element* find(std::uint32_t id);
  unsigned class_of(const Qp& qp) const { return classes_->of(qp.priority()); }
  bool vport_limited() const { return manager_ != nullptr && !manager_->vports_.empty(); }
  std::uint32_t vport_element() const;
  // Of an element and all above it.
  Time earliest_by_rates(Time t, std::uint32_t id, Time at);  // no sooner than at
  Time earliest_by_shares(Time t, std::uint32_t id);
  void charge(Time t, std::uint32_t id, std::uint64_t bytes);
  void count_waiting(std::uint32_t id);
  void count_left(Time t, std::uint32_t id);
  Time earliest_of_limited(Time t, Qp& qp, bool responder);
  void sent_of_limited(Time t, Qp& qp, bool responder, std::uint64_t bytes);
  Time share_delay(Time t, std::uint32_t id, Element& e);
  Time quantum_time() const;

  double port_mbps_;
  std::array<Pace, kPaces> paces_;
  std::map<std::uint32_t, Element> elements_;
  std::map<std::uint16_t, std::uint32_t> vports_;  // manager: their elements
  Qos* manager_ = nullptr;
  std::uint16_t vport_ = 0;
  TrafficClasses* classes_ = nullptr;
};

}  // namespace hcasim
#endif
