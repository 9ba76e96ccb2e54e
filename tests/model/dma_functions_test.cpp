// SPDX-License-Identifier: BSD-3-Clause
// Two functions of one DMA engine: what each has of its own, and that neither notices the other.
#include <gmock/gmock.h>
#include <cstring>

#include "bench.h"
#include "small_memory.h"

namespace hcasim::test {
namespace {

class DmaFunctionsTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    b.two.reset();
  }
  void TearDown() override {
    b.two.reset();
    BlockTest::TearDown();
  }
  static WriteOwner qp(FunctionId f, std::uint32_t qpn = 1) { return {WriteOwner::kQp, f, qpn}; }
  static WriteOwner cq(FunctionId f, std::uint32_t cqn = 9) { return {WriteOwner::kCq, f, cqn}; }
  static std::vector<std::uint64_t> order(const FakeHost& host) {
    std::vector<std::uint64_t> out;
    for (const auto& e : host.events) out.push_back(e.msix ? 1000000 + e.addr : e.addr);
    return out;
  }
  Dma& dma = b.two.dma;
  FakeHost &first = b.two.first, &second = b.two.second;
  std::uint8_t buf[8192] = {};
};

TEST_F(DmaFunctionsTest, EachReadsAndWritesItsOwnHost) {
  const Time t = sim_now();
  for (const FunctionId f : {0, 1}) {
    buf[0] = static_cast<std::uint8_t>(10 + f);
    dma.post_write(t, 0x100, buf, 8, qp(f));
    dma.post_write(t, 0x1000, buf, 5000, WriteOwner(f));
    dma.post_msix(t, f, 3u + f);
  }
  b.run_ns(10000);
  for (const FunctionId f : {0, 1}) {
    const FakeHost& host = f == 0 ? first : second;
    EXPECT_EQ(host.memory[0x100], 10 + f);
    EXPECT_EQ(host.memory[0x1000], 10 + f);
    EXPECT_THAT(order(host), ::testing::ElementsAre(0x100, 0x1000, 0x2000, 1000003 + f));
    EXPECT_TRUE(dma.read(sim_now(), 0x100, buf, 8, Space::kHost, qp(f)).ok);
    EXPECT_EQ(buf[0], 10 + f);
    EXPECT_TRUE(dma.peek(f, 0x1000, buf, 8));
    EXPECT_EQ(buf[0], 10 + f);
  }
}

TEST_F(DmaFunctionsTest, OneSwitchedOffLeavesTheOtherItsTimes) {
  const Time t = sim_now();
  const Time alone = dma.post_write(t, 0x100, buf, 8, qp(1));
  dma.reset();
  dma.set_enabled(1, true);
  EXPECT_FALSE(dma.enabled(0));
  EXPECT_FALSE(dma.read(t, 0, buf, 64, Space::kHost, qp(0)).ok);
  EXPECT_FALSE(dma.peek(0, 0, buf, 64));
  dma.post_write(t, 0x100, buf, 4096, qp(0));
  dma.post_msix(t, 0, 1);
  EXPECT_EQ(dma.errors(), 2u);
  EXPECT_EQ(dma.post_write(t, 0x100, buf, 8, qp(1)), alone);
  b.run(alone - t);
  EXPECT_TRUE(first.events.empty());
  EXPECT_EQ(first.reads, 0u);
  ASSERT_EQ(second.events.size(), 1u);
  EXPECT_EQ(second.events[0].at, alone);
  EXPECT_TRUE(dma.read(sim_now(), 0, buf, 8, Space::kHost, qp(1)).ok);
}

TEST_F(DmaFunctionsTest, ARefusedWriteIsToldToTheFunctionThatItIsOf) {
  b.tracer.open_memory();
  dma.post_write(sim_now(), FakeHost::kSize, buf, 8, cq(1, 12));
  b.run_ns(10000);
  const std::vector<traces::Record> records = b.tracer.drain();
  b.tracer.close();
  ASSERT_EQ(b.two.write_errors.size(), 1u);
  EXPECT_EQ(b.two.write_errors[0].second, cq(1, 12));
  unsigned errors = 0;
  for (const traces::Record& r : records) {
    if (r.p() != traces::Point::kDmaErr) continue;
    ++errors;
    EXPECT_EQ(r.function, 1u);
    EXPECT_EQ(r.obj, 12u);
  }
  EXPECT_EQ(errors, 1u);
}

TEST_F(DmaFunctionsTest, QueuesAreOrderedWithinAFunctionAlone) {
  const Time t = sim_now(), late = t + from_ns(3000);
  dma.post_write(late, 0x100, buf, 8, qp(0));  // its address was not known
  const Time same_number = dma.post_write(t, 0x200, buf, 8, qp(1));
  const Time others_command = dma.post_write(t, 0x300, buf, 8, {WriteOwner::kFirmware, 1, 0});
  const Time others_irq = dma.post_msix(t, 1, 7);
  const Time own_command = dma.post_write(t, 0x400, buf, 8, {WriteOwner::kFirmware, 0, 0});
  const Time own_irq = dma.post_msix(t, 0, 6);
  const Time asked = dma.post_write(t, 0x500, buf, 8, cq(1), false, Space::kHost, qp(0));
  for (const Time before : {same_number, others_command, others_irq}) EXPECT_LT(before, late);
  for (const Time behind : {own_command, own_irq, asked}) EXPECT_GE(behind, late);
  b.run_ns(10000);
  EXPECT_THAT(order(first), ::testing::ElementsAre(0x100, 0x400, 1000006));
  EXPECT_THAT(order(second), ::testing::ElementsAre(0x200, 0x300, 1000007, 0x500));
  EXPECT_EQ(second.events[0].at, same_number);
}

TEST_F(DmaFunctionsTest, AFlushPerformsOneFunctionsWrites) {
  const Time t = sim_now();
  Time due[6];
  for (unsigned i = 0; i < 6; ++i)
    due[i] = dma.post_write(t + from_ns(500 * i), 0x100u * (i + 1), buf, 8, qp(i % 2), i < 2);
  dma.flush(1);
  EXPECT_TRUE(first.events.empty());
  EXPECT_THAT(order(second), ::testing::ElementsAre(0x200, 0x400, 0x600));
  for (const auto& e : second.events) EXPECT_EQ(e.at, t);
  dma.post_write(t, 0x700, buf, 8, qp(1));
  EXPECT_TRUE(dma.read_flush(t, 0x700, buf, 8, Space::kHost, qp(1)).ok);
  EXPECT_EQ(second.events.size(), 4u);
  EXPECT_TRUE(first.events.empty());
  b.run_ns(10000);
  ASSERT_THAT(order(first), ::testing::ElementsAre(0x100, 0x300, 0x500));
  EXPECT_EQ(first.events[0].at, due[2]);  // the end of its group
  EXPECT_EQ(first.events[1].at, due[2]);
  EXPECT_EQ(first.events[2].at, due[4]);
  EXPECT_EQ(second.events.size(), 4u);
}

TEST_F(DmaFunctionsTest, AResetForgetsOneFunctionsWritesAndRefusals) {
  const Time t = sim_now();
  Time due[4];
  for (unsigned i = 0; i < 4; ++i)
    due[i] = dma.post_write(t + from_ns(500 * i), 0x100u * (i + 1), buf, 8, qp(i % 2));
  // Nothing is there: refused at once, and told from the engine's own process.
  for (const FunctionId f : {0, 1}) dma.post_write(t, 0, buf, 8, cq(f, 5), false, Space::kSwIcm);
  dma.reset(1);
  EXPECT_TRUE(dma.enabled(0));
  EXPECT_FALSE(dma.enabled(1));
  dma.set_enabled(1, true);
  const Time anew = dma.post_write(t + from_ns(700), 0x500, buf, 8, qp(1));
  b.run_ns(10000);
  ASSERT_THAT(order(first), ::testing::ElementsAre(0x100, 0x300));
  EXPECT_EQ(first.events[0].at, due[0]);
  EXPECT_EQ(first.events[1].at, due[2]);
  ASSERT_THAT(order(second), ::testing::ElementsAre(0x500));
  EXPECT_EQ(second.events[0].at, anew);
  ASSERT_EQ(b.two.write_errors.size(), 1u);
  EXPECT_EQ(b.two.write_errors[0].second, cq(0, 5));
}

TEST_F(DmaFunctionsTest, ASlowHostHoldsUpItsOwnFunctionAlone) {
  const Time slow = from_ns(5000), t = sim_now();
  first.slow_down(slow);
  const Time payload = dma.post_write(t, 0x100, buf, 8, qp(0));
  dma.post_write(t, 0x200, buf, 8, cq(0), false, Space::kHost, qp(0));
  const Time others = dma.post_write(t + from_ns(100), 0x300, buf, 8, qp(1));
  const Time others_cqe = dma.post_write(t + from_ns(200), 0x400, buf, 8, cq(1), false, Space::kHost, qp(1));
  b.run_ns(20000);
  ASSERT_THAT(order(first), ::testing::ElementsAre(0x100, 0x200));
  EXPECT_EQ(first.events[0].at, payload);
  EXPECT_EQ(first.events[1].at, payload + slow) << "not before the host has the payload";
  ASSERT_THAT(order(second), ::testing::ElementsAre(0x300, 0x400));
  EXPECT_EQ(second.events[0].at, others);
  EXPECT_EQ(second.events[1].at, others_cqe);
}

TEST_F(DmaFunctionsTest, AMemoryBesideTheHostIsOneFunctions) {
  static SmallMemory<64> memory;  // stays attached
  dma.attach(1, Space::kMemic, memory);
  EXPECT_FALSE(dma.read(sim_now(), 0, buf, 8, Space::kMemic, qp(0)).ok);
  EXPECT_TRUE(dma.read(sim_now(), 0, buf, 8, Space::kMemic, qp(1)).ok);
}

TEST_F(DmaFunctionsTest, AFaultOfOneFunctionStrikesNoOther) {
  FaultSpec fault;
  std::string err;
  ASSERT_TRUE(parse_fault({{"fault", "dma"}, {"direction", "read"}, {"function", "1"}, {"times", "0"}}, 0, 1,
                          fault, err))
      << err;
  b.two.injector.load({fault});
  b.tracer.open_memory();
  EXPECT_TRUE(dma.read(sim_now(), 0, buf, 8, Space::kHost, qp(0)).ok);
  EXPECT_FALSE(dma.read(sim_now(), 0, buf, 8, Space::kHost, qp(1)).ok);
  EXPECT_TRUE(dma.read(sim_now(), 0, buf, 8, Space::kHost, qp(0)).ok);
  const std::vector<traces::Record> records = b.tracer.drain();
  b.tracer.close();
  EXPECT_EQ(second.reads, 0u);
  unsigned injected = 0;
  for (const traces::Record& r : records) {
    if (r.p() != traces::Point::kFaultInjected) continue;
    ++injected;
    EXPECT_EQ(r.function, 1u);
  }
  EXPECT_EQ(injected, 1u);
}

TEST_F(DmaFunctionsTest, AFaultThatNamesNoFunctionStrikesAny) {
  FaultSpec fault;
  std::string err;
  ASSERT_TRUE(parse_fault({{"fault", "dma"}, {"direction", "read"}, {"times", "0"}}, 0, 1, fault, err))
      << err;
  b.two.injector.load({fault});
  for (const FunctionId f : {0, 1}) EXPECT_FALSE(dma.read(sim_now(), 0, buf, 8, Space::kHost, qp(f)).ok);
}

}  // namespace
}  // namespace hcasim::test
