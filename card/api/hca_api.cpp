// SPDX-License-Identifier: BSD-3-Clause
// The C API on the C++ model: no exception leaves a function, and what breaks inside ends in the HCA's fatal
// health state.
#include "card/api/hca_api.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "card/api/calls.h"
#include "card/api/fabric.h"
#include "card/api/instance.h"
#include "card/api/joins.h"
#include "card/api/late_modules.h"
#include "card/api/options.h"
#include "card/api/parts.h"
#include "card/api/simulation.h"
#include "card/replay/recording.h"

using hcasim::api::all;
using hcasim::api::cable_peer;
using hcasim::api::CableEnd;
using hcasim::api::check_cable;
using hcasim::api::check_late;
using hcasim::api::complete_cards;
using hcasim::api::device_number;
using hcasim::api::enter;
using hcasim::api::Event;
using hcasim::api::HostWire;
using hcasim::api::join;
using hcasim::api::join_cables;
using hcasim::api::LateModules;
using hcasim::api::Recorded;
using hcasim::api::Recorder;
using hcasim::api::Settings;
using hcasim::api::Simulation;
using hcasim::api::SocketWire;
using hcasim::api::take_port;
using hcasim::api::tell;
using hcasim::api::usable;

namespace {

constexpr std::size_t kMostArriving = 4096;  // frames in the port, beyond which the host is asked to wait

hcasim::FunctionId as_id(unsigned function) { return static_cast<hcasim::FunctionId>(function); }

bool has(const hca_t* h, unsigned function) { return usable(h) && function < h->model.functions(); }

bool on_bus(const hca_t* h, unsigned function) { return function < h->hosts.size(); }

// Calls of(f) for a function of the bus, and for what is behind it there.
template <class F>
void with_sub_functions(const hca_t* h, unsigned function, F of) {
  of(as_id(function));
  if (function != hca::kPhysical) return;
  for (unsigned f = hca_functions(h); f < h->model.functions(); ++f) of(as_id(f));
}

// A virtual function's BAR and a sub-function's window are smaller than the BAR that all are decoded as: what
// lies behind the end is out of range there too.
static_assert(HCA_SF_WINDOW_SIZE == HCA_VF_BAR0_SIZE && HCA_SF_WINDOW_SIZE == 1u << hcasim::fw::kLogSfWindow);
std::uint64_t in_bar(unsigned function, std::uint64_t offset, std::size_t len) {
  const bool past =
      function != hca::kPhysical && (offset >= HCA_VF_BAR0_SIZE || len > HCA_VF_BAR0_SIZE - offset);
  return past ? HCA_BAR0_SIZE : offset;
}

// The kernel has stopped for good: each HCA reports that to its driver, once.
void spread_death() {
  Simulation& simulation = Simulation::instance();
  if (!simulation.dead()) return;
  for (auto& h : all()) {
    if (!h->death_reported) {
      h->death_reported = true;
      h->model.model_fault("SystemC kernel", simulation.cause().c_str());
    }
  }
}

// Whose wires are flushed when the model has run: of many HCAs in a process few have such.
std::vector<hca*>& to_flush() {
  static auto* list = new std::vector<hca*>;
  return *list;
}

// The wires in coupled time.
class Partners final : public Simulation::Partners {
 public:
  hcasim::Time limit() const override {
    hcasim::Time first = hcasim::kNever;
    for (const auto& h : all()) {
      if (h->uplink) first = std::min(first, h->uplink->meets_at());
    }
    return first;
  }

  bool meet_plainly() const override {
    const hcasim::Time first = limit();
    for (const auto& h : all()) {
      if (h->uplink && h->uplink->meets_at() == first && !h->uplink->meets_plainly()) return false;
    }
    return first != hcasim::kNever;
  }

  void meet(hcasim::Time next) override {
    const hcasim::Time now = limit();
    std::vector<hca*> here;
    for (const auto& h : all()) {
      if (h->uplink && h->uplink->meets_at() <= now) here.push_back(h.get());
    }
    for (hca* h : here)
      h->uplink->tell(std::min(next, unprompted(*h, now)), [h] { return others_go_on(*h); });
    for (hca* h : here) h->uplink->hear([h] { return others_go_on(*h); });
  }

 private:
  static bool others_go_on(const hca& waits) {
    bool left = false;
    for (const auto& h : all())
      if (h.get() != &waits && h->uplink) left = h->uplink->go_on() || left;
    return left;
  }
  // Before this, an HCA sends nothing because of its host, or of what may come in over other wires.
  static hcasim::Time unprompted(const hca& h, hcasim::Time now) {
    const hcasim::Time latency = h.model.profile().pcie.mmio_latency;
    hcasim::Time first = std::max(now, Simulation::instance().at(h.quiet_until()));
    first = first > hcasim::kNever - latency ? hcasim::kNever : first + latency;
    for (const auto& other : all()) {
      if (other.get() != &h && other->uplink) first = std::min(first, other->uplink->meets_at());
    }
    return std::max(first, now);
  }
};

void note_statistics(hca* h) {
  Recorder* recorder = Recorder::current();
  if (recorder && !recorder->finished())
    recorder->note(Event::kStatistics, h->number, std::string_view(hca_stats_json(h)));
  if (recorder && !recorder->finished()) recorder->note(Event::kState, h->number, hca_state_digest(h));
}

// HCAs that the process leaves in service at its end tell their statistics now.
void finish_recording() {
  if (Recorder* recorder = Recorder::current()) {
    for (auto& h : all()) {
      if (h->in_service) note_statistics(h.get());
    }
    recorder->finish();
  }
}

void note_creation(const hca& h, const char* options) {
  if (Recorder* recorder = Recorder::current()) {
    static const int at_exit = std::atexit(finish_recording);
    static_cast<void>(at_exit);
    std::uint64_t has = 0;
    if (h.ops.log) has |= hcasim::api::kHostLogs;
    if (h.ops.wire_tx) has |= hcasim::api::kHostTakesFrames;
    if (h.ops.wire_tx_at) has |= hcasim::api::kHostTakesTimes;
    if (h.ops.quiet_until) has |= hcasim::api::kHostTellsQuiet;
    std::string given = options ? options : "";
    if (h.settings.wire) {  // it may be a random one
      char guid[40];
      std::snprintf(guid, sizeof guid, "%snode_guid=%016" PRIx64, given.empty() ? "" : ",",
                    h.settings.firmware.node_guid);
      given += guid;
    }
    recorder->note(Event::kCreate, has, std::string_view(given),
                   std::string_view(hcasim::api::profile_text(h.model.profile())),
                   std::string_view(h.settings.scenario_text));
    recorder->note(Event::kReturn, std::uint64_t{h.number});
  }
}

// As hca_sim_start() does it for those that there are by then. The cable is a call of its own, and so in the
// recording.
bool plugged_in(hca& made, std::string& why) {
  enter(&made, "faults", [&] { made.begin_faults(); });
  if (made.settings.cable.empty()) return true;
  char text[512] = "";
  const bool good = hca_cable(&made, cable_peer(made.settings.cable), text, sizeof text) == 0;
  if (!good) why = "cable=" + made.settings.cable + ": " + text;
  return good;
}

}  // namespace

extern "C" {

hca_t* hca_create(const char* options, const hca_host_ops* ops, void* opaque, char* err, size_t err_len) {
  // Read behind the handlers of exceptions, to which the analyzer knows no way.
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores)
  const std::size_t before = all().size();
  try {
    Simulation& simulation = Simulation::instance();
    const bool late = simulation.started();
    if (late && (simulation.busy() || simulation.dead())) {
      tell(err, err_len,
           simulation.dead() ? "simulated time stands still: " + simulation.cause()
                             : std::string("an HCA is in the midst of a call"));
      return nullptr;
    }
    const LateModules modules(late);
    if (!ops || !ops->dma_read || !ops->dma_write || !ops->msix) {
      tell(err, err_len, "dma_read, dma_write and msix must be given");
      return nullptr;
    }
    if (all().size() >= hcasim::api::kMaxHcas) {
      tell(err, err_len, "too many HCAs: there may be " + std::to_string(hcasim::api::kMaxHcas));
      return nullptr;
    }
    const unsigned number = static_cast<unsigned>(all().size());
    hcasim::api::Parts parts;
    std::string why;
    if (!hcasim::api::make_parts(options ? options : "", number, parts, why)) {
      tell(err, err_len, why);
      return nullptr;
    }
    Settings& settings = parts.settings;
    const hcasim::Profile& profile = parts.profile;
    std::unique_ptr<hcasim::traces::Tracer>& tracer = parts.tracer;
    if (!take_port(settings, why) || !check_cable(settings, *ops, why) ||
        (late && !check_late(settings, why)) ||
        (!settings.capture.empty() && !hcasim::traces::Capture::get(settings.capture, &why))) {
      tell(err, err_len, why);
      return nullptr;
    }
    if (!Recorder::begin(settings.record, settings.snapshot_every, all().empty(), why)) {
      tell(err, err_len, why);
      return nullptr;
    }
    // A trace looks at memory for itself, and the replay may be asked for one.
    if (Recorder::current() && settings.trace.empty()) tracer->open("/dev/null", &why);
    if (!simulation.prepare(settings.native, why)) {
      tell(err, err_len, why);
      return nullptr;
    }
    hca_host_ops host = *ops;
    if (Recorder::current()) host.dma_map = nullptr;  // reads that nobody hears of
    all().push_back(std::make_unique<hca>(number, settings, profile, std::move(tracer), host, opaque));
    hca& made = *all().back();
    note_creation(made, options);
    if (!made.capture_to(settings.capture, why)) made.log(HCA_LOG_ERROR, why.c_str());
    if (settings.host_wire) made.connect(std::make_unique<HostWire>(made));
    if (settings.wire) {
      made.connect(std::make_unique<SocketWire>(made, *settings.wire, settings.coupled));
      to_flush().push_back(&made);
    }
    if (settings.coupled) {
      static Partners partners;
      simulation.set_partners(&partners);
    }
    if (!late || plugged_in(made, why)) return &made;
    tell(err, err_len, why);
    hca_destroy(&made);
    return nullptr;
  } catch (const std::exception& e) {
    tell(err, err_len, e.what());
  } catch (...) {
    tell(err, err_len, "unknown exception");
  }
  // The host has none: it must not be called for one that lacks something.
  if (all().size() > before) hca_destroy(all().back().get());
  return nullptr;
}

void hca_destroy(hca_t* h) {
  if (!h || !h->in_service) return;
  note_statistics(h);
  auto call = std::make_optional<Recorded>(Event::kDestroy, h->number);
  enter(h, "hca_destroy", [&] {
    h->report_rules();
    auto* joined = dynamic_cast<CableEnd*>(h->uplink.get());
    hca* peer = joined ? &joined->peer() : nullptr;
    h->model.port().connect(nullptr);
    h->uplink.reset();  // closes its sockets
    h->in_service = false;
    if (peer && peer->in_service) peer->follow_carrier();
    if (Simulation::instance().started()) h->model.reset();
    h->tracer->close();
    std::string why;
    h->capture_to("", why);
  });
  h->in_service = false;
  call.reset();
  if (std::none_of(all().begin(), all().end(), [](const auto& other) { return other->in_service; }))
    finish_recording();
}

const char* hca_option_help(void) { return hcasim::api::option_help(); }

int hca_sim_started(void) { return Simulation::instance().started(); }

int hca_sim_start(int64_t now) {
  Recorded call(Event::kStart, Recorder::At{now});
  std::string why;
  if (!hca_sim_started() &&
      !(complete_cards(why) && join_cables(why) && hcasim::api::join_switches(all(), why))) {
    for (auto& h : all()) {
      if (why.rfind(h->settings.name + ":", 0) == 0) h->log(HCA_LOG_ERROR, why.c_str());
    }
    return -1;
  }
  const bool first = !hca_sim_started();
  const bool good = Simulation::instance().start(now);
  for (auto& h : all()) {
    if (good && first && h->in_service) enter(h.get(), "faults", [&] { h->begin_faults(); });
  }
  if (!good) {
    for (auto& h : all()) h->log(HCA_LOG_ERROR, Simulation::instance().cause().c_str());
  }
  call.returns(good);
  return good ? 0 : -1;
}

int64_t hca_sim_advance(int64_t now, int64_t ahead) {
  Simulation& simulation = Simulation::instance();
  if (simulation.busy()) return -1;
  // Another thread than last time: the model's memory is in another processor's cache.
  static const void* last_thread = nullptr;
  if (const void* thread = __builtin_thread_pointer(); thread != last_thread) {
    last_thread = thread;
    if (!all().empty()) all().front()->model.prefetch();
  }
  std::int64_t next = 0;
  {
    Recorded call(Event::kAdvance, Recorder::At{now}, static_cast<std::uint64_t>(ahead));
    next = simulation.advance(now, ahead);
    call.returns(hcasim::api::due_number(next, now));
    if (simulation.dead()) spread_death();
    for (hca* h : to_flush()) {
      if (h->uplink) h->uplink->flush();
    }
  }
  if (Recorder* recorder = Recorder::current(); recorder && recorder->wants_state(now))
    hcasim::api::note_state(*recorder, now);
  return next;
}

int64_t hca_sim_meeting(int64_t* event) { return Simulation::instance().meeting(event); }

int64_t hca_sim_time(void) { return Simulation::instance().time(); }

uint64_t hca_sim_activations(void) { return hcasim::simulation().clock.activations; }

uint64_t hca_sim_turns(void) { return hcasim::simulation().clock.turns; }

void hca_memory_changed(hca_t* h) {
  if (!h) return;
  Recorded call(Event::kMemory, h->number);
  enter(h, "hca_memory_changed", [&] { h->model.dma().loans().settle_all(); });
}

uint64_t hca_mmio_read(hca_t* h, uint64_t offset, unsigned size) {
  return hca_function_read(h, hca::kPhysical, offset, size);
}

void hca_mmio_write(hca_t* h, uint64_t offset, uint64_t value, unsigned size) {
  hca_function_write(h, hca::kPhysical, offset, value, size);
}

void hca_mmio_write_burst(hca_t* h, uint64_t offset, const void* data, size_t len) {
  hca_function_write_burst(h, hca::kPhysical, offset, data, len);
}

uint32_t hca_vsc_read(hca_t* h, uint32_t offset) {
  if (!usable(h)) return UINT32_MAX;
  std::uint32_t value = UINT32_MAX;
  Recorded call(Event::kVscRead, h->number, offset);
  enter(h, "hca_vsc_read", [&] { value = h->model.function(hca::kPhysical).gateway().read(offset); });
  call.returns(value);
  return value;
}

void hca_vsc_write(hca_t* h, uint32_t offset, uint32_t value) {
  if (!usable(h)) return;
  Recorded call(Event::kVscWrite, h->number, offset, value);
  enter(h, "hca_vsc_write", [&] { h->model.function(hca::kPhysical).gateway().write(offset, value); });
}

unsigned hca_functions(const hca_t* h) { return h ? static_cast<unsigned>(h->hosts.size()) : 0; }

unsigned hca_sub_functions(const hca_t* h) { return h ? h->model.functions() - hca_functions(h) : 0; }

int hca_attach_function(hca_t* h, unsigned function, const hca_host_ops* ops, void* opaque) {
  if (!h || function == hca::kPhysical || !on_bus(h, function)) return -1;
  Recorded call(Event::kAttach, device_number(h->number, function), unsigned{ops != nullptr});
  h->hosts[function]->attach(ops, opaque);
  return 0;
}

uint64_t hca_function_read(hca_t* h, unsigned function, uint64_t offset, unsigned size) {
  std::uint8_t bytes[8];
  std::memset(bytes, 0xff, sizeof bytes);
  std::uint64_t value = 0;
  size = std::min(size, 8u);
  if (has(h, function)) {
    Recorded call(Event::kMmioRead, device_number(h->number, function), offset, size);
    enter(h, "hca_function_read",
          [&] { h->model.bar_read(as_id(function), in_bar(function, offset, size), bytes, size); });
    std::memcpy(&value, bytes, size);  // hosts are little-endian
    call.returns(value);
  } else {
    std::memcpy(&value, bytes, size);
  }
  return value;
}

void hca_function_code(hca_t* h, unsigned function, uint64_t offset, uint64_t value, uint64_t pc,
                       uint64_t caller) {
  if (!has(h, function)) return;
  Recorded call(Event::kCode, device_number(h->number, function), offset, value, pc, caller);
  h->tracer->record(hcasim::traces::Point::kGuestCode, hcasim::sim_now(),
                    {function, static_cast<std::uint32_t>(offset)}, static_cast<std::uint32_t>(value), pc,
                    caller);
}

void hca_function_write(hca_t* h, unsigned function, uint64_t offset, uint64_t value, unsigned size) {
  if (!has(h, function) || size > 8) return;
  std::uint8_t bytes[8];
  std::memcpy(bytes, &value, sizeof bytes);
  Recorded call(Event::kMmioWrite, device_number(h->number, function), offset, value, size);
  enter(h, "hca_function_write", [&] {
    h->model.bar_write(as_id(function), in_bar(function, offset, size), bytes, size);
    if (h->model.prefetched()) h->model.prefetch_targets();
  });
}

void hca_function_write_burst(hca_t* h, unsigned function, uint64_t offset, const void* data, size_t len) {
  if (!has(h, function) || !data || len == 0 || len % 8 || len > hcasim::Uar::kMaxBurst) return;
  Recorded call(Event::kBurst, device_number(h->number, function), offset,
                std::string_view(static_cast<const char*>(data), len));
  enter(h, "hca_function_write_burst", [&] {
    h->model.bar_write(as_id(function), in_bar(function, offset, len), static_cast<const std::uint8_t*>(data),
                       static_cast<unsigned>(len));
  });
}

unsigned hca_function_vectors(const hca_t* h, unsigned function) {
  return h && function < h->model.functions() ? h->firmware.function(as_id(function)).vectors() : 0;
}

void hca_function_reset(hca_t* h, unsigned function) {
  if (!has(h, function) || !on_bus(h, function)) return;
  Recorded call(Event::kFunctionReset, device_number(h->number, function));
  enter(h, "hca_function_reset", [&] {
    if (function == hca::kPhysical)
      h->model.reset();  // with the virtual ones
    else
      h->model.reset(as_id(function));
  });
}

int hca_shows_ats(const hca_t* h) { return h && h->settings.firmware.ats ? 1 : 0; }

void hca_function_ats(hca_t* h, unsigned function, int on) {
  if (!has(h, function) || !on_bus(h, function) || !hca_shows_ats(h)) return;
  Recorded call(Event::kAts, device_number(h->number, function), static_cast<unsigned>(on != 0));
  enter(h, "hca_function_ats", [&] {
    with_sub_functions(h, function,
                       [&](hcasim::FunctionId f) { h->model.dma().keep_translations(f, on != 0); });
  });
}

void hca_function_invalidate(hca_t* h, unsigned function, uint64_t addr, uint64_t len) {
  if (!has(h, function) || !on_bus(h, function)) return;
  Recorded call(Event::kInvalidate, device_number(h->number, function), addr, len);
  enter(h, "hca_function_invalidate", [&] {
    with_sub_functions(h, function,
                       [&](hcasim::FunctionId f) { h->model.dma().invalidate_translations(f, addr, len); });
  });
}

void hca_reset(hca_t* h) {
  if (!usable(h)) return;
  Recorded call(Event::kReset, h->number);
  enter(h, "hca_reset", [&] {
    h->firmware.boot();
    h->model.reset();
  });
}

int hca_is_ethernet(const hca_t* h) { return h->settings.firmware.link == hcasim::fw::Link::kEthernet; }

int hca_cable(hca_t* a, hca_t* b, char* err, size_t err_len) {
  std::string why;
  bool good = false;
  if (a && b) {
    Recorded call(Event::kCable, a->number, b->number);
    enter(a, "hca_cable", [&] { good = join(a, b, why); });
    call.returns(good);
  } else {
    join(a, b, why);
  }
  if (!good) tell(err, err_len, why);
  return good ? 0 : -1;
}

int hca_wire_rx(hca_t* h, const void* frame, size_t len) {
  bool taken = false;
  if (usable(h)) {
    Recorded call(Event::kWireRx, h->number, std::string_view(static_cast<const char*>(frame), len));
    enter(h, "hca_wire_rx", [&] {
      auto* wire = dynamic_cast<HostWire*>(h->uplink.get());
      taken = wire && wire->receive(frame, len, hcasim::sim_now());
    });
    call.returns(taken);
  }
  return taken ? 0 : -1;
}

int hca_wire_rx_at(hca_t* h, const void* frame, size_t len, int64_t ps) {
  constexpr hcasim::Time kFarthest = hcasim::from_ns(1e9);
  if (!usable(h)) return -1;
  const hcasim::Time now = hcasim::sim_now(), t = Simulation::instance().of_caller_ps(ps);
  if (t < now || t - now >= kFarthest) return -1;
  bool taken = false;
  Recorded call(Event::kWireRxAt, h->number, hcasim::api::from_now(t),
                std::string_view(static_cast<const char*>(frame), len));
  enter(h, "hca_wire_rx_at", [&] {
    auto* wire = dynamic_cast<HostWire*>(h->uplink.get());
    taken = wire && wire->receive(frame, len, t);
  });
  call.returns(taken);
  return taken ? 0 : -1;
}

int hca_wire_room(const hca_t* h) { return h->model.port().arriving() < kMostArriving; }

void hca_wire_carrier(hca_t* h, int up) {
  if (!h || !h->in_service) return;
  Recorded call(Event::kCarrier, h->number, static_cast<unsigned>(up != 0));
  enter(h, "hca_wire_carrier", [&] {
    if (auto* wire = dynamic_cast<HostWire*>(h->uplink.get())) {
      wire->host_carrier(up != 0);
      h->follow_carrier();
    }
  });
}

int hca_wire_waiting(const hca_t* h) { return h && h->uplink && h->uplink->waiting() ? 1 : 0; }

void hca_wire_look(hca_t* h, int64_t clock, int sleep) {
  if (!usable(h) || !h->uplink || Simulation::instance().busy()) return;
  enter(h, "hca_wire_look", [&] { h->uplink->look(clock, sleep != 0); });
}

int64_t hca_wire_poll(hca_t* h, int64_t clock) {
  constexpr std::int64_t kSoon = 1'000'000;
  if (!usable(h) || !h->uplink) return HCA_NEVER;
  if (Simulation::instance().busy()) return clock + kSoon;
  std::int64_t due = HCA_NEVER;
  enter(h, "hca_wire_poll", [&] { due = h->uplink->poll(clock); });
  return due;
}

void hca_wire_hold(hca_t* h, int on) {
  if (!h || !h->in_service || !h->uplink) return;
  enter(h, "hca_wire_hold", [&] { h->uplink->hold(on != 0); });
}

}  // extern "C"
