// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/packet.h"

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

void PacketPool::give_back(Packet* p) {
  p->next_ = g_free;
  g_free = p;
}

}  // namespace hcasim
