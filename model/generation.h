// SPDX-License-Identifier: BSD-3-Clause
// Generations of the card: one row each. A profile names its generation (`generation = "connectx6"`);
// identity (PCI header, VPD, QUERY_ADAPTER, initialization segment, NODE_DESC), the fastest link and port,
// and what the firmware may offer come from the row. Times never do: they are the profile's.
#ifndef HCASIM_MODEL_GENERATION_H
#define HCASIM_MODEL_GENERATION_H

#include <cstdint>
#include <string>

namespace hcasim {

// Steering table entries (STE): the format that user space writes when it owns flow tables
// (cmd_hca_cap.steering_format_version).
enum class SteFormat : std::uint8_t { kNone = 0xff, kConnectX5 = 0, kConnectX6Dx = 1, kConnectX7 = 2 };

struct Generation {
  const char* key;               // in profiles and options
  const char* product;           // as in the vendor's documents
  const char* family;            // the chip, as pci.ids has it
  const char* node;              // in NODE_DESC
  std::uint16_t device_id;       // PCI device ID; in decimal ibv_devinfo's vendor_part_id
  std::uint16_t vf_device_id;    // of its virtual functions
  std::uint8_t revision;         // PCI revision ID; ibv_devinfo's hw_ver
  std::uint16_t hw_id;           // the chip's own ID, whatever PCI shows: of its recovery mode too
  std::uint32_t boot_status_at;  // CR space: address of the boot status (bit 31: not done yet)
  unsigned pcie_generation;      // fastest link: 3 = 8 GT/s ... 5 = 32 GT/s ...
  unsigned pcie_lanes;           // ... and widest
  std::uint16_t fw_major, fw_minor, fw_subminor;  // ibv_devinfo's fw_ver
  const char* psid;                               // board ID, at most 15 characters
  const char* part;                               // part number of a board with this chip (VPD keyword PN)
  // PTYS ib_proto: bit 0 SDR, 1 DDR, 2 QDR, 3 FDR10, 4 FDR, 5 EDR, 6 HDR, 7 NDR; 0: no InfiniBand.
  unsigned ib_speeds;
  double port_gbps;  // fastest port, either link

  // What this generation has of what model and firmware do. The firmware offers no more than this.
  struct Features {
    bool tag_matching;   // XRQ, rendezvous offload
    bool device_memory;  // MEMIC
    bool odp_xrc_dc;     // on-demand paging of XRC and DC transports
    bool flow_rewrite;   // header modification, encapsulation, decapsulation, VLAN push and pop; RDMA tables
    bool enhanced_mpw;   // enhanced multi-packet send WQE
    bool stride_cqe;     // mini CQE with the stride's index, 128 byte CQEs compressed, few strides a WQE
    bool pacing_burst;   // burst bound and typical packet size of a rate limit
    bool crypto;         // TLS in line, on boards that may encrypt
    bool psp;            // PSP, on those
    bool header_split;   // SHAMPO: headers apart from data
    bool port_stamps;    // CQEs with the time when a frame has left the port
    bool dci_streams;    // DCIs with streams that fail one by one
    bool ptys_extended;  // link modes of 50 Gb/s lanes, 200 and 400 Gb/s (PTYS, ext_eth_proto_*)
    bool cc_32_bits;     // DCQCN's rpg_byte_reset has 32 bits, not 15 (nv_global_roce_cc_cap)
    SteFormat ste;
  } has;

  // Whether software may own flow tables.
  bool sw_steering() const { return has.ste != SteFormat::kNone; }
  // Whether virtual functions can be migrated: of the generations whose drivers know them by one ID.
  bool migration() const { return vf_device_id == 0x101e; }
  // The speed that the port reports (one bit of ib_speeds): `wanted` if the generation has it, else its
  // fastest.
  unsigned ib_speed(unsigned wanted) const;
};

// Null: no such generation.
const Generation* find_generation(const std::string& key);
// All keys, separated by ", ".
std::string generation_keys();
// What a profile has that names none.
const Generation& default_generation();
// All rows, oldest first: for tests and documentation.
struct Generations {
  const Generation* first;
  const Generation* last;
  const Generation* begin() const { return first; }
  const Generation* end() const { return last; }
};
Generations all_generations();

}  // namespace hcasim
#endif
