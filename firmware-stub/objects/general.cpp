// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/general.h"

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/general_handlers.h"
#include "firmware-stub/objects/sw_icm.h"
#include "prm/crypto.h"
#include "prm/qos.h"
#include "prm/transport_caps.h"

namespace hcasim::fw {

namespace {

using In = prm::general_obj_in_cmd_hdr;
using Out = prm::general_obj_out_cmd_hdr;

bool has_flow_tables(const Options& options) { return options.link == Link::kEthernet; }
bool has_sw_steering(const Options& options) {
  return options.link == Link::kEthernet && options.generation->sw_steering();
}
// Of rewriting lists, apart from their arguments.
bool has_patterns(const Options& options) {
  return has_sw_steering(options) && options.generation->has.ste != SteFormat::kConnectX5;
}
bool has_flow_rewrite(const Options& options) {
  return options.link == Link::kEthernet && options.generation->has.flow_rewrite;
}
bool encrypts(const Options& options) { return options.encrypts(); }
bool tracks_pages(const Options& options) { return options.tracks_pages(); }
bool has_definers(const Options& options) { return options.has_definers(); }

const GeneralType* find_type(const Firmware& fw, std::uint16_t type) {
  for (const GeneralType& t : general_types())
    if (t.type == type && (t.offered == nullptr || t.offered(fw.options()))) return &t;
  return nullptr;
}

}  // namespace

const std::vector<GeneralType>& general_types() {
  static const std::vector<GeneralType> types = {
#define HCASIM_GENERAL(name, type, in, out, offered, cap, create, modify, query, destroy) \
  {name, type, in, out, offered, cap, create, modify, query, destroy},
#include "firmware-stub/objects/general.def"
#undef HCASIM_GENERAL
  };
  return types;
}

std::uint64_t general_obj_types(const Options& options) {
  std::uint64_t bits = 0;
  for (const GeneralType& t : general_types())
    if (t.type < 64 && (t.offered == nullptr || t.offered(options))) bits |= std::uint64_t{1} << t.type;
  return bits;
}

Syndrome check_general_access(Firmware& fw, const Command& cmd) {
  const UserContexts& users = fw.objects().users;
  const auto type = static_cast<std::uint16_t>(cmd.get<In::obj_type>());
  const GeneralType* t = find_type(fw, type);
  if (t == nullptr) return Syndrome::kOk;  // the dispatch says so
  const UctxObject* uctx = fw.objects().users.table.find(cmd.uid);
  if (uctx == nullptr || (uctx->cap & t->uctx_cap) != t->uctx_cap) return Syndrome::kUctxCap;
  if (cmd.opcode == prm::op::CREATE_GENERAL_OBJECT) return Syndrome::kOk;
  return UserContexts::may_change(cmd.uid, users.owner_general(type, cmd.get<In::obj_id>()))
             ? Syndrome::kOk
             : Syndrome::kNotOwner;
}

Syndrome create_general_object(Firmware& fw, Command& cmd) {
  const auto type = static_cast<std::uint16_t>(cmd.get<In::obj_type>());
  const GeneralType* t = find_type(fw, type);
  if (t == nullptr || t->create == nullptr) return Syndrome::kGeneralType;
  // A function whose manager does not let it have IPsec.
  if (type == prm::k::GENERAL_OBJECT_TYPES_IPSEC && fw.caps().get<prm::cmd_hca_cap::ipsec_offload>() == 0)
    return Syndrome::kGeneralType;
  // Aliases of objects are not offered, nor ranges, but those that their handlers look at.
  std::uint32_t range = 0;
  if (type == prm::kGeneralReservedQpn || type == prm::k::OBJ_TYPE_HEADER_MODIFY_ARGUMENT)
    range = static_cast<std::uint32_t>(cmd.get<In::op_param::create::log_obj_range>()) << 24;
  if (prm::load32(cmd.in.data() + In::op_param::bit_off / 8) != range) return Syndrome::kGeneralFeature;
  if (cmd.in_len < t->min_in) return Syndrome::kInputShort;
  const Syndrome s = t->create(fw, cmd);
  if (s != Syndrome::kOk) return s;
  const std::uint32_t id = prm::get<Out::obj_id>(cmd.out.data());
  fw.objects().users.own_general(type, id, cmd.uid);
  ++fw.objects().general_objects;
  fw.trace_general(true, type, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_general_object(Firmware& fw, Command& cmd) {
  const GeneralType* t = find_type(fw, static_cast<std::uint16_t>(cmd.get<In::obj_type>()));
  if (t == nullptr || t->modify == nullptr) return Syndrome::kGeneralType;
  if (cmd.in_len < t->min_in) return Syndrome::kInputShort;
  return t->modify(fw, cmd);
}

Syndrome query_general_object(Firmware& fw, Command& cmd) {
  const GeneralType* t = find_type(fw, static_cast<std::uint16_t>(cmd.get<In::obj_type>()));
  if (t == nullptr || t->query == nullptr) return Syndrome::kGeneralType;
  if (prm::load32(cmd.in.data() + In::op_param::bit_off / 8) != 0) return Syndrome::kGeneralFeature;
  if (cmd.out_len < t->min_out) return Syndrome::kOutputShort;
  return t->query(fw, cmd);
}

Syndrome destroy_general_object(Firmware& fw, Command& cmd) {
  const auto type = static_cast<std::uint16_t>(cmd.get<In::obj_type>());
  const GeneralType* t = find_type(fw, type);
  if (t == nullptr || t->destroy == nullptr) return Syndrome::kGeneralType;
  const std::uint32_t id = cmd.get<In::obj_id>();
  const Syndrome s = t->destroy(fw, cmd);
  if (s != Syndrome::kOk) return s;
  fw.objects().users.disown_general(type, id);
  --fw.objects().general_objects;
  fw.trace_general(false, type, id, cmd.uid);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
