// SPDX-License-Identifier: BSD-3-Clause
// Who is due next, of all blocks of all HCAs of the process: one SystemC process gives each its turn at its
// time. It runs ahead of SystemC's clock, from one block's time to the next, for as long as nothing else in
// the kernel is due before (temporal decoupling, as TLM-2.0 has it, but without error: nobody can tell). So a
// message's packets cost a call each and not a turn of the kernel's scheduler.
#ifndef HCASIM_MODEL_AGENDA_H
#define HCASIM_MODEL_AGENDA_H

#include <cstddef>
#include <cstdint>
#include <systemc>
#include <vector>

#include "model/time.h"

namespace hcasim {

// Since the start of the process, of all HCAs: activations of SystemC processes, and turns given to blocks.
extern std::uint64_t g_activations, g_turns;

class Agenda : public sc_core::sc_module {
 public:
  // A block that waits for a time.
  class Block {
   public:
    Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    // Asks for a turn at t (earlier than now: now), in place of the one asked for before. Equal times: in the
    // order in which they were asked for.
    void at(Time t);
    void cancel();

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
  static bool running() { return g_time_ahead != kNever; }

  // How far it may run ahead of SystemC's clock in the calls of sc_start() that follow, absolute: no further
  // than they run themselves, and no access comes from outside before. 0 (initially): not at all.
  void set_horizon(Time t) { horizon_ = t; }
  // All of the kernel's processes are the model's: it need not ask for others.
  void set_alone() { alone_ = true; }
  // When its process is activated next, at the earliest: absolute, in the past if that is due; kNever: it
  // waits for nothing.
  Time armed() const { return armed_; }
  // How far it has come: at SystemC's clock, or ahead of it.
  Time reached() const { return reached_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit Agenda(const sc_core::sc_module_name& name);
  // With its key: what is compared lies side by side, wherever the blocks lie.
  struct Entry {
    Time due = kNever;
    std::uint64_t seq = 0;
    Block* block = nullptr;
  };
  static bool before(const Entry& a, const Entry& b) {
    return a.due != b.due ? a.due < b.due : a.seq < b.seq;
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

  std::vector<Entry> heap_;
  std::uint64_t seq_ = 0;
  Time horizon_ = 0, reached_ = 0;
  Time armed_ = kNever;  // when event_ comes
  bool running_ = false, alone_ = false;
  sc_core::sc_event event_;
};

}  // namespace hcasim
#endif
