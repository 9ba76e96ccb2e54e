// SPDX-License-Identifier: BSD-3-Clause
// Tables of the type kPortSelection: by which of a card's ports a frame leaves. They change nothing about it,
// so that they may be asked at any time, from within a walk through other tables, too.
#include "model/steer/flow.h"
#include "model/steer/flow_match.h"

namespace hcasim {

// By the hash, one of all flow indices of the group; null: that one has no entry.
const FlowEntry* FlowSteering::split(const FlowTable& table, const FlowGroup& group,
                                     const SteeredFrame& frame) {
  const std::uint64_t entries = std::uint64_t{group.last} - group.first + 1;
  const auto entry =
      table.entries.find(group.first + static_cast<std::uint32_t>(group.definer.hash(frame) % entries));
  return entry != table.entries.end() ? &entry->second : nullptr;
}

FlowSteering::PortChoice FlowSteering::select_port(const SteeredFrame& frame) {
  MatchParam params{};
  unsigned filled = 0, work = kMaxWork;
  std::uint32_t id = root(FlowTableType::kPortSelection);
  for (unsigned hops = 0; id != 0 && hops < kMaxHops; ++hops) {
    const FlowTable* table = find_table(id);
    if (!table) break;
    unsigned criteria = 0;
    for (const FlowGroup* group : table->order) criteria |= group->criteria;
    if (criteria & ~filled) fill_match_param(frame, geneve_option, criteria & ~filled, params.data());
    filled |= criteria;
    const FlowEntry* entry = lookup(*table, params.data(), frame, nullptr, work);
    if (!entry && work == 0) break;
    if (!entry) {
      id = table->miss_to_table ? table->miss_table : 0;
      continue;
    }
    if (entry->destinations.empty()) break;
    const FlowDestination& to = entry->destinations.front();
    if (to.type == FlowDestination::kUplink) return to.other ? PortChoice::kOther : PortChoice::kOwn;
    id = to.type == FlowDestination::kTable ? to.id : 0;
  }
  return PortChoice::kNone;
}

}  // namespace hcasim
