// SPDX-License-Identifier: BSD-3-Clause
// ENABLE, INIT, TEARDOWN, DISABLE and what else a driver says once.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/validate.h"

namespace hcasim::fw {

namespace {
enum : std::uint16_t { kGracefulClose = 0, kForceClose = 1, kPrepareFast = 2 };  // teardown_hca_in.profile
constexpr std::uint32_t kSupportedIssi = 1u << 0 | 1u << 1;
constexpr std::uint16_t kMaxIssi = 1;
constexpr std::uint32_t kIeeeVendorId = 0x0002c9;
}  // namespace

// A guest that crashed left everything as it was: enabling starts from power-on whatever the state. The
// command queue stays where the driver has just put it.
Syndrome enable_hca(Firmware& fw, Command& cmd) {
  if (const std::uint32_t id = cmd.get<prm::enable_hca_in::function_id>(); id != 0) {
    Firmware* vf = fw.managed(id);
    if (vf == nullptr) return Syndrome::kFunction;
    if (fw.state() != State::kInit) return Syndrome::kNotInitialized;
    if (vf->options().sf) return vf->activate(true);
    vf->set_enabled(true);
    return Syndrome::kOk;
  }
  if (const prm::VhcaState state = fw.sub_function().state;
      fw.options().sf && state != prm::VhcaState::kActive && state != prm::VhcaState::kInUse)
    return Syndrome::kSfState;
  if (fw.state() != State::kOff)
    fw.tracer().broke(traces::Rule::kEnableTwice, cmd.now, traces::RuleObject::kCommand, cmd.seq);
  fw.to_power_on();
  fw.set_state(State::kEnabled);
  return Syndrome::kOk;
}

Syndrome disable_hca(Firmware& fw, Command& cmd) {
  if (const std::uint32_t id = cmd.get<prm::disable_hca_in::function_id>(); id != 0) {
    Firmware* vf = fw.managed(id);
    if (vf == nullptr) return Syndrome::kFunction;
    if (vf->options().sf) return vf->activate(false);
    vf->set_enabled(false);
    return Syndrome::kOk;
  }
  if (fw.pages().given() != 0)
    fw.tracer().broke_value(traces::Rule::kPagesKept, cmd.now, traces::RuleObject::kCommand, cmd.seq,
                            fw.pages().given());
  fw.to_power_on();
  return Syndrome::kOk;
}

Syndrome init_hca(Firmware& fw, Command& cmd) {
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  if (fw.pages().given() < fw.pages().boot_pages() + fw.pages().init_pages()) return Syndrome::kInitPages;
  fw.objects().qps.limit((1u << fw.caps().get<prm::cmd_hca_cap::log_max_qp>()) - 128);
  fw.set_state(State::kInit);
  if (fw.sub_function().state == prm::VhcaState::kActive) fw.set_vhca_state(prm::VhcaState::kInUse);
  fw.port().start(fw.function(), fw.hca_vport().mac, fw.hca_vport().port_guid);
  fw.say(cmd.now, TraceString::kFunctionStarted, {fw.options().vhca_id});
  return Syndrome::kOk;
}

Syndrome teardown_hca(Firmware& fw, Command& cmd) {
  using out = prm::teardown_hca_out;
  switch (cmd.get<prm::teardown_hca_in::profile>()) {
    case kGracefulClose:
      if (const std::string left = objects_left(fw); !left.empty()) {
        fw.tracer().broke(traces::Rule::kTeardownObjects, cmd.now, traces::RuleObject::kCommand, cmd.seq,
                          left.data(), left.size());
      }
      if (const std::uint32_t left = fw.first_enabled(); left != 0)
        fw.tracer().broke_value(traces::Rule::kFunctionsLeft, cmd.now, traces::RuleObject::kCommand, cmd.seq,
                                left);
      [[fallthrough]];
    case kForceClose:
      fw.drop_objects();
      fw.set_state(State::kEnabled);
      fw.say(cmd.now, TraceString::kFunctionEnded,
             {fw.options().vhca_id, cmd.get<prm::teardown_hca_in::profile>()});
      cmd.put<out::state>(0);
      return Syndrome::kOk;
    case kPrepareFast:
      // Queues stop when the driver then writes nic_interface = DISABLED.
      cmd.put<out::state>(0);
      return Syndrome::kOk;
    default:
      return Syndrome::kTeardownProfile;
  }
}

Syndrome query_issi(Firmware& fw, Command& cmd) {
  using out = prm::query_issi_out;
  cmd.put<out::current_issi>(fw.issi);
  cmd.put<out::supported_issi_dw0>(kSupportedIssi);
  return Syndrome::kOk;
}

Syndrome set_issi(Firmware& fw, Command& cmd) {
  const auto v = cmd.get<prm::set_issi_in::current_issi>();
  if (v > kMaxIssi) return Syndrome::kIssi;
  fw.issi = static_cast<std::uint16_t>(v);
  return Syndrome::kOk;
}

Syndrome set_driver_version(Firmware& fw, Command& cmd) {
  using in = prm::set_driver_version_in;
  const char* text = reinterpret_cast<const char*>(cmd.in.data() + in::driver_version::bit_off / 8);
  fw.driver_version.assign(text, strnlen(text, in::driver_version::count));
  return Syndrome::kOk;
}

Syndrome query_adapter(Firmware& fw, Command& cmd) {
  using block = prm::query_adapter_out::query_adapter_struct;
  cmd.put<block::ieee_vendor_id>(kIeeeVendorId);
  cmd.put<block::vsd_vendor_id>(0x15b3);
  constexpr std::size_t psid = block::vsd_contd_psid::bit_off / 8;
  const char* text = fw.options().generation->psid;  // zeros behind it
  std::memcpy(cmd.out.data() + psid, text, strnlen(text, block::vsd_contd_psid::count));
  return Syndrome::kOk;
}

Syndrome nop(Firmware&, Command&) { return Syndrome::kOk; }

}  // namespace hcasim::fw
