// SPDX-License-Identifier: BSD-3-Clause
// Registers of the Ethernet port and of its cable module.
#include "firmware-stub/registers.h"

#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/link_mode.h"
#include "firmware-stub/module_eeprom.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kMinEthMtu = 68 + 22;            // IPv4's smallest and the headers
enum : std::uint32_t { kPortNone = 1, kPortFibre = 6 };  // ptys_reg.connector_type (mlx5 port.h)
enum : std::uint32_t { kAnUnavailable = 0, kAnComplete = 1, kAnFailed = 2 };  // ptys_reg.an_status
constexpr std::uint32_t kPriorities = 8;                                      // and traffic classes
enum : std::uint32_t {                                                        // ppcnt_reg.grp (mlx5 device.h)
  k802_3 = 0,
  kRfc2863 = 1,
  kRfc2819 = 2,
  kRfc3635 = 3,
  kExtended = 5,
  kPerPriority = 0x10,
  kPerTc = 0x11,
  kPhysical = 0x12,
  kStatistical = 0x16,
};

// Counters come as two dwords, high and low.
template <class High, class Low>
void put64(std::uint8_t* p, std::uint64_t v) {
  static_assert(Low::bit_off == High::bit_off + 32);
  prm::set<High>(p, static_cast<std::uint32_t>(v >> 32));
  prm::set<Low>(p, static_cast<std::uint32_t>(v));
}
#define HCASIM_PUT64(group, counter, value) put64<group::counter##_high, group::counter##_low>(a.data, value)

using Sets = prm::ppcnt_reg::counter_set;

void put_802_3(Access& a, const PortCounters& c) {
  using g = Sets::eth_802_3_cntrs_grp_data_layout;
  const MacCounters& m = c.mac;
  HCASIM_PUT64(g, a_frames_transmitted_ok, m.tx.frames);
  HCASIM_PUT64(g, a_frames_received_ok, m.rx.frames);
  HCASIM_PUT64(g, a_frame_check_sequence_errors, m.rx_fcs_errors);
  HCASIM_PUT64(g, a_octets_transmitted_ok, m.tx.octets);
  HCASIM_PUT64(g, a_octets_received_ok, m.rx.octets);
  HCASIM_PUT64(g, a_multicast_frames_xmitted_ok, m.tx.multicast);
  HCASIM_PUT64(g, a_broadcast_frames_xmitted_ok, m.tx.broadcast);
  HCASIM_PUT64(g, a_multicast_frames_received_ok, m.rx.multicast);
  HCASIM_PUT64(g, a_broadcast_frames_received_ok, m.rx.broadcast);
  HCASIM_PUT64(g, a_mac_control_frames_transmitted, m.tx.control);
  HCASIM_PUT64(g, a_mac_control_frames_received, m.rx.control);
  HCASIM_PUT64(g, a_unsupported_opcodes_received, m.rx_unsupported);
  HCASIM_PUT64(g, a_frame_too_long_errors, m.rx_too_long);
  HCASIM_PUT64(g, a_symbol_error_during_carrier, c.symbol_errors);
  HCASIM_PUT64(g, a_pause_mac_ctrl_frames_received, m.rx.pause);
  HCASIM_PUT64(g, a_pause_mac_ctrl_frames_transmitted, m.tx.pause);
}

void put_2863(Access& a, const PortCounters& c) {
  using g = Sets::eth_2863_cntrs_grp_data_layout;
  const MacCounters& m = c.mac;
  HCASIM_PUT64(g, if_in_octets, m.rx.octets);
  HCASIM_PUT64(g, if_in_ucast_pkts, m.rx.frames - m.rx.multicast - m.rx.broadcast);
  HCASIM_PUT64(g, if_in_errors, m.rx_fcs_errors + m.rx_too_long);
  HCASIM_PUT64(g, if_out_octets, m.tx.octets);
  HCASIM_PUT64(g, if_out_ucast_pkts, m.tx.frames - m.tx.multicast - m.tx.broadcast);
  HCASIM_PUT64(g, if_out_discards, c.tx_discards);
  HCASIM_PUT64(g, if_out_errors, c.tx_errors);
  HCASIM_PUT64(g, if_in_multicast_pkts, m.rx.multicast);
  HCASIM_PUT64(g, if_in_broadcast_pkts, m.rx.broadcast);
  HCASIM_PUT64(g, if_out_multicast_pkts, m.tx.multicast);
  HCASIM_PUT64(g, if_out_broadcast_pkts, m.tx.broadcast);
}

void put_2819(Access& a, const PortCounters& c) {
  using g = Sets::eth_2819_cntrs_grp_data_layout;
  const MacCounters& m = c.mac;
  HCASIM_PUT64(g, ether_stats_octets, m.rx.octets);
  HCASIM_PUT64(g, ether_stats_pkts, m.rx.frames + m.rx_fcs_errors + m.rx_too_long);
  HCASIM_PUT64(g, ether_stats_broadcast_pkts, m.rx.broadcast);
  HCASIM_PUT64(g, ether_stats_multicast_pkts, m.rx.multicast);
  HCASIM_PUT64(g, ether_stats_crc_align_errors, m.rx_fcs_errors);
  HCASIM_PUT64(g, ether_stats_pkts64octets, m.rx_sizes[0]);
  HCASIM_PUT64(g, ether_stats_pkts65to127octets, m.rx_sizes[1]);
  HCASIM_PUT64(g, ether_stats_pkts128to255octets, m.rx_sizes[2]);
  HCASIM_PUT64(g, ether_stats_pkts256to511octets, m.rx_sizes[3]);
  HCASIM_PUT64(g, ether_stats_pkts512to1023octets, m.rx_sizes[4]);
  HCASIM_PUT64(g, ether_stats_pkts1024to1518octets, m.rx_sizes[5]);
  HCASIM_PUT64(g, ether_stats_pkts1519to2047octets, m.rx_sizes[6]);
  HCASIM_PUT64(g, ether_stats_pkts2048to4095octets, m.rx_sizes[7]);
  HCASIM_PUT64(g, ether_stats_pkts4096to8191octets, m.rx_sizes[8]);
  HCASIM_PUT64(g, ether_stats_pkts8192to10239octets, m.rx_sizes[9]);
}

void put_3635(Access& a, const PortCounters& c) {
  using g = Sets::eth_3635_cntrs_grp_data_layout;
  HCASIM_PUT64(g, dot3stats_fcs_errors, c.mac.rx_fcs_errors);
  HCASIM_PUT64(g, dot3stats_frame_too_longs, c.mac.rx_too_long);
  HCASIM_PUT64(g, dot3stats_symbol_errors, c.symbol_errors);
  HCASIM_PUT64(g, dot3control_in_unknown_opcodes, c.mac.rx_unsupported);
  HCASIM_PUT64(g, dot3in_pause_frames, c.mac.rx.pause);
  HCASIM_PUT64(g, dot3out_pause_frames, c.mac.tx.pause);
}

void put_extended(Access& a, const PortCounters& c) {
  using g = Sets::eth_extended_cntrs_grp_data_layout;
  HCASIM_PUT64(g, rx_icrc_encapsulated, c.rx_icrc_errors);
}

void put_priority(Access& a, const PortCounters& c, std::uint32_t priority) {
  using g = Sets::eth_per_prio_grp_data_layout;
  const MacCounters& m = c.mac;
  HCASIM_PUT64(g, rx_octets, m.rx.prio_octets[priority]);
  HCASIM_PUT64(g, rx_frames, m.rx.prio_frames[priority]);
  HCASIM_PUT64(g, tx_octets, m.tx.prio_octets[priority]);
  HCASIM_PUT64(g, tx_frames, m.tx.prio_frames[priority]);
  HCASIM_PUT64(g, rx_pause, m.rx.prio_pause[priority]);
  HCASIM_PUT64(g, tx_pause, m.tx.prio_pause[priority]);
  const auto us = [](Time t) { return static_cast<std::uint64_t>(t / from_ns(1000)); };
  const Port& port = a.fw.device().port();
  const PauseTime &received = port.pause_received(priority), &asked = port.pause_asked(priority);
  HCASIM_PUT64(g, rx_pause_duration, us(received.lasted(a.cmd.now)));
  HCASIM_PUT64(g, rx_pause_transition, received.ended(a.cmd.now));
  HCASIM_PUT64(g, tx_pause_duration, us(asked.lasted(a.cmd.now)));
}

void put_physical(Access& a) {
  using g = Sets::phys_layer_cntrs;
  HCASIM_PUT64(g, symbol_errors, a.fw.device().port().counters().symbol_errors);
  prm::set<g::link_down_events>(a.data, static_cast<std::uint32_t>(a.fw.port().link_downed()));
}

// There is no analog part: no bit is wrong that error correction would have to put right, but symbol errors
// are what faults have made.
void put_statistical(Access& a, const PortCounters& c, std::uint64_t received) {
  using g = Sets::phys_layer_statistical_cntrs;
  HCASIM_PUT64(g, phy_received_bits, received * 8);
  HCASIM_PUT64(g, phy_symbol_errors, c.symbol_errors);
}

}  // namespace

// ---- The port ----

Syndrome read_pmtu_eth(Access& a) {
  using r = prm::pmtu_reg;
  prm::set<r::max_mtu>(a.data, kMaxEthMtu);
  prm::set<r::admin_mtu>(a.data, a.fw.port().mtu());
  prm::set<r::oper_mtu>(a.data, a.fw.port().mtu());
  return Syndrome::kOk;
}

Syndrome write_pmtu_eth(Access& a) {
  const std::uint32_t mtu = prm::get<prm::pmtu_reg::admin_mtu>(a.data);
  if (mtu < kMinEthMtu || mtu > kMaxEthMtu) return Syndrome::kRegisterValue;
  a.fw.port().set_mtu(static_cast<std::uint16_t>(mtu));
  return read_pmtu_eth(a);
}

Syndrome read_ptys_eth(Access& a) {
  using r = prm::ptys_reg;
  // The InfiniBand half stays zero: this port has none.
  if (prm::get<r::proto_mask>(a.data) != kProtoEthernet) return Syndrome::kOk;
  const EthLink& link = a.fw.port().eth_link();
  const EthLink::Admin admin = link.admin();
  const LinkMode* active = link.active();
  prm::set<r::an_disable_cap>(a.data, 1);
  prm::set<r::an_disable_admin>(a.data, admin.forced ? 1 : 0);
  prm::set<r::an_status>(a.data, link.negotiated()                                       ? kAnComplete
                                 : active || !link.offer().negotiates || !link.partner() ? kAnUnavailable
                                                                                         : kAnFailed);
  prm::set<r::connector_type>(a.data, a.fw.port().cable_in() ? kPortFibre : kPortNone);
  prm::set<r::eth_proto_capability>(a.data, link.plain());
  prm::set<r::eth_proto_admin>(a.data, admin.plain);
  prm::set<r::eth_proto_oper>(a.data, active ? active->plain : 0);
  prm::set<r::ext_eth_proto_capability>(a.data, link.extended());
  prm::set<r::ext_eth_proto_admin>(a.data, admin.extended);
  prm::set<r::ext_eth_proto_oper>(a.data, active ? active->extended : 0);
  // One field for bits of either kind: drivers take them for extended ones if the port has such.
  std::uint32_t partners = 0;
  for (const LinkMode& mode : link.modes())
    if (link.negotiated() && (link.partners_offer().kinds & link_bit(mode.kind)) != 0)
      partners |= link.extended() != 0 ? mode.extended : mode.plain;
  prm::set<r::eth_proto_lp_advertise>(a.data, partners);
  return Syndrome::kOk;
}

// The choice takes hold when the link comes up next.
Syndrome write_ptys_eth(Access& a) {
  using r = prm::ptys_reg;
  if (prm::get<r::proto_mask>(a.data) != kProtoEthernet) return Syndrome::kRegisterValue;
  const EthLink::Admin wanted{prm::get<r::eth_proto_admin>(a.data), prm::get<r::ext_eth_proto_admin>(a.data),
                              prm::get<r::an_disable_admin>(a.data) != 0};
  if (!a.fw.port().eth_link().ask(wanted)) return Syndrome::kRegisterValue;
  return read_ptys_eth(a);
}

Syndrome read_pmlp(Access& a) {
  // lane_2_module_mapping: module 0, lane n both ways.
  using lane = prm::lane_2_module_mapping;
  prm::set<prm::pmlp_reg::width>(a.data, kLanes);
  std::uint8_t* p = prm::ptr<prm::pmlp_reg::lane0_module_mapping>(a.data);
  for (std::uint32_t i = 0; i < kLanes; ++i, p += 4) {
    prm::set<lane::rx_lane>(p, i);
    prm::set<lane::tx_lane>(p, i);
    prm::set<lane::module>(p, 0);
  }
  return Syndrome::kOk;
}

// One group of link modes: calls f(row, field offered, field wanted).
template <class F>
void for_each_fec_row(F&& f) {
  using r = prm::pplm_reg;
  f(FecRow::k10g40g, r::fec_override_cap_10g_40g{}, r::fec_override_admin_10g_40g{});
  f(FecRow::k25g, r::fec_override_cap_25g{}, r::fec_override_admin_25g{});
  f(FecRow::k50g, r::fec_override_cap_50g{}, r::fec_override_admin_50g{});
  f(FecRow::k100g, r::fec_override_cap_100g{}, r::fec_override_admin_100g{});
  f(FecRow::k50g1x, r::fec_override_cap_50g_1x{}, r::fec_override_admin_50g_1x{});
  f(FecRow::k100g2x, r::fec_override_cap_100g_2x{}, r::fec_override_admin_100g_2x{});
  f(FecRow::k200g4x, r::fec_override_cap_200g_4x{}, r::fec_override_admin_200g_4x{});
  f(FecRow::k100g1x, r::fec_override_cap_100g_1x{}, r::fec_override_admin_100g_1x{});
  f(FecRow::k200g2x, r::fec_override_cap_200g_2x{}, r::fec_override_admin_200g_2x{});
  f(FecRow::k400g4x, r::fec_override_cap_400g_4x{}, r::fec_override_admin_400g_4x{});
}

Syndrome read_pplm(Access& a) {
  using r = prm::pplm_reg;
  const Fec& fec = a.fw.port().eth_link().fec();
  constexpr std::size_t selectors = r::local_port::bit_off / 8 + 1;
  std::memset(a.data + selectors, 0, r::bytes - selectors);
  for_each_fec_row([&](FecRow row, auto offered, auto wanted) {
    prm::set<decltype(offered)>(a.data, fec.offered(row));
    prm::set<decltype(wanted)>(a.data, fec.wanted(row));
  });
  prm::set<r::fec_mode_active>(a.data, fec.active());
  return Syndrome::kOk;
}

// All or nothing: a register is written as a whole. Modes that no generation has take nothing but 0.
Syndrome write_pplm(Access& a) {
  Fec& fec = a.fw.port().eth_link().fec();
  bool acceptable = prm::get<prm::pplm_reg::rs_fec_correction_bypass_admin>(a.data) == 0 &&
                    prm::get<prm::pplm_reg::fec_override_admin_56g>(a.data) == 0 &&
                    prm::get<prm::pplm_reg::fec_override_admin_400g_8x>(a.data) == 0 &&
                    prm::get<prm::pplm_reg::fec_override_admin_800g_8x>(a.data) == 0;
  for_each_fec_row([&](FecRow row, auto, auto wanted) {
    const std::uint32_t kind = prm::get<decltype(wanted)>(a.data);
    acceptable = acceptable && fec.acceptable(row, static_cast<std::uint16_t>(kind));
  });
  if (!acceptable) return Syndrome::kRegisterValue;
  for_each_fec_row([&](FecRow row, auto, auto wanted) {
    fec.want(row, static_cast<std::uint16_t>(prm::get<decltype(wanted)>(a.data)));
  });
  return read_pplm(a);
}

Syndrome read_pfcc(Access& a) {
  using r = prm::pfcc_reg;
  const Port& port = a.fw.device().port();
  prm::set<r::pptx>(a.data, port.pause_tx ? 1 : 0);
  prm::set<r::pprx>(a.data, port.pause_rx ? 1 : 0);
  prm::set<r::pfctx>(a.data, port.pfc_tx);
  prm::set<r::pfcrx>(a.data, port.pfc_rx);
  return Syndrome::kOk;
}

Syndrome write_pfcc(Access& a) {
  using r = prm::pfcc_reg;
  // The negated masks keep a field as it is, those of priorities say which bits are written; stall watermarks
  // are not offered.
  if (prm::get<r::critical_stall_mask>(a.data) != 0 || prm::get<r::minor_stall_mask>(a.data) != 0)
    return Syndrome::kRegisterValue;
  Port& port = a.fw.device().port();
  if (prm::get<r::pptx_mask_n>(a.data) == 0) port.pause_tx = prm::get<r::pptx>(a.data) != 0;
  if (prm::get<r::pprx_mask_n>(a.data) == 0) port.pause_rx = prm::get<r::pprx>(a.data) != 0;
  const auto masked = [](std::uint8_t old, std::uint32_t now, std::uint32_t mask) {
    return static_cast<std::uint8_t>((old & ~mask) | (now & mask));
  };
  port.pfc_tx = masked(port.pfc_tx, prm::get<r::pfctx>(a.data), prm::get<r::prio_mask_tx>(a.data));
  port.pfc_rx = masked(port.pfc_rx, prm::get<r::pfcrx>(a.data), prm::get<r::prio_mask_rx>(a.data));
  return read_pfcc(a);
}

Syndrome read_ppcnt_group(Access& a) {
  const PortCounters& c = a.fw.device().port().counters();
  const std::uint32_t group = prm::get<prm::ppcnt_reg::grp>(a.data);
  const bool ethernet = a.fw.options().link == Link::kEthernet;
  // The driver of IPoIB's offloads reads Ethernet's, in which nothing is counted here.
  if (!ethernet && !a.fw.options().offloads_ipoib() && group != kPhysical && group != kStatistical)
    return Syndrome::kRegisterValue;
  const std::uint32_t index = prm::get<prm::ppcnt_reg::prio_tc>(a.data);
  switch (group) {
    case k802_3:
      put_802_3(a, c);
      return Syndrome::kOk;
    case kRfc2863:
      put_2863(a, c);
      return Syndrome::kOk;
    case kRfc2819:
      put_2819(a, c);
      return Syndrome::kOk;
    case kRfc3635:
      put_3635(a, c);
      return Syndrome::kOk;
    case kExtended:
      put_extended(a, c);
      return Syndrome::kOk;
    case kPerPriority:
    case kPerTc:
      if (index >= kPriorities) return Syndrome::kRegisterValue;
      // Of traffic classes there is nothing to count: they have no queue limits of their own.
      if (group == kPerPriority) put_priority(a, c, index);
      return Syndrome::kOk;
    case kPhysical:
      put_physical(a);
      return Syndrome::kOk;
    case kStatistical:
      put_statistical(a, c, ethernet ? c.mac.rx.octets : c.rx_bytes);
      return Syndrome::kOk;
    default:
      return Syndrome::kRegisterValue;
  }
}

void clear_all_ppcnt_groups(Access& a) {
  for (const std::uint32_t group : {k802_3, kRfc2863, kRfc2819, kRfc3635, kExtended, kPhysical, kStatistical})
    clear_ppcnt_group(a, group, 0);
  for (std::uint32_t priority = 0; priority < kPriorities; ++priority)
    clear_ppcnt_group(a, kPerPriority, priority);
}

void clear_ppcnt_group(Access& a, std::uint32_t group, std::uint32_t priority) {
  Port& port = a.fw.device().port();
  PortCounters& c = port.counters_to_clear();
  MacCounters& m = c.mac;
  const auto frames = [](MacCounters::Direction& d) { d.frames = d.octets = d.multicast = d.broadcast = 0; };
  switch (group) {
    case k802_3:
      for (MacCounters::Direction* d : {&m.tx, &m.rx}) {
        frames(*d);
        d->control = d->pause = 0;
      }
      m.rx_fcs_errors = m.rx_too_long = m.rx_unsupported = c.symbol_errors = 0;
      break;
    case kRfc2863:
      frames(m.tx);
      frames(m.rx);
      m.rx_fcs_errors = m.rx_too_long = c.tx_discards = c.tx_errors = 0;
      break;
    case kRfc2819:
      frames(m.rx);
      m.rx_fcs_errors = m.rx_too_long = 0;
      m.rx_sizes = {};
      break;
    case kRfc3635:
      m.rx_fcs_errors = m.rx_too_long = m.rx_unsupported = c.symbol_errors = m.rx.pause = m.tx.pause = 0;
      break;
    case kExtended:
      c.rx_icrc_errors = 0;
      break;
    case kPerPriority:
      for (MacCounters::Direction* d : {&m.tx, &m.rx})
        d->prio_frames[priority] = d->prio_octets[priority] = d->prio_pause[priority] = 0;
      port.clear_pause_times(priority);
      break;
    case kPhysical:
      c.symbol_errors = 0;
      a.fw.port().clear_link_downed();
      break;
    case kStatistical:
      m.rx.octets = c.symbol_errors = 0;
      if (a.fw.options().link != Link::kEthernet) c.rx_bytes = 0;
      break;
    default:
      break;
  }
}

// ---- The cable module ----

Syndrome read_mcia(Access& a) {
  using r = prm::mcia_reg;
  // The register's codes, as mlxsw names them (reg.h): a page that is not there is not acknowledged.
  enum : std::uint32_t { kGood = 0, kNotConnected = 3, kI2cError = 9 };
  constexpr std::uint32_t kI2cLow = 0x50;
  const std::uint32_t size = prm::get<r::size>(a.data);
  std::uint8_t* out = prm::ptr<r::dwords>(a.data);
  std::memset(out, 0, kMciaRead);
  std::uint32_t status = kGood;
  if (prm::get<r::module>(a.data) != 0 || !a.fw.port().cable_in()) {
    status = kNotConnected;
  } else if (size > kMciaRead) {
    return Syndrome::kRegisterValue;
  } else if (prm::get<r::i2c_device_address>(a.data) != kI2cLow ||
             !read_module_eeprom(prm::get<r::page_number>(a.data), prm::get<r::device_address>(a.data), size,
                                 out)) {
    status = kI2cError;
  }
  prm::set<r::status>(a.data, status);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
