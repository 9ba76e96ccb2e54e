// SPDX-License-Identifier: BSD-3-Clause
/// WQEs as CSV and JSON, and a value change dump.
///
/// The dump is made from the finished trace, not by sc_trace() in the running model: a record carries its
/// time, often ahead of SystemC's clock, while a traced signal is sampled only when the kernel runs a
/// process, which most work does not need. And a run without a dump costs nothing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "traces/story.h"
#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

std::string cell(std::int64_t t) { return t == kNoTime ? "" : std::to_string(t); }

bool put(std::FILE* out, const std::string& s) { return std::fwrite(s.data(), 1, s.size(), out) == s.size(); }

/// A signal's short name in a dump: printable characters, counted in base 94.
std::string code(std::size_t n) {
  std::string s;
  do {
    s += static_cast<char>('!' + n % 94);
    n /= 94;
  } while (n != 0);
  return s;
}

std::string binary(std::uint64_t v) {
  std::string s;
  do s.insert(s.begin(), static_cast<char>('0' + (v & 1)));
  while ((v >>= 1) != 0);
  return s;
}

constexpr unsigned kCountBits = 32;

/// Signals, with their changes and the times of these.
class Signals {
 public:
  std::size_t signal(unsigned hca, const std::string& name, bool event = false) {
    auto [it, is_new] = numbers_.try_emplace({hca, name}, list_.size());
    if (is_new) list_.push_back({hca, name, event});
    return it->second;
  }
  void add(std::size_t signal, std::int64_t ps, int by) { changes_.push_back({ps, signal, by}); }
  void busy(std::size_t signal, std::int64_t from, std::int64_t to) {
    if (to <= from) return;
    add(signal, from, 1);
    add(signal, to, -1);
  }

  bool write(std::FILE* out) {
    bool ok = put(out, "$comment hcasim: WQEs under way and units at work $end\n$timescale 1ps $end\n");
    unsigned scope = UINT32_MAX;
    // Scopes are written in one piece: numbers_ has them by HCA.
    for (const auto& [key, number] : numbers_) {
      if (scope != key.first)
        ok = put(out, fmt::format("{}$scope module hca{} $end\n",
                                  scope == UINT32_MAX ? "" : "$upscope $end\n", key.first)) &&
             ok;
      scope = key.first;
      std::string name = key.second;
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      ok = put(out, list_[number].event
                        ? fmt::format("$var event 1 {} {} $end\n", code(number), name)
                        : fmt::format("$var wire {} {} {} $end\n", kCountBits, code(number), name)) &&
           ok;
    }
    if (scope != UINT32_MAX) ok = put(out, "$upscope $end\n") && ok;
    ok = put(out, "$enddefinitions $end\n#0\n$dumpvars\n") && ok;
    for (std::size_t i = 0; i < list_.size(); i++)
      if (!list_[i].event) ok = put(out, fmt::format("b0 {}\n", code(i))) && ok;
    ok = put(out, "$end\n") && ok;
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.ps < b.ps; });
    std::vector<std::int64_t> value(list_.size(), 0);
    std::vector<std::int64_t> shown(list_.size(), 0);
    for (std::size_t i = 0; i < changes_.size();) {
      const std::int64_t ps = changes_[i].ps;
      std::vector<std::size_t> touched;
      for (; i < changes_.size() && changes_[i].ps == ps; i++) {
        value[changes_[i].signal] += changes_[i].by;
        touched.push_back(changes_[i].signal);
      }
      std::string text;
      for (const std::size_t s : touched) {
        if (list_[s].event) {
          text += fmt::format("1{}\n", code(s));
        } else if (value[s] != shown[s]) {
          shown[s] = value[s];
          text += fmt::format(
              "b{} {}\n", binary(static_cast<std::uint64_t>(std::max<std::int64_t>(0, value[s]))), code(s));
        }
      }
      if (!text.empty() && ps >= 0) ok = put(out, fmt::format("#{}\n{}", ps, text)) && ok;
    }
    return ok && std::fflush(out) == 0;
  }

 private:
  struct Signal {
    unsigned hca;
    std::string name;
    bool event;
  };
  struct Change {
    std::int64_t ps;
    std::size_t signal;
    int by;
  };
  std::map<std::pair<unsigned, std::string>, std::size_t> numbers_;
  std::vector<Signal> list_;
  std::vector<Change> changes_;
};

}  // namespace

bool write_csv(const Analysis& a, std::FILE* out) {
  std::string head =
      "wqe,hca,qpn,serial,opcode,bytes,status,flushed,retransmits,naks,packets,responder_hca,responder_qpn,"
      "start_ps,end_ps";
  for (const char* stage : kStageNames) head += fmt::format(",{}_ps", stage);
  bool ok = put(out, head + ",done_ps,responder_cqe_ps\n");
  for (const WqeRow& w : a.wqes()) {
    std::string row = fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", wqe_id(w), w.hca, w.qpn, w.serial, w.opcode_name(),
        w.bytes, w.status_name(), w.flushed ? 1 : 0, w.retransmits, w.naks, w.packets,
        w.responder_hca < 0 ? "" : std::to_string(w.responder_hca),
        w.responder_qpn == 0 ? "" : std::to_string(w.responder_qpn), cell(w.start()), cell(w.end()));
    for (const std::int64_t t : w.time) row += "," + cell(t);
    ok = put(out, row + "," + cell(w.done) + "," + cell(w.responder_cqe) + "\n") && ok;
  }
  return ok && std::fflush(out) == 0;
}

bool write_json_wqes(const Analysis& a, std::FILE* out) {
  using Json = nlohmann::ordered_json;
  bool ok = put(out, "["), first = true;
  for (const WqeRow& w : a.wqes()) {
    Json j = {{"wqe", wqe_id(w)},
              {"hca", w.hca},
              {"qpn", w.qpn},
              {"serial", w.serial},
              {"opcode", w.opcode_name()},
              {"bytes", w.bytes},
              {"status", w.status_name()},
              {"flushed", w.flushed},
              {"retransmits", w.retransmits},
              {"naks", w.naks},
              {"packets", w.packets}};
    if (w.responder_hca >= 0) j["responder_hca"] = w.responder_hca;
    if (w.responder_qpn != 0) j["responder_qpn"] = w.responder_qpn;
    if (w.start() != kNoTime) j["start_ps"] = w.start();
    if (w.end() != kNoTime) j["end_ps"] = w.end();
    Json stages = Json::object();
    for (unsigned i = 0; i < kStages; i++)
      if (w.time[i] != kNoTime) stages[kStageNames[i]] = w.time[i];
    j["stages_ps"] = std::move(stages);
    if (w.done != kNoTime) j["done_ps"] = w.done;
    if (w.responder_cqe != kNoTime) j["responder_cqe_ps"] = w.responder_cqe;
    ok = put(out, (first ? "\n" : ",\n") + j.dump(-1, ' ', false, Json::error_handler_t::replace)) && ok;
    first = false;
  }
  return put(out, "\n]\n") && ok && std::fflush(out) == 0;
}

bool write_vcd(const Timeline& t, std::FILE* out) {
  Signals signals;
  for (const WqeRow& w : t.wqes.wqes()) {
    if (!w.posted()) continue;
    const std::size_t depth = signals.signal(w.hca, fmt::format("qp_{:#x}_wqes", w.qpn));
    signals.add(depth, w.start(), 1);
    if (w.left() != kNoTime) signals.add(depth, w.left(), -1);
  }
  for (const Busy& b : busy_times(t)) signals.busy(signals.signal(b.hca, b.what), b.from, b.to);
  for (const CommandRow& c : t.wqes.commands())
    if (c.start != kNoTime && c.end != kNoTime)
      signals.busy(signals.signal(c.hca, "commands"), c.start, c.end);
  for (const Record& r : t.others)
    if (r.p() == Point::kMsix)
      signals.add(signals.signal(r.hca, fmt::format("msix_{}", r.obj), true), r.time_ps, 1);
  return signals.write(out);
}

}  // namespace hcasim::traces
