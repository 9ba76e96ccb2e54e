// SPDX-License-Identifier: BSD-3-Clause
/// Why a session of large receive offload ended: the list that trace files (point lro_end) hold numbers of.
#pragma once

#include <cstdint>

namespace hcasim::traces {

/// X(enumerator, text): new ones go to the end.
#define HCASIM_LRO_ENDS(X)                                                  \
  X(kTimeout, "its time was up")                                            \
  X(kPush, "a segment had PSH")                                             \
  X(kFull, "it was as long as the TIR or the CQE allows")                   \
  X(kSequence, "the next segment was not the one that follows")             \
  X(kFlags, "the next segment had flags other than ACK and PSH")            \
  X(kNoData, "the next segment had no data")                                \
  X(kDiffers, "the next segment's headers differ in what must be the same") \
  X(kChecksum, "the next segment's checksum was wrong")                     \
  X(kTir, "its TIR was changed or destroyed")                               \
  X(kLost, "its receive queue left the state RDY, and the segments went with it")

#define HCASIM_X(id, text) id,
enum class LroEnd : std::uint8_t { HCASIM_LRO_ENDS(HCASIM_X) kCount };
#undef HCASIM_X

#define HCASIM_X(id, text) text,
inline constexpr const char* kLroEndText[] = {HCASIM_LRO_ENDS(HCASIM_X)};
#undef HCASIM_X

}  // namespace hcasim::traces
