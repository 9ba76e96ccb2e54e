// SPDX-License-Identifier: BSD-3-Clause
// The whole card as one SystemC module: an mlx5-class HCA with its firmware, PCIe configuration space and
// network port. docs/systemc.md explains it; examples/ has two platforms around it.
//
//   bar      target, TLM-2.0 LT: memory accesses that the fabric routes to the function, by bus address.
//            Which BAR one belongs to is decoded here, by what software wrote to the BAR registers. Registers
//            of the HCA are big-endian; the payload has bytes as they lie on the bus. Reads: 1, 2, 4 or
//            8 bytes; writes: up to 256 (write-combined bursts).
//   config   target: configuration space, 1, 2 or 4 bytes, little-endian. Bits [11:0] of the address are the
//            register; those above, which select a function (ECAM), are the fabric's and not looked at.
//   dma      initiator: reads and writes of host memory, and MSI-X, which are memory writes of 4 bytes.
//   reset    optional: on its rising edge the function is as after power-on, and stays so while it is high.
//   wire_in, wire_out   the cable (wire_if.h); with none, the port has a cable to itself.
//
// Time. Writes to `bar` are posted: the call returns at once, and the access happens at sc_time_stamp() +
// delay. A read is not: it waits out the delay that it comes with (in an SC_THREAD; in an SC_METHOD it is
// served at once), then for the writes before it, as PCIe orders them, and adds its latency to the delay.
// Configuration accesses wait out theirs. On `dma` each transaction starts with a delay of zero; the delay
// with which it comes back, and the time that its target spends in wait(), is added to when data of a read
// are there and to when the write behind it is made. DMI is asked for where a target's response offers it,
// and given up when it is invalidated.
//
// Re-entrancy. All blocks of all HCAs get turns one at a time, as they keep references across their DMA.
// While one waits in a target, everything that comes in is only queued: writes, resets, frames, the carrier.
// Reads are served while a turn waits, once the writes before them have been performed; a read that has
// waited for these for 50 ms is served without (as of a target that waits for its own read to return), with a
// warning. A read that comes back to the card from within its own DMA (peer to peer) is served at once.
//
// No exception leaves a process or a transport call. Reports are /hcasim/config, /hcasim/time_resolution and
// /hcasim/kernel (errors of construction: with SystemC's default actions they throw) and /hcasim/device (what
// the card logs).
#ifndef HCASIM_CARD_SC_HCA_MODULE_H
#define HCASIM_CARD_SC_HCA_MODULE_H

#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>

#include "card/sc/wire_if.h"

namespace hcasim::sc {

struct HcaConfig {
  // "key=value,key=value", as of hca_create() and of QEMU's device (hca_option_help() lists them): link=ib,
  // profile=connectx6-hdr200, pcie.read_latency_ns=400, trace=FILE ... Those that name a wire (wire, cable,
  // switch, coupled), card and record are refused: the platform has wires of its own. kernel=native: each
  // block is a SystemC process; it has to be the same for all HCAs.
  std::string options;
  // DMI is used where targets grant it.
  bool dmi = true;
};

class HcaModule : public sc_core::sc_module {
 public:
  explicit HcaModule(const sc_core::sc_module_name& name, const HcaConfig& config = {});
  ~HcaModule() override;

  tlm_utils::simple_target_socket<HcaModule> bar, config;
  tlm::tlm_initiator_socket<> dma;
  sc_core::sc_port<sc_core::sc_signal_in_if<bool>, 1, sc_core::SC_ZERO_OR_MORE_BOUND> reset;
  sc_core::sc_export<WireIf> wire_in;
  sc_core::sc_port<WireIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> wire_out;

  // Bytes of the BARs, in case that the platform gives them their addresses.
  static constexpr std::uint64_t kRegisterBytes = 32u << 20, kMsixBytes = 4096;

  // State, queue depths and how busy the engines are, into a VCD or other trace file; before the simulation
  // starts. With kernel=native also each process's turns and queue.
  void trace(sc_core::sc_trace_file* file) const override;

  // As hca_counter_value(): 0 if there is none of that name. All of them with their names, as JSON.
  std::uint64_t counter(const std::string& name) const;
  std::string statistics() const;

 protected:
  void end_of_elaboration() override;
  void start_of_simulation() override;

 private:
  class Inner;
  void bar_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void config_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned bar_peek(tlm::tlm_generic_payload& payload);
  unsigned config_peek(tlm::tlm_generic_payload& payload);
  void on_reset();

  std::unique_ptr<Inner> inner_;
};

}  // namespace hcasim::sc
#endif
