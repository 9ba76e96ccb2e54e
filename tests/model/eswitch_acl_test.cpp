// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch: what stands at a vport, in which order.
#include "eswitch_rig.h"

namespace hcasim {
namespace {

using namespace eswitch_rig;

class ESwitchAcl : public ESwitchTest {
 protected:
  void always(FlowTable& t, std::uint16_t action, const std::vector<FlowDestination>& to = {}) {
    entry(t, group(t, 0, {}), {}, action, to);
  }
};

// Linux 5.10's VLAN of a function: what has no tag passes, and gets one behind that.
TEST_F(ESwitchAcl, LooksAtWhatTheFunctionHasSent) {
  make_fdb();
  v1.vlans.insert_cvlan = VportVlans::kIfThereIsNone;
  v1.vlans.cvlan = 5;
  FlowTable& in = table(FlowTableType::kEswIngressAcl, 1);
  MatchParam mask{};
  prm::set<Lyr::cvlan_tag>(mask.data(), 1);
  entry(in, group(in, kOuter, mask), {}, kFlowAllow);
  always(in, kFlowDrop);
  EXPECT_EQ(send(1, frame(0x77, 0x11)), (To{kOut}));
  EXPECT_EQ(ethertype(arrived(kOut), 4), (Bytes{0x81, 0, 0, 5}));
  EXPECT_EQ(send(1, frame(0x77, 0x11, 9)), To{});
}

// Of functions whose representors are in a bond: what is for the passive one goes to the active one.
TEST_F(ESwitchAcl, OfAVportThatIsDownLeadsOn) {
  make_fdb();
  v1.open = false;
  FlowTable& out = table(FlowTableType::kEswEgressAcl, 1);
  always(out, kFlowForward, {{FlowDestination::kVport, 2}});
  EXPECT_EQ(send(0, frame(0x11, 0x10)), (To{2}));
  EXPECT_EQ(v1.rx_down, 0u);
  v2.open = false;
  EXPECT_EQ(send(0, frame(0x11, 0x10)), To{});
  EXPECT_EQ(v2.rx_down, 1u);
}

// Copies to a vport whose ACL has a group for each look: all of a frame's tables together have one limit.
TEST_F(ESwitchAcl, OfManyCopiesCostNoMoreThanAFrameMay) {
  FlowTable& fdb = table(FlowTableType::kFdb);
  always(fdb, kFlowForward, std::vector<FlowDestination>(200, {FlowDestination::kVport, 1}));
  FlowTable& out = table(FlowTableType::kEswEgressAcl, 1, 16);
  MatchParam mask{};
  prm::set<Lyr::smac_15_0>(mask.data(), 0xffff);
  for (int i = 0; i < 1000; ++i) {
    prm::set<Lyr::dmac_15_0>(mask.data(), static_cast<std::uint32_t>(i + 1));
    MatchParam other{};
    prm::set<Lyr::smac_15_0>(other.data(), 0x6666);
    entry(out, group(out, kOuter, mask), other, kFlowDrop);
  }
  always(out, kFlowAllow);
  const To to = send(0, frame(0x11, 0x10));
  EXPECT_GE(to.size(), 50u);
  EXPECT_LE(to.size(), FlowSteering::kMaxWork / 1000) << "of 200: the others would have cost too much";
}

}  // namespace
}  // namespace hcasim
