// SPDX-License-Identifier: BSD-3-Clause
// The bare driver's host on TLM sockets: enumeration, accesses, interrupts, time. The function is a fake with
// the configuration space of HcaModule. One elaboration a process: ctest runs each test in one of its own.
#include "driver/sc/tlm_host.h"

#include <gmock/gmock.h>
#include <linux/pci_regs.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstring>

#include "card/pci/config_space.h"

namespace hcasim::bare {
namespace {

using namespace sc_core;
using pci::ConfigSpace;
using ::testing::HasSubstr;

constexpr std::uint64_t kConfig = 0xb0000000, kRegisters = 0x1c0000000, kMsix = 0xd0000000,
                        kMessages = 0xfee00000, kVoid = 0xe0000000;

// A copy: what sc_time_stamp() refers to moves on.
sc_time now() { return sc_time_stamp(); }

// Everything that is on the bus: one function, which remembers when it was written to.
struct Card : sc_module {
  explicit Card(const sc_module_name& name) : sc_module(name) {
    socket.register_b_transport(this, &Card::transport);
  }
  void transport(tlm::tlm_generic_payload& p, sc_time& delay) {
    const unsigned len = p.get_data_length();
    const std::uint64_t a = p.get_address();
    const ConfigSpace::Place place = space.decode(a, len);
    p.set_response_status(tlm::TLM_OK_RESPONSE);
    if (a >= kConfig && a < kConfig + ConfigSpace::kBytes) {
      std::uint32_t word = present ? space.read(static_cast<unsigned>(a - kConfig), len) : ~0u;
      if (p.is_read()) {
        std::memcpy(p.get_data_ptr(), &word, len);
      } else {
        std::memcpy(&word, p.get_data_ptr(), len);
        if (space.write(static_cast<unsigned>(a - kConfig), word, len)) {
          space.reset();
          reset_at = sc_time_stamp() + delay;
        }
      }
    } else if (place.bar == ConfigSpace::Bar::kMsixTable) {
      if (p.is_read())
        space.table_read(place.offset, p.get_data_ptr(), len);
      else
        space.table_write(place.offset, p.get_data_ptr(), len);
    } else if (place.bar == ConfigSpace::Bar::kRegisters) {
      at = sc_time_stamp() + delay;
      carried = delay;
      if (p.is_read())
        std::memcpy(p.get_data_ptr(), &value, len);
      else
        std::memcpy(&value, p.get_data_ptr(), len);
      if (p.is_read()) delay += sc_time(300, SC_NS);
    } else {
      p.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    }
  }
  tlm_utils::simple_target_socket<Card> socket{"socket"};
  ConfigSpace space{ConfigSpace::Identity{}};
  bool present = true;
  std::uint64_t value = 0;
  sc_time at, carried, reset_at;
};

struct Cpu : sc_module {
  SC_HAS_PROCESS(Cpu);
  explicit Cpu(const sc_module_name& name) : sc_module(name) {
    SC_THREAD(run);
    set_stack_size(1 << 20);
  }
  void run() {
    program();
    ended = true;
    sc_stop();
  }
  tlm_utils::simple_initiator_socket<Cpu> bus{"bus"};
  TlmHost host{bus, 1 << 20};
  std::function<void()> program;
  bool ended = false;
};

class Host : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sc_get_status() != SC_ELABORATION || !sc_get_top_level_objects().empty())
      GTEST_SKIP() << "this process has had its elaboration";
    sc_report_handler::set_actions(SC_WARNING, SC_DO_NOTHING | SC_CACHE_REPORT);
    card = std::make_unique<Card>("card");
    cpu = std::make_unique<Cpu>("cpu");
    cpu->bus.bind(card->socket);
  }
  void run(std::function<void()> program) {
    cpu->program = std::move(program);
    sc_start(sc_time(1, SC_SEC));
    EXPECT_TRUE(cpu->ended);
  }
  TlmHost& host() { return cpu->host; }
  // The write of 4 bytes that a function signals an interrupt by.
  tlm::tlm_response_status signal(std::uint64_t address, std::uint32_t data) {
    tlm::tlm_generic_payload p;
    sc_time delay;
    p.set_write();
    p.set_address(address);
    p.set_data_ptr(reinterpret_cast<unsigned char*>(&data));
    p.set_data_length(4);
    p.set_streaming_width(4);
    host().interrupt(p, delay);
    return p.get_response_status();
  }
  std::unique_ptr<Card> card;
  std::unique_ptr<Cpu> cpu;
};

TEST_F(Host, EnumerationMakesAFunctionUsable) {
  Function& f = host().add_function({kConfig, kRegisters, kMsix, kMessages});
  run([&] {
    host().enumerate();
    EXPECT_TRUE(card->space.bus_master());
    EXPECT_EQ(card->space.decode(kRegisters, 4).bar, ConfigSpace::Bar::kRegisters);
    f.write32(0x10, 0x11223344);
    EXPECT_EQ(card->value, 0x44332211u);
    EXPECT_EQ(f.read32(0x10), 0x11223344u);
    // Every vector has its message, in the order of their numbers.
    for (const unsigned vector : {0u, 1u, HCA_MSIX_VECTORS - 1u}) {
      const auto message = card->space.signal(vector);
      ASSERT_TRUE(message) << vector;
      EXPECT_EQ(message->address, kMessages);
      EXPECT_EQ(message->data, vector);
    }
  });
}

TEST_F(Host, SaysWhereThereIsNoFunction) {
  host().add_function({kConfig, kRegisters, kMsix, kMessages});
  run([&] {
    card->present = false;
    try {
      host().enumerate();
      ADD_FAILURE() << "found a function";
    } catch (const BareError& e) {
      EXPECT_THAT(e.what(), HasSubstr("no function at configuration address 0xb0000000"));
    }
  });
}

TEST_F(Host, RefusesToPlaceASmallBarAbove4GiB) {
  host().add_function({kConfig, kRegisters, 1ull << 32, kMessages});
  run([&] { EXPECT_THROW(host().enumerate(), BareError); });
}

TEST_F(Host, AReadOfNothingBringsOnesAndIsReported) {
  run([&] {
    std::uint32_t word = 0;
    host().read(kVoid, &word, 4);
    EXPECT_EQ(word, 0xffffffffu);
    ASSERT_NE(sc_report_handler::get_cached_report(), nullptr);
    EXPECT_STREQ(sc_report_handler::get_cached_report()->get_msg_type(), "/hcasim/host");
    EXPECT_THAT(sc_report_handler::get_cached_report()->get_msg(),
                HasSubstr("read of 4 bytes at 0xe0000000"));
  });
}

TEST_F(Host, AMessageRaisesItsVectorAndWakesTheDriver) {
  Function& f = host().add_function({kConfig, kRegisters, kMsix, kMessages});
  bool handled = false;
  sc_time woken;
  f.on_interrupt(3, [&] { handled = true; });
  host().poll = sc_time(1, SC_MS);
  sc_spawn([&] {
    wait(sc_time(700, SC_NS));
    EXPECT_EQ(signal(kMessages, 3), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(signal(kMessages + 4, 3), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(signal(kMessages, HCA_MSIX_VECTORS), tlm::TLM_OK_RESPONSE);  // of none: changes nothing
  });
  run([&] {
    EXPECT_TRUE(host().machine().run_until([&] { return handled; }, 1'000'000'000));
    woken = sc_time_stamp();
  });
  EXPECT_EQ(woken, sc_time(700, SC_NS));
  EXPECT_EQ(f.interrupts(), 1u);
}

TEST_F(Host, WithoutAQuantumTimePassesAtEachAccess) {
  Function& f = host().add_function({kConfig, kRegisters, kMsix, kMessages});
  run([&] {
    host().enumerate();
    const sc_time before = now();
    f.read32(0);  // 300 ns
    EXPECT_EQ(sc_time_stamp(), before + sc_time(300, SC_NS));
    EXPECT_EQ(card->carried, SC_ZERO_TIME);
  });
}

TEST_F(Host, WithAQuantumItRunsAhead) {
  tlm::tlm_global_quantum::instance().set(sc_time(1, SC_US));
  Function& f = host().add_function({kConfig, kRegisters, kMsix, kMessages});
  run([&] {
    host().enumerate();
    host().sync();
    const sc_time start = now();
    f.read32(0);
    f.read32(0);
    f.write32(0, 1);
    EXPECT_EQ(sc_time_stamp(), start);
    EXPECT_EQ(card->carried, sc_time(600, SC_NS));
    EXPECT_EQ(card->at, start + sc_time(600, SC_NS));
    f.read32(0);
    f.read32(0);  // the quantum is used up
    EXPECT_EQ(sc_time_stamp(), start + sc_time(1200, SC_NS));
  });
}

TEST_F(Host, AResetWaitsAndEnablesAgain) {
  Function& f = host().add_function({kConfig, kRegisters, kMsix, kMessages});
  run([&] {
    host().enumerate();
    f.reset();
    EXPECT_EQ(sc_time_stamp(), card->reset_at + sc_time(100, SC_MS));
    f.write32(0, 5);
    EXPECT_EQ(f.read32(0), 5u);
  });
}

}  // namespace
}  // namespace hcasim::bare

int sc_main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
