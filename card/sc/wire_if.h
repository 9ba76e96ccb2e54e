// SPDX-License-Identifier: BSD-3-Clause
// The cable between two network ports in a SystemC platform: each end has a port to what the far end exports.
//   a.wire_out.bind(b.wire_in);
//   b.wire_out.bind(a.wire_in);
// Whoever models a switch or an observer implements WireIf.
#ifndef HCASIM_CARD_SC_WIRE_IF_H
#define HCASIM_CARD_SC_WIRE_IF_H

#include <cstdint>
#include <systemc>
#include <vector>

namespace hcasim::sc {

struct WireFrame {
  // Ethernet: from the destination MAC to the last byte before the FCS. InfiniBand: from the LRH to the ICRC.
  std::vector<std::uint8_t> bytes;
  bool corrupt = false;  // its FCS or VCRC, which is not among the bytes, is wrong
};

class WireIf : public virtual sc_core::sc_interface {
 public:
  // A frame whose last bit arrives at sc_time_stamp() + delay. From any process, or from none.
  virtual void frame(const WireFrame& frame, const sc_core::sc_time& delay) = 0;
  // The far end takes the link up, or down.
  virtual void carrier(bool up) = 0;

  // Who is at this end: asked once, when the simulation starts.
  struct Station {
    bool known = false;    // false: no HCA, and none of the rest counts
    bool ethernet = true;  // or InfiniBand
    bool subnet_manager = false;
    std::uint64_t node_guid = 0, port_guid = 0;
    std::uint16_t lid = 0;  // that it insists on; 0: none
  };
  virtual Station station() const { return {}; }
};

}  // namespace hcasim::sc
#endif
