// SPDX-License-Identifier: BSD-3-Clause
// On-demand paging, fault by fault.
#include "driver/bare/dct.h"
#include "odp_fixture.h"

namespace hcasim::bare {
namespace {

using Odp = OdpTest;

TEST_F(Odp, PayloadOfASendComesPageByPage) {
  PagedPair p(dev());
  p.b.post_recv({p.bsge(0, 16384)});
  SendWr w;
  w.sges = {p.apaged.sge(100, 10000)};
  p.a.post_nop(false);
  const auto n = p.a.post(w);
  const auto before = fn().counter("retransmits");
  const std::uint32_t at[] = {0, 3072, 7168};  // the packet that first reaches into each page
  for (std::size_t page = 0; page < 3; ++page) {
    const Fault f = next_fault();
    EXPECT_EQ(f.sub_type, prm::kFaultWqe);
    EXPECT_EQ(f.kind, kSendFault);
    EXPECT_EQ(f.queue, p.a.qpn());
    EXPECT_EQ(f.token, p.a.qpn());
    EXPECT_EQ(f.wqe_index, n);
    EXPECT_EQ(f.done, at[page]);
    expect_no_fault();
    EXPECT_FALSE(p.acq.ready());
    p.apaged.map(page, 1);
    EXPECT_CMD_OK(resume(f));
  }
  expect_good(p.acq, n);
  expect_good(p.bcq, 0);
  EXPECT_TRUE(PagedPair::same(p.apaged, 100, p.bmem.data(), 10000));
  EXPECT_EQ(fn().counter("retransmits"), before) << "the send queue only waits";
}

TEST_F(Odp, ASlowDriverCostsNoRetry) {
  PairOptions o = PagedPair::options();
  o.attr.ack_timeout = 5;  // 131 us
  o.attr.retry_count = 1;
  PagedPair p(dev(), o);
  p.b.post_recv({p.bsge(0, 16384)});
  p.apaged.map(0, 1);
  SendWr w;
  w.sges = {p.apaged.sge(0, 8192)};
  const auto n = p.a.post(w);
  const Fault f = next_fault();
  machine().advance(50'000'000);
  p.apaged.map(1, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
  // The answer to a READ that waits as long.
  w = p.wr(WqeOp::kRdmaRead, 0, 8192);
  w.sges = {p.apaged.sge(4 * kPage, 8192)};
  const auto m = p.a.post(w);
  for (std::size_t page = 4; page < 6; ++page) {
    const Fault g = next_fault();
    EXPECT_EQ(g.kind, kReadAtomic);
    machine().advance(50'000'000);
    p.apaged.map(page, 1);
    EXPECT_CMD_OK(resume(g));
  }
  expect_good(p.acq, m);
  EXPECT_TRUE(PagedPair::same(p.apaged, 4 * kPage, p.bmem.data(), 8192));
}

TEST_F(Odp, ReceiveBufferIsNotReady) {
  PagedPair p(dev());
  p.b.post_recv({p.bsge(0, 64)});
  p.b.post_recv({p.bpaged.sge(kPage - 50, 8000)});
  p.a.post(p.wr(WqeOp::kSend, 0, 8), false);
  const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 5000));
  for (std::size_t page = 0; page < 2; ++page) {  // the first packet reaches into two
    const Fault f = next_fault();
    EXPECT_EQ(f.sub_type, prm::kFaultWqe);
    EXPECT_EQ(f.kind, kReceiveFault);
    EXPECT_EQ(f.queue, p.b.qpn());
    EXPECT_EQ(f.token, p.b.qpn());
    EXPECT_EQ(f.wqe_index, 1u);
    EXPECT_EQ(f.done, 0u);
    EXPECT_EQ(f.packet_len, 1024u);
    const auto rnr = fn().counter("err_rnr_tx");
    EXPECT_GT(rnr, 0u);
    expect_no_fault();
    EXPECT_GT(fn().counter("err_rnr_tx"), rnr) << "each attempt is answered";
    p.bpaged.map(page, 1);
    EXPECT_CMD_OK(resume(f));
  }
  const Fault f = next_fault();
  EXPECT_EQ(f.done, 4096u);
  p.bpaged.map(2, 1);
  EXPECT_CMD_OK(resume(f));
  p.acq.wait(1);
  expect_good(p.acq, n);
  expect_good(p.bcq, 0);
  const Completion c = p.bcq.wait_one();
  EXPECT_FALSE(c.error()) << c.text();
  EXPECT_EQ(c.wqe_counter, 1u);
  EXPECT_EQ(c.byte_cnt, 5000u);
  EXPECT_TRUE(PagedPair::same(p.bpaged, kPage - 50, p.amem.data(), 5000));
}

TEST_F(Odp, ReceiveBufferOfAnSrq) {
  PagedPair p(dev());
  Srq srq(dev(), p.pd);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  Qp rx2(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx2(dev(), p.pd, p.acq, p.acq);
  connect_pair(tx, rx);
  connect_pair(tx2, rx2);
  srq.post({p.bpaged.sge(0, 4096)});
  srq.post({p.bpaged.sge(8192, 4096)});
  tx.post(p.wr(WqeOp::kSend, 0, 100));
  const Fault f = next_fault();
  tx2.post(p.wr(WqeOp::kSend, 1000, 100));
  const Fault g = next_fault();
  for (const Fault& x : {f, g}) {
    EXPECT_EQ(x.kind, kSrqReceive);
    EXPECT_EQ(x.queue, srq.srqn());
  }
  EXPECT_EQ(f.token, rx.qpn());
  EXPECT_EQ(g.token, rx2.qpn());
  EXPECT_EQ(f.wqe_index, 0u);
  EXPECT_EQ(g.wqe_index, 1u);
  p.bpaged.map(0, 3);
  EXPECT_CMD_OK(resume(g));
  Completion c = p.bcq.wait_one();
  EXPECT_FALSE(c.error()) << c.text();
  EXPECT_EQ(c.wqe_counter, 1u) << "the other still waits";
  EXPECT_CMD_OK(resume(f));
  c = p.bcq.wait_one();
  EXPECT_FALSE(c.error()) << c.text();
  EXPECT_TRUE(PagedPair::same(p.bpaged, 0, p.amem.data(), 100));
  EXPECT_TRUE(PagedPair::same(p.bpaged, 8192, p.amem.data() + 1000, 100));
  p.acq.wait(2);
}

TEST_F(Odp, WriteTellsKeyAndAddress) {
  PagedPair p(dev());
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 9000);
  w.raddr = p.bpaged.mr.start() + 10;
  w.rkey = p.bpaged.mr.key();
  const auto n = p.a.post(w);
  const std::uint32_t at[] = {0, 3072, 7168};
  for (std::size_t page = 0; page < 3; ++page) {
    const Fault f = next_fault();
    EXPECT_EQ(f.sub_type, prm::kFaultRdma);
    EXPECT_EQ(f.kind, kRdmaWrite);
    EXPECT_EQ(f.token, p.b.qpn());
    EXPECT_EQ(f.rkey, p.bpaged.mr.key());
    EXPECT_EQ(f.va, w.raddr);
    EXPECT_EQ(f.len, 9000u);
    EXPECT_EQ(f.done, at[page]);
    EXPECT_EQ(f.packet_len, 1024u);
    p.bpaged.map(page, 1);
    EXPECT_CMD_OK(resume(f));
  }
  expect_good(p.acq, n);
  EXPECT_TRUE(PagedPair::same(p.bpaged, 10, p.amem.data(), 9000));
}

TEST_F(Odp, ReadFaultsAtBothEnds) {
  PagedPair p(dev());
  SendWr w;
  w.op = WqeOp::kRdmaRead;
  w.sges = {p.apaged.sge(kPage + 7, 5000), p.apaged.sge(5 * kPage, 4000)};
  w.raddr = p.bpaged.mr.start() + 2 * kPage;
  w.rkey = p.bpaged.mr.key();
  const auto n = p.a.post(w);
  // Behind it another READ of plain memory, and a SEND.
  const auto m = p.a.post(p.wr(WqeOp::kRdmaRead, 0, 3000));
  p.b.post_recv({p.bsge(32768, 4096)});
  const auto k = p.a.post(p.wr(WqeOp::kSend, 16384, 2000));
  unsigned reads = 0, answers = 0;
  while (!p.acq.ready()) {
    ASSERT_TRUE(machine().run_until([&] { return !faults_.empty() || p.acq.ready(); }, 100'000'000));
    if (faults_.empty()) break;
    const Fault f = next_fault();
    if (f.kind == kRdmaRead) {
      ++reads;
      EXPECT_EQ(f.token, p.b.qpn());
      EXPECT_EQ(f.va, w.raddr);
      EXPECT_EQ(f.len, 9000u);
      EXPECT_EQ(f.rkey, w.rkey);
      p.bpaged.map_range(f.va + f.done, 1);
    } else {
      ++answers;
      EXPECT_EQ(f.kind, kReadAtomic);
      EXPECT_EQ(f.queue, p.a.qpn());
      EXPECT_EQ(f.wqe_index, n);
      const std::size_t at = f.done < 5000 ? kPage + 7 + f.done : 5 * kPage + f.done - 5000;
      p.apaged.map(at / kPage, 2);
      if (f.done + 1024 > 5000) p.apaged.map(5, 1);
    }
    EXPECT_CMD_OK(resume(f));
  }
  EXPECT_EQ(reads, 3u);
  EXPECT_GE(answers, 2u);
  expect_good(p.acq, n);
  expect_good(p.acq, m);
  expect_good(p.acq, k);
  EXPECT_TRUE(PagedPair::same(p.apaged, kPage + 7, p.bpaged.mem.data() + 2 * kPage, 5000));
  EXPECT_TRUE(PagedPair::same(p.apaged, 5 * kPage, p.bpaged.mem.data() + 2 * kPage + 5000, 4000));
  EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data(), 3000), 0);
  EXPECT_EQ(std::memcmp(p.amem.data() + 16384, p.bmem.data() + 32768, 2000), 0);
}

// A masked one of 16 bytes too: what comes back after the last fault is the result kept for duplicates.
TEST_F(Odp, AtomicIsExecutedOnce) {
  for (const std::uint32_t len : {8u, 16u}) {
    PagedPair p(dev());
    auto* word = reinterpret_cast<std::uint64_t*>(p.bpaged.mem.data() + 3 * kPage + 16);
    *word = 1000;
    SendWr w;
    w.op = len == 8 ? WqeOp::kAtomicFa : WqeOp::kMaskedFa;
    w.sges = {p.apaged.sge(16, len)};
    w.raddr = p.bpaged.mr.start() + 3 * kPage + 16;
    w.rkey = p.bpaged.mr.key();
    w.swap_add = 7;
    w.atomic_bytes = len;
    w.operands.resize(32);
    w.operands[7] = 7;
    const auto n = p.a.post(w);
    Fault f = next_fault();
    EXPECT_EQ(f.sub_type, prm::kFaultRdma);
    EXPECT_EQ(f.kind, kRdmaWrite);
    EXPECT_EQ(f.len, len);
    EXPECT_EQ(f.va, w.raddr);
    // Readable is not enough.
    p.bpaged.map(3, 1, prm::Mtt::kRead);
    EXPECT_CMD_OK(resume(f));
    f = next_fault();
    EXPECT_EQ(f.kind, kRdmaWrite);
    EXPECT_EQ(*word, 1000u);
    p.bpaged.map(3, 1);
    EXPECT_CMD_OK(resume(f));
    f = next_fault();
    EXPECT_EQ(f.kind, kReadAtomic);
    EXPECT_EQ(f.wqe_index, n);
    EXPECT_EQ(f.done, 0u);
    p.apaged.map(0, 1);
    EXPECT_CMD_OK(resume(f));
    expect_good(p.acq, n);
    EXPECT_EQ(*word, 1007u);
    std::uint64_t was;
    std::memcpy(&was, p.apaged.mem.data() + 16, sizeof was);
    EXPECT_EQ(len == 8 ? was : __builtin_bswap64(was), 1000u);
  }
}

TEST_F(Odp, WritableIsNotReadableAndTheOtherWayRound) {
  PagedPair p(dev());
  p.bpaged.map(0, 1, prm::Mtt::kRead);
  auto w = p.wr(WqeOp::kRdmaRead, 0, 64);
  w.raddr = p.bpaged.mr.start();
  w.rkey = p.bpaged.mr.key();
  expect_good(p.acq, p.a.post(w));
  w.op = WqeOp::kRdmaWrite;
  const auto n = p.a.post(w);
  const Fault f = next_fault();
  EXPECT_EQ(f.kind, kRdmaWrite);
  p.bpaged.map(0, 1, prm::Mtt::kWrite);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
  w.op = WqeOp::kRdmaRead;
  const auto m = p.a.post(w);
  const Fault g = next_fault();
  EXPECT_EQ(g.kind, kRdmaRead);
  p.bpaged.map(0, 1);
  EXPECT_CMD_OK(resume(g));
  expect_good(p.acq, m);
}

TEST_F(Odp, InvalidationIsOverWhenItsUmrCompletes) {
  PagedPair p(dev());
  p.bpaged.map(0, 16);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 30000);
  w.raddr = p.bpaged.mr.start();
  w.rkey = p.bpaged.mr.key();
  for (int round = 0; round < 20; ++round) {
    const auto n = p.a.post(w);
    machine().advance(round * 300);
    p.bpaged.unmap(0, 16);
    // From here on nothing may land in the pages.
    const std::vector<std::uint8_t> then(p.bpaged.mem.data(), p.bpaged.mem.data() + p.bpaged.mem.size());
    machine().advance(100'000);
    EXPECT_EQ(std::memcmp(then.data(), p.bpaged.mem.data(), then.size()), 0) << round;
    while (!p.acq.ready()) {
      ASSERT_TRUE(machine().run_until([&] { return !faults_.empty() || p.acq.ready(); }, 100'000'000));
      if (faults_.empty()) break;
      const Fault f = next_fault();
      p.bpaged.map_range(f.va, f.len);
      EXPECT_CMD_OK(resume(f));
    }
    expect_good(p.acq, n);
    EXPECT_TRUE(PagedPair::same(p.bpaged, 0, p.amem.data(), 30000));
    p.bpaged.map(0, 16);
    p.fill(static_cast<std::uint64_t>(round));
  }
}

TEST_F(Odp, DatagramOut) {
  PagedPair p(dev());
  QpOptions o;
  o.type = QpType::kUd;
  Qp a(dev(), p.pd, p.acq, p.acq, o), b(dev(), p.pd, p.bcq, p.bcq, o);
  a.connect({});
  b.connect({});
  b.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.sges = {p.apaged.sge(0, 1000)};
  w.av.qpn = b.qpn();
  w.av.dlid = dev().lid();
  const auto n = a.post(w);
  const Fault f = next_fault();
  EXPECT_EQ(f.kind, kSendFault);
  EXPECT_EQ(f.queue, a.qpn());
  EXPECT_EQ(f.wqe_index, n);
  p.apaged.map(0, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
  expect_good(p.bcq, 0);
  EXPECT_TRUE(PagedPair::same(p.apaged, 0, p.bmem.data() + 40, 1000));
}

TEST_F(Odp, DatagramInIsLostButItsWqeIsNot) {
  PagedPair p(dev());
  QpOptions o;
  o.type = QpType::kUd;
  Srq srq(dev(), p.pd);
  Qp a(dev(), p.pd, p.acq, p.acq, o), b(dev(), p.pd, p.bcq, p.bcq, o, &srq);
  a.connect({});
  b.connect({});
  srq.post({p.bpaged.sge(0, 4096)});
  SendWr w;
  w.sges = {p.asge(0, 1000)};
  w.av.qpn = b.qpn();
  w.av.dlid = dev().lid();
  expect_good(p.acq, a.post(w));
  const Fault f = next_fault();
  EXPECT_EQ(f.kind, kSrqReceive);
  EXPECT_EQ(f.queue, srq.srqn());
  EXPECT_EQ(f.token, b.qpn());
  expect_good(p.acq, a.post(w));
  expect_no_fault();
  EXPECT_FALSE(p.bcq.ready());
  p.bpaged.map(0, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, a.post(w));
  expect_good(p.bcq, 0);
  EXPECT_TRUE(PagedPair::same(p.bpaged, 40, p.amem.data(), 1000));
}

TEST_F(Odp, UnreliableMessagesAreLost) {
  PagedPair p(dev());
  QpOptions o;
  o.type = QpType::kUc;
  Qp a(dev(), p.pd, p.acq, p.acq, o), b(dev(), p.pd, p.bcq, p.bcq, o);
  connect_pair(a, b, PagedPair::options().attr);
  b.post_recv({p.bpaged.sge(0, 8192)});
  expect_good(p.acq, a.post(p.wr(WqeOp::kSend, 0, 5000)));
  Fault f = next_fault();
  EXPECT_EQ(f.kind, kReceiveFault);
  expect_no_fault();
  p.bpaged.map(0, 2);
  EXPECT_CMD_OK(resume(f));
  EXPECT_FALSE(p.bcq.ready());
  expect_good(p.acq, a.post(p.wr(WqeOp::kSend, 100, 5000)));
  expect_good(p.bcq, 0);
  EXPECT_TRUE(PagedPair::same(p.bpaged, 0, p.amem.data() + 100, 5000));
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 5000);
  w.raddr = p.bpaged.mr.start() + 4 * kPage;
  w.rkey = p.bpaged.mr.key();
  expect_good(p.acq, a.post(w));
  f = next_fault();
  EXPECT_EQ(f.kind, kRdmaWrite);
  p.bpaged.map(4, 2);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, a.post(w));
  machine().advance(100'000);
  EXPECT_TRUE(PagedPair::same(p.bpaged, 4 * kPage, p.amem.data(), 5000));
}

// A DC target serves many initiators: each of their connections has faults of its own.
TEST_F(Odp, DcTargetFaultsByConnection) {
  PagedPair p(dev());
  Srq srq(dev(), p.pd);
  Dct target(dev(), p.pd, p.bcq, srq, {});
  QpOptions o;
  o.type = QpType::kDci;
  Qp a(dev(), p.pd, p.acq, p.acq, o, &srq), b(dev(), p.pd, p.acq, p.acq, o, &srq);
  a.connect({});
  b.connect({});
  const auto to_target = [&](SendWr w) {
    w.av.qpn = target.dctn();
    w.av.dc_key = target.key();
    return w;
  };
  srq.post({p.bpaged.sge(0, 4096)});
  SendWr w;
  w.sges = {p.apaged.sge(0, 100)};
  a.post(to_target(w));
  const Fault send = next_fault();
  EXPECT_EQ(send.kind, kSendFault);
  EXPECT_EQ(send.queue, a.qpn());
  p.apaged.map(0, 1);
  EXPECT_CMD_OK(resume(send));
  const Fault receive = next_fault();
  EXPECT_EQ(receive.kind, kSrqReceive);
  EXPECT_EQ(receive.queue, srq.srqn());
  w = p.wr(WqeOp::kRdmaWrite, 0, 5000);
  w.raddr = p.bpaged.mr.start() + 4 * kPage;
  w.rkey = p.bpaged.mr.key();
  b.post(to_target(w));
  const Fault write = next_fault();
  EXPECT_EQ(write.kind, kRdmaWrite);
  EXPECT_NE(write.token, receive.token) << "another connection of the target";
  p.bpaged.map(4, 2);
  EXPECT_CMD_OK(resume(write));
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_TRUE(PagedPair::same(p.bpaged, 4 * kPage, p.amem.data(), 5000));
  p.bpaged.map(0, 1);
  EXPECT_CMD_OK(resume(receive));
  EXPECT_FALSE(p.bcq.wait_one().error());
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_TRUE(PagedPair::same(p.bpaged, 0, p.apaged.mem.data(), 100));
}

// A list over all of a process's memory: parts that were never used are the null key.
TEST_F(Odp, ImplicitKeyFillsAsItIsUsed) {
  PagedPair p(dev());
  const auto special =
      dev().exec(Mailbox(prm::op::QUERY_SPECIAL_CONTEXTS, prm::query_special_contexts_in::bytes),
                 prm::query_special_contexts_out::bytes);
  const auto null =
      static_cast<std::uint32_t>(special.must().get<prm::query_special_contexts_out::null_mkey>());
  ASSERT_NE(null, 0u);
  constexpr unsigned kLogPart = 16;
  constexpr std::uint64_t kPart = 1u << kLogPart;
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 3;
  s.length64 = s.umr_en = true;
  s.log_page = kLogPart;
  s.klm.assign(8, KlmEntry{static_cast<std::uint32_t>(kPart), null, 0});
  Mr implicit(dev(), s);
  PagedMemory part(dev(), p.pd, kPart / kPage, kAllAccess, 5 * kPart);
  const auto use_part = [&](bool on) {
    UmrWr u;
    u.mkey = implicit.key();
    u.spec = s;
    if (on) u.spec.klm[5] = {static_cast<std::uint32_t>(kPart), part.mr.key(), 5 * kPart};
    expect_good(p.acq, p.a.post_umr(u));
  };
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 3000);
  w.raddr = 5 * kPart + 100;
  w.rkey = implicit.key();
  const auto n = p.a.post(w);
  Fault f = next_fault();
  EXPECT_EQ(f.kind, kRdmaWrite);
  EXPECT_EQ(f.rkey, implicit.key());
  EXPECT_EQ(f.va, w.raddr);
  // a's own send queue has the WRITE in it: the update takes another.
  Qp umr(dev(), p.pd, p.bcq, p.bcq);
  Qp far(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(umr, far);
  UmrWr u;
  u.mkey = implicit.key();
  u.spec = s;
  u.spec.klm[5] = {static_cast<std::uint32_t>(kPart), part.mr.key(), 5 * kPart};
  expect_good(p.bcq, umr.post_umr(u));
  EXPECT_CMD_OK(resume(f));
  f = next_fault();
  EXPECT_EQ(f.rkey, implicit.key()) << "the key that the request names, not the part's";
  part.map(0, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
  EXPECT_TRUE(PagedPair::same(part, 100, p.amem.data(), 3000));
  // The other way: a SEND out of it, then the part goes and comes back.
  SendWr send;
  send.sges = {{5 * kPart + 100, implicit.key(), 2000}};
  p.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, p.a.post(send));
  expect_good(p.bcq, 0);
  use_part(false);
  p.b.post_recv({p.bsge(0, 4096)});
  const auto m = p.a.post(send);
  f = next_fault();
  EXPECT_EQ(f.kind, kSendFault);
  expect_good(p.bcq, umr.post_umr(u));
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, m);
  EXPECT_TRUE(PagedPair::same(part, 100, p.bmem.data(), 2000));
}

}  // namespace
}  // namespace hcasim::bare
