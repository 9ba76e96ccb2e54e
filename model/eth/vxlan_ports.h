// SPDX-License-Identifier: BSD-3-Clause
// The UDP ports behind which the card's parsers look for VXLAN: IANA's always, and those that physical
// functions have registered (ADD_VXLAN_UDP_DPORT).
#ifndef HCASIM_MODEL_ETH_VXLAN_PORTS_H
#define HCASIM_MODEL_ETH_VXLAN_PORTS_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/function/id.h"
#include "model/state/fields.h"

namespace hcasim {

class VxlanPorts {
 public:
  static constexpr std::uint16_t kIana = 4789;
  // Of a function, IANA's included if it registers that (max_vxlan_udp_ports).
  static constexpr unsigned kMost = 8;

  bool has(std::uint16_t port) const {
    return port == kIana || (count_ != 0 && std::any_of(entries_.begin(), entries_.begin() + count_,
                                                        [port](const Entry& e) { return e.port == port; }));
  }
  // False: no room. A second time changes nothing.
  bool add(FunctionId f, std::uint16_t port) {
    if (find(f, port) != count_) return true;
    const auto own = std::count_if(entries_.begin(), entries_.begin() + count_,
                                   [f](const Entry& e) { return e.function == f; });
    if (own >= kMost || count_ == entries_.size()) return false;
    entries_[count_++] = {port, f};
    return true;
  }
  // False: the function has not registered it.
  bool remove(FunctionId f, std::uint16_t port) {
    const std::uint32_t at = find(f, port);
    if (at == count_) return false;
    entries_[at] = entries_[--count_];
    entries_[count_] = {};
    return true;
  }
  void forget(FunctionId f) {
    for (std::uint32_t i = count_; i-- > 0;)
      if (entries_[i].function == f) remove(f, entries_[i].port);
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, entries_, count_);
    if constexpr (Archive::kLoads) a.check(count_ <= entries_.size(), "there are more ports than places");
  }

 private:
  struct Entry {
    std::uint16_t port = 0;
    FunctionId function = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, port, function);
    }
  };
  std::uint32_t find(FunctionId f, std::uint16_t port) const {
    std::uint32_t i = 0;
    while (i < count_ && (entries_[i].port != port || entries_[i].function != f)) ++i;
    return i;
  }

  std::array<Entry, 2 * kMost> entries_{};  // of two physical functions
  std::uint32_t count_ = 0;
};

}  // namespace hcasim
#endif
