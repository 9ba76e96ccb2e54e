// SPDX-License-Identifier: BSD-3-Clause
// Random traffic of many QPs against a plain model of memory: after each batch every byte is where it
// belongs.
#include <cstdlib>
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

// HCASIM_SOAK_SEED moves all seeds, to look for what no run before has met.
std::uint64_t seed_base() {
  const char* base = std::getenv("HCASIM_SOAK_SEED");
  return base ? std::strtoull(base, nullptr, 0) : 0;
}

class Soak : public DeviceTest, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(Soak, MemoryAgreesWithTheReference) {
  constexpr std::size_t kQps = 6, kArea = 128 << 10;
  const std::uint64_t seed = seed_base() + GetParam();
  std::mt19937_64 rnd(seed);
  PairOptions o;
  o.bytes = kQps * kArea;
  o.log_cq = 12;
  o.scattered = rnd() % 2;
  Pair p(dev(), o);
  const std::string faults[] = {"drop=0", "drop=0.01,duplicate=0.01,reorder=0.01",
                                "reorder=0.1,duplicate=0.1", "drop=0.04,corrupt=0.02"};
  ASSERT_EQ(fn().inject(faults[rnd() % 4] + ",seed=" + std::to_string(seed)), "");
  std::vector<std::unique_ptr<Qp>> as, bs;
  for (std::size_t i = 0; i < kQps; ++i) {
    QpAttr attr;
    const unsigned mtus[] = {256, 512, 1024, 2048, 4096};
    attr.mtu = mtus[rnd() % 5];
    attr.send_psn = rnd() & 0xffffff;
    attr.recv_psn = rnd() & 0xffffff;
    attr.ack_timeout = 8;
    attr.log_outstanding_reads = rnd() % 5;
    QpOptions q;
    q.log_sq = 8;
    as.push_back(std::make_unique<Qp>(dev(), p.pd, p.acq, p.acq, q));
    bs.push_back(std::make_unique<Qp>(dev(), p.pd, p.bcq, p.bcq, q));
    connect_pair(*as.back(), *bs.back(), attr);
  }
  fill_random(p.amem.data(), p.amem.size(), seed);
  fill_random(p.bmem.data(), p.bmem.size(), seed + 1);
  std::vector<std::uint8_t> ra(p.amem.data(), p.amem.data() + p.amem.size());
  std::vector<std::uint8_t> rb(p.bmem.data(), p.bmem.data() + p.bmem.size());
  for (int batch = 0; batch < 25; ++batch) {
    std::size_t sends = 0, recvs = 0;
    for (std::size_t q = 0; q < kQps; ++q) {
      const int n = 1 + static_cast<int>(rnd() % 16);
      for (int i = 0; i < n; ++i) {
        // Within one batch and QP each operation has its own slice, so that reads and writes may overlap in
        // time.
        const std::size_t slice = kArea / 16, base = q * kArea + static_cast<std::size_t>(i) * slice;
        const auto len = static_cast<std::uint32_t>(1 + rnd() % (rnd() % 4 ? 600 : slice - 64));
        const std::size_t la = base + rnd() % (slice - len), lb = base + rnd() % (slice - len);
        SendWr w;
        w.raddr = p.bmr.start() + lb;
        w.rkey = p.bmr.key();
        w.sges = {p.asge(la, len)};
        if (len > 3 && rnd() % 2) {
          const auto cut = static_cast<std::uint32_t>(1 + rnd() % (len - 1));
          w.sges = {p.asge(la, cut), p.asge(la + cut, len - cut)};
        }
        switch (rnd() % 5) {
          case 0:
            w.op = WqeOp::kRdmaRead;
            std::memcpy(ra.data() + la, rb.data() + lb, len);
            break;
          case 1: {
            w.op = WqeOp::kAtomicFa;
            const std::size_t at = base + rnd() % (slice / 8 - 1) * 8;
            w.raddr = p.bmr.start() + at;
            w.sges = {p.asge(la, 8)};
            if (la + 8 > base + slice) w.sges[0] = p.asge(base, 8);
            const std::size_t to = w.sges[0].addr - p.amr.start();
            w.swap_add = rnd();
            std::uint64_t v;
            std::memcpy(&v, rb.data() + at, 8);
            std::memcpy(ra.data() + to, &v, 8);
            v += w.swap_add;
            std::memcpy(rb.data() + at, &v, 8);
            break;
          }
          case 2:
            bs[q]->post_recv({p.bsge(lb, len)});
            ++recvs;
            w.op = WqeOp::kSend;
            std::memcpy(rb.data() + lb, ra.data() + la, len);
            break;
          default:
            w.op = WqeOp::kRdmaWrite;
            if (len <= 200 && rnd() % 2) {
              w.sges.clear();
              w.inline_data.assign(p.amem.data() + la, p.amem.data() + la + len);
            }
            std::memcpy(rb.data() + lb, ra.data() + la, len);
        }
        w.signaled = i + 1 == n || rnd() % 2;
        sends += w.signaled;
        as[q]->post(w, rnd() % 3 == 0);
      }
      as[q]->ring_doorbell();
    }
    const auto s = p.acq.wait(sends, 100'000'000'000), r = p.bcq.wait(recvs);
    ASSERT_EQ(s.size(), sends);
    ASSERT_EQ(r.size(), recvs);
    for (const auto& c : s) ASSERT_FALSE(c.error()) << c.text();
    for (const auto& c : r) ASSERT_FALSE(c.error()) << c.text();
    ASSERT_EQ(std::memcmp(ra.data(), p.amem.data(), ra.size()), 0) << "batch " << batch;
    ASSERT_EQ(std::memcmp(rb.data(), p.bmem.data(), rb.size()), 0) << "batch " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Seed, Soak, ::testing::Range(std::uint64_t{1}, std::uint64_t{13}));

}  // namespace
}  // namespace hcasim::bare
