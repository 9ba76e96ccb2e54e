// SPDX-License-Identifier: BSD-3-Clause
// Migration of virtual functions, as mlx5_vfio_pci has it done by the physical function: a function with
// traffic is held, saved, loaded into another one and goes on there, and its driver and its peer notice
// nothing but time. And what is refused, which changes nothing.
#include <optional>

#include "migration_rig.h"
#include "tests/fuzz/dice.h"

namespace hcasim {
namespace {

TEST_F(Migrating, OfferedToWhoManagesFunctions) {
  auto vf = probed(1);
  using g = prm::cmd_hca_cap;
  EXPECT_EQ(pf.cap<g::migration>(), 1u);
  EXPECT_EQ(vf->cap<g::migration>(), 0u);
  using Caps = prm::query_hca_cap_in;
  Mailbox in(prm::op::QUERY_HCA_CAP, Caps::bytes, 0x20 << 1);
  const auto own = pf.exec(in, prm::query_hca_cap_out::bytes).must();
  in.set<Caps::other_function>(1).set<Caps::function_id>(1);
  const auto other = pf.exec(in, prm::query_hca_cap_out::bytes).must();
  constexpr std::size_t kAt = prm::query_hca_cap_out::capability::bit_off / 8;
  using g2 = prm::cmd_hca_cap_2;
  EXPECT_EQ(prm::get<g2::migration_multi_load>(own.out.data() + kAt), 1u);
  EXPECT_EQ(prm::get<g2::migration_tracking_state>(own.out.data() + kAt), 1u);
  EXPECT_EQ(prm::get<g2::migration_in_chunks>(own.out.data() + kAt), 1u);
  EXPECT_EQ(prm::get<g2::migratable>(other.out.data() + kAt), 1u);
  // The manager takes it from a function, and nothing else.
  using Set = prm::set_hca_cap_in;
  Mailbox set(prm::op::SET_HCA_CAP, Set::bytes, 0x20 << 1);
  set.set<Set::other_function>(1).set<Set::function_id>(1);
  std::uint8_t* const block = set.data() + Set::capability::bit_off / 8;
  std::memcpy(block, other.out.data() + kAt, g2::bytes);
  prm::set<g2::migratable>(block, 0);
  ASSERT_TRUE(pf.exec(set).ok());
  EXPECT_EQ(suspend(id(1), kFirst).status, CmdStatus::kBadParam);
  prm::set<g2::migration_multi_load>(block, 1);
  EXPECT_EQ(pf.exec(set).status, CmdStatus::kBadParam);
  prm::set<g2::migration_multi_load>(block, 0);
  prm::set<g2::migratable>(block, 1);
  ASSERT_TRUE(pf.exec(set).ok());
  EXPECT_TRUE(suspend(id(1), kFirst).ok());
  EXPECT_TRUE(resume(id(1), kThen).ok());
}

TEST_F(Migrating, InAnotherOrderItIsRefused) {
  auto vf = probed(1);
  bare::Pd pd(pf);
  Lent memory(pf, pd, required(1));
  const std::uint16_t one = id(1);
  EXPECT_EQ(suspend(one, kThen).status, CmdStatus::kBadResState);
  EXPECT_EQ(resume(one, kFirst).status, CmdStatus::kBadResState);
  EXPECT_EQ(resume(one, kThen).status, CmdStatus::kBadResState);
  EXPECT_EQ(save(one, memory).status, CmdStatus::kBadResState);
  EXPECT_EQ(save(one, memory, false, true).status, CmdStatus::kBadResState);
  EXPECT_EQ(load(one, memory, 4096).status, CmdStatus::kBadResState);
  EXPECT_EQ(query(one, true).status, CmdStatus::kBadResState);
  EXPECT_EQ(suspend(one, 2).status, CmdStatus::kBadParam);
  EXPECT_EQ(resume(one, 2).status, CmdStatus::kBadParam);
  ASSERT_TRUE(suspend(one, kFirst).ok());
  EXPECT_EQ(suspend(one, kFirst).status, CmdStatus::kBadResState);
  EXPECT_EQ(save(one, memory).status, CmdStatus::kBadResState);
  EXPECT_EQ(resume(one, kFirst).status, CmdStatus::kBadResState);
  ASSERT_TRUE(suspend(one, kThen).ok());
  EXPECT_EQ(suspend(one, kThen).status, CmdStatus::kBadResState);
  EXPECT_EQ(resume(one, kThen).status, CmdStatus::kBadResState);
  EXPECT_EQ(save(one, memory, true).status, CmdStatus::kBadResState);
  EXPECT_TRUE(save(one, memory).ok());
  go(1);
  // Whom it is not for: the physical function, one that is none, one that has not been started; a virtual
  // one's driver.
  for (const std::uint16_t vhca : {id(0), std::uint16_t{77}})
    EXPECT_EQ(suspend(vhca, kFirst).status, CmdStatus::kBadParam) << vhca;
  EXPECT_EQ(query(id(0)).status, CmdStatus::kBadParam);
  EXPECT_EQ(load(id(0), memory, 4096).status, CmdStatus::kBadParam);
  EXPECT_EQ(suspend(id(2), kFirst).status, CmdStatus::kBadResState);
  Mailbox in(prm::op::SUSPEND_VHCA, prm::suspend_vhca_in::bytes);
  EXPECT_EQ(vf->exec(in.set<prm::suspend_vhca_in::vhca_id>(id(2))).status, CmdStatus::kBadOp);
}

TEST_F(Migrating, MemoryOfAnImageIsCheckedAsAnyOther) {
  auto vf = probed(1);
  stop(1);
  bare::Pd pd(pf);
  Lent memory(pf, pd, required(1));
  const auto size = static_cast<std::uint32_t>(memory.buffer.size());
  memory.buffer.fill(0xa5);
  const auto refused = [&](std::uint32_t key, std::uint32_t len) {
    return pf.exec(saving(id(1), key, len, false, false), prm::save_vhca_state_out::bytes).status;
  };
  EXPECT_EQ(refused(memory.mr.key(), 100), CmdStatus::kBadParam);       // too small
  EXPECT_EQ(refused(memory.mr.key(), size + 1), CmdStatus::kBadParam);  // beyond the key
  EXPECT_EQ(refused(memory.mr.key() ^ 1, size), CmdStatus::kBadParam);  // no such key
  bare::MkeySpec spec = Lent::spec(pd, memory.buffer);
  spec.access = bare::kLocalRead;
  bare::Mr read_only(pf, spec);
  EXPECT_EQ(refused(read_only.key(), size), CmdStatus::kBadParam);
  for (std::size_t i = 0; i < memory.buffer.size(); ++i) ASSERT_EQ(memory.buffer.data()[i], 0xa5) << i;
  EXPECT_EQ(load(id(1), memory, size + 1).status, CmdStatus::kBadParam);
  EXPECT_EQ(load(id(1), memory, 0xffffffff).status, CmdStatus::kBadParam);
  EXPECT_EQ(load(id(1), memory, 0).status, CmdStatus::kBadParam);
  EXPECT_TRUE(save(id(1), memory).ok());
  go(1);
}

// What is held does nothing: no DMA, no interrupt, whatever comes for it.
TEST_F(Migrating, WhatIsHeldIsAtRest) {
  auto vf = probed(1);
  Stream a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  a.pump(8);
  b.pump(8);
  c.machine.advance(3'000);
  // First it only begins nothing: what its peer sends still arrives.
  ASSERT_TRUE(suspend(id(1), kFirst).ok());
  b.pump(0);
  const std::uint32_t received = b.received, sent = b.sent;
  for (int i = 0; i < 20; ++i) {
    a.pump(8);
    b.pump(12);  // doorbells, which wait
    c.machine.advance(5'000);
  }
  EXPECT_GT(b.received, received + 20);
  EXPECT_GT(b.sent, sent);
  a.pump(0);
  EXPECT_LE(a.received, sent);
  ASSERT_TRUE(suspend(id(1), kThen).ok());
  const std::uint64_t accesses = c.hosts[1].accesses, interrupts = c.hosts[1].interrupts;
  const std::uint64_t before = digest(1);
  for (int i = 0; i < 20; ++i) {
    a.pump(8);
    c.machine.advance(50'000);
  }
  EXPECT_EQ(c.hosts[1].accesses, accesses);
  EXPECT_EQ(c.hosts[1].interrupts, interrupts);
  EXPECT_NE(digest(1), before);  // counts what was lost
  EXPECT_GT(c.card.migration().of(1).lost_packets, 0u);
  // Of its doorbells those that arm queues are lost; commands wait.
  b.recv_cq.arm();
  EXPECT_GT(c.card.migration().of(1).lost_doorbells, 0u);
  bool answered = false;
  Mailbox in(prm::op::QUERY_ISSI, prm::query_issi_in::bytes);
  vf->cmd().submit(in, prm::query_issi_out::bytes, [&](const CommandResult& r) {
    answered = true;
    EXPECT_TRUE(r.ok()) << r.text();
  });
  c.machine.advance(1'000'000);
  vf->cmd().poll();
  EXPECT_FALSE(answered);
  EXPECT_EQ(c.hosts[1].accesses, accesses);
  go(1);
  a.limit = a.sent + 50;
  b.limit = b.sent + 50;
  for (int i = 0; i < 2000 && (a.completed < a.limit || b.completed < b.limit); ++i) {
    a.pump(8);
    b.pump(8);
    c.machine.advance(5'000);
  }
  a.pump(0);
  b.pump(0);
  EXPECT_TRUE(answered);
  EXPECT_EQ(a.completed, a.limit);
  EXPECT_EQ(b.completed, b.limit);
  EXPECT_EQ(a.received, b.limit);
  EXPECT_EQ(b.received, a.limit);
}

TEST_F(Migrating, TrafficGoesOnInAnotherFunction) {
  auto vf = probed(1);
  Stream a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  const auto of_qp = [&] { return b.qp.query().must().out; };
  bare::Dice dice(7);
  FunctionId at = 1;
  for (int round = 0; round < 12; ++round) {
    const unsigned turns = 1 + dice.below(30);
    for (unsigned i = 0; i < turns; ++i) {
      a.pump(1 + dice.below(12));
      b.pump(1 + dice.below(12));
      c.machine.advance(200 + dice.below(3'000));
    }
    const FunctionId to = at == 1 ? 2 : 1;
    migrate(at, to, 1, static_cast<Way>(round % 4));
    at = to;
  }
  EXPECT_GT(a.completed, 100u);
  a.limit = a.sent;
  b.limit = b.sent;
  for (int i = 0; i < 2000 && (a.completed < a.limit || b.completed < b.limit); ++i) {
    a.pump(8);
    b.pump(8);
    c.machine.advance(5'000);
  }
  c.machine.advance(1'000'000);
  a.pump(0);
  b.pump(0);
  EXPECT_EQ(a.completed, a.limit);
  EXPECT_EQ(b.completed, b.limit);
  EXPECT_EQ(a.received, b.limit);
  EXPECT_EQ(b.received, a.limit);
  // At rest, all that a query shows is the same there.
  const auto before = of_qp();
  const auto cq = b.recv_cq.query().must().out, mkey = b.mr.query().must().out;
  migrate(at, at == 1 ? 2 : 1, 1);
  EXPECT_EQ(of_qp(), before);
  EXPECT_EQ(b.recv_cq.query().must().out, cq);
  EXPECT_EQ(b.mr.query().must().out, mkey);
  // Its driver makes and ends objects as before.
  bare::Mr another(*vf, bare::Mr::of(b.pd, b.buffer));
  EXPECT_NE(another.key(), b.mr.key());
  EXPECT_TRUE(b.qp.destroy().ok());
  EXPECT_TRUE(vf->failed_destroys().empty());
}

// READs and atomics whose answers were lost, and what waits for the driver's arming.
TEST_F(Migrating, ReadsAndAtomicsAreAnsweredOnce) {
  auto vf = probed(1);
  End a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  FunctionId at = 1;
  std::uint64_t sum = 0;
  prm::store64(b.buffer.data(), 0);
  prm::store64(a.buffer.data() + 4096, 0);
  for (int round = 0; round < 10; ++round) {
    for (End* end : {&a, &b}) {
      End& peer = end == &a ? b : a;
      for (int i = 0; i < 4; ++i) {
        bare::SendWr wr;
        wr.op = bare::WqeOp::kAtomicFa;
        wr.sges = {{end->mr.start() + 8, end->mr.key(), 8}};
        wr.raddr = peer.mr.start() + (end == &a ? 0 : 4096);
        wr.rkey = peer.mr.key();
        wr.swap_add = 1;
        end->qp.post(wr);
        wr.op = bare::WqeOp::kRdmaRead;
        wr.sges = {{end->mr.start() + 8192, end->mr.key(), 8192}};
        wr.raddr = peer.mr.start();
        end->qp.post(wr);
      }
    }
    sum += 4;
    c.machine.advance(500 + 700 * round);
    const FunctionId to = at == 1 ? 2 : 1;
    migrate(at, to, 1, round % 2 == 0 ? Way::kAhead : Way::kInChunks);
    at = to;
    for (End* end : {&a, &b})
      for (const auto& done : end->cq.wait(8)) EXPECT_FALSE(done.error()) << done.text();
  }
  std::uint64_t to_b = 0, to_a = 0;
  std::memcpy(&to_b, b.buffer.data(), 8);
  std::memcpy(&to_a, a.buffer.data() + 4096, 8);
  EXPECT_EQ(std::max(to_b, __builtin_bswap64(to_b) < to_b ? __builtin_bswap64(to_b) : to_b), to_b);
  EXPECT_TRUE(to_b == sum || __builtin_bswap64(to_b) == sum) << to_b;
  EXPECT_TRUE(to_a == sum || __builtin_bswap64(to_a) == sum) << to_a;
}

// What goes ahead while it runs is most of it, and the last image as large as what has changed since.
TEST_F(Migrating, WhatHasChangedSince) {
  auto vf = probed(1);
  End b(*vf);
  std::vector<std::unique_ptr<bare::Mr>> regions;
  const auto more = [&](int count) {
    for (int i = 0; i < count; ++i)
      regions.push_back(std::make_unique<bare::Mr>(*vf, bare::Mr::of(b.pd, b.buffer)));
  };
  more(300);
  Records records = ahead_of(1, 5);
  ASSERT_EQ(records.size(), 1u);  // nothing has changed
  const std::size_t whole = records[0].size();
  more(1);
  EXPECT_EQ(required(1, true), 4096u);
  records.push_back(record_of(1, required(1, true), true, true));
  EXPECT_LT(records[1].size(), whole / 8);
  regions.erase(regions.begin() + 7);
  stop(1);
  records.push_back(record_of(1, required(1, true), false, true));
  EXPECT_LT(records[2].size(), whole / 8);
  EXPECT_EQ(query(id(1), true).status, CmdStatus::kBadResState);  // that was the last one
  EXPECT_GT(image_of(1).size(), whole);
  same_as_at_once(records);
  more(1);
  regions.clear();
  EXPECT_TRUE(vf->failed_destroys().empty());
}

// An image that goes ahead in memory that is too small for it: the rest comes with the next ones.
TEST_F(Migrating, GoesAheadByParts) {
  auto vf = probed(1);
  End b(*vf);
  std::vector<std::unique_ptr<bare::Mr>> regions;
  for (int i = 0; i < 100; ++i)
    regions.push_back(std::make_unique<bare::Mr>(*vf, bare::Mr::of(b.pd, b.buffer)));
  constexpr std::uint32_t kRoom = 1024;
  Records records{record_of(1, kRoom, true)};
  while (required(1, true) != 0) {
    records.push_back(record_of(1, kRoom, true, true));
    ASSERT_LE(records.back().size(), kRoom);
  }
  EXPECT_GT(records.size(), 3u);
  // One that is held has no use for the rest of an image that went ahead.
  records.push_back(record_of(1, kRoom, true));
  stop(1);
  EXPECT_EQ(save(id(1), Lent(pf, bare::Pd(pf), 16), false, true).status, CmdStatus::kBadParam);
  for (std::string& record : in_chunks(1, 256, true)) records.push_back(std::move(record));
  same_as_at_once(records);
}

TEST_F(Migrating, WhatWentAheadIsGivenUp) {
  auto vf = probed(1);
  Records records = ahead_of(1, 0);
  records.push_back(record_of(1, 4096));
  EXPECT_EQ(query(id(1), true).status, CmdStatus::kBadResState);
  bare::Pd pd(pf);
  Lent memory(pf, pd, 4096);
  EXPECT_EQ(save(id(1), memory, true, true).status, CmdStatus::kBadResState);
  ASSERT_TRUE(enable(2).ok());
  stop(2);
  const std::uint64_t before = digest(2);
  for (const std::string& record : records) EXPECT_TRUE(load_record(2, record).ok());
  EXPECT_EQ(digest(2), before);
  // It was to be another function, and is none.
  EXPECT_EQ(resume(id(2), kFirst).status, CmdStatus::kBadResState);
  c.card.reset(2);
  probed(2);
  EXPECT_TRUE(vf->query_vport().ok());
}

// A driver that gives up before it has read the first record has no memory for another one, and needs none:
// nothing has changed.
TEST_F(Migrating, GivenUpBeforeAnythingWasRead) {
  auto vf = probed(1);
  Records records = ahead_of(1, 0);
  while (required(1, true) != 0) records.push_back(record_of(1, required(1, true), true, true));
  const auto saved = pf.exec(saving(id(1), 0, 0, false, false), prm::save_vhca_state_out::bytes);
  ASSERT_TRUE(saved.ok()) << saved.text();
  EXPECT_EQ(saved.get<prm::save_vhca_state_out::actual_image_size>(), 0u);
  EXPECT_EQ(query(id(1), true).status, CmdStatus::kBadResState) << "nothing is tracked";
  EXPECT_EQ(pf.exec(saving(id(1), 0, 0, false, false), prm::save_vhca_state_out::bytes).status,
            CmdStatus::kBadParam);
  EXPECT_TRUE(vf->query_vport().ok());
}

// The image takes its time; other commands go on meanwhile.
TEST_F(Migrating, OtherCommandsGoOnWhileAnImageIsWritten) {
  auto vf = probed(1);
  End b(*vf);
  std::vector<std::unique_ptr<bare::Mr>> regions;
  for (int i = 0; i < 1000; ++i)
    regions.push_back(std::make_unique<bare::Mr>(*vf, bare::Mr::of(b.pd, b.buffer)));
  stop(1);
  bare::Pd pd(pf);
  Lent memory(pf, pd, required(1));
  bool saved = false;
  const std::int64_t begin = c.clock.now();
  std::int64_t end = 0;
  pf.cmd().submit(
      saving(id(1), memory.mr.key(), static_cast<std::uint32_t>(memory.buffer.size()), false, false),
      prm::save_vhca_state_out::bytes, [&](const CommandResult& r) {
        saved = true;
        end = c.clock.now();
        EXPECT_TRUE(r.ok()) << r.text();
      });
  EXPECT_TRUE(query(id(1)).ok());
  EXPECT_FALSE(saved);
  EXPECT_TRUE(pf.query_vport().ok());
  for (int i = 0; i < 1000 && !saved; ++i) c.machine.advance(10'000);
  EXPECT_TRUE(saved);
  EXPECT_GT(end - begin, 10'000);
  go(1);
}

TEST_F(Migrating, AResetEndsIt) {
  auto vf = probed(1);
  stop(1);
  vf->function_reset();
  EXPECT_FALSE(c.card.migration().of(1).any());
  EXPECT_EQ(resume(id(1), kFirst).status, CmdStatus::kBadResState);
  vf->probe();
  EXPECT_TRUE(vf->query_vport().ok());
  // And in the midst of a command: the answer says so.
  std::optional<CommandResult> result;
  ASSERT_TRUE(suspend(id(1), kFirst).ok());
  Mailbox in(prm::op::SUSPEND_VHCA, prm::suspend_vhca_in::bytes, kThen);
  pf.cmd().submit(in.set<prm::suspend_vhca_in::vhca_id>(id(1)), 16,
                  [&](const CommandResult& r) { result = r; });
  for (int i = 0; i < 100 && !c.card.migration().of(1).responder; ++i) c.machine.advance(500);
  vf->function_reset();
  for (int i = 0; i < 100 && !result; ++i) c.machine.advance(10'000);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, CmdStatus::kBadResState);
}

}  // namespace
}  // namespace hcasim
