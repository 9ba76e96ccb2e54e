// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/opcodes.h"

#include <algorithm>

#include "firmware-stub/caps.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/general.h"
#include "firmware-stub/objects/srq.h"
#include "prm/user_commands.h"
#include "prm/vhca_state.h"

namespace hcasim::fw {

namespace {
constexpr std::uint8_t kAny = 7, kOn = 6, kPreInit = 2, kRun = 4;
constexpr Issuer kDriver = Issuer::kDriver, kContexts = Issuer::kContexts;

bool has_vport(const Caps& c) { return c.get<prm::cmd_hca_cap::ib_virt>() != 0; }
bool has_xrc(const Caps& c) { return c.get<prm::cmd_hca_cap::xrc>() != 0; }
bool has_dct(const Caps& c) { return c.get<prm::cmd_hca_cap::dct>() != 0; }
bool has_rmp(const Caps& c) { return c.get<prm::cmd_hca_cap::log_max_rmp>() != 0; }
bool has_q_counters(const Caps& c) { return c.get<prm::cmd_hca_cap::max_qp_cnt>() != 0; }
bool has_vport_counters(const Caps& c) { return c.get<prm::cmd_hca_cap::vport_counters>() != 0; }
bool has_mcg(const Caps& c) { return c.get<prm::cmd_hca_cap::max_qp_mcg>() != 0; }
bool has_version(const Caps& c) { return c.get<prm::cmd_hca_cap::driver_version>() != 0; }
bool has_td(const Caps& c) { return c.get<prm::cmd_hca_cap::log_max_transport_domain>() != 0; }
bool has_cc(const Caps& c) { return c.get<prm::cmd_hca_cap::cc_query_allowed>() != 0; }
bool has_cc_modify(const Caps& c) { return c.get<prm::cmd_hca_cap::cc_modify_allowed>() != 0; }
bool has_eth(const Caps& c) { return c.get<prm::cmd_hca_cap::eth_net_offloads>() != 0; }
bool has_ipoib(const Caps& c) { return c.get<prm::cmd_hca_cap::ipoib_enhanced_offloads>() != 0; }
bool has_frames(const Caps& c) { return has_eth(c) || has_ipoib(c); }  // queues of them
bool has_vxlan(const Caps& c) {
  using e = prm::per_protocol_networking_offload_caps;
  return c.get<e::tunnel_stateless_vxlan>(CapGroup::kEthernet) != 0;
}
bool has_eswitch(const Caps& c) { return c.get<prm::cmd_hca_cap::eswitch_manager>() != 0; }
bool has_sf(const Caps& c) { return c.get<prm::cmd_hca_cap::sf>() != 0; }
bool has_migration(const Caps& c) { return c.get<prm::cmd_hca_cap::migration>() != 0; }
bool has_lag(const Caps& c) { return c.get<prm::cmd_hca_cap::lag_master>() != 0; }
bool has_flows(const Caps& c) { return c.get<prm::cmd_hca_cap::nic_flow_table>() != 0 || has_ipoib(c); }
bool has_roce(const Caps& c) { return c.get<prm::cmd_hca_cap::roce>() != 0; }
bool has_uctx(const Caps& c) { return c.get<prm::cmd_hca_cap::log_max_uctx>() != 0; }
bool has_general(const Caps& c) { return c.get<prm::cmd_hca_cap::general_obj_types>() != 0; }
bool has_qos(const Caps& c) { return c.get<prm::cmd_hca_cap::qos>() != 0; }
bool has_pacing(const Caps& c) { return c.get<prm::qos_cap::packet_pacing>(CapGroup::kQos) != 0; }
bool has_sw_icm(const Caps& c) {
  return c.get<prm::device_mem_cap::log_steering_sw_icm_size>(CapGroup::kDeviceMemory) != 0;
}
bool has_pkeys(const Caps& c) { return has_vport(c) || has_eth(c); }  // without RoCE too
bool has_signature(const Caps& c) { return c.get<prm::cmd_hca_cap::sho>() != 0; }
bool has_memic(const Caps& c) { return c.get<prm::device_mem_cap::memic>(CapGroup::kDeviceMemory) != 0; }
bool has_odp(const Caps& c) { return c.get<prm::cmd_hca_cap::pg>() != 0; }
bool has_psp(const Caps& c) { return c.get<prm::psp::cap_psp>() != 0; }
constexpr bool (*kAlways)(const Caps&) = nullptr;

// Transitions of QPs: up to the end of the context, behind which later drivers have more.
constexpr std::uint16_t kTransition = prm::rst2init_qp_in::qpc::bit_off / 8 + prm::qpc::bytes;

std::vector<Opcode> make_table() {
  std::vector<Opcode> table = {
#define HCASIM_OPCODE_OF(NAME, op, in, out, whole_in, whole_out, states, need, handler, time, ...) \
  {NAME, op, in, out, whole_in, whole_out, states, need, handler, TimeClass::time, Users(__VA_ARGS__)},
#include "firmware-stub/opcodes.def"
#undef HCASIM_OPCODE_OF
  };
  std::sort(table.begin(), table.end(), [](const Opcode& a, const Opcode& b) { return a.opcode < b.opcode; });
  return table;
}
}  // namespace

const std::vector<Opcode>& all_opcodes() {
  static const std::vector<Opcode> table = make_table();
  return table;
}

const Opcode* find_opcode(std::uint16_t opcode) {
  const std::vector<Opcode>& t = all_opcodes();
  auto it = std::lower_bound(t.begin(), t.end(), opcode,
                             [](const Opcode& o, std::uint16_t v) { return o.opcode < v; });
  return it != t.end() && it->opcode == opcode ? &*it : nullptr;
}

}  // namespace hcasim::fw
