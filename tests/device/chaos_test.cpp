// SPDX-License-Identifier: BSD-3-Clause
// A driver that does everything at once, in random order, half of it wrong: objects come and go under
// traffic, memory is given back the moment its key is destroyed. Nothing may be touched that is not lent, and
// the device serves on.
#include <cstdlib>
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

struct Region {
  Buffer memory;
  std::unique_ptr<Mr> mr;
};

struct Link {
  std::unique_ptr<Qp> a, b;
};

class Chaos : public DeviceTest, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    const char* base = std::getenv("HCASIM_SOAK_SEED");
    rnd_.seed(GetParam() + (base ? std::strtoull(base, nullptr, 0) : 0));
    pd_ = std::make_unique<Pd>(dev());
    CqOptions o;
    o.log_size = 12;
    for (auto& cq : cqs_) cq = std::make_unique<Cq>(dev(), o);
    canary_ = dev().memory().allocate(64 << 10);
    fill_random(canary_.data(), canary_.size(), 1);
  }
  void TearDown() override {
    std::vector<std::uint8_t> want(canary_.size());
    fill_random(want.data(), want.size(), 1);
    EXPECT_EQ(std::memcmp(want.data(), canary_.data(), want.size()), 0)
        << "memory that was never lent has changed";
    fn().inject("none");
    links_.clear();
    regions_.clear();
    for (auto& cq : cqs_) cq.reset();
    srq_.reset();
    canary_ = Buffer();
    if (dev().up()) expect_serves_on();
    pd_.reset();
    DeviceTest::TearDown();
  }
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(rnd_() % n); }
  bool chance(unsigned percent) { return rnd_() % 100 < percent; }

  void add_link() {
    if (links_.size() > 12) return;
    QpOptions o;
    o.log_sq = 4 + static_cast<unsigned>(pick(4));
    o.type = chance(75) ? QpType::kRc : QpType::kUc;
    if (!srq_) srq_ = std::make_unique<Srq>(dev(), *pd_);
    Cq& s = *cqs_[pick(3)];
    Cq& r = *cqs_[pick(3)];
    Link l{std::make_unique<Qp>(dev(), *pd_, s, r, o),
           std::make_unique<Qp>(dev(), *pd_, r, s, o, chance(30) ? srq_.get() : nullptr)};
    QpAttr attr;
    const unsigned mtus[] = {256, 1024, 4096};
    attr.mtu = mtus[pick(3)];
    attr.ack_timeout = 6;
    attr.retry_count = static_cast<unsigned>(pick(8));
    attr.rnr_retry = static_cast<unsigned>(pick(8));
    connect_pair(*l.a, *l.b, attr);
    links_.push_back(std::move(l));
  }
  void add_region() {
    if (regions_.size() > 12) return;
    auto made = std::make_unique<Region>();
    Region& r = *made;
    const std::size_t size = kPage << pick(6);
    const bool scattered = chance(40);
    r.memory = scattered ? dev().memory().allocate_scattered(size) : dev().memory().allocate(size);
    MkeySpec s =
        Mr::of(*pd_, r.memory, static_cast<unsigned>(rnd_() & kAllAccess) | (chance(80) ? kAllAccess : 0u),
               12, 0, 0, scattered ? 0x1000000000ULL + (pick(1000) << 12) : 0);
    s.umr_en = chance(50);
    r.mr = std::make_unique<Mr>(dev(), s);
    regions_.push_back(std::move(made));
  }
  Sge sge() {
    if (regions_.empty()) return {rnd_(), static_cast<std::uint32_t>(rnd_()), 64};
    const Mr& mr = *regions_[pick(regions_.size())]->mr;
    Sge s{mr.start() + pick(mr.len()), mr.key(), static_cast<std::uint32_t>(1 + pick(mr.len()))};
    if (!chance(10))
      s.len = static_cast<std::uint32_t>(std::min<std::uint64_t>(s.len, mr.start() + mr.len() - s.addr));
    if (chance(2)) s.lkey ^= 1u << pick(32);
    return s;
  }
  void post(Qp& qp) {
    const WqeOp ops[] = {WqeOp::kSend,         WqeOp::kSendImm,   WqeOp::kRdmaWrite,
                         WqeOp::kRdmaWriteImm, WqeOp::kRdmaRead,  WqeOp::kAtomicCs,
                         WqeOp::kAtomicFa,     WqeOp::kSendInval, WqeOp::kNop};
    SendWr w;
    w.op = ops[pick(9)];
    const Sge remote = sge();
    w.raddr = remote.addr;
    w.rkey = remote.lkey;
    w.imm = chance(50) ? remote.lkey : static_cast<std::uint32_t>(rnd_());
    for (std::size_t i = pick(4); i-- > 0;) w.sges.push_back(sge());
    if (w.op == WqeOp::kAtomicCs || w.op == WqeOp::kAtomicFa) {
      w.sges = {sge()};
      w.sges[0].len = 8;
      w.raddr &= ~7ULL;
    }
    if (chance(20) && w.op != WqeOp::kRdmaRead) w.inline_data.assign(1 + pick(150), 0x33);
    w.signaled = chance(70);
    w.solicited = chance(20);
    w.fence = static_cast<unsigned>(pick(5));
    qp.post(w, chance(60));
  }

  std::mt19937_64 rnd_;
  std::unique_ptr<Pd> pd_;
  std::unique_ptr<Cq> cqs_[3];
  std::unique_ptr<Srq> srq_;
  Buffer canary_;
  std::vector<std::unique_ptr<Region>> regions_;  // destroyed key first, then memory
  std::vector<Link> links_;
};

// Posts without looking whether the queue has room.
TEST_P(Chaos, NothingIsTouchedThatIsNotLent) {
  breaks({"mr-bounds", "mr-key", "mr-rights", "receive-length", "rkey-bounds", "rkey-rights", "rkey-unknown",
          "sq-overrun", "wqe-opcode", "wqe-segment"});
  for (int step = 0; step < 3000; ++step) {
    switch (pick(20)) {
      case 0:
        add_link();
        break;
      case 1:
        add_region();
        break;
      case 2:
        if (!links_.empty() && chance(40))
          links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(pick(links_.size())));
        break;
      case 3:
        if (!regions_.empty() && chance(40))
          regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(pick(regions_.size())));
        break;
      case 4:
        if (!links_.empty() && chance(30))
          (chance(50) ? links_[pick(links_.size())].a : links_[pick(links_.size())].b)->to_error();
        break;
      case 5: {  // revive
        if (links_.empty()) break;
        Link& l = links_[pick(links_.size())];
        l.a->to_reset();
        l.b->to_reset();
        connect_pair(*l.a, *l.b);
        break;
      }
      case 6:
        if (chance(20)) fn().inject(chance(50) ? "drop=0.05,duplicate=0.05,reorder=0.05" : "none");
        break;
      case 7:
        cqs_[pick(3)]->arm(chance(50));
        break;
      case 8:
        if (srq_ && srq_->free_count() > 0) {
          std::vector<Sge> sges;
          for (std::size_t i = pick(3); i-- > 0;) sges.push_back(sge());
          srq_->post(sges);
        }
        break;
      case 9:
        if (chance(20)) cqs_[pick(3)]->resize(11 + static_cast<unsigned>(pick(3)));
        break;
      case 10:
      case 11:
        for (auto& cq : cqs_) {
          while (cq->poll()) {
          }
        }
        break;
      case 12:
      case 13:
        machine().advance(static_cast<std::int64_t>(pick(30'000)));
        break;
      case 14:
      case 15:
        if (!links_.empty()) {
          std::vector<Sge> sges;
          for (std::size_t i = pick(4); i-- > 0;) sges.push_back(sge());
          links_[pick(links_.size())].a->post_recv(sges, chance(80));
        }
        break;
      default:
        if (!links_.empty()) {
          Link& l = links_[pick(links_.size())];
          for (std::size_t i = 1 + pick(3); i-- > 0;) post(chance(70) ? *l.b : *l.a);
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seed, Chaos, ::testing::Range(std::uint64_t{1}, std::uint64_t{9}));

}  // namespace
}  // namespace hcasim::bare
