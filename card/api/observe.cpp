// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API by which an HCA is looked at and interfered with: parameters, identity, counters,
// validation rules, faults, traces.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "card/api/calls.h"
#include "card/api/hca_api.h"
#include "card/api/identity.h"
#include "card/api/options.h"
#include "card/replay/recording.h"
#include "model/state/state.h"

using hcasim::api::all;
using hcasim::api::enter;
using hcasim::api::Event;
using hcasim::api::Fault;
using hcasim::api::Recorded;
using hcasim::api::tell;

namespace {
hcasim::api::Identity identity_of(const hca_t* h) {
  return hcasim::api::identity_of(h->model.profile(), h->firmware.options());
}
}  // namespace

extern "C" {

unsigned hca_parameter_count(void) { return static_cast<unsigned>(hcasim::Profile::names().size()); }

const char* hca_parameter_name(unsigned index) {
  return index < hca_parameter_count() ? hcasim::Profile::names()[index].c_str() : nullptr;
}

double hca_parameter_value(const hca_t* h, unsigned index) {
  return h && index < hca_parameter_count() ? h->model.profile().value(index) : 0;
}

hca_pcie_link hca_get_pcie_link(const hca_t* h) {
  const hcasim::api::Identity id = identity_of(h);
  return {id.pcie_generation, id.lanes};
}

hca_pci_identity hca_get_pci_identity(const hca_t* h) {
  const hcasim::api::Identity id = identity_of(h);
  return {id.device_id, id.subsystem_id, h->firmware.options().generation->vf_device_id, id.revision,
          h->firmware.options().generation->key};
}

uint64_t hca_get_serial(const hca_t* h) { return identity_of(h).serial; }

size_t hca_get_vpd(const hca_t* h, void* out, size_t room) {
  const std::vector<std::uint8_t> vpd = identity_of(h).vpd;
  std::memcpy(out, vpd.data(), std::min(room, vpd.size()));
  return vpd.size();
}

void hca_get_mac(const hca_t* h, uint8_t mac[6]) {
  const std::uint64_t value = h->firmware.options().mac;
  for (unsigned i = 0; i < 6; ++i) mac[i] = static_cast<std::uint8_t>(value >> (8 * (5 - i)));
}

unsigned hca_counter_count(const hca_t* h) { return static_cast<unsigned>(h->counters().size()); }

const char* hca_counter_name(const hca_t* h, unsigned index) {
  const auto list = h->counters();
  return index < list.size() ? list[index].name : nullptr;
}

uint64_t hca_counter_value(const hca_t* h, unsigned index) {
  const auto list = h->counters();
  return index < list.size() ? list[index].value : 0;
}

std::uint64_t hca_state_digest(hca_t* h) {
  if (!h || !h->in_service) return 0;
  try {
    return hcasim::digest_state(*h);
  } catch (const std::exception& e) {
    h->model.model_fault("digest", e.what());
    return 0;
  }
}

const char* hca_stats_json(hca_t* h) {
  try {
    h->json = h->stats_json();
  } catch (...) {
    return "{}";
  }
  return h->json.c_str();
}

unsigned hca_rule_count(void) { return hcasim::traces::kRules; }

const char* hca_rule_name(unsigned index) {
  return index < hcasim::traces::kRules ? hcasim::traces::kRuleInfo[index].name : nullptr;
}

uint64_t hca_rule_broken(const hca_t* h, unsigned index) {
  if (index >= hcasim::traces::kRules) return 0;
  const auto rule = static_cast<hcasim::traces::Rule>(index);
  if (h) return h->tracer->rules().count(rule);
  return std::accumulate(
      all().begin(), all().end(), std::uint64_t{0},
      [&](std::uint64_t sum, const auto& each) { return sum + each->tracer->rules().count(rule); });
}

int hca_inject(hca_t* h, const char* fault, char* err, size_t err_len) {
  if (!h || !h->in_service) {
    tell(err, err_len, "the HCA is out of service");
    return -1;
  }
  bool good = false;
  Recorded call(Event::kInject, h->number, std::string_view(fault ? fault : ""));
  enter(h, "hca_inject", [&] {
    std::string why;
    const std::uint64_t seed = h->model.port().faults().seed;
    std::vector<hcasim::FaultSpec> plan;
    const std::string text = fault ? fault : "";
    good = hcasim::api::parse_faults(
        text, hcasim::sim_now(), h->model.port().faults(), plan, why,
        [](void* self, const Fault& f) { static_cast<hca*>(self)->inject(f); }, h);
    if (!good) tell(err, err_len, why);
    if (good && text == "none") h->model.injector().end_all();
    if (!plan.empty() && !hca_sim_started()) {
      // Simulated time has not begun: they do what those of a scenario do.
      std::vector<hcasim::FaultSpec>& list = h->planned;
      list.insert(list.end(), plan.begin(), plan.end());
    } else {
      h->model.injector().load(plan);
    }
    if (h->model.port().faults().seed != seed) h->model.port().reseed();
  });
  call.returns(good);
  return good ? 0 : -1;
}

int hca_set_trace(hca_t* h, const char* key, const char* value, char* err, size_t err_len) {
  if (!h || !h->in_service) {
    tell(err, err_len, "the HCA is out of service");
    return -1;
  }
  bool good = false;
  Recorded call(Event::kSetTrace, h->number, std::string_view(key ? key : ""),
                std::string_view(value ? value : ""));
  enter(h, "hca_set_trace", [&] {
    std::string why;
    good = h->set_trace(key ? key : "", value ? value : "", why);
    if (!good) tell(err, err_len, why);
  });
  call.returns(good);
  return good ? 0 : -1;
}

const char* hca_get_trace(hca_t* h, const char* key) {
  try {
    h->trace_answer = h->get_trace(key ? key : "");
  } catch (...) {
    return "";
  }
  return h->trace_answer.c_str();
}

const char* hca_fault_help(void) { return hcasim::api::fault_help(); }

}  // extern "C"
