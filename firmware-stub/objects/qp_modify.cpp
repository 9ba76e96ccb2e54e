// SPDX-License-Identifier: BSD-3-Clause
// QP state transitions, by the table of qp_transitions.h.
#include <algorithm>
#include <array>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/qp_context.h"
#include "firmware-stub/objects/qp_transitions.h"
#include "firmware-stub/opcodes.h"
#include "prm/qos.h"
#include "prm/transport_caps.h"

namespace hcasim::fw {

namespace {

// All transition commands have their input laid out alike.
using RstToInit = prm::rst2init_qp_in;
using C = RstToInit::qpc;
using Path = C::primary_address_path;
static_assert(prm::init2rtr_qp_in::qpc::bit_off == C::bit_off &&
              prm::rtr2rts_qp_in::qpc::bit_off == C::bit_off &&
              prm::rts2rts_qp_in::qpc::bit_off == C::bit_off &&
              prm::sqerr2rts_qp_in::qpc::bit_off == C::bit_off &&
              prm::sqd2rts_qp_in::qpc::bit_off == C::bit_off &&
              prm::init2init_qp_in::qpc::bit_off == C::bit_off &&
              prm::init2rtr_qp_in::opt_param_mask::bit_off == RstToInit::opt_param_mask::bit_off);

constexpr std::uint32_t kPmMigrated = 3;

// The path of INIT2RTR; P_Key index, port and timeout have bits or transitions of their own.
void read_path(const Command& cmd, AddressPath& p) {
  p.grh = cmd.get<Path::grh>() != 0;
  p.force_loopback = cmd.get<Path::fl>() != 0;
  p.mlid = static_cast<std::uint8_t>(cmd.get<Path::mlid>());
  p.rlid = static_cast<std::uint16_t>(cmd.get<Path::rlid>());
  p.sgid_index = static_cast<std::uint8_t>(cmd.get<Path::src_addr_index>());
  p.stat_rate = static_cast<std::uint8_t>(cmd.get<Path::stat_rate>());
  p.hop_limit = static_cast<std::uint8_t>(cmd.get<Path::hop_limit>());
  p.tclass = static_cast<std::uint8_t>(cmd.get<Path::tclass>());
  p.sl = static_cast<std::uint8_t>(cmd.get<Path::sl>());
  p.flow_label = cmd.get<Path::flow_label>();
  for (unsigned i = 0; i < p.rgid.size(); ++i)
    p.rgid[i] = static_cast<std::uint8_t>(prm::get<Path::rgid_rip>(cmd.in.data(), i));
}

// What RoCE adds. Its packets have a GRH (or the IP header in its place) always.
void read_roce_path(const Command& cmd, const Vport& vport, AddressPath& p) {
  p.grh = true;
  p.sl = 0;
  p.source = vport.roce_address(p.sgid_index);
  const std::uint64_t mac = std::uint64_t{cmd.get<Path::rmac_47_32>()} << 32 | cmd.get<Path::rmac_31_0>();
  for (unsigned i = 0; i < p.rmac.size(); ++i) p.rmac[i] = static_cast<std::uint8_t>(mac >> (40 - 8 * i));
  p.udp_sport = static_cast<std::uint16_t>(cmd.get<Path::udp_sport>());
  p.eth_prio = static_cast<std::uint8_t>(cmd.get<Path::eth_prio>());
  p.dscp = static_cast<std::uint8_t>(cmd.get<Path::dscp>());
}

// Collects what the transition changes in a copy; nothing is applied before everything is found good.
class Modify {
 public:
  Modify(Firmware& fw, Command& cmd, const Qp& qp)
      : fw_(fw), cmd_(cmd), qp_(qp), opt_(cmd.get<RstToInit::opt_param_mask>()) {
    path_ = qp.path;
    qkey_ = qp.qkey;
  }

  Syndrome check(const QpTransition& t);
  void apply(const QpTransition& t, Qp& qp, QpObject& object);

 private:
  bool has(std::uint32_t bit) const { return (opt_ & bit) != 0; }
  Syndrome check_path();
  void check_psn(std::size_t bit_off, unsigned reserved);
  Syndrome check_counter();
  Syndrome check_required(const QpTransition& t);
  void apply_required(const QpTransition& t, Qp& qp, QpObject& object);
  void apply_rights(Qp& qp, bool read, bool write, bool atomic);
  void set_counter(Qp& qp, QpObject& object);
  std::uint32_t affinity_bit(const QpTransition& t) const;
  bool takes_affinity(const QpTransition& t) const {
    return t.opcode == prm::op::RST2INIT_QP || has(kOptLagAffinity);
  }

  Firmware& fw_;
  Command& cmd_;
  const Qp& qp_;
  const std::uint32_t opt_;
  AddressPath path_;
  std::uint32_t qkey_ = 0;
};

// In front of a PSN's 24 bits: what a driver leaves there that does not mask it. Of these bits the first
// `reserved` are nothing else.
void Modify::check_psn(std::size_t bit_off, unsigned reserved) {
  const std::uint32_t word = prm::load32(cmd_.in.data() + bit_off / 32 * 4);
  if (word >> (32 - reserved) != 0)
    fw_.tracer().broke_value(traces::Rule::kPsnRange, cmd_.now, traces::RuleObject::kQp, qp_.qpn, word);
}

Syndrome Modify::check_path() {
  const Vport& vport = fw_.function().vport();
  if (path_.pkey_index >= vport.pkeys.size()) return Syndrome::kQpPath;
  if (fw_.device().port().link() == LinkType::kEthernet) {
    if (path_.grh && !path_.force_loopback && !path_.source.valid) return Syndrome::kQpPath;
  } else if (path_.grh && path_.sgid_index >= vport.gids.size()) {
    return Syndrome::kQpPath;
  }
  // Port 0 in the path: the function's only port.
  return path_.port <= 1 ? Syndrome::kOk : Syndrome::kQpPath;
}

// The port of a LAG may change with these two, for QPs of any type.
std::uint32_t Modify::affinity_bit(const QpTransition& t) const {
  const Caps& caps = fw_.caps();
  const bool offered =
      t.opcode == prm::op::INIT2RTR_QP
          ? caps.get<prm::cmd_hca_cap::init2_lag_tx_port_affinity>() != 0
          : t.opcode == prm::op::RTS2RTS_QP && caps.get<prm::cap_rts2rts_lag_tx_port_affinity>() != 0;
  return offered ? std::uint32_t{kOptLagAffinity} : 0;
}

Syndrome Modify::check_counter() {
  const std::uint32_t counter = cmd_.get<C::counter_set_id>();
  return counter == 0 || fw_.objects().q_counters.find(counter) != nullptr ? Syndrome::kOk
                                                                           : Syndrome::kQpCounter;
}

Syndrome Modify::check_required(const QpTransition& t) {
  const Caps& caps = fw_.caps();
  if (t.takes(kAttrPkeyAndPort)) {
    path_.pkey_index = static_cast<std::uint16_t>(cmd_.get<Path::pkey_index>());
    path_.port = static_cast<std::uint8_t>(cmd_.get<Path::vhca_port_num>());
  }
  if (t.takes(kAttrQkey)) qkey_ = cmd_.get<C::q_key>();
  if (t.opcode == prm::op::RST2INIT_QP && !source_qp_offered(cmd_, qp_.type, cmd_.get<C::deth_sqpn>()))
    return Syndrome::kQpFeature;
  if (t.takes(kAttrDoorbell) && (cmd_.get<C::dbr_addr>() & 7) != 0) return Syndrome::kQpDbr;
  if (t.takes(kAttrCounterSet) && check_counter() != Syndrome::kOk) return Syndrome::kQpCounter;
  if (t.takes(kAttrOwner) && qp_.type == QpType::kRegUmr &&
      fw_.objects().pds.find(cmd_.get<C::pd>()) == nullptr)
    return Syndrome::kQpPd;
  if (t.takes(kAttrMtu)) {
    const unsigned mtu = mtu_bytes(cmd_.get<C::mtu>());
    // Datagrams are as long as the port allows, whatever drivers name here: the longest that there is.
    const bool connected = is_reliable(qp_.type) || qp_.type == QpType::kUc;
    if (connected && (mtu == 0 || mtu > fw_.device().profile().port.max_mtu)) return Syndrome::kQpMtu;
  }
  if (t.takes(kAttrMessageSize) && cmd_.get<C::log_msg_max>() > caps.get<prm::cmd_hca_cap::log_max_msg>())
    return Syndrome::kQpMsgSize;
  if (t.takes(kAttrResponderDepth) &&
      cmd_.get<C::log_rra_max>() > caps.get<prm::cmd_hca_cap::log_max_ra_res_qp>())
    return Syndrome::kQpDepth;
  if (t.takes(kAttrRemote) && is_connected(qp_.type)) {
    read_path(cmd_, path_);
    if (fw_.device().port().link() == LinkType::kEthernet)
      read_roce_path(cmd_, fw_.function().vport(), path_);
  }
  if (t.takes(kAttrInitiatorDepth) &&
      cmd_.get<C::log_sra_max>() > caps.get<prm::cmd_hca_cap::log_max_ra_req_qp>())
    return Syndrome::kQpDepth;
  if (t.takes(kAttrAckTimeout)) path_.ack_timeout = static_cast<std::uint8_t>(cmd_.get<Path::ack_timeout>());
  return Syndrome::kOk;
}

Syndrome Modify::check(const QpTransition& t) {
  if (t.takes(kAttrReceivePsn)) check_psn(C::next_rcv_psn::bit_off, 3);
  if (t.takes(kAttrSendPsn)) check_psn(C::next_send_psn::bit_off, 8);
  if ((opt_ & ~(optional_bits(t, qp_.type) | affinity_bit(t))) != 0) return Syndrome::kQpOptMask;
  if (takes_affinity(t) && !affinity_offered(fw_.caps(), cmd_.get<C::lag_tx_port_affinity>()))
    return Syndrome::kQpFeature;
  if (has(kOptPmState) && cmd_.get<C::pm_state>() != kPmMigrated) return Syndrome::kQpFeature;
  const Syndrome required = check_required(t);
  if (required != Syndrome::kOk) return required;
  if (has(kOptPkeyIndex)) path_.pkey_index = static_cast<std::uint16_t>(cmd_.get<Path::pkey_index>());
  if (has(kOptPort)) path_.port = static_cast<std::uint8_t>(cmd_.get<Path::vhca_port_num>());
  if (has(kOptQkey)) qkey_ = cmd_.get<C::q_key>();
  const bool rights = t.takes(kAttrRights) || has(kOptRae);
  if (rights && cmd_.get<C::rae>() != 0 &&
      !atomic_mode_offered(fw_.caps(), cmd_.get<C::atomic_mode>(), is_dc(qp_.type)))
    return Syndrome::kQpAtomicMode;
  if (has(kOptCounterSet) && check_counter() != Syndrome::kOk) return Syndrome::kQpCounter;
  return check_path();
}

void Modify::apply_rights(Qp& qp, bool read, bool write, bool atomic) {
  if (read) qp.rre = cmd_.get<C::rre>() != 0;
  if (write) qp.rwe = cmd_.get<C::rwe>() != 0;
  if (atomic) {
    qp.rae = cmd_.get<C::rae>() != 0;
    qp.atomic_mode = static_cast<std::uint8_t>(cmd_.get<C::atomic_mode>());
  }
}

void Modify::set_counter(Qp& qp, QpObject& object) {
  const std::uint32_t next = cmd_.get<C::counter_set_id>();
  object.counter_set = Ref(fw_.objects().q_counters.find(next));
  qp.counter_set = static_cast<std::uint8_t>(next);
  prm::set<prm::qpc::counter_set_id>(object.qpc.data(), next);
}

// What the transition always takes.
void Modify::apply_required(const QpTransition& t, Qp& qp, QpObject& object) {
  std::uint8_t* kept = object.qpc.data();
  if (t.takes(kAttrDoorbell)) {
    // From a user context it is an address that nobody has checked; CREATE_QP's stands.
    if (cmd_.get<C::dbr_addr>() != 0 && cmd_.uid == 0) qp.dbr_addr = cmd_.get<C::dbr_addr>();
    prm::set<prm::qpc::dbr_addr>(kept, qp.dbr_addr);
  }
  if (t.takes(kAttrOwner)) {
    if (cmd_.uid == 0 && cmd_.get<C::rlky>() != 0) qp.reserved_lkey = true;
    qp.drain_sigerr = qp.type == QpType::kRc && cmd_.get<C::drain_sigerr>() != 0;
    prm::set<prm::qpc::rlky>(kept, qp.reserved_lkey ? 1 : 0);
  }
  if (t.opcode == prm::op::RST2INIT_QP && cmd_.get<C::deth_sqpn>() != 0) {
    qp.sends_as_qp1 = true;
    prm::set<prm::qpc::deth_sqpn>(kept, 1);
  }
  if (t.takes(kAttrCounterSet)) set_counter(qp, object);
  if (t.takes(kAttrRights)) apply_rights(qp, true, true, true);
  // Datagrams may come without one.
  if (const unsigned mtu = mtu_bytes(cmd_.get<C::mtu>()); t.takes(kAttrMtu) && mtu != 0) qp.mtu = mtu;
  if (t.takes(kAttrMessageSize)) qp.log_msg_max = cmd_.get<C::log_msg_max>();
  if (t.takes(kAttrResponderDepth)) qp.log_rra_max = cmd_.get<C::log_rra_max>();
  if (t.takes(kAttrRnrTimer)) qp.min_rnr_nak = static_cast<std::uint8_t>(cmd_.get<C::min_rnr_nak>());
  if (t.takes(kAttrReceivePsn)) qp.resp.expected_psn = cmd_.get<C::next_rcv_psn>();
  if (t.takes(kAttrRemote)) {
    qp.remote_qpn = cmd_.get<C::remote_qpn>();
    // The whole path, as it came: QUERY_QP gives it back.
    std::memcpy(prm::ptr<prm::qpc::primary_address_path>(kept), prm::ptr<Path>(cmd_.in.data()), Path::bytes);
    prm::set<prm::qpc::mtu>(kept, cmd_.get<C::mtu>());
    prm::set<prm::qpc::log_msg_max>(kept, qp.log_msg_max);
    prm::set<prm::qpc::remote_qpn>(kept, qp.remote_qpn);
    prm::set<prm::qpc::log_rra_max>(kept, qp.log_rra_max);
  }
  if (t.takes(kAttrRetries)) {
    qp.retry_count = static_cast<std::uint8_t>(cmd_.get<C::retry_count>());
    qp.rnr_retry = static_cast<std::uint8_t>(cmd_.get<C::rnr_retry>());
    qp.req.retries_left = qp.retry_count;
    qp.req.rnr_left = qp.rnr_retry;
    prm::set<prm::qpc::retry_count>(kept, qp.retry_count);
    prm::set<prm::qpc::rnr_retry>(kept, qp.rnr_retry);
    prm::set<prm::qpc::log_ack_req_freq>(kept, cmd_.get<C::log_ack_req_freq>());
  }
  if (t.takes(kAttrInitiatorDepth)) {
    qp.log_sra_max = cmd_.get<C::log_sra_max>();
    prm::set<prm::qpc::log_sra_max>(kept, qp.log_sra_max);
  }
  if (t.takes(kAttrSendPsn)) qp.req.next_psn = qp.req.una_psn = cmd_.get<C::next_send_psn>();
}

void Modify::apply(const QpTransition& t, Qp& qp, QpObject& object) {
  std::uint8_t* kept = object.qpc.data();
  qp.path = path_;
  qp.qkey = qkey_;
  apply_required(t, qp, object);
  apply_rights(qp, has(kOptRre), has(kOptRwe), has(kOptRae));
  if (has(kOptDrainSigerr)) qp.drain_sigerr = cmd_.get<C::drain_sigerr>() != 0;
  if (has(kOptRnrTimeout)) qp.min_rnr_nak = static_cast<std::uint8_t>(cmd_.get<C::min_rnr_nak>());
  if (has(kOptCounterSet)) set_counter(qp, object);
  if (takes_affinity(t)) qp.affinity.port = static_cast<std::uint8_t>(cmd_.get<C::lag_tx_port_affinity>());
  prm::set<prm::qpc::lag_tx_port_affinity>(kept, qp.affinity.port);
  using kept_path = prm::qpc::primary_address_path;
  prm::set<kept_path::pkey_index>(kept, qp.path.pkey_index);
  prm::set<kept_path::vhca_port_num>(kept, qp.path.port);
  prm::set<kept_path::ack_timeout>(kept, qp.path.ack_timeout);
  prm::set<prm::qpc::q_key>(kept, qp.qkey);
  prm::set<prm::qpc::rre>(kept, qp.rre ? 1 : 0);
  prm::set<prm::qpc::rwe>(kept, qp.rwe ? 1 : 0);
  prm::set<prm::qpc::rae>(kept, qp.rae ? 1 : 0);
  prm::set<prm::qpc::atomic_mode>(kept, qp.atomic_mode);
  prm::set<prm::qpc::min_rnr_nak>(kept, qp.min_rnr_nak);
  prm::set<prm::qpc::pm_state>(kept, kPmMigrated);
  object.opt_param_mask = opt_;
}

// What stands behind the context: when qpc_ext says so the QP's groups of queues, and the stream of a DCI
// that begins anew; in any case the bit for its UDP source port.
struct Extension {
  bool groups = false, udp_sport = false, stream = false;
};

Syndrome check_extension(Firmware& fw, const Command& cmd, const QpTransition& t, const Qp& qp,
                         Extension& e) {
  using ext = prm::qp_ext;
  constexpr std::size_t kMaskEnd = (ext::opt_param_mask_95_32::bit_off + 64) / 8;
  const bool running = t.opcode == prm::op::RTS2RTS_QP;
  const bool extended = (running || t.opcode == prm::op::INIT2INIT_QP) && cmd.get<ext::qpc_ext>() != 0;
  if (extended && cmd.in_len < ext::bytes) return Syndrome::kInputShort;
  if (!extended && (!running || cmd.in_len < kMaskEnd)) return Syndrome::kOk;
  const std::uint64_t mask = cmd.get<ext::opt_param_mask_95_32>();
  std::uint64_t offered = extended ? prm::kOptQosQueueGroup : 0;
  if (running && (qp.type == QpType::kRc || qp.type == QpType::kUc) &&
      fw.caps().get<prm::cap_rts2rts_qp_udp_sport>() != 0)
    offered |= prm::kOptUdpSport;
  if (extended && running && qp.type == QpType::kDci &&
      fw.caps().get<prm::cmd_hca_cap::log_max_dci_errored_streams>() != 0)
    offered |= prm::kOptDciStream;
  if ((mask & ~offered) != 0) return Syndrome::kQpOptMask;
  e.stream = (mask & prm::kOptDciStream) != 0;
  e.udp_sport = (mask & prm::kOptUdpSport) != 0;
  e.groups = (mask & prm::kOptQosQueueGroup) != 0;
  if (e.stream && !qp.req.stream_errored(static_cast<std::uint16_t>(cmd.get<ext::dci_stream_channel_id>())))
    return Syndrome::kQpStream;
  if (!e.groups) return Syndrome::kOk;
  const Syndrome s = check_queue_group(fw, cmd, cmd.get<ext::qos_queue_group_id_requester>());
  return s != Syndrome::kOk ? s : check_queue_group(fw, cmd, cmd.get<ext::qos_queue_group_id_responder>());
}

}  // namespace

Syndrome modify_qp(Firmware& fw, Command& cmd) {
  const QpTransition* t = find_qp_transition(cmd.opcode);
  const std::uint32_t qpn = cmd.get<RstToInit::qpn>();
  QpObject* object = fw.objects().qps.find(qpn);
  Qp* qp = fw.function().qps().find(qpn);
  if (object == nullptr || qp == nullptr || !object->is_qp()) return Syndrome::kQpNumber;
  if (t == nullptr || !t->starts_in(qp->state) || qp->draining) return Syndrome::kQpState;
  Modify modify(fw, cmd, *qp);
  Syndrome s = modify.check(*t);
  Extension extension;
  if (s == Syndrome::kOk) s = check_extension(fw, cmd, *t, *qp, extension);
  if (s != Syndrome::kOk) return s;
  modify.apply(*t, *qp, *object);
  if (extension.udp_sport) {
    qp->path.udp_sport = static_cast<std::uint16_t>(cmd.get<Path::udp_sport>());
    prm::set<prm::qpc::primary_address_path::udp_sport>(object->qpc.data(), qp->path.udp_sport);
  }
  if (extension.stream)
    qp->req.stream_reset(static_cast<std::uint16_t>(cmd.get<prm::qp_ext::dci_stream_channel_id>()));
  if (extension.groups)
    set_queue_groups(fw, ObjType::kQp, qpn, cmd.get<prm::qp_ext::qos_queue_group_id_requester>(),
                     cmd.get<prm::qp_ext::qos_queue_group_id_responder>());
  const QpState old = qp->state;
  qp->state = t->to;
  fw.device().qp_changed(*qp, old);
  return Syndrome::kOk;
}

// 2ERR, 2RST and RTS2SQD: with nothing but the number.
Syndrome move_qp(Firmware& fw, Command& cmd) {
  static_assert(prm::qp_2err_in::qpn::bit_off == prm::qp_2rst_in::qpn::bit_off);
  const std::uint32_t qpn = cmd.get<prm::qp_2err_in::qpn>();
  QpObject* object = fw.objects().qps.find(qpn);
  Qp* qp = fw.function().qps().find(qpn);
  if (object == nullptr || qp == nullptr || !object->is_qp()) return Syndrome::kQpNumber;
  const QpTransition* t = find_qp_transition(cmd.opcode);
  const QpState old = qp->state;
  if (t == nullptr || !t->starts_in(old)) return Syndrome::kQpState;
  const bool drain = t->to == QpState::kSqd;
  if (drain && !qp->has_sq) return Syndrome::kQpState;
  if (t->to == QpState::kRst) {
    object->counter_set.reset();
    qp->counter_set = 0;
  }
  qp->draining = qp->sqd_event = drain;
  qp->state = t->to;
  fw.device().qp_changed(*qp, old);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
