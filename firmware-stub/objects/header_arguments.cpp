// SPDX-License-Identifier: BSD-3-Clause
// General objects MODIFY_HEADER_ARG: arguments of rewriting lists, as many as the range says, 64 bytes each.
// Queues of their PD write them (FLOW_TABLE_ACCESS), entries of software name them.
#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"

namespace hcasim::fw {

namespace {
using Header = prm::general_obj_in_cmd_hdr;
using ArgumentIn = prm::create_modify_header_arg_in::arg;
// Each object has the numbers of the largest one, from which its own is counted.
constexpr std::uint32_t first_of(std::uint32_t object) { return object << kLogHeaderArguments; }
static_assert(first_of(1u << kLogHeaderArgumentObjects) < 1u << 24);  // what entries have room for
}  // namespace

Syndrome create_header_arguments(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t range = cmd.get<Header::op_param::create::log_obj_range>();
  const std::uint32_t pd = cmd.get<ArgumentIn::access_pd>();
  if (range > kLogHeaderArguments) return Syndrome::kGeneralFeature;
  if (o.pds.find(pd) == nullptr) return Syndrome::kPdNumber;
  if (!UserContexts::may_use(cmd.uid, o.users.owner(ObjType::kPd, pd))) return Syndrome::kNotOwner;
  if (o.header_arguments.full()) return Syndrome::kHeaderArgumentLimit;
  const std::uint64_t bytes = std::uint64_t{prm::kHeaderArgument} << range;
  if (!fw.pages().charge(bytes)) return Syndrome::kWaitPages;
  std::uint32_t n = 0;
  HeaderArgumentObject* object = o.header_arguments.create(n);
  object->pd = Ref(o.pds.find(pd));
  object->bytes = bytes;
  fw.function().flows().header_arguments.create(first_of(n), 1u << range, pd);
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(first_of(n));
  return Syndrome::kOk;
}

Syndrome destroy_header_arguments(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<Header::obj_id>(), n = id >> kLogHeaderArguments;
  const HeaderArgumentObject* object = first_of(n) == id ? o.header_arguments.find(n) : nullptr;
  if (object == nullptr) return Syndrome::kHeaderArgumentNumber;
  fw.pages().release(object->bytes);
  fw.function().flows().header_arguments.destroy(id);
  o.header_arguments.destroy(n);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
