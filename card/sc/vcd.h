// SPDX-License-Identifier: BSD-3-Clause
// What a trace file (VCD) shows of a card: how busy its engines are, states and counts. Sampled behind each
// turn of a block; the engines' ends of work, which nobody has a turn at, are seen by a process of its own.
#ifndef HCASIM_CARD_SC_VCD_H
#define HCASIM_CARD_SC_VCD_H

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <systemc>

#include "model/time.h"
#include "traces/points.h"

namespace hcasim::sc {

class Vcd : public sc_core::sc_module {
 public:
  explicit Vcd(const sc_core::sc_module_name& name);
  // Names in the file begin with `prefix`.
  void add_to(sc_core::sc_trace_file* file, const std::string& prefix) const;
  // A unit works from `from` to `to`.
  void busy(traces::Unit unit, Time from, Time to);

  // Read by the trace file whenever time goes on.
  struct Values {
    std::uint8_t port_state = 0;  // of vport: 1 down, 2 initialize, 3 armed, 4 active
    bool bus_master = false, dead = false;
    std::uint32_t inbox = 0;     // accesses, resets and carrier changes that wait
    std::uint32_t arriving = 0;  // packets in the port
    std::uint64_t doorbells = 0, wqes = 0, completions = 0, interrupts = 0, tx_packets = 0, rx_packets = 0;
    std::uint64_t dma_read_bytes = 0, dma_write_bytes = 0;
  } values;

 private:
  static constexpr unsigned kUnits = 6;
  struct Span {
    Time from, to;
  };
  struct UnitState {
    bool busy = false;
    std::deque<Span> spans;  // in order of time
  };
  void step();

  std::array<UnitState, kUnits> units_;
  sc_core::sc_event event_;
  Time armed_ = kNever;
};

}  // namespace hcasim::sc
#endif
