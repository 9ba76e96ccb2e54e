// SPDX-License-Identifier: BSD-3-Clause
// Flow tables, groups, entries and counters as firmware installs them; their index for the match engine.
#include "model/steer/flow.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "model/steer/flow_match.h"
#include "model/steer/lookup_time.h"

namespace hcasim {

namespace {

// Who asks for one kind of VLAN tag asks that there is not the other kind: a mask of one with the value 0 is
// a frame without any (Linux: untagged of both).
template <class C, class S>
void ask_for_both(std::uint8_t* mask) {
  if (prm::get<C>(mask) == 0 && prm::get<S>(mask) == 0) return;
  prm::set<C>(mask, 1);
  prm::set<S>(mask, 1);
}

MatchParam with_tags(MatchParam mask) {
  using Layer = prm::fte_match_set_lyr_2_4;
  using Misc = prm::fte_match_set_misc;
  for (const unsigned block : {0u, 2u})
    ask_for_both<Layer::cvlan_tag, Layer::svlan_tag>(mask.data() + block * kMatchBlock);
  std::uint8_t* const misc = mask.data() + kMatchBlock;
  ask_for_both<Misc::outer_second_cvlan_tag, Misc::outer_second_svlan_tag>(misc);
  ask_for_both<Misc::inner_second_cvlan_tag, Misc::inner_second_svlan_tag>(misc);
  return mask;
}

// The words of the mask that its criteria name, from the start of the parameters on.
std::vector<FlowGroup::Word> words_of(const FlowGroup& group) {
  const auto all = with_tags(group.mask);
  std::vector<FlowGroup::Word> words;
  for (unsigned block = 0; block < 8; ++block) {
    if (!(group.criteria >> block & 1)) continue;
    for (unsigned i = 0; i < kMatchBlock; i += 4) {
      const unsigned at = block * kMatchBlock + i;
      std::uint32_t mask;
      std::memcpy(&mask, all.data() + at, sizeof mask);
      std::uint32_t own;
      std::memcpy(&own, group.mask.data() + at, sizeof own);
      if (mask) words.push_back({static_cast<std::uint16_t>(at), mask, own});
    }
  }
  return words;
}

void unindex(FlowGroup& group, std::uint32_t flow_index, const FlowEntry& entry) {
  const auto it = group.index.find(flow_hash(entry.key.data(), entry.key.size()));
  if (it != group.index.end() && it->second.erase(flow_index)) group.index.erase(it);
}

// The first of the table's groups, which do not overlap, that begins behind that flow index.
std::vector<FlowGroup*>::const_iterator first_behind(const FlowTable& table, std::uint32_t index) {
  return std::upper_bound(table.order.begin(), table.order.end(), index,
                          [](std::uint32_t i, const FlowGroup* group) { return i < group->first; });
}

}  // namespace

void FlowIndices::insert(std::uint32_t index) {
  if (index < lowest_) std::swap(index, lowest_);
  others_.insert(std::lower_bound(others_.begin(), others_.end(), index), index);
}

bool FlowIndices::erase(std::uint32_t index) {
  auto it = others_.begin();
  if (index != lowest_) {
    it = std::lower_bound(others_.begin(), others_.end(), index);
    if (it == others_.end() || *it != index) return false;
  } else if (others_.empty()) {
    return true;
  } else {
    lowest_ = *it;
  }
  others_.erase(it);
  return false;
}

bool FlowSteering::rebuild() {
  for (auto& [id, table] : tables_) {
    if (table.id != id) return false;
    table.order.clear();
    for (auto& [number, group] : table.groups) {
      if (group.id != number || !index_group(table, group)) return false;
    }
    for (auto& [index, entry] : table.entries) {
      const auto group = table.groups.find(entry.group);
      if (group == table.groups.end() || index < group->second.first || index > group->second.last)
        return false;
      index_entry(group->second, index, entry);
    }
  }
  return true;
}

FlowTable* FlowSteering::create_table(std::uint32_t id, FlowTableType type) {
  const auto [it, fresh] = tables_.try_emplace(id);
  if (!fresh) return nullptr;
  it->second.id = id;
  it->second.type = type;
  return &it->second;
}

bool FlowSteering::parts_ports() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const auto& t) { return t.second.parts_ports; });
}

FlowTable* FlowSteering::find_table(std::uint32_t id) {
  const auto it = tables_.find(id);
  return it == tables_.end() ? nullptr : &it->second;
}

bool FlowSteering::destroy_table(std::uint32_t id) {
  const auto it = tables_.find(id);
  if (it == tables_.end()) return false;
  tables_.erase(it);
  return true;
}

bool FlowSteering::fits(const FlowTable& table, const FlowGroup& group) {
  if (group.first > group.last || group.last >> std::min(table.log_size, 31u) != 0) return false;
  const auto behind = first_behind(table, group.last);
  return behind == table.order.begin() || (*std::prev(behind))->last < group.first;
}

bool FlowSteering::create_group(FlowTable& table, const FlowGroup& group) {
  if (!fits(table, group)) return false;
  const auto [it, fresh] = table.groups.try_emplace(group.id, group);
  return fresh && index_group(table, it->second);
}

bool FlowSteering::index_group(FlowTable& table, FlowGroup& group) {
  if (!fits(table, group)) return false;
  group.words = words_of(group);
  group.index.clear();
  criteria_ |= group.criteria;
  table.order.insert(first_behind(table, group.first), &group);
  return true;
}

bool FlowSteering::destroy_group(FlowTable& table, std::uint32_t group) {
  const auto it = table.groups.find(group);
  if (it == table.groups.end()) return false;
  const auto entry = table.entries.lower_bound(it->second.first);
  if (entry != table.entries.end() && entry->first <= it->second.last) return false;
  table.order.erase(std::prev(first_behind(table, it->second.first)));
  table.groups.erase(it);
  return true;
}

bool FlowSteering::set_entry(FlowTable& table, std::uint32_t index, const FlowEntry& entry) {
  const auto group_it = table.groups.find(entry.group);
  if (group_it == table.groups.end()) return false;
  FlowGroup& group = group_it->second;
  if (index < group.first || index > group.last) return false;
  const auto [it, fresh] = table.entries.try_emplace(index);
  if (!fresh) unindex(group, index, it->second);
  if (time_) time_->changed(LookupTime::entry_line(table.id, index));
  it->second = entry;
  index_entry(group, index, it->second);
  return true;
}

void FlowSteering::index_entry(FlowGroup& group, std::uint32_t index, FlowEntry& entry) {
  entry.index = index;
  entry.key.clear();
  for (const FlowGroup::Word& word : group.words)
    entry.key.push_back(flow_word(entry.value.data(), word) & word.own);
  const auto [it, fresh] = group.index.try_emplace(flow_hash(entry.key.data(), entry.key.size()), index);
  if (!fresh) it->second.insert(index);
}

bool FlowSteering::delete_entry(FlowTable& table, std::uint32_t index) {
  const auto it = table.entries.find(index);
  if (it == table.entries.end()) return false;
  const auto group = table.groups.find(it->second.group);
  if (group != table.groups.end()) unindex(group->second, index, it->second);
  if (time_) time_->changed(LookupTime::entry_line(table.id, index));
  table.entries.erase(it);
  return true;
}

namespace {
std::uint32_t root_key(FlowTableType type, std::uint16_t vport) {
  return std::uint32_t{vport} << 8 | static_cast<std::uint8_t>(type);
}
}  // namespace

bool FlowSteering::set_root(FlowTableType type, std::uint32_t table, std::uint16_t vport) {
  if (table == 0) {
    roots_.erase(root_key(type, vport));
    return true;
  }
  const FlowTable* t = find_table(table);
  if (!t || t->type != type || t->vport != vport) return false;
  roots_[root_key(type, vport)] = table;
  return true;
}

std::uint32_t FlowSteering::root(FlowTableType type, std::uint16_t vport) const {
  const auto it = roots_.find(root_key(type, vport));
  return it == roots_.end() ? 0 : it->second;
}

bool FlowSteering::create_counter(std::uint32_t id) { return counters_.try_emplace(id).second; }

bool FlowSteering::destroy_counter(std::uint32_t id) { return counters_.erase(id) != 0; }

FlowCounter* FlowSteering::counter(std::uint32_t id) {
  const auto it = counters_.find(id);
  return it == counters_.end() ? nullptr : &it->second;
}

bool FlowSteering::of_nic_alone() const {
  const auto is_of_nic = [](FlowTableType type) {
    switch (type) {
      case FlowTableType::kNicRx:
      case FlowTableType::kNicTx:
      case FlowTableType::kSnifferRx:
      case FlowTableType::kSnifferTx:
      case FlowTableType::kRdmaRx:
      case FlowTableType::kRdmaTx:
        return true;
      default:
        return false;
    }
  };
  return std::all_of(tables_.begin(), tables_.end(), [&](const auto& numbered) {
    const FlowTable& table = numbered.second;
    return is_of_nic(table.type) &&
           std::all_of(table.entries.begin(), table.entries.end(), [](const auto& e) {
             return std::none_of(
                 e.second.destinations.begin(), e.second.destinations.end(), [](const FlowDestination& d) {
                   return d.type == FlowDestination::kVport || d.type == FlowDestination::kUplink;
                 });
           });
  });
}

void FlowSteering::clear() {
  tables_.clear();
  roots_.clear();
  counters_.clear();
  modify_headers.clear();
  reformats.clear();
  samplers.clear();
  meters.clear();
  definers.clear();
  header_arguments.clear();
  geneve_option = {};
  criteria_ = 0;
  verdict_ = {};
}

}  // namespace hcasim
