// SPDX-License-Identifier: BSD-3-Clause
#include "driver/vfio-user/client.h"

#include <linux/pci_regs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hcasim::bare {

using namespace vfio_user;

VfioUserClient::VfioUserClient(HostMemory& memory, Descriptor socket, std::function<void()> serve,
                               int patience)
    : memory_(memory),
      connection_(std::move(socket)),
      serve_(std::move(serve)),
      patience_(patience),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  agree();
  memory_.add_observer(*this);
  give_eventfds();
  enable();
}

VfioUserClient::~VfioUserClient() { memory_.remove_observer(*this); }

// ---- messages ----

void VfioUserClient::wait_for_answer(std::uint16_t id) {
  while (true) {
    if (serve_) serve_();
    switch (connection_.read()) {
      case Connection::Read::kMessage:
        if (connection_.message().header.id == id) return;
        continue;  // to what was given up
      case Connection::Read::kEnd:
        throw VfioUserError("the server has gone: " + connection_.why(), 0);
      case Connection::Read::kNothing:
        break;
    }
    pollfd ready{connection_.fd(), POLLIN, 0};
    if (!serve_ && ::poll(&ready, 1, patience_) == 0)
      throw VfioUserError("no answer within " + std::to_string(patience_) + " ms", ETIMEDOUT);
  }
}

std::vector<std::uint8_t> VfioUserClient::command(Command command, const void* body, std::size_t len,
                                                  const std::vector<int>& files) {
  Header header{};
  header.id = ++id_;
  header.command = static_cast<std::uint16_t>(command);
  header.size = static_cast<std::uint32_t>(sizeof header + len);
  if (!connection_.command(header, body, len, files.data(), static_cast<unsigned>(files.size())))
    throw VfioUserError("the server has gone", 0);
  wait_for_answer(header.id);
  Message& answer = connection_.message();
  if ((answer.header.flags & kError) != 0) {
    const auto number = static_cast<int>(answer.header.error);
    throw VfioUserError("command " + std::to_string(header.command) + ": " + std::strerror(number), number);
  }
  return std::move(answer.body);
}

void VfioUserClient::agree() {
  const std::string ours = R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576}})";
  std::vector<std::uint8_t> body(sizeof(Version) + ours.size() + 1);
  const Version version{0, 1};
  std::memcpy(body.data(), &version, sizeof version);
  std::memcpy(body.data() + sizeof version, ours.c_str(), ours.size() + 1);
  const auto answer = command(Command::kVersion, body.data(), body.size());
  if (answer.size() <= sizeof(Version) || answer.back() != 0)
    throw VfioUserError("the server's version is cut short", EPROTO);
}

// ---- memory ----

void VfioUserClient::map(std::uint64_t bus, std::uint64_t len) {
  const DmaMapRequest request{sizeof request, kDmaReadable | kDmaWritable, bus - HostMemory::kBusBase, bus,
                              len};
  command(Command::kDmaMap, &request, sizeof request, {memory_.fd()});
  mapped_[bus] = len;
}

// A range goes as it came: what is left of it comes again.
void VfioUserClient::accessible(std::uint64_t bus, std::size_t len, bool on) {
  if (on) {
    map(bus, len);
    return;
  }
  for (auto it = mapped_.upper_bound(bus + len - 1); it != mapped_.begin();) {
    --it;
    const auto [from, size] = *it;
    if (from + size <= bus) break;
    const DmaUnmapRequest request{sizeof request, 0, from, size};
    command(Command::kDmaUnmap, &request, sizeof request);
    it = mapped_.erase(it);
    if (from < bus) map(from, bus - from);
    if (from + size > bus + len) map(bus + len, from + size - (bus + len));
    it = mapped_.lower_bound(from);
  }
}

void VfioUserClient::bus_master(bool on) {
  master_ = on;
  if (msix_ != 0) enable();
}

// ---- interrupts ----

void VfioUserClient::give_eventfds() {
  vfio_irq_info info{};
  info.argsz = sizeof info;
  info.index = VFIO_PCI_MSIX_IRQ_INDEX;
  const auto answer = command(Command::kDeviceGetIrqInfo, &info, sizeof info);
  std::memcpy(&info, answer.data(), std::min(sizeof info, answer.size()));
  for (std::uint32_t v = 0; v < info.count; ++v) {
    eventfds_.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = v;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, eventfds_.back().get(), &event);
  }
  for (std::uint32_t first = 0; first < info.count; first += kMostFds) {
    vfio_irq_set set{};
    set.argsz = sizeof set;
    set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set.index = VFIO_PCI_MSIX_IRQ_INDEX;
    set.start = first;
    set.count = std::min<std::uint32_t>(kMostFds, info.count - first);
    std::vector<int> files;
    for (std::uint32_t i = 0; i < set.count; ++i) files.push_back(eventfds_[first + i].get());
    command(Command::kDeviceSetIrqs, &set, sizeof set, files);
  }
}

std::uint64_t VfioUserClient::take_interrupts() {
  std::uint64_t vectors = 0;
  epoll_event events[64];
  const int n = ::epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < n; ++i) {
    std::uint64_t count = 0;
    if (::read(eventfds_[events[i].data.u32].get(), &count, sizeof count) == sizeof count)
      vectors |= 1ull << events[i].data.u32;
  }
  return vectors;
}

bool VfioUserClient::wait_for_interrupt(int ms) {
  pollfd ready{epoll_.get(), POLLIN, 0};
  return ::poll(&ready, 1, ms) == 1;
}

// ---- regions ----

void VfioUserClient::read(unsigned region, std::uint64_t offset, void* bytes, std::uint32_t len) {
  const RegionAccess access{offset, region, len};
  const auto answer = command(Command::kRegionRead, &access, sizeof access);
  if (answer.size() != sizeof access + len) throw VfioUserError("a read's answer has another length", EPROTO);
  std::memcpy(bytes, answer.data() + sizeof access, len);
}

void VfioUserClient::write(unsigned region, std::uint64_t offset, const void* bytes, std::uint32_t len,
                           bool posted) {
  std::vector<std::uint8_t> body(sizeof(RegionAccess) + len);
  const RegionAccess access{offset, region, len};
  std::memcpy(body.data(), &access, sizeof access);
  std::memcpy(body.data() + sizeof access, bytes, len);
  if (!posted) {
    command(Command::kRegionWrite, body.data(), body.size());
    return;
  }
  Header header{};
  header.id = ++id_;
  header.command = static_cast<std::uint16_t>(Command::kRegionWrite);
  header.size = static_cast<std::uint32_t>(sizeof header + body.size());
  header.flags = kNoReply;
  if (!connection_.command(header, body.data(), body.size(), nullptr, 0))
    throw VfioUserError("the server has gone", 0);
  if (serve_) serve_();
}

std::uint64_t VfioUserClient::region_size(unsigned region) {
  vfio_region_info info{};
  info.argsz = sizeof info;
  info.index = region;
  const auto answer = command(Command::kDeviceGetRegionInfo, &info, sizeof info);
  if (answer.size() < sizeof info) throw VfioUserError("a region's description is cut short", EPROTO);
  std::memcpy(&info, answer.data(), sizeof info);
  return info.size;
}

std::uint32_t VfioUserClient::config(unsigned offset, unsigned len) {
  std::uint32_t value = 0;
  read(VFIO_PCI_CONFIG_REGION_INDEX, offset, &value, len);
  return value;
}

void VfioUserClient::set_config(unsigned offset, std::uint32_t value, unsigned len) {
  write(VFIO_PCI_CONFIG_REGION_INDEX, offset, &value, len, false);
}

void VfioUserClient::enable() {
  for (unsigned at = config(PCI_CAPABILITY_LIST, 1); msix_ == 0 && at != 0;
       at = config(at + PCI_CAP_LIST_NEXT, 1)) {
    if (config(at, 1) == PCI_CAP_ID_MSIX) msix_ = at;
  }
  if (msix_ == 0) throw VfioUserError("the function has no MSI-X", EPROTO);
  set_config(PCI_COMMAND, PCI_COMMAND_MEMORY | (master_ ? PCI_COMMAND_MASTER : 0u), 2);
  set_config(msix_ + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE, 2);
}

void VfioUserClient::reset() {
  command(Command::kDeviceReset, nullptr, 0);
  take_interrupts();
  enable();
}

}  // namespace hcasim::bare
