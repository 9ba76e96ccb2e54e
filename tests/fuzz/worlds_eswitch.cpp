// SPDX-License-Identifier: BSD-3-Clause
// Worlds of the E-Switch: an FDB as a driver in switchdev mode has it, with all that entries may do, and
// ACLs; and the legacy mode, of which vports are settled by commands.
#include "eswitch_parts.h"
#include "prm/qos.h"
#include "prm/vhca_state.h"

namespace hcasim::bare {
namespace {

class Switched : public World {
 public:
  Switched(Device& d, const Others& others) : pf_(d) {
    guests_.push_back(std::make_unique<Guest>(d));
    for (std::uint32_t vf = 1; vf <= others.size(); ++vf)
      guests_.push_back(std::make_unique<Guest>(d, vf, *others[vf - 1]));
    connect();
  }
  ~Switched() override {
    for (auto& g : guests_) g->link->rule.reset();
  }
  std::vector<Device*> parties() override {
    std::vector<Device*> all;
    for (auto& g : guests_)
      if (g->own) all.push_back(g->own.get());
    return all;
  }

 protected:
  Guest& some(Dice& dice) { return *guests_[dice.below(guests_.size())]; }
  void connect() {
    QpAttr attr;
    attr.ack_timeout = 6, attr.retry_count = 3;
    connect_pair(*guests_[1]->qp, *guests_[2]->qp, attr);
  }
  void traffic(Dice& dice) {
    for (unsigned n = 0; n < 4; ++n) {
      Frame f = any_frame(dice);
      Guest& from = some(dice);
      if (dice.chance(60)) to(f, some(dice).number);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 0);
      from.send(f, dice);
    }
    if (dice.chance(30)) guests_[1]->write(*guests_[2], static_cast<std::uint32_t>(1 + dice.below(20'000)));
    pf_.machine().advance(20'000);
    for (auto& g : guests_) {
      try {
        revive(*g->link);
        if (g->qp->state() == QpState::kErr || dice.chance(5)) {
          guests_[1]->qp->to_reset();
          guests_[2]->qp->to_reset();
          connect();
        }
      } catch (const BareError&) {  // it has none any more
      }
      bare::drain(g->link->scq);
      bare::drain(*g->cq);
      drain(g->link->rcq);
    }
  }
  static void to(Frame& f, std::uint32_t vport) {
    static constexpr std::uint8_t kMac[] = {0x02, 0, 0, 0, 0};
    std::copy(std::begin(kMac), std::end(kMac), f.begin());
    f[5] = static_cast<std::uint8_t>(0x10 + vport);
  }
  // Largest rate and share of a vport.
  void rates(Dice& dice) {
    using In = prm::create_scheduling_element_in;
    using C = In::scheduling_context;
    constexpr std::uint32_t kSwitch = 2, kTsar = 0, kVport = 1;
    const auto make = [&](std::uint32_t type, std::uint32_t parent, std::uint32_t vport, std::uint32_t mbps) {
      Mailbox in(prm::op::CREATE_SCHEDULING_ELEMENT, In::bytes);
      in.set<In::scheduling_hierarchy>(kSwitch).set<C::element_type>(type).set<C::parent_element_id>(parent);
      in.set<prm::sched_attributes<C>>(vport).set<C::max_average_bw>(mbps).set<C::bw_share>(dice.below(100));
      const CommandResult r = pf_.exec(in, prm::create_scheduling_element_out::bytes);
      return r.ok() ? static_cast<std::uint32_t>(
                          r.get<prm::create_scheduling_element_out::scheduling_element_id>())
                    : 0u;
    };
    if (elements_.empty()) elements_.push_back(make(kTsar, 0, 0, 0));
    if (elements_.size() < 3 && dice.chance(60))
      elements_.push_back(make(kVport, elements_.front(), static_cast<std::uint32_t>(elements_.size()),
                               static_cast<std::uint32_t>(dice.below(20'000))));
    using Modify = prm::modify_scheduling_element_in;
    Mailbox modify(prm::op::MODIFY_SCHEDULING_ELEMENT, Modify::bytes);
    modify.set<Modify::scheduling_hierarchy>(kSwitch).set<Modify::scheduling_element_id>(elements_.back());
    modify.set<Modify::modify_bitmask>(dice.byte() & 3u);
    modify.set<Modify::scheduling_context::max_average_bw>(dice.below(50'000));
    pf_.exec(modify.set<Modify::scheduling_context::bw_share>(dice.below(101)),
             prm::modify_scheduling_element_out::bytes);
    using Query = prm::query_scheduling_element_in;
    Mailbox query(prm::op::QUERY_SCHEDULING_ELEMENT, Query::bytes);
    query.set<Query::scheduling_hierarchy>(kSwitch).set<Query::scheduling_element_id>(elements_.back());
    pf_.exec(query, prm::query_scheduling_element_out::bytes);
    if (elements_.size() < 3 || !dice.chance(30)) return;
    for (; !elements_.empty(); elements_.pop_back()) {
      using Gone = prm::destroy_scheduling_element_in;
      Mailbox gone(prm::op::DESTROY_SCHEDULING_ELEMENT, Gone::bytes);
      gone.set<Gone::scheduling_hierarchy>(kSwitch).set<Gone::scheduling_element_id>(elements_.back());
      pf_.exec(gone, prm::destroy_scheduling_element_out::bytes);
    }
  }

  Device& pf_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<std::uint32_t> elements_;
};

class Switchdev : public Switched {
 public:
  Switchdev(Device& d, const Others& others)
      : Switched(d, others), flows_(d, guests_[0]->link->pd, &guests_[0]->link->sq, &guests_[0]->link->scq) {}
  ~Switchdev() override {
    while (!acls_.empty()) acls_.pop_back();
    flows_.clear();
  }
  void work(Dice& dice) override {
    if (!built_ || dice.chance(25)) rebuild(dice);
    if (dice.chance(15)) flows_.set_meter(dice);
    if (dice.chance(15)) acl(dice);
    if (dice.chance(10)) rates(dice);
    traffic(dice);
    flows_.query(dice);
  }

 private:
  void rebuild(Dice& dice) {
    built_ = true;
    flows_.clear();
    using In = prm::modify_esw_vport_context_in;
    for (std::uint32_t vport = 0; vport < guests_.size(); ++vport) {
      Mailbox in = about<In>(prm::op::MODIFY_ESW_VPORT_CONTEXT, vport);
      in.set<In::field_select::fdb_to_vport_reg_c_id>(1);
      pf_.exec(in.set<In::esw_vport_context::fdb_to_vport_reg_c_id>(dice.byte() & 3u));
    }
    std::vector<FlowDest> to{{FlowDest::kVport, kUplinkVport}, {FlowDest::kUplink, 0}};
    for (std::uint32_t vport = 0; vport < guests_.size(); ++vport) to.push_back({FlowDest::kVport, vport});
    const auto last = flows_.build(dice, kFdbTable, 60, to);
    const auto other = flows_.build(dice, kFdbTable, 59, to);
    to.push_back({FlowDest::kTable, last.number});
    to.push_back({FlowDest::kTable, other.number});
    if (const std::uint32_t sampler = flows_.sampler(dice, other, last); sampler != 0)
      to.push_back({FlowDest::kSampler, sampler});
    const auto root = flows_.build(dice, kFdbTable, 1, to);
    if (root.number != 0) set_flow_root(pf_, root.number, kFdbTable);
  }
  // Another one in place of that of one side of a vport.
  void acl(Dice& dice) {
    while (acls_.size() > 5) acls_.pop_back();
    const std::uint32_t vport =
        dice.chance(20) ? kUplinkVport : static_cast<std::uint32_t>(dice.below(guests_.size()));
    const unsigned type = dice.chance(50) ? kEgressAclTable : kIngressAclTable;
    using Table = prm::create_flow_table_in;
    Mailbox table = about<Table>(prm::op::CREATE_FLOW_TABLE, vport);
    table.set<Table::table_type>(type).set<Table::flow_table_context::log_size>(2);
    const CommandResult made = pf_.exec(table, prm::create_flow_table_out::bytes);
    if (!made.ok()) return;
    const auto id = static_cast<std::uint32_t>(made.get<prm::create_flow_table_out::table_id>());
    acls_.emplace_back(pf_, id, [this, id, type, vport] {
      using Gone = prm::destroy_flow_table_in;
      Mailbox gone = about<Gone>(prm::op::DESTROY_FLOW_TABLE, vport);
      return pf_.exec(gone.set<Gone::table_id>(id).set<Gone::table_type>(type));
    });
    using Group = prm::create_flow_group_in;
    Mailbox group = about<Group>(prm::op::CREATE_FLOW_GROUP, vport);
    group.set<Group::table_type>(type).set<Group::table_id>(id).set<Group::end_flow_index>(3);
    unsigned criteria = 0;
    const MatchParam mask = dice.chance(50) ? some_mask(dice, criteria, false) : MatchParam{};
    group.set<Group::match_criteria_enable>(criteria);
    std::copy(mask.begin(), mask.end(), prm::ptr<Group::match_criteria>(group.data()));
    const CommandResult grouped = pf_.exec(group, prm::create_flow_group_out::bytes);
    if (!grouped.ok()) return;
    const auto g = static_cast<std::uint32_t>(grouped.get<prm::create_flow_group_out::group_id>());
    acls_.emplace_back(pf_, g, [this, id, g, type, vport] {
      using Gone = prm::destroy_flow_group_in;
      Mailbox gone = about<Gone>(prm::op::DESTROY_FLOW_GROUP, vport);
      return pf_.exec(gone.set<Gone::table_id>(id).set<Gone::table_type>(type).set<Gone::group_id>(g));
    });
    using In = prm::set_fte_in;
    using C = In::flow_context;
    constexpr std::size_t kList = C::destination::bit_off / 8;
    Mailbox fte(prm::op::SET_FLOW_TABLE_ENTRY,
                std::max<std::size_t>(In::bytes, kList + prm::dest_format_struct::bytes));
    fte.set<In::other_vport>(vport != 0).set<In::vport_number>(vport).set<In::table_type>(type);
    fte.set<In::table_id>(id).set<C::group_id>(g);
    const MatchParam value = some_value(dice, mask);
    std::copy(value.begin(), value.end(), prm::ptr<C::match_value>(fte.data()));
    static constexpr std::array<unsigned, 6> kActions{1, 2, 1 | kPush, 1 | kPop, 1, 4};
    const unsigned action = dice.pick(kActions);
    fte.set<C::action>(action).set<C::push_vlan::ethtype>(0x8100).set<C::push_vlan::vid>(5);
    if (action == 4) {
      fte.set<C::destination_list_size>(1);
      prm::set<prm::dest_format_struct::destination_type>(fte.data() + kList, FlowDest::kVport);
      prm::set<prm::dest_format_struct::destination_id>(
          fte.data() + kList, static_cast<std::uint32_t>(dice.below(guests_.size())));
    }
    if (pf_.exec(fte).ok())
      acls_.emplace_back(pf_, 0, [this, id, type, vport] {
        using Gone = prm::delete_fte_in;
        Mailbox gone = about<Gone>(prm::op::DELETE_FLOW_TABLE_ENTRY, vport);
        return pf_.exec(gone.set<Gone::table_id>(id).set<Gone::table_type>(type));
      });
    using Root = prm::set_flow_table_root_in;
    Mailbox root = about<Root>(prm::op::SET_FLOW_TABLE_ROOT, vport);
    pf_.exec(root.set<Root::table_type>(type).set<Root::table_id>(id));
  }
  static constexpr unsigned kPop = 0x80, kPush = 0x100;

  Flows flows_;
  std::deque<EthObject> acls_;
  bool built_ = false;
};

// Addresses, tags, states, rates; an FDB of addresses alone.
class Legacy : public Switched {
 public:
  Legacy(Device& d, const Others& others)
      : Switched(d, others),
        table_(make_flow_table(d, 4, 0, kFdbTable)),
        macs_(make_flow_group(d, table_.number(), 0, 7, 1, mac(0xffffffffffff), kFdbTable)),
        all_(make_flow_group(d, table_.number(), 8, 8, 0, {}, kFdbTable)) {
    for (std::uint32_t vport = 0; vport < guests_.size(); ++vport)
      rule(vport, macs_.number(), mac(0x020000000010 + vport), {{FlowDest::kVport, vport}});
    rule(7, macs_.number(), mac(0xffffffffffff),
         {{FlowDest::kVport, 1}, {FlowDest::kVport, 2}, {FlowDest::kVport, kUplinkVport}});
    rule(8, all_.number(), {}, {{FlowDest::kVport, kUplinkVport}});
    set_flow_root(d, table_.number(), kFdbTable).must();
  }
  ~Legacy() override {
    while (!rules_.empty()) rules_.pop_back();
  }
  void work(Dice& dice) override {
    switch (dice.below(8)) {
      case 0:
        settle(dice);
        break;
      case 1:
        own(dice);
        break;
      case 2:
        rates(dice);
        break;
      case 3:
        l2_table(dice);
        break;
      case 5:
        sub_function(dice);
        break;
      case 4: {
        using In = prm::modify_vport_state_in;
        Mailbox in = about<In>(prm::op::MODIFY_VPORT_STATE, static_cast<std::uint32_t>(dice.below(3)), 1);
        pf_.exec(in.set<In::admin_state>(dice.chance(70) ? 2 : dice.below(3)));
        break;
      }
      default:
        query(dice);
    }
    traffic(dice);
  }

 private:
  static MatchParam mac(std::uint64_t m) {
    MatchParam p{};
    prm::set<prm::fte_match_set_lyr_2_4::dmac_47_16>(p.data(), m >> 16);
    prm::set<prm::fte_match_set_lyr_2_4::dmac_15_0>(p.data(), m & 0xffff);
    return p;
  }
  void rule(std::uint32_t index, std::uint32_t group, const MatchParam& value,
            const std::vector<FlowDest>& to) {
    FlowRule r;
    r.table = table_.number(), r.group = group, r.index = index, r.type = kFdbTable, r.value = value,
    r.to = to;
    rules_.push_back(make_flow(pf_, r));
  }
  void settle(Dice& dice) {
    const auto vport = static_cast<std::uint32_t>(dice.below(4));
    const std::uint8_t how = dice.byte();
    using Esw = prm::modify_esw_vport_context_in;
    using C = Esw::esw_vport_context;
    Mailbox in = about<Esw>(prm::op::MODIFY_ESW_VPORT_CONTEXT, vport);
    in.set<Esw::field_select::vport_cvlan_insert>(how & 1u).set<Esw::field_select::vport_cvlan_strip>(
        how >> 1 & 1u);
    in.set<C::vport_cvlan_insert>(how >> 2 & 3u).set<C::vport_cvlan_strip>(how >> 4 & 1u);
    in.set<C::cvlan_id>(dice.byte()).set<C::cvlan_pcp>(how >> 5);
    if (dice.chance(spoiling_)) dice.spoil(in.data(), in.size(), 16);
    pf_.exec(in);
    if (dice.chance(30)) set_vport_mac(pf_, vport, 0x020000000010 + dice.below(5));
    using Nic = prm::modify_nic_vport_context_in;
    Mailbox arm = about<Nic>(prm::op::MODIFY_NIC_VPORT_CONTEXT, vport);
    arm.set<Nic::field_select::change_event>(1).set<Nic::nic_vport_context::arm_change_event>(1);
    arm.set<Nic::nic_vport_context::event_on_uc_address_change>(how & 1u);
    arm.set<Nic::nic_vport_context::event_on_mc_address_change>(how >> 1 & 1u);
    arm.set<Nic::nic_vport_context::event_on_vlan_change>(how >> 2 & 1u);
    arm.set<Nic::nic_vport_context::event_on_promisc_change>(how >> 3 & 1u);
    pf_.exec(arm.set<Nic::nic_vport_context::event_on_mtu>(how >> 4 & 1u));
  }
  // What a function says of itself: lists, promiscuity, MTU.
  void own(Dice& dice) {
    Guest& g = some(dice);
    Device& d = g.own ? *g.own : pf_;
    using In = prm::modify_nic_vport_context_in;
    using C = In::nic_vport_context;
    const std::uint8_t how = dice.byte();
    const std::uint32_t entries = how & 3u;
    Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes + 8 * entries);
    in.set<In::field_select::addresses_list>(how >> 2 & 1u).set<In::field_select::promisc>(how >> 3 & 1u);
    in.set<In::field_select::mtu>(how >> 4 & 1u);
    in.set<C::allowed_list_type>(how >> 5 & 3u).set<C::allowed_list_size>(entries);
    in.set<C::promisc_uc>(how >> 6 & 1u).set<C::promisc_mc>(how >> 7).set<C::promisc_all>(how & 1u);
    in.set<C::mtu>(dice.chance(70) ? 1500 : dice.below(20'000));
    for (std::uint32_t i = 0; i < entries; ++i)
      prm::store64(in.data() + C::current_uc_mac_address::bit_off / 8 + 8 * i,
                   0x020000000010 + dice.below(5));
    if (dice.chance(spoiling_)) dice.spoil(in.data(), in.size(), 8);
    d.exec(in);
  }
  void l2_table(Dice& dice) {
    static constexpr std::array<std::uint16_t, 4> kOps{
        prm::op::SET_L2_TABLE_ENTRY, prm::op::SET_L2_TABLE_ENTRY, prm::op::QUERY_L2_TABLE_ENTRY,
        prm::op::DELETE_L2_TABLE_ENTRY};
    using Set = prm::set_l2_table_entry_in;
    Mailbox m(dice.pick(kOps), Set::bytes);
    m.set<Set::table_index>(dice.below(8)).set<Set::mac_address::mac_addr_47_32>(0x0200);
    m.set<Set::mac_address::mac_addr_31_0>(0x10 + dice.below(5)).set<Set::vlan_valid>(dice.byte() & 1u);
    pf_.exec(m.set<Set::vlan>(dice.byte()), prm::query_l2_table_entry_out::bytes);
  }
  // A sub-function comes, is settled, or goes. No driver is behind it.
  void sub_function(Dice& dice) {
    const auto id = static_cast<std::uint32_t>(pf_.cap<prm::cmd_hca_cap::sf_base_id>() + dice.below(3));
    Device& by = dice.chance(90) ? pf_ : *guests_[1]->own;
    switch (dice.below(6)) {
      case 0:
      case 1: {
        Mailbox in(prm::op::ALLOC_SF, prm::alloc_sf_in::bytes);
        by.exec(in.set<prm::alloc_sf_in::function_id>(id));
        break;
      }
      case 2: {
        Mailbox in(prm::op::DEALLOC_SF, prm::dealloc_sf_in::bytes);
        by.exec(in.set<prm::dealloc_sf_in::function_id>(id));
        break;
      }
      case 3: {
        Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
        by.exec(in.set<prm::enable_hca_in::function_id>(id));
        break;
      }
      case 4: {
        Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
        by.exec(in.set<prm::disable_hca_in::function_id>(id));
        break;
      }
      default: {
        using In = prm::modify_vhca_state_in;
        Mailbox in(prm::op::MODIFY_VHCA_STATE, In::bytes);
        in.set<In::function_id>(id).set<In::vhca_state_field_select::arm_change_event>(1);
        in.set<In::vhca_state_field_select::sw_function_id>(dice.byte() & 1u);
        in.set<In::vhca_state_context::sw_function_id>(dice.byte());
        by.exec(in.set<In::vhca_state_context::arm_change_event>(1));
        set_vport_mac(by, id, 0x020000000010 + id);
      }
    }
    Mailbox query(prm::op::QUERY_VHCA_STATE, prm::query_vhca_state_in::bytes);
    by.exec(query.set<prm::query_vhca_state_in::function_id>(id), prm::query_vhca_state_out::bytes);
  }
  void query(Dice& dice) {
    const auto vport = static_cast<std::uint32_t>(dice.below(4));
    Device& by = dice.chance(80) ? pf_ : *guests_[1]->own;
    by.exec(about<prm::query_esw_vport_context_in>(prm::op::QUERY_ESW_VPORT_CONTEXT, vport),
            prm::query_esw_vport_context_out::bytes);
    using Nic = prm::query_nic_vport_context_in;
    Mailbox nic = about<Nic>(prm::op::QUERY_NIC_VPORT_CONTEXT, vport);
    by.exec(nic.set<Nic::allowed_list_type>(dice.byte() & 3u), prm::query_nic_vport_context_out::bytes + 64);
    by.exec(about<prm::query_vport_state_in>(prm::op::QUERY_VPORT_STATE, vport, 1),
            prm::query_vport_state_out::bytes);
    by.exec(about<prm::query_vport_counter_in>(prm::op::QUERY_VPORT_COUNTER, vport),
            prm::query_vport_counter_out::bytes);
    Mailbox functions(prm::op::QUERY_ESW_FUNCTIONS, prm::query_esw_functions_in::bytes);
    by.exec(functions, prm::query_esw_functions_out::bytes + 64);
    using Caps = prm::query_hca_cap_in;
    Mailbox caps(prm::op::QUERY_HCA_CAP, Caps::bytes, static_cast<std::uint16_t>(dice.below(64)));
    caps.set<Caps::other_function>(dice.byte() & 1u).set<Caps::function_id>(vport);
    by.exec(caps, prm::query_hca_cap_out::bytes);
  }

  EthObject table_, macs_, all_;
  std::vector<EthObject> rules_;
};

}  // namespace

std::unique_ptr<World> make_switchdev(Device& device, const Others& others) {
  return std::make_unique<Switchdev>(device, others);
}
std::unique_ptr<World> make_legacy(Device& device, const Others& others) {
  return std::make_unique<Legacy>(device, others);
}

}  // namespace hcasim::bare
