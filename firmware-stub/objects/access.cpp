// SPDX-License-Identifier: BSD-3-Clause
// What a user context may do: the opcodes that are its business, and for each the objects that its command
// names. A command that is not in the list is refused (BAD_OP), an object of somebody else too (BAD_RES).
#include <unordered_map>
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general.h"
#include "model/steer/flow.h"

namespace hcasim::fw {

namespace {

// An object that the command names. `use`: it is only referred to, a shared one will do.
struct Named {
  ObjType type;
  bool use;
  std::uint32_t (*number)(const Command&);
  bool (*applies)(const Command&) = nullptr;  // null: always
};

struct Rule {
  std::vector<Named> named;
  std::uint32_t uctx_cap = 0;  // what the context must have been made with
  bool (*cap_applies)(const Command&) = nullptr;
  Syndrome (*more)(Firmware&, const Command&) = nullptr;  // what lists name
};

template <class F>
std::uint32_t number_of(const Command& cmd) {
  return static_cast<std::uint32_t>(cmd.get<F>());
}
template <class F>
Named own(ObjType type) {
  return {type, false, number_of<F>};
}
template <class F>
Named use(ObjType type, bool (*applies)(const Command&) = nullptr) {
  return {type, true, number_of<F>, applies};
}
// A number that says "none" by being zero needs no exception: nobody owns it, and no handler takes it.

bool may_use(Firmware& fw, const Command& cmd, ObjType type, std::uint32_t number) {
  return UserContexts::may_use(cmd.uid, fw.objects().users.owner(type, number)) || number == 0;
}

// ---- When a field of a context means what it says ----

template <class F, std::uint32_t Value>
bool equals(const Command& cmd) {
  return cmd.get<F>() == Value;
}
template <class F>
bool not_zero(const Command& cmd) {
  return cmd.get<F>() != 0;
}

// QPs of XRC and DC initiators name an SRQ, of the driver's own, that they never take from.
bool takes_from_srq(const Command& cmd) {
  using C = prm::create_qp_in::qpc;
  const auto st = static_cast<QpType>(cmd.get<C::st>());
  return cmd.get<C::rq_type>() == 1 && st != QpType::kXrc && st != QpType::kDci;
}

// ---- Lists ----

template <class C>
Syndrome check_rqt(Firmware& fw, const Command& cmd) {
  const std::uint32_t n = cmd.get<typename C::rqt_actual_size>();
  for (std::uint32_t i = 0; i < n && prm::fits<typename C::rq_num>(cmd.in_len, i); ++i)
    if (!may_use(fw, cmd, ObjType::kRq,
                 prm::get<prm::rq_num::rq_num>(prm::at<typename C::rq_num>(cmd.in.data(), i))))
      return Syndrome::kNotOwner;
  return Syndrome::kOk;
}

Syndrome check_fte(Firmware& fw, const Command& cmd) {
  using c = prm::set_fte_in::flow_context;
  using d = prm::dest_format_struct;
  constexpr std::size_t kList = c::destination::bit_off / 8, kItem = d::bytes;
  const std::uint64_t destinations = cmd.get<c::destination_list_size>();
  const std::uint64_t counters = cmd.get<c::flow_counter_list_size>();
  if (cmd.in_len < kList) return Syndrome::kOk;
  const std::uint64_t given = (cmd.in_len - kList) / kItem;
  const std::uint32_t action = cmd.get<c::action>();
  if ((action & kFlowModify) != 0 &&
      !may_use(fw, cmd, ObjType::kModifyHeader, cmd.get<c::modify_header_id>()))
    return Syndrome::kNotOwner;
  if ((action & kFlowReformat) != 0 &&
      !may_use(fw, cmd, ObjType::kReformat, cmd.get<c::packet_reformat_id>()))
    return Syndrome::kNotOwner;
  for (std::uint64_t i = 0; i < destinations + counters && i < given; ++i) {
    const std::uint8_t* p = cmd.in.data() + kList + i * kItem;
    bool good = true;
    if (i >= destinations) {
      good = may_use(fw, cmd, ObjType::kFlowCounter,
                     fw.objects().allocated_counter(prm::get<prm::flow_counter_list::flow_counter_id>(p)));
    } else if (prm::get<d::destination_type>(p) == FlowDestination::kTable) {
      good = may_use(fw, cmd, ObjType::kFlowTable, prm::get<d::destination_id>(p));
    } else if (prm::get<d::destination_type>(p) == FlowDestination::kTir) {
      good = may_use(fw, cmd, ObjType::kTir, prm::get<d::destination_id>(p));
    }
    if (!good) return Syndrome::kNotOwner;
  }
  return Syndrome::kOk;
}

Syndrome check_counter_query(Firmware& fw, const Command& cmd) {
  const std::uint32_t id = cmd.get<prm::query_flow_counter_in::flow_counter_id>();
  return UserContexts::may_change(
             cmd.uid, fw.objects().users.owner(ObjType::kFlowCounter, fw.objects().allocated_counter(id)))
             ? Syndrome::kOk
             : Syndrome::kNotOwner;
}

// The rules of all transition commands: they name their QP, and may name a Q counter.
template <class In>
Rule transition() {
  return {{own<typename In::qpn>(ObjType::kQp), use<typename In::qpc::counter_set_id>(ObjType::kQCounter)}};
}

std::unordered_map<std::uint16_t, Rule> make_rules() {
  using T = ObjType;
  namespace op = prm::op;
  using namespace prm;
  constexpr std::uint32_t kRqTypeOwn = 0, kRqTypeSrq = 1;
  constexpr std::uint32_t kTirDirect = 0, kTirIndirect = 1, kMissForward = 1, kMemRmp = 1;
  std::unordered_map<std::uint16_t, Rule> r;
  // Looking at the device
  for (const std::uint16_t free :
       {op::QUERY_HCA_CAP, op::QUERY_ADAPTER, op::QUERY_ISSI, op::NOP, op::QUERY_HCA_VPORT_CONTEXT,
        op::QUERY_HCA_VPORT_GID, op::QUERY_HCA_VPORT_PKEY, op::QUERY_VPORT_COUNTER, op::QUERY_VPORT_STATE,
        op::QUERY_NIC_VPORT_CONTEXT, op::QUERY_ROCE_ADDRESS, op::QUERY_VNIC_ENV, op::QUERY_SPECIAL_CONTEXTS,
        op::QUERY_CONG_STATUS, op::QUERY_CONG_PARAMS, op::QUERY_CONG_STATISTICS})
    r[free];
  // Plain numbers
  r[op::ALLOC_PD];
  r[op::DEALLOC_PD] = {{own<dealloc_pd_in::pd>(T::kPd)}};
  r[op::ALLOC_UAR];
  r[op::DEALLOC_UAR] = {{own<dealloc_uar_in::uar>(T::kUar)}};
  r[op::ALLOC_XRCD];
  r[op::DEALLOC_XRCD] = {{own<dealloc_xrcd_in::xrcd>(T::kXrcd)}};
  r[op::ALLOC_TRANSPORT_DOMAIN];
  r[op::DEALLOC_TRANSPORT_DOMAIN] = {
      {own<dealloc_transport_domain_in::transport_domain>(T::kTransportDomain)}};
  r[op::ALLOC_Q_COUNTER];
  r[op::DEALLOC_Q_COUNTER] = {{own<dealloc_q_counter_in::counter_set_id>(T::kQCounter)}};
  r[op::QUERY_Q_COUNTER] = {{own<query_q_counter_in::counter_set_id>(T::kQCounter)}};
  // UMEMs; that a queue's own is checked where it is read
  r[op::CREATE_UMEM];
  r[op::DESTROY_UMEM] = {{own<destroy_umem_in::umem_id>(T::kUmem)}};
  // Memory keys
  r[op::CREATE_MKEY] = {{use<create_mkey_in::memory_key_mkey_entry::pd>(T::kPd)}};
  r[op::CREATE_PSV] = {{use<create_psv_in::pd>(T::kPd)}};
  r[op::DESTROY_PSV] = {{own<destroy_psv_in::psvn>(T::kPsv)}};
  r[op::DESTROY_MKEY] = {{own<destroy_mkey_in::mkey_index>(T::kMkey)}};
  r[op::QUERY_MKEY] = {{own<query_mkey_in::mkey_index>(T::kMkey)}};
  // CQs. The UAR page may be anybody's: who names one that is not his only lets others ring his doorbell.
  r[op::CREATE_CQ] = {{use<create_cq_in::cq_context::c_eqn_or_apu_element>(T::kEq)}};
  r[op::MODIFY_CQ] = {{own<modify_cq_in::cqn>(T::kCq)}};
  r[op::DESTROY_CQ] = {{own<destroy_cq_in::cqn>(T::kCq)}};
  r[op::QUERY_CQ] = {{own<query_cq_in::cqn>(T::kCq)}};
  // QPs. Without a receive queue cqn_rcv and the SRQ's number are placeholders.
  using Qpc = create_qp_in::qpc;
  r[op::CREATE_QP] = {{use<Qpc::pd>(T::kPd), use<Qpc::cqn_snd>(T::kCq),
                       use<Qpc::cqn_rcv>(T::kCq, equals<Qpc::rq_type, kRqTypeOwn>),
                       use<Qpc::cqn_rcv>(T::kCq, equals<Qpc::rq_type, kRqTypeSrq>),
                       use<Qpc::srqn_rmpn_xrqn>(T::kRmp, takes_from_srq)}};
  r[op::DESTROY_QP] = {{own<destroy_qp_in::qpn>(T::kQp)}};
  r[op::QUERY_QP] = {{own<query_qp_in::qpn>(T::kQp)}};
  r[op::RST2INIT_QP] = transition<rst2init_qp_in>();
  r[op::RST2INIT_QP].named.push_back(use<rst2init_qp_in::qpc::pd>(T::kPd));
  r[op::INIT2INIT_QP] = transition<init2init_qp_in>();
  r[op::INIT2RTR_QP] = transition<init2rtr_qp_in>();
  r[op::RTR2RTS_QP] = transition<rtr2rts_qp_in>();
  r[op::RTS2RTS_QP] = transition<rts2rts_qp_in>();
  r[op::SQERR2RTS_QP] = transition<sqerr2rts_qp_in>();
  r[op::SQD_RTS_QP] = transition<sqd2rts_qp_in>();
  r[kRts2SqdQp] = {{own<qp_2err_in::qpn>(T::kQp)}};
  r[op::_2ERR_QP] = {{own<qp_2err_in::qpn>(T::kQp)}};
  r[op::_2RST_QP] = {{own<qp_2rst_in::qpn>(T::kQp)}};
  // DC targets
  using Dctc = create_dct_in::dct_context_entry;
  r[op::CREATE_DCT] = {{use<Dctc::pd>(T::kPd), use<Dctc::cqn>(T::kCq), use<Dctc::srqn_xrqn>(T::kRmp),
                        use<Dctc::counter_set_id>(T::kQCounter)}};
  r[op::DESTROY_DCT] = {{own<destroy_dct_in::dctn>(T::kDct)}};
  r[op::DRAIN_DCT] = {{own<drain_dct_in::dctn>(T::kDct)}};
  r[op::QUERY_DCT] = {{own<query_dct_in::dctn>(T::kDct)}};
  r[op::ARM_DCT_FOR_KEY_VIOLATION] = {{own<arm_dct_in::dct_number>(T::kDct)}};
  r[op::ATTACH_TO_MCG] = {{own<attach_to_mcg_in::qpn>(T::kQp)}};
  r[op::DETACH_FROM_MCG] = {{own<detach_from_mcg_in::qpn>(T::kQp)}};
  // Shared receive queues
  r[op::CREATE_SRQ] = {{use<create_srq_in::srq_context_entry::pd>(T::kPd)}};
  r[op::DESTROY_SRQ] = {{own<destroy_srq_in::srqn>(T::kRmp)}};
  r[op::QUERY_SRQ] = {{own<query_srq_in::srqn>(T::kRmp)}};
  r[op::ARM_RQ] = {{own<arm_rq_in::srq_number>(T::kRmp)}};
  using XrcSrqc = create_xrc_srq_in::xrc_srq_context_entry;
  r[op::CREATE_XRC_SRQ] = {
      {use<XrcSrqc::pd>(T::kPd), use<XrcSrqc::xrcd>(T::kXrcd), use<XrcSrqc::cqn>(T::kCq)}};
  r[op::DESTROY_XRC_SRQ] = {{own<destroy_xrc_srq_in::xrc_srqn>(T::kRmp)}};
  r[op::QUERY_XRC_SRQ] = {{own<query_xrc_srq_in::xrc_srqn>(T::kRmp)}};
  r[op::ARM_XRC_SRQ] = {{own<arm_xrc_srq_in::xrc_srqn>(T::kRmp)}};
  r[op::CREATE_XRQ] = {
      {use<create_xrq_in::xrq_context::wq::pd>(T::kPd), use<create_xrq_in::xrq_context::cqn>(T::kCq)}};
  r[op::DESTROY_XRQ] = {{own<destroy_xrq_in::xrqn>(T::kRmp)}};
  r[op::QUERY_XRQ] = {{own<query_xrq_in::xrqn>(T::kRmp)}};
  r[op::ARM_XRQ] = {{own<arm_xrq_in::xrqn>(T::kRmp)}};
  r[op::CREATE_RMP] = {{use<create_rmp_in::ctx::wq::pd>(T::kPd)}};
  r[op::MODIFY_RMP] = {{own<modify_rmp_in::rmpn>(T::kRmp)}};
  r[op::DESTROY_RMP] = {{own<destroy_rmp_in::rmpn>(T::kRmp)}};
  r[op::QUERY_RMP] = {{own<query_rmp_in::rmpn>(T::kRmp)}};
  // Queues of the Ethernet link. An SQ that leads to a TIS sends frames of the user's making.
  using Sqc = create_sq_in::ctx;
  r[op::CREATE_SQ] = {{use<Sqc::wq::pd>(T::kPd), use<Sqc::cqn>(T::kCq),
                       use<Sqc::tis_num_0>(T::kTis, not_zero<Sqc::tis_lst_sz>)},
                      kUctxRawTx,
                      not_zero<Sqc::tis_lst_sz>};
  r[op::MODIFY_SQ] = {{own<modify_sq_in::sqn>(T::kQp)}};
  r[op::DESTROY_SQ] = {{own<destroy_sq_in::sqn>(T::kQp)}};
  r[op::QUERY_SQ] = {{own<query_sq_in::sqn>(T::kQp)}};
  using Rqc = create_rq_in::ctx;
  r[op::CREATE_RQ] = {{use<Rqc::wq::pd>(T::kPd), use<Rqc::cqn>(T::kCq),
                       use<Rqc::counter_set_id>(T::kQCounter),
                       use<Rqc::rmpn>(T::kRmp, equals<Rqc::mem_rq_type, kMemRmp>)}};
  r[op::MODIFY_RQ] = {{own<modify_rq_in::rqn>(T::kRq), use<modify_rq_in::ctx::counter_set_id>(T::kQCounter)}};
  r[op::DESTROY_RQ] = {{own<destroy_rq_in::rqn>(T::kRq)}};
  r[op::QUERY_RQ] = {{own<query_rq_in::rqn>(T::kRq)}};
  r[op::CREATE_RQT] = {{}, 0, nullptr, check_rqt<create_rqt_in::rqt_context>};
  r[op::MODIFY_RQT] = {{own<modify_rqt_in::rqtn>(T::kRqt)}, 0, nullptr, check_rqt<modify_rqt_in::ctx>};
  r[op::DESTROY_RQT] = {{own<destroy_rqt_in::rqtn>(T::kRqt)}};
  r[op::QUERY_RQT] = {{own<query_rqt_in::rqtn>(T::kRqt)}};
  r[op::CREATE_TIS] = {{use<create_tis_in::ctx::transport_domain>(T::kTransportDomain)}};
  r[op::MODIFY_TIS] = {{own<modify_tis_in::tisn>(T::kTis)}};
  r[op::DESTROY_TIS] = {{own<destroy_tis_in::tisn>(T::kTis)}};
  r[op::QUERY_TIS] = {{own<query_tis_in::tisn>(T::kTis)}};
  using Tirc = create_tir_in::ctx;
  r[op::CREATE_TIR] = {{use<Tirc::transport_domain>(T::kTransportDomain),
                        use<Tirc::inline_rqn>(T::kRq, equals<Tirc::disp_type, kTirDirect>),
                        use<Tirc::indirect_table>(T::kRqt, equals<Tirc::disp_type, kTirIndirect>)}};
  using ModifyTirc = modify_tir_in::ctx;
  r[op::MODIFY_TIR] = {{own<modify_tir_in::tirn>(T::kTir), use<ModifyTirc::indirect_table>(T::kRqt)}};
  r[op::DESTROY_TIR] = {{own<destroy_tir_in::tirn>(T::kTir)}};
  r[op::QUERY_TIR] = {{own<query_tir_in::tirn>(T::kTir)}};
  // Flow steering
  using Ftc = create_flow_table_in::flow_table_context;
  r[op::CREATE_FLOW_TABLE] = {
      {use<Ftc::table_miss_id>(T::kFlowTable, equals<Ftc::table_miss_action, kMissForward>)}};
  r[op::DESTROY_FLOW_TABLE] = {{own<destroy_flow_table_in::table_id>(T::kFlowTable)}};
  r[op::QUERY_FLOW_TABLE] = {{own<query_flow_table_in::table_id>(T::kFlowTable)}};
  using ModifyFtc = modify_flow_table_in::flow_table_context;
  r[op::MODIFY_FLOW_TABLE] = {
      {own<modify_flow_table_in::table_id>(T::kFlowTable),
       use<ModifyFtc::table_miss_id>(T::kFlowTable, equals<ModifyFtc::table_miss_action, kMissForward>)}};
  r[op::CREATE_FLOW_GROUP] = {{own<create_flow_group_in::table_id>(T::kFlowTable)}};
  r[op::DESTROY_FLOW_GROUP] = {{own<destroy_flow_group_in::table_id>(T::kFlowTable)}};
  r[op::QUERY_FLOW_GROUP] = {{own<query_flow_group_in::table_id>(T::kFlowTable)}};
  r[op::SET_FLOW_TABLE_ENTRY] = {{own<set_fte_in::table_id>(T::kFlowTable)}, 0, nullptr, check_fte};
  r[op::QUERY_FLOW_TABLE_ENTRY] = {{own<query_fte_in::table_id>(T::kFlowTable)}};
  r[op::DELETE_FLOW_TABLE_ENTRY] = {{own<delete_fte_in::table_id>(T::kFlowTable)}};
  r[op::SYNC_STEERING];
  r[op::ALLOC_FLOW_COUNTER];
  r[op::DEALLOC_FLOW_COUNTER] = {{own<dealloc_flow_counter_in::flow_counter_id>(T::kFlowCounter)}};
  r[op::QUERY_FLOW_COUNTER] = {{}, 0, nullptr, check_counter_query};
  r[op::ALLOC_PACKET_REFORMAT_CONTEXT];
  r[op::DEALLOC_PACKET_REFORMAT_CONTEXT] = {
      {own<dealloc_packet_reformat_context_in::packet_reformat_id>(T::kReformat)}};
  r[op::QUERY_PACKET_REFORMAT_CONTEXT] = {
      {own<query_packet_reformat_context_in::packet_reformat_id>(T::kReformat)}};
  r[op::ALLOC_MODIFY_HEADER_CONTEXT];
  r[op::DEALLOC_MODIFY_HEADER_CONTEXT] = {
      {own<dealloc_modify_header_context_in::modify_header_id>(T::kModifyHeader)}};
  // Sent by the driver in a context's name: a limiter that is another's is refused by its handler.
  r[op::SET_PP_RATE_LIMIT];
  // General objects have their own table (general.def).
  for (const std::uint16_t general : {op::CREATE_GENERAL_OBJECT, op::MODIFY_GENERAL_OBJECT,
                                      op::QUERY_GENERAL_OBJECT, op::DESTROY_GENERAL_OBJECT})
    r[general] = {{}, 0, nullptr, check_general_access};
  return r;
}

}  // namespace

Syndrome check_access(Firmware& fw, const Command& cmd) {
  static const std::unordered_map<std::uint16_t, Rule> rules = make_rules();
  UserContexts& users = fw.objects().users;
  const UctxObject* uctx = users.table.find(cmd.uid);
  if (uctx == nullptr) return Syndrome::kUid;
  const auto it = rules.find(cmd.opcode);
  if (it == rules.end()) return Syndrome::kNotForUsers;
  const Rule& rule = it->second;
  if ((uctx->cap & rule.uctx_cap) != rule.uctx_cap && (rule.cap_applies == nullptr || rule.cap_applies(cmd)))
    return Syndrome::kUctxCap;
  for (const Named& n : rule.named) {
    if (n.applies != nullptr && !n.applies(cmd)) continue;
    const std::uint32_t number = n.number(cmd);
    const std::uint16_t owner = users.owner(n.type, number);
    if (number == 0) continue;
    if (n.use ? !UserContexts::may_use(cmd.uid, owner) : !UserContexts::may_change(cmd.uid, owner))
      return Syndrome::kNotOwner;
  }
  return rule.more != nullptr ? rule.more(fw, cmd) : Syndrome::kOk;
}

}  // namespace hcasim::fw
