// SPDX-License-Identifier: BSD-3-Clause
#include "model/rx/classifier.h"

#include <algorithm>

#include "model/port/codec.h"
#include "model/port/path.h"
#include "model/port/traits.h"
#include "model/steer/steer.h"

namespace hcasim {

namespace {

bool same_partition(std::uint16_t a, std::uint16_t b) {
  return (a & kPkeyBase) == (b & kPkeyBase) && ((a | b) & kFullMember) != 0;
}

LinkVerdict link_drop(DropReason reason, bool decoded = false) {
  return {LinkVerdict::To::kDrop, reason, decoded};
}

TransportVerdict drop(FunctionId f, DropReason reason) {
  TransportVerdict v;
  v.reason = reason;
  v.function = f;
  return v;
}

}  // namespace

FunctionId Classifier::owner_of_several(const Packet& p, bool from_ethernet) const {
  if (p.internal) return p.function;
  if (!from_ethernet) return blocks_.vports.ib_owner(p);
  const std::uint8_t* to = p.dest_mac();
  Mac dest;
  std::copy(to, to + dest.size(), dest.begin());
  return blocks_.vports.receiver_of(dest);
}

LinkVerdict Classifier::link(FunctionId f, Packet& p) const {
  const std::uint8_t* to = p.dest_mac();
  Mac dest;
  std::copy(to, to + dest.size(), dest.begin());
  LinkVerdict v;
  if (!blocks_.vports.takes_roce(f, dest)) return {LinkVerdict::To::kFrames, {}, false};
  if (p.kind == PacketKind::kEthernet) {
    switch (decode_roce(p)) {
      case Decoded::kOk:
        v.decoded = true;
        break;
      case Decoded::kNotRoce:
        v.to = LinkVerdict::To::kFrames;
        return v;
      case Decoded::kMalformed:
        return link_drop(DropReason::kMalformed);
      case Decoded::kBadCrc:
        return link_drop(DropReason::kIcrc);
    }
  }
  if (p.dest_qpn != kMulticastQpn && !blocks_.vports[f].own_gid(p.dgid, p.kind == PacketKind::kRoceV2))
    return link_drop(DropReason::kNoAddress, v.decoded);
  return v;
}

// IBTA 10.9.3 (RoCE has the default partition alone: A16.4.3): QP0 takes any P_Key, QP1 any of its
// function's table, others their own.
inline bool Classifier::pkey_matches(const Qp& qp, const Packet& p) const {
  if (p.kind != PacketKind::kIb) return same_partition(p.pkey, kRocePkey);
  const Vport& vport = blocks_.vports[qp.function];
  if (qp.type == QpType::kQp1) return vport.pkey_valid(p.pkey);
  if (qp.type == QpType::kQp0) return true;
  const std::size_t index = qp.path.pkey_index;
  return index < vport.pkeys.size() && same_partition(p.pkey, vport.pkeys[index]);
}

// As for_qp(); request: of the packet's opcode. In line, as there is one for each packet.
[[gnu::always_inline]] inline TransportVerdict Classifier::verdict(Qp& qp, const Packet& p,
                                                                   bool request) const {
  if ((p.opcode & prm::bth::kTransportMask) != transport_bits(qp.type))
    return drop(qp.function, DropReason::kNoQp);
  if (!receives(qp.state)) return drop(qp.function, DropReason::kQpState);
  if (!pkey_matches(qp, p)) return drop(qp.function, DropReason::kPkey);
  if (is_dc(qp.type) && request != (qp.type == QpType::kDct)) return drop(qp.function, DropReason::kOpcode);
  TransportVerdict v;
  v.function = qp.function;
  v.qp = &qp;
  v.to = qp.type == QpType::kDct ? TransportVerdict::To::kDcTarget
         : request               ? TransportVerdict::To::kRequest
                                 : TransportVerdict::To::kAnswer;
  return v;
}

TransportVerdict Classifier::transport(FunctionId f, const Packet& p) const {
  TransportVerdict v;
  v.function = f;
  const prm::BthTraits& traits = traits_of(p.opcode);
  if (!traits.valid && !traits.unsupported) return drop(f, DropReason::kOpcode);
  if (p.opcode == prm::bth::kCnp && p.kind == PacketKind::kRoceV2) {
    v.to = TransportVerdict::To::kCnp;
    return v;
  }
  if (p.kind == PacketKind::kIb && (p.dest_qpn == 0) != p.vl15)  // QP0's, and nobody else's, come on VL15
    return drop(f, DropReason::kMalformed);
  if (p.dest_qpn == kMulticastQpn) {
    if (!p.has_grh || !traits.deth || !blocks_.steering[f].multicast(p.dgid))
      return drop(f, DropReason::kNoGroup);
    v.to = TransportVerdict::To::kMulticast;
    return v;
  }
  // IBTA 9.6.1.2: a GRH names its destination. Management's may have an address that everybody has.
  if (p.kind == PacketKind::kIb && p.has_grh && p.dest_qpn > 1 && !blocks_.vports[f].takes_gid(p.dgid))
    return drop(f, DropReason::kNoAddress);
  Qp* qp = blocks_.steering[f].unicast(p.dest_qpn);
  v = qp ? verdict(*qp, p, traits.request) : drop(f, DropReason::kNoQp);
  v.management = p.dest_qpn <= 1;
  return v;
}

TransportVerdict Classifier::for_qp(Qp& qp, const Packet& p) const {
  return verdict(qp, p, traits_of(p.opcode).request);
}

}  // namespace hcasim
