// SPDX-License-Identifier: BSD-3-Clause
// Access registers: what their handlers are made of.
#ifndef HCASIM_FIRMWARE_STUB_REGISTERS_H
#define HCASIM_FIRMWARE_STUB_REGISTERS_H

#include <cstddef>
#include <cstdint>

#include "firmware-stub/command.h"

namespace hcasim::fw {

// An access under way. The answer's data start as a copy of the request's.
struct Access {
  Firmware& fw;
  std::uint8_t* data;
  std::size_t room;  // bytes of data, at least the register's
  Command& cmd;
};

// Links whose ports have the register.
enum RegisterLinks : std::uint8_t { kOnIb = 1, kOnEthernet = 2, kOnBoth = 3 };

struct Register {
  std::uint16_t id;  // mlx5 driver.h, MLX5_REG_*
  std::size_t bytes;
  bool has_port;  // local_port in dword 0 must be ours
  RegisterLinks links;
  Syndrome (*read)(Access&);  // null: cannot be
  Syndrome (*write)(Access&);
};

// registers_eth.cpp
Syndrome read_pmtu_eth(Access& a);
Syndrome write_pmtu_eth(Access& a);
Syndrome read_ptys_eth(Access& a);
Syndrome write_ptys_eth(Access& a);
Syndrome read_pmlp(Access& a);
Syndrome read_pfcc(Access& a);
Syndrome write_pfcc(Access& a);
Syndrome read_ppcnt_eth(Access& a);  // groups of the Ethernet port
Syndrome read_mcia(Access& a);
Syndrome read_mcam(Access& a);
Syndrome read_mfrl(Access& a);
Syndrome write_mfrl(Access& a);
Syndrome read_mcqs(Access& a);
Syndrome read_mcqi(Access& a);

}  // namespace hcasim::fw
#endif
