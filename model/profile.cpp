// SPDX-License-Identifier: BSD-3-Clause
#include "model/profile.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <variant>

#include "model/pcie/credits.h"
#include "model/profile_parameters.h"
#include "model/toml_text.h"

namespace hcasim {

namespace {

// One row a parameter: the truth for what a file may hold.
struct Parameter {
  const char* section;
  const char* key;
  std::variant<Time*, unsigned*, double*> where;
  double low, high;  // allowed, in the file's unit
  bool power_of_two = false;
};

constexpr double kMaxNs = 1e9;
constexpr unsigned kCreditBlock = 64;        // bytes of a credit of InfiniBand's links (IBTA 7.9)
constexpr std::size_t kMostBytes = 1 << 20;  // of a file

std::vector<Parameter> parameters(Profile& p, double& clock_mhz) {
  Profile::Pcie& pcie = p.pcie;
  Profile::Engine& eng = p.engine;
  Profile::Firmware& fw = p.firmware;
  Profile::Host& host = p.host;
  return {
      {"core", "clock_mhz", &clock_mhz, 1, 10000},
      {"pcie", "generation", &pcie.generation, 1, 5},
      {"pcie", "lanes", &pcie.lanes, 1, 16, true},
      {"pcie", "efficiency", &pcie.efficiency, 0.05, 1},
      {"pcie", "max_payload", &pcie.max_payload, 128, 4096, true},
      {"pcie", "max_read_request", &pcie.max_read_request, 128, 4096, true},
      {"pcie", "completion_boundary", &pcie.completion_boundary, 64, 128, true},
      {"pcie", "tags", &pcie.tags, 1, 1024},
      {"pcie", "write_buffer", &pcie.write_buffer, 256, 1 << 24},
      {"pcie", "read_latency_ns", &pcie.read_latency, 0, kMaxNs},
      {"pcie", "write_latency_ns", &pcie.write_latency, 0, kMaxNs},
      {"pcie", "mmio_latency_ns", &pcie.mmio_latency, 0, kMaxNs},
      {"pcie", "tlp_write_overhead", &pcie.tlp_write_overhead, 0, 256},
      {"pcie", "tlp_read_overhead", &pcie.tlp_read_overhead, 0, 256},
      {"pcie", "tlp_completion_overhead", &pcie.tlp_completion_overhead, 0, 256},
      {"pcie", "tlp_write_ns", &pcie.tlp_write, 0, kMaxNs},
      {"pcie", "tlp_read_ns", &pcie.tlp_read, 0, kMaxNs},
      {"pcie", "posted_headers", &pcie.posted_headers, 0, Credits::kMostHeaders},
      {"pcie", "posted_data", &pcie.posted_data, 0, Credits::kMostData},
      {"pcie", "nonposted_headers", &pcie.nonposted_headers, 0, Credits::kMostHeaders},
      {"pcie", "credit_ns", &pcie.credit, 0, kMaxNs},
      {"memory", "iotlb", &p.memory.iotlb, 0, 1 << 20},
      {"memory", "iotlb_ways", &p.memory.iotlb_ways, 1, 64},
      {"memory", "iotlb_walks", &p.memory.iotlb_walks, 1, 1024},
      {"memory", "iotlb_walk_ns", &p.memory.iotlb_walk, 0, kMaxNs},
      {"memory", "atc", &p.memory.atc, 0, 1 << 20},
      {"memory", "atc_ways", &p.memory.atc_ways, 1, 64},
      {"memory", "llc_kib", &p.memory.llc_kib, 0, 1 << 20},
      {"memory", "llc_io_kib", &p.memory.llc_io_kib, 1, 1 << 20},
      {"memory", "dram_ns", &p.memory.dram, 0, kMaxNs},
      {"memory", "remote_ns", &p.memory.remote, 0, kMaxNs},
      {"engine", "doorbell_ns", &eng.doorbell, 0, kMaxNs},
      {"engine", "schedule_ns", &eng.schedule, 0, kMaxNs},
      {"engine", "wqe_parse_ns", &eng.wqe_parse, 0, kMaxNs},
      {"engine", "translate_ns", &eng.translate, 0, kMaxNs},
      {"engine", "tx_units", &eng.tx_units, 1, 256},
      {"engine", "rx_units", &eng.rx_units, 1, 256},
      {"engine", "tx_wqe_ns", &eng.tx_wqe, 0, kMaxNs},
      {"engine", "tx_more_ns", &eng.tx_more, 0, kMaxNs},
      {"engine", "tx_response_ns", &eng.tx_response, 0, kMaxNs},
      {"engine", "tx_response_more_ns", &eng.tx_response_more, 0, kMaxNs},
      {"engine", "rx_message_ns", &eng.rx_message, 0, kMaxNs},
      {"engine", "rx_more_ns", &eng.rx_more, 0, kMaxNs},
      {"engine", "gather_ns", &eng.gather, 0, kMaxNs},
      {"engine", "gather_page_ns", &eng.gather_page, 0, kMaxNs},
      {"engine", "gather_pages", &eng.gather_pages, 1, Profile::Engine::kMostPages},
      {"engine", "gather_messages", &eng.gather_messages, 0, Profile::Engine::kMostMessages},
      {"engine", "stream_bytes", &eng.stream_bytes, 0, 4096},
      {"engine", "tx_packet_ns", &eng.tx_packet, 0, kMaxNs},
      {"engine", "tx_pipeline_ns", &eng.tx_pipeline, 0, kMaxNs},
      {"engine", "rx_packet_ns", &eng.rx_packet, 0, kMaxNs},
      {"engine", "rx_pipeline_ns", &eng.rx_pipeline, 0, kMaxNs},
      {"engine", "ack_ns", &eng.ack, 0, kMaxNs},
      {"engine", "cqe_ns", &eng.cqe, 0, kMaxNs},
      {"engine", "eqe_ns", &eng.eqe, 0, kMaxNs},
      {"engine", "atomic_ns", &eng.atomic, 0, kMaxNs},
      {"engine", "atomic_slots", &eng.atomic_slots, 4, 1 << 16, true},
      {"engine", "umr_ns", &eng.umr, 0, kMaxNs},
      {"engine", "crypto_ns", &eng.crypto, 0, kMaxNs},
      {"engine", "crypto_gbps", &eng.crypto_gbps, 1, 10000},
      {"engine", "wqe_fetch_bytes", &eng.wqe_fetch_bytes, 64, 4096, true},
      {"engine", "rwqe_prefetch", &eng.rwqe_prefetch, 1, 64},
      {"engine", "burst_packets", &eng.burst_packets, 1, 4096},
      {"engine", "dc_contexts", &eng.dc_contexts, 1, 1u << 20},
      {"engine", "inflight_packets", &eng.inflight_packets, 1, 65536},
      {"engine", "ack_every", &eng.ack_every, 1, 65536},
      {"engine", "ack_coalesce_ns", &eng.ack_coalesce, 0, kMaxNs},
      {"engine", "batch_window_ns", &eng.batch_window, 0, 1e6},
      {"cache", "qpc", &p.cache.qpc, 1, 1 << 20},
      {"cache", "cqc", &p.cache.cqc, 1, 1 << 20},
      {"cache", "mkey", &p.cache.mkey, 1, 1 << 20},
      {"cache", "mtt", &p.cache.mtt, 1, 1 << 22},
      {"cache", "ways", &p.cache.ways, 1, 64},
      {"cache", "outstanding", &p.cache.outstanding, 1, 1024},
      {"cache", "qpc_bytes", &p.cache.qpc_bytes, 16, 4096},
      {"cache", "cqc_bytes", &p.cache.cqc_bytes, 16, 4096},
      {"cache", "mkey_bytes", &p.cache.mkey_bytes, 16, 4096},
      {"cache", "reads", &p.cache.reads, 0, 1 << 20},
      {"cache", "reads_outstanding", &p.cache.reads_outstanding, 1, 1024},
      {"cache", "reads_bytes", &p.cache.reads_bytes, 16, 4096},
      {"cache", "ste", &p.cache.ste, 1, 1 << 22},
      {"steering", "look_up_ns", &p.steering.look_up, 0, kMaxNs},
      {"steering", "look_up_every_ns", &p.steering.look_up_every, 0, kMaxNs},
      {"steering", "rewrite_ns", &p.steering.rewrite, 0, kMaxNs},
      {"steering", "reformat_ns", &p.steering.reformat, 0, kMaxNs},
      {"port", "rate_gbps", &p.port.rate_gbps, 0.1, 3200},
      {"port", "infiniband_overhead_percent", &p.port.infiniband_overhead_percent, 0, 50},
      {"port", "loopback_ns", &p.port.loopback, 0, kMaxNs},
      {"port", "wire_latency_ns", &p.port.wire_latency, 0, kMaxNs},
      {"port", "ib_link_width", &p.port.ib_link_width, 1, 16, true},
      {"port", "ib_link_speed", &p.port.ib_link_speed, 1, 1 << 9, true},
      {"port", "max_mtu", &p.port.max_mtu, 256, 4096, true},
      {"port", "tx_backlog_packets", &p.port.tx_backlog_packets, 1, 4096},
      {"port", "rx_xoff_ns", &p.port.rx_xoff, 0, kMaxNs},
      {"port", "rx_xon_ns", &p.port.rx_xon, 0, kMaxNs},
      {"port", "lane_buffer", &p.port.lane_buffer, 0, 1 << 24},
      {"port", "cnp_moderation", &p.port.cnp_moderation, 1, 2},
      {"firmware", "command_ns", &fw.command, 0, kMaxNs},
      {"firmware", "command_mailbox_ns", &fw.command_mailbox, 0, kMaxNs},
      {"firmware", "object_ns", &fw.object, 0, kMaxNs},
      {"firmware", "boot_pages", &fw.boot_pages, 0, 1 << 16},
      {"firmware", "init_pages", &fw.init_pages, 0, 1 << 16},
      {"host", "post_ns", &host.post, 0, kMaxNs},
      {"host", "doorbell_ns", &host.doorbell, 0, kMaxNs},
      {"host", "post_recv_ns", &host.post_recv, 0, kMaxNs},
      {"host", "cqe_ns", &host.cqe, 0, kMaxNs},
      {"host", "poll_ns", &host.poll, 0, kMaxNs},
      {"host", "interrupt_ns", &host.interrupt, 0, kMaxNs},
      {"host", "softirq_ns", &host.softirq, 0, kMaxNs},
      {"host", "syscall_ns", &host.syscall, 0, kMaxNs},
      {"host", "frame_tx_ns", &host.frame_tx, 0, kMaxNs},
      {"host", "frame_rx_ns", &host.frame_rx, 0, kMaxNs},
      {"host", "socket_rx_ns", &host.socket_rx, 0, kMaxNs},
      {"host", "copy_gbps", &host.copy_gbps, 1, 10000},
  };
}

std::string number(double v) {
  std::ostringstream out;
  out << v;
  return out.str();
}

std::string allowed(const Parameter& p) {
  std::string text = std::holds_alternative<unsigned*>(p.where) ? "a whole number" : "a number";
  text += " from " + number(p.low) + " to " + number(p.high);
  if (p.power_of_two) text += ", a power of two";
  return text;
}

// False: the value is not what `p` allows.
bool store(const Parameter& p, const toml::node& node) {
  double v;
  if (const auto whole = node.value_exact<std::int64_t>()) {
    v = static_cast<double>(*whole);
  } else if (const auto real = node.value_exact<double>();
             real && !std::holds_alternative<unsigned*>(p.where)) {
    v = *real;
  } else {
    return false;
  }
  if (!(v >= p.low && v <= p.high)) return false;
  if (p.power_of_two && (static_cast<std::uint64_t>(v) & (static_cast<std::uint64_t>(v) - 1))) return false;
  if (auto* whole = std::get_if<unsigned*>(&p.where)) {
    **whole = static_cast<unsigned>(v);
  } else if (auto* time = std::get_if<Time*>(&p.where)) {
    **time = from_ns(v);
  } else {
    *std::get<double*>(p.where) = v;
  }
  return true;
}

std::string find_file(const std::string& path, const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (path.find('/') != std::string::npos || fs::path(path).extension() == ".toml") {
    return fs::is_regular_file(path, ec) ? path : std::string();
  }
  for (const std::string& folder : folders) {
    const fs::path candidate = fs::path(folder) / (path + ".toml");
    if (fs::is_regular_file(candidate, ec)) return candidate.string();
  }
  return {};
}

std::string names_in(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(folder, ec)) {
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none found" : list;
}

std::string at(const std::string& file, const toml::source_region& where) {
  return file + ":" + std::to_string(where.begin.line) + ": ";
}

// The sections there are, in the order of the table.
std::string sections_of(const std::vector<Parameter>& rows) {
  std::string list;
  const char* last = "";
  for (const Parameter& r : rows) {
    if (std::strcmp(r.section, last) != 0) list += (list.empty() ? "" : ", ") + std::string(r.section);
    last = r.section;
  }
  return list;
}

bool has_section(const std::vector<Parameter>& rows, std::string_view section) {
  return std::any_of(rows.begin(), rows.end(), [&](const Parameter& r) { return section == r.section; });
}

// Gives a value to the parameter of that name. False: `err` says what is allowed.
bool assign(const std::vector<Parameter>& rows, std::string_view section, std::string_view key,
            const toml::node& value, std::string& err) {
  const std::string full = std::string(section) + "." + std::string(key);
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Parameter& r) { return section == r.section && key == r.key; });
  if (row == rows.end()) {
    std::string keys;
    for (const Parameter& r : rows)
      if (section == r.section) keys += (keys.empty() ? "" : ", ") + std::string(r.key);
    err = full + ": unknown; allowed are " + keys;
    return false;
  }
  if (store(*row, value)) return true;
  err = full + ": must be " + allowed(*row);
  return false;
}

// "SECTION.KEY=VALUE"
bool override_one(const std::vector<Parameter>& rows, const std::string& text, std::string& err) {
  const std::size_t eq = text.find('='), dot = text.find('.');
  if (eq == std::string::npos || dot > eq) {
    err = "\"" + text + "\": expected SECTION.KEY=VALUE";
    return false;
  }
  const std::string section = text.substr(0, dot), key = text.substr(dot + 1, eq - dot - 1),
                    number = text.substr(eq + 1);
  if (!has_section(rows, section)) {
    err = section + ": unknown; the profile's sections are " + sections_of(rows);
    return false;
  }
  char* end = nullptr;
  errno = 0;
  const long long whole = std::strtoll(number.c_str(), &end, 10);
  if (!number.empty() && *end == 0 && errno == 0) {
    if (assign(rows, section, key, toml::value<std::int64_t>(whole), err)) return true;
  } else {
    const double real = std::strtod(number.c_str(), &end);
    // What is no number at all is refused as a value that is not allowed.
    const bool good = !number.empty() && *end == 0;
    if (assign(rows, section, key, toml::value<double>(good ? real : std::nan("")), err)) return true;
  }
  err += " (" + text + ")";
  return false;
}

// A key above all sections.
bool take_text(Profile& p, const std::vector<Parameter>& rows, const std::string& file, const toml::key& key,
               const toml::node& value, std::string& err) {
  const std::string name(key.str());
  const auto text = value.value_exact<std::string>();
  if (name == "name" && text && !text->empty()) {
    p.name = *text;
    return true;
  }
  const Generation* generation = name == "generation" && text ? find_generation(*text) : nullptr;
  if (generation != nullptr) {
    p.generation = generation;
    return true;
  }
  err = at(file, value.source()) + name;
  if (name == "name") {
    err += ": a string that is not empty";
  } else if (name == "generation") {
    err += ": must be one of " + generation_keys();
  } else {
    err += ": unknown; allowed are name, generation and the sections " + sections_of(rows);
  }
  return false;
}

bool take_section(const std::vector<Parameter>& rows, const std::string& file, const toml::key& name,
                  const toml::table& table, std::string& err) {
  if (!has_section(rows, name.str())) {
    err = at(file, table.source()) + std::string(name.str()) +
          ": unknown; allowed are name, generation and the sections " + sections_of(rows);
    return false;
  }
  for (const auto& [key, value] : table) {
    std::string why;
    if (assign(rows, name.str(), key.str(), value, why)) continue;
    err = at(file, key.source()) + why;
    return false;
  }
  return true;
}

// Values that are allowed each by itself, and mean nothing together.
bool agree(const Profile& p, std::string& err) {
  if (p.memory.atc != 0 && p.memory.iotlb == 0)
    err = "memory.atc: the HCA keeps translations of an IOMMU, and there is none: set memory.iotlb";
  else if (p.port.lane_buffer != 0 && p.port.lane_buffer < kCreditBlock)
    err = "port.lane_buffer: must be 0, or at least the 64 bytes of a credit";
  else if (p.engine.inflight_packets < p.engine.ack_every)
    err =
        "engine.inflight_packets: must be at least engine.ack_every, or the window is full before anybody "
        "asks for an acknowledgement";
  else
    return true;
  return false;
}

}  // namespace

double Profile::gather_ps_per_byte() const {
  return std::max(pcie.ps_per_byte(), static_cast<double>(engine.gather_page) / Engine::kPage);
}

double Profile::Pcie::ps_per_byte() const {
  // Gb/s of a lane after line coding (8b/10b, from 8 GT/s on 128b/130b).
  static constexpr double kLane[] = {2.0, 4.0, 7.877, 15.754, 31.508};
  const double gbps = kLane[std::clamp(generation, 1u, 5u) - 1] * lanes * efficiency;
  return 8000.0 / gbps;
}

bool Profile::load(const std::string& path, const std::vector<std::string>& folders, Profile& out,
                   std::string& err, const std::vector<std::string>& overrides) {
  const std::string file = find_file(path, folders);
  if (file.empty()) {
    err = "profile " + path + ": no such file; profiles are " + names_in(folders);
    return false;
  }
  try {
    std::string text;
    if (!read_text(file, kMostBytes, text, err) || !plain_toml(text, file, err)) return false;
    const toml::table root = toml::parse(text, file);
    Profile p;
    double clock_mhz = 1000;
    const std::vector<Parameter> rows = parameters(p, clock_mhz);
    for (const auto& [key, value] : root) {
      if (value.is_table() ? !take_section(rows, file, key, *value.as_table(), err)
                           : !take_text(p, rows, file, key, value, err))
        return false;
    }
    for (const std::string& text : overrides) {
      if (!override_one(rows, text, err)) return false;
    }
    if (!agree(p, err)) return false;
    p.cycle = std::max<Time>(1, std::llround(1e6 / clock_mhz));
    for (const Parameter& r : rows) {
      if (std::strcmp(r.section, "host") == 0) continue;  // whose clock is another
      if (auto* time = std::get_if<Time*>(&r.where)) **time = (**time + p.cycle / 2) / p.cycle * p.cycle;
    }
    out = std::move(p);
    return true;
  } catch (const toml::parse_error& e) {
    err = at(file, e.source()) + std::string(e.description());
  } catch (const std::exception& e) {
    err = file + ": " + e.what();
  }
  return false;
}

const std::vector<std::string>& Profile::names() {
  static const std::vector<std::string> all = [] {
    Profile p;
    double clock_mhz = 0;
    std::vector<std::string> list;
    for (const Parameter& r : parameters(p, clock_mhz)) list.push_back(std::string(r.section) + "." + r.key);
    return list;
  }();
  return all;
}

const std::vector<ParameterRange>& parameter_ranges() {
  static const std::vector<ParameterRange> all = [] {
    Profile p;
    double clock_mhz = 0;
    std::vector<ParameterRange> list;
    for (const Parameter& r : parameters(p, clock_mhz))
      list.push_back({std::string(r.section) + "." + r.key, r.low, r.high,
                      std::holds_alternative<unsigned*>(r.where), r.power_of_two,
                      std::holds_alternative<Time*>(r.where)});
    return list;
  }();
  return all;
}

double Profile::value(std::size_t index) const {
  Profile copy = *this;
  double clock_mhz = 1e6 / static_cast<double>(cycle);
  const auto where = parameters(copy, clock_mhz).at(index).where;
  if (const auto* whole = std::get_if<unsigned*>(&where)) return **whole;
  if (const auto* time = std::get_if<Time*>(&where)) return static_cast<double>(**time) / 1000;
  return *std::get<double*>(where);
}

}  // namespace hcasim
