// SPDX-License-Identifier: BSD-3-Clause
// HcaModule in platforms with memories of several kinds. There is one elaboration in a process, so each test
// runs in one of its own (ctest does that); a second one of the same process is skipped.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "platform.h"

namespace example {
namespace {

using hcasim::sc::HcaConfig;
using ::testing::HasSubstr;

// A copy: what sc_time_stamp() refers to moves on.
sc_time time_now() { return sc_time_stamp(); }

// A memory that annotates or waits, and may grant DMI.
class AnyMemory : public sc_module {
 public:
  AnyMemory(const sc_module_name& name, bare::HostMemory& pages)
      : sc_module(name), socket("socket"), pages_(pages) {
    socket.register_b_transport(this, &AnyMemory::transport);
    socket.register_get_direct_mem_ptr(this, &AnyMemory::map);
    socket.register_transport_dbg(this, &AnyMemory::peek);
  }
  void forget_dmi() {
    dmi = false;
    socket->invalidate_direct_mem_ptr(0, ~0ull);
  }
  tlm_utils::simple_target_socket<AnyMemory> socket;
  sc_time annotates, waits;
  bool dmi = false, throws = false;
  bool leaves_address = false;  // as its own, as buses do that make it an offset
  unsigned accesses = 0;
  std::function<void(tlm::tlm_generic_payload&)> on_access;

 private:
  bool access(tlm::tlm_generic_payload& p) {
    return p.is_read() ? pages_.dma_read(p.get_address(), p.get_data_ptr(), p.get_data_length())
                       : pages_.dma_write(p.get_address(), p.get_data_ptr(), p.get_data_length());
  }
  void transport(tlm::tlm_generic_payload& p, sc_time& delay) {
    ++accesses;
    if (throws) throw std::runtime_error("memory");
    if (on_access) on_access(p);
    if (waits != SC_ZERO_TIME) wait(waits);
    delay += annotates;
    p.set_response_status(access(p) ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    p.set_dmi_allowed(dmi);
    if (leaves_address) p.set_address(p.get_address() % 4096);
  }
  bool map(tlm::tlm_generic_payload&, tlm::tlm_dmi& out) {
    out.set_dmi_ptr(pages_.at(bare::HostMemory::kBusBase));
    out.set_start_address(bare::HostMemory::kBusBase);
    out.set_end_address(bare::HostMemory::kBusBase + pages_.size() - 1);
    out.allow_read_write();
    return dmi;
  }
  unsigned peek(tlm::tlm_generic_payload& p) { return access(p) ? p.get_data_length() : 0; }
  bare::HostMemory& pages_;
};

// With debug accesses, and DMI for what has come in.
class TestBus : public Bus {
 public:
  explicit TestBus(const sc_module_name& name) : Bus(name) {
    takes = SC_ZERO_TIME;
    in.register_transport_dbg(this,
                              static_cast<unsigned (Bus::*)(int, tlm::tlm_generic_payload&)>(&TestBus::peek));
    in.register_get_direct_mem_ptr(
        this, static_cast<bool (Bus::*)(int, tlm::tlm_generic_payload&, tlm::tlm_dmi&)>(&TestBus::map));
  }
  void attach_memory(AnyMemory& memory) {
    attach(kMemory, kMemoryBytes, memory.socket);
    out.back().port->register_invalidate_direct_mem_ptr(
        this, static_cast<void (Bus::*)(sc_dt::uint64, sc_dt::uint64)>(&TestBus::unmap));
  }

 private:
  unsigned peek(int, tlm::tlm_generic_payload& p) { return (*route(p.get_address()))->transport_dbg(p); }
  bool map(int, tlm::tlm_generic_payload& p, tlm::tlm_dmi& dmi) {
    return (*route(p.get_address()))->get_direct_mem_ptr(p, dmi);
  }
  void unmap(sc_dt::uint64 first, sc_dt::uint64 last) {
    for (unsigned i = 0; i < in.size(); ++i) in[static_cast<int>(i)]->invalidate_direct_mem_ptr(first, last);
  }
};

class TestPlatform : public sc_module {
 public:
  explicit TestPlatform(const sc_module_name& name, const std::string& options = "", bool wired = true)
      : sc_module(name), left("left", HcaConfig{options}), right("right", HcaConfig{options}) {
    cpu.bus.bind(bus.in);
    bus.attach_memory(memory);
    bus.attach(kInterrupts, 8, cpu.interrupts);
    add(left, 0);
    add(right, 1);
    left.reset(reset);
    if (!wired) return;
    left.wire_out.bind(right.wire_in);
    right.wire_out.bind(left.wire_in);
  }
  // Runs the program to its end, or for a while.
  void run(const std::function<void(bare::Machine&)>& program, const sc_time& limit = sc_time(2, SC_SEC)) {
    cpu.program = [this, program](bare::Machine& machine) {
      program(machine);
      ended = true;
    };
    sc_start(limit);
    EXPECT_TRUE(ended);
  }
  // A debug access to a word, bytes as on the bus.
  std::uint32_t peek(Address address) {
    std::uint32_t word = 0;
    tlm::tlm_generic_payload r;
    r.set_command(tlm::TLM_READ_COMMAND);
    r.set_address(address);
    r.set_data_ptr(reinterpret_cast<unsigned char*>(&word));
    r.set_data_length(4);
    EXPECT_EQ(cpu.bus->transport_dbg(r), 4u);
    return word;
  }
  Cpu cpu{"cpu"};
  TestBus bus{"bus"};
  AnyMemory memory{"memory", cpu.host.machine().memory()};
  HcaModule left, right;
  sc_signal<bool> reset;
  bool ended = false;

 private:
  void add(HcaModule& card, unsigned slot) {
    const Address config = kConfig + slot * kConfigBytes, bars = kBars + slot * kBarBytes;
    cpu.host.add_function({config, bars, bars + HcaModule::kRegisterBytes, kInterrupts + slot * 4});
    bus.attach(config, kConfigBytes, card.config);
    bus.attach(bars, kBarBytes, card.bar);
    card.dma.bind(bus.in);
  }
};

class Module : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sc_get_status() != SC_ELABORATION || !sc_get_top_level_objects().empty())
      GTEST_SKIP() << "this process has had its elaboration";
  }
};

// ns from the doorbell of an RDMA WRITE to both completions.
std::int64_t timed_write(TestPlatform& p, unsigned* wrong) {
  std::int64_t took = 0;
  p.run([&](bare::Machine& machine) {
    p.cpu.host.poll = sc_time(1, SC_US);
    *wrong = rdma_write(machine, &took);
  });
  return took;
}

TEST_F(Module, WritesWithAMemoryThatAnnotates) {
  TestPlatform p("p");
  p.memory.annotates = sc_time(70, SC_NS);
  unsigned wrong = ~0u;
  timed_write(p, &wrong);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(p.left.counter("rules_broken"), 0u);
  EXPECT_EQ(p.left.counter("dma_errors") + p.right.counter("dma_errors"), 0u);
  EXPECT_GT(p.cpu.host.machine().function(0).interrupts(), 0u);
}

TEST_F(Module, WritesWithAMemoryThatWaits) {
  TestPlatform p("p");
  p.memory.waits = sc_time(70, SC_NS);
  unsigned wrong = ~0u;
  timed_write(p, &wrong);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(Module, WritesNativelyWithAMemoryThatWaits) {
  TestPlatform p("p", "kernel=native");
  p.memory.waits = sc_time(70, SC_NS);
  unsigned wrong = ~0u;
  timed_write(p, &wrong);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(Module, JoinsInfiniBandPorts) {
  TestPlatform p("p", "link=ib");
  bool up = false;
  p.run([&](bare::Machine& machine) {
    bare::DeviceOptions options;
    options.wait_active = false;
    bare::Device a(machine.function(0), options), b(machine.function(1), options);
    a.probe();
    b.probe();
    up = machine.run_until([&] { return a.port_state() == 4 && b.port_state() == 4; }, 1'000'000'000);
    EXPECT_NE(a.lid(), b.lid());
  });
  EXPECT_TRUE(up);
}

TEST_F(Module, AnAnnotatedDelayIsInTheLatency) {
  TestPlatform p("p");
  p.memory.annotates = sc_time(20, SC_US);
  unsigned wrong = ~0u;
  // WQE fetch, payload read, payload write before its CQE, at the least.
  EXPECT_GT(timed_write(p, &wrong), 3 * 20'000 + 20'000);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(Module, UsesDmiUntilItIsInvalidated) {
  TestPlatform p("p");
  p.memory.dmi = true;
  unsigned wrong = ~0u, between = 0;
  p.run([&](bare::Machine& machine) {
    wrong = rdma_write(machine);
    const unsigned before = p.memory.accesses;
    p.memory.forget_dmi();
    bare::Device again(machine.function(0));
    again.probe();
    between = p.memory.accesses - before;
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(p.left.counter("dmi_accesses"), 100u);
  EXPECT_GT(between, 0u);
}

TEST_F(Module, HasDmiBehindABusThatChangesAddresses) {
  TestPlatform p("p");
  p.memory.dmi = p.memory.leaves_address = true;
  unsigned wrong = ~0u;
  p.run([&](bare::Machine& machine) { wrong = rdma_write(machine); });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(p.left.counter("dmi_accesses"), 100u);
}

TEST_F(Module, AMemoryThatThrowsRefuses) {
  TestPlatform p("p");
  p.run([&](bare::Machine& machine) {
    p.memory.throws = true;
    bare::Device device(machine.function(0));
    EXPECT_THROW(device.cmd()
                     .exec(bare::Mailbox(hcasim::prm::op::ENABLE_HCA, hcasim::prm::enable_hca_in::bytes), 16,
                           50'000'000)
                     .must(),
                 bare::BareError);
    p.memory.throws = false;
  });
}

// cmdq_addr_h and cmdq_addr_l_sz, whose address reads as written, and fw_rev.
constexpr std::uint64_t kAddressHigh = 0x10, kAddressLow = 0x14, kFirmware = 0x0;
constexpr std::uint32_t kAddressMask = 0x00f0ffff;  // of its word, bytes as on the bus

TEST_F(Module, AWriteHappensWhenItsDelaySays) {
  TestPlatform p("p");
  p.run([&](bare::Machine&) {
    std::uint32_t value = 0x00302211, seen = 0;  // address 0x11223000, big-endian
    tlm::tlm_generic_payload w;
    const auto access = [&](tlm::tlm_command command, std::uint32_t& word, sc_time& delay) {
      w.set_command(command);
      w.set_address(kBars + kAddressLow);
      w.set_data_ptr(reinterpret_cast<unsigned char*>(&word));
      w.set_data_length(4);
      w.set_streaming_width(4);
      w.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
      p.cpu.bus->b_transport(w, delay);
      EXPECT_TRUE(w.is_response_ok());
    };
    sc_time delay(5, SC_US);
    const sc_time start = time_now();
    access(tlm::TLM_WRITE_COMMAND, value, delay);
    EXPECT_EQ(sc_time_stamp(), start);  // posted
    EXPECT_EQ(delay, sc_time(5, SC_US));
    wait(sc_time(4, SC_US));
    const auto peek = [&] { return p.peek(kBars + kAddressLow) & kAddressMask; };
    EXPECT_NE(peek(), value);
    wait(sc_time(1500, SC_NS));
    EXPECT_EQ(peek(), value);
    // A read waits out its delay, and sees what was written before it.
    value = 0x00706655;
    delay = sc_time(3, SC_US);
    access(tlm::TLM_WRITE_COMMAND, value, delay);
    const sc_time then = time_now();
    delay = sc_time(3, SC_US);
    access(tlm::TLM_READ_COMMAND, seen, delay);
    EXPECT_EQ(seen & kAddressMask, value);
    EXPECT_EQ(sc_time_stamp(), then + sc_time(3, SC_US));
    EXPECT_GT(delay, SC_ZERO_TIME);
    // Without a write before it, at once.
    delay = SC_ZERO_TIME;
    const sc_time now = time_now();
    access(tlm::TLM_READ_COMMAND, seen, delay);
    EXPECT_EQ(sc_time_stamp(), now);
    // Nor does it wait for what another initiator, which is ahead of time, has written for later.
    value = 0x00302211;
    delay = sc_time(50, SC_US);
    access(tlm::TLM_WRITE_COMMAND, value, delay);
    delay = SC_ZERO_TIME;
    access(tlm::TLM_READ_COMMAND, seen, delay);
    EXPECT_EQ(sc_time_stamp(), now);
    EXPECT_NE(seen & kAddressMask, value);
  });
}

// A CPU that is ahead of time has written for later than a reset that it does not know of.
TEST_F(Module, AWriteForLaterThanAResetIsLost) {
  TestPlatform p("p");
  p.run([&](bare::Machine& machine) {
    bare::Function& f = machine.function(0);
    const auto write_ahead = [&](std::uint32_t value) {
      tlm::tlm_generic_payload w;
      w.set_command(tlm::TLM_WRITE_COMMAND);
      w.set_address(kBars + kAddressLow);
      w.set_data_ptr(reinterpret_cast<unsigned char*>(&value));
      w.set_data_length(4);
      w.set_streaming_width(4);
      sc_time delay(5, SC_US);
      p.cpu.bus->b_transport(w, delay);
      EXPECT_TRUE(w.is_response_ok());
    };
    for (const sc_time& lasts : {sc_time(1, SC_US), sc_time(10, SC_US)}) {
      write_ahead(0x00302211);
      p.reset.write(true);
      wait(lasts);
      p.reset.write(false);
      wait(sc_time(10, SC_US));
      f.reset();  // places the BARs again
      EXPECT_EQ(p.peek(kBars + kAddressLow) & kAddressMask, 0u) << lasts;
    }
    write_ahead(0x00302211);
    wait(sc_time(6, SC_US));
    EXPECT_EQ(p.peek(kBars + kAddressLow) & kAddressMask, 0x00302211u);
  });
}

TEST_F(Module, CapturesWhatItsPortSends) {
  const std::string file = "/tmp/hcasim-module-" + std::to_string(::getpid()) + ".pcapng";
  unsigned wrong = 1;
  {
    TestPlatform p("p", "capture=" + file);
    timed_write(p, &wrong);
    EXPECT_EQ(wrong, 0u);
  }
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  EXPECT_GT(in.tellg(), 2000) << "packets of a write of some KiB";
  std::remove(file.c_str());
}

constexpr std::uint32_t kHealthSyndrome = 0x23c;  // health.synd is its second byte

TEST_F(Module, BreakingAStrictRuleIsFatal) {
  TestPlatform p("p", "rules=strict");
  p.run([&](bare::Machine& machine) {
    bare::Device device(machine.function(0));
    device.probe();
    bare::Mailbox in(hcasim::prm::op::QUERY_ISSI, hcasim::prm::query_issi_in::bytes);
    in.end()[-1] = 1;  // reserved
    const auto syndrome = [&] { return machine.function(0).read32(kHealthSyndrome) >> 16 & 0xff; };
    EXPECT_EQ(syndrome(), 0u);
    device.exec(in, hcasim::prm::query_issi_out::bytes);
    EXPECT_NE(syndrome(), 0u);
  });
}

// A debugger's memory window is no driver.
TEST_F(Module, DebugReadsBreakNoRule) {
  TestPlatform p("p", "rules=strict");
  p.run([&](bare::Machine& machine) {
    bare::Device device(machine.function(0));
    device.probe();
    EXPECT_EQ(p.peek(kBars + 20 * hcasim::prm::uar::kPageBytes), 0u);
    p.peek(kBars + HcaModule::kRegisterBytes - 8);  // device memory that nobody has
    EXPECT_NE(p.peek(kBars + kFirmware), 0u);
    EXPECT_EQ(machine.function(0).read32(kHealthSyndrome) >> 16 & 0xff, 0u);
  });
}

// While a command's mailbox is being read, for as long as a millisecond, the CPU reads and writes registers.
TEST_F(Module, IsReadableWhileItsDmaWaits) {
  TestPlatform p("p");
  p.run([&](bare::Machine& machine) {
    bare::Function& f = machine.function(0);
    bare::Device device(f);
    device.cmd().start();
    p.memory.waits = sc_time(1, SC_MS);
    bool done = false;
    device.cmd().submit(bare::Mailbox(hcasim::prm::op::ENABLE_HCA, hcasim::prm::enable_hca_in::bytes), 16,
                        [&](const bare::CommandResult& r) { done = r.ok(); });
    wait(sc_time(100, SC_US));
    ASSERT_EQ(p.memory.accesses, 1u);
    const sc_time before = time_now();
    EXPECT_NE(f.read32(kFirmware), 0xffffffffu);
    EXPECT_LT(sc_time_stamp() - before, sc_time(1, SC_US));  // its own latency
    f.write32(kAddressHigh, 0);  // queued: the read behind it waits for the turn to end
    EXPECT_NE(f.read32(kFirmware), 0xffffffffu);
    EXPECT_GT(sc_time_stamp() - before, sc_time(500, SC_US));
    p.memory.waits = SC_ZERO_TIME;
    EXPECT_TRUE(machine.run_until(
        [&] {
          device.cmd().poll();
          return done;
        },
        100'000'000));
  });
}

// DMA that leads into the card's own registers.
TEST_F(Module, SurvivesDmaToItself) {
  TestPlatform p("p");
  bool read = false;
  p.run([&](bare::Machine& machine) {
    bare::Function& f = machine.function(0);
    bare::Device device(f);
    device.cmd().start();
    p.memory.on_access = [&](tlm::tlm_generic_payload&) {
      if (read) return;
      read = true;
      f.write32(kAddressHigh, 0);
      EXPECT_NE(f.read32(kFirmware), 0xffffffffu);
    };
    EXPECT_NO_THROW(device.enable_hca().must());
  });
  EXPECT_TRUE(read);
}

TEST_F(Module, IsTheCardOfItsProfile) {
  TestPlatform p("p", "profile=connectx6-hdr200");
  p.run([&](bare::Machine&) { EXPECT_EQ(p.peek(kConfig), 0x101b15b3u); });
}

// By its capability in configuration space (PCI 3.0, 6.8.3.5).
TEST_F(Module, ShowsItsVitalProductData) {
  TestPlatform p("p", "profile=connectx6-hdr200,node_guid=0x0002c90300c0ffee");
  std::string data;
  p.run([&](bare::Machine&) {
    const Address vpd = kConfig + 0xa0;
    for (std::uint16_t at = 0; at < 160; at = static_cast<std::uint16_t>(at + 4)) {
      std::uint8_t bytes[4];
      p.cpu.host.write(vpd + 2, &at, 2);
      p.cpu.host.read(vpd + 4, bytes, 4);
      data.append(reinterpret_cast<char*>(bytes), 4);
    }
    EXPECT_EQ(p.peek(kConfig + 0x14c), 0x00c0ffeeu);
    EXPECT_EQ(p.peek(kConfig + 0x150), 0x0002c903u);
  });
  EXPECT_EQ(data[0], '\x82');
  EXPECT_THAT(data, HasSubstr("MCX653105A-HDAT"));
  EXPECT_THAT(data, HasSubstr("0002c90300c0ffee"));
}

// The vendor specific capability (model/pcie/vsc_gateway.h): semaphores, and the chip's ID in CR space.
TEST_F(Module, LetsToolsThroughItsGateway) {
  TestPlatform p("p", "profile=connectx6-hdr200");
  p.run([&](bare::Machine& machine) {
    const Address gateway = kConfig + 0xa8;
    const auto get = [&](Address at) {
      std::uint32_t value = 0;
      p.cpu.host.read(gateway + at, &value, 4);
      return value;
    };
    const auto set = [&](Address at, std::uint32_t value) { p.cpu.host.write(gateway + at, &value, 4); };
    EXPECT_EQ(get(0) & 0xffff00ff, 0x00180009u);
    set(0x04, 0xa);
    EXPECT_EQ(get(0x04), 0x2000000au);
    const std::uint32_t ticket = get(0x08);
    EXPECT_EQ(p.peek(gateway + 0x08), 0u);  // a debug access takes none
    EXPECT_EQ(get(0x08), ticket + 1);
    set(0x0c, ticket);
    set(0x0c, ticket + 1);  // taken
    EXPECT_EQ(get(0x0c), ticket);
    const std::uint16_t half = 0;
    p.cpu.host.write(gateway + 0x0c, &half, 2);  // of a dword it takes all
    EXPECT_EQ(get(0x0c), ticket);
    set(0x0c, 0);
    EXPECT_EQ(get(0x0c), 0u);
    set(0x04, 2);
    set(0x10, 0xf0014);
    EXPECT_EQ(get(0x10), 0x800f0014u);
    EXPECT_EQ(get(0x14) & 0xffff, 0x20fu);  // ConnectX-6
    machine.function(0).reset();
    EXPECT_EQ(get(0x04), 0u);
  });
}

std::string scenario(const std::string& text) {
  std::string path = ::testing::TempDir() + "hca_module_" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << text;
  return path;
}

TEST_F(Module, AnErrorOfPcieIsInItsRegisters) {
  const std::string faults =
      scenario("[[fault]]\nkind = \"pcie\"\nerror = \"completion-timeout\"\nat = \"200us\"\n");
  TestPlatform p("p", "faults=" + faults);
  std::remove(faults.c_str());
  p.run([&](bare::Machine&) {
    EXPECT_EQ(p.peek(kConfig + 0x104), 0u);
    wait(sc_time(250, SC_US));
    EXPECT_EQ(p.peek(kConfig + 0x104), 1u << 14);
    EXPECT_EQ(p.peek(kConfig + 0x118) & 0x1f, 14u);
    EXPECT_EQ(p.peek(kConfig + 0x68) >> 16, 2u);  // device status: non-fatal error detected
  });
}

TEST_F(Module, ACardOutOfItsSlotAnswersNothing) {
  const std::string faults = scenario(
      "[[fault]]\nkind = \"pcie\"\naction = \"remove\"\nat = \"200us\"\n"
      "[[fault]]\nkind = \"pcie\"\naction = \"insert\"\nat = \"300us\"\n");
  TestPlatform p("p", "faults=" + faults);
  std::remove(faults.c_str());
  p.run([&](bare::Machine& machine) {
    const std::uint32_t id = p.peek(kConfig);
    EXPECT_EQ(id & 0xffff, 0x15b3u);
    wait(sc_time(250, SC_US));
    EXPECT_EQ(p.peek(kConfig), 0xffffffffu);
    wait(sc_time(100, SC_US));
    EXPECT_EQ(p.peek(kConfig), id);
    EXPECT_EQ(p.peek(kConfig + 4) & 6, 0u);  // as after power-on
    p.cpu.host.enumerate();
    p.cpu.host.poll = sc_time(1, SC_US);
    EXPECT_EQ(rdma_write(machine), 0u);
  });
}

TEST_F(Module, AFaultTakesItsCableOut) {
  const std::string faults = scenario("[[fault]]\nkind = \"port\"\naction = \"down\"\nat = \"20ms\"\n");
  TestPlatform p("p", "faults=" + faults);
  std::remove(faults.c_str());
  p.run([&](bare::Machine& machine) {
    bare::Device left(machine.function(0)), right(machine.function(1));
    left.probe();
    right.probe();
    ASSERT_LT(sc_time_stamp(), sc_time(20, SC_MS));
    const auto down = [&] { return left.port_state() != 4 && right.port_state() != 4; };
    EXPECT_FALSE(down());
    EXPECT_TRUE(machine.run_until(down, 100'000'000));
  });
}

TEST_F(Module, ResetHoldsTheCard) {
  TestPlatform p("p");
  p.run([&](bare::Machine& machine) {
    bare::Function& f = machine.function(0);
    f.write32(kAddressLow, 0x7000);
    EXPECT_EQ(f.read32(kAddressLow) & 0xfffff000, 0x7000u);
    p.reset.write(true);
    wait(sc_time(1, SC_US));
    EXPECT_EQ(p.peek(kConfig), 0xffffffffu);
    p.reset.write(false);
    wait(sc_time(1, SC_US));
    EXPECT_EQ(p.peek(kConfig), 0x101915b3u);
    f.reset();  // places the BARs again
    EXPECT_EQ(f.read32(kAddressLow) & 0xfffff000, 0u);
  });
}

TEST_F(Module, WithoutAWireThePortHasACableToItself) {
  TestPlatform p("p", "", false);
  p.run([&](bare::Machine& machine) {
    bare::Device device(machine.function(0));
    EXPECT_NO_THROW(device.probe());
    EXPECT_EQ(device.port_state(), 4);
    EXPECT_NO_THROW(device.teardown());
  });
}

std::string refusal(const HcaConfig& config) {
  try {
    HcaModule module("refused", config);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST_F(Module, SaysWhatIsWrongWithItsOptions) {
  EXPECT_THAT(refusal({"link=token-ring"}), HasSubstr("/hcasim/config"));
  EXPECT_THAT(refusal({"link=token-ring"}), HasSubstr("allowed: eth, ib"));
  EXPECT_THAT(refusal({"wire=unix:/nowhere"}), HasSubstr("bind wire_out and wire_in"));
  EXPECT_THAT(refusal({"profile=/nowhere.toml"}), HasSubstr("nowhere"));
}

TEST_F(Module, HasOneKernelForAll) {
  HcaModule first("first", {"kernel=native"});
  EXPECT_THAT(refusal({""}), HasSubstr("/hcasim/kernel"));
}

TEST_F(Module, ChecksTheTimeResolution) {
  sc_set_time_resolution(1, SC_NS);
  EXPECT_THAT(refusal({""}), HasSubstr("/hcasim/time_resolution"));
}

}  // namespace
}  // namespace example

int sc_main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
