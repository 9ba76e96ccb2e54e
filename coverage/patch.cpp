// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>

#include "coverage/binary.h"

namespace hcasim::coverage {
namespace {

struct Hunk {
  std::string file;
  unsigned start = 0;              ///< line of the patched file
  std::vector<std::string> lines;  ///< of the patched file
  std::vector<bool> added;
};

/// A path of a diff's header, without the folder that git and quilt put before it.
std::string clean(std::string name) {
  if (const auto tab = name.find('\t'); tab != std::string::npos) name.resize(tab);
  if (const auto slash = name.find('/'); slash != std::string::npos && name != "/dev/null") {
    const std::string first = name.substr(0, slash);
    if (first == "a" || first == "b" || first.find("linux") != std::string::npos || first == "new" ||
        first == "old")
      name.erase(0, slash + 1);
  }
  return name;
}

std::vector<Hunk> read_hunks(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  std::vector<Hunk> hunks;
  std::string file;
  unsigned old_left = 0, new_left = 0;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    if (old_left > 0 || new_left > 0) {
      const char kind = line.empty() ? ' ' : line[0];
      const std::string text = line.empty() ? line : line.substr(1);
      if (kind == '\\') continue;
      const bool removed = kind == '-', added = kind == '+';
      if ((!removed && !added && kind != ' ') || (!removed && new_left == 0) || (!added && old_left == 0))
        throw std::runtime_error(
            fmt::format("{}:{}: not a line of the hunk that its header announces", path, number));
      if (!added) old_left--;
      if (!removed) {
        new_left--;
        hunks.back().lines.push_back(text);
        hunks.back().added.push_back(added);
      }
    } else if (line.rfind("+++ ", 0) == 0) {
      file = clean(line.substr(4));
    } else if (line.rfind("@@ -", 0) == 0) {
      unsigned old_start = 0, old_count = 1, new_start = 0, new_count = 1;
      const auto plus = line.find(" +");
      if (file.empty() || plus == std::string::npos ||
          std::sscanf(line.c_str() + 4, "%u,%u", &old_start, &old_count) < 1 ||
          std::sscanf(line.c_str() + plus + 2, "%u,%u", &new_start, &new_count) < 1)
        throw std::runtime_error(fmt::format("{}:{}: no header of a unified diff's hunk", path, number));
      old_left = old_count;
      new_left = new_count;
      hunks.push_back({file, new_start, {}, {}});
    }
  }
  if (old_left > 0 || new_left > 0) throw std::runtime_error(fmt::format("{}: ends within a hunk", path));
  if (hunks.empty())
    throw std::runtime_error(fmt::format("{}: no unified diff (git diff, git format-patch, diff -u)", path));
  return hunks;
}

/// Where the hunk stands in the tree's file, the nearest place to where it says.
std::optional<unsigned> find_hunk(const std::vector<std::string>& file, const Hunk& hunk) {
  std::optional<unsigned> best;
  if (hunk.lines.empty() || file.size() < hunk.lines.size()) return best;
  for (std::size_t at = 0; at + hunk.lines.size() <= file.size(); at++) {
    if (!std::equal(hunk.lines.begin(), hunk.lines.end(), file.begin() + static_cast<std::ptrdiff_t>(at)))
      continue;
    const auto line = static_cast<unsigned>(at + 1);
    const auto distance = [&](unsigned n) { return n > hunk.start ? n - hunk.start : hunk.start - n; };
    if (!best || distance(line) < distance(*best)) best = line;
  }
  return best;
}

/// Less and less of the context around what is added, as patch(1) does with "fuzz"; what is added has to
/// stand there whole.
std::optional<unsigned> find_with_less(const std::vector<std::string>& file, Hunk hunk) {
  for (;;) {
    if (const auto at = find_hunk(file, hunk)) return *at;
    const bool front = !hunk.added.empty() && !hunk.added.front(),
               back = !hunk.added.empty() && !hunk.added.back();
    if (!front && !back) return {};
    if (front) {
      hunk.lines.erase(hunk.lines.begin());
      hunk.added.erase(hunk.added.begin());
      hunk.start++;
    }
    if (back) {
      hunk.lines.pop_back();
      hunk.added.pop_back();
    }
  }
}

}  // namespace

std::vector<AddedLine> read_patch(const std::string& path, const std::string& sources,
                                  std::vector<std::string>& missing) {
  std::vector<AddedLine> lines;
  std::map<std::string, std::vector<std::string>> tree;
  for (const Hunk& hunk : read_hunks(path)) {
    if (std::find(hunk.added.begin(), hunk.added.end(), true) == hunk.added.end()) continue;
    unsigned first = hunk.start;
    if (!sources.empty()) {
      const auto [file, fresh] = tree.try_emplace(hunk.file);
      if (fresh) {
        std::ifstream in(sources + "/" + hunk.file);
        for (std::string line; std::getline(in, line);) file->second.push_back(line);
      }
      const auto skipped =
          static_cast<unsigned>(std::find(hunk.added.begin(), hunk.added.end(), true) - hunk.added.begin());
      const auto at = find_with_less(file->second, hunk);
      if (!at) {
        missing.push_back(fmt::format("{}:{}", hunk.file, hunk.start));
        continue;
      }
      // Of what was found, the first line may be one of less context.
      const auto text = std::find(file->second.begin() + (*at - 1), file->second.end(), hunk.lines[skipped]);
      first = static_cast<unsigned>(text - file->second.begin()) + 1 - skipped;
    }
    for (std::size_t i = 0; i < hunk.lines.size(); i++)
      if (hunk.added[i]) lines.push_back({hunk.file, first + static_cast<unsigned>(i), hunk.lines[i]});
  }
  return lines;
}

std::vector<LineFate> fates(const std::vector<AddedLine>& lines, const std::vector<Coverage>& tests) {
  std::vector<LineFate> result;
  for (const AddedLine& line : lines) {
    LineFate fate{line, false, {}};
    const std::string name = from_root(line.file.front() == '/' ? line.file : "/" + line.file);
    for (const Coverage& test : tests) {
      const auto file = test.files.find(name);
      if (file == test.files.end()) continue;
      const auto count = file->second.lines.find(line.line);
      if (count == file->second.lines.end()) continue;
      fate.is_code = true;
      if (count->second > 0) fate.tests.push_back(test.test);
    }
    result.push_back(std::move(fate));
  }
  return result;
}

}  // namespace hcasim::coverage
