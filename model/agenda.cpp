// SPDX-License-Identifier: BSD-3-Clause
#include "model/agenda.h"

#include <algorithm>

#include "model/pcie/host_copies.h"

namespace hcasim {

std::uint64_t g_activations = 0, g_turns = 0;
Time g_time_ahead = kNever;

namespace {
// Whose turn it is: stays the first of the heap meanwhile, as nobody is due before now, and most want
// another.
const Agenda::Block* g_current = nullptr;
Time g_another = kNever;  // when
std::uint64_t g_another_seq = 0;
}  // namespace

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
  if (this == g_current) {
    g_another = t;
    g_another_seq = agenda_.seq_++;
    return;
  }
  const Entry entry{t, agenda_.seq_++, this};
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
  if (this == g_current)
    g_another = kNever;
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
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
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
  if (heap_.empty()) return;
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
  if (alone_) return true;
  const auto now = static_cast<Time>(sc_core::sc_time_stamp().value());
  return !sc_core::sc_pending_activity() ||
         static_cast<Time>(sc_core::sc_time_to_pending_activity().value()) > t - now;
}

void Agenda::run() {
  ++g_activations;
  armed_ = kNever;
  running_ = true;
  g_time_ahead = static_cast<Time>(sc_core::sc_time_stamp().value());
  while (!heap_.empty()) {
    Block* const first = heap_.front().block;
    if (const Time due = heap_.front().due; due > g_time_ahead) {
      if (!may_reach(due)) break;
      g_time_ahead = due;
    }
    ++g_turns;
    g_current = first;
    g_another = kNever;
    first->turn();
    g_current = nullptr;
    if (g_another != kNever) {
      sink({g_another, g_another_seq, first}, 0);
    } else {
      remove(*first);
    }
  }
  HostCopies::make();
  reached_ = g_time_ahead;
  g_time_ahead = kNever;
  running_ = false;
  wait_for_first();
}

}  // namespace hcasim
