// SPDX-License-Identifier: BSD-3-Clause
// Where a port's cable leads: another port of this process, QEMU's network back end, a socket. The model owns
// the interface; whoever joins ports implements it. A port without a wire has a cable to itself.
#ifndef HCASIM_MODEL_PORT_WIRE_H
#define HCASIM_MODEL_PORT_WIRE_H

#include <cstdint>

#include "model/packet/packet.h"
#include "model/time.h"

namespace hcasim {

class Wire {
 public:
  // The packet's last bit leaves the port at `t` (simulated; at or after now). The packet may be shared: it
  // must not be changed. Arrival at the far end is Port::wire_receive() of that port.
  virtual void transmit(Time t, const PacketRef& packet) = 0;
  // Whether it carries runs of packets (Packet::packets) as they are: packet->at are their times then, and
  // `t` the last one's; the port at its far end takes them by their distance to the last one.
  virtual bool takes_runs() const { return false; }
  // The same of runs of messages (Packet::of_messages), if it carries runs.
  virtual bool takes_messages() const { return false; }
  // InfiniBand, flow control (model/port/lane_credits.h): bytes that the far end has for packets of each
  // lane, 0 if it says nothing of that; and that such a packet, which has come from there, has left this
  // end's buffer at t.
  virtual std::uint32_t room_of_lanes() const { return 0; }
  virtual void make_room(Time, unsigned, std::uint32_t) {}
  // The port was reset, or its link is down: what lay in its buffers is gone, and all its room is free.
  virtual void emptied() {}

 protected:
  ~Wire() = default;
};

}  // namespace hcasim
#endif
