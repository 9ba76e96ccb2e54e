// SPDX-License-Identifier: BSD-3-Clause
// What a card says of itself in its PCIe configuration space, for all front ends.
#ifndef HCASIM_CARD_IDENTITY_H
#define HCASIM_CARD_IDENTITY_H

#include "card/pci/config_space.h"

namespace hcasim {
struct Profile;
namespace fw {
struct Options;
}
}  // namespace hcasim

namespace hcasim::api {

using pci::Identity;

// card: with what the options leave to the generation. Of the link, the slower of profile and generation.
Identity identity_of(const Profile& profile, const fw::Options& card);

}  // namespace hcasim::api
#endif
