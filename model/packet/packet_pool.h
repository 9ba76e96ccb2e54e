// SPDX-License-Identifier: BSD-3-Clause
// Where packets come from and go back to. One pool for all HCAs of the process, as packets wander between
// them; it lies in the SimulationContext.
#ifndef HCASIM_MODEL_PACKET_PACKET_POOL_H
#define HCASIM_MODEL_PACKET_PACKET_POOL_H

namespace hcasim {

struct Packet;
class PacketRef;

class PacketPool {
 public:
  // A packet with all fields at their defaults and payload bytes undefined.
  static PacketRef make();
  // The same packet once more.
  static PacketRef copy(const Packet& p);
  static void give_back(Packet* p);
  // Of the packets that are next to be made, two with prefetch_targets() (model/prefetch.h).
  static void prefetch();
  static void prefetch_targets();

 private:
  static void grow();

  // Never torn down: packets may outlive everything else at exit. Free packets stay reachable from here.
  Packet* free_ = nullptr;
};

}  // namespace hcasim
#endif
