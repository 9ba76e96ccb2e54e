// SPDX-License-Identifier: BSD-3-Clause
// An entry of the RoCE address table (roce_addr_layout).
#ifndef HCASIM_MODEL_FUNCTION_ROCE_ADDRESS_H
#define HCASIM_MODEL_FUNCTION_ROCE_ADDRESS_H

#include <cstdint>

#include "model/packet/packet.h"
#include "model/state/fields.h"

namespace hcasim {

// version: 0 = RoCE v1, 2 = RoCE v2.
struct RoceAddress {
  bool valid = false;
  Gid gid{};  // IPv4: ::ffff:a.b.c.d
  Mac mac{};
  bool vlan_valid = false;
  std::uint16_t vlan_id = 0;
  bool ipv4 = false;
  std::uint8_t version = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, valid, gid, mac, vlan_valid, vlan_id, ipv4, version);
  }
};

}  // namespace hcasim
#endif
