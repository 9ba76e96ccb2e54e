// SPDX-License-Identifier: BSD-3-Clause
// What a function is and has, as bytes: for its migration. Who knows the format gives this to the firmware.
#ifndef HCASIM_FIRMWARE_STUB_FUNCTION_IMAGES_H
#define HCASIM_FIRMWARE_STUB_FUNCTION_IMAGES_H

#include <optional>
#include <string>
#include <string_view>

namespace hcasim::fw {

class Firmware;

class FunctionImages {
 public:
  // Of a function that is at rest: all of it. Of one that runs: what its tables have now, of which a later
  // image has most; it cannot go on from there.
  virtual std::string save(Firmware& of) = 0;
  // True: of a card and a link such as this one's.
  virtual bool suits(Firmware& into, std::string_view image) = 0;
  // Into a function that is at rest. False: the image is damaged, or of another kind of card, and the
  // function is as it was.
  virtual bool load(Firmware& into, std::string_view image) = 0;

  // What makes `to` of `from`, which may be empty; of the size of what differs.
  virtual std::string update(std::string_view from, std::string_view to) = 0;
  // Nothing: the update is damaged, or of something else.
  virtual std::optional<std::string> updated(std::string_view from, std::string_view update) = 0;

 protected:
  ~FunctionImages() = default;
};

}  // namespace hcasim::fw
#endif
