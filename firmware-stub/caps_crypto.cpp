// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_crypto.h"

#include "firmware-stub/caps.h"
#include "firmware-stub/objects/objects.h"
#include "prm/prm.h"

namespace hcasim::fw {

namespace {
constexpr unsigned kLogLeastWindow = 5, kLogMostWindow = 8;  // numbers that a window may have (SaAso)
}

void fill_general_crypto(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  if (!options.encrypts()) return;
  put<g::log_max_dek>(c, kLogDeks);
  put<g::tls_tx>(c, 1);
  put<g::tls_rx>(c, 1);
  put<g::ipsec_offload>(c, 1);
  put<prm::psp::cap_psp>(c, options.psp() ? 1 : 0);
}

void fill_tls(std::uint8_t* c) {
  using t = prm::tls_cap;
  put<t::tls_1_2_aes_gcm_128>(c, 1);
  put<t::tls_1_2_aes_gcm_256>(c, 1);
  put<t::tls_1_3_aes_gcm_128>(c, 1);
  put<t::tls_1_3_aes_gcm_256>(c, 1);
}

void fill_ipsec(std::uint8_t* c) {
  using i = prm::ipsec_cap;
  put<i::ipsec_full_offload>(c, 1);
  put<i::ipsec_crypto_offload>(c, 1);
  put<i::ipsec_esn>(c, 1);
  put<i::ipsec_crypto_esp_aes_gcm_256_encrypt>(c, 1);
  put<i::ipsec_crypto_esp_aes_gcm_128_encrypt>(c, 1);
  put<i::ipsec_crypto_esp_aes_gcm_256_decrypt>(c, 1);
  put<i::ipsec_crypto_esp_aes_gcm_128_decrypt>(c, 1);
  put<i::log_max_ipsec_offload>(c, kLogIpsecs);
  put<i::min_log_ipsec_full_replay_window>(c, kLogLeastWindow);
  put<i::max_log_ipsec_full_replay_window>(c, kLogMostWindow);
}

void fill_macsec(std::uint8_t* c) {
  using m = prm::macsec_cap;
  put<m::macsec_epn>(c, 1);
  put<m::macsec_crypto_esp_aes_gcm_256_encrypt>(c, 1);
  put<m::macsec_crypto_esp_aes_gcm_128_encrypt>(c, 1);
  put<m::macsec_crypto_esp_aes_gcm_256_decrypt>(c, 1);
  put<m::macsec_crypto_esp_aes_gcm_128_decrypt>(c, 1);
  put<m::log_max_macsec_offload>(c, kLogMacsecs);
  put<m::min_log_macsec_full_replay_window>(c, kLogLeastWindow);
  put<m::max_log_macsec_full_replay_window>(c, kLogMostWindow);
}

void fill_psp(std::uint8_t* c) {
  using p = prm::psp::cap;
  put<p::psp_crypto_offload>(c, 1);
  put<p::psp_crypto_esp_aes_gcm_256_encrypt>(c, 1);
  put<p::psp_crypto_esp_aes_gcm_128_encrypt>(c, 1);
  put<p::psp_crypto_esp_aes_gcm_256_decrypt>(c, 1);
  put<p::psp_crypto_esp_aes_gcm_128_decrypt>(c, 1);
  put<p::log_max_num_of_psp_spi>(c, kLogPspSpis);
}

}  // namespace hcasim::fw
