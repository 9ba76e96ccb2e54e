// SPDX-License-Identifier: BSD-3-Clause
// A trace that says which code wrote to registers, and code that was compiled for this (sample.c).
#include "coverage/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "../files.h"
#include "sample_lines.h"
#include "traces/tracer.h"

namespace hcasim::coverage {
namespace {

using traces::Point;

constexpr std::uint64_t kPlace = 0xffffffffc0100000;

class Join : public testing::Test {
 protected:
  Join() {
    std::string why;
    EXPECT_TRUE(tracer_.open(path_, &why)) << why;
    load_ = {"sample", {}};
    // One section alone has code.
    for (const Section& section : binary_.sections)
      if (section.size > 0) load_.sections[section.name] = kPlace;
  }

  std::uint64_t address(const std::string& function) const {
    for (const Function& f : binary_.functions)
      if (f.name == function) return kPlace + f.entries.front().offset;
    ADD_FAILURE() << "no function " << function;
    return 0;
  }
  /// Where the code of a line begins.
  std::uint64_t code_of(const std::string& mark) const {
    const unsigned line = line_of(mark);
    for (const LineRow& row : binary_.rows)
      if (row.line == line && row.statement) return kPlace + row.at.offset;
    ADD_FAILURE() << "no code for " << mark;
    return 0;
  }
  void code(std::uint32_t offset, std::uint32_t value, std::uint64_t pc, std::uint64_t caller = 0) {
    tracer_.record(Point::kGuestCode, ++time_, {0u, offset}, value, pc, caller);
  }
  /// For the WQEs up to `last`, each of one WQEBB.
  void doorbell(std::uint32_t qpn, std::uint32_t last, std::uint64_t page) {
    tracer_.record(Point::kDoorbell, ++time_, {0u, qpn}, next_[qpn], last, page);
  }
  void decode(std::uint32_t qpn, std::uint32_t first, std::uint32_t last) {
    next_[qpn] = last + 1;
    for (std::uint32_t serial = first; serial <= last; ++serial)
      tracer_.record(Point::kWqeParsed, ++time_, {0u, qpn}, serial, 0x08 | serial << 16);
  }
  Joined joined() {
    tracer_.close();
    return join(path_, {{"sample", &binary_, &locator_}}, {load_});
  }
  static LineWork at(const Joined& joined, unsigned line) {
    for (const auto& [source, work] : joined.lines)
      if (source.line == line) return work;
    return {};
  }

  test::Folder folder_;
  std::string path_ = folder_ / "trace";
  traces::Tracer tracer_{0};
  std::int64_t time_ = 0;
  std::map<std::uint32_t, std::uint32_t> next_;  // serial of each queue's next WQE to be fetched
  Binary binary_ = read_binary(SAMPLE_MODULE);
  Locator locator_{binary_, ""};
  Load load_;
};

TEST_F(Join, ADoorbellIsOfTheLineAndOfThoseThatItWasInlinedInto) {
  code(0x3800, 1, code_of("inlined return"));
  doorbell(0x4a, 4, 3);
  code(0x3800, 1, code_of("inlined return"));
  doorbell(0x4a, 5, 3);
  decode(0x4a, 0, 5);
  const Joined all = joined();
  EXPECT_EQ(all.writes, 2u);
  EXPECT_EQ(all.elsewhere, 0u);
  EXPECT_THAT(at(all, line_of("inlined return")).wqes, testing::ElementsAre("0:0x4a:0-4", "0:0x4a:5"));
  EXPECT_THAT(at(all, line_of("jumped over")).wqes, testing::ElementsAre("0:0x4a:0-4", "0:0x4a:5"));
  EXPECT_TRUE(at(all, line_of("reached body")).wqes.empty());
}

TEST_F(Join, PagesAreApart) {
  code(0x3800, 1, code_of("inlined return"));
  code(0x4800, 1, address("sample_never"));
  doorbell(1, 0, 3);
  doorbell(2, 0, 4);
  doorbell(3, 0, 7);  // nobody said who rang it
  for (const std::uint32_t qpn : {1, 2, 3}) decode(qpn, 0, 0);
  const Joined all = joined();
  EXPECT_THAT(at(all, line_of("inlined return")).wqes, testing::ElementsAre("0:0x1:0"));
  unsigned wqes = 0;
  for (const auto& [source, work] : all.lines)
    if (source.function == "sample_never") wqes += static_cast<unsigned>(work.wqes.size());
  EXPECT_EQ(wqes, 1u);
}

// A queue that is behind: the doorbells of two lines come before the first WQE is fetched, and one that comes
// late was rung for a WQE that is already there.
TEST_F(Join, EachDoorbellHasTheWqesThatItRangFor) {
  code(0x3800, 1, code_of("inlined return"));
  doorbell(0x4a, 1, 3);
  code(0x3800, 1, address("sample_never"));
  doorbell(0x4a, 2, 3);
  decode(0x4a, 0, 3);
  code(0x3800, 1, code_of("inlined return"));
  doorbell(0x4a, 3, 3);
  doorbell(0x4a, 3, 3);  // once more, for nothing
  const Joined all = joined();
  EXPECT_THAT(at(all, line_of("inlined return")).wqes,
              testing::ElementsAre("0:0x4a:0-1", "0:0x4a:3", "0:0x4a: no WQE that was fetched"));
  for (const auto& [source, work] : all.lines)
    if (source.function == "sample_never") {
      EXPECT_THAT(work.wqes, testing::ElementsAre("0:0x4a:2"));
    }
}

TEST_F(Join, NamesAreThoseThatTraceTakes) {
  for (int life = 0; life < 2; ++life) {
    code(0x3800, 1, code_of("inlined return"));
    doorbell(0x4a, 1, 3);
    decode(0x4a, 0, 1);
    next_.clear();  // a reset
  }
  tracer_.record(Point::kGuestCode, ++time_, {2u, 0x18}, 0x01000000, code_of("inlined return"));
  tracer_.record(Point::kCmdStart, ++time_, {2u, 0u}, 7, 0x100, 0);
  const Joined all = joined();
  EXPECT_THAT(at(all, line_of("inlined return")).wqes, testing::ElementsAre("0:0x4a:0-1", "0:0x4a:0-1.1"));
  EXPECT_THAT(at(all, line_of("inlined return")).commands,
              testing::ElementsAre(testing::StartsWith("cmd:0.2:7 ")));
}

TEST_F(Join, ACommandIsOfTheDriversCallOfTheKernel) {
  // The register is written by the kernel's own iowrite32be(); slot 2, big-endian.
  code(0x18, 0x04000000, 0xffffffff81000000, address("sample_never") + 1);
  tracer_.record(Point::kCmdStart, ++time_, {0u, 2u}, 77, 0x100, 0);
  const Joined all = joined();
  EXPECT_EQ(all.elsewhere, 0u);
  ASSERT_EQ(all.lines.size(), 1u);
  EXPECT_EQ(all.lines.begin()->first.function, "sample_never");
  ASSERT_EQ(all.lines.begin()->second.commands.size(), 1u);
  EXPECT_THAT(all.lines.begin()->second.commands[0], testing::StartsWith("cmd:0:77 "));
}

TEST_F(Join, CodeOfOthersIsCounted) {
  code(0x18, 0x01000000, 0xffffffff81000000);
  code(0x3800, 1, 0x7f0000001000);
  doorbell(1, 0, 3);
  const Joined all = joined();
  EXPECT_EQ(all.elsewhere, 2u);
  EXPECT_TRUE(all.lines.empty());
}

TEST_F(Join, ALibraryIsWhereItsProgramsHadIt) {
  const Binary library = read_binary(SAMPLE_LIBRARY);
  const Locator locator(library, "");
  const auto segment = code_segments(SAMPLE_LIBRARY).at(0);
  std::uint64_t offset = 0;
  for (const LineRow& row : library.rows)
    if (row.line == line_of("inlined return") && row.statement)
      offset = row.at.offset - segment.address + segment.in_file;
  ASSERT_NE(offset, 0u);
  constexpr std::uint64_t kFirst = 0x7f0000000000, kSecond = 0x7fff12340000;
  code(0x3800, 1, kSecond + offset);
  doorbell(0x4a, 0, 3);
  code(0x3800, 1, kFirst + offset);
  doorbell(0x4a, 1, 3);
  decode(0x4a, 0, 1);
  code(0x3800, 1, 0x7f7000000000 + offset);  // nobody had it there
  tracer_.close();
  const Joined all = join(path_, {{"sample", &binary_, &locator_}, {"lib", &library, &locator}},
                          {load_, {"lib", {}, kFirst}, {"lib", {}, kSecond}});
  EXPECT_EQ(all.elsewhere, 1u);
  EXPECT_THAT(at(all, line_of("inlined return")).wqes, testing::ElementsAre("0:0x4a:0", "0:0x4a:1"));
  EXPECT_EQ(at(all, line_of("jumped over")).wqes.size(), 2u);
}

TEST_F(Join, ATraceWithoutItIsRefused) {
  doorbell(1, 0, 3);
  EXPECT_THROW(joined(), std::runtime_error);
  EXPECT_THROW(join("/nowhere", {}, {}), std::runtime_error);
}

}  // namespace
}  // namespace hcasim::coverage
