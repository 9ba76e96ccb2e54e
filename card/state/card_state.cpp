// SPDX-License-Identifier: BSD-3-Clause
#include "card/state/card_state.h"

#include <cstdio>
#include <map>
#include <string>

#include "card/api/fabric.h"
#include "card/api/instance.h"
#include "card/api/simulation.h"
#include "card/api/wires.h"
#include "card/state/load.h"
#include "card/state/save.h"
#include "model/state/fields.h"

namespace hcasim::saved {

namespace {

// How the card was made, as far as its state depends on it. Whoever loads must have the same.
class MadeAs {
 public:
  explicit MadeAs(const hca& card) {
    const fw::Options& options = card.firmware.options();
    link_ = options.link == fw::Link::kEthernet ? "ethernet" : "infiniband";
    generation_ = card.model.profile().generation->key;
    profile_ = card.model.profile().name;
    parameters_ = parameters_of(card.model.profile());
    vfs_ = options.vfs;
    sfs_ = options.sfs;
    port_ = options.port;
    ports_ = options.ports;
    node_guid_ = options.node_guid;
    mac_ = options.mac;
  }
  template <class Archive>
  void list_state(Archive& a) {
    one(a, "link", link_, "link types");
    one(a, "generation", generation_, "generations");
    one(a, "profile", profile_, "profiles");
    list_parameters(a);
    one(a, "vfs", vfs_, "numbers of virtual functions");
    one(a, "sfs", sfs_, "numbers of sub-functions");
    one(a, "ports", ports_, "numbers of ports");
    one(a, "port", port_, "ports of the card");
    one(a, "node_guid", node_guid_, "GUIDs (node_guid=)");
    one(a, "mac", mac_, "MAC addresses (mac=)");
  }

 private:
  // Of the profile.
  struct Parameter {
    std::string name, value;

    template <class Archive>
    void list_state(Archive& a) {
      a("name", name);
      a("value", value);
    }
  };
  using Parameters = std::map<std::string, std::string>;

  // [host] is what a measurement's CPUs cost, and nothing of the card; earlier versions listed it.
  static bool of_measurements(const std::string& name) { return name.compare(0, 5, "host.") == 0; }
  static Parameters parameters_of(const Profile& profile) {
    Parameters all;
    for (std::size_t i = 0; i < Profile::names().size(); ++i) {
      if (of_measurements(Profile::names()[i])) continue;
      char value[40];
      std::snprintf(value, sizeof value, "%.17g", profile.value(i));
      all.emplace(Profile::names()[i], value);
    }
    return all;
  }
  // One that a later version has added is as it is by default then.
  template <class Archive>
  void list_parameters(Archive& a) {
    if constexpr (Archive::kLoads) {
      Parameters saved = parameters_of(Profile());
      a.list("parameters", [&](auto read) {
        Parameter p;
        read(p);
        if (of_measurements(p.name)) return;
        const auto it = saved.find(p.name);
        if (it == saved.end()) a.fail("the saved card has a parameter that is not known here: " + p.name);
        it->second = p.value;
      });
      for (const auto& [name, value] : parameters_) {
        if (saved[name] == value) continue;
        std::string differs = "the saved card and this one have different ";
        differs.append(name).append(": ").append(saved[name]).append(" and ").append(value);
        a.fail(differs);
      }
    } else {
      a.list("parameters", [&](auto write) {
        for (const auto& [name, value] : parameters_) {
          Parameter p{name, value};
          write(p);
        }
      });
    }
  }
  static const std::string& text(const std::string& s) { return s; }
  static std::string text(std::uint64_t n) { return std::to_string(n); }
  template <class Archive, class T>
  static void one(Archive& a, const char* name, T& own, const char* what) {
    if constexpr (Archive::kLoads) {
      T saved{};
      a(name, saved);
      if (saved != own)
        a.fail("the saved card and this one have different " + std::string(what) + ": " + text(saved) +
               " and " + text(own));
    } else {
      a(name, own);
    }
  }

  std::string link_, generation_, profile_;
  Parameters parameters_;
  std::uint64_t vfs_ = 0, sfs_ = 0, ports_ = 0, port_ = 0, node_guid_ = 0, mac_ = 0;
};

struct Card {
  explicit Card(hca& of) : card(of), made_as(of) {}
  hca& card;
  MadeAs made_as;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, made_as);
    if constexpr (Archive::kLoads) a.functions_are(card.model.functions());
    card.list_saved(a);
  }
};

struct File {
  const Cards& cards;

  template <class Archive>
  void list_state(Archive& a) {
    std::size_t next = 0;
    a.list("cards", [&](auto each) {
      if constexpr (Archive::kLoads) {
        a.check(next < cards.size(), "the state is of more cards than there are here");
        Card one(*cards[next++]);
        each(one);
      } else {
        for (hca* card : cards) {
          Card one(*card);
          each(one);
        }
      }
    });
    if constexpr (Archive::kLoads)
      a.check(next == cards.size(), "the state is of fewer cards than there are here");
    list_switches(a);
    // Behind cards and switches: queues that are made there take numbers of it.
    a("simulation", simulation());
    api::Simulation::instance().list_clock(a);
  }

 private:
  // Versions before 5 had none: no state was made where there was a switch.
  template <class Archive>
  static void list_switches(Archive& a) {
    const auto& switches = api::modelled_switches();
    std::size_t next = 0;
    const auto each = [&](auto one) {
      if constexpr (Archive::kLoads) {
        a.check(next < switches.size(), "the state is of more switches than there are here");
        one(*switches[next++]);
      } else {
        for (const auto& s : switches) one(*s);
      }
    };
    if constexpr (Archive::kLoads) {
      if (a.version() >= 5) a.list("switches", each);
      a.check(next == switches.size(), "the state is of fewer switches than there are here");
    } else {
      a.list("switches", each);
    }
  }
};

void load_into(const Cards& cards, std::string_view file) {
  TaggedReader reader(file);
  if (reader.version() == 0 || reader.version() > kVersion)
    throw StateError("the state is of version " + std::to_string(reader.version()) +
                     " of the card, and this is version " + std::to_string(kVersion));
  for (hca* card : cards) card->model.reset();
  StateLoad archive(reader);
  File{cards}.list_state(archive);
  archive.finish();
}

}  // namespace

std::string save(const Cards& cards) {
  // What is on its way has its bytes with it then, here as in the card that is loaded.
  for (hca* card : cards) card->model.dma().loans().settle_all();
  simulation().copies.make();
  Names names;
  StateNames naming(names);
  File all{cards};
  all.list_state(naming);
  TaggedWriter writer(kVersion);
  StateSave archive(writer, names);
  all.list_state(archive);
  return std::move(writer).finish();
}

void load(const Cards& cards, std::string_view file) {
  const std::string before = save(cards);
  for (hca* card : cards) card->loading = true;
  const auto loaded = [&] {
    for (hca* card : cards) card->loading = false;
    for (hca* card : cards) {
      card->wish_changed();
      if (card->uplink) card->uplink->loaded();
    }
  };
  try {
    load_into(cards, file);
  } catch (...) {
    load_into(cards, before);
    loaded();
    throw;
  }
  loaded();
}

}  // namespace hcasim::saved
