// SPDX-License-Identifier: BSD-3-Clause
// A client that means harm: messages that are cut, joined, wrong in any field, with descriptors that do not
// belong to them, of memory that overlaps, wraps, shrinks or vanishes while the card uses it, by a client
// that does not read. Whatever comes, the process goes on and the next client finds the card in order.
//   HCASIM_FUZZ_SECONDS=N   for so long instead of a fixed number of sessions; HCASIM_FUZZ_SEED=N   begins
//   there
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "vfio-user/session.h"

namespace hcasim::vfio_user {
namespace {

struct Served {
  std::int64_t now = 0;
  Timekeeper time{[this] { return now += 5000; }, 10'000};
  std::uint64_t lines = 0;
  Card card{"card", "link=eth", time, [this](int, const std::string&) { ++lines; }, [](int, bool, bool) {}};
  Served() { time.start(); }
};

Served& served() {
  static auto* s = new Served;
  return *s;
}

// Numbers that find edges more often than chance does.
class Values {
 public:
  explicit Values(std::uint64_t seed) : random(seed) {}
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random() % n; }
  bool one_in(unsigned n) { return below(n) == 0; }
  std::uint64_t number() {
    switch (below(6)) {
      case 0:
        return below(16);
      case 1:
        return 1ull << below(64);
      case 2:
        return ~0ull - below(8192);
      case 3:
        return below(64) * 4096;
      case 4:
        return (1ull << below(64)) - 1;
      default:
        return random();
    }
  }
  std::mt19937_64 random;
};

class Attacker {
 public:
  explicit Attacker(std::uint64_t seed) : values_(seed) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    session_ = std::make_unique<Session>(Descriptor(ends[0]), served().card);
    socket_ = Descriptor(ends[1]);
    memory_ = Descriptor(::memfd_create("attacker", MFD_CLOEXEC));
    resize(1 << 20);
    event_ = Descriptor(::eventfd(0, EFD_NONBLOCK));
  }

  // Until the session ends, or `most` messages.
  unsigned run(unsigned most) {
    if (!rough_ || !values_.one_in(16)) agree();
    bool open = true;
    unsigned sent = 0;
    for (; open && sent < most; ++sent) {
      if (values_.one_in(24)) resize(values_.below(2) << 20);
      std::vector<std::uint8_t> bytes = message();
      if (rough_ && values_.one_in(40)) bytes.resize(values_.below(bytes.size() + 1));
      if (rough_ && values_.one_in(40) && !bytes.empty())
        bytes[values_.below(bytes.size())] ^= 1u << values_.below(8);
      put(bytes, values_.one_in(4) ? static_cast<unsigned>(values_.below(rough_ ? 18 : 5)) : files_);
      open = session_->serve() != Session::State::kEnd;
      if (!values_.one_in(8)) drain();
    }
    drain();
    return sent;
  }

 private:
  void resize(std::uint64_t bytes) {
    static_cast<void>(!::ftruncate(memory_.get(), static_cast<off_t>(bytes)));
  }

  void agree() {
    std::vector<std::uint8_t> bytes = head(Command::kVersion, sizeof(Version));
    bytes.resize(sizeof(Header) + sizeof(Version));
    put(bytes, 0);
    session_->serve();
    drain();
  }

  std::vector<std::uint8_t> head(Command command, std::size_t body) {
    Header h{};
    h.id = static_cast<std::uint16_t>(values_.random());
    h.command = static_cast<std::uint16_t>(command);
    h.size = static_cast<std::uint32_t>(sizeof h + body);
    h.flags = values_.one_in(3)     ? kNoReply
              : values_.one_in(100) ? static_cast<std::uint32_t>(values_.number())
                                    : 0;
    std::vector<std::uint8_t> out(sizeof h);
    std::memcpy(out.data(), &h, sizeof h);
    return out;
  }
  template <class T>
  std::vector<std::uint8_t> message_of(Command command, const T& body, std::size_t more = 0) {
    std::vector<std::uint8_t> out = head(command, sizeof body + more);
    out.resize(out.size() + sizeof body + more);
    std::memcpy(out.data() + sizeof(Header), &body, sizeof body);
    for (std::size_t i = out.size() - more; i < out.size(); ++i)
      out[i] = static_cast<std::uint8_t>(values_.random());
    return out;
  }

  std::vector<std::uint8_t> access(bool write) {
    static constexpr std::uint32_t kRegionsThere[] = {0, 2, 7};
    RegionAccess a{};
    a.region =
        values_.one_in(20) ? static_cast<std::uint32_t>(values_.number()) : kRegionsThere[values_.below(3)];
    const std::uint64_t size = Card::region_size(a.region);
    a.offset = values_.one_in(30) || size == 0 ? values_.number() : values_.below(size) & ~values_.below(8);
    if (a.region == 0 && values_.one_in(2)) a.offset &= 0x3fff;  // where registers and doorbells are
    a.count = values_.one_in(30) ? static_cast<std::uint32_t>(values_.number()) : 1u << values_.below(4);
    if (!write) return message_of(Command::kRegionRead, a);
    return message_of(Command::kRegionWrite, a,
                      values_.one_in(30) ? values_.below(300) : std::min(a.count, 4096u));
  }

  std::vector<std::uint8_t> message() {
    files_ = 0;
    switch (values_.below(12)) {
      case 0: {
        const DmaMapRequest map{values_.one_in(20) ? 0u : 32u,
                                values_.one_in(20) ? static_cast<std::uint32_t>(values_.number()) : 3u,
                                values_.one_in(8) ? values_.number() : values_.below(4) << 16,
                                values_.one_in(8) ? values_.number() : values_.below(64) << 16,
                                values_.one_in(8) ? values_.number() : (1 + values_.below(4)) << 16};
        files_ = values_.one_in(6) ? 0 : 1;
        return message_of(Command::kDmaMap, map);
      }
      case 1: {
        const DmaUnmapRequest unmap{24, values_.one_in(8) ? static_cast<std::uint32_t>(values_.below(4)) : 0u,
                                    values_.one_in(8) ? values_.number() : values_.below(64) << 16,
                                    values_.one_in(8) ? values_.number() : (1 + values_.below(4)) << 16};
        return message_of(Command::kDmaUnmap, unmap);
      }
      case 2: {
        vfio_irq_set set{};
        set.argsz = sizeof set;
        set.flags = 1u << values_.below(3) | 8u << values_.below(3);
        set.index = static_cast<std::uint32_t>(values_.below(6));
        set.start = static_cast<std::uint32_t>(values_.one_in(8) ? values_.number() : values_.below(64));
        set.count = static_cast<std::uint32_t>(values_.one_in(8) ? values_.number() : values_.below(4));
        files_ = values_.one_in(2) ? std::min(set.count, 16u) : 0;
        return message_of(Command::kDeviceSetIrqs, set, values_.below(8));
      }
      case 3: {  // what makes the card use the memory: command queue, bus master, doorbell
        struct {
          WriteMulti many;
          SingleWrite writes[5];
        } start{{5}, {}};
        const auto word = [&](unsigned i, std::uint32_t region, std::uint64_t offset, std::uint32_t value) {
          start.writes[i] = {offset, region, 4, {}};
          std::memcpy(start.writes[i].data, &value, 4);
        };
        word(0, 7, PCI_COMMAND, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
        word(1, 7, 0x50, 0x80000011);
        word(2, 0, 0x10, 0);
        word(3, 0, 0x14, __builtin_bswap32(static_cast<std::uint32_t>(values_.below(64) << 16)));
        word(4, 0, 0x18, __builtin_bswap32(static_cast<std::uint32_t>(values_.random())));
        return message_of(Command::kRegionWriteMulti, start);
      }
      case 4: {
        WriteMulti many{values_.one_in(2) ? values_.number() : values_.below(8)};
        return message_of(Command::kRegionWriteMulti, many, values_.below(9) * sizeof(SingleWrite));
      }
      case 5:
        return values_.one_in(10) ? head(Command::kDeviceReset, 0) : access(true);
      case 6:  // anything
        return message_of(static_cast<Command>(values_.below(24)), values_.number(), values_.below(64));
      case 7: {
        vfio_region_info info{};
        info.argsz = static_cast<std::uint32_t>(values_.one_in(4) ? values_.number() : sizeof info);
        info.index = static_cast<std::uint32_t>(values_.below(12));
        return message_of(values_.one_in(2) ? Command::kDeviceGetRegionInfo : Command::kDeviceGetIrqInfo,
                          info);
      }
      default:
        return access(values_.one_in(2));
    }
  }

  void put(const std::vector<std::uint8_t>& bytes, unsigned files) {
    std::vector<int> fds;
    for (unsigned i = 0; i < files; ++i) fds.push_back(values_.one_in(3) ? event_.get() : memory_.get());
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 18)] = {};
    // In one go, or in two, with the descriptors in the first.
    const std::size_t cut = values_.one_in(10) ? values_.below(bytes.size() + 1) : bytes.size();
    for (const auto& [from, to] : {std::pair{std::size_t{0}, cut}, std::pair{cut, bytes.size()}}) {
      if (from == to) continue;
      iovec piece{const_cast<std::uint8_t*>(bytes.data()) + from, to - from};
      msghdr m{};
      m.msg_iov = &piece;
      m.msg_iovlen = 1;
      if (from == 0 && !fds.empty()) {
        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr* const c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
      }
      static_cast<void>(!::sendmsg(socket_.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT));
      if (to != bytes.size()) session_->serve();
    }
  }

  void drain() {
    char text[65536];
    while (::recv(socket_.get(), text, sizeof text, MSG_DONTWAIT) > 0) {
    }
  }

  Values values_;
  const bool rough_ = values_.one_in(3);  // messages that end the session, too
  Descriptor socket_, memory_, event_;
  unsigned files_ = 0;  // that belong to the message
  std::unique_ptr<Session> session_;
};

// The card as a client finds it that means well.
void expect_in_order() {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  Session session{Descriptor(ends[0]), served().card};
  Connection client{Descriptor(ends[1])};
  const auto ask = [&](Command command, const void* body, std::size_t len) {
    Header h{1, static_cast<std::uint16_t>(command), static_cast<std::uint32_t>(sizeof h + len), 0, 0};
    client.command(h, body, len, nullptr, 0);
    session.serve();
    return client.read() == Connection::Read::kMessage && (client.message().header.flags & kError) == 0;
  };
  const Version version{0, 0};
  ASSERT_TRUE(ask(Command::kVersion, &version, sizeof version));
  const RegionAccess id{0, VFIO_PCI_CONFIG_REGION_INDEX, 4}, interface { 4, 0, 4 };
  ASSERT_TRUE(ask(Command::kRegionRead, &id, sizeof id));
  std::uint32_t value = 0;
  std::memcpy(&value, client.message().body.data() + sizeof id, 4);
  ASSERT_EQ(value, 0x101915b3u);
  ASSERT_TRUE(ask(Command::kRegionRead, &interface, sizeof interface));
  std::memcpy(&value, client.message().body.data() + sizeof interface, 4);
  ASSERT_EQ(__builtin_bswap32(value) >> 16, 5u);
}

TEST(VfioUserFuzz, AClientThatMeansHarm) {
  const char* const seconds = std::getenv("HCASIM_FUZZ_SECONDS");
  const char* const first = std::getenv("HCASIM_FUZZ_SEED");
  std::uint64_t seed = first ? std::strtoull(first, nullptr, 0) : 1, messages = 0, sessions = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 0);
  do {
    SCOPED_TRACE("HCASIM_FUZZ_SEED=" + std::to_string(seed));
    messages += Attacker(seed++).run(400);
    expect_in_order();
    ++sessions;
    if (HasFatalFailure()) return;
  } while (seconds ? std::chrono::steady_clock::now() < end : sessions < 150);
  std::printf("%llu sessions, %llu messages\n", static_cast<unsigned long long>(sessions),
              static_cast<unsigned long long>(messages));
  EXPECT_GT(messages, sessions * 50);
}

}  // namespace
}  // namespace hcasim::vfio_user
