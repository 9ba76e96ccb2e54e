// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/tracefile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "../files.h"

namespace hcasim::coverage {
namespace {

Coverage sample() {
  Coverage coverage;
  coverage.test = "sample";
  FileCoverage& file = coverage.files["drivers/a.c"];
  file.functions["f"] = {10, 3, 2};
  file.functions["g"] = {20, 0, 0};
  file.lines = {{11, 3}, {12, 0}, {21, 0}};
  file.branches[11] = {{true, 3, 0}, {false, {}, {}}, {true, {}, {}}};
  return coverage;
}

std::vector<Coverage> read_text(const std::string& text) {
  const test::Folder folder;
  std::ofstream(folder / "file.info") << text;
  return read_tracefile(folder / "file.info");
}

TEST(Tracefile, IsReadAsItWasWritten) {
  const auto all = read_text(to_tracefile(sample()));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(to_tracefile(all[0]), to_tracefile(sample()));
}

// Any file would be an empty table; that of a run that reached nothing is one, too.
TEST(Tracefile, IsNoOtherFile) {
  EXPECT_THAT([] { read_text("HCASIMTR\nanything: else\n"); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("it has no line SF:FILE")));
  EXPECT_TRUE(read_text("").empty());
}

TEST(Tracefile, HasTheSumsThatLcovWants) {
  const std::string text = to_tracefile(sample());
  for (const char* line :
       {"FNF:2\nFNH:1\n", "LF:3\nLH:1\n", "BRF:6\nBRH:1\n", "BRDA:11,0,0,3\nBRDA:11,0,1,0\nBRDA:11,0,2,-\n"})
    EXPECT_THAT(text, testing::HasSubstr(line));
}

TEST(Tracefile, AddsTests) {
  Coverage sum = sample();
  Coverage other;
  other.files["drivers/a.c"].functions["g"] = {20, 4, 4};
  other.files["drivers/a.c"].lines = {{12, 5}, {30, 1}};
  other.files["drivers/a.c"].branches[11] = {{true, 1, 6}, {true, 2, 2}};
  other.files["drivers/b.c"].lines = {{1, 1}};
  add(sum, other);
  const FileCoverage& file = sum.files.at("drivers/a.c");
  EXPECT_EQ(file.functions.at("f").count, 3u);
  EXPECT_EQ(file.functions.at("g").count, 4u);
  EXPECT_EQ(file.lines.at(12), 5u);
  EXPECT_EQ(file.lines.at(30), 1u);
  EXPECT_EQ(file.branches.at(11)[0].straight, 4u);
  EXPECT_EQ(file.branches.at(11)[0].jumped, 6u);
  EXPECT_EQ(file.branches.at(11)[1].straight, 2u);
  EXPECT_FALSE(file.branches.at(11)[2].straight);
  EXPECT_EQ(sum.files.count("drivers/b.c"), 1u);
}

TEST(Tracefile, ReadsWhatOthersWrite) {
  // Later versions of lcov: the last line of a function, and checksums.
  const auto all = read_text(
      "TN:x\nSF:/a.c\nFN:1,9,f\nFNDA:2,f\nDA:3,4,sum==\nLF:1\nend_of_record\nTN:y\nSF:/"
      "a.c\nDA:3,0\nend_of_record\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].files.at("/a.c").functions.at("f").line, 1u);
  EXPECT_EQ(all[0].files.at("/a.c").lines.at(3), 4u);
  EXPECT_EQ(all[1].test, "y");
}

TEST(Tracefile, DamageIsNamedWithItsLine) {
  for (const char* text :
       {"DA:1,1\n", "SF:a\nDA:x,1\nend_of_record\n", "SF:a\nDA:1\nend_of_record\n", "SF:a\nSF:b\n",
        "SF:a\nDA:1,1\n", "SF:a\nBRDA:1,0,99999999,1\nend_of_record\n", "SF:a\nDA:1,-1\nend_of_record\n",
        "SF:a\nDA:99999999999,1\nend_of_record\n", "SF:a\nFN:1\nend_of_record\n"}) {
    try {
      read_text(text);
      ADD_FAILURE() << "taken: " << text;
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), testing::ContainsRegex(":[0-9]+: ")) << text;
    }
  }
}

}  // namespace
}  // namespace hcasim::coverage
