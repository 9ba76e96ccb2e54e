// SPDX-License-Identifier: BSD-3-Clause
// What a subnet manager sets of a port, by the MADs of it that go in by the command interface.
#ifndef HCASIM_TESTS_DEVICE_SUBNET_MANAGEMENT_H
#define HCASIM_TESTS_DEVICE_SUBNET_MANAGEMENT_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "driver/bare/command.h"
#include "driver/bare/device.h"

namespace hcasim::bare {

enum SmpAttribute : std::uint16_t { kPortInfo = 0x15, kSlToVl = 0x17, kVlArbitration = 0x18 };
constexpr std::uint32_t kVlLow = 1u << 16, kVlHigh = 3u << 16;  // VLArbitrationTable's blocks of 32 entries

using SmpData = std::vector<std::uint8_t>;

// The attribute as the port answers it.
inline SmpData smp(Device& device, bool set, std::uint16_t attribute, std::uint32_t modifier,
                   const SmpData& data = {}) {
  using In = prm::mad_ifc_in;
  constexpr std::size_t kData = 64;
  Mailbox in(prm::op::MAD_IFC, In::bytes);
  in.set<In::port>(1);
  std::uint8_t* mad = in.data() + In::mad::bit_off / 8;
  mad[0] = mad[1] = mad[2] = 1;
  mad[3] = set ? 2 : 1;
  prm::store32(mad + 16, std::uint32_t{attribute} << 16);
  prm::store32(mad + 20, modifier);
  std::copy(data.begin(), data.end(), mad + kData);
  const auto r = device.exec(in, prm::mad_ifc_out::bytes).must();
  const std::uint8_t* answer = r.out.data() + prm::mad_ifc_out::response_mad_packet::bit_off / 8;
  EXPECT_EQ(prm::load32(answer + 4) >> 16, 0u);
  return {answer + kData, answer + 2 * kData};
}

// entries: lane and weight, in units of 64 bytes.
inline void arbitrate(Device& device, std::uint32_t block,
                      const std::vector<std::pair<std::uint8_t, std::uint8_t>>& entries) {
  SmpData table(64);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    table[2 * i] = entries[i].first;
    table[2 * i + 1] = entries[i].second;
  }
  smp(device, true, kVlArbitration, block, table);
}

// In units of 4096 bytes; 255: without.
inline void limit_high_lanes(Device& device, std::uint8_t limit) {
  SmpData info = smp(device, false, kPortInfo, 1);
  info[38] = limit;
  info[32] &= 0xf0;  // the states stay
  info[33] = 0;
  smp(device, true, kPortInfo, 1, info);
}

}  // namespace hcasim::bare
#endif
