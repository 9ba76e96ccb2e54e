// SPDX-License-Identifier: BSD-3-Clause
// What an HCA takes of its process's memory.
#include <fstream>
#include <string>

#include "fixture.h"

namespace hcasim::bare {
namespace {

// MiB of this process's own pages; the machine's memory is shared, so it is not among them.
std::size_t own_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stoul(line.substr(8)) >> 10;
  }
  return 0;
}

// As a booted guest leaves it: brought up, with the cache of keys that mlx5_ib fills.
TEST(Footprint, AnIdleHcaTakesLessThan64MiB) {
  const std::size_t before = own_mib();
  ASSERT_GT(before, 0u);
  Device device(machine().function(0), {});
  device.probe();
  Pd pd(device);
  const Buffer page = device.memory().allocate(kPage);
  std::vector<std::unique_ptr<Mr>> cache;
  for (unsigned i = 0; i < 6100; ++i) {
    MkeySpec spec = Mr::of(pd, page);
    spec.free = spec.umr_en = true;
    spec.reserve_octowords = 4u << (i % 10);  // lists of 16 bytes to 32 KiB
    spec.mtt.clear();
    cache.push_back(std::make_unique<Mr>(device, spec));
  }
  const std::size_t idle = own_mib() - before;
  RecordProperty("idle_mib", static_cast<int>(idle));
  // (All HCAs of this machine are in it, five of them never touched.)
  EXPECT_LT(idle, 64u);
}

}  // namespace
}  // namespace hcasim::bare
