// SPDX-License-Identifier: BSD-3-Clause
#include "model/cc/flow.h"

#include <algorithm>

namespace hcasim {

namespace {

constexpr Time kUs = from_ns(1000);
// Changes of rate, of which a driver may ask for one a microsecond: who is told of the last one asks again.
constexpr unsigned kMostForetold = 64;
constexpr double kLongestGap = 1e15;  // ps; a packet at 1 Mb/s is far from it

double power(double base, std::uint64_t n) {
  double r = 1;
  for (; n; n >>= 1, base *= base)
    if (n & 1) r *= base;
  return r;
}

double full_rate(const ReactionParams& p, double max) {
  return p.max_rate ? std::min<double>(p.max_rate, max) : max;
}

Time us(std::uint32_t n) { return static_cast<Time>(n) * kUs; }

}  // namespace

// Once each dce_tcp_rtt: alpha = g * alpha, and (1 - g) on top if a CNP came since the last update.
void CcFlow::advance_alpha(Time t, const ReactionParams& p) {
  if (t < alpha_due) return;
  const Time period = std::max<Time>(us(p.dce_tcp_rtt), kUs);
  const double keep = std::min<double>(p.dce_tcp_g, kAlphaOne) / kAlphaOne;
  alpha *= keep;
  if (cnp_since_alpha) alpha += kAlphaOne * (1 - keep);
  cnp_since_alpha = false;
  const std::uint64_t more = static_cast<std::uint64_t>((t - alpha_due) / period);
  alpha *= power(keep, more);
  alpha_due += static_cast<Time>(more + 1) * period;
}

// What the next packet still has to wait takes as long as the new rate says: a gap that was begun at 1 Mb/s
// is 33 ms for 4 KiB, and must not outlast that rate.
void CcFlow::set_current(Time t, double rate) {
  if (next_send > t && rate != current) {
    const double wait = static_cast<double>(next_send - t) * std::max(current, 1.0) / std::max(rate, 1.0);
    next_send =
        t + static_cast<Time>(std::min(wait, kLongestGap) + 0.5);  // NOLINT(bugprone-incorrect-roundings)
  }
  current = rate;
}

// Paper, equation 1.
void CcFlow::cut(Time t, const ReactionParams& p) {
  if (p.clamp_tgt_rate || raised_by_bytes || (raised_by_time && p.clamp_tgt_rate_after_time_inc))
    target = current;
  const double by = alpha / static_cast<double>(std::uint64_t{1} << std::min<std::uint32_t>(p.gd, 31));
  set_current(t, std::max({current * (1 - by), current * std::min<std::uint32_t>(p.min_dec_fac, 100) / 100.0,
                           std::min<double>(p.min_rate, current)}));
  cut_at = t;
  cut_pending = false;
  time_events = byte_events = 0;
  raised_by_time = raised_by_bytes = false;
  bytes = 0;
  timer_due = p.time_reset ? t + us(p.time_reset) : kNever;
}

// Paper, figure 7 and equations 3 to 5.
void CcFlow::raise(Time t, const ReactionParams& p, double max) {
  const std::uint32_t most = std::max(time_events, byte_events), least = std::min(time_events, byte_events);
  if (most > p.threshold) target += least > p.threshold ? p.hai_rate : p.ai_rate;
  target = std::min(target, max);
  set_current(t, (current + target) / 2);
  // The limiter counts in Mb/s; at full rate it is given up.
  if (current >= max - 1) limited = false;
}

// Rate and target have met: the timer's events up to t change nothing before the next phase begins.
void CcFlow::skip_idle_events(Time t, const ReactionParams& p) {
  if (timer_due > t || !p.time_reset) return;
  auto events = static_cast<std::uint64_t>((t - timer_due) / us(p.time_reset)) + 1;
  const std::uint32_t most = std::max(time_events, byte_events);
  if (most <= p.threshold) events = std::min<std::uint64_t>(events, p.threshold - most);
  time_events = static_cast<std::uint32_t>(std::min<std::uint64_t>(time_events + events, UINT32_MAX - 1));
  timer_due += static_cast<Time>(events) * us(p.time_reset);
}

Time CcFlow::next_change(const ReactionParams& p) const {
  if (!limited) return kNever;
  return cut_pending ? std::min(cut_at + us(p.rate_reduce_monitor_period), timer_due) : timer_due;
}

void CcFlow::advance(Time t, const ReactionParams& p, double max) {
  max = full_rate(p, max);
  for (;;) {
    const Time due = next_change(p);
    if (due == kNever || due > t) break;
    if (cut_pending && cut_at + us(p.rate_reduce_monitor_period) <= timer_due) {
      advance_alpha(due, p);
      cut(due, p);
      continue;
    }
    timer_due = p.time_reset ? timer_due + us(p.time_reset) : kNever;
    ++time_events;
    const double rate_before = current, target_before = target;
    raise(due, p, max);
    raised_by_time = true;
    if (current == rate_before && target == target_before) skip_idle_events(t, p);
  }
  if (limited) advance_alpha(t, p);
}

void CcFlow::on_cnp(Time t, const ReactionParams& p, double max) {
  advance(t, p, max);
  if (!limited) {
    limited = true;
    next_send = t;
    current = target = full_rate(p, max);
    alpha = std::min<double>(p.initial_alpha_value, kAlphaOne);
    alpha_due = t + std::max<Time>(us(p.dce_tcp_rtt), kUs);
    cnp_since_alpha = true;
    cut(t, p);
    if (p.rate_to_set_on_first_cnp)
      current = target = std::min<double>(p.rate_to_set_on_first_cnp, full_rate(p, max));
    return;
  }
  cnp_since_alpha = true;
  if (t >= cut_at + us(p.rate_reduce_monitor_period))
    cut(t, p);
  else
    cut_pending = true;
}

Time CcFlow::earliest(Time t, const ReactionParams& p, double max) {
  if (!limited) return t;
  if (next_send <= t) return next_send = t;
  CcFlow later = *this;
  Time due = later.next_change(p);
  for (unsigned n = 0; n < kMostForetold && due < later.next_send; ++n) {
    later.advance(due, p, max);
    if (!later.limited) return due;
    due = later.next_change(p);
  }
  return std::min(due, later.next_send);
}

void CcFlow::on_sent(std::uint32_t size, const ReactionParams& p, double max) {
  const Time sent = next_send;
  if (p.byte_reset) {
    // The step may have been a longer one until now: what was sent under that is one event, not many.
    bytes = std::min<std::uint64_t>(bytes, p.byte_reset) + size;
    while (limited && bytes >= p.byte_reset) {
      bytes -= p.byte_reset;
      byte_events += byte_events < UINT32_MAX;
      raise(sent, p, full_rate(p, max));
      raised_by_bytes = true;
    }
  }
  const double ps = size * 8e6 / std::max(current, 1.0);
  next_send = sent + static_cast<Time>(ps + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}

}  // namespace hcasim
