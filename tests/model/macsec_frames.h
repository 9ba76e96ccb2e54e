// SPDX-License-Identifier: BSD-3-Clause
// Frames of MACsec (IEEE 802.1AE-2018) for tests, as nettle's functions for whole messages protect them,
// which know nothing of the model.
#ifndef HCASIM_TESTS_MODEL_MACSEC_FRAMES_H
#define HCASIM_TESTS_MODEL_MACSEC_FRAMES_H

#include <nettle/gcm.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "prm/field.h"

namespace hcasim::macsec_frames {

using Bytes = std::vector<std::uint8_t>;

inline const Bytes kKey{0x20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline const Bytes kSci{0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x00, 0x01};
inline const Bytes kSalt{0xa0, 0xb1, 0xc2, 0xd3, 0xe4, 0xf5, 0x06, 0x17, 0x28, 0x39, 0x4a, 0x5b};
constexpr std::uint32_t kSsci = 0x00000007;
constexpr std::size_t kMacs = 12, kIcv = 16;

struct How {
  bool sci = true, encrypted = true, xpn = false;
  std::uint8_t an = 0;
  Bytes key = kKey;
};

inline Bytes tag(const How& how, std::uint32_t pn, std::size_t secure) {
  Bytes t(how.sci ? 16 : 8);
  prm::store16(t.data(), 0x88e5);
  t[2] = static_cast<std::uint8_t>((how.sci ? 0x20 : 0x40) | (how.encrypted ? 0x0c : 0) | how.an);
  t[3] = static_cast<std::uint8_t>(secure < 48 ? secure : 0);
  prm::store32(t.data() + 4, pn);
  if (how.sci) std::copy(kSci.begin(), kSci.end(), t.begin() + 8);
  return t;
}

inline Bytes nonce(const How& how, std::uint64_t pn) {
  Bytes n(12);
  if (how.xpn) {
    prm::store32(n.data(), kSsci);
    prm::store64(n.data() + 4, pn);
    for (std::size_t i = 0; i < n.size(); ++i) n[i] ^= kSalt[i];
  } else {
    std::copy(kSci.begin(), kSci.end(), n.begin());
    prm::store32(n.data() + 8, static_cast<std::uint32_t>(pn));
  }
  return n;
}

template <class Context, class SetKey, class SetIv, class Update, class Encrypt, class Digest>
void seal(Bytes& out, std::size_t data, const How& how, const Bytes& iv, const Bytes& aad, SetKey set_key,
          SetIv set_iv, Update update, Encrypt encrypt, Digest digest) {
  Context ctx;
  set_key(&ctx, how.key.data());
  set_iv(&ctx, iv.size(), iv.data());
  update(&ctx, aad.size(), aad.data());
  if (how.encrypted) encrypt(&ctx, out.size() - kIcv - data, out.data() + data, out.data() + data);
  digest(&ctx, kIcv, out.data() + out.size() - kIcv);
}

// The frame as it is on the wire.
inline Bytes sealed(const Bytes& frame, const How& how, std::uint64_t pn) {
  const std::size_t secure = frame.size() - kMacs;
  const Bytes t = tag(how, static_cast<std::uint32_t>(pn), secure);
  Bytes out(frame.begin(), frame.begin() + kMacs);
  out.insert(out.end(), t.begin(), t.end());
  const std::size_t data = out.size();
  out.insert(out.end(), frame.begin() + kMacs, frame.end());
  const Bytes aad(out.begin(), how.encrypted ? out.begin() + static_cast<std::ptrdiff_t>(data) : out.end());
  out.resize(out.size() + kIcv);
  if (how.key.size() == 32)
    seal<gcm_aes256_ctx>(out, data, how, nonce(how, pn), aad, gcm_aes256_set_key, gcm_aes256_set_iv,
                         gcm_aes256_update, gcm_aes256_encrypt, gcm_aes256_digest);
  else
    seal<gcm_aes128_ctx>(out, data, how, nonce(how, pn), aad, gcm_aes128_set_key, gcm_aes128_set_iv,
                         gcm_aes128_update, gcm_aes128_encrypt, gcm_aes128_digest);
  return out;
}

}  // namespace hcasim::macsec_frames
#endif
