// SPDX-License-Identifier: BSD-3-Clause
// A client's messages to a card behind vfio-user. An input is a list of them: a byte that says how many files
// come with the message and whether a new session begins before it, two with its length, low one first, and
// the message; where its header's size is 0, the right one is put in.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "door.h"
#include "vfio-user/session.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::vfio_user;

constexpr std::size_t kMemory = std::size_t{1} << 20;

struct Served {
  std::int64_t now = 0;
  Timekeeper time{[this] { return now += 5000; }, 10'000};
  Card card{"card", "link=eth", time, [](int, const std::string&) {}, [](int, bool, bool) {}};
  Descriptor memory{::memfd_create("client", MFD_CLOEXEC)}, event{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  Served() { time.start(); }
};

Served& served() {
  static auto* const made = new Served;
  return *made;
}

class Client {
 public:
  Client() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      finding("socketpair");
    session_ = std::make_unique<Session>(Descriptor(ends[0]), served().card);
    socket_ = Descriptor(ends[1]);
  }
  // False: the session has ended.
  bool send(const std::vector<std::uint8_t>& bytes, unsigned files) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 18)] = {};
    iovec piece{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    if (files != 0) {
      int fds[18];
      for (unsigned i = 0; i < files; ++i) fds[i] = i % 3 == 2 ? served().event.get() : served().memory.get();
      m.msg_control = control;
      m.msg_controllen = CMSG_SPACE(sizeof(int) * files);
      cmsghdr* const c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int) * files);
      std::memcpy(CMSG_DATA(c), fds, sizeof(int) * files);
    }
    static_cast<void>(!::sendmsg(socket_.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT));
    const bool open = session_->serve() != Session::State::kEnd;
    char text[65536];
    while (::recv(socket_.get(), text, sizeof text, MSG_DONTWAIT) > 0) {
    }
    return open;
  }
  bool agree() {
    std::vector<std::uint8_t> bytes(sizeof(Header) + sizeof(Version));
    Header h{};
    h.command = static_cast<std::uint16_t>(Command::kVersion);
    h.size = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data(), &h, sizeof h);
    return send(bytes, 0);
  }

 private:
  Descriptor socket_;
  std::unique_ptr<Session> session_;
};

std::string raw_message(Command command, const void* body, std::size_t len, unsigned files = 0) {
  Header h{};
  h.command = static_cast<std::uint16_t>(command);
  const std::size_t size = sizeof h + len;
  std::string out{static_cast<char>(files), static_cast<char>(size & 0xff), static_cast<char>(size >> 8)};
  out.append(reinterpret_cast<const char*>(&h), sizeof h);
  return out.append(static_cast<const char*>(body), len);
}
template <class T>
std::string message(Command command, const T& body, unsigned files = 0) {
  return raw_message(command, &body, sizeof body, files);
}

std::string stores(unsigned region, std::uint64_t offset, std::uint32_t value) {
  struct {
    RegionAccess access;
    std::uint32_t value;
  } m{{offset, region, 4}, value};
  return raw_message(Command::kRegionWrite, &m, sizeof m.access + 4);
}

}  // namespace

void open_door(const std::uint8_t* bytes, std::size_t len) {
  Served& s = served();
  if (::ftruncate(s.memory.get(), 0) != 0 || ::ftruncate(s.memory.get(), static_cast<off_t>(kMemory)) != 0)
    finding("ftruncate");
  auto client = std::make_unique<Client>();
  client->agree();
  while (len >= 3) {
    const unsigned head = bytes[0];
    const std::size_t size =
        std::min<std::size_t>(bytes[1] | static_cast<std::size_t>(bytes[2]) << 8, len - 3);
    std::vector<std::uint8_t> m(bytes + 3, bytes + 3 + size);
    bytes += 3 + size;
    len -= 3 + size;
    if ((head & 0x80) != 0) client.reset();
    if (!client) client = std::make_unique<Client>();
    if ((head & 0x40) != 0) client->agree();
    if ((head & 0x20) != 0 && ::ftruncate(s.memory.get(), (head & 1) != 0 ? 4096 : 0) != 0)
      finding("ftruncate");
    Header h;
    if (m.size() >= sizeof h) {
      std::memcpy(&h, m.data(), sizeof h);
      if (h.size == 0) {
        h.size = static_cast<std::uint32_t>(m.size());
        std::memcpy(m.data(), &h, sizeof h);
      }
    }
    if (!m.empty() && !client->send(m, head % 18)) client.reset();
  }
  client.reset();
  s.card.reset();
}

std::vector<std::string> seeds() {
  const DmaMapRequest map{32, 3, 0, 0x100000, kMemory};
  const DmaUnmapRequest unmap{24, 0, 0x100000, kMemory};
  vfio_irq_set set{};
  set.argsz = sizeof set;
  set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set.index = VFIO_PCI_MSIX_IRQ_INDEX;
  set.count = 2;
  vfio_region_info region{};
  region.argsz = sizeof region;
  vfio_irq_info irq{};
  irq.argsz = sizeof irq;
  vfio_device_info info{};
  info.argsz = sizeof info;
  const RegionAccess config{0, VFIO_PCI_CONFIG_REGION_INDEX, 4}, bar{0, 0, 4};
  const std::string mapped =
      message(Command::kDmaMap, map, 1) + stores(7, 4, 6) + stores(7, 0x50, 0x80000011);
  return {message(Command::kDeviceGetInfo, info),
          message(Command::kDeviceGetRegionInfo, region) + message(Command::kDeviceGetIrqInfo, irq),
          message(Command::kRegionRead, config) + message(Command::kRegionRead, bar),
          mapped + message(Command::kDmaUnmap, unmap),
          mapped + message(Command::kDeviceSetIrqs, set, 2),
          mapped + stores(0, 0x10, 0) + stores(0, 0x14, 0x00001000) + stores(0, 0x18, 0x01000000),
          raw_message(Command::kDeviceReset, nullptr, 0),
          mapped + stores(2, 0, 0xfee00000) + stores(0, 0x3800, 0x100) +
              raw_message(Command::kDeviceReset, nullptr, 0)};
}

}  // namespace hcasim::fuzz
