// SPDX-License-Identifier: BSD-3-Clause
// What mlx5_core and mlx5_ib ask for beside the data path: XRC objects, counters, port tables, registers.
#include <algorithm>
#include <cstring>

#include "fixture.h"
#include "prm/umem.h"
#include "prm/vport_counters.h"

namespace hcasim::bare {
namespace {

using DriverObjects = DeviceTest;

class XrcSrq {
 public:
  XrcSrq(Device& d, const Pd& pd, Cq& cq, std::uint32_t xrcd)
      : dev_(d), ring_(d.memory(), 64 << 5, {}), dbr_(d.allocate_dbr()) {
    using In = prm::create_xrc_srq_in;
    using C = In::xrc_srq_context_entry;
    const auto pas = ring_.pages();
    Mailbox in(prm::op::CREATE_XRC_SRQ, In::bytes + pas.size() * 8);
    in.set<C::log_xrc_srq_size>(6).set<C::log_rq_stride>(1).set<C::xrcd>(xrcd).set<C::cqn>(cq.cqn());
    in.set<C::user_index>(0xffffff).set<C::pd>(pd.pdn());
    in.set<C::db_record_addr_h>(dbr_.bus >> 32).set<C::db_record_addr_l>((dbr_.bus & 0xffffffff) >> 2);
    for (std::size_t i = 0; i < pas.size(); ++i) prm::set<In::pas>(in.data(), i, pas[i]);
    const auto r = d.exec(in, prm::create_xrc_srq_out::bytes);
    srqn = static_cast<std::uint32_t>(r.must().get<prm::create_xrc_srq_out::xrc_srqn>());
  }
  ~XrcSrq() {
    Mailbox in(prm::op::DESTROY_XRC_SRQ, prm::destroy_xrc_srq_in::bytes);
    EXPECT_CMD_OK(dev_.exec(in.set<prm::destroy_xrc_srq_in::xrc_srqn>(srqn)));
    dev_.free_dbr(dbr_);
  }
  std::uint32_t srqn = 0;

 private:
  Device& dev_;
  Ring ring_;
  Dbr dbr_;
};

TEST_F(DriverObjects, XrcSrqAsAtProbe) {
  breaks({"destroy-busy"});
  Pd pd(dev());
  Cq cq(dev());
  const auto x =
      dev().exec(Mailbox(prm::op::ALLOC_XRCD, prm::alloc_xrcd_in::bytes), prm::alloc_xrcd_out::bytes);
  const auto xrcd = static_cast<std::uint32_t>(x.must().get<prm::alloc_xrcd_out::xrcd>());
  EXPECT_NE(xrcd, 0u);
  Mailbox free_xrcd(prm::op::DEALLOC_XRCD, prm::dealloc_xrcd_in::bytes);
  free_xrcd.set<prm::dealloc_xrcd_in::xrcd>(xrcd);
  {
    XrcSrq srq(dev(), pd, cq, xrcd);
    EXPECT_NE(srq.srqn, 0u);
    Mailbox q(prm::op::QUERY_XRC_SRQ, prm::query_xrc_srq_in::bytes);
    const auto r =
        dev().exec(q.set<prm::query_xrc_srq_in::xrc_srqn>(srq.srqn), prm::query_xrc_srq_out::bytes).must();
    EXPECT_EQ(r.get<prm::query_xrc_srq_out::xrc_srq_context_entry::cqn>(), cq.cqn());
    EXPECT_EQ(r.get<prm::query_xrc_srq_out::xrc_srq_context_entry::log_xrc_srq_size>(), 6u);
    Mailbox arm(prm::op::ARM_XRC_SRQ, prm::arm_xrc_srq_in::bytes, 1);
    arm.set<prm::arm_xrc_srq_in::xrc_srqn>(srq.srqn).set<prm::arm_xrc_srq_in::lwm>(5);
    EXPECT_CMD_OK(dev().exec(arm));
    EXPECT_CMD_STATUS(cq.destroy(), CmdStatus::kBadResState);
    EXPECT_CMD_STATUS(dev().exec(free_xrcd), CmdStatus::kBadResState);
  }
  EXPECT_CMD_OK(dev().exec(free_xrcd));
}

class QCounter {
 public:
  explicit QCounter(Device& d) : dev_(d) {
    const auto r = d.exec(Mailbox(prm::op::ALLOC_Q_COUNTER, prm::alloc_q_counter_in::bytes),
                          prm::alloc_q_counter_out::bytes);
    id = static_cast<std::uint32_t>(r.must().get<prm::alloc_q_counter_out::counter_set_id>());
  }
  ~QCounter() {
    Mailbox in(prm::op::DEALLOC_Q_COUNTER, prm::dealloc_q_counter_in::bytes);
    EXPECT_CMD_OK(dev_.exec(in.set<prm::dealloc_q_counter_in::counter_set_id>(id)));
  }
  template <class F>
  std::uint64_t get(bool clear = false) {
    Mailbox in(prm::op::QUERY_Q_COUNTER, prm::query_q_counter_in::bytes);
    in.set<prm::query_q_counter_in::counter_set_id>(id).set<prm::query_q_counter_in::clear>(clear);
    return dev_.exec(in, prm::query_q_counter_out::bytes).must().get<F>();
  }
  std::uint32_t id = 0;

 private:
  Device& dev_;
};

using Q = prm::query_q_counter_out;

TEST_F(DriverObjects, QCountersCount) {
  QCounter q(dev());
  EXPECT_NE(q.id, 0u) << "0 means none";
  {
    PairOptions o;
    o.counter_set = q.id;
    Pair p(dev(), o);
    for (int i = 0; i < 3; ++i) expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)));
    for (int i = 0; i < 2; ++i) expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaRead, 0, 64)));
    expect_good(p.acq, p.a.post(p.wr(WqeOp::kAtomicFa, 0, 8)));
    EXPECT_EQ(q.get<Q::rx_write_requests>(), 3u);
    EXPECT_EQ(q.get<Q::rx_read_requests>(), 2u);
    EXPECT_EQ(q.get<Q::rx_atomic_requests>(), 1u);
    EXPECT_EQ(q.get<Q::out_of_buffer>(), 0u);
    p.a.post(p.wr(WqeOp::kSend, 0, 64));
    machine().advance(100'000);
    EXPECT_GE(q.get<Q::out_of_buffer>(), 1u);
    p.b.post_recv({p.bsge(0, 64)});
    p.acq.wait(1);
    EXPECT_EQ(q.get<Q::rx_write_requests>(true), 3u);
    EXPECT_EQ(q.get<Q::rx_write_requests>(), 0u) << "cleared by the query before";
  }
  {
    PairOptions o;
    o.counter_set = q.id;
    o.attr.ack_timeout = 6;
    Pair p(dev(), o);
    ASSERT_EQ(fn().inject("drop=0.2,duplicate=0.2"), "");
    for (int i = 0; i < 40; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 10000), false);
    p.a.ring_doorbell();
    ASSERT_EQ(p.acq.wait(40).size(), 40u);
    fn().inject("none");
    EXPECT_GT(q.get<Q::out_of_sequence>(), 0u);
    EXPECT_GT(q.get<Q::duplicate_request>(), 0u);
    EXPECT_GT(q.get<Q::packet_seq_err>(), 0u);
    EXPECT_GT(q.get<Q::local_ack_timeout_err>(), 0u);
  }
}

using RnrRetriesExceeded = prm::query_q_counter_more_out::req_rnr_retries_exceeded;

TEST_F(DriverObjects, RnrNaksCountWhileThereAreRetries) {
  QCounter q(dev());
  PairOptions o;
  o.counter_set = q.id;
  o.attr.min_rnr_nak = 1;  // 0.01 ms
  for (const unsigned rnr_retry : {7u, 6u}) {
    o.attr.rnr_retry = rnr_retry;
    Pair p(dev(), o);
    const std::uint64_t before = q.get<Q::rnr_nak_retry_err>();
    const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 64));
    machine().advance(35'000);
    EXPECT_GE(q.get<Q::rnr_nak_retry_err>(), before + 2);
    p.b.post_recv({p.bsge(0, 64)});
    expect_good(p.acq, n);
  }
  EXPECT_EQ(q.get<RnrRetriesExceeded>(), 0u);
  EXPECT_EQ(q.get<Q::req_cqe_error>(true), 0u);
  o.attr.rnr_retry = 2;
  Pair p(dev(), o);
  p.a.post(p.wr(WqeOp::kSend, 0, 64));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRnrRetryExc);
  EXPECT_EQ(q.get<Q::rnr_nak_retry_err>(), 2u) << "those after which it was sent again";
  EXPECT_EQ(q.get<RnrRetriesExceeded>(), 1u);
  EXPECT_EQ(q.get<Q::req_transport_retries_exceeded>(), 0u);
  EXPECT_EQ(q.get<Q::req_cqe_error>(), 1u);
}

TEST_F(DriverObjects, RetriesThatRunOutAndFlushesCount) {
  QCounter q(dev());
  PairOptions o;
  o.counter_set = q.id;
  o.attr.ack_timeout = 6;
  o.attr.retry_count = 2;
  Pair p(dev(), o);
  ASSERT_EQ(fn().inject("drop=1"), "");
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_EQ(p.acq.wait(2).size(), 2u);
  fn().inject("none");
  EXPECT_EQ(q.get<Q::req_transport_retries_exceeded>(), 1u);
  EXPECT_EQ(q.get<Q::local_ack_timeout_err>(), 3u);
  EXPECT_EQ(q.get<RnrRetriesExceeded>(), 0u);
  // What is flushed is completed with an error, too.
  EXPECT_EQ(q.get<Q::req_cqe_flush_error>(), 1u);
  EXPECT_EQ(q.get<Q::req_cqe_error>(), 2u);
  for (int i = 0; i < 3; ++i) p.b.post_recv({p.bsge(0, 64)});
  EXPECT_TRUE(p.b.to_error().ok());
  EXPECT_EQ(p.bcq.wait(3).size(), 3u);
  EXPECT_EQ(q.get<Q::resp_cqe_flush_error>(), 3u);
  EXPECT_EQ(q.get<Q::resp_cqe_error>(), 3u);
}

// Asked by UCX of each HCA that it opens.
TEST_F(DriverObjects, PortsAreNotBonded) {
  Mailbox in(prm::op::QUERY_LAG, prm::query_lag_in::bytes);
  const CommandResult r = dev().exec(in, prm::query_lag_out::bytes);
  ASSERT_TRUE(r.ok()) << r.text();
  EXPECT_EQ(r.get<prm::query_lag_out::ctx::lag_state>(), 0u);
  EXPECT_EQ(dev().cap<prm::cmd_hca_cap::lag_master>(), 0u);
}

TEST_F(DriverObjects, AreCounted) {
  const auto before = leftover_objects(fn());
  EXPECT_NE(before.find("eqs=5 "), std::string::npos) << before;
  {
    Pair p(dev());
    const auto during = leftover_objects(fn());
    EXPECT_NE(during.find("qps=2 "), std::string::npos) << during;
    EXPECT_NE(during.find("cqs=2 "), std::string::npos) << during;
    EXPECT_NE(during.find("mkeys=2 "), std::string::npos) << during;
  }
  EXPECT_EQ(leftover_objects(fn()), before);
}

TEST_F(DriverObjects, PagesAreAskedForAsObjectsGrow) {
  Pd pd(dev());
  Cq cq(dev());
  const std::size_t before = dev().pages_given();
  Buffer b = dev().memory().allocate(4 << 20);
  {
    std::vector<std::unique_ptr<Mr>> mrs;
    std::vector<std::unique_ptr<Qp>> qps;
    for (int i = 0; i < 600; ++i) mrs.push_back(std::make_unique<Mr>(dev(), Mr::of(pd, b)));
    for (int i = 0; i < 600; ++i) qps.push_back(std::make_unique<Qp>(dev(), pd, cq, cq));
    EXPECT_GT(dev().page_requests(), 0u);
    EXPECT_GT(dev().pages_given(), before);
    EXPECT_NE(leftover_objects(fn()).find("mkeys=600 "), std::string::npos);
    expect_serves_on();
  }
  // A driver that takes pages back gets those that are free, and no more.
  const unsigned all = static_cast<unsigned>(dev().pages_given());
  const unsigned taken = dev().take_pages(std::min(all, 500u));
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, all);
  expect_serves_on();
}

TEST_F(DriverObjects, NoPagesMakesALimitErrorNotAHang) {
  Pd pd(dev());
  Buffer b = dev().memory().allocate(4 << 20);
  dev().set_pages_available(false);
  std::vector<std::unique_ptr<Mr>> mrs;
  std::string refused;
  for (int i = 0; i < 2000 && refused.empty(); ++i) {
    try {
      mrs.push_back(std::make_unique<Mr>(dev(), Mr::of(pd, b)));
    } catch (const BareError& e) {
      refused = e.what();
    }
  }
  EXPECT_NE(refused.find("CREATE_MKEY"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("no answer"), std::string::npos) << refused;
  dev().set_pages_available(true);
  for (int i = 0; i < 100; ++i) mrs.push_back(std::make_unique<Mr>(dev(), Mr::of(pd, b)));
  mrs.clear();
  expect_serves_on();
}

// Pages that nobody asked for, and that are nowhere: some are taken, as a card would, but not without end.
TEST_F(DriverObjects, PagesWithoutEndAreRefused) {
  constexpr std::uint32_t kEach = 1 << 15;
  const auto give = [&](std::uint64_t from) {
    Mailbox in(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes + std::size_t{kEach} * 8, 1);
    in.set<prm::manage_pages_in::input_num_entries>(kEach);
    for (std::uint32_t i = 0; i < kEach; ++i)
      prm::set<prm::manage_pages_in::pas>(in.data(), i, from + i * kPage);
    return dev().exec(in);
  };
  std::uint64_t from = std::uint64_t{1} << 45;
  unsigned given = 0;
  for (; given < 64; ++given, from += std::uint64_t{kEach} * kPage)
    if (const CommandResult r = give(from); !r.ok()) {
      EXPECT_EQ(r.status, CmdStatus::kLim);
      break;
    }
  EXPECT_GT(given, 0u);
  EXPECT_LT(given, 64u);
  Mailbox take(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes, 2);
  take.set<prm::manage_pages_in::input_num_entries>(kEach);
  for (unsigned i = 0; i < given; ++i)
    EXPECT_EQ(dev()
                  .exec(take, prm::manage_pages_out::bytes + std::size_t{kEach} * 8)
                  .must()
                  .get<prm::manage_pages_out::output_num_entries>(),
              kEach);
  expect_serves_on();
}

// What UMEMs list is kept by the card: of one page, many times over, not without end.
TEST_F(DriverObjects, ListsOfUmemsWithoutEndAreRefused) {
  constexpr std::uint32_t kEntries = 1 << 15;
  using In = prm::create_umem_in;
  const Buffer b = dev().memory().allocate(kPage);
  const std::size_t list = In::umem::mtt::bit_off / 8;
  Mailbox in(prm::op::CREATE_UMEM, list + std::size_t{kEntries} * 8);
  in.set<In::umem::num_of_mtt>(kEntries);
  for (std::uint32_t i = 0; i < kEntries; ++i)
    prm::store64(in.data() + list + 8 * i, b.bus() | prm::umem_ref::kMttRead | prm::umem_ref::kMttWrite);
  std::vector<std::uint32_t> made;
  while (made.size() < 3000) {
    const CommandResult r = dev().exec(in, prm::create_umem_out::bytes);
    if (!r.ok()) {
      EXPECT_EQ(r.status, CmdStatus::kLim);
      break;
    }
    made.push_back(r.get<prm::create_umem_out::umem_id>());
  }
  EXPECT_GT(made.size(), 10u);
  EXPECT_LT(made.size(), 3000u);
  const auto destroy = [&](std::uint32_t id) {
    Mailbox d(prm::op::DESTROY_UMEM, prm::destroy_umem_in::bytes);
    EXPECT_TRUE(dev().exec(d.set<prm::destroy_umem_in::umem_id>(id)).ok());
  };
  destroy(made.back());
  made.back() = dev().exec(in, prm::create_umem_out::bytes).must().get<prm::create_umem_out::umem_id>();
  for (const std::uint32_t id : made) destroy(id);
  expect_serves_on();
}

TEST_F(DriverObjects, PagesThatAreWrong) {
  breaks({"page-address", "page-given-twice", "page-list"});
  const auto give = [&](std::vector<std::uint64_t> pages, std::uint32_t count) {
    Mailbox in(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes + pages.size() * 8, 1);
    in.set<prm::manage_pages_in::input_num_entries>(count);
    for (std::size_t i = 0; i < pages.size(); ++i)
      prm::set<prm::manage_pages_in::pas>(in.data(), i, pages[i]);
    return dev().exec(in);
  };
  Buffer b = dev().memory().allocate(kPage);
  const auto refused = [](const CommandResult& r) { return r.done && !r.ok() && r.syndrome != 0; };
  EXPECT_TRUE(refused(give({b.bus() + 8}, 1))) << "not aligned";
  EXPECT_TRUE(refused(give({b.bus(), b.bus()}, 2))) << "twice";
  EXPECT_TRUE(refused(give({b.bus()}, 100))) << "more than the mailbox has";
  EXPECT_TRUE(refused(give({b.bus()}, 0xffffffff)));
  expect_serves_on();
}

TEST_F(DriverObjects, PkeyTable) {
  breaks({"table-index"});
  Mailbox in(prm::op::QUERY_HCA_VPORT_PKEY, prm::query_hca_vport_pkey_in::bytes);
  in.set<prm::query_hca_vport_pkey_in::pkey_index>(0);
  const auto r = dev().exec(in, prm::query_hca_vport_pkey_out::bytes + 4);
  EXPECT_EQ(prm::load32(r.must().out.data() + 16) & 0xffff, 0xffffu);
  in.set<prm::query_hca_vport_pkey_in::pkey_index>(0xffff);  // all
  const auto all = dev().exec(in, prm::query_hca_vport_pkey_out::bytes + 128 * 4).must();
  EXPECT_EQ(prm::load32(all.out.data() + 16) & 0xffff, 0xffffu);
  for (unsigned i = 1; i < 128; ++i) EXPECT_EQ(prm::load32(all.out.data() + 16 + 4 * i) & 0xffff, 0u);
  in.set<prm::query_hca_vport_pkey_in::pkey_index>(500);
  EXPECT_CMD_STATUS(dev().exec(in, prm::query_hca_vport_pkey_out::bytes + 4), CmdStatus::kIx);
}

TEST_F(DriverObjects, GidTable) {
  const auto g = dev().gid(0);
  EXPECT_EQ(g[0], 0xfe);
  EXPECT_EQ(g[1], 0x80) << "link-local prefix";
  using Out = prm::query_hca_vport_context_out;
  const auto v = dev().query_vport().must();
  EXPECT_EQ(prm::load64(g.data() + 8), v.get<Out::hca_vport_context::port_guid>());
}

TEST_F(DriverObjects, PortRegisters) {
  breaks({"register-unknown"});
  std::vector<std::uint8_t> reg(64);
  prm::store32(reg.data(), 1 << 16 | 1);  // local_port, proto_mask IB
  const auto ptys = dev().access_register(0x5004, false, reg).must();
  const std::uint8_t* d = ptys.out.data() + 16;
  const std::uint32_t oper = prm::load32(d + 0x28);
  EXPECT_EQ(__builtin_popcount(oper & 0xffff), 1) << "one speed";
  EXPECT_EQ(__builtin_popcount(oper >> 16), 1) << "one width";
  reg.assign(16, 0);
  prm::store32(reg.data(), 1 << 16);
  const auto pmtu = dev().access_register(0x5003, false, reg).must();
  EXPECT_EQ(prm::load32(pmtu.out.data() + 16 + 4) >> 16, 4096u);
  EXPECT_EQ(prm::load32(pmtu.out.data() + 16 + 12) >> 16, 4096u);
  const auto pvlc = dev().access_register(0x500f, false, reg).must();
  const unsigned vl = prm::load32(pvlc.out.data() + 16 + 4) & 0xf;
  EXPECT_TRUE(vl == 1 || vl == 2 || vl == 4 || vl == 8 || vl == 15) << vl;
  const auto desc = dev().access_register(0x6001, false, std::vector<std::uint8_t>(64)).must();
  EXPECT_NE(desc.out[16], 0);
  EXPECT_CMD_STATUS(dev().access_register(0x7777, false, reg), CmdStatus::kBadParam);
}

TEST_F(DriverObjects, CapMaskOfThePortCanBeSet) {
  using In = prm::modify_hca_vport_context_in;
  Mailbox in(prm::op::MODIFY_HCA_VPORT_CONTEXT, In::bytes);
  in.set<In::hca_vport_context::cap_mask1>(1 << 16).set<In::hca_vport_context::cap_mask1_field_select>(1
                                                                                                       << 16);
  EXPECT_CMD_OK(dev().exec(in));
  using Out = prm::query_hca_vport_context_out;
  EXPECT_NE(dev().query_vport().must().get<Out::hca_vport_context::cap_mask1>() & 1 << 16, 0u);
}

TEST_F(DriverObjects, UarPagesAreInsideTheBarAndDistinct) {
  std::vector<std::uint32_t> uars;
  for (int i = 0; i < 100; ++i) {
    const auto r =
        dev().exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes), prm::alloc_uar_out::bytes);
    const auto uar = static_cast<std::uint32_t>(r.must().get<prm::alloc_uar_out::uar>());
    EXPECT_GE(uar, 3u);
    EXPECT_LT(uar * 4096ULL, HCA_BAR0_SIZE);
    EXPECT_EQ(std::count(uars.begin(), uars.end(), uar), 0);
    EXPECT_NE(uar, dev().uar());
    uars.push_back(uar);
  }
  for (const std::uint32_t u : uars) {
    Mailbox in(prm::op::DEALLOC_UAR, prm::dealloc_uar_in::bytes);
    EXPECT_CMD_OK(dev().exec(in.set<prm::dealloc_uar_in::uar>(u)));
  }
}

TEST_F(DriverObjects, AckCoalescing) {
  // 200 writes of one packet each: far fewer acknowledgements than packets come back.
  PairOptions o;
  o.log_sq = 9;
  Pair p(dev(), o);
  const auto json = [this] { return fn().stats(); };
  for (int i = 0; i < 200; ++i) {
    auto w = p.wr(WqeOp::kRdmaWrite, 0, 64);
    w.signaled = i == 199;
    p.a.post(w, false);
  }
  const std::string name = "tx_packets";
  ASSERT_NE(json().find('"' + name + '"'), std::string::npos) << "no counter named " << name;
  const std::uint64_t before = fn().counter(name);
  p.a.ring_doorbell();
  expect_good(p.acq, 199);
  const std::uint64_t sent = fn().counter(name) - before;
  EXPECT_GE(sent, 201u);
  EXPECT_LE(sent, 260u) << "acknowledgements are coalesced";
}

TEST_F(DriverObjects, ResetAtAnyMoment) {
  for (int i = 0; i < 40; ++i) {
    {
      Pair p(dev());
      std::vector<std::unique_ptr<Qp>> more;
      for (int k = 0; k < 16; ++k) {
        p.b.post_recv({p.bsge(0, 20000)});
        p.a.post(p.wr(k % 3 ? WqeOp::kSend : k % 2 ? WqeOp::kRdmaRead : WqeOp::kRdmaWrite, 0, 20000), false);
      }
      p.a.ring_doorbell();
      p.acq.arm();
      p.bcq.arm();
      bool answered = false;
      dev().cmd().submit(Mailbox(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes),
                         prm::query_adapter_out::bytes, [&](const CommandResult&) { answered = true; });
      machine().advance(i * 311);
      dev().function_reset();
    }
    // All memory of that life is free now: any access to it counts as stray.
    machine().advance(20'000'000);
    ASSERT_EQ(leftover_objects(fn()), "");
    dev().probe();
  }
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
