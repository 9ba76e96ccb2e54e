// SPDX-License-Identifier: BSD-3-Clause
// A queue of work with absolute due times, which has its turns from the agenda: the way every block of the
// model waits.
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

#include "model/agenda.h"
#include "model/time.h"

namespace hcasim {

// What a process body must do with an exception: none may leave it (it would stop the kernel for good).
class FaultSink {
 public:
  virtual void model_fault(const char* where, const char* what) noexcept = 0;

 protected:
  ~FaultSink() = default;
};

template <class Item>
class TimedQueue : public sc_core::sc_module, private Agenda::Block {
 public:
  using Handler = std::function<void(Time due, Item&)>;

  // window: how far ahead of simulated time an item may be handled, so that neighbours share one turn;
  // the handler gets the item's own due time and must use that, not sim_now().
  TimedQueue(const sc_core::sc_module_name& name, Handler handler, FaultSink& faults, Time window = 0)
      : sc_module(name), handler_(std::move(handler)), faults_(faults), window_(window) {}

  void push(Time due, const Item& item) { push(due, Item(item)); }
  void push(Time due, Item&& item) {
    // Most work comes in order of its due time and needs no heap.
    if (fifo_empty() || due >= fifo_.back().due) {
      fifo_.emplace_back(due, seq_++, std::move(item));
    } else {
      heap_.emplace_back(due, seq_++, std::move(item));
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
    if (!draining_) arm(due);
  }
  bool empty() const { return heap_.empty() && fifo_empty(); }
  // (model/prefetch.h)
  void prefetch() const {
    prefetch_block();
    prefetch_line(&armed_);
  }
  void prefetch_targets() const { prefetch_line(fifo_.data()); }
  std::size_t size() const { return heap_.size() + fifo_.size() - fifo_head_; }
  // One that comes after `after` others, as far as is known at once; null: none.
  const Item* to_come(std::size_t after) const {
    return after < fifo_.size() - fifo_head_ ? &fifo_[fifo_head_ + after].item : nullptr;
  }
  // Drops all items (device reset).
  void clear() {
    heap_.clear();
    fifo_.clear();
    fifo_head_ = 0;
    armed_ = kNever;
    cancel();
  }
  // (model/state/state.h) The items in the order in which they come.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      clear();
    } else if constexpr (Archive::kLoads) {
      clear();
      a.list("items", [&](auto read) {
        Listed one;
        read(one);
        a.check(fifo_empty() || one.due >= fifo_.back().due, "the items are not in their order");
        fifo_.emplace_back(one.due, seq_++, std::move(one.item));
      });
      list_turn(a);
      if (!fifo_empty()) armed_ = next_due();
    } else if constexpr (Archive::kStores) {
      const std::vector<Entry*> order = in_order();
      a.list("items", [&](auto write) {
        for (Entry* e : order) write(*e);
      });
      list_turn(a);
    } else {
      for (Entry* e : in_order()) e->list_state(a);
    }
  }

 private:
  struct Entry {
    Time due;
    std::uint64_t seq;
    Item item;
    // Made in its place: a copy of what has just been written would wait for the processor's stores.
    Entry(Time at, std::uint64_t number, Item&& what) : due(at), seq(number), item(std::move(what)) {}

    template <class Archive>
    void list_state(Archive& a) {
      a("due", due);
      a("item", item);
    }
  };
  // One that is read back.
  struct Listed {
    Time due = 0;
    Item item{};

    template <class Archive>
    void list_state(Archive& a) {
      a("due", due);
      a("item", item);
    }
  };
  std::vector<Entry*> in_order() {
    std::vector<Entry*> order;
    for (std::size_t i = fifo_head_; i < fifo_.size(); ++i) order.push_back(&fifo_[i]);
    for (Entry& e : heap_) order.push_back(&e);
    std::sort(order.begin(), order.end(), [](const Entry* x, const Entry* y) { return later(*y, *x); });
    return order;
  }
  static bool later(const Entry& a, const Entry& b) { return a.due != b.due ? a.due > b.due : a.seq > b.seq; }

  bool fifo_empty() const { return fifo_head_ == fifo_.size(); }
  // Whether the next item is the FIFO's; not to be asked of an empty queue.
  bool fifo_next() const {
    return heap_.empty() || (!fifo_empty() && later(heap_.front(), fifo_[fifo_head_]));
  }
  Time next_due() const { return fifo_next() ? fifo_[fifo_head_].due : heap_.front().due; }

  void drop_front() {
    ++fifo_head_;
    if (fifo_empty()) {
      fifo_.clear();
      fifo_head_ = 0;
    } else if (fifo_head_ >= kCompact && fifo_head_ * 2 >= fifo_.size()) {
      fifo_.erase(fifo_.begin(), fifo_.begin() + static_cast<std::ptrdiff_t>(fifo_head_));
      fifo_head_ = 0;
    }
  }

  void arm(Time due) {
    if (due >= armed_) return;
    armed_ = due;
    at(due);
  }

  std::size_t depth() const override { return size(); }

  void turn() override {
    armed_ = kNever;
    draining_ = true;
    const Time limit = sim_now() + window_;
    for (;;) {
      try {
        // The queue may grow while an item is handled, so it is out of it by then.
        while (!empty() && next_due() <= limit) {
          if (fifo_next()) {
            const Time due = fifo_[fifo_head_].due;
            Item item = std::move(fifo_[fifo_head_].item);
            drop_front();
            handler_(due, item);
          } else {
            std::pop_heap(heap_.begin(), heap_.end(), later);
            const Time due = heap_.back().due;
            Item item = std::move(heap_.back().item);
            heap_.pop_back();
            handler_(due, item);
          }
        }
        break;
      } catch (const std::exception& ex) {
        faults_.model_fault(name(), ex.what());
      } catch (...) {
        faults_.model_fault(name(), "unknown exception");
      }
    }
    draining_ = false;
    if (!empty()) arm(next_due());
  }

  static constexpr std::size_t kCompact = 64;

  // What each item changes comes first, in the cache line of Block and the next.
  std::vector<Entry> fifo_;  // from fifo_head_ on: items that came in order
  std::size_t fifo_head_ = 0;
  std::uint64_t seq_ = 0;
  Time armed_ = kNever;
  bool draining_ = false;
  std::vector<Entry> heap_;  // items that came out of order
  Handler handler_;
  FaultSink& faults_;
  Time window_;
};

}  // namespace hcasim
#endif
