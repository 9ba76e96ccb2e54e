// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/engine.h"

#include <cstring>

#include "model/ctx/qp.h"
#include "model/profile.h"
#include "model/state/state.h"
#include "prm/wqe.h"
#include "traces/tracer.h"

namespace hcasim {

namespace {

constexpr std::size_t kMkeySegment = 64;
constexpr std::size_t kParamsAt = sizeof(prm::UmrCtrlSeg) + kMkeySegment;
constexpr unsigned kOctoword = 16;

}  // namespace

void CryptoEngine::clear() { reset_state(*this); }

void CryptoEngine::trace(Time t, FunctionId f, std::uint32_t number, bool tir, Did did,
                         std::uint64_t value) const {
  blocks_.tracer.record(traces::Point::kTls, t, {f, number}, tir ? 1 : 0, static_cast<std::uint64_t>(did),
                        value);
}

Time CryptoEngine::pass(Time t, std::size_t len) {
  const Profile::Engine& e = blocks_.profile.engine;
  const auto busy = static_cast<Time>(8000.0 * static_cast<double>(len) / e.crypto_gbps);
  return unit_.reserve(t, busy) + busy + e.crypto;
}

bool CryptoEngine::set_static(Time t, const Qp& sq, const SendWqe& wqe) {
  if (wqe.bytes.size() < kParamsAt + prm::tls_static_params::bytes) return false;
  prm::UmrCtrlSeg ctrl;
  std::memcpy(&ctrl, wqe.bytes.data(), sizeof ctrl);
  if (ctrl.flags != prm::kUmrInline || ctrl.xlt_octowords != 0 || ctrl.mkey_mask != 0 ||
      ctrl.xlt_offset != prm::tls_static_params::bytes / kOctoword)
    return false;
  TlsParams params;
  if (!params.read(wqe.bytes.data() + kParamsAt)) return false;
  const Dek* dek = blocks_.deks[sq.function].find(params.dek, prm::kKeyPurposeTls);
  if (dek == nullptr || dek->pd != sq.pd) return false;
  const std::uint32_t number = wqe.imm >> 8;
  EthTable& eth = blocks_.eth[sq.function];
  if (wqe.opmod == prm::kTlsOfTis) {
    Tis* tis = EthTable::find(eth.tises, number);
    if (tis == nullptr || !tis->tls || tis->pd != sq.pd) return false;
    tis->tls->set(params);
    trace(t, sq.function, number, false, Did::kStatic, params.first_record);
    return true;
  }
  Tir* tir = wqe.opmod == prm::kTlsOfTir ? EthTable::find(eth.tirs, number) : nullptr;
  if (tir == nullptr || !tir->tls) return false;
  tir->tls->set(params);
  trace(t, sq.function, number, true, Did::kStatic, params.first_record);
  if (tir->tls->confirm()) trace(t, sq.function, number, true, Did::kConfirmed, params.resync_sn);
  return true;
}

// Only where records begin can be said: that one was found, or is decrypted, is the hardware's to say.
bool CryptoEngine::set_progress(Time t, const Qp& sq, const SendWqe& wqe) {
  prm::TlsProgressSeg seg;
  if (wqe.bytes.size() < sizeof seg) return false;
  std::memcpy(&seg, wqe.bytes.data(), sizeof seg);
  using p = prm::tls_progress_params;
  if (prm::get<p::record_tracker_state>(seg.params) != prm::kTrackerStart ||
      prm::get<p::auth_state>(seg.params) != prm::kAuthNoOffload)
    return false;
  const std::uint32_t number = seg.tis_tir_num & 0xffffff;
  const std::uint32_t sn = prm::get<p::next_record_tcp_sn>(seg.params);
  EthTable& eth = blocks_.eth[sq.function];
  if (wqe.opmod == prm::kTlsOfTis) {
    Tis* tis = EthTable::find(eth.tises, number);
    if (tis == nullptr || !tis->tls || tis->pd != sq.pd || !tis->tls->params.set) return false;
    tis->tls->restart();
  } else {
    Tir* tir = wqe.opmod == prm::kTlsOfTir ? EthTable::find(eth.tirs, number) : nullptr;
    if (tir == nullptr || !tir->tls || !tir->tls->params.set) return false;
    tir->tls->restart(sn);
  }
  trace(t, sq.function, number, wqe.opmod == prm::kTlsOfTir, Did::kProgress, sn);
  return true;
}

bool CryptoEngine::get_progress(const Qp& sq, std::uint32_t tirn, std::uint8_t* to) const {
  const Tir* tir = EthTable::find(blocks_.eth[sq.function].tirs, tirn);
  if (tir == nullptr || !tir->tls) return false;
  prm::TlsProgressSeg seg{};
  seg.tis_tir_num = tirn;
  tir->tls->write_progress(seg.params);
  std::memset(to, 0, prm::kTlsProgressWrite);
  std::memcpy(to, &seg, sizeof seg);
  return true;
}

bool CryptoEngine::encrypts(const Qp& sq, std::uint32_t tisn) const {
  const Tis* tis = EthTable::find(blocks_.eth[sq.function].tises, tisn);
  return tis != nullptr && tis->tls && tis->pd == sq.pd;
}

bool CryptoEngine::encrypt(Time& t, const Qp& sq, std::uint32_t tisn, std::uint8_t* data, std::size_t len) {
  Tis* tis = EthTable::find(blocks_.eth[sq.function].tises, tisn);
  if (tis == nullptr || !tis->tls || !tis->tls->started || tis->pd != sq.pd) return false;
  const Dek* dek = blocks_.deks[sq.function].find(tis->tls->params.dek, prm::kKeyPurposeTls);
  if (dek == nullptr || dek->pd != sq.pd) return false;
  t = pass(t, len);
  return tis->tls->push(dek->gcm, data, len);
}

prm::CqeTls CryptoEngine::decrypt(Time& t, FunctionId f, Tir& tir, std::uint32_t sn, std::uint8_t* data,
                                  std::size_t len) {
  TlsRx& tls = *tir.tls;
  const Dek* dek = blocks_.deks[f].find(tls.params.dek, prm::kKeyPurposeTls);
  if (!tls.started || dek == nullptr) return prm::CqeTls::kNotDecrypted;
  t = pass(t, len);
  TlsRx::Events events;
  const prm::CqeTls result = tls.take(dek->gcm, sn, data, len, events);
  if (events.lost) trace(t, f, tir.tirn, true, Did::kLost, sn);
  if (events.found) trace(t, f, tir.tirn, true, Did::kFound, tls.resync_sn);
  if (result == prm::CqeTls::kError) trace(t, f, tir.tirn, true, Did::kForged, sn);
  return result;
}

}  // namespace hcasim
