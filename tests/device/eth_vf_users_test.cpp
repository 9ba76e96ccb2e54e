// SPDX-License-Identifier: BSD-3-Clause
// What a user context may name in the switch's tables, on a chip that has all of it.
#include <functional>

#include "driver/bare/devx.h"
#include "eth_vf_later_rig.h"

namespace hcasim {
namespace {

// All that an entry of a user context's names is the context's own, each member of a list of the longer kind
// as well.
TEST_F(EthVfLater, UsersEntriesNameTheirOwnObjects) {
  using Fte = prm::set_fte_in;
  using C = Fte::flow_context;
  using Dest = prm::dest_format_struct;
  using bare::EthObject;
  constexpr std::size_t kList = C::destination::bit_off / 8, kItem = prm::extended_dest_format::bytes;
  constexpr std::uint32_t kForward = 4, kAso = 0x4000;
  struct Objects {
    Objects(bare::Device& d)
        : pd(d),
          table(bare::make_flow_table(d, 4, 1, kFdb)),
          reformat(
              bare::make_reformat(d, {prm::k::REFORMAT_TYPE_L2_TO_L2_TUNNEL, 0, 0, bare::Frame(50, 1)})) {
      using Sampler = prm::create_sampler_obj_in;
      bare::Mailbox in(prm::op::CREATE_GENERAL_OBJECT, Sampler::bytes);
      in.set<prm::general_obj_in_cmd_hdr::obj_type>(prm::k::GENERAL_OBJECT_TYPES_SAMPLER);
      in.set<Sampler::sampler_object::table_type>(kFdb).set<Sampler::sampler_object::sample_ratio>(2);
      in.set<Sampler::sampler_object::sample_table_id>(table.number());
      in.set<Sampler::sampler_object::default_table_id>(table.number());
      sampler = d.exec(in).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
      using Meter = prm::create_flow_meter_aso_obj_in;
      in = bare::Mailbox(prm::op::CREATE_GENERAL_OBJECT, Meter::bytes);
      in.set<prm::general_obj_in_cmd_hdr::obj_type>(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO);
      in.set<Meter::flow_meter_aso_obj::meter_aso_access_pd>(pd.pdn());
      meter = d.exec(in).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
    }
    bare::Pd pd;
    EthObject table, reformat;
    std::uint32_t sampler = 0, meter = 0;
  };
  ASSERT_TRUE(enable(1).ok());
  const Objects drivers(pf);
  bare::Uctx user(pf);
  const bare::Uctx::As as(pf, user);
  const Objects own(pf);
  const EthObject first = bare::make_flow_table(pf, 4, 0, kFdb, true);
  const EthObject group = bare::make_flow_group(pf, first.number(), 0, 7, 0, {}, kFdb);
  const auto entry = [&](std::uint32_t index) {
    bare::Mailbox in(prm::op::SET_FLOW_TABLE_ENTRY, kList + 2 * kItem);
    in.set<Fte::table_type>(kFdb).set<Fte::table_id>(first.number()).set<Fte::flow_index>(index);
    in.set<C::group_id>(group.number()).set<C::action>(kForward).set<C::destination_list_size>(2);
    in.set<C::extended_destination>(1);
    for (std::size_t i = 0; i < 2; ++i)
      prm::set<Dest::destination_id>(in.data() + kList + i * kItem, static_cast<std::uint32_t>(i));
    return in;
  };
  const auto leads_to = [&](std::uint32_t index, std::uint32_t type, std::uint32_t id,
                            std::uint32_t reformat) {
    bare::Mailbox in = entry(index);
    std::uint8_t* p = in.data() + kList + kItem;
    prm::set<Dest::destination_type>(p, type);
    prm::set<Dest::destination_id>(p, id);
    prm::set<Dest::packet_reformat>(p, reformat != 0);
    prm::set<prm::extended_dest_format::packet_reformat_id>(p, reformat);
    return pf.exec(in);
  };
  const auto measured = [&](std::uint32_t index, std::uint32_t meter) {
    bare::Mailbox in = entry(index);
    in.set<C::action>(kForward | kAso);
    std::uint8_t* p = in.data() + C::execute_aso::bit_off / 8;
    prm::set<prm::execute_aso::valid>(p, 1);
    prm::set<prm::execute_aso::aso_object_id>(p, meter);
    prm::set<prm::execute_aso::exe_aso_ctrl::exe_aso_ctrl_flow_meter::aso_type>(p,
                                                                                prm::k::EXE_ASO_FLOW_METER);
    return pf.exec(in);
  };
  using bare::FlowDest;
  const struct {
    const char* what;
    std::function<CommandResult(std::uint32_t, const Objects&)> set;
  } rows[] = {
      {"table", [&](auto i, const auto& o) { return leads_to(i, FlowDest::kTable, o.table.number(), 0); }},
      {"reformat",
       [&](auto i, const auto& o) { return leads_to(i, FlowDest::kVport, 1, o.reformat.number()); }},
      {"sampler", [&](auto i, const auto& o) { return leads_to(i, FlowDest::kSampler, o.sampler, 0); }},
      {"meter", [&](auto i, const auto& o) { return measured(i, o.meter); }},
  };
  std::uint32_t index = 0;
  for (const auto& row : rows) {
    const CommandResult refused = row.set(index, drivers);
    EXPECT_EQ(refused.status, prm::CmdStatus::kBadRes) << row.what << ": " << refused.text();
    const CommandResult taken = row.set(index++, own);
    EXPECT_TRUE(taken.ok()) << row.what << ": " << taken.text();
  }
}

}  // namespace
}  // namespace hcasim
