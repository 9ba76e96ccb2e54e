// SPDX-License-Identifier: BSD-3-Clause
// Who is due next, of all blocks of all HCAs of the process: one SystemC process gives each its turn at its
// time. It runs ahead of SystemC's clock, from one block's time to the next, for as long as nothing else in
// the kernel is due before (temporal decoupling, as TLM-2.0 has it, but without error: nobody can tell). So a
// message's packets cost a call each and not a turn of the kernel's scheduler.
// Where it is the kernel's only process for good (set_alone()), its caller gives it time directly: SystemC's
// clock then only follows, a quantum behind (sync()).
#ifndef HCASIM_MODEL_AGENDA_H
#define HCASIM_MODEL_AGENDA_H

#include <cstddef>
#include <cstdint>
#include <systemc>
#include <vector>

#include "model/prefetch.h"
#include "model/time.h"

namespace hcasim {

class Agenda : public sc_core::sc_module {
 public:
  // A block that waits for a time.
  class alignas(64) Block {
   public:
    Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    // Asks for a turn at t (earlier than now: now), in place of the one asked for before. Equal times: in the
    // order in which they were asked for.
    void at(Time t);
    void cancel();
    void prefetch_block() const { prefetch_line(this); }

   protected:
    ~Block();
    // No exception may leave it.
    virtual void turn() = 0;

   private:
    friend class Agenda;
    Agenda& agenda_;
    std::size_t slot_ = kNone;
  };

  // Made with the first block; never destroyed.
  static Agenda& instance();

  // Whether blocks have their turns; whoever else asks is outside of the model.
  static bool running() { return instance().running_; }

  // How far it may run ahead of SystemC's clock in the calls of sc_start() that follow, absolute: no further
  // than they run themselves, and no access comes from outside before. 0 (initially): not at all.
  void set_horizon(Time t) { horizon_ = t; }
  // There is no other process in the kernel, and there will be none: run_alone() takes the place of
  // sc_start(). Before the simulation starts.
  void set_alone();
  // Alone: gives all turns that are due up to t, absolute. The time is that of the last one then, or t
  // (to_the_end).
  void run_alone(Time t, bool to_the_end);
  // Alone: SystemC's clock catches up if it is more than kQuantum behind. May throw what the kernel throws.
  void sync();
  static constexpr Time kQuantum = from_ns(1e6);
  // When it is next due, at the earliest: absolute, in the past if that is due; kNever: it waits for nothing.
  Time armed() const { return alone_ ? (heap_.empty() ? kNever : heap_.front().due) : armed_; }
  // How far it has come: at SystemC's clock, or ahead of it.
  Time reached() const { return reached_; }

  void prefetch() const {
    prefetch_line(&g_clock);
    prefetch_line(&heap_);
    prefetch_line(&running_);
  }
  void prefetch_targets() const { prefetch_line(heap_.data()); }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit Agenda(const sc_core::sc_module_name& name);
  // With its key: what is compared lies side by side, wherever the blocks lie.
  struct Entry {
    Time due = kNever;
    std::uint64_t seq = 0;
    Block* block = nullptr;
  };
  // Without branches: who is first is not to be guessed.
  static bool before(const Entry& a, const Entry& b) {
    return static_cast<bool>((a.due < b.due) | ((a.due == b.due) & (a.seq < b.seq)));
  }
  void place(const Entry& e, std::size_t slot) {
    heap_[slot] = e;
    e.block->slot_ = slot;
  }
  void rise(const Entry& e, std::size_t slot);
  void sink(const Entry& e, std::size_t slot);
  void remove(Block& e);
  void wait_for_first();
  bool may_reach(Time t) const;
  void run();
  void turns(Time limit);

  std::vector<Entry> heap_;
  Time horizon_ = 0, reached_ = 0;
  Time armed_ = kNever;  // when event_ comes
  bool running_ = false, alone_ = false;
  sc_core::sc_event event_;
};

}  // namespace hcasim
#endif
