// SPDX-License-Identifier: BSD-3-Clause
// TIS, TIR, RQT, RQ, SQ: references, states, what a wrong number or attribute gets.
#include "fixture.h"

#include "driver/bare/eth.h"

namespace hcasim::bare {
namespace {

class EthObjects : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }

  CommandResult destroy_td(std::uint32_t number) {
    return name<prm::dealloc_transport_domain_in::transport_domain>(
        prm::op::DEALLOC_TRANSPORT_DOMAIN, prm::dealloc_transport_domain_in::bytes, number);
  }
  CommandResult create_rqt(std::uint32_t max, std::uint32_t actual, const std::vector<std::uint32_t>& rqns) {
    using In = prm::create_rqt_in;
    Mailbox in(prm::op::CREATE_RQT, In::bytes + 4 * rqns.size());
    in.set<In::rqt_context::rqt_max_size>(max).set<In::rqt_context::rqt_actual_size>(actual);
    for (std::size_t i = 0; i < rqns.size(); ++i)
      prm::set<prm::rq_num::rq_num>(prm::at<In::rqt_context::rq_num>(in.data(), i), rqns[i]);
    return dev().exec(in);
  }
};

TEST_F(EthObjects, EveryReferenceHolds) {
  breaks({"destroy-busy", "use-after-destroy"});
  Pd pd(dev());
  Cq cq(dev());
  auto td = make_transport_domain(dev());
  auto tis = make_tis(dev(), td.number());
  EthRq rq(dev(), pd, cq);
  auto rqt = make_rqt(dev(), {rq.rqn()});
  TirSpec spec;
  spec.rqt = rqt.number();
  spec.transport_domain = td.number();
  auto tir = make_tir(dev(), spec);
  Sq sq(dev(), pd, cq, tis.number());
  EXPECT_STATUS(destroy_td(td.number()), CmdStatus::kBadResState);
  EXPECT_STATUS(tis.destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(rq.destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(rqt.destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(cq.destroy(), CmdStatus::kBadResState);
  EXPECT_STATUS(pd.destroy(), CmdStatus::kBadResState);
  EXPECT_OK(sq.destroy());
  EXPECT_OK(tis.destroy());
  EXPECT_OK(tir.destroy());
  EXPECT_OK(rqt.destroy());
  EXPECT_OK(rq.destroy());
  EXPECT_OK(td.destroy());
  EXPECT_STATUS(destroy_td(td.number()), CmdStatus::kBadRes);
}

TEST_F(EthObjects, RqtTakesPowersOfTwoOfExistingRqs) {
  breaks({"destroy-busy", "object-reference", "object-unknown", "rqt-size"});
  Pd pd(dev());
  Cq cq(dev());
  EthRq a(dev(), pd, cq), b(dev(), pd, cq);
  EXPECT_STATUS(create_rqt(4, 3, {a.rqn(), b.rqn(), a.rqn()}), CmdStatus::kBadParam);
  EXPECT_STATUS(create_rqt(4, 0, {}), CmdStatus::kBadParam);
  EXPECT_STATUS(create_rqt(1, 2, {a.rqn(), b.rqn()}), CmdStatus::kBadParam);
  EXPECT_STATUS(create_rqt(1u << 12, 1, {a.rqn()}), CmdStatus::kBadParam);
  EXPECT_STATUS(create_rqt(2, 2, {a.rqn(), 0xfff}), CmdStatus::kBadRes);
  EXPECT_STATUS(create_rqt(4, 4, {a.rqn(), b.rqn()}), CmdStatus::kBadInpLen);
  auto rqt = make_rqt(dev(), {a.rqn(), b.rqn()});
  // Another list: references follow.
  using In = prm::modify_rqt_in;
  Mailbox in(prm::op::MODIFY_RQT, In::bytes + 4);
  in.set<In::rqtn>(rqt.number()).set<In::bitmask::rqn_list>(1).set<In::ctx::rqt_actual_size>(1);
  prm::set<prm::rq_num::rq_num>(prm::at<In::ctx::rq_num>(in.data(), 0), b.rqn());
  EXPECT_OK(dev().exec(in));
  EXPECT_OK(a.destroy());
  EXPECT_STATUS(b.destroy(), CmdStatus::kBadResState);
  using Out = prm::query_rqt_out;
  const auto q = name<prm::query_rqt_in::rqtn>(prm::op::QUERY_RQT, prm::query_rqt_in::bytes, rqt.number(),
                                               Out::bytes + 4)
                     .must();
  EXPECT_EQ(q.get<Out::rqt_context::rqt_actual_size>(), 1u);
  EXPECT_EQ(prm::get<prm::rq_num::rq_num>(prm::at<Out::rqt_context::rq_num>(q.out.data(), 0)), b.rqn());
  in.set<In::rqtn>(0xfff);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadRes);
}

TEST_F(EthObjects, TirAttributes) {
  breaks({"cap-not-offered", "object-reference", "tir-hash", "use-after-destroy"});
  Pd pd(dev());
  Cq cq(dev());
  EthRq rq(dev(), pd, cq);
  auto td = make_transport_domain(dev());
  using In = prm::create_tir_in;
  using C = In::ctx;
  const auto create = [&](const std::function<void(Mailbox&)>& change) {
    Mailbox in(prm::op::CREATE_TIR, In::bytes);
    in.set<C::inline_rqn>(rq.rqn()).set<C::transport_domain>(td.number());
    change(in);
    return dev().exec(in);
  };
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::inline_rqn>(0xfff); }), CmdStatus::kBadRes);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::transport_domain>(0xfff); }), CmdStatus::kBadRes);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::disp_type>(1).set<C::indirect_table>(7); }),
                CmdStatus::kBadRes);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::disp_type>(2); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::rx_hash_fn>(3); }), CmdStatus::kBadParam);
  for (const unsigned us : {0u, 7u, 33u})
    EXPECT_STATUS(
        create([us](Mailbox& m) { m.set<C::packet_merge_mask>(1).set<C::lro_timeout_period_usecs>(us); }),
        CmdStatus::kBadParam);
  EXPECT_STATUS(
      create([](Mailbox& m) { m.set<C::packet_merge_mask>(4).set<C::lro_timeout_period_usecs>(32); }),
      CmdStatus::kBadParam);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::tls_en>(1); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::rx_hash_field_selector_outer::selected_fields>(0x20); }),
                CmdStatus::kBadParam);
  const auto tirn = create([](Mailbox&) {}).must().get<prm::create_tir_out::tirn>();
  using Mod = prm::modify_tir_in;
  Mailbox mod(prm::op::MODIFY_TIR, Mod::bytes);
  mod.set<Mod::tirn>(tirn).set<Mod::bitmask::hash>(1).set<Mod::ctx::rx_hash_fn>(2);
  mod.set<Mod::bitmask::self_lb_en>(1).set<Mod::ctx::self_lb_block>(1);
  EXPECT_OK(dev().exec(mod));
  using Out = prm::query_tir_out;
  const auto q =
      name<prm::query_tir_in::tirn>(prm::op::QUERY_TIR, prm::query_tir_in::bytes, tirn, Out::bytes).must();
  EXPECT_EQ(q.get<Out::tir_context::rx_hash_fn>(), 2u);
  EXPECT_EQ(q.get<Out::tir_context::self_lb_block>(), 1u);
  EXPECT_EQ(q.get<Out::tir_context::inline_rqn>(), rq.rqn());
  mod.set<Mod::bitmask::packet_merge>(1).set<Mod::ctx::packet_merge_mask>(3);
  EXPECT_STATUS(dev().exec(mod), CmdStatus::kBadParam);
  mod.set<Mod::ctx::lro_timeout_period_usecs>(1024).set<Mod::ctx::lro_max_ip_payload_size>(100);
  EXPECT_OK(dev().exec(mod));
  const auto merging =
      name<prm::query_tir_in::tirn>(prm::op::QUERY_TIR, prm::query_tir_in::bytes, tirn, Out::bytes).must();
  EXPECT_EQ(merging.get<Out::tir_context::packet_merge_mask>(), 3u);
  EXPECT_EQ(merging.get<Out::tir_context::lro_timeout_period_usecs>(), 1024u);
  EXPECT_EQ(merging.get<Out::tir_context::lro_max_ip_payload_size>(), 100u);
  EXPECT_OK((name<prm::destroy_tir_in::tirn>(prm::op::DESTROY_TIR, prm::destroy_tir_in::bytes, tirn)));
  EXPECT_STATUS((name<prm::destroy_tir_in::tirn>(prm::op::DESTROY_TIR, prm::destroy_tir_in::bytes, tirn)),
                CmdStatus::kBadRes);
}

TEST_F(EthObjects, ATirMayLeadToAnotherTable) {
  breaks({"cmd-reserved-bits", "destroy-busy", "modify-mask", "object-unknown"});
  Pd pd(dev());
  Cq cq(dev());
  EthRq rq(dev(), pd, cq);
  auto td = make_transport_domain(dev());
  auto before = std::make_unique<EthObject>(make_rqt(dev(), {rq.rqn()}));
  auto after = make_rqt(dev(), {rq.rqn()});
  TirSpec spec;
  spec.rqt = before->number();
  spec.transport_domain = td.number();
  auto tir = make_tir(dev(), spec);
  using In = prm::modify_tir_in;
  const auto modify = [&](std::uint32_t tirn, std::uint32_t rqtn, std::uint64_t bits) {
    Mailbox in(prm::op::MODIFY_TIR, In::bytes);
    in.set<In::tirn>(tirn).set<In::ctx::indirect_table>(rqtn);
    prm::store64(prm::ptr<In::bitmask>(in.data()), bits);
    return dev().exec(in);
  };
  constexpr std::uint64_t kIndirectTable = 1 << 1;
  for (const unsigned bit : {3u, 5u, 31u, 32u, 63u})
    EXPECT_STATUS(modify(tir.number(), after.number(), std::uint64_t{1} << bit | kIndirectTable),
                  CmdStatus::kBadParam);
  EXPECT_STATUS(modify(tir.number(), 0xfff, kIndirectTable), CmdStatus::kBadRes);
  EXPECT_STATUS(before->destroy(), CmdStatus::kBadResState);
  EXPECT_OK(modify(tir.number(), after.number(), kIndirectTable));
  using Out = prm::query_tir_out;
  const auto q =
      name<prm::query_tir_in::tirn>(prm::op::QUERY_TIR, prm::query_tir_in::bytes, tir.number(), Out::bytes)
          .must();
  EXPECT_EQ(q.get<Out::tir_context::indirect_table>(), after.number());
  EXPECT_OK(before->destroy());
  EXPECT_STATUS(after.destroy(), CmdStatus::kBadResState);
  TirSpec direct;
  direct.rqn = rq.rqn();
  direct.transport_domain = td.number();
  auto other = make_tir(dev(), direct);
  EXPECT_STATUS(modify(other.number(), after.number(), kIndirectTable), CmdStatus::kBadParam);
}

TEST_F(EthObjects, TisAttributes) {
  breaks({"cap-not-offered", "object-reference", "object-unknown"});
  auto td = make_transport_domain(dev());
  using In = prm::create_tis_in;
  Mailbox in(prm::op::CREATE_TIS, In::bytes);
  in.set<In::ctx::transport_domain>(0xfff);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadRes);
  in.set<In::ctx::transport_domain>(td.number()).set<In::ctx::tls_en>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  auto tis = make_tis(dev(), td.number());
  using Mod = prm::modify_tis_in;
  Mailbox mod(prm::op::MODIFY_TIS, Mod::bytes);
  mod.set<Mod::tisn>(tis.number()).set<Mod::bitmask::prio>(1).set<Mod::ctx::prio>(6);
  EXPECT_OK(dev().exec(mod));
  using Out = prm::query_tis_out;
  const auto q =
      name<prm::query_tis_in::tisn>(prm::op::QUERY_TIS, prm::query_tis_in::bytes, tis.number(), Out::bytes)
          .must();
  EXPECT_EQ(q.get<Out::tis_context::prio>(), 6u);
  EXPECT_EQ(q.get<Out::tis_context::transport_domain>(), td.number());
  mod.set<Mod::tisn>(0xffff);
  EXPECT_STATUS(dev().exec(mod), CmdStatus::kBadRes);
}

TEST_F(EthObjects, StatesOfAnRq) {
  breaks({"modify-mask", "object-unknown", "queue-state"});
  Pd pd(dev());
  Cq cq(dev());
  EthRq rq(dev(), pd, cq);  // RDY
  EXPECT_EQ(rq.state(), 1u);
  EXPECT_STATUS(rq.modify(0, 1), CmdStatus::kBadResState);  // it is not in the state named
  EXPECT_STATUS(rq.modify(1, 2), CmdStatus::kBadResState);  // there is no such state
  EXPECT_OK(rq.modify(1, 3));
  EXPECT_EQ(rq.state(), 3u);
  EXPECT_STATUS(rq.modify(3, 1), CmdStatus::kBadResState);
  EXPECT_OK(rq.modify(3, 0));
  EXPECT_OK(rq.modify(0, 1));
  using In = prm::modify_rq_in;
  Mailbox in(prm::op::MODIFY_RQ, In::bytes);
  in.set<In::rqn>(rq.rqn()).set<In::rq_state>(1).set<In::ctx::state>(1).set<In::modify_bitmask>(1u << 4);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<In::modify_bitmask>(1u << 0).set<In::ctx::wq::lwm>(70);  // a limit, with an event below it
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<In::modify_bitmask>(1u << 3).set<In::ctx::counter_set_id>(0x33);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadRes);
  in.set<In::modify_bitmask>(1u << 1).set<In::ctx::vsd>(0);
  EXPECT_OK(dev().exec(in));
  using Out = prm::query_rq_out;
  const auto q =
      name<prm::query_rq_in::rqn>(prm::op::QUERY_RQ, prm::query_rq_in::bytes, rq.rqn(), Out::bytes);
  EXPECT_EQ(q.must().get<Out::rq_context::vsd>(), 0u);
}

TEST_F(EthObjects, StatesOfAnSq) {
  breaks({"modify-mask", "object-unknown", "queue-state"});
  Pd pd(dev());
  Cq cq(dev());
  auto td = make_transport_domain(dev());
  auto tis = make_tis(dev(), td.number());
  Sq sq(dev(), pd, cq, tis.number());  // RDY
  EXPECT_EQ(sq.state(), 1u);
  EXPECT_STATUS(sq.modify(3, 0), CmdStatus::kBadResState);
  EXPECT_OK(sq.modify(1, 3));
  EXPECT_EQ(sq.state(), 3u);
  EXPECT_STATUS(sq.modify(3, 1), CmdStatus::kBadResState);
  EXPECT_OK(sq.modify(3, 0));
  EXPECT_OK(sq.modify(0, 1));
  using In = prm::modify_sq_in;
  Mailbox in(prm::op::MODIFY_SQ, In::bytes);
  in.set<In::sqn>(sq.sqn()).set<In::sq_state>(1).set<In::ctx::state>(1).set<In::modify_bitmask>(2);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);  // of hairpins
  // Its number is of the space of QPs, but it is no QP.
  EXPECT_STATUS((name<prm::destroy_qp_in::qpn>(prm::op::DESTROY_QP, prm::destroy_qp_in::bytes, sq.sqn())),
                CmdStatus::kBadRes);
  EXPECT_STATUS((name<prm::qp_2err_in::qpn>(prm::op::_2ERR_QP, prm::qp_2err_in::bytes, sq.sqn())),
                CmdStatus::kBadRes);
  EXPECT_STATUS((name<prm::query_qp_in::qpn>(prm::op::QUERY_QP, prm::query_qp_in::bytes, sq.sqn(),
                                             prm::query_qp_out::bytes)),
                CmdStatus::kBadRes);
}

TEST_F(EthObjects, QueueAttributes) {
  breaks({"cap-limit", "cap-not-offered", "dbr-alignment", "object-reference", "queue-pages", "queue-state",
          "sq-tis", "table-index", "wq-layout"});
  Pd pd(dev());
  Cq cq(dev());
  const Buffer ring = dev().memory().allocate(8192);
  {
    using In = prm::create_rq_in;
    using C = In::ctx;
    const auto create = [&](const std::function<void(Mailbox&)>& change) {
      Mailbox in(prm::op::CREATE_RQ, In::bytes + 8);
      in.set<C::cqn>(cq.cqn()).set<C::wq::wq_type>(1).set<C::wq::pd>(pd.pdn());
      in.set<C::wq::dbr_addr>(ring.bus() + 4096).set<C::wq::log_wq_stride>(4).set<C::wq::log_wq_sz>(6);
      prm::set<prm::cmd_pas::pa_l>(prm::at<C::wq::pas>(in.data(), 0),
                                   static_cast<std::uint32_t>(ring.bus() >> 12));
      change(in);
      return dev().exec(in);
    };
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::cqn>(0xfffff); }), CmdStatus::kBadRes);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::pd>(0xfffff); }), CmdStatus::kBadRes);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::state>(1); }), CmdStatus::kBadResState);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::wq_type>(4); }), CmdStatus::kBadParam);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::log_wq_stride>(3); }), CmdStatus::kBadParam);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::log_wq_sz>(16); }), CmdStatus::kLim);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::log_wq_sz>(9); }), CmdStatus::kBadParam);  // pages
    const auto odd = create([&](Mailbox& m) { m.set<C::wq::dbr_addr>(ring.bus() + 4100); }).must();
    EXPECT_OK((name<prm::destroy_rq_in::rqn>(prm::op::DESTROY_RQ, prm::destroy_rq_in::bytes,
                                             odd.get<prm::create_rq_out::rqn>())));
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::hairpin>(1); }), CmdStatus::kBadParam);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::delay_drop_en>(1); }), CmdStatus::kBadParam);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::lwm>(70); }), CmdStatus::kBadParam);
    // This generation has no SHAMPO.
    EXPECT_STATUS(create([](Mailbox& m) {
                    m.set<C::wq::shampo_enable>(1).set<C::wq::wq_type>(2).set<C::wq::log_wq_stride>(5);
                  }),
                  CmdStatus::kBadParam);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::mem_rq_type>(1).set<C::rmpn>(0xfff); }),
                  CmdStatus::kBadRes);
    EXPECT_STATUS(create([](Mailbox& m) { m.set<C::counter_set_id>(0x33); }), CmdStatus::kBadRes);
    const auto rqn = create([](Mailbox&) {}).must().get<prm::create_rq_out::rqn>();
    EXPECT_OK((name<prm::destroy_rq_in::rqn>(prm::op::DESTROY_RQ, prm::destroy_rq_in::bytes, rqn)));
  }
  using In = prm::create_sq_in;
  using C = In::ctx;
  const auto create = [&](const std::function<void(Mailbox&)>& change) {
    Mailbox in(prm::op::CREATE_SQ, In::bytes + 8);
    in.set<C::cqn>(cq.cqn()).set<C::wq::wq_type>(1).set<C::wq::pd>(pd.pdn());
    in.set<C::wq::dbr_addr>(ring.bus() + 4096).set<C::wq::log_wq_stride>(6).set<C::wq::log_wq_sz>(6);
    in.set<C::wq::uar_page>(dev().uar());
    prm::set<prm::cmd_pas::pa_l>(prm::at<C::wq::pas>(in.data(), 0),
                                 static_cast<std::uint32_t>(ring.bus() >> 12));
    change(in);
    return dev().exec(in);
  };
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::tis_lst_sz>(2); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::tis_lst_sz>(1).set<C::tis_num_0>(0xfff); }),
                CmdStatus::kBadRes);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::uar_page>(0xfff); }), CmdStatus::kBadRes);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::wq::log_wq_stride>(5); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::packet_pacing_rate_limit_index>(1); }), CmdStatus::kIx);
  EXPECT_STATUS(create([](Mailbox& m) { m.set<C::hairpin>(1); }), CmdStatus::kBadParam);
  // Without a TIS: for UMRs and NOPs.
  const auto sqn = create([](Mailbox&) {}).must().get<prm::create_sq_out::sqn>();
  EXPECT_OK((name<prm::destroy_sq_in::sqn>(prm::op::DESTROY_SQ, prm::destroy_sq_in::bytes, sqn)));
}

TEST_F(EthObjects, AllGoesWithTeardown) {
  Pd pd(dev());
  Cq cq(dev());
  auto td = make_transport_domain(dev());
  auto tis = make_tis(dev(), td.number());
  Sq sq(dev(), pd, cq, tis.number());
  EthRq rq(dev(), pd, cq);
  TirSpec spec;
  spec.rqn = rq.rqn();
  spec.transport_domain = td.number();
  auto tir = make_tir(dev(), spec);
  auto table = make_flow_table(dev(), 4);
  auto group = make_flow_group(dev(), table.number(), 0, 15);
  FlowRule rule;
  rule.table = table.number();
  rule.group = group.number();
  rule.to = {{FlowDest::kTir, tir.number()}};
  auto flow = make_flow(dev(), rule);
  EXPECT_OK(set_flow_root(dev(), table.number()));
  dev().function_reset();
  for (const char* objects : {"qps", "rqs", "tirs", "tises", "flow_tables", "flows"})
    EXPECT_EQ(fn().counter(objects), 0u) << objects;
  dev().probe();
}

// The InfiniBand link has none of this.
TEST(EthObjectsOnIb, NotOffered) {
  breaks({"cap-not-offered"});
  Device dev(machine().function(0));
  machine().function(0).reset();
  dev.probe();
  for (const std::uint16_t op :
       {prm::op::CREATE_TIS, prm::op::CREATE_TIR, prm::op::CREATE_RQ, prm::op::CREATE_SQ, prm::op::CREATE_RQT,
        prm::op::CREATE_FLOW_TABLE, prm::op::QUERY_NIC_VPORT_CONTEXT, prm::op::SET_ROCE_ADDRESS,
        prm::op::QUERY_CONG_PARAMS}) {
    EXPECT_STATUS(dev.exec(Mailbox(op, 512), 512), CmdStatus::kBadOp);
  }
  dev.teardown();
}

}  // namespace
}  // namespace hcasim::bare
