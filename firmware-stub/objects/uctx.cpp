// SPDX-License-Identifier: BSD-3-Clause
// CREATE_UCTX, DESTROY_UCTX, and who owns what.
#include "firmware-stub/objects/uctx.h"

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

std::uint32_t UserContexts::space(ObjType type) {
  switch (type) {
    case ObjType::kSq:
      type = ObjType::kQp;
      break;
    case ObjType::kXrcSrq:
    case ObjType::kXrq:
    case ObjType::kSrq:
      type = ObjType::kRmp;
      break;
    default:
      break;
  }
  return static_cast<std::uint32_t>(type);
}

void UserContexts::own(std::uint32_t space, std::uint32_t number, std::uint16_t uid) {
  if (uid == 0) return;
  const auto [it, fresh] = owners_.try_emplace(key(space, number));
  if (fresh) it->second = {uid, Ref(table.find(uid))};
}

void UserContexts::disown(std::uint32_t space, std::uint32_t number) { owners_.erase(key(space, number)); }

std::uint16_t UserContexts::owner(std::uint32_t space, std::uint32_t number) const {
  const auto it = owners_.find(key(space, number));
  return it == owners_.end() ? 0 : it->second.uid;
}

Syndrome create_uctx(Firmware& fw, Command& cmd) {
  const std::uint32_t cap = cmd.get<prm::create_uctx_in::uctx::cap>();
  if ((cap & ~fw.caps().get<prm::cmd_hca_cap::uctx_cap>()) != 0) return Syndrome::kUctxCap;
  std::uint32_t uid = 0;
  UctxObject* uctx = fw.objects().users.table.create(uid);
  if (uctx == nullptr) return Syndrome::kUctxLimit;
  uctx->cap = cap;
  cmd.put<prm::create_uctx_out::uid>(uid);
  fw.trace_create(ObjType::kUctx, uid);
  return Syndrome::kOk;
}

// Its objects go first, one by one: each has its own way of coming to rest.
Syndrome destroy_uctx(Firmware& fw, Command& cmd) {
  const std::uint32_t uid = cmd.get<prm::destroy_uctx_in::uid>();
  const UctxObject* uctx = fw.objects().users.table.find(uid);
  if (uctx == nullptr) return Syndrome::kUid;
  if (uctx->referred()) return Syndrome::kUctxBusy;
  fw.objects().users.table.destroy(uid);
  fw.trace_destroy(ObjType::kUctx, uid);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
