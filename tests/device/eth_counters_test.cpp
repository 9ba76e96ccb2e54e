// SPDX-License-Identifier: BSD-3-Clause
// What an Ethernet port and its vport have counted, and who takes it back: PPCNT, QUERY_VPORT_COUNTER.
#include "driver/bare/devx.h"
#include "eth_fixture.h"
#include "prm/access_registers.h"
#include "prm/vport_counters.h"

namespace hcasim::bare {
namespace {

using Set = prm::ppcnt_reg::counter_set;
using Frames = Set::eth_802_3_cntrs_grp_data_layout;
using Interface = Set::eth_2863_cntrs_grp_data_layout;
using Priority = Set::eth_per_prio_grp_data_layout;
enum : std::uint32_t { k802_3 = 0, kRfc2863 = 1, kPerPriority = 0x10 };

class EthCounters : public EthTest {
 protected:
  // The counter's low half, which the group then begins anew if it is cleared.
  template <class Low>
  static std::uint64_t ppcnt(Device& device, std::uint32_t group, Low, bool clear = false) {
    std::vector<std::uint8_t> r(prm::ppcnt_reg::bytes);
    prm::set<prm::ppcnt_reg::local_port>(r.data(), 1);
    prm::set<prm::ppcnt_reg::grp>(r.data(), group);
    prm::set<prm::ppcnt_reg::clr>(r.data(), clear);
    const auto out = device.access_register(prm::reg::kPpcnt, false, r).must();
    return prm::get<Low>(out.out.data() + prm::access_register_out::bytes);
  }
  static void send_and_receive(EthLink& link) {
    link.rq.post({link.rx_sge(0, 2048)});
    expect_good(link.scq, link.send(plain_frame(100)));
    EXPECT_EQ(link.rcq.wait_one().byte_cnt, 100u);
  }
};

// As ethtool shows them: rx_oversize_pkts_phy and rx_packets_phy, tx_errors_phy and tx_discards_phy.
TEST_F(EthCounters, FramesAboveTheMtuAreCountedAtEitherEnd) {
  Device left(machine().function(kEthernetPair)), right(machine().function(kEthernetPair + 1));
  left.probe();
  right.probe();
  {
    EthLink from(left), to(right);
    EXPECT_CMD_OK(left.set_port_mtu(9022));
    EXPECT_CMD_OK(right.set_port_mtu(1522));
    const std::uint64_t frames = ppcnt(right, k802_3, Frames::a_frames_received_ok_low{});
    to.rq.post({to.rx_sge(0, 4096)});
    expect_good(from.scq, from.send(plain_frame(1519)));
    expect_good(from.scq, from.send(plain_frame(1518)));
    EXPECT_EQ(to.rcq.wait_one().byte_cnt, 1518u);
    EXPECT_EQ(ppcnt(right, k802_3, Frames::a_frame_too_long_errors_low{}), 1u);
    EXPECT_EQ(ppcnt(right, k802_3, Frames::a_frames_received_ok_low{}), frames + 1);
    expect_good(from.scq, from.send(plain_frame(9019)));
    EXPECT_EQ(ppcnt(left, kRfc2863, Interface::if_out_errors_low{}), 1u);
    EXPECT_EQ(ppcnt(left, kRfc2863, Interface::if_out_discards_low{}), 0u);
  }
  left.teardown();
  right.teardown();
}

// A user context only reads them; whoever may clear them clears what the command tells of.
TEST_F(EthCounters, OfTheVportAreClearedAlone) {
  using In = prm::query_vport_counter_in;
  using Out = prm::query_vport_counter_out;
  const auto cleared = [this] {
    Mailbox in(prm::op::QUERY_VPORT_COUNTER, In::bytes);
    return dev().exec(in.set<In::clear>(1), Out::bytes).must().get<Out::received_eth_unicast::packets>();
  };
  EthLink link(dev());
  cleared();
  send_and_receive(link);
  const std::uint64_t frames = ppcnt(dev(), k802_3, Frames::a_frames_received_ok_low{});
  EXPECT_GT(frames, 0u);
  {
    Uctx user(dev());
    const Uctx::As as(dev(), user);
    EXPECT_EQ(cleared(), 1u);
  }
  EXPECT_EQ(cleared(), 1u);
  EXPECT_EQ(cleared(), 0u);
  EXPECT_EQ(ppcnt(dev(), k802_3, Frames::a_frames_received_ok_low{}), frames);
}

TEST_F(EthCounters, OfAGroupAreClearedAlone) {
  const auto received = [this](bool clear = false) {
    return ppcnt(dev(), k802_3, Frames::a_frames_received_ok_low{}, clear);
  };
  const auto of_priority = [this](bool clear = false) {
    return ppcnt(dev(), kPerPriority, Priority::rx_frames_low{}, clear);
  };
  EthLink link(dev());
  send_and_receive(link);
  const std::uint64_t frames = received(), of_first = of_priority();
  EXPECT_GT(of_first, 0u);
  EXPECT_EQ(received(true), frames);
  EXPECT_EQ(received(), 0u);
  EXPECT_EQ(of_priority(true), of_first);
  EXPECT_EQ(of_priority(), 0u);
  // All of them, by a write that names no group (mstlink).
  send_and_receive(link);
  EXPECT_GT(received(), 0u);
  EXPECT_GT(of_priority(), 0u);
  std::vector<std::uint8_t> all(prm::ppcnt_reg::bytes);
  prm::set<prm::ppcnt_reg::local_port>(all.data(), 1);
  prm::set<prm::ppcnt_reg::grp>(all.data(), 63);
  prm::set<prm::ppcnt_reg::clr>(all.data(), 1);
  EXPECT_CMD_OK(dev().access_register(prm::reg::kPpcnt, true, all));
  EXPECT_EQ(received(), 0u);
  EXPECT_EQ(of_priority(), 0u);
}

}  // namespace
}  // namespace hcasim::bare
