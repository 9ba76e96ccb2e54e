// SPDX-License-Identifier: BSD-3-Clause
// Finds the receiver of a packet: QPN, the port's special QPs 0 and 1, multicast groups (IBTA 9.6.1, 10.5).
#ifndef HCASIM_MODEL_STEER_STEER_H
#define HCASIM_MODEL_STEER_STEER_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "model/ctx/qp.h"
#include "model/port/port.h"
#include "model/state/fields.h"

namespace hcasim {

class Steering {
 public:
  explicit Steering(QpTable& qps) : qps_(qps) {}
  // 0 and 1: the special QPs of the port
  Qp* unicast(std::uint32_t dest_qpn) {
    if (dest_qpn > 1) return qps_.find(dest_qpn);
    const std::uint32_t internal = special_[dest_qpn];
    return internal ? qps_.find(internal) : nullptr;
  }
  const std::vector<std::uint32_t>* multicast(const Gid&) const;
  void set_special(unsigned which, std::uint32_t internal_qpn) { special_[which & 1] = internal_qpn; }
  std::uint32_t special(unsigned which) const { return special_[which & 1]; }
  bool attach(const Gid& group, std::uint32_t qpn);  // false: group full (240 QPs)
  bool detach(const Gid& group, std::uint32_t qpn);  // false: not attached
  std::size_t memberships(std::uint32_t qpn) const;
  void clear();
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, special_, groups_);
  }

 private:
  QpTable& qps_;
  std::array<std::uint32_t, 2> special_{};
  std::map<Gid, std::vector<std::uint32_t>> groups_;
};

}  // namespace hcasim
#endif
