// SPDX-License-Identifier: BSD-3-Clause
// The state machine of QPs as commands drive it (IBTA 10.3.1, table of modifiers): one row a command. What
// the hardware does by itself is the model's: any state to ERR and, of datagram and UC QPs, RTS to SQERR on
// an error; within SQD from draining to drained.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_QP_TRANSITIONS_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_QP_TRANSITIONS_H

#include <cstdint>
#include <vector>

#include "model/ctx/qp.h"

namespace hcasim::fw {

// Attributes that a transition always takes from the QPC.
enum QpAttribute : std::uint32_t {
  kAttrPkeyAndPort = 1u << 0,
  kAttrQkey = 1u << 1,
  kAttrRights = 1u << 2,  // rre, rwe, rae, atomic_mode
  kAttrDoorbell = 1u << 3,
  kAttrCounterSet = 1u << 4,
  kAttrOwner = 1u << 5,  // reserved lkey, PD of a UMR QP, drain_sigerr
  kAttrMtu = 1u << 6,
  kAttrMessageSize = 1u << 7,
  kAttrRemote = 1u << 8,  // remote QPN and path
  kAttrReceivePsn = 1u << 9,
  kAttrResponderDepth = 1u << 10,  // log_rra_max
  kAttrRnrTimer = 1u << 11,
  kAttrSendPsn = 1u << 12,
  kAttrRetries = 1u << 13,  // retry_count, rnr_retry
  kAttrAckTimeout = 1u << 14,
  kAttrInitiatorDepth = 1u << 15,  // log_sra_max
};

struct QpTransition {
  std::uint16_t opcode;
  std::uint8_t from;  // 1 << QpState, of each state it may start in
  QpState to;
  std::uint32_t required;                               // QpAttribute
  std::uint32_t optional_rc, optional_uc, optional_ud;  // opt_param_mask bits that may be set (kOpt*)

  bool starts_in(QpState s) const { return (from >> static_cast<unsigned>(s) & 1) != 0; }
  bool takes(QpAttribute a) const { return (required & a) != 0; }
};

// Null: no transition command.
const QpTransition* find_qp_transition(std::uint16_t opcode);
// All rows: for tests and documentation.
const std::vector<QpTransition>& qp_transitions();
// opt_param_mask bits that transition `t` knows of a QP of that type.
std::uint32_t optional_bits(const QpTransition& t, QpType type);

}  // namespace hcasim::fw
#endif
