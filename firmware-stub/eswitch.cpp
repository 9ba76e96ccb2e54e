// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch as its manager sees it: contexts of vports, MAC addresses that the card takes from the wire.
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/flow_types.h"
#include "firmware-stub/vport_target.h"
#include "model/steer/icm.h"

namespace hcasim::fw {

namespace {

template <class Cfi, class Pcp, class Id>
std::uint16_t tag_of(const Command& cmd) {
  return static_cast<std::uint16_t>(cmd.get<Pcp>() << 13 | cmd.get<Cfi>() << 12 | cmd.get<Id>());
}

template <class Cfi, class Pcp, class Id>
void put_tag(Command& cmd, std::uint16_t tci) {
  cmd.put<Pcp>(tci >> 13);
  cmd.put<Cfi>(tci >> 12 & 1);
  cmd.put<Id>(tci & 0xfff);
}

}  // namespace

Syndrome query_esw_vport_context(Firmware& fw, Command& cmd) {
  using c = prm::query_esw_vport_context_out::esw_vport_context;
  Firmware* of = vport_of<prm::query_esw_vport_context_in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  const VportVlans& v = of->function().vport().vlans;
  const std::uint8_t registers = of->function().vport().reg_c_ids;
  cmd.put<c::fdb_to_vport_reg_c>(registers != 0 ? 1 : 0);
  cmd.put<c::fdb_to_vport_reg_c_id>(registers);
  cmd.put<c::vport_svlan_strip>(v.strip_svlan ? 1 : 0);
  cmd.put<c::vport_cvlan_strip>(v.strip_cvlan ? 1 : 0);
  cmd.put<c::vport_svlan_insert>(v.insert_svlan ? 1 : 0);
  cmd.put<c::vport_cvlan_insert>(v.insert_cvlan);
  if (fw.manages() && fw.options().generation->sw_steering()) {
    const std::uint64_t address = icm_address({IcmTarget::kVport, of->function().vport().number()});
    cmd.put<c::sw_steering_vport_icm_address_rx>(address);
    cmd.put<c::sw_steering_vport_icm_address_tx>(address);
  }
  put_tag<c::svlan_cfi, c::svlan_pcp, c::svlan_id>(cmd, v.svlan);
  put_tag<c::cvlan_cfi, c::cvlan_pcp, c::cvlan_id>(cmd, v.cvlan);
  return Syndrome::kOk;
}

Syndrome modify_esw_vport_context(Firmware& fw, Command& cmd) {
  using in = prm::modify_esw_vport_context_in;
  using select = in::field_select;
  using c = in::esw_vport_context;
  Firmware* of = vport_of<in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  const std::uint32_t registers = cmd.get<c::fdb_to_vport_reg_c_id>();
  if (cmd.get<select::fdb_to_vport_reg_c_id>() != 0 && (registers & ~kFdbToVportRegs) != 0)
    return Syndrome::kVportField;
  VportVlans next = of->function().vport().vlans;
  if (cmd.get<select::vport_svlan_strip>() != 0) next.strip_svlan = cmd.get<c::vport_svlan_strip>() != 0;
  if (cmd.get<select::vport_cvlan_strip>() != 0) next.strip_cvlan = cmd.get<c::vport_cvlan_strip>() != 0;
  if (cmd.get<select::vport_svlan_insert>() != 0) {
    next.insert_svlan = cmd.get<c::vport_svlan_insert>() != 0;
    next.svlan = tag_of<c::svlan_cfi, c::svlan_pcp, c::svlan_id>(cmd);
  }
  if (cmd.get<select::vport_cvlan_insert>() != 0) {
    const std::uint32_t how = cmd.get<c::vport_cvlan_insert>();
    if (how != VportVlans::kNone && how != VportVlans::kIfThereIsNone && how != VportVlans::kAlways)
      return Syndrome::kVportField;
    next.insert_cvlan = static_cast<VportVlans::Insert>(how);
    next.cvlan = tag_of<c::cvlan_cfi, c::cvlan_pcp, c::cvlan_id>(cmd);
  }
  of->function().vport().vlans = next;
  if (cmd.get<select::fdb_to_vport_reg_c_id>() != 0)
    of->function().vport().reg_c_ids = static_cast<std::uint8_t>(registers);
  return Syndrome::kOk;
}

// Which addresses are taken from the wire, of a card whose functions have different hosts. This one's have
// one: what is for none of them the FDB gives to the manager, and the table is only kept.
Syndrome set_l2_table_entry(Firmware& fw, Command& cmd) {
  using in = prm::set_l2_table_entry_in;
  if (cmd.get<in::silent_mode_valid>() != 0) return Syndrome::kVportField;
  const std::uint32_t index = cmd.get<in::table_index>();
  if (index >= 1u << kLogL2Table) return Syndrome::kL2Index;
  L2Entry& entry = fw.l2_table()[index];
  entry.mac = std::uint64_t{cmd.get<in::mac_address::mac_addr_47_32>()} << 32 |
              cmd.get<in::mac_address::mac_addr_31_0>();
  entry.vlan_valid = cmd.get<in::vlan_valid>() != 0;
  entry.vlan = static_cast<std::uint16_t>(cmd.get<in::vlan>());
  return Syndrome::kOk;
}

Syndrome query_l2_table_entry(Firmware& fw, Command& cmd) {
  using out = prm::query_l2_table_entry_out;
  const auto it = fw.l2_table().find(cmd.get<prm::query_l2_table_entry_in::table_index>());
  if (it == fw.l2_table().end()) return Syndrome::kL2Index;
  cmd.put<out::mac_address::mac_addr_47_32>(static_cast<std::uint32_t>(it->second.mac >> 32));
  cmd.put<out::mac_address::mac_addr_31_0>(static_cast<std::uint32_t>(it->second.mac));
  cmd.put<out::vlan_valid>(it->second.vlan_valid ? 1 : 0);
  cmd.put<out::vlan>(it->second.vlan);
  return Syndrome::kOk;
}

Syndrome delete_l2_table_entry(Firmware& fw, Command& cmd) {
  return fw.l2_table().erase(cmd.get<prm::delete_l2_table_entry_in::table_index>()) != 0 ? Syndrome::kOk
                                                                                         : Syndrome::kL2Index;
}

}  // namespace hcasim::fw
