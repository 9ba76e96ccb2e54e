// SPDX-License-Identifier: BSD-3-Clause
#include "traces/analysis.h"

#include <algorithm>

#include "prm/cmd_queue.h"
#include "prm/cqe.h"
#include "prm/info.h"
#include "prm/packet.h"
#include "prm/prm.h"
#include "prm/wqe.h"

namespace hcasim::traces {
namespace {

constexpr std::int64_t kMaxTime = INT64_MAX / 4;

std::string or_hex(const char* name, unsigned v) {
  if (name != nullptr) return name;
  char s[16];
  std::snprintf(s, sizeof s, "0x%x", v);
  return s;
}

void keep_first(std::int64_t& t, std::int64_t v) {
  if (t == kNoTime || v < t) t = v;
}

/// Points whose obj and index are a sender's QPN and a WQE serial.
bool is_wqe_point(Point p) {
  switch (p) {
    case Point::kWqeParsed:
    case Point::kTranslated:
    case Point::kGathered:
    case Point::kPacketTxFirst:
    case Point::kPacketTxLast:
    case Point::kPacketRx:
    case Point::kChecked:
    case Point::kRwqeFetch:
    case Point::kScattered:
    case Point::kAckTx:
    case Point::kAckRx:
    case Point::kCqeWritten:
    case Point::kWqeDone:
    case Point::kReadReqRx:
    case Point::kReadRespTx:
    case Point::kReadRespRx:
    case Point::kAtomicExec:
    case Point::kNakRx:
    case Point::kRnrRx:
    case Point::kRetransmit:
    case Point::kWqeErr:
    case Point::kFlush:
      return true;
    default:
      return false;
  }
}

unsigned function_key(const Record& r) { return unsigned{r.hca} << 16 | r.function; }

/// Whether a doorbell of this index (that of the last WQE posted) rings for the WQE with this counter. A
/// queue holds less than half of what 16 bits count.
bool covers(std::uint64_t doorbell, std::uint16_t counter) {
  return static_cast<std::uint16_t>(doorbell - counter) < 0x8000;
}

/// Some of the types in obj_create and obj_destroy (ObjType of the firmware).
enum class ObjectType : std::uint64_t { kCq = 7, kQp = 8, kSq = 18 };

bool is_batch_point(Point p) {
  return p == Point::kDoorbell || p == Point::kScheduled || p == Point::kWqeFetch;
}

}  // namespace

const char* const kStageNames[kStages] = {"doorbell", "sched",   "fetch", "parsed",  "transl", "gather",
                                          "tx_first", "tx_last", "rx",    "check",   "rwqe",   "scatter",
                                          "ack_tx",   "ack",     "cqe",   "consumed"};

std::int64_t WqeRow::start() const {
  std::int64_t first = kNoTime;
  for (std::int64_t t : time)
    if (t != kNoTime) keep_first(first, t);
  return first != kNoTime ? first : seen;
}

std::int64_t WqeRow::end() const {
  if (at(Stage::kCqe) != kNoTime) return at(Stage::kCqe);
  if (done != kNoTime) return done;
  if (failed != kNoTime) return failed;
  return at(Stage::kAck);
}

std::vector<std::pair<Stage, std::int64_t>> WqeRow::steps() const {
  std::vector<std::pair<Stage, std::int64_t>> v;
  for (unsigned i = 0; i < kStages; i++)
    if (time[i] != kNoTime) v.emplace_back(static_cast<Stage>(i), time[i]);
  std::stable_sort(v.begin(), v.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return v;
}

std::string WqeRow::opcode_name() const {
  if (opcode >= 0)
    return or_hex(prm::wqe_op_name(static_cast<prm::WqeOp>(opcode)), static_cast<unsigned>(opcode));
  if (bth_opcode >= 0) {
    const char* n = prm::bth_op_name(static_cast<prm::BthOp>(bth_opcode & prm::bth::kOpMask));
    return "pkt:" + or_hex(n, static_cast<unsigned>(bth_opcode));
  }
  return "?";
}

std::string WqeRow::status_name() const {
  if (status < 0) return "open";
  return or_hex(prm::cqe_syndrome_name(static_cast<prm::CqeSyndrome>(status)), static_cast<unsigned>(status));
}

std::string CommandRow::name() const { return prm::opcode_name(opcode); }

std::string CommandRow::place() const {
  return std::to_string(hca) + (function != 0 ? "." + std::to_string(function) : "");
}

std::string CommandRow::status_name() const {
  if (end == kNoTime) return "open";
  if (delivery != 0)
    return "delivery:" + or_hex(prm::cmd_delivery_name(static_cast<prm::CmdDelivery>(delivery)), delivery);
  return or_hex(prm::cmd_status_name(static_cast<prm::CmdStatus>(status)), status);
}

void Analysis::add(const Record& r, const std::vector<std::uint8_t>& blob) {
  records_++;
  // Differences of times stay in range; no simulation lasts 26 days.
  if (r.point >= kPoints || r.time_ps > kMaxTime || r.time_ps < -kMaxTime) {
    unknown_++;
    return;
  }
  const Point p = r.p();
  counts_[r.point]++;
  if (is_error(p) || p == Point::kFaultInjected) {
    if (filter_.hca < 0 || filter_.hca == r.hca) errors_.push_back(r);
  }
  if (p == Point::kMkeyChanged) keys_.push_back(r);
  if (p == Point::kHealth) health_.push_back(r);
  if (is_wqe_point(p) || is_batch_point(p)) {
    wqe_record(r);
  } else if (p == Point::kCqConsumed) {
    consumed(r);
  } else if (p == Point::kObjCreate || p == Point::kObjDestroy) {
    object_record(r);
  } else if (p == Point::kCmdStart || p == Point::kCmdDone || p == Point::kCmdBad) {
    if (filter_.hca < 0 || filter_.hca == r.hca) command_record(r, blob);
  }
}

bool Analysis::starts_anew(const Queue& q, const Record& r) const {
  if (q.over != kNoTime) return true;
  // Serials only go up. Those of another function, if it has a queue of the same number, say nothing.
  if (q.function == r.function) return r.index < q.next;
  if (r.index != 0) return false;
  const auto first = q.rows.find(0);
  if (first == q.rows.end()) return false;
  const WqeRow& w = wqes_[first->second];
  return w.opcode >= 0 && (w.end() != kNoTime || w.status >= 0);
}

// A driver that is loaded anew makes queues of the same numbers, whose counters begin again.
void Analysis::object_record(const Record& r) {
  const auto type = static_cast<ObjectType>(r.a0);
  if (type == ObjectType::kQp || type == ObjectType::kSq) queue_over(r, QpTag::qpn(r.obj));
  if (type == ObjectType::kCq) pending_cqes_.erase({function_key(r), r.obj & 0xffffff});
}

void Analysis::queue_over(const Record& r, std::uint32_t number) {
  const auto it = queues_.find({r.hca, number});
  if (it == queues_.end() || it->second.function != r.function) return;
  Queue& q = it->second;
  if (q.rows.empty()) {  // rung for in vain: no life that would count
    const unsigned life = q.life;
    q = Queue();
    q.life = life;
  } else if (q.over == kNoTime) {
    q.over = r.time_ps;
  }
}

void Analysis::wqe_record(const Record& r) {
  const Point p = r.p();
  const std::uint32_t qpn = QpTag::qpn(r.obj);
  const unsigned hca = QpTag::hca(r.obj, r.hca);
  if (r.obj == 0) {
    if (p == Point::kPacketRx) foreign_packets_++;
    return;
  }
  if ((filter_.qpn >= 0 && filter_.qpn != qpn) ||
      (filter_.hca >= 0 && static_cast<unsigned>(filter_.hca) != hca))
    return;
  if (p == Point::kFlush && r.a1 != 0) return;  // of a receive queue: no send WQE

  Queue& q = queues_[{hca, qpn}];
  if (is_batch_point(p) || p == Point::kWqeParsed) {
    if (starts_anew(q, r)) close_queue(q, r.time_ps);
    q.function = r.function;
  }
  if (is_batch_point(p)) {
    batch_record(q, r);
    return;
  }
  const std::size_t row = row_of(q, hca, qpn, r.index);
  const bool is_new = wqes_[row].opcode < 0;
  stage(r, row);
  if (p == Point::kWqeParsed && is_new) decoded(q, row);
}

void Analysis::batch_record(Queue& q, const Record& r) {
  if (r.p() == Point::kDoorbell) return doorbell(q, r);
  (r.p() == Point::kScheduled ? q.scheduled : q.fetch) = {r.time_ps, records_ - 1, r.a0, r.a1};
}

void Analysis::doorbell(Queue& q, const Record& r) {
  Doorbell d;
  d.batch = {r.time_ps, records_ - 1, r.a0, r.a1};
  // Which WQEs were rung for before the trace began is not known, unless there were none.
  d.after_known = q.rung || r.index == 0;
  d.after = q.rung.value_or(0xffff);
  if (!q.rung || !covers(*q.rung, static_cast<std::uint16_t>(r.a0)))
    q.rung = static_cast<std::uint16_t>(r.a0);
  for (; !q.early.empty() && covers(r.a0, wqes_[q.early.front()].wqe_counter); q.early.pop_front()) {
    WqeRow& w = wqes_[q.early.front()];
    if (rings_for(q, d, w.wqe_counter)) w.batch[static_cast<unsigned>(Stage::kDoorbell)] = d.batch.record;
  }
  q.doorbells.push_back(d);
}

// One behind a gap rings for its last WQE at least.
bool Analysis::rings_for(const Queue& q, const Doorbell& d, std::uint16_t counter) {
  if (!covers(d.batch.a0, counter)) return false;
  const bool known = d.after_known && d.batch.record >= q.gap;
  return known ? !covers(d.after, counter) : counter == static_cast<std::uint16_t>(d.batch.a0);
}

// WQEs are decoded in the order of their counters, and in the file behind the doorbells, turns and fetches
// that brought them: the turn and the fetch are the latest, the doorbell is the first that is not of an
// earlier one.
void Analysis::decoded(Queue& q, std::size_t row) {
  WqeRow& w = wqes_[row];
  if (w.serial != q.next) q.gap = records_ - 1;
  q.next = w.serial + 1;
  w.function = static_cast<std::uint16_t>(q.function);
  const std::int64_t parsed = w.at(Stage::kParsed);
  std::int64_t floor = kNoTime;  // the least
  const auto apply = [&](Stage s, const Batch& b) {
    if (b.time == kNoTime || b.time > parsed || b.time < floor) return;
    w.time[static_cast<unsigned>(s)] = floor = b.time;
    w.batch[static_cast<unsigned>(s)] = b.record;
  };
  while (!q.doorbells.empty() && !covers(q.doorbells.front().batch.a0, w.wqe_counter))
    q.doorbells.pop_front();
  if (q.doorbells.empty()) {
    q.early.push_back(row);
  } else if (const Doorbell& d = q.doorbells.front(); rings_for(q, d, w.wqe_counter)) {
    w.batch[static_cast<unsigned>(Stage::kDoorbell)] = d.batch.record;
    apply(Stage::kDoorbell, d.batch);
  }
  apply(Stage::kScheduled, q.scheduled);
  // What came with its doorbell (BlueFlame) was not fetched.
  if (static_cast<std::uint16_t>(w.wqe_counter - q.fetch.a1) * prm::kWqebb < q.fetch.a0)
    apply(Stage::kFetch, q.fetch);
}

std::size_t Analysis::row_of(Queue& q, unsigned hca, std::uint32_t qpn, std::uint32_t serial) {
  auto [it, is_new] = q.rows.try_emplace(serial, wqes_.size());
  if (is_new) {
    WqeRow& w = wqes_.emplace_back();
    w.hca = static_cast<std::uint16_t>(hca);
    w.qpn = qpn;
    w.serial = serial;
    w.life = q.life;
    w.from = q.from;
  }
  return it->second;
}

void Analysis::stage(const Record& r, std::size_t row) {
  WqeRow& w = wqes_[row];
  auto at = [&](Stage s) -> std::int64_t& { return w.time[static_cast<unsigned>(s)]; };
  // Repeats after the WQE is complete (a late duplicate) are not part of its life.
  const bool complete = w.end() != kNoTime && (w.has_cqe || w.done != kNoTime);
  auto keep_last = [&](std::int64_t& t, std::int64_t v) {
    if (t == kNoTime || (v > t && !complete)) t = v;
  };
  keep_first(w.seen, r.time_ps);
  const prm::BthTraits bth = prm::bth_traits(static_cast<std::uint8_t>(r.a0 >> 24));
  switch (r.p()) {
    case Point::kWqeParsed:
      keep_first(at(Stage::kParsed), r.time_ps);
      w.opcode = static_cast<int>(r.a0 & 0xff);
      w.wqe_counter = static_cast<std::uint16_t>(r.a0 >> 16);
      w.bytes = r.a1;
      break;
    case Point::kTranslated:
      keep_last(at(Stage::kTranslated), r.time_ps);
      break;
    case Point::kGathered:
      keep_last(at(Stage::kGathered), r.time_ps);
      break;
    case Point::kPacketTxFirst:
      if (!bth.valid || bth.request) keep_first(at(Stage::kTxFirst), r.time_ps);
      break;
    case Point::kPacketTxLast:
      if (!bth.valid || bth.request) keep_last(at(Stage::kTxLast), r.time_ps);
      break;
    case Point::kPacketRx:
      if (bth.valid && !bth.request) break;
      keep_last(at(Stage::kRx), r.time_ps);
      w.responder_hca = r.hca;
      w.packets++;
      if (w.bth_opcode < 0) w.bth_opcode = static_cast<int>(r.a0 >> 24 & 0xff);
      break;
    case Point::kReadReqRx:
      keep_last(at(Stage::kRx), r.time_ps);
      w.responder_hca = r.hca;
      break;
    case Point::kChecked:
      keep_last(at(Stage::kChecked), r.time_ps);
      w.responder_hca = r.hca;
      w.responder_qpn = static_cast<std::uint32_t>(r.a1 & 0xffffff);
      break;
    case Point::kRwqeFetch:
      keep_first(at(Stage::kRwqe), r.time_ps);
      break;
    case Point::kScattered:
    case Point::kAtomicExec:
      keep_last(at(Stage::kScattered), r.time_ps);
      break;
    case Point::kAckTx:
    case Point::kReadRespTx:
      keep_last(at(Stage::kAckTx), r.time_ps);
      break;
    case Point::kAckRx:
    case Point::kReadRespRx:
      keep_last(at(Stage::kAck), r.time_ps);
      break;
    case Point::kWqeDone:
      keep_last(w.done, r.time_ps);
      w.status = static_cast<int>(r.a0 & 0xff);
      break;
    case Point::kCqeWritten: {
      const auto op = static_cast<prm::CqeOp>(r.a0 >> 24 & 0xff);
      if (op != prm::CqeOp::kReq && op != prm::CqeOp::kReqErr) {
        keep_last(w.responder_cqe, r.time_ps);
        break;
      }
      keep_last(at(Stage::kCqe), r.time_ps);
      w.status = static_cast<int>(r.a0 >> 32 & 0xff);
      w.has_cqe = true;
      pending_cqes_[{function_key(r), static_cast<std::uint32_t>(r.a0 & 0xffffff)}].push_back(
          {static_cast<std::uint32_t>(r.a1), row});
      break;
    }
    case Point::kRetransmit:
      w.retransmits++;
      break;
    case Point::kNakRx:
    case Point::kRnrRx:
      w.naks++;
      break;
    case Point::kWqeErr:
      keep_first(w.failed, r.time_ps);
      if (w.status < 0) w.status = static_cast<int>(r.a0 & 0xff);
      break;
    case Point::kFlush:
      w.flushed = true;
      keep_first(w.failed, r.time_ps);
      if (w.status < 0) w.status = static_cast<int>(prm::CqeSyndrome::kWrFlush);
      break;
    default:
      break;
  }
}

void Analysis::consumed(const Record& r) {
  auto it = pending_cqes_.find({function_key(r), r.obj & 0xffffff});
  if (it == pending_cqes_.end()) return;
  auto& pending = it->second;
  // 24-bit counters: an index less than half the range below the consumer is consumed.
  auto passed = [&](const PendingCqe& c) {
    const std::uint32_t d = (r.index - c.producer) & 0xffffff;
    if (d == 0 || d >= 0x800000) return false;
    WqeRow& w = wqes_[c.row];
    if (r.time_ps < w.at(Stage::kCqe)) return false;
    w.time[static_cast<unsigned>(Stage::kConsumed)] = r.time_ps;
    return true;
  };
  pending.erase(std::remove_if(pending.begin(), pending.end(), passed), pending.end());
}

void Analysis::command_record(const Record& r, const std::vector<std::uint8_t>& blob) {
  auto [it, is_new] = open_commands_.try_emplace({function_key(r), r.index}, commands_.size());
  if (!is_new && r.p() == Point::kCmdStart && commands_[it->second].start != kNoTime) {
    it->second = commands_.size();  // numbers restart after a reset
    is_new = true;
  }
  if (is_new) {
    commands_.emplace_back();
    commands_.back().hca = r.hca;
    commands_.back().function = r.function;
    commands_.back().slot = r.obj;
    commands_.back().seq = r.index;
  }
  CommandRow& c = commands_[it->second];
  switch (r.p()) {
    case Point::kCmdStart:
      c.start = r.time_ps;
      c.opcode = static_cast<std::uint16_t>(r.a0);
      c.op_mod = static_cast<std::uint16_t>(r.a0 >> 16);
      c.uid = static_cast<std::uint16_t>(r.a0 >> 32);
      c.input = blob;
      break;
    case Point::kCmdDone:
      c.end = r.time_ps;
      c.opcode = static_cast<std::uint16_t>(r.a0);
      c.status = static_cast<std::uint8_t>(r.a0 >> 16);
      c.delivery = static_cast<std::uint8_t>(r.a0 >> 24);
      c.syndrome = static_cast<std::uint32_t>(r.a1);
      c.output = blob;
      if (c.opcode == prm::op::_2RST_QP && !c.failed() && holds<prm::qp_2rst_in::qpn>(c.input))
        queue_over(r, static_cast<std::uint32_t>(prm::get<prm::qp_2rst_in::qpn>(c.input.data())));
      break;
    default:  // kCmdBad
      c.end = r.time_ps;
      c.delivery = static_cast<std::uint8_t>(r.a0);
      break;
  }
}

void Analysis::close_queue(Queue& q, std::int64_t now) {
  for (const auto& entry : q.rows) {
    WqeRow& w = wqes_[entry.second];
    w.until = records_ - 1;
    if (w.opcode < 0) continue;
    if (w.end() == kNoTime) w.dropped = q.over != kNoTime ? q.over : now;
    // One ACK may complete several WQEs; it is recorded for the oldest.
    std::int64_t& ack = w.time[static_cast<unsigned>(Stage::kAck)];
    if (ack == kNoTime && w.done != kNoTime && w.at(Stage::kAckTx) == kNoTime &&
        w.at(Stage::kScattered) != kNoTime && w.done > w.at(Stage::kScattered))
      ack = w.done;
  }
  const unsigned life = q.life + 1;
  q = Queue();
  q.life = life;
  q.from = records_ - 1;  // the record that begins the next life has been counted
}

void Analysis::finish() {
  records_++;  // close_queue() is for a record that begins a new life
  for (auto& q : queues_) close_queue(q.second, kNoTime);
  auto by_time = [](const auto& a, const auto& b) { return a.start() < b.start(); };
  records_--;
  pending_cqes_.clear();  // they refer to rows by index
  std::stable_sort(wqes_.begin(), wqes_.end(), by_time);
}

}  // namespace hcasim::traces
