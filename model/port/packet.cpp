// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/packet.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

namespace hcasim {

namespace {

// Never torn down: packets may outlive everything else at exit. Free packets stay reachable from here.
Packet* g_free = nullptr;

constexpr unsigned kSlab = 16;  // packets made at a time

}  // namespace

PacketRef PacketPool::make() {
  static_assert(std::is_trivially_destructible_v<Packet>);
  if (!g_free) {
    for (unsigned i = 0; i < kSlab; ++i) {
      Packet* p = new Packet;  // default-initialized: the payload stays untouched
      p->next_ = g_free;
      g_free = p;
    }
  }
  Packet* p = g_free;
  g_free = p->next_;
  new (p) Packet;  // header fields back to their defaults, payload untouched
  return PacketRef(p);
}

PacketRef PacketPool::copy(const Packet& p) {
  PacketRef made = make();
  Packet& q = *made;
  const std::uint32_t refs = q.refs_;
  const auto head = static_cast<std::size_t>(p.buffer_ - reinterpret_cast<const std::uint8_t*>(&p));
  std::memcpy(static_cast<void*>(&q), &p, head);
  q.refs_ = refs;
  q.next_ = nullptr;
  const std::uint32_t end = std::max<std::uint32_t>(p.frame_len, p.head_ + p.payload_len);
  std::memcpy(q.buffer_, p.buffer_, std::min(end, kMaxFrame));
  return made;
}

void PacketPool::give_back(Packet* p) {
  p->next_ = g_free;
  g_free = p;
}

}  // namespace hcasim
