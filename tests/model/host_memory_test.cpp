// SPDX-License-Identifier: BSD-3-Clause
// What the host's memory adds to a transfer, by its address; and the shape of rates behind an IOMMU: small
// reads are as many as its walks allow, large ones have all of the link.
#include "model/pcie/host_memory.h"

#include "bench.h"

namespace hcasim::test {
namespace {

using What = HostMemory::What;

constexpr Time kWalk = from_ns(310), kDram = from_ns(50);

struct Host {
  explicit Host(const Profile::Memory& m) : profile(with(m)), memory(profile, 3) {}
  static Profile with(const Profile::Memory& m) {
    Profile p;
    p.memory = m;
    return p;
  }
  Time payload(std::uint64_t addr, std::size_t len = 64, Time t = 0, FunctionId f = 0) {
    return memory.read(t, f, addr, len, What::kPayload);
  }
  Profile profile;
  HostMemory memory;
};

struct WithIommu : Host {
  WithIommu() : Host(parameters()) {}
  static Profile::Memory parameters() {
    Profile::Memory m;
    m.iotlb = 64;
    m.iotlb_walks = 2;
    return m;
  }
};

struct WithSmallCache : Host {
  WithSmallCache() : Host(parameters()) {}
  static Profile::Memory parameters() {
    Profile::Memory m;
    m.llc_kib = 64;
    m.llc_io_kib = 4;
    return m;
  }
};

TEST(HostMemory, ByDefaultAddsNothing) {
  Host h{Profile::Memory{}};
  EXPECT_FALSE(h.memory.modelled());
  EXPECT_EQ(h.payload(0x1234, 4096), 0);
  EXPECT_EQ(h.memory.write(0, 0, 0x1234, 4096), 0);
}

TEST(HostMemory, ATranslationIsWalkedForOnce) {
  WithIommu h;
  EXPECT_TRUE(h.memory.modelled());
  EXPECT_EQ(h.payload(0x1fc0), kWalk);
  EXPECT_EQ(h.payload(0x1000, 64, from_ns(100)), kWalk - from_ns(100)) << "under way";
  EXPECT_EQ(h.payload(0x1000, 64, kWalk), 0);
  EXPECT_EQ(h.payload(0x1fff, 2, kWalk), kWalk) << "the next page";
  EXPECT_EQ(h.memory.write(3 * kWalk, 0, 0x5000, 4), kWalk) << "writes are translated, too";
  EXPECT_EQ(h.memory.iotlb_misses(), 3u);
  EXPECT_EQ(h.memory.iotlb_hits(), 3u);
}

TEST(HostMemory, WalksAreSoManyAtATime) {
  WithIommu h;
  EXPECT_EQ(h.payload(0, 5 * 4096), 3 * kWalk);
  EXPECT_EQ(h.payload(0, 5 * 4096, 3 * kWalk), 0);
}

TEST(HostMemory, AWindowLargerThanTheIotlbMissesIt) {
  WithIommu h;
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t page = 0; page < 64; ++page) h.payload(page << 12, 64, from_ns(1e6) * (round + 1));
  EXPECT_EQ(h.memory.iotlb_misses(), 64u);
  for (int round = 0; round < 4; ++round)
    for (std::uint64_t page = 0; page < 128; ++page) h.payload(page << 12);
  EXPECT_GT(h.memory.iotlb_misses(), 64u + 4 * 100u);
}

TEST(HostMemory, FunctionsHaveTranslationsOfTheirOwn) {
  WithIommu h;
  EXPECT_EQ(h.payload(0x1000, 64, 0, 1), kWalk);
  EXPECT_EQ(h.payload(0x1000, 64, kWalk, 2), kWalk);
  EXPECT_EQ(h.payload(0x1000, 64, 2 * kWalk, 1), 0);
  h.memory.forget(1);
  EXPECT_EQ(h.payload(0x1000, 64, 2 * kWalk, 2), 0);
  EXPECT_EQ(h.payload(0x1000, 64, 2 * kWalk, 1), kWalk);
}

// With ATS: a request of its own the first time, nothing at all then, whatever the IOMMU keeps.
TEST(HostMemory, WhatTheCardHasTranslatedItNeedNotAskFor) {
  Profile::Memory m = WithIommu::parameters();
  m.atc = 1024;
  Host h{m};
  const Time asked = kWalk + h.profile.pcie.read_latency;
  EXPECT_EQ(h.payload(0x1000), asked);
  EXPECT_EQ(h.payload(0x1000, 64, asked / 2), asked - asked / 2) << "under way";
  for (std::uint64_t page = 2; page < 512; ++page) h.payload(page << 12, 64, from_ns(1e6));
  EXPECT_EQ(h.payload(0x1000, 64, from_ns(1e7)), 0);
  EXPECT_EQ(h.memory.iotlb_misses(), 511u);
  EXPECT_EQ(h.memory.atc_misses(), 511u);
  EXPECT_EQ(h.memory.atc_hits(), 2u);
  h.memory.forget(0);
  EXPECT_EQ(h.payload(0x1000, 64, from_ns(2e7)), asked);
  m.iotlb = 0;
  EXPECT_EQ(Host{m}.payload(0x1000), 0) << "there is nobody to ask";
}

// The driver switches it off: as without, and nothing is there of before when it is on again.
TEST(HostMemory, WithoutAtsTheIommuTranslates) {
  Profile::Memory m = WithIommu::parameters();
  m.atc = 1024;
  Host h{m};
  const Time asked = kWalk + h.profile.pcie.read_latency, later = from_ns(1e6);
  EXPECT_EQ(h.payload(0x1000, 64, 0, 1), asked);
  h.memory.keep(1, false);
  EXPECT_EQ(h.payload(0x1000, 64, later, 1), 0) << "the IOMMU has it";
  EXPECT_EQ(h.payload(0x2000, 64, later, 1), kWalk);
  EXPECT_EQ(h.payload(0x1000, 64, later, 2), asked) << "another function's is on";
  h.memory.keep(1, true);
  EXPECT_EQ(h.payload(0x1000, 64, 2 * later, 1), h.profile.pcie.read_latency);
}

TEST(HostMemory, WhatTheIommuTakesBackIsAskedForAnew) {
  Profile::Memory m = WithIommu::parameters();
  m.atc = 1024;
  Host h{m};
  const Time asked = kWalk + h.profile.pcie.read_latency;
  Time t = 0;
  const auto all = [&] {
    std::vector<Time> times;
    for (FunctionId f = 0; f < 2; ++f)
      for (std::uint64_t page = 1; page < 5; ++page)
        times.push_back(h.payload(page << 12, 64, t += from_ns(1e6), f));
    return times;
  };
  const std::vector<Time> first(8, asked);
  EXPECT_EQ(all(), first);
  h.memory.invalidate(0, 0x2fff, 0x1001);  // the second and the third page
  EXPECT_EQ(all(), (std::vector<Time>{0, asked, asked, 0, 0, 0, 0, 0}));
  h.memory.invalidate(1, 0, 0);
  EXPECT_EQ(all(), (std::vector<Time>{0, 0, 0, 0, asked, asked, asked, asked}));
  h.memory.invalidate(0, 0x4000, UINT64_MAX);  // up to the end, and beyond it
  EXPECT_EQ(all(), (std::vector<Time>{asked, asked, asked, asked, 0, 0, 0, 0}));
}

TEST(HostMemory, APayloadLargerThanTheCacheComesFromDram) {
  WithSmallCache h;
  EXPECT_EQ(h.payload(0, 16 << 10), kDram) << "once, as its requests go together";
  EXPECT_EQ(h.payload(0, 16 << 10), 0);
  EXPECT_EQ(h.memory.dram_reads(), 256u);
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t at = 1 << 20; at < (1 << 20) + (256 << 10); at += 4096)
      EXPECT_EQ(h.payload(at, 4096), kDram) << at;
  EXPECT_EQ(h.memory.read(0, 0, 1 << 30, 64, What::kDescriptor), 0) << "a processor has just written it";
}

TEST(HostMemory, WhatDevicesWriteLiesInAShareOfTheCache) {
  WithSmallCache h;
  EXPECT_EQ(h.memory.write(0, 0, 1 << 20, 4096), 0);
  EXPECT_EQ(h.payload(1 << 20, 4096), 0);
  h.memory.write(0, 0, 2 << 20, 64 << 10);  // of which a part is still there
  EXPECT_EQ(h.payload(2 << 20, 4096), kDram);
}

TEST(HostMemory, TheOtherSocketIsFarther) {
  Profile::Memory m;
  m.remote = from_ns(100);
  Host h{m};
  EXPECT_TRUE(h.memory.modelled());
  EXPECT_EQ(h.memory.read(0, 0, 0x40, 64, What::kDescriptor), from_ns(100));
  EXPECT_EQ(h.memory.write(0, 0, 0x40, 64), from_ns(100));
}

// Addresses are the guest's to choose.
TEST(HostMemory, TheEndOfTheAddressSpaceIsNoTrouble) {
  Profile::Memory m = WithSmallCache::parameters();
  m.iotlb = 64;
  Host h{m};
  for (const FunctionId f : {FunctionId{0}, FunctionId{0xfff}, FunctionId{0xffff}})
    for (const std::uint64_t addr : {~std::uint64_t{0}, ~std::uint64_t{0} - 4000}) {
      h.payload(addr, 8192, 0, f);
      h.memory.write(0, f, addr, 8192);
    }
  EXPECT_NE(h.memory.iotlb_misses(), 0u);
}

// Through the DMA engine: reads of so many bytes from one page after the other of a window, as fast as they
// go.
class ReadRate : public BlockTest {
 protected:
  double rate(std::size_t bytes, std::size_t pages) {
    b.dma_behind_iommu.reset();
    b.dma_behind_iommu.set_enabled(0, true);
    std::vector<std::uint8_t> to(bytes);
    const Time start = sim_now();
    Time last = start;
    constexpr std::size_t kReads = 4000;
    for (std::size_t i = 0; i < kReads; ++i) {
      const std::uint64_t at = i * 97 % pages << 12 | i % (4096 / bytes) * bytes;
      const ReadDone done = b.dma_behind_iommu.read(start, at, to.data(), bytes, Space::kHost, WriteOwner(0));
      EXPECT_TRUE(done.ok);
      last = std::max(last, done.at);
    }
    return kReads / to_ns(last - start);
  }
  double kept(std::size_t bytes) { return rate(bytes, 256) / rate(bytes, 16); }
};

TEST_F(ReadRate, OfSmallReadsBehindAnIommuIsItsWalks) {
  EXPECT_NEAR(kept(64), 0.3, 0.05);
  EXPECT_NEAR(kept(256), 0.75, 0.15);
  EXPECT_GT(kept(512), 0.95);
}

}  // namespace
}  // namespace hcasim::test
