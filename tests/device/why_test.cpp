// SPDX-License-Identifier: BSD-3-Clause
// `hcasim-trace why`: what it says of WQEs that failed for a known reason, from the trace of a real run. One
// HCA a process, so each test is a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "rule_check.h"
#include "traces/story.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

using ::testing::HasSubstr;
using S = prm::CqeSyndrome;

class Why : public ::testing::Test {
 protected:
  Why() { close(mkstemp(path_)); }
  ~Why() override { unlink(path_); }

  // Runs `scenario` on a probed HCA; the trace ends with it.
  void run(const std::function<void(Device&)>& scenario, const std::string& options = "",
           const std::string& link = "ib") {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca("link=" + link + options + ",trace=" + path_);
    machine.start();
    Device device(function);
    device.probe();
    scenario(device);
    hca_destroy(function.handle());
    traces::Reader reader;
    std::string err;
    ASSERT_TRUE(reader.open(path_, &err)) << err;
    traces::Record r;
    std::vector<std::uint8_t> blob;
    while (reader.next(r, blob)) analysis_.add(r, blob);
    EXPECT_EQ(reader.warning(), "");
    analysis_.finish();
  }

  // What is said of a WQE: its sentences, and the words of the records that prove them.
  std::string said(std::uint32_t qpn, std::uint32_t serial, int status) {
    const traces::WqeRow* w = traces::find_wqe(analysis_, {0, qpn, serial, 0});
    if (w == nullptr) return "no such WQE";
    EXPECT_EQ(w->status, status);
    traces::Story story;
    std::string err;
    EXPECT_TRUE(traces::tell(path_, analysis_, *w, &story, &err)) << err;
    std::string text;
    for (const traces::Reason& reason : traces::why(analysis_, story)) {
      text += reason.text + "\n";
      for (const traces::Record& r : reason.proof) text += "  " + traces::in_words(r) + "\n";
    }
    return text;
  }
  std::string said(std::uint32_t qpn, std::uint32_t serial, S status) {
    return said(qpn, serial, static_cast<int>(status));
  }

  // The same of the last command of an opcode.
  std::string said_of_command(std::uint16_t opcode) const {
    const traces::CommandRow* last = nullptr;
    for (const traces::CommandRow& c : analysis_.commands())
      if (c.opcode == opcode) last = &c;
    if (last == nullptr) return "no such command";
    std::string text;
    for (const traces::Reason& reason : traces::why(analysis_, *last)) {
      text += reason.text + "\n";
      for (const traces::Record& r : reason.proof) text += "  " + traces::in_words(r) + "\n";
    }
    return text;
  }

  // Of a QUERY_ISSI that meets such a fault, so many ns later.
  std::string said_of_query(
      const std::string& fault, std::int64_t ns, const std::function<void(Device&)>& then = [](Device&) {}) {
    run([&](Device& d) {
      ASSERT_EQ(d.function().inject(fault), "");
      d.cmd().submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                     [](const CommandResult&) {});
      d.machine().advance(ns);
      then(d);
    });
    return said_of_command(prm::op::QUERY_ISSI);
  }

  char path_[32] = "/tmp/hcasim-why-test-XXXXXX";
  traces::Analysis analysis_;
  std::uint32_t qpn_ = 0, peer_ = 0;
};

QpAttr impatient() {
  QpAttr attr;
  attr.ack_timeout = 2;
  attr.retry_count = 2;
  attr.rnr_retry = 2;
  return attr;
}

TEST_F(Why, RetriesExceededAsThePeerIsGone) {
  run([&](Device& d) {
    TwoQps w(d, impatient());
    qpn_ = w.a->qpn();
    peer_ = w.b->qpn();
    w.b.reset();
    w.a->post(w.wr(WqeOp::kRdmaWrite, 100));
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kTransportRetryExc);
    w.a->post(w.wr(WqeOp::kRdmaWrite, 100));
    w.cq.wait_one();
  });
  const std::string text = said(qpn_, 0, S::kTransportRetryExc);
  EXPECT_THAT(text, HasSubstr("The ACK timer ran out 3 times"));
  EXPECT_THAT(text, HasSubstr("0 retries left"));
  char gone[80];
  std::snprintf(gone, sizeof gone, "is gone: QP %#x of HCA 0 was destroyed", peer_);
  EXPECT_THAT(text, HasSubstr(gone));
  EXPECT_THAT(text, HasSubstr("there is no QP of that number"));
  char first[80];
  std::snprintf(first, sizeof first, "The first that failed on this QP is 0:%#x:0", qpn_);
  EXPECT_THAT(said(qpn_, 1, S::kWrFlush), HasSubstr(first));
}

TEST_F(Why, RetriesExceededOverALinkThatLosesAll) {
  run([&](Device& d) {
    TwoQps w(d, impatient());
    qpn_ = w.a->qpn();
    ASSERT_EQ(d.function().inject("drop=1"), "");
    w.a->post(w.wr(WqeOp::kRdmaWrite, 100));
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kTransportRetryExc);
    ASSERT_EQ(d.function().inject("none"), "");
  });
  EXPECT_THAT(said(qpn_, 0, S::kTransportRetryExc),
              HasSubstr("3 packets of it were dropped: the fault generator took it"));
}

TEST_F(Why, RnrRetriesExceeded) {
  run([&](Device& d) {
    TwoQps w(d, impatient());
    qpn_ = w.a->qpn();
    w.a->post(w.wr(WqeOp::kSend, 100));
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kRnrRetryExc);
  });
  const std::string text = said(qpn_, 0, S::kRnrRetryExc);
  EXPECT_THAT(text, HasSubstr("had no receive WQE for it, said so 3 times"));
  EXPECT_THAT(text, HasSubstr("wait 10 us"));
}

TEST_F(Why, RemoteAccessBeyondTheRegion) {
  breaks({"rkey-bounds"});
  run([&](Device& d) {
    TwoQps w(d);
    qpn_ = w.a->qpn();
    SendWr beyond = w.wr(WqeOp::kRdmaWrite, 100);
    beyond.raddr = w.mr.start() + (1 << 16) - 40;
    w.a->post(beyond);
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kRemoteAccess);
  });
  const std::string text = said(qpn_, 0, S::kRemoteAccess);
  EXPECT_THAT(text, HasSubstr("refused the access to its memory"));
  EXPECT_THAT(text, HasSubstr("it covers 65536 bytes"));
  EXPECT_THAT(text, HasSubstr("100 bytes from that address on end 60 bytes behind it."));
}

TEST_F(Why, RemoteAccessWithoutTheRight) {
  breaks({"rkey-rights"});
  run([&](Device& d) {
    TwoQps w(d);
    qpn_ = w.a->qpn();
    Mr read_only(d, Mr::of(w.pd, w.memory, kLocalRead | kRemoteRead));
    SendWr wrong = w.wr(WqeOp::kRdmaWrite, 100);
    wrong.rkey = read_only.key();
    wrong.raddr = read_only.start();
    w.a->post(wrong);
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kRemoteAccess);
  });
  const std::string text = said(qpn_, 0, S::kRemoteAccess);
  EXPECT_THAT(text, HasSubstr("with these rights: local read, remote read."));
  EXPECT_THAT(text, HasSubstr("It has no right of remote write."));
}

TEST_F(Why, LocalProtectionOfADestroyedKey) {
  breaks({"mr-key"});
  run([&](Device& d) {
    TwoQps w(d);
    qpn_ = w.a->qpn();
    SendWr wrong = w.wr(WqeOp::kRdmaWrite, 100);
    {
      Mr other(d, Mr::of(w.pd, w.memory, kAllAccess));
      wrong.sges[0].lkey = other.key();
    }
    w.a->post(wrong);
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kLocalProt);
  });
  const std::string text = said(qpn_, 0, S::kLocalProt);
  EXPECT_THAT(text, HasSubstr("not let to the WQE's own memory"));
  EXPECT_THAT(text, HasSubstr("The key was destroyed before"));
}

TEST_F(Why, MessageLongerThanItsReceiveWqe) {
  breaks({"receive-length"});
  run([&](Device& d) {
    TwoQps w(d);
    qpn_ = w.a->qpn();
    w.b->post_recv({{w.mr.start(), w.mr.key(), 99}});
    w.a->post(w.wr(WqeOp::kSend, 100));
    EXPECT_EQ(w.cq.wait_one().syndrome, S::kRemoteInvalReq);
  });
  const std::string text = said(qpn_, 0, S::kRemoteInvalReq);
  EXPECT_THAT(text, HasSubstr("The message of 100 bytes is longer than the receive WQE that it met"));
}

TEST_F(Why, CqOverrun) {
  breaks({"cq-overrun"});
  run([&](Device& d) {
    TwoQps w(d);
    CqOptions small;
    small.log_size = 2;
    Cq cq(d, small);
    Qp a(d, w.pd, cq, cq), b(d, w.pd, w.rcq, w.rcq);
    connect_pair(a, b);
    qpn_ = a.qpn();
    for (int i = 0; i < 8; ++i) a.post(w.wr(WqeOp::kRdmaWrite, 8));
    d.machine().advance(1'000'000);
  });
  std::string text;
  for (std::uint32_t serial = 0; serial < 8 && text.empty(); ++serial) {
    const traces::WqeRow* w = traces::find_wqe(analysis_, {0, qpn_, serial, 0});
    ASSERT_NE(w, nullptr);
    if (!w->has_cqe) text = said(qpn_, serial, w->status);
  }
  EXPECT_THAT(text, HasSubstr("Its CQE was never written: CQ"));
  EXPECT_THAT(text, HasSubstr("was full"));
  EXPECT_THAT(text, HasSubstr("had no room: producer 4, consumer 0"));
}

TEST_F(Why, SlowBecauseThePeerWasNotReady) {
  run([&](Device& d) {
    TwoQps w(d);
    qpn_ = w.a->qpn();
    for (int i = 0; i < 9; ++i) w.b->post_recv({{w.mr.start(), w.mr.key(), 4096}});
    for (int i = 0; i < 9; ++i) {
      w.a->post(w.wr(WqeOp::kSend, 100));
      w.cq.wait_one();
    }
    w.a->post(w.wr(WqeOp::kSend, 100));
    d.machine().advance(5'000);
    w.b->post_recv({{w.mr.start(), w.mr.key(), 4096}});
    w.cq.wait_one();
  });
  const std::string text = said(qpn_, 9, 0);
  EXPECT_THAT(text, HasSubstr("It succeeded"));
  EXPECT_THAT(text, HasSubstr("us, a step that most like it do not have."));
  EXPECT_THAT(text, HasSubstr("The other end had no receive WQE for it at first."));
}

TEST_F(Why, SlowBecauseOfCongestion) {
  run(
      [&](Device& d) {
        TwoQps w(d);
        qpn_ = w.a->qpn();
        for (int i = 0; i < 10; ++i) {
          if (i == 9) {
            ASSERT_EQ(d.function().inject("ecn=1"), "");
          }
          w.a->post(w.wr(WqeOp::kRdmaWrite, 30'000));
          w.cq.wait_one();
        }
      },
      "", "eth");
  const std::string text = said(qpn_, 9, 0);
  EXPECT_THAT(text, HasSubstr("Its QP is slowed down by congestion control."));
}

// A queue that is always full: each WQE is posted long before the card fetches it, and has the doorbell of
// its own post, not of whichever was rung when it was fetched.
TEST_F(Why, AFullQueuesWqesHaveTheirOwnDoorbells) {
  constexpr unsigned kDepth = 96, kWqes = 480;
  struct Post {
    std::int64_t before, after;  // ns
  };
  std::vector<Post> posts;
  run([&](Device& d) {
    TwoQps w(d, {}, std::size_t{128} << 10);
    QpOptions options;
    options.log_sq = 7;
    Qp a(d, w.pd, w.cq, w.cq, options), b(d, w.pd, w.rcq, w.rcq);
    connect_pair(a, b);
    qpn_ = a.qpn();
    const auto post = [&] {
      const std::int64_t before = d.machine().now();
      a.post(w.wr(WqeOp::kRdmaWrite, 64 << 10));
      posts.push_back({before, d.machine().now()});
    };
    // The first ones by one doorbell for every three.
    for (unsigned i = 0; i < kDepth; ++i) {
      const std::int64_t before = d.machine().now();
      a.post(w.wr(WqeOp::kRdmaWrite, 64 << 10), i % 3 == 2);
      posts.push_back({before, 0});
      if (i % 3 == 2)
        for (unsigned j = i - 2; j <= i; ++j) posts[j].after = d.machine().now();
    }
    for (unsigned i = 0; i < kWqes; ++i) {
      ASSERT_FALSE(w.cq.wait_one().error());
      if (posts.size() < kWqes) post();
    }
  });
  // ns from a register's write to the card, at most, and by how much that may be ahead of its driver. A
  // message takes longer.
  constexpr std::int64_t kWay = 4000;
  unsigned bare = 0, late = 0;
  for (std::uint32_t i = 0; i < kWqes; ++i) {
    const traces::WqeRow* w = traces::find_wqe(analysis_, {0, qpn_, i, 0});
    ASSERT_NE(w, nullptr);
    const std::int64_t rung = w->at(traces::Stage::kDoorbell);
    // One whose doorbell record the card read before the doorbell was there has none.
    if (rung == traces::kNoTime) {
      ++bare;
      continue;
    }
    EXPECT_GE(rung, posts[i].before * 1000) << i;
    EXPECT_LE(rung, (posts[i].after + kWay) * 1000) << i;
    if (w->at(traces::Stage::kParsed) > rung + 20'000'000) ++late;
    EXPECT_EQ(w->start(), rung) << i;
  }
  EXPECT_LT(bare, kWqes / 10);
  EXPECT_GT(late, kWqes / 2) << "the queue was not full";
  traces::Story story;
  std::string err;
  const traces::WqeRow* w = traces::find_wqe(analysis_, {0, qpn_, kWqes - 9, 0});
  ASSERT_TRUE(traces::tell(path_, analysis_, *w, &story, &err)) << err;
  const auto doorbells = story.all(traces::Point::kDoorbell);
  ASSERT_EQ(doorbells.size(), 1u);
  EXPECT_EQ(doorbells[0].a0, w->wqe_counter);
  EXPECT_EQ(doorbells[0].time_ps, w->at(traces::Stage::kDoorbell));
  EXPECT_EQ(story.all(traces::Point::kScheduled).size(), 1u);
  EXPECT_EQ(story.all(traces::Point::kWqeFetch).size(), 1u);
}

// ---- commands ----

TEST_F(Why, ACommandIsNeverAnswered) {
  const std::string text = said_of_query("fault=command,opcode=QUERY_ISSI,answer=never", 1'000'000,
                                         [](Device& d) { d.query_vport(); });
  EXPECT_THAT(text, HasSubstr("(QUERY_ISSI) was never answered: fault injected, fault 1 of the plan: "
                              "command/never"));
  EXPECT_THAT(text, HasSubstr("  fault 1 of the plan: command/never"));  // the record
  EXPECT_THAT(text, HasSubstr("Will cause a leak of a command resource"));
  EXPECT_THAT(text, HasSubstr("later commands were answered: the card's processor lives."));
}

TEST_F(Why, ACommandIsRefusedByAFault) {
  EXPECT_THAT(
      said_of_query("fault=command,opcode=QUERY_ISSI,status=LIM_ERR,syndrome=0x99", 1'000'000),
      HasSubstr("was refused with LIM_ERR, syndrome 0x99, and not executed: fault injected, fault 1"));
}

TEST_F(Why, ACommandWhoseEventIsLost) {
  const std::string text = said_of_query("fault=command,opcode=QUERY_ISSI,answer=no-event", 1'000'000);
  EXPECT_THAT(text, HasSubstr("It succeeded"));
  EXPECT_THAT(text, HasSubstr("No command event was sent: fault injected."));
}

TEST_F(Why, ACommandMeetsFirmwareThatStandsStill) {
  const std::string text = said_of_query("fault=health,action=stall", 1'000'000'000);
  EXPECT_THAT(text, HasSubstr("was not answered as the firmware stands still since"));
  EXPECT_THAT(text, HasSubstr("fault injected, fault 1 of the plan: health/stall"));
  EXPECT_THAT(text, HasSubstr("No later command was answered either."));
}

TEST_F(Why, TheEndOfAStallIsRecorded) {
  run([&](Device& d) {
    ASSERT_EQ(d.function().inject("fault=health,action=stall,duration=1ms"), "");
    d.machine().advance(5'000'000);
    d.query_vport();
  });
  ASSERT_EQ(analysis_.health().size(), 2u);
  EXPECT_EQ(analysis_.health()[0].index, 1u);
  EXPECT_EQ(analysis_.health()[1].index, 0u);
  EXPECT_EQ(analysis_.health()[1].time_ps, analysis_.health()[0].time_ps + 1'000'000'000);
}

TEST_F(Why, ACommandMeetsFirmwareInItsFatalState) {
  const std::string text = said_of_query("fault=health,syndrome=1,reset=on", 1'000'000);
  EXPECT_THAT(text, HasSubstr("was not executed: the firmware was in its fatal state since"));
  EXPECT_THAT(text, HasSubstr("health/syndrome"));
}

TEST_F(Why, ACommandIsLostInAReset) {
  EXPECT_THAT(
      said_of_query("fault=command,opcode=QUERY_ISSI,delay=10ms;fault=fw_reset,at=+1ms", 20'000'000),
      HasSubstr("was lost when the card was reset: fault injected, fault 2 of the plan: fw_reset/self"));
}

TEST(WqeName, IsReadAndRefused) {
  traces::WqeId id;
  std::string err;
  ASSERT_TRUE(traces::parse_wqe_id("1:0x4a:12", &id, &err));
  EXPECT_EQ(id.hca, 1u);
  EXPECT_EQ(id.qpn, 0x4au);
  EXPECT_EQ(id.serial, 12u);
  ASSERT_TRUE(traces::parse_wqe_id("0:7:3.2", &id, &err));
  EXPECT_EQ(id.life, 2u);
  for (const char* bad :
       {"", "1", "1:2", "1:2:", "1:2:x", "1:2:3:4", "1:2:3.", "-1:2:3", "1:0x80000:3", "4096:1:1"}) {
    EXPECT_FALSE(traces::parse_wqe_id(bad, &id, &err)) << bad;
    EXPECT_THAT(err, HasSubstr("HCA:QPN:SERIAL"));
  }
}

}  // namespace
}  // namespace hcasim::bare
