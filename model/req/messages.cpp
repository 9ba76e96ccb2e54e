// SPDX-License-Identifier: BSD-3-Clause
// Short RDMA WRITEs, one behind the other in one turn of their QP: what their packets have in common is done
// once for all of them, and they go through the HCAs as one (Packet::of_messages). Each has its own times: it
// goes through the engine, its pipeline and the port when it would by itself. Only where nothing else has a
// say in single packets, as for runs (run.cpp); what is not alike, what asks for an acknowledgement and the
// end of the turn end it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model/cc/congestion.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/steer/rdma.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::WqeOp;

namespace {
constexpr unsigned kMostBytes = 1024;  // of one: it is copied twice, where a longer one is borrowed
}

// Whether this WQE, which nobody has begun, is a message that goes with those of pace.messages; there is such
// a run then. False: nothing has been done, or what was there has been sent.
bool Requester::joins(Pace& pace, Qp& qp, const SendWqe& wqe) {
  RequesterState& s = qp.req;
  if (wqe.opcode != WqeOp::kRdmaWrite || qp.type != QpType::kRc || pace.no_messages || wqe.sent != 0)
    return false;
  if (wqe.length == 0 || wqe.length > std::min(qp.mtu, kMostBytes) || wqe.solicited || s.send_fault.active)
    return false;
  const std::uint32_t psn = wqe.started ? wqe.first_psn : s.next_psn;
  if (psn_diff(psn, s.una_psn) >= static_cast<std::int32_t>(blocks_.profile.engine.inflight_packets))
    return false;
  if (pace.messages) {
    const Packet& run = *pace.messages;
    if (run.unit == wqe.length && run.packets < kMaxRun && (run.packets + 1U) * run.unit <= kMaxFrame &&
        psn == run.psn + run.packets && wqe.serial == run.wqe_serial + run.packets)
      return true;
    send_messages(pace);
  }
  return s.next_to_send + 1 < s.window.size() && begin_messages(pace, qp, wqe);
}

// False: they go one by one in this turn.
bool Requester::begin_messages(Pace& pace, Qp& qp, const SendWqe& wqe) {
  const bool roce = blocks_.port.link() != LinkType::kIb;
  pace.no_messages = true;
  if (blocks_.profile.engine.batch_window == 0 || !blocks_.dma.borrows(qp.function) || qp.cc.limited ||
      blocks_.qos[qp.function].limits(qp) || (roce && blocks_.rdma.sees_transmitted(qp.function)))
    return false;
  PacketRef packet = make_packet(qp, wqe);
  Packet& p = *packet;
  p.opcode = static_cast<std::uint8_t>(prm::BthOp::kWriteOnly) | transport_bits(qp.type);
  p.psn = wqe.started ? wqe.first_psn : qp.req.next_psn;
  p.payload_len = p.unit = p.dma_len = static_cast<std::uint32_t>(wqe.length);
  p.trace_packets = 1;
  p.sqn = qp.qpn;
  blocks_.cc.sending(pace.engine, qp, p);
  if (!blocks_.port.takes_messages(pace.engine, p, pace.message_size)) return false;
  p.packets = 0;
  pace.messages = std::move(packet);
  pace.no_messages = false;
  return true;
}

Requester::Step Requester::add_message(Pace& pace, Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  Packet& run = *pace.messages;
  if (!wqe.started) {
    const Step started = start(qp, wqe);
    if (started != Step::kSent) return started;
  }
  const unsigned i = run.packets;
  ++pace.packets;
  Time ready = std::max(pace.engine, pace.ready);
  const Step loaded =
      load_payload(pace, qp, wqe, 0, {run.data() + std::size_t{i} * run.unit, run.unit, nullptr}, ready);
  if (loaded != Step::kSent) return loaded;
  ++run.packets;
  run.message[i] = {wqe.raddr, wqe.rkey};
  ++s.since_ack_req;
  run.ack_req = s.since_ack_req >= e.ack_every || wants_ack(qp, s.next_to_send);
  s.last_ready = blocks_.tx.pass(std::max(s.last_ready, ready + e.tx_pipeline));
  blocks_.qos[qp.function].sent(s.last_ready, qp, false, run);  // which has the length of one
  run.at[i] = blocks_.port.add_message(s.last_ready, run, pace.message_size);
  ++wqe.sent;
  ++s.next_to_send;
  arm_timer(ready, qp);
  if (!run.ack_req) return Step::kSent;
  s.since_ack_req = 0;
  send_messages(pace);
  return Step::kSent;
}

// Those that there are.
void Requester::send_messages(Pace& pace) {
  if (!pace.messages) return;
  Packet& p = *pace.messages;
  if (p.packets == 0) {  // the first one has failed
    pace.messages = PacketRef();
    return;
  }
  const Packet::Message& first = p.message[0];
  p.va = first.va;
  p.rkey = first.rkey;
  p.of_messages = p.packets > 1;
  p.payload_len = p.packets * p.unit;
  blocks_.port.send_messages(std::move(pace.messages), pace.message_size);
  pace.messages = PacketRef();
}

}  // namespace hcasim
