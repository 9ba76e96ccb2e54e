// SPDX-License-Identifier: BSD-3-Clause
// What a user context may do: a command that is only the driver's is refused (BAD_OP), one that names
// somebody else's object too (BAD_RES).
#include "firmware-stub/objects/access.h"

#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general.h"
#include "model/steer/flow.h"
#include "prm/user_commands.h"

namespace hcasim::fw {

namespace {

bool may_use(Firmware& fw, const Command& cmd, ObjType type, std::uint32_t number) {
  return UserContexts::may_use(cmd.uid, fw.objects().users.owner(type, number)) || number == 0;
}

// ---- When a field of a context means what it says ----

template <class F, std::uint32_t Value>
bool equals(const Command& cmd) {
  return cmd.get<F>() == Value;
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

}  // namespace

// A table that parts the ports of a LAG is of the port, not of one of its users.
Syndrome check_create_flow_table(Firmware&, const Command& cmd) {
  return cmd.op_mod == 0 ? Syndrome::kOk : Syndrome::kNotForUsers;
}

// All counters of a run.
Syndrome check_query_flow_counter(Firmware& fw, const Command& cmd) {
  using in = prm::query_flow_counter_in;
  const std::uint32_t first = cmd.get<in::flow_counter_id>();
  const std::uint32_t n =
      std::clamp<std::uint32_t>(cmd.get<in::num_of_counters>(), 1, 1u << kLogFlowCounterBulk);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (fw.function().flows().counter(first + i) == nullptr) continue;
    const std::uint32_t allocated = fw.objects().allocated_counter(first + i);
    if (!UserContexts::may_change(cmd.uid, fw.objects().users.owner(ObjType::kFlowCounter, allocated)))
      return Syndrome::kNotOwner;
  }
  const bool to_memory = cmd.get<prm::query_flow_counter_dump_to_memory>() != 0;
  const std::uint32_t mkey = cmd.get<prm::query_flow_counter_mkey>() >> 8;  // behind it: the key's variant
  return to_memory && !may_use(fw, cmd, ObjType::kMkey, mkey) ? Syndrome::kNotOwner : Syndrome::kOk;
}

Syndrome check_create_rqt(Firmware& fw, const Command& cmd) {
  return check_rqt<prm::create_rqt_in::rqt_context>(fw, cmd);
}
Syndrome check_modify_rqt(Firmware& fw, const Command& cmd) {
  return check_rqt<prm::modify_rqt_in::ctx>(fw, cmd);
}

// ---- Contexts that name many objects ----

// The UAR page may be anybody's: a user who names one that is not his only lets others ring his doorbell.
// Without a receive queue cqn_rcv and the SRQ's number are placeholders.
std::vector<Named> named_by_create_qp() {
  using C = prm::create_qp_in::qpc;
  constexpr std::uint32_t kOwn = 0, kSrq = 1;  // rq_type
  return {use<C::pd>(ObjType::kPd), use<C::cqn_snd>(ObjType::kCq),
          use<C::cqn_rcv>(ObjType::kCq, equals<C::rq_type, kOwn>),
          use<C::cqn_rcv>(ObjType::kCq, equals<C::rq_type, kSrq>),
          use<C::srqn_rmpn_xrqn>(ObjType::kRmp, takes_from_srq)};
}

std::vector<Named> named_by_create_dct() {
  using C = prm::create_dct_in::dct_context_entry;
  return {use<C::pd>(ObjType::kPd), use<C::cqn>(ObjType::kCq), use<C::srqn_xrqn>(ObjType::kRmp),
          use<C::counter_set_id>(ObjType::kQCounter)};
}

std::vector<Named> named_by_create_xrc_srq() {
  using C = prm::create_xrc_srq_in::xrc_srq_context_entry;
  return {use<C::pd>(ObjType::kPd), use<C::xrcd>(ObjType::kXrcd), use<C::cqn>(ObjType::kCq)};
}

std::vector<Named> named_by_create_sq() {
  using C = prm::create_sq_in::ctx;
  return {use<C::wq::pd>(ObjType::kPd), use<C::cqn>(ObjType::kCq), use<C::ts_cqe_to_dest_cqn>(ObjType::kCq),
          use<C::tis_num_0>(ObjType::kTis, leads_to_tis)};
}
std::vector<Named> named_by_create_tis() {
  using C = prm::create_tis_in::ctx;
  return {use<C::transport_domain>(ObjType::kTransportDomain),
          use<C::pd>(ObjType::kPd, equals<C::tls_en, 1>)};
}

bool leads_to_tis(const Command& cmd) { return cmd.get<prm::create_sq_in::ctx::tis_lst_sz>() != 0; }

std::vector<Named> named_by_create_rq() {
  using C = prm::create_rq_in::ctx;
  constexpr std::uint32_t kRmp = 1;  // mem_rq_type
  return {use<C::wq::pd>(ObjType::kPd), use<C::cqn>(ObjType::kCq), use<C::counter_set_id>(ObjType::kQCounter),
          use<C::rmpn>(ObjType::kRmp, equals<C::mem_rq_type, kRmp>)};
}

std::vector<Named> named_by_create_tir() {
  using C = prm::create_tir_in::ctx;
  constexpr std::uint32_t kDirect = 0, kIndirect = 1;  // disp_type
  return {use<C::transport_domain>(ObjType::kTransportDomain),
          use<C::inline_rqn>(ObjType::kRq, equals<C::disp_type, kDirect>),
          use<C::indirect_table>(ObjType::kRqt, equals<C::disp_type, kIndirect>)};
}

namespace {
constexpr std::uint32_t kMissForward = 1;  // table_miss_action
}

std::vector<Named> named_by_create_flow_table() {
  using C = prm::create_flow_table_in::flow_table_context;
  return {use<C::table_miss_id>(ObjType::kFlowTable, equals<C::table_miss_action, kMissForward>)};
}

std::vector<Named> named_by_modify_flow_table() {
  using In = prm::modify_flow_table_in;
  using C = In::flow_table_context;
  return {own<In::table_id>(ObjType::kFlowTable),
          use<C::table_miss_id>(ObjType::kFlowTable, equals<C::table_miss_action, kMissForward>)};
}

// ---- The check ----

Syndrome check_access(Firmware& fw, const Command& cmd, const Users& rule) {
  UserContexts& contexts = fw.objects().users;
  const UctxObject* uctx = contexts.table.find(cmd.uid);
  if (uctx == nullptr) return Syndrome::kUid;
  if (!rule.contexts()) return Syndrome::kNotForUsers;
  const Right& right = rule.right();
  if ((uctx->cap & right.cap) != right.cap && (right.applies == nullptr || right.applies(cmd)))
    return Syndrome::kUctxCap;
  for (const Named& n : rule.named()) {
    if (n.applies != nullptr && !n.applies(cmd)) continue;
    const std::uint32_t number = n.number(cmd);
    const std::uint16_t owner = contexts.owner(n.type, number);
    if (number == 0) continue;
    if (n.use ? !UserContexts::may_use(cmd.uid, owner) : !UserContexts::may_change(cmd.uid, owner))
      return Syndrome::kNotOwner;
  }
  return rule.check() != nullptr ? rule.check()(fw, cmd) : Syndrome::kOk;
}

}  // namespace hcasim::fw
