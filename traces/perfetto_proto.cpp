// SPDX-License-Identifier: BSD-3-Clause
/// Perfetto's protobuf format. One track per HCA holds its others: send queues (WQEs with nested stages),
/// what each QP receives, engines, DMA, link, command slots, EQs and interrupts, errors, WQEs in progress;
/// then the guest's tasks. Overlapping work of one track is laid out on several tracks of the same name,
/// which viewers show as one. Times are whole nanoseconds, truncated; annotations have the picoseconds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "traces/perfetto.pb.h"
#include "traces/report.h"
#include "traces/story.h"
#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;  // of Event.type
constexpr std::uint32_t kStateCleared = 1;                                           // of sequence_flags
constexpr std::uint32_t kByRank = 3, kUnitCount = 2;
/// A track's position within its HCA's track. Viewers respect it for tracks nested in a track, not for those
/// of a group.
enum Rank : std::int32_t { kQps, kReceives, kEngines, kDma, kLink, kCommands, kEvents, kErrors, kDepths };

std::uint64_t ns(std::int64_t ps) { return ps < 0 ? 0 : static_cast<std::uint64_t>(ps / 1000); }

class Writer {
 public:
  explicit Writer(std::FILE* out) : out_(out) {}

  /// A track that contains others.
  std::uint64_t group(const std::string& name) {
    auto [it, is_new] = groups_.try_emplace(name, next_);
    if (!is_new) return it->second;
    perfetto::Packet p;
    perfetto::Track* t = p.mutable_track();
    t->set_uuid(next_++);
    t->set_name(name);
    t->set_child_ordering(kByRank);
    put(p);
    return it->second;
  }
  std::uint64_t hca(unsigned number) { return group(fmt::format("HCA {}", number)); }

  /// A track of that name with [from, to] free.
  std::uint64_t track(std::uint64_t group, const std::string& name, Rank rank, std::int64_t from,
                      std::int64_t to) {
    auto& lanes = tracks_[{group, name}];
    for (Lane& lane : lanes) {
      if (lane.until > from) continue;
      lane.until = to;
      return lane.uuid;
    }
    lanes.push_back({describe(group, name, rank, false), to});
    return lanes.back().uuid;
  }
  /// A track for instants, or for work that cannot overlap.
  std::uint64_t track(std::uint64_t group, const std::string& name, Rank rank) {
    return track(group, name, rank, INT64_MAX, 0);
  }
  std::uint64_t counter_track(std::uint64_t group, const std::string& name) {
    return describe(group, name, kDepths, true);
  }

  /// An event to be filled in; put() writes it.
  static perfetto::Event* event(perfetto::Packet& p, std::uint32_t type, std::uint64_t track,
                                std::uint64_t ns) {
    p.set_timestamp(ns);
    perfetto::Event* e = p.mutable_event();
    e->set_type(type);
    e->set_track(track);
    return e;
  }
  void begin(std::uint64_t track, std::uint64_t ns, const std::string& name, const char* category) {
    perfetto::Packet p;
    perfetto::Event* e = event(p, kSliceBegin, track, ns);
    e->set_name(name);
    e->add_category(category);
    put(p);
  }
  void end(std::uint64_t track, std::uint64_t ns) {
    perfetto::Packet p;
    event(p, kSliceEnd, track, ns);
    put(p);
  }

  void put(perfetto::Packet& p) {
    p.set_sequence(kSequence);
    if (first_) p.set_sequence_flags(kStateCleared);
    first_ = false;
    // A `Trace` message is the concatenation of these packets, so none has to be kept.
    perfetto::Trace piece;
    piece.add_packet()->Swap(&p);
    const std::string bytes = piece.SerializeAsString();
    ok_ = std::fwrite(bytes.data(), 1, bytes.size(), out_) == bytes.size() && ok_;
  }
  bool finish() { return ok_ && std::fflush(out_) == 0; }

 private:
  struct Lane {
    std::uint64_t uuid;
    std::int64_t until;
  };
  std::uint64_t describe(std::uint64_t group, const std::string& name, Rank rank, bool counter) {
    perfetto::Packet p;
    perfetto::Track* t = p.mutable_track();
    t->set_uuid(next_);
    t->set_parent_uuid(group);
    t->set_name(name);
    t->set_rank(rank);
    if (counter) t->mutable_counter()->set_unit(kUnitCount);
    put(p);
    return next_++;
  }

  std::FILE* out_;
  bool ok_ = true, first_ = true;
  std::uint64_t next_ = 1;
  std::map<std::string, std::uint64_t> groups_;
  std::map<std::pair<std::uint64_t, std::string>, std::vector<Lane>> tracks_;
};

void annotate(perfetto::Event* e, const char* name, const std::string& value) {
  perfetto::Annotation* a = e->add_annotation();
  a->set_name(name);
  a->set_text(value);
}
void annotate(perfetto::Event* e, const char* name, std::int64_t value) {
  perfetto::Annotation* a = e->add_annotation();
  a->set_name(name);
  a->set_int_(value);
}

struct Step {
  const char* name;
  std::int64_t time;  // ps
};

/// Consecutive slices, from each step to the next. `arrives`: a flow that ends on the slice that begins then.
void steps(Writer& w, std::uint64_t track, const std::vector<Step>& all,
           std::optional<std::pair<std::int64_t, std::uint64_t>> arrives = std::nullopt) {
  for (std::size_t i = 1; i < all.size(); i++) {
    perfetto::Packet p;
    perfetto::Event* e = Writer::event(p, kSliceBegin, track, ns(all[i - 1].time));
    e->set_name(fmt::format("{} -> {}", all[i - 1].name, all[i].name));
    e->add_category("stage");
    annotate(e, "ps", all[i].time - all[i - 1].time);
    if (arrives && (all[i - 1].time >= arrives->first || i + 1 == all.size())) {
      e->add_ending_flow(arrives->second);
      arrives.reset();
    }
    w.put(p);
    w.end(track, ns(all[i].time));
  }
}

/// The responder's part of a WQE's life, by time; empty: unknown.
std::vector<Step> responder_steps(const WqeRow& w) {
  std::vector<Step> v;
  if (w.responder_hca < 0) return v;
  for (const Stage s : {Stage::kRx, Stage::kChecked, Stage::kRwqe, Stage::kScattered, Stage::kAckTx}) {
    // The data of a READ are scattered at the requester.
    if (w.at(s) == kNoTime ||
        (s == Stage::kScattered && w.at(Stage::kAckTx) != kNoTime && w.at(s) > w.at(Stage::kAckTx) &&
         w.at(Stage::kAck) != kNoTime && w.at(s) >= w.at(Stage::kAck)))
      continue;
    v.push_back({kStageNames[static_cast<unsigned>(s)], w.at(s)});
  }
  if (w.responder_cqe != kNoTime) v.push_back({"cqe", w.responder_cqe});
  std::stable_sort(v.begin(), v.end(), [](const Step& a, const Step& b) { return a.time < b.time; });
  return v;
}

void wqe(Writer& w, const WqeRow& r, std::uint64_t number) {
  std::vector<Step> life;
  for (const auto& [stage, t] : r.steps()) life.push_back({kStageNames[static_cast<unsigned>(stage)], t});
  if (life.empty() && r.failed != kNoTime) life.push_back({"failed", r.failed});
  if (life.empty()) return;
  if (r.done != kNoTime && r.done > life.back().time) life.push_back({"done", r.done});
  const std::int64_t from = life.front().time, to = life.back().time;
  const std::vector<Step> there = responder_steps(r);
  const std::uint64_t request = number * 2 + 1, answer = number * 2 + 2;
  const std::string name = fmt::format("{} {}", r.opcode_name(), wqe_id(r));

  const std::uint64_t track = w.track(w.hca(r.hca), fmt::format("QP {:#x}", r.qpn), kQps, from, to);
  perfetto::Packet p;
  perfetto::Event* e = Writer::event(p, kSliceBegin, track, ns(from));
  e->set_name(name);
  e->add_category("wqe");
  annotate(e, "wqe", wqe_id(r));
  annotate(e, "bytes", static_cast<std::int64_t>(r.bytes));
  annotate(e, "status", r.status_name());
  annotate(e, "retransmits", r.retransmits);
  annotate(e, "life ps", to - from);
  if (!there.empty()) e->add_flow(request);
  w.put(p);
  const std::int64_t ack = r.at(Stage::kAck);
  if (!there.empty() && ack != kNoTime && ack >= there.front().time)
    steps(w, track, life, std::make_pair(ack, answer));
  else
    steps(w, track, life);
  w.end(track, ns(to));

  if (there.empty()) return;
  const std::string receiver =
      r.responder_qpn != 0 ? fmt::format("QP {:#x} receives", r.responder_qpn) : "receives";
  const std::uint64_t far = w.track(w.hca(static_cast<unsigned>(r.responder_hca)), receiver, kReceives,
                                    there.front().time, there.back().time);
  perfetto::Packet q;
  e = Writer::event(q, kSliceBegin, far, ns(there.front().time));
  e->set_name(name);
  e->add_category("responder");
  e->add_ending_flow(request);
  if (ack != kNoTime && ack >= there.front().time) e->add_flow(answer);
  w.put(q);
  steps(w, far, there);
  w.end(far, ns(there.back().time));
}

Rank rank_of(const std::string& what) {
  return what.compare(0, 4, "link") == 0 ? kLink : what.compare(0, 3, "DMA") == 0 ? kDma : kEngines;
}

void command(Writer& w, const CommandRow& c) {
  if (c.start == kNoTime) return;
  const std::int64_t to = c.end != kNoTime && c.end > c.start ? c.end : c.start;
  const std::string of = c.function != 0 ? fmt::format(" of function {}", c.function) : "";
  const std::uint64_t track =
      w.track(w.hca(c.hca), fmt::format("firmware{}, slot {}", of, c.slot), kCommands, c.start, to);
  perfetto::Packet p;
  perfetto::Event* e = Writer::event(p, kSliceBegin, track, ns(c.start));
  e->set_name(c.name());
  e->add_category("command");
  annotate(e, "seq", c.seq);
  annotate(e, "status", c.status_name());
  if (c.syndrome != 0) annotate(e, "syndrome", fmt::format("{:#x}", c.syndrome));
  w.put(p);
  w.end(track, ns(to));
}

void instant(Writer& w, const Record& r, const std::string& track, Rank rank, const char* category) {
  perfetto::Packet p;
  perfetto::Event* e = Writer::event(p, kInstant, w.track(w.hca(r.hca), track, rank), ns(r.time_ps));
  e->set_name(info(r.p()).name);
  e->add_category(category);
  annotate(e, "what", in_words(r));
  w.put(p);
}

void other(Writer& w, const Record& r) {
  switch (r.p()) {
    case Point::kEqeWritten:
      instant(w, r, fmt::format("EQ {}", r.obj), kEvents, "eq");
      break;
    case Point::kMsix:
      instant(w, r, fmt::format("MSI-X {}", r.obj), kEvents, "interrupt");
      break;
    case Point::kCqArmed:
      instant(w, r, fmt::format("CQ {:#x}", r.obj), kEvents, "cq");
      break;
    case Point::kPortState:
    case Point::kHealth:
      instant(w, r, "port and health", kEvents, "port");
      break;
    case Point::kCtxMiss:
      instant(w, r, "context misses", kEngines, "cache");
      break;
    default:
      break;
  }
}

/// The number of WQEs in progress of a send queue.
void depths(Writer& w, const Analysis& a) {
  std::map<std::pair<unsigned, std::uint32_t>, std::vector<std::pair<std::int64_t, int>>> changes;
  for (const WqeRow& r : a.wqes()) {
    if (!r.posted()) continue;
    auto& c = changes[{r.hca, r.qpn}];
    c.emplace_back(r.start(), 1);
    if (r.left() != kNoTime) c.emplace_back(r.left(), -1);
  }
  for (auto& [queue, list] : changes) {
    std::stable_sort(list.begin(), list.end());
    const std::uint64_t track =
        w.counter_track(w.hca(queue.first), fmt::format("QP {:#x} WQEs under way", queue.second));
    std::int64_t depth = 0;
    for (std::size_t i = 0; i < list.size(); i++) {
      depth += list[i].second;
      if (i + 1 < list.size() && list[i + 1].first == list[i].first) continue;
      perfetto::Packet p;
      Writer::event(p, kCounter, track, ns(list[i].first))->set_counter(depth);
      w.put(p);
    }
  }
}

void guest_events(Writer& w, const GuestTrace& guest, std::int64_t offset) {
  const std::uint64_t group = w.group("guest");
  for (const GuestEvent& g : guest.events) {
    const std::int64_t at = g.time_ns + offset;
    if (at < 0) continue;  // before the start of the machine's time
    const auto t = static_cast<std::uint64_t>(at);
    // A task's functions nest. Events without a task are shown by CPU.
    const std::string name =
        g.pid == 0 ? fmt::format("CPU {} idle", g.cpu) : fmt::format("{}-{}", g.task, g.pid);
    const std::uint64_t track = w.track(group, name, kQps);
    if (g.ends) {
      w.end(track, t);
      continue;
    }
    perfetto::Packet p;
    perfetto::Event* e = Writer::event(p, g.begins || g.took_ns >= 0 ? kSliceBegin : kInstant, track, t);
    e->set_name(g.name);
    e->add_category("guest");
    if (!g.details.empty()) annotate(e, "details", g.details);
    annotate(e, "cpu", g.cpu);
    w.put(p);
    if (g.took_ns >= 0) w.end(track, t + static_cast<std::uint64_t>(g.took_ns));
  }
}

}  // namespace

bool write_perfetto_proto(const Timeline& t, const GuestTrace* guest, std::int64_t guest_offset_ns,
                          std::FILE* out) {
  Writer w(out);
  std::uint64_t number = 0;
  for (const WqeRow& r : t.wqes.wqes()) wqe(w, r, number++);
  for (const Busy& b : busy_times(t)) {
    const std::uint64_t track = w.track(w.hca(b.hca), b.what, rank_of(b.what), b.from, b.to);
    w.begin(track, ns(b.from), b.name, "unit");
    w.end(track, ns(b.to));
  }
  for (const CommandRow& c : t.wqes.commands()) command(w, c);
  for (const Record& r : t.others) other(w, r);
  for (const Record& r : t.wqes.errors()) instant(w, r, "errors and retries", kErrors, "error");
  depths(w, t.wqes);
  if (guest != nullptr) guest_events(w, *guest, guest_offset_ns);
  return w.finish();
}

}  // namespace hcasim::traces
