// SPDX-License-Identifier: BSD-3-Clause
/// Chrome's trace event format: a process an HCA; WQEs as nested asynchronous slices (they overlap), commands
/// as slices of their slot, errors as instants.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "traces/report.h"

namespace hcasim::traces {
namespace {

constexpr unsigned kCommandTrack = 0x1000000;  // larger than any QPN
constexpr unsigned kErrorTrack = 0x2000000;
// Below that of errors: a function has 32 slots, an HCA fewer than 4,096 functions.
unsigned command_track(unsigned function, unsigned slot) {
  return kCommandTrack + (function & 0xfff) * 32 + (slot & 31);
}

class Writer {
 public:
  explicit Writer(std::FILE* out) : out_(out) { put_raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":["); }

  /// `event`: members of the JSON object.
  void put(const std::string& event) {
    put_raw((first_ ? "\n{" : ",\n{") + event + "}");
    first_ = false;
  }
  bool end() {
    put_raw("]}\n");
    return ok_ && std::fflush(out_) == 0;
  }

 private:
  void put_raw(const std::string& s) { ok_ = std::fwrite(s.data(), 1, s.size(), out_) == s.size() && ok_; }
  std::FILE* out_;
  bool first_ = true, ok_ = true;
};

/// Microseconds with all digits of a picosecond, without rounding through a double.
std::string ts(std::int64_t ps) {
  const std::uint64_t v = ps < 0 ? 0 - static_cast<std::uint64_t>(ps) : static_cast<std::uint64_t>(ps);
  return fmt::format("{}{}.{:06}", ps < 0 ? "-" : "", v / 1000000, v % 1000000);
}

void wqe(Writer& w, const WqeRow& r, std::size_t id) {
  if (r.start() == kNoTime) return;
  std::int64_t end = std::max({r.start(), r.done, r.failed});  // kNoTime is the least
  for (std::int64_t t : r.time) end = std::max(end, t);
  const std::string common = fmt::format("\"cat\":\"wqe\",\"id\":{},\"pid\":{},\"tid\":{}", id, r.hca, r.qpn);
  const std::string name = fmt::format("QP {:#x} {}", r.qpn, r.opcode_name());
  w.put(fmt::format(
      "\"ph\":\"b\",{},\"name\":\"{}\",\"ts\":{},\"args\":{{\"wqe\":{},\"bytes\":{},\"status\":\"{}\","
      "\"retransmits\":{}}}",
      common, name, ts(r.start()), r.serial, r.bytes, r.status_name(), r.retransmits));
  std::int64_t from = r.start();
  for (const auto& [stage, t] : r.steps()) {
    if (t == from) continue;
    const char* stage_name = kStageNames[static_cast<unsigned>(stage)];
    w.put(fmt::format("\"ph\":\"b\",{},\"name\":\"{}\",\"ts\":{}", common, stage_name, ts(from)));
    w.put(fmt::format("\"ph\":\"e\",{},\"name\":\"{}\",\"ts\":{}", common, stage_name, ts(t)));
    from = t;
  }
  w.put(fmt::format("\"ph\":\"e\",{},\"name\":\"{}\",\"ts\":{}", common, name, ts(end)));
}

void name_track(Writer& w, unsigned pid, unsigned tid, const std::string& name) {
  w.put(
      fmt::format("\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}",
                  pid, tid, name));
}

}  // namespace

bool write_perfetto(const Analysis& a, std::FILE* out) {
  Writer w(out);
  std::set<unsigned> hcas;
  std::set<std::tuple<unsigned, unsigned, unsigned>> slots;  // HCA, function, slot
  for (const WqeRow& r : a.wqes()) hcas.insert(r.hca);
  for (const CommandRow& c : a.commands()) {
    hcas.insert(c.hca);
    slots.insert({c.hca, c.function, c.slot});
  }
  for (const Record& r : a.errors()) hcas.insert(r.hca);
  for (unsigned h : hcas) {
    w.put(fmt::format("\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"HCA {}\"}}", h,
                      h));
    name_track(w, h, kErrorTrack, "errors and retries");
  }
  for (const auto& [h, function, slot] : slots)
    name_track(w, h, command_track(function, slot),
               fmt::format("command slot {}{}", slot,
                           function != 0 ? fmt::format(" of function {}", function) : ""));
  std::size_t id = 0;
  for (const WqeRow& r : a.wqes()) wqe(w, r, ++id);
  for (const CommandRow& c : a.commands()) {
    if (c.start == kNoTime) continue;
    const std::int64_t end = c.end != kNoTime && c.end > c.start ? c.end : c.start;
    w.put(fmt::format(
        "\"ph\":\"X\",\"cat\":\"command\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{\"seq\":{},\"op_mod\":{},\"status\":\"{}\",\"syndrome\":\"{:#x}\"}}",
        c.name(), c.hca, command_track(c.function, c.slot), ts(c.start), ts(end - c.start), c.seq, c.op_mod,
        c.status_name(), c.syndrome));
  }
  for (const Record& r : a.errors())
    w.put(fmt::format(
        "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"error\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},"
        "\"args\":{{\"obj\":\"{:#x}\",\"index\":{},\"a0\":\"{:#x}\",\"a1\":\"{:#x}\"}}",
        kPointInfo[r.point].name, r.hca, kErrorTrack, ts(r.time_ps), r.obj, r.index, r.a0, r.a1));
  return w.end();
}

}  // namespace hcasim::traces
