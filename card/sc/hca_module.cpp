// SPDX-License-Identifier: BSD-3-Clause
#include "card/sc/hca_module.h"

#include <algorithm>
#include <cstring>

#include "card/sc/inner.h"
#include "model/agenda.h"

namespace hcasim::sc {

namespace {

static_assert(HcaModule::kRegisterBytes == ConfigSpace::kRegisterBytes &&
              HcaModule::kRegisterBytes == kBarSize && HcaModule::kMsixBytes == ConfigSpace::kMsixBytes);

// With SystemC's default actions it throws; whoever has changed them gets an exception all the same.
[[noreturn]] void refuse(const char* id, const std::string& text) {
  SC_REPORT_ERROR(id, text.c_str());
  throw std::invalid_argument(std::string(id) + ": " + text);
}

void check_time_resolution(const std::string& name) {
  const sc_core::sc_time one = sc_core::sc_get_time_resolution();
  if (one != sc_core::sc_time(1, sc_core::SC_PS))
    refuse("/hcasim/time_resolution",
           name + ": the model counts picoseconds; sc_set_time_resolution() has made the resolution " +
               one.to_string());
}

api::Parts parts_of(const std::string& name, const HcaConfig& config) {
  static unsigned number = 0;
  check_time_resolution(name);
  api::Parts parts;
  std::string why;
  if (!api::make_parts(config.options, number, parts, why)) refuse("/hcasim/config", name + ": " + why);
  const api::Settings& s = parts.settings;
  if (s.wire || s.host_wire || !s.cable.empty() || !s.switch_name.empty() || !s.card.empty() || s.coupled ||
      !s.record.empty())
    refuse("/hcasim/config", name +
                                 ": wire, cable, switch, card, coupled and record are not for a module of a "
                                 "platform: bind wire_out and wire_in");
  if (s.firmware.vfs != 0)
    refuse("/hcasim/config",
           name + ": vfs=" + std::to_string(s.firmware.vfs) + ": a module has one function, and no SR-IOV");
  if (s.firmware.sfs != 0)
    refuse("/hcasim/config",
           name + ": sfs=" + std::to_string(s.firmware.sfs) + ": a module has one function");
  if (s.firmware.ats)
    refuse("/hcasim/config", name + ": ats=on: a module's configuration space does not show ATS");
  if (!Agenda::choose({s.native, true})) {
    refuse("/hcasim/kernel",
           name + (Agenda::instance().alone()
                       ? ": this process has HCAs of the C API: SystemC's kernel is theirs"
                       : ": kernel=fast and kernel=native: it is the same for all HCAs of a process"));
  }
  ++number;
  return parts;
}

bool in_thread() {
  const auto kind = sc_core::sc_get_current_process_handle().proc_kind();
  return kind == sc_core::SC_THREAD_PROC_ || kind == sc_core::SC_CTHREAD_PROC_;
}

// Lets the caller's own time pass, if it is a thread.
void catch_up(sc_core::sc_time& delay) {
  if (delay == sc_core::SC_ZERO_TIME || !in_thread() || Agenda::in_turn()) return;
  sc_core::wait(delay);
  delay = sc_core::SC_ZERO_TIME;
}

}  // namespace

HcaModule::HcaModule(const sc_core::sc_module_name& name, const HcaConfig& setup)
    : sc_module(name),
      bar("bar"),
      config("config"),
      dma("dma"),
      reset("reset"),
      wire_in("wire_in"),
      wire_out("wire_out"),
      inner_(std::make_unique<Inner>(*this, parts_of(this->name(), setup), setup)) {
  SC_HAS_PROCESS(HcaModule);
  bar.register_b_transport(this, &HcaModule::bar_transport);
  bar.register_transport_dbg(this, &HcaModule::bar_peek);
  config.register_b_transport(this, &HcaModule::config_transport);
  config.register_transport_dbg(this, &HcaModule::config_peek);
  SC_METHOD(on_reset);
}

HcaModule::~HcaModule() = default;

void HcaModule::end_of_elaboration() { inner_->connect(); }

void HcaModule::start_of_simulation() { inner_->meet_peer(); }

// When the simulation starts, and whenever the level changes.
void HcaModule::on_reset() {
  if (reset.size() == 0) return;
  inner_->hold_in_reset(reset->read());
  next_trigger(reset->value_changed_event());
}

void HcaModule::bar_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const std::uint64_t address = payload.get_address();
  const unsigned len = payload.get_data_length();
  if (payload.get_byte_enable_ptr() != nullptr) {
    payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return;
  }
  if (len == 0 || len > (payload.is_write() ? Inner::kMostBytes : 8) || payload.get_streaming_width() < len) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  bool known = true;
  if (payload.is_write()) {
    known = inner_->write(sim_now() + static_cast<Time>(delay.value()), address, payload.get_data_ptr(), len);
  } else if (payload.is_read()) {
    catch_up(delay);
    inner_->wait_for_writes();
    known = inner_->read(address, payload.get_data_ptr(), len);
    delay += to_sc(inner_->read_latency());
  }
  payload.set_response_status(known ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

void HcaModule::config_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const unsigned len = payload.get_data_length();
  const auto offset = static_cast<unsigned>(payload.get_address() % ConfigSpace::kBytes);
  if (payload.get_byte_enable_ptr() != nullptr) {
    payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return;
  }
  if ((len != 1 && len != 2 && len != 4) || offset % len != 0 || payload.get_streaming_width() < len) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  catch_up(delay);
  inner_->wait_for_writes();
  std::uint32_t value = 0;
  if (payload.is_read()) {
    value = inner_->config_read(offset, len);
    std::memcpy(payload.get_data_ptr(), &value, len);
  } else if (payload.is_write()) {
    std::memcpy(&value, payload.get_data_ptr(), len);
    inner_->config_write(offset, value, len);
  }
  delay += to_sc(inner_->read_latency());
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

// Debug accesses read, and change nothing.
unsigned HcaModule::bar_peek(tlm::tlm_generic_payload& payload) {
  const unsigned len = payload.get_data_length();
  if (!payload.is_read() || len == 0 || len > 8) return 0;
  return inner_->peek(payload.get_address(), payload.get_data_ptr(), len) ? len : 0;
}

unsigned HcaModule::config_peek(tlm::tlm_generic_payload& payload) {
  const unsigned len = payload.get_data_length();
  if (!payload.is_read() || len > 4) return 0;
  const auto offset = static_cast<unsigned>(payload.get_address() % ConfigSpace::kBytes);
  const std::uint32_t value = inner_->config_peek(offset, len);
  std::memcpy(payload.get_data_ptr(), &value, len);
  return len;
}

void HcaModule::trace(sc_core::sc_trace_file* file) const { inner_->trace(file); }

std::uint64_t HcaModule::counter(const std::string& name) const { return inner_->counter(name); }

std::string HcaModule::statistics() const { return inner_->statistics(); }

}  // namespace hcasim::sc
