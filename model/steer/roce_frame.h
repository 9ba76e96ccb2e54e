// SPDX-License-Identifier: BSD-3-Clause
// Packets of QPs as frames that flow tables can look at and change, and back.
#ifndef HCASIM_MODEL_STEER_ROCE_FRAME_H
#define HCASIM_MODEL_STEER_ROCE_FRAME_H

#include <cstdint>

#include "model/packet/packet.h"
#include "model/steer/actions.h"

namespace hcasim {

class FlowSteering;

// A frame shares the packet's bytes; of a RoCE packet they are made.
SteeredFrame as_frame(const PacketRef& packet, const FlowSteering& flows);
// The headers alone, for tables that do not change them: where they lead does not depend on payloads.
SteeredFrame headers_as_frame(const PacketRef& packet, const FlowSteering& flows);
// The packet that a frame is now: RoCE again if it was before, and if its changes let it.
PacketRef as_packet(SteeredFrame& frame);

}  // namespace hcasim
#endif
