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
#include "fabric/scenario.h"

namespace hcasim::fabric {

// A card, and what its driver has made of it. Messages of all cards come from one block of the machine's
// memory, over and over, and go to another: only what is on the wire matters here, and so it stays in the
// caches of the processor that simulates.
class Card {
 public:
  Card(bare::Machine& machine, unsigned number);
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

class Cards {
 public:
  // Makes them; throws bare::BareError or ScenarioError.
  Cards(const Scenario& scenario, unsigned count, std::uint64_t qps, Coupling& coupling);

  CardPort& port(unsigned i) { return *ports_[i]; }
  const CardPort& port(unsigned i) const { return *ports_[i]; }
  bare::Function& function(unsigned i) { return machine_.function(i); }
  Card& card(unsigned i) { return *cards_[i]; }
  std::size_t size() const { return ports_.size(); }
  double rate_gbps() { return machine_.function(0).parameter("port.rate_gbps"); }
  // When the ports are joined: time begins, drivers are probed. told: how many are done.
  struct Needs {
    std::uint64_t largest_message = 1;
    std::vector<unsigned> sends, receives;  // completions that a card may have at once
  };
  void start(const Needs& needs, const std::function<void(unsigned)>& told);
  // Connects two cards, unless they are.
  void connect(unsigned a, unsigned b, bool receives);
  std::uint64_t counter(unsigned i, const char* name) const { return machine_.function(i).counter(name); }
  bare::Machine& machine() { return machine_; }

 private:
  const CardSpec spec_;
  mutable bare::Machine machine_;
  Card::Blocks blocks_;
  std::vector<std::unique_ptr<CardPort>> ports_;
  std::vector<std::unique_ptr<Card>> cards_;
};

constexpr unsigned kLogSendQueue = 5, kLogReceiveQueue = 5;  // WQEs of a connection
constexpr unsigned kLogMostCompletions = 16;                 // CQEs of a card

}  // namespace hcasim::fabric
#endif
