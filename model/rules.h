// SPDX-License-Identifier: BSD-3-Clause
// Which validation rule (traces/rule_list.h) lies behind a refusal; Rule::kCount: none, as for a page that is
// not there.
#ifndef HCASIM_MODEL_RULES_H
#define HCASIM_MODEL_RULES_H

#include "model/tpt/tpt.h"
#include "model/wqe/parse.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Rule;
using traces::RuleObject;

// An access to memory by a key of the HCA's own driver.
constexpr Rule local_rule(TptStatus s) {
  switch (s) {
    case TptStatus::kBadKey:
      return Rule::kMrKey;
    case TptStatus::kBadPd:
      return Rule::kMrPd;
    case TptStatus::kNoRight:
      return Rule::kMrRights;
    case TptStatus::kOutOfRange:
      return Rule::kMrBounds;
    case TptStatus::kBadList:
      return Rule::kMrList;
    case TptStatus::kOk:
    case TptStatus::kFault:
      break;
  }
  return Rule::kCount;
}

// By a key that came from the wire.
constexpr Rule remote_rule(TptStatus s) {
  switch (s) {
    case TptStatus::kBadKey:
      return Rule::kRemoteKey;
    case TptStatus::kBadPd:
      return Rule::kRemotePd;
    case TptStatus::kNoRight:
      return Rule::kRemoteRights;
    case TptStatus::kOutOfRange:
      return Rule::kRemoteBounds;
    case TptStatus::kBadList:
      return Rule::kMrList;
    case TptStatus::kOk:
    case TptStatus::kFault:
      break;
  }
  return Rule::kCount;
}

constexpr Rule rule_of(WqeFault f) {
  switch (f) {
    case WqeFault::kSize:
      return Rule::kWqeSize;
    case WqeFault::kQpn:
      return Rule::kWqeQpn;
    case WqeFault::kOpcode:
      return Rule::kWqeOpcode;
    case WqeFault::kSegment:
    case WqeFault::kAso:
      return Rule::kWqeSegment;
    case WqeFault::kLength:
      return Rule::kWqeLength;
    case WqeFault::kUmr:
      return Rule::kWqeUmr;
    case WqeFault::kTag:
      return Rule::kWqeTag;
    case WqeFault::kHeaders:
      return Rule::kWqeHeaders;
    case WqeFault::kTls:
      return Rule::kWqeTls;
    case WqeFault::kNone:
    case WqeFault::kFetch:  // the refused DMA is reported by itself
    case WqeFault::kPageFault:
      break;
  }
  return Rule::kCount;
}

// Of a WQE, or receive WQE, that completes in error with these.
constexpr Rule rule_of(prm::CqeSyndrome syndrome, std::uint8_t vendor) {
  switch (syndrome) {
    case prm::CqeSyndrome::kLocalProt:
      return vendor <= static_cast<std::uint8_t>(TptStatus::kFault)
                 ? local_rule(static_cast<TptStatus>(vendor))
                 : Rule::kCount;
    case prm::CqeSyndrome::kLocalLength:
    case prm::CqeSyndrome::kLocalQpOp:
    case prm::CqeSyndrome::kMwBind:
      return rule_of(static_cast<WqeFault>(vendor));
    default:
      return Rule::kCount;  // what the other end finds, it reports itself
  }
}

// The key and address that an access was refused for, as a data segment has them.
inline void broke_access(traces::Tracer& tracer, Rule rule, Time t, RuleObject object, traces::Subject number,
                         std::uint64_t va, std::uint32_t key, std::uint64_t len) {
  if (rule == Rule::kCount) return;
  prm::DataSeg seg{};
  seg.byte_count = static_cast<std::uint32_t>(len);
  seg.lkey = key;
  seg.addr = va;
  tracer.broke(rule, t, object, number, &seg, sizeof seg);
}

}  // namespace hcasim
#endif
