// SPDX-License-Identifier: BSD-3-Clause
// A fault as a user asks for it: parsed from a scenario file or from one line of key=value pairs. What there
// is stands in traces/fault_list.h.
#ifndef HCASIM_MODEL_FAULT_SPEC_H
#define HCASIM_MODEL_FAULT_SPEC_H

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/function/id.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "traces/fault_list.h"

namespace hcasim {

using traces::FaultAction;
using traces::FaultKey;
using traces::FaultType;

struct FaultSpec {
  FaultType kind = FaultType::kCount;
  FaultAction action = FaultAction::kCount;
  unsigned number = 0;  // in its plan, from 1
  // The trigger. Times are simulated, in ps.
  bool timed = false;  // acts at `from`; else waits for events
  Time from = 0, until = kNever;
  std::uint64_t nth = 1, times = 1;  // times 0: no end
  std::uint64_t every = 1;           // events; timed: ps, 0: once
  double probability = 1;
  std::uint64_t seed = 0;
  // What it matches, and how it acts.
  struct Range {
    std::uint64_t low = 0, high = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, low, high);
    }
  };
  traces::FaultKeys given = 0;
  std::array<Range, traces::kFaultKeys> values{};
  std::vector<std::uint8_t> bytes;  // FaultKey::kData

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, kind, action, number, timed, from, until, nth, times, every, probability, seed, given,
                  values, bytes);
  }
  // Whether it can be in force: of one that was not parsed.
  bool sound() const;
  bool has(FaultKey k) const { return (given >> static_cast<unsigned>(k) & 1) != 0; }
  std::uint64_t value(FaultKey k, std::uint64_t otherwise = 0) const {
    return has(k) ? values[static_cast<unsigned>(k)].low : otherwise;
  }
  Time time(FaultKey k, Time otherwise = 0) const {
    return has(k) ? static_cast<Time>(values[static_cast<unsigned>(k)].low) : otherwise;
  }
  FunctionId function() const { return static_cast<FunctionId>(value(FaultKey::kFunction)); }
  // Whether an event that has v for this key can be the one meant.
  bool takes(FaultKey k, std::uint64_t v) const {
    const Range& r = values[static_cast<unsigned>(k)];
    return !has(k) || (r.low <= v && v <= r.high);
  }
  // The same of a span of values.
  bool touches(FaultKey k, std::uint64_t low, std::uint64_t high) const {
    const Range& r = values[static_cast<unsigned>(k)];
    return !has(k) || (r.low <= high && low <= r.high);
  }
};

// FaultKey::kOwner's values: WriteOwner::Kind of model/pcie/dma.h. FaultKey::kDirection's:
enum : std::uint64_t { kFaultRead = 0, kFaultWrite = 1, kFaultTx = 0, kFaultRx = 1 };
// FaultKey::kSeverity's.
// As hca_pcie_error of the C API.
enum : std::uint64_t {
  kFaultCorrectable = 0,
  kFaultNonFatal = 1,
  kFaultFatal = 2,
  kFaultRemoved = 3,
  kFaultInserted = 4,
  kFaultUncorrectable = 5
};

struct PcieErrorName {
  bool correctable;
  std::uint32_t bit;  // of the AER status register
  const char* name;
};
// FaultKey::kError of kind pcie is an index of this.
const std::vector<PcieErrorName>& pcie_errors();

using FaultPairs = std::vector<std::pair<std::string, std::string>>;  // keys and values; "fault" is the kind
// now: what "+20us" counts from, and when the fault comes into force. seed: of its random numbers, unless it
// has one of its own. False: `err` says which key is wrong and what is allowed.
bool parse_fault(const FaultPairs& pairs, Time now, std::uint64_t seed, FaultSpec& out, std::string& err);

struct Scenario {
  std::uint64_t seed = 1;
  std::vector<FaultSpec> faults;
};
// A scenario's text: `seed = N`, then [[fault]] tables. file: its name, for messages. False: `err` has file,
// line, key and what is allowed.
bool parse_scenario(const std::string& text, const std::string& file, Scenario& out, std::string& err);
// Reads a file of at most 1 MiB. False: `err` says why not.
bool read_scenario(const std::string& path, std::string& text, std::string& err);

// "20us", "1.5ms", "3s", "300" (ns). False: it is no time, or too long.
bool parse_time(const std::string& text, Time& out);
// The table of kinds, actions and keys as text, and as a page in Markdown. kind: only that one; null: all.
std::string fault_text(const FaultType* kind = nullptr);
std::string fault_page();
// What an action's name is in "kind/action".
std::string fault_name(FaultType kind, FaultAction action);

}  // namespace hcasim
#endif
