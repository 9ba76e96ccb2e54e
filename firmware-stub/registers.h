// SPDX-License-Identifier: BSD-3-Clause
// Access registers: what their handlers are made of.
#ifndef HCASIM_FIRMWARE_STUB_REGISTERS_H
#define HCASIM_FIRMWARE_STUB_REGISTERS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "firmware-stub/command.h"

namespace hcasim::fw {

// An access under way. The answer's data start as a copy of the request's.
struct Access {
  Firmware& fw;
  std::uint8_t* data;
  std::size_t room;  // bytes of data, at least the register's
  Command& cmd;
};

constexpr std::uint32_t kProtoIb = 1, kProtoEthernet = 4;  // ptys_reg.proto_mask
constexpr std::uint32_t kLanes = 4;                        // of the Ethernet port and its module

// Links whose ports have the register.
enum RegisterLinks : std::uint8_t { kOnIb = 1, kOnEthernet = 2, kOnBoth = 3 };
// Ways to it: drivers' command interface, tools' mailbox (Icmd).
enum RegisterDoors : std::uint8_t { kByCommand = 1, kByIcmd = 2, kByBoth = 3 };

struct Register {
  std::uint16_t id;  // prm/access_registers.h
  std::size_t bytes;
  bool has_port;  // local_port in dword 0 must be ours
  RegisterLinks links;
  Syndrome (*read)(Access&);  // null: cannot be
  Syndrome (*write)(Access&);
  RegisterDoors doors = kByBoth;
  bool in_mcam = false;   // MCAM tells of it, to those who can get at it; PCAM tells of all in its range
  bool of_card = false;   // of the physical function alone
  std::size_t least = 0;  // bytes, as older drivers know a register that has grown; 0: all of them
};

// Numbers of all of them in order, whatever the link and the door: for fuzzers.
const std::vector<std::uint16_t>& all_registers();

// registers_eth.cpp
Syndrome read_pmtu_eth(Access& a);
Syndrome write_pmtu_eth(Access& a);
Syndrome read_ptys_eth(Access& a);
Syndrome write_ptys_eth(Access& a);
Syndrome read_pmlp(Access& a);
Syndrome read_pplm(Access& a);
Syndrome write_pplm(Access& a);
Syndrome read_pfcc(Access& a);
Syndrome write_pfcc(Access& a);
Syndrome read_ppcnt_group(Access& a);  // but InfiniBand's own
void clear_ppcnt_group(Access& a, std::uint32_t group, std::uint32_t priority);
void clear_all_ppcnt_groups(Access& a);
// Bytes of a module that it reads at a time, as mcia_32dwords is not offered; and those of the register with
// them, as drivers up to Linux 5.10 know it.
constexpr std::uint32_t kMciaRead = 48, kMciaBytes = prm::mcia_reg::dwords::bit_off / 8 + kMciaRead;
Syndrome read_mcia(Access& a);

// registers_qos.cpp
Syndrome read_qpts(Access& a);
Syndrome write_qpts(Access& a);
Syndrome read_qpdpm(Access& a);
Syndrome write_qpdpm(Access& a);
Syndrome read_qtct(Access& a);
Syndrome write_qtct(Access& a);
Syndrome read_qetcr(Access& a);
Syndrome write_qetcr(Access& a);
Syndrome read_pptb(Access& a);
Syndrome write_pptb(Access& a);
Syndrome read_pbmc(Access& a);
Syndrome write_pbmc(Access& a);

// registers_link.cpp
Syndrome read_pddr(Access& a);
Syndrome read_sltp(Access& a);
Syndrome read_ppaos(Access& a);
Syndrome read_pmaos(Access& a);
Syndrome read_mlcr(Access& a);
Syndrome write_mlcr(Access& a);

// registers_management.cpp
Syndrome read_mgir(Access& a);
Syndrome read_mfrl(Access& a);
Syndrome write_mfrl(Access& a);
Syndrome read_mcqs(Access& a);
Syndrome read_mcqi(Access& a);
Syndrome read_mcc(Access& a);
Syndrome write_mcc(Access& a);
Syndrome write_mcda(Access& a);
Syndrome read_mqis(Access& a);

// registers_nv.cpp
Syndrome read_nvda(Access& a);
Syndrome read_mnvqc(Access& a);

// registers_diag.cpp
Syndrome read_mtrc_cap(Access& a);
Syndrome write_mtrc_cap(Access& a);
Syndrome read_mtrc_conf(Access& a);
Syndrome write_mtrc_conf(Access& a);
Syndrome read_mtrc_ctrl(Access& a);
Syndrome write_mtrc_ctrl(Access& a);
Syndrome access_mtrc_stdb(Access& a);
Syndrome write_core_dump(Access& a);
Syndrome access_resource_dump(Access& a);
Syndrome read_mtcap(Access& a);
Syndrome read_mtmp(Access& a);
Syndrome write_mtmp(Access& a);

}  // namespace hcasim::fw
#endif
