// SPDX-License-Identifier: BSD-3-Clause
// Large receive offload: which segments of a TCP connection become one frame, when it is handed over, and
// what its CQE says. All is sent over an Ethernet port whose cable leads back to itself.
#include "eth_segments.h"

#include <map>

namespace hcasim::bare {
namespace {

using prm::EthSeg;

RqOptions queue(unsigned type) {
  RqOptions o;
  o.type = type;
  o.log_size = type == 1 ? 5 : 2;
  o.log_stride = type == 1 ? 4 : 5;
  return o;
}

// A link whose RQ is behind a TIR with LRO.
struct LroLink : EthLink {
  static constexpr std::uint32_t kWqe = 32 << 10;
  explicit LroLink(Device& device, const RqOptions& o = queue(2), unsigned lro = 3, unsigned max = 255)
      : EthLink(device, o), type(o.type) {
    spec.rqn = rq.rqn();
    spec.transport_domain = td.number();
    spec.lro = lro;
    spec.lro_max = max;
    spec.lro_period_us = 1024;  // longer than any test sends
    merging = std::make_unique<EthObject>(make_tir(device, spec));
    steer_to(merging->number());
  }
  ~LroLink() { rule.reset(); }
  LroLink(const LroLink&) = delete;
  LroLink& operator=(const LroLink&) = delete;

  void post(unsigned n) {
    for (unsigned i = 0; i < n; ++i, ++posted) rq.post({rx_sge(posted % 8 * kWqe, kWqe)});
  }
  void send_segment(const Segment& s, bool broken = false) {
    Frame f = segment_frame(s);
    if (!broken) {
      send(f, EthSeg::kL3Csum | EthSeg::kL4Csum);
    } else {
      send(f);  // its checksums are 0
    }
    ASSERT_FALSE(scq.wait_one().error());
  }
  // Where the frame of this CQE lies, as the WQEs are posted by post().
  std::size_t place(const Completion& c) const {
    return type == 1 ? c.wqe_counter % 8 * kWqe : c.raw.wqe_id % 8 * kWqe + c.wqe_counter * 64u;
  }
  Frame frame(const Completion& c) const { return received(place(c), c.byte_cnt & 0xffff); }

  unsigned type, posted = 0;
  TirSpec spec;
  std::unique_ptr<EthObject> merging;
};

unsigned segments(const Completion& c) { return c.raw.srqn_uidx >> 24; }
prm::LroCqe lro(const Completion& c) {
  prm::LroCqe l;
  std::memcpy(&l, c.raw.merge, sizeof l);
  return l;
}

class EthLro : public EthTest {};

// What the driver does with it (en_rx.c, mlx5e_lro_update_hdr) makes a good frame.
void expect_checksum(const Frame& got, const Completion& c, bool v6) {
  Frame f = got;
  const std::size_t tcp = v6 ? 54 : 34, header = (f[tcp + 12] >> 4) * 4u, len = f.size() - 14;
  const prm::LroCqe l = lro(c);
  if (v6) {
    prm::store16(f.data() + 18, static_cast<std::uint16_t>(len - 40));
    f[21] = l.min_ttl;
  } else {
    prm::store16(f.data() + 16, static_cast<std::uint16_t>(len));
    f[22] = l.min_ttl;
  }
  prm::store16(f.data() + tcp + 16, 0);
  f[tcp + 13] =
      static_cast<std::uint8_t>((f[tcp + 13] & ~kPsh) | ((l.flags & prm::LroCqe::kPsh) != 0 ? kPsh : 0u));
  prm::store32(f.data() + tcp + 8, l.ack_seq_num);
  prm::store16(f.data() + tcp + 14, l.tcp_win);
  const unsigned sum = plain_sum(f, tcp, tcp + header, c.raw.check_sum);
  const unsigned addresses = v6 ? plain_sum(f, 22, 54) : plain_sum(f, 26, 34);
  const unsigned pseudo = plain_sum({}, 0, 0, sum + addresses + 6 + static_cast<unsigned>(f.size() - tcp));
  prm::store16(f.data() + tcp + 16, static_cast<std::uint16_t>(~pseudo));
  EXPECT_TRUE(l4_sum_right(f));
}

TEST_F(EthLro, SegmentsBecomeOneFrame) {
  for (const unsigned type : {1u, 2u, 3u}) {
    for (const bool v6 : {false, true}) {
      SCOPED_TRACE(std::to_string(type) + (v6 ? " IPv6" : " IPv4"));
      LroLink link(dev(), queue(type));
      link.post(4);
      Segment s;
      s.v6 = v6;
      s.seq = 0xfffff000;  // wraps within
      s.timestamp = 77;
      constexpr unsigned kCount = 20;
      std::uint32_t sent = 0;
      for (unsigned i = 0; i < kCount; ++i) {
        s.len = 501 - i % 3;
        s.window = 2000 + i;
        s.hops = i == 5 ? 20 : 64;
        s.ack += 3;
        s.timestamp += i % 4 == 0;
        if (i + 1 == kCount) s.flags |= kPsh;
        link.send_segment(s);
        s.seq += s.len;
        sent += s.len;
      }
      const Completion c = link.rcq.wait_one();
      const std::size_t headers = (v6 ? 54 : 34) + 32;
      EXPECT_EQ(segments(c), kCount);
      ASSERT_EQ(c.byte_cnt & 0xffff, headers + sent);
      if (type != 1) {
        EXPECT_EQ(c.byte_cnt >> 16, (headers + sent + 63) / 64);
      }
      EXPECT_EQ(c.raw.hds_ip_ext, 7);
      EXPECT_EQ(c.raw.l4_l3_hdr_type >> 4 & 7, 4);  // TCP with an acknowledgement and data
      EXPECT_EQ(lro(c).flags, prm::LroCqe::kPsh);
      EXPECT_EQ(lro(c).min_ttl, 20);
      EXPECT_EQ(lro(c).tcp_win, 2000 + kCount - 1);
      EXPECT_EQ(lro(c).ack_seq_num, 1 + 3 * kCount);
      const Frame got = link.frame(c);
      expect_stream(got, 0xfffff000, sent);
      // The headers are the first segment's.
      EXPECT_EQ(prm::load32(got.data() + (v6 ? 54 : 34) + 4), 0xfffff000u);
      EXPECT_EQ(prm::load32(got.data() + (v6 ? 54 : 34) + 24), 78u);
      expect_checksum(got, c, v6);
      machine().advance(1'000'000);
      EXPECT_FALSE(link.rcq.ready());
    }
  }
}

TEST_F(EthLro, OnlyTheVersionThatIsAskedFor) {
  LroLink link(dev(), queue(2), 2);
  link.post(2);
  Segment s;
  for (unsigned i = 0; i < 2; ++i) {
    link.send_segment(s);
    s.seq += s.len;
    EXPECT_EQ(segments(link.rcq.wait_one()), 0u);
  }
}

TEST_F(EthLro, AfterItsPeriodItIsHandedOver) {
  for (const unsigned us : {8u, 32u, 1024u}) {
    LroLink link(dev());
    link.spec.lro_period_us = us;
    EXPECT_CMD_OK(set_lro(dev(), link.merging->number(), link.spec));
    link.post(2);
    Segment s;
    const std::int64_t before = machine().now();
    link.send_segment(s);
    s.seq += s.len;
    link.send_segment(s);
    EXPECT_FALSE(link.rcq.ready());
    const Completion c = link.rcq.wait_one();
    EXPECT_EQ(segments(c), 2u);
    EXPECT_EQ(lro(c).flags, 0);
    const auto held = static_cast<std::int64_t>(c.raw.timestamp) - before;
    EXPECT_GE(held, us * 1000);
    EXPECT_LE(held, us * 1000 + 8000);
    expect_stream(link.frame(c), 0, 1000);
    // One by itself waits as long, and is a frame like others.
    s.seq += s.len;
    link.send_segment(s);
    const Completion one = link.rcq.wait_one();
    EXPECT_EQ(segments(one), 1u);
    const Frame got = link.frame(one);
    EXPECT_EQ(one.raw.check_sum, plain_sum(got, 14, got.size()));
    EXPECT_TRUE(l4_sum_right(got));
  }
}

// Whatever does not continue a session ends it, and comes behind it.
TEST_F(EthLro, WhatDoesNotFollowEndsIt) {
  struct Case {
    const char* name;
    std::function<void(Segment&)> change;
    bool broken = false;
    bool held = false;  // it begins a session itself
  };
  const Case cases[] = {
      {"a gap", [](Segment& s) { s.seq += 100; }, false, true},
      {"sent again", [](Segment& s) { s.seq -= s.len; }, false, true},
      {"FIN", [](Segment& s) { s.flags |= kFin; }},
      {"ECE", [](Segment& s) { s.flags |= 0x40; }},
      {"no data", [](Segment& s) { s.len = 0; }},
      {"an older acknowledgement", [](Segment& s) { s.ack -= 1; }, false, true},
      {"an older time stamp", [](Segment& s) { s.timestamp -= 1; }, false, true},
      {"without time stamp", [](Segment& s) { s.timestamp = 0; }, false, true},
      {"another type of service", [](Segment& s) { s.tos = 3; }, false, true},
      {"a wrong checksum", [](Segment&) {}, true},
  };
  for (const bool v6 : {false, true}) {
    for (const Case& what : cases) {
      SCOPED_TRACE(std::string(what.name) + (v6 ? " IPv6" : " IPv4"));
      LroLink link(dev());
      link.post(2);
      Segment s;
      s.v6 = v6;
      s.ack = 100;
      s.timestamp = 50;
      for (unsigned i = 0; i < 3; ++i) {
        link.send_segment(s);
        s.seq += s.len;
      }
      what.change(s);
      const std::int64_t before = machine().now();
      link.send_segment(s, what.broken);
      const auto got = link.rcq.wait(2);
      ASSERT_EQ(got.size(), 2u);
      EXPECT_EQ(segments(got[0]), 3u);
      EXPECT_LE(static_cast<std::int64_t>(got[0].raw.timestamp) - before, 10'000);
      expect_stream(link.frame(got[0]), 0, 1500);
      EXPECT_EQ(segments(got[1]), what.held ? 1u : 0u);
      if (!what.broken) expect_stream(link.frame(got[1]), s.seq, s.len);
      machine().advance(1'000'000);
      EXPECT_FALSE(link.rcq.ready());
    }
  }
}

TEST_F(EthLro, ConnectionsDoNotDisturbEachOther) {
  LroLink link(dev());
  link.post(4);
  constexpr unsigned kFlows = 70;  // more than there are sessions
  Segment s;
  for (unsigned round = 0; round < 2; ++round) {
    for (unsigned flow = 0; flow < kFlows; ++flow) {
      s.sport = static_cast<std::uint16_t>(4000 + flow);
      s.seq = round * 300;
      s.len = 300;
      s.flags = round == 1 ? kAck | kPsh : kAck;
      link.send_segment(s);
    }
  }
  std::map<unsigned, unsigned> by_segments;
  std::size_t bytes = 0;
  for (unsigned got = 0; got < 2 * kFlows;) {
    const Completion c = link.rcq.wait_one();
    if (c.byte_cnt >> 31 != 0) continue;  // strides left unused at a WQE's end
    const Frame f = link.frame(c);
    const unsigned n = std::max(1u, segments(c));
    got += n;
    bytes += f.size() - 54;
    ++by_segments[segments(c)];
    expect_stream(f, prm::load32(f.data() + 38), n * 300);
  }
  EXPECT_EQ(bytes, 2u * kFlows * 300);
}

TEST_F(EthLro, AsLongAsTheTirAllows) {
  LroLink link(dev(), queue(2), 3, 8);  // 2048 bytes of IP payload
  link.post(2);
  Segment s;
  for (unsigned i = 0; i < 9; ++i) {
    link.send_segment(s);
    s.seq += s.len;
  }
  for (unsigned i = 0; i < 3; ++i) {
    const Completion c = link.rcq.wait_one();
    const unsigned n = i < 2 ? 4 : 1;  // 20 + 4 * 500 bytes
    EXPECT_EQ(segments(c), n);
    expect_stream(link.frame(c), i * 2000, n * 500);
  }
}

// A WQE of a cyclic queue has room for some of them: the rest goes to the next.
TEST_F(EthLro, AsLongAsTheBuffersAre) {
  LroLink link(dev(), queue(1));
  for (unsigned i = 0; i < 4; ++i) link.rq.post({link.rx_sge(i * LroLink::kWqe, 1600)});
  Segment s;
  for (unsigned i = 0; i < 7; ++i) {
    if (i == 6) s.flags |= kPsh;
    link.send_segment(s);
    s.seq += s.len;
  }
  for (unsigned i = 0; i < 3; ++i) {
    const Completion c = link.rcq.wait_one();
    const unsigned n = i < 2 ? 3 : 1;
    EXPECT_EQ(segments(c), n);
    expect_stream(link.frame(c), i * 1500, n * 500);
    if (n > 1) expect_checksum(link.frame(c), c, false);
  }
  machine().advance(1'000'000);
  EXPECT_FALSE(link.rcq.ready());
}

TEST_F(EthLro, WithoutReceiveWqesAllOfItIsLost) {
  for (const unsigned type : {1u, 2u}) {
    LroLink link(dev(), queue(type));
    Segment s;
    for (unsigned i = 0; i < 3; ++i) {
      link.send_segment(s);
      s.seq += s.len;
    }
    machine().advance(1'000'000);
    EXPECT_FALSE(link.rcq.ready());
    link.post(1);
    s.flags |= kPsh;
    link.send_segment(s);
    const Completion c = link.rcq.wait_one();
    expect_stream(link.frame(c), 1500, 500);
  }
}

TEST_F(EthLro, TheStrippedTagIsInTheCqe) {
  RqOptions o = queue(2);
  o.keep_vlan = false;
  LroLink link(dev(), o);
  link.post(2);
  Segment s;
  for (unsigned i = 0; i < 3; ++i) {
    if (i == 2) s.flags |= kPsh;
    const Frame f = segment_frame(s);
    link.put(0, f);
    EthWr wr;
    wr.vlan = 0x2123;
    wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
    wr.sges = {link.tx_sge(0, static_cast<std::uint32_t>(f.size()))};
    link.sq.post(wr);
    ASSERT_FALSE(link.scq.wait_one().error());
    s.seq += s.len;
  }
  const Completion c = link.rcq.wait_one();
  EXPECT_EQ(segments(c), 3u);
  EXPECT_EQ(c.raw.vlan_info, 0x2123);
  const Frame got = link.frame(c);
  EXPECT_EQ(got.size(), 54u + 1500);
  EXPECT_EQ(prm::load16(got.data() + 12), 0x0800);
  expect_stream(got, 0, 1500);
  expect_checksum(got, c, false);
}

TEST_F(EthLro, ChangesOfTheTirEndIt) {
  LroLink link(dev());
  link.post(2);
  Segment s;
  const auto two = [&] {
    for (unsigned i = 0; i < 2; ++i) {
      link.send_segment(s);
      s.seq += s.len;
    }
  };
  two();
  link.spec.lro = 0;
  EXPECT_CMD_OK(set_lro(dev(), link.merging->number(), link.spec));
  EXPECT_EQ(segments(link.rcq.wait_one(100'000)), 2u);
  two();
  for (unsigned i = 0; i < 2; ++i) EXPECT_EQ(segments(link.rcq.wait_one()), 0u);
  link.spec.lro = 1;
  EXPECT_CMD_OK(set_lro(dev(), link.merging->number(), link.spec));
  two();
  link.steer_to(0);
  link.merging.reset();
  EXPECT_EQ(segments(link.rcq.wait_one(100'000)), 2u);
}

TEST_F(EthLro, AQueueThatIsResetTakesNothing) {
  LroLink link(dev());
  link.post(2);
  Segment s;
  link.send_segment(s);
  EXPECT_CMD_OK(link.rq.modify(1, 0));
  EXPECT_CMD_OK(link.rq.modify(0, 1));
  link.posted = 0;
  link.post(1);
  machine().advance(1'000'000);
  EXPECT_FALSE(link.rcq.ready());
  s.seq = 5000;
  s.flags |= kPsh;
  link.send_segment(s);
  expect_stream(link.frame(link.rcq.wait_one()), 5000, 500);
  // In error, too: the WQEs are flushed, and nothing else comes.
  s.flags = kAck;
  link.send_segment(s);
  EXPECT_CMD_OK(link.rq.modify(1, 3));
  expect_error(link.rcq.wait_one(), prm::CqeSyndrome::kWrFlush);
  machine().advance(1'000'000);
  EXPECT_FALSE(link.rcq.ready());
}

TEST_F(EthLro, AFunctionLevelResetForgetsIt) {
  {
    LroLink link(dev());
    link.post(2);
    link.send_segment({});
    dev().function_reset();
    const std::uint64_t written = machine().memory().bytes_written();
    machine().advance(2'000'000);
    EXPECT_EQ(machine().memory().bytes_written(), written);
  }
  dev().probe();
  expect_frames_go_on();
}

}  // namespace
}  // namespace hcasim::bare
