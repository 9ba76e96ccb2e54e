// SPDX-License-Identifier: BSD-3-Clause
// A link of shared memory whose other end is made by hand, and does not behave: other files, none, nonsense
// in the memory, runs that do not fit, words beside the memory; or dies with messages on the way.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "../files.h"
#include "wire/link.h"
#include "wire/rings.h"

namespace hcasim::wire {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

struct Near final : Link::Owner {
  static Hello hello(bool coupled = false) {
    Hello h;
    h.name = "near";
    h.node_guid = 1;
    h.runs = !coupled;
    h.coupled = coupled;
    return h;
  }
  explicit Near(const std::string& path, bool coupled = false) : own(hello(coupled)) {
    Address a;
    std::string err;
    EXPECT_TRUE(parse_address("shm:" + path, a, err)) << err;
    link = std::make_unique<Link>(a, own, *this);
  }
  std::string wire_up(const Hello&) override { return ""; }
  void wire_down() override { ++downs; }
  void wire_wish(const Wish&) override {}
  void wire_frame(const Message& m) override {
    ++frames;
    bytes += m.len;
  }
  void wire_run(const Run& run, std::int64_t) override {
    ++runs;
    bytes += run.payload_len;
    // All of it is there to be read.
    for (std::size_t i = 0; i < run.frame_len; ++i) sum += run.frame[i];
    for (std::size_t i = 0; i < run.payload_len; ++i) sum += run.payload[i];
  }
  void wire_watch(int fd, bool read, bool) override {
    if (read)
      watched.insert(fd);
    else
      watched.erase(fd);
  }
  bool is_woken() const {
    std::vector<pollfd> all;
    for (const int fd : watched) all.push_back({fd, POLLIN, 0});
    return ::poll(all.data(), all.size(), 0) > 0;
  }
  void wire_log(int, const std::string& line) override { log += line + "\n"; }

  const Hello own;
  std::set<int> watched;
  std::string log;
  unsigned downs = 0, frames = 0, runs = 0;
  std::size_t bytes = 0;
  std::uint64_t sum = 0;
  std::unique_ptr<Link> link;
};

Bytes message(Type type, const Bytes& body) {
  Bytes m(kHeaderBytes);
  put_header(m.data(), type, 0, 0, body.size());
  m.insert(m.end(), body.begin(), body.end());
  return m;
}

// The body of a run whose headers take 60 bytes.
Bytes run_of(unsigned packets, std::uint32_t unit, std::uint32_t payload) {
  wire::Run run;
  run.packets = packets;
  run.unit = unit;
  run.payload_len = payload;
  run.frame_len = 60;
  Bytes body(kMaxRunBytes);
  body.resize(put_run(body.data(), run) + run.frame_len + payload);
  return body;
}

class SharedPeer : public ::testing::Test {
 protected:
  // The peer connects: it takes the memory that the near end makes.
  explicit SharedPeer(bool coupled = false) : near_(folder_ / "s", coupled) { connect(); }
  ~SharedPeer() override { drop(); }

  void pass(int times = 1) {
    for (int i = 0; i < times; ++i) near_.link->poll(now_ += 10'000'000);
  }
  void connect() {
    pass();
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, (folder_ / "s").c_str(), sizeof at.sun_path - 1);
    ASSERT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    pass();
  }
  void drop() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    for (const int f : files_) close(f);
    files_.clear();
    rings_.reset();
  }
  void say(const Bytes& bytes) const { EXPECT_GE(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0); }
  // behind: in the same breath as the hello.
  void greet(bool shared = true, const Bytes& behind = {}) {
    Hello h = Near::hello();
    h.node_guid = 2;
    h.instance = 77;
    h.shared = shared;
    h.coupled = near_.own.coupled;
    Bytes m(kHeaderBytes + kHelloBytes);
    put_hello(m.data(), h, 0);
    m.insert(m.end(), behind.begin(), behind.end());
    say(m);
    char text[4096], control[256];
    iovec iov{text, sizeof text};
    msghdr in{};
    in.msg_iov = &iov;
    in.msg_iovlen = 1;
    in.msg_control = control;
    in.msg_controllen = sizeof control;
    ASSERT_GT(recvmsg(fd_, &in, 0), 0);
    const cmsghdr* c = CMSG_FIRSTHDR(&in);
    ASSERT_NE(c, nullptr);
    files_.resize((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(files_.data(), CMSG_DATA(c), files_.size() * sizeof(int));
    ASSERT_EQ(files_.size(), 2u);
    std::string why;
    rings_ = Rings::take(files_[0], why);
    ASSERT_TRUE(rings_) << why;
    pass();
  }
  void ring() const { EXPECT_EQ(send(files_[1], "", 1, MSG_NOSIGNAL), 1) << "the bell"; }
  void put(const Bytes& bytes) {
    ASSERT_GE(rings_->room(), bytes.size());
    std::memcpy(rings_->end(), bytes.data(), bytes.size());
    rings_->wrote(bytes.size());
    if (rings_->publish()) ring();
    // Its reader consumes it as fast as it comes.
    pass();
    if (rings_) rings_->consume(rings_->available());
  }

  test::Folder folder_;
  std::int64_t now_ = 1'000'000'000;
  Near near_;
  int fd_ = -1;
  std::vector<int> files_;
  std::unique_ptr<Rings> rings_;
};

TEST_F(SharedPeer, FramesAndRunsCome) {
  greet();
  ASSERT_TRUE(near_.link->up()) << near_.log;
  put(message(Type::kFrame, Bytes(100, 1)));
  put(message(Type::kRun, run_of(3, 1000, 2500)));
  EXPECT_EQ(near_.frames, 1u);
  EXPECT_EQ(near_.runs, 1u);
  EXPECT_EQ(near_.bytes, 2600u);
  EXPECT_TRUE(near_.link->takes_runs());
}

// A message that is not whole yet is nothing to stay awake for: whoever writes the rest wakes this end.
TEST_F(SharedPeer, PartOfAMessageIsWaitedForAsleep) {
  greet();
  ASSERT_TRUE(near_.link->up()) << near_.log;
  const Bytes whole = message(Type::kFrame, Bytes(100, 1));
  const auto write = [&](std::size_t from, std::size_t to) {
    std::memcpy(rings_->end(), whole.data() + from, to - from);
    rings_->wrote(to - from);
    return rings_->publish();  // the reader is to be woken
  };
  pass();
  const std::size_t parts[] = {0, 3, kHeaderBytes, kHeaderBytes + 50, whole.size()};
  for (std::size_t i = 0; i + 1 < std::size(parts); ++i) {
    EXPECT_FALSE(near_.link->waiting()) << "before part " << i;
    EXPECT_TRUE(write(parts[i], parts[i + 1])) << i;
    EXPECT_TRUE(near_.link->waiting()) << "part " << i;
    EXPECT_EQ(near_.frames, 0u);
    if (i % 2 == 0)
      near_.link->look(now_ += 1'000'000, true);
    else
      pass();
    EXPECT_FALSE(near_.is_woken()) << "by itself, after part " << i;
  }
  EXPECT_EQ(near_.frames, 1u);
  EXPECT_FALSE(near_.link->waiting());
}

TEST_F(SharedPeer, RunsThatDoNotFitEndTheConnection) {
  const auto altered = [](std::size_t at, std::uint8_t value) {
    Bytes body = run_of(2, 100, 200);
    body[at] = value;
    return message(Type::kRun, body);
  };
  for (const Bytes& bad : {altered(0, 201), altered(3, 0xff), altered(4, 0), altered(4, 17), altered(5, 1),
                           altered(6, 0), altered(6, 61), altered(7, 9), message(Type::kRun, Bytes(15))}) {
    greet();
    ASSERT_TRUE(near_.link->up()) << near_.log;
    put(bad);
    EXPECT_FALSE(near_.link->up());
    EXPECT_THAT(near_.log, HasSubstr("a run that"));
    near_.log.clear();
    drop();
    pass(600);
    connect();
  }
}

TEST_F(SharedPeer, WhoDiesHasSentWhatCameBefore) {
  greet();
  const Bytes frame = message(Type::kFrame, Bytes(1000, 1));
  for (int i = 0; i < 500; ++i) {
    std::memcpy(rings_->end(), frame.data(), frame.size());
    rings_->wrote(frame.size());
  }
  rings_->publish();
  drop();
  pass(2);
  EXPECT_FALSE(near_.link->up());
  EXPECT_EQ(near_.frames, 500u);
  EXPECT_EQ(near_.downs, 1u);
  EXPECT_THAT(near_.log, HasSubstr("the other end has gone"));
}

TEST_F(SharedPeer, AByeIsHeardAndNothingElseBesideTheMemory) {
  greet();
  const std::string why = "enough of it";
  say(message(Type::kBye, Bytes(why.begin(), why.end())));
  pass();
  EXPECT_THAT(near_.log, HasSubstr("the other end has closed: enough of it"));
  drop();
  pass(600);
  connect();
  greet();
  say(message(Type::kFrame, Bytes(10)));
  pass();
  EXPECT_EQ(near_.frames, 0u);
  EXPECT_FALSE(near_.link->up());
  EXPECT_THAT(near_.log, HasSubstr("beside the shared memory"));
}

// A run of which no byte lies in the memory would be settled with bytes that are gone.
TEST_F(SharedPeer, BehindTheHelloOnlyAByeIsHeard) {
  for (const Bytes& bad : {message(Type::kRun, run_of(3, 1000, 2500)), message(Type::kFrame, Bytes(10)),
                           message(Type::kKeepalive, {}), Bytes(5000, 1)}) {
    greet(true, bad);
    EXPECT_EQ(near_.runs + near_.frames, 0u);
    EXPECT_FALSE(near_.link->up());
    EXPECT_THAT(near_.log, HasSubstr("beside the shared memory"));
    near_.log.clear();
    drop();
    pass(600);
    connect();
  }
  const std::string why = "changed my mind";
  greet(true, message(Type::kBye, Bytes(why.begin(), why.end())));
  EXPECT_FALSE(near_.link->up());
  EXPECT_EQ(near_.downs, 5u);
  EXPECT_THAT(near_.log, HasSubstr("the other end has closed: changed my mind"));
}

TEST_F(SharedPeer, AnEndOfASocketIsToldSo) {
  greet(false);
  EXPECT_FALSE(near_.link->up());
  EXPECT_THAT(near_.log, HasSubstr("the ends differ: this one's wire is shm:"));
}

// Whatever is written into the memory, messages or positions.
TEST_F(SharedPeer, NonsenseInTheMemory) {
  std::mt19937 random(5);
  unsigned ups = 0;
  for (int round = 0; round < 200; ++round) {
    greet();
    if (HasFatalFailure()) return;
    ups += near_.link->up();
    for (unsigned n = random() % 12; n > 0 && near_.link->up(); --n) {
      Bytes body(random() % 3 == 0 ? random() % 12'000 : random() % 100);
      for (auto& b : body) b = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : 0);
      Bytes m = message(static_cast<Type>(1 + random() % 8), body);
      if (random() % 4 == 0) m[random() % kHeaderBytes] = static_cast<std::uint8_t>(random());
      put(m);
    }
    auto* page =
        static_cast<std::uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, files_[0], 0));
    ASSERT_NE(page, MAP_FAILED);
    for (unsigned n = random() % 4; n > 0; --n)
      page[16 + random() % 1000] = static_cast<std::uint8_t>(random());
    munmap(page, 4096);
    (void)!send(files_[1], "", 1, MSG_NOSIGNAL);
    if (std::uint8_t* room = near_.link->frame(500)) {
      std::memset(room, 1, 500);
      near_.link->commit(500, 0, 0);
      near_.link->flush();
    }
    pass(3);
    drop();
    pass(600);
    EXPECT_FALSE(near_.link->up());
    connect();
  }
  EXPECT_EQ(ups, 200u);
}

// Nothing that the peer does to its half, or does not do, makes this end wait.
TEST_F(SharedPeer, ABellThatBlocksOrIsFullKeepsNobody) {
  greet();
  ASSERT_TRUE(near_.link->up()) << near_.log;
  EXPECT_EQ(fcntl(files_[1], F_SETFL, 0), 0);
  pass(3);  // there is nothing to be heard
  put(message(Type::kFrame, Bytes(100, 1)));
  EXPECT_EQ(near_.frames, 1u);
  // It is woken for each frame, and never takes the bell's word.
  for (int i = 0; i < 2000; ++i) {
    rings_->consume(rings_->available());
    ASSERT_TRUE(rings_->sleep());
    std::uint8_t* room = near_.link->frame(1);
    ASSERT_NE(room, nullptr);
    *room = 1;
    near_.link->commit(1, 0, 0);
    near_.link->flush();
  }
  put(message(Type::kFrame, Bytes(100, 1)));
  EXPECT_EQ(near_.frames, 2u);
  // And rings without end itself.
  EXPECT_EQ(fcntl(files_[1], F_SETFL, O_NONBLOCK), 0);
  while (send(files_[1], "", 1, MSG_NOSIGNAL) == 1) {
  }
  pass(10);
  EXPECT_FALSE(near_.is_woken());
  EXPECT_TRUE(near_.link->up());
}

TEST_F(SharedPeer, WhoClosesItsHalfOfTheBellIsGone) {
  greet();
  const Bytes frame = message(Type::kFrame, Bytes(1000, 1));
  for (int i = 0; i < 5000; ++i) {
    std::memcpy(rings_->end(), frame.data(), frame.size());
    rings_->wrote(frame.size());
  }
  rings_->publish();
  close(files_[1]);
  files_.pop_back();
  EXPECT_TRUE(near_.is_woken());
  for (int i = 0; i < 5 && near_.link->up(); ++i) {
    EXPECT_TRUE(near_.is_woken()) << "there is more, or the end of it";
    pass();
  }
  EXPECT_FALSE(near_.link->up());
  EXPECT_EQ(near_.frames, 5000u) << "what came before is taken";
  EXPECT_THAT(near_.log, HasSubstr("the other end has gone"));
}

class CoupledSharedPeer : public SharedPeer {
 protected:
  CoupledSharedPeer() : SharedPeer(true) {}
};

// Whatever comes as fast as it is read, the owner gets its turn.
TEST_F(CoupledSharedPeer, AFloodDoesNotKeepAPull) {
  greet();
  ASSERT_TRUE(near_.link->up()) << near_.log;
  for (const Bytes& one : {message(Type::kKeepalive, {}), message(Type::kFrame, Bytes(1))}) {
    std::atomic<bool> flows{false}, ends{false};
    std::thread flood([&] {
      Bytes many;
      while (many.size() < 64 * 1024) many.insert(many.end(), one.begin(), one.end());
      while (!ends) {
        while (rings_->room() >= many.size()) {
          std::memcpy(rings_->end(), many.data(), many.size());
          rings_->wrote(many.size());
          static_cast<void>(rings_->publish());
          flows = true;
          if (ends) break;
        }
      }
    });
    while (!flows) std::this_thread::yield();
    auto pull = std::async(std::launch::async, [this] { return near_.link->pull(now_); });
    EXPECT_EQ(pull.wait_for(std::chrono::seconds(2)), std::future_status::ready);
    ends = true;
    EXPECT_EQ(pull.get(), Link::Pulled::kNothing);
    flood.join();
    near_.link->wait(60'000);  // there is more: at once
    EXPECT_GT(near_.link->pulled(), 0u);
    EXPECT_LE(near_.frames, 5000u);
  }
}

// The peer listens, and makes the memory; or passes what is none.
TEST(SharedMaker, WhatItPassesIsChecked) {
  test::Folder folder;
  const std::string path = folder / "s";
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  Near near(path);
  std::int64_t now = 1'000'000'000;
  std::string why;
  const std::unique_ptr<Rings> rings = Rings::make(why);
  ASSERT_TRUE(rings) << why;
  const int event = eventfd(0, EFD_NONBLOCK), plain = memfd_create("x", 0);
  const int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0), lonely = socket(AF_UNIX, SOCK_STREAM, 0);
  int ends[2], halves[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, halves), 0);
  const int bell = halves[0];
  const int memory = rings->file();
  struct {
    std::vector<int> files;
    const char* text;
  } const cases[] = {
      {{}, "it has passed 0 files"},
      {{memory}, "it has passed 1 files"},
      {{memory, bell, bell}, "it has passed 3 files"},
      // Each line differs from the one before, or it would not be logged again.
      {{plain, bell}, "its memory is not one of a wire"},
      {{memory, ends[0]}, "its bell is none"},
      {{bell, bell}, "its memory is not one of a wire"},
      {{memory, memory}, "its bell is none"},
      {{event, bell}, "its memory is not one of a wire"},
      {{memory, event}, "its bell is none"},
      {{memory, bell, bell, bell}, "it has passed 4 files"},
      {{memory, datagrams}, "its bell is none"},
      // It passes for a bell, and is found not to be one when it is listened to.
      {{memory, lonely}, "the other end has gone"},
      {{memory, bell}, "joined with"},
  };
  for (const auto& c : cases) {
    int fd = -1;
    for (int i = 0; i < 600 && fd < 0; ++i) {
      near.link->poll(now += 10'000'000);
      fd = accept(listener, nullptr, nullptr);
    }
    ASSERT_GE(fd, 0) << c.text;
    Hello h = Near::hello();
    h.instance = 5;
    h.shared = true;
    Bytes m(kHeaderBytes + kHelloBytes);
    put_hello(m.data(), h, 0);
    iovec iov{m.data(), m.size()};
    char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr out{};
    out.msg_iov = &iov;
    out.msg_iovlen = 1;
    if (!c.files.empty()) {
      out.msg_control = control;
      out.msg_controllen = CMSG_SPACE(c.files.size() * sizeof(int));
      cmsghdr* head = CMSG_FIRSTHDR(&out);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(c.files.size() * sizeof(int));
      std::memcpy(CMSG_DATA(head), c.files.data(), c.files.size() * sizeof(int));
    }
    ASSERT_GT(sendmsg(fd, &out, MSG_NOSIGNAL), 0);
    for (int i = 0; i < 2; ++i) near.link->poll(now += 10'000'000);
    EXPECT_THAT(near.log, HasSubstr(c.text));
    near.log.clear();
    close(fd);
  }
  for (const int fd : {event, plain, datagrams, lonely, ends[0], ends[1], halves[0], halves[1], listener})
    close(fd);
}

}  // namespace
}  // namespace hcasim::wire
