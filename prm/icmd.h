// SPDX-License-Identifier: BSD-3-Clause
// The command mailbox that tools reach through the vendor specific capability (ICMD), and how it carries
// access registers: an operation TLV and a register TLV, as in the vendor's management datagrams. Sources:
// mstflint (mtcr_ul_icmd_cif.c, packets_layout.c), Linux' mlxsw emad.h.
#ifndef HCASIM_PRM_ICMD_H
#define HCASIM_PRM_ICMD_H

#include "prm/field.h"

namespace hcasim::prm {

// The control register.
struct icmd_control {
  using opcode = Field<0, 16>;
  using status = Field<16, 8>;
  using ext_mailbox = Field<30, 1>;  // the data lie in host memory
  using busy = Field<31, 1>;         // set: execute; clear: done
  static constexpr std::size_t bytes = 4;
};

enum class IcmdStatus : std::uint8_t {
  kOk = 0,
  kBadOpcode = 1,
  kBadCommand = 2,
  kOperational = 3,
  kBadParam = 4,
  kBusy = 5
};
// opcode
constexpr std::uint16_t kIcmdGetFwInfo = 0x8007, kIcmdQueryCap = 0x8400, kIcmdAccessRegister = 0x9001;

// Answer to kIcmdGetFwInfo (icmd_layouts.h). The time of the build stays zero.
struct icmd_fw_info {
  using major = Field<0, 16>;
  using minor = Field<32, 16>;
  using subminor = Field<48, 16>;
  using psid = Bytes<0xa0, 128>;
  static constexpr std::size_t bytes = 0x24;
};

// Answer to kIcmdQueryCap (icmd_layouts.h)
struct icmd_query_cap {
  using all_registers = Field<2, 1>;  // kIcmdAccessRegister for any register, not those of the flash alone
  using pcam_reg = Field<4, 1>;
  using mcam_reg = Field<5, 1>;
  static constexpr std::size_t bytes = 8;
};

// At the start of the mailbox.
struct operation_tlv {
  using type = Field<0, 5>;
  using len = Field<5, 11>;  // dwords, with this one
  using status = Field<17, 7>;
  using register_id = Field<32, 16>;
  using response = Field<48, 1>;
  using method = Field<49, 7>;
  using tlv_class = Field<56, 8>;
  using transaction = Field<64, 64>;
  static constexpr std::size_t bytes = 16;
};
// Behind it; then the register's data.
struct register_tlv {
  using type = Field<0, 5>;
  using len = Field<5, 11>;  // dwords, with this one and the data
  static constexpr std::size_t bytes = 4;
};
enum : std::uint8_t { kTlvOperation = 1, kTlvRegister = 3 };  // type
enum : std::uint8_t { kTlvRead = 1, kTlvWrite = 2 };          // method
constexpr std::uint8_t kTlvClassRegister = 1;                 // tlv_class

// operation_tlv.status
enum class RegisterStatus : std::uint8_t {
  kOk = 0,
  kBusy = 1,
  kUnknownTlv = 3,
  kNoRegister = 4,
  kClass = 5,
  kMethod = 6,
  kBadParam = 7,
  kNoResource = 8,
  kTooShort = 0x24,
  kInternal = 0x70,
};

}  // namespace hcasim::prm
#endif
