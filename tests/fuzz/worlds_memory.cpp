// SPDX-License-Identifier: BSD-3-Clause
// Worlds of memory: keys that UMRs and signatures change, pages that come and go, memory of the device,
// shares of its time.
#include "prm/qos.h"
#include "prm/signature.h"
#include "tests/device/odp_fixture.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

namespace mask = prm::mkey_mask;

CommandResult simple(Device& d, Mailbox in, std::size_t out = 64) { return d.exec(in, out); }

class Keys : public World {
 public:
  explicit Keys(Device& d)
      : pair_(d),
        joined_(pair_.a, pair_.b, again(pair_)),
        list_(d, room(pair_.pd, false)),
        other_(d, room(pair_.pd, true)) {
    Mailbox psv(prm::op::CREATE_PSV, prm::create_psv_in::bytes);
    psv.set<prm::create_psv_in::num_psv>(2).set<prm::create_psv_in::pd>(pair_.pd.pdn());
    const auto r = d.exec(psv, prm::create_psv_out::bytes).must();
    psvs_ = {static_cast<std::uint32_t>(r.get<prm::create_psv_out::psv0_index>()),
             static_cast<std::uint32_t>(r.get<prm::create_psv_out::psv1_index>())};
    Mailbox key = create_mkey_mailbox(room(pair_.pd, false));
    using E = prm::create_mkey_in::memory_key_mkey_entry;
    key.set<E::bsf_en>(1).set<E::bsf_octword_size>(4).set<E::access_mode_1_0>(2);
    signed_ = static_cast<std::uint32_t>(
                  d.exec(key, prm::create_mkey_out::bytes).must().get<prm::create_mkey_out::mkey_index>())
              << 8;
  }
  ~Keys() override {
    for (const std::uint32_t n : psvs_) {
      Mailbox in(prm::op::DESTROY_PSV, prm::destroy_psv_in::bytes);
      simple(pair_.dev, in.set<prm::destroy_psv_in::psvn>(n));
    }
    Mailbox in(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes);
    simple(pair_.dev, in.set<prm::destroy_mkey_in::mkey_index>(signed_ >> 8));
  }
  void work(Dice& dice) override {
    switch (dice.below(4)) {
      case 0:
        post(pair_.a, pieces(dice), dice, spoiling_);
        break;
      case 1:
        post(pair_.a, bind(dice), dice, spoiling_);
        break;
      case 2:
        post(pair_.b, configure(dice), dice, spoiling_);
        break;
      default:
        post(pair_.b, set_psv(dice), dice, spoiling_);
    }
    static constexpr std::array<WqeOp, 3> kOps{WqeOp::kRdmaWrite, WqeOp::kRdmaRead, WqeOp::kAtomicFa};
    SendWr w = pair_.wr(dice.pick(kOps), 0, static_cast<std::uint32_t>(1 + dice.below(6000)));
    const std::array<std::uint32_t, 3> keys{list_.key(), other_.key(), signed_};
    w.rkey = dice.pick(keys);
    w.raddr = dice.chance(70) ? dice.below(4096) : pair_.bmr.start() + dice.below(4096);
    post(pair_.a, w, dice, spoiling_ / 2);
    // And the other way round: gathered through the key.
    w = pair_.wr(WqeOp::kSend, 0, 1);
    w.sges = {{dice.below(2048), dice.pick(keys), static_cast<std::uint32_t>(1 + dice.below(5000))}};
    pair_.a.post_recv({pair_.asge(0, 8192)});
    post(pair_.b, w, dice, spoiling_ / 2);
    joined_.revive(dice);
    list_.query();
    drain(pair_.acq);
    drain(pair_.bcq);
  }

 private:
  static QpAttr again(Pair& p) {
    p.a.to_reset();
    p.b.to_reset();
    return {};
  }
  static MkeySpec room(const Pd& pd, bool window) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.mode = 2;
    s.umr_en = true;
    s.free = window;
    s.remote_invalidate = window;
    s.reserve_octowords = 8;
    s.len = 8192;
    s.key = 0;
    return s;
  }
  UmrWr pieces(Dice& dice) const {
    UmrWr u;
    u.mkey = list_.key();
    u.mask = mask::kFree | mask::kLen | mask::kStartAddr;
    u.spec.mode = 2;
    u.spec.umr_en = true;
    u.spec.len = 8192;
    u.flags = dice.byte() & 0x70;
    if (dice.chance(40)) {  // strided
      u.spec.klm = {{520, 0x400, std::uint64_t{10} << 32 | 2},
                    {512u << 16 | 512, pair_.bmr.key(), pair_.bmr.start()},
                    {16u << 16 | 8, pair_.bmr.key(), pair_.bmr.start() + 60000}};
    } else {
      const std::array<std::uint32_t, 4> keys{pair_.bmr.key(), pair_.amr.key(), list_.key(), other_.key()};
      for (unsigned i = 0; i < 4; ++i)
        u.spec.klm.push_back(
            {2048, dice.chance(80) ? keys[0] : dice.pick(keys), pair_.bmr.start() + 4096 * i});
    }
    return u;
  }
  UmrWr bind(Dice& dice) const {
    UmrWr u;
    u.mkey = other_.key();
    u.mask = mask::kFree | mask::kKey | mask::kLen | mask::kStartAddr | mask::kLw | mask::kRr | mask::kRw |
             mask::kA | (dice.chance(50) ? mask::kQpn : std::uint64_t{0});
    u.flags = prm::kUmrTranslationOffsetEn;
    u.spec.mode = 2;
    u.spec.umr_en = true;
    u.spec.free = dice.chance(20);
    u.spec.qpn = pair_.b.qpn();
    u.spec.len = 4096;
    u.spec.key = 0;
    u.spec.klm = {{4096, pair_.bmr.key(), pair_.bmr.start()}};
    return u;
  }
  std::vector<std::uint8_t> configure(Dice& dice) const {
    struct {
      prm::CtrlSeg ctrl;
      prm::UmrCtrlSeg umr;
      std::uint8_t mkc[64];
      prm::Klm klm[4];
      prm::Bsf bsf;
    } w{};
    w.umr.flags = prm::kUmrInline;
    w.umr.xlt_octowords = 4;
    w.umr.xlt_offset = 4;
    w.umr.mkey_mask = mask::kFree | mask::kLen | mask::kLr | mask::kLw | mask::kRr | mask::kRw |
                      mask::kBsfEn | mask::kEnSigerr;
    MkeySpec s;
    s.access = kAllAccess;
    s.len = 4096;
    fill_mkc(w.mkc, s);
    prm::set<prm::mkc::bsf_en>(w.mkc, 1);
    w.klm[0].byte_count = 4096;
    w.klm[0].key = pair_.bmr.key();
    w.klm[0].va = pair_.bmr.start();
    prm::Bsf& b = w.bsf;
    b.size_sbs = prm::Bsf::kSizeWithInline << 6 | (dice.byte() & prm::Bsf::kSbs);
    b.check_mask = dice.byte();
    b.raw_data_size = dice.chance(50) ? ~0u : dice.edge();
    b.mem_bs = dice.byte() & 7;
    b.wire_bs = dice.byte() & 7;
    b.mem_bfs_psv = (dice.chance(70) ? 0 : dice.byte() << 24) | psvs_[0];
    b.wire_bfs_psv = (dice.chance(70) ? 0 : dice.byte() << 24) | psvs_[1];
    for (prm::BsfInline* in : {&b.mem, &b.wire}) {
      in->vld_refresh = prm::BsfInline::kValid;
      in->sig_type = dice.byte() & 3;
      in->inc_ref_guard_check = dice.byte();
      in->rp_inv_seed = dice.byte();
      in->app_bitmask = 0xffff;
    }
    return raw_wqe(w, WqeOp::kUmr, pair_.b, signed_);
  }
  std::vector<std::uint8_t> set_psv(Dice& dice) const {
    struct {
      prm::CtrlSeg ctrl;
      prm::SetPsvSeg seg;
    } w{};
    w.seg.psv = dice.pick(psvs_);
    w.seg.transient_sig = dice.word();
    return raw_wqe(w, WqeOp::kSetPsv, pair_.b);
  }

  Pair pair_;
  Joined joined_;
  Mr list_, other_;
  std::array<std::uint32_t, 2> psvs_{};
  std::uint32_t signed_ = 0;
};

// Faults are answered at once, most of them with pages, some with an error, some twice.
class Paged : public World {
 public:
  explicit Paged(Device& d)
      : pair_(d),
        joined_(pair_.a, pair_.b, again(pair_)),
        paged_(d, pair_.pd, 32),
        eq_(d, 6, kVector, faults(), [this](const prm::Eqe& e) { take(e); }) {
    eq_.set_automatic(false);
    eq_.arm();
  }
  void work(Dice& dice) override {
    const std::size_t off = dice.below(32 * kPage - 9000) & ~std::size_t{7};
    SendWr w = some_wr(pair_, dice);
    if (w.raddr != 0 && dice.chance(60)) {
      w.raddr = paged_.mr.start() + off;
      w.rkey = paged_.mr.key();
    } else if (!w.sges.empty()) {
      w.sges = {paged_.sge(off, w.sges[0].len)};
    }
    pair_.b.post_recv({dice.chance(50) ? paged_.sge(off, 8192) : pair_.bsge(0, 20000)});
    post(pair_.a, w, dice, spoiling_ / 2);
    pair_.dev.machine().advance(20'000);
    eq_.poll();
    if (dice.chance(60)) paged_.map(dice.below(24), 8);
    if (dice.chance(30)) paged_.unmap(dice.below(24), 8);
    for (const auto& [word, token] : std::exchange(pending_, {})) {
      using In = prm::page_fault_resume_in;
      using F = In::page_fault_info::trans_page_fault_info;
      Mailbox in(prm::op::PAGE_FAULT_RESUME, In::bytes);
      in.set<F::page_fault_type>(word >> 24).set<F::wq_number>(word & 0xffffff);
      in.set<F::fault_token>(token).set<F::error>(dice.chance(20));
      pair_.dev.exec(in, prm::page_fault_resume_out::bytes);
      if (dice.chance(10)) pair_.dev.exec(in, prm::page_fault_resume_out::bytes);
    }
    joined_.revive(dice);
    drain(pair_.acq);
    drain(pair_.bcq);
  }

 private:
  static constexpr unsigned kVector = 7;
  static QpAttr again(Pair& p) {
    p.a.to_reset();
    p.b.to_reset();
    return {};
  }
  static std::array<std::uint64_t, 4> faults() {
    return {1ull << static_cast<unsigned>(prm::EqeType::kPageFault), 0, 0, 0};
  }
  void take(const prm::Eqe& e) {
    if (e.sub_type == prm::kFaultWqe)
      pending_.emplace_back(e.data.pf_wqe.pftype_wq, e.data.pf_wqe.token);
    else
      pending_.emplace_back(e.data.pf_rdma.pftype_token, e.data.pf_rdma.pftype_token & 0xffffff);
  }
  Pair pair_;
  Joined joined_;
  PagedMemory paged_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pending_;
  EventQueue eq_;
};

class Shares : public World {
 public:
  explicit Shares(Device& d)
      : pair_(d),
        joined_(pair_.a, pair_.b, again(pair_)),
        user_(d),
        extra_(d.memory().allocate(4 * kPage)),
        umem_(d, Umem::of(extra_)) {
    using In = prm::alloc_memic_in;
    const auto caps = d.query_caps(15, true).must();
    const std::uint8_t* c = prm::ptr<prm::query_hca_cap_out::capability>(caps.out.data());
    Mailbox in(prm::op::ALLOC_MEMIC, In::bytes);
    in.set<In::range_start_addr>(prm::get<prm::device_mem_cap::memic_bar_start_addr>(c));
    in.set<In::range_size>(prm::get<prm::device_mem_cap::memic_bar_size>(c)).set<In::memic_size>(4096);
    memic_ = d.exec(in, prm::alloc_memic_out::bytes).must().get<prm::alloc_memic_out::memic_start_addr>();
    MkeySpec s;
    s.pd = pair_.pd.pdn();
    s.mode = prm::k::MKC_ACCESS_MODE_MEMIC;
    s.start = memic_;
    s.len = 4096;
    key_ = std::make_unique<Mr>(d, s);
    tsar_ = element(0, 0);
    group_ = element(4, tsar_);
    using E = prm::qp_ext;
    Mailbox name(prm::op::RTS2RTS_QP, E::bytes);
    name.set<prm::rts2rts_qp_in::qpn>(pair_.a.qpn()).set<E::qpc_ext>(1);
    name.set<E::opt_param_mask_95_32>(prm::kOptQosQueueGroup).set<E::qos_queue_group_id_requester>(group_);
    d.exec(name);
    Mailbox pace(prm::op::SET_PP_RATE_LIMIT, prm::set_pp_rate_limit_in::bytes);
    pace.set<prm::set_pp_rate_limit_in::rate_limit_index>(1);
    d.exec(pace.set<prm::set_pp_rate_limit_in::ctx::rate_limit>(100'000));
  }
  ~Shares() override {
    key_.reset();
    using In = prm::dealloc_memic_in;
    Mailbox in(prm::op::DEALLOC_MEMIC, In::bytes);
    pair_.dev.exec(in.set<In::memic_start_addr>(memic_).set<In::memic_size>(4096));
    pair_.a.to_reset();
    for (const std::uint32_t id : {group_, tsar_}) {
      Mailbox gone(prm::op::DESTROY_GENERAL_OBJECT, 16, prm::kGeneralSchedElement);
      pair_.dev.exec(gone.set<prm::general_obj_in_cmd_hdr::obj_id>(id));
    }
  }
  void work(Dice& dice) override {
    SendWr w = some_wr(pair_, dice);
    pair_.b.post_recv({pair_.bsge(0, 32768)});
    w.raddr = dice.below(4096) & ~std::size_t{7};
    if (!w.sges.empty() && dice.chance(80))
      w.sges[0].len = std::min(w.sges[0].len, 4096 - static_cast<std::uint32_t>(w.raddr));
    w.rkey = key_->key();
    post(pair_.a, w, dice, spoiling_);
    joined_.revive(dice);
    using In = prm::modify_memic_in;
    Mailbox in(prm::op::MODIFY_MEMIC, In::bytes);
    in.set<In::memic_operation_type>(dice.below(3)).set<In::memic_start_addr>(memic_ + dice.below(64) * 8);
    const auto r = pair_.dev.exec(in, prm::modify_memic_out::bytes);
    const std::uint64_t at = r.ok() && dice.chance(50) ? r.get<prm::modify_memic_out::memic_operation_addr>()
                                                       : memic_ + dice.below(5000);
    const std::uint64_t word = dice.any();
    pair_.dev.function().write(at, &word, std::size_t{1} << dice.below(4));
    pair_.dev.function().read32(at & ~std::uint64_t{3});
    Mailbox query(prm::op::QUERY_GENERAL_OBJECT, 16, prm::kGeneralSchedElement);
    pair_.dev.exec(query.set<prm::general_obj_in_cmd_hdr::obj_id>(group_), 256);
    Mailbox modify(prm::op::MODIFY_GENERAL_OBJECT, 16 + prm::sched_elem::bytes, prm::kGeneralSchedElement);
    modify.set<prm::general_obj_in_cmd_hdr::obj_id>(group_).set<prm::sched_elem::modify_field_select>(3);
    modify.set<prm::sched_elem::sched_context::bw_share>(dice.below(100));
    pair_.dev.exec(modify.set<prm::sched_elem::sched_context::max_average_bw>(1000 + dice.below(50'000)));
    drain(pair_.acq);
    drain(pair_.bcq);
  }

 private:
  static QpAttr again(Pair& p) {
    p.a.to_reset();
    p.b.to_reset();
    return {};
  }
  std::uint32_t element(std::uint32_t type, std::uint32_t parent) {
    using C = prm::sched_elem::sched_context;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, 16 + prm::sched_elem::bytes, prm::kGeneralSchedElement);
    in.set<prm::sched_elem::scheduling_hierarchy>(3).set<C::element_type>(type).set<C::parent_element_id>(
        parent);
    return static_cast<std::uint32_t>(pair_.dev.exec(in).must().get<prm::general_obj_out_cmd_hdr::obj_id>());
  }
  Pair pair_;
  Joined joined_;
  Uctx user_;
  Buffer extra_;
  Umem umem_;
  std::uint64_t memic_ = 0;
  std::unique_ptr<Mr> key_;
  std::uint32_t tsar_ = 0, group_ = 0;
};

}  // namespace

std::unique_ptr<World> make_keys(Device& device) { return std::make_unique<Keys>(device); }
std::unique_ptr<World> make_paged(Device& device) { return std::make_unique<Paged>(device); }
std::unique_ptr<World> make_shares(Device& device) { return std::make_unique<Shares>(device); }

}  // namespace hcasim::bare
