// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../files.h"
#include "coverage/table.h"

namespace hcasim::coverage {
namespace {

constexpr const char* kPatch =
    "From: somebody\n"
    "--- a/drivers/x/a.c\n+++ b/drivers/x/a.c\n@@ -10,4 +10,5 @@ int f(void)\n one\n-two\n+TWO\n+three\n "
    "four\n five\n"
    "--- a/drivers/x/b.c\n+++ b/drivers/x/b.c\n@@ -1 +1,2 @@\n first\n+second\n\\ No newline at end of "
    "file\n";

class Patch : public testing::Test {
 protected:
  std::vector<AddedLine> read(const std::string& text, bool with_tree = false) {
    std::ofstream(folder_ / "x.diff") << text;
    return read_patch(folder_ / "x.diff", with_tree ? folder_ / "tree" : std::string(), missing_);
  }
  void tree(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / ("tree/" + name)).parent_path());
    std::ofstream(folder_ / ("tree/" + name)) << text;
  }
  test::Folder folder_;
  std::vector<std::string> missing_;
};

TEST_F(Patch, LinesAreThoseOfThePatchedFile) {
  const auto lines = read(kPatch);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].file, "drivers/x/a.c");
  EXPECT_EQ(lines[0].line, 11u);
  EXPECT_EQ(lines[0].text, "TWO");
  EXPECT_EQ(lines[1].line, 12u);
  EXPECT_EQ(lines[2].file, "drivers/x/b.c");
  EXPECT_EQ(lines[2].line, 2u);
}

TEST_F(Patch, LinesThatHaveMovedAreFoundByTheirText) {
  // Other patches put two lines before it, and changed one of its context.
  tree("drivers/x/a.c", "0\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nONE\nTWO\nthree\nfour\nfive\n");
  tree("drivers/x/b.c", "no such\n");
  const auto lines = read(kPatch, true);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].line, 13u);
  EXPECT_EQ(lines[1].line, 14u);
  EXPECT_THAT(missing_, testing::ElementsAre("drivers/x/b.c:1"));
}

TEST_F(Patch, TheNearestOfSeveralPlaces) {
  tree("drivers/x/a.c", "one\nTWO\nthree\nfour\nfive\n6\n7\n8\none\nTWO\nthree\nfour\nfive\n");
  tree("drivers/x/b.c", "first\nsecond\n");
  const auto lines = read(kPatch, true);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].line, 10u);
}

TEST_F(Patch, EachLineHasItsTests) {
  Coverage one, two;
  one.test = "one";
  two.test = "two";
  one.files["drivers/x/a.c"].lines = {{11, 1}, {12, 0}};
  two.files["drivers/x/a.c"].lines = {{11, 2}, {12, 0}};
  const auto result = fates(read(kPatch), {one, two});
  EXPECT_THAT(result[0].tests, testing::ElementsAre("one", "two"));
  EXPECT_TRUE(result[1].is_code);
  EXPECT_TRUE(result[1].tests.empty());
  EXPECT_FALSE(result[2].is_code);
  const std::string text = patch_table(result, {});
  EXPECT_THAT(text, testing::HasSubstr("3 lines added, 2 with code of their own: 1 ran, 1 did not"));
  EXPECT_THAT(text, testing::HasSubstr("in one, two"));
}

TEST_F(Patch, WhatIsNoPatchIsSaid) {
  for (const char* text : {"", "no patch\n", "@@ -1 +1 @@\n+x\n", "+++ b/a\n@@ -1,2 +1,2 @@\n x\n",
                           "+++ b/a\n@@ -1 +1 @@\n?x\n", "+++ b/a\n@@ -x +1 @@\n"})
    EXPECT_THROW(read(text), std::runtime_error) << text;
}

}  // namespace
}  // namespace hcasim::coverage
