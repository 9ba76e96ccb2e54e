// SPDX-License-Identifier: BSD-3-Clause
// Frames over an Ethernet port whose cable leads back to itself: from an SQ through flow tables and TIRs into
// RQs.
#include "eth_fixture.h"

#include <map>

namespace hcasim::bare {
namespace {

using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EthSeg;

TEST_F(EthTest, AFrameGoesRoundUnchanged) {
  EthLink link(dev());
  for (const std::size_t len : {60u, 61u, 300u, 1514u}) {
    const Frame sent = plain_frame(len);
    const auto rx = link.rq.post({link.rx_sge(0, 2048)});
    const auto n = link.send(sent);
    expect_good(link.scq, n);
    const Completion c = link.rcq.wait_one();
    EXPECT_EQ(static_cast<int>(c.op), static_cast<int>(CqeOp::kRespSend));
    EXPECT_EQ(c.wqe_counter, rx);
    EXPECT_EQ(c.byte_cnt, len);
    EXPECT_EQ(link.received(0, len), sent);
  }
}

TEST_F(EthTest, ShortFramesArePadded) {
  EthLink link(dev());
  link.rq.post({link.rx_sge(0, 2048)});
  link.send(plain_frame(20));
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 60u);
  Frame want = plain_frame(20);
  want.resize(60);
  EXPECT_EQ(link.received(0, 60), want);
}

TEST_F(EthTest, InlineHeadersScatteredSourceAndTarget) {
  RqOptions o;
  o.log_stride = 6;
  EthLink link(dev(), o);
  const Frame sent = plain_frame(1000);
  link.put(0, sent);
  link.rq.post({link.rx_sge(0, 100), link.rx_sge(1000, 500), link.rx_sge(3000, 1000)});
  EthWr wr;
  wr.headers.assign(sent.begin(), sent.begin() + 54);
  wr.sges = {link.tx_sge(54, 1), link.tx_sge(55, 45), link.tx_sge(100, 900)};
  link.sq.post(wr);
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 1000u);
  Frame got = link.received(0, 100);
  const Frame second = link.received(1000, 500), third = link.received(3000, 400);
  got.insert(got.end(), second.begin(), second.end());
  got.insert(got.end(), third.begin(), third.end());
  EXPECT_EQ(got, sent);
}

TEST_F(EthTest, InlineDataAndUnsignaled) {
  EthLink link(dev());
  const Frame sent = plain_frame(120);
  link.rq.post({link.rx_sge(0, 2048)});
  link.rq.post({link.rx_sge(2048, 2048)});
  EthWr wr;
  wr.inline_data = sent;
  wr.signaled = false;
  link.sq.post(wr, false);
  wr.signaled = true;
  const auto n = link.sq.post(wr);
  expect_good(link.scq, n);  // the only one
  EXPECT_EQ(link.rcq.wait(2).size(), 2u);
  EXPECT_FALSE(link.scq.ready());
  EXPECT_EQ(link.received(0, 120), sent);
  EXPECT_EQ(link.received(2048, 120), sent);
}

TEST_F(EthTest, ChecksumsAreMadeAndChecked) {
  EthLink link(dev());
  struct Case {
    bool v6, udp;
  };
  for (const Case c : {Case{false, false}, Case{false, true}, Case{true, false}, Case{true, true}}) {
    const Frame sent = l4_frame({c.v6, c.udp, 333});
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(sent, EthSeg::kL3Csum | EthSeg::kL4Csum);
    const Completion good = link.rcq.wait_one();
    const Frame got = link.received(0, sent.size());
    EXPECT_TRUE(l4_sum_right(got));
    if (!c.v6) {
      EXPECT_EQ(plain_sum(got, 14, 34), 0xffffu);
    }
    EXPECT_EQ(good.raw.hds_ip_ext, prm::Cqe::kL2Ok | prm::Cqe::kL3Ok | prm::Cqe::kL4Ok);
    EXPECT_EQ(good.raw.check_sum, plain_sum(got, 14, got.size()));
    EXPECT_EQ(good.raw.l4_l3_hdr_type >> 2 & 3, c.v6 ? 1 : 2);
    EXPECT_EQ(good.raw.l4_l3_hdr_type >> 4 & 7, c.udp ? 2 : 4);

    // Not asked for, they stay wrong, and that is seen.
    Frame broken = got;
    broken.back() ^= 0xff;
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(broken);
    const Completion bad = link.rcq.wait_one();
    EXPECT_EQ(bad.raw.hds_ip_ext & prm::Cqe::kL4Ok, 0);
    EXPECT_EQ(bad.raw.check_sum, plain_sum(link.received(0, sent.size()), 14, sent.size()));
  }
}

TEST_F(EthTest, VlanTagIsInsertedAndStripped) {
  for (const bool keep : {true, false}) {
    RqOptions o;
    o.keep_vlan = keep;
    EthLink link(dev(), o);
    const Frame sent = l4_frame({false, false, 200});
    link.put(0, sent);
    link.rq.post({link.rx_sge(0, 2048)});
    EthWr wr;
    wr.vlan = 0x6123;
    wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
    wr.sges = {link.tx_sge(0, static_cast<std::uint32_t>(sent.size()))};
    link.sq.post(wr);
    const Completion c = link.rcq.wait_one();
    const std::size_t len = sent.size() + (keep ? 4 : 0);
    ASSERT_EQ(c.byte_cnt, len);
    const Frame got = link.received(0, len);
    EXPECT_EQ(c.raw.check_sum, plain_sum(got, 14, len));
    EXPECT_EQ(c.raw.hds_ip_ext, 7);
    if (keep) {
      EXPECT_EQ(got[12] << 8 | got[13], 0x8100);
      EXPECT_EQ(got[14] << 8 | got[15], 0x6123);
      EXPECT_EQ(c.raw.l4_l3_hdr_type & 1, 0);
    } else {
      EXPECT_EQ(got[12] << 8 | got[13], 0x0800);
      EXPECT_EQ(c.raw.vlan_info, 0x6123);
      EXPECT_EQ(c.raw.l4_l3_hdr_type & 1, 1);
    }
  }
}

TEST_F(EthTest, FcsBehindTheFrame) {
  RqOptions o;
  o.scatter_fcs = true;
  EthLink link(dev(), o);
  for (const std::size_t len : {100u, 101u}) {
    const Frame sent = plain_frame(len);
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(sent);
    const Completion c = link.rcq.wait_one();
    ASSERT_EQ(c.byte_cnt, len + 4);
    const Frame got = link.received(0, len + 4);
    // A frame with its FCS leaves this residue in the CRC register, whatever it holds (IEEE 802.3 3.2.9).
    std::uint32_t crc = 0xffffffff;
    for (const std::uint8_t byte : got) {
      crc ^= byte;
      for (unsigned bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    EXPECT_EQ(crc, 0xdebb20e3);
    EXPECT_EQ(c.raw.check_sum, plain_sum(got, 14, len + 4));
  }
}

TEST_F(EthTest, LargeSendIsCutIntoSegments) {
  for (const bool v6 : {false, true}) {
    EthLink link(dev());
    constexpr unsigned kMss = 700, kPayload = 5000;
    const Frame whole = l4_frame({v6, false, kPayload, 0x8000 | 0x19});  // CWR lies elsewhere: FIN, PSH, ACK
    const std::size_t headers = whole.size() - kPayload;
    link.put(0, whole);
    const unsigned count = (kPayload + kMss - 1) / kMss;
    for (unsigned i = 0; i < count; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)});
    EthWr wr;
    wr.op = WqeOp::kLso;
    wr.headers.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(headers));
    wr.mss = kMss;
    wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
    const auto at = static_cast<std::uint32_t>(headers);
    wr.sges = {link.tx_sge(at, 1300), link.tx_sge(at + 1300, 1), link.tx_sge(at + 1301, kPayload - 1301)};
    const auto n = link.sq.post(wr);
    expect_good(link.scq, n);
    const auto done = link.rcq.wait(count);
    ASSERT_EQ(done.size(), count);
    Frame payload;
    const std::size_t l4 = v6 ? 54 : 34;
    for (unsigned i = 0; i < count; ++i) {
      const Frame f = link.received(i * 2048, done[i].byte_cnt);
      EXPECT_TRUE(l4_sum_right(f)) << i;
      EXPECT_EQ(done[i].raw.hds_ip_ext, 7);
      EXPECT_EQ(prm::load32(f.data() + l4 + 4), prm::load32(whole.data() + l4 + 4) + i * kMss);
      EXPECT_EQ(f[l4 + 13] & 0x09, i + 1 == count ? 0x09 : 0);
      payload.insert(payload.end(), f.begin() + static_cast<std::ptrdiff_t>(headers), f.end());
    }
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(),
                           whole.begin() + static_cast<std::ptrdiff_t>(headers), whole.end()));
  }
}

TEST_F(EthTest, SeveralFramesInOneWqe) {
  EthLink link(dev());
  constexpr unsigned kCount = 20;
  EthWr wr;
  wr.op = WqeOp::kEnhancedMpsw;
  for (unsigned i = 0; i < kCount; ++i) {
    link.put(i * 256, plain_frame(60 + i, i));
    link.rq.post({link.rx_sge(i * 2048, 2048)});
    wr.sges.push_back(link.tx_sge(i * 256, 60 + i));
  }
  const auto n = link.sq.post(wr);
  expect_good(link.scq, n);
  const auto done = link.rcq.wait(kCount);
  ASSERT_EQ(done.size(), kCount);
  for (unsigned i = 0; i < kCount; ++i) {
    EXPECT_EQ(done[i].byte_cnt, 60 + i);
    EXPECT_EQ(link.received(i * 2048, 60 + i), plain_frame(60 + i, i));
  }
}

// The older form of it: a large send with a modifier, its frames of one length, in memory.
TEST_F(EthTest, FramesOfOneLengthInOneWqe) {
  breaks({"wqe-segment"});
  EthLink link(dev());
  constexpr unsigned kCount = 5;
  EthWr wr;
  wr.op = WqeOp::kLso;
  wr.opmod = prm::kLsoManyFrames;
  wr.mss = 300;
  for (unsigned i = 0; i < kCount; ++i) {
    link.put(i * 512, plain_frame(300, i));
    link.rq.post({link.rx_sge(i * 2048, 2048)});
    wr.sges.push_back(link.tx_sge(i * 512, 300));
  }
  expect_good(link.scq, link.sq.post(wr));
  ASSERT_EQ(link.rcq.wait(kCount).size(), kCount);
  for (unsigned i = 0; i < kCount; ++i) EXPECT_EQ(link.received(i * 2048, 300), plain_frame(300, i));
  wr.sges.back().len = 299;
  link.sq.post(wr);
  EXPECT_EQ(link.scq.wait_one().syndrome, prm::CqeSyndrome::kLocalQpOp);
}

TEST_F(EthTest, NopsAndTheRingsEnd) {
  EthLink link(dev());
  const Frame sent = plain_frame(64);
  for (unsigned i = 0; i < 300; ++i) {  // the SQ has 128, the RQ 64
    link.rq.post({link.rx_sge(0, 2048)});
    EthWr nop;
    nop.op = WqeOp::kNop;
    nop.signaled = i % 7 == 0;
    const auto first = link.sq.post(nop, false);
    const auto n = link.send(sent);
    if (nop.signaled) expect_good(link.scq, first);
    expect_good(link.scq, n);
    ASSERT_EQ(link.rcq.wait_one().byte_cnt, 64u);
  }
}

TEST_F(EthTest, RssSpreadsAndReportsItsHash) {
  EthLink link(dev());
  constexpr unsigned kQueues = 4, kFlows = 64;
  Cq cq(dev());
  std::vector<std::unique_ptr<EthRq>> rqs;
  std::vector<std::uint32_t> numbers;
  for (unsigned i = 0; i < kQueues; ++i) {
    RqOptions o;
    o.log_size = 7;
    o.user_index = 100 + i;
    rqs.push_back(std::make_unique<EthRq>(dev(), link.pd, cq, o));
    numbers.push_back(rqs.back()->rqn());
    for (unsigned j = 0; j < kFlows; ++j) rqs.back()->post({link.rx_sge(0, 2048)});
  }
  const EthObject rqt = make_rqt(dev(), numbers), alone = make_rqt(dev(), {numbers[1]});
  TirSpec spec;
  spec.rqt = rqt.number();
  spec.transport_domain = link.td.number();
  for (std::size_t i = 0; i < spec.key.size(); ++i) spec.key[i] = static_cast<std::uint8_t>(i * 37 + 11);
  const EthObject tir = make_tir(dev(), spec);
  link.steer_to(tir.number());
  std::map<std::uint32_t, unsigned> by_queue;
  std::map<unsigned, std::uint32_t> hash_of_flow;
  for (unsigned round = 0; round < 2; ++round) {
    for (unsigned flow = 0; flow < kFlows / 2; ++flow) {
      L4 l4{false, false, 50};
      l4.sport = static_cast<std::uint16_t>(1000 + flow);
      link.send(l4_frame(l4));
      const Completion c = cq.wait_one();
      EXPECT_EQ(c.raw.rss_hash_type, 0x55);
      const std::uint32_t hash = c.raw.rss_hash_result;
      EXPECT_EQ(c.user_index, 100 + hash % kQueues);
      if (round == 0)
        hash_of_flow[flow] = hash;
      else
        EXPECT_EQ(hash_of_flow[flow], hash);
      ++by_queue[c.user_index];
    }
  }
  EXPECT_EQ(by_queue.size(), kQueues);
  // All to one queue, by another table of the same TIR.
  using Modify = prm::modify_tir_in;
  Mailbox other(prm::op::MODIFY_TIR, Modify::bytes);
  other.set<Modify::tirn>(tir.number()).set<Modify::ctx::indirect_table>(alone.number());
  prm::store64(prm::ptr<Modify::bitmask>(other.data()), 1 << 1);
  EXPECT_CMD_OK(dev().exec(other));
  for (unsigned flow = 0; flow < 8; ++flow) {
    L4 l4{false, false, 50};
    l4.sport = static_cast<std::uint16_t>(1000 + flow);
    link.send(l4_frame(l4));
    EXPECT_EQ(cq.wait_one().user_index, 101u);
  }
  link.steer_to(link.tir.number());
}

TEST_F(EthTest, FlowRulesTagDropAndCopy) {
  EthLink link(dev());
  RqOptions o;
  Cq cq2(dev());
  EthRq second(dev(), link.pd, cq2, o);
  TirSpec spec;
  spec.rqn = second.rqn();
  spec.transport_domain = link.td.number();
  const EthObject tir2 = make_tir(dev(), spec);
  link.steer_to(0);  // only what the rules below say

  using Outer = prm::fte_match_param::outer_headers;
  MatchParam mask{};
  prm::set<Outer::dmac_15_0>(mask.data(), 0xffff);
  const EthObject group = make_flow_group(dev(), link.table.number(), 0, 7, 1, mask);
  const auto rule = [&](std::uint32_t index, std::uint16_t dmac, std::vector<FlowDest> to,
                        std::uint32_t tag) {
    FlowRule r;
    r.table = link.table.number();
    r.group = group.number();
    r.index = index;
    prm::set<Outer::dmac_15_0>(r.value.data(), dmac);
    r.to = std::move(to);
    r.tag = tag;
    return make_flow(dev(), r);
  };
  const EthObject a = rule(0, 1, {{FlowDest::kTir, link.tir.number()}}, 0x123456);
  const EthObject b = rule(1, 2, {}, 0);
  const EthObject c = rule(2, 3, {{FlowDest::kTir, link.tir.number()}, {FlowDest::kTir, tir2.number()}}, 7);
  for (unsigned i = 0; i < 4; ++i) {
    link.rq.post({link.rx_sge(i * 2048, 2048)});
    second.post({link.rx_sge((8 + i) * 2048, 2048)});
  }
  const auto to = [](std::uint8_t last) {
    Frame f = plain_frame(100);
    f[4] = 0;
    f[5] = last;
    return f;
  };
  link.send(to(2));
  link.send(to(9));  // no rule
  link.send(to(1));
  EXPECT_EQ(link.rcq.wait_one().raw.sop_drop_qpn & 0xffffff, 0x123456u);
  link.send(to(3));
  EXPECT_EQ(link.rcq.wait_one().raw.sop_drop_qpn & 0xffffff, 7u);
  EXPECT_EQ(cq2.wait_one().byte_cnt, 100u);
  EXPECT_EQ(link.received(8 * 2048, 100), to(3));
  machine().advance(1'000'000);
  EXPECT_FALSE(link.rcq.ready());
  EXPECT_FALSE(cq2.ready());
}

TEST_F(EthTest, WithoutReceiveWqesFramesAreDroppedAndCounted) {
  EthLink link(dev());
  for (unsigned i = 0; i < 3; ++i) expect_good(link.scq, link.send(plain_frame(80)));
  machine().advance(1'000'000);
  EXPECT_FALSE(link.rcq.ready());
  link.rq.post({link.rx_sge(0, 2048)});
  link.send(plain_frame(90));
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 90u);
}

TEST_F(EthTest, FramesAboveTheMtuAreDropped) {
  EthLink link(dev());
  EXPECT_CMD_OK(dev().set_port_mtu(1522));
  link.rq.post({link.rx_sge(0, 4096)});
  expect_good(link.scq, link.send(plain_frame(1519)));
  expect_good(link.scq, link.send(plain_frame(1518)));
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 1518u);
  EXPECT_CMD_OK(dev().set_port_mtu(9022));
  link.rq.post({link.rx_sge(0, 10000)});
  link.send(plain_frame(9018));
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 9018u);
  EXPECT_EQ(link.received(0, 9018), plain_frame(9018));
}

// A lone frame costs few turns of the model's blocks, many at once share theirs.
TEST_F(EthTest, Turns) {
  RqOptions o;
  o.log_size = 7;
  EthLink link(dev(), o);
  const auto cost = [&](unsigned frames) {
    for (unsigned i = 0; i < frames; ++i) link.rq.post({link.rx_sge(0, 2048)});
    const Frame frame = plain_frame(1000);
    link.put(0, frame);
    EthWr wr;
    wr.sges = {link.tx_sge(0, 1000)};
    const std::uint64_t before = hca_sim_turns();
    for (unsigned i = 0; i < frames; ++i) {
      wr.signaled = i + 1 == frames;
      link.sq.post(wr, i + 1 == frames);
    }
    EXPECT_EQ(link.rcq.wait(frames).size(), frames);
    EXPECT_FALSE(link.scq.wait_one().error());
    return static_cast<double>(hca_sim_turns() - before) / frames;
  };
  cost(1);
  const double lone = cost(1), batch = cost(64);
  EXPECT_LE(lone, 4);  // the SQ's turn, arrival, and the writes of either side
  EXPECT_LE(batch, 0.6 * lone);
}

// ---- Striding receive queues ----

struct StridingCase {
  unsigned type;
  bool shift;
};
class EthStriding : public EthTest, public ::testing::WithParamInterface<StridingCase> {};

TEST_P(EthStriding, FramesFollowEachOtherInStrides) {
  RqOptions o;
  o.type = GetParam().type;
  o.two_byte_shift = GetParam().shift;
  o.log_stride = 5;
  o.log_size = 2;
  o.log_strides = 9;
  o.log_stride_size = 6;
  constexpr std::uint32_t kWqe = 64 << 9;
  EthLink link(dev(), o);
  for (unsigned i = 0; i < 3; ++i) link.rq.post({link.rx_sge(i * kWqe, kWqe)});
  std::uint32_t stride = 0, wqe = 0, wqes_done = 0;
  std::mt19937 random(GetParam().type * 2 + GetParam().shift);
  for (unsigned i = 0; i < 400; ++i) {
    const std::uint32_t len = 60 + random() % 1400, shift = o.two_byte_shift ? 2 : 0;
    const Frame sent = plain_frame(len, i);
    link.send(sent);
    link.scq.wait_one();
    const std::uint32_t need = (len + shift + 63) / 64;
    if (stride != 512 && stride + need > 512) {
      const Completion filler = link.rcq.wait_one();
      EXPECT_EQ(filler.byte_cnt, 0x80000000u | (512 - stride) << 16);
      EXPECT_EQ(filler.raw.wqe_id, o.type == 2 ? wqe % 4 : wqe);
      stride = 512;
    }
    if (stride == 512) {
      stride = 0;
      ++wqe;
      ++wqes_done;
      // The same memory again.
      link.rq.post({link.rx_sge((wqes_done + 2) % 4 * kWqe, kWqe)});
    }
    const Completion c = link.rcq.wait_one();
    ASSERT_EQ(c.byte_cnt, need << 16 | len) << i;
    ASSERT_EQ(c.wqe_counter, stride);
    ASSERT_EQ(c.raw.wqe_id, o.type == 2 ? wqe % 4 : wqe);
    ASSERT_EQ(link.received(wqe % 4 * kWqe + stride * 64 + shift, len), sent);
    stride += need;
  }
  EXPECT_GT(wqes_done, 3u);
}
INSTANTIATE_TEST_SUITE_P(Types, EthStriding,
                         ::testing::Values(StridingCase{2, false}, StridingCase{2, true},
                                           StridingCase{3, false}),
                         [](const auto& info) {
                           return std::string(info.param.type == 2 ? "LinkedList" : "Cyclic") +
                                  (info.param.shift ? "Shifted" : "");
                         });

// ---- Errors ----

TEST_F(EthTest, AnSqInErrorFlushesAndComesBack) {
  breaks({"mr-key"});
  EthLink link(dev());
  link.rq.post({link.rx_sge(0, 2048)});
  EthWr bad;
  bad.sges = {{link.tx_sge(0, 100).addr, link.tx_sge(0, 100).lkey ^ 1, 100}};
  bad.signaled = false;
  const auto first = link.sq.post(bad, false);
  const auto second = link.send(plain_frame(64));
  const Completion e = link.scq.wait_one();
  expect_error(e, CqeSyndrome::kLocalProt);
  EXPECT_EQ(e.wqe_counter, first);
  const Completion f = link.scq.wait_one();
  expect_error(f, CqeSyndrome::kWrFlush);
  EXPECT_EQ(f.wqe_counter, second);
  EXPECT_EQ(link.sq.state(), 3u);
  EXPECT_CMD_OK(link.sq.modify(3, 0));
  // Linux leaves the doorbell record as it was (mlx5 en/reporter_tx.c): nothing is sent before the next
  // doorbell.
  link.sq.set_dbr(static_cast<std::uint16_t>(second + 1));
  EXPECT_CMD_OK(link.sq.modify(0, 1));
  machine().advance(1'000'000);
  EXPECT_FALSE(link.scq.ready());
  expect_good(link.scq, link.send(plain_frame(64)));
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 64u);
}

TEST_F(EthTest, AnRqInErrorFlushesAllThatIsPosted) {
  for (const unsigned type : {1u, 2u}) {
    RqOptions o;
    o.type = type;
    o.log_stride = type == 1 ? 4 : 5;
    EthLink link(dev(), o);
    for (unsigned i = 0; i < 10; ++i) link.rq.post({link.rx_sge(0, 64 << 9)});
    link.send(plain_frame(64));
    EXPECT_FALSE(link.rcq.wait_one().error());
    EXPECT_CMD_OK(link.rq.modify(1, 3));
    // Of the striding one, the WQE in use is among them.
    const unsigned left = type == 1 ? 9 : 10;
    const auto flushed = link.rcq.wait(left);
    ASSERT_EQ(flushed.size(), left);
    for (unsigned i = 0; i < left; ++i) {
      expect_error(flushed[i], CqeSyndrome::kWrFlush);
      EXPECT_EQ(flushed[i].wqe_counter, type == 1 ? i + 1 : i);
    }
    EXPECT_CMD_OK(link.rq.modify(3, 0));
    EXPECT_CMD_OK(link.rq.modify(0, 1));
    if (type == 1) {
      link.rq.post({link.rx_sge(0, 2048)});
      link.send(plain_frame(64));
      EXPECT_EQ(link.rcq.wait_one().byte_cnt, 64u);
    }
  }
}

TEST_F(EthTest, ReceiveWqesThatDoNotHoldTheFrameOrAreNotAllowed) {
  breaks({"mr-key", "receive-length"});
  for (const bool rights : {false, true}) {
    EthLink link(dev());
    link.rq.post(rights ? std::vector<Sge>{{link.rx_sge(0, 2048).addr, 0xdead00, 2048}}
                        : std::vector<Sge>{link.rx_sge(0, 50)});
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(plain_frame(100));
    expect_error(link.rcq.wait_one(), rights ? CqeSyndrome::kLocalProt : CqeSyndrome::kLocalLength);
    if (rights) {
      expect_error(link.rcq.wait_one(), CqeSyndrome::kWrFlush);
    } else {
      link.send(plain_frame(200));
      const auto next = link.rcq.wait_one();
      EXPECT_FALSE(next.error());
      EXPECT_EQ(next.byte_cnt, 200u);
    }
    EXPECT_EQ(link.rq.state(), rights ? 3u : 1u);
  }
}

TEST_F(EthTest, AnRqWhoseDoorbellRecordJumpsGoesToError) {
  breaks({"rq-record-jump"});
  EthLink link(dev());
  link.rq.set_dbr(1000);
  link.send(plain_frame(100));
  machine().advance(1'000'000);
  EXPECT_EQ(link.rq.state(), 3u);
  EXPECT_EQ(dev().count_async(prm::EqeType::kWqCatas, link.rq.rqn()), 1u);
}

TEST_F(EthTest, MalformedSendWqes) {
  breaks({"wqe-headers", "wqe-length", "wqe-opcode", "wqe-segment", "wqe-size"});
  const auto wqe = [](WqeOp op, unsigned ds, const std::vector<std::uint8_t>& rest) {
    std::vector<std::uint8_t> w(std::max<std::size_t>(16 + rest.size(), 64));
    std::copy(rest.begin(), rest.end(), w.begin() + 16);
    w[3] = static_cast<std::uint8_t>(op);
    w[7] = static_cast<std::uint8_t>(ds);
    w[11] = 8;
    return w;
  };
  std::vector<std::uint8_t> eth(16);
  std::vector<std::uint8_t> long_inline = eth;
  long_inline[12] = 0x03, long_inline[13] = 0xff;  // 1023 bytes of inline headers that are not there
  std::vector<std::uint8_t> cut_inline(32);
  cut_inline[16] = 0x80, cut_inline[19] = 200;
  std::vector<std::uint8_t> lso = eth;  // no MSS, no headers
  std::vector<std::uint8_t> lso_headers(32, 1);
  lso_headers[12] = 0, lso_headers[13] = 18;  // headers that are no TCP
  std::vector<std::uint8_t> empty = eth;
  struct {
    const char* what;
    std::vector<std::uint8_t> bytes;
  } const cases[] = {
      {"no Ethernet segment", wqe(WqeOp::kSend, 1, {})},
      {"inline headers beyond the WQE", wqe(WqeOp::kSend, 2, long_inline)},
      {"inline segment beyond the WQE", wqe(WqeOp::kSend, 3, cut_inline)},
      {"large send without headers", wqe(WqeOp::kLso, 2, lso)},
      {"large send of no TCP", wqe(WqeOp::kLso, 3, lso_headers)},
      {"empty frame", wqe(WqeOp::kSend, 2, empty)},
      {"an RDMA WRITE", wqe(WqeOp::kRdmaWrite, 4, {})},
      {"a DUMP", wqe(WqeOp::kDump, 4, {})},
      {"ds 0", wqe(WqeOp::kSend, 0, {})},
  };
  for (const auto& c : cases) {
    EthLink link(dev());
    std::vector<std::uint8_t> bytes = c.bytes;
    prm::store32(bytes.data() + 4, link.sq.sqn() << 8 | bytes[7]);
    link.sq.post_raw(bytes, 1);
    const auto got = link.scq.wait(1);
    ASSERT_EQ(got.size(), 1u) << c.what;
    EXPECT_TRUE(got[0].error()) << c.what;
    EXPECT_EQ(link.sq.state(), 3u) << c.what;
  }
  expect_frames_go_on();
}

TEST_F(EthTest, RandomSendWqesNeverHurt) {
  breaks({"wqe-headers", "wqe-length", "wqe-segment", "wqe-size", "wqe-umr"});
  std::mt19937 random(99);
  const WqeOp ops[] = {WqeOp::kSend, WqeOp::kLso, WqeOp::kEnhancedMpsw, WqeOp::kUmr};
  for (unsigned round = 0; round < 60; ++round) {
    EthLink link(dev());
    for (unsigned i = 0; i < 60; ++i) link.rq.post({link.rx_sge(0, 2048)});
    std::vector<std::uint8_t> w(64 * (1 + random() % 8));
    for (auto& b : w) b = static_cast<std::uint8_t>(random() % 4 ? 0 : random());
    const unsigned ds = static_cast<unsigned>(random() % (w.size() / 16 + 1));
    prm::store32(w.data(), static_cast<std::uint32_t>(ops[random() % 4]));
    prm::store32(w.data() + 4, link.sq.sqn() << 8 | ds);
    w[11] = 8;
    if (random() % 2) {  // one data segment that is right
      prm::DataSeg seg;
      seg.byte_count = static_cast<std::uint32_t>(random() % 70000);
      seg.lkey = link.tx_sge(0, 1).lkey;
      seg.addr = link.tx_sge(0, 1).addr;
      std::memcpy(w.data() + 48, &seg, sizeof seg);
    }
    link.sq.post_raw(w, static_cast<unsigned>(w.size() / 64));
    machine().advance(3'000'000);
  }
  expect_frames_go_on();
}

}  // namespace
}  // namespace hcasim::bare
