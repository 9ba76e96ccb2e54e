// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/steer.h"
#include "model/state/state.h"

#include <algorithm>

namespace hcasim {

namespace {
constexpr std::size_t kGroupSize = 240;  // QPs a multicast group (cap.max_qp_mcg)
}

const std::vector<std::uint32_t>* Steering::multicast(const Gid& group) const {
  const auto it = groups_.find(group);
  return it == groups_.end() ? nullptr : &it->second;
}

bool Steering::attach(const Gid& group, std::uint32_t qpn) {
  std::vector<std::uint32_t>& members = groups_[group];
  if (std::find(members.begin(), members.end(), qpn) != members.end()) return true;
  if (members.size() >= kGroupSize) return false;
  members.push_back(qpn);
  return true;
}

bool Steering::detach(const Gid& group, std::uint32_t qpn) {
  const auto it = groups_.find(group);
  if (it == groups_.end()) return false;
  const auto member = std::find(it->second.begin(), it->second.end(), qpn);
  if (member == it->second.end()) return false;
  it->second.erase(member);
  if (it->second.empty()) groups_.erase(it);
  return true;
}

std::size_t Steering::memberships(std::uint32_t qpn) const {
  return static_cast<std::size_t>(std::count_if(groups_.begin(), groups_.end(), [qpn](const auto& group) {
    return std::find(group.second.begin(), group.second.end(), qpn) != group.second.end();
  }));
}

void Steering::clear() { reset_state(*this); }

}  // namespace hcasim
