// SPDX-License-Identifier: BSD-3-Clause
#include "fixture.h"

namespace hcasim::bare {
namespace {

using Cap = prm::cmd_hca_cap;
using SetIn = prm::set_hca_cap_in;

class Caps : public FirmwareTest {
 protected:
  // A function between ENABLE_HCA and INIT_HCA.
  void before_init() {
    dev().teardown();
    dev().cmd().start();
    dev().enable_hca().must();
  }
  CommandResult set(unsigned group, const std::vector<std::uint8_t>& block) {
    Mailbox in(prm::op::SET_HCA_CAP, SetIn::bytes, static_cast<std::uint16_t>(group << 1));
    std::copy(block.begin(), block.begin() + 256, in.begin() + SetIn::capability::bit_off / 8);
    return dev().exec(in);
  }
};

TEST_F(Caps, NothingIsOfferedThatHasNoGroup) {
  breaks({"cap-set"});
  const auto c = caps(0, true);
  for (unsigned group = 0; group < 0x40; ++group) {
    const bool there = group == 0 || (group == 3 && prm::get<Cap::atomic>(c.data())) ||
                       (group == 2 && prm::get<Cap::pg>(c.data())) || group == 7 ||
                       (group == 12 && prm::get<Cap::qos>(c.data())) ||
                       (group == 13 && prm::get<Cap::debug>(c.data())) ||
                       (group == 15 && prm::get<Cap::device_memory>(c.data())) ||
                       (group == 32 && prm::get<Cap::hca_cap_2>(c.data()));
    const auto r = dev().query_caps(group, true);
    EXPECT_EQ(r.ok(), there) << "group " << group << ": " << r.text();
    if (!there) EXPECT_STATUS(r, CmdStatus::kBadParam);
  }
  EXPECT_EQ(prm::get<Cap::roce>(c.data()), 0u);
  EXPECT_EQ(prm::get<Cap::eth_net_offloads>(c.data()), 0u);
}

TEST_F(Caps, SetIsEchoed) {
  before_init();
  auto block = caps(0, true);
  prm::set<Cap::log_max_qp>(block.data(), 12);
  EXPECT_OK(set(0, block));
  EXPECT_EQ(prm::get<Cap::log_max_qp>(caps(0, true).data()), 12u);
  EXPECT_GT(prm::get<Cap::log_max_qp>(caps(0, false).data()), 12u) << "the maximum stays";
  std::vector<std::uint8_t> atomic(4096);
  prm::set<prm::atomic_caps::atomic_req_8B_endianness_mode>(atomic.data(), 1);
  EXPECT_OK(set(3, atomic));
  EXPECT_EQ(prm::get<prm::atomic_caps::atomic_req_8B_endianness_mode>(caps(3, true).data()), 1u);
  EXPECT_EQ(prm::get<prm::atomic_caps::atomic_operations>(caps(3, true).data()), 15u);
  dev().disable_hca().must();
  dev().probe();
}

TEST_F(Caps, SetBeyondTheMaximumIsRefused) {
  breaks({"cap-set"});
  before_init();
  const auto good = caps(0, true);
  const auto refused = [&](const std::function<void(std::uint8_t*)>& spoil) {
    auto block = good;
    spoil(block.data());
    EXPECT_STATUS(set(0, block), CmdStatus::kBadParam);
    EXPECT_EQ(caps(0, true), good) << "a refused SET changed something";
  };
  refused([](std::uint8_t* c) { prm::set<Cap::log_max_qp>(c, prm::get<Cap::log_max_qp>(c) + 1); });
  refused([](std::uint8_t* c) { prm::set<Cap::roce>(c, 1); });
  refused([](std::uint8_t* c) { prm::set<Cap::log_uar_page_sz>(c, 4); });
  refused([](std::uint8_t* c) { prm::set<Cap::pkey_table_size>(c, 2); });
  refused([](std::uint8_t* c) { prm::set<Cap::port_type>(c, 1); });
  std::vector<std::uint8_t> atomic(4096);
  prm::set<prm::atomic_caps::atomic_req_8B_endianness_mode>(atomic.data(), 2);
  EXPECT_STATUS(set(3, atomic), CmdStatus::kBadParam);
  EXPECT_STATUS(set(2, good), CmdStatus::kBadParam);
  dev().disable_hca().must();
  dev().probe();
}

// On-demand paging: what drivers have to ask for, and no more.
TEST_F(Caps, PagingOfSharedReceiveQueuesIsAskedFor) {
  breaks({"cap-set", "enable-twice"});
  using Rc = prm::odp_cap::transport_page_fault_scheme_cap::rc_odp_caps;
  using Uc = prm::odp_cap::transport_page_fault_scheme_cap::uc_odp_caps;
  before_init();
  auto block = caps(2, true);
  EXPECT_EQ(prm::get<Rc::send>(block.data()), 1u);
  EXPECT_EQ(prm::get<Rc::srq_receive>(block.data()), 0u);
  EXPECT_EQ(prm::get<Rc::srq_receive>(caps(2, false).data()), 1u);
  EXPECT_EQ(prm::get<prm::odp_cap::mem_page_fault>(caps(2, false).data()), 0u);
  prm::set<Rc::srq_receive>(block.data(), 1);
  EXPECT_OK(set(2, block));
  EXPECT_EQ(prm::get<Rc::srq_receive>(caps(2, true).data()), 1u);
  const auto good = caps(2, true);
  prm::set<Uc::send>(block.data(), 1);
  EXPECT_STATUS(set(2, block), CmdStatus::kBadParam);
  block = good;
  prm::set<prm::odp_cap::mem_page_fault>(block.data(), 1);
  EXPECT_STATUS(set(2, block), CmdStatus::kBadParam);
  EXPECT_EQ(caps(2, true), good);
  dev().enable_hca().must();
  EXPECT_EQ(prm::get<Rc::srq_receive>(caps(2, true).data()), 0u) << "a new driver asks anew";
  dev().disable_hca().must();
  dev().probe();
}

TEST_F(Caps, SetAfterInitIsRefused) {
  breaks({"cmd-after-init"});
  EXPECT_STATUS(set(0, caps(0, true)), CmdStatus::kBadSysState);
}

TEST_F(Caps, ResetForgetsWhatWasSet) {
  breaks({"enable-twice"});
  before_init();
  auto block = caps(0, true);
  prm::set<Cap::log_max_qp>(block.data(), 10);
  EXPECT_OK(set(0, block));
  dev().enable_hca().must();
  EXPECT_NE(prm::get<Cap::log_max_qp>(caps(0, true).data()), 10u);
  dev().disable_hca().must();
  dev().probe();
}

TEST_F(Caps, OtherFunctionsDoNotExist) {
  breaks({"cmd-function"});
  Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 1);
  in.set<prm::query_hca_cap_in::other_function>(1);
  EXPECT_STATUS(dev().exec(in, prm::query_hca_cap_out::bytes), CmdStatus::kBadParam);
}

}  // namespace
}  // namespace hcasim::bare
