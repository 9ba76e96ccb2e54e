// SPDX-License-Identifier: BSD-3-Clause
// Where a fit starts, and which values it may try on its way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../files.h"
#include "../timing/figures.h"
#include "fit.h"
#include "model/profile.h"
#include "perftest.h"

namespace hcasim::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Measurement = timing::Setup;  // testing::Test has a Setup of its own

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "accepted";
}

// ---- points that cannot be simulated ----

// One unknown, which is the figure; nothing of values outside of [least, most].
Solution found(double start, double truth, double least, double most) {
  const Simulation simulation = [=](const std::vector<Point>& points, bool) {
    std::vector<std::vector<double>> all;
    for (const Point& p : points)
      all.push_back(p[0] < least || p[0] > most ? std::vector<double>() : std::vector<double>{p[0]});
    return all;
  };
  return solve({{"a", start, 0, 1e9, 1, 0}}, {{truth, 0.01 * truth, 0, false}}, simulation);
}

TEST(LeastSquaresWithGaps, GoesRoundWhatCannotBeSimulated) {
  const Solution s = found(100, 140, 0, 150);
  EXPECT_NEAR(s.estimates[0].value, 140, 1);
  EXPECT_EQ(s.estimates[0].known, Known::kYes);
}

TEST(LeastSquaresWithGaps, OneSideIsEnoughForADifference) {
  for (const auto& [least, most] : {std::pair(0.0, 100.0), std::pair(30.0, 100.0)}) {
    const Solution s = found(100, 60, least, most);
    EXPECT_NEAR(s.estimates[0].value, 60, 1) << most;
    EXPECT_EQ(s.estimates[0].known, Known::kYes);
  }
  EXPECT_NEAR(found(100, 130, 100, 1e9).estimates[0].value, 130, 1);
}

TEST(LeastSquaresWithGaps, EndsWhereThereIsNothingBeyond) {
  const Solution s = found(100, 1000, 0, 150);
  EXPECT_GT(s.estimates[0].value, 100);
  EXPECT_LE(s.estimates[0].value, 150);
}

TEST(LeastSquaresWithGaps, AStartThatCannotBeSimulatedIsAnError) {
  EXPECT_THAT(refusal([] { (void)found(100, 140, 0, 50); }), HasSubstr("no simulated figure"));
}

// ---- profiles ----

Measured measured(const std::string& profile, const std::string& measurement) {
  const test::Folder folder;
  const std::vector<Measurement> setups{timing::setup(measurement)};
  test::write_bytes(folder / "theirs.txt", perftest_text(setups, timing::measure_all(setups, 1)));
  Measurement base;
  base.profile = profile;
  return load_measured(folder / "theirs.txt", base, true);
}

// 0 is as engine.tx_more_ns: 16 ns there.
TEST(FitStart, AParameterWhoseZeroIsAWordStartsAtAValue) {
  const Measured m = measured("connectx6-hdr200",
                              "profile=connectx6-hdr200 pattern=read_bw size=64K mtu=1024 "
                              "engine.tx_response_more_ns=94");
  const std::string name = "engine.tx_response_more_ns";
  EXPECT_THAT(refusal([&] { (void)fit(m, {name}, {}, HCASIM_PROFILES, 1); }),
              HasSubstr("--over " + name +
                        ": 0 stands for \"as engine.tx_more_ns\", and is no value to start from; "
                        "give one: --set " +
                        name + "=VALUE"));
  const Fit f = fit(m, {name}, {name + "=16"}, HCASIM_PROFILES, 2);
  EXPECT_NEAR(f.solution.estimates[0].value, 94, 3) << text(f);
  EXPECT_EQ(f.solution.estimates[0].known, Known::kYes) << text(f);
}

TEST(FitStart, ValuesThatContradictAnotherOneAreNotTried) {
  const Measured m = measured("connectx5-x8", "profile=connectx5-x8 pattern=read_lat size=2");
  EXPECT_THAT(refusal([&] { (void)fit(m, {"port.lane_buffer"}, {}, HCASIM_PROFILES, 1); }),
              HasSubstr("--over port.lane_buffer: 0 stands for"));
  // It must not be below engine.ack_every, which is 32.
  const Fit f = fit(m, {"engine.inflight_packets"}, {"engine.inflight_packets=33"}, HCASIM_PROFILES, 2);
  EXPECT_EQ(f.solution.estimates[0].known, Known::kNo) << text(f);
  EXPECT_EQ(f.solution.estimates[0].value, 33);
  // Of the start it is said.
  EXPECT_THAT(refusal([&] {
                (void)fit(m, {"engine.inflight_packets"}, {"engine.inflight_packets=31"}, HCASIM_PROFILES, 1);
              }),
              HasSubstr("must be at least engine.ack_every"));
}

// ---- the profile that is written ----

double value_of(const std::string& profile, const std::string& name) {
  Profile p;
  std::string why;
  EXPECT_TRUE(Profile::load(profile, {HCASIM_PROFILES}, p, why)) << why;
  const auto& names = Profile::names();
  return p.value(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
}

std::string line_of(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("\n" + key + " = ");
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

// All figures that are shown are of the given values, also where the rows do not tell them.
TEST(FitStart, AValueGivenAsStartIsInTheProfile) {
  Fit f;
  f.file = "theirs.txt";
  f.profile = "default";
  f.parameters = {{"engine.crypto_ns", 333, 0, 1e9, 1, 0},
                  {"engine.cqe_ns", 7, 0, 1e9, 1, 0},
                  {"pcie.tags", value_of("default", "pcie.tags"), 1, 1024, 1, 1}};
  f.solution.estimates = {
      {333, 0, Known::kNo}, {9, 1, Known::kYes}, {value_of("default", "pcie.tags"), 0, Known::kNo}};
  const std::string profile = fitted_profile(f, HCASIM_PROFILES, "x");
  EXPECT_THAT(line_of(profile, "crypto_ns"), HasSubstr("crypto_ns = 333"));
  EXPECT_THAT(
      line_of(profile, "crypto_ns"),
      HasSubstr("given beside theirs.txt; not identified: no row depends on it, near this value (was 100)"));
  EXPECT_THAT(line_of(profile, "cqe_ns"), HasSubstr("fitted to theirs.txt, +- 1 (was 5)"));
  EXPECT_THAT(line_of(profile, "tags"), Not(HasSubstr("theirs.txt")));
}

}  // namespace
}  // namespace hcasim::bench
