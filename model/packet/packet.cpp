// SPDX-License-Identifier: BSD-3-Clause
#include "model/packet/packet.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "model/prefetch.h"
#include "model/simulation_context.h"

namespace hcasim {

namespace {

constexpr unsigned kSlab = 16;  // packets made at a time

// Of a packet, what is in front of what is not initialized; and as it is in a new one (a constant).
constexpr std::size_t kHead = sizeof(Packet) - sizeof(Packet::at) - sizeof(Packet::message);
constexpr std::size_t kLine = 64;
static_assert(kHead % kLine == 0);
alignas(kLine) std::uint8_t g_fresh[kHead];

}  // namespace

void PacketPool::grow() {
  static_assert(std::is_trivially_copyable_v<Packet>);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // both compilers support it here
  static_assert(offsetof(Packet, packets) + sizeof(Packet::packets) <= Packet::kHot &&
                    offsetof(Packet, unit) + sizeof(Packet::unit) <= Packet::kHot,
                "what every receiver looks at is prefetched");
  static_assert(offsetof(Packet, at) == kHead, "what is not initialized comes last");
#pragma GCC diagnostic pop
  auto* const packets = new Packet[kSlab];
  auto* const buffers = new std::uint8_t[std::size_t{kSlab} * kMaxFrame];  // untouched
  PacketPool& pool = simulation().packets;
  std::memcpy(g_fresh, static_cast<const void*>(packets), kHead);
  for (unsigned i = 0; i < kSlab; ++i) {
    packets[i].buffer_ = buffers + std::size_t{i} * kMaxFrame;
    packets[i].next_ = pool.free_;
    pool.free_ = &packets[i];
  }
}

void PacketPool::prefetch() {
  const PacketPool& pool = simulation().packets;
  prefetch_line(&pool.free_);
  if (pool.free_) prefetch_range(pool.free_, kHead);
}

void PacketPool::prefetch_targets() {
  const PacketPool& pool = simulation().packets;
  if (pool.free_ && pool.free_->next_) prefetch_range(pool.free_->next_, kHead);
}

PacketRef PacketPool::make() {
  PacketPool& pool = simulation().packets;
  if (!pool.free_) grow();
  Packet* p = pool.free_;
  pool.free_ = p->next_;
  // A third of what setting each field takes; line by line, or the compiler makes a slow string instruction
  // of it.
  std::uint8_t* const buffer = p->buffer_;
  auto* head = reinterpret_cast<std::uint8_t*>(p);
  for (std::size_t line = 0; line < kHead; line += kLine) std::memcpy(head + line, g_fresh + line, kLine);
  p->buffer_ = buffer;
  return PacketRef(p);
}

PacketRef PacketPool::copy(const Packet& p) {
  PacketRef made = make();
  Packet& q = *made;
  const std::uint32_t refs = q.refs_;
  std::uint8_t* const buffer = q.buffer_;
  q = p;
  q.refs_ = refs;
  q.buffer_ = buffer;
  q.next_ = nullptr;
  if (p.borrowed() || p.large_) {
    q.loan_ = {};
    q.large_ = nullptr;
    q.landing = nullptr;
    if (p.borrowed()) p.loan_.lender->before_read();
    q.keep(p.data());
    return made;
  }
  const std::uint32_t end = std::max<std::uint32_t>(p.frame_len, p.head_ + p.payload_len);
  std::memcpy(q.buffer_, p.buffer_, std::min(end, kMaxFrame));
  return made;
}

void PacketPool::give_back(Packet* p) {
  if (p->borrowed()) p->end_loan();
  std::free(p->large_);
  PacketPool& pool = simulation().packets;
  p->next_ = pool.free_;
  pool.free_ = p;
}

void Packet::end_loan() {
  *loan_.link = loan_.next;
  if (loan_.next) loan_.next->loan_.link = loan_.link;
  loan_.bytes = nullptr;
}

// The payload is a copy of these bytes.
void Packet::keep(const std::uint8_t* bytes) {
  if (payload_len > kMaxFrame - head_) {
    large_ = static_cast<std::uint8_t*>(std::malloc(payload_len));
    if (!large_) throw std::bad_alloc();
  }
  std::memcpy(large_ ? large_ : buffer_ + head_, bytes, payload_len);
}

void Packet::own() {
  if (!borrowed()) return;
  loan_.lender->before_read();
  keep(loan_.bytes);
  end_loan();
}

}  // namespace hcasim
