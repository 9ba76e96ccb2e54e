// SPDX-License-Identifier: BSD-3-Clause
// Worlds of one link: management datagrams, frames, steering tables of the firmware's and the software's own.
#include "prm/ste.h"
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

// Frames through entries full of nonsense that hang together.
class Software : public World {
 public:
  explicit Software(Device& d)
      : link_(d),
        cq_(d),
        buffer_(d.memory().allocate(kBytes)),
        mr_(d, Mr::of(link_.pd, buffer_)),
        qp_(d, link_.pd, cq_, cq_) {
    const auto caps = d.query_caps(15, true).must();
    const std::uint8_t* c = prm::ptr<prm::query_hca_cap_out::capability>(caps.out.data());
    starts_ = {prm::get<prm::device_mem_cap::steering_sw_icm_start_address>(c),
               prm::get<prm::device_mem_cap::header_modify_sw_icm_start_address>(c)};
    for (unsigned i = 0; i < 2; ++i) {
      icm_.push_back(icm(d, starts_[i]));
      MkeySpec s;
      s.pd = link_.pd.pdn();
      s.mode = 4;
      s.start = starts_[i];
      s.len = kBytes;
      keys_[i] = std::make_unique<Mr>(d, s);
    }
    connect();
    for (const unsigned type : {kNicRxTable, kNicTxTable}) tables_.push_back(table(d, type));
    link_.rule.reset();
    FlowRule r;
    r.table = link_.table.number();
    r.group = link_.all.number();
    r.index = kCatchAll;
    r.to = {{FlowDest::kTable, tables_[0].number()}};
    rules_.push_back(make_flow(d, r));
    set_flow_root(d, tables_[1].number(), kNicTxTable).must();
  }
  ~Software() override {
    rules_.clear();
    while (!tables_.empty()) tables_.pop_back();
    for (auto& k : keys_) k.reset();
  }
  void work(Dice& dice) override {
    for (std::size_t i = 0; i < 16; ++i) fill_entry(dice, buffer_.data() + 64 * i);
    write(0, 16 * 64);
    if (dice.chance(50)) {  // lists of rewriting actions
      for (std::size_t i = 0; i < 64; ++i) {
        std::uint8_t* at = buffer_.data() + 8 * i;
        for (unsigned b = 0; b < 8; ++b) at[b] = dice.byte();
        if (dice.chance(90)) at[0] = static_cast<std::uint8_t>(1 + dice.below(3));
        if (dice.chance(80)) at[1] &= 0x1f;
      }
      write(1, 512);
    }
    link_.rq.post({link_.rx_sge(0, 16384)});
    for (unsigned n = 0; n < 4; ++n) {
      Frame f = some_frame(dice);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
      link_.send(f);
    }
    if (qp_.state() == QpState::kErr) {
      qp_.to_reset();
      connect();
    }
    for (Cq* cq : {&cq_, &link_.scq, &link_.rcq}) drain(*cq);
    // Either side's entries are walked, or both: little of what leaves by those of the one comes to the
    // other.
    if (dice.chance(40)) {
      Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, prm::set_flow_table_root_in::bytes, sends_ ? 1 : 0);
      using In = prm::set_flow_table_root_in;
      link_.dev.exec(in.set<In::table_type>(kNicTxTable).set<In::table_id>(tables_[1].number()));
      sends_ = !sends_;
    }
  }

 private:
  static constexpr std::size_t kBytes = 1 << 16;
  static EthObject icm(Device& d, std::uint64_t start) {
    using In = prm::create_sw_icm_in;
    using H = prm::general_obj_in_cmd_hdr;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
    in.set<H::obj_type>(prm::k::OBJ_TYPE_SW_ICM);
    in.set<In::sw_icm::sw_icm_start_addr>(start).set<In::sw_icm::log_sw_icm_size>(16);
    const auto r = d.exec(in).must();
    const auto id = static_cast<std::uint32_t>(r.get<prm::general_obj_out_cmd_hdr::obj_id>());
    return {d, id, [&d, id] {
              Mailbox gone(prm::op::DESTROY_GENERAL_OBJECT, H::bytes);
              return d.exec(gone.set<H::obj_type>(prm::k::OBJ_TYPE_SW_ICM).set<H::obj_id>(id));
            }};
  }
  EthObject table(Device& d, unsigned type) {
    using In = prm::create_flow_table_in;
    Mailbox in(prm::op::CREATE_FLOW_TABLE, In::bytes);
    in.set<In::table_type>(type).set<In::flow_table_context::sw_owner>(1);
    in.set<In::flow_table_context::level>(60);
    in.set<In::flow_table_context::sws::sw_owner_icm_root_0>(starts_[0]);
    const auto id = d.exec(in).must().get<prm::create_flow_table_out::table_id>();
    return {d, static_cast<std::uint32_t>(id), [&d, id, type] {
              using Gone = prm::destroy_flow_table_in;
              Mailbox gone(prm::op::DESTROY_FLOW_TABLE, Gone::bytes);
              return d.exec(gone.set<Gone::table_id>(id).set<Gone::table_type>(type));
            }};
  }
  void connect() {
    QpAttr a;
    a.roce.force_loopback = true;
    a.remote_qpn = qp_.qpn();
    a.mtu = 1024;
    qp_.connect(a);
  }
  void write(unsigned area, std::uint32_t bytes) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{mr_.start(), mr_.key(), bytes}};
    w.raddr = 0;
    w.rkey = keys_[area]->key();
    qp_.post(w);
    link_.dev.machine().advance(50'000);
  }
  void fill_entry(Dice& dice, std::uint8_t* e) const {
    for (unsigned i = 0; i < prm::kSteBytes; ++i) e[i] = dice.byte();
    if (dice.chance(80)) std::fill(e + prm::kSteMask, e + prm::kSteBytes, std::uint8_t{0});  // takes all
    if (dice.chance(80)) std::fill(e + prm::kSteTag, e + prm::kSteMask, std::uint8_t{0});
    static constexpr std::array<prm::SteType, 3> kTypes{prm::SteType::kTx, prm::SteType::kRx,
                                                        prm::SteType::kModify};
    if (dice.chance(95)) prm::set<prm::Ste::entry_type>(e, static_cast<unsigned>(dice.pick(kTypes)));
    if (dice.chance(80)) prm::set<prm::Ste::lookup_type>(e, 0x0f);
    if (dice.chance(60)) prm::set<prm::Ste::next_lookup_type>(e, 0x0f);
    // On to one of the first entries, one way and the other.
    const auto to = [&] { return starts_[0] + 64 * dice.below(16); };
    if (dice.chance(85)) {
      const std::uint64_t v = to() >> 5 | 1ull << dice.below(5);
      prm::set<prm::Ste::next_base_39_32>(e, static_cast<std::uint32_t>(v >> 27));
      prm::set<prm::Ste::next_base_31_5>(e, static_cast<std::uint32_t>(v & 0x7ffffff));
    }
    if (dice.chance(85)) {
      const std::uint64_t miss = to();
      prm::set<prm::Ste::miss_39_32>(e, static_cast<std::uint32_t>(miss >> 32));
      prm::set<prm::Ste::miss_31_6>(e, static_cast<std::uint32_t>((miss & 0xffffffff) >> 6));
    }
    if (dice.chance(80))
      prm::set<prm::SteModify::action_count>(e, static_cast<std::uint32_t>(dice.below(80)));
    if (dice.chance(80))
      prm::set<prm::SteModify::action_pointer>(e, static_cast<std::uint32_t>(dice.below(10)));
  }

  EthLink link_;
  std::array<std::uint64_t, 2> starts_{};
  std::vector<EthObject> icm_;
  std::array<std::unique_ptr<Mr>, 2> keys_;
  Cq cq_;
  Buffer buffer_;
  Mr mr_;
  Qp qp_;
  std::vector<EthObject> tables_, rules_;
  bool sends_ = true;
};

}  // namespace

std::unique_ptr<World> make_management(Device& device) { return std::make_unique<Management>(device); }
std::unique_ptr<World> make_frames(Device& device) { return std::make_unique<Frames>(device); }
std::unique_ptr<World> make_software(Device& device) { return std::make_unique<Software>(device); }

}  // namespace hcasim::bare
