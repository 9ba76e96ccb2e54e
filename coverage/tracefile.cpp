// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/tracefile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace hcasim::coverage {
namespace {

constexpr unsigned kMostLines = 10'000'000;  // of a source file; a larger number is damage
constexpr unsigned kMostBranches = 10'000;   // of one line

std::optional<std::uint64_t> sum_of(const std::optional<std::uint64_t>& a,
                                    const std::optional<std::uint64_t>& b) {
  if (a && b) return *a + *b;
  return {};
}

void add_branch(BranchCount& sum, const BranchCount& other) {
  if (!other.reached) return;
  if (!sum.reached) {
    sum = other;
    return;
  }
  sum.straight = sum_of(sum.straight, other.straight);
  sum.jumped = sum_of(sum.jumped, other.jumped);
}

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  std::vector<Coverage> read() {
    std::ifstream in(path_);
    if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path_));
    for (std::string line; std::getline(in, line);) {
      number_++;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      const auto colon = line.find(':');
      const std::string_view key(line.data(), std::min(colon, line.size()));
      record(key, colon == std::string::npos ? std::string_view() : std::string_view(line).substr(colon + 1));
    }
    // A run that reached nothing has a file without a line.
    if (number_ > 0 && found_.empty())
      throw std::runtime_error(fmt::format(
          "{}: no lcov tracefile: it has no line SF:FILE (boot --coverage DIR writes DIR/TEST.info)", path_));
    if (file_ != nullptr) fail("the file ends within a source file's part: end_of_record is missing");
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", path_, number_, what));
  }

  std::vector<std::string_view> fields(std::string_view text, std::size_t count) const {
    std::vector<std::string_view> parts;
    while (parts.size() + 1 < count) {
      const auto comma = text.find(',');
      if (comma == std::string_view::npos)
        fail(fmt::format("{} values separated by commas are wanted", count));
      parts.push_back(text.substr(0, comma));
      text.remove_prefix(comma + 1);
    }
    parts.push_back(text);
    return parts;
  }

  std::uint64_t number(std::string_view text, std::uint64_t most = ~std::uint64_t{0}) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > most)
      fail(fmt::format("'{}' is no number that fits here", text));
    return value;
  }

  void record(std::string_view key, std::string_view text) {
    if (key == "TN") {
      test_ = text;
    } else if (key == "SF") {
      if (file_ != nullptr) fail("SF within another source file's part");
      auto at =
          std::find_if(found_.begin(), found_.end(), [&](const Coverage& c) { return c.test == test_; });
      if (at == found_.end()) at = found_.insert(found_.end(), Coverage{test_, {}});
      file_ = &at->files[std::string(text)];
    } else if (key == "end_of_record") {
      file_ = nullptr;
    } else if (key == "FN" || key == "FNDA" || key == "DA" || key == "BRDA") {
      if (file_ == nullptr) fail(fmt::format("{} without SF before it", key));
      in_file(key, text);
    }  // others are sums, or of later versions
  }

  void in_file(std::string_view key, std::string_view text) {
    if (key == "FN") {
      auto parts = fields(text, 2);
      // Newer versions have the last line between.
      if (const auto comma = parts[1].find(',');
          comma != std::string_view::npos && comma > 0 && parts[1].find_first_not_of("0123456789") == comma)
        parts[1].remove_prefix(comma + 1);
      file_->functions[std::string(parts[1])].line = static_cast<unsigned>(number(parts[0], kMostLines));
    } else if (key == "FNDA") {
      const auto parts = fields(text, 2);
      file_->functions[std::string(parts[1])].count += number(parts[0]);
    } else if (key == "DA") {
      const auto comma = text.find(',');
      if (comma == std::string_view::npos) fail("DA has a line and a count");
      const auto rest = text.substr(comma + 1);
      file_->lines[static_cast<unsigned>(number(text.substr(0, comma), kMostLines))] +=
          number(rest.substr(0, rest.find(',')));
    } else {
      const auto parts = fields(text, 4);
      const auto index = number(parts[2], kMostBranches);
      auto& branches = file_->branches[static_cast<unsigned>(number(parts[0], kMostLines))];
      if (branches.size() <= index / 2) branches.resize(index / 2 + 1);
      BranchCount& branch = branches[index / 2];
      if (parts[3] == "-") return;
      branch.reached = true;
      auto& way = index % 2 == 0 ? branch.straight : branch.jumped;
      way = way.value_or(0) + number(parts[3]);
    }
  }

  std::string path_;
  std::size_t number_ = 0;
  std::string test_;
  std::vector<Coverage> found_;
  FileCoverage* file_ = nullptr;
};

}  // namespace

void add(Coverage& sum, const Coverage& other) {
  for (const auto& [name, file] : other.files) {
    FileCoverage& to = sum.files[name];
    for (const auto& [function, count] : file.functions) {
      FunctionCount& mine = to.functions[function];
      mine.line = count.line;
      mine.count += count.count;
      mine.called += count.called;
    }
    for (const auto& [line, count] : file.lines) to.lines[line] += count;
    for (const auto& [line, branches] : file.branches) {
      auto& mine = to.branches[line];
      if (mine.size() < branches.size()) mine.resize(branches.size());
      for (std::size_t i = 0; i < branches.size(); i++) add_branch(mine[i], branches[i]);
    }
  }
}

std::vector<Coverage> read_tracefile(const std::string& path) { return Parser(path).read(); }

FileShares shares(const FileCoverage& file) {
  FileShares result;
  for (const auto& [name, function] : file.functions) {
    result.functions.all++;
    result.functions.reached += function.count > 0;
  }
  for (const auto& [line, count] : file.lines) {
    result.lines.all++;
    result.lines.reached += count > 0;
  }
  for (const auto& [line, branches] : file.branches)
    for (const BranchCount& branch : branches) {
      result.branches.all += 2;
      result.branches.reached += branch.straight.value_or(0) > 0;
      result.branches.reached += branch.jumped.value_or(0) > 0;
    }
  return result;
}

std::string to_tracefile(const Coverage& coverage) {
  std::string out;
  auto to = std::back_inserter(out);
  for (const auto& [name, file] : coverage.files) {
    const FileShares share = shares(file);
    fmt::format_to(to, "TN:{}\nSF:{}\n", coverage.test, name);
    for (const auto& [function, count] : file.functions)
      fmt::format_to(to, "FN:{},{}\n", count.line, function);
    for (const auto& [function, count] : file.functions)
      fmt::format_to(to, "FNDA:{},{}\n", count.count, function);
    fmt::format_to(to, "FNF:{}\nFNH:{}\n", share.functions.all, share.functions.reached);
    for (const auto& [line, branches] : file.branches)
      for (std::size_t i = 0; i < branches.size(); i++) {
        const BranchCount& branch = branches[i];
        const auto way = [&](const std::optional<std::uint64_t>& count) {
          return branch.reached && count ? fmt::format("{}", *count) : std::string("-");
        };
        fmt::format_to(to, "BRDA:{},0,{},{}\n", line, 2 * i, way(branch.straight));
        fmt::format_to(to, "BRDA:{},0,{},{}\n", line, 2 * i + 1, way(branch.jumped));
      }
    if (!file.branches.empty())
      fmt::format_to(to, "BRF:{}\nBRH:{}\n", share.branches.all, share.branches.reached);
    for (const auto& [line, count] : file.lines) fmt::format_to(to, "DA:{},{}\n", line, count);
    fmt::format_to(to, "LF:{}\nLH:{}\nend_of_record\n", share.lines.all, share.lines.reached);
  }
  return out;
}

std::string to_json(const Coverage& coverage) {
  auto files = nlohmann::json::array();
  for (const auto& [name, file] : coverage.files) {
    auto functions = nlohmann::json::array();
    for (const auto& [function, count] : file.functions)
      functions.push_back({{"name", function},
                           {"start_line", count.line},
                           {"execution_count", count.count},
                           {"called", count.called}});
    auto lines = nlohmann::json::array();
    for (const auto& [line, count] : file.lines) {
      auto branches = nlohmann::json::array();
      if (const auto at = file.branches.find(line); at != file.branches.end())
        for (const BranchCount& branch : at->second) {
          const auto way = [&](const std::optional<std::uint64_t>& n) {
            return n ? nlohmann::json(*n) : nlohmann::json(nullptr);
          };
          branches.push_back({{"fallthrough", true}, {"count", way(branch.straight)}});
          branches.push_back({{"fallthrough", false}, {"count", way(branch.jumped)}});
        }
      lines.push_back({{"line_number", line}, {"count", count}, {"branches", std::move(branches)}});
    }
    files.push_back({{"file", name}, {"functions", std::move(functions)}, {"lines", std::move(lines)}});
  }
  const nlohmann::json whole = {
      {"format_version", "1"}, {"test", coverage.test}, {"files", std::move(files)}};
  return whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace hcasim::coverage
