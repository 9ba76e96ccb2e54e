// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/firmware.h"

#include <new>

#include "model/state/state.h"
#include "prm/init_seg.h"

namespace hcasim::fw {

namespace {

// Until a managed function that is dead starts anew: longer than drivers take to see it (they look each two
// seconds), shorter than they wait (DTOR, full crdump).
constexpr Time kRevival = 5 * kSecond;

}  // namespace

Firmware::Firmware(const sc_core::sc_module_name& name, Device& device, Function& function,
                   const Options& options, const CardParts& card, Siblings& siblings)
    : sc_module(name),
      device_(device),
      function_(function),
      options_(options),
      caps_(options_),
      health_(options_, card.image),
      pages_({function, device.eqs(), device.injector(), device.tracer()},
             device.profile().firmware.boot_pages,
             options_.page_requests ? device.profile().firmware.init_pages : 0,
             [this](Time t, std::int32_t pages) {
               say(t, TraceString::kPagesAsked,
                   {options_.vhca_id, static_cast<std::uint32_t>(pages),
                    static_cast<std::uint32_t>(pages_.given())});
             }),
      objects_(options_),
      port_(card.port),
      gsi_("gsi", *this),
      traps_(card.traps),
      image_(card.image),
      thermal_(card.thermal),
      images_(card.images),
      siblings_(siblings),
      hca_vport_(options_.link, options_.node_guid, options_.mac),
      cmdq_("cmdq", *this),
      icmd_("icmd", *this),
      sync_reset_("sync_reset", *this),
      revival_(
          "revival",
          [this](Time, std::uint8_t&) {
            if (health_.is_fatal()) restart();
          },
          function.health()),
      component_update_(card.image),
      fw_tracer_("fw_tracer", *this),
      enabled_(!options_.vf) {
  function_.vport().vhca_id = options_.vhca_id;
  function_.psp().set_owner(options_.node_guid);
}

Firmware::~Firmware() = default;

Firmware* Firmware::managed(std::uint32_t number) {
  const FunctionId f = manages() && number != 0 ? device_.vport_numbers().function(number) : kNoFunction;
  return f != kNoFunction ? siblings_.find(f) : nullptr;
}

const std::string& Firmware::node_description() const {
  return hca_vport_.description.empty() ? port_.node_description() : hca_vport_.description;
}

void Firmware::set_node_description(std::string text) {
  if (options_.vf) {
    hca_vport_.description = std::move(text);
    return;
  }
  port_.set_node_description(std::move(text));
  traps_.description_changed();
}

void Firmware::set_enabled(bool on) {
  if (options_.vf && !on) {
    caps_.set_vectors(options_.sf ? 0 : options_.msix_vectors);
    caps_.set_roce(true);
    caps_.forget_ipsec();
  }
  if (enabled_ && !on) {
    device_.restart(function_.id());  // comes back through function_reset()
    device_.dma().set_enabled(function_.id(), false);
    // Whoever has it next, another sub-function with its number perhaps, finds nothing counted.
    function_.vport().clear_counters();
    settled_errors_ = errors();
  }
  enabled_ = on;
}

void Firmware::vport_state_changed(PortState before) {
  function_.vport().open = hca_vport_.policy != VportPolicy::kDown;
  const PortState now = hca_vport_.state(device_.port().state());
  if (now == before || state_ != State::kInit) return;
  if (now == PortState::kArmed && before != PortState::kDown) return;  // on the way between the other two
  const std::uint8_t event = now == PortState::kDown     ? prm::kPortDown
                             : now == PortState::kActive ? prm::kPortActive
                                                         : prm::kPortInitialized;
  device_.port_changed(function_.id(), event);
}

Firmware::Errors Firmware::errors() const {
  const CmdQueue::Counters& c = cmdq_.counters();
  return {qp_errors_, c.failed + c.bad_deliveries, c.over_limit};
}

bool Firmware::is_foreign(const std::function<bool(Firmware&)>& of) {
  for (FunctionId f = 0; Firmware* other = siblings_.find(f); ++f)
    if (other != this && of(*other)) return true;
  return false;
}

void Firmware::nic_vport_changed(std::uint32_t what) {
  VportWatch& watch = hca_vport_.watch;
  watch.changed |= what;
  if (!watch.armed || (watch.changed & watch.events) == 0) return;
  watch.armed = false;
  watch.changed = 0;
  device_.eqs().vport_event(sim_now(), manager().function_.id(), function_.vport().number());
}

void Firmware::watch_nic_vport(std::uint32_t what, bool armed) {
  hca_vport_.watch.events = what;
  hca_vport_.watch.armed = armed && what != 0;
  nic_vport_changed(0);  // what has changed meanwhile is told now
}

void Firmware::forget_settled() {
  caps_.set_migratable(options_.migration && !options_.sf);
  hca_vport_.forget();
  function_.vport().open = true;
  function_.vport().vlans = {};
  function_.vport().reg_c_ids = 0;
}

std::uint32_t Firmware::first_enabled() {
  std::uint32_t first = 0;
  for_each_managed([&first](Firmware& managed) {
    if (first == 0 && managed.enabled_ && !managed.options_.sf) first = managed.function_.vport().number();
  });
  return first;
}

// With the physical function all that hangs on it goes: its virtual functions, and what it has settled of
// them.
void Firmware::end_managed() {
  end_sub_functions();
  for_each_managed([](Firmware& managed) {
    managed.hca_vport_.watch = {};  // nobody hears of its end
    managed.set_enabled(false);
    managed.forget_settled();
  });
  function_.vport().vlans = {};
  function_.vport().reg_c_ids = 0;
}

// They are made by the physical function's driver, and none outlives its session.
void Firmware::end_sub_functions() {
  for_each_managed([](Firmware& managed) {
    if (!managed.options_.sf) return;
    managed.sub_function_ = {};  // before its reset, which is nobody's to hear of
    managed.hca_vport_.watch = {};
    managed.set_enabled(false);
    managed.forget_settled();
  });
}

std::uint32_t Firmware::init_seg_read(std::uint32_t offset) {
  switch (offset) {
    case offsetof(prm::InitSeg, cmdq_addr_h):
      return cmdq_.address_high();
    case offsetof(prm::InitSeg, cmdq_addr_l_sz):
      return cmdq_.address_low() | health_.nic_interface() << 8 | CmdQueue::kLogSize << 4 |
             CmdQueue::kLogStride;
    case offsetof(prm::InitSeg, health_counter):
      // Drivers look at it all the time, and so the highest temperature is seen.
      if (function_.physical()) thermal_.celsius(sim_now(), port_bytes());
      return health_.read(offset);
    case offsetof(prm::InitSeg, initializing):
      return health_.read(offset) | (enabled_ ? 0u : prm::InitSeg::kInitializing);
    default:
      return health_.read(offset);
  }
}

void Firmware::init_seg_write(std::uint32_t offset, std::uint32_t value) {
  if (!enabled_) return health_.count_bad_write();  // nobody is there yet
  switch (offset) {
    case offsetof(prm::InitSeg, cmdq_addr_h):
      cmdq_.set_address_high(value);
      break;
    case offsetof(prm::InitSeg, cmdq_addr_l_sz): {
      // A new address (bits 31:12) and what is to become of the interface (10:8); sizes are read-only.
      const std::uint32_t nic = value >> 8 & 7;
      if (nic == prm::kNicSwReset) {
        restart();
        health_.set_nic_interface(prm::kNicDisabled);
      } else if (nic == prm::kNicDisabled) {
        fast_teardown();
      } else {
        if ((value & 0x8ff) != 0)
          tracer().broke_value(traces::Rule::kCmdqAddress, sim_now(), traces::RuleObject::kNone, 0, value);
        cmdq_.set_address_low(value & ~0xfffu);
        health_.set_nic_interface(nic);
        device_.dma().set_enabled(function_.id(), true);
      }
      break;
    }
    case offsetof(prm::InitSeg, cmd_dbell):
      cmdq_.doorbell(value);
      break;
    default:
      health_.count_bad_write();
      tracer().broke_value(traces::Rule::kIsegRegister, sim_now(), traces::RuleObject::kNone, offset, value);
      break;
  }
}

void Firmware::function_reset() {
  say(sim_now(), TraceString::kFunctionReset, {options_.vhca_id});
  end_managed();
  // A driver that had the interface in its hands sees it DISABLED until it writes a queue address again: so
  // it learns that the card has forgotten everything.
  const bool in_use = cmdq_.in_use();
  const bool ill = health_.stalled() || health_.syndrome() != 0;
  reset_state(cmdq_);
  to_power_on();
  StateReset reset;
  list_interface(reset);
  if (ill) trace_health();
  reset_state(migration_);
  if (in_use) health_.set_nic_interface(prm::kNicDisabled);
}

void Firmware::restart() {
  if (function_.physical()) image_.boot(sim_now());
  device_.restart(function_.id());  // comes back through function_reset()
}

std::vector<std::uint64_t> Firmware::core() {
  std::vector<std::uint64_t> list;
  for (const Counter& c : counters()) list.push_back(c.value);
  return list;
}

void Firmware::host_answered() {
  cmdq_.pages_changed();
  icmd_.host_answered();
}

void Firmware::resume() {
  cmdq_.resume();
  icmd_.resume();
}

void Firmware::qp_failed(std::uint32_t qpn) {
  // The state itself is read from the model when it is asked for.
  ++qp_errors_;
  say(sim_now(), TraceString::kQpError, {options_.vhca_id, qpn});
}

bool Firmware::take_mad(Time t, const Packet& packet) { return gsi_.take(t, packet); }

void Firmware::fatal(const char* what) noexcept {
  inject_health(kSyndFwInternal, true);
  (void)what;
}

void Firmware::inject_health(std::uint8_t syndrome, bool reset_requested,
                             std::uint16_t ext_syndrome) noexcept {
  Health::Assert assert{};
  if (syndrome != 0) {
    const CmdQueue::Counters& c = cmdq_.counters();
    assert.var = {
        static_cast<std::uint32_t>(c.commands),     static_cast<std::uint32_t>(c.failed),
        static_cast<std::uint32_t>(pages_.given()), static_cast<std::uint32_t>(pages_.used_pages()),
        static_cast<std::uint32_t>(state_) + 1,     static_cast<std::uint32_t>(sim_now() / from_ns(1000))};
    assert.exit_ptr = offsetof(prm::InitSeg, health);
    assert.callra = offsetof(prm::InitSeg, cmd_dbell);
    assert.ext_syndrome = ext_syndrome;
  }
  health_.fatal(syndrome, reset_requested && syndrome != 0, assert);
  trace_health();
  say(sim_now(), TraceString::kHealth, {options_.vhca_id, syndrome, ext_syndrome, reset_requested ? 1u : 0u});
  // Drivers of managed functions may not reset (mlx5 health.c, lock_sem_sw_reset): they wait for the
  // interface to be disabled by somebody who may.
  if (!options_.vf || !health_.is_fatal()) return;
  try {
    revival_.push(sim_now() + kRevival, 0);
  } catch (const std::bad_alloc&) {  // it stays dead
  }
}

void Firmware::trace_health() const noexcept {
  tracer().record(traces::Point::kHealth, sim_now(), 0, health_.stalled() ? 1 : 0, health_.syndrome());
}

void Firmware::drop_objects() {
  const std::uint32_t changed = nic_vport_.differences(NicVport{});
  manager().gsi_.subnet_admin().forget(function_.vport().gids.at(0));
  device_.drop_objects(function_.id());
  objects_.page_tracks.for_each([this](std::uint32_t, const PageTrackObject& track) {
    device_.dma().watch_pages(track.function, nullptr);
  });
  StateReset reset;
  list_objects(reset);
  pages_.objects_dropped();
  cmdq_.pages_changed();  // what waited for pages finds the function gone
  if (function_.physical()) reset_state(traps_);
  port_.teardown(function_);
  // Its manager keeps what it has made for the function's addresses until it hears that they are gone.
  if (changed != 0) nic_vport_changed(changed);
}

void Firmware::to_power_on() {
  end_sub_functions();
  drop_objects();
  StateReset reset;
  list_session(reset);
  function_.qps().atomic_host_endian = caps_.atomic_host_endian();
  if (function_.physical()) device_.cc().reset();
  if (options_.sf) sub_function_left();
}

// nic_interface = DISABLED: the driver is about to take its memory back without asking command by command.
void Firmware::fast_teardown() {
  if (sync_reset_.interface_down()) {
    restart();
  } else {
    reset_state(cmdq_);
    to_power_on();
    device_.dma().set_enabled(function_.id(), false);
  }
  health_.set_nic_interface(prm::kNicDisabled);
  // A command of another processor (an event's work, say) may be on its way to the doorbell, and nothing
  // could hold it back.
  cmdq_.excuse();
}

void Firmware::trace_create(ObjType type, std::uint32_t number, std::uint16_t uid) {
  tracer().record(traces::Point::kObjCreate, sim_now(), number, uid, static_cast<std::uint64_t>(type));
  if (type != ObjType::kMcg) objects_.users.own(type, number, uid);  // a group's number is its QP's
}

void Firmware::trace_destroy(ObjType type, std::uint32_t number, std::uint16_t uid) {
  tracer().record(traces::Point::kObjDestroy, sim_now(), number, uid, static_cast<std::uint64_t>(type));
  if (type == ObjType::kMcg) return;
  objects_.users.disown(type, number);
  objects_.umem_users.release(type, number);
  release_queue_groups(*this, type, number);
}

// In traces a general object's type stands above those of ObjType.
void Firmware::trace_general(bool created, std::uint16_t type, std::uint32_t number, std::uint16_t uid) {
  tracer().record(created ? traces::Point::kObjCreate : traces::Point::kObjDestroy, sim_now(), number, uid,
                  std::uint64_t{0x10000} | type);
}

std::vector<Firmware::Counter> Firmware::counters() {
  const CmdQueue::Counters& c = cmdq_.counters();
  return {
      {"fw_commands", c.commands + icmd_.commands()},
      {"fw_commands_failed", c.failed + icmd_.failed()},
      {"fw_unknown_opcodes", c.unknown_opcodes},
      {"fw_bad_deliveries", c.bad_deliveries},
      {"fw_bad_doorbells", c.bad_doorbells},
      {"fw_bad_init_seg_writes", health_.bad_writes()},
      {"fw_pages", pages_.given()},
      {"fw_pages_used", pages_.used_pages()},
      {"fw_page_requests", pages_.requests()},
      {"fw_qp_errors", qp_errors_},
      {"fw_health_syndrome", health_.syndrome()},
      {"fw_performance_mads", gsi_.performance_mads()},
      {"fw_traps", traps_.sent()},
      {"fw_sync_resets", sync_reset_.done()},
      {"fw_images_stored", component_update_.stored()},
      {"fw_images_rejected", component_update_.rejected()},
      {"fw_traces", fw_tracer_.said()},
      {"fw_traces_lost", fw_tracer_.lost()},
      {"fw_vf_images_saved", migration_.saved},
      {"fw_vf_images_loaded", migration_.loaded},
      {"fw_vf_images_refused", migration_.refused},
      {"fw_vf_packets_lost_held", function_.qps().suspension.lost_packets},
      {"fw_vf_doorbells_lost_held", function_.qps().suspension.lost_doorbells},
      {"fw_sa_requests", gsi_.subnet_admin().requests()},
      {"fw_sa_refused", gsi_.subnet_admin().refused()},
      {"pds", objects_.pds.count()},
      {"uars", objects_.uars.count()},
      {"mkeys", objects_.mkeys.count()},
      {"psvs", objects_.psvs.count()},
      {"memics", function_.memic().count()},
      {"eqs", objects_.eqs.count()},
      {"cqs", objects_.cqs.count()},
      {"srqs", objects_.srqs.count()},
      {"qps", objects_.qps.count()},  // SQs too
      {"rqs", objects_.rqs.count()},
      {"tirs", objects_.tirs.count()},
      {"tises", objects_.tises.count()},
      {"rqts", objects_.rqts.count()},
      {"flow_tables", objects_.flow_tables.count()},
      {"flows", objects_.flows},
      {"flow_counters", objects_.flow_counters.count()},
      {"uctxs", objects_.users.table.count()},
      {"umems", objects_.umems.count()},
      {"sched_elements", objects_.sched_elements.count()},
      {"general_objects", objects_.general_objects},
  };
}

}  // namespace hcasim::fw
