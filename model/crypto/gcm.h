// SPDX-License-Identifier: BSD-3-Clause
// AES-GCM (NIST SP 800-38D) over data that come in pieces of any length. The ciphers are nettle's, as what it
// keeps of a message is plain: two counter blocks, the hash and two lengths. The rest of a block is kept
// here, since nettle takes whole blocks.
#ifndef HCASIM_MODEL_CRYPTO_GCM_H
#define HCASIM_MODEL_CRYPTO_GCM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/state/fields.h"

namespace hcasim {

constexpr std::size_t kGcmBlock = 16, kGcmNonce = 12, kGcmTag = 16;  // bytes

// What a key is expanded to: no state, as it follows from the key.
class GcmKey {
 public:
  // len: 16 or 32 bytes.
  GcmKey(const std::uint8_t* key, std::size_t len);
  ~GcmKey();
  GcmKey(GcmKey&&) noexcept;
  GcmKey& operator=(GcmKey&&) noexcept;

 private:
  friend struct GcmStream;
  struct Expanded;
  std::unique_ptr<const Expanded> expanded_;
};

// One message on its way. All calls for it are given the same key.
struct GcmStream {
  bool decrypts = false;
  std::array<std::uint8_t, kGcmBlock> first{}, counter{}, hash{};  // nettle's iv, ctr and x
  std::uint64_t aad_bytes = 0, data_bytes = 0;
  std::array<std::uint8_t, kGcmBlock> part{};  // of a block that is not whole, as it came
  std::uint8_t part_len = 0;

  // Additional data of any length; decrypts: what comes is ciphertext.
  void start(const GcmKey& key, bool decrypt, const std::array<std::uint8_t, kGcmNonce>& nonce,
             const std::uint8_t* aad, std::size_t aad_len);
  // The message's next bytes, in place.
  void crypt(const GcmKey& key, std::uint8_t* data, std::size_t len);
  // Of all that has come; it may go on afterwards.
  std::array<std::uint8_t, kGcmTag> tag(const GcmKey& key) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, decrypts, first, counter, hash, aad_bytes, data_bytes, part, part_len);
    if constexpr (Archive::kLoads) a.check(part_len < kGcmBlock, "a part of a block is no whole one");
  }
};

}  // namespace hcasim
#endif
