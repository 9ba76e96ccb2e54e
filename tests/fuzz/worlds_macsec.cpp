// SPDX-License-Identifier: BSD-3-Clause
// A world of MACsec: frames that leave are protected, those that come validated.
#include "crypto_parts.h"
#include "macsec_frames.h"

namespace hcasim::bare {
namespace {

using macsec_frames::How;
constexpr std::uint32_t kType = prm::k::GENERAL_OBJECT_TYPES_MACSEC;

class Macsec : public World {
 public:
  explicit Macsec(Device& d)
      : link_(d),
        dek_(make_dek(d, link_.pd, prm::kKeyPurposeMacsec, macsec_frames::kKey)),
        context_(d.memory().allocate(4096)),
        context_mr_(d, Mr::of(link_.pd, context_)),
        counter_(make_flow_counter(d)),
        marker_(make_modify_header(d, {set_field(prm::k::ACTION_IN_FIELD_METADATA_REG_B, 1u << 30 | 5)})),
        sent_(d, kNicTxTable, 1, 8, register_mask()),
        out_(d, kNicTxTable, 0),
        checked_(d, kNicRxTable, 10, 8 | 64, checked_mask()),
        in_(d, kNicRxTable, 5, 1, tagged(0xffff)) {
    FlowRule r = sent_.rule();
    r.allow = true, r.counter = counter_.number();
    rules_.push_back(make_flow(d, r));
    set_flow_root(d, out_.table.number(), kNicTxTable).must();
    link_.steer_to(0);
    FlowRule all;
    all.table = link_.table.number(), all.group = link_.all.number(), all.index = kCatchAll;
    all.to = {{FlowDest::kTable, in_.table.number()}};
    rules_.push_back(make_flow(d, all));
    renew(How{}, -1, true, 0);
  }
  ~Macsec() override {
    take_down();
    while (!rules_.empty()) rules_.pop_back();
  }
  void work(Dice& dice) override {
    if (dice.chance(15)) {
      How how;
      const std::uint8_t bits = dice.byte();
      how.sci = (bits & 1) != 0, how.xpn = (bits & 2) != 0, how.encrypted = (bits & 4) != 0;
      renew(how, static_cast<int>(dice.below(5)) - 1, (bits & 0x18) != 0, bits >> 7);
    }
    for (unsigned n = 0; n < 3; ++n) {
      link_.rq.post({link_.rx_sge(0, 16384)});
      Frame f = dice.chance(60) ? plain_frame(60 + dice.below(1000)) : any_frame(dice);
      if (!sends_ && dice.chance(85))
        f = macsec_frames::sealed(f, how_, dice.chance(80) ? number_++ : dice.below(99));
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
      link_.send(f);
    }
    link_.dev.machine().advance(20'000);
    for (const EthObject& o : sa_) {
      if (dice.chance(20)) access_aso(link_.sq, prm::kAsoMacsec, o.number(), context_mr_, dice);
      if (dice.chance(20)) modify(o.number(), dice);
      query_general(link_.dev, kType, o.number());
    }
    query_flow_counter(link_.dev, counter_.number());
    revive(link_);
    bare::drain(link_.scq);
    drain(link_.rcq);
  }

 private:
  static MatchParam register_mask() {
    MatchParam m{};
    prm::set<prm::fte_match_set_misc2::metadata_reg_c_4>(m.data() + kMisc2At, ~0u);
    return m;
  }
  static MatchParam checked_mask() {
    MatchParam m = register_mask();
    prm::set<prm::fte_match_set_misc2::macsec_syndrome>(m.data() + kMisc2At, 0xff);
    prm::set<prm::fte_match_set_misc5::macsec_tag_0>(m.data() + kMisc5At, 0x20u << 8);
    return m;
  }
  static MatchParam tagged(unsigned ethertype) {
    MatchParam m{};
    prm::set<prm::fte_match_set_lyr_2_4::ethertype>(m.data(), ethertype);
    return m;
  }
  void take_down() {
    while (!crypto_rules_.empty()) crypto_rules_.pop_back();
    while (!reformats_.empty()) reformats_.pop_back();
    while (!sa_.empty()) sa_.pop_back();
  }
  void make_sa(bool send, int window) {
    using O = prm::create_macsec_obj_in::macsec_object;
    using A = O::macsec_aso;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_macsec_obj_in::bytes);
    in.set<O::confidentiality_en>(how_.encrypted).set<O::dekn>(dek_.number()).set<O::aso_return_reg>(2);
    in.set<O::macsec_aso_access_pd>(link_.pd.pdn());
    in.set<O::epn_en>(how_.xpn).set<O::epn_overlap>(1).set<O::epn_msb>(number_ >> 32);
    if (how_.xpn)
      prm::store32(in.data() + O::sci::bit_off / 8 + 4, macsec_frames::kSsci);
    else
      std::copy(macsec_frames::kSci.begin(), macsec_frames::kSci.end(), in.data() + O::sci::bit_off / 8);
    for (std::size_t i = 0; i < 3; ++i)
      std::copy_n(macsec_frames::kSalt.begin() + static_cast<std::ptrdiff_t>(4 * (2 - i)), 4,
                  in.data() + O::salt::bit_off / 8 + 4 * i);
    in.set<A::valid>(1).set<A::mode_parameter>(number_ & 0xffffffff).set<A::epn_event_arm>(how_.xpn);
    if (send) in.set<A::mode>(prm::k::IPSEC_ASO_INC_SN);
    if (!send && window >= 0)
      in.set<A::mode>(prm::k::IPSEC_ASO_REPLAY_PROTECTION).set<A::window_size>(window & 3);
    sa_.push_back(make_general(link_.dev, in, kType));
  }
  // Both ways; if it does not send, what leaves is as it is.
  void renew(const How& how, int window, bool sends, unsigned words) {
    using namespace prm::k;
    take_down();
    how_ = how, sends_ = sends;
    number_ = how.xpn ? 0x7'7ffffff0 : window == 3 ? 0xfffffff0 : 100;
    make_sa(true, -1);
    make_sa(false, window);
    Reformat add, del;
    add.type = REFORMAT_TYPE_ADD_MACSEC, add.anchor = words, add.data = macsec_frames::tag(how, 0, 100);
    del.type = REFORMAT_TYPE_DEL_MACSEC, del.size = how.sci ? 16 : 8;
    reformats_.push_back(make_reformat(link_.dev, add));
    reformats_.push_back(make_reformat(link_.dev, del));
    if (sends) {
      FlowRule p = out_.rule();
      p.to = {{FlowDest::kTable, sent_.table.number()}};
      p.action = kEncryptAction | kReformatAction;
      p.reformat = reformats_[0].number(), p.crypto = sa_[0].number(), p.crypto_type = FlowRule::kMacsec;
      crypto_rules_.push_back(make_flow(link_.dev, p));
    }
    FlowRule r = checked_.rule();
    if (how.sci) prm::set<prm::fte_match_set_misc5::macsec_tag_0>(r.value.data() + kMisc5At, 0x20u << 8);
    r.to = {{FlowDest::kTir, link_.tir.number()}};
    r.action = kReformatAction, r.reformat = reformats_[1].number();
    crypto_rules_.push_back(make_flow(link_.dev, r));
    FlowRule v = in_.rule();
    v.value = tagged(0x88e5);
    v.to = {{FlowDest::kTable, checked_.table.number()}};
    v.action = kDecryptAction | kModifyAction, v.modify = marker_.number();
    v.crypto = sa_[1].number(), v.crypto_type = FlowRule::kMacsec;
    crypto_rules_.push_back(make_flow(link_.dev, v));
  }
  void modify(std::uint32_t id, Dice& dice) {
    using O = prm::modify_macsec_obj_in::macsec_object;
    using H = prm::general_obj_in_cmd_hdr;
    Mailbox in(prm::op::MODIFY_GENERAL_OBJECT, prm::modify_macsec_obj_in::bytes);
    in.set<H::obj_type>(kType).set<H::obj_id>(id);
    in.set<O::modify_field_select>(dice.byte() & 3u)
        .set<O::epn_msb>(dice.byte())
        .set<O::epn_overlap>(dice.byte() & 1u);
    link_.dev.exec(in);
  }

  EthLink link_;
  EthObject dek_;
  Buffer context_;
  Mr context_mr_;
  EthObject counter_, marker_;
  FlowPlace sent_, out_, checked_, in_;
  std::vector<EthObject> rules_, sa_, reformats_, crypto_rules_;
  How how_;
  bool sends_ = true;
  std::uint64_t number_ = 1;
};

}  // namespace

std::unique_ptr<World> make_macsec(Device& device) { return std::make_unique<Macsec>(device); }

}  // namespace hcasim::bare
