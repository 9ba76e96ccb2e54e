// SPDX-License-Identifier: BSD-3-Clause
#include "traces/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "prm/packet.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

const char* unit_name(std::uint32_t unit) {
  switch (static_cast<Unit>(unit)) {
    case Unit::kTurns:
      return "engine tx";
    case Unit::kReceive:
      return "engine rx";
    case Unit::kTransmit:
      return "engine tx, packets";
    case Unit::kCqe:
      return "engine CQE";
    case Unit::kEqe:
      return "engine EQE";
    case Unit::kAtomics:
      return "engine atomics";
  }
  return "engine";
}

std::string packet_name(std::uint64_t a0) {
  const char* name = prm::bth_op_name(static_cast<prm::BthOp>(a0 >> 24 & prm::bth::kOpMask));
  return fmt::format("{} PSN {}", name != nullptr ? name : "packet", a0 & 0xffffff);
}

Busy from_detail(const Record& r) {
  const auto signed_time = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
  Busy b;
  b.hca = r.hca;
  b.from = r.time_ps;
  switch (r.p()) {
    case Point::kUnitBusy:
      b.what = unit_name(r.obj);
      b.name = r.a0 != 0 ? fmt::format("QP {:#x}", r.a0) : "busy";
      b.to = b.from + signed_time(r.a1);
      break;
    case Point::kDmaRead:
      b.what = "DMA read";
      b.name = fmt::format("{} B at {:#x}", r.obj, r.a0);
      b.to = b.from + signed_time(r.a1);
      break;
    case Point::kDmaWrite:
      b.what = "DMA write";
      b.name = fmt::format("{} B at {:#x}", r.obj, r.a0);
      b.to = b.from + signed_time(r.a1);
      break;
    case Point::kPacketOut:
      b.what = "link out";
      b.name = packet_name(r.a0);
      b.to = b.from + signed_time(r.a1 & 0xffffffff);
      break;
    default:  // kPacketIn: recorded at the packet's last bit
      b.what = "link in";
      b.name = packet_name(r.a0);
      b.to = b.from;
      b.from -= signed_time(r.a1 & 0xffffffff);
      break;
  }
  return b;
}

void from_stages(const WqeRow& w, std::vector<Busy>* out) {
  const std::string name = fmt::format("{} {}", w.opcode_name(), wqe_id(w));
  const auto put = [&](unsigned hca, const char* what, Stage from, Stage to) {
    if (w.at(from) == kNoTime || w.at(to) == kNoTime || w.at(to) < w.at(from)) return;
    out->push_back({hca, what, name, w.at(from), w.at(to)});
  };
  put(w.hca, "engine tx", Stage::kParsed,
      w.at(Stage::kTxFirst) != kNoTime ? Stage::kTxFirst : Stage::kTranslated);
  put(w.hca, "DMA read", Stage::kScheduled, Stage::kFetch);
  put(w.hca, "DMA read", Stage::kTranslated, Stage::kGathered);
  put(w.hca, "link out", Stage::kTxFirst, Stage::kTxLast);
  put(w.hca, "DMA write", Stage::kAck, Stage::kCqe);
  if (w.responder_hca < 0) return;
  const auto there = static_cast<unsigned>(w.responder_hca);
  put(there, "link in", Stage::kTxLast, Stage::kRx);
  put(there, "engine rx", Stage::kRx, Stage::kChecked);
  put(there, "DMA write", Stage::kChecked, Stage::kScattered);
}

}  // namespace

void Timeline::add(const Record& r, const std::vector<std::uint8_t>& blob) {
  wqes.add(r, blob);
  if (r.point >= kPoints || (filter_.hca >= 0 && filter_.hca != r.hca)) return;
  const Kind kind = info(r.p()).kind;
  detail = detail || kind == Kind::kDetail;
  switch (r.p()) {
    case Point::kEqeWritten:
    case Point::kMsix:
    case Point::kCqArmed:
    case Point::kCtxMiss:
    case Point::kDoorbell:
    case Point::kPortState:
    case Point::kHealth:
      others.push_back(r);
      break;
    default:
      if (kind == Kind::kDetail) others.push_back(r);
      break;
  }
}

std::vector<Busy> busy_times(const Timeline& t) {
  std::vector<Busy> v;
  if (t.detail) {
    for (const Record& r : t.others)
      if (info(r.p()).kind == Kind::kDetail) v.push_back(from_detail(r));
  } else {
    for (const WqeRow& w : t.wqes.wqes()) from_stages(w, &v);
  }
  std::stable_sort(v.begin(), v.end(), [](const Busy& a, const Busy& b) { return a.from < b.from; });
  return v;
}

}  // namespace hcasim::traces
