// SPDX-License-Identifier: BSD-3-Clause
// Faults injected while the device runs: each kind does what it says, the others are left alone, and the
// device serves on.
#include <gmock/gmock.h>

#include <cstring>

#include "fault_fixture.h"

namespace hcasim::bare {
namespace {

using prm::EqeType;
using ::testing::HasSubstr;
using S = prm::CqeSyndrome;

// ---- commands ----

TEST_F(Fault, TheNthCommandOfAnOpcodeIsRefused) {
  inject("fault=command,opcode=ALLOC_PD,nth=2,status=BAD_RES_STATE,syndrome=0x1234");
  const auto first = alloc_pd();
  EXPECT_CMD_OK(first);
  EXPECT_CMD_OK(query_issi());
  const auto second = alloc_pd();
  EXPECT_CMD_STATUS(second, CmdStatus::kBadResState);
  EXPECT_EQ(second.syndrome, 0x1234u);
  const auto third = alloc_pd();
  EXPECT_CMD_OK(third);
  EXPECT_EQ(injected(), 1u);
  EXPECT_CMD_OK(dealloc_pd(first));
  EXPECT_CMD_OK(dealloc_pd(third));
}

TEST_F(Fault, ACommandIsLate) {
  const auto timed = [&] {
    const std::int64_t t = machine().now();
    EXPECT_CMD_OK(query_issi());
    return machine().now() - t;
  };
  const std::int64_t usual = timed();
  inject("fault=command;opcode=QUERY_ISSI;delay=3ms");
  const std::int64_t late = timed();
  EXPECT_GE(late, usual + 2'900'000);
  EXPECT_LT(late, usual + 3'100'000);
  EXPECT_LT(timed(), usual + 100'000);
}

TEST_F(Fault, ACommandIsNeverAnswered) {
  inject("fault=command,opcode=QUERY_ISSI,answer=never");
  bool answered = false;
  const int slot =
      dev().cmd().submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                         [&](const CommandResult&) { answered = true; });
  machine().advance(2'000'000'000);
  EXPECT_FALSE(answered);
  EXPECT_CMD_OK(query_issi());  // in another slot
  EXPECT_FALSE(answered);
  dev().cmd().abandon(slot);
  dev().function_reset();
  dev().probe();
}

// A driver that crashed left it; the next one (of a crash kernel) begins with the same slot.
TEST_F(Fault, AnotherDriversQueueIsEmpty) {
  breaks({"enable-twice"});
  inject("fault=command,opcode=QUERY_ISSI,answer=never");
  const auto hang = [&](CommandQueue& queue) {
    return queue.submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                        [](const CommandResult&) { FAIL() << "answered"; });
  };
  const int slot = hang(dev().cmd());
  machine().advance(1'000'000);
  {
    CommandQueue next(fn());
    next.start();
    // In that very slot.
    bool answered = false;
    next.submit(
        Mailbox(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes), prm::enable_hca_out::bytes,
        [&](const CommandResult& r) {
          answered = true;
          EXPECT_CMD_OK(r);
        },
        slot);
    machine().advance(100'000'000);
    next.poll();
    EXPECT_TRUE(answered);
  }
  dev().cmd().abandon(slot);
  dev().function_reset();
  dev().probe();
  expect_serves_on();
}

TEST_F(Fault, ACommandsEventIsLost) {
  inject("fault=command,opcode=QUERY_ISSI,answer=no-event");
  bool answered = false;
  dev().cmd().submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                     [&](const CommandResult& r) {
                       answered = true;
                       EXPECT_CMD_OK(r);
                     });
  machine().advance(10'000'000);
  EXPECT_FALSE(answered);
  dev().cmd().poll();  // as a driver does that recovers: the owner bit tells
  EXPECT_TRUE(answered);
}

// ---- DMA ----

TEST_F(Fault, ADmaReadOfAQpIsRefused) {
  Pair p(dev());
  p.fill(1);
  inject("fault=dma,owner=qp,direction=read,number=" + std::to_string(p.a.qpn()) +
         ",address=" + std::to_string(p.amem.bus(0)) + "-" + std::to_string(p.amem.bus(0) + 4095));
  const Completion c = write(p);
  expect_error(c, S::kLocalQpOp);
  EXPECT_EQ(injected(), 1u);
  expect_serves_on();
}

TEST_F(Fault, APoisonedReadIsAnErrorOfItsQp) {
  Pair p(dev());
  inject("fault=dma,action=poisoned,owner=qp,address=" + std::to_string(p.amem.bus(0)) + "-" +
         std::to_string(p.amem.bus(0) + 4095));
  const auto before = fn().pcie_errors().size();
  EXPECT_TRUE(write(p).error());
  ASSERT_EQ(fn().pcie_errors().size(), before + 1);
  EXPECT_NE(fn().pcie_errors()[before].what, HCA_PCIE_CORRECTABLE);
  EXPECT_EQ(fn().pcie_errors()[before].name, "poisoned-tlp");
  expect_serves_on();
}

TEST_F(Fault, ARefusedCqeWriteFailsTheCq) {
  Pair p(dev());
  dev().clear_async_events();
  inject("fault=dma,direction=write,owner=cq,number=" + std::to_string(p.acq.cqn()));
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_EQ(dev().count_async(EqeType::kCqError, p.acq.cqn()), 1u);
  EXPECT_EQ(dev().count_async(EqeType::kCqError, p.bcq.cqn()), 0u);
  expect_serves_on();
}

TEST_F(Fault, ASlowReadTakesLonger) {
  Pair p(dev());
  const auto timed = [&] {
    const std::int64_t t = machine().now();
    EXPECT_FALSE(write(p).error());
    return machine().now() - t;
  };
  timed();
  const std::int64_t usual = timed();
  inject("fault=dma,action=slow,delay=70us,owner=qp,direction=read,address=" + std::to_string(p.amem.bus(0)) +
         "-" + std::to_string(p.amem.bus(0) + 4095));
  const std::int64_t late = timed();
  EXPECT_GE(late, usual + 69'000);
  EXPECT_LT(late, usual + 75'000);
}

TEST_F(Fault, PcieErrorsAreTheHostsToShow) {
  const auto before = fn().pcie_errors().size();
  inject("fault=pcie,error=bad-tlp");
  inject("fault=pcie,error=completion-timeout,severity=fatal");
  inject("fault=pcie,error=malformed-tlp");
  inject("fault=pcie,action=remove");
  const auto& seen = fn().pcie_errors();
  ASSERT_EQ(seen.size(), before + 4);
  EXPECT_EQ(seen[before].what, HCA_PCIE_CORRECTABLE);
  EXPECT_EQ(seen[before].bit, 0x40u);
  EXPECT_EQ(seen[before].name, "bad-tlp");
  EXPECT_EQ(seen[before + 1].what, HCA_PCIE_FATAL);
  EXPECT_EQ(seen[before + 1].bit, 0x4000u);
  // Without a severity it is the host's to tell.
  EXPECT_NE(seen[before + 2].what, HCA_PCIE_CORRECTABLE);
  EXPECT_EQ(seen[before + 2].name, "malformed-tlp");
  EXPECT_EQ(seen[before + 3].what, HCA_PCIE_REMOVED);
}

// ---- interrupts, CQEs, EQEs ----

TEST_F(Fault, AnInterruptIsLostAndItsEqeIsThere) {
  Pair p(dev());
  const auto eqn = dev().comp_eq(0).eqn();
  p.acq.arm();
  inject("fault=msix,eqn=" + std::to_string(eqn));
  EXPECT_FALSE(write(p).error());
  machine().advance(1'000'000);
  EXPECT_EQ(p.acq.events(), 0u);
  dev().comp_eq(0).poll();
  EXPECT_EQ(p.acq.events(), 1u);
  p.acq.arm();
  EXPECT_FALSE(write(p).error());
  machine().advance(1'000'000);
  EXPECT_EQ(p.acq.events(), 2u);
  EXPECT_EQ(injected(), 1u);
}

TEST_F(Fault, AnInterruptIsLate) {
  Pair p(dev());
  p.acq.arm();
  inject("fault=msix,action=delayed,delay=500us");
  EXPECT_FALSE(write(p).error());
  machine().advance(300'000);
  EXPECT_EQ(p.acq.events(), 0u);
  machine().advance(300'000);
  EXPECT_EQ(p.acq.events(), 1u);
}

TEST_F(Fault, ACqeIsLateAndThoseBehindItStayBehind) {
  Pair p(dev());
  inject("fault=cqe,delay=200us,cqn=" + std::to_string(p.acq.cqn()));
  const auto first = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  const auto second = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(100'000);
  EXPECT_FALSE(p.acq.ready());
  expect_good(p.acq, first);
  expect_good(p.acq, second);
}

TEST_F(Fault, ACqeIsLost) {
  Pair p(dev());
  inject("fault=cqe,action=lost,qpn=" + std::to_string(p.a.qpn()));
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_FALSE(write(p).error());
}

TEST_F(Fault, AnEqeIsLost) {
  Pair p(dev());
  p.acq.arm();
  inject("fault=eqe,type=COMP");
  EXPECT_FALSE(write(p).error());
  machine().advance(1'000'000);
  dev().comp_eq(0).poll();
  EXPECT_EQ(p.acq.events(), 0u);
}

TEST_F(Fault, AnEventQueueOverruns) {
  Pair p(dev());
  inject("fault=eqe,action=overrun,eqn=" + std::to_string(dev().comp_eq(0).eqn()));
  for (int i = 0; i < 3; ++i) {
    p.acq.arm();
    EXPECT_FALSE(write(p).error());
    machine().advance(100'000);
    dev().comp_eq(0).poll();
    EXPECT_EQ(p.acq.events(), 0u);
  }
  EXPECT_EQ(injected(), 1u);
  EXPECT_GE(fn().counter("eq_overruns"), 1u);
}

// ---- queues ----

TEST_F(Fault, AQpGoesToItsErrorStateOnItsNthDoorbell) {
  Pair p(dev());
  dev().clear_async_events();
  inject("fault=qp,nth=2,qpn=" + std::to_string(p.a.qpn()));
  EXPECT_FALSE(write(p).error());
  expect_error(write(p), S::kWrFlush);
  EXPECT_EQ(p.a.state(), QpState::kErr);
  machine().advance(100'000);
  EXPECT_EQ(dev().count_async(EqeType::kWqCatas, p.a.qpn()), 1u);
  expect_serves_on();
}

TEST_F(Fault, AQpGoesToItsErrorStateAtATime) {
  struct Case {
    const char* action;
    EqeType event;
    bool fails;
  };
  for (const Case& c :
       {Case{"catas", EqeType::kWqCatas, true}, Case{"access", EqeType::kWqAccess, true},
        Case{"invalid", EqeType::kWqInvalidReq, true}, Case{"path-mig", EqeType::kPathMigFailed, false}}) {
    Pair p(dev());
    dev().clear_async_events();
    inject(std::string("fault=qp,at=+50us,action=") + c.action + ",qpn=" + std::to_string(p.a.qpn()));
    machine().advance(40'000);
    EXPECT_EQ(dev().count_async(c.event), 0u) << c.action;
    machine().advance(100'000);
    EXPECT_EQ(dev().count_async(c.event, p.a.qpn()), 1u) << c.action;
    EXPECT_EQ(p.a.state() == QpState::kErr, c.fails) << c.action;
    EXPECT_EQ(p.b.state(), QpState::kRts) << c.action;
  }
}

TEST_F(Fault, ACqFails) {
  for (const auto& [action, syndrome] : {std::pair{"overrun", 1}, std::pair{"access", 2}}) {
    Pair p(dev());
    dev().clear_async_events();
    inject(std::string("fault=cq,at=0,action=") + action + ",cqn=" + std::to_string(p.acq.cqn()));
    machine().advance(100'000);
    ASSERT_EQ(dev().count_async(EqeType::kCqError, p.acq.cqn()), 1u);
    for (const AsyncEvent& e : dev().async_events()) {
      if (e.type == EqeType::kCqError) {
        EXPECT_EQ(e.detail, syndrome);
      }
    }
    EXPECT_EQ(p.a.state(), QpState::kErr);
    EXPECT_EQ(p.b.state(), QpState::kRts);
  }
  expect_serves_on();
}

// ---- functions ----

TEST_F(Fault, OfAFunctionThatTheCardDoesNotHaveNothingIsStruck) {
  const auto before = dev().pages_given();
  inject("fault=command,opcode=QUERY_ISSI,status=BAD_RES_STATE,function=1");
  inject("fault=page_request,action=ask,at=0,pages=10,function=1");
  inject("fault=fw_reset,at=0,function=1023");
  inject("fault=qp,at=0,times=0,function=1");
  machine().advance(1'000'000);
  EXPECT_CMD_OK(query_issi());
  EXPECT_EQ(dev().pages_given(), before);
  EXPECT_EQ(injected(), 0u);
  inject("fault=command,opcode=QUERY_ISSI,status=BAD_RES_STATE,syndrome=7,function=0");
  EXPECT_CMD_STATUS(query_issi(), CmdStatus::kBadResState);
  EXPECT_EQ(injected(), 1u);
}

// ---- triggers ----

TEST_F(Fault, TimesAndEveryAndWindows) {
  const auto pattern = [&](const std::string& trigger, int n) {
    EXPECT_EQ(fn().inject("none"), "");
    EXPECT_EQ(fn().inject("fault=command,opcode=QUERY_ISSI,status=LIM_ERR" + trigger), "");
    std::string text;
    for (int i = 0; i < n; ++i) {
      text += query_issi().ok() ? '.' : 'X';
      machine().advance(1'000'000);
    }
    return text;
  };
  EXPECT_EQ(pattern("", 5), "X....");
  EXPECT_EQ(pattern(",nth=3", 5), "..X..");
  EXPECT_EQ(pattern(",nth=2,times=2", 5), ".XX..");
  EXPECT_EQ(pattern(",nth=3,times=0", 5), "..XXX");
  EXPECT_EQ(pattern(",every=2,times=0", 6), "X.X.X.");
  EXPECT_EQ(pattern(",nth=2,every=3,times=2", 9), ".X..X....");
  EXPECT_EQ(pattern(",times=0,until=+2500us", 5), "XXX..");
  EXPECT_EQ(pattern(",times=0,after=+2500us", 5), "...XX");
  EXPECT_EQ(pattern(",at=+2500us", 5), "...X.");
  const std::string some = pattern(",probability=0.5,seed=3", 40);
  EXPECT_GT(std::count(some.begin(), some.end(), 'X'), 8);
  EXPECT_LT(std::count(some.begin(), some.end(), 'X'), 32);
  EXPECT_EQ(pattern(",probability=0.5,seed=3", 40), some);
  EXPECT_NE(pattern(",probability=0.5,seed=4", 40), some);
}

TEST_F(Fault, NoneEndsAllAndTakesBack) {
  inject("fault=port,action=down");
  inject("fault=health,syndrome=16");
  inject("fault=command,opcode=QUERY_ISSI,status=LIM_ERR,times=0");
  machine().advance(1'000'000);
  EXPECT_NE(dev().port_state(), 4);
  EXPECT_FALSE(query_issi().ok());
  inject("none");
  machine().advance(1'000'000);
  EXPECT_EQ(dev().port_state(), 4);
  EXPECT_CMD_OK(query_issi());
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, irisc_index)), 0u);
}

TEST_F(Fault, WhatIsWrongIsSaid) {
  struct Case {
    const char *text, *said;
  };
  for (const Case& c : {
           Case{"fault=smoke", "there are command, dma, msix"},
           Case{"fault=command", "command: what is to happen?"},
           Case{"fault=command,opcode=MAKE_COFFEE,status=1",
                "opcode=MAKE_COFFEE: allowed: a command such as"},
           Case{"fault=command,status=0", "status=0: allowed: a status such as BAD_RES_STATE"},
           Case{"fault=command,vector=3,status=1", "vector: command takes at, after"},
           Case{"fault=command,status=1,status=2", "status: given twice"},
           Case{"fault=command,status=1,nth=0", "nth=0: allowed: 1 to 2^32"},
           Case{"fault=command,delay=soon", "delay=soon: allowed: a time, such as 20us"},
           Case{"fault=command,status=1,probability=2", "probability=2: allowed: 0 to 1"},
           Case{"fault=command,status=1,after=5us,until=2us", "until: not after"},
           Case{"fault=dma,action=slow", "slow: needs delay="},
           Case{"fault=dma,address=5-3", "address=5-3: allowed: a number or A-B"},
           Case{"fault=dma,action=poisoned,direction=write", "of reads alone"},
           Case{"fault=wire,direction=read", "direction=read: allowed: tx, rx"},
           Case{"fault=module,error=9q", "error=9q: allowed: power-budget"},
           Case{"fault=pcie,error=oops", "error=oops: allowed: receiver-error"},
           Case{"fault=pcie,error=bad-tlp,severity=fatal", "severity: bad-tlp is correctable"},
           Case{"fault=health", "health: needs syndrome="},
           Case{"fault=event", "event: needs type="},
           Case{"fault=temperature,nth=2", "nth: temperature takes at"},
           Case{"drop=0.1,fault=wire,action=melt", "action=melt: allowed: drop, corrupt"},
       }) {
    EXPECT_THAT(fn().inject(c.text), HasSubstr(c.said)) << c.text;
  }
  EXPECT_FALSE(write(*std::make_unique<Pair>(dev())).error());
  EXPECT_EQ(injected(), 0u);
}

}  // namespace
}  // namespace hcasim::bare
