// SPDX-License-Identifier: BSD-3-Clause
// Cards of two ports: what makes the two HCAs one card. (A process each: HCAs are made before time starts.)
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "driver/bare/device.h"
#include "prm/prm.h"

namespace hcasim::bare {
namespace {

constexpr std::size_t kMemory = std::size_t{128} << 20;

std::string refusal(Machine& machine, const char* options) {
  try {
    machine.add_hca(options);
  } catch (const BareError& e) {
    return e.what();
  }
  return "";
}

CommandResult caps(Device& d) {
  Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 1);
  return d.exec(in, prm::query_hca_cap_out::capability::bit_off / 8 + prm::cmd_hca_cap::bytes).must();
}
template <class F>
std::uint64_t cap(Device& d) {
  const CommandResult r = caps(d);
  return prm::get<F>(r.out.data() + prm::query_hca_cap_out::capability::bit_off / 8);
}
CommandResult nic_vport(Device& d) {
  Mailbox in(prm::op::QUERY_NIC_VPORT_CONTEXT, prm::query_nic_vport_context_in::bytes);
  return d.exec(in, prm::query_nic_vport_context_out::bytes).must();
}

TEST(TwoPorts, EachHasANumberAndAddressesOfItsOwn) {
  Machine machine(kMemory);
  machine.add_hca("link=eth,card=a,vfs=3");
  machine.add_hca("link=eth");
  machine.add_hca("link=eth,card=a,vfs=3");
  machine.start();
  Device first(machine.function(0)), other(machine.function(1)), second(machine.function(2));
  for (Device* d : {&first, &other, &second}) d->probe();
  using g = prm::cmd_hca_cap;
  EXPECT_EQ(cap<g::native_port_num>(first), 1u);
  EXPECT_EQ(cap<g::native_port_num>(second), 2u);
  EXPECT_EQ(cap<g::native_port_num>(other), 0u);
  EXPECT_EQ(cap<g::vhca_id>(first), 0u);
  EXPECT_EQ(cap<g::vhca_id>(second), 4u);  // behind the first one's virtual functions
  using C = prm::query_nic_vport_context_out::nic_vport_context;
  const CommandResult a = nic_vport(first), b = nic_vport(second), c = nic_vport(other);
  EXPECT_EQ(a.get<C::system_image_guid>(), b.get<C::system_image_guid>());
  EXPECT_NE(a.get<C::system_image_guid>(), c.get<C::system_image_guid>());
  EXPECT_NE(a.get<C::node_guid>(), b.get<C::node_guid>());
  EXPECT_NE(first.mac(), second.mac());
}

TEST(TwoPorts, InfiniBandToo) {
  Machine machine(kMemory);
  machine.add_hca("link=ib,card=a");
  machine.add_hca("link=ib,card=a");
  machine.start();
  for (std::size_t i = 0; i < 2; ++i) {
    Device d(machine.function(i));
    d.probe();
    EXPECT_EQ(cap<prm::cmd_hca_cap::native_port_num>(d), i + 1);
  }
}

TEST(TwoPorts, WhatCannotBeOneCardIsRefused) {
  Machine machine(kMemory);
  machine.add_hca("link=eth,card=a,vfs=1");
  EXPECT_NE(refusal(machine, "link=ib,card=a,vfs=1").find("another link type"), std::string::npos);
  EXPECT_NE(refusal(machine, "link=eth,card=a,vfs=2").find("has vfs=1"), std::string::npos);
  machine.add_hca("link=eth,card=a,vfs=1");
  EXPECT_NE(refusal(machine, "link=eth,card=a,vfs=1").find("two ports already"), std::string::npos);
}

TEST(TwoPorts, ACardWithOneIsRefused) {
  Machine machine(kMemory);
  machine.add_hca("link=eth,card=a");
  machine.add_hca("link=eth");
  EXPECT_THROW(machine.start(), BareError);
  ASSERT_FALSE(machine.log(0).empty());
  EXPECT_NE(machine.log(0).back().find("no second HCA of that card"), std::string::npos)
      << machine.log(0).back();
}

}  // namespace
}  // namespace hcasim::bare
