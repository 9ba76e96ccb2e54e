// SPDX-License-Identifier: BSD-3-Clause
// The PCI function and its life, whatever the model behind it: run with the stand-in and with the real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "hca_vm.h"

namespace hcasim::tests {
namespace {

using ::testing::HasSubstr;

TEST(Device, Identity) {
  HcaVm vm({",link=ib", ",link=eth"});
  EXPECT_EQ(vm.config(1, 0, 0x00), 0x101915b3u);
  EXPECT_EQ(vm.config(1, 0, 0x08) >> 8, 0x020700u);  // InfiniBand
  EXPECT_EQ(vm.config(2, 0, 0x08) >> 8, 0x020000u);  // Ethernet
  EXPECT_EQ(vm.config(1, 0, 0x2c), 0x000815b3u);
  EXPECT_EQ(vm.config(1, 0, 0x3d, 1), 0u);  // no INTx
}

TEST(Device, Bars) {
  HcaVm vm({""});
  vm.set_config(1, 0, 0x04, 0, 2);
  for (unsigned bar = 0x10; bar < 0x28; bar += 4) vm.set_config(1, 0, bar, 0xffffffff);
  EXPECT_EQ(vm.config(1, 0, 0x10), 0xfe00000cu);  // 32 MiB, 64 bit, prefetchable
  EXPECT_EQ(vm.config(1, 0, 0x14), 0xffffffffu);
  EXPECT_EQ(vm.config(1, 0, 0x18), 0xfffff000u);  // MSI-X
  for (unsigned bar = 0x1c; bar < 0x28; bar += 4) EXPECT_EQ(vm.config(1, 0, bar), 0u);
}

TEST(Device, Capabilities) {
  HcaVm vm({",node_guid=0x0002c90300112233"});
  unsigned msix = vm.capability(0, 0x11), exp = vm.capability(0, 0x10), pm = vm.capability(0, 0x01);
  ASSERT_NE(msix, 0u);
  EXPECT_EQ(vm.config(1, 0, msix + 2, 2) & 0x7ff, 63u);
  EXPECT_EQ(vm.config(1, 0, msix + 4) & 7, 2u);
  ASSERT_NE(exp, 0u);
  EXPECT_EQ(vm.config(1, 0, exp + 2, 2) & 0xff, 0x02u);  // version 2, endpoint
  EXPECT_NE(vm.config(1, 0, exp + 4) & (1u << 28), 0u);  // FLR
  uint64_t lnkcap = vm.config(1, 0, exp + 12), lnksta = vm.config(1, 0, exp + 18, 2);
  EXPECT_GE(lnkcap & 0xf, 3u);
  EXPECT_EQ(lnksta & 0x3ff, lnkcap & 0x3ff);               // runs at what it can
  EXPECT_EQ((vm.config(1, 0, exp + 8, 2) >> 12) & 7, 2u);  // 512 byte requests
  vm.set_config(1, 0, exp + 8, 0x5810, 2);
  EXPECT_EQ(vm.config(1, 0, exp + 8, 2), 0x5810u);
  ASSERT_NE(pm, 0u);
  EXPECT_EQ(vm.config(1, 0, 0x100, 2), 0x0001u);  // AER
  unsigned dsn = static_cast<unsigned>(vm.config(1, 0, 0x102, 2)) >> 4;
  EXPECT_EQ(vm.config(1, 0, dsn, 2), 0x0003u);
  EXPECT_EQ(vm.config(1, 0, dsn + 4), 0x00112233u);
  EXPECT_EQ(vm.config(1, 0, dsn + 8), 0x0002c903u);
}

// With the real model: the steps of the kernel's lib/pci_vsc.c, and of tools that ask which chip it is.
TEST(VendorCapability, SemaphoresAndChipId) {
  HcaVm vm({""});
  unsigned vsc = vm.capability(0, 0x09);
  ASSERT_NE(vsc, 0u);
  EXPECT_EQ(vm.config(1, 0, vsc + 2, 1), 0x18u);
  auto get = [&](unsigned offset) { return vm.config(1, 0, vsc + offset); };
  auto set = [&](unsigned offset, uint64_t value) { vm.set_config(1, 0, vsc + offset, value); };
  EXPECT_EQ(get(0x0c), 0u);
  uint64_t ticket = get(0x08);
  uint64_t other = get(0x08);
  EXPECT_NE(ticket, other);
  set(0x0c, ticket);
  EXPECT_EQ(get(0x0c), ticket);
  set(0x0c, other);  // too late
  EXPECT_EQ(get(0x0c), ticket);

  set(0x04, 0x05);  // no space that anybody knows
  EXPECT_EQ(get(0x04) >> 29, 0u);
  set(0x04, 0x07);  // all registers, one after the other
  EXPECT_EQ(get(0x04) >> 29, 1u);
  set(0x04, 0x0a);
  EXPECT_NE(get(0x04) >> 29, 0u);
  set(0x14, ticket);  // take the software reset semaphore
  set(0x10, 0x80000020);
  EXPECT_EQ(get(0x10), 0x20u);
  set(0x10, 0x20);
  EXPECT_EQ(get(0x10), 0x80000020u);
  EXPECT_EQ(get(0x14), ticket);
  set(0x14, other);
  set(0x10, 0x80000020);
  set(0x10, 0x20);
  EXPECT_EQ(get(0x14), ticket);
  set(0x10, 0x3ffffffc);  // no such semaphore
  EXPECT_EQ(get(0x10), 0xfffffffcu);
  EXPECT_EQ(get(0x14), 0xbadacce5u);

  set(0x04, 0x0a);
  vm.set_config(1, 0, vsc + 0x04, 0x02, 2);  // CR space, by the half of the register with it, as iPXE does
  EXPECT_EQ(get(0x04) & 0xffff, 0x02u);
  set(0x10, 0xf0014);
  EXPECT_EQ(get(0x10), 0x800f0014u);
  EXPECT_EQ(get(0x14), 0x20du);  // ConnectX-5

  vm.function_level_reset(0);
  EXPECT_EQ(get(0x0c), 0u);
  set(0x04, 0x0a);
  set(0x10, 0x20);
  EXPECT_EQ(get(0x14), 0u);
}

TEST(Device, DeviceIdIsAProperty) {
  HcaVm vm({",x-device-id=0x101b"});
  EXPECT_EQ(vm.config(1, 0, 0x00), 0x101b15b3u);
}

// PCI 3.0, 6.8.3.5: an address, then the flag, then four bytes.
TEST(Device, VitalProductData) {
  HcaVm vm({""});
  const unsigned vpd = vm.capability(0, 0x03);
  ASSERT_NE(vpd, 0u);
  std::string data;
  for (unsigned at = 0; at < 128; at += 4) {
    vm.set_config(1, 0, vpd + 2, at, 2);
    ASSERT_EQ(vm.config(1, 0, vpd + 2, 2), at | 0x8000u);
    const uint64_t word = vm.config(1, 0, vpd + 4);
    for (unsigned i = 0; i < 4; i++) data += static_cast<char>(word >> (8 * i));
  }
  EXPECT_EQ(static_cast<unsigned char>(data[0]), 0x82);
  EXPECT_THAT(data, HasSubstr("hca"));
  // Written: done at once, and nothing has changed. Beyond the end: zeros.
  vm.set_config(1, 0, vpd + 4, 0x12345678);
  vm.set_config(1, 0, vpd + 2, 0x8000, 2);
  EXPECT_EQ(vm.config(1, 0, vpd + 2, 2), 0u);
  vm.set_config(1, 0, vpd + 2, 0, 2);
  EXPECT_EQ(vm.config(1, 0, vpd + 4, 1), 0x82u);
  vm.set_config(1, 0, vpd + 2, 0x7ffc, 2);
  EXPECT_EQ(vm.config(1, 0, vpd + 4), 0u);
}

TEST(Device, OnTheRootComplexAndOnConventionalPci) {
  Vm q35({"-M", "q35", "-device", "mlx5-hca,id=h,addr=7"});
  q35.enable_ecam();
  EXPECT_EQ(q35.config(0, 7, 0), 0x101915b3u);
  EXPECT_EQ(q35.config(0, 7, q35.find_capability(0, 7, 0x10) + 2, 2) & 0xf0, 0x90u);  // integrated endpoint
  Vm pc({"-M", "pc", "-device", "mlx5-hca,id=h,addr=7"});
  EXPECT_EQ(pc.config(0, 7, 0), 0x101915b3u);
  EXPECT_NE(pc.find_capability(0, 7, 0x10), 0u);
}

TEST(Device, IntrospectionTellsProperties) {
  HcaVm vm({",profile=default"});
  std::string tree = vm.hmp("info qtree");
  EXPECT_THAT(tree, HasSubstr("dev: mlx5-hca, id \"hca0\""));
  EXPECT_THAT(tree, HasSubstr("ahead = 10000"));
  bool found = false;
  for (const auto& p : vm.qmp("device-list-properties", {{"typename", "mlx5-hca"}})) {
    if (p["name"] == "ahead") {
      found = true;
      EXPECT_THAT(p["description"].get<std::string>(), HasSubstr("run-ahead"));
    }
    static const char* const ours[] = {"link", "profile", "time", "trace",  "bf",      "sm",
                                       "wire", "cable",   "mac",  "netdev", "options", "node_guid"};
    for (const char* name : ours) {
      if (p["name"] == name) {
        EXPECT_TRUE(p.contains("description")) << name;
      }
    }
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(nlohmann::json::accept(vm.qom_get("hca0", "stats").get<std::string>()));
}

TEST(Tracing, IsSetOverQmp) {
  char folder[] = "/tmp/hcasim-qmp-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string trace = std::string(folder) + "/t", dump = std::string(folder) + "/d",
                    capture = std::string(folder) + "/c";
  const auto begin_of = [](const std::string& path) {
    std::ifstream f(path, std::ios::binary);
    std::string s(8, '\0');
    f.read(s.data(), 8);
    return s.substr(0, static_cast<std::size_t>(f.gcount()));
  };
  {
    HcaVm vm({""});
    const auto set = [&](const char* property, const nlohmann::json& value) {
      return vm
          .qmp("qom-set", {{"path", "/machine/peripheral/hca0"}, {"property", property}, {"value", value}})
          .dump();
    };
    EXPECT_EQ(vm.qom_get("hca0", "trace-on"), true);
    EXPECT_EQ(set("trace-ring", "2"), "{}");
    EXPECT_EQ(set("trace-filter", "kind=command"), "{}");
    EXPECT_EQ(set("trace-file", trace), "{}");
    EXPECT_EQ(vm.qom_get("hca0", "trace-file"), trace);
    EXPECT_EQ(begin_of(trace), "") << "a ring is written when asked for";
    EXPECT_EQ(set("trace-dump", dump), "{}");
    EXPECT_EQ(begin_of(dump), "HCASIMTR");
    EXPECT_EQ(set("capture-file", capture), "{}");
    EXPECT_EQ(set("capture-file", ""), "{}");
    EXPECT_EQ(begin_of(capture).substr(0, 4), "\n\r\r\n");
    EXPECT_THAT(set("trace-filter", "point=nonsense"), HasSubstr("no such point"));
    EXPECT_EQ(vm.qom_get("hca0", "trace-filter"), "kind=command");
  }
  EXPECT_EQ(begin_of(trace), "HCASIMTR") << "and at the end";
  std::filesystem::remove_all(folder);
}

TEST(Device, ResetsLeaveItUsable) {
  HcaVm vm({"", ""});
  uint64_t id = vm.reg(0, 0);
  for (int i = 0; i < 3; i++) {
    vm.function_level_reset(0);
    vm.restore(0);
    EXPECT_EQ(vm.reg(0, 0), id);
    vm.clock_step(1000000);
  }
  vm.qmp("system_reset");
  ASSERT_TRUE(vm.wait_event("RESET"));
  vm.enable_ecam_again();
  vm.bring_up(0);
  EXPECT_EQ(vm.reg(0, 0), id);
}

// PCI Express Base Specification 6.6.2: a function level reset leaves Max_Payload_Size as it is.
TEST(Device, PayloadsStayAsLargeOverAFunctionLevelReset) {
  HcaVm vm({""});
  const unsigned control = vm.capability(0, 0x10) + 8;
  const uint64_t after = vm.config(1, 0, control, 2);
  constexpr uint64_t k512 = 2 << 5, kPayload = 7 << 5;
  ASSERT_EQ(after & kPayload, 0u);
  vm.set_config(1, 0, control, (after & ~0x10u) | k512 | 0xf, 2);
  vm.function_level_reset(0);
  EXPECT_EQ(vm.config(1, 0, control, 2), after | k512);
  vm.set_config(0, 4, 0x3e, 0x40, 2);  // secondary bus reset of the port above
  vm.set_config(0, 4, 0x3e, 0, 2);
  EXPECT_EQ(vm.config(1, 0, control, 2), after);
}

// device_del, then the guest's part: the eject register of ACPI hot-plug (pc: 0xae00).
TEST(Device, Unplug) {
  Vm vm({"-M", "pc", "-device", "mlx5-hca,id=h0,addr=7", "-device", "mlx5-hca,id=h1,addr=8"});
  EXPECT_EQ(vm.qmp("device_del", {{"id", "h0"}}), nlohmann::json::object());
  vm.out32(0xae08, 1u << 7);
  ASSERT_TRUE(vm.wait_event("DEVICE_DELETED"));
  EXPECT_EQ(vm.config(0, 7, 0), 0xffffffffu);
  EXPECT_EQ(vm.config(0, 8, 0), 0x101915b3u);
  vm.clock_step(1000000);
  EXPECT_THAT(vm.qom_get("h0", "stats").dump(), HasSubstr("error"));
  EXPECT_TRUE(vm.qom_get("h1", "stats").is_string());
  EXPECT_EQ(vm.qmp("device_add", {{"driver", "mlx5-hca"}, {"id", "h0"}, {"bus", "pci.0"}, {"addr", "7"}}),
            nlohmann::json::object());
  EXPECT_EQ(vm.config(0, 7, 0), 0x101915b3u);
  EXPECT_TRUE(vm.qom_get("h0", "stats").is_string());
  EXPECT_THAT(vm.qmp("device_del", {{"id", "h1"}}), nlohmann::json::object());
  vm.out32(0xae08, 1u << 8);
  ASSERT_TRUE(vm.wait_event("DEVICE_DELETED"));
  vm.clock_step(1000000);
  EXPECT_EQ(vm.quit(), 0);
}

TEST(Device, UnplugAtReset) {
  HcaVm vm({"", ""});
  vm.clock_step(1000);
  vm.qmp("device_del", {{"id", "hca0"}});
  vm.qmp("system_reset");  // a pending removal is carried out by the reset
  ASSERT_TRUE(vm.wait_event("RESET"));
  EXPECT_TRUE(vm.wait_event("DEVICE_DELETED"));
  vm.enable_ecam_again();
  vm.bring_up(1);
  EXPECT_EQ(vm.config(2, 0, 0), 0x101915b3u);
  vm.clock_step(1000000);
  EXPECT_EQ(vm.quit(), 0);
}

// Into a machine that had none; its name is free again once it is gone.
TEST(Device, IsPluggedInAndOutAgainAndAgain) {
  Vm vm({"-M", "pc"});
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(vm.qmp("device_add", {{"driver", "mlx5-hca"}, {"id", "late"}, {"addr", "7"}}),
              nlohmann::json::object());
    EXPECT_EQ(vm.config(0, 7, 0), 0x101915b3u);
    vm.clock_step(1'000'000);
    EXPECT_TRUE(vm.qom_get("late", "stats").is_string());
    vm.qmp("device_del", {{"id", "late"}});
    vm.out32(0xae08, 1u << 7);
    ASSERT_TRUE(vm.wait_event("DEVICE_DELETED"));
    vm.clock_step(1'000'000);
    EXPECT_EQ(vm.config(0, 7, 0), 0xffffffffu);
  }
  EXPECT_EQ(vm.quit(), 0);
}

// What was refused leaves nothing behind, not even its name.
TEST(Device, PluggedInWithWrongOptionsItIsRefused) {
  HcaVm vm({""}, {"-device", "pcie-root-port,id=free,bus=pcie.0,chassis=9,slot=9,addr=9"});
  const auto plug = [&](const char* key, const char* value) {
    return vm.qmp("device_add", {{"driver", "mlx5-hca"}, {"id", "late"}, {"bus", "free"}, {key, value}})
        .dump();
  };
  EXPECT_THAT(plug("link", "no-such"), HasSubstr("no-such"));
  EXPECT_THAT(plug("options", "no"), HasSubstr("error"));
  EXPECT_THAT(plug("coupled", "on"),
              HasSubstr("coupled=on needs wire=, time=lockstep and -icount, from the machine's start on"));
  EXPECT_EQ(plug("time", "eager"), "{}");
  EXPECT_TRUE(vm.qom_get("late", "stats").is_string());
  EXPECT_EQ(vm.config(1, 0, 0), 0x101915b3u);
  EXPECT_EQ(vm.quit(), 0);
}

// Where a stream of a machine's state lies between two processes.
class StateFile {
 public:
  StateFile() : path_(testing::TempDir() + "hcasim-state-" + std::to_string(getpid())) {}
  ~StateFile() { std::remove(path_.c_str()); }
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  nlohmann::json uri(const std::string& how) const { return {{"uri", "exec:cat " + how + path_}}; }

 private:
  std::string path_;
};

// How a migration, out or in, ends; `command` begins it.
std::string migration(Vm& vm, const std::string& command, const nlohmann::json& arguments) {
  vm.qmp("migrate-set-capabilities", {{"capabilities", {{{"capability", "events"}, {"state", true}}}}});
  std::string status = vm.qmp(command, arguments).contains("error") ? "not begun" : "none";
  while (status != "completed" && status != "failed" && status != "not begun" && vm.wait_event("MIGRATION"))
    status = vm.qmp("query-migrate").value("status", "none");
  return status;
}

TEST(SavedMachine, GoesIntoAnotherProcess) {
  const StateFile file;
  HcaVm from({"", ""});
  from.enable_msix(1, 0x3000);
  from.set_reg(0, FAKE_SCRATCH + 0x10, 0x1122334455667788);
  from.set_reg(1, FAKE_SCRATCH + 0x20, 7);
  from.set_config(1, 0, 0x3c, 0x55, 1);
  from.set_reg(0, FAKE_EVENT_ACTIONS, 0);
  from.set_reg(0, FAKE_EVENT_DELAY, 5000);
  ASSERT_EQ(migration(from, "migrate", file.uri(">")), "completed") << from.output();
  HcaVm to({"", ""}, {"-incoming", "defer"});
  ASSERT_EQ(migration(to, "migrate-incoming", file.uri("")), "completed") << to.output();
  EXPECT_EQ(to.reg(0, FAKE_SCRATCH + 0x10), 0x1122334455667788u);
  EXPECT_EQ(to.reg(1, FAKE_SCRATCH + 0x20), 7u);
  EXPECT_EQ(to.config(1, 0, 0x3c, 1), 0x55u);
  EXPECT_EQ(to.config(2, 0, to.capability(1, 0x11) + 2, 2) & 0x8000, 0x8000u);
  to.set_reg(1, FAKE_MSIX_VECTOR, 3);
  to.set_reg(1, FAKE_MSIX_GO, 1);
  EXPECT_EQ(to.read(0x3000 + 4 * 3, 4), 4u);
  EXPECT_EQ(to.reg(0, FAKE_EVENT_COUNT), 0u);
  to.clock_step(10'000);
  EXPECT_EQ(to.reg(0, FAKE_EVENT_COUNT), 1u) << "what was under way comes";
}

// As a port's state that differs from the saved one: nobody touches the HCA for it.
TEST(SavedMachine, WhatIsDueWhenLoadedIsDoneAsTheMachineGoesOn) {
  const StateFile file;
  HcaVm from({""});
  from.set_reg(0, FAKE_SCRATCH, FAKE_DUE_WHEN_LOADED);
  ASSERT_EQ(migration(from, "migrate", file.uri(">")), "completed") << from.output();
  HcaVm to({""}, {"-incoming", "defer"});
  to.set_reg(0, FAKE_DMA_ADDR, 0x3000);
  to.set_reg(0, FAKE_DMA_LEN, 8);
  to.set_reg(0, FAKE_BUFFER, 0x1122334455667788);
  to.set_reg(0, FAKE_EVENT_ACTIONS, FAKE_WRITE);
  ASSERT_EQ(migration(to, "migrate-incoming", file.uri("")), "completed") << to.output();
  EXPECT_EQ(to.read(0x3000), 0x1122334455667788u);
}

TEST(SavedMachine, ThatTheModelDoesNotGiveFailsTheCommand) {
  HcaVm vm({""});
  vm.set_reg(0, FAKE_SCRATCH, FAKE_UNSAVABLE);
  EXPECT_EQ(migration(vm, "migrate", {{"uri", "exec:cat >/dev/null"}}), "failed");
  EXPECT_THAT(vm.output(), HasSubstr("cannot be saved: the fake does not want to"));
  EXPECT_EQ(vm.config(1, 0, 0), 0x101915b3u);
  vm.set_reg(0, FAKE_SCRATCH, 1);
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 1u) << "the machine goes on";
}

// Behind a load that failed, QEMU has the configuration spaces of the one state and the model what it had:
// nobody shall take the two for a state.
TEST(SavedMachine, BehindALoadThatFailedThereIsNoneToSave) {
  const std::string disk = testing::TempDir() + "hcasim-disk-" + std::to_string(getpid());
  ASSERT_EQ(std::system(("qemu-img create -q -f qcow2 " + disk + " 64M").c_str()), 0);
  HcaVm vm({""}, {"-drive", "if=none,format=qcow2,file=" + disk});
  vm.set_reg(0, FAKE_SCRATCH, FAKE_UNLOADABLE);
  EXPECT_EQ(vm.hmp("savevm bad"), "");
  vm.set_reg(0, FAKE_SCRATCH, 1);
  EXPECT_EQ(vm.hmp("savevm good"), "");
  EXPECT_THAT(vm.hmp("loadvm bad"), HasSubstr("cannot be loaded: the fake does not want to"));
  EXPECT_THAT(vm.hmp("savevm mixed"),
              HasSubstr("cannot be saved: the state that was loaded last was refused"));
  EXPECT_NE(vm.hmp("loadvm mixed"), "") << "there is none";
  EXPECT_EQ(vm.hmp("loadvm good"), "");
  EXPECT_EQ(vm.reg(0, FAKE_SCRATCH), 1u);
  EXPECT_EQ(vm.hmp("savevm again"), "");
  EXPECT_EQ(vm.hmp("loadvm again"), "");
  EXPECT_EQ(vm.quit(), 0);
  std::remove(disk.c_str());
}

TEST(Device, TimeModeFollowsTheAccelerator) {
  HcaVm wall({""}, {}, {"-accel", "tcg", "-S"});
  EXPECT_EQ(wall.qom_get("hca0", "time-mode"), "eager");
  HcaVm icount({""}, {}, {"-accel", "tcg", "-S", "-icount", "shift=3,sleep=off"});
  EXPECT_EQ(icount.qom_get("hca0", "time-mode"), "lockstep");
}

// What device_add mlx5-hca,help says beside each property that not every PCI device has. (QEMU answers
// -device ...,help before it loads plugins.)
TEST(Device, EveryPropertyIsDescribed) {
  HcaVm vm({""});
  const auto properties = [&](const char* type) {
    std::map<std::string, std::string> all;
    for (const auto& p : vm.qmp("device-list-properties", {{"typename", type}}))
      all[p.at("name")] = p.value("description", "");
    return all;
  };
  const auto of_any = properties("pci-testdev");
  std::set<std::string> own;
  for (const auto& [name, text] : properties("mlx5-hca")) {
    if (of_any.count(name) != 0) continue;
    own.insert(name);
    EXPECT_NE(text, "") << name;
  }
  const std::string help = vm.hmp("device_add mlx5-hca,help");
  for (const char* name : {"link", "ahead", "bf", "netdev", "mac", "x-device-id"}) {
    EXPECT_EQ(own.count(name), 1u) << name;
    EXPECT_THAT(help, HasSubstr(std::string("  ") + name + "="));
  }
}

TEST(Refusal, Options) {
  struct {
    const char *device, *message;
  } const cases[] = {
      {"mlx5-hca,link=no-such", "link=no-such"},
      {"mlx5-hca,time=sometimes", "allowed are auto, eager, lockstep"},
      {"mlx5-hca,ahead=2000000000", "allowed are 0 to"},
      {"mlx5-hca,options=lanes", "is not KEY=VALUE"},
      {"mlx5-hca,options=wire=unix:/no/such;", "options: wire is given beside options="},
      {"mlx5-hca,profile=a,,b", "comma"},
      {"mlx5-hca,options=no-such-key=1", "no-such-key"},
      {"mlx5-hca,options=pcie.lanes=3", "pcie.lanes"},
      {"mlx5-hca,no-such-property=1", "not found"},
  };
  for (const auto& c : cases) {
    QemuExit exit = run_qemu({"-device", c.device});
    EXPECT_EQ(exit.status, 1) << c.device;
    EXPECT_THAT(exit.output, HasSubstr(c.message)) << c.device;
  }
}

TEST(Refusal, PluginArguments) {
  QemuExit exit = run_qemu({}, std::string(HCASIM_TEST_DEFAULT_PLUGIN) + ",link=ib");
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.output, HasSubstr("unknown argument 'link=ib'"));
}

TEST(Refusal, AnotherQemu) {
  struct {
    const char *plugin, *message;
  } const cases[] = {
      {HCASIM_TEST_WRONG_VERSION, "made with the headers of QEMU"},
      {HCASIM_TEST_WRONG_BUILD_ID, "made for the program with build-id 00112233"},
      {HCASIM_TEST_WRONG_LAYOUT, "differs from its headers"},
  };
  for (const auto& c : cases) {
    QemuExit exit = run_qemu({}, c.plugin);
    EXPECT_EQ(exit.status, 1) << c.plugin;
    EXPECT_THAT(exit.output, HasSubstr(c.message));
    EXPECT_THAT(exit.output, HasSubstr("./hcasim build"));
  }
}

}  // namespace
}  // namespace hcasim::tests
