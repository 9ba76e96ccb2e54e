// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/eswitch.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "driver/bare/eth.h"

namespace hcasim::timing {

using namespace bare;

namespace {

enum : unsigned { kIngressAcl = 3, kFdb = 4 };  // flow_table_type
enum : std::uint32_t { kFunction = 1, kUplink = 0xffff };
enum : unsigned { kOuter = 1, kMisc = 2, kMisc2 = 8 };  // match_criteria_enable
enum : unsigned { kAllow = 1, kForward = 4, kModify = 0x40 };
constexpr std::size_t kBlock = prm::fte_match_set_lyr_2_4::bytes;

struct Match {
  MatchParam bytes{};
  Match& mac(std::uint64_t v) {
    using Lyr = prm::fte_match_set_lyr_2_4;
    prm::set<Lyr::dmac_47_16>(bytes.data(), v >> 16);
    prm::set<Lyr::dmac_15_0>(bytes.data(), v & 0xffff);
    return *this;
  }
  Match& queue(std::uint32_t v) {
    prm::set<prm::fte_match_set_misc::source_sqn>(bytes.data() + kBlock, v);
    return *this;
  }
  Match& tag(std::uint32_t v) {
    prm::set<prm::fte_match_set_misc2::metadata_reg_c_0>(bytes.data() + 3 * kBlock, v << 16);
    return *this;
  }
};

std::uint32_t tag_of(std::uint32_t vport) { return vport + 1; }

// A table, its groups and its entries, each a command; nothing is taken away again.
class Table {
 public:
  // vport: an ACL's; a command's other_vport goes with it.
  Table(Device& device, unsigned type, unsigned level, std::uint32_t vport = 0)
      : device_(device), type_(type), vport_(vport) {
    using In = prm::create_flow_table_in;
    Mailbox in = about<In>(prm::op::CREATE_FLOW_TABLE);
    in.set<In::flow_table_context::level>(level).set<In::flow_table_context::log_size>(4);
    id_ =
        device.exec(in, prm::create_flow_table_out::bytes).must().get<prm::create_flow_table_out::table_id>();
  }
  std::uint32_t id() const { return id_; }
  // Of four entries each, in order.
  std::uint32_t group(unsigned criteria, const Match& mask) {
    using In = prm::create_flow_group_in;
    Mailbox in = about<In>(prm::op::CREATE_FLOW_GROUP);
    in.set<In::table_id>(id_).set<In::match_criteria_enable>(criteria);
    in.set<In::start_flow_index>(4 * groups_).set<In::end_flow_index>(4 * groups_ + 3);
    std::copy(mask.bytes.begin(), mask.bytes.end(), in.data() + In::match_criteria::bit_off / 8);
    next_ = 4 * groups_++;
    return group_ = device_.exec(in, prm::create_flow_group_out::bytes)
                        .must()
                        .get<prm::create_flow_group_out::group_id>();
  }
  // In the group made last. to: none for an entry that lets pass.
  void entry(const Match& value, unsigned action, const std::vector<FlowDest>& to = {},
             std::uint32_t modify = 0) {
    using In = prm::set_fte_in;
    using C = In::flow_context;
    constexpr std::size_t kList = C::destination::bit_off / 8;
    Mailbox in(prm::op::SET_FLOW_TABLE_ENTRY,
               std::max<std::size_t>(In::bytes, kList + to.size() * prm::dest_format_struct::bytes));
    in.set<In::other_vport>(vport_ != 0).set<In::vport_number>(vport_).set<In::table_type>(type_);
    in.set<In::table_id>(id_).set<In::flow_index>(next_++);
    in.set<C::group_id>(group_).set<C::action>(action).set<C::modify_header_id>(modify);
    in.set<C::destination_list_size>(to.size());
    std::copy(value.bytes.begin(), value.bytes.end(), in.data() + C::match_value::bit_off / 8);
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::uint8_t* p = in.data() + kList + i * prm::dest_format_struct::bytes;
      prm::set<prm::dest_format_struct::destination_type>(p, to[i].type);
      prm::set<prm::dest_format_struct::destination_id>(p, to[i].id);
    }
    device_.exec(in).must();
  }
  void be_root() {
    using In = prm::set_flow_table_root_in;
    device_.exec(about<In>(prm::op::SET_FLOW_TABLE_ROOT).set<In::table_id>(id_)).must();
  }

 private:
  template <class In>
  Mailbox about(std::uint16_t opcode) const {
    Mailbox in(opcode, In::bytes);
    in.set<typename In::other_vport>(vport_ != 0).template set<typename In::vport_number>(vport_);
    in.set<typename In::table_type>(type_);
    return in;
  }

  Device& device_;
  unsigned type_;
  std::uint32_t vport_, id_ = 0, group_ = 0;
  unsigned groups_ = 0, next_ = 0;
};

constexpr std::uint64_t kAllBits = 0xffffffffffff;

void make_legacy(Device& manager, std::uint64_t mac) {
  Table fdb(manager, kFdb, 0);
  fdb.group(kOuter, Match().mac(kAllBits));
  fdb.entry(Match().mac(mac), kForward, {{FlowDest::kVport, kFunction}});
  fdb.group(0, {});
  fdb.entry({}, kForward, {{FlowDest::kVport, kUplink}});
  fdb.be_root();
}

void make_switchdev(Device& manager, std::uint64_t mac) {
  for (const std::uint32_t vport : {kFunction + 0u, kUplink + 0u}) {
    const FieldItem tag = set_field(prm::k::ACTION_IN_FIELD_METADATA_REG_C_0, tag_of(vport), 16, 16);
    const std::uint32_t modify = try_modify_header(manager, {tag}, kIngressAcl)
                                     .must()
                                     .get<prm::alloc_modify_header_context_out::modify_header_id>();
    Table acl(manager, kIngressAcl, 0, vport);
    acl.group(0, {});
    acl.entry({}, kAllow | kModify, {}, modify);
    acl.be_root();
  }
  Table rules(manager, kFdb, 1);
  rules.group(kOuter | kMisc2, Match().mac(kAllBits).tag(0xffff));
  rules.entry(Match().mac(mac).tag(tag_of(kUplink)), kForward, {{FlowDest::kVport, kFunction}});
  rules.entry(Match().mac(mac).tag(tag_of(kFunction)), kForward, {{FlowDest::kVport, kFunction}});
  rules.group(kMisc2, Match().tag(0xffff));
  rules.entry(Match().tag(tag_of(kFunction)), kForward, {{FlowDest::kVport, kUplink}});
  Table first(manager, kFdb, 0);
  first.group(kMisc | kMisc2, Match().queue(0xffffff).tag(0xffff));
  first.entry(Match().queue(1).tag(tag_of(0)), kForward, {{FlowDest::kVport, kUplink}});
  first.group(0, {});
  first.entry({}, kForward, {{FlowDest::kTable, rules.id()}});
  first.be_root();
}

}  // namespace

void make_eswitch(Device& manager, ESwitchMode mode, std::uint64_t mac) {
  if (mode == ESwitchMode::kLegacy) make_legacy(manager, mac);
  if (mode == ESwitchMode::kSwitchdev) make_switchdev(manager, mac);
}

}  // namespace hcasim::timing
