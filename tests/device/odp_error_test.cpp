// SPDX-License-Identifier: BSD-3-Clause
// On-demand paging where it ends in an error: pages that do not come, queues that go away meanwhile, answers
// that fit nothing.
#include "odp_fixture.h"

namespace hcasim::bare {
namespace {

using Odp = OdpTest;

// --- Resumed with an error

TEST_F(Odp, SendWithoutItsPageFailsBehindWhatIsBeforeIt) {
  PagedPair p(dev());
  p.b.post_recv({p.bsge(0, 4096)});
  p.b.post_recv({p.bsge(4096, 8192)});
  const auto first = p.a.post(p.wr(WqeOp::kSend, 0, 3000), false);
  p.apaged.map(0, 1);
  SendWr w;
  w.sges = {p.apaged.sge(0, 8000)};
  const auto n = p.a.post(w, false);
  const auto last = p.a.post_nop();
  const Fault f = next_fault();
  EXPECT_EQ(f.done, 4096u);
  EXPECT_CMD_OK(resume(f, true));
  expect_good(p.acq, first);
  Completion c = p.acq.wait_one();
  expect_error(c, prm::CqeSyndrome::kLocalProt);
  EXPECT_EQ(c.vendor_syndrome, 0x93);
  EXPECT_EQ(c.wqe_counter, n);
  c = p.acq.wait_one();
  expect_error(c, prm::CqeSyndrome::kWrFlush);
  EXPECT_EQ(c.wqe_counter, last);
  EXPECT_EQ(p.a.state(), QpState::kErr);
  expect_good(p.bcq, 0);
}

TEST_F(Odp, AnswerWithoutItsPageFails) {
  PagedPair p(dev());
  auto w = p.wr(WqeOp::kRdmaRead, 0, 5000);
  w.sges = {p.apaged.sge(0, 5000)};
  p.a.post(w);
  EXPECT_CMD_OK(resume(next_fault(), true));
  const Completion c = p.acq.wait_one();
  expect_error(c, prm::CqeSyndrome::kLocalProt);
  EXPECT_EQ(c.vendor_syndrome, 0x93);
  EXPECT_EQ(p.a.state(), QpState::kErr);
}

TEST_F(Odp, ReceiveWithoutItsPageFailsBothEnds) {
  PagedPair p(dev());
  p.b.post_recv({p.bpaged.sge(0, 4096)});
  p.a.post(p.wr(WqeOp::kSend, 0, 100));
  EXPECT_CMD_OK(resume(next_fault(), true));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteOp);
  const Completion c = p.bcq.wait_one();
  expect_error(c, prm::CqeSyndrome::kLocalProt);
  EXPECT_EQ(c.vendor_syndrome, 0x93);
  EXPECT_EQ(p.b.state(), QpState::kErr);
}

TEST_F(Odp, RemoteMemoryWithoutItsPageIsNoAccess) {
  for (const WqeOp op : {WqeOp::kRdmaWrite, WqeOp::kRdmaRead, WqeOp::kAtomicFa}) {
    PagedPair p(dev());
    p.bpaged.map(0, 1);
    const bool atomic = op == WqeOp::kAtomicFa;
    auto w = p.wr(op, 0, atomic ? 8 : 8000);
    w.raddr = p.bpaged.mr.start() + (atomic ? kPage : 0);
    w.rkey = p.bpaged.mr.key();
    dev().clear_async_events();
    p.a.post(w);
    EXPECT_CMD_OK(resume(next_fault(), true));
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
    EXPECT_EQ(p.b.state(), QpState::kErr);
    EXPECT_EQ(dev().count_async(prm::EqeType::kWqAccess, p.b.qpn()), 1u);
    p.fill(1);
  }
  expect_serves_on();
}

TEST_F(Odp, WithoutAListenerAFaultIsAnError) {
  PagedPair p(dev());
  EXPECT_CMD_OK(eq_->destroy());
  p.b.post_recv({p.bpaged.sge(0, 4096)});
  p.a.post(p.wr(WqeOp::kSend, 0, 100));
  expect_error(p.bcq.wait_one(), prm::CqeSyndrome::kLocalProt);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteOp);
  PagedPair q(dev());
  SendWr w;
  w.sges = {q.apaged.sge(0, 100)};
  q.a.post(w);
  expect_error(q.acq.wait_one(), prm::CqeSyndrome::kLocalProt);
  EXPECT_GE(fn().counter("page_faults_unheard"), 2u);
  expect_serves_on();
}

// --- Queues that go away, and answers that fit nothing

TEST_F(Odp, AFaultedQpThatIsResetStartsAgain) {
  breaks({"page-fault-resume"});
  PagedPair p(dev());
  SendWr w;
  w.sges = {p.apaged.sge(0, 100)};
  p.a.post(w);
  p.b.post_recv({p.bpaged.sge(0, 100)});
  const Fault f = next_fault();
  ASSERT_TRUE(p.a.to_reset().ok());
  ASSERT_TRUE(p.b.to_reset().ok());
  EXPECT_CMD_OK(resume(f));
  EXPECT_CMD_STATUS(resume(f), CmdStatus::kBadResState);
  connect_pair(p.a, p.b);
  p.b.post_recv({p.bsge(0, 100)});
  const auto n = p.a.post(w);
  const Fault g = next_fault();
  p.apaged.map(0, 1);
  EXPECT_CMD_OK(resume(g));
  expect_good(p.acq, n);
}

TEST_F(Odp, AFaultedQpThatFailsIsFlushed) {
  PagedPair p(dev());
  SendWr w;
  w.sges = {p.apaged.sge(0, 100)};
  const auto n = p.a.post(w);
  p.b.post_recv({p.bpaged.sge(0, 100)});
  const Fault f = next_fault();
  ASSERT_TRUE(p.a.to_error().ok());
  Completion c = p.acq.wait_one();
  expect_error(c, prm::CqeSyndrome::kWrFlush);
  EXPECT_EQ(c.wqe_counter, n);
  EXPECT_CMD_OK(resume(f));
  // The responder's side of it: the WQE that a message has taken is flushed as well.
  PagedPair q(dev());
  q.b.post_recv({q.bpaged.sge(0, 100)});
  q.a.post(q.wr(WqeOp::kSend, 0, 100));
  const Fault g = next_fault();
  ASSERT_TRUE(q.b.to_error().ok());
  expect_error(q.bcq.wait_one(), prm::CqeSyndrome::kWrFlush);
  EXPECT_CMD_OK(resume(g, true));
  machine().advance(1'000'000);
  EXPECT_FALSE(q.bcq.ready());
}

TEST_F(Odp, AFaultedQpThatIsDestroyedLeavesNothing) {
  breaks({"mr-key", "page-fault-resume"});
  Fault f{}, g{};
  {
    PagedPair p(dev()), q(dev());
    SendWr w;
    w.sges = {p.apaged.sge(0, 100)};
    p.a.post(w);
    f = next_fault();
    q.b.post_recv({q.bpaged.sge(0, 100)});
    q.a.post(q.wr(WqeOp::kSend, 0, 10));
    g = next_fault();
  }
  EXPECT_CMD_STATUS(resume(f), CmdStatus::kBadRes);
  EXPECT_CMD_STATUS(resume(g, true), CmdStatus::kBadRes);
  expect_serves_on();
}

TEST_F(Odp, NonsenseIsRefused) {
  breaks({"page-fault-resume"});
  PagedPair p(dev());
  const std::uint32_t q = p.a.qpn();
  EXPECT_CMD_STATUS(resume(kSendFault, 0xabcdef, 0xabcdef, false), CmdStatus::kBadRes);
  EXPECT_CMD_STATUS(resume(kSendFault, q, q + 1, false), CmdStatus::kBadRes);
  EXPECT_CMD_STATUS(resume(kSendFault, q, q, false), CmdStatus::kBadResState);
  EXPECT_CMD_STATUS(resume(kSrqReceive, 1, q, true), CmdStatus::kBadResState);
  EXPECT_CMD_STATUS(resume(5, q, q, false), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(resume(7, q, q, false), CmdStatus::kBadParam);
  SendWr w;
  w.sges = {p.apaged.sge(0, 100)};
  p.b.post_recv({p.bsge(0, 100)});
  const auto n = p.a.post(w);
  const Fault f = next_fault();
  p.apaged.map(0, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
  EXPECT_CMD_STATUS(resume(f), CmdStatus::kBadResState);
}

TEST_F(Odp, ResumedTooEarlyFaultsAgain) {
  PagedPair p(dev());
  SendWr w;
  w.sges = {p.apaged.sge(0, 100)};
  p.b.post_recv({p.bsge(0, 100)});
  const auto n = p.a.post(w);
  for (int i = 0; i < 50; ++i) EXPECT_CMD_OK(resume(next_fault()));
  const Fault f = next_fault();
  p.apaged.map(0, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
}

TEST_F(Odp, RnrRetriesAreCounted) {
  PairOptions o = PagedPair::options();
  o.attr.rnr_retry = 2;
  PagedPair p(dev(), o);
  p.b.post_recv({p.bpaged.sge(0, 100)});
  p.a.post(p.wr(WqeOp::kSend, 0, 100));
  const Fault f = next_fault();
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRnrRetryExc);
  EXPECT_CMD_OK(resume(f));
}

}  // namespace
}  // namespace hcasim::bare
