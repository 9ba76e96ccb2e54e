// SPDX-License-Identifier: BSD-3-Clause
// Secure associations of MACsec as the hardware holds them (general object MACSEC, macsec_offload_obj of
// mlx5_ifc.h), and what they do to a frame: AES-GCM with a tag of 16 bytes (IEEE 802.1AE-2018 9, 10, 14).
//
// A frame that is to be protected has its SecTAG and room for the tag (ICV) at its end already, which the
// entry's reformat ADD_MACSEC has made; packet number and short length are put here. VLAN tags in front of
// the SecTAG are not covered: whoever puts them does so behind the MACsec interface.
#ifndef HCASIM_MODEL_CRYPTO_MACSEC_H
#define HCASIM_MODEL_CRYPTO_MACSEC_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/crypto/aso.h"
#include "model/crypto/gcm.h"
#include "model/crypto/sa_table.h"
#include "model/eth/headers.h"
#include "model/state/fields.h"

namespace hcasim {

constexpr std::size_t kSecTag = 8, kSecTagSci = 8;  // bytes, with its Ethertype; the SCI, if it is there
constexpr std::uint8_t kTciSc = 0x20, kTciEncrypted = 0x08, kTciChanged = 0x04, kTciVersion = 0x80;
constexpr std::size_t kMacsecShortest = 48;  // of secure data, below which SL gives its length

struct MacsecSa {
  std::uint32_t dek = 0;
  std::array<std::uint8_t, 8> sci{};  // with 64-bit numbers: 0, SSCI
  std::array<std::uint8_t, kGcmNonce> salt{};
  bool confidential = false;  // what is sent is encrypted, not only authenticated
  bool epn = false;           // extended packet numbers (XPN): 64 bits
  bool overlap = false;       // as in IpsecSa
  std::uint32_t epn_msb = 0;
  SaAso aso;

  // The high half that a packet number has.
  std::uint32_t high(std::uint32_t pn) const { return epn_msb + (overlap && pn >> 31 == 0 ? 1 : 0); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, dek, sci, salt, confidential, epn, overlap, epn_msb, aso);
  }
};

// Numbers as in match parameters (macsec_syndrome); 0 is all that the driver goes by.
enum class MacsecStatus : std::uint8_t { kOk = 0, kAuthFailed = 1, kBadTag = 2 };

// Where the parts of a protected frame are, bytes from its start.
struct MacsecFrame {
  std::size_t tag = 0;   // the SecTAG
  std::size_t data = 0;  // secure data
  std::size_t icv = 0;   // behind it
  // False: the frame has no SecTAG, or is shorter than it says. of: where the frame ends, without SL.
  bool find(const std::uint8_t* frame, const FrameHeaders& headers, bool short_length);
};

// In place. pn: its number, of which the lower half goes into the SecTAG.
void macsec_protect(const GcmKey& key, const MacsecSa& sa, std::uint32_t pn, std::uint8_t* frame,
                    const MacsecFrame& parts);
// SecTAG and ICV stay where they are. Not kOk: the bytes are as they were.
MacsecStatus macsec_validate(const GcmKey& key, const MacsecSa& sa, std::uint8_t* frame,
                             const MacsecFrame& parts);

using MacsecTable = SaTable<MacsecSa>;

}  // namespace hcasim
#endif
