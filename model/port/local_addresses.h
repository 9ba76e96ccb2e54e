// SPDX-License-Identifier: BSD-3-Clause
// Whether an address belongs to a function of this card: the port sends such packets back instead of out. The
// port owns the interface; model/function/vports.h implements it over the tables of the functions.
#ifndef HCASIM_MODEL_PORT_LOCAL_ADDRESSES_H
#define HCASIM_MODEL_PORT_LOCAL_ADDRESSES_H

#include "model/packet/packet.h"

namespace hcasim {

class LocalAddresses {
 public:
  // mac: not a multicast address.
  virtual bool is_local(const Mac& mac) const = 0;

 protected:
  ~LocalAddresses() = default;
};

}  // namespace hcasim
#endif
