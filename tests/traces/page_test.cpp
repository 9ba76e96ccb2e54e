// SPDX-License-Identifier: BSD-3-Clause
// `hcasim-trace report`: the page's data beside what the analysis says, its bounds, hostile input; which WQEs
// are told of; lcov's tracefiles.
#include "traces/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "traces/report.h"
#include "traces/story.h"
#include "traces/worst.h"
#include "varied_trace.h"

namespace hcasim::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

class TemporaryFile {
 public:
  TemporaryFile() { close(mkstemp(name_)); }
  ~TemporaryFile() { unlink(name_); }
  const char* name() const { return name_; }

 private:
  char name_[32] = "/tmp/hcasim-page-test-XXXXXX";
};

class Page : public ::testing::Test {
 protected:
  void record(std::uint32_t wqes, unsigned queues) {
    Tracer tx(0), rx(1);
    std::string err;
    ASSERT_TRUE(tx.open(file_.name(), &err) && rx.open(file_.name(), &err)) << err;
    VariedTrace(tx, rx, queues).write(wqes);
  }
  void read() {
    ASSERT_NE(read_records(file_.name(),
                           [&](const Record& r, const std::vector<std::uint8_t>& blob) {
                             analysis_.add(r, blob);
                             facts_.add(r, blob);
                           }),
              2);
    analysis_.finish();
    input_.path = file_.name();
    input_.analysis = &analysis_;
    input_.facts = &facts_;
  }
  Json data(const PageLimits& limits = {}) {
    Json j;
    std::string err;
    EXPECT_TRUE(page_data(input_, limits, &j, &err)) << err;
    return j;
  }
  std::string html(const PageLimits& limits = {}) {
    std::string text, err;
    EXPECT_TRUE(page(input_, limits, &text, &err)) << err;
    return text;
  }
  static std::string embedded(const std::string& html) {
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    const std::size_t from = html.find(open);
    if (from == std::string::npos) return "";
    return html.substr(from + open.size(), html.find("</script>", from) - from - open.size());
  }
  static std::size_t times(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
    return n;
  }

  TemporaryFile file_;
  Analysis analysis_;
  Facts facts_;
  PageInput input_;
};

TEST_F(Page, SaysWhatTheAnalysisSays) {
  record(4000, 5);
  read();
  const Json j = Json::parse(embedded(html()));
  EXPECT_EQ(j["records"], analysis_.records());
  EXPECT_EQ(j["wqes"]["count"], 4000u);
  EXPECT_EQ(j["wqes"]["failed"], 4u);
  EXPECT_EQ(j["wqes"]["open"], 2u);
  EXPECT_EQ(j["hcas"].size(), 2u);
  EXPECT_EQ(j["hcas"][0]["wqes"], 4000u);
  // All of them are drawn, with all of their stages.
  ASSERT_EQ(j["bars"].size(), 4000u);
  EXPECT_EQ(j["wqes_placed"], 4000u);
  std::vector<const WqeRow*> rows;
  for (const WqeRow& w : analysis_.wqes()) rows.push_back(&w);
  for (std::size_t i = 0; i < rows.size(); i++) {
    const Json& bar = j["bars"][i];
    ASSERT_EQ(bar[1], rows[i]->serial);
    ASSERT_EQ(j["opcodes"][bar[3].get<unsigned>()], rows[i]->opcode_name());
    ASSERT_EQ(j["statuses"][bar[5].get<unsigned>()], rows[i]->status_name());
    ASSERT_EQ(bar[6].get<std::int64_t>() + j["axis"]["first"].get<std::int64_t>(), rows[i]->start());
    ASSERT_EQ(bar[9].size(), 2 * rows[i]->steps().size());
    if (rows[i]->end() == kNoTime)
      ASSERT_TRUE(bar[7].is_null());
    else
      ASSERT_EQ(bar[7], rows[i]->end() - rows[i]->start());
  }
  // The steps are those of `stats`, and their bins hold all of their times.
  const auto steps = step_times(rows);
  ASSERT_EQ(j["steps"].size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); i++) {
    const Json& s = j["steps"][i];
    EXPECT_EQ(s["name"], steps[i].name());
    EXPECT_EQ(s["count"], steps[i].times.size());
    EXPECT_EQ(s["times"], Json::array({percentile(steps[i].times, 50), percentile(steps[i].times, 99),
                                       steps[i].times.back()}));
    std::size_t n = 0;
    for (const Json& bin : s["bins"]) n += bin[1].get<std::size_t>();
    EXPECT_EQ(n, steps[i].times.size());
  }
  // Rates and lanes count each WQE once.
  std::uint64_t done = 0, failed = 0, bytes = 0, begun = 0, failed_in_lanes = 0;
  for (const Json& r : j["rates"])
    done += r[0].get<unsigned>(), failed += r[1].get<unsigned>(), bytes += r[2].get<unsigned>();
  for (const Json& lane : j["lanes"])
    for (const Json& bin : lane["bins"])
      begun += bin[1].get<unsigned>(), failed_in_lanes += bin[2].get<unsigned>();
  EXPECT_EQ(done, 3998u);
  EXPECT_EQ(failed, 4u);
  EXPECT_EQ(bytes, summarize(analysis_).bytes);
  EXPECT_EQ(begun, 4000u);
  EXPECT_EQ(failed_in_lanes, 4u);
  // The rest of the page.
  EXPECT_EQ(j["commands"]["count"], 40u);
  EXPECT_EQ(j["commands"]["failed"], 2u);
  EXPECT_EQ(j["commands"]["open"], 1u);
  EXPECT_EQ(j["failed_commands"][0]["status"], "BAD_PARAM");
  EXPECT_THAT(j["failed_commands"][0]["why"].dump(), HasSubstr("The card refused it: BAD_PARAM"));
  EXPECT_EQ(j["rules_broken"], 2u);
  EXPECT_EQ(j["rules"].size(), 2u);
  EXPECT_EQ(j["rules"][0]["examples"][0]["before"].size(), 6u);
  EXPECT_FALSE(j["rules"][0]["examples"][0]["bytes"].get<std::string>().empty());
  EXPECT_EQ(j["faults_count"], 1u);
  EXPECT_EQ(j["fault_kinds"][0][0], "wire/drop");
  EXPECT_THAT(j["errors"].dump(), HasSubstr("the QP is not in a state to receive it"));
  EXPECT_THAT(j["errors"].dump(),
              HasSubstr("bad doorbell at UAR page 0x3, offset 0x20 (CQ arm): value 0x5, for CQ 0x99"));
}

TEST_F(Page, TellsWhatWhySays) {
  record(4000, 5);
  read();
  const Json j = data();
  ASSERT_GT(j["told_failed"], 3u);
  ASSERT_GT(j["told"].size(), j["told_failed"]);
  for (const Json& told : j["told"]) {
    WqeId id;
    std::string err;
    ASSERT_TRUE(parse_wqe_id(told["wqe"], &id, &err)) << err;
    const WqeRow* w = find_wqe(analysis_, id);
    ASSERT_NE(w, nullptr);
    Story story;
    ASSERT_TRUE(tell(file_.name(), analysis_, *w, &story, &err)) << err;
    const auto reasons = why(analysis_, story);
    ASSERT_EQ(told["why"].size(), reasons.size());
    for (std::size_t i = 0; i < reasons.size(); i++) {
      EXPECT_EQ(told["why"][i][0], reasons[i].text);
      ASSERT_EQ(told["why"][i][1].size(), reasons[i].proof.size());
      for (std::size_t k = 0; k < reasons[i].proof.size(); k++)
        EXPECT_EQ(told["why"][i][1][k][4], in_words(reasons[i].proof[k]));
    }
  }
  EXPECT_THAT(j["told"][0]["why"].dump(), HasSubstr("The ACK timer ran out"));
  // Each of them has a bar that leads to it.
  std::size_t led = 0;
  for (const Json& bar : j["bars"]) led += bar[8] != -1;
  EXPECT_EQ(led, j["told"].size());
}

TEST_F(Page, IdleTimeIsCutOut) {
  record(12000, 3);  // 40 ms after each 5000
  read();
  const Overview o = overview(analysis_, {}, {});
  ASSERT_EQ(o.axis.cuts.size(), 2u);
  EXPECT_GT(o.axis.cuts[0].length, 39'000'000'000);
  EXPECT_LT(o.axis.busy(), 10'000'000'000);
  EXPECT_EQ(o.axis.place(o.axis.first), 0);
  EXPECT_EQ(o.axis.place(o.axis.last), o.axis.busy());
  EXPECT_EQ(o.axis.place(o.axis.cuts[0].at + 5), o.axis.place(o.axis.cuts[0].at));
  EXPECT_EQ(o.axis.place(o.axis.cuts[0].at + o.axis.cuts[0].length + 5), o.axis.place(o.axis.cuts[0].at) + 5);
  EXPECT_EQ(o.axis.bin_of(o.axis.last), o.axis.bins - 1);
  // And back.
  const Axis::Cut& c = o.axis.cuts[1];
  EXPECT_EQ(o.axis.time_at(0), o.axis.first);
  EXPECT_EQ(o.axis.time_at(o.axis.place(c.at) - 1), c.at - 1);
  EXPECT_EQ(o.axis.time_at(o.axis.place(c.at)), c.at + c.length);
  EXPECT_EQ(o.axis.time_at(o.axis.place(o.axis.last)), o.axis.last);
  // Bins are of all of the time, so a rate over one is what it is.
  std::int64_t all = 0;
  for (const Rate& r : o.rates) all += r.length;
  EXPECT_EQ(all, o.axis.last - o.axis.first);
}

TEST_F(Page, AMillionRecordsAreSummarized) {
  record(68'000, 100);
  read();
  ASSERT_GT(analysis_.records(), 1'000'000u);
  const std::string text = html();
  EXPECT_LT(text.size(), 10u << 20);
  const Json j = Json::parse(embedded(text));
  const OverviewLimits limits;
  EXPECT_LE(j["bars"].size(), limits.bars);
  EXPECT_GT(j["bars"].size(), limits.bars / 2);
  EXPECT_EQ(j["lanes"].size(), limits.lanes);
  EXPECT_EQ(j["lanes_left_out"], 100 - limits.lanes);
  EXPECT_EQ(j["wqes_placed"], 68'000u);
  std::uint64_t begun = j["wqes_in_other_lanes"].get<std::uint64_t>();
  for (const Json& lane : j["lanes"])
    for (const Json& bin : lane["bins"]) begun += bin[1].get<unsigned>();
  EXPECT_EQ(begun, 68'000u);
  // Each lane has bars, and each WQE that is told of and has a lane is among them.
  std::vector<std::size_t> bars(limits.lanes);
  std::size_t led = 0;
  for (const Json& bar : j["bars"]) {
    bars[bar[0].get<std::size_t>()]++;
    led += bar[8] != -1;
  }
  EXPECT_GT(*std::min_element(bars.begin(), bars.end()), 50u);
  EXPECT_GE(led, j["told_failed"].get<std::size_t>());
  // The steps are of all WQEs, not of those that are drawn.
  EXPECT_EQ(j["steps"][0]["count"], 68'000u - j["wqes"]["open"].get<unsigned>());
}

TEST_F(Page, ASmallerPageDrawsFewerWqes) {
  record(8000, 5);
  read();
  PageLimits limits;
  limits.bytes = 500'000;
  const std::string text = html(limits);
  EXPECT_LT(text.size(), 600'000u);
  const Json j = Json::parse(embedded(text));
  EXPECT_GT(j["bars"].size(), 100u);
  EXPECT_LT(j["bars"].size(), 8000u);
  EXPECT_EQ(j["wqes_placed"], 8000u);
  EXPECT_EQ(j["bars_failed"], 8u);
}

TEST_F(Page, HostileTextStaysText) {
  record(20, 2);
  read();
  const std::string hostile =
      "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\"'&\xff\xc3";
  input_.warning = hostile;
  input_.coverage_path = hostile;
  input_.coverage.push_back({"/d" + hostile + "/" + hostile, 3, 1, 1, 0});
  const std::string text = html();
  EXPECT_EQ(times(text, "<script"), 2u);
  EXPECT_EQ(times(text, "</script"), 2u);
  EXPECT_EQ(text.find("<!--"), std::string::npos);
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(embedded(text).find('<'), std::string::npos);
  const Json j = Json::parse(embedded(text));
  EXPECT_THAT(j["warning"].get<std::string>(), HasSubstr("</script><script>alert(1)</script><!--<img"));
  EXPECT_THAT(j["coverage"]["folders"][0]["files"][0][0].get<std::string>(), HasSubstr("<img src=x"));
  EXPECT_THAT(text, HasSubstr("script-src 'sha256-"));
}

TEST_F(Page, AnyRecordsMakeAPage) {
  {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(file_.name(), &err)) << err;
    write_anything(t, 60'000);
  }
  read();
  const std::string text = html();
  EXPECT_LT(text.size(), 10u << 20);
  const Json j = Json::parse(embedded(text));
  EXPECT_GT(j["wqes"]["count"], 1000u);
  EXPECT_LE(j["lanes"].size(), 64u);
}

TEST_F(Page, AnEmptyTraceMakesAPage) {
  {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(file_.name(), &err)) << err;
  }
  read();
  const Json j = Json::parse(embedded(html()));
  EXPECT_EQ(j["records"], 0u);
  EXPECT_EQ(j["bars"].size(), 0u);
}

class WorstTest : public ::testing::Test {
 protected:
  WorstTest() { tracer_.open_memory(); }
  void wqe(std::uint32_t qpn, std::uint32_t serial, std::int64_t t, std::int64_t took,
           prm::CqeSyndrome syndrome, std::uint32_t bytes = 64) {
    tracer_.record(Point::kWqeParsed, t, qpn, serial, 0x0a, bytes);
    if (took == 0) return;
    if (syndrome == prm::CqeSyndrome::kWrFlush) tracer_.record(Point::kFlush, t + took, qpn, serial, 0, 0);
    tracer_.record(
        Point::kCqeWritten, t + took, qpn, serial,
        static_cast<std::uint64_t>(syndrome == prm::CqeSyndrome::kOk ? prm::CqeOp::kReq : prm::CqeOp::kReqErr)
                << 24 |
            static_cast<std::uint64_t>(syndrome) << 32,
        serial);
  }
  const Analysis& analysis() {
    for (const Record& r : tracer_.drain()) analysis_.add(r, {});
    analysis_.finish();
    return analysis_;
  }
  static std::vector<std::string> names(const std::vector<const WqeRow*>& v) {
    std::vector<std::string> out;
    for (const WqeRow* w : v) out.push_back(wqe_id(*w));
    return out;
  }
  Tracer tracer_;
  Analysis analysis_;
};

TEST_F(WorstTest, FailedOnesBeforeThoseFlushedWithThem) {
  using S = prm::CqeSyndrome;
  wqe(7, 0, 1000, 100, S::kWrFlush);
  wqe(8, 0, 2000, 0, S::kOk);  // never ended, though the next one did
  wqe(8, 1, 2100, 50, S::kOk);
  wqe(9, 0, 3000, 100, S::kRemoteAccess);
  wqe(9, 1, 3001, 100, S::kWrFlush);
  wqe(9, 2, 3002, 100, S::kWrFlush);
  wqe(10, 0, 4000, 100, S::kRnrRetryExc);
  wqe(11, 0, 5000, 0, S::kOk);  // under way at the end
  const Analysis& a = analysis();
  EXPECT_EQ(names(failed_wqes(a, 10)),
            (std::vector<std::string>{"0:0x8:0", "0:0x9:0", "0:0xa:0", "0:0x7:0", "0:0x9:1", "0:0x9:2"}));
  EXPECT_EQ(failed_wqes(a, 2).size(), 2u);
  EXPECT_EQ(failed_wqes(Analysis(), 2).size(), 0u);
}

TEST_F(WorstTest, SlowOnesByTheirLike) {
  using S = prm::CqeSyndrome;
  for (std::uint32_t i = 0; i < 10; i++) {
    wqe(7, i, i * 1'000'000, i == 4 ? 5000 : i == 5 ? 4000 : 1000, S::kOk, 64);
    wqe(8, i, i * 1'000'000, i == 9 ? 30'000 : 10'000, S::kOk, 4096);
  }
  for (std::uint32_t i = 0; i < 10; i++)
    wqe(7, 100 + i, i * 1'000'000 + 7, 100'000, S::kOk, 1u << 20);  // long, as all of its size
  wqe(9, 0, 0, 900'000, S::kOk);                                    // the only one of its kind
  const auto slow = slow_wqes(analysis(), 10);
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(wqe_id(*slow[0].wqe), "0:0x7:4");
  EXPECT_EQ(slow[0].median, 1000);
  EXPECT_DOUBLE_EQ(slow[0].times(), 5);
  EXPECT_EQ(wqe_id(*slow[1].wqe), "0:0x8:9");
  EXPECT_EQ(slow_wqes(analysis_, 10, 2).size(), 3u);
  EXPECT_EQ(slow_wqes(analysis_, 1).size(), 1u);
  // `why` compares a WQE with the same ones.
  Usual usual(analysis_);
  for (const SlowWqe& s : slow) EXPECT_EQ(usual.life(*s.wqe).median, s.median);
}

TEST(Words, OfPointsThatThisVersionDoesNotHave) {
  Record r;
  r.point = static_cast<std::uint16_t>(Point::kCount);
  r.obj = 17;
  EXPECT_EQ(in_words(r), "unknown: obj 0x11 index 0 a0 0x0 a1 0x0 (of another version)");
}

TEST(Words, OfDroppedFramesThatHaveNoBth) {
  Record r;
  r.point = static_cast<std::uint16_t>(Point::kPacketDrop);
  r.a1 = 14;
  EXPECT_EQ(in_words(r), "dropped: a flow rule drops it");
  r.a0 = 4 << 24 | 7;
  EXPECT_EQ(in_words(r), "dropped, PSN 7 SEND_ONLY: a flow rule drops it");
}

TEST(Words, OfBadDoorbells) {
  Record r;
  r.point = static_cast<std::uint16_t>(Point::kDoorbellBad);
  r.obj = 0x55;
  r.a0 = 5 * 4096 + 0x800;
  r.a1 = 0x77;
  r.index = bad_store(RuleObject::kQp);
  EXPECT_EQ(in_words(r),
            "bad doorbell at UAR page 0x5, offset 0x800 (send doorbell): value 0x77, for QP 0x55");
  r.index = bad_store(RuleObject::kUar);  // the page is nobody's: what the store says of itself
  r.a0 = 3 * 4096 + 0x20;
  r.a1 = 0x402;
  EXPECT_THAT(in_words(r),
              HasSubstr("UAR page 0x3, offset 0x20 (CQ arm): value 0x402; if it was 8 bytes, for CQ 0x402"));
  r.a1 = 0x77;
  r.index = bad_record(RuleObject::kRq);
  r.a0 = 0x1000;
  EXPECT_EQ(in_words(r), "the doorbell record of RQ 0x55 at 0x1000 holds a count that cannot be: 119");
  r.index = 0;  // traces from before the field
  EXPECT_THAT(in_words(r), HasSubstr("object 0x55, at 0x1000, value 0x77"));
  r.point = static_cast<std::uint16_t>(Point::kQpError);
  r.a0 = 6;
  r.a1 = static_cast<std::uint64_t>(prm::CqeSyndrome::kOk);
  EXPECT_EQ(in_words(r), "QP 0x55 went to an error state by itself: ERR");
  r.a1 = 5;
  EXPECT_THAT(in_words(r), HasSubstr("ERR, event WQ_CATAS"));
}

class CoverageTest : public ::testing::Test {
 protected:
  bool read(const std::string& text) {
    std::ofstream(file_.name()) << text;
    return read_coverage(file_.name(), &files_, &err_);
  }
  TemporaryFile file_;
  std::vector<CoverageFile> files_;
  std::string err_;
};

TEST_F(CoverageTest, LinesAndFunctionsOfBothFormats) {
  ASSERT_TRUE(read(
      "TN:one\nSF:/src/b.c\nFN:3,first\nFN:9,20,second\nFNDA:4,first\nFNDA:0,second\nFNF:2\nFNH:1\n"
      "DA:3,4\nDA:4,0,abc\nDA:5,1\nBRDA:3,0,0,-\nLF:3\nLH:2\nend_of_record\n"
      "TN:two\nSF:/src/b.c\nFN:9,20,second\nFNDA:1,second\nDA:4,7\nDA:9,0\nend_of_record\r\n"
      "SF:/src/a.c\nFNL:0,3,8\nFNA:0,5,f\nFNA:0,0,f_alias\nFNL:1,9\nFNA:1,0,g\nLF:10\nLH:4\nend_of_record\n"))
      << err_;
  ASSERT_EQ(files_.size(), 2u);
  EXPECT_EQ(files_[0].path, "/src/a.c");
  EXPECT_EQ(files_[0].lines, 10u);  // its sums, as it has no lines
  EXPECT_EQ(files_[0].lines_hit, 4u);
  EXPECT_EQ(files_[0].functions, 2u);
  EXPECT_EQ(files_[0].functions_hit, 1u);
  EXPECT_EQ(files_[1].lines, 4u);  // 3, 4, 5, 9 of both sections
  EXPECT_EQ(files_[1].lines_hit, 3u);
  EXPECT_EQ(files_[1].functions, 2u);
  EXPECT_EQ(files_[1].functions_hit, 2u);
}

TEST_F(CoverageTest, WhatIsWrongIsTold) {
  EXPECT_FALSE(read("hello\n"));
  EXPECT_THAT(err_, HasSubstr("it has no line SF:FILE"));
  EXPECT_FALSE(read("SF:/a.c\nDA:one,2\nend_of_record\n"));
  EXPECT_THAT(err_, HasSubstr(":2: not a line of an lcov tracefile"));
  EXPECT_FALSE(read("SF:/a.c\nDA:nan,inf\n"));
  EXPECT_FALSE(read_coverage("/no/such/file", &files_, &err_));
  EXPECT_THAT(err_, HasSubstr("No such file"));
  // A line longer than any of lcov's is passed over.
  EXPECT_TRUE(read("SF:/a.c\nFN:1," + std::string(100'000, 'x') + "\nDA:1,1\nend_of_record\n")) << err_;
  EXPECT_EQ(files_[0].lines_hit, 1u);
}

}  // namespace
}  // namespace hcasim::traces
