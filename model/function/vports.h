// SPDX-License-Identifier: BSD-3-Clause
// For which function is a packet from the port? Over the address tables of all of them.
#ifndef HCASIM_MODEL_FUNCTION_VPORTS_H
#define HCASIM_MODEL_FUNCTION_VPORTS_H

#include <utility>

#include "model/function/id.h"
#include "model/function/vport.h"
#include "model/packet/packet.h"
#include "model/port/local_addresses.h"

namespace hcasim {

class Vports final : public LocalAddresses {
 public:
  explicit Vports(PerFunction<Vport> vports) : vports_(std::move(vports)) {}

  Vport& operator[](FunctionId f) const { return vports_[f]; }

  // --- Ethernet
  bool is_local(const Mac& mac) const override { return owner_of(mac) != kNoFunction; }
  // The first function that has this MAC, or kNoFunction. Multicast addresses are nobody's.
  FunctionId owner_of(const Mac& mac) const;
  // Whether the function takes RoCE packets to this MAC: it has RoCE enabled, and the MAC is its own or
  // multicast.
  bool takes_roce(FunctionId f, const Mac& dest) const {
    return vports_[f].roce_enabled && (multicast(dest) || vports_[f].own_mac(dest));
  }
  // The first that does, from this one on, or kNoFunction.
  FunctionId next_taking_roce(const Mac& dest, FunctionId from = 0) const;
  // The one of those which has this GID (v2: RoCE v2), or kNoFunction. The same GID may be in the tables of
  // several functions which have different MACs. first: the first that takes packets to `dest`.
  FunctionId roce_owner(const Mac& dest, const Gid& dgid, bool v2, FunctionId first) const;

  // Of a packet to a multicast group: whether the function's QPs are to see it.
  bool takes_multicast(FunctionId f, const Packet& p) const {
    return p.kind == PacketKind::kIb || vports_[f].roce_enabled;
  }

  // --- InfiniBand
  // A packet for the port's LID: the function that has the DGID of its GRH. All others, and those without a
  // GRH, are function 0's, to which the LID belongs: virtual functions share it and are told apart by GIDs
  // alone.
  FunctionId ib_owner(const Packet& p) const;

 private:
  static bool multicast(const Mac& mac) { return (mac[0] & 1) != 0; }

  PerFunction<Vport> vports_;
};

}  // namespace hcasim
#endif
