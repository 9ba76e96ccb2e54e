// SPDX-License-Identifier: BSD-3-Clause
// ALLOC_MEMIC, DEALLOC_MEMIC, MODIFY_MEMIC: device memory.
#include "model/tpt/memic.h"

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

Syndrome alloc_memic(Firmware& fw, Command& cmd) {
  using in = prm::alloc_memic_in;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  const std::uint64_t size = cmd.get<in::memic_size>();
  const unsigned align = cmd.get<in::log_memic_addr_alignment>();  // of granules
  if (size == 0 || size % Memic::kGranule || size > kMaxMemic) return Syndrome::kMemicSize;
  if (align > kLogMemicAlign) return Syndrome::kMemicAlign;
  std::uint64_t addr = 0;
  if (!fw.function().memic().allocate(cmd.get<in::range_start_addr>(), cmd.get<in::range_size>(), size,
                                      align + Memic::kLogGranule, addr))
    return Syndrome::kMemicRange;
  fw.objects().memics.try_emplace(addr).first->second.set_number(addr);
  cmd.put<prm::alloc_memic_out::memic_start_addr>(addr);
  fw.trace_create(ObjType::kMemic, static_cast<std::uint32_t>(addr), cmd.uid);
  return Syndrome::kOk;
}

Syndrome dealloc_memic(Firmware& fw, Command& cmd) {
  using in = prm::dealloc_memic_in;
  const std::uint64_t addr = cmd.get<in::memic_start_addr>();
  const Memic::Area* area = fw.function().memic().find(addr);
  if (area == nullptr || area->size != cmd.get<in::memic_size>()) return Syndrome::kMemicAddress;
  const auto object = fw.objects().memics.find(addr);
  if (object == fw.objects().memics.end()) return Syndrome::kMemicAddress;
  if (object->second.referred()) return Syndrome::kMemicBusy;
  fw.objects().memics.erase(object);
  fw.function().memic().free(addr);
  fw.trace_destroy(ObjType::kMemic, static_cast<std::uint32_t>(addr), cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_memic(Firmware& fw, Command& cmd) {
  using in = prm::modify_memic_in;
  const unsigned op = cmd.get<in::memic_operation_type>();
  if (cmd.op_mod != prm::k::MODIFY_MEMIC_OP_MOD_ALLOC && cmd.op_mod != prm::k::MODIFY_MEMIC_OP_MOD_DEALLOC)
    return Syndrome::kOpMod;
  const std::uint64_t addr = cmd.get<in::memic_start_addr>();
  Memic::Area* area = fw.function().memic().find(addr);
  if (area == nullptr) return Syndrome::kMemicAddress;
  const bool give = cmd.op_mod == prm::k::MODIFY_MEMIC_OP_MOD_ALLOC;
  if (op >= kMemicOps || area->ops[op] == give) return Syndrome::kMemicOp;
  area->ops[op] = give;
  if (give)
    cmd.put<prm::modify_memic_out::memic_operation_addr>(Memic::window(static_cast<MemicOp>(op), addr));
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
