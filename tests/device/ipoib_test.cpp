// SPDX-License-Identifier: BSD-3-Clause
// IPoIB's enhanced offloads: queues of frames on an InfiniBand port, whose frames are datagrams of a UD QP;
// checksums, large sends, flow tables and RSS as on Ethernet.
#include "ipoib_link.h"

namespace hcasim::bare {
namespace {

using Misc = prm::fte_match_set_misc;
using Link = IpoibLink;

class Ipoib : public DeviceTest {
 protected:
  Ipoib() { function_ = kIpoibFunction; }
};

TEST_F(Ipoib, CountersThatTheTablesOfferAreThere) {
  using g = prm::cmd_hca_cap;
  EXPECT_NE(dev().cap<g::max_flow_counter_31_16>() << 16 | dev().cap<g::max_flow_counter_15_0>(), 0u);
  const EthObject counter = make_flow_counter(dev());
  EXPECT_EQ(query_flow_counter(dev(), counter.number()).packets, 0u);
}

TEST_F(Ipoib, ADatagramComesWithItsHeadersAndSums) {
  Link link(dev());
  link.post_receives(2);
  for (const bool v6 : {false, true}) {
    L4 l4;
    l4.v6 = v6;
    const Frame sent = l4_frame(l4);
    EthWr w = link.wr(datagram_of(sent));
    w.cs_flags = prm::EthSeg::kL4Csum | prm::EthSeg::kL3Csum;
    if (v6) {
      link.address.grh = true;
      const auto gid = dev().gid(0);
      std::copy(gid.begin(), gid.end(), link.address.dgid.begin());
      w.to = link.address;
    }
    expect_good(link.scq, link.sq.post(w));
    const Completion c = link.rcq.wait_one();
    ASSERT_FALSE(c.error()) << c.text();
    const Frame got = link.received(v6 ? 1 : 0, c.byte_cnt);
    EXPECT_EQ(c.byte_cnt, kGrh + datagram_of(sent).size());
    EXPECT_TRUE(l4_sum_right(got));
    const int data = v6 ? 74 : 54;
    EXPECT_TRUE(std::equal(got.begin() + data, got.end(), sent.begin() + data));
    // The sum is that of all behind the encapsulation header.
    EXPECT_EQ(static_cast<unsigned>(c.raw.check_sum), plain_sum(got, 14, got.size()));
    EXPECT_EQ(c.raw.hds_ip_ext, prm::Cqe::kL2Ok | prm::Cqe::kL3Ok | prm::Cqe::kL4Ok);
    EXPECT_EQ(c.raw.qpn(), link.to.qpn());
    EXPECT_EQ(c.flags_rqpn & 0xffffff, link.from.qpn());
    EXPECT_EQ((c.flags_rqpn & prm::Cqe::kGrh) != 0, v6);
    EXPECT_EQ(c.slid, dev().lid());
    if (v6) {
      EXPECT_EQ(std::memcmp(link.rx.data() + Link::kRoom + 24, dev().gid(0).data(), 16), 0) << "DGID";
    }
  }
}

TEST_F(Ipoib, ALargeSendIsOneDatagramForEachSegment) {
  Link link(dev());
  constexpr unsigned kSegments = 5, kMss = 2000;
  link.post_receives(kSegments);
  L4 l4;
  l4.payload = kSegments * kMss - 100;
  const Frame whole = datagram_of(l4_frame(l4));
  constexpr std::size_t kHeaders = kEncapsulation + 20 + 20;
  EthWr w = link.wr(whole);
  w.op = WqeOp::kLso;
  w.mss = kMss;
  w.cs_flags = prm::EthSeg::kL4Csum | prm::EthSeg::kL3Csum;
  w.headers.assign(whole.begin(), whole.begin() + kHeaders);
  w.sges[0].addr += kHeaders;
  w.sges[0].len -= kHeaders;
  expect_good(link.scq, link.sq.post(w));
  const auto all = link.rcq.wait(kSegments);
  ASSERT_EQ(all.size(), kSegments);
  Frame data;
  for (unsigned i = 0; i < kSegments; ++i) {
    ASSERT_FALSE(all[i].error()) << all[i].text();
    const Frame got = link.received(i, all[i].byte_cnt);
    EXPECT_TRUE(l4_sum_right(got)) << i;
    EXPECT_EQ(prm::load32(got.data() + 38), 0xfffffff0u + i * kMss) << "TCP sequence of " << i;
    EXPECT_EQ(prm::load16(got.data() + 16), got.size() - 14) << "length of " << i;
    data.insert(data.end(), got.begin() + 54, got.end());
  }
  EXPECT_TRUE(std::equal(data.begin(), data.end(), whole.begin() + kHeaders, whole.end()));
}

TEST_F(Ipoib, TheTablesOfTheQpDecide) {
  Link link(dev());
  link.post_receives(4);
  const Frame d = datagram_of(l4_frame({}));
  const auto send = [&] { expect_good(link.scq, link.sq.post(link.wr(d))); };
  send();
  EXPECT_EQ(link.rcq.wait(1).size(), 1u);
  // A rule for another QP's datagrams takes nothing; one for this QP's does.
  link.rule.reset();
  MatchParam mask{}, value{};
  std::uint8_t* misc = mask.data() + prm::fte_match_param::misc_parameters::bit_off / 8;
  prm::set<Misc::bth_dst_qp>(misc, 0xffffff);
  constexpr unsigned kMiscCriteria = 2;
  const EthObject group = make_flow_group(dev(), link.table.number(), 1, 2, kMiscCriteria, mask);
  for (const std::uint32_t qpn : {link.from.qpn(), link.to.qpn()}) {
    FlowRule r;
    r.table = link.table.number();
    r.group = group.number();
    r.index = 1;
    prm::set<Misc::bth_dst_qp>(value.data() + prm::fte_match_param::misc_parameters::bit_off / 8, qpn);
    r.value = value;
    r.to = {{FlowDest::kTir, link.tir.number()}};
    const EthObject rule = make_flow(dev(), r);
    send();
    EXPECT_EQ(link.rcq.wait(1, 100'000).size(), qpn == link.to.qpn() ? 1u : 0u);
  }
  // Without a root nothing comes.
  using In = prm::set_flow_table_root_in;
  Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, In::bytes, 1);
  EXPECT_CMD_OK(dev().exec(in.set<In::underlay_qpn>(link.to.qpn()).set<In::table_id>(link.table.number())));
  send();
  EXPECT_TRUE(link.rcq.wait(1, 100'000).empty());
}

TEST_F(Ipoib, WhatIsForAnotherQkeyOrAQpThatHasStoppedIsLost) {
  Link link(dev());
  link.post_receives(4);
  const Frame d = datagram_of(l4_frame({}));
  link.address.qkey = kQkey + 1;
  expect_good(link.scq, link.sq.post(link.wr(d)));
  EXPECT_TRUE(link.rcq.wait(1, 100'000).empty());
  link.address.qkey = kQkey;
  // The sender's QP is gone to RESET: its queue's WQEs complete, and nothing leaves.
  EXPECT_CMD_OK(link.from.to_reset());
  expect_good(link.scq, link.sq.post(link.wr(d)));
  EXPECT_TRUE(link.rcq.wait(1, 100'000).empty());
  link.from.start(kQkey);
  expect_good(link.scq, link.sq.post(link.wr(d)));
  EXPECT_EQ(link.rcq.wait(1).size(), 1u);
  EXPECT_CMD_OK(link.to.to_reset());
  expect_good(link.scq, link.sq.post(link.wr(d)));
  EXPECT_TRUE(link.rcq.wait(1, 100'000).empty());
}

TEST_F(Ipoib, ADatagramIsAtMostAsLongAsTheMtu) {
  breaks({"wqe-length"});
  Link link(dev());
  link.post_receives(1);
  Frame longest(kMtu, 0x5a);
  longest[0] = 0x08, longest[1] = 0x06;
  expect_good(link.scq, link.sq.post(link.wr(longest)));
  const Completion c = link.rcq.wait_one();
  EXPECT_EQ(c.byte_cnt, kGrh + kMtu);
  EXPECT_EQ(std::memcmp(link.rx.data() + kGrh, longest.data(), 2), 0);
  EXPECT_EQ(std::memcmp(link.rx.data() + kGrh + 4, longest.data() + 4, kMtu - 4), 0);
  longest.push_back(0);
  link.sq.post(link.wr(longest));
  expect_error(link.scq.wait_one(), prm::CqeSyndrome::kLocalLength);
}

// A WQE that ends within its address, that wants a VLAN tag, of many frames, and without so much as an
// ethertype.
TEST_F(Ipoib, WrongWqesAreRefused) {
  breaks({"wqe-length", "wqe-segment"});
  for (unsigned how = 0; how < 4; ++how) {
    Link link(dev());
    EthWr w = link.wr(datagram_of(l4_frame({})));
    if (how == 1) w.vlan = 5;
    if (how == 2) w.op = WqeOp::kEnhancedMpsw;
    if (how == 3) w.sges[0].len = kEncapsulation - 1;
    if (how == 0) {
      std::vector<std::uint8_t> wqe(48);
      prm::CtrlSeg ctrl{};
      ctrl.set(WqeOp::kSend, link.sq.next_index(), link.sq.sqn(), 3, prm::kCeAlways);
      std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
      link.sq.post_raw(std::move(wqe), 1);
    } else {
      link.sq.post(w);
    }
    expect_error(link.scq.wait_one(),
                 how == 3 ? prm::CqeSyndrome::kLocalLength : prm::CqeSyndrome::kLocalQpOp);
  }
}

TEST_F(Ipoib, AQpGoesAfterItsTis) {
  breaks({"destroy-busy"});
  EthObject td = make_transport_domain(dev());
  IpoibQp qp(dev());
  {
    EthObject tis = make_tis(dev(), td.number(), 0, qp.qpn());
    EXPECT_CMD_STATUS(qp.destroy(), CmdStatus::kBadResState);
  }
  EXPECT_CMD_OK(qp.destroy());
}

TEST_F(Ipoib, NamesOfQpsAreChecked) {
  breaks({"cap-not-offered", "object-reference", "object-unknown"});
  Link link(dev());
  Cq cq(dev());
  QpOptions o;
  o.type = QpType::kUd;
  Qp plain(dev(), link.pd, cq, cq, o);
  using Tis = prm::create_tis_in;
  for (const std::uint32_t qpn : {0u, 0xfffffeu, plain.qpn()}) {
    const CmdStatus want = qpn == 0 ? CmdStatus::kBadParam : CmdStatus::kBadRes;
    Mailbox in(prm::op::CREATE_TIS, Tis::bytes);
    in.set<Tis::ctx::transport_domain>(link.td.number()).set<Tis::ctx::underlay_qpn>(qpn);
    EXPECT_CMD_STATUS(dev().exec(in, prm::create_tis_out::bytes), want);
    EXPECT_CMD_STATUS(set_flow_root(dev(), link.table.number(), kNicRxTable, qpn), want);
  }
  // Of other types of tables there are none on InfiniBand.
  using Table = prm::create_flow_table_in;
  for (unsigned type : {kNicTxTable, kSnifferRxTable, kRdmaRxTable}) {
    Mailbox in(prm::op::CREATE_FLOW_TABLE, Table::bytes);
    in.set<Table::table_type>(type).set<Table::flow_table_context::log_size>(2);
    EXPECT_CMD_STATUS(dev().exec(in, prm::create_flow_table_out::bytes), CmdStatus::kBadParam);
  }
}

TEST_F(Ipoib, NothingPutsHeadersBeforeDatagrams) {
  breaks({"packet-reformat"});
  Reformat r;
  r.data.assign(64, 0);
  for (unsigned type = 0; type < 256; ++type) {
    r.type = type;
    EXPECT_FALSE(try_reformat(dev(), r).ok()) << type;
  }
}

class IpoibPlain : public DeviceTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  IpoibPlain() { function_ = GetParam(); }
};

TEST_P(IpoibPlain, IsOfferedWhereItIsAskedForAlone) {
  breaks({"cap-not-offered"});
  EXPECT_EQ(dev().cap<prm::cmd_hca_cap::ipoib_enhanced_offloads>(), 0u);
  EXPECT_THROW(IpoibQp qp(dev()), BareError);
}
INSTANTIATE_TEST_SUITE_P(Links, IpoibPlain, ::testing::Values(0, kEthFunction));

}  // namespace
}  // namespace hcasim::bare
