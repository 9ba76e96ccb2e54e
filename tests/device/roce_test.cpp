// SPDX-License-Identifier: BSD-3-Clause
// RoCE: address paths and vectors, the RoCE address table, what a datagram's receiver is told, multicast.
#include <cstring>

#include "eth_fixture.h"

namespace hcasim::bare {
namespace {

DeviceOptions source(unsigned index) {
  DeviceOptions o;
  o.sgid_index = index;
  return o;
}

class Roce : public DeviceTest {
 protected:
  explicit Roce(unsigned index = kRoceV2Ipv4) : DeviceTest(source(index), kEthFunction) {}

  struct Datagrams {
    Datagrams(Device& d, Pair& p) : a(d, p.pd, p.acq, p.acq, options()), b(d, p.pd, p.bcq, p.bcq, options()) {
      for (Qp* q : {&a, &b}) q->connect({});
    }
    static QpOptions options() {
      QpOptions o;
      o.type = QpType::kUd;
      return o;
    }
    Qp a, b;
  };
  static SendWr datagram(const Pair& p, std::uint32_t qpn, std::uint32_t len) {
    SendWr w;
    w.sges = {p.asge(40, len)};
    w.av.qpn = qpn;
    return w;
  }
  static PairOptions impatient() {
    PairOptions o;
    o.attr.ack_timeout = 6;
    o.attr.retry_count = 1;
    return o;
  }
  std::uint64_t count(const char* name) { return fn().counter(name); }
  void expect_lost(Pair& p) {
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 100));
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  }
};

TEST_F(Roce, ProbedAsAnEthernetPort) {
  EXPECT_TRUE(dev().ethernet());
  EXPECT_EQ(dev().port_state(), 4);
  EXPECT_NE(dev().mac(), Mac{});
  EXPECT_EQ(dev().mac()[0] & 1, 0);
}

class RoceKinds : public Roce, public ::testing::WithParamInterface<unsigned> {
 protected:
  RoceKinds() : Roce(GetParam()) {}
  const RoceEntry& own() { return dev().roce_entry(GetParam()); }
};

TEST_P(RoceKinds, OperationsOfAConnectedQp) {
  Pair p(dev());
  p.fill(1);
  for (const WqeOp op : {WqeOp::kSend, WqeOp::kRdmaWrite, WqeOp::kRdmaRead}) {
    p.fill(static_cast<std::uint64_t>(op));
    if (op == WqeOp::kSend) p.b.post_recv({p.bsge(0, 20000)});
    expect_good(p.acq, p.a.post(p.wr(op, 0, 20000)));
    if (op == WqeOp::kSend) expect_good(p.bcq, 0);
    machine().advance(100'000);
    EXPECT_TRUE(p.same(0, 20000));
  }
  std::uint64_t value = 40;
  std::memcpy(p.bmem.data(), &value, 8);
  SendWr w = p.wr(WqeOp::kAtomicFa, 0, 8);
  w.swap_add = 2;
  expect_good(p.acq, p.a.post(w));
  std::memcpy(&value, p.amem.data(), 8);
  EXPECT_EQ(value, 40u);
  std::memcpy(&value, p.bmem.data(), 8);
  EXPECT_EQ(value, 42u);
}

TEST_P(RoceKinds, ADatagramBringsItsNetworkHeader) {
  Pair p(dev());
  Datagrams u(dev(), p);
  p.fill(2);
  std::memset(p.bmem.data(), 0xee, 40);
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w = datagram(p, u.b.qpn(), 300);
  w.op = WqeOp::kSendImm;
  w.imm = 0x1234;
  w.av.roce.tclass = 0x68;
  w.av.roce.hop_limit = 7;
  w.av.roce.sl = 5;
  w.av.roce.flow_label = 0x54321;
  expect_good(p.acq, u.a.post(w));
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespSendImm);
  EXPECT_EQ(d.imm, 0x1234u);
  EXPECT_EQ(d.byte_cnt, 340u);
  EXPECT_EQ(d.slid, 0);
  EXPECT_EQ(d.flags_rqpn & 0xffffff, u.a.qpn());
  EXPECT_EQ(d.flags_rqpn >> 28 & 3, 1u) << "the header lies in the buffer";
  EXPECT_EQ(d.flags_rqpn >> 24 & 3, own().version == 0 ? 0u : own().ipv4 ? 2u : 1u);
  EXPECT_EQ(d.header_type & 1, own().vlan_valid ? 1 : 0);
  EXPECT_EQ(d.vlan, own().vlan_valid ? 5 << 13 | kTestVlan : 0);
  EXPECT_TRUE(p.same(40, 300));
  const std::uint8_t* h = p.bmem.data();
  if (own().ipv4) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(h[i], 0);
    h += 20;
    EXPECT_EQ(h[0], 0x45);
    EXPECT_EQ(h[1] & 0xfc, 0x68) << "the lower two bits are congestion control's";
    EXPECT_EQ(h[2] << 8 | h[3], 20 + 8 + 12 + 8 + 4 + 300 + 4);
    EXPECT_EQ(h[8], 7);
    EXPECT_EQ(h[9], 17);
    EXPECT_EQ(std::memcmp(h + 12, own().gid.data() + 12, 4), 0);
    EXPECT_EQ(std::memcmp(h + 16, own().gid.data() + 12, 4), 0);
    std::uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(h[i] << 8 | h[i + 1]);
    EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu) << "checksum";
  } else {
    EXPECT_EQ(h[0], 0x66) << "version, traffic class";
    EXPECT_EQ(h[1] & 0xc0, 0x80);
    EXPECT_EQ((h[1] & 0xf) << 16 | h[2] << 8 | h[3], 0x54321);
    EXPECT_EQ(h[6], own().version == 0 ? 0x1b : 17);
    EXPECT_EQ(h[7], 7);
    EXPECT_EQ(std::memcmp(h + 8, own().gid.data(), 16), 0);
    EXPECT_EQ(std::memcmp(h + 24, own().gid.data(), 16), 0);
  }
}

TEST_P(RoceKinds, MulticastReachesThoseWhoJoined) {
  Pair p(dev());
  Datagrams u(dev(), p);
  // Groups and MACs as the connection manager makes them of 239.1.2.3 and ff1e::9 (kernel cma.c, ib_addr.h).
  Gid group{};
  Mac mac{0x33, 0x33, 0, 0, 0, 9};
  if (own().ipv4) {
    group[10] = group[11] = 0xff;
    const std::uint8_t ip[4] = {239, 1, 2, 3};
    std::copy(ip, ip + 4, group.begin() + 12);
    mac = {0x01, 0x00, 0x5e, 1, 2, 3};
  } else {
    group[0] = 0xff;
    group[1] = own().version == 0 ? 0x0e : 0x1e;
    group[15] = 9;
  }
  Mailbox in(prm::op::ATTACH_TO_MCG, prm::attach_to_mcg_in::bytes);
  in.set<prm::attach_to_mcg_in::qpn>(u.b.qpn());
  std::copy(group.begin(), group.end(), in.begin() + prm::attach_to_mcg_in::multicast_gid::bit_off / 8);
  ASSERT_TRUE(dev().exec(in).ok());
  p.fill(6);
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w = datagram(p, 0xffffff, 128);
  w.av.roce.dgid = group;
  w.av.roce.dmac = mac;
  expect_good(p.acq, u.a.post(w));
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.byte_cnt, 168u);
  EXPECT_TRUE(p.same(40, 128));
  EXPECT_EQ(std::memcmp(p.bmem.data() + (own().ipv4 ? 36 : 24), group.data() + (own().ipv4 ? 12 : 0),
                        own().ipv4 ? 4 : 16),
            0);
  Mailbox out(prm::op::DETACH_FROM_MCG, prm::attach_to_mcg_in::bytes);
  std::copy(in.begin() + 8, in.end(), out.begin() + 8);
  EXPECT_CMD_OK(dev().exec(out));
  u.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, u.a.post(w));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.bcq.ready());
}

TEST_P(RoceKinds, TheManagementQpTakesPacketsForQpn1) {
  Pair p(dev());
  QpOptions o;
  o.type = QpType::kQp1;
  Qp gsi(dev(), p.pd, p.bcq, p.bcq, o), sender(dev(), p.pd, p.acq, p.acq, Datagrams::options());
  QpAttr attr;
  attr.qkey = 0x80010000;
  gsi.connect(attr);
  sender.connect(attr);
  p.fill(5);
  gsi.post_recv({p.bsge(0, 4096)});
  SendWr w = datagram(p, 1, 256);
  w.av.qkey = 0x80010000;
  expect_good(p.acq, sender.post(w));
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.qpn, gsi.qpn());
  EXPECT_EQ(d.imm & 0xffff, 0xffffu) << "the P_Key, which the driver looks up";
  EXPECT_TRUE(p.same(40, 256));
}

std::string kind_name(const ::testing::TestParamInfo<unsigned>& i) {
  const char* const names[] = {"V2Ipv4", "V2Ipv6", "V1", "V2Vlan"};
  return names[i.param];
}
INSTANTIATE_TEST_SUITE_P(All, RoceKinds, ::testing::Range(0u, unsigned{kRoceEntries}), kind_name);

TEST_F(Roce, FreePathsNeedAnAddressOfTheTable) {
  breaks({"qp-path"});
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  QpAttr attr;
  attr.remote_qpn = p.b.qpn();
  EXPECT_CMD_OK(p.a.to_init(attr));
  attr.roce.sgid_index = 200;
  attr.roce.dgid[15] = 1;
  EXPECT_THROW(p.a.to_rtr(attr), std::out_of_range) << "no such entry was set by this driver";
  ASSERT_TRUE(dev().set_roce_address(9, RoceEntry{}).ok());
  attr.roce.sgid_index = 9;
  EXPECT_CMD_STATUS(p.a.to_rtr(attr), CmdStatus::kIx);
  attr.roce = {};
  EXPECT_CMD_OK(p.a.to_rtr(attr));
}

// Its cable leads back to itself: each packet is seen as it goes out and as it comes in.
// The RDMA tables: packets of QPs, both ways, at each of which they may be counted, dropped and changed.
TEST_F(Roce, RdmaTables) {
  struct Table {
    Table(Device& d, unsigned type, unsigned criteria, const MatchParam& mask)
        : table(make_flow_table(d, 2, 0, type)),
          group(make_flow_group(d, table.number(), 0, 3, criteria, mask, type)),
          counter(make_flow_counter(d)) {
      set_flow_root(d, table.number(), type).must();
      rule.table = table.number(), rule.group = group.number(), rule.type = type;
      rule.counter = counter.number();
    }
    EthObject table, group, counter;
    FlowRule rule;
  };
  using Misc = prm::fte_match_set_misc;
  constexpr std::size_t kMisc = prm::fte_match_param::misc_parameters::bit_off / 8;
  constexpr unsigned kUdSend = 0x64, kModify = 0x40;
  MatchParam mask{}, value{}, other{};
  prm::set<Misc::bth_opcode>(mask.data() + kMisc, 0xff);
  prm::set<Misc::bth_opcode>(value.data() + kMisc, kUdSend);
  prm::set<Misc::bth_opcode>(other.data() + kMisc, kUdSend ^ 1);
  Pair p(dev());
  Datagrams u(dev(), p);
  p.fill(2);
  const auto arrives = [&] {
    u.b.post_recv({p.bsge(0, 4096)});
    expect_good(p.acq, u.a.post(datagram(p, u.b.qpn(), 300)));
    return p.bcq.wait(1, 1'000'000).size() == 1;
  };
  for (const unsigned type : {kRdmaTxTable, kRdmaRxTable}) {
    Table t(dev(), type, 2, mask);
    EXPECT_TRUE(arrives()) << "no entry: it goes on";
    const auto packets = [&] { return query_flow_counter(dev(), t.counter.number()).packets; };
    const auto with = [&](const MatchParam& v, bool allow) {
      FlowRule r = t.rule;
      r.value = v, r.allow = allow;
      return make_flow(dev(), r);
    };
    {
      auto rule = with(other, false);
      EXPECT_TRUE(arrives());
      EXPECT_EQ(packets(), 0u);
    }
    {
      auto rule = with(value, true);
      EXPECT_TRUE(arrives());
      EXPECT_EQ(packets(), 1u);
    }
    {
      auto rule = with(value, false);
      EXPECT_FALSE(arrives());
      EXPECT_EQ(packets(), 2u);
    }
    // Another DSCP: the IP checksum and the ICRC are right all the same, and the receiver is told of it.
    auto modify =
        make_modify_header(dev(), {set_field(prm::k::ACTION_IN_FIELD_OUT_IP_DSCP, 0x15, 0, 6)}, type);
    FlowRule r = t.rule;
    r.value = value, r.allow = true, r.action = kModify, r.modify = modify.number();
    auto rule = make_flow(dev(), r);
    EXPECT_TRUE(arrives());
    EXPECT_EQ(p.bmem.data()[21] >> 2, 0x15) << "the IPv4 header behind 20 bytes";
  }
}

TEST_F(Roce, TheSnifferSeesRoceAndFramesBothWays) {
  EthLink link(dev());
  link.steer_to(0);
  struct Sniffer {
    static FlowRule rule_for(const EthObject& table, const EthObject& group, unsigned type,
                             std::uint32_t tirn, std::uint32_t tag) {
      FlowRule r;
      r.table = table.number(), r.group = group.number();
      r.type = type;
      r.to = {{FlowDest::kTir, tirn}};
      r.tag = tag;
      return r;
    }
    Sniffer(Device& d, unsigned type, std::uint32_t tirn, std::uint32_t tag)
        : table(make_flow_table(d, 0, 0, type)),
          group(make_flow_group(d, table.number(), 0, 0, 0, {}, type)),
          rule(make_flow(d, rule_for(table, group, type, tirn, tag))) {
      set_flow_root(d, table.number(), type).must();
    }
    EthObject table, group, rule;
  };
  auto out = std::make_unique<Sniffer>(dev(), kSnifferTxTable, link.tir.number(), 1);
  auto in = std::make_unique<Sniffer>(dev(), kSnifferRxTable, link.tir.number(), 2);
  const auto post = [&] {
    for (unsigned i = 0; i < 8; ++i) link.rq.post({link.rx_sge(i * 4096, 4096)});
  };
  post();
  Pair p(dev());
  Datagrams u(dev(), p);
  p.fill(2);
  u.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, u.a.post(datagram(p, u.b.qpn(), 300)));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 340u);
  constexpr std::size_t kHeaders = 14 + 20 + 8 + 12 + 8, kFrame = kHeaders + 300 + 4;
  for (unsigned i = 0; i < 2; ++i) {
    const Completion c = link.rcq.wait_one();
    EXPECT_EQ(c.byte_cnt, kFrame);
    EXPECT_EQ(c.raw.qpn(), i + 1) << "the rule's tag";
    const Frame f = link.received(c.wqe_counter * 4096u, kFrame);
    EXPECT_EQ(plain_sum(f, 14, 34), 0xffffu);
    EXPECT_EQ(f[36] << 8 | f[37], 4791);
    EXPECT_EQ(std::memcmp(f.data() + kHeaders, p.bmem.data() + 40, 300), 0);
    EXPECT_EQ(f, link.received(0, kFrame)) << "out and in";
  }
  const Frame plain = plain_frame(200);
  expect_good(link.scq, link.send(plain));
  for (unsigned i = 0; i < 2; ++i) {
    const Completion c = link.rcq.wait_one();
    EXPECT_EQ(c.byte_cnt, 200u);
    EXPECT_EQ(link.received(c.wqe_counter * 4096u, 200), plain);
  }

  // A sniffer that does not keep up costs nobody else a packet.
  const auto lost = count("rx_dropped");
  for (unsigned i = 0; i < 8; ++i) {
    u.b.post_recv({p.bsge(0, 4096)});
    expect_good(p.acq, u.a.post(datagram(p, u.b.qpn(), 300)));
    EXPECT_EQ(p.bcq.wait_one().byte_cnt, 340u);
  }
  EXPECT_EQ(link.rcq.wait(4).size(), 4u);
  EXPECT_EQ(count("rx_dropped"), lost);

  // Without a table of one direction, the other's alone.
  out.reset();
  post();
  u.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, u.a.post(datagram(p, u.b.qpn(), 300)));
  EXPECT_EQ(link.rcq.wait_one().raw.qpn(), 2u);
  in.reset();
  u.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, u.a.post(datagram(p, u.b.qpn(), 300)));
  p.bcq.wait(2);
  machine().advance(1'000'000);
  EXPECT_FALSE(link.rcq.ready());
}

// As drivers do when a bond fails over: the address moves to another entry while QPs have their path by the
// first one.
TEST_F(Roce, AQpKeepsItsSourceWhenTheAddressMoves) {
  Pair p(dev(), impatient());
  p.fill(1);
  const RoceEntry entry = dev().roce_entry(kRoceV2Ipv4);
  ASSERT_TRUE(dev().set_roce_address(kRoceV2Ipv4, RoceEntry{}).ok());
  ASSERT_TRUE(dev().set_roce_address(9, entry).ok());
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 100)));
  // Nobody takes packets to an address that is nowhere.
  ASSERT_TRUE(dev().set_roce_address(9, RoceEntry{}).ok());
  expect_lost(p);
  ASSERT_TRUE(dev().set_roce_address(kRoceV2Ipv4, entry).ok());
  expect_serves_on();
}

TEST_F(Roce, NothingIsTakenWhileRoceIsOff) {
  Pair p(dev(), impatient());
  ASSERT_TRUE(dev().enable_roce(false).ok());
  expect_lost(p);
  ASSERT_TRUE(dev().enable_roce(true).ok());
  expect_serves_on();
}

// A QP that talks to itself inside the HCA needs no address, no RoCE, and is nobody's business outside.
// A frame of which the transmit side's tables make two: the sniffer's tables are asked between them.
TEST_F(Roce, TheSnifferSeesEachCopyOfAFrame) {
  EthLink link(dev());
  link.steer_to(0);
  const auto table = [&](unsigned level, unsigned type) { return make_flow_table(dev(), 0, level, type); };
  const auto all = [&](const EthObject& of, unsigned type) {
    return make_flow_group(dev(), of.number(), 0, 0, 0, {}, type);
  };
  const auto rule = [&](const EthObject& of, const EthObject& group, unsigned type,
                        std::vector<FlowDest> to) {
    FlowRule r;
    r.table = of.number(), r.group = group.number(), r.type = type, r.to = std::move(to);
    return make_flow(dev(), r);
  };
  {
    const EthObject sniffer = table(0, kSnifferTxTable), sniffed = all(sniffer, kSnifferTxTable);
    const EthObject to_queue = rule(sniffer, sniffed, kSnifferTxTable, {{FlowDest::kTir, link.tir.number()}});
    set_flow_root(dev(), sniffer.number(), kSnifferTxTable).must();
    const EthObject one = table(1, kNicTxTable), other = table(1, kNicTxTable);  // all pass them
    const EthObject root = table(0, kNicTxTable), any = all(root, kNicTxTable);
    const EthObject both =
        rule(root, any, kNicTxTable, {{FlowDest::kTable, one.number()}, {FlowDest::kTable, other.number()}});
    set_flow_root(dev(), root.number(), kNicTxTable).must();
    const Frame plain = plain_frame(200);
    for (unsigned round = 0; round < 3; ++round) {
      for (unsigned i = 0; i < 2; ++i) link.rq.post({link.rx_sge(i * 4096, 4096)});
      expect_good(link.scq, link.send(plain));
      for (unsigned i = 0; i < 2; ++i) {
        const Completion c = link.rcq.wait_one();
        EXPECT_EQ(c.byte_cnt, 200u);
        EXPECT_EQ(link.received(c.wqe_counter % 2 * 4096u, 200), plain);
      }
      EXPECT_FALSE(link.rcq.poll());
    }
  }
}

TEST_F(Roce, AForcedLoopStaysInside) {
  breaks({"rkey-bounds"});
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  dev().enable_roce(false).must();
  QpAttr attr;
  attr.roce.force_loopback = true;
  attr.remote_qpn = p.a.qpn();
  attr.mtu = 1024;
  p.a.connect(attr);
  p.fill(3);
  const std::uint64_t sent = count("tx_packets");
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 5000)));
  EXPECT_TRUE(p.same(0, 5000));
  p.fill(4);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaRead, 64, 3000)));
  EXPECT_TRUE(p.same(64, 3000));
  EXPECT_EQ(count("tx_packets"), sent);
  // Its rights are checked as everybody's.
  SendWr bad = p.wr(WqeOp::kRdmaWrite, 0, 100);
  bad.raddr = p.bmr.start() + p.bmr.len();
  p.a.post(bad);
  EXPECT_TRUE(p.acq.wait_one().error());  // refused as the responder, the QP flushes what it asked for itself
  dev().enable_roce(true).must();
}

TEST_F(Roce, ForeignAddressesAreNotOurs) {
  for (const bool mac : {false, true}) {
    PairOptions o = impatient();
    if (mac) {
      o.attr.roce.dmac = dev().mac();
      o.attr.roce.dmac[5] ^= 0x55;
    } else {
      o.attr.roce.dgid = dev().roce_entry(kRoceV2Ipv4).gid;
      o.attr.roce.dgid[15] ^= 0x55;
    }
    Pair p(dev(), o);
    const auto dropped = count("rx_dropped");
    expect_lost(p);
    EXPECT_GT(count("rx_dropped"), dropped) << (mac ? "MAC" : "GID");
  }
}

TEST_F(Roce, DamageIsFoundByTheIcrc) {
  PairOptions o = impatient();
  o.attr.retry_count = 7;
  Pair p(dev(), o);
  ASSERT_EQ(fn().inject("corrupt=0.2"), "");
  p.fill(3);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 60000)));
  EXPECT_TRUE(p.same(0, 60000));
  EXPECT_GT(count("rx_errors"), 0u);
}

}  // namespace
}  // namespace hcasim::bare
