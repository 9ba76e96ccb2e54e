// SPDX-License-Identifier: BSD-3-Clause
// The faults in force on an HCA: which events they hit, and when. Blocks ask it on each event that a fault
// could strike; while there is none of that kind, that is one look at a mask.
#ifndef HCASIM_MODEL_FAULT_INJECTOR_H
#define HCASIM_MODEL_FAULT_INJECTOR_H

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <systemc>
#include <vector>

#include "model/fault/spec.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "traces/tracer.h"

namespace hcasim {

class Injector : public sc_core::sc_module {
 public:
  Injector(const sc_core::sc_module_name& name, traces::Tracer& tracer, FaultSink& faults);

  // Puts faults into force, from now on. Those whose time has come act before it returns.
  void load(const std::vector<FaultSpec>& faults);
  // Ends all, and what they have changed for a while.
  void end_all();

  bool armed(FaultType kind) const { return (armed_ >> static_cast<unsigned>(kind) & 1) != 0; }

  // What an event is: `low` to `high` of a key.
  struct Fact {
    FaultKey key;
    std::uint64_t low, high;
    Fact(FaultKey k, std::uint64_t v) : key(k), low(v), high(v) {}
    Fact(FaultKey k, std::uint64_t from, std::uint64_t to) : key(k), low(from), high(to) {}
  };
  using Facts = std::initializer_list<Fact>;
  using Actions = std::initializer_list<FaultAction>;
  // An event at t, of an object of a function (FaultKey::kFunction). Returns the first fault that strikes it,
  // counted and recorded under `object` with `detail`; null: none. among: only faults with one of these
  // actions are asked; empty: all of the kind. Faults that name a key of which the event says nothing do not
  // strike it. Valid until faults are loaded or ended.
  const FaultSpec* strike(FaultType kind, Time t, Facts facts, traces::Subject object, std::uint64_t detail,
                          Actions among = {});

  // Timed faults: begin, and, of those with a duration, end.
  using Act = std::function<void(Time, const FaultSpec&, bool begin)>;
  void on_act(Act handler) { act_ = std::move(handler); }
  // A fault stays in force after the event that it hit: the handler of timed faults is called at its end.
  void begin_for_a_while(Time t, const FaultSpec& fault);
  // Counts and records what a handler has done to one of several objects.
  void note(Time t, const FaultSpec& fault, traces::Subject object, std::uint64_t detail);

  std::mt19937_64& random() { return random_; }  // of what a strike leaves to chance
  std::uint64_t injected() const { return injected_; }

  // All of it outlasts a reset of the device: faults are the host's, who ends them (end_all()).
  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("faults", faults_);
    a.lasting("armed", armed_);
    a.lasting("injected", injected_);
    a.lasting("generation", generation_);
    a.lasting("in_force", lasting_);
    a.lasting("random", random_);
    a.lasting("turns", turns_);
    if constexpr (Archive::kLoads) {
      bool good = lasting_.size() == faults_.size();
      for (std::size_t i = 0; i < faults_.size(); ++i)
        good = good && faults_[i] && faults_[i]->spec.number == i + 1 && faults_[i]->spec.sound();
      for (std::size_t i = 0; i < turns_.size(); ++i) {
        const Turn* turn = turns_.to_come(i);
        good = good && turn && (turn->generation != generation_ || turn->index < faults_.size());
      }
      a.check(good, "the plan of faults does not agree with itself");
    }
  }

 private:
  struct Loaded {
    FaultSpec spec;
    std::mt19937_64 random;
    std::uint64_t seen = 0, injected = 0;
    bool over = false;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, spec, random, seen, injected, over);
    }
  };
  struct Turn {
    std::size_t index;
    std::uint64_t generation;
    bool begin;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, index, generation, begin);
    }
  };

  void due(Time t, const Turn& turn);
  void perform(Time t, std::size_t index);
  bool chance(Loaded& fault) const;
  void rearm();

  traces::Tracer& tracer_;
  std::vector<std::unique_ptr<Loaded>> faults_;
  std::uint32_t armed_ = 0;
  std::uint64_t injected_ = 0;
  std::uint64_t generation_ = 0;  // of what is loaded: turns of older ones mean nothing
  std::vector<bool> lasting_;     // by index: the handler has still to be called at its end
  Act act_;
  std::mt19937_64 random_{1};
  TimedQueue<Turn> turns_;
  static_assert(traces::kFaultKinds <= 32);
};

// What a block holds of it.
class FaultGate {
 public:
  void attach(Injector& injector) { injector_ = &injector; }
  // The injector, if it has faults of this kind; else null.
  Injector* open(FaultType kind) const {
    return __builtin_expect(injector_ != nullptr && injector_->armed(kind), 0) ? injector_ : nullptr;
  }

 private:
  Injector* injector_ = nullptr;
};

}  // namespace hcasim
#endif
