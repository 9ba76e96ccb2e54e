// SPDX-License-Identifier: BSD-3-Clause
// Device memory: allocation, the CPU's window, memory keys over it, operations by loads and stores.
#include "prm/memic.h"

#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

using prm::CmdStatus;

class MemicTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes);
    in.set<prm::query_hca_cap_in::op_mod>(0xf << 1 | 1);
    caps_ = dev().exec(in, prm::query_hca_cap_out::bytes);
    ASSERT_TRUE(caps_->ok());
    base_ = cap<prm::device_mem_cap::memic_bar_start_addr>();
    size_ = cap<prm::device_mem_cap::memic_bar_size>();
  }
  template <class F>
  std::uint64_t cap() {
    return prm::get<F>(caps_->out.data() + prm::query_hca_cap_out::capability::bit_off / 8);
  }
  CommandResult alloc(std::uint64_t from, std::uint64_t range, std::uint64_t size, unsigned align = 0) {
    using in = prm::alloc_memic_in;
    Mailbox m(prm::op::ALLOC_MEMIC, in::bytes);
    m.set<in::range_start_addr>(from).set<in::range_size>(range).set<in::memic_size>(size);
    m.set<in::log_memic_addr_alignment>(align);
    return dev().exec(m, prm::alloc_memic_out::bytes);
  }
  std::uint64_t must_alloc(std::uint64_t size, unsigned align = 0) {
    return alloc(base_, size_, size, align).must().get<prm::alloc_memic_out::memic_start_addr>();
  }
  CommandResult dealloc(std::uint64_t addr, std::uint64_t size) {
    using in = prm::dealloc_memic_in;
    Mailbox m(prm::op::DEALLOC_MEMIC, in::bytes);
    return dev().exec(m.set<in::memic_start_addr>(addr).set<in::memic_size>(size));
  }
  CommandResult modify(unsigned op_mod, unsigned op, std::uint64_t addr) {
    using in = prm::modify_memic_in;
    Mailbox m(prm::op::MODIFY_MEMIC, in::bytes);
    m.set<in::op_mod>(op_mod).set<in::memic_operation_type>(op).set<in::memic_start_addr>(addr);
    return dev().exec(m, prm::modify_memic_out::bytes);
  }
  static MkeySpec over(const Pd& pd, std::uint64_t addr, std::uint64_t len, unsigned access = kAllAccess) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.mode = prm::k::MKC_ACCESS_MODE_MEMIC;
    s.access = access;
    s.start = addr;
    s.len = len;
    return s;
  }
  std::vector<std::uint8_t> load(std::uint64_t addr, std::size_t len) {
    std::vector<std::uint8_t> v(len);
    for (std::size_t i = 0; i < len; ++i) v[i] = fn().read8(addr + i);
    return v;
  }

  std::optional<CommandResult> caps_;
  std::uint64_t base_ = 0, size_ = 0;
};

TEST_F(MemicTest, Capabilities) {
  using c = prm::device_mem_cap;
  EXPECT_EQ(cap<c::memic>(), 1u);
  EXPECT_EQ(base_ % 4096, 0u);
  EXPECT_LE(base_ + size_, HCA_BAR0_SIZE);
  EXPECT_LE(cap<c::max_memic_size>(), size_);
  EXPECT_LE(size_ >> 12, 256u) << "what the driver has a map for";
  EXPECT_EQ(cap<c::memic_operations>(), 3u);
  EXPECT_EQ(cap<prm::memic_op_sizes::increment>() & 1, 1u);
}

TEST_F(MemicTest, TheCpuReadsWhatItWrote) {
  breaks({"memic-access"});
  const std::uint64_t a = must_alloc(8192), b = must_alloc(64);
  EXPECT_EQ(load(a, 64), std::vector<std::uint8_t>(64, 0));
  std::vector<std::uint8_t> data(128);
  fill_random(data.data(), data.size(), 1);
  fn().write(a + 4096 - 64, data.data(), 128);  // a write-combining burst
  fn().write(a + 8188, data.data(), 4);
  fn().write(b, data.data(), 8);
  EXPECT_EQ(load(a + 4096 - 64, 128), data);
  EXPECT_EQ(load(a + 8188, 4), std::vector<std::uint8_t>(data.begin(), data.begin() + 4));
  // Freed: nothing is there; given out again: nothing is left of it.
  EXPECT_CMD_OK(dealloc(a, 8192));
  fn().write(a, data.data(), 8);
  EXPECT_EQ(load(a, 8), std::vector<std::uint8_t>(8, 0));
  EXPECT_EQ(must_alloc(8192), a);
  EXPECT_EQ(load(a + 4096 - 64, 128), std::vector<std::uint8_t>(128, 0));
  EXPECT_EQ(load(b, 8), std::vector<std::uint8_t>(data.begin(), data.begin() + 8));
  EXPECT_CMD_OK(dealloc(a, 8192));
  EXPECT_CMD_OK(dealloc(b, 64));
}

TEST_F(MemicTest, RangesSizesAlignment) {
  breaks({"memic-size", "object-unknown"});
  const std::uint64_t a = must_alloc(64);
  EXPECT_EQ(must_alloc(64, 6) % 4096, 0u);
  // A page that is taken: none of its range is free, the next is.
  EXPECT_CMD_STATUS(alloc(a, 64, 64), CmdStatus::kNoRes);
  EXPECT_CMD_STATUS(alloc(base_ + size_ - 4096, 8192, 8192), CmdStatus::kNoRes);
  EXPECT_CMD_STATUS(alloc(0, 4096, 64), CmdStatus::kNoRes);
  EXPECT_CMD_STATUS(alloc(~0ull - 4095, ~0u, 64), CmdStatus::kNoRes);
  EXPECT_CMD_STATUS(alloc(base_, size_, 0), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(alloc(base_, size_, 65), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(alloc(base_, size_, cap<prm::device_mem_cap::max_memic_size>() + 64),
                    CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(alloc(base_, size_, 64, 200), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(dealloc(a, 128), CmdStatus::kBadRes);
  EXPECT_CMD_STATUS(dealloc(a + 64, 64), CmdStatus::kBadRes);
  EXPECT_CMD_OK(dealloc(a, 64));
  EXPECT_CMD_STATUS(dealloc(a, 64), CmdStatus::kBadRes);
  // All of it, and not a byte more.
  std::uint64_t got = 0;
  while (alloc(base_, size_, 4096).ok()) got += 4096;
  EXPECT_EQ(got, size_ - 4096);
}

TEST_F(MemicTest, KeysReachIt) {
  breaks({"destroy-busy", "rkey-bounds"});
  Pair p(dev());
  p.fill(1);
  const std::uint64_t dm = must_alloc(16384);
  {
    Mr mr(dev(), over(p.pd, dm + 64, 16000));
    auto w = p.wr(WqeOp::kRdmaWrite, 0, 9000);
    w.raddr = 7;
    w.rkey = mr.key();
    expect_good(p.acq, p.a.post(w));
    const auto seen = load(dm + 64 + 7, 9000);
    EXPECT_EQ(std::memcmp(seen.data(), p.amem.data(), 9000), 0);
    // Sent from it, received into it.
    p.b.post_recv({p.bsge(0, 10000)});
    w = p.wr(WqeOp::kSend, 0, 0);
    w.sges = {{7, mr.key(), 9000}};
    expect_good(p.acq, p.a.post(w));
    EXPECT_EQ(p.bcq.wait_one().byte_cnt, 9000u);
    EXPECT_TRUE(p.same(0, 9000));
    p.b.post_recv({{0, mr.key(), 100}});
    expect_good(p.acq, p.a.post(p.wr(WqeOp::kSend, 1000, 100)));
    EXPECT_FALSE(p.bcq.wait_one().error());
    EXPECT_EQ(std::memcmp(load(dm + 64, 100).data(), p.amem.data() + 1000, 100), 0);
    // An atomic.
    const std::uint64_t seven = 7;
    fn().write(dm + 64 + 8, &seven, 8);
    w = p.wr(WqeOp::kAtomicFa, 0, 8);
    w.raddr = 8;
    w.rkey = mr.key();
    w.swap_add = 5;
    expect_good(p.acq, p.a.post(w));
    std::uint64_t v;
    std::memcpy(&v, load(dm + 72, 8).data(), 8);
    EXPECT_EQ(v, 12u);
    EXPECT_EQ(mr.query().must().get<prm::query_mkey_out::memory_key_mkey_entry::start_addr>(), dm + 64);
    EXPECT_CMD_STATUS(dealloc(dm, 16384), CmdStatus::kBadResState);
    w = p.wr(WqeOp::kRdmaWrite, 0, 100);
    w.raddr = 15901;
    w.rkey = mr.key();
    p.a.post(w);
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  }
  EXPECT_CMD_OK(dealloc(dm, 16384));
}

TEST_F(MemicTest, KeysBeyondIt) {
  breaks({"mkey-memic"});
  Pd pd(dev());
  const std::uint64_t dm = must_alloc(4096);
  for (const MkeySpec& s : {over(pd, dm, 4097), over(pd, dm - 64, 64), over(pd, dm + 4096, 0),
                            over(pd, 0, 64), over(pd, ~0ull, 64), over(pd, dm + 64, ~0ull)})
    EXPECT_CMD_STATUS(dev().exec(create_mkey_mailbox(s), prm::create_mkey_out::bytes), CmdStatus::kBadParam);
  Mr mr(dev(), over(pd, dm, 4096));
}

TEST_F(MemicTest, OperationsByLoadAndStore) {
  breaks({"memic-access", "memic-size", "object-unknown"});
  const std::uint64_t dm = must_alloc(4096);
  const std::uint64_t add = modify(0, 0, dm).must().get<prm::modify_memic_out::memic_operation_addr>();
  const std::uint64_t test = modify(0, 1, dm).must().get<prm::modify_memic_out::memic_operation_addr>();
  EXPECT_EQ((add ^ dm) & 4095, 0u);
  EXPECT_LE(test + 4096, HCA_BAR0_SIZE);
  EXPECT_CMD_STATUS(modify(0, 0, dm), CmdStatus::kBadParam);  // there already
  EXPECT_CMD_STATUS(modify(0, 2, dm), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(modify(0, 0, dm + 64), CmdStatus::kBadRes);
  const std::uint8_t one = 1;
  fn().write(add + 5, &one, 1);
  fn().write(add + 5, &one, 1);
  EXPECT_EQ(load(dm + 4, 3), (std::vector<std::uint8_t>{0, 2, 0}));
  EXPECT_EQ(fn().read8(test + 5), 2);
  EXPECT_EQ(fn().read8(test + 5), 1);
  const std::uint32_t big = 0xffffffff;
  fn().write(dm + 16, &big, 4);
  const std::uint32_t two = 2;
  fn().write(add + 16, &two, 4);
  EXPECT_EQ(load(dm + 16, 5), (std::vector<std::uint8_t>{1, 0, 0, 0, 0})) << "it wraps at its size";
  // The wrong kind of access, or across the operand: nothing.
  fn().write(test + 5, &two, 1);
  fn().write(add + 18, &two, 4);
  EXPECT_EQ(load(dm + 16, 8), (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_CMD_OK(modify(1, 0, dm));
  EXPECT_CMD_STATUS(modify(1, 0, dm), CmdStatus::kBadParam);
  fn().write(add + 5, &one, 1);
  EXPECT_EQ(fn().read8(dm + 5), 1);
  EXPECT_CMD_OK(dealloc(dm, 4096));
  EXPECT_EQ(fn().read8(test + 5), 0);
}

TEST_F(MemicTest, AccessesToNothingAreHarmless) {
  breaks({"memic-access"});
  const std::uint64_t v = ~0ull;
  for (std::uint64_t at = base_; at < HCA_BAR0_SIZE; at += 65536 + 4088) {
    fn().write(at, &v, 8);
    EXPECT_EQ(fn().read8(at), 0);
  }
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
