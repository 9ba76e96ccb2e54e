// SPDX-License-Identifier: BSD-3-Clause
// The port's cable on QEMU's side: network back ends, captures, back pressure, carrier. With the stand-in for
// the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "../files.h"
#include "hca_vm.h"

namespace hcasim::tests {
namespace {

using test::Folder;
using ::testing::HasSubstr;
using ::testing::Not;
using Bytes = std::vector<std::uint8_t>;

Bytes frame(std::size_t len, std::uint8_t seed) {
  Bytes f(len);
  for (std::size_t i = 0; i < len; ++i) f[i] = static_cast<std::uint8_t>(seed + i * 7);
  return f;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::strncpy(a.sun_path, path.c_str(), sizeof a.sun_path - 1);
  return a;
}

// The far end of a datagram back end.
class FarEnd {
 public:
  explicit FarEnd(const Folder& folder) : ours_(folder / "ours"), qemus_(folder / "qemu") {
    fd_ = socket(AF_UNIX, SOCK_DGRAM, 0);
    const sockaddr_un a = address_of(ours_);
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) throw std::runtime_error("bind");
  }
  ~FarEnd() { close(fd_); }
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;

  std::vector<std::string> netdev() const {
    return {"-netdev",
            "dgram,id=net0,local.type=unix,local.path=" + qemus_ + ",remote.type=unix,remote.path=" + ours_};
  }
  void send(const Bytes& f) const {
    const sockaddr_un a = address_of(qemus_);
    ASSERT_EQ(sendto(fd_, f.data(), f.size(), 0, reinterpret_cast<const sockaddr*>(&a), sizeof a),
              static_cast<ssize_t>(f.size()))
        << std::strerror(errno);
  }
  // Empty: nothing came within the time.
  Bytes receive(int ms = 5000) const {
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, ms) <= 0) return {};
    Bytes f(70000);
    f.resize(static_cast<std::size_t>(recv(fd_, f.data(), f.size(), 0)));
    return f;
  }

 private:
  std::string ours_, qemus_;
  int fd_;
};

template <class Pred>
bool soon(Pred pred) {
  for (int i = 0; i < 500; ++i) {
    if (pred()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

void transmit(HcaVm& vm, unsigned i, const Bytes& f, std::uint64_t go = FAKE_DMA_GO) {
  vm.write_bytes(HcaVm::bar0(i) + FAKE_BUFFER, f);
  vm.set_reg(i, FAKE_DMA_LEN, f.size());
  vm.act(i, go, FAKE_TX);
}

TEST(Net, FramesLeaveAndArrive) {
  Folder folder;
  FarEnd far(folder);
  HcaVm vm({",netdev=net0"}, far.netdev());
  for (const std::uint64_t go : {FAKE_DMA_GO, FAKE_DMA_GO_NESTED, FAKE_EVENT_DELAY}) {
    const Bytes f = frame(60 + go, static_cast<std::uint8_t>(go));
    transmit(vm, 0, f, go);
    EXPECT_EQ(far.receive(), f);
  }
  for (const std::size_t len : {60, 1514, 4000}) {
    const auto before = vm.reg(0, FAKE_RX_COUNT);
    far.send(frame(len, 3));
    ASSERT_TRUE(soon([&] { return vm.reg(0, FAKE_RX_COUNT) == before + 1; })) << len;
    EXPECT_EQ(vm.reg(0, FAKE_RX_LEN), len);
    EXPECT_EQ(vm.read_bytes(HcaVm::bar0(0) + FAKE_BUFFER, len), frame(len, 3));
  }
  EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
  EXPECT_THAT(vm.hmp("info network"),
              HasSubstr("hca0: index=0,type=nic,model=mlx5-hca,macaddr=00:02:c9:0f:a4:0e"));
  EXPECT_THAT(vm.hmp("info qtree"), HasSubstr("mac = \"00:02:c9:0f:a4:0e\""));
}

TEST(Net, WithoutABackEndThereIsNoNoise) {
  HcaVm vm({""});
  transmit(vm, 0, frame(60, 1));
  vm.clock_step(1000);
  EXPECT_EQ(vm.hmp("info network"), "");
  EXPECT_THAT(vm.output(), Not(HasSubstr("warning")));
}

TEST(Net, TheMacIsTheModelsOrTheUsers) {
  HcaVm vm({",mac=02:11:22:33:44:55", ""});
  EXPECT_THAT(vm.qom_get("hca0", "stats").get<std::string>(), HasSubstr("mac=02:11:22:33:44:55"));
  EXPECT_THAT(vm.qom_get("hca1", "stats").get<std::string>(), Not(HasSubstr("mac=")));
}

// Two cards on a hub: what one sends arrives at the other while the model runs, and is answered.
TEST(Net, AnswersComeWhileTheModelRuns) {
  HcaVm vm({",netdev=n0", ",netdev=n1"},
           {"-netdev", "hubport,id=n0,hubid=0", "-netdev", "hubport,id=n1,hubid=0"});
  vm.set_reg(1, FAKE_RX_ECHO, 3);
  unsigned sent = 0;
  for (const std::uint64_t go : {FAKE_DMA_GO, FAKE_DMA_GO_NESTED, FAKE_EVENT_DELAY}) {
    transmit(vm, 0, frame(100, static_cast<std::uint8_t>(go)), go);
    ++sent;
    vm.clock_step(10);
    EXPECT_EQ(vm.reg(1, FAKE_RX_COUNT), sent);
    EXPECT_EQ(vm.reg(0, FAKE_RX_COUNT), sent);
    EXPECT_EQ(vm.read_bytes(HcaVm::bar0(0) + FAKE_BUFFER, 100), frame(100, static_cast<std::uint8_t>(go)));
  }
  EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
}

TEST(Net, FramesWaitForRoom) {
  Folder folder;
  FarEnd far(folder);
  HcaVm vm({",netdev=net0"}, far.netdev());
  vm.set_reg(0, FAKE_RX_FULL, 1);
  for (int i = 0; i < 8; ++i) far.send(frame(64, static_cast<std::uint8_t>(i)));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(vm.reg(0, FAKE_RX_COUNT), 0u);
  vm.set_reg(0, FAKE_RX_FULL, 0);
  EXPECT_TRUE(soon([&] { return vm.reg(0, FAKE_RX_COUNT) == 8; })) << vm.reg(0, FAKE_RX_COUNT);
  EXPECT_EQ(vm.read_bytes(HcaVm::bar0(0) + FAKE_BUFFER, 64), frame(64, 7));
}

// On a stream each frame has its length before it, in 4 bytes.
TEST(Net, AFrameOfNoBytesIsNotTheLast) {
  Folder folder;
  const std::string path = folder / "stream";
  HcaVm vm({",netdev=net0"}, {"-netdev", "stream,id=net0,server=on,addr.type=unix,addr.path=" + path});
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un a = address_of(path);
  ASSERT_TRUE(soon([&] { return connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0; }));
  for (std::uint8_t i = 0; i < 3; ++i) {
    const Bytes f = frame(60, i);
    Bytes stream = {0, 0, 0, 0, 0, 0, 0, 60};
    stream.insert(stream.end(), f.begin(), f.end());
    ASSERT_EQ(write(fd, stream.data(), stream.size()), static_cast<ssize_t>(stream.size()));
    ASSERT_TRUE(soon([&] { return vm.reg(0, FAKE_RX_COUNT) == i + 1u; })) << vm.reg(0, FAKE_RX_COUNT);
    EXPECT_EQ(vm.read_bytes(HcaVm::bar0(0) + FAKE_BUFFER, 60), f);
  }
  close(fd);
}

TEST(Net, SetLinkIsTheCarrier) {
  Folder folder;
  FarEnd far(folder);
  HcaVm vm({",netdev=net0"}, far.netdev());
  EXPECT_EQ(vm.reg(0, FAKE_CARRIER), 1u);
  for (const char* name : {"hca0", "net0"}) {
    vm.qmp("set_link", {{"name", name}, {"up", false}});
    EXPECT_EQ(vm.reg(0, FAKE_CARRIER), 0u) << name;
    vm.qmp("set_link", {{"name", name}, {"up", true}});
    EXPECT_EQ(vm.reg(0, FAKE_CARRIER), 1u) << name;
  }
}

TEST(Net, CapturesAreWhatWasSent) {
  Folder folder;
  FarEnd far(folder);
  std::vector<std::string> before = far.netdev();
  before.insert(before.end(), {"-object", "filter-dump,id=f0,netdev=net0,file=" + (folder / "c.pcap")});
  HcaVm vm({",netdev=net0"}, before);
  const std::vector<Bytes> frames = {frame(60, 1), frame(1514, 2), frame(999, 3)};
  transmit(vm, 0, frames[0]);
  transmit(vm, 0, frames[1]);
  far.send(frames[2]);
  ASSERT_TRUE(soon([&] { return vm.reg(0, FAKE_RX_COUNT) == 1; }));
  EXPECT_EQ(vm.quit(), 0);
  std::ifstream in(folder / "c.pcap", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  auto word = [&](std::size_t at) {
    std::uint32_t v = 0;
    if (at + 4 <= text.size()) std::memcpy(&v, text.data() + at, 4);
    return v;
  };
  ASSERT_EQ(word(0), 0xa1b2c3d4u);
  EXPECT_EQ(word(20), 1u);  // Ethernet
  std::size_t at = 24;
  for (const Bytes& f : frames) {
    ASSERT_EQ(word(at + 8), f.size());
    ASSERT_EQ(word(at + 12), f.size());
    EXPECT_EQ(text.substr(at + 16, f.size()), std::string(f.begin(), f.end()));
    at += 16 + f.size();
  }
  EXPECT_EQ(at, text.size());
}

TEST(Net, UnplugUnderTraffic) {
  Folder folder;
  FarEnd far(folder);
  std::vector<std::string> args = far.netdev();
  args.insert(args.end(), {"-M", "pc", "-device", "mlx5-hca,id=h0,addr=7,netdev=net0", "-device",
                           "mlx5-hca,id=h1,addr=8"});
  Vm vm(args);
  far.send(frame(60, 1));
  vm.qmp("device_del", {{"id", "h0"}});
  vm.out32(0xae08, 1u << 7);
  ASSERT_TRUE(vm.wait_event("DEVICE_DELETED"));
  for (int i = 0; i < 5; ++i) far.send(frame(60, 2));
  vm.clock_step(1000000);
  EXPECT_EQ(vm.config(0, 8, 0), 0x101915b3u);
  EXPECT_EQ(vm.quit(), 0);
}

// A frame makes the card remove itself, from within the network that gives it the frame.
TEST(Net, UnplugByAFrame) {
  Folder folder;
  FarEnd far(folder);
  std::vector<std::string> args = far.netdev();
  args.insert(args.end(), {"-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"});
  const PerturbedMemory perturbed;
  HcaVm vm({",netdev=net0", ""}, args);
  const unsigned exp = vm.find_capability(0, 4, 0x10);
  vm.set_config(0, 4, exp + 24, 0x0100, 2);  // slot powered, indicator on
  vm.set_reg(0, FAKE_BUFFER, 0x0700, 2);     // off, both
  vm.set_reg(0, FAKE_DMA_ADDR, Vm::ecam_address(0, 4, exp + 24));
  vm.set_reg(0, FAKE_DMA_LEN, 2);
  vm.set_reg(0, FAKE_RX_GO, FAKE_WRITE);
  for (std::uint8_t i = 0; i < 4; ++i) far.send(frame(60, i));
  ASSERT_TRUE(vm.wait_event("DEVICE_DELETED")) << vm.output();
  vm.clock_step(100000);
  EXPECT_EQ(vm.config(1, 0, 0), 0xffffffffu);
  EXPECT_EQ(vm.hmp("info network").find("hca0"), std::string::npos);
  EXPECT_EQ(vm.reg(1, FAKE_ID), FAKE_ID_VALUE);
  EXPECT_EQ(vm.quit(), 0);
}

TEST(Net, SocketsOfTheModelArePolledAndHeld) {
  HcaVm vm({",wire=unix:/nowhere"});
  const auto before = vm.reg(0, FAKE_POLLS);
  EXPECT_TRUE(soon([&] { return vm.reg(0, FAKE_POLLS) > before + 5; }));
  EXPECT_EQ(vm.reg(0, FAKE_HELD), 0u);
  vm.qmp("stop");
  EXPECT_EQ(vm.reg(0, FAKE_HELD), 1u);
  vm.qmp("cont");
  EXPECT_EQ(vm.reg(0, FAKE_HELD), 0u);
  EXPECT_EQ(vm.qom_get("hca0", "ctr-nested-calls"), 0);
}

// With the real model only.
TEST(Joined, AnEthernetPortOnABackEnd) {
  Folder folder;
  FarEnd far(folder);
  HcaVm vm({",link=eth,netdev=net0,mac=02:11:22:33:44:55"}, far.netdev());
  EXPECT_EQ(vm.config(1, 0, 0x08) >> 8, 0x020000u);
  EXPECT_THAT(vm.hmp("info network"), HasSubstr("macaddr=02:11:22:33:44:55"));
  const auto before = vm.qom_get("hca0", "ctr-rx_packets").get<int>();
  for (int i = 0; i < 3; ++i) far.send(frame(100, 2));
  EXPECT_TRUE(soon([&] {
    vm.clock_step(1000);
    return vm.qom_get("hca0", "ctr-rx_packets").get<int>() == before + 3;
  }));
  vm.qmp("set_link", {{"name", "hca0"}, {"up", false}});
  vm.qmp("set_link", {{"name", "hca0"}, {"up", true}});
  vm.function_level_reset(0);
  EXPECT_EQ(vm.quit(), 0);
}

TEST(Joined, TheModelMakesAMac) {
  HcaVm vm({",link=eth,node_guid=0x0002c90300112233"});
  EXPECT_THAT(vm.hmp("info qtree"), HasSubstr("mac = \"00:02:c9:11:22:33\""));
}

TEST(Joined, TwoMachinesByASocket) {
  Folder folder;
  const std::string wire = ",link=ib,wire=unix:" + (folder / "w");
  HcaVm a({wire});
  ASSERT_TRUE(soon([&] { return a.output().find("waiting for the other end") != std::string::npos; }));
  {
    HcaVm b({wire});
    EXPECT_TRUE(soon([&] { return a.output().find("joined with hca0") != std::string::npos; })) << a.output();
    EXPECT_TRUE(soon([&] { return b.output().find("joined with hca0") != std::string::npos; })) << b.output();
    EXPECT_EQ(b.quit(), 0);
  }
  EXPECT_TRUE(soon([&] { return a.output().find("the other end has gone") != std::string::npos; }))
      << a.output();
  HcaVm other({",link=eth,wire=unix:" + (folder / "w")});
  EXPECT_TRUE(soon([&] {
    return a.output().find("the ends differ: link=ib and link=eth") != std::string::npos;
  })) << a.output();
  EXPECT_EQ(a.quit(), 0);
}

TEST(Joined, TwoHcasOfAMachineAndTheEndOfOne) {
  HcaVm vm({",link=ib,cable=hca1", ",link=ib"});
  vm.clock_step(1000000);
  vm.qmp("device_del", {{"id", "hca1"}});
  vm.qmp("system_reset");
  EXPECT_TRUE(vm.wait_event("DEVICE_DELETED"));
  vm.clock_step(1000000);
  EXPECT_EQ(vm.quit(), 0);
}

TEST(Joined, WhatCannotBeJoinedIsTold) {
  struct {
    std::vector<std::string> args;
    const char* message;
  } const cases[] = {
      {{"-netdev", "hubport,id=n,hubid=0", "-device", "mlx5-hca,link=ib,netdev=n"}, "takes wire= or cable="},
      {{"-device", "mlx5-hca,link=ib,id=a,cable=b"}, "a: cable=b: there is no HCA of that name"},
      {{"-device", "mlx5-hca,link=ib,id=a,cable=a"}, "that is this HCA itself"},
      {{"-device", "mlx5-hca,link=ib,id=a,cable=b", "-device", "mlx5-hca,link=eth,id=b"},
       "different link types"},
      {{"-device", "mlx5-hca,link=ib,wire=/tmp/x"}, "allowed: unix:PATH, tcp:HOST:PORT, shm:NAME"},
      {{"-device", "mlx5-hca,link=ib,coupled=on", "-icount", "shift=3,sleep=off"},
       "coupled=on needs wire=, time=lockstep and -icount"},
      {{"-device", "mlx5-hca,link=ib,wire=unix:/no/such/x,coupled=on"},
       "coupled=on needs wire=, time=lockstep and -icount"},
      {{"-device", "mlx5-hca,link=ib,options=coupled=on"}, "options: coupled is given beside options="},
  };
  for (const auto& c : cases) {
    const QemuExit exit = run_qemu(c.args);
    EXPECT_EQ(exit.status, 1) << c.message;
    EXPECT_THAT(exit.output, HasSubstr(c.message));
  }
}

// Ids may look like the names that HCAs without one get.
TEST(NetRefusal, OneNameForTwo) {
  const QemuExit exit = run_qemu({"-device", "mlx5-hca", "-device", "mlx5-hca,id=hca0"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.output, HasSubstr("another one is called 'hca0' already"));
  Vm vm({"-M", "pc", "-device", "mlx5-hca,id=hca1,addr=7", "-device", "mlx5-hca,addr=8"});
  EXPECT_EQ(vm.config(0, 8, 0), 0x101915b3u) << "the second is hca2";
  EXPECT_EQ(vm.quit(), 0);
}

TEST(NetRefusal, TwoCables) {
  const QemuExit exit =
      run_qemu({"-netdev", "hubport,id=n0,hubid=0", "-device", "mlx5-hca,netdev=n0,wire=unix:/x"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.output, HasSubstr("the port has one cable"));
}

}  // namespace
}  // namespace hcasim::tests
