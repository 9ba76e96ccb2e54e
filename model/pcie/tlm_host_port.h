// SPDX-License-Identifier: BSD-3-Clause
// A HostPort on a TLM-2.0 initiator socket, for SystemC platforms. An access is one loosely timed
// transaction; the delay that it comes back with, and the time that its target spent in wait(), are reported
// by took(). Where a target grants DMI it is used. MSI-X and log lines go to handlers.
#ifndef HCASIM_MODEL_PCIE_TLM_HOST_PORT_H
#define HCASIM_MODEL_PCIE_TLM_HOST_PORT_H

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "model/pcie/host_port.h"

namespace hcasim {

class TlmHostPort : public sc_core::sc_module, public HostPort {
 public:
  using Msix = std::function<void(unsigned vector)>;
  using Log = std::function<void(int level, const std::string&)>;

  explicit TlmHostPort(const sc_core::sc_module_name& name);

  tlm_utils::simple_initiator_socket<TlmHostPort> dma;
  void on_msix(Msix handler) { msix_ = std::move(handler); }
  void on_log(Log handler) { log_ = std::move(handler); }
  // DMI is asked for when a target says that it grants it. A pointer given to the model must come back before
  // the target takes it away: `settle` does that (Loans::settle_all()).
  void use_dmi(std::function<void()> settle) {
    settle_ = std::move(settle);
    use_dmi_ = true;
  }
  // Off, every access is refused (bus master enable of the function).
  void set_enabled(bool on) { enabled_ = on; }

  bool dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept override;
  bool dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept override;
  // By transport_dbg().
  bool peek(std::uint64_t addr, void* dst, std::size_t len) noexcept override;
  std::uint8_t* dma_map(std::uint64_t addr, std::size_t len, bool write) noexcept override;
  bool maps() const noexcept override { return use_dmi_; }
  void msix(unsigned vector) noexcept override {
    took_ = 0;
    if (msix_) msix_(vector);
  }
  void log(int level, const char* message) noexcept override {
    if (log_) log_(level, message);
  }

  std::uint64_t dmi_accesses() const { return dmi_accesses_; }

 private:
  bool access(tlm::tlm_command command, std::uint64_t addr, unsigned char* bytes, std::size_t len) noexcept;
  const tlm::tlm_dmi* region(std::uint64_t addr, std::size_t len, bool write) const;
  void ask_for_dmi(tlm::tlm_generic_payload& payload);
  void invalidate(sc_dt::uint64 first, sc_dt::uint64 last);

  bool enabled_ = true, use_dmi_ = false;
  std::vector<tlm::tlm_dmi> regions_;
  std::vector<std::uint8_t> bounce_;
  std::uint64_t dmi_accesses_ = 0;
  std::function<void()> settle_;
  Msix msix_;
  Log log_;
};

}  // namespace hcasim
#endif
