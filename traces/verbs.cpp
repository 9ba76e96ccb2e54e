// SPDX-License-Identifier: BSD-3-Clause
#include "traces/verbs.h"

#include <fmt/format.h>

#include <strings.h>
#include <CLI/CLI.hpp>
#include <algorithm>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "command/files.h"
#include "command/parse.h"
#include "traces/broken_rules.h"
#include "traces/diff.h"
#include "traces/names.h"
#include "traces/report.h"
#include "traces/story.h"
#include "traces/timeline.h"
#include "traces/worst.h"

namespace hcasim::traces {
namespace {

using Json = nlohmann::ordered_json;

int complain(const std::string& text) {
  std::fprintf(stderr, "hcasim-trace: %s\n", text.c_str());
  return 2;
}

/// Status 0, 2 or 3, as of run_verb().
int load(const std::string& path, Analysis& a) {
  const int status =
      read_records(path, [&a](const Record& r, const std::vector<std::uint8_t>& blob) { a.add(r, blob); });
  if (status != 2) a.finish();
  return status;
}

double us(std::int64_t ps) { return static_cast<double>(ps) / 1e6; }
double ns(std::int64_t ps) { return static_cast<double>(ps) / 1e3; }

/// The selection of WQEs for `list` and `stats`.
struct Choice {
  Filter filter;
  std::string opcode, status;
  command::TimeSpan span;
  std::uint64_t slowest = 0, limit = 0;

  void options(CLI::App& app) {
    app.add_option("--qpn", filter.qpn, "only of this send queue's QPN")->check(CLI::Range(0, 0xffffff));
    app.add_option("--hca", filter.hca, "only of this HCA")->check(CLI::Range(0u, kMostHcas - 1));
    app.add_option("--opcode", opcode, "only of this opcode, such as RDMA_WRITE")
        ->check(check_opcode, "NAME");
    app.add_option("--status", status,
                   "only those with this status: ok, error (any), open, or a name such as RNR_RETRY_EXC")
        ->check(check_status, "NAME");
    span.options(app, "those that began");
    app.add_option("--slowest", slowest, "only this many, the slowest first")->check(command::whole(1));
  }

  bool takes(const WqeRow& w) const {
    if (!span.has(us(w.start()))) return false;
    const bool packet = w.opcode < 0 && strncasecmp(opcode.c_str(), "pkt:", 4) == 0;
    if (!opcode.empty() && !is_name(opcode, w.opcode_name(), w.opcode) &&
        !(packet && is_name(opcode.substr(4), "", w.bth_opcode)))
      return false;
    if (status.empty()) return true;
    if (strcasecmp(status.c_str(), "error") == 0) return w.status > 0;
    return is_name(status, w.status_name(), w.status);
  }

  std::vector<const WqeRow*> pick(const Analysis& a) const {
    std::vector<const WqeRow*> v;
    for (const WqeRow& w : a.wqes())
      if (w.start() != kNoTime && takes(w)) v.push_back(&w);
    if (slowest != 0) {
      v.erase(std::remove_if(v.begin(), v.end(), [](const WqeRow* w) { return w->end() == kNoTime; }),
              v.end());
      std::stable_sort(v.begin(), v.end(), [](const WqeRow* x, const WqeRow* y) {
        return x->end() - x->start() > y->end() - y->start();
      });
      if (v.size() > slowest) v.resize(slowest);
    }
    if (limit != 0 && v.size() > limit) v.resize(limit);
    return v;
  }
};

void format_options(CLI::App& app, std::string* format) {
  app.add_option("--format", *format, "text, csv or json")
      ->transform(CLI::IsMember({"text", "csv", "json"}, CLI::ignore_case))
      ->type_name("NAME")
      ->capture_default_str();
}

std::string took(const WqeRow& w) {
  return w.end() == kNoTime ? "" : fmt::format("{:.1f}", ns(w.end() - w.start()));
}

int list_main(int argc, char** argv) {
  CLI::App app("Lists WQEs, one a line; the first column is the name that `show` and `why` take.",
               "hcasim trace list");
  std::string path;
  Choice choice;
  std::string format = "text";
  app.add_option("FILE", path, "a trace file")->required();
  choice.options(app);
  app.add_option("--limit", choice.limit, "maximum number of rows; 0: all")->check(command::whole());
  format_options(app, &format);
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  Analysis a(choice.filter);
  const int status = load(path, a);
  if (status == 2) return status;
  const auto rows = choice.pick(a);
  if (format == "json") {
    Json j = Json::array();
    for (const WqeRow* w : rows) {
      Json row = {{"wqe", wqe_id(*w)},
                  {"hca", w->hca},
                  {"qpn", w->qpn},
                  {"opcode", w->opcode_name()},
                  {"bytes", w->bytes},
                  {"start_us", us(w->start())},
                  {"status", w->status_name()},
                  {"retransmits", w->retransmits},
                  {"naks", w->naks}};
      if (w->end() != kNoTime) row["took_ns"] = ns(w->end() - w->start());
      j.push_back(std::move(row));
    }
    fmt::print("{}\n", j.dump(1, ' ', false, Json::error_handler_t::replace));
    return status;
  }
  const bool csv = format == "csv";
  const char* row =
      csv ? "{},{},{},{},{},{},{},{}\n" : "{:<16} {:<14} {:>10} {:>14} {:>11} {:<16} {:>5} {:>4}\n";
  fmt::print(fmt::runtime(row), "wqe", "opcode", "bytes", "start_us", "took_ns", "status", "again", "naks");
  for (const WqeRow* w : rows)
    fmt::print(fmt::runtime(row), wqe_id(*w), w->opcode_name(), std::to_string(w->bytes),
               fmt::format("{:.4f}", us(w->start())), took(*w), w->status_name(),
               std::to_string(w->retransmits), std::to_string(w->naks));
  if (!csv) fmt::print("{} of {} WQEs\n", rows.size(), a.wqes().size());
  return status;
}

int stats_main(int argc, char** argv) {
  CLI::App app(
      "How long WQEs take, as a whole and from stage to stage: median, 99th percentile, longest, and how "
      "they spread.",
      "hcasim trace stats");
  std::string path;
  Choice choice;
  bool histogram = false;
  app.add_option("FILE", path, "a trace file")->required();
  choice.options(app);
  app.add_flag("--histogram", histogram, "distribution of the time of each step");
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  Analysis a(choice.filter);
  const int status = load(path, a);
  if (status == 2) return status;
  const auto rows = choice.pick(a);
  fmt::print("{} of {} WQEs\n{:<24} {:>10} {:>12} {:>12} {:>12}\n", rows.size(), a.wqes().size(), "step",
             "count", "median_ns", "p99_ns", "max_ns");
  for (const StepTimes& step : step_times(rows)) {
    const auto& times = step.times;
    fmt::print("{:<24} {:>10} {:>12.1f} {:>12.1f} {:>12.1f}\n", step.name(), times.size(),
               ns(percentile(times, 50)), ns(percentile(times, 99)), ns(percentile(times, 100)));
    if (!histogram) continue;
    // One bar per power of two, from 1 ns on.
    std::map<int, std::size_t> bins;
    std::size_t most = 0;
    for (const std::int64_t t : times) {
      int bin = 0;
      while (bin < 62 && (t / 1000) >> bin != 0) bin++;
      most = std::max(most, ++bins[bin]);
    }
    for (const auto& [bin, n] : bins)
      fmt::print("  below {:>12} ns {:>10}  {}\n", std::int64_t{1} << bin, n,
                 std::string((n * 50 + most - 1) / most, '#'));
  }
  return status;
}

int commands_main(int argc, char** argv) {
  CLI::App app("Lists the firmware's commands.", "hcasim trace commands");
  std::string path, name;
  Filter filter;
  ReportOptions o;
  bool failed = false, json = false;
  app.add_option("FILE", path, "a trace file")->required();
  app.add_option("--hca", filter.hca, "only of this HCA")->check(CLI::Range(0u, kMostHcas - 1));
  app.add_option("--name", name, "only this command, such as CREATE_QP")->check(check_command, "NAME");
  app.add_flag("--failed", failed, "only those that failed, or were never answered");
  app.add_flag("--fields", o.fields, "with input and output, field by field");
  app.add_option("--limit", o.limit, "maximum number of rows; 0: all")->check(command::whole());
  app.add_flag("--json", json, "as JSON");
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  Analysis a(filter);
  const int status = load(path, a);
  if (status == 2) return status;
  a.keep_commands([&](const CommandRow& c) {
    return (name.empty() || is_name(name, c.name(), c.opcode)) && (!failed || c.failed() || c.end == kNoTime);
  });
  o.wqes = o.summary = false;
  if (json)
    print_json(a, o, status == 3 ? "the file is damaged" : "", stdout);
  else
    print_text(a, o, stdout);
  return status;
}

void print_proof(const std::vector<Record>& proof, std::int64_t since) {
  for (const Record& r : proof)
    fmt::print("    {:>14}  HCA {}  {}\n", (r.time_ps < since ? "" : "+") + time_text(r.time_ps - since),
               place_of(r), in_words(r));
}

/// The command "cmd:HCA:SEQ", or "cmd:HCA.FUNCTION:SEQ"; nullptr: not in the trace.
const CommandRow* find_command(const Analysis& a, const std::string& name) {
  unsigned hca = 0, function = 0, seq = 0;
  char rest = 0;
  if (std::sscanf(name.c_str(), "cmd:%u.%u:%u%c", &hca, &function, &seq, &rest) != 3) {
    function = 0;
    if (std::sscanf(name.c_str(), "cmd:%u:%u%c", &hca, &seq, &rest) != 2) return nullptr;
  }
  for (const CommandRow& c : a.commands())
    if (c.hca == hca && c.function == function && c.seq == seq) return &c;
  return nullptr;
}

void print_head(const WqeRow& w) {
  fmt::print("{}: {}, {} bytes, {}", wqe_id(w), w.opcode_name(), w.bytes, w.status_name());
  if (w.end() != kNoTime) fmt::print(", in {}", time_text(w.end() - w.start()));
  fmt::print("; begun at {:.4f} us\n", us(w.start()));
}

void print_reasons(const std::vector<Reason>& reasons, std::int64_t since) {
  for (const Reason& reason : reasons) {
    fmt::print("- {}\n", reason.text);
    print_proof(reason.proof, since);
  }
}

/// false: it was said why there is none.
bool story_of(const std::string& path, const Analysis& a, const std::string& name, Story* s) {
  WqeId id;
  std::string err;
  const WqeRow* w = nullptr;
  if (parse_wqe_id(name, &id, &err)) {
    w = find_wqe(a, id);
    if (w == nullptr) err = "the trace has no WQE " + name + ": `list` shows those that it has";
  }
  const bool told = w != nullptr && tell(path, a, *w, s, &err);
  if (!told) complain(err);
  return told;
}

/// `why` of no WQE in particular: of those that failed, then of the slowest.
int why_worst(const std::string& path, const Analysis& a, std::size_t most) {
  std::vector<const WqeRow*> wqes = failed_wqes(a, most);
  const std::size_t failed = wqes.size();
  for (const SlowWqe& s : slow_wqes(a, most - failed)) wqes.push_back(s.wqe);
  Usual usual(a);
  std::string err;
  bool first = true;
  const auto each = [&](const Story& s) {
    if (!first) fmt::print("\n");
    first = false;
    print_head(*s.wqe);
    print_reasons(why(a, s, &usual), s.wqe->start());
  };
  if (!tell(path, a, wqes, each, &err)) return complain(err);
  const auto all_failed = static_cast<std::size_t>(
      std::count_if(a.wqes().begin(), a.wqes().end(), [](const WqeRow& w) { return w.status > 0; }));
  const auto commands = static_cast<std::size_t>(std::count_if(
      a.commands().begin(), a.commands().end(), [](const CommandRow& c) { return c.failed(); }));
  if (!wqes.empty()) fmt::print("\n");
  fmt::print("{} WQEs, {} of them failed; ", a.wqes().size(), all_failed);
  if (wqes.empty())
    fmt::print("none took half as long again as its like.\n");
  else
    fmt::print("told of: {} that failed or were left behind, {} that took long.\n", failed,
               wqes.size() - failed);
  if (commands != 0) fmt::print("{} commands failed: `commands FILE --failed` lists them.\n", commands);
  // What a doorbell never told of is no WQE here.
  if (const std::uint64_t broken = a.count(Point::kRuleBroken); broken != 0)
    fmt::print("the driver broke rules, {} times: `rules FILE` shows where.\n", broken);
  return 0;
}

/// `why` of one that was named.
int why_one(const std::string& path, const Analysis& a, const std::string& name) {
  if (name.compare(0, 4, "cmd:") == 0) {
    const CommandRow* c = find_command(a, name);
    if (c == nullptr)
      return complain("the trace has no command " + name + ": cmd:HCA:SEQ, as `commands` prints them");
    fmt::print("{}: {}, {}\n", name, c->name(), c->status_name());
    print_reasons(why(a, *c), c->start != kNoTime ? c->start : c->end);
    return 0;
  }
  Story s;
  if (!story_of(path, a, name, &s)) return 2;
  print_head(*s.wqe);
  print_reasons(why(a, s), s.wqe->start());
  return 0;
}

/// `show` and `why`.
int one_main(int argc, char** argv, bool explain) {
  CLI::App app(explain
                   ? "Says in words why a WQE ended as it did, or took as long as it took, with the "
                     "records that prove it.\n"
                     "Without a WQE: of a handful of the worst, the failed ones first, then those that took "
                     "the most times as long as\nothers of their QP, opcode and length.\n"
                     "A command's name is cmd:HCA:SEQ, with its number as `commands` prints it, or "
                     "cmd:HCA.FUNCTION:SEQ."
                   : "Shows the whole life of a WQE, at both ends, and by what context it was judged.",
               explain ? "hcasim trace why" : "hcasim trace show");
  std::string path;
  std::vector<std::string> names;
  bool fields = false;
  std::size_t most = 5;
  app.add_option("FILE", path, "a trace file")->required();
  auto* wqe = app.add_option("WQE", names,
                             std::string("HCA:QPN:SERIAL, as `list` prints it in its first column") +
                                 (explain ? "; or several" : ""));
  if (explain)
    app.add_option("--most", most, "without a WQE: how many")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
  else
    wqe->required()->expected(1);
  if (!explain) app.add_flag("--fields", fields, "the context's commands field by field");
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  Analysis a;
  const int status = load(path, a);
  if (status == 2) return status;
  if (wqe->count() == 0) {
    const int told = why_worst(path, a, most);
    return told != 0 ? told : status;
  }
  if (explain) {
    for (const std::string& name : names)
      if (const int told = why_one(path, a, name); told != 0) return told;
    return status;
  }
  Story s;
  if (!story_of(path, a, names.front(), &s)) return 2;
  const WqeRow* const w = s.wqe;
  print_head(*w);
  std::vector<Record> all = s.own;
  all.insert(all.end(), s.around.begin(), s.around.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Record& x, const Record& y) { return x.time_ps < y.time_ps; });
  print_proof(all, w->start());
  if (s.context.empty()) {
    fmt::print("The trace does not hold the commands that made its QP.\n");
    return status;
  }
  fmt::print("Its QP as the driver made it:\n");
  for (const CommandRow* c : s.context) {
    fmt::print("    command {:>5} {:<14} at {:.3f} us\n", c->seq, c->name(),
               us(c->start != kNoTime ? c->start : c->end));
    if (fields) fmt::print("        {}\n", input_fields(*c));
  }
  return status;
}

int show_main(int argc, char** argv) { return one_main(argc, argv, false); }
int why_main(int argc, char** argv) { return one_main(argc, argv, true); }

int diff_main(int argc, char** argv) {
  CLI::App app(
      "Shows where two traces diverge: the first record that differs, with the records around it in both.\n"
      "Status 0: they are the same, 1: they diverge, 2: one of them cannot be read to its end.",
      "hcasim trace diff");
  std::string path_a, path_b;
  DiffOptions o;
  app.add_option("A", path_a, "a trace file")->required();
  app.add_option("B", path_b, "another one")->required();
  app.add_option("--context", o.context, "number of records shown before and after that one; 0: none")
      ->check(command::whole(0, 1'000'000))
      ->capture_default_str();
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  Reader a, b;
  std::string err;
  if (!a.open(path_a, &err) || !b.open(path_b, &err)) return complain(err);
  const DiffResult result = diff(a, b, o, stdout);
  bool sound = true;
  for (const auto& [reader, path] : {std::pair{&a, &path_a}, std::pair{&b, &path_b}}) {
    if (reader->warning().empty()) continue;
    complain(*path + ": " + reader->warning());
    sound = false;
  }
  if (!sound) return 2;
  return result == DiffResult::kSame ? 0 : 1;
}

/// Writes one export; "-" is standard output.
bool write_to(const std::string& path, const std::function<bool(std::FILE*)>& write) {
  if (path == "-") return write(stdout);
  std::FILE* f = std::fopen(path.c_str(), "wbe");
  bool ok = f != nullptr && write(f);
  if (f != nullptr && std::fclose(f) != 0) ok = false;
  if (!ok) complain("cannot write " + path + ": " + std::strerror(errno));
  return ok;
}

int export_main(int argc, char** argv) {
  CLI::App app("Writes a trace in other programs' formats; several at a time, if wanted.",
               "hcasim trace export");
  std::string path, perfetto, csv, json, vcd, ftrace;
  std::int64_t offset = 0;
  Filter filter;
  app.add_option("FILE", path, "a trace file")->required();
  app.add_option("--perfetto", perfetto, "Perfetto's protobuf format, for ui.perfetto.dev")->type_name("OUT");
  app.add_option("--csv", csv, "a row a WQE with the times of all its stages, ps")->type_name("OUT");
  app.add_option("--json", json, "the same as JSON, an object a WQE")->type_name("OUT");
  app.add_option("--vcd", vcd, "value change dump, for GTKWave: WQEs under way and units at work")
      ->type_name("OUT");
  auto* with_ftrace =
      app.add_option("--ftrace", ftrace,
                     "with --perfetto: the guest's kernel trace on the same time line; text of "
                     "`trace-cmd report`, or of tracefs' file `trace`")
          ->type_name("TEXT");
  auto* with_offset =
      app.add_option(
             "--ftrace-offset", offset,
             "ns to add to the guest's times; by default it is found from a mark that the guest wrote into "
             "trace_marker, \"hcasim: t=NS\", or from causes and effects")
          ->needs(with_ftrace);
  app.add_option("--qpn", filter.qpn, "only WQEs of this send queue's QPN")->check(CLI::Range(0, 0xffffff));
  app.add_option("--hca", filter.hca, "only of this HCA")->check(CLI::Range(0u, kMostHcas - 1));
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  if (perfetto.empty() && csv.empty() && json.empty() && vcd.empty())
    return complain("nothing to export: name --perfetto, --csv, --json or --vcd; see export --help");
  if (!ftrace.empty() && perfetto.empty()) return complain("--ftrace goes with --perfetto");
  if (const std::string wrong = command::check_outputs(
          {{"--perfetto", perfetto}, {"--csv", csv}, {"--json", json}, {"--vcd", vcd}}, {path, ftrace});
      !wrong.empty())
    return complain(wrong);

  Reader reader;
  std::string err;
  if (!reader.open(path, &err)) return complain(err);
  Timeline t(filter);
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) t.add(r, blob);
  t.finish();
  GuestTrace guest;
  if (!ftrace.empty()) {
    if (!guest.read(ftrace, &err)) return complain(err);
    ClockOffset found;
    found.known = true;
    found.ns = offset;
    found.how = "as told";
    if (with_offset->count() == 0) found = find_offset(t, guest);
    if (!found.known)
      return complain(fmt::format(
          "{}: the offset of the guest's clock is not known: {}. Trace more kinds of events, as "
          "mlx5_ib_post_send, cmd_work_handler and irq_int_handler in set_ftrace_filter; or write "
          "\"hcasim: t=NS\", simulated time, into trace_marker in the guest; or give "
          "--ftrace-offset NS",
          ftrace, found.why_not));
    offset = found.ns;
    fmt::print(stderr, "{}: {} events, {} other lines; guest's time {} {} ns: {}", ftrace,
               guest.events.size(), guest.other_lines, offset < 0 ? "-" : "+", offset < 0 ? -offset : offset,
               found.how);
    if (found.of != 0) {
      const std::string between = found.below && found.above
                                      ? fmt::format("lies between {} and {} ns", found.least, found.most)
                                  : found.below ? fmt::format("is at least {} ns", found.least)
                                                : fmt::format("is at most {} ns", found.most);
      fmt::print(stderr, " ({} of {} fit); it {}", found.matched, found.of, between);
    }
    fmt::print(stderr, "\n");
  }
  bool ok = true;
  const auto out = [&](const std::string& to, const std::function<bool(std::FILE*)>& write) {
    if (!to.empty()) ok = write_to(to, write) && ok;
  };
  out(perfetto,
      [&](std::FILE* f) { return write_perfetto_proto(t, ftrace.empty() ? nullptr : &guest, offset, f); });
  out(csv, [&](std::FILE* f) { return write_csv(t.wqes, f); });
  out(json, [&](std::FILE* f) { return write_json_wqes(t.wqes, f); });
  out(vcd, [&](std::FILE* f) { return write_vcd(t, f); });
  if (!ok) return 2;
  if (reader.warning().empty()) return 0;
  complain(path + ": " + reader.warning());
  return 3;
}

constexpr struct {
  const char* name;
  int (*run)(int argc, char** argv);
} kVerbs[] = {{"list", list_main},    {"show", show_main},         {"why", why_main},
              {"stats", stats_main},  {"commands", commands_main}, {"export", export_main},
              {"diff", diff_main},    {"rules", rules_main},       {"path", path_main},
              {"report", report_main}};

}  // namespace

std::string verb_names() {
  std::string names;
  for (const auto& verb : kVerbs) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

bool run_verb(int argc, char** argv, int* status) {
  if (argc < 2) return false;
  for (const auto& verb : kVerbs) {
    if (std::strcmp(argv[1], verb.name) != 0) continue;
    *status = verb.run(argc - 1, argv + 1);
    return true;
  }
  return false;
}

}  // namespace hcasim::traces
