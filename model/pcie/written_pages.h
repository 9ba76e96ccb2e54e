// SPDX-License-Identifier: BSD-3-Clause
// Which pages of its host's memory a function has written, since when somebody asked to know: for who copies
// a machine while it runs.
#ifndef HCASIM_MODEL_PCIE_WRITTEN_PAGES_H
#define HCASIM_MODEL_PCIE_WRITTEN_PAGES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "model/state/fields.h"

namespace hcasim {

class WrittenPages {
 public:
  struct Range {
    std::uint64_t start = 0, len = 0;  // bytes; they do not go round

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, start, len);
    }
  };

  WrittenPages() = default;
  WrittenPages(unsigned log_page, std::vector<Range> ranges)
      : log_page_(log_page), ranges_(std::move(ranges)) {}

  // [addr, addr + len) is written. len: not 0.
  void written(std::uint64_t addr, std::size_t len) {
    for (const Range& r : ranges_) {
      if (r.len == 0 || addr > r.start + (r.len - 1) || addr + (len - 1) < r.start) continue;
      const std::uint64_t first = std::max(addr, r.start) >> log_page_;
      const std::uint64_t last = std::min(addr + (len - 1), r.start + (r.len - 1)) >> log_page_;
      for (std::uint64_t page = first; page <= last; ++page) pages_.insert(page);
    }
  }
  // The addresses of those in [start, start + len), in their order, which are clean from now on.
  std::vector<std::uint64_t> take(std::uint64_t start, std::uint64_t len) {
    std::vector<std::uint64_t> taken;
    if (len == 0) return taken;
    const auto first = pages_.lower_bound(start >> log_page_);
    const auto end = pages_.upper_bound((start + (len - 1)) >> log_page_);
    for (auto it = first; it != end; ++it) taken.push_back(*it << log_page_);
    pages_.erase(first, end);
    return taken;
  }

  template <class Archive>
  void list_state(Archive& a) {
    a("log_page", log_page_);
    HCASIM_FIELDS(a, ranges_, pages_);
  }

 private:
  unsigned log_page_ = 12;
  std::vector<Range> ranges_;
  std::set<std::uint64_t> pages_;  // by number
};

}  // namespace hcasim
#endif
