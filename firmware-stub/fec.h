// SPDX-License-Identifier: BSD-3-Clause
// Forward error correction (FEC) of the Ethernet port, as management sees it (register PPLM): what each group
// of link modes offers, what the host asks for, and what the link came up with. A choice takes hold when the
// link comes up next; drivers take it down and up for that. The wire's latency is the profile's, with the
// correction that its mode has by itself, whatever is chosen here; and the other end is not asked.
#ifndef HCASIM_FIRMWARE_STUB_FEC_H
#define HCASIM_FIRMWARE_STUB_FEC_H

#include <array>
#include <cstdint>

#include "firmware-stub/link_mode.h"
#include "model/state/fields.h"

namespace hcasim::fw {

class Fec {
 public:
  // Kinds of correction, a bit each: pplm_reg, fec_override_* and fec_mode_active.
  enum : std::uint16_t {
    kOff = 1 << 0,
    kFirecode = 1 << 1,
    kRs528 = 1 << 2,  // RS(528,514)
    kRs544 = 1 << 7,  // RS(544,514)
    kLlRs272 = 1 << 9,
  };

  explicit Fec(const Generation& generation) : generation_(generation) {}

  // Modes of 50 and of 100 Gb/s a lane: there or not (pcam_reg, fec_50G_per_lane_in_pplm, 100G).
  static bool lanes_of_50g(const Generation& generation) { return generation.has.ptys_extended; }
  static bool lanes_of_100g(const Generation& generation) { return generation.port_gbps >= 400; }

  std::uint16_t offered(FecRow row) const;  // 0: not a mode of this port
  std::uint16_t wanted(FecRow row) const {
    return wanted_.at(static_cast<std::size_t>(row));
  }  // 0: automatic
  // One kind that is offered, or 0.
  bool acceptable(FecRow row, std::uint16_t kind) const;
  void want(FecRow row, std::uint16_t kind) { wanted_.at(static_cast<std::size_t>(row)) = kind; }

  void link_up(FecRow row);
  void link_down() { active_ = 0; }
  std::uint16_t active() const { return active_; }  // 0: the link is down

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, wanted_, active_);
  }

 private:
  const Generation& generation_;
  std::array<std::uint16_t, static_cast<std::size_t>(FecRow::kCount)> wanted_{};
  std::uint16_t active_ = 0;
};

}  // namespace hcasim::fw
#endif
