// SPDX-License-Identifier: BSD-3-Clause
#include "card/sc/inner.h"

#include <algorithm>
#include <cstring>

#include "card/api/identity.h"
#include "card/api/wires.h"
#include "model/agenda.h"
#include "model/fault/spec.h"
#include "model/pcie/vsc_gateway.h"
#include "model/port/codec.h"

namespace hcasim::sc {

namespace {

constexpr const char* kDevice = "/hcasim/device";
constexpr FunctionId kShown = 0;  // the module shows the card's first function
constexpr Time kReadPatience = from_ns(50e6);

static_assert(ConfigSpace::kVendorBytes == VscGateway::kLength &&
              ConfigSpace::kVendorHeader == VscGateway::kControl);

Time ps(const sc_core::sc_time& t) { return static_cast<Time>(t.value()); }

bool can_wait() {
  return sc_core::sc_get_current_process_handle().proc_kind() == sc_core::SC_THREAD_PROC_ ||
         sc_core::sc_get_current_process_handle().proc_kind() == sc_core::SC_CTHREAD_PROC_;
}

}  // namespace

HcaModule::Inner::Inner(HcaModule& outer, api::Parts parts, const HcaConfig& config)
    : outer_(outer),
      parts_(std::move(parts)),
      host_("host"),
      model_("card", parts_.profile, {&host_}, *parts_.tracer),
      firmware_("firmware", model_, parts_.settings.firmware),
      config_(api::identity_of(parts_.profile, firmware_.options())),
      inbox_(
          "inbox",
          [this](Time due, Item& item) {
            to_come_.erase(to_come_.find(due));
            perform(item);
          },
          *this),
      vcd_("vcd"),
      frame_(kMaxFrame + kMaxHeaders) {
  api::set_up(parts_.settings, model_);
  host_.set_enabled(false);
  host_.on_msix([this](unsigned vector) { signal(vector); });
  host_.on_pcie_error(
      [this](unsigned what, std::uint32_t bit, const char* name) { pcie_error(what, bit, name); });
  host_.on_cable([this](bool in) { cable(in); });
  host_.on_log([this](int level, const std::string& line) { log(level, line); });
  if (config.dmi) host_.use_dmi([this] { model_.dma().loans().settle_all(); });
  parts_.tracer->rules().on_broken([this](const traces::Broken& b) {
    if (b.count == 1) log(1, describe(b));
    fw::Firmware& its = firmware_.function(kShown);
    if (parts_.tracer->rules().mode() == traces::Rules::Mode::kStrict && its.health().syndrome() == 0)
      its.inject_health(fw::kSyndFwInternal, true);
  });
  if (!parts_.settings.capture.empty()) {
    std::string why;
    capture_ = traces::Capture::get(parts_.settings.capture, &why);
    if (capture_)
      model_.port().capture_to(capture_, parts_.settings.name);
    else
      SC_REPORT_ERROR("/hcasim/config", (std::string(outer.name()) + ": " + why).c_str());
  }
  firmware_.port().on_admin([this] { admin_changed(); });
  host_.dma.bind(outer_.dma);
  outer_.wire_in.bind(*this);
}

// ---- Accesses ----

// Whoever is in a turn of a block does not wait for another one: DMA that leads back to the card.
void HcaModule::Inner::wait_for_writes() {
  if (!can_wait() || Agenda::in_turn()) return;
  const Time asked = sim_now(), limit = asked + kReadPatience;
  ++readers_;
  // Another initiator may be ahead of time: what it writes later than this is not waited for.
  while (!to_come_.empty() && *to_come_.begin() <= asked) {
    if (sim_now() >= limit) {
      log(1, "a read did not see the writes before it: the host holds up the card's DMA");
      break;
    }
    sc_core::wait(to_sc(limit - sim_now()), began_);
  }
  --readers_;
}

void HcaModule::Inner::put(Time t, const Item& item) {
  to_come_.insert(t);
  inbox_.push(t, item);
}

bool HcaModule::Inner::write(Time t, std::uint64_t address, const std::uint8_t* bytes, unsigned len) {
  const ConfigSpace::Place place = config_.decode(address, len);
  if (place.bar == ConfigSpace::Bar::kNone) return false;
  if (held()) return true;
  Item item;
  item.kind = place.bar == ConfigSpace::Bar::kRegisters ? Item::kRegisters : Item::kMsixTable;
  item.len = len;
  item.resets = resets_;
  item.offset = place.offset;
  std::memcpy(item.bytes.data(), bytes, len);
  put(t, item);
  return true;
}

bool HcaModule::Inner::read(std::uint64_t address, std::uint8_t* bytes, unsigned len) {
  const ConfigSpace::Place place = config_.decode(address, len);
  if (place.bar == ConfigSpace::Bar::kNone) return false;
  if (held())
    std::memset(bytes, 0xff, len);
  else if (place.bar == ConfigSpace::Bar::kRegisters)
    model_.bar_read(kShown, place.offset, bytes, len);
  else
    config_.table_read(place.offset, bytes, len);
  return true;
}

bool HcaModule::Inner::peek(std::uint64_t address, std::uint8_t* bytes, unsigned len) {
  const ConfigSpace::Place place = config_.decode(address, len);
  if (held() || place.bar != ConfigSpace::Bar::kRegisters || place.offset < kInitSegSize)
    return read(address, bytes, len);
  // UARs read as zeros, and no rule is broken.
  std::memset(bytes, 0, len);
  if (Memic::covers(place.offset)) model_.function(kShown).memic().load(place.offset, bytes, len);
  return true;
}

std::uint32_t HcaModule::Inner::config_peek(unsigned offset, unsigned len) const {
  return held() ? 0xffffffff : config_.read(offset, len);
}

std::uint32_t HcaModule::Inner::config_read(unsigned offset, unsigned len) {
  if (held() || !ConfigSpace::is_gateway(offset)) return config_peek(offset, len);
  try {
    return model_.function(kShown).gateway().read((offset & ~3u) - ConfigSpace::kVendor) >>
           (8 * (offset % 4));
  } catch (const std::exception& e) {
    model_.model_fault("gateway", e.what());
    return 0xffffffff;
  }
}

// Of the gateway whole dwords only.
void HcaModule::Inner::config_write(unsigned offset, std::uint32_t value, unsigned len) {
  if (held()) return;
  Item item;
  item.kind = Item::kInterrupts;  // some may not be masked any more
  if (ConfigSpace::is_gateway(offset)) {
    if (len != 4) return;
    item.kind = Item::kGateway;
    item.offset = offset - ConfigSpace::kVendor;
    std::memcpy(item.bytes.data(), &value, sizeof value);
  } else if (config_.write(offset, value, len)) {
    config_.function_reset();
    host_.set_enabled(config_.bus_master());
    return reset_now(false);
  }
  item.resets = resets_;
  host_.set_enabled(config_.bus_master());
  put(sim_now(), item);
}

void HcaModule::Inner::hold_in_reset(bool on) { hold(in_reset_, on); }

// Whoever is held answers nothing, does nothing, and is afterwards as after power-on.
void HcaModule::Inner::hold(bool& why, bool on) {
  if (on && !held()) {
    config_.reset();
    host_.set_enabled(false);
    reset_now(true);
  }
  why = on;
}

void HcaModule::Inner::reset_now(bool boots) {
  ++resets_;
  Item item;
  item.kind = Item::kReset;
  item.boots = boots;
  put(sim_now(), item);
}

void HcaModule::Inner::perform(Item& item) {
  // What has begun has come before whatever is read from now on.
  if (readers_ != 0) began_.notify(sc_core::SC_ZERO_TIME);
  // An initiator may be ahead of time: what it has written for later than a reset is lost with that.
  const bool written =
      item.kind == Item::kRegisters || item.kind == Item::kMsixTable || item.kind == Item::kGateway;
  if (written && (held() || item.resets != resets_)) return;
  switch (item.kind) {
    case Item::kRegisters:
      model_.bar_write(kShown, item.offset, item.bytes.data(), item.len);
      break;
    case Item::kMsixTable:
      config_.table_write(item.offset, item.bytes.data(), item.len);
      send_unmasked();
      break;
    case Item::kGateway: {
      std::uint32_t value = 0;
      std::memcpy(&value, item.bytes.data(), sizeof value);
      model_.function(kShown).gateway().write(static_cast<unsigned>(item.offset), value);
      break;
    }
    case Item::kReset:
      if (item.boots) firmware_.boot();
      model_.reset();
      break;
    case Item::kInterrupts:
      send_unmasked();
      break;
    case Item::kCarrier:
      peer_up_ = item.up;
      follow_carrier();
      break;
  }
}

// ---- Interrupts ----

void HcaModule::Inner::signal(unsigned vector) {
  if (const auto message = config_.signal(vector)) send(*message);
}

void HcaModule::Inner::send_unmasked() {
  for (const ConfigSpace::Message& message : config_.take_unmasked()) send(message);
}

void HcaModule::Inner::send(const ConfigSpace::Message& message) {
  host_.dma_write(message.address, &message.data, sizeof message.data);  // hosts are little-endian
}

// ---- Faults of PCIe ----

// what: as HostPort::pcie_error(). No TLM payload carries messages to the root complex, so they are reported.
void HcaModule::Inner::pcie_error(unsigned what, std::uint32_t bit, const char* name) {
  if (what == kFaultRemoved || what == kFaultInserted) {
    hold(pulled_, what == kFaultRemoved);
    cable(what == kFaultInserted);
    return;
  }
  if (held()) return;
  using Severity = ConfigSpace::Severity;
  const Severity severity = what == kFaultCorrectable ? Severity::kCorrectable
                            : what == kFaultNonFatal  ? Severity::kNonFatal
                            : what == kFaultFatal     ? Severity::kFatal
                                                      : Severity::kByRegister;
  static constexpr const char* kMessages[] = {nullptr, "ERR_COR", "ERR_NONFATAL", "ERR_FATAL"};
  if (const char* message = kMessages[static_cast<unsigned>(config_.report(bit, severity))])
    log(1, std::string(message) + ": " + name);
}

// ---- The wire ----

void HcaModule::Inner::connect() {
  wired_ = outer_.wire_out.size() != 0;
  if (!wired_) return;
  model_.port().connect(this);
  peer_up_ = false;
  follow_carrier();
}

void HcaModule::Inner::meet_peer() {
  model_.injector().load(parts_.settings.scenario.faults);
  if (!wired_) return;
  const Station own = station(), peer = outer_.wire_out->station();
  if (peer.known && peer.ethernet != own.ethernet) {
    SC_REPORT_ERROR("/hcasim/config", (std::string(outer_.name()) + ": the ends of the cable differ: link=" +
                                       (own.ethernet ? "eth and link=ib" : "ib and link=eth"))
                                          .c_str());
  }
  if (peer.known && !own.ethernet) {
    const auto lids = api::assign_lids({own.node_guid, own.lid}, {peer.node_guid, peer.lid});
    if (lids.own == 0) {
      SC_REPORT_ERROR(
          "/hcasim/config",
          (std::string(outer_.name()) + ": both ends want the same LID, or have the same node_guid").c_str());
    }
    firmware_.port().assign(lids.own, lids.sm, {{peer.port_guid, lids.peer}});
  }
  admin_changed();
}

WireIf::Station HcaModule::Inner::station() const {
  Station s;
  s.known = true;
  s.ethernet = parts_.settings.firmware.link == fw::Link::kEthernet;
  s.subnet_manager = parts_.settings.firmware.sm;
  s.node_guid = firmware_.port().node_guid();
  s.port_guid = firmware_.port().port_guid();
  s.lid = parts_.settings.firmware.lid;
  return s;
}

// Ethernet ports keep the link up when the driver takes theirs down, as cards do (KEEP_ETH_LINK_UP).
void HcaModule::Inner::admin_changed() {
  if (!wired_) return;
  const bool keep = parts_.settings.firmware.link == fw::Link::kEthernet && parts_.settings.keep_link;
  outer_.wire_out->carrier(cable_in_ && (keep || firmware_.port().wants_link()));
}

void HcaModule::Inner::follow_carrier() {
  firmware_.port().partner(peer_up_ ? std::optional(fw::LinkOffer{}) : std::nullopt);
  firmware_.port().cable(cable_in_);
}

void HcaModule::Inner::cable(bool in) {
  cable_in_ = in;
  try {
    follow_carrier();
    admin_changed();
  } catch (const std::exception& e) {
    model_.model_fault("cable", e.what());
  }
}

void HcaModule::Inner::carrier(bool up) {
  Item item;
  item.kind = Item::kCarrier;
  item.up = up;
  put(sim_now(), item);
}

void HcaModule::Inner::transmit(Time t, const PacketRef& packet) {
  const std::size_t len = encode(*packet, frame_.data(), frame_.size(), Vcrc::kLeftOut);
  if (len == 0) return;
  WireFrame out;
  out.bytes.assign(frame_.data(), frame_.data() + len);
  out.corrupt = packet->corrupt;
  const Time arrives = t + parts_.profile.port.wire_latency, now = sim_now();
  outer_.wire_out->frame(out, to_sc(arrives > now ? arrives - now : 0));
}

// Only queues: it may come in the midst of a turn.
void HcaModule::Inner::frame(const WireFrame& frame, const sc_core::sc_time& delay) {
  Port& port = model_.port();
  PacketRef packet = PacketPool::make();
  Decoded how = Decoded::kOk;
  if (port.link() == LinkType::kEthernet) {
    if (frame.bytes.empty() || frame.bytes.size() > kMaxFrame)
      return port.drop(sim_now(), *packet, DropReason::kMalformed);
    packet->kind = PacketKind::kEthernet;
    packet->frame_len = static_cast<std::uint16_t>(frame.bytes.size());
    std::memcpy(packet->frame(), frame.bytes.data(), frame.bytes.size());
  } else {
    how = decode_ib(frame.bytes.data(), frame.bytes.size(), *packet, Vcrc::kLeftOut);
    if (how != Decoded::kOk) {
      return port.drop(sim_now(), *packet,
                       how == Decoded::kBadCrc ? DropReason::kCorrupt : DropReason::kMalformed);
    }
  }
  packet->corrupt = frame.corrupt;
  port.wire_receive(sim_now() + ps(delay), std::move(packet));
}

// ---- What it reports ----

void HcaModule::Inner::log(int level, const std::string& line) {
  try {
    const std::string text = std::string(outer_.name()) + ": " + line;
    if (level < 2)
      SC_REPORT_WARNING(kDevice, text.c_str());
    else
      SC_REPORT_INFO(kDevice, text.c_str());
  } catch (...) {  // the user's choice of actions: it must not get into the model
  }
}

void HcaModule::Inner::trace(sc_core::sc_trace_file* file) {
  if (!watched_) {
    watched_ = true;
    parts_.tracer->on_busy(
        [this](traces::Unit unit, std::int64_t from, std::int64_t to) { vcd_.busy(unit, from, to); });
    Agenda::instance().on_turn([this] { sample(); });
  }
  sample();
  vcd_.add_to(file, outer_.name());
  Agenda::instance().trace_processes(file, outer_.name());
}

void HcaModule::Inner::sample() {
  Vcd::Values& v = vcd_.values;
  const PortCounters& port = model_.port().counters();
  v.port_state = static_cast<std::uint8_t>(model_.port().state());
  v.bus_master = config_.bus_master();
  v.dead = model_.dead();
  v.inbox = static_cast<std::uint32_t>(inbox_.size());
  v.arriving = static_cast<std::uint32_t>(model_.port().arriving());
  v.doorbells = model_.scheduler().doorbells();
  v.wqes = model_.requester().wqes();
  v.completions = model_.cqs().completions();
  v.interrupts = model_.eqs().interrupts();
  v.tx_packets = port.tx_packets;
  v.rx_packets = port.rx_packets;
  v.dma_read_bytes = model_.dma().bytes_read();
  v.dma_write_bytes = model_.dma().bytes_written();
}

std::vector<HcaModule::Inner::Counter> HcaModule::Inner::counters() const {
  const PortCounters& port = model_.port().counters();
  return {{"doorbells", model_.scheduler().doorbells()},
          {"bad_doorbells", model_.bad_doorbells()},
          {"bad_accesses", model_.bad_accesses()},
          {"wqes", model_.requester().wqes()},
          {"retransmits", model_.requester().retransmits()},
          {"completions", model_.cqs().completions()},
          {"interrupts", model_.eqs().interrupts()},
          {"dma_read_bytes", model_.dma().bytes_read()},
          {"dma_write_bytes", model_.dma().bytes_written()},
          {"dma_errors", model_.dma().errors()},
          {"dmi_accesses", host_.dmi_accesses()},
          {"tx_packets", port.tx_packets},
          {"rx_packets", port.rx_packets},
          {"rx_errors", port.rx_errors},
          {"rules_broken", parts_.tracer->rules().total()},
          {"model_dead", model_.dead() ? 1u : 0u}};
}

std::uint64_t HcaModule::Inner::counter(const std::string& name) const {
  for (const Counter& c : counters()) {
    if (name == c.name) return c.value;
  }
  return 0;
}

std::string HcaModule::Inner::statistics() const {
  std::string out;
  for (const Counter& c : counters())
    out += (out.empty() ? "{\"" : ",\"") + std::string(c.name) + "\":" + std::to_string(c.value);
  return out + "}";
}

}  // namespace hcasim::sc
