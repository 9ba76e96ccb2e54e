// SPDX-License-Identifier: BSD-3-Clause
// Code that was compiled for this (sample.c), and instructions of it that are said to have run.
#include "coverage/measure.h"

#include <capstone/capstone.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sample_lines.h"

namespace hcasim::coverage {
namespace {

constexpr std::uint64_t kPlace = 0xffffffffc0100000;
constexpr const char* kFile = "drivers/sample/sample.c";

const Function& function(const Binary& binary, const std::string& name) {
  for (const Function& f : binary.functions)
    if (f.name == name) return f;
  throw std::runtime_error("no function " + name);
}

/// The instructions of a function from its entry to its return, in order of their places.
std::vector<executed_record> instructions(const Binary& binary, const std::string& name,
                                          std::uint64_t count) {
  const Place entry = function(binary, name).entries.front();
  const Section& section = binary.sections[entry.section];
  csh handle = 0;
  EXPECT_EQ(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
  cs_insn* insn = cs_malloc(handle);
  const std::uint8_t* code = section.bytes.data() + (entry.offset - section.base);
  std::size_t left = section.bytes.size() - (entry.offset - section.base);
  std::uint64_t address = entry.offset;
  std::vector<executed_record> records;
  while (cs_disasm_iter(handle, &code, &left, &address, insn)) {
    executed_record record{};
    record.address = insn->address;
    record.count = count;
    record.size = static_cast<std::uint8_t>(insn->size);
    std::memcpy(record.bytes, insn->bytes, insn->size);
    records.push_back(record);
    if (decode(insn->bytes, insn->size).kind == Kind::kReturn) break;
  }
  cs_free(insn, 1);
  cs_close(&handle);
  return records;
}

/// As a guest that has the module at kPlace.
Executed in_module(const Binary& binary, std::vector<executed_record> records) {
  for (executed_record& record : records) record.address += kPlace;
  (void)binary;
  return {std::move(records), 0, {}};
}
std::vector<Load> load(const Binary& binary, std::uint64_t at = kPlace) {
  Load one{"sample", {}};
  for (const Section& section : binary.sections)
    if (section.size > 0) one.sections[section.name] = at;
  return {one};
}

class Module : public testing::Test {
 protected:
  Binary binary_ = read_binary(SAMPLE_MODULE);
};

TEST_F(Module, DebugInformationNamesFilesFunctionsAndLines) {
  EXPECT_THAT(binary_.files, testing::Contains(kFile));
  EXPECT_THAT(binary_.homes, testing::Contains("drivers/sample"));
  EXPECT_EQ(function(binary_, "sample_reached").line, line_of("reached"));
  EXPECT_EQ(function(binary_, "doubled").line, line_of("inlined"));
  EXPECT_THAT(binary_.calls_lead_to, testing::Contains(function(binary_, "sample_never").entries.front()));
  EXPECT_THAT(binary_.calls_lead_to,
              testing::Not(testing::Contains(function(binary_, "doubled").entries.front())));
}

TEST_F(Module, LinesThatRan) {
  const auto records = instructions(binary_, "sample_reached", 5);
  const Ran ran = ran_of_module(binary_, "sample", in_module(binary_, records), load(binary_));
  EXPECT_EQ(ran.loads, 1u);
  EXPECT_EQ(ran.foreign, 0u);
  const Coverage coverage = measure(binary_, ran);
  const FileCoverage& file = coverage.files.at(kFile);
  EXPECT_EQ(file.lines.at(line_of("reached body")), 5u);
  EXPECT_EQ(file.lines.at(line_of("condition")), 5u);
  EXPECT_EQ(file.lines.at(line_of("never body")), 0u);
  EXPECT_EQ(file.functions.at("sample_reached").count, 5u);
  EXPECT_EQ(file.functions.at("sample_reached").called, 5u);
  EXPECT_EQ(file.functions.at("sample_never").count, 0u);
  EXPECT_EQ(file.functions.at("doubled").called, 0u);
}

/// `records` without those that belong to the body of the condition and what is inlined there; `jump`: the
/// conditional one's place.
std::vector<executed_record> jumped_over(const std::vector<executed_record>& records, Place* jump) {
  std::vector<executed_record> rest;
  std::uint64_t target = 0;
  for (const executed_record& record : records) {
    const Decoded decoded = decode(record.bytes, record.size);
    if (record.address < target) continue;
    rest.push_back(record);
    if (decoded.kind == Kind::kConditional && decoded.target > 0 && target == 0) {
      target = record.address + record.size + static_cast<std::uint64_t>(decoded.target);
      *jump = {0, record.address};
    }
  }
  return rest;
}

TEST_F(Module, TheBodyOfAConditionThatWasFalse) {
  const auto records = instructions(binary_, "sample_reached", 5);
  Place jump;
  const auto rest = jumped_over(records, &jump);
  ASSERT_LT(rest.size(), records.size())
      << "this compiler puts the body elsewhere: the sample has to be written otherwise";
  const Coverage coverage =
      measure(binary_, ran_of_module(binary_, "sample", in_module(binary_, rest), load(binary_)));
  const FileCoverage& file = coverage.files.at(kFile);
  EXPECT_EQ(file.lines.at(line_of("inlined body")), 0u);
  EXPECT_EQ(file.lines.at(line_of("reached body")), 5u);
  EXPECT_EQ(file.functions.at("doubled").count, 0u);
  const auto& branches = file.branches.at(line_of("condition"));
  ASSERT_EQ(branches.size(), 1u);
  EXPECT_TRUE(branches[0].reached);
  EXPECT_EQ(branches[0].straight, 0u);
  EXPECT_EQ(branches[0].jumped, 5u);
}

TEST_F(Module, BranchesThatDidNotRunAreThere) {
  const Coverage coverage = measure(binary_, ran_of_module(binary_, "sample", {}, {}));
  const auto& branches = coverage.files.at(kFile).branches.at(line_of("condition"));
  ASSERT_EQ(branches.size(), 1u);
  EXPECT_FALSE(branches[0].reached);
}

TEST_F(Module, ReloadsAddUpWhereverTheyAre) {
  auto records = instructions(binary_, "sample_reached", 5);
  Executed executed = in_module(binary_, records);
  for (const executed_record& record : records) {
    executed.records.push_back(record);
    executed.records.back().address += kPlace + 0x100000;
  }
  auto loads = load(binary_);
  loads.push_back(loads.front());  // back at its place: what was counted there is not taken twice
  loads.push_back(load(binary_, kPlace + 0x100000).front());
  const Ran ran = ran_of_module(binary_, "sample", executed, loads);
  EXPECT_EQ(ran.loads, 2u);
  EXPECT_EQ(measure(binary_, ran).files.at(kFile).functions.at("sample_reached").count, 10u);
}

TEST_F(Module, WhatAnotherModuleRanAtItsPlaceIsNotItsOwn) {
  // Its first instructions are ours by chance: the kernel patches there, so that our bytes may be anything.
  auto records = instructions(binary_, "sample_never", 5);
  ASSERT_GE(records.size(), 3u);
  const Place entry = function(binary_, "sample_never").entries.front();
  for (std::size_t i = 1; i < records.size(); i++) std::memset(records[i].bytes, 0x90, records[i].size);
  for (std::size_t i = 0; i < 2 * records[0].size; i++)
    binary_.sections[entry.section].varies[entry.offset + i] = true;
  const Ran ran = ran_of_module(binary_, "sample", in_module(binary_, records), load(binary_));
  EXPECT_GE(ran.foreign, 1u);
  const FileCoverage file = measure(binary_, ran).files.at(kFile);
  EXPECT_EQ(file.functions.at("sample_never").count, 0u);
  EXPECT_EQ(file.lines.at(line_of("never body")), 0u);
}

TEST(Library, PagesAndLines) {
  const Binary binary = read_binary(SAMPLE_LIBRARY);
  const auto segments = code_segments(SAMPLE_LIBRARY);
  ASSERT_EQ(segments.size(), 1u);
  auto records = instructions(binary, "sample_never", 7);
  for (executed_record& record : records) {
    record.address = record.address - segments[0].address + segments[0].in_file;
    record.library = 1;
  }
  const Coverage coverage = measure(binary, ran_of_library(binary, 1, {records, 0, {}}));
  EXPECT_EQ(coverage.files.at(kFile).lines.at(line_of("never body")), 7u);
  EXPECT_EQ(coverage.files.at(kFile).functions.at("sample_reached").count, 0u);

  const auto pages = library_pages({SAMPLE_LIBRARY});
  ASSERT_FALSE(pages.empty());
  EXPECT_EQ(pages[0].library, 1u);
  EXPECT_EQ(pages[0].page, segments[0].in_file / EXECUTED_PAGE);
}

TEST(Binary, WhatIsNoneIsSaid) {
  EXPECT_THROW(read_binary(SAMPLE_SOURCE), std::runtime_error);
  EXPECT_THROW(read_binary("/nowhere"), std::runtime_error);
}

TEST(FromRoot, CutsWhatStandsBeforeTheTree) {
  EXPECT_EQ(from_root("/build/linux-6.1/drivers/net/a.c"), "drivers/net/a.c");
  EXPECT_EQ(from_root("/home/u/rdma-core/providers/mlx5/qp.c"), "providers/mlx5/qp.c");
  EXPECT_EQ(from_root("/elsewhere/a.c"), "/elsewhere/a.c");
}

}  // namespace
}  // namespace hcasim::coverage
