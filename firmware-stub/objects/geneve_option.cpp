// SPDX-License-Identifier: BSD-3-Clause
// General object GENEVE_TLV_OPT: the option of Geneve headers that rules match, one at a time.
#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"

namespace hcasim::fw {

namespace {
using OptionIn = prm::create_geneve_tlv_option_in::geneve_tlv_opt;
constexpr std::uint32_t kOption = 1;  // the object's number
}  // namespace

Syndrome create_geneve_option(Firmware& fw, Command& cmd) {
  GeneveOption& option = fw.function().flows().geneve_option;
  const std::uint32_t words = cmd.get<OptionIn::option_data_length>();
  if (words == 0 || words > kGeneveOptionWords) return Syndrome::kGeneveOptionLength;
  if (option.used) return Syndrome::kGeneveOptionLimit;
  option.used = true;
  option.option_class = static_cast<std::uint16_t>(cmd.get<OptionIn::option_class>());
  option.type = static_cast<std::uint8_t>(cmd.get<OptionIn::option_type>());
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(kOption);
  return Syndrome::kOk;
}

Syndrome query_geneve_option(Firmware& fw, Command& cmd) {
  const GeneveOption& option = fw.function().flows().geneve_option;
  if (cmd.get<prm::general_obj_in_cmd_hdr::obj_id>() != kOption || !option.used)
    return Syndrome::kGeneveOptionNumber;
  std::uint8_t* p = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<prm::geneve_tlv_option::option_class>(p, option.option_class);
  prm::set<prm::geneve_tlv_option::option_type>(p, option.type);
  prm::set<prm::geneve_tlv_option::option_data_length>(p, kGeneveOptionWords);
  return Syndrome::kOk;
}

Syndrome destroy_geneve_option(Firmware& fw, Command& cmd) {
  GeneveOption& option = fw.function().flows().geneve_option;
  if (cmd.get<prm::general_obj_in_cmd_hdr::obj_id>() != kOption || !option.used)
    return Syndrome::kGeneveOptionNumber;
  option = {};
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
