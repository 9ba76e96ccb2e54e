// SPDX-License-Identifier: BSD-3-Clause
/// Prints an analysis: tables, JSON, and the Chrome trace format.
#pragma once

#include <cstdio>
#include <string>

#include "traces/analysis.h"

namespace hcasim::traces {

struct ReportOptions {
  bool wqes = true, commands = true, summary = true, errors = false;
  bool fields = false;      ///< mailboxes field by field
  bool absolute = false;    ///< stage times since the first stage, not since the one before
  std::uint64_t limit = 0;  ///< rows of each table; 0: all
};

void print_text(const Analysis& a, const ReportOptions& o, std::FILE* out);
void print_json(const Analysis& a, const ReportOptions& o, const std::string& warning, std::FILE* out);
/// Loadable by ui.perfetto.dev and chrome://tracing. false: writing failed.
bool write_perfetto(const Analysis& a, std::FILE* out);

/// A command's mailboxes, non-zero fields by name; unknown structures as hexadecimal digits.
std::string input_fields(const CommandRow& c);
std::string output_fields(const CommandRow& c);
/// One record as a line.
std::string describe(const Record& r, const std::string& point_name);

/// Of sorted values, 0 < p <= 100 (nearest rank); 0 if there are none.
std::int64_t percentile(const std::vector<std::int64_t>& sorted, double p);

/// The summary at the end of the tables, a member a line.
struct OpSummary {
  std::string opcode, status;
  std::uint64_t count = 0, bytes = 0;
  std::vector<std::int64_t> latency;  ///< ps, sorted
};
/// How long WQEs took from a stage to the one that came next in time.
struct StepTimes {
  int from = -1, to = -1;           ///< Stage; both -1: the whole life
  std::vector<std::int64_t> times;  ///< ps, sorted

  std::string name() const;  ///< "doorbell -> sched", "whole life"
};
/// In the order of the stages; the whole life comes first, if any WQE has one.
std::vector<StepTimes> step_times(const std::vector<const WqeRow*>& rows);
struct CommandSummary {
  std::string name;
  std::uint64_t count = 0, failed = 0;
  std::vector<std::int64_t> duration;  ///< ps, sorted
};
struct Summary {
  std::vector<OpSummary> ops;
  std::vector<StepTimes> stages;  ///< without the whole life, which is in `ops`
  std::vector<CommandSummary> commands;
  std::int64_t first = kNoTime, last = kNoTime;  ///< of WQEs, ps
  std::uint64_t bytes = 0;                       ///< of WQEs completed without error
};
Summary summarize(const Analysis& a);

}  // namespace hcasim::traces
