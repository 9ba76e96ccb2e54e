// SPDX-License-Identifier: BSD-3-Clause
/// Numbers of access registers: ACCESS_REG's register_id, and the one in a register TLV of tools. Source:
/// mlx5's driver.h, MLX5_REG_*; mstflint's reg_access.c, REG_ID_*. Their layouts: generated, or
/// link_diagnostics.h and management.h.
#ifndef HCASIM_PRM_ACCESS_REGISTERS_H
#define HCASIM_PRM_ACCESS_REGISTERS_H

#include <cstdint>

namespace hcasim::prm::reg {

enum : std::uint16_t {
  kQpts = 0x4002,
  kQetcr = 0x4005,
  kQtct = 0x400a,
  kQpdpm = 0x4013,
  kQcam = 0x4019,
  kCoreDump = 0x402e,
  kPcap = 0x5001,
  kPmlp = 0x5002,
  kPmtu = 0x5003,
  kPtys = 0x5004,
  kPaos = 0x5006,
  kPfcc = 0x5007,
  kPpcnt = 0x5008,
  kPptb = 0x500b,
  kPbmc = 0x500c,
  kPvlc = 0x500f,
  kPmaos = 0x5012,
  kPplm = 0x5023,
  kSltp = 0x5027,
  kPddr = 0x5031,
  kPpaos = 0x5040,
  kPcmr = 0x5041,
  kPcam = 0x507f,
  kNodeDesc = 0x6001,
  kHostEndianness = 0x7004,
  kMtcap = 0x9009,
  kMtmp = 0x900a,
  kMcia = 0x9014,
  kMgir = 0x9020,
  kNvda = 0x9024,
  kMnvqc = 0x9030,
  kMfrl = 0x9028,
  kMlcr = 0x902b,
  kMtrcCap = 0x9040,
  kMtrcConf = 0x9041,
  kMtrcStdb = 0x9042,
  kMtrcCtrl = 0x9043,
  kMpein = 0x9050,
  kMpcnt = 0x9051,
  kMtpps = 0x9053,
  kMtppse = 0x9054,
  kMtutc = 0x9055,
  kMcqs = 0x9060,
  kMcqi = 0x9061,
  kMcc = 0x9062,
  kMcda = 0x9063,
  kMqis = 0x9064,
  kMcam = 0x907f,
  kResourceDump = 0xc000,
  kDtor = 0xc00e,
};

}  // namespace hcasim::prm::reg
#endif
