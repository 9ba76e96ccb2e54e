// SPDX-License-Identifier: BSD-3-Clause
// Worlds of one link: management datagrams; frames, with steering tables of the firmware's own.
#include "tests/device/eth_fixture.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

// MADs of all classes to the port's own agents, by QP1 and by the command.
class Management : public World {
 public:
  explicit Management(Device& d) : pair_(d), qp_(d, pair_.pd, pair_.acq, pair_.acq, special()) { connect(); }
  void work(Dice& dice) override {
    const std::vector<std::uint8_t> mad = make(dice);
    std::copy(mad.begin(), mad.end(), pair_.amem.data());
    qp_.post_recv({pair_.asge(4096, 512)});
    SendWr w;
    w.sges = {pair_.asge(0, kMad)};
    w.av.qpn = 1;
    w.av.qkey = kQkey;
    w.av.grh = dice.chance(30);
    post(qp_, w, dice, spoiling_ / 4);
    using In = prm::mad_ifc_in;
    Mailbox in(prm::op::MAD_IFC, In::bytes);
    in.set<In::port>(1);
    const std::vector<std::uint8_t> other = make(dice);
    std::copy(other.begin(), other.end(), in.data() + In::mad::bit_off / 8);
    pair_.dev.exec(in, prm::mad_ifc_out::bytes);
    if (qp_.state() == QpState::kErr) {
      qp_.to_reset();
      connect();
    }
    drain(pair_.acq);
  }

 private:
  static constexpr std::size_t kMad = 256;
  static constexpr std::uint32_t kQkey = 0x80010000;
  static QpOptions special() {
    QpOptions o;
    o.type = QpType::kQp1;
    return o;
  }
  void connect() {
    QpAttr a;
    a.qkey = kQkey;
    qp_.connect(a);
  }
  std::vector<std::uint8_t> make(Dice& dice) const {
    static constexpr std::array<std::uint8_t, 8> kClasses{1, 3, 3, 3, 4, 0x81, 7, 0x32};
    static constexpr std::array<std::uint8_t, 8> kMethods{1, 2, 0x12, 0x14, 0x15, 0x81, 5, 3};
    static constexpr std::array<std::uint8_t, 14> kAttributes{1,    2,    0x10, 0x11, 0x12, 0x14, 0x15,
                                                              0x16, 0x17, 0x31, 0x35, 0x38, 0x1d, 0xf3};
    std::vector<std::uint8_t> mad(kMad);
    mad[0] = 1;
    mad[1] = dice.pick(kClasses);
    mad[2] = mad[1] == 3 ? 2 : 1;
    mad[3] = mad[1] == 1 && !dice.chance(5) ? 1 : dice.pick(kMethods);  // a Set may take the port down
    prm::store32(mad.data() + 16, std::uint32_t{dice.pick(kAttributes)} << 16);
    if (dice.chance(50)) prm::store32(mad.data() + 20, static_cast<std::uint32_t>(dice.below(3)));
    if (mad[1] == 3) {  // component mask, then a GID of ours
      prm::store32(mad.data() + 48, dice.chance(50) ? 0 : dice.word());
      prm::store32(mad.data() + 52, dice.chance(30) ? ~0u : dice.word());
      const auto gid = pair_.dev.gid(0);
      std::copy(gid.begin(), gid.end(), mad.begin() + 64);
      std::copy(gid.begin(), gid.end(), mad.begin() + 80);
      if (dice.chance(50)) mad[64] = 0xff;  // a group
    }
    if (dice.chance(spoiling_)) dice.spoil(mad.data(), mad.size(), dice.chance(20) ? 0 : 24);
    return mad;
  }
  Pair pair_;
  Qp qp_;
};

// A frame of tunnels, TCP, UDP or nothing known.
Frame some_frame(Dice& dice) {
  if (dice.chance(30)) return plain_frame(14 + dice.below(600), dice.word());
  L4 l4;
  l4.v6 = dice.chance(50);
  l4.udp = dice.chance(50);
  l4.payload = dice.below(300);
  static constexpr std::array<std::uint16_t, 6> kPorts{4789, 4791, 6081, 2152, 6635, 5000};
  l4.dport = dice.pick(kPorts);
  return l4_frame(l4);
}

class Frames : public World {
 public:
  explicit Frames(Device& d)
      : link_(d),
        next_(make_flow_table(d, 4, 1, kNicRxTable, true)),
        some_(make_flow_group(d, next_.number(), 0, 7, 1, mask())),
        rest_(make_flow_group(d, next_.number(), 8, 15)),
        counter_(make_flow_counter(d)),
        modify_(make_modify_header(d, {set_field(1, 0x1234), add_field(11, 0xff)})),
        encap_(make_reformat(d, tunnel())) {
    FlowRule r;
    r.table = link_.table.number();
    r.group = link_.all.number();
    r.index = kCatchAll;
    r.to = {{FlowDest::kTable, next_.number()}};
    link_.rule.reset();
    rules_.push_back(make_flow(d, r));
    r = {};
    r.table = next_.number();
    r.group = rest_.number();
    r.index = 8;
    r.action = 0x40 | 8;  // rewritten, counted
    r.modify = modify_.number();
    r.counter = counter_.number();
    r.to = {{FlowDest::kTir, link_.tir.number()}};
    rules_.push_back(make_flow(d, r));
  }
  ~Frames() override {
    while (!rules_.empty()) rules_.pop_back();
  }
  void work(Dice& dice) override {
    link_.rq.post({link_.rx_sge(0, 16384)});
    const Frame f = some_frame(dice);
    link_.put(0, f);
    const auto len = static_cast<std::uint32_t>(f.size());
    EthWr wr;
    wr.cs_flags = dice.byte() & 0xc0;
    switch (dice.below(4)) {
      case 0:
        wr.inline_data = f;
        break;
      case 1:
        wr.op = WqeOp::kLso;
        wr.headers.assign(f.begin(),
                          f.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(54, f.size())));
        wr.mss = static_cast<std::uint16_t>((dice.chance(5) ? 1 : 200) + dice.below(1500));
        wr.sges = {link_.tx_sge(0, static_cast<std::uint32_t>(dice.below(20000)))};
        break;
      case 2:
        wr.op = WqeOp::kEnhancedMpsw;
        wr.sges = {link_.tx_sge(0, len), link_.tx_sge(0, len)};
        break;
      default:
        wr.vlan = static_cast<std::uint16_t>(dice.word());
        wr.sges = {link_.tx_sge(0, len)};
    }
    link_.sq.post(wr);
    if (dice.chance(spoiling_)) {
      std::vector<std::uint8_t> raw(64 * (1 + dice.below(3)));
      for (std::size_t i = 16; i < raw.size(); ++i) raw[i] = dice.chance(60) ? 0 : dice.byte();
      static constexpr std::array<std::uint8_t, 5> kOps{0, 0x0a, 0x0e, 0x29, 0x25};
      raw[3] = dice.pick(kOps);
      raw[7] = static_cast<std::uint8_t>(dice.below(raw.size() / 16 + 2));
      link_.sq.post_raw(raw, static_cast<unsigned>(raw.size() / 64));
    }
    if (link_.sq.state() != 1) {
      link_.sq.modify(3, 0);
      link_.sq.modify(0, 1);
    }
    drain(link_.scq);
    drain(link_.rcq);
    query_flow_counter(link_.dev, counter_.number());
    for (const std::uint16_t op : {prm::op::QUERY_FLOW_TABLE_ENTRY, prm::op::QUERY_FLOW_GROUP,
                                   prm::op::QUERY_TIR, prm::op::QUERY_FLOW_TABLE}) {
      Mailbox q(op, prm::query_fte_in::bytes);
      if (op == prm::op::QUERY_TIR)
        q.set<prm::query_tir_in::tirn>(link_.tir.number());
      else
        q.set<prm::query_fte_in::table_id>(next_.number());
      if (op == prm::op::QUERY_FLOW_TABLE_ENTRY) q.set<prm::query_fte_in::flow_index>(8);
      link_.dev.exec(q, 2048);
    }
  }

 private:
  static MatchParam mask() {
    MatchParam m{};
    std::fill(m.begin(), m.begin() + 16, std::uint8_t{0xff});
    return m;
  }
  static Reformat tunnel() {
    Reformat r;
    r.type = prm::k::REFORMAT_TYPE_L2_TO_VXLAN;
    r.data = plain_frame(50);
    return r;
  }
  EthLink link_;
  EthObject next_, some_, rest_, counter_, modify_, encap_;
  std::vector<EthObject> rules_;
};

}  // namespace

std::unique_ptr<World> make_management(Device& device) { return std::make_unique<Management>(device); }
std::unique_ptr<World> make_frames(Device& device) { return std::make_unique<Frames>(device); }

}  // namespace hcasim::bare
