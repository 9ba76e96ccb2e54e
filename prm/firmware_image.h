// SPDX-License-Identifier: BSD-3-Clause
// This project's firmware image, made by tools/firmware-image: a header, anything, and the CRC-32 (IEEE
// 802.3) of all that is before it. Numbers are big-endian; the whole is a multiple of 4 bytes.
#ifndef HCASIM_PRM_FIRMWARE_IMAGE_H
#define HCASIM_PRM_FIRMWARE_IMAGE_H

#include "prm/field.h"

namespace hcasim::prm {

constexpr char kFirmwareMagic[] = "hcasimFW";
constexpr std::uint32_t kFirmwareFormat = 1;

struct firmware_image {
  using magic = Bytes<0, 64>;
  using format = Field<0x40, 32>;
  using length = Field<0x60, 32>;  // of all of it, with the CRC
  using major = Field<0x80, 32>;
  using minor = Field<0xa0, 32>;
  using subminor = Field<0xc0, 32>;
  using psid = Bytes<0x100, 128>;  // zeros behind it
  static constexpr std::size_t bytes = 0x30;
};

}  // namespace hcasim::prm
#endif
