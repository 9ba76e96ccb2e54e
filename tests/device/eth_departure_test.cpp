// SPDX-License-Identifier: BSD-3-Clause
// Send queues that are told when each of their frames leaves the port (sqc.ts_cqe_to_dest_cqn): the driver's
// tx_port_ts.
#include "driver/bare/devx.h"
#include "eth_fixture.h"

namespace hcasim::bare {
namespace {

constexpr std::uint32_t kNoSuchCq = 0xabcde;

class Departure : public EthTest {};

TEST_F(Departure, EachFrameWhenItLeavesThePort) {
  EthLink link(dev());
  Cq departures(dev());
  Sq sq(dev(), link.pd, link.scq, link.tis.number(), 7, false, departures.cqn());
  constexpr unsigned kFrames = 8, kBytes = 1500;
  for (unsigned i = 0; i < kFrames; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)});
  link.put(0, plain_frame(kBytes));
  for (unsigned i = 0; i < kFrames; ++i) {
    EthWr wr;
    wr.metadata = 0x1200 + 250 + i;  // beyond 8 bits: not the card's
    wr.sges = {link.tx_sge(0, kBytes)};
    sq.post(wr, i + 1 == kFrames);
  }
  std::vector<Completion> left, sent, come;
  ASSERT_TRUE(machine().run_until([&] {
    for (Cq* cq : {&departures, &link.scq, &link.rcq})
      while (const auto c = cq->poll())
        (cq == &departures ? left : cq == &link.scq ? sent : come).push_back(*c);
    return left.size() == kFrames && sent.size() == kFrames && come.size() == kFrames;
  })) << left.size()
      << " left, " << sent.size() << " sent, " << come.size() << " came";
  const double wire_ns = (kBytes + 24) * 8 / 100.0;  // preamble, FCS, gap; of the profile's 100 Gb/s
  for (unsigned i = 0; i < kFrames; ++i) {
    EXPECT_EQ(left[i].raw.opcode(), prm::CqeOp::kRespSend);
    EXPECT_EQ(left[i].wqe_counter, (250 + i) & 0xff);
    EXPECT_EQ(left[i].qpn, sq.sqn());
    EXPECT_LT(left[i].raw.timestamp, come[i].raw.timestamp) << "it cannot arrive before it leaves";
    if (i == 0) continue;
    const auto apart = static_cast<double>(left[i].raw.timestamp - left[i - 1].raw.timestamp);
    EXPECT_GE(apart, wire_ns - 2) << "one frame leaves behind the other";
  }
}

TEST_F(Departure, WhatIsLostIsNotReported) {
  EthLink link(dev());
  Cq departures(dev());
  Sq sq(dev(), link.pd, link.scq, link.tis.number(), 7, false, departures.cqn());
  EthWr wr;
  wr.sges = {link.tx_sge(0, 9900)};  // larger than the port's MTU: the port drops it
  sq.post(wr);
  link.scq.wait_one();
  link.put(0, plain_frame(100));
  wr.sges = {link.tx_sge(0, 100)};
  wr.metadata = 7;
  sq.post(wr);
  EXPECT_EQ(departures.wait_one().wqe_counter, 7);
  EXPECT_FALSE(departures.poll());
}

TEST_F(Departure, OfWhatDoesNotExist) {
  breaks({"destroy-busy", "object-reference"});
  EthLink link(dev());
  EXPECT_THROW(Sq(dev(), link.pd, link.scq, link.tis.number(), 7, false, kNoSuchCq), std::exception);
  auto departures = std::make_unique<Cq>(dev());
  Sq sq(dev(), link.pd, link.scq, link.tis.number(), 7, false, departures->cqn());
  EXPECT_FALSE(departures->destroy().ok()) << "a queue refers to it";
  EXPECT_TRUE(sq.destroy().ok());
  EXPECT_TRUE(departures->destroy().ok());
}

// The driver's CQ is not for a user's frames.
TEST_F(Departure, ToACqOfOnesOwn) {
  breaks({"devx-owner"});
  constexpr std::uint32_t kRawTx = 1;
  Cq drivers(dev());
  Uctx user(dev(), kRawTx);
  const Uctx::As as(dev(), user);
  Pd pd(dev());
  Cq cq(dev());
  const EthObject td = make_transport_domain(dev());
  const EthObject tis = make_tis(dev(), td.number());
  EXPECT_THROW(Sq(dev(), pd, cq, tis.number(), 7, false, drivers.cqn()), std::exception);
  EXPECT_NO_THROW(Sq(dev(), pd, cq, tis.number(), 7, false, cq.cqn()));
}

}  // namespace
}  // namespace hcasim::bare
