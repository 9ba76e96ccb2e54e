// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of a run: the same in all forms.
#include "fabric/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace hcasim::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of so many messages so many are done: the first in 1 us, the next in 2 us ...
Result run_of(std::uint64_t messages, std::uint64_t done) {
  Result r;
  r.name = "x";
  r.begin = 2000 * kMs;
  Result::Job job;
  job.name = job.kind = "incast";
  job.messages = messages;
  job.done = done;
  job.first = 0;
  for (std::uint64_t i = 1; i <= done; ++i) job.durations.push_back(static_cast<Time>(i) * kUs);
  if (done != 0) job.last = job.durations.back();
  r.jobs.push_back(job);
  return r;
}

std::vector<std::string> row_of(const Result& r) {
  std::istringstream lines(report_text(r, 0));
  std::vector<std::string> words;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("incast", 0) != 0) continue;
    std::istringstream in(line);
    for (std::string word; in >> word;) words.push_back(word);
  }
  return words;
}

// Points of the chart of times.
std::size_t points_of(const Result& r) {
  const std::string svg = report_svg(r);
  const std::size_t from = svg.find("points=\"", svg.find("<polyline")) + 8;
  const std::string points = svg.substr(from, svg.find('"', from) - from);
  return static_cast<std::size_t>(std::count(points.begin(), points.end(), ','));
}

TEST(Report, SharesAreOfAllMessages) {
  const Result r = run_of(10, 6);
  EXPECT_THAT(row_of(r), ElementsAre("incast", "6", "of", "10", "1.00", "5.00", "-", "-", "-", "6.00", "no"));
  const nlohmann::json j = nlohmann::json::parse(report_json(r)), one = j["workloads"][0];
  EXPECT_EQ(one["percentiles_us"]["50"], 5);
  for (const char* share : {"90", "99", "99.9"}) EXPECT_TRUE(one["percentiles_us"][share].is_null()) << share;
  EXPECT_EQ(one["least_us"], 1);
  EXPECT_EQ(one["most_us"], 6);
  EXPECT_EQ(points_of(r), 6u);
}

TEST(Report, WhereAllAreDoneAllSharesAreThere) {
  const Result r = run_of(1000, 1000);
  EXPECT_THAT(row_of(r), ElementsAre("incast", "1000", "of", "1000", "1.00", "500.00", "900.00", "990.00",
                                     "999.00", "1000.00", "1000.00"));
}

TEST(Report, NoneIsDone) {
  const Result r = run_of(3, 0);
  EXPECT_THAT(row_of(r), ElementsAre("incast", "0", "of", "3"));
  EXPECT_TRUE(nlohmann::json::parse(report_json(r))["workloads"][0]["percentiles_us"]["50"].is_null());
}

// A curve of many is thinned out; its end is the slowest message all the same.
TEST(Report, TheCurveOfTimesEndsWithTheLastMessage) {
  EXPECT_EQ(points_of(run_of(1999, 1999)), 667u);  // each third, and the last
}

TEST(Report, SaysWhenTheWorkloadsBegan) {
  const Result r = run_of(1, 1);
  EXPECT_THAT(report_text(r, 0), HasSubstr("us simulated from 2 s on"));
  EXPECT_EQ(nlohmann::json::parse(report_json(r))["begin_us"], 2e6);
}

}  // namespace
}  // namespace hcasim::fabric
