// SPDX-License-Identifier: BSD-3-Clause
// Seeded nonsense from the driver's side: commands, registers, doorbells, WQEs, doorbell records. The device
// may answer what it likes, but it answers, it lives, and a function level reset brings back a device that
// works.
#include <set>

#include "fuzz_fixture.h"

namespace hcasim::bare {
namespace {

std::uint64_t seed(std::uint64_t base) {
  const char* given = std::getenv("HCASIM_FUZZ_SEED");
  return base + (given ? std::strtoull(given, nullptr, 0) : 0);
}

// Opcodes that end the driver's own arrangements: run apart, or the rest of a round meets a device that is
// down.
const std::set<std::uint16_t> kEnding = {0x102, 0x103, 0x104, 0x105, 0x109, 0x10b, 0x302};

TEST_F(Fuzz, RandomCommandsAreAnswered) {
  std::mt19937_64 random(seed(1));
  dev().cmd().use_events(false);
  unsigned answered = 0;
  const unsigned n = rounds(20000);
  for (unsigned i = 0; i < n; ++i) {
    const std::uint16_t opcode = static_cast<std::uint16_t>(random() % 0xb10);
    if (kEnding.count(opcode)) continue;
    const std::size_t in_len = 16 + random() % 4 * 16 + (random() % 8 == 0 ? random() % 1200 : 0);
    const std::size_t out_len = 16 + (random() % 4 == 0 ? random() % 4200 : 0);
    Mailbox in(opcode, in_len, static_cast<std::uint16_t>(random() % 8 ? random() % 4 : random()));
    for (std::size_t at = 8; at < in_len; ++at)
      if (random() % 3 == 0) in[at] = static_cast<std::uint8_t>(random() % 2 ? random() % 8 : random());
    const CommandResult r = dev().cmd().exec(in, out_len);
    ASSERT_TRUE(r.done) << "opcode " << std::hex << opcode << " has no answer";
    ++answered;
  }
  EXPECT_GT(answered, n * 9 / 10);
  expect_recovers();
}

TEST_F(Fuzz, RandomEntriesAndChainsNeverHang) {
  std::mt19937_64 random(seed(2));
  dev().cmd().use_events(false);
  for (unsigned i = 0; i < rounds(5000); ++i) {
    Mailbox in(random() % 2 ? 0x100 : 0x500, 16 + random() % 3000);
    const auto tamper = [&random](CommandQueue::Raw& raw) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(raw.entry);
      for (unsigned k = 0; k < 4; ++k) bytes[1 + random() % 62] ^= static_cast<std::uint8_t>(random());
      for (auto* box : raw.in)
        if (random() % 2) reinterpret_cast<std::uint8_t*>(box)[0x200 + random() % 64] ^= 1u << random() % 8;
      for (auto* box : raw.out)
        if (random() % 4 == 0)
          reinterpret_cast<std::uint8_t*>(box)[0x200 + random() % 64] ^= 1u << random() % 8;
      if (random() % 4) raw.sign();  // past the first check
    };
    int slot = -1;
    slot = dev().cmd().submit(
        in, 16 + random() % 3000, [](const CommandResult&) {}, -1, tamper);
    machine().advance(200'000);
    dev().cmd().poll();
    dev().cmd().abandon(slot);
  }
  expect_recovers();
}

TEST_F(Fuzz, RandomRegisterAccesses) {
  std::mt19937_64 random(seed(3));
  for (unsigned i = 0; i < rounds(100000); ++i) {
    std::uint64_t offset = random() % (random() % 2 ? 0x10000 : HCA_BAR0_SIZE + 64);
    const std::size_t len = std::size_t{1} << random() % 4;
    if (offset >= 0x10 && offset < 0x20) continue;  // the queue's address: a new one is legal, and deafening
    if (offset >= 0x2000 && random() % 2)
      offset = (offset & ~0xfffULL) | (random() % 2 ? 0x20 : 0x40 + random() % 2 * 8);
    if (random() % 4 == 0) {
      (void)hca_mmio_read(fn().handle(), offset, static_cast<unsigned>(len));
      continue;
    }
    std::uint8_t bytes[8];
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 2 ? 0 : random());
    fn().write(offset, bytes, len);
    if (i % 64 == 0) machine().advance(1000);
  }
  expect_recovers();
}

TEST_F(Fuzz, GarbageInSendQueues) {
  std::mt19937_64 random(seed(4));
  unsigned errors = 0;
  for (unsigned i = 0; i < rounds(2000); ++i) {
    Pair pair(dev());
    pair.b.post_recv({pair.bsge(0, 4096)});
    for (unsigned k = 0; k < 1 + random() % 8; ++k) {
      std::vector<std::uint8_t> wqe(64 * (1 + random() % 4));
      for (auto& b : wqe) b = static_cast<std::uint8_t>(random() % 3 ? 0 : random());
      if (random() % 4) {  // a control segment that gets past the first checks
        static constexpr std::uint8_t kOps[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b,
                                                0x10, 0x11, 0x12, 0x25, 0x14};
        auto* ctrl = reinterpret_cast<prm::CtrlSeg*>(wqe.data());
        ctrl->set(static_cast<WqeOp>(kOps[random() % sizeof kOps]), pair.a.sq_producer(), pair.a.qpn(),
                  1 + static_cast<unsigned>(random() % (wqe.size() / 16)),
                  static_cast<unsigned>(random() % 4), random() % 2, 0, static_cast<unsigned>(random() % 8));
      }
      pair.a.post_raw(wqe, static_cast<unsigned>(wqe.size() / 64));
    }
    if (random() % 8 == 0) pair.a.set_dbr(1, static_cast<std::uint32_t>(random()));
    if (random() % 8 == 0) pair.b.set_dbr(0, static_cast<std::uint32_t>(random()));
    pair.a.ring_doorbell();
    machine().advance(300'000);
    errors += pair.a.state() == QpState::kErr;
  }
  EXPECT_GT(errors, 0u);
  expect_serves_on();
}

TEST_F(Fuzz, GarbageInReceiveQueues) {
  std::mt19937_64 random(seed(5));
  for (unsigned i = 0; i < rounds(1500); ++i) {
    Pair pair(dev());
    pair.b.post_recv({pair.bsge(0, 64)});
    for (unsigned at = 0; at < 64; ++at)
      pair.b.rq_wqe(0)[at] = static_cast<std::uint8_t>(random() % 2 ? 0 : random());
    pair.a.post(pair.wr(WqeOp::kSend, 0, static_cast<std::uint32_t>(random() % 8192)));
    machine().advance(300'000);
  }
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
