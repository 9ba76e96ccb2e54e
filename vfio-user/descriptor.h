// SPDX-License-Identifier: BSD-3-Clause
// A file descriptor that is closed with its owner.
#ifndef HCASIM_VFIO_USER_DESCRIPTOR_H
#define HCASIM_VFIO_USER_DESCRIPTOR_H

#include <unistd.h>

#include <utility>

namespace hcasim::vfio_user {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close() { *this = Descriptor(); }

 private:
  int fd_ = -1;
};

}  // namespace hcasim::vfio_user
#endif
