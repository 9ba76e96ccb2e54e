// SPDX-License-Identifier: BSD-3-Clause
/// The guest's kernel trace: reading its text, and finding the offset of its clock.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

constexpr const char* kMark = "hcasim: t=";

std::string trimmed(const std::string& s) {
  const std::size_t from = s.find_first_not_of(" \t\r");
  if (from == std::string::npos) return "";
  return s.substr(from, s.find_last_not_of(" \t\r") - from + 1);
}

/// Takes the first word off.
std::string word(std::string& rest) {
  rest = trimmed(rest);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  std::string w = rest.substr(0, end);
  rest = trimmed(rest.substr(end));
  return w;
}

/// "1234.567890" or "1234.567890123" to ns. Clocks that count something else (x86-tsc, counter) have no dot:
/// under an emulator that counts instructions the TSC goes by ns, and is taken for that.
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

/// "1.234 us" to ns, of what stands before the bar of a function graph; -1: none.
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

/// A kind of events of the guest that cause, or are caused by, records of the HCA.
struct Tie {
  std::vector<std::int64_t> guest, hca;  // ns, sorted
  bool guest_first;
  std::int64_t most;  // ns between the two
};

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

std::vector<Tie> find_ties(const Timeline& t, const GuestTrace& guest) {
  Tie command{{}, {}, true, 1000000}, post{{}, {}, true, 200000}, interrupt{{}, {}, false, 200000};
  for (const GuestEvent& g : guest.events) {
    if (g.ends) continue;
    if (g.name == "cmd_work_handler")
      command.guest.push_back(g.time_ns);
    else if (one_of(g.name, {"mlx5_ib_post_send", "mlx5e_xmit", "mlx5i_sq_xmit"}))
      post.guest.push_back(g.time_ns);
    else if (one_of(g.name, {"mlx5_irq_int_handler", "irq_int_handler"}) ||
             (g.name == "irq_handler_entry" && g.details.find("mlx5") != std::string::npos))
      interrupt.guest.push_back(g.time_ns);
  }
  for (const CommandRow& c : t.wqes.commands())
    if (c.start != kNoTime) command.hca.push_back(c.start / 1000);
  for (const Record& r : t.others) {
    if (r.p() == Point::kDoorbell) post.hca.push_back(r.time_ps / 1000);
    if (r.p() == Point::kMsix) interrupt.hca.push_back(r.time_ps / 1000);
  }
  std::vector<Tie> ties;
  for (Tie* tie : {&command, &post, &interrupt}) {
    if (tie->guest.empty() || tie->hca.empty()) continue;
    std::sort(tie->guest.begin(), tie->guest.end());
    std::sort(tie->hca.begin(), tie->hca.end());
    ties.push_back(std::move(*tie));
  }
  return ties;
}

/// How many of the guest's events have their record in time, and how far off those are in all.
std::pair<std::size_t, std::int64_t> score(const std::vector<Tie>& ties, std::int64_t offset,
                                           std::size_t step) {
  std::size_t matched = 0;
  std::int64_t apart = 0;
  for (const Tie& tie : ties) {
    for (std::size_t i = 0; i < tie.guest.size(); i += step) {
      const std::int64_t at = tie.guest[i] + offset;
      std::int64_t gap = -1;
      if (tie.guest_first) {
        auto it = std::lower_bound(tie.hca.begin(), tie.hca.end(), at);
        if (it != tie.hca.end()) gap = *it - at;
      } else {
        auto it = std::upper_bound(tie.hca.begin(), tie.hca.end(), at);
        if (it != tie.hca.begin()) gap = at - *std::prev(it);
      }
      if (gap < 0 || gap > tie.most) continue;
      matched++;
      apart += gap;
    }
  }
  return {matched, apart};
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
  // TASK-PID [CPU] FLAGS SECONDS: what, where trace-cmd leaves the flags out.
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

ClockOffset find_offset(const Timeline& t, const GuestTrace& guest) {
  ClockOffset best;
  // The time is read first and written then, so no mark says too much, and the largest says it best.
  for (const GuestEvent& g : guest.events) {
    const std::size_t at = g.details.find(kMark);
    if (at == std::string::npos) continue;
    const std::int64_t offset =
        std::strtoll(g.details.c_str() + at + std::strlen(kMark), nullptr, 10) - g.time_ns;
    if (best.known && offset <= best.ns) continue;
    best.known = true;
    best.ns = offset;
    best.how = "the guest's mark of simulated time";
  }
  if (best.known) return best;

  const std::vector<Tie> ties = find_ties(t, guest);
  for (const Tie& tie : ties) best.of += tie.guest.size();
  constexpr std::size_t kAnchors = 8, kMostRecords = 4000, kSample = 200;
  const std::size_t step = std::max<std::size_t>(1, best.of / kSample);
  std::pair<std::size_t, std::int64_t> reached{0, 0};
  for (const Tie& tie : ties) {
    const std::size_t guest_step = std::max<std::size_t>(1, tie.guest.size() / kAnchors);
    const std::size_t hca_step = std::max<std::size_t>(1, tie.hca.size() / kMostRecords);
    for (std::size_t i = 0; i < tie.guest.size(); i += guest_step) {
      for (std::size_t k = 0; k < tie.hca.size(); k += hca_step) {
        const std::int64_t offset = tie.hca[k] - tie.guest[i];
        const auto s = score(ties, offset, step);
        if (s.first < reached.first || (s.first == reached.first && s.second >= reached.second && best.known))
          continue;
        reached = s;
        best.known = s.first != 0;
        best.ns = offset;
      }
    }
  }
  if (!best.known) return best;
  // Those tried were of some events only. One whose way to its record is shorter still stands behind it now.
  const std::int64_t about = best.ns;
  reached = score(ties, about, 1);
  for (const Tie& tie : ties) {
    if (!tie.guest_first) continue;
    for (std::size_t i = 0; i < tie.guest.size(); i += step) {
      auto it = std::upper_bound(tie.hca.begin(), tie.hca.end(), tie.guest[i] + about);
      if (it == tie.hca.begin()) continue;
      const std::int64_t offset = *std::prev(it) - tie.guest[i];
      if (about - offset > tie.most) continue;
      const auto s = score(ties, offset, 1);
      if (s.first < reached.first || (s.first == reached.first && s.second >= reached.second)) continue;
      reached = s;
      best.ns = offset;
    }
  }
  best.matched = reached.first;
  best.how = "causes before their effects";
  best.known = best.matched * 2 >= best.of;  // fewer are so by chance
  return best;
}

}  // namespace hcasim::traces
