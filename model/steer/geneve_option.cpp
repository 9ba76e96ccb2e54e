// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/geneve_option.h"

#include <algorithm>

#include "prm/field.h"

namespace hcasim {

std::uint32_t GeneveOption::find(const SteeredFrame& frame) const {
  constexpr std::uint32_t kHeader = 8, kWord = 4;
  const FrameHeaders& h = frame.headers;
  if (!used || h.tunnel != Tunnel::kGeneve) return 0;
  const std::uint8_t* bytes = frame.bytes();
  std::uint32_t at = h.tunnel_at + kHeader;
  const std::uint32_t end =
      std::min<std::uint32_t>(at + kWord * (bytes[h.tunnel_at] & 0x3fu), h.outer.end);  // of all options
  while (at + kWord <= end) {
    const std::uint32_t data = kWord * (bytes[at + 3] & 0x1fu), next = at + kWord + data;
    if (prm::load16(bytes + at) == option_class && bytes[at + 2] == type)
      return data != 0 && next <= end ? at + kWord : 0;
    at = next;
  }
  return 0;
}

}  // namespace hcasim
