// SPDX-License-Identifier: BSD-3-Clause
// Tag matching: list operations, eager messages, rendezvous, unexpected messages, errors.
#include <cstring>

#include "driver/bare/xrq.h"
#include "fixture.h"

namespace hcasim::bare {
namespace {

using prm::TmhOp;
using prm::TmListOp;
using prm::TmOp;

constexpr std::uint32_t kTmh = sizeof(prm::Tmh), kHeaders = sizeof(prm::Tmh) + sizeof(prm::Rvh);

// a sends, b receives with tags. b's memory: tagged buffers in its first half, untagged ones in the second.
struct Tags {
  explicit Tags(Device& device, const TagQueueOptions& o = {}, bool rendezvous = true)
      : pair(device),
        cq(device),
        queue(device, pair.pd, cq, o),
        a(device, pair.pd, pair.acq, pair.acq),
        b(device, pair.pd, pair.bcq, pair.bcq, receiver(rendezvous), &queue.srq()) {
    connect_pair(a, b);
    pair.fill(23);
    for (unsigned i = 0; i < 8; ++i) post_untagged();
  }
  static QpOptions receiver(bool rendezvous) {
    QpOptions o;
    o.no_sq = o.rendezvous = rendezvous;
    return o;
  }
  void post_untagged() { queue.srq().post({pair.bsge(kUntagged + 4096 * (posted++ % 7), 4096)}); }

  std::uint8_t* out() { return pair.amem.data(); }
  // A message with a header and `len` bytes behind it in a's memory.
  void send(TmhOp op, std::uint64_t tag, std::uint32_t len, std::uint32_t app_ctx = 0x77) {
    prm::Tmh h{};
    h.opcode = static_cast<std::uint8_t>(op);
    h.app_ctx = app_ctx;
    h.tag = tag;
    std::memcpy(out(), &h, sizeof h);
    a.post(pair.wr(WqeOp::kSend, 0, kTmh + len));
  }
  // A rendezvous for `len` bytes at kSource of a's memory.
  void request(std::uint64_t tag, std::uint32_t len, std::uint32_t rkey) {
    prm::Rvh r{};
    r.va = pair.amr.start() + kSource;
    r.rkey = rkey;
    r.len = len;
    std::memcpy(out() + kTmh, &r, sizeof r);
    send(TmhOp::kRndv, tag, sizeof r);
  }
  Completion next(TmOp op) {
    const Completion c = cq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
    EXPECT_EQ(c.raw.app, prm::Cqe::kAppTagMatching);
    EXPECT_EQ(int{c.raw.app_op}, static_cast<int>(op)) << c.text();
    return c;
  }
  // A message in an untagged buffer.
  void expect_untagged(TmOp op, std::uint32_t len) {
    const Completion c = next(op);
    EXPECT_EQ(c.op, prm::CqeOp::kRespSend);
    EXPECT_EQ(c.byte_cnt, len);
    EXPECT_EQ(tag_header(c).tag, 0u) << "only a match has the header in the CQE";
    EXPECT_EQ(std::memcmp(pair.bmem.data() + kUntagged + 4096 * (taken++ % 7), out(), len), 0);
    queue.srq().release(c.wqe_counter);
    post_untagged();
  }
  static constexpr std::size_t kUntagged = 32 << 10, kSource = 8 << 10;
  Pair pair;
  Cq cq;
  TagQueue queue;
  Qp a, b;
  unsigned posted = 0, taken = 0;
};

class TagMatch : public DeviceTest {};

TEST_F(TagMatch, EagerMessagesFindTheirBuffers) {
  Tags t(dev());
  std::uint16_t place[6];
  for (unsigned i = 0; i < 6; ++i) place[i] = t.queue.append(100 + i, t.pair.bsge(i * 1024, 1024));
  for (const unsigned i : {3u, 0u, 5u, 1u, 4u, 2u}) {
    const std::uint32_t len = 100 + 150 * i;
    t.send(TmhOp::kEager, 100 + i, len, 0xc0de0000 + i);
    const Completion c = t.next(TmOp::kConsumedMsg);
    EXPECT_EQ(c.op, prm::CqeOp::kRespSend);
    EXPECT_EQ(c.raw.app_info, place[i]);
    EXPECT_EQ(c.byte_cnt, len) << "without the header";
    EXPECT_EQ(c.qpn, t.b.qpn());
    EXPECT_EQ(tag_header(c).tag, 100u + i);
    EXPECT_EQ(tag_header(c).app_ctx, 0xc0de0000 + i);
    EXPECT_EQ(std::memcmp(t.pair.bmem.data() + i * 1024, t.out() + kTmh, len), 0) << i;
    expect_good(t.pair.acq, static_cast<std::uint16_t>(t.a.sq_producer() - 1));
  }
}

TEST_F(TagMatch, ALongMessageIsMatchedAtItsFirstPacket) {
  Tags t(dev());
  const std::uint16_t place = t.queue.append(7, t.pair.bsge(0, 20000));
  t.send(TmhOp::kEager, 7, 20000);
  Completion c = t.next(TmOp::kConsumed);
  EXPECT_EQ(c.op, prm::CqeOp::kNoPacket);
  EXPECT_EQ(c.raw.app_info, place);
  EXPECT_EQ(tag_header(c).tag, 7u);
  c = t.next(TmOp::kExpected);
  EXPECT_EQ(c.op, prm::CqeOp::kRespSend);
  EXPECT_EQ(c.raw.app_info, place);
  EXPECT_EQ(c.byte_cnt, 20000u);
  EXPECT_EQ(tag_header(c).tag, 0u);
  EXPECT_EQ(std::memcmp(t.pair.bmem.data(), t.out() + kTmh, 20000), 0);
}

TEST_F(TagMatch, UntaggedBuffersInARing) {
  TagQueueOptions o;
  o.srq.log_size = 4;
  o.srq.cyclic = true;
  Tags t(dev(), o);
  for (unsigned i = 0; i < 40; ++i) {
    t.send(TmhOp::kEager, 9, 100 + i);
    t.expect_untagged(TmOp::kUnexpected, kTmh + 100 + i);
  }
}

TEST_F(TagMatch, MasksAndTheOldestFirst) {
  Tags t(dev());
  const std::uint16_t any = t.queue.append(0x1200, t.pair.bsge(0, 64), 0xff00);
  const std::uint16_t one = t.queue.append(0x1234, t.pair.bsge(64, 64));
  const std::uint16_t all = t.queue.append(0, {}, 0);
  for (const std::uint16_t want : {any, one, all}) {
    t.send(TmhOp::kEager, 0x1234, want == all ? 0 : 16);
    EXPECT_EQ(t.next(TmOp::kConsumedMsg).raw.app_info, want);
  }
  t.send(TmhOp::kEager, 0x1234, 16);
  t.expect_untagged(TmOp::kUnexpected, kTmh + 16);
}

TEST_F(TagMatch, RemovedOrTakenMeanwhile) {
  Tags t(dev());
  const std::uint16_t first = t.queue.append(1, t.pair.bsge(0, 64)),
                      second = t.queue.append(2, t.pair.bsge(64, 64));
  TagOp o;
  o.op = TmListOp::kRemove;
  o.index = first;
  t.queue.post(o);
  EXPECT_TRUE(tag_op_success(t.next(TmOp::kRemove)));
  t.send(TmhOp::kEager, 1, 8);
  t.expect_untagged(TmOp::kUnexpected, kTmh + 8);
  t.send(TmhOp::kEager, 2, 8);
  t.next(TmOp::kConsumedMsg);
  o.index = second;
  t.queue.post(o);
  const Completion c = t.next(TmOp::kRemove);
  EXPECT_FALSE(tag_op_success(c)) << "a message had taken it";
  EXPECT_EQ(c.raw.app_info, second);
  EXPECT_EQ(t.queue.command().state(), QpState::kRts);
}

TEST_F(TagMatch, UnsignaledOperationsSayNothing) {
  Tags t(dev());
  TagOp o;
  o.index = 1;
  o.tag = 5;
  o.buffer = t.pair.bsge(0, 64);
  o.signaled = false;
  t.queue.post(o);
  EXPECT_EQ(t.queue.synchronize(0), 0u);
  t.send(TmhOp::kEager, 5, 8);
  EXPECT_EQ(t.next(TmOp::kConsumedMsg).raw.app_info, 0u);
}

TEST_F(TagMatch, NewTagsWaitUntilTheUnexpectedAreHandled) {
  Tags t(dev());
  const std::uint16_t old = t.queue.append(1, t.pair.bsge(0, 64));
  t.send(TmhOp::kEager, 9, 8);
  t.expect_untagged(TmOp::kUnexpected, kTmh + 8);
  const std::uint16_t fresh = t.queue.append(9, t.pair.bsge(64, 64));
  // The software might find that the first message is for the new tag: a second one must not overtake it.
  t.send(TmhOp::kEager, 9, 12);
  t.expect_untagged(TmOp::kUnexpected, kTmh + 12);
  t.send(TmhOp::kEager, 1, 8);
  EXPECT_EQ(t.next(TmOp::kConsumedMsg).raw.app_info, old) << "what was there before goes on";
  EXPECT_EQ(t.queue.synchronize(1), 2u) << "one is not handled yet";
  t.send(TmhOp::kEager, 9, 16);
  t.expect_untagged(TmOp::kUnexpected, kTmh + 16);
  EXPECT_EQ(t.queue.synchronize(3), 3u);
  t.send(TmhOp::kEager, 9, 20);
  EXPECT_EQ(t.next(TmOp::kConsumedMsg).raw.app_info, fresh);

  using tags = prm::query_xrq_out::xrq_context::tag_matching_topology_context;
  const auto q = t.queue.srq().query();
  ASSERT_TRUE(q.ok()) << q.text();
  EXPECT_EQ(q.get<tags::hw_phase_cnt>(), 3u);
  EXPECT_EQ(q.get<tags::sw_phase_cnt>(), 3u);
  EXPECT_EQ(q.get<tags::append_next_index>(), 2u);
}

TEST_F(TagMatch, MessagesWithoutATag) {
  Tags t(dev());
  t.queue.append(0, t.pair.bsge(0, 64), 0);
  t.send(TmhOp::kNoTag, 5, 100);
  t.expect_untagged(TmOp::kNoTag, kTmh + 100);
  t.send(TmhOp::kFin, 5, sizeof(prm::Rvh));
  t.expect_untagged(TmOp::kNoTag, kHeaders);
  t.out()[0] = static_cast<std::uint8_t>(TmhOp::kEager);
  t.a.post(t.pair.wr(WqeOp::kSend, 0, 15));  // too short for a header
  t.expect_untagged(TmOp::kNoTag, 15);
  EXPECT_EQ(t.queue.synchronize(0), 0u) << "none of them counts as unexpected";
  t.send(TmhOp::kEager, 5, 8);
  t.next(TmOp::kConsumedMsg);
}

TEST_F(TagMatch, NoBufferForAnUnexpectedMessage) {
  Tags t(dev());
  for (unsigned i = 0; i < 8; ++i) {
    t.send(TmhOp::kEager, 1, 8);
    t.next(TmOp::kUnexpected);
    ++t.taken;
  }
  t.send(TmhOp::kEager, 1, 8);
  machine().advance(200'000);
  EXPECT_FALSE(t.cq.ready()) << "RNR NAK";
  EXPECT_EQ(t.queue.synchronize(0), 8u) << "not counted as long as it is not taken";
  t.post_untagged();
  t.next(TmOp::kUnexpected);
  EXPECT_EQ(t.queue.synchronize(9), 9u);
}

TEST_F(TagMatch, RendezvousIsFetchedAndEnded) {
  Tags t(dev());
  for (const std::uint32_t len : {0u, 1u, 4096u, 20000u}) {
    t.pair.fill(len);
    const std::uint16_t place = t.queue.append(50, t.pair.bsge(0, 20000));
    t.a.post_recv({t.pair.asge(40 << 10, 64)});
    t.request(50, len, t.pair.amr.key());
    Completion c = t.next(TmOp::kConsumed);
    EXPECT_EQ(c.op, prm::CqeOp::kNoPacket);
    EXPECT_EQ(c.raw.app_info, place);
    EXPECT_EQ(tag_header(c).tag, 50u);
    c = t.next(TmOp::kExpected);
    EXPECT_EQ(c.raw.app_info, place);
    EXPECT_EQ(c.byte_cnt, len);
    EXPECT_EQ(std::memcmp(t.pair.bmem.data(), t.pair.amem.data() + Tags::kSource, len), 0) << len;
    // The sender: its SEND, and the message that ends the rendezvous.
    bool sent = false, ended = false;
    for (const Completion& ac : t.pair.acq.wait(2)) {
      EXPECT_FALSE(ac.error()) << ac.text();
      sent = sent || ac.request();
      ended = ended || ac.op == prm::CqeOp::kRespSend;
      if (ac.op == prm::CqeOp::kRespSend) {
        EXPECT_EQ(ac.byte_cnt, kHeaders);
      }
    }
    EXPECT_TRUE(sent && ended);
    const std::uint8_t* fin = t.pair.amem.data() + (40 << 10);
    EXPECT_EQ(fin[0], static_cast<std::uint8_t>(TmhOp::kFin));
    EXPECT_EQ(std::memcmp(fin + 1, t.out() + 1, kHeaders - 1), 0) << "else as the request was";
  }
}

TEST_F(TagMatch, ManyRendezvousAtOnce) {
  Tags t(dev());
  for (unsigned i = 0; i < 8; ++i) t.queue.append(i, t.pair.bsge(i * 2048, 2048));
  for (unsigned i = 0; i < 8; ++i) t.a.post_recv({t.pair.asge(40 << 10, 64)});
  for (unsigned i = 0; i < 8; ++i) {
    t.request(i, 2048, t.pair.amr.key());
    while (!t.pair.acq.wait_one().request()) {  // the header's memory is used again when it is sent
    }
  }
  unsigned consumed = 0, expected = 0;
  for (const Completion& c : t.cq.wait(16)) {
    if (c.raw.app_op == static_cast<std::uint8_t>(TmOp::kConsumed)) {
      EXPECT_EQ(c.raw.app_info, consumed++);
    }
    if (c.raw.app_op == static_cast<std::uint8_t>(TmOp::kExpected)) {
      EXPECT_EQ(c.raw.app_info, expected++);
    }
  }
  EXPECT_EQ(consumed, 8u);
  EXPECT_EQ(expected, 8u);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(std::memcmp(t.pair.bmem.data() + i * 2048, t.pair.amem.data() + Tags::kSource, 2048), 0);
}

TEST_F(TagMatch, RendezvousLeftToSoftware) {
  // The buffer is too small, or the HCA is not to fetch.
  for (const bool small : {true, false}) {
    TagQueueOptions o;
    o.rendezvous = small;
    Tags t(dev(), o);
    const std::uint16_t place = t.queue.append(5, t.pair.bsge(0, small ? 100 : 4096));
    t.request(5, 4096, t.pair.amr.key());
    const Completion c = t.next(TmOp::kConsumedMsgSwRndv);
    EXPECT_EQ(c.raw.app_info, place);
    EXPECT_EQ(c.byte_cnt, kHeaders);
    EXPECT_EQ(tag_header(c).tag, 5u);
    EXPECT_EQ(std::memcmp(t.pair.bmem.data(), t.out(), kHeaders), 0) << "both headers";
    EXPECT_EQ(t.b.state(), QpState::kRts);
  }
}

TEST_F(TagMatch, UnexpectedRendezvous) {
  Tags t(dev());
  t.request(5, 4096, t.pair.amr.key());
  t.expect_untagged(TmOp::kUnexpected, kHeaders);
}

TEST_F(TagMatch, RendezvousThatMayNotBeRead) {
  breaks({"rkey-unknown"});
  Tags t(dev());
  const std::uint16_t place = t.queue.append(5, t.pair.bsge(0, 4096));
  t.request(5, 4096, t.pair.amr.key() ^ 0xff);
  t.next(TmOp::kConsumed);
  const Completion c = t.next(TmOp::kCanceled);
  EXPECT_EQ(c.raw.app_info, place);
  EXPECT_TRUE(machine().run_until([&] { return t.b.state() == QpState::kErr; }));
  expect_serves_on();
}

TEST_F(TagMatch, EagerMessageLongerThanItsBuffer) {
  breaks({"receive-length"});
  for (const std::uint32_t len : {65u, 20000u}) {
    Tags t(dev());
    const std::uint16_t place = t.queue.append(5, t.pair.bsge(0, 64));
    t.send(TmhOp::kEager, 5, len);
    if (len > 4096) t.next(TmOp::kConsumed);
    EXPECT_EQ(t.next(TmOp::kCanceled).raw.app_info, place);
    expect_error(t.pair.acq.wait_one(), prm::CqeSyndrome::kRemoteInvalReq);
    EXPECT_EQ(t.b.state(), QpState::kErr);
    EXPECT_EQ(t.queue.command().state(), QpState::kRts);
  }
}

TEST_F(TagMatch, BufferThatMayNotBeWritten) {
  breaks({"mr-key"});
  Tags t(dev());
  const std::uint16_t place = t.queue.append(5, {t.pair.bmr.start(), t.pair.bmr.key() ^ 0xff, 64});
  t.send(TmhOp::kEager, 5, 32);
  EXPECT_EQ(t.next(TmOp::kCanceled).raw.app_info, place);
  expect_error(t.pair.acq.wait_one(), prm::CqeSyndrome::kRemoteOp);
}

TEST_F(TagMatch, ErrorWhileARendezvousIsUnderWay) {
  Tags t(dev());
  t.queue.append(5, t.pair.bsge(0, 20000));
  t.request(5, 20000, t.pair.amr.key());
  t.next(TmOp::kConsumed);
  ASSERT_TRUE(t.b.to_error().ok());
  const Completion c = t.cq.wait_one();
  const bool done = c.raw.app_op == static_cast<std::uint8_t>(TmOp::kExpected);
  EXPECT_TRUE(done || c.raw.app_op == static_cast<std::uint8_t>(TmOp::kCanceled)) << c.text();
  machine().advance(1'000'000);
  EXPECT_FALSE(t.cq.ready()) << "the entry is given back once";
}

TEST_F(TagMatch, ListOperationsOutOfTheList) {
  breaks({"wqe-tag"});
  TagQueueOptions o;
  o.log_tags = 2;
  Tags t(dev(), o);
  TagOp op;
  op.index = 4;  // there are 0 to 3
  t.queue.post(op);
  const Completion c = t.cq.wait_one();
  expect_error(c, prm::CqeSyndrome::kLocalQpOp);
  EXPECT_EQ(t.queue.command().state(), QpState::kErr);
  t.send(TmhOp::kEager, 5, 8);
  t.expect_untagged(TmOp::kUnexpected, kTmh + 8);
}

TEST_F(TagMatch, APlaceThatIsTaken) {
  breaks({"wqe-tag"});
  TagQueueOptions o;
  o.log_tags = 2;
  Tags t(dev(), o);
  for (unsigned i = 0; i < 4; ++i) t.queue.append(i, t.pair.bsge(0, 64));
  EXPECT_ANY_THROW(t.queue.append(9, t.pair.bsge(0, 64)));
  EXPECT_EQ(t.queue.command().state(), QpState::kErr);
}

TEST_F(TagMatch, OperationOnAQueueWithoutAList) {
  breaks({"wqe-tag"});
  Pair p(dev());
  std::vector<std::uint8_t> wqe(48);
  reinterpret_cast<prm::CtrlSeg*>(wqe.data())
      ->set(WqeOp::kTagMatch, p.a.sq_producer(), p.a.qpn(), 3, prm::kCeAlways);
  p.a.post_raw(wqe, 1);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalQpOp);
}

TEST_F(TagMatch, SmallUnexpectedMessagesInTheCqe) {
  Tags t(dev());
  QpOptions o = Tags::receiver(true);
  o.cs_res = 1;
  Qp a(dev(), t.pair.pd, t.pair.acq, t.pair.acq),
      b(dev(), t.pair.pd, t.pair.bcq, t.pair.bcq, o, &t.queue.srq());
  connect_pair(a, b);
  prm::Tmh h{};
  h.opcode = static_cast<std::uint8_t>(TmhOp::kNoTag);
  std::memcpy(t.out(), &h, sizeof h);
  a.post(t.pair.wr(WqeOp::kSend, 0, 24));
  Completion c = t.next(TmOp::kNoTag);
  ASSERT_NE(c.inline_data(), nullptr);
  EXPECT_EQ(std::memcmp(c.inline_data(), t.out(), 24), 0);
  t.queue.append(1, t.pair.bsge(0, 64));
  h.opcode = static_cast<std::uint8_t>(TmhOp::kEager);
  h.tag = 1;
  std::memcpy(t.out(), &h, sizeof h);
  a.post(t.pair.wr(WqeOp::kSend, 0, 24));
  c = t.next(TmOp::kConsumedMsg);
  EXPECT_EQ(c.inline_data(), nullptr) << "the header is there";
  EXPECT_EQ(std::memcmp(t.pair.bmem.data(), t.out() + kTmh, 8), 0);
}

TEST_F(TagMatch, LimitEvent) {
  Tags t(dev());
  dev().clear_async_events();
  ASSERT_TRUE(t.queue.srq().arm_limit(8).ok());
  t.send(TmhOp::kEager, 1, 8);
  t.next(TmOp::kUnexpected);
  EXPECT_TRUE(machine().run_until(
      [&] { return dev().count_async(prm::EqeType::kSrqLimit, t.queue.srq().srqn()) == 1; }));
}

TEST_F(TagMatch, CommandsRefused) {
  breaks({"cap-not-offered", "object-reference", "wq-layout"});
  Pair p(dev());
  Cq cq(dev());
  TagQueueOptions o;
  o.log_tags = static_cast<unsigned>(dev().cap<prm::cmd_hca_cap::log_tag_matching_list_sz>()) + 1;
  EXPECT_THROW(TagQueue(dev(), p.pd, cq, o), BareError);
  // Without tags it is an SRQ with a CQ.
  o.log_tags = 0;
  {
    TagQueue plain(dev(), p.pd, cq, o);
    QpOptions q;
    Qp a(dev(), p.pd, p.acq, p.acq), b(dev(), p.pd, p.bcq, p.bcq, q, &plain.srq());
    connect_pair(a, b);
    plain.srq().post({p.bsge(0, 64)});
    a.post(p.wr(WqeOp::kSend, 0, 64));
    const Completion c = cq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
    EXPECT_EQ(c.raw.app, 0u);
    EXPECT_EQ(c.user_index, plain.srq().srqn());
    q.rendezvous = true;  // with a send queue
    EXPECT_THROW(Qp(dev(), p.pd, p.bcq, p.bcq, q, &plain.srq()), BareError);
    q = {};
    q.type = QpType::kUc;  // messages may lack packets
    EXPECT_THROW(Qp(dev(), p.pd, p.bcq, p.bcq, q, &plain.srq()), BareError);
  }
  SrqOptions s;
  s.xrq = true;
  s.cqn = 0xfff000;
  EXPECT_THROW(Srq(dev(), p.pd, s), BareError);
}

}  // namespace
}  // namespace hcasim::bare
