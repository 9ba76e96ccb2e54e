// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/eth.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/bare/blueflame.h"
#include "prm/ipoib.h"

namespace hcasim::bare {

namespace {

constexpr std::size_t kEthInline = sizeof prm::EthSeg::inline_start;

// Executes the mailbox; takes the object's number from the output. `destroy` destroys it.
template <class NumberField, std::size_t OutBytes>
EthObject make(Device& device, const Mailbox& in, std::function<CommandResult(std::uint32_t)> destroy) {
  const auto number = static_cast<std::uint32_t>(device.exec(in, OutBytes).must().get<NumberField>());
  return {device, number, [number, destroy = std::move(destroy)] { return destroy(number); }};
}

template <class In, class NumberField>
std::function<CommandResult(std::uint32_t)> plain(Device& device, std::uint16_t opcode) {
  return [&device, opcode](std::uint32_t number) {
    Mailbox in(opcode, In::bytes);
    return device.exec(in.set<NumberField>(number));
  };
}

template <class T>
void append(std::vector<std::uint8_t>& v, const T& t) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(&t);
  v.insert(v.end(), p, p + sizeof t);
}

void pad(std::vector<std::uint8_t>& v) { v.resize((v.size() + prm::kDs - 1) / prm::kDs * prm::kDs); }

template <class C>
void fill_wq(Mailbox& in, const Ring& ring, const Pd& pd, const Dbr& dbr, unsigned type, unsigned log_size,
             unsigned log_stride, const std::vector<std::uint64_t>& pas, std::size_t bytes) {
  using W = typename C::wq;
  in.set<typename W::wq_type>(type);
  in.set<typename W::page_offset>(ring.page_offset());
  in.set<typename W::pd>(pd.pdn());
  in.set<typename W::dbr_addr>(dbr.bus);
  in.set<typename W::log_wq_stride>(log_stride);
  in.set<typename W::log_wq_pg_sz>(ring.log_page_size());
  in.set<typename W::log_wq_sz>(log_size);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::store64(in.data() + bytes + 8 * i, pas[i]);
}

template <class C>
void fill_lro(Mailbox& in, const TirSpec& s) {
  in.set<typename C::packet_merge_mask>(s.lro);
  in.set<typename C::lro_timeout_period_usecs>(s.lro != 0 ? s.lro_period_us : 0);
  in.set<typename C::lro_max_ip_payload_size>(s.lro != 0 ? s.lro_max : 0);
}

}  // namespace

EthObject::EthObject(Device& device, std::uint32_t number, std::function<CommandResult()> destroy)
    : device_(&device), number_(number), epoch_(device.epoch()), destroy_(std::move(destroy)) {}

EthObject::EthObject(EthObject&& o) noexcept
    : device_(o.device_),
      number_(o.number_),
      epoch_(o.epoch_),
      live_(std::exchange(o.live_, false)),
      destroy_(std::move(o.destroy_)) {}

EthObject::~EthObject() {
  if (live_ && device_->lives(epoch_)) device_->note_destroy(destroy());
}

CommandResult EthObject::destroy() {
  auto r = destroy_();
  if (r.ok()) live_ = false;
  return r;
}

EthObject make_transport_domain(Device& device) {
  using Out = prm::alloc_transport_domain_out;
  using DestroyIn = prm::dealloc_transport_domain_in;
  return make<Out::transport_domain, Out::bytes>(
      device, Mailbox(prm::op::ALLOC_TRANSPORT_DOMAIN, prm::alloc_transport_domain_in::bytes),
      plain<DestroyIn, DestroyIn::transport_domain>(device, prm::op::DEALLOC_TRANSPORT_DOMAIN));
}

EthObject make_tis(Device& device, std::uint32_t transport_domain, unsigned priority,
                   std::uint32_t underlay) {
  using In = prm::create_tis_in;
  Mailbox in(prm::op::CREATE_TIS, In::bytes);
  in.set<In::ctx::transport_domain>(transport_domain).set<In::ctx::prio>(priority << 1);
  in.set<In::ctx::underlay_qpn>(underlay);
  using DestroyIn = prm::destroy_tis_in;
  return make<prm::create_tis_out::tisn, prm::create_tis_out::bytes>(
      device, in, plain<DestroyIn, DestroyIn::tisn>(device, prm::op::DESTROY_TIS));
}

EthObject make_rqt(Device& device, const std::vector<std::uint32_t>& rqns) {
  using In = prm::create_rqt_in;
  Mailbox in(prm::op::CREATE_RQT, In::bytes + rqns.size() * 4);
  in.set<In::rqt_context::rqt_max_size>(rqns.size());
  in.set<In::rqt_context::rqt_actual_size>(rqns.size());
  for (std::size_t i = 0; i < rqns.size(); ++i) prm::store32(in.data() + In::bytes + 4 * i, rqns[i]);
  using DestroyIn = prm::destroy_rqt_in;
  return make<prm::create_rqt_out::rqtn, prm::create_rqt_out::bytes>(
      device, in, plain<DestroyIn, DestroyIn::rqtn>(device, prm::op::DESTROY_RQT));
}

EthObject make_tir(Device& device, const TirSpec& s, std::uint64_t* icm) {
  using In = prm::create_tir_in;
  using C = In::ctx;
  Mailbox in(prm::op::CREATE_TIR, In::bytes);
  in.set<C::disp_type>(s.rqn != 0 ? 0 : 1);
  in.set<C::inline_rqn>(s.rqn);
  in.set<C::indirect_table>(s.rqt);
  in.set<C::transport_domain>(s.transport_domain);
  in.set<C::self_lb_block>(s.self_lb_allow);
  in.set<C::rx_hash_fn>(s.hash_fn);
  fill_lro<C>(in, s);
  if (s.rqn == 0) {
    in.set<C::rx_hash_symmetric>(s.symmetric);
    for (std::size_t i = 0; i < 10; ++i)
      prm::set<C::rx_hash_toeplitz_key>(in.data(), i, prm::load32(s.key.data() + 4 * i));
    in.set<C::rx_hash_field_selector_outer::l3_prot_type>(s.ipv6);
    in.set<C::rx_hash_field_selector_outer::l4_prot_type>(s.udp);
    in.set<C::rx_hash_field_selector_outer::selected_fields>(s.fields);
  }
  using Out = prm::create_tir_out;
  using DestroyIn = prm::destroy_tir_in;
  const auto r = device.exec(in, Out::bytes).must();
  if (icm != nullptr)
    *icm = std::uint64_t{r.get<Out::icm_address_63_40>()} << 40 |
           std::uint64_t{r.get<Out::icm_address_39_32>()} << 32 | r.get<Out::icm_address_31_0>();
  const auto tirn = r.get<Out::tirn>();
  return {device, tirn, [tirn, destroy = plain<DestroyIn, DestroyIn::tirn>(device, prm::op::DESTROY_TIR)] {
            return destroy(tirn);
          }};
}

CommandResult set_lro(Device& device, std::uint32_t tirn, const TirSpec& spec) {
  using In = prm::modify_tir_in;
  Mailbox in(prm::op::MODIFY_TIR, In::bytes);
  in.set<In::tirn>(tirn).set<In::bitmask::packet_merge>(1);
  fill_lro<In::ctx>(in, spec);
  return device.exec(in);
}

EthObject make_flow_table(Device& device, unsigned log_size, unsigned level, unsigned type,
                          bool changes_lengths, bool terminates) {
  using In = prm::create_flow_table_in;
  Mailbox in(prm::op::CREATE_FLOW_TABLE, In::bytes);
  in.set<In::flow_table_context::level>(level);
  in.set<In::flow_table_context::log_size>(log_size);
  in.set<In::flow_table_context::reformat_en>(changes_lengths);
  in.set<In::flow_table_context::decap_en>(changes_lengths && type == kNicRxTable);
  in.set<In::flow_table_context::termination_table>(terminates);
  in.set<In::table_type>(type);
  return make<prm::create_flow_table_out::table_id, prm::create_flow_table_out::bytes>(
      device, in, [&device, type](std::uint32_t table) {
        using DestroyIn = prm::destroy_flow_table_in;
        Mailbox destroy(prm::op::DESTROY_FLOW_TABLE, DestroyIn::bytes);
        return device.exec(destroy.set<DestroyIn::table_id>(table).set<DestroyIn::table_type>(type));
      });
}

CommandResult set_flow_root(Device& device, std::uint32_t table, unsigned type, std::uint32_t underlay) {
  using In = prm::set_flow_table_root_in;
  Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, In::bytes);
  in.set<In::table_id>(table).set<In::table_type>(type).set<In::underlay_qpn>(underlay);
  return device.exec(in);
}

EthObject make_flow_group(Device& device, std::uint32_t table, std::uint32_t first, std::uint32_t last,
                          unsigned criteria, const MatchParam& mask, unsigned type) {
  using In = prm::create_flow_group_in;
  Mailbox in(prm::op::CREATE_FLOW_GROUP, In::bytes);
  in.set<In::table_id>(table);
  in.set<In::start_flow_index>(first);
  in.set<In::end_flow_index>(last);
  in.set<In::match_criteria_enable>(criteria);
  in.set<In::table_type>(type);
  std::copy(mask.begin(), mask.end(), prm::ptr<In::match_criteria>(in.data()));
  return make<prm::create_flow_group_out::group_id, prm::create_flow_group_out::bytes>(
      device, in, [&device, table, type](std::uint32_t group) {
        using DestroyIn = prm::destroy_flow_group_in;
        Mailbox destroy(prm::op::DESTROY_FLOW_GROUP, DestroyIn::bytes);
        return device.exec(
            destroy.set<DestroyIn::table_id>(table).set<DestroyIn::table_type>(type).set<DestroyIn::group_id>(
                group));
      });
}

CommandResult try_flow(Device& device, const FlowRule& r) {
  using In = prm::set_fte_in;
  using C = In::flow_context;
  constexpr std::size_t kList = C::destination::bit_off / 8, kItem = prm::dest_format_struct::bytes;
  constexpr unsigned kAllow = 1, kDrop = 2, kForward = 4, kCount = 8, kExecuteAso = 0x4000;
  const std::size_t items = r.to.size() + (r.counter != 0 ? 1 : 0);
  Mailbox in(prm::op::SET_FLOW_TABLE_ENTRY, std::max<std::size_t>(In::bytes, kList + items * kItem));
  in.set<In::table_id>(r.table);
  in.set<In::table_type>(r.type);
  in.set<In::flow_index>(r.index);
  in.set<C::group_id>(r.group);
  in.set<C::flow_tag>(r.tag);
  in.set<C::action>(r.action | (r.counter != 0 ? kCount : 0) | (r.meter.object != 0 ? kExecuteAso : 0) |
                    (!r.to.empty() ? kForward
                     : r.allow     ? kAllow
                                   : kDrop));
  in.set<C::modify_header_id>(r.modify).set<C::packet_reformat_id>(r.reformat);
  in.set<C::encrypt_decrypt_obj_id>(r.crypto).set<C::encrypt_decrypt_type>(r.crypto_type);
  in.set<C::push_vlan::ethtype>(r.push_tpid);
  in.set<C::push_vlan::prio>(r.push_tci >> 13).set<C::push_vlan::vid>(r.push_tci & 0xfff);
  if (r.meter.object != 0) {
    using aso = C::execute_aso::elem<0>;
    using ctrl = aso::exe_aso_ctrl::exe_aso_ctrl_flow_meter;
    in.set<aso::valid>(1).set<aso::aso_object_id>(r.meter.object);
    in.set<ctrl::aso_type>(prm::k::EXE_ASO_FLOW_METER).set<ctrl::return_reg_id>(r.meter.reg);
    in.set<ctrl::init_color>(r.meter.color).set<ctrl::meter_id>(r.meter.index);
  }
  in.set<C::destination_list_size>(r.to.size());
  in.set<C::flow_counter_list_size>(r.counter != 0 ? 1 : 0);
  std::copy(r.value.begin(), r.value.end(), prm::ptr<C::match_value>(in.data()));
  std::uint8_t* p = in.data() + kList;
  for (const FlowDest& to : r.to) {
    prm::set<prm::dest_format_struct::destination_type>(p, to.type);
    prm::set<prm::dest_format_struct::destination_id>(p, to.id);
    if (to.owner >= 0) {
      prm::set<prm::dest_format_struct::destination_eswitch_owner_vhca_id_valid>(p, 1);
      prm::set<prm::dest_format_struct::destination_eswitch_owner_vhca_id>(
          p, static_cast<std::uint32_t>(to.owner));
    }
    p += kItem;
  }
  if (r.counter != 0) prm::set<prm::flow_counter_list::flow_counter_id>(p, r.counter);
  return device.exec(in);
}

EthObject make_flow(Device& device, const FlowRule& r) {
  try_flow(device, r).must();
  return {device, r.index, [&device, table = r.table, index = r.index, type = r.type] {
            using DestroyIn = prm::delete_fte_in;
            Mailbox destroy(prm::op::DELETE_FLOW_TABLE_ENTRY, DestroyIn::bytes);
            return device.exec(destroy.set<DestroyIn::table_id>(table)
                                   .set<DestroyIn::table_type>(type)
                                   .set<DestroyIn::flow_index>(index));
          }};
}

// ---- SQ ----

Sq::Sq(Device& device, const Pd& pd, Cq& cq, std::uint32_t tis, unsigned log_size, bool gives_headers,
       std::uint32_t departures)
    : device_(device),
      log_size_(log_size),
      ring_(device.memory(), std::size_t{prm::kWqebb} << log_size, {}),
      dbr_(device.allocate_dbr()),
      epoch_(device.epoch()) {
  using In = prm::create_sq_in;
  using C = In::ctx;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_SQ, In::bytes + pas.size() * 8);
  in.set<C::flush_in_error_en>(1);
  in.set<C::allow_swp>(gives_headers ? 1 : 0);
  in.set<C::ts_cqe_to_dest_cqn>(departures);
  in.set<C::user_index>(0xffffff);
  in.set<C::cqn>(cq.cqn());
  in.set<C::tis_lst_sz>(tis != 0 ? 1 : 0);
  in.set<C::tis_num_0>(tis);
  in.set<C::wq::uar_page>(device.uar());
  fill_wq<C>(in, ring_, pd, dbr_, 1, log_size, 6, pas, In::bytes);
  try {
    sqn_ = static_cast<std::uint32_t>(
        device.exec(in, prm::create_sq_out::bytes).must().get<prm::create_sq_out::sqn>());
    live_ = true;
    modify(0, 1).must();
  } catch (...) {
    device.free_dbr(dbr_);
    throw;
  }
}

Sq::~Sq() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
  device_.free_dbr(dbr_);
}

CommandResult Sq::modify(unsigned from, unsigned to) {
  using In = prm::modify_sq_in;
  Mailbox in(prm::op::MODIFY_SQ, In::bytes);
  auto r = device_.exec(in.set<In::sqn>(sqn_).set<In::sq_state>(from).set<In::ctx::state>(to));
  if (r.ok() && to == 0) {
    pi_ = 0;
    dbr_.set(1, 0);
  }
  return r;
}

unsigned Sq::state() {
  using In = prm::query_sq_in;
  Mailbox in(prm::op::QUERY_SQ, In::bytes);
  const auto r = device_.exec(in.set<In::sqn>(sqn_), prm::query_sq_out::bytes);
  return static_cast<unsigned>(r.must().get<prm::query_sq_out::sq_context::state>());
}

CommandResult Sq::destroy() {
  using In = prm::destroy_sq_in;
  Mailbox in(prm::op::DESTROY_SQ, In::bytes);
  auto r = device_.exec(in.set<In::sqn>(sqn_));
  if (r.ok()) live_ = false;
  return r;
}

std::uint16_t Sq::post_raw(std::vector<std::uint8_t> wqe, unsigned wqebbs, bool ring) {
  const std::uint16_t index = pi_;
  const std::size_t size = std::size_t{1} << log_size_;
  for (std::size_t off = 0, i = 0; off < wqe.size(); off += prm::kWqebb, ++i)
    std::memcpy(ring_.data() + ((index + i) & (size - 1)) * prm::kWqebb, wqe.data() + off,
                std::min<std::size_t>(prm::kWqebb, wqe.size() - off));
  last_ = index;
  last_wqebbs_ = wqebbs;
  pi_ = static_cast<std::uint16_t>(pi_ + wqebbs);
  if (ring) ring_doorbell();
  return index;
}

std::uint16_t Sq::post(const EthWr& wr, bool ring) {
  std::vector<std::uint8_t> w(sizeof(prm::CtrlSeg));
  if (wr.to) {
    append(w, av_segment(device_, *wr.to));
    w.resize(w.size() + prm::kAddressPad);
  }
  if (wr.op != WqeOp::kNop) {
    prm::EthSeg eth{};
    eth.cs_flags = wr.cs_flags;
    eth.mss = wr.mss;
    eth.flow_table_metadata = wr.metadata;
    const auto given = [](unsigned bytes) { return static_cast<std::uint8_t>(bytes / 2); };
    eth.swp_outer_l3_offset = given(wr.given.outer_l3);
    eth.swp_outer_l4_offset = given(wr.given.outer_l4);
    eth.swp_inner_l3_offset = given(wr.given.inner_l3);
    eth.swp_inner_l4_offset = given(wr.given.inner_l4);
    eth.swp_flags = wr.given.flags;
    if (wr.vlan) {
      eth.inline_hdr_sz = prm::EthSeg::kInsertVlan;
      eth.inline_start[0] = static_cast<std::uint8_t>(*wr.vlan >> 8);
      eth.inline_start[1] = static_cast<std::uint8_t>(*wr.vlan);
    } else {
      eth.inline_hdr_sz = static_cast<std::uint16_t>(wr.headers.size());
      std::copy_n(wr.headers.begin(), std::min(kEthInline, wr.headers.size()), eth.inline_start);
      if (!wr.trailer.empty())
        eth.inline_hdr_sz = static_cast<std::uint16_t>(
            wr.headers.size() | prm::EthSeg::kInsertTrailer |
            (wr.trailer_of_l4 ? prm::EthSeg::kTrailerOfOuterL4 : prm::EthSeg::kTrailerOfOuterIp));
    }
    append(w, eth);
    if (wr.headers.size() > kEthInline) w.insert(w.end(), wr.headers.begin() + kEthInline, wr.headers.end());
    pad(w);
    const auto append_inline = [&w](const std::vector<std::uint8_t>& data) {
      if (data.empty()) return;
      prm::InlineSeg seg;
      seg.byte_count = prm::InlineSeg::kFlag | static_cast<std::uint32_t>(data.size());
      append(w, seg);
      w.insert(w.end(), data.begin(), data.end());
      pad(w);
    };
    append_inline(wr.trailer);
    append_inline(wr.inline_data);
    for (std::size_t i = 0; i <= wr.sges.size(); ++i) {
      for (const EthWr::Piece& piece : wr.pieces)
        if (piece.behind == i) append_inline(piece.bytes);
      if (i == wr.sges.size()) break;
      prm::DataSeg seg;
      seg.byte_count = wr.sges[i].len;
      seg.lkey = wr.sges[i].lkey;
      seg.addr = wr.sges[i].addr;
      append(w, seg);
    }
  }
  const auto ds = static_cast<unsigned>(w.size() / prm::kDs);
  if (ds > prm::kMaxWqeDs) throw BareError("WQE too large");
  prm::CtrlSeg ctrl{};
  ctrl.set(wr.op, pi_, sqn_, ds,
           wr.signaled           ? prm::kCeAlways
           : wr.only_first_error ? prm::kCeOnFirstError
                                 : prm::kCeOnError);
  ctrl.opmod_idx_opcode = ctrl.opmod_idx_opcode | std::uint32_t{wr.opmod} << 24;
  ctrl.imm = wr.tis << 8;
  std::memcpy(w.data(), &ctrl, sizeof ctrl);
  return post_raw(std::move(w), (ds + 3) / 4, ring);
}

void Sq::ring_doorbell() {
  dbr_.set(1, pi_);
  const std::size_t at = last_ & ((std::size_t{1} << log_size_) - 1);
  device_.function().write(device_.uar_offset() + prm::uar::kSqDoorbell, ring_.data() + at * prm::kWqebb, 8);
}

void Sq::ring_blueflame() {
  dbr_.set(1, pi_);
  const std::size_t mask = (std::size_t{1} << log_size_) - 1;
  const auto wqebb = [&](unsigned i) { return ring_.data() + ((last_ + i) & mask) * prm::kWqebb; };
  if (!write_blueflame(device_, bf_offset_, last_wqebbs_, wqebb)) ring_doorbell();
}

// ---- RQ ----

EthRq::EthRq(Device& device, const Pd& pd, Cq& cq, const RqOptions& o)
    : device_(device),
      options_(o),
      ring_(device.memory(), std::size_t{1} << (o.log_size + o.log_stride), o.ring),
      dbr_(device.allocate_dbr()),
      epoch_(device.epoch()) {
  if (has_next()) {
    const unsigned n = 1u << o.log_size;
    for (unsigned i = 0; i < n; ++i)
      reinterpret_cast<prm::SrqNextSeg*>(wqe(static_cast<std::uint16_t>(i)))->next_wqe_index =
          static_cast<std::uint16_t>((i + 1) & (n - 1));
  }
  using In = prm::create_rq_in;
  using C = In::ctx;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_RQ, In::bytes + pas.size() * 8);
  in.set<C::vsd>(o.keep_vlan);
  in.set<C::scatter_fcs>(o.scatter_fcs);
  in.set<C::flush_in_error_en>(o.flush_in_error);
  in.set<C::rlky>(o.reserved_lkey);
  in.set<C::user_index>(o.user_index);
  in.set<C::cqn>(cq.cqn());
  in.set<C::counter_set_id>(o.counter_set);
  fill_wq<C>(in, ring_, pd, dbr_, o.type, o.log_size, o.log_stride, pas, In::bytes);
  if (has_next()) {
    in.set<C::wq::log_wqe_num_of_strides>(o.log_strides - 9);
    in.set<C::wq::log_wqe_stride_size>(o.log_stride_size - 6);
    in.set<C::wq::two_byte_shift_en>(o.two_byte_shift);
  }
  if (o.split) {
    in.set<C::wq::shampo_enable>(1);
    in.set<C::wq::headers_mkey>(o.headers_mkey);
    in.set<C::wq::log_headers_buffer_entry_num>(o.log_headers);
    in.set<C::wq::log_headers_entry_size>(o.log_header - 6);
    in.set<C::wq::log_reservation_size>(o.log_reservation - 12);
    in.set<C::wq::log_max_num_of_packets_per_reservation>(o.log_frames);
    in.set<C::shampo_match_criteria_type>(o.match);
    in.set<C::shampo_no_match_alignment_granularity>(o.align);
    in.set<C::reservation_timeout>(o.timeout_us);
  }
  try {
    rqn_ = static_cast<std::uint32_t>(
        device.exec(in, prm::create_rq_out::bytes).must().get<prm::create_rq_out::rqn>());
    live_ = true;
    modify(0, 1).must();
  } catch (...) {
    device.free_dbr(dbr_);
    throw;
  }
}

EthRq::~EthRq() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
  device_.free_dbr(dbr_);
}

std::uint8_t* EthRq::wqe(std::uint16_t index) const {
  return ring_.data() +
         (static_cast<std::size_t>(index & ((1u << options_.log_size) - 1)) << options_.log_stride);
}

std::uint16_t EthRq::post(const std::vector<Sge>& sges, bool ring) {
  const std::size_t head = has_next() ? sizeof(prm::SrqNextSeg) : 0;
  const std::size_t room = ((std::size_t{1} << options_.log_stride) - head) / sizeof(prm::DataSeg);
  const std::uint16_t index = pi_;
  write_receive_list(wqe(index) + head, sges, room);
  ++pi_;
  if (ring) ring_doorbell();
  return index;
}

CommandResult EthRq::modify(unsigned from, unsigned to) {
  using In = prm::modify_rq_in;
  Mailbox in(prm::op::MODIFY_RQ, In::bytes);
  auto r = device_.exec(in.set<In::rqn>(rqn_).set<In::rq_state>(from).set<In::ctx::state>(to));
  if (r.ok() && to == 0) {
    pi_ = 0;
    dbr_.set(0, 0);
  }
  return r;
}

unsigned EthRq::state() {
  using In = prm::query_rq_in;
  Mailbox in(prm::op::QUERY_RQ, In::bytes);
  const auto r = device_.exec(in.set<In::rqn>(rqn_), prm::query_rq_out::bytes);
  return static_cast<unsigned>(r.must().get<prm::query_rq_out::rq_context::state>());
}

CommandResult EthRq::destroy() {
  using In = prm::destroy_rq_in;
  Mailbox in(prm::op::DESTROY_RQ, In::bytes);
  auto r = device_.exec(in.set<In::rqn>(rqn_));
  if (r.ok()) live_ = false;
  return r;
}

}  // namespace hcasim::bare
