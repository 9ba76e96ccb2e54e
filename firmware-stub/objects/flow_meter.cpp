// SPDX-License-Identifier: BSD-3-Clause
// General objects FLOW_METER_ASO: two meters each. Queues of their PD set them (ACCESS_ASO), flow entries use
// them.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"

namespace hcasim::fw {

namespace {

using Meter = prm::create_flow_meter_aso_obj_in::flow_meter_aso_obj;

}  // namespace

Syndrome create_flow_meter(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  FlowMeters meters;
  meters.pd = cmd.get<Meter::meter_aso_access_pd>();
  if (o.pds.find(meters.pd) == nullptr) return Syndrome::kPdNumber;
  if (!UserContexts::may_use(cmd.uid, o.users.owner(ObjType::kPd, meters.pd))) return Syndrome::kNotOwner;
  constexpr std::size_t kAt = Meter::flow_meter_parameters::bit_off / 8;
  meters.write(cmd.in.data() + kAt, ~std::uint64_t{0});
  if (o.flow_meters.full()) return Syndrome::kFlowMeterLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  FlowMeterObject* object = o.flow_meters.create(id);
  object->pd = Ref(o.pds.find(meters.pd));
  fw.function().flows().meters[id] = meters;
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome query_flow_meter(Firmware& fw, Command& cmd) {
  const auto& all = fw.function().flows().meters;
  const auto it = all.find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (it == all.end()) return Syndrome::kFlowMeterNumber;
  std::uint8_t* p = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<prm::flow_meter_aso_obj::meter_aso_access_pd>(p, it->second.pd);
  std::memcpy(p + prm::flow_meter_aso_obj::flow_meter_parameters::bit_off / 8, it->second.parameters.data(),
              FlowMeters::kBytes);
  return Syndrome::kOk;
}

Syndrome destroy_flow_meter(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const FlowMeterObject* object = o.flow_meters.find(id);
  if (object == nullptr) return Syndrome::kFlowMeterNumber;
  if (object->referred()) return Syndrome::kFlowMeterBusy;
  fw.function().flows().meters.erase(id);
  o.flow_meters.destroy(id);
  fw.pages().release(kIcmFlow);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
