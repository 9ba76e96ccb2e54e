// SPDX-License-Identifier: BSD-3-Clause
// What flow entries have the engine do: IPsec, MACsec, PSP.
#include <algorithm>

#include "model/crypto/engine.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "prm/crypto.h"
#include "prm/wqe.h"
#include "traces/tracer.h"

namespace hcasim {

bool CryptoEngine::encrypt(Time now, FunctionId f, const CryptoAction& with, SteeredFrame& frame) {
  frame.at = std::max(now, frame.at);
  if (with.type == CryptoAction::kPsp) return encrypt_psp(f, frame);
  return with.type == CryptoAction::kMacsec ? encrypt_macsec(f, with.object, frame)
                                            : encrypt_esp(f, with.object, frame);
}

void CryptoEngine::decrypt(Time now, FunctionId f, const CryptoAction& with, SteeredFrame& frame) {
  frame.at = std::max(now, frame.at);
  if (with.type == CryptoAction::kPsp)
    decrypt_psp(f, frame);
  else if (with.type == CryptoAction::kMacsec)
    decrypt_macsec(f, with.object, frame);
  else
    decrypt_esp(f, with.object, frame);
}

// ---- What changes with an association's packets ----

void CryptoEngine::end_aso(FunctionId f, std::uint16_t type, std::uint32_t object, SaAso& aso,
                           AsoResult result, SteeredFrame& frame) const {
  frame.touch();
  frame.regs.c[aso.reg()] = static_cast<std::uint32_t>(result);
  if (aso.take_event()) blocks_.eqs.object_event(frame.at, f, type, object);
}

bool CryptoEngine::access_aso(const Qp& sq, const SendWqe& wqe, SaAso::Context& before) {
  SaAso* aso = nullptr;
  if (wqe.opmod == prm::kAsoMacsec) {
    if (MacsecSa* sa = blocks_.macsec[sq.function].find(wqe.imm)) aso = &sa->aso;
  } else if (wqe.opmod == prm::kAsoIpsec) {
    if (IpsecSa* sa = blocks_.ipsec[sq.function].find(wqe.imm); sa && sa->whole) aso = &sa->aso;
  }
  return aso && aso->pd() == sq.pd && aso->access(wqe.bytes.data(), wqe.bytes.size(), before);
}

// ---- IPsec ----

bool CryptoEngine::find_esp(FunctionId f, std::uint32_t object, const SteeredFrame& frame,
                            EspPacket& esp) const {
  const IpHeaders& ip = frame.headers.outer;
  esp.sa = blocks_.ipsec[f].find(object);
  esp.dek = esp.sa != nullptr ? blocks_.deks[f].find(esp.sa->dek, prm::kKeyPurposeIpsec) : nullptr;
  constexpr std::size_t kUdp = 8;
  const bool in_udp = esp.sa != nullptr && esp.sa->whole && ip.udp;
  esp.at = ip.l4 + (in_udp ? kUdp : 0);
  esp.len = ip.end > esp.at ? ip.end - esp.at : 0;
  return esp.dek != nullptr && ip.version != 0 && !ip.fragment && (in_udp || ip.protocol == kProtoEsp) &&
         esp.len >= kEspHeader + kEspIv;
}

void CryptoEngine::trace_esp(FunctionId f, std::uint32_t object, const SteeredFrame& frame, bool received,
                             EspStatus status) const {
  const IpHeaders& ip = frame.headers.outer;
  const bool whole = ip.version != 0 && ip.end - ip.l4 >= static_cast<int>(kEspHeader);
  const std::uint64_t number = whole ? prm::load64(frame.bytes() + ip.l4) : 0;  // SPI, sequence number
  const auto point = status == EspStatus::kOk ? traces::Point::kEsp : traces::Point::kEspRefused;
  blocks_.tracer.record(point, frame.at, {f, object}, received ? 1 : 0, number,
                        status == EspStatus::kOk ? frame.len() : static_cast<std::uint64_t>(status));
}

// Packet offload: the card numbers the packet.
bool CryptoEngine::number_esp(FunctionId f, std::uint32_t object, SteeredFrame& frame, const EspPacket& esp) {
  std::uint32_t number = 0;
  const AsoResult result = esp.sa->aso.send(number);
  if (result == AsoResult::kOk) {
    std::uint8_t* p = frame.writable() + esp.at;
    prm::store32(p + 4, number);
    prm::store32(p + kEspHeader, esp.sa->esn ? esp.sa->high(number) : 0);
    prm::store32(p + kEspHeader + 4, number);
  }
  end_aso(f, prm::k::GENERAL_OBJECT_TYPES_IPSEC, object, esp.sa->aso, result, frame);
  frame.unprotected = result != AsoResult::kOk;
  return !frame.unprotected;
}

bool CryptoEngine::encrypt_esp(FunctionId f, std::uint32_t object, SteeredFrame& frame) {
  EspPacket esp{};
  const bool known = find_esp(f, object, frame, esp);
  if (known) frame.at = pass(frame.at, esp.len);
  if (known && esp.sa->whole && !number_esp(f, object, frame, esp)) {
    ++ipsec_.spent;
    trace_esp(f, object, frame, false, EspStatus::kSpent);
    return true;
  }
  if (!known || !esp_encrypt(esp.dek->gcm, *esp.sa, frame.writable() + esp.at, esp.len)) {
    ++ipsec_.not_encrypted;
    trace_esp(f, object, frame, false, EspStatus::kBadTrailer);
    return false;
  }
  ++ipsec_.encrypted;
  trace_esp(f, object, frame, false, EspStatus::kOk);
  return true;
}

void CryptoEngine::decrypt_esp(FunctionId f, std::uint32_t object, SteeredFrame& frame) {
  EspPacket esp{};
  EspStatus status = EspStatus::kBadTrailer;
  if (find_esp(f, object, frame, esp)) {
    frame.at = pass(frame.at, esp.len);
    status = esp_decrypt(esp.dek->gcm, *esp.sa, frame.writable() + esp.at, esp.len);
  }
  frame.touch();
  frame.ipsec_syndrome = static_cast<std::uint8_t>(status);
  if (status == EspStatus::kOk && esp.sa->whole) {
    const AsoResult result = esp.sa->aso.receive(prm::load32(frame.bytes() + esp.at + 4));
    end_aso(f, prm::k::GENERAL_OBJECT_TYPES_IPSEC, object, esp.sa->aso, result, frame);
    if (result == AsoResult::kReplayed) status = EspStatus::kReplayed;
    if (result == AsoResult::kSpent) status = EspStatus::kSpent;
  }
  ++(status == EspStatus::kOk           ? ipsec_.decrypted
     : status == EspStatus::kAuthFailed ? ipsec_.auth_failed
     : status == EspStatus::kReplayed   ? ipsec_.replayed
     : status == EspStatus::kSpent      ? ipsec_.spent
                                        : ipsec_.bad_trailer);
  trace_esp(f, object, frame, true, status);
}

// ---- MACsec ----

bool CryptoEngine::find_macsec(FunctionId f, std::uint32_t object, const SteeredFrame& frame, bool received,
                               MacsecUse& use) const {
  use.sa = blocks_.macsec[f].find(object);
  use.dek = use.sa ? blocks_.deks[f].find(use.sa->dek, prm::kKeyPurposeMacsec) : nullptr;
  return use.dek && use.at.find(frame.bytes(), frame.headers, received);
}

void CryptoEngine::trace_macsec(FunctionId f, std::uint32_t object, const SteeredFrame& frame, bool received,
                                MacsecStatus status, AsoResult result) const {
  MacsecFrame at;
  const bool whole = at.find(frame.bytes(), frame.headers, false);
  const std::uint64_t number = whole ? prm::load32(frame.bytes() + at.tag + kSecTag - 4) : 0;
  const bool ok = status == MacsecStatus::kOk && result == AsoResult::kOk;
  blocks_.tracer.record(
      ok ? traces::Point::kMacsec : traces::Point::kMacsecRefused, frame.at, {f, object}, received ? 1 : 0,
      number,
      ok ? frame.len() : static_cast<std::uint64_t>(status) | static_cast<std::uint64_t>(result) << 8);
}

bool CryptoEngine::encrypt_macsec(FunctionId f, std::uint32_t object, SteeredFrame& frame) {
  MacsecUse use{};
  if (!find_macsec(f, object, frame, false, use)) {
    ++macsec_.not_encrypted;
    trace_macsec(f, object, frame, false, MacsecStatus::kBadTag, AsoResult::kOk);
    return false;
  }
  frame.at = pass(frame.at, frame.len());
  std::uint32_t pn = 0;
  const AsoResult result = use.sa->aso.send(pn);
  if (result == AsoResult::kOk) macsec_protect(use.dek->gcm, *use.sa, pn, frame.writable(), use.at);
  // What has no number goes on to the table that looks at the result, and counts it.
  frame.unprotected = result != AsoResult::kOk;
  ++(result == AsoResult::kOk ? macsec_.encrypted : macsec_.not_encrypted);
  end_aso(f, prm::k::GENERAL_OBJECT_TYPES_MACSEC, object, use.sa->aso, result, frame);
  trace_macsec(f, object, frame, false, MacsecStatus::kOk, result);
  return true;
}

void CryptoEngine::decrypt_macsec(FunctionId f, std::uint32_t object, SteeredFrame& frame) {
  MacsecUse use{};
  MacsecStatus status = MacsecStatus::kBadTag;
  AsoResult result = AsoResult::kOk;
  if (find_macsec(f, object, frame, true, use)) {
    frame.at = pass(frame.at, frame.len());
    status = macsec_validate(use.dek->gcm, *use.sa, frame.writable(), use.at);
    if (status == MacsecStatus::kOk) {
      // Padding of the link is no part of it.
      frame.set_len(static_cast<std::uint32_t>(use.at.icv + kGcmTag));
      frame.reparse();
      result = use.sa->aso.receive(prm::load32(frame.bytes() + use.at.tag + kSecTag - 4));
    }
    end_aso(f, prm::k::GENERAL_OBJECT_TYPES_MACSEC, object, use.sa->aso, result, frame);
  }
  frame.touch();
  frame.macsec_syndrome = static_cast<std::uint8_t>(status);
  ++(status == MacsecStatus::kAuthFailed ? macsec_.auth_failed
     : status != MacsecStatus::kOk       ? macsec_.bad_tag
     : result != AsoResult::kOk          ? macsec_.replayed
                                         : macsec_.decrypted);
  trace_macsec(f, object, frame, true, status, result);
}

// ---- PSP ----

namespace {

constexpr std::uint32_t kPspUdp = 8;  // bytes of the UDP header

// The PSP header and what is behind it, as the UDP header says. 0: too short for a number and an IV.
struct PspPacket {
  std::uint32_t at = 0, len = 0;
  explicit PspPacket(const SteeredFrame& frame) {
    const IpHeaders& ip = frame.headers.outer;
    if (!ip.udp) return;
    const std::uint32_t udp = prm::load16(frame.bytes() + ip.l4 + 4);
    if (udp < kPspUdp + prm::psp::kHeader || ip.l4 + udp > ip.end) return;
    at = ip.l4 + kPspUdp;
    len = udp - kPspUdp;
  }
};

}  // namespace

void CryptoEngine::trace_psp(FunctionId f, const SteeredFrame& frame, bool received, PspStatus status) const {
  const PspPacket p(frame);
  const std::uint8_t* psp = frame.bytes() + p.at;
  const std::uint32_t spi = p.len != 0 ? prm::load32(psp + prm::psp::kAtSpi) : 0;
  const std::uint64_t iv = p.len != 0 ? prm::load64(psp + prm::psp::kAtIv) : 0;
  if (status == PspStatus::kOk)
    blocks_.tracer.record(traces::Point::kPsp, frame.at, {f, spi}, received ? 1 : 0, iv, frame.len());
  else
    blocks_.tracer.record(traces::Point::kPspRefused, frame.at, {f, spi}, received ? 1 : 0, iv,
                          static_cast<std::uint64_t>(status));
}

bool CryptoEngine::encrypt_psp(FunctionId f, SteeredFrame& frame) {
  const PspPacket p(frame);
  const Dek* dek = blocks_.deks[f].find(frame.regs.a, prm::psp::kKeyPurpose);
  bool done = false;
  if (p.len != 0 && dek != nullptr) {
    frame.at = pass(frame.at, p.len);
    // Never twice with a key, which another driver may have again after a reset: no number is before the
    // clock's.
    psp_iv_ = std::max(psp_iv_ + 1, static_cast<std::uint64_t>(frame.at));
    done = psp_encrypt(dek->gcm, dek->key.size(), psp_iv_, frame.writable() + p.at, p.len);
  }
  ++(done ? psp_.encrypted : psp_.not_encrypted);
  trace_psp(f, frame, false, done ? PspStatus::kOk : PspStatus::kBadFrame);
  return done;
}

void CryptoEngine::decrypt_psp(FunctionId f, SteeredFrame& frame) {
  const PspPacket p(frame);
  PspStatus status = PspStatus::kBadFrame;
  if (p.len != 0) {
    frame.at = pass(frame.at, p.len);
    status = psp_decrypt(blocks_.psp[f], frame.writable() + p.at, p.len);
  }
  frame.touch();
  frame.psp_syndrome = static_cast<std::uint8_t>(status);
  ++(status == PspStatus::kOk           ? psp_.decrypted
     : status == PspStatus::kAuthFailed ? psp_.auth_failed
     : status == PspStatus::kBadFrame   ? psp_.bad_frame
                                        : psp_.unknown);
  trace_psp(f, frame, true, status);
}

}  // namespace hcasim
