// SPDX-License-Identifier: BSD-3-Clause
// On-demand paging under load: many queues that fault at once, pages that are taken away while they are used,
// lost packets in between.
#include <algorithm>

#include "odp_fixture.h"

namespace hcasim::bare {
namespace {

class OdpStorm : public OdpTest {
 protected:
  static constexpr std::size_t kPairs = 24, kSlice = 4;  // pages of each QP

  struct Flow {
    std::unique_ptr<Qp> a, b;
    std::size_t base = 0;  // of its slice, bytes
    bool busy = false, receives = false;
    WqeOp op{};
    std::size_t aoff = 0, boff = 0;
    std::uint32_t len = 0;
    std::vector<std::uint8_t> expected;
    std::uint64_t word = 0, add = 0;
    unsigned done = 0;
  };

  struct Storm {
    explicit Storm(Device& d)
        : pd(d),
          acq(d, options()),
          bcq(d, options()),
          amem(d, pd, kPairs * kSlice),
          bmem(d, pd, kPairs * kSlice, kAllAccess, 0x7f3400000000),
          flows(kPairs) {
      for (std::size_t i = 0; i < kPairs; ++i) {
        Flow& f = flows[i];
        f.a = std::make_unique<Qp>(d, pd, acq, acq);
        f.b = std::make_unique<Qp>(d, pd, bcq, bcq);
        f.base = i * kSlice * kPage;
        QpAttr attr;
        attr.mtu = 1024;
        attr.ack_timeout = 8;  // 1 ms
        connect_pair(*f.a, *f.b, attr);
      }
    }
    static CqOptions options() {
      CqOptions o;
      o.log_size = 10;
      return o;
    }
    Flow& of_qpn(std::uint32_t qpn) {
      for (Flow& f : flows)
        if (f.a->qpn() == qpn || f.b->qpn() == qpn) return f;
      throw BareError("fault of a QP that is not ours");
    }
    Pd pd;
    Cq acq, bcq;
    PagedMemory amem, bmem;
    std::vector<Flow> flows;
  };

  std::size_t pick(std::size_t n) { return rnd_() % n; }

  void start(Storm& s, Flow& f) {
    static constexpr WqeOp kOps[] = {WqeOp::kSend, WqeOp::kRdmaWrite, WqeOp::kRdmaRead, WqeOp::kAtomicFa,
                                     WqeOp::kRdmaWriteImm};
    f.op = kOps[pick(5)];
    f.receives = f.op == WqeOp::kSend || f.op == WqeOp::kRdmaWriteImm;
    const bool atomic = f.op == WqeOp::kAtomicFa;
    f.len = atomic ? 8 : static_cast<std::uint32_t>(1 + pick(kSlice * kPage));
    f.aoff = f.base + pick(kSlice * kPage - f.len + 1) / 8 * 8;
    f.boff = f.base + pick(kSlice * kPage - f.len + 1) / 8 * 8;
    fill_random(s.amem.mem.data() + f.base, kSlice * kPage, rnd_());
    fill_random(s.bmem.mem.data() + f.base, kSlice * kPage, rnd_());
    const std::uint8_t* from =
        f.op == WqeOp::kRdmaRead ? s.bmem.mem.data() + f.boff : s.amem.mem.data() + f.aoff;
    f.expected.assign(from, from + f.len);
    std::memcpy(&f.word, s.bmem.mem.data() + f.boff, 8);
    f.add = rnd_();
    if (f.receives) {
      // An immediate takes a WQE without writing to its memory.
      f.b->post_recv({f.op == WqeOp::kSend ? s.bmem.sge(f.boff, f.len) : s.bmem.sge(f.base, 8)});
    }
    SendWr w;
    w.op = f.op;
    w.sges = {s.amem.sge(f.aoff, f.len)};
    w.raddr = s.bmem.mr.start() + f.boff;
    w.rkey = s.bmem.mr.key();
    w.swap_add = f.add;
    f.a->post(w);
    f.busy = true;
  }

  static void check(Storm& s, Flow& f) {
    const std::uint8_t *a = s.amem.mem.data() + f.aoff, *b = s.bmem.mem.data() + f.boff;
    if (f.op == WqeOp::kAtomicFa) {
      std::uint64_t before, after;
      std::memcpy(&before, a, 8);
      std::memcpy(&after, b, 8);
      EXPECT_EQ(before, f.word);
      EXPECT_EQ(after, f.word + f.add) << "executed once";
    } else {
      EXPECT_EQ(std::memcmp(f.op == WqeOp::kRdmaRead ? a : b, f.expected.data(), f.len), 0)
          << "opcode " << static_cast<int>(f.op);
    }
    f.busy = false;
    ++f.done;
  }

  // What a driver does for a fault: the pages that it names, and the answer. Here: some of them, at times.
  void serve(Storm& s, const Fault& fault) {
    Flow& f = s.of_qpn(fault.token);
    PagedMemory& m = fault.kind == kSendFault || fault.kind == kReadAtomic ? s.amem : s.bmem;
    const std::size_t first = f.base / kPage;
    if (pick(8) == 0)
      m.map(first + pick(kSlice), 1);
    else
      m.map(first, kSlice);
    EXPECT_CMD_OK(resume(fault));
  }

  void run(unsigned rounds, bool invalidate) {
    Storm s(dev());
    const auto finished = [&] {
      return std::all_of(s.flows.begin(), s.flows.end(), [&](const Flow& f) { return f.done >= rounds; });
    };
    unsigned idle = 0;
    while (!finished()) {
      for (Flow& f : s.flows)
        if (!f.busy && f.done < rounds) start(s, f);
      machine().advance(static_cast<std::int64_t>(pick(20'000)));
      ASSERT_LT(++idle, 20'000u) << "no progress";
      while (!faults_.empty()) {
        const Fault fault = faults_.front();
        faults_.pop_front();
        serve(s, fault);
        ++served_;
      }
      for (unsigned i = 0; invalidate && i < 4; ++i) {
        PagedMemory& m = pick(2) ? s.amem : s.bmem;
        m.unmap(pick(m.pages() / kSlice) * kSlice, kSlice);
      }
      while (const auto c = s.bcq.poll()) {
        ASSERT_FALSE(c->error()) << c->text();
        EXPECT_TRUE(s.of_qpn(c->qpn).receives);
      }
      while (const auto c = s.acq.poll()) {
        ASSERT_FALSE(c->error()) << c->text();
        check(s, s.of_qpn(c->qpn));
        idle = 0;
      }
      if (!invalidate && pick(20) == 0) {
        s.amem.unmap(0, s.amem.pages());
        s.bmem.unmap(0, s.bmem.pages());
      }
    }
    for (Flow& f : s.flows) {
      f.a.reset();
      f.b.reset();
    }
  }

  std::mt19937_64 rnd_{20};
  std::uint64_t served_ = 0;
};

TEST_F(OdpStorm, ManyQueuesFault) {
  run(30, false);
  EXPECT_GT(served_, 60u) << "how many depends on how fast the traffic is; the storm is to be one";
  EXPECT_EQ(fn().counter("page_faults_wqe") + fn().counter("page_faults_rdma"),
            fn().counter("page_faults_resumed"));
}

TEST_F(OdpStorm, PagesGoWhileTheyAreUsed) {
  run(40, true);
  EXPECT_GT(served_, 80u);
}

TEST_F(OdpStorm, PacketsAreLostBesides) {
  ASSERT_EQ(fn().inject("drop=0.02,duplicate=0.02,reorder=0.02"), "");
  run(25, true);
  EXPECT_GT(served_, 40u);
}

// More faults at once than the event queue holds.
TEST_F(OdpStorm, EventQueueOverruns) {
  EXPECT_CMD_OK(eq_->destroy());
  std::array<std::uint64_t, 4> mask{};
  mask[0] = 1ull << static_cast<unsigned>(prm::EqeType::kPageFault);
  EventQueue small(dev(), 3, 7, mask, [](const prm::Eqe&) {});
  small.set_automatic(false);
  Storm s(dev());
  for (Flow& f : s.flows) {
    SendWr w;
    w.sges = {s.amem.sge(f.base, 100)};
    f.a->post(w);
  }
  machine().advance(1'000'000);
  std::size_t failed = 0;
  while (const auto c = s.acq.poll()) {
    expect_error(*c, prm::CqeSyndrome::kLocalProt);
    ++failed;
  }
  EXPECT_EQ(failed, kPairs - 8) << "a fault that nobody will hear of is an error at once";
  EXPECT_CMD_OK(small.destroy());
}

}  // namespace
}  // namespace hcasim::bare
