// SPDX-License-Identifier: BSD-3-Clause
// A queue of work with absolute due times, drained by one SC_METHOD: the way every block of the model waits.
// Items come out in order of due time, equal times in order of arrival. State is plain data: no wait is
// hidden on a thread's stack.
#ifndef HCASIM_MODEL_TIMED_QUEUE_H
#define HCASIM_MODEL_TIMED_QUEUE_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <systemc>
#include <utility>
#include <vector>

#include "model/time.h"

namespace hcasim {

// Counts process activations of all HCAs (one SystemC kernel a process) for the benchmark.
extern std::uint64_t g_activations;

// What a process body must do with an exception: none may leave it (it would stop the kernel for good).
class FaultSink {
 public:
  virtual void model_fault(const char* where, const char* what) noexcept = 0;

 protected:
  ~FaultSink() = default;
};

template <class Item>
class TimedQueue : public sc_core::sc_module {
 public:
  using Handler = std::function<void(Time due, Item&)>;

  // window: how far ahead of simulated time an item may be handled, so that neighbours share one activation;
  // the handler gets the item's own due time and must use that, not sim_now().
  TimedQueue(const sc_core::sc_module_name& name, Handler handler, FaultSink& faults, Time window = 0)
      : sc_module(name), handler_(std::move(handler)), faults_(faults), window_(window) {
    SC_HAS_PROCESS(TimedQueue);
    SC_METHOD(drain);
    dont_initialize();
    sensitive << event_;
  }

  void push(Time due, Item item) {
    heap_.push_back(Entry{due, seq_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end(), later);
    if (!draining_) rearm();
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  // Drops all items (device reset).
  void clear() {
    heap_.clear();
    armed_ = kNever;
    event_.cancel();
  }

 private:
  struct Entry {
    Time due;
    std::uint64_t seq;
    Item item;
  };
  static bool later(const Entry& a, const Entry& b) { return a.due != b.due ? a.due > b.due : a.seq > b.seq; }

  void rearm() {
    if (heap_.empty()) return;
    const Time due = heap_.front().due;
    if (due >= armed_) return;
    const Time now = sim_now();
    armed_ = due;
    event_.cancel();
    event_.notify(to_sc(due > now ? due - now : 0));
  }

  void drain() {
    ++g_activations;
    armed_ = kNever;
    draining_ = true;
    const Time limit = sim_now() + window_;
    while (!heap_.empty() && heap_.front().due <= limit) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      Entry e = std::move(heap_.back());
      heap_.pop_back();
      try {
        handler_(e.due, e.item);
      } catch (const std::exception& ex) {
        faults_.model_fault(name(), ex.what());
      } catch (...) {
        faults_.model_fault(name(), "unknown exception");
      }
    }
    draining_ = false;
    rearm();
  }

  Handler handler_;
  FaultSink& faults_;
  Time window_;
  std::vector<Entry> heap_;
  std::uint64_t seq_ = 0;
  Time armed_ = kNever;
  bool draining_ = false;
  sc_core::sc_event event_;
};

}  // namespace hcasim
#endif
