// SPDX-License-Identifier: BSD-3-Clause
#include "model/fault/injector.h"

#include <algorithm>

namespace hcasim {

namespace {
using K = FaultKey;
// Keys that say which events are meant; the others say how.
constexpr traces::FaultKeys kMatched =
    traces::fault_keys(K::kOpcode, K::kOpMod, K::kDirection, K::kOwner, K::kNumber, K::kAddress, K::kVector,
                       K::kEqn, K::kCqn, K::kQpn, K::kPsn, K::kType, K::kFunction);
}  // namespace

Injector::Injector(const sc_core::sc_module_name& name, traces::Tracer& tracer, FaultSink& faults)
    : sc_module(name),
      tracer_(tracer),
      turns_(
          "turns", [this](Time t, Turn& turn) { due(t, turn); }, faults) {}

void Injector::load(const std::vector<FaultSpec>& faults) {
  const std::size_t first = faults_.size();
  for (const FaultSpec& f : faults) {
    auto loaded = std::make_unique<Loaded>();
    loaded->spec = f;
    loaded->spec.number = static_cast<unsigned>(faults_.size() + 1);
    loaded->random.seed(f.seed);
    faults_.push_back(std::move(loaded));
  }
  lasting_.resize(faults_.size(), false);
  if (first < faults_.size()) random_.seed(faults_[first]->spec.seed);
  rearm();
  const Time now = sim_now();
  for (std::size_t i = first; i < faults_.size(); ++i) {
    if (!faults_[i]->spec.timed) continue;
    if (faults_[i]->spec.from <= now)
      perform(now, i);
    else
      turns_.push(faults_[i]->spec.from, Turn{i, generation_, true});
  }
}

void Injector::end_all() {
  // A handler may install new faults: these are out of the plan by then.
  std::vector<std::unique_ptr<Loaded>> ended;
  std::vector<bool> lasting;
  ended.swap(faults_);
  lasting.swap(lasting_);
  turns_.clear();
  ++generation_;
  armed_ = 0;
  for (std::size_t i = 0; i < ended.size(); ++i)
    if (lasting[i] && act_) act_(sim_now(), ended[i]->spec, false);
}

void Injector::rearm() {
  armed_ = 0;
  for (const auto& f : faults_)
    if (!f->over && !f->spec.timed) armed_ |= 1u << static_cast<unsigned>(f->spec.kind);
}

bool Injector::chance(Loaded& f) const {
  if (f.spec.probability >= 1) return true;
  // Not std::bernoulli_distribution: its results may differ between libraries.
  return static_cast<double>(f.random() >> 11) * 0x1p-53 < f.spec.probability;
}

const FaultSpec* Injector::strike(FaultType kind, Time t, Facts facts, traces::Subject object,
                                  std::uint64_t detail, Actions among) {
  const FaultSpec* hit = nullptr;
  bool ended = false;
  for (const auto& loaded : faults_) {
    Loaded& f = *loaded;
    const FaultSpec& s = f.spec;
    if (f.over || s.timed || s.kind != kind || t < s.from) continue;
    if (t >= s.until) {
      f.over = ended = true;
      continue;
    }
    if (among.size() != 0 && std::find(among.begin(), among.end(), s.action) == among.end()) continue;
    traces::FaultKeys asked = s.given & kMatched & ~traces::fault_keys(FaultKey::kFunction);
    bool meant = s.takes(FaultKey::kFunction, object.function);
    for (const Fact& fact : facts) {
      meant = meant && s.touches(fact.key, fact.low, fact.high);
      asked &= ~traces::fault_keys(fact.key);
    }
    if (!meant || asked != 0) continue;
    ++f.seen;
    if (f.seen < s.nth || (f.seen - s.nth) % s.every != 0 || !chance(f)) continue;
    if (hit != nullptr) continue;  // one fault an event; the others have seen it
    ++f.injected;
    if (s.times != 0 && f.injected == s.times) f.over = ended = true;
    hit = &s;
  }
  if (ended) rearm();
  if (hit) note(t, *hit, object, detail);
  return hit;
}

void Injector::note(Time t, const FaultSpec& f, traces::Subject object, std::uint64_t detail) {
  ++injected_;
  traces::trace(tracer_, traces::Point::kFaultInjected, t, object, f.number,
                traces::fault_word(f.kind, f.action), detail);
}

void Injector::begin_for_a_while(Time t, const FaultSpec& f) {
  const std::size_t index = f.number - 1;
  const Time lasts = f.time(FaultKey::kDuration);
  const std::uint64_t generation = generation_;
  lasting_[index] = true;
  if (act_) act_(t, f, true);
  if (generation != generation_) return;  // the host has ended all meanwhile
  if (lasts > 0) turns_.push(std::max(t, sim_now()) + lasts, Turn{index, generation_, false});
}

void Injector::due(Time t, const Turn& turn) {
  if (turn.generation != generation_) return;
  if (turn.begin) {
    perform(t, turn.index);
  } else if (lasting_[turn.index]) {
    lasting_[turn.index] = false;
    if (act_) act_(t, faults_[turn.index]->spec, false);
  }
}

void Injector::perform(Time t, std::size_t index) {
  Loaded& f = *faults_[index];
  const FaultSpec& s = f.spec;
  if (f.over || t >= s.until) return;
  const std::uint64_t generation = generation_;
  if (chance(f)) {
    ++f.injected;
    begin_for_a_while(t, s);
    if (generation != generation_) return;
  }
  const bool again = s.every != 0 && (s.times == 0 || f.injected < s.times) &&
                     s.every < static_cast<std::uint64_t>(kNever - t);
  if (again)
    turns_.push(t + static_cast<Time>(s.every), Turn{index, generation_, true});
  else
    f.over = true;
}

}  // namespace hcasim
