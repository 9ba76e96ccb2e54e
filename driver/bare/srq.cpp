// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/srq.h"

namespace hcasim::bare {

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

  using In = prm::create_rmp_in;
  using C = In::ctx;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_RMP, In::bytes + pas.size() * 8);
  in.set<C::state>(1);
  in.set<C::wq::wq_type>(0);
  in.set<C::wq::page_offset>(ring_.page_offset());
  in.set<C::wq::pd>(pd.pdn());
  in.set<C::wq::dbr_addr>(dbr_.bus);
  in.set<C::wq::log_wq_stride>(o.log_stride);
  in.set<C::wq::log_wq_pg_sz>(ring_.log_page_size());
  in.set<C::wq::log_wq_sz>(o.log_size);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::store64(in.data() + In::bytes + 8 * i, pas[i]);
  try {
    srqn_ = static_cast<std::uint32_t>(
        device.exec(in, prm::create_rmp_out::bytes).must().get<prm::create_rmp_out::rmpn>());
  } catch (...) {
    device.free_dbr(dbr_);
    throw;
  }
  live_ = true;
}

Srq::~Srq() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
  device_.free_dbr(dbr_);
}

std::uint16_t Srq::post(const std::vector<Sge>& sges, bool ring) {
  if (free_ == 0) throw BareError("the SRQ is full");
  const std::size_t room =
      ((std::size_t{1} << options_.log_stride) - sizeof(prm::SrqNextSeg)) / sizeof(prm::DataSeg);
  if (sges.size() > room) throw BareError("too many SGEs for the SRQ");
  const std::uint16_t index = head_;
  std::uint8_t* w = wqe(index);
  head_ = reinterpret_cast<prm::SrqNextSeg*>(w)->next_wqe_index;
  auto* seg = reinterpret_cast<prm::DataSeg*>(w + sizeof(prm::SrqNextSeg));
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
  --free_;
  ++counter_;
  if (ring) ring_doorbell();
  return index;
}

void Srq::ring_doorbell() { dbr_.set(0, counter_); }

void Srq::release(std::uint16_t index) {
  reinterpret_cast<prm::SrqNextSeg*>(wqe(tail_))->next_wqe_index = index;
  tail_ = index;
  ++free_;
}

CommandResult Srq::arm_limit(unsigned limit) {
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
  Mailbox in(prm::op::QUERY_RMP, prm::query_rmp_in::bytes);
  return device_.exec(in.set<prm::query_rmp_in::rmpn>(srqn_), prm::query_rmp_out::bytes);
}

CommandResult Srq::destroy() {
  Mailbox in(prm::op::DESTROY_RMP, prm::destroy_rmp_in::bytes);
  auto r = device_.exec(in.set<prm::destroy_rmp_in::rmpn>(srqn_));
  if (r.ok()) live_ = false;
  return r;
}

}  // namespace hcasim::bare
