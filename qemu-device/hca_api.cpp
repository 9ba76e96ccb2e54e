// SPDX-License-Identifier: BSD-3-Clause
// The C API on the C++ model: no exception leaves a function, and what breaks inside ends in the HCA's fatal
// health state.
#include "qemu-device/hca_api.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "qemu-device/instance.h"
#include "qemu-device/options.h"
#include "qemu-device/simulation.h"

using hcasim::api::Fault;
using hcasim::api::Settings;
using hcasim::api::Simulation;

namespace {

// All HCAs ever made: SystemC modules cannot be deleted after elaboration.
std::vector<std::unique_ptr<hca>>& all() {
  static auto* list = new std::vector<std::unique_ptr<hca>>;
  return *list;
}

void tell(char* err, std::size_t len, const std::string& text) {
  if (err && len) std::snprintf(err, len, "%s", text.c_str());
}

constexpr unsigned kMaxHcas = 64;

// The kernel has stopped for good: each HCA tells its driver so, once.
void spread_death() {
  Simulation& simulation = Simulation::instance();
  if (!simulation.dead()) return;
  for (auto& h : all()) {
    if (!h->told_dead) {
      h->told_dead = true;
      h->model.model_fault("SystemC kernel", simulation.cause().c_str());
    }
  }
}

// Runs one call into the model.
template <class F>
void enter(hca* h, const char* where, F body) noexcept {
  Simulation::Entry entry(Simulation::instance());
  try {
    body();
  } catch (const std::exception& e) {
    h->model.model_fault(where, e.what());
  } catch (...) {
    h->model.model_fault(where, "unknown exception");
  }
}

bool usable(const hca* h) { return h && h->in_service && Simulation::instance().started(); }

}  // namespace

extern "C" {

hca_t* hca_create(const char* options, const hca_host_ops* ops, void* opaque, char* err, size_t err_len) {
  try {
    Simulation& simulation = Simulation::instance();
    if (simulation.started()) {
      tell(err, err_len, "an HCA cannot be added while the simulation runs: SystemC makes no module then");
      return nullptr;
    }
    if (!ops || !ops->dma_read || !ops->dma_write || !ops->msix) {
      tell(err, err_len, "dma_read, dma_write and msix must be given");
      return nullptr;
    }
    if (all().size() >= kMaxHcas) {
      tell(err, err_len, "too many HCAs: there may be " + std::to_string(kMaxHcas));
      return nullptr;
    }
    Settings settings;
    std::string why;
    if (!hcasim::api::parse_options(options ? options : "", settings, why)) {
      tell(err, err_len, why);
      return nullptr;
    }
    const unsigned number = static_cast<unsigned>(all().size());
    if (settings.name.empty()) settings.name = "hca" + std::to_string(number);
    hcasim::Profile profile;
    if (!hcasim::Profile::load(settings.profile, hcasim::api::profile_folders(), profile, why)) {
      tell(err, err_len, why);
      return nullptr;
    }
    if (settings.batch_window) profile.engine.batch_window = *settings.batch_window;
    auto tracer = std::make_unique<hcasim::traces::Tracer>(number);
    if (!settings.trace.empty() && !tracer->open(settings.trace, &why)) {
      tell(err, err_len, "trace=" + settings.trace + ": " + why);
      return nullptr;
    }
    simulation.prepare();
    all().push_back(std::make_unique<hca>(number, settings, profile, std::move(tracer), *ops, opaque));
    return all().back().get();
  } catch (const std::exception& e) {
    tell(err, err_len, e.what());
  } catch (...) {
    tell(err, err_len, "unknown exception");
  }
  return nullptr;
}

void hca_destroy(hca_t* h) {
  if (!h || !h->in_service) return;
  h->in_service = false;
  enter(h, "hca_destroy", [&] {
    if (Simulation::instance().started()) h->model.reset();
    h->tracer->close();
  });
}

const char* hca_option_help(void) { return hcasim::api::option_help(); }

int hca_sim_started(void) { return Simulation::instance().started(); }

int hca_sim_start(int64_t now) {
  const bool good = Simulation::instance().start(now);
  if (!good) {
    for (auto& h : all()) h->log(HCA_LOG_ERROR, Simulation::instance().cause().c_str());
  }
  return good ? 0 : -1;
}

int64_t hca_sim_advance(int64_t now, int64_t ahead) {
  const std::int64_t next = Simulation::instance().advance(now, ahead);
  if (Simulation::instance().dead()) spread_death();
  return next;
}

int64_t hca_sim_time(void) { return Simulation::instance().time(); }

uint64_t hca_sim_activations(void) { return hcasim::g_activations; }

uint64_t hca_mmio_read(hca_t* h, uint64_t offset, unsigned size) {
  std::uint8_t bytes[8];
  std::memset(bytes, 0xff, sizeof bytes);
  if (usable(h)) {
    enter(h, "hca_mmio_read", [&] { h->model.bar_read(offset, bytes, std::min(size, 8u)); });
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, std::min(size, 8u));  // hosts are little-endian
  return value;
}

void hca_mmio_write(hca_t* h, uint64_t offset, uint64_t value, unsigned size) {
  if (!usable(h) || size > 8) return;
  std::uint8_t bytes[8];
  std::memcpy(bytes, &value, sizeof bytes);
  enter(h, "hca_mmio_write", [&] { h->model.bar_write(offset, bytes, size); });
}

void hca_mmio_write_burst(hca_t* h, uint64_t offset, const void* data, size_t len) {
  if (!usable(h) || !data || len == 0 || len % 8 || len > hcasim::Uar::kMaxBurst) return;
  enter(h, "hca_mmio_write_burst", [&] {
    h->model.bar_write(offset, static_cast<const std::uint8_t*>(data), static_cast<unsigned>(len));
  });
}

void hca_reset(hca_t* h) {
  if (!usable(h)) return;
  enter(h, "hca_reset", [&] { h->model.reset(); });
}

hca_pcie_link hca_get_pcie_link(const hca_t* h) {
  const hcasim::Profile::Pcie& pcie = h->model.profile().pcie;
  return {pcie.generation, pcie.lanes};
}

int hca_is_ethernet(const hca_t* h) { return h->settings.firmware.link == hcasim::fw::Link::kEthernet; }

unsigned hca_counter_count(const hca_t* h) { return static_cast<unsigned>(h->counters().size()); }

const char* hca_counter_name(const hca_t* h, unsigned index) {
  const auto list = h->counters();
  return index < list.size() ? list[index].name : nullptr;
}

uint64_t hca_counter_value(const hca_t* h, unsigned index) {
  const auto list = h->counters();
  return index < list.size() ? list[index].value : 0;
}

const char* hca_stats_json(hca_t* h) {
  try {
    h->json = h->stats_json();
  } catch (...) {
    return "{}";
  }
  return h->json.c_str();
}

int hca_inject(hca_t* h, const char* fault, char* err, size_t err_len) {
  if (!h || !h->in_service) {
    tell(err, err_len, "the HCA is out of service");
    return -1;
  }
  bool good = false;
  enter(h, "hca_inject", [&] {
    std::string why;
    const std::uint64_t seed = h->model.port().faults().seed;
    good = hcasim::api::parse_faults(
        fault ? fault : "", h->model.port().faults(), why,
        [](void* self, const Fault& f) { static_cast<hca*>(self)->inject(f); }, h);
    if (!good) tell(err, err_len, why);
    if (h->model.port().faults().seed != seed) h->model.port().reseed();
  });
  return good ? 0 : -1;
}

const char* hca_fault_help(void) { return hcasim::api::fault_help(); }

}  // extern "C"
