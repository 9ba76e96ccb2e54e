// SPDX-License-Identifier: BSD-3-Clause
// A function's address tables, and for which of two functions a packet is.
#include <gtest/gtest.h>

#include "model/function/vports.h"
#include "model/rx/classifier.h"
#include "model/state/state.h"
#include "model/steer/steer.h"

namespace hcasim {
namespace {

constexpr Mac kMac0{0x02, 0, 0, 0, 0, 1}, kMac1{0x02, 0, 0, 0, 0, 2}, kAlien{0x02, 0, 0, 0, 0, 9};
constexpr Mac kGroup{0x33, 0x33, 0, 0, 0, 1};

Gid gid(std::uint8_t last) {
  Gid g{0xfe, 0x80};
  g[15] = last;
  return g;
}

RoceAddress address(const Mac& mac, std::uint8_t last, std::uint8_t version = 2) {
  RoceAddress a;
  a.valid = true;
  a.gid = gid(last);
  a.mac = mac;
  a.version = version;
  return a;
}

TEST(Vport, KnowsTheAddressesOfItsTableByVersion) {
  Vport v;
  v.set_roce_address(3, address(kMac1, 1));
  v.set_roce_address(4, address(kMac1, 2, 0));
  EXPECT_TRUE(v.own_gid(gid(1), true));
  EXPECT_FALSE(v.own_gid(gid(1), false)) << "RoCE v2 alone";
  EXPECT_TRUE(v.own_gid(gid(2), false));
  EXPECT_TRUE(v.own_mac(kMac1));
  EXPECT_FALSE(v.own_mac(kMac0));
  v.set_roce_address(3, RoceAddress{});
  EXPECT_FALSE(v.own_gid(gid(1), true));
  EXPECT_TRUE(v.own_mac(kMac1)) << "another entry has it still";
  v.set_roce_address(4, RoceAddress{});
  EXPECT_FALSE(v.own_mac(kMac1));
}

TEST(Vport, NoEntryLiesBeyondTheTable) {
  Vport v;
  v.set_roce_address(Vport::kRoceAddresses, address(kMac0, 1));
  EXPECT_FALSE(v.own_mac(kMac0));
  EXPECT_FALSE(v.roce_address(Vport::kRoceAddresses).valid);
  EXPECT_FALSE(v.roce_address(0xffffffff).valid);
}

TEST(Vport, NoMacIsNotItsOwn) {
  const Vport v;
  EXPECT_FALSE(v.own_mac(Mac{}));
}

TEST(Vport, PartitionKeys) {
  Vport v;
  v.pkeys[0] = 0x7fff;  // limited member
  v.pkeys[127] = 0x8005;
  EXPECT_TRUE(v.pkey_valid(0xffff));
  EXPECT_FALSE(v.pkey_valid(0x7fff)) << "two limited members";
  EXPECT_TRUE(v.pkey_valid(0x0005));
  EXPECT_FALSE(v.pkey_valid(0x8006));
  EXPECT_FALSE(v.pkey_valid(0x0000));
}

TEST(Vport, GidsOfZerosAreNotInUse) {
  Vport v;
  EXPECT_FALSE(v.has_gid(Gid{}));
  v.gids[7] = gid(1);
  EXPECT_TRUE(v.has_gid(gid(1)));
}

TEST(Vport, ResetLeavesTheSizesOfTheTablesAlone) {
  Vport fresh, used;
  used.gids[1] = gid(1);
  used.pkeys[1] = kDefaultPkey;
  used.roce_enabled = true;
  used.set_roce_address(0, address(kMac1, 1));
  EXPECT_NE(digest_state(fresh), digest_state(used));
  used.reset();
  EXPECT_EQ(digest_state(fresh), digest_state(used));
  EXPECT_EQ(used.gids.size(), 8u);
  EXPECT_EQ(used.pkeys.size(), 128u);
  EXPECT_FALSE(used.own_mac(kMac1));
  EXPECT_FALSE(used.own_gid(gid(1), true));
  used.mac = kMac0;
  used.reset();
  EXPECT_FALSE(used.own_mac(kMac0));
}

class TwoVports : public ::testing::Test {
 protected:
  TwoVports() {
    a.mac = kMac0;
    b.mac = kMac1;
    a.roce_enabled = b.roce_enabled = true;
  }
  Vport a{0}, b{1};
  Vports both{PerFunction<Vport>(std::vector<Vport*>{&a, &b})};
};

TEST_F(TwoVports, AUnicastMacHasOneOwner) {
  EXPECT_EQ(both.owner_of(kMac0), 0);
  EXPECT_EQ(both.owner_of(kMac1), 1);
  EXPECT_EQ(both.owner_of(kAlien), kNoFunction);
  b.set_roce_address(0, address(kAlien, 1));
  EXPECT_EQ(both.owner_of(kAlien), 1) << "a MAC of the RoCE table counts, too";
}

TEST_F(TwoVports, ThePortKeepsPacketsBetweenFunctionsInside) {
  const LocalAddresses& local = both;
  EXPECT_TRUE(local.is_local(kMac0));
  EXPECT_TRUE(local.is_local(kMac1));
  EXPECT_FALSE(local.is_local(kAlien));
  EXPECT_FALSE(local.is_local(Mac{}));
}

TEST_F(TwoVports, AFrameToNobodysMacIsTheFirstFunctions) {
  EXPECT_EQ(both.receiver_of(kMac1), 1);
  EXPECT_EQ(both.receiver_of(kAlien), 0);
}

TEST_F(TwoVports, RoceToAGroupIsForEachThatHasItEnabled) {
  EXPECT_TRUE(both.takes_roce(0, kGroup));
  EXPECT_TRUE(both.takes_roce(1, kGroup));
  EXPECT_EQ(both.owner_of(kGroup), kNoFunction);
  a.roce_enabled = false;
  EXPECT_FALSE(both.takes_roce(0, kGroup));
  EXPECT_TRUE(both.takes_roce(1, kGroup));
}

TEST_F(TwoVports, WithoutRoceFramesToAnOwnMacAreOnlyFrames) {
  a.roce_enabled = false;
  EXPECT_FALSE(both.takes_roce(0, kMac0));
  EXPECT_EQ(both.owner_of(kMac0), 0) << "its frames are its own";
}

TEST_F(TwoVports, OnInfiniBandTheDgidDecidesAndFunction0HasTheLid) {
  a.gids[0] = gid(1);
  b.gids[0] = gid(2);
  Packet p;
  p.dgid = gid(2);
  EXPECT_EQ(both.ib_owner(p), 0) << "no GRH";
  p.has_grh = true;
  EXPECT_EQ(both.ib_owner(p), 1);
  p.dgid = gid(1);
  EXPECT_EQ(both.ib_owner(p), 0);
  p.dgid = gid(3);
  EXPECT_EQ(both.ib_owner(p), 0);
  p.dgid = Gid{};  // as are the free entries of the tables
  EXPECT_EQ(both.ib_owner(p), 0);
}

// What the receiver asks. Both functions have a QP of the same number, and the same GID.
class Classifying : public TwoVports {
 protected:
  Classifying() {
    a.set_roce_address(0, address(kMac0, 1));
    b.set_roce_address(0, address(kMac1, 1));
    for (QpTable* qps : {&qps0, &qps1}) qps->create(kQpn)->state = QpState::kRts;
  }
  static Packet roce(const Mac& dest) {
    Packet p;
    p.kind = PacketKind::kRoceV2;
    p.opcode = 0x04;  // RC SEND only
    p.pkey = 0xffff;
    p.dmac = dest;
    p.dgid = gid(1);
    p.dest_qpn = kQpn;
    return p;
  }
  static constexpr std::uint32_t kQpn = 0x50;

  QpTable qps0{0}, qps1{1};
  Steering steering0{qps0}, steering1{qps1};
  Classifier classifier{{both, PerFunction<Steering>({&steering0, &steering1})}};
};

TEST_F(Classifying, TheDestinationsMacNamesTheFunction) {
  for (const FunctionId f : {0, 1}) {
    Packet p = roce(f == 0 ? kMac0 : kMac1);
    EXPECT_FALSE(classifier.reaches_many(p, true));
    EXPECT_EQ(classifier.owner(p, true), f);
    EXPECT_EQ(classifier.link(f, p).to, LinkVerdict::To::kTransport);
    const TransportVerdict v = classifier.transport(f, p);
    EXPECT_EQ(v.to, TransportVerdict::To::kRequest);
    EXPECT_EQ(v.function, f);
    ASSERT_NE(v.qp, nullptr);
    EXPECT_EQ(v.qp->function, f);
  }
}

TEST_F(Classifying, ForAnotherFunctionItIsAFrame) {
  Packet p = roce(kMac1);
  EXPECT_EQ(classifier.link(0, p).to, LinkVerdict::To::kFrames);
  Packet alien = roce(kAlien);
  EXPECT_EQ(classifier.link(0, alien).to, LinkVerdict::To::kFrames);
}

TEST_F(Classifying, AGidOfTheOtherFunctionIsNotTakenForThisMac) {
  b.set_roce_address(1, address(kMac1, 7));
  Packet lost = roce(kMac0);
  lost.dgid = gid(7);
  const LinkVerdict v = classifier.link(0, lost);
  EXPECT_EQ(v.to, LinkVerdict::To::kDrop);
  EXPECT_EQ(v.reason, DropReason::kNoAddress);
}

TEST_F(Classifying, OnInfiniBandAGrhNamesAGidOfTheFunction) {
  a.guid = 0x0123456789abcdef;
  a.gids[0] = Gid{0xfe, 0xc0, 0, 0, 0, 0, 0, 9, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
  a.pkeys[0] = 0xffff;
  Packet p;
  p.kind = PacketKind::kIb;
  p.opcode = 0x04;  // RC SEND only
  p.pkey = 0xffff;
  p.dest_qpn = kQpn;
  const auto reason = [&] {
    const TransportVerdict v = classifier.transport(0, p);
    return v.to == TransportVerdict::To::kDrop ? v.reason : DropReason{};
  };
  EXPECT_EQ(reason(), DropReason{}) << "there is none";
  p.has_grh = true;
  p.dgid = a.gids[0];
  EXPECT_EQ(reason(), DropReason{});
  p.dgid[1] = 0x80, p.dgid[7] = 0;
  EXPECT_EQ(reason(), DropReason{}) << "the default prefix";
  p.dgid[15] ^= 1;
  EXPECT_EQ(reason(), DropReason::kNoAddress);
  p.dgid = Gid{};
  EXPECT_EQ(reason(), DropReason::kNoAddress);
}

TEST_F(Classifying, DropsAreTheFunctionsToo) {
  Packet p = roce(kMac1);
  p.dest_qpn = 0x999;
  EXPECT_EQ(classifier.transport(1, p).function, 1);
}

TEST_F(Classifying, AGroupMayHaveMembersInBoth) {
  Packet p = roce(kGroup);
  EXPECT_TRUE(classifier.reaches_many(p, true));
  p.kind = PacketKind::kIb;
  p.dest_qpn = kMulticastQpn;
  EXPECT_TRUE(classifier.reaches_many(p, false));
  p.dest_qpn = kQpn;
  EXPECT_FALSE(classifier.reaches_many(p, false));
}

TEST_F(Classifying, PartitionKeysAreThoseOfTheQpsFunction) {
  a.pkeys[0] = 0x8001;
  b.pkeys[0] = 0x8002;
  Packet p = roce(kMac0);
  p.kind = PacketKind::kIb;
  p.pkey = 0x8002;
  EXPECT_EQ(classifier.for_qp(*qps0.find(kQpn), p).reason, DropReason::kPkey);
  EXPECT_EQ(classifier.for_qp(*qps1.find(kQpn), p).to, TransportVerdict::To::kRequest);
}

TEST_F(Classifying, WhatAFunctionSendsToItselfIsItsOwn) {
  Packet p = roce(Mac{});
  p.internal = true;
  p.function = 1;
  EXPECT_EQ(classifier.owner(p, true), 1);
  EXPECT_FALSE(classifier.reaches_many(p, true));
}

}  // namespace
}  // namespace hcasim
