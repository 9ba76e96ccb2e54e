// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch's FDB as tables that software writes itself: one for what comes in at the port, one for what
// functions send, both leading to vports.
#include <vector>

#include "model/eswitch/eswitch.h"
#include "model/steer/sw_steering.h"
#include "prm/ste.h"
#include "ste_fixture.h"

namespace hcasim {
namespace {

using prm::SteLookup;
using prm::SteType;
using ste::Bytes;
using ste::entry;
using ste::Entry;
using ste::steer;

class FdbSteTest : public ::testing::Test {
 protected:
  explicit FdbSteTest(SteFormat format) : software(flows, format) { set_up(); }
  FdbSteTest() : FdbSteTest(SteFormat::kConnectX5) {}
  static constexpr std::uint64_t kSte = SwIcm::base(SwIcm::kSteering);
  static constexpr IcmTarget kToVport2{IcmTarget::kVport, 2}, kToUplink{IcmTarget::kVport, kUplinkPort};

  void set_up() {
    eswitch.set_present(true);
    for (std::uint16_t v = 0; v < 3; ++v) vports[v].vhca_id = static_cast<std::uint16_t>(0x10 + v);
    EXPECT_TRUE(software.icm().allocate(kSte, 1u << 12));
    FlowTable* fdb = flows.create_table(1, FlowTableType::kFdb);
    fdb->sw_owner = true;
    fdb->sw_root = {kSte, kSte + 64};  // what comes in, what is sent
    EXPECT_TRUE(flows.set_root(FlowTableType::kFdb, 1));
  }
  void put(std::uint64_t at, const Entry& e) { EXPECT_TRUE(software.icm().write(at, e.bytes.data(), 64)); }
  // Where a frame from there goes.
  std::vector<FunctionId> send(FunctionId from) {
    PacketRef p = steer(Bytes(64, 0x22)).packet;
    p->function = from == kNoFunction ? FunctionId{0} : from;
    p->sqn = 0x123;
    EmbeddedSwitch::Copies copies;
    if (from == kNoFunction)
      eswitch.from_uplink(0, p, copies);
    else
      eswitch.from_function(0, p, copies);
    std::vector<FunctionId> to;
    for (const EmbeddedSwitch::Copy& c : copies) to.push_back(c.to);
    return to;
  }
  using To = std::vector<FunctionId>;

  Vport v0{0}, v1{1}, v2{2};
  Vports vports{PerFunction<Vport>(std::vector<Vport*>{&v0, &v1, &v2})};
  FlowSteering flows;
  SwSteering software;
  ESwitch eswitch{{vports, flows}};
};

TEST_F(FdbSteTest, EachSideHasItsRoot) {
  put(kSte, entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(kToVport2));
  put(kSte + 64, entry(SteType::kTx, SteLookup::kIpv6SrcO).hit(kToUplink));
  EXPECT_EQ(send(kNoFunction), (To{2}));
  EXPECT_EQ(send(1), (To{kNoFunction}));
  EXPECT_EQ(software.lost(), 0u);
}

TEST_F(FdbSteTest, SendersAreKnownByTheirFunctionAndQueue) {
  SteTag value{}, mask{};
  prm::set<prm::SteSourceTag::source_gvmi>(value.data(), 0x11);
  prm::set<prm::SteSourceTag::source_qp>(value.data(), 0x123);
  prm::set<prm::SteSourceTag::source_gvmi>(mask.data(), 0xffff);
  prm::set<prm::SteSourceTag::source_qp>(mask.data(), 0xffffff);
  put(kSte + 64, entry(SteType::kTx, SteLookup::kSrcGvmiQp)
                     .match(value, mask)
                     .hit(kToVport2)
                     .miss(icm_address({IcmTarget::kTxDrop, 0})));
  EXPECT_EQ(send(1), (To{2}));
  EXPECT_EQ(send(2), To{});
}

TEST_F(FdbSteTest, ATableOfTheFirmwareMayFollow) {
  FlowTable* next = flows.create_table(2, FlowTableType::kFdb);
  next->log_size = 4;
  FlowGroup all;
  all.id = 1;
  all.last = 3;
  ASSERT_TRUE(flows.create_group(*next, all));
  FlowEntry e;
  e.group = 1;
  e.action = kFlowForward;
  e.destinations = {{FlowDestination::kVport, 1}, {FlowDestination::kUplink, 0}};
  ASSERT_TRUE(flows.set_entry(*next, 0, e));
  put(kSte + 64, entry(SteType::kTx, SteLookup::kIpv6SrcO).hit({IcmTarget::kTable, 2}));
  EXPECT_EQ(send(0), (To{1, kNoFunction}));
}

TEST_F(FdbSteTest, NothingLeavesTheSwitchButToVports) {
  put(kSte, entry(SteType::kRx, SteLookup::kIpv6SrcO).hit({IcmTarget::kTir, 7}));
  put(kSte + 64, entry(SteType::kTx, SteLookup::kIpv6SrcO).hit({IcmTarget::kTxAllow, 0}));
  EXPECT_EQ(send(kNoFunction), To{});
  EXPECT_EQ(send(1), To{});
  EXPECT_EQ(software.lost(), 2u);
  put(kSte, entry(SteType::kRx, SteLookup::kIpv6SrcO).hit({IcmTarget::kVport, 99}));
  EXPECT_EQ(send(kNoFunction), To{}) << "no such vport";
}

// A function's own tables do not reach into the switch.
TEST_F(FdbSteTest, NoTableOfAFunctionLeadsToAVport) {
  FlowTable* own = flows.create_table(3, FlowTableType::kNicRx);
  own->sw_owner = true;
  own->sw_root = {kSte, kSte};
  ASSERT_TRUE(flows.set_root(FlowTableType::kNicRx, 3));
  put(kSte, entry(SteType::kRx, SteLookup::kIpv6SrcO).hit(kToVport2));
  EXPECT_TRUE(flows.run(0, FlowTableType::kNicRx, steer(Bytes(64, 0x22))).deliveries.empty());
  EXPECT_EQ(software.lost(), 1u);
}

class FdbSteV1Test : public FdbSteTest {
 protected:
  FdbSteV1Test() : FdbSteTest(SteFormat::kConnectX6Dx) {}
  static Entry leads(unsigned format, unsigned definer, std::uint64_t to) {
    Entry e;
    e.bytes.fill(0);
    const std::uint64_t next = to >> 5 | 1;
    return e.set<prm::SteV1::format>(format)
        .set<prm::SteV1::definer>(definer)
        .set<prm::SteV1::next_base_39_32>(next >> 27)
        .set<prm::SteV1::next_base_31_5>(next & 0x7ffffff);
  }
};

// A burst of two packets is green, what comes behind it is red.
TEST_F(FdbSteV1Test, AMeterSaysWhichFramesGoOn) {
  using Parameters = prm::flow_meter_parameters;
  using Act = prm::SteV1Action;
  constexpr std::uint32_t kMeter = 9, kGreen = 2;
  std::array<std::uint8_t, FlowMeters::kBytes> m{};
  prm::set<Parameters::valid>(m.data(), 1);
  prm::set<Parameters::start_color>(m.data(), kGreen);
  prm::set<Parameters::meter_mode>(m.data(), prm::k::FLOW_METER_MODE_NUM_PACKETS);
  prm::set<Parameters::cir_mantissa>(m.data(), 1), prm::set<Parameters::cir_exponent>(m.data(), 20);
  prm::set<Parameters::cbs_mantissa>(m.data(), 2), prm::set<Parameters::cbs_exponent>(m.data(), 7);
  flows.meters[kMeter].write(m.data(), ~std::uint64_t{0});
  Entry measures = leads(0, prm::SteV1::kAnyDefiner, kSte + 128);
  prm::store32(measures.bytes.data() + prm::SteV1::kActions,
               static_cast<std::uint32_t>(Act::kAso) << 24 | kMeter);
  prm::store32(measures.bytes.data() + prm::SteV1::kActions + 4,
               2u << 30 | Act::kAsoMeter << 24 | kGreen << 1);
  constexpr auto kLookup = static_cast<unsigned>(prm::SteV1Lookup::kRegisters1);  // C4 to C7
  Entry green = leads(kLookup >> 8, kLookup & 0xff, icm_address(kToVport2));
  green.set<prm::SteV1::miss_31_6>(icm_address({IcmTarget::kTxDrop, 0}) >> 6);
  green.bytes[prm::kSteV1Mask + 7] = 0xff, green.bytes[prm::kSteV1Tag + 7] = kGreen;
  put(kSte + 64, measures);
  put(kSte + 128, green);
  EXPECT_EQ(send(1), (To{2}));
  EXPECT_EQ(send(1), (To{2}));
  EXPECT_EQ(send(1), To{});
  EXPECT_EQ(send(1), To{});
  EXPECT_EQ(software.lost(), 0u);
}

}  // namespace
}  // namespace hcasim
