// SPDX-License-Identifier: BSD-3-Clause
#include "model/agenda.h"

#include <algorithm>

#include "model/pcie/host_copies.h"

namespace hcasim {

ModelClock g_clock;

Agenda& Agenda::instance() {
  static auto* agenda = new Agenda("agenda");
  return *agenda;
}

Agenda::Agenda(const sc_core::sc_module_name& name) : sc_module(name) {
  SC_HAS_PROCESS(Agenda);
  SC_METHOD(run);
  dont_initialize();
  sensitive << event_;
}

Agenda::Block::Block() : agenda_(Agenda::instance()) {}

Agenda::Block::~Block() { cancel(); }

void Agenda::Block::at(Time t) {
  t = std::max(t, sim_now());
  // Whose turn it is stays the first of the heap meanwhile, as nobody is due before now, and most want
  // another.
  if (this == g_clock.current) {
    g_clock.another = t;
    g_clock.another_seq = g_clock.seq++;
    return;
  }
  const Entry entry{t, g_clock.seq++, this};
  if (slot_ == kNone) {
    agenda_.heap_.emplace_back();
    agenda_.rise(entry, agenda_.heap_.size() - 1);
  } else {
    agenda_.rise(entry, slot_);
    agenda_.sink(entry, slot_);
  }
  if (!agenda_.running_) agenda_.wait_for_first();
}

void Agenda::Block::cancel() {
  if (this == g_clock.current)
    g_clock.another = kNever;
  else if (slot_ != kNone)
    agenda_.remove(*this);
}

void Agenda::rise(const Entry& e, std::size_t slot) {
  while (slot != 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (!before(e, heap_[parent])) break;
    place(heap_[parent], slot);
    slot = parent;
  }
  place(e, slot);
}

void Agenda::sink(const Entry& e, std::size_t slot) {
  const std::size_t size = heap_.size();
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= size) break;
    if (child + 1 < size) child += static_cast<std::size_t>(before(heap_[child + 1], heap_[child]));
    if (!before(heap_[child], e)) break;
    place(heap_[child], slot);
    slot = child;
  }
  place(e, slot);
}

void Agenda::remove(Block& e) {
  const std::size_t slot = e.slot_;
  const Entry last = heap_.back();
  heap_.pop_back();
  e.slot_ = kNone;
  if (last.block == &e) return;
  rise(last, slot);
  sink(last, last.block->slot_);
}

void Agenda::wait_for_first() {
  if (heap_.empty() || alone_) return;
  const Time due = heap_.front().due;
  if (due >= armed_) return;  // an event that comes too early finds nothing due and waits on
  const Time now = sim_now();
  armed_ = due;
  event_.cancel();
  event_.notify(to_sc(due > now ? due - now : 0));
}

// Whether time may go on to t here: nothing else of the kernel comes before, or then.
bool Agenda::may_reach(Time t) const {
  if (t > horizon_) return false;
  const auto now = static_cast<Time>(sc_core::sc_time_stamp().value());
  return !sc_core::sc_pending_activity() ||
         static_cast<Time>(sc_core::sc_time_to_pending_activity().value()) > t - now;
}

// The turns due at g_clock.ahead, and on to `limit`, or (kNever) as far as may_reach().
void Agenda::turns(Time limit) {
  ++g_clock.activations;
  running_ = true;
  while (!heap_.empty()) {
    Block* const first = heap_.front().block;
    if (const Time due = heap_.front().due; due > g_clock.ahead) {
      if (limit == kNever ? !may_reach(due) : due > limit) break;
      g_clock.ahead = due;
    }
    ++g_clock.turns;
    g_clock.current = first;
    g_clock.another = kNever;
    first->turn();
    g_clock.current = nullptr;
    if (g_clock.another != kNever) {
      sink({g_clock.another, g_clock.another_seq, first}, 0);
    } else {
      remove(*first);
    }
  }
  HostCopies::make();
  running_ = false;
}

void Agenda::run() {
  armed_ = kNever;
  g_clock.ahead = static_cast<Time>(sc_core::sc_time_stamp().value());
  turns(kNever);
  reached_ = g_clock.ahead;
  g_clock.ahead = kNever;
  wait_for_first();
}

void Agenda::set_alone() {
  if (alone_) return;
  g_clock.ahead = sim_now();
  alone_ = true;
  event_.cancel();
}

void Agenda::run_alone(Time t, bool to_the_end) {
  if (!heap_.empty() && heap_.front().due <= t) turns(t);
  if (to_the_end && t > g_clock.ahead) g_clock.ahead = t;
}

void Agenda::sync() {
  const Time behind = g_clock.ahead - static_cast<Time>(sc_core::sc_time_stamp().value());
  if (behind > kQuantum) sc_core::sc_start(to_sc(behind), sc_core::SC_RUN_TO_TIME);
}

}  // namespace hcasim
