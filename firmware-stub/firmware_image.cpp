// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/firmware_image.h"

#include <libdeflate.h>

#include <cstring>

#include "prm/firmware_image.h"

namespace hcasim::fw {

namespace {

FirmwareVersion version_of(const std::uint8_t* image) {
  using h = prm::firmware_image;
  return {prm::get<h::major>(image), prm::get<h::minor>(image), prm::get<h::subminor>(image)};
}

}  // namespace

std::string FirmwareVersion::text() const {
  std::string sub = std::to_string(subminor);
  if (sub.size() < 4) sub.insert(0, 4 - sub.size(), '0');  // as drivers print it
  return std::to_string(major) + "." + std::to_string(minor) + "." + sub;
}

FirmwareImage::FirmwareImage(const Generation& generation)
    : generation_(generation),
      running_{generation.fw_major, generation.fw_minor, generation.fw_subminor},
      stored_(running_) {}

FirmwareImage::Verdict FirmwareImage::check(const std::vector<std::uint8_t>& image) const {
  using h = prm::firmware_image;
  constexpr std::size_t least = h::bytes + sizeof(std::uint32_t);
  if (image.size() < least || std::memcmp(image.data(), prm::kFirmwareMagic, h::magic::bytes) != 0 ||
      prm::get<h::format>(image.data()) != prm::kFirmwareFormat)
    return Verdict::kNoImage;
  const std::size_t body = image.size() - sizeof(std::uint32_t);
  if (prm::get<h::length>(image.data()) != image.size() ||
      libdeflate_crc32(0, image.data(), body) != prm::load32(image.data() + body))
    return Verdict::kDamaged;
  char psid[h::psid::bytes] = {};
  std::memcpy(psid, generation_.psid, strnlen(generation_.psid, sizeof psid));
  if (std::memcmp(prm::ptr<h::psid>(image.data()), psid, sizeof psid) != 0) return Verdict::kOtherBoard;
  // What the initialization segment and MCQI have room for.
  const FirmwareVersion v = version_of(image.data());
  if (v.major > 0xff || v.minor > 0xff || v.subminor > 0xffff) return Verdict::kNoImage;
  return Verdict::kGood;
}

void FirmwareImage::store(const std::vector<std::uint8_t>& image) {
  stored_ = version_of(image.data());
  pending_ = true;
}

void FirmwareImage::boot(Time t) {
  booted_ = t;
  running_ = stored_;
  pending_ = false;
}

}  // namespace hcasim::fw
