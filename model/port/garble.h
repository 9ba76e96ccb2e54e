// SPDX-License-Identifier: BSD-3-Clause
// Packets as a peer would make them that follows no rules: fields and lengths as they come, checksums right.
#ifndef HCASIM_MODEL_PORT_GARBLE_H
#define HCASIM_MODEL_PORT_GARBLE_H

#include <random>

#include "model/packet/packet.h"

namespace hcasim {

// A changed copy, with the ICRC of its link made for it; null when what comes out is no packet that a link
// carries.
PacketRef garbled(const Packet& packet, std::mt19937_64& random);

}  // namespace hcasim
#endif
