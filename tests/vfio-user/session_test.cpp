// SPDX-License-Identifier: BSD-3-Clause
// A client's requests, one by one, of a real card: what is answered, and what is refused with which errno.
#include "vfio-user/session.h"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "vfio-user/control.h"

namespace hcasim::vfio_user {
namespace {

// One card for all tests: SystemC makes no module after the first event.
struct Served {
  std::int64_t now = 0;
  Timekeeper time{[this] { return now += 1000; }, 10'000};
  std::vector<std::string> log;
  std::vector<std::unique_ptr<Card>> cards;

  Served() {
    cards.push_back(std::make_unique<Card>(
        "card", "link=eth,node_guid=0002c90300a1b2c3", time,
        [this](int, const std::string& line) { log.push_back(line); }, [](int, bool, bool) {}));
    time.start();
  }
};

Served& served() {
  static auto* s = new Served;
  return *s;
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    served().log.clear();
    connect();
    agree();
  }

  void connect() {
    session.reset();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    session = std::make_unique<Session>(Descriptor(ends[0]), card());
    client = std::make_unique<Connection>(Descriptor(ends[1]));
  }

  int agree(std::uint16_t major = 0, std::uint16_t minor = 0,
            const std::string& json = R"({"capabilities":{}})") {
    std::vector<std::uint8_t> body(sizeof(Version) + json.size() + 1);
    const Version version{major, minor};
    std::memcpy(body.data(), &version, sizeof version);
    std::memcpy(body.data() + sizeof version, json.c_str(), json.size() + 1);
    return ask(Command::kVersion, body.data(), body.size());
  }

  // Sends a request and takes its answer: its errno, or 0 and `answer`. -1: there was none.
  int ask(Command command, const void* body, std::size_t len, const std::vector<int>& files = {},
          std::uint32_t flags = 0) {
    Header header{};
    header.id = ++id;
    header.command = static_cast<std::uint16_t>(command);
    header.size = static_cast<std::uint32_t>(sizeof header + len);
    header.flags = flags;
    EXPECT_TRUE(client->command(header, body, len, files.data(), static_cast<unsigned>(files.size())));
    state = session->serve();
    if (client->read() != Connection::Read::kMessage) return -1;
    const Header& got = client->message().header;
    EXPECT_EQ(got.id, id);
    EXPECT_EQ(got.command, header.command);
    EXPECT_EQ(got.flags & kTypeMask, kReply);
    answer = client->message().body;
    EXPECT_EQ(got.size, sizeof got + answer.size());
    return (got.flags & kError) != 0 ? static_cast<int>(got.error) : 0;
  }
  template <class T>
  int ask(Command command, const T& request, const std::vector<int>& files = {}, std::uint32_t flags = 0) {
    return ask(command, &request, sizeof request, files, flags);
  }
  template <class T>
  T answered() const {
    T out{};
    EXPECT_GE(answer.size(), sizeof out);
    std::memcpy(&out, answer.data(), std::min(answer.size(), sizeof out));
    return out;
  }

  int read(unsigned region, std::uint64_t offset, std::uint32_t len) {
    const int error = ask(Command::kRegionRead, RegionAccess{offset, region, len});
    if (error == 0) answer.erase(answer.begin(), answer.begin() + sizeof(RegionAccess));
    return error;
  }
  std::uint32_t config(unsigned offset, unsigned len) {
    EXPECT_EQ(read(VFIO_PCI_CONFIG_REGION_INDEX, offset, len), 0);
    std::uint32_t value = 0;
    std::memcpy(&value, answer.data(), std::min<std::size_t>(answer.size(), 4));
    return value;
  }
  int write(unsigned region, std::uint64_t offset, const void* bytes, std::uint32_t len,
            std::uint32_t flags = 0) {
    std::vector<std::uint8_t> body(sizeof(RegionAccess) + len);
    const RegionAccess access{offset, region, len};
    std::memcpy(body.data(), &access, sizeof access);
    std::memcpy(body.data() + sizeof access, bytes, len);
    return ask(Command::kRegionWrite, body.data(), body.size(), {}, flags);
  }
  void set_config(unsigned offset, std::uint32_t value, unsigned len) {
    ASSERT_EQ(write(VFIO_PCI_CONFIG_REGION_INDEX, offset, &value, len), 0);
  }
  int set_irqs(std::uint32_t index, std::uint32_t flags, std::uint32_t start, std::uint32_t count,
               const std::vector<int>& files = {}, const std::string& data = "") {
    vfio_irq_set set{};
    set.argsz = static_cast<std::uint32_t>(sizeof set + data.size());
    set.flags = flags;
    set.index = index;
    set.start = start;
    set.count = count;
    std::vector<std::uint8_t> body(sizeof set + data.size());
    std::memcpy(body.data(), &set, sizeof set);
    std::memcpy(body.data() + sizeof set, data.data(), data.size());
    return ask(Command::kDeviceSetIrqs, body.data(), body.size(), files);
  }
  std::uint32_t register32(std::uint64_t offset) {
    EXPECT_EQ(read(0, offset, 4), 0);
    std::uint32_t value = 0;
    std::memcpy(&value, answer.data(), 4);
    return __builtin_bswap32(value);
  }

  static Card& card() { return *served().cards[0]; }

  std::unique_ptr<Session> session;
  std::unique_ptr<Connection> client;
  Session::State state = Session::State::kIdle;
  std::vector<std::uint8_t> answer;
  std::uint16_t id = 0;
};

constexpr std::uint32_t kTrigger = VFIO_IRQ_SET_ACTION_TRIGGER,
                        kEventfds = kTrigger | VFIO_IRQ_SET_DATA_EVENTFD;
constexpr std::uint32_t kBoth = kDmaReadable | kDmaWritable;

// ---- version ----

TEST_F(SessionTest, TheLowerMinorVersionIsAgreedOn) {
  for (const auto& [theirs, agreed] : {std::pair{0, 0}, {1, 1}, {9, 1}}) {
    connect();
    ASSERT_EQ(agree(0, static_cast<std::uint16_t>(theirs)), 0);
    EXPECT_EQ(answered<Version>().minor, agreed);
    ASSERT_EQ(answer.back(), 0);
    const auto json = nlohmann::json::parse(answer.begin() + sizeof(Version), answer.end() - 1);
    EXPECT_EQ(json.at("capabilities").at("write_multiple"), true);
    EXPECT_EQ(json.at("capabilities").at("max_msg_fds"), kMostFds);
  }
}

TEST_F(SessionTest, AnotherMajorVersionIsRefused) {
  connect();
  EXPECT_EQ(agree(1, 0), EINVAL);
  EXPECT_EQ(agree(0, 0, "{no json"), EINVAL);
  EXPECT_EQ(agree(0, 0), 0) << "the client may try again";
  EXPECT_EQ(agree(0, 0), EINVAL) << "but agrees once";
}

TEST_F(SessionTest, NothingIsDoneBeforeTheVersion) {
  connect();
  EXPECT_EQ(ask(Command::kDeviceGetInfo, DeviceInfo{16, 0, 0, 0}), -1);
  EXPECT_EQ(state, Session::State::kEnd);
  EXPECT_NE(session->why(), "");
}

// ---- what the device is ----

TEST_F(SessionTest, IsAPciDeviceThatCanBeReset) {
  ASSERT_EQ(ask(Command::kDeviceGetInfo, DeviceInfo{16, 0, 0, 0}), 0);
  const auto info = answered<DeviceInfo>();
  EXPECT_EQ(info.flags, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
  EXPECT_EQ(info.regions, 9u);
  EXPECT_EQ(info.interrupts, 5u);
  EXPECT_EQ(ask(Command::kDeviceGetInfo, DeviceInfo{8, 0, 0, 0}), EINVAL);
}

TEST_F(SessionTest, RegionsAreTheBarsAndTheConfigurationSpace) {
  const std::uint64_t sizes[] = {32 << 20, 0, 4096, 0, 0, 0, 0, 4096, 0};
  for (std::uint32_t i = 0; i < 9; ++i) {
    vfio_region_info info{};
    info.argsz = sizeof info;
    info.index = i;
    ASSERT_EQ(ask(Command::kDeviceGetRegionInfo, info), 0) << i;
    const auto got = answered<vfio_region_info>();
    EXPECT_EQ(got.size, sizes[i]) << i;
    EXPECT_EQ(got.flags, sizes[i] != 0 ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0u)
        << "nothing can be mapped";
  }
  vfio_region_info info{};
  info.argsz = sizeof info;
  info.index = 9;
  EXPECT_EQ(ask(Command::kDeviceGetRegionInfo, info), EINVAL);
}

TEST_F(SessionTest, ConfigurationSpaceIsThatOfTheInProcessDevice) {
  EXPECT_EQ(config(PCI_VENDOR_ID, 4), 0x101915b3u);
  EXPECT_EQ(config(PCI_CLASS_REVISION, 4) >> 16, 0x0200u);
  std::vector<unsigned> capabilities;
  for (unsigned at = config(PCI_CAPABILITY_LIST, 1); at != 0; at = config(at + 1, 1))
    capabilities.push_back(config(at, 1));
  EXPECT_EQ(capabilities, (std::vector<unsigned>{PCI_CAP_ID_PM, PCI_CAP_ID_MSIX, PCI_CAP_ID_EXP,
                                                 PCI_CAP_ID_VPD, PCI_CAP_ID_VNDR}));
  const unsigned aer = config(0x100, 4);
  EXPECT_EQ(aer & 0xffff, unsigned{PCI_EXT_CAP_ID_ERR});
  EXPECT_EQ(config(aer >> 20, 4) & 0xffff, unsigned{PCI_EXT_CAP_ID_DSN});
  EXPECT_EQ(config((aer >> 20) + 8, 4), 0x0002c903u);
  // All of it in one go, as clients read it first.
  ASSERT_EQ(read(VFIO_PCI_CONFIG_REGION_INDEX, 0, 4096), 0);
  EXPECT_EQ(answer.size(), 4096u);
  EXPECT_EQ(answer[0], 0xb3);
}

// ---- regions ----

TEST_F(SessionTest, AccessesOutsideARegionAreRefused) {
  EXPECT_EQ(read(0, 32 << 20, 4), EINVAL);
  EXPECT_EQ(read(0, (32 << 20) - 2, 4), EINVAL);
  EXPECT_EQ(read(0, ~0ull, 4), EINVAL);
  EXPECT_EQ(read(1, 0, 4), EINVAL);
  EXPECT_EQ(read(77, 0, 4), EINVAL);
  EXPECT_EQ(read(0, 0, kMostData + 1), EINVAL);
  const std::uint32_t word = 0;
  EXPECT_EQ(write(VFIO_PCI_CONFIG_REGION_INDEX, 4094, &word, 4), EINVAL);
  // More said than sent.
  EXPECT_EQ(ask(Command::kRegionWrite, RegionAccess{0, 0, 64}), EINVAL);
  EXPECT_EQ(ask(Command::kRegionRead, std::uint32_t{0}), EINVAL);
}

TEST_F(SessionTest, RegistersAreRead) {
  EXPECT_EQ(register32(0), 35u << 16 | 16u);    // fw_rev_minor, fw_rev_major
  const std::uint32_t version = register32(4);  // cmd_interface_rev, fw_rev_subminor
  EXPECT_EQ(version >> 16, 5u);
  ASSERT_EQ(read(0, 1, 7), 0);  // any length, in naturally aligned pieces
  const auto low = static_cast<std::uint8_t>(version >> 8), lowest = static_cast<std::uint8_t>(version);
  EXPECT_EQ(answer, (std::vector<std::uint8_t>{35, 0, 16, 0, 5, low, lowest}));
}

TEST_F(SessionTest, PostedWritesHaveNoAnswer) {
  const std::uint32_t word = 0;
  EXPECT_EQ(write(0, 0x1000, &word, 4, kNoReply), -1);
  EXPECT_EQ(state, Session::State::kIdle);
  EXPECT_EQ(write(1, 0, &word, 4, kNoReply), -1) << "nor has one that is refused";
  EXPECT_EQ(config(0, 2), 0x15b3u) << "and the session goes on";
}

// The clock says how often it was asked: once for all writes to a page that wait, and once for the read after
// them.
TEST_F(SessionTest, PostedWritesThatWaitComeAtOneTime) {
  const auto post = [this](std::uint64_t offset) {
    std::vector<std::uint8_t> body(sizeof(RegionAccess) + 4);
    const RegionAccess access{offset, 0, 4};
    std::memcpy(body.data(), &access, sizeof access);
    Header header{};
    header.command = static_cast<std::uint16_t>(Command::kRegionWrite);
    header.size = static_cast<std::uint32_t>(sizeof header + body.size());
    header.flags = kNoReply;
    ASSERT_TRUE(client->command(header, body.data(), body.size(), nullptr, 0));
  };
  for (int i = 0; i < 10; ++i) post(0x1000);
  std::int64_t start = served().now;
  EXPECT_EQ(session->serve(), Session::State::kIdle);
  EXPECT_EQ(served().now - start, 1000);
  for (int i = 0; i < 10; ++i) post(0x1000);
  start = served().now;
  ASSERT_EQ(read(0, 0, 4), 0);
  EXPECT_EQ(served().now - start, 2000);
  // Another page is another queue's: the model has run on before, once however often they take turns.
  for (int i = 0; i < 10; ++i) post(i % 2 == 0 ? 0x1000 : 0x2000);
  start = served().now;
  EXPECT_EQ(session->serve(), Session::State::kIdle);
  EXPECT_EQ(served().now - start, 2000);
  // Of many pages not each has a run of its own.
  for (int i = 0; i < 40; ++i) post(0x1000 + 0x1000 * static_cast<std::uint64_t>(i));
  start = served().now;
  EXPECT_EQ(session->serve(), Session::State::kIdle);
  EXPECT_EQ(served().now - start, 8000);
}

TEST_F(SessionTest, SeveralWritesMayComeAsOne) {
  struct {
    WriteMulti many;
    SingleWrite writes[3];
  } request{{3},
            {{PCI_CACHE_LINE_SIZE, VFIO_PCI_CONFIG_REGION_INDEX, 1, {8}},
             {PCI_COMMAND, VFIO_PCI_CONFIG_REGION_INDEX, 2, {PCI_COMMAND_MEMORY}},
             {PCI_CACHE_LINE_SIZE, VFIO_PCI_CONFIG_REGION_INDEX, 1, {16}}}};
  ASSERT_EQ(ask(Command::kRegionWriteMulti, request), 0);
  EXPECT_EQ(config(PCI_CACHE_LINE_SIZE, 1), 16u);
  EXPECT_EQ(config(PCI_COMMAND, 2), unsigned{PCI_COMMAND_MEMORY});
  request.many.count = 4;
  EXPECT_EQ(ask(Command::kRegionWriteMulti, request), EINVAL);
  request.many.count = ~0ull;
  EXPECT_EQ(ask(Command::kRegionWriteMulti, request), EINVAL);
  request.many.count = 1;
  request.writes[0].count = 9;
  EXPECT_EQ(ask(Command::kRegionWriteMulti, request), EINVAL);
}

TEST_F(SessionTest, AFunctionLevelResetByTheConfigurationSpace) {
  set_config(PCI_CACHE_LINE_SIZE, 16, 1);
  unsigned express = config(PCI_CAPABILITY_LIST, 1);
  while (config(express, 1) != PCI_CAP_ID_EXP) express = config(express + 1, 1);
  set_config(express + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR, 2);
  EXPECT_EQ(config(PCI_CACHE_LINE_SIZE, 1), 0u);
}

TEST_F(SessionTest, TheClientsResetToo) {
  set_config(PCI_COMMAND, PCI_COMMAND_MASTER, 2);
  ASSERT_EQ(ask(Command::kDeviceReset, nullptr, 0), 0);
  EXPECT_EQ(config(PCI_COMMAND, 2), 0u);
}

TEST_F(SessionTest, TheGatewayOfTheVendorSpecificCapability) {
  unsigned vendor = config(PCI_CAPABILITY_LIST, 1);
  while (config(vendor, 1) != PCI_CAP_ID_VNDR) vendor = config(vendor + 1, 1);
  set_config(vendor + 0x0c, 0, 4);  // the semaphore
  const std::uint32_t ticket = config(vendor + 8, 4);
  EXPECT_NE(config(vendor + 8, 4), ticket) << "the counter goes on with each read";
}

// ---- memory ----

TEST_F(SessionTest, MapsAreMadeAndGo) {
  const Descriptor memory(::memfd_create("session", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.get(), 8192), 0);
  DmaMapRequest map{sizeof map, kBoth, 0, 0x1000, 8192};
  EXPECT_EQ(ask(Command::kDmaMap, map, {memory.get()}), 0);
  EXPECT_EQ(ask(Command::kDmaMap, map, {memory.get()}), EEXIST);
  map.address = 0x10000;
  EXPECT_EQ(ask(Command::kDmaMap, map, {memory.get(), memory.get()}), EINVAL);
  map.argsz = 8;
  EXPECT_EQ(ask(Command::kDmaMap, map, {memory.get()}), EINVAL);
  map.argsz = sizeof map;
  EXPECT_EQ(ask(Command::kDmaMap, map), 0) << "memory that stays the client's";
  DmaUnmapRequest unmap{sizeof unmap, 0, 0x1000, 4096};
  EXPECT_EQ(ask(Command::kDmaUnmap, unmap), ENOENT);
  unmap.size = 8192;
  EXPECT_EQ(ask(Command::kDmaUnmap, unmap), 0);
  EXPECT_EQ(answered<DmaUnmapRequest>().size, 8192u);
  unmap.flags = kUnmapDirtyBitmap;
  EXPECT_EQ(ask(Command::kDmaUnmap, unmap), ENOTSUP);
  EXPECT_EQ(ask(Command::kDmaUnmap, DmaUnmapRequest{sizeof unmap, kUnmapAll, 1, 0}), EINVAL);
  EXPECT_EQ(ask(Command::kDmaUnmap, DmaUnmapRequest{sizeof unmap, kUnmapAll, 0, 0}), 0);
  EXPECT_EQ(ask(Command::kDmaMap, map), 0);
}

// ---- interrupts ----

TEST_F(SessionTest, VectorsAreSignalledByTheirEventfds) {
  const Descriptor first(::eventfd(0, EFD_NONBLOCK)), second(::eventfd(0, EFD_NONBLOCK));
  ASSERT_EQ(set_irqs(VFIO_PCI_MSIX_IRQ_INDEX, kEventfds, 4, 2, {first.get(), second.get()}), 0);
  ASSERT_EQ(set_irqs(VFIO_PCI_MSIX_IRQ_INDEX, kTrigger | VFIO_IRQ_SET_DATA_NONE, 5, 1), 0);
  std::uint64_t count = 0;
  EXPECT_EQ(::read(first.get(), &count, 8), -1);
  ASSERT_EQ(::read(second.get(), &count, 8), 8);
  EXPECT_EQ(count, 1u);
  ASSERT_EQ(
      set_irqs(VFIO_PCI_MSIX_IRQ_INDEX, kTrigger | VFIO_IRQ_SET_DATA_BOOL, 4, 2, {}, std::string("\1\0", 2)),
      0);
  EXPECT_EQ(::read(first.get(), &count, 8), 8);
  EXPECT_EQ(::read(second.get(), &count, 8), -1);
}

TEST_F(SessionTest, AVectorWithoutEventfdIsPendingUntilItHasOne) {
  ASSERT_EQ(set_irqs(VFIO_PCI_MSIX_IRQ_INDEX, kTrigger | VFIO_IRQ_SET_DATA_NONE, 9, 1), 0);
  ASSERT_EQ(read(VFIO_PCI_BAR2_REGION_INDEX, 0x800, 8), 0);
  EXPECT_EQ(answer[1], 2);
  const Descriptor file(::eventfd(0, EFD_NONBLOCK));
  ASSERT_EQ(set_irqs(VFIO_PCI_MSIX_IRQ_INDEX, kEventfds, 9, 1, {file.get()}), 0);
  std::uint64_t count = 0;
  EXPECT_EQ(::read(file.get(), &count, 8), 8);
  ASSERT_EQ(read(VFIO_PCI_BAR2_REGION_INDEX, 0x800, 8), 0);
  EXPECT_EQ(answer[1], 0);
}

TEST_F(SessionTest, InterruptRequestsThatCannotBe) {
  const Descriptor file(::eventfd(0, EFD_NONBLOCK)), other(::memfd_create("no eventfd", MFD_CLOEXEC));
  const auto msix = VFIO_PCI_MSIX_IRQ_INDEX;
  EXPECT_EQ(set_irqs(msix, kEventfds, 64, 1, {file.get()}), EINVAL);
  EXPECT_EQ(set_irqs(msix, kEventfds, 1, 64, {}), EINVAL);
  EXPECT_EQ(set_irqs(msix, kEventfds, 0xffffffff, 2, {}), EINVAL);
  EXPECT_EQ(set_irqs(msix, kEventfds, 0, 2, {file.get()}), EINVAL);
  EXPECT_EQ(set_irqs(msix, kEventfds, 0, 1, {other.get()}), EINVAL);
  EXPECT_EQ(set_irqs(msix, kTrigger | VFIO_IRQ_SET_DATA_BOOL, 0, 2, {}, std::string(1, '\1')), EINVAL);
  EXPECT_EQ(set_irqs(msix, VFIO_IRQ_SET_ACTION_MASK | VFIO_IRQ_SET_DATA_NONE, 0, 1), ENOTSUP);
  EXPECT_EQ(set_irqs(VFIO_PCI_INTX_IRQ_INDEX, kEventfds, 0, 1, {file.get()}), EINVAL);
  EXPECT_EQ(set_irqs(99, kTrigger | VFIO_IRQ_SET_DATA_NONE, 0, 0), EINVAL);
  EXPECT_EQ(ask(Command::kDeviceSetIrqs, std::uint32_t{20}), EINVAL);
}

TEST_F(SessionTest, AnErrorOfTheCardIsSignalled) {
  const Descriptor file(::eventfd(0, EFD_NONBLOCK));
  ASSERT_EQ(set_irqs(VFIO_PCI_ERR_IRQ_INDEX, kEventfds, 0, 1, {file.get()}), 0);
  set_config(PCI_COMMAND, PCI_COMMAND_SERR, 2);
  EXPECT_EQ(control(served().cards, R"({"set":"inject","value":"fault=pcie,error=completion-timeout"})")
                .find("error"),
            std::string::npos);
  std::uint64_t count = 0;
  EXPECT_EQ(::read(file.get(), &count, 8), 8);
}

// ---- what is not there ----

TEST_F(SessionTest, CommandsThatAreNotOfferedSaySo) {
  for (const auto command : {Command::kDmaRead, Command::kDmaWrite, Command::kDeviceFeature,
                             Command::kDeviceGetRegionIoFds, Command{0}, Command{4711}})
    EXPECT_EQ(ask(command, std::uint64_t{0}), ENOTSUP) << static_cast<unsigned>(command);
}

TEST_F(SessionTest, AnAnswerToNothingEndsIt) {
  EXPECT_EQ(ask(Command::kDeviceReset, nullptr, 0, {}, kReply), -1);
  EXPECT_EQ(state, Session::State::kEnd);
}

TEST_F(SessionTest, TheNextClientFindsTheCardAsAfterPowerOn) {
  set_config(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
  const DmaMapRequest map{sizeof map, kBoth, 0, 0x1000, 4096};
  ASSERT_EQ(ask(Command::kDmaMap, map), 0);
  connect();
  ASSERT_EQ(agree(), 0);
  EXPECT_EQ(config(PCI_COMMAND, 2), 0u);
  EXPECT_EQ(ask(Command::kDmaMap, map), 0);
}

TEST_F(SessionTest, TheNextClientFindsAPulledCardInItsSlot) {
  const auto injected = [] {
    return nlohmann::json::parse(control(served().cards, R"({"get":"ctr-faults_injected"})"))
        .at("value")
        .get<std::uint64_t>();
  };
  const std::uint64_t before = injected();
  EXPECT_EQ(control(served().cards, R"({"set":"inject","value":"fault=pcie,action=remove"})").find("error"),
            std::string::npos);
  EXPECT_EQ(config(PCI_VENDOR_ID, 2), 0xffffu);
  EXPECT_EQ(injected(), before + 2);  // it, and its cable
  connect();
  ASSERT_EQ(agree(), 0);
  EXPECT_EQ(config(PCI_VENDOR_ID, 2), 0x15b3u);
  EXPECT_NE(register32(4), 0xffffffffu);
  EXPECT_EQ(injected(), before + 3);  // the cable is in again
}

// ---- control ----

TEST_F(SessionTest, ControlReadsAndSets) {
  const auto ask_control = [](const std::string& request) {
    return nlohmann::json::parse(control(served().cards, request));
  };
  EXPECT_TRUE(ask_control(R"({"get":"stats"})").at("value").is_object());
  EXPECT_EQ(ask_control(R"({"cards":true})").at("names"), nlohmann::json::array({"card"}));
  EXPECT_EQ(ask_control(R"({"get":"time-mode"})").at("value"), "eager");
  EXPECT_TRUE(ask_control(R"({"get":"ctr-state-digest"})").at("value").is_number());
  const auto names = ask_control(R"({"list":true})").at("names");
  EXPECT_GT(names.size(), 50u);
  for (const auto& name : names)
    EXPECT_TRUE(ask_control(nlohmann::json{{"get", name}}.dump()).contains("value")) << name;
  EXPECT_EQ(ask_control(R"({"set":"inject","value":"drop=0.5"})"), nlohmann::json::object());
  EXPECT_EQ(ask_control(R"({"set":"inject","value":"none"})"), nlohmann::json::object());
  for (const char* wrong : {"", "[]", "{", "{}", R"({"get":"nothing"})", R"({"set":"stats","value":"1"})",
                            R"({"set":"inject"})", R"({"set":"inject","value":"what=ever"})", R"({"get":17})",
                            R"({"card":"other","get":"stats"})", "\xff\xfe"})
    EXPECT_TRUE(ask_control(wrong).contains("error")) << wrong;
}

}  // namespace
}  // namespace hcasim::vfio_user
