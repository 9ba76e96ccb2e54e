// SPDX-License-Identifier: BSD-3-Clause
// The agents that answer MADs of the subnet and performance management classes, wherever these come from.
#ifndef HCASIM_FIRMWARE_STUB_MAD_AGENT_H
#define HCASIM_FIRMWARE_STUB_MAD_AGENT_H

#include <cstdint>

namespace hcasim::fw {

class Firmware;

// Turns a request (kMadBytes, base version 1) into its answer. False: nothing is to be answered
// (TrapRepress).
bool answer_mad(Firmware& fw, std::uint8_t* mad);

}  // namespace hcasim::fw
#endif
