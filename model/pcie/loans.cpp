// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/loans.h"

namespace hcasim {

void Loans::borrow(Packet& p, const std::uint8_t* bytes, std::uint64_t from, FunctionId f,
                   std::uint32_t qpn) {
  p.loan_ = Loan{bytes, from, this, first_, &first_, qpn, f, false};
  if (first_) first_->loan_.link = &p.loan_.next;
  first_ = &p;
}

template <class Which>
void Loans::settle_if(Which which) {
  for (Packet* p = first_; p != nullptr;) {
    Packet* next = p->loan_.next;
    if (which(*p)) p->own();
    p = next;
  }
}

void Loans::settle_all() {
  settle_if([](const Packet&) { return true; });
}

void Loans::settle_all(FunctionId f) {
  settle_if([=](const Packet& p) { return p.loan_.function == f; });
}

void Loans::settle(FunctionId f, std::uint32_t qpn) {
  settle_if([=](const Packet& p) { return p.loan_.qpn == qpn && p.loan_.function == f; });
}

void Loans::release(FunctionId f, std::uint32_t qpn, std::uint32_t psn, std::uint32_t packets,
                    const void* queue) {
  for (Packet* p = first_; p != nullptr; p = p->loan_.next) {
    if (p->loan_.qpn == qpn && p->loan_.function == f && ((p->psn - psn) & kPsnMask) < packets &&
        p->landing != queue)
      p->loan_.released = released_ = true;
  }
}

void Loans::settle_the_released() {
  settle_if([](const Packet& p) { return p.loan_.released; });
  released_ = false;
}

}  // namespace hcasim
