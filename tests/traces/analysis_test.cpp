// SPDX-License-Identifier: BSD-3-Clause
#include "traces/analysis.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "prm/prm.h"
#include "prm/wire_formats.h"
#include "traces/report.h"
#include "traces/tracer.h"

namespace hcasim::traces {
namespace {

constexpr std::int64_t kNs = 1000;

std::uint64_t cqe_a0(unsigned cqn, prm::CqeOp op, unsigned syndrome = 0) {
  return cqn | static_cast<std::uint64_t>(op) << 24 | static_cast<std::uint64_t>(syndrome) << 32;
}

/// A SEND from `req` to `resp` that passes all stages, one a nanosecond, from `t` on. `batch`: how many WQEs
/// were posted, rung for and fetched with this one; 0: it was so with one before.
void send(Tracer& req, Tracer& resp, std::int64_t t, std::uint32_t qpn, std::uint32_t serial,
          unsigned batch = 1) {
  const std::uint32_t tag = req.tag(qpn);
  auto next = [&] { return t += kNs; };
  if (batch != 0) {
    req.record(Point::kDoorbell, t, qpn, serial, serial + batch - 1);
    req.record(Point::kScheduled, t + kNs, qpn, serial, batch);
    req.record(Point::kWqeFetch, t + 2 * kNs, qpn, serial, std::uint64_t{64} * batch, serial);
  }
  t += 2 * kNs;
  req.record(Point::kWqeParsed, next(), qpn, serial, 0x0a | serial << 16, 100);
  req.record(Point::kTranslated, next(), qpn, serial, 1);
  req.record(Point::kGathered, next(), qpn, serial, 100);
  req.record(Point::kPacketTxFirst, next(), qpn, serial, 5 | 4 << 24, 100);
  req.record(Point::kPacketTxLast, next(), qpn, serial, 5 | 4 << 24, 1);
  resp.record(Point::kPacketRx, next(), tag, serial, 5 | 4 << 24, 100);
  resp.record(Point::kChecked, next(), tag, serial, 5, qpn);
  resp.record(Point::kRwqeFetch, next(), tag, serial, 0, 9);
  resp.record(Point::kScattered, next(), tag, serial, 100, 9);
  resp.record(Point::kCqeWritten, t + 1, tag, serial, cqe_a0(7, prm::CqeOp::kRespSend), serial);
  resp.record(Point::kAckTx, next(), tag, serial, 5, 0);
  req.record(Point::kAckRx, next(), qpn, serial, 5, 0);
  req.record(Point::kCqeWritten, next(), qpn, serial, cqe_a0(6, prm::CqeOp::kReq), serial);
  req.record(Point::kCqConsumed, next(), 6, serial + 1);
}

void feed(Analysis& a, std::initializer_list<Tracer*> tracers) {
  for (Tracer* t : tracers) {
    std::vector<std::vector<std::uint8_t>> blobs;
    auto records = t->drain(&blobs);
    for (std::size_t i = 0; i < records.size(); i++) a.add(records[i], blobs[i]);
  }
}

std::string capture(const std::function<void(std::FILE*)>& print) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* f = open_memstream(&text, &size);
  print(f);
  std::fclose(f);
  std::string s(text, size);
  free(text);
  return s;
}

TEST(Analysis, WqeAcrossTwoHcas) {
  Tracer t0(0), t1(1);
  t0.open_memory();
  t1.open_memory();
  send(t0, t1, 100 * kNs, 0x42, 0);
  send(t1, t0, 200 * kNs, 0x42, 0);  // the same QPN on the other HCA
  Analysis a;
  feed(a, {&t0, &t1});
  a.finish();
  ASSERT_EQ(a.wqes().size(), 2u);
  for (unsigned h = 0; h < 2; h++) {
    const WqeRow& w = a.wqes()[h];
    EXPECT_EQ(w.hca, h);
    EXPECT_EQ(w.qpn, 0x42u);
    EXPECT_EQ(w.opcode_name(), "SEND");
    EXPECT_EQ(w.bytes, 100u);
    EXPECT_EQ(w.status_name(), "OK");
    for (unsigned i = 0; i < kStages; i++) EXPECT_EQ(w.time[i], (100 + 100 * h + i) * kNs) << kStageNames[i];
    EXPECT_EQ(w.end() - w.start(), 14 * kNs);
    EXPECT_NE(w.responder_cqe, kNoTime);
  }
}

TEST(Analysis, BatchSharesItsDoorbell) {
  Tracer t;
  t.open_memory();
  send(t, t, 1000 * kNs, 5, 0, 2);
  send(t, t, 1100 * kNs, 5, 1, 0);
  send(t, t, 1200 * kNs, 5, 2);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ASSERT_EQ(a.wqes().size(), 3u);
  EXPECT_EQ(a.wqes()[1].at(Stage::kDoorbell), 1000 * kNs);
  EXPECT_EQ(a.wqes()[1].at(Stage::kFetch), 1002 * kNs);
  EXPECT_EQ(a.wqes()[2].at(Stage::kDoorbell), 1200 * kNs);
}

/// A queue as the card records it: what is posted and what is fetched go on apart from each other.
struct SendQueue {
  SendQueue() { t.open_memory(); }
  void doorbell(std::int64_t at, std::uint32_t index) {
    t.record(Point::kDoorbell, at * kNs, 5, serial, index & 0xffff);
  }
  void turn(std::int64_t at) { t.record(Point::kScheduled, at * kNs, 5, serial); }
  /// WQEs of so many WQEBBs each.
  void fetch(std::int64_t at, std::initializer_list<unsigned> sizes) {
    unsigned all = 0;
    for (const unsigned size : sizes) all += size;
    t.record(Point::kWqeFetch, at * kNs, 5, serial, std::uint64_t{64} * all, counter & 0xffff);
    for (const unsigned size : sizes) decode(at + 1, size);
  }
  void decode(std::int64_t at, unsigned size) {
    t.record(Point::kWqeParsed, at * kNs, 5, serial++, 0x08 | std::uint64_t{counter & 0xffff} << 16, 64);
    counter += size;
  }
  /// Of all WQEs, by serial, ns; -1: none.
  std::vector<std::int64_t> times(Stage s) {
    Analysis a;
    const auto records = t.drain();
    for (const Record& r : records) a.add(r, {});
    for (const Record& r : records) again.push_back(r);
    a.finish();
    std::map<std::uint32_t, std::int64_t> by_serial;
    for (const WqeRow& w : a.wqes()) by_serial[w.serial] = w.at(s) == kNoTime ? -1 : w.at(s) / kNs;
    std::vector<std::int64_t> v;
    for (const auto& [number, time] : by_serial) v.push_back(time);
    return v;
  }
  Tracer t;
  std::vector<Record> again;
  std::uint32_t serial = 0, counter = 0;
};

using Times = std::vector<std::int64_t>;

TEST(Analysis, ADoorbellIsOfTheWqesThatItRingsFor) {
  SendQueue q;
  q.doorbell(10, 0);
  q.turn(11);
  q.fetch(12, {1});
  q.doorbell(20, 1);  // posted long before they are fetched
  q.doorbell(30, 3);  // two at once
  q.doorbell(40, 4);
  q.turn(50);
  q.fetch(52, {1, 1});
  q.turn(60);
  q.fetch(62, {1, 1});
  EXPECT_EQ(q.times(Stage::kDoorbell), (Times{10, 20, 30, 30, 40}));
}

TEST(Analysis, ATurnAndAFetchAreOfTheWqesThatTheyBrought) {
  SendQueue q;
  q.doorbell(20, 3);
  q.turn(30);
  q.turn(40);  // nothing was fetched in the one before
  q.fetch(42, {1, 1});
  q.turn(50);
  q.fetch(52, {1});
  q.doorbell(60, 3);
  q.turn(61);
  q.decode(62, 1);  // came with its doorbell (BlueFlame): not fetched
  EXPECT_EQ(q.times(Stage::kScheduled), (Times{40, 40, 50, 61}));
}

TEST(Analysis, ABlueFlameWqeWasNotFetched) {
  SendQueue q;
  q.doorbell(10, 0);
  q.turn(20);
  q.fetch(22, {1});
  q.doorbell(21, 1);
  q.decode(23, 1);
  EXPECT_EQ(q.times(Stage::kFetch), (Times{22, -1}));
}

TEST(Analysis, DoorbellsNameTheFirstBlockOfAWqeAndWrap) {
  SendQueue q;
  q.serial = 20'000;
  q.counter = 0xfffc;
  q.doorbell(5, 0xfffb);
  q.doorbell(10, 0xfffc);
  q.doorbell(20, 0xfffe);
  q.doorbell(30, 0x10001);  // of three blocks, the last of which are beyond the wrap
  q.doorbell(40, 0x10003);
  q.turn(50);
  q.fetch(52, {2, 3, 2, 1});
  EXPECT_EQ(q.times(Stage::kDoorbell), (Times{10, 20, 30, 40}));
}

// Of what was posted before recording began, or while it paused, the doorbells are not there.
TEST(Analysis, ADoorbellBehindAGapIsOfItsLastWqe) {
  SendQueue q;
  q.serial = q.counter = 40;
  q.doorbell(10, 45);
  q.turn(20);
  q.fetch(22, {1, 1, 1, 1, 1, 1});
  q.doorbell(30, 47);
  q.turn(31);
  q.fetch(32, {1, 1});
  q.serial = q.counter = 60;  // a pause
  q.doorbell(40, 62);
  q.doorbell(50, 64);
  q.turn(51);
  q.fetch(52, {1, 1, 1, 1, 1});
  EXPECT_EQ(q.times(Stage::kDoorbell), (Times{-1, -1, -1, -1, -1, 10, 30, 30, -1, -1, 40, -1, 50}));
}

// The card takes what the doorbell record says: also what was posted since, whose doorbell is still on its
// way.
TEST(Analysis, AWqeThatWasFetchedBeforeItsDoorbellHasNone) {
  SendQueue q;
  q.doorbell(10, 0);
  q.turn(11);
  q.fetch(12, {1, 1});
  q.doorbell(20, 1);
  q.doorbell(30, 2);
  q.turn(31);
  q.fetch(32, {1});
  EXPECT_EQ(q.times(Stage::kDoorbell), (Times{10, -1, 30}));
  Analysis a;
  for (const Record& r : q.again) a.add(r, {});
  a.finish();
  EXPECT_EQ(a.wqes()[1].serial, 1u);
  EXPECT_EQ(a.wqes()[1].batch[0], 5u) << "the number of its doorbell's record";
}

TEST(Analysis, SerialsStartAgainAfterReset) {
  Tracer t;
  t.open_memory();
  for (int life = 0; life < 3; life++)
    for (std::uint32_t i = 0; i < 2; i++) send(t, t, (life * 1000 + i * 100) * kNs, 5, i);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ASSERT_EQ(a.wqes().size(), 6u);
  EXPECT_EQ(a.wqes()[4].at(Stage::kDoorbell), 2000 * kNs);
  EXPECT_EQ(a.wqes()[4].at(Stage::kConsumed), 2015 * kNs);
}

TEST(Analysis, ErrorsAndRetries) {
  Tracer t;
  t.open_memory();
  t.record(Point::kWqeParsed, 1, 5, 0, 0x08, 10);
  t.record(Point::kTimeout, 2, 5, 0);
  t.record(Point::kRetransmit, 3, 5, 0);
  t.record(Point::kRetransmit, 4, 5, 0);
  t.record(Point::kCqeWritten, 5, 5, 0, cqe_a0(6, prm::CqeOp::kReqErr, 0x15), 0);
  t.record(Point::kWqeParsed, 6, 5, 1, 0x08, 10);
  t.record(Point::kFlush, 7, 5, 1, 1, 0);
  t.record(Point::kFlush, 8, 9, 0, 1, 1);  // a receive WQE: not a row
  t.record(Point::kWqeParsed, 9, 5, 2, 0x10, 10);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ASSERT_EQ(a.wqes().size(), 3u);
  EXPECT_EQ(a.wqes()[0].status_name(), "RETRY_EXC");
  EXPECT_EQ(a.wqes()[0].retransmits, 2u);
  EXPECT_EQ(a.wqes()[1].status_name(), "WR_FLUSH");
  EXPECT_EQ(a.wqes()[2].status_name(), "open");
  EXPECT_EQ(a.errors().size(), 5u);
  EXPECT_EQ(a.count(Point::kFlush), 2u);
}

// As with trace_filter=kind=error.
TEST(Analysis, ErrorsAlone) {
  Tracer t;
  t.open_memory();
  std::string err;
  ASSERT_TRUE(t.set_filter("kind=error", &err)) << err;
  const std::int64_t at = 7'000'000 * kNs;
  send(t, t, at, 5, 0);
  t.record(Point::kRetransmit, at + 1 * kNs, 5, 1);
  t.record(Point::kWqeErr, at + 3 * kNs, 5, 1, 0x15 | 0x81 << 8, 0x0a);
  t.record(Point::kFlush, at + 4 * kNs, 5, 2, 2, 0);
  t.record(Point::kRnrRx, at + 5 * kNs, 6, 0);
  t.record(Point::kCmdStart, at, 0, 3, prm::op::QUERY_QP);
  t.record(Point::kCmdBad, at, 0, 3, 7, 0);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ASSERT_EQ(a.wqes().size(), 3u);
  EXPECT_EQ(a.wqes()[0].status_name(), "RETRY_EXC");
  EXPECT_EQ(a.wqes()[0].start(), at + 1 * kNs);
  EXPECT_EQ(a.wqes()[0].end(), at + 3 * kNs);
  EXPECT_EQ(a.wqes()[1].status_name(), "WR_FLUSH");
  EXPECT_EQ(a.wqes()[1].end(), at + 4 * kNs);
  EXPECT_EQ(a.wqes()[2].status_name(), "open");
  EXPECT_EQ(a.wqes()[2].start(), at + 5 * kNs);
  ReportOptions o;
  o.errors = true;
  const std::string text = capture([&](std::FILE* f) { print_text(a, o, f); });
  EXPECT_NE(text.find(" 7000001.0          2.0 RETRY_EXC\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("no-cqe"), std::string::npos) << text;
  EXPECT_EQ(text.find("9223372036"), std::string::npos) << text;
  const auto j = nlohmann::json::parse(capture([&](std::FILE* f) { print_json(a, o, "", f); }));
  EXPECT_EQ(j["wqes"][0]["start_ns"], 7000001.0);
  EXPECT_EQ(j["wqes"][0]["total_ns"], 2.0);
}

TEST(Analysis, Filters) {
  Tracer t0(0), t1(1);
  t0.open_memory();
  t1.open_memory();
  send(t0, t1, 0, 5, 0);
  send(t0, t1, 100 * kNs, 6, 0);
  send(t1, t0, 200 * kNs, 6, 0);
  auto r0 = t0.drain(), r1 = t1.drain();
  auto rows = [&](Filter f) {
    Analysis a(f);
    for (auto* v : {&r0, &r1})
      for (const Record& r : *v) a.add(r, {});
    a.finish();
    return a.wqes().size();
  };
  EXPECT_EQ(rows({}), 3u);
  EXPECT_EQ(rows({6, -1}), 2u);
  EXPECT_EQ(rows({6, 1}), 1u);
  EXPECT_EQ(rows({-1, 0}), 2u);
  EXPECT_EQ(rows({7, -1}), 0u);
}

void commands(Tracer& t) {
  std::vector<std::uint8_t> in(0x110), out(16);
  prm::set<prm::create_cq_in::opcode>(in.data(), prm::op::CREATE_CQ);
  prm::set<prm::create_cq_in::cq_context::log_cq_size>(in.data(), 9);
  prm::set<prm::create_cq_out::cqn>(out.data(), 0x83);
  t.record_blob(Point::kCmdStart, 1000000, 3, 0, prm::op::CREATE_CQ, in.size(), in.data(), in.size());
  t.record_blob(Point::kCmdDone, 3500000, 3, 0, prm::op::CREATE_CQ, out.size() << 32, out.data(), out.size());
  std::vector<std::uint8_t> cap_in(16), cap_out(0x1010);
  prm::set<prm::query_hca_cap_in::opcode>(cap_in.data(), prm::op::QUERY_HCA_CAP);
  prm::set<prm::query_hca_cap_in::op_mod>(cap_in.data(), 3 << 1 | 1);
  prm::set<prm::query_hca_cap_out::capability::atomic_caps::atomic_operations>(cap_out.data(), 0xf);
  t.record_blob(Point::kCmdStart, 4000000, 0, 1, prm::op::QUERY_HCA_CAP | 7 << 16, 16, cap_in.data(), 16);
  t.record_blob(Point::kCmdDone, 5000000, 0, 1, prm::op::QUERY_HCA_CAP, 0, cap_out.data(), cap_out.size());
  std::vector<std::uint8_t> reg(16 + 64);
  prm::set<prm::access_register_in::opcode>(reg.data(), prm::op::ACCESS_REG);
  prm::set<prm::access_register_in::register_id>(reg.data(), 0x5006);
  prm::set<prm::paos_reg::admin_status>(reg.data() + 16, 1);
  t.record_blob(Point::kCmdStart, 6000000, 0, 2, prm::op::ACCESS_REG, reg.size(), reg.data(), reg.size());
  t.record(Point::kCmdDone, 7000000, 0, 2, prm::op::ACCESS_REG | 0x05 << 16, 0x123456);
  t.record_blob(Point::kCmdStart, 8000000, 0, 3, 0xfff, 0, nullptr, 0);
  t.record(Point::kCmdBad, 8500000, 0, 3, 7, 0);
}

TEST(Analysis, Commands) {
  Tracer t;
  t.open_memory();
  commands(t);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ASSERT_EQ(a.commands().size(), 4u);
  EXPECT_EQ(a.commands()[0].name(), "CREATE_CQ");
  EXPECT_EQ(a.commands()[0].end - a.commands()[0].start, 2500000);
  EXPECT_EQ(input_fields(a.commands()[0]), "opcode=0x400 cq_context.log_cq_size=0x9");
  EXPECT_EQ(output_fields(a.commands()[0]), "cqn=0x83");
  EXPECT_EQ(output_fields(a.commands()[1]), "capability.atomic_caps.atomic_operations=0xf");
  EXPECT_EQ(input_fields(a.commands()[2]), "opcode=0x805 register_id=0x5006 paos_reg{admin_status=0x1}");
  EXPECT_EQ(a.commands()[2].status_name(), "BAD_RES");
  EXPECT_EQ(a.commands()[2].syndrome, 0x123456u);
  EXPECT_EQ(a.commands()[3].status_name(), "delivery:IN_LENGTH");
  EXPECT_EQ(a.commands()[3].name(), "0xfff");
}

// Each function counts its own commands and completions.
TEST(Analysis, FunctionsAreApart) {
  Tracer t;
  t.open_memory();
  for (const unsigned function : {0u, 2u}) {
    const std::uint32_t qpn = 0x80 + function * 0x100;
    const std::int64_t at = function * 100'000;
    t.record_blob(Point::kCmdStart, at, {function, 1}, 7,
                  function == 0 ? prm::op::QUERY_QP : prm::op::CREATE_CQ, 0, nullptr, 0);
    t.record(Point::kCqeWritten, at + 500, {function, qpn}, 0, cqe_a0(6, prm::CqeOp::kReq), 0);
  }
  t.record(Point::kCmdDone, 200'000, {0u, 1u}, 7, prm::op::QUERY_QP, 0);
  t.record(Point::kCqConsumed, 300'000, {0u, 6u}, 1);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ASSERT_EQ(a.commands().size(), 2u);
  EXPECT_EQ(a.commands()[0].place(), "0");
  EXPECT_EQ(a.commands()[0].end, 200'000);
  EXPECT_EQ(a.commands()[1].place(), "0.2");
  EXPECT_EQ(a.commands()[1].end, kNoTime) << "the other one's was answered";
  ASSERT_EQ(a.wqes().size(), 2u);
  EXPECT_EQ(a.wqes()[0].at(Stage::kConsumed), 300'000);
  EXPECT_EQ(a.wqes()[1].at(Stage::kConsumed), kNoTime);
}

/// Lives of the rows of QP 5, by their order.
std::vector<unsigned> lives(Tracer& t) {
  Analysis a;
  feed(a, {&t});
  a.finish();
  std::vector<unsigned> v;
  for (const WqeRow& w : a.wqes())
    if (w.qpn == 5) v.push_back(w.life);
  return v;
}

TEST(Analysis, SerialsThatGoBackAreOfAnotherLife) {
  Tracer t;
  t.open_memory();
  // Recording began late, and the first life's last WQE never ended.
  send(t, t, 1000 * kNs, 5, 7);
  t.record(Point::kWqeParsed, 1100 * kNs, 5, 8, 0x0a | 8 << 16, 100);
  send(t, t, 2000 * kNs, 5, 0);
  t.record(Point::kWqeParsed, 2100 * kNs, 5, 1, 0x0a | 1 << 16, 100);
  send(t, t, 3000 * kNs, 5, 0);  // serial 0 ended, serial 1 did not
  t.record(Point::kWqeParsed, 3100 * kNs, 5, 4, 0x0a | 4 << 16, 100);
  t.record(Point::kWqeParsed, 4000 * kNs, 5, 2, 0x0a | 2 << 16, 100);  // serial 0 was not recorded
  EXPECT_EQ(lives(t), (std::vector<unsigned>{0, 0, 1, 1, 2, 2, 3}));
}

TEST(Analysis, AQueueThatIsMadeAnewHasAnotherLife) {
  for (const unsigned type : {8u, 18u, 11u}) {
    Tracer t;
    t.open_memory();
    send(t, t, 1000 * kNs, 5, 0);
    t.record(Point::kObjCreate, 1500 * kNs, {0u, 6u}, 0, type);
    t.record(Point::kObjCreate, 1500 * kNs, {1u, 5u}, 0, type);
    send(t, t, 1600 * kNs, 5, 1);
    t.record(Point::kObjCreate, 1700 * kNs, {0u, 5u}, 0, type);
    send(t, t, 2000 * kNs, 5, 2);  // the records between are lost
    EXPECT_EQ(lives(t), (std::vector<unsigned>{0, 0, type == 11 ? 0u : 1u})) << type;
  }
}

TEST(Analysis, AQueueThatIsResetHasAnotherLife) {
  for (const unsigned status : {0u, 3u}) {
    Tracer t;
    t.open_memory();
    send(t, t, 1000 * kNs, 5, 0);
    t.record(Point::kWqeParsed, 1100 * kNs, 5, 1, 0x0a | 1 << 16, 100);
    std::vector<std::uint8_t> in(16);
    prm::set<prm::qp_2rst_in::opcode>(in.data(), prm::op::_2RST_QP);
    prm::set<prm::qp_2rst_in::qpn>(in.data(), 5);
    t.record_blob(Point::kCmdStart, 1200 * kNs, 0, 9, prm::op::_2RST_QP, 16, in.data(), in.size());
    t.record(Point::kCmdDone, 1300 * kNs, 0, 9, prm::op::_2RST_QP | status << 16);
    t.record(Point::kPacketRx, 1400 * kNs, t.tag(5), 1, 5 | 4 << 24, 100);  // was on its way
    send(t, t, 2000 * kNs, 5, 2);
    Analysis a;
    feed(a, {&t});
    a.finish();
    ASSERT_EQ(a.wqes().size(), 3u);
    EXPECT_EQ(a.wqes()[1].at(Stage::kRx), 1400 * kNs);
    EXPECT_EQ(a.wqes()[1].dropped, status == 0 ? 1300 * kNs : kNoTime);
    EXPECT_EQ(a.wqes()[2].life, status == 0 ? 1u : 0u);
  }
}

TEST(Analysis, ACqThatIsMadeAnewIsNotConsumedForTheOldOne) {
  for (const bool anew : {false, true}) {
    Tracer t;
    t.open_memory();
    t.record(Point::kCqeWritten, 1000 * kNs, 5, 0, cqe_a0(6, prm::CqeOp::kReq), 0);
    if (anew) t.record(Point::kObjCreate, 1500 * kNs, 6, 0, 7);
    t.record(Point::kCqConsumed, 2000 * kNs, 6, 3);
    Analysis a;
    feed(a, {&t});
    a.finish();
    EXPECT_EQ(a.wqes()[0].at(Stage::kConsumed), anew ? kNoTime : 2000 * kNs);
  }
}

TEST(Report, JsonAndPerfettoParse) {
  Tracer t;
  t.open_memory();
  for (std::uint32_t i = 0; i < 5; i++) send(t, t, i * 100 * kNs, 5, i);
  t.record(Point::kTimeout, 2, 5, 0);
  commands(t);
  Analysis a;
  feed(a, {&t});
  a.finish();
  ReportOptions o;
  o.fields = o.errors = true;
  auto j = nlohmann::json::parse(capture([&](std::FILE* f) { print_json(a, o, "a \"warning\"", f); }));
  EXPECT_EQ(j["warning"], "a \"warning\"");
  EXPECT_EQ(j["wqes"].size(), 5u);
  EXPECT_EQ(j["wqes"][0]["stages_ns"]["cqe"], 14.0);
  EXPECT_EQ(j["commands"][0]["command"], "CREATE_CQ");
  EXPECT_EQ(j["summary"]["by_opcode"][0]["latency_ns"]["p50"], 14.0);
  EXPECT_EQ(j["summary"]["errors"]["timeout"], 1);
  auto p = nlohmann::json::parse(capture([&](std::FILE* f) { EXPECT_TRUE(write_perfetto(a, f)); }));
  int begun = 0, ended = 0;
  for (const auto& e : p["traceEvents"]) {
    begun += e["ph"] == "b";
    ended += e["ph"] == "e";
  }
  EXPECT_EQ(begun, ended);
  EXPECT_EQ(begun, 5 * static_cast<int>(kStages));
  std::string text = capture([&](std::FILE* f) { print_text(a, o, f); });
  EXPECT_NE(text.find("SEND"), std::string::npos);
  EXPECT_NE(text.find("cq_context.log_cq_size=0x9"), std::string::npos);
}

TEST(Report, Percentiles) {
  EXPECT_EQ(percentile({}, 50), 0);
  EXPECT_EQ(percentile({7}, 99), 7);
  std::vector<std::int64_t> v;
  for (int i = 1; i <= 100; i++) v.push_back(i);
  EXPECT_EQ(percentile(v, 50), 50);
  EXPECT_EQ(percentile(v, 99), 99);
  EXPECT_EQ(percentile(v, 100), 100);
}

TEST(Report, AnyRecordsCanBeShown) {
  std::mt19937_64 rnd(3);
  Analysis a;
  for (int i = 0; i < 20000; i++) {
    Record r;
    r.point = static_cast<std::uint16_t>(rnd() % (kPoints + 2));
    r.time_ps = static_cast<std::int64_t>(rnd() >> rnd() % 64) / 4;
    r.a0 = rnd() >> rnd() % 64;
    r.a1 = rnd() >> rnd() % 64;
    r.obj = static_cast<std::uint32_t>(rnd() % 4 == 0 ? rnd() : rnd() % 8);
    r.index = static_cast<std::uint32_t>(rnd() % 16);
    r.hca = static_cast<std::uint16_t>(rnd() % 3);
    std::vector<std::uint8_t> blob(rnd() % 4 == 0 ? rnd() % 600 : 0);
    for (auto& b : blob) b = static_cast<std::uint8_t>(rnd());
    a.add(r, blob);
  }
  a.finish();
  ReportOptions o;
  o.fields = o.errors = true;
  EXPECT_FALSE(capture([&](std::FILE* f) { print_text(a, o, f); }).empty());
  EXPECT_FALSE(nlohmann::json::parse(capture([&](std::FILE* f) { print_json(a, o, "", f); })).empty());
  EXPECT_FALSE(nlohmann::json::parse(capture([&](std::FILE* f) { write_perfetto(a, f); })).empty());
}

}  // namespace
}  // namespace hcasim::traces
