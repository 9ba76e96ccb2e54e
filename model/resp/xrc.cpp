// SPDX-License-Identifier: BSD-3-Clause
// XRC at the responder (IBTA annex A14): each request names the SRQ that it is for. That SRQ must be of the
// QP's XRC domain; receive WQEs, the CQ and the PD that keys are checked against are the SRQ's.
#include "model/ctx/qp.h"
#include "model/resp/responder.h"
#include "traces/tracer.h"

namespace hcasim {

bool Responder::select_xrc_srq(Qp& qp, const Packet& packet) {
  const Srq* srq = blocks_.qps[qp.function].find_srq(packet.src_qpn);
  if (!srq || !srq->xrc || srq->xrcd != qp.xrcd) {
    blocks_.tracer.record(traces::Point::kAccessErr, sim_now(), {qp.function, packet.trace_qpn},
                          packet.wqe_serial, packet.src_qpn, qp.xrcd);
    return false;
  }
  qp.resp.xrc_srqn = srq->srqn;
  qp.resp.xrc_pd = srq->pd;
  return true;
}

}  // namespace hcasim
