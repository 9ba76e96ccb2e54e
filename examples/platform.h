// SPDX-License-Identifier: BSD-3-Clause
// The platform of both examples: a CPU with the bare driver, a memory behind a bus, two cards back to back.
#ifndef HCASIM_EXAMPLES_PLATFORM_H
#define HCASIM_EXAMPLES_PLATFORM_H

#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "card/sc/hca_module.h"
#include "driver/bare/qp.h"
#include "driver/sc/tlm_host.h"

namespace example {

using namespace sc_core;
using hcasim::sc::HcaModule;
namespace bare = hcasim::bare;
using Address = std::uint64_t;

// Where the two cards' configuration spaces, BARs and interrupts are, and the memory.
constexpr Address kConfig = 0xb0000000, kConfigBytes = 4096, kBars = 0xc0000000, kBarBytes = 64 << 20,
                  kInterrupts = 0xfee00000, kMemory = bare::HostMemory::kBusBase, kMemoryBytes = 64 << 20;

// The pages that the driver allocates; access to others is refused. Its latency is annotated.
struct Memory : sc_module {
  Memory(const sc_module_name& name, bare::HostMemory& pages) : sc_module(name), pages_(pages) {
    socket.register_b_transport(this, &Memory::transport);
  }
  tlm_utils::simple_target_socket<Memory> socket{"socket"};

 private:
  void transport(tlm::tlm_generic_payload& p, sc_time& delay) {
    const bool done = p.is_read() ? pages_.dma_read(p.get_address(), p.get_data_ptr(), p.get_data_length())
                                  : pages_.dma_write(p.get_address(), p.get_data_ptr(), p.get_data_length());
    p.set_response_status(done ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    delay += sc_time(60, SC_NS);
  }
  bare::HostMemory& pages_;
};

// Routes by address. Each transaction takes it for a while, which the initiator waits out.
struct Bus : sc_module {
  explicit Bus(const sc_module_name& name) : sc_module(name) {
    in.register_b_transport(this, &Bus::transport);
  }
  // What is at [base, base + bytes).
  template <class Socket>
  void attach(Address base, Address bytes, Socket& target) {
    out.push_back({base, bytes, std::make_unique<Port>(sc_gen_unique_name("bus_port"))});
    out.back().port->bind(target);
  }
  tlm_utils::multi_passthrough_target_socket<Bus> in{"in"};
  sc_time takes{10, SC_NS};

 protected:
  using Port = tlm_utils::simple_initiator_socket<Bus>;
  Port* route(Address address) const {
    for (const Range& r : out)
      if (address >= r.base && address - r.base < r.bytes) return r.port.get();
    return nullptr;
  }
  void transport(int, tlm::tlm_generic_payload& p, sc_time& delay) {
    wait(takes);
    if (Port* port = route(p.get_address())) return (*port)->b_transport(p, delay);
    p.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  struct Range {
    Address base, bytes;
    std::unique_ptr<Port> port;
  };
  std::vector<Range> out;
};

// Runs a program on the bare driver, whose accesses leave by `bus`.
struct Cpu : sc_module {
  SC_HAS_PROCESS(Cpu);
  explicit Cpu(const sc_module_name& name) : sc_module(name) {
    interrupts.register_b_transport(&host, &bare::TlmHost::interrupt);
    SC_THREAD(run);
    set_stack_size(1 << 20);
  }
  tlm_utils::simple_initiator_socket<Cpu> bus{"bus"};
  tlm_utils::simple_target_socket<bare::TlmHost> interrupts{"interrupts"};
  bare::TlmHost host{bus, kMemoryBytes};
  std::function<void(bare::Machine&)> program;

 private:
  void run() {
    try {
      host.enumerate();
      program(host.machine());
    } catch (const std::exception& e) {
      SC_REPORT_WARNING("/example/cpu", e.what());
    }
    host.sync();
    sc_stop();
  }
};

struct Platform : sc_module {
  Platform(const sc_module_name& name, const std::string& options)
      : sc_module(name), left("left", {options}), right("right", {options}) {
    cpu.bus.bind(bus.in);
    bus.attach(kMemory, kMemoryBytes, memory.socket);
    bus.attach(kInterrupts, 8, cpu.interrupts);
    for (HcaModule* card : {&left, &right}) {
      const Address slot = card == &right, config = kConfig + slot * kConfigBytes,
                    bars = kBars + slot * kBarBytes;
      cpu.host.add_function({config, bars, bars + HcaModule::kRegisterBytes, kInterrupts + slot * 4});
      bus.attach(config, kConfigBytes, card->config);
      bus.attach(bars, kBarBytes, card->bar);
      card->dma.bind(bus.in);
    }
    left.wire_out.bind(right.wire_in);
    right.wire_out.bind(left.wire_in);
  }
  Cpu cpu{"cpu"};
  Bus bus{"bus"};
  Memory memory{"memory", cpu.host.machine().memory()};
  HcaModule left, right;
};

// Brings both cards up, writes a buffer of the one's to one of the other's, and compares: wrong bytes.
inline unsigned rdma_write(bare::Machine& machine, std::int64_t* took = nullptr) {
  constexpr std::uint32_t kBytes = 256 << 10;
  bare::DeviceOptions options;
  options.wait_active = false;  // the cable has carrier when both ends are up
  bare::Device left(machine.function(0), options), right(machine.function(1), options);
  left.probe();
  right.probe();
  machine.run_until([&] { return left.port_state() == 4 && right.port_state() == 4; });

  bare::Buffer from = machine.memory().allocate(kBytes), to = machine.memory().allocate(kBytes);
  for (std::uint32_t i = 0; i < kBytes; ++i) from.data()[i] = static_cast<std::uint8_t>(i * 7 + i / 253);
  bare::Pd left_pd(left), right_pd(right);
  bare::Mr from_mr(left, bare::Mr::of(left_pd, from)), to_mr(right, bare::Mr::of(right_pd, to));
  bare::Cq left_cq(left), right_cq(right);
  bare::Qp left_qp(left, left_pd, left_cq, left_cq), right_qp(right, right_pd, right_cq, right_cq);
  bare::connect_pair(left_qp, right_qp);

  bare::SendWr wr;
  wr.op = bare::WqeOp::kRdmaWriteImm;
  wr.sges = {{from_mr.start(), from_mr.key(), kBytes}};
  wr.raddr = to_mr.start();
  wr.rkey = to_mr.key();
  right_qp.post_recv({});
  const std::int64_t start = machine.now();
  left_qp.post(wr);
  for (const bare::Completion& done : {right_cq.wait_one(), left_cq.wait_one()})
    if (done.error()) throw bare::BareError(done.text());
  const std::int64_t ns = machine.now() - start;
  std::printf("RDMA WRITE of %u bytes: %lld ns\n", kBytes, static_cast<long long>(ns));
  if (took) *took = ns;
  unsigned wrong = 0;
  for (std::uint32_t i = 0; i < kBytes; ++i) wrong += to.data()[i] != from.data()[i];
  return wrong;
}

}  // namespace example
#endif
