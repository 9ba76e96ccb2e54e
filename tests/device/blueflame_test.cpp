// SPDX-License-Identifier: BSD-3-Clause
// BlueFlame: offered if it is asked for, and a WQE that comes with its doorbell, at once or in pieces.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "two_qps.h"

namespace hcasim::bare {
namespace {

constexpr unsigned kWrites = 50;

TEST(BlueFlame, BringsTheWqeAlong) {
  Machine machine(std::size_t{64} << 20);
  machine.add_hca("link=ib");
  Function& function = machine.add_hca("link=ib,bf=on");
  machine.start();
  {
    Device plain(machine.function(0));
    plain.probe();
    EXPECT_EQ(plain.cap<prm::cmd_hca_cap::bf>(), 0u);
  }
  Device device(function);
  device.probe();
  EXPECT_EQ(device.cap<prm::cmd_hca_cap::bf>(), 1u);
  TwoQps two(device);
  Qp& qp = *two.a;
  std::uint64_t value = 0;
  // What is read meanwhile, in bytes.
  const auto writes = [&](const auto& ring) {
    const std::uint64_t before = function.counter("dma_read_bytes");
    for (unsigned i = 0; i < kWrites; ++i) {
      ++value;
      std::memcpy(two.memory.data(), &value, sizeof value);
      ring(qp.post(two.wr(WqeOp::kRdmaWrite, sizeof value), false));
      const Completion c = two.cq.wait_one();
      EXPECT_FALSE(c.error()) << c.text();
      EXPECT_EQ(std::memcmp(two.memory.data() + two.memory.size() / 2, &value, sizeof value), 0);
    }
    return function.counter("dma_read_bytes") - before;
  };
  const std::uint64_t doorbells = writes([&](std::uint16_t) { qp.ring_doorbell(); });
  EXPECT_EQ(function.counter("blueflames"), 0u);
  const std::uint64_t bursts = writes([&](std::uint16_t) { qp.ring_blueflame(); });
  EXPECT_EQ(function.counter("blueflames"), kWrites);
  EXPECT_LE(bursts + kWrites * prm::kWqebb, doorbells) << "WQEs were read though they had come";
  // As QEMU has it: eight bytes at a time, of which the first are a doorbell.
  unsigned offset = 0;
  const std::uint64_t pieces = writes([&](std::uint16_t index) {
    qp.write_dbr();
    std::array<std::uint8_t, prm::kWqebb> wqe;
    std::memcpy(wqe.data(), qp.sq_wqebb(index), wqe.size());
    for (unsigned i = 0; i < wqe.size(); i += 8)
      function.write(device.uar_offset() + prm::uar::kSqDoorbell + offset + i, wqe.data() + i, 8);
    offset ^= device.sq_doorbell_stride() / 2;
  });
  EXPECT_EQ(function.counter("blueflames"), kWrites);
  EXPECT_EQ(pieces, doorbells);
  EXPECT_EQ(function.counter("bad_doorbells"), 0u);
  EXPECT_EQ(function.counter("rules_broken"), 0u);
}

}  // namespace
}  // namespace hcasim::bare
