// SPDX-License-Identifier: BSD-3-Clause
#include "fixture.h"

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace hcasim::bare {

Machine& machine() {
  static Machine* m = [] {
    auto* made = new Machine(std::size_t{1} << 30);  // lives as long as the SystemC kernel: to the end
    made->echo_log = std::getenv("HCASIM_TEST_LOG") != nullptr;
    const char* options = std::getenv("HCASIM_TEST_OPTIONS");
    const std::string more = options ? std::string(",") + options : "";
    made->add_hca("link=ib" + more);
    made->add_hca("link=ib,ipoib_offloads=on");
    made->add_hca("link=eth" + more);
    made->add_hca("link=eth,name=left");
    made->add_hca("link=eth,cable=left");
    made->add_hca("link=ib,name=ibleft");
    made->add_hca("link=ib,lid=2,cable=ibleft");
    made->start();
    return made;
  }();
  return *m;
}

std::string leftover_objects(Function& function) {
  const auto stats = nlohmann::json::parse(function.stats());
  std::string out;
  for (const auto& [name, count] : stats.at("objects").items()) {
    if (count != 0) out += name + "=" + count.dump() + " ";
  }
  return out;
}

DeviceTest::DeviceTest(DeviceOptions options) : options_(options) {
  if (const char* f = std::getenv("HCASIM_TEST_FUNCTION")) function_ = std::strtoul(f, nullptr, 10);
  if (const char* i = std::getenv("HCASIM_TEST_SGID"))
    options_.sgid_index = static_cast<unsigned>(std::strtoul(i, nullptr, 10));
}

void DeviceTest::SetUp() {
  for (std::size_t i = 0; i < machine().functions(); ++i) machine().function(i).reset();
  machine().clear_log();
  memory_before_ = machine().memory().pages_in_use();
  stray_before_ = machine().memory().stray_reads() + machine().memory().stray_writes();
  dev_ = std::make_unique<Device>(fn(), options_);
  dev_->probe();
}

void DeviceTest::TearDown() {
  if (dev_ && dev_->up()) {
    EXPECT_NO_THROW(dev_->teardown());
    EXPECT_EQ(leftover_objects(fn()), "");
  }
  if (dev_) {
    for (const std::string& f : dev_->failed_destroys())
      ADD_FAILURE() << "a destructor's command failed: " << f;
  }
  dev_.reset();
  EXPECT_EQ(machine().memory().pages_in_use(), memory_before_) << "host memory leaked";
  if (!expect_strays_) {
    EXPECT_EQ(machine().memory().stray_reads() + machine().memory().stray_writes(), stray_before_)
        << "DMA to pages that were given back";
  }
  fn().inject("none");
}

void DeviceTest::expect_serves_on() {
  Pair p(dev());
  p.fill(4711);
  p.b.post_recv({p.bsge(0, 4096)});
  const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 4096));
  expect_good(p.acq, n);
  expect_good(p.bcq, 0);
  EXPECT_TRUE(p.same(0, 4096));
}

void fill_random(std::uint8_t* p, std::size_t len, std::uint64_t seed) {
  std::mt19937_64 r(seed);
  std::size_t i = 0;
  for (; i + 8 <= len; i += 8) {
    const std::uint64_t v = r();
    std::memcpy(p + i, &v, 8);
  }
  for (; i < len; ++i) p[i] = static_cast<std::uint8_t>(r());
}

namespace {

CqOptions cq_options(const PairOptions& o) {
  CqOptions c;
  c.log_size = o.log_cq;
  c.ring.scattered = o.scattered;
  return c;
}

QpOptions qp_options(const PairOptions& o) {
  QpOptions q;
  q.log_sq = o.log_sq;
  q.log_rq = o.log_rq;
  q.log_rq_stride = o.log_rq_stride;
  q.counter_set = o.counter_set;
  q.ring.scattered = o.scattered;
  return q;
}

Buffer memory_of(Device& d, const PairOptions& o) {
  return o.scattered ? d.memory().allocate_scattered(o.bytes) : d.memory().allocate(o.bytes);
}

MkeySpec key_of(const Pd& pd, const Buffer& b, const PairOptions& o, std::uint64_t iova) {
  return Mr::of(pd, b, o.access, 12, 0, 0, o.scattered ? iova : 0);
}

}  // namespace

Pair::Pair(Device& device, const PairOptions& o)
    : dev(device),
      pd(device),
      acq(device, cq_options(o)),
      bcq(device, cq_options(o)),
      a(device, pd, acq, acq, qp_options(o)),
      b(device, pd, bcq, bcq, qp_options(o)),
      amem(memory_of(device, o)),
      bmem(memory_of(device, o)),
      amr(device, key_of(pd, amem, o, 0x7f0000000000)),
      bmr(device, key_of(pd, bmem, o, 0x7e0000000000)) {
  if (o.connect) connect_pair(a, b, o.attr);
}

SendWr Pair::wr(WqeOp op, std::size_t off, std::uint32_t len) const {
  SendWr w;
  w.op = op;
  if (len != 0) w.sges = {asge(off, len)};
  w.raddr = bmr.start() + off;
  w.rkey = bmr.key();
  return w;
}

void Pair::fill(std::uint64_t seed) const {
  fill_random(amem.data(), amem.size(), seed);
  fill_random(bmem.data(), bmem.size(), ~seed);
}

void expect_good(Cq& cq, std::uint16_t wqe_counter) {
  const auto got = cq.wait(1);
  ASSERT_EQ(got.size(), 1u) << "no completion for WQE " << wqe_counter;
  EXPECT_FALSE(got[0].error()) << got[0].text();
  EXPECT_EQ(got[0].wqe_counter, wqe_counter) << got[0].text();
}

void expect_error(const Completion& c, prm::CqeSyndrome syndrome) {
  EXPECT_TRUE(c.error()) << c.text();
  EXPECT_EQ(static_cast<int>(c.syndrome), static_cast<int>(syndrome)) << c.text();
}

}  // namespace hcasim::bare
