// SPDX-License-Identifier: BSD-3-Clause
// Security associations of IPsec as the hardware holds them (general object IPSEC, ipsec_obj of mlx5_ifc.h),
// and what they do to an ESP packet: AES-GCM with a tag of 16 bytes (RFC 4303, 4106).
//
// What is sent has the header, the trailer and room for the tag in it already, and its sequence number with
// the high half, as 64 bits, in the place of the IV (the driver's mlx5e_ipsec_set_iv()). The IV of the wire
// is that number with implicit_iv added without carry: it is what the kernel's own seqiv makes, whose salt
// the driver gives as implicit_iv; no document says so.
#ifndef HCASIM_MODEL_CRYPTO_IPSEC_H
#define HCASIM_MODEL_CRYPTO_IPSEC_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/crypto/aso.h"
#include "model/crypto/gcm.h"
#include "model/crypto/sa_table.h"
#include "model/state/fields.h"

namespace hcasim {

constexpr std::size_t kEspHeader = 8, kEspIv = 8, kEspTrailer = 2;  // bytes; the trailer without its padding
// Of any length: the driver pads a large send once for all its segments, and counts the Ethernet header, so
// that its packets mostly do not end with a word, as RFC 4303 2.4 has it.
constexpr std::size_t kEspShortest = kEspHeader + kEspIv + kEspTrailer + kGcmTag;

struct IpsecSa {
  std::uint32_t dek = 0;
  std::array<std::uint8_t, 4> salt{};
  std::array<std::uint8_t, kEspIv> implicit_iv{};
  bool esn = false;      // extended sequence numbers
  bool overlap = false;  // the receiver's window is in the upper half: small numbers are of the next esn_msb
  std::uint32_t esn_msb = 0;  // high half of the sequence number at the window's lower end
  bool whole = false;         // packet offload: the card numbers packets, and knows which have come
  SaAso aso;                  // whole

  // The high half that a received packet's sequence number has.
  std::uint32_t high(std::uint32_t sn) const { return esn_msb + (overlap && sn >> 31 == 0 ? 1 : 0); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, dek, salt, implicit_iv, esn, overlap, esn_msb, whole, aso);
  }
};

// Numbers as in metadata and match parameters (ipsec_syndrome).
// The last two are not: those packets are decrypted, or are not to be encrypted.
enum class EspStatus : std::uint8_t { kOk = 0, kAuthFailed = 1, kBadTrailer = 2, kReplayed = 3, kSpent = 4 };

// In place, from the ESP header to the end of the tag. False: too short.
bool esp_encrypt(const GcmKey& key, const IpsecSa& sa, std::uint8_t* esp, std::size_t len);
// Header, trailer and tag stay where they are. Not kOk: the bytes are as they were.
EspStatus esp_decrypt(const GcmKey& key, const IpsecSa& sa, std::uint8_t* esp, std::size_t len);

using IpsecTable = SaTable<IpsecSa>;

}  // namespace hcasim
#endif
