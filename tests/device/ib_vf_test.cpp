// SPDX-License-Identifier: BSD-3-Clause
// Virtual functions of an InfiniBand card: the physical function lets them start, settles who they are and
// whether their port is up, and ends them; they share its LID and are told apart by GIDs.
#include <vector>

#include "function_digest.h"
#include "ib_vf_rig.h"
#include "model/fault/spec.h"
#include "prm/access_registers.h"
#include "prm/vport_counters.h"
#include "subnet_management.h"

namespace hcasim {
namespace {

TEST_F(IbVf, WaitsForThePhysicalFunction) {
  EXPECT_FALSE(initializing(0));
  EXPECT_TRUE(initializing(1));
  EXPECT_TRUE(enable(1).ok());
  EXPECT_FALSE(initializing(1));
  EXPECT_TRUE(initializing(2));
  bare::Device vf(c.machine.function(1));
  vf.probe();
  vf.teardown();
  EXPECT_TRUE(enable(1, false).ok());
  EXPECT_TRUE(initializing(1));
}

TEST_F(IbVf, FaultsOfItsFirmwareNameIt) {
  auto vf = probed(2);
  c.tracer.open_memory();
  for (const FaultPairs& pairs :
       {FaultPairs{{"fault", "page_request"}, {"action", "ask"}, {"at", "0"}, {"pages", "4"}},
        FaultPairs{{"fault", "health"}, {"action", "stall"}, {"duration", "1us"}},
        FaultPairs{{"fault", "fw_reset"}}}) {
    FaultPairs of_vf = pairs;
    of_vf.emplace_back("function", "2");
    FaultSpec fault;
    std::string err;
    ASSERT_TRUE(parse_fault(of_vf, sim_now(), 1, fault, err)) << err;
    c.card.injector().load({fault});
    c.machine.advance(10'000);
    unsigned noted = 0;
    for (const traces::Record& r : c.tracer.drain()) {
      if (r.p() != traces::Point::kFaultInjected && r.p() != traces::Point::kHealth) continue;
      noted++;
      EXPECT_EQ(r.function, 2u) << pairs[0].second;
    }
    EXPECT_EQ(noted, pairs[0].second == "health" ? 3u : 1u) << pairs[0].second;
  }
  c.card.injector().end_all();
  c.tracer.close();
}

TEST_F(IbVf, OnlyItsManagerMaySpeakForIt) {
  auto vf = probed(1);
  using Caps = prm::query_hca_cap_in;
  const auto caps = [](bare::Device& d, std::uint32_t other, std::uint32_t id) {
    Mailbox in(prm::op::QUERY_HCA_CAP, Caps::bytes, 0);
    in.set<Caps::other_function>(other).set<Caps::function_id>(id);
    return d.exec(in, prm::query_hca_cap_out::bytes);
  };
  EXPECT_TRUE(caps(pf, 1, 1).ok());
  EXPECT_TRUE(caps(pf, 1, kVfs).ok());
  for (const std::uint32_t id : {std::uint32_t{0}, std::uint32_t{kVfs} + 1, 0xffffu})
    EXPECT_EQ(caps(pf, 1, id).status, CmdStatus::kBadParam) << id;
  EXPECT_EQ(caps(pf, 0, 1).status, CmdStatus::kBadParam);
  for (const std::uint32_t id : {0u, 1u, 2u}) EXPECT_EQ(caps(*vf, 1, id).status, CmdStatus::kBadParam) << id;
  EXPECT_EQ(enable(kVfs + 1).status, CmdStatus::kBadParam);
  using In = prm::query_hca_vport_context_in;
  for (const std::uint32_t vport : {0u, 1u, 2u}) {
    Mailbox in(prm::op::QUERY_HCA_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(vport);
    EXPECT_EQ(vf->exec(in, prm::query_hca_vport_context_out::bytes).status, CmdStatus::kBadParam) << vport;
  }
  EXPECT_TRUE(context_of(0).ok());  // itself
  EXPECT_EQ(context_of(kVfs + 1).status, CmdStatus::kBadParam);
}

TEST_F(IbVf, OffersWhatItsBarHolds) {
  auto vf = probed(1);
  using g = prm::cmd_hca_cap;
  EXPECT_EQ(pf.cap<g::vport_group_manager>(), 1u);
  EXPECT_EQ(vf->cap<g::vport_group_manager>(), 0u);
  EXPECT_EQ(vf->cap<g::device_memory>(), 0u);
  EXPECT_EQ(vf->cap<g::ib_virt>(), 1u);
  EXPECT_EQ(vf->pages_given(), 0u);
}

TEST_F(IbVf, SharesTheLidAndHasGuidsOfItsOwn) {
  auto vf = probed(1);
  const auto own = vf->query_vport().must(), of_pf = pf.query_vport().must();
  EXPECT_EQ(own.get<Context::lid>(), of_pf.get<Context::lid>());
  EXPECT_EQ(own.get<Context::has_smi>(), 0u);
  EXPECT_EQ(own.get<Context::grh_required>(), 1u);
  EXPECT_EQ(of_pf.get<Context::grh_required>(), 0u);
  EXPECT_EQ(own.get<Context::vport_state>(), 4u);
  EXPECT_NE(own.get<Context::port_guid>(), of_pf.get<Context::port_guid>());
  EXPECT_EQ(own.get<Context::system_image_guid>(), of_pf.get<Context::system_image_guid>());
  EXPECT_EQ(prm::load64(vf->gid(0).data() + 8), own.get<Context::port_guid>());
  EXPECT_EQ(context_of(1).must().get<Context::port_guid>(), own.get<Context::port_guid>());
}

TEST_F(IbVf, TheManagerGivesGuids) {
  EXPECT_TRUE(modify(1, kPortGuid | kNodeGuid, 0x1122334455660000).ok());
  auto vf = probed(1);
  EXPECT_EQ(prm::load64(vf->gid(0).data() + 8), 0x1122334455660000u);
  EXPECT_EQ(vf->query_vport().must().get<Context::node_guid>(), 0x1122334455660001u);
  vf->function_reset();  // what its manager has settled stays
  vf->probe();
  EXPECT_EQ(prm::load64(vf->gid(0).data() + 8), 0x1122334455660000u);
  EXPECT_TRUE(modify(1, 0, 0).ok());  // nothing selected, as the kernel sends it first
  EXPECT_EQ(modify(1, 8, 0).status, CmdStatus::kBadParam);
  EXPECT_EQ(modify(1, kPolicy, 0, 3).status, CmdStatus::kBadParam);
  vf.reset();
  pf.function_reset();
  pf.probe();
  EXPECT_TRUE(initializing(1));
  EXPECT_NE(context_of(1).must().get<Context::port_guid>(), 0x1122334455660000u);
}

TEST_F(IbVf, BytesGoBetweenFunctionsAndBack) {
  auto one = probed(1), two = probed(2);
  End a(pf), b(*one), d(*two);
  a.connect(b);
  b.connect(a);
  EXPECT_NE(a.qp.qpn(), b.qp.qpn()) << "so that traces tell them apart";
  EXPECT_TRUE(a.write(b, 1));
  EXPECT_TRUE(b.write(a, 2));
  End e(*one);
  e.connect(d);
  d.connect(e);
  EXPECT_TRUE(e.write(d, 3));
  EXPECT_TRUE(d.write(e, 4));
}

TEST_F(IbVf, ItsPortFollowsThePolicy) {
  auto one = probed(1), two = probed(2);
  End b(*one), d(*two);
  b.connect(d);
  d.connect(b);
  EXPECT_TRUE(b.write(d, 1));
  one->clear_async_events();
  two->clear_async_events();
  ASSERT_TRUE(modify(1, kPolicy, 0, kDown).ok());
  c.machine.advance(1'000'000);
  EXPECT_EQ(one->query_vport().must().get<Context::vport_state>(), 1u);
  EXPECT_EQ(two->query_vport().must().get<Context::vport_state>(), 4u);
  ASSERT_EQ(one->async_events().size(), 1u);
  EXPECT_EQ(one->async_events()[0].sub_type, prm::kPortDown);
  EXPECT_TRUE(two->async_events().empty());
  const std::uint64_t discards = c.card.port().counters().tx_discards;
  EXPECT_FALSE(d.write(b, 2));  // nothing comes in ...
  EXPECT_EQ(c.card.port().counters().tx_discards, discards) << "what comes in is no discard of what goes out";
  ASSERT_TRUE(modify(1, kPolicy, 0, kUp).ok());
  c.machine.advance(1'000'000);
  EXPECT_EQ(one->query_vport().must().get<Context::vport_state>(), 4u);
  EXPECT_EQ(one->async_events().back().sub_type, prm::kPortActive);
  End again(*one), peer(*two);
  again.connect(peer);
  peer.connect(again);
  EXPECT_TRUE(again.write(peer, 3));
  ASSERT_TRUE(modify(1, kPolicy, 0, kDown).ok());
  EXPECT_FALSE(again.write(peer, 4));  // ... and nothing goes out
}

TEST_F(IbVf, HearsOfThePortAsFarAsItsPolicyGoes) {
  auto down = probed(1), up = probed(2);
  ASSERT_TRUE(modify(1, kPolicy, 0, kDown).ok());
  ASSERT_TRUE(modify(2, kPolicy, 0, kUp).ok());
  c.machine.advance(1'000'000);
  down->clear_async_events();
  up->clear_async_events();
  pf.clear_async_events();
  c.firmware.port().cable(false);
  c.machine.advance(1'000'000);
  for (const bare::Device* d : {&pf, up.get()}) {
    ASSERT_EQ(d->async_events().size(), 1u);
    EXPECT_EQ(d->async_events()[0].sub_type, prm::kPortDown);
  }
  c.firmware.port().cable(true);
  c.machine.advance(1'000'000);
  for (const bare::Device* d : {&pf, up.get()}) {
    ASSERT_EQ(d->async_events().size(), 2u);
    EXPECT_EQ(d->async_events()[1].sub_type, prm::kPortActive);
  }
  EXPECT_TRUE(down->async_events().empty());
  // Another one than the built-in subnet manager takes the port through its states, from which this one
  // brings it back.
  EXPECT_TRUE(c.firmware.port().set_state(PortState::kDown));
  EXPECT_TRUE(c.firmware.port().set_state(PortState::kArmed));
  EXPECT_TRUE(c.firmware.port().set_state(PortState::kActive));
  c.machine.advance(1'000'000);
  const auto heard = [](const bare::Device& d) {
    std::vector<unsigned> list;
    for (const auto& e : d.async_events()) list.push_back(e.sub_type);
    return list;
  };
  using List = std::vector<unsigned>;
  EXPECT_EQ(heard(pf),
            (List{prm::kPortDown, prm::kPortActive, prm::kPortDown, prm::kPortActive, prm::kPortActive}));
  EXPECT_EQ(heard(*up), (List{prm::kPortDown, prm::kPortActive, prm::kPortDown, prm::kPortActive}));
  EXPECT_TRUE(down->async_events().empty());
  // What is the port's, all are told.
  c.firmware.port().client_reregister();
  c.machine.advance(1'000'000);
  EXPECT_EQ(heard(*down), List{prm::kPortClientRereg});
}

TEST_F(IbVf, TheManagerChoosesTheSizesOfTheirMsixTables) {
  using g = prm::cmd_hca_cap;
  using Set = prm::set_hca_cap_in;
  constexpr std::size_t kIn = Set::capability::bit_off / 8;
  const auto ask = [&](std::uint32_t function, std::uint32_t vectors, std::uint16_t op_mod = 0) {
    auto caps = general_caps_of(pf, function <= kVfs ? function : 1);
    prm::set<g::dynamic_msix_table_size>(caps.data(), vectors);
    return set_caps_of(function, caps, op_mod);
  };
  const auto size_of = [&](FunctionId f) { return c.firmware.function(f).vectors(); };
  const std::uint32_t total = pf.cap<g::num_total_dynamic_vf_msix>(),
                      least = pf.cap<g::min_dynamic_vf_msix_table_size>(),
                      most = pf.cap<g::max_dynamic_vf_msix_table_size>();
  EXPECT_EQ(total, kVfs * fw::kVfPoolVectors);
  ASSERT_TRUE(enable(1).ok() && enable(2).ok());
  EXPECT_EQ(size_of(1), fw::kVfVectors);
  EXPECT_TRUE(pf.exec(ask(1, 6)).ok());
  EXPECT_EQ(size_of(1), 6u);
  EXPECT_EQ(prm::get<g::dynamic_msix_table_size>(general_caps_of(pf, 1).data()), 6u);
  EXPECT_EQ(size_of(2), fw::kVfVectors);

  // Its driver sees it, echoes it, and has no vector beyond it.
  auto vf = probed(1);
  EXPECT_EQ(vf->cap<g::dynamic_msix_table_size>(), 6u);
  EXPECT_EQ(vf->cap<g::num_total_dynamic_vf_msix>(), 0u);
  const bare::Buffer ring = vf->memory().allocate(64 << 6);
  const auto create_eq = [&](unsigned vector) {
    using In = prm::create_eq_in;
    Mailbox in(prm::op::CREATE_EQ, In::bytes + 8);
    in.set<In::eq_context_entry::log_eq_size>(6).set<In::eq_context_entry::intr>(vector);
    in.set<In::eq_context_entry::uar_page>(vf->uar());
    prm::store64(in.data() + In::bytes, ring.bus());
    return vf->exec(in, prm::create_eq_out::bytes);
  };
  EXPECT_TRUE(create_eq(5).ok());
  EXPECT_FALSE(create_eq(6).ok());
  vf->function_reset();
  EXPECT_EQ(size_of(1), 6u);  // what its manager has settled stays

  // Bounds, and the pool that they share.
  EXPECT_EQ(pf.exec(ask(1, least - 1)).status, CmdStatus::kBadParam);
  EXPECT_EQ(pf.exec(ask(1, most + 1)).status, CmdStatus::kBadParam);
  EXPECT_TRUE(pf.exec(ask(1, total - fw::kVfVectors)).ok());
  EXPECT_EQ(pf.exec(ask(2, fw::kVfVectors + 1)).status, CmdStatus::kNoRes);
  EXPECT_TRUE(pf.exec(ask(1, least)).ok());
  EXPECT_TRUE(pf.exec(ask(2, most)).ok());
  EXPECT_EQ(size_of(2), most);

  // Nothing else of a function is its manager's to set, no group but this one, and of none but its own.
  Mailbox more = ask(1, 8);
  prm::set<g::log_max_qp>(more.data() + kIn, 9);
  EXPECT_EQ(pf.exec(more).status, CmdStatus::kBadParam);
  EXPECT_EQ(pf.exec(ask(1, 8, 3 << 1)).status, CmdStatus::kBadParam);
  EXPECT_EQ(pf.exec(ask(kVfs + 1, 8)).status, CmdStatus::kBadParam);
  EXPECT_EQ(size_of(1), least);
  EXPECT_TRUE(pf.exec(ask(1, 8)).ok());
  vf->probe();
  EXPECT_EQ(vf->exec(ask(2, 8)).status, CmdStatus::kBadParam);
  EXPECT_EQ(size_of(2), most);
  // Its own are set before INIT_HCA alone.
  Mailbox own = ask(1, 8);
  own.set<Set::other_function>(0).set<Set::function_id>(0);
  EXPECT_EQ(pf.exec(own).status, CmdStatus::kBadSysState);

  // A function that is ended begins anew; so do all with the physical one.
  EXPECT_TRUE(enable(2, false).ok());
  EXPECT_EQ(size_of(2), fw::kVfVectors);
  pf.function_reset();
  EXPECT_EQ(size_of(1), fw::kVfVectors);
  pf.probe();
}

TEST_F(IbVf, TheManagerReadsTheirQCounters) {
  auto one = probed(1), two = probed(2);
  EXPECT_EQ(prm::get<prm::cap_q_counter_other_vport>(pf.query_caps(0, true).must().out.data() + 16), 1u);
  EXPECT_EQ(prm::get<prm::cap_q_counter_other_vport>(one->query_caps(0, true).must().out.data() + 16), 0u);
  using In = prm::query_q_counter_in;
  using Vport = prm::query_q_counter_of_vport_in;
  using Out = prm::query_q_counter_out;
  const auto ask = [](bare::Device& by, std::uint32_t other, std::uint32_t vport, bool aggregate = true,
                      bool clear = false) {
    Mailbox in(prm::op::QUERY_Q_COUNTER, In::bytes);
    in.set<Vport::other_vport>(other).set<Vport::vport_number>(vport).set<Vport::aggregate>(aggregate);
    return by.exec(in.set<In::clear>(clear), Out::bytes);
  };
  const auto writes = [&](std::uint32_t vport) {
    return ask(pf, 1, vport).must().get<Out::rx_write_requests>();
  };
  End a(*one), b(*two);
  a.connect(b);
  b.connect(a);
  const auto before = writes(2);
  EXPECT_TRUE(a.write(b, 1));
  EXPECT_TRUE(a.write(b, 2));
  EXPECT_EQ(writes(2), before + 2);
  EXPECT_EQ(writes(1), 0u);
  EXPECT_EQ(ask(*two, 0, 0).must().get<Out::rx_write_requests>(), before + 2);  // all of its own
  EXPECT_FALSE(ask(pf, 1, 2, false).ok());                                      // no such set
  EXPECT_EQ(ask(pf, 1, kVfs + 1).status, CmdStatus::kBadParam);
  EXPECT_EQ(ask(*one, 1, 2).status, CmdStatus::kBadParam);
  EXPECT_TRUE(ask(pf, 1, 2, true, true).ok());
  EXPECT_EQ(writes(2), 0u);
}

TEST_F(IbVf, TrafficIsCountedForEach) {
  auto vf = probed(1);
  End a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  const auto received = [&](std::uint32_t vport) {
    return counted<prm::query_vport_counter_out::received_ib_unicast::octets>(vport);
  };
  const std::uint64_t before = received(1), of_pf = received(0), of_other = received(2);
  EXPECT_TRUE(a.write(b, 1));
  EXPECT_GE(received(1), before + End::kBytes);
  EXPECT_LT(received(0), of_pf + End::kBytes);  // acknowledges alone
  EXPECT_EQ(received(2), of_other);
}

// A datagram that comes in over the cable.
PacketRef datagram(Card& card, std::uint32_t qpn) {
  PacketRef p = PacketPool::make();
  p->opcode = static_cast<std::uint8_t>(prm::BthOp::kSendOnly) | prm::bth::kUd;
  p->slid = 9;
  p->dlid = card.card.port().lid();
  p->pkey = 0xffff;
  p->dest_qpn = qpn;
  p->src_qpn = 1;
  p->qkey = 0x80010000;
  p->has_grh = true;
  p->payload_len = 256;
  std::memset(p->data(), 0, p->payload_len);
  return p;
}

TEST_F(IbVf, OnlyMembersCountWhatComesToTheirGroup) {
  auto one = probed(1), two = probed(2);
  bare::Pd pd(*one);
  bare::Cq cq(*one);
  bare::QpOptions ud;
  ud.type = bare::QpType::kUd;
  bare::Qp qp(*one, pd, cq, cq, ud);
  bare::QpAttr attr;
  attr.qkey = 0x80010000;
  qp.connect(attr);
  constexpr Gid kGroup{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5};
  const auto of_group = [&](std::uint16_t opcode) {
    using In = prm::attach_to_mcg_in;
    Mailbox in(opcode, In::bytes);
    in.set<In::qpn>(qp.qpn());
    std::copy(kGroup.begin(), kGroup.end(), in.data() + In::multicast_gid::bit_off / 8);
    EXPECT_TRUE(one->exec(in).ok());
  };
  of_group(prm::op::ATTACH_TO_MCG);
  const auto received = [&](std::uint32_t vport) {
    return counted<prm::query_vport_counter_out::received_ib_multicast::packets>(vport);
  };
  const auto before = received(1), of_other = received(2);
  PacketRef p = datagram(c, 0xffffff);
  p->dlid = 0xc001;
  p->dgid = kGroup;
  c.card.port().wire_receive(sim_now(), p);
  c.machine.advance(1'000'000);
  EXPECT_EQ(received(1), before + 1);
  EXPECT_EQ(received(2), of_other);
  of_group(prm::op::DETACH_FROM_MCG);
}

std::vector<std::uint16_t> pkeys_of(bare::Device& d) {
  using In = prm::query_hca_vport_pkey_in;
  using Out = prm::query_hca_vport_pkey_out;
  std::vector<std::uint16_t> list;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Mailbox in(prm::op::QUERY_HCA_VPORT_PKEY, In::bytes);
    const auto r = d.exec(in.set<In::pkey_index>(i), Out::bytes + 4).must();
    list.push_back(static_cast<std::uint16_t>(prm::load32(r.out.data() + Out::bytes)));
  }
  return list;
}

// The subnet manager sets the port's partitions: those of all its functions, now and later.
TEST_F(IbVf, PartitionsAreThePorts) {
  enum : std::uint16_t { kPkeyTable = 0x16 };
  using List = std::vector<std::uint16_t>;
  auto one = probed(1);
  EXPECT_EQ(pkeys_of(*one), (List{0xffff, 0, 0}));
  bare::SmpData table(64);
  prm::store32(table.data(), 0x7fff8001);
  bare::smp(pf, true, kPkeyTable, 0, table);
  EXPECT_EQ(pkeys_of(pf), (List{0x7fff, 0x8001, 0}));
  EXPECT_EQ(pkeys_of(*one), (List{0x7fff, 0x8001, 0}));
  auto two = probed(2);
  EXPECT_EQ(pkeys_of(*two), (List{0x7fff, 0x8001, 0}));
  one.reset();
  two.reset();
  pf.function_reset();
  pf.probe();
  EXPECT_EQ(pkeys_of(*probed(1)), (List{0xffff, 0, 0}));
}

// Whoever makes up GUIDs at a port of the neighbourhood takes room of that port alone.
TEST_F(IbVf, NeighboursDoNotFillWhatTheManagerKnows) {
  constexpr std::uint16_t kLid = 9, kOtherLid = 11;
  constexpr std::uint64_t kPort = 0x0002c90300000100, kOtherPort = 0x0002c90300000200;
  fw::PortAgent& agent = c.firmware.port();
  const std::uint16_t own = c.card.port().lid();
  agent.assign(own, own, {{kPort, kLid}, {kOtherPort, kOtherLid}});
  const Gid sm = c.card.function(0).vport().gids.at(0);
  const auto counter = [&](const char* name) {
    for (const auto& counted : c.firmware.function(0).counters())
      if (std::string(counted.name) == name) return counted.value;
    return std::uint64_t{0};
  };
  const auto ask = [&](std::uint64_t guid, std::uint16_t lid, std::uint64_t tid = 1) {
    PacketRef p = datagram(c, 1);
    p->slid = lid;
    p->sgid = p->dgid = sm;
    prm::store64(p->sgid.data() + 8, guid);
    std::uint8_t* mad = p->data();
    mad[0] = 1;
    mad[1] = 3;     // subnet administration
    mad[2] = 2;     // its version
    mad[3] = 0x12;  // GetTable
    prm::store64(mad + 8, tid);
    prm::store32(mad + 16, 0x35u << 16);  // PathRecord
    c.card.port().wire_receive(sim_now(), p);
    c.machine.advance(20'000);
  };
  const std::uint64_t requests = counter("fw_sa_requests"), refused = counter("fw_sa_refused");
  ask(0x7777, kOtherLid);
  EXPECT_EQ(counter("fw_sa_refused"), refused);
  constexpr std::uint64_t kMany = 1100;
  for (std::uint64_t guid = 1; guid <= kMany; ++guid) ask(guid << 32, kLid);
  EXPECT_EQ(counter("fw_sa_requests"), requests + 1 + kMany);
  const auto& peers = agent.peers();
  const auto knows = [&](std::uint64_t guid) {
    return std::any_of(peers.begin(), peers.end(), [&](const auto& p) { return p.guid == guid; });
  };
  EXPECT_EQ(std::count_if(peers.begin(), peers.end(), [&](const auto& p) { return p.lid == kLid; }), 128);
  EXPECT_TRUE(knows(kPort) && knows(kMany << 32) && knows(0x7777));
  EXPECT_FALSE(knows(1ull << 32));
  // All paths between them are more than one answer is to have.
  EXPECT_GT(counter("fw_sa_refused"), refused);
  agent.assign(own, own, {});
}

TEST_F(IbVf, EndsWithItsManager) {
  auto vf = probed(1);
  End b(*vf);
  b.connect(b);
  EXPECT_TRUE(b.write(b, 1));
  pf.function_reset();
  EXPECT_TRUE(initializing(1));
  EXPECT_EQ(c.card.function(1).qps().qp_count(), 0u);
  c.machine.function(1).write32(offsetof(prm::InitSeg, cmd_dbell), 1);  // nobody hears it
  c.machine.advance(1'000'000);
  EXPECT_TRUE(initializing(1));
}

// Drivers of virtual functions write to the port's registers as if it were theirs.
TEST_F(IbVf, DoesNothingToThePort) {
  auto vf = probed(1);
  using Out = prm::access_register_out;
  const auto data = [](const CommandResult& r) {
    const std::size_t at = Out::register_data::bit_off / 8;
    return std::vector<std::uint8_t>(r.out.begin() + at, r.out.end());
  };
  std::vector<std::uint8_t> pmtu(prm::pmtu_reg::bytes), paos(prm::paos_reg::bytes),
      ppcnt(prm::ppcnt_reg::bytes);
  prm::set<prm::pmtu_reg::local_port>(pmtu.data(), 1);
  const auto before = data(pf.access_register(prm::reg::kPmtu, false, pmtu).must());
  prm::set<prm::pmtu_reg::admin_mtu>(pmtu.data(), 256);
  const auto answer = vf->access_register(prm::reg::kPmtu, true, pmtu);
  EXPECT_TRUE(answer.ok());
  EXPECT_EQ(data(answer), before);
  EXPECT_EQ(data(pf.access_register(prm::reg::kPmtu, false, pmtu).must()), before);

  prm::set<prm::paos_reg::local_port>(paos.data(), 1);
  prm::set<prm::paos_reg::admin_status>(paos.data(), 2);
  prm::set<prm::paos_reg::ase>(paos.data(), 1);
  EXPECT_TRUE(vf->access_register(prm::reg::kPaos, true, paos).ok());
  c.machine.advance(1'000'000);
  EXPECT_EQ(c.card.port().state(), PortState::kActive);

  End a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  EXPECT_TRUE(a.write(b, 1));
  const auto sent = c.card.port().counters().tx_packets;
  ASSERT_NE(sent, 0u);
  prm::set<prm::ppcnt_reg::local_port>(ppcnt.data(), 1);
  prm::set<prm::ppcnt_reg::grp>(ppcnt.data(), 0x20);
  prm::set<prm::ppcnt_reg::clr>(ppcnt.data(), 1);
  EXPECT_TRUE(vf->access_register(prm::reg::kPpcnt, false, ppcnt).ok());
  EXPECT_EQ(c.card.port().counters().tx_packets, sent);

  // What it calls itself is its own.
  std::vector<std::uint8_t> text(64);
  std::memcpy(text.data(), "a guest", 7);
  EXPECT_TRUE(vf->access_register(prm::reg::kNodeDesc, true, text).ok());
  EXPECT_EQ(data(vf->access_register(prm::reg::kNodeDesc, false, std::vector<std::uint8_t>(64)).must())[0],
            'a');
  EXPECT_EQ(data(pf.access_register(prm::reg::kNodeDesc, false, std::vector<std::uint8_t>(64)).must())[0],
            'M');
  // The card is not its to start anew.
  EXPECT_FALSE(
      vf->access_register(prm::reg::kMfrl, true, std::vector<std::uint8_t>(prm::mfrl_reg::bytes)).ok());
}

// A management datagram of IBTA 13.4.2: class, method and attribute, the rest zero.
TEST_F(IbVf, ItsDatagramsOnlyAsk) {
  auto vf = probed(1);
  using In = prm::mad_ifc_in;
  using Out = prm::mad_ifc_out;
  enum : std::uint8_t { kGet = 1, kSet = 2, kSubnet = 1, kPerformance = 4 };
  const auto ask = [&](bare::Device& d, std::uint8_t kind, std::uint8_t method, std::uint16_t attribute) {
    Mailbox in(prm::op::MAD_IFC, In::bytes, 3);
    in.set<In::port>(1);
    std::uint8_t* mad = in.data() + In::mad::bit_off / 8;
    mad[0] = 1;
    mad[1] = kind;
    mad[2] = 1;
    mad[3] = method;
    mad[17] = static_cast<std::uint8_t>(attribute);
    if (kind == kPerformance) mad[65] = 1;  // port
    const CommandResult r = d.exec(in, Out::bytes).must();
    const std::uint8_t* out = r.out.data() + Out::response_mad_packet::bit_off / 8;
    return std::vector<std::uint8_t>(out, out + 256);
  };
  const auto status = [](const std::vector<std::uint8_t>& mad) { return mad[4] << 8 | mad[5]; };
  constexpr std::uint16_t kNodeInfo = 0x11, kPortInfo = 0x15, kPortCounters = 0x12, kBadMethod = 0x08;
  const auto info = ask(*vf, kSubnet, kGet, kNodeInfo);
  EXPECT_EQ(status(info), 0);
  const auto own = vf->query_vport().must();
  EXPECT_EQ(prm::load64(info.data() + 64 + 12), own.get<Context::node_guid>());
  EXPECT_EQ(prm::load64(info.data() + 64 + 20), own.get<Context::port_guid>());
  EXPECT_EQ(status(ask(*vf, kSubnet, kSet, kPortInfo)), kBadMethod);
  EXPECT_EQ(status(ask(*vf, kPerformance, kSet, kPortCounters)), kBadMethod);
  EXPECT_EQ(pf.query_vport().must().get<Context::lid>(), own.get<Context::lid>());
  // Its counters tell of itself.
  auto other = probed(2);
  End a(*vf), b(*vf);
  a.connect(b);
  b.connect(a);
  EXPECT_TRUE(a.write(b, 1));
  const auto packets = [&](bare::Device& d) {
    const auto mad = ask(d, kPerformance, kGet, kPortCounters);
    EXPECT_EQ(status(mad), 0);
    return prm::load32(mad.data() + 64 + 32);  // PortXmitPkts
  };
  EXPECT_GT(packets(*vf), 0u);
  const auto of_other = packets(*other);
  EXPECT_TRUE(b.write(a, 2));
  EXPECT_EQ(packets(*other), of_other);
}

// Who was there before cannot be told from what it finds.
TEST_F(IbVf, LeavesNothingBehind) {
  const auto digest = [&] {
    return std::pair(digest_of(c.card.function(1), false), digest_of(c.firmware.function(1), false));
  };
  // A driver whose function is taken away finds its interface disabled, until the next one comes.
  auto interface_used = probed(1);
  EXPECT_TRUE(enable(1, false).ok());
  const auto before = digest();
  for (int round = 0; round < 20; ++round) {
    {
      auto vf = probed(1);
      {
        End a(pf), b(*vf);
        a.connect(b);
        b.connect(a);
        EXPECT_TRUE(a.write(b, static_cast<std::uint8_t>(round)));
        EXPECT_TRUE(b.write(a, static_cast<std::uint8_t>(round + 1)));
        EXPECT_NE(digest(), before);
      }
      if (round % 2 == 0) vf->teardown();  // its driver ends well, or it is taken away
    }
    EXPECT_TRUE(enable(1, false).ok());
    EXPECT_EQ(digest(), before) << round;
  }
}

// Its driver may not reset, and waits for the interface to be disabled (mlx5 health.c).
TEST_F(IbVf, AFunctionThatIsDeadStartsAnewByItself) {
  constexpr std::uint64_t kSyndrome = offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, synd);
  auto dead = probed(1);
  const auto nic = [] {
    return the_card().machine.function(1).read32(offsetof(prm::InitSeg, cmdq_addr_l_sz)) >> 8 & 7;
  };
  c.card.function(1).health().model_fault("test", "asked for");
  c.machine.advance(3'000'000'000);
  EXPECT_NE(c.machine.function(1).read8(kSyndrome), 0);
  EXPECT_EQ(nic(), prm::kNicFull);
  c.machine.advance(3'000'000'000);
  EXPECT_EQ(c.machine.function(1).read8(kSyndrome), 0);
  EXPECT_EQ(nic(), prm::kNicDisabled);
  dead->function_reset();
  dead->probe();
  EXPECT_EQ(nic(), prm::kNicFull);
  dead->teardown();
}

}  // namespace
}  // namespace hcasim
