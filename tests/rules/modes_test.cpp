// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a broken rule: report, strict and off; the log, the statistics, the trace, the report file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "driver/bare/device.h"
#include "rule_check.h"
#include "traces/reader.h"
#include "traces/rules.h"
#include "traces/story.h"

namespace hcasim::bare {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::uint32_t health(Function& f) {
  return f.read32(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, irisc_index)) >> 8 & 0xff;
}

// A machine of one HCA, which is as many as a process can have: each test is a process of its own.
class RuleModes : public ::testing::Test {
 protected:
  RuleModes() {
    close(mkstemp(trace_));
    close(mkstemp(report_));
    setenv("HCASIM_RULES_REPORT", report_, 1);
  }
  ~RuleModes() override {
    unlink(trace_);
    unlink(report_);
  }

  // Breaks object-unknown twice and uar-read once; what `see` then finds is of a live HCA.
  template <class See>
  void run(const std::string& options, See see) {
    breaks({"object-unknown", "uar-read"});
    Machine machine(std::size_t{64} << 20);
    Function& f = machine.add_hca("link=ib,name=subject,trace=" + std::string(trace_) + options);
    machine.start();
    Device device(f);
    device.probe();
    Mailbox in(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes);
    in.set<prm::destroy_cq_in::cqn>(0x5555);
    device.exec(in);
    device.cmd().exec(in, 16, 10'000'000);
    f.read32(device.uar_offset());
    see(machine, f, device);
    device.function_reset();
  }
  // Exit status and output of hcasim-trace.
  static std::pair<int, std::string> tool(const std::string& arguments) {
    std::FILE* pipe = popen((std::string(HCASIM_TRACE) + " " + arguments).c_str(), "r");
    if (!pipe) return {-1, ""};
    std::string out;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
  }
  std::string report() const {
    std::ifstream file(report_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  char trace_[64] = "/tmp/hcasim-rules-trace.XXXXXX", report_[64] = "/tmp/hcasim-rules.XXXXXX";
};

TEST_F(RuleModes, ReportCountsAndTellsOnce) {
  run("", [](Machine& m, Function& f, Device& d) {
    EXPECT_EQ(f.counter("rules_broken"), 3u);
    EXPECT_EQ(f.rules_broken().at("object-unknown"), 2u);
    EXPECT_EQ(nlohmann::json::parse(f.stats()).at("rules"),
              (nlohmann::json{{"object-unknown", 2}, {"uar-read", 1}}));
    ASSERT_EQ(m.log(HCA_LOG_WARNING).size(), 2u);
    EXPECT_THAT(m.log(HCA_LOG_WARNING)[0], HasSubstr("rule object-unknown broken (warning) at "));
    EXPECT_THAT(m.log(HCA_LOG_WARNING)[0], HasSubstr("bytes 04010000 00000000 00005555"));
    EXPECT_EQ(health(f), 0u);
    EXPECT_TRUE(d.query_vport().ok());
  });
  EXPECT_EQ(report(), "subject report 3 uar-read=1 object-unknown=2\n");

  traces::Reader reader;
  std::string err;
  ASSERT_TRUE(reader.open(trace_, &err)) << err;
  traces::Record r;
  std::vector<std::uint8_t> blob;
  std::vector<std::string> told;
  while (reader.next(r, blob)) {
    if (r.p() == traces::Point::kRuleBroken) told.push_back(traces::in_words(r));
  }
  ASSERT_EQ(told.size(), 3u);
  EXPECT_THAT(told[0], HasSubstr("rule object-unknown broken by command"));
  EXPECT_THAT(told[2], HasSubstr("rule uar-read broken by UAR page"));

  // `hcasim-trace rules`: with the command that it was broken by.
  const auto shown = tool(std::string("rules --rule object-unknown ") + trace_);
  EXPECT_EQ(shown.first, 1);
  EXPECT_THAT(shown.second,
              ContainsRegex("command .* taken from slot.*\n=> .*rule object-unknown broken by command"));
  EXPECT_THAT(shown.second, HasSubstr("bytes 04010000 00000000 00005555"));
  EXPECT_THAT(shown.second, Not(HasSubstr("=> uar-read")));
}

TEST_F(RuleModes, SoManyBreachesAreTold) {
  run(",rules_told=0", [](Machine& m, Function&, Device&) {
    const auto& lines = m.log(HCA_LOG_WARNING);
    ASSERT_EQ(lines.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_THAT(lines[i], HasSubstr(i < 2 ? "rule object-unknown broken" : "rule uar-read broken"));
      EXPECT_THAT(lines[i], Not(HasSubstr("further ones")));
    }
  });
}

TEST_F(RuleModes, StrictEndsTheService) {
  run(",rules=strict", [](Machine& m, Function& f, Device& d) {
    EXPECT_NE(health(f), 0u);
    EXPECT_FALSE(d.cmd()
                     .exec(Mailbox(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes),
                           prm::query_adapter_out::bytes, 10'000'000)
                     .ok());
    ASSERT_FALSE(m.log(HCA_LOG_ERROR).empty());
    EXPECT_THAT(m.log(HCA_LOG_ERROR)[0], HasSubstr("rule object-unknown broken"));
    // The driver's recovery: a reset brings the device back.
    d.function_reset();
    d.probe();
    EXPECT_EQ(health(f), 0u);
  });
  EXPECT_THAT(report(), HasSubstr("subject strict "));
}

TEST_F(RuleModes, OffSeesNothing) {
  run(",rules=off", [](Machine& m, Function& f, Device&) {
    EXPECT_EQ(f.counter("rules_broken"), 0u);
    EXPECT_TRUE(f.rules_broken().empty());
    EXPECT_TRUE(m.log(HCA_LOG_WARNING).empty());
  });
  EXPECT_EQ(report(), "");
}

TEST_F(RuleModes, AnotherModeIsRefused) {
  Machine machine(std::size_t{64} << 20);
  try {
    machine.add_hca("rules=loose");
    FAIL() << "taken";
  } catch (const BareError& e) {
    EXPECT_THAT(e.what(), HasSubstr("rules=loose: allowed: report, strict, off"));
  }
}

TEST(RuleList, NumbersAreUniqueAndThePageHasAll) {
  const std::string page = traces::rules_page();
  for (const traces::RuleInfo& r : traces::kRuleInfo) {
    EXPECT_EQ(traces::find_rule(r.number), &r) << r.name;
    EXPECT_THAT(page, HasSubstr("| `" + std::string(r.name) + "` |"));
    EXPECT_GT(std::string(r.source).size(), 5u) << r.name;
    EXPECT_GT(std::string(r.text).size(), 10u) << r.name;
  }
  EXPECT_EQ(traces::find_rule(1), nullptr);
}

}  // namespace
}  // namespace hcasim::bare
