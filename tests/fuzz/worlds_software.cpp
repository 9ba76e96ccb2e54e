// SPDX-License-Identifier: BSD-3-Clause
// A world of steering tables that software writes, in the format of the card's generation.
#include "flow_parts.h"
#include "prm/ste.h"
#include "prm/ste_v1.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

// Frames through entries full of nonsense that hang together.
class Software : public World {
 public:
  explicit Software(Device& d)
      : link_(d),
        cq_(d),
        buffer_(d.memory().allocate(kBytes)),
        mr_(d, Mr::of(link_.pd, buffer_)),
        qp_(d, link_.pd, cq_, cq_),
        counter_(make_flow_counter(d)),
        later_(d.cap<prm::cmd_hca_cap::steering_format_version>() != 0) {
    find_outs();
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
    for (std::size_t i = 0; i < 16; ++i) {
      std::uint8_t* e = buffer_.data() + 64 * i;
      if (later_)
        fill_later(dice, e);
      else
        fill_entry(dice, e);
    }
    if (later_ && definers_.size() < 6 && dice.chance(20)) {
      try {
        definers_.push_back(some_definer(link_.dev, dice));
      } catch (const BareError&) {  // fields that the format has not
      }
    }
    write(0, 16 * 64);
    if (dice.chance(50)) {  // lists of rewriting actions
      for (std::size_t i = 0; i < 64; ++i) {
        std::uint8_t* at = buffer_.data() + 8 * i;
        for (unsigned b = 0; b < 8; ++b) at[b] = dice.byte();
        if (dice.chance(90)) at[0] = static_cast<std::uint8_t>(1 + dice.below(3));
        if (dice.chance(80)) at[1] &= 0x1f;
        static constexpr std::array<std::uint8_t, 4> kLater{0, 5, 6, 7};
        if (later_) at[0] = dice.pick(kLater);
        if (later_ && dice.chance(90)) fill_change(dice, at);
      }
      write(1, 512);
    }
    link_.rq.post({link_.rx_sge(0, 16384)});
    for (unsigned n = 0; n < 4; ++n) {
      Frame f = any_frame(dice);
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
  // Where entries may lead to, beside others: drop, the port, a TIR.
  void find_outs() {
    using Nic = prm::flow_table_nic_cap;
    const auto caps = link_.dev.query_caps(7, true).must();
    const std::uint8_t* c = prm::ptr<prm::query_hca_cap_out::capability>(caps.out.data());
    outs_.push_back(prm::get<Nic::sw_steering_nic_rx_action_drop_icm_address>(c));
    outs_.push_back(prm::get<Nic::sw_steering_nic_tx_action_drop_icm_address>(c));
    outs_.push_back(prm::get<Nic::sw_steering_nic_tx_action_allow_icm_address>(c));
    outs_.push_back(outs_.back());
    TirSpec s;
    s.rqn = link_.rq.rqn();
    s.transport_domain = link_.td.number();
    std::uint64_t icm = 0;
    out_tirs_.push_back(make_tir(link_.dev, s, &icm));
    outs_.push_back(icm);
    outs_.push_back(icm);
  }
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
  // Mostly to one of the first entries; or out of the tables.
  std::uint64_t to(Dice& dice) const {
    return !outs_.empty() && dice.chance(25) ? dice.pick(outs_) : starts_[0] + 64 * dice.below(16);
  }
  void fill_entry(Dice& dice, std::uint8_t* e) const {
    for (unsigned i = 0; i < prm::kSteBytes; ++i) e[i] = dice.byte();
    if (dice.chance(80)) std::fill(e + prm::kSteMask, e + prm::kSteBytes, std::uint8_t{0});  // takes all
    if (dice.chance(80)) std::fill(e + prm::kSteTag, e + prm::kSteMask, std::uint8_t{0});
    static constexpr std::array<prm::SteType, 3> kTypes{prm::SteType::kTx, prm::SteType::kRx,
                                                        prm::SteType::kModify};
    if (dice.chance(95)) prm::set<prm::Ste::entry_type>(e, static_cast<unsigned>(dice.pick(kTypes)));
    if (dice.chance(80)) prm::set<prm::Ste::lookup_type>(e, dice.chance(50) ? 0x0f : dice.byte() & 0x3fu);
    if (dice.chance(60)) prm::set<prm::Ste::next_lookup_type>(e, 0x0f);
    if (dice.chance(85)) {
      const std::uint64_t v = to(dice) >> 5 | 1ull << dice.below(5);
      prm::set<prm::Ste::next_base_39_32>(e, static_cast<std::uint32_t>(v >> 27));
      prm::set<prm::Ste::next_base_31_5>(e, static_cast<std::uint32_t>(v & 0x7ffffff));
    }
    if (dice.chance(85)) {
      const std::uint64_t miss = to(dice);
      prm::set<prm::Ste::miss_39_32>(e, static_cast<std::uint32_t>(miss >> 32));
      prm::set<prm::Ste::miss_31_6>(e, static_cast<std::uint32_t>((miss & 0xffffffff) >> 6));
    }
    if (dice.chance(80))
      prm::set<prm::SteModify::action_count>(e, static_cast<std::uint32_t>(dice.below(80)));
    if (dice.chance(80))
      prm::set<prm::SteModify::action_pointer>(e, static_cast<std::uint32_t>(dice.below(10)));
  }
  // Of the later chips.
  void fill_later(Dice& dice, std::uint8_t* e) const {
    using Entry = prm::SteV1;
    for (unsigned i = 0; i < prm::kSteBytes; ++i) e[i] = dice.byte();
    const unsigned format = dice.byte() % 5;
    prm::set<Entry::format>(e, format);
    if (format != 4 && dice.chance(80)) std::fill(e + prm::kSteV1Mask, e + prm::kSteV1Tag, std::uint8_t{0});
    if (dice.chance(80)) std::fill(e + prm::kSteV1Tag, e + prm::kSteBytes, std::uint8_t{0});
    if (format == 4 && dice.chance(80))
      std::fill(e + prm::kSteV1MatchTag, e + prm::kSteBytes, std::uint8_t{0});
    const std::uint8_t definer = dice.byte();
    prm::set<Entry::definer>(e, format != 4 ? definer & 0x1fu
                                : definer < 120 || definers_.empty()
                                    ? Entry::kAnyDefiner
                                    : definers_[definer % definers_.size()].number());
    if (dice.chance(80)) prm::set<Entry::counter>(e, dice.chance(50) ? 0 : counter_.number());
    if (dice.chance(60)) prm::set<Entry::hash_definer>(e, 7);
    if (dice.chance(85)) {
      const std::uint64_t v = to(dice) >> 5 | 1ull << dice.below(4);
      prm::set<Entry::next_base_39_32>(e, static_cast<std::uint32_t>(v >> 27));
      prm::set<Entry::next_base_31_5>(e, static_cast<std::uint32_t>(v & 0x7ffffff));
    }
    if (dice.chance(85)) {
      const std::uint64_t miss = to(dice);
      prm::set<Entry::miss_39_32>(e, static_cast<std::uint32_t>(miss >> 32));
      prm::set<Entry::miss_31_6>(e, static_cast<std::uint32_t>((miss & 0xffffffff) >> 6));
    }
    const bool longer = format >= 2;
    const unsigned bytes = longer ? Entry::kLongActionBytes : Entry::kActionBytes;
    for (unsigned at = 0; at + 8 <= bytes; at += 8)
      fill_action(dice, e + (longer ? Entry::kLongActions : Entry::kActions) + at);
    if (longer) e[Entry::kLongActions + 8] = dice.chance(50) ? 0 : prm::SteV1Action::kFlowTag;
  }
  static void fill_action(Dice& dice, std::uint8_t* a) {
    using Act = prm::SteV1Action;
    static constexpr std::array<std::uint8_t, 14> kIds{
        Act::kNop,           Act::kCopy,         Act::kSet,           Act::kAdd,       Act::kRemoveBySize,
        Act::kRemoveHeaders, Act::kInsertInline, Act::kInsertPointer, Act::kFlowTag,   Act::kAcceleratedList,
        Act::kModifyList,    Act::kAso,          Act::kNop,           Act::kModifyList};
    static constexpr std::array<std::uint8_t, 7> kAnchors{0, 1, 2, 7, 9, 0x13, 0x19};
    const std::uint8_t id = dice.pick(kIds);
    if (dice.chance(80)) std::fill(a, a + 8, std::uint8_t{0});
    prm::set<Act::id>(a, id);
    switch (id) {
      case Act::kRemoveBySize:
        prm::set<Act::start_anchor>(a, dice.pick(kAnchors));
        prm::set<Act::remove_size>(a, dice.byte() & 31u);
        prm::set<Act::remove_offset>(a, dice.byte() & 7u);
        break;
      case Act::kRemoveHeaders:
        prm::set<Act::end_anchor>(a, dice.pick(kAnchors));
        break;
      case Act::kInsertInline:
      case Act::kInsertPointer:
        prm::set<Act::start_anchor>(a, dice.pick(kAnchors));
        prm::set<Act::insert_offset>(a, dice.byte() & 15u);
        prm::set<Act::data>(a, dice.byte() & 3u);
        if (id == Act::kInsertPointer)
          prm::set<Act::insert_size>(a, dice.byte() & 31u), prm::set<Act::attributes>(a, dice.byte() & 1u);
        break;
      case Act::kModifyList:
        prm::set<Act::list_count>(a, dice.byte() & 15u);
        prm::set<Act::list_pointer>(a, dice.byte() & 7u);
        break;
      case Act::kAcceleratedList:
        prm::set<Act::pattern_pointer>(a, dice.byte() & 7u);
        prm::set<Act::pattern_count>(a, dice.byte() & 15u);
        prm::set<Act::argument_pointer>(a, dice.byte() & 3u);
        break;
      default:
        fill_change(dice, a);
    }
  }
  // One of a rewriting list.
  static void fill_change(Dice& dice, std::uint8_t* a) {
    using Act = prm::SteV1Action;
    static constexpr std::array<std::uint8_t, 16> kFields{0x00, 0x01, 0x02, 0x08, 0x09, 0x0e, 0x18, 0x19,
                                                          0x40, 0x41, 0x44, 0x4c, 0x5e, 0x7b, 0x8c, 0x90};
    prm::set<Act::field>(a, dice.pick(kFields));
    prm::set<Act::shift>(a, dice.byte() & 31u);
    prm::set<Act::length>(a, 1 + (dice.byte() & 31u));
    if (a[0] == Act::kCopy) {
      prm::set<Act::source_field>(a, dice.pick(kFields));
      prm::set<Act::source_shift>(a, dice.byte() & 31u);
    } else {
      prm::set<Act::data>(a, dice.byte());
    }
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
  EthObject counter_;
  bool later_;
  bool sends_ = true;
  std::vector<std::uint64_t> outs_;
  std::vector<EthObject> definers_, out_tirs_;
};

}  // namespace

std::unique_ptr<World> make_software(Device& device) { return std::make_unique<Software>(device); }

}  // namespace hcasim::bare
