// SPDX-License-Identifier: BSD-3-Clause
// From LRO into the RQ: the first segment's frame, the others' data behind it, and one CQE.
#include <algorithm>
#include <cstring>

#include "model/ctx/q_counters.h"
#include "model/eth/checksum.h"
#include "model/eth/rx.h"
#include "model/port/port.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kMostBytes = 0xffff;  // the byte count of a striding RQ's CQE has 16 bits

}  // namespace

void EthRx::drop_segments(Time t, const LroSession& s, std::size_t from, std::uint64_t& counter,
                          DropReason reason) {
  for (; from < s.segments.size(); ++from) drop(t, *s.segments[from].packet, counter, reason);
}

EthRx::Take EthRx::fit(Time t, Rq& rq, const LroSession& s, std::size_t from, std::size_t& n) {
  std::uint64_t room = 0;
  if (rq.striding()) {
    room = (std::uint64_t{1} << (rq.log_strides + rq.log_stride_size)) - (rq.two_byte_shift ? 2 : 0);
  } else {
    const Take taken = rq.wqe.valid ? Take::kTaken : take_wqe(t, rq);
    if (taken != Take::kTaken) return taken;
    room = rq.wqe.capacity;
  }
  room = std::min<std::uint64_t>(room, kMostBytes);
  std::uint64_t len = s.segments[from].tcp.data - (strips(rq, s.headers) ? kVlanTag : 0);
  for (n = 0; from + n < s.segments.size(); ++n) {
    len += s.segments[from + n].tcp.len;
    if (len > room) break;
  }
  n = std::max<std::size_t>(n, 1);  // one that does not fit alone fails as any frame does
  return Take::kTaken;
}

void EthRx::take_session(Time t, LroSession& s) {
  Rq* rq = EthTable::find(blocks_.eth[s.function].rqs, s.rqn);
  FrameCounters& counters = blocks_.eth[s.function].counters;
  for (std::size_t from = 0, n = 0; from < s.segments.size(); from += n) {
    // It fails, if a WQE of it does.
    if (!rq || rq->epoch != s.epoch || rq->state != RqState::kRdy)
      return drop_segments(t, s, from, counters.no_rule, DropReason::kQpState);
    const Take taken = fit(t, *rq, s, from, n);
    if (taken == Take::kBroken) {
      rq_failed(t, *rq);
      n = 0;
    } else if (taken == Take::kEmpty) {
      blocks_.q_counters[rq->function][rq->counter_set].out_of_buffer += s.segments.size() - from;
      return drop_segments(t, s, from, counters.out_of_buffer, DropReason::kNoBuffer);
    } else {
      place(t, *rq, s, from, n);
    }
  }
}

void EthRx::place(Time t, Rq& rq, const LroSession& s, std::size_t from, std::size_t n) {
  const LroSegment& first = s.segments[from];
  const LroSegment& last = s.segments[from + n - 1];
  FrameHeaders headers = s.headers;
  if (from != 0) headers = parse_frame(first.packet->frame(), first.packet->frame_len);
  Arrival a;
  a.packet = &first.packet;
  a.headers = &headers;
  a.flow_tag = s.flow_tag;
  a.metadata = s.metadata;
  a.hash = s.hash;
  a.segments = static_cast<std::uint8_t>(n);
  if (n == 1) return take_frame(t, rq, a);

  const bool strip = strips(rq, headers);
  std::uint32_t len = first.tcp.data - (strip ? kVlanTag : 0);
  std::uint8_t hops = first.tcp.hops;
  for (std::size_t i = from; i < from + n; ++i) {
    len += s.segments[i].tcp.len;
    hops = std::min(hops, s.segments[i].tcp.hops);
  }
  Claim room;
  const Take taken = claim(t, rq, len, room);
  if (taken == Take::kEmpty) {
    blocks_.q_counters[rq.function][rq.counter_set].out_of_buffer += n;
    for (std::size_t i = from; i < from + n; ++i)
      drop(t, *s.segments[i].packet, blocks_.eth[rq.function].counters.out_of_buffer, DropReason::kNoBuffer);
    return;
  }
  if (taken == Take::kBroken) {
    for (std::size_t i = from; i < from + n; ++i)
      drop(t, *s.segments[i].packet, blocks_.eth[rq.function].counters.no_rule, DropReason::kQpState);
    return rq_failed(t, rq);
  }

  std::uint64_t at = room.offset;
  a.summed = true;
  a.ok = prm::Cqe::kL2Ok | prm::Cqe::kL3Ok | prm::Cqe::kL4Ok;
  bool odd = false;
  for (std::size_t i = from; i < from + n; ++i) {
    const LroSegment& segment = s.segments[i];
    const TcpSegment& tcp = segment.tcp;
    const std::uint8_t* data = segment.packet->frame() + tcp.data;
    trace_taken(t, rq, *segment.packet);
    const std::uint32_t bytes = i == from ? first.tcp.data + tcp.len : tcp.len;
    const MoveResult m = i == from ? scatter(t, rq, rq.wqe.sges, at, a, strip, bytes)
                                   : mover_.scatter(t, {WriteOwner::kRq, rq.function, rq.rqn}, key_user(rq),
                                                    rq.wqe.sges, at, segment.packet, tcp.data, tcp.len, true);
    if (!m.ok()) return refused(t, rq, m, room.offset + len);
    trace_landed(m.at, rq, *segment.packet, bytes);
    at += bytes - (i == from && strip ? kVlanTag : 0);
    const std::uint16_t sum = ones_sum(data, tcp.len);
    a.sum = ones_add(a.sum, odd ? static_cast<std::uint16_t>(sum << 8 | sum >> 8) : sum);
    odd = odd != ((tcp.len & 1) != 0);
  }
  used(rq, room);
  prm::LroCqe merge{};
  merge.flags = (last.tcp.flags & TcpSegment::kPsh) != 0 ? prm::LroCqe::kPsh : 0;
  merge.min_ttl = hops;
  merge.tcp_win = last.tcp.window;
  merge.ack_seq_num = last.tcp.ack;
  std::memcpy(room.f.merge.data(), &merge, sizeof merge);
  room.f.segments = a.segments;
  room.f.alone = true;
  complete(t, rq, a, room.c, room.f, strip);
}

}  // namespace hcasim
