// SPDX-License-Identifier: BSD-3-Clause
// hcasim-serve as its users run it: a process, sockets, clients that come, drive the card, and go, in
// whatever way.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "../device/two_qps.h"
#include "../files.h"
#include "../process.h"
#include "driver/bare/qp.h"
#include "driver/vfio-user/client.h"

namespace hcasim::bare {
namespace {

using test::Folder;
using test::Process;
using vfio_user::Command;
using vfio_user::Descriptor;
using vfio_user::Header;

Descriptor connect_to(const std::string& path) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    socket.close();
  return socket;
}

void append_message(std::string& to, Command command, std::uint32_t flags, const std::string& body) {
  const Header h{1, static_cast<std::uint16_t>(command), static_cast<std::uint32_t>(sizeof h + body.size()),
                 flags, 0};
  to.append(reinterpret_cast<const char*>(&h), sizeof h).append(body);
}

std::string version_message() {
  const vfio_user::Version version{0, 1};
  std::string m;
  append_message(m, Command::kVersion, 0, {reinterpret_cast<const char*>(&version), sizeof version});
  return m;
}

// The driver in real time: it waits for the card's interrupts, and looks at its queues often.
class RealTime final : public Clock, public Pcie {
 public:
  VfioUserClient* client = nullptr;
  Function* function = nullptr;

  std::int64_t now() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void wait(std::int64_t) override {
    client->wait_for_interrupt(1);
    for (std::uint64_t v = client->take_interrupts(); v != 0; v &= v - 1)
      function->raise(static_cast<unsigned>(__builtin_ctzll(v)));
  }
  void read(std::uint64_t offset, void* bytes, unsigned len) override { client->read(0, offset, bytes, len); }
  void write(std::uint64_t offset, const void* bytes, unsigned len) override {
    client->write(0, offset, bytes, len, true);
  }
  void reset() override { client->reset(); }
};

// A machine whose one HCA is behind that socket.
struct Guest {
  explicit Guest(const std::string& path) : machine(64 << 20, time) {
    comes_to(path);
    time.function = &machine.add_function(time);
  }
  // Another server, in place of one that has gone.
  void comes_to(const std::string& path) {
    connection.reset();
    time.client = &connection.emplace(machine.memory(), connect_to(path));
  }
  VfioUserClient& client() { return *connection; }
  RealTime time;
  Machine machine;
  std::optional<VfioUserClient> connection;

  // RDMA WRITE through the card of the other process, and the bytes are there.
  void expect_a_write() {
    Device device(machine.function());
    device.probe();
    {
      Pd pd(device);
      Cq cq(device), rcq(device);
      Qp a(device, pd, cq, cq), b(device, pd, rcq, rcq);
      constexpr std::uint32_t kHalf = 1 << 15;
      const Buffer memory = device.memory().allocate(2 * kHalf);
      const Mr mr(device, Mr::of(pd, memory, kAllAccess));
      connect_pair(a, b, {});
      for (std::uint32_t i = 0; i < kHalf; ++i) memory.data()[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
      SendWr wr;
      wr.op = WqeOp::kRdmaWrite;
      wr.sges = {{mr.start(), mr.key(), kHalf}};
      wr.raddr = mr.start() + kHalf;
      wr.rkey = mr.key();
      a.post(wr);
      ASSERT_TRUE(machine.run_until([&] { return cq.poll().has_value(); }, 20'000'000'000));
      EXPECT_EQ(std::memcmp(memory.data(), memory.data() + kHalf, kHalf), 0);
    }
    device.teardown();
  }
};

class ServerTest : public testing::Test {
 protected:
  Process serve(const std::vector<std::string>& more = {}) { return Process(SERVE, arguments(more)); }
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"--socket", socket, "--hca", "link=ib", "--control", control};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  nlohmann::json ask(const std::string& request) const {
    const Descriptor to = connect_to(control);
    const std::string line = request + "\n";
    EXPECT_EQ(::send(to.get(), line.data(), line.size(), 0), static_cast<ssize_t>(line.size()));
    std::string answer;
    char text[65536];
    while (answer.empty() || answer.back() != '\n') {
      const ssize_t n = ::recv(to.get(), text, sizeof text, 0);
      if (n <= 0) break;
      answer.append(text, static_cast<std::size_t>(n));
    }
    return nlohmann::json::parse(answer, nullptr, false);
  }

  Folder folder;
  const std::string socket = folder / "card.sock", control = folder / "control.sock";
};

TEST_F(ServerTest, ADriverBringsTheCardUpAndWrites) {
  Process server = serve();
  ASSERT_TRUE(server.prints("waits for a client"));
  {
    Guest guest(socket);
    guest.expect_a_write();
    EXPECT_EQ(ask(R"({"get":"ctr-wqes"})").value("error", ""), "");
  }
  ASSERT_TRUE(server.prints("the client has gone"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.end(), 0) << server.said;
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_FALSE(std::filesystem::exists(control));
}

// The card goes to a new process, with its driver's queue pairs, and the driver goes on.
TEST_F(ServerTest, ACardGoesOnInAnotherProcessFromItsState) {
  const std::string state = folder / "state";
  Process first = serve();
  ASSERT_TRUE(first.prints("waits for a client"));
  Guest guest(socket);
  std::optional<Process> server;
  Device device(guest.machine.function());
  device.probe();
  {
    TwoQps qps(device);
    const auto writes = [&](std::uint8_t what) {
      const std::size_t half = qps.memory.size() / 2;
      std::memset(qps.memory.data(), what, half);
      qps.a->post(qps.wr(prm::WqeOp::kRdmaWrite, static_cast<std::uint32_t>(half)));
      return guest.machine.run_until([&] { return qps.cq.poll().has_value(); }, 20'000'000'000) &&
             std::memcmp(qps.memory.data(), qps.memory.data() + half, half) == 0;
    };
    ASSERT_TRUE(writes(0x11));
    ASSERT_EQ(ask(R"({"save":")" + state + "\"}").dump(), "{}");
    const std::uint64_t digest = ask(R"({"get":"ctr-state-digest"})").value("value", std::uint64_t{0});
    EXPECT_NE(digest, 0u);
    first.signal(SIGKILL);
    first.end();
    server.emplace(SERVE, arguments());
    ASSERT_TRUE(server->prints("waits for a client"));
    EXPECT_NE(ask(R"({"load":")" + state + "\"}").value("error", "").find("had a client"), std::string::npos);
    guest.comes_to(socket);
    EXPECT_NE(ask(R"({"load":"/nowhere/state"})").value("error", "").find("cannot be read"),
              std::string::npos);
    std::string bad = test::bytes_of(state);
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
    test::write_bytes(folder / "bad", bad);
    EXPECT_NE(ask(R"({"load":")" + (folder / "bad") + "\"}").value("error", "").find("checksum"),
              std::string::npos);
    ASSERT_EQ(ask(R"({"load":")" + state + "\"}").dump(), "{}");
    EXPECT_TRUE(writes(0x22));
    EXPECT_TRUE(writes(0x33));
    // Back to where it was; what it has done since is not done, and the driver is ahead of it.
    ASSERT_EQ(ask(R"({"save":")" + (folder / "later") + "\"}").dump(), "{}");
    ASSERT_EQ(ask(R"({"load":")" + (folder / "later") + "\"}").dump(), "{}");
    EXPECT_TRUE(writes(0x44));
    EXPECT_NE(ask(R"({"save":"/nowhere/state"})").value("error", "").find("cannot be written"),
              std::string::npos);
  }
  device.teardown();
}

TEST_F(ServerTest, TheNextClientIsServedWhenOneIsKilled) {
  Process server = serve();
  ASSERT_TRUE(server.prints("waits for a client"));
  const pid_t child = fork();
  if (child == 0) {  // drives the card until it is killed
    try {
      Guest guest(socket);
      Device device(guest.machine.function());
      device.probe();
      while (true) guest.client().write(0, 0x1000, "\0\0\0", 4, true);
    } catch (const std::exception&) {
    }
    _exit(1);
  }
  ASSERT_TRUE(server.prints("a client is there"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in the midst of something: anything will do
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(server.prints("the client has gone"));
  Guest guest(socket);
  guest.expect_a_write();
}

TEST_F(ServerTest, AClientHearsThatTheServerWasKilled) {
  Process server = serve();
  ASSERT_TRUE(server.prints("waits for a client"));
  Guest guest(socket);
  server.signal(SIGKILL);
  server.end();
  EXPECT_THROW(guest.client().config(0, 4), VfioUserError);
}

TEST_F(ServerTest, ASocketThatAKilledServerHasLeftIsReplaced) {
  {
    Process first = serve();
    ASSERT_TRUE(first.prints("waits for a client"));
    first.signal(SIGKILL);
    first.end();
  }
  ASSERT_TRUE(std::filesystem::exists(socket));
  Process second = serve();
  ASSERT_TRUE(second.prints("waits for a client"));
  Guest guest(socket);
  EXPECT_EQ(guest.client().config(0, 2), 0x15b3u);
}

TEST_F(ServerTest, ASocketThatIsServedStaysItsOwners) {
  Process first = serve();
  ASSERT_TRUE(first.prints("waits for a client"));
  Process second = serve();
  EXPECT_EQ(second.end(), 1);
  EXPECT_NE(second.said.find("another process serves this socket"), std::string::npos) << second.said;
  Guest guest(socket);
  EXPECT_EQ(guest.client().config(0, 2), 0x15b3u);
}

TEST_F(ServerTest, ASecondClientIsTurnedAway) {
  Process server = serve();
  ASSERT_TRUE(server.prints("waits for a client"));
  Guest guest(socket);
  HostMemory memory(1 << 20);
  EXPECT_THROW(VfioUserClient(memory, connect_to(socket)), VfioUserError);
  EXPECT_TRUE(server.prints("turned away"));
  EXPECT_EQ(guest.client().config(0, 2), 0x15b3u);
}

// A client's requests may be found because of another one that comes: it is served as in a turn of its own.
// While one card's client keeps the server busy, a second client and a request come to the other card.
TEST_F(ServerTest, AnAnswerThatDoesNotFitFollowsThoughASecondClientCame) {
  const std::string other = folder / "other.sock";
  Process server = serve({"--socket", other, "--hca", "link=ib", "--spin", "300000"});
  ASSERT_TRUE(server.prints("other.sock"));
  const auto say = [](const Descriptor& to, const std::string& bytes) {
    EXPECT_EQ(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  };
  const auto hear = [](const Descriptor& from) {  // one answer; its bytes
    const timeval patience{5, 0};
    ::setsockopt(from.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Header h{};
    if (::recv(from.get(), &h, sizeof h, MSG_WAITALL) != static_cast<ssize_t>(sizeof h))
      return std::size_t{0};
    std::string body(h.size - sizeof h, 0);
    if (!body.empty() &&
        ::recv(from.get(), body.data(), body.size(), MSG_WAITALL) != static_cast<ssize_t>(body.size()))
      return sizeof h;
    return sizeof h + body.size();
  };
  const Descriptor client = connect_to(socket), busy = connect_to(other);
  say(client, version_message());
  ASSERT_NE(hear(client), 0u);
  say(busy, version_message());
  ASSERT_NE(hear(busy), 0u);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the server sleeps
  server.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::string request;
  append_message(request, Command::kDeviceGetInfo, 0, std::string(sizeof(vfio_user::DeviceInfo), 0));
  say(busy, request);
  const Descriptor second = connect_to(socket);
  server.signal(SIGCONT);
  ASSERT_NE(hear(busy), 0u);
  const vfio_user::RegionAccess all{0, 0, vfio_user::kMostData};
  request.clear();
  append_message(request, Command::kRegionRead, 0, {reinterpret_cast<const char*>(&all), sizeof all});
  say(client, request);
  ASSERT_TRUE(server.prints("turned away"));
  EXPECT_EQ(hear(client), sizeof(Header) + sizeof all + vfio_user::kMostData);
}

// One leaves with requests that were not looked at yet, and the next one comes at once: nothing of the first
// one's is served, or waited for, in the name of the second.
TEST_F(ServerTest, RequestsOfOneThatHasGoneAreNotTheNextOnes) {
  Process server = serve();
  ASSERT_TRUE(server.prints("waits for a client"));
  const std::string greeting = version_message();
  std::string requests;
  for (unsigned i = 0; i < 100; ++i)  // more than are served in a turn, and fewer than in two
    append_message(requests, Command::kDeviceGetInfo, vfio_user::kNoReply,
                   std::string(sizeof(vfio_user::DeviceInfo), 0));
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  unsigned served = 0;
  for (unsigned round = 0; round < 3; ++round) {
    Descriptor first = connect_to(socket);
    ASSERT_TRUE(first) << "the server has gone, in round " << round;
    const auto say = [&](const std::string& bytes) {
      EXPECT_EQ(::send(first.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
    };
    say(greeting);
    char answer[4096];
    if (::recv(first.get(), answer, sizeof answer, 0) <= 0) continue;  // the one before is there still
    ++served;
    server.signal(SIGSTOP);  // it sees all of this at once
    pause();
    say(requests);
    first.close();
    Descriptor second = connect_to(socket);
    server.signal(SIGCONT);
    pause();
    second.close();
    pause();
  }
  EXPECT_GT(served, 0u);
  ASSERT_TRUE(server.prints("the client has gone"));
  for (int tries = 0;; ++tries) {  // the last one's end may be heard of later
    try {
      Guest guest(socket);
      EXPECT_EQ(guest.client().config(0, 2), 0x15b3u);
      break;
    } catch (const std::exception& e) {
      ASSERT_LT(tries, 50) << e.what() << server.said;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

TEST_F(ServerTest, EndsWithItsClientsIfAsked) {
  Process server = serve({"--once"});
  ASSERT_TRUE(server.prints("waits for a client"));
  { Guest guest(socket); }
  EXPECT_EQ(server.end(), 0) << server.said;
}

TEST_F(ServerTest, SaysWhatIsWrongWithItsOptions) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "no --socket"},
      {{"--socket", socket, "--hca", "link=eth,time=lockstep"}, "vfio-user has no clock"},
      {{"--socket", socket, "--hca", "link=eth,ahead=5"},
       "ahead=5: ahead= belongs to QEMU's own device (mlx5-hca)"},
      {{"--socket", socket, "--hca", "guest_pc=on"}, "guest_pc= belongs to QEMU's own device"},
      {{"--socket", socket, "--hca", "netdev=n"}, "netdev= belongs to QEMU's own device"},
      {{"--socket", socket, "--hca", "ports=2"}, "ports= belongs to QEMU's own device"},
      {{"--socket", socket, "--hca", "link=token"}, "link"},
      {{"--socket", socket, "--hca", "link=eth", "--hca", "link=ib"}, "one of each"},
      {{"--socket", folder / std::string(120, 'x')}, "at most"},
      {{"--socket", folder / "none/such"}, "No such file"},
  };
  for (const auto& [args, what] : cases) {
    Process server(SERVE, args);
    EXPECT_NE(server.end(), 0);
    EXPECT_NE(server.said.find(what), std::string::npos) << server.said;
  }
}

TEST_F(ServerTest, ListsTheOptionsOfTheModel) {
  Process list(SERVE, {"--options"});
  EXPECT_EQ(list.end(), 0) << list.said;
  for (const char* const key : {"\nlink ", "\nsnapshot_every ", "\necn_kmin ", "\nSECTION.KEY "})
    EXPECT_NE(("\n" + list.said).find(key), std::string::npos) << list.said;
}

TEST_F(ServerTest, MemoryThatIsNotSharedIsNamed) {
  Process server = serve();
  ASSERT_TRUE(server.prints("waits for a client"));
  Guest guest(socket);
  // All that the driver allocates is unmapped again, and mapped without a file.
  struct Unshared final : HostMemory::Observer {
    explicit Unshared(VfioUserClient& to) : client(to) {}
    VfioUserClient& client;
    void accessible(std::uint64_t bus, std::size_t len, bool on) override {
      if (!on) return;
      const vfio_user::DmaUnmapRequest unmap{sizeof unmap, 0, bus, len};
      client.command(vfio_user::Command::kDmaUnmap, &unmap, sizeof unmap);
      const vfio_user::DmaMapRequest map{sizeof map, 3, 0, bus, len};
      client.command(vfio_user::Command::kDmaMap, &map, sizeof map);
    }
    void bus_master(bool) override {}
  } unshared(guest.client());
  guest.machine.memory().add_observer(unshared);
  {
    const Buffer commands = guest.machine.memory().allocate(4096);
    const std::uint64_t bus = commands.bus();
    const std::uint32_t high = __builtin_bswap32(static_cast<std::uint32_t>(bus >> 32)),
                        low = __builtin_bswap32(static_cast<std::uint32_t>(bus)), bell = __builtin_bswap32(1);
    guest.client().write(0, 0x10, &high, 4, true);
    guest.client().write(0, 0x14, &low, 4, true);
    guest.client().write(0, 0x18, &bell, 4, true);
    EXPECT_TRUE(server.prints("share=on"));
  }
  guest.machine.memory().remove_observer(unshared);
}

TEST_F(ServerTest, AForeignClientFindsTheProtocolAsItKnowsIt) {
#ifdef FOREIGN_CLIENT
  Process server(SERVE, {"--socket", socket, "--hca", "link=eth"});
  ASSERT_TRUE(server.prints("waits for a client"));
  Process client(FOREIGN_CLIENT, {socket});
  EXPECT_EQ(client.end(), 0) << client.said;
  EXPECT_NE(client.said.find("all as it should be"), std::string::npos);
#else
  GTEST_SKIP() << "libvfio-user (in QEMU's source package) or json-c is not there";
#endif
}

TEST_F(ServerTest, TracesAreCompleteWhenItEnds) {
  const std::string trace = folder / "card.trace";
  Process server(SERVE, {"--socket", socket, "--hca", "link=eth,trace=" + trace});
  ASSERT_TRUE(server.prints("waits for a client"));
  {
    Guest guest(socket);
    guest.expect_a_write();
  }
  server.signal(SIGINT);
  EXPECT_EQ(server.end(), 0) << server.said;
  Process reader(TRACE_READER, {"--wqe", "--summary", trace});
  EXPECT_EQ(reader.end(), 0) << reader.said;
  EXPECT_NE(reader.said.find("RDMA_WRITE"), std::string::npos) << reader.said;
}

}  // namespace
}  // namespace hcasim::bare
