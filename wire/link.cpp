// SPDX-License-Identifier: BSD-3-Clause
#include "wire/link.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "wire/link_impl.h"

namespace hcasim::wire {

namespace {

constexpr std::int64_t kSilence = 15 * kSecond;            // after which the peer is given up
constexpr std::int64_t kHeldRetry = kSecond / 100;         // between looks for what a held link has read
constexpr std::size_t kFlushAt = std::size_t{256} << 10;   // bytes from which on no flush() is awaited
constexpr std::size_t kPublishAt = std::size_t{32} << 10;  // the same in shared memory, where it costs little
// Of coupled ends: more than a link of any rate carries between two meetings.
constexpr std::size_t kCoupledCapacity = std::size_t{256} << 20;

}  // namespace

std::uint8_t* Link::Impl::append(std::size_t bytes) {
  if (out_head == out_tail) out_head = out_tail = 0;
  in_memory = through_memory && out_head == out_tail && rings->room() >= bytes;
  if (in_memory) return rings->end();
  if (out_tail + bytes > out.size()) {
    // Moving pays off only if it frees much room.
    const std::size_t most = own.coupled ? kCoupledCapacity : kCapacity;
    if (out_head >= out.size() / 2 || out.size() == most) {
      std::memmove(out.data(), out.data() + out_head, out_tail - out_head);
      out_tail -= out_head;
      out_head = 0;
    } else {
      out.resize(std::min(most, out.size() * 2));
    }
    if (out_tail + bytes > out.size()) return nullptr;
  }
  return out.data() + out_tail;
}

void Link::Impl::appended(std::size_t bytes) {
  if (in_memory) {
    rings->wrote(bytes);
    unpublished += bytes;
  } else {
    out_tail += bytes;
  }
}

void Link::Impl::write() {
  if (through_memory) return write_memory();
  if (address.shared && state == State::kGreeting) return send_hello_with_files();
  while (out_head < out_tail && socket.is_open()) {
    error_code ec;
    const std::size_t n = socket.write_some(asio::buffer(out.data() + out_head, out_tail - out_head), ec);
    out_head += n;
    if (n != 0) sent_at = now;
    if (ec == asio::error::interrupted) continue;
    if (ec) {
      if (!later(ec)) out_head = out_tail;
      break;
    }
  }
  const bool rest = out_head < out_tail;
  if (rest != blocked) {
    blocked = rest;
    watch_socket();
  }
}

void Link::Impl::send_small(Type type, const std::uint8_t* body, std::size_t len) {
  if (std::uint8_t* p = append(kHeaderBytes + len)) {
    put_header(p, type, 0, 0, len);
    if (len != 0) std::memcpy(p + kHeaderBytes, body, len);
    appended(kHeaderBytes + len);
  }
  write();
}

bool Link::Impl::read() {
  if (through_memory) return read_memory();
  if (in_head > 0) {
    std::memmove(in.data(), in.data() + in_head, in_tail - in_head);
    in_tail -= in_head;
    in_head = 0;
  }
  error_code ec;
  const std::size_t n = address.shared
                            ? read_with_files(ec)
                            : socket.read_some(asio::buffer(in.data() + in_tail, in.size() - in_tail), ec);
  if (ec == asio::error::interrupted) return true;
  if (ec) {
    if (later(ec)) return false;
    close(state == State::kUp ? kWarning : kInfo,
          ec == asio::error::eof || ec == asio::error::connection_reset || ec == asio::error::broken_pipe
              ? "the other end has gone"
              : "the connection broke: " + ec.message(),
          "");
    return false;
  }
  in_tail += n;
  received_at = now;
  parse_all();
  // A short read means that the socket is empty.
  return socket.is_open() && in_tail == in.size() && in_head > 0;
}

void Link::Impl::parse_all() {
  unparsed = false;
  while (socket.is_open() && (state == State::kGreeting || state == State::kUp)) {
    if (coupled_up() && (!pulling || marked)) return;
    if (held || read_bytes >= kReadAtOnce) {
      unparsed = in_head < in_tail;
      return;
    }
    Message m;
    std::size_t used = 0;
    const char* why = nullptr;
    switch (parse(in.data() + in_head, in_tail - in_head, state == State::kGreeting, m, used, why)) {
      case Parsed::kMore:
        return;
      case Parsed::kMalformed:
        if (state == State::kGreeting) {
          close(kWarning, std::string("what has connected is no HCA of ours (") + why + "); closed",
                "this is a wire of hcasim", kLongRetry);
        } else {
          close(kError, std::string("the other end sent ") + why + "; closed", why);
        }
        return;
      case Parsed::kMessage:
        in_head += used;
        count(used);
        take(m);
        break;
    }
  }
}

void Link::Impl::take(const Message& m) {
  switch (m.type) {
    case Type::kHello:
      if (state == State::kUp)
        return close(kError, "the other end sent a second hello; closed", "hello twice");
      return hello(m);
    case Type::kFrame:
      return owner.wire_frame(m);
    case Type::kRun: {
      Run run;
      if (!own.runs || !parse_run(m, run))
        return close(kError, "the other end sent a run that is none; closed", "a run that is none");
      return owner.wire_run(run, m.time);
    }
    case Type::kCarrier:
      return owner.wire_wish(parse_wish(m));
    case Type::kMark: {
      const std::string wrong = own.coupled ? owner.wire_mark(parse_mark(m)) : "a mark, but is not coupled";
      if (!wrong.empty()) return close(kError, "the other end sent " + wrong + "; closed", wrong);
      marked = true;
      return;
    }
    case Type::kKeepalive:
      return;
    case Type::kBye: {
      std::string text;
      for (std::size_t i = 0; i < m.len; ++i) {
        const char c = static_cast<char>(m.body[i]);
        text += c >= 0x20 && c < 0x7f ? c : '?';
      }
      refused = true;
      return close(kWarning, "the other end has closed: " + text, "", kLongRetry);
    }
  }
}

void Link::Impl::hello(const Message& m) {
  Hello peer;
  if (!parse_hello(m, peer)) {
    const std::string text = "version " + std::to_string(peer.version) + " of the protocol there, " +
                             std::to_string(kVersion) + " here";
    refused = true;
    return close(kError, text + "; closed", text, kLongRetry);
  }
  if (peer.instance == own.instance) {
    return close(kWarning, "connected to itself; closed", "", kRetry);
  }
  std::string differs;
  if (peer.shared != own.shared)
    differs = std::string("the ends differ: ") + (own.shared ? "this" : "the other") + " one's wire is shm:";
  if (differs.empty() && own.shared) differs = take_memory();
  if (differs.empty()) differs = owner.wire_up(peer);
  if (!differs.empty()) {
    refused = true;
    return close(kError, differs + "; closed", differs, kLongRetry);
  }
  state = State::kUp;
  through_memory = read_out = own.shared;
  peer_runs = peer.runs;
  deadline = kNever;
  received_at = sent_at = now;
  char text[160];
  std::snprintf(text, sizeof text, "joined with %s, node GUID %016" PRIx64, peer.name.c_str(),
                peer.node_guid);
  last_logged.clear();
  absence_told = false;
  log(kInfo, text);
  watch_socket();
  if (!own.coupled && !(own.wish == announced)) send_wish();
  if (!through_memory) return;
  // What came right behind the hello has come beside the memory.
  aside.assign(in.begin() + static_cast<std::ptrdiff_t>(in_head),
               in.begin() + static_cast<std::ptrdiff_t>(in_tail));
  in_head = in_tail = 0;
  take_aside();
}

void Link::Impl::send_wish() {
  std::uint8_t body[kCarrierBytes];
  put_wish(body, own.wish);
  announced = own.wish;
  send_small(Type::kCarrier, body, sizeof body);
}

std::int64_t Link::Impl::poll_once() {
  const bool rang = through_memory && bell_rang();
  // Whoever else wants to join can wait for a turn without a message.
  if (acceptor.is_open() && !rang) {
    check_file();
    if (acceptor.is_open() && connection_pending()) accept_all();
  }
  // A machine that stands still is found by the other one, which it could not answer.
  if (state == State::kIdle && now >= deadline && !held) find_peer();
  if (state == State::kConnecting) {
    finish_connect();
    if (state == State::kConnecting && now >= deadline) {
      close(kWarning, "the other end cannot be reached: no answer", "");
    }
  }
  read_bytes = 0;
  const bool looked = through_memory && !rang;
  if (unparsed && !coupled_up()) parse_all();
  while ((state == State::kGreeting || state == State::kUp) && !held && !coupled_up() &&
         read_bytes < kReadAtOnce && read()) {
  }
  if (through_memory && !coupled_up()) poll_memory(looked);
  if (state == State::kGreeting && held) go_on_greeting();
  if (state == State::kGreeting && now >= deadline) {
    close(kWarning, "what has connected says nothing; closed", "no hello came", kLongRetry);
  }
  if (state == State::kUp || state == State::kGreeting) write();
  if (state == State::kUp && !own.coupled) {
    if (held) received_at = now;
    if (now - received_at >= kSilence) {
      close(kWarning, "the other end is silent; closed", "silence");
    } else if (now - sent_at >= kKeepalive && !blocked) {
      sent_at = now;
      send_small(Type::kKeepalive, nullptr, 0);
    }
  }
  switch (state) {
    case State::kUp:
      if (unparsed && !own.coupled) return held ? now + kHeldRetry : now;
      return own.coupled ? now + kSecond : std::min(received_at + kSilence, now + kKeepalive);
    case State::kFinished:
      return kNever;
    case State::kListening:
      return now + kSecond;
    case State::kIdle:
      return held ? std::max(deadline, now + kRetry) : deadline;
    case State::kGreeting:
      return held ? now + kKeepalive : deadline;
    default:
      return deadline;
  }
}

Link::Link(const Address& address, const Hello& own, Owner& owner)
    : impl_(std::make_unique<Impl>(address, own, owner)) {}
Link::~Link() = default;

// Part of a message is nothing to read: only when it has grown is it looked at again.
bool Link::waiting() const {
  const Impl& i = *impl_;
  return i.looks() && (i.read_out ? i.rings->grown() : i.rings->waiting());
}

void Link::look(std::int64_t now, bool sleep) {
  Impl& i = *impl_;
  if (!i.looks()) return;
  i.now = now;
  i.read_bytes = 0;
  i.rings->stay_awake();
  do {
    while (i.looks() && i.read_bytes < kReadAtOnce && i.read()) {
    }
    if (!sleep || !i.looks() || i.sleep()) return;
  } while (i.read_bytes < kReadAtOnce);
  i.go_on();  // more than is taken at a time
}

std::int64_t Link::poll(std::int64_t now) {
  impl_->now = now;
  const std::int64_t due = impl_->state == Impl::State::kFinished ? kNever : impl_->poll_once();
  return std::max(due, now + 1'000'000);
}

bool Link::up() const { return impl_->state == Impl::State::kUp; }

std::uint8_t* Link::frame(std::size_t most) {
  if (!up()) return nullptr;
  std::uint8_t* p = impl_->append(kHeaderBytes + most);
  if (!p) {
    ++impl_->lost;
    return nullptr;
  }
  return p + kHeaderBytes;
}

void Link::commit(std::size_t len, std::uint8_t flags, std::int64_t time, Type type) {
  Impl& i = *impl_;
  put_header(i.in_memory ? i.rings->end() : i.out.data() + i.out_tail, type, flags, time, len);
  i.appended(kHeaderBytes + len);
  if ((i.unpublished >= kPublishAt || i.out_tail - i.out_head >= kFlushAt) && !i.blocked) i.write();
}

void Link::free_runs() { impl_->free_memory(); }

bool Link::takes_runs() const { return up() && impl_->peer_runs; }

void Link::flush() {
  if (!impl_->blocked) impl_->write();
}
bool Link::pending() const { return impl_->unsent() && !impl_->blocked; }
bool Link::unsent() const { return impl_->unsent(); }
bool Link::congested() const {
  const Impl& i = *impl_;
  if (i.own.coupled) return false;
  return i.out_tail - i.out_head >= (i.through_memory ? 1 : kHighWater) ||
         (i.through_memory && i.rings->unread() >= Rings::kBytes / 4 * 3);
}
std::uint64_t Link::lost() const { return impl_->lost; }

void Link::set_wish(const Wish& wish) {
  if (impl_->own.wish == wish) return;
  impl_->own.wish = wish;
  if (up() && !impl_->own.coupled) impl_->send_wish();
}

void Link::hold(bool on) {
  if (impl_->held == on) return;
  impl_->held = on;
  if (up()) impl_->received_at = impl_->now;
  impl_->watch_socket();
  // What came meanwhile was announced to nobody.
  if (!on && impl_->through_memory) impl_->go_on();
}

void Link::send_mark(const Mark& mark) {
  Impl& i = *impl_;
  if (!up()) return;
  if (std::uint8_t* p = i.append(kHeaderBytes + kMarkBytes)) {
    put_mark(p, mark);
    i.appended(kHeaderBytes + kMarkBytes);
  } else {
    i.close(kError, "the other end takes nothing any more; closed", "no room for what is to be sent");
  }
  i.write();
}

Link::Pulled Link::pull(std::int64_t now) {
  Impl& i = *impl_;
  i.now = now;
  if (!up()) return Pulled::kDown;
  i.pulling = true;
  i.marked = false;
  i.read_bytes = i.pulled = 0;
  i.parse_all();
  while (up() && !i.marked && i.read_bytes < kReadAtOnce && i.read()) {
  }
  if (i.look_at_socket && !i.marked && i.read_bytes < kReadAtOnce && up()) i.read_socket();
  i.pulling = false;
  if (i.marked) return Pulled::kMark;
  if (up() && i.blocked) i.write();
  return up() ? Pulled::kNothing : Pulled::kDown;
}

std::size_t Link::pulled() const { return impl_->pulled; }

void Link::wait(int milliseconds) {
  Impl& i = *impl_;
  if (i.unparsed) return;
  if (i.through_memory) return i.wait_memory(milliseconds);
  pollfd p{-1, POLLIN, 0};
  if (i.socket.is_open()) {
    p.fd = i.socket.native_handle();
    if (i.blocked || i.state == Impl::State::kConnecting) p.events |= POLLOUT;
  } else if (i.acceptor.is_open()) {
    p.fd = i.acceptor.native_handle();
  }
  ::poll(&p, 1, milliseconds);  // without a descriptor: just a delay
}

bool Link::refused() const { return impl_->refused; }

void Link::finish(const std::string& reason) {
  Impl& i = *impl_;
  if (i.state == Impl::State::kFinished) return;
  if (!reason.empty() && i.socket.is_open()) Impl::send_refusal(i.socket, reason);
  i.state = Impl::State::kFinished;
  i.drop_socket();
  i.stop_listening();
}

}  // namespace hcasim::wire
