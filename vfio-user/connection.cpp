// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hcasim::vfio_user {

Connection::Connection(Descriptor socket) : socket_(std::move(socket)) {}

Connection::Read Connection::end(const std::string& why) {
  broken_ = true;
  why_ = why;
  return Read::kEnd;
}

long Connection::receive(void* to, std::size_t len) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds)];
  iovec piece{to, len};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return -1;
    why_ = std::strerror(errno);
    return 0;
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      message_.files.emplace_back(fd);
    }
  }
  // The kernel closes those that there was no room for.
  if ((message.msg_flags & MSG_CTRUNC) != 0 || message_.files.size() > kMostFds) too_many_ = true;
  return n;
}

Connection::Read Connection::read() {
  if (broken_) return Read::kEnd;
  if (got_ == 0) {
    message_.body.clear();
    message_.files.clear();
  }
  while (true) {
    const bool in_header = got_ < sizeof(Header);
    if (!in_header && got_ == message_.header.size) {
      got_ = 0;
      return Read::kMessage;
    }
    std::uint8_t* const to = in_header ? reinterpret_cast<std::uint8_t*>(&message_.header) + got_
                                       : message_.body.data() + (got_ - sizeof(Header));
    const long n = receive(to, (in_header ? sizeof(Header) : message_.header.size) - got_);
    if (n < 0) return Read::kNothing;
    if (n == 0) return end(!why_.empty() ? why_ : got_ == 0 ? "" : "the connection ended within a message");
    if (too_many_) return end("more than " + std::to_string(kMostFds) + " file descriptors in a message");
    got_ += static_cast<std::size_t>(n);
    if (!in_header || got_ < sizeof(Header)) continue;
    const std::uint32_t size = message_.header.size;
    if (size < sizeof(Header) || size > kMostMessage)
      return end("a message of " + std::to_string(size) + " bytes; allowed are " +
                 std::to_string(sizeof(Header)) + " to " + std::to_string(kMostMessage));
    message_.body.resize(size - sizeof(Header));
  }
}

void Connection::send(const Header& header, const void* first, std::size_t first_len, const void* second,
                      std::size_t second_len) {
  if (broken_) return;
  iovec pieces[] = {{const_cast<Header*>(&header), sizeof header},
                    {const_cast<void*>(first), first_len},
                    {const_cast<void*>(second), second_len}};
  std::size_t sent = 0;
  if (unsent_.empty()) {
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 3;
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      end(std::strerror(errno));
      return;
    }
    sent = n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  for (const iovec& piece : pieces) {
    if (sent >= piece.iov_len) {
      sent -= piece.iov_len;
      continue;
    }
    const auto* bytes = static_cast<const std::uint8_t*>(piece.iov_base);
    unsent_.insert(unsent_.end(), bytes + sent, bytes + piece.iov_len);
    sent = 0;
  }
}

bool Connection::flush() {
  while (!unsent_.empty() && !broken_) {
    const ssize_t n = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) return true;
      end(std::strerror(errno));
      break;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + n);
  }
  return !broken_;
}

bool Connection::command(const Header& header, const void* body, std::size_t len, const int* files,
                         unsigned count) {
  iovec pieces[] = {{const_cast<Header*>(&header), sizeof header}, {const_cast<void*>(body), len}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds)] = {};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  if (count != 0 && count <= kMostFds) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::memcpy(CMSG_DATA(c), files, sizeof(int) * count);
  }
  std::size_t left = sizeof header + len;
  while (left != 0) {
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd ready{socket_.get(), POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (n < 0) return false;
    message.msg_control = nullptr;  // they went with the first byte
    message.msg_controllen = 0;
    left -= static_cast<std::size_t>(n);
    auto done = static_cast<std::size_t>(n);
    for (iovec& piece : pieces) {
      const std::size_t here = std::min(done, piece.iov_len);
      piece.iov_base = static_cast<std::uint8_t*>(piece.iov_base) + here;
      piece.iov_len -= here;
      done -= here;
    }
  }
  return true;
}

}  // namespace hcasim::vfio_user
