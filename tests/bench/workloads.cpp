// SPDX-License-Identifier: BSD-3-Clause
#include "workloads.h"

#include <cstring>

namespace hcasim::bare {

namespace {

constexpr std::int64_t kQuantum = 1000;  // ns of simulated time run at a time

}  // namespace

InlineWrites::InlineWrites(Device& device, Device& peer, std::size_t qps, unsigned batch)
    : rig_(device, peer, qps, 1 << 20), batch_(batch) {
  std::memset(data_, 0x5a, sizeof data_);
  (*this)();
}

void InlineWrites::operator()() {
  const std::size_t qps = rig_.tx.size();
  for (std::size_t q = 0; q < qps; ++q) {
    Qp& qp = *rig_.tx[q];
    for (unsigned i = 0; i < batch_; ++i)
      qp.post_inline_write(data_, kInline, rig_.to_mr.start() + 64 * (q * batch_ + i), rig_.to_mr.key(),
                           i + 1 == batch_);
    qp.ring_doorbell();
  }
  rig_.drain(qps, kQuantum);
}

LargeWrites::LargeWrites(Device& device, Device& peer) : rig_(device, peer, 1, kArea) {
  for (unsigned i = 0; i < kLargeRounds; ++i) (*this)();
}

void LargeWrites::operator()() {
  for (unsigned i = 0; i < kLargeBatch; ++i) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{rig_.from_mr.start() + off_, rig_.from_mr.key(), kLarge}};
    w.raddr = rig_.to_mr.start() + off_;
    w.rkey = rig_.to_mr.key();
    rig_.tx[0]->post(w, false);
    off_ = (off_ + kLarge) % kArea;
  }
  rig_.tx[0]->ring_doorbell();
  rig_.drain(kLargeBatch, 10 * kQuantum);
}

}  // namespace hcasim::bare
