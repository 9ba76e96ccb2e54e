// SPDX-License-Identifier: BSD-3-Clause
// What a port counts. Read by PPCNT, QUERY_VPORT_COUNTER, performance MADs and the statistics of the C API.
#ifndef HCASIM_MODEL_PORT_COUNTERS_H
#define HCASIM_MODEL_PORT_COUNTERS_H

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/state/fields.h"

namespace hcasim {

// Frames on the cable, with FCS (IEEE 802.3 clause 30, RFC 2863, RFC 2819). What is looped back inside the
// HCA is not among them; over a cable to itself a frame counts on both sides.
struct MacCounters {
  struct Direction {
    std::uint64_t frames = 0, octets = 0;        // all that are in order
    std::uint64_t multicast = 0, broadcast = 0;  // frames
    std::uint64_t control = 0;                   // MAC control frames among them
    std::uint64_t pause = 0;                     // ... that stop or start a transmitter
    std::array<std::uint64_t, 8> prio_frames{}, prio_octets{};
    std::array<std::uint64_t, 8> prio_pause{};  // those that are of no priority: with priority 0's

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, frames, octets, multicast, broadcast, control, pause, prio_frames, prio_octets,
                    prio_pause);
    }
  };
  Direction tx, rx;
  // Received frames by size: 64, -127, -255, -511, -1023, -1518, -2047, -4095, -8191, and longer.
  std::array<std::uint64_t, 10> rx_sizes{};
  std::uint64_t rx_fcs_errors = 0, rx_too_long = 0;
  std::uint64_t rx_unsupported = 0;  // MAC control frames that are no pause

  static unsigned size_class(std::uint32_t octets) {
    constexpr std::array<std::uint32_t, 9> kLargest{64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191};
    return static_cast<unsigned>(std::lower_bound(kLargest.begin(), kLargest.end(), octets) -
                                 kLargest.begin());
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tx, rx, rx_sizes, rx_fcs_errors);
    HCASIM_FIELDS_SINCE(13, a, rx_too_long);
    HCASIM_FIELDS_SINCE(20, a, rx_unsupported);
  }
};

// Traffic of the function's vport, also what is looped back: RoCE, and all other frames.
struct VportTraffic {
  enum Cast : unsigned { kUnicast, kMulticast, kBroadcast, kCasts };
  struct Count {
    std::uint64_t packets = 0, octets = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, packets, octets);
    }
  };
  std::array<Count, kCasts> tx_rdma{}, rx_rdma{}, tx_eth{}, rx_eth{};

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tx_rdma, rx_rdma, tx_eth, rx_eth);
  }
};

struct PortCounters {
  // Both links, loopback included; bytes: whole packets, InfiniBand without VCRC, Ethernet with FCS.
  std::uint64_t tx_packets = 0, rx_packets = 0, tx_bytes = 0, rx_bytes = 0;
  std::uint64_t tx_data = 0, rx_data = 0;
  std::uint64_t tx_runs = 0;  // of the packets sent, runs that went as one (Packet::packets)
  std::uint64_t tx_multicast = 0, rx_multicast = 0;
  std::uint64_t symbol_errors = 0;  // of the physical layer: only faults make them
  std::uint64_t rx_errors = 0, tx_discards = 0, rx_dropped = 0;
  std::uint64_t tx_errors = 0;                             // frames longer than the port's MTU
  std::uint64_t pkey_violations = 0, qkey_violations = 0;  // of packets for this port's QPs (IBTA 14.2.5.6)
  std::uint64_t injected_drop = 0, injected_dup = 0, injected_reorder = 0, injected_corrupt = 0,
                injected_garble = 0, injected_ecn = 0;
  // Ethernet
  std::uint64_t rx_icrc_errors =
      0;                         // RoCE packets with a wrong ICRC (rx_icrc_encapsulated); in rx_errors too
  std::uint64_t ecn_marked = 0;  // packets that got CE in this port's own queue
  MacCounters mac;
  VportTraffic vport;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tx_packets, rx_packets, tx_bytes, rx_bytes, tx_data, rx_data, tx_runs, tx_multicast,
                  rx_multicast, symbol_errors, rx_errors, tx_discards, rx_dropped, injected_drop,
                  injected_dup, injected_reorder, injected_corrupt, injected_garble, injected_ecn,
                  rx_icrc_errors, ecn_marked, mac, vport);
    HCASIM_FIELDS_SINCE(13, a, tx_errors);
    HCASIM_FIELDS_SINCE(14, a, pkey_violations, qkey_violations);
  }
};

}  // namespace hcasim
#endif
