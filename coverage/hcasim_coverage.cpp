// SPDX-License-Identifier: BSD-3-Clause
/// hcasim-coverage: which lines of the guest's unmodified drivers ran.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "command/files.h"
#include "command/parse.h"
#include "command/run.h"
#include "coverage/binary.h"
#include "coverage/executed.h"
#include "coverage/join.h"
#include "coverage/measure.h"
#include "coverage/patch.h"
#include "coverage/table.h"
#include "coverage/tracefile.h"

namespace {

using namespace hcasim::coverage;

void write_file(const std::string& path, const std::string& text) {
  if (path.empty() || path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) throw std::runtime_error(fmt::format("{}: cannot be written", path));
}

void append_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(fmt::format("{}: cannot be written", path));
}

/// "NAME=FILE" or "NAME=FILE,DEBUG".
struct Named {
  std::string name, file, debug;
};
Named named(const std::string& text, const char* option) {
  const auto equal = text.find('=');
  if (equal == std::string::npos || equal == 0)
    throw std::runtime_error(
        fmt::format("{} takes NAME=FILE or NAME=FILE,FILE-WITH-DEBUG-INFORMATION, not '{}'", option, text));
  const auto comma = text.find(',', equal);
  return {text.substr(0, equal),
          text.substr(equal + 1, comma == std::string::npos ? comma : comma - equal - 1),
          comma == std::string::npos ? "" : text.substr(comma + 1)};
}

struct Resolve {
  std::string executed, loads, test, out, json;
  std::vector<std::string> modules, libraries, also;
};

int resolve(const Resolve& options) {
  const Executed executed = read_executed(options.executed);
  std::vector<Load> loads;
  if (!options.loads.empty()) loads = read_loads(options.loads);
  std::string places;
  if (executed.left_out > 0)
    std::fprintf(stderr,
                 "hcasim-coverage: %s had no room for %u instructions: what it lacks counts as not run\n",
                 options.executed.c_str(), executed.left_out);
  if (executed.uncounted())
    std::fprintf(
        stderr,
        "hcasim-coverage: %s has %zu instructions, none of them counted: from QEMU 9.0 on counts are "
        "written when QEMU ends by itself, and this one was killed\n",
        options.executed.c_str(), executed.records.size());
  Coverage coverage;
  coverage.test = options.test;
  for (const std::string& text : options.modules) {
    const Named module = named(text, "--module");
    const Binary binary = read_binary(module.file, module.debug);
    const Ran ran = ran_of_module(binary, module.name, executed, loads);
    if (ran.loads == 0)
      std::fprintf(stderr, "hcasim-coverage: the guest has not said that it loaded %s\n",
                   module.name.c_str());
    // A few are of modules that had the place before; many say that the file is another module.
    if (ran.foreign > ran.steps.size() / 10)
      std::fprintf(
          stderr,
          "hcasim-coverage: %zu of %zu instructions at %s's places are not those of %s: is that what the "
          "guest loaded?\n",
          ran.foreign, ran.foreign + ran.steps.size(), module.name.c_str(), module.file.c_str());
    add(coverage, measure(binary, ran, options.also));
  }
  for (std::size_t i = 0; i < options.libraries.size(); i++) {
    const Named library = named(options.libraries[i], "--library");
    const Binary binary = read_binary(library.file, library.debug);
    add(coverage,
        measure(binary, ran_of_library(binary, static_cast<unsigned>(i + 1), executed), options.also));
    for (const executed_mapping& mapping : executed.mappings)
      if (mapping.library == i + 1) places += library_load(library.name, mapping.base);
  }
  if (!options.loads.empty() && !places.empty()) append_file(options.loads, places);
  write_file(options.out, to_tracefile(coverage));
  if (!options.json.empty()) write_file(options.json, to_json(coverage));
  return 0;
}

struct Line {
  std::string what, trace, loads;  ///< what: FILE:LINE, the end of a file's name will do; empty: all
  std::vector<std::string> modules, libraries;
};

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0 &&
         (name.size() == end.size() || name[name.size() - end.size() - 1] == '/');
}

void print_work(const LineWork& work) {
  for (const auto& [title, list] : {std::pair("WQEs", &work.wqes), std::pair("commands", &work.commands)}) {
    if (list->empty()) continue;
    fmt::print("  {}: {} {}\n", title, list->size(), list == &work.wqes ? "doorbells" : "given");
    for (std::size_t i = 0; i < list->size() && i < 20; i++) fmt::print("    {}\n", (*list)[i]);
    if (list->size() > 20) fmt::print("    ... and {} more\n", list->size() - 20);
  }
}

int line(const Line& options) {
  std::vector<std::unique_ptr<Binary>> binaries;
  std::vector<std::unique_ptr<Locator>> locators;
  std::vector<Located> modules;
  std::vector<std::string> both = options.modules;
  both.insert(both.end(), options.libraries.begin(), options.libraries.end());
  for (const std::string& text : both) {
    const Named module = named(text, "--module, --library");
    binaries.push_back(std::make_unique<Binary>(read_binary(module.file, module.debug)));
    locators.push_back(std::make_unique<Locator>(*binaries.back(), module.debug));
    modules.push_back({module.name, binaries.back().get(), locators.back().get()});
  }
  const Joined joined = join(options.trace, modules, read_loads(options.loads));
  const auto colon = options.what.rfind(':');
  if (!options.what.empty() && (colon == std::string::npos ||
                                options.what.find_first_not_of("0123456789", colon + 1) != std::string::npos))
    throw std::runtime_error(fmt::format("'{}' is no FILE:LINE, such as en_tx.c:612", options.what));
  bool any = false;
  if (options.what.empty()) fmt::print("{:>9} {:>9} {:>9}  line\n", "writes", "doorbells", "commands");
  for (const auto& [source, work] : joined.lines) {
    if (options.what.empty()) {
      fmt::print("{:>9} {:>9} {:>9}  {}:{} {}\n", work.writes, work.wqes.size(), work.commands.size(),
                 source.file, source.line, source.function);
      any = true;
      continue;
    }
    if (!ends_with(source.file, options.what.substr(0, colon)) ||
        std::to_string(source.line) != options.what.substr(colon + 1))
      continue;
    fmt::print("{}:{} in {}: {} writes to registers\n", source.file, source.line, source.function,
               work.writes);
    print_work(work);
    any = true;
  }
  if (options.what.empty())
    fmt::print(
        "{} writes to registers, {} of them by code of others: modules, libraries, programs, the kernel\n",
        joined.writes, joined.elsewhere);
  if (!any)
    fmt::print("{} wrote to no register in this trace; without FILE:LINE all lines that did are listed\n",
               options.what);
  return any ? 0 : 1;
}

std::vector<Coverage> read_all(const std::vector<std::string>& files) {
  std::vector<Coverage> all;
  for (const std::string& file : files)
    for (Coverage& coverage : read_tracefile(file)) all.push_back(std::move(coverage));
  return all;
}

Coverage sum_of(const std::vector<Coverage>& all) {
  Coverage sum;
  for (const Coverage& coverage : all) add(sum, coverage);
  if (all.size() == 1) sum.test = all.front().test;
  return sum;
}

/// Names of files below a source tree, as genhtml wants them.
Coverage rooted(Coverage coverage, const std::string& root) {
  if (root.empty()) return coverage;
  Coverage moved;
  moved.test = coverage.test;
  for (auto& [name, file] : coverage.files) {
    std::string path = root;
    path += '/';
    path += name;
    if (std::ifstream(path)) moved.files[std::move(path)] = std::move(file);
  }
  if (moved.files.empty()) throw std::runtime_error(fmt::format("{} has none of the source files", root));
  return moved;
}

std::string patch_json(const std::vector<LineFate>& lines, const std::vector<std::string>& missing) {
  auto list = nlohmann::json::array();
  for (const LineFate& fate : lines)
    list.push_back({{"file", fate.added.file},
                    {"line", fate.added.line},
                    {"text", fate.added.text},
                    {"code", fate.is_code},
                    {"ran", !fate.tests.empty()},
                    {"tests", fate.tests}});
  const nlohmann::json whole = {{"lines", std::move(list)}, {"not_found", missing}};
  return whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run(int argc, char** argv) {
  CLI::App app("Which lines, branches and functions of the guest's unmodified drivers ran.",
               "hcasim coverage");
  app.require_subcommand(1);

  Resolve options;
  auto* resolve_verb = app.add_subcommand(
      "resolve", "what QEMU's plugin counted, as lines of the source (boot --coverage does it)");
  resolve_verb->add_option("--executed", options.executed, "the plugin's file")->required();
  resolve_verb->add_option("--loads", options.loads, "where the guest had its modules");
  resolve_verb->add_option("--module", options.modules,
                           "NAME=KO[,FILE-WITH-DEBUG-INFORMATION]; more than once: several");
  resolve_verb->add_option("--library", options.libraries,
                           "NAME=SO[,FILE-WITH-DEBUG-INFORMATION], in the order of `pages`");
  resolve_verb->add_option("--also", options.also,
                           "folders and files of the source beside those of the modules");
  resolve_verb->add_option("--test", options.test, "name of the test");
  resolve_verb->add_option("-o,--output", options.out, "lcov's tracefile (standard output)");
  resolve_verb->add_option("--json", options.json, "the same as JSON, like gcov's");

  std::vector<std::string> files;
  std::string out, root, by = "directory", patch, sources, json;
  bool missing = false;
  auto* pages_verb = app.add_subcommand("pages", "the pages of shared libraries, for QEMU's plugin");
  pages_verb->add_option("LIBRARY", files, "libraries as the guest has them")->required();
  pages_verb->add_option("-o,--output", out, "the plugin's pages=FILE")->required();

  auto* merge_verb = app.add_subcommand("merge", "adds tracefiles of several tests");
  merge_verb->add_option("FILE", files, "tracefiles")->required();
  merge_verb->add_option("-o,--output", out, "tracefile (standard output)");
  merge_verb->add_option("--json", json, "the same as JSON, like gcov's");
  merge_verb->add_option("--root", root,
                         "the tree of the sources, put before the names of its files; others are left out");

  auto* table_verb = app.add_subcommand("table", "a table by folder, file or function");
  table_verb->add_option("FILE", files, "tracefiles; several are added")->required();
  table_verb->add_option("--by", by, "directory, file or function")
      ->check(CLI::IsMember({"directory", "file", "function"}));
  table_verb->add_flag("--missing", missing, "with --by function: those that did not run");

  auto* patch_verb = app.add_subcommand(
      "patch", "of the lines that a patch adds: which ran, in which test, and which did not");
  patch_verb->add_option("PATCH", patch, "a unified diff")->required();
  patch_verb->add_option("FILE", files, "tracefiles, each of a test")->required();
  patch_verb->add_option("--sources", sources,
                         "the tree that the modules were built from: finds lines that have moved");
  patch_verb->add_option("--json", json, "the same as JSON");

  Line line_options;
  auto* line_verb = app.add_subcommand(
      "line", "the WQEs and commands that a line of a driver or library caused; of a trace with guest_pc=on");
  line_verb->add_option("LINE", line_options.what, "FILE:LINE; none: all lines that write to registers");
  line_verb->add_option("--trace", line_options.trace, "the trace")->required();
  line_verb->add_option("--loads", line_options.loads, "where the guest had its modules (DIR/TEST.loads)")
      ->required();
  line_verb
      ->add_option("--module", line_options.modules,
                   "NAME=KO[,FILE-WITH-DEBUG-INFORMATION]; more than once: several")
      ->required();
  line_verb->add_option("--library", line_options.libraries,
                        "NAME=SO[,FILE-WITH-DEBUG-INFORMATION], as in the run's `resolve`");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;

  std::vector<std::string> read = files;
  read.insert(read.end(), {patch, options.executed, options.loads});
  if (const std::string wrong = hcasim::command::check_outputs(
          {{"-o", out}, {"--json", json}, {"-o", options.out}, {"--json", options.json}}, read);
      !wrong.empty())
    throw std::runtime_error(wrong);
  if (resolve_verb->parsed()) return resolve(options);
  if (line_verb->parsed()) return line(line_options);
  if (pages_verb->parsed()) {
    const std::vector<page_entry> entries = library_pages(files);
    write_file(
        out, std::string(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof entries[0]));
    return 0;
  }
  if (patch_verb->parsed()) {
    std::vector<std::string> not_found;
    const auto lines = fates(read_patch(patch, sources, not_found), read_all(files));
    fmt::print("{}", patch_table(lines, not_found));
    if (!json.empty()) write_file(json, patch_json(lines, not_found));
    return 0;
  }
  const Coverage sum = sum_of(read_all(files));
  if (table_verb->parsed()) {
    fmt::print("{}", table(sum,
                           by == "function" ? By::kFunction
                           : by == "file"   ? By::kFile
                                            : By::kDirectory,
                           missing));
    return 0;
  }
  const Coverage moved = rooted(sum, root);
  if (!out.empty() || json.empty()) write_file(out, to_tracefile(moved));
  if (!json.empty()) write_file(json, to_json(moved));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return hcasim::command::run("hcasim-coverage", run, argc, argv); }
