// SPDX-License-Identifier: BSD-3-Clause
// Scenario files: what they say is done, runs repeat, and mistakes are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>

#include "../files.h"
#include "driver/bare/qp.h"
#include "driver/bare/rules.h"
#include "model/fault/spec.h"
#include "traces/fault_list.h"
#include "traces/reader.h"

namespace hcasim::bare {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FaultPlan : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return folder_ / name; }
  std::string scenario(const std::string& text) const {
    test::write_bytes(file("s.toml"), text);
    return file("s.toml");
  }
  test::Folder folder_;
};

// Bring-up and `writes` RDMA writes of 20 KB, under a scenario; in a process of its own, as a process has one
// simulation. The trace goes to `trace`.
void run_apart(const std::string& faults, const std::string& trace, int writes) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int status = 1;
    try {
      const RuleWatch watch;
      Machine machine(std::size_t{64} << 20);
      Function& function = machine.add_hca("link=ib,faults=" + faults + ",trace=" + trace);
      machine.start();
      Device d(function);
      d.probe();
      Pd pd(d);
      Cq cq(d), rcq(d);
      Buffer memory = d.memory().allocate(1 << 16);
      Mr mr(d, Mr::of(pd, memory, kAllAccess));
      Qp a(d, pd, cq, cq), b(d, pd, rcq, rcq);
      connect_pair(a, b, QpAttr{});
      for (int i = 0; i < writes; ++i) {
        SendWr w;
        w.op = WqeOp::kRdmaWrite;
        w.sges = {{mr.start(), mr.key(), 20'000}};
        w.raddr = mr.start() + 32768;
        w.rkey = mr.key();
        a.post(w);
        cq.wait_one();
      }
      hca_destroy(function.handle());
      watch.must_be_none();
      status = 0;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    std::fflush(nullptr);
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child failed: " << status;
}

std::vector<traces::Record> faults_in(const std::string& trace) {
  traces::Reader reader;
  std::string err;
  EXPECT_TRUE(reader.open(trace, &err)) << err;
  traces::Record r;
  std::vector<std::uint8_t> blob;
  std::vector<traces::Record> out;
  while (reader.next(r, blob))
    if (r.p() == traces::Point::kFaultInjected) out.push_back(r);
  return out;
}

TEST_F(FaultPlan, TheSameSeedHasTheSameVictimsAndAnotherOthers) {
  const auto text = [&](int seed) {
    return scenario("seed = " + std::to_string(seed) +
                    "\n[[fault]]\nkind = \"wire\"\naction = \"drop\"\nprobability = 0.05\n"
                    "[[fault]]\nkind = \"dma\"\naction = \"slow\"\ndelay = \"2us\"\nprobability = 0.02\n");
  };
  run_apart(text(7), file("a"), 40);
  run_apart(text(7), file("b"), 40);
  run_apart(text(8), file("c"), 40);
  EXPECT_TRUE(test::bytes_of(file("a")) == test::bytes_of(file("b")));
  const auto seven = faults_in(file("a")), eight = faults_in(file("c"));
  EXPECT_GT(seven.size(), 10u);
  EXPECT_GT(eight.size(), 10u);
  const auto victims = [](const std::vector<traces::Record>& list) {
    std::vector<std::uint64_t> out;
    for (const traces::Record& r : list) out.push_back(r.a1);
    return out;
  };
  EXPECT_NE(victims(seven), victims(eight));
}

TEST_F(FaultPlan, FaultsActAtTheirTimeAndAreRecorded) {
  run_apart(scenario("[[fault]]\nkind = \"temperature\"\nat = \"1.5ms\"\nsensors = 1\n"
                     "[[fault]]\nkind = \"command\"\nopcode = 0x7777 # nobody's\nstatus = 9\n"
                     "[[fault]]\nkind = \"command\"\nopcode = \"QUERY_ISSI\"\ndelay = 50000\n"),
            file("t"), 600);
  const auto seen = faults_in(file("t"));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].index, 3u);
  EXPECT_EQ(seen[0].a0, traces::fault_word(traces::FaultType::kCommand, traces::FaultAction::kStatus));
  EXPECT_EQ(seen[0].a1 >> 32, prm::op::QUERY_ISSI);
  EXPECT_EQ(seen[1].index, 1u);
  EXPECT_EQ(seen[1].time_ps, 1'500'000'000);
  EXPECT_EQ(seen[1].a0, traces::fault_word(traces::FaultType::kTemperature, traces::FaultAction::kHot));
}

// The file that the README shows.
TEST_F(FaultPlan, TheExampleIsWhole) {
  std::string text, err;
  Scenario s;
  ASSERT_TRUE(read_scenario(EXAMPLE, text, err)) << err;
  ASSERT_TRUE(parse_scenario(text, EXAMPLE, s, err)) << err;
  EXPECT_EQ(s.seed, 7u);
  ASSERT_EQ(s.faults.size(), 5u);
  EXPECT_EQ(s.faults[0].value(FaultKey::kStatus), 9u);
  EXPECT_EQ(s.faults[0].nth, 2u);
  EXPECT_EQ(s.faults[1].times, 0u);
  EXPECT_EQ(s.faults[1].until, 10'000'000'000'000);
  EXPECT_EQ(s.faults[3].every, 1'000'000'000'000u);
  EXPECT_EQ(s.faults[3].time(FaultKey::kDuration), 20'000'000'000);
}

TEST(FaultScenario, MistakesAreNamedWithFileLineAndKey) {
  struct Case {
    const char *text, *said;
  };
  for (const Case& c : {
           Case{"seed = -1\n", "x.toml:1: seed: allowed: 0 to 2^63-1"},
           Case{"[[fault]]\nopcode = 3\n", "x.toml:1: kind: missing in this [[fault]]"},
           Case{"\n[[fault]]\nkind = \"smoke\"\n", "x.toml:3: kind=smoke: there are command"},
           Case{"[[fault]]\nkind = \"command\"\nnth = 0\nstatus = 1\n",
                "x.toml:3: nth=0: allowed: 1 to 2^32"},
           Case{"[[fault]]\nkind = \"command\"\nvector = 0\nstatus = 1\n", "x.toml:3: vector: command takes"},
           Case{"[[fault]]\nkind = \"dma\"\nfunction = 1024\n",
                "x.toml:3: function=1024: allowed: 0 to 1023"},
           Case{"[[fault]]\nkind = \"wire\"\nfunction = 0\n", "x.toml:3: function: wire takes"},
           Case{"[[fault]]\nkind = \"pcie\"\nerror = \"bad-tlp\"\nfunction = 1\n",
                "x.toml:4: function: errors are told by the physical function alone"},
           Case{"[[fault]]\nkind = \"pcie\"\naction = \"remove\"\nfunction = 1\n",
                "x.toml:4: function: the card is pulled as a whole"},
           Case{"[[fault]]\nkind = \"command\"\n", "x.toml:1: command: what is to happen?"},
           Case{"[fault]\nkind = \"command\"\n", "x.toml:1: fault: unknown; allowed are seed and [[fault]]"},
           Case{"sead = 1\n", "x.toml:1: sead: unknown"},
           Case{"[[fault]]\nfault = \"command\"\n", "x.toml:2: fault: write kind = \"command\""},
           Case{"[[fault]]\nkind = \"command\"\nkind = \"dma\"\n", "x.toml:3: "},
           Case{"seed = \n", "x.toml:1: not understood"},
           Case{"[[fault]\n", "x.toml:1: not understood"},
           Case{"a = [1,\n", "x.toml:1: not understood"},
           Case{"seed = 1_\n", "x.toml:1: not understood"},
           Case{"seed = \"\n", "x.toml:1: not understood"},
           Case{"seed = 99999999999999999999\n", "x.toml:1: "},
           Case{"\xff = 1\n", "x.toml:1: not understood"},
       }) {
    Scenario s;
    std::string err;
    EXPECT_FALSE(parse_scenario(c.text, "x.toml", s, err)) << c.text;
    EXPECT_THAT(err, HasSubstr(c.said)) << c.text;
  }
}

// Whatever is done to a good text, there is an answer.
TEST(FaultScenario, BrokenTextsAreMessages) {
  std::string good, err;
  ASSERT_TRUE(read_scenario(EXAMPLE, good, err)) << err;
  std::mt19937 random(5);
  const std::string pieces[] = {"[",   "]",   "\"",         "'",      "=",   ".",    "\n",
                                "#",   "\\",  "{",          "}",      ",",   "0x",   "-",
                                "inf", "nan", "1979-05-27", "\"\"\"", "'''", "\xc3", "\xe2\x80\xa8",
                                "_",   "e",   "true",       "[[",     "]]",  "+",    std::string(1, '\0')};
  unsigned refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % text.size();
      const std::string& piece = pieces[random() % std::size(pieces)];
      if (random() % 2)
        text.replace(at, random() % 8, piece);
      else
        text.insert(at, piece);
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    Scenario s;
    err.clear();
    if (parse_scenario(text, "x.toml", s, err)) continue;
    ++refused;
    ASSERT_THAT(err, HasSubstr("x.toml")) << text;
  }
  EXPECT_GT(refused, 5'000u);
}

TEST(FaultScenario, TimesHaveUnits) {
  Time t = 0;
  EXPECT_TRUE(parse_time("1.5ms", t) && t == 1'500'000'000);
  EXPECT_TRUE(parse_time("20us", t) && t == 20'000'000);
  EXPECT_TRUE(parse_time("300", t) && t == 300'000);
  EXPECT_TRUE(parse_time("7ps", t) && t == 7);
  EXPECT_TRUE(parse_time("2s", t) && t == 2'000'000'000'000);
  for (const char* bad : {"", "ms", "1 ms", "1h", "-1us", "1e30s", "nan", "0x", "1.2.3us"})
    EXPECT_FALSE(parse_time(bad, t)) << bad;
}

// The page is made of the table: nothing is missing in it.
TEST(FaultTable, ThePageHasAllKindsActionsAndKeys) {
  const std::string page = fault_page(), text = fault_text();
  for (const auto& k : traces::kFaultKindInfo) {
    EXPECT_THAT(page, HasSubstr("### " + std::string(k.name)));
    EXPECT_THAT(text, HasSubstr(k.help));
  }
  for (const auto& a : traces::kFaultActionInfo) EXPECT_THAT(page, HasSubstr(a.help));
  for (const auto& k : traces::kFaultKeyInfo)
    EXPECT_THAT(page, HasSubstr("| `" + std::string(k.name) + "` |"));
  // Each key is some kind's.
  traces::FaultKeys all = 0;
  for (unsigned i = 0; i < traces::kFaultKinds; ++i)
    all |= own_keys(static_cast<FaultType>(i)) | trigger_keys(static_cast<FaultType>(i));
  EXPECT_EQ(all, (traces::FaultKeys{1} << traces::kFaultKeys) - 1);
}

}  // namespace
}  // namespace hcasim::bare
