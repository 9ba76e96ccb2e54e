// SPDX-License-Identifier: BSD-3-Clause
// Management over the wire: SMPs of QP0 on VL15, while the ports are not ACTIVE and after; subnet
// administration by the built-in subnet manager on QP1.
#include <algorithm>
#include <cstring>
#include <optional>

#include "driver/bare/mr.h"
#include "wire_fixture.h"

namespace hcasim::bare {
namespace {

constexpr std::uint32_t kGsiQkey = 0x80010000;
constexpr std::uint16_t kPermissive = 0xffff;
constexpr std::size_t kMad = 256;
constexpr unsigned kInit = 2, kArmed = 3;
enum : std::uint8_t { kSubn = 1, kSubnAdm = 3 };
enum : std::uint8_t { kGet = 1, kSet = 2, kGetTable = 0x12, kDelete = 0x15 };

QpOptions special(QpType type) {
  QpOptions o;
  o.type = type;
  return o;
}

// A management QP on an end, connected.
std::unique_ptr<End> open(std::size_t hca, QpType type) {
  auto end = std::make_unique<End>(hca, special(type));
  QpAttr attr;
  attr.qkey = type == QpType::kQp1 ? kGsiQkey : 0;
  end->qp.connect(attr);
  return end;
}

SendWr mad_wr(const End& end, std::uint16_t dlid, std::uint32_t qpn) {
  SendWr w;
  w.sges = {end.sge(0, kMad)};
  w.av.qpn = qpn;
  w.av.dlid = dlid;
  w.av.qkey = qpn == 0 ? 0 : kGsiQkey;
  return w;
}

CommandResult mad_ifc(Device& device, const std::vector<std::uint8_t>& mad) {
  using In = prm::mad_ifc_in;
  Mailbox in(prm::op::MAD_IFC, In::bytes);
  in.set<In::port>(1);
  std::copy(mad.begin(), mad.end(), in.data() + In::mad::bit_off / 8);
  return device.exec(in, prm::mad_ifc_out::bytes);
}

// What a subnet manager does, by PortInfo, with the end's own agent; with a key, the port has it from then
// on.
void set_port(Device& device, std::uint16_t lid, unsigned state, unsigned subnet_timeout = 0,
              std::uint64_t key = 0, std::uint64_t key_before = 0, unsigned physical = 0) {
  std::vector<std::uint8_t> mad(kMad);
  mad[0] = mad[2] = 1;
  mad[1] = kSubn;
  mad[3] = kGet;
  prm::store32(mad.data() + 16, 0x15u << 16);
  prm::store32(mad.data() + 20, 1);
  const auto r = mad_ifc(device, mad).must();
  const std::uint8_t* answer = r.out.data() + prm::mad_ifc_out::response_mad_packet::bit_off / 8;
  mad.assign(answer, answer + kMad);
  mad[3] = kSet;
  mad[4] = mad[5] = 0;
  prm::store32(mad.data() + 64 + 16, std::uint32_t{lid} << 16 | 1);
  mad[64 + 32] = static_cast<std::uint8_t>((mad[64 + 32] & 0xf0) | state);
  mad[64 + 33] = static_cast<std::uint8_t>(physical << 4);  // 0: no change
  mad[64 + 51] = static_cast<std::uint8_t>(subnet_timeout);
  prm::store64(mad.data() + 24, key_before);
  prm::store64(mad.data() + 64, key);
  const auto done = mad_ifc(device, mad).must();
  EXPECT_EQ(prm::load32(done.out.data() + prm::mad_ifc_out::response_mad_packet::bit_off / 8 + 4) >> 16, 0u);
}

void repress(Device& device, std::uint64_t tid) {
  std::vector<std::uint8_t> mad(kMad);
  mad[0] = mad[2] = 1;
  mad[1] = kSubn;
  mad[3] = 7;
  prm::store64(mad.data() + 8, tid);
  mad_ifc(device, mad).must();
}

// ---- QP0 ----

class Smp : public ::testing::Test {
 protected:
  void SetUp() override {
    a_ = open(kManagedA, QpType::kQp0);
    b_ = open(kManagedB, QpType::kQp0);
    ASSERT_TRUE(reaches(a_->device, kInit));
    ASSERT_TRUE(reaches(b_->device, kInit));
  }
  // Sends from the one's memory; what has come to the other, if anything.
  std::optional<Completion> send(End& from, End& to, std::uint16_t dlid, std::uint32_t qpn) {
    fill_random(from, dlid);
    to.qp.post_recv({to.sge(4096, 512)});
    from.qp.post(mad_wr(from, dlid, qpn));
    EXPECT_FALSE(from.cq.wait_one().error());
    const auto got = to.cq.wait(1, 1'000'000);
    if (got.empty()) return {};
    return got[0];
  }
  std::unique_ptr<End> a_, b_;
};

TEST_F(Smp, DirectedRouteBeforeThePortIsActive) {
  for (End* from : {a_.get(), b_.get()}) {
    End& to = from == a_.get() ? *b_ : *a_;
    const auto got = send(*from, to, kPermissive, 0);
    ASSERT_TRUE(got);
    EXPECT_FALSE(got->error()) << got->text();
    EXPECT_EQ(got->slid, kPermissive);
    EXPECT_EQ(got->byte_cnt, kMad + 40);
    EXPECT_EQ(got->qpn, to.qp.qpn());
    EXPECT_EQ(std::memcmp(from->memory.data(), to.memory.data() + 4096 + 40, kMad), 0);
  }
}

TEST_F(Smp, ByLidOnceThereIsOne) {
  set_port(a_->device, 5, kInit);
  set_port(b_->device, 9, kInit);
  EXPECT_FALSE(send(*a_, *b_, 8, 0)) << "another's LID";
  const auto got = send(*a_, *b_, 9, 0);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->slid, 5);
  set_port(a_->device, 5, kArmed);
  set_port(b_->device, 9, kArmed);
  set_port(a_->device, 5, kActive);
  set_port(b_->device, 9, kActive);
  EXPECT_TRUE(send(*b_, *a_, 5, 0));
  EXPECT_TRUE(send(*b_, *a_, kPermissive, 0));
}

// The link has two ends: with one of them the other goes down, too.
TEST_F(Smp, BothEndsGoDown) {
  const auto activate = [this] {
    set_port(a_->device, 5, kArmed);
    set_port(b_->device, 9, kArmed);
    set_port(a_->device, 5, kActive);
    set_port(b_->device, 9, kActive);
  };
  activate();
  a_->device.clear_async_events();
  b_->device.clear_async_events();
  set_port(a_->device, 5, kDown);
  wired_machine().advance(1'000'000);
  for (Device* d : {&a_->device, &b_->device}) {
    EXPECT_EQ(d->port_state(), kInit);
    const auto& events = d->async_events();
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [](const auto& e) { return e.sub_type == prm::kPortDown; }),
              1);
  }
  EXPECT_TRUE(send(*a_, *b_, kPermissive, 0)) << "the subnet manager can go on";
  activate();
  constexpr unsigned kPolling = 2, kDisabled = 3;
  set_port(a_->device, 5, 0, 0, 0, 0, kDisabled);
  EXPECT_TRUE(send(*a_, *b_, kPermissive, 0)) << "the answer still leaves";
  wired_machine().advance(50'000'000);
  EXPECT_EQ(a_->device.port_state(), kDown);
  EXPECT_EQ(b_->device.port_state(), kDown);
  set_port(a_->device, 5, 0, 0, 0, 0, kPolling);
  wired_machine().advance(1'000'000);
  EXPECT_EQ(a_->device.port_state(), kInit);
  EXPECT_EQ(b_->device.port_state(), kInit);
}

TEST_F(Smp, OnlyFromQpZeroToQpZero) {
  set_port(a_->device, 5, kArmed);
  set_port(b_->device, 9, kArmed);
  set_port(a_->device, 5, kActive);
  set_port(b_->device, 9, kActive);
  EXPECT_FALSE(send(*a_, *b_, 9, 1)) << "QP0 sends on VL15, which is not QP1's";
}

TEST_F(Smp, NewDescriptionIsTold) {
  set_port(a_->device, 5, kArmed);  // the subnet manager is at LID 1, then at 9
  set_port(b_->device, 9, kArmed);
  set_port(a_->device, 5, kActive);
  set_port(b_->device, 1, kActive);
  for (int i = 0; i < 8; ++i) b_->qp.post_recv({b_->sge(4096, 512)});
  std::vector<std::uint8_t> text(64);
  std::memcpy(text.data(), "another name", 12);
  EXPECT_TRUE(a_->device.access_register(0x6001, true, text).ok());
  // Again and again, until it is repressed.
  for (int i = 0; i < 2; ++i) {
    const auto got = b_->cq.wait(1, 2'000'000'000);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].slid, 5);
    const std::uint8_t* mad = b_->memory.data() + 4096 + 40;
    EXPECT_EQ(mad[1], kSubn);
    EXPECT_EQ(mad[3], 5) << "Trap";
    EXPECT_EQ(prm::load32(mad + 16) >> 16, 2u) << "Notice";
    EXPECT_EQ(prm::load32(mad + 68) >> 16, 144u);
    EXPECT_EQ(mad[64 + 15], 1) << "local changes";
    EXPECT_EQ(mad[64 + 21], 1) << "of the description";
  }
  repress(a_->device, prm::load64(b_->memory.data() + 4096 + 40 + 8));
  EXPECT_TRUE(b_->cq.wait(1, 3'000'000'000).empty());
}

// Whoever comes with wrong keys, however often, does not keep others' traps from the manager; and no two
// leave within the subnet's timeout.
TEST_F(Smp, TrapsOfSeveralKinds) {
  constexpr unsigned kTimeout = 19;  // 2.1 s
  constexpr std::int64_t kTimeoutNs = std::int64_t{4096} << kTimeout;
  set_port(a_->device, 5, kArmed);
  set_port(b_->device, 9, kArmed);
  set_port(a_->device, 5, kActive, kTimeout, 0x1122);
  set_port(b_->device, 1, kActive);
  for (int i = 0; i < 16; ++i) b_->qp.post_recv({b_->sge(4096, 512)});
  struct Trap {
    std::uint64_t tid;
    std::uint32_t number;
    std::int64_t at;
  };
  const auto trap = [this] {
    const auto got = b_->cq.wait(1, 4 * kTimeoutNs);
    EXPECT_EQ(got.size(), 1u);
    const std::uint8_t* mad = b_->memory.data() + 4096 + 40;
    return Trap{prm::load64(mad + 8), prm::load32(mad + 68) >> 16, wired_machine().now()};
  };
  std::vector<std::uint8_t> text(64), wrong(kMad);
  std::memcpy(text.data(), "a third name", 12);
  EXPECT_TRUE(a_->device.access_register(0x6001, true, text).ok());
  wrong[0] = wrong[2] = 1;
  wrong[1] = kSubn;
  wrong[3] = kSet;
  prm::store32(wrong.data() + 16, 0x15u << 16);
  prm::store64(wrong.data() + 24, 0x3344);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(mad_ifc(a_->device, wrong).ok());
  const Trap first = trap(), second = trap();
  EXPECT_EQ(first.number, 144u);
  EXPECT_EQ(second.number, 256u);
  EXPECT_NEAR(static_cast<double>(second.at - first.at), kTimeoutNs, 1e6);
  repress(a_->device, second.tid - 1);  // of a wrong key that came before
  repress(a_->device, first.tid);
  for (int i = 0; i < 2; ++i) {
    const Trap again = trap();
    EXPECT_EQ(again.number, 256u);
    EXPECT_EQ(again.tid, second.tid);
  }
  repress(a_->device, second.tid);
  EXPECT_TRUE(b_->cq.wait(1, 4 * kTimeoutNs).empty());
  set_port(a_->device, 5, kActive, 0, 0, 0x1122);
}

// ---- Subnet administration ----

class Sa : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    a_ = open(kCableA, QpType::kQp1);
    b_ = open(kCableB, QpType::kQp1);
    ASSERT_TRUE(reaches(a_->device, kActive));
    ASSERT_TRUE(reaches(b_->device, kActive));
  }
  // Who asks: the end where the manager is, or the other one.
  End& asker() { return from_a_ ? *a_ : *b_; }
  End& other() { return from_a_ ? *b_ : *a_; }
  std::uint16_t sm_lid(Device& d) {
    return static_cast<std::uint16_t>(
        d.query_vport().must().get<prm::query_hca_vport_context_out::hca_vport_context::sm_lid>());
  }
  struct Answer {
    std::uint16_t status = 0xffff;
    std::uint8_t method = 0;
    std::vector<std::uint8_t> data;  // behind the SA header
    unsigned record_bytes = 0;
    std::uint8_t rmpp_flags = 0;
    std::uint32_t segment = 0, payload = 0;
  };
  Answer ask(std::uint8_t method, std::uint16_t attribute, std::uint64_t mask,
             const std::vector<std::uint8_t>& record, std::uint8_t version = 2) {
    End& e = asker();
    std::uint8_t* mad = e.memory.data();
    std::memset(mad, 0, kMad);
    mad[0] = 1;
    mad[1] = kSubnAdm;
    mad[2] = version;
    mad[3] = method;
    prm::store64(mad + 8, ++tid_);
    prm::store32(mad + 16, std::uint32_t{attribute} << 16);
    prm::store64(mad + 48, mask);
    std::copy(record.begin(), record.end(), mad + 56);
    e.qp.post_recv({e.sge(4096, 512)});
    SendWr w = mad_wr(e, sm_lid(e.device), 1);
    w.av.grh = global_;
    w.av.dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 2};  // wherever the manager is
    e.qp.post(w);
    EXPECT_FALSE(e.cq.wait_one().error());
    return take();
  }
  Answer take() {
    End& e = asker();
    const auto got = e.cq.wait(1, 1'000'000);
    if (got.empty()) return {};
    EXPECT_EQ(got[0].byte_cnt, kMad + 40);
    EXPECT_EQ(got[0].slid, sm_lid(e.device));
    const std::uint8_t* mad = e.memory.data() + 4096 + 40;
    EXPECT_EQ(prm::load64(mad + 8), tid_);
    Answer a;
    a.method = mad[3];
    a.status = static_cast<std::uint16_t>(prm::load32(mad + 4) >> 16);
    a.rmpp_flags = mad[26] & 7;
    a.segment = prm::load32(mad + 28);
    a.payload = prm::load32(mad + 32);
    a.record_bytes = (prm::load32(mad + 44) >> 16) * 8;
    a.data.assign(mad + 56, mad + kMad);
    return a;
  }
  static std::vector<std::uint8_t> join_record(const std::vector<std::uint8_t>& port_gid, std::uint8_t last,
                                               std::uint8_t state, std::uint32_t qkey = 0x1234) {
    std::vector<std::uint8_t> r(52);
    r[0] = 0xff;
    r[1] = 0x12;
    r[2] = 0x60;
    r[15] = last;
    std::copy(port_gid.begin(), port_gid.end(), r.begin() + 16);
    prm::store32(r.data() + 32, qkey);
    r[40] = r[41] = 0xff;  // P_Key
    r[48] = state;
    return r;
  }
  static constexpr std::uint64_t kJoin = 1 | 2 | 1 << 16;  // MGID, PortGID, JoinState
  static constexpr std::uint64_t kCreate = kJoin | 4 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13;
  std::uint64_t tid_ = 0x1122334455660000;
  bool from_a_ = GetParam();
  bool global_ = false;  // requests with a GRH, as virtual functions send them
  std::unique_ptr<End> a_, b_;
};

TEST_P(Sa, ClassPortInfo) {
  const Answer a = ask(kGet, 1, 0, {});
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(a.method, 0x81);
  EXPECT_EQ(a.data[1], 2);
  EXPECT_NE(a.data[2] & 0x02, 0) << "multicast groups";
}

TEST_P(Sa, PathToTheOtherEnd) {
  std::vector<std::uint8_t> r(64);
  const auto to = other().device.gid(0), from = asker().device.gid(0);
  std::copy(to.begin(), to.end(), r.begin() + 8);
  std::copy(from.begin(), from.end(), r.begin() + 24);
  Answer a = ask(kGet, 0x35, 1 << 2 | 1 << 3, r);
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 40),
            std::uint32_t{other().device.lid()} << 16 | asker().device.lid());
  EXPECT_EQ(a.data[54] & 0x3f, 5) << "MTU 4096";
  EXPECT_EQ(a.data[55] & 0x3f, 16) << "100 Gb/s";
  // To oneself.
  std::copy(from.begin(), from.end(), r.begin() + 8);
  a = ask(kGet, 0x35, 1 << 2 | 1 << 3, r);
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 40),
            std::uint32_t{asker().device.lid()} << 16 | asker().device.lid());
  r[23] ^= 1;  // nobody
  EXPECT_EQ(ask(kGet, 0x35, 1 << 2 | 1 << 3, r).status, 0x300);
  r[54] = 5;  // greater than what there is
  std::copy(to.begin(), to.end(), r.begin() + 8);
  EXPECT_EQ(ask(kGet, 0x35, 1 << 2 | 1 << 3 | 1 << 16 | 1 << 17, r).status, 0x300);
  r[54] = 2 << 6 | 3;
  a = ask(kGet, 0x35, 1 << 2 | 1 << 3 | 1 << 16 | 1 << 17, r);
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(a.data[54] & 0x3f, 3);
}

TEST_P(Sa, TableInSegments) {
  // All paths: four records of 64 bytes do not fit into one segment.
  Answer a = ask(kGetTable, 0x35, 0, {});
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(a.method, 0x92);
  EXPECT_EQ(a.record_bytes, 64u);
  EXPECT_EQ(a.rmpp_flags, 3) << "active, first";
  EXPECT_EQ(a.segment, 1u);
  EXPECT_EQ(a.payload, 2 * 20 + 4 * 64u);
  // The next one comes when the first has been acknowledged.
  End& e = asker();
  std::uint8_t* mad = e.memory.data();
  mad[24] = 1;
  mad[25] = 2;  // ACK
  mad[26] = 1;
  prm::store32(mad + 28, 1);
  prm::store32(mad + 32, 64);
  e.qp.post_recv({e.sge(4096, 512)});
  e.qp.post(mad_wr(e, sm_lid(e.device), 1));
  EXPECT_FALSE(e.cq.wait_one().error());
  a = take();
  EXPECT_EQ(a.rmpp_flags, 5) << "active, last";
  EXPECT_EQ(a.segment, 2u);
  EXPECT_EQ(a.payload, 20 + 4 * 64u - 200u);
  // The last one acknowledged, nothing more comes; nor for an ACK of something unknown.
  for (const std::uint32_t segment : {2u, 2u, 99u}) {
    prm::store32(mad + 28, segment);
    e.qp.post(mad_wr(e, sm_lid(e.device), 1));
    EXPECT_FALSE(e.cq.wait_one().error());
  }
  EXPECT_TRUE(e.cq.wait(1, 1'000'000).empty());
}

TEST_P(Sa, GroupsAreMadeJoinedAndLeft) {
  const auto own = asker().device.gid(0), theirs = other().device.gid(0);
  EXPECT_EQ(ask(kSet, 0x38, kJoin, join_record(own, 7, 1)).status, 0x600) << "what a group needs is missing";
  EXPECT_EQ(ask(kSet, 0x38, kCreate, join_record(own, 7, 4)).status, 0x200)
      << "a sender that is no member makes none";
  Answer a = ask(kSet, 0x38, kCreate, join_record(own, 7, 1));
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(a.method, 0x81);
  const std::uint16_t mlid = static_cast<std::uint16_t>(prm::load32(a.data.data() + 36) >> 16);
  EXPECT_GE(mlid, 0xc000);
  EXPECT_EQ(a.data[48] & 0xf, 1);
  a = ask(kSet, 0x38, kJoin, join_record(theirs, 7, 1));
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 36) >> 16, mlid);
  EXPECT_EQ(prm::load32(a.data.data() + 32), 0x1234u) << "Q_Key";
  EXPECT_EQ(ask(kSet, 0x38, kCreate, join_record(own, 7, 1, 0x999)).status, 0x200) << "another Q_Key";
  EXPECT_EQ(ask(kSet, 0x38, kJoin, join_record(std::vector<std::uint8_t>(16, 3), 7, 1)).status, 0x500);
  a = ask(kSet, 0x38, kCreate, join_record(own, 8, 1));
  ASSERT_EQ(a.status, 0);
  EXPECT_NE(prm::load32(a.data.data() + 36) >> 16, mlid);
  // Gone with its last full member.
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join_record(own, 7, 1)).status, 0);
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join_record(own, 7, 1)).status, 0x200) << "twice";
  EXPECT_EQ(ask(kGet, 0x38, 1, join_record(own, 7, 0)).status, 0);
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join_record(theirs, 7, 1)).status, 0);
  EXPECT_EQ(ask(kGet, 0x38, 1, join_record(own, 7, 0)).status, 0x300);
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join_record(own, 8, 1)).status, 0);
}

TEST_P(Sa, IpoibsBroadcastGroupIsThere) {
  std::vector<std::uint8_t> r(52);
  const std::uint8_t mgid[] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  std::copy(std::begin(mgid), std::end(mgid), r.begin());
  const auto own = asker().device.gid(0);
  std::copy(own.begin(), own.end(), r.begin() + 16);
  r[48] = 1;
  EXPECT_EQ(ask(kSet, 0x38, kJoin, r).status, 0);
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, r).status, 0);
  EXPECT_EQ(ask(kGet, 0x38, 1, r).status, 0) << "stays without members";
}

TEST_P(Sa, WhatIsRefused) {
  EXPECT_EQ(ask(kGet, 0x11, 0, {}).status, 0x0c) << "attribute";
  EXPECT_EQ(ask(0x13, 0x35, 0, {}).status, 0x08) << "method";
  EXPECT_EQ(ask(kGet, 1, 0, {}, 1).status, 0x04) << "class version";
  EXPECT_EQ(ask(kSet, 0x35, 0, {}).status, 0x0c);
  EXPECT_EQ(ask(kGet, 0x35, 0, {}).status, 0x400) << "too many records for one answer";
}

// Answered by the card at the far end, without its driver: nothing comes to that one's QP1.
TEST_P(Sa, PerformanceManagement) {
  End& e = asker();
  other().qp.post_recv({other().sge(4096, 512)});
  const auto ask_port = [&](std::uint8_t method, std::uint16_t attribute, std::uint8_t port) {
    std::uint8_t* mad = e.memory.data();
    std::memset(mad, 0, kMad);
    mad[0] = mad[2] = 1;
    mad[1] = 4;
    mad[3] = method;
    prm::store64(mad + 8, ++tid_);
    prm::store32(mad + 16, std::uint32_t{attribute} << 16);
    mad[65] = port;
    mad[66] = mad[67] = 0xff;  // counters selected
    e.qp.post_recv({e.sge(4096, 512)});
    e.qp.post(mad_wr(e, other().device.lid(), 1));
    EXPECT_FALSE(e.cq.wait_one().error());
    const auto got = e.cq.wait(1, 1'000'000);
    EXPECT_EQ(got.size(), 1u) << "no answer";
    const std::uint8_t* answer = e.memory.data() + 4096 + 40;
    EXPECT_EQ(answer[3], 0x81);
    EXPECT_EQ(prm::load64(answer + 8), tid_);
    return answer;
  };
  const auto status = [](const std::uint8_t* mad) { return prm::load32(mad + 4) >> 16; };
  EXPECT_EQ(status(ask_port(kGet, 1, 0)), 0u) << "ClassPortInfo";
  const std::uint64_t before = prm::load64(ask_port(kGet, 0x1d, 1) + 64 + 24);  // PortXmitPkts
  const std::uint64_t after = prm::load64(ask_port(kGet, 0x1d, 1) + 64 + 24);
  EXPECT_EQ(after, before + 1) << "the answer in between";
  EXPECT_EQ(status(ask_port(kGet, 0x12, 9)), 0x1cu) << "no such port";
  EXPECT_EQ(status(ask_port(kGet, 0x777, 1)), 0x0cu);
  EXPECT_EQ(status(ask_port(kSet, 0x12, 1)), 0u);
  EXPECT_LE(prm::load64(ask_port(kGet, 0x1d, 1) + 64 + 24), 2u) << "set to zero";
  EXPECT_FALSE(other().cq.ready());
}

// Members at other ports are not told to join again when the manager's own port has another driver.
TEST_P(Sa, GroupsOutlastTheDriverAtTheManager) {
  if (from_a_) return;
  const auto own = asker().device.gid(0), theirs = other().device.gid(0);
  Answer a = ask(kSet, 0x38, kCreate, join_record(own, 9, 1));
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(ask(kSet, 0x38, kJoin, join_record(theirs, 9, 1)).status, 0);
  ASSERT_EQ(ask(kSet, 0x38, kCreate, join_record(theirs, 10, 1)).status, 0);
  const std::uint32_t mlid = prm::load32(a.data.data() + 36) >> 16;
  a_.reset();
  {
    Device device(wired_machine().function(kCableA));
    device.function_reset();
    device.probe();
    ASSERT_TRUE(reaches(device, kActive));
  }
  a_ = open(kCableA, QpType::kQp1);
  ASSERT_TRUE(reaches(a_->device, kActive));
  a = ask(kGet, 0x38, 1, join_record(own, 9, 0));
  EXPECT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 36) >> 16, mlid);
  EXPECT_EQ(ask(kGet, 0x38, 1, join_record(own, 10, 0)).status, 0x300) << "whose only member has gone";
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join_record(theirs, 9, 1)).status, 0x200) << "so has this one";
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join_record(own, 9, 1)).status, 0);
  EXPECT_EQ(ask(kGet, 0x38, 1, join_record(own, 9, 0)).status, 0x300);
}

INSTANTIATE_TEST_SUITE_P(Both, Sa, ::testing::Bool());

// The one end is a virtual function, of the card that has not the subnet manager.
class SaOfFunctions : public Sa {
 protected:
  void SetUp() override {
    a_ = open(kVirtualA, QpType::kQp1);
    pf_ = open(kVirtualB, QpType::kQp1);
    ASSERT_TRUE(reaches(a_->device, kActive));
    ASSERT_TRUE(reaches(pf_->device, kActive));
    ASSERT_EQ(sm_lid(pf_->device), a_->device.lid());
    using In = prm::enable_hca_in;
    pf_->device.exec(Mailbox(prm::op::ENABLE_HCA, In::bytes).set<In::function_id>(1)).must();
    wired_machine().add_virtual(wired_machine().function(kVirtualB), 1);
    b_ = open(wired_machine().functions() - 1, QpType::kQp1);
    ASSERT_TRUE(reaches(b_->device, kActive));
    global_ = true;
  }
  void TearDown() override {
    b_.reset();
    using In = prm::disable_hca_in;
    pf_->device.exec(Mailbox(prm::op::DISABLE_HCA, In::bytes).set<In::function_id>(1)).must();
  }
  std::unique_ptr<End> pf_;
};

TEST_P(SaOfFunctions, JoinAndAreFound) {
  std::vector<std::uint8_t> path(64), join(52);
  const auto gid = b_->device.gid(0), of_a = a_->device.gid(0);
  const std::uint8_t mgid[] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  std::copy(std::begin(mgid), std::end(mgid), join.begin());
  std::copy(gid.begin(), gid.end(), join.begin() + 16);
  join[48] = 1;
  std::copy(gid.begin(), gid.end(), path.begin() + 8);
  std::copy(of_a.begin(), of_a.end(), path.begin() + 24);
  from_a_ = true;
  EXPECT_EQ(ask(kSet, 0x38, kJoin, join).status, 0x500) << "nobody has heard of it";
  EXPECT_EQ(ask(kGet, 0x35, 1 << 2 | 1 << 3, path).status, 0x300);
  from_a_ = false;
  EXPECT_EQ(ask(kSet, 0x38, kJoin, join).status, 0);
  from_a_ = true;
  Answer a = ask(kGet, 0x35, 1 << 2 | 1 << 3, path);
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 40),
            std::uint32_t{pf_->device.lid()} << 16 | std::uint32_t{a_->device.lid()});
  EXPECT_EQ(prm::load32(a.data.data() + 44) & 0xff, 1u) << "by its GID alone";
  from_a_ = false;
  std::swap_ranges(path.begin() + 8, path.begin() + 24, path.begin() + 24);
  a = ask(kGet, 0x35, 1 << 2 | 1 << 3, path);
  ASSERT_EQ(a.status, 0);
  EXPECT_EQ(prm::load32(a.data.data() + 40),
            std::uint32_t{a_->device.lid()} << 16 | std::uint32_t{pf_->device.lid()});
  EXPECT_EQ(ask(kDelete, 0x38, kJoin, join).status, 0);
}

INSTANTIATE_TEST_SUITE_P(Cable, SaOfFunctions, ::testing::Values(false));

// The speed is what the generation has of the profile's, for all who ask.
class SaAlone : public Sa {
 protected:
  void SetUp() override {}
  void expect_speed(std::size_t hca, unsigned rate, unsigned extended, unsigned mask2) {
    a_ = open(hca, QpType::kQp1);
    ASSERT_TRUE(reaches(a_->device, kActive));
    const Answer path = ask(kGet, 0x35, 0, {});
    ASSERT_EQ(path.status, 0);
    EXPECT_EQ(path.data[55] & 0x3f, rate);
    std::vector<std::uint8_t> mad(kMad);
    mad[0] = mad[2] = 1;
    mad[1] = kSubn;
    mad[3] = kGet;
    prm::store32(mad.data() + 16, 0x15u << 16);
    prm::store32(mad.data() + 20, 1);
    const auto r = mad_ifc(a_->device, mad).must();
    const std::uint8_t* info = r.out.data() + prm::mad_ifc_out::response_mad_packet::bit_off / 8 + 64;
    EXPECT_EQ(info[62] >> 4, extended);
    EXPECT_EQ(prm::load32(info + 60) >> 16, mask2);
    using Port = prm::query_hca_vport_context_out::hca_vport_context;
    EXPECT_EQ(a_->device.query_vport().must().get<Port::cap_mask2>(), mask2);
  }
};

TEST_P(SaAlone, RateOfTheSpeed) {
  expect_speed(kNdr, 21, 8, 0x430);  // HDR and two lanes, too
  expect_speed(kNoNdr, 16, 2, 0);
}

INSTANTIATE_TEST_SUITE_P(Alone, SaAlone, ::testing::Values(true));

}  // namespace
}  // namespace hcasim::bare
