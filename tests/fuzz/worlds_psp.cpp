// SPDX-License-Identifier: BSD-3-Clause
// A world of PSP: keys of the card's own, TCP that leaves encrypted, alone and in large sends, and comes
// back.
#include "crypto_parts.h"
#include "prm/psp.h"
#include "psp_packets.h"

namespace hcasim::bare {
namespace {

namespace psp = prm::psp;
using psp_packets::Bytes;

class Psp : public World {
 public:
  explicit Psp(Device& d)
      : link_(d),
        sq_(d, link_.pd, link_.scq, link_.tis.number(), 7, true),
        counter_(make_flow_counter(d)),
        marker_(make_modify_header(
            d, {copy_field(psp::kFieldSyndrome, prm::k::ACTION_IN_FIELD_METADATA_REG_B, 7, 0, 23)})),
        out_(d, kNicTxTable, 0, 1, to_port(0xffff)),
        status_(d, kNicRxTable, 10, 8, of_syndrome(0xff)),
        in_(d, kNicRxTable, 5) {
    FlowRule r = out_.rule();
    r.value = to_port(psp::kUdpPort);
    r.action = kEncryptAction, r.allow = true, r.crypto_type = FlowRule::kPsp, r.counter = counter_.number();
    rules_.push_back(make_flow(d, r));
    set_flow_root(d, out_.table.number(), kNicTxTable).must();
    for (const std::uint8_t syndrome : {0, 1, 2, 3}) {
      r = status_.rule(syndrome);
      r.value = of_syndrome(syndrome);
      r.to = {{FlowDest::kTir, link_.tir.number()}};
      r.action = kModifyAction, r.modify = marker_.number();
      rules_.push_back(make_flow(d, r));
    }
    r = in_.rule();
    r.to = {{FlowDest::kTable, status_.table.number()}};
    r.action = kDecryptAction, r.crypto_type = FlowRule::kPsp;
    rules_.push_back(make_flow(d, r));
    link_.steer_to(0);
    FlowRule all;
    all.table = link_.table.number(), all.group = link_.all.number(), all.index = kCatchAll;
    all.to = {{FlowDest::kTable, in_.table.number()}};
    rules_.push_back(make_flow(d, all));
    renew(false);
  }
  ~Psp() override {
    while (!rules_.empty()) rules_.pop_back();
  }
  void work(Dice& dice) override {
    if (dice.chance(20)) renew(dice.chance(50));
    if (dice.chance(10)) link_.dev.exec(Mailbox(psp::kOpRotateKey, psp::rotate_key_in::bytes));
    for (unsigned n = 0; n < 3; ++n) {
      for (unsigned i = 0; i < 3; ++i) link_.rq.post({link_.rx_sge(0, 16384)});
      dice.chance(60) ? send(dice) : receive(dice);
    }
    link_.dev.machine().advance(20'000);
    query_flow_counter(link_.dev, counter_.number());
    revive(link_);
    bare::drain(link_.scq);
    drain(link_.rcq);
  }

 private:
  static MatchParam to_port(unsigned port) {
    MatchParam m{};
    prm::set<prm::fte_match_set_lyr_2_4::udp_dport>(m.data(), port);
    return m;
  }
  static MatchParam of_syndrome(unsigned syndrome) {
    MatchParam m{};
    prm::set<psp::match_syndrome>(m.data() + kMisc2At, syndrome);
    return m;
  }
  void renew(bool longer) {
    Mailbox in(psp::kOpGenSpi, psp::gen_spi_in::bytes);
    in.set<psp::gen_spi_in::key_size>(longer ? 1 : 0).set<psp::gen_spi_in::num_of_spi>(1);
    const auto made = link_.dev.exec(in, psp::gen_spi_out::bytes + psp::key_spi::bytes).must();
    const std::uint8_t* p = made.out.data() + psp::gen_spi_out::bytes;
    spi_ = prm::get<psp::key_spi::spi>(p);
    key_ = {p + psp::key_spi::bytes - (longer ? 32 : 16), p + psp::key_spi::bytes};
    dek_.clear();
    dek_.push_back(make_dek(link_.dev, link_.pd, psp::kKeyPurpose, key_));
  }
  unsigned version() const { return key_.size() == 32 ? 1 : 0; }

  void send(Dice& dice) {
    L4 l4;
    l4.v6 = dice.chance(40), l4.payload = dice.below(2000);
    Frame f = psp_packets::encapsulated(l4_frame(l4), spi_, version());
    EthWr wr;
    const std::size_t tcp = psp_packets::at_psp(f) + psp::kHeader, headers = tcp + psp_packets::kTcp;
    wr.given.inner_l4 = static_cast<unsigned>(dice.chance(95) ? tcp : dice.below(510));
    if (l4.v6) wr.given.flags = prm::EthSeg::kOuterIpv6;
    wr.cs_flags = prm::EthSeg::kL3Csum | prm::EthSeg::kL4InnerCsum;
    wr.metadata = dice.chance(95) ? dek_[0].number() : dice.word();
    wr.trailer = Bytes(dice.chance(95) ? psp::kIcv : dice.below(48));
    wr.trailer_of_l4 = dice.chance(95);
    if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 14);
    link_.put(0, f);
    if (l4.payload > 700 && dice.chance(50)) {
      wr.op = WqeOp::kLso;
      wr.headers = {f.begin(), f.begin() + static_cast<std::ptrdiff_t>(headers)};
      wr.mss = 700;
      wr.sges = {link_.tx_sge(headers, static_cast<std::uint32_t>(f.size() - headers))};
    } else {
      wr.sges = {link_.tx_sge(0, static_cast<std::uint32_t>(f.size()))};
    }
    sq_.post(wr);
  }
  void receive(Dice& dice) {
    psp_packets::Head head;
    head.version = version(), head.iv = dice.any();
    head.options = static_cast<unsigned>(dice.below(3)),
    head.crypt_offset = static_cast<unsigned>(dice.below(8));
    Bytes p =
        psp_packets::sealed(psp_packets::packet(spi_, Bytes(40 + dice.below(400), dice.byte()), head), key_);
    if (dice.chance(spoiling_)) dice.spoil(p.data(), p.size(), 0);
    Frame f = psp_packets::in_udp(l4_frame(L4{}), p, psp_packets::kUdp + p.size());
    // To another port, or it would be encrypted once more; whatever comes is decrypted.
    prm::store16(f.data() + psp_packets::kEth + psp_packets::kIpv4 + 2,
                 psp::kUdpPort + (dice.chance(95) ? 1 : 0));
    link_.send(f);
  }

  EthLink link_;
  Sq sq_;
  EthObject counter_, marker_;
  FlowPlace out_, status_, in_;
  std::vector<EthObject> rules_, dek_;
  std::uint32_t spi_ = 0;
  Bytes key_;
};

}  // namespace

std::unique_ptr<World> make_psp(Device& device) { return std::make_unique<Psp>(device); }

}  // namespace hcasim::bare
