// SPDX-License-Identifier: BSD-3-Clause
// Images of virtual functions, for their migration (format: tagged.h): a head that says of what cards they
// are, and what the function's and its firmware's lists for images have. Nothing in one names a function of a
// card, and times are none in it, so that another function takes it over: of the same card, or of another of
// its generation and link.
#ifndef HCASIM_CARD_STATE_FUNCTION_IMAGE_H
#define HCASIM_CARD_STATE_FUNCTION_IMAGE_H

#include <cstdint>
#include <string>
#include <string_view>

#include "firmware-stub/function_images.h"

namespace hcasim::saved {

class FunctionImages final : public fw::FunctionImages {
 public:
  std::string save(fw::Firmware& of) override;
  bool suits(fw::Firmware& into, std::string_view image) override;
  bool load(fw::Firmware& into, std::string_view image) override;
  // A zstd frame with `from` as the prefix that it refers to, its checksum and the size of what it makes.
  std::string update(std::string_view from, std::string_view to) override;
  std::optional<std::string> updated(std::string_view from, std::string_view update) override;
};

}  // namespace hcasim::saved
#endif
