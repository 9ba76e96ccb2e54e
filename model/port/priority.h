// SPDX-License-Identifier: BSD-3-Clause
// Which of the eight priorities a packet on an Ethernet link has: of its VLAN tag (IEEE 802.1Q), or, if the
// port trusts that instead, of its IP header's DSCP. Counters and pauses go by it, and the buffer that it is
// received into.
#ifndef HCASIM_MODEL_PORT_PRIORITY_H
#define HCASIM_MODEL_PORT_PRIORITY_H

#include <array>
#include <cstdint>

#include "model/packet/packet.h"
#include "model/state/fields.h"

namespace hcasim {

constexpr unsigned kPriorities = 8;
constexpr unsigned kDscps = 64;

struct PriorityMap {
  bool by_dscp = false;
  std::array<std::uint8_t, kDscps> of_dscp{};

  // 0: nothing says so: untagged, or no IP.
  unsigned of(const Packet& p) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, by_dscp, of_dscp);
    if constexpr (Archive::kLoads)
      for (const auto priority : of_dscp) a.check(priority < kPriorities, "there is no such priority");
  }
};

// Receive buffers (headroom), of which each priority uses one. Sizes in cells. One that is not lossy says by
// its thresholds from which fill on a pause of its priorities is asked for, and to which it falls before that
// ends.
struct PortBuffers {
  static constexpr unsigned kNetwork = 8, kCount = 10;  // the last two are the card's own
  static constexpr unsigned kCell = 128;                // bytes
  static constexpr std::uint16_t kCells = 2047;
  struct Buffer {
    bool lossy = true;
    std::uint16_t size = 0, xoff = 0, xon = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, lossy, size, xoff, xon);
    }
  };
  std::array<Buffer, kCount> buffers{{{true, 1024}, {}, {}, {}, {}, {}, {}, {}, {true, 32}, {}}};
  std::array<std::uint8_t, kPriorities> of_priority{};

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, buffers, of_priority);
    if constexpr (Archive::kLoads)
      for (const auto buffer : of_priority) a.check(buffer < kCount, "there is no such buffer");
  }
};

}  // namespace hcasim
#endif
