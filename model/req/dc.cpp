// SPDX-License-Identifier: BSD-3-Clause
// The DC initiator: each WQE names its target. The connection to it is made by the first packet, and left
// when a WQE for another target comes up, once everything before is acknowledged.
#include <cstring>

#include "model/port/path.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/sched/scheduler.h"

namespace hcasim {

namespace {

bool same(const prm::AvSeg& a, const prm::AvSeg& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

bool Requester::dc_same_target(const SendWqe& a, const SendWqe& b) { return same(a.av, b.av); }

void Requester::dc_fill(Packet& p, const Qp& qp, const prm::AvSeg& av) const {
  const RequesterState& s = qp.req;
  fill_av(p, av, qp, blocks_.port, blocks_.vports[qp.function]);
  p.dest_qpn = av.dqpn();
  p.src_qpn = qp.qpn;
  p.dc_key = static_cast<std::uint64_t>(av.qkey) << 32 | static_cast<std::uint32_t>(av.key_low);
  p.dc_connect = s.una_psn == s.dc_first_psn;
  p.dc_session = qp.dc_session;
  p.dc_first_psn = s.dc_first_psn;
}

// False: what was sent to another target is not all acknowledged yet.
bool Requester::dc_connect(Time t, Qp& qp, const SendWqe& wqe) {
  RequesterState& s = qp.req;
  if (s.dc_connected && same(s.dc_target, wqe.av)) return true;
  if (s.next_to_send != 0) return false;
  if (s.dc_connected) {
    PacketRef bye = PacketPool::make();
    dc_fill(*bye, qp, s.dc_target);
    bye->opcode = static_cast<std::uint8_t>(prm::BthOp::kDcDisconnect) | prm::bth::kDc;
    bye->psn = s.una_psn;
    transmit(t + blocks_.profile.engine.tx_pipeline, qp, std::move(bye));
  }
  s.dc_connected = true;
  s.dc_target = wqe.av;
  s.dc_first_psn = wqe.first_psn;
  ++qp.dc_session;
  return true;
}

// The target has forgotten this connection: a new one begins with what is not acknowledged.
void Requester::dc_reconnect(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  if (s.window.empty() || s.dc_first_psn == s.una_psn) return;  // connecting already
  s.dc_first_psn = s.una_psn;
  ++qp.dc_session;
  retry(t, qp, s.una_psn);
}

// A stream fails alone until as many have failed as the DCI takes: false, the DCI fails with them. The
// connection went with it, so that what was sent behind goes once more, on another one.
bool Requester::stream_failed(Time t, Qp& qp, std::uint16_t stream) {
  RequesterState& s = qp.req;
  if (!s.stream_errored(stream)) s.errored_streams.push_back(stream);
  if (s.errored_streams.size() >= std::size_t{1} << qp.log_dci_errored) return false;
  for (std::size_t i = 0; i < s.window.size(); ++i) {
    SendWqe& w = s.window[i];
    if (w.done || w.is_local()) continue;
    w.started = false;
    w.sent = w.answered = 0;
  }
  s.dc_connected = false;
  s.una_psn = s.next_psn;
  s.next_to_send = 0;
  s.inflight_reads = 0;
  s.since_ack_req = 0;
  s.rewound_at = ~0u;
  s.retries_left = qp.retry_count;
  s.rnr_left = qp.rnr_retry;
  s.rnr_until = 0;
  s.timer_due = kNever;
  complete_front(t, qp);
  blocks_.scheduler.wake(t, qp);
  return true;
}

}  // namespace hcasim
