// SPDX-License-Identifier: BSD-3-Clause
// The rings of a wire of shared memory: bytes in order, sleepers that are woken, and another end that writes
// whatever it likes into the memory.
#include "wire/rings.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace hcasim::wire {
namespace {

using ::testing::HasSubstr;

struct RingsTest : ::testing::Test {
  RingsTest() {
    maker = Rings::make(why);
    EXPECT_TRUE(maker) << why;
    taker = Rings::take(maker->file(), why);
    EXPECT_TRUE(taker) << why;
  }
  static bool send(Rings& to, const std::vector<std::uint8_t>& bytes) {
    EXPECT_GE(to.room(), bytes.size());
    std::memcpy(to.end(), bytes.data(), bytes.size());
    to.wrote(bytes.size());
    return to.publish();
  }
  static std::vector<std::uint8_t> receive(Rings& from) {
    std::vector<std::uint8_t> bytes(from.begin(), from.begin() + from.available());
    from.consume(bytes.size());
    return bytes;
  }
  std::string why;
  std::unique_ptr<Rings> maker, taker;
};

TEST_F(RingsTest, WhatIsPublishedComesBothWays) {
  EXPECT_FALSE(send(*maker, {1, 2, 3}));
  EXPECT_FALSE(send(*taker, {4, 5}));
  EXPECT_EQ(maker->unread(), 3u);
  EXPECT_EQ(receive(*taker), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(receive(*maker), (std::vector<std::uint8_t>{4, 5}));
  EXPECT_EQ(maker->unread(), 0u);
  std::memcpy(maker->end(), "x", 1);
  maker->wrote(1);
  EXPECT_EQ(taker->available(), 0u) << "not before it is published";
}

TEST_F(RingsTest, AnyPartIsInOnePiece) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint8_t> bytes(1 + random() % 70'000);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    send(*taker, bytes);
    ASSERT_EQ(receive(*maker), bytes) << round;
  }
}

TEST_F(RingsTest, ASleeperIsWokenOnce) {
  EXPECT_TRUE(taker->sleep());
  EXPECT_TRUE(send(*maker, {1}));
  EXPECT_FALSE(send(*maker, {2}));
  EXPECT_FALSE(taker->sleep()) << "there is something";
  receive(*taker);
  EXPECT_TRUE(taker->sleep());
  EXPECT_FALSE(maker->publish()) << "nothing new";
}

TEST_F(RingsTest, AWriterWithoutRoomIsWokenWhenThereIsMuch) {
  std::memset(maker->end(), 7, maker->room());
  maker->wrote(maker->room());
  maker->publish();
  EXPECT_EQ(maker->room(), 0u);
  EXPECT_TRUE(maker->wait_for_room());
  ASSERT_EQ(taker->available(), Rings::kBytes);
  EXPECT_FALSE(taker->consume(1)) << "not for a byte";
  EXPECT_FALSE(maker->wait_for_room());
  std::memset(maker->end(), 7, 1);
  maker->wrote(1);
  EXPECT_TRUE(maker->wait_for_room());
  EXPECT_TRUE(taker->consume(Rings::kBytes / 2 + 1));
  EXPECT_FALSE(taker->consume(1)) << "once";
}

// Two threads, as the two processes are: nothing is lost, and neither sleeps for good.
TEST_F(RingsTest, BothEndsAtOnce) {
  constexpr std::size_t kTotal = std::size_t{64} << 20;
  std::atomic<bool> rung{false}, room{false};
  std::thread reader([&] {
    std::uint8_t expected = 0;
    std::size_t got = 0;
    while (got < kTotal) {
      const std::size_t n = taker->available();
      if (n == 0) {
        if (!taker->sleep()) continue;
        while (!rung.exchange(false)) std::this_thread::yield();
        continue;
      }
      bool right = true;
      for (std::size_t i = 0; i < n; ++i) right &= taker->begin()[i] == expected++;
      ASSERT_TRUE(right);
      if (taker->consume(n)) room = true;
      got += n;
    }
  });
  std::mt19937 random(2);
  std::uint8_t next = 0;
  for (std::size_t sent = 0; sent < kTotal;) {
    const std::size_t n = std::min({maker->room(), kTotal - sent, std::size_t{1} + random() % 9000});
    for (std::size_t i = 0; i < n; ++i) maker->end()[i] = next++;
    maker->wrote(n);
    sent += n;
    if (maker->publish()) rung = true;
    if (n == 0 && maker->wait_for_room())
      while (!room.exchange(false)) std::this_thread::yield();
  }
  reader.join();
  EXPECT_FALSE(maker->broken() || taker->broken());
}

// The other end's positions are its to write: whatever they say, nothing is read or written beyond the rings.
TEST_F(RingsTest, NonsenseInTheMemory) {
  std::mt19937_64 random(3);
  auto* page =
      static_cast<std::uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, maker->file(), 0));
  ASSERT_NE(page, MAP_FAILED);
  unsigned broken = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t value = round % 3 == 0 ? random() : random() % (4 * Rings::kBytes);
    // Behind what says which memory this is.
    std::memcpy(page + 16 + random() % 1000 / 8 * 8, &value, sizeof value);
    for (Rings* end : {maker.get(), taker.get()}) {
      ASSERT_LE(end->room(), Rings::kBytes);
      ASSERT_LE(end->available(), Rings::kBytes);
      ASSERT_LE(end->unread(), Rings::kBytes);
      broken += end->broken();
    }
  }
  munmap(page, 4096);
  EXPECT_GT(broken, 0u);
}

TEST_F(RingsTest, OtherFilesAreRefused) {
  const int plain = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(plain, 4096 + 2 * static_cast<off_t>(Rings::kBytes)), 0);
  EXPECT_FALSE(Rings::take(plain, why)) << "it could be made smaller under our feet";
  EXPECT_THAT(why, HasSubstr("not one of a wire"));
  close(plain);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(Rings::take(ends[0], why));
  close(ends[0]);
  close(ends[1]);
  EXPECT_FALSE(Rings::take(-1, why));
  const std::uint64_t other = 5;
  ASSERT_EQ(pwrite(maker->file(), &other, sizeof other, 0), 8);
  EXPECT_FALSE(Rings::take(maker->file(), why));
  EXPECT_THAT(why, HasSubstr("another layout"));
}

}  // namespace
}  // namespace hcasim::wire
