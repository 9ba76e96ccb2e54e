// SPDX-License-Identifier: BSD-3-Clause
// The bare driver (driver/bare) on a CPU of a SystemC platform: its register accesses are TLM-2.0
// transactions of one initiator socket, its time is SystemC's, its interrupts are the memory writes that
// MSI-X makes. Before the driver, it does what boot firmware and the operating system do: it places the BARs,
// fills the MSI-X table, and enables the function. The platform has a process for it, the bus, and the
// memory:
//
//   tlm_utils::simple_initiator_socket<Cpu> bus{"bus"};
//   bare::TlmHost host{bus, 64 << 20};          // the constructor: host.add_function({...}), for each
//   void run() {                                // an SC_THREAD
//     host.enumerate();
//     bare::Device device(host.machine().function(0));
//     device.probe();
//     ...
//
// All but interrupt() is for one SC_THREAD, with a stack of 1 MiB (set_stack_size()). Decoupling: with a
// global quantum, accesses carry the thread's local time as their delay, and it synchronizes when the quantum
// is used up; with none, it synchronizes at each access.
#ifndef HCASIM_DRIVER_SC_TLM_HOST_H
#define HCASIM_DRIVER_SC_TLM_HOST_H

#include <tlm_utils/simple_initiator_socket.h>  // before the next, which does not include what it needs
#include <tlm_utils/tlm_quantumkeeper.h>

#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "driver/bare/machine.h"

namespace hcasim::bare {

class TlmHost : private Clock {
 public:
  // Bus addresses of a function.
  struct Place {
    std::uint64_t config;     // its 4 KiB of configuration space
    std::uint64_t registers;  // to be its BAR 0
    std::uint64_t msix;       // to be the BAR that its MSI-X table is in
    std::uint64_t messages;   // that its interrupts are to be written to: 4 bytes, of no other function
  };

  // memory_bytes: of the driver's memory; what the platform's memory has at HostMemory::kBusBase.
  TlmHost(tlm::tlm_initiator_socket<>& bus, std::size_t memory_bytes);
  ~TlmHost();
  TlmHost(const TlmHost&) = delete;
  TlmHost& operator=(const TlmHost&) = delete;

  // Functions are added before the first enumerate().
  Function& add_function(const Place& place);
  Machine& machine() { return machine_; }

  // Makes all functions usable. Throws BareError if there is none at a place, one without MSI-X, or
  // one whose BAR of 32 bits is to be above 4 GiB.
  void enumerate();
  // Raises the interrupt that a write to Place::messages is, and answers it; an address error for others.
  // From any process, such as the b_transport() of the target socket that these writes are routed to.
  void interrupt(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);

  // One access by the CPU. A failed one is reported (/hcasim/host, warning); a failed read brings ones.
  void read(std::uint64_t address, void* bytes, unsigned len);
  void write(std::uint64_t address, const void* bytes, unsigned len);
  // Lets SystemC's time catch up with the thread's.
  void sync() { keeper_.sync(); }

  // How often the driver looks at its queues while no interrupt comes.
  sc_core::sc_time poll{500, sc_core::SC_NS};

 private:
  class Slot;
  bool access(tlm::tlm_command command, std::uint64_t address, void* bytes, unsigned len);
  std::int64_t now() const override;
  void wait(std::int64_t until) override;

  tlm::tlm_initiator_socket<>& bus_;
  Machine machine_;
  std::vector<std::unique_ptr<Slot>> slots_;
  tlm_utils::tlm_quantumkeeper keeper_;
  sc_core::sc_event interrupted_;
};

}  // namespace hcasim::bare
#endif
