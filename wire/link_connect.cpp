// SPDX-License-Identifier: BSD-3-Clause
// Finding the other end of a link, the handshake, and giving it up.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>

#include "wire/link_impl.h"

namespace hcasim::wire {

namespace {

constexpr std::int64_t kGreeting = 5 * kSecond;  // time limit for its hello
constexpr std::int64_t kLookAtLookup = kSecond / 20;
constexpr int kSocketBuffer = 4 << 20;

bool no_listener(const error_code& ec) {
  return ec == asio::error::connection_refused || ec == boost::system::errc::no_such_file_or_directory;
}

std::uint64_t random_number() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

asio::ip::tcp::endpoint tcp_endpoint(const Stream::endpoint& at) {
  asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), at.data(), std::min(at.size(), tcp.capacity()));
  tcp.resize(std::min(at.size(), tcp.capacity()));
  return tcp;
}

// "192.0.2.1:9000", "[fe80::1]:9000"
std::string text_of(const Stream::endpoint& at) {
  const asio::ip::tcp::endpoint tcp = tcp_endpoint(at);
  const std::string host = tcp.address().to_string();
  return (tcp.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(tcp.port());
}

std::vector<Stream::endpoint> endpoints(const Address& address, error_code& ec) {
  if (!address.tcp) return {asio::local::stream_protocol::endpoint(address.path)};
  const asio::ip::address numeric = asio::ip::make_address(address.host, ec);
  if (!ec) return {asio::ip::tcp::endpoint(numeric, address.port)};
  std::vector<Stream::endpoint> list;
  asio::io_context io{1};
  asio::ip::tcp::resolver resolver(io);
  for (const auto& entry : resolver.resolve(address.host, std::to_string(address.port), ec)) {
    list.emplace_back(entry.endpoint());
  }
  return list;
}

std::optional<FileId> socket_file(const std::string& path) {
  struct stat s {};
  if (lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode)) return std::nullopt;
  return FileId{s.st_dev, s.st_ino};
}

}  // namespace

struct Link::Impl::Lookup {
  void run(const Address& address) noexcept {
    std::vector<Stream::endpoint> found;
    error_code ec;
    try {
      found = endpoints(address, ec);
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    } catch (...) {
      ec = asio::error::no_memory;
    }
    finish(std::move(found), ec);
  }
  void finish(std::vector<Stream::endpoint> found, const error_code& ec) {
    const std::lock_guard<std::mutex> lock(mutex_);
    found_ = std::move(found);
    ec_ = ec;
    done_ = true;
  }
  // False: it goes on.
  bool take(std::vector<Stream::endpoint>& found, error_code& ec) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!done_) return false;
    found = std::move(found_);
    ec = ec_;
    return true;
  }

 private:
  std::mutex mutex_;
  bool done_ = false;
  std::vector<Stream::endpoint> found_;
  error_code ec_;
};

Link::Impl::Impl(const Address& a, const Hello& h, Owner& o) : address(a), own(h), owner(o) {
  own.instance = random_number();
  own.shared = address.shared;
  own.runs = own.runs && address.shared;
  out.resize(kReadBuffer);
  in.resize(kReadBuffer);
  lookup = std::make_shared<Lookup>();
  lookup->run(address);
}

Link::Impl::~Impl() {
  drop_socket();
  stop_listening();
}

void Link::Impl::watch_socket() {
  if (!socket.is_open()) return;
  if (state == State::kConnecting) return watch(on_socket, socket.native_handle(), false, true);
  const bool reads = !held && !coupled_up();
  watch(on_socket, socket.native_handle(), reads, blocked && !coupled_up() && !through_memory);
  if (bell.is_open()) watch(on_bell, bell.native_handle(), reads && through_memory, false);
  if (again.is_open()) watch(on_again, again.native_handle(), reads && through_memory, false);
}

void Link::Impl::log(int level, const std::string& line) {
  if (line == last_logged) return;  // once, not at each attempt
  last_logged = line;
  owner.wire_log(level, "wire " + address.text + ": " + line);
}

void Link::Impl::look_up_beside() {
  lookup = std::make_shared<Lookup>();
  sigset_t all, before;
  sigfillset(&all);  // signals are this program's other threads' to take
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    // Nobody could end it while it waits for an answer: it may outlive this link.
    std::thread([of = address, to = lookup] { to->run(of); }).detach();
  } catch (const std::system_error& e) {
    lookup->finish({}, error_code(e.code().value(), boost::system::system_category()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Link::Impl::know_targets() {
  if (!targets.empty()) return true;
  if (!lookup) look_up_beside();
  error_code ec;
  if (!lookup->take(targets, ec)) {
    retry(kLookAtLookup);
    return false;
  }
  lookup.reset();
  if (!targets.empty()) return true;
  log(kError, "cannot find " + address.host + ": " + ec.message());
  retry(kLongRetry);
  return false;
}

void Link::Impl::find_peer() {
  if (!know_targets()) return;
  const Stream::endpoint& to = targets[next_target++ % targets.size()];
  error_code ec;
  socket.open(to.protocol(), ec);
  if (!ec) socket.non_blocking(true, ec);
  if (ec) {
    log(kError, "no socket: " + ec.message());
    drop_socket();
    return retry(kLongRetry);
  }
  // Not socket.connect(), which blocks.
  if (::connect(socket.native_handle(), to.data(), static_cast<socklen_t>(to.size())) == 0) {
    return greet(false);
  }
  ec.assign(errno, boost::system::system_category());
  if (ec == asio::error::in_progress) {
    state = State::kConnecting;
    deadline = now + kGreeting;
    return watch_socket();
  }
  connect_failed(ec);
}

void Link::Impl::connect_failed(const error_code& ec) {
  drop_socket();
  if (no_listener(ec)) return listen(ec);
  if (!later(ec)) log(kWarning, "the other end cannot be reached: " + ec.message());
  retry(kRetry);
}

void Link::Impl::finish_connect() {
  int error = 0;
  socklen_t len = sizeof error;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
  if (error != 0) return connect_failed(error_code(error, boost::system::system_category()));
  error_code ec;
  socket.remote_endpoint(ec);
  if (ec) return;  // not yet
  greet(false);
}

void Link::Impl::listen(const error_code& found) {
  const Stream::endpoint& at = targets[(next_target - 1) % targets.size()];
  // A socket file without a listener was left behind by a process that is gone.
  if (!address.tcp && found == asio::error::connection_refused) {
    if (!socket_file(address.path)) {
      log(kError, "there is something else than a socket");
      return retry(kLongRetry);
    }
    ::unlink(address.path.c_str());
  }
  error_code ec;
  std::string where;
  if (address.tcp) {
    where = " at " + listen_at_port(at, ec);
  } else {
    acceptor.open(at.protocol(), ec);
    if (!ec) listen_at_file(ec);
  }
  if (!ec) acceptor.non_blocking(true, ec);
  if (ec) {
    acceptor.close(found_ignored);
    // Another process was faster, or HOST is another machine: try to connect again.
    const bool elsewhere = address.tcp && ec == boost::system::errc::address_not_available;
    const bool usual = elsewhere || ec == asio::error::address_in_use;
    if (!usual) log(kError, "cannot listen: " + ec.message());
    if (elsewhere) tell_nobody_listens();
    return retry(usual ? kRetry : kLongRetry);
  }
  watch(on_acceptor, acceptor.native_handle(), true, false);
  log(kInfo, "waiting for the other end" + where);
  state = State::kListening;
  deadline = kNever;
}

// An address in digits is listened at as it is. A name stands for the machine: its own /etc/hosts may have it
// as 127.0.1.1, which no other machine gets to, and of addresses of two families others may reach the other
// one. So where `at` is this machine's, all of its addresses are listened at. Returns which.
std::string Link::Impl::listen_at_port(const Stream::endpoint& at, error_code& ec) {
  std::string where = text_of(at);
  bind_to(at, ec);
  error_code not_digits;
  (void)asio::ip::make_address(address.host, not_digits);
  const bool loopback = address.host.find("localhost") != std::string::npos;
  if (!ec && not_digits && !loopback) {
    where = "port " + std::to_string(address.port) + " of all addresses of this machine";
    bind_to(asio::ip::tcp::endpoint(asio::ip::tcp::v6(), address.port), ec);  // of IPv4 as well
    if (ec == asio::error::address_family_not_supported)
      bind_to(asio::ip::tcp::endpoint(asio::ip::tcp::v4(), address.port), ec);
  }
  if (!ec) acceptor.listen(4, ec);
  return where;
}

void Link::Impl::bind_to(const Stream::endpoint& at, error_code& ec) {
  acceptor.close(found_ignored);
  acceptor.open(at.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec && tcp_endpoint(at).address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), ec);
  if (!ec) acceptor.bind(at, ec);
}

// Once for each time that the other end is missing: this end looks every half second.
void Link::Impl::tell_nobody_listens() {
  if (absence_told) return;
  absence_told = true;
  std::string list;
  for (const Stream::endpoint& to : targets) list += (list.empty() ? "" : ", ") + text_of(to);
  log(kInfo, "nobody listens at " + list + " yet; looking for the other end");
}

// The file gets its name only when it is listened at: between bind() and listen() the other end would take it
// for one left behind.
void Link::Impl::listen_at_file(error_code& ec) {
  char own_name[16];
  std::snprintf(own_name, sizeof own_name, ".%06x", static_cast<unsigned>(own.instance & 0xffffff));
  const std::string hidden = address.path + own_name;
  acceptor.bind(asio::local::stream_protocol::endpoint(hidden), ec);
  if (ec) return;
  acceptor.listen(4, ec);
  if (!ec) file = socket_file(hidden);
  if (!ec && ::link(hidden.c_str(), address.path.c_str()) != 0)
    ec = errno == EEXIST ? error_code(asio::error::address_in_use)
                         : error_code(errno, boost::system::system_category());
  ::unlink(hidden.c_str());
  if (ec) file.reset();
}

void Link::Impl::stop_listening() {
  if (!acceptor.is_open()) return;
  forget(*this, on_acceptor);
  acceptor.close(found_ignored);
  if (!address.tcp && file && socket_file(address.path) == file) ::unlink(address.path.c_str());
  file.reset();
}

bool Link::Impl::connection_pending() {
  pollfd p{acceptor.native_handle(), POLLIN, 0};
  return ::poll(&p, 1, 0) > 0;
}

void Link::Impl::accept_all() {
  for (int i = 0; i < 8; ++i) {  // bounded, so that a flood of connections cannot keep us here
    asio::basic_stream_socket<Stream> fresh(io);
    error_code ec;
    acceptor.accept(fresh, ec);
    if (ec) {
      if (!later(ec) && ec != asio::error::connection_aborted) {
        log(kWarning, "cannot accept: " + ec.message());
      }
      return;
    }
    if (held && socket.is_open() && !coupled_up() && other_end_is_gone())
      close(kWarning, "the other end has gone", "");
    if (socket.is_open()) {
      // Whoever has connected before may turn out to be nobody: then this one should come again.
      if (state == State::kUp) send_refusal(fresh, "this wire has two ends already");
      continue;
    }
    socket = std::move(fresh);
    socket.non_blocking(true, ec);
    greet(true);
  }
}

// Without a look at what it has sent before.
bool Link::Impl::other_end_is_gone() {
  pollfd p{socket.native_handle(), POLLRDHUP, 0};
  return ::poll(&p, 1, 0) > 0;
}

void Link::Impl::go_on_greeting() {
  deadline = now + kGreeting;
  if (own.coupled || blocked || now - sent_at < kKeepalive) return;
  sent_at = now;
  if (!address.shared) return send_small(Type::kKeepalive, nullptr, 0);
  // Beside the memory nothing but a bye may come. Who has connected has no memory before it has read of it.
  if (!rings || rings->room() < kHeaderBytes) return;
  put_header(rings->end(), Type::kKeepalive, 0, 0, 0);
  rings->wrote(kHeaderBytes);
  if (rings->publish()) ring();
}

void Link::Impl::send_refusal(asio::basic_stream_socket<Stream>& to, const std::string& why) {
  std::vector<std::uint8_t> message(kHeaderBytes + why.size());
  put_header(message.data(), Type::kBye, 0, 0, why.size());
  std::memcpy(message.data() + kHeaderBytes, why.data(), why.size());
  error_code ec;
  to.non_blocking(true, ec);
  to.write_some(asio::buffer(message), ec);
}

void Link::Impl::greet(bool accepted) {
  const int fd = socket.native_handle();
  for (const int option : {SO_SNDBUF, SO_RCVBUF}) {  // as large as the system allows
    (void)::setsockopt(fd, SOL_SOCKET, option, &kSocketBuffer, sizeof kSocketBuffer);
  }
  if (::geteuid() == 0) {
    for (const int option : {SO_SNDBUFFORCE, SO_RCVBUFFORCE}) {
      (void)::setsockopt(fd, SOL_SOCKET, option, &kSocketBuffer, sizeof kSocketBuffer);
    }
  }
  if (address.tcp) {
    error_code ec;
    socket.set_option(asio::ip::tcp::no_delay(true), ec);
  }
  state = State::kGreeting;
  deadline = now + kGreeting;
  sent_at = now;
  out_head = out_tail = in_head = in_tail = 0;
  blocked = unparsed = false;
  announced = own.wish;
  if (address.shared) {
    std::string why = stranger();
    if (why.empty() && accepted) why = make_memory();
    if (!why.empty()) return close(kError, why + "; closed", why, kLongRetry);
  }
  put_hello(append(kHeaderBytes + kHelloBytes), own, 0);
  appended(kHeaderBytes + kHelloBytes);
  watch_socket();
  write();
}

void Link::Impl::drop_socket() {
  if (!socket.is_open()) return;
  forget(*this, on_socket);
  socket.close(found_ignored);
  drop_memory();
}

void Link::Impl::retry(std::int64_t after) {
  if (state == State::kFinished) return;
  state = acceptor.is_open() ? State::kListening : State::kIdle;
  deadline = acceptor.is_open() ? kNever : now + after;
}

void Link::Impl::close(int level, const std::string& line, const std::string& reason, std::int64_t after) {
  const bool was_up = state == State::kUp;
  if (!reason.empty() && socket.is_open()) send_refusal(socket, reason);
  drop_socket();
  retry(after);
  if (was_up) last_logged.clear();
  log(level, line);
  if (was_up) owner.wire_down();
}

void Link::Impl::check_file() {
  if (address.tcp || state != State::kListening || !file) return;
  if (socket_file(address.path) == file) return;
  file.reset();
  stop_listening();
  retry(0);
}

}  // namespace hcasim::wire
