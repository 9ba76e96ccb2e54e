// SPDX-License-Identifier: BSD-3-Clause
// Context memory that software writes itself: general objects SW_ICM, SYNC_STEERING.
#include "firmware-stub/objects/sw_icm.h"
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {
using SwIcmIn = prm::create_sw_icm_in;
using Out = prm::general_obj_out_cmd_hdr;
}  // namespace

// Where it lies in its area is the driver's choice.
Syndrome create_sw_icm(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t log_size = cmd.get<SwIcmIn::sw_icm::log_sw_icm_size>();
  if (log_size < SwIcm::kLogGranularity || log_size > SwIcm::log_size(SwIcm::kSteering))
    return Syndrome::kSwIcmRange;
  if (o.sw_icms.full()) return Syndrome::kSwIcmLimit;
  // What of it is written lies with the model, as far as its areas go: drivers that take large chunks would
  // have to give as much of their memory for nothing.
  if (!fw.pages().charge(kIcmSwIcm)) return Syndrome::kWaitPages;
  const std::uint64_t start = cmd.get<SwIcmIn::sw_icm::sw_icm_start_addr>();
  if (!fw.function().sw_steering().icm().allocate(start, std::uint64_t{1} << log_size)) {
    fw.pages().release(kIcmSwIcm);
    return Syndrome::kSwIcmRange;
  }
  std::uint32_t id = 0;
  SwIcmObject* object = o.sw_icms.create(id);
  object->start = start;
  object->log_size = log_size;
  cmd.put<Out::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome query_sw_icm(Firmware& fw, Command& cmd) {
  using c = SwIcmIn::sw_icm;  // behind a header of the same length
  static_assert(prm::general_obj_in_cmd_hdr::bytes == prm::general_obj_out_cmd_hdr::bytes);
  const SwIcmObject* object = fw.objects().sw_icms.find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (object == nullptr) return Syndrome::kSwIcmNumber;
  cmd.put<c::log_sw_icm_size>(object->log_size);
  cmd.put<c::sw_icm_start_addr>(object->start);
  return Syndrome::kOk;
}

// Keys and tables that still name the memory find nothing there.
Syndrome destroy_sw_icm(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const SwIcmObject* object = o.sw_icms.find(id);
  if (object == nullptr) return Syndrome::kSwIcmNumber;
  fw.function().sw_steering().icm().release(object->start);
  fw.pages().release(kIcmSwIcm);
  o.sw_icms.destroy(id);
  return Syndrome::kOk;
}

// Entries are read where they are written, and a frame's walk is never interrupted: nothing is to be waited
// for but the writes themselves.
Syndrome sync_steering(Firmware& fw, Command& cmd) {
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  fw.quiesce();
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
