// SPDX-License-Identifier: BSD-3-Clause
/// Validation of the driver: counts of broken rules. Every HCA has a Rules in its Tracer (Tracer::rules()); a
/// block that detects a violation reports it with Tracer::broke().
///
/// While the driver keeps the rule, a check may cost no more than a comparison in a branch that is taken
/// anyway.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "traces/rule_list.h"

namespace hcasim::traces {

#define HCASIM_X(id, number, name, severity, source, text) id,
enum class Rule : std::uint8_t { HCASIM_RULES(HCASIM_X) kCount };
#undef HCASIM_X
constexpr unsigned kRules = static_cast<unsigned>(Rule::kCount);

enum class Severity : std::uint8_t { kWarning, kError };

struct RuleInfo {
  std::uint16_t number;  ///< in traces
  const char* name;
  Severity severity;
  const char *source, *text;
};

#define HCASIM_X(id, number, name, severity, source, text) {number, name, Severity::severity, source, text},
inline constexpr RuleInfo kRuleInfo[kRules] = {HCASIM_RULES(HCASIM_X)};
#undef HCASIM_X

constexpr const RuleInfo& info(Rule r) { return kRuleInfo[static_cast<unsigned>(r)]; }
constexpr const char* severity_name(Severity s) { return s == Severity::kError ? "error" : "warning"; }
/// The rule with this number; nullptr if unknown (a trace of a later version).
const RuleInfo* find_rule(std::uint64_t number);

/// The kind of object that a violation is about. Trace files contain the numbers.
enum class RuleObject : std::uint8_t { kNone, kSlot, kCommand, kQp, kCq, kEq, kSrq, kRq, kKey, kUar };
const char* object_name(RuleObject o);

/// Index of Point::kDoorbellBad: the kind of object, and whether a store to BAR0 or a doorbell record in host
/// memory was wrong.
constexpr std::uint32_t bad_store(RuleObject o) { return static_cast<std::uint32_t>(o); }
constexpr std::uint32_t bad_record(RuleObject o) { return static_cast<std::uint32_t>(o) | 1u << 8; }

struct Broken {
  Rule rule;
  std::int64_t time_ps;
  RuleObject object;
  std::uint32_t number;       ///< of the object; kCommand: the command's sequence number, as in the trace
  const std::uint8_t* bytes;  ///< the wrong bytes as in memory or on the bus; may be null
  std::size_t len;
  std::uint64_t count;         ///< violations of this rule so far, this one included
  std::uint32_t function = 0;  ///< the PCIe function whose driver broke it
};
/// "rule NAME broken at 12.345 us: QP 0x41: TEXT; bytes 00 01 ..." (64 bytes at most).
std::string describe(const Broken& b);

class Rules {
 public:
  /// kReport: violations are counted, traced and passed to the listener. kStrict: the same, and the listener
  /// makes the run fail. kOff: no checks.
  enum class Mode : std::uint8_t { kOff, kReport, kStrict };
  using Listener = std::function<void(const Broken&)>;

  Mode mode() const { return mode_; }
  bool on() const { return mode_ != Mode::kOff; }
  void set_mode(Mode mode) { mode_ = mode; }
  /// Called for each violation; must not throw, nor call back into the block that detected it.
  void on_broken(Listener listener) { listener_ = std::move(listener); }

  std::uint64_t count(Rule r) const { return counts_[static_cast<unsigned>(r)]; }
  std::uint64_t total() const { return total_; }
  /// Of a saved state, which goes on from there.
  void set_count(Rule r, std::uint64_t n) {
    total_ += n - counts_[static_cast<unsigned>(r)];
    counts_[static_cast<unsigned>(r)] = n;
  }
  /// "dbr-jump 2, sq-overrun 1"; "" when none is broken.
  std::string summary() const;

  /// Called by Tracer::broke().
  void count(Broken b);

 private:
  Mode mode_ = Mode::kReport;
  std::array<std::uint64_t, kRules> counts_{};
  std::uint64_t total_ = 0;
  Listener listener_;
};

/// `report`, `strict`, `off`; false: something else.
bool parse_mode(const std::string& text, Rules::Mode* mode);

/// The documentation page: a table of all rules in Markdown.
std::string rules_page();

}  // namespace hcasim::traces
