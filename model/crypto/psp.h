// SPDX-License-Identifier: BSD-3-Clause
// PSP (Google's PSP Architecture Specification): packets in UDP whose key follows from a number in their
// header (SPI) and a key that the receiver's device keeps to itself. A receiver needs no table of
// connections; a sender is told SPI and key by its peer, and holds the key as a DEK.
#ifndef HCASIM_MODEL_CRYPTO_PSP_H
#define HCASIM_MODEL_CRYPTO_PSP_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/crypto/gcm.h"
#include "model/state/fields.h"
#include "prm/psp.h"

namespace hcasim {

// Numbers as in metadata and match parameters (psp_syndrome): the first three are the driver's; for all
// others it has one rule.
enum class PspStatus : std::uint8_t { kOk = 0, kAuthFailed = 1, kBadFrame = 2, kUnknown = 3 };

// A function's device keys, two at a time: what was handed out of the one before the last rotation is still
// understood, what is older is not.
class PspKeys {
 public:
  // Makes the keys this function's own ones (its node GUID), which it keeps when it moves to another card.
  // They are no secrets here: a run is to be repeatable.
  void set_owner(std::uint64_t guid) { owner_ = guid; }

  // SPIs that there are until the device key is rotated.
  std::uint32_t left() const { return prm::psp::kSpiPhase - next_; }
  // The next one of the present device key, of which there is one, and its key of 16 or 32 bytes.
  std::uint32_t generate(std::size_t key_len, std::vector<std::uint8_t>& key);
  void rotate();
  // The key that an SPI stands for, as it arrives in a packet. Kept for the next one.
  const GcmKey& key_of(std::uint32_t spi, std::size_t key_len);
  std::uint32_t rotations() const { return rotations_; }

  // Both device keys are gone for good, with what was handed out of them.
  void clear();
  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("owner", owner_);
    a.lasting("rotations", rotations_);
    a("next", next_, 1u);
    if constexpr (Archive::kLoads) {
      a.check(next_ != 0 && next_ <= prm::psp::kSpiPhase, "no SPI is that large");
      recent_ = {};
    }
  }

 private:
  std::vector<std::uint8_t> derive(std::uint32_t spi, std::size_t key_len) const;

  std::uint64_t owner_ = 0;
  std::uint32_t rotations_ = 0;  // ever: no device key comes twice
  std::uint32_t next_ = 1;       // SPI without its phase; 0 is reserved
  struct Recent {
    std::uint32_t spi;
    std::size_t key_len;
    GcmKey key;
  };
  std::array<std::unique_ptr<Recent>, 16> recent_;
};

// From the PSP header to the end of the ICV, in place. The key's length is that of the header's version.
// The header has its SPI; its IV is written. False: too short, or not of that length.
bool psp_encrypt(const GcmKey& key, std::size_t key_len, std::uint64_t iv, std::uint8_t* psp,
                 std::size_t len);
// Header and ICV stay where they are. Not kOk: the bytes are as they were.
PspStatus psp_decrypt(PspKeys& keys, std::uint8_t* psp, std::size_t len);

}  // namespace hcasim
#endif
