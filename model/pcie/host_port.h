// SPDX-License-Identifier: BSD-3-Clause
// What the model needs of the host it is plugged into: the seam between the HCA and PCIe.
#ifndef HCASIM_MODEL_PCIE_HOST_PORT_H
#define HCASIM_MODEL_PCIE_HOST_PORT_H

#include <cstddef>
#include <cstdint>

#include "model/time.h"

namespace hcasim {

class HostPort {
 public:
  // Copies len bytes from / to bus address addr at once. False: the access was refused (completer abort,
  // IOMMU fault, bus mastering off); a read's destination is then undefined.
  virtual bool dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept = 0;
  virtual bool dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept = 0;
  // What dma_read() would bring, without effect on time or on anything else: for traces. Hosts whose
  // dma_read() is so need not tell apart.
  virtual bool peek(std::uint64_t addr, void* dst, std::size_t len) noexcept {
    return dma_read(addr, dst, len);
  }
  // How long the last access (dma_read(), dma_write(), dma_map(), msix()) took beyond what the profile gives
  // PCIe and memory; 0 from hosts without times of their own.
  Time took() const { return took_; }
  // Where the len bytes at bus address addr lie, if in one piece, and so that a copy from there is the same
  // as dma_read(), or (write) a copy to there the same as dma_write(); null otherwise. What is to be read may
  // be until Loans::settle_all(), what is to be written until the model gives up control.
  virtual std::uint8_t* dma_map(std::uint64_t /*addr*/, std::size_t /*len*/, bool /*write*/) noexcept {
    return nullptr;
  }
  // Whether dma_map() may ever give something.
  virtual bool maps() const noexcept { return false; }
  virtual void msix(unsigned vector) noexcept = 0;
  // A fault on PCIe that the host is to show. what: 0 correctable, 1 non-fatal, 2 fatal error, 5 non-fatal or
  // fatal as AER's severity register has it; 3: the card is pulled out, 4: put back. bit: of AER's status
  // register, with its name.
  virtual void pcie_error(unsigned /*what*/, std::uint32_t /*bit*/, const char* /*name*/) noexcept {}
  // A fault takes the port's cable out, or puts it in.
  virtual void cable(bool /*in*/) noexcept {}
  // level: 0 error, 1 warning, 2 information.
  virtual void log(int level, const char* message) noexcept = 0;

 protected:
  ~HostPort() = default;
  Time took_ = 0;
};

}  // namespace hcasim
#endif
