// SPDX-License-Identifier: BSD-3-Clause
// A world of link aggregation: a card's two ports as one, selected by queue or by tables, with one FDB for
// both or without, and cables that are pulled.
#include "eswitch_parts.h"

namespace hcasim::bare {
namespace {

constexpr unsigned kPortTable = 9;
constexpr std::uint32_t kOptLagAffinity = 1u << 15;  // MLX5_QP_OPTPAR_LAG_TX_AFF

class Aggregate : public World {
 public:
  Aggregate(Device& d, const Others& others) : first_(d), second_(*others.at(0), world_options()) {
    second_.probe();
    guests_.push_back(std::make_unique<Guest>(first_));
    guests_.push_back(std::make_unique<Guest>(second_));
    guests_.push_back(std::make_unique<Guest>(first_, 1, *others.at(1)));
    guests_.push_back(std::make_unique<Guest>(second_, 1, *others.at(2)));
    connect();
  }
  ~Aggregate() override {
    plain(prm::op::DESTROY_VPORT_LAG);
    plain(prm::op::DESTROY_LAG);
    for (Device* d : {&first_, &second_}) d->function().inject("link=up");
    unshare();
    while (!fdb_.empty()) fdb_.pop_back();
    while (!port_.empty()) port_.pop_back();
    while (!guests_.empty()) guests_.pop_back();
  }
  std::vector<Device*> parties() override { return {&second_, guests_[2]->own.get(), guests_[3]->own.get()}; }
  void work(Dice& dice) override {
    switch (dice.below(10)) {
      case 0:
      case 1:
        create(dice);
        break;
      case 2:
        plain(dice.chance(50) ? prm::op::CREATE_VPORT_LAG : prm::op::DESTROY_VPORT_LAG);
        break;
      case 3:
        plain(prm::op::DESTROY_LAG);
        break;
      case 4:
        modify(dice);
        break;
      case 5:
        (dice.chance(50) ? first_ : second_).function().inject(dice.chance(60) ? "link=up" : "link=down");
        break;
      case 6:
        port_tables(dice);
        break;
      case 7:
        switches(dice);
        break;
      default:
        affinity(dice);
    }
    Mailbox query(prm::op::QUERY_LAG, prm::query_lag_in::bytes);
    for (Device* d : {&first_, &second_}) d->exec(query, prm::query_lag_out::bytes);
    for (unsigned n = 0; n < 4; ++n) {
      Frame f = any_frame(dice);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 0);
      guests_[dice.below(guests_.size())]->send(f, dice);
    }
    if (dice.chance(60)) guests_[0]->write(*guests_[1], static_cast<std::uint32_t>(1 + dice.below(20'000)));
    first_.machine().advance(20'000);
    for (auto& g : guests_) {
      revive(*g->link);
      bare::drain(g->link->scq);
      bare::drain(*g->cq);
      drain(g->link->rcq);
    }
    if (guests_[0]->qp->state() == QpState::kErr || dice.chance(5)) {
      guests_[0]->qp->to_reset();
      guests_[1]->qp->to_reset();
      connect();
    }
  }

 private:
  void connect() {
    QpAttr attr;
    attr.ack_timeout = 6, attr.retry_count = 3;
    connect_pair(*guests_[0]->qp, *guests_[1]->qp, attr);
  }
  CommandResult plain(std::uint16_t opcode) {
    return first_.exec(Mailbox(opcode, prm::destroy_lag_in::bytes));
  }
  void create(Dice& dice) {
    using In = prm::create_lag_in;
    Mailbox in(prm::op::CREATE_LAG, In::bytes);
    const std::uint8_t how = dice.byte();
    in.set<In::ctx::tx_remap_affinity_1>(1 + (how & 1u))
        .set<In::ctx::tx_remap_affinity_2>(1 + (how >> 1 & 1u));
    in.set<In::ctx::port_select_mode>(how >> 2 & 1u).set<In::ctx::fdb_selection_mode>(how >> 3 & 1u);
    if (dice.chance(spoiling_)) in.set<In::ctx::active_port>(how >> 4);
    (dice.chance(95) ? first_ : second_).exec(in);
  }
  void modify(Dice& dice) {
    using In = prm::modify_lag_in;
    Mailbox in(prm::op::MODIFY_LAG, In::bytes);
    in.set<In::ctx::tx_remap_affinity_1>(1 + dice.below(2))
        .set<In::ctx::tx_remap_affinity_2>(1 + dice.below(2));
    in.set<In::ctx::active_port>(dice.byte() & 3u);
    first_.exec(in.set<In::field_select>(dice.chance(70) ? 1 : dice.byte() & 7u));
  }
  void affinity(Dice& dice) {
    const auto port = static_cast<std::uint32_t>(dice.below(3));
    guests_[0]->qp->modify(prm::op::RTS2RTS_QP, kOptLagAffinity,
                           [port](std::uint8_t* c) { prm::set<prm::qpc::lag_tx_port_affinity>(c, port); });
    using In = prm::modify_tis_in;
    Mailbox in(prm::op::MODIFY_TIS, In::bytes);
    in.set<In::tisn>(guests_[0]->link->tis.number()).set<In::bitmask::strict_lag_tx_port_affinity>(1);
    in.set<In::bitmask::lag_tx_port_affinity>(1).set<In::ctx::lag_tx_port_affinity>(port);
    first_.exec(in.set<In::ctx::strict_lag_tx_port_affinity>(dice.byte() & 1u));
  }
  // A root that splits what it gets by a hash.
  void port_tables(Dice& dice) {
    plain(prm::op::DESTROY_LAG);  // they are in use
    while (!port_.empty()) port_.pop_back();
    try {
      port_.push_back(some_definer(first_, dice));
    } catch (const BareError&) {  // fields that the format has not
      return;
    }
    const std::uint32_t by = port_.back().number();
    port_.push_back(make_flow_table(first_, 1, 2, kPortTable));
    const std::uint32_t table = port_.back().number();
    using In = prm::create_flow_group_in;
    Mailbox in(prm::op::CREATE_FLOW_GROUP, In::bytes);
    in.set<In::table_type>(kPortTable).set<In::table_id>(table).set<In::match_definer_id>(by);
    in.set<In::group_type>(prm::k::CREATE_FLOW_GROUP_IN_GROUP_TYPE_HASH_SPLIT).set<In::end_flow_index>(1);
    const auto id = static_cast<std::uint32_t>(first_.exec(in, prm::create_flow_group_out::bytes)
                                                   .must()
                                                   .get<prm::create_flow_group_out::group_id>());
    port_.emplace_back(first_, id, [this, table, id] {
      using Gone = prm::destroy_flow_group_in;
      Mailbox gone(prm::op::DESTROY_FLOW_GROUP, Gone::bytes);
      return first_.exec(
          gone.set<Gone::table_type>(kPortTable).set<Gone::table_id>(table).set<Gone::group_id>(id));
    });
    for (std::uint32_t i = 0; i < 2; ++i) {
      FlowRule r;
      r.table = table, r.group = id, r.index = i, r.type = kPortTable;
      r.to = {{FlowDest::kUplink, 0, static_cast<int>(kOwner * dice.below(2))}};
      port_.push_back(make_flow(first_, r));
    }
    set_flow_root(first_, table, kPortTable);
  }
  CommandResult root_of_second(std::uint32_t table, std::uint32_t owner) {
    using In = prm::set_flow_table_root_in;
    Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, In::bytes);
    in.set<In::table_eswitch_owner_vhca_id_valid>(1).set<In::table_eswitch_owner_vhca_id>(owner);
    return second_.exec(in.set<In::table_id>(table).set<In::table_type>(kFdbTable));
  }
  void unshare() {
    Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, prm::set_flow_table_root_in::bytes, 1);
    second_.exec(in.set<prm::set_flow_table_root_in::table_type>(kFdbTable));
  }
  // An FDB of the first port's, which may be the second one's as well.
  void switches(Dice& dice) {
    while (!fdb_.empty()) fdb_.pop_back();
    if (dice.chance(20)) return;
    fdb_.push_back(make_flow_table(first_, 4, 0, kFdbTable, false, dice.chance(20)));
    const std::uint32_t table = fdb_.back().number();
    unsigned criteria = 0;
    const MatchParam mask = some_mask(dice, criteria, true);
    fdb_.push_back(make_flow_group(first_, table, 0, 7, criteria, mask, kFdbTable));
    const std::uint32_t some = fdb_.back().number();
    fdb_.push_back(make_flow_group(first_, table, 8, 8, 0, {}, kFdbTable));
    for (std::uint32_t i = 0; i < 4; ++i) {
      FlowRule r;
      r.table = table, r.group = i < 3 ? some : fdb_[2].number(), r.index = i < 3 ? i : 8, r.type = kFdbTable;
      if (i < 3) r.value = some_value(dice, mask);
      static constexpr std::array<std::uint32_t, 3> kVports{0, 1, kUplinkVport};
      r.to = {{FlowDest::kVport, dice.pick(kVports),
               dice.chance(50) ? static_cast<int>(kOwner * dice.below(2)) : -1}};
      fdb_.push_back(make_flow(first_, r));
    }
    set_flow_root(first_, table, kFdbTable).must();
    if (dice.chance(70)) root_of_second(table, 0);
  }
  static constexpr unsigned kOwner = 2;  // vhca_id of the second port's manager

  Device& first_;
  Device second_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::deque<EthObject> port_, fdb_;
};

}  // namespace

std::unique_ptr<World> make_aggregate(Device& device, const Others& others) {
  return std::make_unique<Aggregate>(device, others);
}

}  // namespace hcasim::bare
