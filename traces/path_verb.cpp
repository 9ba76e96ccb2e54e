// SPDX-License-Identifier: BSD-3-Clause
/// hcasim-trace path
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/parse.h"
#include "traces/frame_end.h"
#include "traces/path.h"
#include "traces/qp_tag.h"
#include "traces/reader.h"
#include "traces/verbs.h"

namespace hcasim::traces {
namespace {

struct PathChoice {
  std::int64_t hca = -1, function = -1, vport = -1, qpn = -1;
  command::TimeSpan span;
  std::string text, id;
  bool dropped = false;
  std::uint64_t limit = 0;
};

bool is_drop(const PathStep& s) {
  if (s.record.p() != Point::kFrameLeaves) return false;
  const auto how = static_cast<FrameEnd>(s.record.a1 & 0xff);
  return how != FrameEnd::kVport && how != FrameEnd::kUplink && how != FrameEnd::kTir &&
         how != FrameEnd::kPassed;
}

// Whether a step has to do with that vport: it enters from there, leaves to it, or passes its ACL.
bool about_vport(const PathStep& s, std::uint32_t vport) {
  const Record& r = s.record;
  if (r.p() == Point::kFrameEnters) return (r.a0 & 0xff) == 4 && (r.a0 >> 8 & 0xffffff) == vport;
  const auto how = static_cast<FrameEnd>(r.a1 & 0xff);
  if (r.p() == Point::kFrameLeaves && how == FrameEnd::kUplink) return vport == 0xffff;
  return r.p() == Point::kFrameLeaves && how != FrameEnd::kTir && how != FrameEnd::kPassed &&
         (r.a0 & 0xffffffff) == vport;
}

bool takes(const PathChoice& c, const FramePath& p) {
  const auto any = [&](auto&& is) {
    for (const PathStep& s : p.steps)
      if (is(s)) return true;
    return false;
  };
  const double at = static_cast<double>(p.steps.front().record.time_ps) / 1e6;
  if (!c.span.has(at) || (!c.id.empty() && path_id(p) != c.id)) return false;
  if (c.hca >= 0 && !any([&](const PathStep& s) { return s.record.hca == c.hca; })) return false;
  if (c.function >= 0 && !any([&](const PathStep& s) { return s.record.function == c.function; }))
    return false;
  if (c.vport >= 0 &&
      !any([&](const PathStep& s) { return about_vport(s, static_cast<std::uint32_t>(c.vport)); }))
    return false;
  if (c.qpn >= 0 && !any([&](const PathStep& s) {
        return s.record.p() == Point::kFrameEnters &&
               static_cast<std::int64_t>(QpTag::qpn(static_cast<std::uint32_t>(s.record.a1))) == c.qpn;
      }))
    return false;
  if (c.dropped && !any(is_drop)) return false;
  return c.text.empty() || path_text(p).find(c.text) != std::string::npos;
}

nlohmann::ordered_json as_json(const FramePath& p) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const PathStep& s : p.steps) {
    nlohmann::ordered_json step = {{"step", s.record.index},
                                   {"after", s.record.a0 >> 32},
                                   {"at_us", static_cast<double>(s.record.time_ps) / 1e6},
                                   {"hca", s.record.hca},
                                   {"function", unsigned{s.record.function}},
                                   {"what", step_text(s)}};
    if (!s.head.empty()) step["frame"] = frame_text(s.head.data(), s.head.size());
    if (s.record.p() == Point::kFrameTable) {
      step["table"] = s.record.a0 & 0xffffff;
      if (const std::uint64_t index = s.record.a1 >> 40; index != kNoFlowIndex) step["entry"] = index;
    }
    if (s.record.p() == Point::kFrameLeaves) step["dropped"] = is_drop(s);
    steps.push_back(std::move(step));
  }
  return {{"frame", path_id(p)}, {"steps", std::move(steps)}};
}

}  // namespace

int path_main(int argc, char** argv) {
  CLI::App app(
      "The ways of frames through flow tables and the E-Switch: each table and entry that they met, what set "
      "that\n"
      "entry, and where they went. Recorded with the filter \"path\" (option trace_filter, property "
      "trace-filter).\n"
      "Status 0: some are shown, 1: none.",
      "hcasim trace path");
  std::string path;
  PathChoice c;
  bool json = false;
  app.add_option("FILE", path, "trace file")->required();
  app.add_option("FRAME", c.id, "only this one, as \"0:17\"");
  app.add_option("--hca", c.hca, "only frames that this HCA has seen")->check(CLI::Range(0u, kMostHcas - 1));
  app.add_option("--function", c.function, "only frames in this function's tables")
      ->check(CLI::Range(0, 4095));
  app.add_option("--vport", c.vport, "only frames that come from this vport or go to it; 65535: the uplink")
      ->check(CLI::Range(0, 0xffff));
  app.add_option("--qpn", c.qpn, "only frames of this send queue")->check(CLI::Range(0, 0xffffff));
  app.add_flag("--dropped", c.dropped, "only frames of which a copy was dropped");
  app.add_option("--match", c.text,
                 "only those that have this text in what is shown, such as \"10.0.0.1 > 10.0.0.2\"");
  c.span.options(app, "those that came");
  app.add_option("--limit", c.limit, "maximum number; 0: all")->check(command::whole());
  app.add_flag("--json", json, "as JSON, an object a line");
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  Paths paths;
  const int status = read_records(
      path, [&paths](const Record& r, const std::vector<std::uint8_t>& blob) { paths.add(r, blob); });
  if (status == 2) return status;
  paths.finish();
  std::uint64_t shown = 0;
  for (const FramePath& p : paths.all()) {
    if (!takes(c, p)) continue;
    if (c.limit != 0 && shown == c.limit) break;
    if (json)
      fmt::print("{}\n", as_json(p).dump());
    else
      fmt::print("{}{}", shown != 0 ? "\n" : "", path_text(p));
    ++shown;
  }
  if (status != 0) return status;
  if (paths.all().empty())
    std::fprintf(stderr, "hcasim-trace: %s has no frames' ways: record it with trace_filter=path\n",
                 path.c_str());
  return shown == 0 ? 1 : 0;
}

}  // namespace hcasim::traces
