// SPDX-License-Identifier: BSD-3-Clause
// Data encryption keys (general object ENCRYPTION_KEY) as the hardware holds them.
#ifndef HCASIM_MODEL_CRYPTO_DEK_H
#define HCASIM_MODEL_CRYPTO_DEK_H

#include <cstdint>
#include <map>
#include <vector>

#include "model/crypto/gcm.h"
#include "model/state/fields.h"

namespace hcasim {

struct Dek {
  Dek() : Dek(0, 0, std::vector<std::uint8_t>(16)) {}
  Dek(std::uint32_t of_pd, std::uint8_t purpose_of, std::vector<std::uint8_t> bytes)
      : pd(of_pd), purpose(purpose_of), key(std::move(bytes)), gcm(key.data(), key.size()) {}

  std::uint32_t pd;
  std::uint8_t purpose;           // prm::kKeyPurposeTls ...
  std::vector<std::uint8_t> key;  // 16 or 32 bytes
  GcmKey gcm;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, pd, purpose, key);
    if constexpr (Archive::kLoads) {
      a.check(key.size() == 16 || key.size() == 32, "a key has 16 or 32 bytes");
      gcm = GcmKey(key.data(), key.size());
    }
  }
};

// A function's, by number.
class DekTable {
 public:
  const Dek* find(std::uint32_t number) const {
    const auto it = deks_.find(number);
    return it == deks_.end() ? nullptr : &it->second;
  }
  // Null: none of that number, or for something else.
  const Dek* find(std::uint32_t number, std::uint8_t purpose) const {
    const Dek* dek = find(number);
    return dek != nullptr && dek->purpose == purpose ? dek : nullptr;
  }
  void create(std::uint32_t number, std::uint32_t pd, std::uint8_t purpose, std::vector<std::uint8_t> key) {
    deks_.erase(number);
    deks_.emplace(number, Dek(pd, purpose, std::move(key)));
  }
  void destroy(std::uint32_t number) { deks_.erase(number); }
  void clear() { deks_.clear(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, deks_);
  }

 private:
  std::map<std::uint32_t, Dek> deks_;
};

}  // namespace hcasim
#endif
