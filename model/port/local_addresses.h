// SPDX-License-Identifier: BSD-3-Clause
// The functions behind the port, as far as the port must know them: whether an address is one of theirs (it
// sends such packets back instead of out), whether management lets a function's packets pass, and what each
// has sent. The port owns the interface; model/function/vports.h implements it over the functions' vports.
#ifndef HCASIM_MODEL_PORT_LOCAL_ADDRESSES_H
#define HCASIM_MODEL_PORT_LOCAL_ADDRESSES_H

#include <cstdint>

#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/port/counters.h"

namespace hcasim {

class LocalAddresses {
 public:
  // mac: not a multicast address.
  virtual bool is_local(const Mac& mac) const = 0;
  virtual bool open(FunctionId f) const = 0;
  // InfiniBand; bytes: of all packets together.
  virtual void sent(FunctionId f, bool multicast, std::uint64_t bytes, unsigned packets) = 0;
  // Ethernet; rdma: RoCE packets.
  virtual void counts_frames(FunctionId f, bool received, bool rdma, VportTraffic::Cast cast,
                             std::uint64_t bytes, unsigned frames) = 0;

 protected:
  ~LocalAddresses() = default;
};

}  // namespace hcasim
#endif
