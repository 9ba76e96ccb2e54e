// SPDX-License-Identifier: BSD-3-Clause
#include "traces/story.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "prm/cqe.h"
#include "prm/prm.h"

namespace hcasim::traces {
namespace {

/// Points whose obj is a sender's QPN and whose index is a WQE's serial (from the list of points).
bool names_a_wqe(const PointInfo& p) {
  return std::strcmp(p.obj, "qpn") == 0 && std::strcmp(p.index, "serial") == 0;
}

bool is_batch(Point p) { return p == Point::kDoorbell || p == Point::kScheduled || p == Point::kWqeFetch; }

unsigned hca_of(const Record& r) { return QpTag::hca(r.obj, r.hca); }

/// All QP transition commands have QPN and context at the same offsets as these two.
using Modify = prm::rst2init_qp_in;
using Create = prm::create_qp_in;

bool moves_qp(std::uint16_t opcode) {
  switch (opcode) {
    case prm::op::RST2INIT_QP:
    case prm::op::INIT2INIT_QP:
    case prm::op::INIT2RTR_QP:
    case prm::op::RTR2RTS_QP:
    case prm::op::RTS2RTS_QP:
    case prm::op::SQERR2RTS_QP:
    case prm::op::_2ERR_QP:
    case prm::op::_2RST_QP:
      return true;
    default:
      return false;
  }
}

/// The QPN that a command is about; -1: none, or it failed.
std::int64_t qpn_of(const CommandRow& c) {
  if (c.end == kNoTime || c.failed()) return -1;
  if (c.opcode == prm::op::CREATE_QP && holds<prm::create_qp_out::qpn>(c.output))
    return static_cast<std::int64_t>(prm::get<prm::create_qp_out::qpn>(c.output.data()));
  if (moves_qp(c.opcode) && holds<Modify::qpn>(c.input))
    return static_cast<std::int64_t>(prm::get<Modify::qpn>(c.input.data()));
  return -1;
}

void read_context(const Analysis& a, Story* s) {
  const WqeRow& w = *s->wqe;
  for (const CommandRow& c : a.commands()) {
    if (c.hca != w.hca || (w.posted() && c.function != w.function)) continue;
    if (c.start > w.start() || qpn_of(c) != w.qpn) continue;
    if (c.opcode == prm::op::CREATE_QP) s->context.clear();
    s->context.push_back(&c);
  }
  for (const CommandRow* c : s->context) {
    if (c->opcode == prm::op::CREATE_QP && holds<Create::qpc::cqn_snd>(c->input))
      s->send_cqn = static_cast<std::int64_t>(prm::get<Create::qpc::cqn_snd>(c->input.data()));
    if (c->opcode == prm::op::INIT2RTR_QP && holds<prm::init2rtr_qp_in::qpc::remote_qpn>(c->input))
      s->remote_qpn =
          static_cast<std::int64_t>(prm::get<prm::init2rtr_qp_in::qpc::remote_qpn>(c->input.data()));
  }
}

/// Selects the other records that concern this WQE. `end`: its last time.
bool bears_on(const Record& r, const Story& s, std::int64_t begin, std::int64_t end) {
  const WqeRow& w = *s.wqe;
  // Functions may have objects of the same numbers.
  const bool own = r.hca == w.hca && (!w.posted() || r.function == w.function);
  const bool here = r.hca == w.hca, there = static_cast<int>(r.hca) == s.responder_hca;
  // A completion that finds its CQ full is recorded after the WQE's last record.
  if (r.time_ps > end && r.p() != Point::kCqOverrun) return false;
  const std::uint32_t number = r.obj & 0xffffff;
  const auto of_ends = [&] {
    return (own && number == w.qpn) || (there && number == s.responder_qpn) ||
           (s.remote_qpn >= 0 && number == static_cast<std::uint32_t>(s.remote_qpn));
  };
  switch (r.p()) {
    case Point::kObjDestroy:
    case Point::kQpError:
    case Point::kPortState:
      // These persist: events before the WQE was posted still apply.
      if (r.p() == Point::kPortState) return here || there;
      return (r.p() == Point::kQpError || r.a0 == 8) && of_ends();
    case Point::kCtxMiss:
      return r.time_ps >= begin && of_ends() && r.a0 == kCacheQpc;
    case Point::kRwqeErr:
      return r.time_ps >= begin && there && number == s.responder_qpn;
    case Point::kCqOverrun:
      return own && s.send_cqn >= 0 && number == static_cast<std::uint32_t>(s.send_cqn);
    case Point::kDmaErr:
    case Point::kFaultInjected:
    case Point::kHealth:
    case Point::kModelFault:
      return r.time_ps >= begin && (here || there || r.p() == Point::kFaultInjected);
    case Point::kDmaRead:
    case Point::kDmaWrite: {
      const std::uint32_t owner = r.index & 0xffffff;
      switch (r.index >> 28) {
        case 1:  // QP
          return r.time_ps >= begin && ((own && owner == w.qpn) || (there && owner == s.responder_qpn));
        case 3:  // CQ
          return r.time_ps >= begin && own && s.send_cqn >= 0 &&
                 owner == static_cast<std::uint32_t>(s.send_cqn);
        default:
          return false;
      }
    }
    case Point::kCnpRx:
      return r.time_ps >= begin && hca_of(r) == w.hca && QpTag::qpn(r.obj) == w.qpn;
    default:
      return false;
  }
}

}  // namespace

bool parse_wqe_id(const std::string& text, WqeId* id, std::string* err) {
  unsigned long part[4] = {0, 0, 0, 0};
  const unsigned long limit[4] = {kMostHcas - 1, QpTag::kQpnMask, UINT32_MAX, UINT32_MAX};
  const char* p = text.c_str();
  for (unsigned i = 0; i < 4; i++) {
    char* end = nullptr;
    errno = 0;
    if (*p < '0' || *p > '9') break;
    part[i] = std::strtoul(p, &end, 0);
    if (errno != 0 || part[i] > limit[i]) break;
    if (*end == '\0' && i >= 2) {
      *id = {static_cast<unsigned>(part[0]), static_cast<std::uint32_t>(part[1]),
             static_cast<std::uint32_t>(part[2]), static_cast<unsigned>(part[3])};
      return true;
    }
    if (*end != (i == 2 ? '.' : ':')) break;
    p = end + 1;
  }
  *err = "'" + text +
         "' names no WQE: HCA:QPN:SERIAL, such as 0:0x4a:12, as `list` prints them in its first column";
  return false;
}

std::string wqe_id(const WqeRow& w) {
  char s[48];
  if (w.life == 0)
    std::snprintf(s, sizeof s, "%u:%#x:%u", w.hca, w.qpn, w.serial);
  else
    std::snprintf(s, sizeof s, "%u:%#x:%u.%u", w.hca, w.qpn, w.serial, w.life);
  return s;
}

std::string wqe_of(const Record& r) {
  if (!names_a_wqe(info(r.p())) || QpTag::qpn(r.obj) == 0) return "";
  char s[48];
  std::snprintf(s, sizeof s, "%u:%#x:%u", hca_of(r), QpTag::qpn(r.obj), r.index);
  return s;
}

const WqeRow* find_wqe(const Analysis& a, const WqeId& id) {
  for (const WqeRow& w : a.wqes())
    if (w.hca == id.hca && w.qpn == id.qpn && w.serial == id.serial && w.life == id.life) return &w;
  return nullptr;
}

std::vector<Record> Story::all(Point p) const {
  std::vector<Record> v;
  std::copy_if(own.begin(), own.end(), std::back_inserter(v), [p](const Record& r) { return r.p() == p; });
  return v;
}

bool Story::has(Point p) const {
  return std::any_of(own.begin(), own.end(), [p](const Record& r) { return r.p() == p; });
}

const CommandRow* Story::mkey_before(const Analysis& a, const Record& of, std::uint32_t key,
                                     std::int64_t t) const {
  const CommandRow* found = nullptr;
  for (const CommandRow& c : a.commands()) {
    if (c.hca != of.hca || c.function != of.function || c.opcode != prm::op::CREATE_MKEY ||
        c.end == kNoTime || c.failed() || c.start > t)
      continue;
    if (holds<prm::create_mkey_out::mkey_index>(c.output) &&
        prm::get<prm::create_mkey_out::mkey_index>(c.output.data()) == key >> 8)
      found = &c;
  }
  return found;
}

namespace {

/// Points of which bears_on() takes any.
bool may_bear(Point p) {
  switch (p) {
    case Point::kObjDestroy:
    case Point::kQpError:
    case Point::kPortState:
    case Point::kCtxMiss:
    case Point::kRwqeErr:
    case Point::kCqOverrun:
    case Point::kDmaErr:
    case Point::kFaultInjected:
    case Point::kHealth:
    case Point::kModelFault:
    case Point::kDmaRead:
    case Point::kDmaWrite:
    case Point::kCnpRx:
      return true;
    default:
      return false;
  }
}

/// Record `n` of the file, of the WQE's queue.
void take(Story* s, const Record& r, std::uint64_t n) {
  const WqeRow& w = *s->wqe;
  if (n < w.from || n >= w.until) return;
  if (is_batch(r.p())) {
    if (std::find(w.batch.begin(), w.batch.end(), n) != w.batch.end()) s->own.push_back(r);
    return;
  }
  if (r.index != w.serial) return;
  s->own.push_back(r);
  if (r.p() == Point::kChecked || r.p() == Point::kPacketRx || r.p() == Point::kScattered ||
      r.p() == Point::kNakTx || r.p() == Point::kRnrTx || r.p() == Point::kReadReqRx)
    s->responder_hca = r.hca;
  if (r.p() == Point::kChecked || r.p() == Point::kScattered)
    s->responder_qpn = static_cast<std::uint32_t>(r.a1 & 0xffffff);
}

/// `rest`: what happened beside the WQEs.
void complete(Story* s, const std::vector<Record>& rest) {
  const WqeRow& w = *s->wqe;
  if (s->responder_qpn == 0 && s->remote_qpn > 0)
    s->responder_qpn = static_cast<std::uint32_t>(s->remote_qpn);
  if (s->send_cqn < 0) {  // made before the trace began
    for (const Record& x : s->own) {
      const auto op = static_cast<prm::CqeOp>(x.a0 >> 24 & 0xff);
      if (x.p() == Point::kCqeWritten && x.hca == w.hca &&
          (op == prm::CqeOp::kReq || op == prm::CqeOp::kReqErr))
        s->send_cqn = static_cast<std::int64_t>(x.a0 & 0xffffff);
    }
  }
  const auto by_time = [](const Record& x, const Record& y) { return x.time_ps < y.time_ps; };
  std::stable_sort(s->own.begin(), s->own.end(), by_time);
  const std::int64_t begin = w.start();
  std::int64_t end = s->own.empty() ? begin : s->own.back().time_ps;
  if (w.end() == kNoTime) end = INT64_MAX;
  for (const Record& x : rest)
    if (bears_on(x, *s, begin, end)) s->around.push_back(x);
  std::stable_sort(s->around.begin(), s->around.end(), by_time);
}

}  // namespace

bool tell(const std::string& path, const Analysis& a, const std::vector<const WqeRow*>& wqes,
          const std::function<void(const Story&)>& each, std::string* err) {
  std::vector<Story> stories(wqes.size());
  std::map<std::pair<unsigned, std::uint32_t>, std::vector<Story*>> queues;  // by HCA, QPN
  for (std::size_t i = 0; i < wqes.size(); i++) {
    stories[i].wqe = wqes[i];
    read_context(a, &stories[i]);
    queues[{wqes[i]->hca, wqes[i]->qpn}].push_back(&stories[i]);
  }
  Reader reader;
  if (!reader.open(path, err)) return false;
  std::vector<Record> rest;
  Record r;
  std::vector<std::uint8_t> blob;
  for (std::uint64_t n = 0; reader.next(r, blob); n++) {
    if (r.point >= kPoints) continue;
    if (!names_a_wqe(info(r.p()))) {
      if (may_bear(r.p())) rest.push_back(r);
      continue;
    }
    // A record of the QP without a WQE's serial (a dropped ghost packet) concerns its queue.
    const auto q = queues.find({hca_of(r), QpTag::qpn(r.obj)});
    if (q == queues.end()) continue;
    for (Story* s : q->second) take(s, r, n);
  }
  for (Story& s : stories) {
    complete(&s, rest);
    each(s);
    s = Story();  // what is around it may be most of the trace
  }
  return true;
}

bool tell(const std::string& path, const Analysis& a, const WqeRow& w, Story* story, std::string* err) {
  return tell(
      path, a, {&w}, [story](const Story& s) { *story = s; }, err);
}

}  // namespace hcasim::traces
