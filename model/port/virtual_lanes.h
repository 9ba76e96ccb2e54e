// SPDX-License-Identifier: BSD-3-Clause
// Data virtual lanes of an InfiniBand port, as a subnet manager sets them (IBTA 7.6): which one a service
// level goes by, and how they share the cable. Who sends has a lane by the service level of its QP's path
// (TrafficClasses has one class for each). Their credits: lane_credits.h.
#ifndef HCASIM_MODEL_PORT_VIRTUAL_LANES_H
#define HCASIM_MODEL_PORT_VIRTUAL_LANES_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/state/fields.h"

namespace hcasim {

class TrafficClasses;

struct VirtualLanes {
  static constexpr unsigned kLanes = 4, kServiceLevels = 16;
  static constexpr std::size_t kEntries = 8;     // of an arbitration table
  static constexpr std::uint8_t kNone = 15;      // where a service level goes that is not to be sent
  static constexpr std::uint8_t kNoLimit = 255;  // high_limit

  // weight: units of 64 bytes; 0: the entry is passed over.
  struct Entry {
    std::uint8_t lane = 0, weight = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, lane, weight);
    }
  };
  using Table = std::array<Entry, kEntries>;

  std::array<std::uint8_t, kServiceLevels> of_level{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  // Lanes of the first table go before those of the second one alone, which get their turn when others have
  // sent high_limit times 4096 bytes (0: a packet). A lane that is in neither has the smallest share.
  Table high{}, low{Entry{0, 64}, Entry{1, 64}, Entry{2, 64}, Entry{3, 64}};
  std::uint8_t high_limit = 0;
  std::uint8_t operational = kLanes;

  // By which one it leaves; kNone: by none.
  std::uint8_t of(std::uint8_t level) const {
    const std::uint8_t lane = of_level[level & (kServiceLevels - 1)];
    return lane < operational ? lane : kNone;
  }
  void apply(TrafficClasses& classes) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, of_level, high, low, high_limit, operational);
    if constexpr (Archive::kLoads) a.check(operational <= kLanes, "there are no such lanes");
  }
};

}  // namespace hcasim
#endif
