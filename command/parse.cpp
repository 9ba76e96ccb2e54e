// SPDX-License-Identifier: BSD-3-Clause
#include "command/parse.h"

#include <string>

namespace hcasim::command {

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  app.failure_message([](const CLI::App* failed, const CLI::Error& e) {
    return failed->get_name() + ": " + e.what() + "\n  -> " + failed->get_name() + " --help\n";
  });
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsageError;
  }
}

}  // namespace hcasim::command
