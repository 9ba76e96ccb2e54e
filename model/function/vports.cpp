// SPDX-License-Identifier: BSD-3-Clause
#include "model/function/vports.h"

namespace hcasim {

FunctionId Vports::owner_of(const Mac& mac) const {
  if (multicast(mac)) return kNoFunction;
  const auto functions = static_cast<FunctionId>(vports_.size());
  for (FunctionId f = 0; f < functions; ++f)
    if (vports_[f].own_mac(mac)) return f;
  return kNoFunction;
}

FunctionId Vports::ib_owner(const Packet& p) const {
  if (vports_.size() == 1 || !p.has_grh) return 0;
  const auto functions = static_cast<FunctionId>(vports_.size());
  for (FunctionId f = 0; f < functions; ++f)
    if (vports_[f].has_gid(p.dgid)) return f;
  return 0;
}

}  // namespace hcasim
