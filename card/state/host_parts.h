// SPDX-License-Identifier: BSD-3-Clause
// What a front end keeps of a card beside the model (hca_set_host_part()): bytes by name, in its saved
// states.
#ifndef HCASIM_CARD_STATE_HOST_PARTS_H
#define HCASIM_CARD_STATE_HOST_PARTS_H

#include <cstddef>
#include <map>
#include <string>

namespace hcasim::saved {

struct HostParts {
  std::map<std::string, std::string> next;    // of the state that is saved next
  std::map<std::string, std::string> loaded;  // of the one that was loaded last

  // Of `next`, with their names.
  std::size_t bytes() const {
    std::size_t n = 0;
    for (const auto& [name, content] : next) n += name.size() + content.size();
    return n;
  }
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kLoads)
      a("parts", loaded);
    else
      a("parts", next);
  }
};

}  // namespace hcasim::saved
#endif
