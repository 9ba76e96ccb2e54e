// SPDX-License-Identifier: GPL-2.0-or-later
// A run's result as text, JSON, charts.
#ifndef HCASIM_FABRIC_REPORT_H
#define HCASIM_FABRIC_REPORT_H

#include <string>

#include "fabric/run.h"

namespace hcasim::fabric {

// links: how many of the busiest ones.
std::string report_text(const Result& result, std::size_t links);
std::string report_json(const Result& result);
std::string report_svg(const Result& result);

// A share of a sorted list's values lies at or below it: nearest rank. The list is not empty.
Time percentile(const std::vector<Time>& sorted, double share);

}  // namespace hcasim::fabric
#endif
