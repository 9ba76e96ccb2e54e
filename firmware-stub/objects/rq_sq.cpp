// SPDX-License-Identifier: BSD-3-Clause
// The queues of the Ethernet link: RQ (rqc) and SQ (sqc). An SQ is a Qp of type kSq in the model and takes
// its number from the space of QPs.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/ring.h"
#include "firmware-stub/objects/time_format.h"

namespace hcasim::fw {

namespace {

enum : std::uint32_t { kStateRst = 0, kStateRdy = 1, kStateErr = 3 };  // rqc.state, sqc.state
enum : std::uint32_t { kMemInline = 0, kMemRmp = 1 };                  // rqc.mem_rq_type
enum : std::uint64_t {  // modify_rq_in.modify_bitmask (mlx5_ifc.h, MLX5_MODIFY_RQ_IN_MODIFY_BITMASK_*)
  kModifyVsd = 1u << 1,
  kModifyScatterFcs = 1u << 2,
  kModifyCounterSet = 1u << 3,
};
enum : std::uint64_t { kModifyPace = 1u << 0, kModifyQueueGroup = 1u << 2 };  // modify_sq_in.modify_bitmask
enum : std::uint32_t { kNoMatch = 0, kMatchExtended = 1 };  // rqc.shampo_match_criteria_type
enum : std::uint32_t { kAlignStride = 1, kAlignPage = 2 };  // rqc.shampo_no_match_alignment_granularity
constexpr unsigned kLogPage = 12;
constexpr unsigned kLogWqebb = 6;
constexpr unsigned kMinLogRqStride = 4, kMaxLogRqStride = 15;
constexpr unsigned kBaseLogStrides = 9, kBaseLogStrideSize = 6;  // of striding RQs, as the wq says them
constexpr unsigned kFirstFewerStrides = 10;                      // -6: 8 strides

bool striding(WqType t) { return t == WqType::kLinkedListStriding || t == WqType::kCyclicStriding; }

// What the wq W has whatever its queue is. log_stride: bytes of a WQE, log2.
template <class W>
Syndrome check_wq(Firmware& fw, const Command& cmd) {
  if (cmd.get<typename W::wq_signature>() != 0 || cmd.get<typename W::cd_slave>() != 0 ||
      cmd.get<typename W::lwm>() != 0)
    return Syndrome::kWqFeature;
  if (cmd.get<typename W::log_wq_sz>() > fw.caps().get<prm::cmd_hca_cap::log_max_wq_sz>())
    return Syndrome::kWqSize;
  const std::uint32_t pd = cmd.get<typename W::pd>();
  // 0: none, for a queue that never gets a WQE.
  return pd == 0 || fw.objects().pds.find(pd) != nullptr ? Syndrome::kOk : Syndrome::kPdNumber;
}

template <class W>
Syndrome read_wq_ring(Firmware& fw, const Command& cmd, GuestRing& ring, UmemRefs& umems) {
  const std::uint64_t bytes = std::uint64_t{1}
                              << (cmd.get<typename W::log_wq_sz>() + cmd.get<typename W::log_wq_stride>());
  if (cmd.get<typename W::wq_umem_valid>() != 0) {
    umems.buffer = cmd.get<typename W::wq_umem_id>();
    return umem_ring(fw, cmd, umems.buffer, cmd.get<typename W::wq_umem_offset>(), bytes, 1u << kLogWqebb,
                     false, ring);
  }
  return read_ring(fw, cmd, W::pas::bit_off / 8, cmd.get<typename W::log_wq_pg_sz>(),
                   cmd.get<typename W::page_offset>(), bytes, Syndrome::kWqPages, ring);
}

template <class W>
Syndrome read_wq_dbr(Firmware& fw, const Command& cmd, std::uint64_t& dbr, UmemRefs& umems) {
  dbr = cmd.get<typename W::dbr_addr>();
  if (cmd.get<typename W::dbr_umem_valid>() != 0) {
    umems.doorbell = cmd.get<typename W::dbr_umem_id>();
    return umem_doorbell(fw, cmd, umems.doorbell, dbr, 8, dbr);
  }
  // Records are of 8 bytes, and the address has no bits for less: a driver that names the half that it writes
  // (OpenBSD's mcx, of an SQ) means the whole.
  if ((dbr & 7) != 0)
    fw.tracer().broke_value(traces::Rule::kDbrAlign, cmd.now, traces::RuleObject::kCommand, cmd.seq, dbr);
  dbr &= ~std::uint64_t{7};
  return Syndrome::kOk;
}

// Headers apart from data, as the RQ's context says.
Syndrome read_split(Firmware& fw, const Command& cmd, Rq& rq) {
  using c = prm::create_rq_in::ctx;
  using w = c::wq;
  if (fw.caps().get<prm::cmd_hca_cap::shampo>() == 0) return Syndrome::kWqFeature;
  if (rq.type != WqType::kLinkedListStriding || rq.two_byte_shift || rq.use_rmp ||
      cmd.get<c::scatter_fcs>() != 0)
    return Syndrome::kWqFeature;
  const std::uint32_t match = cmd.get<c::shampo_match_criteria_type>();
  const std::uint32_t align = cmd.get<c::shampo_no_match_alignment_granularity>();
  if ((match != kNoMatch && match != kMatchExtended) || align > kAlignPage) return Syndrome::kWqFeature;
  HeaderSplit split;
  split.merges = match == kMatchExtended;
  split.mkey = cmd.get<w::headers_mkey>();
  split.log_entries = cmd.get<w::log_headers_buffer_entry_num>();
  split.log_entry_size = HeaderSplit::kLogBaseEntry + cmd.get<w::log_headers_entry_size>();
  split.log_reservation = HeaderSplit::kLogBaseReservation + cmd.get<w::log_reservation_size>();
  split.log_frames = cmd.get<w::log_max_num_of_packets_per_reservation>();
  split.log_align = align == kAlignPage ? kLogPage : align == kAlignStride ? rq.log_stride_size : 0;
  split.timeout = from_ns(1e3 * cmd.get<c::reservation_timeout>());
  if (!rq.reservations_fit(split)) return Syndrome::kWqStride;
  rq.split = split;
  return Syndrome::kOk;
}

// Which changes of state there are: up from reset, into error and back to reset; staying changes other
// fields.
bool may_move(std::uint32_t from, std::uint32_t to) {
  if (to != kStateRst && to != kStateRdy && to != kStateErr) return false;
  switch (from) {
    case kStateRst:
    case kStateRdy:
      return true;
    default:
      return to != kStateRdy;
  }
}

}  // namespace

// ---- RQ ----

Syndrome create_rq(Firmware& fw, Command& cmd) {
  using c = prm::create_rq_in::ctx;
  using w = c::wq;
  Objects& o = fw.objects();
  Syndrome s = check_wq<w>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  if (cmd.get<c::delay_drop_en>() != 0 || cmd.get<c::hairpin>() != 0 ||
      !free_running(static_cast<std::uint32_t>(cmd.get<c::ts_format>())))
    return Syndrome::kWqFeature;
  if (cmd.get<c::state>() != kStateRst) return Syndrome::kRqState;
  const std::uint32_t mem = cmd.get<c::mem_rq_type>();
  if (mem != kMemInline && mem != kMemRmp) return Syndrome::kWqFeature;
  Rq rq;
  rq.use_rmp = mem == kMemRmp;
  rq.reserved_lkey = cmd.uid == 0 && cmd.get<c::rlky>() != 0;
  if (cmd.get<w::wq_type>() > static_cast<std::uint32_t>(WqType::kCyclicStriding)) return Syndrome::kWqType;
  rq.type = static_cast<WqType>(cmd.get<w::wq_type>());
  if (striding(rq.type)) {
    if (fw.caps().get<prm::cmd_hca_cap::striding_rq>() == 0) return Syndrome::kWqType;
    // 4 bits with a sign, of cards that take fewer strides than the base.
    const std::uint32_t strides = cmd.get<w::log_wqe_num_of_strides>();
    const bool fewer = strides >= kFirstFewerStrides;
    if (fewer && fw.caps().get<prm::cmd_hca_cap::ext_stride_num_range>() == 0) return Syndrome::kWqStride;
    rq.log_strides = strides + kBaseLogStrides - (fewer ? 16 : 0);
    rq.log_stride_size = cmd.get<w::log_wqe_stride_size>() + kBaseLogStrideSize;
    if (rq.log_strides > Rq::kMaxLogStrides || rq.log_stride_size > Rq::kMaxLogStrideSize)
      return Syndrome::kWqStride;
    rq.two_byte_shift = cmd.get<w::two_byte_shift_en>() != 0;
  }
  if (cmd.get<w::shampo_enable>() != 0) {
    s = read_split(fw, cmd, rq);
    if (s != Syndrome::kOk) return s;
  }
  CqObject* cq = o.cqs.find(cmd.get<c::cqn>());
  if (cq == nullptr) return Syndrome::kCqNumber;
  const std::uint32_t counter = cmd.get<c::counter_set_id>();
  PlainObject* q_counter = o.q_counters.find(counter);
  if (counter != 0 && q_counter == nullptr) return Syndrome::kQCounterNumber;
  SrqObject* rmp = nullptr;
  UmemRefs umems;
  if (rq.use_rmp) {
    rq.rmpn = cmd.get<c::rmpn>();
    rmp = o.srqs.find(rq.rmpn);
    if (rmp == nullptr) return Syndrome::kSrqNumber;
    if (rmp->kind != ObjType::kRmp) return Syndrome::kSrqKind;
  } else {
    rq.log_size = cmd.get<w::log_wq_sz>();
    rq.log_stride = cmd.get<w::log_wq_stride>();
    if (rq.log_stride < kMinLogRqStride || rq.log_stride > kMaxLogRqStride) return Syndrome::kWqStride;
    s = read_wq_ring<w>(fw, cmd, rq.ring, umems);
    if (s != Syndrome::kOk) return s;
    s = read_wq_dbr<w>(fw, cmd, rq.dbr_addr, umems);
    if (s != Syndrome::kOk) return s;
  }
  if (o.rqs.full()) return Syndrome::kRqLimit;
  if (!fw.pages().charge(kIcmRq)) return Syndrome::kWaitPages;

  RqObject* object = o.rqs.create(rq.rqn);
  if (object == nullptr) return Syndrome::kRqLimit;
  std::memcpy(object->rqc.data(), prm::ptr<c>(cmd.in.data()), object->rqc.size());
  rq.keep_vlan = cmd.get<c::vsd>() != 0;
  rq.scatter_fcs = cmd.get<c::scatter_fcs>() != 0;
  rq.flush_in_error = cmd.get<c::flush_in_error_en>() != 0;
  rq.cqn = cmd.get<c::cqn>();
  rq.pd = cmd.get<w::pd>();
  rq.user_index = cmd.get<c::user_index>();
  rq.counter_set = static_cast<std::uint8_t>(counter);
  object->cq = Ref(cq);
  object->pd = Ref(o.pds.find(rq.pd));
  object->counter_set = Ref(q_counter);
  object->rmp = Ref(rmp);
  o.take_list(rq.ring.pages.size());
  const std::uint32_t rqn = rq.rqn;
  rq.function = fw.function().id();
  fw.function().eth().rqs[rqn] = std::move(rq);
  cmd.put<prm::create_rq_out::rqn>(rqn);
  fw.trace_create(ObjType::kRq, rqn, cmd.uid);
  hold_umems(fw, ObjType::kRq, rqn, umems);
  return Syndrome::kOk;
}

Syndrome modify_rq(Firmware& fw, Command& cmd) {
  using in = prm::modify_rq_in;
  using c = in::ctx;
  Objects& o = fw.objects();
  const std::uint32_t rqn = cmd.get<in::rqn>();
  RqObject* object = o.rqs.find(rqn);
  Rq* rq = EthTable::find(fw.function().eth().rqs, rqn);
  if (object == nullptr || rq == nullptr) return Syndrome::kRqNumber;
  const auto now = static_cast<std::uint32_t>(rq->state);
  const std::uint32_t next = cmd.get<c::state>();
  if (cmd.get<in::rq_state>() != now || !may_move(now, next)) return Syndrome::kRqState;
  const std::uint64_t mask = cmd.get<in::modify_bitmask>();
  if ((mask & ~(kModifyVsd | kModifyScatterFcs | kModifyCounterSet)) != 0) return Syndrome::kModifyMask;
  if ((mask & kModifyCounterSet) != 0) {
    const std::uint32_t counter = cmd.get<c::counter_set_id>();
    PlainObject* to = o.q_counters.find(counter);
    if (counter != 0 && to == nullptr) return Syndrome::kQCounterNumber;
    object->counter_set = Ref(to);
    rq->counter_set = static_cast<std::uint8_t>(counter);
  }
  if (rq->split && (mask & kModifyScatterFcs) != 0 && cmd.get<c::scatter_fcs>() != 0)
    return Syndrome::kWqFeature;
  if ((mask & kModifyVsd) != 0) rq->keep_vlan = cmd.get<c::vsd>() != 0;
  if ((mask & kModifyScatterFcs) != 0) rq->scatter_fcs = cmd.get<c::scatter_fcs>() != 0;
  if (next != now) {
    const RqState old = rq->state;
    rq->state = static_cast<RqState>(next);
    fw.device().eth_rx().rq_changed(cmd.now, *rq, old);
  }
  return Syndrome::kOk;
}

Syndrome destroy_rq(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t rqn = cmd.get<prm::destroy_rq_in::rqn>();
  const RqObject* object = o.rqs.find(rqn);
  Rq* rq = EthTable::find(fw.function().eth().rqs, rqn);
  if (object == nullptr || rq == nullptr) return Syndrome::kRqNumber;
  if (object->referred()) return Syndrome::kRqBusy;
  if (rq->state != RqState::kRst) {
    const RqState old = rq->state;
    rq->state = RqState::kRst;
    fw.device().eth_rx().rq_changed(cmd.now, *rq, old);
  }
  fw.quiesce();
  o.return_list(rq->ring.pages.size());
  fw.function().eth().rqs.erase(rqn);
  o.rqs.destroy(rqn);
  fw.pages().release(kIcmRq);
  fw.trace_destroy(ObjType::kRq, rqn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_rq(Firmware& fw, Command& cmd) {
  using c = prm::query_rq_out::rq_context;
  const std::uint32_t rqn = cmd.get<prm::query_rq_in::rqn>();
  const RqObject* object = fw.objects().rqs.find(rqn);
  const Rq* rq = EthTable::find(fw.function().eth().rqs, rqn);
  if (object == nullptr || rq == nullptr) return Syndrome::kRqNumber;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->rqc.data(), object->rqc.size());
  cmd.put<c::state>(static_cast<std::uint32_t>(rq->state));
  cmd.put<c::vsd>(rq->keep_vlan ? 1 : 0);
  cmd.put<c::scatter_fcs>(rq->scatter_fcs ? 1 : 0);
  cmd.put<c::flush_in_error_en>(rq->flush_in_error ? 1 : 0);
  cmd.put<c::counter_set_id>(rq->counter_set);
  cmd.put<c::wq::hw_counter>(rq->consumer);
  cmd.put<c::wq::sw_counter>(rq->producer);
  return Syndrome::kOk;
}

// ---- SQ ----

namespace {

std::uint32_t sq_state(const Qp& sq) {
  switch (sq.state) {
    case QpState::kRst:
      return kStateRst;
    case QpState::kErr:
    case QpState::kSqErr:
      return kStateErr;
    default:
      return kStateRdy;
  }
}

void move_sq(Firmware& fw, Qp& sq, QpState to) {
  if (sq.state == to) return;
  const QpState old = sq.state;
  sq.state = to;
  fw.device().qp_changed(sq, old);
}

// Asks for what no capability promises.
bool wants_sq_feature(const Caps& caps, const Command& cmd) {
  using c = prm::create_sq_in::ctx;
  using e = prm::per_protocol_networking_offload_caps;
  const auto offered = [&caps](auto field) { return caps.get<decltype(field)>(CapGroup::kEthernet) != 0; };
  return cmd.get<c::cd_master>() != 0 || cmd.get<c::fre>() != 0 || cmd.get<c::hairpin>() != 0 ||
         cmd.get<c::non_wire>() != 0 || !free_running(static_cast<std::uint32_t>(cmd.get<c::ts_format>())) ||
         (cmd.get<c::ts_cqe_to_dest_cqn>() != 0 && caps.get<prm::cmd_hca_cap::ts_cqe_to_dest_cqn>() == 0) ||
         (cmd.get<c::allow_swp>() != 0 && !offered(e::swp{})) ||
         (cmd.get<c::reg_umr>() != 0 && !offered(e::reg_umr_sq{})) ||
         (cmd.get<c::allow_multi_pkt_send_wqe>() != 0 && !offered(e::multi_pkt_send_wqe{}) &&
          !offered(e::enhanced_multi_pkt_send_wqe{}));
}

// Both halves of an SQ.
bool find_sq(Firmware& fw, std::uint32_t sqn, QpObject*& object, Qp*& sq) {
  object = fw.objects().qps.find(sqn);
  sq = fw.function().qps().find(sqn);
  return object != nullptr && sq != nullptr && object->is_sq();
}

}  // namespace

Syndrome create_sq(Firmware& fw, Command& cmd) {
  using c = prm::create_sq_in::ctx;
  using w = c::wq;
  Objects& o = fw.objects();
  Function& function = fw.function();
  Syndrome s = check_wq<w>(fw, cmd);
  if (s != Syndrome::kOk) return s;
  if (wants_sq_feature(fw.caps(), cmd) || cmd.get<w::shampo_enable>() != 0) return Syndrome::kWqFeature;
  if (cmd.get<c::state>() != kStateRst) return Syndrome::kSqState;
  s = check_pace(fw, cmd, cmd.get<c::packet_pacing_rate_limit_index>());
  if (s == Syndrome::kOk) s = check_queue_group(fw, cmd, cmd.get<c::qos_queue_group_id>());
  if (s != Syndrome::kOk) return s;
  if (cmd.get<w::wq_type>() != static_cast<std::uint32_t>(WqType::kCyclic)) return Syndrome::kWqType;
  if (cmd.get<w::log_wq_stride>() != kLogWqebb) return Syndrome::kWqStride;
  CqObject* cq = o.cqs.find(cmd.get<c::cqn>());
  if (cq == nullptr) return Syndrome::kCqNumber;
  if (cmd.get<c::tis_lst_sz>() > 1) return Syndrome::kSqTis;
  CqObject* departures = nullptr;
  if (const std::uint32_t cqn = cmd.get<c::ts_cqe_to_dest_cqn>(); cqn != 0) {
    departures = o.cqs.find(cqn);
    if (departures == nullptr) return Syndrome::kCqNumber;
  }
  TisObject* tis = nullptr;  // an SQ for UMRs and NOPs has none
  const std::uint32_t tisn = cmd.get<c::tis_lst_sz>() != 0 ? cmd.get<c::tis_num_0>() : 0;
  if (tisn != 0) {
    tis = o.tises.find(tisn);
    if (tis == nullptr) return Syndrome::kTisNumber;
  }
  const std::uint32_t uar = cmd.get<w::uar_page>();
  if (o.uars.find(uar) == nullptr) return Syndrome::kUarNumber;
  GuestRing ring;
  UmemRefs umems;
  s = read_wq_ring<w>(fw, cmd, ring, umems);
  if (s != Syndrome::kOk) return s;
  std::uint64_t dbr = 0;
  s = read_wq_dbr<w>(fw, cmd, dbr, umems);
  if (s != Syndrome::kOk) return s;
  if (o.qps.full()) return Syndrome::kQpLimit;
  if (!fw.pages().charge(kIcmQp)) return Syndrome::kWaitPages;

  std::uint32_t sqn = 0;
  QpObject* object = o.qps.create(sqn);
  Qp* sq = function.qps().create(sqn);
  if (sq == nullptr) {
    o.qps.destroy(sqn);
    fw.pages().release(kIcmQp);
    return Syndrome::kQpModelRefused;
  }
  const std::uint8_t* context = prm::ptr<c>(cmd.in.data());
  object->sqc.assign(context, context + prm::sqc::bytes);
  object->scq = Ref(cq);
  object->departures = Ref(departures);
  object->tis = Ref(tis);
  object->pd = Ref(o.pds.find(cmd.get<w::pd>()));

  sq->type = QpType::kSq;
  sq->pd = cmd.get<w::pd>();
  sq->scq = cmd.get<c::cqn>();
  sq->departures_cqn = cmd.get<c::ts_cqe_to_dest_cqn>();
  sq->has_rq = false;
  o.take_list(ring.pages.size());
  sq->ring = std::move(ring);
  sq->log_sq_size = cmd.get<w::log_wq_sz>();
  sq->dbr_addr = dbr;
  sq->user_index = cmd.get<c::user_index>();
  sq->uar_page = uar;
  sq->reserved_lkey = cmd.uid == 0 && cmd.get<c::rlky>() != 0;
  sq->fast_registers = cmd.uid == 0 && cmd.get<c::reg_umr>() != 0;
  sq->tis = tisn;
  if (const Tis* t = EthTable::find(function.eth().tises, tisn)) {
    sq->transport_domain = t->transport_domain;
    sq->affinity = t->affinity;
    sq->prio = t->priority();
    sq->underlay = t->underlay;
  }
  sq->tls = fw.options().encrypts() && sq->underlay == 0;
  sq->flush_in_error = cmd.get<c::flush_in_error_en>() != 0;
  sq->gives_headers = cmd.get<c::allow_swp>() != 0;
  sq->qos.pace = static_cast<std::uint16_t>(cmd.get<c::packet_pacing_rate_limit_index>());
  if (cmd.get<c::qos_queue_group_id>() != 0)
    set_queue_groups(fw, ObjType::kSq, sqn, cmd.get<c::qos_queue_group_id>(), 0);
  cmd.put<prm::create_sq_out::sqn>(sqn);
  fw.trace_create(ObjType::kSq, sqn, cmd.uid);
  hold_umems(fw, ObjType::kSq, sqn, umems);
  return Syndrome::kOk;
}

Syndrome modify_sq(Firmware& fw, Command& cmd) {
  using in = prm::modify_sq_in;
  QpObject* object = nullptr;
  Qp* sq = nullptr;
  if (!find_sq(fw, cmd.get<in::sqn>(), object, sq)) return Syndrome::kSqNumber;
  const std::uint32_t now = sq_state(*sq), next = cmd.get<in::ctx::state>();
  if (cmd.get<in::sq_state>() != now || !may_move(now, next)) return Syndrome::kSqState;
  const std::uint64_t mask = cmd.get<in::modify_bitmask>();
  if ((mask & ~(kModifyPace | kModifyQueueGroup)) != 0) return Syndrome::kModifyMask;
  using c = in::ctx;
  const std::uint32_t pace = cmd.get<c::packet_pacing_rate_limit_index>();
  const std::uint32_t group = cmd.get<c::qos_queue_group_id>();
  Syndrome s = (mask & kModifyPace) != 0 ? check_pace(fw, cmd, pace) : Syndrome::kOk;
  if (s == Syndrome::kOk && (mask & kModifyQueueGroup) != 0) s = check_queue_group(fw, cmd, group);
  if (s != Syndrome::kOk) return s;
  if ((mask & kModifyPace) != 0) {
    sq->qos.pace = static_cast<std::uint16_t>(pace);
    sq->qos.clock = {};
    prm::set<prm::sqc::packet_pacing_rate_limit_index>(object->sqc.data(), pace);
    fw.device().scheduler().resume(cmd.now);
  }
  if ((mask & kModifyQueueGroup) != 0) {
    set_queue_groups(fw, ObjType::kSq, sq->qpn, group, 0);
    prm::set<prm::sqc::qos_queue_group_id>(object->sqc.data(), group);
  }
  move_sq(fw, *sq, next == kStateRst ? QpState::kRst : next == kStateRdy ? QpState::kRts : QpState::kErr);
  return Syndrome::kOk;
}

Syndrome destroy_sq(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Function& function = fw.function();
  const std::uint32_t sqn = cmd.get<prm::destroy_sq_in::sqn>();
  QpObject* object = nullptr;
  Qp* sq = nullptr;
  if (!find_sq(fw, sqn, object, sq)) return Syndrome::kSqNumber;
  move_sq(fw, *sq, QpState::kRst);
  fw.quiesce();
  o.return_list(sq->ring.pages.size());
  function.qps().destroy(sqn);
  o.qps.destroy(sqn);
  fw.pages().release(kIcmQp);
  fw.trace_destroy(ObjType::kSq, sqn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_sq(Firmware& fw, Command& cmd) {
  using c = prm::query_sq_out::sq_context;
  QpObject* object = nullptr;
  Qp* sq = nullptr;
  if (!find_sq(fw, cmd.get<prm::query_sq_in::sqn>(), object, sq)) return Syndrome::kSqNumber;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->sqc.data(), object->sqc.size());
  cmd.put<c::state>(sq_state(*sq));
  cmd.put<c::wq::hw_counter>(sq->req.fetched);
  cmd.put<c::wq::sw_counter>(sq->req.db_counter);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
