// SPDX-License-Identifier: BSD-3-Clause
// Worlds of IPsec: ESP of which the driver makes the headers, and ESP that the card makes and takes away.
#include "crypto_parts.h"
#include "esp_packets.h"

namespace hcasim::bare {
namespace {

using esp_packets::Bytes;
constexpr std::size_t kEth = 14, kIpv4 = 20, kEsp = esp_packets::kHead;
constexpr std::uint8_t kEspProtocol = 50, kIpip = 4, kUdpProtocol = 17;
constexpr std::uint32_t kType = prm::k::GENERAL_OBJECT_TYPES_IPSEC;

struct Sa {
  bool full = false, send = true, esn = false;
  std::uint64_t next = 1;
  std::uint32_t soft = 0, hard = 0;
};
EthObject make_sa(EthLink& link, const EthObject& dek, const Sa& sa) {
  using O = prm::create_ipsec_obj_in::ipsec_object;
  using A = O::ipsec_aso;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_ipsec_obj_in::bytes);
  in.set<O::esn_en>(sa.esn).set<O::esn_msb>(sa.next >> 32).set<O::dekn>(dek.number());
  std::copy(esp_packets::kSalt.begin(), esp_packets::kSalt.end(), in.data() + O::salt::bit_off / 8);
  std::copy(esp_packets::kImplicitIv.begin(), esp_packets::kImplicitIv.end(),
            in.data() + O::implicit_iv::bit_off / 8);
  if (sa.full) {
    in.set<O::full_offload>(1).set<O::aso_return_reg>(2).set<O::ipsec_aso_access_pd>(link.pd.pdn());
    in.set<A::valid>(1).set<A::mode_parameter>(sa.next & 0xffffffff).set<A::esn_event_arm>(sa.esn);
    in.set<A::mode>(sa.send ? prm::k::IPSEC_ASO_INC_SN : prm::k::IPSEC_ASO_REPLAY_PROTECTION);
    in.set<A::remove_flow_enable>(sa.hard != 0).set<A::hard_lft_arm>(sa.hard != 0);
    in.set<A::remove_flow_pkt_cnt>(sa.hard);
    in.set<A::soft_lft_arm>(sa.soft != 0).set<A::remove_flow_soft_lft>(sa.soft);
  }
  return make_general(link.dev, in, kType);
}
void modify_sa(Device& d, std::uint32_t id, Dice& dice) {
  using O = prm::modify_ipsec_obj_in::ipsec_object;
  using H = prm::general_obj_in_cmd_hdr;
  Mailbox in(prm::op::MODIFY_GENERAL_OBJECT, prm::modify_ipsec_obj_in::bytes);
  in.set<H::obj_type>(kType).set<H::obj_id>(id);
  in.set<O::modify_field_select>(dice.byte() & 3u)
      .set<O::esn_msb>(dice.byte())
      .set<O::esn_overlap>(dice.byte() & 1u);
  d.exec(in);
}

Frame inside(Dice& dice) {
  L4 l4;
  const std::uint8_t how = dice.byte();
  l4.v6 = (how & 1) != 0, l4.udp = (how & 2) != 0, l4.payload = dice.below(1000);
  return l4_frame(l4);
}
std::size_t l4_of(const Frame& f) { return kEth + (f[12] == 0x86 ? 40 : 20); }
std::uint8_t protocol(const Frame& f) { return f[12] == 0x86 ? f[kEth + 6] : f[kEth + 9]; }
Frame head_of(const Frame& f, std::size_t bytes) {
  return {f.begin(), f.begin() + static_cast<std::ptrdiff_t>(bytes)};
}
void append(Frame& f, const Bytes& b, std::size_t from = 0) {
  f.insert(f.end(), b.begin() + static_cast<std::ptrdiff_t>(from), b.end());
}

class Ipsec : public World {
 public:
  explicit Ipsec(Device& d)
      : link_(d),
        sq_(d, link_.pd, link_.scq, link_.tis.number(), 7, true),
        dek_(make_dek(d, link_.pd, prm::kKeyPurposeIpsec, esp_packets::kKey)),
        out_(d, kNicTxTable, 0, 2, spi(~0u)) {
    renew(false);
  }
  ~Ipsec() override {
    link_.steer_to(0);
    take_down();
  }
  void work(Dice& dice) override {
    if (dice.chance(10)) renew(dice.chance(50));
    for (unsigned n = 0; n < 3; ++n) {
      link_.rq.post({link_.rx_sge(0, 16384)});
      if (dice.chance(50))
        send(dice);
      else
        receive(dice);
    }
    link_.dev.machine().advance(20'000);
    if (dice.chance(20)) modify_sa(link_.dev, objects_.front().number(), dice);
    query_general(link_.dev, kType, objects_.front().number());
    if (sq_.state() != 1) {
      sq_.modify(3, 0);
      sq_.modify(0, 1);
    }
    revive(link_);
    bare::drain(link_.scq);
    drain(link_.rcq);
  }

 private:
  static MatchParam spi(std::uint32_t v) {
    MatchParam m{};
    prm::set<prm::fte_match_set_misc::outer_esp_spi>(m.data() + 64, v);
    return m;
  }
  void take_down() {
    while (!rules_.empty()) rules_.pop_back();
    while (!objects_.empty()) objects_.pop_back();
  }
  void renew(bool esn) {
    using namespace prm::k;
    take_down();
    Sa sa;
    sa.esn = esn, sa.next = number_ = esn ? 0x7'fffffff0 : 1;
    objects_.push_back(make_sa(link_, dek_, sa));
    objects_.push_back(make_modify_header(
        link_.dev, {set_field(ACTION_IN_FIELD_METADATA_REG_B, 1u << 31),
                    copy_field(ACTION_IN_FIELD_IPSEC_SYNDROME, ACTION_IN_FIELD_METADATA_REG_B, 7, 0, 24)}));
    FlowRule e = out_.rule();
    e.value = spi(esp_packets::kSpi);
    e.action = kEncryptAction, e.allow = true, e.crypto = objects_.front().number();
    rules_.push_back(make_flow(link_.dev, e));
    set_flow_root(link_.dev, out_.table.number(), kNicTxTable).must();
    link_.steer_to(0);
    FlowRule r;
    r.table = link_.table.number(), r.group = link_.all.number(), r.index = kCatchAll;
    r.to = {{FlowDest::kTir, link_.tir.number()}};
    r.action = kDecryptAction | kModifyAction;
    r.modify = objects_.back().number(), r.crypto = objects_.front().number();
    rules_.push_back(make_flow(link_.dev, r));
  }
  // A packet in transport or tunnel mode whose headers are the driver's.
  void send(Dice& dice) {
    const Frame in = inside(dice);
    const bool tunnel = dice.chance(40), v6 = in[12] == 0x86, udp = protocol(in) == kUdpProtocol;
    EthWr wr;
    Frame f = tunnel ? head_of(l4_frame(L4{}), kEth + kIpv4) : head_of(in, l4_of(in));
    append(f, esp_packets::head(number_++));
    append(f, in, tunnel ? kEth : l4_of(in));
    finish_ip(f, kEspProtocol);
    wr.given.outer_l3 = kEth;
    if (tunnel) {
      wr.given.inner_l3 = kEth + kIpv4 + kEsp;
      wr.given.inner_l4 = static_cast<unsigned>(wr.given.inner_l3 + l4_of(in) - kEth);
      wr.given.flags = v6 ? prm::EthSeg::kInnerIpv6 : 0;
      wr.cs_flags = prm::EthSeg::kL3Csum | prm::EthSeg::kL3InnerCsum | prm::EthSeg::kL4InnerCsum;
    } else {
      wr.given.outer_l4 = static_cast<unsigned>(l4_of(in) + kEsp);
      wr.given.flags =
          static_cast<std::uint8_t>((v6 ? prm::EthSeg::kOuterIpv6 : 0) | (udp ? prm::EthSeg::kOuterUdp : 0));
      wr.cs_flags = prm::EthSeg::kL3Csum | prm::EthSeg::kL4Csum;
    }
    const std::size_t len = in.size() - (tunnel ? kEth : l4_of(in));
    wr.trailer = esp_packets::trailer(len, tunnel ? kIpip : protocol(in));
    if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
    if (dice.chance(spoiling_)) wr.given.outer_l4 = dice.byte() * 2u;
    if (dice.chance(spoiling_)) dice.spoil(wr.trailer.data(), wr.trailer.size());
    link_.put(0, f);
    wr.sges = {link_.tx_sge(0, static_cast<std::uint32_t>(f.size()))};
    if (!tunnel && !udp && dice.chance(30)) {
      const std::size_t heads = l4_of(in) + kEsp + 20;
      wr.op = WqeOp::kLso;
      wr.headers.assign(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(std::min(heads, f.size())));
      wr.mss = 300;
      wr.trailer = esp_packets::trailer(20 + 300, protocol(in));
      wr.sges = {link_.tx_sge(heads, static_cast<std::uint32_t>(f.size() - std::min(heads, f.size())))};
    }
    sq_.post(wr);
  }
  // A packet of another, sealed as it is given.
  void receive(Dice& dice) {
    const std::uint64_t n = dice.chance(80) ? number_++ : dice.below(100);
    Bytes esp =
        esp_packets::sealed(esp_packets::packet(n, Bytes(dice.below(400), 0x44), 6), n, dice.chance(30));
    if (dice.chance(15)) dice.spoil(esp.data(), esp.size());
    Frame f = head_of(l4_frame(L4{}), kEth + kIpv4);
    append(f, esp);
    finish_ip(f, kEspProtocol);
    prm::store32(f.data() + kEth + kIpv4, esp_packets::kSpi ^ 1);  // not what the sender's entry looks for
    link_.send(f, prm::EthSeg::kL3Csum);
  }

  EthLink link_;
  Sq sq_;
  EthObject dek_;
  FlowPlace out_;
  std::vector<EthObject> objects_, rules_;
  std::uint64_t number_ = 1;
};

class IpsecPackets : public World {
 public:
  explicit IpsecPackets(Device& d)
      : link_(d),
        dek_(make_dek(d, link_.pd, prm::kKeyPurposeIpsec, esp_packets::kKey)),
        context_(d.memory().allocate(4096)),
        context_mr_(d, Mr::of(link_.pd, context_)),
        out_(d, kNicTxTable, 0),
        status_(d, kNicRxTable, 10, 8, good_mask()),
        in_(d, kNicRxTable, 5) {
    FlowRule r = status_.rule();
    r.to = {{FlowDest::kTir, link_.tir.number()}};
    rules_.push_back(make_flow(d, r));
    link_.steer_to(0);
    FlowRule all;
    all.table = link_.table.number(), all.group = link_.all.number(), all.index = kCatchAll;
    all.to = {{FlowDest::kTable, in_.table.number()}};
    rules_.push_back(make_flow(d, all));
    set_flow_root(d, out_.table.number(), kNicTxTable).must();
    renew(0, 0, false, true);
  }
  ~IpsecPackets() override {
    take_down();
    while (!rules_.empty()) rules_.pop_back();
  }
  void work(Dice& dice) override {
    if (dice.chance(15))
      renew(static_cast<unsigned>(dice.below(5)), static_cast<unsigned>(dice.below(3)), dice.chance(30),
            dice.chance(60));
    for (unsigned n = 0; n < 3; ++n) {
      link_.rq.post({link_.rx_sge(0, 16384)});
      Frame f = dice.chance(90) ? inside(dice) : any_frame(dice);
      if (!sends_ && dice.chance(60)) f = sealed(f, dice);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
      link_.send(f, dice.chance(80) ? kAllSums & 0xc0 : 0);
    }
    link_.dev.machine().advance(20'000);
    for (const EthObject& o : {std::cref(sa_[0]), std::cref(sa_[1])}) {
      if (dice.chance(20)) access_aso(link_.sq, prm::kAsoIpsec, o.number(), context_mr_, dice);
      if (dice.chance(20)) modify_sa(link_.dev, o.number(), dice);
      query_general(link_.dev, kType, o.number());
    }
    revive(link_);
    bare::drain(link_.scq);
    drain(link_.rcq);
  }

 private:
  static MatchParam good_mask() {
    MatchParam m{};
    prm::set<prm::fte_match_set_misc2::ipsec_syndrome>(m.data() + kMisc2At, 0xff);
    prm::set<prm::fte_match_set_misc2::metadata_reg_c_4>(m.data() + kMisc2At, ~0u);
    return m;
  }
  void take_down() {
    while (!crypto_rules_.empty()) crypto_rules_.pop_back();
    while (!reformats_.empty()) reformats_.pop_back();
    while (!sa_.empty()) sa_.pop_back();
  }
  static Bytes header(unsigned kind) {
    Bytes h;
    if (kind == 4) {  // a tunnel
      h = head_of(l4_frame(L4{}), kEth + kIpv4);
      h[kEth + 9] = kEspProtocol;
    }
    if (kind == 2 || kind == 3) {
      h.resize(8);
      prm::store16(h.data(), 4500), prm::store16(h.data() + 2, 4500);
    }
    Bytes spi(kEsp);
    prm::store32(spi.data(), esp_packets::kSpi);
    h.insert(h.end(), spi.begin(), spi.end());
    return h;
  }
  // Both directions: what leaves is made ESP of if it sends, else it leaves as it is.
  void renew(unsigned kind, unsigned back, bool esn, bool sends) {
    using namespace prm::k;
    take_down();
    kind_ = kind, back_ = back, sends_ = sends, number_ = esn ? 0xfffffff0 : 1, esn_ = esn;
    Sa sa;
    sa.full = true, sa.esn = esn, sa.next = number_;
    sa.hard = back == 1 ? 20 : 0, sa.soft = back == 1 ? 10 : 0;
    sa_.push_back(make_sa(link_, dek_, sa));
    sa.send = false, sa.soft = sa.hard = 0;
    sa_.push_back(make_sa(link_, dek_, sa));
    static constexpr std::array<unsigned, 5> kAdd{
        REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4, REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6,
        REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4, REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV6,
        REFORMAT_TYPE_L2_TO_L3_ESP_TUNNEL};
    static constexpr std::array<unsigned, 3> kDel{REFORMAT_TYPE_DEL_ESP_TRANSPORT,
                                                  REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP,
                                                  REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2};
    Reformat add, del;
    add.type = kAdd[kind], add.data = header(kind), add.anchor = 4;
    // What takes away fits what is put in, but for chance's sake.
    const unsigned fitting = kind == 4 ? 2 : kind >= 2 ? 1 : 0;
    del.type = kDel[sends ? fitting : back];
    if (del.type == REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2)
      del.data = head_of(l4_frame(L4{}), kEth), del.anchor = 4;
    reformats_.push_back(make_reformat(link_.dev, add));
    reformats_.push_back(make_reformat(link_.dev, del));
    if (sends) {
      FlowRule e = out_.rule();
      e.allow = true, e.action = kEncryptAction | kReformatAction;
      e.reformat = reformats_[0].number(), e.crypto = sa_[0].number();
      crypto_rules_.push_back(make_flow(link_.dev, e));
    }
    FlowRule r = in_.rule();
    r.to = {{FlowDest::kTable, status_.table.number()}};
    r.action = kDecryptAction | kReformatAction;
    r.reformat = reformats_[1].number(), r.crypto = sa_[1].number();
    crypto_rules_.push_back(make_flow(link_.dev, r));
  }
  Frame sealed(const Frame& f, Dice& dice) {
    const std::uint64_t n = dice.chance(80) ? number_++ : dice.below(100);
    const bool tunnel = back_ == 2;
    if (f.size() < 60) return f;
    const std::size_t from = std::min(f.size(), tunnel ? kEth : l4_of(f));
    Frame out = tunnel ? head_of(l4_frame(L4{}), kEth + kIpv4) : head_of(f, from);
    if (back_ == 1) append(out, header(2)), out.resize(out.size() - kEsp);
    append(out, esp_packets::sealed(
                    esp_packets::packet(n, Bytes(f.begin() + static_cast<std::ptrdiff_t>(from), f.end()),
                                        tunnel ? kIpip : protocol(f)),
                    n, esn_));
    finish_ip(out, back_ == 1 ? kUdpProtocol : kEspProtocol);
    return out;
  }

  EthLink link_;
  EthObject dek_;
  Buffer context_;
  Mr context_mr_;
  FlowPlace out_, status_, in_;
  std::vector<EthObject> rules_, sa_, reformats_, crypto_rules_;
  unsigned kind_ = 0, back_ = 0;
  bool sends_ = true, esn_ = false;
  std::uint64_t number_ = 1;
};

}  // namespace

std::unique_ptr<World> make_ipsec(Device& device) { return std::make_unique<Ipsec>(device); }
std::unique_ptr<World> make_ipsec_packets(Device& device) { return std::make_unique<IpsecPackets>(device); }

}  // namespace hcasim::bare
