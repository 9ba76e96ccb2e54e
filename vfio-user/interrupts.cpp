// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/interrupts.h"

#include <poll.h>

#include <cerrno>
#include <string>

#include "vfio-user/bounded_write.h"

namespace hcasim::vfio_user {

// An eventfd adds up what is written to it. One that is full would make its writer wait, and has said already
// what there is to say. A client that fills it between the look and the write, and has it wait, means harm.
void Interrupts::add_one(Descriptor& file) {
  const int fd = file.get();
  const std::uint64_t one = 1;
  pollfd room{fd, POLLOUT, 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
  if (!bounded_write(fd, &one, sizeof one) && errno == EINTR) file.close();
}

bool Interrupts::is_eventfd(const Descriptor& file) {
  char target[64] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  const ssize_t n = ::readlink(link.c_str(), target, sizeof target - 1);
  return n > 0 && std::string(target) == "anon_inode:[eventfd]";
}

void Interrupts::set(unsigned vector, Descriptor file) {
  if (vector >= files_.size()) return;
  files_[vector] = std::move(file);
  const std::uint64_t bit = 1ull << vector;
  if (files_[vector] && (pending_ & bit) != 0) {
    pending_ &= ~bit;
    add_one(files_[vector]);
  }
}

bool Interrupts::signal(unsigned vector) {
  if (vector >= files_.size()) return false;
  if (files_[vector]) {
    add_one(files_[vector]);
    return true;
  }
  pending_ |= 1ull << vector;
  return false;
}

void Interrupts::set_pending(std::uint64_t pending) {
  pending_ = 0;
  for (unsigned vector = 0; vector < files_.size() && vector < 64; ++vector)
    if ((pending >> vector & 1) != 0) signal(vector);
}

void Interrupts::clear() {
  for (Descriptor& file : files_) file.close();
  pending_ = 0;
}

}  // namespace hcasim::vfio_user
