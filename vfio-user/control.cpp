// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/control.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hcasim::vfio_user {

namespace {

using nlohmann::json;

struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A thing that can be read and set; null: it cannot.
struct Property {
  std::string name;
  json (*get)(Card&);
  void (*set)(Card&, const std::string& value);
};

void set_trace(Card& card, const char* key, const std::string& value) {
  char why[512] = "";
  if (hca_set_trace(card.handle(), key, value.c_str(), why, sizeof why) != 0) throw Refusal(why);
}

void inject(Card& card, const std::string& fault) {
  char why[1024] = "";
  if (hca_inject(card.handle(), fault.c_str(), why, sizeof why) != 0)
    throw Refusal("fault '" + fault + "' is not taken: " + why);
}

std::uint64_t refused(Card& card) {
  const Card::Refused& r = card.refused();
  return r.not_master + r.nothing_there + r.not_shared + r.lost;
}

#define TRACE_PROPERTY(name, key)                                                 \
  {                                                                               \
    name, [](Card& card) -> json { return hca_get_trace(card.handle(), key); },   \
        [](Card& card, const std::string& value) { set_trace(card, key, value); } \
  }

const std::vector<Property>& properties() {
  static const std::vector<Property> list = {
      {"stats", [](Card& card) { return json::parse(hca_stats_json(card.handle()), nullptr, false); },
       nullptr},
      {"sim-time", [](Card&) -> json { return hca_sim_time(); }, nullptr},
      {"activations", [](Card&) -> json { return hca_sim_activations(); }, nullptr},
      {"time-mode", [](Card&) -> json { return "eager"; }, nullptr},
      {"ctr-state-digest", [](Card& card) -> json { return hca_state_digest(card.handle()); }, nullptr},
      {"ctr-shim-refused-dma", [](Card& card) -> json { return refused(card); }, nullptr},
      {"inject", [](Card&) -> json { return hca_fault_help(); }, inject},
      TRACE_PROPERTY("trace-on", "on"),
      TRACE_PROPERTY("trace-filter", "filter"),
      TRACE_PROPERTY("trace-file", "file"),
      TRACE_PROPERTY("trace-ring", "ring"),
      TRACE_PROPERTY("trace-dump", "dump"),
      TRACE_PROPERTY("trace-flush", "flush"),
      TRACE_PROPERTY("capture-file", "capture"),
  };
  return list;
}

const Property* property(const std::string& name) {
  const auto it = std::find_if(properties().begin(), properties().end(),
                               [&](const Property& p) { return p.name == name; });
  return it == properties().end() ? nullptr : &*it;
}

json get(Card& card, const std::string& name) {
  if (const Property* const p = property(name)) return p->get(card);
  for (unsigned i = 0; i < hca_counter_count(card.handle()); ++i) {
    if (name == std::string("ctr-") + hca_counter_name(card.handle(), i))
      return hca_counter_value(card.handle(), i);
  }
  throw Refusal("there is no '" + name + "'; {\"list\": true} says what there is");
}

void set(Card& card, const std::string& name, const std::string& value) {
  const Property* const p = property(name);
  if (!p || !p->set) throw Refusal("'" + name + "' cannot be set");
  card.time().before();
  p->set(card, value);
  card.time().after();
}

json list(Card& card) {
  json names = json::array();
  for (const Property& p : properties()) names.push_back(p.name);
  for (unsigned i = 0; i < hca_counter_count(card.handle()); ++i)
    names.push_back(std::string("ctr-") + hca_counter_name(card.handle(), i));
  return names;
}

std::string text(const json& request, const char* key) {
  const json value = request.value(key, json());
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) throw Refusal(std::string("\"") + key + "\" is missing");
  return value.dump();
}

using Cards = std::vector<std::unique_ptr<Card>>;

std::string state_of(const Cards& cards) {
  for (const auto& c : cards) c->keep_for_state();
  char why[1024] = "";
  std::size_t len = 0;
  const void* const state = hca_sim_save(&len, why, sizeof why);
  if (!state) throw Refusal(std::string("the state cannot be saved: ") + why);
  std::string bytes(static_cast<const char*>(state), len);
  hca_sim_release();
  return bytes;
}

// All of it or nothing.
void put_back(const Cards& cards, const std::string& state) {
  const std::string before = state_of(cards);
  const auto load = [&](const std::string& bytes) {
    char why[1024] = "";
    if (hca_sim_load(bytes.data(), bytes.size(), why, sizeof why) != 0) return std::string(why);
    for (const auto& c : cards)
      if (std::string wrong = c->take_from_state(); !wrong.empty()) return c->name() + ": " + wrong;
    return std::string();
  };
  if (const std::string wrong = load(state); !wrong.empty()) {
    load(before);
    throw Refusal("the state is not taken: " + wrong);
  }
}

void save(const Cards& cards, const std::string& path) {
  const std::string state = state_of(cards), part = path + ".part";
  std::ofstream out(part, std::ios::binary);
  out.write(state.data(), static_cast<std::streamsize>(state.size()));
  out.close();
  std::error_code ec;
  if (out) std::filesystem::rename(part, path, ec);
  if (out && !ec) return;
  const std::string why = ec ? ec.message() : std::strerror(errno);
  std::filesystem::remove(part, ec);
  throw Refusal(path + " cannot be written: " + why);
}

void load(const Cards& cards, const std::string& path) {
  std::error_code ec;
  if (std::filesystem::exists(path, ec) && !std::filesystem::is_regular_file(path, ec))
    throw Refusal(path + " is no file that has an end");
  std::ifstream in(path, std::ios::binary);
  const std::string state{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) throw Refusal(path + " cannot be read: " + std::strerror(errno));
  put_back(cards, state);
  cards.front()->time().state_loaded();
}

json answer(const Cards& cards, const json& request) {
  if (!request.is_object()) throw Refusal("a request is a JSON object in a line: {\"get\": \"stats\"}");
  if (request.contains("cards")) {
    json names = json::array();
    for (const auto& c : cards) names.push_back(c->name());
    return {{"names", names}};
  }
  if (request.contains("save")) return save(cards, text(request, "save")), json::object();
  if (request.contains("load")) return load(cards, text(request, "load")), json::object();
  auto card = cards.begin();
  if (request.contains("card")) {
    const std::string name = text(request, "card");
    card = std::find_if(cards.begin(), cards.end(), [&](const auto& c) { return c->name() == name; });
    if (card == cards.end()) throw Refusal("there is no card '" + name + "'");
  }
  if (request.contains("get")) return {{"value", get(**card, text(request, "get"))}};
  if (request.contains("list")) return {{"names", list(**card)}};
  if (!request.contains("set"))
    throw Refusal("a request has \"get\", \"set\", \"list\", \"save\" or \"load\"");
  set(**card, text(request, "set"), text(request, "value"));
  return json::object();
}

}  // namespace

std::string control(const std::vector<std::unique_ptr<Card>>& cards, const std::string& request) {
  json out;
  try {
    out = answer(cards, json::parse(request, nullptr, false));
  } catch (const std::exception& e) {
    out = {{"error", e.what()}};
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace hcasim::vfio_user
