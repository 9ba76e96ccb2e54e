// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/fabric.h"

#include <algorithm>
#include <map>
#include <set>

#include "card/api/instance.h"

namespace hcasim::api {

namespace {

constexpr std::uint16_t kFirstLid = 1;

// SystemC modules cannot be deleted after elaboration.
std::vector<std::unique_ptr<Switch>>& switches() {
  static auto* list = new std::vector<std::unique_ptr<Switch>>;
  return *list;
}

bool ethernet(const hca& h) { return h.settings.firmware.link == fw::Link::kEthernet; }

bool fits(const std::vector<hca*>& members, std::string& why) {
  std::set<std::uint16_t> lids;
  std::set<std::uint64_t> guids;
  for (hca* h : members) {
    const std::string start = h->settings.name + ": switch=" + h->settings.switch_name + ": ";
    if (ethernet(*h) != ethernet(*members.front())) {
      why = start + "its HCAs have different link types";
      return false;
    }
    if (!guids.insert(h->firmware.port().node_guid()).second) {
      why = start + "two HCAs have the same node GUID";
      return false;
    }
    const std::uint16_t lid = h->settings.firmware.lid;
    if (lid != 0 && !lids.insert(lid).second) {
      why = start + "two HCAs want LID " + std::to_string(lid);
      return false;
    }
  }
  return true;
}

void give_lids(const std::vector<hca*>& members, Switch& fabric) {
  std::set<std::uint16_t> taken;
  for (const hca* h : members) taken.insert(h->settings.firmware.lid);
  std::vector<fw::PortAgent::Peer> nodes;
  std::uint16_t next = kFirstLid;
  for (hca* h : members) {
    std::uint16_t lid = h->settings.firmware.lid;
    if (lid == 0) {
      while (taken.count(next) != 0) ++next;
      lid = next++;
    }
    nodes.push_back({h->firmware.port().port_guid(), lid});
    fabric.assign(nodes.size() - 1, lid);
  }
  const auto manager = std::min_element(nodes.begin(), nodes.end(),
                                        [](const auto& a, const auto& b) { return a.guid < b.guid; });
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::vector<fw::PortAgent::Peer> others = nodes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    members[i]->firmware.port().assign(nodes[i].lid, manager->lid, std::move(others));
  }
}

void build(const std::string& name, const std::vector<hca*>& members) {
  const Profile::Port& port = members.front()->model.profile().port;
  Switch::Config config;
  config.ethernet = ethernet(*members.front());
  config.rate_gbps = port.packets_gbps(port.rate_gbps, !config.ethernet);
  config.lane_buffer = config.ethernet ? 0 : port.lane_buffer;
  switches().push_back(std::make_unique<Switch>(("switch_" + name).c_str(), config));
  Switch& fabric = *switches().back();
  for (hca* h : members) {
    Switch::Station station;
    station.cable = h->model.profile().port.wire_latency / 2;
    station.lane_buffer = config.ethernet ? 0 : h->model.profile().port.lane_buffer;
    station.lanes = [h]() -> const VirtualLanes* { return h->in_service ? &h->model.port().lanes : nullptr; };
    station.deliver = [h](Time t, PacketRef packet) {
      if (h->in_service) h->model.port().wire_receive(t, std::move(packet));
    };
    station.stop = [h](Time until) { h->model.port().pause(until); };
    station.room = [h](Time t, unsigned lane, std::uint32_t bytes) {
      if (h->in_service) h->model.port().made_room(t, lane, bytes);
    };
    h->connect(std::make_unique<SwitchEnd>(fabric, fabric.attach(std::move(station))));
  }
  if (!config.ethernet) give_lids(members, fabric);
}

}  // namespace

const std::vector<std::unique_ptr<Switch>>& modelled_switches() { return switches(); }

std::uint64_t SwitchEnd::lost() const {
  const Switch::Counters& c = fabric_.counters();
  return c.dropped_full + c.dropped_unknown;
}

bool join_switches(const std::vector<std::unique_ptr<hca>>& hcas, std::string& why) {
  std::map<std::string, std::vector<hca*>> members;
  for (const auto& h : hcas) {
    if (h->in_service && !h->settings.switch_name.empty())
      members[h->settings.switch_name].push_back(h.get());
  }
  for (const auto& [name, list] : members) {
    if (!fits(list, why)) return false;
  }
  for (const auto& [name, list] : members) build(name, list);
  return true;
}

}  // namespace hcasim::api
