// SPDX-License-Identifier: BSD-3-Clause
// Signature offload: blocks checked, stripped, made and copied on their way through a key.
#include "prm/signature.h"

#include <cstring>

#include "odp_fixture.h"

namespace hcasim::bare {
namespace {

using Bytes = std::vector<std::uint8_t>;
namespace mask = prm::mkey_mask;

// Bit by bit, from the definitions.
std::uint16_t crc_t10(const std::uint8_t* p, std::size_t n, std::uint16_t crc = 0) {
  for (std::size_t i = 0; i < n; ++i)
    for (int b = 7; b >= 0; --b) {
      const bool x = ((crc >> 15) ^ (p[i] >> b & 1)) != 0;
      crc = static_cast<std::uint16_t>(crc << 1 ^ (x ? 0x8bb7 : 0));
    }
  return crc;
}

Bytes dif(const std::uint8_t* p, std::size_t n, std::uint16_t app, std::uint32_t ref) {
  const std::uint16_t g = crc_t10(p, n);
  Bytes s(8);
  prm::store32(s.data(), static_cast<std::uint32_t>(g) << 16 | app);
  prm::store32(s.data() + 4, ref);
  return s;
}

Bytes with_dif(const std::uint8_t* p, std::size_t blocks, std::uint16_t app, std::uint32_t ref) {
  Bytes out;
  for (std::size_t b = 0; b < blocks; ++b) {
    out.insert(out.end(), p + 512 * b, p + 512 * (b + 1));
    const Bytes s = dif(p + 512 * b, 512, app, ref + static_cast<std::uint32_t>(b));
    out.insert(out.end(), s.begin(), s.end());
  }
  return out;
}

class Signature : public OdpTest {
 protected:
  static constexpr std::uint16_t kApp = 0xabcd;
  static constexpr std::uint32_t kRef = 0x01234567;

  struct Psvs {
    Psvs(Device& d, const Pd& pd) : dev(d) {
      Mailbox in(prm::op::CREATE_PSV, prm::create_psv_in::bytes);
      in.set<prm::create_psv_in::num_psv>(2).set<prm::create_psv_in::pd>(pd.pdn());
      const auto r = dev.exec(in, prm::create_psv_out::bytes).must();
      mem = static_cast<std::uint32_t>(r.get<prm::create_psv_out::psv0_index>());
      wire = static_cast<std::uint32_t>(r.get<prm::create_psv_out::psv1_index>());
    }
    ~Psvs() {
      for (const std::uint32_t n : {mem, wire}) {
        Mailbox in(prm::op::DESTROY_PSV, prm::destroy_psv_in::bytes);
        EXPECT_TRUE(dev.exec(in.set<prm::destroy_psv_in::psvn>(n)).ok());
      }
    }
    Device& dev;
    std::uint32_t mem, wire;
  };

  static MkeySpec empty(const Pd& pd) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.mode = 2;
    s.free = s.umr_en = true;
    s.access = kLocalRead;
    s.reserve_octowords = 4;
    s.key = 0;
    return s;
  }
  static CommandResult create(Device& d, const Pd& pd, unsigned room) {
    Mailbox in = create_mkey_mailbox(empty(pd));
    in.set<prm::create_mkey_in::memory_key_mkey_entry::bsf_en>(room != 0);
    in.set<prm::create_mkey_in::memory_key_mkey_entry::bsf_octword_size>(room);
    return d.exec(in, prm::create_mkey_out::bytes);
  }
  struct Key {
    Key(Device& d, const Pd& pd) : dev(d) {
      index = static_cast<std::uint32_t>(create(d, pd, 4).must().get<prm::create_mkey_out::mkey_index>());
    }
    ~Key() {
      Mailbox in(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes);
      EXPECT_TRUE(dev.exec(in.set<prm::destroy_mkey_in::mkey_index>(index)).ok());
    }
    std::uint32_t key() const { return index << 8; }
    Device& dev;
    std::uint32_t index;
  };

  static void fill_dif(prm::BsfInline& in) {
    in.vld_refresh = prm::BsfInline::kValid;
    in.apptag = kApp;
    in.reftag = kRef;
    in.sig_type = 1;
    in.inc_ref_guard_check = prm::BsfInline::kIncRef;
    in.app_bitmask = 0xffff;
  }
  static prm::Bsf bsf(const Psvs& psv, bool mem_dif, bool wire_dif) {
    prm::Bsf b{};
    b.size_sbs = prm::Bsf::kSizeWithInline << 6;
    b.check_mask = 0xff;
    b.raw_data_size = ~0u;
    if (mem_dif) {
      b.mem_bs = 1;
      b.mem_bfs_psv = psv.mem;
      fill_dif(b.mem);
    }
    if (wire_dif) {
      if (mem_dif)
        b.size_sbs |= prm::Bsf::kSbs;
      else
        b.wire_bs = 1;
      b.wire_bfs_psv = psv.wire;
      fill_dif(b.wire);
    }
    return b;
  }
  // The key over `sge`; answers the completion.
  static Completion configure(Qp& qp, std::uint32_t key, const Sge& sge, const prm::Bsf* b,
                              unsigned access = 31) {
    struct {
      prm::CtrlSeg ctrl;
      prm::UmrCtrlSeg umr;
      std::uint8_t mkc[64];
      prm::Klm klm[4];
      prm::Bsf bsf;
    } w{};
    const unsigned bytes = b ? sizeof w : offsetof(decltype(w), bsf);
    w.ctrl.set(WqeOp::kUmr, qp.sq_producer(), qp.qpn(), bytes / 16, prm::kCeAlways);
    w.ctrl.imm = key;
    w.umr.flags = prm::kUmrInline;
    w.umr.xlt_octowords = 4;
    w.umr.xlt_offset = b ? 4 : 0;
    w.umr.mkey_mask = mask::kFree | mask::kLen | mask::kLr | mask::kLw | mask::kRr | mask::kRw |
                      mask::kBsfEn | mask::kEnSigerr;
    MkeySpec s;
    s.access = access;
    s.len = sge.len;
    fill_mkc(w.mkc, s);
    prm::set<prm::mkc::bsf_en>(w.mkc, b != nullptr);
    w.klm[0].byte_count = sge.len;
    w.klm[0].key = sge.lkey;
    w.klm[0].va = sge.addr;
    if (b) w.bsf = *b;
    Bytes raw(bytes);
    std::memcpy(raw.data(), &w, bytes);
    qp.post_raw(raw, (bytes + 63) / 64);
    return qp.send_cq().wait_one();
  }
  static Completion set_psv(Qp& qp, std::uint32_t psv, std::uint32_t seed, std::uint32_t ref) {
    struct {
      prm::CtrlSeg ctrl;
      prm::SetPsvSeg seg;
    } w{};
    w.ctrl.set(WqeOp::kSetPsv, qp.sq_producer(), qp.qpn(), 2, prm::kCeAlways);
    w.seg.psv = psv;
    w.seg.transient_sig = seed;
    w.seg.ref_tag = ref;
    Bytes raw(sizeof w);
    std::memcpy(raw.data(), &w, sizeof w);
    qp.post_raw(raw, 1);
    return qp.send_cq().wait_one();
  }
  static void good(const Completion& c) { EXPECT_FALSE(c.error()) << c.text(); }
};

TEST_F(Signature, GuardIsTheStandardOne) {
  // T10 SBC-3: 32 bytes of zeros give 0, 32 of ones 0xa293.
  const Bytes ones(32, 0xff);
  EXPECT_EQ(crc_t10(ones.data(), 32), 0xa293);
}

TEST_F(Signature, InsertedOnTheWayOutStrippedOnTheWayIn) {
  Pair p(dev());
  p.fill(1);
  const Psvs psv(dev(), p.pd), bpsv(dev(), p.pd);
  const Key k(dev(), p.pd), bk(dev(), p.pd);
  const prm::Bsf b = bsf(psv, false, true), bb = bsf(bpsv, false, true);
  good(configure(p.a, k.key(), p.asge(0, 8192), &b));
  good(set_psv(p.a, psv.wire, kApp, kRef));
  const Bytes want = with_dif(p.amem.data(), 16, kApp, kRef);
  // Seen at a plain receiver.
  p.b.post_recv({p.bsge(0, 60000)});
  auto w = p.wr(WqeOp::kSend, 0, 0);
  w.sges = {{0, k.key(), static_cast<std::uint32_t>(want.size())}};
  p.a.post(w);
  good(p.acq.wait_one());
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, want.size());
  EXPECT_EQ(std::memcmp(p.bmem.data(), want.data(), want.size()), 0);
  // By RDMA WRITE into a key that strips them.
  good(configure(p.b, bk.key(), p.bsge(20000, 8192), &bb));
  good(set_psv(p.b, bpsv.wire, kApp, kRef));
  w.op = WqeOp::kRdmaWrite;
  w.raddr = 0;
  w.rkey = bk.key();
  p.a.post(w);
  good(p.acq.wait_one());
  EXPECT_EQ(std::memcmp(p.bmem.data() + 20000, p.amem.data(), 8192), 0);
  EXPECT_FALSE(p.bcq.ready()) << "no error";
  // And read through it: made again, stripped by the other key.
  std::memset(p.amem.data(), 0, 8192);
  w.op = WqeOp::kRdmaRead;
  p.a.post(w);
  good(p.acq.wait_one());
  EXPECT_EQ(std::memcmp(p.bmem.data() + 20000, p.amem.data(), 8192), 0);
  EXPECT_FALSE(p.acq.ready());
}

TEST_F(Signature, PiecesOfTheStreamInAnyOrder) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  p.fill(2);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  const prm::Bsf b = bsf(psv, false, true);
  good(configure(p.b, k.key(), p.bsge(0, 8192), &b));
  good(set_psv(p.b, psv.wire, kApp, kRef));
  const Bytes want = with_dif(p.bmem.data(), 16, kApp, kRef);
  const std::pair<std::uint32_t, std::uint32_t> parts[] = {
      {0, 1}, {1, 519}, {515, 10}, {512, 8}, {516, 4}, {520, 520}, {100, 7000}, {8319, 1}, {0, 8320}};
  for (const auto& [at, len] : parts) {
    auto w = p.wr(WqeOp::kRdmaRead, 0, len);
    w.raddr = at;
    w.rkey = k.key();
    p.a.post(w);
    good(p.acq.wait_one());
    EXPECT_EQ(std::memcmp(p.amem.data(), want.data() + at, len), 0) << at << "+" << len;
  }
  auto w = p.wr(WqeOp::kRdmaRead, 0, 521);
  w.raddr = 8320 - 520;
  w.rkey = k.key();
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
}

TEST_F(Signature, HugeBlocksAreNotReadOverAndOver) {
  breaks({"mr-list"});
  Pair p(dev());
  p.fill(8);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  // A gigabyte: the same pages many times.
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 2;
  s.len = 1u << 30;
  for (unsigned i = 0; i < 16; ++i) s.klm.push_back({65536, p.bmr.key(), p.bmr.start()});
  Mr small(dev(), [&] {
    MkeySpec t = s;
    t.len = 1u << 20;
    return t;
  }());
  s.klm.clear();
  for (unsigned i = 0; i < 1024; ++i) s.klm.push_back({1u << 20, small.key(), 0});
  Mr big(dev(), s);
  prm::Bsf b = bsf(psv, false, true);
  b.wire_bs = 5;
  good(configure(p.b, k.key(), {0, big.key(), 1u << 30}, &b));
  good(set_psv(p.b, psv.wire, kApp, kRef));
  const std::uint64_t read_before = machine().memory().bytes_read();
  auto w = p.wr(WqeOp::kRdmaRead, 0, 64);
  w.raddr = (1u << 30) - 4096 - 65536 + 17;
  w.rkey = k.key();
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data() + 61440 + 17, 64), 0);
  EXPECT_LT(machine().memory().bytes_read() - read_before, 1u << 20);
  w = p.wr(WqeOp::kRdmaRead, 0, 2);
  w.raddr = (1u << 30) + 3;  // within the signature
  w.rkey = k.key();
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  expect_serves_on();
}

TEST_F(Signature, MemoryIsCheckedAndStripped) {
  Pair p(dev());
  p.fill(3);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  const prm::Bsf b = bsf(psv, true, false);
  const Bytes data(p.amem.data(), p.amem.data() + 4096);
  const Bytes image = with_dif(data.data(), 8, kApp, kRef);
  for (const int spoil : {-1, 5 * 520 + 512, 5 * 520 + 515, 5 * 520 + 518, 5 * 520 + 9}) {
    std::memcpy(p.amem.data(), image.data(), image.size());
    if (spoil >= 0) p.amem.data()[spoil] ^= 1;
    good(configure(p.a, k.key(), p.asge(0, 8 * 520), &b));
    good(set_psv(p.a, psv.mem, kApp, kRef));
    p.b.post_recv({p.bsge(0, 8192)});
    auto w = p.wr(WqeOp::kSend, 0, 0);
    w.sges = {{0, k.key(), 4096}};
    p.a.post(w);
    Completion c = p.acq.wait_one();
    if (spoil >= 0) {
      ASSERT_EQ(c.op, prm::CqeOp::kSigErr);
      prm::SigErrCqe e;
      std::memcpy(&e, &c.raw, sizeof e);
      EXPECT_EQ(e.mkey, k.key());
      EXPECT_EQ(e.domain, 1);
      EXPECT_EQ(e.qpn, p.a.qpn());
      EXPECT_EQ(e.offset / 520, 5u);
      const std::uint16_t want = spoil % 520 == 515   ? prm::SigErrCqe::kAppTag
                                 : spoil % 520 == 518 ? prm::SigErrCqe::kRefTag
                                                      : prm::SigErrCqe::kGuard;
      EXPECT_EQ(e.syndrome, want);
      if (want == prm::SigErrCqe::kRefTag) {
        EXPECT_EQ(e.expected_ref_tag, kRef + 5);
        EXPECT_EQ(e.actual_ref_tag, (kRef + 5) ^ 0x100);
      }
      c = p.acq.wait_one();
    }
    good(c);
    EXPECT_EQ(p.bcq.wait_one().byte_cnt, 4096u);
    if (spoil != 5 * 520 + 9) {
      EXPECT_EQ(std::memcmp(p.bmem.data(), data.data(), 4096), 0);
    }
  }
}

TEST_F(Signature, MadeInMemoryOnTheWayIn) {
  Pair p(dev());
  p.fill(4);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  const prm::Bsf b = bsf(psv, true, false);
  good(configure(p.b, k.key(), p.bsge(0, 16 * 520), &b));
  good(set_psv(p.b, psv.mem, kApp, kRef));
  const Bytes want = with_dif(p.amem.data(), 16, kApp, kRef);
  p.b.post_recv({{0, k.key(), 8192}});
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kSend, 0, 8192)));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 8192u);
  EXPECT_EQ(std::memcmp(p.bmem.data(), want.data(), want.size()), 0);
}

// The guard of a block, of which some packets are in memory when a page is missing, is that of all of it.
TEST_F(Signature, APageThatIsMissingWithinABlock) {
  PairOptions small;
  small.attr.mtu = 256;
  Pair p(dev(), small);
  p.fill(4);
  PagedMemory paged(dev(), p.pd, 4);
  paged.map(0, 1);
  paged.map(2, 1);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  const prm::Bsf b = bsf(psv, true, false);
  good(configure(p.b, k.key(), paged.sge(0, 16 * 520), &b));
  good(set_psv(p.b, psv.mem, kApp, kRef));
  p.b.post_recv({{0, k.key(), 8192}});
  const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 8192));
  const Fault f = next_fault();
  EXPECT_EQ(f.kind, kReceiveFault);
  EXPECT_NE(f.done % 512, 0u) << "at the edge of a block";
  paged.map(1, 1);
  EXPECT_CMD_OK(resume(f));
  expect_good(p.acq, n);
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 8192u);
  const Bytes want = with_dif(p.amem.data(), 16, kApp, kRef);
  EXPECT_EQ(std::memcmp(paged.mem.data(), want.data(), want.size()), 0);
}

TEST_F(Signature, PassedThroughWithCopiedParts) {
  Pair p(dev());
  p.fill(5);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  prm::Bsf b = bsf(psv, true, true);
  b.wire_bs = 0xc0;  // the guard is copied
  b.check_mask = 0x3f;
  b.wire.reftag = 77;
  const Bytes data(p.amem.data(), p.amem.data() + 2048);
  Bytes image = with_dif(data.data(), 4, kApp, kRef);
  image[512] ^= 0x55;  // not checked, but kept
  std::memcpy(p.amem.data(), image.data(), image.size());
  good(configure(p.a, k.key(), p.asge(0, 4 * 520), &b));
  good(set_psv(p.a, psv.mem, kApp, kRef));
  good(set_psv(p.a, psv.wire, kApp, 77));
  p.b.post_recv({p.bsge(0, 8192)});
  auto w = p.wr(WqeOp::kSend, 0, 0);
  w.sges = {{0, k.key(), 4 * 520}};
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 4u * 520);
  Bytes want = with_dif(data.data(), 4, kApp, 77);
  want[512] ^= 0x55;
  EXPECT_EQ(std::memcmp(p.bmem.data(), want.data(), want.size()), 0);
}

TEST_F(Signature, Crc32OfTheWire) {
  Pair p(dev());
  const char digits[] = "123456789";  // whose CRC32 is 0xcbf43926
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  prm::Bsf b{};
  b.size_sbs = prm::Bsf::kSizeWithInline << 6;
  b.wire_bs = 1;
  b.wire_bfs_psv = static_cast<std::uint32_t>(prm::Bsf::kFormatCrc32) << 24 | psv.wire;
  std::memset(p.amem.data(), 0, 512);
  std::memcpy(p.amem.data() + 503, digits, 9);
  good(configure(p.a, k.key(), p.asge(0, 512), &b));
  good(set_psv(p.a, psv.wire, 0xffffffff, 0));
  p.b.post_recv({p.bsge(0, 8192)});
  auto w = p.wr(WqeOp::kSend, 0, 0);
  w.sges = {{0, k.key(), 516}};
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 516u);
  std::uint32_t crc = ~0u;
  for (int i = 0; i < 512; ++i) {
    crc ^= p.amem.data()[i];
    for (int j = 0; j < 8; ++j) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  std::uint32_t got;
  std::memcpy(&got, p.bmem.data() + 512, 4);
  EXPECT_EQ(got, ~crc);
}

TEST_F(Signature, AnErrorIsToldOnceAndDrainsTheQueueThatAsks) {
  Pair p(dev());
  p.fill(6);
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  const prm::Bsf b = bsf(psv, true, false);
  good(configure(p.a, k.key(), p.asge(0, 8 * 520), &b));
  good(set_psv(p.a, psv.mem, kApp, kRef));
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 0);
  w.sges = {{0, k.key(), 4096}};
  p.a.post(w);
  EXPECT_EQ(p.acq.wait_one().op, prm::CqeOp::kSigErr);
  good(p.acq.wait_one());
  p.a.post(w);
  EXPECT_EQ(p.acq.wait_one().op, prm::CqeOp::kReq) << "until a UMR takes note";
  // A QP that drains.
  ASSERT_TRUE(p.a.to_reset().ok());
  ASSERT_TRUE(p.b.to_reset().ok());
  const QpAttr attr_a = [&] {
    QpAttr a;
    a.remote_qpn = p.b.qpn();
    return a;
  }();
  QpAttr attr_b;
  attr_b.remote_qpn = p.a.qpn();
  EXPECT_CMD_OK(p.a.to_init(attr_a));
  EXPECT_CMD_OK(p.a.modify(prm::op::INIT2INIT_QP, 1 << 11,
                           [](std::uint8_t* qpc) { prm::set<prm::qpc::drain_sigerr>(qpc, 1); }));
  EXPECT_CMD_OK(p.a.to_rtr(attr_a));
  EXPECT_CMD_OK(p.a.to_rts(attr_a));
  p.b.connect(attr_b);
  good(configure(p.a, k.key(), p.asge(0, 8 * 520), &b));
  good(set_psv(p.a, psv.mem, kApp, kRef));
  w.signaled = false;
  p.b.post_recv({p.bsge(0, 4096)});
  p.a.post(w, false);
  auto next = p.wr(WqeOp::kSend, 0, 16);
  next.fence = prm::kFenceFence;
  const auto n = p.a.post(next);
  EXPECT_EQ(p.acq.wait_one().op, prm::CqeOp::kSigErr);
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_FALSE(p.bcq.ready());
  EXPECT_EQ(p.a.state(), QpState::kSqd);
  EXPECT_EQ(p.a.query().must().get<prm::query_qp_out::qpc::hw_sq_wqebb_counter>(), n);
  EXPECT_CMD_OK(p.a.modify(prm::op::SQD_RTS_QP, 0, [](std::uint8_t*) {}));
  expect_good(p.acq, n);
  good(p.bcq.wait_one());
}

TEST_F(Signature, WhatIsRefused) {
  breaks({"cap-not-offered", "mr-list", "wqe-umr"});
  Pair p(dev());
  const Psvs psv(dev(), p.pd);
  const Key k(dev(), p.pd);
  EXPECT_CMD_STATUS(create(dev(), p.pd, 5), prm::CmdStatus::kBadParam);
  const auto renew = [&] {
    ASSERT_TRUE(p.a.to_reset().ok());
    ASSERT_TRUE(p.b.to_reset().ok());
    connect_pair(p.a, p.b);
  };
  prm::Bsf b = bsf(psv, true, false);
  b.mem_bs = 9;
  expect_error(configure(p.a, k.key(), p.asge(0, 520), &b), prm::CqeSyndrome::kMwBind);
  renew();
  b = bsf(psv, true, false);
  b.size_sbs = 0;
  expect_error(configure(p.a, k.key(), p.asge(0, 520), &b), prm::CqeSyndrome::kMwBind);
  renew();
  // A key without room for it.
  b = bsf(psv, true, false);
  Mr plain(dev(), empty(p.pd));
  expect_error(configure(p.a, plain.key(), p.asge(0, 520), &b), prm::CqeSyndrome::kMwBind);
  renew();
  expect_error(set_psv(p.a, 0xabcde, 0, 0), prm::CqeSyndrome::kMwBind);
  renew();
  // A variable that is not there is found when it is used.
  b.mem_bfs_psv = 0xabcde;
  good(configure(p.a, k.key(), p.asge(0, 520), &b));
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 0);
  w.sges = {{0, k.key(), 512}};
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalProt);
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
