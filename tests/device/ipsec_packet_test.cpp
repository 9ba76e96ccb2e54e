// SPDX-License-Identifier: BSD-3-Clause
// IPsec packet offload, with objects and tables as the kernel's driver makes them: the card makes ESP of
// packets and packets of ESP. What is right is what nettle makes of whole packets (esp_packets.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "crypto_fixture.h"
#include "esp_packets.h"
#include "prm/crypto.h"

namespace hcasim::bare {
namespace {

using esp_packets::Bytes;

constexpr unsigned kReformat = 0x10, kDecrypt = 0x1000, kEncrypt = 0x2000;
constexpr unsigned kMisc2 = 8;
constexpr std::size_t kMisc2At = 3 * 64, kEth = 14, kIpv4 = 20, kIpv6 = 40, kUdp = 8;
constexpr std::uint8_t kTcpProtocol = 6, kUdpProtocol = 17, kIpipProtocol = 4, kIpv6Protocol = 41,
                       kEspProtocol = 50;
constexpr std::uint16_t kEspPort = 4500;

Bytes part(const Bytes& b, std::size_t from, std::size_t to) {
  return {b.begin() + static_cast<std::ptrdiff_t>(from), b.begin() + static_cast<std::ptrdiff_t>(to)};
}
bool is_v6(const Frame& f) { return f[12] == 0x86; }
std::size_t ip_header(const Frame& f) { return is_v6(f) ? kIpv6 : kIpv4; }
std::uint8_t protocol(const Frame& f) { return is_v6(f) ? f[kEth + 6] : f[kEth + 9]; }
// Lengths, the protocol and the checksum of a frame whose IP packet ends with it.
void finish(Frame& f, std::uint8_t of) {
  const std::size_t behind = f.size() - kEth - ip_header(f);
  if (is_v6(f)) {
    prm::store16(f.data() + kEth + 4, static_cast<std::uint32_t>(behind));
    f[kEth + 6] = of;
    return;
  }
  prm::store16(f.data() + kEth + 2, static_cast<std::uint32_t>(kIpv4 + behind));
  f[kEth + 9] = of;
  prm::store16(f.data() + kEth + 10, 0);
  prm::store16(f.data() + kEth + 10, ~plain_sum(f, kEth, kEth + kIpv4) & 0xffffu);
}
Frame inside(bool v6, bool udp, std::size_t payload) {
  L4 l4;
  l4.v6 = v6, l4.udp = udp, l4.payload = payload;
  Frame f = l4_frame(l4);
  finish(f, protocol(f));
  return f;
}

class IpsecPacketTest : public CryptoTest {
 protected:
  void SetUp() override {
    link = std::make_unique<EthLink>(*dev);
    dek = make_dek(prm::kKeyPurposeIpsec, esp_packets::kKey);
  }
  void TearDown() override {
    link->steer_to(0);
    arrives.reset();
    if (tx_root != 0) set_flow_root(*dev, tx_root, kNicTxTable);
    for (auto* list : {&rules, &objects})
      while (!list->empty()) list->pop_back();
    while (!tables.empty()) tables.pop_back();
    dek.reset();
    leave();
  }

  struct Sa {
    bool send = true, esn = false, valid = true;
    std::uint64_t next = 1;
    std::uint32_t soft = 0, hard = 0, pd = 0;  // packets; 0: no limit. pd: 0: the test's
  };
  CommandResult try_sa(const Sa& sa) {
    using O = prm::create_ipsec_obj_in::ipsec_object;
    using A = O::ipsec_aso;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_ipsec_obj_in::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_IPSEC);
    in.set<O::full_offload>(1).set<O::dekn>(dek->number()).set<O::aso_return_reg>(2);
    in.set<O::esn_en>(sa.esn).set<O::esn_msb>(sa.next >> 32);
    in.set<O::ipsec_aso_access_pd>(sa.pd != 0 ? sa.pd : link->pd.pdn());
    std::copy(esp_packets::kSalt.begin(), esp_packets::kSalt.end(), in.data() + O::salt::bit_off / 8);
    std::copy(esp_packets::kImplicitIv.begin(), esp_packets::kImplicitIv.end(),
              in.data() + O::implicit_iv::bit_off / 8);
    in.set<A::valid>(sa.valid).set<A::mode_parameter>(sa.next & 0xffffffff).set<A::esn_event_arm>(sa.esn);
    in.set<A::mode>(sa.send ? prm::k::IPSEC_ASO_INC_SN : prm::k::IPSEC_ASO_REPLAY_PROTECTION);
    in.set<A::remove_flow_enable>(sa.hard != 0).set<A::hard_lft_arm>(sa.hard != 0);
    in.set<A::remove_flow_pkt_cnt>(sa.hard);
    in.set<A::soft_lft_arm>(sa.soft != 0).set<A::remove_flow_soft_lft>(sa.soft);
    return dev->exec(in, Out::bytes);
  }
  std::uint32_t make_sa(const Sa& sa) {
    const auto id = static_cast<std::uint32_t>(try_sa(sa).must().get<Out::obj_id>());
    objects.push_back(std::make_unique<EthObject>(*dev, id, [this, id] {
      return general(prm::op::DESTROY_GENERAL_OBJECT, prm::k::GENERAL_OBJECT_TYPES_IPSEC, id);
    }));
    return id;
  }
  struct Place {
    std::uint32_t table, group;
  };
  Place table(unsigned type, unsigned level, unsigned criteria, const MatchParam& mask, bool lengths) {
    tables.push_back(std::make_unique<EthObject>(make_flow_table(*dev, 4, level, type, lengths)));
    const std::uint32_t t = tables.back()->number();
    tables.push_back(std::make_unique<EthObject>(make_flow_group(*dev, t, 0, 7, criteria, mask, type)));
    return {t, tables.back()->number()};
  }
  std::uint32_t reformat(unsigned type, const Bytes& data) {
    Reformat r;
    r.type = type, r.data = data;
    r.anchor = type >= prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT &&
                       type <= prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP
                   ? 0
                   : 4;
    objects.push_back(std::make_unique<EthObject>(make_reformat(*dev, r)));
    return objects.back()->number();
  }
  void encrypt_with(std::uint32_t sa, unsigned type, const Bytes& header) {
    const Place p = table(kNicTxTable, 0, 0, {}, true);
    FlowRule r;
    r.table = p.table, r.group = p.group, r.type = kNicTxTable, r.allow = true;
    r.action = kEncrypt | kReformat;
    r.reformat = reformat(type, header);
    r.crypto = sa;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
    set_flow_root(*dev, p.table, kNicTxTable).must();
    tx_root = p.table;
  }
  // What decrypts, and what receives what is good.
  void decrypt_with(std::uint32_t sa, unsigned type, const Bytes& header = {}) {
    MatchParam good{};
    prm::set<prm::fte_match_set_misc2::ipsec_syndrome>(good.data() + kMisc2At, 0xff);
    prm::set<prm::fte_match_set_misc2::metadata_reg_c_4>(good.data() + kMisc2At, ~0u);
    const Place status = table(kNicRxTable, 10, kMisc2, good, false);
    FlowRule r;
    r.table = status.table, r.group = status.group;
    r.to = {{FlowDest::kTir, link->tir.number()}};
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
    const Place first = table(kNicRxTable, 5, 0, {}, true);
    FlowRule d;
    d.table = first.table, d.group = first.group;
    d.to = {{FlowDest::kTable, status.table}};
    d.action = kDecrypt | kReformat;
    d.reformat = reformat(type, header);
    d.crypto = sa;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, d)));
    link->steer_to(0);
    arrives.reset();
    FlowRule all;
    all.table = link->table.number(), all.group = link->all.number(), all.index = kCatchAll;
    all.to = {{FlowDest::kTable, first.table}};
    arrives = std::make_unique<EthObject>(make_flow(*dev, all));
  }
  // SPI alone, as the driver gives it.
  static Bytes spi() {
    Bytes h(esp_packets::kHead);
    prm::store32(h.data(), esp_packets::kSpi);
    return h;
  }
  static Bytes udp_spi() {
    Bytes h(kUdp);
    prm::store16(h.data(), kEspPort);
    prm::store16(h.data() + 2, kEspPort);
    const Bytes s = spi();
    h.insert(h.end(), s.begin(), s.end());
    return h;
  }
  // What it is on the wire.
  static Frame transport(const Frame& f, std::uint64_t number, bool esn = false, bool in_udp = false) {
    const std::size_t l4 = kEth + ip_header(f);
    const Bytes esp =
        esp_packets::sealed(esp_packets::packet(number, part(f, l4, f.size()), protocol(f)), number, esn);
    Frame out = part(f, 0, l4);
    if (in_udp) {
      const Bytes head = part(udp_spi(), 0, kUdp);
      out.insert(out.end(), head.begin(), head.end());
      prm::store16(out.data() + l4 + 4, static_cast<std::uint32_t>(kUdp + esp.size()));
    }
    out.insert(out.end(), esp.begin(), esp.end());
    finish(out, in_udp ? kUdpProtocol : kEspProtocol);
    return out;
  }
  static Frame outer(bool v6) {
    Frame f = inside(v6, false, 0);
    f.resize(kEth + ip_header(f));
    finish(f, kEspProtocol);
    return f;
  }
  static Frame tunnel(const Frame& f, const Frame& head, std::uint64_t number) {
    const Bytes esp = esp_packets::sealed(
        esp_packets::packet(number, part(f, kEth, f.size()), is_v6(f) ? kIpv6Protocol : kIpipProtocol),
        number, false);
    Frame out = head;
    out.insert(out.end(), esp.begin(), esp.end());
    finish(out, kEspProtocol);
    return out;
  }

  Frame send(const Frame& frame) {
    link->rq.post({link->rx_sge(0, 16 << 10)});
    expect_good(link->scq, link->send(frame));
    const auto got = link->rcq.wait(1, 1'000'000);
    if (got.empty()) return {};
    EXPECT_FALSE(got[0].error()) << got[0].text();
    return link->received(0, got[0].byte_cnt);
  }
  std::uint64_t count(const char* name) { return machine.function(0).counter(name); }

  std::unique_ptr<EthObject> dek, arrives;
  std::vector<std::unique_ptr<EthObject>> objects, tables, rules;
  std::uint32_t tx_root = 0;
};

TEST_F(IpsecPacketTest, TransportIsMadeOfWhatLeaves) {
  for (const bool v6 : {false, true}) {
    encrypt_with(make_sa({}),
                 v6 ? prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6
                    : prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4,
                 spi());
    std::uint64_t number = 1;
    for (const bool udp : {false, true})
      for (const std::size_t payload : {1u, 2u, 3u, 100u, 1400u}) {
        const Frame f = inside(v6, udp, payload);
        EXPECT_EQ(send(f), transport(f, number++)) << payload;
      }
  }
  EXPECT_EQ(count("ipsec_encrypted"), 20u);
}

TEST_F(IpsecPacketTest, InUdpAndWithExtendedSequenceNumbers) {
  encrypt_with(make_sa({}), prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4, udp_spi());
  const Frame f = inside(false, false, 77);
  EXPECT_EQ(send(f), transport(f, 1, false, true));
  Sa sa;
  sa.esn = true, sa.next = 0x3'fffffffe;
  const std::uint32_t id = make_sa(sa);
  encrypt_with(id, prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4, spi());
  EXPECT_EQ(send(f), transport(f, 0x3'fffffffe, true));
  EXPECT_EQ(send(f), transport(f, 0x3'ffffffff, true));
  ASSERT_TRUE(machine.run_until([&] { return dev->count_async(prm::EqeType::kObjectChange, id) == 1; }));
}

TEST_F(IpsecPacketTest, ATunnelIsMadeOfWhatLeaves) {
  for (const bool outer_v6 : {false, true}) {
    Bytes header = outer(outer_v6);
    const Bytes s = spi();
    header.insert(header.end(), s.begin(), s.end());
    encrypt_with(make_sa({}), prm::k::REFORMAT_TYPE_L2_TO_L3_ESP_TUNNEL, header);
    std::uint64_t number = 1;
    for (const bool v6 : {false, true}) {
      const Frame f = inside(v6, false, 101);
      EXPECT_EQ(send(f), tunnel(f, outer(outer_v6), number++));
    }
  }
}

TEST_F(IpsecPacketTest, APacketIsMadeOfWhatComes) {
  Sa sa;
  sa.send = false;
  decrypt_with(make_sa(sa), prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT);
  std::uint64_t number = 1;
  for (const bool v6 : {false, true})
    for (const bool udp : {false, true})
      for (const std::size_t payload : {1u, 2u, 3u, 100u, 1400u}) {
        const Frame f = inside(v6, udp, payload);
        EXPECT_EQ(send(transport(f, number++)), f) << payload;
      }
  decrypt_with(make_sa(sa), prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP);
  const Frame f = inside(false, true, 50);
  EXPECT_EQ(send(transport(f, 7, false, true)), f);
  const Frame l2 = part(inside(false, false, 0), 0, kEth);
  decrypt_with(make_sa(sa), prm::k::REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2, l2);
  for (const bool v6 : {false, true}) {
    const Frame in = inside(v6, false, 99);
    Frame want = l2;
    prm::store16(want.data() + 12, v6 ? 0x86dd : 0x0800);
    want.insert(want.end(), in.begin() + kEth, in.end());
    EXPECT_EQ(send(tunnel(in, outer(false), v6 ? 2 : 1)), want);
  }
}

TEST_F(IpsecPacketTest, WhatIsForgedOrHasComeBeforeIsNotReceived) {
  Sa sa;
  sa.send = false;
  decrypt_with(make_sa(sa), prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT);
  const Frame f = inside(false, false, 60);
  EXPECT_EQ(send(transport(f, 40)), f);
  EXPECT_TRUE(send(transport(f, 40)).empty());
  EXPECT_TRUE(send(transport(f, 8)).empty()) << "below the window";
  EXPECT_EQ(count("ipsec_replayed"), 2u);
  Frame forged = transport(f, 41);
  forged[60] ^= 1;
  EXPECT_TRUE(send(forged).empty());
  EXPECT_EQ(count("ipsec_auth_failed"), 1u);
  EXPECT_TRUE(send(f).empty()) << "what is no ESP";
  EXPECT_EQ(send(transport(f, 41)), f);
}

TEST_F(IpsecPacketTest, LifetimesAreToldAndNothingLeavesAfterwards) {
  Sa sa;
  sa.hard = 4, sa.soft = 2;
  const std::uint32_t id = make_sa(sa);
  encrypt_with(id, prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4, spi());
  const Frame f = inside(false, false, 60);
  const auto told = [&](unsigned n) {
    return machine.run_until([&] { return dev->count_async(prm::EqeType::kObjectChange, id) == n; });
  };
  send(f);
  EXPECT_EQ(dev->count_async(prm::EqeType::kObjectChange), 0u);
  send(f);
  EXPECT_TRUE(told(1));
  send(f);
  EXPECT_EQ(send(f), transport(f, 4));
  EXPECT_TRUE(told(2));
  EXPECT_TRUE(send(f).empty());
  EXPECT_EQ(count("ipsec_spent"), 1u);
}

TEST_F(IpsecPacketTest, WhatIsNotOffered) {
  breaks({"cap-not-offered", "object-reference", "packet-reformat"});
  Sa wrong;
  wrong.valid = false;
  EXPECT_FALSE(try_sa(wrong).ok());
  wrong = {};
  wrong.pd = link->pd.pdn() + 100;
  EXPECT_FALSE(try_sa(wrong).ok());
  Reformat r;
  r.type = prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4;
  r.anchor = 4;
  r.data = Bytes(12);
  EXPECT_FALSE(try_reformat(*dev, r).ok()) << "no room for the IV";
  r.data = Bytes(16);
  r.anchor = 2;
  EXPECT_FALSE(try_reformat(*dev, r).ok()) << "a shorter tag";
  r.type = prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT;
  EXPECT_FALSE(try_reformat(*dev, r).ok()) << "it has no data";
}

}  // namespace
}  // namespace hcasim::bare
