// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/eth_link.h"

#include <algorithm>

namespace hcasim::fw {

namespace {

std::uint32_t bits(const std::vector<LinkMode>& modes, std::uint32_t LinkMode::*which) {
  std::uint32_t all = 0;
  for (const LinkMode& mode : modes) all |= mode.*which;
  return all;
}

}  // namespace

EthLink::EthLink(double rate_gbps, const Generation& generation)
    : modes_(link_modes(rate_gbps, generation)), fec_(generation) {}

std::uint32_t EthLink::plain() const { return bits(modes_, &LinkMode::plain); }
std::uint32_t EthLink::extended() const { return bits(modes_, &LinkMode::extended); }

EthLink::Admin EthLink::admin() const {
  if (admin_.plain != 0 || admin_.extended != 0) return admin_;
  const std::uint32_t all = extended();
  return {all != 0 ? 0 : plain(), all, admin_.forced};
}

bool EthLink::ask(const Admin& wanted) {
  Admin kept{wanted.plain & plain(), wanted.extended & extended(), wanted.forced};
  if (kept.extended != 0) kept.plain = 0;
  if (kept.plain == 0 && kept.extended == 0) return false;
  admin_ = kept;
  return true;
}

std::uint16_t EthLink::kinds_of(const Admin& admin) const {
  unsigned kinds = 0;
  for (const LinkMode& mode : modes_)
    if ((mode.plain & admin.plain) != 0 || (mode.extended & admin.extended) != 0)
      kinds |= link_bit(mode.kind);
  return static_cast<std::uint16_t>(kinds);
}

void EthLink::renew_offer() { offer_ = {kinds_of(admin()), !admin_.forced}; }

bool EthLink::set_partner(const std::optional<LinkOffer>& offer) {
  const bool same = offer.has_value() == partner_there_ && (!offer || *offer == partner_);
  partner_there_ = offer.has_value();
  if (offer) partner_ = *offer;
  return !same;
}

const LinkMode* EthLink::best(std::uint16_t kinds) const {
  const auto found = std::find_if(modes_.begin(), modes_.end(), [kinds](const LinkMode& mode) {
    return (link_bit(mode.kind) & kinds) != 0;
  });
  return found == modes_.end() ? nullptr : &*found;
}

const LinkMode* EthLink::agreed() const {
  return partner_there_ ? best(static_cast<std::uint16_t>(offer_.kinds & partner_.kinds)) : nullptr;
}

const LinkMode& EthLink::expected() const {
  const LinkMode* mode = active() ? active() : best(offer_.kinds);
  return mode ? *mode : modes_.front();
}

void EthLink::link_up(const LinkMode& mode) {
  active_ = static_cast<unsigned>(&mode - modes_.data()) + 1;
  fec_.link_up(mode.fec);
}

void EthLink::link_down() {
  active_ = 0;
  fec_.link_down();
}

bool EthLink::negotiated() const {
  return active_ != 0 && offer_.negotiates && partner_.negotiates && partner_.kinds != LinkOffer{}.kinds;
}

}  // namespace hcasim::fw
