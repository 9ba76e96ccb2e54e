// SPDX-License-Identifier: GPL-2.0-or-later
// The cards of a run, each with a bare driver that brings it up as a driver would: through its registers.
#ifndef HCASIM_FABRIC_CARDS_H
#define HCASIM_FABRIC_CARDS_H

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "driver/bare/qp.h"
#include "fabric/coupling.h"
#include "fabric/ranks.h"
#include "fabric/scenario.h"

namespace hcasim::fabric {

// A card, and what its driver has made of it. Messages of all cards come from one block of the machine's
// memory, over and over, and go to another: only what is on the wire matters here, and so it stays in the
// caches of the processor that simulates.
class Card {
 public:
  Card(bare::Function& function, unsigned number);
  struct Blocks {
    bare::Buffer out, in;
  };
  void bring_up(const CardSpec& spec, const Blocks& blocks, std::uint64_t largest_message, unsigned sends,
                unsigned receives);
  bool active() { return device->port_state() == 4; }

  const unsigned number;
  std::unique_ptr<bare::Device> device;
  std::unique_ptr<bare::Pd> pd;
  std::unique_ptr<bare::Cq> send_cq, receive_cq;
  std::unique_ptr<bare::Mr> source, destination;
  std::unordered_map<std::uint32_t, std::unique_ptr<bare::Qp>> qps;  // by the other card

 private:
  void set_priorities(const CardSpec& spec);
  void set_congestion_control(const CardSpec& spec);
  std::unique_ptr<bare::Mr> block(const bare::Buffer& buffer, std::uint64_t bytes);
};

// What is known of each card of a fabric, also of one that another rank simulates.
struct Peer {
  bare::Gid gid{};
  bare::Mac mac{};
  std::uint64_t address = 0;  // of what is written to
  std::uint32_t key = 0;
};

// The cards of a fabric that this rank simulates, by their numbers in the whole.
class Cards {
 public:
  // count: of all. Makes those of `here`; throws bare::BareError or ScenarioError.
  Cards(const Scenario& scenario, unsigned count, std::vector<unsigned> here, std::uint64_t qps,
        Coupling& coupling, const Ranks& ranks);

  std::size_t count() const { return place_.size(); }
  const std::vector<unsigned>& here() const { return here_; }
  bool is_here(unsigned i) const { return place_[i] >= 0; }
  // Of a card that is here.
  CardPort& port(unsigned i) { return *ports_[place(i)]; }
  const CardPort& port(unsigned i) const { return *ports_[place(i)]; }
  bare::Function& function(unsigned i) { return machine_.function(place(i)); }
  Card& card(unsigned i) { return *cards_[place(i)]; }
  // Of any, after start().
  const Peer& peer(unsigned i) const { return peers_[i]; }
  // Of any, at any time: as its switches know it.
  static std::uint64_t mac(unsigned i);
  // Of any: its link's.
  double rate_gbps(unsigned i) const { return rates_[i]; }
  // When the ports are joined: time begins, drivers are probed. told: how many are done.
  struct Needs {
    std::uint64_t largest_message = 1;
    std::vector<unsigned> sends, receives;  // completions that a card may have at once
  };
  void start(const Needs& needs, const Ranks& ranks, const std::function<void(unsigned)>& told);
  // A QP of a card that is here, to another card; connect() when its number there is known.
  bare::Qp& add_qp(unsigned card, unsigned peer, bool receives);
  void connect(unsigned card, unsigned peer, std::uint32_t remote_qpn);
  std::uint64_t counter(unsigned i, const char* name) const {
    return machine_.function(place(i)).counter(name);
  }
  bare::Machine& machine() { return machine_; }

 private:
  unsigned place(unsigned i) const { return static_cast<unsigned>(place_[i]); }
  void share(const Ranks& ranks);

  const CardSpec spec_;  // of all, but for profiles and options
  const std::vector<unsigned> here_;
  std::vector<int> place_;  // of each card; -1: of another rank
  std::vector<Peer> peers_;
  std::vector<double> rates_;  // Gb/s
  mutable bare::Machine machine_;
  Card::Blocks blocks_;
  std::vector<std::unique_ptr<CardPort>> ports_;
  std::vector<std::unique_ptr<Card>> cards_;
};

constexpr unsigned kLogSendQueue = 5, kLogReceiveQueue = 5;  // WQEs of a connection
constexpr unsigned kLogMostCompletions = 16;                 // CQEs of a card

}  // namespace hcasim::fabric
#endif
