// SPDX-License-Identifier: BSD-3-Clause
/// The data of a page, as traces/page/*.js read them. Times are ps: of WQEs since the axis' first moment, of
/// all else in simulated time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "traces/fault_list.h"
#include "traces/page.h"
#include "traces/report.h"
#include "traces/rules.h"
#include "traces/story.h"
#include "traces/worst.h"

namespace hcasim::traces {
namespace {

using Json = nlohmann::ordered_json;

class Builder {
 public:
  Builder(const PageInput& in, const PageLimits& limits) : in_(in), a_(*in.analysis), limits_(limits) {}

  bool run(Json* out, std::string* err) {
    failed_ = failed_wqes(a_, limits_.told_failed);
    slow_ = slow_wqes(a_, limits_.told_slow, limits_.slow_of_each);
    std::vector<const WqeRow*> told = failed_;
    for (const SlowWqe& s : slow_) told.push_back(s.wqe);
    const Overview o = overview(a_, limits_.overview, told);
    Json& j = *out;
    j = Json::object();
    head(&j);
    counts(&j);
    if (!whys(told, &j, err)) return false;
    timeline(o, &j);
    steps(&j);
    errors(&j);
    rules(&j);
    commands(&j);
    faults(&j);
    if (!in_.coverage_path.empty()) coverage(&j);
    return true;
  }

 private:
  /// No longer than a sentence may be; cut between characters.
  std::string text(std::string s) const {
    if (s.size() <= limits_.text) return s;
    std::size_t n = limits_.text;
    while (n != 0 && (static_cast<unsigned char>(s[n]) & 0xc0) == 0x80) n--;
    return s.substr(0, n) + fmt::format("... ({} bytes more)", s.size() - n);
  }

  /// [time, HCA, trace point, WQE, words]
  Json record(const Record& r) const {
    return Json::array({r.time_ps, place_of(r), info(r.p()).name, wqe_of(r), text(in_words(r))});
  }
  Json records(const std::vector<Record>& v) const {
    Json j = Json::array();
    for (const Record& r : v) j.push_back(record(r));
    return j;
  }
  /// [[sentence, [records that prove it]], ...]
  Json reasons(const std::vector<Reason>& v) const {
    Json j = Json::array();
    for (const Reason& reason : v) j.push_back(Json::array({text(reason.text), records(reason.proof)}));
    return j;
  }
  static Json three(const std::vector<std::int64_t>& sorted) {
    return Json::array({percentile(sorted, 50), percentile(sorted, 99), percentile(sorted, 100)});
  }

  void head(Json* j) const {
    const Facts& f = *in_.facts;
    (*j)["file"] = text(in_.path);
    (*j)["warning"] = text(in_.warning);
    (*j)["records"] = a_.records();
    (*j)["unknown"] = a_.unknown();
    (*j)["foreign_packets"] = a_.foreign_packets();
    (*j)["first"] = f.empty() ? 0 : f.first();
    (*j)["last"] = f.empty() ? 0 : f.last();
    Json hcas = Json::array();
    for (const auto& [hca, x] : f.hcas()) {
      const auto wqes = std::count_if(a_.wqes().begin(), a_.wqes().end(),
                                      [n = hca](const WqeRow& w) { return w.hca == n; });
      hcas.push_back({{"hca", hca},
                      {"records", x.records},
                      {"errors", x.errors},
                      {"functions", x.functions.size()},
                      {"wqes", wqes}});
    }
    (*j)["hcas"] = std::move(hcas);
  }

  void counts(Json* j) {
    const Summary s = summarize(a_);
    Json ops = Json::array(), kinds = Json::array();
    std::uint64_t open = 0, failed = 0, packets = 0;
    for (const OpSummary& p : s.ops) {
      ops.push_back({{"opcode", p.opcode},
                     {"status", p.status},
                     {"count", p.count},
                     {"bytes", p.bytes},
                     {"times", three(p.latency)}});
    }
    for (const WqeRow& w : a_.wqes()) {
      if (w.status < 0) (w.opcode < 0 ? packets : open)++;
      if (w.status > 0) failed++;
    }
    (*j)["wqes"] = {{"count", a_.wqes().size()},
                    {"failed", failed},
                    {"open", open},
                    {"packets", packets},
                    {"bytes", s.bytes}};
    std::stable_sort(ops.begin(), ops.end(), [](const Json& x, const Json& y) {
      return x["count"].get<std::uint64_t>() > y["count"].get<std::uint64_t>();
    });
    cut(&ops, limits_.kinds);
    (*j)["ops"] = std::move(ops);
    (*j)["ops_left_out"] = s.ops.size() - (*j)["ops"].size();
    for (const CommandSummary& c : s.commands)
      kinds.push_back(
          {{"command", c.name}, {"count", c.count}, {"failed", c.failed}, {"times", three(c.duration)}});
    std::stable_sort(kinds.begin(), kinds.end(), [](const Json& x, const Json& y) {
      return x["count"].get<std::uint64_t>() > y["count"].get<std::uint64_t>();
    });
    cut(&kinds, limits_.kinds);
    (*j)["command_kinds"] = std::move(kinds);
    (*j)["command_kinds_left_out"] = s.commands.size() - (*j)["command_kinds"].size();
    std::uint64_t refused = 0, unanswered = 0;
    for (const CommandRow& c : a_.commands()) {
      if (c.failed()) refused++;
      if (c.end == kNoTime) unanswered++;
    }
    (*j)["commands"] = {{"count", a_.commands().size()}, {"failed", refused}, {"open", unanswered}};
  }

  static void cut(Json* array, std::size_t most) {
    if (array->size() > most) array->erase(array->begin() + static_cast<std::ptrdiff_t>(most), array->end());
  }

  bool whys(const std::vector<const WqeRow*>& told, Json* j, std::string* err) {
    Usual usual(a_);
    Json all = Json::array();
    const auto each = [&](const Story& s) {
      const WqeRow& w = *s.wqe;
      why_[&w] = all.size();
      Json row = {{"wqe", wqe_id(w)},   {"opcode", w.opcode_name()},
                  {"bytes", w.bytes},   {"status", w.status_name()},
                  {"start", w.start()}, {"again", w.retransmits},
                  {"naks", w.naks},     {"why", reasons(why(a_, s, &usual))}};
      if (w.end() != kNoTime) row["took"] = w.end() - w.start();
      all.push_back(std::move(row));
    };
    if (!tell(in_.path, a_, told, each, err)) return false;
    for (std::size_t i = 0; i < slow_.size(); i++) all[failed_.size() + i]["median"] = slow_[i].median;
    (*j)["told"] = std::move(all);
    (*j)["told_failed"] = failed_.size();
    return true;
  }

  /// The place of a string in a list of them.
  class Names {
   public:
    std::size_t of(const std::string& s) {
      const auto [it, is_new] = places_.try_emplace(s, list_.size());
      if (is_new) list_.push_back(s);
      return it->second;
    }
    Json take() { return std::move(list_); }

   private:
    std::map<std::string, std::size_t> places_;
    Json list_ = Json::array();
  };

  void timeline(const Overview& o, Json* j) const {
    Json axis = {{"first", o.axis.first}, {"last", o.axis.last}, {"bin", o.axis.bin}, {"bins", o.axis.bins}};
    axis["cuts"] = Json::array();
    for (const Axis::Cut& c : o.axis.cuts)
      axis["cuts"].push_back(Json::array({c.at - o.axis.first, c.length}));
    (*j)["axis"] = std::move(axis);
    (*j)["stages"] = kStageNames;

    Json lanes = Json::array();
    std::map<std::pair<unsigned, std::uint32_t>, std::size_t> lane_number;
    std::uint64_t in_lanes = 0;
    for (const Lane& lane : o.lanes) {
      lane_number[{lane.hca, lane.qpn}] = lanes.size();
      in_lanes += lane.wqes;
      Json bins = Json::array();  // [bin, begun, failed, under way] of those in which there is any
      for (std::size_t i = 0; i < lane.bins.size(); i++) {
        const Lane::Bin& b = lane.bins[i];
        if (b.begun != 0 || b.failed != 0 || b.under_way != 0)
          bins.push_back(Json::array({i, b.begun, b.failed, b.under_way}));
      }
      lanes.push_back({{"name", fmt::format("{}:{:#x}", lane.hca, lane.qpn)},
                       {"wqes", lane.wqes},
                       {"failed", lane.failed},
                       {"open", lane.open},
                       {"bytes", lane.bytes},
                       {"bins", std::move(bins)}});
    }
    (*j)["lanes"] = std::move(lanes);
    (*j)["lanes_left_out"] = o.lanes_left_out;
    (*j)["wqes_in_other_lanes"] = o.placed - in_lanes;
    (*j)["wqes_placed"] = o.placed;
    (*j)["bars_failed"] = o.bars_failed;

    Names opcodes, statuses;
    Json bars = Json::array();
    for (const WqeRow* w : o.bars) {
      // [lane, serial, life, opcode, bytes, status, begin, end or null, told or -1, [stage, ps since begin,
      // ...]]
      Json passed = Json::array();
      for (const auto& [stage, t] : w->steps()) {
        passed.push_back(static_cast<unsigned>(stage));
        passed.push_back(t - w->start());
      }
      const auto told = why_.find(w);
      Json bar = Json::array({lane_number[{w->hca, w->qpn}], w->serial, w->life, opcodes.of(w->opcode_name()),
                              w->bytes, statuses.of(w->status_name()), w->start() - o.axis.first});
      bar.push_back(w->end() == kNoTime ? Json() : Json(w->end() - w->start()));
      bar.push_back(told == why_.end() ? Json(-1) : Json(told->second));
      bar.push_back(std::move(passed));
      bar.push_back(w->status > 0 ? 1 : w->status == 0 ? 0 : w->opcode < 0 ? 3 : 2);
      bars.push_back(std::move(bar));
    }
    (*j)["bars"] = std::move(bars);
    (*j)["opcodes"] = opcodes.take();
    (*j)["statuses"] = statuses.take();

    Json rates = Json::array();  // [done, failed, bytes, ps of the bin]
    for (const Rate& r : o.rates) rates.push_back(Json::array({r.done, r.failed, r.bytes, r.length}));
    (*j)["rates"] = std::move(rates);
  }

  void steps(Json* j) const {
    std::vector<const WqeRow*> rows;
    for (const WqeRow& w : a_.wqes())
      if (w.start() != kNoTime) rows.push_back(&w);
    Json out = Json::array();
    const auto all = step_times(rows);
    for (const StepTimes& s : all) {
      if (out.size() == limits_.steps) break;
      std::map<std::size_t, std::uint64_t> bins;
      for (const std::int64_t t : s.times) bins[log_bin(t)]++;
      Json list = Json::array();
      for (const auto& [bin, n] : bins) list.push_back(Json::array({bin, n}));
      out.push_back({{"name", s.name()},
                     {"to", s.to},
                     {"count", s.times.size()},
                     {"times", three(s.times)},
                     {"bins", std::move(list)}});
    }
    (*j)["steps_left_out"] = all.size() - out.size();
    (*j)["steps"] = std::move(out);
  }

  void errors(Json* j) const {
    Json points = Json::array(), list = Json::array();
    for (unsigned i = 0; i < kPoints; i++) {
      const auto p = static_cast<Point>(i);
      if (is_error(p) && p != Point::kRuleBroken && a_.count(p) != 0)
        points.push_back(Json::array({info(p).name, a_.count(p), info(p).help}));
    }
    (*j)["error_points"] = std::move(points);
    std::uint64_t all = 0;
    for (const Record& r : a_.errors()) {
      if (r.p() == Point::kFaultInjected || r.p() == Point::kRuleBroken)
        continue;  // these have their own part
      if (all++ < limits_.errors) list.push_back(record(r));
    }
    (*j)["errors"] = std::move(list);
    (*j)["errors_count"] = all;
  }

  void rules(Json* j) const {
    Json list = Json::array();
    for (const auto& [number, broken] : in_.facts->rules()) {
      if (list.size() == limits_.rules) break;
      const RuleInfo* rule = number != 0 ? find_rule(number) : nullptr;
      Json examples = Json::array();
      for (const Facts::Example& e : broken.examples)
        examples.push_back({{"before", records(e.before)},
                            {"broken", record(e.broken)},
                            {"bytes", e.bytes},
                            {"after", records(e.after)}});
      list.push_back({{"rule", rule != nullptr ? rule->name : "unknown to this version"},
                      {"severity", rule != nullptr ? severity_name(rule->severity) : ""},
                      {"source", rule != nullptr ? rule->source : ""},
                      {"text", rule != nullptr ? rule->text : ""},
                      {"count", broken.count},
                      {"examples", std::move(examples)}});
    }
    (*j)["rules_left_out"] = in_.facts->rules().size() - list.size();
    (*j)["rules"] = std::move(list);
    (*j)["rules_broken"] = in_.facts->rules_broken();
  }

  Json command(const CommandRow& c) const {
    Json row = {{"name", fmt::format("cmd:{}:{}", c.place(), c.seq)},
                {"command", c.name()},
                {"op_mod", c.op_mod},
                {"uid", c.uid},
                {"status", c.status_name()},
                {"syndrome", c.syndrome}};
    row["start"] = c.start != kNoTime ? c.start : c.end;
    if (c.start != kNoTime && c.end != kNoTime) row["took"] = c.end - c.start;
    return row;
  }

  void commands(Json* j) const {
    Json failed = Json::array(), slow = Json::array();
    for (const CommandRow* c : failed_commands(a_, limits_.commands)) {
      Json row = command(*c);
      if (failed.size() < limits_.told_commands) row["why"] = reasons(why(a_, *c));
      failed.push_back(std::move(row));
    }
    for (const CommandRow* c : slow_commands(a_, limits_.commands)) slow.push_back(command(*c));
    (*j)["failed_commands"] = std::move(failed);
    (*j)["slow_commands"] = std::move(slow);
  }

  void faults(Json* j) const {
    std::map<std::string, std::uint64_t> kinds;
    Json list = Json::array(), by_kind = Json::array();
    std::uint64_t all = 0;
    for (const Record& r : a_.errors()) {
      if (r.p() != Point::kFaultInjected) continue;
      const FaultTypeInfo* kind = fault_kind_of(r.a0);
      const FaultActionInfo* action = fault_action_of(r.a0);
      kinds[kind != nullptr && action != nullptr ? fmt::format("{}/{}", kind->name, action->name)
                                                 : "of a kind that this version lacks"]++;
      if (all++ < limits_.faults) list.push_back(record(r));
    }
    for (const auto& [name, n] : kinds) by_kind.push_back(Json::array({name, n}));
    (*j)["fault_kinds"] = std::move(by_kind);
    (*j)["faults"] = std::move(list);
    (*j)["faults_count"] = all;
  }

  void coverage(Json* j) const {
    std::map<std::string, std::vector<const CoverageFile*>> folders;
    std::size_t shown = 0;
    const auto folder_of = [](const std::string& path) {
      const std::size_t slash = path.rfind('/');
      return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
    };
    Json out = Json::array();
    CoverageFile total;
    for (const CoverageFile& f : in_.coverage) {
      add(&total, f);
      folders[folder_of(f.path)].push_back(&f);
    }
    for (const auto& [folder, files] : folders) {
      CoverageFile sum;
      Json list = Json::array();
      for (const CoverageFile* f : files) {
        add(&sum, *f);
        if (shown == limits_.coverage_files) continue;
        shown++;
        list.push_back(numbers(*f, f->path.substr(f->path.rfind('/') + 1)));
      }
      if (out.size() < limits_.coverage_files)
        out.push_back({{"sum", numbers(sum, folder)}, {"files", std::move(list)}, {"count", files.size()}});
    }
    (*j)["coverage"] = {{"file", text(in_.coverage_path)},
                        {"total", numbers(total, "")},
                        {"files", in_.coverage.size()},
                        {"left_out", in_.coverage.size() - shown},
                        {"folders_left_out", folders.size() - out.size()},
                        {"folders", std::move(out)}};
  }
  static void add(CoverageFile* sum, const CoverageFile& f) {
    sum->lines += f.lines;
    sum->lines_hit += f.lines_hit;
    sum->functions += f.functions;
    sum->functions_hit += f.functions_hit;
  }
  Json numbers(const CoverageFile& f, const std::string& name) const {
    return Json::array({text(name), f.lines_hit, f.lines, f.functions_hit, f.functions});
  }

  const PageInput& in_;
  const Analysis& a_;
  const PageLimits& limits_;
  std::vector<const WqeRow*> failed_;
  std::vector<SlowWqe> slow_;
  std::unordered_map<const WqeRow*, std::size_t> why_;  // place in "told"
};

}  // namespace

bool page_data(const PageInput& in, const PageLimits& limits, nlohmann::ordered_json* out, std::string* err) {
  return Builder(in, limits).run(out, err);
}

}  // namespace hcasim::traces
