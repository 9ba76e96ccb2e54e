// SPDX-License-Identifier: BSD-3-Clause
// What the examples have around their HCAs: a memory, a bus, and a CPU that runs the bare driver.
#ifndef HCASIM_EXAMPLES_PLATFORM_H
#define HCASIM_EXAMPLES_PLATFORM_H

#define SC_INCLUDE_DYNAMIC_PROCESSES
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>
#include <tlm_utils/tlm_quantumkeeper.h>

#include <array>
#include <cstring>
#include <functional>
#include <systemc>
#include <tlm>

#include "card/sc/hca_module.h"
#include "driver/bare/machine.h"

namespace example {

using namespace sc_core;
namespace bare = hcasim::bare;

constexpr unsigned kCards = 2;
// The address map: registers and MSI-X tables of the cards, interrupts; memory is above 4 GiB.
constexpr std::uint64_t kRegisters = 0xc0000000, kTables = 0xd0000000, kInterrupts = 0xfee00000;
constexpr std::uint64_t kRegisterStep = hcasim::sc::HcaModule::kRegisterBytes,
                        kTableStep = hcasim::sc::HcaModule::kMsixBytes, kInterruptStep = 0x1000;

// The pages that the driver allocates; what nobody owns refuses access. Its latency is annotated.
class Memory : public sc_module {
 public:
  Memory(const sc_module_name& name, bare::HostMemory& pages, const sc_time& latency)
      : sc_module(name), socket("socket"), pages_(pages), latency_(latency) {
    socket.register_b_transport(this, &Memory::transport);
    socket.register_transport_dbg(this, &Memory::peek);
  }
  tlm_utils::simple_target_socket<Memory> socket;

 private:
  bool access(tlm::tlm_generic_payload& p) {
    return p.is_read() ? pages_.dma_read(p.get_address(), p.get_data_ptr(), p.get_data_length())
                       : pages_.dma_write(p.get_address(), p.get_data_ptr(), p.get_data_length());
  }
  void transport(tlm::tlm_generic_payload& p, sc_time& delay) {
    p.set_response_status(access(p) ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    delay += latency_;
  }
  unsigned peek(tlm::tlm_generic_payload& p) { return access(p) ? p.get_data_length() : 0; }

  bare::HostMemory& pages_;
  const sc_time latency_;
};

// Routes by address; each transaction takes the bus for a while, which its initiator waits out.
class Bus : public sc_module {
 public:
  Bus(const sc_module_name& name, const sc_time& takes)
      : sc_module(name),
        in("in"),
        memory("memory"),
        interrupts("interrupts"),
        cards("cards", kCards),
        takes_(takes) {
    in.register_b_transport(this, &Bus::transport);
    in.register_transport_dbg(this, &Bus::peek);
    in.register_get_direct_mem_ptr(this, &Bus::map);
    memory.register_invalidate_direct_mem_ptr(this, &Bus::unmap);
  }
  tlm_utils::multi_passthrough_target_socket<Bus> in;
  tlm_utils::simple_initiator_socket<Bus> memory, interrupts;
  sc_vector<tlm_utils::simple_initiator_socket<Bus>> cards;

 private:
  tlm_utils::simple_initiator_socket<Bus>& route(std::uint64_t address) {
    if (address >= bare::HostMemory::kBusBase) return memory;
    if (address >= kInterrupts) return interrupts;
    return cards[address >= kTables ? (address - kTables) / kTableStep % kCards
                                    : (address - kRegisters) / kRegisterStep % kCards];
  }
  void transport(int, tlm::tlm_generic_payload& p, sc_time& delay) {
    wait(takes_);
    route(p.get_address())->b_transport(p, delay);
  }
  unsigned peek(int, tlm::tlm_generic_payload& p) { return route(p.get_address())->transport_dbg(p); }
  bool map(int, tlm::tlm_generic_payload& p, tlm::tlm_dmi& dmi) {
    return route(p.get_address())->get_direct_mem_ptr(p, dmi);
  }
  void unmap(sc_dt::uint64 first, sc_dt::uint64 last) {
    for (unsigned i = 0; i < in.size(); ++i) in[static_cast<int>(i)]->invalidate_direct_mem_ptr(first, last);
  }

  const sc_time takes_;
};

// Runs a program on the bare driver. With a global quantum it is decoupled: its time runs ahead by that much.
class Cpu : public sc_module, private bare::Clock {
 public:
  explicit Cpu(const sc_module_name& name)
      : sc_module(name),
        bus("bus"),
        config("config", kCards),
        interrupts("interrupts"),
        machine(64u << 20, *this) {
    SC_HAS_PROCESS(Cpu);
    SC_THREAD(run);
    set_stack_size(1 << 20);
    interrupts.register_b_transport(this, &Cpu::interrupt);
    for (unsigned i = 0; i < kCards; ++i) {
      slots_[i].cpu = this;
      slots_[i].number = i;
      machine.add_function(slots_[i]);
    }
  }
  tlm_utils::simple_initiator_socket<Cpu> bus;
  sc_vector<tlm_utils::simple_initiator_socket<Cpu>> config;
  tlm_utils::simple_target_socket<Cpu> interrupts;

  bare::Machine machine;
  std::function<void(Cpu&)> program;
  // In between interrupts the driver looks at its queues so often.
  sc_time poll = sc_time(500, SC_NS);

 private:
  struct Slot : bare::Pcie {
    void read(std::uint64_t offset, void* bytes, unsigned len) override {
      cpu->access(cpu->bus, tlm::TLM_READ_COMMAND, kRegisters + number * kRegisterStep + offset, bytes, len);
    }
    void write(std::uint64_t offset, const void* bytes, unsigned len) override {
      cpu->access(cpu->bus, tlm::TLM_WRITE_COMMAND, kRegisters + number * kRegisterStep + offset,
                  const_cast<void*>(bytes), len);
    }
    void reset() override {
      cpu->configure(number, 0x68, 0x8000, 2);  // PCI Express device control: initiate function level reset
      cpu->enable(number);
    }
    Cpu* cpu = nullptr;
    unsigned number = 0;
  };

  void run() {
    keeper_.reset();
    try {
      for (unsigned i = 0; i < kCards; ++i) enable(i);
      program(*this);
    } catch (const std::exception& e) {
      SC_REPORT_WARNING("/example/cpu", e.what());
    }
    keeper_.sync();
    sc_stop();
  }
  template <class Socket>
  void access(Socket& socket, tlm::tlm_command command, std::uint64_t address, void* bytes, unsigned len) {
    tlm::tlm_generic_payload p;
    p.set_command(command);
    p.set_address(address);
    p.set_data_ptr(static_cast<unsigned char*>(bytes));
    p.set_data_length(len);
    p.set_streaming_width(len);
    sc_time delay = keeper_.get_local_time();
    socket->b_transport(p, delay);
    if (!p.is_response_ok()) SC_REPORT_ERROR("/example/cpu", p.get_response_string().c_str());
    keeper_.set(delay);
    if (keeper_.need_sync()) keeper_.sync();
  }
  void configure(unsigned card, std::uint64_t reg, std::uint32_t value, unsigned len) {
    access(config[card], tlm::TLM_WRITE_COMMAND, reg, &value, len);
  }
  // What enumeration does: BARs, memory space and bus master, an address for each interrupt.
  void enable(unsigned card) {
    configure(card, 0x10, static_cast<std::uint32_t>(kRegisters + card * kRegisterStep), 4);
    configure(card, 0x18, static_cast<std::uint32_t>(kTables + card * kTableStep), 4);
    configure(card, 0x04, 0x0006, 2);
    for (std::uint32_t vector = 0; vector < HCA_MSIX_VECTORS; ++vector) {
      std::uint32_t entry[4] = {static_cast<std::uint32_t>(kInterrupts + card * kInterruptStep), 0, vector,
                                0};
      for (unsigned word = 0; word < 4; ++word)
        access(bus, tlm::TLM_WRITE_COMMAND, kTables + card * kTableStep + vector * 16 + word * 4,
               &entry[word], 4);
    }
    configure(card, 0x52, 0x8000, 2);  // MSI-X on
  }
  void interrupt(tlm::tlm_generic_payload& p, sc_time&) {
    std::uint32_t vector = 0;
    std::memcpy(&vector, p.get_data_ptr(), sizeof vector);
    machine.function((p.get_address() - kInterrupts) / kInterruptStep % kCards).raise(vector);
    interrupted_.notify();
    p.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  // bare::Clock
  std::int64_t now() const override {
    return static_cast<std::int64_t>(keeper_.get_current_time() / sc_time(1, SC_NS));
  }
  void wait(std::int64_t until) override {
    const sc_time pause = std::min(poll, sc_time(static_cast<double>(until - now()) + 1, SC_NS));
    if (tlm::tlm_global_quantum::instance().get() == SC_ZERO_TIME) return sc_core::wait(pause, interrupted_);
    keeper_.inc(pause);
    if (keeper_.need_sync()) keeper_.sync();
  }

  std::array<Slot, kCards> slots_;
  tlm_utils::tlm_quantumkeeper keeper_;
  sc_event interrupted_;
};

}  // namespace example
#endif
