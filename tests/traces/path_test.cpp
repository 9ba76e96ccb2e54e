// SPDX-License-Identifier: BSD-3-Clause
// Ways of frames from records, as `hcasim trace path` shows them.
#include "traces/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "prm/prm.h"
#include "traces/frame_end.h"

namespace hcasim::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Bytes = std::vector<std::uint8_t>;

constexpr unsigned kFdb = 4, kNicRx = 0;

// From 02..01 to 02..02, VLAN 5, TCP 1.2.3.4:80 to 1.2.3.5:4000.
Bytes tcp_frame() {
  Bytes b = {2,    0,  0,    0,   0, 2, 2, 0, 0,  0, 0, 1, 0x81, 0, 0x60, 5, 8, 0,        // Ethernet
             0x45, 0,  0,    40,  0, 0, 0, 0, 64, 6, 0, 0, 1,    2, 3,    4, 1, 2, 3, 5,  // IPv4
             0,    80, 0x0f, 0xa0};
  b.resize(64);
  return b;
}

// Makes records as the model does.
class PathTest : public ::testing::Test {
 protected:
  PathTest() {
    tracer.open_memory();
    std::string err;
    EXPECT_TRUE(tracer.set_filter("path", &err)) << err;
  }
  std::uint32_t enters(std::uint32_t path, std::uint32_t before, unsigned where, std::uint32_t from,
                       const Bytes& b) {
    const std::uint32_t step = tracer.next_step();
    tracer.record_blob(Point::kFrameEnters, 1000, {where == kFdb ? 0u : from, path != 0 ? path : step}, step,
                       std::uint64_t{before} << 32 | from << 8 | where, 0, b.data(), b.size());
    return step;
  }
  std::uint32_t table(std::uint32_t path, std::uint32_t before, unsigned type, std::uint32_t id,
                      std::uint32_t entry, unsigned action) {
    const std::uint32_t step = tracer.next_step();
    tracer.record(Point::kFrameTable, 1000, path, step, std::uint64_t{before} << 32 | type << 24 | id,
                  std::uint64_t{entry} << 40 | 7 << 16 | action);
    return step;
  }
  void leaves(std::uint32_t path, std::uint32_t before, FrameEnd how, std::uint32_t to) {
    tracer.record(Point::kFrameLeaves, 1000, path, tracer.next_step(), std::uint64_t{before} << 32 | to,
                  std::uint64_t{64} << 32 | static_cast<unsigned>(how));
  }
  std::string text() {
    Paths paths;
    std::vector<Bytes> blobs;
    const auto records = tracer.drain(&blobs);
    for (std::size_t i = 0; i < records.size(); ++i) paths.add(records[i], blobs[i]);
    paths.finish();
    std::string all;
    for (const FramePath& p : paths.all()) all += path_text(p);
    return all;
  }

  Tracer tracer;
};

// No card makes such a path, but a file may hold it.
TEST_F(PathTest, BranchesWithoutEnd) {
  constexpr unsigned kBranches = 200'000;
  const std::uint32_t path = enters(0, 0, kFdb, 1, tcp_frame());
  std::uint32_t before = path;
  for (unsigned i = 0; i < kBranches; ++i) {
    const std::uint32_t next = table(path, before, kFdb, i, 9, 0x4);
    leaves(path, before, FrameEnd::kUplink, 0xffff);
    before = next;
  }
  const std::string all = text();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3 + 2 * kBranches);
}

TEST_F(PathTest, CopiesAreBranches) {
  const std::uint32_t path = enters(0, 0, kFdb, 1, tcp_frame());
  const std::uint32_t fdb = table(path, path, kFdb, 3, 9, 0x4 | 0x8);
  leaves(path, fdb, FrameEnd::kUplink, 0xffff);
  leaves(path, fdb, FrameEnd::kVport, 2);
  EXPECT_EQ(text(),
            "frame 0:1 at 0.001 us\n"
            "  02:00:00:00:00:01 > 02:00:00:00:00:02, VLAN 5, IPv4 1.2.3.4 > 1.2.3.5, TCP 80 > 4000\n"
            "  E-Switch, from vport 1\n"
            "  FDB table 0x3 level 7: entry 9: count, forward\n"
            "    => out of the uplink (64 bytes)\n"
            "    => to vport 2 (64 bytes)\n");
}

TEST_F(PathTest, GoesOnInTheReceiversTables) {
  const std::uint32_t path = enters(0, 0, kFdb, 0xffff, tcp_frame());
  const std::uint32_t fdb = table(path, path, kFdb, 3, kNoFlowIndex, 0);
  leaves(path, fdb, FrameEnd::kVport, 2);
  enters(path, path + 2, kNicRx, 2, tcp_frame());
  leaves(path, path + 3, FrameEnd::kNoRule, 0);
  const std::string shown = text();
  EXPECT_THAT(shown, HasSubstr("E-Switch, from the uplink"));
  EXPECT_THAT(shown, HasSubstr("FDB table 0x3 level 7: no entry"));
  EXPECT_THAT(shown, HasSubstr("HCA 0 function 2, NIC receive\n"));
  EXPECT_THAT(shown, HasSubstr("=> dropped: nothing matched"));
}

// On a card of two ports, tables of the other one's switch.
TEST_F(PathTest, SaysWhereAnotherHcaGoesOn) {
  Tracer other{1};
  other.open_memory();
  std::string err;
  ASSERT_TRUE(other.set_filter("path", &err)) << err;
  const std::uint32_t path = enters(0, 0, kFdb, 1, tcp_frame());
  const std::uint32_t there = other.next_step();
  other.record(Point::kFrameTable, 1000, path, there, std::uint64_t{path} << 32 | kFdb << 24 | 3,
               std::uint64_t{9} << 40 | 7 << 16 | 0x4);
  leaves(path, there, FrameEnd::kVport, 2);
  Paths paths;
  std::vector<Bytes> blobs;
  const auto records = tracer.drain(&blobs), more = other.drain();
  paths.add(records[0], blobs[0]);
  paths.add(more[0], {});
  paths.add(records[1], {});
  paths.finish();
  ASSERT_EQ(paths.all().size(), 1u);
  EXPECT_THAT(path_text(paths.all()[0]), HasSubstr("  E-Switch, from vport 1\n"
                                                   "  HCA 1: FDB table 0x3 level 7: entry 9: forward\n"
                                                   "  HCA 0: => to vport 2 (64 bytes)\n"));
}

// The command that set an entry, with what it matches.
TEST_F(PathTest, AnEntryIsThatOfItsCommand) {
  using in = prm::set_fte_in;
  Bytes command(in::bytes);
  prm::set<in::opcode>(command.data(), prm::op::SET_FLOW_TABLE_ENTRY);
  prm::set<in::table_id>(command.data(), 3);
  prm::set<in::flow_index>(command.data(), 9);
  constexpr std::size_t match = in::flow_context::match_value::bit_off / 8;
  prm::set<prm::fte_match_set_lyr_2_4::dmac_15_0>(command.data() + match, 2);
  tracer.record_blob(Point::kCmdStart, 500, 0, 77, prm::op::SET_FLOW_TABLE_ENTRY, command.size(),
                     command.data(), command.size());
  const std::uint32_t path = enters(0, 0, kFdb, 1, tcp_frame());
  table(path, path, kFdb, 3, 9, 0x4);
  table(path, path, kFdb, 3, 8, 0x4);
  const std::string shown = text();
  EXPECT_THAT(shown, HasSubstr("entry 9: forward  [command 77: outer_headers.dmac_15_0=0x2]"));
  EXPECT_THAT(shown, Not(HasSubstr("entry 8: forward  [")));
}

// Nothing that a file says makes the reader go round in circles, or read beyond a frame's bytes.
TEST_F(PathTest, DamagedFilesEnd) {
  for (std::size_t len = 0; len < 60; ++len) {
    Bytes b = tcp_frame();
    b.resize(len);
    EXPECT_FALSE(frame_text(b.data(), b.size()).empty());
  }
  tracer.record(Point::kFrameTable, 0, 5, 6, std::uint64_t{7} << 32, 0);
  tracer.record(Point::kFrameTable, 0, 5, 7, std::uint64_t{6} << 32, 0);
  tracer.record(Point::kFrameTable, 0, 5, 6, std::uint64_t{6} << 32, ~std::uint64_t{0});
  tracer.record(Point::kFrameLeaves, 0, 5, 8, std::uint64_t{8} << 32, 0xff);
  EXPECT_THAT(text(), HasSubstr("end 255"));
}

}  // namespace
}  // namespace hcasim::traces
