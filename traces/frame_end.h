// SPDX-License-Identifier: BSD-3-Clause
/// How a frame's way through flow tables ends: the list that trace files (point frame_leaves) hold numbers
/// of.
#pragma once

#include <cstdint>

namespace hcasim::traces {

/// X(enumerator, text): new ones go to the end. %: the vport or TIR.
#define HCASIM_FRAME_ENDS(X)                                                      \
  X(kVport, "to vport %")                                                         \
  X(kUplink, "out of the uplink")                                                 \
  X(kTir, "to TIR %")                                                             \
  X(kPassed, "on its way: no table has anything else to say")                     \
  X(kRule, "dropped by this entry")                                               \
  X(kNoRule, "dropped: nothing matched")                                          \
  X(kVportDown, "dropped: the state of vport % is down")                          \
  X(kBack, "dropped: nothing goes back to vport %, where it came from")           \
  X(kTagged, "dropped: it has a tag, and vport % gets one from the switch alone") \
  X(kAcl, "dropped by the ACL of vport %")                                        \
  X(kNoVport, "dropped: there is no vport %")

#define HCASIM_X(id, text) id,
enum class FrameEnd : std::uint8_t { HCASIM_FRAME_ENDS(HCASIM_X) kCount };
#undef HCASIM_X

#define HCASIM_X(id, text) text,
inline constexpr const char* kFrameEndText[] = {HCASIM_FRAME_ENDS(HCASIM_X)};
#undef HCASIM_X

/// Bytes of a frame that frame_enters holds, at most.
constexpr std::uint32_t kFrameHead = 128;
/// Flow index of frame_table where no entry matched.
constexpr std::uint32_t kNoFlowIndex = 0xffffff;

}  // namespace hcasim::traces
