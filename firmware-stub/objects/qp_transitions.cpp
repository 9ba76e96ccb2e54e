// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/qp_transitions.h"

#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/qp_context.h"
#include "firmware-stub/opcodes.h"

namespace hcasim::fw {

namespace {

constexpr std::uint8_t in(QpState s) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(s)); }
constexpr std::uint8_t kAnyState = 0x7f;

constexpr std::uint32_t kToInit =
    kAttrPkeyAndPort | kAttrQkey | kAttrRights | kAttrDoorbell | kAttrCounterSet | kAttrOwner;
constexpr std::uint32_t kToRtr =
    kAttrMtu | kAttrMessageSize | kAttrRemote | kAttrReceivePsn | kAttrResponderDepth | kAttrRnrTimer;
constexpr std::uint32_t kToRts = kAttrSendPsn | kAttrRetries | kAttrAckTimeout | kAttrInitiatorDepth;

constexpr std::uint32_t kOptRights = kOptRre | kOptRae | kOptRwe;
// Bits that ask for path migration. The path is never migrated (cap.apm = 0): PM_STATE may only say
// "migrated".
constexpr std::uint32_t kOptMigration = kOptPmState;

}  // namespace

const std::vector<QpTransition>& qp_transitions() {
  static const std::vector<QpTransition> table = {
      {prm::op::RST2INIT_QP, in(QpState::kRst), QpState::kInit, kToInit, 0, 0, 0},
      {prm::op::INIT2INIT_QP, in(QpState::kInit), QpState::kInit, 0,
       kOptRights | kOptPkeyIndex | kOptPort | kOptDrainSigerr, kOptRwe | kOptPkeyIndex | kOptPort,
       kOptPkeyIndex | kOptQkey | kOptPort},
      {prm::op::INIT2RTR_QP, in(QpState::kInit), QpState::kRtr, kToRtr, kOptRights | kOptPkeyIndex,
       kOptRwe | kOptPkeyIndex, kOptPkeyIndex | kOptQkey},
      {prm::op::RTR2RTS_QP, in(QpState::kRtr), QpState::kRts, kToRts, kOptRights | kOptRnrTimeout, kOptRwe,
       kOptQkey},
      {prm::op::RTS2RTS_QP, in(QpState::kRts), QpState::kRts, 0, kOptRights | kOptRnrTimeout | kOptCounterSet,
       kOptRwe | kOptCounterSet, kOptQkey | kOptCounterSet},
      {prm::op::SQERR2RTS_QP, in(QpState::kSqErr), QpState::kRts, 0, 0, kOptRwe, kOptQkey},
      {prm::op::SQD_RTS_QP, in(QpState::kSqd), QpState::kRts, 0, kOptRights | kOptRnrTimeout, kOptRwe,
       kOptQkey},
      {kRts2SqdQp, in(QpState::kRts), QpState::kSqd, 0, 0, 0, 0},
      {prm::op::_2ERR_QP, kAnyState, QpState::kErr, 0, 0, 0, 0},
      {prm::op::_2RST_QP, kAnyState, QpState::kRst, 0, 0, 0, 0},
  };
  return table;
}

const QpTransition* find_qp_transition(std::uint16_t opcode) {
  const std::vector<QpTransition>& rows = qp_transitions();
  const auto it =
      std::find_if(rows.begin(), rows.end(), [&](const QpTransition& t) { return t.opcode == opcode; });
  return it != rows.end() ? &*it : nullptr;
}

std::uint32_t optional_bits(const QpTransition& t, QpType type) {
  if (is_reliable(type)) return t.optional_rc | kOptMigration;  // DC initiators too
  if (type == QpType::kUc) return t.optional_uc | kOptMigration;
  if (is_datagram(type)) return t.optional_ud;
  return t.optional_rc;  // UMR QP
}

}  // namespace hcasim::fw
