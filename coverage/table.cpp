// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/table.h"

#include <fmt/format.h>

#include <iterator>
#include <map>

namespace hcasim::coverage {
namespace {

void add(Share& sum, const Share& other) {
  sum.reached += other.reached;
  sum.all += other.all;
}
void add(FileShares& sum, const FileShares& other) {
  add(sum.functions, other.functions);
  add(sum.lines, other.lines);
  add(sum.branches, other.branches);
}

std::string cell(const Share& share) {
  if (share.all == 0) return "-";
  return fmt::format("{}/{} {:>3}%", share.reached, share.all, share.reached * 100 / share.all);
}

std::string folder(const std::string& file) {
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? std::string(".") : file.substr(0, slash);
}

/// The end of a long name says more than its beginning.
std::string fit(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : "..." + name.substr(name.size() - width + 3);
}

std::string functions(const Coverage& coverage, bool missing) {
  std::string out;
  auto to = std::back_inserter(out);
  for (const auto& [name, file] : coverage.files) {
    bool first = true;
    for (const auto& [function, count] : file.functions) {
      if (missing && count.count > 0) continue;
      if (first) fmt::format_to(to, "{}\n", name);
      first = false;
      fmt::format_to(to, "  {:>12}  {:>6}  {}\n", count.count, count.line, fit(function, 70));
    }
  }
  return out;
}

/// The tests that ran a line, in lines of their own.
std::string tests_of(const LineFate& fate) {
  std::string out, line;
  for (const std::string& test : fate.tests) {
    const std::string name = fit(test.empty() ? std::string("(no name)") : test, 70);
    if (!line.empty() && line.size() + name.size() + 2 > 80) {
      out += fmt::format("{:>16}{},\n", "", line);
      line.clear();
    }
    line += (line.empty() ? (out.empty() ? "in " : "   ") : ", ") + name;
  }
  if (!line.empty()) out += fmt::format("{:>16}{}\n", "", line);
  return out;
}

}  // namespace

std::string table(const Coverage& coverage, By by, bool missing) {
  if (by == By::kFunction) return functions(coverage, missing);
  std::map<std::string, FileShares> rows;
  FileShares sum;
  for (const auto& [name, file] : coverage.files) {
    const FileShares share = shares(file);
    add(rows[by == By::kFile ? name : folder(name)], share);
    add(sum, share);
  }
  std::string out;
  auto to = std::back_inserter(out);
  const auto row = [&](const std::string& name, const FileShares& share) {
    fmt::format_to(to, "{:<46} {:>15} {:>17} {:>18}\n", fit(name, 46), cell(share.functions),
                   cell(share.lines), cell(share.branches));
  };
  fmt::format_to(to, "{:<46} {:>15} {:>17} {:>18}\n", "reached", "functions", "lines", "ways of branches");
  for (const auto& [name, share] : rows) row(name, share);
  row("all", sum);
  return out;
}

std::string patch_table(const std::vector<LineFate>& lines, const std::vector<std::string>& missing) {
  std::string out, file;
  auto to = std::back_inserter(out);
  std::size_t code = 0, ran = 0;
  for (const LineFate& fate : lines) {
    if (fate.added.file != file) {
      file = fate.added.file;
      fmt::format_to(to, "{}\n", file);
    }
    code += fate.is_code;
    ran += !fate.tests.empty();
    std::string text = fate.added.text.substr(0, 60);
    for (char& c : text)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    fmt::format_to(to, "  {:>6} {} {}\n", fate.added.line,
                   !fate.is_code        ? "      "
                   : fate.tests.empty() ? "NOT   "
                                        : "ran   ",
                   text);
    out += tests_of(fate);
  }
  for (const std::string& hunk : missing)
    fmt::format_to(to, "the sources have no such text: the hunk at {}\n", hunk);
  fmt::format_to(to, "{} lines added, {} with code of their own: {} ran, {} did not\n", lines.size(), code,
                 ran, code - ran);
  return out;
}

}  // namespace hcasim::coverage
