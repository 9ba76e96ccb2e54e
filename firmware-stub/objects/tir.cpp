// SPDX-License-Identifier: BSD-3-Clause
// What stands between queues and steering: TIS (of SQs), TIR (where flow entries lead) and RQT (the RQs that
// a TIR spreads over).
#include <algorithm>
#include <cstring>
#include <iterator>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/qp_context.h"
#include "prm/tir.h"

namespace hcasim::fw {

namespace {

enum : std::uint32_t { kDirect = 0, kIndirect = 1 };                   // tirc.disp_type
enum : std::uint32_t { kHashNone = 0, kHashXor8 = 1, kToeplitz = 2 };  // tirc.rx_hash_fn
enum : std::uint32_t { kLroIpv4 = 1, kLroIpv6 = 2 };                   // tirc.packet_merge_mask
constexpr std::uint32_t kLroSizeUnit = 256;                            // of lro_max_ip_payload_size
constexpr std::uint32_t kHashFields = 0x1f;                            // addresses, L4 ports, SPI

// What MODIFY_TIR can change.
using TirMask = prm::modify_tir_in::bitmask;
constexpr std::uint64_t tir_bit(std::size_t bit_off) {
  return std::uint64_t{1} << (TirMask::bit_off + 63 - bit_off);
}
constexpr std::uint64_t kTirChanges = tir_bit(TirMask::packet_merge::bit_off) |
                                      tir_bit(prm::modify_tir_indirect_table::bit_off) |
                                      tir_bit(TirMask::hash::bit_off) | tir_bit(TirMask::self_lb_en::bit_off);
static_assert(kTirChanges == 0x17);

HashFields hash_fields(std::uint32_t ipv6, std::uint32_t udp, std::uint32_t selected) {
  HashFields f;
  f.ipv6 = ipv6 != 0;
  f.udp = udp != 0;
  f.selected = selected;
  return f;
}

// The hash part of a TIR context C in the command.
template <class C>
Syndrome read_hash(const Command& cmd, Tir& tir) {
  using outer = typename C::rx_hash_field_selector_outer;
  using inner = typename C::rx_hash_field_selector_inner;
  const std::uint32_t fn = cmd.get<typename C::rx_hash_fn>();
  if (fn > kToeplitz) return Syndrome::kTirHash;
  tir.hash_fn = static_cast<std::uint8_t>(fn);
  tir.symmetric = cmd.get<typename C::rx_hash_symmetric>() != 0;
  std::memcpy(tir.key.data(), prm::ptr<typename C::rx_hash_toeplitz_key>(cmd.in.data()), tir.key.size());
  tir.outer = hash_fields(cmd.get<typename outer::l3_prot_type>(), cmd.get<typename outer::l4_prot_type>(),
                          cmd.get<typename outer::selected_fields>());
  tir.inner = hash_fields(cmd.get<typename inner::l3_prot_type>(), cmd.get<typename inner::l4_prot_type>(),
                          cmd.get<typename inner::selected_fields>());
  if (((tir.outer.selected | tir.inner.selected) & ~kHashFields) != 0) return Syndrome::kTirHash;
  return Syndrome::kOk;
}

// The receive offload of a TIR context C in the command.
template <class C>
Syndrome read_lro(Firmware& fw, const Command& cmd, LroParams& lro) {
  using offered = prm::per_protocol_networking_offload_caps;
  const std::uint32_t mask = cmd.get<typename C::packet_merge_mask>();
  if ((mask & ~(kLroIpv4 | kLroIpv6)) != 0) return Syndrome::kTirFeature;
  lro = {};
  if (mask == 0) return Syndrome::kOk;
  if (fw.caps().get<offered::lro_cap>(CapGroup::kEthernet) == 0) return Syndrome::kTirFeature;
  const std::uint32_t us = cmd.get<typename C::lro_timeout_period_usecs>();
  if (std::find(std::begin(Lro::kPeriods), std::end(Lro::kPeriods), us) == std::end(Lro::kPeriods))
    return Syndrome::kTirLroPeriod;
  lro.ipv4 = (mask & kLroIpv4) != 0;
  lro.ipv6 = (mask & kLroIpv6) != 0;
  lro.timeout = from_ns(1e3 * us);
  lro.max_ip_payload = cmd.get<typename C::lro_max_ip_payload_size>() * kLroSizeUnit;
  return Syndrome::kOk;
}

// Tables of RQs: a power of two of existing ones.
template <class C>
Syndrome read_rqs(Firmware& fw, const Command& cmd, std::uint32_t max_size, std::vector<std::uint32_t>& rqs) {
  const std::uint32_t n = cmd.get<typename C::rqt_actual_size>();
  if (n == 0 || n > max_size || (n & (n - 1)) != 0) return Syndrome::kRqtSize;
  if (!prm::fits<typename C::rq_num>(cmd.in_len, n - 1)) return Syndrome::kRqtList;
  for (std::uint32_t i = 0; i < n; ++i) {
    rqs.push_back(prm::get<prm::rq_num::rq_num>(prm::at<typename C::rq_num>(cmd.in.data(), i)));
    if (fw.objects().rqs.find(rqs.back()) == nullptr) return Syndrome::kRqNumber;
  }
  return Syndrome::kOk;
}

std::vector<Ref<RqObject>> refer_to(Firmware& fw, const std::vector<std::uint32_t>& rqs) {
  std::vector<Ref<RqObject>> refs;
  refs.reserve(rqs.size());
  for (const std::uint32_t rqn : rqs) refs.emplace_back(fw.objects().rqs.find(rqn));
  return refs;
}

// Port 1 is that of a card that has no other.
bool read_affinity(Firmware& fw, std::uint32_t port, PortAffinity& affinity) {
  if (port > std::max<std::uint32_t>(1, fw.caps().get<prm::cmd_hca_cap::num_lag_ports>())) return false;
  affinity.port = static_cast<std::uint8_t>(port);
  return true;
}

}  // namespace

// ---- TIS ----

Syndrome create_tis(Firmware& fw, Command& cmd) {
  using c = prm::create_tis_in::ctx;
  Objects& o = fw.objects();
  const bool tls = cmd.get<c::tls_en>() != 0;
  if (tls && fw.caps().get<prm::cmd_hca_cap::tls_tx>() == 0) return Syndrome::kTirFeature;
  // On InfiniBand all that is sent is datagrams, on Ethernet nothing.
  const std::uint32_t underlay = cmd.get<c::underlay_qpn>();
  const bool ipoib = fw.caps().get<prm::cmd_hca_cap::ipoib_enhanced_offloads>() != 0;
  if (ipoib != (underlay != 0) || (ipoib && tls)) return Syndrome::kTirFeature;
  if (ipoib && frame_carrier(fw.function().qps(), underlay) == nullptr) return Syndrome::kQpNumber;
  if (tls && o.pds.find(cmd.get<c::pd>()) == nullptr) return Syndrome::kPdNumber;
  PortAffinity affinity;
  if (!read_affinity(fw, cmd.get<c::lag_tx_port_affinity>(), affinity)) return Syndrome::kTirFeature;
  affinity.strict = cmd.get<c::strict_lag_tx_port_affinity>() != 0;
  const std::uint32_t tdn = cmd.get<c::transport_domain>();
  PlainObject* td = o.tds.find(tdn);
  if (td == nullptr) return Syndrome::kTdNumber;
  if (o.tises.full()) return Syndrome::kTisLimit;
  if (!fw.pages().charge(kIcmTis)) return Syndrome::kWaitPages;
  std::uint32_t tisn = 0;
  TisObject* object = o.tises.create(tisn);
  if (object == nullptr) return Syndrome::kTisLimit;
  std::memcpy(object->tisc.data(), prm::ptr<c>(cmd.in.data()), object->tisc.size());
  object->td = Ref(td);
  Tis& tis = fw.function().eth().tises[tisn];
  tis.tisn = tisn;
  tis.prio = static_cast<std::uint8_t>(cmd.get<c::prio>());
  tis.transport_domain = tdn;
  tis.pd = cmd.get<c::pd>();
  tis.affinity = affinity;
  tis.underlay = underlay;
  if (tls) {
    tis.tls.emplace();
    object->pd = Ref(o.pds.find(tis.pd));
  }
  cmd.put<prm::create_tis_out::tisn>(tisn);
  fw.trace_create(ObjType::kTis, tisn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_tis(Firmware& fw, Command& cmd) {
  using in = prm::modify_tis_in;
  const std::uint32_t tisn = cmd.get<in::tisn>();
  TisObject* object = fw.objects().tises.find(tisn);
  Tis* tis = EthTable::find(fw.function().eth().tises, tisn);
  if (object == nullptr || tis == nullptr) return Syndrome::kTisNumber;
  const bool changes = cmd.get<in::bitmask::lag_tx_port_affinity>() != 0 ||
                       cmd.get<in::bitmask::strict_lag_tx_port_affinity>() != 0;
  if (changes && fw.caps().get<prm::cmd_hca_cap::num_lag_ports>() <= 1) return Syndrome::kModifyMask;
  PortAffinity affinity = tis->affinity;
  if (cmd.get<in::bitmask::lag_tx_port_affinity>() != 0 &&
      !read_affinity(fw, cmd.get<in::ctx::lag_tx_port_affinity>(), affinity))
    return Syndrome::kTirFeature;
  if (cmd.get<in::bitmask::strict_lag_tx_port_affinity>() != 0)
    affinity.strict = cmd.get<in::ctx::strict_lag_tx_port_affinity>() != 0;
  if (cmd.get<in::bitmask::prio>() != 0) {
    tis->prio = static_cast<std::uint8_t>(cmd.get<in::ctx::prio>());
    prm::set<prm::tisc::prio>(object->tisc.data(), tis->prio);
  }
  tis->affinity = affinity;
  prm::set<prm::tisc::lag_tx_port_affinity>(object->tisc.data(), affinity.port);
  prm::set<prm::tisc::strict_lag_tx_port_affinity>(object->tisc.data(), affinity.strict ? 1 : 0);
  fw.function().qps().for_each_qp([&](Qp& sq) {
    if (sq.type != QpType::kSq || sq.tis != tisn) return;
    sq.affinity = affinity;
    sq.prio = tis->priority();
  });
  return Syndrome::kOk;
}

Syndrome destroy_tis(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t tisn = cmd.get<prm::destroy_tis_in::tisn>();
  const TisObject* object = o.tises.find(tisn);
  if (object == nullptr) return Syndrome::kTisNumber;
  if (object->referred()) return Syndrome::kTisBusy;
  fw.function().eth().tises.erase(tisn);
  o.tises.destroy(tisn);
  fw.pages().release(kIcmTis);
  fw.trace_destroy(ObjType::kTis, tisn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_tis(Firmware& fw, Command& cmd) {
  const TisObject* object = fw.objects().tises.find(cmd.get<prm::query_tis_in::tisn>());
  if (object == nullptr) return Syndrome::kTisNumber;
  std::memcpy(prm::ptr<prm::query_tis_out::tis_context>(cmd.out.data()), object->tisc.data(),
              object->tisc.size());
  return Syndrome::kOk;
}

// ---- RQT ----

Syndrome create_rqt(Firmware& fw, Command& cmd) {
  using c = prm::create_rqt_in::rqt_context;
  Objects& o = fw.objects();
  if (cmd.get<c::list_q_type>() != 0 || cmd.get<c::rq_vhca_id_format>() != 0) return Syndrome::kTirFeature;
  const std::uint32_t max_size = cmd.get<c::rqt_max_size>();
  if (max_size == 0 || max_size > 1u << kLogRqtSize) return Syndrome::kRqtSize;
  std::vector<std::uint32_t> rqs;
  const Syndrome s = read_rqs<c>(fw, cmd, max_size, rqs);
  if (s != Syndrome::kOk) return s;
  if (o.rqts.full()) return Syndrome::kRqtLimit;
  if (!fw.pages().charge(kIcmTir + 4 * std::uint64_t{max_size})) return Syndrome::kWaitPages;
  std::uint32_t rqtn = 0;
  o.rqts.create(rqtn)->rqs = refer_to(fw, rqs);
  Rqt& rqt = fw.function().eth().rqts[rqtn];
  rqt.rqtn = rqtn;
  rqt.max_size = max_size;
  rqt.rqs = std::move(rqs);
  cmd.put<prm::create_rqt_out::rqtn>(rqtn);
  fw.trace_create(ObjType::kRqt, rqtn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_rqt(Firmware& fw, Command& cmd) {
  using in = prm::modify_rqt_in;
  RqtObject* object = fw.objects().rqts.find(cmd.get<in::rqtn>());
  Rqt* rqt = EthTable::find(fw.function().eth().rqts, cmd.get<in::rqtn>());
  if (object == nullptr || rqt == nullptr) return Syndrome::kRqtNumber;
  if (cmd.get<in::bitmask::rqn_list>() == 0) return Syndrome::kOk;
  std::vector<std::uint32_t> rqs;
  const Syndrome s = read_rqs<in::ctx>(fw, cmd, rqt->max_size, rqs);
  if (s != Syndrome::kOk) return s;
  object->rqs = refer_to(fw, rqs);
  rqt->rqs = std::move(rqs);
  return Syndrome::kOk;
}

Syndrome destroy_rqt(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t rqtn = cmd.get<prm::destroy_rqt_in::rqtn>();
  const RqtObject* object = o.rqts.find(rqtn);
  const Rqt* rqt = EthTable::find(fw.function().eth().rqts, rqtn);
  if (object == nullptr || rqt == nullptr) return Syndrome::kRqtNumber;
  if (object->referred()) return Syndrome::kRqtBusy;
  fw.pages().release(kIcmTir + 4 * std::uint64_t{rqt->max_size});
  fw.function().eth().rqts.erase(rqtn);
  o.rqts.destroy(rqtn);
  fw.trace_destroy(ObjType::kRqt, rqtn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_rqt(Firmware& fw, Command& cmd) {
  using c = prm::query_rqt_out::rqt_context;
  const Rqt* rqt = EthTable::find(fw.function().eth().rqts, cmd.get<prm::query_rqt_in::rqtn>());
  if (rqt == nullptr) return Syndrome::kRqtNumber;
  if (!prm::fits<c::rq_num>(cmd.out_len, rqt->rqs.size() - 1)) return Syndrome::kOutputShort;
  cmd.put<c::rqt_max_size>(rqt->max_size);
  cmd.put<c::rqt_actual_size>(static_cast<std::uint32_t>(rqt->rqs.size()));
  for (std::size_t i = 0; i < rqt->rqs.size(); ++i)
    prm::set<prm::rq_num::rq_num>(prm::at<c::rq_num>(cmd.out.data(), i), rqt->rqs[i]);
  return Syndrome::kOk;
}

// ---- TIR ----

Syndrome create_tir(Firmware& fw, Command& cmd) {
  using c = prm::create_tir_in::ctx;
  Objects& o = fw.objects();
  // What is told of a tunnel's inner packet is told with tunneled_offload_en and without.
  if (cmd.get<c::tls_en>() != 0 && fw.caps().get<prm::cmd_hca_cap::tls_rx>() == 0)
    return Syndrome::kTirFeature;
  Tir tir;
  if (cmd.get<c::tls_en>() != 0) tir.tls.emplace();
  const std::uint32_t disp = cmd.get<c::disp_type>();
  if (disp > kIndirect) return Syndrome::kTirFeature;
  tir.indirect = disp == kIndirect;
  RqObject* rq = nullptr;
  RqtObject* rqt = nullptr;
  if (tir.indirect) {
    tir.rqt = cmd.get<c::indirect_table>();
    rqt = o.rqts.find(tir.rqt);
    if (rqt == nullptr) return Syndrome::kRqtNumber;
  } else {
    tir.rqn = cmd.get<c::inline_rqn>();
    rq = o.rqs.find(tir.rqn);
    if (rq == nullptr) return Syndrome::kRqNumber;
  }
  Syndrome s = read_hash<c>(cmd, tir);
  if (s == Syndrome::kOk) s = read_lro<c>(fw, cmd, tir.lro);
  if (s != Syndrome::kOk) return s;
  tir.self_lb_allow = static_cast<std::uint8_t>(cmd.get<c::self_lb_block>());
  tir.transport_domain = cmd.get<c::transport_domain>();
  // 0: of no transport domain; what else is sent by this HCA comes in.
  PlainObject* td = o.tds.find(tir.transport_domain);
  if (td == nullptr && tir.transport_domain != 0) return Syndrome::kTdNumber;
  if (o.tirs.full()) return Syndrome::kTirLimit;
  if (!fw.pages().charge(kIcmTir)) return Syndrome::kWaitPages;
  TirObject* object = o.tirs.create(tir.tirn);
  std::memcpy(object->tirc.data(), prm::ptr<c>(cmd.in.data()), object->tirc.size());
  object->td = Ref(td);
  object->rq = Ref(rq);
  object->rqt = Ref(rqt);
  fw.function().eth().tirs[tir.tirn] = tir;
  cmd.put<prm::create_tir_out::tirn>(tir.tirn);
  const std::uint64_t icm = icm_address({IcmTarget::kTir, tir.tirn});
  cmd.put<prm::create_tir_out::icm_address_31_0>(static_cast<std::uint32_t>(icm));
  cmd.put<prm::create_tir_out::icm_address_39_32>(static_cast<std::uint32_t>(icm >> 32));
  cmd.put<prm::create_tir_out::icm_address_63_40>(static_cast<std::uint32_t>(icm >> 40));
  fw.trace_create(ObjType::kTir, tir.tirn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome modify_tir(Firmware& fw, Command& cmd) {
  using in = prm::modify_tir_in;
  using c = in::ctx;
  const std::uint32_t tirn = cmd.get<in::tirn>();
  TirObject* object = fw.objects().tirs.find(tirn);
  Tir* tir = EthTable::find(fw.function().eth().tirs, tirn);
  if (object == nullptr || tir == nullptr) return Syndrome::kTirNumber;
  if ((prm::load64(prm::ptr<TirMask>(cmd.in.data())) & ~kTirChanges) != 0) return Syndrome::kModifyMask;
  std::uint8_t* kept = object->tirc.data();
  const bool other_table = cmd.get<prm::modify_tir_indirect_table>() != 0;
  const std::uint32_t rqtn = cmd.get<c::indirect_table>();
  RqtObject* rqt = nullptr;
  if (other_table) {
    if (!tir->indirect) return Syndrome::kModifyMask;
    rqt = fw.objects().rqts.find(rqtn);
    if (rqt == nullptr) return Syndrome::kRqtNumber;
  }
  const bool merge = cmd.get<in::bitmask::packet_merge>() != 0;
  LroParams lro;
  if (merge) {
    const Syndrome s = read_lro<c>(fw, cmd, lro);
    if (s != Syndrome::kOk) return s;
  }
  if (cmd.get<in::bitmask::hash>() != 0) {
    Tir next = *tir;
    const Syndrome s = read_hash<c>(cmd, next);
    if (s != Syndrome::kOk) return s;
    *tir = next;
    prm::set<prm::tirc::rx_hash_fn>(kept, tir->hash_fn);
    prm::set<prm::tirc::rx_hash_symmetric>(kept, tir->symmetric ? 1 : 0);
    std::memcpy(prm::ptr<prm::tirc::rx_hash_toeplitz_key>(kept),
                prm::ptr<c::rx_hash_toeplitz_key>(cmd.in.data()), tir->key.size());
    constexpr std::size_t kSelectors = 2 * prm::rx_hash_field_select::bytes;
    std::memcpy(prm::ptr<prm::tirc::rx_hash_field_selector_outer>(kept),
                prm::ptr<c::rx_hash_field_selector_outer>(cmd.in.data()), kSelectors);
  }
  if (cmd.get<in::bitmask::self_lb_en>() != 0) {
    tir->self_lb_allow = static_cast<std::uint8_t>(cmd.get<c::self_lb_block>());
    prm::set<prm::tirc::self_lb_block>(kept, tir->self_lb_allow);
  }
  // What is being merged belongs to a queue of the table before.
  if (merge || other_table) fw.device().eth_rx().tir_changed(cmd.now, fw.function().id(), tirn);
  if (other_table) {
    object->rqt = Ref(rqt);
    tir->rqt = rqtn;
    prm::set<prm::tirc::indirect_table>(kept, rqtn);
  }
  if (merge) {
    tir->lro = lro;
    prm::set<prm::tirc::packet_merge_mask>(kept, cmd.get<c::packet_merge_mask>());
    prm::set<prm::tirc::lro_timeout_period_usecs>(kept, cmd.get<c::lro_timeout_period_usecs>());
    prm::set<prm::tirc::lro_max_ip_payload_size>(kept, cmd.get<c::lro_max_ip_payload_size>());
  }
  return Syndrome::kOk;
}

Syndrome destroy_tir(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t tirn = cmd.get<prm::destroy_tir_in::tirn>();
  const TirObject* object = o.tirs.find(tirn);
  const Tir* tir = EthTable::find(fw.function().eth().tirs, tirn);
  if (object == nullptr || tir == nullptr) return Syndrome::kTirNumber;
  if (object->referred()) return Syndrome::kTirBusy;
  fw.device().eth_rx().tir_changed(cmd.now, fw.function().id(), tirn);
  fw.function().eth().tirs.erase(tirn);
  o.tirs.destroy(tirn);
  fw.pages().release(kIcmTir);
  fw.trace_destroy(ObjType::kTir, tirn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_tir(Firmware& fw, Command& cmd) {
  const TirObject* object = fw.objects().tirs.find(cmd.get<prm::query_tir_in::tirn>());
  if (object == nullptr) return Syndrome::kTirNumber;
  std::memcpy(prm::ptr<prm::query_tir_out::tir_context>(cmd.out.data()), object->tirc.data(),
              object->tirc.size());
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
