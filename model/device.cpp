// SPDX-License-Identifier: BSD-3-Clause
#include "model/device.h"

#include <algorithm>
#include <cstring>

#include "model/rules.h"
#include "prm/field.h"

namespace hcasim {

Device::Device(const sc_core::sc_module_name& name, const Profile& profile, HostPort& host,
               traces::Tracer& tracer)
    : sc_module(name),
      bar("bar"),
      profile_(profile),
      host_(host),
      tracer_(tracer),
      health_(host, tracer, firmware_),
      injector_("injector", tracer, health_),
      dma_("dma", profile_, host, tracer, health_),
      contexts_(profile_,
                [this](Time t, unsigned bytes) {
                  // What waits long for its turn takes its part of the link from those of today: far ahead
                  // nobody else has asked for the link yet.
                  const Time at = std::min(t, sim_now() + profile_.pcie.read_latency);
                  return std::max(t + profile_.pcie.read_latency, dma_.context_read(at, bytes));
                }),
      tx_(profile_, tracer),
      rx_({profile_, tracer, dma_}),
      context_gate_({profile_, tracer, contexts_, qps_, health_}),
      eqs_(profile_, dma_, tracer),
      cqs_("cqs", profile_, dma_, contexts_, eqs_, tracer, health_),
      tpt_(profile_, contexts_),
      qp_states_({tracer, eqs_, context_gate_, firmware_}),
      page_faults_({tracer, qps_, eqs_}),
      steering_(qps_),
      sw_steering_(flows_),
      vports_(vport_),
      port_("port", profile_, tracer, health_, vports_),
      rdma_({port_, flows_}),
      uar_({profile_, tracer, scheduler_, dma_, qps_, cqs_, eqs_}),
      cc_({profile_, tracer, port_, rdma_, vport_, qps_}),
      qos_(profile_.port.rate_gbps * 1000),
      tags_({tracer, scheduler_, qps_, cqs_}),
      requester_("requester",
                 {profile_, tracer, health_, scheduler_,   tx_,         rx_,        context_gate_, cc_,
                  qos_,     dma_,   port_,   rdma_,        flows_,      tpt_,       tags_,         vport_,
                  qps_,     cqs_,   eqs_,    page_faults_, q_counters_, qp_states_, firmware_}),
      responder_("responder",
                 {profile_, tracer, health_, scheduler_, tx_,          rx_,         context_gate_,
                  cc_,      qos_,   dma_,    port_,      rdma_,        tpt_,        tags_,
                  vport_,   qps_,   cqs_,    eqs_,       page_faults_, q_counters_, qp_states_}),
      eth_rx_("eth_rx", {profile_, tracer, dma_, port_, flows_, tpt_, eth_, qps_, cqs_, eqs_, q_counters_}),
      receiver_({health_, port_, vports_, qps_, steering_, flows_, rdma_, cc_, tags_, requester_, responder_,
                 eth_rx_, firmware_}),
      queue_failures_({tracer, qps_, eth_, cqs_, eqs_, qp_states_, requester_, eth_rx_}),
      fault_actor_({injector_, health_, host, qps_, qp_states_, cqs_, eqs_, port_, firmware_}),
      prefetcher_(
          {scheduler_, dma_, context_gate_, tx_, requester_, tpt_, port_, rx_, cqs_, qps_, q_counters_}),
      scheduler_("scheduler", {profile_, tracer, health_, port_, qos_, injector_, requester_, responder_,
                               prefetcher_, fault_actor_, qps_}) {
  bar.register_b_transport(this, &Device::transport);
  connect();
}

// Who calls whom against the order of construction.
void Device::connect() {
  context_gate_.connect(responder_, requester_);
  qp_states_.connect(requester_, responder_);
  page_faults_.connect(requester_, responder_);
  port_.on_resume([this](Time t) { scheduler_.resume(t); });
  port_.watch_backlog([this] { return std::max({dma_.up_free(), rx_.free_at(), eth_rx_.rx_free()}); });
  port_.on_receive([this](Time t, PacketRef& packet) { receiver_.receive(t, packet); });
  port_.on_transmit([this](Time t, const Packet& p) { eth_rx_.sniff(t, FlowTableType::kSnifferTx, p); });
  dma_.attach(Space::kSink, sink_);
  dma_.attach(Space::kMemic, memic_);
  dma_.attach(Space::kSwIcm, sw_steering_.icm());
  dma_.on_write_error([this](Time t, WriteOwner owner) { queue_failures_.write_refused(t, owner); });
  tpt_.on_invalidate([this] { dma_.loans().settle_all(); });
  tpt_.on_signature_error(
      [this](Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e, bool requester) {
        queue_failures_.signature_error(t, qpn, mkey, e, requester);
      });
  cqs_.on_failed([this](Time t, std::uint32_t cqn) { queue_failures_.cq_failed(t, cqn); });
  injector_.on_act([this](Time t, const FaultSpec& f, bool begin) { fault_actor_.act(t, f, begin); });
  dma_.take_faults_from(injector_);
  eqs_.take_faults_from(injector_);
  cqs_.take_faults_from(injector_);
  port_.take_faults_from(injector_);
}

// ---- BAR0 ----

namespace {
std::uint32_t uar_page(std::uint64_t offset) { return static_cast<std::uint32_t>(offset / kUarPageSize); }
}  // namespace

void Device::bar_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len) {
  if (len == 0 || len > 8 || offset >= kBarSize || len > kBarSize - offset) {
    ++bad_accesses_;
    tracer_.broke_value(Rule::kBarRange, sim_now(), RuleObject::kNone, 0, offset);
    std::memset(bytes, 0xff, len);
    return;
  }
  if (offset >= kInitSegSize) {
    std::memset(bytes, 0, len);  // UAR pages are write-only
    if (offset < Memic::kBase) {
      tracer_.broke_value(Rule::kUarRead, sim_now(), RuleObject::kUar, uar_page(offset), offset);
    } else if (!Memic::covers(offset) || !memic_.load(offset, bytes, len)) {
      ++bad_accesses_;
      tracer_.broke_value(Rule::kMemicAccess, sim_now(), RuleObject::kNone, 0, offset);
    }
    return;
  }
  for (unsigned done = 0; done < len;) {
    const std::uint32_t at = static_cast<std::uint32_t>(offset) + done;
    std::uint8_t word[4];
    prm::store32(word, at < kInitSegSize ? firmware_.init_seg_read(at & ~3u) : 0xffffffff);
    const unsigned piece = std::min(len - done, 4 - at % 4);
    std::memcpy(bytes + done, word + at % 4, piece);
    done += piece;
  }
}

void Device::bar_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  if (len == 0 || offset >= kBarSize || len > kBarSize - offset) {
    ++bad_accesses_;
    tracer_.broke(Rule::kBarRange, sim_now(), RuleObject::kNone, 0, bytes, len);
    return;
  }
  if (offset >= Memic::kBase) {
    if (!Memic::covers(offset) || !memic_.store(offset, bytes, len)) {
      ++bad_accesses_;
      tracer_.broke(Rule::kMemicAccess, sim_now(), RuleObject::kNone, 0, bytes, len);
    }
    return;
  }
  if (offset >= kInitSegSize) {
    if (!health_.fatal())
      uar_.write(dma_.store(sim_now() + profile_.pcie.mmio_latency, len), offset, bytes, len);
    return;
  }
  if (offset % 4 || len % 4 || len > 8 || firmware_.empty()) {
    ++bad_accesses_;
    tracer_.broke(Rule::kBarSize, sim_now(), RuleObject::kNone, 0, bytes, len);
    return;
  }
  for (unsigned done = 0; done < len; done += 4) {
    firmware_.init_seg_write(static_cast<std::uint32_t>(offset) + done, prm::load32(bytes + done));
  }
}

void Device::transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (payload.get_byte_enable_ptr()) {
    payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return;
  }
  const std::uint64_t offset = payload.get_address();
  const unsigned len = payload.get_data_length();
  const unsigned most = payload.is_write() ? Uar::kMaxBurst : 8;
  if (len == 0 || len > most || payload.get_streaming_width() < len) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  if (offset >= kBarSize || len > kBarSize - offset) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  if (payload.is_read()) {
    bar_read(offset, payload.get_data_ptr(), len);
    delay += to_sc(profile_.pcie.mmio_latency);
  } else if (payload.is_write()) {
    bar_write(offset, payload.get_data_ptr(), len);
  }
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

// ---- Power-on ----

void Device::clear() {
  dma_.reset();
  scheduler_.clear();
  requester_.clear();
  responder_.clear();
  rx_.clear();
  tags_.clear();
  port_.reset();
  vport_.reset();
  steering_.clear();
  eth_rx_.clear();
  cc_.reset();
  eth_.clear();
  flows_.clear();
  sw_steering_.clear();
  uar_.clear();
  cqs_.clear();
  eqs_.clear();
  tpt_.clear();
  memic_.clear();
  page_faults_.clear();
  qps_.clear();
  context_gate_.clear();
  contexts_.clear();
  tx_.clear();
  q_counters_.clear();
  qp_states_.clear();
  bad_accesses_ = 0;
}

void Device::reset() {
  health_.reset();
  clear();
  firmware_.function_reset();
}

void Device::quiesce() {
  dma_.flush();
  dma_.loans().settle_all();
}

void Device::port_changed(std::uint8_t eqe_subtype) {
  traces::trace(tracer_, traces::Point::kPortState, sim_now(), 1u, 0u, port_.state());
  eqs_.port_event(sim_now(), eqe_subtype, 1);
}

}  // namespace hcasim
