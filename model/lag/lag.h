// SPDX-License-Identifier: BSD-3-Clause
// Link aggregation (LAG) of a card's two ports. Each port has functions and engines of its own (one Device),
// and a block like this one; what is set for both lies in that of port 0, whose physical function is the
// master. While the ports are aggregated, a packet leaves by the port that stands for its queue's affinity,
// or that the master's tables select for it, whosever function sends it. Once the two physical functions are
// one vport, what comes in at port 1 for its physical function is the master's: RoCE packets are for its QPs,
// frames go through its receive tables, down to the table that parts the two (LAG demux), from where they
// come back.
#ifndef HCASIM_MODEL_LAG_LAG_H
#define HCASIM_MODEL_LAG_LAG_H

#include <array>
#include <cstdint>

#include "model/packet/packet.h"
#include "model/port/port_group.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class FlowSteering;
class Receiver;

// What firmware sets.
struct LagState {
  bool aggregated = false;
  bool one_vport = false;
  // Frames pass the switch of the port whose vport they come from (fdb_selection_mode); they do so here in
  // the other mode, too.
  bool native_fdb = false;
  std::array<std::uint8_t, 2> remap{1, 2};  // the port, from 1 on, that stands for affinity 1 and 2
  // Or tables of the type kPortSelection say which (port_select_mode): of all packets, or of those of queues
  // without affinity alone (port_select_flow_table_bypass). Of these, one for a port that is not active
  // leaves by the other one.
  bool by_tables = false;
  bool affinity_first = false;
  std::uint8_t active = 0;  // bit n: port n + 1

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, aggregated, one_vport, native_fdb, remap, by_tables, affinity_first, active);
  }
};

class Lag final : public PortGroup {
 public:
  struct Blocks {
    Port& port;
    Receiver& receiver;
    FlowSteering& flows;  // of the physical function
  };
  explicit Lag(const Blocks& blocks) : blocks_(blocks) {}
  Lag(const Lag&) = delete;
  Lag& operator=(const Lag&) = delete;

  // Makes the ports of two Devices those of one card, before time starts. It is to outlive neither.
  static void join(Lag& first, Lag& second);
  bool joined() const { return other_ != nullptr; }
  unsigned number() const { return number_; }  // of this port, from 0 on
  bool master() const { return joined() && number_ == 0; }

  const LagState& state() const { return number_ == 0 ? state_ : other_->state_; }
  // Of the master alone.
  void set(const LagState& state) { state_ = state; }
  void clear() { state_ = {}; }

  bool aggregated() const override { return joined() && state().aggregated; }
  Port& egress(PortAffinity affinity) override;
  Port& egress_of(const PacketRef& packet) override;
  Port& other() override { return other_->blocks_.port; }

  // What has come in for this port's physical function is the other one's.
  bool hands_over() const { return number_ != 0 && state().one_vport; }
  void hand_over(Time t, PacketRef& packet);
  // A frame that the other port has handed over is its own all the same.
  void give_back(Time t, PacketRef& packet);
  // What has come in here, and is for a vport of the other port's switch; kNoFunction: out of that port.
  void switch_over(Time t, FunctionId to, PacketRef& packet);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, state_);
  }

 private:
  bool selected(PortAffinity affinity) const;
  Port& port(unsigned n) { return n == number_ + 1 ? blocks_.port : other(); }

  Blocks blocks_;
  Lag* other_ = nullptr;
  unsigned number_ = 0;
  LagState state_;
};

}  // namespace hcasim
#endif
