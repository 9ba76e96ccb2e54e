// SPDX-License-Identifier: BSD-3-Clause
// General objects MATCH_DEFINER: header fields in one of the fixed layouts, for flow groups that split by
// hash.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"

namespace hcasim::fw {

namespace {
using DefinerIn = prm::create_match_definer_in::obj_context;
constexpr std::size_t kDefinerMask = DefinerIn::match_mask_format::bit_off / 8;
}  // namespace

Syndrome create_match_definer(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  MatchDefiner definer;
  definer.format = static_cast<std::uint16_t>(cmd.get<DefinerIn::format_id>());
  std::memcpy(definer.mask.data(), cmd.in.data() + kDefinerMask, definer.mask.size());
  if (!definer.known()) return Syndrome::kMatchDefinerFormat;
  if (o.match_definers.full()) return Syndrome::kMatchDefinerLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  o.match_definers.create(id)->definer = definer;
  fw.function().flows().definers[id] = definer;
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome query_match_definer(Firmware& fw, Command& cmd) {
  const MatchDefinerObject* object =
      fw.objects().match_definers.find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (object == nullptr) return Syndrome::kMatchDefinerNumber;
  std::uint8_t* p = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<prm::match_definer::format_id>(p, object->definer.format);
  std::memcpy(p + prm::match_definer::match_mask_format::bit_off / 8, object->definer.mask.data(),
              object->definer.mask.size());
  return Syndrome::kOk;
}

Syndrome destroy_match_definer(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const MatchDefinerObject* object = o.match_definers.find(id);
  if (object == nullptr) return Syndrome::kMatchDefinerNumber;
  if (object->referred()) return Syndrome::kMatchDefinerBusy;
  fw.function().flows().definers.erase(id);
  o.match_definers.destroy(id);
  fw.pages().release(kIcmFlow);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
