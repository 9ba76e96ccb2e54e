// SPDX-License-Identifier: BSD-3-Clause
// A profile that is fitted to figures of another one becomes that other one, as far as the figures tell.
#include "fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "figures.h"
#include "model/profile.h"
#include "perftest.h"

namespace hcasim::bench {
namespace {

using ::testing::HasSubstr;
using Measurement = timing::Setup;  // testing::Test has a Setup of its own

// ---- least squares over functions ----

using Function = std::function<std::vector<double>(const Point&)>;

Simulation of(const Function& f) {
  return [f](const std::vector<Point>& points, bool) {
    std::vector<std::vector<double>> all;
    for (const Point& p : points) all.push_back(f(p));
    return all;
  };
}

Unknown unknown(const char* name, double start, double low = 0, double high = 1e9) {
  return {name, start, low, high, 1, 0};
}

std::vector<Target> targets(const std::vector<double>& values) {
  std::vector<Target> all;
  for (const double v : values) all.push_back({v, 0.01 * v, 0, false});
  return all;
}

TEST(LeastSquares, FindsWhatTheFiguresTell) {
  const Function f = [](const Point& p) {
    return std::vector<double>{p[0] + 2 * p[1], p[0] + p[1], 1e6 / std::max(p[2], 20.0)};
  };
  const Solution s =
      solve({unknown("a", 100), unknown("b", 100), unknown("c", 60)}, targets(f({460, 37, 250})), of(f));
  EXPECT_NEAR(s.estimates[0].value, 460, 5);
  EXPECT_NEAR(s.estimates[1].value, 37, 5);
  EXPECT_NEAR(s.estimates[2].value, 250, 2);
  EXPECT_EQ(s.estimates[0].known, Known::kYes);
  EXPECT_EQ(s.estimates[2].known, Known::kYes);
  EXPECT_LT(s.rms_after, 0.1);
  EXPECT_TRUE(s.combinations.empty());
  // One per cent of 534 and of 497, one minus the other: 7.3; of them a's is 2 * 4.97 and 5.34.
  EXPECT_NEAR(s.estimates[1].error, 7.3, 0.4);
  EXPECT_NEAR(s.estimates[0].error, 11.3, 0.6);
}

TEST(LeastSquares, SaysWhichAreNotToldApart) {
  const Function f = [](const Point& p) {
    return std::vector<double>{p[0] + 2 * p[1] + p[3], p[0] + 2 * p[1] + 2 * p[3]};
  };
  const Solution s = solve({unknown("a", 100), unknown("b", 100), unknown("nothing", 7), unknown("c", 50)},
                           targets(f({300, 100, 7, 90})), of(f));
  EXPECT_EQ(s.estimates[0].known, Known::kTogether);
  EXPECT_EQ(s.estimates[1].known, Known::kTogether);
  EXPECT_EQ(s.estimates[2].known, Known::kNo);
  EXPECT_EQ(s.estimates[2].value, 7);
  EXPECT_EQ(s.estimates[3].known, Known::kYes);
  EXPECT_NEAR(s.estimates[3].value, 90, 3);
  ASSERT_EQ(s.combinations.size(), 1u);
  const Combination& c = s.combinations[0];
  EXPECT_EQ(c.unknowns, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(c.known, 1u);
  ASSERT_EQ(c.weights.size(), 2u);
  EXPECT_NEAR(c.weights[0], 0.5, 0.01);
  EXPECT_NEAR(c.weights[1], 1, 1e-9);
  EXPECT_NEAR(c.value, 250, 4);
}

// What another, slower one hides at the start.
TEST(LeastSquares, FindsWhatIsHidden) {
  const Function f = [](const Point& p) {
    return std::vector<double>{1e6 / std::max(p[0], p[1]), p[0] + 500};
  };
  const Solution s = solve({unknown("a", 185), unknown("b", 55)}, targets(f({185, 260})), of(f));
  EXPECT_NEAR(s.estimates[0].value, 185, 3);
  EXPECT_NEAR(s.estimates[1].value, 260, 3);
  EXPECT_EQ(s.estimates[1].known, Known::kYes);
}

// In steps, as a simulation in whole cycles: no more is taken from them than there is.
TEST(LeastSquares, StepsAreNotTakenForKnowledge) {
  const Function f = [](const Point& p) {
    return std::vector<double>{std::floor(p[0] + p[1]), std::floor(2 * p[0] + 2 * p[1] + 0.4),
                               std::floor(p[2] / 40)};
  };
  std::vector<Target> t = targets(f({200, 100, 3}));
  t[2].value = 10;
  for (Target& one : t) {
    one.deviation = 3;
    one.noise = 0.3;
  }
  const Solution s = solve({unknown("a", 100), unknown("b", 90), unknown("c", 10)}, t, of(f));
  EXPECT_EQ(s.estimates[0].known, Known::kTogether);
  EXPECT_EQ(s.estimates[1].known, Known::kTogether);
  EXPECT_NEAR(s.estimates[0].value + s.estimates[1].value, 300, 4);
  EXPECT_NE(s.estimates[2].known, Known::kYes);
}

// A figure that falls by some per cent here and there, as of a queue that runs dry, by what its differences
// say leads away from what all the others say.
TEST(LeastSquares, AFigureThatJumpsDoesNotHoldUpTheOthers) {
  const Function f = [](const Point& p) {
    const double dry = 0.04 * std::fmod(std::floor((3 * p[0] + p[1]) / 60), 2);
    return std::vector<double>{p[0] + p[1],          p[0] + p[1] + 10, 2 * p[0] + p[1],
                               2 * p[0] + p[1] + 20, 500 * (1 - dry),  480 * (1 + dry)};
  };
  const Solution s = solve({unknown("a", 240), unknown("b", 170)}, targets(f({330, 60})), of(f));
  EXPECT_NEAR(s.estimates[0].value, 330, 5);
  EXPECT_NEAR(s.estimates[1].value, 60, 5);
}

TEST(LeastSquares, StaysWithinTheRange) {
  const Function f = [](const Point& p) { return std::vector<double>{p[0] + p[1], p[0] + 3 * p[1]}; };
  const Solution s = solve({unknown("a", 100, 0, 120), unknown("b", 100)}, targets(f({300, 100})), of(f));
  EXPECT_EQ(s.estimates[0].value, 120);
  EXPECT_TRUE(s.estimates[0].at_limit);
  EXPECT_NEAR(s.estimates[1].value, 180, 15);  // the best that is left
}

TEST(LeastSquares, ABoundThatHoldsTellsNothing) {
  const Function f = [](const Point& p) { return std::vector<double>{p[0]}; };
  std::vector<Target> t = targets({200});
  t[0].at_most = true;
  EXPECT_EQ(solve({unknown("a", 100)}, t, of(f)).estimates[0].known, Known::kNo);
  EXPECT_NEAR(solve({unknown("a", 400)}, t, of(f)).estimates[0].value, 200, 3);
}

// ---- profiles ----

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("hcasim-fit-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// As perftest would print it on a machine that is so.
std::string output_of(const std::string& machine, const std::vector<std::string>& measurements) {
  std::vector<Measurement> setups;
  for (const std::string& m : measurements) setups.push_back(timing::setup(m + " " + machine));
  return perftest_text(setups, timing::measure_all(setups, 2));
}

double value_of(const std::string& profile, const std::string& name) {
  Profile p;
  std::string why;
  EXPECT_TRUE(Profile::load(profile, {HCASIM_PROFILES}, p, why)) << why;
  const auto& names = Profile::names();
  return p.value(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
}

Measurement starting_at(const std::string& profile) {
  Measurement s;
  s.profile = profile;
  return s;
}

// 5 %: of each parameter that the rows tell.
void expect_found(const Fit& f, const std::string& name, double truth) {
  for (std::size_t j = 0; j < f.parameters.size(); ++j) {
    if (f.parameters[j].name != name) continue;
    EXPECT_NEAR(f.solution.estimates[j].value, truth, 0.05 * truth) << name << "\n" << text(f);
    EXPECT_EQ(f.solution.estimates[j].known, Known::kYes) << name << "\n" << text(f);
    return;
  }
  ADD_FAILURE() << name;
}

TEST(FitOfProfile, FindsAnotherProfileFromItsPerftestOutput) {
  const Folder folder;
  const std::string perftest = output_of(
      "profile=connectx5-100g-roce pcie.read_latency_ns=640 engine.gather_page_ns=1200 "
      "port.wire_latency_ns=260 port.rate_gbps=80",
      {"pattern=write_lat size=2", "pattern=write_lat size=1024", "pattern=write_lat size=4096",
       "pattern=read_lat size=2", "pattern=read_lat size=4096", "pattern=write_bw size=65536"});
  const Measured measured =
      load_measured(folder.file("theirs.txt", perftest), starting_at("connectx5-100g-roce"), true);
  const Fit f = fit(measured,
                    {"pcie.read_latency_ns", "engine.gather_page_ns", "port.wire_latency_ns",
                     "port.rate_gbps", "engine.crypto_ns"},
                    {}, HCASIM_PROFILES, 2);
  expect_found(f, "pcie.read_latency_ns", 640);
  expect_found(f, "engine.gather_page_ns", 1200);
  expect_found(f, "port.wire_latency_ns", 260);
  expect_found(f, "port.rate_gbps", 80);
  EXPECT_EQ(f.solution.estimates[4].known, Known::kNo);
  EXPECT_GT(f.solution.rms_before, 10);
  EXPECT_LT(f.solution.rms_after, 1);
  EXPECT_THAT(text(f), HasSubstr("no: no row depends on it"));

  // The profile is taken back, with its evidence, and what was not found is as it was.
  const std::string file = folder.file("mine.toml", fitted_profile(f, HCASIM_PROFILES, "mine"));
  EXPECT_NEAR(value_of(file, "pcie.read_latency_ns"), 640, 32);
  EXPECT_EQ(value_of(file, "engine.crypto_ns"), value_of("connectx5-100g-roce", "engine.crypto_ns"));
  EXPECT_THAT(fitted_profile(f, HCASIM_PROFILES, "mine"), HasSubstr("# fitted to theirs.txt, +- "));
  const double again = timing::measured("pattern=read_lat size=4096 profile=" + file).median / 1000;
  EXPECT_NEAR(again, f.solution.after[4], 1e-9);
  // What was fitted can be fitted again; the evidence from before the first time stays.
  Measured next = load_measured(folder.file("theirs.txt", perftest), starting_at(file), true);
  next.rows.resize(1);
  const Fit second = fit(next, {"port.wire_latency_ns"}, {}, HCASIM_PROFILES, 2);
  const std::string twice = fitted_profile(second, HCASIM_PROFILES, "twice");
  const std::string line = twice.substr(twice.find("wire_latency_ns"));
  EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr("; before: MAC, PHY"));
  EXPECT_EQ(line.substr(0, line.find('\n')).find("before:"),
            line.substr(0, line.find('\n')).rfind("before:"));
}

TEST(FitOfProfile, NamesWhatCannotBeToldApart) {
  const Folder folder;
  const std::string perftest =
      output_of("profile=connectx5-100g-roce engine.rx_pipeline_ns=200",
                {"pattern=write_lat size=2", "pattern=write_lat size=64", "pattern=read_lat size=2"});
  const Measured measured =
      load_measured(folder.file("theirs.txt", perftest), starting_at("connectx5-100g-roce"), true);
  const Fit f = fit(measured, {"engine.tx_pipeline_ns", "engine.rx_pipeline_ns"}, {}, HCASIM_PROFILES, 2);
  const std::string said = text(f);
  EXPECT_THAT(said, HasSubstr("no: not told apart from engine.rx_pipeline_ns"));
  EXPECT_THAT(said, HasSubstr("only engine.tx_pipeline_ns + engine.rx_pipeline_ns is identified: 2"));
  ASSERT_EQ(f.solution.combinations.size(), 1u);
  EXPECT_NEAR(f.solution.combinations[0].value, 287, 14);
  EXPECT_EQ(json(f)["parameters"][0]["identified"], "together");
}

// Rows of a table, of which one has a value of its own of what is fitted.
TEST(FitOfProfile, TakesRowsOfATable) {
  const Folder folder;
  const std::string row =
      "[[row]]\nid = \"a\"\nsetup = \"s\"\nsource = \"t\"\nunit = \"us\"\npublished = 1.2\n"
      "tolerance = 1\n[row.measure]\nprofile = \"connectx5-100g-roce\"\npattern = \"write_lat\"\n";
  const std::string file = folder.file("rows.toml", row + row + "\"port.wire_latency_ns\" = 170\n");
  const Measured measured = load_measured(file, Measurement(), false);
  const Fit f = fit(measured, {"port.wire_latency_ns"}, {"host.post_ns=40"}, HCASIM_PROFILES, 2);
  EXPECT_NEAR(f.solution.after[0], 1.2, 0.02) << text(f);
  EXPECT_EQ(f.solution.before[1], f.solution.after[1]);
  EXPECT_NEAR(f.solution.before[1], f.solution.before[0], 1e-9);
  EXPECT_THAT(fitted_profile(f, HCASIM_PROFILES, "x"), HasSubstr("post_ns = 40"));
}

// ---- what is said of a fit ----

Fit made(const std::vector<std::string>& parameters, const std::vector<Estimate>& estimates) {
  Fit f;
  f.file = "theirs.txt";
  f.profile = "default";
  for (const std::string& name : parameters)
    f.parameters.push_back(unknown(name.c_str(), value_of("default", name)));
  f.solution.estimates = estimates;
  return f;
}

std::string line_of(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("\n" + key + " = ");
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

// What is of unequal units has no sum.
TEST(FitReport, ACombinationOfUnequalUnitsHasNoWeights) {
  Fit f = made({"pcie.read_latency_ns", "port.rate_gbps"},
               {{500, 0, Known::kTogether, false, 0}, {90, 0, Known::kTogether, false, 0}});
  Combination c;
  c.unknowns = {0, 1};
  c.known = 1;
  f.solution.combinations = {c};
  const nlohmann::json unequal = json(f)["combinations"][0];
  EXPECT_EQ(unequal["identified"], 1);
  for (const char* const key : {"weights", "value", "standard_error"})
    EXPECT_FALSE(unequal.contains(key)) << key;
  f.solution.combinations[0].weights = {1, 0.5};
  f.solution.combinations[0].value = 545;
  EXPECT_EQ(json(f)["combinations"][0]["value"], 545);
}

// On the way to the others, one may be moved that the rows do not tell in the end.
TEST(FitReport, AValueThatNoRowDependsOnIsSaidNotToBeIdentified) {
  const Fit f = made({"engine.crypto_ns", "engine.cqe_ns"}, {{120, 0, Known::kNo}, {9, 1, Known::kYes}});
  const std::string profile = fitted_profile(f, HCASIM_PROFILES, "x");
  EXPECT_THAT(
      line_of(profile, "crypto_ns"),
      HasSubstr("fitted to theirs.txt; not identified: no row depends on it, near this value (was 100)"));
  EXPECT_THAT(line_of(profile, "cqe_ns"), HasSubstr("fitted to theirs.txt, +- 1 (was 5)"));
}

// Whatever its values are, the profile is taken back.
TEST(FitReport, AProfileOfLargeAndLongValuesIsTakenBack) {
  const Folder folder;
  Fit f = made({"cache.mtt", "port.rate_gbps", "port.wire_latency_ns"},
               {{1048577, 1, Known::kYes}, {123.4567, 1, Known::kYes}, {123456789, 1, Known::kYes}});
  f.set = {"pcie.tags=0077", "memory.llc_kib=1048575", "pcie.efficiency=.5"};
  const std::string file = folder.file("mine.toml", fitted_profile(f, HCASIM_PROFILES, "mine"));
  EXPECT_EQ(value_of(file, "cache.mtt"), 1048577);
  EXPECT_EQ(value_of(file, "port.rate_gbps"), 123.4567);
  EXPECT_EQ(value_of(file, "port.wire_latency_ns"), 123456789);
  EXPECT_EQ(value_of(file, "pcie.tags"), 77);
  EXPECT_EQ(value_of(file, "memory.llc_kib"), 1048575);
  EXPECT_EQ(value_of(file, "pcie.efficiency"), 0.5);
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(FitOfProfile, MistakesAreTold) {
  const Folder folder;
  const auto loading = [&](const std::string& name, const std::string& text) {
    const std::string file = folder.file(name, text);
    return refusal([&] { (void)load_measured(file, Measurement(), false); });
  };
  EXPECT_THAT(loading("a.toml", "[[row]]\nid = [[\n"), HasSubstr("a.toml:2: not understood"));
  EXPECT_THAT(loading("a.toml", "[[row]]\nid = 1\n"), HasSubstr("a.toml:1: id: a string"));
  EXPECT_THAT(loading("a.txt", "#bytes\n"), HasSubstr("a.txt:1: rows without the name"));
  EXPECT_THAT(loading("a.txt", std::string(1 << 21, 'x')), HasSubstr("longer than"));
  EXPECT_THAT(refusal([] { (void)load_measured("/no/such/file", Measurement(), false); }),
              HasSubstr("/no/such/file"));
  const std::string row =
      "[[row]]\nid = \"a\"\nsetup = \"s\"\nsource = \"t\"\nunit = \"us\"\npublished = 1.2\n"
      "tolerance = 1\n[row.measure]\npattern = \"write_lat\"\nprofile = ";
  EXPECT_THAT(loading("a.toml", row + "\"default\"\n" + row + "\"connectx5-x8\"\n"),
              HasSubstr("row a is of another profile"));
  const Measured one = load_measured(folder.file("a.toml", row + "\"default\"\n"), Measurement(), false);
  const auto fitting = [&](const std::vector<std::string>& over, const std::vector<std::string>& set) {
    return refusal([&] { (void)fit(one, over, set, HCASIM_PROFILES, 1); });
  };
  EXPECT_THAT(fitting({"pcie.lanes"}, {}), HasSubstr("--over pcie.lanes: goes in steps"));
  EXPECT_THAT(fitting({"pcie.speed"}, {}), HasSubstr("there is no such parameter"));
  EXPECT_THAT(fitting({"host.post_ns", "host.post_ns"}, {}), HasSubstr("named twice"));
  EXPECT_THAT(fitting({"host.post_ns"}, {"pcie.lane=3"}), HasSubstr("pcie.lane: unknown"));
  EXPECT_THAT(fitting({"host.post_ns"}, {"host.post_ns=-3"}), HasSubstr("must be a number from 0"));
}

// Any text is read or refused.
TEST(FitOfProfile, BrokenTablesAreReadOrRefused) {
  const Folder folder;
  std::ifstream in(HCASIM_PUBLISHED);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 chance(1);
  unsigned refused = 0;
  for (int i = 0; i < 1000; ++i) {
    // A part of the table, so that changes are close to one another.
    std::string text = whole.substr(whole.find("[[row]]", chance() % (whole.size() / 2)), 1500);
    for (unsigned n = chance() % 4 + 1; n > 0; --n) {
      const std::size_t at = chance() % text.size(), length = chance() % 20;
      static constexpr char kSigns[] = "[]{}\"'.=,#\n\\ 0e-_\x01\xff";
      switch (chance() % 3) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text[at] = kSigns[chance() % (sizeof kSigns - 1)];
          break;
        default:
          text.insert(at, text.substr(chance() % text.size(), length));
      }
    }
    const std::string file = folder.file("a.toml", text);
    try {
      (void)load_measured(file, Measurement(), true);
    } catch (const std::runtime_error& e) {
      ++refused;
      ASSERT_THAT(e.what(), HasSubstr("a.toml")) << text;
    }
  }
  EXPECT_GT(refused, 100u);
}

// Of the long tests: all that is usual, from one card to another, with sweeps over sizes as -a makes them.
TEST(FitOfWholeSweeps, FindsAnotherCard) {
  const Folder folder;
  std::vector<std::string> all;
  for (const char* const size : {"2", "256", "1K", "4K", "16K", "64K"}) {
    for (const char* const verb : {"write", "send", "read"})
      all.push_back(std::string("pattern=") + verb + "_lat size=" + size);
    for (const char* const verb : {"write", "read"})
      all.push_back(std::string("pattern=") + verb + "_bw size=" + size);
  }
  const std::string perftest = output_of(
      "profile=connectx5-edr engine.gather_page_ns=1500 pcie.read_latency_ns=700 pcie.write_latency_ns=330 "
      "engine.tx_wqe_ns=260",
      all);
  const Measured measured =
      load_measured(folder.file("theirs.txt", perftest), starting_at("connectx5-100g-roce"), true);
  const Fit f = fit(measured,
                    {"pcie.read_latency_ns", "pcie.write_latency_ns", "engine.gather_page_ns",
                     "engine.tx_wqe_ns", "port.wire_latency_ns", "port.rate_gbps", "cache.qpc"},
                    {}, HCASIM_PROFILES, 2);
  expect_found(f, "pcie.read_latency_ns", 700);
  expect_found(f, "pcie.write_latency_ns", 330);
  expect_found(f, "engine.gather_page_ns", 1500);
  expect_found(f, "engine.tx_wqe_ns", 260);
  expect_found(f, "port.wire_latency_ns", value_of("connectx5-edr", "port.wire_latency_ns"));
  expect_found(f, "port.rate_gbps", value_of("connectx5-edr", "port.rate_gbps"));
  EXPECT_EQ(f.solution.estimates[6].known, Known::kNo);
}

}  // namespace
}  // namespace hcasim::bench
