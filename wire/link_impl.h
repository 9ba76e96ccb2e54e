// SPDX-License-Identifier: BSD-3-Clause
// Implementation of a link: finding the other end (link_connect.cpp), the data (link.cpp), and how it goes
// through shared memory (link_shared.cpp).
#ifndef HCASIM_WIRE_LINK_IMPL_H
#define HCASIM_WIRE_LINK_IMPL_H

#include <sys/types.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wire/link.h"
#include "wire/protocol.h"
#include "wire/rings.h"

namespace hcasim::wire {

namespace asio = boost::asio;
using boost::system::error_code;
using Stream = asio::generic::stream_protocol;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRetry = kSecond / 2;      // between attempts to find the other end
constexpr std::int64_t kLongRetry = 5 * kSecond;  // after it was refused
constexpr std::int64_t kKeepalive = 2 * kSecond;  // sent after this long without traffic
constexpr std::size_t kReadBuffer = std::size_t{1} << 20;
constexpr std::size_t kReadAtOnce = std::size_t{4} << 20;  // bytes per poll(), look(), pull()
constexpr std::size_t kLeastRead = 1024;  // that a message counts for: a short one's owner keeps more of it

enum : int { kError = 0, kWarning = 1, kInfo = 2 };

// EINTR and "would block" are not errors.
inline bool later(const error_code& ec) {
  return ec == asio::error::would_block || ec == asio::error::try_again || ec == asio::error::interrupted ||
         ec == asio::error::in_progress;
}

// Identity of a file, to check whether a path still names the same one.
struct FileId {
  dev_t dev = 0;
  ino_t ino = 0;
  bool operator==(const FileId& o) const { return dev == o.dev && ino == o.ino; }
};

struct Link::Impl {
  enum class State { kIdle, kListening, kConnecting, kGreeting, kUp, kFinished };

  Impl(const Address& address, const Hello& own, Owner& owner);
  ~Impl();

  // ---- link_connect.cpp: descriptors ----

  struct Watch {
    int fd = -1;
    bool read = false, write = false;
  };
  void watch(Watch& w, int fd, bool read, bool write) {
    if (w.fd == fd && w.read == read && w.write == write) return;
    w = Watch{fd, read, write};
    owner.wire_watch(fd, read, write);
  }
  static void forget(Impl& self, Watch& w) {
    if (w.fd >= 0 && (w.read || w.write)) self.owner.wire_watch(w.fd, false, false);
    w = Watch{};
  }
  void watch_socket();

  bool coupled_up() const { return own.coupled && state == State::kUp; }
  bool looks() const { return state == State::kUp && through_memory && !held && !own.coupled; }
  void log(int level, const std::string& line);

  // ---- finding the other end ----

  // What the address stands for.
  struct Lookup;
  void look_up_beside();
  // False: it is not known (yet), and is looked for again at the deadline.
  bool know_targets();
  void find_peer();
  void connect_failed(const error_code& ec);
  void finish_connect();
  // `found`: result of connect().
  void listen(const error_code& found);
  void listen_at_file(error_code& ec);
  std::string listen_at_port(const Stream::endpoint& at, error_code& ec);
  void bind_to(const Stream::endpoint& at, error_code& ec);
  void tell_nobody_listens();
  void stop_listening();
  // The file may have been removed, or replaced by a process that believed us gone.
  void check_file();
  // Cheaper than an accept() that finds no connection.
  bool connection_pending();
  void accept_all();
  bool other_end_is_gone();
  // Nothing is read of the other end, which is to stay: it has this end's hello, and hears that it lives.
  void go_on_greeting();
  static void send_refusal(asio::basic_stream_socket<Stream>& to, const std::string& why);
  // accepted: it was the other end that has connected.
  void greet(bool accepted);

  // ---- the end of a connection ----

  void drop_socket();
  void retry(std::int64_t after);
  // reason: sent to the peer; empty: it knows.
  void close(int level, const std::string& line, const std::string& reason, std::int64_t after = kRetry);

  // ---- link.cpp: bytes ----

  // Where to put that many bytes, which are sent after appended(); null: there is no room.
  std::uint8_t* append(std::size_t bytes);
  void appended(std::size_t bytes);
  bool unsent() const { return out_head < out_tail || unpublished != 0; }
  // A broken connection is detected by read(), so that what the peer sent before is still read.
  void write();
  void send_small(Type type, const std::uint8_t* body, std::size_t len);
  // One read, and the messages in it. False: nothing more for now.
  bool read();
  // Until kReadAtOnce is reached; `unparsed` then.
  void parse_all();
  void count(std::size_t message) {
    read_bytes += std::max(message, kLeastRead);
    pulled += message;
  }
  void take(const Message& m);
  void hello(const Message& m);
  void send_wish();
  // ---- link_shared.cpp: through shared memory, once both hellos have passed through the socket ----

  // The end that accepts makes the memory and the bell, and passes the memory and one half of the bell with
  // its hello. "" or why the connection ends.
  std::string make_memory();
  std::string take_memory();
  std::string stranger() const;
  void send_hello_with_files();
  // As a read from the socket: bytes to the end of `in`, and the files that came with them.
  std::size_t read_with_files(error_code& ec);
  void drop_files();
  void forget_far_half();
  void drop_memory();
  void free_memory();
  void write_memory();
  bool read_memory();
  // From the socket, beside the memory: why the other end closes, or that it is gone.
  void read_socket();
  void take_aside();
  void poll_memory(bool look);
  void wait_memory(int milliseconds);
  bool sleep();
  std::string make_again();
  // The other end has rung, or this one wants to go on.
  bool bell_rang();
  void ring();
  void go_on();

  // Does the work that is due; returns when to be called again.
  std::int64_t poll_once();

  const Address address;
  Hello own;
  Owner& owner;
  asio::io_context io{1};
  asio::basic_stream_socket<Stream> socket{io};
  asio::basic_socket_acceptor<Stream> acceptor{io};
  std::unique_ptr<Rings> rings;  // null: not (yet)
  // A half of a pair of sockets: by a byte, an end wakes the other one that sleeps. Never one descriptor for
  // both: whoever shares it decides whether it blocks.
  asio::posix::stream_descriptor bell{io};
  int far_half = -1;                               // until it is passed
  asio::posix::stream_descriptor again{io};        // an eventfd of this end alone: there is more to be read
  bool goes_on = false, bell_gone = false;         // again is set; the other end's half is closed
  std::vector<int> files;                          // that were passed, and have no owner yet
  std::vector<std::uint8_t> aside;                 // from the socket, beside the memory
  bool read_out = false;                           // no whole message was in the memory when it was read last
  bool through_memory = false, in_memory = false;  // in_memory: what append() gave lies there
  bool look_at_socket = false, peer_runs = false, runs_taken = false;
  std::size_t unpublished = 0;
  error_code found_ignored;
  std::vector<Stream::endpoint> targets;
  std::shared_ptr<Lookup> lookup;  // null: the last one's result was taken
  std::size_t next_target = 0;
  std::optional<FileId> file;
  Watch on_socket, on_acceptor, on_bell, on_again;
  State state = State::kIdle;
  std::int64_t now = 0, deadline = 0, received_at = 0, sent_at = 0;
  bool held = false, blocked = false;
  Wish announced;
  bool pulling = false, marked = false, refused = false;
  std::string last_logged;
  bool absence_told = false;  // of the other end, since it was there last
  std::vector<std::uint8_t> out, in;
  std::size_t out_head = 0, out_tail = 0, in_head = 0, in_tail = 0;
  std::size_t read_bytes = 0, pulled = 0;
  bool unparsed = false;  // `in` may hold whole messages
  std::uint64_t lost = 0;
};

}  // namespace hcasim::wire
#endif
