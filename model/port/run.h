// SPDX-License-Identifier: BSD-3-Clause
// Runs of packets (Packet::packets): who cannot take one as a whole takes its packets.
#ifndef HCASIM_MODEL_PORT_RUN_H
#define HCASIM_MODEL_PORT_RUN_H

#include "model/packet/packet.h"
#include "prm/packet.h"

namespace hcasim {

// The BTH opcode of a SEND or RDMA WRITE without immediate, of the same family and transport as `opcode`.
constexpr std::uint8_t piece_opcode(std::uint8_t opcode, bool first, bool last) {
  using prm::BthOp;
  const bool write = (opcode & prm::bth::kOpMask) >= static_cast<std::uint8_t>(BthOp::kWriteFirst);
  const BthOp op = first && last ? (write ? BthOp::kWriteOnly : BthOp::kSendOnly)
                   : first       ? (write ? BthOp::kWriteFirst : BthOp::kSendFirst)
                   : last        ? (write ? BthOp::kWriteLast : BthOp::kSendLast)
                                 : (write ? BthOp::kWriteMiddle : BthOp::kSendMiddle);
  return static_cast<std::uint8_t>(static_cast<std::uint8_t>(op) | (opcode & prm::bth::kTransportMask));
}

// Of packet i of a run.
std::uint8_t part_opcode(const Packet& run, unsigned i);

// Its WQE.
inline std::uint32_t part_serial(const Packet& run, unsigned i) {
  return run.of_messages ? run.wqe_serial + i : run.wqe_serial;
}

// Packet i of a run, which stays as it is.
PacketRef part_of(Packet& run, unsigned i);

// What each packet of a run of messages takes.
struct MessageSize {
  std::uint32_t bytes = 0;  // as Port::wire_bytes()
  Time lasts = 0;           // on the cable
};

// Calls f(time, packet) with the packets of a run, in order.
template <class F>
void each_part(Packet& run, F f) {
  for (unsigned i = 0; i < run.packets; ++i) {
    PacketRef part = part_of(run, i);
    f(run.at[i], part);
  }
}

}  // namespace hcasim
#endif
