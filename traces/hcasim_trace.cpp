// SPDX-License-Identifier: BSD-3-Clause
/// hcasim-trace: shows a trace file, or where two of them diverge.
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "traces/reader.h"
#include "traces/report.h"
#include "traces/verbs.h"

namespace {

using namespace hcasim::traces;

/// All records in file order.
int print_raw(Reader& reader, std::uint64_t limit) {
  Record r;
  std::vector<std::uint8_t> blob;
  for (std::uint64_t n = 0; (limit == 0 || n < limit) && reader.next(r, blob); n++)
    std::printf("%s\n", describe(r, reader.file_point_name()).c_str());
  return 0;
}

void print_points() {
  for (const PointInfo& p : kPointInfo)
    std::printf("%-16s %s\n    obj: %s; index: %s; a0: %s; a1: %s\n", p.name, p.help, p.obj, p.index, p.a0,
                p.a1);
}

int run(int argc, char** argv) {
  int status = 0;
  if (run_verb(argc, argv, &status)) return status;
  CLI::App app(
      "Shows what an HCA model recorded: the life of each WQE and command, and a summary.\n"
      "More, each with --help:\n"
      "  list FILE        WQEs, chosen by QP, opcode, status, time; the slowest\n"
      "  show FILE WQE    the whole life of one, at both ends\n"
      "  why FILE WQE     why it failed, or was slow, in words\n"
      "  stats FILE       how long WQEs take from stage to stage\n"
      "  commands FILE    the firmware's commands\n"
      "  export FILE      for Perfetto, GTKWave, as CSV and JSON; with the guest's kernel trace\n"
      "  diff A B         where two traces diverge\n"
      "  rules FILE       the validation rules that the driver broke, with the records around them");
  std::string path, perfetto;
  bool wqe = false, commands = false, summary = false, errors = false, json = false, raw = false,
       points = false;
  ReportOptions o;
  Filter filter;
  app.add_option("FILE", path, "trace file");
  app.add_flag("--wqe", wqe, "only the WQEs");
  app.add_flag("--commands", commands, "only the commands");
  app.add_flag("--errors", errors, "the errors, retries and injected faults, one a line");
  app.add_flag("--summary", summary, "only the summary");
  app.add_flag("--json", json, "as JSON");
  app.add_option("--perfetto", perfetto, "write Chrome trace events for ui.perfetto.dev to this file")
      ->type_name("OUT.json");
  app.add_option("--qpn", filter.qpn, "only the WQEs of this send queue's QPN")
      ->check(CLI::Range(0, 0xffffff));
  app.add_option("--hca", filter.hca, "only this HCA")->check(CLI::Range(0, 253));
  app.add_option("--limit", o.limit, "maximum number of rows in each table");
  app.add_flag("--fields", o.fields, "print the commands' mailboxes by field");
  app.add_flag("--absolute", o.absolute,
               "stage times since the WQE's first stage instead of since the one before");
  app.add_flag("--raw", raw, "print each record as it stands in the file");
  app.add_flag("--points", points, "explain the trace points and exit");
  CLI11_PARSE(app, argc, argv);

  if (points) {
    print_points();
    return 0;
  }
  if (path.empty()) {
    std::fprintf(stderr, "hcasim-trace: no trace file named; see --help\n");
    return 2;
  }
  if (wqe || commands || summary || errors) {
    o.wqes = wqe;
    o.commands = commands;
    o.summary = summary;
    o.errors = errors;
  }
  if (o.fields && !wqe && !summary) o.commands = true;

  Reader reader;
  std::string err;
  if (!reader.open(path, &err)) {
    std::fprintf(stderr, "hcasim-trace: %s\n", err.c_str());
    return 1;
  }
  int rc = 0;
  if (raw) {
    rc = print_raw(reader, o.limit);
  } else {
    Analysis analysis(filter);
    Record r;
    std::vector<std::uint8_t> blob;
    while (reader.next(r, blob)) analysis.add(r, blob);
    analysis.finish();
    if (!perfetto.empty()) {
      std::FILE* f = std::fopen(perfetto.c_str(), "we");
      bool ok = f != nullptr && write_perfetto(analysis, f);
      if (f != nullptr && std::fclose(f) != 0) ok = false;
      if (!ok) {
        std::fprintf(stderr, "hcasim-trace: cannot write %s: %s\n", perfetto.c_str(), std::strerror(errno));
        return 1;
      }
    }
    const bool sections = wqe || commands || summary || errors || json || o.fields;
    if (perfetto.empty() || sections) {
      if (json) {
        print_json(analysis, o, reader.warning(), stdout);
      } else {
        print_text(analysis, o, stdout);
      }
    }
  }
  if (!reader.warning().empty()) {
    std::fprintf(stderr, "hcasim-trace: %s: %s\n", path.c_str(), reader.warning().c_str());
    rc = 3;  // what could be read was shown
  }
  return rc;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {  // the output cannot be written, or out of memory
    std::fprintf(stderr, "hcasim-trace: %s\n", e.what());
    return 2;
  }
}
