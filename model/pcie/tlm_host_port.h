// SPDX-License-Identifier: BSD-3-Clause
// A HostPort on a TLM-2.0 initiator socket, for SystemC platforms: DMA goes out as loosely timed transactions
// (the model has accounted for their time already), MSI-X by a callback.
#ifndef HCASIM_MODEL_PCIE_TLM_HOST_PORT_H
#define HCASIM_MODEL_PCIE_TLM_HOST_PORT_H

#include <tlm_utils/simple_initiator_socket.h>
#include <functional>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>

#include "model/pcie/host_port.h"

namespace hcasim {

class TlmHostPort : public sc_core::sc_module, public HostPort {
 public:
  using Msix = std::function<void(unsigned vector)>;
  using Log = std::function<void(int level, const std::string&)>;

  explicit TlmHostPort(const sc_core::sc_module_name& name) : sc_module(name), dma("dma") {}

  tlm_utils::simple_initiator_socket<TlmHostPort> dma;
  void on_msix(Msix handler) { msix_ = std::move(handler); }
  void on_log(Log handler) { log_ = std::move(handler); }

  bool dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept override {
    return access(tlm::TLM_READ_COMMAND, addr, static_cast<unsigned char*>(dst), len);
  }
  bool dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept override {
    return access(tlm::TLM_WRITE_COMMAND, addr, static_cast<unsigned char*>(const_cast<void*>(src)), len);
  }
  void msix(unsigned vector) noexcept override {
    if (msix_) msix_(vector);
  }
  void log(int level, const char* message) noexcept override {
    if (log_) log_(level, message);
  }

 private:
  bool access(tlm::tlm_command command, std::uint64_t addr, unsigned char* bytes, std::size_t len) noexcept {
    try {
      payload_.set_command(command);
      payload_.set_address(addr);
      payload_.set_data_ptr(bytes);
      payload_.set_data_length(static_cast<unsigned>(len));
      payload_.set_streaming_width(static_cast<unsigned>(len));
      payload_.set_byte_enable_ptr(nullptr);
      payload_.set_dmi_allowed(false);
      payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      dma->b_transport(payload_, delay);
      return payload_.is_response_ok();
    } catch (...) {
      return false;
    }
  }

  tlm::tlm_generic_payload payload_;
  Msix msix_;
  Log log_;
};

}  // namespace hcasim
#endif
