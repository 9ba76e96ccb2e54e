// SPDX-License-Identifier: BSD-3-Clause
#include "command/parse.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
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

CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](std::string& text) -> std::string {
    char* end = nullptr;
    errno = 0;
    const std::uint64_t v = std::strtoull(text.c_str(), &end, 0);
    const bool number = !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (number && v >= least && v <= most) return "";
    return "takes whole numbers from " + std::to_string(least) + " to " + std::to_string(most) + ", not \"" +
           text + "\"";
  };
  return CLI::Validator(check, "");
}

CLI::Validator finite() {
  const auto check = [](std::string& text) -> std::string {
    char* end = nullptr;
    const double v = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && std::isfinite(v)) return "";
    return "takes a number, not \"" + text + "\"";
  };
  return CLI::Validator(check, "");
}

void TimeSpan::options(CLI::App& app, const std::string& what) {
  app.add_option("--from", from, "only " + what + " then or later, us of simulated time")->check(finite());
  app.add_option("--to", to, "only " + what + " before, us")->check(finite());
  app.callback([this] {
    if (to <= from) throw CLI::ValidationError("--to", "has to be later than --from");
  });
}

}  // namespace hcasim::command
