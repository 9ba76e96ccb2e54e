// SPDX-License-Identifier: BSD-3-Clause
// The memory of a bare machine: one arena of 4 KiB pages at a bus address, with an allocator, pages that
// refuse DMA, and detection of DMA to free pages.
#ifndef HCASIM_DRIVER_BARE_MEMORY_H
#define HCASIM_DRIVER_BARE_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace hcasim::bare {

constexpr std::size_t kPage = 4096;  // bytes

class HostMemory;

// Owned pages, contiguous for the CPU; on the bus contiguous or, when made by allocate_scattered(), page by
// page.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& o) noexcept { swap(o); }
  Buffer& operator=(Buffer&& o) noexcept {
    Buffer old(std::move(o));
    swap(old);
    return *this;
  }
  ~Buffer();

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool contiguous() const { return pages_.empty(); }
  // Bus address of byte `off`.
  std::uint64_t bus(std::size_t off = 0) const {
    return pages_.empty() ? bus_ + off : pages_[off / kPage] + off % kPage;
  }
  // Bus addresses of each 2^log_page bytes from the start; a scattered buffer has 4 KiB pages only.
  std::vector<std::uint64_t> page_list(unsigned log_page = 12) const;
  explicit operator bool() const { return data_ != nullptr; }
  void fill(std::uint8_t byte) const;

 private:
  friend class HostMemory;
  void swap(Buffer& o) noexcept;
  HostMemory* memory_ = nullptr;
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t bus_ = 0;
  std::vector<std::uint64_t> pages_;
};

class HostMemory {
 public:
  static constexpr std::uint64_t kBusBase = 4ULL << 30;  // bus address of the arena's first byte

  // size: bytes, rounded up to pages; memory is taken from the system when it is touched first.
  explicit HostMemory(std::size_t size);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // Zeroed pages; align: a power of two, at least kPage. Throws std::bad_alloc when none are left.
  Buffer allocate(std::size_t size, std::size_t align = kPage);
  // As allocate(), but no two consecutive pages are adjacent on the bus.
  Buffer allocate_scattered(std::size_t size);

  // DMA of the HCA. False: refused (outside the arena, faulting page, free page).
  bool dma_read(std::uint64_t bus, void* dst, std::size_t len);
  bool dma_write(std::uint64_t bus, const void* src, std::size_t len);
  // The bytes' address if the HCA may access them; else null.
  std::uint8_t* dma_map(std::uint64_t bus, std::size_t len, bool write);
  // From now on DMA to the pages of [bus, bus + len) is refused, or accepted again.
  void set_faulting(std::uint64_t bus, std::size_t len, bool on);
  // Bus master enable of the PCI function: while off, all DMA is refused.
  void set_bus_master(bool on);

  // Hears of what the HCA may access: for functions that are shown this memory by somebody else.
  class Observer {
   public:
    // Whether DMA to [bus, bus + len) is accepted from now on.
    virtual void accessible(std::uint64_t bus, std::size_t len, bool on) = 0;
    virtual void bus_master(bool on) = 0;

   protected:
    ~Observer() = default;
  };
  // It hears first of all that is accessible now.
  void add_observer(Observer& observer);
  void remove_observer(Observer& observer);
  // The file that holds the arena, from its first byte on.
  int fd() const { return fd_; }

  // The CPU's view of a bus address; null outside of the arena.
  std::uint8_t* at(std::uint64_t bus) const {
    return bus >= kBusBase && bus - kBusBase < size_ ? base_ + (bus - kBusBase) : nullptr;
  }
  std::size_t size() const { return size_; }
  std::size_t pages_in_use() const { return in_use_; }
  // Accesses to pages that were free: use after free by the device. Refused accesses of all kinds.
  std::uint64_t stray_reads() const { return stray_reads_; }
  std::uint64_t stray_writes() const { return stray_writes_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  friend class Buffer;
  enum PageState : std::uint8_t { kFree = 0, kUsed = 1, kFaulting = 2 };

  std::size_t take(std::size_t pages, std::size_t align_pages);
  void give(std::size_t first, std::size_t pages);
  void release(Buffer& b);
  bool check(std::uint64_t bus, std::size_t len, std::uint64_t& strays);
  void set_state(std::size_t first, std::size_t pages, PageState state);

  int fd_ = -1;
  std::uint8_t* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t in_use_ = 0;
  std::size_t fresh_ = 0;  // pages from here on have never been anybody's: the system has them as zeros
  bool bus_master_ = true;
  std::vector<std::uint8_t> state_;          // by page
  std::map<std::size_t, std::size_t> free_;  // first page -> pages
  std::vector<Observer*> observers_;
  std::uint64_t stray_reads_ = 0, stray_writes_ = 0, refused_ = 0, bytes_read_ = 0, bytes_written_ = 0;
};

}  // namespace hcasim::bare
#endif
