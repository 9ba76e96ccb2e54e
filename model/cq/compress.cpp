// SPDX-License-Identifier: BSD-3-Clause
// CQE compression: completions of frames of one receive queue that differ in little are written as a title
// CQE and arrays of mini CQEs. A block of n takes n places of the ring; written are the first (the title),
// the one behind it (the first array) and each eighth (the next arrays). No block goes past the ring's end:
// drivers that take several CQEs at once (DPDK's vectorized receive) do not look for the rest at its start.
#include <algorithm>
#include <cstring>

#include "model/cq/cq.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kFiller = 1u << 31;  // in byte_cnt of a striding RQ's CQE

// How far the stride index, or a cyclic RQ's WQE counter, moves behind this CQE. Of a striding RQ the upper
// half of byte_cnt counts strides, of a cyclic one it is zero.
std::uint16_t step(std::uint32_t byte_cnt) {
  const std::uint32_t strides = (byte_cnt & ~kFiller) >> 16;
  return static_cast<std::uint16_t>(strides != 0 ? strides : 1);
}

// What the mini CQEs tell, or what is lost with them, is no difference.
bool alike(const prm::Cqe& a, const prm::Cqe& b) {
  prm::Cqe x = a, y = b;
  for (prm::Cqe* c : {&x, &y}) {
    c->rss_hash_result = 0;
    c->rss_hash_type = 0;
    c->check_sum = 0;
    c->byte_cnt = 0;
    c->wqe_counter = 0;
    c->timestamp = 0;
  }
  return std::memcmp(&x, &y, sizeof x) == 0;
}

}  // namespace

bool CqUnit::hold(Time t, Cq& cq, const Completion& c, const prm::Cqe& cqe) {
  if (!c.frame || c.frame->alone || cqe.opcode() != prm::CqeOp::kRespSend || (cqe.byte_cnt & kFiller) != 0)
    return false;
  CqeBlock& b = *cq.block;
  const std::uint16_t counter = cqe.wqe_counter;
  if (!b.cqes.empty()) {
    const CqeBlock::One& last = b.cqes.back();
    const bool follows = b.format == prm::MiniFormat::kChecksumStride ||
                         counter == static_cast<std::uint16_t>(last.counter + step(last.byte_cnt));
    if (!follows || !alike(b.title, cqe)) close_block(t, cq);
    if (cq.error) return false;
  }
  if (b.cqes.empty()) {
    b.title = cqe;
    b.serial = ++serial_;
    b.solicited = false;
    blocks_.push(t + kBlockTime, Period{cq.cqn, cq.function, b.serial});
  }
  b.solicited = b.solicited || c.solicited;
  b.cqes.push_back(CqeBlock::One{cqe.rss_hash_result, cqe.byte_cnt, cqe.check_sum, counter,
                                 c.trace_qpn ? c.trace_qpn : c.qpn, c.wqe_serial});
  const std::uint32_t ring = 1u << cq.log_size, to_end = ring - (cq.producer & (ring - 1));
  if (b.cqes.size() >= std::min(kMaxBlock, to_end)) close_block(t, cq);
  return true;
}

// 64 bytes into the slot `index` places behind the producer.
bool CqUnit::write_slot(Time t, Cq& cq, std::uint32_t index, const void* bytes, bool group, Time& visible) {
  const std::uint32_t slot = (cq.producer + index) & ((1u << cq.log_size) - 1);
  const std::uint64_t offset =
      static_cast<std::uint64_t>(slot) * cq.cqe_size + (cq.cqe_size - sizeof(prm::Cqe));
  std::uint64_t addr = 0, run = 0;
  if (!cq.ring.locate(offset, addr, run) || run < sizeof(prm::Cqe)) {
    fail(t, cq, prm::EqeCqErr::kAccess);
    return false;
  }
  visible = dma_.post_write(t, addr, bytes, sizeof(prm::Cqe), {WriteOwner::kCq, cq.function, cq.cqn}, group);
  return true;
}

void CqUnit::close_block(Time t, Cq& cq) {
  if (!cq.block || cq.block->cqes.empty()) return;
  CqeBlock& b = *cq.block;
  const auto n = static_cast<std::uint32_t>(b.cqes.size());
  b.serial = 0;
  Time visible = t;
  for (std::uint32_t first = 0; n > 1 && first < n; first += prm::MiniCqe::kInSlot) {
    prm::MiniCqe minis[prm::MiniCqe::kInSlot] = {};
    static_assert(sizeof minis == sizeof(prm::Cqe));
    for (std::uint32_t i = first; i < std::min(n, first + prm::MiniCqe::kInSlot); ++i) {
      const CqeBlock::One& one = b.cqes[i];
      prm::MiniCqe& m = minis[i - first];
      m.byte_cnt = one.byte_cnt;
      m.info = b.format == prm::MiniFormat::kHash
                   ? one.hash
                   : static_cast<std::uint32_t>(one.check_sum) << 16 |
                         (b.format == prm::MiniFormat::kChecksumStride ? one.counter : 0u);
    }
    if (!write_slot(t, cq, first == 0 ? 1 : first, minis, true, visible)) {
      b.cqes.clear();
      return;
    }
  }
  // The title makes the block valid: last.
  prm::Cqe title = b.title;
  if (n > 1) {
    title.byte_cnt = n;
    title.op_own |= prm::Cqe::kFormatCompressed;
    compressed_ += n;
  }
  title.op_own = static_cast<std::uint8_t>(title.op_own | (cq.producer >> cq.log_size & 1));
  bool counts = false;
  const bool fire = fires(cq, n, b.solicited, counts);
  if (!write_slot(t, cq, 0, &title, fire, visible)) {
    b.cqes.clear();
    return;
  }
  cq.producer += n;
  prm::Cqe one = b.title;
  for (std::uint32_t i = 0; i < n; ++i) {
    one.byte_cnt = b.cqes[i].byte_cnt;
    one.wqe_counter = b.cqes[i].counter;
    trace_written(visible, cq, cq.producer - n + i, one, b.cqes[i].trace_qpn, b.cqes[i].wqe_serial);
  }
  b.cqes.clear();
  written(t, cq, b.solicited, counts, fire);
}

void CqUnit::on_block(Time due, const Period& block) {
  Cq* cq = find(block.function, block.cqn);
  if (cq && cq->block && cq->block->serial == block.serial && !cq->error) close_block(due, *cq);
}

}  // namespace hcasim
