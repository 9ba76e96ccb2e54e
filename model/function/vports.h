// SPDX-License-Identifier: BSD-3-Clause
// For which function is a packet from the port? Over the address tables of all of them.
#ifndef HCASIM_MODEL_FUNCTION_VPORTS_H
#define HCASIM_MODEL_FUNCTION_VPORTS_H

#include <cstddef>
#include <utility>

#include "model/function/id.h"
#include "model/function/vport.h"
#include "model/packet/packet.h"
#include "model/port/local_addresses.h"

namespace hcasim {

class Vports final : public LocalAddresses {
 public:
  explicit Vports(PerFunction<Vport> vports) : vports_(std::move(vports)), numbers_(vports_.size()) {}
  Vports(PerFunction<Vport> vports, const VportNumbers& numbers)
      : vports_(std::move(vports)), numbers_(numbers) {}

  // kNoFunction: no function is at the vport of this number.
  FunctionId function_at(std::uint16_t number) const { return numbers_.function(number); }

  Vport& operator[](FunctionId f) const { return vports_[f]; }

  bool open(FunctionId f) const override { return vports_[f].open; }
  void sent(FunctionId f, bool multicast, std::uint64_t bytes, unsigned packets) override {
    if (vports_.size() != 1) count(vports_[f].traffic.tx_rdma[multicast ? 1 : 0], bytes, packets);
  }
  // A packet of the InfiniBand port is for this function.
  void received(FunctionId f, bool multicast, std::uint64_t bytes, unsigned packets) const {
    count(vports_[f].traffic.rx_rdma[multicast ? 1 : 0], bytes, packets);
  }

  // --- Ethernet
  // E-Switch: whether management lets frames pass to and from this function, which are counted if not.
  bool passes(FunctionId f, bool received) {
    Vport& v = vports_[f];
    if (!v.open) ++(received ? v.rx_down : v.tx_down);
    return v.open;
  }
  void counts_frames(FunctionId f, bool received, bool rdma, VportTraffic::Cast cast, std::uint64_t bytes,
                     unsigned frames) override {
    if (vports_.size() == 1) return;
    VportTraffic& v = vports_[f].traffic;
    count((received ? rdma ? v.rx_rdma : v.rx_eth : rdma ? v.tx_rdma : v.tx_eth)[cast], bytes, frames);
  }
  bool is_local(const Mac& mac) const override { return owner_of(mac) != kNoFunction; }
  // The first function that has this MAC, or kNoFunction. Multicast addresses are nobody's.
  FunctionId owner_of(const Mac& mac) const;
  // Whether the function takes RoCE packets to this MAC: it has RoCE enabled, and the MAC is its own or
  // multicast.
  bool takes_roce(FunctionId f, const Mac& dest) const {
    return vports_[f].roce_enabled && (multicast(dest) || vports_[f].own_mac(dest));
  }
  // The function that a frame to this unicast MAC is for: the owner of the MAC; the first function, if it is
  // nobody's.
  FunctionId receiver_of(const Mac& mac) const {
    if (vports_.size() == 1) return 0;
    const FunctionId owner = owner_of(mac);
    return owner != kNoFunction ? owner : 0;
  }
  std::size_t size() const { return vports_.size(); }

  // --- InfiniBand
  // A packet for the port's LID: the function that has the DGID of its GRH. All others, and those without a
  // GRH, are function 0's, to which the LID belongs: virtual functions share it and are distinguished by GIDs
  // alone.
  FunctionId ib_owner(const Packet& p) const;

 private:
  static void count(VportTraffic::Count& c, std::uint64_t bytes, unsigned packets) {
    c.packets += packets;
    c.octets += bytes;
  }
  static bool multicast(const Mac& mac) { return (mac[0] & 1) != 0; }

  PerFunction<Vport> vports_;
  VportNumbers numbers_;
};

}  // namespace hcasim
#endif
