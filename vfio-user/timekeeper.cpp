// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/timekeeper.h"

#include <algorithm>

#include "card/api/hca_api.h"

namespace hcasim::vfio_user {

namespace {
constexpr std::int64_t kLate = 1'000'000;  // ns: an event this late was kept from happening by the host
constexpr unsigned kMostRounds = 16;       // of put-off work after one access
}  // namespace

// The model's clock stands still while the host lets this process wait: otherwise all retries of a QP would
// run out in one go, before anybody has looked at the peer's answers.
std::int64_t Timekeeper::model_now() {
  std::int64_t now = clock_() - lost_;
  if (next_ != HCA_NEVER && now - next_ > kLate) {
    lost_ += now - next_;
    now = next_;
  }
  return now_ = std::max(now, now_);
}

bool Timekeeper::start() {
  next_ = HCA_NEVER;
  return hca_sim_start(model_now()) == 0;
}

void Timekeeper::advance(std::int64_t ahead) {
  const std::int64_t next = hca_sim_advance(now_, ahead);
  next_ = next == HCA_NEVER ? next : std::max(next, now_ + 1);
}

void Timekeeper::before() {
  model_now();
  advance(0);
}

void Timekeeper::after() {
  advance(ahead_);
  for (unsigned round = 0; !put_off_.empty() && round < kMostRounds; ++round) {
    const auto work = std::exchange(put_off_, {});
    for (const auto& what : work) what();
    advance(ahead_);
  }
}

void Timekeeper::state_loaded() {
  now_ = hca_sim_time();
  lost_ = clock_() - now_;
  next_ = HCA_NEVER;
  after();
}

std::int64_t Timekeeper::next() const { return next_ == HCA_NEVER ? HCA_NEVER : next_ + lost_; }

}  // namespace hcasim::vfio_user
