// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/dma.h"

#include <gmock/gmock.h>
#include <cstring>

#include "bench.h"
#include "small_memory.h"

namespace hcasim::test {
namespace {

class DmaTest : public BlockTest {
 protected:
  Time wire(double bytes) const { return static_cast<Time>(bytes * b.profile.pcie.ps_per_byte()); }
  std::uint8_t at(std::uint64_t addr) const { return b.host.memory[addr]; }
  std::uint8_t buf[32768] = {};
};

constexpr Time kRounding = 1500;  // whole cycles of 1 ns, and fractions of a byte's time

TEST_F(DmaTest, SmallReadTakesTheRoundTrip) {
  b.host.memory[100] = 7;
  const Time t = sim_now();
  const ReadDone r = b.dma.read(t, 100, buf, 64, Space::kHost, WriteOwner(0));
  EXPECT_TRUE(r.ok);
  EXPECT_EQ(buf[0], 7);
  EXPECT_NEAR(r.at - t, b.profile.pcie.read_latency + wire(24), kRounding);
  EXPECT_EQ(b.dma.bytes_read(), 64u);
}

TEST_F(DmaTest, TheDevicesOwnMemoryIsNoPcieMatter) {
  static SmallMemory<4096> memory;  // stays attached
  const Time t = sim_now();
  EXPECT_FALSE(b.dma.read(t, 0, buf, 64, Space::kSwIcm, WriteOwner(0)).ok);  // none there
  b.dma.attach(0, Space::kSwIcm, memory);
  for (std::size_t i = 0; i < 1000; ++i) buf[i] = static_cast<std::uint8_t>(i);
  b.dma.post_write(t, 40, buf, 1000, {}, false, Space::kSwIcm);
  std::uint8_t back[1000] = {};
  const ReadDone r = b.dma.read(t, 40, back, sizeof back, Space::kSwIcm, WriteOwner(0));
  EXPECT_TRUE(r.ok);
  EXPECT_EQ(std::memcmp(back, buf, sizeof back), 0);
  EXPECT_LT(r.at - t, b.profile.pcie.read_latency);
  EXPECT_EQ(b.dma.bytes_read() + b.dma.bytes_written(), 0u);
  EXPECT_EQ(at(40), 0);
  const std::uint64_t errors = b.dma.errors();
  EXPECT_FALSE(b.dma.read(t, 4095, buf, 2, Space::kSwIcm, WriteOwner(0)).ok);
  b.dma.post_write(t, 4090, buf, 64, {}, false, Space::kSwIcm);
  EXPECT_EQ(b.dma.errors(), errors + 2);
  EXPECT_EQ(memory.bytes[4090], 0);
}

TEST_F(DmaTest, LargeReadTakesTheLinksTimePerByte) {
  const Time t = sim_now();
  const Time small = b.dma.read(t, 0, buf, 64, Space::kHost, WriteOwner(0)).at - t;
  b.dma.reset();
  b.dma.set_enabled(0, true);
  const Time large = b.dma.read(t, 0, buf, 16384, Space::kHost, WriteOwner(0)).at - t;
  // 64 completions of 256 bytes, 20 bytes of overhead each; 32 requests.
  EXPECT_NEAR(large - small, wire(16384 - 64 + 63 * 20 + 31 * 24), 2 * kRounding);
}

TEST_F(DmaTest, ReadsShareTheLink) {
  const Time t = sim_now();
  Time last = 0;
  for (int i = 0; i < 100; ++i)
    last = std::max(last, b.dma.read(t, 0, buf, 4096, Space::kHost, WriteOwner(0)).at);
  const double bytes = 100 * (4096 + 16 * 20);
  EXPECT_GT(last - t, wire(bytes));
  EXPECT_LT(last - t, wire(bytes) + b.profile.pcie.read_latency + wire(3000));
}

TEST_F(DmaTest, AnEarlierReadAskedForLaterIsNotHeldUp) {
  const Time t = sim_now();
  b.dma.read(t + from_ns(5000), 0, buf, 64, Space::kHost, WriteOwner(0));
  const ReadDone r = b.dma.read(t, 0, buf, 64, Space::kHost, WriteOwner(0));
  EXPECT_LT(r.at - t, b.profile.pcie.read_latency + from_ns(10));
}

TEST_F(DmaTest, OutstandingReadsAreBoundedByTags) {
  const Time t = sim_now();
  Time at[6];
  for (Time& a : at) a = b.dma_few_tags.read(t, 0, buf, 64, Space::kHost, WriteOwner(0)).at;
  const Time latency = b.profile.pcie.read_latency;
  EXPECT_LT(at[1] - t, latency + from_ns(20));
  EXPECT_GE(at[2] - t, 2 * latency);
  EXPECT_LT(at[3] - t, 2 * latency + from_ns(20));
  EXPECT_GE(at[5] - t, 3 * latency);
  // Eight requests of one read, two at a time.
  b.dma_few_tags.reset();
  b.dma_few_tags.set_enabled(0, true);
  EXPECT_GE(b.dma_few_tags.read(t, 0, buf, 4096, Space::kHost, WriteOwner(0)).at - t, 4 * latency);
}

TEST_F(DmaTest, WritesAreSeenWhenTheyArriveAndNotBefore) {
  buf[0] = 1;
  const Time t = sim_now();
  const Time visible = b.dma.post_write(t, 500, buf, 8, {});
  EXPECT_NEAR(visible - t, b.profile.pcie.write_latency + wire(32), kRounding);
  b.run(visible - t - 1);
  EXPECT_EQ(at(500), 0);
  b.run(1);
  EXPECT_EQ(at(500), 1);
  ASSERT_EQ(b.host.events.size(), 1u);
  EXPECT_EQ(b.host.events[0].at, visible);
  EXPECT_EQ(b.dma.bytes_written(), 8u);
}

TEST_F(DmaTest, WritesKeepTheOrderOfTheirCalls) {
  const Time t = sim_now();
  b.dma.post_write(t + from_ns(900), 0x2000, buf, 8, {});
  b.dma.post_write(t, 0x1000, buf, 5000, {});
  b.dma.post_write(t, 0x100, buf, 8, {}, true);
  b.dma.post_msix(t, 0, 3);
  b.dma.post_write(t, 0x200, buf, 8, {});
  b.run_ns(100000);
  std::vector<std::uint64_t> order;
  for (const auto& e : b.host.events) order.push_back(e.msix ? 1000000 + e.addr : e.addr);
  EXPECT_THAT(order, ::testing::ElementsAre(0x2000, 0x1000, 0x2000, 0x100, 1000003, 0x200));
}

// Messages that go as one: each is visible when it would be by itself, and they are written with the last.
TEST_F(DmaTest, MessagesTakeAsLongAsWrites) {
  constexpr unsigned kMessages = 12, kLength = 70;
  const WriteOwner qp{WriteOwner::kQp, 0, 7};
  const Time t = sim_now();
  const auto ready = [&](unsigned i) { return t + from_ns(3) * i + (i > 6 ? from_ns(400) : 0); };
  const auto place = [](unsigned i) { return 0x1000 + (i * 5 % kMessages) * 251u; };
  for (unsigned i = 0; i < sizeof buf; ++i) buf[i] = static_cast<std::uint8_t>(i * 7 + 1);
  std::vector<Time> single;
  for (unsigned i = 0; i < kMessages; ++i)
    single.push_back(b.dma.post_write(ready(i), place(i), buf, kLength, qp));
  b.dma.reset();
  b.dma.set_enabled(0, true);
  PacketRef run = PacketPool::make();
  run->of_messages = true;
  run->packets = kMessages;
  run->unit = kLength;
  run->payload_len = kMessages * kLength;
  std::memcpy(run->data(), buf, run->payload_len);
  for (unsigned i = 0; i < kMessages; ++i) {
    run->at[i] = ready(i);
    run->message[i] = {place(i), 0};
  }
  b.dma.post_messages(run, qp, 0);
  EXPECT_EQ(std::vector<Time>(run->at.begin(), run->at.begin() + kMessages), single);
  b.run(single.back() - t - 1);
  EXPECT_EQ(b.host.events.size(), 0u);
  b.run(1);
  ASSERT_EQ(b.host.events.size(), kMessages);
  for (unsigned i = 0; i < kMessages; ++i) {
    EXPECT_EQ(b.host.events[i].addr, place(i));
    EXPECT_EQ(std::memcmp(&b.host.memory[place(i)], buf + i * kLength, kLength), 0) << i;
  }
  EXPECT_EQ(b.dma.bytes_written(), std::uint64_t{kMessages} * kLength);
}

class DmaMessages : public DmaTest {
 protected:
  static constexpr unsigned kMessages = 8;
  const WriteOwner qp{WriteOwner::kQp, 0, 7}, cq{WriteOwner::kCq, 0, 9};
  static std::uint64_t place(unsigned i) { return 0x1000 + 0x100 * i; }
  void post() {
    PacketRef run = PacketPool::make();
    run->of_messages = true;
    run->packets = kMessages;
    run->unit = 64;
    run->payload_len = kMessages * 64;
    std::memset(run->data(), 7, run->payload_len);
    for (unsigned i = 0; i < kMessages; ++i) {
      run->at[i] = sim_now();
      run->message[i] = {place(i), 0};
    }
    b.dma.post_messages(run, qp, 0);
    b.dma.post_write(sim_now(), 0x8000, buf, 64, cq, false, Space::kHost, qp);
  }
};

// Whichever of them it is that the host takes long for.
TEST_F(DmaMessages, WhatIsBehindThemWaitsForTheHostsOwnTime) {
  constexpr Time kLong = from_ns(5000);
  for (unsigned slow = 0; slow < kMessages; ++slow) {
    b.host.events.clear();
    b.host.on_write = [&](std::uint64_t addr) { b.host.slow_down(addr == place(slow) ? kLong : 0); };
    post();
    b.run_ns(10'000);
    ASSERT_EQ(b.host.events.size(), kMessages + 1);
    EXPECT_GE(b.host.events.back().at, b.host.events[slow].at + kLong) << slow;
  }
}

TEST_F(DmaMessages, AResetFromInsideOneEndsThem) {
  b.host.on_write = [&](std::uint64_t addr) {
    if (addr == place(2)) b.dma.reset(0);
  };
  post();
  b.run_ns(10'000);
  EXPECT_EQ(b.host.events.size(), 3u);
  b.dma.set_enabled(0, true);
}

TEST_F(DmaTest, ALateWriteHoldsUpItsOwnQueuesAndNoOthers) {
  const WriteOwner a{WriteOwner::kQp, 0, 1}, c{WriteOwner::kQp, 0, 2}, cq{WriteOwner::kCq, 0, 9};
  const Time t = sim_now(), late = t + from_ns(500);
  const Time first = b.dma.post_write(late, 0x100, buf, 8, a, true);  // its address was not known
  const Time other = b.dma.post_write(t, 0x200, buf, 8, c, true);
  const Time others_cqe = b.dma.post_write(t, 0x280, buf, 8, {WriteOwner::kCq, 0, 8}, false, Space::kHost, c);
  const Time same = b.dma.post_write(t, 0x300, buf, 8, a, true);
  const Time cqe = b.dma.post_write(t, 0x400, buf, 8, cq, false, Space::kHost, a);
  const Time eqe = b.dma.post_write(t, 0x500, buf, 8, {WriteOwner::kEq, 0, 3}, true, Space::kHost, cq);
  const Time irq = b.dma.post_msix(t, 0, 3, {WriteOwner::kEq, 0, 3});
  const Time all = b.dma.post_write(t, 0x600, buf, 8, {WriteOwner::kFirmware, 0, 0});
  EXPECT_LT(other, late);
  EXPECT_LT(others_cqe, late);
  EXPECT_GE(others_cqe, other);
  EXPECT_GE(first, late);
  for (const Time behind : {same, cqe, eqe, irq, all}) EXPECT_GE(behind, first);
  b.run_ns(5000);
  std::vector<std::uint64_t> order;
  for (const auto& e : b.host.events) order.push_back(e.msix ? 1000000 + e.addr : e.addr);
  EXPECT_THAT(order, ::testing::ElementsAre(0x200, 0x280, 0x100, 0x300, 0x400, 0x500, 1000003, 0x600));
  for (const auto& e : b.host.events) {
    if (e.addr == 0x280) {
      EXPECT_EQ(e.at, others_cqe);
    }
  }
}

TEST_F(DmaTest, ReceptionStallsWhenThePostedWritesFillTheirBuffer) {
  const Time t = sim_now();
  EXPECT_LE(b.dma.stalled_until(), t);
  PacketRef p = PacketPool::make();
  const unsigned n = b.profile.pcie.write_buffer / 4096 + 4;
  for (unsigned i = 0; i < n; ++i) b.dma.post_write(t, 4096 * i, p, 0, 4096, {WriteOwner::kQp, 0, 1});
  const double more = 4096 * 4 + n * 16 * 24;
  EXPECT_NEAR(b.dma.stalled_until() - t, wire(more), wire(100));
}

TEST_F(DmaTest, StoresOfTheCpuShareTheLinkWithTheReads) {
  const Time t = sim_now() + from_ns(1000);
  EXPECT_EQ(b.dma.store(t, 64), t);  // an idle link's time is in the latency of the store
  EXPECT_NEAR(b.dma.store(t, 64) - t, wire(88), kRounding);
  Time last = 0;
  for (int i = 0; i < 100; ++i) last = b.dma.store(t, 64);
  EXPECT_NEAR(last - t, wire(101 * 88), kRounding * 70);
}

TEST_F(DmaTest, ContextsAreReadLikeAllElse) {
  const Time t = sim_now();
  EXPECT_NEAR(b.dma.context_read(t, 64) - t, b.profile.pcie.read_latency + wire(24), kRounding);
  EXPECT_EQ(b.host.reads, 0u);
}

TEST_F(DmaTest, AGroupBecomesVisibleTogetherInOneTurn) {
  const Time t = sim_now();
  Time first = 0, last = 0;
  for (int i = 0; i < 4; ++i) {
    last = b.dma.post_write(t + from_ns(100 * i), 0x100u + 16 * i, buf, 16, {}, i < 3);
    if (i == 0) first = last;
  }
  EXPECT_GT(last, first);
  const std::uint64_t before = simulation().clock.turns;
  b.run(last - t);
  EXPECT_EQ(simulation().clock.turns - before, 1u);
  ASSERT_EQ(b.host.events.size(), 4u);
  for (const auto& e : b.host.events) EXPECT_EQ(e.at, last);
}

TEST_F(DmaTest, OnlyABurstIsWrittenAheadOfItsTime) {
  Dma& dma = b.dma_few_tags;
  const Time t = sim_now();
  const Time first = dma.post_write(t, 0x100, buf, 16, {});
  const Time second = dma.post_write(t + from_ns(100), 0x200, buf, 16, {});
  b.run(second - t);
  ASSERT_EQ(b.host.events.size(), 2u);
  EXPECT_EQ(b.host.events[0].at, first);
  EXPECT_EQ(b.host.events[1].at, second);
  b.host.events.clear();
  const std::uint64_t before = simulation().clock.turns;
  for (int i = 0; i < 8; ++i) dma.post_write(sim_now() + from_ns(20 * i), 0x300u + 16 * i, buf, 16, {});
  b.run_ns(10000);
  EXPECT_EQ(b.host.events.size(), 8u);
  EXPECT_EQ(simulation().clock.turns - before, 1u);
}

TEST_F(DmaTest, AGroupThatNothingClosesIsWrittenInTheEnd) {
  const Time t = sim_now();
  const Time due = b.dma.post_write(t, 0x100, buf, 16, {}, true);
  b.run(due - t + Dma::kGroupLimit - 1);
  EXPECT_TRUE(b.host.events.empty());
  b.run(1);
  EXPECT_EQ(b.host.events.size(), 1u);
}

TEST_F(DmaTest, LargeWritesArriveWhole) {
  for (std::size_t i = 0; i < sizeof buf; ++i) buf[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  b.dma.post_write(sim_now(), 0x333, buf, 20000, {});
  b.run_ns(100000);
  EXPECT_EQ(std::memcmp(&b.host.memory[0x333], buf, 20000), 0);
}

TEST_F(DmaTest, APacketsBytesStayWithThePacketUntilWritten) {
  PacketRef p = PacketPool::make();
  for (unsigned i = 0; i < 1000; ++i) p->data()[i] = static_cast<std::uint8_t>(i);
  b.dma.post_write(sim_now(), 0x500, p, 100, 500, {});
  p = PacketRef();
  PacketRef other = PacketPool::make();
  std::memset(other->data(), 0xee, kMaxPayload);
  b.run_ns(10000);
  EXPECT_EQ(at(0x500), 100);
  EXPECT_EQ(at(0x500 + 499), static_cast<std::uint8_t>(599));
}

TEST_F(DmaTest, ManyWritesGrowTheQueue) {
  for (std::uint32_t i = 0; i < 1000; ++i) b.dma.post_write(sim_now(), 4 * i, &i, 4, {}, i % 3 != 0);
  b.run_ns(100000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    std::uint32_t v;
    std::memcpy(&v, &b.host.memory[4 * i], 4);
    ASSERT_EQ(v, i);
  }
}

TEST_F(DmaTest, FlushWritesNow) {
  buf[0] = 9;
  b.dma.post_write(sim_now(), 0x40, buf, 1, {}, true);
  b.dma.post_msix(sim_now(), 0, 5);
  b.dma.flush(0);
  EXPECT_EQ(at(0x40), 9);
  EXPECT_EQ(b.host.events.size(), 2u);
  b.run_ns(10000);
  EXPECT_EQ(b.host.events.size(), 2u);
}

// A read sees the payload before it, and makes nothing that reports payload come sooner.
TEST_F(DmaTest, AReadPushesPayloadAlone) {
  const WriteOwner qp{WriteOwner::kQp, 0, 5}, cq{WriteOwner::kCq, 0, 6};
  buf[0] = 9;
  b.dma.post_write(sim_now(), 0x40, buf, 1, qp);
  b.dma.post_write(sim_now(), 0x80, buf, 1, cq);
  b.dma.post_msix(sim_now(), 0, 5);
  b.dma.post_write(sim_now(), 0x41, buf, 1, qp);
  std::uint8_t seen[2] = {};
  EXPECT_TRUE(b.dma.read(sim_now(), 0x40, seen, 2, Space::kHost, WriteOwner(0)).ok);
  EXPECT_EQ(seen[0], 0);
  EXPECT_TRUE(b.dma.read_flush(sim_now(), 0x40, seen, 2, Space::kHost, WriteOwner(0)).ok);
  EXPECT_EQ(seen[0], 9);
  EXPECT_EQ(seen[1], 9);
  EXPECT_EQ(at(0x80), 0);
  ASSERT_EQ(b.host.events.size(), 2u);
  b.run_ns(10000);
  EXPECT_EQ(at(0x80), 9);
  ASSERT_EQ(b.host.events.size(), 4u);
  EXPECT_TRUE(b.host.events[3].msix);
}

TEST_F(DmaTest, ARefusedReadSaysSo) {
  EXPECT_FALSE(b.dma.read(sim_now(), FakeHost::kSize - 4, buf, 8, Space::kHost, WriteOwner(0)).ok);
  EXPECT_FALSE(b.dma.read(sim_now(), ~0ULL, buf, 8, Space::kHost, WriteOwner(0)).ok);
  EXPECT_EQ(b.dma.errors(), 2u);
}

TEST_F(DmaTest, ARefusedWriteIsToldToItsOwner) {
  b.dma.post_write(sim_now(), FakeHost::kSize, buf, 8, {WriteOwner::kCq, 0, 12});
  b.dma.post_write(sim_now(), FakeHost::kSize, buf, 8, {});
  b.run_ns(10000);
  ASSERT_EQ(b.write_errors.size(), 1u);
  EXPECT_EQ(b.write_errors[0].second.kind, WriteOwner::kCq);
  EXPECT_EQ(b.write_errors[0].second.number, 12u);
  EXPECT_EQ(b.dma.errors(), 2u);
}

TEST_F(DmaTest, SwitchedOffTheHostIsNotAsked) {
  b.dma.set_enabled(0, false);
  EXPECT_FALSE(b.dma.read(sim_now(), 0, buf, 8, Space::kHost, WriteOwner(0)).ok);
  b.dma.post_write(sim_now(), 0, buf, 8, {WriteOwner::kQp, 0, 1});
  b.dma.post_msix(sim_now(), 0, 1);
  b.run_ns(10000);
  EXPECT_EQ(b.host.reads, 0u);
  EXPECT_TRUE(b.host.events.empty());
  EXPECT_EQ(b.dma.errors(), 2u);
}

TEST_F(DmaTest, ResetForgetsWhatIsQueued) {
  b.dma.post_write(sim_now(), 0, buf, 8, {});
  b.dma.post_msix(sim_now(), 0, 1);
  b.dma.reset();
  b.run_ns(10000);
  EXPECT_TRUE(b.host.events.empty());
}

}  // namespace
}  // namespace hcasim::test
