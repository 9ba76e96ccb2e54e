// SPDX-License-Identifier: BSD-3-Clause
// Where a QP's packets go, as their headers: LRH, GRH and P_Key on the IB link; MACs, VLAN tag, IP addresses
// and UDP source port on the Ethernet link. From a connected QP's address path (ads of mlx5_ifc.h) or a
// datagram's address vector.
#ifndef HCASIM_MODEL_PORT_PATH_H
#define HCASIM_MODEL_PORT_PATH_H

#include <cstring>

#include "model/ctx/qp.h"
#include "model/function/vport.h"
#include "model/port/port.h"
#include "prm/wqe.h"

namespace hcasim {

constexpr std::uint16_t kRocePkey = 0xffff;  // the only one on RoCE

// RoCE v2 packets of one flow keep to one UDP source port, so that they stay in order on all ways of equal
// cost; flows differ in it (A17.5.1; range: roce_cap.r_roce_min_src_udp_port ..).
inline std::uint16_t roce_source_port(std::uint32_t qpn, std::uint32_t remote) {
  const std::uint32_t mixed = (qpn * 0x9e3779b1u) ^ (remote * 0x85ebca6bu);
  return static_cast<std::uint16_t>(0xc000 | mixed >> 18);
}

// The source of a RoCE packet. None makes the packet a frame of no bytes, which the port discards.
inline void fill_roce_source(Packet& p, const RoceAddress& a, unsigned prio) {
  p.pkey = kRocePkey;
  p.has_grh = true;
  if (!a.valid) {
    p.kind = PacketKind::kEthernet;
    p.frame_len = 0;
    return;
  }
  const bool v2 = a.version != 0;
  p.kind = v2 ? PacketKind::kRoceV2 : PacketKind::kRoceV1;
  p.ipv4 = v2 && a.ipv4;
  p.smac = a.mac;
  p.sgid = a.gid;
  p.has_vlan = a.vlan_valid;
  if (a.vlan_valid) p.vlan_tci = static_cast<std::uint16_t>(prio << 13 | (a.vlan_id & 0xfff));
}

inline void fill_path(Packet& p, const Qp& qp, const Port& port, const Vport& vport) {
  const AddressPath& path = qp.path;
  p.function = qp.function;
  p.affinity = qp.affinity;
  if (path.force_loopback) {
    p.internal = true;
    p.kind = port.link() == LinkType::kEthernet ? PacketKind::kRoceV2 : PacketKind::kIb;
    p.pkey = port.link() == LinkType::kEthernet || path.pkey_index >= vport.pkeys.size()
                 ? kRocePkey
                 : vport.pkeys[path.pkey_index];
    return;
  }
  if (port.link() == LinkType::kEthernet) {
    fill_roce_source(p, path.source, path.eth_prio & 7u);
    p.dmac = path.rmac;
    p.dgid = path.rgid;
    p.hop_limit = path.hop_limit;
    p.flow_label = path.flow_label;
    p.tclass = path.tclass;
    if (p.kind == PacketKind::kRoceV2) {
      p.tclass = static_cast<std::uint8_t>(path.dscp << 2 | (path.tclass & 3));
      p.udp_sport = path.udp_sport ? path.udp_sport : roce_source_port(qp.qpn, qp.remote_qpn);
    }
    return;
  }
  p.slid = static_cast<std::uint16_t>(port.lid() | path.mlid);
  p.dlid = path.rlid;
  p.sl = path.sl;
  p.vl = port.lanes.of(path.sl);
  if (path.grh) {
    p.has_grh = true;
    p.tclass = path.tclass;
    p.hop_limit = path.hop_limit;
    p.flow_label = path.flow_label;
    p.dgid = path.rgid;
    if (path.sgid_index < vport.gids.size()) p.sgid = vport.gids[path.sgid_index];
  }
  if (path.pkey_index < vport.pkeys.size()) p.pkey = vport.pkeys[path.pkey_index];
}

// A datagram's: everything but the P_Key comes from the WQE.
inline void fill_av(Packet& p, const prm::AvSeg& av, const Qp& qp, const Port& port, const Vport& vport) {
  const bool ethernet = port.link() == LinkType::kEthernet;
  p.function = qp.function;
  p.affinity = qp.affinity;
  if (ethernet) {
    if (!av.extended()) {  // no MAC, no address
      p.kind = PacketKind::kEthernet;
      p.frame_len = 0;
      return;
    }
    fill_roce_source(p, vport.roce_address(av.sgid_index()), av.roce_prio());
    std::copy(av.rmac, av.rmac + p.dmac.size(), p.dmac.begin());
    if (p.kind == PacketKind::kRoceV2) {
      const std::uint16_t sport = av.rlid;
      p.udp_sport = sport ? sport : roce_source_port(qp.qpn, av.dqpn());
    }
  } else {
    p.slid = static_cast<std::uint16_t>(port.lid() | (av.fl_mlid & 0x7f));
    p.dlid = av.rlid;
    p.sl = static_cast<std::uint8_t>(av.sl());
    p.vl = port.lanes.of(p.sl);
    p.has_grh = av.extended() && av.has_grh();
    if (qp.type == QpType::kQp0) {  // SMPs: IBTA 13.5.1, 14.2.2; P_Key the default one, no GRH
      p.vl15 = true;
      p.has_grh = false;
      if (p.dlid == kPermissiveLid) p.slid = kPermissiveLid;
    } else if (qp.path.pkey_index < vport.pkeys.size()) {
      p.pkey = vport.pkeys[qp.path.pkey_index];
    }
  }
  if (!p.has_grh) return;
  p.tclass = av.tclass;
  p.hop_limit = av.hop_limit;
  p.flow_label = av.flow_label();
  std::memcpy(p.dgid.data(), av.rgid, p.dgid.size());
  if (!ethernet && av.sgid_index() < vport.gids.size()) p.sgid = vport.gids[av.sgid_index()];
}

}  // namespace hcasim
#endif
