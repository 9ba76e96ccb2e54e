// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs and shared receive queues as the hardware holds them (qpc, rmpc, xrc_srqc of mlx5_ifc.h).
// Firmware writes the attributes, the engines (req, resp, sched) keep the run-time state below them.
#ifndef HCASIM_MODEL_CTX_QP_H
#define HCASIM_MODEL_CTX_QP_H

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "model/ctx/guest_ring.h"
#include "model/port/packet.h"
#include "model/req/requester_state.h"
#include "model/resp/responder_state.h"

namespace hcasim {

// qpc.st
enum class QpType : std::uint8_t {
  kRc = 0,
  kUc = 1,
  kUd = 2,
  kXrc = 3,
  kMlx = 4,
  kDci = 5,
  kDct = 6,
  kQp0 = 7,
  kQp1 = 8,
  kRawEthertype = 9,
  kRegUmr = 0xc
};
// qpc.state
enum class QpState : std::uint8_t { kRst = 0, kInit = 1, kRtr = 2, kRts = 3, kSqErr = 4, kSqd = 5, kErr = 6 };

// ads: primary or alternate address path.
struct AddressPath {
  std::uint16_t pkey_index = 0;
  bool grh = false;
  std::uint8_t mlid = 0;  // low bits of the source LID
  std::uint16_t rlid = 0;
  std::uint8_t ack_timeout = 0;  // 4.096 us * 2^n, 0 = none (IBTA 9.7.6.1.3)
  std::uint8_t sgid_index = 0;
  std::uint8_t stat_rate = 0, hop_limit = 0, tclass = 0, sl = 0, port = 1;
  std::uint32_t flow_label = 0;
  std::array<std::uint8_t, 16> rgid{};
};

// Shared receive queue: RMP or XRC SRQ. A linked list of WQEs (next_wqe_index in each WQE's next segment).
struct Srq {
  std::uint32_t srqn = 0;  // RMP: rmpn
  bool xrc = false;
  GuestRing ring;
  unsigned log_size = 0;    // WQEs
  unsigned log_stride = 4;  // bytes, log2
  std::uint32_t pd = 0;
  std::uint32_t xrcd = 0;
  std::uint32_t cqn = 0;  // XRC SRQ's own CQ
  std::uint32_t user_index = 0xffffff;
  std::uint64_t dbr_addr = 0;  // +0: count of posted WQEs, 16 bits
  std::uint16_t producer = 0;  // last read from the DBR
  std::uint16_t consumed = 0;  // WQEs taken, free-running
  std::uint32_t head = 0;      // index of the WQE to take next
  std::uint32_t limit = 0;     // armed SRQ limit (lwm); 0 = not armed
  bool error = false;
  std::uint32_t refs = 0;  // QPs attached
};

struct Qp {
  std::uint32_t qpn = 0;  // 24 bits
  QpType type = QpType::kRc;
  QpState state = QpState::kRst;

  // Attributes (written by firmware, from qpc)
  std::uint32_t pd = 0;
  std::uint32_t scq = 0, rcq = 0;     // CQNs
  bool has_sq = true, has_rq = true;  // has_rq false: SRQ or none
  bool use_srq = false;               // qpc.rq_type == 1
  std::uint32_t srqn = 0;
  std::uint32_t xrcd = 0;
  GuestRing ring;               // RQ first, then SQ
  unsigned log_sq_size = 0;     // WQEBBs of 64 bytes
  unsigned log_rq_size = 0;     // WQEs
  unsigned log_rq_stride = 4;   // bytes, log2
  std::uint64_t sq_offset = 0;  // bytes, where the SQ starts in ring
  std::uint64_t dbr_addr = 0;   // +0 RQ count, +4 SQ count
  std::uint32_t user_index = 0xffffff;
  std::uint32_t uar_page = 0;
  unsigned mtu = 256;  // bytes
  unsigned log_msg_max = 30;
  std::uint32_t remote_qpn = 0;
  AddressPath path;
  std::uint8_t retry_count = 7, rnr_retry = 7;  // 7 in rnr_retry: no limit
  std::uint8_t min_rnr_nak = 0;                 // timer code, IBTA table 45
  unsigned log_sra_max = 0, log_rra_max = 0;    // outstanding reads and atomics, log2
  bool rre = false, rwe = false, rae = false;   // remote read, write, atomic enabled
  std::uint8_t atomic_mode = 0;
  std::uint32_t qkey = 0;
  bool reserved_lkey = false;  // qpc.rlky
  std::uint8_t counter_set = 0;
  bool sq_signal_all = false;
  bool sqd_event = false;  // an SQ drained event is due when draining ends
  bool draining = false;   // SQD asked for, sends in flight remain

  RequesterState req;
  ResponderState resp;
};

// All QPs and SRQs by number.
class QpTable {
 public:
  Qp* create(std::uint32_t qpn);  // null when taken or beyond 24 bits
  Qp* find(std::uint32_t qpn) { return qpn < qps_.size() ? qps_[qpn].get() : nullptr; }
  bool destroy(std::uint32_t qpn);
  Srq* create_srq(std::uint32_t srqn);
  Srq* find_srq(std::uint32_t srqn) { return srqn < srqs_.size() ? srqs_[srqn].get() : nullptr; }
  bool destroy_srq(std::uint32_t srqn);
  void clear();
  std::size_t qp_count() const { return qp_count_; }
  std::size_t srq_count() const { return srq_count_; }
  template <class F>
  void for_each_qp(F f) {
    for (auto& q : qps_)
      if (q) f(*q);
  }

 private:
  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<std::unique_ptr<Srq>> srqs_;
  std::size_t qp_count_ = 0, srq_count_ = 0;
};

}  // namespace hcasim
#endif
