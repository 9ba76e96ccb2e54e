// SPDX-License-Identifier: BSD-3-Clause
// The table of opcodes: everything that is known of a command without running it.
#ifndef HCASIM_FIRMWARE_STUB_OPCODES_H
#define HCASIM_FIRMWARE_STUB_OPCODES_H

#include <cstdint>
#include <vector>

#include "firmware-stub/command.h"
#include "firmware-stub/objects/access.h"

namespace hcasim::fw {

class Caps;

// Life of the function: power-on, ENABLE_HCA, INIT_HCA.
enum class State : std::uint8_t { kOff = 1, kEnabled = 2, kInit = 4 };

// What the command costs the firmware's processor (Profile::Firmware).
enum class TimeClass : std::uint8_t { kPlain, kObject };

struct Opcode {
  const char* name;
  std::uint16_t opcode;
  std::uint16_t min_in, min_out;      // bytes
  std::uint16_t whole_in, whole_out;  // ... of what the handler reads and writes
  std::uint8_t states;                // of State
  bool (*offered)(const Caps&);       // null: always
  Handler handler;
  TimeClass time;
  Users users;

  bool allowed(State s) const { return (states & static_cast<std::uint8_t>(s)) != 0; }
};

// Drains a send queue. Of the first mlx5 interface; mlx5_ifc.h has its number free and its way back (0x50c)
// still.
constexpr std::uint16_t kRts2SqdQp = 0x508;

// Null for an opcode that this firmware does not have.
const Opcode* find_opcode(std::uint16_t opcode);
// All rows in order of opcode: for documentation, tests, fuzzers.
const std::vector<Opcode>& all_opcodes();

}  // namespace hcasim::fw
#endif
