// SPDX-License-Identifier: BSD-3-Clause
// Saved states at the C API.
#include <string>
#include <string_view>

#include "card/api/calls.h"
#include "card/api/hca_api.h"
#include "card/api/instance.h"
#include "card/replay/recording.h"
#include "card/state/card_state.h"

using hcasim::api::all;
using hcasim::api::Event;
using hcasim::api::Recorded;
using hcasim::api::Simulation;
using hcasim::api::tell;

namespace {

std::string& latest() {
  static auto* const state = new std::string;
  return *state;
}

hcasim::saved::Cards cards() {
  hcasim::saved::Cards list;
  for (const auto& h : all())
    if (h->in_service) list.push_back(h.get());
  return list;
}

// Why states can be neither saved nor loaded now; empty: they can.
std::string obstacle() {
  const Simulation& simulation = Simulation::instance();
  if (!simulation.started()) return "simulated time has not begun";
  if (simulation.busy()) return "an HCA is in the midst of a call";
  if (simulation.dead()) return "simulated time stands still: " + simulation.cause();
  for (const hca* h : cards()) {
    const std::string name = h->settings.name + ": ";
    if (h->settings.coupled)
      return name + "coupled=on: the other end of the wire would have to be saved at the same time";
  }
  return "";
}

// Front ends' parts are of one state.
struct PartsGo {
  ~PartsGo() {
    for (hca* h : cards()) h->host_parts.next.clear();
  }
};

// Null: `why` says why not.
const std::string* save(std::string& why) {
  const PartsGo parts_go;
  why = obstacle();
  if (!why.empty()) return nullptr;
  Simulation::Entry entry(Simulation::instance());
  try {
    latest() = hcasim::saved::save(cards());
    return &latest();
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
    why = "unknown exception";
  }
  return nullptr;
}

}  // namespace

namespace hcasim::api {

void note_state(Recorder& recorder, std::int64_t now) {
  std::string why;
  if (save(why)) return recorder.note_state(now, latest());
  recorder.no_more_states();
  for (hca* h : cards()) h->log(HCA_LOG_ERROR, ("snapshot_every: no states any more: " + why).c_str());
}

}  // namespace hcasim::api

extern "C" {

const void* hca_sim_save(size_t* len, char* err, size_t err_len) {
  std::string why;
  if (const std::string* state = save(why)) {
    *len = state->size();
    return state->data();
  }
  tell(err, err_len, why);
  return nullptr;
}

int hca_set_host_part(hca_t* hca, const char* name, const void* bytes, size_t len) {
  hcasim::saved::HostParts& parts = hca->host_parts;
  const std::size_t more = std::string_view(name).size() + len;
  if (len > HCA_HOST_PARTS_SIZE || parts.bytes() + more > HCA_HOST_PARTS_SIZE) return -1;
  parts.next[name].assign(static_cast<const char*>(bytes), len);
  return 0;
}

const void* hca_get_host_part(const hca_t* hca, const char* name, size_t* len) {
  const auto& parts = hca->host_parts.loaded;
  const auto it = parts.find(name);
  if (it == parts.end()) return nullptr;
  *len = it->second.size();
  return it->second.data();
}

void hca_sim_release(void) { std::string().swap(latest()); }

int hca_sim_load(const void* state, size_t len, char* err, size_t err_len) {
  if (const std::string why = obstacle(); !why.empty()) {
    tell(err, err_len, why);
    return -1;
  }
  const std::string_view bytes(static_cast<const char*>(state), len);
  Recorded call(Event::kLoad, bytes);
  Simulation::Entry entry(Simulation::instance());
  try {
    hcasim::saved::load(cards(), bytes);
    call.returns(1);
    return 0;
  } catch (const std::exception& e) {
    tell(err, err_len, e.what());
  } catch (...) {
    tell(err, err_len, "unknown exception");
  }
  return -1;
}

}  // extern "C"
