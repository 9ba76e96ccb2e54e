// SPDX-License-Identifier: BSD-3-Clause
#define SC_INCLUDE_DYNAMIC_PROCESSES  // sc_spawn()
#include "model/agenda.h"

#include <algorithm>
#include <stdexcept>

namespace hcasim {

namespace {
constexpr int kStack = 512 << 10;  // bytes: a turn, and what lies behind its DMA

ModelClock& run_clock() { return simulation().clock; }
}  // namespace

// A block's process: named "turn" in the block's module. It outlives the block, as SystemC keeps processes.
class Agenda::Process {
 public:
  Process(Block& block, bool waits) : block_(&block) {
    sc_core::sc_spawn_options options;
    options.dont_initialize();
    options.set_sensitivity(&event);
    sc_core::sc_process_handle handle;
    if (waits) {
      options.set_stack_size(kStack);
      handle = sc_core::sc_spawn(
          [this] {
            for (;;) {
              one()->turn_of(*this);
              sc_core::wait();
            }
          },
          sc_core::sc_gen_unique_name("turn"), &options);
    } else {
      options.spawn_method();
      handle =
          sc_core::sc_spawn([this] { one()->turn_of(*this); }, sc_core::sc_gen_unique_name("turn"), &options);
    }
    // The module under construction, which is the block's.
    if (const sc_core::sc_object* module = handle.get_parent_object()) name_ = module->name();
  }
  Block* block() const { return block_; }
  void leave() { block_ = nullptr; }
  const std::string& name() const { return name_; }
  void sample() { depth = block_ ? static_cast<std::uint32_t>(block_->depth()) : 0; }

  sc_core::sc_event event;
  std::uint32_t depth = 0, turns = 0;  // as a trace file sees them

 private:
  Block* block_;
  std::string name_;
};

bool Agenda::choose(Kernel kernel) {
  if (!one()) one() = new Agenda("agenda", kernel);
  return one()->kernel_ == kernel;
}

bool Agenda::renew() {
  if (running_ || !heap_.empty()) return false;
  event_.cancel();  // one that comes too early finds nothing due
  if (notified_) notified_->event.cancel();
  notified_ = nullptr;
  armed_ = kNever;
  horizon_ = reached_ = synced_ = 0;
  const bool follows = run_clock().ahead != kNever;  // SystemC's clock, at some distance
  run_clock() = ModelClock{};
  run_clock().base = static_cast<Time>(sc_core::sc_time_stamp().value());
  if (follows) run_clock().ahead = 0;
  return true;
}

void Agenda::go_to(Time t) {
  event_.cancel();
  if (notified_) notified_->event.cancel();
  notified_ = nullptr;
  armed_ = kNever;
  horizon_ = 0;
  reached_ = synced_ = t;
  run_clock().base = static_cast<Time>(sc_core::sc_time_stamp().value()) - t;
  if (run_clock().ahead != kNever) run_clock().ahead = t;
  wait_for_first();
}

Agenda::Agenda(const sc_core::sc_module_name& name, Kernel kernel) : sc_module(name), kernel_(kernel) {
  SC_HAS_PROCESS(Agenda);
  if (kernel.native) return;
  if (kernel.waits) {
    SC_THREAD(run_waiting);
    set_stack_size(kStack);
  } else {
    SC_METHOD(run);
  }
  dont_initialize();
  sensitive << event_;
}

Agenda::Block::Block() {
  const Kernel kernel = instance().kernel_;
  if (kernel.native) {
    process_ = new Process(*this, kernel.waits);  // which SystemC keeps to its end
    one()->processes_.push_back(process_);
  }
}

Agenda::Block::~Block() {
  cancel();
  if (!process_) return;
  process_->leave();
  if (one()->notified_ == process_) {
    one()->notified_ = nullptr;
    one()->armed_ = kNever;
  }
}

void Agenda::Block::at(Time t) {
  t = std::max(t, sim_now());
  // Whose turn it is stays the first of the heap meanwhile, as nobody is due before now, and most want
  // another.
  if (this == run_clock().current) {
    run_clock().another = t;
    run_clock().another_seq = run_clock().seq++;
    return;
  }
  Agenda& agenda = *one();
  const Entry entry{t, run_clock().seq++, this};
  if (slot_ == kNone) {
    agenda.heap_.emplace_back();
    agenda.rise(entry, agenda.heap_.size() - 1);
  } else {
    agenda.rise(entry, slot_);
    agenda.sink(entry, slot_);
  }
  if (!agenda.running_) agenda.wait_for_first();
}

Agenda::Block::Turn Agenda::Block::wanted() const {
  if (slot_ == kNone) return {};
  const Entry& entry = one()->heap_[slot_];
  return {entry.due, entry.seq};
}

// The number is one that was given out before; clock.seq is beyond all such
// (SimulationContext::list_state()).
void Agenda::Block::set_wanted(const Turn& turn) {
  cancel();
  if (turn.due == kNever) return;
  Agenda& agenda = *one();
  agenda.heap_.emplace_back();
  agenda.rise({turn.due, turn.seq, this}, agenda.heap_.size() - 1);
}

void Agenda::Block::cancel() {
  if (this == run_clock().current)
    run_clock().another = kNever;
  else if (slot_ != kNone)
    one()->remove(*this);
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
  if (kernel_.native) return notify_first();
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
  const auto now = kernel_now();
  return !sc_core::sc_pending_activity() ||
         static_cast<Time>(sc_core::sc_time_to_pending_activity().value()) > t - now;
}

// The turn of the first block, which stays the first meanwhile.
inline void Agenda::one_turn(Block* first) {
  ++run_clock().turns;
  run_clock().current = first;
  run_clock().another = kNever;
  first->turn();
  run_clock().current = nullptr;
  if (run_clock().another != kNever) {
    sink({run_clock().another, run_clock().another_seq, first}, 0);
  } else {
    remove(*first);
  }
}

// The turns due at run_clock().ahead, and on to `limit`, or (kNever) as far as may_reach().
void Agenda::turns(Time limit) {
  ++run_clock().activations;
  running_ = true;
  while (!heap_.empty()) {
    Block* const first = heap_.front().block;
    if (const Time due = heap_.front().due; due > run_clock().ahead) {
      if (limit == kNever ? !may_reach(due) : due > limit) break;
      run_clock().ahead = due;
    }
    one_turn(first);
  }
  simulation().copies.make();
  running_ = false;
}

void Agenda::run() {
  armed_ = kNever;
  run_clock().ahead = kernel_now();
  turns(kNever);
  reached_ = run_clock().ahead;
  run_clock().ahead = kNever;
  wait_for_first();
}

// As run(), at SystemC's own time: a turn may last.
void Agenda::run_waiting() {
  for (;;) {
    armed_ = kNever;
    ++run_clock().activations;
    running_ = true;
    in_turn_ = sc_core::sc_get_current_process_b();
    while (!heap_.empty() && heap_.front().due <= sim_now()) {
      one_turn(heap_.front().block);
      if (watchers_.empty()) continue;
      simulation().copies.make();
      for (const auto& watcher : watchers_) watcher();
    }
    simulation().copies.make();
    running_ = false;
    in_turn_ = nullptr;
    wait_for_first();
    wait();
  }
}

// ---- native ----

// The first block's event comes when it is due, and nobody else's.
void Agenda::notify_first() {
  if (heap_.empty()) return;
  const Time due = heap_.front().due;
  Process* const process = heap_.front().block->process_;
  if (!process || (process == notified_ && due == armed_)) return;
  if (notified_) notified_->event.cancel();
  notified_ = process;
  armed_ = due;
  const Time now = sim_now();
  if (due > now)
    process->event.notify(to_sc(due - now));
  else
    process->event.notify(sc_core::SC_ZERO_TIME);
}

// The process of a block runs: it may have been notified before another block got in front of it.
void Agenda::turn_of(Process& process) {
  if (running_) return;  // whose turn it is looks for the next one
  if (notified_ == &process) {
    notified_ = nullptr;
    armed_ = kNever;
  }
  running_ = true;
  in_turn_ = sc_core::sc_get_current_process_b();
  while (!heap_.empty() && heap_.front().block == process.block() && heap_.front().due <= sim_now()) {
    one_turn(process.block());
    simulation().copies.make();
    ++process.turns;
    for (const auto& watcher : watchers_) watcher();
  }
  running_ = false;
  in_turn_ = nullptr;
  notify_first();
}

bool Agenda::in_turn() {
  return one() && one()->in_turn_ && sc_core::sc_get_current_process_b() == one()->in_turn_;
}

void Agenda::trace_processes(sc_core::sc_trace_file* file, const std::string& module) {
  bool any = false;
  for (Process* process : processes_) {
    if (process->name().rfind(module + ".", 0) != 0) continue;
    sc_core::sc_trace(file, process->turns, process->name() + ".turns");
    sc_core::sc_trace(file, process->depth, process->name() + ".depth");
    any = true;
  }
  if (!any || sampling_) return;
  sampling_ = true;
  on_turn([this] {
    for (Process* process : processes_) process->sample();
  });
}

// The processes run in sc_start(). It returns before the last ones of its time have, which zero time is for.
void Agenda::run_native(Time t, bool to_the_end) {
  const auto first_due = [this] { return heap_.empty() ? kNever : heap_.front().due; };
  if (first_due() <= t) ++run_clock().activations;
  while (first_due() <= t || (to_the_end && t > sim_now())) {
    const Time now = sim_now(), next = to_the_end ? t : first_due();
    sc_core::sc_start(next > now ? to_sc(next - now) : sc_core::SC_ZERO_TIME, sc_core::SC_RUN_TO_TIME);
    if (sc_core::sc_get_status() != sc_core::SC_PAUSED) throw std::runtime_error("SystemC has stopped");
  }
}

void Agenda::set_alone() {
  if (alone_) return;
  if (kernel_.native) {
    alone_ = true;
    return;
  }
  run_clock().ahead = sim_now();
  alone_ = true;
  event_.cancel();
}

void Agenda::catch_up() {
  synced_ = kernel_now();
  const Time behind = run_clock().ahead - synced_;
  if (behind <= kQuantum) return;
  sc_core::sc_start(to_sc(behind), sc_core::SC_RUN_TO_TIME);
  synced_ = kernel_now();
}

}  // namespace hcasim
