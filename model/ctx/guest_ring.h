// SPDX-License-Identifier: BSD-3-Clause
// A queue buffer in host memory, given to the HCA as a page list (pas of cqc, eqc, qpc, wq, srqc).
#ifndef HCASIM_MODEL_CTX_GUEST_RING_H
#define HCASIM_MODEL_CTX_GUEST_RING_H

#include <cstdint>
#include <vector>

#include "model/state/fields.h"

namespace hcasim {

struct GuestRing {
  static constexpr unsigned kMaxLogPage = 43;  // log_page_size: 5 bits, of pages from 4 KiB on
  std::vector<std::uint64_t> pages;            // bus addresses, each of (1 << log_page) bytes
  unsigned log_page = 12;                      // bytes, log2
  std::uint64_t start = 0;                     // bytes from the start of the first page

  std::uint64_t page_size() const { return 1ULL << log_page; }
  std::uint64_t capacity() const {
    const std::uint64_t all = static_cast<std::uint64_t>(pages.size()) << log_page;
    return all > start ? all - start : 0;
  }
  // Bus address of byte `off` of the buffer, and in `run` how many bytes from there are contiguous (at least
  // to the end of the page). Returns false when off lies outside of the page list.
  bool locate(std::uint64_t off, std::uint64_t& addr, std::uint64_t& run) const {
    const std::uint64_t at = start + off;
    const std::uint64_t page = at >> log_page;
    if (page >= pages.size()) return false;
    const std::uint64_t in_page = at & (page_size() - 1);
    addr = pages[page] + in_page;
    run = page_size() - in_page;
    return true;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, pages, log_page, start);
    if constexpr (Archive::kLoads)
      a.check(log_page >= 12 && log_page <= kMaxLogPage && start < page_size(), "no queue has such pages");
  }
};

// WQEs of a ring that were read ahead of their use.
struct ReadAhead {
  std::vector<std::uint8_t> bytes;
  std::uint16_t first = 0, count = 0;  // WQEs, `first` counted as their queue counts, free-running

  // Whether they are all there, of a ring with WQEs of 2^log_stride bytes. Of a state that is read back the
  // ring's owner checks it, who knows the stride.
  bool fits(unsigned log_stride) const { return bytes.size() >> log_stride >= count; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, bytes, first, count);
  }
};

}  // namespace hcasim
#endif
