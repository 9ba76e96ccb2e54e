// SPDX-License-Identifier: BSD-3-Clause
// The function's virtual port: HCA vport context, GID and P_Key tables, counters.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/vport_target.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kWholeTable = 0xffff;
enum : std::uint32_t { kSelectPortGuid = 1, kSelectNodeGuid = 2, kSelectPolicy = 4 };  // field_select
// What a driver may change of PortInfo:CapabilityMask: what software on the host provides.
constexpr std::uint32_t kSettableCaps = kCapSm | kCapSnmp | kCapVendorClass | kCapDeviceManagement | kCapCm;

// With the port's number, of which there is one. Null: `why` says why not.
template <class In>
Firmware* vport_of(Firmware& fw, const Command& cmd, Syndrome& why) {
  Firmware* of = vport_of<In>(fw, cmd);
  why = of == nullptr ? Syndrome::kFunction : Syndrome::kPortNumber;
  return of != nullptr && cmd.get<typename In::port_num>() > 1 ? nullptr : of;
}

template <class F>
void put_count(Command& cmd, const VportTraffic::Count& c) {
  cmd.put<typename F::packets>(c.packets);
  cmd.put<typename F::octets>(c.octets);
}

// "ib" are RoCE packets, "eth" all other frames.
void put_vport_traffic(Command& cmd, const VportTraffic& v) {
  using out = prm::query_vport_counter_out;
  using t = VportTraffic;
  put_count<out::received_ib_unicast>(cmd, v.rx_rdma[t::kUnicast]);
  put_count<out::transmitted_ib_unicast>(cmd, v.tx_rdma[t::kUnicast]);
  put_count<out::received_ib_multicast>(cmd, v.rx_rdma[t::kMulticast]);
  put_count<out::transmitted_ib_multicast>(cmd, v.tx_rdma[t::kMulticast]);
  put_count<out::received_eth_broadcast>(cmd, v.rx_eth[t::kBroadcast]);
  put_count<out::transmitted_eth_broadcast>(cmd, v.tx_eth[t::kBroadcast]);
  put_count<out::received_eth_unicast>(cmd, v.rx_eth[t::kUnicast]);
  put_count<out::transmitted_eth_unicast>(cmd, v.tx_eth[t::kUnicast]);
  put_count<out::received_eth_multicast>(cmd, v.rx_eth[t::kMulticast]);
  put_count<out::transmitted_eth_multicast>(cmd, v.tx_eth[t::kMulticast]);
}

// Of a card's only function.
void clear_reported(Link link, PortCounters& c) {
  c.rx_errors = c.tx_discards = c.tx_errors = 0;
  if (link == Link::kEthernet) {
    c.vport = {};
  } else {
    c.rx_packets = c.rx_bytes = c.rx_multicast = 0;
    c.tx_packets = c.tx_bytes = c.tx_multicast = 0;
  }
}

// What an index into a vport's table asks for: its row, or all of them; none, if there is no such row.
struct Rows {
  std::size_t first = 0, count = 0;
};
Rows rows_asked(std::uint32_t index, std::size_t size) {
  if (index == kWholeTable) return {0, size};
  return index < size ? Rows{index, 1} : Rows{};
}

}  // namespace

Syndrome query_hca_vport_context(Firmware& fw, Command& cmd) {
  using c = prm::query_hca_vport_context_out::hca_vport_context;
  Syndrome why;
  Firmware* of = vport_of<prm::query_hca_vport_context_in>(fw, cmd, why);
  if (of == nullptr) return why;
  const Port& port = fw.device().port();
  const PortAgent& agent = fw.port();
  const HcaVport& vport = of->hca_vport();
  const bool vf = of->options().vf;
  cmd.put<c::has_smi>(vf ? 0 : 1);
  cmd.put<c::grh_required>(vf ? 1 : 0);  // it shares the LID: its GID alone distinguishes it
  cmd.put<c::port_physical_state>(static_cast<std::uint32_t>(agent.physical_state(port.state())));
  cmd.put<c::port_state>(static_cast<std::uint32_t>(port.state()));
  cmd.put<c::vport_state>(static_cast<std::uint32_t>(vport.state(port.state())));
  // What management may choose, of others alone.
  if (vf) cmd.put<c::vport_state_policy>(static_cast<std::uint32_t>(vport.policy));
  cmd.put<c::system_image_guid>(agent.system_image_guid());
  cmd.put<c::port_guid>(vport.port_guid);
  cmd.put<c::node_guid>(vport.node_guid);
  cmd.put<c::cap_mask1>(vf ? vport.cap_mask : agent.cap_mask());
  cmd.put<c::cap_mask1_field_select>(kSettableCaps);
  cmd.put<c::cap_mask2>(agent.cap_mask2());
  cmd.put<c::lid>(port.lid());
  cmd.put<c::lmc>(port.lmc);
  if (!vf) {
    const auto saturated = [](std::uint64_t n) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, 0xffff));
    };
    cmd.put<c::pkey_violation_counter>(saturated(port.counters().pkey_violations));
    cmd.put<c::qkey_violation_counter>(saturated(port.counters().qkey_violations));
  }
  cmd.put<c::subnet_timeout>(agent.subnet_timeout());
  cmd.put<c::sm_lid>(port.sm_lid);
  cmd.put<c::sm_sl>(port.sm_sl);
  return Syndrome::kOk;
}

// A manager gives a function that it manages GUIDs, and its port a policy.
Syndrome modify_managed(Firmware& vf, const Command& cmd) {
  using c = prm::modify_hca_vport_context_in::hca_vport_context;
  const std::uint32_t select = cmd.get<c::field_select>(), policy = cmd.get<c::vport_state_policy>();
  if ((select & ~(kSelectPortGuid | kSelectNodeGuid | kSelectPolicy)) != 0) return Syndrome::kVportField;
  if ((select & kSelectPolicy) != 0 && policy > static_cast<std::uint32_t>(VportPolicy::kFollow))
    return Syndrome::kVportField;
  if (cmd.get<c::cap_mask1_field_select>() != 0 || cmd.get<c::cap_mask2_field_select>() != 0)
    return Syndrome::kVportField;
  HcaVport& vport = vf.hca_vport();
  if ((select & kSelectPortGuid) != 0) vport.port_guid = cmd.get<c::port_guid>();
  if ((select & kSelectNodeGuid) != 0) vport.node_guid = cmd.get<c::node_guid>();
  if ((select & kSelectPolicy) != 0) {
    const PortState before = vport.state(vf.device().port().state());
    vport.policy = static_cast<VportPolicy>(policy);
    vf.vport_state_changed(before);
  }
  return Syndrome::kOk;
}

Syndrome modify_hca_vport_context(Firmware& fw, Command& cmd) {
  using in = prm::modify_hca_vport_context_in;
  using c = in::hca_vport_context;
  Syndrome why;
  Firmware* of = vport_of<in>(fw, cmd, why);
  if (of == nullptr) return why;
  if (of != &fw) return modify_managed(*of, cmd);
  // GUIDs and state policy are a manager's to set, for other vports.
  if (cmd.get<c::field_select>() != 0) return Syndrome::kVportField;
  const std::uint32_t mask = cmd.get<c::cap_mask1_field_select>(), value = cmd.get<c::cap_mask1>();
  if ((mask & ~kSettableCaps) != 0 || cmd.get<c::cap_mask2_field_select>() != 0) return Syndrome::kVportField;
  if (fw.options().vf) {  // the port's own are not its to change
    HcaVport& vport = fw.hca_vport();
    vport.cap_mask = (vport.cap_mask & ~mask) | (value & mask);
    return Syndrome::kOk;
  }
  PortAgent& agent = fw.port();
  const std::uint32_t before = agent.cap_mask();
  agent.set_caps(mask, value);
  if (agent.cap_mask() != before) fw.traps().capabilities_changed();
  return Syndrome::kOk;
}

Syndrome query_hca_vport_gid(Firmware& fw, Command& cmd) {
  using in = prm::query_hca_vport_gid_in;
  using out = prm::query_hca_vport_gid_out;
  Syndrome why;
  Firmware* of = vport_of<in>(fw, cmd, why);
  if (of == nullptr) return why;
  const auto& gids = of->function().vport().gids;
  const Rows rows = rows_asked(cmd.get<in::gid_index>(), gids.size());
  if (rows.count == 0) return Syndrome::kGidIndex;
  if (!prm::fits<out::gid>(cmd.out_len, rows.count - 1)) return Syndrome::kOutputShort;
  for (std::size_t i = 0; i < rows.count; ++i)
    std::memcpy(prm::at<out::gid>(cmd.out.data(), i), gids[rows.first + i].data(), sizeof(Gid));
  cmd.put<out::gids_num>(static_cast<std::uint32_t>(rows.count));
  return Syndrome::kOk;
}

Syndrome query_hca_vport_pkey(Firmware& fw, Command& cmd) {
  using in = prm::query_hca_vport_pkey_in;
  using out = prm::query_hca_vport_pkey_out;
  Syndrome why;
  Firmware* of = vport_of<in>(fw, cmd, why);
  if (of == nullptr) return why;
  const auto& pkeys = of->function().vport().pkeys;
  const Rows rows = rows_asked(cmd.get<in::pkey_index>(), pkeys.size());
  if (rows.count == 0) return Syndrome::kPkeyIndex;
  if (!prm::fits<out::pkey>(cmd.out_len, rows.count - 1)) return Syndrome::kOutputShort;
  for (std::size_t i = 0; i < rows.count; ++i)
    prm::set<prm::pkey::pkey>(prm::at<out::pkey>(cmd.out.data(), i), pkeys[rows.first + i]);
  return Syndrome::kOk;
}

Syndrome query_vport_counter(Firmware& fw, Command& cmd) {
  using in = prm::query_vport_counter_in;
  using out = prm::query_vport_counter_out;
  Syndrome why;
  Firmware* of = vport_of<in>(fw, cmd, why);
  if (of == nullptr) return why;
  const PortCounters& c = fw.device().port().counters();
  // User contexts share them with all others: they only read.
  const bool clear = cmd.get<in::clear>() != 0 && cmd.uid == 0;
  if (fw.device().functions() != 1) {
    VportTraffic& traffic = of->function().vport().traffic;
    put_vport_traffic(cmd, traffic);
    if (clear) traffic = VportTraffic{};
    return Syndrome::kOk;
  }
  cmd.put<out::received_errors::packets>(c.rx_errors);
  cmd.put<out::transmit_errors::packets>(c.tx_discards + c.tx_errors);
  if (fw.options().link == Link::kEthernet) {
    put_vport_traffic(cmd, c.vport);
  } else {
    cmd.put<out::received_ib_unicast::packets>(c.rx_packets - c.rx_multicast);
    cmd.put<out::received_ib_unicast::octets>(c.rx_bytes);
    cmd.put<out::transmitted_ib_unicast::packets>(c.tx_packets - c.tx_multicast);
    cmd.put<out::transmitted_ib_unicast::octets>(c.tx_bytes);
    cmd.put<out::received_ib_multicast::packets>(c.rx_multicast);
    cmd.put<out::transmitted_ib_multicast::packets>(c.tx_multicast);
  }
  if (clear) clear_reported(fw.options().link, fw.device().port().counters_to_clear());
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
