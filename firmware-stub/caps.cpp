// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/caps.h"

#include <algorithm>
#include <cstring>

#include "firmware-stub/caps_cq.h"
#include "firmware-stub/caps_crypto.h"
#include "firmware-stub/caps_devx.h"
#include "firmware-stub/caps_eth.h"
#include "firmware-stub/caps_ipoib.h"
#include "firmware-stub/caps_memory.h"
#include "firmware-stub/caps_odp.h"
#include "firmware-stub/caps_sw_steering.h"
#include "firmware-stub/caps_transport.h"
#include "firmware-stub/command.h"
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "model/state/state.h"
#include "model/tpt/tpt.h"
#include "prm/user_commands.h"
#include "prm/vport_counters.h"

namespace hcasim::fw {

namespace {

// What power-on offers. A bit is set only when model and firmware do what it promises.
void fill_general(const Options& o, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  const auto set = [c](auto field, std::uint64_t v) {
    using F = decltype(field);
    prm::set<F>(c, static_cast<typename F::type>(v));
  };
  const bool eth = o.link == Link::kEthernet;
  // Transports
  set(g::rc{}, 1);
  set(g::uc{}, 1);
  set(g::ud{}, 1);
  // Table sizes
  set(g::log_max_qp{}, o.log_max_qp);
  set(g::log_max_qp_sz{}, 15);
  set(g::log_max_srq{}, o.log_max_srq);
  set(g::log_max_srq_sz{}, 15);
  set(g::log_max_cq{}, o.log_max_cq);
  set(g::log_max_cq_sz{}, 22);
  set(g::log_max_eq{}, 7);
  set(g::log_max_eq_sz{}, 22);
  set(g::max_num_eqs{}, o.num_eqs);
  set(g::log_max_mkey{}, o.log_max_mkey);
  set(g::log_max_pd{}, o.log_max_pd);
  set(g::log_max_xrcd{}, o.log_max_pd);
  set(g::log_max_rmp{}, o.log_max_srq);
  set(g::log_max_wq_sz{}, 15);
  set(g::max_qp_cnt{}, o.num_q_counters);
  set(g::max_qp_mcg{}, 240);
  set(g::log_max_mcg{}, 12);
  // WQEs
  set(g::max_wqe_sz_sq{}, 1024);
  set(g::max_wqe_sz_rq{}, 512);
  set(g::log_max_msg{}, 30);
  set(g::log_max_ra_req_qp{}, 4);
  set(g::log_max_ra_res_qp{}, 4);
  set(g::atomic{}, 1);
  // Memory
  set(g::log_pg_sz{}, 12);
  set(g::log_max_mrw_sz{}, 0x3f);
  set(g::max_indirection{}, Tpt::kMaxDepth);
  set(g::log_max_klm_list_size{}, 16);
  set(g::umr_extended_translation_offset{}, 1);
  fill_general_odp(c);
  set(g::umr_fence{}, 2);  // none needed after a UMR: the model executes it in order
  fill_general_memory(*o.generation, c);
  fill_general_cq(o, c);
  // UARs
  set(g::bf{}, o.bf ? 1 : 0);
  set(g::log_bf_reg_size{}, 9);
  set(g::num_of_uars_per_page{}, 1);
  // Port
  set(g::port_type{}, eth ? 1 : 0);
  set(g::pkv{}, 1);
  set(g::qkv{}, 1);
  set(g::num_ports{}, 1);
  if (o.ports != 1) set(g::native_port_num{}, o.port + 1);
  set(g::ib_virt{}, eth ? 0 : 1);
  set(g::local_ca_ack_delay{}, 16);
  set(g::port_module_event{}, 1);
  set(g::beacon_led{}, o.vf ? 0 : 1);
  set(g::temp_warn_event{}, 1);
  set(g::vport_counters{}, 1);
  set(g::vport_group_manager{}, o.manages() ? 1 : 0);
  if (o.manages() && o.vfs != 0) {
    set(g::num_total_dynamic_vf_msix{}, kVfPoolVectors * o.vfs);
    set(g::min_dynamic_vf_msix_table_size{}, kVfMinVectors);
    set(g::max_dynamic_vf_msix_table_size{}, kVfMaxVectors);
  }
  if (o.vf && !o.sf) set(g::dynamic_msix_table_size{}, o.msix_vectors);
  set(g::migration{}, o.migration && o.manages() ? 1 : 0);
  set(g::adv_virtualization{}, o.tracks_pages() ? 1 : 0);
  set(prm::cap_q_counter_aggregation{}, 1);
  set(prm::cap_q_counter_other_vport{}, o.manages() ? 1 : 0);
  set(g::receive_discard_vport_down{}, o.manages_switch() ? 1 : 0);
  set(g::transmit_discard_vport_down{}, o.manages_switch() ? 1 : 0);
  set(g::out_of_seq_cnt{}, 1);
  set(g::retransmission_q_counters{}, 1);
  set(g::enhanced_error_q_counters{}, 1);
  set(g::rts2rts_qp_counters_set_id{}, 1);
  // Congestion control, of RoCE v2: the port's, which others than its function only read
  set(g::cc_query_allowed{}, eth ? 1 : 0);
  set(g::cc_modify_allowed{}, eth && !o.vf ? 1 : 0);
  set(g::vhca_id{}, o.vhca_id);
  set(g::ats{}, o.ats ? 1 : 0);
  if (eth) fill_general_eth(o, c);
  if (o.offloads_ipoib()) fill_general_ipoib(c);
  if (eth) fill_general_sw_steering(*o.generation, c);
  fill_general_devx(o, c);
  fill_general_crypto(o, c);
  fill_general_transport(o, c);
  // A virtual function's BAR has no room for device memory; what software steering uses needs none.
  if (o.vf && !(eth && o.generation->sw_steering())) set(g::device_memory{}, 0);
  // Firmware
  set(g::mcam_reg{}, 1);
  set(g::debug{}, 1);
  set(g::vnic_env_queue_counters{}, 1);
  set(g::invalid_command_count{}, 1);
  set(g::quota_exceeded_count{}, 1);
  set(g::cmdif_checksum{}, 3);
  set(g::driver_version{}, 1);
  set(g::fast_teardown{}, 1);
  set(g::general_notification_event{}, 1);
  set(g::dtor{}, 1);
  set(g::force_teardown{}, 1);
  set(g::device_frequency_mhz{}, 1000);
  // As many as there are ns in a ms: programs ask MTUTC whether it is free running all the same.
  set(g::device_frequency_khz{}, 1000000);
  set(prm::cap_access_register_user{}, 1);
}

// Copies field F of a SET_HCA_CAP block if it does not exceed the maximum.
template <class F>
bool take(const std::uint8_t* in, const Caps::Block& max, Caps::Block& into) {
  if (prm::get<F>(in) > prm::get<F>(max.data())) return false;
  prm::set<F>(into.data(), prm::get<F>(in));
  return true;
}

template <class... F>
bool take_all(const std::uint8_t* in, const Caps::Block& max, Caps::Block& into) {
  return (take<F>(in, max, into) && ...);
}

// Events of sub-functions' states: a driver that knows them switches them on.
bool take_vhca_state(const std::uint8_t* in, const Caps::Block& max, Caps::Block& into) {
  using g = prm::cmd_hca_cap;
  return take_all<g::vhca_state, g::event_on_vhca_state_teardown_request, g::event_on_vhca_state_in_use,
                  g::event_on_vhca_state_active, g::event_on_vhca_state_allocated,
                  g::event_on_vhca_state_invalid>(in, max, into);
}

void vhca_state_off(std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  put<g::vhca_state>(c, 0);
  put<g::event_on_vhca_state_teardown_request>(c, 0);
  put<g::event_on_vhca_state_in_use>(c, 0);
  put<g::event_on_vhca_state_active>(c, 0);
  put<g::event_on_vhca_state_allocated>(c, 0);
  put<g::event_on_vhca_state_invalid>(c, 0);
}

}  // namespace

static_assert(prm::cmd_hca_cap::bytes <= Caps::kBytes && prm::atomic_caps::bytes <= Caps::kBytes &&
              prm::per_protocol_networking_offload_caps::bytes <= Caps::kBytes &&
              prm::roce_cap::bytes <= Caps::kBytes && prm::odp_cap::bytes <= Caps::kBytes &&
              prm::flow_table_nic_cap::bytes <= Caps::kBytes);

Caps::Caps(const Options& options) : selects_port_(options.selects_port()), encrypts_(options.encrypts()) {
  fill_general(options, general_max_.data());
  fill_atomic(atomic_max_.data());
  fill_general_2(options, fixed_block(CapGroup::kGeneral2));
  const Generation& generation = *options.generation;
  if (generation.has.device_memory && !options.vf) fill_device_memory(fixed_block(CapGroup::kDeviceMemory));
  fill_odp(generation, odp_max_.data(), odp_power_on_.data());
  if (options.link == Link::kEthernet) {
    fill_ethernet(options, fixed_block(CapGroup::kEthernet));
    fill_roce(fixed_block(CapGroup::kRoce));
    fill_flow_table(options, fixed_block(CapGroup::kFlowTable));
    fill_port_selection(options, port_selection_max_.data(), port_selection_power_on_.data());
    if (options.manages_switch()) {
      fill_eswitch_tables(options, fixed_block(CapGroup::kEswitchTables));
      fill_eswitch(options, fixed_block(CapGroup::kEswitch));
    }
    if (generation.has.header_split) fill_header_split(fixed_block(CapGroup::kHeaderSplit));
    if (generation.sw_steering()) {
      fill_flow_table_sw_steering(generation, fixed_block(CapGroup::kFlowTable));
      fill_device_memory_sw_icm(generation, fixed_block(CapGroup::kDeviceMemory));
    }
  }
  if (options.offloads_ipoib()) {
    fill_ipoib(fixed_block(CapGroup::kIpoib));
    fill_flow_table_ipoib(options, fixed_block(CapGroup::kFlowTable));
  }
  // Who manages vports may ask for the switch's, though there be none (Linux before 4.18, FreeBSD).
  if (prm::get<prm::cmd_hca_cap::vport_group_manager>(general_max_.data()) != 0) {
    fixed_block(CapGroup::kEswitch);
    fixed_block(CapGroup::kEswitchTables);
  }
  // Asked for by user space on every link; of a port without flow tables it is empty.
  fixed_block(CapGroup::kFlowTable);
  fill_qos(options, fixed_block(CapGroup::kQos));
  if (options.tracks_pages()) fill_page_tracking(fixed_block(CapGroup::kAdvancedVirtualization));
  if (options.encrypts()) {
    fill_tls(fixed_block(CapGroup::kTls));
    fill_ipsec(fixed_block(CapGroup::kIpsec));
    fill_macsec(fixed_block(CapGroup::kMacsec));
    if (options.psp()) fill_psp(fixed_block(CapGroup::kPsp));
  }
  put<prm::debug_cap::core_dump_general>(fixed_block(CapGroup::kDebug), options.vf ? 0 : 1);
  put<prm::debug_cap::resource_dump>(fixed_block(CapGroup::kDebug), 1);
  has_roce_ = may_use_roce();
  if (!options.vf) ipsec_ = all_ipsec();
  show_ipsec();
  general_power_on_ = general_max_;
  prm::set<prm::cmd_hca_cap::cmdif_checksum>(general_power_on_.data(), 0);
  vhca_state_off(general_power_on_.data());
  reset_state(*this);
}

const Caps::Block* Caps::current(std::uint16_t group) const {
  switch (static_cast<CapGroup>(group)) {
    case CapGroup::kGeneral:
      return &general_;
    case CapGroup::kAtomic:
      return &atomic_;
    case CapGroup::kOdp:
      return &odp_;
    case CapGroup::kPortSelection:
      return selects_port_ ? &port_selection_ : nullptr;
    default:
      break;
  }
  const auto it = fixed_.find(group);
  return it != fixed_.end() ? &it->second : nullptr;
}

const Caps::Block* Caps::maximum(std::uint16_t group) const {
  switch (static_cast<CapGroup>(group)) {
    case CapGroup::kGeneral:
      return &general_max_;
    case CapGroup::kAtomic:
      return &atomic_max_;
    case CapGroup::kOdp:
      return &odp_max_;
    case CapGroup::kPortSelection:
      return selects_port_ ? &port_selection_max_ : nullptr;
    default:
      return current(group);
  }
}

Syndrome Caps::set(std::uint16_t group, const std::uint8_t* block, bool whole) {
  using g = prm::cmd_hca_cap;
  using a = prm::atomic_caps;
  switch (static_cast<CapGroup>(group)) {
    case CapGroup::kGeneral: {
      Block next = general_;
      // (iPXE's says 0, and makes QPs.)
      const bool few = prm::get<g::log_max_qp>(block) < 8;
      if (few && whole) return Syndrome::kCapValue;
      if (!few && !take<g::log_max_qp>(block, general_max_, next)) return Syndrome::kCapValue;
      if (!take<g::cmdif_checksum>(block, general_max_, next)) return Syndrome::kCapValue;
      if (!take_vhca_state(block, general_max_, next)) return Syndrome::kCapValue;
      if (prm::get<g::roce_rw_supported>(general_max_.data()) != 0 &&
          !take<g::roce>(block, general_max_, next))
        return Syndrome::kCapValue;
      // pkey_table_size 0 (128 entries) and 4 KiB UAR pages are all there is: in `next` already. Everything
      // else must be as it was: a change that is not made must not be answered with success. (Drivers with
      // the shorter block, such as iPXE's, ask for less than there is, and get along with more.)
      if (whole && std::memcmp(next.data(), block, prm::cmd_hca_cap::bytes) != 0) return Syndrome::kCapValue;
      general_ = next;
      return Syndrome::kOk;
    }
    case CapGroup::kAtomic: {
      // The driver sends the block with this one field set, the rest zero.
      const auto mode = prm::get<a::atomic_req_8B_endianness_mode>(block);
      if (mode > 1) return Syndrome::kCapValue;
      prm::set<a::atomic_req_8B_endianness_mode>(atomic_.data(), mode);
      return Syndrome::kOk;
    }
    case CapGroup::kOdp:
      return take_odp(block, odp_max_.data(), odp_.data()) ? Syndrome::kOk : Syndrome::kCapValue;
    case CapGroup::kPortSelection: {
      using bypass = prm::port_selection_cap::port_select_flow_table_bypass;
      if (!selects_port_) return Syndrome::kCapGroup;
      Block next = port_selection_;
      if (!take<bypass>(block, port_selection_max_, next)) return Syndrome::kCapValue;
      if (std::memcmp(next.data(), block, prm::port_selection_cap::bytes) != 0) return Syndrome::kCapValue;
      port_selection_ = next;
      return Syndrome::kOk;
    }
    default:
      return current(group) != nullptr ? Syndrome::kCapValue : Syndrome::kCapGroup;
  }
}

Syndrome Caps::managed_of(const std::uint8_t* block, ManagedCaps& wanted) const {
  using g = prm::cmd_hca_cap;
  Block next = general_max_;
  wanted.vectors = prm::get<g::dynamic_msix_table_size>(block);
  wanted.roce = prm::get<g::roce>(block) != 0;
  wanted.ipsec = prm::get<g::ipsec_offload>(block) != 0;
  if ((wanted.roce && !has_roce_) || (wanted.ipsec && !encrypts_)) return Syndrome::kCapValue;
  prm::set<g::dynamic_msix_table_size>(next.data(), wanted.vectors);
  prm::set<g::roce>(next.data(), wanted.roce ? 1 : 0);
  prm::set<g::ipsec_offload>(next.data(), wanted.ipsec ? 1 : 0);
  // Nothing else of a function is its manager's to choose.
  return std::memcmp(next.data(), block, g::bytes) == 0 ? Syndrome::kOk : Syndrome::kCapValue;
}

Syndrome Caps::migratable_of(const std::uint8_t* block, bool& on) const {
  using g = prm::cmd_hca_cap_2;
  Block next = *current(static_cast<std::uint16_t>(CapGroup::kGeneral2));
  on = prm::get<g::migratable>(block) != 0;
  prm::set<g::migratable>(next.data(), on ? 1 : 0);
  return std::memcmp(next.data(), block, g::bytes) == 0 ? Syndrome::kOk : Syndrome::kCapValue;
}

bool Caps::migratable() const { return get<prm::cmd_hca_cap_2::migratable>(CapGroup::kGeneral2) != 0; }

void Caps::set_migratable(bool on) {
  put<prm::cmd_hca_cap_2::migratable>(fixed_block(CapGroup::kGeneral2), on ? 1 : 0);
}

Syndrome Caps::set_managed_ipsec(CapGroup group, const std::uint8_t* block) {
  using e = prm::per_protocol_networking_offload_caps;
  using i = prm::ipsec_cap;
  const Block* now = current(static_cast<std::uint16_t>(group));
  if (now == nullptr || !encrypts_) return Syndrome::kCapGroup;
  Block next = *now;
  IpsecAllowed wanted = ipsec_;
  if (group == CapGroup::kEthernet) {
    wanted.trailer = prm::get<e::insert_trailer>(block) != 0;
    prm::set<e::insert_trailer>(next.data(), wanted.trailer ? 1 : 0);
  } else {
    wanted.crypto = prm::get<i::ipsec_crypto_offload>(block) != 0;
    wanted.packets = prm::get<i::ipsec_full_offload>(block) != 0;
    prm::set<i::ipsec_crypto_offload>(next.data(), wanted.crypto ? 1 : 0);
    prm::set<i::ipsec_full_offload>(next.data(), wanted.packets ? 1 : 0);
  }
  if (std::memcmp(next.data(), block, next.size()) != 0) return Syndrome::kCapValue;
  ipsec_ = wanted;
  show_ipsec();
  return Syndrome::kOk;
}

void Caps::set_ipsec(bool on) {
  ipsec_.any = on;
  show_ipsec();
  prm::set<prm::cmd_hca_cap::ipsec_offload>(general_.data(), on ? 1 : 0);
}

void Caps::forget_ipsec() {
  ipsec_ = {};
  set_ipsec(false);
}

void Caps::show_ipsec() {
  if (!encrypts_) return;
  for (Block* block : {&general_max_, &general_power_on_})
    prm::set<prm::cmd_hca_cap::ipsec_offload>(block->data(), ipsec_.any ? 1 : 0);
  std::uint8_t* const ipsec = fixed_block(CapGroup::kIpsec);
  put<prm::ipsec_cap::ipsec_crypto_offload>(ipsec, ipsec_.crypto ? 1 : 0);
  put<prm::ipsec_cap::ipsec_full_offload>(ipsec, ipsec_.packets ? 1 : 0);
  put<prm::per_protocol_networking_offload_caps::insert_trailer>(fixed_block(CapGroup::kEthernet),
                                                                 ipsec_.trailer ? 1 : 0);
}

bool Caps::take_over(const Block& general, const Block& atomic, const Block& odp) {
  using g = prm::cmd_hca_cap;
  Block next = general_max_;
  prm::set<g::log_max_qp>(next.data(), prm::get<g::log_max_qp>(general.data()));
  prm::set<g::cmdif_checksum>(next.data(), prm::get<g::cmdif_checksum>(general.data()));
  return take_all<g::log_max_qp, g::cmdif_checksum>(next.data(), general_max_, general_) &&
         set(static_cast<std::uint16_t>(CapGroup::kAtomic), atomic.data()) == Syndrome::kOk &&
         set(static_cast<std::uint16_t>(CapGroup::kOdp), odp.data()) == Syndrome::kOk;
}

void Caps::set_vectors(unsigned vectors) {
  for (Block* block : {&general_max_, &general_power_on_, &general_})
    prm::set<prm::cmd_hca_cap::dynamic_msix_table_size>(block->data(), vectors);
}

bool Caps::may_use_roce() const { return prm::get<prm::cmd_hca_cap::roce>(general_max_.data()) != 0; }

void Caps::allow_roce(bool on) {
  for (Block* block : {&general_max_, &general_power_on_})
    prm::set<prm::cmd_hca_cap::roce>(block->data(), on && has_roce_ ? 1 : 0);
}

void Caps::set_roce(bool on) {
  allow_roce(on);
  prm::set<prm::cmd_hca_cap::roce>(general_.data(), may_use_roce() ? 1 : 0);
}

void Caps::keep_vectors() { set_vectors(get<prm::cmd_hca_cap::dynamic_msix_table_size>()); }

bool Caps::atomic_host_endian() const {
  return prm::get<prm::atomic_caps::atomic_req_8B_endianness_mode>(atomic_.data()) == 1;
}

bool Caps::port_select_bypass() const {
  return prm::get<prm::port_selection_cap::port_select_flow_table_bypass>(port_selection_.data()) != 0;
}

// op_mod: group << 1, bit 0: 1 current, 0 maximum.
Syndrome query_hca_cap(Firmware& fw, Command& cmd) {
  using in = prm::query_hca_cap_in;
  Firmware* of = &fw;
  if (cmd.get<in::other_function>() != 0)
    of = fw.managed(cmd.get<in::function_id>());
  else if (cmd.get<in::function_id>() != 0)
    of = nullptr;
  if (of == nullptr) return Syndrome::kFunction;
  const std::uint16_t group = cmd.op_mod >> 1;
  const Caps::Block* block = (cmd.op_mod & 1) != 0 ? of->caps().current(group) : of->caps().maximum(group);
  // Programs ask what there is; the driver knows from other capabilities.
  if (block == nullptr) return cmd.uid != 0 ? Syndrome::kCapGroupAsked : Syndrome::kCapGroup;
  // User space asks for less than all of it.
  constexpr std::size_t at = prm::query_hca_cap_out::capability::bit_off / 8;
  std::memcpy(cmd.out.data() + at, block->data(), std::min(block->size(), cmd.out.size() - at));
  return Syndrome::kOk;
}

// Of a function: whether it may be migrated, and has RoCE, and IPsec; the size of the MSI-X table that its
// configuration space shows. The tables share a pool of entries.
Syndrome set_managed_cap(Firmware& fw, const Command& cmd, std::uint32_t number) {
  Firmware* vf = fw.managed(number);
  if (vf == nullptr) return Syndrome::kFunction;
  if (fw.state() != State::kInit) return Syndrome::kNotInitialized;
  if (cmd.op_mod >> 1 == static_cast<std::uint16_t>(CapGroup::kGeneral2) && fw.options().migration &&
      !vf->options().sf) {
    bool on = false;
    const Syndrome s = vf->caps().migratable_of(prm::ptr<prm::set_hca_cap_in::capability>(cmd.in.data()), on);
    if (s == Syndrome::kOk) vf->caps().set_migratable(on);
    return s;
  }
  const auto group = static_cast<CapGroup>(cmd.op_mod >> 1);
  if (group == CapGroup::kEthernet || group == CapGroup::kIpsec)
    return vf->caps().set_managed_ipsec(group, prm::ptr<prm::set_hca_cap_in::capability>(cmd.in.data()));
  if (group != CapGroup::kGeneral) return Syndrome::kCapGroup;
  ManagedCaps wanted;
  const Syndrome s = vf->caps().managed_of(prm::ptr<prm::set_hca_cap_in::capability>(cmd.in.data()), wanted);
  if (s != Syndrome::kOk) return s;
  const unsigned vectors = wanted.vectors;
  if (vectors != vf->caps().get<prm::cmd_hca_cap::dynamic_msix_table_size>()) {
    if (vectors < kVfMinVectors || vectors > kVfMaxVectors) return Syndrome::kCapValue;
    unsigned left = kVfPoolVectors * fw.options().vfs;
    for (std::uint32_t n = 1; Firmware* other = fw.managed(n); ++n)
      if (n != number) left -= std::min(left, other->vectors());
    if (vectors > left) return Syndrome::kMsixPool;
    vf->caps().set_vectors(vectors);
  }
  vf->caps().set_roce(wanted.roce);
  vf->caps().set_ipsec(wanted.ipsec);
  return Syndrome::kOk;
}

Syndrome set_hca_cap(Firmware& fw, Command& cmd) {
  using in = prm::set_hca_cap_in;
  if ((cmd.op_mod & 1) != 0) return Syndrome::kOpMod;
  const std::uint32_t number = cmd.get<in::function_id>();
  if (cmd.get<in::other_function>() != 0) return set_managed_cap(fw, cmd, number);
  if (number != 0) return Syndrome::kFunction;
  if (fw.state() != State::kEnabled) return Syndrome::kInitialized;
  const Syndrome s =
      fw.caps().set(cmd.op_mod >> 1, prm::ptr<in::capability>(cmd.in.data()), cmd.in_len >= in::bytes);
  fw.function().qps().atomic_host_endian = fw.caps().atomic_host_endian();
  return s;
}

}  // namespace hcasim::fw
