// SPDX-License-Identifier: BSD-3-Clause
// The card's engine for encryption. Frames pass it on their way out of a TIS and into a TIR that have TLS
// (model/crypto/tls.h), WQEs of send queues set what it does for them; and when a flow entry says so, with an
// object of IPsec or MACsec (model/crypto/ipsec.h, macsec.h) or by the numbers of PSP (psp.h). Its time:
// [engine] crypto_ns, crypto_gbps.
#ifndef HCASIM_MODEL_CRYPTO_ENGINE_H
#define HCASIM_MODEL_CRYPTO_ENGINE_H

#include <cstddef>
#include <cstdint>

#include "model/crypto/dek.h"
#include "model/crypto/ipsec.h"
#include "model/crypto/macsec.h"
#include "model/crypto/psp.h"
#include "model/crypto/tls.h"
#include "model/ctx/eth.h"
#include "model/function/id.h"
#include "model/occupancy.h"
#include "model/state/fields.h"
#include "model/steer/flow.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class EqUnit;
struct Profile;
struct Qp;
struct SendWqe;

class CryptoEngine final : public FrameCrypto {
 public:
  struct Blocks {
    const Profile& profile;
    traces::Tracer& tracer;
    PerFunction<EthTable> eth;
    PerFunction<DekTable> deks;
    PerFunction<IpsecTable> ipsec;
    PerFunction<MacsecTable> macsec;
    PerFunction<PspKeys> psp;
    EqUnit& eqs;
  };
  explicit CryptoEngine(const Blocks& blocks) : blocks_(blocks) {}

  // The parameters that a UMR or SET_PSV of that SQ brings. False: not such a TIS or TIR, no key of the
  // queue's domain, not TLS 1.2; nothing is changed then.
  bool set_static(Time t, const Qp& sq, const SendWqe& wqe);
  bool set_progress(Time t, const Qp& sq, const SendWqe& wqe);
  // What GET_PSV asks for; false: no such TIR. to: prm::kTlsProgressWrite bytes.
  bool get_progress(const Qp& sq, std::uint32_t tirn, std::uint8_t* to) const;

  // Whether frames of this send queue can leave by that TIS encrypted: it has TLS, and is the queue's to use.
  bool encrypts(const Qp& sq, std::uint32_t tisn) const;
  // Bytes of a stream that leaves by the TIS, in place; t becomes when they are encrypted. False: the TIS has
  // no TLS, or no parameters, or they are no record.
  bool encrypt(Time& t, const Qp& sq, std::uint32_t tisn, std::uint8_t* data, std::size_t len);
  // A segment's payload that has come to the TIR (TlsRx::take()); t becomes when it may go on.
  prm::CqeTls decrypt(Time& t, FunctionId f, Tir& tir, std::uint32_t sn, std::uint8_t* data, std::size_t len);

  // FrameCrypto
  bool encrypt(Time now, FunctionId f, const CryptoAction& with, SteeredFrame& frame) override;
  void decrypt(Time now, FunctionId f, const CryptoAction& with, SteeredFrame& frame) override;

  // ACCESS_ASO of that queue for an object of IPsec or MACsec; before: what there was. False: refused.
  bool access_aso(const Qp& sq, const SendWqe& wqe, SaAso::Context& before);

  // Frames of IPsec: the card's since power-on.
  struct IpsecCounters {
    std::uint64_t encrypted = 0, decrypted = 0;
    std::uint64_t not_encrypted = 0;  // dropped: not what the object is for
    std::uint64_t auth_failed = 0, bad_trailer = 0;
    std::uint64_t replayed = 0, spent = 0;  // packet offload: come before; beyond a lifetime or the numbers

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, encrypted, decrypted, not_encrypted, auth_failed, bad_trailer, replayed, spent);
    }
  };
  const IpsecCounters& ipsec() const { return ipsec_; }
  // Frames of MACsec.
  struct MacsecCounters {
    std::uint64_t encrypted = 0, decrypted = 0;
    std::uint64_t not_encrypted = 0;  // dropped: no SecTAG, or no packet number left
    std::uint64_t auth_failed = 0, bad_tag = 0, replayed = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, encrypted, decrypted, not_encrypted, auth_failed, bad_tag, replayed);
    }
  };
  const MacsecCounters& macsec() const { return macsec_; }

  // Packets of PSP.
  struct PspCounters {
    std::uint64_t encrypted = 0, decrypted = 0;
    std::uint64_t not_encrypted = 0;  // dropped: no PSP packet, or no key for it
    std::uint64_t auth_failed = 0, bad_frame = 0, unknown = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, encrypted, decrypted, not_encrypted, auth_failed, bad_frame, unknown);
    }
  };
  const PspCounters& psp() const { return psp_; }

  void clear();
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, unit_, ipsec_, macsec_);
    HCASIM_FIELDS_SINCE(7, a, psp_, psp_iv_);
  }

 private:
  // How trace point tls says what was done.
  enum class Did : std::uint8_t { kStatic, kProgress, kLost, kFound, kConfirmed, kForged };
  void trace(Time t, FunctionId f, std::uint32_t number, bool tir, Did did, std::uint64_t value) const;
  Time pass(Time t, std::size_t len);
  struct EspPacket {
    IpsecSa* sa;
    const Dek* dek;
    std::size_t at, len;  // in the frame
  };
  void trace_esp(FunctionId f, std::uint32_t object, const SteeredFrame& frame, bool received,
                 EspStatus status) const;
  // False: no such object, or not ESP.
  bool find_esp(FunctionId f, std::uint32_t object, const SteeredFrame& frame, EspPacket& esp) const;
  bool number_esp(FunctionId f, std::uint32_t object, SteeredFrame& frame, const EspPacket& esp);
  bool encrypt_esp(FunctionId f, std::uint32_t object, SteeredFrame& frame);
  void decrypt_esp(FunctionId f, std::uint32_t object, SteeredFrame& frame);

  // The object, its key, and the frame's parts. False: no such object, or no SecTAG.
  struct MacsecUse {
    MacsecSa* sa;
    const Dek* dek;
    MacsecFrame at;
  };
  bool find_macsec(FunctionId f, std::uint32_t object, const SteeredFrame& frame, bool received,
                   MacsecUse& use) const;
  bool encrypt_macsec(FunctionId f, std::uint32_t object, SteeredFrame& frame);
  void decrypt_macsec(FunctionId f, std::uint32_t object, SteeredFrame& frame);
  void trace_macsec(FunctionId f, std::uint32_t object, const SteeredFrame& frame, bool received,
                    MacsecStatus status, AsoResult result) const;
  // What the association's packets have brought about is told, and the frame's register says the result.
  void end_aso(FunctionId f, std::uint16_t type, std::uint32_t object, SaAso& aso, AsoResult result,
               SteeredFrame& frame) const;

  bool encrypt_psp(FunctionId f, SteeredFrame& frame);
  void decrypt_psp(FunctionId f, SteeredFrame& frame);
  void trace_psp(FunctionId f, const SteeredFrame& frame, bool received, PspStatus status) const;

  Blocks blocks_;
  Occupancy unit_;
  IpsecCounters ipsec_;
  MacsecCounters macsec_;
  PspCounters psp_;
  std::uint64_t psp_iv_ = 0;  // the last one given
};

}  // namespace hcasim
#endif
