// SPDX-License-Identifier: BSD-3-Clause
#include "model/hca.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "model/port/traits.h"
#include "model/prm/eqe.h"
#include "model/prm/field.h"

namespace hcasim {

using traces::Point;

namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;
constexpr std::uint16_t kFullMember = 0x8000, kPkeyBase = 0x7fff;

// The transport bits of BTH opcodes that a QP takes; 0xff: none.
std::uint8_t transport_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return prm::bth::kRc;
    case QpType::kUc:
      return prm::bth::kUc;
    case QpType::kXrc:
      return prm::bth::kXrc;
    case QpType::kUd:
    case QpType::kQp0:
    case QpType::kQp1:
      return prm::bth::kUd;
    default:
      return 0xff;
  }
}

bool same_partition(std::uint16_t a, std::uint16_t b) {
  return (a & kPkeyBase) == (b & kPkeyBase) && ((a | b) & kFullMember) != 0;
}

}  // namespace

Hca::Hca(const sc_core::sc_module_name& name, const Profile& profile, HostPort& host, traces::Tracer& tracer)
    : sc_module(name),
      bar("bar"),
      profile_(profile),
      host_(host),
      tracer_(tracer),
      qpc_cache_(profile_.cache.qpc, profile_.cache.ways),
      dma_("dma", profile_, host, tracer, *this),
      eqs_(profile_, dma_, tracer),
      cqs_("cqs", profile_, dma_, eqs_, tracer, *this),
      tpt_(profile_),
      steering_(qps_),
      port_("port", profile_, tracer, *this),
      uar_(*this),
      requester_("requester", *this),
      responder_("responder", *this),
      scheduler_("scheduler", *this) {
  bar.register_b_transport(this, &Hca::transport);
  port_.on_receive([this](Time t, PacketRef& packet) { receive(t, packet); });
  dma_.on_write_error([this](Time t, WriteOwner owner) { write_refused(t, owner); });
}

// ---- BAR0 ----

void Hca::bar_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len) {
  if (len == 0 || len > 8 || offset >= kBarSize || len > kBarSize - offset) {
    ++bad_accesses_;
    std::memset(bytes, 0xff, len);
    return;
  }
  if (offset >= kInitSegSize) {
    std::memset(bytes, 0, len);  // UAR pages are write-only
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

void Hca::bar_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  if (len == 0 || offset >= kBarSize || len > kBarSize - offset) {
    ++bad_accesses_;
    return;
  }
  if (offset >= kInitSegSize) {
    if (!dead_) uar_.write(sim_now() + profile_.pcie.mmio_latency, offset, bytes, len);
    return;
  }
  if (offset % 4 || len % 4 || len > 8 || !firmware_) {
    ++bad_accesses_;
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
  port_.reset();
  steering_.clear();
  uar_.clear();
  cqs_.clear();
  eqs_.clear();
  tpt_.clear();
  qps_.clear();
  qpc_cache_.clear();
  q_counters_ = {};
  bad_accesses_ = qp_errors_ = 0;
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

void Hca::qp_changed(Qp& qp, QpState old) {
  const Time t = sim_now();
  qpc_cache_.invalidate(qp.qpn);
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
  if (firmware_) firmware_->qp_state_changed(qp.qpn);
  if (event_type) eqs_.qp_event(t, event_type, qp.qpn);
}

void Hca::quiesce() { dma_.flush(); }

void Hca::port_changed(std::uint8_t eqe_subtype) {
  traces::trace(tracer_, Point::kPortState, sim_now(), 1u, 0u, port_.state());
  eqs_.port_event(sim_now(), eqe_subtype, 1);
}

void Hca::write_refused(Time t, WriteOwner owner) {
  switch (owner.kind) {
    case WriteOwner::kQp:
      if (Qp* qp = qps_.find(owner.number)) {
        qp_error(t, *qp, static_cast<std::uint8_t>(prm::EqeType::kWqCatas));
      }
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

// ---- Packets ----

void Hca::receive(Time t, PacketRef& packet) {
  if (dead_) return;
  const Packet& p = *packet;
  const prm::BthTraits& traits = traits_of(p.opcode);
  if (!traits.valid) {
    port_.drop(t, p, DropReason::kOpcode);
    return;
  }
  if (p.dest_qpn == kMulticastQpn) {
    const std::vector<std::uint32_t>* members =
        p.has_grh && traits.deth ? steering_.multicast(p.dgid) : nullptr;
    if (!members) {
      port_.drop(t, p, DropReason::kNoGroup);
      return;
    }
    // A copy: a receiver's error handling may end up in detaching.
    const std::vector<std::uint32_t> list = *members;
    for (const std::uint32_t qpn : list) {
      PacketRef shared = packet;
      if (Qp* qp = qps_.find(qpn)) deliver(t, *qp, shared);
    }
    return;
  }
  Qp* qp = steering_.unicast(p.dest_qpn);
  if (!qp) {
    port_.drop(t, p, DropReason::kNoQp);
    return;
  }
  deliver(t, *qp, packet);
}

void Hca::deliver(Time t, Qp& qp, PacketRef& packet) {
  const Packet& p = *packet;
  if ((p.opcode & prm::bth::kTransportMask) != transport_of(qp.type)) {
    port_.drop(t, p, DropReason::kNoQp);
    return;
  }
  if (qp.state != QpState::kRtr && qp.state != QpState::kRts && qp.state != QpState::kSqd &&
      qp.state != QpState::kSqErr) {
    port_.drop(t, p, DropReason::kQpState);
    return;
  }
  // IBTA 10.9.3: QP0 takes any P_Key, QP1 any of the port's table, others their own.
  bool pkey = true;
  if (qp.type == QpType::kQp1) {
    pkey = port_.pkey_valid(p.pkey);
  } else if (qp.type != QpType::kQp0) {
    const std::size_t index = qp.path.pkey_index;
    pkey = index < port_.pkeys.size() && same_partition(p.pkey, port_.pkeys[index]);
  }
  if (!pkey) {
    port_.drop(t, p, DropReason::kPkey);
    return;
  }
  if (traits_of(p.opcode).request) {
    responder_.receive(t, qp, packet);
  } else {
    requester_.receive(t, qp, packet);
  }
}

}  // namespace hcasim
