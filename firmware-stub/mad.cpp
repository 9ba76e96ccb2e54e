// SPDX-License-Identifier: BSD-3-Clause
// The agents on the card, behind MAD_IFC and the port - subnet management (SMA) and performance management
// (PMA).
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/ib_link.h"
#include "firmware-stub/mad_agent.h"
#include "firmware-stub/mad_formats.h"
#include "prm/eqe.h"

namespace hcasim::fw {

namespace {

constexpr unsigned kPkeysPerBlock = 32, kGuidsPerBlock = 8;
constexpr std::uint32_t kIgnoreKey = 1;              // MAD_IFC, op_mod
constexpr std::uint32_t kExtendedSpeeds = 1u << 31;  // PortInfo, attribute modifier

// PTYS encodings to those of PortInfo, bit by bit.
std::uint8_t width_codes(unsigned ptys) {
  return static_cast<std::uint8_t>(((ptys & kIb1x) != 0 ? 1 : 0) | ((ptys & kIb4x) != 0 ? 2 : 0) |
                                   ((ptys & kIb8x) != 0 ? 4 : 0) | ((ptys & kIb12x) != 0 ? 8 : 0) |
                                   ((ptys & kIb2x) != 0 ? 16 : 0));
}
std::uint8_t base_speeds(unsigned ptys) { return ptys & 7; }
std::uint8_t ext_speeds(unsigned ptys) { return static_cast<std::uint8_t>(ptys >> 4); }

// PortInfo: VLCap, OperationalVLs; 1: VL0, 2: VL0-1, 3: VL0-3, 4: VL0-7, 5: VL0-14.
constexpr std::uint8_t lanes_code(unsigned lanes) {
  std::uint8_t code = 1;
  for (unsigned n = 1; n < lanes && code < 5; n *= 2) ++code;
  return code;
}

template <class T>
void store(std::uint8_t* p, const T& v) {
  std::memcpy(p, &v, sizeof v);
}

struct Mad {
  Firmware& fw;
  std::uint64_t key;  // M_Key of an SMP
  bool set;           // method Set
  std::uint32_t modifier;
  std::uint8_t* data;  // attribute data: the request's, to become the answer's
};

void node_description(Mad& m) {
  std::memset(m.data, 0, 64);
  const std::string& text = m.fw.node_description();
  std::memcpy(m.data, text.data(), std::min<std::size_t>(text.size(), 64));
}

void node_info(Mad& m) {
  NodeInfo i{};
  i.base_version = i.class_version = 1;
  i.node_type = NodeInfo::kChannelAdapter;
  i.num_ports = 1;
  i.system_image_guid = m.fw.port().system_image_guid();
  const bool vf = m.fw.options().vf;
  i.node_guid = vf ? m.fw.hca_vport().node_guid : m.fw.port().node_guid();
  i.port_guid = vf ? m.fw.hca_vport().port_guid : m.fw.port().port_guid();
  i.partition_cap = static_cast<std::uint16_t>(m.fw.function().vport().pkeys.size());
  i.device_id = m.fw.options().device_id;
  i.local_port = 1;
  i.vendor_id[1] = 0x02;
  i.vendor_id[2] = 0xc9;
  store(m.data, i);
}

template <class T>
T capped(std::uint64_t v) {
  return static_cast<T>(std::min<std::uint64_t>(v, static_cast<T>(~T{0})));
}

// What the port does and could do, as PortInfo has it.
struct LinkWords {
  std::uint8_t width, speed, ext_speed;
};
IbLink ib_link_of(Firmware& fw) { return {fw.device().profile().port, *fw.options().generation}; }
LinkWords supported(const IbLink& link) {
  return {width_codes(link.widths), base_speeds(link.speeds), ext_speeds(link.speeds)};
}
// Of an extended speed the plain one is the fastest that there is.
LinkWords active(const IbLink& link) {
  constexpr std::uint8_t kQdr = 4;
  const std::uint8_t speed = base_speeds(link.speed);
  return {width_codes(link.width), speed != 0 ? speed : kQdr, ext_speeds(link.speed)};
}

// Enabled widths or speeds that are asked for; 0: no change. False: not all of them are supported.
bool enable(std::uint8_t& enabled, std::uint8_t asked, std::uint8_t supported, std::uint8_t all) {
  if (asked == 0) return true;
  if (asked == all) asked = 0;
  if ((asked & ~supported) != 0) return false;
  enabled = asked;
  return true;
}

bool read_link_settings(Firmware& fw, const PortInfo& i, PortAgent::LinkSettings& to) {
  enum : std::uint8_t { kAllWidths = 0xff, kAllSpeeds = 0xf, kNoExtended = 30, kAllExtended = 31 };
  const LinkWords can = supported(ib_link_of(fw));
  const std::uint8_t ext = i.ext_speed_enabled & 0x1f;
  const auto down_default = static_cast<std::uint8_t>(i.physical_state_default & 0xf);
  if (down_default > static_cast<std::uint8_t>(PhysicalState::kPolling)) return false;
  if (down_default != 0) to.down_default = down_default;
  to.error_thresholds = i.error_thresholds;
  if (ext == kNoExtended)
    to.ext_speed_enabled = ext;
  else if (!enable(to.ext_speed_enabled, ext, can.ext_speed, kAllExtended))
    return false;
  return enable(to.width_enabled, i.width_enabled, can.width, kAllWidths) &&
         enable(to.speed_enabled, i.speed_active_enabled & 0xf, can.speed, kAllSpeeds);
}

std::uint16_t set_port_info(Mad& m, const PortInfo& i) {
  PortAgent& agent = m.fw.port();
  const std::uint16_t lid = i.lid;
  if (lid == 0 || lid >= 0xc000) return kMadBadField;   // unicast LIDs only
  const unsigned operational = i.operational_vls >> 4;  // 0: no change
  if (operational > lanes_code(VirtualLanes::kLanes)) return kMadBadField;
  const auto state = static_cast<std::uint8_t>(i.speed_supported_state & 0xf);
  if (state > static_cast<std::uint8_t>(PortState::kActive)) return kMadBadField;
  // 0: no change; with the link it is not asked for more than that this goes down.
  const auto physical = static_cast<std::uint8_t>(i.physical_state_default >> 4);
  if (physical > static_cast<std::uint8_t>(PhysicalState::kDisabled)) return kMadBadField;
  if (physical != 0 && state > static_cast<std::uint8_t>(PortState::kDown)) return kMadBadField;
  PortAgent::LinkSettings settings = agent.link_settings();
  if (!read_link_settings(m.fw, i, settings)) return kMadBadField;
  // 0: no change
  const unsigned mtu = i.neighbor_mtu_sm_sl >> 4;
  if (mtu > mtu_code(m.fw.device().profile().port.max_mtu)) return kMadBadField;
  agent.management_key().set(i.m_key, i.m_key_protect_lmc >> 6, i.m_key_lease);
  if (i.m_key_violations == 0) agent.management_key().clear_violations();
  PortCounters& counters = m.fw.device().port().counters_to_clear();
  if (i.p_key_violations == 0) counters.pkey_violations = 0;
  if (i.q_key_violations == 0) counters.qkey_violations = 0;
  agent.set_subnet_prefix(i.gid_prefix);
  if (mtu != 0) agent.set_mtu(static_cast<std::uint16_t>(mtu_of_code(mtu)));
  agent.set_lid(lid, i.m_key_protect_lmc & 7, i.master_sm_lid, i.neighbor_mtu_sm_sl & 0xf);
  agent.set_subnet_timeout(i.rereg_subnet_timeout);
  VirtualLanes lanes = m.fw.device().port().lanes;
  if (operational != 0) lanes.operational = static_cast<std::uint8_t>(1u << (operational - 1));
  lanes.high_limit = i.vl_high_limit;
  agent.set_lanes(lanes);
  agent.link_settings() = settings;
  // 0: no change
  if (physical != 0)
    agent.set_physical_state(static_cast<PhysicalState>(physical));
  else if (state != 0 && !agent.set_state(static_cast<PortState>(state)))
    return kMadBadField;
  if ((i.rereg_subnet_timeout & 0x80) != 0) agent.client_reregister();
  return kMadOk;
}

std::uint16_t port_info(Mad& m) {
  // Port 1; 0 means the port that got the MAD. The highest bit says that the manager knows extended speeds.
  if ((m.modifier & ~kExtendedSpeeds) > 1) return kMadBadField;
  if (m.set) {
    const std::uint16_t status = set_port_info(m, load<PortInfo>(m.data));
    if (status != kMadOk) return status;
  }
  PortAgent& agent = m.fw.port();
  const ManagementKey& guard = agent.management_key();
  const Port& port = m.fw.device().port();
  const Profile::Port& profile = m.fw.device().profile().port;
  const IbLink link = ib_link_of(m.fw);
  const LinkWords can = supported(link), now = active(link);
  const PortAgent::LinkSettings& settings = agent.link_settings();
  const auto enabled = [](std::uint8_t set, std::uint8_t supported) { return set != 0 ? set : supported; };
  const PortState state = m.fw.hca_vport().state(port.state());
  const bool up = state != PortState::kDown;
  PortInfo i{};
  // Who has set it, with the key before or none, knows it.
  if (!m.fw.options().vf) i.m_key = m.set ? guard.key() : guard.shown(sim_now(), m.key);
  i.m_key_lease = guard.lease();
  i.m_key_violations = guard.violations();
  if (!m.fw.options().vf) {
    i.p_key_violations = capped<std::uint16_t>(port.counters().pkey_violations);
    i.q_key_violations = capped<std::uint16_t>(port.counters().qkey_violations);
  }
  i.gid_prefix = agent.subnet_prefix();
  i.lid = port.lid();
  i.master_sm_lid = port.sm_lid;
  i.capability_mask = agent.cap_mask();
  i.local_port = 1;
  i.width_supported = can.width;
  i.width_enabled = enabled(settings.width_enabled, can.width);
  i.width_active = up ? now.width : 0;
  i.speed_supported_state = static_cast<std::uint8_t>(can.speed << 4 | static_cast<unsigned>(state));
  i.physical_state_default = static_cast<std::uint8_t>(
      static_cast<unsigned>(agent.physical_state(state)) << 4 |
      enabled(settings.down_default, static_cast<std::uint8_t>(PhysicalState::kPolling)));
  i.m_key_protect_lmc = static_cast<std::uint8_t>(guard.protection(sim_now()) << 6 | (port.lmc & 7));
  i.speed_active_enabled =
      static_cast<std::uint8_t>((up ? now.speed : 0) << 4 | enabled(settings.speed_enabled, can.speed));
  i.neighbor_mtu_sm_sl = static_cast<std::uint8_t>(mtu_code(agent.mtu()) << 4 | (port.sm_sl & 0xf));
  i.vl_cap_init_type = lanes_code(VirtualLanes::kLanes) << 4;
  i.vl_high_limit = port.lanes.high_limit;
  i.vl_arb_high_cap = i.vl_arb_low_cap = VirtualLanes::kEntries;
  i.init_reply_mtu_cap = mtu_code(profile.max_mtu);
  i.operational_vls = static_cast<std::uint8_t>(lanes_code(port.lanes.operational) << 4);
  i.guid_cap = 1;  // no other entry of the table is ever used
  i.rereg_subnet_timeout = agent.subnet_timeout();
  i.resp_time = 16;
  i.error_thresholds = settings.error_thresholds;
  i.capability_mask2 = agent.cap_mask2();
  i.ext_speed_active_supported = static_cast<std::uint8_t>((up ? now.ext_speed : 0) << 4 | can.ext_speed);
  i.ext_speed_enabled = enabled(settings.ext_speed_enabled, can.ext_speed);
  store(m.data, i);
  return kMadOk;
}

std::uint16_t pkey_table(Mad& m) {
  auto& pkeys = m.fw.function().vport().pkeys;
  const std::size_t first = std::size_t{m.modifier & 0xffff} * kPkeysPerBlock;
  if (first + kPkeysPerBlock > pkeys.size()) return kMadBadField;
  for (unsigned i = 0; i < kPkeysPerBlock; ++i) {
    if (m.set) pkeys[first + i] = load<be16>(m.data + 2 * i);
    store(m.data + 2 * i, be16(pkeys[first + i]));
  }
  if (!m.set) return kMadOk;
  // The port's: its functions have them in common.
  Device& device = m.fw.device();
  for (FunctionId f = 0; f < device.functions(); ++f)
    if (Vport& vport = device.function(f).vport(); vport.guid != 0) vport.pkeys = pkeys;
  device.port_changed(prm::kPortPkey);
  return kMadOk;
}

// Four bits for each service level. A channel adapter has one table, whatever ports the modifier names.
std::uint16_t sl_to_vl(Mad& m) {
  VirtualLanes lanes = m.fw.device().port().lanes;
  for (unsigned sl = 0; sl < VirtualLanes::kServiceLevels; ++sl) {
    std::uint8_t& lane = lanes.of_level[sl];
    std::uint8_t& byte = m.data[sl / 2];
    const unsigned shift = sl % 2 == 0 ? 4 : 0;
    if (m.set) {
      lane = byte >> shift & 0xf;
      if (lane >= VirtualLanes::kLanes && lane != VirtualLanes::kNone) return kMadBadField;
    } else {
      byte = static_cast<std::uint8_t>((byte & ~(0xfu << shift)) | static_cast<unsigned>(lane) << shift);
    }
  }
  if (m.set) m.fw.port().set_lanes(lanes);
  return kMadOk;
}

// Blocks of 32 entries: 1 and 2 of the table of low priority, 3 and 4 of the other.
std::uint16_t vl_arbitration(Mad& m) {
  enum : std::uint32_t { kLow = 1, kHigh = 3 };
  constexpr std::size_t kBytes = 64;
  const std::uint32_t block = m.modifier >> 16;
  if (block != kLow && block != kHigh) return kMadBadField;
  VirtualLanes lanes = m.fw.device().port().lanes;
  VirtualLanes::Table& table = block == kLow ? lanes.low : lanes.high;
  if (!m.set) std::memset(m.data, 0, kBytes);
  std::uint8_t* p = m.data;
  for (VirtualLanes::Entry& e : table) {
    if (m.set) {
      e = {static_cast<std::uint8_t>(p[0] & 0xf), p[1]};
      if (e.lane >= VirtualLanes::kLanes && e.weight != 0) return kMadBadField;
    } else {
      p[0] = e.lane;
      p[1] = e.weight;
    }
    p += 2;
  }
  if (m.set) m.fw.port().set_lanes(lanes);
  return kMadOk;
}

// Nothing of it is to be written: the first entry is read-only, and there is no other (PortInfo:GUIDCap).
std::uint16_t guid_info(Mad& m) {
  const auto& gids = m.fw.function().vport().gids;
  const std::size_t first = std::size_t{m.modifier} * kGuidsPerBlock;
  if (first >= gids.size()) return kMadBadField;
  for (unsigned i = 0; i < kGuidsPerBlock; ++i) {
    const bool there = first + i < gids.size();
    if (there)
      std::memcpy(m.data + 8 * i, gids[first + i].data() + 8, 8);
    else
      std::memset(m.data + 8 * i, 0, 8);
  }
  return kMadOk;
}

// The vendor's: FDR10, which the port neither does nor may be told to.
std::uint16_t mlnx_ext_port_info(Mad& m) {
  enum : std::size_t { kStateChangeEnable = 3, kSpeedEnabled = 11, kBytes = 64 };
  if (m.modifier > 1) return kMadBadField;
  if (m.set && m.data[kStateChangeEnable] != 0 && m.data[kSpeedEnabled] != 0) return kMadBadField;
  std::memset(m.data, 0, kBytes);
  return kMadOk;
}

std::uint16_t subnet(Mad& m, std::uint16_t attribute) {
  switch (attribute) {
    case kAttrNodeDescription:
      if (m.set) return kMadBadAttribute;
      node_description(m);
      return kMadOk;
    case kAttrNodeInfo:
      if (m.set) return kMadBadAttribute;
      node_info(m);
      return kMadOk;
    case kAttrPortInfo:
      return port_info(m);
    case kAttrPkeyTable:
      return pkey_table(m);
    case kAttrSlToVl:
      return sl_to_vl(m);
    case kAttrVlArbitration:
      return vl_arbitration(m);
    case kAttrGuidInfo:
      return guid_info(m);
    case kAttrMlnxExtPortInfo:
      return mlnx_ext_port_info(m);
    default:
      return kMadBadAttribute;
  }
}

// The port's counters as a function has them: a virtual one knows what itself has sent and received.
PortCounters counters_of(Firmware& fw) {
  if (!fw.options().vf) return fw.device().port().counters();
  const VportTraffic& t = fw.function().vport().traffic;
  PortCounters c;
  for (unsigned cast = 0; cast < VportTraffic::kCasts; ++cast) {
    c.tx_packets += t.tx_rdma[cast].packets;
    c.tx_bytes += t.tx_rdma[cast].octets;
    c.rx_packets += t.rx_rdma[cast].packets;
    c.rx_bytes += t.rx_rdma[cast].octets;
  }
  c.tx_multicast = t.tx_rdma[VportTraffic::kMulticast].packets;
  c.rx_multicast = t.rx_rdma[VportTraffic::kMulticast].packets;
  return c;
}

// A Set takes back those counters that are selected (IBTA 16.1.3.5, 16.1.4.11). All packets are unicast or
// multicast ones: their number falls with that of either kind.
void clear_selected(Firmware& fw, const PortCountersMad& asked) {
  using Select = PortCountersMad;
  const std::uint16_t select = asked.counter_select;
  Port& port = fw.device().port();
  PortCounters& c = port.counters_to_clear();
  if ((select & Select::kSymbolErrors) != 0) c.symbol_errors = 0;
  if ((select & Select::kLinkDowned) != 0) fw.port().clear_link_downed();
  if ((select & Select::kRcvErrors) != 0) c.rx_errors = 0;
  if ((select & Select::kXmitDiscards) != 0) c.tx_discards = 0;
  if ((select & Select::kXmitData) != 0) c.tx_bytes = 0;
  if ((select & Select::kRcvData) != 0) c.rx_bytes = 0;
  if ((select & Select::kXmitPackets) != 0) c.tx_packets = c.tx_multicast = 0;
  if ((select & Select::kRcvPackets) != 0) c.rx_packets = c.rx_multicast = 0;
  if ((asked.counter_select2 & Select::kXmitWait) != 0) port.clear_xmit_wait();
}

void clear_selected(PortCounters& c, const PortCountersExtMad& asked) {
  using Select = PortCountersExtMad;
  const std::uint16_t select = asked.counter_select;
  const auto packets = [select](std::uint64_t& all, std::uint64_t& multicast, unsigned of_all,
                                unsigned of_unicast, unsigned of_multicast) {
    if ((select & (of_all | of_unicast)) != 0) all = multicast;
    if ((select & (of_all | of_multicast)) == 0) return;
    all -= multicast;
    multicast = 0;
  };
  if ((select & Select::kXmitData) != 0) c.tx_bytes = 0;
  if ((select & Select::kRcvData) != 0) c.rx_bytes = 0;
  packets(c.tx_packets, c.tx_multicast, Select::kXmitPackets, Select::kUnicastXmit, Select::kMulticastXmit);
  packets(c.rx_packets, c.rx_multicast, Select::kRcvPackets, Select::kUnicastRcv, Select::kMulticastRcv);
}

std::uint16_t performance(Mad& m, std::uint16_t attribute) {
  switch (attribute) {
    case kAttrClassPortInfo: {
      if (m.set) return kMadBadAttribute;
      ClassPortInfo i{};
      i.base_version = i.class_version = 1;
      i.capability_mask = ClassPortInfo::kExtendedCounters;
      if (!m.fw.options().vf) i.capability_mask = ClassPortInfo::kExtendedCounters | ClassPortInfo::kXmitWait;
      i.resp_time = 18;
      store(m.data, i);
      return kMadOk;
    }
    case kAttrPortCounters: {
      const auto asked = load<PortCountersMad>(m.data);
      if (asked.port_select > 1 && asked.port_select != 0xff) return kMadBadField;
      if (m.set) clear_selected(m.fw, asked);
      const PortCounters c = counters_of(m.fw);
      PortCountersMad i{};
      i.port_select = asked.port_select;
      i.counter_select = asked.counter_select;
      i.counter_select2 = asked.counter_select2;
      i.link_downed = m.fw.options().vf ? 0 : capped<std::uint8_t>(m.fw.port().link_downed());
      i.symbol_errors = capped<std::uint16_t>(c.symbol_errors);
      i.rcv_errors = capped<std::uint16_t>(c.rx_errors);
      i.xmit_discards = capped<std::uint16_t>(c.tx_discards);
      i.xmit_data = capped<std::uint32_t>(c.tx_bytes / 4);
      i.rcv_data = capped<std::uint32_t>(c.rx_bytes / 4);
      i.xmit_packets = capped<std::uint32_t>(c.tx_packets);
      i.rcv_packets = capped<std::uint32_t>(c.rx_packets);
      i.xmit_wait = m.fw.options().vf ? 0 : capped<std::uint32_t>(m.fw.device().port().xmit_wait());
      store(m.data, i);
      return kMadOk;
    }
    case kAttrPortCountersExt: {
      const auto asked = load<PortCountersExtMad>(m.data);
      if (asked.port_select > 1 && asked.port_select != 0xff) return kMadBadField;
      if (m.set) clear_selected(m.fw.device().port().counters_to_clear(), asked);
      const PortCounters c = counters_of(m.fw);
      PortCountersExtMad i{};
      i.port_select = asked.port_select;
      i.counter_select = asked.counter_select;
      i.xmit_data = c.tx_bytes / 4;
      i.rcv_data = c.rx_bytes / 4;
      i.xmit_packets = c.tx_packets;
      i.rcv_packets = c.rx_packets;
      i.unicast_xmit = c.tx_packets - c.tx_multicast;
      i.unicast_rcv = c.rx_packets - c.rx_multicast;
      i.multicast_xmit = c.tx_multicast;
      i.multicast_rcv = c.rx_multicast;
      store(m.data, i);
      return kMadOk;
    }
    default:
      return kMadBadAttribute;
  }
}

}  // namespace

Answered answer_mad(Firmware& fw, std::uint8_t* mad, const Sender& sender) {
  auto header = load<MadHeader>(mad);
  std::uint16_t status = kMadOk;
  const std::uint64_t key = load<be64>(mad + kMadKey);
  Mad m{fw, key, header.method == kMethodSet, header.attr_mod, mad + kMadData};
  const bool method_ok = header.method == kMethodGet || header.method == kMethodSet;
  const bool subnet_class = header.mgmt_class == kClassSubnLid || header.mgmt_class == kClassSubnDirected;
  // A manager represses what it was told of a wrong key without knowing the right one.
  if (subnet_class && header.method != kMethodTrapRepress && !sender.trusted && !fw.options().vf &&
      !fw.port().management_key().admits(sim_now(), key, header.method == kMethodGet)) {
    fw.traps().wrong_key(mad, sender.lid);
    return Answered::kRefused;
  }
  if (header.method == kMethodTrapRepress && subnet_class) {
    if (!fw.options().vf) fw.traps().repress(header.tid);
    return Answered::kSilently;
  }
  if ((!subnet_class && header.mgmt_class != kClassPerf) || header.class_version != 1) {
    status = kMadBadClass;
  } else if (!method_ok || (m.set && fw.options().vf)) {  // the port is its manager's to change
    status = kMadBadMethod;
  } else {
    status = subnet_class ? subnet(m, header.attr_id) : performance(m, header.attr_id);
  }
  header.method = kMethodGetResp;
  header.status = status;
  store(mad, header);
  return Answered::kYes;
}

Syndrome mad_ifc(Firmware& fw, Command& cmd) {
  using in = prm::mad_ifc_in;
  using out = prm::mad_ifc_out;
  static_assert(in::mad::count == kMadBytes && out::response_mad_packet::count == kMadBytes);
  if ((cmd.op_mod & ~3u) != 0) return Syndrome::kOpMod;  // bit 0 ignore M_Key, bit 1 ignore B_Key
  if (cmd.get<in::port>() > 1) return Syndrome::kPortNumber;
  std::uint8_t* mad = cmd.out.data() + out::response_mad_packet::bit_off / 8;
  std::memcpy(mad, cmd.in.data() + in::mad::bit_off / 8, kMadBytes);
  if (load<MadHeader>(mad).base_version != 1) return Syndrome::kMadFormat;
  const Sender sender{static_cast<std::uint16_t>(cmd.get<in::remote_lid>()), (cmd.op_mod & kIgnoreKey) != 0};
  return answer_mad(fw, mad, sender) == Answered::kRefused ? Syndrome::kMadKey : Syndrome::kOk;
}

}  // namespace hcasim::fw
