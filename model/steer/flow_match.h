// SPDX-License-Identifier: BSD-3-Clause
// A frame's headers as the match parameters see them, and the hash over a group's words of them. Inside of
// the match engine.
#ifndef HCASIM_MODEL_STEER_FLOW_MATCH_H
#define HCASIM_MODEL_STEER_FLOW_MATCH_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/steer/flow.h"

namespace hcasim {

constexpr unsigned kMatchBlock = prm::fte_match_set_lyr_2_4::bytes;  // each block that a criteria bit names

inline std::uint32_t flow_word(const std::uint8_t* params, const FlowGroup::Word& word) {
  std::uint32_t v;
  std::memcpy(&v, params + word.at, sizeof v);
  return v & word.mask;
}

// One step of the hash; start with 0.
inline std::uint64_t flow_hash_step(std::uint64_t hash, std::uint32_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

inline std::uint64_t flow_hash(const std::uint32_t* words, std::size_t count) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) hash = flow_hash_step(hash, words[i]);
  return hash;
}

// Types of the E-Switch's tables.
constexpr bool in_switch(FlowTableType type) {
  return type == FlowTableType::kFdb || type == FlowTableType::kEswIngressAcl ||
         type == FlowTableType::kEswEgressAcl;
}

// Fills the blocks that `criteria` names (match_criteria_enable), which the other ones are not looked at.
void fill_match_param(const SteeredFrame& frame, const GeneveOption& option, unsigned criteria,
                      std::uint8_t* params);
// The bits of the match parameters that fill_match_param() knows: what a group's mask may name.
const MatchParam& matchable();

}  // namespace hcasim
#endif
