// SPDX-License-Identifier: BSD-3-Clause
#include "wire/rings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hcasim::wire {

namespace {

constexpr std::uint64_t kMagic = 0x31676e6972616368;  // "hcaring1"
constexpr std::size_t kPage = 4096, kLine = 64;
constexpr std::size_t kTotal = kPage + 2 * Rings::kBytes;
static_assert(Rings::kBytes % kPage == 0);

using Position = std::atomic<std::uint64_t>;
static_assert(Position::is_always_lock_free && sizeof(Position) == 8);

std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

}  // namespace

// Each in a cache line of its own: writer and reader run on different processors.
struct Rings::Direction {
  alignas(kLine) Position written;
  alignas(kLine) Position read;
  alignas(kLine) std::atomic<std::uint32_t> reader_sleeps;
  alignas(kLine) std::atomic<std::uint32_t> writer_waits;
};

struct Rings::Shared {
  std::uint64_t magic, bytes;
  Direction direction[2];  // [0] is the maker's outward
};

std::unique_ptr<Rings> Rings::make(std::string& why) {
  static_assert(sizeof(Shared) <= kPage);
  const int file = memfd_create("hcasim-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) {
    why = failed("no shared memory");
    return nullptr;
  }
  std::unique_ptr<Rings> rings(new Rings(file, true));
  if (ftruncate(file, static_cast<off_t>(kTotal)) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    why = failed("no shared memory");
    return nullptr;
  }
  if (!rings->map(why)) return nullptr;
  rings->shared_->magic = kMagic;
  rings->shared_->bytes = kBytes;
  return rings;
}

std::unique_ptr<Rings> Rings::take(int file, std::string& why) {
  struct stat s {};
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, &s) != 0 ||
      s.st_size != static_cast<off_t>(kTotal)) {
    why = "its memory is not one of a wire";
    return nullptr;
  }
  std::unique_ptr<Rings> rings(new Rings(-1, false));
  rings->file_ = file;
  const bool mapped = rings->map(why);
  rings->file_ = -1;
  if (!mapped) return nullptr;
  if (rings->shared_->magic != kMagic || rings->shared_->bytes != kBytes) {
    why = "its memory has another layout";
    return nullptr;
  }
  return rings;
}

bool Rings::map(std::string& why) {
  void* shared = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (shared == MAP_FAILED) {
    why = failed("cannot map the shared memory");
    return false;
  }
  shared_ = static_cast<Shared*>(shared);
  for (unsigned d = 0; d < 2; ++d) {
    Side& side = (d == 0) == maker_ ? out_ : in_;
    side.shared = &shared_->direction[d];
    // The room for both copies first, so that nothing else can get between.
    void* room = mmap(nullptr, 2 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
      why = failed("cannot map the shared memory");
      return false;
    }
    side.bytes = static_cast<std::uint8_t*>(room);
    for (unsigned copy = 0; copy < 2; ++copy) {
      if (mmap(side.bytes + copy * kBytes, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
               static_cast<off_t>(kPage + d * kBytes)) == MAP_FAILED) {
        why = failed("cannot map the shared memory");
        return false;
      }
    }
  }
  return true;
}

Rings::~Rings() {
  forget_file();
  for (const Side* side : {&out_, &in_})
    if (side->bytes) munmap(side->bytes, 2 * kBytes);
  if (shared_) munmap(shared_, kPage);
}

void Rings::forget_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

std::size_t Rings::unread(std::memory_order order) {
  const std::uint64_t read = out_.shared->read.load(order);
  // The reader goes forward, and not beyond what it was given.
  if (read < out_.other || read > out_.at)
    broken_ = true;
  else
    out_.other = read;
  return static_cast<std::size_t>(out_.at - out_.other);
}

std::size_t Rings::unread() { return unread(std::memory_order_acquire); }

std::size_t Rings::room() { return kBytes - unread(); }

bool Rings::publish() {
  if (out_.shared->written.load(std::memory_order_relaxed) == out_.at) return false;
  // In one order with the flag, or both ends could miss each other: sleep() writes the flag, then reads this.
  out_.shared->written.store(out_.at, std::memory_order_seq_cst);
  return out_.shared->reader_sleeps.load(std::memory_order_seq_cst) != 0 &&
         out_.shared->reader_sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

bool Rings::wait_for_room() {
  // In one order with the flag, as in sleep(): free_taken() writes the position, then reads the flag.
  out_.shared->writer_waits.store(1, std::memory_order_seq_cst);
  if (unread(std::memory_order_seq_cst) >= kBytes) return true;
  out_.shared->writer_waits.store(0, std::memory_order_relaxed);
  return false;
}

std::size_t Rings::available() {
  const std::uint64_t written = in_.shared->written.load(std::memory_order_acquire);
  if (written < in_.other || written - freed_ > kBytes)
    broken_ = true;
  else
    in_.other = written;
  return static_cast<std::size_t>(in_.other - in_.at);
}

bool Rings::free_taken() {
  freed_ = in_.at;
  in_.shared->read.store(in_.at, std::memory_order_seq_cst);
  // A writer that waits is woken when it is worth it.
  if (in_.other - in_.at > kBytes / 2) return false;
  return in_.shared->writer_waits.load(std::memory_order_seq_cst) != 0 &&
         in_.shared->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

bool Rings::waiting() const { return in_.shared->written.load(std::memory_order_acquire) != in_.at; }

bool Rings::grown() const { return in_.shared->written.load(std::memory_order_acquire) != in_.other; }

void Rings::stay_awake() {
  // What is written meanwhile is found by the next look.
  if (in_.shared->reader_sleeps.load(std::memory_order_relaxed) != 0)
    in_.shared->reader_sleeps.store(0, std::memory_order_relaxed);
}

bool Rings::sleep() {
  in_.shared->reader_sleeps.store(1, std::memory_order_seq_cst);
  if (in_.shared->written.load(std::memory_order_seq_cst) == in_.other) return true;
  in_.shared->reader_sleeps.store(0, std::memory_order_relaxed);
  return false;
}

}  // namespace hcasim::wire
