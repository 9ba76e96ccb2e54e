// SPDX-License-Identifier: BSD-3-Clause
// The top module: an mlx5-class HCA. Its boundary is BAR0 (bar_read(), bar_write(), or the TLM-2.0 target
// socket `bar`) and a HostPort for DMA and MSI-X (TLM-2.0: model/pcie/tlm_host_port.h); everything else is
// inside.
#ifndef HCASIM_MODEL_HCA_H
#define HCASIM_MODEL_HCA_H

#include <tlm_utils/simple_target_socket.h>
#include <array>
#include <cstdint>
#include <systemc>
#include <tlm>

#include "model/cc/congestion.h"
#include "model/cq/cq.h"
#include "model/ctx/eth.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/eth/rx.h"
#include "model/fault/injector.h"
#include "model/firmware_port.h"
#include "model/pcie/dma.h"
#include "model/pcie/host_port.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/resp/responder.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/steer/flow.h"
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
constexpr unsigned kUarPageSize = 4096;
constexpr unsigned kFirstUarPage = 3;
static_assert(Memic::kBase == std::uint64_t{Uar::kPages} * kUarPageSize && Memic::kEnd <= kBarSize);

class Hca : public sc_core::sc_module, public FaultSink {
 public:
  Hca(const sc_core::sc_module_name& name, const Profile& profile, HostPort& host, traces::Tracer& tracer);

  // The firmware is plugged in after construction, before the first access.
  void attach(FirmwarePort& firmware) { firmware_ = &firmware; }
  FirmwarePort& firmware() { return *firmware_; }

  // The same as bar_read() and bar_write() for a SystemC platform; may be left unbound. Loosely timed; bytes
  // lie in the payload as on the bus.
  tlm_utils::simple_target_socket_optional<Hca> bar;

  // BAR0 access, bytes as they lie on the bus; len 1, 2, 4, 8 (writes to UAR pages: up to Uar::kMaxBurst).
  // Out of range or of another length: reads give all ones, writes do nothing; counted.
  void bar_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len);
  void bar_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len);

  // Power-on state of everything in the function; then firmware().function_reset().
  void reset();

  // --- What firmware works on -------------------------------------------------------------------------
  // A QP's attributes and state have been written by firmware: from `old` to qp.state. Starts, stops, drains
  // or flushes its engines; to kRst: forgets its run-time state and purges nothing in CQs (the driver does
  // that).
  void qp_changed(Qp& qp, QpState old);
  // The engines move a QP into an error state by themselves: flushes, tells firmware, raises the async event
  // `event_type` (an EQE type; 0 = none).
  void qp_error(Time t, Qp& qp, std::uint8_t event_type);
  // Nothing in flight touches memory any more through this mkey / QP / CQ when it returns.
  void quiesce();
  // A packet of a transport's engine on its way to the port, through the RDMA tables of the transmit side.
  void transmit(Time t, std::uint32_t qpn, PacketRef packet);
  // Async port event to the driver, after firmware changed port state; eqe_subtype: prm::kPortActive ...
  void port_changed(std::uint8_t eqe_subtype);

  // Whether packets of this QP may leave in runs: no other queue, limit or rule has a say in them.
  bool takes_runs(const Qp& qp) const;

  const Profile& profile() const { return profile_; }
  traces::Tracer& tracer() { return tracer_; }
  // What is broken on purpose.
  Injector& injector() { return injector_; }
  // A send doorbell of a QP, while there are faults of QPs.
  void doorbell_struck(Time t, Qp& qp);
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
  ContextCache& qpc_cache() { return qpc_cache_; }
  // When the context of a QP that work at t is for can be used.
  Time context(Time t, std::uint32_t qpn);
  // True: a packet for the QP is set aside until its context is there, and comes to its engine's take() then;
  // `parked` is of those of this engine. Later ones of the queue stay behind, others' go on.
  bool wait_for_context(Time t, const Qp& qp, Parked& parked, const PacketRef& packet);
  // A packet that is whole at `ready` goes through what all units share of the transmit pipeline; returns
  // when it comes out.
  Time tx_slot(Time ready) {
    const Time start = tx_stage_.reserve(ready, profile_.engine.tx_packet),
               end = start + profile_.engine.tx_packet;
    traces::trace_busy(tracer_, traces::Unit::kTransmit, 0, start, end);
    return end;
  }
  // The same of n packets of a queue one behind the other; at: when each is whole, then when it comes out: no
  // sooner than `last`, as the one before them did. Returns when the last one does.
  Time tx_slots(Time last, Time* at, unsigned n) {
    const Time lasts = profile_.engine.tx_packet, pipeline = profile_.engine.tx_pipeline;
    const bool behind = tx_stage_.appends(std::max(last, at[0] + pipeline), lasts);
    for (unsigned i = 0; i < n; ++i) {
      const Time ready = std::max(last, at[i] + pipeline);
      at[i] = last = behind ? tx_stage_.append(ready, lasts) : tx_stage_.reserve(ready, lasts) + lasts;
      traces::trace_busy(tracer_, traces::Unit::kTransmit, 0, last - lasts, last);
    }
    return last;
  }

  // Q counters by counter_set id (query_q_counter_out).
  struct QCounter {
    std::uint64_t rx_write_requests = 0, rx_read_requests = 0, rx_atomic_requests = 0, out_of_buffer = 0,
                  out_of_sequence = 0, duplicate_request = 0, rnr_nak_retry_err = 0, packet_seq_err = 0,
                  implied_nak_seq_err = 0, local_ack_timeout_err = 0, req_remote_access_errors = 0,
                  req_remote_invalid_request = 0, req_cqe_error = 0, resp_cqe_error = 0,
                  req_cqe_flush_error = 0, resp_cqe_flush_error = 0, resp_local_length_error = 0,
                  resp_remote_access_errors = 0, rx_dct_connect = 0;
  };
  QCounter& q_counter(std::uint8_t set) { return q_counters_[set]; }

  std::uint64_t bad_accesses() const { return bad_accesses_; }
  std::uint64_t qp_errors() const { return qp_errors_; }
  // A broken invariant was met (model_fault); reset() brings the HCA back.
  // (model/prefetch.h)
  // Between the two it is taken over, and what a doorbell names is asked for as well.
  void prefetch();
  void prefetch_targets();
  bool prefetched() const { return prefetched_; }
  void prefetch_for(const Qp& qp);
  bool dead() const { return dead_; }
  // What the requester gets back from an atomic of 8 bytes: in its host's order, or big-endian (atomic_caps.
  // atomic_req_8B_endianness_mode).
  void set_atomic_host_endian(bool host) { atomic_host_endian_ = host; }
  bool atomic_host_endian() const { return atomic_host_endian_; }
  void model_fault(const char* where, const char* what) noexcept override;

 private:
  void prefetch_next();
  void receive(Time t, PacketRef& packet);
  bool take_roce(Time t, PacketRef& packet);
  bool takes_run(const Packet& packet);
  bool steer_roce(Time t, PacketRef& packet);
  void deliver(Time t, Qp& qp, PacketRef& packet);
  struct ParkedPacket {
    std::uint32_t qpn;
    std::uint64_t epoch;
    PacketRef packet;
  };
  void unpark(Time due, ParkedPacket& item);
  void write_refused(Time t, WriteOwner owner);
  void signature_error(Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e, bool requester);
  void cq_failed(Time t, std::uint32_t cqn);
  void fault(Time t, const FaultSpec& fault, bool begin);
  void break_qp(Time t, Qp& qp, FaultAction how);
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void clear();

  const Profile profile_;
  HostPort& host_;
  traces::Tracer& tracer_;
  FirmwarePort* firmware_ = nullptr;
  bool dead_ = false;
  bool atomic_host_endian_ = false;
  bool prefetched_ = false;
  Injector injector_;
  QpTable qps_;
  ContextCache qpc_cache_;
  Dma dma_;
  ContextFetch contexts_;
  Occupancy tx_stage_;
  TimedQueue<ParkedPacket> parked_;
  Sink sink_;
  Memic memic_;
  EqUnit eqs_;
  CqUnit cqs_;
  Tpt tpt_;
  PageFaults page_faults_{*this};
  Steering steering_;
  EthTable eth_;
  FlowSteering flows_;
  SwSteering sw_steering_;
  Port port_;
  Uar uar_;
  Requester requester_;
  Responder responder_;
  EthRx eth_rx_;
  TagUnit tags_;
  CongestionControl cc_;
  Qos qos_;
  Scheduler scheduler_;
  std::array<QCounter, 256> q_counters_{};
  std::uint64_t bad_accesses_ = 0, qp_errors_ = 0;
};

}  // namespace hcasim
#endif
