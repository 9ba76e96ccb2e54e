// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs of the bare driver: life cycle, WQE building, posting.
#ifndef HCASIM_DRIVER_BARE_QP_H
#define HCASIM_DRIVER_BARE_QP_H

#include "driver/bare/cq.h"
#include "driver/bare/mr.h"
#include "driver/bare/srq.h"

namespace hcasim::bare {

using prm::WqeOp;

// qpc.st
enum class QpType : unsigned {
  kRc = 0,
  kUc = 1,
  kUd = 2,
  kXrc = 3,
  kDci = 5,
  kQp0 = 7,
  kQp1 = 8,
  kRegUmr = 0xc
};
// qpc.state
enum class QpState : unsigned { kRst = 0, kInit = 1, kRtr = 2, kRts = 3, kSqErr = 4, kSqd = 5, kErr = 6 };

struct QpOptions {
  QpType type = QpType::kRc;
  unsigned log_sq = 6;         // WQEBBs
  unsigned log_rq = 6;         // WQEs
  unsigned log_rq_stride = 2;  // units of 16 bytes, log2: 2^n SGEs
  bool no_rq = false;
  bool no_sq = false;  // XRC target: no doorbell record either
  bool block_own_multicast = false;
  bool rendezvous = false;  // with no_sq and an XRQ: the HCA fetches the data of tagged messages
  std::uint32_t user_index = 0xffffff;
  std::uint32_t counter_set = 0;
  std::uint32_t xrcd = 0;                             // XRC
  std::uint8_t cs_req = 0, cs_res = 0;                // as in qpc
  std::uint32_t source_qpn = 0;                       // qpc.deth_sqpn
  bool reserved_lkey = false;                         // qpc.rlky
  bool fast_registers = true;                         // qpc.fre, as the kernel sets it for its QPs
  unsigned log_streams = 0, log_errored_streams = 0;  // DCI
  RingLayout ring;
  bool in_umem = false;  // ring and doorbell record are in UMEMs
};

// A path on the Ethernet link. Zero addresses mean our own: a loopback.
struct RocePath {
  int sgid_index = -1;  // -1: DeviceOptions::sgid_index
  Gid dgid{};
  Mac dmac{};
  std::uint8_t hop_limit = 64, tclass = 0, sl = 0;
  std::uint32_t flow_label = 0;
  std::uint16_t udp_sport = 0;
  bool force_loopback = false;  // all other fields then stay zero
};

// The attributes that the transitions carry.
struct QpAttr {
  std::uint32_t remote_qpn = 0;
  std::uint16_t dlid = 0;  // 0: our own
  std::uint8_t sl = 0;     // InfiniBand
  bool grh = false;        // InfiniBand; to this GID
  std::array<std::uint8_t, 16> dgid{};
  unsigned access = kRemoteRead | kRemoteWrite | kRemoteAtomic;
  unsigned atomic_mode = 5;  // qpc.atomic_mode, with kRemoteAtomic: masked atomics of up to 2^5 bytes
  unsigned mtu = 4096;       // bytes
  std::uint32_t send_psn = 0, recv_psn = 0;
  unsigned retry_count = 7, rnr_retry = 7;
  unsigned min_rnr_nak = 1;   // timer code: 0.01 ms
  unsigned ack_timeout = 14;  // 4.096 us * 2^n
  unsigned log_outstanding_reads = 4;
  unsigned log_ack_req_freq = 8;
  std::uint32_t qkey = 0x1ee7;
  std::uint16_t pkey_index = 0;
  RocePath roce;
};

// Address of a UD or DC send.
struct Av {
  std::uint32_t qpn = 0, qkey = 0x1ee7;  // DC: qpn is the target's
  std::uint64_t dc_key = 0;
  std::uint16_t dlid = 0;
  std::uint8_t sl = 0;
  bool grh = false;
  std::array<std::uint8_t, 16> dgid{};
  std::uint8_t hop_limit = 64, tclass = 0;
  std::uint32_t flow_label = 0;
  unsigned sgid_index = 0;
  RocePath roce;
};

// As a WQE has it. dc: with its access key.
prm::AvSeg av_segment(Device& device, const Av& av, bool dc = false);

struct SendWr {
  WqeOp op = WqeOp::kSend;
  std::vector<Sge> sges;
  std::vector<std::uint8_t> inline_data;  // if not empty, used instead of sges
  std::vector<std::uint8_t> inline_head;  // in front of the sges
  std::uint64_t raddr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;  // immediate, key to invalidate, mkey of a UMR
  std::uint64_t swap_add = 0, compare = 0;
  // Masked atomics: the operands, see prm::masked_atomic_operands(), of atomic_bytes bytes each.
  unsigned atomic_bytes = 8;
  std::vector<std::uint8_t> operands;
  std::uint32_t xrc_srqn = 0;  // XRC: the SRQ at the other end
  bool signaled = true, solicited = false;
  unsigned fence = prm::kFenceNone;
  std::uint16_t stream = 0;  // DCI
  Av av;
};

// A UMR WQE: which fields of the key change (prm::mkey_mask), and its new list.
struct UmrWr {
  std::uint32_t mkey = 0;  // its value on the wire before the change
  std::uint64_t mask = 0;
  MkeySpec spec;
  bool inline_list = true;  // false: `list` is a data segment
  Sge list;
  std::uint8_t flags = 0;  // prm::kUmrCheckFree ...; inline is added
  std::uint32_t offset_octowords = 0;
  bool signaled = true;
  unsigned fence = prm::kFenceNone;
};

class Qp {
 public:
  Qp(Device& device, const Pd& pd, Cq& send_cq, Cq& recv_cq)
      : Qp(device, pd, send_cq, recv_cq, QpOptions{}) {}
  Qp(Device& device, const Pd& pd, Cq& send_cq, Cq& recv_cq, const QpOptions& options, Srq* srq = nullptr);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  std::uint32_t qpn() const { return qpn_; }
  Cq& send_cq() { return send_cq_; }
  Cq& recv_cq() { return recv_cq_; }
  Device& device() { return device_; }

  CommandResult to_init(const QpAttr& a);
  CommandResult to_rtr(const QpAttr& a);
  CommandResult to_rts(const QpAttr& a);
  CommandResult to_error();
  CommandResult to_reset();
  // Any transition command; `state` goes into qpc if the command needs it.
  CommandResult modify(std::uint16_t opcode, std::uint32_t opt_mask,
                       const std::function<void(std::uint8_t* qpc)>& fill);
  // INIT, RTR, RTS with `a`; throws BareError at the first refusal.
  void connect(const QpAttr& a);
  CommandResult query();
  QpState state();
  CommandResult destroy();

  // Posts to the SQ; returns the WQE's counter, which its completion will have. Does not look whether there
  // is room: what has not completed is overwritten in a full ring (the rule sq-overrun).
  std::uint16_t post(const SendWr& wr, bool ring = true);
  std::uint16_t post_umr(const UmrWr& wr, bool ring = true);
  std::uint16_t post_nop(bool signaled = true, bool ring = true);
  // Posts arbitrary bytes as a WQE; its ds may be wrong. wqebbs: advance of the counter.
  std::uint16_t post_raw(const std::vector<std::uint8_t>& wqe, unsigned wqebbs, bool ring = true);
  // The fast way for benchmarks: an inline RDMA WRITE of `len` <= 188 bytes.
  void post_inline_write(const void* data, unsigned len, std::uint64_t raddr, std::uint32_t rkey,
                         bool signaled);
  // Doorbell record, then doorbell.
  void ring_doorbell();
  // Doorbell record, then the last WQE posted as a write-combining burst (BlueFlame, bf=on): for a single WQE
  // of up to 256 bytes; for a larger one only the doorbell.
  void ring_blueflame();
  void write_dbr() const { dbr_.set(1, sq_pi_); }
  void set_dbr(unsigned word, std::uint32_t value) const { dbr_.set(word, value); }
  void write_doorbell_only();

  std::uint16_t post_recv(const std::vector<Sge>& sges, bool ring = true);
  void ring_rq() const { dbr_.set(0, rq_pi_); }
  std::uint16_t sq_producer() const { return sq_pi_; }
  std::uint16_t rq_producer() const { return rq_pi_; }
  unsigned sq_wqebbs() const { return 1u << options_.log_sq; }
  std::uint8_t* sq_wqebb(std::uint16_t index) const {
    return sq_ + (static_cast<std::size_t>(index) & (sq_wqebbs() - 1)) * prm::kWqebb;
  }
  std::uint8_t* rq_wqe(std::uint16_t index) const {
    return ring_.data() +
           (static_cast<std::size_t>(index & ((1u << options_.log_rq) - 1)) << (4 + options_.log_rq_stride));
  }
  const Ring& ring() const { return ring_; }

 private:
  std::uint16_t push(std::vector<std::uint8_t>& wqe);
  std::uint8_t* begin(WqeOp op, bool signaled, bool solicited, unsigned fence, std::uint32_t imm);

  Device& device_;
  QpOptions options_;
  Cq& send_cq_;
  Cq& recv_cq_;
  Ring ring_;
  std::uint8_t* sq_;
  Dbr dbr_;
  std::optional<QueueUmems> umems_;
  std::uint32_t pd_, qpn_ = 0;
  std::uint64_t epoch_;
  std::uint16_t sq_pi_ = 0, rq_pi_ = 0, last_ = 0;
  unsigned bf_offset_ = 0, last_wqebbs_ = 1;
  bool live_ = false, has_srq_;
  std::vector<std::uint8_t> wqe_;
};

// Two QPs, of one device or of two, each the other's remote end. attr: as the first one is to have it; the
// path to another device is found out.
void connect_pair(Qp& a, Qp& b, QpAttr attr = {});

}  // namespace hcasim::bare
#endif
