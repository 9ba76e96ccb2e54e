// SPDX-License-Identifier: BSD-3-Clause
// IPsec's encryption by flow entries, with objects and WQEs as the kernel's driver makes them. What is right
// is what nettle makes of whole packets (esp_packets.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "crypto_fixture.h"
#include "driver/bare/devx.h"
#include "esp_packets.h"
#include "prm/crypto.h"

namespace hcasim::bare {
namespace {

using esp_packets::Bytes;
using esp_packets::kSpi;
using prm::CqeSyndrome;
using prm::EthSeg;

constexpr unsigned kModify = 0x40, kDecrypt = 0x1000, kEncrypt = 0x2000;
constexpr std::size_t kEth = 14, kIpv4 = 20, kIpv6 = 40, kEsp = esp_packets::kHead;
constexpr std::uint8_t kTcpProtocol = 6, kIpipProtocol = 4, kIpv6Protocol = 41, kEspProtocol = 50;
constexpr std::uint64_t kNumber = 0x7'fffffffe;  // so that it wraps
constexpr std::uint32_t kMarker = 1u << 31;

Bytes part(const Bytes& b, std::size_t from, std::size_t to) {
  return {b.begin() + static_cast<std::ptrdiff_t>(from), b.begin() + static_cast<std::ptrdiff_t>(to)};
}
std::size_t ip_header(const Frame& f) { return f[12] == 0x86 ? kIpv6 : kIpv4; }
std::size_t ip_end(const Frame& f) {
  return f[12] == 0x86 ? kEth + kIpv6 + prm::load16(f.data() + kEth + 4) : kEth + prm::load16(f.data() + 16);
}
void set_ip(Frame& f, std::size_t bytes_behind, std::uint8_t protocol) {
  if (f[12] == 0x86) {
    prm::store16(f.data() + kEth + 4, static_cast<std::uint32_t>(bytes_behind));
    f[kEth + 6] = protocol;
  } else {
    prm::store16(f.data() + kEth + 2, static_cast<std::uint32_t>(kIpv4 + bytes_behind));
    f[kEth + 9] = protocol;
  }
}

class IpsecTest : public CryptoTest {
 protected:
  void SetUp() override {
    link = std::make_unique<EthLink>(*dev);
    sq = std::make_unique<Sq>(*dev, link->pd, link->scq, link->tis.number(), 7, true);
    dek = make_dek(prm::kKeyPurposeIpsec, esp_packets::kKey);
  }
  void TearDown() override {
    link->steer_to(0);
    for (auto* list : {&rules, &objects, &tables})
      while (!list->empty()) list->pop_back();
    dek.reset();
    sq.reset();
    leave();
  }

  // ---- Objects

  struct Sa {
    bool esn = false, overlap = false, full = false;
    std::uint32_t msb = 0, dek = 0;  // 0: the test's
    unsigned icv = 0;
  };
  CommandResult try_sa(const Sa& sa, Device* by = nullptr) {
    using O = prm::create_ipsec_obj_in::ipsec_object;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_ipsec_obj_in::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_IPSEC);
    in.set<O::esn_en>(sa.esn).set<O::esn_overlap>(sa.overlap).set<O::esn_msb>(sa.msb);
    in.set<O::full_offload>(sa.full).set<O::icv_length>(sa.icv);
    in.set<O::dekn>(sa.dek != 0 ? sa.dek : dek->number());
    std::copy(esp_packets::kSalt.begin(), esp_packets::kSalt.end(), in.data() + O::salt::bit_off / 8);
    std::copy(esp_packets::kImplicitIv.begin(), esp_packets::kImplicitIv.end(),
              in.data() + O::implicit_iv::bit_off / 8);
    return (by != nullptr ? *by : *dev).exec(in, Out::bytes);
  }
  std::uint32_t make_sa(const Sa& sa) {
    const auto id = static_cast<std::uint32_t>(try_sa(sa).must().get<Out::obj_id>());
    objects.push_back(std::make_unique<EthObject>(*dev, id, [this, id] { return of_sa(id); }));
    return id;
  }
  CommandResult of_sa(std::uint32_t id, std::uint16_t opcode = prm::op::DESTROY_GENERAL_OBJECT) {
    return general(opcode, prm::k::GENERAL_OBJECT_TYPES_IPSEC, id);
  }
  CommandResult modify_sa(std::uint32_t id, std::uint64_t fields, std::uint32_t msb, bool overlap) {
    using O = prm::modify_ipsec_obj_in::ipsec_object;
    Mailbox in(prm::op::MODIFY_GENERAL_OBJECT, prm::modify_ipsec_obj_in::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_IPSEC).set<In::obj_id>(id);
    in.set<O::modify_field_select>(fields).set<O::esn_msb>(msb).set<O::esn_overlap>(overlap);
    return dev->exec(in, Out::bytes);
  }

  // ---- Rules

  void table(unsigned type, bool by_spi) {
    MatchParam mask{};
    if (by_spi) prm::set<prm::fte_match_set_misc::outer_esp_spi>(mask.data() + 64, ~0u);
    tables.push_back(std::make_unique<EthObject>(make_flow_table(*dev, 4, 0, type)));
    tables.push_back(std::make_unique<EthObject>(
        make_flow_group(*dev, tables.back()->number(), 0, 7, by_spi ? 2 : 0, mask, type)));
  }
  FlowRule rule(unsigned type, bool by_spi) const {
    FlowRule r;
    r.table = tables[tables.size() - 2]->number(), r.group = tables.back()->number(), r.type = type;
    if (by_spi) prm::set<prm::fte_match_set_misc::outer_esp_spi>(r.value.data() + 64, kSpi);
    return r;
  }
  void encrypt_with(std::uint32_t sa, bool by_spi = true) {
    table(kNicTxTable, by_spi);
    FlowRule r = rule(kNicTxTable, by_spi);
    r.action = kEncrypt;
    r.allow = true;
    r.crypto = sa;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
    set_flow_root(*dev, r.table, kNicTxTable).must();
  }
  // As the driver's two tables do it in two steps: marker and number, then the syndrome.
  void decrypt_with(std::uint32_t sa) {
    using namespace prm::k;
    objects.push_back(std::make_unique<EthObject>(make_modify_header(
        *dev, {set_field(ACTION_IN_FIELD_METADATA_REG_B, sa | kMarker),
               copy_field(ACTION_IN_FIELD_IPSEC_SYNDROME, ACTION_IN_FIELD_METADATA_REG_B, 7, 0, 24)})));
    link->steer_to(0);
    FlowRule r;
    r.table = link->table.number(), r.group = link->all.number(), r.index = kCatchAll;
    r.to = {{FlowDest::kTir, link->tir.number()}};
    r.action = kDecrypt | kModify;
    r.modify = objects.back()->number();
    r.crypto = sa;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
  }

  // ---- Frames

  // The frame's IP packet with ESP's header between its header and what it carries; the trailer is to come.
  static Frame transport(const Frame& inside, std::uint64_t number = kNumber) {
    const std::size_t l4 = kEth + ip_header(inside);
    Frame f = part(inside, 0, l4);
    const Bytes head = esp_packets::head(number);
    f.insert(f.end(), head.begin(), head.end());
    f.insert(f.end(), inside.begin() + static_cast<std::ptrdiff_t>(l4), inside.end());
    set_ip(f, f.size() - l4, kEspProtocol);
    return f;
  }
  static std::uint8_t protocol(const Frame& f) { return f[12] == 0x86 ? f[kEth + 6] : f[kEth + 9]; }
  static EthWr::Given transport_headers(const Frame& inside) {
    EthWr::Given g;
    g.outer_l3 = kEth;
    g.outer_l4 = static_cast<unsigned>(kEth + ip_header(inside) + kEsp);
    if (inside[12] == 0x86) g.flags |= EthSeg::kOuterIpv6;
    if (protocol(inside) != kTcpProtocol) g.flags |= EthSeg::kOuterUdp;
    return g;
  }
  Frame arrives() {
    const auto got = link->rcq.wait(1, 1'000'000);
    if (got.empty()) return {};
    cqe = got[0];
    EXPECT_FALSE(cqe.error()) << cqe.text();
    return link->received(0, cqe.byte_cnt);
  }
  Frame send(const Frame& frame, const EthWr::Given& given, std::uint8_t cs_flags, const Bytes& trailer) {
    link->rq.post({link->rx_sge(0, 16 << 10)});
    link->put(0, frame);
    EthWr wr;
    wr.given = given;
    wr.cs_flags = cs_flags;
    wr.trailer = trailer;
    wr.sges = {link->tx_sge(0, static_cast<std::uint32_t>(frame.size()))};
    sq->post(wr);
    const Completion c = link->scq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
    return arrives();
  }
  // A packet of another, sealed as it is given.
  Frame receive(const Bytes& esp, std::uint8_t tos = 0) {
    L4 l4;
    l4.payload = 0;
    Frame f = part(l4_frame(l4), 0, kEth + kIpv4);
    f.insert(f.end(), esp.begin(), esp.end());
    set_ip(f, esp.size(), kEspProtocol);
    f[15] = tos;
    return send(f, {}, EthSeg::kL3Csum, {});
  }
  static Bytes esp_of(const Frame& f) { return part(f, kEth + ip_header(f), ip_end(f)); }
  // The frame that it would be without ESP.
  static Frame without_esp(const Frame& f, std::uint64_t number, bool esn, std::uint8_t next) {
    const Bytes clear = esp_packets::opened(esp_of(f), number, esn);
    if (clear.size() < 2) return {};
    EXPECT_EQ(clear.back(), next);
    Frame out = part(f, 0, kEth + ip_header(f));
    const std::size_t padding = clear[clear.size() - 2];
    out.insert(out.end(), clear.begin(), clear.end() - 2 - static_cast<std::ptrdiff_t>(padding));
    set_ip(out, out.size() - kEth - ip_header(f), next);
    return out;
  }
  static bool ip_sum_right(const Frame& f) {
    return f[12] == 0x86 || plain_sum(f, kEth, kEth + kIpv4) == 0xffff;
  }

  std::unique_ptr<Sq> sq;
  std::unique_ptr<EthObject> dek;
  std::vector<std::unique_ptr<EthObject>> objects, tables, rules;
  Completion cqe;
};

TEST_F(IpsecTest, TransportOfTcpAndUdpLeavesEncryptedWithItsChecksumsInside) {
  encrypt_with(make_sa({}));
  for (const bool v6 : {false, true}) {
    for (const bool udp : {false, true}) {
      for (const std::size_t payload : {3u, 100u, 1399u}) {
        L4 l4;
        l4.v6 = v6, l4.udp = udp, l4.payload = payload;
        const Frame inside = l4_frame(l4);
        const Frame frame = transport(inside);
        const std::size_t len = inside.size() - kEth - ip_header(inside);
        const Frame got = send(frame, transport_headers(inside), EthSeg::kL3Csum | EthSeg::kL4Csum,
                               esp_packets::trailer(len, protocol(inside)));
        ASSERT_FALSE(got.empty());
        EXPECT_TRUE(ip_sum_right(got));
        EXPECT_EQ(protocol(got), kEspProtocol);
        const Frame clear = without_esp(got, kNumber, false, protocol(inside));
        ASSERT_EQ(clear.size(), inside.size()) << "it is not of the key";
        EXPECT_TRUE(l4_sum_right(clear));
        EXPECT_EQ(part(clear, clear.size() - payload, clear.size()),
                  part(inside, inside.size() - payload, inside.size()));
        const Bytes esp = esp_of(got);
        for (std::size_t i = 0; i < 8; ++i)
          EXPECT_EQ(esp[8 + i], frame[kEth + ip_header(inside) + 8 + i] ^ esp_packets::kImplicitIv[i]);
      }
    }
  }
  EXPECT_EQ(machine.function(0).counter("ipsec_encrypted"), 12u);
}

// inside: a frame, whose IP packet goes into a tunnel over IPv4; l4: where its TCP begins, or 0.
Frame tunnel(const Frame& inside, EthWr::Given& given) {
  Frame f = part(l4_frame(L4{}), 0, kEth + kIpv4);
  const Bytes head = esp_packets::head(kNumber), packet = part(inside, kEth, inside.size());
  f.insert(f.end(), head.begin(), head.end());
  f.insert(f.end(), packet.begin(), packet.end());
  set_ip(f, kEsp + packet.size(), kEspProtocol);
  given.outer_l3 = kEth;
  given.inner_l3 = kEth + kIpv4 + kEsp;
  given.inner_l4 = static_cast<unsigned>(given.inner_l3 + ip_header(inside));
  if (inside[12] == 0x86) given.flags = EthSeg::kInnerIpv6;
  return f;
}
constexpr std::uint8_t kInnerSums = EthSeg::kL3Csum | EthSeg::kL3InnerCsum | EthSeg::kL4InnerCsum;

TEST_F(IpsecTest, ATunnelLeavesEncryptedWithTheChecksumsOfItsInside) {
  encrypt_with(make_sa({}));
  for (const bool v6 : {false, true}) {
    L4 l4;
    l4.v6 = v6;
    const Frame inside = l4_frame(l4);
    EthWr::Given given;
    const Frame f = tunnel(inside, given);
    const std::uint8_t next = v6 ? kIpv6Protocol : kIpipProtocol;
    const Frame got = send(f, given, kInnerSums, esp_packets::trailer(inside.size() - kEth, next));
    ASSERT_FALSE(got.empty());
    EXPECT_TRUE(ip_sum_right(got));
    const Frame clear = without_esp(got, kNumber, false, next);
    ASSERT_EQ(clear.size(), kIpv4 + inside.size());
    Frame again = part(inside, 0, kEth);
    again.insert(again.end(), clear.begin() + kEth + kIpv4, clear.end());
    EXPECT_TRUE(ip_sum_right(again));
    EXPECT_TRUE(l4_sum_right(again));
  }
}

// As Linux gives it for what is neither TCP nor UDP in VXLAN: an L4 header far behind the frame, without its
// checksum.
TEST_F(IpsecTest, AnL4HeaderThatNothingIsDoneWithMayBeAnywhere) {
  encrypt_with(make_sa({}));
  L4 l4;
  l4.udp = true;
  const Frame inside = l4_frame(l4);
  EthWr::Given given;
  given.outer_l3 = kEth;
  given.outer_l4 = 498;
  given.flags = EthSeg::kOuterUdp;
  const Frame got = send(transport(inside), given, EthSeg::kL3Csum,
                         esp_packets::trailer(inside.size() - kEth - kIpv4, protocol(inside)));
  ASSERT_FALSE(got.empty());
  EXPECT_TRUE(ip_sum_right(got));
  EXPECT_EQ(without_esp(got, kNumber, false, protocol(inside)).size(), inside.size());
}

TEST_F(IpsecTest, AFragmentInATunnelHasNoChecksumOfItsOwn) {
  encrypt_with(make_sa({}));
  Frame inside = l4_frame(L4{});
  inside[20] = 0x20;  // more fragments
  EthWr::Given given;
  const Frame f = tunnel(inside, given);
  const Frame got = send(f, given, kInnerSums, esp_packets::trailer(inside.size() - kEth, kIpipProtocol));
  ASSERT_FALSE(got.empty());
  const Frame clear = without_esp(got, kNumber, false, kIpipProtocol);
  ASSERT_EQ(clear.size(), kIpv4 + inside.size());
  EXPECT_EQ(part(clear, kEth + 2 * kIpv4, clear.size()), part(inside, kEth + kIpv4, inside.size()));
}

TEST_F(IpsecTest, ALargeSendNumbersItsSegments) {
  Sa sa;
  sa.esn = true;
  encrypt_with(make_sa(sa));
  constexpr std::size_t kTcp = 20, kMss = 1000, kPayload = 3700, kCount = 4;
  L4 l4;
  l4.payload = kPayload;
  const Frame inside = l4_frame(l4), whole = transport(inside);
  constexpr std::size_t kHeaders = kEth + kIpv4 + kEsp + kTcp;
  link->put(0, whole);
  for (std::size_t i = 0; i < kCount; ++i) link->rq.post({link->rx_sge(i * 2048, 2048)});
  EthWr wr;
  wr.op = WqeOp::kLso;
  wr.headers = part(whole, 0, kHeaders);
  wr.mss = kMss;
  wr.given = transport_headers(inside);
  wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
  wr.trailer = esp_packets::trailer(kTcp + kMss, kTcpProtocol);
  wr.sges = {link->tx_sge(kHeaders, kPayload)};
  sq->post(wr);
  EXPECT_FALSE(link->scq.wait_one().error());
  const auto done = link->rcq.wait(kCount);
  ASSERT_EQ(done.size(), kCount);
  Bytes payload;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Frame got = link->received(i * 2048, done[i].byte_cnt);
    EXPECT_TRUE(ip_sum_right(got));
    const Bytes esp = esp_of(got);
    EXPECT_EQ(prm::load32(esp.data() + 4), static_cast<std::uint32_t>(kNumber + i));
    const Frame clear = without_esp(got, kNumber + i, true, kTcpProtocol);
    ASSERT_GT(clear.size(), kEth + kIpv4 + kTcp) << "segment " << i << " is not of the key and its number";
    EXPECT_TRUE(l4_sum_right(clear));
    EXPECT_EQ(prm::load32(clear.data() + 38), 0xfffffff0u + static_cast<std::uint32_t>(i * kMss));
    payload.insert(payload.end(), clear.begin() + kEth + kIpv4 + kTcp, clear.end());
  }
  EXPECT_EQ(payload, part(inside, inside.size() - kPayload, inside.size()));
}

TEST_F(IpsecTest, WhatComesIsDecryptedInPlaceAndMarked) {
  const std::uint32_t sa = make_sa({});
  decrypt_with(sa);
  const Bytes plain = esp_packets::packet(kNumber, Bytes(333, 0x44), kTcpProtocol);
  const Bytes wire = esp_packets::sealed(plain, kNumber, false);
  const Bytes got = esp_of(receive(wire));
  ASSERT_EQ(got.size(), wire.size()) << "header, trailer and tag stay";
  EXPECT_EQ(part(got, kEsp, got.size() - 16), part(plain, kEsp, plain.size() - 16));
  EXPECT_EQ(part(got, 0, kEsp), part(wire, 0, kEsp));
  EXPECT_EQ(cqe.imm, sa | kMarker);
  EXPECT_EQ(machine.function(0).counter("ipsec_decrypted"), 1u);
}

TEST_F(IpsecTest, WhatIsForgedIsMarkedAndLeftAsItCame) {
  const std::uint32_t sa = make_sa({});
  decrypt_with(sa);
  Bytes wire = esp_packets::sealed(esp_packets::packet(kNumber, Bytes(100, 7), kTcpProtocol), kNumber, false);
  wire[40] ^= 1;
  EXPECT_EQ(esp_of(receive(wire)), wire);
  EXPECT_EQ(cqe.imm, sa | kMarker | 1u << 24);
  wire.resize(kEsp + 17);
  EXPECT_EQ(esp_of(receive(wire)), wire);
  EXPECT_EQ(cqe.imm, sa | kMarker | 2u << 24) << "no trailer";
  EXPECT_EQ(machine.function(0).counter("ipsec_auth_failed"), 1u);
  EXPECT_EQ(machine.function(0).counter("ipsec_bad_trailer"), 1u);
}

TEST_F(IpsecTest, TheWindowMovesOnByTheDriversCommand) {
  Sa with;
  with.esn = true, with.overlap = true, with.msb = 7;
  const std::uint32_t sa = make_sa(with);
  decrypt_with(sa);
  const auto syndrome = [&](std::uint64_t number) {
    receive(esp_packets::sealed(esp_packets::packet(number, Bytes(10, 7), kTcpProtocol), number, true));
    return cqe.imm >> 24 & 0x3f;
  };
  EXPECT_EQ(syndrome(0x7'fffffff0), 0u);
  EXPECT_EQ(syndrome(0x8'00000001), 0u);
  EXPECT_EQ(syndrome(0x8'80000001), 1u) << "that far ahead it is not expected";
  const auto query = of_sa(sa, prm::op::QUERY_GENERAL_OBJECT).must();
  const std::uint8_t* o = query.out.data() + Out::bytes;
  EXPECT_EQ(prm::get<prm::ipsec_obj::modify_field_select>(o), 3u);
  EXPECT_EQ(prm::get<prm::ipsec_obj::esn_msb>(o), 7u);
  EXPECT_EQ(prm::get<prm::ipsec_obj::esn_overlap>(o), 1u);
  EXPECT_EQ(prm::get<prm::ipsec_obj::dekn>(o), dek->number());
  EXPECT_EQ(prm::get<prm::ipsec_obj::salt>(o), 0u) << "it is never told";
  modify_sa(sa, 3, 8, false).must();
  EXPECT_EQ(syndrome(0x8'80000001), 0u);
  modify_sa(sa, 1, 99, true).must();
  EXPECT_EQ(syndrome(0x9'00000001), 0u) << "only what was selected";
}

TEST_F(IpsecTest, WhatIsNotToBeEncryptedDoesNotLeaveAtAll) {
  encrypt_with(make_sa({}), false);
  link->rq.post({link->rx_sge(0, 2048)});
  expect_good(link->scq, link->send(l4_frame({})));
  EXPECT_TRUE(link->rcq.wait(1, 1'000'000).empty());
  EXPECT_EQ(machine.function(0).counter("ipsec_not_encrypted"), 1u);
}

TEST_F(IpsecTest, AUsersEntryNamesNoOtherSa) {
  breaks({"devx-owner"});
  const std::uint32_t sa = make_sa({});
  Uctx user(*dev);
  std::unique_ptr<Uctx::As> as = std::make_unique<Uctx::As>(*dev, user);
  table(kNicTxTable, false);
  FlowRule r = rule(kNicTxTable, false);
  r.action = kEncrypt;
  r.allow = true;
  r.crypto = sa;
  EXPECT_EQ(try_flow(*dev, r).status, prm::CmdStatus::kBadRes);
  as.reset();
  rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
  for (auto* list : {&rules, &tables})
    while (!list->empty()) list->pop_back();
}

TEST_F(IpsecTest, WhatIsInUseStays) {
  breaks({"destroy-busy"});
  const std::uint32_t sa = make_sa({});
  EXPECT_FALSE(dek->destroy().ok());
  decrypt_with(sa);
  EXPECT_FALSE(of_sa(sa).ok());
}

TEST_F(IpsecTest, WhatIsNotOffered) {
  breaks({"cap-not-offered", "object-unknown", "object-reference", "modify-header", "flow-action",
          "modify-mask"});
  const auto tls = make_dek(prm::kKeyPurposeTls, esp_packets::kKey);
  Sa wrong;
  wrong.dek = tls->number();
  EXPECT_FALSE(try_sa(wrong).ok()) << "a key of TLS";
  wrong.dek = dek->number() + 100;
  EXPECT_FALSE(try_sa(wrong).ok()) << "no key";
  wrong = {};
  wrong.icv = 1;
  EXPECT_FALSE(try_sa(wrong).ok()) << "a shorter tag";
  const std::uint32_t sa = make_sa({});
  EXPECT_FALSE(modify_sa(sa, 4, 0, false).ok());
  EXPECT_FALSE(modify_sa(sa + 1, 3, 0, false).ok());
  EXPECT_FALSE(of_sa(sa + 1).ok());
  EXPECT_FALSE(of_sa(sa + 1, prm::op::QUERY_GENERAL_OBJECT).ok());
  table(kNicRxTable, false);
  FlowRule r = rule(kNicRxTable, false);
  r.to = {{FlowDest::kTir, link->tir.number()}};
  r.action = kEncrypt;
  r.crypto = sa;
  EXPECT_FALSE(try_flow(*dev, r).ok()) << "nothing is encrypted that comes";
  r.action = kDecrypt;
  r.crypto = sa + 1;
  EXPECT_FALSE(try_flow(*dev, r).ok()) << "no such object";
  EXPECT_FALSE(try_modify_header(*dev, {set_field(prm::k::ACTION_IN_FIELD_IPSEC_SYNDROME, 0, 0, 8)}).ok());
}

TEST_F(IpsecTest, ABoardThatMayNotEncryptOffersNothing) {
  breaks({"cap-not-offered", "general-object"});
  Device plain(machine.function(1));
  plain.probe();
  EXPECT_FALSE(try_sa({}, &plain).ok());
  plain.teardown();
}

class WrongTrailer : public IpsecTest {
 protected:
  WrongTrailer() { breaks({"wqe-segment", "wqe-headers"}); }
  // A WQE of 64 bytes: control, Ethernet, perhaps an inline segment of 4 bytes, a frame.
  void refused(std::uint16_t flags, bool trailer, const Frame& frame) {
    link->put(0, frame);
    std::vector<std::uint8_t> wqe(trailer ? 64 : 48);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kSend, 0, sq->sqn(), static_cast<unsigned>(wqe.size() / 16), prm::kCeAlways);
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::EthSeg eth{};
    eth.inline_hdr_sz = flags;
    std::memcpy(wqe.data() + 16, &eth, sizeof eth);
    if (trailer) {
      prm::InlineSeg seg;
      seg.byte_count = prm::InlineSeg::kFlag | 4u;
      std::memcpy(wqe.data() + 32, &seg, sizeof seg);
    }
    prm::DataSeg data;
    data.byte_count = static_cast<std::uint32_t>(frame.size());
    data.lkey = link->txr.key();
    data.addr = link->txr.start();
    std::memcpy(wqe.data() + wqe.size() - 16, &data, sizeof data);
    sq->post_raw(wqe, 1);
    expect_error(link->scq.wait_one(), CqeSyndrome::kLocalQpOp);
  }
};

TEST_F(WrongTrailer, OfAnInnerPacket) { refused(EthSeg::kInsertTrailer | 3 << 10, true, l4_frame({})); }
TEST_F(WrongTrailer, Missing) {
  refused(EthSeg::kInsertTrailer | EthSeg::kTrailerOfOuterIp, false, l4_frame({}));
}
TEST_F(WrongTrailer, BehindNoIpPacket) {
  refused(EthSeg::kInsertTrailer | EthSeg::kTrailerOfOuterIp, true, plain_frame(100));
}

}  // namespace
}  // namespace hcasim::bare
