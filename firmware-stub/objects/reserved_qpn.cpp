// SPDX-License-Identifier: BSD-3-Clause
// Reserved QP numbers: blocks of them, for connections whose two ends need a number that is no QP's (DC
// through the connection manager). What is sent to one finds nobody.
#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"
#include "prm/transport_caps.h"

namespace hcasim::fw {

namespace {
using In = prm::general_obj_in_cmd_hdr;
using Out = prm::general_obj_out_cmd_hdr;
constexpr std::uint32_t kBlock = 1u << kLogReservedQpns;
static_assert(kFirstReservedQpn + std::uint64_t{kReservedQpnBlocks} * kBlock < 0xffffff);
}  // namespace

Syndrome create_reserved_qpns(Firmware& fw, Command& cmd) {
  if (cmd.get<In::op_param::create::log_obj_range>() != kLogReservedQpns) return Syndrome::kGeneralFeature;
  std::uint32_t n = 0;
  if (fw.objects().reserved_qpns.create(n) == nullptr) return Syndrome::kQpLimit;
  cmd.put<Out::obj_id>(kFirstReservedQpn + (n - 1) * kBlock);
  return Syndrome::kOk;
}

Syndrome destroy_reserved_qpns(Firmware& fw, Command& cmd) {
  const std::uint32_t id = cmd.get<In::obj_id>();
  const std::uint32_t n = (id - kFirstReservedQpn) / kBlock + 1;
  if (id < kFirstReservedQpn || (id - kFirstReservedQpn) % kBlock != 0 ||
      fw.objects().reserved_qpns.find(n) == nullptr)
    return Syndrome::kQpNumber;
  fw.objects().reserved_qpns.destroy(n);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
