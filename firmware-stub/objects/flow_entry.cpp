// SPDX-License-Identifier: BSD-3-Clause
// Flow table entries: what is matched, what is done, where to.
#include <algorithm>
#include <cstring>

#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/flow.h"
#include "firmware-stub/objects/flow_types.h"

namespace hcasim::fw {

namespace {

enum : std::uint16_t { kNewEntry = 0, kModifyEntry = 1 };  // op_mod of SET_FLOW_TABLE_ENTRY
enum : std::uint32_t {  // set_fte_in.modify_enable_mask (mlx5_ifc.h, MLX5_SET_FTE_MODIFY_ENABLE_MASK_*)
  kModifyAction = 1 << 0,
  kModifyTag = 1 << 1,
  kModifyDestinations = 1 << 2,
  kModifyCounters = 1 << 3,
  kModifyCrypto = 1 << 4,
};

constexpr unsigned kFlowCrypto = kFlowDecrypt | kFlowEncrypt;

bool of_esp_transport(std::uint8_t type) {
  using namespace prm::k;
  return type == REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4 ||
         type == REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6 ||
         type == REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4 ||
         type == REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV6 || type == REFORMAT_TYPE_DEL_ESP_TRANSPORT ||
         type == REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP;
}

// Null: there is none of that number; for PSP there are none.
PlainObject* find_crypto(Objects& o, const CryptoAction& crypto) {
  if (crypto.type == CryptoAction::kPsp) return nullptr;
  if (crypto.type == CryptoAction::kMacsec) return o.macsecs.find(crypto.object);
  return o.ipsecs.find(crypto.object);
}

// Everything that the entry names.
FlowEntryRefs refer_to(Firmware& fw, const FlowEntry& e) {
  Objects& o = fw.objects();
  FlowEntryRefs refs;
  for (const FlowDestination& d : e.destinations) {
    if (d.type == FlowDestination::kTable) refs.tables.emplace_back(o.flow_tables.find(d.id));
    if (d.type == FlowDestination::kTir) refs.tirs.emplace_back(o.tirs.find(d.id));
    if (d.type == FlowDestination::kSampler) refs.samplers.emplace_back(o.flow_samplers.find(d.id));
    if (d.reformat != 0) refs.others.emplace_back(o.reformats.find(d.reformat));
  }
  for (const std::uint32_t id : e.counters) refs.others.emplace_back(o.find_flow_counter(id));
  if ((e.action & kFlowModify) != 0) refs.others.emplace_back(o.modify_headers.find(e.modify));
  if ((e.action & kFlowAso) != 0) refs.others.emplace_back(o.flow_meters.find(e.aso.object));
  if ((e.action & kFlowCrypto) != 0)
    if (PlainObject* crypto = find_crypto(o, e.crypto)) refs.others.emplace_back(crypto);
  if ((e.action & kFlowReformat) != 0) refs.others.emplace_back(o.reformats.find(e.reformat));
  return refs;
}

using Fte = prm::set_fte_in;
using FlowContext = Fte::flow_context;

// A member of the lists: longer, where destinations have reformats of their own.
std::size_t item_bytes(bool extended) {
  return extended ? prm::extended_dest_format::bytes : prm::dest_format_struct::bytes;
}

// The reformat that destination p has for itself.
Syndrome read_reformat(Firmware& fw, const std::uint8_t* p, bool extended, const FlowTable& table,
                       const FlowTypeCaps& type, std::uint32_t& id) {
  if (prm::get<prm::dest_format_struct::packet_reformat>(p) == 0) return Syndrome::kOk;
  if (!extended) return Syndrome::kFlowDestination;
  if (!table.reformats) return Syndrome::kFlowFeature;
  id = prm::get<prm::extended_dest_format::packet_reformat_id>(p);
  const auto reformat = fw.function().flows().reformats.find(id);
  if (reformat == fw.function().flows().reformats.end()) return Syndrome::kReformatNumber;
  return (type.reformats >> reformat->second.type & 1) != 0 ? Syndrome::kOk : Syndrome::kReformatType;
}

// The lists behind the context: destinations, then counters.
Syndrome read_lists(Firmware& fw, const Command& cmd, const FlowTable& table, const FlowTypeCaps& type,
                    FlowEntry& entry) {
  const std::uint32_t destinations = cmd.get<FlowContext::destination_list_size>();
  const std::uint32_t counters = cmd.get<FlowContext::flow_counter_list_size>();
  const bool selects = table.type == FlowTableType::kPortSelection;
  const unsigned most = table.type == FlowTableType::kFdb ? kLogVportDestinations
                        : selects                         ? kLogPortDestinations
                                                          : kLogDestinations;
  if (destinations > 1u << most) return Syndrome::kFlowDestination;
  if (counters > 1) return Syndrome::kFlowCounterBulk;
  constexpr std::size_t kList = FlowContext::destination::bit_off / 8;
  static_assert(prm::dest_format_struct::bytes == prm::flow_counter_list::bytes);
  const bool extended = cmd.get<FlowContext::extended_destination>() != 0;
  const std::size_t item = item_bytes(extended);
  // The last destination may be without its second half (OpenBSD's mcx), which is then 0.
  constexpr std::size_t kHalf = prm::dest_format_struct::bytes / 2;
  const std::size_t bytes = kList + (destinations + counters) * item;
  const std::size_t least = bytes - (destinations != 0 && counters == 0 && !extended ? kHalf : 0);
  if (cmd.in_len < least) return Syndrome::kFlowList;
  std::vector<std::uint8_t> last;
  const std::uint8_t* p = cmd.in.data() + kList;
  if (cmd.in.size() < bytes) {
    last.assign(p, cmd.in.data() + cmd.in.size());
    last.resize(bytes - kList);
    p = last.data();
  }
  entry.destinations.clear();
  for (std::uint32_t i = 0; i < destinations; ++i, p += item) {
    using d = prm::dest_format_struct;
    // A switch may be named by its manager: this one, or that of the card's other port.
    const bool other = prm::get<d::destination_eswitch_owner_vhca_id_valid>(p) != 0 &&
                       prm::get<d::destination_eswitch_owner_vhca_id>(p) != fw.options().vhca_id;
    if (other &&
        !(selects ? is_other_port : is_other_switch)(fw, prm::get<d::destination_eswitch_owner_vhca_id>(p)))
      return Syndrome::kFlowDestination;
    std::uint32_t reformat = 0;
    const Syndrome why = read_reformat(fw, p, extended, table, type, reformat);
    if (why != Syndrome::kOk) return why;
    const std::uint32_t id = prm::get<d::destination_id>(p);
    const std::uint32_t kind = prm::get<d::destination_type>(p);
    if (kind >= 32 || (type.destinations >> kind & 1) == 0) return Syndrome::kFlowDestination;
    if (other && kind != FlowDestination::kVport && kind != FlowDestination::kUplink)
      return Syndrome::kFlowDestination;
    switch (kind) {
      case FlowDestination::kTable: {
        const Syndrome s =
            check_next_table(fw, id, table.type, table.level, cmd.get<Fte::ignore_flow_level>() != 0);
        if (s != Syndrome::kOk) return s;
        entry.destinations.push_back({FlowDestination::kTable, id, reformat});
        break;
      }
      case FlowDestination::kTir:
        if (fw.objects().tirs.find(id) == nullptr) return Syndrome::kTirNumber;
        entry.destinations.push_back({FlowDestination::kTir, id, reformat});
        break;
      case FlowDestination::kSampler: {
        const auto sampler = fw.function().flows().samplers.find(id);
        if (sampler == fw.function().flows().samplers.end()) return Syndrome::kFlowSamplerNumber;
        const FlowTable* samples = fw.function().flows().find_table(sampler->second.sample_table);
        if (samples == nullptr || samples->type != table.type) return Syndrome::kFlowTableType;
        entry.destinations.push_back({FlowDestination::kSampler, id, reformat});
        break;
      }
      case FlowDestination::kVport:
        // Both ports have as many functions.
        if (id != 0 && id != kUplinkVport && fw.managed(id) == nullptr) return Syndrome::kFunction;
        entry.destinations.push_back({FlowDestination::kVport, id, reformat, other});
        break;
      case FlowDestination::kUplink:
        entry.destinations.push_back({FlowDestination::kUplink, 0, reformat, other});
        break;
      default:
        return Syndrome::kFlowDestination;
    }
  }
  entry.counters.clear();
  for (std::uint32_t i = 0; i < counters; ++i, p += item) {
    const std::uint32_t id = prm::get<prm::flow_counter_list::flow_counter_id>(p);
    if (fw.objects().find_flow_counter(id) == nullptr) return Syndrome::kFlowCounterNumber;
    entry.counters.push_back(id);
  }
  return Syndrome::kOk;
}

Syndrome check_action(Firmware& fw, const FlowTable& table, const FlowTypeCaps& type, const FlowEntry& e) {
  const auto has = [&](unsigned action) { return (e.action & action) != 0; };
  if ((e.action & ~type.actions) != 0) return Syndrome::kFlowAction;
  if (has(kFlowAllow) + has(kFlowDrop) + has(kFlowForward) != 1) return Syndrome::kFlowAction;
  if (has(kFlowForward) == e.destinations.empty()) return Syndrome::kFlowDestination;
  if (has(kFlowCount) == e.counters.empty()) return Syndrome::kFlowCounterNumber;
  if (has(kFlowDecap) && !table.decaps) return Syndrome::kFlowFeature;
  if ((has(kFlowPopVlan2) && !has(kFlowPopVlan)) || (has(kFlowPushVlan2) && !has(kFlowPushVlan)))
    return Syndrome::kFlowAction;
  if (has(kFlowModify) && fw.objects().modify_headers.find(e.modify) == nullptr)
    return Syndrome::kModifyHeaderNumber;
  if (has(kFlowAso) && fw.objects().flow_meters.find(e.aso.object) == nullptr)
    return Syndrome::kFlowMeterNumber;
  if (has(kFlowCrypto) && e.crypto.type != CryptoAction::kPsp &&
      find_crypto(fw.objects(), e.crypto) == nullptr)
    return e.crypto.type == CryptoAction::kMacsec ? Syndrome::kMacsecNumber : Syndrome::kIpsecNumber;
  if (has(kFlowReformat)) {
    const auto reformat = fw.function().flows().reformats.find(e.reformat);
    if (reformat == fw.function().flows().reformats.end()) return Syndrome::kReformatNumber;
    // The driver asks for no such table for ESP in transport mode.
    if (!table.reformats && !of_esp_transport(reformat->second.type)) return Syndrome::kFlowFeature;
    if ((type.reformats >> reformat->second.type & 1) == 0) return Syndrome::kReformatType;
  }
  return Syndrome::kOk;
}

// All that the entry names belongs to the user context that sets it, or is shared.
Syndrome check_owners(Firmware& fw, const Command& cmd, const FlowEntry& e) {
  const Objects& o = fw.objects();
  const auto may_use = [&](ObjType type, std::uint32_t id) {
    return UserContexts::may_use(cmd.uid, o.users.owner(type, id));
  };
  const auto may_use_general = [&](std::uint16_t type, std::uint32_t id) {
    return UserContexts::may_use(cmd.uid, o.users.owner_general(type, id));
  };
  for (const FlowDestination& d : e.destinations) {
    if ((d.type == FlowDestination::kTable && !may_use(ObjType::kFlowTable, d.id)) ||
        (d.type == FlowDestination::kTir && !may_use(ObjType::kTir, d.id)) ||
        (d.type == FlowDestination::kSampler &&
         !may_use_general(prm::k::GENERAL_OBJECT_TYPES_SAMPLER, d.id)) ||
        (d.reformat != 0 && !may_use(ObjType::kReformat, d.reformat)))
      return Syndrome::kNotOwner;
  }
  for (const std::uint32_t id : e.counters)
    if (!may_use(ObjType::kFlowCounter, o.allocated_counter(id))) return Syndrome::kNotOwner;
  const auto has = [&](unsigned action) { return (e.action & action) != 0; };
  const std::uint16_t crypto = e.crypto.type == CryptoAction::kMacsec ? prm::k::GENERAL_OBJECT_TYPES_MACSEC
                                                                      : prm::k::GENERAL_OBJECT_TYPES_IPSEC;
  if ((has(kFlowModify) && !may_use(ObjType::kModifyHeader, e.modify)) ||
      (has(kFlowReformat) && !may_use(ObjType::kReformat, e.reformat)) ||
      (has(kFlowAso) && !may_use_general(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO, e.aso.object)) ||
      (has(kFlowCrypto) && e.crypto.type != CryptoAction::kPsp && !may_use_general(crypto, e.crypto.object)))
    return Syndrome::kNotOwner;
  return Syndrome::kOk;
}

using Aso = FlowContext::execute_aso;

// What kFlowAso is to do: one of the list's four, a flow meter.
Syndrome read_aso(const Command& cmd, MeterAction& aso) {
  const std::uint8_t* p = cmd.in.data() + Aso::bit_off / 8;
  using ctrl = prm::execute_aso::exe_aso_ctrl::exe_aso_ctrl_flow_meter;
  if (prm::get<prm::execute_aso::valid>(p) == 0 ||
      prm::get<ctrl::aso_type>(p) != prm::k::EXE_ASO_FLOW_METER ||
      prm::get<ctrl::return_reg_id>(p) >= FlowRegisters{}.c.size())
    return Syndrome::kFlowMeterUse;
  for (unsigned i = 1; i < Aso::count; ++i)
    if (prm::get<prm::execute_aso::valid>(p + i * prm::execute_aso::bytes) != 0)
      return Syndrome::kFlowMeterUse;
  aso.object = prm::get<prm::execute_aso::aso_object_id>(p);
  aso.reg = static_cast<std::uint8_t>(prm::get<ctrl::return_reg_id>(p));
  aso.meter = static_cast<std::uint8_t>(prm::get<ctrl::meter_id>(p));
  aso.before = static_cast<MeterColor>(prm::get<ctrl::init_color>(p));
  return Syndrome::kOk;
}

void write_aso(Command& cmd, const MeterAction& aso) {
  std::uint8_t* p = cmd.out.data() + prm::query_fte_out::flow_context::execute_aso::bit_off / 8;
  using ctrl = prm::execute_aso::exe_aso_ctrl::exe_aso_ctrl_flow_meter;
  prm::set<prm::execute_aso::valid>(p, 1);
  prm::set<prm::execute_aso::aso_object_id>(p, aso.object);
  prm::set<ctrl::aso_type>(p, prm::k::EXE_ASO_FLOW_METER);
  prm::set<ctrl::return_reg_id>(p, aso.reg);
  prm::set<ctrl::meter_id>(p, aso.meter);
  prm::set<ctrl::init_color>(p, static_cast<std::uint32_t>(aso.before));
}

template <class Vlan>
VlanTag read_vlan(const Command& cmd) {
  return {static_cast<std::uint16_t>(cmd.get<typename Vlan::ethtype>()),
          static_cast<std::uint16_t>(cmd.get<typename Vlan::prio>() << 13 |
                                     cmd.get<typename Vlan::cfi>() << 12 | cmd.get<typename Vlan::vid>())};
}

template <class Vlan>
void write_vlan(Command& cmd, const VlanTag& tag) {
  cmd.put<typename Vlan::ethtype>(tag.tpid);
  cmd.put<typename Vlan::prio>(tag.tci >> 13);
  cmd.put<typename Vlan::cfi>(tag.tci >> 12 & 1);
  cmd.put<typename Vlan::vid>(tag.tci & 0xfff);
}

}  // namespace

Syndrome set_fte(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Syndrome s = check_flow_target<Fte>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  FlowTable* table = nullptr;
  s = find_flow_table<Fte>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  if (cmd.op_mod != kNewEntry && cmd.op_mod != kModifyEntry) return Syndrome::kOpMod;
  if (cmd.get<FlowContext::extended_destination>() != 0 && table->type != FlowTableType::kFdb)
    return Syndrome::kFlowFeature;
  const std::uint32_t index = cmd.get<Fte::flow_index>();
  const auto old = table->entries.find(index);
  const bool fresh = cmd.op_mod == kNewEntry;
  if (fresh && old != table->entries.end()) return Syndrome::kFlowIndexUsed;
  if (!fresh && old == table->entries.end()) return Syndrome::kFlowIndex;
  std::uint32_t mask = kModifyAction | kModifyTag | kModifyDestinations | kModifyCounters;
  if (fw.options().encrypts()) mask |= kModifyCrypto;
  if (!fresh) {
    if ((cmd.get<Fte::modify_enable_mask>() & ~mask) != 0) return Syndrome::kModifyMask;
    mask = cmd.get<Fte::modify_enable_mask>();
  }

  const FlowTypeCaps& type = *flow_type(fw.options(), static_cast<std::uint32_t>(table->type));
  FlowEntry given;
  s = read_lists(fw, cmd, *table, type, given);
  if (s != Syndrome::kOk) return s;
  FlowEntry entry;
  if (fresh) {
    entry.group = cmd.get<FlowContext::group_id>();
    const auto group = table->groups.find(entry.group);
    if (group == table->groups.end()) return Syndrome::kFlowGroupNumber;
    if (index < group->second.first || index > group->second.last) return Syndrome::kFlowIndex;
    std::memcpy(entry.value.data(), prm::ptr<FlowContext::match_value>(cmd.in.data()), entry.value.size());
    const std::uint32_t source = cmd.get<FlowContext::flow_source>();
    if (source > FlowEntry::kFromVport || (source != FlowEntry::kAny && table->type != FlowTableType::kFdb))
      return Syndrome::kFlowFeature;
    entry.source = static_cast<FlowEntry::Source>(source);
  } else {
    entry = old->second;
  }
  if ((mask & kModifyAction) != 0) {
    entry.action = static_cast<std::uint16_t>(cmd.get<FlowContext::action>());
    entry.modify = cmd.get<FlowContext::modify_header_id>();
    entry.reformat = cmd.get<FlowContext::packet_reformat_id>();
    if ((entry.action & kFlowAso) != 0) s = read_aso(cmd, entry.aso);
    if (s != Syndrome::kOk) return s;
    entry.push = {read_vlan<FlowContext::push_vlan>(cmd), read_vlan<FlowContext::push_vlan_2>(cmd)};
  }
  if ((mask & kModifyCrypto) != 0) {
    const std::uint32_t crypto = cmd.get<FlowContext::encrypt_decrypt_type>();
    if (crypto > (fw.options().psp() ? CryptoAction::kPsp : CryptoAction::kMacsec))
      return Syndrome::kFlowFeature;
    entry.crypto = {static_cast<CryptoAction::Type>(crypto), cmd.get<FlowContext::encrypt_decrypt_obj_id>()};
  }
  if ((mask & kModifyTag) != 0) entry.tag = cmd.get<FlowContext::flow_tag>();
  if ((mask & kModifyDestinations) != 0) entry.destinations = given.destinations;
  if ((mask & kModifyCounters) != 0) entry.counters = given.counters;
  s = check_action(fw, *table, type, entry);
  if (s == Syndrome::kOk) s = check_owners(fw, cmd, entry);
  if (s != Syndrome::kOk) return s;
  if (fresh) {
    if (o.flows >= 1u << kLogFlows) return Syndrome::kFlowLimit;
    if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
    ++o.flows;
  }
  if (FlowTableObject* object = o.flow_tables.find(table->id)) object->entries[index] = refer_to(fw, entry);
  fw.function().flows().set_entry(*table, index, entry);
  return Syndrome::kOk;
}

Syndrome delete_fte(Firmware& fw, Command& cmd) {
  using in = prm::delete_fte_in;
  Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  FlowTable* table = nullptr;
  s = find_flow_table<in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  const std::uint32_t index = cmd.get<in::flow_index>();
  const auto it = table->entries.find(index);
  if (it == table->entries.end()) return Syndrome::kFlowIndex;
  if (FlowTableObject* object = fw.objects().flow_tables.find(table->id)) object->entries.erase(index);
  fw.function().flows().delete_entry(*table, index);
  --fw.objects().flows;
  fw.pages().release(kIcmFlow);
  return Syndrome::kOk;
}

Syndrome query_fte(Firmware& fw, Command& cmd) {
  using c = prm::query_fte_out::flow_context;
  FlowTable* table = nullptr;
  const Syndrome s = find_flow_table<prm::query_fte_in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  const auto it = table->entries.find(cmd.get<prm::query_fte_in::flow_index>());
  if (it == table->entries.end()) return Syndrome::kFlowIndex;
  const FlowEntry& e = it->second;
  const bool extended = std::any_of(e.destinations.begin(), e.destinations.end(),
                                    [](const FlowDestination& d) { return d.reformat != 0; });
  constexpr std::size_t kList = c::destination::bit_off / 8;
  const std::size_t item = item_bytes(extended);
  if (cmd.out_len < kList + (e.destinations.size() + e.counters.size()) * item) return Syndrome::kOutputShort;
  cmd.put<c::group_id>(e.group);
  cmd.put<c::flow_tag>(e.tag);
  cmd.put<c::flow_source>(e.source);
  cmd.put<c::extended_destination>(extended ? 1 : 0);
  cmd.put<c::action>(e.action);
  cmd.put<c::modify_header_id>(e.modify);
  cmd.put<c::packet_reformat_id>(e.reformat);
  if ((e.action & kFlowAso) != 0) write_aso(cmd, e.aso);
  if ((e.action & kFlowCrypto) != 0) {
    cmd.put<c::encrypt_decrypt_type>(e.crypto.type);
    cmd.put<c::encrypt_decrypt_obj_id>(e.crypto.object);
  }
  write_vlan<c::push_vlan>(cmd, e.push[0]);
  write_vlan<c::push_vlan_2>(cmd, e.push[1]);
  cmd.put<c::destination_list_size>(static_cast<std::uint32_t>(e.destinations.size()));
  cmd.put<c::flow_counter_list_size>(static_cast<std::uint32_t>(e.counters.size()));
  std::memcpy(prm::ptr<c::match_value>(cmd.out.data()), e.value.data(), e.value.size());
  std::uint8_t* p = cmd.out.data() + kList;
  for (const FlowDestination& d : e.destinations) {
    prm::set<prm::dest_format_struct::destination_type>(p, d.type);
    prm::set<prm::dest_format_struct::destination_id>(p, d.id);
    if (d.other && fw.device().eswitch().other() != nullptr) {
      prm::set<prm::dest_format_struct::destination_eswitch_owner_vhca_id_valid>(p, 1);
      prm::set<prm::dest_format_struct::destination_eswitch_owner_vhca_id>(
          p, fw.device().eswitch().other()->owner());
    }
    if (d.reformat != 0) {
      prm::set<prm::dest_format_struct::packet_reformat>(p, 1);
      prm::set<prm::extended_dest_format::packet_reformat_id>(p, d.reformat);
    }
    p += item;
  }
  for (const std::uint32_t id : e.counters) {
    prm::set<prm::flow_counter_list::flow_counter_id>(p, id);
    p += item;
  }
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
