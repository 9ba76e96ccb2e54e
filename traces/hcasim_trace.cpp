// SPDX-License-Identifier: BSD-3-Clause
/// hcasim-trace: shows a trace file, or where two of them diverge.
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "command/files.h"
#include "command/parse.h"
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

// What the command line asks for.
struct Request {
  std::string path, perfetto;
  bool wqe = false, commands = false, summary = false, errors = false, json = false, raw = false,
       points = false;
  ReportOptions report;
  Filter filter;

  bool sections() const { return wqe || commands || summary || errors || json || report.fields; }
};

constexpr const char* kAbout =
    "Shows what an HCA model recorded: the life of each WQE and command, and a summary.\n"
    "More, each with --help:\n"
    "  list FILE        WQEs, chosen by QP, opcode, status, time; the slowest\n"
    "  show FILE WQE    the whole life of one, at both ends\n"
    "  why FILE [WQE...]  why it failed, or was slow, in words; without one: of the worst\n"
    "  report FILE      all of it as one HTML page for a browser\n"
    "  stats FILE       how long WQEs take from stage to stage\n"
    "  commands FILE    the firmware's commands\n"
    "  export FILE      for Perfetto, GTKWave, as CSV and JSON; with the guest's kernel trace\n"
    "  diff A B         where two traces diverge\n"
    "  rules FILE       the validation rules that the driver broke, with the records around them\n"
    "  path FILE        the ways of frames through flow tables and the E-Switch";

void add_options(CLI::App& app, Request& request) {
  ReportOptions& o = request.report;
  app.add_option("FILE", request.path, "trace file");
  app.add_flag("--wqe", request.wqe, "only the WQEs");
  app.add_flag("--commands", request.commands, "only the commands");
  app.add_flag("--errors", request.errors, "the errors, retries and injected faults, one a line");
  app.add_flag("--summary", request.summary, "only the summary");
  app.add_flag("--json", request.json, "as JSON");
  app.add_option("--perfetto", request.perfetto, "write Chrome trace events for ui.perfetto.dev to this file")
      ->type_name("OUT.json");
  app.add_option("--qpn", request.filter.qpn, "only the WQEs of this send queue's QPN")
      ->check(CLI::Range(0, 0xffffff));
  app.add_option("--hca", request.filter.hca, "only this HCA")->check(CLI::Range(0u, kMostHcas - 1));
  app.add_option("--limit", o.limit, "maximum number of rows in each table; 0: all")
      ->check(hcasim::command::whole());
  app.add_flag("--fields", o.fields, "print the commands' mailboxes by field");
  app.add_flag("--absolute", o.absolute,
               "stage times since the WQE's first stage instead of since the one before");
  app.add_flag("--raw", request.raw, "print each record as it stands in the file");
  app.add_flag("--points", request.points, "explain the trace points and exit");
}

void choose_sections(Request& request) {
  ReportOptions& o = request.report;
  if (request.wqe || request.commands || request.summary || request.errors) {
    o.wqes = request.wqe;
    o.commands = request.commands;
    o.summary = request.summary;
    o.errors = request.errors;
  }
  if (o.fields && !request.wqe && !request.summary) o.commands = true;
}

bool export_perfetto(const Analysis& analysis, const std::string& path) {
  std::FILE* f = std::fopen(path.c_str(), "we");
  bool ok = f != nullptr && write_perfetto(analysis, f);
  if (f != nullptr && std::fclose(f) != 0) ok = false;
  if (!ok) std::fprintf(stderr, "hcasim-trace: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
  return ok;
}

// False: the export failed.
bool report(Reader& reader, const Request& request) {
  Analysis analysis(request.filter);
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) analysis.add(r, blob);
  analysis.finish();
  if (!request.perfetto.empty() && !export_perfetto(analysis, request.perfetto)) return false;
  if (!request.perfetto.empty() && !request.sections()) return true;
  if (request.json)
    print_json(analysis, request.report, reader.warning(), stdout);
  else
    print_text(analysis, request.report, stdout);
  return true;
}

// A word of letters that is no file; run_verb() does not know it.
bool is_misspelt_verb(const std::string& word) {
  std::error_code ec;
  return !word.empty() && word.find_first_of("-/.") == std::string::npos &&
         !std::filesystem::exists(word, ec);
}

int run(int argc, char** argv) {
  int status = 0;
  if (run_verb(argc, argv, &status)) return status;
  if (argc > 1 && is_misspelt_verb(argv[1])) {
    std::fprintf(stderr, "hcasim-trace: there is no verb and no file \"%s\"; verbs: %s\n", argv[1],
                 verb_names().c_str());
    return 2;
  }
  CLI::App app(kAbout, "hcasim trace");
  Request request;
  add_options(app, request);
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;

  if (request.points) {
    print_points();
    return 0;
  }
  if (request.path.empty()) {
    std::fprintf(stderr, "hcasim-trace: no trace file named; see --help\n");
    return 2;
  }
  choose_sections(request);
  if (const std::string wrong =
          hcasim::command::check_outputs({{"--perfetto", request.perfetto}}, {request.path});
      !wrong.empty()) {
    std::fprintf(stderr, "hcasim-trace: %s\n", wrong.c_str());
    return 2;
  }

  Reader reader;
  std::string err;
  if (!reader.open(request.path, &err)) {
    std::fprintf(stderr, "hcasim-trace: %s\n", err.c_str());
    return 2;
  }
  int rc = 0;
  if (request.raw)
    rc = print_raw(reader, request.report.limit);
  else if (!report(reader, request))
    return 2;
  if (!reader.warning().empty()) {
    std::fprintf(stderr, "hcasim-trace: %s: %s\n", request.path.c_str(), reader.warning().c_str());
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
