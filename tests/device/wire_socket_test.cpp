// SPDX-License-Identifier: BSD-3-Clause
// An HCA whose wire leads to a peer that does not behave: foreign, malformed, of another version, silent,
// flooding, deaf, gone and back.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "wire/protocol.h"
#include "wire_fixture.h"

namespace hcasim::bare {
namespace {

using ::testing::HasSubstr;

// The far end by hand.
class Peer {
 public:
  Peer() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::strncpy(a.sun_path, alone_path().c_str(), sizeof a.sun_path - 1);
    EXPECT_TRUE(wired_machine().wait_real(
        [&] { return ::connect(fd_, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0; }));
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  static wire::Hello hello() {
    wire::Hello h;
    h.node_guid = 0x1234;
    h.instance = 99;
    h.mtu = 4096;
    h.name = "peer";
    return h;
  }
  // As much as the socket takes now.
  std::size_t send(const std::vector<std::uint8_t>& bytes) const {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  }
  void greet(const wire::Hello& h = hello()) const {
    std::vector<std::uint8_t> m(wire::kHeaderBytes + wire::kHelloBytes);
    put_hello(m.data(), h, 0);
    EXPECT_EQ(send(m), m.size());
  }
  static std::vector<std::uint8_t> message(wire::Type type, std::vector<std::uint8_t> body) {
    std::vector<std::uint8_t> m(wire::kHeaderBytes);
    wire::put_header(m.data(), type, 0, 0, body.size());
    m.insert(m.end(), body.begin(), body.end());
    return m;
  }
  // Everything the HCA said until now.
  std::string hear() {
    char text[65536];
    for (ssize_t n = 0; (n = recv(fd_, text, sizeof text, 0)) > 0;)
      heard_.append(text, static_cast<std::size_t>(n));
    return heard_;
  }
  bool closed() {
    hear();
    char c = 0;
    return recv(fd_, &c, 1, MSG_PEEK) == 0;
  }
  bool is_closed() {
    return wired_machine().wait_real([&] { return closed(); });
  }

 private:
  int fd_;
  std::string heard_;
};

// Saved and loaded between two drivers: the memory of one would have to be saved with the card.
class WireState : public ::testing::Test {
 protected:
  void SetUp() override { expect_port(kDown); }
  static std::string save() {
    char err[300] = "";
    std::size_t len = 0;
    const void* const state = hca_sim_save(&len, err, sizeof err);
    EXPECT_NE(state, nullptr) << err;
    return std::string(static_cast<const char*>(state), state ? len : 0);
  }
  static void load(const std::string& state) {
    char err[300] = "";
    EXPECT_EQ(hca_sim_load(state.data(), state.size(), err, sizeof err), 0) << err;
    wired_machine().set_now(hca_sim_time());
  }
  // A driver finds the port so.
  static void expect_port(unsigned state, unsigned lid = 0) {
    End end(kAlone);
    EXPECT_TRUE(reaches(end.device, state));
    if (lid != 0) {
      EXPECT_EQ(end.device.lid(), lid);
    }
  }
};

// A state of before: the far end is there now all the same, and is the one of now.
TEST_F(WireState, TheCarrierOfNowIsFollowed) {
  const std::string without = save();
  std::string with;
  {
    Peer peer;
    peer.greet();
    expect_port(kActive, 2);
    with = save();
    load(without);
    expect_port(kActive, 2);
    const std::string again = save();
    load(again);
    EXPECT_TRUE(save() == again) << "what is followed already changes nothing";
  }
  expect_port(kDown);
  Peer peer;
  wire::Hello h = Peer::hello();
  h.node_guid = 0x0002c90300000031;  // the higher one
  peer.greet(h);
  expect_port(kActive, 1);
  load(with);
  expect_port(kActive, 1);
}

// Of a machine that moves to another process the link stays up until that one's wire has joined.
TEST_F(WireState, WhereNobodyHasJoinedThePortStaysAsItWas) {
  std::string with;
  {
    Peer peer;
    peer.greet();
    expect_port(kActive, 2);
    with = save();
  }
  expect_port(kDown);
  load(with);
  expect_port(kActive, 2);
  {
    Peer peer;
    peer.greet();
    expect_port(kActive, 2);
  }
  expect_port(kDown);
}

class WirePeer : public ::testing::Test {
 protected:
  WirePeer() : end_(kAlone, ud()) { wired_machine().clear_log(); }
  static QpOptions ud() {
    QpOptions o;
    o.type = QpType::kUd;
    return o;
  }
  static std::string logged() {
    std::string all;
    for (int level = 0; level < 3; ++level) {
      for (const std::string& l : wired_machine().log(level)) all += l + "\n";
    }
    return all;
  }
  // A peer as it should be is taken, and the port comes up.
  void expect_serves_on() {
    Peer good;
    good.greet();
    EXPECT_TRUE(reaches(end_.device, kActive));
    EXPECT_EQ(end_.device.lid(), 2u) << "the peer has the lower GUID";
  }
  End end_;
};

TEST_F(WirePeer, ThePortIsDownUntilThereIsAPeerAndAfterwards) {
  EXPECT_EQ(end_.device.port_state(), kDown);
  {
    Peer peer;
    peer.greet();
    EXPECT_TRUE(reaches(end_.device, kActive));
  }
  EXPECT_TRUE(reaches(end_.device, kDown));
  EXPECT_THAT(logged(), HasSubstr("the other end has gone"));
  expect_serves_on();
}

TEST_F(WirePeer, ForeignPeersAreSentAway) {
  for (const char* text :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n..........", "\1\2\3"}) {
    Peer peer;
    peer.send(std::vector<std::uint8_t>(text, text + std::strlen(text)));
    if (std::strlen(text) >= 16) {
      EXPECT_TRUE(peer.is_closed()) << text;
      EXPECT_THAT(logged(), HasSubstr("is no HCA of ours"));
    }
  }
  EXPECT_EQ(end_.device.port_state(), kDown);
  expect_serves_on();
}

TEST_F(WirePeer, MismatchesAreNamed) {
  struct {
    void (*change)(wire::Hello&);
    const char* text;
  } const cases[] = {
      {[](wire::Hello& h) { h.version = 1; }, "version 1 of the protocol there, 4 here"},
      {[](wire::Hello& h) { h.link = wire::LinkLayer::kEthernet; }, "the ends differ: link=ib and link=eth"},
      {[](wire::Hello& h) { h.node_guid = 0x0002c90300000030; },
       "both ends have the node GUID 0002c90300000030"},
      {[](wire::Hello& h) { h.lid = 0xc000; }, "the other end wants LID 49152"},
  };
  for (const auto& c : cases) {
    Peer peer;
    wire::Hello h = Peer::hello();
    c.change(h);
    peer.greet(h);
    EXPECT_TRUE(peer.is_closed()) << c.text;
    EXPECT_THAT(peer.hear(), HasSubstr(c.text)) << "the other end is told, too";
    EXPECT_THAT(logged(), HasSubstr(c.text));
    EXPECT_EQ(end_.device.port_state(), kDown);
  }
  expect_serves_on();
}

TEST_F(WirePeer, AThirdEndIsTurnedAway) {
  Peer first;
  first.greet();
  ASSERT_TRUE(reaches(end_.device, kActive));
  Peer third;
  third.greet();
  EXPECT_TRUE(third.is_closed());
  EXPECT_THAT(third.hear(), HasSubstr("two ends already"));
  EXPECT_EQ(end_.device.port_state(), kActive);
}

TEST_F(WirePeer, MalformedMessagesEndTheConnection) {
  const std::vector<std::vector<std::uint8_t>> bad = {
      Peer::message(static_cast<wire::Type>(77), {1, 2, 3}),
      Peer::message(wire::Type::kCarrier, {1, 2}),
      Peer::message(wire::Type::kFrame, {}),
      Peer::message(wire::Type::kKeepalive, {0}),
      {0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
  };
  for (const auto& m : bad) {
    Peer peer;
    peer.greet();
    ASSERT_TRUE(reaches(end_.device, kActive));
    peer.send(m);
    EXPECT_TRUE(peer.is_closed());
    EXPECT_TRUE(reaches(end_.device, kDown));
  }
  Peer twice;
  twice.greet();
  twice.greet();
  EXPECT_TRUE(twice.is_closed());
  expect_serves_on();
}

TEST_F(WirePeer, CarrierGoesAndComes) {
  Peer peer;
  peer.greet();
  ASSERT_TRUE(reaches(end_.device, kActive));
  peer.send(Peer::message(wire::Type::kCarrier, {0, 0, 0xff, 0xff}));
  EXPECT_TRUE(reaches(end_.device, kDown));
  peer.send(Peer::message(wire::Type::kCarrier, {1, 0, 0xff, 0xff}));
  EXPECT_TRUE(reaches(end_.device, kActive));
}

TEST_F(WirePeer, FramesOfNonsenseAreDroppedAndCounted) {
  Peer peer;
  peer.greet();
  ASSERT_TRUE(reaches(end_.device, kActive));
  std::mt19937 random(7);
  const auto before = end_.function.counter("rx_dropped") + end_.function.counter("rx_errors");
  std::uint64_t sent = 0;
  std::vector<std::uint8_t> rest;
  wired_machine().wait_real([&] {
    while (sent < 20000) {
      if (rest.empty()) {
        std::vector<std::uint8_t> body(1 + random() % (random() % 10 == 0 ? 10496 : 300));
        for (auto& b : body) b = static_cast<std::uint8_t>(random());
        rest = Peer::message(wire::Type::kFrame, body);
        ++sent;
      }
      const std::size_t n = peer.send(rest);
      rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n));
      if (!rest.empty()) return false;
    }
    return true;
  });
  EXPECT_EQ(sent, 20000u);
  EXPECT_TRUE(wired_machine().wait_real([&] {
    return end_.function.counter("rx_dropped") + end_.function.counter("rx_errors") == before + sent;
  }));
  EXPECT_EQ(end_.device.port_state(), kActive);
}

// It sends and sends to a peer that does not read: memory stays bounded, what has no room is lost and
// counted, and nothing hangs.
TEST_F(WirePeer, ADeafPeerDoesNoHarm) {
  Peer peer;
  peer.greet();
  ASSERT_TRUE(reaches(end_.device, kActive));
  end_.qp.connect(QpAttr{});
  SendWr w;
  w.sges = {end_.sge(0, 4096)};
  w.av.qpn = 5;
  w.av.dlid = 1;
  unsigned done = 0;
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 32; ++i) end_.qp.post(w, false);
    end_.qp.ring_doorbell();
    for (int i = 0; i < 32; ++i) {
      if (end_.cq.wait(1).size() == 1) ++done;
    }
  }
  EXPECT_EQ(done, 300u * 32);
  EXPECT_EQ(end_.device.port_state(), kActive);
  // It hears again: what was kept comes, whole.
  std::size_t frames = 0;
  wired_machine().wait_real(
      [&] {
        const std::string& all = peer.hear();
        frames = all.size() / 4096;
        return false;
      },
      300);
  EXPECT_GT(frames, 100u);
}

}  // namespace
}  // namespace hcasim::bare
