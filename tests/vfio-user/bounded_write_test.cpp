// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/bounded_write.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "vfio-user/descriptor.h"

namespace hcasim::vfio_user {
namespace {

TEST(BoundedWrite, WritesWhatThereIsRoomFor) {
  const Descriptor file(::eventfd(0, 0));
  const std::uint64_t five = 5;
  std::uint64_t count = 0;
  EXPECT_TRUE(bounded_write(file.get(), &five, sizeof five));
  ASSERT_EQ(::read(file.get(), &count, sizeof count), 8);
  EXPECT_EQ(count, 5u);
}

// As the flag that would keep the write from waiting is the other one's, too. Twice: what ended the first one
// has not been used up.
TEST(BoundedWrite, EndsThoughThereIsNoRoomForIt) {
  const Descriptor file(::eventfd(0, 0));
  const std::uint64_t most = ~std::uint64_t{0} - 1, one = 1;
  ASSERT_TRUE(bounded_write(file.get(), &most, sizeof most));
  for (int i = 0; i < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(bounded_write(file.get(), &one, sizeof one));
    EXPECT_EQ(errno, EINTR);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
  }
}

}  // namespace
}  // namespace hcasim::vfio_user
