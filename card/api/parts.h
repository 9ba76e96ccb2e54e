// SPDX-License-Identifier: BSD-3-Clause
// What a card is made of, from its options: for the C API and for HcaModule alike.
#ifndef HCASIM_CARD_PARTS_H
#define HCASIM_CARD_PARTS_H

#include <memory>
#include <string>
#include <vector>

#include "card/api/options.h"
#include "firmware-stub/firmware.h"
#include "model/device.h"
#include "model/profile.h"
#include "traces/tracer.h"

namespace hcasim::api {

// Where bare profile names are looked for: HCASIM_PROFILE_PATH (folders parted by ':'), then the source
// tree's, then those that are installed with this library.
std::vector<std::string> profile_folders();

struct Parts {
  Settings settings;
  Profile profile;
  std::unique_ptr<traces::Tracer> tracer;
};
// options: as of hca_create(). number: of the HCA in its process. False: `why` says what is wrong.
bool make_parts(const std::string& options, unsigned number, Parts& parts, std::string& why);
// Plugs the firmware into the hardware and sets both as the options say.
void join_parts(const Settings& settings, Device& model, fw::Firmware& firmware);

}  // namespace hcasim::api
#endif
