// SPDX-License-Identifier: BSD-3-Clause
// The switch between a card's functions and its port, as far as the port must know it. The port owns the
// interface; model/eswitch/eswitch.h implements it.
#ifndef HCASIM_MODEL_PORT_EMBEDDED_SWITCH_H
#define HCASIM_MODEL_PORT_EMBEDDED_SWITCH_H

#include <vector>

#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/time.h"

namespace hcasim {

class Port;

class EmbeddedSwitch {
 public:
  struct Copy {
    FunctionId to = kNoFunction;  // kNoFunction: out of the port
    PacketRef packet;
    bool other = false;   // the function, or the port, is of the card's other port
    Time at = 0;          // when it comes out of the switch
    Port* way = nullptr;  // out of the port: which, as the port that asks has found
  };
  using Copies = std::vector<Copy>;

  // It decides where packets go; else they go by their addresses alone.
  virtual bool on() const = 0;
  // Where a packet goes that Packet::function sends, and which comes to the switch at t; nowhere: it has been
  // dropped, and its sender's rules have counted it. `packet` may be taken.
  virtual void from_function(Time t, PacketRef& packet, Copies& out) = 0;

 protected:
  ~EmbeddedSwitch() = default;
};

}  // namespace hcasim
#endif
