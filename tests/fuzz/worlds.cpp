// SPDX-License-Identifier: BSD-3-Clause
#include "worlds.h"

#include "world_parts.h"

namespace hcasim::bare {

namespace {

template <std::unique_ptr<World> (*Make)(Device&)>
std::unique_ptr<World> alone(Device& device, const Others&) {
  return Make(device);
}

}  // namespace

const std::vector<WorldKind>& world_kinds() {
  using K = WorldKind;
  static const std::vector<WorldKind> kinds = {
      {"connected", K::kBoth, K::kPlain, alone<make_connected>, "rx_packets"},
      {"xrc", K::kBoth, K::kPlain, alone<make_xrc>, "rx_packets"},
      {"dc", K::kBoth, K::kPlain, alone<make_dc>, "rx_packets"},
      {"tags", K::kIb, K::kPlain, alone<make_tags>, "tag_matched"},
      {"keys", K::kBoth, K::kPlain, alone<make_keys>, "rx_packets"},
      {"paged", K::kBoth, K::kPlain, alone<make_paged>,
       "page_faults_wqe page_faults_rdma page_faults_resumed"},
      {"management", K::kIb, K::kPlain, alone<make_management>, "wqes"},
      {"shares", K::kBoth, K::kPlain, alone<make_shares>, "rx_packets"},
      {"frames", K::kEth, K::kPlain, alone<make_frames>, "rx_packets"},
      {"software", K::kEth, K::kPlain, alone<make_software>, "rx_packets"},
      {"matching", K::kEth, K::kPlain, alone<make_matching>, "rx_packets"},
      {"receiving", K::kEth, K::kPlain, alone<make_receiving>, "rx_packets cqes_compressed"},
      {"congestion", K::kEth, K::kPlain, alone<make_congestion>, "injected_ecn cnp_sent cnp_handled"},
      {"registers", K::kBoth, K::kPlain, alone<make_registers>, ""},
      {"faults", K::kBoth, K::kPlain, alone<make_faults>, "faults_injected"},
      {"later-software", K::kEth, K::kLatest, alone<make_software>, "rx_packets"},
      {"splitting", K::kEth, K::kLatest, alone<make_splitting>, "rx_packets"},
      {"tls", K::kEth, K::kLatest, alone<make_tls>, "rx_packets"},
      {"ipsec", K::kEth, K::kLatest, alone<make_ipsec>, "ipsec_encrypted ipsec_decrypted"},
      {"ipsec-packets", K::kEth, K::kLatest, alone<make_ipsec_packets>, "ipsec_encrypted ipsec_decrypted"},
      {"macsec", K::kEth, K::kLatest, alone<make_macsec>, "macsec_encrypted macsec_decrypted"},
      {"psp", K::kEth, K::kLatest, alone<make_psp>, "psp_encrypted psp_decrypted"},
      {"switchdev", K::kEth, K::kSwitch, make_switchdev, "switch_lookups"},
      {"legacy", K::kEth, K::kSwitch, make_legacy, "rx_packets"},
      {"datagrams", K::kIb, K::kIpoib, alone<make_datagrams>, "rx_packets"},
      {"aggregate", K::kEth, K::kTwoPorts, make_aggregate, "tx_packets"},
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

unsigned drain(Cq& cq, bool (*counts)(const Completion&)) {
  unsigned good = 0;
  for (unsigned n = 0; n < 1000; ++n) {
    const auto c = cq.poll();
    if (!c) break;
    good += !c->error() && (counts == nullptr || counts(*c)) ? 1 : 0;
  }
  return good;
}

void World::drain(Cq& cq, bool (*counts)(const Completion&)) { good_ += bare::drain(cq, counts); }

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
