// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/dct.h"

namespace hcasim::bare {

Dct::Dct(Device& device, const Pd& pd, Cq& cq, Srq& srq, const DctOptions& o)
    : device_(device), options_(o), epoch_(device.epoch()) {
  using In = prm::create_dct_in;
  using C = In::dct_context_entry;
  Mailbox in(prm::op::CREATE_DCT, In::bytes);
  unsigned code = 1;
  for (unsigned size = 256; size < o.mtu; size *= 2) ++code;
  in.set<C::user_index>(o.user_index);
  in.set<C::cqn>(cq.cqn());
  in.set<C::pd>(pd.pdn());
  in.set<C::srqn_xrqn>(srq.srqn());
  in.set<C::dc_access_key>(o.key);
  in.set<C::mtu>(code);
  in.set<C::port>(o.port);
  in.set<C::my_addr_index>(device.ethernet() ? static_cast<std::uint32_t>(device.sgid_index()) : 0);
  in.set<C::min_rnr_nak>(o.min_rnr_nak);
  in.set<C::rre>((o.access & kRemoteRead) != 0);
  in.set<C::rwe>((o.access & kRemoteWrite) != 0);
  in.set<C::rae>((o.access & kRemoteAtomic) != 0);
  in.set<C::atomic_mode>(o.atomic_mode);
  dctn_ = static_cast<std::uint32_t>(
      device.exec(in, prm::create_dct_out::bytes).must().get<prm::create_dct_out::dctn>());
  live_ = true;
}

Dct::~Dct() {
  if (!live_ || !device_.lives(epoch_)) return;
  device_.note_destroy(drain());
  device_.note_destroy(destroy());
}

CommandResult Dct::plain(std::uint16_t opcode, std::size_t out) {
  // All these commands have the DCT's number at the same offset.
  static_assert(prm::drain_dct_in::dctn::bit_off == prm::destroy_dct_in::dctn::bit_off &&
                prm::drain_dct_in::dctn::bit_off == prm::query_dct_in::dctn::bit_off &&
                prm::drain_dct_in::dctn::bit_off == prm::arm_dct_in::dct_number::bit_off);
  Mailbox in(opcode, prm::drain_dct_in::bytes);
  return device_.exec(in.set<prm::drain_dct_in::dctn>(dctn_), out);
}

CommandResult Dct::drain() { return plain(prm::op::DRAIN_DCT, prm::drain_dct_out::bytes); }
CommandResult Dct::query() { return plain(prm::op::QUERY_DCT, prm::query_dct_out::bytes); }
CommandResult Dct::arm() { return plain(prm::op::ARM_DCT_FOR_KEY_VIOLATION, prm::arm_dct_out::bytes); }
CommandResult Dct::destroy() {
  auto r = plain(prm::op::DESTROY_DCT, prm::destroy_dct_out::bytes);
  if (r.ok()) live_ = false;
  return r;
}

}  // namespace hcasim::bare
