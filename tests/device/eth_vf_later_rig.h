// SPDX-License-Identifier: BSD-3-Clause
// A card with virtual functions, of a later chip than the default one.
#ifndef HCASIM_TESTS_DEVICE_ETH_VF_LATER_RIG_H
#define HCASIM_TESTS_DEVICE_ETH_VF_LATER_RIG_H

#include "eth_vf_rig.h"

namespace hcasim {

inline Card& later_card() {
  // It lives as long as the SystemC kernel.
  static auto* made = new Card(fw::Link::kEthernet, 0, find_generation("connectx6dx"), nullptr, true);
  return *made;
}

class EthVfLater : public EthVf {
 protected:
  EthVfLater() : EthVf(later_card()) {}
};

}  // namespace hcasim
#endif
