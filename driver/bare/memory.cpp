// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace hcasim::bare {

Buffer::~Buffer() {
  if (memory_) memory_->release(*this);
}

void Buffer::swap(Buffer& o) noexcept {
  std::swap(memory_, o.memory_);
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  std::swap(bus_, o.bus_);
  std::swap(pages_, o.pages_);
}

std::vector<std::uint64_t> Buffer::page_list(unsigned log_page) const {
  if (!pages_.empty()) {
    if (log_page != 12) throw std::invalid_argument("a scattered buffer has 4 KiB pages");
    return pages_;
  }
  std::vector<std::uint64_t> out;
  for (std::size_t off = 0; off < size_; off += std::size_t{1} << log_page) out.push_back(bus_ + off);
  return out;
}

void Buffer::fill(std::uint8_t byte) const { std::memset(data_, byte, size_); }

HostMemory::HostMemory(std::size_t size) : size_((size + kPage - 1) / kPage * kPage) {
  fd_ = memfd_create("hcasim-bare", MFD_CLOEXEC);
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size_)) != 0) throw std::bad_alloc();
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::uint8_t*>(p);
  state_.assign(size_ / kPage, kFree);
  free_[0] = size_ / kPage;
}

HostMemory::~HostMemory() {
  if (base_) munmap(base_, size_);
  if (fd_ >= 0) close(fd_);
}

std::size_t HostMemory::take(std::size_t pages, std::size_t align_pages) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const std::size_t first = (it->first + align_pages - 1) / align_pages * align_pages;
    const std::size_t end = it->first + it->second;
    if (first + pages > end) continue;
    const std::size_t start = it->first;
    free_.erase(it);
    if (first > start) free_[start] = first - start;
    if (end > first + pages) free_[first + pages] = end - first - pages;
    set_state(first, pages, kUsed);
    in_use_ += pages;
    return first;
  }
  throw std::bad_alloc();
}

void HostMemory::give(std::size_t first, std::size_t pages) {
  set_state(first, pages, kFree);
  in_use_ -= pages;
  auto next = free_.lower_bound(first);
  if (next != free_.end() && next->first == first + pages) {
    pages += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == first) {
      before->second += pages;
      return;
    }
  }
  free_[first] = pages;
}

Buffer HostMemory::allocate(std::size_t size, std::size_t align) {
  const std::size_t pages = std::max<std::size_t>(1, (size + kPage - 1) / kPage);
  const std::size_t first = take(pages, std::max<std::size_t>(1, align / kPage));
  Buffer b;
  b.memory_ = this;
  b.data_ = base_ + first * kPage;
  b.size_ = pages * kPage;
  b.bus_ = kBusBase + first * kPage;
  // Fresh ones are not touched: many are the device's, which touches few of them.
  if (first < fresh_) std::memset(b.data_, 0, std::min(fresh_ - first, pages) * kPage);
  fresh_ = std::max(fresh_, first + pages);
  return b;
}

Buffer HostMemory::allocate_scattered(std::size_t size) {
  const std::size_t pages = std::max<std::size_t>(1, (size + kPage - 1) / kPage);
  // Allocates twice the pages and frees every other one, so that none are adjacent; then reverses the order.
  const std::size_t run = take(2 * pages, 1);
  fresh_ = std::max(fresh_, run + 2 * pages);
  for (std::size_t i = 0; i < pages; ++i) give(run + 2 * i + 1, 1);
  Buffer b;
  b.memory_ = this;
  b.size_ = pages * kPage;
  for (std::size_t i = 0; i < pages; ++i) b.pages_.push_back(kBusBase + (run + 2 * (pages - 1 - i)) * kPage);
  void* view = mmap(nullptr, b.size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (view == MAP_FAILED) throw std::bad_alloc();
  b.data_ = static_cast<std::uint8_t*>(view);
  for (std::size_t i = 0; i < pages; ++i) {
    void* want = b.data_ + i * kPage;
    if (mmap(want, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
             static_cast<off_t>(b.pages_[i] - kBusBase)) != want)
      throw std::bad_alloc();
  }
  std::memset(b.data_, 0, b.size_);
  return b;
}

void HostMemory::release(Buffer& b) {
  if (b.pages_.empty()) {
    give((b.bus_ - kBusBase) / kPage, b.size_ / kPage);
  } else {
    munmap(b.data_, b.size_);
    for (const std::uint64_t page : b.pages_) give((page - kBusBase) / kPage, 1);
  }
  b.memory_ = nullptr;
}

void HostMemory::set_state(std::size_t first, std::size_t pages, PageState state) {
  const auto begin = state_.begin() + static_cast<std::ptrdiff_t>(first);
  const bool was = *begin == kUsed;  // all of them are alike
  std::fill_n(begin, pages, std::uint8_t{state});
  if (was == (state == kUsed)) return;
  for (Observer* o : observers_) o->accessible(kBusBase + first * kPage, pages * kPage, !was);
}

void HostMemory::add_observer(Observer& observer) {
  observers_.push_back(&observer);
  for (std::size_t p = 0; p < state_.size(); ++p) {
    std::size_t pages = 0;
    while (p + pages < state_.size() && state_[p + pages] == kUsed) ++pages;
    if (pages != 0) observer.accessible(kBusBase + p * kPage, pages * kPage, true);
    p += pages;
  }
  observer.bus_master(bus_master_);
}

void HostMemory::remove_observer(Observer& observer) {
  observers_.erase(std::remove(observers_.begin(), observers_.end(), &observer), observers_.end());
}

void HostMemory::set_bus_master(bool on) {
  bus_master_ = on;
  for (Observer* o : observers_) o->bus_master(on);
}

void HostMemory::set_faulting(std::uint64_t bus, std::size_t len, bool on) {
  if (bus < kBusBase || len == 0) return;
  const std::size_t first = (bus - kBusBase) / kPage, last = (bus - kBusBase + len - 1) / kPage;
  for (std::size_t p = first; p <= last && p < state_.size(); ++p) {
    if (state_[p] != kFree) set_state(p, 1, on ? kFaulting : kUsed);
  }
}

bool HostMemory::check(std::uint64_t bus, std::size_t len, std::uint64_t& strays) {
  const std::uint64_t at = bus - kBusBase;  // wraps to a huge number if bus is below the arena
  if (!bus_master_ || at > size_ || len > size_ - at) {
    ++refused_;
    return false;
  }
  if (len == 0) return true;
  const std::size_t first = at / kPage, last = (at + len - 1) / kPage;
  if (first == last && state_[first] == kUsed) return true;
  for (std::size_t p = first; p <= last; ++p) {
    if (state_[p] == kUsed) continue;
    if (state_[p] == kFree) ++strays;
    ++refused_;
    return false;
  }
  return true;
}

bool HostMemory::dma_read(std::uint64_t bus, void* dst, std::size_t len) {
  if (!check(bus, len, stray_reads_)) return false;
  std::memcpy(dst, base_ + (bus - kBusBase), len);
  bytes_read_ += len;
  return true;
}

std::uint8_t* HostMemory::dma_map(std::uint64_t bus, std::size_t len, bool write) {
  // A refusal is counted when the HCA tries dma_read() or dma_write() instead.
  const std::uint64_t at = bus - kBusBase;
  if (!bus_master_ || len == 0 || at > size_ || len > size_ - at) return nullptr;
  for (std::size_t p = at / kPage; p <= (at + len - 1) / kPage; ++p)
    if (state_[p] != kUsed) return nullptr;
  (write ? bytes_written_ : bytes_read_) += len;
  return base_ + (bus - kBusBase);
}

bool HostMemory::dma_write(std::uint64_t bus, const void* src, std::size_t len) {
  if (!check(bus, len, stray_writes_)) return false;
  std::memcpy(base_ + (bus - kBusBase), src, len);
  bytes_written_ += len;
  return true;
}

}  // namespace hcasim::bare
