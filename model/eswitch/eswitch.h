// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch of an Ethernet card: between its functions, each at a vport, and the port, its uplink. A frame
// passes the ingress ACL of the vport that it comes from, the forwarding database (FDB), and the egress ACL
// of each vport that it goes to; all of these are flow tables of the function that manages the switch. Their
// default on a miss: from a vport out of the uplink, from the uplink to the manager. RoCE packets go through
// it like other frames, by their headers. The switches at the two ports of a card know each other: entries of
// one may lead to a vport of the other, whose egress ACL the frame then passes, and one may have its root in
// the other's FDB (shared FDB), which then decides for the vports and uplinks of both. An ACL is its own
// switch's in any case. Tables take time (model/steer/lookup_time.h); what comes in at one place comes out in
// the order in which it came.
#ifndef HCASIM_MODEL_ESWITCH_ESWITCH_H
#define HCASIM_MODEL_ESWITCH_ESWITCH_H

#include <cstdint>
#include <vector>

#include "model/function/id.h"
#include "model/function/vports.h"
#include "model/packet/packet.h"
#include "model/port/embedded_switch.h"
#include "model/state/fields.h"
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
  explicit ESwitch(const Blocks& blocks) : blocks_(blocks), last_(blocks.vports.size() + 1) {}

  // Makes those of a card's two ports known to each other, before time starts.
  static void join(ESwitch& a, ESwitch& b) {
    a.other_ = &b;
    b.other_ = &a;
  }
  const ESwitch* other() const { return other_; }
  // Its manager's number (vhca_id), by which entries name it.
  void set_owner(std::uint16_t vhca_id) { owner_ = vhca_id; }
  std::uint16_t owner() const { return owner_; }

  // Frames begin in this table of the other switch's FDB, until its manager is reset or destroys it. False:
  // that has no such table.
  bool share(std::uint32_t table);
  void unshare() { shared_root_ = 0; }
  std::uint32_t shared_root() const { return shared_root_; }  // 0: frames begin in this switch's own
  // The manager's table is no more.
  void forget(std::uint32_t table);
  // None of the manager's tables are left.
  void clear();

  // The card has one (firmware: it has virtual functions on Ethernet).
  void set_present(bool present) { present_ = present; }
  // From when its manager has given it an FDB.
  bool on() const override;
  void from_function(Time t, PacketRef& packet, Copies& out) override;
  // The same for what has come in at the port.
  void from_uplink(Time t, PacketRef& packet, Copies& out);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, shared_root_);
    a.kept("last", last_);
    if constexpr (Archive::kLoads)
      a.check(shared_root_ == 0 || other_ != nullptr, "the card has no other port");
  }

 private:
  // A frame's, from where it came in.
  struct Passage {
    const ESwitch& at;
    std::uint16_t source;  // vport
    const PacketRef& packet;
    Copies& out;
    Time& last;      // when what came in there before was out
    unsigned& work;  // what it may cost still, in all tables and for all its copies
  };
  // from: null for the uplink.
  void enter(Time t, const Vport* from, PacketRef& packet, Copies& out);
  void leave(Time t, const Passage& way, std::uint16_t to, SteeredFrame frame);
  // Out of this switch at that vport. forwarded: by the egress ACL of another one.
  void plug(Time t, const Passage& way, std::uint16_t to, SteeredFrame frame, bool forwarded = false);

  Blocks blocks_;
  ESwitch* other_ = nullptr;
  std::uint16_t owner_ = 0;
  bool present_ = false;
  std::uint32_t shared_root_ = 0;
  std::vector<Time> last_;  // by function, the uplink's behind them
};

}  // namespace hcasim
#endif
