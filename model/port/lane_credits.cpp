// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/lane_credits.h"

#include <algorithm>
#include <utility>

#include "model/port/codec.h"

namespace hcasim {

LaneCredits::LaneCredits(const sc_core::sc_module_name& name, FaultSink& faults)
    : sc_module(name),
      returns_(
          "returns", [this](Time due, Return& back) { returned(due, back); }, faults) {}

void LaneCredits::set_room(std::uint32_t bytes) {
  limit_ = bytes / kBlock;
  largest_ = std::min(limit_, blocks(kMaxPayload + kMaxHeaders));
}

bool LaneCredits::hold(Time t, unsigned lane, std::uint32_t bytes, PacketRef& packet, std::uint32_t tag) {
  const std::uint32_t needs = blocks(bytes);
  if (held_[lane].empty() && fits(lane, needs)) {
    out_[lane] += needs;
    return false;
  }
  if (held_[lane].empty()) since_[lane] = t;
  held_[lane].push_back({t, needs, std::move(packet), tag});
  ++waiting_;
  closed_ |= 1u << lane;
  return true;
}

void LaneCredits::give_back(Time t, unsigned lane, std::uint32_t bytes) {
  if (limited()) returns_.push(t, Return{lane, blocks(bytes), epoch_});
}

void LaneCredits::returned(Time t, const Return& back) {
  if (back.epoch != epoch_) return;
  out_[back.lane] -= std::min<std::uint64_t>(out_[back.lane], back.blocks);
  let_go(t, back.lane);
}

// As many as there are credits for. Whoever was told that the lane is stopped is told when there is room for
// any packet: later, the cable would be idle for as long as it takes to have the next one ready.
void LaneCredits::let_go(Time t, unsigned lane) {
  std::deque<Held>& queue = held_[lane];
  while (!queue.empty() && fits(lane, queue.front().blocks)) {
    Held next = std::move(queue.front());
    queue.pop_front();
    --waiting_;
    out_[lane] += next.blocks;
    const Time goes = std::max(t, next.ready);
    waited_ += std::max<Time>(0, goes - since_[lane]);
    since_[lane] = goes;
    users_.release(goes, std::move(next.packet), next.tag);
  }
  if (!stopped(lane) || !queue.empty() || out_[lane] + largest_ > limit_) return;
  closed_ &= ~(1u << lane);
  users_.resume(t);
}

void LaneCredits::renew(Time t) {
  if (std::all_of(out_.begin(), out_.end(), [](std::uint64_t n) { return n == 0; }))
    return;  // then nothing waits
  ++epoch_;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::deque<Held> queue;
    queue.swap(held_[lane]);
    out_[lane] = 0;
    waiting_ -= queue.size();
    for (Held& h : queue) {
      out_[lane] += h.blocks;
      users_.release(std::max(t, h.ready), std::move(h.packet), h.tag);
    }
  }
  const bool any = stopped();
  closed_ = 0;
  if (any) users_.resume(t);
}

}  // namespace hcasim
