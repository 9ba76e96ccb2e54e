// SPDX-License-Identifier: BSD-3-Clause
// Flow tables of all types through PCIe: the transmit side, the RDMA tables, what entries do to frames.
#include "steering_fixture.h"

namespace hcasim::bare {
namespace {

using namespace prm::k;

// ---- The transmit side ----

TEST_F(Steering, TransmitTablesDropCountAndPass) {
  breaks({"destroy-busy"});
  MatchParam mask{}, value{};
  using Lyr = prm::fte_match_set_lyr_2_4;
  prm::set<Lyr::udp_dport>(mask.data(), 0xffff);
  prm::set<Lyr::udp_dport>(value.data(), 5000);
  Root tx(dev(), kNicTxTable, 1, mask);
  L4 l4;
  l4.udp = true;
  EXPECT_EQ(arrives(l4_frame(l4)), l4_frame(l4));  // a miss passes
  auto counter = make_flow_counter(dev());
  FlowRule r = tx.rule();
  r.value = value;
  r.counter = counter.number();
  {
    auto drop = make_flow(dev(), r);
    EXPECT_TRUE(arrives(l4_frame(l4)).empty());
    EXPECT_EQ(query_flow_counter(dev(), counter.number()).packets, 1u);
    EXPECT_STATUS(counter.destroy(), CmdStatus::kBadResState);
    l4.dport = 5001;
    EXPECT_EQ(arrives(l4_frame(l4)), l4_frame(l4));
  }
  r.allow = true;
  auto pass = make_flow(dev(), r);
  l4.dport = 5000;
  EXPECT_EQ(arrives(l4_frame(l4)), l4_frame(l4));
  const Counted c = query_flow_counter(dev(), counter.number());
  EXPECT_EQ(c.packets, 2u);
  EXPECT_EQ(c.bytes, 2 * l4_frame(l4).size());
}

TEST_F(Steering, TransmitTablesSeeTheQueue) {
  MatchParam mask{}, value{};
  using Misc = prm::fte_match_set_misc;
  constexpr std::size_t kMisc = prm::fte_match_param::misc_parameters::bit_off / 8;
  prm::set<Misc::source_sqn>(mask.data() + kMisc, 0xffffff);
  prm::set<Misc::source_sqn>(value.data() + kMisc, link->sq.sqn());
  Root tx(dev(), kNicTxTable, 2, mask);
  FlowRule r = tx.rule();
  r.value = value;
  {
    auto drop = make_flow(dev(), r);
    EXPECT_TRUE(arrives(plain_frame(100)).empty());
  }
  prm::set<Misc::source_sqn>(r.value.data() + kMisc, link->sq.sqn() + 1);
  auto others = make_flow(dev(), r);
  EXPECT_EQ(arrives(plain_frame(100)), plain_frame(100));
}

// ---- Fields ----

TEST_F(Steering, FieldsAreSetAddedAndCopied) {
  breaks({"destroy-busy"});
  Root tx(dev(), kNicTxTable);
  auto modify = make_modify_header(
      dev(),
      {set_field(ACTION_IN_FIELD_OUT_SMAC_47_16, 0x88888888),
       set_field(ACTION_IN_FIELD_OUT_SMAC_15_0, 0x8888, 0, 16),
       set_field(ACTION_IN_FIELD_OUT_SIPV4, 0x0b0c0d0e), add_field(ACTION_IN_FIELD_OUT_IP_TTL, 0xff),
       set_field(ACTION_IN_FIELD_OUT_IP_DSCP, 0x2a, 0, 6),
       set_field(ACTION_IN_FIELD_OUT_UDP_SPORT, 0x5, 4, 4),
       copy_field(ACTION_IN_FIELD_OUT_UDP_SPORT, ACTION_IN_FIELD_OUT_UDP_DPORT, 8, 0, 8),
       set_field(ACTION_IN_FIELD_OUT_TCP_SPORT, 1, 0, 16)},  // not TCP: nothing is done
      kNicTxTable);
  FlowRule r = tx.rule();
  r.allow = true;
  r.action = kModify;
  r.modify = modify.number();
  auto rule = make_flow(dev(), r);
  EXPECT_STATUS(modify.destroy(), CmdStatus::kBadResState);

  L4 l4;
  l4.udp = true;
  l4.sport = 0x1234, l4.dport = 0x9abc;
  const Frame got = arrives(l4_frame(l4), 0xc0);  // with checksums of IP and UDP
  ASSERT_EQ(got.size(), l4_frame(l4).size());
  EXPECT_EQ(Frame(got.begin() + 6, got.begin() + 12), Frame(6, 0x88));
  EXPECT_EQ(Frame(got.begin() + 26, got.begin() + 30), (Frame{0x0b, 0x0c, 0x0d, 0x0e}));
  EXPECT_EQ(got[22], 63);
  EXPECT_EQ(got[15], 0x2a << 2);
  EXPECT_EQ(at16(got, 34), 0x1254u);
  EXPECT_EQ(at16(got, 36), 0x54bcu);
  EXPECT_EQ(plain_sum(got, 14, 34), 0xffffu);
  EXPECT_TRUE(l4_sum_right(got));
  // A frame without any of it, but for the MACs.
  Frame plain = plain_frame(90);
  std::fill(plain.begin() + 6, plain.begin() + 12, static_cast<std::uint8_t>(0x88));
  EXPECT_EQ(arrives(plain_frame(90)), plain);
}

TEST_F(Steering, EveryFieldOfFrames) {
  struct Case {
    std::uint32_t field;
    bool v6, udp;
    std::size_t at;
    unsigned bytes;
  };
  const Case cases[] = {
      {ACTION_IN_FIELD_OUT_DMAC_47_16, false, true, 0, 4},
      {ACTION_IN_FIELD_OUT_DMAC_15_0, false, true, 4, 2},
      {ACTION_IN_FIELD_OUT_SMAC_47_16, false, true, 6, 4},
      {ACTION_IN_FIELD_OUT_SMAC_15_0, false, true, 10, 2},
      {ACTION_IN_FIELD_OUT_SIPV4, false, true, 26, 4},
      {ACTION_IN_FIELD_OUT_DIPV4, false, false, 30, 4},
      {ACTION_IN_FIELD_OUT_IP_TTL, false, false, 22, 1},
      {ACTION_IN_FIELD_OUT_IPV6_HOPLIMIT, true, true, 21, 1},
      {ACTION_IN_FIELD_OUT_SIPV6_127_96, true, true, 22, 4},
      {ACTION_IN_FIELD_OUT_SIPV6_95_64, true, true, 26, 4},
      {ACTION_IN_FIELD_OUT_SIPV6_63_32, true, false, 30, 4},
      {ACTION_IN_FIELD_OUT_SIPV6_31_0, true, false, 34, 4},
      {ACTION_IN_FIELD_OUT_DIPV6_127_96, true, true, 38, 4},
      {ACTION_IN_FIELD_OUT_DIPV6_95_64, true, false, 42, 4},
      {ACTION_IN_FIELD_OUT_DIPV6_63_32, true, true, 46, 4},
      {ACTION_IN_FIELD_OUT_DIPV6_31_0, true, true, 50, 4},
      {ACTION_IN_FIELD_OUT_TCP_SPORT, false, false, 34, 2},
      {ACTION_IN_FIELD_OUT_TCP_DPORT, true, false, 56, 2},
      {ACTION_IN_FIELD_OUT_TCP_SEQ_NUM, false, false, 38, 4},
      {ACTION_IN_FIELD_OUT_TCP_ACK_NUM, true, false, 62, 4},
      {ACTION_IN_FIELD_OUT_UDP_SPORT, true, true, 54, 2},
      {ACTION_IN_FIELD_OUT_UDP_DPORT, false, true, 36, 2},
  };
  Root tx(dev(), kNicTxTable);
  for (const Case& c : cases) {
    const std::uint32_t value = 0x0a0b0c0d & (c.bytes == 4 ? ~0u : (1u << 8 * c.bytes) - 1);
    auto modify = make_modify_header(dev(), {set_field(c.field, value, 0, c.bytes == 4 ? 0 : 8 * c.bytes)},
                                     kNicTxTable);
    FlowRule r = tx.rule();
    r.allow = true, r.action = kModify, r.modify = modify.number();
    auto rule = make_flow(dev(), r);
    L4 l4;
    l4.v6 = c.v6, l4.udp = c.udp;
    Frame want = l4_frame(l4);
    for (unsigned i = 0; i < c.bytes; ++i)
      want[c.at + i] = static_cast<std::uint8_t>(value >> 8 * (c.bytes - 1 - i));
    const Frame got = arrives(l4_frame(l4), 0xc0);
    ASSERT_EQ(got.size(), want.size()) << c.field;
    EXPECT_TRUE(l4_sum_right(got)) << c.field;
    if (!c.v6) {
      EXPECT_EQ(plain_sum(got, 14, 34), 0xffffu) << c.field;
      want[24] = got[24], want[25] = got[25];
    }
    const std::size_t sum = (c.v6 ? 54 : 34) + (c.udp ? 6 : 16);
    want[sum] = got[sum], want[sum + 1] = got[sum + 1];
    EXPECT_EQ(got, want) << c.field;
    // The other IP version stays as it is, but for MACs.
    if (c.at < 12) continue;
    l4.v6 = !c.v6;
    l4.udp = !c.udp;
    EXPECT_EQ(arrives(l4_frame(l4)), l4_frame(l4)) << c.field;
  }
}

TEST_F(Steering, RegistersGoFromTableToTable) {
  MatchParam mask{}, value{};
  using Misc2 = prm::fte_match_set_misc2;
  constexpr std::size_t kMisc2 = prm::fte_match_param::misc_parameters_2::bit_off / 8;
  prm::set<Misc2::metadata_reg_c_1>(mask.data() + kMisc2, 0xffff);
  prm::set<Misc2::metadata_reg_c_1>(value.data() + kMisc2, 0x1234);
  auto next = make_flow_table(dev(), 4, 5);
  auto group = make_flow_group(dev(), next.number(), 0, 7, 8, mask);
  FlowRule hit;
  hit.table = next.number(), hit.group = group.number(), hit.value = value;
  hit.to = {{FlowDest::kTir, link->tir.number()}};
  hit.tag = 0x77;
  auto take = make_flow(dev(), hit);

  auto modify = make_modify_header(
      dev(), {set_field(ACTION_IN_FIELD_METADATA_REG_C_0, 0x1234),
              copy_field(ACTION_IN_FIELD_METADATA_REG_C_0, ACTION_IN_FIELD_METADATA_REG_C_1, 16),
              set_field(ACTION_IN_FIELD_METADATA_REG_B, 0xabcdef01)});
  link->steer_to(0);
  FlowRule r;
  r.table = link->table.number(), r.group = link->all.number(), r.index = 8;
  r.to = {{FlowDest::kTable, next.number()}};
  {
    auto without = make_flow(dev(), r);
    EXPECT_TRUE(arrives(plain_frame(100)).empty());
  }
  r.action = kModify, r.modify = modify.number();
  auto with = make_flow(dev(), r);
  EXPECT_EQ(arrives(plain_frame(100)), plain_frame(100));
  EXPECT_EQ(cqe.raw.sop_drop_qpn & 0xffffff, 0x77u);
  EXPECT_EQ(cqe.imm, 0xabcdef01u);  // register B
}

// ---- VLAN tags ----

TEST_F(Steering, TagsArePushedAndPopped) {
  Root tx(dev(), kNicTxTable);
  FlowRule r = tx.rule();
  r.allow = true, r.action = kPushVlan, r.push_tpid = 0x8100, r.push_tci = 0xa123 & 0xefff;
  auto push = make_flow(dev(), r);
  const Frame plain = plain_frame(100);
  Frame tagged(plain.begin(), plain.begin() + 12);
  u16(tagged, 0x8100), u16(tagged, 0xa123);
  tagged.insert(tagged.end(), plain.begin() + 12, plain.end());
  EXPECT_EQ(arrives(plain), tagged);

  FlowRule pop;
  pop.action = kPopVlan;
  auto rule = receive_rule(pop);
  EXPECT_EQ(arrives(plain), plain);
  ASSERT_TRUE(push.destroy().ok());
  EXPECT_EQ(arrives(plain), plain);  // no tag, nothing to pop
}

// ---- Tunnels ----

TEST_F(Steering, L2TunnelAndBack) {
  breaks({"destroy-busy"});
  Root tx(dev(), kNicTxTable);
  const Frame headers = vxlan_headers(0x123456);
  Reformat encap;
  encap.type = REFORMAT_TYPE_L2_TO_L2_TUNNEL, encap.data = headers;
  auto context = make_reformat(dev(), encap);
  FlowRule r = tx.rule();
  r.allow = true, r.action = kReformat, r.reformat = context.number();
  auto rule = make_flow(dev(), r);
  EXPECT_STATUS(context.destroy(), CmdStatus::kBadResState);

  L4 l4;
  l4.udp = true;
  const Frame inner = l4_frame(l4);
  const Frame got = arrives(inner);
  ASSERT_EQ(got.size(), headers.size() + inner.size());
  EXPECT_EQ(Frame(got.begin() + static_cast<std::ptrdiff_t>(headers.size()), got.end()), inner);
  EXPECT_EQ(at16(got, 16), got.size() - kEth);
  EXPECT_EQ(plain_sum(got, 14, 34), 0xffffu);
  EXPECT_EQ(at16(got, 38), got.size() - kEth - 20);
  EXPECT_EQ(at16(got, 40), 0u);
  EXPECT_EQ(Frame(got.begin() + 42, got.begin() + 50), Frame(headers.begin() + 42, headers.end()));

  // Back to what it was.
  link->rule.reset();
  Root rx(dev(), kNicRxTable);
  FlowRule decap = rx.rule();
  decap.action = kDecap, decap.to = {{FlowDest::kTir, link->tir.number()}};
  auto back = make_flow(dev(), decap);
  EXPECT_EQ(arrives(inner), inner);
  ASSERT_TRUE(rule.destroy().ok());
  EXPECT_TRUE(arrives(inner).empty());  // no tunnel: dropped
  set_flow_root(dev(), link->table.number()).must();
}

TEST_F(Steering, L3TunnelAndBack) {
  Root tx(dev(), kNicTxTable), rx(dev(), kNicRxTable);
  Frame headers = udp_tunnel(6081);
  u32(headers, 0x00000800), u32(headers, 0x00abcd00);  // Geneve, of IPv4
  Reformat encap, decap;
  encap.type = REFORMAT_TYPE_L2_TO_L3_TUNNEL, encap.data = headers;
  decap.type = REFORMAT_TYPE_L3_TUNNEL_TO_L2;
  L4 l4;
  const Frame inner = l4_frame(l4);
  decap.data.assign(inner.begin(), inner.begin() + kEth);
  auto on = make_reformat(dev(), encap), off = make_reformat(dev(), decap);
  FlowRule r = tx.rule();
  r.allow = true, r.action = kReformat, r.reformat = on.number();
  auto out = make_flow(dev(), r);
  FlowRule in = rx.rule();
  in.to = {{FlowDest::kTir, link->tir.number()}};
  {
    auto as_it_is = make_flow(dev(), in);
    const Frame got = arrives(inner);
    ASSERT_EQ(got.size(), headers.size() + inner.size() - kEth);
    EXPECT_EQ(Frame(got.begin() + static_cast<std::ptrdiff_t>(headers.size()), got.end()),
              Frame(inner.begin() + kEth, inner.end()));
  }
  in.action = kReformat, in.reformat = off.number();
  auto back = make_flow(dev(), in);
  EXPECT_EQ(arrives(inner), inner);
  set_flow_root(dev(), link->table.number()).must();
}

TEST_F(Steering, BytesAreInsertedAndRemoved) {
  Root tx(dev(), kNicTxTable);
  const Frame plain = plain_frame(100);
  Reformat insert;
  insert.type = REFORMAT_TYPE_INSERT_HDR, insert.anchor = REFORMAT_CONTEXT_ANCHOR_MAC_START,
  insert.offset = 12;
  insert.data = {0x81, 0x00, 0x00, 0x64};
  auto context = make_reformat(dev(), insert);
  FlowRule r = tx.rule();
  r.allow = true, r.action = kReformat, r.reformat = context.number();
  {
    auto rule = make_flow(dev(), r);
    Frame want = plain;
    want.insert(want.begin() + 12, insert.data.begin(), insert.data.end());
    EXPECT_EQ(arrives(plain), want);
  }
  Reformat remove;
  remove.type = REFORMAT_TYPE_REMOVE_HDR, remove.anchor = REFORMAT_CONTEXT_ANCHOR_IP_START;
  remove.offset = 4, remove.size = 6;
  auto cut = make_reformat(dev(), remove);
  r.reformat = cut.number();
  auto rule = make_flow(dev(), r);
  Frame want = l4_frame({});
  want.erase(want.begin() + 18, want.begin() + 24);
  EXPECT_EQ(arrives(l4_frame({})), want);
  EXPECT_TRUE(arrives(plain).empty());  // there is no IP header
}

}  // namespace
}  // namespace hcasim::bare
