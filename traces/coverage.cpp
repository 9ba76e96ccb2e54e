// SPDX-License-Identifier: BSD-3-Clause
#include "traces/coverage.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace hcasim::traces {
namespace {

struct Section {
  std::map<std::uint64_t, bool> lines;             // by number: was it reached
  std::map<std::string, bool> functions;           // by name, or by FNL's number
  std::uint64_t lf = 0, lh = 0, fnf = 0, fnh = 0;  // the file's own sums, if it has no details
};

/// "12,7,rest" from *p on: the number, and *p behind its comma. false: none.
bool number(const char** p, double* v) {
  char* end = nullptr;
  *v = std::strtod(*p, &end);
  if (end == *p || !(*v > -1e18 && *v < 1e18)) return false;
  *p = *end == ',' ? end + 1 : end;
  return *end == ',' || *end == '\0';
}

void reached(std::map<std::string, bool>* functions, const std::string& name, bool hit) {
  bool& was = (*functions)[name];
  was = was || hit;
}

/// false: the line is not as lcov writes it.
bool add(Section* s, const char* key, std::size_t len, const char* p) {
  const auto is = [&](const char* name) {
    return std::strlen(name) == len && std::strncmp(key, name, len) == 0;
  };
  double a = 0, b = 0;
  if (is("DA")) {
    if (!number(&p, &a) || a < 0 || !number(&p, &b)) return false;
    bool& hit = s->lines[static_cast<std::uint64_t>(a)];
    hit = hit || b > 0;
  } else if (is("FN")) {  // FN:line,name or FN:line,last line,name
    if (!number(&p, &a)) return false;
    const char* name = p;
    if (number(&p, &b) && *p != '\0') name = p;
    reached(&s->functions, name, false);
  } else if (is("FNDA")) {
    if (!number(&p, &a)) return false;
    reached(&s->functions, p, a > 0);
  } else if (is("FNL")) {
    if (!number(&p, &a)) return false;
    reached(&s->functions, "#" + std::to_string(static_cast<std::int64_t>(a)), false);
  } else if (is("FNA")) {
    if (!number(&p, &a) || !number(&p, &b)) return false;
    reached(&s->functions, "#" + std::to_string(static_cast<std::int64_t>(a)), b > 0);
  } else if (is("LF") || is("LH") || is("FNF") || is("FNH")) {
    if (!number(&p, &a) || a < 0) return false;
    std::uint64_t& sum = is("LF") ? s->lf : is("LH") ? s->lh : is("FNF") ? s->fnf : s->fnh;
    sum = std::max(sum, static_cast<std::uint64_t>(a));
  }
  return true;
}

std::uint64_t hits(const std::map<std::string, bool>& m) {
  return static_cast<std::uint64_t>(
      std::count_if(m.begin(), m.end(), [](const auto& x) { return x.second; }));
}

CoverageFile sum(const std::string& path, const Section& s) {
  CoverageFile f;
  f.path = path;
  f.lines = s.lines.empty() ? s.lf : s.lines.size();
  f.lines_hit = s.lines.empty()
                    ? std::min(s.lh, s.lf)
                    : static_cast<std::uint64_t>(std::count_if(s.lines.begin(), s.lines.end(),
                                                               [](const auto& x) { return x.second; }));
  f.functions = s.functions.empty() ? s.fnf : s.functions.size();
  f.functions_hit = s.functions.empty() ? std::min(s.fnh, s.fnf) : hits(s.functions);
  return f;
}

}  // namespace

bool read_coverage(const std::string& path, std::vector<CoverageFile>* files, std::string* err) {
  files->clear();
  std::FILE* in = std::fopen(path.c_str(), "re");
  if (in == nullptr) {
    *err = path + ": " + std::strerror(errno);
    return false;
  }
  std::map<std::string, Section> sections;
  Section* section = nullptr;
  std::vector<char> line(16384);
  std::uint64_t n = 0;
  bool ok = true, begins = true;
  while (ok && std::fgets(line.data(), static_cast<int>(line.size()), in) != nullptr) {
    std::size_t len = std::strlen(line.data());
    const bool here = begins;  // else the rest of a line that is longer than any of lcov's
    begins = len != 0 && line[len - 1] == '\n';
    if (!here) continue;
    n++;
    while (len != 0 && (line[len - 1] == '\n' || line[len - 1] == '\r')) line[--len] = '\0';
    const char* colon = std::strchr(line.data(), ':');
    if (colon == nullptr) {
      if (std::strcmp(line.data(), "end_of_record") == 0) section = nullptr;
      continue;
    }
    const auto key = static_cast<std::size_t>(colon - line.data());
    if (key == 2 && std::strncmp(line.data(), "SF", 2) == 0)
      section = &sections[colon + 1];
    else if (section != nullptr)
      ok = add(section, line.data(), key, colon + 1);
  }
  std::fclose(in);
  if (!ok) {
    *err = path + ":" + std::to_string(n) + ": not a line of an lcov tracefile";
    return false;
  }
  if (sections.empty()) {
    *err = path + ": no lcov tracefile: it has no line SF:FILE (make one with geninfo or lcov --capture)";
    return false;
  }
  for (const auto& [name, s] : sections) files->push_back(sum(name, s));
  return true;
}

}  // namespace hcasim::traces
