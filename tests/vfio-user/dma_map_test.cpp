// SPDX-License-Identifier: BSD-3-Clause
// Ranges of the client's memory: what is taken, what is refused, and what becomes of a file that is cut.
#include "vfio-user/dma_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "vfio-user/protocol.h"

namespace hcasim::vfio_user {
namespace {

constexpr std::uint32_t kBoth = kDmaReadable | kDmaWritable;
constexpr std::uint64_t kPage = 4096, kBase = 0x1'0000'0000;
using Result = DmaMap::Result;

Descriptor file(std::uint64_t bytes) {
  Descriptor out(::memfd_create("dma_map_test", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(out.get(), static_cast<off_t>(bytes)), 0);
  return out;
}

TEST(DmaMap, AccessesTheFileThatBothEndsHave) {
  DmaMap map;
  const Descriptor memory = file(4 * kPage);
  ASSERT_EQ(map.add(kBase, 2 * kPage, kBoth, memory, kPage), 0);
  const std::uint32_t value = 0x12345678;
  ASSERT_EQ(map.write(kBase + 8, &value, sizeof value), Result::kDone);
  std::uint32_t there = 0;
  ASSERT_EQ(::pread(memory.get(), &there, sizeof there, kPage + 8), ssize_t{sizeof there});
  EXPECT_EQ(there, value);
  there = 0;
  EXPECT_EQ(map.read(kBase + 8, &there, sizeof there), Result::kDone);
  EXPECT_EQ(there, value);
}

TEST(DmaMap, OffsetsNeedNotBeOfWholePages) {
  DmaMap map;
  const Descriptor memory = file(2 * kPage);
  ASSERT_EQ(map.add(kBase + 100, 200, kBoth, memory, kPage + 100), 0);
  const char text[] = "here";
  ASSERT_EQ(map.write(kBase + 100, text, sizeof text), Result::kDone);
  char there[sizeof text] = "";
  ASSERT_EQ(::pread(memory.get(), there, sizeof there, kPage + 100), ssize_t{sizeof there});
  EXPECT_STREQ(there, text);
  EXPECT_EQ(map.read(kBase + 99, there, 1), Result::kNothing);
  EXPECT_EQ(map.read(kBase + 300, there, 1), Result::kNothing);
}

TEST(DmaMap, AnAccessGoesOnFromOneRangeIntoTheNext) {
  DmaMap map;
  const Descriptor one = file(kPage), two = file(kPage);
  ASSERT_EQ(map.add(kBase, kPage, kBoth, one, 0), 0);
  ASSERT_EQ(map.add(kBase + kPage, kPage, kBoth, two, 0), 0);
  std::array<std::uint8_t, 64> sent, got{};
  std::iota(sent.begin(), sent.end(), std::uint8_t{1});
  ASSERT_EQ(map.write(kBase + kPage - 32, sent.data(), sent.size()), Result::kDone);
  ASSERT_EQ(map.read(kBase + kPage - 32, got.data(), got.size()), Result::kDone);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(map.find(kBase + kPage - 32, 64, DmaMap::Access::kRead), nullptr);  // not in one piece
  EXPECT_NE(map.find(kBase + kPage - 32, 32, DmaMap::Access::kRead), nullptr);
}

TEST(DmaMap, AnAccessThatIsRefusedInPartIsNotBegun) {
  DmaMap map;
  const Descriptor memory = file(kPage);
  ASSERT_EQ(map.add(kBase, kPage, kBoth, memory, 0), 0);
  const std::array<std::uint8_t, 64> ones = [] {
    std::array<std::uint8_t, 64> a;
    a.fill(1);
    return a;
  }();
  EXPECT_EQ(map.write(kBase + kPage - 32, ones.data(), ones.size()), Result::kNothing);
  std::uint8_t last = 0xff;
  ASSERT_EQ(map.read(kBase + kPage - 1, &last, 1), Result::kDone);
  EXPECT_EQ(last, 0);
}

TEST(DmaMap, RefusesWhatIsNoRange) {
  DmaMap map;
  const Descriptor memory = file(4 * kPage);
  EXPECT_EQ(map.add(kBase, 0, kBoth, memory, 0), EINVAL);
  EXPECT_EQ(map.add(~0ull - kPage + 2, kPage, kBoth, memory, 0), EINVAL);  // wraps
  EXPECT_EQ(map.add(kBase, kPage, kBoth, memory, ~0ull - kPage + 2), EINVAL);
  EXPECT_EQ(map.add(kBase, kPage, 0x100, memory, 0), EINVAL);
  EXPECT_EQ(map.add(kBase, kPage, kBoth, memory, 4 * kPage), EINVAL);  // beyond the file
  EXPECT_EQ(map.ranges(), 0u);
  EXPECT_EQ(map.add(~0ull - kPage + 1, kPage, kBoth, memory, 0), 0);  // up to the last byte
  std::uint8_t byte = 0;
  EXPECT_EQ(map.read(~0ull, &byte, 1), Result::kDone);
  EXPECT_EQ(map.read(~0ull, &byte, 2), Result::kNothing);
}

TEST(DmaMap, RefusesWhatOverlaps) {
  DmaMap map;
  const Descriptor memory = file(8 * kPage);
  ASSERT_EQ(map.add(kBase + kPage, 2 * kPage, kBoth, memory, 0), 0);
  EXPECT_EQ(map.add(kBase + kPage, 2 * kPage, kBoth, memory, 0), EEXIST);
  EXPECT_EQ(map.add(kBase, kPage + 1, kBoth, memory, 0), EEXIST);
  EXPECT_EQ(map.add(kBase + 2 * kPage, kPage, kBoth, memory, 0), EEXIST);
  EXPECT_EQ(map.add(kBase, 8 * kPage, kBoth, memory, 0), EEXIST);
  EXPECT_EQ(map.add(kBase, kPage, kBoth, memory, 0), 0);
  EXPECT_EQ(map.add(kBase + 3 * kPage, kPage, kBoth, memory, 0), 0);
}

TEST(DmaMap, RangesGoAsTheyCame) {
  DmaMap map;
  const Descriptor memory = file(4 * kPage);
  ASSERT_EQ(map.add(kBase, 4 * kPage, kBoth, memory, 0), 0);
  EXPECT_EQ(map.remove(kBase, kPage), ENOENT);
  EXPECT_EQ(map.remove(kBase + kPage, kPage), ENOENT);
  EXPECT_EQ(map.remove(kBase, 4 * kPage), 0);
  std::uint8_t byte = 0;
  EXPECT_EQ(map.read(kBase, &byte, 1), Result::kNothing);
}

TEST(DmaMap, RightsAreKept) {
  DmaMap map;
  const Descriptor memory = file(kPage);
  ASSERT_EQ(map.add(kBase, kPage, kDmaReadable, memory, 0), 0);
  std::uint8_t byte = 0;
  EXPECT_EQ(map.read(kBase, &byte, 1), Result::kDone);
  EXPECT_EQ(map.write(kBase, &byte, 1), Result::kNothing);
  EXPECT_EQ(map.find(kBase, 1, DmaMap::Access::kWrite), nullptr);
}

TEST(DmaMap, MemoryWithoutAFileIsNamedAsSuch) {
  DmaMap map;
  ASSERT_EQ(map.add(kBase, kPage, kBoth, Descriptor(), 0), 0);
  std::uint8_t byte = 0;
  EXPECT_EQ(map.read(kBase, &byte, 1), Result::kNotShared);
  EXPECT_EQ(map.write(kBase, &byte, 1), Result::kNotShared);
  EXPECT_EQ(map.find(kBase, 1, DmaMap::Access::kRead), nullptr);
}

TEST(DmaMap, AFileThatIsCutIsLostAndNobodyDies) {
  DmaMap map;
  const Descriptor cut = file(4 * kPage), other = file(kPage);
  ASSERT_EQ(map.add(kBase, 4 * kPage, kBoth, cut, 0), 0);
  ASSERT_EQ(map.add(kBase + 4 * kPage, kPage, kBoth, other, 0), 0);
  std::uint8_t* const lent = map.find(kBase + 3 * kPage, 8, DmaMap::Access::kRead);
  ASSERT_NE(lent, nullptr);
  ASSERT_EQ(::ftruncate(cut.get(), static_cast<off_t>(kPage)), 0);
  std::uint64_t value = 1;
  EXPECT_EQ(map.write(kBase + 2 * kPage, &value, sizeof value), Result::kLost);
  EXPECT_EQ(map.read(kBase, &value, sizeof value),
            Result::kLost);  // the range as a whole is not to be trusted
  EXPECT_EQ(map.find(kBase, 8, DmaMap::Access::kRead), nullptr);
  EXPECT_EQ(lent[7], 0);  // whoever has a pointer reads an empty page
  EXPECT_EQ(map.write(kBase + 4 * kPage, &value, sizeof value), Result::kDone);
  EXPECT_EQ(map.remove(kBase, 4 * kPage), 0);
}

TEST(DmaMap, TakesNoMoreRangesThanAgreed) {
  DmaMap map;
  for (unsigned i = 0; i < kMostMaps; ++i)
    ASSERT_EQ(map.add(kBase + i * 2 * kPage, kPage, 0, Descriptor(), 0), 0);
  EXPECT_EQ(map.add(0, kPage, 0, Descriptor(), 0), ENOSPC);
}

// Pages that lie apart in their file are mappings of their own, of which a process has so many: one that is
// cut needs another one.
TEST(DmaMap, LeavesMappingsForWhatIsCut) {
  DmaMap map, other;
  const Descriptor memory = file(std::uint64_t{1} << 30);
  std::uint64_t n = 0;
  while (n < kMostMaps && map.add(kBase + n * kPage, kPage, kBoth, memory, 2 * n * kPage) == 0) ++n;
  EXPECT_GT(n, 1000u);
  EXPECT_EQ(other.add(kBase, kPage, kBoth, memory, 0), n < kMostMaps ? ENOSPC : 0);
  ASSERT_EQ(::ftruncate(memory.get(), 0), 0);
  std::uint32_t value = 0;
  EXPECT_EQ(map.read(kBase + n / 2 * kPage, &value, sizeof value), Result::kLost);
  map.clear();
  EXPECT_EQ(other.add(kBase, kPage, kBoth, file(kPage), 0), 0);
}

// A file without contents may be as large as it likes: addresses of this process are not to end with it.
TEST(DmaMap, LeavesAddressesForTheProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer leaves a program few addresses";
#endif
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 42, kMost = 16;
  const Descriptor memory = file(kPiece);
  DmaMap map, other;
  for (std::uint64_t i = 0; i < kMost; ++i) {
    DmaMap& one = i % 2 == 0 ? map : other;
    ASSERT_EQ(one.add(i * kPiece, kPiece, kBoth, memory, 0), 0) << i;
  }
  EXPECT_EQ(map.add(kMost * kPiece, kPiece, kBoth, memory, 0), ENOSPC);
  EXPECT_EQ(map.add(kMost * kPiece, kPage, kBoth, memory, 0), ENOSPC);
  ASSERT_EQ(other.remove(kPiece, kPiece), 0);
  EXPECT_EQ(map.add(kMost * kPiece, kPage, kBoth, memory, 0), 0);
  EXPECT_EQ(map.add(kMost * kPiece + kPage, kPiece, kBoth, memory, 0), ENOSPC);
}

TEST(DmaMap, FilesOfHugePagesAreMappedAsSuch) {
  constexpr std::uint64_t kHuge = std::uint64_t{2} << 20;
  const Descriptor memory(
      ::memfd_create("dma_map_test", MFD_CLOEXEC | MFD_HUGETLB | (21u << 26)));  // of 2^21 bytes
  ASSERT_TRUE(memory) << "a kernel without huge pages";
  ASSERT_EQ(::ftruncate(memory.get(), static_cast<off_t>(kHuge)), 0);
  DmaMap map;
  std::uint32_t value = 0x12345678;
  const int half = map.add(kBase + (1 << 20), 1 << 20, kBoth, memory, 1 << 20);
  if (half != 0) {  // the machine has none to give (/proc/sys/vm/nr_hugepages); it was asked for a whole one
    EXPECT_EQ(half, ENOMEM);
    return;
  }
  ASSERT_EQ(map.remove(kBase + (1 << 20), 1 << 20), 0);
  ASSERT_EQ(map.add(kBase, kHuge, kBoth, memory, 0), 0);
  ASSERT_EQ(map.write(kBase, &value, sizeof value), Result::kDone);
  EXPECT_EQ(map.remove(kBase, kHuge), 0);
  ASSERT_EQ(map.add(kBase, 640 << 10, kBoth, memory, 0), 0) << "the memory below the hole of a PC";
  ASSERT_EQ(map.add(kBase + (1 << 20), 1 << 20, kBoth, memory, 1 << 20), 0);
  EXPECT_EQ(map.read(kBase, &value, sizeof value), Result::kDone);
  EXPECT_EQ(value, 0x12345678u);
  ASSERT_EQ(::ftruncate(memory.get(), 0), 0);
  EXPECT_EQ(map.read(kBase + (1 << 20), &value, sizeof value), Result::kLost);
  EXPECT_EQ(map.remove(kBase, 640 << 10), 0);
}

}  // namespace
}  // namespace hcasim::vfio_user
