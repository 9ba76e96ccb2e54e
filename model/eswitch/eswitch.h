// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch of an Ethernet card: between its functions, each at a vport, and the port, its uplink. A frame
// passes the ingress ACL of the vport that it comes from, the forwarding database (FDB), and the egress ACL
// of each vport that it goes to; all of these are flow tables of the function that manages the switch. Their
// default on a miss: from a vport out of the uplink, from the uplink to the manager. RoCE packets go through
// it like other frames, by their headers. The switches at the two ports of a card know each other: entries of
// one may lead to a vport of the other, whose egress ACL the frame then passes.
#ifndef HCASIM_MODEL_ESWITCH_ESWITCH_H
#define HCASIM_MODEL_ESWITCH_ESWITCH_H

#include <cstdint>

#include "model/function/id.h"
#include "model/function/vports.h"
#include "model/packet/packet.h"
#include "model/port/embedded_switch.h"
#include "model/steer/actions.h"
#include "model/time.h"

namespace hcasim {

class FlowSteering;

// The number of the port's vport; those of functions: VportNumbers.
constexpr std::uint16_t kUplinkVport = kUplinkPort;

class ESwitch final : public EmbeddedSwitch {
 public:
  struct Blocks {
    Vports& vports;
    FlowSteering& flows;  // of the manager, function 0
  };
  explicit ESwitch(const Blocks& blocks) : blocks_(blocks) {}

  // Makes those of a card's two ports known to each other, before time starts.
  static void join(ESwitch& a, ESwitch& b) {
    a.other_ = &b;
    b.other_ = &a;
  }
  const ESwitch* other() const { return other_; }
  // Its manager's number (vhca_id), by which entries name it.
  void set_owner(std::uint16_t vhca_id) { owner_ = vhca_id; }
  std::uint16_t owner() const { return owner_; }

  // The card has one (firmware: it has virtual functions on Ethernet).
  void set_present(bool present) { present_ = present; }
  // From when its manager has given it an FDB.
  bool on() const override;
  void from_function(Time t, PacketRef& packet, Copies& out) override;
  // The same for what has come in at the port.
  void from_uplink(Time t, PacketRef& packet, Copies& out);

 private:
  // from: null for the uplink.
  void enter(Time t, const Vport* from, PacketRef& packet, Copies& out);
  void leave(Time t, std::uint16_t source, std::uint16_t to, SteeredFrame frame, const PacketRef& packet,
             Copies& out);

  void plug(Time t, std::uint16_t source, std::uint16_t to, SteeredFrame frame, const PacketRef& packet,
            Copies& out, bool other);

  Blocks blocks_;
  ESwitch* other_ = nullptr;
  std::uint16_t owner_ = 0;
  bool present_ = false;
};

}  // namespace hcasim
#endif
