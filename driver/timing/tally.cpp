// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/tally.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hcasim::timing {

void Tally::note(std::size_t who, std::size_t number, std::uint64_t messages, Ps time) {
  digest_.note(time);
  all_ += messages;
  Lane& lane = lanes_[who * setup_.qps + number];
  if (start_ >= 0) {
    const Ps before = lane.last, since = std::max(before, start_);
    const auto count = static_cast<double>(messages);
    lane.messages += time > before
                         ? count * static_cast<double>(time - since) / static_cast<double>(time - before)
                         : count;
    lane.step = count;
    over_ = over_ || all_ >= wanted_;
    end_ = time;
  } else if (all_ >= setup_.warmup) {
    start_ = time;
    wanted_ = all_ + setup_.iterations;
  }
  lane.last = time;
}

double Tally::Lane::until(Ps start, Ps end) const {
  if (last <= start) return messages;
  return messages +
         std::min(step, messages * static_cast<double>(end - last) / static_cast<double>(last - start));
}

Result Tally::result() const {
  Result r;
  r.simulated_ns = static_cast<double>(end_ - start_) / 1000;
  for (std::size_t i = 0; i < lanes_.size(); i += setup_.qps) {
    double messages = 0;
    for (std::size_t lane = 0; lane < setup_.qps; ++lane) messages += lanes_[i + lane].until(start_, end_);
    r.shares.push_back(messages);
    r.rate += messages / (r.simulated_ns * 1e-9);
  }
  const double sum = std::accumulate(r.shares.begin(), r.shares.end(), 0.0);
  for (double& share : r.shares) share /= sum;
  r.bits = r.rate * setup_.size * 8;
  r.digest = digest_.value();
  return r;
}

Result latencies(const Setup& s, const std::vector<Ps>& posts, Digest digest) {
  const std::size_t wanted = std::size_t{s.warmup} + s.iterations + 1;
  std::vector<double> times;
  const double half = s.pulls() ? 1 : 0.5;
  for (std::size_t i = s.warmup; i + 1 < wanted; ++i) {
    times.push_back(half * static_cast<double>(posts[i + 1] - posts[i]) / 1000);
    digest.note(posts[i]);
  }
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  Result r;
  r.median = n % 2 != 0 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
  r.mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(n);
  r.p99 = times[std::min(n - 1, n * 99 / 100)];
  r.p999 = times[std::min(n - 1, n * 999 / 1000)];
  double squares = 0;
  for (const double t : times) squares += (t - r.mean) * (t - r.mean);
  r.deviation = std::sqrt(squares / static_cast<double>(n));
  r.least = times.front();
  r.most = times.back();
  r.simulated_ns = static_cast<double>(posts[wanted - 1] - posts[s.warmup]) / 1000;
  r.digest = digest.value();
  return r;
}

void add_counters(bare::Function& f, const std::string& prefix, std::map<std::string, std::uint64_t>& out) {
  const unsigned n = hca_counter_count(f.handle());
  for (unsigned i = 0; i < n; ++i) {
    if (const std::uint64_t v = hca_counter_value(f.handle(), i); v != 0)
      out[prefix + hca_counter_name(f.handle(), i)] = v;
  }
}

}  // namespace hcasim::timing
