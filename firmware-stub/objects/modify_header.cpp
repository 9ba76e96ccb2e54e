// SPDX-License-Identifier: BSD-3-Clause
// Modify header contexts: lists of changes to header fields, which flow entries name.
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/flow_types.h"
#include "model/steer/actions.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kWholeWord = 32;  // a length of 0

// False: no such action, or of a field or bits that do not exist.
bool read_fields(const std::uint8_t* p, FieldAction& a) {
  using set = prm::set_action_in;
  using add = prm::add_action_in;
  using copy = prm::copy_action_in;
  const auto fits = [](std::uint32_t field, unsigned offset, unsigned width) {
    return offset + width <= field_width(field);
  };
  const auto length = [](std::uint32_t bits) {
    return static_cast<std::uint8_t>(bits != 0 ? bits : kWholeWord);
  };
  a.field = prm::get<set::field>(p);
  switch (prm::get<set::action_type>(p)) {
    case FieldAction::kSet:
      a.type = FieldAction::kSet;
      a.offset = static_cast<std::uint8_t>(prm::get<set::offset>(p));
      a.width = length(prm::get<set::length>(p));
      a.data = prm::get<set::data>(p);
      return fits(a.field, a.offset, a.width);
    case FieldAction::kAdd:
      a.type = FieldAction::kAdd;
      a.data = prm::get<add::data>(p);
      return field_width(a.field) != 0;
    case FieldAction::kCopy:
      a.type = FieldAction::kCopy;
      a.from = prm::get<copy::src_field>(p);
      a.from_offset = static_cast<std::uint8_t>(prm::get<copy::src_offset>(p));
      a.field = prm::get<copy::dst_field>(p);
      a.offset = static_cast<std::uint8_t>(prm::get<copy::dst_offset>(p));
      a.width = length(prm::get<copy::length>(p));
      return fits(a.field, a.offset, a.width) && fits(a.from, a.from_offset, a.width);
    default:
      return false;
  }
}

bool read_action(const std::uint8_t* p, FieldAction& a) {
  return read_fields(p, a) && field_writable(a.field);
}

}  // namespace

Syndrome alloc_modify_header(Firmware& fw, Command& cmd) {
  using in = prm::alloc_modify_header_context_in;
  constexpr std::size_t kList = in::actions::bit_off / 8, kItem = prm::set_action_in::bytes;
  static_assert(prm::add_action_in::bytes == kItem && prm::copy_action_in::bytes == kItem);
  const FlowTypeCaps* type = flow_type(fw.options(), cmd.get<in::table_type>());
  if (type == nullptr || (type->actions & kFlowModify) == 0) return Syndrome::kFlowTableType;
  const std::uint32_t count = cmd.get<in::num_of_actions>();
  if (count == 0 || count > kModifyActions) return Syndrome::kModifyHeaderAction;
  if (cmd.in_len < kList + count * kItem) return Syndrome::kModifyHeaderList;
  std::vector<FieldAction> actions(count);
  for (std::uint32_t i = 0; i < count; ++i)
    if (!read_action(cmd.in.data() + kList + i * kItem, actions[i])) return Syndrome::kModifyHeaderAction;
  Objects& o = fw.objects();
  if (o.modify_headers.full()) return Syndrome::kModifyHeaderLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  o.modify_headers.create(id);
  fw.function().flows().modify_headers[id] = std::move(actions);
  cmd.put<prm::alloc_modify_header_context_out::modify_header_id>(id);
  fw.trace_create(ObjType::kModifyHeader, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome dealloc_modify_header(Firmware& fw, Command& cmd) {
  const std::uint32_t id = cmd.get<prm::dealloc_modify_header_context_in::modify_header_id>();
  const PlainObject* object = fw.objects().modify_headers.find(id);
  if (object == nullptr) return Syndrome::kModifyHeaderNumber;
  if (object->referred()) return Syndrome::kModifyHeaderBusy;
  fw.function().flows().modify_headers.erase(id);
  fw.objects().modify_headers.destroy(id);
  fw.pages().release(kIcmFlow);
  fw.trace_destroy(ObjType::kModifyHeader, id, cmd.uid);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
