// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/qp.h"

#include <algorithm>
#include <cstring>

#include "driver/bare/blueflame.h"
#include "prm/umem.h"

namespace hcasim::bare {

namespace {

// opt_param_mask bits that the verbs layer always sets with the access flags.
constexpr std::uint32_t kOptRre = 1 << 1, kOptRae = 1 << 2, kOptRwe = 1 << 3;

unsigned mtu_code(unsigned bytes) {
  unsigned code = 1;
  for (unsigned size = 256; size < bytes; size *= 2) ++code;
  return code;
}

std::size_t rq_bytes(const QpOptions& o, bool has_rq) {
  return has_rq ? std::max<std::size_t>(64, std::size_t{16} << (o.log_rq + o.log_rq_stride)) : 0;
}

template <class T>
T* append(std::vector<std::uint8_t>& v) {
  v.resize(v.size() + sizeof(T));
  return reinterpret_cast<T*>(v.data() + v.size() - sizeof(T));
}

void append_inline(std::vector<std::uint8_t>& v, const std::uint8_t* data, std::size_t len) {
  append<prm::InlineSeg>(v)->byte_count = prm::InlineSeg::kFlag | static_cast<std::uint32_t>(len);
  v.insert(v.end(), data, data + len);
  v.resize((v.size() + prm::kDs - 1) / prm::kDs * prm::kDs);
}

void append_data(std::vector<std::uint8_t>& v, const Sge& s) {
  auto* seg = append<prm::DataSeg>(v);
  seg->byte_count = s.len;
  seg->lkey = s.lkey;
  seg->addr = s.addr;
}

}  // namespace

Qp::Qp(Device& device, const Pd& pd, Cq& send_cq, Cq& recv_cq, const QpOptions& o, Srq* srq)
    : device_(device),
      options_(o),
      send_cq_(send_cq),
      recv_cq_(recv_cq),
      dbr_(device.allocate_dbr()),
      pd_(pd.pdn()),
      epoch_(device.epoch()),
      has_srq_(srq != nullptr) {
  const bool has_rq = !has_srq_ && !o.no_rq;
  const std::size_t rq = rq_bytes(o, has_rq);
  ring_ = Ring(device.memory(), rq + (std::size_t{prm::kWqebb} << o.log_sq), o.ring);
  sq_ = ring_.data() + rq;

  using In = prm::create_qp_in;
  using C = In::qpc;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_QP, In::bytes + pas.size() * 8);
  in.set<C::st>(static_cast<unsigned>(o.type));
  in.set<C::pm_state>(3);
  in.set<C::pd>(pd_);
  in.set<C::log_rq_size>(has_rq ? o.log_rq : 0);
  in.set<C::log_rq_stride>(has_rq ? o.log_rq_stride : 0);
  in.set<C::log_sq_size>(o.no_sq ? 0 : o.log_sq);
  in.set<C::offload_type>(o.rendezvous);
  in.set<C::block_lb_mc>(o.block_own_multicast);
  in.set<C::rq_type>(has_srq_ ? 1 : has_rq ? 0 : 3);
  if (srq) in.set<C::srqn_rmpn_xrqn>(srq->srqn());
  if (o.type == QpType::kXrc) in.set<C::xrcd>(o.xrcd);
  in.set<C::uar_page>(device.uar());
  in.set<C::fre>(o.fast_registers);
  in.set<C::rlky>(o.reserved_lkey);
  in.set<C::deth_sqpn>(o.source_qpn);
  in.set<C::user_index>(o.user_index);
  in.set<C::cs_req>(o.cs_req);
  in.set<C::cs_res>(o.cs_res);
  in.set<C::log_num_dci_stream_channels>(o.log_streams);
  in.set<C::log_num_dci_errored_streams>(o.log_errored_streams);
  in.set<C::log_page_size>(ring_.log_page_size());
  in.set<C::page_offset>(ring_.page_offset());
  in.set<C::cqn_snd>(send_cq.cqn());
  in.set<C::cqn_rcv>(recv_cq.cqn());
  in.set<C::no_sq>(o.no_sq ? 1 : 0);
  in.set<C::dbr_addr>(o.no_sq ? 0 : dbr_.bus);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::set<In::pas>(in.data(), i, pas[i]);
  if (o.in_umem) {
    umems_.emplace(device, ring_, dbr_);
    in.resize(In::bytes);
    in.set<C::dbr_addr>(umems_->dbr_offset()).set<C::dbr_umem_valid>(1).set<In::wq_umem_valid>(1);
    in.set<prm::umem_ref::qpc_dbr_id<C>>(umems_->dbr_id());
    in.set<In::wq_umem_id>(umems_->ring_id()).set<In::wq_umem_offset>(umems_->ring_offset());
    in.set<C::page_offset>(0).set<C::log_page_size>(0);
  }
  try {
    qpn_ = static_cast<std::uint32_t>(
        device.exec(in, prm::create_qp_out::bytes).must().get<prm::create_qp_out::qpn>());
  } catch (...) {
    device.free_dbr(dbr_);
    throw;
  }
  live_ = true;
}

Qp::~Qp() {
  if (live_ && device_.lives(epoch_)) {
    device_.note_destroy(to_reset());
    device_.note_destroy(destroy());
  }
  device_.free_dbr(dbr_);
}

CommandResult Qp::modify(std::uint16_t opcode, std::uint32_t opt_mask,
                         const std::function<void(std::uint8_t*)>& fill) {
  using In = prm::rst2init_qp_in;  // the layout of all transition commands
  Mailbox in(opcode, In::bytes);
  in.set<In::qpn>(qpn_);
  in.set<In::opt_param_mask>(opt_mask);
  std::uint8_t* qpc = in.data() + In::qpc::bit_off / 8;
  prm::set<prm::qpc::st>(qpc, static_cast<unsigned>(options_.type));
  prm::set<prm::qpc::pm_state>(qpc, 3);
  if (fill) fill(qpc);
  return device_.exec(in);
}

namespace {

// The path with all its defaults filled in.
RocePath resolved(const Device& d, RocePath p) {
  if (p.sgid_index < 0) p.sgid_index = static_cast<int>(d.sgid_index());
  if (p.dgid == Gid{}) p.dgid = d.roce_entry(static_cast<unsigned>(p.sgid_index)).gid;
  if (p.dmac == Mac{}) p.dmac = d.mac();
  return p;
}

void set_roce_path(const Device& d, std::uint8_t* qpc, const RocePath& path) {
  using P = prm::qpc::primary_address_path;
  const RocePath p = resolved(d, path);
  prm::set<P::src_addr_index>(qpc, static_cast<std::uint32_t>(p.sgid_index));
  prm::set<P::hop_limit>(qpc, p.hop_limit);
  prm::set<P::tclass>(qpc, p.tclass);
  prm::set<P::flow_label>(qpc, p.flow_label);
  prm::set<P::udp_sport>(qpc, p.udp_sport);
  prm::set<P::eth_prio>(qpc, p.sl);
  if (d.roce_entry(static_cast<unsigned>(p.sgid_index)).version != 0) prm::set<P::dscp>(qpc, p.tclass >> 2);
  for (unsigned i = 0; i < p.dgid.size(); ++i) prm::set<P::rgid_rip>(qpc, i, p.dgid[i]);
  prm::set<P::rmac_47_32>(qpc, static_cast<std::uint32_t>(p.dmac[0] << 8 | p.dmac[1]));
  prm::set<P::rmac_31_0>(qpc, prm::load32(p.dmac.data() + 2));
}

void set_access(std::uint8_t* qpc, const QpAttr& a) {
  prm::set<prm::qpc::rre>(qpc, (a.access & kRemoteRead) != 0);
  prm::set<prm::qpc::rwe>(qpc, (a.access & kRemoteWrite) != 0);
  prm::set<prm::qpc::rae>(qpc, (a.access & kRemoteAtomic) != 0);
  prm::set<prm::qpc::atomic_mode>(qpc, (a.access & kRemoteAtomic) != 0 ? a.atomic_mode : 0);
}

std::uint8_t opmod_of(const SendWr& wr) {
  if (wr.op != WqeOp::kMaskedCs && wr.op != WqeOp::kMaskedFa) return 0;
  unsigned log = 0;
  while (4u << log < wr.atomic_bytes) ++log;
  return static_cast<std::uint8_t>(prm::kAtomicExtended | log);
}

}  // namespace

CommandResult Qp::to_init(const QpAttr& a) {
  return modify(prm::op::RST2INIT_QP, 0, [&](std::uint8_t* qpc) {
    prm::set<prm::qpc::primary_address_path::pkey_index>(qpc, a.pkey_index);
    prm::set<prm::qpc::primary_address_path::vhca_port_num>(qpc, 1);
    prm::set<prm::qpc::counter_set_id>(qpc, options_.counter_set);
    if (!umems_ && !options_.no_sq) prm::set<prm::qpc::dbr_addr>(qpc, dbr_.bus);
    prm::set<prm::qpc::pd>(qpc, pd_);
    prm::set<prm::qpc::cqn_snd>(qpc, send_cq_.cqn());
    prm::set<prm::qpc::cqn_rcv>(qpc, recv_cq_.cqn());
    prm::set<prm::qpc::rwe>(qpc, (a.access & kRemoteWrite) != 0);
    if (options_.type == QpType::kUd || options_.type == QpType::kQp1) prm::set<prm::qpc::q_key>(qpc, a.qkey);
  });
}

CommandResult Qp::to_rtr(const QpAttr& a) {
  const bool rc = options_.type == QpType::kRc || options_.type == QpType::kXrc;
  const bool named = rc || options_.type == QpType::kUc;  // by the path; WQEs of other types have an address
  return modify(prm::op::INIT2RTR_QP, rc ? kOptRre | kOptRae | kOptRwe : 0, [&](std::uint8_t* qpc) {
    prm::set<prm::qpc::mtu>(qpc, mtu_code(a.mtu));
    prm::set<prm::qpc::log_msg_max>(qpc,
                                    static_cast<std::uint32_t>(device_.cap<prm::cmd_hca_cap::log_max_msg>()));
    prm::set<prm::qpc::remote_qpn>(qpc, a.remote_qpn);
    using P = prm::qpc::primary_address_path;
    prm::set<P::pkey_index>(qpc, a.pkey_index);
    if (!device_.ethernet()) {
      prm::set<P::rlid>(qpc, a.dlid != 0 ? a.dlid : device_.lid());
      prm::set<P::sl>(qpc, a.sl);
      prm::set<P::grh>(qpc, a.grh ? 1 : 0);
      if (a.grh) {
        prm::set<P::hop_limit>(qpc, 64);
        for (unsigned i = 0; i < a.dgid.size(); ++i) prm::set<P::rgid_rip>(qpc, i, a.dgid[i]);
      }
    } else if (a.roce.force_loopback) {
      prm::set<P::fl>(qpc, 1);
    } else if (named) {
      set_roce_path(device_, qpc, a.roce);
    }
    prm::set<P::vhca_port_num>(qpc, 1);
    prm::set<prm::qpc::next_rcv_psn>(qpc, a.recv_psn);
    prm::set<prm::qpc::log_rra_max>(qpc, a.log_outstanding_reads);
    prm::set<prm::qpc::min_rnr_nak>(qpc, a.min_rnr_nak);
    set_access(qpc, a);
  });
}

CommandResult Qp::to_rts(const QpAttr& a) {
  return modify(prm::op::RTR2RTS_QP, 0, [&](std::uint8_t* qpc) {
    prm::set<prm::qpc::next_send_psn>(qpc, a.send_psn);
    prm::set<prm::qpc::retry_count>(qpc, a.retry_count);
    prm::set<prm::qpc::rnr_retry>(qpc, a.rnr_retry);
    prm::set<prm::qpc::primary_address_path::ack_timeout>(qpc, a.ack_timeout);
    prm::set<prm::qpc::log_sra_max>(qpc, a.log_outstanding_reads);
    prm::set<prm::qpc::log_ack_req_freq>(qpc, a.log_ack_req_freq);
    set_access(qpc, a);
  });
}

CommandResult Qp::to_error() { return modify(prm::op::_2ERR_QP, 0, {}); }

CommandResult Qp::to_reset() {
  auto r = modify(prm::op::_2RST_QP, 0, {});
  if (r.ok()) {
    sq_pi_ = rq_pi_ = 0;
    dbr_.set(0, 0);
    dbr_.set(1, 0);
  }
  return r;
}

void Qp::connect(const QpAttr& a) {
  to_init(a).must();
  to_rtr(a).must();
  to_rts(a).must();
}

CommandResult Qp::query() {
  Mailbox in(prm::op::QUERY_QP, prm::query_qp_in::bytes);
  return device_.exec(in.set<prm::query_qp_in::qpn>(qpn_), prm::query_qp_out::bytes);
}

QpState Qp::state() { return static_cast<QpState>(query().must().get<prm::query_qp_out::qpc::state>()); }

CommandResult Qp::destroy() {
  Mailbox in(prm::op::DESTROY_QP, prm::destroy_qp_in::bytes);
  auto r = device_.exec(in.set<prm::destroy_qp_in::qpn>(qpn_));
  if (r.ok()) live_ = false;
  return r;
}

std::uint16_t Qp::post_raw(const std::vector<std::uint8_t>& wqe, unsigned wqebbs, bool ring) {
  const std::uint16_t index = sq_pi_;
  for (std::size_t off = 0, i = 0; off < wqe.size(); off += prm::kWqebb, ++i)
    std::memcpy(sq_wqebb(static_cast<std::uint16_t>(index + i)), wqe.data() + off,
                std::min<std::size_t>(prm::kWqebb, wqe.size() - off));
  last_ = index;
  last_wqebbs_ = wqebbs;
  sq_pi_ = static_cast<std::uint16_t>(sq_pi_ + wqebbs);
  if (ring) ring_doorbell();
  return index;
}

std::uint16_t Qp::push(std::vector<std::uint8_t>& wqe) {
  const auto ds = static_cast<unsigned>(wqe.size() / prm::kDs);
  if (ds > prm::kMaxWqeDs) throw BareError("WQE too large");
  auto* ctrl = reinterpret_cast<prm::CtrlSeg*>(wqe.data());
  ctrl->qpn_ds = qpn_ << 8 | ds;
  return post_raw(wqe, (ds + 3) / 4, false);
}

prm::AvSeg av_segment(Device& device, const Av& a, bool dc) {
  prm::AvSeg av{};
  av.qkey = a.qkey;
  if (dc) {
    av.qkey = static_cast<std::uint32_t>(a.dc_key >> 32);
    av.key_low = static_cast<std::uint32_t>(a.dc_key);
  }
  av.dqp_dct = a.qpn | prm::AvSeg::kExtended;
  av.stat_rate_sl = a.sl;
  av.rlid = a.dlid != 0 ? a.dlid : device.lid();
  if (device.ethernet()) {
    const RocePath p = resolved(device, a.roce);
    av.stat_rate_sl = static_cast<std::uint8_t>(p.sl << 1);
    av.rlid = p.udp_sport;
    std::copy(p.dmac.begin(), p.dmac.end(), av.rmac);
    av.tclass = p.tclass;
    av.hop_limit = p.hop_limit;
    av.grh_gid_fl = prm::AvSeg::kGrh | static_cast<std::uint32_t>(p.sgid_index) << 20 | p.flow_label;
    std::copy(p.dgid.begin(), p.dgid.end(), av.rgid);
  } else if (a.grh) {
    av.grh_gid_fl = prm::AvSeg::kGrh | a.sgid_index << 20 | a.flow_label;
    av.hop_limit = a.hop_limit;
    av.tclass = a.tclass;
    std::copy(a.dgid.begin(), a.dgid.end(), av.rgid);
  }
  return av;
}

std::uint16_t Qp::post(const SendWr& wr, bool ring) {
  std::vector<std::uint8_t>& w = wqe_;
  w.clear();
  auto* ctrl = append<prm::CtrlSeg>(w);
  ctrl->set(wr.op, sq_pi_, qpn_, 0, wr.signaled ? prm::kCeAlways : prm::kCeOnError, wr.solicited,
            opmod_of(wr), wr.fence);
  ctrl->stream = wr.stream;
  ctrl->imm = wr.imm;
  if (options_.type == QpType::kUd || options_.type == QpType::kQp1 || options_.type == QpType::kQp0 ||
      options_.type == QpType::kDci) {
    const prm::AvSeg av = av_segment(device_, wr.av, options_.type == QpType::kDci);
    *append<prm::AvSeg>(w) = av;
  }
  if (options_.type == QpType::kXrc) {
    auto* x = append<prm::XrcSeg>(w);
    std::memset(static_cast<void*>(x), 0, sizeof *x);
    x->xrc_srqn = wr.xrc_srqn;
  }
  switch (wr.op) {
    case WqeOp::kRdmaWrite:
    case WqeOp::kRdmaWriteImm:
    case WqeOp::kRdmaRead:
    case WqeOp::kAtomicCs:
    case WqeOp::kAtomicFa:
    case WqeOp::kMaskedCs:
    case WqeOp::kMaskedFa: {
      auto* r = append<prm::RaddrSeg>(w);
      r->raddr = wr.raddr;
      r->rkey = wr.rkey;
      r->rsvd = 0;
      break;
    }
    default:
      break;
  }
  if (wr.op == WqeOp::kAtomicCs || wr.op == WqeOp::kAtomicFa) {
    auto* a = append<prm::AtomicSeg>(w);
    a->swap_add = wr.swap_add;
    a->compare = wr.compare;
  }
  if (wr.op == WqeOp::kMaskedCs || wr.op == WqeOp::kMaskedFa) {
    w.insert(w.end(), wr.operands.begin(), wr.operands.end());
    w.resize((w.size() + prm::kDs - 1) / prm::kDs * prm::kDs);
  }
  if (!wr.inline_data.empty()) {
    append_inline(w, wr.inline_data.data(), wr.inline_data.size());
  } else {
    if (!wr.inline_head.empty()) append_inline(w, wr.inline_head.data(), wr.inline_head.size());
    for (const Sge& s : wr.sges) append_data(w, s);
  }
  const std::uint16_t index = push(w);
  if (ring) ring_doorbell();
  return index;
}

std::uint16_t Qp::post_nop(bool signaled, bool ring) {
  std::vector<std::uint8_t>& w = wqe_;
  w.clear();
  append<prm::CtrlSeg>(w)->set(WqeOp::kNop, sq_pi_, qpn_, 0, signaled ? prm::kCeAlways : prm::kCeOnError);
  const std::uint16_t index = push(w);
  if (ring) ring_doorbell();
  return index;
}

std::uint16_t Qp::post_umr(const UmrWr& wr, bool ring) {
  std::vector<std::uint8_t>& w = wqe_;
  w.clear();
  auto* ctrl = append<prm::CtrlSeg>(w);
  ctrl->set(WqeOp::kUmr, sq_pi_, qpn_, 0, wr.signaled ? prm::kCeAlways : prm::kCeOnError, false, 0, wr.fence);
  ctrl->imm = wr.mkey;
  const std::size_t octowords = wr.spec.mode == 1 ? (wr.spec.mtt.size() + 1) / 2 : wr.spec.klm.size();
  const std::size_t padded = (octowords + 3) / 4 * 4;  // lists are padded to 64 bytes
  auto* umr = append<prm::UmrCtrlSeg>(w);
  std::memset(static_cast<void*>(umr), 0, sizeof *umr);
  umr->flags = static_cast<std::uint8_t>(wr.flags | (wr.inline_list ? prm::kUmrInline : 0));
  umr->xlt_octowords = static_cast<std::uint16_t>(wr.inline_list ? padded : wr.list.len / 16);
  umr->mkey_mask = wr.mask;
  if (wr.flags & prm::kUmrTranslationOffsetEn) {
    umr->xlt_offset = static_cast<std::uint16_t>(wr.offset_octowords);
    umr->xlt_offset_47_16 = wr.offset_octowords >> 16;
  }
  w.resize(w.size() + prm::mkc::bytes);
  std::uint8_t* mkc = w.data() + w.size() - prm::mkc::bytes;
  std::memset(mkc, 0, prm::mkc::bytes);
  fill_mkc(mkc, wr.spec);
  if (wr.inline_list) {
    const std::size_t at = w.size();
    w.resize(at + padded * 16);
    for (std::size_t i = 0; i < wr.spec.mtt.size(); ++i) prm::store64(w.data() + at + 8 * i, wr.spec.mtt[i]);
    for (std::size_t i = 0; i < wr.spec.klm.size(); ++i) {
      prm::store32(w.data() + at + 16 * i, wr.spec.klm[i].bytes);
      prm::store32(w.data() + at + 16 * i + 4, wr.spec.klm[i].key);
      prm::store64(w.data() + at + 16 * i + 8, wr.spec.klm[i].va);
    }
  } else {
    append_data(w, wr.list);
  }
  const std::uint16_t index = push(w);
  if (ring) ring_doorbell();
  return index;
}

void Qp::post_inline_write(const void* data, unsigned len, std::uint64_t raddr, std::uint32_t rkey,
                           bool signaled) {
  // Built in the queue itself, unless it wraps.
  const unsigned ds = 2 + (len + 4 + 15) / 16, bbs = (ds + 3) / 4;
  alignas(64) std::uint8_t apart[4 * prm::kWqebb];
  const bool whole = (sq_pi_ & (sq_wqebbs() - 1)) + bbs <= sq_wqebbs();
  std::uint8_t* w = whole ? sq_wqebb(sq_pi_) : apart;
  auto* ctrl = reinterpret_cast<prm::CtrlSeg*>(w);
  ctrl->set(WqeOp::kRdmaWrite, sq_pi_, qpn_, ds, signaled ? prm::kCeAlways : prm::kCeOnError);
  ctrl->imm = 0;
  auto* r = reinterpret_cast<prm::RaddrSeg*>(w + 16);
  r->raddr = raddr;
  r->rkey = rkey;
  r->rsvd = 0;
  reinterpret_cast<prm::InlineSeg*>(w + 32)->byte_count = prm::InlineSeg::kFlag | len;
  std::memcpy(w + 36, data, std::min<std::size_t>(len, sizeof apart - 36));
  for (unsigned i = 0; !whole && i < bbs; ++i)
    std::memcpy(sq_wqebb(static_cast<std::uint16_t>(sq_pi_ + i)), w + i * prm::kWqebb, prm::kWqebb);
  last_ = sq_pi_;
  last_wqebbs_ = bbs;
  sq_pi_ = static_cast<std::uint16_t>(sq_pi_ + bbs);
}

void Qp::write_doorbell_only() {
  const std::uint64_t reg = device_.uar_offset() + prm::uar::kSqDoorbell + bf_offset_;
  // The first 8 bytes of the last WQE posted.
  device_.function().write(reg, sq_wqebb(last_), 8);
  bf_offset_ ^= device_.sq_doorbell_stride() / 2;
}

void Qp::ring_doorbell() {
  write_dbr();
  write_doorbell_only();
}

void Qp::ring_blueflame() {
  write_dbr();
  const auto wqebb = [this](unsigned i) { return sq_wqebb(static_cast<std::uint16_t>(last_ + i)); };
  if (!write_blueflame(device_, bf_offset_, last_wqebbs_, wqebb)) write_doorbell_only();
}

std::uint16_t Qp::post_recv(const std::vector<Sge>& sges, bool ring) {
  if (has_srq_ || options_.no_rq) throw BareError("the QP has no receive queue");
  const std::size_t room = std::size_t{1} << options_.log_rq_stride;
  const std::uint16_t index = rq_pi_;
  write_receive_list(rq_wqe(index), sges, room);
  ++rq_pi_;
  if (ring) ring_rq();
  return index;
}

namespace {

// To another device: its address, by the kind of link.
void set_path(QpAttr& attr, Device& own, Device& peer) {
  if (&own == &peer) return;
  if (own.ethernet()) {
    attr.roce.dgid = peer.roce_entry(peer.sgid_index()).gid;
    attr.roce.dmac = peer.mac();
  } else {
    attr.dlid = peer.lid();
  }
}

}  // namespace

void connect_pair(Qp& a, Qp& b, QpAttr attr) {
  QpAttr back = attr;
  set_path(attr, a.device(), b.device());
  set_path(back, b.device(), a.device());
  attr.remote_qpn = b.qpn();
  back.remote_qpn = a.qpn();
  std::swap(back.send_psn, back.recv_psn);
  a.connect(attr);
  b.connect(back);
}

}  // namespace hcasim::bare
