// SPDX-License-Identifier: BSD-3-Clause
// The modelled switches of this process and the ports on them.
#ifndef HCASIM_CARD_FABRIC_H
#define HCASIM_CARD_FABRIC_H

#include <memory>
#include <string>
#include <vector>

#include "card/api/wires.h"
#include "model/port/switch.h"

namespace hcasim::api {

// An HCA's port on a switch.
class SwitchEnd final : public Uplink {
 public:
  SwitchEnd(Switch& fabric, std::size_t port) : fabric_(fabric), port_(port) {}
  ~SwitchEnd() override { fabric_.detach(port_); }
  void transmit(Time t, const PacketRef& packet) override { fabric_.port(port_).transmit(t, packet); }
  std::uint32_t room_of_lanes() const override { return fabric_.port(port_).room_of_lanes(); }
  void make_room(Time t, unsigned lane, std::uint32_t bytes) override {
    fabric_.port(port_).make_room(t, lane, bytes);
  }
  void emptied() override { fabric_.port(port_).emptied(); }
  // What the switch, as a whole, lost.
  std::uint64_t lost() const override;

 private:
  Switch& fabric_;
  const std::size_t port_;
};

// Makes the switches that HCAs name (the option switch=NAME) and joins them, before time starts. A switch's
// times are those of the profile of the first HCA on it. InfiniBand: the port with the lowest node GUID acts
// as the subnet manager, and LIDs are given in the order of the HCAs, around those that an option fixed.
// False: `why` says what is wrong, "NAME: ...".
bool join_switches(const std::vector<std::unique_ptr<hca>>& hcas, std::string& why);

// Those that there are, in the order of their names.
const std::vector<std::unique_ptr<Switch>>& modelled_switches();

}  // namespace hcasim::api
#endif
