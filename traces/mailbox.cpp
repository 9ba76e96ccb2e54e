// SPDX-License-Identifier: BSD-3-Clause
/// Commands' mailboxes by field.
#include <cstring>

#include "prm/access_registers.h"
#include "prm/prm.h"
#include "traces/report.h"

namespace hcasim::traces {
namespace {

/// Capability groups by type (op_mod >> 1), as members of the union in QUERY_HCA_CAP and SET_HCA_CAP.
const char* cap_member(unsigned type) {
  switch (type) {
    case 0x00:
      return "cmd_hca_cap";
    case 0x01:
      return "per_protocol_networking_offload_caps";
    case 0x02:
      return "odp_cap";
    case 0x03:
      return "atomic_caps";
    case 0x04:
      return "roce_cap";
    case 0x06:
      return "per_protocol_networking_offload_caps";
    case 0x07:
      return "flow_table_nic_cap";
    case 0x08:
      return "flow_table_eswitch_cap";
    case 0x09:
      return "e_switch_cap";
    case 0x0c:
      return "qos_cap";
    case 0x0d:
      return "debug_cap";
    case 0x0f:
      return "device_mem_cap";
    case 0x11:
      return "tls_cap";
    case 0x13:
      return "virtio_emulation_cap";
    case 0x15:
      return "ipsec_cap";
    case 0x1f:
      return "macsec_cap";
    case 0x20:
      return "cmd_hca_cap_2";
    case 0x25:
      return "port_selection_cap";
    default:
      return "";
  }
}

/// Structure of an access register.
const char* register_struct(unsigned id) {
  switch (id) {
    case prm::reg::kQcam:
      return "qcam_reg";
    case prm::reg::kPcap:
      return "pcap_reg";
    case prm::reg::kPmlp:
      return "pmlp_reg";
    case prm::reg::kPmtu:
      return "pmtu_reg";
    case prm::reg::kPtys:
      return "ptys_reg";
    case prm::reg::kPaos:
      return "paos_reg";
    case prm::reg::kPfcc:
      return "pfcc_reg";
    case prm::reg::kPpcnt:
      return "ppcnt_reg";
    case prm::reg::kPptb:
      return "pptb_reg";
    case prm::reg::kPbmc:
      return "pbmc_reg";
    case prm::reg::kPvlc:
      return "pvlc_reg";
    case prm::reg::kPmaos:
      return "pmaos_reg";
    case prm::reg::kPplm:
      return "pplm_reg";
    case prm::reg::kPcmr:
      return "pcmr_reg";
    case prm::reg::kPcam:
      return "pcam_reg";
    case prm::reg::kMcia:
      return "mcia_reg";
    case prm::reg::kMfrl:
      return "mfrl_reg";
    case prm::reg::kMpein:
      return "mpein_reg";
    case prm::reg::kMpcnt:
      return "mpcnt_reg";
    case prm::reg::kMtpps:
      return "mtpps_reg";
    case prm::reg::kMtppse:
      return "mtppse_reg";
    case prm::reg::kMtutc:
      return "mtutc_reg";
    case prm::reg::kMcqi:
      return "mcqi_reg";
    case prm::reg::kMcam:
      return "mcam_reg";
    case prm::reg::kDtor:
      return "dtor_reg";
    default:
      return "";
  }
}

std::string hex(const std::vector<std::uint8_t>& b) {
  std::size_t n = b.size() < 64 ? b.size() : 64;
  std::string s;
  for (std::size_t i = 0; i < n; i++) {
    char t[4];
    std::snprintf(t, sizeof t, "%02x", b[i]);
    s += t;
  }
  return n < b.size() ? s + "..." : s;
}

std::string fields(const CommandRow& c, const std::vector<std::uint8_t>& b, const prm::StructInfo* s) {
  if (s == nullptr) return b.empty() ? "" : hex(b);
  if (c.opcode == prm::op::QUERY_HCA_CAP || c.opcode == prm::op::SET_HCA_CAP)
    return prm::dump(*s, b.data(), b.size(), cap_member(c.op_mod >> 1));
  if (c.opcode == prm::op::ACCESS_REG && b.size() > 16 && c.input.size() >= 12) {
    const auto id = prm::get<prm::access_register_in::register_id>(c.input.data());
    if (const prm::StructInfo* reg = prm::find_struct(register_struct(id))) {
      std::string head = prm::dump(*s, b.data(), 16), body = prm::dump(*reg, b.data() + 16, b.size() - 16);
      return head + (head.empty() ? "" : " ") + reg->name + "{" + body + "}";
    }
  }
  return prm::dump(*s, b.data(), b.size());
}

}  // namespace

std::string input_fields(const CommandRow& c) { return fields(c, c.input, prm::input_struct(c.opcode)); }
std::string output_fields(const CommandRow& c) { return fields(c, c.output, prm::output_struct(c.opcode)); }

}  // namespace hcasim::traces
