// SPDX-License-Identifier: BSD-3-Clause
// Recordings of HCAs whose wire leads to another process: each end replays by itself, though the other one,
// the socket and real time are gone. Each end is a process (coupled_end).
#include <random>

#include "../process.h"
#include "replayed.h"

namespace hcasim {
namespace {

using test::Process;
using test::Ran;
using test::replay;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  const char* options;
};

std::ostream& operator<<(std::ostream& out, const Kind& k) { return out << k.name; }

class ReplayOfAWire : public ::testing::TestWithParam<Kind> {
 protected:
  std::string file(const std::string& name) const { return folder_ / name; }
  // Of the end 1 or 2.
  std::string options(const std::string& end, const std::string& more = "") const {
    return std::string(GetParam().options) + ",name=end-" + end + ",mac=02000000000" + end +
           ",wire=" + test::wire_scheme() + file("wire") + more + "," +
           test::recorded(file("r" + end), file("t" + end));
  }
  // Both ends, one after the other.
  void expect_both_replay() const {
    for (const char* end : {"1", "2"})
      test::expect_same(file(std::string("r") + end), file(std::string("t") + end));
  }
  test::Folder folder_;
};

TEST_P(ReplayOfAWire, IsEachEndByItself) {
  Process a(COUPLED_END, {"a", options("1"), "40", "1"});
  Process b(COUPLED_END, {"b", options("2"), "40", "2"});
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_EQ(b.end(), 0) << b.said;
  for (const Process* end : {&a, &b}) {
    EXPECT_THAT(end->said, HasSubstr("port 4 at "));
    EXPECT_THAT(end->said, HasSubstr("rounds 40 in "));
  }
  EXPECT_FALSE(std::filesystem::exists(file("wire")));
  expect_both_replay();
}

// Frames that are damaged, doubled and put off on their way: what reaches the other end is in its recording.
TEST_P(ReplayOfAWire, WithFaultsOnTheWay) {
  Process a(COUPLED_END, {"a", options("1", ",duplicate=0.1,reorder=0.05,seed=3"), "40", "0"});
  Process b(COUPLED_END, {"b", options("2", ",duplicate=0.1,corrupt=0.02,seed=4"), "40", "0"});
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_EQ(b.end(), 0) << b.said;
  EXPECT_THAT(a.said, HasSubstr("rounds 40 in "));
  expect_both_replay();
}

TEST_P(ReplayOfAWire, WhoseOtherEndDies) {
  {
    Process a(COUPLED_END, {"a", options("1"), "100000", "0"});
    Process b(COUPLED_END, {"b", options("2"), "100000", "0", "8000"});
    EXPECT_EQ(b.end(), 0) << b.said;
    EXPECT_LE(a.end(), 1) << a.said;
    EXPECT_THAT(a.said, HasSubstr("the other end has gone"));
  }
  test::expect_same(file("r1"), file("t1"));
  // Which left without a word, and with a trace that is not complete.
  const Ran dead = replay(file("r2"));
  EXPECT_EQ(dead.status, 0) << dead.text;
  EXPECT_THAT(dead.text, HasSubstr("as recorded, so far"));
}

// Cut off anywhere, or with other bytes than were written, it is said, and nothing crashes.
TEST_P(ReplayOfAWire, DamagedOrCutOff) {
  Process a(COUPLED_END, {"a", options("1"), "10", "0"});
  Process b(COUPLED_END, {"b", options("2"), "10", "0"});
  ASSERT_EQ(a.end(), 0) << a.said;
  ASSERT_EQ(b.end(), 0) << b.said;
  const std::string records = test::records_of(file("r1"));
  for (const double share : {0.2, 0.5, 0.9, 0.999}) {
    test::write_records(
        file("s"), records.substr(0, static_cast<std::size_t>(share * static_cast<double>(records.size()))));
    const Ran ran = replay(file("s"));
    EXPECT_EQ(ran.status, 0) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr("the replay ends early: it"));
  }
  // The message of the third round was read from memory, came in from the other end, was written to memory.
  const std::string message(64, 3);
  const std::size_t read = records.find(message), came = records.find(message, read + 64);
  ASSERT_NE(came, std::string::npos);
  std::string changed = records;
  changed[came + 7] = 4;
  test::write_records(file("s"), changed);
  const Ran other = replay(file("s"));
  EXPECT_EQ(other.status, 1) << other.text;
  EXPECT_THAT(other.text, HasSubstr("NOT as recorded: event "));
  std::mt19937 random(17);
  for (unsigned i = 0; i < 40; ++i) {
    std::string spoiled = records;
    // Half of them where the ends have met.
    const std::size_t from = i % 2 ? 0 : spoiled.size() * 3 / 4;
    const std::size_t at = from + random() % (spoiled.size() - from);
    if (i % 5 == 4)
      spoiled.erase(at, 1 + random() % 9);
    else
      spoiled[at] = static_cast<char>(spoiled[at] ^ (1 + random() % 255));
    test::write_records(file("s"), spoiled);
    const Ran ran = replay(file("s") + " --until 1000000000");
    EXPECT_LE(ran.status, 2) << "spoiled " << i << ": " << ran.text;
  }
}

// From a state, too: what the other end has said before that is known then.
using ReplayOfALooseWire = ReplayOfAWire;
TEST_P(ReplayOfALooseWire, BeginsWithAState) {
  Process a(COUPLED_END, {"a", options("1", ",snapshot_every=1ms"), "400", "1"});
  Process b(COUPLED_END, {"b", options("2", ",snapshot_every=1ms"), "400", "2"});
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_EQ(b.end(), 0) << b.said;
  for (const char* end : {"1", "2"}) {
    const std::string recording = file(std::string("r") + end);
    const Ran whole = replay(recording);
    double lasts = 0;
    ASSERT_EQ(std::sscanf(whole.text.c_str(), "%*u events, %lf s", &lasts), 1) << whole.text;
    for (const double part : {0.3, 0.6, 0.9}) {
      const double from = lasts * part;
      const Ran ran = replay(recording + " --from " + std::to_string(static_cast<std::int64_t>(from * 1e9)));
      EXPECT_EQ(ran.status, 0) << ran.text;
      EXPECT_THAT(ran.text, HasSubstr("as recorded; "));
      EXPECT_THAT(ran.text, HasSubstr("statistics of 1 HCA equal"));
      double at = -1;
      ASSERT_EQ(std::sscanf(ran.text.c_str(), "begins at %lf s", &at), 1) << ran.text;
      EXPECT_LE(at, from);
      EXPECT_GT(at, from - lasts / 4);
    }
  }
  // What is read to find out how the ends stood may be damaged as well.
  const std::string records = test::records_of(file("r1"));
  std::mt19937 random(29);
  for (unsigned i = 0; i < 6; ++i) {
    std::string spoiled = records;
    const std::size_t at = random() % (i % 2 ? spoiled.size() / 8 : spoiled.size() / 2);
    spoiled[at] = static_cast<char>(spoiled[at] ^ (1 + random() % 255));
    test::write_records(file("s"), spoiled);
    const Ran ran = replay(file("s") + " --from 100000000 --until 200000000");
    EXPECT_LE(ran.status, 2) << "spoiled " << i << ": " << ran.text;
  }
}

const auto kind_name = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Wires, ReplayOfALooseWire,
                         ::testing::Values(Kind{"EagerIb", "link=ib"}, Kind{"EagerRoce", "link=eth"}),
                         kind_name);
INSTANTIATE_TEST_SUITE_P(Wires, ReplayOfAWire,
                         ::testing::Values(Kind{"EagerIb", "link=ib"}, Kind{"EagerRoce", "link=eth"},
                                           Kind{"CoupledIb", "link=ib,coupled=on"},
                                           Kind{"CoupledRoce", "link=eth,coupled=on"}),
                         kind_name);

}  // namespace
}  // namespace hcasim
