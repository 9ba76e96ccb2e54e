// SPDX-License-Identifier: BSD-3-Clause
// A switch between HCAs of one process: cut-through, a queue for each output, a cable to each port.
// Ethernet: bridges by learned MAC addresses (IEEE 802.1D), floods what it does not know; a full queue drops,
// and marks ECN before (RED), or, lossless, stops the senders that feed it (as 802.3x does). It heeds pause
// frames and forwards none. InfiniBand: by the LIDs that were assigned, and always lossless (credits, IBTA
// 7.9): with buffers for each lane at its inputs (lane_buffer) a sender's lane stops whose packets fill one
// of them; without, a sender stops as a whole, so that what waits for a full output also holds back what does
// not. An output whose HCA has buffers for each lane sends a lane's packets as there is room for them, and
// others meanwhile; what waits stays in the input's buffer.
#ifndef HCASIM_MODEL_PORT_SWITCH_H
#define HCASIM_MODEL_PORT_SWITCH_H

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "model/packet/packet.h"
#include "model/port/lane_credits.h"
#include "model/port/output_lanes.h"
#include "model/port/wire.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/timed_queue.h"

namespace hcasim {

class Switch : public sc_core::sc_module, private FaultSink {
 public:
  // InfiniBand: hop times of clusters. Ethernet: product brief of Spectrum.
  static constexpr Time kHopInfiniBand = from_ns(240), kHopEthernet = from_ns(300);
  struct Config {
    bool ethernet = true;
    double rate_gbps = 100;                    // of each port
    Time hop = 0;                              // first bit in to first bit out, nothing in the way; 0: kHop
    std::uint64_t buffer = 1u << 20;           // bytes that may wait for an output
    bool lossless = false;                     // Ethernet
    std::uint64_t ecn_kmin = 0, ecn_kmax = 0;  // bytes that wait; kmax 0: nothing is marked
    double ecn_pmax = 0.01;                    // share that is marked just below kmax
    std::uint64_t seed = 1;
    std::uint32_t lane_buffer = 0;  // InfiniBand: bytes for each lane of an input; 0: no credits
  };
  // An HCA's port at the far end of a cable.
  struct Station {
    Time cable = 0;                                // each way
    std::function<void(Time, PacketRef)> deliver;  // its last bit arrives at that time
    std::function<void(Time)> stop;                // nothing new may leave the HCA before then
    // The HCA hears at that time that so many bytes of this lane's buffer are free again.
    std::function<void(Time, unsigned, std::uint32_t)> room;
    // InfiniBand: bytes that the HCA has for each lane; 0: it says nothing of that.
    std::uint32_t lane_buffer = 0;
    // InfiniBand: how the lanes share the cable to the HCA, as a subnet manager has set both ends of it.
    // Asked for until detach(); without: equally.
    std::function<const VirtualLanes*()> lanes;
  };
  struct Counters {
    std::uint64_t packets = 0, bytes = 0;                 // in
    std::uint64_t flooded = 0;                            // to all for want of an address
    std::uint64_t dropped_full = 0, dropped_unknown = 0;  // no room; IB: no such LID
    std::uint64_t stops = 0;                              // senders that were stopped
    std::uint64_t marked = 0;                             // ECN
    std::uint64_t most_waiting = 0;                       // bytes in one queue
    std::uint64_t faults = 0;                             // broken invariants

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, packets, bytes, flooded, dropped_full, dropped_unknown, stops, marked, most_waiting,
                    faults);
    }
  };
  // Addresses that are remembered.
  static constexpr std::size_t kMostAddresses = 16384;

  Switch(const sc_core::sc_module_name& name, const Config& config);

  // Before time starts. Returns the port's number; port() is the HCA's end.
  std::size_t attach(Station station);
  Wire& port(std::size_t number) { return *ports_[number]; }
  // IB: who has a LID; 0 takes none.
  void assign(std::size_t number, std::uint16_t lid);
  // The HCA is gone.
  void detach(std::size_t number);
  // The HCA's buffers are empty, as its link is down: what waits for them goes, to be lost there.
  void emptied(std::size_t number);
  // How long lanes of an output have had packets and no credits for them.
  Time waited(std::size_t number) const {
    return ports_[number]->credits ? ports_[number]->credits->waited() : 0;
  }

  const Config& config() const { return config_; }
  const Counters& counters() const { return counters_; }

  // (model/state/state.h) What is on its way, addresses and counters. Loaded into a switch of as many ports
  // with the same LIDs.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      for (const auto& port : ports_) a("port", *port);
    } else {
      a.kept("ports", ports_);
    }
    lids_are_the_same(a);
    HCASIM_FIELDS(a, macs_, random_, counters_);
    a.from_other_cards([&] { HCASIM_FIELDS(a, in_); });
    if (config_.lane_buffer != 0) {
      HCASIM_FIELDS_SINCE(9, a, inside_, serial_);
      check_inside(a);
    }
    if constexpr (Archive::kLoads) {
      for (const auto& [mac, port] : macs_) a.check(port < ports_.size(), "an address is of no port");
      a.check(macs_.size() <= kMostAddresses, "these are more addresses than a switch remembers");
      for (std::size_t i = 0; i < in_.size(); ++i)
        a.check(in_.to_come(i)->port < ports_.size(), "a packet is from no port");
    }
  }

 private:
  struct Port final : Wire {
    Port(Switch& o, std::size_t n, Station s) : owner(o), number(n), station(std::move(s)) {}
    void transmit(Time t, const PacketRef& packet) override;
    std::uint32_t room_of_lanes() const override { return owner.config_.lane_buffer; }
    void make_room(Time t, unsigned lane, std::uint32_t bytes) override {
      if (credits) credits->give_back(t + station.cable, lane, bytes);
    }
    void emptied() override { owner.emptied(number); }
    Switch& owner;
    const std::size_t number;
    Station station;
    Time free = 0;     // the output
    Time stopped = 0;  // by a pause frame
    bool attached = true;
    std::unique_ptr<LaneCredits> credits;  // of the output, if its HCA says what room it has
    std::unique_ptr<OutputLanes> lanes;    // of the output, where inputs have a buffer for each

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, free, stopped);
      a("attached", attached, true);
      if (credits) list_credits(a);
      if (lanes) list_lanes(a);
    }
    template <class Archive>
    void list_lanes(Archive& a) {
      if constexpr (Archive::kLoads) {
        if (a.version() < 16) return lanes->clear();
      }
      a.from_other_cards([&] { a("lanes", *lanes); });
      if constexpr (Archive::kLoads)
        a.check(lanes->all([](const Packet& p, std::uint32_t) { return p.may_be_foreign(); }),
                "no packet of a port lies in a switch");
    }
    template <class Archive>
    void list_credits(Archive& a) {
      if constexpr (Archive::kLoads)
        if (a.version() < 9) return;
      a.from_other_cards([&] { a("credits", *credits); });
      if constexpr (Archive::kLoads)
        a.check(credits->all_held([](const Packet& p, std::uint32_t) { return p.may_be_foreign(); }),
                "no packet of a port lies in a switch");
    }
  };
  struct Arrival {
    PacketRef packet;
    std::size_t port = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, packet, port);
      if constexpr (Archive::kLoads)
        a.check(packet && packet->may_be_foreign(), "no packet of a port lies in a switch");
    }
  };
  // A packet that takes room of an input's lane until the last of its copies has left.
  struct Inside {
    std::size_t port = 0;
    std::uint32_t lane = 0, bytes = 0, copies = 0;
    Time left = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, port, lane, bytes, copies, left);
    }
  };
  template <class Archive>
  void check_inside(Archive& a) {
    if constexpr (Archive::kLoads) {
      std::unordered_map<std::uint32_t, std::uint32_t> copies;
      const auto counted = [&](const Packet&, std::uint32_t tag) {
        ++copies[tag];
        return tag == 0 || inside_.count(tag) != 0;
      };
      for (const auto& port : ports_)
        a.check((!port->credits || port->credits->all_held(counted)) &&
                    (!port->lanes || port->lanes->all(counted)),
                "a packet waits that is not in the switch");
      for (const auto& [tag, in] : inside_)
        a.check(in.port < ports_.size() && in.lane < LaneCredits::kLanes && in.copies == copies[tag] &&
                    in.copies != 0,
                "a packet is in the switch that does not wait");
    }
  }
  template <class Archive>
  void lids_are_the_same(Archive& a) {
    if constexpr (Archive::kLoads) {
      std::unordered_map<std::uint16_t, std::size_t> lids;
      a("lids", lids);
      a.check(lids == lids_, "the saved switch has other LIDs");
    } else if constexpr (Archive::kStores) {
      a("lids", lids_);
    }
  }

  void model_fault(const char* where, const char* what) noexcept override;
  void handle(Time t, Arrival& arrival);
  void take_pause(Time t, const Packet& p, Port& from);
  // inside: the packet's number in inside_, or 0.
  void route_by_lid(Time t, Arrival& arrival, std::uint32_t inside);
  void flood(Time t, const Arrival& arrival, std::uint32_t inside = 0);
  void forward(Time t, PacketRef packet, Port& from, Port& to, std::uint32_t inside = 0);
  void connect_lanes(Port& port);
  // Says when the packet has left. from: who is stopped when the output's buffer is full; null: nobody.
  Time depart(Time ready, Time lasts, PacketRef packet, Port* from, Port& to);
  void copy_left(std::uint32_t inside, Time t);
  Time lasts(const Packet& p) const;
  bool mark(const Packet& p, std::uint64_t waiting);
  void learn(const Packet& p, std::size_t number);

  const Config config_;
  const double ps_per_byte_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::unordered_map<std::uint64_t, std::size_t> macs_;
  std::unordered_map<std::uint16_t, std::size_t> lids_;
  std::mt19937_64 random_;
  std::unordered_map<std::uint32_t, Inside> inside_;
  std::uint32_t serial_ = 0;
  Counters counters_;
  TimedQueue<Arrival> in_;
};

}  // namespace hcasim
#endif
