// SPDX-License-Identifier: BSD-3-Clause
// DC targets of the bare driver. Initiators are Qp of type kDci, whose sends name target and key (Av).
#ifndef HCASIM_DRIVER_BARE_DCT_H
#define HCASIM_DRIVER_BARE_DCT_H

#include "driver/bare/cq.h"
#include "driver/bare/srq.h"

namespace hcasim::bare {

struct DctOptions {
  std::uint64_t key = 0x1122334455667788;
  unsigned access = kRemoteRead | kRemoteWrite | kRemoteAtomic;
  unsigned mtu = 4096;  // bytes
  unsigned min_rnr_nak = 1;
  std::uint32_t user_index = 0xffffff;
  unsigned atomic_mode = 5;  // masked atomics of up to 2^5 bytes
  unsigned port = 1;         // by which answers leave, where ports are aggregated
};

class Dct {
 public:
  Dct(Device& device, const Pd& pd, Cq& cq, Srq& srq) : Dct(device, pd, cq, srq, DctOptions{}) {}
  Dct(Device& device, const Pd& pd, Cq& cq, Srq& srq, const DctOptions& options);
  ~Dct();
  Dct(const Dct&) = delete;
  Dct& operator=(const Dct&) = delete;

  std::uint32_t dctn() const { return dctn_; }
  std::uint64_t key() const { return options_.key; }
  CommandResult drain();
  CommandResult destroy();  // must be drained
  CommandResult query();
  CommandResult arm();

 private:
  CommandResult plain(std::uint16_t opcode, std::size_t out);
  Device& device_;
  DctOptions options_;
  std::uint64_t epoch_;
  std::uint32_t dctn_ = 0;
  bool live_ = false;
};

}  // namespace hcasim::bare
#endif
