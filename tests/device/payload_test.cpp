// SPDX-License-Identifier: BSD-3-Clause
// Payload that is copied once, from where it lies to where it goes: right whatever becomes of it meanwhile.
// Three HCAs: one with a cable to itself, two joined by a long cable, the far one at a host that takes writes
// late.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "driver/bare/qp.h"
#include "rule_check.h"

namespace hcasim::bare {
namespace {

constexpr std::size_t kBytes = 512 << 10;
constexpr std::int64_t kCable = 100'000, kLateWrite = 1'000'000;  // ns
constexpr std::size_t kLoop = 0, kNear = 1, kFar = 2;             // functions

Machine& machine() {
  static Machine* made = [] {
    const std::string slow =
        ::testing::TempDir() + "hcasim-slow-host-" + std::to_string(::getpid()) + ".toml";
    std::ofstream(slow) << "[pcie]\nwrite_latency_ns = " << kLateWrite << "\n";
    const std::string cable = ",wire_latency_ns=" + std::to_string(kCable);
    auto* m = new Machine(std::size_t{128} << 20);  // stays, like the SystemC kernel
    m->add_hca("link=ib,name=loop");
    m->add_hca("link=ib,name=near" + cable);
    m->add_hca("link=ib,name=far,lid=2,cable=near,profile=" + slow + cable);
    std::filesystem::remove(slow);
    m->start();
    return m;
  }();
  return *made;
}

struct End {
  explicit End(Device& device)
      : dev(device),
        pd(device),
        cq(device),
        qp(device, pd, cq, cq),
        mem(device.memory().allocate(kBytes)),
        mr(std::make_unique<Mr>(device, Mr::of(pd, mem))) {}
  Sge sge(std::size_t off, std::uint32_t len) const { return {mr->start() + off, mr->key(), len}; }

  Device& dev;
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer mem;
  std::unique_ptr<Mr> mr;
};

std::vector<std::uint8_t> noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> out(bytes);
  for (auto& b : out) b = static_cast<std::uint8_t>(random());
  return out;
}

class PayloadBase : public ::testing::Test {
 protected:
  void set_up(std::size_t from, std::size_t to) {
    for (std::size_t i = 0; i < machine().functions(); ++i) {
      Function& f = machine().function(i);
      f.reset();
      f.set_dma_map(true);
      ASSERT_EQ(f.inject("none"), "");
    }
    DeviceOptions o;
    o.wait_active = false;
    devices_.push_back(std::make_unique<Device>(machine().function(from), o));
    if (to != from) devices_.push_back(std::make_unique<Device>(machine().function(to), o));
    for (auto& d : devices_) d->probe();
    ASSERT_TRUE(machine().run_until(
        [&] {
          for (auto& d : devices_)
            if (d->port_state() != 4) return false;
          return true;
        },
        10'000'000'000));
    join();
  }
  void join(QpAttr attr = {}) {
    b_.reset();
    a_.reset();
    a_ = std::make_unique<End>(*devices_.front());
    b_ = std::make_unique<End>(*devices_.back());
    QpAttr there = attr, back = attr;
    there.remote_qpn = b_->qp.qpn();
    back.remote_qpn = a_->qp.qpn();
    if (devices_.size() == 2) {
      there.dlid = devices_[1]->lid();
      back.dlid = devices_[0]->lid();
    }
    a_->qp.connect(there);
    b_->qp.connect(back);
    data_ = noise(kBytes, 1);
    std::memcpy(a_->mem.data(), data_.data(), kBytes);
  }
  void TearDown() override {
    b_.reset();
    a_.reset();
    for (auto& d : devices_) {
      EXPECT_EQ(d->function().inject("none"), "");
      if (d->up()) {
        EXPECT_NO_THROW(d->teardown());
      }
    }
    devices_.clear();
    EXPECT_EQ(machine().memory().stray_reads(), 0u);
  }

  Function& fn() { return devices_.front()->function(); }
  SendWr wr(WqeOp op, std::size_t from, std::size_t to, std::uint32_t len) const {
    SendWr w;
    w.op = op;
    w.sges = {a_->sge(from, len)};
    w.raddr = b_->mr->start() + to;
    w.rkey = b_->mr->key();
    return w;
  }
  // Whether b holds at `to` what a held at `from` at first.
  ::testing::AssertionResult arrived(std::size_t from, std::size_t to, std::size_t len) const {
    for (std::size_t i = 0; i < len; ++i)
      if (b_->mem.data()[to + i] != data_[from + i])
        return ::testing::AssertionFailure() << "byte " << i << " of " << len;
    return ::testing::AssertionSuccess();
  }
  // Each byte of b is what a held at first, or has not been written (b was filled with `old`): whole bytes,
  // so random data under a random mask cannot pass by chance.
  ::testing::AssertionResult arrived_or_not(const std::vector<std::uint8_t>& old) const {
    for (std::size_t i = 0; i < kBytes; ++i) {
      const std::uint8_t got = b_->mem.data()[i];
      if (got != data_[i] && got != old[i]) return ::testing::AssertionFailure() << "byte " << i;
    }
    return ::testing::AssertionSuccess();
  }
  void good(Cq& cq, std::size_t n = 1) {
    const auto got = cq.wait(n);
    ASSERT_EQ(got.size(), n);
    for (const auto& c : got) EXPECT_FALSE(c.error()) << c.text();
  }
  void scribble() { a_->mem.fill(0xee); }

  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<End> a_, b_;
  std::vector<std::uint8_t> data_;  // what a's memory held at first
};

class Payload : public PayloadBase, public ::testing::WithParamInterface<bool> {  // over the cable?
 protected:
  void SetUp() override { set_up(GetParam() ? kNear : kLoop, GetParam() ? kFar : kLoop); }
};

TEST_P(Payload, EverySizeAndPlace) {
  const std::uint64_t maps = fn().dma_maps();
  for (const std::uint32_t len :
       {1u, 128u, 129u, 511u, 512u, 513u, 1000u, 4095u, 4096u, 4097u, 8192u, 12301u, 65536u, 200001u}) {
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}, std::size_t{4095}}) {
      for (const WqeOp op : {WqeOp::kRdmaWrite, WqeOp::kSend, WqeOp::kRdmaWriteImm}) {
        const std::size_t to = 4096 + (from * 7 + len) % 61;
        b_->mem.fill(0x11);
        const bool received = op != WqeOp::kRdmaWrite;
        if (received) b_->qp.post_recv({b_->sge(to, len)});
        a_->qp.post(wr(op, from, to, len));
        good(a_->cq);
        if (received) good(b_->cq);
        machine().advance(2 * kLateWrite);
        ASSERT_TRUE(arrived(from, to, len)) << "at " << from << ", operation " << static_cast<int>(op);
        ASSERT_EQ(b_->mem.data()[to - 1], 0x11);
        ASSERT_EQ(b_->mem.data()[to + len], 0x11);
      }
    }
  }
  EXPECT_GT(fn().dma_maps(), maps + 100) << "payload was not read in place";
}

TEST_P(Payload, SeveralPieces) {
  SendWr w = wr(WqeOp::kRdmaWrite, 0, 0, 0);
  std::size_t total = 0;
  w.sges.clear();
  for (const std::uint32_t len : {5000u, 1u, 4096u, 9000u}) {
    w.sges.push_back(a_->sge(total, len));
    total += len;
  }
  a_->qp.post(w);
  good(a_->cq);
  machine().advance(2 * kLateWrite);
  EXPECT_TRUE(arrived(0, 0, total));
}

// The sender's memory is its program's again with the completion, though the receiver's host may not have
// written the last bytes yet.
TEST_P(Payload, MemoryIsFreeWithTheCompletion) {
  for (const WqeOp op : {WqeOp::kRdmaWrite, WqeOp::kSend}) {
    join();
    if (op == WqeOp::kSend) b_->qp.post_recv({b_->sge(0, kBytes)});
    a_->qp.post(wr(op, 0, 0, kBytes));
    ASSERT_TRUE(machine().run_until([&] { return a_->cq.ready(); }));
    scribble();
    machine().advance(2 * kLateWrite);
    good(a_->cq);
    EXPECT_TRUE(arrived(0, 0, kBytes));
  }
}

TEST_P(Payload, EachOfManyCompletions) {
  constexpr std::uint32_t kOne = 16384;
  for (unsigned i = 0; i < kBytes / kOne; ++i)
    a_->qp.post(wr(WqeOp::kRdmaWrite, i * kOne, i * kOne, kOne), false);
  a_->qp.ring_doorbell();
  for (unsigned i = 0; i < kBytes / kOne; ++i) {
    good(a_->cq);
    std::memset(a_->mem.data() + i * kOne, 0xee, kOne);
  }
  machine().advance(2 * kLateWrite);
  EXPECT_TRUE(arrived(0, 0, kBytes));
}

TEST_P(Payload, LossOfAllKinds) {
  QpAttr attr;
  attr.ack_timeout = 10;
  attr.mtu = 2048;
  for (const char* fault : {"drop=0.05", "duplicate=0.2", "reorder=0.1", "corrupt=0.1", "garble=0.02"}) {
    join(attr);
    ASSERT_EQ(fn().inject(fault), "");
    constexpr std::uint32_t kOne = 65536;
    for (unsigned i = 0; i < kBytes / kOne; ++i)
      a_->qp.post(wr(WqeOp::kRdmaWrite, i * kOne, i * kOne, kOne), false);
    a_->qp.ring_doorbell();
    unsigned done = 0;
    ASSERT_TRUE(machine().run_until(
        [&] {
          while (const auto c = a_->cq.poll()) {
            if (!c->error()) std::memset(a_->mem.data() + done * kOne, 0xee, kOne);
            ++done;
          }
          return done == kBytes / kOne;
        },
        60'000'000'000))
        << fault;
    ASSERT_EQ(fn().inject("none"), "");
    machine().advance(2 * kLateWrite);
    // What garbling changes may be an address, or the data: nothing tells the receiver.
    if (std::string(fault).rfind("garble", 0) == 0) continue;
    EXPECT_TRUE(arrived(0, 0, kBytes)) << fault;
  }
}

// What is under way has been read: neither the key nor the memory is needed for it any more.
TEST_P(Payload, KeyDestroyedUnderWay) {
  a_->qp.post(wr(WqeOp::kRdmaWrite, 0, 0, 65536));
  machine().advance(5000);  // parts of it are out, none has come to the far end
  const auto old = noise(kBytes, 2);
  std::memcpy(b_->mem.data() + 65536, old.data() + 65536, kBytes - 65536);
  EXPECT_TRUE(a_->mr->destroy().ok());
  scribble();
  const auto c = a_->cq.wait_one();
  machine().advance(2 * kLateWrite);
  if (!c.error()) {
    EXPECT_TRUE(arrived(0, 0, 65536));
  }
  EXPECT_EQ(std::memcmp(b_->mem.data() + 65536, old.data() + 65536, kBytes - 65536), 0);
}

class PayloadCut : public Payload {
 protected:
  // Ends what is under way in the middle, and gives the memory another content.
  void cut(const std::function<void()>& end) {
    const auto old = noise(kBytes, 3);
    for (const std::int64_t after : {1500, 3000, 8000, 20'000, 120'000}) {
      join();
      std::memcpy(b_->mem.data(), old.data(), kBytes);
      a_->qp.post(wr(WqeOp::kRdmaWrite, 0, 0, kBytes));
      machine().advance(after);
      end();
      scribble();
      machine().advance(3 * kLateWrite);
      ASSERT_TRUE(arrived_or_not(old)) << after << " ns";
    }
  }
};

TEST_P(PayloadCut, QueueToError) {
  cut([&] { EXPECT_TRUE(a_->qp.to_error().ok()); });
}

TEST_P(PayloadCut, QueueReset) {
  cut([&] { EXPECT_TRUE(a_->qp.to_reset().ok()); });
}

TEST_P(PayloadCut, QueueDestroyed) {
  cut([&] { EXPECT_TRUE(a_->qp.destroy().ok()); });
}

TEST_P(PayloadCut, KeyGone) {
  breaks({"mr-key"});
  cut([&] { EXPECT_TRUE(a_->mr->destroy().ok()); });
}

// The host takes the memory away: what the HCA reads from then on is not the message's any more, so its
// content stays, but where it lies must not be read.
TEST_P(Payload, MemoryMoves) {
  a_->qp.post(wr(WqeOp::kRdmaWrite, 0, 0, 4096));
  ASSERT_TRUE(machine().run_until([&] { return fn().counter("tx_packets") != 0; }, 1'000'000));
  fn().memory_changed();
  scribble();
  good(a_->cq);
  machine().advance(2 * kLateWrite);
  EXPECT_TRUE(arrived(0, 0, 4096));
}

TEST_P(Payload, FunctionResetUnderWay) {
  const auto old = noise(kBytes, 4);
  for (const std::int64_t after : {2000, 10'000}) {
    std::memcpy(a_->mem.data(), data_.data(), kBytes);
    std::memcpy(b_->mem.data(), old.data(), kBytes);
    a_->qp.post(wr(WqeOp::kRdmaWrite, 0, 0, kBytes));
    machine().advance(after);
    devices_.front()->function_reset();
    scribble();
    machine().advance(3 * kLateWrite);
    EXPECT_TRUE(arrived_or_not(old));
    TearDown();
    SetUp();
  }
}

// What is complete when it has left, or answers another's request, is read when the card reads it.
TEST_P(Payload, OthersAreCopied) {
  a_->qp.post(wr(WqeOp::kRdmaRead, 0, 0, 65536));
  std::memcpy(b_->mem.data(), data_.data(), kBytes);
  const std::uint64_t maps = fn().dma_maps() + b_->dev.function().dma_maps();
  good(a_->cq);
  EXPECT_EQ(std::memcmp(a_->mem.data(), data_.data(), 65536), 0);
  SendWr w = wr(WqeOp::kRdmaWrite, 0, 0, 65536);
  w.fence = prm::kFenceFence;  // sees what a READ before it brings
  a_->qp.post(w);
  good(a_->cq);
  EXPECT_EQ(fn().dma_maps() + b_->dev.function().dma_maps(), maps);
}

// Nothing but the host's own time depends on it: exactly, of packets that go one by one; packets that go in
// runs give way to others' at other times, but take as long.
TEST_P(Payload, TimesAreTheSame) {
  struct Result {
    std::vector<std::int64_t> times;
    std::uint64_t read, written, packets, bytes, runs;
  };
  const auto run = [&](bool map, std::uint32_t step) {
    fn().set_dma_map(map);
    join();
    // A place on the clock that is the same for both runs, relative to all that rounds or counts.
    Result r{};
    const std::uint64_t read = fn().counter("dma_read_bytes"), written = fn().counter("dma_write_bytes");
    const std::uint64_t packets = fn().counter("tx_packets"), bytes = fn().counter("tx_bytes"),
                        runs = fn().counter("tx_runs");
    const std::int64_t start = machine().now();
    for (int i = 0; i < 20; ++i)
      a_->qp.post(
          wr(WqeOp::kRdmaWrite, static_cast<std::size_t>(i), 0, static_cast<std::uint32_t>(i) * step + 1),
          false);
    a_->qp.ring_doorbell();
    machine().run_until([&] {
      while (a_->cq.poll()) r.times.push_back(machine().now() - start);
      return r.times.size() == 20;
    });
    r.read = fn().counter("dma_read_bytes") - read;
    r.written = fn().counter("dma_write_bytes") - written;
    r.packets = fn().counter("tx_packets") - packets;
    r.bytes = fn().counter("tx_bytes") - bytes;
    r.runs = fn().counter("tx_runs") - runs;
    return r;
  };
  for (const std::uint32_t step : {200u, 5000u}) {
    run(true, step);  // caches
    const Result lent = run(true, step), copied = run(false, step);
    ASSERT_EQ(lent.times.size(), 20u);
    ASSERT_EQ(copied.times.size(), 20u);
    EXPECT_EQ(lent.read, copied.read) << step;
    EXPECT_EQ(lent.written, copied.written) << step;
    EXPECT_EQ(copied.runs, 0u);
    EXPECT_EQ(lent.runs != 0, step > 4096 / 20) << lent.runs;
    if (GetParam()) {  // what comes back are acknowledgements, as many as there is time for
      EXPECT_EQ(lent.packets, copied.packets);
      EXPECT_EQ(lent.bytes, copied.bytes);
    }
    if (step < 4096 / 20)
      EXPECT_EQ(lent.times, copied.times);
    else
      EXPECT_NEAR(static_cast<double>(lent.times.back()), static_cast<double>(copied.times.back()),
                  0.025 * static_cast<double>(copied.times.back()));
  }
}

// Source and destination lie over each other.
class PayloadLoop : public PayloadBase {
 protected:
  void SetUp() override { set_up(kLoop, kLoop); }
};

TEST_F(PayloadLoop, Overlapping) {
  const Mr same(b_->dev, Mr::of(b_->pd, a_->mem));
  for (const std::size_t to : {std::size_t{0}, std::size_t{1}, std::size_t{700}, std::size_t{4095}}) {
    std::memcpy(a_->mem.data(), data_.data(), kBytes);
    SendWr w = wr(WqeOp::kRdmaWrite, 600, 0, 4000);
    w.raddr = same.start() + to;
    w.rkey = same.key();
    a_->qp.post(w);
    good(a_->cq);
    EXPECT_EQ(std::memcmp(a_->mem.data() + to, data_.data() + 600, 4000), 0) << to;
  }
}

std::string where(const ::testing::TestParamInfo<bool>& info) { return info.param ? "Cable" : "Loopback"; }
INSTANTIATE_TEST_SUITE_P(, Payload, ::testing::Bool(), where);
INSTANTIATE_TEST_SUITE_P(, PayloadCut, ::testing::Bool(), where);

}  // namespace
}  // namespace hcasim::bare
