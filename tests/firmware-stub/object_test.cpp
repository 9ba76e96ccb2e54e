// SPDX-License-Identifier: BSD-3-Clause
// Objects and their references: who may be destroyed when, and what a wrong number or attribute gets.
#include "fixture.h"

#include "driver/bare/qp.h"

namespace hcasim::bare {
namespace {

class Objects : public FirmwareTest {};

TEST_F(Objects, EveryReferenceHolds) {
  breaks({"destroy-busy"});
  auto pd = std::make_unique<Pd>(dev());
  auto cq = std::make_unique<Cq>(dev());
  auto srq = std::make_unique<Srq>(dev(), *pd);
  auto qp = std::make_unique<Qp>(dev(), *pd, *cq, *cq, QpOptions{}, srq.get());
  EXPECT_STATUS(srq->destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(cq->destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(pd->destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(dev().comp_eq(0).destroy(), CmdStatus::kBadResState);
  EXPECT_OK(qp->destroy());
  EXPECT_STATUS(pd->destroy(), CmdStatus::kBadResState);  // the SRQ
  EXPECT_OK(srq->destroy());
  EXPECT_OK(cq->destroy());
  {
    Mr key(dev(), Mr::physical(*pd));
    EXPECT_STATUS(pd->destroy(), CmdStatus::kBadResState);
  }
  EXPECT_OK(pd->destroy());
}

TEST_F(Objects, XrcSrqHoldsDomainAndCq) {
  breaks({"destroy-busy", "object-reference", "object-unknown", "queue-pages", "srq-limit"});
  Pd pd(dev());
  Cq cq(dev());
  const auto xrcd = dev().exec(Mailbox(prm::op::ALLOC_XRCD, prm::alloc_xrcd_in::bytes)).must();
  const auto xrcdn = xrcd.get<prm::alloc_xrcd_out::xrcd>();
  const Buffer ring = dev().memory().allocate(8192);
  using In = prm::create_xrc_srq_in;
  using C = In::xrc_srq_context_entry;
  Mailbox in(prm::op::CREATE_XRC_SRQ, In::bytes + 8);
  in.set<C::log_xrc_srq_size>(6).set<C::log_rq_stride>(1).set<C::xrcd>(xrcdn).set<C::cqn>(cq.cqn());
  in.set<C::pd>(pd.pdn()).set<C::db_record_addr_l>((ring.bus() + 4096) >> 2);
  in.set<C::db_record_addr_h>((ring.bus() + 4096) >> 32);
  prm::set<In::pas>(in.data(), 0, ring.bus());
  const auto made = dev().exec(in).must();
  const auto srqn = made.get<prm::create_xrc_srq_out::xrc_srqn>();
  EXPECT_STATUS((name<prm::dealloc_xrcd_in::xrcd>(prm::op::DEALLOC_XRCD, prm::dealloc_xrcd_in::bytes, xrcdn)),
                CmdStatus::kBadResState);
  EXPECT_STATUS(cq.destroy(), CmdStatus::kBadResState);
  const auto q = name<prm::query_xrc_srq_in::xrc_srqn>(prm::op::QUERY_XRC_SRQ, prm::query_xrc_srq_in::bytes,
                                                       srqn, prm::query_xrc_srq_out::bytes);
  EXPECT_EQ(q.must().get<prm::query_xrc_srq_out::xrc_srq_context_entry::cqn>(), cq.cqn());
  Mailbox arm(prm::op::ARM_XRC_SRQ, prm::arm_xrc_srq_in::bytes, 1);
  arm.set<prm::arm_xrc_srq_in::xrc_srqn>(srqn).set<prm::arm_xrc_srq_in::lwm>(10);
  EXPECT_OK(dev().exec(arm));
  arm.set<prm::arm_xrc_srq_in::lwm>(65);
  EXPECT_STATUS(dev().exec(arm), CmdStatus::kBadParam);
  // One space of numbers, but not one of commands.
  EXPECT_STATUS((name<prm::destroy_rmp_in::rmpn>(prm::op::DESTROY_RMP, prm::destroy_rmp_in::bytes, srqn)),
                CmdStatus::kBadRes);
  EXPECT_OK((name<prm::destroy_xrc_srq_in::xrc_srqn>(prm::op::DESTROY_XRC_SRQ, prm::destroy_xrc_srq_in::bytes,
                                                     srqn)));
  in.set<C::xrcd>(0x1234);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadRes);
  in.set<C::xrcd>(xrcdn).set<C::log_xrc_srq_size>(9);  // beyond its page
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  EXPECT_OK((name<prm::dealloc_xrcd_in::xrcd>(prm::op::DEALLOC_XRCD, prm::dealloc_xrcd_in::bytes, xrcdn)));
}

TEST_F(Objects, CqsThatAreNotOffered) {
  breaks({"cap-not-offered"});
  const Buffer ring = dev().memory().allocate(8192);
  using In = prm::create_cq_in;
  using C = In::cq_context;
  const auto create = [&](const std::function<void(Mailbox&)>& change) {
    Mailbox in(prm::op::CREATE_CQ, In::bytes + 8);
    in.set<C::log_cq_size>(6).set<C::uar_page>(dev().uar()).set<C::dbr_addr>(ring.bus() + 4096);
    in.set<C::c_eqn_or_apu_element>(dev().comp_eq(0).eqn());
    prm::set<In::pas>(in.data(), 0, ring.bus());
    change(in);
    return dev().exec(in, prm::create_cq_out::bytes);
  };
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::cc>(1); }), CmdStatus::kBadParam);  // collapsed
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::apu_cq>(1); }), CmdStatus::kBadParam);
  const auto cqn = create([](Mailbox&) {}).must().get<prm::create_cq_out::cqn>();
  EXPECT_OK((name<prm::destroy_cq_in::cqn>(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes, cqn)));
}

TEST_F(Objects, SrqOfIssiZero) {
  Pd pd(dev());
  const Buffer ring = dev().memory().allocate(8192);
  using In = prm::create_srq_in;
  using C = In::srq_context_entry;
  Mailbox in(prm::op::CREATE_SRQ, In::bytes + 8);
  in.set<C::log_srq_size>(5).set<C::log_rq_stride>(2).set<C::pd>(pd.pdn()).set<C::dbr_addr>(ring.bus() +
                                                                                            4096);
  prm::set<In::pas>(in.data(), 0, ring.bus());
  const auto srqn = dev().exec(in).must().get<prm::create_srq_out::srqn>();
  Mailbox arm(prm::op::ARM_RQ, prm::arm_rq_in::bytes, 1);
  arm.set<prm::arm_rq_in::srq_number>(srqn).set<prm::arm_rq_in::lwm>(7);
  EXPECT_OK(dev().exec(arm));
  const auto q = name<prm::query_srq_in::srqn>(prm::op::QUERY_SRQ, prm::query_srq_in::bytes, srqn,
                                               prm::query_srq_out::bytes);
  EXPECT_EQ(q.must().get<prm::query_srq_out::srq_context_entry::lwm>(), 7u);
  EXPECT_EQ(q.get<prm::query_srq_out::srq_context_entry::pd>(), pd.pdn());
  EXPECT_OK((name<prm::destroy_srq_in::srqn>(prm::op::DESTROY_SRQ, prm::destroy_srq_in::bytes, srqn)));
}

TEST_F(Objects, QCounterInUseByAQp) {
  breaks({"destroy-busy", "object-unknown"});
  const auto id = dev()
                      .exec(Mailbox(prm::op::ALLOC_Q_COUNTER, prm::alloc_q_counter_in::bytes))
                      .must()
                      .get<prm::alloc_q_counter_out::counter_set_id>();
  EXPECT_GT(id, 0u);
  const auto free_it = [&] {
    return name<prm::dealloc_q_counter_in::counter_set_id>(prm::op::DEALLOC_Q_COUNTER,
                                                           prm::dealloc_q_counter_in::bytes, id);
  };
  Pd pd(dev());
  Cq cq(dev());
  {
    QpOptions o;
    o.counter_set = id;
    Qp qp(dev(), pd, cq, cq, o);
    EXPECT_OK(qp.to_init({}));
    EXPECT_STATUS(free_it(), CmdStatus::kBadResState);
    EXPECT_OK(qp.to_reset());
    EXPECT_OK(qp.to_init({}));
    EXPECT_STATUS(free_it(), CmdStatus::kBadResState);
  }
  EXPECT_OK(free_it());
  EXPECT_STATUS(free_it(), CmdStatus::kBadRes);
}

// The driver binds counters to QPs on their way, under the user context that all share.
TEST_F(Objects, QCounterBoundLater) {
  breaks({"object-reference"});
  Mailbox alloc(prm::op::ALLOC_Q_COUNTER, prm::alloc_q_counter_in::bytes);
  alloc.set<prm::alloc_q_counter_in::uid>(0xffff);
  const auto id = dev().exec(alloc).must().get<prm::alloc_q_counter_out::counter_set_id>();
  Pd pd(dev());
  Cq cq(dev());
  {
    Qp qp(dev(), pd, cq, cq);
    qp.connect({});
    const auto bind = [&](std::uint32_t set) {
      return qp.modify(prm::op::RTS2RTS_QP, 1u << 25,
                       [set](std::uint8_t* c) { prm::set<prm::qpc::counter_set_id>(c, set); });
    };
    EXPECT_STATUS(bind(id + 1), CmdStatus::kBadRes);
    EXPECT_OK(bind(id));
    EXPECT_EQ(qp.query().must().get<prm::query_qp_out::qpc::counter_set_id>(), id);
    EXPECT_OK(bind(0));
  }
  EXPECT_OK((name<prm::dealloc_q_counter_in::counter_set_id>(prm::op::DEALLOC_Q_COUNTER,
                                                             prm::dealloc_q_counter_in::bytes, id)));
}

TEST_F(Objects, UarPagesLieInTheBarAndRunOut) {
  std::vector<std::uint32_t> pages;
  for (;;) {
    const auto r = dev().exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes));
    if (!r.ok()) {
      EXPECT_STATUS(r, CmdStatus::kLim);
      break;
    }
    pages.push_back(r.get<prm::alloc_uar_out::uar>());
    EXPECT_GE(pages.back(), 3u);
    ASSERT_LT((pages.back() + 1ull) * 4096, HCA_BAR0_SIZE + 1ull);
  }
  EXPECT_GT(pages.size(), 100u);
  for (const std::uint32_t p : pages)
    EXPECT_OK((name<prm::dealloc_uar_in::uar>(prm::op::DEALLOC_UAR, prm::dealloc_uar_in::bytes, p)));
}

TEST_F(Objects, GsiQpOnlyOnce) {
  breaks({"qp-special"});
  Pd pd(dev());
  Cq cq(dev());
  QpOptions o;
  o.type = QpType::kQp1;
  Qp gsi(dev(), pd, cq, cq, o);
  EXPECT_GT(gsi.qpn(), 1u);
  EXPECT_THROW(Qp(dev(), pd, cq, cq, o), BareError);
}

TEST_F(Objects, TypesThatAreNotOffered) {
  breaks({"qp-type", "wq-layout"});
  Pd pd(dev());
  Cq cq(dev());
  for (const unsigned st : {3u, 4u, 5u, 6u, 9u, 0xau, 0xfu, 0xffu}) {
    QpOptions o;
    o.type = static_cast<QpType>(st);
    EXPECT_THROW(Qp(dev(), pd, cq, cq, o), BareError) << st;
  }
}

TEST_F(Objects, MulticastMembershipHoldsTheQp) {
  breaks({"destroy-busy", "multicast-attached", "multicast-gid", "object-unknown"});
  Pd pd(dev());
  Cq cq(dev());
  QpOptions o;
  o.type = QpType::kUd;
  Qp qp(dev(), pd, cq, cq, o);
  Qp rc(dev(), pd, cq, cq);
  const auto group = [&](std::uint16_t opcode, std::uint32_t qpn, std::uint8_t first) {
    Mailbox in(opcode, prm::attach_to_mcg_in::bytes);
    in.set<prm::attach_to_mcg_in::qpn>(qpn);
    in[prm::attach_to_mcg_in::multicast_gid::bit_off / 8] = first;
    in[prm::attach_to_mcg_in::multicast_gid::bit_off / 8 + 15] = 0x42;
    return dev().exec(in);
  };
  EXPECT_STATUS(group(prm::op::DETACH_FROM_MCG, qp.qpn(), 0xff), CmdStatus::kBadRes);
  EXPECT_STATUS(group(prm::op::ATTACH_TO_MCG, qp.qpn(), 0xfe), CmdStatus::kBadParam);
  EXPECT_STATUS(group(prm::op::ATTACH_TO_MCG, rc.qpn(), 0xff), CmdStatus::kBadParam);
  EXPECT_STATUS(group(prm::op::ATTACH_TO_MCG, 0xabcdef, 0xff), CmdStatus::kBadRes);
  EXPECT_OK(group(prm::op::ATTACH_TO_MCG, qp.qpn(), 0xff));
  EXPECT_OK(group(prm::op::ATTACH_TO_MCG, qp.qpn(), 0xff));  // again changes nothing
  EXPECT_STATUS(qp.destroy(), CmdStatus::kBadResState);
  EXPECT_OK(group(prm::op::DETACH_FROM_MCG, qp.qpn(), 0xff));
  EXPECT_OK(qp.destroy());
}

TEST_F(Objects, KeysThatAreRefused) {
  breaks({"cap-limit", "cap-not-offered", "mkey-layout", "mkey-list", "mkey-wrap", "object-reference"});
  Pd pd(dev());
  using In = prm::create_mkey_in;
  using C = In::memory_key_mkey_entry;
  const auto make = [&](const std::function<void(Mailbox&)>& spoil) {
    Mailbox in(prm::op::CREATE_MKEY, In::bytes + 16);
    in.set<C::access_mode_1_0>(1)
        .set<C::lr>(1)
        .set<C::pd>(pd.pdn())
        .set<C::qpn>(0xffffff)
        .set<C::log_page_size>(12);
    in.set<C::start_addr>(0x10000).set<C::len>(8192).set<C::translations_octword_size>(1);
    in.set<In::translations_octword_actual_size>(1);
    spoil(in);
    return dev().exec(in);
  };
  const auto good = make([](Mailbox&) {}).must();
  EXPECT_OK((name<prm::destroy_mkey_in::mkey_index>(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes,
                                                    good.get<prm::create_mkey_out::mkey_index>())));
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::pd>(0xfffff); }), CmdStatus::kBadRes);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::access_mode_4_2>(1); }), CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::len>(8193); }), CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::start_addr>(0x10001); }), CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::start_addr>(~0ull - 100); }), CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::log_page_size>(5); }), CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::bsf_en>(1); }), CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) {
                  in.set<C::translations_octword_size>(2).set<In::translations_octword_actual_size>(2);
                }),
                CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<In::translations_octword_actual_size>(0xffffffff); }),
                CmdStatus::kBadParam);
  EXPECT_STATUS(make([](Mailbox& in) { in.set<C::free>(1).set<C::translations_octword_size>(0xffffffff); }),
                CmdStatus::kLim);
}

TEST_F(Objects, CqModeration) {
  breaks({"cap-not-offered"});
  Cq cq(dev());
  using In = prm::modify_cq_in;
  using Mask = In::modify_field_select_resize_field_select::modify_field_select::modify_field_select;
  Mailbox in(prm::op::MODIFY_CQ, In::bytes);
  in.set<In::cqn>(cq.cqn()).set<Mask>(1u << 0 | 1u << 1 | 1u << 4);
  in.set<In::cq_context::cq_period>(32).set<In::cq_context::cq_max_count>(8);
  EXPECT_OK(dev().exec(in));
  in.set<In::cq_context::cq_period_mode>(2);  // reserved
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<In::cq_context::cq_period_mode>(1);  // from the CQE
  EXPECT_OK(dev().exec(in));
  using Out = prm::query_cq_out::cq_context;
  const auto q = name<prm::query_cq_in::cqn>(prm::op::QUERY_CQ, prm::query_cq_in::bytes, cq.cqn(),
                                             prm::query_cq_out::bytes)
                     .must();
  EXPECT_EQ(q.get<Out::cq_period>(), 32u);
  EXPECT_EQ(q.get<Out::cq_max_count>(), 8u);
  EXPECT_EQ(q.get<Out::cq_period_mode>(), 1u);
}

}  // namespace
}  // namespace hcasim::bare
