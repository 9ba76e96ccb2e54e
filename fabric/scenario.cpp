// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/scenario.h"

#include <filesystem>
#include <iterator>

namespace hcasim::fabric {

namespace {

constexpr double kLongestLatency = 1e6;             // ns
constexpr std::uint64_t kLargestBuffer = 4u << 20;  // KiB
constexpr unsigned kLossless = 3;

SwitchConfig read_switch(Section s, std::uint64_t seed) {
  SwitchConfig c;
  c.seed = seed;
  const auto kib = [&s](const char* key, std::uint64_t fallback) {
    return s.whole(key, fallback, 0, kLargestBuffer) << 10;
  };
  c.latency = static_cast<Time>(s.real("latency_ns", 300, 1, kLongestLatency) * kNs);
  c.cut_through = s.flag("cut_through", true);
  c.buffer = s.whole("buffer_kib", 16384, 16, kLargestBuffer) << 10;
  c.queue = s.whole("queue_kib", 2048, 16, kLargestBuffer) << 10;
  c.kmin = kib("ecn_kmin_kib", 100);
  c.kmax = kib("ecn_kmax_kib", 0);
  c.pmax = s.real("ecn_pmax", 0.1, 0, 1);
  if (c.kmax != 0 && c.kmax < c.kmin)
    s.fail("ecn_kmax_kib",
           "must not be less than ecn_kmin_kib (" + std::to_string(c.kmin >> 10) + "); 0: nothing is marked");
  for (const std::uint64_t priority : s.wholes("pfc", {}, 0, kPriorities - 1))
    c.lossless = static_cast<std::uint8_t>(c.lossless | 1u << priority);
  c.xoff = kib("pfc_xoff_kib", 256);
  c.xon = kib("pfc_xon_kib", 192);
  c.headroom = kib("pfc_headroom_kib", 128);
  if (c.xon > c.xoff)
    s.fail("pfc_xon_kib", "must not be more than pfc_xoff_kib (" + std::to_string(c.xoff >> 10) + ")");
  s.done();
  return c;
}

CardSpec read_card(Section s, Section dcqcn) {
  CardSpec c;
  c.profile = s.text("profile", c.profile);
  c.options = s.text("options", "");
  for (const char* own : {"wire=", "mac=", "name=", "link=", "cable=", "switch=", "profile="})
    if (("," + c.options).find(std::string(",") + own) != std::string::npos)
      s.fail("options", std::string(own) + " is the fabric's business (the profile has a key of its own)");
  c.priority = static_cast<unsigned>(s.whole("priority", kLossless, 0, kPriorities - 1));
  c.dcqcn = s.flag("dcqcn", true);
  c.mtu = static_cast<unsigned>(s.whole("mtu", 4096, 256, 4096));
  if ((c.mtu & (c.mtu - 1)) != 0) s.fail("mtu", "must be 256, 512, 1024, 2048 or 4096");
  c.ack_timeout = static_cast<unsigned>(s.whole("ack_timeout", 14, 1, 31));
  c.retries = static_cast<unsigned>(s.whole("retries", 7, 0, 7));
  s.done();
  for (unsigned row = 0; row < std::size(kDcqcnKeys); ++row) {
    const DcqcnKey& key = kDcqcnKeys[row];
    if (dcqcn.has(key.name))
      c.dcqcn_values.emplace_back(row, static_cast<std::uint32_t>(dcqcn.whole(key.name, key.low, key.high)));
  }
  dcqcn.done();
  return c;
}

}  // namespace

Scenario read_scenario(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw ScenarioError(file + ": cannot be read: no such file");
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& e) {
    throw ScenarioError(file + ":" + std::to_string(e.source().begin.line) + ": " +
                        std::string(e.description()));
  }
  Section root(file, table, "");
  Scenario s;
  s.name = root.text("name", std::filesystem::path(file).stem().string());
  const std::uint64_t seed = root.whole("seed", 1, 0, std::uint64_t{1} << 62);
  if (!root.has("topology"))
    root.fail("topology", "is missing; a [topology] with its kind: star, leaf-spine, fat-tree, rail");
  s.topology = read_topology(root.table("topology"), root.table("links"));
  s.switches = read_switch(root.table("switch"), seed);
  s.card = read_card(root.table("card"), root.table("dcqcn"));
  s.workloads = read_workloads(root, file, build_topology(s.topology).cards);
  Section run = root.table("run");
  s.until = static_cast<Time>(run.real("until_us", 1e6, 1, 1e8) * static_cast<double>(kUs));
  s.sample = static_cast<Time>(run.real("sample_us", 10, 0.1, 1e6) * static_cast<double>(kUs));
  if (s.until / s.sample > 10'000'000)
    run.fail("sample_us", "more than 10000000 samples until the end; take fewer");
  run.done();
  root.done();
  return s;
}

}  // namespace hcasim::fabric
