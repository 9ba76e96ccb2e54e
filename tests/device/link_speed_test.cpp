// SPDX-License-Identifier: BSD-3-Clause
// Two Ethernet ports that come to a speed, on a cable in one machine and over a socket: PTYS, PAOS, PDDR, and
// the time that bytes take.
#include <gtest/gtest.h>

#include "prm/access_registers.h"
#include "prm/link_diagnostics.h"
#include "wire_fixture.h"

namespace hcasim::bare {
namespace {

constexpr std::uint32_t kPlain100 = 1u << 21, kPlain50 = 1u << 18, kPlain25 = 1u << 29;
using namespace prm::reg;
constexpr std::uint8_t kEthernet = 4, kUp = 1, kClosed = 2;

class LinkSpeed : public ::testing::TestWithParam<std::pair<Wired, Wired>> {
 protected:
  using Ptys = prm::ptys_reg;
  static std::vector<std::uint8_t> call(Device& d, std::uint16_t id, bool write,
                                        std::vector<std::uint8_t> in) {
    const auto r = d.access_register(id, write, in).must();
    return {r.out.begin() + prm::access_register_out::bytes, r.out.end()};
  }
  static std::vector<std::uint8_t> ptys(Device& d) {
    std::vector<std::uint8_t> in(Ptys::bytes);
    prm::set<Ptys::local_port>(in.data(), 1);
    prm::set<Ptys::proto_mask>(in.data(), kEthernet);
    return call(d, kPtys, false, in);
  }
  static std::uint32_t mode(Device& d) { return prm::get<Ptys::eth_proto_oper>(ptys(d).data()); }
  static void ask(Device& d, std::uint32_t modes, bool forced) {
    std::vector<std::uint8_t> in(Ptys::bytes);
    prm::set<Ptys::local_port>(in.data(), 1);
    prm::set<Ptys::proto_mask>(in.data(), kEthernet);
    prm::set<Ptys::an_disable_admin>(in.data(), forced ? 1 : 0);
    prm::set<Ptys::eth_proto_admin>(in.data(), modes);
    call(d, kPtys, true, in);
    for (const std::uint8_t state : {kClosed, kUp}) {  // as drivers have it taken over
      using Paos = prm::paos_reg;
      std::vector<std::uint8_t> paos(Paos::bytes);
      prm::set<Paos::local_port>(paos.data(), 1);
      prm::set<Paos::ase>(paos.data(), 1);
      prm::set<Paos::admin_status>(paos.data(), state);
      call(d, kPaos, true, paos);
    }
  }
  static std::uint16_t trouble(Device& d) {
    using R = prm::pddr_reg;
    std::vector<std::uint8_t> in(R::bytes);
    prm::set<R::local_port>(in.data(), 1);
    prm::set<R::page_select>(in.data(), prm::kPddrTroubleshooting);
    using page = R::page_data::pddr_troubleshooting_page;
    return static_cast<std::uint16_t>(
        prm::get<page::status_opcode::pddr_monitor_opcode::monitor_opcode>(call(d, kPddr, false, in).data()));
  }
  // Ticks of the device's clock that the second of two writes of 1 MiB takes.
  static double transfer(End& a, End& b) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {a.sge(0, 1 << 20)};
    w.raddr = b.mr.start();
    w.rkey = b.mr.key();
    a.qp.post(w);
    a.qp.post(w);
    const auto done = a.cq.wait(2);
    EXPECT_FALSE(done.at(0).error() || done.at(1).error());
    return static_cast<double>(done[1].raw.timestamp - done[0].raw.timestamp);
  }
};

TEST_P(LinkSpeed, TheEndsComeToIt) {
  QpOptions rc;
  rc.type = QpType::kRc;
  End a(GetParam().first, rc), b(GetParam().second, rc);
  ASSERT_TRUE(reaches(a.device, kActive));
  ASSERT_TRUE(reaches(b.device, kActive));
  EXPECT_EQ(mode(a.device), kPlain100);
  connect(a, b);
  const double fast = transfer(a, b);

  // One end insists: the other one follows.
  ask(a.device, kPlain25, true);
  ASSERT_TRUE(reaches(a.device, kActive));
  ASSERT_TRUE(reaches(b.device, kActive));
  EXPECT_EQ(mode(a.device), kPlain25);
  EXPECT_EQ(mode(b.device), kPlain25);
  const double slow = transfer(a, b);
  EXPECT_NEAR(slow / fast, 4, 0.4);

  // Each insists on another one: no link, and each says why.
  ask(b.device, kPlain50, true);
  ASSERT_TRUE(reaches(a.device, kDown));
  ASSERT_TRUE(reaches(b.device, kDown));
  EXPECT_EQ(mode(a.device), 0u);
  EXPECT_EQ(trouble(a.device), prm::kNoPartnerForced);
  EXPECT_EQ(trouble(b.device), prm::kNoPartnerForced);

  // Both offer, and nothing is common.
  ask(a.device, kPlain25, false);
  ask(b.device, kPlain50, false);
  ASSERT_TRUE(reaches(b.device, kDown));
  EXPECT_EQ(trouble(a.device), prm::kNoCommonMode);

  ask(b.device, kPlain25 | kPlain50, false);
  ask(a.device, kPlain100 | kPlain50 | kPlain25, false);
  ASSERT_TRUE(reaches(a.device, kActive));
  ASSERT_TRUE(reaches(b.device, kActive));
  EXPECT_EQ(mode(a.device), kPlain50);
  EXPECT_EQ(mode(b.device), kPlain50);
  EXPECT_EQ(prm::get<Ptys::an_status>(ptys(a.device).data()), 1u);
  EXPECT_EQ(prm::get<Ptys::eth_proto_lp_advertise>(ptys(a.device).data()), kPlain25 | kPlain50);
  EXPECT_EQ(trouble(a.device), prm::kNoIssue);
}

// Drivers take them for extended modes where the port has such.
TEST(ExtendedLinkSpeed, WhatTheFarEndOffersIsInExtendedModes) {
  using Ptys = prm::ptys_reg;
  End a(kExtendedA), b(kExtendedB);
  ASSERT_TRUE(reaches(a.device, kActive));
  ASSERT_TRUE(reaches(b.device, kActive));
  std::vector<std::uint8_t> in(Ptys::bytes);
  prm::set<Ptys::local_port>(in.data(), 1);
  prm::set<Ptys::proto_mask>(in.data(), kEthernet);
  const auto ptys = a.device.access_register(kPtys, false, in).must();
  const std::uint8_t* data = ptys.out.data() + prm::access_register_out::bytes;
  EXPECT_EQ(prm::get<Ptys::an_status>(data), 1u);
  EXPECT_NE(prm::get<Ptys::ext_eth_proto_capability>(data), 0u);
  EXPECT_EQ(prm::get<Ptys::eth_proto_lp_advertise>(data), prm::get<Ptys::ext_eth_proto_capability>(data));
}

INSTANTIATE_TEST_SUITE_P(Wires, LinkSpeed,
                         ::testing::Values(std::pair(kEthA, kEthB), std::pair(kSpeedA, kSpeedB)),
                         [](const auto& p) { return p.index == 0 ? "Socket" : "Cable"; });

}  // namespace
}  // namespace hcasim::bare
