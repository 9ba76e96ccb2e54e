// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/srq.h"

namespace hcasim::bare {

void write_receive_list(std::uint8_t* at, const std::vector<Sge>& sges, std::size_t room) {
  if (sges.size() > room) throw BareError("too many SGEs for the receive queue");
  auto* seg = reinterpret_cast<prm::DataSeg*>(at);
  for (const Sge& s : sges) {
    seg->byte_count = s.len;
    seg->lkey = s.lkey;
    seg->addr = s.addr;
    ++seg;
  }
  if (sges.size() < room) {
    seg->byte_count = 0;
    seg->lkey = prm::kInvalidLkey;
    seg->addr = 0;
  }
}

Xrcd::Xrcd(Device& device) : device_(device), epoch_(device.epoch()) {
  Mailbox in(prm::op::ALLOC_XRCD, prm::alloc_xrcd_in::bytes);
  number_ = static_cast<std::uint32_t>(
      device.exec(in, prm::alloc_xrcd_out::bytes).must().get<prm::alloc_xrcd_out::xrcd>());
}

Xrcd::~Xrcd() {
  if (!device_.lives(epoch_)) return;
  Mailbox in(prm::op::DEALLOC_XRCD, prm::dealloc_xrcd_in::bytes);
  device_.note_destroy(device_.exec(in.set<prm::dealloc_xrcd_in::xrcd>(number_)));
}

Srq::Srq(Device& device, const Pd& pd, const SrqOptions& o)
    : device_(device),
      options_(o),
      ring_(device.memory(), std::size_t{1} << (o.log_size + o.log_stride), o.ring),
      dbr_(device.allocate_dbr()),
      epoch_(device.epoch()),
      free_((1u << o.log_size) - 1) {
  const unsigned n = 1u << o.log_size;
  for (unsigned i = 0; i < n; ++i)
    reinterpret_cast<prm::SrqNextSeg*>(wqe(static_cast<std::uint16_t>(i)))->next_wqe_index =
        static_cast<std::uint16_t>((i + 1) & (n - 1));
  tail_ = static_cast<std::uint16_t>(n - 1);

  try {
    if (o.xrq)
      create_xrq(pd);
    else if (o.xrcd != 0)
      create_xrc(pd);
    else
      create_rmp(pd);
  } catch (...) {
    device.free_dbr(dbr_);
    throw;
  }
  live_ = true;
}

void Srq::create_rmp(const Pd& pd) {
  using In = prm::create_rmp_in;
  using C = In::ctx;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_RMP, In::bytes + pas.size() * 8);
  in.set<C::state>(1);
  in.set<C::wq::wq_type>(options_.cyclic ? 1 : 0);
  in.set<C::wq::page_offset>(ring_.page_offset());
  in.set<C::wq::pd>(pd.pdn());
  in.set<C::wq::dbr_addr>(dbr_.bus);
  in.set<C::wq::log_wq_stride>(options_.log_stride);
  in.set<C::wq::log_wq_pg_sz>(ring_.log_page_size());
  in.set<C::wq::log_wq_sz>(options_.log_size);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::store64(in.data() + In::bytes + 8 * i, pas[i]);
  srqn_ = static_cast<std::uint32_t>(
      device_.exec(in, prm::create_rmp_out::bytes).must().get<prm::create_rmp_out::rmpn>());
}

void Srq::create_xrc(const Pd& pd) {
  using In = prm::create_xrc_srq_in;
  using C = In::xrc_srq_context_entry;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_XRC_SRQ, In::bytes + pas.size() * 8);
  in.set<C::log_xrc_srq_size>(options_.log_size);
  in.set<C::log_rq_stride>(options_.log_stride - 4);
  in.set<C::log_page_size>(ring_.log_page_size());
  in.set<C::page_offset>(ring_.page_offset());
  in.set<C::pd>(pd.pdn());
  in.set<C::xrcd>(options_.xrcd);
  in.set<C::cqn>(options_.cqn);
  in.set<C::user_index>(options_.user_index);
  in.set<C::db_record_addr_h>(static_cast<std::uint32_t>(dbr_.bus >> 32));
  in.set<C::db_record_addr_l>(static_cast<std::uint32_t>(dbr_.bus) >> 2);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::set<In::pas>(in.data(), i, pas[i]);
  srqn_ = static_cast<std::uint32_t>(
      device_.exec(in, prm::create_xrc_srq_out::bytes).must().get<prm::create_xrc_srq_out::xrc_srqn>());
}

void Srq::create_xrq(const Pd& pd) {
  using In = prm::create_xrq_in;
  using C = In::xrq_context;
  using W = C::wq;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_XRQ, In::bytes + pas.size() * 8);
  in.set<C::cqn>(options_.cqn);
  in.set<C::user_index>(options_.user_index);
  if (options_.log_tags != 0) {
    in.set<C::topology>(prm::k::XRQC_TOPOLOGY_TAG_MATCHING);
    in.set<C::offload>(options_.rendezvous ? prm::k::XRQC_OFFLOAD_RNDV : 0);
    in.set<C::tag_matching_topology_context::log_matching_list_sz>(options_.log_tags);
  }
  in.set<W::wq_type>(options_.cyclic ? 1 : 0);
  in.set<W::page_offset>(ring_.page_offset());
  in.set<W::pd>(pd.pdn());
  in.set<W::dbr_addr>(dbr_.bus);
  in.set<W::log_wq_stride>(options_.log_stride);
  in.set<W::log_wq_pg_sz>(ring_.log_page_size());
  in.set<W::log_wq_sz>(options_.log_size);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::store64(in.data() + W::pas::bit_off / 8 + 8 * i, pas[i]);
  srqn_ = static_cast<std::uint32_t>(
      device_.exec(in, prm::create_xrq_out::bytes).must().get<prm::create_xrq_out::xrqn>());
}

Srq::~Srq() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
  device_.free_dbr(dbr_);
}

std::uint16_t Srq::post(const std::vector<Sge>& sges, bool ring) {
  if (free_ == 0) throw BareError("the SRQ is full");
  const std::size_t room =
      ((std::size_t{1} << options_.log_stride) - sizeof(prm::SrqNextSeg)) / sizeof(prm::DataSeg);
  const std::uint16_t index = options_.cyclic ? counter_ : head_;
  std::uint8_t* w = wqe(index);
  write_receive_list(w + sizeof(prm::SrqNextSeg), sges, room);
  if (!options_.cyclic) head_ = reinterpret_cast<prm::SrqNextSeg*>(w)->next_wqe_index;
  --free_;
  ++counter_;
  if (ring) ring_doorbell();
  return index;
}

void Srq::ring_doorbell() { dbr_.set(0, counter_); }

void Srq::release(std::uint16_t index) {
  ++free_;
  if (options_.cyclic) return;
  reinterpret_cast<prm::SrqNextSeg*>(wqe(tail_))->next_wqe_index = index;
  tail_ = index;
}

CommandResult Srq::arm_limit(unsigned limit) {
  if (options_.xrq) {
    using A = prm::arm_rq_in;
    Mailbox a(prm::op::ARM_RQ, A::bytes, prm::k::ARM_RQ_IN_OP_MOD_XRQ);
    return device_.exec(a.set<A::srq_number>(srqn_).set<A::lwm>(limit));
  }
  if (options_.xrcd != 0) {
    using X = prm::arm_xrc_srq_in;
    Mailbox x(prm::op::ARM_XRC_SRQ, X::bytes);
    x.set<X::op_mod>(1);
    return device_.exec(x.set<X::xrc_srqn>(srqn_).set<X::lwm>(limit));
  }
  using In = prm::modify_rmp_in;
  Mailbox in(prm::op::MODIFY_RMP, In::bytes);
  in.set<In::rmp_state>(1);
  in.set<In::rmpn>(srqn_);
  in.set<In::bitmask::lwm>(1);
  in.set<In::ctx::state>(1);
  in.set<In::ctx::wq::lwm>(limit);
  return device_.exec(in);
}

CommandResult Srq::query() {
  if (options_.xrq) {
    Mailbox x(prm::op::QUERY_XRQ, prm::query_xrq_in::bytes);
    return device_.exec(x.set<prm::query_xrq_in::xrqn>(srqn_), prm::query_xrq_out::bytes);
  }
  if (options_.xrcd != 0) {
    Mailbox x(prm::op::QUERY_XRC_SRQ, prm::query_xrc_srq_in::bytes);
    return device_.exec(x.set<prm::query_xrc_srq_in::xrc_srqn>(srqn_), prm::query_xrc_srq_out::bytes);
  }
  Mailbox in(prm::op::QUERY_RMP, prm::query_rmp_in::bytes);
  return device_.exec(in.set<prm::query_rmp_in::rmpn>(srqn_), prm::query_rmp_out::bytes);
}

CommandResult Srq::destroy() {
  Mailbox rmp(prm::op::DESTROY_RMP, prm::destroy_rmp_in::bytes);
  Mailbox xrc(prm::op::DESTROY_XRC_SRQ, prm::destroy_xrc_srq_in::bytes);
  Mailbox xrq(prm::op::DESTROY_XRQ, prm::destroy_xrq_in::bytes);
  auto r = options_.xrq         ? device_.exec(xrq.set<prm::destroy_xrq_in::xrqn>(srqn_))
           : options_.xrcd != 0 ? device_.exec(xrc.set<prm::destroy_xrc_srq_in::xrc_srqn>(srqn_))
                                : device_.exec(rmp.set<prm::destroy_rmp_in::rmpn>(srqn_));
  if (r.ok()) live_ = false;
  return r;
}

}  // namespace hcasim::bare
