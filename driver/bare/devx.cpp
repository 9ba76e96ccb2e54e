// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/devx.h"

#include "prm/umem.h"

namespace hcasim::bare {

Uctx::Uctx(Device& device, std::uint32_t cap) : device_(device), epoch_(device.epoch()) {
  const As driver(device, std::uint16_t{0});
  Mailbox in(prm::op::CREATE_UCTX, prm::create_uctx_in::bytes);
  in.set<prm::create_uctx_in::uctx::cap>(cap);
  uid_ = static_cast<std::uint16_t>(
      device.exec(in, prm::create_uctx_out::bytes).must().get<prm::create_uctx_out::uid>());
  live_ = true;
}

Uctx::~Uctx() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
}

CommandResult Uctx::destroy() {
  const As driver(device_, std::uint16_t{0});
  Mailbox in(prm::op::DESTROY_UCTX, prm::destroy_uctx_in::bytes);
  auto r = device_.exec(in.set<prm::destroy_uctx_in::uid>(uid_));
  if (r.ok()) live_ = false;
  return r;
}

Mailbox create_umem_mailbox(const UmemSpec& s) {
  using In = prm::create_umem_in;
  Mailbox in(prm::op::CREATE_UMEM, In::bytes + 8 * s.pages.size());
  in.set<In::umem::log_page_size>(s.log_page - 12).set<In::umem::page_offset>(s.page_offset);
  in.set<In::umem::num_of_mtt>(s.pages.size());
  const std::uint64_t rights = prm::umem_ref::kMttRead | (s.writable ? prm::umem_ref::kMttWrite : 0);
  for (std::size_t i = 0; i < s.pages.size(); ++i)
    prm::store64(in.data() + In::bytes + 8 * i, s.pages[i] | rights);
  return in;
}

Umem::Umem(Device& device, const UmemSpec& spec) : device_(device), epoch_(device.epoch()) {
  id_ = static_cast<std::uint32_t>(device.exec(create_umem_mailbox(spec), prm::create_umem_out::bytes)
                                       .must()
                                       .get<prm::create_umem_out::umem_id>());
  live_ = true;
}

Umem::~Umem() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
}

CommandResult Umem::destroy() {
  Mailbox in(prm::op::DESTROY_UMEM, prm::destroy_umem_in::bytes);
  auto r = device_.exec(in.set<prm::destroy_umem_in::umem_id>(id_));
  if (r.ok()) live_ = false;
  return r;
}

QueueUmems::QueueUmems(Device& device, const Ring& ring, const Dbr& dbr)
    : ring_(device, {ring.pages(), 12 + ring.log_page_size()}),
      dbr_(device, {{dbr.bus & ~std::uint64_t{0xfff}}}),
      ring_offset_(std::uint64_t{ring.page_offset()} << (6 + ring.log_page_size())),
      dbr_offset_(dbr.bus & 0xfff) {}

}  // namespace hcasim::bare
