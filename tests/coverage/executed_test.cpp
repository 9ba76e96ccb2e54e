// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/executed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "../files.h"

namespace hcasim::coverage {
namespace {

executed_record record(std::uint64_t address, std::uint64_t count) {
  executed_record r{};
  r.address = address;
  r.count = count;
  r.size = 1;
  r.bytes[0] = 0x90;
  return r;
}

class ExecutedFile : public testing::Test {
 protected:
  std::string write(const std::vector<executed_record>& records,
                    const std::function<void(executed_header&)>& change = {}, std::size_t cut = 0) {
    executed_header header{};
    std::memcpy(header.magic, EXECUTED_MAGIC, sizeof header.magic);
    header.records = static_cast<std::uint32_t>(records.size());
    if (change) change(header);
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(records.data()), records.size() * sizeof records[0]);
    bytes.resize(bytes.size() - cut);
    std::ofstream(folder_ / "x", std::ios::binary) << bytes;
    return folder_ / "x";
  }
  std::string text(const std::string& what) {
    std::ofstream(folder_ / "loads") << what;
    return folder_ / "loads";
  }
  test::Folder folder_;
};

TEST_F(ExecutedFile, IsRead) {
  const Executed executed =
      read_executed(write({record(1, 2), record(3, 4)}, [](executed_header& h) { h.left_out = 9; }));
  ASSERT_EQ(executed.records.size(), 2u);
  EXPECT_EQ(executed.records[1].count, 4u);
  EXPECT_EQ(executed.left_out, 9u);
}

// As from QEMU 9.0 on, if it was killed.
TEST_F(ExecutedFile, SaysThatNothingWasCounted) {
  EXPECT_TRUE(read_executed(write({record(1, 0), record(3, 0)})).uncounted());
  EXPECT_FALSE(read_executed(write({record(1, 0), record(3, 1)})).uncounted());
  EXPECT_FALSE(read_executed(write({})).uncounted());
}

TEST_F(ExecutedFile, SaysWhereLibrariesWere) {
  const Executed executed = read_executed(write({}, [](executed_header& h) {
    h.mappings = 2;
    h.mapping[1] = {0x7f0000001000, 3, {}};
  }));
  ASSERT_EQ(executed.mappings.size(), 2u);
  EXPECT_EQ(executed.mappings[1].base, 0x7f0000001000u);
  EXPECT_EQ(executed.mappings[1].library, 3u);
}

TEST_F(ExecutedFile, OfAKilledQemuIsLonger) {
  std::string path = write({record(1, 2)});
  std::ofstream(path, std::ios::app | std::ios::binary) << std::string(4000, '\0');
  EXPECT_EQ(read_executed(path).records.size(), 1u);
}

TEST_F(ExecutedFile, DamageIsRefused) {
  EXPECT_THROW(read_executed(folder_ / "none"), std::runtime_error);
  EXPECT_THROW(read_executed(write({}, [](executed_header& h) { h.magic[0] = '?'; })), std::runtime_error);
  EXPECT_THROW(read_executed(write({record(1, 1)}, [](executed_header& h) { h.records = 2; })),
               std::runtime_error);
  EXPECT_THROW(read_executed(write({}, [](executed_header& h) { h.records = 0xffffffff; })),
               std::runtime_error);
  EXPECT_THROW(read_executed(write({record(1, 1)}, {}, 1)), std::runtime_error);
  EXPECT_THROW(read_executed(write({}, [](executed_header& h) { h.mappings = EXECUTED_MAPPINGS + 1; })),
               std::runtime_error);
  for (const std::uint8_t size : {0, 16}) {
    executed_record bad = record(1, 1);
    bad.size = size;
    EXPECT_THROW(read_executed(write({bad})), std::runtime_error);
  }
}

TEST_F(ExecutedFile, LoadsAreThoseThatAreWhole) {
  const auto loads = read_loads(
      text(".text 0x1\nmodule a\n.text 0xffffffffc0001000\n.init.text 0xffffffffc0005000\nnonsense\n"
           "module b\n.text 0x0000000000000000\n.exit.text zz\nmodule a\n.text 0xffffffffc0009000\n.unl"));
  ASSERT_EQ(loads.size(), 3u);
  EXPECT_EQ(loads[0].module, "a");
  EXPECT_EQ(loads[0].sections.at(".init.text"), 0xffffffffc0005000u);
  EXPECT_TRUE(loads[1].sections.empty());
  EXPECT_EQ(loads[2].sections.at(".text"), 0xffffffffc0009000u);
}

TEST_F(ExecutedFile, PlacesOfLibrariesAreLoads) {
  const auto loads =
      read_loads(text("module a\n.text 0xffffffffc0001000\n" + library_load("lib", 0x7f0000001000) +
                      "library lib 0x0\nlibrary lib\nlibrary lib zz\n"));
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].base, 0u);
  EXPECT_EQ(loads[1].module, "lib");
  EXPECT_EQ(loads[1].base, 0x7f0000001000u);
}

}  // namespace
}  // namespace hcasim::coverage
