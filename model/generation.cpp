// SPDX-License-Identifier: BSD-3-Clause
// Sources. Device IDs and families: pci.ids, and Linux' mlx5 pci_device_id table. Firmware majors: the
// vendor's release notes (12 ConnectX-4, 14 ConnectX-4 Lx, 16 ConnectX-5, 20 ConnectX-6, 22 ConnectX-6 Dx, 28
// ConnectX-7); minors are those of one release, the last ones of ConnectX-4 and 4 Lx. PCIe and port speeds:
// product briefs. IDs of chips and addresses of boot status: mstflint (tools_dev_types.c,
// mtcr_ul_icmd_cif.c). Features: ConnectX-4's user manual, the mlx5 guide of DPDK (header modification and
// encapsulation, CQE formats, enhanced multi-packet WQE: from ConnectX-5 on), rdma-core's mlx5 provider (tag
// matching, device memory: from ConnectX-5 on) and mlx5_ifc.h (STE formats), kTLS: the vendor's
// documentation of its driver (from ConnectX-6 Dx on), as are times of frames at the port (tx_port_ts). Where
// a source names no generation the feature is held back from ConnectX-4 and 4 Lx; DCI streams, which are
// younger than ConnectX-5, from that as well. Which cards take 32 bits of DCQCN's byte counter (mstflint,
// roce_cc_ecn_32b_rate) is not public: ConnectX-6 Dx and later do here. Boards: part numbers are
// those of a board with one port of the chip; board IDs (PSIDs) are our own, as the vendor's name firmware
// images that this is not.
#include "model/generation.h"

#include <iterator>

namespace hcasim {

namespace {

enum : unsigned { kToEdr = 0x3f, kToHdr = 0x7f, kToNdr = 0xff, kNoIb = 0 };

// clang-format off
constexpr Generation::Features kConnectX4{false, false, false, false, false, false, false, false,
                                          false, false, false, false, false, false, SteFormat::kNone};
constexpr Generation::Features kConnectX5{true,  true,  true,  true,  true,  true,  true,  false,
                                          false, false, false, false, false, false, SteFormat::kConnectX5};
// clang-format on
constexpr Generation::Features later(SteFormat ste) {
  Generation::Features f = kConnectX5;
  f.ptys_extended = true;
  f.dci_streams = true;
  f.header_split = ste == SteFormat::kConnectX7;
  f.ste = ste;
  f.port_stamps = ste == SteFormat::kConnectX6Dx || ste == SteFormat::kConnectX7;
  f.psp = ste == SteFormat::kConnectX7;
  f.cc_32_bits = ste == SteFormat::kConnectX6Dx || ste == SteFormat::kConnectX7;
  f.crypto = ste == SteFormat::kConnectX6Dx || ste == SteFormat::kConnectX7;
  return f;
}

// clang-format off
constexpr Generation kGenerations[] = {
    {"connectx4", "ConnectX-4", "MT27700", "ConnectX4", 0x1013, 0x1014, 0, 0x209, 0xb0004, 3, 16, 12, 28, 2006, "HCA_0000004115",
     "MCX455A-ECAT", kToEdr, 100, kConnectX4},
    {"connectx4lx", "ConnectX-4 Lx", "MT27710", "ConnectX4 Lx", 0x1015, 0x1016, 0, 0x20b, 0xb0004, 3, 8, 14, 32, 1010, "HCA_0000004117",
     "MCX4131A-GCAT", kNoIb, 50, kConnectX4},
    {"connectx5", "ConnectX-5", "MT27800", "ConnectX5", 0x1017, 0x1018, 0, 0x20d, 0xb5e04, 3, 16, 16, 35, 1000, "HCA_0000004119",
     "MCX555A-ECAT", kToEdr, 100, kConnectX5},
    {"connectx5ex", "ConnectX-5 Ex", "MT28800", "ConnectX5 Ex", 0x1019, 0x101a, 0, 0x20d, 0xb5e04, 4, 16, 16, 35, 1000, "HCA_0000000001",
     "MCX556A-EDAT", kToEdr, 100, kConnectX5},
    {"connectx6", "ConnectX-6", "MT28908", "ConnectX6", 0x101b, 0x101c, 0, 0x20f, 0xb5f04, 4, 16, 20, 35, 1000, "HCA_0000004123",
     "MCX653105A-HDAT", kToHdr, 200, later(SteFormat::kConnectX5)},
    {"connectx6dx", "ConnectX-6 Dx", "MT2892", "ConnectX6 Dx", 0x101d, 0x101e, 0, 0x212, 0xb5f04, 4, 16, 22, 35, 1000, "HCA_0000004125",
     "MCX623105AN-CDAT", kNoIb, 200, later(SteFormat::kConnectX6Dx)},
    {"connectx7", "ConnectX-7", "MT2910", "ConnectX7", 0x1021, 0x101e, 0, 0x218, 0xb5f04, 5, 16, 28, 35, 1000, "HCA_0000004129",
     "MCX75310AAS-NEAT", kToNdr, 400, later(SteFormat::kConnectX7)},
};
// clang-format on
constexpr const Generation& kDefault = kGenerations[3];
static_assert(kDefault.device_id == 0x1019);

}  // namespace

unsigned Generation::ib_speed(unsigned wanted) const {
  if ((wanted & ib_speeds) != 0) return wanted;
  unsigned fastest = 1;
  while (ib_speeds >> 1 >= fastest) fastest <<= 1;
  return ib_speeds != 0 ? fastest : 0;
}

const Generation* find_generation(const std::string& key) {
  for (const Generation& g : kGenerations)
    if (key == g.key) return &g;
  return nullptr;
}

std::string generation_keys() {
  std::string list;
  for (const Generation& g : kGenerations) list += (list.empty() ? "" : ", ") + std::string(g.key);
  return list;
}

const Generation& default_generation() { return kDefault; }

Generations all_generations() { return {std::begin(kGenerations), std::end(kGenerations)}; }

}  // namespace hcasim
