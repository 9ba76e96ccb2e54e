// SPDX-License-Identifier: BSD-3-Clause
/// The offset of the guest's trace clock, from a mark that the guest wrote, or from causes and effects.
///
/// A function that rings a doorbell begins before the HCA's record of the doorbell: the offset is at most the
/// difference of their times. An interrupt handler begins, and such a function returns, after the record: the
/// offset is at least that difference. Which record belongs to which event is unknown. An alignment is an
/// offset with which (nearly) all events have a record within some width. The narrowest width that has an
/// alignment is taken, and only if it has exactly one: evenly spaced events fit as well when they are shifted
/// by one.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

constexpr const char* kMark = "hcasim: t=";
/// With time=eager the guest sees results up to this much (the default of `ahead`) before their recorded
/// time.
constexpr std::int64_t kAhead = 10'000;
/// The attempts, in this order: how far an event may be from its record, ns, and whether the guest may see
/// results early.
constexpr std::pair<std::int64_t, bool> kSearches[] = {{8'000, false},   {32'000, false},  {8'000, true},
                                                       {32'000, true},   {128'000, false}, {128'000, true},
                                                       {512'000, false}, {512'000, true}};
constexpr double kGood = 0.9, kLeast = 0.5;  // share of the events that fit
constexpr std::size_t kFew = 20;             // so few events may fit by chance

/// A kind of guest events, with the records of the HCA that cause them or are caused by them.
struct Tie {
  std::vector<std::int64_t> guest, hca;  ///< ns, sorted
  bool guest_first = false;

  /// Frequent kinds count no more than rare ones.
  double weight() const { return static_cast<double>(std::min<std::size_t>(guest.size(), 32)); }
};

/// The distance from a record to its event (or from an event to its record): `least` to `most` ns.
struct Span {
  std::int64_t least, most;
};
Span span_of(const Tie& tie, std::int64_t width, bool eager) {
  return {eager && !tie.guest_first ? -kAhead : 0, width};
}

/// The offsets [from, to] with which an event and a record are within that distance.
struct Range {
  std::int64_t from, to;
};
Range range_of(const Tie& tie, const Span& span, std::int64_t guest, std::int64_t hca) {
  if (tie.guest_first) return {hca - guest - span.most, hca - guest - span.least};
  return {hca - guest + span.least, hca - guest + span.most};
}

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

/// A line about a function: it begins, or has returned at `at`.
struct Call {
  std::string function;
  bool returned = false;
  std::int64_t at = 0;
};
Call call_of(const GuestEvent& g) {
  const std::string& d = g.details;
  if (d.empty() || d[0] != '(') return {g.name, false, g.time_ns};
  // Probes have names of their own: "(FUNCTION+0x0/0x60 [MODULE])", "(CALLER+0x210/0x280 <- FUNCTION)".
  const std::size_t arrow = d.find(" <- "), end = d.find(')');
  if (end == std::string::npos) return {g.name, false, g.time_ns};
  if (arrow < end) return {d.substr(arrow + 4, end - arrow - 4), true, g.time_ns};
  const std::size_t plus = d.find("+0x0/");
  return {plus < end ? d.substr(1, plus - 1) : g.name, false, g.time_ns};
}

std::vector<Tie> find_ties(const Timeline& t, const GuestTrace& guest) {
  std::vector<std::int64_t> doorbells, interrupts, starts, ends;
  for (const CommandRow& c : t.wqes.commands()) {
    if (c.start != kNoTime) starts.push_back(c.start / 1000);
    if (c.end != kNoTime) ends.push_back(c.end / 1000);
  }
  for (const Record& r : t.others) {
    if (r.p() == Point::kDoorbell) doorbells.push_back(r.time_ps / 1000);
    if (r.p() == Point::kMsix) interrupts.push_back(r.time_ps / 1000);
  }
  std::map<std::string, Tie> ties;
  const auto add = [&](const Call& c, const std::vector<std::int64_t>& hca, bool guest_first) {
    if (hca.empty()) return;
    Tie& tie = ties[(c.returned ? "<" : ">") + c.function];
    tie.guest_first = guest_first;
    tie.guest.push_back(c.at);
    if (tie.hca.empty()) tie.hca = hca;
  };
  for (const GuestEvent& g : guest.events) {
    if (g.ends) continue;
    Call c = call_of(g);
    if (one_of(c.function, {"mlx5_ib_post_send", "mlx5r_ring_db", "mlx5e_xmit", "mlx5i_sq_xmit"})) {
      // The caller of a function that is itself traced adds nothing, and is no closer.
      add(c, doorbells, !c.returned);
      if (g.took_ns >= 0 && !c.returned) add({c.function, true, g.time_ns + g.took_ns}, doorbells, false);
    } else if (c.returned) {
      continue;
    } else if (c.function == "cmd_work_handler") {
      add(c, starts, true);
    } else if (c.function == "mlx5_cmd_comp_handler") {
      add(c, ends, false);
    } else if (one_of(c.function, {"mlx5_irq_int_handler", "irq_int_handler"}) ||
               (g.name == "irq_handler_entry" && g.details.find("mlx5") != std::string::npos)) {
      c.function = "interrupt";
      add(c, interrupts, false);
    }
  }
  std::vector<Tie> out;
  for (auto& [name, tie] : ties) {
    std::sort(tie.guest.begin(), tie.guest.end());
    std::sort(tie.hca.begin(), tie.hca.end());
    out.push_back(std::move(tie));
  }
  return out;
}

bool fits(const Tie& tie, const Span& span, std::int64_t guest, std::int64_t offset) {
  const std::int64_t at = guest + offset;
  const std::int64_t from = tie.guest_first ? at + span.least : at - span.most;
  const std::int64_t to = tie.guest_first ? at + span.most : at - span.least;
  const auto it = std::lower_bound(tie.hca.begin(), tie.hca.end(), from);
  return it != tie.hca.end() && *it <= to;
}

/// An offset with which many events fit.
struct Alignment {
  std::int64_t offset = 0;
  std::vector<std::size_t> matched;  ///< by kind
  double score = 0;                  ///< 0 to 1
};

struct Search {
  const std::vector<Tie>& ties;
  std::int64_t width;
  bool eager;

  Span span(const Tie& tie) const { return span_of(tie, width, eager); }
  std::int64_t bin(std::int64_t offset) const {
    return offset >= 0 ? offset / width : -((width - 1 - offset) / width);
  }

  /// Calls vote(bin, weight) for each bin of offsets with which an event may fit, once per event.
  template <class Vote>
  void votes(Vote vote) const {
    constexpr std::size_t kPairs = 4 << 20, kSamples = 32;
    for (const Tie& tie : ties) {
      const std::size_t most = std::max(kSamples, kPairs / tie.hca.size());
      const std::size_t step = std::max<std::size_t>(1, tie.guest.size() / most);
      const std::size_t samples = (tie.guest.size() + step - 1) / step;
      const double weight = tie.weight() / static_cast<double>(samples);
      for (std::size_t i = 0; i < tie.guest.size(); i += step) {
        std::int64_t next = INT64_MIN;
        for (const std::int64_t h : tie.hca) {
          const Range r = range_of(tie, span(tie), tie.guest[i], h);
          for (std::int64_t b = std::max(next, bin(r.from)); b <= bin(r.to); b++) vote(b, weight);
          next = std::max(next, bin(r.to) + 1);
        }
      }
    }
  }

  /// The bins that may contain the best alignment, or one nearly as good.
  std::vector<std::int64_t> likely() const {
    constexpr std::size_t kSlots = 1 << 22;  // distant bins share a slot, which then only has too many votes
    constexpr std::size_t kMost = 4096;
    constexpr double kNear = 0.75;
    std::vector<float> slots(kSlots);
    const auto slot = [&](std::int64_t b) -> float& { return slots[static_cast<std::size_t>(b) % kSlots]; };
    votes([&](std::int64_t b, double weight) { slot(b) += static_cast<float>(weight); });
    const float limit = *std::max_element(slots.begin(), slots.end()) * static_cast<float>(kNear);
    std::unordered_map<std::int64_t, double> exact;
    votes([&](std::int64_t b, double weight) {
      if (slot(b) >= limit) exact[b] += weight;
    });
    std::vector<std::pair<double, std::int64_t>> order;
    order.reserve(exact.size());
    for (const auto& [b, votes] : exact) order.emplace_back(-votes, b);
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> out;
    for (const auto& [votes, b] : order) {
      if (out.size() == kMost || votes > order[0].first * kNear) break;
      out.push_back(b);
    }
    return out;
  }

  /// The events that fit with an offset.
  Alignment at(std::int64_t offset) const {
    Alignment a{offset, {}, 0};
    double all = 0;
    for (const Tie& tie : ties) {
      const auto n = std::count_if(tie.guest.begin(), tie.guest.end(),
                                   [&](std::int64_t g) { return fits(tie, span(tie), g, offset); });
      a.matched.push_back(static_cast<std::size_t>(n));
      a.score += tie.weight() * static_cast<double>(n) / static_cast<double>(tie.guest.size());
      all += tie.weight();
    }
    a.score /= all;
    return a;
  }

  bool good(const Alignment& a) const {
    for (std::size_t k = 0; k < ties.size(); k++) {
      const double n = static_cast<double>(ties[k].guest.size());
      if (n >= 5 && static_cast<double>(a.matched[k]) < 0.75 * n) return false;
    }
    return a.score >= kGood;
  }
};

/// Where in [from, to] the most events fit, and how well that is known.
struct Best {
  Range where{0, 0};  ///< the first and the last offset where all but `spare` of them do
  double score = -1;
};
Best sweep(const std::vector<Tie>& ties, const std::vector<Span>& spans, Range in, bool weighted,
           const std::vector<std::vector<std::int64_t>>* guests, double spare) {
  std::vector<std::pair<std::int64_t, double>> steps;
  for (std::size_t k = 0; k < ties.size(); k++) {
    const Tie& tie = ties[k];
    const std::vector<std::int64_t>& events = guests ? (*guests)[k] : tie.guest;
    if (events.empty()) continue;
    const double weight = weighted ? tie.weight() / static_cast<double>(events.size()) : 1;
    for (const std::int64_t g : events) {
      // Records that could be this event's with some offset of the range.
      const std::int64_t first = tie.guest_first ? in.from + spans[k].least : in.from - spans[k].most;
      const std::int64_t last = tie.guest_first ? in.to + spans[k].most : in.to - spans[k].least;
      std::int64_t covered = in.from;
      for (auto it = std::lower_bound(tie.hca.begin(), tie.hca.end(), g + first);
           it != tie.hca.end() && *it <= g + last; ++it) {
        const Range r = range_of(tie, spans[k], g, *it);
        const std::int64_t from = std::max(r.from, covered), to = std::min(r.to, in.to) + 1;
        if (from >= to) continue;
        steps.emplace_back(from, weight);
        steps.emplace_back(to, -weight);
        covered = to;
      }
    }
  }
  Best best;
  std::sort(steps.begin(), steps.end());
  for (const bool again : {false, true}) {
    double now = 0;
    bool found = false;
    for (std::size_t i = 0; i < steps.size();) {
      const std::int64_t at = steps[i].first;
      for (; i < steps.size() && steps[i].first == at; i++) now += steps[i].second;
      if (!again) {
        best.score = std::max(best.score, now);
      } else if (now >= best.score - spare - 1e-6 && i < steps.size()) {
        if (!found) best.where.from = at;
        best.where.to = steps[i].first - 1;
        found = true;
      }
    }
  }
  return best;
}

/// The alignments of a search, best first, each more than its width away from the better ones.
std::vector<Alignment> alignments(const Search& s) {
  std::vector<Span> spans;
  for (const Tie& tie : s.ties) spans.push_back(s.span(tie));
  std::vector<Alignment> all, out;
  for (const std::int64_t b : s.likely()) {
    const Range in{b * s.width, b * s.width + s.width - 1};
    const Best best = sweep(s.ties, spans, in, true, nullptr, 0);
    if (best.score > 0) all.push_back(s.at(best.where.from + (best.where.to - best.where.from) / 2));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Alignment& a, const Alignment& b) { return a.score > b.score; });
  for (const Alignment& a : all) {
    const bool apart = std::all_of(out.begin(), out.end(), [&](const Alignment& other) {
      return std::abs(a.offset - other.offset) > s.width;
    });
    if (apart) out.push_back(a);
  }
  return out;
}

/// Whether `b` fits about as well as `a` does, for each kind of events.
bool rivals(const Alignment& a, const Alignment& b) {
  for (std::size_t k = 0; k < a.matched.size(); k++)
    if (static_cast<double>(b.matched[k]) < kGood * static_cast<double>(a.matched[k])) return false;
  return true;
}

/// The distance of the nearest record that an event may belong to, with an offset; one in the wrong order
/// (negative) only if no other is within `width`. kNone: there is none.
constexpr std::int64_t kNone = INT64_MIN;
std::int64_t distance(const Tie& tie, std::int64_t guest, std::int64_t offset, std::int64_t width) {
  const std::int64_t at = guest + offset;
  const auto it = std::lower_bound(tie.hca.begin(), tie.hca.end(), at + (tie.guest_first ? 0 : 1));
  const std::int64_t before = it == tie.hca.begin() ? kNone : at - *std::prev(it);
  const std::int64_t behind = it == tie.hca.end() ? kNone : *it - at;
  const std::int64_t right = tie.guest_first ? behind : before, wrong = tie.guest_first ? before : behind;
  if (right != kNone && right <= width) return right;
  return wrong != kNone && wrong <= width ? -wrong : kNone;
}

/// Narrows an approximate offset down to the interval in which all significant events are in order.
void narrow_once(const Search& s, std::int64_t offset, ClockOffset* out) {
  std::vector<std::vector<std::int64_t>> guests(s.ties.size());
  std::vector<Span> spans;
  std::size_t missing = 0, matched = 0, late = 0;
  for (std::size_t k = 0; k < s.ties.size(); k++) {
    const Tie& tie = s.ties[k];
    std::vector<std::pair<std::int64_t, std::int64_t>> near;  // ns, event
    for (const std::int64_t g : tie.guest) {
      const std::int64_t ns = distance(tie, g, offset, s.width);
      if (ns == kNone) {
        missing++;
      } else {
        near.emplace_back(ns, g);
      }
    }
    std::sort(near.begin(), near.end());
    // The latest twentieth of a kind is noise.
    const std::size_t last = near.size() >= 20 ? near.size() / 20 : 0;
    near.resize(near.size() - last);
    late += last;
    matched += near.size();
    for (const auto& [ns, g] : near) guests[k].push_back(g);
    Span span = s.span(tie);
    if (!near.empty()) {
      span.most = 2 * std::max<std::int64_t>(0, near.back().first) + kAhead;
      (tie.guest_first ? out->above : out->below) = true;
    }
    spans.push_back(span);
  }
  // As many events may have a record by chance as have none.
  const double spare = static_cast<double>(std::min(missing, 1 + matched / 100));
  const Best best = sweep(s.ties, spans, {offset - s.width, offset + s.width}, false, &guests, spare);
  out->least = best.where.from;
  out->most = best.where.to;
  out->matched = late + static_cast<std::size_t>(std::llround(best.score));
  // Bounded on one side only: the offset is near that side.
  out->ns = !out->below ? out->most : !out->above ? out->least : out->least + (out->most - out->least) / 2;
}

void narrow(const Search& s, std::int64_t offset, ClockOffset* out) {
  out->known = true;
  narrow_once(s, offset, out);
  // Searched from its middle, the interval is not cut off by a search limit.
  if (out->above && out->below) narrow_once(s, out->least + (out->most - out->least) / 2, out);
}

/// Of each kind enough events to distinguish alignments, spread over the whole trace.
std::vector<Tie> thinned(std::vector<Tie> ties) {
  constexpr std::size_t kEvents = 2000;
  for (Tie& tie : ties) {
    const std::size_t step = (tie.guest.size() + kEvents - 1) / kEvents;
    for (std::size_t i = 0; i * step < tie.guest.size(); i++) tie.guest[i] = tie.guest[i * step];
    tie.guest.resize((tie.guest.size() + step - 1) / step);
  }
  return ties;
}

bool from_mark(const GuestTrace& guest, ClockOffset* out) {
  // The guest reads the time before it writes the mark, so no mark is too large, and the largest is the best.
  for (const GuestEvent& g : guest.events) {
    const std::size_t at = g.details.find(kMark);
    if (at == std::string::npos) continue;
    const std::int64_t offset =
        std::strtoll(g.details.c_str() + at + std::strlen(kMark), nullptr, 10) - g.time_ns;
    if (out->known && offset <= out->ns) continue;
    out->known = true;
    out->ns = out->least = out->most = offset;
    out->above = out->below = true;
    out->how = "the guest's mark of simulated time";
  }
  return out->known;
}

void ambiguous(const Alignment& a, const Alignment& b, ClockOffset* out) {
  out->why_not = "its events fit as well under an offset of " + std::to_string(a.offset) + " ns as under " +
                 std::to_string(b.offset) + " ns";
}

/// `s` holds a sample of all events. False: this width has no alignment.
bool decide(const Search& s, const std::vector<Tie>& all, ClockOffset* out) {
  const std::vector<Alignment> found = alignments(s);
  if (found.empty() || !s.good(found[0])) return false;
  std::vector<Alignment> others(found.begin() + 1, found.end());
  if (out->of < kFew) {
    // A handful of events may fit somewhere by chance while the right distance is only a larger one.
    const Search wider{s.ties, 4 * s.width, s.eager};
    for (const Alignment& a : alignments(wider))
      if (std::abs(a.offset - found[0].offset) > wider.width) others.push_back(a);
  }
  const auto rival = std::find_if(others.begin(), others.end(),
                                  [&](const Alignment& other) { return rivals(found[0], other); });
  if (rival != others.end()) {
    ambiguous(found[0], *rival, out);
    return true;
  }
  narrow({all, s.width, s.eager}, found[0].offset, out);
  return true;
}

}  // namespace

ClockOffset find_offset(const Timeline& t, const GuestTrace& guest) {
  ClockOffset out;
  if (from_mark(guest, &out)) return out;
  const std::vector<Tie> ties = find_ties(t, guest);
  for (const Tie& tie : ties) out.of += tie.guest.size();
  if (ties.empty()) {
    out.why_not = "none of its events is one that the HCA has records of";
    return out;
  }
  out.how = "causes before their effects";
  const std::vector<Tie> some = thinned(ties);
  for (const auto& [width, eager] : kSearches)
    if (decide({some, width, eager}, ties, &out)) return out;
  // Much that the guest did is not in the HCA's trace, or vice versa.
  const Search s{some, 512'000, true};
  const std::vector<Alignment> found = alignments(s);
  if (found.empty() || found[0].score < kLeast) {
    out.why_not = "under no offset even half of its " + std::to_string(out.of) +
                  " events stand by records of the HCA that they cause or are caused by";
  } else if (found.size() > 1 && found[1].score > 0.75 * found[0].score) {
    ambiguous(found[0], found[1], &out);
  } else {
    narrow({ties, s.width, s.eager}, found[0].offset, &out);
  }
  return out;
}

}  // namespace hcasim::traces
