// SPDX-License-Identifier: BSD-3-Clause
// Runs of packets: their parts, and whose memory those lie in.
#include "model/port/run.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "model/pcie/loans.h"
#include "model/port/port.h"
#include "model/port/traits.h"

namespace hcasim {
namespace {

using prm::BthOp;

constexpr std::uint32_t kUnit = 4096, kLast = 100;
constexpr unsigned kPackets = 5;

class Run : public ::testing::Test {
 protected:
  Run() : memory_(kUnit * (kPackets - 1) + kLast) { std::iota(memory_.begin(), memory_.end(), 1); }

  PacketRef make(BthOp op) {
    PacketRef run = PacketPool::make();
    run->opcode = static_cast<std::uint8_t>(op);
    run->psn = kPsnMask - 1;
    run->packets = kPackets;
    run->unit = kUnit;
    run->payload_len = static_cast<std::uint32_t>(memory_.size());
    run->ack_req = run->solicited = true;
    run->dest_qpn = 0x4711;
    run->va = 0x1000;
    run->dma_len = run->payload_len;
    for (unsigned i = 0; i < kPackets; ++i) run->at[i] = 100 * i;
    loans_.borrow(*run, memory_.data(), 0x10000, 1, 7);
    return run;
  }
  // What packet i has to carry, after `memory_` was overwritten.
  static std::vector<std::uint8_t> bytes(unsigned i) {
    std::vector<std::uint8_t> all(i + 1 == kPackets ? kLast : kUnit);
    std::iota(all.begin(), all.end(), static_cast<std::uint8_t>(i * kUnit + 1));
    return all;
  }
  static void expect_payload(const PacketRef& part, unsigned i) {
    const Packet& p = *part;
    ASSERT_EQ(p.payload_len, bytes(i).size());
    EXPECT_EQ(std::vector<std::uint8_t>(p.data(), p.data() + p.payload_len), bytes(i)) << i;
  }

  std::vector<std::uint8_t> memory_;
  Loans loans_;
};

TEST_F(Run, PartsAreThePacketsOfTheMessage) {
  const std::vector<std::pair<BthOp, std::vector<BthOp>>> cases = {
      {BthOp::kWriteOnly,
       {BthOp::kWriteFirst, BthOp::kWriteMiddle, BthOp::kWriteMiddle, BthOp::kWriteMiddle,
        BthOp::kWriteLast}},
      {BthOp::kWriteFirst,
       {BthOp::kWriteFirst, BthOp::kWriteMiddle, BthOp::kWriteMiddle, BthOp::kWriteMiddle,
        BthOp::kWriteMiddle}},
      {BthOp::kSendLast,
       {BthOp::kSendMiddle, BthOp::kSendMiddle, BthOp::kSendMiddle, BthOp::kSendMiddle, BthOp::kSendLast}},
      {BthOp::kSendMiddle, std::vector<BthOp>(kPackets, BthOp::kSendMiddle)},
  };
  for (const auto& c : cases) {
    const std::vector<BthOp>& ops = c.second;
    PacketRef run = make(c.first);
    std::uint64_t wire = 0;
    unsigned i = 0;
    each_part(*run, [&](Time at, PacketRef& part) {
      EXPECT_EQ(at, 100 * i);
      EXPECT_EQ(part->packets, 1u);
      EXPECT_EQ(static_cast<BthOp>(part->opcode), ops[i]) << i;
      EXPECT_EQ(part_opcode(*run, i), part->opcode);
      EXPECT_EQ(part->psn, (kPsnMask - 1 + i) & kPsnMask);
      EXPECT_EQ(part->dest_qpn, 0x4711u);
      const bool end = i + 1 == kPackets;
      EXPECT_EQ(part->ack_req, end);
      EXPECT_EQ(part->solicited, end);
      EXPECT_EQ(Port::part_bytes(*run, Port::frame_bytes(*run), i), Port::wire_bytes(*part)) << i;
      wire += Port::wire_bytes(*part);
      expect_payload(part, i);
      ++i;
    });
    EXPECT_EQ(i, kPackets);
    EXPECT_EQ(Port::run_bytes(*run), wire);
  }
}

// A part and its run borrow the memory each for itself; settled, each has its own copy.
TEST_F(Run, PartsOutliveTheirRun) {
  PacketRef run = make(BthOp::kWriteOnly);
  PacketRef part = part_of(*run, 2);
  EXPECT_TRUE(part->borrowed());
  EXPECT_EQ(part->borrowed_from(), 0x10000u + 2 * kUnit);
  run = PacketRef();
  EXPECT_FALSE(loans_.empty());
  loans_.settle(1, 8);
  EXPECT_TRUE(part->borrowed()) << "another QP's were settled";
  loans_.settle(0, 7);
  EXPECT_TRUE(part->borrowed()) << "those of another function's QP of that number were settled";
  loans_.settle(1, 7);
  EXPECT_FALSE(part->borrowed());
  EXPECT_TRUE(loans_.empty());
  std::fill(memory_.begin(), memory_.end(), std::uint8_t{0});
  expect_payload(part, 2);
}

// A run that had to copy its payload, which no packet's buffer holds.
TEST_F(Run, SettledRunsKeepTheirPayload) {
  PacketRef run = make(BthOp::kSendOnly);
  loans_.settle_all();
  EXPECT_FALSE(run->borrowed());
  EXPECT_TRUE(loans_.empty());
  std::fill(memory_.begin(), memory_.end(), std::uint8_t{0});
  EXPECT_EQ(run->room(), run->payload_len);
  for (unsigned i = 0; i < kPackets; ++i) expect_payload(part_of(*run, i), i);
  const PacketRef copy = PacketPool::copy(*run);
  run = PacketRef();
  for (unsigned i = 0; i < kPackets; ++i) expect_payload(part_of(*copy, i), i);
}

}  // namespace
}  // namespace hcasim
