// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a doorbell. The context of a send queue, CQ or EQ names its UAR page, and a process can
// reach those alone that were mapped for it: so a doorbell counts on the context's page only.
#ifndef HCASIM_MODEL_DOORBELL_H
#define HCASIM_MODEL_DOORBELL_H

#include <cstdint>

namespace hcasim {

enum class DoorbellFate : std::uint8_t {
  kTaken,
  kNobody,     // nothing that takes doorbells has this number
  kOtherPage,  // it has another UAR page; the rule is told of it
};

// Of contexts in states from before version 18.
constexpr std::uint32_t kAnyUarPage = ~0u;

constexpr bool rings_on(std::uint32_t uar_page, std::uint32_t page) {
  return uar_page == page || uar_page == kAnyUarPage;
}

}  // namespace hcasim
#endif
