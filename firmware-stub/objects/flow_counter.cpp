// SPDX-License-Identifier: BSD-3-Clause
// Flow counters.
#include <algorithm>
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/key_memory.h"
#include "prm/user_commands.h"

namespace hcasim::fw {

namespace {

// First number of `count` free ones in a row; 0: none.
std::uint32_t find_room(const Objects& o, std::uint32_t count) {
  std::uint32_t first = kFirstBulkCounter;
  for (const auto& [at, bulk] : o.counter_bulks) {
    if (at - first >= count) break;
    first = at + bulk.count;
  }
  return first + count <= kFirstBulkCounter + kBulkCounters ? first : 0;
}

}  // namespace

// One, or a bulk of consecutive ones that are deallocated together by the first.
Syndrome alloc_flow_counter(Firmware& fw, Command& cmd) {
  using in = prm::alloc_flow_counter_in;
  Objects& o = fw.objects();
  const std::uint32_t units = cmd.get<in::flow_counter_bulk>();
  if (units > kCounterBulkUnits || cmd.get<in::flow_counter_bulk_log_size>() != 0)
    return Syndrome::kFlowCounterBulk;
  std::uint32_t id = 0;
  if (units == 0) {
    if (o.flow_counters.create(id) == nullptr) return Syndrome::kFlowCounterLimit;
    fw.function().flows().create_counter(id);
  } else {
    const std::uint32_t count = units * kCounterBulkUnit;
    id = find_room(o, count);
    if (id == 0) return Syndrome::kFlowCounterLimit;
    Objects::CounterBulk& bulk = o.counter_bulks[id];
    bulk.set_number(id);
    bulk.count = count;
    for (std::uint32_t i = 0; i < count; ++i) fw.function().flows().create_counter(id + i);
  }
  cmd.put<prm::alloc_flow_counter_out::flow_counter_id>(id);
  fw.trace_create(ObjType::kFlowCounter, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome dealloc_flow_counter(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::dealloc_flow_counter_in::flow_counter_id>();
  const auto bulk = o.counter_bulks.find(id);
  const PlainObject* object = bulk != o.counter_bulks.end() ? &bulk->second : o.flow_counters.find(id);
  if (object == nullptr) return Syndrome::kFlowCounterNumber;
  if (object->referred()) return Syndrome::kFlowCounterBusy;
  if (bulk != o.counter_bulks.end()) {
    for (std::uint32_t i = 0; i < bulk->second.count; ++i) fw.function().flows().destroy_counter(id + i);
    o.counter_bulks.erase(bulk);
  } else {
    fw.function().flows().destroy_counter(id);
    o.flow_counters.destroy(id);
  }
  fw.trace_destroy(ObjType::kFlowCounter, id, cmd.uid);
  return Syndrome::kOk;
}

// One counter, or a run of them (num_of_counters), in which numbers not allocated read as zero: into the
// answer, or to where a memory key leads.
Syndrome query_flow_counter(Firmware& fw, Command& cmd) {
  using in = prm::query_flow_counter_in;
  using out = prm::query_flow_counter_out;
  const std::uint32_t first = cmd.get<in::flow_counter_id>();
  const std::uint32_t run = cmd.get<in::num_of_counters>();
  const bool to_memory = cmd.get<prm::query_flow_counter_dump_to_memory>() != 0;
  if (run > 1u << kLogFlowCounterBulk || (run != 0 && first % 4 != 0)) return Syndrome::kFlowCounterBulk;
  const std::uint32_t n = std::max(run, 1u);
  auto& flows = fw.function().flows();
  if (run == 0 && flows.counter(first) == nullptr) return Syndrome::kFlowCounterNumber;
  if (!to_memory && !prm::fits<out::flow_statistics>(cmd.out_len, n - 1)) return Syndrome::kOutputShort;
  std::vector<std::uint8_t> block(to_memory ? n * prm::traffic_counter::bytes : 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    const FlowCounter* counter = flows.counter(first + i);
    if (counter == nullptr) continue;
    std::uint8_t* p = to_memory ? block.data() + i * prm::traffic_counter::bytes
                                : prm::at<out::flow_statistics>(cmd.out.data(), i);
    prm::set<prm::traffic_counter::packets>(p, counter->packets);
    prm::set<prm::traffic_counter::octets>(p, counter->bytes);
  }
  if (to_memory && !write_by_key(fw, cmd.now, cmd.get<prm::query_flow_counter_mkey>(),
                                 cmd.get<prm::query_flow_counter_address>(), block.data(), block.size(),
                                 {WriteOwner::kFirmware, fw.function().id(), cmd.slot}))
    return Syndrome::kFlowCounterMemory;
  if (cmd.get<in::clear>() != 0)
    for (std::uint32_t i = 0; i < n; ++i)
      if (FlowCounter* counter = flows.counter(first + i); counter != nullptr) *counter = {};
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
