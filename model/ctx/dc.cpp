// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/qp.h"
#include "model/state/state.h"

namespace hcasim {

namespace {

// A connection that its initiator has given up may be forgotten when nothing of it can be under way any more;
// one that it has not, only when it has been silent for longer than any retry takes.
constexpr Time kClosedRest = from_ns(1e6), kIdle = from_ns(4e9);

}  // namespace

DcContexts::Address DcContexts::source_of(const Packet& p) {
  if (p.has_grh) return p.sgid;
  Address lid{};
  lid[14] = static_cast<std::uint8_t>(p.slid >> 8);
  lid[15] = static_cast<std::uint8_t>(p.slid);
  return lid;
}

Qp* DcContexts::find(std::uint32_t dctn, std::uint32_t initiator, const Address& from) {
  const auto it = index_.find(Key{dctn, initiator, from});
  return it == index_.end() ? nullptr : contexts_[it->second].get();
}

auto DcContexts::oldest_idle(Time t) -> std::map<Key, std::uint32_t>::iterator {
  auto oldest = index_.end();
  for (auto it = index_.begin(); it != index_.end(); ++it) {
    const Qp& c = *contexts_[it->second];
    if (t - c.dc_last_used < (c.dc_closed ? kClosedRest : kIdle)) continue;
    if (oldest == index_.end() || c.dc_last_used < contexts_[oldest->second]->dc_last_used) oldest = it;
  }
  return oldest;
}

Qp* DcContexts::to_reclaim(Time t, std::size_t limit) {
  if (index_.size() < limit) return nullptr;
  const auto oldest = oldest_idle(t);
  return oldest == index_.end() ? nullptr : contexts_[oldest->second].get();
}

Qp* DcContexts::create(Time t, std::size_t limit, std::uint32_t dctn, std::uint32_t initiator,
                       const Address& from) {
  if (index_.size() >= limit) {
    const auto oldest = oldest_idle(t);
    if (oldest == index_.end()) return nullptr;
    contexts_[oldest->second].reset();
    free_.push_back(oldest->second);
    index_.erase(oldest);
  }
  std::uint32_t i = static_cast<std::uint32_t>(contexts_.size());
  if (free_.empty()) {
    contexts_.emplace_back();
  } else {
    i = free_.back();
    free_.pop_back();
  }
  contexts_[i] = std::make_unique<Qp>();
  contexts_[i]->function = function_;
  contexts_[i]->qpn = kFirst + i;
  contexts_[i]->dctn = dctn;
  index_[Key{dctn, initiator, from}] = i;
  return contexts_[i].get();
}

void DcContexts::remove_all_of(std::uint32_t dctn) {
  for (auto it = index_.begin(); it != index_.end();) {
    if (it->first.dctn != dctn) {
      ++it;
      continue;
    }
    contexts_[it->second].reset();
    free_.push_back(it->second);
    it = index_.erase(it);
  }
}

void DcContexts::clear() { reset_state(*this); }

}  // namespace hcasim
