// SPDX-License-Identifier: BSD-3-Clause
// What a card says of itself in its PCIe configuration space, for all front ends.
#ifndef HCASIM_CARD_IDENTITY_H
#define HCASIM_CARD_IDENTITY_H

#include <cstdint>
#include <vector>

namespace hcasim {
struct Profile;
namespace fw {
struct Options;
}
}  // namespace hcasim

namespace hcasim::api {

struct Identity {
  std::uint16_t device_id = 0x1019, subsystem_id = 0x0008;
  std::uint8_t revision = 0;
  bool ethernet = true;                      // class code 0200, else 0207
  unsigned pcie_generation = 3, lanes = 16;  // of the link: 1 = 2.5 GT/s ...
  std::uint64_t serial = 0;                  // EUI-64, the node GUID
  std::vector<std::uint8_t> vpd{};           // vital product data
};

// card: with what the options leave to the generation. Of the link, the slower of profile and generation.
Identity identity_of(const Profile& profile, const fw::Options& card);

}  // namespace hcasim::api
#endif
