// SPDX-License-Identifier: BSD-3-Clause
// General objects FLOW_SAMPLER: every frame goes on to one table, one in so many to another one too.
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/sw_icm.h"

namespace hcasim::fw {

namespace {

using In = prm::create_sampler_obj_in;
using Sampler = In::sampler_object;

Syndrome check_table(Firmware& fw, const Command& cmd, std::uint32_t id) {
  const FlowTable* table = fw.function().flows().find_table(id);
  if (table == nullptr || cmd.get<Sampler::table_type>() != static_cast<std::uint32_t>(table->type))
    return Syndrome::kFlowTableNumber;
  if (!UserContexts::may_use(cmd.uid, fw.objects().users.owner(ObjType::kFlowTable, id)))
    return Syndrome::kNotOwner;
  if (cmd.get<Sampler::ignore_flow_level>() == 0 && table->level <= cmd.get<Sampler::level>())
    return Syndrome::kFlowLevel;
  return Syndrome::kOk;
}

}  // namespace

Syndrome create_flow_sampler(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  FlowSampler s;
  s.ratio = cmd.get<Sampler::sample_ratio>();
  s.sample_table = cmd.get<Sampler::sample_table_id>();
  s.default_table = cmd.get<Sampler::default_table_id>();
  if (!samples(fw.options(), static_cast<FlowTableType>(cmd.get<Sampler::table_type>())))
    return Syndrome::kFlowTableType;
  if (s.ratio == 0) return Syndrome::kFlowSamplerRatio;
  for (const std::uint32_t id : {s.sample_table, s.default_table}) {
    const Syndrome syndrome = check_table(fw, cmd, id);
    if (syndrome != Syndrome::kOk) return syndrome;
  }
  if (o.flow_samplers.full()) return Syndrome::kFlowSamplerLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  FlowSamplerObject* object = o.flow_samplers.create(id);
  object->level = cmd.get<Sampler::level>();
  object->ignore_level = cmd.get<Sampler::ignore_flow_level>() != 0;
  object->tables = {Ref(o.flow_tables.find(s.sample_table)), Ref(o.flow_tables.find(s.default_table))};
  fw.function().flows().samplers[id] = s;
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome query_flow_sampler(Firmware& fw, Command& cmd) {
  using out = prm::query_sampler_obj_out::sampler_object;
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const FlowSamplerObject* object = fw.objects().flow_samplers.find(id);
  const auto it = fw.function().flows().samplers.find(id);
  if (object == nullptr || it == fw.function().flows().samplers.end()) return Syndrome::kFlowSamplerNumber;
  const FlowTable* samples = fw.function().flows().find_table(it->second.sample_table);
  cmd.put<out::table_type>(static_cast<std::uint32_t>(samples ? samples->type : FlowTableType::kNicRx));
  cmd.put<out::level>(object->level);
  cmd.put<out::ignore_flow_level>(object->ignore_level ? 1 : 0);
  cmd.put<out::sample_ratio>(it->second.ratio);
  cmd.put<out::sample_table_id>(it->second.sample_table);
  cmd.put<out::default_table_id>(it->second.default_table);
  cmd.put<out::sw_steering_icm_address_rx>(icm_address({IcmTarget::kSampler, id}));
  cmd.put<out::sw_steering_icm_address_tx>(icm_address({IcmTarget::kSampler, id}));
  return Syndrome::kOk;
}

Syndrome destroy_flow_sampler(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const FlowSamplerObject* object = o.flow_samplers.find(id);
  if (object == nullptr) return Syndrome::kFlowSamplerNumber;
  if (object->referred()) return Syndrome::kFlowSamplerBusy;
  fw.function().flows().samplers.erase(id);
  o.flow_samplers.destroy(id);
  fw.pages().release(kIcmFlow);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
