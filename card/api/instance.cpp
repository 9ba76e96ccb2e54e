// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/instance.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "card/api/far_end.h"
#include "card/api/parts.h"
#include "card/api/simulation.h"
#include "card/replay/recording.h"

using hcasim::api::Event;
using hcasim::api::FunctionHost;
using hcasim::api::Recorder;

namespace {

// A name that SystemC takes: others would be changed with a warning.
std::string module_name(const std::string& name, unsigned number) {
  std::string out = "hca" + std::to_string(number) + "_";
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

std::vector<std::unique_ptr<FunctionHost>> make_hosts(hca& card, unsigned vfs, const hca_host_ops& ops,
                                                      void* opaque) {
  std::vector<std::unique_ptr<FunctionHost>> hosts;
  for (unsigned f = 0; f <= vfs; ++f) hosts.push_back(std::make_unique<FunctionHost>(card, f));
  hosts.front()->attach(&ops, opaque);
  return hosts;
}

// Sub-functions stand behind the others, and have the physical one's.
std::vector<hcasim::HostPort*> ports_of(const std::vector<std::unique_ptr<FunctionHost>>& hosts,
                                        unsigned sfs) {
  std::vector<hcasim::HostPort*> ports;
  ports.reserve(hosts.size() + sfs);
  for (const auto& host : hosts) ports.push_back(host.get());
  ports.insert(ports.end(), sfs, hosts.front().get());
  return ports;
}

}  // namespace

namespace hcasim::api {

// Names of error points, with a prefix: they live as long as the process.
const std::vector<std::pair<traces::Point, std::string>>& error_points() {
  static const auto* list = [] {
    auto* names = new std::vector<std::pair<traces::Point, std::string>>;
    for (unsigned i = 0; i < traces::kPoints; ++i) {
      const auto point = static_cast<traces::Point>(i);
      if (traces::is_error(point)) names->emplace_back(point, std::string("err_") + traces::info(point).name);
    }
    return names;
  }();
  return *list;
}

}  // namespace hcasim::api

hca::hca(unsigned n, const hcasim::api::Settings& s, const hcasim::Profile& profile,
         std::unique_ptr<hcasim::traces::Tracer> t, const hca_host_ops& host_ops, void* host)
    : number(n),
      ops(host_ops),
      opaque(host),
      settings(s),
      tracer(std::move(t)),
      trace_path(s.trace),
      trace_ring_mib(s.trace_ring),
      hosts(make_hosts(*this, s.firmware.vfs, ops, opaque)),
      model(module_name(s.name, n).c_str(), profile, ports_of(hosts, s.firmware.sfs), *tracer,
            s.firmware.sfs),
      firmware((module_name(s.name, n) + "_fw").c_str(), model, s.firmware, &images) {
  hcasim::api::set_up(s, model);
  tracer->rules().on_broken([this](const hcasim::traces::Broken& b) { rule_broken(b); });
  firmware.port().on_admin([this] { wish_changed(); });
}

void hca::connect(std::unique_ptr<hcasim::api::Uplink> to) {
  uplink = std::move(to);
  model.port().connect(uplink.get());
  follow_carrier();
}

bool hca::wants_link() const {
  // While the link is down, coupled ends meet seldom: it is up for no longer than the driver wants it.
  if (settings.coupled && !firmware.port().running()) return false;
  const bool keep =
      settings.firmware.link == hcasim::fw::Link::kEthernet && settings.keep_link && !settings.coupled;
  return !link_injected_down && (keep || firmware.port().wants_link());
}

hcasim::wire::Wish hca::wish() const {
  const hcasim::fw::LinkOffer& offer = firmware.port().eth_link().offer();
  return {wants_link(), !offer.negotiates, offer.kinds};
}

void hca::follow_carrier() {
  using hcasim::fw::LinkOffer;
  const hcasim::wire::Wish far = uplink ? uplink->far_wish() : hcasim::wire::Wish{};
  firmware.port().partner(far.up ? std::optional(LinkOffer{far.modes, !far.insists}) : std::nullopt);
  firmware.port().cable(!link_injected_down && (!uplink || uplink->plugged()));
}

void hca::wish_changed() {
  if (uplink && !loading) uplink->set_wish(wish());
}

void hca::log(int level, const char* message) noexcept {
  if (!in_service || !ops.log) return;
  ops.log(opaque, level, message);
  if (Recorder* recorder = Recorder::current()) {
    recorder->note(Event::kLog, number, static_cast<unsigned>(level), std::string_view(message));
  }
}

void hca::pcie_error(unsigned what, std::uint32_t bit, const char* name) noexcept {
  if (!in_service) return;
  if (ops.pcie_error) ops.pcie_error(opaque, static_cast<int>(what), bit, name);
  if (Recorder* recorder = Recorder::current())
    recorder->note(Event::kPcieError, number, what, bit, std::string_view(name));
}

void hca::cable(bool in) noexcept {
  link_injected_down = !in;
  try {
    follow_carrier();
    wish_changed();
  } catch (const std::exception& e) {
    model.model_fault("cable", e.what());
  }
}

bool hca::wire_tx(const void* frame, std::size_t len) noexcept {
  const int said = ops.wire_tx(opaque, frame, len);
  if (Recorder* recorder = Recorder::current()) {
    recorder->note(Event::kWireTx, number, len, said != 0, hcasim::api::Digest(frame, len).bytes());
  }
  return said == 0;
}

bool hca::wire_tx_at(const void* frame, std::size_t len, hcasim::Time leaves) noexcept {
  const int said = ops.wire_tx_at(opaque, frame, len, hcasim::api::Simulation::instance().caller_ps(leaves));
  if (Recorder* recorder = Recorder::current()) {
    recorder->note(Event::kWireTxAt, number, len, hcasim::api::from_now(leaves), said != 0,
                   hcasim::api::Digest(frame, len).bytes());
  }
  return said == 0;
}

std::int64_t hca::quiet_until() const noexcept {
  const std::int64_t now = hcasim::api::Simulation::instance().time();
  if (!ops.quiet_until) return now;
  const std::int64_t until = ops.quiet_until(opaque);
  if (Recorder* recorder = Recorder::current())
    recorder->note(Event::kQuiet, number, hcasim::api::due_number(until, now));
  return until;
}

void hca::rule_broken(const hcasim::traces::Broken& broken) {
  const bool strict = tracer->rules().mode() == hcasim::traces::Rules::Mode::kStrict;
  if (settings.breaches_logged == 0 || broken.count <= settings.breaches_logged) {
    const bool last = !strict && broken.count == settings.breaches_logged;
    const std::string line = describe(broken) + (last ? "; further ones are only counted" : "");
    log(strict ? HCA_LOG_ERROR : HCA_LOG_WARNING, line.c_str());
  }
  if (broken.count == 1) dump_ring_for(hcasim::traces::info(broken.rule).name);
  hcasim::fw::Firmware& its = firmware.function(static_cast<hcasim::FunctionId>(broken.function));
  if (strict && its.health().syndrome() == 0) its.inject_health(hcasim::fw::kSyndFwInternal, true);
}

// What led to the first breach of a rule, before later records push it out of the ring.
void hca::dump_ring_for(const char* rule) {
  constexpr unsigned kMost = 16;  // files; the first breaches are those that matter
  if (trace_ring_mib == 0 || trace_path.empty() || ring_dumps == kMost) return;
  ++ring_dumps;
  const std::string file = trace_path + "." + rule;
  std::string why;
  if (tracer->dump(file, &why))
    log(HCA_LOG_INFO, ("what was recorded until then: " + file).c_str());
  else
    log(HCA_LOG_WARNING, why.c_str());
}

void hca::report_rules() noexcept {
  using Mode = hcasim::traces::Rules::Mode;
  try {
    const hcasim::traces::Rules& rules = tracer->rules();
    if (!rules.on()) return;
    if (rules.total() != 0)
      log(rules.mode() == Mode::kStrict ? HCA_LOG_ERROR : HCA_LOG_WARNING,
          ("rules broken: " + rules.summary()).c_str());
    const char* path = std::getenv("HCASIM_RULES_REPORT");
    if (!path || !*path) return;
    std::string line = settings.name + (rules.mode() == Mode::kStrict ? " strict " : " report ");
    line += std::to_string(rules.total());
    for (unsigned i = 0; i < hcasim::traces::kRules; ++i) {
      const auto rule = static_cast<hcasim::traces::Rule>(i);
      if (const std::uint64_t n = rules.count(rule)) {
        line += ' ';
        line += hcasim::traces::info(rule).name;
        line += '=' + std::to_string(n);
      }
    }
    line += '\n';
    // One write at the end of the file: other processes may do the same.
    std::FILE* f = std::fopen(path, "ae");
    if (!f) return log(HCA_LOG_ERROR, (std::string("cannot write to HCASIM_RULES_REPORT=") + path).c_str());
    std::fputs(line.c_str(), f);
    std::fclose(f);
  } catch (...) {  // no memory: there is no report, and whoever waits for it finds none
  }
}

std::vector<hcasim::api::Counter> hca::counters() const {
  const hcasim::PortCounters& port = model.port().counters();
  const auto meetings = uplink ? uplink->meetings() : hcasim::api::Uplink::Meetings{};
  std::vector<hcasim::api::Counter> list = {
      {"doorbells", model.scheduler().doorbells()},
      {"blueflames", model.blueflames()},
      {"bad_doorbells", model.bad_doorbells()},
      {"bad_accesses", model.bad_accesses()},
      {"wqes", model.requester().wqes()},
      {"retransmits", model.requester().retransmits()},
      {"timeouts", model.requester().timeouts()},
      {"completions", model.cqs().completions()},
      {"cq_overruns", model.cqs().overruns()},
      {"cqes_compressed", model.cqs().compressed()},
      {"tag_matched", model.tags().matched()},
      {"tag_unexpected", model.tags().unexpected()},
      {"tag_refused", model.tags().refused()},
      {"ipsec_encrypted", model.crypto().ipsec().encrypted},
      {"ipsec_decrypted", model.crypto().ipsec().decrypted},
      {"ipsec_not_encrypted", model.crypto().ipsec().not_encrypted},
      {"ipsec_auth_failed", model.crypto().ipsec().auth_failed},
      {"ipsec_bad_trailer", model.crypto().ipsec().bad_trailer},
      {"ipsec_replayed", model.crypto().ipsec().replayed},
      {"ipsec_spent", model.crypto().ipsec().spent},
      {"macsec_encrypted", model.crypto().macsec().encrypted},
      {"macsec_decrypted", model.crypto().macsec().decrypted},
      {"macsec_not_encrypted", model.crypto().macsec().not_encrypted},
      {"macsec_auth_failed", model.crypto().macsec().auth_failed},
      {"macsec_bad_tag", model.crypto().macsec().bad_tag},
      {"macsec_replayed", model.crypto().macsec().replayed},
      {"psp_encrypted", model.crypto().psp().encrypted},
      {"psp_decrypted", model.crypto().psp().decrypted},
      {"psp_not_encrypted", model.crypto().psp().not_encrypted},
      {"psp_auth_failed", model.crypto().psp().auth_failed},
      {"psp_bad_frame", model.crypto().psp().bad_frame},
      {"psp_unknown", model.crypto().psp().unknown},
      {"interrupts", model.eqs().interrupts()},
      {"eq_overruns", model.eqs().overruns()},
      {"dma_read_bytes", model.dma().bytes_read()},
      {"dma_write_bytes", model.dma().bytes_written()},
      {"dma_errors", model.dma().errors()},
      {"tx_packets", port.tx_packets},
      {"tx_runs", port.tx_runs},
      {"rx_packets", port.rx_packets},
      {"tx_bytes", port.tx_bytes},
      {"rx_bytes", port.rx_bytes},
      {"tx_discards", port.tx_discards},
      {"tx_errors", port.tx_errors},
      {"port_xmit_wait", model.port().xmit_wait()},
      {"port_beacon_s", firmware.port().beacon_left()},  // 65535: until it is told to stop
      {"wire_lost", wire_lost + (uplink ? uplink->lost() : 0)},
      {"wire_meetings", meetings.count},
      {"wire_waits", meetings.waits},
      {"wire_wait_us", meetings.wait_us},
      {"wire_late", meetings.late},
      {"rx_errors", port.rx_errors},
      {"rx_dropped", port.rx_dropped},
      {"faults_injected", model.injector().injected() + faults_on_request},
      {"injected_drop", port.injected_drop},
      {"injected_dup", port.injected_dup},
      {"injected_reorder", port.injected_reorder},
      {"injected_corrupt", port.injected_corrupt},
      {"injected_garble", port.injected_garble},
      {"injected_ecn", port.injected_ecn},
      {"ecn_marked", port.ecn_marked},
      {"cnp_sent", model.cc().statistics().np_cnp_sent},
      {"cnp_handled", model.cc().statistics().rp_cnp_handled},
      {"pause_sent", port.mac.tx.pause},
      {"pause_received", port.mac.rx.pause},
      {"page_faults_wqe", model.page_faults().counters().wqe},
      {"page_faults_rdma", model.page_faults().counters().rdma},
      {"page_faults_unheard", model.page_faults().counters().unheard},
      {"page_faults_resumed", model.page_faults().counters().resumed},
      {"page_faults_failed", model.page_faults().counters().failed},
      {"qp_errors", model.qp_errors()},
      {"qpc_misses", model.qpc_cache().misses()},
      {"switch_lookups", model.lookups().hits() + model.lookups().misses()},
      {"switch_lookup_misses", model.lookups().misses()},
      {"iotlb_hits", model.host_memory().iotlb_hits()},
      {"iotlb_misses", model.host_memory().iotlb_misses()},
      {"atc_hits", model.host_memory().atc_hits()},
      {"atc_misses", model.host_memory().atc_misses()},
      {"ats_invalidations", model.dma().invalidations()},
      {"pcie_write_waits", model.dma().posted().waits()},
      {"pcie_read_waits", model.dma().nonposted().waits()},
      {"dram_reads", model.host_memory().dram_reads()},
      {"model_dead", model.dead() ? 1u : 0u},
      {"rules_broken", tracer->rules().total()},
  };
  // Firmware counts its objects under their plain names.
  auto of_firmware = firmware.function(kPhysical).counters();
  for (hcasim::FunctionId f = 1; f < model.functions(); ++f) {
    const auto more = firmware.function(f).counters();
    for (std::size_t i = 0; i < of_firmware.size(); ++i) of_firmware[i].value += more[i].value;
  }
  for (const auto& c : of_firmware) list.push_back({c.name, c.value, std::strncmp(c.name, "fw_", 3) != 0});
  for (const auto& [point, name] : hcasim::api::error_points()) {
    list.push_back({name.c_str(), tracer->count(point)});
  }
  return list;
}

std::string hca::stats_json() const {
  // Names hold no character that JSON would want escaped (options.cpp, the tables above).
  std::string out = "{\"name\":\"" + settings.name + "\",\"profile\":\"";
  for (const char c : model.profile().name) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  out += "\",\"sim_time_ns\":" + std::to_string(hcasim::api::Simulation::instance().time());
  out += ",\"activations\":" + std::to_string(hcasim::simulation().clock.activations);
  std::string events, objects;
  for (const auto& c : counters()) {
    std::string& list = c.is_object ? objects : events;
    list += (list.empty() ? "\"" : ",\"") + std::string(c.name) + "\":" + std::to_string(c.value);
  }
  std::string rules;
  for (unsigned i = 0; i < hcasim::traces::kRules; ++i) {
    const auto rule = static_cast<hcasim::traces::Rule>(i);
    const std::uint64_t n = tracer->rules().count(rule);
    if (n == 0) continue;
    rules += (rules.empty() ? "\"" : ",\"") + std::string(hcasim::traces::info(rule).name) +
             "\":" + std::to_string(n);
  }
  return out + ",\"counters\":{" + events + "},\"objects\":{" + objects + "},\"rules\":{" + rules + "}}";
}

void hca::inject(const hcasim::api::Fault& fault) {
  using hcasim::FaultAction;
  using hcasim::FaultType;
  using hcasim::api::Fault;
  const auto note = [&](FaultType kind, FaultAction action) {
    ++faults_on_request;
    hcasim::traces::trace(*tracer, hcasim::traces::Point::kFaultInjected, hcasim::sim_now(), 0u, 0u,
                          hcasim::traces::fault_word(kind, action),
                          fault.number | (fault.kind == Fault::kFatalHealth ? 0x100u : 0u));
  };
  switch (fault.kind) {
    case Fault::kPort:
      break;
    case Fault::kHealth:
    case Fault::kFatalHealth:
      note(FaultType::kHealth, FaultAction::kSyndrome);
      firmware.function(kPhysical).inject_health(static_cast<std::uint8_t>(fault.number),
                                                 fault.kind == Fault::kFatalHealth);
      break;
    case Fault::kLink:
      note(FaultType::kPort, fault.number == 0 ? FaultAction::kPortDown : FaultAction::kPortUp);
      cable(fault.number != 0);
      break;
    case Fault::kModelFault:
      note(FaultType::kModel, FaultAction::kModelFault);
      model.model_fault("hca_inject", "asked for");
      break;
  }
}
