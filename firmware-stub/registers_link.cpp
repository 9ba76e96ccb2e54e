// SPDX-License-Identifier: BSD-3-Clause
// What the vendor's tools and ethtool ask when a link does not do as it should: PDDR, PMAOS, PPAOS, SLTP; and
// the LED beside it (MLCR). There is no analog part behind it: states, modes and the module are those of the
// model, and settings of transmitters do not exist.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "firmware-stub/firmware.h"
#include "firmware-stub/ib_link.h"
#include "firmware-stub/module_eeprom.h"
#include "firmware-stub/registers.h"
#include "prm/link_diagnostics.h"

namespace hcasim::fw {

namespace {

bool ethernet(const Access& a) { return a.fw.options().link == Link::kEthernet; }
bool link_is_up(const Access& a) { return a.fw.device().port().state() != PortState::kDown; }
// The driver has opened the port, and did not close it.
bool opened(const Access& a) { return a.fw.port().running() && a.fw.port().admin_up(); }

// The number of the bit, as PDDR has what PPLM has a bit for. 0, the number of no correction, if none is set.
std::uint32_t number_of(std::uint32_t bit) {
  std::uint32_t n = 0;
  while (bit >> 1 >> n != 0) ++n;
  return n;
}

void put_ethernet(Access& a, std::uint8_t* page) {
  using p = prm::pddr_operation_page;
  const EthLink& link = a.fw.port().eth_link();
  const Fec& fec = link.fec();
  const LinkMode& mode = link.expected();
  const EthLink::Admin admin = link.admin();
  const bool extended = link.extended() != 0;
  std::uint32_t enabled = extended ? admin.extended : admin.plain;
  if (extended && enabled == 0) {  // asked for by the others' bits
    for (const LinkMode& m : link.modes())
      if ((m.plain & admin.plain) != 0) enabled |= m.extended;
  }
  prm::set<p::phy_manager_link_enabled>(page, enabled);
  prm::set<p::core_to_phy_link_enabled>(page, enabled);
  prm::set<p::cable_proto_cap>(page, !a.fw.port().cable_in() ? 0 : extended ? link.extended() : link.plain());
  prm::set<p::link_active>(page, !link_is_up(a) ? 0 : extended ? mode.extended : mode.plain);
  prm::set<p::fec_mode_active>(page, number_of(fec.active()));
  prm::set<p::fec_mode_request>(page, mode.fec == FecRow::kNone ? 0 : number_of(fec.wanted(mode.fec)));
  prm::set<p::eth_25g_50g_fec_support>(page, fec.offered(FecRow::k25g));
  prm::set<p::eth_100g_fec_support>(page, fec.offered(FecRow::k100g));
}

void put_ib(Access& a, std::uint8_t* page) {
  using p = prm::pddr_operation_page;
  constexpr std::uint32_t kRs544 = 7;  // lanes of PAM4 do not do without it
  const IbLink link(a.fw.device().profile().port, *a.fw.options().generation);
  const std::uint32_t modes = link.widths << 16 | link.speeds;
  prm::set<p::phy_manager_link_enabled>(page, modes);
  prm::set<p::core_to_phy_link_enabled>(page, modes);
  prm::set<p::cable_proto_cap>(page, a.fw.port().cable_in() ? modes : 0);
  prm::set<p::link_active>(page, link_is_up(a) ? link.width << 16 | link.speed : 0);
  prm::set<p::fec_mode_active>(page, link_is_up(a) && link.speed >= kIbHdr ? kRs544 : 0u);
  // Tools of before 2023 show the state of Ethernet's negotiation of any link.
  prm::set<p::eth_an_fsm_state>(page, link_is_up(a) ? prm::kEthAnGood : 0);
  prm::set<p::ib_phy_fsm_state>(page, link_is_up(a) ? prm::kIbPhyLinkUp
                                      : opened(a)   ? prm::kIbPhyPolling
                                                    : prm::kIbPhyDisabled);
}

void put_operation(Access& a, std::uint8_t* page) {
  using p = prm::pddr_operation_page;
  const PortState state = a.fw.device().port().state();
  prm::set<p::proto_active>(page, ethernet(a) ? kProtoEthernet : kProtoIb);
  std::uint32_t phy = opened(a) ? prm::kPhyPolling : prm::kPhyDisabled;
  if (link_is_up(a)) phy = state == PortState::kInit ? prm::kPhyUp : prm::kPhyActive;
  prm::set<p::phy_mngr_fsm_state>(page, phy);
  ethernet(a) ? put_ethernet(a, page) : put_ib(a, page);
}

Syndrome put_trouble(Access& a) {
  using page = prm::pddr_reg::page_data::pddr_troubleshooting_page;
  enum : std::uint32_t { kMonitor = 0, kAdvanced = 1 };  // groups: here the same
  const std::uint32_t group = prm::get<page::group_opcode>(a.data);
  if (group != kMonitor && group != kAdvanced) return Syndrome::kRegisterValue;
  std::uint32_t code = prm::kNoIssue;
  std::string text = "no issue observed";
  if (!opened(a)) {
    code = prm::kClosedByCommand;
    text = "the port is closed: no driver, or the interface is down";
  } else if (!a.fw.port().cable_in()) {
    code = prm::kCableUnplugged;
    text = "the cable is unplugged";
  } else if (!link_is_up(a)) {
    const EthLink& link = a.fw.port().eth_link();
    if (!link.offer().negotiates) {
      code = prm::kNoPartnerForced;
      text = "nobody at the far end whose link has the speed that this one is set to";
    } else if (!link.partner()) {
      code = prm::kNoPartner;
      text = "nobody at the far end of the cable";
    } else if (ethernet(a) && !link.agreed()) {
      code = prm::kNoCommonMode;
      text = "the ends offer no link mode that both have";
    }
  }
  std::memset(a.data + page::bit_off / 8, 0, page::bytes);
  prm::set<page::group_opcode>(a.data, group);
  prm::set<page::status_opcode::pddr_monitor_opcode::monitor_opcode>(a.data, code);
  std::copy(text.begin(), text.end(), a.data + page::status_message::bit_off / 8);
  return Syndrome::kOk;
}

// 0.1 uW to whole dBm or to uW.
std::uint16_t power(unsigned raw, bool in_uw) {
  if (in_uw) return static_cast<std::uint16_t>(raw / 10);
  return static_cast<std::uint16_t>(std::lround(10 * std::log10(raw / 10000.0)));
}

// The InfiniBand port's cable: short copper, as the profiles' latencies have it, and nothing to be measured.
void put_copper(std::uint8_t* page) {
  using p = prm::pddr_module_page;
  constexpr std::uint8_t kUnequalized = 0xa0;  // SFF-8636, byte 147
  const auto text = [page](std::size_t bit, std::string s) {
    s.resize(16, ' ');
    std::copy(s.begin(), s.end(), page + bit / 8);
  };
  prm::set<p::cable_type>(page, prm::kPassiveCopper);
  prm::set<p::cable_identifier>(page, prm::kCageQsfp28);
  prm::set<p::cable_technology>(page, kUnequalized);
  prm::set<p::cable_length>(page, 1);
  text(p::vendor_name::bit_off, "hcasim");
  text(p::vendor_pn::bit_off, "SIM-QSFP28-CU1M");
  text(p::vendor_sn::bit_off, "SIM0000000001");
}

// The QSFP28 in the cage, out of its memory map (SFF-8636).
Syndrome put_module(Access& a, std::uint8_t* page) {
  using p = prm::pddr_module_page;
  if (!a.fw.port().cable_in()) {
    prm::set<p::cable_type>(page, prm::kModuleUnplugged);
    return Syndrome::kOk;
  }
  if (!ethernet(a)) {
    put_copper(page);
    return Syndrome::kOk;
  }
  std::uint8_t map[256], alarms[256];
  if (!read_module_eeprom(0, 0, sizeof(map), map) || !read_module_eeprom(3, 0, sizeof(alarms), alarms))
    return Syndrome::kRegisterValue;
  const auto word = [](const std::uint8_t* from, unsigned at) {
    return unsigned{from[at]} << 8 | from[at + 1];
  };
  const auto text = [&](std::size_t to, unsigned at, unsigned size) {
    std::memcpy(page + to / 8, map + at, size);
  };
  const auto put16 = [page](std::size_t bit, unsigned v) {
    page[bit / 8] = static_cast<std::uint8_t>(v >> 8);
    page[bit / 8 + 1] = static_cast<std::uint8_t>(v);
  };
  const bool in_uw = prm::get<prm::pddr_module_info_ext>(a.data) == 1;

  prm::set<p::cable_type>(page, prm::kOpticalModule);
  prm::set<p::cable_identifier>(page, prm::kCageQsfp28);
  prm::set<p::cable_technology>(page, map[147]);
  prm::set<p::cable_breakout>(page, map[113]);
  prm::set<p::ethernet_compliance_code>(page, map[131]);
  prm::set<p::ext_ethernet_compliance_code>(page, map[192]);
  prm::set<p::cable_length>(page, map[146]);
  prm::set<p::cable_power_class>(page, (map[129] >> 6) + 1u);
  // Both directions have a clock recovery that is always on.
  prm::set<p::rx_cdr_cap>(page, 2);
  prm::set<p::tx_cdr_cap>(page, 2);
  prm::set<p::rx_cdr_state>(page, 0xf);
  prm::set<p::tx_cdr_state>(page, 0xf);
  text(p::vendor_name::bit_off, 148, 16);
  text(p::vendor_pn::bit_off, 168, 16);
  prm::set<p::vendor_rev>(page, word(map, 184));
  text(p::vendor_sn::bit_off, 196, 16);
  text(p::date_code::bit_off, 212, 8);
  prm::set<p::vendor_oui>(page, unsigned{map[165]} << 16 | word(map, 166));
  prm::set<p::connector_type>(page, map[130]);
  prm::set<p::memory_map_rev>(page, map[1]);
  prm::set<p::wavelength>(page, word(map, 186) / 20);
  prm::set<p::nbr250>(page, map[222]);
  prm::set<p::length_om3>(page, map[143]);
  prm::set<p::length_om4>(page, map[146]);
  prm::set<p::monitor_cap_mask>(page, 0x1f);  // all
  prm::set<p::rx_power_type>(page, map[220] >> 3 & 1);

  prm::set<p::temperature>(page, word(map, 22));
  prm::set<p::voltage>(page, word(map, 26));
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    put16(p::rx_power::bit_off + 16 * lane, power(word(map, 34 + 2 * lane), in_uw));
    put16(p::tx_power::bit_off + 16 * lane, power(word(map, 50 + 2 * lane), in_uw));
    put16(p::tx_bias::bit_off + 16 * lane, word(map, 42 + 2 * lane));
  }
  // High and low alarm, of: temperature, voltage, received power, transmitted power, bias.
  enum : unsigned { kTemperature = 128, kVoltage = 144, kRxPower = 176, kBias = 184, kTxPower = 192 };
  std::size_t at = p::thresholds::bit_off;
  for (const unsigned from : {kTemperature, kVoltage, kRxPower, kTxPower, kBias})
    for (unsigned i = 0; i < 2; ++i, at += 16) {
      const unsigned v = word(alarms, from + 2 * i);
      put16(at, from == kRxPower || from == kTxPower ? power(v, in_uw) : v);
    }
  return Syndrome::kOk;
}

}  // namespace

Syndrome read_pddr(Access& a) {
  using r = prm::pddr_reg;
  const std::uint32_t select = prm::get<r::page_select>(a.data);
  if (select == prm::kPddrTroubleshooting) return put_trouble(a);
  std::uint8_t* page = a.data + r::page_data::bit_off / 8;
  std::memset(page, 0, r::page_data::bytes);
  if (select == prm::kPddrModule) return put_module(a, page);
  if (select != prm::kPddrOperation) return Syndrome::kRegisterValue;
  put_operation(a, page);
  return Syndrome::kOk;
}

// The LED that shows where the card is.
Syndrome read_mlcr(Access& a) {
  using r = prm::mlcr_reg;
  prm::set<r::beacon_duration>(a.data, a.fw.port().beacon());
  prm::set<r::beacon_remain>(a.data, a.fw.port().beacon_left());
  return Syndrome::kOk;
}
Syndrome write_mlcr(Access& a) {
  a.fw.port().set_beacon(static_cast<std::uint16_t>(prm::get<prm::mlcr_reg::beacon_duration>(a.data)));
  return read_mlcr(a);
}

// The module in the cage, which is always enabled.
Syndrome read_pmaos(Access& a) {
  using r = prm::pmaos_reg;
  enum : std::uint32_t { kEnabled = 1, kPluggedEnabled = 1, kUnplugged = 2 };
  if (prm::get<r::module>(a.data) != 0) return Syndrome::kRegisterValue;
  std::memset(a.data, 0, r::bytes);
  prm::set<r::admin_status>(a.data, kEnabled);
  prm::set<r::oper_status>(a.data, a.fw.port().cable_in() ? kPluggedEnabled : kUnplugged);
  return Syndrome::kOk;
}

// There is no test mode to be in.
Syndrome read_ppaos(Access& a) {
  using r = prm::ppaos_reg;
  constexpr std::size_t selectors = r::local_port::bit_off / 8 + 1;
  std::memset(a.data + selectors, 0, r::bytes - selectors);
  prm::set<r::phy_status>(a.data, link_is_up(a)            ? prm::kRxPhyUp
                                  : a.fw.port().admin_up() ? prm::kRxPhyDown
                                                           : prm::kRxPhyDownByCommand);
  return Syndrome::kOk;
}

// Which layout the settings would have; `status` stays zero: they are not valid.
Syndrome read_sltp(Access& a) {
  using r = prm::sltp_reg;
  const std::uint32_t lane = prm::get<r::lane>(a.data);
  if (lane >= kLanes) return Syndrome::kRegisterValue;
  const std::uint32_t port = prm::get<r::local_port>(a.data);
  const Generation& g = *a.fw.options().generation;
  std::memset(a.data, 0, r::bytes);
  prm::set<r::local_port>(a.data, port);
  prm::set<r::lane>(a.data, lane);
  prm::set<r::version>(a.data, g.port_gbps >= 400    ? prm::kSltp7nm
                               : g.has.ptys_extended ? prm::kSltp16nm
                                                     : prm::kSltp28nm);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
