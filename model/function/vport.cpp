// SPDX-License-Identifier: BSD-3-Clause
#include "model/function/vport.h"

#include <algorithm>

#include "model/eth/headers.h"
#include "model/state/state.h"
#include "model/steer/actions.h"
#include "prm/field.h"

namespace hcasim {

bool Vport::pkey_valid(std::uint16_t pkey) const {
  const std::uint16_t base = pkey & kPkeyBase;
  if (base == 0) return false;
  return std::any_of(pkeys.begin(), pkeys.end(), [&](std::uint16_t own) {
    return (own & kPkeyBase) == base && ((own | pkey) & kFullMember) != 0;
  });
}

bool Vport::has_gid(const Gid& gid) const {
  return gid != Gid{} && std::find(gids.begin(), gids.end(), gid) != gids.end();
}

bool Vport::takes_gid(const Gid& gid) const {
  constexpr std::uint64_t kDefaultPrefix = 0xfe80000000000000;
  if (has_gid(gid)) return true;
  return guid != 0 && prm::load64(gid.data()) == kDefaultPrefix && prm::load64(gid.data() + 8) == guid;
}

const RoceAddress& Vport::roce_address(unsigned index) const {
  static const RoceAddress kNone;
  return index < roce_addresses_.size() ? roce_addresses_[index] : kNone;
}

void Vport::set_roce_address(unsigned index, const RoceAddress& address) {
  if (index >= kRoceAddresses) return;
  if (index >= roce_addresses_.size()) roce_addresses_.resize(index + 1);
  roce_addresses_[index] = address;
  find_own();
}

void Vport::find_own() {
  own_macs_.clear();
  own_gids_.clear();
  for (const RoceAddress& a : roce_addresses_) {
    if (!a.valid) continue;
    if (std::find(own_macs_.begin(), own_macs_.end(), a.mac) == own_macs_.end()) own_macs_.push_back(a.mac);
    if (!own_gid(a.gid, a.version != 0)) own_gids_.push_back({a.gid, a.version != 0});
  }
}

void Vport::clear_roce_addresses() {
  roce_addresses_.clear();
  own_macs_.clear();
  own_gids_.clear();
}

bool Vport::own_mac(const Mac& m) const {
  if (m == mac) return m != Mac{};
  return std::find(own_macs_.begin(), own_macs_.end(), m) != own_macs_.end();
}

bool Vport::own_gid(const Gid& gid, bool v2) const {
  return std::any_of(own_gids_.begin(), own_gids_.end(),
                     [&](const OwnGid& own) { return own.v2 == v2 && own.gid == gid; });
}

void Vport::reset() {
  reset_state(*this);
  clear_roce_addresses();
}

bool VportVlans::insert(SteeredFrame& frame) const {
  const bool tagged = frame.headers.tags != 0;
  if (insert_cvlan == kAlways || (insert_cvlan == kIfThereIsNone && !tagged))
    if (!push_vlan(frame, kTpidCvlan, cvlan)) return false;
  return !insert_svlan || push_vlan(frame, kTpidSvlan, svlan);
}

void VportVlans::strip(SteeredFrame& frame) const {
  if (strip_svlan && frame.headers.tags != 0 && frame.headers.tpid[0] == kTpidSvlan) pop_vlan(frame);
  if (strip_cvlan && frame.headers.tags != 0 && frame.headers.tpid[0] == kTpidCvlan) pop_vlan(frame);
}

}  // namespace hcasim
