// SPDX-License-Identifier: BSD-3-Clause
// Who is due next, of all blocks of all HCAs of the process: one SystemC process gives each its turn at its
// time. It runs ahead of SystemC's clock, from one block's time to the next, for as long as nothing else in
// the kernel is due before (temporal decoupling, as TLM-2.0 has it, but without error: nobody can tell). So a
// message's packets cost a call each and not a turn of the kernel's scheduler.
// Where it is the kernel's only process for good (set_alone()), its caller gives it time directly: SystemC's
// clock then only follows, a quantum behind (sync()).
//
// That is the fast kernel. There are two more ways to give turns, chosen before the first block is made
// (choose()), and all three give the same turns in the same order, as there is one list, by (due, seq):
//  - waits: a turn may call wait(), because what it reads and writes by DMA lies behind SystemC targets that
//    do. One SC_THREAD gives the turns; time is SystemC's own. While a turn waits nobody else gets one, since
//    blocks hold references across the call; whoever asks for one meanwhile gets it afterwards.
//  - native: each block is a process of its own, "turn" in its module, with an event of its own. The event of
//    whoever is first in the list is notified, no other. SC_METHODs, or SC_THREADs if they may wait.
// Other processes of the kernel may run while a turn waits (running()): of the model they may call nothing
// but Block::at(), which TimedQueue::push() comes down to, and what changes no state.
#ifndef HCASIM_MODEL_AGENDA_H
#define HCASIM_MODEL_AGENDA_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/prefetch.h"
#include "model/simulation_context.h"
#include "model/time.h"

namespace hcasim {

class Agenda : public sc_core::sc_module {
 public:
  class Process;

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
    // (model/state/state.h) When its turn is, and its place among equal times: of saved states alone, as
    // everything else follows from what the block lists. To be listed by the block, behind what it waits for.
    template <class Archive>
    void list_turn(Archive& a) {
      if constexpr (Archive::kStores) {
        Turn turn = wanted();
        a("turn", turn);
        if constexpr (Archive::kLoads) set_wanted(turn);
      }
    }
    void prefetch_block() const { prefetch_line(this); }

   protected:
    ~Block();
    // No exception may leave it.
    virtual void turn() = 0;
    // How much work waits in it: for those who watch.
    virtual std::size_t depth() const { return 0; }

   private:
    friend class Agenda;
    struct Turn {
      Time due = kNever;  // kNever: none
      std::uint64_t seq = 0;

      template <class Archive>
      void list_state(Archive& a) {
        a("due", due);
        a("seq", seq);
        if constexpr (Archive::kLoads) a.check(seq <= kMostTurns, "so many turns are never asked for");
      }
    };
    Turn wanted() const;
    void set_wanted(const Turn& turn);
    Process* process_ = nullptr;  // native: its own
    std::size_t slot_ = kNone;
  };

  struct Kernel {
    bool native = false, waits = false;
    bool operator==(const Kernel& o) const { return native == o.native && waits == o.waits; }
  };
  // Makes the agenda, which nobody has made otherwise so far. False: it is there already, and is another one.
  static bool choose(Kernel kernel);
  Kernel kernel() const { return kernel_; }

  // Made with the first block, if choose() has not: the fast kernel. Never destroyed.
  static Agenda& instance() {
    if (!one()) choose({});
    return *one();
  }

  // Whether the calling SystemC process is the one that gives the turn which lasts.
  static bool in_turn();
  // Whether blocks have their turns; whoever else asks is outside of the model.
  static bool running() { return one() != nullptr && one()->running_; }

  // How far it may run ahead of SystemC's clock in the calls of sc_start() that follow, absolute: no further
  // than they run themselves, and no access comes from outside before. 0 (initially): not at all.
  void set_horizon(Time t) { horizon_ = t; }
  // There is no other process in the kernel, and there will be none: run_alone() takes the place of
  // sc_start(), or (native) calls it. Before the simulation starts.
  void set_alone();
  bool alone() const { return alone_; }
  // Alone: gives all turns that are due up to t, absolute. The time is that of the last one then, or t
  // (to_the_end).
  void run_alone(Time t, bool to_the_end) {
    if (kernel_.native) return run_native(t, to_the_end);
    if (!heap_.empty() && heap_.front().due <= t) turns(t);
    ModelClock& clock = simulation().clock;
    if (to_the_end && t > clock.ahead) clock.ahead = t;
  }
  // Waits, native: called behind each turn, for those who watch the model's state.
  void on_turn(std::function<void()> watcher) { watchers_.push_back(std::move(watcher)); }
  // Native: number of turns and depth of the queue of each process below the module of this name, sampled
  // behind each turn, into a VCD or other trace file. Otherwise there are no such processes.
  void trace_processes(sc_core::sc_trace_file* file, const std::string& module);
  // Alone: SystemC's clock catches up if it is more than kQuantum behind. May throw what the kernel throws.
  void sync() {
    if (!kernel_.native && simulation().clock.ahead - synced_ > kQuantum) catch_up();
  }
  // Of the context's renew(): the time is 0. False: a block has its turn or waits for one.
  bool renew();
  // The time is t, later or earlier than it was (a saved state is loaded). Nobody has a turn.
  void go_to(Time t);
  static constexpr Time kQuantum = from_ns(1e6);
  // When it is next due, at the earliest: absolute, in the past if that is due; kNever: it waits for nothing.
  Time armed() const { return alone_ ? (heap_.empty() ? kNever : heap_.front().due) : armed_; }
  // How far it has come: at SystemC's clock, or ahead of it.
  Time reached() const { return reached_; }

  void prefetch() const {
    prefetch_line(&simulation().clock);
    prefetch_line(&heap_);
    prefetch_line(&running_);
  }
  void prefetch_targets() const { prefetch_line(heap_.data()); }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static Agenda*& one() { return simulation().agenda; }
  Agenda(const sc_core::sc_module_name& name, Kernel kernel);
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
  void catch_up();
  void run();
  void run_waiting();
  void run_native(Time t, bool to_the_end);
  void turns(Time limit);
  void one_turn(Block* first);
  void turn_of(Process& process);
  void notify_first();

  std::vector<Entry> heap_;
  Time horizon_ = 0, reached_ = 0;
  Time armed_ = kNever;  // when event_ comes
  Time synced_ = 0;      // where SystemC's clock was when catch_up() looked last
  bool running_ = false, alone_ = false, sampling_ = false;
  const Kernel kernel_;
  Process* notified_ = nullptr;  // native: whose event comes at armed_
  std::vector<std::function<void()>> watchers_;
  std::vector<Process*> processes_;  // native: all
  const void* in_turn_ = nullptr;    // waits, native: the process that gives the turn
  sc_core::sc_event event_;
};

}  // namespace hcasim
#endif
