// SPDX-License-Identifier: BSD-3-Clause
// The other end of a wire between processes: what it sends over the socket, and, where it takes the shared
// memory, what it puts there. The first byte: its lowest bits choose the wire (unix, coupled, shm), the
// fourth whether the near end looks.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "door.h"
#include "wire/link.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::wire;

// Positions in the memory's first page, as wire/rings.cpp lays them out: a cache line each, the maker's way
// out before the taker's. A wrong one is a worse seed, no more.
constexpr unsigned kMakersWritten = 64, kMakersRead = 128, kTakersWritten = 320;

Hello hello(bool coupled, std::uint64_t guid) {
  Hello h;
  h.name = "near";
  h.node_guid = guid;
  h.coupled = coupled;
  h.latency = coupled ? 150'000 : 0;
  h.runs = true;
  h.mtu = 4096;
  h.rate = 100'000;
  return h;
}

struct Near final : Link::Owner {
  Near(const std::string& where, bool coupled) {
    Address a;
    std::string err;
    if (!parse_address(where, a, err)) finding(err);
    link = std::make_unique<Link>(a, hello(coupled, 1), *this);
  }
  std::string wire_up(const Hello& h) override { return h.name == "refused" ? "no" : ""; }
  void wire_down() override {}
  void wire_wish(const Wish&) override {}
  void wire_frame(const Message& m) override { look(m.body, m.len); }
  void wire_run(const Run& run, std::int64_t) override {
    look(run.frame, run.frame_len);
    look(run.payload, run.payload_len);
  }
  std::string wire_mark(const Mark& m) override { return m.next < m.at ? "a mark that goes back" : ""; }
  void wire_watch(int, bool, bool) override {}
  void wire_log(int, const std::string&) override {}
  // All of it is there to be read.
  void look(const std::uint8_t* bytes, std::size_t len) {
    for (std::size_t i = 0; i < len; ++i) sum = sum + bytes[i];
  }
  volatile unsigned sum = 0;
  std::unique_ptr<Link> link;
};

const std::string& path() {
  static const std::string made = [] {
    char folder[] = "/tmp/hcasim-door-XXXXXX";
    if (!::mkdtemp(folder)) finding("no folder under /tmp");
    static std::string f = folder;
    std::atexit([] { static_cast<void>(!::rmdir(f.c_str())); });
    return f + "/s";
  }();
  return made;
}

std::string said(const Hello& h) {
  std::string m(kHeaderBytes + kHelloBytes, '\0');
  put_hello(reinterpret_cast<std::uint8_t*>(m.data()), h, 0);
  return m;
}

std::string said(Type type, const std::string& body) {
  std::string m(kHeaderBytes, '\0');
  put_header(reinterpret_cast<std::uint8_t*>(m.data()), type, 0, 0, body.size());
  return m + body;
}

class Far {
 public:
  Far() {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path().c_str(), sizeof at.sun_path - 1);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) finding("nobody listens");
  }
  ~Far() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, size_);
    for (const int f : files_) ::close(f);
    ::close(fd_);
  }
  void say(const std::uint8_t* bytes, std::size_t len) {
    static_cast<void>(!::send(fd_, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  // What the other end has sent, with the files of shared memory.
  void hear() {
    char text[8192], control[256];
    iovec iov{text, sizeof text};
    msghdr in{};
    in.msg_iov = &iov;
    in.msg_iovlen = 1;
    in.msg_control = control;
    in.msg_controllen = sizeof control;
    if (::recvmsg(fd_, &in, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return;
    const cmsghdr* const c = CMSG_FIRSTHDR(&in);
    if (c == nullptr || !files_.empty()) return;
    files_.resize((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(files_.data(), CMSG_DATA(c), files_.size() * sizeof(int));
    const off_t size = ::lseek(files_[0], 0, SEEK_END);
    if (size <= 0) return;
    size_ = static_cast<std::size_t>(size);
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, files_[0], 0);
  }
  // Bytes anywhere in the first pages of a region of the memory: its head, or a direction's ring.
  void put(unsigned region, std::size_t off, const std::uint8_t* bytes, std::size_t len) {
    if (memory_ == MAP_FAILED) return;
    const std::size_t ring = (size_ - 4096) / 2;
    const std::size_t at = (region % 3 == 0 ? 0 : 4096 + (region % 3 - 1) * ring) + off % 4096;
    if (at + len <= size_) std::memcpy(static_cast<std::uint8_t*>(memory_) + at, bytes, len);
    if (files_.size() > 1) static_cast<void>(!::send(files_[1], "", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
  }

 private:
  int fd_;
  std::vector<int> files_;
  void* memory_ = MAP_FAILED;
  std::size_t size_ = 0;
};

}  // namespace

// The rest: pieces, each a byte that says where it goes (0 to 2 into the memory, more into the socket), two
// with an offset, low one first, one with its length, then it.
void open_door(const std::uint8_t* bytes, std::size_t len) {
  if (len == 0) return;
  const bool coupled = (bytes[0] & 1) != 0, shared = (bytes[0] & 2) != 0, greets = (bytes[0] & 4) == 0,
             looks = (bytes[0] & 8) != 0;
  ++bytes;
  --len;
  Near near((shared ? "shm:" : "unix:") + path(), coupled);
  std::int64_t now = 1'000'000'000;
  const auto pass = [&] {
    now += 10'000'000;
    if (looks && near.link->waiting()) near.link->look(now, now % 20'000'000 == 0);
    near.link->poll(now);
    if (coupled && near.link->up())
      for (int i = 0; i < 50 && near.link->pull(now) == Link::Pulled::kMark; ++i)
        near.link->send_mark({now * 1000, now * 1000, {}});
  };
  pass();
  {
    Far far;
    pass();
    if (greets) {
      Hello h = hello(coupled, 2);
      h.instance = 77;
      h.shared = shared;
      const std::string m = said(h);
      far.say(reinterpret_cast<const std::uint8_t*>(m.data()), m.size());
      pass();
      far.hear();
      pass();
    }
    while (len >= 4) {
      const std::size_t size = std::min<std::size_t>(bytes[3], len - 4);
      const unsigned where = bytes[0] % 8;
      if (where < 3)
        far.put(where, bytes[1] | static_cast<std::size_t>(bytes[2]) << 8, bytes + 4, size);
      else
        far.say(bytes + 4, size);
      bytes += 4 + size;
      len -= 4 + size;
      pass();
      far.hear();
    }
  }
  pass();
  near.link->finish("");
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  const auto piece = [](unsigned where, unsigned off, const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += 255) {
      const std::string part = text.substr(at, 255);
      const auto o = static_cast<unsigned>(off + at);
      out += std::string{static_cast<char>(where), static_cast<char>(o), static_cast<char>(o >> 8),
                         static_cast<char>(part.size())} +
             part;
    }
    return out;
  };
  std::string run(kMaxRunBytes, '\0');
  Run r;
  r.packets = 2;
  r.unit = 100;
  r.payload_len = 200;
  r.frame_len = 60;
  run.resize(put_run(reinterpret_cast<std::uint8_t*>(run.data()), r) + 260);
  std::string mark(kHeaderBytes + kMarkBytes, '\0');
  put_mark(reinterpret_cast<std::uint8_t*>(mark.data()), {1000, 2000, {}});
  const std::vector<std::string> messages = {said(Type::kFrame, std::string(100, 'x')),
                                             said(Type::kCarrier, std::string(4, '\1')),
                                             said(Type::kKeepalive, ""),
                                             said(Type::kBye, "gone"),
                                             mark,
                                             said(Type::kRun, run)};
  for (char head = 0; head < 4; ++head) {
    Hello h = hello((head & 1) != 0, 2);
    h.shared = (head & 2) != 0;
    h.instance = 5;
    all.push_back(std::string{static_cast<char>(head | 4)} + piece(7, 0, said(h)));
    for (const std::string& m : messages) {
      all.push_back(std::string{head} + piece(7, 0, m));
      if ((head & 2) != 0) {
        // Into the ring that the taker writes, and how far it is written.
        const std::string written{
            static_cast<char>(m.size()), static_cast<char>(m.size() >> 8), 0, 0, 0, 0, 0, 0};
        all.push_back(std::string{head} + piece(2, 0, m) + piece(0, kTakersWritten, written));
        all.push_back(std::string{static_cast<char>(head | 8)} + piece(2, 0, m) +
                      piece(0, kTakersWritten, written));
        all.push_back(std::string{head} + piece(2, 0, m) + piece(0, kMakersWritten, written) +
                      piece(0, kMakersRead, written) + piece(0, kTakersWritten, written));
      }
    }
  }
  return all;
}

}  // namespace hcasim::fuzz
