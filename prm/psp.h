// SPDX-License-Identifier: BSD-3-Clause
/// PSP ("PSP Security Protocol", Google's PSP Architecture Specification, version 1): the header on the wire,
/// and the layouts of commands and capabilities, which the kernel's mlx5_ifc.h has from 6.18 on and those
/// that Debian 12 and 13 compile with do not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm::psp {

// ---- Commands

constexpr std::uint16_t kOpGenSpi = 0xb10, kOpRotateKey = 0xb11;

struct gen_spi_in {
  using key_size = Field<0x60, 2>;  // kKeySize128, kKeySize256 (prm/crypto.h)
  using num_of_spi = Field<0x70, 16>;
  static constexpr std::size_t bytes = 0x80 / 8;
};
struct gen_spi_out {
  using num_of_spi = Field<0x50, 16>;
  static constexpr std::size_t bytes = 0x80 / 8;  // key_spi entries follow
};
struct key_spi {
  using spi = Field<0, 32>;
  static constexpr std::size_t key = 0x80 / 8, key_bytes = 32;  // a key of 128 bits stands in the second half
  static constexpr std::size_t bytes = key + key_bytes;
};
struct rotate_key_in {
  static constexpr std::size_t bytes = 0x80 / 8;
};
struct rotate_key_out {
  static constexpr std::size_t bytes = 0x80 / 8;
};

// ---- Capabilities

constexpr std::uint16_t kCapGroup = 0x1e;
struct cap {
  using psp_crypto_offload = Field<1, 1>;
  using psp_crypto_esp_aes_gcm_256_encrypt = Field<3, 1>;
  using psp_crypto_esp_aes_gcm_128_encrypt = Field<4, 1>;
  using psp_crypto_esp_aes_gcm_256_decrypt = Field<5, 1>;
  using psp_crypto_esp_aes_gcm_128_decrypt = Field<6, 1>;
  using log_max_num_of_psp_spi = Field<0xb, 5>;
};
// cmd_hca_cap
using cap_psp = Field<0x2aa, 1>;
static_assert(cmd_hca_cap::shampo::bit_off == 0x2ab);
// flow_table_prop_layout; Base: bits
template <unsigned Base>
using table_psp_encrypt = Field<Base + 0x66, 1>;
template <unsigned Base>
using table_psp_decrypt = Field<Base + 0x67, 1>;
static_assert(flow_table_prop_layout::macsec_decrypt::bit_off == 0x65 &&
              flow_table_prop_layout::reformat_add_macsec::bit_off == 0x68);

// ---- Keys and flow entries

constexpr std::uint8_t kKeyPurpose = 6;           // encryption_key_obj
constexpr std::uint32_t kEncryptDecryptType = 2;  // flow_context
constexpr std::uint32_t kFieldSyndrome = 0x71;    // MLX5_ACTION_IN_FIELD_PSP_SYNDROME
using match_syndrome = Field<0x1a0, 8>;           // fte_match_set_misc2
template <unsigned Base>                          // of the fte_match_param
using match_syndrome_of =
    Field<Base + fte_match_param::misc_parameters_2::bit_off + match_syndrome::bit_off, 8>;
static_assert(fte_match_set_misc2::macsec_syndrome::bit_off == 0x1a8);

// ---- On the wire

constexpr std::uint16_t kUdpPort = 1000;
constexpr std::size_t kHeader = 16, kIcv = 16;  // bytes; the header without what follows the IV
constexpr std::size_t kAtNext = 0, kAtLength = 1, kAtCryptOffset = 2, kAtVersion = 3, kAtSpi = 4, kAtIv = 8;
constexpr std::size_t kLengthUnit = 8,
                      kOffsetUnit = 4;  // bytes; the length counts from behind the first unit
constexpr std::uint8_t kOffsetMask = 0x3f;
constexpr std::uint8_t kAlwaysOne = 1;
constexpr unsigned kVersionShift = 2;
constexpr std::uint8_t kVersionMask = 0xf;
constexpr std::uint8_t kGcm128 = 0, kGcm256 = 1;  // versions; 2 and 3 authenticate alone (GMAC)
constexpr std::uint32_t kSpiPhase = 1u << 31;     // which of the two device keys

}  // namespace hcasim::prm::psp
