// SPDX-License-Identifier: BSD-3-Clause
// What `why` says where functions and faults come together as a test of a card could not have them: from
// records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../files.h"
#include "prm/cmd_queue.h"
#include "prm/prm.h"
#include "traces/fault_list.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kMs = 1'000'000'000;

class WhyTest : public ::testing::Test {
 protected:
  WhyTest() {
    std::string err;
    EXPECT_TRUE(tracer_.open(path_, &err)) << err;
  }
  void fault(std::int64_t at, unsigned function, FaultType kind, FaultAction action,
             std::uint64_t detail = 0) {
    tracer_.record(Point::kFaultInjected, at, {function, 0}, 1, fault_word(kind, action), detail);
  }
  void stall(std::int64_t at, unsigned function) {
    fault(at, function, FaultType::kHealth, FaultAction::kStall);
    tracer_.record(Point::kHealth, at, {function, 0}, 1, 0);
  }
  /// The health registers say that all is well.
  void well(std::int64_t at, unsigned function) { tracer_.record(Point::kHealth, at, {function, 0}, 0, 0); }
  void begin(std::int64_t at, unsigned function, std::uint32_t seq,
             std::uint16_t opcode = prm::op::QUERY_ISSI, const Bytes& in = {}) {
    tracer_.record_blob(Point::kCmdStart, at, {function, 0}, seq, opcode, in.size(), in.data(), in.size());
  }
  void end(std::int64_t at, unsigned function, std::uint32_t seq, std::uint16_t opcode = prm::op::QUERY_ISSI,
           const Bytes& out = {}, prm::CmdDelivery delivery = prm::CmdDelivery::kOk) {
    tracer_.record_blob(Point::kCmdDone, at, {function, 0}, seq,
                        opcode | static_cast<std::uint64_t>(delivery) << 24, 0, out.data(), out.size());
  }
  const Analysis& analysis() {
    tracer_.close();
    Reader reader;
    std::string err;
    EXPECT_TRUE(reader.open(path_, &err)) << err;
    Record r;
    Bytes blob;
    while (reader.next(r, blob)) analysis_.add(r, blob);
    analysis_.finish();
    return analysis_;
  }
  std::string said(unsigned function, std::uint32_t seq) {
    std::string text;
    for (const CommandRow& c : analysis().commands()) {
      if (c.function != function || c.seq != seq) continue;
      for (const Reason& reason : why(analysis_, c)) text += reason.text + "\n";
    }
    return text;
  }

  test::Folder folder_;
  std::string path_ = folder_ / "trace";
  Tracer tracer_{0};
  Analysis analysis_;
};

TEST_F(WhyTest, AFunctionsFaultsAreNotAnothers) {
  stall(1 * kMs, 2);
  fault(2 * kMs, 2, FaultType::kCommand, FaultAction::kNever, 7);
  begin(3 * kMs, 0, 7);
  begin(4 * kMs, 2, 8);
  end(5 * kMs, 2, 8);
  const std::string text = said(0, 7);
  EXPECT_THAT(text, Not(HasSubstr("fault")));
  EXPECT_THAT(text, HasSubstr("has not answered it by the trace's end"));
  EXPECT_THAT(text, HasSubstr("No later command was answered either."));
}

TEST_F(WhyTest, AFaultOfTheCardIsEveryFunctions) {
  fault(1 * kMs, 0, FaultType::kModel, FaultAction::kModelFault);
  begin(2 * kMs, 2, 7);
  end(3 * kMs, 2, 7, prm::op::QUERY_ISSI, {}, prm::CmdDelivery::kFwErr);
  EXPECT_THAT(said(2, 7), HasSubstr("the firmware was in its fatal state since"));
}

TEST_F(WhyTest, AStallThatIsOverHoldsNothingUp) {
  stall(1000 * kMs, 0);
  begin(1010 * kMs, 0, 6);
  end(1020 * kMs, 0, 6);
  well(1020 * kMs, 0);
  for (const std::uint32_t seq : {7, 8, 9}) {
    begin(seq * 1'000 * kMs, 0, seq);
    end(seq * 1'000 * kMs + kMs, 0, seq);
  }
  begin(10'000 * kMs, 0, 10);
  EXPECT_THAT(said(0, 10), Not(HasSubstr("stands still")));
  std::string text;
  for (const Reason& reason : why(analysis_, analysis_.commands().front())) text += reason.text + "\n";
  EXPECT_THAT(text, HasSubstr("The firmware stood still for a while"));
}

TEST_F(WhyTest, ASyndromeThatIsTakenBackIsNotFatal) {
  fault(1 * kMs, 0, FaultType::kHealth, FaultAction::kSyndrome, 0x101);
  fault(2 * kMs, 0, FaultType::kHealth, FaultAction::kSyndrome, 0x100);
  well(2 * kMs, 0);
  begin(3 * kMs, 0, 7);
  end(4 * kMs, 0, 7, prm::op::QUERY_ISSI, {}, prm::CmdDelivery::kFwErr);
  EXPECT_THAT(said(0, 7), Not(HasSubstr("fatal state")));
}

Bytes create_mkey_out(std::uint32_t index) {
  Bytes b(prm::create_mkey_out::bytes);
  prm::set<prm::create_mkey_out::mkey_index>(b.data(), index);
  return b;
}

TEST_F(WhyTest, KeysAndQueuesOfFunctionsAreApart) {
  constexpr std::uint32_t kQpn = 0x48;
  for (const unsigned function : {0u, 2u}) {
    const std::uint32_t seq = 1 + function;
    begin(1 * kMs, function, seq, prm::op::CREATE_MKEY);
    end(2 * kMs, function, seq, prm::op::CREATE_MKEY, create_mkey_out(0x12));
    Bytes in(prm::create_qp_in::bytes), out(prm::create_qp_out::bytes);
    prm::set<prm::create_qp_in::qpc::cqn_snd>(in.data(), 0x80 + function);
    prm::set<prm::create_qp_out::qpn>(out.data(), kQpn);
    begin(3 * kMs, function, seq + 1, prm::op::CREATE_QP, in);
    end(4 * kMs, function, seq + 1, prm::op::CREATE_QP, out);
  }
  tracer_.record(Point::kWqeParsed, 5 * kMs, {0u, kQpn}, 0, 0x08, 100);
  tracer_.record(Point::kQpError, 6 * kMs, {2u, kQpn}, 0, 6, 0);
  const Analysis& a = analysis();
  ASSERT_EQ(a.wqes().size(), 1u);
  Story story;
  std::string err;
  ASSERT_TRUE(tell(path_, a, a.wqes()[0], &story, &err)) << err;
  ASSERT_EQ(story.context.size(), 1u);
  EXPECT_EQ(story.context[0]->function, 0u);
  EXPECT_EQ(story.send_cqn, 0x80);
  EXPECT_TRUE(story.around.empty());
  Record of;
  for (const unsigned function : {0u, 2u, 3u}) {
    of.function = function;
    const CommandRow* key = story.mkey_before(a, of, 0x1234, 9 * kMs);
    if (function == 3) {
      EXPECT_EQ(key, nullptr);
    } else {
      ASSERT_NE(key, nullptr);
      EXPECT_EQ(key->function, function);
    }
  }
}

TEST(Places, NameAFunctionThatIsNotTheFirst) {
  Record r;
  r.hca = 3;
  EXPECT_EQ(place_of(r), "3");
  r.function = 17;
  EXPECT_EQ(place_of(r), "3.17");
}

}  // namespace
}  // namespace hcasim::traces
