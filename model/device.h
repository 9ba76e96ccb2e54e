// SPDX-License-Identifier: BSD-3-Clause
// The top module: an mlx5-class HCA. Its boundary is BAR0 (bar_read(), bar_write(), or the TLM-2.0 target
// socket `bar`) and a HostPort for DMA and MSI-X (TLM-2.0: model/pcie/tlm_host_port.h); everything else is
// inside. This class makes the blocks, connects them, resets them, and decodes BAR0; what they do is theirs,
// and whom each calls stands in its struct Blocks.
#ifndef HCASIM_MODEL_DEVICE_H
#define HCASIM_MODEL_DEVICE_H

#include <tlm_utils/simple_target_socket.h>
#include <cstdint>
#include <systemc>
#include <tlm>

#include "model/cc/congestion.h"
#include "model/cq/cq.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/eth.h"
#include "model/ctx/fetch.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/ctx/qp_states.h"
#include "model/eq/eq.h"
#include "model/eth/rx.h"
#include "model/fault/actor.h"
#include "model/fault/injector.h"
#include "model/firmware_port.h"
#include "model/health.h"
#include "model/pcie/dma.h"
#include "model/pcie/host_port.h"
#include "model/port/port.h"
#include "model/prefetcher.h"
#include "model/profile.h"
#include "model/queue_failures.h"
#include "model/req/requester.h"
#include "model/resp/responder.h"
#include "model/rx/receive_pipeline.h"
#include "model/rx/receiver.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/state/fields.h"
#include "model/steer/flow.h"
#include "model/steer/rdma.h"
#include "model/steer/steer.h"
#include "model/steer/sw_steering.h"
#include "model/tm/tag_unit.h"
#include "model/tpt/fault.h"
#include "model/tpt/memic.h"
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
  Device(const sc_core::sc_module_name& name, const Profile& profile, HostPort& host, traces::Tracer& tracer);

  // The firmware is plugged in after construction, before the first access.
  void attach(FirmwarePort& firmware) { firmware_.attach(firmware); }
  FirmwarePort& firmware() { return firmware_; }

  // The same as bar_read() and bar_write() for a SystemC platform; may be left unbound. Loosely timed; bytes
  // lie in the payload as on the bus.
  tlm_utils::simple_target_socket_optional<Device> bar;

  // BAR0 access, bytes as they lie on the bus; len 1, 2, 4, 8 (writes to UAR pages: up to Uar::kMaxBurst).
  // Out of range or of another length: reads give all ones, writes do nothing; counted.
  void bar_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len);
  void bar_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len);

  // Power-on state of everything in the function; then firmware().function_reset().
  void reset();

  // --- What firmware works on -------------------------------------------------------------------------
  // A QP's attributes and state have been written by firmware: from `old` to qp.state (QpStates::changed()).
  void qp_changed(Qp& qp, QpState old) { qp_states_.changed(qp, old); }
  // Nothing in flight touches memory any more through this mkey / QP / CQ when it returns.
  void quiesce();
  // Async port event to the driver, after firmware changed port state; eqe_subtype: prm::kPortActive ...
  void port_changed(std::uint8_t eqe_subtype);
  void set_atomic_host_endian(bool host) { requester_.set_atomic_host_endian(host); }

  const Profile& profile() const { return profile_; }
  traces::Tracer& tracer() { return tracer_; }
  // What is broken on purpose.
  Injector& injector() { return injector_; }
  Dma& dma() { return dma_; }
  EqUnit& eqs() { return eqs_; }
  CqUnit& cqs() { return cqs_; }
  Tpt& tpt() { return tpt_; }
  Memic& memic() { return memic_; }
  PageFaults& page_faults() { return page_faults_; }
  QpTable& qps() { return qps_; }
  Steering& steering() { return steering_; }
  Port& port() { return port_; }
  EthTable& eth() { return eth_; }
  FlowSteering& flows() { return flows_; }
  SwSteering& sw_steering() { return sw_steering_; }
  EthRx& eth_rx() { return eth_rx_; }
  CongestionControl& cc() { return cc_; }
  Qos& qos() { return qos_; }
  Uar& uar() { return uar_; }
  Scheduler& scheduler() { return scheduler_; }
  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  TagUnit& tags() { return tags_; }
  HostPort& host() { return host_; }
  const ContextCache& qpc_cache() const { return context_gate_.cache(); }
  QCounter& q_counter(std::uint8_t set) { return q_counters_[set]; }
  Health& health() { return health_; }

  std::uint64_t bad_accesses() const { return bad_accesses_; }
  std::uint64_t qp_errors() const { return qp_states_.errors(); }
  // (Prefetcher)
  void prefetch() { prefetcher_.prefetch(); }
  void prefetch_targets() { prefetcher_.prefetch_targets(); }
  bool prefetched() const { return prefetcher_.under_way(); }
  // A broken invariant was met; reset() brings the HCA back.
  bool dead() const { return health_.fatal(); }
  void model_fault(const char* where, const char* what) noexcept { health_.model_fault(where, what); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, health_, dma_, contexts_, tx_, rx_, context_gate_, memic_, eqs_, cqs_, tpt_, qp_states_,
                  page_faults_, q_counters_, steering_, eth_, flows_, sw_steering_, port_, uar_, cc_, qos_,
                  tags_, requester_, responder_, eth_rx_, qps_, scheduler_, injector_, bad_accesses_);
  }

 private:
  void connect();
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void clear();

  // Blocks stand behind those that they are built from. A block that is also called by one which stands
  // before it is known there by reference only, or by connect().
  const Profile profile_;
  HostPort& host_;
  traces::Tracer& tracer_;
  FirmwareSlot firmware_;
  Health health_;
  Injector injector_;
  QpTable qps_;
  Dma dma_;
  ContextFetch contexts_;
  TransmitPipeline tx_;
  ReceivePipeline rx_;
  ContextGate context_gate_;
  Sink sink_;
  Memic memic_;
  EqUnit eqs_;
  CqUnit cqs_;
  Tpt tpt_;
  QpStates qp_states_;
  PageFaults page_faults_;
  QCounters q_counters_;
  Steering steering_;
  EthTable eth_;
  FlowSteering flows_;
  SwSteering sw_steering_;
  Port port_;
  RdmaSteering rdma_;
  Uar uar_;
  CongestionControl cc_;
  Qos qos_;
  TagUnit tags_;
  Requester requester_;
  Responder responder_;
  EthRx eth_rx_;
  Receiver receiver_;
  QueueFailures queue_failures_;
  FaultActor fault_actor_;
  Prefetcher prefetcher_;
  Scheduler scheduler_;
  std::uint64_t bad_accesses_ = 0;
};

}  // namespace hcasim
#endif
