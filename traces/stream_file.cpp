// SPDX-License-Identifier: BSD-3-Clause
#include "traces/stream_file.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "traces/format.h"

namespace hcasim::traces {

namespace {

constexpr std::uint32_t kOpenMagic = 0x314e504f;  // "OPN1"
constexpr std::size_t kHead = 16;                 // bytes of a block's header
constexpr std::size_t kBlock = 256 * 1024;        // raw bytes of a block
constexpr std::size_t kPage = 64 * 1024;          // the largest page size of any machine
constexpr std::size_t kWindow = kBlock + 2 * kPage;
constexpr std::uint32_t kMostRaw = 4 * 1024 * 1024;  // a reader refuses larger blocks

void set_u32(std::uint8_t* p, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(v >> (8 * i));
}

void set_head(std::uint8_t* p, std::uint32_t magic, std::uint32_t raw, std::uint32_t stored,
              std::uint32_t crc) {
  set_u32(p, magic);
  set_u32(p + 4, raw);
  set_u32(p + 8, stored);
  set_u32(p + 12, crc);
}

}  // namespace

// ---- writing ----

std::unique_ptr<StreamWriter> StreamWriter::create(const std::string& path, const char* magic,
                                                   std::uint32_t version, std::string* err) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    *err = std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<StreamWriter> made(new StreamWriter(fd, path));
  std::uint8_t head[kHead];
  std::memcpy(head, magic, 8);
  set_u32(head + 8, version);
  set_u32(head + 12, format::kEndianCheck);
  if (made->write(head, sizeof head) && made->open_block()) return made;
  *err = "cannot be written";
  return nullptr;
}

StreamWriter::StreamWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

StreamWriter::~StreamWriter() { finish(); }

void StreamWriter::fail(const char* what) {
  if (!failed_)
    std::fprintf(stderr, "hcasim: %s: %s: %s; the file ends here\n", path_.c_str(), what,
                 std::strerror(errno));
  failed_ = true;
}

bool StreamWriter::write(const void* bytes, std::size_t len) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  while (len != 0) {
    const ssize_t n = ::pwrite(fd_, from, len, static_cast<off_t>(tail_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fail("cannot write");
      return false;
    }
    from += n;
    len -= static_cast<std::size_t>(n);
    tail_ += static_cast<std::size_t>(n);
  }
  return true;
}

bool StreamWriter::open_block() {
  const std::uint64_t from = tail_ / kPage * kPage;
  // Allocates the space: a store to the mapping could not report a full disk.
  const int rc = ::posix_fallocate(fd_, static_cast<off_t>(from), kWindow);
  if (rc != 0) {
    errno = rc;
    fail("no room");
    return false;
  }
  void* at = ::mmap(nullptr, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(from));
  if (at == MAP_FAILED) {
    fail("cannot be mapped");
    return false;
  }
  window_ = static_cast<std::uint8_t*>(at);
  block_ = window_ + (tail_ - from);
  size_ = 0;
  set_head(block_, kOpenMagic, 0, 0, 0);
  return true;
}

// Replaces the raw bytes with the compressed ones in place.
bool StreamWriter::close_block() {
  if (!window_) return false;
  bool good = true;
  if (size_ != 0) {
    const std::uint8_t* raw = block_ + kHead;
    const std::size_t n = packer_.pack(raw, size_, packed_, kHead);
    set_head(packed_.data(), format::kBlockMagic, size_, static_cast<std::uint32_t>(n),
             libdeflate_crc32(0, raw, size_));
    good = write(packed_.data(), kHead + n);
  }
  ::munmap(window_, kWindow);
  window_ = block_ = nullptr;
  return good;
}

void StreamWriter::put(const void* bytes, std::size_t len) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  while (len != 0 && !failed_ && !finished_) {
    if (size_ == kBlock && !(close_block() && open_block())) return;
    const std::size_t n = std::min(len, kBlock - size_);
    std::memcpy(block_ + kHead + size_, from, n);
    size_ += static_cast<std::uint32_t>(n);
    // The bytes before their count.
    __atomic_signal_fence(__ATOMIC_RELEASE);
    set_u32(block_ + 4, size_);
    from += n;
    len -= n;
  }
}

bool StreamWriter::finish() {
  if (finished_) return !failed_;
  finished_ = true;
  if (close_block() && !failed_) {
    std::uint8_t head[kHead];
    set_head(head, format::kEndMagic, 0, 0, 0);
    if (write(head, sizeof head) && ::ftruncate(fd_, static_cast<off_t>(tail_)) != 0) fail("cannot be cut");
  }
  if (::close(fd_) != 0) fail("cannot write");
  return !failed_;
}

// ---- reading ----

StreamReader::~StreamReader() {
  if (file_ != nullptr) std::fclose(file_);
}

bool StreamReader::open(const std::string& path, const char* magic, std::uint32_t version, std::string* err) {
  const auto refuse = [&](const std::string& what) {
    *err = path + ": " + what;
    return false;
  };
  file_ = std::fopen(path.c_str(), "rbe");
  if (file_ == nullptr) return refuse(std::strerror(errno));
  std::uint8_t head[kHead];
  if (std::fread(head, 1, sizeof head, file_) != sizeof head || std::memcmp(head, magic, 8) != 0)
    return refuse("does not begin with " + std::string(magic, 8));
  if (format::get_u32(head + 12) != format::kEndianCheck) return refuse("written with another byte order");
  const std::uint32_t found = format::get_u32(head + 8);
  if (found != version)
    return refuse("format version " + std::to_string(found) + "; this program reads version " +
                  std::to_string(version));
  return true;
}

bool StreamReader::end(const std::string& why) {
  warning_ = why;
  ended_ = true;
  return false;
}

bool StreamReader::load() {
  if (ended_ || file_ == nullptr) return false;
  raw_.clear();
  at_ = 0;
  const std::string where = "at byte " + std::to_string(std::ftell(file_));
  std::uint8_t head[kHead];
  if (std::fread(head, 1, sizeof head, file_) != sizeof head) return end("it is cut off " + where);
  const std::uint32_t magic = format::get_u32(head), raw = format::get_u32(head + 4),
                      stored = format::get_u32(head + 8), crc = format::get_u32(head + 12);
  if (magic == format::kEndMagic) return end("");
  if (raw > kMostRaw || stored > 2 * kMostRaw) return end("it is damaged " + where);
  if (magic == kOpenMagic) {
    raw_.resize(raw);
    raw_.resize(std::fread(raw_.data(), 1, raw, file_));
    end("the process that wrote it ended without a word");
    return !raw_.empty();
  }
  if (magic != format::kBlockMagic) return end("it is damaged " + where);
  packed_.resize(stored);
  if (std::fread(packed_.data(), 1, stored, file_) != stored) return end("it is cut off " + where);
  raw_.resize(raw);
  if (raw == 0 || !unpacker_.unpack(Packing::kZstd, packed_.data(), stored, raw_.data(), raw) ||
      libdeflate_crc32(0, raw_.data(), raw) != crc) {
    raw_.clear();
    return end("it is damaged " + where);
  }
  return true;
}

bool StreamReader::read(void* to, std::size_t len) {
  auto* out = static_cast<std::uint8_t*>(to);
  while (len != 0) {
    if (at_ == raw_.size() && !load()) return false;
    const std::size_t n = std::min(len, raw_.size() - at_);
    std::memcpy(out, raw_.data() + at_, n);
    at_ += n;
    out += n;
    len -= n;
  }
  return true;
}

}  // namespace hcasim::traces
