// SPDX-License-Identifier: BSD-3-Clause
// A connected QP's address path (ads of mlx5_ifc.h) as the headers of its packets: LRH, GRH, P_Key.
#ifndef HCASIM_MODEL_PORT_PATH_H
#define HCASIM_MODEL_PORT_PATH_H

#include "model/ctx/qp.h"
#include "model/port/port.h"

namespace hcasim {

inline void fill_path(Packet& p, const AddressPath& path, const Port& port) {
  p.slid = static_cast<std::uint16_t>(port.lid() | path.mlid);
  p.dlid = path.rlid;
  p.sl = path.sl;
  if (path.grh) {
    p.has_grh = true;
    p.tclass = path.tclass;
    p.hop_limit = path.hop_limit;
    p.flow_label = path.flow_label;
    p.dgid = path.rgid;
    if (path.sgid_index < port.gids.size()) p.sgid = port.gids[path.sgid_index];
  }
  if (path.pkey_index < port.pkeys.size()) p.pkey = port.pkeys[path.pkey_index];
}

}  // namespace hcasim
#endif
