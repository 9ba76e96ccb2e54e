// SPDX-License-Identifier: BSD-3-Clause
// What `why` says where functions and faults come together as a test of a card could not have them: from
// records.
#include <gtest/gtest.h>

#include <string>

#include "../files.h"
#include "prm/cmd_queue.h"
#include "prm/prm.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kMs = 1'000'000'000;

class WhyTest : public ::testing::Test {
 protected:
  WhyTest() {
    std::string err;
    EXPECT_TRUE(tracer_.open(path_, &err)) << err;
  }
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
  test::Folder folder_;
  std::string path_ = folder_ / "trace";
  Tracer tracer_{0};
  Analysis analysis_;
};

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
