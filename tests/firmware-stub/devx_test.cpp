// SPDX-License-Identifier: BSD-3-Clause
// User contexts: what belongs to whom, what they may not do; queues in UMEMs.
#include "driver/bare/devx.h"

#include "driver/bare/eth.h"
#include "driver/bare/qp.h"
#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/transport_caps.h"
#include "prm/umem.h"
#include "prm/user_commands.h"

namespace hcasim::bare {
namespace {

enum : std::uint32_t { kRawTx = 1, kInternalDevRes = 2 };

class Devx : public FirmwareTest {
 protected:
  CommandResult destroy_qp(const Qp& qp) {
    return name<prm::destroy_qp_in::qpn>(prm::op::DESTROY_QP, prm::destroy_qp_in::bytes, qp.qpn());
  }
};
class DevxEth : public Devx {
  std::size_t hca() const override { return 2; }
};

TEST_F(Devx, ContextsComeAndGo) {
  breaks({"devx-command", "devx-uid"});
  EXPECT_GT(dev().cap<prm::cmd_hca_cap::log_max_uctx>(), 0u);
  EXPECT_EQ(dev().cap<prm::cmd_hca_cap::uctx_cap>(), kRawTx | kInternalDevRes);
  Uctx a(dev()), b(dev(), kRawTx);
  EXPECT_NE(a.uid(), 0u);
  EXPECT_NE(a.uid(), b.uid());
  EXPECT_NE(a.uid(), 0xffffu);
  Mailbox in(prm::op::CREATE_UCTX, prm::create_uctx_in::bytes);
  in.set<prm::create_uctx_in::uctx::cap>(4);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);  // a right that is not offered
  EXPECT_OK(a.destroy());
  const Uctx::As gone(dev(), a.uid());
  EXPECT_STATUS(dev().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes)), CmdStatus::kBadParam);
}

TEST_F(Devx, ContextWithObjectsStays) {
  breaks({"destroy-busy"});
  Uctx user(dev());
  std::unique_ptr<Pd> pd;
  {
    const Uctx::As as(dev(), user);
    pd = std::make_unique<Pd>(dev());
  }
  EXPECT_STATUS(user.destroy(), CmdStatus::kBadResState);
  EXPECT_OK(pd->destroy());  // the driver may destroy what is a user's
  EXPECT_OK(user.destroy());
}

TEST_F(Devx, WhatIsTheDriversBusiness) {
  breaks({"cap-not-offered", "devx-command"});
  Uctx user(dev(), kRawTx | kInternalDevRes);
  const Uctx::As as(dev(), user);
  for (const std::uint16_t opcode :
       {prm::op::CREATE_EQ, prm::op::MANAGE_PAGES, prm::op::TEARDOWN_HCA, prm::op::DISABLE_HCA,
        prm::op::ACCESS_REG, prm::op::MODIFY_HCA_VPORT_CONTEXT, prm::op::CREATE_UCTX, prm::op::DESTROY_UCTX,
        prm::op::MAD_IFC, prm::op::QUERY_PAGES, prm::op::MODIFY_CONG_STATUS}) {
    const auto r = dev().exec(Mailbox(opcode, 8192), 8192);
    EXPECT_FALSE(r.ok()) << opcode;
    EXPECT_EQ(static_cast<int>(r.status), static_cast<int>(CmdStatus::kBadOp)) << r.text();
  }
  EXPECT_OK(dev().exec(Mailbox(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 1),
                       prm::query_hca_cap_out::bytes));
}

// One for UMR would change keys of any domain.
// They tell by that what a card has (libdpcp), where the driver knows from other capabilities.
TEST_F(Devx, ProgramsMayAskForGroupsThatAreNotThere) {
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  constexpr std::uint16_t kAbsent = 0x3e;
  const Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, kAbsent << 1 | 1);
  EXPECT_STATUS(dev().exec(in, prm::query_hca_cap_out::bytes), CmdStatus::kBadParam);
}

TEST_F(Devx, QueuePairsThatAreTheDrivers) {
  breaks({"qp-type"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  Pd pd(dev());
  Cq cq(dev());
  for (const QpType type : {QpType::kQp0, QpType::kQp1, QpType::kRegUmr}) {
    QpOptions o;
    o.type = type;
    o.no_rq = type == QpType::kRegUmr;
    EXPECT_THROW(Qp(dev(), pd, cq, cq, o), BareError) << static_cast<unsigned>(type);
  }
}

TEST_F(Devx, OthersObjectsAreOutOfReach) {
  breaks({"devx-owner"});
  Pd driver_pd(dev());
  Cq driver_cq(dev());
  Uctx a(dev()), b(dev());
  const Uctx::As as_a(dev(), a);
  Pd pd(dev());
  Cq cq(dev());  // on the driver's EQ, which is there for all
  Qp qp(dev(), pd, cq, cq);
  EXPECT_THROW(Qp(dev(), driver_pd, cq, cq), BareError);
  EXPECT_THROW(Qp(dev(), pd, driver_cq, cq), BareError);
  EXPECT_THROW(Qp(dev(), pd, cq, driver_cq), BareError);
  EXPECT_STATUS(driver_cq.query(), CmdStatus::kBadRes);
  EXPECT_STATUS(driver_cq.destroy(), CmdStatus::kBadRes);
  EXPECT_STATUS(driver_pd.destroy(), CmdStatus::kBadRes);
  {
    const Uctx::As as_b(dev(), b);
    Pd other(dev());
    EXPECT_THROW(Qp(dev(), pd, cq, cq), BareError);
    EXPECT_STATUS(qp.to_init({}), CmdStatus::kBadRes);
    EXPECT_STATUS(qp.query(), CmdStatus::kBadRes);
    EXPECT_STATUS(destroy_qp(qp), CmdStatus::kBadRes);
    EXPECT_STATUS(cq.resize(9), CmdStatus::kBadRes);
    EXPECT_STATUS(pd.destroy(), CmdStatus::kBadRes);
  }
  EXPECT_OK(qp.to_init({}));
  EXPECT_OK(qp.query());
  EXPECT_OK(cq.resize(9));
  // The driver's CQ as the placeholder of a QP that receives nothing.
  QpOptions none;
  none.no_rq = true;
  Qp sender(dev(), pd, cq, driver_cq, none);
  // An EQ for asynchronous events is the driver's own.
  using In = prm::create_cq_in;
  const Buffer ring = dev().memory().allocate(8192);
  Mailbox in(prm::op::CREATE_CQ, In::bytes + 8);
  in.set<In::cq_context::log_cq_size>(5).set<In::cq_context::uar_page>(dev().uar());
  in.set<In::cq_context::dbr_addr>(ring.bus() + 4096);
  prm::set<In::pas>(in.data(), 0, ring.bus());
  unsigned refused = 0;
  for (unsigned eqn = 1; eqn < 8; ++eqn) {
    in.set<In::cq_context::c_eqn_or_apu_element>(eqn);
    const auto r = dev().exec(in);
    if (r.status == CmdStatus::kBadRes) ++refused;
    if (r.ok()) {
      EXPECT_OK(
          (name<prm::destroy_cq_in::cqn>(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes,
                                         static_cast<std::uint32_t>(r.get<prm::create_cq_out::cqn>()))));
    }
  }
  EXPECT_EQ(refused, 5u);  // seven numbers: two EQs are for completions
}

TEST_F(Devx, SharedCountersAreUsedNotChanged) {
  breaks({"devx-owner"});
  Mailbox alloc(prm::op::ALLOC_Q_COUNTER, prm::alloc_q_counter_in::bytes);
  const auto own = dev().exec(alloc).must().get<prm::alloc_q_counter_out::counter_set_id>();
  alloc.set<prm::alloc_q_counter_in::uid>(0xffff);
  const auto shared = dev().exec(alloc).must().get<prm::alloc_q_counter_out::counter_set_id>();
  const auto dealloc = [&](std::uint32_t id) {
    return name<prm::dealloc_q_counter_in::counter_set_id>(prm::op::DEALLOC_Q_COUNTER,
                                                           prm::dealloc_q_counter_in::bytes, id);
  };
  {
    Uctx user(dev());
    const Uctx::As as(dev(), user);
    Pd pd(dev());
    Cq cq(dev());
    QpOptions o;
    o.counter_set = own;
    Qp refused(dev(), pd, cq, cq, o);
    EXPECT_STATUS(refused.to_init({}), CmdStatus::kBadRes);
    o.counter_set = shared;
    Qp qp(dev(), pd, cq, cq, o);
    EXPECT_OK(qp.to_init({}));
    EXPECT_STATUS(dealloc(shared), CmdStatus::kBadRes);
  }
  EXPECT_OK(dealloc(shared));
  EXPECT_OK(dealloc(own));
}

TEST_F(Devx, KeysOfUsers) {
  breaks({"devx-owner", "mkey-layout"});
  Pd driver_pd(dev());
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  Pd pd(dev());
  const Buffer mem = dev().memory().allocate(1 << 14);
  EXPECT_THROW(Mr(dev(), Mr::physical(pd)), BareError);  // all of memory
  EXPECT_THROW(Mr(dev(), Mr::of(driver_pd, mem)), BareError);
  Mr key(dev(), Mr::of(pd, mem));
  EXPECT_OK(key.query());
  const Uctx::As driver(dev(), std::uint16_t{0});
  EXPECT_OK(key.query());
}

// ---- Registers ----

// DPDK sends the header alone, and takes what is not real time for free running.
TEST_F(Devx, RegistersOfUsersAreRead) {
  breaks({"register-unknown", "register-access", "cmd-output-short"});
  EXPECT_EQ(dev().cap<prm::cap_access_register_user>(), 1u);
  using In = prm::access_register_in;
  constexpr std::size_t kOut = prm::access_register_out::bytes + prm::mtutc_reg::bytes;
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  const auto ask = [&](std::uint32_t id, std::uint32_t op_mod, std::size_t less = 0) {
    Mailbox in(prm::kOpAccessRegisterUser, In::bytes);
    return dev().exec(in.set<In::op_mod>(op_mod).set<In::register_id>(id), kOut - less);
  };
  const auto clock = ask(prm::reg::kMtutc, 1).must();
  EXPECT_EQ(clock.out[prm::access_register_out::bytes] >> 6, 0);  // time_stamp_mode
  EXPECT_STATUS(ask(prm::reg::kMtutc, 0), CmdStatus::kBadParam);
  EXPECT_STATUS(ask(prm::reg::kPaos, 1), CmdStatus::kBadParam);
  EXPECT_STATUS(ask(prm::reg::kMtutc, 1, 4), CmdStatus::kBadOutpLen);
}

// ---- UMEM ----

TEST_F(Devx, UmemsAreChecked) {
  breaks({"cap-not-offered", "devx-owner", "umem-use"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  const Buffer mem = dev().memory().allocate(1 << 14);
  UmemSpec s = Umem::of(mem);
  Mailbox in = create_umem_mailbox(s);
  using In = prm::create_umem_in;
  for (const std::uint64_t entries :
       {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    in.set<In::umem::num_of_mtt>(entries);
    EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  }
  s.page_offset = 4096;
  EXPECT_STATUS(dev().exec(create_umem_mailbox(s)), CmdStatus::kBadParam);
  s.page_offset = 0;
  s.log_page = 12 + 31;
  EXPECT_STATUS(dev().exec(create_umem_mailbox(s)), CmdStatus::kBadParam);
  s = Umem::of(mem);
  in = create_umem_mailbox(s);
  prm::store64(in.data() + In::bytes, s.pages[0]);  // neither to be read nor written
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in = create_umem_mailbox(s);
  in.set<In::umem::ats>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  Umem umem(dev(), s);
  EXPECT_OK(umem.destroy());
  EXPECT_STATUS(umem.destroy(), CmdStatus::kBadRes);
}

// A CQ of 64 CQEs in UMEMs of 4 pages, its parts to be moved about.
struct CqInUmem {
  explicit CqInUmem(Device& device) : dev(device), mem(device.memory().allocate(1 << 14)) {
    prm::set<C::log_cq_size>(in.data(), 6);
    prm::set<C::uar_page>(in.data(), dev.uar());
    prm::set<C::c_eqn_or_apu_element>(in.data(), dev.comp_eq(0).eqn());
    prm::set<C::dbr_umem_valid>(in.data(), 1);
    prm::set<In::cq_umem_valid>(in.data(), 1);
  }
  CommandResult make(std::uint32_t ring, std::uint64_t at, std::uint32_t dbr, std::uint64_t dbr_at) {
    in.set<prm::umem_ref::cq_id>(ring).set<prm::umem_ref::cq_offset>(at);
    in.set<prm::umem_ref::cqc_dbr_id<C>>(dbr).set<C::dbr_addr>(dbr_at);
    auto r = dev.exec(in);
    if (r.ok()) made.push_back(static_cast<std::uint32_t>(r.get<prm::create_cq_out::cqn>()));
    return r;
  }
  void clear() {
    for (const std::uint32_t cqn : made) {
      Mailbox gone(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes);
      dev.exec(gone.set<prm::destroy_cq_in::cqn>(cqn)).must();
    }
    made.clear();
  }
  using In = prm::create_cq_in;
  using C = In::cq_context;
  Device& dev;
  Buffer mem;
  Mailbox in{prm::op::CREATE_CQ, In::bytes};
  std::vector<std::uint32_t> made;
};

TEST_F(Devx, QueuesLieInsideOfTheirUmem) {
  breaks({"destroy-busy", "object-reference", "umem-use"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  CqInUmem cq(dev());
  Umem umem(dev(), Umem::of(cq.mem));
  constexpr std::uint64_t kSize = 1 << 14, kRing = 64 * 64;
  EXPECT_OK(cq.make(umem.id(), 0, umem.id(), kSize - 8));
  EXPECT_OK(cq.make(umem.id(), kSize - kRing, umem.id(), 0));
  EXPECT_OK(cq.make(umem.id(), 64, umem.id(), 0));
  for (const std::uint64_t at : {kSize - kRing + 64, kSize - 64, kSize, kSize + 64, ~std::uint64_t{0} - 63,
                                 std::uint64_t{0} - kRing, std::uint64_t{1} << 63})
    EXPECT_STATUS(cq.make(umem.id(), at, umem.id(), 0), CmdStatus::kBadParam);
  for (const std::uint64_t at : {kSize - 4, kSize, ~std::uint64_t{0}, ~std::uint64_t{7}, std::uint64_t{4}})
    EXPECT_STATUS(cq.make(umem.id(), 0, umem.id(), at), CmdStatus::kBadParam);
  EXPECT_STATUS(cq.make(umem.id(), 8, umem.id(), 0), CmdStatus::kBadParam);  // CQEs across pages
  EXPECT_STATUS(cq.make(umem.id() + 1, 0, umem.id(), 0), CmdStatus::kBadRes);
  EXPECT_STATUS(cq.make(umem.id(), 0, 0, 0), CmdStatus::kBadRes);
  // What uses it holds it: both ways.
  EXPECT_STATUS(umem.destroy(), CmdStatus::kBadResState);
  cq.clear();
  {
    Umem other(dev(), Umem::of(cq.mem));
    EXPECT_OK(cq.make(umem.id(), 0, other.id(), 0));
    EXPECT_STATUS(other.destroy(), CmdStatus::kBadResState);
    cq.clear();
  }
  // An offset of its own in its first page.
  UmemSpec s = Umem::of(cq.mem);
  s.page_offset = 0x100;
  Umem shifted(dev(), s);
  EXPECT_OK(cq.make(shifted.id(), kSize - kRing - 0x100, shifted.id(), 0));
  EXPECT_STATUS(cq.make(shifted.id(), kSize - kRing, shifted.id(), 0), CmdStatus::kBadParam);
  cq.clear();
  s.writable = false;
  Umem constant(dev(), s);
  EXPECT_STATUS(cq.make(constant.id(), 0, shifted.id(), 0), CmdStatus::kBadParam);  // CQEs are written
  EXPECT_OK(cq.make(shifted.id(), 0, constant.id(), 0));
  cq.clear();
}

TEST_F(Devx, UmemOfAnother) {
  breaks({"devx-owner"});
  Uctx a(dev()), b(dev());
  CqInUmem cq(dev());
  const Uctx::As as_a(dev(), a);
  Umem umem(dev(), Umem::of(cq.mem));
  const Uctx::As as_b(dev(), b);
  EXPECT_STATUS(cq.make(umem.id(), 0, umem.id(), 0), CmdStatus::kBadRes);
  EXPECT_STATUS(umem.destroy(), CmdStatus::kBadRes);
  const Uctx::As again(dev(), a);
  EXPECT_OK(umem.destroy());
}

TEST_F(Devx, ResizedCqLetsGoOfItsOldUmem) {
  breaks({"destroy-busy", "umem-use"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  CqInUmem cq(dev());
  Umem before(dev(), Umem::of(cq.mem)), dbr(dev(), Umem::of(cq.mem)), after(dev(), Umem::of(cq.mem));
  const auto made = cq.make(before.id(), 0, dbr.id(), 0).must();
  using In = prm::modify_cq_in;
  Mailbox in(prm::op::MODIFY_CQ, In::bytes, 1);
  in.set<In::cqn>(made.get<prm::create_cq_out::cqn>()).set<In::cq_context::log_cq_size>(7);
  in.set<In::cq_umem_valid>(1).set<prm::umem_ref::cq_id>(after.id());
  in.set<In::modify_field_select_resize_field_select::modify_field_select::modify_field_select>(1);
  in.set<prm::umem_ref::cq_offset>((1 << 14) - 64 * 64);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<prm::umem_ref::cq_offset>(0);
  EXPECT_OK(dev().exec(in));
  EXPECT_OK(before.destroy());
  EXPECT_STATUS(after.destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(dbr.destroy(), CmdStatus::kBadResState);
  cq.clear();
}

// The list of a ring's pages is held by the host, not by pages that the driver gives.
TEST_F(Devx, RingsShareTheMemoryForLists) {
  const Pd pd(dev());
  constexpr std::uint64_t kAll = 1u << 26, kSpare = 1024;  // entries, 8 bytes each
  MkeySpec empty;
  empty.pd = pd.pdn();
  empty.free = empty.umr_en = true;
  empty.access = 0;
  empty.reserve_octowords = (kAll - kSpare) / 2;
  Mr held(dev(), empty);
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  CqInUmem cq(dev());
  Umem umem(dev(), Umem::of(cq.mem));
  prm::set<CqInUmem::C::log_cq_size>(cq.in.data(), 7);  // two pages each
  CommandResult last;
  unsigned made = 0;
  while ((last = cq.make(umem.id(), 0, umem.id(), (1 << 14) - 8)).ok() && made < kSpare) ++made;
  EXPECT_STATUS(last, CmdStatus::kNoRes);
  EXPECT_LT(made, kSpare / 2);
  EXPECT_GT(made, kSpare / 4) << "the driver's own rings are smaller";
  cq.clear();
  for (unsigned i = 0; i < made; ++i) EXPECT_OK(cq.make(umem.id(), 0, umem.id(), (1 << 14) - 8));
  EXPECT_STATUS(cq.make(umem.id(), 0, umem.id(), (1 << 14) - 8), CmdStatus::kNoRes);
  cq.clear();
}

// ---- Traffic ----

class DevxTraffic : public Devx {
 protected:
  void run(const RingLayout& layout) {
    Uctx user(dev());
    const Uctx::As as(dev(), user);
    Pd pd(dev());
    CqOptions co;
    co.in_umem = true;
    co.ring = layout;
    Cq cq(dev(), co);
    QpOptions qo;
    qo.in_umem = true;
    qo.ring = layout;
    Qp a(dev(), pd, cq, cq, qo), b(dev(), pd, cq, cq, qo);
    QpAttr attr;
    attr.remote_qpn = b.qpn();
    a.connect(attr);
    attr.remote_qpn = a.qpn();
    b.connect(attr);
    const Buffer mem = dev().memory().allocate(1 << 14);
    Mr mr(dev(), Mr::of(pd, mem));
    for (unsigned i = 0; i < 100; ++i) {
      prm::store32(mem.data(), 0xfeed0000u + i);
      b.post_recv({{mem.bus(8192), mr.key(), 4}});
      SendWr w;
      w.sges = {{mem.bus(), mr.key(), 4}};
      a.post(w);
      const auto done = cq.wait(2);
      ASSERT_EQ(done.size(), 2u);
      EXPECT_FALSE(done[0].error() || done[1].error()) << done[0].text() << done[1].text();
      EXPECT_EQ(prm::load32(mem.data() + 8192), 0xfeed0000u + i);
    }
  }
};
TEST_F(DevxTraffic, QueuesInUmems) { run({}); }
TEST_F(DevxTraffic, QueuesInScatteredUmems) {
  RingLayout l;
  l.scattered = true;
  l.page_offset = 3;
  run(l);
}
TEST_F(DevxTraffic, QueuesInUmemsOfLargePages) {
  RingLayout l;
  l.log_page = 16;
  l.page_offset = 5;
  run(l);
}

// A key over a part of a UMEM leads to that part.
TEST_F(Devx, KeyOverAUmem) {
  breaks({"destroy-busy", "object-reference", "rkey-bounds", "umem-use"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  Pd pd(dev());
  const Buffer mem = dev().memory().allocate_scattered(1 << 14);
  UmemSpec us{mem.page_list(12)};
  us.page_offset = 0x80;
  Umem umem(dev(), us);
  const auto make = [&](std::uint64_t va, std::uint64_t len, std::uint64_t offset, std::uint32_t id,
                        bool flags = false) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.start = va;
    s.len = len;
    Mailbox in = create_mkey_mailbox(s);
    in.set<prm::create_mkey_in::mkey_umem_valid>(1);
    in.set<prm::umem_ref::mkey_id>(id).set<prm::umem_ref::mkey_offset>(offset);
    in.set<prm::create_mkey_in::pg_access>(flags);  // DPDK says that its list has some
    return dev().exec(in, prm::create_mkey_out::bytes);
  };
  const auto gone = [&](const CommandResult& r) {
    return name<prm::destroy_mkey_in::mkey_index>(
        prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes,
        static_cast<std::uint32_t>(r.get<prm::create_mkey_out::mkey_index>()));
  };
  constexpr std::uint64_t kVa = 0x7f0000001000, kRoom = (1 << 14) - 0x80;
  EXPECT_STATUS(make(kVa + 0x80, kRoom + 1, 0, umem.id()), CmdStatus::kBadParam);
  EXPECT_STATUS(make(kVa + 0x80, 1, kRoom, umem.id()), CmdStatus::kBadParam);
  EXPECT_STATUS(make(kVa + 0x80, 16, ~std::uint64_t{0} - 8, umem.id()), CmdStatus::kBadParam);
  EXPECT_STATUS(make(kVa, 16, 0, umem.id()), CmdStatus::kBadParam);  // addresses that differ in their page
  EXPECT_STATUS(make(kVa + 0x80, 16, 0, umem.id() + 7), CmdStatus::kBadRes);
  const auto made = make(kVa + 0x180, 0x3000, 0x100, umem.id());
  ASSERT_TRUE(made.ok()) << made.text();
  EXPECT_STATUS(umem.destroy(), CmdStatus::kBadResState);
  const std::uint32_t key =
      static_cast<std::uint32_t>(made.get<prm::create_mkey_out::mkey_index>()) << 8 | 0x42;

  Cq cq(dev());
  Qp a(dev(), pd, cq, cq), b(dev(), pd, cq, cq);
  QpAttr attr;
  attr.remote_qpn = b.qpn();
  a.connect(attr);
  attr.remote_qpn = a.qpn();
  b.connect(attr);
  mem.fill(0);
  const Buffer src = dev().memory().allocate(0x4000);
  Mr from(dev(), Mr::of(pd, src));
  for (std::size_t i = 0; i < 0x3000; ++i) src.data()[i] = static_cast<std::uint8_t>(i * 7 + 1);
  SendWr w;
  w.op = WqeOp::kRdmaWrite;
  w.sges = {{src.bus(), from.key(), 0x3000}};
  w.rkey = key;
  w.raddr = kVa + 0x180;
  a.post(w);
  EXPECT_FALSE(cq.wait_one().error());
  for (std::size_t i = 0; i < mem.size(); ++i) {
    const bool inside = i >= 0x180 && i < 0x3180;
    ASSERT_EQ(mem.data()[i], inside ? static_cast<std::uint8_t>((i - 0x180) * 7 + 1) : 0) << i;
  }
  const auto flagged = make(kVa + 0x180, 0x3000, 0x100, umem.id(), true);
  ASSERT_TRUE(flagged.ok()) << flagged.text();
  mem.fill(0);
  w.rkey = static_cast<std::uint32_t>(flagged.get<prm::create_mkey_out::mkey_index>()) << 8 | 0x42;
  a.post(w);
  EXPECT_FALSE(cq.wait_one().error());
  EXPECT_EQ(mem.data()[0x180 + 9], 64);
  w.raddr += 1;
  a.post(w);
  EXPECT_TRUE(cq.wait_one().error());  // one byte beyond the key
  EXPECT_OK(a.to_reset());
  EXPECT_OK(gone(made));
  EXPECT_OK(gone(flagged));
  EXPECT_OK(umem.destroy());
}

// The kernel says of each of a process' keys by pages that a UMEM has its list.
TEST_F(Devx, AnEmptyKeyBringsNoListOfItsOwn) {
  breaks({"mkey-list"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  Pd pd(dev());
  const Buffer mem = dev().memory().allocate(1 << 14);
  MkeySpec s = Mr::of(pd, mem);
  s.free = s.umr_en = true;
  Mailbox in = create_mkey_mailbox(s);
  in.set<prm::create_mkey_in::mkey_umem_valid>(1);
  EXPECT_STATUS(dev().exec(in, prm::create_mkey_out::bytes), CmdStatus::kBadParam);
}

// ---- Ethernet ----

TEST_F(DevxEth, RawFramesNeedTheRight) {
  breaks({"devx-command"});
  Uctx plain(dev()), raw(dev(), kRawTx);
  for (const Uctx* user : {&plain, &raw}) {
    const Uctx::As as(dev(), *user);
    Pd pd(dev());
    Cq cq(dev());
    auto td = make_transport_domain(dev());
    auto tis = make_tis(dev(), td.number());
    if (user == &plain) {
      EXPECT_THROW(Sq(dev(), pd, cq, tis.number()), BareError);
    } else {
      Sq sq(dev(), pd, cq, tis.number());
      EXPECT_OK(sq.modify(1, 3));
    }
  }
}

TEST_F(DevxEth, TablesOfRqsNameOwnOnes) {
  breaks({"devx-owner"});
  Uctx user(dev());
  Pd driver_pd(dev());
  Cq driver_cq(dev());
  EthRq driver_rq(dev(), driver_pd, driver_cq);
  const Uctx::As as(dev(), user);
  Pd pd(dev());
  Cq cq(dev());
  EthRq rq(dev(), pd, cq);
  EXPECT_THROW(make_rqt(dev(), {rq.rqn(), driver_rq.rqn()}), BareError);
  auto rqt = make_rqt(dev(), {rq.rqn(), rq.rqn()});
  EXPECT_STATUS(driver_rq.modify(1, 3), CmdStatus::kBadRes);
  EXPECT_OK(rq.modify(1, 3));
}

// ---- General objects ----

TEST_F(Devx, GeneralObjectsOfNoType) {
  breaks({"general-object"});
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, 256, 0x7e);
  EXPECT_FALSE(dev().exec(in).ok());
  in = Mailbox(prm::op::DESTROY_GENERAL_OBJECT, 16, 0x7e);
  EXPECT_FALSE(dev().exec(in).ok());
}

TEST_F(Devx, ReservedQpNumbersAreNoQps) {
  breaks({"cap-not-offered", "object-unknown"});
  using In = prm::general_obj_in_cmd_hdr;
  const auto c = dev().query_caps(0x20, true).must();
  const unsigned log = prm::get<prm::cap2_log_reserved_qpn_granularity>(
      c.out.data() + prm::query_hca_cap_out::capability::bit_off / 8);
  ASSERT_GT(log, 0u);
  EXPECT_NE(dev().cap<prm::cmd_hca_cap::general_obj_types>() >> prm::kGeneralReservedQpn & 1, 0u);
  const auto destroy = [&](std::uint32_t id) {
    Mailbox in(prm::op::DESTROY_GENERAL_OBJECT, In::bytes, 0);
    in.set<In::obj_type>(prm::kGeneralReservedQpn);
    in.set<In::obj_id>(id);
    return dev().exec(in);
  };
  Mailbox create(prm::op::CREATE_GENERAL_OBJECT, In::bytes + 16);
  create.set<In::obj_type>(prm::kGeneralReservedQpn);
  EXPECT_STATUS(dev().exec(create), CmdStatus::kBadParam);  // of one number
  create.set<In::op_param::create::log_obj_range>(log);
  std::vector<std::uint32_t> first;
  for (int i = 0; i < 3; ++i) {
    const auto r = dev().exec(create).must();
    first.push_back(r.get<prm::general_obj_out_cmd_hdr::obj_id>());
    EXPECT_LE(first.back() + (1u << log), 0xffffffu);
    for (int k = 0; k < i; ++k)
      EXPECT_GE(first[i] > first[k] ? first[i] - first[k] : first[k] - first[i], 1u << log);
  }
  Pd pd(dev());
  Cq cq(dev());
  for (int i = 0; i < 50; ++i) {
    Qp qp(dev(), pd, cq, cq);
    for (const std::uint32_t f : first) EXPECT_TRUE(qp.qpn() < f || qp.qpn() >= f + (1u << log));
  }
  EXPECT_FALSE(destroy(first[0] + 1).ok());
  for (const std::uint32_t f : first) EXPECT_OK(destroy(f));
  EXPECT_FALSE(destroy(first[0]).ok());
}

}  // namespace
}  // namespace hcasim::bare
