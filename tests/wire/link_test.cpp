// SPDX-License-Identifier: BSD-3-Clause
// Two ends of a link, the decoder under nonsense, addresses. Time is the test's own.
#include "wire/link.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "link_ends.h"

namespace hcasim::wire {
namespace {

using ::testing::HasSubstr;

// A port of this machine's own that nobody has: other tests run beside this one.
std::string free_port(bool v6) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = v6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  socklen_t len = v6 ? sizeof six : sizeof four;
  const int fd = ::socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_TRUE(fd >= 0 && ::bind(fd, any, len) == 0 && ::getsockname(fd, any, &len) == 0);
  ::close(fd);
  return (v6 ? "tcp:[::1]:" : "tcp:127.0.0.1:") + std::to_string(ntohs(v6 ? six.sin6_port : four.sin_port));
}

TEST_P(LinkTest, TwoEndsFindEachOther) {
  for (const std::string& where : {this->where(), free_port(false), free_port(true)}) {
    End a(where, "a"), b(where, "b");
    pass(0.1, a);
    EXPECT_THAT(a.log, HasSubstr("waiting for the other end"));
    EXPECT_EQ(a.watched.size(), 1u);
    pass(1, a, b);
    ASSERT_TRUE(a.link.up() && b.link.up()) << where << a.log << b.log;
    EXPECT_EQ(a.peer.name, "b");
    EXPECT_EQ(b.peer.name, "a");
    EXPECT_EQ(b.peer.lid, 3u);
    EXPECT_EQ(b.peer.rate, 100'000u);
    EXPECT_TRUE(a.send({1, 2, 3}, kFrameCorrupt, -5));
    a.link.flush();
    pass(0.02, b);
    ASSERT_EQ(b.frames.size(), 1u);
    EXPECT_EQ(b.frames[0].body, Bytes({1, 2, 3}));
    EXPECT_EQ(b.frames[0].flags, kFrameCorrupt);
    EXPECT_EQ(b.frames[0].time, -5);
    const Wish wish{false, true, 0x208};
    a.link.set_wish(wish);
    pass(0.02, b);
    EXPECT_EQ(b.wish, wish);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s")) << "the one who made it takes it away";
}

// Whether one of an end's files is ready, as a caller's event loop sees it.
bool is_woken(const End& end) {
  for (const auto& [fd, how] : end.watched) {
    pollfd p{fd, static_cast<short>(how.first ? POLLIN : 0), 0};
    if (::poll(&p, 1, 0) > 0) return true;
  }
  return false;
}

// An end that looks by itself is not woken, until it polls again or says that it sleeps.
TEST_P(LinkTest, AnEndThatLooksIsNotWoken) {
  End a(where(), "a"), b(where(), "b");
  pass(1, a, b);
  ASSERT_TRUE(a.link.up() && b.link.up());
  const bool memory = std::string(GetParam()) == "shm:";
  const auto send = [&b](std::uint8_t what) {
    ASSERT_TRUE(b.send({what, 2, 3}));
    b.link.flush();
  };
  EXPECT_FALSE(a.link.waiting());
  send(1);
  EXPECT_TRUE(is_woken(a));
  EXPECT_EQ(a.link.waiting(), memory);
  a.link.look(now_, false);
  if (!memory) {  // to be polled as ever
    EXPECT_EQ(a.count, 0u);
    return;
  }
  EXPECT_EQ(a.count, 1u);
  EXPECT_FALSE(a.link.waiting());
  pass(0.02, a);  // takes the waking of before
  a.link.look(now_, false);
  for (std::uint8_t i = 2; i < 10; ++i) {
    send(i);
    EXPECT_FALSE(is_woken(a));
    EXPECT_TRUE(a.link.waiting());
    a.link.look(now_, false);
    EXPECT_EQ(a.count, i);
  }
  send(10);
  a.link.look(now_, true);
  EXPECT_EQ(a.count, 10u);
  EXPECT_FALSE(is_woken(a));
  send(11);
  EXPECT_TRUE(is_woken(a));
  pass(0.02, a);
  EXPECT_EQ(a.count, 11u);
  send(12);
  EXPECT_TRUE(is_woken(a)) << "a poll ends the looking";
  a.link.hold(true);
  EXPECT_FALSE(a.link.waiting());
  a.link.look(now_, false);
  EXPECT_EQ(a.count, 11u);
  a.link.hold(false);
  a.link.look(now_, false);
  EXPECT_EQ(a.count, 12u);
}

class SharedLinkTest : public LinkTest {};

// More than one look takes: the rest wakes an end that wants to sleep.
TEST_P(SharedLinkTest, ALookTakesNoMoreThanAPoll) {
  End a(where(), "a"), b(where(), "b");
  pass(1, a, b);
  ASSERT_TRUE(a.link.up() && b.link.up());
  a.keep = false;
  a.link.look(now_, false);
  const Bytes frame(10000);
  std::size_t sent = 0;
  while (sent < 1000 && b.send(frame)) ++sent;
  b.link.flush();
  ASSERT_EQ(sent, 1000u);
  EXPECT_FALSE(is_woken(a)) << "it looks";
  a.link.look(now_, true);
  EXPECT_GT(a.count, 0u);
  EXPECT_LT(a.count, sent);
  EXPECT_TRUE(is_woken(a)) << "by itself, for what is left";
  pass(0.05, a);
  EXPECT_EQ(a.count, sent);
  EXPECT_FALSE(is_woken(a));
}

// What is for after a mark stays until the next pull; polls take nothing.
TEST_P(LinkTest, CoupledEndsPullUpToAMark) {
  const std::string where = this->where();
  End a(where, coupled_hello("a")), b(where, coupled_hello("b"));
  pass(1, a, b);
  ASSERT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
  EXPECT_TRUE(b.peer.coupled);
  EXPECT_EQ(b.peer.latency, 150'000);
  EXPECT_EQ(b.link.pull(now_), Link::Pulled::kNothing);
  EXPECT_TRUE(a.send({1}, 0, 10));
  a.link.send_mark({100, 250, {}});
  EXPECT_TRUE(a.send({2}, 0, 120));
  EXPECT_TRUE(a.send({3}, 0, 130));
  a.link.send_mark({300, 350, {false, true, 5}});
  pass(20, a, b);  // longer than a silence that others would take for death
  EXPECT_TRUE(b.frames.empty());
  ASSERT_EQ(b.link.pull(now_), Link::Pulled::kMark);
  ASSERT_EQ(b.frames.size(), 1u);
  EXPECT_EQ(b.frames[0].time, 10);
  ASSERT_EQ(b.marks.size(), 1u);
  EXPECT_EQ(b.marks[0].at, 100);
  EXPECT_EQ(b.marks[0].next, 250);
  EXPECT_EQ(b.marks[0].wish, Wish{});
  ASSERT_EQ(b.link.pull(now_), Link::Pulled::kMark);
  EXPECT_EQ(b.frames.size(), 3u);
  ASSERT_EQ(b.marks.size(), 2u);
  EXPECT_EQ(b.marks[1].at, 300);
  EXPECT_EQ(b.marks[1].wish, (Wish{false, true, 5}));
  EXPECT_EQ(b.link.pull(now_), Link::Pulled::kNothing);
  a.link.finish("enough");
  EXPECT_EQ(waits(b), Link::Pulled::kDown);
  EXPECT_THAT(b.log, HasSubstr("the other end has closed: enough"));
  EXPECT_EQ(b.downs, 1);
  pass(10, a);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s")) << "it looks for nobody any more";
}

// Far more than sockets hold: nothing is lost, whoever reads late.
TEST_P(LinkTest, CoupledEndsLoseNothing) {
  const std::string where = this->where();
  End a(where, coupled_hello("a")), b(where, coupled_hello("b"));
  pass(1, a, b);
  ASSERT_TRUE(a.link.up() && b.link.up());
  b.keep = false;
  const Bytes frame(10'000, 7);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(a.send(frame));
  EXPECT_FALSE(a.link.congested());
  a.link.send_mark({1, 1, true});
  Link::Pulled got = Link::Pulled::kNothing;
  for (int i = 0; i < 100'000 && (got = b.link.pull(now_)) == Link::Pulled::kNothing; ++i) {
    EXPECT_EQ(a.link.pull(now_), Link::Pulled::kNothing);  // it waits too, and sends the rest meanwhile
  }
  EXPECT_EQ(got, Link::Pulled::kMark);
  EXPECT_EQ(b.count, 5000u);
  EXPECT_EQ(a.link.lost(), 0u);
}

TEST_P(LinkTest, AMarkThatDoesNotFitEndsTheConnection) {
  const std::string where = this->where();
  {
    End a(where, coupled_hello("a")), b(where, coupled_hello("b"));
    pass(1, a, b);
    b.refuse_mark = "a mark of yesterday";
    a.link.send_mark({1, 1, true});
    EXPECT_EQ(waits(b), Link::Pulled::kDown);
    EXPECT_THAT(b.log, HasSubstr("the other end sent a mark of yesterday; closed"));
    EXPECT_EQ(waits(a), Link::Pulled::kDown);
  }
  End a(where, "a"), b(where, "b");
  pass(1, a, b);
  ASSERT_TRUE(a.link.up() && b.link.up());
  a.link.send_mark({1, 1, true});
  pass(0.02, b);
  EXPECT_FALSE(b.link.up());
  EXPECT_THAT(b.log, HasSubstr("the other end sent a mark, but is not coupled"));
}

TEST_P(LinkTest, EitherEndMayComeBack) {
  const std::string where = this->where();
  auto a = std::make_unique<End>(where, "a");
  End b(where, "b");
  pass(1, *a, b);
  ASSERT_TRUE(b.link.up());
  a = nullptr;  // the listener goes: the other one becomes it
  pass(2, b);
  EXPECT_EQ(b.downs, 1);
  EXPECT_FALSE(b.link.up());
  a = std::make_unique<End>(where, "a");
  pass(1, *a, b);
  EXPECT_TRUE(a->link.up() && b.link.up());
  a = nullptr;  // the one who connected goes
  pass(0.1, b);
  EXPECT_EQ(b.downs, 2);
  a = std::make_unique<End>(where, "a");
  pass(1, *a, b);
  EXPECT_TRUE(a->link.up() && b.link.up());
}

TEST_P(LinkTest, AStaleSocketFileIsReplaced) {
  const std::string path = folder_ / "s";
  {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    close(fd);
  }
  End a(where(), "a"), b(where(), "b");
  pass(1, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up());
}

TEST_P(LinkTest, ARemovedSocketFileIsMadeAgain) {
  End a(where(), "a");
  pass(0.1, a);
  std::filesystem::remove(folder_ / "s");
  End b(where(), "b");
  pass(3, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
}

TEST_P(LinkTest, ARegularFileIsLeftAlone) {
  std::ofstream(folder_ / "f") << "precious";
  End a(where("f"), "a");
  pass(2, a);
  EXPECT_FALSE(a.link.up());
  EXPECT_THAT(a.log, HasSubstr("something else than a socket"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / "f"));
  End b(std::string(GetParam()) + "/no/such/folder/s", "b");
  pass(2, b);
  EXPECT_THAT(b.log, HasSubstr("cannot listen"));
}

TEST_P(LinkTest, RefusalIsToldToBoth) {
  const std::string where = this->where();
  End a(where, "a"), b(where, "b");
  b.refuse = "not with you";
  pass(1, a, b);
  EXPECT_FALSE(b.link.up());
  EXPECT_THAT(b.log, HasSubstr("not with you"));
  EXPECT_THAT(a.log, HasSubstr("the other end has closed: not with you"));
  b.refuse.clear();
  pass(6, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up());
}

// The process is there but does nothing: keepalives stop.
// What says nothing holds the place for a while. The end that comes meanwhile is not sent away for good.
TEST_P(LinkTest, AStrangerBeforeThePeerIsWaitedOut) {
  const std::string where = this->where();
  End a(where, coupled_hello("a"));
  pass(1, a);
  const int stranger = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::strncpy(at.sun_path, (folder_ / "s").c_str(), sizeof at.sun_path - 1);
  ASSERT_EQ(::connect(stranger, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  pass(0.02, a);
  End b(where, coupled_hello("b"));
  pass(2, a, b);
  EXPECT_FALSE(b.link.refused()) << b.log;
  pass(8, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
  ::close(stranger);
}

TEST_P(LinkTest, ASilentPeerIsGivenUpAndAQuietOneIsNot) {
  const std::string where = this->where();
  End a(where, "a"), b(where, "b");
  pass(1, a, b);
  pass(60, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up()) << "idle is not dead";
  pass(14, a);
  EXPECT_TRUE(a.link.up());
  pass(3, a);
  EXPECT_FALSE(a.link.up());
  EXPECT_EQ(a.downs, 1);
  EXPECT_THAT(a.log, HasSubstr("silent"));
}

TEST_P(LinkTest, WhatHasNoRoomIsLostAndCounted) {
  const std::string where = this->where();
  End a(where, "a"), b(where, "b");
  pass(1, a, b);
  std::size_t taken = 0;
  while (a.send(Bytes(4096, 7))) ++taken;
  EXPECT_TRUE(a.link.congested());
  EXPECT_EQ(a.link.lost(), 1u);
  EXPECT_GE(taken * 4096, Link::kHighWater);
  EXPECT_LE(taken * 4096, std::size_t{64} << 20);
  pass(1, a, b);
  EXPECT_EQ(b.count, taken);
  EXPECT_FALSE(a.link.congested());
}

TEST_P(LinkTest, FloodsArriveWholeAndInOrder) {
  const std::string where = this->where();
  End a(where, "a"), b(where, "b");
  b.keep = false;
  pass(1, a, b);
  std::mt19937 random(1);
  std::size_t sent = 0, bytes = 0;
  for (int round = 0; round < 2000; ++round) {
    for (int i = 0; i < 30; ++i) {
      const Bytes f(random() % 9000 + 1, static_cast<std::uint8_t>(sent));
      if (!a.send(f)) break;
      ++sent;
      bytes += f.size();
    }
    a.link.flush();
    pass(0.01, a, b);
  }
  EXPECT_GT(sent, 50'000u);
  EXPECT_EQ(b.count, sent);
  EXPECT_EQ(b.bytes, bytes);
}

// Of short messages an owner keeps more than their bytes: it gets few at a time, and the rest later.
TEST_P(LinkTest, FewShortMessagesAreTakenAtATime) {
  End a(where(), "a"), b(where(), "b");
  b.keep = false;
  pass(1, a, b);
  std::size_t sent = 0;
  while (sent < 200'000 && a.send({1})) ++sent;
  a.link.flush();
  EXPECT_EQ(sent, 200'000u);
  now_ += kSecond / 100;
  const std::int64_t due = b.link.poll(now_);
  EXPECT_GT(b.count, 0u);
  EXPECT_LE(b.count, 5000u);
  EXPECT_TRUE(is_woken(b) || due <= now_ + kSecond / 1000) << "there is more";
  b.link.hold(true);
  const std::size_t before = b.count;
  pass(0.1, a, b);
  EXPECT_EQ(b.count, before);
  b.link.hold(false);
  pass(2, a, b);
  EXPECT_EQ(b.count, sent);
}

// Whatever comes, the link stays usable for the next peer.
TEST_P(LinkTest, NonsenseFromAPeer) {
  const std::string path = folder_ / "s";
  End a(where(), "a");
  a.keep = false;
  pass(0.1, a);
  std::mt19937 random(3);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
  for (int round = 0; round < 300; ++round) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    Bytes stream(kHeaderBytes + kHelloBytes);
    put_hello(stream.data(), hello("x"), 0);
    if (random() % 4 == 0) stream.clear();
    for (unsigned n = random() % 20; n > 0; --n) {
      const std::size_t len = random() % 3 == 0 ? random() % 12000 : random() % 4;
      Bytes m(kHeaderBytes + len);
      put_header(m.data(), static_cast<Type>(1 + random() % 5), 0, 0, len);
      for (std::size_t i = kHeaderBytes; i < m.size(); ++i) m[i] = static_cast<std::uint8_t>(random());
      stream.insert(stream.end(), m.begin(), m.end());
    }
    for (unsigned n = random() % 4; n > 0 && !stream.empty(); --n) {
      stream[random() % stream.size()] = static_cast<std::uint8_t>(random());
    }
    // In pieces of any size.
    for (std::size_t done = 0; done < stream.size();) {
      const std::size_t piece = std::min<std::size_t>(stream.size() - done, 1 + random() % 5000);
      if (send(fd, stream.data() + done, piece, MSG_NOSIGNAL) < 0) break;
      done += piece;
      pass(0.01, a);
    }
    close(fd);
    pass(0.01, a);
    EXPECT_FALSE(a.link.up());
  }
  End b(where(), "b");
  pass(2, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
}

INSTANTIATE_TEST_SUITE_P(Through, SharedLinkTest, ::testing::Values("shm:"));
INSTANTIATE_TEST_SUITE_P(Through, LinkTest, ::testing::Values("unix:", "shm:"), [](const auto& info) {
  return std::string(info.param) == "unix:" ? "Socket" : "Memory";
});

TEST(Protocol, NonsenseIsNeverReadBeyondItsEnd) {
  std::mt19937 random(5);
  for (int round = 0; round < 200'000; ++round) {
    // An allocation of exactly that size: a sanitizer sees what goes beyond.
    const std::size_t len = random() % 200;
    const auto bytes = std::make_unique<std::uint8_t[]>(len);
    for (std::size_t i = 0; i < len; ++i) bytes[i] = static_cast<std::uint8_t>(random());
    if (len >= kHeaderBytes && random() % 8 != 0) {
      put_header(bytes.get(), static_cast<Type>(random() % 9), 0, 0, random() % 250);
      if (random() % 2 != 0 && len >= kHeaderBytes + kHelloBytes) put_hello(bytes.get(), hello("fuzz"), 0);
    }
    Message m;
    std::size_t used = 0;
    const char* why = nullptr;
    if (parse(bytes.get(), len, random() % 2 != 0, m, used, why) != Parsed::kMessage) continue;
    ASSERT_LE(used, len);
    ASSERT_EQ(m.body + m.len, bytes.get() + used);
    wire::Run run;
    if (m.type == Type::kRun && parse_run(m, run)) {
      EXPECT_LE(run.packets, kMaxRun);
      EXPECT_EQ(run.payload + run.payload_len, m.body + m.len);
    }
    Hello h;
    if (m.type == Type::kHello && parse_hello(m, h)) {
      EXPECT_LE(h.name.size(), 40u);
    }
  }
}

TEST(Protocol, AHelloComesBackAsItWas) {
  Hello h = hello("some-name");
  h.link = LinkLayer::kEthernet;
  h.wish = {false, true, 0x1234};
  h.instance = 0x1122334455667788;
  Bytes bytes(kHeaderBytes + kHelloBytes);
  put_hello(bytes.data(), h, 77);
  Message m;
  std::size_t used = 0;
  const char* why = nullptr;
  ASSERT_EQ(parse(bytes.data(), bytes.size(), true, m, used, why), Parsed::kMessage);
  EXPECT_EQ(m.time, 77);
  Hello back;
  ASSERT_TRUE(parse_hello(m, back));
  EXPECT_EQ(back.name, h.name);
  EXPECT_EQ(back.link, h.link);
  EXPECT_EQ(back.wish, h.wish);
  EXPECT_EQ(back.subnet_manager, true);
  EXPECT_EQ(back.instance, h.instance);
  EXPECT_EQ(back.node_guid, h.node_guid);
  EXPECT_FALSE(back.coupled);
}

TEST(Protocol, AMarkComesBackAsItWas) {
  for (const Mark& mark : {Mark{0, 1, {}}, Mark{1'234'567'890'123, INT64_MAX, {false, false, 7}},
                           Mark{-5, -7, {true, true, 0x800}}}) {
    Bytes bytes(kHeaderBytes + kMarkBytes);
    put_mark(bytes.data(), mark);
    Message m;
    std::size_t used = 0;
    const char* why = nullptr;
    ASSERT_EQ(parse(bytes.data(), bytes.size(), false, m, used, why), Parsed::kMessage);
    const Mark back = parse_mark(m);
    EXPECT_EQ(back.at, mark.at);
    EXPECT_EQ(back.next, mark.next);
    EXPECT_EQ(back.wish, mark.wish);
    EXPECT_EQ(parse(bytes.data(), bytes.size(), true, m, used, why), Parsed::kMalformed) << "not the first";
  }
}

TEST(AddressTest, WhatIsAllowed) {
  Address a;
  std::string err;
  EXPECT_TRUE(parse_address("unix:/run/x", a, err));
  EXPECT_EQ(a.path, "/run/x");
  EXPECT_TRUE(parse_address("tcp:host.example:4791", a, err));
  EXPECT_EQ(a.host, "host.example");
  EXPECT_EQ(a.port, 4791);
  EXPECT_TRUE(parse_address("tcp:[fe80::1]:1", a, err));
  EXPECT_EQ(a.host, "fe80::1");
  for (const char* bad : {"", "unix:", "/run/x", "tcp:", "tcp:host", "tcp:host:", "tcp::5", "tcp:h:0",
                          "tcp:h:65536", "tcp:h:1x", "udp:h:1"}) {
    EXPECT_FALSE(parse_address(bad, a, err)) << bad;
    EXPECT_NE(err, "");
  }
  EXPECT_FALSE(parse_address("unix:" + std::string(200, 'x'), a, err));
}

}  // namespace
}  // namespace hcasim::wire
