// SPDX-License-Identifier: BSD-3-Clause
#include "traces/worst.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "prm/cqe.h"
#include "traces/report.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

// Half as long again as is usual deserves an explanation.
constexpr double kSlow = 1.5;
constexpr std::size_t kEnough = 4;  // WQEs that a median is worth something of

using QueueLife = std::tuple<unsigned, std::uint32_t, unsigned>;
QueueLife queue_of(const WqeRow& w) { return {w.hca, w.qpn, w.life}; }

bool flushed(const WqeRow& w) {
  return w.flushed || w.status == static_cast<int>(prm::CqeSyndrome::kWrFlush);
}

/// The elements whose key is new before the others, otherwise in their order.
template <class T, class Key>
void one_of_each_first(std::vector<T>* v, Key key) {
  std::set<decltype(key(v->front()))> seen;
  std::vector<T> again;
  std::size_t n = 0;
  for (const T& x : *v) {
    if (seen.insert(key(x)).second)
      (*v)[n++] = x;
    else
      again.push_back(x);
  }
  std::copy(again.begin(), again.end(), v->begin() + static_cast<std::ptrdiff_t>(n));
}

template <class T>
void cut(std::vector<T>* v, std::size_t most) {
  if (v->size() > most) v->resize(most);
}

}  // namespace

std::vector<const WqeRow*> failed_wqes(const Analysis& a, std::size_t most) {
  std::map<QueueLife, std::uint32_t> last;  // serial of the last that has ended
  for (const WqeRow& w : a.wqes()) {
    if (w.status < 0) continue;
    std::uint32_t& serial = last.try_emplace(queue_of(w), w.serial).first->second;
    serial = std::max(serial, w.serial);
  }
  std::vector<const WqeRow*> v;
  for (const WqeRow& w : a.wqes()) {
    const auto q = last.find(queue_of(w));
    const bool left_behind = w.status < 0 && w.opcode >= 0 && q != last.end() && w.serial < q->second;
    if (w.status > 0 || left_behind) v.push_back(&w);
  }
  one_of_each_first(&v, [](const WqeRow* w) { return std::tuple_cat(queue_of(*w), std::tuple(w->status)); });
  std::stable_partition(v.begin(), v.end(), [](const WqeRow* w) { return !flushed(*w); });
  cut(&v, most);
  return v;
}

double SlowWqe::times() const {
  return median > 0 ? static_cast<double>(wqe->end() - wqe->start()) / static_cast<double>(median) : 1;
}

std::vector<SlowWqe> slow_wqes(const Analysis& a, std::size_t most, std::size_t of_each) {
  std::map<Like, std::vector<const WqeRow*>> kinds;
  for (const WqeRow& w : a.wqes())
    if (w.status == 0 && w.end() != kNoTime) kinds[like(w)].push_back(&w);
  std::vector<SlowWqe> v;
  for (auto& [kind, rows] : kinds) {
    if (rows.size() < kEnough) continue;
    std::vector<std::int64_t> times;
    for (const WqeRow* w : rows) times.push_back(w->end() - w->start());
    std::sort(times.begin(), times.end());
    const std::int64_t median = percentile(times, 50);
    for (const WqeRow* w : rows)
      if (const SlowWqe s{w, median}; s.times() >= kSlow) v.push_back(s);
  }
  std::stable_sort(v.begin(), v.end(),
                   [](const SlowWqe& x, const SlowWqe& y) { return x.times() > y.times(); });
  std::map<std::tuple<unsigned, std::uint32_t, int>, std::size_t> taken;
  v.erase(std::remove_if(v.begin(), v.end(),
                         [&](const SlowWqe& s) {
                           return ++taken[{s.wqe->hca, s.wqe->qpn, s.wqe->opcode}] > of_each;
                         }),
          v.end());
  cut(&v, most);
  return v;
}

std::vector<const CommandRow*> failed_commands(const Analysis& a, std::size_t most) {
  std::vector<const CommandRow*> v;
  for (const CommandRow& c : a.commands())
    if (c.failed() || c.end == kNoTime) v.push_back(&c);
  one_of_each_first(&v, [](const CommandRow* c) {
    return std::tuple(c->opcode, c->end == kNoTime, c->status, c->delivery);
  });
  cut(&v, most);
  return v;
}

std::vector<const CommandRow*> slow_commands(const Analysis& a, std::size_t most) {
  std::vector<const CommandRow*> v;
  for (const CommandRow& c : a.commands())
    if (c.start != kNoTime && c.end != kNoTime) v.push_back(&c);
  std::stable_sort(v.begin(), v.end(), [](const CommandRow* x, const CommandRow* y) {
    return x->end - x->start > y->end - y->start;
  });
  cut(&v, most);
  return v;
}

}  // namespace hcasim::traces
