// SPDX-License-Identifier: BSD-3-Clause
// A link through shared memory. The socket finds the other end, carries the hellos and tells that the other
// end has gone, or why it closes; the rest goes through two rings. The bell, a pair of sockets, is rung only
// for an end that sleeps.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstring>

#include "wire/link_impl.h"

namespace hcasim::wire {

namespace {

constexpr std::size_t kFiles = 2;  // memory, the taker's half of the bell
constexpr int kMostRings = 4;      // reads for them; a bell is full with fewer
constexpr std::size_t kMostFiles = 8;
constexpr std::size_t kAside = 4096;
constexpr std::size_t kMostHeld = Rings::kBytes / 8;  // bytes of runs that the owner may still look at

union FilesMessage {
  cmsghdr header;
  char bytes[CMSG_SPACE(kMostFiles * sizeof(int))];
};

error_code last_error() { return {errno, boost::system::system_category()}; }

}  // namespace

// The memory of a guest goes past here: nobody else's business.
std::string Link::Impl::stranger() const {
  ucred peer{};
  socklen_t len = sizeof peer;
  const int fd = const_cast<Impl*>(this)->socket.native_handle();
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
    return "the other end's user is unknown: " + last_error().message();
  if (peer.uid != ::geteuid() && peer.uid != 0 && ::geteuid() != 0)
    return "the other end belongs to another user (" + std::to_string(peer.uid) + ")";
  return "";
}

std::string Link::Impl::make_memory() {
  std::string why;
  std::unique_ptr<Rings> made = Rings::make(why);
  if (!made) return why;
  int halves[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, halves) != 0)
    return "no pair of sockets: " + last_error().message();
  bell.assign(halves[0]);
  far_half = halves[1];
  why = make_again();
  if (why.empty()) rings = std::move(made);
  return why;
}

std::string Link::Impl::make_again() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return "no eventfd: " + last_error().message();
  again.assign(fd);
  return "";
}

// The files of the other end's hello, which this one has connected to. Whoever made the memory is offered
// none.
std::string Link::Impl::take_memory() {
  if (rings) return files.empty() ? "" : "both ends have made memory";
  if (files.size() != kFiles) return "it has passed " + std::to_string(files.size()) + " files instead of 2";
  std::string why;
  std::unique_ptr<Rings> taken = Rings::take(files[0], why);
  if (!taken) return why;
  const auto option = [this](int name) {
    int value = -1;
    socklen_t len = sizeof value;
    return ::getsockopt(files[1], SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
  };
  if (option(SO_DOMAIN) != AF_UNIX || option(SO_TYPE) != SOCK_STREAM)
    return "its bell is none: no stream socket of this machine";
  error_code ec;
  bell.assign(files[1], ec);
  if (ec) return "its bell cannot be used: " + ec.message();
  files[1] = -1;
  why = make_again();
  if (!why.empty()) return why;
  drop_files();
  rings = std::move(taken);
  return "";
}

void Link::Impl::send_hello_with_files() {
  if (out_head == out_tail) return;
  iovec bytes{out.data() + out_head, out_tail - out_head};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  FilesMessage control{};
  if (rings) {
    const int passed[kFiles] = {rings->file(), far_half};
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof passed);
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof passed);
    std::memcpy(CMSG_DATA(c), passed, sizeof passed);
  }
  ssize_t n = 0;
  do n = ::sendmsg(socket.native_handle(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  // A fresh socket has room for a hello. If it has none it is not one to wait for: read() finds out why.
  out_head = out_tail;
  if (n >= 0 && rings) {
    rings->forget_file();
    forget_far_half();
  }
}

std::size_t Link::Impl::read_with_files(error_code& ec) {
  iovec bytes{in.data() + in_tail, in.size() - in_tail};
  FilesMessage control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t n = ::recvmsg(socket.native_handle(), &message, MSG_CMSG_CLOEXEC);
  if (n < 0) {
    ec = last_error();
    return 0;
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      if (files.size() < kMostFiles)
        files.push_back(fd);
      else
        ::close(fd);
    }
  }
  if (n == 0) ec = asio::error::eof;
  return static_cast<std::size_t>(n);
}

void Link::Impl::drop_files() {
  for (const int fd : files)
    if (fd >= 0) ::close(fd);
  files.clear();
}

void Link::Impl::drop_memory() {
  drop_files();
  if (runs_taken) owner.wire_settle();
  runs_taken = false;
  forget(*this, on_bell);
  forget(*this, on_again);
  bell.close(found_ignored);
  again.close(found_ignored);
  forget_far_half();
  goes_on = bell_gone = false;
  rings.reset();
  through_memory = look_at_socket = in_memory = peer_runs = false;
  unpublished = 0;
  aside.clear();
}

void Link::Impl::forget_far_half() {
  if (far_half >= 0) ::close(far_half);
  far_half = -1;
}

// No flag of a descriptor's is relied on: it may be the other end's, too.
void Link::Impl::ring() {
  const char one = 1;
  // If it is full, it has been rung already.
  (void)!::send(bell.native_handle(), &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Link::Impl::go_on() {
  const std::uint64_t one = 1;
  goes_on = ::write(again.native_handle(), &one, sizeof one) == sizeof one;
}

bool Link::Impl::bell_rang() {
  bool rang = goes_on;
  std::uint64_t times = 0;
  if (goes_on) (void)!::read(again.native_handle(), &times, sizeof times);
  goes_on = false;
  char many[512];
  for (int i = 0; i < kMostRings; ++i) {
    const ssize_t n = ::recv(bell.native_handle(), many, sizeof many, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && !later(last_error()))) bell_gone = true;
    rang = rang || n > 0;
    if (n < static_cast<ssize_t>(sizeof many)) break;
  }
  return rang;
}

void Link::Impl::write_memory() {
  bool wake = false;
  if (unsent()) sent_at = now;
  while (out_head < out_tail) {
    const std::size_t n = std::min(out_tail - out_head, rings->room());
    if (n == 0) {
      wake = rings->publish() || wake;
      if (rings->wait_for_room()) break;
      continue;
    }
    std::memcpy(rings->end(), out.data() + out_head, n);
    rings->wrote(n);
    out_head += n;
  }
  wake = rings->publish() || wake;
  unpublished = 0;
  blocked = out_head < out_tail;
  if (wake) ring();
}

// One message. The other end can change it at any time: its header is looked at in a copy, and so is what
// comes with it, except for runs, whose receiver reads each byte once.
bool Link::Impl::read_memory() {
  if (coupled_up() && (!pulling || marked)) return false;
  const std::size_t n = rings->available();
  if (rings->broken()) {
    close(kError, "the other end has written nonsense into the shared memory; closed",
          "nonsense in the memory");
    return false;
  }
  read_out = n < kHeaderBytes;
  if (read_out) return false;
  std::uint8_t header[kHeaderBytes];
  std::memcpy(header, rings->begin(), sizeof header);
  Message m;
  std::size_t used = 0;
  const char* why = nullptr;
  if (parse(header, sizeof header, false, m, used, why) == Parsed::kMalformed) {
    close(kError, std::string("the other end sent ") + why + "; closed", why);
    return false;
  }
  read_out = used > n;
  if (read_out) return false;
  m.len = used - kHeaderBytes;
  m.body = rings->begin() + kHeaderBytes;
  if (m.type != Type::kRun) m.body = static_cast<std::uint8_t*>(std::memcpy(in.data(), m.body, m.len));
  take(m);
  if (!through_memory) return false;
  received_at = now;
  count(used);
  rings->took(used);
  runs_taken = runs_taken || m.type == Type::kRun;
  // Runs stay until their owner has done with them; but not so long that the other end has to wait.
  if (!runs_taken || rings->taken() > kMostHeld) free_memory();
  return true;
}

void Link::Impl::free_memory() {
  if (runs_taken) owner.wire_settle();
  runs_taken = false;
  if (through_memory && rings->taken() != 0 && rings->free_taken()) ring();
}

void Link::Impl::read_socket() {
  look_at_socket = false;
  const std::size_t had = aside.size();
  aside.resize(kAside);
  error_code ec;
  const std::size_t n =
      had < kAside ? socket.read_some(asio::buffer(aside.data() + had, kAside - had), ec) : 0;
  aside.resize(had + n);
  const bool gone = bell_gone || (ec && !later(ec));
  if (ec && !gone) return;
  // What it has sent before is taken still, however often that has to be gone on with.
  while (gone && !held && !marked && through_memory && read_bytes < kReadAtOnce && read()) {
  }
  if (!through_memory || marked) return;
  if (gone && !read_out) {
    look_at_socket = true;
    return;
  }
  if (!ec) take_aside();
  if (gone && through_memory) close(kWarning, "the other end has gone", "");
}

// A bye is all that may come there.
void Link::Impl::take_aside() {
  Message m;
  std::size_t used = 0;
  const char* why = nullptr;
  const Parsed parsed = parse(aside.data(), aside.size(), true, m, used, why);
  if (parsed == Parsed::kMore && aside.size() < kAside) return;
  if (parsed != Parsed::kMessage || m.type != Type::kBye)
    return close(kError, "the other end sent something beside the shared memory; closed",
                 "not by the socket");
  take(m);
}

// After the messages were read. look: nobody has rung, so it may be the socket that has something.
void Link::Impl::poll_memory(bool look) {
  if ((look || bell_gone) && !held) read_socket();
  if (!through_memory || held) return;
  // More than is taken at a time, or it came just now.
  if (!sleep()) go_on();
}

// From here on the other end wakes this one. False: something is to be read, or may be. Part of a message is
// nothing: who goes on with it wakes this end.
bool Link::Impl::sleep() { return read_out && rings->sleep(); }

void Link::Impl::wait_memory(int milliseconds) {
  if (!sleep()) return;
  pollfd p[2] = {{socket.native_handle(), POLLIN, 0}, {bell.native_handle(), POLLIN, 0}};
  if (::poll(p, 2, milliseconds) <= 0) return;
  if (p[1].revents != 0) bell_rang();
  look_at_socket = p[0].revents != 0 || bell_gone;
}

}  // namespace hcasim::wire
