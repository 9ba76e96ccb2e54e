// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/lro.h"

#include <algorithm>
#include <utility>

#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

namespace {

// Sequence and acknowledgement numbers wrap.
bool is_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

std::uint32_t tcp_header(const TcpSegment& s, const FrameHeaders& h) {
  return static_cast<std::uint32_t>(s.data - h.outer.l4);
}

}  // namespace

Lro::Lro(const sc_core::sc_module_name& name, traces::Tracer& tracer, FaultSink& faults, Deliver deliver,
         Lose lose)
    : sc_module(name),
      tracer_(tracer),
      deliver_(std::move(deliver)),
      lose_(std::move(lose)),
      timeouts_(
          "timeouts",
          [this](Time due, const Timeout& timeout) {
            const auto it = std::find_if(sessions_.begin(), sessions_.end(),
                                         [&](const LroSession& s) { return s.serial == timeout.serial; });
            if (it != sessions_.end()) end(due, it, LroEnd::kTimeout);
          },
          faults) {}

Lro::Sessions::iterator Lro::find(const Arriving& frame) {
  return std::find_if(sessions_.begin(), sessions_.end(), [&](const LroSession& s) {
    return s.function == frame.rq.function && s.rqn == frame.rq.rqn &&
           same_connection(s.segments.front().packet->frame(), s.headers, frame.packet->frame(),
                           frame.headers);
  });
}

bool Lro::joins(const LroSession& s, const Arriving& frame, const TcpSegment& next, LroEnd& why_not) {
  const LroSegment& last = s.segments.back();
  const TcpSegment& first = s.segments.front().tcp;
  const auto refuse = [&](bool wrong, LroEnd why) {
    if (wrong) why_not = why;
    return wrong;
  };
  if (refuse(!frame.checked, LroEnd::kChecksum) ||
      refuse((next.flags & ~TcpSegment::kPsh) != TcpSegment::kAck, LroEnd::kFlags) ||
      refuse(next.len == 0, LroEnd::kNoData) ||
      refuse(next.seq != last.tcp.seq + last.tcp.len, LroEnd::kSequence))
    return false;
  // An older acknowledgement or timestamp has been overtaken on its way. The driver has one acknowledgement
  // for all (the last) and one timestamp (the first, which an acknowledgement of all echoes: RFC 7323, 4.3).
  if (refuse(!next.plain || s.tirn != frame.tir.tirn || s.flow_tag != frame.flow_tag ||
                 s.metadata != frame.metadata || is_before(next.ack, last.tcp.ack) ||
                 is_before(next.timestamp, first.timestamp) ||
                 !same_headers(s.segments.front().packet->frame(), s.headers, frame.packet->frame(),
                               frame.headers),
             LroEnd::kDiffers))
    return false;
  return !refuse(s.ip_payload + next.len > s.limit, LroEnd::kFull);
}

bool Lro::take(Time t, const Arriving& frame) {
  TcpSegment next;
  if (!read_segment(frame.packet->frame(), frame.headers, next)) return false;
  const auto it = find(frame);
  if (it != sessions_.end()) {
    LroSession& s = *it;
    LroEnd why = LroEnd::kTimeout;
    if (t < s.due && joins(s, frame, next, why)) {
      s.segments.push_back({frame.packet, next});
      s.ip_payload += next.len;
      const bool is_full =
          s.segments.size() == kMostSegments || s.ip_payload + s.segments.front().tcp.len > s.limit;
      if ((next.flags & TcpSegment::kPsh) != 0)
        end(t, it, LroEnd::kPush);
      else if (is_full)
        end(t, it, LroEnd::kFull);
      return true;
    }
    end(t, it, why);
  }
  const bool of_version = frame.headers.outer.version == 4 ? frame.tir.lro.ipv4 : frame.tir.lro.ipv6;
  const std::uint32_t ip_payload = tcp_header(next, frame.headers) + next.len;
  if (!of_version || !frame.checked || !next.plain || next.flags != TcpSegment::kAck ||
      next.len < kMinSegment || ip_payload + next.len > frame.tir.lro.max_ip_payload ||
      sessions_.size() == kMostSessions)
    return false;
  open(t, frame, next);
  return true;
}

void Lro::open(Time t, const Arriving& frame, const TcpSegment& first) {
  LroSession s;
  s.serial = ++serial_;
  s.function = frame.rq.function;
  s.tirn = frame.tir.tirn;
  s.rqn = frame.rq.rqn;
  s.epoch = frame.rq.epoch;
  s.opened = t;
  s.due = t + frame.tir.lro.timeout;
  s.limit = frame.tir.lro.max_ip_payload;
  s.ip_payload = tcp_header(first, frame.headers) + first.len;
  s.headers = frame.headers;
  s.hash = frame.hash;
  s.flow_tag = frame.flow_tag;
  s.metadata = frame.metadata;
  s.segments.push_back({frame.packet, first});
  timeouts_.push(s.due, Timeout{s.serial});
  sessions_.push_back(std::move(s));
}

void Lro::end(Time t, Sessions::iterator session, LroEnd why) {
  // What follows may come back here.
  LroSession s = std::move(*session);
  sessions_.erase(session);
  ++ended_;
  std::uint64_t bytes = 0;
  for (const LroSegment& segment : s.segments) bytes += segment.tcp.len;
  tracer_.record(Point::kLroEnd, t, {s.function, s.rqn}, static_cast<std::uint32_t>(s.segments.size()),
                 static_cast<std::uint64_t>(why) | bytes << 32, static_cast<std::uint64_t>(t - s.opened));
  if (why == LroEnd::kLost)
    lose_(t, s);
  else
    deliver_(t, s);
}

void Lro::tir_changed(Time t, FunctionId f, std::uint32_t tirn) {
  const auto of_tir = [&](const LroSession& s) { return s.function == f && s.tirn == tirn; };
  for (auto it = sessions_.begin();
       (it = std::find_if(sessions_.begin(), sessions_.end(), of_tir)) != sessions_.end();)
    end(t, it, LroEnd::kTir);
}

void Lro::rq_gone(Time t, FunctionId f, std::uint32_t rqn) {
  const auto of_rq = [&](const LroSession& s) { return s.function == f && s.rqn == rqn; };
  for (auto it = sessions_.begin();
       (it = std::find_if(sessions_.begin(), sessions_.end(), of_rq)) != sessions_.end();)
    end(t, it, LroEnd::kLost);
}

void Lro::settle(Time t, FunctionId f) {
  const auto of_function = [f](const LroSession& s) { return s.function == f; };
  for (auto it = sessions_.begin();
       (it = std::find_if(sessions_.begin(), sessions_.end(), of_function)) != sessions_.end();)
    end(t, it, LroEnd::kTimeout);
}

void Lro::forget(FunctionId f) {
  sessions_.erase(std::remove_if(sessions_.begin(), sessions_.end(),
                                 [f](const LroSession& s) { return s.function == f; }),
                  sessions_.end());
}

}  // namespace hcasim
