// SPDX-License-Identifier: BSD-3-Clause
// What a card is made of, from its options: for the C API and for HcaModule alike.
#ifndef HCASIM_CARD_PARTS_H
#define HCASIM_CARD_PARTS_H

#include <memory>
#include <string>
#include <vector>

#include "card/api/options.h"
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
// Sets the hardware as the options say.
void set_up(const Settings& settings, Device& model);

}  // namespace hcasim::api
#endif
