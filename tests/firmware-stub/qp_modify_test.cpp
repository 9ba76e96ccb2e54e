// SPDX-License-Identifier: BSD-3-Clause
// QP transitions: every command from every state, optional parameters, values out of range.
#include "fixture.h"

#include "driver/bare/qp.h"

namespace hcasim::bare {
namespace {

using Q = prm::query_qp_out::qpc;
enum : std::uint32_t { kRre = 2, kRae = 4, kRwe = 8, kPkey = 16, kQkey = 32, kRnr = 64, kAlt = 1 };

class QpModify : public FirmwareTest {
 protected:
  void SetUp() override {
    FirmwareTest::SetUp();
    pd_ = std::make_unique<Pd>(dev());
    cq_ = std::make_unique<Cq>(dev());
  }
  void TearDown() override {
    cq_.reset();
    pd_.reset();
    FirmwareTest::TearDown();
  }
  static void bring(Qp& qp, QpState s) {
    const QpAttr a;
    if (s == QpState::kInit || s == QpState::kRtr || s == QpState::kRts) qp.to_init(a).must();
    if (s == QpState::kRtr || s == QpState::kRts) qp.to_rtr(a).must();
    if (s == QpState::kRts) qp.to_rts(a).must();
    if (s == QpState::kErr) qp.to_error().must();
  }
  static std::function<void(std::uint8_t*)> nothing() {
    return [](std::uint8_t*) {};
  }
  // The fields that INIT2RTR cannot do without.
  static void fill_rtr(std::uint8_t* qpc) {
    prm::set<prm::qpc::mtu>(qpc, 5);
    prm::set<prm::qpc::log_msg_max>(qpc, 30);
  }
  std::unique_ptr<Pd> pd_;
  std::unique_ptr<Cq> cq_;
};

TEST_F(QpModify, EveryCommandFromEveryState) {
  breaks({"qp-state-transition"});
  struct Row {
    std::uint16_t opcode;
    QpState from;  // the only state it is for
  };
  const Row rows[] = {{prm::op::RST2INIT_QP, QpState::kRst},  {prm::op::INIT2INIT_QP, QpState::kInit},
                      {prm::op::INIT2RTR_QP, QpState::kInit}, {prm::op::RTR2RTS_QP, QpState::kRtr},
                      {prm::op::RTS2RTS_QP, QpState::kRts},   {prm::op::SQERR2RTS_QP, QpState::kSqErr},
                      {prm::op::SQD_RTS_QP, QpState::kSqd}};
  for (const QpState from : {QpState::kRst, QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kErr}) {
    for (const Row& row : rows) {
      Qp qp(dev(), *pd_, *cq_, *cq_);
      bring(qp, from);
      const auto r = qp.modify(row.opcode, 0, fill_rtr);
      if (row.from == from) {
        EXPECT_TRUE(r.ok()) << r.text();
      } else {
        EXPECT_STATUS(r, CmdStatus::kBadQpState);
        EXPECT_EQ(qp.state(), from) << "a refused transition moved the QP";
      }
    }
    Qp qp(dev(), *pd_, *cq_, *cq_);
    bring(qp, from);
    EXPECT_OK(qp.to_error());
    EXPECT_EQ(qp.state(), QpState::kErr);
    EXPECT_OK(qp.to_reset());
    EXPECT_EQ(qp.state(), QpState::kRst);
  }
}

TEST_F(QpModify, RightsComeOnlyWithTheirBits) {
  Qp qp(dev(), *pd_, *cq_, *cq_);
  QpAttr a;
  a.access = 0;
  qp.to_init(a).must();
  const auto all = [](std::uint8_t* qpc) {
    fill_rtr(qpc);
    prm::set<prm::qpc::rre>(qpc, 1);
    prm::set<prm::qpc::rwe>(qpc, 1);
    prm::set<prm::qpc::rae>(qpc, 1);
    prm::set<prm::qpc::atomic_mode>(qpc, 1);
  };
  EXPECT_OK(qp.modify(prm::op::INIT2RTR_QP, kRre, all));
  auto q = qp.query().must();
  EXPECT_EQ(q.get<Q::rre>(), 1u);
  EXPECT_EQ(q.get<Q::rwe>(), 0u);
  EXPECT_EQ(q.get<Q::rae>(), 0u);
  EXPECT_OK(qp.modify(prm::op::RTR2RTS_QP, kRwe, all));
  EXPECT_OK(qp.modify(prm::op::RTS2RTS_QP, kRae, all));
  q = qp.query().must();
  EXPECT_EQ(q.get<Q::rwe>(), 1u);
  EXPECT_EQ(q.get<Q::rae>(), 1u);
  EXPECT_OK(qp.modify(prm::op::RTS2RTS_QP, kRre, nothing()));
  EXPECT_EQ(qp.query().must().get<Q::rre>(), 0u);
}

TEST_F(QpModify, BitsThatATransitionDoesNotKnow) {
  breaks({"qp-optional-mask"});
  Qp qp(dev(), *pd_, *cq_, *cq_);
  EXPECT_STATUS(qp.modify(prm::op::RST2INIT_QP, kRre, nothing()), CmdStatus::kBadParam);
  bring(qp, QpState::kInit);
  EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, kAlt, fill_rtr), CmdStatus::kBadParam);
  EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, 1u << 31, fill_rtr), CmdStatus::kBadParam);
  EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, kQkey, fill_rtr), CmdStatus::kBadParam);  // RC has none
  EXPECT_EQ(qp.state(), QpState::kInit);
}

TEST_F(QpModify, ValuesOutOfRange) {
  breaks({"object-reference", "qp-atomic-mode", "qp-message-max", "qp-mtu", "qp-path", "qp-read-depth"});
  Qp qp(dev(), *pd_, *cq_, *cq_);
  EXPECT_STATUS(
      qp.modify(prm::op::RST2INIT_QP, 0,
                [](std::uint8_t* c) { prm::set<prm::qpc::primary_address_path::pkey_index>(c, 128); }),
      CmdStatus::kIx);
  EXPECT_STATUS(
      qp.modify(prm::op::RST2INIT_QP, 0,
                [](std::uint8_t* c) { prm::set<prm::qpc::primary_address_path::vhca_port_num>(c, 2); }),
      CmdStatus::kIx);
  EXPECT_STATUS(
      qp.modify(prm::op::RST2INIT_QP, 0, [](std::uint8_t* c) { prm::set<prm::qpc::counter_set_id>(c, 200); }),
      CmdStatus::kBadRes);
  EXPECT_STATUS(qp.modify(prm::op::RST2INIT_QP, 0,
                          [](std::uint8_t* c) {
                            prm::set<prm::qpc::rae>(c, 1);
                            prm::set<prm::qpc::atomic_mode>(c, 8);
                          }),
                CmdStatus::kBadParam);
  bring(qp, QpState::kInit);
  for (const unsigned mtu : {0u, 6u, 7u}) {
    EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, 0,
                            [mtu](std::uint8_t* c) {
                              fill_rtr(c);
                              prm::set<prm::qpc::mtu>(c, mtu);
                            }),
                  CmdStatus::kBadParam);
  }
  EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, 0,
                          [](std::uint8_t* c) {
                            fill_rtr(c);
                            prm::set<prm::qpc::log_msg_max>(c, 31);
                          }),
                CmdStatus::kBadParam);
  EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, 0,
                          [](std::uint8_t* c) {
                            fill_rtr(c);
                            prm::set<prm::qpc::log_rra_max>(c, 7);
                          }),
                CmdStatus::kBadParam);
  EXPECT_STATUS(qp.modify(prm::op::INIT2RTR_QP, 0,
                          [](std::uint8_t* c) {
                            fill_rtr(c);
                            prm::set<prm::qpc::primary_address_path::grh>(c, 1);
                            prm::set<prm::qpc::primary_address_path::src_addr_index>(c, 8);
                          }),
                CmdStatus::kIx);
  bring(qp, QpState::kErr);
  qp.to_reset().must();
  bring(qp, QpState::kRtr);
  EXPECT_STATUS(
      qp.modify(prm::op::RTR2RTS_QP, 0, [](std::uint8_t* c) { prm::set<prm::qpc::log_sra_max>(c, 5); }),
      CmdStatus::kBadParam);
}

TEST_F(QpModify, TimersAndCountersOnTheWay) {
  Qp qp(dev(), *pd_, *cq_, *cq_);
  bring(qp, QpState::kRts);
  EXPECT_OK(
      qp.modify(prm::op::RTS2RTS_QP, kRnr, [](std::uint8_t* c) { prm::set<prm::qpc::min_rnr_nak>(c, 9); }));
  EXPECT_EQ(qp.query().must().get<Q::min_rnr_nak>(), 9u);
  EXPECT_OK(
      qp.modify(prm::op::RTS2RTS_QP, 0, [](std::uint8_t* c) { prm::set<prm::qpc::min_rnr_nak>(c, 3); }));
  EXPECT_EQ(qp.query().must().get<Q::min_rnr_nak>(), 9u);
}

TEST_F(QpModify, DatagramsHaveAQkey) {
  breaks({"qp-optional-mask"});
  QpOptions o;
  o.type = QpType::kUd;
  Qp qp(dev(), *pd_, *cq_, *cq_, o);
  QpAttr a;
  a.qkey = 0x11112222;
  qp.connect(a);
  EXPECT_EQ(qp.query().must().get<Q::q_key>(), 0x11112222u);
  EXPECT_OK(
      qp.modify(prm::op::RTS2RTS_QP, kQkey, [](std::uint8_t* c) { prm::set<prm::qpc::q_key>(c, 0x3333); }));
  EXPECT_EQ(qp.query().must().get<Q::q_key>(), 0x3333u);
  EXPECT_STATUS(qp.modify(prm::op::RTS2RTS_QP, kRre, nothing()), CmdStatus::kBadParam);
}

}  // namespace
}  // namespace hcasim::bare
