// SPDX-License-Identifier: BSD-3-Clause
// MACsec by flow entries, with objects, tables and WQEs as the kernel's driver makes them. What is right is
// what nettle makes of whole frames (macsec_frames.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "crypto_fixture.h"
#include "macsec_frames.h"
#include "prm/crypto.h"

namespace hcasim::bare {
namespace {

using macsec_frames::Bytes;
using macsec_frames::How;
using macsec_frames::sealed;
using prm::CqeSyndrome;

constexpr unsigned kReformat = 0x10, kModify = 0x40, kDecrypt = 0x1000, kEncrypt = 0x2000;
constexpr unsigned kOuter = 1, kMisc2 = 8, kMisc5 = 64;
constexpr std::size_t kMisc2At = 3 * 64, kMisc5At = 6 * 64;
constexpr std::uint32_t kMarker = 1u << 30 | 5;
constexpr std::uint64_t kNumber = 0x7'00000100;

class MacsecTest : public CryptoTest {
 protected:
  void SetUp() override {
    link = std::make_unique<EthLink>(*dev);
    dek = make_dek(prm::kKeyPurposeMacsec, macsec_frames::kKey);
    context = std::make_unique<Buffer>(dev->memory().allocate(4096));
    context_mr = std::make_unique<Mr>(*dev, Mr::of(link->pd, *context));
  }
  void TearDown() override {
    link->steer_to(0);
    arrives.reset();
    if (tx_root) set_flow_root(*dev, tx_root, kNicTxTable);
    for (auto* list : {&rules, &objects})
      while (!list->empty()) list->pop_back();
    while (!tables.empty()) tables.pop_back();
    dek.reset();
    context_mr.reset();
    context.reset();
    leave();
  }

  // ---- Objects

  struct Sa {
    bool send = true, xpn = false, overlap = false, encrypt = true, valid = true, arm = true;
    std::uint64_t next = kNumber;
    int window = -1;        // log2 of it by 32; -1: none
    std::uint32_t dek = 0;  // 0: the test's
    std::uint32_t pd = 0;   // 0: the test's
    unsigned offset = 0, reg = 2;
  };
  CommandResult try_sa(const Sa& sa, Device* by = nullptr) {
    using O = prm::create_macsec_obj_in::macsec_object;
    using A = O::macsec_aso;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_macsec_obj_in::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_MACSEC);
    in.set<O::confidentiality_en>(sa.encrypt).set<O::confidentiality_offset>(sa.offset);
    in.set<O::dekn>(sa.dek != 0 ? sa.dek : dek->number()).set<O::aso_return_reg>(sa.reg);
    in.set<O::macsec_aso_access_pd>(sa.pd != 0 ? sa.pd : link->pd.pdn());
    in.set<O::epn_en>(sa.xpn).set<O::epn_overlap>(sa.overlap).set<O::epn_msb>(sa.next >> 32);
    if (sa.xpn)
      prm::store32(in.data() + O::sci::bit_off / 8 + 4, macsec_frames::kSsci);
    else
      std::copy(macsec_frames::kSci.begin(), macsec_frames::kSci.end(), in.data() + O::sci::bit_off / 8);
    for (std::size_t i = 0; i < 3; ++i)
      std::copy_n(macsec_frames::kSalt.begin() + static_cast<std::ptrdiff_t>(4 * (2 - i)), 4,
                  in.data() + O::salt::bit_off / 8 + 4 * i);
    in.set<A::valid>(sa.valid).set<A::mode_parameter>(sa.next & 0xffffffff);
    in.set<A::epn_event_arm>(sa.xpn && sa.arm);
    if (sa.send) in.set<A::mode>(prm::k::IPSEC_ASO_INC_SN);
    if (sa.window >= 0) in.set<A::mode>(prm::k::IPSEC_ASO_REPLAY_PROTECTION).set<A::window_size>(sa.window);
    return (by != nullptr ? *by : *dev).exec(in, Out::bytes);
  }
  std::uint32_t make_sa(const Sa& sa) {
    const auto id = static_cast<std::uint32_t>(try_sa(sa).must().get<Out::obj_id>());
    objects.push_back(std::make_unique<EthObject>(*dev, id, [this, id] { return of_sa(id); }));
    return id;
  }
  CommandResult of_sa(std::uint32_t id, std::uint16_t opcode = prm::op::DESTROY_GENERAL_OBJECT) {
    Mailbox in(opcode, In::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_MACSEC).set<In::obj_id>(id);
    return dev->exec(in, prm::query_macsec_obj_out::bytes);
  }
  CommandResult modify_sa(std::uint32_t id, std::uint64_t fields, std::uint32_t msb, bool overlap) {
    using O = prm::modify_macsec_obj_in::macsec_object;
    Mailbox in(prm::op::MODIFY_GENERAL_OBJECT, prm::modify_macsec_obj_in::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_MACSEC).set<In::obj_id>(id);
    in.set<O::modify_field_select>(fields).set<O::epn_msb>(msb).set<O::epn_overlap>(overlap);
    return dev->exec(in, Out::bytes);
  }
  std::uint32_t reformat(unsigned type, const Bytes& data, unsigned size = 0, unsigned words = 0) {
    Reformat r;
    r.type = type, r.anchor = words, r.data = data, r.size = size;
    objects.push_back(std::make_unique<EthObject>(make_reformat(*dev, r)));
    return objects.back()->number();
  }

  // ---- Tables

  struct Place {
    std::uint32_t table, group;
  };
  Place table(unsigned type, unsigned level, unsigned criteria, const MatchParam& mask, bool lengths) {
    tables.push_back(std::make_unique<EthObject>(make_flow_table(*dev, 4, level, type, lengths)));
    const std::uint32_t t = tables.back()->number();
    tables.push_back(std::make_unique<EthObject>(make_flow_group(*dev, t, 0, 7, criteria, mask, type)));
    return {t, tables.back()->number()};
  }
  // The driver's two tables: what protects, and what looks at whether there was a number.
  void protect_with(std::uint32_t sa, const How& how, unsigned words = 0) {
    MatchParam c4{};
    prm::set<prm::fte_match_set_misc2::metadata_reg_c_4>(c4.data() + kMisc2At, ~0u);
    const Place check = table(kNicTxTable, 1, kMisc2, c4, false);
    FlowRule r;
    r.table = check.table, r.group = check.group, r.type = kNicTxTable, r.allow = true;
    objects.push_back(std::make_unique<EthObject>(make_flow_counter(*dev)));
    sent_counter = r.counter = objects.back()->number();
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
    const Place first = table(kNicTxTable, 0, 0, {}, true);
    Bytes tag = macsec_frames::tag(how, 0, 100);
    FlowRule p;
    p.table = first.table, p.group = first.group, p.type = kNicTxTable;
    p.to = {{FlowDest::kTable, check.table}};
    p.action = kEncrypt | kReformat;
    p.reformat = reformat(prm::k::REFORMAT_TYPE_ADD_MACSEC, tag, 0, words);
    p.crypto = sa, p.crypto_type = FlowRule::kMacsec;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, p)));
    set_flow_root(*dev, first.table, kNicTxTable).must();
    tx_root = first.table;
  }
  // ... what validates, and what takes the SecTAG away of what is valid; nothing else is received.
  void validate_with(std::uint32_t sa, const How& how) {
    MatchParam good{}, value{};
    prm::set<prm::fte_match_set_misc2::macsec_syndrome>(good.data() + kMisc2At, 0xff);
    prm::set<prm::fte_match_set_misc2::metadata_reg_c_4>(good.data() + kMisc2At, ~0u);
    prm::set<prm::fte_match_set_misc5::macsec_tag_0>(good.data() + kMisc5At, 0x20u << 8);
    if (how.sci) prm::set<prm::fte_match_set_misc5::macsec_tag_0>(value.data() + kMisc5At, 0x20u << 8);
    const Place check = table(kNicRxTable, 10, kMisc2 | kMisc5, good, true);
    FlowRule r;
    r.table = check.table, r.group = check.group, r.value = value;
    r.to = {{FlowDest::kTir, link->tir.number()}};
    r.action = kReformat;
    r.reformat = reformat(prm::k::REFORMAT_TYPE_DEL_MACSEC, {}, how.sci ? 16 : 8);
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
    MatchParam mask{}, of{};
    prm::set<prm::fte_match_set_lyr_2_4::ethertype>(mask.data(), 0xffff);
    prm::set<prm::fte_match_set_lyr_2_4::ethertype>(of.data(), 0x88e5);
    prm::set<prm::fte_match_set_misc5::macsec_tag_0>(mask.data() + kMisc5At, 0x23u << 8);
    prm::set<prm::fte_match_set_misc5::macsec_tag_0>(of.data() + kMisc5At,
                                                     (how.sci ? 0x20u : 0u) << 8 | how.an << 8);
    if (how.sci) {
      prm::set<prm::fte_match_set_misc5::macsec_tag_2>(mask.data() + kMisc5At, ~0u);
      prm::set<prm::fte_match_set_misc5::macsec_tag_3>(mask.data() + kMisc5At, ~0u);
      prm::set<prm::fte_match_set_misc5::macsec_tag_2>(of.data() + kMisc5At,
                                                       prm::load32(macsec_frames::kSci.data()));
      prm::set<prm::fte_match_set_misc5::macsec_tag_3>(of.data() + kMisc5At,
                                                       prm::load32(macsec_frames::kSci.data() + 4));
    }
    const Place first = table(kNicRxTable, 5, kOuter | kMisc5, mask, false);
    objects.push_back(std::make_unique<EthObject>(
        make_modify_header(*dev, {set_field(prm::k::ACTION_IN_FIELD_METADATA_REG_B, kMarker)})));
    FlowRule v;
    v.table = first.table, v.group = first.group, v.value = of;
    v.to = {{FlowDest::kTable, check.table}};
    v.action = kDecrypt | kModify;
    v.modify = objects.back()->number();
    v.crypto = sa, v.crypto_type = FlowRule::kMacsec;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, v)));
    link->steer_to(0);
    arrives.reset();
    FlowRule all;
    all.table = link->table.number(), all.group = link->all.number(), all.index = kCatchAll;
    all.to = {{FlowDest::kTable, first.table}};
    arrives = std::make_unique<EthObject>(make_flow(*dev, all));
  }

  // ---- Frames

  // What arrives of a frame that is sent; empty: nothing.
  Frame send(const Frame& frame) {
    link->rq.post({link->rx_sge(0, 16 << 10)});
    expect_good(link->scq, link->send(frame));
    const auto got = link->rcq.wait(1, 1'000'000);
    if (got.empty()) return {};
    cqe = got[0];
    EXPECT_FALSE(cqe.error()) << cqe.text();
    return link->received(0, cqe.byte_cnt);
  }
  std::uint64_t count(const char* name) { return machine.function(0).counter(name); }

  // ---- ACCESS_ASO

  bool access(std::uint32_t object, unsigned operands, std::uint64_t data, std::uint64_t mask,
              std::uint8_t opmod = prm::kAsoMacsec, std::uint32_t lkey = 0) {
    std::vector<std::uint8_t> wqe(64);
    prm::CtrlSeg ctrl{};
    ctrl.set(prm::WqeOp::kAso, link->sq.next_index(), link->sq.sqn(), 4, prm::kCeAlways, false, opmod);
    ctrl.imm = object;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::AsoCtrlSeg aso{};
    aso.va_h = static_cast<std::uint32_t>(context_mr->start() >> 32);
    aso.va_l = static_cast<std::uint32_t>(context_mr->start()) | prm::kAsoReadEnable;
    aso.lkey = lkey != 0 ? lkey : context_mr->key();
    aso.condition_operands = static_cast<std::uint8_t>(operands);
    aso.bitwise_data = data;
    aso.data_mask = mask;
    std::memcpy(wqe.data() + sizeof ctrl, &aso, sizeof aso);
    link->sq.post_raw(wqe, 1);
    return !link->scq.wait_one().error();
  }
  template <class F>
  std::uint64_t read() const {
    return prm::get<F>(context->data());
  }
  bool event_of(std::uint32_t sa) {
    return machine.run_until([&] { return dev->count_async(prm::EqeType::kObjectChange, sa) != 0; });
  }

  std::unique_ptr<EthObject> dek, arrives;
  std::unique_ptr<Buffer> context;
  std::unique_ptr<Mr> context_mr;
  std::vector<std::unique_ptr<EthObject>> objects, tables, rules;
  std::uint32_t tx_root = 0, sent_counter = 0;
  Completion cqe;
};

How way(bool sci, bool xpn, bool encrypted = true) {
  How how;
  how.sci = sci, how.xpn = xpn, how.encrypted = encrypted;
  return how;
}

TEST_F(MacsecTest, WhatLeavesIsProtectedAndNumbered) {
  for (const bool sci : {true, false}) {
    Sa sa;
    const How how = way(sci, false);
    protect_with(make_sa(sa), how);
    std::uint32_t pn = static_cast<std::uint32_t>(kNumber);
    for (const std::size_t len : {60u, 61u, 1000u, 1480u}) {
      const Frame frame = plain_frame(len);
      EXPECT_EQ(send(frame), sealed(frame, how, pn++)) << len;
    }
    EXPECT_EQ(query_flow_counter(*dev, sent_counter).packets, 4u);
  }
  EXPECT_EQ(count("macsec_encrypted"), 8u);
}

TEST_F(MacsecTest, ExtendedNumbersAndFramesThatAreAuthenticatedOnly) {
  Sa sa;
  sa.xpn = true;
  protect_with(make_sa(sa), way(true, true));
  const Frame frame = plain_frame(500);
  EXPECT_EQ(send(frame), sealed(frame, way(true, true), kNumber));
  EXPECT_EQ(send(frame), sealed(frame, way(true, true), kNumber + 1));
  sa = {};
  sa.encrypt = false;
  protect_with(make_sa(sa), way(true, false, false));
  EXPECT_EQ(send(frame), sealed(frame, way(true, false, false), kNumber));
}

TEST_F(MacsecTest, ATagInFrontOfTheSecTagIsNotCovered) {
  protect_with(make_sa({}), way(true, false), 1);
  Frame frame = plain_frame(200);
  const Frame whole = sealed(frame, way(true, false), kNumber);
  const Bytes vlan{0x81, 0x00, 0x00, 0x07};
  frame.insert(frame.begin() + 12, vlan.begin(), vlan.end());
  Frame want = whole;
  want.insert(want.begin() + 12, vlan.begin(), vlan.end());
  EXPECT_EQ(send(frame), want);
}

TEST_F(MacsecTest, WhatComesIsValidatedAndTheSecTagTakenAway) {
  for (const bool sci : {true, false}) {
    for (const bool xpn : {false, true}) {
      Sa sa;
      sa.send = false, sa.xpn = xpn;
      const How how = way(sci, xpn);
      validate_with(make_sa(sa), how);
      for (const std::size_t len : {60u, 1000u}) {
        const Frame frame = plain_frame(len);
        EXPECT_EQ(send(sealed(frame, how, kNumber)), frame);
        EXPECT_EQ(cqe.raw.sop_drop_qpn >> 24, 0u);
      }
    }
  }
  EXPECT_EQ(count("macsec_decrypted"), 8u);
}

TEST_F(MacsecTest, WhatIsForgedOfAnotherKeyOrNotProtectedIsNotReceived) {
  Sa sa;
  sa.send = false;
  validate_with(make_sa(sa), way(true, false));
  const Frame frame = plain_frame(100);
  EXPECT_TRUE(send(frame).empty());
  Frame forged = sealed(frame, way(true, false), kNumber);
  forged[40] ^= 1;
  EXPECT_TRUE(send(forged).empty());
  How wrong = way(true, false);
  wrong.key[3] ^= 1;
  EXPECT_TRUE(send(sealed(frame, wrong, kNumber)).empty());
  EXPECT_EQ(count("macsec_auth_failed"), 2u);
  Frame version = sealed(frame, way(true, false), kNumber);
  version[14] ^= 0x80;
  EXPECT_TRUE(send(version).empty());
  EXPECT_EQ(count("macsec_bad_tag"), 1u);
  EXPECT_EQ(send(sealed(frame, way(true, false), kNumber)), frame);
}

TEST_F(MacsecTest, WhatHasComeBeforeIsNotReceivedAgain) {
  Sa sa;
  sa.send = false, sa.window = 0, sa.next = 1;
  const std::uint32_t id = make_sa(sa);
  const How how = way(true, false);
  validate_with(id, how);
  const Frame frame = plain_frame(100);
  for (const std::uint32_t pn : {40u, 30u, 35u}) EXPECT_EQ(send(sealed(frame, how, pn)), frame);
  for (const std::uint32_t pn : {40u, 30u, 35u, 8u}) EXPECT_TRUE(send(sealed(frame, how, pn)).empty());
  EXPECT_EQ(count("macsec_replayed"), 4u);
  Frame forged = sealed(frame, how, 10'000);
  forged.back() ^= 1;
  EXPECT_TRUE(send(forged).empty());
  EXPECT_EQ(send(sealed(frame, how, 36)), frame) << "a forged number moves no window";
  ASSERT_TRUE(access(id, 0, 0, 0));
  EXPECT_EQ(read<prm::macsec_aso::mode_parameter>(), 9u);
}

TEST_F(MacsecTest, ANumberIsNeverGivenTwice) {
  Sa sa;
  sa.next = 0xfffffffe;
  const How how = way(true, false);
  protect_with(make_sa(sa), how);
  const Frame frame = plain_frame(100);
  EXPECT_EQ(send(frame), sealed(frame, how, 0xfffffffe));
  EXPECT_EQ(send(frame), sealed(frame, how, 0xffffffff));
  EXPECT_TRUE(send(frame).empty());
  EXPECT_TRUE(send(frame).empty());
  EXPECT_EQ(count("macsec_not_encrypted"), 2u);
}

TEST_F(MacsecTest, HalvesOfExtendedNumbersAreToldAndTheDriverGoesOn) {
  Sa sa;
  sa.xpn = true, sa.overlap = true, sa.next = 0x7'fffffffe;
  const std::uint32_t id = make_sa(sa);
  const How how = way(true, true);
  protect_with(id, how);
  const Frame frame = plain_frame(100);
  for (std::uint64_t pn = sa.next; pn < sa.next + 4; ++pn) EXPECT_EQ(send(frame), sealed(frame, how, pn));
  ASSERT_TRUE(event_of(id));
  EXPECT_EQ(dev->count_async(prm::EqeType::kObjectChange, id), 1u);
  ASSERT_TRUE(access(id, 0, 0, 0));
  EXPECT_EQ(read<prm::macsec_aso::epn_event_arm>(), 0u);
  EXPECT_EQ(read<prm::macsec_aso::mode_parameter>(), 2u);
  modify_sa(id, 3, 8, false).must();
  ASSERT_TRUE(access(id, 0x11, std::uint64_t{1} << 54, std::uint64_t{1} << 54));
  EXPECT_EQ(read<prm::macsec_aso::epn_event_arm>(), 0u) << "what was there before";
  ASSERT_TRUE(access(id, 0, 0, 0));
  EXPECT_EQ(read<prm::macsec_aso::epn_event_arm>(), 1u);
  EXPECT_EQ(send(frame), sealed(frame, how, 0x8'00000002));
  const CommandResult query = of_sa(id, prm::op::QUERY_GENERAL_OBJECT).must();
  const std::uint8_t* o = query.out.data() + Out::bytes;
  using O = prm::macsec_offload_obj;
  EXPECT_EQ(prm::get<O::modify_field_select>(o), 3u);
  EXPECT_EQ(prm::get<O::epn_msb>(o), 8u);
  EXPECT_EQ(prm::get<O::epn_overlap>(o), 0u);
  EXPECT_EQ(prm::get<O::dekn>(o), dek->number());
  EXPECT_EQ(prm::get<O::macsec_aso::mode_parameter>(o), 3u);
}

TEST_F(MacsecTest, WhatIsInUseStays) {
  breaks({"destroy-busy"});
  const std::uint32_t sa = make_sa({});
  EXPECT_FALSE(dek->destroy().ok());
  protect_with(sa, way(true, false));
  EXPECT_FALSE(of_sa(sa).ok());
}

TEST_F(MacsecTest, WhatIsNotOffered) {
  breaks({"cap-not-offered", "object-unknown", "object-reference", "flow-action", "modify-mask"});
  const auto ipsec = make_dek(prm::kKeyPurposeIpsec, macsec_frames::kKey);
  const auto refused = [&](const Sa& sa) { return !try_sa(sa).ok(); };
  Sa wrong;
  wrong.dek = ipsec->number();
  EXPECT_TRUE(refused(wrong)) << "a key of IPsec";
  wrong = {};
  wrong.dek = dek->number() + 100;
  EXPECT_TRUE(refused(wrong)) << "no key";
  wrong = {};
  wrong.pd = link->pd.pdn() + 100;
  EXPECT_TRUE(refused(wrong)) << "no PD";
  wrong = {};
  wrong.offset = 1;
  EXPECT_TRUE(refused(wrong)) << "encrypted from byte 30 on";
  wrong = {};
  wrong.valid = false;
  EXPECT_TRUE(refused(wrong));
  wrong = {};
  wrong.reg = 4;
  EXPECT_TRUE(refused(wrong));
  const std::uint32_t sa = make_sa({});
  EXPECT_FALSE(modify_sa(sa, 4, 0, false).ok());
  EXPECT_FALSE(modify_sa(sa + 1, 3, 0, false).ok());
  EXPECT_FALSE(of_sa(sa + 1).ok());
  EXPECT_FALSE(of_sa(sa + 1, prm::op::QUERY_GENERAL_OBJECT).ok());
  const Place p = table(kNicTxTable, 0, 0, {}, false);
  FlowRule r;
  r.table = p.table, r.group = p.group, r.type = kNicTxTable, r.allow = true;
  r.action = kEncrypt;
  r.crypto = sa + 1, r.crypto_type = FlowRule::kMacsec;
  EXPECT_FALSE(try_flow(*dev, r).ok()) << "no such object";
  r.crypto = sa, r.crypto_type = FlowRule::kIpsec;
  EXPECT_FALSE(try_flow(*dev, r).ok()) << "no object of IPsec";
}

TEST_F(MacsecTest, AccessToNoObject) {
  breaks({"wqe-segment"});
  const std::uint32_t sa = make_sa({});
  EXPECT_TRUE(access(sa, 0, 0, 0));
  EXPECT_FALSE(access(sa + 1, 0, 0, 0));
}

TEST_F(MacsecTest, AccessFromAnotherPd) {
  breaks({"wqe-segment"});
  const Pd other(*dev);
  Sa sa;
  sa.pd = other.pdn();
  const auto id = static_cast<std::uint32_t>(try_sa(sa).must().get<Out::obj_id>());
  EXPECT_FALSE(access(id, 0, 0, 0));
  EXPECT_TRUE(of_sa(id).ok());
}

TEST_F(MacsecTest, AccessOfAnotherType) {
  breaks({"wqe-segment"});
  EXPECT_FALSE(access(make_sa({}), 0, 0, 0, prm::kAsoIpsec));
}

TEST_F(MacsecTest, ABoardThatMayNotEncryptOffersNothing) {
  breaks({"cap-not-offered", "general-object"});
  Device plain(machine.function(1));
  plain.probe();
  EXPECT_FALSE(try_sa({}, &plain).ok());
  plain.teardown();
}

}  // namespace
}  // namespace hcasim::bare
