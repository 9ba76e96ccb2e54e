// SPDX-License-Identifier: BSD-3-Clause
// Links of machines that stand still: nothing is read, and the other end is to see nothing of that.
#include <gmock/gmock.h>

#include <optional>

#include "link_ends.h"

namespace hcasim::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HeldLinkTest : public LinkTest {};

TEST_P(HeldLinkTest, HeldFramesStayInTheSocket) {
  const std::string where = this->where();
  End a(where, "a"), b(where, "b");
  pass(1, a, b);
  b.link.hold(true);
  ASSERT_TRUE(a.send(Bytes(100, 1)));
  a.link.flush();
  pass(60, a, b);
  EXPECT_EQ(b.count, 0u);
  EXPECT_TRUE(b.link.up()) << "a machine that stands still keeps its wire";
  b.link.hold(false);
  pass(0.1, a, b);
  EXPECT_EQ(b.count, 1u);
}

// The one that listens, for longer than either end waits for a hello, or for a word.
TEST_P(HeldLinkTest, AnEndThatComesMeanwhileStays) {
  const std::string where = this->where();
  End a(where, "a");
  pass(0.1, a);
  a.link.hold(true);
  End b(where, "b");
  pass(60, a, b);
  EXPECT_EQ(b.ups, 1) << b.log;
  EXPECT_TRUE(b.link.up()) << b.log;
  EXPECT_FALSE(a.link.up()) << "it has read nothing";
  ASSERT_TRUE(b.send(Bytes(100, 1)));
  b.link.flush();
  a.link.hold(false);
  pass(1, a, b);
  EXPECT_TRUE(a.link.up()) << a.log;
  EXPECT_EQ(a.count, 1u);
  EXPECT_EQ(a.downs + b.downs, 0);
  EXPECT_THAT(a.log + b.log, Not(HasSubstr("closed")));
}

// It would have to wait for an answer that it could not read.
TEST_P(HeldLinkTest, NoneIsLookedForMeanwhile) {
  const std::string where = this->where();
  End a(where, "a");
  a.link.hold(true);
  pass(10, a);
  EXPECT_EQ(a.log, "");
  EXPECT_TRUE(a.watched.empty());
  a.link.hold(false);
  End b(where, "b");
  pass(2, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
}

TEST_P(HeldLinkTest, AnEndThatComesAgainIsNotTakenForAThird) {
  const std::string where = this->where();
  for (const bool joined : {true, false}) {  // before it stood still
    End a(where, "a");
    std::optional<End> b;
    pass(0.1, a);
    if (joined) pass(1, a, b.emplace(where, "b"));
    a.link.hold(true);
    if (!joined) pass(1, a, b.emplace(where, "b"));
    ASSERT_TRUE(b->link.up()) << b->log;
    ASSERT_TRUE(b->send(Bytes(100, 1)));
    b->link.flush();
    End& again = b.emplace(where, "b");
    pass(3, a, again);
    EXPECT_THAT(again.log, Not(HasSubstr("two ends already")));
    EXPECT_TRUE(again.link.up()) << again.log;
    EXPECT_EQ(a.downs, joined ? 1 : 0);
    a.link.hold(false);
    pass(1, a, again);
    EXPECT_TRUE(a.link.up() && again.link.up()) << a.log << again.log;
  }
}

INSTANTIATE_TEST_SUITE_P(Through, HeldLinkTest, ::testing::Values("unix:", "shm:"), [](const auto& info) {
  return std::string(info.param) == "unix:" ? "Socket" : "Memory";
});

}  // namespace
}  // namespace hcasim::wire
