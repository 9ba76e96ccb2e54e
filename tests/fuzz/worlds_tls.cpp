// SPDX-License-Identifier: BSD-3-Clause
// A world of TLS in line: records that leave by a TIS are encrypted, those that come to a TIR decrypted.
#include "crypto_parts.h"
#include "tls_records.h"

namespace hcasim::bare {
namespace {

using tls_records::kFirst;
using tls_records::kStart;

class Tls : public World {
 public:
  explicit Tls(Device& d)
      : link_(d), dek_(make_dek(d, link_.pd, 1, tls_records::kKey)), tis_(tls_tis()), tir_(tls_tir()) {
    link_.steer_to(tir_.number());
    begin(1, 7);
  }
  ~Tls() override { link_.steer_to(0); }
  void work(Dice& dice) override {
    if (at_ >= stream_->plain.size() || dice.chance(5)) begin(dice.byte(), dice.byte());
    for (unsigned n = 0; n < 4 && at_ < stream_->plain.size(); ++n) step(dice);
    link_.dev.machine().advance(20'000);
    if (link_.sq.state() != 1) {
      link_.sq.modify(3, 0);
      link_.sq.modify(0, 1);
    }
    query_general(link_.dev, prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY, dek_.number());
    bare::drain(link_.scq);
    drain(link_.rcq, decrypted);
  }

 private:
  static bool decrypted(const Completion& c) {
    return (c.raw.tls_outer_l3_tunneled >> prm::kCqeTlsShift & 3) ==
           static_cast<int>(prm::CqeTls::kDecrypted);
  }
  // A connection of new records, both ways.
  void begin(unsigned a, unsigned b) {
    stream_ = std::make_unique<tls_records::Stream>(std::vector<std::size_t>{a * 10u, b, 0, b * 30u, 1000});
    at_ = 0;
    clear_ = (a & 3) != 0;
    start(prm::kTlsOfTis, tis_.number(), kFirst, 0, 0);
    start(prm::kTlsOfTir, tir_.number(), kFirst, kStart, 0);
  }
  void start(std::uint8_t opmod, std::uint32_t number, std::uint64_t first, std::uint32_t sn,
             std::uint32_t resync) {
    std::vector<std::uint8_t> wqe(192);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kUmr, link_.sq.next_index(), link_.sq.sqn(), 12, prm::kCeAlways, false, opmod);
    ctrl.imm = number << 8;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::UmrCtrlSeg umr{};
    umr.flags = prm::kUmrInline;
    umr.xlt_offset = prm::tls_static_params::bytes / 16;
    std::memcpy(wqe.data() + 16, &umr, sizeof umr);
    std::uint8_t* s = wqe.data() + 128;
    using t = prm::tls_static_params;
    prm::set<t::tls_version>(s, first % 8 == 7 ? prm::kTlsVersion13 : prm::kTlsVersion12);
    prm::set<t::const_1>(s, prm::kTlsConst1);
    prm::set<t::const_2>(s, prm::kTlsConst2);
    prm::set<t::encryption_standard>(s, prm::kEncryptionTls);
    prm::set<t::initial_record_number>(s, first);
    prm::set<t::resync_tcp_sn>(s, resync);
    prm::set<t::gcm_iv>(s, tls_records::kSalt);
    prm::set<t::dek_index>(s, dek_.number());
    send_raw(wqe);
    if (resync == 0) progress(opmod, number, sn);
  }
  void progress(std::uint8_t opmod, std::uint32_t number, std::uint32_t sn) {
    std::vector<std::uint8_t> wqe(32);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kSetPsv, link_.sq.next_index(), link_.sq.sqn(), 2, prm::kCeAlways, false, opmod);
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::TlsProgressSeg seg{};
    seg.tis_tir_num = number;
    prm::set<prm::tls_progress_params::next_record_tcp_sn>(seg.params, sn);
    std::memcpy(wqe.data() + 16, &seg, sizeof seg);
    send_raw(wqe);
  }
  void ask() {
    std::vector<std::uint8_t> wqe(64);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kGetPsv, link_.sq.next_index(), link_.sq.sqn(), 4, prm::kCeAlways, false, prm::kTlsOfTir);
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::GetPsvSeg seg{};
    seg.num_psv = 1 << 4;
    seg.lkey = link_.rxr.key();
    seg.va = link_.rxr.start() + (200 << 10);
    seg.index[0] = tir_.number();
    std::memcpy(wqe.data() + 16, &seg, sizeof seg);
    send_raw(wqe);
  }
  void dump(std::size_t from, std::size_t to) {
    constexpr std::size_t kAt = 128 << 10;
    std::copy_n(stream_->plain.data() + from, to - from, link_.tx.data() + kAt);
    std::vector<std::uint8_t> wqe(32);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kDump, link_.sq.next_index(), link_.sq.sqn(), 2, prm::kCeAlways);
    ctrl.imm = tis_.number() << 8;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::DataSeg seg;
    seg.byte_count = static_cast<std::uint32_t>(to - from);
    seg.lkey = link_.txr.key();
    seg.addr = link_.txr.start() + kAt;
    std::memcpy(wqe.data() + 16, &seg, sizeof seg);
    send_raw(wqe);
  }
  void send_raw(std::vector<std::uint8_t>& wqe) {
    if (dice_ != nullptr && dice_->chance(spoiling_ / 3)) dice_->spoil(wqe.data(), wqe.size(), 8);
    link_.sq.post_raw(wqe, static_cast<unsigned>((wqe.size() + 63) / 64));
  }
  void segment(std::size_t from, std::size_t to, bool clear, bool large, Dice& dice) {
    constexpr std::size_t kTcp = 54;
    L4 l4;
    l4.payload = to - from;
    Frame f = l4_frame(l4);
    prm::store32(f.data() + 38, kStart + static_cast<std::uint32_t>(from));
    const auto& bytes = clear ? stream_->plain : stream_->cipher;
    std::copy_n(bytes.data() + from, to - from, f.data() + kTcp);
    if (dice.chance(spoiling_ / 2)) dice.spoil(f.data(), f.size(), 12);
    const std::size_t off = EthLink::kSlot * (link_.sent++ % 4);
    link_.put(off, f);
    for (unsigned i = 0; i < (large ? 4 : 1); ++i)
      link_.rq.post({link_.rx_sge(2048 * (posted_++ % 32), 2048)});
    EthWr wr;
    wr.cs_flags = prm::EthSeg::kL3Csum | prm::EthSeg::kL4Csum;
    wr.tis = clear ? tis_.number() : 0;
    wr.sges = {link_.tx_sge(off, static_cast<std::uint32_t>(f.size()))};
    if (large) {
      wr.op = WqeOp::kLso;
      wr.headers.assign(f.begin(), f.begin() + kTcp);
      wr.mss = 700;
      wr.sges = {link_.tx_sge(off + kTcp, static_cast<std::uint32_t>(to - from))};
    }
    link_.sq.post(wr);
  }
  void step(Dice& dice) {
    dice_ = &dice;
    const std::size_t end = stream_->plain.size();
    const std::uint8_t how = dice.byte();
    const std::size_t to = std::min(end, at_ + 1 + (how % 4 == 0 ? dice.below(1400) : 1399));
    if (how % 32 == 1) {  // again, from within a record that has gone (mlx5e_ktls_tx_handle_ooo)
      const std::size_t record = dice.below(stream_->begins.size()), from = stream_->begins[record];
      start(prm::kTlsOfTis, tis_.number(), kFirst + record, 0, 0);
      if (at_ > from) dump(from, std::min(at_, from + 1400));
    } else if (how % 64 == 2) {  // lost
      at_ = to;
      return;
    } else if (how % 32 == 3) {  // asked for, and confirmed
      ask();
      const std::size_t record = dice.below(stream_->begins.size());
      start(prm::kTlsOfTir, tir_.number(), kFirst + record, 0,
            kStart + static_cast<std::uint32_t>(stream_->begins[record]));
    } else if (how % 64 == 4) {
      progress(prm::kTlsOfTir, tir_.number(), kStart + static_cast<std::uint32_t>(at_));
    }
    segment(at_, to, clear_ != (how == 5), (how & 0xc0) == 0, dice);
    at_ = to;
    dice_ = nullptr;
  }
  EthObject tls_tis() {
    using In = prm::create_tis_in;
    Device& d = link_.dev;
    Mailbox in(prm::op::CREATE_TIS, In::bytes);
    in.set<In::ctx::transport_domain>(link_.td.number()).set<In::ctx::tls_en>(1);
    const auto n =
        static_cast<std::uint32_t>(d.exec(in.set<In::ctx::pd>(link_.pd.pdn()), prm::create_tis_out::bytes)
                                       .must()
                                       .get<prm::create_tis_out::tisn>());
    return {d, n, [&d, n] {
              using Gone = prm::destroy_tis_in;
              Mailbox gone(prm::op::DESTROY_TIS, Gone::bytes);
              return d.exec(gone.set<Gone::tisn>(n));
            }};
  }
  EthObject tls_tir() {
    using In = prm::create_tir_in;
    Device& d = link_.dev;
    Mailbox in(prm::op::CREATE_TIR, In::bytes);
    in.set<In::ctx::inline_rqn>(link_.rq.rqn()).set<In::ctx::transport_domain>(link_.td.number());
    in.set<In::ctx::tls_en>(1).set<In::ctx::self_lb_block>(3).set<In::ctx::rx_hash_fn>(1);
    const auto n = static_cast<std::uint32_t>(
        d.exec(in, prm::create_tir_out::bytes).must().get<prm::create_tir_out::tirn>());
    return {d, n, [&d, n] {
              using Gone = prm::destroy_tir_in;
              Mailbox gone(prm::op::DESTROY_TIR, Gone::bytes);
              return d.exec(gone.set<Gone::tirn>(n));
            }};
  }

  EthLink link_;
  EthObject dek_, tis_, tir_;
  std::unique_ptr<tls_records::Stream> stream_;
  std::size_t at_ = 0;
  bool clear_ = true;  // segments are sent as the TIS encrypts them, or come encrypted
  unsigned posted_ = 0;
  Dice* dice_ = nullptr;
};

}  // namespace

std::unique_ptr<World> make_tls(Device& device) { return std::make_unique<Tls>(device); }

}  // namespace hcasim::bare
