// SPDX-License-Identifier: BSD-3-Clause
// hcasim-state: saved states in words. Exit status: 0, 1 if two states differ, 2 if a file is no state.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "card/state/tagged_text.h"
#include "command/parse.h"
#include "command/run.h"

namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

// What is wrong with a file, with its name.
template <class F>
auto of_file(const std::string& path, F read) {
  try {
    return read();
  } catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
}

std::string cut(const std::string& value, bool whole) {
  constexpr std::size_t kMost = 200;
  return whole || value.size() <= kMost
             ? value
             : value.substr(0, kMost) + fmt::format("... ({} characters)", value.size());
}

int show(const std::string& path, const std::string& below, bool zeros, bool whole) {
  const std::string file = contents(path);
  const auto line = [&](const std::string& at, const std::string& value) {
    if (at.compare(0, below.size(), below) != 0) return;
    if (zeros || (value != "0" && value != "none" && value != "no elements"))
      fmt::print("{} = {}\n", at, cut(value, whole));
  };
  of_file(path, [&] { hcasim::saved::list(file, line); });
  return 0;
}

// How many values the parts of the state have, to the depth of `levels` names.
int sizes(const std::string& path, unsigned levels) {
  const std::string file = contents(path);
  std::map<std::string, std::size_t> values;
  const auto count_one = [&](const std::string& at, const std::string&) {
    std::size_t end = 0;
    for (unsigned i = 0; i < levels && end != std::string::npos; ++i)
      end = at.find('.', end == 0 ? 0 : end + 1);
    ++values[at.substr(0, end)];
  };
  of_file(path, [&] { hcasim::saved::list(file, count_one); });
  fmt::print("{} bytes, version {} of the card\n", file.size(), hcasim::saved::version_of(file));
  for (const auto& [at, count] : values) fmt::print("{:>10} values  {}\n", count, at);
  return 0;
}

int diff(const std::string& first, const std::string& second, bool whole) {
  const std::string a = contents(first), b = contents(second);
  for (const auto& [path, file] : {std::pair{&first, &a}, std::pair{&second, &b}})
    of_file(*path, [&file = file] { return hcasim::saved::version_of(*file); });
  const auto counts =
      hcasim::saved::diff(a, b, [&](const std::string& line) { fmt::print("{}\n", cut(line, whole)); });
  if (counts.same()) {
    fmt::print("the two states are the same\n");
    return 0;
  }
  fmt::print("{} values differ, {} are in the first one only, {} in the second one only\n", counts.changed,
             counts.only_first, counts.only_second);
  return 1;
}

int run(int argc, char** argv) {
  CLI::App app{"Saved states of cards (savevm, migrate, replay --save): what is in them.", "hcasim state"};
  app.require_subcommand(1);
  std::string first, second, below;
  bool zeros = false, whole = false;
  unsigned levels = 3;
  CLI::App* const showing = app.add_subcommand("show", "each value with its path");
  showing->add_option("FILE", first, "the state")->required();
  showing->add_option("PATH", below, "only what begins so, such as card.model.port");
  showing->add_flag("--all", zeros, "also what is 0 or none");
  showing->add_flag("--whole", whole, "long values to their ends");
  CLI::App* const sizing = app.add_subcommand("size", "how many values of what there are");
  sizing->add_option("FILE", first, "the state")->required();
  sizing->add_option("--levels", levels, "names of the paths that are told apart")->check(CLI::Range(1, 10));
  CLI::App* const comparing = app.add_subcommand("diff", "what is different in two states");
  comparing->add_option("FIRST", first)->required();
  comparing->add_option("SECOND", second)->required();
  comparing->add_flag("--whole", whole, "long values to their ends");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  if (showing->parsed()) return show(first, below, zeros, whole);
  if (sizing->parsed()) return sizes(first, levels);
  return diff(first, second, whole);
}

}  // namespace

int main(int argc, char** argv) { return hcasim::command::run("hcasim-state", run, argc, argv); }
