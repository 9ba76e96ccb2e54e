// SPDX-License-Identifier: BSD-3-Clause
/// Validation of the driver: which rules it has broken. Every HCA has a Rules beside its trace points
/// (Tracer::rules()); whoever finds a rule broken says so with Tracer::broke().
///
/// A check may cost nothing while the driver keeps the rule but a comparison in a branch that is taken
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
/// The rule of a record's number; nullptr if there is none (a trace of a later version).
const RuleInfo* find_rule(std::uint64_t number);

/// What a rule was broken on. The numbers stand in traces.
enum class RuleObject : std::uint8_t { kNone, kSlot, kCommand, kQp, kCq, kEq, kSrq, kRq, kKey, kUar };
const char* object_name(RuleObject o);

struct Broken {
  Rule rule;
  std::int64_t time_ps;
  RuleObject object;
  std::uint32_t number;       ///< of the object; kCommand: the command's, as in the trace
  const std::uint8_t* bytes;  ///< what is wrong, as it lies in memory or on the bus; may be none
  std::size_t len;
  std::uint64_t count;  ///< how often this rule has been broken by now
};
/// "rule NAME broken at 12.345 us: QP 0x41: TEXT; bytes 00 01 ..." (64 bytes at most).
std::string describe(const Broken& b);

class Rules {
 public:
  /// kReport: counted, traced, and told. kStrict: whoever listens has the run fail. kOff: nothing is.
  enum class Mode : std::uint8_t { kOff, kReport, kStrict };
  using Listener = std::function<void(const Broken&)>;

  Mode mode() const { return mode_; }
  bool on() const { return mode_ != Mode::kOff; }
  void set_mode(Mode mode) { mode_ = mode; }
  /// Called each time; may not throw. What it does must not lead back into the block that found it.
  void on_broken(Listener listener) { listener_ = std::move(listener); }

  std::uint64_t count(Rule r) const { return counts_[static_cast<unsigned>(r)]; }
  std::uint64_t total() const { return total_; }
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
