// SPDX-License-Identifier: BSD-3-Clause
// What a function is and has, as bytes: for its migration. Who knows the format gives this to the firmware.
#ifndef HCASIM_FIRMWARE_STUB_FUNCTION_IMAGES_H
#define HCASIM_FIRMWARE_STUB_FUNCTION_IMAGES_H

#include <string>
#include <string_view>

namespace hcasim::fw {

class Firmware;

class FunctionImages {
 public:
  // Of a function that is at rest: all of it. Of one that runs: how large that would be, about.
  virtual std::string save(Firmware& of) = 0;
  // Of what cards can take an image of it over, and nothing else.
  virtual std::string head(Firmware& of) = 0;
  // Into a function that is at rest. False: the image is damaged, or of another kind of card, and the
  // function is as it was. A head alone changes nothing.
  virtual bool load(Firmware& into, std::string_view image) = 0;

 protected:
  ~FunctionImages() = default;
};

}  // namespace hcasim::fw
#endif
