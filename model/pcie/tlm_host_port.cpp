// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/tlm_host_port.h"

#include <algorithm>
#include <cstring>

#include "model/simulation_context.h"

namespace hcasim {

namespace {

constexpr std::size_t kMostRegions = 64;

Time ps(const sc_core::sc_time& t) { return static_cast<Time>(t.value()); }

void fill(tlm::tlm_generic_payload& payload, tlm::tlm_command command, std::uint64_t addr,
          unsigned char* bytes, std::size_t len) {
  payload.set_command(command);
  payload.set_address(addr);
  payload.set_data_ptr(bytes);
  payload.set_data_length(static_cast<unsigned>(len));
  payload.set_streaming_width(static_cast<unsigned>(len));
  payload.set_byte_enable_ptr(nullptr);
  payload.set_dmi_allowed(false);
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
}

}  // namespace

TlmHostPort::TlmHostPort(const sc_core::sc_module_name& name) : sc_module(name), dma("dma") {
  dma.register_invalidate_direct_mem_ptr(this, &TlmHostPort::invalidate);
}

// A payload of its own each time: while one waits in its target, an interrupt of another process may go out.
bool TlmHostPort::access(tlm::tlm_command command, std::uint64_t addr, unsigned char* bytes,
                         std::size_t len) noexcept {
  took_ = 0;
  if (!enabled_) return false;
  try {
    tlm::tlm_generic_payload payload;
    fill(payload, command, addr, bytes, len);
    const Time before = ps(sc_core::sc_time_stamp());
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    dma->b_transport(payload, delay);
    took_ = ps(sc_core::sc_time_stamp()) - before + ps(delay);
    if (!payload.is_response_ok()) return false;
    if (use_dmi_ && payload.is_dmi_allowed()) {
      payload.set_address(addr);  // an interconnect may have made it the target's own
      ask_for_dmi(payload);
    }
    return true;
  } catch (...) {
    return false;  // of a target: the access is refused
  }
}

void TlmHostPort::ask_for_dmi(tlm::tlm_generic_payload& payload) {
  tlm::tlm_dmi dmi;
  if (!dma->get_direct_mem_ptr(payload, dmi) || dmi.get_dmi_ptr() == nullptr ||
      regions_.size() == kMostRegions || dmi.get_granted_access() == tlm::tlm_dmi::DMI_ACCESS_NONE)
    return;
  // Accesses across the edge of two regions ask again.
  const bool known = std::any_of(regions_.begin(), regions_.end(), [&dmi](const tlm::tlm_dmi& r) {
    return r.get_start_address() == dmi.get_start_address() && r.get_end_address() == dmi.get_end_address() &&
           r.get_granted_access() == dmi.get_granted_access();
  });
  if (!known) regions_.push_back(dmi);
}

const tlm::tlm_dmi* TlmHostPort::region(std::uint64_t addr, std::size_t len, bool write) const {
  if (len == 0) return nullptr;
  for (const tlm::tlm_dmi& dmi : regions_) {
    if (addr >= dmi.get_start_address() && addr <= dmi.get_end_address() &&
        len - 1 <= dmi.get_end_address() - addr && (write ? dmi.is_write_allowed() : dmi.is_read_allowed()))
      return &dmi;
  }
  return nullptr;
}

void TlmHostPort::invalidate(sc_dt::uint64 first, sc_dt::uint64 last) {
  simulation().copies.make();
  if (settle_) settle_();
  regions_.erase(std::remove_if(regions_.begin(), regions_.end(),
                                [&](const tlm::tlm_dmi& dmi) {
                                  return dmi.get_start_address() <= last && first <= dmi.get_end_address();
                                }),
                 regions_.end());
}

std::uint8_t* TlmHostPort::dma_map(std::uint64_t addr, std::size_t len, bool write) noexcept {
  took_ = 0;
  const tlm::tlm_dmi* dmi = enabled_ ? region(addr, len, write) : nullptr;
  if (!dmi) return nullptr;
  ++dmi_accesses_;
  took_ = ps(write ? dmi->get_write_latency() : dmi->get_read_latency());
  return dmi->get_dmi_ptr() + (addr - dmi->get_start_address());
}

bool TlmHostPort::dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept {
  if (const std::uint8_t* bytes = dma_map(addr, len, false)) {
    std::memcpy(dst, bytes, len);
    return true;
  }
  return access(tlm::TLM_READ_COMMAND, addr, static_cast<unsigned char*>(dst), len);
}

bool TlmHostPort::dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept {
  if (std::uint8_t* bytes = dma_map(addr, len, true)) {
    std::memmove(bytes, src, len);
    return true;
  }
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(src));
  // What lies in memory that is mapped may go while the target waits.
  try {
    if (!regions_.empty()) {
      bounce_.assign(bytes, bytes + len);
      bytes = bounce_.data();
    }
  } catch (...) {
    return false;
  }
  return access(tlm::TLM_WRITE_COMMAND, addr, bytes, len);
}

bool TlmHostPort::peek(std::uint64_t addr, void* dst, std::size_t len) noexcept {
  if (!enabled_) return false;
  try {
    tlm::tlm_generic_payload payload;
    fill(payload, tlm::TLM_READ_COMMAND, addr, static_cast<unsigned char*>(dst), len);
    return dma->transport_dbg(payload) == len;
  } catch (...) {
    return false;
  }
}

}  // namespace hcasim
