// SPDX-License-Identifier: BSD-3-Clause
/// Parser of the guest's kernel trace (text).
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

std::string trimmed(const std::string& s) {
  const std::size_t from = s.find_first_not_of(" \t\r");
  if (from == std::string::npos) return "";
  return s.substr(from, s.find_last_not_of(" \t\r") - from + 1);
}

/// Removes and returns the first word.
std::string word(std::string& rest) {
  rest = trimmed(rest);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  std::string w = rest.substr(0, end);
  rest = trimmed(rest.substr(end));
  return w;
}

/// "1234.567890" or "1234.567890123" to ns. Clocks with another unit (x86-tsc, counter) have no dot:
/// under an emulator that counts instructions the TSC counts ns, so such a number is taken as ns.
bool to_ns(const std::string& text, std::int64_t* ns) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos && !text.empty() && text.size() <= 18 &&
      text.find_first_not_of("0123456789") == std::string::npos) {
    *ns = std::strtoll(text.c_str(), nullptr, 10);
    return true;
  }
  if (dot == std::string::npos || dot == 0 || dot > 9 || text.size() == dot + 1 ||
      text.find_first_not_of("0123456789.") != std::string::npos ||
      text.find('.', dot + 1) != std::string::npos)
    return false;
  std::string fraction = text.substr(dot + 1, 9);
  fraction.resize(9, '0');
  *ns = std::strtoll(text.c_str(), nullptr, 10) * 1000000000 + std::strtoll(fraction.c_str(), nullptr, 10);
  return true;
}

/// The duration before the bar of a function graph ("1.234 us") in ns; -1: none.
std::int64_t duration(const std::string& text) {
  const std::size_t unit = text.find(" us");
  if (unit == std::string::npos) return -1;
  const std::size_t from = text.find_last_not_of("0123456789.", unit - 1);
  return std::llround(std::strtod(text.c_str() + (from == std::string::npos ? 0 : from + 1), nullptr) * 1000);
}

bool read_graph(const std::string& rest, bool entry, GuestEvent* g) {
  const std::size_t bar = rest.find('|');
  if (bar == std::string::npos) return false;
  std::string text = trimmed(rest.substr(bar + 1));
  if (!entry) {
    g->ends = true;
    g->name = text;
    return true;
  }
  g->name = text.substr(0, text.find('('));
  g->begins = !text.empty() && text.back() == '{';
  g->took_ns = g->begins ? -1 : duration(rest.substr(0, bar));
  return !g->name.empty();
}

}  // namespace

bool GuestTrace::read(const std::string& path, std::string* err) {
  std::ifstream in(path);
  if (!in) {
    *err = "cannot read " + path + ": " + std::strerror(errno);
    return false;
  }
  for (std::string line; std::getline(in, line);) add_line(line);
  if (!events.empty()) return true;
  *err = path +
         ": no line of a trace in it: wanted is the text that `trace-cmd report` prints, or tracefs' file "
         "`trace`, "
         "with times (tracer function; function_graph only as trace-cmd has it)";
  return false;
}

void GuestTrace::add_line(const std::string& line) {
  // TASK-PID [CPU] FLAGS SECONDS: event. trace-cmd omits the flags.
  const std::size_t open = line.find(" [");
  const std::size_t close = open == std::string::npos ? open : line.find(']', open);
  GuestEvent g;
  const auto other = [&] { other_lines++; };
  if (line.empty() || line[0] == '#') return;
  if (close == std::string::npos) return other();
  const std::string who = trimmed(line.substr(0, open));
  const std::size_t dash = who.rfind('-');
  if (dash == std::string::npos) return other();
  g.task = who.substr(0, dash);
  g.pid = std::strtoll(who.c_str() + dash + 1, nullptr, 10);
  g.cpu = static_cast<unsigned>(std::strtoul(line.c_str() + open + 2, nullptr, 10));
  std::string rest = line.substr(close + 1);
  bool timed = false;
  for (int i = 0; i < 2 && !timed; i++) {
    std::string time = word(rest);
    timed = !time.empty() && time.back() == ':' && to_ns(time.substr(0, time.size() - 1), &g.time_ns);
  }
  if (!timed) return other();
  const std::string first = word(rest);
  if (first == "function:") {
    g.name = word(rest);
    g.details = rest;
  } else if (first == "funcgraph_entry:" || first == "funcgraph_exit:") {
    if (!read_graph(rest, first == "funcgraph_entry:", &g)) return other();
  } else if (first.size() > 1 && first.back() == ':') {
    g.name = first.substr(0, first.size() - 1);
    g.details = rest;
  } else if (rest.compare(0, 2, "<-") == 0) {
    g.name = first;
    g.details = rest;
  } else {
    return other();
  }
  events.push_back(std::move(g));
}

}  // namespace hcasim::traces
