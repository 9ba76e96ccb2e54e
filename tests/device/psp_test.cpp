// SPDX-License-Identifier: BSD-3-Clause
// PSP by flow entries, with keys, WQEs and tables as the kernel's driver makes them (6.18 and later). What is
// right is what nettle makes of whole packets (psp_packets.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "crypto_fixture.h"
#include "prm/psp.h"
#include "psp_packets.h"

namespace hcasim::bare {
namespace {

namespace psp = prm::psp;
using prm::EthSeg;
using psp_packets::at_psp;
using psp_packets::Bytes;
using psp_packets::encapsulated;
using psp_packets::ip_header;
using psp_packets::kEth;
using psp_packets::kIpv4;
using psp_packets::kTcp;
using psp_packets::kUdp;
using psp_packets::set_ip;

constexpr unsigned kModify = 0x40, kDecrypt = 0x1000, kEncrypt = 0x2000;
constexpr std::uint32_t kMarker = 3u << 30;
constexpr unsigned kSyndromeAt = 23;  // in the register that CQEs show

Bytes part(const Bytes& b, std::size_t from, std::size_t to) {
  return {b.begin() + static_cast<std::ptrdiff_t>(from), b.begin() + static_cast<std::ptrdiff_t>(to)};
}
class PspTest : public CryptoTest {
 protected:
  PspTest() : CryptoTest("connectx7") {}
  void SetUp() override {
    link = std::make_unique<EthLink>(*dev);
    sq = std::make_unique<Sq>(*dev, link->pd, link->scq, link->tis.number(), 7, true);
  }
  void TearDown() override {
    link->steer_to(0);
    for (auto* list : {&rules, &objects, &tables})
      while (!list->empty()) list->pop_back();
    sq.reset();
    leave();
  }

  // ---- Keys

  struct Spi {
    std::uint32_t number = 0;
    Bytes key;
  };
  CommandResult try_spis(unsigned count, unsigned size, Device* by = nullptr) {
    Mailbox in(psp::kOpGenSpi, psp::gen_spi_in::bytes);
    in.set<psp::gen_spi_in::key_size>(size).set<psp::gen_spi_in::num_of_spi>(count);
    return (by != nullptr ? *by : *dev).exec(in, psp::gen_spi_out::bytes + count * psp::key_spi::bytes);
  }
  std::vector<Spi> spis(unsigned count, unsigned size = prm::kKeySize128) {
    const auto result = try_spis(count, size).must();
    EXPECT_EQ(result.get<psp::gen_spi_out::num_of_spi>(), count);
    std::vector<Spi> made;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint8_t* p = result.out.data() + psp::gen_spi_out::bytes + i * psp::key_spi::bytes;
      const std::size_t len = size == prm::kKeySize256 ? 32 : 16;
      made.push_back(
          {prm::get<psp::key_spi::spi>(p), Bytes(p + psp::key_spi::bytes - len, p + psp::key_spi::bytes)});
    }
    return made;
  }
  void rotate() {
    Mailbox in(psp::kOpRotateKey, psp::rotate_key_in::bytes);
    dev->exec(in, psp::rotate_key_out::bytes).must();
  }
  std::uint32_t dek(const Bytes& key) {
    objects.push_back(make_dek(psp::kKeyPurpose, key));
    return objects.back()->number();
  }

  // ---- Tables

  // What is sent to PSP's port is encrypted.
  void encrypt_all() {
    MatchParam mask{};
    using L = prm::fte_match_set_lyr_2_4;
    prm::set<L::ip_protocol>(mask.data(), 0xff);
    prm::set<L::udp_dport>(mask.data(), 0xffff);
    tables.push_back(std::make_unique<EthObject>(make_flow_table(*dev, 1, 0, kNicTxTable)));
    FlowRule r;
    r.table = tables.back()->number();
    tables.push_back(std::make_unique<EthObject>(make_flow_group(*dev, r.table, 0, 0, 1, mask, kNicTxTable)));
    r.group = tables.back()->number();
    r.type = kNicTxTable;
    prm::set<L::ip_protocol>(r.value.data(), 17);
    prm::set<L::udp_dport>(r.value.data(), psp::kUdpPort);
    r.action = kEncrypt;
    r.allow = true;
    r.crypto_type = FlowRule::kPsp;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
    set_flow_root(*dev, r.table, kNicTxTable).must();
  }
  // The driver's two tables: decrypted and marked, then by syndrome: delivered with it in a register, or
  // dropped.
  void decrypt_all(bool drop_wrong) {
    using namespace prm::k;
    MatchParam mask{};
    std::uint8_t* misc2 = mask.data() + 3 * 64;
    if (drop_wrong) prm::set<psp::match_syndrome>(misc2, 0xff);
    tables.push_back(std::make_unique<EthObject>(make_flow_table(*dev, 2, 1)));
    FlowRule right;
    right.table = tables.back()->number();
    tables.push_back(
        std::make_unique<EthObject>(make_flow_group(*dev, right.table, 0, 3, drop_wrong ? 8 : 0, mask)));
    right.group = tables.back()->number();
    objects.push_back(std::make_unique<EthObject>(make_modify_header(
        *dev, {copy_field(psp::kFieldSyndrome, ACTION_IN_FIELD_METADATA_REG_B, 7, 0, kSyndromeAt)})));
    right.to = {{FlowDest::kTir, link->tir.number()}};
    right.action = kModify;
    right.modify = objects.back()->number();
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, right)));

    objects.push_back(std::make_unique<EthObject>(
        make_modify_header(*dev, {set_field(ACTION_IN_FIELD_METADATA_REG_B, kMarker)})));
    link->steer_to(0);
    FlowRule r;
    r.table = link->table.number(), r.group = link->all.number(), r.index = kCatchAll;
    r.to = {{FlowDest::kTable, right.table}};
    r.action = kDecrypt | kModify;
    r.modify = objects.back()->number();
    r.crypto_type = FlowRule::kPsp;
    rules.push_back(std::make_unique<EthObject>(make_flow(*dev, r)));
  }

  // ---- Frames

  EthWr to_send(const Frame& inside, std::uint32_t key) const {
    EthWr wr;
    wr.given.inner_l4 = static_cast<unsigned>(kEth + ip_header(inside) + kUdp + psp::kHeader);
    if (inside[12] == 0x86) wr.given.flags |= EthSeg::kOuterIpv6;
    wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4InnerCsum;
    wr.metadata = key;
    wr.trailer = Bytes(psp::kIcv);
    wr.trailer_of_l4 = true;
    return wr;
  }
  Frame arrives(std::size_t slot = 0) {
    const auto got = link->rcq.wait(1, 1'000'000);
    if (got.empty()) return {};
    cqe = got[0];
    EXPECT_FALSE(cqe.error()) << cqe.text();
    return link->received(slot, cqe.byte_cnt);
  }
  Frame send(const Frame& frame, EthWr wr) {
    link->rq.post({link->rx_sge(0, 16 << 10)});
    link->put(0, frame);
    wr.sges = {link->tx_sge(0, static_cast<std::uint32_t>(frame.size()))};
    sq->post(wr);
    const Completion c = link->scq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
    return arrives();
  }
  // A packet that another card has sealed.
  Frame receive(const Bytes& sealed) {
    const Frame f = psp_packets::in_udp(l4_frame(L4{}), sealed, kUdp + sealed.size());
    EthWr wr;
    wr.cs_flags = EthSeg::kL3Csum;
    return send(f, wr);
  }
  unsigned syndrome() const { return cqe.imm >> kSyndromeAt & 0x7f; }
  std::uint64_t counter(const char* name) { return machine.function(0).counter(name); }
  // The PSP packet as UDP's length has it; that of IP has to agree.
  static Bytes psp_of(const Frame& f) {
    const std::size_t udp = prm::load16(f.data() + kEth + ip_header(f) + 4);
    const std::size_t ip =
        f[12] == 0x86 ? prm::load16(f.data() + kEth + 4) : prm::load16(f.data() + 16) - kIpv4;
    EXPECT_EQ(udp, ip);
    return part(f, at_psp(f), kEth + ip_header(f) + udp);
  }
  // The frame that it would be without PSP.
  static Frame without_psp(const Frame& f, const Bytes& key) {
    const Bytes clear = psp_packets::opened(psp_of(f), key);
    Frame out = part(f, 0, kEth + ip_header(f));
    out.insert(out.end(), clear.begin(), clear.end());
    set_ip(out, clear.size(), 6);
    return out;
  }

  std::unique_ptr<Sq> sq;
  std::vector<std::unique_ptr<EthObject>> objects, tables, rules;
  Completion cqe;
};

TEST_F(PspTest, TcpLeavesEncryptedWithItsChecksumInside) {
  encrypt_all();
  std::uint64_t last = 0;
  for (const bool longer : {false, true}) {
    const Spi spi = spis(1, longer ? prm::kKeySize256 : prm::kKeySize128)[0];
    const std::uint32_t key = dek(spi.key);
    for (const bool v6 : {false, true}) {
      for (const std::size_t payload : {0u, 3u, 1399u}) {
        L4 l4;
        l4.v6 = v6, l4.payload = payload;
        const Frame inside = l4_frame(l4);
        const Frame got = send(encapsulated(inside, spi.number, longer ? 1 : 0), to_send(inside, key));
        ASSERT_FALSE(got.empty());
        EXPECT_TRUE(v6 || plain_sum(got, kEth, kEth + kIpv4) == 0xffff);
        const Frame clear = without_psp(got, spi.key);
        ASSERT_EQ(clear.size(), inside.size()) << "it is not of the key";
        EXPECT_TRUE(l4_sum_right(clear));
        EXPECT_EQ(part(clear, clear.size() - payload, clear.size()),
                  part(inside, inside.size() - payload, inside.size()));
        const std::uint64_t iv = prm::load64(got.data() + at_psp(got) + 8);
        EXPECT_GT(iv, last) << "never the same IV again";
        last = iv;
      }
    }
  }
  EXPECT_EQ(counter("psp_encrypted"), 12u);
}

TEST_F(PspTest, ALargeSendIsSegmentedInside) {
  encrypt_all();
  const Spi spi = spis(1)[0];
  const std::uint32_t key = dek(spi.key);
  constexpr std::size_t kMss = 1000, kPayload = 3700, kCount = 4;
  for (const bool v6 : {false, true}) {
    L4 l4;
    l4.v6 = v6, l4.payload = kPayload;
    const Frame inside = l4_frame(l4), whole = encapsulated(inside, spi.number);
    const std::size_t headers = at_psp(whole) + psp::kHeader + kTcp;
    const std::uint16_t id = prm::load16(whole.data() + kEth + 4);
    link->put(0, whole);
    for (std::size_t i = 0; i < kCount; ++i) link->rq.post({link->rx_sge(i * 2048, 2048)});
    EthWr wr = to_send(inside, key);
    wr.op = WqeOp::kLso;
    wr.headers = part(whole, 0, headers);
    wr.mss = kMss;
    wr.sges = {link->tx_sge(headers, kPayload)};
    sq->post(wr);
    EXPECT_FALSE(link->scq.wait_one().error());
    const auto done = link->rcq.wait(kCount);
    ASSERT_EQ(done.size(), kCount);
    Bytes payload;
    std::set<std::uint64_t> ivs;
    for (std::size_t i = 0; i < kCount; ++i) {
      const Frame got = link->received(i * 2048, done[i].byte_cnt);
      if (!v6) {
        EXPECT_EQ(plain_sum(got, kEth, kEth + kIpv4), 0xffffu);
        EXPECT_EQ(prm::load16(got.data() + kEth + 4), static_cast<std::uint16_t>(id + i));
      }
      ivs.insert(prm::load64(got.data() + at_psp(got) + 8));
      const Frame clear = without_psp(got, spi.key);
      const std::size_t tcp = kEth + ip_header(clear);
      ASSERT_GT(clear.size(), tcp + kTcp) << "segment " << i << " is not of the key";
      EXPECT_TRUE(l4_sum_right(clear));
      EXPECT_EQ(prm::load32(clear.data() + tcp + 4), 0xfffffff0u + static_cast<std::uint32_t>(i * kMss));
      payload.insert(payload.end(), clear.begin() + static_cast<std::ptrdiff_t>(tcp + kTcp), clear.end());
    }
    EXPECT_EQ(payload, part(inside, inside.size() - kPayload, inside.size()));
    EXPECT_EQ(ivs.size(), kCount);
  }
}

TEST_F(PspTest, WhatComesIsDecryptedInPlaceAndMarked) {
  decrypt_all(false);
  for (const bool longer : {false, true}) {
    const Spi spi = spis(1, longer ? prm::kKeySize256 : prm::kKeySize128)[0];
    psp_packets::Head head;
    head.version = longer ? 1 : 0, head.iv = 5;
    const Bytes plain = psp_packets::packet(spi.number, Bytes(333, 0x44), head);
    const Bytes got = psp_of(receive(psp_packets::sealed(plain, spi.key)));
    ASSERT_EQ(got.size(), plain.size()) << "header and ICV stay";
    EXPECT_EQ(part(got, 0, got.size() - 16), part(plain, 0, plain.size() - 16));
    EXPECT_EQ(cqe.imm, kMarker);
  }
  EXPECT_EQ(counter("psp_decrypted"), 2u);
}

TEST_F(PspTest, WhatIsWrongIsMarkedAndLeftAsItCame) {
  decrypt_all(false);
  const Spi spi = spis(1)[0];
  const Bytes right = psp_packets::sealed(psp_packets::packet(spi.number, Bytes(100, 7), {}), spi.key);
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes p = right;
    p[at] = value;
    EXPECT_EQ(psp_of(receive(p)), p);
    return syndrome();
  };
  EXPECT_EQ(with(40, static_cast<std::uint8_t>(right[40] ^ 1)), 1u);
  EXPECT_EQ(with(1, 200), 2u) << "a header longer than the packet";
  EXPECT_EQ(with(3, 3 << 2 | 1), 3u) << "a version that does not encrypt";
  EXPECT_EQ(counter("psp_auth_failed"), 1u);
  EXPECT_EQ(counter("psp_bad_frame"), 1u);
  EXPECT_EQ(counter("psp_unknown"), 1u);
}

TEST_F(PspTest, TablesTellWhatIsRight) {
  decrypt_all(true);
  const Spi spi = spis(1)[0];
  Bytes p = psp_packets::sealed(psp_packets::packet(spi.number, Bytes(100, 7), {}), spi.key);
  EXPECT_FALSE(receive(p).empty());
  p[50] ^= 1;
  EXPECT_TRUE(receive(p).empty());
}

TEST_F(PspTest, ThereAndBack) {
  encrypt_all();
  decrypt_all(true);
  const Spi spi = spis(1)[0];
  const std::uint32_t key = dek(spi.key);
  const Frame inside = l4_frame(L4{});
  const Frame got = send(encapsulated(inside, spi.number), to_send(inside, key));
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(part(got, at_psp(got) + 16 + kTcp, got.size() - 16),
            part(inside, kEth + kIpv4 + kTcp, inside.size()));
}

TEST_F(PspTest, TheDeviceKeyIsRotated) {
  decrypt_all(false);
  const Spi first = spis(1)[0];
  const auto wire = [](const Spi& spi) {
    return psp_packets::sealed(psp_packets::packet(spi.number, Bytes(64, 7), {}), spi.key);
  };
  rotate();
  const Spi second = spis(1)[0];
  EXPECT_NE(first.number >> 31, second.number >> 31) << "the phase tells them apart";
  receive(wire(first));
  EXPECT_EQ(syndrome(), 0u);
  receive(wire(second));
  EXPECT_EQ(syndrome(), 0u);
  rotate();
  receive(wire(second));
  EXPECT_EQ(syndrome(), 0u);
  receive(wire(first));
  EXPECT_EQ(syndrome(), 1u) << "two rotations ago";
}

TEST_F(PspTest, ManySpisAtOnce) {
  std::set<std::uint32_t> numbers;
  std::set<Bytes> keys;
  for (const Spi& spi : spis(64, prm::kKeySize256)) {
    numbers.insert(spi.number);
    keys.insert(spi.key);
  }
  EXPECT_EQ(numbers.size(), 64u);
  EXPECT_EQ(keys.size(), 64u);
}

TEST_F(PspTest, WhatHasNoKeyDoesNotLeave) {
  encrypt_all();
  link->rq.post({link->rx_sge(0, 2048)});
  const Spi spi = spis(1)[0];
  const Frame inside = l4_frame(L4{}), f = encapsulated(inside, spi.number);
  const auto lost = [&](const EthWr& with) {
    link->put(0, f);
    EthWr wr = with;
    wr.sges = {link->tx_sge(0, static_cast<std::uint32_t>(f.size()))};
    sq->post(wr);
    EXPECT_FALSE(link->scq.wait_one().error());
    return link->rcq.wait(1, 1'000'000).empty();
  };
  EXPECT_TRUE(lost(to_send(inside, 0x1234))) << "no such key";
  objects.push_back(make_dek(prm::kKeyPurposeIpsec, spi.key));
  EXPECT_TRUE(lost(to_send(inside, objects.back()->number()))) << "a key for something else";
  const std::uint32_t longer = dek(Bytes(32, 1));
  EXPECT_TRUE(lost(to_send(inside, longer))) << "a key of another version's length";
  EXPECT_EQ(counter("psp_not_encrypted"), 3u);
}

TEST_F(PspTest, WhatIsNotOffered) {
  breaks({"cap-not-offered", "cap-limit", "cmd-output-short", "modify-header"});
  EXPECT_FALSE(try_spis(0, prm::kKeySize128).ok());
  EXPECT_FALSE(try_spis(65, prm::kKeySize128).ok()) << "log_max_num_of_psp_spi";
  EXPECT_FALSE(try_spis(1, 2).ok()) << "a key of another size";
  Mailbox in(psp::kOpGenSpi, psp::gen_spi_in::bytes);
  in.set<psp::gen_spi_in::num_of_spi>(2);
  EXPECT_FALSE(dev->exec(in, psp::gen_spi_out::bytes + psp::key_spi::bytes).ok()) << "no room for both";
  EXPECT_FALSE(try_modify_header(*dev, {set_field(psp::kFieldSyndrome, 0, 0, 8)}).ok());
}

TEST_F(PspTest, ABoardThatMayNotEncryptOffersNothing) {
  breaks({"cap-not-offered", "opcode-not-offered"});
  Device plain(machine.function(1));
  plain.probe();
  EXPECT_FALSE(try_spis(1, prm::kKeySize128, &plain).ok());
  plain.teardown();
}

}  // namespace
}  // namespace hcasim::bare
