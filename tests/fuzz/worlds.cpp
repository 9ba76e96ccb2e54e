// SPDX-License-Identifier: BSD-3-Clause
#include "worlds.h"

#include "world_parts.h"

namespace hcasim::bare {

const std::vector<WorldKind>& world_kinds() {
  static const std::vector<WorldKind> kinds = {
      {WorldKind::kBoth, make_connected}, {WorldKind::kBoth, make_xrc},    {WorldKind::kBoth, make_dc},
      {WorldKind::kIb, make_tags},        {WorldKind::kBoth, make_keys},   {WorldKind::kBoth, make_paged},
      {WorldKind::kIb, make_management},  {WorldKind::kBoth, make_shares}, {WorldKind::kEth, make_frames},
      {WorldKind::kEth, make_software},
  };
  return kinds;
}

bool ends_all(std::uint16_t opcode) {
  switch (opcode) {
    case prm::op::INIT_HCA:
    case prm::op::TEARDOWN_HCA:
    case prm::op::ENABLE_HCA:
    case prm::op::DISABLE_HCA:
    case prm::op::MANAGE_PAGES:
    case prm::op::SET_HCA_CAP:
    case prm::op::SET_ISSI:
    case prm::op::CREATE_EQ:
    case prm::op::DESTROY_EQ:
      return true;
    default:
      return false;
  }
}

void drain(Cq& cq) {
  for (unsigned n = 0; n < 1000 && cq.poll(); ++n) {
  }
}

void let_go(Qp& qp, std::uint16_t first, Dice& dice, unsigned spoiling) {
  if (dice.chance(spoiling)) {
    const auto blocks = static_cast<std::uint16_t>(qp.sq_producer() - first);
    const auto block = static_cast<std::uint16_t>(dice.below(blocks));
    std::uint8_t* wqe = qp.sq_wqebb(static_cast<std::uint16_t>(first + block));
    // Mostly past the control segment's index and QPN, or little gets further.
    const bool head = block == 0 && !dice.chance(10);
    dice.spoil(wqe, prm::kWqebb, head ? 8 : 0);
    if (head && dice.chance(15)) wqe[3] = dice.byte() & 0x3f;                         // opcode
    if (head && dice.chance(15)) wqe[7] = static_cast<std::uint8_t>(dice.below(64));  // size
  }
  qp.ring_doorbell();
}

void Joined::revive(Dice& dice) {
  if (!dice.chance(10) && a.state() != QpState::kErr && b.state() != QpState::kErr) return;
  a.to_reset();
  b.to_reset();
  drain(a.send_cq());
  drain(b.recv_cq());
  connect_pair(a, b, attr);
}

SendWr some_wr(const Pair& p, Dice& dice) {
  static constexpr std::array<WqeOp, 9> kOps{WqeOp::kSend,      WqeOp::kSendImm,      WqeOp::kRdmaWrite,
                                             WqeOp::kRdmaRead,  WqeOp::kAtomicCs,     WqeOp::kAtomicFa,
                                             WqeOp::kSendInval, WqeOp::kRdmaWriteImm, WqeOp::kSend};
  WqeOp op = dice.pick(kOps);
  if (op == WqeOp::kSendInval && dice.chance(90)) op = WqeOp::kSend;  // the key may not be invalidated
  const bool atomic = op == WqeOp::kAtomicCs || op == WqeOp::kAtomicFa;
  const std::size_t off = dice.below(4096) & ~std::size_t{7};
  SendWr w =
      p.wr(op, off, atomic ? 8 : static_cast<std::uint32_t>(1 + dice.below(dice.chance(20) ? 20000 : 300)));
  if (!atomic && op != WqeOp::kRdmaRead && dice.chance(20)) {
    w.inline_data.assign(1 + dice.below(100), 0x5a);
    w.sges.clear();
  }
  w.imm = op == WqeOp::kSendInval ? p.bmr.key() : dice.word();
  w.fence = static_cast<unsigned>(dice.below(5));
  w.solicited = dice.chance(20);
  return w;
}

}  // namespace hcasim::bare
