// SPDX-License-Identifier: BSD-3-Clause
// The responder by itself: request packets in; payload in memory, completions, and what it says back out.
#include "model/resp/responder.h"

#include <gmock/gmock.h>

#include <numeric>

#include "block_rig.h"
#include "prm/wqe.h"

namespace hcasim::test {
namespace {

using prm::Aeth;
using prm::BthOp;
using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using ::testing::ElementsAre;

constexpr std::uint32_t kFirstPsn = 500;
constexpr std::uint64_t kBuffer = BlockRig::kData, kRemote = BlockRig::kData + 0x4000;
constexpr std::uint32_t kBufferLen = 256;

class ResponderTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    r.response_turns.to = &r.responder;
    r.make_eq();
    r.make_cq();
    AccessRights rights;
    rights.local_write = rights.remote_read = rights.remote_write = rights.atomic = true;
    key = &r.make_key(0x11, rights);
    qp = &r.make_qp();
    qp->rre = qp->rwe = qp->rae = true;
    qp->resp.expected_psn = kFirstPsn;
    qp->min_rnr_nak = 9;
  }
  void post_receive() {
    prm::DataSeg data{};
    data.byte_count = kBufferLen;
    data.lkey = key->wire_key();
    data.addr = kBuffer;
    r.store(BlockRig::kQpRing + 16 * (posted % (1u << BlockRig::kLogRq)), data);
    r.store(BlockRig::kQpDbr + offsetof(prm::QpDbr, rcv), prm::be32(++posted));
  }
  static PacketRef request(BthOp op, std::uint32_t psn, std::uint32_t len) {
    PacketRef p = PacketPool::make();
    p->opcode = static_cast<std::uint8_t>(op) | prm::bth::kRc;
    p->dest_qpn = BlockRig::kQpn;
    p->psn = psn;
    p->ack_req = true;
    p->payload_len = len;
    std::iota(p->data(), p->data() + len, std::uint8_t{1});
    return p;
  }
  void receive(PacketRef p) {
    r.responder.receive(sim_now(), *qp, p);
    r.run_ns(10'000);
  }
  void send(std::uint32_t psn, std::uint32_t len = 64) { receive(request(BthOp::kSendOnly, psn, len)); }
  PacketRef remote(BthOp op, std::uint32_t psn, std::uint32_t payload, std::uint32_t len) const {
    PacketRef p = request(op, psn, payload);
    p->va = kRemote;
    p->rkey = key->wire_key();
    p->dma_len = len;
    return p;
  }
  void expect_reply(std::size_t i, std::uint32_t psn, unsigned aeth) const {
    ASSERT_LT(i, block_rig().wire.sent.size());
    EXPECT_EQ(r.sent_op(i), BthOp::kAck);
    EXPECT_EQ(r.sent(i).psn, psn);
    EXPECT_EQ(r.sent(i).aeth, aeth);
    EXPECT_EQ(r.sent(i).dest_qpn, BlockRig::kRemoteQpn);
  }
  static unsigned ack() { return Aeth::kAck | Aeth::kInvalidCredits; }
  static unsigned nak(NakCode code) { return Aeth::kNak | static_cast<unsigned>(code); }
  static unsigned event(EqeType t) { return static_cast<unsigned>(t); }
  std::uint32_t completions() const {
    return block_rig().cqs.find(BlockRig::kFunction, BlockRig::kCqn)->producer;
  }
  bool holds(std::uint64_t at, std::uint32_t len) const {
    for (std::uint32_t i = 0; i < len; ++i)
      if (r.host.memory[at + i] != static_cast<std::uint8_t>(i + 1)) return false;
    return true;
  }

  Qp* qp = nullptr;
  Mkey* key = nullptr;
  std::uint16_t posted = 0;
};

TEST_F(ResponderTest, ASendFillsTheNextReceiveWqeCompletesAndIsAcknowledged) {
  post_receive();
  send(kFirstPsn);
  EXPECT_TRUE(holds(kBuffer, 64));
  EXPECT_EQ(r.host.memory[kBuffer + 64], 0);
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kRespSend);
  EXPECT_EQ(r.cqe(0).byte_cnt, 64u);
  EXPECT_EQ(r.cqe(0).qpn(), BlockRig::kQpn);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  expect_reply(0, kFirstPsn, ack());
  EXPECT_EQ(r.sent(0).msn, 1u);
}

TEST_F(ResponderTest, AGapIsAnsweredWithOneSequenceNak) {
  post_receive();
  for (unsigned i = 1; i < 4; ++i) send(kFirstPsn + i);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  expect_reply(0, kFirstPsn, nak(NakCode::kPsnSeqErr));
  EXPECT_EQ(r.q_counters[0].out_of_sequence, 3u);
  EXPECT_EQ(completions(), 0u);
  send(kFirstPsn);
  EXPECT_EQ(completions(), 1u) << "what was missing is taken";
  post_receive();
  send(kFirstPsn + 2);
  ASSERT_EQ(r.wire.sent.size(), 3u) << "and the next gap has its own";
  expect_reply(2, kFirstPsn + 1, nak(NakCode::kPsnSeqErr));
}

// Responses come first, then the NAK (IBTA 9.7.5.2): with or without a turn in between.
TEST_F(ResponderTest, ASequenceNakFollowsTheResponsesThatAreOwedBeforeIt) {
  for (const bool found : {false, true}) {
    const std::uint32_t psn = qp->resp.expected_psn;
    r.wire.sent.clear();
    r.response_turns.to = nullptr;  // no turn yet: the response is owed
    receive(remote(BthOp::kReadReq, psn, 0, 64));
    send(psn + 2);
    EXPECT_TRUE(r.wire.sent.empty());
    r.response_turns.to = &r.responder;
    if (found) {  // what was missing came by another way
      receive(remote(BthOp::kWriteOnly, psn + 1, 64, 64));
    }
    r.scheduler.wake_responder(sim_now(), *qp);
    r.run_ns(10'000);
    ASSERT_EQ(r.wire.sent.size(), 2u);
    EXPECT_EQ(r.sent_op(0), BthOp::kReadRespOnly);
    expect_reply(1, psn + 1, found ? ack() : nak(NakCode::kPsnSeqErr));
    qp->resp.turn_at = kNever;
    if (!found) receive(remote(BthOp::kWriteOnly, psn + 1, 64, 64));
  }
}

// A card of IBTA 1.7 asks for FLUSH and ATOMIC WRITE, which are not offered.
TEST_F(ResponderTest, ARequestThatIsNotSupportedIsRefusedAsInvalid) {
  for (const unsigned op : {0x15u, 0x1cu, 0x1du, 0x1fu}) {
    qp->state = QpState::kRts;
    qp->resp.turn_at = kNever;
    r.wire.sent.clear();
    receive(request(static_cast<BthOp>(op), kFirstPsn - 1, 0));
    EXPECT_TRUE(r.wire.sent.empty()) << "a duplicate";
    receive(request(static_cast<BthOp>(op), kFirstPsn, 0));
    expect_reply(0, kFirstPsn, nak(NakCode::kInvalidReq));
    EXPECT_EQ(qp->state, QpState::kErr);
  }
}

TEST_F(ResponderTest, ADuplicateIsAcknowledgedAgainAndNotExecuted) {
  post_receive();
  post_receive();
  send(kFirstPsn);
  r.host.memory[kBuffer] = 0x99;
  send(kFirstPsn);
  EXPECT_EQ(completions(), 1u);
  EXPECT_EQ(r.host.memory[kBuffer], 0x99);
  ASSERT_EQ(r.wire.sent.size(), 2u);
  expect_reply(1, kFirstPsn, ack());
  EXPECT_EQ(r.q_counters[0].duplicate_request, 1u);
}

TEST_F(ResponderTest, WithoutAReceiveWqeTheSenderIsToldToWait) {
  send(kFirstPsn);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  expect_reply(0, kFirstPsn, Aeth::kRnrNak | 9u);
  EXPECT_EQ(r.q_counters[0].out_of_buffer, 1u);
  EXPECT_EQ(qp->state, QpState::kRts);
  post_receive();
  send(kFirstPsn);
  EXPECT_EQ(completions(), 1u);
}

TEST_F(ResponderTest, AMessageLongerThanItsBufferFailsBothSides) {
  post_receive();
  send(kFirstPsn, kBufferLen + 1);
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.err_cqe(0).syndrome, static_cast<unsigned>(CqeSyndrome::kLocalLength));
  expect_reply(0, kFirstPsn, nak(NakCode::kInvalidReq));
  EXPECT_EQ(qp->state, QpState::kErr);
  EXPECT_EQ(r.host.memory[kBuffer], 0) << "nothing of it is written";
}

TEST_F(ResponderTest, AnRdmaWriteLandsAtItsAddressWithoutACompletion) {
  receive(remote(BthOp::kWriteOnly, kFirstPsn, 100, 100));
  EXPECT_TRUE(holds(kRemote, 100));
  EXPECT_EQ(completions(), 0u);
  expect_reply(0, kFirstPsn, ack());
}

TEST_F(ResponderTest, AnRdmaWriteWithoutRightIsRefusedWithAccessNak) {
  key->rights.remote_write = false;
  receive(remote(BthOp::kWriteOnly, kFirstPsn, 100, 100));
  expect_reply(0, kFirstPsn, nak(NakCode::kRemoteAccess));
  EXPECT_FALSE(holds(kRemote, 1));
  EXPECT_EQ(r.q_counters[0].resp_remote_access_errors, 1u);
  EXPECT_THAT(r.errors.events, ElementsAre(event(EqeType::kWqAccess)));
}

TEST_F(ResponderTest, AnRdmaWriteBeyondItsKeyIsRefusedBeforeItsFirstByte) {
  PacketRef p = remote(BthOp::kWriteOnly, kFirstPsn, 100, 100);
  p->va = BlockRig::kData + BlockRig::kDataBytes - 99;
  receive(p);
  expect_reply(0, kFirstPsn, nak(NakCode::kRemoteAccess));
  EXPECT_EQ(r.host.memory[BlockRig::kData + BlockRig::kDataBytes - 99], 0);
}

TEST_F(ResponderTest, AnRdmaWriteOfMoreThanAMessageMayHaveIsRefused) {
  key->length64 = true;
  PacketRef p = remote(BthOp::kWriteFirst, kFirstPsn, BlockRig::kMtu, (1u << 31) + 1);
  receive(p);
  expect_reply(0, kFirstPsn, nak(NakCode::kInvalidReq));
  EXPECT_FALSE(holds(kRemote, 1));
}

// Nobody is told of an unreliable connection's lost messages, but a receive queue that is broken is.
TEST_F(ResponderTest, AnUnreliableQpFailsWithItsReceiveQueue) {
  qp->type = QpType::kUc;
  prm::DataSeg data{};
  data.byte_count = kBufferLen | prm::InlineSeg::kFlag;  // no receive WQE has data of its own
  r.store(BlockRig::kQpRing, data);
  r.store(BlockRig::kQpDbr + offsetof(prm::QpDbr, rcv), prm::be32(++posted));
  PacketRef p = request(BthOp::kSendOnly, kFirstPsn, 64);
  p->opcode = static_cast<std::uint8_t>(static_cast<unsigned>(BthOp::kSendOnly) | prm::bth::kUc);
  receive(p);
  EXPECT_THAT(r.errors.events, ElementsAre(event(EqeType::kWqCatas)));
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.err_cqe(0).syndrome, static_cast<unsigned>(CqeSyndrome::kLocalQpOp));
}

TEST_F(ResponderTest, UnreliableWritesDoNotQueueForTheHostWithoutEnd) {
  qp->type = QpType::kUc;
  const auto write = [&](std::uint32_t psn) {
    PacketRef p = remote(BthOp::kWriteOnly, psn, 64, 64);
    p->opcode = static_cast<std::uint8_t>(static_cast<unsigned>(BthOp::kWriteOnly) | prm::bth::kUc);
    receive(p);
  };
  write(kFirstPsn);  // its context is known from now on
  ASSERT_TRUE(holds(kRemote, 64));
  std::fill_n(&r.host.memory[kRemote], 64, std::uint8_t{0});
  const std::vector<std::uint8_t> bytes(4096);
  while (r.dma.stalled_until() < sim_now() + from_ns(2e6))
    r.dma.post_write(sim_now(), kBuffer, bytes.data(), static_cast<std::uint32_t>(bytes.size()),
                     WriteOwner(BlockRig::kFunction));
  write(kFirstPsn + 1);
  r.run_ns(4'000'000);
  EXPECT_FALSE(holds(kRemote, 64)) << "it would have waited for 2 ms";
  write(kFirstPsn + 2);
  EXPECT_TRUE(holds(kRemote, 64));
}

TEST_F(ResponderTest, AnUnreliableWriteThatIsRefusedLeavesItsReceiveWqe) {
  qp->type = QpType::kUc;
  post_receive();
  const auto of_uc = [](PacketRef p, BthOp op) {
    p->opcode = static_cast<std::uint8_t>(static_cast<unsigned>(op) | prm::bth::kUc);
    return p;
  };
  receive(
      of_uc(remote(BthOp::kWriteFirst, kFirstPsn, BlockRig::kMtu, BlockRig::kMtu + 8), BthOp::kWriteFirst));
  key->rights.remote_write = false;  // taken away between the packets
  receive(of_uc(remote(BthOp::kWriteLastImm, kFirstPsn + 1, 8, 0), BthOp::kWriteLastImm));
  EXPECT_EQ(completions(), 0u);
  EXPECT_TRUE(r.errors.events.empty());
  PacketRef p = of_uc(request(BthOp::kSendOnly, kFirstPsn + 2, 64), BthOp::kSendOnly);
  receive(p);
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kRespSend);
}

// A READ without its pages is to be asked for again, also when the request behind it has been refused.
TEST_F(ResponderTest, AReadIsAskedForAgainWhileARefusalWaits) {
  std::iota(&r.host.memory[kRemote], &r.host.memory[kRemote] + 64, std::uint8_t{1});
  PacketRef read = remote(BthOp::kReadReq, kFirstPsn, 0, 64);
  r.response_turns.to = nullptr;  // no turn yet: it is owed
  receive(read);
  ASSERT_EQ(qp->resp.resources.size(), 1u);
  qp->resp.resources.front().parked = true;  // as read_fault() leaves it
  PacketRef bad = remote(BthOp::kWriteOnly, kFirstPsn + 1, 64, 64);
  bad->rkey ^= 0xff;
  receive(bad);
  EXPECT_TRUE(qp->resp.failing);
  EXPECT_TRUE(r.wire.sent.empty());
  r.response_turns.to = &r.responder;
  receive(remote(BthOp::kReadReq, kFirstPsn, 0, 64));
  ASSERT_EQ(r.wire.sent.size(), 2u);
  EXPECT_EQ(r.sent_op(0), BthOp::kReadRespOnly);
  expect_reply(1, kFirstPsn + 1, nak(NakCode::kRemoteAccess));
}

TEST_F(ResponderTest, AQpThatIsNotSetUpForWritesRefusesThemAsInvalid) {
  qp->rwe = false;
  receive(remote(BthOp::kWriteOnly, kFirstPsn, 100, 100));
  expect_reply(0, kFirstPsn, nak(NakCode::kInvalidReq));
  EXPECT_THAT(r.errors.events, ElementsAre(event(EqeType::kWqInvalidReq)));
}

TEST_F(ResponderTest, AMiddleWithoutAFirstIsRefusedAsInvalid) {
  receive(request(BthOp::kSendMiddle, kFirstPsn, BlockRig::kMtu));
  expect_reply(0, kFirstPsn, nak(NakCode::kInvalidReq));
  EXPECT_EQ(qp->state, QpState::kErr);
}

TEST_F(ResponderTest, AReadIsAnsweredWithPacketsOfThePathMtu) {
  std::iota(&r.host.memory[kRemote], &r.host.memory[kRemote] + BlockRig::kMtu + 10, std::uint8_t{1});
  receive(remote(BthOp::kReadReq, kFirstPsn, 0, BlockRig::kMtu + 10));
  ASSERT_EQ(r.wire.sent.size(), 2u);
  EXPECT_EQ(r.sent_op(0), BthOp::kReadRespFirst);
  EXPECT_EQ(r.sent_op(1), BthOp::kReadRespLast);
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn, kFirstPsn + 1));
  EXPECT_EQ(r.sent(0).payload_len, BlockRig::kMtu);
  ASSERT_EQ(r.sent(1).payload_len, 10u);
  EXPECT_EQ(r.sent(1).data()[0], static_cast<std::uint8_t>(BlockRig::kMtu + 1));
  EXPECT_EQ(qp->resp.expected_psn, kFirstPsn + 2) << "a READ takes the PSNs of its responses";
}

// A READ that is asked for again from its middle on is a message of its own, and may be shorter.
TEST_F(ResponderTest, APartOfAReadIsAskedForAgain) {
  constexpr std::uint32_t kMtu = BlockRig::kMtu;
  for (std::uint32_t i = 0; i < 4 * kMtu; ++i)
    r.host.memory[kRemote + i] = static_cast<std::uint8_t>(i / kMtu + 1);
  receive(remote(BthOp::kReadReq, kFirstPsn, 0, 4 * kMtu));
  ASSERT_EQ(r.wire.sent.size(), 4u);
  const auto again = [&](std::uint32_t from, std::uint32_t len) {
    r.wire.sent.clear();
    PacketRef p = remote(BthOp::kReadReq, kFirstPsn + from, 0, len);
    p->va += std::uint64_t{from} * kMtu;
    receive(p);
  };
  again(1, 3 * kMtu);
  ASSERT_EQ(r.wire.sent.size(), 3u);
  EXPECT_EQ(r.sent_op(0), BthOp::kReadRespFirst);
  EXPECT_EQ(r.sent_op(1), BthOp::kReadRespMiddle);
  EXPECT_EQ(r.sent_op(2), BthOp::kReadRespLast);
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn + 1, kFirstPsn + 2, kFirstPsn + 3));
  EXPECT_EQ(r.sent(0).data()[0], 2);
  again(2, kMtu);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent_op(0), BthOp::kReadRespOnly);
  EXPECT_EQ(r.sent(0).data()[0], 3);
  again(0, kMtu + 1);
  ASSERT_EQ(r.wire.sent.size(), 2u);
  EXPECT_EQ(r.sent_op(1), BthOp::kReadRespLast);
  EXPECT_EQ(r.sent(1).payload_len, 1u);
  again(3, kMtu);
  ASSERT_EQ(r.wire.sent.size(), 1u) << "what was done without is still known";
  EXPECT_EQ(r.sent(0).data()[0], 4);
  again(3, kMtu + 1);
  EXPECT_TRUE(r.wire.sent.empty()) << "more than was asked for first";
  // Parts that are asked for before the first has its turn.
  r.response_turns.to = nullptr;
  again(1, kMtu);
  again(2, 2 * kMtu);
  r.response_turns.to = &r.responder;
  qp->resp.turn_at = kNever;
  r.scheduler.wake_responder(sim_now(), *qp);
  r.run_ns(10'000);
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn + 1, kFirstPsn + 2, kFirstPsn + 3));
}

TEST_F(ResponderTest, AnAtomicReturnsTheOldValueAndADuplicateDoesNotExecuteAgain) {
  r.store(kRemote, std::uint64_t{40});
  PacketRef p = remote(BthOp::kFetchAdd, kFirstPsn, 0, 0);
  p->swap_add = 2;
  receive(p);
  EXPECT_EQ(r.load<std::uint64_t>(kRemote), 42u);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent_op(0), BthOp::kAtomicAck);
  EXPECT_EQ(r.sent(0).swap_add, 40u);
  receive(p);
  EXPECT_EQ(r.load<std::uint64_t>(kRemote), 42u);
  ASSERT_EQ(r.wire.sent.size(), 2u);
  EXPECT_EQ(r.sent(1).swap_add, 40u);
}

TEST_F(ResponderTest, AQpThatFailsFlushesItsReceiveWqes) {
  r.errors.engine = &r.responder;
  post_receive();
  post_receive();
  receive(request(BthOp::kSendMiddle, kFirstPsn, BlockRig::kMtu));
  ASSERT_EQ(completions(), 2u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kRespErr);
  EXPECT_EQ(r.err_cqe(1).syndrome, static_cast<unsigned>(CqeSyndrome::kWrFlush));
  post_receive();
  r.run_ns(50'000);
  EXPECT_EQ(completions(), 3u) << "late posts are found too";
}

}  // namespace
}  // namespace hcasim::test
