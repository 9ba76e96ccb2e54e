// SPDX-License-Identifier: BSD-3-Clause
// Pages of PDDR (port diagnostics) and the register PPAOS that the kernel's mlx5_ifc.h lacks. Source:
// mstflint's register_access_table.adb (pddr_operation_info_page_ext, pddr_module_info_ext, ppaos_reg_ext).
#ifndef HCASIM_PRM_LINK_DIAGNOSTICS_H
#define HCASIM_PRM_LINK_DIAGNOSTICS_H

#include "prm/field.h"

namespace hcasim::prm {

enum : std::uint8_t { kPddrOperation = 0, kPddrTroubleshooting = 1, kPddrModule = 3 };  // page_select

// Beside pddr_reg's own fields: how powers of the module page come, 0: dBm, 1: uW.
using pddr_module_info_ext = Field<0x21, 2>;

// Offsets within the page.
struct pddr_operation_page {
  using proto_active = Field<0x8, 4>;
  using phy_mngr_fsm_state = Field<0x20, 8>;
  using eth_an_fsm_state = Field<0x28, 8>;
  using ib_phy_fsm_state = Field<0x30, 8>;
  // Link modes. Ethernet: as PTYS has them, the extended ones if the card knows them. InfiniBand: width
  // above, speed below.
  using phy_manager_link_enabled = Field<0x40, 32>;
  using core_to_phy_link_enabled = Field<0x60, 32>;
  using cable_proto_cap = Field<0x80, 32>;
  using link_active = Field<0xa0, 32>;
  using loopback_mode = Field<0xd4, 12>;    // 0: none
  using fec_mode_active = Field<0xe0, 16>;  // the number of PPLM's bit
  using fec_mode_request = Field<0xf0, 16>;
  using eth_25g_50g_fec_support = Field<0x118, 4>;
  using eth_100g_fec_support = Field<0x11c, 4>;
};
enum : std::uint8_t { kPhyDisabled = 0, kPhyPolling = 2, kPhyActive = 3, kPhyUp = 5 };  // phy_mngr_fsm_state
constexpr std::uint8_t kEthAnGood = 6;                                                  // eth_an_fsm_state
enum : std::uint8_t { kIbPhyDisabled = 0, kIbPhyLinkUp = 7, kIbPhyPolling = 8 };        // ib_phy_fsm_state
enum : std::uint16_t {                                                                  // monitor_opcode
  kNoIssue = 0,
  kClosedByCommand = 1,
  kNoPartner = 2,
  kNoPartnerForced = 36,
  kNoCommonMode = 39,  // "no highest common denominator"
  kCableUnplugged = 1024
};

// A QSFP28 module, as its memory map (SFF-8636) has it.
struct pddr_module_page {
  using cable_technology = Field<0x0, 8>;
  using cable_breakout = Field<0x8, 8>;
  using ext_ethernet_compliance_code = Field<0x10, 8>;
  using ethernet_compliance_code = Field<0x18, 8>;
  using cable_type = Field<0x20, 4>;
  using cable_vendor = Field<0x24, 4>;  // 0: other
  using cable_length = Field<0x28, 8>;
  using cable_identifier = Field<0x30, 8>;
  using cable_power_class = Field<0x38, 8>;
  using rx_cdr_cap = Field<0x88, 4>;
  using tx_cdr_cap = Field<0x8c, 4>;
  using rx_cdr_state = Field<0x90, 8>;
  using tx_cdr_state = Field<0x98, 8>;
  using vendor_name = Bytes<0xa0, 128>;
  using vendor_pn = Bytes<0x120, 128>;
  using vendor_rev = Field<0x1a0, 32>;
  using vendor_sn = Bytes<0x1e0, 128>;
  using temperature = Field<0x260, 16>;  // 1/256 degree Celsius
  using voltage = Field<0x270, 16>;      // 100 uV
  using rx_power = Bytes<0x280, 128>;    // 16 bits a lane; dBm or uW: pddr_module_info_ext
  using tx_power = Bytes<0x300, 128>;
  using tx_bias = Bytes<0x380, 128>;  // 2 uA
  // High before low, 16 bits each: temperature, voltage, received power, transmitted power, bias.
  using thresholds = Bytes<0x400, 160>;
  using wavelength = Field<0x4b0, 16>;    // nm
  using rx_power_type = Field<0x4a3, 1>;  // 1: average
  using nbr250 = Field<0x4e0, 8>;         // 250 Mb/s
  using monitor_cap_mask = Field<0x4f0, 8>;
  using length_om3 = Field<0x528, 8>;  // 2 m
  using length_om4 = Field<0x530, 8>;
  using memory_map_rev = Field<0x558, 8>;
  using date_code = Bytes<0x580, 64>;
  using connector_type = Field<0x5c0, 8>;
  using vendor_oui = Field<0x5c8, 24>;
};
enum : std::uint8_t { kOpticalModule = 2, kPassiveCopper = 3, kModuleUnplugged = 4 };  // cable_type
enum : std::uint8_t { kCageQsfp28 = 0 };                                               // cable_identifier

// PPAOS: the port beyond PAOS.
struct ppaos_reg {
  using local_port = Field<0x8, 8>;
  using phy_test_mode_status = Field<0x1c, 4>;  // 0: regular operation
  using phy_status = Field<0x3c, 4>;
  static constexpr std::size_t bytes = 0x10;
};
enum : std::uint8_t { kRxPhyDown = 0, kRxPhyUp = 1, kRxPhyDownByCommand = 2 };  // phy_status

// sltp_reg.version: the layout of a transmitter's settings, by the SerDes' process.
enum : std::uint8_t { kSltp28nm = 1, kSltp16nm = 3, kSltp7nm = 4 };

}  // namespace hcasim::prm
#endif
