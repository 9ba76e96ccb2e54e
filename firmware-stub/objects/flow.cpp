// SPDX-License-Identifier: BSD-3-Clause
// Flow steering: tables and groups, installed into the model's match engine.
#include <cstring>

#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/flow.h"
#include "firmware-stub/objects/flow_types.h"
#include "firmware-stub/objects/qp_context.h"
#include "model/steer/flow_match.h"

namespace hcasim::fw {

namespace {

// flow_table_context.table_miss_action
enum : std::uint32_t { kMissDefault = 0, kMissForward = 1, kMissToNic = 2 };
enum : std::uint16_t { kConnectRoot = 0, kDisconnectRoot = 1 };  // op_mod of SET_FLOW_TABLE_ROOT
// modify_flow_table_in.modify_field_select
enum : std::uint32_t { kSelectMissTable = 1, kSelectLagNextTable = 1u << 15 };
enum : std::uint16_t { kNormal = 0, kLagDemux = 1 };  // op_mod of CREATE_FLOW_TABLE
constexpr std::uint32_t kCriteria = 0x5f;             // outer, misc, inner, misc 2, misc 3, misc 5

struct Miss {
  bool to_table = false, to_nic = false;
  std::uint32_t id = 0;
};

// The miss action of context C of the command, for a table of that type and level.
template <class C>
Syndrome read_miss(Firmware& fw, const Command& cmd, const FlowTypeCaps& type, std::uint8_t level,
                   Miss& miss) {
  const std::uint32_t action = cmd.get<typename C::table_miss_action>();
  if (action > kMissToNic || (action == kMissToNic && !type.miss_to_nic)) return Syndrome::kFlowMiss;
  miss.to_table = action == kMissForward;
  miss.to_nic = action == kMissToNic;
  miss.id = miss.to_table ? cmd.get<typename C::table_miss_id>() : 0;
  return miss.to_table ? check_next_table(fw, miss.id, type.type, level) : Syndrome::kOk;
}

// Of a table that parts the ports of a LAG: where the master's own frames go on; 0: nowhere.
template <class C>
Syndrome read_lag_next(Firmware& fw, const Command& cmd, std::uint8_t level, Miss& miss) {
  miss.id = cmd.get<typename C::lag_master_next_table_id>();
  miss.to_table = miss.id != 0;
  return miss.to_table ? check_next_table(fw, miss.id, FlowTableType::kNicRx, level) : Syndrome::kOk;
}

void set_miss(Firmware& fw, FlowTable& table, const Miss& miss) {
  auto& tables = fw.objects().flow_tables;
  if (FlowTableObject* object = tables.find(table.id))
    object->miss = Ref(miss.to_table ? tables.find(miss.id) : nullptr);
  table.miss_to_table = miss.to_table;
  table.miss_to_nic = miss.to_nic;
  table.miss_table = miss.id;
}

// The group's mask names only what the match engine reads of a frame there: which vport it came from is known
// in the E-Switch, and to its manager, and of which switch, though there be one. SecTAGs are for boards that
// know MACsec.
bool mask_known(const Options& options, const FlowGroup& group, FlowTableType type) {
  MatchParam known = matchable();
  const bool knows = type == FlowTableType::kFdb || of_vport(type) || options.manages_switch();
  using misc = prm::fte_match_set_misc;
  if (!knows) {
    prm::set<misc::source_port>(known.data() + kMatchBlock, 0);
    prm::set<misc::source_eswitch_owner_vhca_id>(known.data() + kMatchBlock, 0);
  }
  constexpr std::size_t kSecTag = prm::fte_match_param::misc_parameters_5::macsec_tag_0::bit_off / 8,
                        kBytes = 16;
  if (!options.encrypts()) std::memset(known.data() + kSecTag, 0, kBytes);
  for (std::size_t i = 0; i < group.mask.size(); ++i)
    if (group.criteria >> (i / kMatchBlock) & 1 && (group.mask[i] & ~known[i]) != 0) return false;
  return true;
}

}  // namespace

Syndrome check_next_table(Firmware& fw, std::uint32_t id, FlowTableType type, std::uint8_t level,
                          bool ignore_level) {
  const FlowTable* next = fw.function().flows().find_table(id);
  if (next == nullptr || next->type != type) return Syndrome::kFlowTableNumber;
  return ignore_level || next->level > level ? Syndrome::kOk : Syndrome::kFlowLevel;
}

// ---- Tables ----

namespace {
// Types whose entries software may write itself.
bool has_software_tables(FlowTableType type) {
  return type == FlowTableType::kNicRx || type == FlowTableType::kNicTx || type == FlowTableType::kFdb;
}
}  // namespace

Syndrome create_flow_table(Firmware& fw, Command& cmd) {
  using in = prm::create_flow_table_in;
  using c = in::flow_table_context;
  Objects& o = fw.objects();
  Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  const bool demux = cmd.op_mod == kLagDemux && fw.caps().get<prm::cmd_hca_cap::lag_master>() != 0;
  if (cmd.op_mod != kNormal && !demux) return Syndrome::kOpMod;
  const FlowTypeCaps* type = flow_type(fw.options(), cmd.get<in::table_type>());
  if (type == nullptr) return Syndrome::kFlowTableType;
  if (demux && type->type != FlowTableType::kNicRx) return Syndrome::kFlowTableType;
  const bool reformats = cmd.get<c::reformat_en>() != 0, decaps = cmd.get<c::decap_en>() != 0;
  if ((reformats && (type->actions & kFlowReformat) == 0) || (decaps && (type->actions & kFlowDecap) == 0) ||
      (cmd.get<c::termination_table>() != 0 && type->type != FlowTableType::kNicRx &&
       type->type != FlowTableType::kFdb))
    return Syndrome::kFlowFeature;
  const bool sw_owner = cmd.get<c::sw_owner>() != 0;
  const bool two_switches = type->type == FlowTableType::kFdb && fw.options().ports != 1;
  if (sw_owner &&
      (!fw.options().generation->sw_steering() || !has_software_tables(type->type) || two_switches))
    return Syndrome::kFlowFeature;
  const std::uint32_t level = cmd.get<c::level>();
  if (cmd.get<c::log_size>() > kLogFlowTableSize) return Syndrome::kFlowTableSize;
  Miss miss;
  s = demux ? read_lag_next<c>(fw, cmd, static_cast<std::uint8_t>(level), miss)
            : read_miss<c>(fw, cmd, *type, static_cast<std::uint8_t>(level), miss);
  if (s != Syndrome::kOk) return s;
  if (o.flow_tables.full()) return Syndrome::kFlowTableLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  o.flow_tables.create(id);
  FlowTable* table = fw.function().flows().create_table(id, type->type);
  if (table == nullptr) {
    o.flow_tables.destroy(id);
    fw.pages().release(kIcmFlow);
    return Syndrome::kFlowTableLimit;
  }
  table->vport =
      of_vport(type->type) ? static_cast<std::uint16_t>(cmd.get<in::vport_number>()) : std::uint16_t{0};
  table->level = static_cast<std::uint8_t>(level);
  table->log_size = cmd.get<c::log_size>();
  table->reformats = reformats;
  table->decaps = decaps;
  table->sw_owner = sw_owner;
  table->terminates = cmd.get<c::termination_table>() != 0;
  table->parts_ports = demux;
  // Tables of one direction have one root.
  if (sw_owner) table->sw_root.fill(cmd.get<c::sws::sw_owner_icm_root_0>());
  if (sw_owner && type->type == FlowTableType::kFdb)
    table->sw_root[1] = cmd.get<c::sws::sw_owner_icm_root_1>();
  set_miss(fw, *table, miss);
  using out = prm::create_flow_table_out;
  cmd.put<out::table_id>(id);
  if (type->type == FlowTableType::kFdb && fw.options().generation->sw_steering() && !sw_owner) {
    // Where tables of software find it.
    const std::uint64_t address = icm_address({IcmTarget::kTable, id});
    cmd.put<out::icm_address_31_0>(address & 0xffffffff);
    cmd.put<out::icm_address_39_32>(address >> 32 & 0xff);
    cmd.put<out::icm_address_63_40>(address >> 40);
  }
  fw.trace_create(ObjType::kFlowTable, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_flow_table(Firmware& fw, Command& cmd) {
  using in = prm::modify_flow_table_in;
  Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  FlowTable* table = nullptr;
  s = find_flow_table<in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  if (cmd.get<in::modify_field_select>() != (table->parts_ports ? kSelectLagNextTable : kSelectMissTable))
    return Syndrome::kModifyMask;
  Miss miss;
  const FlowTypeCaps& type = *flow_type(fw.options(), static_cast<std::uint32_t>(table->type));
  s = table->parts_ports ? read_lag_next<in::flow_table_context>(fw, cmd, table->level, miss)
                         : read_miss<in::flow_table_context>(fw, cmd, type, table->level, miss);
  if (s != Syndrome::kOk) return s;
  set_miss(fw, *table, miss);
  return Syndrome::kOk;
}

// A root may be destroyed: there is none then.
Syndrome destroy_flow_table(Firmware& fw, Command& cmd) {
  using in = prm::destroy_flow_table_in;
  Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  FlowTable* table = nullptr;
  s = find_flow_table<in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  const std::uint32_t id = table->id;
  const FlowTableObject* object = fw.objects().flow_tables.find(id);
  if (object == nullptr || object->referred() || !table->groups.empty()) return Syndrome::kFlowTableBusy;
  if (selects_in_lag(fw, id)) return Syndrome::kLagTables;
  set_miss(fw, *table, {});
  if (table->type == FlowTableType::kFdb) fw.device().eswitch().forget(id);
  if (fw.function().flows().root(table->type, table->vport) == id)
    fw.function().flows().set_root(table->type, 0, table->vport);
  if (fw.options().offloads_ipoib())
    fw.function().qps().for_each_qp([id](Qp& qp) {
      if (qp.frame_table == id) qp.frame_table = 0;
    });
  fw.function().flows().destroy_table(id);
  fw.objects().flow_tables.destroy(id);
  fw.pages().release(kIcmFlow);
  fw.trace_destroy(ObjType::kFlowTable, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_flow_table(Firmware& fw, Command& cmd) {
  using c = prm::query_flow_table_out::flow_table_context;
  FlowTable* table = nullptr;
  const Syndrome s = find_flow_table<prm::query_flow_table_in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  cmd.put<c::sw_owner>(table->sw_owner ? 1 : 0);
  cmd.put<c::sws::sw_owner_icm_root_0>(table->sw_owner ? table->sw_root[0]
                                                       : icm_address({IcmTarget::kTable, table->id}));
  if (table->type == FlowTableType::kFdb)
    cmd.put<c::sws::sw_owner_icm_root_1>(table->sw_owner ? table->sw_root[1]
                                                         : icm_address({IcmTarget::kTable, table->id}));
  cmd.put<c::level>(table->level);
  cmd.put<c::log_size>(table->log_size);
  cmd.put<c::reformat_en>(table->reformats);
  cmd.put<c::decap_en>(table->decaps);
  cmd.put<c::termination_table>(table->terminates);
  cmd.put<c::table_miss_action>(table->miss_to_table && !table->parts_ports ? kMissForward
                                : table->miss_to_nic                        ? kMissToNic
                                                                            : kMissDefault);
  cmd.put<c::table_miss_id>(table->parts_ports ? 0 : table->miss_table);
  cmd.put<c::lag_master_next_table_id>(table->parts_ports ? table->miss_table : 0);
  return Syndrome::kOk;
}

namespace {
// IPoIB: where what comes for that UD QP begins.
Syndrome set_root_of_qp(Firmware& fw, const Command& cmd, std::uint32_t qpn, std::uint32_t table) {
  if (cmd.op_mod != kConnectRoot && cmd.op_mod != kDisconnectRoot) return Syndrome::kOpMod;
  Qp* qp = frame_carrier(fw.function().qps(), qpn);
  if (qp == nullptr) return Syndrome::kQpNumber;
  const bool connects = cmd.op_mod == kConnectRoot;
  if (connects && fw.function().flows().find_table(table) == nullptr) return Syndrome::kFlowTableNumber;
  qp->frame_table = connects ? table : 0;
  return Syndrome::kOk;
}
}  // namespace

Syndrome set_flow_table_root(Firmware& fw, Command& cmd) {
  using in = prm::set_flow_table_root_in;
  const Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  const std::uint32_t type = cmd.get<in::table_type>();
  if (flow_type(fw.options(), type) == nullptr) return Syndrome::kFlowTableType;
  if (cmd.get<in::table_of_other_vport>() != 0) return Syndrome::kFlowFeature;
  const std::uint32_t id = cmd.get<in::table_id>();
  // On InfiniBand each QP has its own, and there is no other.
  const std::uint32_t underlay = cmd.get<in::underlay_qpn>();
  const bool ipoib = fw.caps().get<prm::cmd_hca_cap::ipoib_enhanced_offloads>() != 0;
  if (ipoib != (underlay != 0)) return Syndrome::kFlowFeature;
  if (ipoib) return set_root_of_qp(fw, cmd, underlay, id);
  ESwitch& eswitch = fw.device().eswitch();
  const bool fdb = static_cast<FlowTableType>(type) == FlowTableType::kFdb;
  if (cmd.get<in::table_eswitch_owner_vhca_id_valid>() != 0 &&
      cmd.get<in::table_eswitch_owner_vhca_id>() != fw.options().vhca_id) {
    if (!fdb || !fw.options().shares_fdb() ||
        !is_other_switch(fw, cmd.get<in::table_eswitch_owner_vhca_id>()))
      return Syndrome::kFlowFeature;
    if (cmd.op_mod != kConnectRoot) return Syndrome::kOpMod;
    if (!eswitch.share(id)) return Syndrome::kFlowTableNumber;
    fw.function().flows().set_root(FlowTableType::kFdb, 0);
    return Syndrome::kOk;
  }
  const auto vport = static_cast<std::uint16_t>(
      of_vport(static_cast<FlowTableType>(type)) ? cmd.get<in::vport_number>() : 0);
  if (cmd.op_mod == kDisconnectRoot) {
    if (static_cast<FlowTableType>(type) == FlowTableType::kPortSelection &&
        selects_in_lag(fw, fw.function().flows().root(FlowTableType::kPortSelection)))
      return Syndrome::kLagTables;
    if (fdb) eswitch.unshare();
    fw.function().flows().set_root(static_cast<FlowTableType>(type), 0, vport);
    return Syndrome::kOk;
  }
  if (cmd.op_mod != kConnectRoot) return Syndrome::kOpMod;
  if (id == 0 || !fw.function().flows().set_root(static_cast<FlowTableType>(type), id, vport))
    return Syndrome::kFlowTableNumber;
  if (fdb) eswitch.unshare();
  return Syndrome::kOk;
}

// ---- Groups ----

namespace {
// A group that spreads frames over its entries, by what a definer says.
Syndrome read_split(Firmware& fw, const Command& cmd, const FlowTable& table, FlowGroup& group,
                    MatchDefinerObject*& definer) {
  using in = prm::create_flow_group_in;
  const std::uint32_t type = cmd.get<in::group_type>(), id = cmd.get<in::match_definer_id>();
  group.splits = type == prm::k::CREATE_FLOW_GROUP_IN_GROUP_TYPE_HASH_SPLIT;
  if (!group.splits) return type == 0 && id == 0 ? Syndrome::kOk : Syndrome::kFlowFeature;
  if (table.type != FlowTableType::kPortSelection) return Syndrome::kFlowFeature;
  definer = fw.objects().match_definers.find(id);
  if (definer == nullptr) return Syndrome::kMatchDefinerNumber;
  if (!UserContexts::may_use(cmd.uid, fw.objects().users.owner_general(prm::k::OBJ_TYPE_MATCH_DEFINER, id)))
    return Syndrome::kNotOwner;
  group.definer = definer->definer;
  return Syndrome::kOk;
}
}  // namespace

Syndrome create_flow_group(Firmware& fw, Command& cmd) {
  using in = prm::create_flow_group_in;
  Objects& o = fw.objects();
  Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  FlowTable* table = nullptr;
  s = find_flow_table<in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  FlowGroup group;
  MatchDefinerObject* definer = nullptr;
  s = read_split(fw, cmd, *table, group, definer);
  if (s != Syndrome::kOk) return s;
  group.first = cmd.get<in::start_flow_index>();
  group.last = cmd.get<in::end_flow_index>();
  const std::uint32_t criteria = cmd.get<in::match_criteria_enable>();
  if ((criteria & ~kCriteria) != 0) return Syndrome::kFlowCriteria;
  if (group.splits && criteria != 0) return Syndrome::kFlowCriteria;
  group.criteria = static_cast<std::uint8_t>(criteria);
  std::memcpy(group.mask.data(), prm::ptr<in::match_criteria>(cmd.in.data()), group.mask.size());
  if (!mask_known(fw.options(), group, table->type)) return Syndrome::kFlowCriteria;
  if (o.flow_groups.full()) return Syndrome::kFlowGroupLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  o.flow_groups.create(group.id)->definer = Ref(definer);
  if (!fw.function().flows().create_group(*table, group)) {
    o.flow_groups.destroy(group.id);
    fw.pages().release(kIcmFlow);
    return Syndrome::kFlowGroupRange;
  }
  cmd.put<prm::create_flow_group_out::group_id>(group.id);
  fw.trace_create(ObjType::kFlowGroup, group.id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome destroy_flow_group(Firmware& fw, Command& cmd) {
  using in = prm::destroy_flow_group_in;
  Syndrome s = check_flow_target<in>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  FlowTable* table = nullptr;
  s = find_flow_table<in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  const std::uint32_t id = cmd.get<in::group_id>();
  if (table->groups.count(id) == 0) return Syndrome::kFlowGroupNumber;
  if (!fw.function().flows().destroy_group(*table, id)) return Syndrome::kFlowGroupBusy;
  fw.objects().flow_groups.destroy(id);
  fw.pages().release(kIcmFlow);
  fw.trace_destroy(ObjType::kFlowGroup, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_flow_group(Firmware& fw, Command& cmd) {
  using in = prm::query_flow_group_in;
  using out = prm::query_flow_group_out;
  FlowTable* table = nullptr;
  const Syndrome s = find_flow_table<in>(fw, cmd, table);
  if (s != Syndrome::kOk) return s;
  const auto it = table->groups.find(cmd.get<in::group_id>());
  if (it == table->groups.end()) return Syndrome::kFlowGroupNumber;
  const FlowGroup& group = it->second;
  cmd.put<out::start_flow_index>(group.first);
  cmd.put<out::end_flow_index>(group.last);
  cmd.put<out::match_criteria_enable>(group.criteria);
  std::memcpy(prm::ptr<out::match_criteria>(cmd.out.data()), group.mask.data(), group.mask.size());
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
