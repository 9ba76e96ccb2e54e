// SPDX-License-Identifier: BSD-3-Clause
#include "traces/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/story.h"

namespace hcasim::traces {
namespace {

using Json = nlohmann::ordered_json;

double ns(std::int64_t ps) { return static_cast<double>(ps) / 1e3; }
double us(std::int64_t ps) { return static_cast<double>(ps) / 1e6; }

constexpr std::size_t kColumns = 100;  // what tables fit into

std::size_t limited(std::size_t n, const ReportOptions& o) {
  return o.limit != 0 && o.limit < n ? static_cast<std::size_t>(o.limit) : n;
}

void print_limit(std::size_t n, std::size_t shown, std::FILE* out) {
  if (shown < n) fmt::print(out, "... {} more (--limit)\n", n - shown);
}

/// Words one after the other, in lines of up to 100 columns.
void print_folded(const std::vector<std::string>& words, std::size_t indent, std::FILE* out) {
  std::size_t column = 0;
  for (const std::string& word : words) {
    if (column != 0 && column + 2 + word.size() > kColumns) {
      fmt::print(out, "\n");
      column = 0;
    }
    fmt::print(out, "{}{}", std::string(column == 0 ? indent : 2, ' '), word);
    column += (column == 0 ? indent : 2) + word.size();
  }
  if (column != 0) fmt::print(out, "\n");
}

void print_wqes(const Analysis& a, const ReportOptions& o, std::FILE* out) {
  fmt::print(out, "WQEs; below each its stages: ns since {}\n",
             o.absolute ? "the first stage" : "the stage before it in time");
  fmt::print(out, "{:>3} {:>8} {:>9} {:>5} {:<14} {:>9} {:>16} {:>12} {}\n", "hca", "qpn", "wqe", "idx",
             "opcode", "bytes", "start_ns", "total_ns", "status");
  const std::size_t n = limited(a.wqes().size(), o);
  for (std::size_t r = 0; r < n; r++) {
    const WqeRow& w = a.wqes()[r];
    fmt::print(out, "{:>3} {:>#8x} {:>9} {:>5} {:<14} {:>9} {:>16.1f} {:>12} {}", w.hca, w.qpn, w.serial,
               w.wqe_counter, w.opcode_name(), w.bytes, ns(w.start()),
               w.end() != kNoTime ? fmt::format("{:.1f}", ns(w.end() - w.start())) : "-", w.status_name());
    // Of a WQE that was never seen decoded, the CQE may have been left out, too.
    if (w.status >= 0 && !w.has_cqe && w.opcode >= 0) fmt::print(out, " no-cqe");
    fmt::print(out, "\n");
    std::vector<std::string> words;
    if (w.retransmits != 0) words.push_back(fmt::format("retransmits={}", w.retransmits));
    if (w.naks != 0) words.push_back(fmt::format("naks={}", w.naks));
    std::int64_t before = w.start();
    for (const auto& [stage, t] : w.steps()) {
      words.push_back(fmt::format("{} {:.1f}", kStageNames[static_cast<unsigned>(stage)], ns(t - before)));
      if (!o.absolute) before = t;
    }
    print_folded(words, 13, out);
  }
  print_limit(a.wqes().size(), n, out);
  fmt::print(out, "\n");
}

void print_commands(const Analysis& a, const ReportOptions& o, std::FILE* out) {
  fmt::print(out, "Commands\n{:>3} {:>5} {:>4} {:<28} {:>6} {:>3} {:>11} {:>8} {:<13} {}\n", "hca", "seq",
             "slot", "command", "op_mod", "uid", "start_us", "took_us", "status", "syndrome");
  const std::size_t n = limited(a.commands().size(), o);
  for (std::size_t r = 0; r < n; r++) {
    const CommandRow& c = a.commands()[r];
    const bool timed = c.start != kNoTime && c.end != kNoTime;
    fmt::print(out, "{:>3} {:>5} {:>4} {:<28} {:>#6x} {:>3} {:>11.2f} {:>8} {:<13} {:#x}\n", c.place(), c.seq,
               c.slot, c.name(), c.op_mod, c.uid, us(c.start != kNoTime ? c.start : c.end),
               timed ? fmt::format("{:.2f}", us(c.end - c.start)) : "-", c.status_name(), c.syndrome);
    if (o.fields) fmt::print(out, "      in:  {}\n      out: {}\n", input_fields(c), output_fields(c));
  }
  print_limit(a.commands().size(), n, out);
  fmt::print(out, "\n");
}

void print_error(const Record& r, std::FILE* out) {
  std::string wqe = wqe_of(r);
  if (!wqe.empty()) wqe = "WQE " + wqe + ": ";
  fmt::print(out, "{:>14.3f} us  HCA {:<4} {:<14}  {}{}\n", us(r.time_ps), place_of(r), info(r.p()).name, wqe,
             in_words(r));
}

void print_errors(const Analysis& a, const ReportOptions& o, std::FILE* out) {
  fmt::print(out, "Errors, retries and injected faults\n");
  const std::size_t n = limited(a.errors().size(), o);
  for (std::size_t i = 0; i < n; i++) print_error(a.errors()[i], out);
  print_limit(a.errors().size(), n, out);
  fmt::print(out, "\n");
}

void print_summary(const Analysis& a, std::FILE* out) {
  const Summary s = summarize(a);
  fmt::print(out, "Summary: {} records, {} WQEs, {} commands\n", a.records(), a.wqes().size(),
             a.commands().size());
  if (a.unknown() != 0)
    fmt::print(out, "  {} records of points that this program does not know\n", a.unknown());
  if (a.foreign_packets() != 0)
    fmt::print(out, "  {} request packets came from outside of this trace\n", a.foreign_packets());
  if (s.first != kNoTime && s.last > s.first)
    fmt::print(out, "  {} payload bytes in {:.3f} us: {:.3f} Gb/s\n", s.bytes, us(s.last - s.first),
               static_cast<double>(s.bytes) * 8e3 / static_cast<double>(s.last - s.first));
  if (!s.ops.empty()) {
    fmt::print(out, "\n{:<16} {:<16} {:>10} {:>14} {:>12} {:>12} {:>12}\n", "WQE opcode", "status", "count",
               "bytes", "p50_ns", "p99_ns", "max_ns");
    for (const OpSummary& p : s.ops)
      fmt::print(out, "{:<16} {:<16} {:>10} {:>14} {:>12.1f} {:>12.1f} {:>12.1f}\n", p.opcode, p.status,
                 p.count, p.bytes, ns(percentile(p.latency, 50)), ns(percentile(p.latency, 99)),
                 ns(percentile(p.latency, 100)));
    fmt::print(out, "\n{:<24} {:>10} {:>12} {:>12} {:>12}\n", "stage", "count", "p50_ns", "p99_ns", "max_ns");
    for (const StepTimes& p : s.stages)
      fmt::print(out, "{:<24} {:>10} {:>12.1f} {:>12.1f} {:>12.1f}\n", p.name(), p.times.size(),
                 ns(percentile(p.times, 50)), ns(percentile(p.times, 99)), ns(percentile(p.times, 100)));
  }
  if (!s.commands.empty()) {
    fmt::print(out, "\n{:<36} {:>8} {:>8} {:>12} {:>12}\n", "command", "count", "failed", "p50_us", "p99_us");
    for (const CommandSummary& c : s.commands)
      fmt::print(out, "{:<36} {:>8} {:>8} {:>12.3f} {:>12.3f}\n", c.name, c.count, c.failed,
                 us(percentile(c.duration, 50)), us(percentile(c.duration, 99)));
  }
  bool any = false;
  for (unsigned i = 0; i < kPoints; i++) {
    const Point p = static_cast<Point>(i);
    if (!is_error(p) || a.count(p) == 0) continue;
    if (!any) fmt::print(out, "\n{:<18} {:>10}\n", "error point", "count");
    any = true;
    fmt::print(out, "{:<18} {:>10}  {}\n", info(p).name, a.count(p), info(p).help);
  }
  if (!any) fmt::print(out, "\nno error points\n");
}

Json times(const std::vector<std::int64_t>& v) {
  return {{"p50", ns(percentile(v, 50))}, {"p99", ns(percentile(v, 99))}, {"max", ns(percentile(v, 100))}};
}

Json wqe_json(const WqeRow& w) {
  Json stages = Json::object();
  for (unsigned i = 0; i < kStages; i++)
    if (w.time[i] != kNoTime) stages[kStageNames[i]] = ns(w.time[i]);
  Json j = {{"hca", w.hca},
            {"qpn", w.qpn},
            {"wqe", w.serial},
            {"wqe_counter", w.wqe_counter},
            {"opcode", w.opcode_name()},
            {"bytes", w.bytes},
            {"status", w.status_name()},
            {"cqe", w.has_cqe},
            {"start_ns", ns(w.start())}};
  if (w.end() != kNoTime) j["total_ns"] = ns(w.end() - w.start());
  if (w.retransmits != 0) j["retransmits"] = w.retransmits;
  if (w.naks != 0) j["naks"] = w.naks;
  if (w.responder_cqe != kNoTime) j["responder_cqe_ns"] = ns(w.responder_cqe);
  j["stages_ns"] = std::move(stages);
  return j;
}

Json command_json(const CommandRow& c, bool fields) {
  Json j = {{"hca", c.hca},          {"seq", c.seq},       {"slot", c.slot}, {"command", c.name()},
            {"opcode", c.opcode},    {"op_mod", c.op_mod}, {"uid", c.uid},   {"status", c.status_name()},
            {"syndrome", c.syndrome}};
  if (c.function != 0) j["function"] = c.function;
  if (c.start != kNoTime) j["start_us"] = us(c.start);
  if (c.start != kNoTime && c.end != kNoTime) j["duration_us"] = us(c.end - c.start);
  if (fields) {
    j["input"] = input_fields(c);
    j["output"] = output_fields(c);
  }
  return j;
}

Json summary_json(const Analysis& a) {
  const Summary s = summarize(a);
  Json j = {{"records", a.records()},
            {"wqes", a.wqes().size()},
            {"commands", a.commands().size()},
            {"unknown_records", a.unknown()},
            {"foreign_packets", a.foreign_packets()},
            {"payload_bytes", s.bytes}};
  if (s.first != kNoTime) j["span_ns"] = ns(s.last - s.first);
  Json ops = Json::array(), stages = Json::array(), commands = Json::array(), errors = Json::object();
  for (const OpSummary& p : s.ops)
    ops.push_back({{"opcode", p.opcode},
                   {"status", p.status},
                   {"count", p.count},
                   {"bytes", p.bytes},
                   {"latency_ns", times(p.latency)}});
  for (const StepTimes& p : s.stages)
    stages.push_back({{"from", kStageNames[p.from]},
                      {"to", kStageNames[p.to]},
                      {"count", p.times.size()},
                      {"ns", times(p.times)}});
  for (const CommandSummary& c : s.commands)
    commands.push_back(
        {{"command", c.name}, {"count", c.count}, {"failed", c.failed}, {"ns", times(c.duration)}});
  for (unsigned i = 0; i < kPoints; i++)
    if (kPointInfo[i].kind == Kind::kError && a.count(static_cast<Point>(i)) != 0)
      errors[kPointInfo[i].name] = a.count(static_cast<Point>(i));
  j["by_opcode"] = std::move(ops);
  j["by_stage"] = std::move(stages);
  j["by_command"] = std::move(commands);
  j["errors"] = std::move(errors);
  return j;
}

std::string text(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string describe(const Record& r, const std::string& point_name) {
  std::string s = fmt::format("{:>16.3f} ns hca {} {:<16} obj {:#x} index {} a0 {:#x} a1 {:#x}",
                              ns(r.time_ps), place_of(r), point_name, r.obj, r.index, r.a0, r.a1);
  if (r.point < kPoints) s += fmt::format("  {}", kPointInfo[r.point].help);
  if (r.blob_len != 0) s += fmt::format(" ({} bytes)", unsigned{r.blob_len});
  return s;
}

void print_text(const Analysis& a, const ReportOptions& o, std::FILE* out) {
  if (o.wqes) print_wqes(a, o, out);
  if (o.commands) print_commands(a, o, out);
  if (o.errors) print_errors(a, o, out);
  if (o.summary) print_summary(a, out);
}

void print_json(const Analysis& a, const ReportOptions& o, const std::string& warning, std::FILE* out) {
  // Row by row: the JSON tree of a long trace would need many times its memory.
  fmt::print(out, "{{\"warning\":{}", text(Json(warning)));
  if (o.wqes) {
    const std::size_t n = limited(a.wqes().size(), o);
    fmt::print(out, ",\n\"wqes\":[");
    for (std::size_t i = 0; i < n; i++)
      fmt::print(out, "{}\n{}", i != 0 ? "," : "", text(wqe_json(a.wqes()[i])));
    fmt::print(out, "]");
  }
  if (o.commands) {
    const std::size_t n = limited(a.commands().size(), o);
    fmt::print(out, ",\n\"commands\":[");
    for (std::size_t i = 0; i < n; i++)
      fmt::print(out, "{}\n{}", i != 0 ? "," : "", text(command_json(a.commands()[i], o.fields)));
    fmt::print(out, "]");
  }
  if (o.errors) {
    const std::size_t n = limited(a.errors().size(), o);
    fmt::print(out, ",\n\"errors\":[");
    for (std::size_t i = 0; i < n; i++) {
      const Record& r = a.errors()[i];
      Json j = {{"time_ns", ns(r.time_ps)},
                {"hca", r.hca},
                {"point", kPointInfo[r.point].name},
                {"obj", r.obj},
                {"index", r.index},
                {"a0", r.a0},
                {"a1", r.a1},
                {"text", in_words(r)}};
      if (r.function != 0) j["function"] = unsigned{r.function};
      fmt::print(out, "{}\n{}", i != 0 ? "," : "", text(j));
    }
    fmt::print(out, "]");
  }
  if (o.summary) fmt::print(out, ",\n\"summary\":{}", text(summary_json(a)));
  fmt::print(out, "}}\n");
}

}  // namespace hcasim::traces
