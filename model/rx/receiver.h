// SPDX-License-Identifier: BSD-3-Clause
// The way of a received packet from the port to the block that it is for: receive queues of frames, an engine
// of a QP, congestion control, the firmware's agents, or nobody. What a packet is, the classifier says; here
// it is acted upon.
#ifndef HCASIM_MODEL_RX_RECEIVER_H
#define HCASIM_MODEL_RX_RECEIVER_H

#include "model/packet/packet.h"
#include "model/rx/classifier.h"
#include "model/time.h"

namespace hcasim {

class CongestionControl;
class ESwitch;
class EthRx;
class FirmwarePort;
class FlowSteering;
class Health;
class Lag;
class QpTable;
class RdmaSteering;
class Requester;
class Responder;
class TagUnit;

class Receiver {
 public:
  struct Blocks {
    PerFunction<Health> health;
    Port& port;
    const Vports& vports;
    ESwitch& eswitch;
    PerFunction<QpTable> qps;
    PerFunction<Steering> steering;
    PerFunction<FlowSteering> flows;
    RdmaSteering& rdma;
    CongestionControl& cc;
    TagUnit& tags;
    Requester& requester;
    Responder& responder;
    EthRx& eth_rx;
    PerFunction<FirmwarePort> firmware;
    Lag& lag;
  };
  explicit Receiver(const Blocks& blocks) : blocks_(blocks), classifier_({blocks.vports, blocks.steering}) {}

  // A packet whose last bit has come in at t.
  void receive(Time t, PacketRef& packet);
  // One that has come in at the card's other port, for that one's physical function, which is one vport with
  // this one's; and a frame of these that is for this one's netdev after all.
  void take_over(Time t, PacketRef& packet);
  void take_back(Time t, PacketRef& packet);
  // One that the switch at the other port has for a function of this one.
  void take_switched(Time t, FunctionId f, PacketRef& packet);

 private:
  void receive_switched(Time t, FunctionId sender, PacketRef& packet);
  // sender: of a packet that came back from the port (Packet::looped).
  void receive(Time t, FunctionId f, FunctionId sender, PacketRef& packet);
  void prefetch_next() const;
  bool takes_run(FunctionId f, const Packet& packet) const;
  bool comes_to(Time t, FunctionId f, const Packet& packet) const;
  void count_for(FunctionId f, const Packet& p) const;
  bool take_from_link(Time t, FunctionId f, PacketRef& packet);
  void take_frame(Time t, FunctionId f, PacketRef& packet);
  void take_crossed(Time t, PacketRef& frame);
  void deliver(Time t, TransportVerdict verdict, PacketRef& packet);
  void deliver_multicast(Time t, FunctionId f, FunctionId sender, const PacketRef& packet);

  Blocks blocks_;
  Classifier classifier_;
};

}  // namespace hcasim
#endif
