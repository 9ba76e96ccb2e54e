// SPDX-License-Identifier: BSD-3-Clause
// MAD_IFC, and the port under a subnet manager that is not built in.
#include <algorithm>

#include "driver/bare/qp.h"
#include "fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using In = prm::mad_ifc_in;
using Out = prm::mad_ifc_out;
constexpr std::size_t kData = 64;
enum : std::uint8_t { kSubn = 0x01, kPerf = 0x04, kGet = 1, kSet = 2 };
enum : std::uint16_t {
  kNodeDesc = 0x10,
  kNodeInfo = 0x11,
  kGuidInfo = 0x14,
  kPortInfo = 0x15,
  kPkeys = 0x16,
  kMlnxExtPortInfo = 0xff90
};
enum : std::uint16_t { kBadClass = 0x04, kBadMethod = 0x08, kBadAttribute = 0x0c, kBadField = 0x1c };

class Mads : public FirmwareTest {
 protected:
  std::uint64_t key = 0;  // M_Key of what is sent
  bool trusted = false;   // "ignore M_Key"
  struct Answer {
    std::uint16_t status;
    std::uint8_t method;
    std::vector<std::uint8_t> data;
  };
  CommandResult send(std::uint8_t mgmt_class, std::uint8_t method, std::uint16_t attribute,
                     std::uint32_t modifier, const std::vector<std::uint8_t>& data, std::uint8_t version = 1,
                     std::uint8_t class_version = 1) {
    Mailbox in(prm::op::MAD_IFC, In::bytes);
    in.set<In::op_mod>(trusted ? 1 : 0);
    in.set<In::remote_lid>(9);
    in.set<In::port>(1);
    std::uint8_t* mad = in.data() + In::mad::bit_off / 8;
    mad[0] = version;
    mad[1] = mgmt_class;
    mad[2] = class_version;
    mad[3] = method;
    prm::store64(mad + 8, 0x1122334455667788);
    prm::store32(mad + 16, std::uint32_t{attribute} << 16);
    prm::store32(mad + 20, modifier);
    prm::store64(mad + 24, key);
    std::copy(data.begin(), data.end(), mad + kData);
    return dev().exec(in, Out::bytes);
  }
  Answer ask(std::uint8_t mgmt_class, std::uint8_t method, std::uint16_t attribute,
             std::uint32_t modifier = 0, const std::vector<std::uint8_t>& data = {}) {
    const auto r = send(mgmt_class, method, attribute, modifier, data).must();
    const std::uint8_t* mad = r.out.data() + Out::response_mad_packet::bit_off / 8;
    EXPECT_EQ(prm::load64(mad + 8), 0x1122334455667788u) << "transaction ID";
    return {static_cast<std::uint16_t>(prm::load32(mad + 4) >> 16), mad[3], {mad + kData, mad + 256}};
  }
  // To be written again: without the physical state, as this cannot be asked for.
  std::vector<std::uint8_t> port_info() {
    std::vector<std::uint8_t> info = ask(kSubn, kGet, kPortInfo, 1).data;
    info[kPhysicalAt] = 0;
    return info;
  }
  static constexpr std::size_t kStateAt = 32, kPhysicalAt = 33;
  std::uint16_t set_states(unsigned state, unsigned physical) {
    std::vector<std::uint8_t> info = port_info();
    prm::store32(info.data() + 16, 0x00420007);  // LID, SM LID
    info[kStateAt] = static_cast<std::uint8_t>((info[kStateAt] & 0xf0) | state);
    info[kPhysicalAt] = static_cast<std::uint8_t>(physical << 4);
    return ask(kSubn, kSet, kPortInfo, 1, info).status;
  }
  unsigned physical() {
    using Port = prm::query_hca_vport_context_out::hca_vport_context;
    const unsigned shown = ask(kSubn, kGet, kPortInfo, 1).data[kPhysicalAt] >> 4;
    EXPECT_EQ(dev().query_vport().must().get<Port::port_physical_state>(), shown);
    return shown;
  }
};

TEST_F(Mads, NodeInfo) {
  const Answer a = ask(kSubn, kGet, kNodeInfo);
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(a.method, 0x81);
  EXPECT_EQ(a.data[2], 1) << "channel adapter";
  EXPECT_EQ(a.data[3], 1) << "ports";
  const auto v = dev().query_vport().must();
  EXPECT_EQ(prm::load64(a.data.data() + 12),
            v.get<prm::query_hca_vport_context_out::hca_vport_context::node_guid>());
}

TEST_F(Mads, NodeDescription) {
  const Answer a = ask(kSubn, kGet, kNodeDesc);
  EXPECT_EQ(a.status, 0);
  EXPECT_NE(a.data[0], 0);
}

TEST_F(Mads, PortInfoAgreesWithTheVport) {
  const Answer a = ask(kSubn, kGet, kPortInfo, 1);
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 16) >> 16, dev().lid());
  EXPECT_EQ(a.data[32] & 0xf, 4) << "ACTIVE";
  EXPECT_EQ(a.data[33] >> 4, 5) << "LinkUp";
  EXPECT_EQ(a.data[31], 2) << "4X";
  EXPECT_EQ(ask(kSubn, kGet, kPortInfo, 2).status, kBadField);
}

TEST_F(Mads, PortInfoSaysWhatThePortCanDo) {
  using Set = prm::modify_hca_vport_context_in;
  using Context = prm::query_hca_vport_context_out::hca_vport_context;
  const auto mask = [this] { return prm::load32(ask(kSubn, kGet, kPortInfo, 1).data.data() + 20); };
  // Traps, service levels, system image GUID, extended speeds, CapabilityMask2, notices of it and of other
  // changes, client reregistration.
  EXPECT_EQ(mask(), 0x0640c848u);
  EXPECT_EQ(dev().query_vport().must().get<Context::cap_mask1>(), mask());
  constexpr std::uint32_t kVendorClass = 1u << 20;
  const auto set_vendor_class = [&](std::uint32_t value) {
    Mailbox in(prm::op::MODIFY_HCA_VPORT_CONTEXT, Set::bytes);
    in.set<Set::hca_vport_context::cap_mask1>(value);
    in.set<Set::hca_vport_context::cap_mask1_field_select>(kVendorClass);
    EXPECT_TRUE(dev().exec(in).ok());
  };
  set_vendor_class(kVendorClass);
  EXPECT_EQ(mask(), 0x0650c848u);
  set_vendor_class(0);
  EXPECT_EQ(mask(), 0x0640c848u);
}

// Tools ask for it before anything else.
TEST_F(Mads, ThereIsNoFdr10) {
  const Answer a = ask(kSubn, kGet, kMlnxExtPortInfo, 1, std::vector<std::uint8_t>(64, 0xff));
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(std::vector<std::uint8_t>(a.data.begin(), a.data.begin() + 64), std::vector<std::uint8_t>(64));
  EXPECT_EQ(ask(kSubn, kGet, kMlnxExtPortInfo, 2).status, kBadField);
  std::vector<std::uint8_t> data(64);
  data[3] = 1;  // StateChangeEnable
  EXPECT_EQ(ask(kSubn, kSet, kMlnxExtPortInfo, 1, data).status, 0);
  data[11] = 1;  // LinkSpeedEnabled
  EXPECT_EQ(ask(kSubn, kSet, kMlnxExtPortInfo, 1, data).status, kBadField);
}

// The built-in subnet manager is there when the link has been taken down.
TEST_F(Mads, ThePortComesBack) {
  for (const auto& [state, physical_state] : {std::pair(1u, 0u), std::pair(0u, 2u), std::pair(0u, 1u)}) {
    dev().clear_async_events();
    EXPECT_EQ(set_states(state, physical_state), 0);
    machine().advance(1'000'000);
    EXPECT_EQ(dev().port_state(), 4u) << physical_state;
    const auto& events = dev().async_events();
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [](const auto& e) { return e.sub_type == prm::kPortDown; }),
              1)
        << physical_state;
  }
  EXPECT_EQ(set_states(0, 3), 0);
  EXPECT_EQ(set_states(0, 2), 0);  // before it has come to that
  machine().advance(50'000'000);
  EXPECT_EQ(dev().port_state(), 4u);
  EXPECT_EQ(set_states(0, 3), 0);
  machine().advance(50'000'000);
  EXPECT_EQ(dev().port_state(), 1u);
  EXPECT_EQ(physical(), 3u) << "Disabled";
  EXPECT_EQ(set_states(1, 0), 0) << "down already";
  EXPECT_EQ(dev().port_state(), 1u);
  EXPECT_EQ(set_states(0, 2), 0);
  EXPECT_EQ(dev().port_state(), 4u);
  EXPECT_EQ(physical(), 5u);
}

TEST_F(Mads, PkeyTableAndGuids) {
  const Answer p = ask(kSubn, kGet, kPkeys, 0);
  EXPECT_EQ(p.status, 0);
  EXPECT_EQ(prm::load32(p.data.data()), 0xffff0000u);
  EXPECT_EQ(ask(kSubn, kGet, kPkeys, 3).status, 0);
  EXPECT_EQ(ask(kSubn, kGet, kPkeys, 4).status, kBadField);
  EXPECT_EQ(ask(kSubn, kGet, kPkeys, 0xffff).status, kBadField);
  EXPECT_EQ(ask(kSubn, kGet, kGuidInfo, 0).status, 0);
  EXPECT_EQ(ask(kSubn, kGet, kGuidInfo, 1).status, kBadField);
  EXPECT_EQ(port_info()[50], 1) << "GUIDCap";
  const std::vector<std::uint8_t> guids = ask(kSubn, kGet, kGuidInfo, 0).data;
  const Answer written = ask(kSubn, kSet, kGuidInfo, 0, std::vector<std::uint8_t>(64, 7));
  EXPECT_EQ(written.status, 0);
  EXPECT_EQ(written.data, guids) << "the first is read-only";
  EXPECT_EQ(ask(kSubn, kGet, kGuidInfo, 0xffffffff).status, kBadField);
}

TEST_F(Mads, PerformanceClass) {
  EXPECT_EQ(ask(kPerf, kGet, 1).status, 0);
  std::vector<std::uint8_t> port = {0, 1};
  EXPECT_EQ(ask(kPerf, kGet, 0x12, 0, port).status, 0);
  EXPECT_EQ(ask(kPerf, kGet, 0x1d, 0, port).status, 0);
  EXPECT_EQ(ask(kPerf, kSet, 0x12, 0, port).status, 0);
  port[1] = 9;
  EXPECT_EQ(ask(kPerf, kGet, 0x12, 0, port).status, kBadField);
}

// What a Set selects goes, all else stays.
TEST_F(Mads, CountersAreTakenBackAsSelected) {
  enum : std::uint16_t { kCounters = 0x12, kExtended = 0x1d };
  ASSERT_EQ(fn().inject("link=down"), "");
  machine().advance(1'000'000);
  ASSERT_EQ(fn().inject("link=up"), "");
  machine().advance(1'000'000);
  {
    Pd pd(dev());
    Cq cq(dev());
    Qp qp(dev(), pd, cq, cq);
    Buffer buffer = dev().memory().allocate(4096);
    Mr mr(dev(), Mr::of(pd, buffer));
    QpAttr attr;
    attr.remote_qpn = qp.qpn();
    qp.connect(attr);
    SendWr wr;
    wr.op = WqeOp::kRdmaWrite;
    wr.sges = {{mr.start(), mr.key(), 1024}};
    wr.raddr = mr.start() + 1024;
    wr.rkey = mr.key();
    const auto sent_words = [this] {
      return prm::load64(ask(kPerf, kGet, kExtended, 0, {0, 1}).data.data() + 8);
    };
    const std::uint64_t before = sent_words();
    qp.post(wr);
    ASSERT_FALSE(cq.wait_one().error());
    // LRH to ICRC of the WRITE and of its acknowledge, in units of four bytes
    EXPECT_EQ(sent_words() - before, (8u + 12 + 16 + 1024 + 4) / 4 + (8 + 12 + 4 + 4) / 4);
  }
  const auto select = [this](std::uint16_t attribute, std::uint16_t mask) {
    std::vector<std::uint8_t> data(64);
    data[1] = 1;  // the port
    prm::store16(data.data() + 2, mask);
    return ask(kPerf, mask != 0 ? kSet : kGet, attribute, 0, data).data;
  };
  const auto counters = [&] { return select(kCounters, 0); };
  const auto downed = [&] { return counters()[7]; };
  const auto counter = [&](std::size_t at) { return prm::load32(counters().data() + at); };
  constexpr std::size_t kXmitData = 24, kRcvData = 28, kXmitPackets = 32, kRcvPackets = 36;
  ASSERT_GT(downed(), 0u);
  ASSERT_GT(counter(kXmitPackets), 0u);
  const std::uint32_t data = counter(kXmitData), packets = counter(kRcvPackets);
  const auto answer = select(kCounters, 1 << 2);
  EXPECT_EQ(answer[7], 0u);
  EXPECT_EQ(prm::load32(answer.data() + kXmitData), data) << "what has not been selected";
  EXPECT_EQ(downed(), 0u);
  EXPECT_EQ(counter(kXmitData), data);
  select(kCounters, 1 << 13 | 1 << 14);
  EXPECT_EQ(counter(kXmitData), data);
  EXPECT_EQ(counter(kRcvData), 0u);
  EXPECT_EQ(counter(kXmitPackets), 0u);
  EXPECT_EQ(counter(kRcvPackets), packets);
  select(kExtended, 1 << 0 | 1 << 7);
  EXPECT_EQ(counter(kXmitData), 0u);
  EXPECT_EQ(counter(kRcvPackets), packets);
  select(kExtended, 1 << 3);
  EXPECT_EQ(counter(kRcvPackets), 0u);
  EXPECT_EQ(prm::load64(select(kExtended, 0).data() + 48), 0u) << "unicast packets";
}

TEST_F(Mads, WhatIsNotAnswered) {
  breaks({"cmd-function", "mad-format"});
  EXPECT_EQ(ask(kSubn, kGet, 0x1234).status, kBadAttribute);
  EXPECT_EQ(ask(kSubn, kSet, kNodeInfo).status, kBadAttribute);
  EXPECT_EQ(ask(kPerf, kGet, 0x1234).status, kBadAttribute);
  EXPECT_EQ(ask(kSubn, 0x55, kNodeInfo).status, kBadMethod);
  EXPECT_EQ(ask(0x77, kGet, kNodeInfo).status, kBadClass);
  EXPECT_STATUS(send(kSubn, kGet, kNodeInfo, 0, {}, 9), CmdStatus::kBadPkt);
  for (const std::uint8_t kind : {kSubn, kPerf}) {
    const auto r = send(kind, kGet, kNodeInfo, 0, {}, 1, 2).must();
    EXPECT_EQ(prm::load32(r.out.data() + Out::response_mad_packet::bit_off / 8 + 4) >> 16, kBadClass)
        << "version of class " << unsigned{kind};
  }
  Mailbox in(prm::op::MAD_IFC, In::bytes);
  EXPECT_STATUS(dev().exec(in.set<In::port>(2), Out::bytes), CmdStatus::kBadParam);
}

// Without the built-in subnet manager the port waits in INIT; one in the guest brings it up by SMPs.
class ForeignSm : public Mads {
 protected:
  DeviceOptions device_options() const override {
    DeviceOptions o;
    o.wait_active = false;
    return o;
  }
  std::size_t hca() const override { return 1; }
};

TEST_F(ForeignSm, BringsThePortUp) {
  EXPECT_EQ(dev().port_state(), 2);
  EXPECT_EQ(dev().query_vport().must().get<prm::query_hca_vport_context_out::hca_vport_context::has_smi>(),
            1u);
  dev().clear_async_events();
  std::vector<std::uint8_t> info = port_info();
  prm::store32(info.data() + 16, 0x00420007);  // LID 0x42, SM LID 7
  info[32] = (info[32] & 0xf0) | 3;            // ARMED
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, 0);
  EXPECT_EQ(dev().port_state(), 3);
  info[32] = (info[32] & 0xf0) | 4;  // ACTIVE
  const Answer a = ask(kSubn, kSet, kPortInfo, 1, info);
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 16), 0x00420007u);
  EXPECT_EQ(dev().port_state(), 4);
  machine().advance(1'000'000);
  EXPECT_GE(dev().count_async(prm::EqeType::kPortChange), 2u);  // LID, ACTIVE
  info[32] = (info[32] & 0xf0) | 2;                             // INIT is nothing to ask for
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, kBadField);
  prm::store32(info.data() + 16, 0xc0000007);  // a multicast LID
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, kBadField);
}

// Virtual lanes: how many, which one a service level goes by, how they share the port.
TEST_F(ForeignSm, SetsTheVirtualLanes) {
  enum : std::uint16_t { kSlToVl = 0x17, kVlArbitration = 0x18 };
  constexpr std::uint32_t kLow = 1u << 16, kHigh = 3u << 16;
  std::vector<std::uint8_t> info = port_info();
  EXPECT_EQ(info[37] >> 4, 3) << "VLCap: VL0-3";
  EXPECT_EQ(info[43] >> 4, 3) << "OperationalVLs";
  EXPECT_EQ(info[39], 8) << "VLArbHighCap";
  std::vector<std::uint8_t> levels = ask(kSubn, kGet, kSlToVl).data;
  EXPECT_EQ(levels[0], 0x01);
  EXPECT_EQ(levels[7], 0x23);
  levels[0] = 0x3f;  // SL 1 is not to be sent
  EXPECT_EQ(ask(kSubn, kSet, kSlToVl, 0, levels).status, 0);
  EXPECT_EQ(ask(kSubn, kGet, kSlToVl).data[0], 0x3f);
  levels[0] = 0x40;  // no VL4
  EXPECT_EQ(ask(kSubn, kSet, kSlToVl, 0, levels).status, kBadField);
  EXPECT_EQ(ask(kSubn, kGet, kSlToVl).data[0], 0x3f);

  std::vector<std::uint8_t> table = ask(kSubn, kGet, kVlArbitration, kHigh).data;
  EXPECT_EQ(table[1], 0) << "nothing goes before";
  table[0] = 2;
  table[1] = 10;
  EXPECT_EQ(ask(kSubn, kSet, kVlArbitration, kHigh, table).status, 0);
  EXPECT_EQ(ask(kSubn, kGet, kVlArbitration, kHigh).data[0], 2);
  EXPECT_EQ(ask(kSubn, kGet, kVlArbitration, kLow).data[3], 64);
  table[0] = 9;
  EXPECT_EQ(ask(kSubn, kSet, kVlArbitration, kHigh, table).status, kBadField);
  EXPECT_EQ(ask(kSubn, kGet, kVlArbitration, 2u << 16).status, kBadField) << "the tables have 8 entries";

  prm::store32(info.data() + 16, 0x00420007);
  info[38] = 7;                                  // VLHighLimit
  info[43] = static_cast<std::uint8_t>(2 << 4);  // VL0-1
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, 0);
  EXPECT_EQ(ask(kSubn, kGet, kPortInfo, 1).data[38], 7);
  EXPECT_EQ(ask(kSubn, kGet, kPortInfo, 1).data[43] >> 4, 2);
  info[43] = static_cast<std::uint8_t>(4 << 4);
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, kBadField);
}

// The MTU of the link is what the subnet manager finds that both ends can do.
TEST_F(ForeignSm, ChoosesTheMtu) {
  const auto oper_mtu = [this] {
    std::vector<std::uint8_t> pmtu(prm::pmtu_reg::bytes);
    prm::set<prm::pmtu_reg::local_port>(pmtu.data(), 1);
    const auto r = dev().access_register(prm::reg::kPmtu, false, pmtu).must();
    return prm::get<prm::pmtu_reg::oper_mtu>(r.out.data() + prm::access_register_out::bytes);
  };
  std::vector<std::uint8_t> info = port_info();
  EXPECT_EQ(info[36] >> 4, 5);
  prm::store32(info.data() + 16, 0x00420007);
  info[36] = 4 << 4;
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).data[36] >> 4, 4);
  EXPECT_EQ(oper_mtu(), 2048u);
  info[36] = 6 << 4;
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, kBadField);
  info[36] = 0;
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).data[36] >> 4, 4) << "no change";
  info[36] = 5 << 4;
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, 0);
  EXPECT_EQ(oper_mtu(), 4096u);
}

TEST_F(ForeignSm, AnotherPrefixOfAPortInUseIsTold) {
  std::vector<std::uint8_t> info = port_info();
  prm::store32(info.data() + 16, 0x00420007);
  prm::store64(info.data() + 8, 0xfe800000000000aa);
  dev().clear_async_events();
  const auto set = [&](unsigned state) {
    info[32] = static_cast<std::uint8_t>((info[32] & 0xf0) | state);
    EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, 0);
    machine().advance(1'000'000);
    const auto& events = dev().async_events();
    return std::count_if(events.begin(), events.end(), [](const auto& e) {
      return e.type == prm::EqeType::kPortChange && e.sub_type == prm::kPortGuid;
    });
  };
  EXPECT_EQ(set(3), 0) << "nobody uses it yet";
  EXPECT_EQ(set(4), 0);
  prm::store64(info.data() + 8, 0xfe800000000000bb);
  EXPECT_EQ(set(4), 1);
  EXPECT_EQ(prm::load64(dev().gid(0).data()), 0xfe800000000000bb);
  EXPECT_EQ(set(4), 1);
}

TEST_F(ForeignSm, TakesTheLinkDown) {
  const auto bring_up = [this] {
    EXPECT_EQ(set_states(3, 0), 0);
    EXPECT_EQ(set_states(4, 0), 0);
    EXPECT_EQ(dev().port_state(), 4u);
  };
  bring_up();
  EXPECT_EQ(set_states(0, 3), 0);
  EXPECT_EQ(dev().port_state(), 4u) << "until the answer is on its way";
  machine().advance(50'000'000);
  EXPECT_EQ(dev().port_state(), 1u);
  EXPECT_EQ(physical(), 3u);
  EXPECT_EQ(set_states(0, 2), 0);
  EXPECT_EQ(dev().port_state(), 2u);
  EXPECT_EQ(physical(), 5u);
  for (const auto& [state, physical_state] : {std::pair(1u, 0u), std::pair(0u, 2u), std::pair(1u, 2u)}) {
    bring_up();
    EXPECT_EQ(set_states(state, physical_state), 0);
    EXPECT_EQ(dev().port_state(), 2u);
  }
  for (unsigned bad = 4; bad < 16; ++bad) EXPECT_EQ(set_states(0, bad), kBadField) << bad;
  EXPECT_EQ(set_states(3, 2), kBadField) << "armed without a link";
  EXPECT_EQ(dev().port_state(), 2u);
}

// What a subnet manager has written it finds again, or would write it at each sweep.
TEST_F(ForeignSm, FindsWhatItHasSet) {
  enum : std::size_t { kWidth = 29, kSpeed = 35, kThresholds = 53, kExtSpeed = 63 };
  std::vector<std::uint8_t> info = port_info();
  prm::store32(info.data() + 16, 0x00420007);
  info[kStateAt] &= 0xf0;
  const auto set = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> changed = info;
    changed[at] = value;
    return ask(kSubn, kSet, kPortInfo, 1, changed).status;
  };
  const auto get = [&](std::size_t at) { return port_info()[at]; };
  EXPECT_EQ(set(kThresholds, 0x88), 0);
  EXPECT_EQ(get(kThresholds), 0x88);
  EXPECT_EQ(set(kPhysicalAt, 1), 0) << "LinkDownDefaultState";
  EXPECT_EQ(ask(kSubn, kGet, kPortInfo, 1).data[kPhysicalAt] & 0xf, 1);
  EXPECT_EQ(set(kPhysicalAt, 3), kBadField);
  EXPECT_EQ(get(kWidth), 3) << "1X and 4X";
  EXPECT_EQ(get(kWidth + 1), 3) << "LinkWidthSupported";
  EXPECT_EQ(get(kWidth + 2), 2) << "LinkWidthActive";
  EXPECT_EQ(set(kWidth, 2), 0);
  EXPECT_EQ(get(kWidth), 2);
  EXPECT_EQ(set(kWidth, 0), 0);
  EXPECT_EQ(get(kWidth), 2);
  EXPECT_EQ(set(kWidth, 0xff), 0);
  EXPECT_EQ(get(kWidth), 3);
  EXPECT_EQ(set(kWidth, 6), kBadField) << "8X";
  EXPECT_EQ(get(kStateAt) >> 4, 7) << "LinkSpeedSupported";
  EXPECT_EQ(set(kSpeed, 0xf), 0);
  EXPECT_EQ(get(kSpeed) & 0xf, 7);
  EXPECT_EQ(set(kSpeed, 1), 0);
  EXPECT_EQ(set(kSpeed, 8), kBadField);
  EXPECT_EQ(get(kExtSpeed - 1) & 0xf, 3) << "FDR and EDR";
  EXPECT_EQ(set(kExtSpeed, 30), 0);
  EXPECT_EQ(get(kExtSpeed), 30) << "no extended ones";
  EXPECT_EQ(set(kExtSpeed, 31), 0);
  EXPECT_EQ(get(kExtSpeed), 3);
  EXPECT_EQ(set(kExtSpeed, 8), kBadField);
  EXPECT_EQ(set(kPhysicalAt, 2), 0);
}

TEST_F(ForeignSm, NoActiveWithoutArmed) {
  std::vector<std::uint8_t> info = port_info();
  prm::store32(info.data() + 16, 0x00420007);
  info[32] = (info[32] & 0xf0) | 4;
  EXPECT_EQ(ask(kSubn, kSet, kPortInfo, 1, info).status, kBadField);
  EXPECT_EQ(dev().port_state(), 2);
}

// The manager's key (IBTA 14.2.4): whoever has another one changes nothing, at higher levels does not even
// get an answer, and after the lease anybody may.
TEST_F(ForeignSm, ThePortsKeyKeepsOthersOut) {
  constexpr std::uint64_t kKey = 0x1122334455667788, kOther = 5;
  constexpr unsigned kLease = 2;  // s
  std::vector<std::uint8_t> info = port_info();
  prm::store32(info.data() + 16, 0x00420007);
  info[32] = (info[32] & 0xf0) | 3;
  const auto protect = [&](unsigned level) {
    prm::store64(info.data(), kKey);
    info[26] = 0;
    info[27] = kLease;
    info[34] = static_cast<std::uint8_t>(level << 6);
    const Answer a = ask(kSubn, kSet, kPortInfo, 1, info);
    EXPECT_EQ(a.status, 0);
    EXPECT_EQ(prm::load64(a.data.data()), kKey) << "who sets it knows it";
  };
  const auto violations = [&] { return prm::load32(ask(kSubn, kGet, kPortInfo, 1).data.data() + 44) >> 16; };
  protect(1);
  key = kOther;
  EXPECT_STATUS(send(kSubn, kSet, kPortInfo, 1, info), CmdStatus::kBadPkt);
  EXPECT_EQ(prm::load64(ask(kSubn, kGet, kPortInfo, 1).data.data()), 0u) << "kept from others";
  EXPECT_EQ(violations(), 1u);
  key = kKey;
  EXPECT_EQ(prm::load64(ask(kSubn, kGet, kPortInfo, 1).data.data()), kKey);
  protect(2);
  key = kOther;
  EXPECT_STATUS(send(kSubn, kGet, kNodeInfo, 0, {}), CmdStatus::kBadPkt);
  trusted = true;  // the driver itself
  EXPECT_EQ(ask(kSubn, kGet, kNodeInfo).status, 0);
  trusted = false;
  // Performance management has a key of its own.
  EXPECT_EQ(ask(kPerf, kGet, 1).status, 0);
  machine().advance(1'000'000'000LL * (kLease + 1));
  EXPECT_EQ(prm::load64(ask(kSubn, kGet, kPortInfo, 1).data.data()), kKey) << "the lease is over";
  key = kKey;
  protect(0);
  key = kOther;
  EXPECT_STATUS(send(kSubn, kSet, kPortInfo, 1, info), CmdStatus::kBadPkt);
  EXPECT_EQ(prm::load64(ask(kSubn, kGet, kPortInfo, 1).data.data()), kKey);
}

}  // namespace
}  // namespace hcasim::bare
