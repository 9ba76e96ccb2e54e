// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "driver/bare/device.h"

namespace hcasim::bare {

Ring::Ring(HostMemory& memory, std::size_t bytes, const RingLayout& layout) : layout_(layout) {
  const std::size_t page = std::size_t{1} << layout.log_page;
  offset_ = page / 64 * layout.page_offset;
  const std::size_t size = (offset_ + bytes + page - 1) / page * page;
  buffer_ = layout.scattered ? memory.allocate_scattered(size) : memory.allocate(size, page);
}

EventQueue::EventQueue(Device& device, unsigned log_size, unsigned vector,
                       const std::array<std::uint64_t, 4>& mask, Handler handler)
    : device_(device),
      ring_(device.memory(), sizeof(prm::Eqe) << log_size, RingLayout{}),
      log_size_(log_size),
      epoch_(device.epoch()),
      handler_(std::move(handler)) {
  auto* eqes = reinterpret_cast<prm::Eqe*>(ring_.data());
  for (std::size_t i = 0; i < std::size_t{1} << log_size; ++i) eqes[i].owner = 1;

  using In = prm::create_eq_in;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_EQ, In::bytes + pas.size() * 8);
  in.set<In::eq_context_entry::log_eq_size>(log_size);
  in.set<In::eq_context_entry::uar_page>(device.uar());
  in.set<In::eq_context_entry::intr>(vector);
  in.set<In::eq_context_entry::log_page_size>(ring_.log_page_size());
  // Completion EQs may be used by all user contexts.
  if (mask == std::array<std::uint64_t, 4>{}) in.set<In::uid>(0xffff);
  for (std::size_t i = 0; i < 4; ++i) prm::set<In::event_bitmask>(in.data(), i, mask[i]);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::set<In::pas>(in.data(), i, pas[i]);
  eqn_ = static_cast<unsigned>(
      device.exec(in, prm::create_eq_out::bytes).must().get<prm::create_eq_out::eq_number>());
  live_ = true;
}

EventQueue::~EventQueue() {
  if (live_ && device_.epoch() == epoch_) device_.note_destroy(destroy());
}

CommandResult EventQueue::destroy() {
  Mailbox in(prm::op::DESTROY_EQ, prm::destroy_eq_in::bytes);
  in.set<prm::destroy_eq_in::eq_number>(eqn_);
  closing_ = true;  // its interrupt may still come (shared vector); a destroyed EQ must not be armed
  CommandResult r = device_.exec(in);
  closing_ = r.ok();
  if (r.ok()) live_ = false;
  return r;
}

unsigned EventQueue::poll(bool arm_again) {
  unsigned taken = 0;
  if (closing_) return taken;
  while (true) {
    auto* e = reinterpret_cast<prm::Eqe*>(ring_.data()) + (ci_ & ((1u << log_size_) - 1));
    if ((e->owner & 1u) != (ci_ >> log_size_ & 1u)) break;
    const prm::Eqe copy = *e;
    ++ci_;
    ++taken;
    handler_(copy);
    if (taken % 128 == 0) update_ci();
  }
  if (arm_again) arm();
  return taken;
}

void EventQueue::arm() {
  device_.function().write32(device_.uar_offset() + prm::uar::kEqArm, eqn_ << 24 | (ci_ & 0xffffff));
}

void EventQueue::update_ci() {
  device_.function().write32(device_.uar_offset() + prm::uar::kEqUpdate, eqn_ << 24 | (ci_ & 0xffffff));
}

}  // namespace hcasim::bare
