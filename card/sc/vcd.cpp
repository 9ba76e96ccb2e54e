// SPDX-License-Identifier: BSD-3-Clause
#include "card/sc/vcd.h"

#include <algorithm>

namespace hcasim::sc {

namespace {
constexpr const char* kUnitNames[] = {"turns", "receive", "transmit", "cqe", "eqe", "atomics"};
static_assert(static_cast<unsigned>(traces::Unit::kAtomics) == 5);
constexpr std::size_t kMostSpans = 4096;  // of a unit: later ones are merged into the last
}  // namespace

Vcd::Vcd(const sc_core::sc_module_name& name) : sc_module(name) {
  SC_HAS_PROCESS(Vcd);
  SC_METHOD(step);
  dont_initialize();
  sensitive << event_;
}

void Vcd::add_to(sc_core::sc_trace_file* file, const std::string& prefix) const {
  const auto name = [&](const char* what) { return prefix + "." + what; };
  for (unsigned u = 0; u < kUnits; ++u)
    sc_core::sc_trace(file, units_[u].busy, name("busy_") + kUnitNames[u]);
  sc_core::sc_trace(file, values.port_state, name("port_state"));
  sc_core::sc_trace(file, values.bus_master, name("bus_master"));
  sc_core::sc_trace(file, values.dead, name("dead"));
  sc_core::sc_trace(file, values.inbox, name("depth_inbox"));
  sc_core::sc_trace(file, values.arriving, name("depth_port_rx"));
  const std::pair<const char*, const std::uint64_t*> counts[] = {
      {"doorbells", &values.doorbells},           {"wqes", &values.wqes},
      {"completions", &values.completions},       {"interrupts", &values.interrupts},
      {"tx_packets", &values.tx_packets},         {"rx_packets", &values.rx_packets},
      {"dma_read_bytes", &values.dma_read_bytes}, {"dma_write_bytes", &values.dma_write_bytes}};
  for (const auto& [what, value] : counts)
    sc_core::sc_trace(file, *reinterpret_cast<const sc_dt::uint64*>(value), name(what));
}

void Vcd::busy(traces::Unit unit, Time from, Time to) {
  auto& spans = units_[static_cast<unsigned>(unit)].spans;
  if (!spans.empty() && (spans.back().to >= from || spans.size() == kMostSpans)) {
    spans.back().to = std::max(spans.back().to, to);
    spans.back().from = std::min(spans.back().from, from);
  } else {
    spans.push_back({from, to});
  }
  step();
}

void Vcd::step() {
  const Time now = sim_now();
  Time next = kNever;
  for (UnitState& unit : units_) {
    while (!unit.spans.empty() && unit.spans.front().to <= now) unit.spans.pop_front();
    unit.busy = !unit.spans.empty() && unit.spans.front().from <= now;
    if (!unit.spans.empty())
      next = std::min(next, unit.busy ? unit.spans.front().to : unit.spans.front().from);
  }
  if (next == kNever || (next >= armed_ && armed_ > now)) return;
  armed_ = next;
  event_.cancel();
  event_.notify(to_sc(next - now));
}

}  // namespace hcasim::sc
