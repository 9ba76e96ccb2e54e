// SPDX-License-Identifier: BSD-3-Clause
// Receive side scaling: the hash over a frame's addresses and ports that a TIR asks for (tirc).
#ifndef HCASIM_MODEL_ETH_RSS_H
#define HCASIM_MODEL_ETH_RSS_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/ctx/eth.h"
#include "model/eth/headers.h"
#include "model/state/fields.h"

namespace hcasim {

struct RssHash {
  std::uint32_t value = 0;
  std::uint8_t type = 0;  // as rss_hash_type of the CQE; 0: nothing was hashed

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, value, type);
  }
};

RssHash rss_hash(const Tir& tir, const std::uint8_t* frame, const FrameHeaders& headers);

// The Toeplitz hash of up to 36 bytes.
std::uint32_t toeplitz(const std::array<std::uint8_t, 40>& key, const std::uint8_t* data, std::size_t len);

}  // namespace hcasim
#endif
