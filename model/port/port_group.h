// SPDX-License-Identifier: BSD-3-Clause
// The ports of a card that has several, as far as each of them must know the others. The port owns the
// interface; model/lag/lag.h implements it.
#ifndef HCASIM_MODEL_PORT_PORT_GROUP_H
#define HCASIM_MODEL_PORT_PORT_GROUP_H

#include "model/packet/packet.h"

namespace hcasim {

class Port;

class PortGroup {
 public:
  // The ports are one link: packets of one's functions may leave by another.
  virtual bool aggregated() const = 0;
  // By which port packets of such a queue leave, as far as one can say before there is one; and a packet.
  virtual Port& egress(PortAffinity affinity) = 0;
  virtual Port& egress_of(const PacketRef& packet) = 0;
  // Whose functions have sent what crossed over to this port.
  virtual Port& other() = 0;

 protected:
  ~PortGroup() = default;
};

}  // namespace hcasim
#endif
