// SPDX-License-Identifier: BSD-3-Clause
/// hcasim-trace report
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "command/files.h"
#include "command/parse.h"
#include "traces/page.h"
#include "traces/reader.h"
#include "traces/verbs.h"

namespace hcasim::traces {
namespace {

int refuse(const std::string& text) {
  std::fprintf(stderr, "hcasim-trace: %s\n", text.c_str());
  return 2;
}

}  // namespace

int report_main(int argc, char** argv) {
  CLI::App app(
      "Writes a trace as one HTML page for a browser, which needs no network and nothing else: the time line "
      "of "
      "WQEs, the\n"
      "slowest and the failed ones with `why`, latencies by stage, rates, rules broken, commands, faults.\n"
      "Of a large trace only some WQEs are drawn one by one; the page says which.",
      "hcasim trace report");
  PageInput in;
  std::string out;
  app.add_option("FILE", in.path, "a trace file")->required();
  app.add_option("-o,--output", out, "the page; without it, the trace's name with .html; -: standard output")
      ->type_name("OUT.html");
  app.add_option("--coverage", in.coverage_path,
                 "an lcov tracefile: adds which lines and functions of the guest's driver were reached")
      ->type_name("FILE");
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  if (out.empty()) out = in.path + ".html";
  if (const std::string wrong = command::check_outputs({{"-o", out}}, {in.path, in.coverage_path});
      !wrong.empty())
    return refuse(wrong);
  std::string err;
  if (!in.coverage_path.empty() && !read_coverage(in.coverage_path, &in.coverage, &err)) return refuse(err);

  Reader reader;
  if (!reader.open(in.path, &err)) return refuse(err);
  Analysis analysis;
  Facts facts;
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) {
    analysis.add(r, blob);
    facts.add(r, blob);
  }
  analysis.finish();
  in.warning = reader.warning();
  in.analysis = &analysis;
  in.facts = &facts;
  std::string html;
  if (!page(in, PageLimits(), &html, &err)) return refuse(err);

  std::FILE* f = out == "-" ? stdout : std::fopen(out.c_str(), "wbe");
  bool ok = f != nullptr && std::fwrite(html.data(), 1, html.size(), f) == html.size();
  if (f != nullptr && (f == stdout ? std::fflush(f) : std::fclose(f)) != 0) ok = false;
  if (!ok) return refuse("cannot write " + out + ": " + std::strerror(errno));
  if (out != "-")
    fmt::print("{}: {} KiB, of {} WQEs and {} commands; open it in a browser\n", out,
               (html.size() + 1023) / 1024, analysis.wqes().size(), analysis.commands().size());
  if (in.warning.empty()) return 0;
  refuse(in.path + ": " + in.warning);
  return 3;
}

}  // namespace hcasim::traces
