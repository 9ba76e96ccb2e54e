// SPDX-License-Identifier: BSD-3-Clause
// Coupled time: two processes that live in the same simulated time, at whatever speed each of them runs, and
// one whose other end does not behave.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../process.h"
#include "replayed.h"
#include "wire/protocol.h"

namespace hcasim {
namespace {

using test::Process;
using ::testing::HasSubstr;
using ::testing::Not;

std::string line_with(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) return "";
  const std::size_t start = text.rfind('\n', at) + 1;
  return text.substr(start, text.find('\n', at) - start);
}

class Coupled : public ::testing::Test {
 protected:
  std::string options(const char* side, const std::string& more = "", const char* link = "ib") const {
    return std::string("link=") + link + std::string(",coupled=on,node_guid=000000000000000") + side +
           ",name=end-" + side + ",wire=" + test::wire_scheme() + (folder_ / "wire") + more;
  }
  std::string recorded(const char* side) const {
    return "," + test::recorded((folder_ / "r") + side, (folder_ / "t") + side);
  }
  void expect_replays(const char* side) const {
    test::expect_same((folder_ / "r") + side, (folder_ / "t") + side);
  }
  struct Ran {
    int status_a, status_b;
    std::string a, b;              // what they printed
    std::string trace_a, trace_b;  // the files
  };
  // bytes: of a message.
  Ran pair(unsigned seed_a, unsigned seed_b, const std::string& more = "", unsigned bytes = 64) {
    const std::string ta = folder_ / "ta", tb = folder_ / "tb", size = std::to_string(bytes);
    Process a(COUPLED_END,
              {"a", options("1", ",trace=" + ta + more), "40", std::to_string(seed_a), "0", size});
    Process b(COUPLED_END,
              {"b", options("2", ",trace=" + tb + more), "40", std::to_string(seed_b), "0", size});
    Ran r;
    r.status_a = a.end();
    r.status_b = b.end();
    r.a = a.said;
    r.b = b.said;
    r.trace_a = test::bytes_of(ta);
    r.trace_b = test::bytes_of(tb);
    return r;
  }
  test::Folder folder_;
};

TEST_F(Coupled, RunsAreTheSameAtWhateverSpeedTheEndsRun) {
  const Ran first = pair(0, 0);
  EXPECT_EQ(first.status_a, 0) << first.a;
  EXPECT_EQ(first.status_b, 0) << first.b;
  EXPECT_THAT(first.a, HasSubstr("port 4 at "));
  EXPECT_THAT(first.a, HasSubstr("rounds 40 in "));
  EXPECT_THAT(first.a, Not(HasSubstr("wrong data")));
  EXPECT_THAT(first.a, HasSubstr(", late 0\n"));
  EXPECT_THAT(first.b, HasSubstr(", late 0\n"));
  EXPECT_GT(first.trace_a.size(), 1000u);
  for (const auto& [a, b] : {std::pair{1u, 2u}, std::pair{2u, 0u}}) {
    const Ran again = pair(a, b);
    EXPECT_EQ(again.status_a, 0) << again.a;
    EXPECT_TRUE(first.trace_a == again.trace_a) << "speeds " << a << " and " << b;
    EXPECT_TRUE(first.trace_b == again.trace_b) << "speeds " << a << " and " << b;
    EXPECT_EQ(line_with(first.a, "rounds"), line_with(again.a, "rounds"));
  }
}

// 40 rounds are 80 messages: what they take grows by the cable's latency for each of their ways.
class CoupledWays : public Coupled {
 protected:
  long long took(int latency, const std::string& more = "", unsigned bytes = 64) {
    const Ran r = pair(0, 0, ",batch_window_ns=0,wire_latency_ns=" + std::to_string(latency) + more, bytes);
    EXPECT_EQ(r.status_a, 0) << r.a;
    EXPECT_EQ(r.status_b, 0) << r.b;
    EXPECT_THAT(r.a, Not(HasSubstr("wrong data")));
    const std::string line = line_with(r.a, "rounds");
    return line.empty() ? 0 : std::atoll(line.c_str() + line.find(" in ") + 4);
  }
};

TEST_F(CoupledWays, EachTakesTheCablesLatency) {
  const long long low = took(500), high = took(10'500);
  EXPECT_EQ(high - low, 80 * 10'000) << low << " and " << high;
}

// A lane's buffer holds three packets of 4 KiB: of the eight of a message the fourth waits for the credits of
// the first, which come all the way back, and the seventh for those of the fourth.
TEST_F(CoupledWays, CreditsOfALaneComeBackOverTheCable) {
  const std::string room = ",port.lane_buffer=13000";
  const long long low = took(20'500, room, 32768), high = took(30'500, room, 32768);
  EXPECT_EQ(high - low, 80 * 5 * 10'000) << low << " and " << high;
  const long long plenty = took(30'500, ",port.lane_buffer=65536", 32768);
  EXPECT_EQ(plenty, took(30'500, "", 32768)) << "there is room for all of a message";
  EXPECT_NEAR(static_cast<double>(high - plenty), 80. * 4 * 30'500, 0.05 * 80 * 4 * 30'500);
}

// A packet whose bytes are damaged has taken room as well, and gives it back: else soon none would be left.
TEST_F(CoupledWays, DamagedPacketsGiveTheirRoomBack) {
  EXPECT_GT(took(5'000, ",port.lane_buffer=9000,corrupt=0.02", 32768), 80 * 5'000);
}

// They pass as what comes over the wire does.
TEST_F(Coupled, CreditsAreReplayed) {
  const std::string size = "32768", room = ",wire_latency_ns=5000,port.lane_buffer=9000";
  Process a(COUPLED_END, {"a", options("1", room + recorded("1")), "10", "0", "0", size});
  Process b(COUPLED_END, {"b", options("2", room), "10", "0", "0", size});
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_EQ(b.end(), 0) << b.said;
  EXPECT_THAT(a.said, HasSubstr("rounds 10 in "));
  expect_replays("1");
}

TEST_F(Coupled, TheFirstOneWaitsForTheOther) {
  Process a(COUPLED_END, {"a", options("1"), "0", "0"});
  ASSERT_TRUE(a.prints("waiting for the other end"));
  EXPECT_FALSE(a.stirs(300)) << a.said;
  Process b(COUPLED_END, {"b", options("2"), "0", "0"});
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_EQ(b.end(), 0) << b.said;
  EXPECT_EQ(line_with(a.said, "port 4 at"), line_with(b.said, "port 4 at"));
}

// Each process would wait for the other one's second wire.
TEST_F(Coupled, TwoWiresInCrossedOrder) {
  const auto card = [this](const char* guid, const char* wire) {
    return std::string("link=ib,coupled=on,node_guid=000000000000000") + guid + ",name=end-" + guid +
           ",wire=" + test::wire_scheme() + (folder_ / wire);
  };
  Process a(COUPLED_END, {"a", card("1", "x") + recorded("a") + "|" + card("2", "y"), "0", "0"});
  Process b(COUPLED_END, {"b", card("3", "y") + "|" + card("4", "x"), "0", "0"});
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_EQ(b.end(), 0) << b.said;
  for (const Process* end : {&a, &b}) {
    EXPECT_THAT(end->said, HasSubstr("port 4 at "));
    EXPECT_THAT(end->said, HasSubstr("second port 4"));
  }
  expect_replays("a");
}

TEST_F(Coupled, WhenTheOtherEndDiesThePortGoesDownAndTimeGoesOn) {
  Process a(COUPLED_END, {"a", options("1", recorded("1")), "0", "0"});
  Process b(COUPLED_END, {"b", options("2"), "0", "0", "5000"});
  EXPECT_EQ(b.end(), 0) << b.said;
  EXPECT_EQ(a.end(), 0) << a.said;
  EXPECT_THAT(a.said, HasSubstr("port 4 at "));
  EXPECT_THAT(a.said, HasSubstr("the other end has gone"));
  EXPECT_THAT(a.said, HasSubstr("the port is down, and time goes on by itself"));
  EXPECT_THAT(a.said, HasSubstr("port 1 in the end"));
  expect_replays("1");
}

// The far end by hand.
class Stranger {
 public:
  explicit Stranger(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    for (int i = 0; i < 1000; ++i) {
      if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
      usleep(10'000);
    }
    ADD_FAILURE() << "nobody listens";
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  static wire::Hello hello() {
    wire::Hello h;
    h.coupled = true;
    h.latency = 1'000'000;
    h.node_guid = 0x77;
    h.instance = 99;
    h.mtu = 4096;
    h.name = "stranger";
    return h;
  }
  // As much of it as the other end takes.
  void send(const std::vector<std::uint8_t>& bytes) const {
    (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void greet(const wire::Hello& h = hello()) const {
    std::vector<std::uint8_t> m(wire::kHeaderBytes + wire::kHelloBytes);
    put_hello(m.data(), h, 0);
    send(m);
  }
  void mark(std::int64_t at, std::int64_t next, bool wanted = true) const {
    std::vector<std::uint8_t> m(wire::kHeaderBytes + wire::kMarkBytes);
    wire::put_mark(m.data(), {at, next, {wanted, false, 0xffff}});
    send(m);
  }
  void frame(std::int64_t time, std::size_t len) const {
    std::vector<std::uint8_t> m(wire::kHeaderBytes + len);
    wire::put_header(m.data(), wire::Type::kFrame, 0, time, len);
    send(m);
  }
  void credits(std::int64_t time, unsigned lane, std::uint32_t bytes, std::size_t len) const {
    std::vector<std::uint8_t> m(wire::kHeaderBytes + std::max(len, wire::kCreditsBytes));
    wire::put_credits(m.data() + wire::kHeaderBytes, {static_cast<std::uint8_t>(lane), bytes});
    m.resize(wire::kHeaderBytes + len);
    wire::put_header(m.data(), wire::Type::kFrame, wire::kFrameCredits, time, len);
    send(m);
  }
  // The next message's type and time; false: the connection has ended.
  bool hear(wire::Message& m) {
    for (;;) {
      std::size_t used = 0;
      const char* why = nullptr;
      in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(used_));
      used_ = 0;
      if (parse(in_.data(), in_.size(), false, m, used, why) == wire::Parsed::kMessage) {
        used_ = used;
        return true;
      }
      std::uint8_t bytes[65536];
      const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
      if (n <= 0) return false;
      in_.insert(in_.end(), bytes, bytes + n);
    }
  }
  // Answers each mark with one of the same time that promises nothing, `count` times.
  bool go_along(int count) {
    wire::Message m;
    while (count > 0 && hear(m)) {
      if (m.type != wire::Type::kMark) continue;
      mark(m.time, m.time);
      --count;
    }
    return count == 0;
  }

 private:
  int fd_;
  std::vector<std::uint8_t> in_;
  std::size_t used_ = 0;
};

class CoupledStranger : public Coupled {
 protected:
  explicit CoupledStranger(const char* link = "ib")
      : end_(COUPLED_END, {"a", options("1", recorded("1"), link), "0", "0"}) {}
  // Whatever the stranger did, the recording has it.
  void TearDown() override {
    end_.end();
    expect_replays("1");
  }
  std::string path() const { return folder_ / "wire"; }
  // It has ended the coupling with that text, and gone on.
  void expect_alone(const char* text) {
    EXPECT_EQ(end_.end(), 0) << end_.said;
    EXPECT_THAT(end_.said, HasSubstr(text));
    EXPECT_THAT(end_.said, HasSubstr("the port is down, and time goes on by itself"));
    EXPECT_THAT(end_.said, HasSubstr("port 1 in the end"));
  }
  // One that says this of itself is sent away.
  void expect_refused(void (*change)(wire::Hello&), const char* text) {
    Stranger s(path());
    wire::Hello h = Stranger::hello();
    change(h);
    s.greet(h);
    expect_alone(text);
  }
  Process end_;
};

TEST_F(CoupledStranger, AProperOneIsTaken) {
  {
    Stranger s(path());
    s.greet();
    EXPECT_TRUE(s.go_along(2000));
  }
  expect_alone("the other end has gone");
  EXPECT_THAT(end_.said, HasSubstr("port 4 at"));
}

TEST_F(CoupledStranger, AForeignOneIsSentAwayAndTheWaitGoesOn) {
  {
    Stranger s(path());
    s.send(std::vector<std::uint8_t>(100, 'x'));
    wire::Message m;
    while (s.hear(m)) {
    }
  }
  Stranger good(path());
  good.greet();
  EXPECT_TRUE(good.go_along(100));
  EXPECT_TRUE(end_.prints("is no HCA of ours"));
}

TEST_F(CoupledStranger, AnotherVersionEndsIt) {
  expect_refused([](wire::Hello& h) { h.version = 1; }, "version 1 of the protocol there, 4 here");
}

TEST_F(CoupledStranger, OneWhoseTimeIsItsOwnEndsIt) {
  expect_refused([](wire::Hello& h) { h.coupled = false; }, "the ends differ: this one's time is coupled");
}

TEST_F(CoupledStranger, ACableWithoutLatencyIsRefused) {
  expect_refused([](wire::Hello& h) { h.latency = 0; }, "a latency of less than 1 ns");
}

// Of marks that are all there the ends would take millions before the host hears of it.
TEST_F(CoupledStranger, ACableOfNextToNoLatencyIsRefused) {
  expect_refused([](wire::Hello& h) { h.latency = 999; }, "a latency of less than 1 ns");
}

TEST_F(CoupledStranger, MalformedMessagesEndIt) {
  Stranger s(path());
  s.greet();
  EXPECT_TRUE(s.go_along(50));
  s.send(std::vector<std::uint8_t>(64, 0xff));
  expect_alone("a message that is too long");
}

TEST_F(CoupledStranger, AMarkOfAnotherTimeEndsIt) {
  Stranger s(path());
  s.greet();
  EXPECT_TRUE(s.go_along(50));
  s.mark(12345, 12345);
  expect_alone("a mark of the time 12345 ps, but the ends meet at");
}

// Of lanes that there are none of, of more than any packet takes, of another length; where nothing was said
// of room, and where it was.
TEST_F(CoupledStranger, CreditsThatMakeNoSenseDoNoHarm) {
  Stranger s(path());
  wire::Hello h = Stranger::hello();
  h.credits = true;
  h.lane_room = 64;
  s.greet(h);
  EXPECT_TRUE(s.go_along(50));
  for (const std::int64_t t : {std::int64_t{0}, INT64_MIN, INT64_MAX}) {
    for (const unsigned lane : {0u, 3u, 4u, 15u, 254u, 255u})
      for (const std::uint32_t bytes : {0u, 1u, 4096u, 1u << 31, UINT32_MAX}) s.credits(t, lane, bytes, 8);
    for (const std::size_t len : {1u, 7u, 9u, 100u}) s.credits(t, 0, 64, len);
  }
  EXPECT_TRUE(s.go_along(200));
  s.send(std::vector<std::uint8_t>(64, 0xff));
  EXPECT_EQ(end_.end(), 0) << end_.said;
}

// What comes late, or is said to come in ages, comes as soon, or as late, as it can.
TEST_F(CoupledStranger, FramesOfImpossibleTimesDoNoHarm) {
  Stranger s(path());
  s.greet();
  EXPECT_TRUE(s.go_along(50));
  for (const std::int64_t t : {std::int64_t{0}, INT64_MIN, INT64_MAX, INT64_MAX - 5}) s.frame(t, 100);
  wire::Message m;
  // Marks that promise the impossible, too.
  for (int i = 0; i < 50 && s.hear(m);) {
    if (m.type != wire::Type::kMark) continue;
    s.mark(m.time, i % 2 != 0 ? INT64_MAX : INT64_MIN);
    ++i;
  }
  EXPECT_TRUE(s.go_along(200));
  s.send(std::vector<std::uint8_t>(64, 0xff));
  EXPECT_EQ(end_.end(), 0) << end_.said;
  EXPECT_THAT(end_.said, Not(HasSubstr("late 0\n")));
}

TEST_F(CoupledStranger, FramesWithoutEndEndIt) {
  Stranger s(path());
  s.greet();
  EXPECT_TRUE(s.go_along(50));
  for (int i = 0; i < 20'000; ++i) s.frame(0, 10'000);
  expect_alone("more frames than a link carries");
}

class CoupledStrangerOnEthernet : public CoupledStranger {
 protected:
  CoupledStrangerOnEthernet() : CoupledStranger("eth") {}
};

// A few bytes each, from meeting to meeting, which are all to come in ages.
TEST_F(CoupledStrangerOnEthernet, ShortFramesWithoutEndEndIt) {
  Stranger s(path());
  wire::Hello h = Stranger::hello();
  h.link = wire::LinkLayer::kEthernet;
  s.greet(h);
  std::vector<std::uint8_t> many(1000 * (wire::kHeaderBytes + 1));
  for (std::size_t at = 0; at < many.size(); at += wire::kHeaderBytes + 1)
    wire::put_header(many.data() + at, wire::Type::kFrame, 0, INT64_MAX, 1);
  for (int round = 0; round < 5 && s.go_along(10); ++round)
    for (int i = 0; i < 40; ++i) s.send(many);
  expect_alone("more frames than a link carries");
}

}  // namespace
}  // namespace hcasim
