// SPDX-License-Identifier: BSD-3-Clause
// On-demand paging as its driver does it: an event queue of page faults, memory whose pages come and go by
// UMR, and the answers to faults.
#ifndef HCASIM_TESTS_DEVICE_ODP_FIXTURE_H
#define HCASIM_TESTS_DEVICE_ODP_FIXTURE_H

#include <cstring>
#include <deque>

#include "fixture.h"

namespace hcasim::bare {

// Kinds of page faults (event and PAGE_FAULT_RESUME).
enum FaultKind : unsigned {
  kSrqReceive = 0,
  kSendFault = 1,
  kReceiveFault = 2,
  kReadAtomic = 3,
  kRdmaRead = 4,
  kRdmaWrite = 6
};

// A page fault event.
struct Fault {
  unsigned sub_type, kind;
  std::uint32_t queue;  // of the event: QPN or SRQN
  std::uint32_t token;
  std::uint32_t done;  // bytes_committed
  std::uint16_t packet_len;
  std::uint16_t wqe_index = 0;      // sub_type 0
  std::uint32_t rkey = 0, len = 0;  // sub_type 1
  std::uint64_t va = 0;
};

class OdpTest : public DeviceTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The next fault event; throws BareError when none comes.
  Fault next_fault(std::int64_t timeout = 100'000'000);
  // Time in which no fault must come.
  void expect_no_fault(std::int64_t ns = 1'000'000);
  CommandResult resume(const Fault& f, bool error = false);
  CommandResult resume(unsigned kind, std::uint32_t queue, std::uint32_t token, bool error);

  std::unique_ptr<EventQueue> eq_;
  std::deque<Fault> faults_;
};

// Memory of which the device knows only the pages that were mapped. Starts without any.
class PagedMemory {
 public:
  PagedMemory(Device& device, const Pd& pd, std::size_t pages, unsigned access = kAllAccess,
              std::uint64_t start = 0x7f1200000000);

  // Entries [first, first + n) of the key, by a UMR that has completed on return.
  void map(std::size_t first, std::size_t n, std::uint64_t flags = prm::Mtt::kRead | prm::Mtt::kWrite);
  void unmap(std::size_t first, std::size_t n) { map(first, n, 0); }
  // All pages of the virtual range.
  void map_range(std::uint64_t va, std::uint64_t len);
  bool mapped(std::size_t page) const { return (xlt_[page] & prm::Mtt::kFlags) != 0; }

  Buffer mem;
  Mr mr;
  Sge sge(std::size_t off, std::uint32_t len) const { return {mr.start() + off, mr.key(), len}; }
  std::size_t pages() const { return pages_; }

 private:
  std::size_t pages_;
  Cq cq_;
  Qp umr_;
  std::vector<std::uint64_t> xlt_;
};

// Two connected QPs with plain memory, and paged memory on both sides.
struct PagedPair : Pair {
  explicit PagedPair(Device& d, const PairOptions& o = options())
      : Pair(d, o), apaged(d, pd, 16), bpaged(d, pd, 16, kAllAccess, 0x7f3400000000) {
    fill_random(apaged.mem.data(), apaged.mem.size(), 1);
    fill_random(bpaged.mem.data(), bpaged.mem.size(), 2);
  }
  static PairOptions options() {
    PairOptions o;
    o.attr.mtu = 1024;
    return o;
  }
  // The same bytes in `x` (paged) at xoff and in `y`.
  static bool same(const PagedMemory& x, std::size_t xoff, const std::uint8_t* y, std::size_t len) {
    return std::memcmp(x.mem.data() + xoff, y, len) == 0;
  }
  PagedMemory apaged, bpaged;
};

}  // namespace hcasim::bare
#endif
