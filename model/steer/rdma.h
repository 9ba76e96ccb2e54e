// SPDX-License-Identifier: BSD-3-Clause
// RoCE packets of QPs in the RDMA flow tables of both directions. Frames of send queues take the NIC's tables
// instead (model/req/ethernet.cpp, model/eth/rx.cpp); a table may lead from one kind to the other. Both
// engines and congestion control send through here; the receiver asks it about what came in.
#ifndef HCASIM_MODEL_STEER_RDMA_H
#define HCASIM_MODEL_STEER_RDMA_H

#include <cstdint>
#include <utility>

#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/port/port.h"
#include "model/time.h"

namespace hcasim {

class FlowSteering;
struct FlowVerdict;

class RdmaSteering {
 public:
  struct Blocks {
    Port& port;
    PerFunction<FlowSteering> flows;
  };
  explicit RdmaSteering(const Blocks& blocks) : blocks_(blocks) {}

  // A packet of a transport's engine on its way to the port, through the tables of the transmit side.
  void transmit(Time t, FunctionId f, std::uint32_t qpn, PacketRef&& packet) {
    packet->sqn = qpn;
    if (packet->kind == PacketKind::kIb)  // of no concern to the tables
      blocks_.port.transmit(t, std::move(packet));
    else
      transmit_roce(t, f, std::move(packet));
  }
  // Whether tables of the transmit side look at single packets.
  bool sees_transmitted(FunctionId f) const;
  // A received packet, through the tables of the receive side. goes_on: it does to a QP, as it is in `packet`
  // then. What the tables have for receive queues of frames is in the verdict, which lives until the next
  // frame is steered; no deliveries: dropped.
  FlowVerdict& receive(Time t, FunctionId f, PacketRef& packet, bool& goes_on);

 private:
  void transmit_roce(Time t, FunctionId f, PacketRef&& packet);

  Blocks blocks_;
};

}  // namespace hcasim
#endif
