// SPDX-License-Identifier: BSD-3-Clause
// The requester by itself: WQEs of a send queue in, packets out; answers in, completions out. The scheduler's
// turns come to it; what the far end says is made by hand.
#include "model/req/requester.h"

#include <gmock/gmock.h>

#include "block_rig.h"
#include "prm/wqe.h"

namespace hcasim::test {
namespace {

using prm::Aeth;
using prm::BthOp;
using prm::CqeOp;
using prm::CqeSyndrome;
using prm::WqeOp;
using ::testing::ElementsAre;

constexpr std::uint32_t kFirstPsn = 100, kRkey = 0xabcd01;
constexpr std::uint64_t kRaddr = 0x7700001000;

class RequesterTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    r.request_turns.to = &r.requester;
    r.errors.engine = &r.requester;
    completed = r.cqs.completions();
    r.make_eq();
    r.make_cq();
    AccessRights rights;
    rights.local_write = true;
    key = &r.make_key(0x11, rights);
    qp = &r.make_qp();
    qp->req.next_psn = qp->req.una_psn = kFirstPsn;
    for (unsigned i = 0; i < BlockRig::kDataBytes; ++i)
      r.host.memory[BlockRig::kData + i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  }
  // A WQE of one data segment, a WQEBB each; rung() brings it to the requester.
  void post(WqeOp op, std::uint32_t len, bool signaled = true) {
    const std::uint64_t at =
        BlockRig::kQpRing + BlockRig::kSqOffset + 64 * (posted % (1u << BlockRig::kLogSq));
    const bool remote = op == WqeOp::kRdmaWrite || op == WqeOp::kRdmaRead;
    prm::CtrlSeg ctrl{};
    ctrl.set(op, posted, BlockRig::kQpn, remote ? 3 : 2, signaled ? prm::kCeAlways : prm::kCeOnError);
    r.store(at, ctrl);
    prm::RaddrSeg raddr{};
    raddr.raddr = kRaddr;
    raddr.rkey = kRkey;
    if (remote) r.store(at + 16, raddr);
    prm::DataSeg data{};
    data.byte_count = len;
    data.lkey = key->wire_key();
    data.addr = BlockRig::kData;
    r.store(at + (remote ? 32 : 16), data);
    ++posted;
    r.store(BlockRig::kQpDbr + offsetof(prm::QpDbr, snd), prm::be32(posted));
  }
  void ring() {
    ASSERT_EQ(r.scheduler.doorbell(sim_now(), BlockRig::kFunction, BlockRig::kQpn,
                                   static_cast<std::uint16_t>(posted - 1), BlockRig::kUarPage),
              DoorbellFate::kTaken);
    settle();
  }
  static void settle() { BlockRig::run_ns(20'000); }
  void answer(BthOp op, std::uint32_t psn, std::uint8_t aeth = Aeth::kAck | Aeth::kInvalidCredits,
              const std::uint8_t* bytes = nullptr, std::uint32_t len = 0) {
    PacketRef p = PacketPool::make();
    p->opcode = static_cast<std::uint8_t>(op) | prm::bth::kRc;
    p->dest_qpn = BlockRig::kQpn;
    p->psn = psn;
    p->aeth = aeth;
    p->payload_len = len;
    if (len) std::memcpy(p->data(), bytes, len);
    r.requester.receive(sim_now(), *qp, p);
    settle();
  }
  void ack(std::uint32_t psn) { answer(BthOp::kAck, psn); }
  void nak(std::uint32_t psn, prm::NakCode code) {
    answer(BthOp::kAck, psn, static_cast<std::uint8_t>(Aeth::kNak | static_cast<std::uint8_t>(code)));
  }
  unsigned completions() const { return static_cast<unsigned>(r.cqs.completions() - completed); }

  Qp* qp = nullptr;
  Mkey* key = nullptr;
  std::uint16_t posted = 0;
  // The counts are of all tests so far.
  const std::uint64_t retransmits = r.requester.retransmits(), timeouts = r.requester.timeouts();
  std::uint64_t completed = 0;
};

TEST_F(RequesterTest, ASendWqeBecomesOnePacketWithItsPsn) {
  post(WqeOp::kSend, 100);
  ring();
  ASSERT_EQ(r.wire.sent.size(), 1u);
  const Packet& p = r.sent(0);
  EXPECT_EQ(r.sent_op(0), BthOp::kSendOnly);
  EXPECT_EQ(p.psn, kFirstPsn);
  EXPECT_EQ(p.dest_qpn, BlockRig::kRemoteQpn);
  EXPECT_EQ(p.dlid, BlockRig::kRemoteLid);
  EXPECT_TRUE(p.ack_req);
  ASSERT_EQ(p.payload_len, 100u);
  EXPECT_EQ(std::memcmp(p.data(), &r.host.memory[BlockRig::kData], 100), 0);
  EXPECT_EQ(completions(), 0u) << "nothing is complete before it is acknowledged";
}

// The CQE that frees the places of WQEs without one does not wait for what is posted behind them.
TEST_F(RequesterTest, AnAckIsAskedForWithACqeThatStandsForOthers) {
  for (const WqeOp op : {WqeOp::kSend, WqeOp::kRdmaWrite}) {  // one by one, and as messages that go together
    r.wire.sent.clear();
    for (const bool signaled : {false, true, false, true, true, false}) post(op, 64, signaled);
    ring();
    std::vector<bool> asked;
    for (const auto& [t, p] : r.wire.sent) {
      asked.resize(asked.size() + p->packets - 1U);
      asked.push_back(p->ack_req);
    }
    EXPECT_THAT(asked, ElementsAre(false, true, false, true, false, true)) << static_cast<unsigned>(op);
    ack(r.wire.sent.back().second->psn + r.wire.sent.back().second->packets - 1U);
  }
}

TEST_F(RequesterTest, AMessageIsCutIntoPacketsOfItsPathMtu) {
  post(WqeOp::kRdmaWrite, 2 * BlockRig::kMtu + 1);
  ring();
  ASSERT_EQ(r.wire.sent.size(), 3u);
  EXPECT_EQ(r.sent_op(0), BthOp::kWriteFirst);
  EXPECT_EQ(r.sent_op(1), BthOp::kWriteMiddle);
  EXPECT_EQ(r.sent_op(2), BthOp::kWriteLast);
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn, kFirstPsn + 1, kFirstPsn + 2));
  EXPECT_EQ(r.sent(0).va, kRaddr);
  EXPECT_EQ(r.sent(0).dma_len, 2 * BlockRig::kMtu + 1);
  EXPECT_EQ(r.sent(1).payload_len, BlockRig::kMtu);
  EXPECT_EQ(r.sent(2).payload_len, 1u);
}

TEST_F(RequesterTest, AnAckCompletesAllWqesUpToItsPsn) {
  for (int i = 0; i < 3; ++i) post(WqeOp::kSend, 64);
  ring();
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn, kFirstPsn + 1, kFirstPsn + 2));
  ack(kFirstPsn + 1);
  ASSERT_EQ(completions(), 2u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kReq);
  EXPECT_EQ(r.cqe(0).wqe_counter, 0);
  EXPECT_EQ(r.cqe(1).wqe_counter, 1);
  EXPECT_EQ(r.cqe(1).qpn(), BlockRig::kQpn);
  EXPECT_EQ(qp->req.una_psn, kFirstPsn + 2);
  ack(kFirstPsn + 2);
  EXPECT_EQ(completions(), 3u);
}

TEST_F(RequesterTest, WqesThatAskForNoCompletionGetNone) {
  post(WqeOp::kSend, 64, false);
  post(WqeOp::kSend, 64, true);
  ring();
  ack(kFirstPsn + 1);
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.cqe(0).wqe_counter, 1);
  EXPECT_TRUE(qp->req.window.empty());
}

TEST_F(RequesterTest, AcksOfWhatWasNotSentAreIgnored) {
  post(WqeOp::kSend, 64);
  ring();
  ack(kFirstPsn + 1);
  ack(kFirstPsn - 1);
  EXPECT_EQ(completions(), 0u);
  EXPECT_EQ(qp->req.una_psn, kFirstPsn);
}

TEST_F(RequesterTest, ANakRetriesFromItsPsn) {
  for (int i = 0; i < 3; ++i) post(WqeOp::kSend, 64);
  ring();
  r.wire.sent.clear();
  nak(kFirstPsn + 1, prm::NakCode::kPsnSeqErr);
  EXPECT_EQ(completions(), 1u) << "it acknowledges what is before it";
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn + 1, kFirstPsn + 2));
  EXPECT_EQ(r.requester.retransmits() - retransmits, 1u);
  EXPECT_EQ(r.q_counters[0].packet_seq_err, 1u);
}

TEST_F(RequesterTest, RetriesExhaustedFailTheOldestWqe) {
  qp->path.ack_timeout = 1;  // 8.192 us
  qp->retry_count = qp->req.retries_left = 2;
  post(WqeOp::kSend, 64);
  post(WqeOp::kSend, 64);
  ring();
  r.run_ns(100'000);
  EXPECT_EQ(r.requester.timeouts() - timeouts, 3u);
  EXPECT_THAT(r.sent_psns(),
              ElementsAre(kFirstPsn, kFirstPsn + 1, kFirstPsn, kFirstPsn + 1, kFirstPsn, kFirstPsn + 1));
  ASSERT_EQ(completions(), 2u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kReqErr);
  EXPECT_EQ(r.err_cqe(0).syndrome, static_cast<unsigned>(CqeSyndrome::kTransportRetryExc));
  EXPECT_EQ(r.err_cqe(0).wqe_counter, 0);
  EXPECT_EQ(r.err_cqe(1).syndrome, static_cast<unsigned>(CqeSyndrome::kWrFlush));
  EXPECT_EQ(qp->state, QpState::kErr);
}

TEST_F(RequesterTest, AnRnrNakWaitsForItsTimerAndThenSendsAgain) {
  post(WqeOp::kSend, 64);
  ring();
  r.wire.sent.clear();
  const std::uint8_t code = 12;  // 0.64 ms
  const Time nacked = sim_now();
  answer(BthOp::kAck, kFirstPsn, Aeth::kRnrNak | code);
  r.run_ns(600'000);
  EXPECT_TRUE(r.wire.sent.empty());
  r.run_ns(100'000);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent(0).psn, kFirstPsn);
  EXPECT_GE(r.wire.sent[0].first, nacked + from_ns(640'000));
}

TEST_F(RequesterTest, ARefusalFailsItsWqeWithTheRefusalsSyndrome) {
  post(WqeOp::kRdmaWrite, 64);
  post(WqeOp::kRdmaWrite, 64);
  ring();
  nak(kFirstPsn + 1, prm::NakCode::kRemoteAccess);
  ASSERT_EQ(completions(), 2u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kReq) << "the one before it has arrived";
  EXPECT_EQ(r.err_cqe(1).syndrome, static_cast<unsigned>(CqeSyndrome::kRemoteAccess));
  EXPECT_THAT(r.errors.events, ElementsAre(0)) << "no async event";
}

TEST_F(RequesterTest, AReadResponseLandsInItsBufferAndCompletes) {
  post(WqeOp::kRdmaRead, 32);
  ring();
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent_op(0), BthOp::kReadReq);
  EXPECT_EQ(r.sent(0).va, kRaddr);
  EXPECT_EQ(r.sent(0).rkey, kRkey);
  EXPECT_EQ(r.sent(0).dma_len, 32u);
  std::uint8_t bytes[32];
  std::fill(std::begin(bytes), std::end(bytes), 0xc3);
  answer(BthOp::kReadRespOnly, kFirstPsn, Aeth::kAck | Aeth::kInvalidCredits, bytes, sizeof bytes);
  EXPECT_EQ(std::memcmp(&r.host.memory[BlockRig::kData], bytes, sizeof bytes), 0);
  EXPECT_NE(r.host.memory[BlockRig::kData + 32], 0xc3);
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.cqe(0).byte_cnt, 32u);
}

TEST_F(RequesterTest, AReadResponseOfTheWrongLengthFailsTheRead) {
  post(WqeOp::kRdmaRead, 32);
  ring();
  const std::uint8_t bytes[16] = {};
  const std::uint8_t before = r.host.memory[BlockRig::kData + 1];
  answer(BthOp::kReadRespOnly, kFirstPsn, Aeth::kAck | Aeth::kInvalidCredits, bytes, sizeof bytes);
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.err_cqe(0).syndrome, static_cast<unsigned>(CqeSyndrome::kBadResp));
  EXPECT_EQ(r.host.memory[BlockRig::kData + 1], before);
}

TEST_F(RequesterTest, AWqeWithAKeyThatGrantsNothingSendsNothingAndFails) {
  key->pd = BlockRig::kPd + 1;
  post(WqeOp::kSend, 64);
  ring();
  EXPECT_TRUE(r.wire.sent.empty());
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.err_cqe(0).syndrome, static_cast<unsigned>(CqeSyndrome::kLocalProt));
  EXPECT_EQ(qp->state, QpState::kErr);
}

TEST_F(RequesterTest, ADoorbellRecordThatJumpsBreaksTheQueue) {
  r.store(BlockRig::kQpDbr + offsetof(prm::QpDbr, snd), prm::be32((1u << BlockRig::kLogSq) + 1));
  posted = 1;
  ring();
  EXPECT_TRUE(r.wire.sent.empty());
  EXPECT_THAT(r.errors.events, ElementsAre(static_cast<unsigned>(prm::EqeType::kWqCatas)));
}

TEST_F(RequesterTest, ADrainedQueueSendsNothingNewAndHasNotFailed) {
  post(WqeOp::kSend, 64);
  ring();
  qp->state = QpState::kSqd;
  qp->draining = true;
  r.requester.qp_changed(sim_now(), *qp, QpState::kRts);
  EXPECT_TRUE(qp->draining) << "a send is in flight";
  post(WqeOp::kSend, 64);
  ring();
  EXPECT_EQ(r.wire.sent.size(), 1u);
  ack(kFirstPsn);
  EXPECT_FALSE(qp->draining);
  EXPECT_TRUE(r.firmware.failed.empty());
  EXPECT_EQ(r.wire.sent.size(), 1u);
}

// A WQE that comes with its doorbell and says that it is longer than what is posted: what the ring held
// before is not executed.
TEST_F(RequesterTest, APushedWqeIsNoLongerThanWhatIsPosted) {
  for (int i = 0; i < 3; ++i) post(WqeOp::kSend, 64);  // old contents
  posted = 0;
  post(WqeOp::kSend, 100);
  std::array<std::uint8_t, 256> pushed{};
  std::memcpy(pushed.data(), &r.host.memory[BlockRig::kQpRing + BlockRig::kSqOffset], pushed.size());
  prm::CtrlSeg ctrl{};
  ctrl.set(WqeOp::kSend, 0, BlockRig::kQpn, 16, prm::kCeAlways);  // four WQEBBs
  std::memcpy(pushed.data(), &ctrl, sizeof ctrl);
  ASSERT_EQ(r.scheduler.blueflame(sim_now(), BlockRig::kFunction, BlockRig::kQpn, pushed.data(),
                                  pushed.size(), BlockRig::kUarPage),
            DoorbellFate::kTaken);
  settle();
  EXPECT_EQ(qp->req.fetched, 1u);
  ASSERT_EQ(r.wire.sent.size(), 1u);
  EXPECT_EQ(r.sent(0).payload_len, 100u);
}

// More than 2^23 PSNs under way nobody could tell from those that are acknowledged (IBTA 9.7.1).
TEST_F(RequesterTest, ReadsTakeNoMorePsnsThanCanBeToldApart) {
  qp->mtu = 256;
  qp->log_sra_max = 4;
  AccessRights rights;
  rights.local_write = true;
  key = &r.make_key(0x12, rights);
  key->length64 = true;
  key->mode = AccessMode::kPa;
  for (int i = 0; i < 3; ++i) post(WqeOp::kRdmaRead, 1u << 30);  // 2^22 packets each
  ring();
  EXPECT_THAT(r.sent_psns(), ElementsAre(kFirstPsn, kFirstPsn + (1u << 22)));
  const std::uint8_t bytes[256] = {};
  answer(BthOp::kReadRespFirst, kFirstPsn, Aeth::kAck | Aeth::kInvalidCredits, bytes, sizeof bytes);
  EXPECT_EQ(qp->req.window[0].answered, 1u) << "no ghost";
  EXPECT_EQ(r.wire.sent.size(), 2u) << "a message of 2^22 packets needs more room than one";
}

TEST_F(RequesterTest, WhatIsDoneBehindAFailureIsFlushed) {
  post(WqeOp::kRdmaWrite, 64);
  post(WqeOp::kNop, 0);
  ring();
  EXPECT_EQ(completions(), 0u) << "in their order";
  nak(kFirstPsn, prm::NakCode::kRemoteAccess);
  ASSERT_EQ(completions(), 2u);
  EXPECT_EQ(r.err_cqe(0).syndrome, static_cast<unsigned>(CqeSyndrome::kRemoteAccess));
  EXPECT_EQ(r.cqe(1).opcode(), CqeOp::kReqErr);
  EXPECT_EQ(r.err_cqe(1).syndrome, static_cast<unsigned>(CqeSyndrome::kWrFlush));
}

// A long message whose packets so far are acknowledged, the next ones held back: nothing is awaited.
TEST_F(RequesterTest, NoTimerRunsWhileAllThatWasSentIsAcknowledged) {
  qp->path.ack_timeout = 4;  // 65.5 us
  qp->retry_count = qp->req.retries_left = 1;
  post(WqeOp::kRdmaWrite, 3 * BlockRig::kMtu);
  ring();
  ASSERT_EQ(r.wire.sent.size(), 3u);
  SendWqe& w = qp->req.window[0];
  w.sent = 1;  // the others are still to come
  qp->req.next_to_send = 0;
  qp->req.next_psn = kFirstPsn + 3;
  qp->req.rnr_until = kNever / 2;  // no turn meanwhile
  ack(kFirstPsn);
  r.run_ns(1'000'000);
  EXPECT_EQ(r.requester.timeouts() - timeouts, 0u);
  EXPECT_EQ(qp->req.retries_left, 1u);
}

}  // namespace
}  // namespace hcasim::test
