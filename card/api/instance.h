// SPDX-License-Identifier: BSD-3-Clause
// What stands behind an hca_t: the model, its firmware, its trace, and the hosts of its functions.
#ifndef HCASIM_CARD_INSTANCE_H
#define HCASIM_CARD_INSTANCE_H

#include <memory>
#include <string>
#include <vector>

#include "card/api/function_host.h"
#include "card/api/hca_api.h"
#include "card/api/options.h"
#include "card/api/wires.h"
#include "card/state/function_image.h"
#include "card/state/host_parts.h"
#include "card/state/trace_state.h"
#include "firmware-stub/card_firmware.h"
#include "model/device.h"
#include "model/simulation_context.h"
#include "model/state/fields.h"
#include "traces/tracer.h"

namespace hcasim::api {

struct Counter {
  const char* name;
  std::uint64_t value;
  bool is_object = false;  // a number of objects that exist now
};

}  // namespace hcasim::api

struct hca final {
  hca(unsigned number, const hcasim::api::Settings& settings, const hcasim::Profile& profile,
      std::unique_ptr<hcasim::traces::Tracer> tracer, const hca_host_ops& ops, void* opaque);

  // What its functions say of the card as a whole (HostPort).
  void log(int level, const char* message) noexcept;
  void pcie_error(unsigned what, std::uint32_t bit, const char* name) noexcept;
  void cable(bool in) noexcept;
  // wire=host: false: the host has enough for a while.
  bool wire_tx(const void* frame, std::size_t len) noexcept;
  // The same for a host that wants to know when it leaves.
  bool wire_tx_at(const void* frame, std::size_t len, hcasim::Time leaves) noexcept;
  // As hca_host_ops::quiet_until; a host that cannot tell: now.
  std::int64_t quiet_until() const noexcept;

  std::vector<hcasim::api::Counter> counters() const;
  std::string stats_json() const;
  void inject(const hcasim::api::Fault& fault);
  // The scenario comes into force: simulated time begins.
  void begin_faults() {
    model.injector().load(settings.scenario.faults);
    model.injector().load(planned);
  }
  void rule_broken(const hcasim::traces::Broken& broken);
  void dump_ring_for(const char* rule);
  // The end of the HCA's service: what its driver has broken, to the log and to HCASIM_RULES_REPORT.
  void report_rules() noexcept;

  // hca_set_trace(), hca_get_trace(); false: `why` says why not. trace_to(), capture_to(): none ends it.
  bool set_trace(const std::string& key, const std::string& value, std::string& why);
  std::string get_trace(const std::string& key) const;
  bool trace_to(const std::string& path, std::string& why);
  bool capture_to(const std::string& path, std::string& why);

  // The cable. Joins the port to it.
  void connect(std::unique_ptr<hcasim::api::Uplink> to);
  // This end wants the link up: not taken down by a fault, nor (IB) by the host. Ethernet ports keep the
  // link up when the host takes theirs down, as cards do (KEEP_ETH_LINK_UP), but not in coupled time.
  bool wants_link() const;
  hcasim::wire::Wish wish() const;
  void follow_carrier();  // of the far end
  void wish_changed();

  // The whole card: what its driver sees, and what the wire and the faults in force have made of it.
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, model, firmware);
    a("simulation", hcasim::simulation());
  }
  // In a saved state: without what it shares with the others of the process, and with what is neither of the
  // model nor of the firmware.
  template <class Archive>
  void list_saved(Archive& a) {
    if constexpr (!Archive::kNames) a("model", model);  // where nothing is that others refer to by its place
    a("firmware", firmware);
    hcasim::saved::TraceState traced(*tracer);
    a("traced", traced);
    HCASIM_FIELDS(a, death_reported, link_injected_down, faults_on_request);
    HCASIM_FIELDS_SINCE(5, a, host_parts);
    HCASIM_FIELDS_SINCE(8, a, wire_lost);
  }
  // The function that those parts of the API mean that name none.
  static constexpr hcasim::FunctionId kPhysical = 0;

  const unsigned number;  // as they were made, from 0
  const hca_host_ops ops;
  void* const opaque;
  const hcasim::api::Settings settings;
  const std::unique_ptr<hcasim::traces::Tracer> tracer;
  bool in_service = true;
  bool death_reported = false;
  bool link_injected_down = false;
  bool loading = false;  // a saved state
  hcasim::saved::HostParts host_parts;
  std::vector<hcasim::FaultSpec> planned;       // by hca_inject() before simulated time began
  std::uint64_t faults_on_request = 0;          // by hca_inject(), in addition to those of the plan
  std::uint64_t wire_lost = 0;                  // frames that found no room on their way out
  std::unique_ptr<hcasim::api::Uplink> uplink;  // null: a cable to itself
  std::string json;
  std::string trace_path, capture_path, trace_answer;
  std::shared_ptr<hcasim::traces::Capture> capture;  // null: none
  unsigned trace_ring_mib;
  unsigned ring_dumps = 0;                                        // because of broken rules
  std::vector<std::unique_ptr<hcasim::api::FunctionHost>> hosts;  // one a function of the bus
  hcasim::saved::FunctionImages images;                           // of its virtual functions
  mutable hcasim::Device model;
  mutable hcasim::fw::CardFirmware firmware;
};

#endif
