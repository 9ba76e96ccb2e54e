// SPDX-License-Identifier: BSD-3-Clause
// The card's flash: the image of the firmware that runs, and the one that starts next. An image is this
// project's own (prm/firmware_image.h, tools/firmware-image): it says which board it is for and which version
// it is, and is complete. It lasts as long as the card: a new one has the image of its generation.
#ifndef HCASIM_FIRMWARE_STUB_FIRMWARE_IMAGE_H
#define HCASIM_FIRMWARE_STUB_FIRMWARE_IMAGE_H

#include <cstdint>
#include <string>
#include <vector>

#include "model/generation.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim::fw {

struct FirmwareVersion {
  std::uint32_t major = 0, minor = 0, subminor = 0;

  bool operator==(const FirmwareVersion& o) const {
    return major == o.major && minor == o.minor && subminor == o.subminor;
  }
  std::string text() const;
  // major 31:24, minor 23:16, subminor 15:0 (mcqi_version.version)
  std::uint32_t packed() const { return major << 24 | (minor & 0xff) << 16 | (subminor & 0xffff); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, major, minor, subminor);
  }
};

class FirmwareImage {
 public:
  static constexpr std::uint32_t kMaxBytes = 4u << 20;

  explicit FirmwareImage(const Generation& generation);

  const FirmwareVersion& running() const { return running_; }
  const FirmwareVersion& stored() const { return stored_; }
  bool pending() const { return pending_; }  // stored, and not started yet

  enum class Verdict : std::uint8_t { kGood, kNoImage, kDamaged, kOtherBoard };
  Verdict check(const std::vector<std::uint8_t>& image) const;
  // A good one, to start next.
  void store(const std::vector<std::uint8_t>& image);
  // The firmware starts anew: with the image that is stored.
  void boot(Time t);
  Time booted() const { return booted_; }

  template <class Archive>
  void list_state(Archive& a) {
    // Flash.
    a.lasting("running", running_);
    a.lasting("stored", stored_);
    a.lasting("pending", pending_);
    HCASIM_LASTING_SINCE(21, a, "booted", booted_);
  }

 private:
  const Generation& generation_;
  FirmwareVersion running_, stored_;
  bool pending_ = false;
  Time booted_ = 0;
};

}  // namespace hcasim::fw
#endif
