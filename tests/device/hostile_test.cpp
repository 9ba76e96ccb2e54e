// SPDX-License-Identifier: BSD-3-Clause
// A driver that misbehaves, and memory that refuses: doorbells to nothing, WQEs of garbage, doorbell records
// that jump, pages that fault. The device answers as hardware would and serves the next user.
#include <array>
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

using S = prm::CqeSyndrome;

class Hostile : public DeviceTest {
 protected:
  void store(std::uint64_t offset, std::uint64_t value, unsigned len) { fn().write(offset, &value, len); }
};

// Round and round a send queue whose first WQE never completes: no more WQEs are held than it has room for.
TEST_F(Hostile, ASendQueueThatIsOverrunHoldsNoMoreThanItsRing) {
  breaks({"sq-overrun"});
  constexpr unsigned kLogRing = 7;
  PairOptions o;
  o.log_sq = kLogRing;
  o.attr.ack_timeout = 0;  // for ever
  Pair p(dev(), o);
  ASSERT_TRUE(p.b.to_reset().ok());
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(20'000);
  const std::uint64_t before = fn().counter("wqes");
  for (unsigned round = 0; round < 20; ++round) {
    for (unsigned i = 0; i < 64; ++i) p.a.post_nop(false, false);
    p.a.ring_doorbell();
    machine().advance(20'000);
  }
  const std::uint64_t taken = fn().counter("wqes") - before;
  EXPECT_GE(taken, 64u) << "the first round has room";
  EXPECT_LE(taken, 1u << kLogRing);
  ASSERT_TRUE(p.a.to_reset().ok());
}

TEST_F(Hostile, DoorbellsToNothing) {
  breaks({"cq-arm-no-cq", "eq-doorbell-no-eq", "sq-doorbell-no-queue"});
  const std::uint64_t uar = dev().uar_offset();
  Pair p(dev());
  for (const std::uint32_t qpn : {0u, 1u, 2u, 0x77777u, 0xffffffu}) {
    prm::CtrlSeg c;
    c.set(WqeOp::kRdmaWrite, 5, qpn, 3, 2);
    for (unsigned reg = 0; reg < 4; ++reg) fn().write(uar + 0x800 + reg * 512, &c, 8);
    std::uint8_t burst[64] = {};
    std::memcpy(burst, &c, 16);
    fn().write(uar + 0x800, burst, 64);
  }
  for (const std::uint32_t cqn : {0u, 0x77777u, 0xffffffu}) {
    prm::CqDoorbell d;
    d.cmd_ci = 0x12345678;
    d.cqn = cqn;
    fn().write(uar + prm::uar::kCqArm, &d, 8);
  }
  for (unsigned eqn = 60; eqn < 256; ++eqn) {
    fn().write32(uar + prm::uar::kEqArm, eqn << 24 | 99);
    fn().write32(uar + prm::uar::kEqUpdate, eqn << 24 | 99);
  }
  machine().advance(1'000'000);
  expect_serves_on();
}

// A processor that has lost its turn between its last look at a CQ and arming it.
TEST_F(Hostile, ACqThatHasJustGoneMayBeArmed) {
  const auto arm = [this](std::uint32_t cqn) {
    prm::CqDoorbell d{};
    d.cqn = cqn;
    fn().write(dev().uar_offset() + prm::uar::kCqArm, &d, 8);
    machine().advance(10'000);
  };
  const auto broken = [this] { return fn().rules_broken()["cq-arm-no-cq"]; };
  const std::uint64_t before = broken(), bad = fn().counter("bad_doorbells");
  Cq cq(dev());
  const std::uint32_t cqn = cq.cqn();
  EXPECT_CMD_OK(cq.destroy());
  machine().advance(20'000'000);
  arm(cqn);
  EXPECT_EQ(broken(), before);
  EXPECT_EQ(fn().counter("bad_doorbells"), bad + 1);
  machine().advance(100'000'000);
  breaks({"cq-arm-no-cq"});
  arm(cqn);
  EXPECT_EQ(broken(), before + 1);
}

TEST_F(Hostile, StoresAllOverTheUar) {
  breaks({"uar-not-allocated", "uar-register", "uar-store-size"});
  Pair p(dev());
  std::mt19937_64 rnd(5);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t page = 3 + rnd() % 64;
    const unsigned len = 1u << (rnd() % 4);
    std::uint64_t off = page * 4096 + rnd() % 4096;
    // The EQs and CQs of this driver are not to be moved by accident: random EQNs and CQNs would do just
    // that.
    if (off % 4096 < 0x80 || off % 4096 + len > 4096) off = page * 4096 + 0x80 + off % 0x700;
    store(off, rnd(), len);
    store(page * 4096 + 0x800 + rnd() % 0x7f8, rnd() & 0xffffff, len);
  }
  machine().advance(1'000'000);
  expect_serves_on();
}

TEST_F(Hostile, DoorbellOfAUarPageThatIsNotAllocated) {
  breaks({"memic-access"});
  Pair p(dev());
  p.fill(1);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  p.a.write_dbr();
  const std::uint64_t far = HCA_BAR0_SIZE - 4096 + 0x800;
  fn().write(far, p.a.sq_wqebb(0), 8);
  machine().advance(1'000'000);
  while (p.acq.poll()) {
  }
  p.a.write_doorbell_only();
  machine().advance(1'000'000);
  EXPECT_TRUE(p.same(0, 64));
}

// What a process could do with the page that is mapped for it: move the kernel's event queue, execute a WQE
// of its own on another's send queue, wake another's CQ.
TEST_F(Hostile, DoorbellsFromAnothersUarPage) {
  breaks({"sq-doorbell-uar"});
  Pair p(dev());
  p.fill(3);
  const auto uar = dev().exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes), 16).must();
  const std::uint64_t page = uar.get<prm::alloc_uar_out::uar>() * prm::uar::kPageBytes;
  const std::uint64_t bad = fn().counter("bad_doorbells");
  EventQueue& eq = dev().comp_eq(0);
  prm::EqDoorbell full{};  // as many wait as it has room for
  full.eqn_ci = eq.eqn() << 24 | ((eq.consumer() - (1u << DeviceOptions{}.log_comp_eq)) & 0xffffff);
  fn().write(page + prm::uar::kEqUpdate, &full, sizeof full);
  prm::CqDoorbell arm{};
  arm.cqn = p.acq.cqn();
  fn().write(page + prm::uar::kCqArm, &arm, sizeof arm);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  p.a.write_dbr();
  std::array<std::uint8_t, 64> wqe{};
  std::memcpy(wqe.data(), p.a.sq_wqebb(0), wqe.size());
  fn().write(page + prm::uar::kSqDoorbell, wqe.data(), wqe.size());
  machine().advance(1'000'000);
  EXPECT_GT(fn().counter("bad_doorbells"), bad + 2);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_EQ(p.acq.events(), 0u);
  p.acq.arm();
  p.a.write_doorbell_only();
  EXPECT_TRUE(machine().run_until([&] { return p.acq.events() == 1; })) << "events come on";
  EXPECT_TRUE(p.same(0, 64));
  dev()
      .exec(Mailbox(prm::op::DEALLOC_UAR, prm::dealloc_uar_in::bytes)
                .set<prm::dealloc_uar_in::uar>(uar.get<prm::alloc_uar_out::uar>()))
      .must();
}

TEST_F(Hostile, DoorbellBelievesTheRecordNotTheStore) {
  breaks({"wqe-doorbell-before-visible"});
  Pair p(dev());
  p.fill(2);
  const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  p.a.write_doorbell_only();  // the record still says 0
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  p.a.ring_doorbell();
  expect_good(p.acq, n);
  p.a.write_doorbell_only();  // nothing new
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
}

// Doorbells that wait on their way are late by any number of WQEs: the record of an earlier one had told of
// theirs.
TEST_F(Hostile, DoorbellsMayBeLate) {
  Pair p(dev());
  while (p.a.sq_producer() < 0xa000) {
    p.a.post_nop();
    if (p.a.sq_producer() % 32 == 0) machine().advance(1'000'000);
    while (p.acq.poll()) {
    }
  }
  prm::CtrlSeg late{};
  late.opmod_idx_opcode = 0xff << 8;
  late.qpn_ds = p.a.qpn() << 8 | 1;
  const std::uint64_t wqes = fn().counter("wqes"), doorbells = fn().counter("doorbells");
  fn().write(dev().uar_offset() + prm::uar::kSqDoorbell, &late, 8);
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_EQ(fn().counter("doorbells"), doorbells + 1);
  EXPECT_EQ(fn().counter("wqes"), wqes) << "nothing is done twice";
  p.fill(4);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)));
  EXPECT_TRUE(p.same(0, 64));
}

TEST_F(Hostile, ArmsMayBeLateToo) {
  Pair p(dev());
  for (unsigned i = 0; i < 4; ++i) expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)));
  p.acq.dbr().set(1, 4);
  prm::CqDoorbell late{};
  late.cmd_ci = 2;
  late.cqn = p.acq.cqn();
  fn().write(dev().uar_offset() + prm::uar::kCqArm, &late, 8);
  machine().advance(1'000'000);
  // At the same index, when the record counts an event more already.
  p.acq.dbr().set(1, 1u << 28 | 4);
  late.cmd_ci = 4;
  fn().write(dev().uar_offset() + prm::uar::kCqArm, &late, 8);
  machine().advance(1'000'000);
}

// Drivers arm without a lock: one thread counts an event while another's doorbell is on its way.
TEST_F(Hostile, AnArmMayBeOvertakenByThatOfTheNextEvent) {
  Pair p(dev());
  p.acq.arm();
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)));
  ASSERT_TRUE(machine().run_until([&] { return p.acq.events() == 1; }));
  p.acq.arm();
  prm::CqDoorbell late{};  // of before that event
  late.cqn = p.acq.cqn();
  fn().write(dev().uar_offset() + prm::uar::kCqArm, &late, 8);
  ASSERT_TRUE(machine().run_until([&] { return p.acq.events() == 2; }));
  p.acq.arm();
  machine().advance(1'000'000);
}

TEST_F(Hostile, DoorbellRecordJumps) {
  breaks({"dbr-back", "dbr-jump", "wqe-size"});
  for (const std::uint32_t jump : {0x40u, 0x81u, 0x1000u, 0x8000u, 0xffffu}) {
    auto p = std::make_unique<Pair>(dev());
    for (int i = 0; i < 3; ++i) expect_good(p->acq, p->a.post(p->wr(WqeOp::kRdmaWrite, 0, 64)));
    p->a.set_dbr(1, p->a.sq_producer() + jump);
    p->a.write_doorbell_only();
    machine().advance(20'000'000);
    // Whatever lies in the ring was taken as WQEs: stale ones, then zeros. The QP is in error or did nothing.
    while (p->acq.poll()) {
    }
    expect_serves_on();
    p->a.to_reset();
  }
  expect_serves_on();
}

TEST_F(Hostile, ReceiveRecordJumps) {
  breaks({"rq-record-jump"});
  Pair p(dev());
  p.b.set_dbr(0, 0xfff0);  // far more than the ring has
  p.a.post(p.wr(WqeOp::kSend, 0, 64));
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  expect_serves_on();
}

struct GarbageCase {
  const char* name;
  std::function<void(Pair&, std::vector<std::uint8_t>&)> spoil;  // a WQE: ctrl, raddr, data of 64 bytes
};

class Garbage : public Hostile, public ::testing::WithParamInterface<GarbageCase> {};

prm::CtrlSeg* ctrl(std::vector<std::uint8_t>& w) { return reinterpret_cast<prm::CtrlSeg*>(w.data()); }

TEST_P(Garbage, EndsInALocalError) {
  breaks({"wqe-length", "wqe-opcode", "wqe-segment", "wqe-size", "wqe-umr"});
  Pair p(dev());
  std::vector<std::uint8_t> w(48);
  ctrl(w)->set(WqeOp::kRdmaWrite, 0, p.a.qpn(), 3, prm::kCeAlways);
  auto* r = reinterpret_cast<prm::RaddrSeg*>(w.data() + 16);
  r->raddr = p.bmr.start();
  r->rkey = p.bmr.key();
  auto* d = reinterpret_cast<prm::DataSeg*>(w.data() + 32);
  d->byte_count = 64;
  d->lkey = p.amr.key();
  d->addr = p.amr.start();
  GetParam().spoil(p, w);
  p.a.post_raw(w, static_cast<unsigned>((w.size() + 63) / 64), false);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));  // flushed behind it
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  EXPECT_TRUE(c.syndrome == S::kLocalQpOp || c.syndrome == S::kLocalLength || c.syndrome == S::kLocalProt ||
              c.syndrome == S::kMwBind)
      << c.text();
  EXPECT_EQ(p.a.state(), QpState::kErr);
  expect_serves_on();
}

INSTANTIATE_TEST_SUITE_P(
    All, Garbage,
    ::testing::Values(
        GarbageCase{"UnknownOpcode",
                    [](Pair& p, auto& w) { ctrl(w)->set(static_cast<WqeOp>(0xee), 0, p.a.qpn(), 3, 2); }},
        GarbageCase{"OpcodeOfAnotherTransport",
                    [](Pair& p, auto& w) { ctrl(w)->set(WqeOp::kLso, 0, p.a.qpn(), 3, 2); }},
        GarbageCase{"NoSegments", [](Pair&, auto& w) { ctrl(w)->qpn_ds = ctrl(w)->qpn_ds & ~0x3fu; }},
        GarbageCase{"OnlyAControlSegment",
                    [](Pair&, auto& w) { ctrl(w)->qpn_ds = (ctrl(w)->qpn_ds & ~0x3fu) | 1; }},
        GarbageCase{"LongerThanWhatWasPosted",
                    [](Pair&, auto& w) { ctrl(w)->qpn_ds = ctrl(w)->qpn_ds | 63; }},
        GarbageCase{"InlineLongerThanTheWqe",
                    [](Pair&, auto& w) { prm::store32(w.data() + 32, 0x80000000u | 0x3ff); }},
        GarbageCase{"AtomicWithoutItsSegment",
                    [](Pair& p, auto& w) { ctrl(w)->set(WqeOp::kAtomicCs, 0, p.a.qpn(), 2, 2); }},
        GarbageCase{"ReadWithInlineData",
                    [](Pair& p, auto& w) {
                      ctrl(w)->set(WqeOp::kRdmaRead, 0, p.a.qpn(), 3, 2);
                      prm::store32(w.data() + 32, 0x80000000u | 12);
                    }},
        GarbageCase{"AtomicOfSixteenBytes",
                    [](Pair& p, auto& w) {
                      ctrl(w)->set(WqeOp::kAtomicFa, 0, p.a.qpn(), 4, 2);
                      w.resize(64);
                      std::memcpy(w.data() + 48, w.data() + 32, 16);
                      prm::store32(w.data() + 48, 16);
                    }},
        GarbageCase{"MessageBeyondTheLimit",
                    [](Pair& p, auto& w) {
                      w.resize(64);
                      ctrl(w)->set(WqeOp::kRdmaWrite, 0, p.a.qpn(), 4, 2);
                      prm::store32(w.data() + 32, 0x7fffffff);
                      std::memcpy(w.data() + 48, w.data() + 32, 16);
                    }},
        GarbageCase{"UmrCutShort", [](Pair& p, auto& w) { ctrl(w)->set(WqeOp::kUmr, 0, p.a.qpn(), 3, 2); }},
        GarbageCase{"AllOnes", [](Pair&, auto& w) { std::fill(w.begin(), w.end(), 0xff); }}),
    [](const auto& i) { return std::string(i.param.name); });

TEST_F(Hostile, RandomWqes) {
  breaks({"mr-key", "rkey-unknown", "sq-doorbell-no-queue", "wqe-index", "wqe-length", "wqe-opcode",
          "wqe-qpn", "wqe-segment", "wqe-size", "wqe-umr"});
  std::mt19937_64 rnd(11);
  for (int round = 0; round < 200; ++round) {
    PairOptions o;
    o.log_sq = 5;
    auto p = std::make_unique<Pair>(dev(), o);
    for (int i = 0; i < 4; ++i) p->b.post_recv({p->bsge(0, 4096)});
    for (int i = 0; i < 8; ++i) {
      std::vector<std::uint8_t> w(64 * (1 + rnd() % 3));
      for (auto& x : w) x = static_cast<std::uint8_t>(rnd());
      if (rnd() % 4) {  // something that looks like a WQE
        const WqeOp ops[] = {WqeOp::kSend,   WqeOp::kRdmaWrite, WqeOp::kRdmaRead,  WqeOp::kAtomicFa,
                             WqeOp::kUmr,    WqeOp::kNop,       WqeOp::kSendInval, WqeOp::kMaskedCs,
                             WqeOp::kBindMw, WqeOp::kSetPsv};
        ctrl(w)->set(ops[rnd() % 10], p->a.sq_producer(), p->a.qpn(), 1 + rnd() % 13, 2);
        if (rnd() % 2) {
          prm::store64(w.data() + 16, p->bmr.start());
          prm::store32(w.data() + 24, p->bmr.key());
          prm::store32(w.data() + 32, rnd() % 10000);
          prm::store32(w.data() + 36, p->amr.key());
          prm::store64(w.data() + 40, p->amr.start());
        }
      }
      p->a.post_raw(w, static_cast<unsigned>(w.size() / 64), false);
    }
    p->a.ring_doorbell();
    machine().advance(500'000);
    while (p->acq.poll()) {
    }
    while (p->bcq.poll()) {
    }
  }
  expect_serves_on();
}

TEST_F(Hostile, RandomReceiveWqes) {
  breaks({"mr-key", "rwqe-segment", "receive-length"});
  std::mt19937_64 rnd(12);
  for (int round = 0; round < 100; ++round) {
    PairOptions o;
    o.log_rq = 4;
    o.attr.rnr_retry = 1;
    auto p = std::make_unique<Pair>(dev(), o);
    for (std::uint16_t i = 0; i < 16; ++i) {
      for (unsigned k = 0; k < 64; ++k) p->b.rq_wqe(i)[k] = static_cast<std::uint8_t>(rnd());
    }
    p->b.set_dbr(0, 8);
    for (int i = 0; i < 4; ++i) p->a.post(p->wr(WqeOp::kSend, 0, 1 + rnd() % 10000), false);
    p->a.ring_doorbell();
    machine().advance(1'000'000);
    while (p->acq.poll()) {
    }
    while (p->bcq.poll()) {
    }
  }
  expect_serves_on();
}

// --- Memory that refuses

class DmaFault : public Hostile {
 protected:
  HostMemory& mem() { return machine().memory(); }
};

TEST_F(DmaFault, PayloadToSend) {
  breaks({"dma-refused-read"});
  Pair p(dev());
  mem().set_faulting(p.amem.bus(8192), 4096, true);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 4096)));
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 20000));
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  EXPECT_EQ(c.op, prm::CqeOp::kReqErr);
  mem().set_faulting(p.amem.bus(8192), 4096, false);
  expect_serves_on();
}

TEST_F(DmaFault, PayloadToReceive) {
  breaks({"dma-refused-payload"});
  Pair p(dev());
  mem().set_faulting(p.bmem.bus(4096), 4096, true);
  p.b.post_recv({p.bsge(0, 60000)});
  p.a.post(p.wr(WqeOp::kSend, 0, 20000));
  machine().advance(50'000'000);
  // The write may be refused after the acknowledgement; the receiver's QP must not go on as if nothing had
  // happened.
  EXPECT_EQ(p.b.state(), QpState::kErr);
  mem().set_faulting(p.bmem.bus(4096), 4096, false);
  expect_serves_on();
}

TEST_F(DmaFault, PayloadThatIsRead) {
  breaks({"dma-refused-read"});
  Pair p(dev());
  mem().set_faulting(p.bmem.bus(4096), 4096, true);
  p.a.post(p.wr(WqeOp::kRdmaRead, 0, 20000));
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  mem().set_faulting(p.bmem.bus(4096), 4096, false);
  expect_serves_on();
}

TEST_F(DmaFault, SendQueue) {
  breaks({"dma-refused-read"});
  Pair p(dev());
  const std::uint64_t sq = p.a.ring().bus(static_cast<std::size_t>(p.a.sq_wqebb(0) - p.a.ring().data()));
  mem().set_faulting(sq, 64, true);
  dev().clear_async_events();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(5'000'000);
  EXPECT_EQ(p.a.state(), QpState::kErr);
  const auto c = p.acq.poll();
  EXPECT_TRUE((c && c->error()) || dev().count_async(prm::EqeType::kWqCatas, p.a.qpn()) != 0);
  mem().set_faulting(sq, 64, false);
  expect_serves_on();
}

TEST_F(DmaFault, ReceiveQueue) {
  breaks({"dma-refused-read"});
  Pair p(dev());
  p.b.post_recv({p.bsge(0, 4096)});
  mem().set_faulting(p.b.ring().bus(0), 64, true);
  p.a.post(p.wr(WqeOp::kSend, 0, 64));
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  EXPECT_EQ(p.b.state(), QpState::kErr);
  mem().set_faulting(p.b.ring().bus(0), 64, false);
  expect_serves_on();
}

TEST_F(DmaFault, DoorbellRecord) {
  breaks({"dma-refused-read"});
  // In a page of its own: the device's other records share one.
  Pair p(dev());
  std::vector<std::unique_ptr<Cq>> fill;
  mem().set_faulting(p.acq.dbr().bus, 8, true);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(5'000'000);
  mem().set_faulting(p.acq.dbr().bus, 8, false);
  p.a.to_reset();
  p.b.to_reset();
  expect_serves_on();
}

TEST_F(DmaFault, CompletionQueue) {
  breaks({"dma-refused-cqe"});
  Pair p(dev());
  dev().clear_async_events();
  mem().set_faulting(p.acq.ring().bus(0), 4096, true);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kCqError, p.acq.cqn()) == 1; },
                                  100'000'000));
  mem().set_faulting(p.acq.ring().bus(0), 4096, false);
  expect_serves_on();
}

TEST_F(DmaFault, EventQueueOfCompletions) {
  breaks({"dma-refused-eqe"});
  Pair p(dev());
  machine().memory();
  EventQueue& eq = dev().comp_eq(1);
  CqOptions o;
  o.comp_vector = 1;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(a, b);
  mem().set_faulting(eq.ring().bus(0), 4096, true);
  cq.arm();
  a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_FALSE(cq.wait_one().error());
  machine().advance(1'000'000);
  mem().set_faulting(eq.ring().bus(0), 4096, false);
  expect_serves_on();
}

TEST_F(DmaFault, MailboxesAndOutput) {
  breaks({"cmdq-output-pointer", "dma-refused-read"});
  Buffer nowhere = mem().allocate(kPage);
  mem().set_faulting(nowhere.bus(), kPage, true);
  const auto r = dev().cmd().exec(Mailbox(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 1),
                                  prm::query_hca_cap_out::bytes, 1'000'000'000, [&](auto& raw) {
                                    raw.entry->out_ptr = nowhere.bus();
                                    raw.sign();
                                  });
  EXPECT_TRUE(r.done);
  EXPECT_EQ(static_cast<int>(r.delivery), static_cast<int>(CmdDelivery::kBadOutPtr)) << r.text();
  mem().set_faulting(nowhere.bus(), kPage, false);
  expect_serves_on();
}

TEST_F(DmaFault, UmrListInMemory) {
  breaks({"dma-refused-read"});
  Pair p(dev());
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.free = s.umr_en = true;
  s.reserve_octowords = 64;
  Mr mr(dev(), s);
  Mr pa(dev(), Mr::physical(p.pd));
  Buffer list = mem().allocate(kPage);
  mem().set_faulting(list.bus(), kPage, true);
  UmrWr u;
  u.mkey = mr.key();
  u.inline_list = false;
  u.list = {list.bus(), pa.key(), 1024};
  u.mask = prm::mkey_mask::kFree;
  p.a.post_umr(u);
  EXPECT_TRUE(p.acq.wait_one().error());
  mem().set_faulting(list.bus(), kPage, false);
  expect_serves_on();
}

TEST_F(DmaFault, MttToNowhere) {
  breaks({"dma-refused-read"});
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.amem);
  for (auto& m : s.mtt) m = 0xffff000000000003;
  Mr mr(dev(), s);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 64);
  w.sges[0].lkey = mr.key();
  p.a.post(w);
  EXPECT_TRUE(p.acq.wait_one().error());
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
