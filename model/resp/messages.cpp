// SPDX-License-Identifier: BSD-3-Clause
// Short RDMA WRITEs that come as one (Packet::of_messages). All of them are checked and translated, without
// an effect, before the first is done.
#include <algorithm>
#include <array>

#include "model/ctx/q_counters.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/port/run.h"
#include "model/port/traits.h"
#include "model/resp/responder.h"
#include "model/tpt/tpt.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

// False: something is wrong with one of them, and nothing was done.
bool Responder::take_messages(Qp& qp, PacketRef& run, const Traits& traits) {
  ResponderState& s = qp.resp;
  Packet& p = *run;
  if (!traits.write || !traits.first || !traits.last || traits.imm || !qp.rwe) return false;
  if (p.psn != s.expected_psn || p.unit > qp.mtu || s.fault.active ||
      s.message != ResponderState::Message::kNone || !blocks_.dma.borrows(qp.function))
    return false;
  const unsigned n = p.packets;
  const KeyUser user = rights_user(qp);
  std::array<Tpt::Piece, kMaxRun> pieces;
  Tpt::Page page;
  std::uint32_t missed = 0;
  for (unsigned i = 0; i < n; ++i) {
    const Packet::Message& m = p.message[i];
    if (!blocks_.tpt.reach(p.at[i], page, m.rkey, user, Access::kRemoteWrite, m.va, p.unit, pieces[i]))
      return false;
    missed |= std::uint32_t{pieces[i].missed} << i;
  }

  s.nak_sent = s.sequence_owed = s.rnr_owed = false;
  s.write_va = p.message[n - 1].va;
  s.write_rkey = p.message[n - 1].rkey;
  s.write_len = s.received = p.unit;
  std::array<Time, kMaxRun> came;
  for (unsigned i = 0; i < n; ++i) {
    came[i] = p.at[i];
    p.at[i] = pieces[i].ready;
    p.message[i].va = pieces[i].addr;
  }
  blocks_.dma.post_messages(run, WriteOwner{WriteOwner::kQp, qp.function, qp.qpn}, missed);
  for (unsigned i = 0; i < n; ++i) p.at[i] = s.landed = std::max({s.landed, came[i], p.at[i]});
  if (blocks_.tracer.enabled()) {
    const traces::Subject sender{qp.function, p.trace_qpn};
    blocks_.tracer.record_series(Point::kChecked, came.data(), n, sender, p.wqe_serial,
                                 psn_opcode(p.opcode, p.psn), 1, qp.qpn);
    blocks_.tracer.record_series(Point::kScattered, p.at.data(), n, sender, p.wqe_serial, p.unit, 0, qp.qpn);
  }
  blocks_.q_counters[qp.function][qp.counter_set].rx_write_requests += n;
  s.expected_psn = (s.expected_psn + n) & kPsnMask;
  s.msn = (s.msn + n) & 0xffffff;
  p.wqe_serial = part_serial(p, n - 1);  // as whose acknowledgement it is traced: the last one's
  if (p.ack_req) acknowledge(came[n - 1], qp, p);
  return true;
}

}  // namespace hcasim
