// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/pause.h"
#include "model/state/state.h"

#include <cstring>

#include "model/port/codec.h"
#include "prm/field.h"
#include "prm/packet.h"

namespace hcasim {

namespace {

using prm::EthHdr;

// Behind the header: opcode, then one time, or a mask of priorities and eight times.
constexpr std::uint16_t kPauseOpcode = 0x0001, kPfcOpcode = 0x0101;
constexpr std::size_t kOpcodeAt = 0, kTimeAt = 2, kMaskAt = 3, kTimesAt = 4;
constexpr std::size_t kPauseBytes = 4, kPfcBytes = 20;
// Not forwarded by bridges.
constexpr Mac kPauseMac{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
constexpr Time kSoonest = from_ns(100);  // between two looks at the backlog

}  // namespace

bool is_mac_control(const Packet& p) {
  return p.kind == PacketKind::kEthernet && p.frame_len >= sizeof(EthHdr) &&
         prm::load16(p.frame() + offsetof(EthHdr, ethertype)) == kMacControl;
}

bool parse_pause(const Packet& p, PauseFrame& out) {
  if (p.frame_len < sizeof(EthHdr) + kPauseBytes) return false;
  const std::uint8_t* at = p.frame() + sizeof(EthHdr);
  out = {};
  switch (prm::load16(at + kOpcodeAt)) {
    case kPauseOpcode:
      out.quanta[0] = prm::load16(at + kTimeAt);
      return true;
    case kPfcOpcode:
      if (p.frame_len < sizeof(EthHdr) + kPfcBytes) return false;
      out.by_priority = true;
      out.priorities = at[kMaskAt];
      for (unsigned i = 0; i < kPriorities; ++i) out.quanta[i] = prm::load16(at + kTimesAt + 2 * i);
      return true;
    default:
      return false;
  }
}

PacketRef make_pause(const Mac& from, const PauseFrame& frame) {
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kEthernet;
  p->frame_len = kShortestFrame;
  std::uint8_t* f = p->frame();
  std::memset(f, 0, kShortestFrame);
  std::copy(kPauseMac.begin(), kPauseMac.end(), f + offsetof(EthHdr, dmac));
  std::copy(from.begin(), from.end(), f + offsetof(EthHdr, smac));
  prm::store16(f + offsetof(EthHdr, ethertype), kMacControl);
  std::uint8_t* at = f + sizeof(EthHdr);
  prm::store16(at + kOpcodeAt, frame.by_priority ? kPfcOpcode : kPauseOpcode);
  if (!frame.by_priority) {
    prm::store16(at + kTimeAt, frame.quanta[0]);
    return p;
  }
  at[kMaskAt] = frame.priorities;
  for (unsigned i = 0; i < kPriorities; ++i) prm::store16(at + kTimesAt + 2 * i, frame.quanta[i]);
  return p;
}

Pause::Pause(const sc_core::sc_module_name& name, Time xoff, Time xon, FaultSink& faults)
    : sc_module(name),
      xoff_(xoff),
      xon_(std::min(xon, xoff)),
      opens_(
          "opens", [this](Time due, unsigned& priority) { open(due, priority); }, faults),
      checks_(
          "checks", [this](Time due, bool&) { check(due); }, faults) {}

void Pause::clear() { reset_state(*this); }

void Pause::clear_times(Time t, unsigned priority) {
  received_[priority].clear(t);
  asked_time_[priority].clear(t);
}

// ---- Transmit side ----

Time Pause::all_open() const {
  if (waiting_ >= kMostWaiting) return last_;
  return *std::min_element(until_.begin(), until_.end());
}

bool Pause::hold(Time t, unsigned priority, PacketRef& packet) {
  std::deque<Held>& queue = held_[priority];
  if (queue.empty()) {
    if (t >= until_[priority]) return false;
    opens_.push(until_[priority], priority);
  }
  queue.push_back({t, std::move(packet)});
  ++waiting_;
  return true;
}

void Pause::open(Time due, unsigned priority) {
  std::deque<Held>& queue = held_[priority];
  if (queue.empty()) return;
  if (until_[priority] > due) {  // prolonged meanwhile
    opens_.push(until_[priority], priority);
    return;
  }
  std::deque<Held> out;
  out.swap(queue);
  waiting_ -= out.size();
  for (Held& h : out) users_.release(std::max(due, h.ready), std::move(h.packet));
}

void Pause::set(unsigned priority, Time until) {
  until_[priority] = until;
  last_ = *std::max_element(until_.begin(), until_.end());
}

void Pause::stop(Time until) {
  for (unsigned i = 0; i < kPriorities; ++i) set(i, std::max(until_[i], until));
}

void Pause::take(Time t, const PauseFrame& frame, std::uint8_t priorities) {
  bool earlier = false;
  for (unsigned i = 0; i < kPriorities; ++i) {
    if ((priorities >> i & 1) == 0) continue;
    const Time until = t + quanta(frame.quanta[frame.by_priority ? i : 0]);
    if (frame.by_priority || i == 0) received_[i].stop(t, until);
    const bool shorter = until < until_[i] && until_[i] > t;
    set(i, until);
    if (!shorter) continue;
    earlier = true;
    if (!held_[i].empty()) opens_.push(until, i);
  }
  if (earlier) users_.resume(t);
}

// ---- Receive side ----

void Pause::arrived(Time t, unsigned priority, bool whole, std::uint8_t priorities) {
  const Time late = backlog_ ? backlog_() - t : 0;
  const Thresholds& own = thresholds_[priority];
  if (late <= (own.xoff != 0 ? own.xoff : xoff_)) return;
  if ((priorities >> priority & 1) != 0) {
    if ((asked_ >> priority & 1) == 0) {
      ask_again_ = 0;
      asked_time_[priority].stop(t, kNever);
    }
    asked_ = static_cast<std::uint8_t>(asked_ | 1u << priority);
  } else if (whole && priorities == 0) {
    if (!asked_whole_) asked_time_[0].stop(t, kNever);
    asked_whole_ = true;
  } else {
    return;
  }
  if (t >= ask_again_) ask(t, true);
  const Time xon = own.xoff != 0 ? own.xon : xon_;
  xon_asked_ = checking_ ? std::min(xon_asked_, xon) : xon;
  if (checking_) return;
  checking_ = true;
  checks_.push(t + next_look(late), true);
}

void Pause::ask(Time t, bool stop) {
  ask_again_ = t + quanta(kLongest / 2);
  const std::uint16_t quanta = stop ? kLongest : 0;
  PauseFrame frame;
  if (asked_whole_) {
    frame.quanta[0] = quanta;
    users_.request(t, frame);
  }
  if (asked_) {
    frame.by_priority = true;
    frame.priorities = asked_;
    for (unsigned i = 0; i < kPriorities; ++i) frame.quanta[i] = asked_ >> i & 1 ? quanta : 0;
    users_.request(t, frame);
  }
}

// When the backlog may have fallen far enough; soon enough to ask again.
Time Pause::next_look(Time late) const {
  return std::clamp(late - xon_asked_, kSoonest, std::max(quanta(kLongest / 4), kSoonest));
}

void Pause::check(Time due) {
  const Time late = backlog_ ? backlog_() - due : 0;
  if (late > xon_asked_) {
    if (due >= ask_again_) ask(due, true);
    checks_.push(due + next_look(late), true);
    return;
  }
  ask(due, false);
  for (PauseTime& time : asked_time_) time.stop(due, due);
  checking_ = asked_whole_ = false;
  asked_ = 0;
  ask_again_ = 0;
}

}  // namespace hcasim
