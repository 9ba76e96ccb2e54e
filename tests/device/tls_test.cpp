// SPDX-License-Identifier: BSD-3-Clause
// TLS in line: what leaves by a TIS is encrypted, what comes to a TIR decrypted, set up and asked by WQEs as
// the kernel's driver does. What is right is what nettle makes of whole records (tls_records.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "crypto_fixture.h"
#include "driver/bare/devx.h"
#include "eth_split_rig.h"
#include "prm/crypto.h"
#include "tls_records.h"

namespace hcasim::bare {
namespace {

using prm::CqeSyndrome;
using prm::CqeTls;
using prm::EthSeg;
using tls_records::Bytes;
using tls_records::kFirst;
using tls_records::kStart;
using tls_records::Stream;

constexpr std::size_t kTcp = 54;  // bytes of headers

CqeTls tls_of(const Completion& c) {
  return static_cast<CqeTls>(c.raw.tls_outer_l3_tunneled >> prm::kCqeTlsShift & 3);
}

class TlsTest : public CryptoTest {
 protected:
  using CryptoTest::CryptoTest;
  void SetUp() override {
    RqOptions rq;
    rq.log_size = 7;
    link = std::make_unique<EthLink>(*dev, rq);
    dek = make_dek(link->pd.pdn(), tls_records::kKey);
    tis = tls_tis();
    tir = tls_tir();
  }
  void TearDown() override {
    link->steer_to(0);
    tir.reset();
    tis.reset();
    dek.reset();
    leave();
  }

  // ---- Objects

  CommandResult try_dek(std::uint32_t pd, const Bytes& key, std::uint32_t size, std::uint32_t purpose,
                        Device* by = nullptr) {
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_key::kBytes);
    in.set<prm::general_obj_in_cmd_hdr::obj_type>(prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY);
    in.set<prm::create_key::size>(size).set<prm::create_key::purpose>(purpose).set<prm::create_key::pd>(pd);
    std::copy(key.begin(), key.end(), in.end() - static_cast<std::ptrdiff_t>(key.size()));
    return (by != nullptr ? *by : *dev).exec(in, prm::general_obj_out_cmd_hdr::bytes);
  }
  CommandResult of_dek(std::uint16_t opcode, std::uint32_t id) {
    using In = prm::general_obj_in_cmd_hdr;
    Mailbox in(opcode, In::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY).set<In::obj_id>(id);
    return dev->exec(in, prm::general_obj_out_cmd_hdr::bytes + prm::encryption_key_obj::bytes);
  }
  std::unique_ptr<EthObject> make_dek(std::uint32_t pd, const Bytes& key) {
    const auto made = try_dek(pd, key, key.size() == 32 ? prm::kKeySize256 : prm::kKeySize128, 1);
    const auto id = made.must().get<prm::general_obj_out_cmd_hdr::obj_id>();
    return std::make_unique<EthObject>(*dev, id,
                                       [this, id] { return of_dek(prm::op::DESTROY_GENERAL_OBJECT, id); });
  }
  static CommandResult try_tis(Device& d, std::uint32_t td, std::uint32_t pd) {
    using In = prm::create_tis_in;
    Mailbox in(prm::op::CREATE_TIS, In::bytes);
    in.set<In::ctx::transport_domain>(td).set<In::ctx::tls_en>(1).set<In::ctx::pd>(pd);
    return d.exec(in, prm::create_tis_out::bytes);
  }
  static CommandResult destroy(Device& d, std::uint16_t opcode, std::uint32_t number) {
    using In = prm::destroy_tis_in;  // destroy_tir_in has the number in the same place
    static_assert(In::tisn::bit_off == prm::destroy_tir_in::tirn::bit_off);
    Mailbox in(opcode, In::bytes);
    return d.exec(in.set<In::tisn>(number));
  }
  std::unique_ptr<EthObject> tls_tis() {
    const auto n = try_tis(*dev, link->td.number(), link->pd.pdn()).must().get<prm::create_tis_out::tisn>();
    return std::make_unique<EthObject>(*dev, n, [this, n] { return destroy(*dev, prm::op::DESTROY_TIS, n); });
  }
  static CommandResult try_tir(Device& d, std::uint32_t rqn, std::uint32_t td) {
    using In = prm::create_tir_in;
    Mailbox in(prm::op::CREATE_TIR, In::bytes);
    in.set<In::ctx::inline_rqn>(rqn).set<In::ctx::transport_domain>(td).set<In::ctx::tls_en>(1);
    in.set<In::ctx::self_lb_block>(3).set<In::ctx::rx_hash_fn>(1);
    return d.exec(in, prm::create_tir_out::bytes);
  }
  std::unique_ptr<EthObject> tls_tir() { return tls_tir(link->rq.rqn()); }
  std::unique_ptr<EthObject> tls_tir(std::uint32_t rqn) {
    const auto n = try_tir(*dev, rqn, link->td.number()).must().get<prm::create_tir_out::tirn>();
    return std::make_unique<EthObject>(*dev, n, [this, n] { return destroy(*dev, prm::op::DESTROY_TIR, n); });
  }

  // ---- WQEs

  struct Params {
    std::uint64_t first = kFirst;
    std::uint32_t resync = 0;
    std::uint32_t version = prm::kTlsVersion12;
    std::uint32_t dek = 0;
  };
  void post_static(std::uint8_t opmod, std::uint32_t number, Params p) {
    std::vector<std::uint8_t> wqe(192);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kUmr, next, link->sq.sqn(), 12, prm::kCeAlways, false, opmod);
    ctrl.imm = number << 8;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::UmrCtrlSeg umr{};
    umr.flags = prm::kUmrInline;
    umr.xlt_offset = prm::tls_static_params::bytes / 16;
    std::memcpy(wqe.data() + 16, &umr, sizeof umr);
    std::uint8_t* s = wqe.data() + 128;
    using t = prm::tls_static_params;
    prm::set<t::tls_version>(s, p.version);
    prm::set<t::const_1>(s, prm::kTlsConst1);
    prm::set<t::const_2>(s, prm::kTlsConst2);
    prm::set<t::encryption_standard>(s, prm::kEncryptionTls);
    prm::set<t::initial_record_number>(s, p.first);
    prm::set<t::resync_tcp_sn>(s, p.resync);
    prm::set<t::gcm_iv>(s, tls_records::kSalt);
    prm::set<t::dek_index>(s, p.dek != 0 ? p.dek : dek->number());
    next = static_cast<std::uint16_t>(link->sq.post_raw(wqe, 3) + 3);
  }
  void post_progress(std::uint8_t opmod, std::uint32_t number, std::uint32_t sn) {
    std::vector<std::uint8_t> wqe(32);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kSetPsv, next, link->sq.sqn(), 2, prm::kCeAlways, false, opmod);
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::TlsProgressSeg seg{};
    seg.tis_tir_num = number;
    prm::set<prm::tls_progress_params::next_record_tcp_sn>(seg.params, sn);
    std::memcpy(wqe.data() + 16, &seg, sizeof seg);
    next = static_cast<std::uint16_t>(link->sq.post_raw(wqe, 1) + 1);
  }
  void good() {
    const Completion c = link->scq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
  }
  void start_tx(std::uint64_t first = kFirst) {
    Params p;
    p.first = first;
    post_static(prm::kTlsOfTis, tis->number(), p);
    good();
    post_progress(prm::kTlsOfTis, tis->number(), 0);
    good();
  }
  void start_rx(std::uint32_t sn = kStart) {
    post_static(prm::kTlsOfTir, tir->number(), {});
    good();
    post_progress(prm::kTlsOfTir, tir->number(), sn);
    good();
  }
  // What GET_PSV brings.
  std::array<std::uint8_t, prm::kTlsProgressWrite> progress() {
    constexpr std::size_t kAt = 200 << 10;
    std::memset(link->rx.data() + kAt, 0xee, 64);
    std::vector<std::uint8_t> wqe(64);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kGetPsv, next, link->sq.sqn(), 4, prm::kCeAlways, false, prm::kTlsOfTir);
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::GetPsvSeg seg{};
    seg.num_psv = 1 << 4;
    seg.lkey = link->rxr.key();
    seg.va = link->rxr.start() + kAt;
    seg.index[0] = tir->number();
    std::memcpy(wqe.data() + 16, &seg, sizeof seg);
    next = static_cast<std::uint16_t>(link->sq.post_raw(wqe, 1) + 1);
    good();
    std::array<std::uint8_t, prm::kTlsProgressWrite> out;
    std::memcpy(out.data(), link->rx.data() + kAt, out.size());
    EXPECT_EQ(prm::load32(out.data()), tir->number());
    return out;
  }
  void dump(const Bytes& bytes, std::size_t from, std::size_t to) {
    constexpr std::size_t kAt = 128 << 10;
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(from),
              bytes.begin() + static_cast<std::ptrdiff_t>(to), link->tx.data() + kAt);
    std::vector<std::uint8_t> wqe(32);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kDump, next, link->sq.sqn(), 2, prm::kCeAlways);
    ctrl.imm = tis->number() << 8;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::DataSeg seg;
    seg.byte_count = static_cast<std::uint32_t>(to - from);
    seg.lkey = link->txr.key();
    seg.addr = link->txr.start() + kAt;
    std::memcpy(wqe.data() + 16, &seg, sizeof seg);
    next = static_cast<std::uint16_t>(link->sq.post_raw(wqe, 1) + 1);
  }

  // ---- Frames

  static Frame segment(const Bytes& stream, std::size_t from, std::size_t to) {
    L4 l4;
    l4.payload = to - from;
    Frame f = l4_frame(l4);
    prm::store32(f.data() + 38, kStart + static_cast<std::uint32_t>(from));
    std::copy(stream.begin() + static_cast<std::ptrdiff_t>(from),
              stream.begin() + static_cast<std::ptrdiff_t>(to), f.begin() + kTcp);
    return f;
  }
  // Sends that segment, by the TIS if tls.
  void send(const Bytes& stream, std::size_t from, std::size_t to, bool tls) {
    const Frame f = segment(stream, from, to);
    link->put(0, f);
    EthWr wr;
    wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
    wr.sges = {link->tx_sge(0, static_cast<std::uint32_t>(f.size()))};
    wr.tis = tls ? tis->number() : 0;
    next = static_cast<std::uint16_t>(link->sq.post(wr) + 1);
  }
  struct Got {
    Bytes payload;
    CqeTls tls;
    bool sums;
  };
  Got receive() {
    const Completion c = link->rcq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
    const Frame f = link->received(0, c.byte_cnt);
    const std::size_t end = 14u + (f[16] << 8u | f[17]);
    return {{f.begin() + kTcp, f.begin() + static_cast<std::ptrdiff_t>(end)},
            tls_of(c),
            c.raw.hds_ip_ext == (prm::Cqe::kL2Ok | prm::Cqe::kL3Ok | prm::Cqe::kL4Ok)};
  }
  // Sends the segment and returns it as it came in.
  Got pass(const Bytes& stream, std::size_t from, std::size_t to, bool tls) {
    link->rq.post({link->rx_sge(0, 16 << 10)});
    send(stream, from, to, tls);
    good();
    return receive();
  }
  // The same in segments of 1400 bytes, which all come to be the same.
  void pass_all(const Bytes& stream, std::size_t from, std::size_t to, CqeTls want) {
    for (std::size_t at = from; at < to; at += 1400)
      EXPECT_EQ(pass(stream, at, std::min(at + 1400, to), false).tls, want) << at;
  }
  void expect_refused(CqeSyndrome syndrome) {
    expect_error(link->scq.wait_one(), syndrome);
    EXPECT_EQ(link->sq.state(), 3u);
    link->sq.modify(3, 0).must();
    link->sq.modify(0, 1).must();
    link->sq.set_dbr(0);
  }
  static Bytes part(const Bytes& b, std::size_t from, std::size_t to) {
    return {b.begin() + static_cast<std::ptrdiff_t>(from), b.begin() + static_cast<std::ptrdiff_t>(to)};
  }

  std::unique_ptr<EthObject> dek, tis, tir;
  std::uint16_t next = 0;  // index of the next WQE
};

TEST_F(TlsTest, RecordsLeaveEncrypted) {
  const Stream s({100, 3000, 0, 2000});
  start_tx();
  for (std::size_t at = 0; at < s.plain.size(); at += 1448) {
    const std::size_t end = std::min(at + 1448, s.plain.size());
    const Got got = pass(s.plain, at, end, true);
    EXPECT_EQ(got.payload, part(s.cipher, at, end)) << at;
    EXPECT_TRUE(got.sums) << "made over what was encrypted";
    EXPECT_EQ(got.tls, CqeTls::kNotDecrypted);
  }
  // What leaves by the queue's own TIS stays as it is.
  EXPECT_EQ(pass(s.plain, 0, 1000, false).payload, part(s.plain, 0, 1000));
}

// A program names the type of a record as it likes (TLS_SET_RECORD_TYPE), and the kernel asks no questions.
TEST_F(TlsTest, RecordsOfAnyTypeLeaveEncrypted) {
  Bytes plain = tls_records::record(500, 1, 9);
  plain[0] = 100;
  const Bytes cipher = tls_records::sealed(plain, kFirst);
  start_tx();
  EXPECT_EQ(pass(plain, 0, plain.size(), true).payload, cipher);
}

// libmlx5 leaves what was in the ring where a TIS for TLS would stand.
TEST_F(TlsTest, WhatIsNoTisForTlsIsTheQueuesOwn) {
  const Stream s({100});
  const Bytes plain = part(s.plain, 0, 100);
  for (const std::uint32_t left_over : {0xdeadbeu, tis->number() + 1, link->tis.number()}) {
    link->rq.post({link->rx_sge(0, 16 << 10)});
    const Frame f = segment(s.plain, 0, 100);
    link->put(0, f);
    EthWr wr;
    wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
    wr.sges = {link->tx_sge(0, static_cast<std::uint32_t>(f.size()))};
    wr.tis = left_over;
    next = static_cast<std::uint16_t>(link->sq.post(wr) + 1);
    good();
    EXPECT_EQ(receive().payload, plain) << left_over;
  }
}

TEST_F(TlsTest, ALargeSendIsEncryptedThroughAllItsSegments) {
  const Stream s({3000, 5000, 10, 4000});
  start_tx();
  const Frame whole = segment(s.plain, 0, s.plain.size());
  link->put(0, whole);
  constexpr std::uint16_t kMss = 1000;
  const std::size_t count = (s.plain.size() + kMss - 1) / kMss;
  for (std::size_t i = 0; i < count; ++i) link->rq.post({link->rx_sge(i * 2048, 2048)});
  EthWr wr;
  wr.op = WqeOp::kLso;
  wr.headers.assign(whole.begin(), whole.begin() + kTcp);
  wr.mss = kMss;
  wr.cs_flags = EthSeg::kL3Csum | EthSeg::kL4Csum;
  wr.sges = {link->tx_sge(kTcp, static_cast<std::uint32_t>(s.plain.size()))};
  wr.tis = tis->number();
  link->sq.post(wr);
  good();
  Bytes payload;
  const auto done = link->rcq.wait(count);
  ASSERT_EQ(done.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const Frame f = link->received(i * 2048, done[i].byte_cnt);
    EXPECT_TRUE(l4_sum_right(f));
    const std::size_t end = 14u + (f[16] << 8u | f[17]);
    payload.insert(payload.end(), f.begin() + kTcp, f.begin() + static_cast<std::ptrdiff_t>(end));
  }
  EXPECT_EQ(payload, s.cipher);
}

TEST_F(TlsTest, WhatIsSentAgainFromWithinARecordIsTheSameAgain) {
  const Stream s({2000, 4000, 2000});
  start_tx();
  for (std::size_t at = 0; at < s.plain.size(); at += 1000)
    pass(s.plain, at, std::min(at + 1000, s.plain.size()), true);
  // As mlx5e_ktls_tx_handle_ooo(): the record's number, its beginning, then the frame.
  start_tx(kFirst + 1);
  const std::size_t from = s.begins[1] + 2777;
  dump(s.plain, s.begins[1], s.begins[1] + 1500);
  good();
  dump(s.plain, s.begins[1] + 1500, from);
  good();
  EXPECT_EQ(pass(s.plain, from, from + 1000, true).payload, part(s.cipher, from, from + 1000));
  // The same record again, with progress parameters alone.
  post_progress(prm::kTlsOfTis, tis->number(), 0);
  good();
  EXPECT_EQ(pass(s.plain, s.begins[1], s.begins[1] + 1000, true).payload,
            part(s.cipher, s.begins[1], s.begins[1] + 1000));
}

TEST_F(TlsTest, RecordsComeInDecrypted) {
  const Stream s({100, 3000, 0, 2000});
  start_rx();
  link->steer_to(tir->number());
  const Bytes opened = s.opened();
  for (std::size_t at = 0; at < s.cipher.size(); at += 1448) {
    const std::size_t end = std::min(at + 1448, s.cipher.size());
    const Got got = pass(s.cipher, at, end, false);
    EXPECT_EQ(got.tls, CqeTls::kDecrypted) << at;
    EXPECT_EQ(got.payload, part(opened, at, end)) << at;
    EXPECT_TRUE(got.sums) << "those of what came";
  }
  // Once more: it has been decrypted already.
  const Got again = pass(s.cipher, 0, 1000, false);
  EXPECT_EQ(again.tls, CqeTls::kNotDecrypted);
  EXPECT_EQ(again.payload, part(s.cipher, 0, 1000));
}

TEST_F(TlsTest, BothWaysAtOnce) {
  const Stream s({1, 16384, 300});
  start_tx();
  start_rx();
  link->steer_to(tir->number());
  const Bytes opened = s.opened();
  for (std::size_t at = 0; at < s.plain.size(); at += 1400) {
    const std::size_t end = std::min(at + 1400, s.plain.size());
    const Got got = pass(s.plain, at, end, true);
    EXPECT_EQ(got.tls, CqeTls::kDecrypted) << at;
    EXPECT_EQ(got.payload, part(opened, at, end)) << at;
  }
}

TEST_F(TlsTest, AForgedRecordIsReportedAndLeftAsItCame) {
  Stream s({500, 500});
  s.cipher[100] ^= 4;
  start_rx();
  link->steer_to(tir->number());
  EXPECT_EQ(pass(s.cipher, 0, 300, false).tls, CqeTls::kDecrypted);
  const Got end = pass(s.cipher, 300, s.begins[1], false);
  EXPECT_EQ(end.tls, CqeTls::kError);
  EXPECT_EQ(end.payload, part(s.cipher, 300, s.begins[1]));
  EXPECT_EQ(pass(s.cipher, s.begins[1], s.cipher.size(), false).tls, CqeTls::kDecrypted);
}

TEST_F(TlsTest, ALostHeaderIsSearchedAskedForAndConfirmed) {
  const Stream s({3000, 3000, 3000, 3000, 3000});
  start_rx();
  link->steer_to(tir->number());
  EXPECT_EQ(pass(s.cipher, 0, 1000, false).tls, CqeTls::kDecrypted);
  // [1000, begins[1] + 500) is lost.
  EXPECT_EQ(pass(s.cipher, s.begins[1] + 500, s.begins[1] + 1500, false).tls, CqeTls::kNotDecrypted);
  using p = prm::tls_progress_params;
  EXPECT_EQ(prm::get<p::record_tracker_state>(progress().data() + 4), prm::kTrackerSearching);
  pass_all(s.cipher, s.begins[1] + 1500, s.begins[2] - 500, CqeTls::kNotDecrypted);
  EXPECT_EQ(pass(s.cipher, s.begins[2] - 500, s.begins[2] + 500, false).tls, CqeTls::kResync);
  const auto found = progress();
  EXPECT_EQ(prm::get<p::record_tracker_state>(found.data() + 4), prm::kTrackerTracking);
  EXPECT_EQ(prm::get<p::auth_state>(found.data() + 4), prm::kAuthNoOffload);
  const std::uint32_t sn = kStart + static_cast<std::uint32_t>(s.begins[2]);
  EXPECT_EQ(prm::get<p::hw_resync_tcp_sn>(found.data() + 4), sn);
  EXPECT_EQ(found[16], 0) << "zeroes to the end of the 64 bytes";
  EXPECT_EQ(found[63], 0);
  pass_all(s.cipher, s.begins[2] + 500, s.begins[3] + 500, CqeTls::kNotDecrypted);
  Params confirm;
  confirm.first = kFirst + 2;
  confirm.resync = sn;
  post_static(prm::kTlsOfTir, tir->number(), confirm);
  good();
  EXPECT_EQ(prm::get<p::auth_state>(progress().data() + 4), prm::kAuthOffload);
  pass_all(s.cipher, s.begins[3] + 500, s.begins[4], CqeTls::kNotDecrypted);
  pass_all(s.cipher, s.begins[4], s.cipher.size(), CqeTls::kDecrypted);
}

TEST_F(TlsTest, AKeyThatGoesLeavesNothingToDecryptWith) {
  const Stream s({500, 500});
  start_rx();
  link->steer_to(tir->number());
  EXPECT_EQ(pass(s.cipher, 0, 300, false).tls, CqeTls::kDecrypted);
  dek.reset();
  const Got got = pass(s.cipher, 300, s.begins[1], false);
  EXPECT_EQ(got.tls, CqeTls::kNotDecrypted);
  EXPECT_EQ(got.payload, part(s.cipher, 300, s.begins[1]));
}

// Into a queue that merges segments (HW-GRO): of what continues another one the driver does not look at the
// CQE.
class TlsSplit : public TlsTest {
 protected:
  TlsSplit() : TlsTest("connectx7") {}
  void SetUp() override {
    auto of_split = std::make_unique<SplitLink>(*dev);
    split_ = of_split.get();
    link = std::move(of_split);
    dek = make_dek(link->pd.pdn(), tls_records::kKey);
    tir = tls_tir(split_->queue.rqn());
    split_->post(3);
    start_rx();
    link->steer_to(tir->number());
  }
  // How one segment comes in: what TLS made of it, and whether it continues the one before.
  std::pair<CqeTls, bool> come(const Bytes& stream, std::size_t from, std::size_t to) {
    send(stream, from, to, false);
    good();
    SplitGot got = split_->get();
    while (got.filler) got = split_->get();
    return {tls_of(got.c), got.match};
  }
  SplitLink* split_ = nullptr;
};

TEST_F(TlsSplit, SegmentsAreMergedThatTlsHasMadeTheSameOf) {
  using Came = std::pair<CqeTls, bool>;
  const Stream s({900, 900, 900, 900});
  const std::size_t second = s.begins[1], third = s.begins[2], fourth = s.begins[3];
  EXPECT_EQ(come(s.cipher, 0, 300), Came(CqeTls::kDecrypted, false));
  EXPECT_EQ(come(s.cipher, 300, 600), Came(CqeTls::kDecrypted, true));
  // Some of it is lost; the header that is found then is asked for, which has to be seen.
  EXPECT_EQ(come(s.cipher, second + 100, second + 400), Came(CqeTls::kNotDecrypted, false));
  EXPECT_EQ(come(s.cipher, second + 400, second + 700), Came(CqeTls::kNotDecrypted, true));
  EXPECT_EQ(come(s.cipher, second + 700, third + 71), Came(CqeTls::kResync, false));
  EXPECT_EQ(come(s.cipher, third + 71, third + 371), Came(CqeTls::kNotDecrypted, false));
  Params confirm;
  confirm.first = kFirst + 2;
  confirm.resync = kStart + static_cast<std::uint32_t>(third);
  post_static(prm::kTlsOfTir, tir->number(), confirm);
  good();
  EXPECT_EQ(come(s.cipher, third + 371, third + 671), Came(CqeTls::kNotDecrypted, true));
  EXPECT_EQ(come(s.cipher, third + 671, fourth), Came(CqeTls::kNotDecrypted, true));
  EXPECT_EQ(come(s.cipher, fourth, fourth + 300), Came(CqeTls::kDecrypted, false)) << "behind what was not";
  EXPECT_EQ(come(s.cipher, fourth + 300, fourth + 600), Came(CqeTls::kDecrypted, true));
}

// Linux keeps up to 4,096 that are free beside those in use (ktls_tx.c).
TEST_F(TlsTest, ThereAreMoreTisesThanTheDriverKeepsFree) {
  std::vector<std::unique_ptr<EthObject>> many;
  for (int i = 0; i < 5000; ++i) many.push_back(tls_tis());
  many.clear();
}

class WrongTls : public TlsTest {
 protected:
  WrongTls() { breaks({"wqe-tls"}); }
};

TEST_F(WrongTls, Version) {
  Params p;
  p.version = 4;
  post_static(prm::kTlsOfTis, tis->number(), p);
  expect_refused(CqeSyndrome::kMwBind);
}
TEST_F(WrongTls, KeyThatIsNone) {
  Params p;
  p.dek = dek->number() + 1;
  post_static(prm::kTlsOfTis, tis->number(), p);
  expect_refused(CqeSyndrome::kMwBind);
}
TEST_F(WrongTls, KeyOfAnotherDomain) {
  const Pd other(*dev);
  auto foreign = make_dek(other.pdn(), tls_records::kKey);
  Params p;
  p.dek = foreign->number();
  post_static(prm::kTlsOfTir, tir->number(), p);
  expect_refused(CqeSyndrome::kMwBind);
}
TEST_F(WrongTls, TisWithoutTls) {
  post_static(prm::kTlsOfTis, link->tis.number(), {});
  expect_refused(CqeSyndrome::kMwBind);
}
TEST_F(WrongTls, TirWithoutTls) {
  post_static(prm::kTlsOfTir, link->tir.number(), {});
  expect_refused(CqeSyndrome::kMwBind);
}
TEST_F(WrongTls, ProgressBeforeStaticParameters) {
  post_progress(prm::kTlsOfTis, tis->number(), 0);
  expect_refused(CqeSyndrome::kMwBind);
}
TEST_F(WrongTls, FrameBeforeItsParameters) {
  const Stream s({500});
  send(s.plain, 0, s.plain.size(), true);
  expect_refused(CqeSyndrome::kLocalQpOp);
}
TEST_F(WrongTls, DumpBeforeItsParameters) {
  const Stream s({500});
  dump(s.plain, 0, s.plain.size());
  expect_refused(CqeSyndrome::kLocalQpOp);
}
TEST_F(WrongTls, WhatIsNoRecord) {
  start_tx();
  send(Bytes(500, 0xaa), 0, 500, true);
  expect_refused(CqeSyndrome::kLocalQpOp);
}
TEST_F(WrongTls, ProgressOfWhatHasNone) {
  std::vector<std::uint8_t> wqe(64);
  prm::CtrlSeg ctrl{};
  ctrl.set(WqeOp::kGetPsv, 0, link->sq.sqn(), 4, prm::kCeAlways, false, prm::kTlsOfTir);
  std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
  link->sq.post_raw(wqe, 1);
  expect_refused(CqeSyndrome::kLocalQpOp);
}

TEST_F(TlsTest, Keys) {
  const std::uint32_t pd = link->pd.pdn();
  auto longer = make_dek(pd, Bytes(32, 7));
  const auto query = of_dek(prm::op::QUERY_GENERAL_OBJECT, longer->number()).must();
  const std::uint8_t* object = query.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  EXPECT_EQ(prm::get<prm::encryption_key_obj::key_size>(object), prm::kKeySize256);
  EXPECT_EQ(prm::get<prm::encryption_key_obj::pd>(object), pd);
  EXPECT_TRUE(std::all_of(object + 0x40, query.out.data() + query.out.size(), [](auto b) { return b == 0; }))
      << "a key is never told";
}

TEST_F(TlsTest, ATissKeysAreOfItsOwnersDomain) {
  breaks({"devx-owner"});
  Uctx user(*dev);
  const Uctx::As as(*dev, user);
  const Pd pd(*dev);
  const EthObject td = make_transport_domain(*dev);
  EXPECT_EQ(try_tis(*dev, td.number(), link->pd.pdn()).status, prm::CmdStatus::kBadRes);
  const auto n = try_tis(*dev, td.number(), pd.pdn()).must().get<prm::create_tis_out::tisn>();
  EXPECT_TRUE(destroy(*dev, prm::op::DESTROY_TIS, n).ok());
}

TEST_F(TlsTest, WhatIsNotOffered) {
  breaks({"cap-not-offered", "object-reference", "object-unknown"});
  const std::uint32_t pd = link->pd.pdn();
  EXPECT_FALSE(try_dek(pd, tls_records::kKey, prm::kKeySize128, 6).ok()) << "PSP";
  EXPECT_FALSE(try_dek(pd, tls_records::kKey, 2, 1).ok()) << "size";
  EXPECT_FALSE(try_dek(pd + 100, tls_records::kKey, prm::kKeySize128, 1).ok()) << "PD";
  EXPECT_FALSE(of_dek(prm::op::QUERY_GENERAL_OBJECT, dek->number() + 1).ok());
  EXPECT_FALSE(of_dek(prm::op::DESTROY_GENERAL_OBJECT, dek->number() + 1).ok());
  EXPECT_FALSE(try_tis(*dev, link->td.number(), pd + 100).ok()) << "PD";
}

TEST_F(TlsTest, ABoardThatMayNotEncryptOffersNothing) {
  breaks({"cap-not-offered", "general-object"});
  Device plain(machine.function(1));
  plain.probe();
  {
    EthLink other(plain);
    EXPECT_FALSE(try_dek(other.pd.pdn(), tls_records::kKey, prm::kKeySize128, 1, &plain).ok());
    EXPECT_FALSE(try_tis(plain, other.td.number(), other.pd.pdn()).ok());
    EXPECT_FALSE(try_tir(plain, other.rq.rqn(), other.td.number()).ok());
  }
  plain.teardown();
}

}  // namespace
}  // namespace hcasim::bare
