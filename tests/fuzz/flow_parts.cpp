// SPDX-License-Identifier: BSD-3-Clause
#include "flow_parts.h"

#include "prm/wqe.h"
#include "tests/device/steering_fixture.h"

namespace hcasim::bare {

namespace {

constexpr unsigned kPopVlan2 = 0x400, kPushVlan2 = 0x800;

bool receives(unsigned type) { return type == kNicRxTable || type == kFdbTable; }
bool sends(unsigned type) { return type == kNicTxTable || type == kFdbTable; }

}  // namespace

EthObject some_definer(Device& device, Dice& dice) {
  using In = prm::create_match_definer_in;
  using H = prm::general_obj_in_cmd_hdr;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
  in.set<H::obj_type>(prm::k::OBJ_TYPE_MATCH_DEFINER);
  std::uint8_t* mask = in.data() + In::obj_context::match_mask_format::bit_off / 8;
  unsigned format = 0;
  switch (dice.below(8)) {
    case 0:
      prm::set<prm::match_definer_format_0::outer_smac_47_16>(mask, ~0u);
      break;
    case 1:
      format = 23;
      prm::set<prm::match_definer_format_23::inner_l4_sport>(mask, 0xffff);
      prm::set<prm::match_definer_format_23::inner_ip_src_addr>(mask, ~0u);
      break;
    case 2:
      format = 29;
      prm::set<prm::match_definer_format_29::outer_l4_sport>(mask, 0xffff);
      break;
    case 3:
      format = 30;
      prm::set<prm::match_definer_format_30::outer_smac_47_16>(mask, ~0u);
      break;
    case 4:
      format = 31;
      prm::set<prm::match_definer_format_31::inner_l4_sport>(mask, 0xffff);
      break;
    case 5: {
      static constexpr std::array<unsigned, 9> kFormats{2, 6, 16, 24, 25, 26, 28, 32, 33};
      format = dice.pick(kFormats);
      prm::store32(mask + 4 * dice.below(16), dice.chance(50) ? ~0u : 0xffff);
      break;
    }
    default:
      format = 22;
      prm::set<prm::match_definer_format_22::outer_l4_sport>(mask, 0xffff);
      prm::set<prm::match_definer_format_22::outer_ip_src_addr>(mask, ~0u);
  }
  in.set<In::obj_context::format_id>(format);
  using Out = prm::general_obj_out_cmd_hdr;
  const auto id = static_cast<std::uint32_t>(device.exec(in, Out::bytes).must().get<Out::obj_id>());
  const auto of = [&device, id](std::uint16_t op) {
    Mailbox m(op, H::bytes);
    return device.exec(m.set<H::obj_type>(prm::k::OBJ_TYPE_MATCH_DEFINER).set<H::obj_id>(id), 512);
  };
  of(prm::op::QUERY_GENERAL_OBJECT);
  return {device, id, [of] { return of(prm::op::DESTROY_GENERAL_OBJECT); }};
}

Flows::Flows(Device& device, const Pd& pd, Sq* sq, Cq* cq) : device_(device), pd_(pd.pdn()), sq_(sq) {
  for (unsigned i = 0; i < 2; ++i) counters_.push_back(make_flow_counter(device));
  if (sq == nullptr || cq == nullptr) return;
  using In = prm::create_flow_meter_aso_obj_in;
  using H = prm::general_obj_in_cmd_hdr;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
  in.set<H::obj_type>(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO);
  in.set<In::flow_meter_aso_obj::meter_aso_access_pd>(pd_);
  const CommandResult made = device.exec(in, prm::general_obj_out_cmd_hdr::bytes);
  if (!made.ok()) return;
  meter_ = static_cast<std::uint32_t>(made.get<prm::general_obj_out_cmd_hdr::obj_id>());
  meters_.emplace_back(device, meter_, [&device, id = meter_] {
    Mailbox gone(prm::op::DESTROY_GENERAL_OBJECT, H::bytes);
    return device.exec(gone.set<H::obj_type>(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO).set<H::obj_id>(id));
  });
}

void Flows::clear() {
  for (auto* all : {&entries_, &samplers_, &tables_, &actions_})
    while (!all->empty()) all->pop_back();
}

template <class Make>
std::uint32_t Flows::keep(std::deque<EthObject>& all, const Make& make) {
  try {
    all.push_back(make());
    return all.back().number();
  } catch (const BareError&) {  // none such
    return 0;
  }
}

std::uint32_t Flows::modify(Dice& dice, unsigned type) {
  std::vector<FieldItem> items;
  for (std::size_t n = 1 + dice.below(4); n > 0; --n) {
    const auto field = static_cast<std::uint32_t>(1 + dice.below(0x5e));
    switch (dice.below(4)) {
      case 0:
        items.push_back(add_field(field, dice.chance(50) ? 0xff : 1));
        break;
      case 1:
        items.push_back(copy_field(field, static_cast<std::uint32_t>(1 + dice.below(0x5e)),
                                   1 + dice.byte() % 16, dice.byte() % 8, dice.byte() % 8));
        break;
      default:
        items.push_back(
            set_field(field, static_cast<std::uint32_t>(dice.below(300)), 0, 1 + dice.byte() % 12));
    }
  }
  return keep(actions_, [&] { return make_modify_header(device_, items, type); });
}

std::uint32_t Flows::reformat(Dice& dice, unsigned type) {
  using namespace prm::k;
  Reformat r;
  const bool out = sends(type) && (!receives(type) || dice.chance(50));
  switch (dice.below(out ? 6 : 3)) {
    case 0:
      r.type = REFORMAT_TYPE_INSERT_HDR;
      r.data = Frame(2 * (1 + dice.below(20)), 0x11);
      break;
    case 1:
      r.type = REFORMAT_TYPE_REMOVE_HDR;
      r.size = static_cast<unsigned>(2 * (1 + dice.below(20)));
      break;
    case 2:
      if (!out) {
        r.type = REFORMAT_TYPE_L3_TUNNEL_TO_L2;
        r.data = plain_frame(dice.chance(50) ? 14 : 18);
      } else {
        r.type = REFORMAT_TYPE_L2_TO_NVGRE;
        r.data = plain_frame(42);
      }
      break;
    case 3:
      r.type = REFORMAT_TYPE_L2_TO_VXLAN;
      r.data = vxlan_headers(7);
      break;
    case 4:
      r.type = REFORMAT_TYPE_L2_TO_L3_TUNNEL;
      r.data = udp_tunnel(5555);
      break;
    default:
      r.type = REFORMAT_TYPE_L2_TO_L2_TUNNEL;
      r.data = vxlan_headers(8);
  }
  if (r.type == REFORMAT_TYPE_INSERT_HDR || r.type == REFORMAT_TYPE_REMOVE_HDR) {
    static constexpr std::array<unsigned, 3> kAnchors{1, 7, 9};
    r.anchor = dice.pick(kAnchors);
    r.offset = static_cast<unsigned>(dice.below(16));
  }
  return keep(actions_, [&] { return make_reformat(device_, r); });
}

void Flows::entry(Dice& dice, const Table& t, std::uint32_t index, const MatchParam& value,
                  const std::vector<FlowDest>& to) {
  FlowRule r;
  r.table = t.number, r.type = t.type, r.index = index, r.value = value;
  r.group = index < 8 ? t.some : t.rest;
  const std::uint8_t how = dice.byte();
  if (!to.empty() && how >= 25) {
    for (std::size_t n = 1 + (how & 1); n > 0; --n) r.to.push_back(dice.pick(to));
    if (r.to.size() == 2 && r.to[0].type == r.to[1].type && r.to[0].id == r.to[1].id) r.to.pop_back();
  } else {
    r.allow = how >= 10;
  }
  r.tag = how;
  if ((how & 2) != 0) r.counter = dice.pick(counters_).number();
  const std::uint8_t actions = dice.byte();
  const auto want = [&](unsigned bit, bool may) { return may && (actions >> bit & 1) != 0; };
  const bool plain = t.type == kSnifferRxTable || t.type == kSnifferTxTable || t.type == kEgressAclTable;
  if (want(0, !plain)) {
    r.modify = modify(dice, t.type);
    if (r.modify != 0) r.action |= kModify;
  }
  if (want(1, receives(t.type) || sends(t.type))) {
    r.reformat = reformat(dice, t.type);
    if (r.reformat != 0) r.action |= kReformat;
  }
  if (want(2, receives(t.type) || t.type == kEgressAclTable))
    r.action |= kPopVlan | (how > 200 ? kPopVlan2 : 0);
  if (want(3, sends(t.type) || t.type == kIngressAclTable)) {
    r.action |= kPushVlan | (how > 200 && t.type != kIngressAclTable ? kPushVlan2 : 0);
    r.push_tpid = 0x8100, r.push_tci = actions;
  }
  if (want(4, receives(t.type)) && want(5, true)) r.action |= kDecap;
  if (want(6, meter_ != 0 && (receives(t.type) || sends(t.type)))) r.meter = {meter_, how & 1u, 5, 2};
  if (!try_flow(device_, r).ok()) {  // the plain way then
    r.action = 0, r.modify = r.reformat = 0, r.meter = {}, r.counter = 0;
    if (!try_flow(device_, r).ok()) return;
  }
  entries_.emplace_back(device_, index, [this, table = r.table, type = r.type, index] {
    using Gone = prm::delete_fte_in;
    Mailbox gone(prm::op::DELETE_FLOW_TABLE_ENTRY, Gone::bytes);
    return device_.exec(
        gone.set<Gone::table_id>(table).set<Gone::table_type>(type).set<Gone::flow_index>(index));
  });
}

Flows::Table Flows::build(Dice& dice, unsigned type, unsigned level, const std::vector<FlowDest>& to) {
  Table t{};
  t.type = type, t.level = level;
  const bool lengths = receives(type) || sends(type);
  t.number = keep(tables_, [&] {
    return make_flow_table(device_, 4, level, type, lengths, type == kFdbTable && dice.chance(20));
  });
  if (t.number == 0) return t;
  unsigned criteria = 0;
  MatchParam mask = some_mask(dice, criteria, type == kFdbTable);
  t.some = keep(tables_, [&] { return make_flow_group(device_, t.number, 0, 7, criteria, mask, type); });
  t.rest = keep(tables_, [&] { return make_flow_group(device_, t.number, 8, 8, 0, {}, type); });
  for (std::uint32_t i = 0; t.some != 0 && i < 3; ++i) entry(dice, t, i, some_value(dice, mask), to);
  if (t.rest != 0) entry(dice, t, 8, {}, to);
  return t;
}

std::uint32_t Flows::sampler(Dice& dice, const Table& samples, const Table& rest) {
  using In = prm::create_sampler_obj_in;
  using S = In::sampler_object;
  using H = prm::general_obj_in_cmd_hdr;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
  in.set<H::obj_type>(prm::k::GENERAL_OBJECT_TYPES_SAMPLER);
  in.set<S::table_type>(samples.type).set<S::level>(0).set<S::sample_ratio>(1 + dice.below(3));
  in.set<S::sample_table_id>(samples.number).set<S::default_table_id>(rest.number);
  const CommandResult made = device_.exec(in, prm::general_obj_out_cmd_hdr::bytes);
  if (!made.ok()) return 0;
  const auto id = static_cast<std::uint32_t>(made.get<prm::general_obj_out_cmd_hdr::obj_id>());
  samplers_.emplace_back(device_, id, [this, id] {
    Mailbox gone(prm::op::DESTROY_GENERAL_OBJECT, H::bytes);
    return device_.exec(gone.set<H::obj_type>(prm::k::GENERAL_OBJECT_TYPES_SAMPLER).set<H::obj_id>(id));
  });
  return id;
}

void Flows::set_meter(Dice& dice) {
  if (meter_ == 0) return;
  using P = prm::flow_meter_parameters;
  std::vector<std::uint8_t> wqe(128);
  prm::CtrlSeg ctrl{};
  ctrl.set(WqeOp::kAso, sq_->next_index(), sq_->sqn(), 8, prm::kCeAlways, false, prm::kAsoFlowMeter);
  ctrl.imm = meter_;
  std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
  prm::AsoCtrlSeg aso{};
  aso.data_mask_mode = prm::kAsoBytewise << 6;
  aso.condition_operands = 0x11;
  aso.condition_combination = prm::kAsoOr << 6;
  aso.data_mask = dice.chance(80) ? 0x80ffffff80ffffffull : dice.any();
  std::memcpy(wqe.data() + sizeof ctrl, &aso, sizeof aso);
  for (unsigned i = 0; i < 2; ++i) {
    std::uint8_t* p = wqe.data() + 64 + i * P::bytes;
    prm::set<P::valid>(p, 1);
    prm::set<P::start_color>(p, 2);
    prm::set<P::meter_mode>(p, dice.byte() & 3u);
    prm::set<P::cir_mantissa>(p, dice.byte());
    prm::set<P::cir_exponent>(p, dice.byte() & 0x1fu);
    prm::set<P::cbs_mantissa>(p, dice.byte());
    prm::set<P::cbs_exponent>(p, dice.byte() & 0x1fu);
    prm::set<P::eir_mantissa>(p, dice.byte());
    prm::set<P::eir_exponent>(p, 8);
    prm::set<P::ebs_mantissa>(p, 8);
    prm::set<P::ebs_exponent>(p, 8);
  }
  sq_->post_raw(wqe, 2);
}

void Flows::query(Dice& dice) {
  for (const EthObject& c : counters_) query_flow_counter(device_, c.number());
  if (tables_.empty()) return;
  static constexpr std::array<std::uint16_t, 3> kOps{prm::op::QUERY_FLOW_TABLE_ENTRY,
                                                     prm::op::QUERY_FLOW_GROUP, prm::op::QUERY_FLOW_TABLE};
  Mailbox q(dice.pick(kOps), prm::query_fte_in::bytes);
  q.set<prm::query_fte_in::table_id>(tables_.front().number())
      .set<prm::query_fte_in::flow_index>(dice.below(9));
  q.set<prm::query_fte_in::table_type>(dice.below(9));
  device_.exec(q, 2048);
  if (actions_.empty()) return;
  using R = prm::query_packet_reformat_context_in;
  Mailbox r(prm::op::QUERY_PACKET_REFORMAT_CONTEXT, R::bytes);
  device_.exec(r.set<R::packet_reformat_id>(actions_.back().number()), 1024);
}

std::uint64_t Flows::packets() {
  std::uint64_t n = 0;
  for (const EthObject& c : counters_) n += query_flow_counter(device_, c.number()).packets;
  return n;
}

}  // namespace hcasim::bare
