// SPDX-License-Identifier: BSD-3-Clause
// The network port on the IB link: serialization at the profile's rate, the cable, the LID / GID / P_Key
// tables that firmware fills, counters, and the port's fault generator.
#ifndef HCASIM_MODEL_PORT_PORT_H
#define HCASIM_MODEL_PORT_PORT_H

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <systemc>
#include <vector>

#include "model/occupancy.h"
#include "model/port/packet.h"
#include "model/profile.h"
#include "model/timed_queue.h"
#include "traces/tracer.h"

namespace hcasim {

using Gid = std::array<std::uint8_t, 16>;

// vport_state of hca_vport_context; physical state follows it.
enum class PortState : std::uint8_t { kDown = 1, kInit = 2, kArmed = 3, kActive = 4 };

// a1 of Point::kPacketDrop.
enum class DropReason : std::uint8_t {
  kLinkDown = 1,  // port not ACTIVE
  kNoPath = 2,    // destination LID is not on this link
  kInjected = 3,  // fault generator
  kCorrupt = 4,   // CRC
  kNoQp = 5,      // no QP, or not one of this transport
  kQpState = 6,   // QP not ready to receive
  kPkey = 7,
  kNoGroup = 8,  // multicast group without members
  kOpcode = 9,
};

struct PortCounters {
  std::uint64_t tx_packets = 0, rx_packets = 0, tx_bytes = 0, rx_bytes = 0;  // bytes: whole packets
  std::uint64_t tx_data = 0, rx_data = 0;
  std::uint64_t tx_multicast = 0, rx_multicast = 0;
  std::uint64_t rx_errors = 0, tx_discards = 0, rx_dropped = 0;
  std::uint64_t injected_drop = 0, injected_dup = 0, injected_reorder = 0, injected_corrupt = 0;
};

// Probabilities 0..1 for each packet that leaves the port, from a seeded generator.
struct PortFaults {
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0;
  Time reorder_delay = from_ns(5000);
  std::uint64_t seed = 1;
};

class Port : public sc_core::sc_module {
 public:
  using Receive = std::function<void(Time, PacketRef&)>;

  Port(const sc_core::sc_module_name& name, const Profile& profile, traces::Tracer& tracer,
       FaultSink& faults);

  void on_receive(Receive handler) { receive_ = std::move(handler); }

  // Sends a packet that is ready at t. Returns when its last bit has left. A packet for our own LID (or
  // multicast, which also comes back) goes over the loopback; others have no cable in this process and are
  // counted as discards.
  Time transmit(Time t, PacketRef packet);
  // When the transmitter would be free for one more packet; the scheduler waits while this lies far ahead.
  Time tx_free() const { return tx_.free_at(); }
  Time backlog_limit() const { return backlog_limit_; }

  // Link level.
  PortState state() const { return state_; }
  void set_state(PortState s) { state_ = s; }
  std::uint16_t lid() const { return lid_; }
  void set_lid(std::uint16_t lid) { lid_ = lid; }
  std::uint8_t lmc = 0;
  std::uint16_t sm_lid = 0;
  std::uint8_t sm_sl = 0;
  std::vector<Gid> gids = std::vector<Gid>(8);
  std::vector<std::uint16_t> pkeys = std::vector<std::uint16_t>(128);

  bool pkey_valid(std::uint16_t pkey) const;  // IBTA 10.9: base keys equal, at least one of both full member

  PortFaults& faults() { return faults_cfg_; }
  void reseed();
  const PortCounters& counters() const { return counters_; }
  void clear_counters() { counters_ = {}; }
  void reset();

  // Size on the wire in bytes, LRH to VCRC.
  static std::uint32_t wire_bytes(const Packet& p);

  // The receiver of a packet gives up on it.
  void drop(Time t, const Packet& p, DropReason reason);

 private:
  bool ours(std::uint16_t dlid) const;
  bool hit(double probability);
  void arrive(Time t, PacketRef& packet);

  const Profile& profile_;
  traces::Tracer& tracer_;
  Receive receive_;
  PortState state_ = PortState::kDown;
  std::uint16_t lid_ = 0;
  Occupancy tx_;
  Time backlog_limit_ = 0;
  double ps_per_byte_ = 0;
  PortCounters counters_;
  PortFaults faults_cfg_;
  std::mt19937_64 random_{1};
  TimedQueue<PacketRef> rx_;
};

}  // namespace hcasim
#endif
