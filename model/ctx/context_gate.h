// SPDX-License-Identifier: BSD-3-Clause
// The gate that work for a QP passes: open when the QP's context is on the chip. The requester asks it for
// its turns; packets that come sooner than the context are set aside here, and go on to the engine that they
// are for, in order.
#ifndef HCASIM_MODEL_CTX_CONTEXT_GATE_H
#define HCASIM_MODEL_CTX_CONTEXT_GATE_H

#include <cstdint>

#include "model/ctx/cache.h"
#include "model/ctx/qp.h"
#include "model/occupancy.h"
#include "model/packet/packet.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/timed_queue.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class ContextFetch;
class Health;
struct Profile;

// An engine that packets are set aside for.
class PacketTaker {
 public:
  // A packet for the QP, whose context is there.
  virtual void take(Time t, Qp& qp, PacketRef& packet) = 0;

 protected:
  ~PacketTaker() = default;
};

class ContextGate {
 public:
  struct Blocks {
    const Profile& profile;
    traces::Tracer& tracer;
    ContextFetch& fetch;
    FaultSink& faults;
    PerFunction<QpTable> qps;
    PerFunction<Health> health;
  };
  explicit ContextGate(const Blocks& blocks);
  // Who takes requests, and who takes their answers. Before the simulation starts.
  void connect(PacketTaker& requests, PacketTaker& answers) {
    requests_ = &requests;
    answers_ = &answers;
  }

  // When the context of a QP that work at t is for can be used; it is fetched if it is not there.
  Time usable_at(Time t, const Qp& qp);
  // The same of what is kept of a READ or atomic of its, the number-th: as many as can be under way at a time
  // have places of their own.
  Time read_usable_at(Time t, const Qp& qp, std::uint32_t number);
  // True: a packet for the QP is set aside until its context is there, and comes to its engine's take() then;
  // `parked` counts those of this engine. Later ones of the queue stay behind, others' go on.
  bool wait(Time t, const Qp& qp, Parked& parked, const PacketRef& packet);
  // Firmware changed the context in memory.
  void invalidate(const Qp& qp) { cache_.invalidate(context_id(qp.function, qp.qpn)); }

  // The function is reset: none of its contexts is on the chip any more.
  void invalidate_all_of(FunctionId f) {
    cache_.invalidate_if([f](std::uint64_t id) { return function_of_context(id) == f; });
    reads_.invalidate_if([f](std::uint64_t id) { return function_of_context(id / kReads) == f; });
  }

  const ContextCache& cache() const { return cache_; }
  void clear();
  void prefetch() const { cache_.prefetch(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, cache_, parked_);
    HCASIM_FIELDS_SINCE(2, a, reads_, reads_issue_);
  }

 private:
  static constexpr unsigned kReads = 16;  // of a QP at a time, at most: of each side

  struct Item {
    std::uint32_t qpn;
    FunctionId function;
    std::uint64_t epoch;  // RequesterState::epoch: what waits for a QP that was reset meanwhile is void
    PacketRef packet;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, qpn, function, epoch, packet);
    }
  };
  void pass(Time due, Item& item);

  Blocks blocks_;
  PacketTaker* requests_ = nullptr;
  PacketTaker* answers_ = nullptr;
  ContextCache cache_, reads_;
  const Time reads_share_;  // of the latency of a read, for each of them that may be under way
  Occupancy reads_issue_;
  TimedQueue<Item> parked_;
};

}  // namespace hcasim
#endif
