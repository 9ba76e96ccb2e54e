// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/switch.h"

#include <algorithm>
#include <utility>

namespace hcasim::fabric {

namespace {

constexpr std::uint16_t kStop = 0xffff;  // quanta; renewed at half of them
constexpr std::uint64_t kOwnMacs = 0x020100000000,
                        kCardMacs = 0x020000;  // the latter without its last 3 bytes

std::uint64_t note(std::uint64_t hash, Time t, std::uint32_t bytes) {
  constexpr std::uint64_t kPrime = 1099511628211ull;
  return ((hash ^ static_cast<std::uint64_t>(t)) * kPrime ^ bytes) * kPrime;
}

}  // namespace

Switch::Switch(const SwitchConfig& config, unsigned number, Owner& owner)
    : config_(config), number_(number), owner_(owner), random_(mix(config.seed) ^ number) {}

unsigned Switch::add_port(double rate_gbps) {
  ports_.emplace_back();
  ports_.back().rate_gbps = rate_gbps;
  ports_.back().ps_per_byte = 8000.0 / rate_gbps;
  return static_cast<unsigned>(ports_.size() - 1);
}

void Switch::add_route(std::uint64_t mac, const std::vector<unsigned>& ports) {
  auto group = std::find(groups_.begin(), groups_.end(), ports);
  if (group == groups_.end()) group = groups_.insert(groups_.end(), ports);
  const auto number = static_cast<std::uint16_t>(group - groups_.begin() + 1);
  if (mac >> 24 != kCardMacs) {
    far_routes_[mac] = number;
    return;
  }
  const std::size_t index = mac & 0xffffff;
  if (near_routes_.size() <= index) near_routes_.resize(index + 1);
  near_routes_[index] = number;
}

const std::vector<unsigned>* Switch::route(std::uint64_t mac) const {
  std::uint16_t number = 0;
  if (mac >> 24 == kCardMacs) {
    if (const std::size_t index = mac & 0xffffff; index < near_routes_.size()) number = near_routes_[index];
  } else if (const auto at = far_routes_.find(mac); at != far_routes_.end()) {
    number = at->second;
  }
  return number == 0 || groups_[number - 1].empty() ? nullptr : &groups_[number - 1];
}

std::uint64_t Switch::longest_queue(unsigned port) const {
  std::uint64_t most = 0;
  for (const Queue& q : ports_[port].queues) most = std::max(most, q.bytes);
  return most;
}

// ---- What is due ----

bool Switch::later(const Item& a, const Item& b) {
  if (a.at != b.at) return a.at > b.at;
  if (a.kind != b.kind) return a.kind > b.kind;
  if (a.port != b.port) return a.port > b.port;
  return a.priority > b.priority;
}

void Switch::push(Item&& item) {
  const Time at = item.at;
  agenda_.push_back(std::move(item));
  std::push_heap(agenda_.begin(), agenda_.end(), later);
  if (at >= armed_) return;
  armed_ = at;
  owner_.wake_at(at);
}

void Switch::arrives(unsigned port, FramePtr frame, Time t) {
  push({t, kArrival, port, 0, std::move(frame)});
}

void Switch::turn_at(unsigned port, Time t) {
  Port& p = ports_[port];
  if (t >= p.turn_at) return;
  p.turn_at = t;
  push({t, kTurn, port, 0, nullptr});
}

void Switch::run(Time now) {
  armed_ = 0;  // nobody is to be woken for what is added meanwhile
  while (!agenda_.empty() && agenda_.front().at <= now) {
    std::pop_heap(agenda_.begin(), agenda_.end(), later);
    Item item = std::move(agenda_.back());
    agenda_.pop_back();
    Port& p = ports_[item.port];
    switch (item.kind) {
      case kTurn:
        if (p.turn_at != item.at) break;
        p.turn_at = kNever;
        turn(item.port, now);
        break;
      case kRenew: {
        const Ingress& in = p.ingress[item.priority];
        if (!in.stopped || in.again_at != item.at) break;
        // It had nothing here that could leave when others' frames had filled the buffer.
        if (may_go_on(in))
          go(item.port, item.priority, now);
        else
          stop(item.port, item.priority, now);
        break;
      }
      case kArrival:
        arrive(item.port, std::move(item.frame), now);
        break;
    }
  }
  armed_ = agenda_.empty() ? kNever : agenda_.front().at;
  if (armed_ != kNever) owner_.wake_at(armed_);
}

// ---- In ----

void Switch::arrive(unsigned port, FramePtr frame, Time now) {
  Port& in = ports_[port];
  ++in.counters.rx_frames;
  in.counters.rx_bytes += frame->length();
  in.counters.arrivals_hash = note(in.counters.arrivals_hash, now - begin_, frame->length());
  if (frame->mac_control) return take_pause(port, *frame, now);
  const std::vector<unsigned>* const way = route(frame->dmac);
  if (!way) {
    ++in.counters.dropped_unrouted;
    return;
  }
  const std::vector<unsigned>& group = *way;
  const unsigned out = group.size() == 1
                           ? group.front()
                           : group[mix(frame->flow ^ (number_ + 1) * 0x9e3779b97f4a7c15ull) % group.size()];
  Port& to = ports_[out];
  frame->ingress = static_cast<std::uint16_t>(port);
  if (!admit(port, out, *frame, now)) return;
  mark(to, *frame);
  const std::uint32_t length = frame->wire_length();
  const Time lasts_in = serialisation(length, in.ps_per_byte),
             lasts_out = serialisation(length, to.ps_per_byte);
  frame->ready = now + config_.latency - (config_.cut_through ? std::min(lasts_in, lasts_out) : 0);
  Queue& queue = to.queues[frame->priority];
  queue.bytes += frame->length();
  to.queued += frame->length();
  to.counters.most_queued = std::max(to.counters.most_queued, queue.bytes);
  const Time ready = frame->ready;
  queue.frames.push_back(std::move(frame));
  if (to.free <= now && ready <= now)
    turn(out, now);
  else
    turn_at(out, std::max(to.free, ready));
}

void Switch::take_pause(unsigned port, const Frame& frame, Time now) {
  PauseRequest request;
  if (!parse_pause(frame, request)) return;
  Port& p = ports_[port];
  ++p.counters.pauses_received;
  for (unsigned i = 0; i < kPriorities; ++i) {
    if ((request.priorities >> i & 1u) == 0) continue;
    p.queues[i].paused_until =
        now + static_cast<Time>(request.quanta[i] * (kQuantumBits / 8.0) * p.ps_per_byte);
  }
  turn(port, now);
}

// Whether there is room.
bool Switch::admit(unsigned in, unsigned out, Frame& frame, Time now) {
  const std::uint32_t length = frame.length();
  const unsigned priority = frame.priority;
  frame.headroom = false;  // it may have been in that of the switch before
  if ((config_.lossless >> priority & 1u) == 0) {
    Port& to = ports_[out];
    if (to.queues[priority].bytes + length > config_.queue || shared_ + length > config_.buffer) {
      ++to.counters.dropped_full;
      return false;
    }
    shared_ += length;
    return true;
  }
  Ingress& from = ports_[in].ingress[priority];
  const bool over = from.bytes + length > config_.xoff || shared_ + length > config_.buffer;
  // Also for a frame that finds no room: headroom may be less than one, and more are to come.
  if (over && !from.stopped) stop(in, priority, now);
  if (over && from.headroom + length > config_.headroom) {
    ++ports_[in].counters.dropped_headroom;
    return false;
  }
  from.bytes += length;
  if (over) {
    frame.headroom = true;
    from.headroom += length;
    in_headroom_ += length;
    ports_[in].counters.most_headroom = std::max(ports_[in].counters.most_headroom, from.headroom);
  } else {
    shared_ += length;
  }
  return true;
}

void Switch::stop(unsigned in, unsigned priority, Time now) {
  Port& p = ports_[in];
  Ingress& from = p.ingress[priority];
  from.stopped = true;
  from.again_at = now + static_cast<Time>(kStop / 2.0 * (kQuantumBits / 8.0) * p.ps_per_byte);
  push({from.again_at, kRenew, in, priority, nullptr});
  p.stop = static_cast<std::uint8_t>(p.stop | 1u << priority);
  p.go = static_cast<std::uint8_t>(p.go & ~(1u << priority));
  turn_at(in, std::max(p.free, now));
}

bool Switch::may_go_on(const Ingress& from) const { return from.bytes <= config_.xon && from.headroom == 0; }

void Switch::go(unsigned in, unsigned priority, Time now) {
  Port& p = ports_[in];
  p.ingress[priority].stopped = false;
  p.go = static_cast<std::uint8_t>(p.go | 1u << priority);
  p.stop = static_cast<std::uint8_t>(p.stop & ~(1u << priority));
  turn_at(in, std::max(p.free, now));
}

void Switch::mark(Port& out, Frame& frame) {
  if (config_.kmax == 0 || frame.ecn == 0 || frame.ecn == kCe) return;
  const std::uint64_t waiting = out.queues[frame.priority].bytes;
  if (waiting <= config_.kmin) return;
  if (waiting < config_.kmax) {
    const double share = config_.pmax * static_cast<double>(waiting - config_.kmin) /
                         static_cast<double>(config_.kmax - config_.kmin);
    // Not a distribution of the library's: their results may differ between libraries.
    if (static_cast<double>(random_() >> 11) * 0x1p-53 >= share) return;
  }
  mark_ce(frame);
  ++out.counters.marked;
}

// ---- Out ----

void Switch::note_blocked(Port& p, Time now) const {
  const bool blocked = p.queued != 0 && p.free <= now &&
                       std::all_of(std::begin(p.queues), std::end(p.queues), [now](const Queue& q) {
                         return q.frames.empty() || q.paused_until > now;
                       });
  if (blocked) {
    if (p.blocked_since == kNever) p.blocked_since = now;
  } else if (p.blocked_since != kNever) {
    p.counters.paused += now - p.blocked_since;
    p.blocked_since = kNever;
  }
}

PortCounters Switch::counters(unsigned port, Time now) const {
  PortCounters c = ports_[port].counters;
  if (ports_[port].blocked_since != kNever) c.paused += now - ports_[port].blocked_since;
  return c;
}

bool Switch::send_pause(unsigned port, Time now) {
  Port& p = ports_[port];
  if ((p.stop | p.go) == 0) return false;
  PauseRequest request;
  request.priorities = p.stop | p.go;
  for (unsigned i = 0; i < kPriorities; ++i) request.quanta[i] = (p.stop >> i & 1u) != 0 ? kStop : 0;
  if (p.stop != 0) ++p.counters.pauses_sent;
  p.stop = p.go = 0;
  FramePtr frame = make_pfc(kOwnMacs | std::uint64_t{number_} << 8 | (port & 0xffu), request);
  const Time lasts = serialisation(frame->wire_length(), p.ps_per_byte);
  p.free = std::max(p.free, now) + lasts;
  p.counters.busy += lasts;
  ++p.counters.tx_frames;
  p.counters.tx_bytes += frame->length();
  owner_.leaves(port, std::move(frame), p.free);
  return true;
}

// When something may leave that waits now; the transmitter is free.
Time Switch::next_chance(const Port& p, Time now) const {
  Time next = kNever;
  for (const Queue& q : p.queues) {
    if (q.frames.empty()) continue;
    next = std::min(next, std::max({q.paused_until, q.frames.front()->ready, now}));
  }
  return next;
}

void Switch::turn(unsigned port, Time now) {
  Port& p = ports_[port];
  while (p.free <= now) {
    if (send_pause(port, now)) continue;
    Queue* queue = nullptr;
    for (unsigned i = kPriorities; i-- > 0 && !queue;) {
      Queue& q = p.queues[i];
      if (!q.frames.empty() && q.paused_until <= now && q.frames.front()->ready <= now) queue = &q;
    }
    if (!queue) {
      note_blocked(p, now);
      if (const Time next = next_chance(p, now); next != kNever) turn_at(port, next);
      return;
    }
    note_blocked(p, now);
    FramePtr frame = std::move(queue->frames.front());
    queue->frames.pop_front();
    const std::uint32_t length = frame->length();
    queue->bytes -= length;
    p.queued -= length;
    // Cut through, its first bits may be out already when its last one is here.
    const Time lasts = serialisation(frame->wire_length(), p.ps_per_byte);
    p.free = std::max({p.free, frame->ready, queue->paused_until}) + lasts;
    p.counters.busy += lasts;
    ++p.counters.tx_frames;
    p.counters.tx_bytes += length;
    leave_buffer(*frame, now);
    owner_.leaves(port, std::move(frame), p.free);
  }
  if (p.queued != 0 || (p.stop | p.go) != 0) turn_at(port, p.free);
}

void Switch::leave_buffer(const Frame& frame, Time now) {
  const std::uint32_t length = frame.length();
  (frame.headroom ? in_headroom_ : shared_) -= length;
  if ((config_.lossless >> frame.priority & 1u) == 0) return;
  Ingress& from = ports_[frame.ingress].ingress[frame.priority];
  from.bytes -= length;
  if (frame.headroom) from.headroom -= length;
  if (from.stopped && may_go_on(from)) go(frame.ingress, frame.priority, now);
}

}  // namespace hcasim::fabric
