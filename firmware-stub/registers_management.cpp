// SPDX-License-Identifier: BSD-3-Clause
// Registers of card management: what the card is, its reset, and its firmware image.
#include "firmware-stub/registers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/vpd.h"
#include "prm/management.h"

namespace hcasim::fw {

// ---- What the card is ----

namespace {
// As the vendor's tools sort chips, by the SerDes: ConnectX-4 and 5 (EDR), 6 (HDR), 7 (NDR).
std::uint32_t process_of(const Generation& g) {
  if (g.port_gbps >= 400) return prm::kProcess7nm;
  return g.has.ptys_extended ? prm::kProcess16nm : prm::kProcess28nm;
}
}  // namespace

Syndrome read_mgir(Access& a) {
  using r = prm::mgir;
  const Options& options = a.fw.options();
  const Generation& g = *options.generation;
  std::memset(a.data, 0, r::bytes);
  prm::set<r::device_hw_revision>(a.data, g.revision);
  prm::set<r::device_id>(a.data, options.device_id);
  prm::set<r::num_ports>(a.data, 1);
  prm::set<r::technology>(a.data, process_of(g));
  prm::set<r::hw_dev_id>(a.data, g.hw_id);
  prm::set<r::manufacturing_base_mac_47_32>(a.data, static_cast<std::uint32_t>(options.mac >> 32));
  prm::set<r::manufacturing_base_mac_31_0>(a.data, static_cast<std::uint32_t>(options.mac));
  const Time up = std::max<Time>(a.cmd.now - a.fw.image().booted(), 0);
  prm::set<r::uptime>(a.data, static_cast<std::uint32_t>(up / kSecond));
  std::memcpy(prm::ptr<r::psid>(a.data), g.psid, std::min<std::size_t>(std::strlen(g.psid), r::psid::bytes));
  const FirmwareVersion& version = a.fw.image().running();
  prm::set<r::extended_major>(a.data, version.major);
  prm::set<r::extended_minor>(a.data, version.minor);
  prm::set<r::extended_sub_minor>(a.data, version.subminor);
  return Syndrome::kOk;
}

// Strings, of which as much is read at a time as the register has room for.
Syndrome read_mqis(Access& a) {
  using r = prm::mqis;
  constexpr std::size_t string_at = r::info_string::bit_off / 8;
  const Options& options = a.fw.options();
  std::string text;
  switch (prm::get<r::info_type>(a.data)) {
    case prm::kMqisVpd: {
      const std::vector<std::uint8_t> vpd = vital_product_data(options);
      text.assign(vpd.begin(), vpd.end());
      break;
    }
    case prm::kMqisModelName:
      text = options.generation->part;
      break;
    case prm::kMqisModelDescription:
      text = product_description(options);
      break;
    case prm::kMqisImageVsd:
    case prm::kMqisDeviceVsd:
      break;  // nobody has written any
    default:
      return Syndrome::kRegisterValue;
  }
  const std::size_t from = std::min<std::size_t>(prm::get<r::read_offset>(a.data), text.size());
  const std::size_t len =
      std::min({std::size_t{prm::get<r::read_length>(a.data)}, text.size() - from, a.room - string_at});
  std::memset(a.data + string_at, 0, r::bytes - string_at);
  std::memcpy(a.data + string_at, text.data() + from, len);
  prm::set<r::info_length>(a.data, static_cast<std::uint32_t>(text.size()));
  prm::set<r::read_length>(a.data, static_cast<std::uint32_t>(len));
  return Syndrome::kOk;
}

// ---- Reset ----

Syndrome read_mfrl(Access& a) {
  using r = prm::mfrl_reg;
  enum : std::uint32_t { kFullChip = 1u << 0 };  // reset_type
  std::memset(a.data, 0, r::bytes);
  prm::set<r::reset_level>(a.data, prm::kMfrlPciLink | prm::kMfrlPerst);
  prm::set<r::reset_type>(a.data, kFullChip);
  prm::set<r::reset_state>(a.data, static_cast<std::uint32_t>(a.fw.sync_reset().state()));
  return Syndrome::kOk;
}

Syndrome write_mfrl(Access& a) {
  using r = prm::mfrl_reg;
  enum : std::uint32_t { kNoAnswer = 0, kYes = 1, kNo = 2 };
  const std::uint32_t level = prm::get<r::reset_level>(a.data);
  const std::uint32_t answer = prm::get<r::pci_sync_for_fw_update_resp>(a.data);
  static_assert(prm::mfrl::pci_sync_for_fw_update_start::bit_off + 1 ==
                r::pci_sync_for_fw_update_start::bit_off);
  const std::uint32_t flow = prm::get<prm::mfrl::pci_sync_for_fw_update_start>(a.data);
  // The ports go down with the card: rst_type_sel 1 would keep them.
  if (level == 0 || (level & ~std::uint32_t{prm::kMfrlPciLink | prm::kMfrlPerst}) != 0 ||
      prm::get<r::rst_type_sel>(a.data) != 0)
    return Syndrome::kRegisterValue;
  // Who writes this takes the link down, or has the machine reboot, by himself: a conventional reset, with
  // which the firmware starts anew in any case.
  if (answer == kNoAnswer && flow == prm::kMfrlLegacyFlow) return Syndrome::kOk;
  if (level != prm::kMfrlPciLink) return Syndrome::kRegisterValue;
  if (answer == kYes || answer == kNo) return a.fw.sync_reset().answer(answer == kYes);
  if (answer != kNoAnswer || flow != prm::kMfrlSyncedDriverFlow) return Syndrome::kRegisterValue;
  return a.fw.sync_reset().start(a.cmd.now, a.cmd.seq);
}

// ---- The firmware image ----

namespace {
constexpr std::uint32_t kBootImage = 1;  // mcqs_reg.identifier
}

// One component: the firmware's image.
Syndrome read_mcqs(Access& a) {
  using r = prm::mcqs_reg;
  enum : std::uint32_t { kIdle = 0, kPendingReset = 4, kInUse = 2 };
  if (prm::get<r::component_index>(a.data) != 0) return Syndrome::kRegisterValue;
  std::memset(a.data + 4, 0, r::bytes - 4);
  prm::set<r::last_index_flag>(a.data, 1);
  prm::set<r::identifier>(a.data, kBootImage);
  prm::set<r::component_status>(a.data, kInUse);
  prm::set<r::component_update_state>(a.data, a.fw.image().pending() ? kPendingReset : kIdle);
  return Syndrome::kOk;
}

Syndrome read_mcqi(Access& a) {
  using r = prm::mcqi_reg;
  enum : std::uint32_t { kCapabilities = 0, kVersion = 1 };  // info_type
  if (prm::get<r::component_index>(a.data) != 0) return Syndrome::kRegisterValue;
  if (prm::get<r::offset>(a.data) != 0) return Syndrome::kRegisterValue;
  // The data follow the register, as much of them as there is room for.
  std::array<std::uint8_t, prm::mcqi_version::bytes> info{};
  std::size_t size = 0;
  switch (prm::get<r::info_type>(a.data)) {
    case kCapabilities:
      // Written by hosts, not read.
      prm::set<prm::mcqi_cap::supported_info_bitmask>(info.data(), 1u << kCapabilities | 1u << kVersion);
      prm::set<prm::mcqi_cap::max_component_size>(info.data(), FirmwareImage::kMaxBytes);
      prm::set<prm::mcqi_cap::log_mcda_word_size>(info.data(), ComponentUpdate::kLogWord);
      prm::set<prm::mcqi_cap::mcda_max_write_size>(info.data(), ComponentUpdate::kMaxWrite);
      prm::set<prm::mcqi_cap::match_psid>(info.data(), 1);
      size = prm::mcqi_cap::bytes;
      break;
    case kVersion: {
      using v = prm::mcqi_version;
      const bool stored = prm::get<r::read_pending_component>(a.data) != 0;
      const FirmwareVersion& version = stored ? a.fw.image().stored() : a.fw.image().running();
      prm::set<v::version>(info.data(), version.packed());
      const std::string text = version.text();
      prm::set<v::version_string_length>(info.data(), static_cast<std::uint32_t>(text.size()));
      std::memcpy(info.data() + v::version_string::bit_off / 8, text.data(), text.size());
      size = v::bytes;
      break;
    }
    default:
      return Syndrome::kRegisterValue;
  }
  prm::set<r::info_size>(a.data, static_cast<std::uint32_t>(size));
  std::memcpy(a.data + r::bytes, info.data(), std::min(size, a.room - r::bytes));
  return Syndrome::kOk;
}

Syndrome read_mcc(Access& a) {
  a.fw.component_update().show(a.cmd.now, a.data);
  return Syndrome::kOk;
}

Syndrome write_mcc(Access& a) {
  ComponentUpdate& update = a.fw.component_update();
  const std::uint64_t stored = update.stored(), rejected = update.rejected();
  const Syndrome s = update.instruct(a.cmd.now, a.data, a.cmd.by_icmd());
  const FirmwareVersion& v = a.fw.image().stored();
  if (update.stored() != stored)
    a.fw.say(a.cmd.now, TraceString::kImageStored, {v.major, v.minor, v.subminor});
  if (update.rejected() != rejected) a.fw.say(a.cmd.now, TraceString::kImageRejected, {update.error()});
  return s;
}

// The data of a component, behind the register; drivers have room for the register alone in the answer.
Syndrome write_mcda(Access& a) {
  using r = prm::mcda_reg;
  constexpr std::size_t data_at = (prm::access_register_in::register_data::bit_off + r::data::bit_off) / 8;
  const std::size_t there = a.cmd.in_len > data_at ? a.cmd.in_len - data_at : 0;
  return a.fw.component_update().write(a.cmd.now, prm::get<r::update_handle>(a.data),
                                       prm::get<r::offset>(a.data), prm::get<r::size>(a.data),
                                       a.cmd.in.data() + data_at, there);
}

}  // namespace hcasim::fw
