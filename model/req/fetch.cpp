// SPDX-License-Identifier: BSD-3-Clause
// The requester's WQE fetch: doorbell record, SQ ring, BlueFlame buffer.
#include <algorithm>
#include <array>
#include <cstring>

#include "model/ctx/qp_states.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/rules.h"
#include "prm/eqe.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

namespace {

constexpr std::uint32_t kMaxWqe = prm::kMaxWqeDs * prm::kDs;  // bytes

unsigned wqebbs(unsigned ds) { return (ds + 3) / 4; }

}  // namespace

bool Requester::read_doorbell_record(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  s.doorbell = false;
  prm::be32 count;
  if (!blocks_.dma
           .read(t, qp.dbr_addr + offsetof(prm::QpDbr, snd), &count, sizeof count, Space::kHost,
                 {WriteOwner::kQp, qp.function, qp.qpn})
           .ok) {
    queue_broken(t, qp, qp.dbr_addr);
    return false;
  }
  const auto posted = static_cast<std::uint16_t>(count);
  // More than the ring holds cannot have been posted: the record jumped.
  const unsigned size = 1u << qp.log_sq_size;
  if (static_cast<std::uint16_t>(posted - s.fetched) > size) {
    const bool back = static_cast<std::int16_t>(posted - s.fetched) < 0;
    blocks_.tracer.broke(back ? Rule::kSqRecordBack : Rule::kSqRecordJump, t, RuleObject::kQp, qp.subject(),
                         &count, sizeof count);
    queue_broken(t, qp, count);
    return false;
  }
  if (!s.window.empty() && !qp.rendezvous &&
      static_cast<std::uint16_t>(posted - s.window.front().counter) > size)
    blocks_.tracer.broke(Rule::kSqOverrun, t, RuleObject::kQp, qp.subject(), &count, sizeof count);
  // A doorbell may come long after its WQE was taken by the record of an earlier one (posted writes wait in
  // queues on their way), and by then be any number of WQEs old. One that is early is ahead of the record by
  // no more than the queue holds.
  if (s.doorbell_named && static_cast<std::uint16_t>(s.doorbell_index - posted) < size)
    blocks_.tracer.broke(Rule::kDoorbellEarly, t, RuleObject::kQp, qp.subject(), &count, sizeof count);
  s.doorbell_named = false;
  s.db_counter = posted;
  return true;
}

void Requester::queue_broken(Time t, Qp& qp, std::uint64_t value) {
  blocks_.tracer.record(Point::kDoorbellBad, t, qp.subject(), traces::bad_record(RuleObject::kQp),
                        qp.dbr_addr, value);
  qp.req.db_counter = qp.req.fetched;  // nothing behind this can be trusted
  blocks_.errors.qp_error(t, qp, static_cast<std::uint8_t>(prm::EqeType::kWqCatas));
}

// Reads len bytes of the SQ from WQEBB `counter` on, round the end of the ring and over its pages.
bool Requester::read_sq(Pace& pace, Qp& qp, std::uint16_t counter, std::uint8_t* dst, std::uint32_t len) {
  const std::uint32_t ring = prm::kWqebb << qp.log_sq_size;
  std::uint32_t at = (counter & ((1u << qp.log_sq_size) - 1)) * prm::kWqebb;
  const Time t = pace.engine;
  while (len) {
    std::uint64_t addr, run;
    if (!qp.ring.locate(qp.sq_offset + at, addr, run)) return false;
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>({len, run, ring - at}));
    const ReadDone d =
        blocks_.dma.read(t, addr, dst, n, Space::kHost, {WriteOwner::kQp, qp.function, qp.qpn});
    if (!d.ok) return false;
    pace.ready = std::max(pace.ready, d.at);
    dst += n;
    len -= n;
    at = (at + n) % ring;
  }
  return true;
}

void Requester::add_to_window(Pace& pace, Qp& qp, const std::uint8_t* bytes, std::uint32_t len,
                              WqeFault fault) {
  RequesterState& s = qp.req;
  SendWqe& w = s.window.push();
  w.counter = s.fetched;
  w.serial = s.next_serial++;
  w.due = pace.ready;
  parse_send_wqe(bytes, len, qp, w);
  if (fault != WqeFault::kNone) {
    w.syndrome = static_cast<std::uint8_t>(prm::CqeSyndrome::kLocalQpOp);
    w.vendor = static_cast<std::uint8_t>(fault);
  }
  ++wqes_;
  if (w.syndrome) {
    blocks_.tracer.broke(rule_of(static_cast<WqeFault>(w.vendor)), pace.engine, RuleObject::kQp, qp.subject(),
                         bytes, len);
    w.reported = true;
  }
}

// Those of the window from `from` on, which one fetch has brought: alike and one behind the other, mostly.
void Requester::trace_parsed(const Pace& pace, const Qp& qp, std::size_t from) {
  const SendWindow& window = qp.req.window;
  std::array<Time, kMaxRun> times;
  times.fill(std::max(pace.engine, pace.ready) + blocks_.profile.engine.wqe_parse);
  const auto a0_of = [&](std::size_t i) {
    return static_cast<std::uint64_t>(window[i].opcode) | static_cast<std::uint64_t>(window[i].counter) << 16;
  };
  while (from < window.size()) {
    const SendWqe& first = window[from];
    unsigned n = 1;
    std::uint64_t step = 0;
    for (; from + n < window.size() && n < times.size(); ++n) {
      if (window[from + n].length != first.length) break;
      const std::uint64_t by = a0_of(from + n) - a0_of(from + n - 1);
      if (n == 1)
        step = by;
      else if (by != step)
        break;
      if (by >> 32 != 0) break;
    }
    blocks_.tracer.record_series(Point::kWqeParsed, times.data(), n, qp.subject(), first.serial, a0_of(from),
                                 static_cast<std::uint32_t>(step), first.length);
    from += n;
  }
}

// Whether to fetch while WQEs are left, one fetch's worth at most: a read takes its time, and behind those of
// much payload more of it.
bool Requester::runs_short(const RequesterState& s) const {
  const std::size_t chunk = blocks_.profile.engine.wqe_fetch_bytes / prm::kWqebb;
  return (s.fetched != s.db_counter || s.doorbell) && s.window.size() - s.next_to_send <= chunk &&
         s.blueflame_len == 0 && s.own.empty();
}

bool Requester::fetch(Pace& pace, Qp& qp) {
  RequesterState& s = qp.req;
  if (s.own.empty()) {
    const std::size_t had = s.window.size();
    const bool fetched = fetch_posted(pace, qp);
    if (blocks_.tracer.enabled()) trace_parsed(pace, qp, had);
    return fetched;
  }
  SendWqe& w = s.window.push();
  w = std::move(s.own.front());
  s.own.pop_front();
  w.serial = s.next_serial++;
  ++wqes_;
  return true;
}

bool Requester::fetch_posted(Pace& pace, Qp& qp) {
  RequesterState& s = qp.req;
  // Of a queue whose driver goes round it without waiting (Rule::kSqOverrun) no more is held than it has room
  // for.
  if (qp.has_sq && s.window.size() >= std::size_t{1} << qp.log_sq_size) return false;
  if (s.fetched == s.db_counter) {
    if (!s.doorbell || !read_doorbell_record(pace.engine, qp) || s.fetched == s.db_counter) return false;
  }

  pace.ready = pace.engine;
  if (s.blueflame_len) {
    const std::uint32_t have = s.blueflame_len;
    s.blueflame_len = 0;
    prm::CtrlSeg ctrl;
    std::memcpy(&ctrl, s.blueflame.data(), sizeof ctrl);
    const std::uint32_t need = ctrl.ds() * prm::kDs;
    const auto rung = static_cast<std::uint16_t>(s.db_counter - s.fetched);  // WQEBBs
    if (ctrl.wqe_index() == s.fetched && ctrl.qpn() == qp.qpn && need && need <= have &&
        wqebbs(ctrl.ds()) <= rung) {
      add_to_window(pace, qp, s.blueflame.data(), need, WqeFault::kNone);
      s.fetched = static_cast<std::uint16_t>(s.fetched + wqebbs(ctrl.ds()));
      return true;
    }
  }

  std::uint8_t bytes[std::max<std::uint32_t>(4096, kMaxWqe)];
  const unsigned posted = static_cast<std::uint16_t>(s.db_counter - s.fetched);
  const unsigned chunk = std::clamp<unsigned>(blocks_.profile.engine.wqe_fetch_bytes / prm::kWqebb, 1,
                                              sizeof bytes / prm::kWqebb);
  unsigned have = std::min(posted, chunk);  // WQEBBs
  const std::uint32_t first_serial = s.next_serial;
  if (!read_sq(pace, qp, s.fetched, bytes, have * prm::kWqebb)) {
    queue_broken(pace.engine, qp, s.fetched);
    return false;
  }
  blocks_.tracer.record(Point::kWqeFetch, pace.ready, qp.subject(), first_serial, have * prm::kWqebb,
                        s.fetched);

  unsigned at = 0;
  while (at < have) {
    prm::CtrlSeg ctrl;
    std::memcpy(&ctrl, bytes + at * prm::kWqebb, sizeof ctrl);
    const unsigned size = wqebbs(ctrl.ds());
    if (size == 0 || size > posted - at) {
      // Not a WQE: its length is unknown, and so is where the next one begins.
      add_to_window(pace, qp, bytes + at * prm::kWqebb, prm::kWqebb, WqeFault::kSize);
      s.fetched = static_cast<std::uint16_t>(s.fetched + 1);
      return true;
    }
    if (size > have - at) {
      if (at != 0) break;  // cut off by the end of the chunk: comes whole with the next fetch
      have = size;
      if (!read_sq(pace, qp, s.fetched, bytes, have * prm::kWqebb)) {
        queue_broken(pace.engine, qp, s.fetched);
        return false;
      }
    }
    if (ctrl.wqe_index() != s.fetched)
      blocks_.tracer.broke(Rule::kWqeIndex, pace.engine, RuleObject::kQp, qp.subject(),
                           bytes + at * prm::kWqebb, sizeof ctrl);
    add_to_window(pace, qp, bytes + at * prm::kWqebb, ctrl.ds() * prm::kDs, WqeFault::kNone);
    s.fetched = static_cast<std::uint16_t>(s.fetched + size);
    at += size;
  }
  return true;
}

// Flushes what is posted but not fetched: each WQE's size must still be read to find the next one.
void Requester::flush_unfetched(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  if (s.doorbell) {
    s.doorbell = false;
    prm::be32 count;
    if (blocks_.dma
            .read(t, qp.dbr_addr + offsetof(prm::QpDbr, snd), &count, sizeof count, Space::kHost,
                  WriteOwner(qp.function))
            .ok &&
        static_cast<std::uint16_t>(count - s.fetched) <= 1u << qp.log_sq_size)
      s.db_counter = static_cast<std::uint16_t>(count);
  }
  while (s.fetched != s.db_counter) {
    Pace pace{t, t};
    prm::CtrlSeg ctrl;
    std::uint8_t head[prm::kDs];
    if (!read_sq(pace, qp, s.fetched, head, sizeof head)) {
      s.fetched = s.db_counter;
      break;
    }
    std::memcpy(&ctrl, head, sizeof ctrl);
    const unsigned posted = static_cast<std::uint16_t>(s.db_counter - s.fetched);
    SendWqe w;
    w.opcode = ctrl.opcode();
    w.counter = s.fetched;
    w.serial = s.next_serial++;
    w.silent_flush = ctrl.ce() == prm::kCeOnFirstError;
    complete(t, qp, w, prm::CqeSyndrome::kWrFlush, 0);
    s.fetched = static_cast<std::uint16_t>(s.fetched + std::clamp(wqebbs(ctrl.ds()), 1u, posted));
  }
}

}  // namespace hcasim
