// SPDX-License-Identifier: GPL-2.0-or-later
// A run's result as text, JSON, charts.
#ifndef HCASIM_FABRIC_REPORT_H
#define HCASIM_FABRIC_REPORT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/run.h"

namespace hcasim::fabric {

// links: how many of the busiest ones.
std::string report_text(const Result& result, std::size_t links);
std::string report_json(const Result& result);
std::string report_svg(const Result& result);

// That share of `all` messages took no longer: nearest rank. sorted: times of those that are done; if they
// are fewer than the share, there is none.
std::optional<Time> percentile(const std::vector<Time>& sorted, std::uint64_t all, double share);

}  // namespace hcasim::fabric
#endif
