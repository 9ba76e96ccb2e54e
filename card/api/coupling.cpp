// SPDX-License-Identifier: BSD-3-Clause
// Coupled time: how the two ends of a wire between processes go through the same simulated time.
//
// They meet at the same times. What an end sends until the next meeting leaves it no earlier than it has
// announced (its `next`), or than the first frame on the way has reached it, and arrives a cable's latency
// later: so far both can run without hearing of each other. All that this depends on is simulated, and the
// same at both ends; how fast either of them runs only decides who waits.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "card/api/instance.h"
#include "card/api/wires.h"

namespace hcasim::api {

namespace {

// Between meetings at most, ps: a link comes up within this, and what reaches a guest from outside of
// simulated time is late by no more.
constexpr Time kLongest = from_ns(4'000'000);
constexpr Time kFarthest = from_ns(1e9);  // ahead of the meeting, for a frame's arrival

Time later(Time t, Time by) { return t > kNever - by ? kNever : t + by; }

}  // namespace

// Which end has waited for the other: logged when the link goes down.
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
  far_->finish(reason);
  report();
  joined_ = up_ = false;
  meets_at_ = kNever;
  const std::string why = reason.empty() ? "the wire has no other end any more" : "the wire ends: " + reason;
  owner_.log(HCA_LOG_WARNING, (why + ": the port is down, and time goes on by itself").c_str());
  owner_.follow_carrier();
}

bool SocketWire::meets_plainly() const { return up_ && meets_at_ != kNever && meets_at_ % kLongest != 0; }

void SocketWire::tell(Time next, const FarEnd::Meanwhile& meanwhile) {
  if (!joined_) {
    far_->find(meanwhile);
    if (!joined_) part("");
  }
  if (meets_at_ == kNever) return;
  wire::Mark mark;
  mark.at = meets_at_;
  mark.next = own_next_ = std::max(next, meets_at_);
  mark.wish = wish_ = owner_.wish();
  far_->send_mark(mark);
}

void SocketWire::hear(const FarEnd::Meanwhile& meanwhile) {
  if (meets_at_ == kNever) return;
  const FarEnd::Hearing heard = far_->hear(meanwhile);
  if (heard.what == FarEnd::Heard::kGivenUp) return part("the machine ends");
  ++meetings_.count;
  if (heard.waited != 0) {
    ++meetings_.waits;
    meetings_.wait_us += (heard.waited + 500) / 1000;
  }
  if (heard.what == FarEnd::Heard::kDown) return part("");
  if (heard.what == FarEnd::Heard::kTooMuch) return part("more frames than a link carries in that time");
  // The link changes at these times alone: when the ends meet between them may depend on what the host says
  // of its quiet, which nothing else that is simulated does.
  const bool on_grid = meets_at_ % kLongest == 0;
  const bool up = on_grid ? wish_.up && peer_wish_.up : up_;
  Time next = (meets_at_ / kLongest + 1) * kLongest;
  if (up) {
    next = std::min({next, later(std::min(own_next_, first_in_), own_latency_),
                     later(std::min(peer_next_, first_out_), peer_latency_)});
  }
  meets_at_ = next;
  first_in_ = first_out_ = kNever;
  const bool went = up_ && !up;
  if (on_grid) agreed_ = peer_wish_;
  up_ = up;
  if (went) report();
  if (on_grid) owner_.follow_carrier();
}

std::string SocketWire::wire_mark(const wire::Mark& mark) {
  if (mark.at != meets_at_) {
    char text[120];
    std::snprintf(text, sizeof text, "a mark of the time %" PRId64 " ps, but the ends meet at %" PRId64 " ps",
                  mark.at, meets_at_);
    return text;
  }
  peer_next_ = std::max(mark.next, meets_at_);
  peer_wish_ = mark.wish;
  return "";
}

// When a frame's last bit is here.
Time SocketWire::arrival(const wire::Message& frame) {
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
