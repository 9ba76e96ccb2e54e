// SPDX-License-Identifier: BSD-3-Clause
// The top module: an mlx5-class HCA. Its boundary is, for each PCIe function, BAR0 (bar_read(), bar_write(),
// or a TLM-2.0 target socket of `bars`) and a HostPort for DMA and MSI-X (TLM-2.0:
// model/pcie/tlm_host_port.h); everything else is inside. This class holds what the chip has once, and its
// functions; it makes the blocks, connects them, resets them, and decodes BAR0; what they do is theirs, and
// the blocks that each calls are in its struct Blocks.
#ifndef HCASIM_MODEL_DEVICE_H
#define HCASIM_MODEL_DEVICE_H

#include <tlm_utils/simple_target_socket.h>
#include <cstdint>
#include <systemc>
#include <tlm>
#include <vector>

#include "model/cc/congestion.h"
#include "model/cq/cq.h"
#include "model/crypto/engine.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/fetch.h"
#include "model/ctx/qp_states.h"
#include "model/eq/eq.h"
#include "model/eswitch/eswitch.h"
#include "model/eth/rx.h"
#include "model/eth/vxlan_ports.h"
#include "model/fault/actor.h"
#include "model/fault/injector.h"
#include "model/firmware_port.h"
#include "model/function/function.h"
#include "model/function/vports.h"
#include "model/lag/lag.h"
#include "model/migration.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/prefetcher.h"
#include "model/profile.h"
#include "model/queue_failures.h"
#include "model/req/requester.h"
#include "model/resp/responder.h"
#include "model/rx/receive_pipeline.h"
#include "model/rx/receiver.h"
#include "model/sched/scheduler.h"
#include "model/sched/traffic_classes.h"
#include "model/sched/transmit_pipeline.h"
#include "model/state/fields.h"
#include "model/steer/lookup_time.h"
#include "model/steer/rdma.h"
#include "model/tm/tag_unit.h"
#include "model/tpt/fault.h"
#include "model/tpt/tpt.h"
#include "model/uar/uar.h"
#include "traces/tracer.h"

namespace hcasim {

constexpr std::uint64_t kBarSize = 32u << 20;
constexpr std::uint64_t kInitSegSize = 0x3000;  // pages 0-2 of BAR0
constexpr unsigned kFirstUarPage = 3;
static_assert(Memic::kBase == std::uint64_t{Uar::kPages} * kUarPageSize && Memic::kEnd <= kBarSize);

class Device : public sc_core::sc_module {
 public:
  // One function for each host; the last `sfs` are sub-functions, which have the hosts of others.
  Device(const sc_core::sc_module_name& name, const Profile& profile, const std::vector<HostPort*>& hosts,
         traces::Tracer& tracer, std::size_t sfs = 0);
  ~Device() override;

  FunctionId functions() const { return static_cast<FunctionId>(functions_.size()); }
  Function& function(FunctionId f) { return functions_[f]; }
  PerFunction<Vport> vports() { return functions_.of(&Function::vport); }
  const VportNumbers& vport_numbers() const { return functions_.numbers(); }
  // A function's firmware is plugged in after construction, before the first access.
  void attach(FunctionId f, FirmwarePort& firmware) { functions_[f].firmware().attach(firmware); }

  // The same as bar_read() and bar_write() for a SystemC platform, a socket a function; may be left unbound.
  // Loosely timed; bytes lie in the payload as on the bus. There are none if the simulation runs already:
  // sockets are bound during elaboration.
  using BarSocket = tlm_utils::simple_target_socket_tagged_optional<Device>;
  sc_core::sc_vector<BarSocket> bars;

  // BAR0 access of a function, bytes as they lie on the bus; len 1, 2, 4, 8 (writes to UAR pages: up to
  // Uar::kMaxBurst). Out of range or of another length: reads give all ones, writes do nothing; counted.
  void bar_read(FunctionId f, std::uint64_t offset, std::uint8_t* bytes, unsigned len);
  void bar_write(FunctionId f, std::uint64_t offset, const std::uint8_t* bytes, unsigned len);

  // Power-on state of everything (a conventional reset, or FLR of the physical function); then each
  // firmware's function_reset().
  void reset();
  // Power-on state of one function (FLR), then its firmware's function_reset(). The others do not notice,
  // unless none of them is in use: then the engines are as after power-on, too.
  void reset(FunctionId f);
  // The same on the firmware's side alone: its gateway on the PCIe side stays as it is. A driver that has the
  // function start anew holds one of its semaphores meanwhile (mlx5 health.c).
  void restart(FunctionId f);

  // --- What firmware works on -------------------------------------------------------------------------
  // A QP's attributes and state have been written by firmware: from `old` to qp.state (QpStates::changed()).
  void qp_changed(Qp& qp, QpState old) { qp_states_.changed(qp, old); }
  // Nothing in flight touches memory any more through this mkey / QP / CQ when it returns.
  void quiesce(FunctionId f);
  // Everything the function's driver has made is gone, and nothing is written for it any more.
  void drop_objects(FunctionId f);
  // Async port event to all drivers: of what is the port's, not of their own ports' state; eqe_subtype:
  // prm::kPortLid ...
  void port_changed(std::uint8_t eqe_subtype);
  // What the link has come to, Gb/s.
  void set_link_rate(double gbps);
  void port_changed(FunctionId f, std::uint8_t eqe_subtype) {
    if (migration_.misses_port_event(f, eqe_subtype)) return;
    eqs_.port_event(sim_now(), f, eqe_subtype, 1);
  }

  const Profile& profile() const { return profile_; }
  traces::Tracer& tracer() { return tracer_; }
  // What is broken on purpose.
  Injector& injector() { return injector_; }
  Dma& dma() { return dma_; }
  EqUnit& eqs() { return eqs_; }
  CqUnit& cqs() { return cqs_; }
  Tpt& tpt() { return tpt_; }
  PageFaults& page_faults() { return page_faults_; }
  Port& port() { return port_; }
  TrafficClasses& traffic_classes() { return classes_; }
  ESwitch& eswitch() { return eswitch_; }
  VxlanPorts& vxlan_ports() { return vxlan_ports_; }
  // With the card's other port.
  Lag& lag() { return lag_; }
  EthRx& eth_rx() { return eth_rx_; }
  CongestionControl& cc() { return cc_; }
  Uar& uar() { return uar_; }
  Scheduler& scheduler() { return scheduler_; }
  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  TagUnit& tags() { return tags_; }
  // Holds functions, and lets them go on.
  Migration& migration() { return migration_; }
  const CryptoEngine& crypto() const { return crypto_; }
  const LookupTime& lookups() const { return lookups_; }
  const HostMemory& host_memory() const { return dma_.host_memory(); }
  const ContextCache& qpc_cache() const { return context_gate_.cache(); }
  // Where broken invariants of the engines are reported.
  FaultSink& faults() { return functions_; }

  std::uint64_t bad_accesses() const {
    return functions_.sum([](Function& f) { return f.bad_accesses(); });
  }
  std::uint64_t bad_doorbells() const {
    return functions_.sum([](Function& f) { return f.uars().bad; });
  }
  std::uint64_t blueflames() const {
    return functions_.sum([](Function& f) { return f.uars().blueflames; });
  }
  std::uint64_t qp_errors() const { return qp_states_.errors(); }
  // (Prefetcher)
  void prefetch() { prefetcher_.prefetch(); }
  void prefetch_targets() { prefetcher_.prefetch_targets(); }
  bool prefetched() const { return prefetcher_.under_way(); }
  // A broken invariant was met: a function is out of service until its reset().
  bool dead();
  void model_fault(const char* where, const char* what) noexcept { functions_.model_fault(where, what); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, functions_, dma_, contexts_, lookups_, tx_, rx_, context_gate_, eqs_, cqs_, tpt_,
                  qp_states_, page_faults_, vxlan_ports_, eswitch_, port_, classes_, lag_, uar_, cc_, tags_,
                  crypto_, requester_, responder_, eth_rx_, scheduler_, injector_);
    if constexpr (Archive::kLoads) {
      a.check(port_.rate_gbps() > 0 && port_.rate_gbps() < 1e6, "a link has no such rate");
      set_link_rate(port_.rate_gbps());
    }
  }

 private:
  PerFunction<QpTable> qps() { return functions_.of(&Function::qps); }
  PerFunction<EthTable> eth() { return functions_.of(&Function::eth); }
  PerFunction<FlowSteering> flows() { return functions_.of(&Function::flows); }
  PerFunction<QCounters> q_counters() { return functions_.of(&Function::q_counters); }
  PerFunction<Qos> qos() { return functions_.of(&Function::qos); }
  PerFunction<FirmwarePort> firmware() { return functions_.of<FirmwarePort>(&Function::firmware); }
  void connect();
  void transport(int f, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  // No other function is in use.
  bool alone(FunctionId f) const;
  void clear_engines();
  void report_departure(Time t, const Packet& packet);

  // Blocks stand behind those that they are built from. A block that is also called by one which stands
  // before it is known there by reference only, or by connect().
  const Profile profile_;
  traces::Tracer& tracer_;
  Functions functions_;
  Injector injector_;
  Dma dma_;
  ContextFetch contexts_;
  LookupTime lookups_;
  TransmitPipeline tx_;
  ReceivePipeline rx_;
  ContextGate context_gate_;
  Sink sink_;
  EqUnit eqs_;
  CqUnit cqs_;
  Tpt tpt_;
  QpStates qp_states_;
  PageFaults page_faults_;
  Vports vports_;
  VxlanPorts vxlan_ports_;
  ESwitch eswitch_;
  Port port_;
  TrafficClasses classes_;
  Lag lag_;
  RdmaSteering rdma_;
  Uar uar_;
  CongestionControl cc_;
  TagUnit tags_;
  CryptoEngine crypto_;
  Requester requester_;
  Responder responder_;
  EthRx eth_rx_;
  Receiver receiver_;
  QueueFailures queue_failures_;
  FaultActor fault_actor_;
  Prefetcher prefetcher_;
  Scheduler scheduler_;
  Migration migration_;
};

}  // namespace hcasim
#endif
