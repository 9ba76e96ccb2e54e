// SPDX-License-Identifier: BSD-3-Clause
// Receive queues that keep headers apart from data (SHAMPO, the drivers' HW-GRO): each frame has its CQE at
// once, its headers in an entry of a buffer of their own, and the data of TCP segments that follow one
// another lie without a gap in the WQE. One connection at a time: what the driver is told of a segment is
// whether it continues the one of the CQE before (en_rx.c, mlx5e_handle_rx_cqe_mpwrq_shampo). The WQE is
// dealt out in reservations. None is crossed by data, and each has so many frames at most, as the driver has
// that many entries for headers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model/ctx/q_counters.h"
#include "model/eth/rx.h"
#include "model/eth/tcp_segment.h"
#include "model/port/port.h"
#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kSkipped = 1u << 31;      // in byte_cnt: strides left unused
constexpr std::uint32_t kMostHeaderBytes = 0xff;  // SplitCqe::header_size
constexpr std::uint32_t kUdpHeader = 8;

// Where the data of the frame begin; 0: it stays in one piece.
std::uint32_t data_offset(const std::uint8_t* frame, const FrameHeaders& h) {
  if (h.tunnel != Tunnel::kNone || h.mpls != 0) return 0;
  TcpSegment segment;
  if (read_segment(frame, h, segment)) return segment.data;
  return h.outer.udp ? h.outer.l4 + kUdpHeader : 0;
}

std::uint16_t identification(const std::uint8_t* frame, const FrameHeaders& h) {
  return h.outer.version == 4 ? prm::load16(frame + h.outer.l3 + 4) : std::uint16_t{0};
}

// All of the TCP options, too.
bool same_options(const std::uint8_t* a, const FrameHeaders& ha, const std::uint8_t* b,
                  const FrameHeaders& hb, std::uint32_t header) {
  constexpr std::uint32_t kFixed = 20;
  return std::memcmp(a + ha.outer.l4 + kFixed, b + hb.outer.l4 + kFixed, header - kFixed) == 0;
}

bool may_begin(const TcpSegment& s) { return s.plain && s.flags == TcpSegment::kAck && s.len != 0; }

// The driver has one header for all, the first; of the others it takes PSH. It counts the bytes of the first
// as those of each but the last.
bool continues(const SplitSession& s, const SplitSession& next, const TcpSegment& segment) {
  TcpSegment last;
  const std::uint8_t *a = s.last->frame(), *b = next.last->frame();
  if (!read_segment(a, s.headers, last)) return false;
  const auto id_step =
      static_cast<std::uint16_t>(identification(b, next.headers) - identification(a, s.headers));
  return segment.plain && (segment.flags & ~TcpSegment::kPsh) == TcpSegment::kAck && segment.len != 0 &&
         segment.len <= s.mss && segment.seq == last.seq + last.len && segment.ack == last.ack &&
         segment.hops == last.hops && same_connection(a, s.headers, b, next.headers) &&
         same_headers(a, s.headers, b, next.headers) &&
         same_options(a, s.headers, b, next.headers,
                      static_cast<std::uint32_t>(last.data - s.headers.outer.l4)) &&
         s.flow_tag == next.flow_tag && s.metadata == next.metadata && s.tls == next.tls &&
         (s.id_step ? id_step == *s.id_step : id_step <= 1);
}

}  // namespace

// Whether the frame continues the queue's session, which is then that of this frame, if it may be continued.
EthRx::Fit EthRx::join_split(Time t, Rq& rq, const Arrival& a) {
  HeaderSplit& split = *rq.split;
  Fit fit;
  TcpSegment segment;
  constexpr std::uint8_t kGood = prm::Cqe::kL3Ok | prm::Cqe::kL4Ok;
  const std::uint8_t* frame = (*a.packet)->frame();
  const bool is_tcp = read_segment(frame, *a.headers, segment);
  const bool is_whole = a.headers->outer.end == (*a.packet)->frame_len;  // not padded
  SplitSession next;
  next.last = *a.packet;
  next.headers = *a.headers;
  next.flow_tag = a.flow_tag;
  next.metadata = a.metadata;
  next.tls = a.tls;
  next.due = t + split.timeout;
  next.mss = segment.len;
  // The driver reads of the first CQE alone what TLS has made of the data: of what asks for it, or has
  // failed, there is nothing behind or before.
  const bool says_nothing = a.tls == prm::CqeTls::kNotDecrypted || a.tls == prm::CqeTls::kDecrypted;
  const bool is_good = split.merges && is_tcp && is_whole && (a.ok & kGood) == kGood && says_nothing;
  if (is_good && split.session && t < split.session->due && continues(*split.session, next, segment)) {
    fit.match = true;
    next.mss = split.session->mss;
    next.id_step = split.session->id_step;
    if (!next.id_step)
      next.id_step =
          static_cast<std::uint16_t>(identification(frame, next.headers) -
                                     identification(split.session->last->frame(), split.session->headers));
    fit.flush = (segment.flags & TcpSegment::kPsh) != 0 || segment.len < next.mss;
  } else {
    fit.flush = !is_good || !may_begin(segment);
  }
  split.session.reset();
  if (!fit.flush) split.session = std::move(next);
  return fit;
}

// Room for `data` bytes: behind what is there, at the next place that is aligned, or in the next reservation.
EthRx::Take EthRx::reserve(Time t, Rq& rq, std::uint32_t data, Fit& fit) {
  HeaderSplit& split = *rq.split;
  const std::uint32_t wqe = 1u << (rq.log_strides + rq.log_stride_size),
                      reservation = 1u << split.log_reservation;
  if (data > reservation) return Take::kEmpty;
  for (unsigned n = 0; n < 2; ++n) {
    if (!rq.wqe.valid) {
      const Take taken = take_wqe(t, rq);
      if (taken != Take::kTaken) return taken;
      rq.next_stride = 0;
      split.cursor = 0;
      split.end = reservation;
      split.frames = 0;
      fit.match = false;
    }
    const std::uint32_t align = fit.match || data == 0 ? 1u : 1u << split.log_align;
    const std::uint32_t at = (split.cursor + align - 1) & ~(align - 1);
    if (at + data <= split.end && split.frames < 1u << split.log_frames) {
      split.cursor = at;
      return Take::kTaken;
    }
    fit.match = false;
    skip_reservation(t, rq);
    if (split.end == wqe) {
      rq.wqe.valid = false;
    } else {
      split.cursor = split.end;
      split.end += reservation;
      split.frames = 0;
      return Take::kTaken;
    }
  }
  return Take::kEmpty;
}

// The driver counts strides to know when a WQE is used up.
void EthRx::skip_reservation(Time t, Rq& rq) {
  const std::uint32_t to = rq.split->end >> rq.log_stride_size;
  if (to == rq.next_stride) return;
  Completion c;
  FrameCompletion f;
  c.opcode = static_cast<std::uint8_t>(prm::CqeOp::kRespSend);
  c.byte_cnt = kSkipped | (to - rq.next_stride) << 16;
  c.wqe_counter = static_cast<std::uint16_t>(rq.next_stride);
  f.wqe_id = rq.wqe.counter;
  f.alone = true;
  c.frame = &f;
  rq.next_stride = to;
  post(t, rq, c);
}

void EthRx::take_split(Time t, Rq& rq, Arrival& a) {
  HeaderSplit& split = *rq.split;
  const Packet& p = **a.packet;
  const bool strip = strips(rq, *a.headers);
  const std::uint32_t tag = strip ? kVlanTag : 0, len = p.frame_len - tag;
  std::uint32_t begin = data_offset(p.frame(), *a.headers);
  if (begin != 0 && begin - tag > std::min(kMostHeaderBytes, 1u << split.log_entry_size)) begin = 0;
  const std::uint32_t head = begin != 0 ? begin - tag : 0, data = len - head;
  sum_up(a);
  Fit fit = join_split(t, rq, a);
  if (begin == 0) split.session.reset();
  const Take taken = reserve(t, rq, data, fit);
  if (taken == Take::kEmpty) {
    split.session.reset();
    ++blocks_.q_counters[rq.function][rq.counter_set].out_of_buffer;
    return drop(t, p, blocks_.eth[rq.function].counters.out_of_buffer, DropReason::kNoBuffer);
  }
  if (taken == Take::kBroken) return rq_failed(t, rq);
  trace_taken(t, rq, p);

  const WriteOwner owner{WriteOwner::kRq, rq.function, rq.rqn};
  const std::uint32_t entry = split.head & ((1u << split.log_entries) - 1);
  MoveResult m;
  if (begin == 0) {
    m = scatter(t, rq, rq.wqe.sges, split.cursor, a, strip, p.frame_len);
  } else {
    const std::vector<Sge> header{
        {std::uint64_t{entry} << split.log_entry_size, split.mkey, 1u << split.log_entry_size}};
    m = scatter(t, rq, header, 0, a, strip, begin);
    if (m.ok() && data != 0)
      m = mover_.scatter(t, owner, key_user(rq), rq.wqe.sges, split.cursor, *a.packet, begin, data, true);
  }
  if (!m.ok()) return refused(t, rq, m, split.cursor + data);
  trace_landed(m.at, rq, p, len);

  Completion c;
  FrameCompletion f;
  prm::SplitCqe s{};
  s.data_offset = split.cursor;
  s.header_size = static_cast<std::uint8_t>(head);
  if (head != 0) {
    s.header_entry_index = static_cast<std::uint16_t>(entry);
    ++split.head;
  }
  c.wqe_counter = static_cast<std::uint16_t>(split.cursor >> rq.log_stride_size);
  f.wqe_id = rq.wqe.counter;
  split.cursor += data;
  ++split.frames;
  const std::uint32_t stride = 1u << rq.log_stride_size;
  const std::uint32_t to = std::max(rq.next_stride, (split.cursor + stride - 1) >> rq.log_stride_size);
  c.byte_cnt = (to - rq.next_stride) << 16 | len;
  rq.next_stride = to;
  // The driver takes a WQE back when all its strides are counted.
  if (to == 1u << rq.log_strides) {
    rq.wqe.valid = false;
    split.session.reset();
    fit.flush = true;
  }
  s.flags = static_cast<std::uint8_t>((fit.match ? prm::SplitCqe::kMatch : 0u) |
                                      (fit.flush ? prm::SplitCqe::kFlush : 0u));
  std::memcpy(f.merge.data(), &s, sizeof s);
  f.alone = true;
  complete(t, rq, a, c, f, strip);
}

}  // namespace hcasim
