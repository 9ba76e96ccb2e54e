// SPDX-License-Identifier: BSD-3-Clause
// IPoIB's enhanced offloads: what a send queue of frames sends whose TIS names a UD QP (tisc.underlay_qpn)
// leaves as that QP's datagrams, to where the WQE says.
#include "model/eth/ipoib.h"
#include "model/port/path.h"
#include "model/profile.h"
#include "model/req/requester.h"

namespace hcasim {

// packet: the frame that load_frame() has made.
void Requester::emit_datagram(Time t, Qp& qp, const SendWqe& wqe, const PacketRef& packet) {
  Qp* underlay = blocks_.qps[qp.function].find(qp.underlay);
  if (!underlay || !underlay->carries_frames || underlay->state != QpState::kRts)
    return blocks_.port.drop(t, *packet, DropReason::kQpState);
  const Packet& frame = *packet;
  PacketRef datagram = PacketPool::make();
  Packet& p = *datagram;
  check_address(t, qp, wqe.av);
  fill_av(p, wqe.av, *underlay, blocks_.port, blocks_.vports[qp.function]);
  p.opcode = static_cast<std::uint8_t>(prm::BthOp::kSendOnly) | prm::bth::kUd;
  p.psn = underlay->req.next_psn & kPsnMask;
  underlay->req.next_psn = (underlay->req.next_psn + 1) & kPsnMask;
  p.dest_qpn = wqe.av.dqpn();
  p.src_qpn = underlay->qpn;
  p.qkey = datagram_qkey(wqe.av, *underlay);
  p.solicited = wqe.solicited;
  p.trace_qpn = frame.trace_qpn;
  p.trace_packets = frame.trace_packets;
  p.wqe_serial = frame.wqe_serial;
  const std::uint32_t rest = frame.frame_len - kEthHeader;
  p.payload_len = kIpoibHeader + rest;
  ipoib_header(frame.frame(), p.data());
  std::memcpy(p.data() + kIpoibHeader, frame.frame() + kEthHeader, rest);
  transmit(t, qp, std::move(datagram));
}

}  // namespace hcasim
