// SPDX-License-Identifier: BSD-3-Clause
// The agents that answer MADs of the subnet and performance management classes, wherever these come from.
#ifndef HCASIM_FIRMWARE_STUB_MAD_AGENT_H
#define HCASIM_FIRMWARE_STUB_MAD_AGENT_H

#include <cstdint>

namespace hcasim::fw {

class Firmware;

// Who asks: trusted, whatever M_Key it has.
struct Sender {
  std::uint16_t lid = 0;
  bool trusted = false;
};
// Turns a request (kMadBytes, base version 1) into its answer; kSilently: there is none to be sent
// (TrapRepress); kRefused: it has not the port's M_Key, and is dropped.
enum class Answered : std::uint8_t { kYes, kSilently, kRefused };
Answered answer_mad(Firmware& fw, std::uint8_t* mad, const Sender& sender = {});

}  // namespace hcasim::fw
#endif
