// SPDX-License-Identifier: BSD-3-Clause
// Congestion control by itself: marked packets in, CNPs out; CNPs in, a slower QP.
#include "model/cc/congestion.h"

#include <gmock/gmock.h>

#include "block_rig.h"
#include "prm/packet.h"

namespace hcasim::test {
namespace {

class CongestionTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    r.port.set_link(LinkType::kEthernet);
    RoceAddress own;
    own.valid = true;
    own.mac = {2, 0, 0, 0, 0, 1};
    own.gid[15] = 1;
    own.version = 2;
    r.vport.set_roce_address(0, own);
    qp = &r.make_qp();
    qp->path.hop_limit = 64;
  }
  static PacketRef data_packet(std::uint8_t ecn) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kRoceV2;
    p->opcode = static_cast<std::uint8_t>(prm::BthOp::kSendOnly) | prm::bth::kRc;
    p->dest_qpn = BlockRig::kQpn;
    p->has_grh = true;
    p->tclass = ecn;
    p->smac = {2, 0, 0, 0, 0, 2};
    p->dmac = {2, 0, 0, 0, 0, 1};
    p->sgid[15] = 2;
    p->dgid[15] = 1;
    p->payload_len = BlockRig::kMtu;
    return p;
  }
  static PacketRef cnp(std::uint32_t qpn = BlockRig::kQpn) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kRoceV2;
    p->opcode = prm::bth::kCnp;
    p->dest_qpn = qpn;
    return p;
  }
  double line_rate() const { return r.profile.port.rate_gbps * 1000; }
  Qp* qp = nullptr;
};

TEST_F(CongestionTest, AMarkedPacketIsAnsweredWithACnpToItsSender) {
  r.cc.received(sim_now(), *qp, *data_packet(kCe));
  ASSERT_EQ(r.wire.sent.size(), 1u);
  const Packet& p = r.sent(0);
  EXPECT_EQ(p.opcode, prm::bth::kCnp);
  EXPECT_EQ(p.dest_qpn, BlockRig::kRemoteQpn);
  EXPECT_EQ(p.dmac, (Mac{2, 0, 0, 0, 0, 2}));
  EXPECT_EQ(p.dgid[15], 2);
  EXPECT_EQ(p.tclass >> 2, r.cc.np.cnp_dscp);
  EXPECT_EQ(r.cc.statistics().np_cnp_sent, 1u);
  EXPECT_EQ(r.cc.statistics().np_ecn_marked_roce_packets, 1u);
}

TEST_F(CongestionTest, CnpsOfDatagramsGoThroughRouters) {
  r.profile.port.cnp_moderation = Profile::Port::kCnpsOfFlow;
  qp->type = QpType::kUd;
  qp->path.hop_limit = 0;  // datagrams have paths of their own
  PacketRef p = data_packet(kCe);
  p->src_qpn = 0x77;
  r.cc.received(sim_now(), *qp, *p);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent(0).dest_qpn, 0x77u);
  EXPECT_EQ(r.sent(0).hop_limit, 64u);
  qp->type = QpType::kDct;  // has one for all that it answers
  qp->path.hop_limit = 7;
  qp->cc = {};
  r.cc.received(sim_now(), *qp, *p);
  ASSERT_EQ(r.wire.sent.size(), 2u);
  EXPECT_EQ(r.sent(1).hop_limit, 7u);
}

// Responses do not say whose they are: the initiator knows its target, which slows the context of that
// source.
TEST_F(CongestionTest, ResponsesToADcInitiatorAreSlowed) {
  qp->type = QpType::kDci;
  qp->req.dc_target.dqp_dct = prm::AvSeg::kExtended | 0x321;
  PacketRef p = data_packet(kCe);
  p->opcode = static_cast<std::uint8_t>(static_cast<unsigned>(prm::BthOp::kReadRespOnly) | prm::bth::kDc);
  r.cc.received(sim_now(), *qp, *p);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent(0).dest_qpn, 0x321u);

  Qp& dct = r.make_qp(0x321);
  dct.type = QpType::kDct;
  PacketRef told = cnp(0x321);
  told->has_grh = true;
  told->sgid[15] = 2;
  DcContexts& contexts = r.qps.dc_contexts();
  Qp* const near = contexts.create(sim_now(), 8, 0x321, 5, told->sgid);
  Qp* const other = contexts.create(sim_now(), 8, 0x321, 5, told->dgid);
  Qp* const of_other = contexts.create(sim_now(), 8, 0x322, 5, told->sgid);
  ASSERT_TRUE(near && other && of_other);
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *told);
  EXPECT_TRUE(near->cc.limited);
  EXPECT_FALSE(other->cc.limited);
  EXPECT_FALSE(of_other->cc.limited);
  EXPECT_FALSE(dct.cc.limited);
  EXPECT_EQ(r.cc.statistics().rp_cnp_handled, 1u);
}

// Where flows have times of their own, each initiator has its distance between CNPs, not all of a target
// together.
TEST_F(CongestionTest, EveryInitiatorOfADcTargetIsToldOfItsPackets) {
  r.profile.port.cnp_moderation = Profile::Port::kCnpsOfFlow;
  qp->type = QpType::kDct;
  DcContexts& contexts = r.qps.dc_contexts();
  PacketRef p = data_packet(kCe);
  for (const std::uint32_t initiator : {5u, 6u}) {
    ASSERT_TRUE(contexts.create(sim_now(), 8, BlockRig::kQpn, initiator, p->sgid));
    p->src_qpn = initiator;
    for (int i = 0; i < 2; ++i) r.cc.received(sim_now(), *qp, *p);
  }
  ASSERT_EQ(r.wire.sent.size(), 2u);
  EXPECT_EQ(r.sent(0).dest_qpn, 5u);
  EXPECT_EQ(r.sent(1).dest_qpn, 6u);
}

TEST_F(CongestionTest, PacketsWithoutTheMarkAreNotAnswered) {
  for (const std::uint8_t ecn : {kNotEct, kEct0, kEct1}) r.cc.received(sim_now(), *qp, *data_packet(ecn));
  EXPECT_TRUE(r.wire.sent.empty());
  EXPECT_EQ(r.cc.statistics().np_ecn_marked_roce_packets, 0u);
}

TEST_F(CongestionTest, CnpsOfOneQpKeepTheirDistance) {
  const Time interval = static_cast<Time>(r.cc.np.min_time_between_cnps) * from_ns(1000);
  const Time t = sim_now();
  r.cc.received(t, *qp, *data_packet(kCe));
  r.cc.received(t + interval - 1, *qp, *data_packet(kCe));
  EXPECT_EQ(r.cc.statistics().np_cnp_sent, 1u);
  r.cc.received(t + interval, *qp, *data_packet(kCe));
  EXPECT_EQ(r.cc.statistics().np_cnp_sent, 2u);
  EXPECT_EQ(r.cc.statistics().np_ecn_marked_roce_packets, 3u);
}

TEST_F(CongestionTest, APriorityWithoutNotificationSendsNoCnp) {
  r.cc.np_enabled = 0xfe;
  r.cc.received(sim_now(), *qp, *data_packet(kCe));
  EXPECT_TRUE(r.wire.sent.empty());
  PacketRef p = data_packet(kCe);
  p->has_vlan = true;
  p->vlan_tci = 1 << 13 | 5;
  r.cc.received(sim_now(), *qp, *p);
  EXPECT_EQ(r.wire.sent.size(), 1u);
}

TEST_F(CongestionTest, PrioritiesAreOfTheDscpIfThePortTrustsIt) {
  r.port.priorities.by_dscp = true;
  r.port.priorities.of_dscp[26] = 3;
  r.cc.np_enabled = r.cc.rp_enabled = 1 << 3;
  PacketRef p = data_packet(kCe);
  r.cc.received(sim_now(), *qp, *p);
  EXPECT_TRUE(r.wire.sent.empty());
  p->tclass |= 26 << 2;
  r.cc.received(sim_now(), *qp, *p);
  EXPECT_EQ(r.wire.sent.size(), 1u);

  qp->path.source.version = 2;
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp());
  EXPECT_FALSE(qp->cc.limited);
  qp->path.dscp = 26;
  qp->path.eth_prio = 1;
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp());
  EXPECT_TRUE(qp->cc.limited);
  for (const std::uint8_t dscp : {0, 26}) {
    p = data_packet(kNotEct);
    p->tclass = static_cast<std::uint8_t>(dscp << 2);
    r.cc.sending(sim_now(), *qp, *p);
    EXPECT_EQ(p->tclass & kEcnMask, dscp == 26 ? kEct0 : kNotEct) << unsigned{dscp};
  }
}

TEST_F(CongestionTest, ACnpCutsTheRateOfItsQpAlone) {
  Qp& other = r.make_qp(BlockRig::kQpn + 1);
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp());
  EXPECT_TRUE(qp->cc.limited);
  EXPECT_LT(qp->cc.current, line_rate());
  EXPECT_GE(qp->cc.current, line_rate() * r.cc.rp.min_dec_fac / 100);
  EXPECT_FALSE(other.cc.limited);
  EXPECT_EQ(r.cc.statistics().rp_cnp_handled, 1u);
  EXPECT_EQ(r.cc.current_flows(), 1u);
}

TEST_F(CongestionTest, ASlowedQpWaitsBetweenItsPacketsAsItsRateWants) {
  const Time t = sim_now();
  const PacketRef p = data_packet(kNotEct);
  r.cc.sending(t, *qp, *p);
  EXPECT_EQ(r.cc.earliest(t, *qp), t) << "nothing limits it yet";
  r.cc.receive_cnp(t, BlockRig::kFunction, *cnp());
  EXPECT_EQ(r.cc.earliest(t, *qp), t) << "the first packet after the cut may go";
  r.cc.sending(t, *qp, *p);
  const Time next = r.cc.earliest(t, *qp);
  const double mbps = qp->cc.current, bits = 8.0 * Port::wire_bytes(*p);
  EXPECT_NEAR(static_cast<double>(next - t), bits / mbps * 1e6, 1000.0);  // ps
}

TEST_F(CongestionTest, CnpsForNobodyWhoSendsAreIgnored) {
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp(0x999));
  qp->state = QpState::kErr;
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp());
  qp->state = QpState::kRts;
  r.cc.rp_enabled = 0;
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp());
  EXPECT_FALSE(qp->cc.limited);
  EXPECT_EQ(r.cc.statistics().rp_cnp_ignored, 3u);
  EXPECT_EQ(r.cc.statistics().rp_cnp_handled, 0u);
}

TEST_F(CongestionTest, DataPacketsLeaveEcnCapable) {
  PacketRef p = data_packet(kNotEct);
  p->tclass = 9 << 2;
  r.cc.sending(sim_now(), *qp, *p);
  EXPECT_EQ(p->tclass & kEcnMask, kEct0);
  EXPECT_EQ(p->tclass >> 2, 9) << "the DSCP is the QP's";
  r.cc.rp_enabled = 0;
  p = data_packet(kNotEct);
  r.cc.sending(sim_now(), *qp, *p);
  EXPECT_EQ(p->tclass & kEcnMask, kNotEct) << "without a reaction point there is no use for the mark";
}

TEST_F(CongestionTest, AQpThatIsResetHasNoLimiter) {
  r.cc.receive_cnp(sim_now(), BlockRig::kFunction, *cnp());
  CongestionControl::forget(*qp);
  EXPECT_FALSE(qp->cc.limited);
  EXPECT_EQ(r.cc.current_flows(), 0u);
  EXPECT_EQ(r.cc.statistics().sum_flows, 1u);
}

}  // namespace
}  // namespace hcasim::test
