// SPDX-License-Identifier: BSD-3-Clause
// What an InfiniBand port's link has and could have, in PTYS's bits.
#ifndef HCASIM_FIRMWARE_STUB_IB_LINK_H
#define HCASIM_FIRMWARE_STUB_IB_LINK_H

#include "model/generation.h"
#include "model/profile.h"

namespace hcasim::fw {

// PTYS ib_link_width, ib_proto
enum IbWidth : unsigned { kIb1x = 0x1, kIb2x = 0x2, kIb4x = 0x4, kIb8x = 0x8, kIb12x = 0x10 };
enum IbSpeed : unsigned { kIbFdr = 0x10, kIbHdr = 0x40, kIbNdr = 0x80 };

struct IbLink {
  unsigned width, speed;    // one bit each: what the link has when it is up
  unsigned widths, speeds;  // all that the port could come to: fewer lanes, slower ones

  IbLink(const Profile::Port& port, const Generation& generation)
      : width(port.ib_link_width),
        speed(generation.ib_speed(port.ib_link_speed)),
        widths((kIb1x | ((generation.ib_speeds & kIbHdr) != 0 ? +kIb2x : 0u) | kIb4x | width) & upto(width)),
        speeds(generation.ib_speeds & upto(speed)) {}

 private:
  static constexpr unsigned upto(unsigned bit) { return 2 * bit - 1; }
};

}  // namespace hcasim::fw
#endif
