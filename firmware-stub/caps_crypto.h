// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of cards that encrypt: keys, TLS, IPsec, MACsec, PSP.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_CRYPTO_H
#define HCASIM_FIRMWARE_STUB_CAPS_CRYPTO_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

// Into a block of the general group.
void fill_general_crypto(const Options& options, std::uint8_t* block);
// The group of TLS.
void fill_tls(std::uint8_t* block);
// The groups of IPsec, MACsec and PSP.
void fill_psp(std::uint8_t* block);
void fill_ipsec(std::uint8_t* block);
void fill_macsec(std::uint8_t* block);

}  // namespace hcasim::fw
#endif
