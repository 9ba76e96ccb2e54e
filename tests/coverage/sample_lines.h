// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace hcasim::coverage {

/// The line of sample.c that has this mark.
inline unsigned line_of(const std::string& mark) {
  std::ifstream in(SAMPLE_SOURCE);
  unsigned number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    if (line.find("mark: " + mark + " */") != std::string::npos) return number;
  }
  ADD_FAILURE() << "no mark " << mark;
  return 0;
}

}  // namespace hcasim::coverage
