// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "bench.h"
#include "prm/cqe.h"
#include "prm/eqe.h"

namespace hcasim::test {
namespace {

constexpr std::uint64_t kEqRing = 0x10000, kCqRing = 0x20000, kNewRing = 0x30000, kDbr = 0x40000;
constexpr std::uint32_t kEqn = 7, kCqn = 33, kVector = 4;
constexpr std::uint32_t kSolicitedOnly = prm::CqDoorbell::kSolicitedOnly;

class EventTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    eq = b.eq_table.create(kEqn);
    eq->ring.pages = {kEqRing};
    eq->log_size = 3;
    eq->vector = kVector;
    cq = b.cq_table.create(kCqn);
    cq->ring.pages = {kCqRing};
    cq->log_size = 2;
    cq->eqn = kEqn;
    cq->dbr_addr = kDbr;
    for (std::uint64_t i = 0; i < 64; ++i) b.host.memory[kCqRing + 64 * i + 63] = 0xf1;
  }
  template <class T>
  T load(std::uint64_t addr) const {
    T v;
    std::memcpy(&v, &b.host.memory[addr], sizeof v);
    return v;
  }
  prm::Eqe eqe(unsigned i) const { return load<prm::Eqe>(kEqRing + 64 * i); }
  prm::Cqe cqe(unsigned i) const { return load<prm::Cqe>(kCqRing + 64 * i); }
  unsigned interrupts() const {
    unsigned n = 0;
    for (const auto& e : b.host.events) n += e.msix;
    return n;
  }
  void post(bool solicited = false, std::uint8_t opcode = 0) {
    Completion c;
    c.opcode = opcode;
    c.qpn = 0x123456;
    c.send_opcode = 0xa;
    c.wqe_counter = 0x8001;
    c.byte_cnt = 77;
    c.user_index = 0x42;
    c.solicited = solicited;
    c.syndrome = opcode ? 5 : 0;
    c.vendor_syndrome = opcode ? 9 : 0;
    b.cqs.post(sim_now(), *cq, c);
    settle();
  }
  void settle() { b.run_ns(2000); }
  void consume(std::uint32_t ci) {
    prm::be32 v = ci;
    std::memcpy(&b.host.memory[kDbr], &v, 4);
  }
  Eq* eq = nullptr;
  Cq* cq = nullptr;
};

TEST_F(EventTest, EqesCarryTheirDataAndTheParityOfThePass) {
  for (unsigned i = 0; i < 12; ++i) {
    const std::uint8_t data[4] = {0xaa, 0, 0, static_cast<std::uint8_t>(i)};
    b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 3, data, sizeof data);
    settle();
    EXPECT_EQ(eqe(i % 8).type, 0x0a);
    EXPECT_EQ(eqe(i % 8).sub_type, 3);
    EXPECT_EQ(eqe(i % 8).owner, i / 8);
    EXPECT_EQ(eqe(i % 8).data.cmd.vector, 0xaa000000u + i);
    EXPECT_EQ(b.eqs.doorbell(sim_now(), 0, kEqn, i + 1, false, 0), DoorbellFate::kTaken);
  }
  EXPECT_EQ(interrupts(), 0u);
}

TEST_F(EventTest, AnArmedEqFiresOnceBehindItsEqe) {
  b.eqs.doorbell(sim_now(), 0, kEqn, 0, true, 0);
  b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
  b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
  settle();
  ASSERT_EQ(b.host.events.size(), 3u);
  EXPECT_EQ(b.host.events[0].addr, kEqRing);
  EXPECT_TRUE(b.host.events[1].msix);
  EXPECT_EQ(b.host.events[1].addr, kVector);
}

TEST_F(EventTest, ArmingWithEqesWaitingFiresAtOnce) {
  b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
  b.eqs.doorbell(sim_now(), 0, kEqn, 0, true, 0);
  settle();
  EXPECT_EQ(interrupts(), 1u);
  EXPECT_FALSE(eq->armed);
  b.eqs.doorbell(sim_now(), 0, kEqn, 1, true, 0);
  settle();
  EXPECT_EQ(interrupts(), 1u);
  EXPECT_TRUE(eq->armed);
}

TEST_F(EventTest, AVectorKeepsItsLeastTimeBetweenInterrupts) {
  constexpr Time kLeast = from_ns(10'000);
  b.interrupt_pace.set(kVector, kLeast);
  std::vector<Time> came;
  for (unsigned i = 0; i < 3; ++i) {
    b.eqs.doorbell(sim_now(), 0, kEqn, i, true, 0);
    b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
    for (unsigned ns = 0; interrupts() == i && ns < 30'000; ns += 10) b.run_ns(10);
    came.push_back(sim_now());
  }
  EXPECT_NEAR(static_cast<double>(came[1] - came[0]), static_cast<double>(kLeast), from_ns(20));
  EXPECT_NEAR(static_cast<double>(came[2] - came[1]), static_cast<double>(kLeast), from_ns(20));
  b.interrupt_pace.set(kVector, 0);
  b.eqs.doorbell(sim_now(), 0, kEqn, 3, true, 0);
  b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
  settle();
  EXPECT_EQ(interrupts(), 4u);
}

TEST_F(EventTest, AFullEqIsNotOverwritten) {
  for (int i = 0; i < 9; ++i) b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
  settle();
  EXPECT_EQ(eqe(0).owner, 0);
  EXPECT_EQ(b.eqs.overruns(), 1u);
  EXPECT_TRUE(eq->overrun);
}

TEST_F(EventTest, EventsGoToThoseWhoSubscribed) {
  eq->mask[0] = 1ULL << 0x09 | 1ULL << 0x04;
  b.eqs.port_event(sim_now(), 0, 4, 1);
  b.eqs.qp_event(sim_now(), 0, 0x05, 0x77);
  b.eqs.cq_error(sim_now(), 0, 0x88, 1);
  settle();
  EXPECT_EQ(eq->producer, 2u);
  EXPECT_EQ(eqe(0).sub_type, 4);
  EXPECT_EQ(eqe(0).data.port.port, 0x10);
  EXPECT_EQ(eqe(1).data.cq_err.cqn, 0x88u);
  EXPECT_EQ(eqe(1).data.cq_err.syndrome, 1);
}

TEST_F(EventTest, UnknownNumbersAreToldToTheCaller) {
  EXPECT_EQ(b.eqs.doorbell(sim_now(), 0, 99, 0, true, 0), DoorbellFate::kNobody);
  EXPECT_EQ(b.eqs.doorbell(sim_now(), 0, 0xffffff, 0, true, 0), DoorbellFate::kNobody);
  EXPECT_EQ(b.cqs.arm(sim_now(), 0, 99, 0, 0), DoorbellFate::kNobody);
  EXPECT_EQ(b.cqs.arm(sim_now(), 0, 0xffffff, 0, 0), DoorbellFate::kNobody);
  EXPECT_EQ(b.eq_table.create(256), nullptr);
  EXPECT_EQ(b.cq_table.create(kCqn), nullptr);
}

TEST_F(EventTest, CqesCarryTheirFieldsAndTheParityOfThePass) {
  for (unsigned i = 0; i < 9; ++i) {
    post();
    const prm::Cqe c = cqe(i % 4);
    EXPECT_EQ(c.op_own & 1, i / 4 % 2);
    EXPECT_EQ(c.opcode(), prm::CqeOp::kReq);
    EXPECT_EQ(c.sop_drop_qpn, 0x0a123456u);
    EXPECT_EQ(c.wqe_counter, 0x8001);
    EXPECT_EQ(c.byte_cnt, 77u);
    EXPECT_EQ(c.srqn_uidx, 0x42u);
    consume(i + 1);
  }
  EXPECT_EQ(b.cqs.completions(), 9u);
}

TEST_F(EventTest, ErrorCqes) {
  post(false, static_cast<std::uint8_t>(prm::CqeOp::kReqErr));
  const auto c = load<prm::ErrCqe>(kCqRing);
  EXPECT_EQ(c.syndrome, 5);
  EXPECT_EQ(c.vendor_err_synd, 9);
  EXPECT_EQ(c.sop_drop_qpn & 0xffffffu, 0x123456u);
  EXPECT_EQ(c.op_own >> 4, 13);
}

TEST_F(EventTest, LargeCqesAreWrittenIntoTheirSecondHalf) {
  cq->cqe_size = 128;
  post();
  post();
  EXPECT_EQ(load<prm::Cqe>(kCqRing + 64).wqe_counter, 0x8001);
  EXPECT_EQ(load<prm::Cqe>(kCqRing + 192).wqe_counter, 0x8001);
  EXPECT_EQ(load<prm::Cqe>(kCqRing).op_own, 0xf1);
}

TEST_F(EventTest, TheConsumerIndexIsReadOnlyWhenTheCqLooksFull) {
  for (int i = 0; i < 4; ++i) post();
  EXPECT_EQ(b.host.reads, 0u);
  consume(2);
  post();
  EXPECT_EQ(b.host.reads, 1u);
  EXPECT_FALSE(cq->error);
  EXPECT_EQ(cq->consumer, 2u);
}

TEST_F(EventTest, OverrunEndsTheCqWithAnEvent) {
  eq->mask[0] = 1ULL << 0x04;
  for (int i = 0; i < 5; ++i) post();
  EXPECT_TRUE(cq->error);
  EXPECT_EQ(b.cqs.overruns(), 1u);
  EXPECT_EQ(eqe(0).data.cq_err.cqn, kCqn);
  EXPECT_EQ(cqe(0).op_own & 1, 0);  // the first was not overwritten
  consume(4);
  post();
  EXPECT_EQ(b.cqs.completions(), 4u);
}

TEST_F(EventTest, OverrunMayBeIgnored) {
  cq->overrun_ignore = true;
  for (int i = 0; i < 5; ++i) post();
  EXPECT_FALSE(cq->error);
  EXPECT_EQ(cqe(0).op_own & 1, 1);
}

TEST_F(EventTest, AnArmedCqRaisesOneEventAndTheEqOneInterruptInOrder) {
  b.eqs.doorbell(sim_now(), 0, kEqn, 0, true, 0);
  b.cqs.arm(sim_now(), 0, kCqn, 0, 0);
  post();
  post();
  ASSERT_EQ(b.host.events.size(), 4u);
  EXPECT_EQ(b.host.events[0].addr, kCqRing);
  EXPECT_EQ(b.host.events[1].addr, kEqRing);
  EXPECT_TRUE(b.host.events[2].msix);
  EXPECT_EQ(b.host.events[3].addr, kCqRing + 64);
  EXPECT_EQ(eqe(0).type, 0);
  EXPECT_EQ(eqe(0).data.comp.cqn, kCqn);
}

TEST_F(EventTest, ArmingBehindACqeFiresAtOnce) {
  post();
  b.cqs.arm(sim_now(), 0, kCqn, 1, 0);  // it was seen
  settle();
  EXPECT_EQ(eq->producer, 0u);
  post();
  EXPECT_EQ(eq->producer, 1u);
  b.cqs.arm(sim_now(), 0, kCqn, 1, 0);  // the second was not
  settle();
  EXPECT_EQ(eq->producer, 2u);
}

TEST_F(EventTest, SolicitedOnly) {
  b.cqs.arm(sim_now(), 0, kCqn, kSolicitedOnly, 0);
  post();
  EXPECT_EQ(eq->producer, 0u);
  post(true);
  EXPECT_EQ(eq->producer, 1u);
  b.cqs.arm(sim_now(), 0, kCqn, kSolicitedOnly | 1, 0);  // the second, solicited, lies beyond
  settle();
  EXPECT_EQ(eq->producer, 2u);
  b.cqs.arm(sim_now(), 0, kCqn, kSolicitedOnly | 2, 0);
  settle();
  EXPECT_EQ(eq->producer, 2u);
  consume(2);
  post(false, static_cast<std::uint8_t>(prm::CqeOp::kRespErr));
  EXPECT_EQ(eq->producer, 3u);
}

TEST_F(EventTest, SolicitedOnlyDoesNotWeakenNext) {
  b.cqs.arm(sim_now(), 0, kCqn, 0, 0);
  b.cqs.arm(sim_now(), 0, kCqn, kSolicitedOnly, 0);
  post();
  EXPECT_EQ(eq->producer, 1u);
}

TEST_F(EventTest, ModerationByCountAndByTime) {
  cq->log_size = 4;
  cq->max_count = 3;
  cq->period_us = 20;
  b.cqs.arm(sim_now(), 0, kCqn, 0, 0);
  post();
  EXPECT_EQ(eq->producer, 1u);
  b.cqs.arm(sim_now(), 0, kCqn, 1, 0);
  post();
  post();
  EXPECT_EQ(eq->producer, 1u);
  post();
  EXPECT_EQ(eq->producer, 2u);
  b.cqs.arm(sim_now(), 0, kCqn, 4, 0);
  post();
  EXPECT_EQ(eq->producer, 2u);
  b.run_ns(20000);
  EXPECT_EQ(eq->producer, 3u);
  b.run_ns(50000);
  EXPECT_EQ(eq->producer, 3u);
}

TEST_F(EventTest, ResizeGoesOnInTheNewRing) {
  post();
  post();
  GuestRing ring;
  ring.pages = {kNewRing};
  EXPECT_FALSE(b.cqs.resize(sim_now(), *cq, ring, 1));  // two waiting and the RESIZE CQE
  ASSERT_TRUE(b.cqs.resize(sim_now(), *cq, ring, 3));
  EXPECT_EQ(cqe(2).opcode(), prm::CqeOp::kResize);
  EXPECT_EQ(cqe(2).op_own & 1, 0);
  post();
  EXPECT_EQ(load<prm::Cqe>(kNewRing + 3 * 64).wqe_counter, 0x8001);
}

TEST_F(EventTest, ARingOutsideOfItsPagesBreaksOnlyItself) {
  cq->ring.pages.clear();
  post();
  EXPECT_TRUE(cq->error);
  eq->ring.pages.clear();
  b.eqs.to_eq(sim_now(), 0, kEqn, 0x0a, 0, nullptr, 0);
  EXPECT_TRUE(eq->overrun);
}

TEST_F(EventTest, IndicesOfNonsenseAreNotBelieved) {
  post();
  consume(0x800000);
  b.cqs.arm(sim_now(), 0, kCqn, 0x7fffff, 0);
  b.eqs.doorbell(sim_now(), 0, kEqn, 0x800000, false, 0);
  settle();
  EXPECT_EQ(cq->consumer, 0u);
  EXPECT_EQ(eq->consumer, 0u);
}

}  // namespace
}  // namespace hcasim::test
