// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/dma_map.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <vector>

#include "vfio-user/protocol.h"

namespace hcasim::vfio_user {

namespace {
std::vector<DmaMap*>& maps() {
  static std::vector<DmaMap*> list;
  return list;
}

// Of files, by all clients of the process.
std::size_t g_mappings = 0;
std::uint64_t g_mapped = 0;  // bytes

// Of the 47 bits of addresses that x86 has for a process: the rest is its own, and that of its libraries.
constexpr std::uint64_t kMostMapped = std::uint64_t{1} << 46;

// A client must not use up all that the kernel has for this process, which needs some of its own, and one in
// the place of each that is cut.
std::size_t most_mappings() {
  static const std::size_t most = [] {
    std::size_t n = 65'530;
    std::ifstream("/proc/sys/vm/max_map_count") >> n;
    return std::max<std::size_t>(n / 8 * 7, 1);
  }();
  return most;
}

// Of mappings of this file.
std::size_t page_of(const Descriptor& file) {
  struct statfs status {};
  if (::fstatfs(file.get(), &status) == 0 && status.f_type == HUGETLBFS_MAGIC)
    return static_cast<std::size_t>(status.f_bsize);
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}
}  // namespace

// Faults come while bytes are copied from or to a range, on the one thread that changes the ranges: the
// handler can look at them.
struct BusErrors {
  static void handle(int signal, siginfo_t* info, void*) {
    auto* const where = static_cast<std::uint8_t*>(info->si_addr);
    for (DmaMap* map : maps()) {
      for (auto& [address, range] : map->ranges_) {
        auto* const first = static_cast<std::uint8_t*>(range.mapping);
        if (!first || where < first || where >= first + range.mapped) continue;
        range.lost = true;
        // All of it: a piece would need mappings of its own, of which the process may have no more.
        if (::mmap(first, range.mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
          return;
      }
    }
    std::signal(signal, SIG_DFL);  // not ours: the instruction is executed again, and ends the process
  }

  static void watch() {
    static const bool once = [] {
      struct sigaction action {};
      action.sa_sigaction = handle;
      action.sa_flags = SA_SIGINFO;
      ::sigaction(SIGBUS, &action, nullptr);
      return true;
    }();
    static_cast<void>(once);
  }
};

DmaMap::DmaMap() {
  BusErrors::watch();
  maps().push_back(this);
}

DmaMap::~DmaMap() {
  clear();
  maps().erase(std::find(maps().begin(), maps().end(), this));
}

void DmaMap::unmap(Range& range) {
  if (!range.mapping) return;
  ::munmap(range.mapping, range.mapped);
  --g_mappings;
  g_mapped -= range.mapped;
}

int DmaMap::add(std::uint64_t address, std::uint64_t size, std::uint32_t flags, const Descriptor& file,
                std::uint64_t offset) {
  if (size == 0 || address + (size - 1) < address || offset + size < offset) return EINVAL;
  if ((flags & ~(kDmaReadable | kDmaWritable)) != 0) return EINVAL;
  const auto next = ranges_.lower_bound(address);
  if (next != ranges_.end() && next->first <= address + (size - 1)) return EEXIST;
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->first + (before->second.size - 1) >= address) return EEXIST;
  }
  if (ranges_.size() >= kMostMaps) return ENOSPC;
  Range range;
  range.size = size;
  range.flags = flags;
  if (file && flags != 0) {
    if (g_mappings >= most_mappings()) return ENOSPC;
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return errno;
    if (S_ISREG(status.st_mode) && offset + size > static_cast<std::uint64_t>(status.st_size)) return EINVAL;
    const std::size_t page = page_of(file);
    const std::uint64_t lead = offset % page;
    if (size > SIZE_MAX - lead - page) return EINVAL;
    range.mapped = static_cast<std::size_t>((size + lead + page - 1) / page * page);
    if (range.mapped > kMostMapped - g_mapped) return ENOSPC;
    const int rights =
        ((flags & kDmaReadable) != 0 ? PROT_READ : 0) | ((flags & kDmaWritable) != 0 ? PROT_WRITE : 0);
    void* const mapping =
        ::mmap(nullptr, range.mapped, rights, MAP_SHARED, file.get(), static_cast<off_t>(offset - lead));
    if (mapping == MAP_FAILED) return errno;
    ++g_mappings;
    g_mapped += range.mapped;
    range.mapping = mapping;
    range.bytes = static_cast<std::uint8_t*>(mapping) + lead;
  }
  ranges_.emplace(address, range);
  return 0;
}

int DmaMap::remove(std::uint64_t address, std::uint64_t size) {
  const auto it = ranges_.find(address);
  if (it == ranges_.end() || it->second.size != size) return ENOENT;
  unmap(it->second);
  ranges_.erase(it);
  return 0;
}

void DmaMap::clear() {
  for (auto& [address, range] : ranges_) unmap(range);
  ranges_.clear();
}

// The range that holds this address, and how far into it that is.
DmaMap::Range* DmaMap::at(std::uint64_t address, std::uint64_t& from) {
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return nullptr;
  --it;
  from = address - it->first;
  return from < it->second.size ? &it->second : nullptr;
}

std::uint8_t* DmaMap::find(std::uint64_t address, std::size_t len, Access access) {
  std::uint64_t from = 0;
  Range* const range = at(address, from);
  const std::uint32_t right = access == Access::kWrite ? kDmaWritable : kDmaReadable;
  if (!range || !range->bytes || range->lost || (range->flags & right) == 0) return nullptr;
  return len <= range->size - from ? range->bytes + from : nullptr;
}

// An access may go on from one range into the next. All of it is looked at before any of it is done.
template <class Copy>
DmaMap::Result DmaMap::access(std::uint64_t address, std::size_t len, Access kind, Copy copy) {
  const std::uint32_t right = kind == Access::kWrite ? kDmaWritable : kDmaReadable;
  for (const bool doing : {false, true}) {
    std::uint64_t at_address = address;
    for (std::size_t done = 0; done < len;) {
      std::uint64_t from = 0;
      Range* const range = at(at_address, from);
      if (!range || (range->flags & right) == 0) return Result::kNothing;
      if (!range->bytes) return Result::kNotShared;
      if (range->lost) return Result::kLost;
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(len - done, range->size - from));
      if (doing) {
        copy(range->bytes + from, done, piece);
        if (range->lost) return Result::kLost;
      }
      done += piece;
      at_address += piece;
      if (done < len && at_address == 0) return Result::kNothing;
    }
  }
  return Result::kDone;
}

DmaMap::Result DmaMap::read(std::uint64_t address, void* to, std::size_t len) {
  return access(address, len, Access::kRead,
                [to](const std::uint8_t* there, std::size_t done, std::size_t n) {
                  std::memcpy(static_cast<std::uint8_t*>(to) + done, there, n);
                });
}

// A CQE or EQE belongs to the guest, whose processors run meanwhile, once its last byte is there: the copy of
// the rest has no order of its own.
DmaMap::Result DmaMap::write(std::uint64_t address, const void* from, std::size_t len) {
  constexpr std::size_t kEntry = 64, kLast = sizeof(std::uint64_t);
  return access(address, len, Access::kWrite, [from](std::uint8_t* there, std::size_t done, std::size_t n) {
    const auto* bytes = static_cast<const std::uint8_t*>(from) + done;
    const std::size_t first = n == kEntry || n == 2 * kEntry ? n - kLast : n;
    std::memcpy(there, bytes, first);
    if (first == n) return;
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(there + first, bytes + first, kLast);
  });
}

}  // namespace hcasim::vfio_user
