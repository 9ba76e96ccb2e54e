// SPDX-License-Identifier: BSD-3-Clause
// What worlds are made of.
#ifndef HCASIM_TESTS_FUZZ_WORLD_PARTS_H
#define HCASIM_TESTS_FUZZ_WORLD_PARTS_H

#include "tests/device/fixture.h"
#include "worlds.h"

namespace hcasim::bare {

// Takes the completions that are there; how many were without an error, and are such as to be counted.
unsigned drain(Cq& cq, bool (*counts)(const Completion&) = nullptr);
// Rings for the WQEs posted since `first`, one of them changed in `spoiling` per cent of cases.
void let_go(Qp& qp, std::uint16_t first, Dice& dice, unsigned spoiling);
// Any operation from a's memory to b's.
SendWr some_wr(const Pair& pair, Dice& dice);

template <class Wr>
void post(Qp& qp, const Wr& wr, Dice& dice, unsigned spoiling) {
  const std::uint16_t first = qp.sq_producer();
  qp.post(wr, false);
  let_go(qp, first, dice, spoiling);
}
inline void post(Qp& qp, const UmrWr& wr, Dice& dice, unsigned spoiling) {
  const std::uint16_t first = qp.sq_producer();
  qp.post_umr(wr, false);
  let_go(qp, first, dice, spoiling);
}
inline void post(Qp& qp, const std::vector<std::uint8_t>& raw, Dice& dice, unsigned spoiling) {
  const std::uint16_t first = qp.sq_producer();
  qp.post_raw(raw, static_cast<unsigned>((raw.size() + prm::kWqebb - 1) / prm::kWqebb), false);
  let_go(qp, first, dice, spoiling);
}

// Two QPs that are each other's other end, connected.
struct Joined {
  Joined(Qp& one, Qp& other, QpAttr how = {}) : a(one), b(other), attr(how) {
    attr.ack_timeout = 6;
    attr.retry_count = attr.rnr_retry = 3;
    connect_pair(a, b, attr);
  }
  // Connected again when one of them is in error, and now and then when none is.
  void revive(Dice& dice);
  Qp &a, &b;
  QpAttr attr;
};

// A WQE of these segments; opcode and size are put in.
template <class Segs>
std::vector<std::uint8_t> raw_wqe(Segs& segs, WqeOp op, const Qp& qp, std::uint32_t imm = 0) {
  segs.ctrl.set(op, qp.sq_producer(), qp.qpn(), sizeof segs / prm::kDs, prm::kCeAlways);
  segs.ctrl.imm = imm;
  std::vector<std::uint8_t> raw(sizeof segs);
  std::memcpy(raw.data(), &segs, sizeof segs);
  return raw;
}

}  // namespace hcasim::bare
#endif
