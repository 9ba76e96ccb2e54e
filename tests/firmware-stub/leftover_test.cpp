// SPDX-License-Identifier: BSD-3-Clause
// Each command that makes an object changes the card's state, and the one that destroys it takes all of that
// back. (The fixture looks at the same behind every other test.)
#include <set>

#include "card_state.h"
#include "driver/bare/dct.h"
#include "driver/bare/devx.h"
#include "driver/bare/eth.h"
#include "driver/bare/qp.h"
#include "driver/bare/xrq.h"
#include "fixture.h"
#include "prm/qos.h"
#include "prm/transport_caps.h"

namespace hcasim::bare {
namespace {

using test::difference;
using test::objects_of;

class Leftover : public FirmwareTest {
 protected:
  // Makes an object, and destroys it again at the end of its life.
  template <class Make>
  void comes_and_goes(const char* what, Make make) {
    const auto before = objects_of(fn().handle());
    const std::uint64_t digest = fn().state_digest();
    {
      [[maybe_unused]] const auto object = make();
      EXPECT_NE(difference(before, objects_of(fn().handle())), "") << what;
      EXPECT_NE(fn().state_digest(), digest) << what;
    }
    EXPECT_EQ(difference(before, objects_of(fn().handle())), "") << what;
  }
  // Tables of the firmware of which nothing has been made since the reset.
  std::set<std::string> unused_tables() {
    std::set<std::string> tables;
    const auto all = test::state_of(fn().handle());
    const std::string head = "firmware.functions.0.objects.", tail = ".pool.used";
    for (const auto& [path, value] : all) {
      if (path.rfind(head, 0) != 0 || path.size() < tail.size() ||
          path.compare(path.size() - tail.size(), tail.size(), tail) != 0)
        continue;
      const std::string table = path.substr(head.size(), path.size() - head.size() - tail.size());
      if (all.at(head + table + ".pool.fresh") == "0") tables.insert(table);
    }
    return tables;
  }
  EthObject general(std::uint16_t type, Mailbox in) {
    using In = prm::general_obj_in_cmd_hdr;
    const auto r = dev().exec(in.set<In::obj_type>(type), prm::general_obj_out_cmd_hdr::bytes).must();
    const auto id = static_cast<std::uint32_t>(r.get<prm::general_obj_out_cmd_hdr::obj_id>());
    return {dev(), id, [this, type, id] {
              Mailbox gone(prm::op::DESTROY_GENERAL_OBJECT, In::bytes);
              return dev().exec(gone.set<In::obj_type>(type).set<In::obj_id>(id));
            }};
  }
  static Mailbox general_in(std::size_t bytes) { return {prm::op::CREATE_GENERAL_OBJECT, bytes}; }
};

TEST_F(Leftover, ObjectsOfTheIbLink) {
  comes_and_goes("PD", [&] { return std::make_unique<Pd>(dev()); });
  comes_and_goes("XRC domain", [&] { return std::make_unique<Xrcd>(dev()); });
  comes_and_goes("CQ", [&] { return std::make_unique<Cq>(dev()); });
  comes_and_goes("EQ", [&] {
    return std::make_unique<EventQueue>(dev(), 4, 5, std::array<std::uint64_t, 4>{}, [](const prm::Eqe&) {});
  });
  comes_and_goes("user context", [&] { return std::make_unique<Uctx>(dev()); });
  Pd pd(dev());
  Cq cq(dev());
  Srq srq(dev(), pd);
  const Buffer memory = machine().memory().allocate(1 << 16);
  comes_and_goes("mkey", [&] { return std::make_unique<Mr>(dev(), Mr::of(pd, memory, kAllAccess)); });
  comes_and_goes("SRQ", [&] { return std::make_unique<Srq>(dev(), pd); });
  comes_and_goes("XRC SRQ", [&] {
    auto domain = std::make_unique<Xrcd>(dev());
    SrqOptions o;
    o.xrcd = domain->number();
    o.cqn = cq.cqn();
    auto srq_of_domain = std::make_unique<Srq>(dev(), pd, o);
    return std::pair(std::move(domain), std::move(srq_of_domain));  // the last one goes first
  });
  comes_and_goes("XRQ", [&] { return std::make_unique<TagQueue>(dev(), pd, cq); });
  comes_and_goes("QP", [&] { return std::make_unique<Qp>(dev(), pd, cq, cq); });
  comes_and_goes("QP of an SRQ", [&] { return std::make_unique<Qp>(dev(), pd, cq, cq, QpOptions{}, &srq); });
  comes_and_goes("two QPs that know each other", [&] {
    auto two = std::make_unique<std::pair<Qp, Qp>>(std::piecewise_construct,
                                                   std::forward_as_tuple(dev(), pd, cq, cq),
                                                   std::forward_as_tuple(dev(), pd, cq, cq));
    connect_pair(two->first, two->second, {});
    return two;
  });
  comes_and_goes("UMEM", [&] { return std::make_unique<Umem>(dev(), Umem::of(memory)); });
  comes_and_goes("objects of a user context", [&] {
    auto user = std::make_unique<Uctx>(dev());
    const Uctx::As as(dev(), *user);
    auto mine = std::make_unique<Pd>(dev());
    return std::pair(std::move(user), std::move(mine));
  });
  comes_and_goes("scheduling element", [&] {
    using C = prm::sched_elem::sched_context;
    constexpr std::uint32_t kNode = 0;
    Mailbox in = general_in(prm::general_obj_in_cmd_hdr::bytes + prm::sched_elem::bytes);
    in.set<prm::sched_elem::scheduling_hierarchy>(3).set<C::element_type>(kNode).set<C::bw_share>(1);
    return general(prm::kGeneralSchedElement, in);
  });
  comes_and_goes("reserved QP numbers", [&] {
    Mailbox in = general_in(prm::general_obj_in_cmd_hdr::bytes + 16);
    in.set<prm::general_obj_in_cmd_hdr::op_param::create::log_obj_range>(6);
    return general(prm::kGeneralReservedQpn, in);
  });
  comes_and_goes("Q counter", [&] {
    const auto r = dev().exec(Mailbox(prm::op::ALLOC_Q_COUNTER, prm::alloc_q_counter_in::bytes)).must();
    const auto id = static_cast<std::uint32_t>(r.get<prm::alloc_q_counter_out::counter_set_id>());
    return EthObject(dev(), id, [this, id] {
      using In = prm::dealloc_q_counter_in;
      return name<In::counter_set_id>(prm::op::DEALLOC_Q_COUNTER, In::bytes, id);
    });
  });
  comes_and_goes("UAR", [&] {
    const auto r = dev().exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes)).must();
    const auto id = static_cast<std::uint32_t>(r.get<prm::alloc_uar_out::uar>());
    return EthObject(dev(), id, [this, id] {
      return name<prm::dealloc_uar_in::uar>(prm::op::DEALLOC_UAR, prm::dealloc_uar_in::bytes, id);
    });
  });
  comes_and_goes("PSV", [&] {
    using In = prm::create_psv_in;
    Mailbox in(prm::op::CREATE_PSV, In::bytes);
    const auto r =
        dev().exec(in.set<In::num_psv>(1).set<In::pd>(pd.pdn()), prm::create_psv_out::bytes).must();
    const auto id = static_cast<std::uint32_t>(r.get<prm::create_psv_out::psv0_index>());
    return EthObject(dev(), id, [this, id] {
      return name<prm::destroy_psv_in::psvn>(prm::op::DESTROY_PSV, prm::destroy_psv_in::bytes, id);
    });
  });
  const std::set<std::string> ethernet = {
      "tises",           "tirs",           "rqts",        "rqs",           "flow_tables",    "flow_groups",
      "flow_counters",   "reformats",      "sw_icms",     "flow_samplers", "modify_headers", "tds",
      "flow_meters",     "match_definers", "page_tracks", "deks",          "ipsecs",         "macsecs",
      "header_arguments"};
  EXPECT_EQ(unused_tables(), ethernet);
}

class LeftoverEth : public Leftover {
 protected:
  std::size_t hca() const override { return 6; }
};

TEST_F(LeftoverEth, ObjectsOfTheEthernetLink) {
  Pd pd(dev());
  Cq cq(dev());
  comes_and_goes("transport domain", [&] { return make_transport_domain(dev()); });
  const EthObject td = make_transport_domain(dev());
  comes_and_goes("TIS", [&] { return make_tis(dev(), td.number()); });
  const EthObject tis = make_tis(dev(), td.number());
  comes_and_goes("SQ", [&] { return std::make_unique<Sq>(dev(), pd, cq, tis.number()); });
  comes_and_goes("RQ", [&] { return std::make_unique<EthRq>(dev(), pd, cq); });
  EthRq rq(dev(), pd, cq);
  comes_and_goes("RQT", [&] { return make_rqt(dev(), {rq.rqn()}); });
  const EthObject rqt = make_rqt(dev(), {rq.rqn()});
  TirSpec tir;
  tir.transport_domain = td.number();
  tir.rqt = rqt.number();
  comes_and_goes("TIR", [&] { return make_tir(dev(), tir); });
  const EthObject way = make_tir(dev(), tir);
  comes_and_goes("flow table", [&] { return make_flow_table(dev(), 4); });
  comes_and_goes("flow counter", [&] { return make_flow_counter(dev()); });
  comes_and_goes("reformat context", [&] {
    Reformat r;
    r.type = prm::k::REFORMAT_TYPE_L2_TO_L2_TUNNEL;
    r.data = Frame(50, 1);
    return make_reformat(dev(), r);
  });
  comes_and_goes("modify header context", [&] {
    return make_modify_header(dev(), {set_field(prm::k::ACTION_IN_FIELD_OUT_DMAC_15_0, 1, 0, 16)});
  });
  const EthObject table = make_flow_table(dev(), 4), after = make_flow_table(dev(), 4, 1);
  comes_and_goes("flow group", [&] { return make_flow_group(dev(), table.number(), 0, 3); });
  const EthObject group = make_flow_group(dev(), table.number(), 0, 3);
  const EthObject counter = make_flow_counter(dev());
  FlowRule rule;
  rule.table = table.number();
  rule.group = group.number();
  rule.to = {{FlowDest::kTir, way.number()}, {FlowDest::kTable, after.number()}};
  rule.counter = counter.number();
  comes_and_goes("flow entry", [&] { return make_flow(dev(), rule); });
  comes_and_goes("flow sampler", [&] {
    using In = prm::create_sampler_obj_in;
    Mailbox in = general_in(In::bytes);
    in.set<In::sampler_object::level>(0).set<In::sampler_object::sample_table_id>(after.number());
    in.set<In::sampler_object::default_table_id>(after.number()).set<In::sampler_object::sample_ratio>(4);
    return general(prm::k::GENERAL_OBJECT_TYPES_SAMPLER, in);
  });
  comes_and_goes("flow meter", [&] {
    using In = prm::create_flow_meter_aso_obj_in;
    Mailbox in = general_in(In::bytes);
    in.set<In::flow_meter_aso_obj::meter_aso_access_pd>(pd.pdn());
    return general(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO, in);
  });
  comes_and_goes("SW ICM", [&] {
    using In = prm::create_sw_icm_in;
    Mailbox in = general_in(In::bytes);
    in.set<In::sw_icm::sw_icm_start_addr>(
        prm::get<prm::device_mem_cap::steering_sw_icm_start_address>(caps(15, true).data()));
    in.set<In::sw_icm::log_sw_icm_size>(16);
    return general(prm::k::OBJ_TYPE_SW_ICM, in);
  });
  // Definers are those of a card of two ports or of later steering formats, as are arguments of lists; keys
  // and IPsec those of a board that encrypts.
  const std::set<std::string> others = {"deks",           "ipsecs",        "macsecs",    "header_arguments",
                                        "match_definers", "mkeys",         "xrcds",      "srqs",
                                        "page_tracks",    "q_counters",    "psvs",       "umems",
                                        "sched_elements", "reserved_qpns", "users.table"};
  EXPECT_EQ(unused_tables(), others);
}

}  // namespace
}  // namespace hcasim::bare
