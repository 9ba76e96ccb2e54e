// SPDX-License-Identifier: BSD-3-Clause
// Two HCAs joined by a cable: traffic between them, loss on the cable, pulled and plugged again.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

// One end: a device with what a connected QP needs.
struct End {
  End(Device& device, const QpOptions& options, std::size_t bytes = 1 << 20)
      : dev(device),
        pd(device),
        cq(device, many()),
        qp(device, pd, cq, cq, options),
        mem(device.memory().allocate(bytes)),
        mr(device, Mr::of(pd, mem, kAllAccess)) {}
  static CqOptions many() {
    CqOptions o;
    o.log_size = 11;
    return o;
  }
  Sge sge(std::size_t off, std::uint32_t len) const { return {mr.start() + off, mr.key(), len}; }

  Device& dev;
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer mem;
  Mr mr;
};

class Cable : public ::testing::TestWithParam<int> {  // -1: IB, else the RoCE address
 protected:
  bool ib() const { return GetParam() < 0; }
  void SetUp() override {
    for (std::size_t i = 0; i < machine().functions(); ++i) machine().function(i).reset();
    DeviceOptions o;
    o.wait_active = false;  // the cable has carrier when both ends are there
    if (!ib()) o.sgid_index = static_cast<unsigned>(GetParam());
    const std::size_t first = ib() ? kIbPair : kEthernetPair;
    for (std::size_t i = 0; i < 2; ++i) {
      dev[i] = std::make_unique<Device>(machine().function(first + i), o);
      dev[i]->probe();
    }
    ASSERT_TRUE(machine().run_until([&] { return dev[0]->port_state() == 4 && dev[1]->port_state() == 4; },
                                    10'000'000'000));
  }
  void TearDown() override {
    for (auto& d : dev) {
      if (!d) continue;
      EXPECT_EQ(d->function().inject("none"), "");
      EXPECT_NO_THROW(d->teardown());
      EXPECT_EQ(leftover_objects(d->function()), "");
      d.reset();
    }
  }
  // The path from an end to the other.
  void aim(QpAttr& attr, const Device& to) const {
    if (ib()) {
      attr.dlid = to.lid();
    } else {
      attr.roce.dgid = to.roce_entry(to.sgid_index()).gid;
      attr.roce.dmac = to.mac();
    }
  }
  void aim(Av& av, const Device& to) const {
    if (ib()) {
      av.dlid = to.lid();
    } else {
      av.roce.dgid = to.roce_entry(to.sgid_index()).gid;
      av.roce.dmac = to.mac();
    }
  }
  void join(End& a, End& b, QpAttr attr = {}) const {
    QpAttr there = attr, back = attr;
    there.remote_qpn = b.qp.qpn();
    back.remote_qpn = a.qp.qpn();
    aim(there, b.dev);
    aim(back, a.dev);
    a.qp.connect(there);
    b.qp.connect(back);
  }
  static SendWr wr(const End& a, const End& b, WqeOp op, std::size_t off, std::uint32_t len) {
    SendWr w;
    w.op = op;
    w.sges = {a.sge(off, len)};
    w.raddr = b.mr.start() + off;
    w.rkey = b.mr.key();
    return w;
  }
  std::unique_ptr<Device> dev[2];
};

TEST_P(Cable, RcBothWays) {
  End a(*dev[0], {}), b(*dev[1], {});
  join(a, b);
  End* ends[] = {&a, &b};
  for (int way = 0; way < 2; ++way) {
    End &from = *ends[way], &to = *ends[1 - way];
    for (const WqeOp op : {WqeOp::kSend, WqeOp::kRdmaWrite, WqeOp::kRdmaRead}) {
      fill_random(from.mem.data(), from.mem.size(), static_cast<std::uint64_t>(op));
      fill_random(to.mem.data(), to.mem.size(), ~static_cast<std::uint64_t>(op));
      if (op == WqeOp::kSend) to.qp.post_recv({to.sge(0, 50000)});
      expect_good(from.cq, from.qp.post(wr(from, to, op, 0, 50000)));
      if (op == WqeOp::kSend) {
        EXPECT_EQ(to.cq.wait_one().byte_cnt, 50000u);
      }
      machine().advance(100'000);
      EXPECT_EQ(std::memcmp(from.mem.data(), to.mem.data(), 50000), 0);
    }
    SendWr w = wr(from, to, WqeOp::kAtomicFa, 0, 8);
    w.swap_add = 1;
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, to.mem.data(), 8);
    expect_good(from.cq, from.qp.post(w));
    std::memcpy(&after, to.mem.data(), 8);
    EXPECT_EQ(after, before + 1);
  }
}

TEST_P(Cable, Datagrams) {
  QpOptions ud;
  ud.type = QpType::kUd;
  End a(*dev[0], ud), b(*dev[1], ud);
  for (End* e : {&a, &b}) e->qp.connect({});
  fill_random(a.mem.data(), a.mem.size(), 1);
  b.qp.post_recv({b.sge(0, 4096)});
  SendWr w;
  w.sges = {a.sge(40, 1000)};
  w.av.qpn = b.qp.qpn();
  aim(w.av, b.dev);
  expect_good(a.cq, a.qp.post(w));
  const Completion d = b.cq.wait_one();
  EXPECT_EQ(d.byte_cnt, 1040u);
  EXPECT_EQ(d.flags_rqpn & 0xffffff, a.qp.qpn());
  EXPECT_EQ(std::memcmp(a.mem.data() + 40, b.mem.data() + 40, 1000), 0);
}

constexpr Gid kGroup{0xff, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};

void join_group(End& e) {
  e.qp.connect({});
  Mailbox in(prm::op::ATTACH_TO_MCG, prm::attach_to_mcg_in::bytes);
  in.set<prm::attach_to_mcg_in::qpn>(e.qp.qpn());
  std::copy(kGroup.begin(), kGroup.end(), in.begin() + prm::attach_to_mcg_in::multicast_gid::bit_off / 8);
  e.dev.exec(in).must();
  e.qp.post_recv({e.sge(8192, 4096)});
}

void leave_group(End& e) {
  Mailbox out(prm::op::DETACH_FROM_MCG, prm::detach_from_mcg_in::bytes);
  out.set<prm::detach_from_mcg_in::qpn>(e.qp.qpn());
  std::copy(kGroup.begin(), kGroup.end(), out.begin() + prm::detach_from_mcg_in::multicast_gid::bit_off / 8);
  EXPECT_CMD_OK(e.dev.exec(out));
}

SendWr to_group(const End& from) {
  SendWr w;
  w.sges = {from.sge(40, 500)};
  w.av.qpn = 0xffffff;
  w.av.dlid = 0xc009;
  w.av.grh = true;
  w.av.dgid = kGroup;
  w.av.roce.dgid = kGroup;
  w.av.roce.dmac = {0x33, 0x33, 0, 0, 0, 9};
  w.av.roce.sgid_index = kRoceV2Ipv6;
  return w;
}

TEST_P(Cable, MulticastReachesBothEnds) {
  QpOptions ud;
  ud.type = QpType::kUd;
  End a(*dev[0], ud), b(*dev[1], ud);
  for (End* e : {&a, &b}) join_group(*e);
  fill_random(a.mem.data(), 8192, 2);
  a.qp.post(to_group(a));
  EXPECT_EQ(b.cq.wait_one().byte_cnt, 540u);
  const auto own = a.cq.wait(2);
  ASSERT_EQ(own.size(), 2u) << "the send, and its loopback";
  for (End* e : {&a, &b}) {
    EXPECT_EQ(std::memcmp(a.mem.data() + 40, e->mem.data() + 8192 + 40, 500), 0);
    leave_group(*e);
  }
}

// Not its own, but that of others, on its HCA and elsewhere.
TEST_P(Cable, AQpCanBeSparedItsOwnMulticast) {
  QpOptions ud;
  ud.type = QpType::kUd;
  ud.block_own_multicast = true;
  End a(*dev[0], ud), beside(*dev[0], ud), b(*dev[1], ud);
  End* all[] = {&a, &beside, &b};
  for (End* e : all) join_group(*e);
  for (End* from : all) {
    from->qp.post(to_group(*from));
    for (End* e : all) {
      const Completion c = e->cq.wait_one();
      EXPECT_EQ(c.op, e == from ? prm::CqeOp::kReq : prm::CqeOp::kRespSend);
      if (e != from) e->qp.post_recv({e->sge(8192, 4096)});
    }
    machine().advance(1'000'000);
    for (End* e : all) EXPECT_FALSE(e->cq.ready());
  }
  for (End* e : all) leave_group(*e);
}

TEST_P(Cable, LossOnTheWayIsMadeGood) {
  QpAttr attr;
  attr.mtu = 1024;
  attr.ack_timeout = 8;
  End a(*dev[0], {}), b(*dev[1], {});
  join(a, b, attr);
  for (auto& d : dev)
    ASSERT_EQ(d->function().inject("drop=0.02,duplicate=0.05,reorder=0.02,corrupt=0.01,seed=5"), "");
  std::mt19937 rnd(9);
  for (int round = 0; round < 40; ++round) {
    fill_random(a.mem.data(), a.mem.size(), round);
    fill_random(b.mem.data(), b.mem.size(), ~round);
    std::vector<std::pair<std::size_t, std::uint32_t>> areas;
    std::size_t off = 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t len = rnd() % 60000 + 1;
      a.qp.post(wr(a, b, rnd() % 2 ? WqeOp::kRdmaWrite : WqeOp::kRdmaRead, off, len), false);
      areas.emplace_back(off, len);
      off += len + 64;
    }
    a.qp.ring_doorbell();
    const auto got = a.cq.wait(8, 60'000'000'000);
    ASSERT_EQ(got.size(), 8u);
    for (const Completion& c : got) ASSERT_FALSE(c.error()) << c.text();
    for (const auto& [at, len] : areas)
      ASSERT_EQ(std::memcmp(a.mem.data() + at, b.mem.data() + at, len), 0) << "round " << round;
  }
  EXPECT_GT(dev[0]->function().counter("injected_drop"), 0u);
  EXPECT_GT(dev[1]->function().counter("rx_errors"), 0u);
}

TEST_P(Cable, PulledAndPluggedAgain) {
  QpAttr attr;
  attr.ack_timeout = 12;  // 17 ms, eight times
  End a(*dev[0], {}), b(*dev[1], {});
  join(a, b, attr);
  fill_random(a.mem.data(), a.mem.size(), 3);
  ASSERT_EQ(dev[1]->function().inject("link=down"), "");
  ASSERT_TRUE(machine().run_until([&] { return dev[0]->port_state() != 4; }, 1'000'000'000))
      << "both ends see it";
  const auto n = a.qp.post(wr(a, b, WqeOp::kRdmaWrite, 0, 5000));
  machine().advance(1'000'000);
  EXPECT_FALSE(a.cq.ready());
  ASSERT_EQ(dev[1]->function().inject("link=up"), "");
  expect_good(a.cq, n);
  machine().advance(100'000);  // an acknowledgement may be here before the far end's memory has the data
  EXPECT_EQ(std::memcmp(a.mem.data(), b.mem.data(), 5000), 0);
}

std::string cable_name(const ::testing::TestParamInfo<int>& i) {
  const char* const names[] = {"Ib", "RoceV2Ipv4", "RoceV2Ipv6", "RoceV1", "RoceV2Vlan"};
  return names[i.param + 1];
}
INSTANTIATE_TEST_SUITE_P(Links, Cable, ::testing::Range(-1, int{kRoceEntries}), cable_name);

}  // namespace
}  // namespace hcasim::bare
