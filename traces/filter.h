// SPDX-License-Identifier: BSD-3-Clause
/// Which records a Tracer keeps.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/points.h"
#include "traces/qp_tag.h"

namespace hcasim::traces {

class RecordFilter {
 public:
  RecordFilter();

  /// "KEY=VALUE[,KEY=VALUE]...", or "all" or "" for the default: all points but detail and path. Pairs may
  /// also be separated by ';' or '/'; values are separated by '+'.
  ///   qp=0x4a+0x50-0x5f   of records about WQEs, only those of these senders' QPNs
  ///   point=doorbell+cqe_written, kind=error+command+detail   only these points (the union of both)
  ///   detail   also the detail points
  ///   path     also the points that say how frames go through flow tables
  /// false: nothing has changed, and `*err` says what is wrong and what is allowed.
  bool parse(const std::string& text, std::string* err);
  const std::string& text() const { return text_; }

  /// Takes everything but points on request, so no record needs a check.
  bool trivial() const { return trivial_; }
  bool detail() const { return detail_; }
  bool paths() const { return paths_; }
  bool takes(Point p, std::uint32_t obj) const {
    const auto n = static_cast<unsigned>(p);
    return points_[n] && (qpns_.empty() || !of_a_qp(p) || of(QpTag::qpn(obj)));
  }

 private:
  static bool of_a_qp(Point p);
  bool of(std::uint32_t qpn) const {
    for (const auto& range : qpns_)
      if (qpn >= range.first && qpn <= range.second) return true;
    return false;
  }

  std::array<bool, kPoints> points_{};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> qpns_;  // from, to
  bool trivial_ = true, detail_ = false, paths_ = false;
  std::string text_;
};

}  // namespace hcasim::traces
