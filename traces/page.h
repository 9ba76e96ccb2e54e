// SPDX-License-Identifier: BSD-3-Clause
/// `hcasim-trace report`: a trace as one HTML page that needs nothing else. What it shows stands in it as
/// JSON; scripts and styles are files of traces/page/, embedded when this program is built.
#pragma once

#include <cstddef>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "traces/analysis.h"
#include "traces/coverage.h"
#include "traces/facts.h"
#include "traces/overview.h"

namespace hcasim::traces {

/// Bounds of what a page has, whatever the trace is; the page says what was left out.
struct PageLimits {
  OverviewLimits overview;
  std::size_t told_failed = 30, told_slow = 30, told_commands = 20;  ///< with their `why`
  std::size_t slow_of_each = 3;                                      ///< slow WQEs of an HCA, QP and opcode
  std::size_t commands = 30, kinds = 200, errors = 300, faults = 200, rules = 60, steps = 80;  ///< rows
  std::size_t coverage_files = 4000;
  std::size_t text = 1500;      ///< bytes of a sentence
  std::size_t bytes = 9 << 20;  ///< of the whole page: with more, fewer WQEs are drawn one by one
};

struct PageInput {
  std::string path;     ///< the trace
  std::string warning;  ///< what is wrong with it
  const Analysis* analysis = nullptr;
  const Facts* facts = nullptr;
  std::string coverage_path;  ///< ""; none
  std::vector<CoverageFile> coverage;
};

/// The page's data. false: the trace cannot be read again, `*err` says why.
bool page_data(const PageInput& in, const PageLimits& limits, nlohmann::ordered_json* out, std::string* err);
/// JSON that may stand in a script element: without "<", and with valid UTF-8, whatever the strings are.
std::string embeddable(const nlohmann::ordered_json& j);
/// The page. false: as of page_data().
bool page(const PageInput& in, PageLimits limits, std::string* html, std::string* err);

/// Made from traces/page/ by its embed.py.
struct PageParts {
  const char *style, *script;
  const char* script_hash;  ///< SHA-256 in base64, for the page's Content-Security-Policy
};
extern const PageParts kPageParts;

}  // namespace hcasim::traces
