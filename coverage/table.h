// SPDX-License-Identifier: BSD-3-Clause
/// Coverage as tables of text that fit 100 columns.
#pragma once

#include <string>
#include <vector>

#include "coverage/patch.h"
#include "coverage/tracefile.h"

namespace hcasim::coverage {

enum class By { kDirectory, kFile, kFunction };
/// `missing`: by function, only those that were not reached.
std::string table(const Coverage& coverage, By by, bool missing);
std::string patch_table(const std::vector<LineFate>& lines, const std::vector<std::string>& missing);

}  // namespace hcasim::coverage
