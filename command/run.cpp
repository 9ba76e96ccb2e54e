// SPDX-License-Identifier: BSD-3-Clause
#include "command/run.h"

#include <cstdio>
#include <exception>

#include "command/parse.h"

namespace hcasim::command {

int run(const char* name, int (*work)(int, char**), int argc, char** argv) {
  try {
    return work(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return kUsageError;
  }
}

}  // namespace hcasim::command
