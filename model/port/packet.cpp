// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/packet.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "model/pcie/host_copies.h"
#include "model/prefetch.h"

namespace hcasim {

namespace {

// Never torn down: packets may outlive everything else at exit. Free packets stay reachable from here.
Packet* g_free = nullptr;

constexpr unsigned kSlab = 16;  // packets made at a time

// Of a packet, what is in front of what is not initialized; and as it is in a new one.
constexpr std::size_t kHead = sizeof(Packet) - sizeof(Packet::at);
constexpr std::size_t kLine = 64;
static_assert(kHead % kLine == 0);
alignas(kLine) std::uint8_t g_fresh[kHead];

}  // namespace

void PacketPool::grow() {
  static_assert(std::is_trivially_copyable_v<Packet>);
  auto* const packets = new Packet[kSlab];
  auto* const buffers = new std::uint8_t[std::size_t{kSlab} * kMaxFrame];  // untouched
  std::memcpy(g_fresh, static_cast<const void*>(packets), kHead);
  for (unsigned i = 0; i < kSlab; ++i) {
    packets[i].buffer_ = buffers + std::size_t{i} * kMaxFrame;
    packets[i].next_ = g_free;
    g_free = &packets[i];
  }
}

void PacketPool::prefetch() {
  prefetch_line(&g_free);
  if (g_free) prefetch_range(g_free, kHead);
}

void PacketPool::prefetch_targets() {
  if (g_free && g_free->next_) prefetch_range(g_free->next_, kHead);
}

PacketRef PacketPool::make() {
  if (!g_free) grow();
  Packet* p = g_free;
  g_free = p->next_;
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
  if (p.lent_ || p.large_) {
    q.lent_ = nullptr;
    q.large_ = nullptr;
    q.next_lent_ = nullptr;
    q.lent_link_ = nullptr;
    q.landing = nullptr;
    q.keep(p.data());
    return made;
  }
  const std::uint32_t end = std::max<std::uint32_t>(p.frame_len, p.head_ + p.payload_len);
  std::memcpy(q.buffer_, p.buffer_, std::min(end, kMaxFrame));
  return made;
}

void PacketPool::give_back(Packet* p) {
  if (p->lent_) p->take_back();
  std::free(p->large_);
  p->next_ = g_free;
  g_free = p;
}

void Packet::take_back() {
  *lent_link_ = next_lent_;
  if (next_lent_) next_lent_->lent_link_ = lent_link_;
  lent_ = nullptr;
}

// The payload is a copy of these bytes. The memory they lie in may be waiting for a copy itself.
void Packet::keep(const std::uint8_t* bytes) {
  HostCopies::make();
  if (payload_len > kMaxFrame - head_) {
    large_ = static_cast<std::uint8_t*>(std::malloc(payload_len));
    if (!large_) throw std::bad_alloc();
  }
  std::memcpy(large_ ? large_ : buffer_ + head_, bytes, payload_len);
}

void Packet::own() {
  if (!lent_) return;
  keep(lent_);
  take_back();
}

void Loans::lend(Packet& p, const std::uint8_t* bytes, std::uint64_t from, std::uint32_t qpn) {
  p.lent_ = bytes;
  p.lent_from_ = from;
  p.lent_by_ = qpn;
  p.released_ = false;
  p.next_lent_ = first_;
  p.lent_link_ = &first_;
  if (first_) first_->lent_link_ = &p.next_lent_;
  first_ = &p;
}

template <class Which>
void Loans::settle_if(Which which) {
  for (Packet* p = first_; p != nullptr;) {
    Packet* next = p->next_lent_;
    if (which(*p)) p->own();
    p = next;
  }
}

void Loans::settle_all() {
  settle_if([](const Packet&) { return true; });
}

void Loans::settle(std::uint32_t qpn) {
  settle_if([=](const Packet& p) { return p.lent_by_ == qpn; });
}

void Loans::release(std::uint32_t qpn, std::uint32_t psn, std::uint32_t packets, const void* queue) {
  for (Packet* p = first_; p != nullptr; p = p->next_lent_) {
    if (p->lent_by_ == qpn && ((p->psn - psn) & kPsnMask) < packets && p->landing != queue)
      p->released_ = released_ = true;
  }
}

void Loans::settle_the_released() {
  settle_if([](const Packet& p) { return p.released_; });
  released_ = false;
}

}  // namespace hcasim
