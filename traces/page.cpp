// SPDX-License-Identifier: BSD-3-Clause
#include "traces/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hcasim::traces {

std::string embeddable(const nlohmann::ordered_json& j) {
  const std::string text = j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')  // within a string, as JSON has it nowhere else
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

bool page(const PageInput& in, PageLimits limits, std::string* html, std::string* err) {
  std::string data;
  for (;;) {
    nlohmann::ordered_json j;
    if (!page_data(in, limits, &j, err)) return false;
    data = embeddable(j);
    if (data.size() <= limits.bytes || limits.overview.bars < 100) break;
    limits.overview.bars /= 2;
    limits.errors /= 2;
    limits.coverage_files /= 2;
    limits.text = limits.text / 2 + 50;
  }
  // The head has no text of the trace. The policy lets no script run but ours, and nothing be loaded.
  *html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>hcasim "
      "trace</title>\n<style>\n{}</style>\n"
      "</head>\n<body>\n<noscript>This page draws itself with its own script, which is switched off "
      "here.</noscript>\n<main id=\"page\"></main>\n<script type=\"application/json\" "
      "id=\"data\">{}</script>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      kPageParts.script_hash, kPageParts.style, data, kPageParts.script);
  return true;
}

}  // namespace hcasim::traces
