// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/identity.h"

#include <algorithm>

#include "firmware-stub/options.h"
#include "firmware-stub/vpd.h"
#include "model/profile.h"

namespace hcasim::api {

Identity identity_of(const Profile& profile, const fw::Options& card) {
  Identity id;
  id.device_id = card.device_id;
  id.revision = card.generation->revision;
  id.ethernet = card.link == fw::Link::kEthernet;
  id.pcie_generation = std::min(profile.pcie.generation, card.generation->pcie_generation);
  id.lanes = std::min(profile.pcie.lanes, card.generation->pcie_lanes);
  id.serial = card.card_guid;
  id.vpd = fw::vital_product_data(card);
  return id;
}

}  // namespace hcasim::api
