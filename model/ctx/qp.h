// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs and shared receive queues as the hardware holds them (qpc, rmpc, xrc_srqc of mlx5_ifc.h).
// Firmware writes the attributes, the engines (req, resp, sched) keep the run-time state below them.
#ifndef HCASIM_MODEL_CTX_QP_H
#define HCASIM_MODEL_CTX_QP_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "model/cc/flow.h"
#include "model/ctx/guest_ring.h"
#include "model/function/id.h"
#include "model/function/number_table.h"
#include "model/function/roce_address.h"
#include "model/function/suspension.h"
#include "model/packet/packet.h"
#include "model/req/requester_state.h"
#include "model/resp/responder_state.h"
#include "model/sched/rate_clock.h"
#include "model/state/fields.h"
#include "model/tm/tag_list.h"
#include "model/tpt/mkey.h"
#include "prm/cqe.h"
#include "traces/tracer.h"

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
  kRegUmr = 0xc,
  kSq = 0x40  // not of the PRM: a send queue of its own (sqc), for frames; receives nothing
};
constexpr bool sends_datagrams(QpType t) {
  return t == QpType::kUd || t == QpType::kQp0 || t == QpType::kQp1;
}
// Acknowledged and retried, with reads and atomics (IBTA 9.7; XRC: annex A14).
constexpr bool is_dc(QpType t) { return t == QpType::kDci || t == QpType::kDct; }
constexpr bool is_reliable(QpType t) { return t == QpType::kRc || t == QpType::kXrc || is_dc(t); }
// The transport bits of a QP's BTH opcodes; 0xff: it has no packets of a transport.
constexpr std::uint8_t transport_bits(QpType t) {
  switch (t) {
    case QpType::kRc:
      return prm::bth::kRc;
    case QpType::kUc:
      return prm::bth::kUc;
    case QpType::kXrc:
      return prm::bth::kXrc;
    case QpType::kDci:
    case QpType::kDct:
      return prm::bth::kDc;
    case QpType::kUd:
    case QpType::kQp0:
    case QpType::kQp1:
      return prm::bth::kUd;
    default:
      return 0xff;
  }
}
// qpc.state
enum class QpState : std::uint8_t { kRst = 0, kInit = 1, kRtr = 2, kRts = 3, kSqErr = 4, kSqd = 5, kErr = 6 };
// Packets that come in are taken (IBTA 10.3.1).
constexpr bool receives(QpState s) {
  return s == QpState::kRtr || s == QpState::kRts || s == QpState::kSqd || s == QpState::kSqErr;
}

// Of packets whose path does not say.
constexpr std::uint8_t kDefaultHops = 64;

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
  // RoCE
  std::array<std::uint8_t, 6> rmac{};
  std::uint16_t udp_sport = 0;  // 0: made from the QP numbers
  std::uint8_t eth_prio = 0, dscp = 0;
  // What sgid_index named when the path was set. A connected QP keeps it, whatever becomes of the entry: when
  // a bond fails over, drivers clear entries that QPs use, and these are to go on by the other port.
  RoceAddress source;
  bool force_loopback = false;  // ads.fl: packets stay inside this HCA, whatever their address

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, pkey_index, grh, mlid, rlid, ack_timeout, sgid_index, stat_rate, hop_limit, tclass, sl,
                  port, flow_label, rgid, rmac, udp_sport, eth_prio, dscp, source, force_loopback);
  }
};

// Shared receive queue: RMP or XRC SRQ. A linked list of WQEs (next_wqe_index in each WQE's next segment).
struct Srq {
  std::uint32_t srqn = 0;  // RMP: rmpn
  FunctionId function = 0;
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
  // wq.wq_type: WQEs are taken in the order of the ring, whatever their next segments say, and a completion's
  // counter runs on, unmasked.
  bool cyclic = false;
  std::uint32_t limit = 0;  // armed SRQ limit (lwm); 0 = not armed
  bool error = false;
  // XRQ: has its CQ, like an XRC SRQ. tags: the matching list, if it has one.
  bool xrq = false;
  bool rendezvous = false;  // xrqc.offload: the HCA fetches the data
  std::unique_ptr<TagList> tags;
  bool has_cq() const { return xrc || xrq; }
  std::uint16_t wqe_counter() const { return cyclic ? consumed : static_cast<std::uint16_t>(head); }
  // The WQE at head is taken; linked: the one that it names as the next.
  void took(std::uint16_t linked) {
    ++consumed;
    head = cyclic ? consumed & ((1u << log_size) - 1) : linked;
  }
  traces::Subject subject() const { return {function, srqn}; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, srqn, xrc, ring, log_size, log_stride, pd, xrcd, cqn, user_index, dbr_addr, producer,
                  consumed, head, cyclic, limit, error, xrq, rendezvous, tags);
  }
};

// What of a WQE's metadata comes back with the time when its frame has left the port: so many bits.
constexpr unsigned kDepartureIdBits = 8;
constexpr std::uint32_t kDepartureIds = (1u << kDepartureIdBits) - 1;

struct Qp {
  std::uint32_t qpn = 0;  // 24 bits
  QpType type = QpType::kRc;
  QpState state = QpState::kRst;
  FunctionId function = 0;  // whose it is; set by its table

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
  bool reserved_lkey = false;  // qpc.rlky, sqc.rlky, of the kernel's queues: WQEs may use kReservedKey
  std::uint8_t counter_set = 0;
  bool sq_signal_all = false;
  bool block_own_multicast = false;       // qpc.block_lb_mc
  bool drain_sigerr = false;              // a signature error of a send WQE drains the SQ
  bool rendezvous = false;                // qpc.offload_type: the send queue is the tag-matching unit's
  prm::InlineScatter cs_req{}, cs_res{};  // small READ and atomic results, small receives: into the CQE
  bool sqd_event = false;                 // an SQ drained event is due when draining ends
  // SQs (type kSq)
  std::uint32_t tis = 0;               // sqc.tis_num_0
  std::uint32_t transport_domain = 0;  // of the TIS
  PortAffinity affinity;               // of a frames' queue: the TIS's
  std::uint8_t prio = 0;               // the TIS's, 0 to 7
  bool flush_in_error = false;         // sqc.flush_in_error_en
  bool tls = false;            // an SQ of a board that encrypts: its WQEs may be of TLS, or have trailers
  bool gives_headers = false;  // sqc.allow_swp: WQEs may say where headers are
  // sqc.ts_cqe_to_dest_cqn: a CQE for each frame that leaves the port; 0: none
  std::uint32_t departures_cqn = 0;
  bool draining = false;  // SQD asked for, sends in flight remain
  // qpc.fre, sqc.reg_umr, of the kernel's queues alone: its UMRs may change keys that translate by pages,
  // whose lists hold bus addresses. States before version 20 do not say.
  bool fast_registers = true;
  bool sends_as_qp1 = false;  // UD: its datagrams name QP1 as their source (deth_sqpn)
  // IPoIB's enhanced offloads. An SQ: the UD QP in whose name its frames leave as datagrams
  // (tisc.underlay_qpn); 0: they leave as frames.
  std::uint32_t underlay = 0;
  // The UD QP itself (qpc.ulp_stateless_offload_mode 2): it has no queues, what it receives goes by way of
  // flow tables, from this one on (set_flow_table_root_in.underlay_qpn), to receive queues of frames.
  bool carries_frames = false;
  std::uint32_t frame_table = 0;

  std::uint8_t log_dci_errored = 0;  // DCI: with how many failed streams it fails itself, log2
  // DC target: what a DCT has itself ...
  std::uint64_t dc_key = 0;
  std::uint32_t dc_key_violations = 0;
  bool dc_key_armed = true;  // the next violation raises an event
  // ... and what a responder context has that serves one of its initiators (DcContexts).
  std::uint32_t dctn = 0;
  std::uint8_t dc_session = 0;     // also a DCI's
  std::uint32_t dc_first_psn = 0;  // where the connection began
  bool dc_closed = false;
  Time dc_last_used = 0;

  // The number that completions and events name.
  std::uint32_t number() const { return dctn != 0 ? dctn : qpn; }
  // As trace records name it.
  traces::Subject subject() const { return {function, qpn}; }
  // By which it is in a traffic class, on Ethernet.
  // Ethernet: of the frames; InfiniBand: the service level.
  unsigned priority() const { return type == QpType::kSq ? prio : path.eth_prio | path.sl; }

  RequesterState req;
  ResponderState resp;
  CcFlow cc;
  QpQos qos;

  // What each packet looks at (model/prefetch.h), apart from the engines' own states; those that wait for the
  // port also at what paces them.
  void prefetch() const { prefetch_range(this, offsetof(Qp, path) + sizeof path); }
  void prefetch_pace() const { prefetch_range(&cc, sizeof cc + sizeof qos); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, qpn, type, state, pd, scq, rcq, has_sq, has_rq, use_srq, srqn, xrcd, ring, log_sq_size,
                  log_rq_size, log_rq_stride, sq_offset, dbr_addr, user_index, uar_page, mtu, log_msg_max,
                  remote_qpn, path, retry_count, rnr_retry, min_rnr_nak, log_sra_max, log_rra_max, rre, rwe,
                  rae, atomic_mode, qkey, reserved_lkey, counter_set, sq_signal_all, block_own_multicast,
                  drain_sigerr, rendezvous, cs_req);
    HCASIM_FIELDS(a, affinity, prio, cs_res, sqd_event, tis, transport_domain, flush_in_error, tls,
                  gives_headers, departures_cqn, draining, log_dci_errored, dc_key, dc_key_violations,
                  dc_key_armed, dctn, dc_session, dc_first_psn, dc_closed, dc_last_used, req, resp, cc, qos);
    HCASIM_FIELDS_SINCE(20, a, fast_registers);
    HCASIM_FIELDS_SINCE(21, a, sends_as_qp1);
    HCASIM_FIELDS_SINCE(22, a, underlay, carries_frames, frame_table);
    if constexpr (Archive::kLoads) {
      if (a.version() < 21) reserved_lkey = false;  // it meant nothing, and was whoever's
      a.check(mtu >= 256 && mtu <= kMaxPayload && (mtu & (mtu - 1)) == 0, "there is no such path MTU");
      a.check(log_sra_max <= 7 && log_rra_max <= 7, "no QP has as many READs and atomics outstanding");
      a.check(sends_are_sound(), "a WQE of the send queue does not agree with itself");
      a.check(resp.rq_ahead.fits(log_rq_stride), "what was read ahead has no bytes");
    }
  }

 private:
  // Whether each WQE that may still be sent is such as parsing and the requester leave it. They do not check
  // it again.
  bool sends_are_sound() const;
};

// The PD that a remote key is checked against: of the SRQ that the request names, on XRC (IBTA A14).
inline std::uint32_t rights_pd(const Qp& qp) { return qp.type == QpType::kXrc ? qp.resp.xrc_pd : qp.pd; }
inline KeyUser rights_user(const Qp& qp) { return {rights_pd(qp), qp.qpn, qp.function}; }

// Responder contexts of DC targets: one for each initiator that is connected, made when it connects. An
// initiator is known by its address and QPN. Numbers lie above those of QPs, so that the engines' queues take
// them as such.
class DcContexts {
 public:
  static constexpr std::uint32_t kFirst = 1u << 24;
  using Address = std::array<std::uint8_t, 16>;

  explicit DcContexts(FunctionId function) : function_(function) {}
  // Where a packet comes from: an initiator's number is one of its port's alone.
  static Address source_of(const Packet& p);
  Qp* find(std::uint32_t number) {
    const std::uint32_t i = number - kFirst;
    return i < contexts_.size() ? contexts_[i].get() : nullptr;
  }
  Qp* find(std::uint32_t dctn, std::uint32_t initiator, const Address& from);
  // Whose context the next one is given: null, none is needed, or none is idle at t.
  Qp* to_reclaim(Time t, std::size_t limit);
  // Null: `limit` contexts are in use and none of them is idle at t.
  Qp* create(Time t, std::size_t limit, std::uint32_t dctn, std::uint32_t initiator, const Address& from);
  void remove_all_of(std::uint32_t dctn);
  void clear();
  std::size_t count() const { return index_.size(); }
  template <class F>
  void for_each(F f) {
    for (auto& c : contexts_)
      if (c) f(*c);
  }
  // Those of a target, each with where its initiator is.
  template <class F>
  void for_each_of(std::uint32_t dctn, F f) {
    for (auto it = index_.lower_bound({dctn, 0, {}}); it != index_.end() && it->first.dctn == dctn; ++it)
      f(it->first.from, *contexts_[it->second]);
  }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, contexts_, free_, index_);
    if constexpr (Archive::kLoads) {
      std::size_t there = 0;
      for (const auto& context : contexts_) {
        if (!context) continue;
        context->function = function_;
        ++there;
      }
      bool good = index_.size() == there && free_.size() == contexts_.size() - there;
      std::vector<bool> named(contexts_.size());
      const auto once = [&](std::uint32_t i) {
        if (i >= named.size() || named[i]) return false;
        named[i] = true;
        return true;
      };
      for (const auto& [key, i] : index_) good = good && once(i) && contexts_[i];
      for (const std::uint32_t i : free_) good = good && once(i) && !contexts_[i];
      a.check(good, "the contexts of DC initiators do not agree with their index");
    }
  }

 private:
  struct Key {
    std::uint32_t dctn, initiator;
    Address from;
    bool operator<(const Key& o) const {
      return std::tie(dctn, initiator, from) < std::tie(o.dctn, o.initiator, o.from);
    }
    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, dctn, initiator, from);
    }
  };
  std::map<Key, std::uint32_t>::iterator oldest_idle(Time t);

  FunctionId function_;
  std::vector<std::unique_ptr<Qp>> contexts_;
  std::vector<std::uint32_t> free_;
  std::map<Key, std::uint32_t> index_;
};

// So many QPs of one card do not stay in the processor's own caches from one turn to the next.
constexpr std::size_t kManyQps = 24;

// All QPs and SRQs of a function, by number.
class QpTable {
 public:
  explicit QpTable(FunctionId function = 0) : qps_(function), srqs_(function), dc_contexts_(function) {}
  Qp* create(std::uint32_t qpn) { return qps_.create(qpn); }  // null when taken or beyond 24 bits
  // Also of a DC responder context, by its own number.
  Qp* find(std::uint32_t qpn) {
    Qp* const qp = qps_.find(qpn);
    return qp ? qp : qpn >= DcContexts::kFirst ? dc_contexts_.find(qpn) : nullptr;
  }
  DcContexts& dc_contexts() { return dc_contexts_; }
  // What a requester gets back from an atomic of 8 bytes: in its host's order, or big-endian (atomic_caps.
  // atomic_req_8B_endianness_mode).
  bool atomic_host_endian = false;
  // Whether the function is held. Its objects may go meanwhile, and it still is.
  Suspension suspension;
  bool destroy(std::uint32_t qpn) { return qps_.destroy(qpn); }
  Srq* create_srq(std::uint32_t srqn) { return srqs_.create(srqn); }
  Srq* find_srq(std::uint32_t srqn) { return srqs_.find(srqn); }
  bool destroy_srq(std::uint32_t srqn) { return srqs_.destroy(srqn); }
  void clear();
  std::size_t qp_count() const { return qps_.count(); }
  std::size_t srq_count() const { return srqs_.count(); }
  template <class F>
  void for_each_qp(F f) {
    qps_.for_each(f);
    dc_contexts_.for_each(f);
  }
  template <class F>
  void for_each_srq(F f) {
    srqs_.for_each(f);
  }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, qps_, srqs_, dc_contexts_, atomic_host_endian);
    if constexpr (!Archive::kResets)
      if (Archive::kStores || suspension.any()) HCASIM_FIELDS(a, suspension);
  }

 private:
  NumberTable<Qp, &Qp::qpn> qps_;
  NumberTable<Srq, &Srq::srqn> srqs_;
  DcContexts dc_contexts_;
};

// Whether the card's functions have so many together.
inline bool many_qps(const PerFunction<QpTable>& tables) {
  std::size_t n = 0;
  tables.for_each([&n](const QpTable& t) { n += t.qp_count(); });
  return n >= kManyQps;
}

}  // namespace hcasim
#endif
