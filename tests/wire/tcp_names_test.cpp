// SPDX-License-Identifier: BSD-3-Clause
// Machines that are named in a wire's address, as they know themselves and as others know them.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "pass.h"
#include "wire/link.h"

namespace {

// This machine's name, as Debian's /etc/hosts has it; and another machine, at which nobody listens.
constexpr const char *kOwnName = "own.test", *kOwnAddress = "127.0.1.1";
constexpr const char *kOtherName = "other.test", *kOtherAddress = "127.0.7.7";
constexpr in_addr_t kOther = 0x7f000707;
// A name that is not known at first; other threads are kept waiting for it.
constexpr const char* kLateName = "late.test";
std::atomic<unsigned> g_late_asked{0};
std::atomic<bool> g_late_answers{false};

}  // namespace

// In the place of the library's, for all of this program.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** list) {
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node != nullptr && std::strcmp(node, kOwnName) == 0) node = kOwnAddress;
  if (node != nullptr && std::strcmp(node, kOtherName) == 0) node = kOtherAddress;
  if (node != nullptr && std::strcmp(node, kLateName) == 0) {
    ++g_late_asked;
    if (::gettid() == ::getpid()) return EAI_NONAME;
    while (!g_late_answers) ::usleep(1000);
    node = kOwnAddress;
  }
  return real(node, service, hints, list);
}

extern "C" int bind(int fd, const sockaddr* at, socklen_t len) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(int, const sockaddr*, socklen_t)>(::dlsym(RTLD_NEXT, "bind"));
  if (at->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, at, sizeof four);
    if (four.sin_addr.s_addr == htonl(kOther)) {
      errno = EADDRNOTAVAIL;
      return -1;
    }
  }
  return real(fd, at, len);
}

namespace hcasim::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Of an address of this machine; -1: nobody listens there.
int connected(const char* address, unsigned port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::inet_pton(AF_INET, address, &at.sin_addr), 1);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
  ::close(fd);
  return -1;
}

// That no address of this machine has.
unsigned free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  socklen_t len = sizeof at;
  EXPECT_TRUE(::bind(fd, reinterpret_cast<const sockaddr*>(&at), len) == 0 &&
              ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &len) == 0);
  ::close(fd);
  return ntohs(at.sin_port);
}

class End final : Link::Owner {
 public:
  End(const std::string& host, unsigned port, const char* name)
      : link(address(host, port), hello(name), *this) {}
  std::string log;
  Link link;

 private:
  static Address address(const std::string& host, unsigned port) {
    Address a;
    std::string err;
    EXPECT_TRUE(parse_address("tcp:" + host + ":" + std::to_string(port), a, err)) << err;
    return a;
  }
  static Hello hello(const char* name) {
    Hello h;
    h.name = name;
    h.node_guid = static_cast<unsigned char>(name[0]);
    return h;
  }
  std::string wire_up(const Hello&) override { return ""; }
  void wire_down() override {}
  void wire_wish(const Wish&) override {}
  void wire_frame(const Message&) override {}
  void wire_watch(int, bool, bool) override {}
  void wire_log(int, const std::string& line) override { log += line + "\n"; }
};

class TcpNames : public ::testing::Test {
 protected:
  template <class... Ends>
  void pass(double seconds, Ends&... ends) {
    pass_from(now_, seconds, ends...);
  }
  const unsigned port_ = free_port();
  std::int64_t now_ = kSecond;
};

// Others know it by another address than it does itself.
TEST_F(TcpNames, AMachineListensAtAllOfItsAddresses) {
  End a(kOwnName, port_, "a");
  pass(0.1, a);
  EXPECT_THAT(a.log,
              HasSubstr("waiting for the other end at port " + std::to_string(port_) + " of all addresses"));
  const int fd = connected("127.0.0.9", port_);
  EXPECT_GE(fd, 0);
  ::close(fd);
  End b("127.0.0.9", port_, "b");
  pass(8, a, b);  // what has connected before is waited out
  EXPECT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
}

TEST_F(TcpNames, TwoEndsOfOneMachineFindEachOtherByItsName) {
  End a(kOwnName, port_, "a"), b(kOwnName, port_, "b");
  pass(2, a, b);
  EXPECT_TRUE(a.link.up() && b.link.up()) << a.log << b.log;
}

// Who gives an address, or says that it is for this machine alone, is not listened for elsewhere.
TEST_F(TcpNames, AnAddressIsListenedAtAsItIs) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    End a(host, port_, "a");
    pass(0.1, a);
    EXPECT_THAT(a.log, HasSubstr("waiting for the other end at ")) << host;
    EXPECT_THAT(a.log, Not(HasSubstr("all addresses"))) << host;
    EXPECT_EQ(connected("127.0.0.9", port_), -1) << host;
  }
}

TEST_F(TcpNames, ANameThatIsNotKnownYetStopsNobody) {
  End a(kLateName, port_, "a");
  EXPECT_EQ(g_late_asked, 1u);
  pass(0.1, a);
  EXPECT_THAT(a.log, HasSubstr("cannot find late.test"));
  const auto begin = std::chrono::steady_clock::now();
  pass(60, a);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  {
    End left(kLateName, port_, "b");  // gone before there is an answer
    pass(6, left);
  }
  for (int i = 0; i < 5000 && g_late_asked < 4; ++i) ::usleep(1000);  // a thread begins when it can
  g_late_answers = true;
  for (int i = 0; i < 5000 && a.log.find("waiting") == std::string::npos; ++i) {
    pass(0.1, a);
    ::usleep(1000);
  }
  EXPECT_THAT(a.log, HasSubstr("waiting for the other end"));
  EXPECT_EQ(g_late_asked, 4u);
}

TEST_F(TcpNames, AnEndThatFindsNobodySaysSoOnce) {
  End b(kOtherName, port_, "b");
  pass(20, b);
  const std::string line =
      "nobody listens at " + std::string(kOtherAddress) + ":" + std::to_string(port_) + " yet";
  EXPECT_THAT(b.log, HasSubstr(line));
  EXPECT_EQ(b.log.find(line), b.log.rfind(line)) << b.log;
}

}  // namespace
}  // namespace hcasim::wire
