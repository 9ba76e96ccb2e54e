// SPDX-License-Identifier: BSD-3-Clause
// The QPC: what CREATE_QP and the transition commands read from it.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_QP_CONTEXT_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_QP_CONTEXT_H

#include <cstdint>

#include "firmware-stub/caps.h"
#include "firmware-stub/caps_transport.h"
#include "firmware-stub/command.h"
#include "model/ctx/qp.h"

namespace hcasim::fw {

// opt_param_mask of the transition commands (mlx5 qp.h, mlx5_qp_optpar)
enum : std::uint32_t {
  kOptAltPath = 1u << 0,
  kOptRre = 1u << 1,
  kOptRae = 1u << 2,
  kOptRwe = 1u << 3,
  kOptPkeyIndex = 1u << 4,
  kOptQkey = 1u << 5,
  kOptRnrTimeout = 1u << 6,
  kOptPrimaryPath = 1u << 7,
  kOptSraMax = 1u << 8,
  kOptRraMax = 1u << 9,
  kOptPmState = 1u << 10,
  kOptDrainSigerr = 1u << 11,  // of INIT2INIT; rdma-core's name
  kOptRetryCount = 1u << 12,
  kOptRnrRetry = 1u << 13,
  kOptAckTimeout = 1u << 14,
  kOptLagAffinity = 1u << 15,
  kOptPort = 1u << 16,
  kOptSrqn = 1u << 18,
  kOptCqnRcv = 1u << 19,
  kOptCounterSet = 1u << 25,
};

// IPoIB: the UD QP whose datagrams are frames, null: there is none of that number.
inline Qp* frame_carrier(QpTable& qps, std::uint32_t qpn) {
  Qp* qp = qps.find(qpn);
  return qp != nullptr && qp->carries_frames ? qp : nullptr;
}

inline bool is_special(QpType t) { return t == QpType::kQp0 || t == QpType::kQp1; }
inline bool is_datagram(QpType t) { return t == QpType::kUd || is_special(t); }
// qpc.deth_sqpn: the source QP that datagrams name. QP1 alone, of a queue that the kernel has for GSI's MADs
// with another P_Key or port than QP1's.
inline bool source_qp_offered(const Command& cmd, QpType type, std::uint32_t sqpn) {
  return sqpn == 0 || (sqpn == 1 && type == QpType::kUd && cmd.uid == 0);
}
// With one remote end, named by INIT2RTR.
inline bool is_connected(QpType t) { return t == QpType::kRc || t == QpType::kXrc || t == QpType::kUc; }

// qpc.lag_tx_port_affinity; 0: none.
inline bool affinity_offered(const Caps& caps, std::uint32_t port) {
  return port == 0 || port <= caps.get<prm::cmd_hca_cap::num_lag_ports>();
}

// qpc.mtu and dctc.mtu to bytes; 0: no such code.
inline unsigned mtu_bytes(std::uint32_t code) { return code >= 1 && code <= 5 ? 128u << code : 0; }

// qpc.atomic_mode and dctc.atomic_mode: 1 is the IB specification's, 2 masked ones of 8 bytes, n > 2 masked
// ones of up to 2^n bytes.
inline bool atomic_mode_offered(const Caps& caps, std::uint32_t mode, bool dc) {
  if (mode == prm::k::QPC_ATOMIC_MODE_IB_SPEC) return true;
  using a = prm::atomic_caps;
  const std::uint8_t* c = caps.current(static_cast<std::uint16_t>(CapGroup::kAtomic))->data();
  if ((prm::get<a::atomic_operations>(c) & kAtomicMasked) != kAtomicMasked) return false;
  if (mode == prm::k::QPC_ATOMIC_MODE_ONLY_8B) mode = prm::k::QPC_ATOMIC_MODE_UP_TO_8B;
  const std::uint64_t sizes = dc ? prm::get<a::atomic_size_dc>(c) : prm::get<a::atomic_size_qp>(c);
  return mode >= prm::k::QPC_ATOMIC_MODE_UP_TO_8B && (sizes >> mode & 1) != 0;
}

}  // namespace hcasim::fw
#endif
