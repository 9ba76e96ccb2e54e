// SPDX-License-Identifier: BSD-3-Clause
// Each published figure is met within its tolerance, and a row that is off is called so.
#include "published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include "report.h"

namespace hcasim::bench {
namespace {

using ::testing::HasSubstr;

std::vector<PublishedRow> ours() { return load_published(HCASIM_PUBLISHED); }

class Published : public ::testing::TestWithParam<PublishedRow> {};

TEST_P(Published, IsMet) {
  const PublishedRow& row = GetParam();
  const double v = row.simulated(timing::measure_all(row.measurements, 2));
  EXPECT_TRUE(row.within(v)) << row.setup << ": published " << row.figure() << ", simulated " << v << ", "
                             << row.tolerance << " % allowed";
}

INSTANTIATE_TEST_SUITE_P(Row, Published, ::testing::ValuesIn(ours()), [](const auto& p) {
  std::string name;
  for (const char c : p.param.id) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(PublishedTable, NamesItsSources) {
  const auto rows = ours();
  EXPECT_GE(rows.size(), 15u);
  for (const PublishedRow& row : rows) {
    EXPECT_FALSE(row.source.empty()) << row.id;
    EXPECT_GT(row.published, 0) << row.id;
    for (const timing::Setup& s : row.measurements) EXPECT_NE(s.profile, "default") << row.id;
  }
}

PublishedRow row_of(const char* unit, double low, double high, double tolerance, bool at_most = false) {
  PublishedRow r;
  r.id = "x";
  r.setup = "a, b";
  r.unit = unit;
  r.low = low;
  r.high = high;
  r.published = (low + high) / 2;
  r.tolerance = tolerance;
  r.at_most = at_most;
  r.measurements.resize(1);
  return r;
}

TEST(PublishedTable, ARowThatIsOffIsCalledSo) {
  timing::Result r;
  r.median = 1070;
  EXPECT_FALSE(Comparison({row_of("us", 1, 1, 6.9)}, {r}).good());
  EXPECT_TRUE(Comparison({row_of("us", 1, 1, 7.1)}, {r}).good());
  r.median = 930;
  EXPECT_FALSE(Comparison({row_of("us", 1, 1, 6.9)}, {r}).good());
  const Comparison both({row_of("us", 1, 1, 7.1), row_of("us", 2, 2, 10)}, {r, r});
  EXPECT_FALSE(both.good());
  EXPECT_THAT(both.text(), HasSubstr("-7.0 %    7.1 %  ok"));
  EXPECT_THAT(both.text(), HasSubstr("-53.5 %     10 %  OFF"));
  EXPECT_THAT(both.text(), HasSubstr("1 of 2 rows OFF"));
  EXPECT_THAT(both.csv(), HasSubstr("x,\"a, b\",us,2,2,0.93,-53.50,10,0,"));
  EXPECT_EQ(both.json()[0]["ok"], true);
  EXPECT_EQ(both.json()[1]["ok"], false);
}

TEST(PublishedTable, DifferencesSpreadsAndBounds) {
  timing::Result a, b;
  a.median = 3000;
  b.median = 1900;
  EXPECT_NEAR(row_of("us", 1.1, 1.1, 1).simulated({a, b}), 1.1, 1e-9);
  a.rate = 5e6;
  b.rate = 4.5e6;
  EXPECT_NEAR(row_of("M/s", 5, 5, 1).simulated({a}), 5, 1e-9);
  const PublishedRow bound = row_of("%", 4, 4, 0, true);
  EXPECT_NEAR(bound.simulated({a, b}), 1100 / 30.0, 1e-9);  // of latencies, where there are any
  a.median = b.median = 0;
  EXPECT_NEAR(bound.simulated({a, b}), 10, 1e-9);
  EXPECT_NEAR(row_of("x", 1, 1, 1).simulated({a, b}), 10 / 9.0, 1e-9);
  EXPECT_FALSE(bound.within(4.1));
  EXPECT_TRUE(bound.within(0));
}

TEST(PublishedTable, MistakesInTheFileAreToldWithTheirLine) {
  const std::string file =
      std::filesystem::temp_directory_path() / ("hcasim-published-" + std::to_string(getpid()));
  const std::string head = "[[row]]\nid = \"1\"\nsetup = \"s\"\nsource = \"t\"\nunit = \"us\"\n";
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "a list of [[row]]"},
      {"x = 3\n", "a list of [[row]]"},
      {"[[row]]\nid = 1\n", ":1: id: a string"},
      {"[[row]]\nid =\n", ":2: "},
      {head + "tolerance = 1\n[row.measure]\n", ":1: published: a number"},
      {head + "published = 1\n[row.measure]\n", ":1: tolerance: %"},
      {head + "published = 1\ntolerance = 1\n", ":1: measure: a table"},
      {head + "published = 1\ntolerance = 1\ncolour = 1\n[row.measure]\n", ":8: colour: unknown"},
      {head + "published = 1\ntolerance = 1\n[row.measure]\nsize = -1\n", ":9: size=-1: allowed: 1 to 64M"},
      {head + "published = 1\ntolerance = 1\n[row.measure]\ndepht = 1\n", ":9: there is no depht"},
      {head + "published = 1\ntolerance = 1\n[row.measure]\n[row.over]\nsize = [1]\n",
       "over: goes with unit %"},
  };
  for (const auto& c : cases) {
    std::ofstream(file) << c.text;
    try {
      (void)load_published(file);
      ADD_FAILURE() << c.text;
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(c.message)) << c.text;
    }
  }
  std::filesystem::remove(file);
}

TEST(GridOf, SweepsAreCombined) {
  timing::Setup base;
  base.set("pattern=write_bw");
  Grid grid(base, {"size=4K,64K", "pcie.lanes=8,16"});
  ASSERT_EQ(grid.setups().size(), 4u);
  grid.results.resize(4);
  for (std::size_t i = 0; i < 4; ++i) grid.results[i].bits = 1e9 * static_cast<double>(i + 1);
  EXPECT_EQ(grid.setups()[3].get("size"), "65536");
  EXPECT_EQ(grid.setups()[3].get("pcie.lanes"), "16");
  EXPECT_THAT(grid.csv(), HasSubstr(",pcie.lanes,"));
  const auto charts = grid.charts();
  ASSERT_EQ(charts.size(), 1u);
  ASSERT_EQ(charts[0].curves.size(), 2u);
  EXPECT_EQ(charts[0].curves[1].name, "pcie.lanes=16");
  EXPECT_EQ(charts[0].curves[1].points[1], (std::pair<double, double>(65536, 4)));
  EXPECT_THAT(svg(charts), HasSubstr("<svg xmlns"));
  EXPECT_THAT(svg(charts), HasSubstr(">64K</text>"));
  EXPECT_EQ(grid.json()[2]["result"]["Gb/s"], 3.0);
  EXPECT_THROW(Grid(base, {"size"}), timing::SetupError);
  EXPECT_THROW(Grid(base, {"size=4K,x"}), timing::SetupError);
}

// Where the heading's word ends, the figure of a line does.
std::string below(const std::string& heading, const std::string& word, const std::string& line) {
  const std::size_t end = heading.find(word) + word.size();
  if (heading.find(word) == std::string::npos || end > line.size()) return "none";
  if (end < line.size() && line[end] != ' ' && line[end] != '\n') return "beside it";
  const std::string left = line.substr(0, end);
  return left.substr(left.rfind(' ') + 1);
}

TEST(GridOf, ColumnsStandBelowTheirHeadings) {
  timing::Setup base;
  base.set("link=ib");
  Grid grid(base, {"size=4K,1M", "profile=connectx5-edr,connectx6-hdr100", "pattern=read_bw,write_lat",
                   "reads=1,16"});
  ASSERT_EQ(grid.setups().size(), 16u);
  grid.results.resize(16);
  for (std::size_t i = 0; i < 16; ++i) {
    timing::Result& r = grid.results[i];
    r.rate = 3e6, r.bits = 7e9;
    r.median = 11000, r.least = 12000, r.most = 13000;
    const std::string heading = grid.heading(), line = grid.line(i);
    const timing::Setup& s = grid.setups()[i];
    EXPECT_EQ(below(heading, "size", line), s.get("size")) << heading << line;
    EXPECT_EQ(below(heading, "pattern", line), s.get("pattern")) << heading << line;
    EXPECT_EQ(below(heading, "reads", line), s.get("reads")) << heading << line;
    EXPECT_EQ(below(heading, "profile", line), s.get("profile")) << heading << line;
    if (s.metric == timing::Metric::kLat) {
      EXPECT_EQ(below(heading, "median us", line), "11.000") << heading << line;
      EXPECT_EQ(below(heading, "most us", line), "13.000") << heading << line;
    } else {
      EXPECT_EQ(below(heading, "M/s", line), "3.000") << heading << line;
      EXPECT_EQ(below(heading, "Gb/s", line), "7.00") << heading << line;
    }
  }
}

}  // namespace
}  // namespace hcasim::bench
