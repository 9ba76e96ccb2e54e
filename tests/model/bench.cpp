// SPDX-License-Identifier: BSD-3-Clause
#include "bench.h"

#include "platform.h"

namespace hcasim::test {

namespace {
Profile with_few_tags_and_window() {
  Profile p;
  p.pcie.tags = 2;
  p.engine.batch_window = from_ns(200);
  return p;
}
// A host with an IOMMU, a slot of eight lanes, and a device that asks for 62 M reads a second at most.
Profile with_iommu() {
  Profile p;
  p.pcie.lanes = 8;
  p.pcie.tlp_read = from_ns(16);
  p.memory.iotlb = 64;
  return p;
}
}  // namespace

Bench::Bench()
    : few_tags(with_few_tags_and_window()),
      behind_iommu(with_iommu()),
      dma("dma", profile, host, tracer, faults),
      dma_few_tags("dma_few_tags", few_tags, host, tracer, faults),
      dma_behind_iommu("dma_behind_iommu", behind_iommu, host, tracer, faults),
      eqs(profile, dma, tracer, eq_table, interrupt_pace),
      cqs("cqs", profile, dma, contexts, eqs, tracer, faults, cq_table),
      port("port", profile, tracer, faults, vports),
      queue(
          "queue",
          [this](Time due, int& item) {
            taken.emplace_back(due, item);
            if (on_item) on_item(due, item);
          },
          faults),
      other(
          "other",
          [this](Time due, int& item) {
            taken.emplace_back(due, item);
            if (on_item) on_item(due, item);
          },
          faults),
      lanes("lanes", lanes_config()),
      output(
          "output",
          {[this](Time ready, PacketRef p, std::uint32_t tag) { return cable.go(ready, std::move(p), tag); },
           [this] { return cable.free; }, [this] { return &cable.shares; }},
          faults),
      platform(new Platform("platform", profile, tracer)) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  for (std::size_t i = 0; i < stations.size(); ++i) {
    SwitchStation& at = stations[i];
    Switch::Station station;
    station.cable = from_ns(10);
    station.deliver = [&at](Time t, PacketRef packet) { at.arrived.emplace_back(t, std::move(packet)); };
    station.stop = [](Time) { FAIL() << "lanes stop, and not a port"; };
    station.room = [&at](Time t, unsigned lane, std::uint32_t bytes) {
      at.rooms.push_back({t, lane, bytes});
    };
    station.lane_buffer = 1024;
    station.lanes = [&at]() -> const VirtualLanes* { return &at.shares; };
    lanes.assign(lanes.attach(std::move(station)), static_cast<std::uint16_t>(i + 1));
  }
  dma.on_write_error([this](Time t, WriteOwner owner) { write_errors.emplace_back(t, owner); });
  port.on_receive([this](Time t, PacketRef& packet) { received.emplace_back(t, packet); });
}

std::uint32_t OutputCable::go(Time ready, PacketRef packet, std::uint32_t tag) {
  const std::uint32_t bytes = packet->payload_len;
  const Time start = std::max(ready, free);
  free = start + bytes;
  gone.push_back({ready, start, std::move(packet), tag});
  return bytes;
}

Switch::Config Bench::lanes_config() {
  Switch::Config config;
  config.ethernet = false;
  config.lane_buffer = 1024;
  return config;
}

void Bench::run(Time duration) {
  if (duration) sc_core::sc_start(to_sc(duration), sc_core::SC_RUN_TO_TIME);
  while (sc_core::sc_pending_activity_at_current_time()) sc_core::sc_start(sc_core::SC_ZERO_TIME);
}

void Bench::reset() {
  run_ns(1);  // elaborates, the first time
  dma.reset();
  dma_few_tags.reset();
  cqs.clear();
  cq_table.clear();
  eq_table.clear();
  contexts.clear();
  eqs.clear();
  port.reset();
  vport.reset();
  port.faults() = PortFaults();
  reset_state(lanes);
  stations = {};
  reset_state(output);
  cable = {};
  port.reseed();
  dma.set_enabled(0, true);
  dma_few_tags.set_enabled(0, true);
  host.clear();
  write_errors.clear();
  received.clear();
}

Bench& bench() {
  static auto* made = new Bench;  // lives as long as the SystemC kernel: to the end
  return *made;
}

}  // namespace hcasim::test
