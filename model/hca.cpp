// SPDX-License-Identifier: BSD-3-Clause
#include "model/hca.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "model/rules.h"
#include "prm/eqe.h"
#include "prm/field.h"

namespace hcasim {

using traces::Point;

Hca::Hca(const sc_core::sc_module_name& name, const Profile& profile, HostPort& host, traces::Tracer& tracer)
    : sc_module(name),
      bar("bar"),
      profile_(profile),
      host_(host),
      tracer_(tracer),
      injector_("injector", tracer, *this),
      qpc_cache_(profile_.cache.qpc, profile_.cache.ways),
      dma_("dma", profile_, host, tracer, *this),
      contexts_(profile_,
                [this](Time t, unsigned bytes) {
                  // What waits long for its turn takes its part of the link from those of today: far ahead
                  // nobody else has asked for the link yet.
                  const Time at = std::min(t, sim_now() + profile_.pcie.read_latency);
                  return std::max(t + profile_.pcie.read_latency, dma_.context_read(at, bytes));
                }),
      parked_(
          "parked", [this](Time due, ParkedPacket& item) { unpark(due, item); }, *this,
          profile_.engine.batch_window),
      eqs_(profile_, dma_, tracer),
      cqs_("cqs", profile_, dma_, contexts_, eqs_, tracer, *this),
      tpt_(profile_, contexts_),
      steering_(qps_),
      sw_steering_(flows_),
      port_("port", profile_, tracer, *this),
      uar_(*this),
      requester_("requester", *this),
      responder_("responder", *this),
      eth_rx_("eth_rx", *this),
      tags_(*this),
      cc_(*this, port_),
      qos_(profile_.port.rate_gbps * 1000),
      scheduler_("scheduler", *this) {
  bar.register_b_transport(this, &Hca::transport);
  port_.on_resume([this](Time t) { scheduler_.resume(t); });
  port_.watch_backlog([this] { return std::max({dma_.up_free(), responder_.rx_free(), eth_rx_.rx_free()}); });
  port_.on_receive([this](Time t, PacketRef& packet) { receive(t, packet); });
  port_.on_transmit([this](Time t, const Packet& p) { eth_rx_.sniff(t, FlowTableType::kSnifferTx, p); });
  dma_.attach(Space::kSink, sink_);
  dma_.attach(Space::kMemic, memic_);
  tpt_.on_invalidate([this] { dma_.loans().settle_all(); });
  tpt_.on_signature_error([this](Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e,
                                 bool requester) { signature_error(t, qpn, mkey, e, requester); });
  cqs_.on_failed([this](Time t, std::uint32_t cqn) { cq_failed(t, cqn); });
  dma_.attach(Space::kSwIcm, sw_steering_.icm());
  dma_.on_write_error([this](Time t, WriteOwner owner) { write_refused(t, owner); });
  injector_.on_act([this](Time t, const FaultSpec& f, bool begin) { fault(t, f, begin); });
  dma_.take_faults_from(injector_);
  eqs_.take_faults_from(injector_);
  cqs_.take_faults_from(injector_);
  port_.take_faults_from(injector_);
}

// ---- BAR0 ----

namespace {
std::uint32_t uar_page(std::uint64_t offset) { return static_cast<std::uint32_t>(offset / kUarPageSize); }
}  // namespace

void Hca::bar_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len) {
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
    prm::store32(word, at < kInitSegSize && firmware_ ? firmware_->init_seg_read(at & ~3u) : 0xffffffff);
    const unsigned piece = std::min(len - done, 4 - at % 4);
    std::memcpy(bytes + done, word + at % 4, piece);
    done += piece;
  }
}

void Hca::prefetch() {
  prefetched_ = true;
  Agenda::instance().prefetch();
  PacketPool::prefetch();
  scheduler_.prefetch();
  dma_.prefetch();
  qpc_cache_.prefetch();
  tx_stage_.prefetch();
  requester_.prefetch();
  tpt_.prefetch();
  port_.prefetch();
  responder_.prefetch();
  cqs_.prefetch();
  prefetch_line(&q_counters_[0]);
}

void Hca::prefetch_for(const Qp& qp) {
  prefetch_range(&qp.req, offsetof(RequesterState, send_fault));
  if (const Cq* cq = cqs_.find(qp.scq)) prefetch_range(cq, offsetof(Cq, block));
  // On a cable to itself the responder is here too.
  if (port_.connected()) return;
  if (const Qp* peer = qps_.find(qp.remote_qpn)) {
    prefetch_range(&peer->resp, sizeof peer->resp);
    if (const Cq* cq = cqs_.find(peer->rcq)) prefetch_range(cq, offsetof(Cq, block));
  }
}

void Hca::prefetch_targets() {
  prefetched_ = false;
  Agenda::instance().prefetch_targets();
  PacketPool::prefetch_targets();
  scheduler_.prefetch_targets();
  dma_.prefetch_targets();
  port_.prefetch_targets();
}

void Hca::bar_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
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
    if (!dead_) uar_.write(dma_.store(sim_now() + profile_.pcie.mmio_latency, len), offset, bytes, len);
    return;
  }
  if (offset % 4 || len % 4 || len > 8 || !firmware_) {
    ++bad_accesses_;
    tracer_.broke(Rule::kBarSize, sim_now(), RuleObject::kNone, 0, bytes, len);
    return;
  }
  for (unsigned done = 0; done < len; done += 4) {
    firmware_->init_seg_write(static_cast<std::uint32_t>(offset) + done, prm::load32(bytes + done));
  }
}

void Hca::transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
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

// ---- Power-on, faults ----

void Hca::clear() {
  dma_.reset();
  scheduler_.clear();
  requester_.clear();
  responder_.clear();
  tags_.clear();
  port_.reset();
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
  qpc_cache_.clear();
  contexts_.clear();
  tx_stage_.clear();
  parked_.clear();
  q_counters_ = {};
  bad_accesses_ = qp_errors_ = 0;
  atomic_host_endian_ = false;
}

void Hca::reset() {
  dead_ = false;
  clear();
  if (firmware_) firmware_->function_reset();
}

void Hca::model_fault(const char* where, const char* what) noexcept {
  traces::trace(tracer_, Point::kModelFault, sim_now(), 0u, 0u);
  if (dead_) return;
  dead_ = true;
  char line[256];
  std::snprintf(line, sizeof line, "fault in the model, HCA out of service: %s: %s", where, what);
  host_.log(0, line);
  if (firmware_) firmware_->fatal(what);
}

// ---- QP state ----

Time Hca::context(Time t, std::uint32_t qpn) {
  const ContextFetch::Got got = contexts_.get(t, qpc_cache_, qpn, profile_.cache.qpc_bytes);
  if (got.missed) tracer_.record(Point::kCtxMiss, t, qpn, 0, traces::kCacheQpc, got.at - t);
  return got.at;
}

void Hca::qp_changed(Qp& qp, QpState old) {
  const Time t = sim_now();
  qpc_cache_.invalidate(qp.qpn);
  if (qp.state == QpState::kRst) CongestionControl::forget(qp);
  requester_.qp_changed(t, qp, old);
  responder_.qp_changed(t, qp, old);
}

void Hca::qp_error(Time t, Qp& qp, std::uint8_t event_type) {
  if (qp.state == QpState::kErr || qp.state == QpState::kRst) return;
  ++qp_errors_;
  qp.state = QpState::kErr;
  traces::trace(tracer_, Point::kQpError, t, qp.qpn, 0u, qp.state, event_type);
  requester_.flush(t, qp);
  responder_.flush(t, qp);
  if (qp.dctn != 0) return;  // one connection of a DC target: the target goes on
  if (firmware_) firmware_->qp_state_changed(qp.qpn);
  if (event_type) eqs_.qp_event(t, event_type, qp.qpn, qp.type == QpType::kSq ? prm::kEvSq : prm::kEvQp);
}

void Hca::signature_error(Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e, bool requester) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return;
  traces::trace(tracer_, Point::kAccessErr, t, qpn, 0u, mkey.wire_key(), e.offset);
  if (Cq* cq = cqs_.find(requester ? qp->scq : qp->rcq)) {
    SignatureCompletion s;
    s.mkey = mkey.wire_key();
    s.memory = e.memory;
    s.syndrome = e.syndrome;
    s.expected = e.expected;
    s.actual = e.actual;
    s.offset = e.offset;
    Completion c;
    c.opcode = static_cast<std::uint8_t>(prm::CqeOp::kSigErr);
    c.qpn = c.trace_qpn = qp->number();
    c.signature = &s;
    cqs_.post(t, *cq, c);
  }
  if (requester && qp->drain_sigerr) requester_.stop_behind(t, *qp);
}

void Hca::quiesce() {
  dma_.flush();
  dma_.loans().settle_all();
}

void Hca::port_changed(std::uint8_t eqe_subtype) {
  traces::trace(tracer_, Point::kPortState, sim_now(), 1u, 0u, port_.state());
  eqs_.port_event(sim_now(), eqe_subtype, 1);
}

// A queue whose completions have nowhere to go has failed too (IBTA 11.6.3.1: with the CQ, its QPs).
void Hca::cq_failed(Time t, std::uint32_t cqn) {
  const auto event = static_cast<std::uint8_t>(prm::EqeType::kWqCatas);
  qps_.for_each_qp([&](Qp& qp) {
    const bool sends = qp.has_sq && qp.scq == cqn, receives = (qp.has_rq || qp.use_srq) && qp.rcq == cqn;
    if ((sends || receives) && qp.state != QpState::kInit && qp.type != QpType::kDct) qp_error(t, qp, event);
  });
  for (auto& entry : eth_.rqs)
    if (entry.second.cqn == cqn) eth_rx_.rq_failed(t, entry.second);
}

void Hca::write_refused(Time t, WriteOwner owner) {
  switch (owner.kind) {
    case WriteOwner::kQp:
      if (Qp* qp = qps_.find(owner.number)) {
        qp_error(t, *qp, static_cast<std::uint8_t>(prm::EqeType::kWqCatas));
      }
      break;
    case WriteOwner::kRq:
      if (Rq* rq = EthTable::find(eth_.rqs, owner.number)) eth_rx_.rq_failed(t, *rq);
      break;
    case WriteOwner::kCq:
      cqs_.write_refused(t, owner.number);
      break;
    case WriteOwner::kEq:
      eqs_.write_refused(owner.number);
      break;
    case WriteOwner::kFirmware:
    case WriteOwner::kNone:
      break;
  }
}

}  // namespace hcasim
