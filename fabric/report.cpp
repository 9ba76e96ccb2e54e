// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chart/chart.h"

namespace hcasim::fabric {

namespace {

using nlohmann::json;

constexpr double kShares[] = {0.5, 0.9, 0.99, 0.999};
constexpr std::size_t kMostPoints = 500;  // of a curve

double us(Time t) { return static_cast<double>(t) / static_cast<double>(kUs); }
double kib(std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

std::vector<const LinkResult*> busiest(const Result& r, std::size_t most) {
  std::vector<const LinkResult*> list;
  for (const LinkResult& l : r.links) list.push_back(&l);
  std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->load > b->load; });
  list.resize(std::min(most, list.size()));
  return list;
}

std::uint64_t longest_queue(const Result& r) {
  std::uint64_t most = 0;
  for (const LinkResult& l : r.links) most = std::max(most, l.counters.most_queued);
  return most;
}

}  // namespace

std::optional<Time> percentile(const std::vector<Time>& sorted, std::uint64_t all, double share) {
  const auto rank =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(all))));
  if (rank > sorted.size()) return std::nullopt;
  return sorted[rank - 1];
}

std::string report_text(const Result& r, std::size_t links) {
  const std::string rates = r.least_gbps == r.most_gbps
                                ? fmt::format("{:g}", r.most_gbps)
                                : fmt::format("{:g} to {:g}", r.least_gbps, r.most_gbps);
  std::string out =
      fmt::format("{}: {} cards of {} Gb/s, {} switches, {:.3f} us simulated from {:g} s on\n\n", r.name,
                  r.cards, rates, r.switches, us(r.simulated), us(r.begin) * 1e-6);
  out += fmt::format("{:<18}{:>17}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "messages (us)", "done of",
                     "least", "50 %", "90 %", "99 %", "99.9 %", "most", "all done");
  for (const Result::Job& j : r.jobs) {
    out += fmt::format("{:<18}{:>17}", j.name.substr(0, 18), fmt::format("{} of {}", j.done, j.messages));
    if (!j.durations.empty()) {
      out += fmt::format("{:>11.2f}", us(j.durations.front()));
      for (const double share : kShares) {
        const auto time = percentile(j.durations, j.messages, share);
        out += time ? fmt::format("{:>11.2f}", us(*time)) : fmt::format("{:>11}", "-");
      }
      out += fmt::format("{:>11.2f}", us(j.durations.back()));
      out +=
          j.done == j.messages ? fmt::format("{:>11.2f}", us(j.last - j.first)) : fmt::format("{:>11}", "no");
    }
    out += "\n";
  }
  out += fmt::format("\n{:<18}{:>17}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "busiest links", "to", "load",
                     "frames", "queue KiB", "marked", "dropped", "paused us");
  for (const LinkResult* l : busiest(r, links)) {
    out += fmt::format("{:<18}{:>17}{:>10.1f}%{:>11}", l->from, l->to, 100 * l->load, l->counters.tx_frames);
    if (l->measured)
      out += fmt::format("{:>11.1f}{:>11}{:>11}{:>11.1f}", kib(l->counters.most_queued), l->counters.marked,
                         l->counters.dropped_full, us(l->counters.paused));
    out += "\n";
  }
  out += fmt::format("\nframes sent by cards {}, longest queue {:.1f} KiB, ECN marks {}, CNPs {}\n", r.frames,
                     kib(longest_queue(r)), r.marked, r.cnps);
  out += fmt::format("pause frames by switches {}, by cards {}\n", r.pauses_by_switches, r.pauses_by_cards);
  out += fmt::format("dropped: buffer full {}, headroom full {}, no route {}; sent again {}\n",
                     r.dropped_full, r.dropped_headroom, r.dropped_unrouted, r.retransmits);
  out += fmt::format("hash of all arrivals {:016x}\n", r.arrivals_hash);
  out += fmt::format(
      "real time{}: {:.1f} s to set up, {:.1f} s to run; the processor's: {:.1f} s ({:.2f} us a frame of a "
      "card); {:.0f} MiB; {} events of ns-3\n",
      r.ranks > 1 ? fmt::format(", {} ranks", r.ranks) : "", r.wall_setup_s, r.wall_run_s, r.cpu_run_s,
      r.frames != 0 ? r.cpu_run_s * 1e6 / static_cast<double>(r.frames) : 0.0,
      static_cast<double>(r.memory_bytes) / 1048576, r.events);
  if (!r.failure.empty()) out += "FAILED: " + r.failure + "\n";
  return out;
}

std::string report_json(const Result& r) {
  json j{{"name", r.name},
         {"cards", r.cards},
         {"switches", r.switches},
         {"card_gbps", r.least_gbps},
         {"card_gbps_most", r.most_gbps},
         {"ranks", r.ranks},
         {"begin_us", us(r.begin)},
         {"simulated_us", us(r.simulated)},
         {"frames", r.frames},
         {"ecn_marks", r.marked},
         {"cnps", r.cnps},
         {"dropped",
          {{"full", r.dropped_full}, {"headroom", r.dropped_headroom}, {"unrouted", r.dropped_unrouted}}},
         {"retransmits", r.retransmits},
         {"pause_frames", {{"switches", r.pauses_by_switches}, {"cards", r.pauses_by_cards}}},
         {"longest_queue_bytes", longest_queue(r)},
         {"arrivals_hash", fmt::format("{:016x}", r.arrivals_hash)},
         {"wall",
          {{"setup_s", r.wall_setup_s},
           {"run_s", r.wall_run_s},
           {"run_cpu_s", r.cpu_run_s},
           {"memory_bytes", r.memory_bytes},
           {"events", r.events}}},
         {"failure", r.failure},
         {"workloads", json::array()},
         {"links", json::array()},
         {"samples", json::array()}};
  for (const Result::Job& job : r.jobs) {
    json one{{"name", job.name},
             {"kind", job.kind},
             {"messages", job.messages},
             {"done", job.done},
             {"bytes", job.bytes}};
    for (const double share : kShares) {
      const auto time = percentile(job.durations, job.messages, share);
      one["percentiles_us"][fmt::format("{:g}", 100 * share)] = time ? json(us(*time)) : json();
    }
    if (!job.durations.empty()) {
      one["least_us"] = us(job.durations.front());
      one["most_us"] = us(job.durations.back());
      one["first_posted_us"] = us(job.first);
      one["last_done_us"] = us(job.last);
    }
    j["workloads"].push_back(std::move(one));
  }
  for (const LinkResult& l : r.links) {
    json one{{"from", l.from},
             {"to", l.to},
             {"gbps", l.gbps},
             {"load", l.load},
             {"frames", l.counters.tx_frames},
             {"bytes", l.counters.tx_bytes}};
    if (l.measured) {
      const PortCounters& k = l.counters;
      one.update({{"most_queued_bytes", k.most_queued},
                  {"ecn_marks", k.marked},
                  {"dropped_full", k.dropped_full},
                  {"dropped_headroom_in", k.dropped_headroom},
                  {"most_headroom_in_bytes", k.most_headroom},
                  {"pauses_sent", k.pauses_sent},
                  {"pauses_received", k.pauses_received},
                  {"paused_us", us(k.paused)}});
    }
    j["links"].push_back(std::move(one));
  }
  for (const Result::Sample& s : r.samples)
    j["samples"].push_back({us(s.at), s.longest_queue, s.buffered, s.delivered});
  // A name that the file system has need not be UTF-8.
  return j.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string report_svg(const Result& r) {
  using chart::Chart;
  using chart::Curve;
  Chart queues{"Queues in the switches", "us", "KiB", {}, true},
      rate{"Messages delivered", "us", "Gb/s", {}, true},
      times{"Time to completion, from when a message may be sent", "us", "% of messages", {}, true};
  Curve longest{"longest queue", {}}, all{"all buffers", {}}, delivered{"of all cards", {}};
  const std::size_t step = std::max<std::size_t>(1, r.samples.size() / kMostPoints);
  const Result::Sample* before = nullptr;
  for (std::size_t i = 0; i < r.samples.size(); i += step) {
    // Of those between the points, the longest.
    std::uint64_t most = 0, buffered = 0;
    for (std::size_t k = i; k < std::min(i + step, r.samples.size()); ++k) {
      most = std::max(most, r.samples[k].longest_queue);
      buffered = std::max(buffered, r.samples[k].buffered);
    }
    const Result::Sample& s = r.samples[i];
    longest.points.emplace_back(us(s.at), kib(most));
    all.points.emplace_back(us(s.at), kib(buffered));
    if (before && s.at > before->at)
      delivered.points.emplace_back(us(s.at), static_cast<double>(s.delivered - before->delivered) * 8000 /
                                                  static_cast<double>(s.at - before->at));
    before = &s;
  }
  queues.curves = {longest, all};
  rate.curves = {delivered};
  for (const Result::Job& j : r.jobs) {
    Curve c{j.name, {}};
    const std::size_t each = std::max<std::size_t>(1, j.durations.size() / kMostPoints);
    for (std::size_t i = 0; i < j.durations.size(); ++i)
      if ((i + 1) % each == 0 || i + 1 == j.durations.size())
        c.points.emplace_back(us(j.durations[i]),
                              100.0 * static_cast<double>(i + 1) / static_cast<double>(j.messages));
    if (!c.points.empty()) times.curves.push_back(std::move(c));
  }
  std::vector<Chart> charts;
  for (Chart& c : {std::ref(queues), std::ref(rate), std::ref(times)}) {
    c.curves.erase(
        std::remove_if(c.curves.begin(), c.curves.end(), [](const Curve& k) { return k.points.empty(); }),
        c.curves.end());
    if (!c.curves.empty()) charts.push_back(std::move(c));
  }
  return chart::svg(charts);
}

}  // namespace hcasim::fabric
