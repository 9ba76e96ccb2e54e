// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/interrupts.h"

#include <fcntl.h>
#include <poll.h>

#include <string>

namespace hcasim::vfio_user {

// An eventfd adds up what is written to it. One that is full would make its writer wait, and has said already
// what there is to say.
void Interrupts::add_one(const Descriptor& file) {
  const int fd = file.get();
  const std::uint64_t one = 1;
  pollfd room{fd, POLLOUT, 0};
  if (::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
    static_cast<void>(!::write(fd, &one, sizeof one));
}

bool Interrupts::is_eventfd(const Descriptor& file) {
  char target[64] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  const ssize_t n = ::readlink(link.c_str(), target, sizeof target - 1);
  return n > 0 && std::string(target) == "anon_inode:[eventfd]";
}

void Interrupts::set(unsigned vector, Descriptor file) {
  if (vector >= files_.size()) return;
  // The client may fill it as well, between a look and the write.
  if (file) ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) | O_NONBLOCK);
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
