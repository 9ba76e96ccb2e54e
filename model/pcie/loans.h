// SPDX-License-Identifier: BSD-3-Clause
// Payload that packets borrow from the host's memory instead of copying it. The DMA engine makes loans when
// payload is read, and ends them with whatever it writes; whoever changes what memory means (firmware, keys,
// a QP that fails) settles them.
#ifndef HCASIM_MODEL_PCIE_LOANS_H
#define HCASIM_MODEL_PCIE_LOANS_H

#include <cstdint>

#include "model/packet/packet.h"
#include "model/simulation_context.h"

namespace hcasim {

// Payload on its way that has not been copied: the packets of one HCA whose data() lies in its host's memory.
// They read it when it lands, as a card reads it again for a retransmission; so they must be done with it, or
// have a copy of their own, before anybody may think that the memory is free: settle_*().
class Loans final : public Lender {
 public:
  Loans() = default;
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  bool empty() const { return first_ == nullptr; }
  // The packet's payload_len bytes are those at `bytes`, which is bus address `from`. It is QP `qpn`'s of
  // function f.
  void borrow(Packet& packet, const std::uint8_t* bytes, std::uint64_t from, FunctionId f, std::uint32_t qpn);
  // All have a copy of their own when it returns,
  void settle_all();
  // ... those of the function do, ...
  void settle_all(FunctionId f);
  // ... those of the QP do, ...
  void settle(FunctionId f, std::uint32_t qpn);
  // The host may soon learn that it owns the memory again of those of the QP with PSNs [psn, psn + packets).
  // Those that `queue` holds do not mind: what is behind them there, such as the CQE that says so, is not
  // seen before them. The others have to be settled before anything is written to the host that may tell.
  void release(FunctionId f, std::uint32_t qpn, std::uint32_t psn, std::uint32_t packets, const void* queue);
  void settle_released() {
    if (released_) settle_the_released();
  }

  void before_read() override { simulation().copies.make(); }

 private:
  template <class Which>
  void settle_if(Which which);
  void settle_the_released();

  Packet* first_ = nullptr;
  bool released_ = false;  // there may be such
};

}  // namespace hcasim
#endif
