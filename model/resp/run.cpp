// SPDX-License-Identifier: BSD-3-Clause
// Requests that come as a run (Packet::packets): what can be done with all of them is, and whatever goes
// wrong goes wrong with one packet: then they are taken one by one.
#include "model/port/run.h"

#include "model/port/port.h"
#include "model/port/traits.h"
#include "model/resp/responder.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

void Responder::take_each(Qp& qp, PacketRef& run) {
  const std::uint64_t epoch = qp.req.epoch;
  each_part(*run, [&](Time at, PacketRef& part) {
    if (qp.req.epoch == epoch) take(at, qp, part);
  });
}

// The checks of in_sequence(), for all packets at once.
bool Responder::in_sequence_run(const Qp& qp, const Packet& p, const Traits& traits) const {
  const ResponderState& s = qp.resp;
  using Message = ResponderState::Message;
  if (p.psn != s.expected_psn || p.unit != qp.mtu || s.fault.active) return false;
  if (traits.first != (s.message == Message::kNone)) return false;
  return traits.first || traits.send == (s.message == Message::kSend);
}

void Responder::receive_run(Time t, Qp& qp, PacketRef& run, const Traits& traits) {
  ResponderState& s = qp.resp;
  const Packet& p = *run;
  if (p.of_messages) {
    if (!take_messages(qp, run, traits)) take_each(qp, run);
    return;
  }
  if (!in_sequence_run(qp, p, traits)) {
    take_each(qp, run);
    return;
  }
  const bool taken = traits.send ? take_send(t, qp, run, traits) : take_write(t, qp, run, traits);
  if (!taken) {
    take_each(qp, run);
    return;
  }
  s.nak_sent = s.sequence_owed = s.rnr_owed = false;
  if (blocks_.tracer.enabled())
    for (unsigned i = 0; i < p.packets; ++i)
      blocks_.tracer.record(Point::kChecked, p.at[i], {qp.function, p.trace_qpn}, p.wqe_serial,
                            psn_opcode(part_opcode(p, i), p.psn + i), qp.qpn);
  s.expected_psn = (s.expected_psn + p.packets) & kPsnMask;
  if (traits.last) s.msn = (s.msn + 1) & 0xffffff;
  if (p.ack_req) acknowledge(t, qp, p);
}

}  // namespace hcasim
