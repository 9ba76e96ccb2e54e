// SPDX-License-Identifier: BSD-3-Clause
/// Keys for encryption, and what work queue elements say of TLS (kernel en_accel/ktls_utils.h, qp.h).
#pragma once

#include "prm/be.h"
#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm {

/// encryption_key_obj. mlx5_ifc.h has named its purpose differently over time (key_type, key_purpose), and
/// given its key different lengths.
using encryption_key_purpose = Field<0x5c, 4>;
namespace create_key {
constexpr unsigned kObject = create_encryption_key_in::encryption_key_object::bit_off;
using size = create_encryption_key_in::encryption_key_object::key_size;
using purpose = Field<kObject + encryption_key_purpose::bit_off, 4>;
using pd = create_encryption_key_in::encryption_key_object::pd;
constexpr unsigned kKey = kObject / 8 + 0x40;  ///< byte; a key of 128 bits stands in the second half
constexpr unsigned kKeyBytes = 32;
constexpr unsigned kBytes = kKey + kKeyBytes;  ///< shortest command
static_assert(encryption_key_obj::key_size::bit_off == 0x54 && encryption_key_obj::pd::bit_off == 0x68);
}  // namespace create_key
constexpr uint8_t kKeyPurposeTls = 1, kKeyPurposeIpsec = 2, kKeyPurposeMacsec = 4;
constexpr uint32_t kKeySize128 = 0, kKeySize256 = 1;

/// ipsec_obj up to what packet offload adds, in all versions of mlx5_ifc.h.
constexpr unsigned kIpsecBytes = ipsec_obj::implicit_iv::end;

/// opmod of UMR (static parameters), of SET_PSV and GET_PSV (progress) on an SQ.
enum : uint8_t { kTlsOfTis = 1, kTlsOfTir = 2 };

/// tls_static_params, behind a UMR's control and mkey segments.
/// Version 1.3. Source: libxlio.
constexpr uint32_t kTlsVersion12 = 2, kTlsVersion13 = 3, kTlsConst1 = 1, kTlsConst2 = 2, kEncryptionTls = 1;

/// tls_progress_params: where the tracker of records is, and whether records are decrypted.
enum : uint8_t { kTrackerStart = 0, kTrackerTracking = 1, kTrackerSearching = 2 };
enum : uint8_t { kAuthNoOffload = 0, kAuthOffload = 1 };

/// What SET_PSV brings and GET_PSV writes.
struct TlsProgressSeg {
  be32 tis_tir_num;
  uint8_t params[tls_progress_params::bytes];
};
static_assert(sizeof(TlsProgressSeg) == 16);
constexpr unsigned kTlsProgressWrite = 64;  ///< bytes that GET_PSV writes, the rest zero

struct GetPsvSeg {
  uint8_t rsvd[19];
  uint8_t num_psv;  ///< 7:4
  be32 lkey;
  be64 va;
  be32 index[4];
};
static_assert(sizeof(GetPsvSeg) == 48 && offsetof(GetPsvSeg, lkey) == 20 && offsetof(GetPsvSeg, index) == 32);

/// Cqe::tls_outer_l3_tunneled 4:3.
enum class CqeTls : uint8_t { kNotDecrypted = 0, kDecrypted = 1, kResync = 2, kError = 3 };
constexpr unsigned kCqeTlsShift = 3;
/// Its other bits, of received frames. Source: kernel device.h (cqe_is_tunneled()); DPDK's mlx5_prm.h.
constexpr uint8_t kCqeTunneled = 1, kCqeOuterIpv6 = 2;

}  // namespace hcasim::prm
