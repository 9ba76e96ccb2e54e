// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/moderation.h"

#include <array>
#include <cstdlib>

namespace hcasim::timing {

namespace {

// Of CQs whose period begins with the CQE.
constexpr std::array<AdaptiveModeration::Level, 5> kLevels{
    {{2, 256}, {8, 128}, {16, 64}, {32, 64}, {64, 64}}};
constexpr std::uint64_t kEvents = 64;            // that a measurement takes
constexpr unsigned kTired = 2 * kLevels.size();  // steps
constexpr std::int64_t kAlike = 10;              // percent

// 1: more, -1: less, 0: about as much.
int compare(std::int64_t now, std::int64_t before) {
  if (100 * std::abs(now - before) / before <= kAlike) return 0;
  return now > before ? 1 : -1;
}

std::int64_t per_ms(std::uint64_t n, std::int64_t us) {
  return (static_cast<std::int64_t>(n) * 1000 + us - 1) / us;
}

}  // namespace

const AdaptiveModeration::Level& AdaptiveModeration::level() const { return kLevels[level_]; }

bool AdaptiveModeration::note(const Sample& now) {
  if (state_ == State::kChanging) return false;
  if (state_ == State::kMeasuring) {
    const std::int64_t us = (now.time - since_.time) / 1'000'000;
    if (now.events - since_.events < kEvents || us == 0) return false;
    const unsigned before = level_;
    decide(
        {per_ms(now.bytes - since_.bytes, us), per_ms(now.frames - since_.frames, us), per_ms(kEvents, us)});
    if (level_ != before) {
      state_ = State::kChanging;
      return true;
    }
  }
  since_ = now;
  state_ = State::kMeasuring;
  return false;
}

int AdaptiveModeration::better(const Rates& now, const Rates& before) {
  if (before.bytes == 0) return now.bytes != 0 ? 1 : 0;
  if (const int more = compare(now.bytes, before.bytes)) return more;
  if (before.frames == 0) return now.frames != 0 ? 1 : 0;
  if (const int more = compare(now.frames, before.frames)) return more;
  return before.events == 0 ? 0 : -compare(now.events, before.events);
}

void AdaptiveModeration::decide(const Rates& now) {
  const Way way = way_;
  switch (way_) {
    case Way::kRest:
      if (better(now, before_) != 0) leave_rest();
      break;
    case Way::kTired:
      if (--steps_ == 0) leave_rest();
      break;
    case Way::kUp:
    case Way::kDown:
      if (better(now, before_) <= 0) turn();
      if (between_worse())
        rest(Way::kRest);
      else
        step();
      break;
  }
  // While it rests, all is compared with how it was when that began.
  if (way != Way::kRest || way_ != Way::kRest) before_ = now;
}

void AdaptiveModeration::turn() {
  (way_ == Way::kUp ? down_ : up_) = 0;
  way_ = way_ == Way::kUp ? Way::kDown : Way::kUp;
}

// One step back after several forth: both neighbours were worse.
bool AdaptiveModeration::between_worse() const {
  return way_ == Way::kUp ? down_ > 1 && up_ == 1 : up_ > 1 && down_ == 1;
}

void AdaptiveModeration::step() {
  const bool edge = way_ == Way::kUp ? level_ + 1 == kLevels.size() : level_ == 0;
  if (steps_ == kTired) {
    rest(Way::kTired);
  } else if (edge) {
    rest(Way::kRest);
  } else {
    level_ += way_ == Way::kUp ? 1u : -1u;
    ++(way_ == Way::kUp ? up_ : down_);
    ++steps_;
  }
}

void AdaptiveModeration::leave_rest() {
  way_ = level_ != 0 ? Way::kDown : Way::kUp;
  level_ += way_ == Way::kUp ? 1u : -1u;
  ++(way_ == Way::kUp ? up_ : down_);
  ++steps_;
}

void AdaptiveModeration::rest(Way way) {
  up_ = down_ = 0;
  if (way == Way::kRest) steps_ = 0;
  way_ = way;
}

}  // namespace hcasim::timing
