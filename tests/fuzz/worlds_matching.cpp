// SPDX-License-Identifier: BSD-3-Clause
// A world of flow tables of all of a function's types: entries that look at any fields and do anything, TIRs
// that hash by all fields, sniffers, tables of RoCE packets.
#include "flow_parts.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

class Matching : public World {
 public:
  explicit Matching(Device& d)
      : link_(d),
        second_(d, link_.pd, link_.rcq),
        rqt_(make_rqt(d, {link_.rq.rqn(), second_.rqn(), link_.rq.rqn(), second_.rqn()})),
        pair_(d),
        flows_(d, link_.pd, &link_.sq, &link_.scq) {
    for (unsigned i = 0; i < 8; ++i) {
      TirSpec s;
      s.rqt = rqt_.number();
      s.transport_domain = link_.td.number();
      s.hash_fn = i < 6 ? 2 : 1;
      s.ipv6 = (i & 1) != 0;
      s.udp = (i & 2) != 0;
      s.symmetric = i == 4;
      s.fields = i < 4 ? 15 : i == 4 ? 3 : 12;
      for (std::size_t k = 0; k < s.key.size(); ++k) s.key[k] = static_cast<std::uint8_t>(k * 37 + i);
      hashing_.push_back(make_tir(d, s));
    }
    hashing_.push_back(link_.tir_of_all());
  }
  ~Matching() override { take_down(); }
  void work(Dice& dice) override {
    if (!built_ || dice.chance(25)) rebuild(dice);
    if (dice.chance(15)) flows_.set_meter(dice);
    for (unsigned n = 0; n < 4; ++n) {
      link_.rq.post({link_.rx_sge(0, 16384)});
      second_.post({link_.rx_sge(16384, 16384)});
      Frame f = any_frame(dice);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
      send_somehow(link_, f, dice);
    }
    pair_.b.post_recv({pair_.bsge(0, 4096)});
    if (dice.chance(30)) post(pair_.a, some_wr(pair_, dice), dice, spoiling_ / 2);
    link_.dev.machine().advance(5'000);
    if (dice.chance(20)) {
      pair_.a.to_reset();
      pair_.b.to_reset();
      connect_pair(pair_.a, pair_.b);
    }
    revive(link_);
    if (second_.state() != 1) {
      second_.modify(3, 0);
      second_.modify(0, 1);
    }
    flows_.query(dice);
    for (Cq* cq : {&link_.scq, &pair_.acq, &pair_.bcq}) bare::drain(*cq);
    drain(link_.rcq);
  }

 private:
  void take_down() {
    link_.rule.reset();
    entry_.reset();
    set_flow_root(link_.dev, link_.table.number());
    flows_.clear();
  }
  void rebuild(Dice& dice) {
    built_ = true;
    take_down();
    std::vector<FlowDest> to;
    for (const EthObject& t : hashing_) to.push_back({FlowDest::kTir, t.number()});
    const auto last = flows_.build(dice, kNicRxTable, 60, to);
    const auto other = flows_.build(dice, kNicRxTable, 59, to);
    to.push_back({FlowDest::kTable, last.number});
    to.push_back({FlowDest::kTable, last.number});
    if (const std::uint32_t sampler = flows_.sampler(dice, other, last); sampler != 0)
      to.push_back({FlowDest::kSampler, sampler});
    const auto first = flows_.build(dice, kNicRxTable, 50, to);
    FlowRule r;
    r.table = link_.table.number(), r.group = link_.all.number(), r.index = kCatchAll;
    r.to = {{FlowDest::kTable, first.number}};
    if (try_flow(link_.dev, r).ok())
      entry_ = std::make_unique<EthObject>(link_.dev, kCatchAll, [this, table = r.table] {
        using Gone = prm::delete_fte_in;
        Mailbox gone(prm::op::DELETE_FLOW_TABLE_ENTRY, Gone::bytes);
        return link_.dev.exec(gone.set<Gone::table_id>(table).set<Gone::flow_index>(kCatchAll));
      });
    const std::vector<FlowDest> tir{{FlowDest::kTir, link_.tir.number()}};
    for (const unsigned type : {kNicTxTable, kRdmaRxTable, kRdmaTxTable, kSnifferRxTable, kSnifferTxTable}) {
      if (!dice.chance(60)) continue;
      const bool sniffs = type == kSnifferRxTable || type == kSnifferTxTable;
      const auto behind = flows_.build(dice, type, 3, sniffs ? tir : std::vector<FlowDest>{});
      const auto root = flows_.build(dice, type, 1, {{FlowDest::kTable, behind.number}});
      if (root.number != 0) set_flow_root(link_.dev, root.number, type);
    }
  }

  struct Link : EthLink {
    using EthLink::EthLink;
    // A direct one, beside that of EthLink.
    EthObject tir_of_all() {
      TirSpec s;
      s.rqn = rq.rqn();
      s.transport_domain = td.number();
      return make_tir(dev, s);
    }
  } link_;
  EthRq second_;
  EthObject rqt_;
  std::vector<EthObject> hashing_;
  Pair pair_;
  std::unique_ptr<EthObject> entry_;
  Flows flows_;
  bool built_ = false;
};

}  // namespace

std::unique_ptr<World> make_matching(Device& device) { return std::make_unique<Matching>(device); }

}  // namespace hcasim::bare
