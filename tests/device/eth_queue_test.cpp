// SPDX-License-Identifier: BSD-3-Clause
// Queues of frames as DPDK's driver and Linux' use them, each in a way of its own: frames in pieces of which
// some lie in the WQE, what has a CQE when a queue fails, what a CQE says of fragments and tunnels.
#include "eth_fixture.h"
#include "prm/crypto.h"

namespace hcasim::bare {
namespace {

using prm::CqeSyndrome;
using prm::EthSeg;

class EthQueue : public EthTest {
 protected:
  static Frame part(const Frame& f, std::size_t from, std::size_t len) {
    return {f.begin() + static_cast<std::ptrdiff_t>(from),
            f.begin() + static_cast<std::ptrdiff_t>(from + len)};
  }
};

TEST_F(EthQueue, PiecesOfAFrameMayLieInTheWqe) {
  EthLink link(dev());
  const Frame sent = plain_frame(200);
  link.put(0, sent);
  struct {
    std::size_t headers, front;
    std::vector<EthWr::Piece> pieces;
    std::vector<Sge> sges;
  } const cases[] = {
      {0, 0, {{1, part(sent, 60, 8)}}, {link.tx_sge(0, 60), link.tx_sge(68, 132)}},
      {18, 0, {{1, part(sent, 60, 8)}, {2, part(sent, 199, 1)}}, {link.tx_sge(18, 42), link.tx_sge(68, 131)}},
      {18,
       22,
       {{1, part(sent, 60, 8)}, {1, part(sent, 68, 12)}},
       {link.tx_sge(40, 20), link.tx_sge(80, 120)}},
  };
  for (const auto& c : cases) {
    link.rq.post({link.rx_sge(0, 2048)});
    EthWr wr;
    wr.headers = part(sent, 0, c.headers);
    wr.inline_data = part(sent, c.headers, c.front);
    wr.pieces = c.pieces;
    wr.sges = c.sges;
    expect_good(link.scq, link.sq.post(wr));
    ASSERT_EQ(link.rcq.wait_one().byte_cnt, 200u);
    EXPECT_EQ(link.received(0, 200), sent);
  }
}

// Its payload may begin, go on and end in the WQE; each segment is made of what it falls on.
TEST_F(EthQueue, PiecesOfALargeSendMayLieInTheWqe) {
  EthLink link(dev());
  constexpr unsigned kMss = 500, kPayload = 1800;
  const Frame whole = l4_frame({false, false, kPayload, 0x18});
  const std::size_t headers = whole.size() - kPayload;
  link.put(0, whole);
  for (unsigned i = 0; i < 4; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)});
  const auto at = [&](std::size_t from) { return headers + from; };
  EthWr wr;
  wr.op = WqeOp::kLso;
  wr.headers = part(whole, 0, headers);
  wr.mss = kMss;
  wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
  wr.pieces = {{0, part(whole, at(0), 10)}, {1, part(whole, at(495), 12)}, {2, part(whole, at(1799), 1)}};
  wr.sges = {link.tx_sge(static_cast<std::uint32_t>(at(10)), 485),
             link.tx_sge(static_cast<std::uint32_t>(at(507)), 1292)};
  expect_good(link.scq, link.sq.post(wr));
  const auto done = link.rcq.wait(4);
  ASSERT_EQ(done.size(), 4u);
  Frame payload;
  for (unsigned i = 0; i < 4; ++i) {
    const Frame f = link.received(i * 2048, done[i].byte_cnt);
    EXPECT_TRUE(l4_sum_right(f)) << i;
    payload.insert(payload.end(), f.begin() + static_cast<std::ptrdiff_t>(headers), f.end());
  }
  EXPECT_EQ(payload, part(whole, headers, kPayload));
}

TEST_F(EthQueue, APieceThatIsNotThereIsRefused) {
  breaks({"wqe-segment"});
  EthLink link(dev());
  EthWr wr;
  wr.sges = {link.tx_sge(0, 60), {0, prm::kInvalidLkey, 8}};  // a pointer, with the key that ends lists
  link.sq.post(wr);
  EXPECT_TRUE(link.scq.wait_one().error());
  EXPECT_EQ(link.sq.state(), 3u);
}

// DPDK's queues have CQs with room for few CQEs more than they ask for.
TEST_F(EthQueue, WhatIsFlushedHasNoCqeIfItIsOnlyForTheFirstError) {
  breaks({"mr-key"});
  EthLink link(dev());
  const Frame frame = plain_frame(64);
  link.put(0, frame);
  EthWr wr;
  wr.signaled = false;
  wr.only_first_error = true;
  wr.sges = {{link.tx_sge(0, 64).addr, 0xdead00, 64}};
  const auto failed = link.sq.post(wr, false);
  wr.sges = {link.tx_sge(0, 64)};
  for (unsigned i = 0; i < 60; ++i) link.sq.post(wr, false);
  wr.only_first_error = false;
  const auto flushed = link.sq.post(wr);
  const auto got = link.scq.wait(2);
  ASSERT_EQ(got.size(), 2u);
  expect_error(got[0], CqeSyndrome::kLocalProt);
  EXPECT_EQ(got[0].wqe_counter, failed);
  expect_error(got[1], CqeSyndrome::kWrFlush);
  EXPECT_EQ(got[1].wqe_counter, flushed);
  machine().advance(100'000);
  EXPECT_FALSE(link.scq.ready());
}

// As Linux' network device has its receive queues.
TEST_F(EthQueue, AReceiveQueueMayFailWithoutFlushing) {
  RqOptions o;
  o.flush_in_error = false;
  EthLink link(dev(), o);
  for (unsigned i = 0; i < 10; ++i) link.rq.post({link.rx_sge(0, 2048)});
  EXPECT_CMD_OK(link.rq.modify(1, 3));
  machine().advance(100'000);
  EXPECT_FALSE(link.rcq.ready());
  EXPECT_CMD_OK(link.rq.modify(3, 0));
  EXPECT_CMD_OK(link.rq.modify(0, 1));
  link.rq.post({link.rx_sge(0, 2048)});
  link.send(plain_frame(64));
  EXPECT_EQ(link.rcq.wait_one().byte_cnt, 64u);
}

TEST_F(EthQueue, AFragmentIsCalledOne) {
  EthLink link(dev());
  for (const unsigned field :
       {0u, 0x2000u, 0x0010u, 0x4000u}) {  // more fragments; an offset; do not fragment
    Frame f = l4_frame({false, true, 100});
    prm::store16(f.data() + 14 + 6, static_cast<std::uint16_t>(field));
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(f);
    const bool fragment = (field & 0x3fff) != 0;
    EXPECT_EQ(link.rcq.wait_one().raw.l4_l3_hdr_type & prm::Cqe::kIpFragment,
              fragment ? prm::Cqe::kIpFragment : 0)
        << field;
  }
}

// IPv4 and IPv6, in nothing, and in IPv6 (RFC 2473).
TEST_F(EthQueue, ATunnelSaysWhatIpItGoesBy) {
  EthLink link(dev());
  for (const bool v6 : {false, true}) {
    const Frame plain = l4_frame({v6, false, 100});
    Frame tunnel(plain.begin(), plain.begin() + 14);
    prm::store16(tunnel.data() + 12, 0x86dd);
    std::vector<std::uint8_t> ip(40);
    ip[0] = 0x60, ip[6] = v6 ? 41 : 4, ip[7] = 64, ip[23] = 1, ip[39] = 2;
    prm::store16(ip.data() + 4, static_cast<std::uint16_t>(plain.size() - 14));
    tunnel.insert(tunnel.end(), ip.begin(), ip.end());
    tunnel.insert(tunnel.end(), plain.begin() + 14, plain.end());
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(plain);
    EXPECT_EQ(link.rcq.wait_one().raw.tls_outer_l3_tunneled, 0);
    link.rq.post({link.rx_sge(0, 2048)});
    link.send(tunnel);
    EXPECT_EQ(link.rcq.wait_one().raw.tls_outer_l3_tunneled, prm::kCqeTunneled | prm::kCqeOuterIpv6);
  }
}

// Linux' GSO_MAX_SIZE is beyond what the capability says, and it goes by that alone.
TEST_F(EthQueue, ALargeSendMayBeLargerThanTheCapabilitySays) {
  EthLink link(dev());
  const Frame whole = l4_frame({false, false, 100, 0x10});
  EthWr wr;
  wr.op = WqeOp::kLso;
  wr.headers = part(whole, 0, 54);
  wr.mss = 1400;
  wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
  wr.sges = {link.tx_sge(0, 200'000), link.tx_sge(0, 200'000), link.tx_sge(0, 124'280)};
  expect_good(link.scq, link.sq.post(wr));
}

// Linux looks at the WQE that a CQE names before it looks whether it tells of an error.
TEST_F(EthTest, AnErrorOfStridesNamesItsWqe) {
  breaks({"mr-key"});
  RqOptions o;
  o.type = 2;
  o.log_stride = 5;
  o.log_size = 2;
  o.log_strides = 9;
  o.log_stride_size = 6;
  o.flush_in_error = true;
  constexpr std::uint32_t kWqe = 64 << 9;
  EthLink link(dev(), o);
  link.rq.post({link.rx_sge(0, kWqe)});
  Sge bad = link.rx_sge(kWqe, kWqe);
  bad.lkey = 0xabcdef00;
  link.rq.post({bad});
  link.rq.post({link.rx_sge(2 * kWqe, kWqe)});
  Completion c;
  for (unsigned i = 0; i < 40 && !c.error(); ++i) {
    link.send(plain_frame(1400, i));
    link.scq.wait_one();
    c = link.rcq.wait_one();
  }
  EXPECT_EQ(c.syndrome, prm::CqeSyndrome::kLocalProt) << c.text();
  EXPECT_EQ(c.raw.wqe_id, 1u);
  const Completion flushed = link.rcq.wait_one();
  EXPECT_EQ(flushed.syndrome, prm::CqeSyndrome::kWrFlush) << flushed.text();
  EXPECT_EQ(flushed.raw.wqe_id, 2u);
}

// The reserved lkey: all memory by bus addresses, as drivers of BSDs post it.
TEST_F(EthQueue, ReceivesIntoBusAddressesByTheReservedKey) {
  breaks({"mr-key"});
  const auto special =
      dev().exec(Mailbox(prm::op::QUERY_SPECIAL_CONTEXTS, prm::query_special_contexts_in::bytes),
                 prm::query_special_contexts_out::bytes);
  const auto key =
      static_cast<std::uint32_t>(special.must().get<prm::query_special_contexts_out::resd_lkey>());
  for (const bool may : {true, false}) {
    RqOptions o;
    o.reserved_lkey = may;
    EthLink link(dev(), o);
    link.rq.post({{link.rx.bus(), key, 2048}});
    expect_good(link.scq, link.send(plain_frame(100)));
    const Completion c = link.rcq.wait_one();
    if (may)
      EXPECT_EQ(link.received(0, c.byte_cnt), plain_frame(100));
    else
      expect_error(c, prm::CqeSyndrome::kLocalProt);
  }
}

}  // namespace
}  // namespace hcasim::bare
