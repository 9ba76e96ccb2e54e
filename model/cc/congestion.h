// SPDX-License-Identifier: BSD-3-Clause
// Congestion control of RoCE v2 (IBTA annex A17.9): at the receiver of marked packets the notification point,
// which sends CNPs; at their sender the reaction point, which paces a QP's packets. The receiver tells it
// what came in, the engines ask it before they send.
#ifndef HCASIM_MODEL_CC_CONGESTION_H
#define HCASIM_MODEL_CC_CONGESTION_H

#include <array>
#include <cstdint>

#include "model/cc/params.h"
#include "model/ctx/qp.h"
#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/port/port.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class RdmaSteering;
class Vport;
struct Profile;

class CongestionControl {
 public:
  // query_cong_statistics_out
  struct Statistics {
    std::uint64_t sum_flows = 0;  // rate limiters given to flows so far
    std::uint64_t rp_cnp_ignored = 0, rp_cnp_handled = 0;
    std::uint64_t np_ecn_marked_roce_packets = 0, np_cnp_sent = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, sum_flows, rp_cnp_ignored, rp_cnp_handled, np_ecn_marked_roce_packets, np_cnp_sent);
    }
  };

  struct Blocks {
    // The chip's
    const Profile& profile;
    traces::Tracer& tracer;
    Port& port;
    RdmaSteering& rdma;  // where CNPs leave
    // The function's
    PerFunction<QpTable> qps;
  };
  explicit CongestionControl(const Blocks& blocks) : blocks_(blocks) {}

  // --- Hooks of the engines
  // A packet that its QP takes. Cheap unless it is marked.
  void received(Time t, Qp& qp, const Packet& p) {
    if (p.kind == PacketKind::kRoceV2 && (p.tclass & kEcnMask) == kCe) marked(t, qp, p);
  }
  // A CNP that arrived for QP p.dest_qpn.
  void receive_cnp(Time t, FunctionId f, const Packet& p);
  // When the QP may send its next packet: t, or later, as its pace and pause frames want.
  Time earliest(Time t, Qp& qp) {
    return qp.cc.limited || blocks_.port.egress(qp.affinity).stopped(t) ? earliest_of_slowed(t, qp) : t;
  }
  // A data packet (request with or without payload, READ response) is about to go to the port at t: its ECN
  // bits, and the QP's pace.
  void sending(Time t, Qp& qp, Packet& p) {
    if (p.kind == PacketKind::kRoceV2) stamp(t, qp, p);
  }
  // The QP goes to reset: its limiter is free.
  static void forget(Qp& qp) { qp.cc = CcFlow{}; }

  // --- What firmware sets
  ReactionParams rp;
  NotificationParams np;
  // A bit a priority. Cards have it on for all (mlxconfig: ROCE_CC_PRIO_MASK 255).
  std::uint8_t rp_enabled = 0xff, np_enabled = 0xff;
  std::uint8_t rp_tag = 0, np_tag = 0;  // tag_enable: kept, of no use to RoCE v2

  const Statistics& statistics() const { return statistics_; }
  void clear_statistics() { statistics_ = {}; }
  std::uint32_t current_flows();  // QPs with a rate limiter now
  void reset();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, rp, np);
    a("rp_enabled", rp_enabled, 0xff);
    a("np_enabled", np_enabled, 0xff);
    HCASIM_FIELDS(a, rp_tag, np_tag, statistics_);
    HCASIM_FIELDS_SINCE(21, a, last_cnp_sent_);
    if constexpr (Archive::kLoads) a.check(last_cnp_sent_ >= -1, "there is no such time");
  }

 private:
  void marked(Time t, Qp& qp, const Packet& p);
  void stamp(Time t, Qp& qp, Packet& p);
  void slow(Time t, Qp& qp, std::uint32_t traced_qpn);
  Time earliest_of_slowed(Time t, Qp& qp);
  double line_rate() const;  // Mb/s
  bool reacts(const Qp& qp) const;

  Blocks blocks_;
  Statistics statistics_;
  Time last_cnp_sent_ = -1;  // of the port; -1: none yet
};

}  // namespace hcasim
#endif
