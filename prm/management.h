// SPDX-License-Identifier: BSD-3-Clause
// Access registers of card management, and fields of them, that the kernel's mlx5_ifc.h lacks. Source:
// mstflint's reg_access_hca_layouts.h (MGIR, MQIS), tools_open_layouts.h (NVDA) and register_access_table.adb
// (MCAM, MFRL); of NVDA's newer items: below.
#ifndef HCASIM_PRM_MANAGEMENT_H
#define HCASIM_PRM_MANAGEMENT_H

#include "prm/field.h"

namespace hcasim::prm {

// MGIR: general information. Of the newer parts (development branch) nothing is here.
struct mgir {
  // hw_info
  using device_hw_revision = Field<0x0, 16>;
  using device_id = Field<0x10, 16>;
  using num_ports = Field<0x28, 8>;
  using technology = Field<0x30, 5>;  // the chip's process; see below
  using hw_dev_id = Field<0x50, 16>;
  using manufacturing_base_mac_47_32 = Field<0x90, 16>;
  using manufacturing_base_mac_31_0 = Field<0xa0, 32>;
  using uptime = Field<0xe0, 32>;  // seconds since the last reset
  // fw_info; the version stands in the extended fields, those of 8 bits are deprecated and zero
  using psid = Bytes<0x180, 128>;
  using extended_major = Field<0x220, 32>;
  using extended_minor = Field<0x240, 32>;
  using extended_sub_minor = Field<0x260, 32>;
  static constexpr std::size_t bytes = 0x80;
};

enum : std::uint8_t { kProcess28nm = 2, kProcess16nm = 3, kProcess7nm = 4 };  // mgir.technology

// MQIS: an information string, piece by piece.
struct mqis {
  using info_type = Field<0x18, 8>;
  using info_length = Field<0x30, 16>;
  using read_offset = Field<0x40, 16>;
  using read_length = Field<0x50, 16>;
  using info_string = Array<0x80, 8, 8>;
  static constexpr std::size_t bytes = 0x18;
};
enum : std::uint8_t {
  kMqisVpd = 0,
  kMqisModelName = 1,
  kMqisModelDescription = 2,
  kMqisImageVsd = 3,
  kMqisDeviceVsd = 4
};

// MCAM, in mng_feature_cap_mask of feature group 0: the 128 bits count from the end.
struct mcam_features {
  using pcie_sync_for_fw_update = Field<127 - 19, 1>;
};

// MFRL, where the kernel has one bit for it.
struct mfrl {
  using pci_sync_for_fw_update_start = Field<0x21, 2>;
};
enum : std::uint8_t { kMfrlLegacyFlow = 0, kMfrlSyncedDriverFlow = 1, kMfrlSyncedToolFlow = 2 };
// mfrl_reg.reset_level, a bit each ("reset_trigger"): the PCI link that goes down for a while, and PERST,
// which comes when the machine reboots.
enum : std::uint8_t { kMfrlPciLink = 1u << 3, kMfrlPerst = 1u << 6 };

// NVDA: an item of the configuration that outlives power-off.
struct nvda {
  using version = Field<0x10, 4>;
  using length = Field<0x17, 9>;  // of the data, bytes
  using type_class = Field<0x20, 8>;
  using type = Field<0x20, 32>;
  static constexpr std::size_t bytes = 12;  // then the data
};
// MNVQC: what can be done with an item.
struct mnvqc {
  using type = Field<0, 32>;
  using support_wr = Field<62, 1>;
  using support_rd = Field<63, 1>;
  static constexpr std::size_t bytes = 8;
};
// nvda.type, of class 0 (global). The last five: Linux, mlx5 lib/nv_param.c (6.17 and later).
enum : std::uint32_t {
  kNvBaseMacGuid = 2,
  kNvBaseMacGuidCap = 3,
  kNvGlobalPciConf = 0x80,
  kNvGlobalPciCap = 0x81,
  kNvSwOffloadConf = 0x10a,
  kNvSwOffloadCap = 0x10b,
  kNvSwAccelerateConf = 0x11d
};
struct nv_base_mac_guid {
  using base_mac = Field<0, 64>;
  using base_guid = Field<64, 64>;
  static constexpr std::size_t bytes = 16;
};
struct nv_base_mac_guid_cap {
  using mac_en = Field<0, 1>;  // may be set
  using guid_en = Field<1, 1>;
  using num_of_allocated_guids = Field<32, 16>;
  using num_of_allocated_macs = Field<48, 16>;
  static constexpr std::size_t bytes = 8;
};
struct nv_global_pci_conf {
  using sriov_valid = Field<0, 1>;
  using num_pfs_valid = Field<3, 1>;
  using per_pf_total_vf = Field<17, 1>;  // each physical function has a number of its own
  using sriov_en = Field<32, 1>;
  using num_pfs = Field<40, 8>;  // physical functions
  using total_vfs = Field<48, 16>;
  static constexpr std::size_t bytes = 12;
};
struct nv_global_pci_cap {
  using max_vfs_per_pf_valid = Field<0, 1>;
  using per_pf_total_vf_supported = Field<20, 1>;
  using sriov_support = Field<32, 1>;
  using max_num_pfs = Field<40, 8>;
  using max_vfs_per_pf = Field<48, 16>;
  static constexpr std::size_t bytes = 20;
};
struct nv_sw_offload_conf {
  using uctx_en = Field<23, 1>;           // user contexts (DevX)
  using cqe_compression = Field<29, 3>;   // 0 balanced, 1 aggressive
  using lro_log_timeout3 = Field<48, 4>;  // us, of lro_timer_supported_periods
  using lro_log_timeout2 = Field<52, 4>;
  using lro_log_timeout1 = Field<56, 4>;
  using lro_log_timeout0 = Field<60, 4>;
  static constexpr std::size_t bytes = 8;
};
struct nv_sw_offload_cap {
  using swp_l4_csum_mode_l4_only = Field<25, 1>;
  static constexpr std::size_t bytes = 4;
};
struct nv_sw_accelerate_conf {
  using swp_l4_csum_mode = Field<0, 2>;  // 0: the device's default
  static constexpr std::size_t bytes = 8;
};

}  // namespace hcasim::prm
#endif
