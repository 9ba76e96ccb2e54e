// SPDX-License-Identifier: BSD-3-Clause
// How an Ethernet port and the far end of its cable come to a link mode: what the host lets the port offer
// (PTYS), what the far end offers, and what they have in common (IEEE 802.3 clause 73, and what cards make of
// an end that insists on one speed: the other one takes it, if it offers that speed). What the host asks for
// takes hold when the link comes up next; drivers take it down and up for that.
#ifndef HCASIM_FIRMWARE_STUB_ETH_LINK_H
#define HCASIM_FIRMWARE_STUB_ETH_LINK_H

#include <cstdint>
#include <optional>
#include <vector>

#include "firmware-stub/fec.h"
#include "firmware-stub/link_mode.h"
#include "model/state/fields.h"

namespace hcasim::fw {

class EthLink {
 public:
  EthLink(double rate_gbps, const Generation& generation);

  // What the port has, fastest first; and the same as bits of PTYS.
  const std::vector<LinkMode>& modes() const { return modes_; }
  std::uint32_t plain() const;
  std::uint32_t extended() const;

  // What the host asks for: bits of one of the two kinds, extended ones if there are any; not to negotiate.
  struct Admin {
    std::uint32_t plain = 0, extended = 0;
    bool forced = false;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, plain, extended, forced);
      if constexpr (Archive::kLoads) {
        if (a.version() < 13) plain = of_optical_modules(plain);
      }
    }
  };
  Admin admin() const;
  // False, and nothing changes: the port has none of these.
  bool ask(const Admin& wanted);

  // From now on the port offers what the host has asked for last.
  void renew_offer();
  const LinkOffer& offer() const { return offer_; }
  // The far end's offer; none: nobody is there. True: it is another one than before.
  bool set_partner(const std::optional<LinkOffer>& offer);
  bool partner() const { return partner_there_; }
  const LinkOffer& partners_offer() const { return partner_; }

  // What both ends have; null: nothing.
  const LinkMode* agreed() const;
  void link_up(const LinkMode& mode);
  void link_down();
  const LinkMode* active() const { return active_ == 0 ? nullptr : &modes_[active_ - 1]; }
  // Both have said what they offer, and the link is up.
  bool negotiated() const;
  // What the mode is, or would be if the far end took any.
  const LinkMode& expected() const;

  Fec& fec() { return fec_; }
  const Fec& fec() const { return fec_; }

  // The far end is the world's.
  template <class Archive>
  void list_state(Archive& a) {
    a("admin", admin_);
    a("offer", offer_);
    a("active", active_);
    if constexpr (Archive::kLoads) a.check(active_ <= modes_.size(), "the port has no such mode");
    a("fec", fec_);
    a.lasting("partner_there", partner_there_);
    a.lasting("partner", partner_);
  }

 private:
  std::uint16_t kinds_of(const Admin& admin) const;
  const LinkMode* best(std::uint16_t kinds) const;

  const std::vector<LinkMode> modes_;
  Fec fec_;
  Admin admin_;  // no bits: all
  LinkOffer offer_;
  LinkOffer partner_;
  bool partner_there_ = true;
  unsigned active_ = 0;  // its number in modes_, from 1; 0: the link is down
};

}  // namespace hcasim::fw
#endif
