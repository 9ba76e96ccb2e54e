// SPDX-License-Identifier: BSD-3-Clause
// Receive queues that keep headers apart from data (SHAMPO): where both lie, which segments are told to
// continue others, how a WQE is used up. On a card that has it, over a port whose cable leads back to itself.
#include "eth_split_rig.h"

namespace hcasim::bare {
namespace {

using prm::EthSeg;
using split::kEntries;
using split::kHeader;
using split::kReservation;
using split::kStride;
using split::kWqe;
using Got = SplitGot;

class EthSplit : public EthTest {};

TEST_F(EthSplit, DataLieWithoutAGap) {
  for (const bool v6 : {false, true}) {
    SplitLink link(dev());
    link.post(2);
    const std::uint32_t header = (v6 ? 54 : 34) + 32;
    Segment s;
    s.v6 = v6;
    s.timestamp = 9;
    std::uint32_t strides = 0;
    for (unsigned i = 0; i < 6; ++i) {
      if (i == 5) s.flags |= kPsh;
      link.send_segment(s);
      const Got g = link.get();
      EXPECT_EQ(g.s.header_entry_index, i);
      EXPECT_EQ(g.s.header_size, header);
      EXPECT_EQ(g.s.data_offset, i * 500);
      EXPECT_EQ(g.len, header + 500);
      EXPECT_EQ(g.match, i != 0);
      EXPECT_EQ(g.flush, i == 5);
      const Frame f = link.frame(g);
      expect_stream(f, i * 500, 500);
      EXPECT_TRUE(l4_sum_right(f));
      EXPECT_EQ(g.c.raw.check_sum, plain_sum(f, 14, f.size()));
      strides += g.strides;
      s.seq += s.len;
    }
    EXPECT_EQ(strides, (3000 + kStride - 1) / kStride);
    // What comes next begins at a stride.
    s.flags = kAck;
    link.send_segment(s);
    const Got g = link.get();
    EXPECT_FALSE(g.match);
    EXPECT_EQ(g.s.data_offset, 47 * kStride);
    expect_stream(link.frame(g), 3000, 500);
  }
}

TEST_F(EthSplit, WhatDoesNotFollowBeginsAnew) {
  struct Case {
    const char* name;
    std::function<void(Segment&)> change;
    bool broken = false, flush = false;
  };
  const Case cases[] = {
      {"a gap", [](Segment& s) { s.seq += 100; }},
      {"FIN", [](Segment& s) { s.flags |= kFin; }, false, true},
      {"no data", [](Segment& s) { s.len = 0; }, false, true},
      {"another acknowledgement", [](Segment& s) { s.ack += 1; }},
      {"another time stamp", [](Segment& s) { s.timestamp += 1; }},
      {"another TTL", [](Segment& s) { s.hops -= 1; }},
      {"another type of service", [](Segment& s) { s.tos = 3; }},
      {"another connection", [](Segment& s) { s.sport += 1; }},
      {"more data", [](Segment& s) { s.len += 10; }},
      {"a wrong checksum", [](Segment&) {}, true, true},
      {"too late", [](Segment&) { machine().advance(2'000'000); }},
  };
  for (const Case& what : cases) {
    SCOPED_TRACE(what.name);
    SplitLink link(dev());
    link.post(2);
    Segment s;
    s.timestamp = 50;
    for (unsigned i = 0; i < 2; ++i) {
      link.send_segment(s);
      EXPECT_EQ(link.get().match, i == 1);
      s.seq += s.len;
    }
    what.change(s);
    link.send_frame(segment_frame(s), what.broken);
    const Got g = link.get();
    EXPECT_FALSE(g.match);
    EXPECT_EQ(g.flush, what.flush);
    if (s.len != 0) expect_stream(link.frame(g), s.seq, s.len);
  }
  // Less data continue, and end it.
  SplitLink link(dev());
  link.post(1);
  Segment s;
  link.send_segment(s);
  EXPECT_FALSE(link.get().match);
  s.seq += s.len;
  s.len = 100;
  link.send_segment(s);
  const Got last = link.get();
  EXPECT_TRUE(last.match);
  EXPECT_TRUE(last.flush);
}

TEST_F(EthSplit, WhatIsNoTcpNorUdpStaysInOnePiece) {
  SplitLink link(dev());
  link.post(1);
  link.send_frame(plain_frame(300), true);
  const Got plain = link.get();
  EXPECT_EQ(plain.s.header_size, 0);
  EXPECT_EQ(plain.s.data_offset, 0u);
  EXPECT_EQ(link.received(0, 300), plain_frame(300));
  link.send_segment({});
  const Got tcp = link.get();
  EXPECT_EQ(tcp.s.header_entry_index, 0);  // the other one had none
  EXPECT_EQ(tcp.s.data_offset, 5 * kStride);
  L4 l4;
  l4.udp = true;
  for (unsigned i = 0; i < 2; ++i) {
    link.send_frame(l4_frame(l4));
    const Got udp = link.get();
    EXPECT_EQ(udp.s.header_size, 42);
    EXPECT_EQ(udp.s.header_entry_index, i + 1);
    EXPECT_FALSE(udp.match);
    EXPECT_TRUE(udp.flush);
  }
}

TEST_F(EthSplit, WithoutMatchingNothingContinues) {
  SplitLink link(dev(), [](RqOptions& o) { o.match = 0; });
  link.post(1);
  Segment s;
  for (unsigned i = 0; i < 2; ++i) {
    link.send_segment(s);
    const Got g = link.get();
    EXPECT_FALSE(g.match);
    EXPECT_TRUE(g.flush);
    EXPECT_EQ(g.s.data_offset, i * 8 * kStride);
    s.seq += s.len;
  }
}

// Whatever comes, the strides of each WQE are counted to the last, no reservation is crossed, none has more
// frames than it may, and each has its header in the next entry.
TEST_F(EthSplit, EveryStrideIsCounted) {
  SplitLink link(dev());
  link.post(3);
  std::mt19937 random(3);
  Segment s;
  std::uint32_t counted = 0, entry = 0, in_reservation = 0, reservation = ~0u, wqe = 0, done = 0, matches = 0;
  std::uint32_t fillers = 0;
  for (unsigned i = 0; i < 600; ++i) {
    const bool plain = random() % 8 == 0;
    if (random() % 4 == 0) s.seq += 77;
    s.len = random() % 3 == 0 ? 10 + random() % 1400 : 700;  // not padded
    const Frame frame = plain ? plain_frame(60 + random() % 1000, i) : segment_frame(s);
    link.send_frame(frame, plain);
    Got g = link.get();
    while (g.filler) {
      ++fillers;
      counted += g.strides;
      ASSERT_EQ(counted % (kReservation / kStride), 0u);
      if (counted == kWqe / kStride) counted = 0, ++done, link.post(1);
      g = link.get();
    }
    ASSERT_EQ(g.c.raw.wqe_id, done % 4) << i;
    if (g.c.raw.wqe_id != wqe) reservation = ~0u, wqe = g.c.raw.wqe_id;
    const std::uint32_t data = g.len - g.s.header_size;
    if (g.s.data_offset / kReservation != reservation) {
      reservation = g.s.data_offset / kReservation;
      in_reservation = 0;
    }
    ASSERT_EQ((g.s.data_offset + data - 1) / kReservation, reservation);
    ASSERT_LE(++in_reservation, 8u);
    matches += g.match;
    if (plain) {
      ASSERT_EQ(g.s.header_size, 0);
      ASSERT_EQ(link.frame(g), frame);
    } else {
      ASSERT_EQ(g.s.header_entry_index, entry++ % kEntries);
      expect_stream(link.frame(g), s.seq, s.len);
    }
    counted += g.strides;
    ASSERT_LE(counted, kWqe / kStride);
    if (counted == kWqe / kStride) counted = 0, ++done, link.post(1);
    s.seq += s.len;
  }
  EXPECT_GT(done, 5u);
  EXPECT_GT(matches, 50u);
  EXPECT_GT(fillers, 20u);
}

TEST_F(EthSplit, WithoutReceiveWqesFramesAreDropped) {
  SplitLink link(dev());
  link.send_segment({});
  machine().advance(1'000'000);
  EXPECT_FALSE(link.cq.ready());
  link.post(1);
  link.send_segment({});
  const Got g = link.get();
  EXPECT_FALSE(g.match);
  EXPECT_EQ(g.s.header_entry_index, 0);
}

TEST_F(EthSplit, AHeaderThatCannotBeWrittenEndsTheQueue) {
  breaks({"mr-key"});
  SplitLink link(dev(), [](RqOptions& o) { o.headers_mkey ^= 1; });
  link.post(1);
  link.send_segment({});
  expect_error(link.cq.wait_one(), prm::CqeSyndrome::kLocalProt);
  EXPECT_EQ(link.queue.state(), 3u);
}

TEST_F(EthSplit, AResetBeginsAnew) {
  SplitLink link(dev());
  link.post(1);
  Segment s;
  link.send_segment(s);
  EXPECT_EQ(link.get().s.header_entry_index, 0);
  EXPECT_CMD_OK(link.queue.modify(1, 0));
  EXPECT_CMD_OK(link.queue.modify(0, 1));
  link.posted = 0;
  link.post(1);
  s.seq += s.len;
  link.send_segment(s);
  const Got g = link.get();
  EXPECT_FALSE(g.match);
  EXPECT_EQ(g.s.header_entry_index, 0);
  EXPECT_EQ(g.s.data_offset, 0u);
}

TEST_F(EthSplit, WrongQueuesAreRefused) {
  breaks({"cap-not-offered", "wq-layout"});
  const auto refuses = [&](const std::function<void(RqOptions&)>& change) {
    EXPECT_THROW(SplitLink(dev(), change), BareError);
  };
  refuses([](RqOptions& o) { o.scatter_fcs = true; });
  refuses([](RqOptions& o) { o.two_byte_shift = true; });
  refuses([](RqOptions& o) { o.type = 3; });
  refuses([](RqOptions& o) { o.match = 2; });
  refuses([](RqOptions& o) { o.align = 3; });
  refuses([](RqOptions& o) { o.log_reservation = 16; });  // more than a WQE
}

}  // namespace
}  // namespace hcasim::bare
