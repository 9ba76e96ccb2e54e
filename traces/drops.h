// SPDX-License-Identifier: BSD-3-Clause
/// Why a packet was dropped: a1 of Point::kPacketDrop.
#pragma once

#include <cstdint>

// clang-format off
#define HCASIM_DROP_REASONS(X)                                                                      \
  X(kLinkDown,   1, "the port is not ACTIVE")                                                       \
  X(kNoPath,     2, "the destination LID is not on this link")                                      \
  X(kInjected,   3, "the fault generator took it")                                                  \
  X(kCorrupt,    4, "its CRC is wrong")                                                             \
  X(kNoQp,       5, "there is no QP of that number, or it is of another transport")                 \
  X(kQpState,    6, "the QP is not in a state to receive it")                                       \
  X(kPkey,       7, "its P_Key is not the QP's")                                                    \
  X(kNoGroup,    8, "its multicast group has no members here")                                      \
  X(kOpcode,     9, "its BTH opcode is unknown")                                                    \
  X(kMalformed, 10, "lengths or versions in it do not fit")                                         \
  X(kNoAddress, 11, "its LID, GID, MAC or IP address is not ours, and no flow rule takes it")       \
  X(kLoopback,  12, "the TIR blocks frames of its own transport domain")                            \
  X(kNoBuffer,  13, "there is no receive WQE")                                                      \
  X(kRule,      14, "a flow rule drops it")                                                         \
  X(kTooLong,   15, "it is longer than the port's MTU")                                             \
  X(kIcrc,      16, "its invariant CRC is wrong")                                                   \
  X(kSequence,  17, "its PSN is not the next, and its transport does not ask again")                \
  X(kQkey,      18, "its Q_Key is not the QP's")                                                    \
  X(kPageFault, 19, "the QP waits for a page; it comes again")                                      \
  X(kDcKey,     20, "it has not the DC target's access key")                                        \
  X(kUnasked,   21, "it answers nothing that was asked")                                            \
  X(kRefused,   22, "the request is wrong, and its transport has no NAK")                           \
  X(kNoLane,    23, "its service level goes by no virtual lane")                                    \
  X(kSuspended, 24, "its function is held to be migrated")                                          \
  X(kBehind,    25, "the link to the host is far behind, and nothing holds its sender back")         \
  X(kNoRoom,    26, "it goes out where it came in, and too much waits there")
// clang-format on

namespace hcasim::traces {

#define HCASIM_X(id, number, text) id = (number),
enum class DropReason : std::uint8_t { HCASIM_DROP_REASONS(HCASIM_X) };
#undef HCASIM_X

/// The reason as half a sentence; nullptr for an unknown number.
constexpr const char* drop_reason_text(std::uint64_t reason) {
  switch (reason) {
#define HCASIM_X(id, number, text) \
  case number:                     \
    return text;
    HCASIM_DROP_REASONS(HCASIM_X)
#undef HCASIM_X
    default:
      return nullptr;
  }
}

}  // namespace hcasim::traces
