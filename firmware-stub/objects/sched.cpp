// SPDX-License-Identifier: BSD-3-Clause
// SET_PP_RATE_LIMIT; scheduling elements, by their own commands (the driver) and as general objects (user
// contexts).
#include "firmware-stub/objects/sched.h"

#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/general_handlers.h"
#include "prm/qos.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kHierarchyNic = prm::k::SCHEDULING_HIERARCHY_NIC,
                        kHierarchySwitch = prm::k::SCHEDULING_HIERARCHY_E_SWITCH;
constexpr std::uint64_t kSetShare = 1, kSetMaxBw = 2;  // modify_bitmask, modify_field_select
constexpr std::uint32_t kDwrr = 0;

// The tree of vports is its manager's driver's; that of queues is for user contexts too.
bool has_hierarchy(Firmware& fw, const Command& cmd, std::uint32_t hierarchy) {
  return hierarchy == kHierarchyNic ||
         (hierarchy == kHierarchySwitch && fw.options().manages_switch() && cmd.uid == 0);
}

// What the two forms of the commands have in common; C: the scheduling context in the command.
template <class C>
Syndrome check_context(Firmware& fw, const Command& cmd, std::uint32_t hierarchy) {
  if (!has_hierarchy(fw, cmd, hierarchy)) return Syndrome::kSchedHierarchy;
  const std::uint32_t type = cmd.get<typename C::element_type>(),
                      attributes = cmd.get<prm::sched_attributes<C>>();
  const std::uint32_t leaf = hierarchy == kHierarchySwitch ? kElementVport : kElementQueueGroup;
  if (type != kElementTsar && type != leaf) return Syndrome::kSchedType;
  if (type == kElementTsar && (attributes >> 16 & 0xff) != kDwrr) return Syndrome::kSchedType;
  if (type == kElementVport) {
    const std::uint32_t vport = attributes & 0xffff;
    if (vport != 0 && fw.managed(vport) == nullptr) return Syndrome::kFunction;
    if (fw.function().qos().has_vport(static_cast<std::uint16_t>(vport))) return Syndrome::kSchedBusy;
  }
  if (cmd.get<typename C::bw_share>() > kMaxBwShare) return Syndrome::kSchedShare;
  const std::uint32_t parent = cmd.get<typename C::parent_element_id>();
  if (parent == 0) return type == kElementTsar ? Syndrome::kOk : Syndrome::kSchedParent;
  SchedObject* above = fw.objects().sched_elements.find(parent);
  if (above == nullptr || above->type() != kElementTsar || above->hierarchy != hierarchy)
    return Syndrome::kSchedParent;
  if (!UserContexts::may_use(cmd.uid, fw.objects().users.owner_general(prm::kGeneralSchedElement, parent)))
    return Syndrome::kNotOwner;
  return fw.function().qos().depth(parent) < Qos::kMaxDepth ? Syndrome::kOk : Syndrome::kSchedParent;
}

SchedObject* element(Firmware& fw, std::uint32_t hierarchy, std::uint32_t id) {
  SchedObject* e = fw.objects().sched_elements.find(id);
  return e != nullptr && e->hierarchy == hierarchy ? e : nullptr;
}

void apply(Firmware& fw, const Command& cmd, std::uint32_t id, const SchedObject& e) {
  fw.function().qos().set_share(id, prm::get<prm::scheduling_context::bw_share>(e.context.data()));
  fw.function().qos().set_rate(id, prm::get<prm::scheduling_context::max_average_bw>(e.context.data()));
  fw.device().scheduler().resume(cmd.now);  // who waits for the old rate asks again
}

template <class C>
Syndrome create(Firmware& fw, Command& cmd, std::uint32_t hierarchy, std::uint32_t& id) {
  const Syndrome s = check_context<C>(fw, cmd, hierarchy);
  if (s != Syndrome::kOk) return s;
  Objects& o = fw.objects();
  SchedObject* e = o.sched_elements.create(id);
  if (e == nullptr) return Syndrome::kSchedLimit;
  std::memcpy(e->context.data(), prm::ptr<C>(cmd.in.data()), e->context.size());
  e->hierarchy = static_cast<std::uint8_t>(hierarchy);
  e->parent_ref = Ref(o.sched_elements.find(e->parent()));
  fw.function().qos().create_element(id, e->parent());
  if (e->type() == kElementVport) fw.function().qos().set_vport(e->vport(), id);
  fw.device().scheduler().recount_line();
  apply(fw, cmd, id, *e);
  return Syndrome::kOk;
}

template <class C>
Syndrome modify(Firmware& fw, const Command& cmd, std::uint32_t hierarchy, std::uint32_t id,
                std::uint64_t select) {
  if (!has_hierarchy(fw, cmd, hierarchy)) return Syndrome::kSchedHierarchy;
  SchedObject* e = element(fw, hierarchy, id);
  if (e == nullptr) return Syndrome::kSchedNumber;
  if ((select & ~(kSetShare | kSetMaxBw)) != 0) return Syndrome::kModifyMask;
  if ((select & kSetShare) != 0 && cmd.get<typename C::bw_share>() > kMaxBwShare)
    return Syndrome::kSchedShare;
  using own = prm::scheduling_context;
  if ((select & kSetShare) != 0) prm::set<own::bw_share>(e->context.data(), cmd.get<typename C::bw_share>());
  if ((select & kSetMaxBw) != 0)
    prm::set<own::max_average_bw>(e->context.data(), cmd.get<typename C::max_average_bw>());
  apply(fw, cmd, id, *e);
  return Syndrome::kOk;
}

Syndrome destroy(Firmware& fw, const Command& cmd, std::uint32_t hierarchy, std::uint32_t id) {
  if (!has_hierarchy(fw, cmd, hierarchy)) return Syndrome::kSchedHierarchy;
  Objects& o = fw.objects();
  const SchedObject* e = element(fw, hierarchy, id);
  if (e == nullptr) return Syndrome::kSchedNumber;
  if (e->referred()) return Syndrome::kSchedBusy;
  if (e->type() == kElementVport) fw.function().qos().set_vport(e->vport(), 0);
  fw.function().qos().destroy_element(id);
  fw.device().scheduler().recount_line();
  o.sched_elements.destroy(id);
  return Syndrome::kOk;
}

using Header = prm::general_obj_in_cmd_hdr;
using Object = prm::sched_elem;

}  // namespace

// ---- The driver's commands ----

Syndrome create_scheduling_element(Firmware& fw, Command& cmd) {
  using in = prm::create_scheduling_element_in;
  std::uint32_t id = 0;
  const Syndrome s = create<in::scheduling_context>(fw, cmd, cmd.get<in::scheduling_hierarchy>(), id);
  if (s != Syndrome::kOk) return s;
  cmd.put<prm::create_scheduling_element_out::scheduling_element_id>(id);
  fw.trace_create(ObjType::kSchedElement, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_scheduling_element(Firmware& fw, Command& cmd) {
  using in = prm::modify_scheduling_element_in;
  return modify<in::scheduling_context>(fw, cmd, cmd.get<in::scheduling_hierarchy>(),
                                        cmd.get<in::scheduling_element_id>(), cmd.get<in::modify_bitmask>());
}

Syndrome query_scheduling_element(Firmware& fw, Command& cmd) {
  using in = prm::query_scheduling_element_in;
  using out = prm::query_scheduling_element_out;
  const std::uint32_t hierarchy = cmd.get<in::scheduling_hierarchy>();
  if (!has_hierarchy(fw, cmd, hierarchy)) return Syndrome::kSchedHierarchy;
  const SchedObject* e = element(fw, hierarchy, cmd.get<in::scheduling_element_id>());
  if (e == nullptr) return Syndrome::kSchedNumber;
  std::memcpy(prm::ptr<out::scheduling_context>(cmd.out.data()), e->context.data(), e->context.size());
  return Syndrome::kOk;
}

Syndrome destroy_scheduling_element(Firmware& fw, Command& cmd) {
  using in = prm::destroy_scheduling_element_in;
  const std::uint32_t id = cmd.get<in::scheduling_element_id>();
  const Syndrome s = destroy(fw, cmd, cmd.get<in::scheduling_hierarchy>(), id);
  if (s == Syndrome::kOk) fw.trace_destroy(ObjType::kSchedElement, id, cmd.uid);
  return s;
}

// ---- As general objects ----

Syndrome create_sched_object(Firmware& fw, Command& cmd) {
  std::uint32_t id = 0;
  const std::uint32_t hierarchy = cmd.get<Object::scheduling_hierarchy>();
  if (hierarchy != kHierarchyNic) return Syndrome::kSchedHierarchy;
  const Syndrome s = create<Object::sched_context>(fw, cmd, hierarchy, id);
  if (s == Syndrome::kOk) cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return s;
}

Syndrome modify_sched_object(Firmware& fw, Command& cmd) {
  const std::uint32_t hierarchy = cmd.get<Object::scheduling_hierarchy>();
  if (hierarchy != kHierarchyNic) return Syndrome::kSchedHierarchy;
  return modify<Object::sched_context>(fw, cmd, hierarchy, cmd.get<Header::obj_id>(),
                                       cmd.get<Object::modify_field_select>());
}

Syndrome query_sched_object(Firmware& fw, Command& cmd) {
  const SchedObject* e = element(fw, kHierarchyNic, cmd.get<Header::obj_id>());
  if (e == nullptr) return Syndrome::kSchedNumber;
  cmd.put<Object::scheduling_hierarchy>(kHierarchyNic);
  std::memcpy(prm::ptr<Object::sched_context>(cmd.out.data()), e->context.data(), e->context.size());
  return Syndrome::kOk;
}

Syndrome destroy_sched_object(Firmware& fw, Command& cmd) {
  return destroy(fw, cmd, kHierarchyNic, cmd.get<Header::obj_id>());
}

// ---- Rate limiters ----

// Rate 0 takes the limiter away.
Syndrome set_pp_rate_limit(Firmware& fw, Command& cmd) {
  using in = prm::set_pp_rate_limit_in;
  const std::uint32_t index = cmd.get<in::rate_limit_index>(), rate = cmd.get<in::ctx::rate_limit>();
  if (index == 0 || index >= Qos::kPaces) return Syndrome::kPaceIndex;
  if (rate > kMaxPace) return Syndrome::kPaceRate;
  Objects& o = fw.objects();
  // The driver says whose it is by the command's uid, and takes it away by the same.
  if (fw.function().qos().has_pace(static_cast<std::uint16_t>(index)) &&
      !UserContexts::may_change(cmd.uid, o.users.owner(ObjType::kPace, index)))
    return Syndrome::kNotOwner;
  o.users.disown(ObjType::kPace, index);
  if (rate != 0) o.users.own(ObjType::kPace, index, cmd.uid);
  fw.function().qos().set_pace(static_cast<std::uint16_t>(index), rate,
                               cmd.get<in::ctx::burst_upper_bound>());
  fw.device().scheduler().resume(cmd.now);
  return Syndrome::kOk;
}

Syndrome check_pace(Firmware& fw, const Command& cmd, std::uint32_t index) {
  if (index == 0) return Syndrome::kOk;
  if (!fw.function().qos().has_pace(static_cast<std::uint16_t>(index))) return Syndrome::kPaceIndex;
  return UserContexts::may_use(cmd.uid, fw.objects().users.owner(ObjType::kPace, index))
             ? Syndrome::kOk
             : Syndrome::kNotOwner;
}

// ---- Queues ----

Syndrome check_queue_group(Firmware& fw, const Command& cmd, std::uint32_t group) {
  if (group == 0) return Syndrome::kOk;
  const SchedObject* e = fw.objects().sched_elements.find(group);
  if (e == nullptr || e->type() != kElementQueueGroup) return Syndrome::kSchedNumber;
  const UserContexts& users = fw.objects().users;
  return UserContexts::may_use(cmd.uid, users.owner_general(prm::kGeneralSchedElement, group))
             ? Syndrome::kOk
             : Syndrome::kNotOwner;
}

void set_queue_groups(Firmware& fw, ObjType type, std::uint32_t number, std::uint32_t requester,
                      std::uint32_t responder) {
  Objects& o = fw.objects();
  std::array<Ref<SchedObject>, 2>& groups = o.sched_users[std::make_pair(type, number)];
  groups[0] = Ref(o.sched_elements.find(requester));
  groups[1] = Ref(o.sched_elements.find(responder));
  if (Qp* qp = fw.function().qps().find(number)) {
    qp->qos.group = requester;
    qp->qos.responder_group = responder;
    fw.device().scheduler().resume(sim_now());
  }
}

void release_queue_groups(Firmware& fw, ObjType type, std::uint32_t number) {
  fw.objects().sched_users.erase(std::make_pair(type, number));
}

}  // namespace hcasim::fw
