// SPDX-License-Identifier: BSD-3-Clause
// Sub-functions: how their manager makes, starts and ends them, what it is told of them, and what they have
// of the physical function's.
#include "eth_vf_rig.h"
#include "firmware-stub/opcodes.h"
#include "prm/vhca_state.h"
#include "tests/fuzz/dice.h"

namespace hcasim {
namespace {

using g = prm::cmd_hca_cap;
using prm::VhcaState;

constexpr unsigned kSfs = 3;
constexpr std::uint32_t kFirst = VportNumbers::kFirstSf;
constexpr FunctionId kFirstSf = kVfs + 1;  // among the card's functions

Card& sf_card() {
  static auto* made = new Card(fw::Link::kEthernet, kSfs);  // lives as long as the SystemC kernel
  return *made;
}

class Sf : public EthVf {
 protected:
  Sf() : EthVf(sf_card()) {}

  CommandResult alloc(std::uint32_t id) {
    Mailbox in(prm::op::ALLOC_SF, prm::alloc_sf_in::bytes);
    return pf.exec(in.set<prm::alloc_sf_in::function_id>(id));
  }
  CommandResult dealloc(std::uint32_t id) {
    Mailbox in(prm::op::DEALLOC_SF, prm::dealloc_sf_in::bytes);
    return pf.exec(in.set<prm::dealloc_sf_in::function_id>(id));
  }
  CommandResult query(bare::Device& by, std::uint32_t id) {
    Mailbox in(prm::op::QUERY_VHCA_STATE, prm::query_vhca_state_in::bytes);
    return by.exec(in.set<prm::query_vhca_state_in::function_id>(id), prm::query_vhca_state_out::bytes);
  }
  VhcaState state(std::uint32_t id) {
    using C = prm::query_vhca_state_out::vhca_state_context;
    return static_cast<VhcaState>(query(pf, id).must().get<C::vhca_state>());
  }
  CommandResult watch(std::uint32_t id, bool on = true) {
    using In = prm::modify_vhca_state_in;
    Mailbox in(prm::op::MODIFY_VHCA_STATE, In::bytes);
    in.set<In::function_id>(id).set<In::vhca_state_field_select::arm_change_event>(1);
    return pf.exec(in.set<In::vhca_state_context::arm_change_event>(on));
  }
  CommandResult call(std::uint32_t id, std::uint32_t number) {
    using In = prm::modify_vhca_state_in;
    Mailbox in(prm::op::MODIFY_VHCA_STATE, In::bytes);
    in.set<In::function_id>(id).set<In::vhca_state_field_select::sw_function_id>(1);
    return pf.exec(in.set<In::vhca_state_context::sw_function_id>(number));
  }
  // Allocated, with a MAC address, active, and its driver's.
  std::unique_ptr<bare::Device> made(unsigned k, const bare::DeviceOptions& options = {}) {
    EXPECT_TRUE(alloc(kFirst + k).ok());
    EXPECT_TRUE(set_mac(kFirst + k, kMac + k).ok());
    EXPECT_TRUE(enable(kFirst + k).ok());
    auto device = std::make_unique<bare::Device>(c.machine.function(kFirstSf + k), options);
    device->probe();
    return device;
  }
  // Events of that sub-function's state since the last call.
  unsigned told(std::uint32_t id) {
    c.machine.advance(100'000);
    const unsigned n = pf.count_async(prm::EqeType::kVhcaStateChange, id);
    pf.clear_async_events();
    return n;
  }
};

TEST_F(Sf, TheManagerIsOfferedThem) {
  EXPECT_EQ(pf.cap<g::sf>(), 1u);
  EXPECT_EQ(pf.cap<g::max_num_sf>(), kSfs);
  EXPECT_EQ(pf.cap<g::sf_base_id>(), kFirst);
  EXPECT_EQ(pf.cap<g::log_min_sf_size>(), 8u);
  EXPECT_EQ(pf.cap<g::vhca_state>(), 1u) << "switched on by the driver";
  for (unsigned k = 0; k < kSfs; ++k) EXPECT_EQ(state(kFirst + k), VhcaState::kInvalid);
  auto sf = made(1);
  EXPECT_EQ(sf->cap<g::sf>(), 0u);
  EXPECT_EQ(sf->cap<g::vhca_state>(), 0u);
  EXPECT_EQ(sf->cap<g::eswitch_manager>(), 0u);
  EXPECT_EQ(sf->cap<g::vport_group_manager>(), 0u);
  EXPECT_EQ(sf->cap<g::vhca_id>(), kFirstSf + 1u);
}

TEST_F(Sf, AStateLeadsToTheNextAlone) {
  EXPECT_EQ(enable(kFirst).status, CmdStatus::kBadResState);
  EXPECT_EQ(dealloc(kFirst).status, CmdStatus::kBadResState);
  EXPECT_EQ(call(kFirst, 88).status, CmdStatus::kBadResState);
  ASSERT_TRUE(alloc(kFirst).ok());
  EXPECT_EQ(alloc(kFirst).status, CmdStatus::kBadResState);
  EXPECT_EQ(enable(kFirst, false).status, CmdStatus::kBadResState);
  EXPECT_EQ(state(kFirst), VhcaState::kAllocated);
  ASSERT_TRUE(call(kFirst, 88).ok());
  EXPECT_EQ(query(pf, kFirst).must().get<prm::query_vhca_state_out::vhca_state_context::sw_function_id>(),
            88u);
  ASSERT_TRUE(enable(kFirst).ok());
  EXPECT_EQ(state(kFirst), VhcaState::kActive);
  EXPECT_EQ(dealloc(kFirst).status, CmdStatus::kBadResState);
  bare::Device sf(c.machine.function(kFirstSf));
  sf.probe();
  EXPECT_EQ(state(kFirst), VhcaState::kInUse);
  EXPECT_EQ(state(kFirst + 1), VhcaState::kInvalid);
  ASSERT_TRUE(enable(kFirst, false).ok());
  EXPECT_EQ(state(kFirst), VhcaState::kTeardownRequest);
  EXPECT_EQ(dealloc(kFirst).status, CmdStatus::kBadResState);
  { bare::Pd pd(sf); }  // it still works
  EXPECT_TRUE(sf.failed_destroys().empty());
  sf.teardown();
  EXPECT_EQ(state(kFirst), VhcaState::kAllocated);
  EXPECT_TRUE(dealloc(kFirst).ok());
  EXPECT_EQ(state(kFirst), VhcaState::kInvalid);
}

TEST_F(Sf, ADriverThatLeavesByItselfMayComeAgain) {
  auto sf = made(0);
  sf->teardown();
  EXPECT_EQ(state(kFirst), VhcaState::kActive);
  sf->probe();
  EXPECT_EQ(state(kFirst), VhcaState::kInUse);
}

TEST_F(Sf, OneThatIsTooLateGetsNoFurther) {
  ASSERT_TRUE(alloc(kFirst).ok());
  bare::Device early(c.machine.function(kFirstSf));
  early.cmd().start();
  EXPECT_EQ(early.enable_hca().status, CmdStatus::kBadResState);
  ASSERT_TRUE(enable(kFirst).ok());
  EXPECT_TRUE(early.enable_hca().ok());
  // Its driver, which has not initialized it (as Linux's, from 6.12 on, until devlink has it reload), ends it
  // itself.
  ASSERT_TRUE(enable(kFirst, false).ok());
  EXPECT_EQ(state(kFirst), VhcaState::kTeardownRequest);
  EXPECT_EQ(dealloc(kFirst).status, CmdStatus::kBadResState);
  EXPECT_TRUE(early.disable_hca().ok());
  EXPECT_EQ(state(kFirst), VhcaState::kAllocated);
  EXPECT_EQ(early.init_hca().status, CmdStatus::kBadSysState);
  EXPECT_EQ(early.enable_hca().status, CmdStatus::kBadResState);
  // One that nobody has enabled is ended at once.
  ASSERT_TRUE(enable(kFirst).ok());
  ASSERT_TRUE(enable(kFirst, false).ok());
  EXPECT_EQ(state(kFirst), VhcaState::kAllocated);
  EXPECT_TRUE(dealloc(kFirst).ok());
}

TEST_F(Sf, ChangesAreToldOnceUntilArmedAgain) {
  for (unsigned k = 0; k < kSfs; ++k) ASSERT_TRUE(watch(kFirst + k).ok());
  pf.clear_async_events();
  ASSERT_TRUE(alloc(kFirst + 1).ok());
  EXPECT_EQ(told(kFirst), 0u);
  ASSERT_TRUE(watch(kFirst + 1).ok());
  EXPECT_EQ(told(kFirst + 1), 0u) << "nothing since";
  ASSERT_TRUE(enable(kFirst + 1).ok());
  EXPECT_EQ(told(kFirst + 1), 1u);
  ASSERT_TRUE(set_mac(kFirst + 1, kMac).ok());
  bare::Device sf(c.machine.function(kFirstSf + 1));
  sf.probe();
  EXPECT_EQ(told(kFirst + 1), 0u);
  ASSERT_TRUE(watch(kFirst + 1).ok());  // what has been missed
  EXPECT_EQ(told(kFirst + 1), 1u);
  ASSERT_TRUE(watch(kFirst + 1).ok());
  ASSERT_TRUE(enable(kFirst + 1, false).ok());
  EXPECT_EQ(told(kFirst + 1), 1u);
  ASSERT_TRUE(watch(kFirst + 1).ok());
  sf.teardown();
  EXPECT_EQ(told(kFirst + 1), 1u);
  ASSERT_TRUE(watch(kFirst + 1, false).ok());
  EXPECT_TRUE(dealloc(kFirst + 1).ok());
  EXPECT_EQ(told(kFirst + 1), 0u);
}

TEST_F(Sf, ItsVportIsTheManagersToSettleUntilItGoes) {
  auto sf = made(2);
  EXPECT_EQ(mac_of(nic_vport(*sf, 0, false).must()), kMac + 2);
  EXPECT_EQ(mac_of(nic_vport(pf, kFirst + 2, true).must()), kMac + 2);
  EXPECT_EQ(mac_of(nic_vport(pf, kVfs, true).must()), 0u);
  EXPECT_EQ(nic_vport(pf, kFirst + kSfs, true).status, CmdStatus::kBadParam);
  EXPECT_EQ(nic_vport(pf, kFirst - 1, true).status, CmdStatus::kBadParam);
  EXPECT_EQ(nic_vport(pf, kVfs + 1, true).status, CmdStatus::kBadParam) << "not by its place in the card";
  ASSERT_TRUE(arm(kFirst + 2).ok());
  pf.clear_async_events();
  EXPECT_TRUE(list(*sf, 0, kMac).ok());
  c.machine.advance(100'000);
  EXPECT_EQ(pf.count_async(prm::EqeType::kNicVportChange, kFirst + 2), 1u);
  ASSERT_TRUE(set_state(kFirst + 2, kDown).ok());
  EXPECT_EQ(state_of(*sf), 0u);
  EXPECT_TRUE(make_table(pf, kIngressAcl, kFirst + 2).ok());
  EXPECT_FALSE(make_table(pf, kIngressAcl, kFirst + kSfs).ok());
  ASSERT_TRUE(enable(kFirst + 2, false).ok());
  sf->teardown();
  ASSERT_TRUE(dealloc(kFirst + 2).ok());
  EXPECT_EQ(mac_of(nic_vport(pf, kFirst + 2, true).must()), 0u);
  pf.function_reset();
  pf.probe();
}

TEST_F(Sf, MemoryAndInterruptsAreThePhysicalFunctions) {
  auto a = made(0), b = made(1);
  EXPECT_EQ(a->cap<g::log_max_qp>(), b->cap<g::log_max_qp>());
  const std::uint64_t interrupts = c.hosts[0].interrupts;
  {
    End from(*a), to(*b);
    from.connect(to);
    to.connect(from);
    EXPECT_TRUE(from.write(to, 3));
    EXPECT_TRUE(to.write(from, 4));
    // The last vector of that function's table, and one that it has not.
    EXPECT_NO_THROW(bare::EventQueue(*a, 4, HCA_MSIX_VECTORS - 1, {}, [](const prm::Eqe&) {}).destroy());
    EXPECT_THROW(bare::EventQueue(*a, 4, HCA_MSIX_VECTORS, {}, [](const prm::Eqe&) {}), bare::BareError);
  }
  EXPECT_GT(c.hosts[0].interrupts, interrupts);
  EXPECT_EQ(c.hosts[1].accesses, 0u);
}

TEST_F(Sf, NothingIsLeftOfOne) {
  const auto objects = [&] {
    std::uint64_t n = 0;
    for (FunctionId f = 0; f < c.card.functions(); ++f)
      for (const auto& counter : c.firmware.function(f).counters())
        if (std::strncmp(counter.name, "fw_", 3) != 0) n += counter.value;
    return n;
  };
  const std::uint64_t before = objects();
  for (int i = 0; i < 10; ++i) {
    auto sf = made(0);
    EXPECT_GT(objects(), before);
    ASSERT_TRUE(enable(kFirst, false).ok());
    sf->teardown();
    ASSERT_TRUE(dealloc(kFirst).ok());
    EXPECT_EQ(objects(), before);
  }
}

// Of the one that had its number before.
TEST_F(Sf, NothingIsCountedOfANewOne) {
  const auto frames = [&] {
    using In = prm::query_vport_counter_in;
    Mailbox in(prm::op::QUERY_VPORT_COUNTER, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(kFirst);
    return pf.exec(in, prm::query_vport_counter_out::bytes)
        .must()
        .get<prm::query_vport_counter_out::transmitted_eth_unicast::packets>();
  };
  const auto refused = [&] {
    using In = prm::query_vnic_env_in;
    Mailbox in(prm::op::QUERY_VNIC_ENV, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(kFirst);
    return pf.exec(in, prm::query_vnic_env_out::bytes)
        .must()
        .get<prm::query_vnic_env_out::vport_env::invalid_command>();
  };
  Vport& vport = c.card.function(kFirstSf).vport();
  for (int i = 0; i < 2; ++i) {
    auto sf = made(0);
    EXPECT_EQ(frames(), 0u);
    EXPECT_EQ(refused(), 0u);
    vport.traffic.tx_eth[VportTraffic::kUnicast].packets = 7;
    EXPECT_FALSE(sf->exec(Mailbox(prm::op::ALLOC_SF, prm::alloc_sf_in::bytes)).ok());
    EXPECT_EQ(frames(), 7u);
    EXPECT_EQ(refused(), 1u);
    ASSERT_TRUE(enable(kFirst, false).ok());
    sf->teardown();
    ASSERT_TRUE(dealloc(kFirst).ok());
  }
}

TEST_F(Sf, WithThePhysicalFunctionAllGo) {
  auto sf = made(0);
  pf.function_reset();
  EXPECT_TRUE(sf->function().read32(offsetof(prm::InitSeg, initializing)) & prm::InitSeg::kInitializing);
  sf->function_reset();  // for its driver to notice
  pf.probe();
  EXPECT_EQ(state(kFirst), VhcaState::kInvalid);
  sf = made(0);
  pf.teardown();  // its driver leaves, and has forgotten one
  EXPECT_TRUE(sf->function().read32(offsetof(prm::InitSeg, initializing)) & prm::InitSeg::kInitializing);
  sf->function_reset();
  pf.probe();
  EXPECT_EQ(state(kFirst), VhcaState::kInvalid);
  EXPECT_EQ(mac_of(nic_vport(pf, kFirst, true).must()), 0u);
}

TEST_F(Sf, OnlyTheManagerSpeaksOfThem) {
  auto sf = made(0), vf = probed(1);
  for (bare::Device* d : {sf.get(), vf.get()}) {
    EXPECT_FALSE(query(*d, kFirst).ok());
    Mailbox in(prm::op::ALLOC_SF, prm::alloc_sf_in::bytes);
    EXPECT_EQ(d->exec(in.set<prm::alloc_sf_in::function_id>(kFirst + 1)).status, CmdStatus::kBadOp);
    EXPECT_EQ(nic_vport(*d, kFirst + 1, true).status, CmdStatus::kBadParam);
    EXPECT_FALSE(make_table(*d, kIngressAcl, kFirst).ok());
    Mailbox other(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
    EXPECT_EQ(d->exec(other.set<prm::enable_hca_in::function_id>(1)).status, CmdStatus::kBadParam);
    Mailbox caps(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes);
    caps.set<prm::query_hca_cap_in::other_function>(1).set<prm::query_hca_cap_in::function_id>(kFirst);
    EXPECT_EQ(d->exec(caps, prm::query_hca_cap_out::bytes).status, CmdStatus::kBadParam);
  }
  EXPECT_EQ(alloc(1).status, CmdStatus::kBadParam) << "a virtual function is none";
  EXPECT_EQ(alloc(kFirst + kSfs).status, CmdStatus::kBadParam);
  EXPECT_EQ(query(pf, 0).status, CmdStatus::kBadParam);
}

// Commands of random content: mostly small numbers, which name what others may have, and others' vports.
TEST_F(Sf, AHostileOneIsNotNoticedByOthers) {
  bare::Dice dice{23};
  const auto send = [&dice](bare::Device& d) {
    const fw::Opcode& op = fw::all_opcodes()[dice.below(fw::all_opcodes().size())];
    Mailbox in(op.opcode, op.min_in + dice.below(256), static_cast<std::uint16_t>(dice.below(4)));
    for (std::size_t at = 8; at < in.size(); ++at)
      if (dice.chance(30)) in[at] = dice.chance(70) ? static_cast<std::uint8_t>(dice.below(8)) : dice.byte();
    if (dice.chance(30) && in.size() >= 12) {  // other_function, other_vport; a sub-function
      in[8] |= 0x80;
      prm::store16(in.data() + 10, kFirst + static_cast<std::uint32_t>(dice.below(kSfs + 1)));
    }
    return d.exec(in, op.min_out + dice.below(256)).done;
  };
  auto good = made(1);
  End a(pf), b(*good);
  a.connect(b);
  b.connect(a);
  bare::DeviceOptions polled;
  polled.event_commands = false;  // after some commands no event comes any more
  std::uint8_t seed = 0;
  for (unsigned round = 0; round < bare::rounds(4); ++round) {
    auto hostile = made(0, polled);
    for (unsigned i = 0; i < 300; ++i) {
      try {
        if (!send(*hostile)) break;
      } catch (const bare::BareError&) {  // its own driver does not know what to make of it any more
        break;
      }
      if (i % 50 == 0) {
        EXPECT_TRUE(a.write(b, ++seed)) << round << ' ' << i;
        EXPECT_TRUE(b.write(a, ++seed)) << round << ' ' << i;
      }
    }
    EXPECT_EQ(state(kFirst + 1), VhcaState::kInUse);
    EXPECT_EQ(state(kFirst + 2), VhcaState::kInvalid);
    EXPECT_FALSE(c.card.dead());
    EXPECT_EQ(mac_of(nic_vport(pf, kFirst + 1, true).must()), kMac + 1);
    // Whatever has become of it, its manager is rid of it.
    if (enable(kFirst, false).ok() && state(kFirst) == VhcaState::kTeardownRequest) hostile->disable_hca();
    EXPECT_TRUE(dealloc(kFirst).ok()) << round << ": state " << static_cast<int>(state(kFirst));
    hostile->function_reset();  // for its driver to notice
  }
}

}  // namespace
}  // namespace hcasim
