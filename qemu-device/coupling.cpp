// SPDX-License-Identifier: BSD-3-Clause
// Coupled time: how the two ends of a wire between processes go through the same simulated time.
//
// They meet at the same times. What an end sends until the next meeting leaves it no earlier than it has told
// (its `next`), or than the first frame on the way has reached it, and arrives a cable's latency later: so
// far both can run without hearing of each other. All that this depends on is simulated, and the same at both
// ends; how fast either of them runs only decides who waits.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>

#include "qemu-device/instance.h"
#include "qemu-device/wires.h"

namespace hcasim::api {

namespace {

// Between meetings at most, ps: a link comes up within this, and what reaches a guest from outside of
// simulated time is late by no more.
constexpr Time kLongest = from_ns(4'000'000);
// Bytes of frames from one meeting to the next that no link carries in that time.
constexpr std::size_t kMostBytes = std::size_t{128} << 20;
constexpr Time kFarthest = from_ns(1e9);  // ahead of the meeting, for a frame's arrival
constexpr std::int64_t kSpinNs = 20'000, kSayNs = 5'000'000'000;
constexpr int kWaitMs = 50;

std::int64_t real_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Time later(Time t, Time by) { return t > kNever - by ? kNever : t + by; }

}  // namespace

// Not joined yet: looks for the other end, and waits for it.
void SocketWire::find_partner() {
  const std::int64_t since = real_ns();
  while (!joined_) {
    link_.poll(real_ns());
    if (joined_) break;
    if (link_.refused()) return part("");
    if (!goes_on(since)) return part("");
    link_.wait(2);
  }
}

// While this end waits: says so when it takes long. False: the host wants no more of it.
bool SocketWire::goes_on(std::int64_t since) {
  if (!said_waiting_ && real_ns() - since > kSayNs) {
    said_waiting_ = true;
    char text[200];
    std::snprintf(text, sizeof text, "waits for %s at the other end of the wire, at %.9f s of simulated time",
                  joined_ ? peer_name_.c_str() : "an HCA", to_ns(meets_at_) / 1e9);
    owner_.log(HCA_LOG_WARNING, text);
  }
  return !owner_.ops.keep_waiting || owner_.ops.keep_waiting(owner_.opaque) != 0;
}

// Who has waited for whom: said when the link goes down.
void SocketWire::report() {
  if (meetings_.count == 0 || meets_at_ == kNever) return;
  char text[200];
  std::snprintf(text, sizeof text,
                "the ends have met %" PRIu64 " times; at %" PRIu64
                " of them this one waited, for %.3f s in all; the last was at %.9f s of simulated time",
                meetings_.count, meetings_.waits, static_cast<double>(meetings_.wait_us) / 1e6,
                to_ns(meets_at_) / 1e9);
  owner_.log(HCA_LOG_INFO, text);
}

void SocketWire::part(const std::string& reason) {
  link_.finish(reason);
  report();
  joined_ = up_ = false;
  meets_at_ = kNever;
  const std::string why = reason.empty() ? "the wire has no other end any more" : "the wire ends: " + reason;
  owner_.log(HCA_LOG_WARNING, (why + ": the port is down, and time goes on by itself").c_str());
  owner_.follow_carrier();
}

void SocketWire::tell(Time next) {
  if (!joined_) find_partner();
  if (meets_at_ == kNever) return;
  wire::Mark mark;
  mark.at = meets_at_;
  mark.next = own_next_ = std::max(next, meets_at_);
  mark.wanted = wanted_ = owner_.wants_link();
  link_.send_mark(mark);
}

void SocketWire::hear() {
  if (meets_at_ == kNever) return;
  const std::int64_t start = real_ns();
  std::int64_t now = start;
  wire::Link::Pulled got;
  while ((got = link_.pull(now)) == wire::Link::Pulled::kNothing && bytes_in_ <= kMostBytes) {
    now = real_ns();
    if (now - start < spin_) continue;
    if (!goes_on(start)) return part("the machine ends");
    link_.wait(kWaitMs);
    now = real_ns();
  }
  ++meetings_.count;
  // Looking again and again pays when the other end runs beside this one, and costs where it wants this
  // processor.
  spin_ = now - start < kSpinNs ? std::min(2 * spin_ + kSpinNs / 16, kSpinNs) : spin_ / 2;
  if (now != start) {
    ++meetings_.waits;
    meetings_.wait_us += static_cast<std::uint64_t>(now - start + 500) / 1000;
  }
  if (got == wire::Link::Pulled::kDown) return part("");
  if (bytes_in_ > kMostBytes) return part("more frames than a link carries in that time");
  if (said_waiting_) {
    said_waiting_ = false;
    owner_.log(HCA_LOG_INFO, ("goes on with " + peer_name_).c_str());
  }
  // The link changes at these times alone: when the ends meet between them may depend on what the host says
  // of its quiet, which nothing else that is simulated does.
  const bool on_grid = meets_at_ % kLongest == 0;
  const bool up = on_grid ? wanted_ && peer_wanted_ : up_;
  Time next = (meets_at_ / kLongest + 1) * kLongest;
  if (up) {
    next = std::min({next, later(std::min(own_next_, first_in_), own_latency_),
                     later(std::min(peer_next_, first_out_), peer_latency_)});
  }
  meets_at_ = next;
  first_in_ = first_out_ = kNever;
  bytes_in_ = 0;
  if (up != up_) {
    up_ = up;
    if (!up) report();
    owner_.follow_carrier();
  }
}

std::string SocketWire::wire_mark(const wire::Mark& mark) {
  if (mark.at != meets_at_) {
    char text[120];
    std::snprintf(text, sizeof text, "a mark of the time %" PRId64 " ps, but the ends meet at %" PRId64 " ps",
                  mark.at, meets_at_);
    return text;
  }
  peer_next_ = std::max(mark.next, meets_at_);
  peer_wanted_ = mark.wanted;
  return "";
}

// When a frame's last bit is here.
Time SocketWire::arrival(const wire::Message& frame) {
  bytes_in_ += frame.len + wire::kHeaderBytes;
  const Time farthest = meets_at_ + kFarthest;
  Time t = frame.time > farthest - peer_latency_ ? farthest : frame.time + peer_latency_;
  if (t < meets_at_) {
    ++meetings_.late;
    t = meets_at_;
  }
  first_in_ = std::min(first_in_, t);
  return t;
}

}  // namespace hcasim::api
