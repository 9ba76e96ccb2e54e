// SPDX-License-Identifier: BSD-3-Clause
// The host as one function of a card reaches it: by the callbacks that its front end gave for it.
#ifndef HCASIM_CARD_API_FUNCTION_HOST_H
#define HCASIM_CARD_API_FUNCTION_HOST_H

#include <cstdint>

#include "card/api/hca_api.h"
#include "model/pcie/host_port.h"

struct hca;

namespace hcasim::api {

class FunctionHost final : public HostPort {
 public:
  FunctionHost(hca& card, unsigned number) : card_(card), number_(number) {}
  FunctionHost(const FunctionHost&) = delete;
  FunctionHost& operator=(const FunctionHost&) = delete;

  // Null: the function is not on the bus, and reaches nothing.
  void attach(const hca_host_ops* ops, void* opaque);

  bool dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept override;
  bool dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept override;
  std::uint8_t* dma_map(std::uint64_t addr, std::size_t len, bool write) noexcept override;
  bool maps() const noexcept override { return ops_.dma_map != nullptr; }
  void msix(unsigned vector) noexcept override;
  // What concerns the card as a whole goes to the host of its physical function.
  void log(int level, const char* message) noexcept override;
  void pcie_error(unsigned what, std::uint32_t bit, const char* name) noexcept override;
  void cable(bool in) noexcept override;

 private:
  bool reachable() const noexcept;
  std::uint64_t in_records() const noexcept;  // the function's number in recordings

  hca& card_;
  const unsigned number_;
  hca_host_ops ops_{};
  void* opaque_ = nullptr;
};

}  // namespace hcasim::api
#endif
